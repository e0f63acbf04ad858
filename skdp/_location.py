"""Where each column lives: location and spread found privately, without bounds from anyone.

Floats are a finite ordered domain, so histograms over them have public bins. Four rounds, each a
joint release of one histogram per column in which a record counts at most once:

1. *magnitudes*: binary exponents of the values, and missing ones. The shortest run of exponents
   that surely holds half of the values different from zero says how large they are, be it 1e-300
   or 1e300.
2. *locations*, twice: equal bins around zero, then within the window found. The shortest window
   that surely holds half of the values gives the centre to about one millionth of the magnitude.
   Where no window is sure the values are spread out, and a coarser centre will do.
3. *distances*: binary exponents of the distance to that centre, on either side. Whatever the
   spread is, a distribution fills a handful of octaves; what lies far above them in small numbers
   is an outlier.

Four rounds have to share a budget. Where rows are few for the noise the two rounds of
`skdp._octaves` take their place; which of them is decided by public facts.

All decisions are post-processing of noisy counts: no threshold has a probability of failure that
would have to be charged, failing costs accuracy only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._histograms import FloatArray, Histograms, IntArray, column_sensitivity
from skdp._octaves import find_by_octaves, plan_octaves, present_rows
from skdp._threads import Workers
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

__all__ = [
    "Location",
    "find_bounds",
    "find_location",
    "plan_bounds",
    "plan_location",
    "warn_location",
]

# With fewer rows than this, in units of the noise that one histogram would have if it took the
# whole budget, two rounds know more than four.
_FOUR_ROUNDS = 80.0
# Shares of the budget of the four rounds.
_SHARES = (0.2, 0.2, 0.2, 0.4)
# A window of w bins is sure to hold a mass when its count is above by `_SURE` standard deviations
# of its noise, and when noise alone would need `_FALSE` of them: with 2,000 exponents that has a
# probability of about 1e-6. With fewer rows than `_HOPELESS` times the noise of a count nothing is
# looked for, with fewer than `_ROUGH` times it there is a warning.
_SURE, _FALSE, _HOPELESS, _ROUGH = 1.5, 6.0, 10.0, 25.0
# Half of the values do not spread over more exponents than this.
_LONGEST_RANGE = 16
# Bins of the two rounds of places, and octaves on each side of the distances.
_PLACES = (512, 4096)
_OCTAVES = 40
# An octave of distances is filled if it holds more than a share of the records and that many
# standard deviations of noise: the first pair within the core of the distribution, rising to the
# second one `_REACH` octaves above it, where a few values are outliers and where an error is dear.
_FILLED, _FILLED_FAR, _REACH = (0.005, 4.0), (0.1, 5.5), 10
_EXPONENT_BITS = 52
_EXPONENT_MASK = 0x7FF
# Biased exponents up to the first one, values below 2**-958, count as zero.
_LEAST_EXPONENT = 64
_EXPONENTS = _EXPONENT_MASK - _LEAST_EXPONENT
_BIAS = 1022  # a value with biased exponent e is in [2**(e - 1 - _BIAS), 2**(e - _BIAS))
_LARGEST, _SMALLEST = 2.0**1010, 2.0**-900


@dataclass(frozen=True)
class Location:
    """What the histograms say of every column.

    Attributes
    ----------
    mean, spread : ndarray of shape (n_columns,)
        Mean and standard deviation of the values, outliers apart.
    low, high : ndarray of shape (n_columns,)
        Bounds that hold nearly all values.
    found : ndarray of shape (n_columns,), bool
        Whether the column's values could be told from the noise.
    unscaled : ndarray of shape (n_columns,), bool
        Columns that were not found, or hold zeros only: their mean is 0 and their spread is 1.
    """

    mean: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    found: NDArray[np.bool_]
    unscaled: NDArray[np.bool_]


def plan_location(budget: PrivacyCost, n_columns: int, n_rows: int) -> tuple[PlannedRelease, ...]:
    """Releases of `find_location`.

    Parameters
    ----------
    budget : PrivacyCost
        What they may cost together.
    n_columns : int
        Number of columns.
    n_rows : int
        Declared number of rows.

    Returns
    -------
    releases : tuple of PlannedRelease
    """
    sensitivity = column_sensitivity(n_columns, budget.neighboring)
    if n_rows * budget.mu < _FOUR_ROUNDS * sensitivity:
        return plan_octaves(budget, n_columns)
    first, second, third, last = (part.mu for part in budget.split(_SHARES))
    return (
        PlannedRelease("magnitudes", sensitivity, first),
        PlannedRelease("locations", sensitivity, min(second, third), 2),
        PlannedRelease("distances", sensitivity, last),
    )


def _window_lengths(longest: int) -> list[int]:
    lengths = [1]
    while lengths[-1] < longest:
        lengths.append(min(max(lengths[-1] + 1, round(lengths[-1] * 1.25)), longest))
    return lengths


def _shortest_windows(
    counts: FloatArray, mass: FloatArray, sigma: float, longest: int
) -> tuple[IntArray, IntArray]:
    """Shortest window of bins that surely holds half of a mass, per column.

    Parameters
    ----------
    counts : ndarray of shape (n_columns, n_bins)
        Noisy counts.
    mass : ndarray of shape (n_columns,)
        The whole mass.
    sigma : float
        Standard deviation of the noise of each count.
    longest : int
        Longest window, in bins.

    Returns
    -------
    start, stop : ndarray of shape (n_columns,)
        Window ``start:stop``; empty where no window is sure.
    """
    n_columns, n_bins = counts.shape
    sums = np.zeros((n_columns, n_bins + 1))
    np.cumsum(counts, axis=1, out=sums[:, 1:])
    columns = np.arange(n_columns)
    start, stop = np.zeros((2, n_columns), dtype=np.int64)
    for width in _window_lengths(longest):
        held = sums[:, width:] - sums[:, :-width]
        place = held.argmax(axis=1)
        noise = sigma * sqrt(width)
        sure = held[columns, place] > np.maximum(mass / 2.0 + _SURE * noise, _FALSE * noise)
        new = sure & (stop == 0)
        start[new], stop[new] = place[new], place[new] + width
    return start, stop


@dataclass(frozen=True)
class _Magnitudes:
    """What the binary exponents say: most values, zeros apart, are below ``2**exponent``.

    `smallest` is the lower end of their range in units of that; `present` is the number of values
    that are not missing; `zero` tells columns of zeros.
    """

    exponent: IntArray
    smallest: FloatArray
    found: NDArray[np.bool_]
    present: FloatArray
    zero: NDArray[np.bool_]


def _find_magnitudes(histograms: Histograms) -> _Magnitudes:
    def bins(block: FloatArray) -> IntArray:
        exponents = block.view(np.int64)
        exponents >>= _EXPONENT_BITS
        exponents &= _EXPONENT_MASK
        exponents -= _LEAST_EXPONENT - 1
        return np.maximum(exponents, 1, out=exponents)

    counts = histograms.release("magnitudes", bins, _EXPONENTS, missing=True)
    sigma = histograms.sigma("magnitudes")
    zeros, others = counts[:, 0], counts[:, 1:-1]
    present = present_rows(histograms, counts[:, -1], sigma)
    rest = np.maximum(present - zeros, 0.0)
    start, stop = _shortest_windows(others, rest, sigma, _LONGEST_RANGE)
    enough = histograms.n_rows >= _HOPELESS * sigma
    found = (stop > 0) & enough
    return _Magnitudes(
        exponent=np.where(found, _LEAST_EXPONENT + stop - _BIAS, 0),
        smallest=np.ldexp(1.0, start - stop),
        found=found,
        present=present,
        zero=~found & enough & (rest < _FILLED[1] * sigma) & (zeros > _FALSE * sigma),
    )


def _equal_bins(
    unit: FloatArray, low: FloatArray, step: FloatArray, n_bins: int
) -> Callable[[FloatArray], IntArray]:
    """Equal bins above `low`, which is in units of the magnitude."""

    def bins(block: FloatArray) -> IntArray:
        block *= unit / step
        block -= low / step - 1.0
        np.clip(block, 0.0, n_bins + 1.0, out=block)
        return block.astype(np.int64)  # cuts toward zero: the floor

    return bins


def _find_locations(
    histograms: Histograms, unit: FloatArray, present: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Centre of each column and the distance from it that can be resolved, a power of two.

    In units of the column's magnitude.
    """
    n_columns = len(unit)
    low, width = np.full(n_columns, -2.0), np.full(n_columns, 4.0)
    centre, known = np.zeros(n_columns), np.full(n_columns, 2.0**-10)
    for n_bins in _PLACES:
        step = width / n_bins
        counts = histograms.release("locations", _equal_bins(unit, low, step, n_bins), n_bins)
        sigma = histograms.sigma("locations")
        start, stop = _shortest_windows(counts, present, sigma, n_bins)
        sure, size = stop > 0, stop - start
        centre = np.where(sure, low + (start + stop) / 2.0 * step, centre)
        # Not sure at last: then they fill many of the finer bins.
        known = np.where(sure, np.maximum(size / 4.0, 1.0) * step, known / 4.0)
        # The next window is wider: the edges of the bulk may lie in the bins next to it.
        low = np.where(sure, centre - (size + 1) * step, low)
        width = np.where(sure, 2.0 * (size + 1) * step, width)
    return centre, np.exp2(np.ceil(np.log2(known)))


def _octaves(
    unit: FloatArray, centre: FloatArray, known: FloatArray
) -> Callable[[FloatArray], IntArray]:
    """Octaves of the distance to the centre in units of `known`, first below it, then above.

    On either side the first bin holds all distances below 1 and the last one all that are far.
    """

    def bins(block: FloatArray) -> IntArray:
        block *= unit / known
        block -= centre / known
        above = block >= 0
        octave = block.view(np.int64)
        octave >>= _EXPONENT_BITS
        octave &= _EXPONENT_MASK
        octave -= _BIAS
        np.clip(octave, 0, _OCTAVES, out=octave)
        octave += 1
        octave += (_OCTAVES + 1) * above
        return octave

    return bins


def _reach(side: FloatArray, core: IntArray, present: FloatArray, sigma: float) -> IntArray:
    """Octaves of one side up to the last ones that are filled."""
    octaves = np.arange(side.shape[1])
    far = np.clip((octaves - core[:, None]) / _REACH, 0.0, 1.0)
    share = _FILLED[0] * (_FILLED_FAR[0] / _FILLED[0]) ** far
    sure = _FILLED[1] + (_FILLED_FAR[1] - _FILLED[1]) * far
    reach = np.zeros(len(side), dtype=np.int64)
    for width in (1, 2, 3):
        held = np.lib.stride_tricks.sliding_window_view(side, width, axis=1).sum(axis=2)
        n = held.shape[1]
        filled = held > share[:, :n] * present[:, None] + sure[:, :n] * sigma * sqrt(width)
        np.maximum(reach, np.where(filled, octaves[:n] + 1, 0).max(axis=1), out=reach)
    return reach


@dataclass(frozen=True)
class _Distances:
    """How far values lie from the centre, in units of the resolved distance."""

    below: FloatArray
    above: FloatArray
    offset: FloatArray
    spread: FloatArray


def _find_distances(
    histograms: Histograms,
    bins: Callable[[FloatArray], IntArray],
    least: FloatArray,
    present: FloatArray,
) -> _Distances:
    """Distances from the centre; at least ``2**least``."""
    sigma = histograms.sigma("distances")
    counts = histograms.release("distances", bins, 2 * (_OCTAVES + 1))
    sides = counts.reshape(-1, 2, _OCTAVES + 1).swapaxes(0, 1)
    near, octaves = sides[:, :, 0].sum(axis=0), sides[:, :, 1:]
    away = np.maximum(present - near, 0.0)
    _, core = _shortest_windows(octaves.sum(axis=0), away, sigma * sqrt(2.0), _LONGEST_RANGE)
    reaches = [_reach(side, core, present, sigma) for side in octaves]
    largest = np.maximum(np.maximum(*reaches), least)
    below, above = (
        np.exp2(np.where(reach < least, least, np.maximum(reach, largest - 2.0)))
        for reach in reaches
    )
    # Moments, as if every octave were filled evenly.
    edge = np.exp2(np.arange(_OCTAVES))
    inside = np.arange(_OCTAVES) < largest[:, None]
    left, right = (np.where(inside, side, 0.0) for side in octaves)
    offset = np.clip((right - left) @ (1.5 * edge) / present, -below, above)
    square = np.maximum((right + left) @ (7.0 / 3.0 * edge**2) / present, 0.0)
    square += np.clip(near / present, 0.1, 1.0) / 3.0
    return _Distances(below, above, offset, np.sqrt(np.maximum(square - offset**2, square / 8.0)))


def find_location(
    X: Any,
    *,
    n_rows: int,
    noise: NoiseCore,
    neighboring: str,
    pool: Workers,
) -> Location:
    """Location and spread of every column.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_columns)
        Data; values that are not finite are missing, and counted as that.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases of `plan_location` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.

    Returns
    -------
    location : Location
    """
    if noise.plans("octaves"):
        rough = find_by_octaves(X, n_rows=n_rows, noise=noise, neighboring=neighboring, pool=pool)
        return Location(*rough, unscaled=~rough[-1])
    histograms = Histograms(X, n_rows, noise, neighboring, pool)
    magnitudes = _find_magnitudes(histograms)
    unit = np.ldexp(1.0, -magnitudes.exponent)
    centre, known = _find_locations(histograms, unit, magnitudes.present)
    # Where the bulk is at zero, values of the magnitude found are somewhere else.
    least = np.where(np.abs(centre) < magnitudes.smallest / 2.0, -np.log2(known), 0.0)
    bins = _octaves(unit, centre, known)
    distances = _find_distances(histograms, bins, least, magnitudes.present)
    unscaled = ~magnitudes.found

    def in_units(value: FloatArray, default: float, least: float = -_LARGEST) -> FloatArray:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(value, magnitudes.exponent)
        return np.where(unscaled, default, np.clip(scaled, least, _LARGEST))

    low = in_units(centre - known * distances.below, -1.0)
    high = in_units(centre + known * distances.above, 1.0)
    # At the ends of the range of floats both may have been cut to the same number.
    apart = np.maximum(2.0**-40 * np.maximum(np.abs(low), np.abs(high)), _SMALLEST)
    apart[high - low >= apart] = 0.0
    return Location(
        mean=in_units(centre + known * distances.offset, 0.0),
        spread=in_units(known * distances.spread, 1.0, _SMALLEST),
        low=low - apart,
        high=high + apart,
        found=magnitudes.found | magnitudes.zero,
        unscaled=unscaled,
    )


def warn_location(
    location: Location, n_rows: int, noise: NoiseCore, what: str, remedy: str
) -> None:
    """Warn, from released values only, where there are too few rows for the noise.

    Parameters
    ----------
    location : Location
        The result.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases of `plan_location` in its plan.
    what : str
        What the columns are.
    remedy : str
        What can be done.
    """
    sigma = noise.sigma("octaves" if noise.plans("octaves") else "locations")
    missing = int(np.count_nonzero(~location.found))
    if missing:
        text = (
            f"of {len(location.found)} {what} {missing} could not be told from the noise and "
            "keep location 0 and scale 1"
        )
    elif n_rows < _ROUGH * sigma:
        text = f"locations and scales of {what} are rough"
    else:
        return
    warn(
        f"{text}: every count that was released has noise of standard deviation {sigma:.3g}, "
        f"against {n_rows} rows; {remedy}",
        UtilityWarning,
    )


def plan_bounds(
    budget: PrivacyCost, n_columns: int, n_rows: int, share: float
) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
    """Releases of `find_bounds`, which get a share of a budget, and the rest of the budget."""
    first, rest = budget.split([share, 1.0 - share])
    return plan_location(first, n_columns, n_rows), rest


def find_bounds(X: Any, *, n_rows: int, noise: NoiseCore, **options: Any) -> Location:
    """`find_location` of columns without public bounds, with its warning."""
    location = find_location(X, n_rows=n_rows, noise=noise, **options)
    remedy = "give public `bounds`, more budget or fewer columns"
    warn_location(location, n_rows, noise, "columns", remedy)
    return location
