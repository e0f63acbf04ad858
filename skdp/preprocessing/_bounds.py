"""Public bounds of columns, in the forms that a user may write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["column_bounds"]

FloatArray = NDArray[np.float64]
# Half widths below this have reciprocals that overflow on a fine grid.
_LEAST_HALF = 2.0**-960


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
                f"{len(bounds)} items; or a dict of pairs by column name"
            )
        low, high = (_one_per_column(bound, n_features) for bound in bounds)
    half = high / 2.0 - low / 2.0
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (half >= _LEAST_HALF).all()):
        raise ValueError("bounds must be finite, with low < high")
    return low, high


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
    if any(pair.shape != (2,) for pair in pairs):
        raise ValueError("bounds by column name must be pairs (low, high)")
    low, high = np.reshape(pairs, (n_features, 2)).T
    return low, high
