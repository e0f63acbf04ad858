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

Where values may be missing the release has their number in every column too, and that is free: the
share of a missing value is a count of one *in place of* the moments, and its noise has a weight w
such that ``1 / w`` is within the norm above. Under "replace" a missing value and one that is there
differ by ``25/16 + 1 / w**2``, or ``1 + 1 / w**2`` without second moments, within 5.1446 and 4.
"""

from dataclasses import dataclass, replace
from math import frexp, inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

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
# Weight of the noise of the number of missing values, with both moments and with the first only.
_MISSING_WITH_BOTH = {"add_or_remove": 0.8, "replace": 0.53}
_MISSING_WITH_FIRST = {"add_or_remove": 1.0, "replace": 0.58}
# A number of missing values above that many deviations of its noise is believed; of fewer values
# than so many deviations of the noise of their sum nothing is known.
_BELIEVED, _LEAST = 2.0, 1.4
_LARGEST = np.finfo(np.float64).max
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


def _on_grid(
    X: NDArray[np.floating], centre: FloatArray, scale: FloatArray, top: float
) -> FloatArray:
    """Values of u in integers from -top to top, or NaN."""
    values = np.subtract(X, centre, dtype=np.float64)
    values *= scale
    np.rint(values, out=values)
    np.maximum(values, -top, out=values)
    return np.minimum(values, top, out=values)


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
    values = _on_grid(X, centre, scale, top)
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
    return np.concatenate([share, squares - len(values) * _five_eighths(bits)])


def _five_eighths(bits: int) -> int:
    return 5 << (2 * bits - 3)


def _counted_sums(
    X: NDArray[np.floating], centre: FloatArray, scale: FloatArray, bits: int, second: bool
) -> IntArray:
    """Sum of shares over a block of rows where values may be missing."""
    values = _on_grid(X, centre, scale, 2.0**bits)
    sums = values.sum(axis=0)
    missing = np.zeros(len(sums), dtype=np.int64)
    if np.isnan(sums).any():
        holes = np.isnan(values)
        missing = holes.sum(axis=0, dtype=np.int64)
        values[holes] = 0.0
        sums = values.sum(axis=0)
    np.multiply(values, values, out=values)
    squares = values.sum(axis=0) if second else None
    return _joined(sums, squares, missing, len(values), bits)


def _stored_sums(
    X: Any, centre: FloatArray, scale: FloatArray, bits: int, second: bool
) -> IntArray:
    """What `_counted_sums` gives, for a block of rows of a CSR array: zeros are all alike."""
    top, (n_rows, n_columns) = 2.0**bits, X.shape
    zero = _on_grid(np.zeros(n_columns), centre, scale, top)
    values = _on_grid(X.data, centre[X.indices], scale[X.indices], top)

    def by_column(weights: FloatArray | None = None) -> NDArray[Any]:
        return np.bincount(X.indices, weights, minlength=n_columns)

    holes = np.isnan(values)
    values[holes] = 0.0
    rest = n_rows - by_column()
    sums = by_column(values) + rest * zero
    squares = by_column(values * values) + rest * (zero * zero) if second else None
    return _joined(sums, squares, by_column(holes.astype(np.float64)), n_rows, bits)


def _joined(
    sums: FloatArray, squares: FloatArray | None, missing: NDArray[Any], n_rows: int, bits: int
) -> IntArray:
    missing = missing.astype(np.int64)
    shares = [sums.astype(np.int64) << bits]
    if squares is not None:
        shares.append(squares.astype(np.int64) - (n_rows - missing) * _five_eighths(bits))
    return np.concatenate([*shares, missing << (2 * bits)])


def _weighted_sums(values: FloatArray, weights: FloatArray, bits: int, second: bool) -> IntArray:
    """Sum of shares times weights, both in integers of ``2**-bits``.

    The product with a second moment is rounded to a unit, so that a weighted share is within two
    units of a multiple of the share, and no longer than the share in any coordinate.
    """
    share = (values * weights).sum(axis=0).astype(np.int64)
    if not second:
        return share
    squares = values * values - float(_five_eighths(bits))
    squares *= weights
    squares *= 2.0**-bits
    return np.concatenate([share, np.rint(squares).sum(axis=0).astype(np.int64)])


def _sum_shares(
    X: Any,
    centre: FloatArray,
    half: FloatArray,
    bits: int,
    second: bool,
    pool: Workers,
    weights: NDArray[np.float32] | None,
    missing: bool,
) -> ExactTotal:
    n_rows, n_columns = X.shape
    scale = 2.0**bits / half
    shape = (n_columns * (1 + second + missing),)
    sparse = issparse(X)

    def work(blocks: list[slice]) -> ExactTotal:
        total = ExactTotal(shape)
        with np.errstate(all="ignore"):  # a warning would tell of a single record
            for rows in blocks:
                part = None if weights is None else weights[rows].astype(np.float64)
                if not missing:
                    sums = _block_sums(X[rows], centre, scale, bits, second, part)
                else:
                    counted = _stored_sums if sparse else _counted_sums
                    sums = counted(X[rows], centre, scale, bits, second)
                total.add(sums)
        return total

    size = block_rows(2 * bits, 1.0)
    if not sparse:
        size = min(size, max(64, _BLOCK_ENTRIES // n_columns))
    blocks = list(iter_blocks(n_rows, size))
    if X.size <= _SERIAL_ENTRIES:
        pool = Workers(1)
    total, *others = pool.map_parts(work, blocks)
    for other in others:
        total.merge(other)
    return total


@dataclass(frozen=True)
class MomentSums:
    """Released sums of columns within bounds; sums over disjoint sets of records add up.

    Attributes
    ----------
    values : ndarray of shape (n_kinds * n_columns,)
        Noisy sums of ``u``, of ``u**2 - 5/8`` (if `second`), and numbers of missing values.
    n_rows : float
        Declared number of records.
    noise : float
        Variance of the noise of the sums of ``u``; of second moments it is a quarter of that.
    low, high : ndarray of shape (n_columns,)
        The bounds.
    second : bool
        Whether there are second moments.
    missing_weight : float or None
        Weight of the noise of the numbers of missing values. None: there are none.
    """

    values: FloatArray
    n_rows: float
    noise: float
    low: FloatArray
    high: FloatArray
    second: bool
    missing_weight: float | None = None

    def __add__(self, other: "MomentSums") -> "MomentSums":
        """Sums over both sets of records, which must have the same bounds."""
        return replace(
            self,
            values=self.values + other.values,
            n_rows=self.n_rows + other.n_rows,
            noise=self.noise + other.noise,
        )

    @property
    def _half(self) -> FloatArray:
        return self.high / 2.0 - self.low / 2.0

    @property
    def _missing(self) -> FloatArray:
        """Number of missing values; 0 where it may be noise, so that noise is not added to it."""
        n_columns = len(self.low)
        if self.missing_weight is None:
            return np.zeros(n_columns)
        released = self.values[-n_columns:]
        sure = released > _BELIEVED * self.missing_weight * sqrt(self.noise)
        return np.where(sure, np.minimum(released, self.n_rows), 0.0)

    @property
    def count(self) -> FloatArray:
        """Numbers of values that are there, as far as it is known."""
        least = min(_LEAST * sqrt(self.noise), self.n_rows)
        return np.maximum(self.n_rows - self._missing, least)

    @property
    def _first(self) -> FloatArray:
        first: FloatArray = np.clip(self.values[: len(self.low)] / self.count, -1.0, 1.0)
        return first

    @property
    def _second(self) -> FloatArray:
        """Means of ``u**2 - 5/8``."""
        n_columns = len(self.low)
        return self.values[n_columns : 2 * n_columns] / self.count

    @property
    def doubt(self) -> FloatArray:
        """Standard deviation of the noise of every mean, in units of u; of variances if any."""
        first, weight = self._first, self.missing_weight or 0.0
        counted = np.square(np.where(self._missing > 0.0, weight, 0.0))
        if not self.second:
            square = 1.0 + counted * first**2
        else:
            of_count = 2.0 * first**2 - np.clip(self._second, -0.625, 0.375)
            square = 0.25 + 4.0 * first**2 + counted * of_count**2
        return np.asarray(sqrt(self.noise) / self.count * np.sqrt(square))

    @property
    def mean(self) -> FloatArray:
        """Means of the values that are there, within the bounds."""
        centre = self.low / 2.0 + self.high / 2.0
        return np.clip(centre + self._half * self._first, self.low, self.high)

    @property
    def _variance(self) -> FloatArray:
        return self._second + 0.625 - self._first**2

    @property
    def variance(self) -> FloatArray:
        """Variances as released: below zero where the noise is larger."""
        return self._square * np.clip(self._variance, -1.0, 1.0)

    @property
    def variance_doubt(self) -> FloatArray:
        """Standard deviations of the noise of the variances."""
        return self._square * np.minimum(self.doubt, 1.0)

    @property
    def _square(self) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.minimum(np.square(self._half), _LARGEST)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations, see `release_moments`."""
        if not self.second:
            return self.mean, np.ones(len(self.low))
        # Half the standard deviation of the variance's noise: what is below is not known.
        floor = np.minimum(self.doubt / 2.0, 1.0 / 3.0)
        return self.mean, self._half * np.sqrt(np.clip(self._variance, floor, 1.0))

    def at_a_bound(self) -> NDArray[np.bool_]:
        """Columns whose mean cannot be told from one of their bounds.

        A bound of zero does not count, as columns that are (almost) always zero are common; and
        no column does where the noise does not tell a bound from a twentieth of the range.
        """
        reach = 3.0 * sqrt(self.noise) / self.count  # of a mean, in units of u
        near_high = (self.high - self.mean <= reach * self._half) & (self.high != 0.0)
        near_low = (self.mean - self.low <= reach * self._half) & (self.low != 0.0)
        return (near_high | near_low) & (reach <= 0.1)


def release_sums(
    X: Any,
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
    missing: bool = False,
) -> MomentSums:
    """Private sums of columns clipped to bounds; parameters as those of `release_moments`.

    With `missing`, X may be a CSR array.
    """
    n_columns = X.shape[1]
    centre, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    sigma = noise.sigma(name)
    bits = _grid_bits(sigma)
    total = _sum_shares(X, centre, half, bits, second, pool, weights, missing)
    norm = (_BOTH if second else _FIRST)[neighboring]
    kinds = [1.0, 0.5] if second else [1.0]
    weight = None
    if missing:
        weight = (_MISSING_WITH_BOTH if second else _MISSING_WITH_FIRST)[neighboring]
        kinds.append(weight)
    groups = tuple((n_columns, kind) for kind in kinds)
    values = noise.release(BoundedSum(name, total, 4.0**-bits, norm * _root(n_columns), groups))
    return MomentSums(values, n_rows, sigma**2, low, high, second, weight)


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
    missing: bool = False,
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
    missing : bool, default=False
        Whether values may be missing, NaN: their numbers are released too, and mean and deviation
        are those of the values that are there; not with weights. Otherwise NaN makes its record
        null.

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
        missing=missing,
    ).moments()
