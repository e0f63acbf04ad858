"""Quantiles of all columns and at all levels, from one release.

Within its bounds a column is divided into equal bins. Few bins are released as they are. With many
of them the counts at all levels of a binary tree over them are released: a record then counts once
per level, and a sum over any run of bins is a sum of few nodes instead of many bins. Which of the
two, and how many bins, follows from the number of rows and the noise, both public.

Post-processing makes the levels of the tree consistent: every node takes the least-squares estimate
from all of them, in one pass upwards and one downwards (Hay et al. 2010). The cumulative counts are
made monotone, and quantiles interpolated in them. A bin that holds much more than those beside it
is taken for a single value, the roundest one in it: zeros, flags and integers stay what they are.
How many values of a column are missing is data: the ranks are shares of the noisy count of those
that are there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log2, log10, sqrt

import numpy as np
from numpy.typing import NDArray

from skdp._histograms import FloatArray, Histograms, IntArray, column_sensitivity
from skdp._location import find_bounds, plan_bounds
from skdp._threads import Workers
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

__all__ = ["Ranks", "find_ranks", "plan_ranks", "rank_depth"]

# Share of the budget that finds bounds where none are given.
_LOCATION_SHARE = 0.6
# Least and largest depth; up to `2**_FLAT` bins are released without a tree.
_DEPTHS, _FLAT = (4, 12), 5
# Bounds that were found are widened by that share of their distance.
_MARGIN = 2.0**-4
# Noise of a rank, as a share of the rows, from which quantiles are rough and from which they are
# given up.
_ROUGH, _HOPELESS = 0.05, 0.25
# A single value has at least that share of a column, that many times the noise of its bin, and
# that many times as much as the bins beside it.
_ATOM, _ATOM_NOISE, _ATOM_CONTRAST = 0.02, 4.0, 4.0


@dataclass(frozen=True)
class Ranks:
    """Noisy cumulative counts of every column.

    Attributes
    ----------
    edges : ndarray of shape (n_columns, n_bins + 1)
        Edges of the bins.
    shares : ndarray of shape (n_columns, n_bins + 1)
        Share of the values below each edge, from 0 to 1, not decreasing.
    noise : float
        Standard deviation of a share in the middle, for columns without missing values.
    bin_noise : float
        The same of the share of a bin.
    found : ndarray of shape (n_columns,), bool
        Whether the column could be told from the noise. Others have shares that are even
        between -1 and 1, or between the public bounds.
    """

    edges: FloatArray
    shares: FloatArray
    noise: float
    bin_noise: float
    found: NDArray[np.bool_]

    @property
    def resolution(self) -> FloatArray:
        """Width of the bins of every column."""
        return np.asarray(self.edges[:, 1] - self.edges[:, 0])

    def quantiles(self, levels: NDArray[np.floating]) -> FloatArray:
        """Quantiles of every column.

        Parameters
        ----------
        levels : ndarray of shape (n_levels,)
            Between 0 and 1.

        Returns
        -------
        quantiles : ndarray of shape (n_levels, n_columns)
            Not decreasing along increasing levels.
        """
        columns = []
        for edges, shares in zip(self.edges, self.shares, strict=True):
            # Where nothing lies between two values: the middle.
            value = 0.5 * np.interp(levels, shares, edges)
            value -= 0.5 * np.interp(-levels, -shares[::-1], -edges[::-1])
            columns.append(self._snap(value, edges, np.diff(shares)))
        return np.transpose(columns)

    def _snap(self, value: FloatArray, edges: FloatArray, mass: FloatArray) -> FloatArray:
        """Values in bins that are taken for a single one."""
        padded = np.concatenate([[0.0], mass, [0.0]])
        beside = (padded[:-2] + padded[2:]) / 2.0
        least = max(_ATOM, _ATOM_NOISE * self.bin_noise)
        single = (mass > least) & (mass > _ATOM_CONTRAST * beside)
        place = np.clip(np.searchsorted(edges, value, side="right") - 1, 0, len(mass) - 1)
        for i in np.unique(place[single[place]]):
            # The upper bound belongs to the last bin.
            top = np.nextafter(edges[i + 1], np.inf) if i == len(mass) - 1 else edges[i + 1]
            value[place == i] = _roundest(edges[i], top)
        return value

    def modes(self) -> FloatArray:
        """Roundest number in the fullest bin of every column."""
        fullest = np.diff(self.shares, axis=1).argmax(axis=1)
        columns = np.arange(len(fullest))
        pairs = zip(self.edges[columns, fullest], self.edges[columns, fullest + 1], strict=True)
        return np.array([_roundest(low, high) for low, high in pairs])


def _roundest(low: float, high: float) -> float:
    """The number with the fewest decimals in [low, high), or the middle."""
    if low <= 0.0 < high:
        return 0.0
    width = high - low
    first = -floor(log10(max(abs(low), abs(high))))
    for places in range(first, first + 17):
        value = ceil(low / 10.0**-places) * 10.0**-places
        if low <= round(value, places) < high:
            return round(value, places)
    return low + width / 2.0


def rank_depth(budget: PrivacyCost, n_columns: int, n_rows: int) -> int:
    """Levels of bins: as many as the noise of one histogram can tell apart.

    Parameters
    ----------
    budget : PrivacyCost
        What the release of the ranks may cost.
    n_columns, n_rows : int
        Number of columns and declared number of rows.
    """
    told = n_rows * budget.mu / column_sensitivity(n_columns, budget.neighboring)
    return int(np.clip(round(log2(max(told, 1.0))), *_DEPTHS))


def plan_ranks(
    budget: PrivacyCost, n_columns: int, n_rows: int, *, bounded: bool
) -> tuple[tuple[PlannedRelease, ...], int]:
    """Releases of `find_ranks`.

    Parameters
    ----------
    budget : PrivacyCost
        What they may cost together.
    n_columns, n_rows : int
        Number of columns and declared number of rows.
    bounded : bool
        Whether public bounds are given.

    Returns
    -------
    releases : tuple of PlannedRelease
    depth : int
        Levels of bins.
    """
    located: tuple[PlannedRelease, ...] = ()
    if not bounded:
        located, budget = plan_bounds(budget, n_columns, n_rows, _LOCATION_SHARE)
    depth = rank_depth(budget, n_columns, n_rows)
    levels = 1 if depth <= _FLAT else depth
    sensitivity = column_sensitivity(levels * n_columns, budget.neighboring)
    return (*located, PlannedRelease("ranks", sensitivity, budget.mu)), depth


def _consistent(levels: list[FloatArray]) -> FloatArray:
    """Least-squares counts of the leaves of a binary tree with equal noise at all nodes."""
    up = [levels[-1]]
    for height, own in enumerate(reversed(levels[:-1]), start=2):
        below = up[0][:, ::2] + up[0][:, 1::2]
        weight = 2.0 ** (height - 1) / (2.0**height - 1.0)
        up.insert(0, weight * own + (1.0 - weight) * below)
    counts = up[0]
    for own in up[1:]:
        excess = (counts - own[:, ::2] - own[:, 1::2]) / 2.0
        counts = own + np.repeat(excess, 2, axis=1)
    return counts


def _equal_bins(low: FloatArray, high: FloatArray, n_bins: int) -> Callable[[FloatArray], IntArray]:
    """Equal bins between bounds; what lies beyond falls into the first and the last one."""
    half = high / 2.0 - low / 2.0
    start = low / half

    def bins(block: FloatArray) -> IntArray:
        block /= half
        block -= start
        block *= n_bins / 2.0
        np.clip(block, 0.0, n_bins - 1.0, out=block)
        index = block.astype(np.int64)
        index += 1
        return index

    return bins


def find_ranks(
    X: NDArray[np.floating],
    bounds: tuple[FloatArray, FloatArray] | None,
    depth: int,
    *,
    n_rows: int,
    noise: NoiseCore,
    neighboring: str,
    pool: Workers,
) -> Ranks:
    """Private cumulative counts of every column.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Data; NaN is a missing value.
    bounds : pair of ndarray of shape (n_columns,), or None
        Public bounds, finite and apart.
    depth : int
        Levels of bins, from `plan_ranks`.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases of `plan_ranks` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.

    Returns
    -------
    ranks : Ranks

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu, "Boosting the accuracy of differentially private
    histograms through consistency", VLDB 2010.
    """
    n_columns, n_bins = X.shape[1], 1 << depth
    found = np.ones(n_columns, dtype=bool)
    if bounds is None:
        place = find_bounds(X, n_rows=n_rows, noise=noise, neighboring=neighboring, pool=pool)
        found = ~place.unscaled
        margin = np.where(found, _MARGIN * (place.high / 2.0 - place.low / 2.0), 0.0)
        bounds = place.low - margin, place.high + margin
    low, high = bounds
    histograms = Histograms(X, n_rows, noise, neighboring, pool)
    bins, sigma = _equal_bins(low, high, n_bins), histograms.sigma("ranks")
    if depth <= _FLAT:
        counts = histograms.release("ranks", bins, n_bins)
        deviation, bin_noise = sigma * sqrt(n_bins) / 2.0, sigma
    else:
        counts = _consistent(histograms.release_tree("ranks", bins, depth))
        # Of consistent trees with 6 to 12 levels, to within a sixth.
        deviation, bin_noise = 1.2 * sigma, 0.8 * sigma
    rank_noise = deviation / n_rows
    if rank_noise > _ROUGH:
        _warn_rough(rank_noise, n_rows)
    if rank_noise > _HOPELESS:
        found[:] = False
    sums = np.cumsum(counts, axis=1)
    present = np.clip(sums[:, -1:], min(max(4.0 * deviation, 1.0), n_rows), n_rows)
    sums = np.maximum.accumulate(sums, axis=1) / 2.0 + _from_the_right(sums) / 2.0
    shares = np.zeros((n_columns, n_bins + 1))
    shares[:, 1:] = np.clip(sums / present, 0.0, 1.0)
    shares[:, -1] = 1.0
    places = np.arange(n_bins + 1) / n_bins
    shares[~found] = places
    edges = low[:, None] * (1.0 - places) + high[:, None] * places
    return Ranks(edges, shares, rank_noise, bin_noise / n_rows, found)


def _from_the_right(sums: FloatArray) -> FloatArray:
    """Running minimum from the last column."""
    return np.asarray(np.minimum.accumulate(sums[:, ::-1], axis=1)[:, ::-1])


def _warn_rough(noise: float, n_rows: int) -> None:
    given_up = noise > _HOPELESS
    text = "given up: values are taken to lie evenly" if given_up else "rough"
    warn(
        f"quantiles are {text}. The noise of a rank is {noise:.3g} of the {n_rows} rows; use more "
        "budget or fewer columns",
        UtilityWarning,
    )
