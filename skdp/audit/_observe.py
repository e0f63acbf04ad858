"""What an attacker sees of a fitted estimator, as one vector."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

__all__ = ["Observer", "observer_for"]

FloatArray = NDArray[np.float64]
Observer = Callable[[Any, Any, Any], Any]
_METHODS = ("predict_proba", "decision_function", "predict", "transform")


def observer_for(observe: Any) -> Observer:
    """Function of (fitted estimator, X, y) that gives what is seen.

    Parameters
    ----------
    observe : "auto", "attributes", "outputs" or callable
        As in `audit_epsilon`.
    """
    if callable(observe):
        return observe
    known: dict[str, Observer] = {"auto": _auto, "attributes": _attributes, "outputs": _outputs}
    if observe not in known:
        raise ValueError(f"observe must be one of {sorted(known)} or a function, got {observe!r}")
    return known[observe]


def _auto(fitted: Any, X: Any, y: Any) -> FloatArray:
    found = _attributes(fitted, X, y)
    return found if len(found) else _outputs(fitted, X, y)


def _outputs(fitted: Any, X: Any, y: Any) -> FloatArray:
    """What the first method that there is says about the rows."""
    name = next((name for name in _METHODS if hasattr(fitted, name)), None)
    if name is None:
        raise ValueError(f"{type(fitted).__name__} has none of {', '.join(_METHODS)}")
    values = getattr(fitted, name)(X)
    dense = values.toarray() if issparse(values) else values
    return np.asarray(dense, dtype=np.float64).ravel()


def _attributes(fitted: Any, X: Any, y: Any) -> FloatArray:
    """All numbers that the fitted object holds in attributes ending in an underscore."""
    found: list[FloatArray] = []
    _collect(fitted, found, set())
    return np.concatenate(found) if found else np.zeros(0)


def _collect(value: Any, found: list[FloatArray], seen: set[int]) -> None:
    if isinstance(value, BaseEstimator):
        if id(value) in seen:
            return
        seen.add(id(value))
        for name, held in sorted(vars(value).items()):
            nested = isinstance(held, list | tuple | BaseEstimator)
            if name.endswith("_") and name != "n_features_in_" or nested:
                _collect(held, found, seen)
    elif isinstance(value, list | tuple):
        for held in value:
            _collect(held, found, seen)
    elif isinstance(value, Mapping):
        for _, held in sorted(value.items(), key=lambda item: repr(item[0])):
            _collect(held, found, seen)
    elif isinstance(value, bool | int | float | np.number | np.ndarray) or issparse(value):
        array = np.asarray(value.toarray() if issparse(value) else value)
        if array.dtype.kind in "biuf":
            found.append(array.astype(np.float64).ravel())
