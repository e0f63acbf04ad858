"""Location and spread of columns when rows are few for the noise: two releases only.

1. *octaves*: signed binary exponents of the values, one histogram per column in which missing
   values have a bin too. Single counts may drown in the noise, so what is looked for is a shape:
   each of a few templates (all values in one octave, a bell around zero, bells on a logarithmic
   scale) is laid over every place, for either sign, and the best least-squares fit taken, less a
   price for places that are far from one. With white noise this is the most probable template and
   place. A template tells the window that holds nearly all values.
2. *rough moments*: mean and spread within that window.

A column whose best fit does not stand out of the noise keeps location 0 and scale 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._histograms import FloatArray, Histograms, IntArray, column_sensitivity
from skdp._moments import plan_moments, release_moments
from skdp._threads import Workers
from skdp.accounting import PrivacyCost
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

__all__ = [
    "EXPONENTS",
    "LEAST_EXPONENT",
    "find_by_octaves",
    "plan_octaves",
    "present_rows",
    "signed_octaves",
]

# Shares of the budget of the two releases.
_SHARES = (0.75, 0.25)
# A fit stands out if the counts along its template are that many standard deviations, and more at a
# place that has a price; with fewer rows than `_HOPELESS` times the noise of a count nothing is
# looked for.
_STANDS_OUT, _HOPELESS = 3.0, 4.0
# A number of missing values above that many deviations of its noise is believed.
_BELIEVED = 2.0
# One sign is used if it has that share of the records, and of the noise of a count.
_LEAST_SHARE, _LEAST_NOISE = 0.03, 1.5
# Price of a place, in units of the log-likelihood: a quarter per octave from one, up to a limit.
_PRICE, _DEAREST = 0.25, 12.0
# The window of what is learned next reaches that many standard deviations from the mean.
_REACH = 3.0
_EXPONENT_BITS, _EXPONENT_MASK = 52, 0x7FF
# Biased exponents up to this one, values below 2**-958, count as zero.
_ZERO_EXPONENT = 64
EXPONENTS = _EXPONENT_MASK - _ZERO_EXPONENT - 1
_BIAS = 1022  # a value with biased exponent e is in [2**(e - 1 - _BIAS), 2**(e - _BIAS))
# Values of the least octave are at least two to this power.
LEAST_EXPONENT = _ZERO_EXPONENT - _BIAS


def _bell(octaves: int, spread: float) -> FloatArray:
    """Normal density on the logarithmic scale."""
    place = np.arange(octaves) - (octaves - 1) / 2.0
    weights = np.exp(-0.5 * (place / spread) ** 2)
    return np.asarray(weights / weights.sum())


# Shares of the octaves from the lowest to the highest one, and how many of the highest hold a tail
# that is left out of the window. The third is the absolute value of a normal variable.
_TEMPLATES: tuple[tuple[FloatArray, int], ...] = (
    (np.array([1.0]), 0),
    (np.array([0.5, 0.5]), 0),
    (np.array([0.006, 0.012, 0.025, 0.05, 0.099, 0.187, 0.3, 0.272, 0.045]), 0),
    (_bell(5, 1.0), 1),
    (_bell(10, 2.0), 2),
    (_bell(15, 3.0), 3),
)


def plan_octaves(budget: PrivacyCost, n_columns: int) -> tuple[PlannedRelease, ...]:
    """Releases of `find_by_octaves`.

    Parameters
    ----------
    budget : PrivacyCost
        What they may cost together.
    n_columns : int
        Number of columns.

    Returns
    -------
    releases : tuple of PlannedRelease
    """
    first, second = budget.split(_SHARES)
    sensitivity = column_sensitivity(n_columns, budget.neighboring)
    return (
        PlannedRelease("octaves", sensitivity, first.mu),
        plan_moments(second, n_columns, second=True, name="rough moments"),
    )


def signed_octaves(block: FloatArray) -> IntArray:
    """Bins of a block, from 1 on: negative values, the largest first, zeros, then positive ones."""
    negative = np.signbit(block)
    octave = block.view(np.int64)
    octave >>= _EXPONENT_BITS
    octave &= _EXPONENT_MASK
    octave -= _ZERO_EXPONENT
    np.clip(octave, 0, EXPONENTS, out=octave)
    np.negative(octave, where=negative, out=octave)
    octave += EXPONENTS + 1
    return octave


def _masses(
    positive: FloatArray, negative: FloatArray, rest: FloatArray, square: float, n_rows: int
) -> tuple[FloatArray, FloatArray]:
    """Least-squares numbers of positive and of negative records, in [0, n_rows].

    Parameters
    ----------
    positive, negative : ndarray of shape (n_columns, n_places)
        Products of the counts with the template at each place.
    rest : ndarray of shape (n_columns, 1)
        Declared number of rows without the count of zeros, which tells the sum of the two.
    square : float
        Squared norm of the template.
    n_rows : int
        Declared number of rows.
    """
    u, v = positive + rest, negative + rest
    one = square + 1.0
    a, b = (one * u - v) / (one**2 - 1.0), (one * v - u) / (one**2 - 1.0)
    only_a, only_b = b < 0.0, (a < 0.0) & (b >= 0.0)
    a = np.where(only_a, np.maximum(u / one, 0.0), np.where(only_b, 0.0, a))
    b = np.where(only_b, np.maximum(v / one, 0.0), np.where(only_a, 0.0, b))
    shrink = n_rows / np.maximum(a + b, n_rows)
    return a * shrink, b * shrink


def present_rows(histograms: Histograms, missing: FloatArray, sigma: float) -> FloatArray:
    """Number of values that are there, per column, from noisy counts of those that are missing.

    A count that may be noise is not subtracted; one is left at least.
    """
    surely = np.where(missing > _BELIEVED * sigma, missing, 0.0)
    return np.maximum(histograms.n_rows - surely, 1.0)


def _windows(
    counts: FloatArray, present: FloatArray, n_rows: int, sigma: float
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Bounds of the best fit of every column, and whether it stands out.

    Parameters
    ----------
    counts : ndarray of shape (n_columns, 2 * EXPONENTS + 1)
        Noisy counts of the bins of `signed_octaves`.
    present : ndarray of shape (n_columns,)
        Number of values that are there.
    n_rows : int
        Declared number of rows.
    sigma : float
        Standard deviation of their noise.
    """
    n_columns = len(counts)
    columns = np.arange(n_columns)
    negative, positive = counts[:, EXPONENTS - 1 :: -1], counts[:, EXPONENTS + 1 :]
    rest = (present - counts[:, EXPONENTS])[:, None]
    top = np.zeros(n_columns, dtype=np.int64)
    best = np.full(n_columns, -np.inf)
    evidence, above, below = np.zeros((3, n_columns))
    for template, tail in _TEMPLATES:
        width, square = len(template), float(template @ template)
        p, q = (
            np.lib.stride_tricks.sliding_window_view(side, width, axis=1) @ template
            for side in (positive, negative)
        )
        a, b = _masses(p, q, rest, square, n_rows)
        u, v = p + rest, q + rest
        fit = a * u + b * v - 0.5 * ((square + 1.0) * (a**2 + b**2) + 2.0 * a * b)
        # Values at a place are below 2**exponent.
        exponent = np.arange(a.shape[1]) + width + LEAST_EXPONENT
        price = np.minimum(_PRICE * np.abs(exponent - 1.0), _DEAREST)
        fit = fit / sigma**2 - price
        place = fit.argmax(axis=1)
        value = fit[columns, place]
        better = value > best
        best[better] = value[better]
        top[better] = exponent[place[better]] - tail
        above[better], below[better] = a[columns, place][better], b[columns, place][better]
        # Without the sum that the count of zeros tells: noise alone has no such sum anywhere.
        along = np.square(np.maximum(p, 0.0)) + np.square(np.maximum(q, 0.0))
        seen = along[columns, place] / (square * sigma**2) - 2.0 * price[place]
        evidence[better] = seen[better]
    least = max(_LEAST_SHARE * n_rows, _LEAST_NOISE * sigma)
    edge = np.ldexp(1.0, np.clip(top, -957, 1010))
    low = np.where(below > least, -edge, 0.0)
    high = np.where((above > least) | (low == 0.0), edge, 0.0)
    return low, high, (evidence > _STANDS_OUT**2) & (n_rows > _HOPELESS * sigma)


def find_by_octaves(
    X: Any, *, n_rows: int, noise: NoiseCore, neighboring: str, pool: Workers
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Mean, spread and bounds of every column, and whether it was found.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_columns)
        Data; values that are not finite are missing.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases of `plan_octaves` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.

    Returns
    -------
    mean, spread, low, high : ndarray of shape (n_columns,)
        For columns that were not found 0, 1, -1 and 1.
    found : ndarray of shape (n_columns,), bool
    """
    histograms = Histograms(X, n_rows, noise, neighboring, pool)
    counts = histograms.release("octaves", signed_octaves, 2 * EXPONENTS + 1, missing=True)
    sigma = histograms.sigma("octaves")
    present = present_rows(histograms, counts[:, -1], sigma)
    low, high, found = _windows(counts[:, :-1], present, n_rows, sigma)
    low, high = np.where(found, low, -1.0), np.where(found, high, 1.0)
    mean, spread = release_moments(
        X,
        low,
        high,
        second=True,
        n_rows=n_rows,
        noise=noise,
        neighboring=neighboring,
        pool=pool,
        name="rough moments",
        missing=True,
    )
    mean, spread = np.where(found, mean, 0.0), np.where(found, spread, 1.0)
    low = np.where(found, np.maximum(low, mean - _REACH * spread), low)
    high = np.where(found, np.minimum(high, mean + _REACH * spread), high)
    return mean, spread, low, high, found
