"""First and second moments of bounded columns in one exact release.

A column is mapped to ``u`` in [-1, 1] by its bounds and rounded onto a grid. A record's share of
the release is ``(u, 2 (u**2 - 5/8))`` for every column. With ``s = u**2`` its squared norm is

    s + 4 (s - 5/8)**2 = 25/16 + 4 s (s - 1) <= 25/16,

so the share of d columns has norm at most ``1.25 sqrt(d)``, attained at s = 0 and s = 1. Taking a
constant from ``u**2`` is free as the number of rows is public, and pays: with the same noise the
plain vector ``(u, u**2)`` has norm ``sqrt(2 d)``. The factor 2 halves the noise of the second
moment, which is what a scale needs. No clipping of the joint norm is involved, so nothing is biased
however the values lie between their bounds.

Under the relation "replace" two shares differ per column by ``x**2 (1 + 4 y**2)`` with
``x = |u - u'|``, ``y = |u + u'|`` and ``x + y <= 2``: at most 5.1446, attained where
``x = (3 - sqrt(1/2)) / 2``.
"""

from dataclasses import dataclass, replace
from math import frexp, inf, nextafter, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import BoundedSum, ExactTotal, block_rows, iter_blocks
from skdp._threads import Workers
from skdp.accounting import PrivacyCost
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.plan import PlannedRelease

__all__ = ["MomentSums", "plan_moments", "release_moments", "release_sums"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Norm of one column's share by relation, both moments and the first only.
_BOTH = {"add_or_remove": 1.25, "replace": 2.2681726}
_FIRST = {"add_or_remove": 1.0, "replace": 2.0}
_BITS = 20
_BLOCK_ENTRIES = 1 << 16
_SERIAL_ENTRIES = 1 << 20


def plan_moments(
    budget: PrivacyCost, n_columns: int, *, second: bool, name: str = "moments"
) -> PlannedRelease:
    """Release of `release_moments`.

    Parameters
    ----------
    budget : PrivacyCost
        What it may cost.
    n_columns : int
        Number of columns.
    second : bool
        Whether second moments are released too.
    name : str, default="moments"
        Name of the release.
    """
    norms = _BOTH if second else _FIRST
    return PlannedRelease(name, norms[budget.neighboring] * _root(n_columns), budget.mu)


def _root(n_columns: int) -> float:
    return nextafter(sqrt(n_columns), inf)


def _grid_bits(sigma: float) -> int:
    """Binary places of u: fewer under noise that would not fit 64 bits.

    Plans refuse noise beyond ``2**40`` sensitivities, so 2 places remain up to millions of columns.
    """
    return min(_BITS, (MAX_SIGMA_BITS - frexp(sigma)[1]) // 2)


def _block_sums(
    X: NDArray[np.floating],
    centre: FloatArray,
    scale: FloatArray,
    bits: int,
    second: bool,
    weights: NDArray[np.floating] | None = None,
) -> IntArray:
    """Sum of the records' shares over a block of rows, in units of ``4**-bits``.

    A record with an entry that is not a number is a null record: it contributes nothing.
    """
    top = 2.0**bits
    values = np.subtract(X, centre, dtype=np.float64)
    values *= scale
    np.rint(values, out=values)
    np.maximum(values, -top, out=values)
    np.minimum(values, top, out=values)
    # Exact in any order of additions: partial sums are integers below 2**53.
    sums = values.sum(axis=0)
    if np.isnan(sums).any():
        keep = ~np.isnan(values).any(axis=1)
        values = values[keep]
        sums = values.sum(axis=0)
        weights = weights if weights is None else weights[keep]
    if weights is not None:
        return _weighted_sums(values, np.floor(weights * top)[:, None], bits, second)
    share = sums.astype(np.int64) << bits
    if not second:
        return share
    np.multiply(values, values, out=values)
    squares = values.sum(axis=0).astype(np.int64)
    return np.concatenate([share, squares - len(values) * (5 << (2 * bits - 3))])


def _weighted_sums(values: FloatArray, weights: FloatArray, bits: int, second: bool) -> IntArray:
    """Sum of shares times weights, both in integers of ``2**-bits``.

    The product with a second moment is rounded to a unit, so that a weighted share is within two
    units of a multiple of the share, and no longer than the share in any coordinate.
    """
    share = (values * weights).sum(axis=0).astype(np.int64)
    if not second:
        return share
    squares = values * values - float(5 << (2 * bits - 3))
    squares *= weights
    squares *= 2.0**-bits
    return np.concatenate([share, np.rint(squares).sum(axis=0).astype(np.int64)])


def _sum_shares(
    X: NDArray[np.floating],
    centre: FloatArray,
    half: FloatArray,
    bits: int,
    second: bool,
    pool: Workers,
    weights: NDArray[np.float32] | None,
) -> ExactTotal:
    n_rows, n_columns = X.shape
    scale = 2.0**bits / half
    shape = (n_columns * (1 + second),)

    def work(blocks: list[slice]) -> ExactTotal:
        total = ExactTotal(shape)
        with np.errstate(all="ignore"):  # a warning would tell of a single record
            for rows in blocks:
                part = None if weights is None else weights[rows].astype(np.float64)
                total.add(_block_sums(X[rows], centre, scale, bits, second, part))
        return total

    size = block_rows(2 * bits, 1.0, cap=max(64, _BLOCK_ENTRIES // n_columns))
    blocks = list(iter_blocks(n_rows, size))
    share = max(1, -(-len(blocks) // (pool.count if X.size > _SERIAL_ENTRIES else 1)))
    parts = [blocks[i : i + share] for i in range(0, len(blocks), share)] or [[]]
    total, *others = pool.map(work, parts)
    for other in others:
        total.merge(other)
    return total


@dataclass(frozen=True)
class MomentSums:
    """Released sums of columns within bounds; sums over disjoint sets of records add up.

    Attributes
    ----------
    values : ndarray of shape (n_columns,) or (2 * n_columns,)
        Noisy sums of ``u``, and of ``u**2 - 5/8``.
    n_rows : float
        Declared number of records.
    noise : float
        Variance of the noise of the sums of ``u``; of the others it is a quarter of that.
    low, high : ndarray of shape (n_columns,)
        The bounds.
    """

    values: FloatArray
    n_rows: float
    noise: float
    low: FloatArray
    high: FloatArray

    def __add__(self, other: "MomentSums") -> "MomentSums":
        """Sums over both sets of records, which must have the same bounds."""
        return replace(
            self,
            values=self.values + other.values,
            n_rows=self.n_rows + other.n_rows,
            noise=self.noise + other.noise,
        )

    @property
    def _first(self) -> FloatArray:
        first: FloatArray = np.clip(self.values[: len(self.low)] / self.n_rows, -1.0, 1.0)
        return first

    @property
    def doubt(self) -> float:
        """Standard deviation of the noise of a variance, for columns with mean 0, in units of u."""
        return sqrt(self.noise) / (2.0 * self.n_rows)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations, see `release_moments`."""
        n_columns, first = len(self.low), self._first
        centre, half = self.low / 2.0 + self.high / 2.0, self.high / 2.0 - self.low / 2.0
        mean = np.clip(centre + half * first, self.low, self.high)
        if len(self.values) == n_columns:
            return mean, np.ones(n_columns)
        variance = self.values[n_columns:] / self.n_rows + 0.625 - first**2
        # Half the standard deviation of the variance's noise: what is below is not known.
        doubt = self.doubt * np.sqrt(1.0 + 16.0 * first**2)
        floor = np.minimum(doubt / 2.0, 1.0 / 3.0)
        return mean, half * np.sqrt(np.clip(variance, floor, 1.0))

    def at_a_bound(self) -> NDArray[np.bool_]:
        """Columns whose mean cannot be told from one of their bounds.

        A bound of zero does not count, as columns that are (almost) always zero are common; and
        no column does where the noise does not tell a bound from a twentieth of the range.
        """
        reach = 3.0 * sqrt(self.noise) / self.n_rows  # of a mean, in units of u
        if reach > 0.1:
            return np.zeros(len(self.low), dtype=bool)
        mean, _ = self.moments()
        half = self.high / 2.0 - self.low / 2.0
        near_high = (self.high - mean <= reach * half) & (self.high != 0.0)
        near_low = (mean - self.low <= reach * half) & (self.low != 0.0)
        return near_high | near_low


def release_sums(
    X: NDArray[np.floating],
    low: FloatArray,
    high: FloatArray,
    *,
    second: bool,
    n_rows: float,
    noise: NoiseCore,
    neighboring: str,
    pool: Workers,
    name: str = "moments",
    weights: NDArray[np.float32] | None = None,
) -> MomentSums:
    """Private sums of columns clipped to bounds; parameters as those of `release_moments`."""
    n_columns = X.shape[1]
    centre, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    sigma = noise.sigma(name)
    bits = _grid_bits(sigma)
    total = _sum_shares(X, centre, half, bits, second, pool, weights)
    norm = (_BOTH if second else _FIRST)[neighboring]
    groups = ((n_columns, 1.0), (n_columns, 0.5)) if second else ()
    values = noise.release(BoundedSum(name, total, 4.0**-bits, norm * _root(n_columns), groups))
    return MomentSums(values, n_rows, sigma**2, low, high)


def release_moments(
    X: NDArray[np.floating],
    low: FloatArray,
    high: FloatArray,
    *,
    second: bool,
    n_rows: float,
    noise: NoiseCore,
    neighboring: str,
    pool: Workers,
    name: str = "moments",
    weights: NDArray[np.float32] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Private mean and standard deviation of columns clipped to bounds.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Data.
    low, high : ndarray of shape (n_columns,)
        Bounds, public or released; finite, ``low < high``.
    second : bool
        Whether to release second moments.
    n_rows : float
        Declared number of rows; with weights, their sum as far as it is known.
    noise : NoiseCore
        Has the release of `plan_moments` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.
    name : str, default="moments"
        Name of the release in the plan.
    weights : ndarray of shape (n_rows,), float32, default=None
        Weights of the records from 0 to 1, of `skdp._lattice.weights_to_grid`.

    Returns
    -------
    mean, deviation : ndarray of shape (n_columns,)
        The mean is within the bounds; the deviation is at least what half the noise of the
        variance would give, and at most half the distance of the bounds. Without second moments
        it is 1.
    """
    return release_sums(
        X,
        low,
        high,
        second=second,
        n_rows=n_rows,
        noise=noise,
        neighboring=neighboring,
        pool=pool,
        name=name,
        weights=weights,
    ).moments()
