"""Public counts that a cost may depend on before there are data: classes, outputs, features."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from types import MappingProxyType
from typing import Any

__all__ = ["declared", "given_facts"]

_NOUNS = {"n_classes": "classes", "n_outputs": "outputs", "n_features": "features"}
_FACTS: ContextVar[Mapping[str, int]] = ContextVar("skdp_facts", default=MappingProxyType({}))


@contextmanager
def given_facts(**facts: Any) -> Iterator[None]:
    """Make public counts known to the rules that run inside; those given outside stay known.

    Parameters
    ----------
    **facts : int or None
        ``n_classes``, ``n_outputs`` and ``n_features``; None for what is not known.

    Raises
    ------
    ValueError
        If a count is not a positive integer.
    """
    found = {name: value for name, value in facts.items() if value is not None}
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")
    token = _FACTS.set({**_FACTS.get(), **{name: int(value) for name, value in found.items()}})
    try:
        yield
    finally:
        _FACTS.reset(token)


def declared(name: str, obj: Any) -> int:
    """Return a count that decides how often `obj` fits its parts.

    Parameters
    ----------
    name : {"n_classes", "n_outputs", "n_features"}
        Which count.
    obj : estimator
        The one that asks.

    Returns
    -------
    count : int

    Raises
    ------
    ValueError
        If nobody has declared it.
    """
    try:
        return _FACTS.get()[name]
    except KeyError:
        raise ValueError(
            f"how often {type(obj).__name__} fits its estimator depends on the number of "
            f"{_NOUNS[name]}, which is not known before the fit; declare it: {name}=..."
        ) from None
