"""Public bounds of columns, in the forms that a user may write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["column_bounds", "share_of_budget"]

FloatArray = NDArray[np.float64]
# Half widths below this have reciprocals that overflow on a fine grid.
_LEAST_HALF = 2.0**-960
# Of mu^2 of a pipeline, for a step that knows its bounds and for one that has to find them; as
# measured, see `skdp.budget.default_shares`.
_KNOWN, _TO_BE_FOUND = 0.1, 0.3


def share_of_budget(bounds: Any) -> float:
    """Share of mu^2 that a step should get beside a model."""
    return _TO_BE_FOUND if bounds is None else _KNOWN


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
        low, high = _by_name(bounds, n_features, names)
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
    half = high / 2.0 - low / 2.0
    right = np.isfinite(low) & np.isfinite(high) & (half >= _LEAST_HALF)
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
    bounds: Mapping[Any, Any], n_features: int, names: Sequence[str] | None
) -> tuple[FloatArray, FloatArray]:
    if names is None:
        raise ValueError("bounds by column name need an X with column names")
    missing = [name for name in names if name not in bounds]
    unknown = [name for name in bounds if name not in set(names)]
    if missing or unknown:
        raise ValueError(
            "bounds must name the columns of X, all of them and no others; "
            f"missing: {missing}, unknown: {unknown}"
        )
    pairs = [np.asarray(bounds[name], dtype=np.float64) for name in names]
    for name, pair in zip(names, pairs, strict=True):
        if pair.shape != (2,):
            raise ValueError(
                f"bounds by column name must be pairs (low, high); column {str(name)!r} has shape "
                f"{pair.shape}"
            )
    low, high = np.reshape(pairs, (n_features, 2)).T
    return low, high
