"""How large the numbers of a table are, read off noisy counts of signed binary exponents.

Each column has one histogram; single counts may drown in the noise. So what is looked for is a
shape: a few templates (values in one octave, a bell around zero, bells on a logarithmic scale) are
laid over every place, for positive values, negative ones, both alike or any mixture, and the most
probable one is taken: least squares, less a price for places and signs that are rare in tables.
Where counts are clear they speak for themselves: octaves beside the template that are surely filled
are added, and quantiles are taken from the counts.

From them follow a window that holds nearly all values; whether the upper half of the values is so
spread out that only a logarithmic scale does it justice; and a first mean and deviation.

All of it is post-processing of released counts.
"""

from dataclasses import dataclass
from math import ldexp, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp._octaves import EXPONENTS, LEAST_EXPONENT, signed_octaves

__all__ = ["N_BINS", "Magnitude", "count_octaves", "read_magnitude"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

N_BINS = 2 * EXPONENTS + 1
_BLOCK = 1 << 17
# Prices in units of the log-likelihood: of a place, by its octaves from 2**4; of signs; and, for a
# column with public bounds, of every octave that its largest value stays below them.
_CENTRE, _WIDTH, _PLACE = 4.0, 8.0, 1.5
_SIGNS = {"positive": 0.0, "negative": 4.0, "both": 2.0, "mixture": 6.0}
_BELOW_BOUND = 0.5
# Two octaves more are filled if they hold that many deviations of the noise and that share.
_FILLED, _LEAST_FILLED = 3.5, 0.004
# Counts are believed as far as their noise is below this share of the records.
_BELIEVED = 0.15
# A sign counts with this share of the records; a column is narrow if next to all values have one.
_SIGN, _ONE_SIDED, _NARROW_OCTAVES = 0.05, 0.9, 2
# The scale is logarithmic if the quantile .9 is that many times the median.
_HEAVY = 3.0
# A fit stands out if the counts along it are that many deviations of the noise; so do zeros that
# are most of the values.
_STANDS_OUT = 3.5
_MOSTLY_ZERO = 6.0
_LARGEST_POWER, _LEAST_POWER = 1010, -957


def _bell(octaves: int, spread: float) -> FloatArray:
    """Normal density on the logarithmic scale."""
    place = np.arange(octaves) - (octaves - 1) / 2.0
    weights = np.exp(-0.5 * (place / spread) ** 2)
    return np.asarray(weights / weights.sum())


# Shares of octaves from the lowest to the highest one. The fourth is the absolute value of a normal
# variable, the fifth an even spread from zero on.
_TEMPLATES: tuple[FloatArray, ...] = (
    np.array([1.0]),
    np.array([0.5, 0.5]),
    np.array([0.25, 0.5, 0.25]),
    np.array([0.012, 0.025, 0.05, 0.099, 0.187, 0.3, 0.272, 0.055]),
    np.array([0.016, 0.032, 0.063, 0.127, 0.254, 0.508]),
    _bell(6, 1.0),
    _bell(8, 1.5),
    _bell(13, 2.5),
)


@dataclass(frozen=True)
class Magnitude:
    """What the counts of a column say, in units of the column but for mean and deviation.

    Attributes
    ----------
    low, high : float
        Window that holds nearly all values.
    unit : float or None
        Where the scale is linear up to, if it is logarithmic beyond.
    mean, deviation : float
        Guess of the mean and the standard deviation, on that scale.
    narrow : bool
        Whether nearly all values are in two octaves of one sign: their spread may be far below
        what octaves tell.
    found : bool
        Whether the shape stands out of the noise.
    """

    low: float
    high: float
    unit: float | None
    mean: float
    deviation: float
    narrow: bool
    found: bool


def count_octaves(values: FloatArray) -> IntArray:
    """Exact counts of a column's bins; a value that is not finite counts nowhere.

    Parameters
    ----------
    values : ndarray of shape (n_rows,), float64
        The column.

    Returns
    -------
    counts : ndarray of shape (N_BINS,), int64
        Of negative values, the largest first, of zeros, and of positive values.
    """
    counts = np.zeros(N_BINS + 2, dtype=np.int64)
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        counts += np.bincount(signed_octaves(block[np.isfinite(block)]), minlength=N_BINS + 2)
    return counts[1:-1]


@dataclass(frozen=True)
class _Fit:
    score: float
    template: FloatArray
    place: int
    positive: float
    negative: float
    evidence: float


def _best_fit(counts: FloatArray, n_rows: int, sigma: float, bounds: FloatArray | None) -> _Fit:
    negative, positive = counts[EXPONENTS - 1 :: -1], counts[EXPONENTS + 1 :]
    # The count of zeros tells the sum of the two.
    rest = n_rows - counts[EXPONENTS]
    best = None
    for template in _TEMPLATES:
        square = float(template @ template)
        p, q = (
            np.lib.stride_tricks.sliding_window_view(side, len(template)) @ template
            for side in (positive, negative)
        )
        price = _price(np.arange(len(p)) + len(template) + LEAST_EXPONENT, bounds)
        for signs, (a, b) in _masses(p + rest, q + rest, square + 1.0, n_rows).items():
            if bounds is not None and not _allowed(signs, bounds):
                continue
            fit = a * (p + rest) + b * (q + rest)
            fit -= 0.5 * ((square + 1.0) * (a**2 + b**2) + 2.0 * a * b)
            fit = fit / sigma**2 - price - _SIGNS[signs]
            i = int(fit.argmax())
            if best is None or fit[i] > best.score:
                along = max(p[i], 0.0) ** 2 * (a[i] > 0) + max(q[i], 0.0) ** 2 * (b[i] > 0)
                seen = along / (square * sigma**2) - 2.0 * price[i] - 2.0 * _SIGNS[signs]
                shares = float(a[i]) / n_rows, float(b[i]) / n_rows
                best = _Fit(float(fit[i]), template, i, *shares, float(seen))
    assert best is not None
    return best


def _price(power: IntArray, bounds: FloatArray | None) -> FloatArray:
    """Price of windows that end at powers of two."""
    if bounds is None:
        return np.asarray(_PLACE * np.log1p(((power - _CENTRE) / _WIDTH) ** 2))
    below = np.frexp(np.abs(bounds).max())[1] - power
    return np.where(below < 0, np.inf, _BELOW_BOUND * below)


def _allowed(signs: str, bounds: FloatArray) -> bool:
    if bounds[0] >= 0.0:
        return signs == "positive"
    return bounds[1] > 0.0 or signs == "negative"


def _masses(
    u: FloatArray, v: FloatArray, one: float, n_rows: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Least-squares numbers of positive and negative records at every place, by pattern."""
    none = np.zeros_like(u)
    a, b = (np.clip(x / (one**2 - 1.0), 0.0, n_rows) for x in (one * u - v, one * v - u))
    shrink = n_rows / np.maximum(a + b, n_rows)
    both = np.clip((u + v) / (2.0 * one + 2.0), 0.0, n_rows / 2.0)
    return {
        "positive": (np.clip(u / one, 0.0, n_rows), none),
        "negative": (none, np.clip(v / one, 0.0, n_rows)),
        "both": (both, both),
        "mixture": (a * shrink, b * shrink),
    }


def _filled(
    counts: FloatArray, fit: _Fit, n_rows: int, sigma: float
) -> tuple[FloatArray, int, int]:
    """Numbers of records by octave, as far as they are believed, where they start and end."""
    negative, positive = counts[EXPONENTS - 1 :: -1], counts[EXPONENTS + 1 :]
    total, noise = np.zeros(EXPONENTS), 0.0
    for side, share in ((positive, fit.positive), (negative, fit.negative)):
        if share > 0.02:
            total, noise = total + side, noise + sigma**2
    noise = sqrt(noise) if noise else sigma
    start, stop = fit.place, fit.place + len(fit.template)
    least = max(_FILLED * noise * sqrt(2.0), _LEAST_FILLED * n_rows)
    while stop < EXPONENTS and total[stop : stop + 2].sum() > least:
        stop += 1
    while start > 0 and total[max(start - 2, 0) : start].sum() > least:
        start -= 1
    expected = np.zeros(EXPONENTS)
    mass = (fit.positive + fit.negative) * n_rows
    expected[fit.place : fit.place + len(fit.template)] = fit.template * mass
    believed = 1.0 / (1.0 + (noise / (_BELIEVED * n_rows)) ** 2)
    inside = np.zeros(EXPONENTS)
    inside[start:stop] = np.maximum(total[start:stop], 0.0)
    return believed * inside + (1.0 - believed) * expected, start, stop


def _power(exponent: int) -> float:
    return ldexp(1.0, min(max(exponent, _LEAST_POWER), _LARGEST_POWER))


def _quantile(octaves: FloatArray, share: float) -> float:
    """Quantile of the sizes, with octaves filled evenly on the logarithmic scale."""
    cumulated = np.cumsum(octaves)
    level = share * cumulated[-1]
    i = int(np.searchsorted(cumulated, level))
    before = cumulated[i - 1] if i else 0.0
    within = (level - before) / max(cumulated[i] - before, 1e-300)
    return _power(i + LEAST_EXPONENT) * float(2.0 ** min(max(within, 0.0), 1.0))


def read_magnitude(
    counts: FloatArray,
    *,
    n_rows: int,
    sigma: float,
    bounds: tuple[float, float] | None = None,
    is_anchored: bool = False,
) -> Magnitude:
    """What noisy counts say of a column.

    Parameters
    ----------
    counts : ndarray of shape (N_BINS,)
        Noisy `count_octaves`.
    n_rows : int
        Declared number of rows.
    sigma : float
        Standard deviation of their noise.
    bounds : pair of float, default=None
        Public bounds of the values that were counted.
    is_anchored : bool, default=False
        Whether zero means nothing, so that no scale is logarithmic.

    Returns
    -------
    magnitude : Magnitude
    """
    limits = None if bounds is None else np.array(bounds)
    fit = _best_fit(counts, n_rows, sigma, limits)
    octaves, start, stop = _filled(counts, fit, n_rows, sigma)
    mass = fit.positive + fit.negative
    zeros = bool(counts[EXPONENTS] > max(n_rows / 2.0, _MOSTLY_ZERO * sigma))
    if not octaves.sum() > 0.0:  # zeros, for all that is known
        low, high = (-1.0, 1.0) if bounds is None else bounds
        return Magnitude(low, high, None, 0.0, 1.0, False, zeros)
    median = _quantile(octaves, 0.5)
    heavy = not is_anchored and _quantile(octaves, 0.9) > _HEAVY * median
    edge, inner = _power(stop + LEAST_EXPONENT), _power(start + LEAST_EXPONENT)
    has_negative = fit.negative > _SIGN
    has_positive = fit.positive > _SIGN or not has_negative
    low, high = -edge if has_negative else 0.0, edge if has_positive else 0.0
    narrow = has_negative != has_positive and mass > _ONE_SIDED and stop - start <= _NARROW_OCTAVES
    narrow = narrow and inner < edge  # octaves beyond the largest power share its end
    if narrow:
        low, high = (inner, high) if has_positive else (low, -inner)
    if limits is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
        if not low < high:
            low, high = limits
    middle = np.array([1.5 * _power(i + LEAST_EXPONENT) for i in np.flatnonzero(octaves).tolist()])
    filled = octaves[octaves != 0.0]
    size = np.arcsinh(middle / median) if heavy else middle / edge
    weights = filled / filled.sum() * min(mass, 1.0)
    balance = 1.0
    if has_negative:
        balance = (fit.positive - fit.negative) / mass if has_positive else -1.0
    mean, square = float(weights @ size) * balance, float(weights @ size**2)
    deviation = sqrt(max(square - mean**2, 0.03 * square))
    if not heavy:
        mean, deviation = mean * edge, deviation * edge
    found = fit.evidence > _STANDS_OUT**2 or zeros
    return Magnitude(low, high, median if heavy else None, mean, deviation, narrow, found)
