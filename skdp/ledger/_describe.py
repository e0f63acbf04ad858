"""What a ledger writes down about an estimator: what it is and how it was set, nothing of data."""

import re
from inspect import signature
from math import isfinite
from numbers import Integral, Real
from typing import Any

from skdp.accounting import PrivacyCost

__all__ = ["describe"]

_WORD = re.compile(r"[\w.+-]{1,40}\Z")


def describe(estimator: Any) -> dict[str, Any]:
    """Parameters that differ from their defaults, by name as in ``set_params``.

    Parameters
    ----------
    estimator : estimator
        Its parameters may hold anything: categories, arrays, functions.

    Returns
    -------
    parameters : dict of str to str, int, float, bool or None
        Numbers, truth values and single words as they are; of estimators and functions the
        name; of everything else the type and the size.
    """
    found = {}
    values = estimator.get_params(deep=True)
    owners = {"": estimator, **values}
    for name, value in values.items():
        path, _, own = name.rpartition("__")
        default = _default(owners.get(path), own)
        if value is not default and not (_is_plain(value) and _same(value, default)):
            found[name] = _summary(value)
    return found


def _default(owner: Any, name: str) -> Any:
    """The default of a parameter; steps and the like have none."""
    known = signature(type(owner).__init__).parameters.get(name)
    return known.default if known is not None else known


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


def _summary(value: Any) -> Any:
    if value is None or type(value) is bool:
        return value
    if isinstance(value, Real):
        return _number(value)
    if isinstance(value, str):
        return value if _WORD.match(value) else f"str of length {len(value)}"
    if isinstance(value, PrivacyCost):
        return f"PrivacyCost of epsilon={value.epsilon():.6g} at delta={value.reference_delta:g}"
    kind = type(value).__name__
    if hasattr(value, "get_params") and not isinstance(value, type):
        return kind
    if isinstance(value, type) or callable(value):
        return f"{kind} {getattr(value, '__name__', '')}".rstrip()
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind} of shape {shape}"
    try:
        return f"{kind} of length {len(value)}"
    except TypeError:
        return kind


def _number(value: Real) -> int | float | str:
    """As JSON can have it."""
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return number if isfinite(number) else str(number)
