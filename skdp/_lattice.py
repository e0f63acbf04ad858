"""Grids, rounding onto them, and sums that are exact in floating point.

Every sum that skdp releases is a sum of integers. Rows are rounded to multiples of ``2**-bits``,
residuals likewise, and a block of rows is summed by BLAS in float64 while every partial sum stays
an integer below ``2**53``: then any order of additions, with or without fused multiply-add, gives
the exact result. Blocks are accumulated as two-limb integers that cannot overflow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import frexp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp.plan import relation_factor

__all__ = [
    "MANTISSA_BITS",
    "WEIGHT_BITS",
    "BoundedSum",
    "ExactTotal",
    "block_rows",
    "clip_factors",
    "clip_integers",
    "coefficients_to_grid",
    "counts",
    "entry_bound",
    "floor_power_of_two",
    "iter_blocks",
    "round_rows",
    "weigh_integers",
    "weight_integers",
    "weights_to_grid",
]

FloatArray = NDArray[np.float64]

# Integers up to 2**53 are exact in float64.
MANTISSA_BITS = 53
# A relative margin far above the rounding of the few float operations it pays for
# (each at most 2**-53) and far below anything that matters to the result.
_SHRINK = 1.0 - 2.0**-48
_LIMB_BITS = 32
_MAX_UNCARRIED = 1 << 30
_LIMB_MASK = np.int64((1 << _LIMB_BITS) - 1)
# Weights of records are multiples of 2**-20, from 0 to 1.
WEIGHT_BITS = 20


def floor_power_of_two(value: float) -> float:
    """Largest power of two that is at most `value` (> 0)."""
    mantissa, exponent = frexp(value)
    return 2.0 ** (exponent - 1)


def block_rows(bits: int, bound: float, *, cap: int = 8192) -> int:
    """Rows per block such that every partial sum is an exact integer.

    Parameters
    ----------
    bits : int
        Binary places of the products that are summed.
    bound : float
        Largest absolute value of one row's product.
    cap : int, default=8192
        Upper limit (blocks should also fit the cache).

    Returns
    -------
    rows : int

    Raises
    ------
    ValueError
        If not even one row fits the budget of 53 bits.
    """
    rows = int(min(2.0 ** (MANTISSA_BITS - bits) / bound, cap))
    if rows < 1:
        raise ValueError(f"one product needs more than {MANTISSA_BITS} bits: no exact sum")
    return rows


def iter_blocks(n_rows: int, rows: int) -> Iterator[slice]:
    """Slices of at most `rows` consecutive rows."""
    return (slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows))


class ExactTotal:
    """A sum of 64-bit integers that cannot overflow, in two int64 limbs.

    The low limb grows by less than ``2**32`` with each block and is carried into the high one
    before ``2**30`` blocks have been added; the high limb, below ``2**31`` per block, is safe for
    ``2**32`` blocks.

    Parameters
    ----------
    shape : tuple of int
        Shape of the summed arrays.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.high: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.low: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self._uncarried = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""
        return self.high.shape

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.high.size

    def copy(self) -> "ExactTotal":
        """A total of its own with the same value."""
        other = ExactTotal.__new__(ExactTotal)
        other.high, other.low = self.high.copy(), self.low.copy()
        other._uncarried = self._uncarried
        return other

    def add(self, block: NDArray[np.float64] | NDArray[np.int64]) -> None:
        """Add an array of integers (int64, or float64 holding exact integers)."""
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            raise OverflowError("a sum of bounded numbers is not finite: this is a bug of skdp")
        integers = block.astype(np.int64, copy=False)
        self.high += integers >> _LIMB_BITS
        self.low += integers & _LIMB_MASK
        self._uncarried += 1
        if self._uncarried == _MAX_UNCARRIED:
            self._carry()

    def merge(self, other: "ExactTotal") -> None:
        """Add another total."""
        other._carry()
        self._carry()
        self.high += other.high
        self.low += other.low

    def _carry(self) -> None:
        self._uncarried = 1
        self.high += self.low >> _LIMB_BITS
        self.low &= _LIMB_MASK

    def tobytes(self) -> bytes:
        """Bytes that depend on the integers alone (used as key of seeded noise)."""
        self._carry()
        return self.high.tobytes() + self.low.tobytes()

    def to_float(self, unit: float) -> FloatArray:
        """The sum in units of `unit` (a power of two), rounded to float64."""
        self._carry()
        return np.asarray((self.high * 2.0**_LIMB_BITS + self.low) * unit, dtype=np.float64)


@dataclass(frozen=True)
class BoundedSum:
    """An exact sum over records with the sensitivity that its clipping guarantees.

    The only thing that the noise core accepts.

    Attributes
    ----------
    name : str
        What it is; matches the plan.
    total : ExactTotal
        The sum, in integers.
    unit : float
        Value of one integer, a power of two.
    sensitivity : float
        L2 sensitivity of the value. With `groups` it is that of the coordinates divided by
        their weights.
    groups : tuple of (int, float), default=()
        Consecutive runs of coordinates and the weight of their noise. Empty: all have weight 1.
    """

    name: str
    total: ExactTotal
    unit: float
    sensitivity: float
    groups: tuple[tuple[int, float], ...] = ()


def counts(name: str, values: NDArray[np.int64], neighboring: str) -> BoundedSum:
    """A histogram or a set of counts in which each record counts once.

    Parameters
    ----------
    name : str
        Name of the release.
    values : ndarray of int64
        The counts.
    neighboring : {"add_or_remove", "replace"}
        Under ``"replace"`` a record moves from one count to another.
    """
    total = ExactTotal(values.shape)
    total.add(values)
    return BoundedSum(name, total, 1.0, relation_factor(neighboring, "nonnegative"))


def _squared_norms(rows: FloatArray) -> FloatArray:
    # One of the two is faster, and integers below 2**53 are summed exactly by both.
    if hasattr(np, "vecdot"):
        return np.asarray(np.vecdot(rows, rows))
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def clip_factors(squares: FloatArray, limit: FloatArray | float) -> FloatArray:
    """Factors that bring rows of given squared norms within a limit, see `clip_integers`."""
    return np.where(squares > limit, np.sqrt(limit / squares) * _SHRINK, 1.0)


def clip_integers(integers: FloatArray, limit: FloatArray | float) -> FloatArray:
    """Shrink, in place, the integer rows whose squared norm is above a limit.

    Parameters
    ----------
    integers : ndarray of shape (n_rows, n_columns), float64
        Exact integers with squared norms below ``2**53``; changed in place.
    limit : float or ndarray of shape (n_rows,)
        Largest allowed squared norm.

    Returns
    -------
    squares : ndarray of shape (n_rows,)
        Exact squared norms after clipping, at most `limit`.

    Notes
    -----
    The factor ``sqrt(limit / square)`` is shrunk by ``2**-48``, more than the rounding of the
    operations involved (at most six of ``2**-53`` each), and products are truncated toward zero.
    So the new norm is within the limit in exact arithmetic.
    """
    squares = _squared_norms(integers)
    over = np.flatnonzero(squares > limit)
    if over.size:
        limits = np.broadcast_to(limit, squares.shape)[over]
        factor = clip_factors(squares[over], limits)
        clipped = np.trunc(integers[over] * factor[:, None])
        integers[over] = clipped
        squares[over] = _squared_norms(clipped)
    return squares


def _tame_rows(rows: FloatArray, bits: int, n_columns: int) -> FloatArray:
    """Integers that point like each row, however long it is, with exact squared norms.

    Every row is scaled by its own power of two, which is exact, until its largest entry is in
    [1/2, 1), and then takes as many bits as an exact squared norm allows.
    """
    bits = min(bits, (MANTISSA_BITS - n_columns.bit_length()) // 2)
    exponents = np.frexp(np.abs(rows).max(axis=1))[1]
    return np.trunc(np.ldexp(np.ldexp(rows, -exponents[:, None]), bits))


def round_rows(
    raw: NDArray[np.floating],
    *,
    scale: float,
    bits: int,
    limit: float,
    bound: float = inf,
    n_columns: int | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Clip entries and rows, and round them toward zero onto the integer grid.

    Parameters
    ----------
    raw : ndarray of shape (n_rows, n_columns)
        Rows in the caller's units. A row with an entry that is not finite becomes a null row.
    scale : float
        Caller's units times `scale` are the units of the grid's 1.0.
    bits : int
        Binary places: one unit is ``2**bits`` integers.
    limit : float
        Largest squared integer norm, an integer at most ``4**(bits + 2)``.
    bound : float, default=inf
        Largest absolute value of an entry, in the caller's units. It shapes the rows and
        guarantees nothing: that is what `limit` does.
    n_columns : int, default=None
        Number of columns of which `raw` holds those that are not zero. None: it holds all.

    Returns
    -------
    integers : ndarray of shape (n_rows, n_columns), float64
        Exact integers with squared norm at most `limit`.
    squares : ndarray of shape (n_rows,)
        Their exact squared norms.
    raw_squares : ndarray of shape (n_rows,)
        Squared norms before clipping: exact, inf where at least ``2**53``, NaN for null rows.

    Notes
    -----
    An entry depends on its own row only, and not on the order in which BLAS or SIMD units add: a
    squared norm is either an exact integer sum, or it reaches ``2**53`` (in any order, because
    rounding is monotone), and then the row is brought to size one by a power of two, where its
    norm is exact again. No row overflows and none escapes the clip.
    """
    with np.errstate(all="ignore"):
        integers = np.multiply(raw, scale * 2.0**bits, dtype=np.float64)
        np.trunc(integers, out=integers)
        raw_squares = _squared_norms(integers)
        squares = raw_squares
        wild = ~(raw_squares < 2.0**MANTISSA_BITS)
        if wild.any():
            null = wild.copy()
            null[wild] = ~np.isfinite(raw[wild]).all(axis=1)
            raw_squares[wild] = inf
            raw_squares[null] = np.nan
            integers[null] = 0.0
        if bound < inf:
            largest = entry_bound(bound, scale, bits)
            np.clip(integers, -largest, largest, out=integers)
            squares = _squared_norms(integers)
        wild = ~(squares < 2.0**MANTISSA_BITS)
        if wild.any():
            rows = np.clip(np.asarray(raw[wild], dtype=np.float64), -bound, bound)
            rows[np.isnan(raw_squares[wild])] = 0.0
            tame = _tame_rows(rows, bits, n_columns or rows.shape[1])
            lengths = np.sqrt(np.maximum(_squared_norms(tame), 1.0))
            integers[wild] = np.trunc(tame * (sqrt(limit) / lengths * _SHRINK)[:, None])
        return integers, clip_integers(integers, limit), raw_squares


def entry_bound(bound: float, scale: float, bits: int) -> float:
    """Largest integer that an entry of `round_rows` may have."""
    return float(np.floor(bound * scale * 2.0**bits)) if bound < inf else inf


def coefficients_to_grid(coefficients: FloatArray, bits: int) -> FloatArray:
    """Round coefficient vectors so that products with rows on the grid are exact in any order.

    Parameters
    ----------
    coefficients : ndarray of shape (n_columns,) or (n_columns, n_outputs)
        Released iterates; each output is rounded on its own.
    bits : int
        Binary places of the rows, plus those of their norm: it is at most ``2**bits`` integers.

    Returns
    -------
    rounded : ndarray of the same shape
        Multiples of a power of two such that every partial sum of ``row @ rounded`` is an integer
        below ``2**53`` in units of that power times ``2**-bits``.

    Notes
    -----
    By the Cauchy-Schwarz inequality a partial sum is at most the norm of the coefficients. The
    rounding, half a step per entry, is covered by choosing the power of two above twice the norm
    when the number of columns is below ``4**(52 - bits)``.
    """
    # A run that diverges must stay finite, or products with rows would not be numbers.
    coefficients = np.clip(np.nan_to_num(coefficients, nan=0.0), -(2.0**500), 2.0**500)
    norms = np.sqrt(np.einsum("i...,i...->...", coefficients, coefficients))
    exponents = np.frexp(norms)[1] + 1  # norm < 2**(exponent - 1)
    step = np.ldexp(1.0, exponents - (MANTISSA_BITS - bits))
    with np.errstate(divide="ignore", invalid="ignore"):
        rounded = np.rint(coefficients / step) * step
    return np.where(norms > 0, rounded, 0.0)


def weights_to_grid(weights: NDArray[np.floating], bound: float) -> NDArray[np.float32]:
    """Weights over their bound, clipped to [0, 1] and rounded down to the grid of weights.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not NaN.
    bound : float
        Public bound, positive and finite.

    Returns
    -------
    relative : ndarray of shape (n_rows,), float32
        Multiples of ``2**-WEIGHT_BITS``, which float32 holds exactly.
    """
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        relative = np.clip(weights, 0.0, bound, dtype=np.float64) / bound
        relative *= 2.0**WEIGHT_BITS
        np.floor(relative, out=relative)
    return (relative * 2.0**-WEIGHT_BITS).astype(np.float32)


def weight_integers(relative: NDArray[np.float32]) -> FloatArray:
    """Weights in integers, ``2**WEIGHT_BITS`` for the largest."""
    return np.multiply(relative, 2.0**WEIGHT_BITS, dtype=np.float64)


def weigh_integers(integers: FloatArray, weights: NDArray[np.floating]) -> None:
    """Multiply integers, one row per record, by weights from 0 to 1; in place, to nearest.

    No entry grows in size: a product with at most 1 is rounded to at most the integer itself.
    """
    integers *= weights if integers.ndim == 1 else weights[:, None]
    np.rint(integers, out=integers)
