"""Means and spreads of the numbers of a table, and how many are missing, in one exact release.

A column is squashed where its scale is logarithmic (`Scale`), mapped to ``u`` in [-1, 1] by its
window and rounded onto a grid. A record's share of a column is one of three:

* ``(u, 2 (u**2 - 5/8))``, of norm at most 1.25 (see `skdp._moments`);
* a count of one in a bin of its window, for a *narrow* column, whose spread is far below what the
  moments of the window would tell;
* a count of one for a missing value.

Counts have noise that is smaller by the ratio of 1 to 1.25, so every share has norm at most 1.25 in
units of the noise. Under "replace" two shares of the first kind differ by at most 2.2681726, two
counts by ``sqrt(2) / w`` and one of each kind by ``sqrt(1.5625 + 1 / w**2)``: with w the weight of
the noise of counts, 0.8 under "add_or_remove" and 0.6236 under "replace", all are within the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import BoundedSum, ExactTotal, block_rows, iter_blocks
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.preprocessing._magnitudes import Magnitude

__all__ = ["NumberStatistics", "Scale", "release_numbers"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_COUNT_WEIGHT = {"add_or_remove": 0.8, "replace": 0.6236}
_BITS = 20
# Guesses of mean and variance are believed to this many deviations and to this share.
_MEAN_DOUBT, _VARIANCE_DOUBT = 0.35, 0.5
# Without a guess: values spread over about two thirds of their bounds.
_BLIND_VARIANCE = 0.1
# A narrow column has bins if the rows are that many times the noise of a count; their number is
# such that all of them together have a noise of a sixth of the rows.
_BINS_PAY, _BIN_NOISE, _MOST_BINS = 40.0, 6.0, 1024
# Most of the values, and nearly all of them.
_HELD, _ALONE = 0.7, 0.95
# A count of missing values is believed from that many deviations of its noise on.
_SURE = 4.5


@dataclass(frozen=True)
class Scale:
    """The scale on which a column is standardised.

    Attributes
    ----------
    anchor : float
        What is subtracted first.
    unit : float or None
        Values far above it count by their logarithm: ``arcsinh(x / unit)``. None: linear.
    """

    anchor: float = 0.0
    unit: float | None = None

    def __call__(self, values: FloatArray) -> FloatArray:
        """Values on the scale."""
        with np.errstate(all="ignore"):
            moved = values - self.anchor
            return moved if self.unit is None else np.arcsinh(moved / self.unit)


@dataclass(frozen=True)
class NumberStatistics:
    """What was released of the numbers.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_columns,)
        On the scale of each column.
    missing : ndarray of shape (n_columns,)
        Noisy numbers of missing values; 0 where they are not surely more than none.
    resolved : ndarray of shape (n_columns,), bool
        False where nearly all values are in one bin, so that the deviation is a guess.
    """

    mean: FloatArray
    deviation: FloatArray
    missing: FloatArray
    resolved: NDArray[np.bool_]


def _bin_count(n_rows: int, sigma: float) -> int:
    """Number of bins of narrow columns; 0 where moments know more."""
    clear = n_rows / sigma
    return 0 if clear < _BINS_PAY else int(min(_MOST_BINS, (clear / _BIN_NOISE) ** 2))


class _Window:
    """How one column is mapped to integers, and where its sums go."""

    def __init__(self, magnitude: Magnitude, scale: Scale, bits: int, n_bins: int) -> None:
        low, high = scale(np.array([magnitude.low, magnitude.high]) + scale.anchor)
        self.centre, self.half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        self.scale, self.bits = scale, bits
        self.n_bins = n_bins if magnitude.narrow else 0

    def sums(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Both moments and the missing values of a block, and its bins, in units of 4**-bits."""
        missing = np.isnan(values)
        present = values[~missing] if missing.any() else values
        top = 2.0**self.bits
        with np.errstate(all="ignore"):
            u = (self.scale(present) - self.centre) * (top / self.half)
            u = np.clip(np.rint(np.nan_to_num(u, nan=0.0)), -top, top)
        one = 1 << (2 * self.bits)
        counted = int(np.count_nonzero(missing)) * one
        if self.n_bins:
            place = np.minimum((u + top) * (self.n_bins / (2.0 * top)), self.n_bins - 1)
            bins = np.bincount(place.astype(np.int64), minlength=self.n_bins)
            return np.array([0, 0, counted]), bins.astype(np.int64) * one
        # Exact in any order of additions: partial sums are integers below 2**53.
        first = int(u.sum()) << self.bits
        second = int((u * u).sum()) - len(u) * (5 << (2 * self.bits - 3))
        return np.array([first, second, counted]), np.zeros(0, dtype=np.int64)


def release_numbers(
    columns: Sequence[FloatArray],
    magnitudes: Sequence[Magnitude],
    scales: Sequence[Scale],
    guessed: Sequence[bool],
    *,
    n_rows: int,
    noise: NoiseCore,
    sensitivity: float,
    neighboring: str,
    name: str = "moments",
) -> NumberStatistics:
    """Private mean, spread and number of missing values of every column.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,)
        The numbers, NaN where they are missing.
    magnitudes : sequence of Magnitude
        Their windows and guesses, after the anchor is subtracted; public or released.
    scales : sequence of Scale
        Their scales.
    guessed : sequence of bool
        Whether mean and deviation of a magnitude are guesses worth something.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the release in its plan.
    sensitivity : float
        Of the whole vector: that of `skdp._moments.plan_moments`.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    name : str, default="moments"
        Name of the release.
    """
    k, sigma = len(columns), noise.sigma(name)
    weight = _COUNT_WEIGHT[neighboring]
    bits = min(_BITS, (MAX_SIGMA_BITS - frexp(sigma)[1]) // 2)
    n_bins = _bin_count(n_rows, weight * sigma)
    windows = [_Window(m, s, bits, n_bins) for m, s in zip(magnitudes, scales, strict=True)]
    wide = sum(window.n_bins for window in windows)
    total = ExactTotal((3 * k + wide,))
    for rows in iter_blocks(len(columns[0]), block_rows(2 * bits, 1.0)):
        parts = [w.sums(c[rows]) for w, c in zip(windows, columns, strict=True)]
        moments = np.array([part for part, _ in parts]).T.ravel()
        total.add(np.concatenate([moments, *(bins for _, bins in parts)]))
    groups = ((k, 1.0), (k, 0.5), (k, weight)) + (((wide, weight),) if wide else ())
    released = noise.release(BoundedSum(name, total, 4.0**-bits, sensitivity, groups))
    first, second, missing = released[: 3 * k].reshape(3, k)
    missing = np.where(missing > _SURE * weight * sigma, missing, 0.0)
    present = np.maximum(n_rows - missing, 0.05 * n_rows)
    mean, deviation = np.empty((2, k))
    resolved = np.ones(k, dtype=bool)
    start = 3 * k
    for j, window in enumerate(windows):
        magnitude = magnitudes[j]
        if window.n_bins:
            bins = released[start : start + window.n_bins]
            u, spread, resolved[j] = _of_bins(bins, present[j], weight * sigma)
            start += window.n_bins
        else:
            blind = not guessed[j]
            guess = 0.0 if blind else (magnitude.mean - window.centre) / window.half
            prior = _BLIND_VARIANCE if blind else (magnitude.deviation / window.half) ** 2
            u, spread = _of_moments(first[j], second[j], present[j], sigma, guess, prior, blind)
        mean[j] = window.centre + window.half * u
        deviation[j] = window.half * spread
    return NumberStatistics(mean, deviation, missing, resolved)


def _of_moments(
    first: float, second: float, n: float, sigma: float, guess: float, prior: float, blind: bool
) -> tuple[float, float]:
    """Mean and deviation, in units of u: noise and guess weigh each other."""
    doubt = sigma / n
    believed = 1.0 / (1.0 + doubt**2 / (_MEAN_DOUBT**2 * prior))
    u = believed * first / n + (1.0 - believed) * guess
    u = min(max(u, -1.0), 1.0)
    variance = second / n + 0.625 - u * u
    error = doubt / 2.0 * sqrt(1.0 + 16.0 * u * u)
    believed = 1.0 / (1.0 + (error / (_VARIANCE_DOUBT * prior)) ** 2)
    variance = believed * variance + (1.0 - believed) * prior
    # What is below half of the noise is not known.
    least = min(error / 2.0, 1.0 / 3.0 if blind else prior)
    return u, sqrt(min(max(variance, least, 2.0**-80), 1.0))


def _of_bins(counts: FloatArray, n: float, sigma: float) -> tuple[float, float, bool]:
    """Mean and deviation, in units of u, of the values in bins; whether they tell a spread."""
    n_bins = len(counts)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    start, width, length = 0, n_bins, 1
    while length < n_bins:
        held = sums[length:] - sums[:-length]
        i = int(held.argmax())
        if held[i] > _HELD * n + sigma * sqrt(length):
            start, width = i, length
            break
        length = max(length + 1, length * 5 // 4)
    low, high = max(0, start - width), min(n_bins, start + 2 * width)
    x = (np.arange(low, high) + 0.5) / n_bins * 2.0 - 1.0
    held = counts[low:high]
    mass = max(held.sum(), 0.2 * n)
    centre, half = (start + width / 2.0) / n_bins * 2.0 - 1.0, width / n_bins
    u = float(np.clip(held @ x / mass, centre - half / 2.0, centre + half / 2.0))
    variance = max(float(held @ (x - u) ** 2) / mass, 0.0)
    # Within one bin values may be anywhere, or all the same.
    least = 0.3 if width > 1 else 0.58
    resolved = width > 1 or held.sum() < _ALONE * n
    return u, min(max(sqrt(variance), least * half), 1.2 * half), bool(resolved)
