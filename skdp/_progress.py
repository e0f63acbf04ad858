"""A progress bar of plain text."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["with_progress"]

Result = TypeVar("Result")
_BAR_WIDTH = 40


def with_progress(results: Iterable[Result], total: int, what: str = "fits") -> Iterator[Result]:
    """Pass results on while drawing a bar on the standard error.

    Parameters
    ----------
    results : iterable
        Results, as they come.
    total : int
        How many there will be.
    what : str, default="fits"
        What is counted.

    Yields
    ------
    result : object
        Every result.
    """
    for done, result in enumerate(results, start=1):
        filled = _BAR_WIDTH * done // total
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        end = "\n" if done == total else ""
        print(f"\r[{bar}] {done}/{total} {what}", end=end, file=sys.stderr, flush=True)
        yield result
