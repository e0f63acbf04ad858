"""Warnings that point at the line of the user's which led to them."""

import sys
import warnings
from collections.abc import Sequence
from types import FrameType

__all__ = ["listed", "warn"]

# Packages between the user's line and the place where a warning arises.
_INNER = {"joblib", "skdp", "sklearn"}


def listed(names: Sequence[object], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def warn(message: str, category: type[Warning]) -> None:
    """Warn on behalf of the first caller outside of skdp and scikit-learn.

    Parameters
    ----------
    message : str
        What is the matter and what to do. Of the data it may tell released values only.
    category : type of Warning
        A class of `skdp.exceptions`.
    """
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) in _INNER and frame.f_back is not None:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
