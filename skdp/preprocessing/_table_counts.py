"""What is released of a table, and the first of the two vectors: its counts."""

from collections.abc import Mapping, Sequence
from math import ceil, inf, nextafter, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp._histograms import column_sensitivity
from skdp._level_sums import LevelCodes, release_levels
from skdp._moments import plan_moments
from skdp.accounting import PrivacyCost
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease
from skdp.preprocessing._levels import keys_of
from skdp.preprocessing._magnitudes import N_BINS, Magnitude, count_octaves, read_magnitude
from skdp.preprocessing._table_columns import LevelColumn, binary_column, coded, level_column
from skdp.preprocessing._table_moments import Scale
from skdp.preprocessing._table_twin import order_of
from skdp.preprocessing.schema import Binary, Categorical, Column, Numeric

__all__ = ["Found", "plan_table", "release_counts"]

# Shares of mu^2: of the counts, where they find the magnitudes of numbers; else of every column
# with levels, against one for a column of numbers.
_COUNTS_SHARE, _LEVEL_SHARE = 0.75, 0.5
# With public bounds magnitudes are looked for only if rows are that many times the noise that one
# histogram of all columns would have if it took the whole budget: below, the bounds know more.
_MAGNITUDES_PAY = 14.0


class Found(NamedTuple):
    """Where a column of numbers lies.

    Attributes
    ----------
    scale : Scale
        The scale on which it is standardised.
    magnitude : Magnitude
        Its window, after the scale's anchor is subtracted.
    guessed : bool
        Whether mean and deviation of the magnitude are guesses made of counts.
    """

    scale: Scale
    magnitude: Magnitude
    guessed: bool


def plan_table(
    kinds: Sequence[Column], n_rows: int, budget: PrivacyCost
) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
    """Releases of a table, and what its numbers are found by.

    Parameters
    ----------
    kinds : sequence of kinds
        Kind of every column.
    n_rows : int
        Declared number of rows.
    budget : PrivacyCost
        What they may cost together.

    Returns
    -------
    releases : tuple of PlannedRelease
    settings : dict
        ``uses_bounds``: whether numbers with public bounds are found by these alone.
    """
    n_numbers = sum(isinstance(kind, Numeric) for kind in kinds)
    n_levels = sum(isinstance(kind, Categorical | Binary) for kind in kinds)
    n_columns = n_numbers + n_levels
    if not n_columns:
        return (), {"uses_bounds": False}
    neighboring = budget.neighboring
    gaussian = PrivacyCost(budget.gaussian_mu, neighboring, budget.unit, budget.reference_delta)
    n_binaries = sum(isinstance(kind, Binary) for kind in kinds)
    everything = column_sensitivity(n_columns, neighboring)
    uses_bounds = n_rows * gaussian.mu < _MAGNITUDES_PAY * everything
    n_magnitudes = sum(
        isinstance(kind, Numeric) and not (uses_bounds and kind.bounds is not None)
        for kind in kinds
    )
    n_counted = n_levels + n_magnitudes
    first = second = gaussian
    if n_counted and n_numbers:
        share = _COUNTS_SHARE if n_magnitudes else _LEVEL_SHARE * n_levels / n_columns
        first, second = gaussian.split([share, 1.0 - share])
    releases: list[PlannedRelease] = []
    if n_counted:
        finds = any(isinstance(k, Categorical) and k.categories is None for k in kinds)
        sensitivity = _sensitivity(n_counted - n_binaries, n_binaries, neighboring)
        delta0 = budget.delta0 if finds else 0.0
        releases.append(PlannedRelease("counts", sensitivity, first.mu, delta0=delta0))
    if n_numbers:
        releases.append(plan_moments(second, n_numbers, second=True))
    return tuple(releases), {"uses_bounds": bool(uses_bounds)}


def _sensitivity(n_histograms: int, n_binaries: int, neighboring: str) -> float:
    """Joint sensitivity: two records differ by one in the single count of a binary column."""
    if neighboring == "add_or_remove":
        return column_sensitivity(n_histograms + n_binaries, neighboring)
    return nextafter(sqrt(2 * n_histograms + n_binaries), inf)


def release_counts(
    raw: Sequence[Any],
    kinds: Sequence[Column],
    numbers: Mapping[int, NDArray[np.float64]],
    plan: Plan,
    noise: NoiseCore,
    *,
    min_frequency: float | None,
) -> tuple[list[LevelColumn], dict[int, Found]]:
    """Release the counts of a table.

    Parameters
    ----------
    raw : sequence of columns
        The table.
    kinds : sequence of kinds
        Kind of every column.
    numbers : mapping of int to ndarray
        The columns of numbers, by their place.
    plan : Plan
        Has the release, unless there is nothing to count.
    noise : NoiseCore
        Of this plan.
    min_frequency : int, float or None
        Least count or share of a level with an indicator of its own.

    Returns
    -------
    levels : list of LevelColumn
        Binary columns, those with given categories, those with found ones.
    found : dict of int to Found
        Where the columns of numbers lie.
    """
    places = [j for j, kind in enumerate(kinds) if isinstance(kind, Categorical | Binary)]
    places.sort(key=lambda j: (order_of(kinds[j]), j))
    found = {}
    for j in numbers:
        bounds, anchor = _bounds(kinds[j]), _anchor(kinds[j])
        if bounds is not None and plan.settings["uses_bounds"]:
            window = Magnitude(*_moved(bounds, anchor), None, 0.0, 1.0, False, True)
            found[j] = Found(Scale(anchor), window, False)
    counted = [j for j in numbers if j not in found]
    if not (places or counted):
        return [], found
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        octaves = [count_octaves(numbers[j] - _anchor(kinds[j])) for j in counted]
    planned = plan.releases[0]
    released, more = release_levels(
        [_codes(raw[j], kinds[j]) for j in places],
        name=planned.name,
        noise=noise,
        sensitivity=planned.sensitivity,
        delta0=planned.delta0,
        overall=np.concatenate([np.zeros(0, dtype=np.int64), *octaves]),
    )
    n_rows, sigma = plan.shape.n_rows, planned.sigma
    for j, noisy in zip(counted, more.reshape(-1, N_BINS), strict=True):
        bounds, anchor = _bounds(kinds[j]), _anchor(kinds[j])
        moved = None if bounds is None else _moved(bounds, anchor)
        magnitude = read_magnitude(
            noisy, n_rows=n_rows, sigma=sigma, bounds=moved, is_anchored=anchor != 0.0
        )
        found[j] = Found(Scale(anchor, magnitude.unit), magnitude, True)
    # A share of the records, or their number.
    least = ceil(min_frequency * (n_rows if min_frequency < 1 else 1)) if min_frequency else 0
    levels = []
    for j, column in zip(places, released, strict=True):
        kind, counts = kinds[j], column.sums[:, 0]
        if isinstance(kind, Binary):
            keys = keys_of(kind.values)
            levels.append(binary_column(j, keys, counts[0], n_rows=n_rows, sigma=sigma))
        else:
            levels.append(
                level_column(j, column.levels, counts, n_rows=n_rows, sigma=sigma, least=least)
            )
    return levels, {j: found[j] for j in numbers}


def _bounds(kind: Column) -> tuple[float, float] | None:
    return kind.bounds if isinstance(kind, Numeric) else None


def _anchor(kind: Column) -> float:
    """The bound that is nearest to zero, where it is far from it for the width of the bounds."""
    low, high = _bounds(kind) or (0.0, 0.0)
    far = (high / 2.0 - low / 2.0) / 2.0
    return float(low if low > far else high if high < -far else 0.0)


def _moved(bounds: tuple[float, float], anchor: float) -> tuple[float, float]:
    return float(bounds[0]) - anchor, float(bounds[1]) - anchor


def _codes(column: Any, kind: Column) -> LevelCodes:
    if isinstance(kind, Binary):
        return coded(column, keys_of(kind.values)[1:])
    assert isinstance(kind, Categorical)
    return coded(column, None if kind.categories is None else keys_of(kind.categories))
