"""Means and variances of bounded columns with missing values, in one exact release.

As in `skdp._moments` a column is mapped to ``u`` in [-1, 1] and rounded onto a grid. A record's
share is ``(u, 2 (u**2 - 5/8), 1/2)`` in every column where it has a value, and zero where the value
is missing: how many there are is data. The squared norm of a share is at most ``25/16 + 1/4`` per
column, ``1 + 1/4`` without second moments. Under "replace" two shares differ most where both have
a value, and then the counts agree: by what `skdp._moments` says.
"""

from dataclasses import dataclass
from math import frexp, inf, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp._histograms import FloatArray, IntArray
from skdp._lattice import BoundedSum, ExactTotal, block_rows, iter_blocks
from skdp._threads import Workers
from skdp.accounting import PrivacyCost
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.plan import PlannedRelease

__all__ = ["CountedMoments", "plan_counted_moments", "release_counted_moments"]

# Norm of one column's share by relation, rounded up: both moments and the first only.
_BOTH = {"add_or_remove": 1.3462913, "replace": 2.2681726}
_FIRST = {"add_or_remove": 1.1180340, "replace": 2.0}
_BITS = 20
_LARGEST = np.finfo(np.float64).max
_BLOCK_ENTRIES = 1 << 16
_SERIAL_ENTRIES = 1 << 20


@dataclass(frozen=True)
class CountedMoments:
    """Released moments of the values that are there.

    Attributes
    ----------
    mean : ndarray of shape (n_columns,)
        Within the bounds.
    variance : ndarray of shape (n_columns,) or None
        As released: below zero where the noise is larger. None without second moments.
    doubt : ndarray of shape (n_columns,)
        Standard deviation of the noise of the variance, or of the mean without second moments.
    worst : float
        The largest doubt in units of half the distance of the bounds, squared for variances.
    """

    mean: FloatArray
    variance: FloatArray | None
    doubt: FloatArray
    worst: float


def _sensitivity(n_columns: int, neighboring: str, second: bool) -> float:
    return (_BOTH if second else _FIRST)[neighboring] * nextafter(sqrt(n_columns), inf)


def plan_counted_moments(budget: PrivacyCost, n_columns: int, *, second: bool) -> PlannedRelease:
    """Release of `release_counted_moments`.

    Parameters
    ----------
    budget : PrivacyCost
        What it may cost.
    n_columns : int
        Number of columns.
    second : bool
        Whether second moments are released too.
    """
    sensitivity = _sensitivity(n_columns, budget.neighboring, second)
    return PlannedRelease("counted moments", sensitivity, budget.mu)


def _block_sums(
    X: NDArray[np.floating], centre: FloatArray, scale: FloatArray, bits: int, second: bool
) -> IntArray:
    """Sum of shares over a block of rows, in units of ``4**-bits``."""
    top = 2.0**bits
    values = np.subtract(X, centre, dtype=np.float64)
    values *= scale
    np.clip(np.rint(values, out=values), -top, top, out=values)
    missing = np.isnan(values)
    values[missing] = 0.0
    present = len(values) - missing.sum(axis=0, dtype=np.int64)
    shares = [values.sum(axis=0).astype(np.int64) << bits]
    if second:
        np.multiply(values, values, out=values)
        squares = values.sum(axis=0).astype(np.int64)
        shares.append(squares - present * (5 << (2 * bits - 3)))
    return np.concatenate([*shares, present << (2 * bits)])


def release_counted_moments(
    X: NDArray[np.floating],
    low: FloatArray,
    high: FloatArray,
    *,
    second: bool,
    n_rows: int,
    noise: NoiseCore,
    neighboring: str,
    pool: Workers,
) -> CountedMoments:
    """Private means, and variances, of the values that are there, clipped to bounds.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Data; NaN is a missing value.
    low, high : ndarray of shape (n_columns,)
        Bounds, public or released; finite, ``low < high``.
    second : bool
        Whether to release second moments.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the release of `plan_counted_moments` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.

    Returns
    -------
    moments : CountedMoments
    """
    n_columns = X.shape[1]
    centre, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    sigma = noise.sigma("counted moments")
    # The noise of the counts has twice the standard deviation.
    bits = min(_BITS, (MAX_SIGMA_BITS - 1 - frexp(sigma)[1]) // 2)
    scale, kinds = 2.0**bits / half, 2 + second

    def work(blocks: list[slice]) -> ExactTotal:
        total = ExactTotal((kinds * n_columns,))
        with np.errstate(all="ignore"):  # a warning would tell of a single record
            for rows in blocks:
                total.add(_block_sums(X[rows], centre, scale, bits, second))
        return total

    size = block_rows(2 * bits, 1.0, cap=max(64, _BLOCK_ENTRIES // n_columns))
    blocks = list(iter_blocks(len(X), size))
    share = -(-len(blocks) // (pool.count if X.size > _SERIAL_ENTRIES else 1))
    parts = [blocks[i : i + share] for i in range(0, len(blocks), share)]
    total, *others = pool.map(work, parts)
    for other in others:
        total.merge(other)
    weights = (1.0, 0.5, 2.0) if second else (1.0, 2.0)
    sensitivity = _sensitivity(n_columns, neighboring, second)
    groups = tuple((n_columns, weight) for weight in weights)
    released = noise.release(
        BoundedSum("counted moments", total, 4.0**-bits, sensitivity, groups)
    ).reshape(kinds, n_columns)
    # Fewer values than three times the noise of their number are not told from none.
    count = np.clip(released[-1], min(6.0 * sigma, n_rows), n_rows)
    first = np.clip(released[0] / count, -1.0, 1.0)
    mean = np.clip(centre + half * first, low, high)
    # Noise of a sum and of the count that divides it.
    of_mean = sigma / count * np.sqrt(1.0 + 4.0 * first**2)
    if not second:
        return CountedMoments(mean, None, half * of_mean, float(of_mean.max()))
    shifted = np.clip(released[1] / count, -0.625, 0.375)
    doubt = sigma / count * np.sqrt(0.25 + 4.0 * shifted**2 + 4.0 * first**2 + 16.0 * first**4)
    variance = released[1] / count + 0.625 - first**2
    with np.errstate(over="ignore"):
        square = np.minimum(np.square(half), _LARGEST)
    variance = square * np.clip(variance, -1.0, 1.0)
    return CountedMoments(mean, variance, square * np.minimum(doubt, 1.0), float(doubt.max()))
