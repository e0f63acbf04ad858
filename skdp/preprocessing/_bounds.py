"""Public bounds of columns, in the forms that a user may write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.preprocessing._names import by_name

__all__ = ["are_bounds", "column_bounds", "share_of_budget", "target_bounds"]

FloatArray = NDArray[np.float64]
# Half widths below this have reciprocals that overflow on a fine grid.
_LEAST_HALF = 2.0**-960
# Of mu^2 of a pipeline, for a step that knows its bounds and for one that has to find them; as
# measured, see `skdp.budget.default_shares`.
_KNOWN, _TO_BE_FOUND = 0.1, 0.3


def share_of_budget(bounds: Any) -> float:
    """Share of mu^2 that a step should get beside a model."""
    return _TO_BE_FOUND if bounds is None else _KNOWN


def are_bounds(low: Any, high: Any) -> NDArray[np.bool_]:
    """Whether numbers are finite and far enough apart to be bounds, elementwise."""
    with np.errstate(invalid="ignore"):  # of two infinities
        half = np.divide(high, 2.0) - np.divide(low, 2.0)
    return np.asarray(np.isfinite(low) & np.isfinite(high) & (half >= _LEAST_HALF))


def target_bounds(y_bounds: Any) -> tuple[float, float]:
    """Lower and upper bound of a target.

    Parameters
    ----------
    y_bounds : pair of float
        As given by the user.

    Raises
    ------
    ValueError
        If they are not finite with ``low < high``.
    """
    bounds = np.asarray(y_bounds, dtype=np.float64)
    if bounds.shape != (2,):
        raise ValueError(f"y_bounds must be a pair (low, high), got shape {bounds.shape}")
    low, high = bounds.tolist()
    if not are_bounds(low, high):
        raise ValueError(f"y_bounds must be finite with low < high, got ({low:g}, {high:g})")
    return low, high


def column_bounds(
    bounds: Any, n_features: int, names: Sequence[str] | None
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bound of every column.

    Parameters
    ----------
    bounds : pair, or mapping of str to pair
        ``(low, high)``, each a number or an array of shape (n_features,), or a pair of numbers by
        column name.
    n_features : int
        Number of columns.
    names : sequence of str or None
        Their names, when they have any.

    Returns
    -------
    low, high : ndarray of shape (n_features,)

    Raises
    ------
    ValueError
        If a column is missing or unknown, or bounds are not finite with ``low < high``.
    """
    if isinstance(bounds, Mapping):
        low, high = _by_name(bounds, names)
    else:
        if len(bounds) != 2:
            raise ValueError(
                f"bounds must be a pair (low, high), each a number or one number per column, got "
                f"{len(bounds)} items; or a dict of pairs by column name. For one pair per column: "
                "bounds=tuple(np.transpose(pairs))"
            )
        if n_features == 2 and _is_ambiguous(bounds):
            raise ValueError(
                "bounds of two columns as lists of two numbers can mean (low, high) or one pair "
                "per column; give a dict by column name, or two arrays: "
                "bounds=(np.array([low_0, low_1]), np.array([high_0, high_1]))"
            )
        low, high = (_one_per_column(bound, n_features) for bound in bounds)
    right = are_bounds(low, high)
    if not right.all():
        column = int(np.argmin(right))
        name = column if names is None else repr(str(names[column]))
        raise ValueError(
            f"bounds must be finite, with low < high; those of column {name} are "
            f"({low[column]:g}, {high[column]:g})"
        )
    return low, high


def _is_ambiguous(bounds: Any) -> bool:
    """Whether two columns' bounds look the same as (low, high) and as a pair per column.

    Two arrays can only be meant as (low, high): nobody writes pairs like that.
    """
    if isinstance(bounds, np.ndarray):
        return bounds.ndim == 2
    return all(isinstance(bound, list | tuple) for bound in bounds)


def _one_per_column(bound: Any, n_features: int) -> FloatArray:
    array = np.asarray(bound, dtype=np.float64)
    if array.shape not in ((), (n_features,)):
        raise ValueError(
            f"bounds must hold numbers, or arrays of shape ({n_features},) as X has {n_features} "
            f"columns, got shape {array.shape}"
        )
    return np.array(np.broadcast_to(array, (n_features,)))


def _by_name(
    bounds: Mapping[Any, Any], names: Sequence[str] | None
) -> tuple[FloatArray, FloatArray]:
    for name, pair in bounds.items():
        if np.shape(pair) != (2,):
            raise ValueError(
                f"bounds by column name must be pairs (low, high); column {str(name)!r} has shape "
                f"{np.shape(pair)}"
            )
    low, high = np.array(by_name(bounds, names, "bounds"), dtype=np.float64).T
    return low, high
