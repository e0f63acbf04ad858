"""The columns of a mixed table after their statistics were released: how each is transformed."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._level_sums import LevelCodes
from skdp._validation import without_data
from skdp.preprocessing._levels import array_of, levels_of, places
from skdp.preprocessing._table_moments import Scale

__all__ = [
    "LevelColumn",
    "NumberColumn",
    "binary_column",
    "coded",
    "level_column",
    "number_values",
]

FloatArray = NDArray[np.float64]
# Least variance by which an indicator is divided: that of a share of a twentieth. Rarer levels
# would be large where they occur, and little else is known of them.
_LEAST_VARIANCE = 0.05 * 0.95
_INFREQUENT = "infrequent_sklearn"
# Records of no level shown have an indicator if they are that many deviations of the noise.
_SURE = 3.0


def _numbers(column: Any) -> FloatArray:
    if getattr(column.dtype, "kind", "f") in "Mm":
        raise TypeError("float() argument must be a number, not a date or a duration")
    if isinstance(column, np.ndarray):
        found = column.astype(np.float64)
    elif hasattr(column.dtype, "is_numeric"):  # polars
        found = np.array(column.cast(float).to_numpy(), dtype=np.float64)
    else:
        found = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(found).any():
        raise ValueError("Input X contains infinity")
    return found


def number_values(column: Any) -> FloatArray:
    """A column of numbers as float64, NaN where a value is missing.

    Raises
    ------
    TypeError, ValueError
        If there are other values, or infinite ones; the message holds none.
    """
    return without_data(_numbers, column)


@dataclass(frozen=True)
class NumberColumn:
    """A standardised number, and an indicator of missing values where there are some.

    Attributes
    ----------
    place : int
        Which column of X it is.
    scale : Scale
        Where it is standardised.
    mean, deviation : float
        Released, on that scale.
    missing : float
        Released share of missing values; 0 for no indicator.
    """

    place: int
    scale: Scale
    mean: float
    deviation: float
    missing: float

    def transform(self, values: FloatArray) -> FloatArray:
        """The standardised numbers, 0 (the mean) where they are missing."""
        with np.errstate(all="ignore"):
            found = (self.scale(values) - self.mean) / self.deviation
        largest = np.finfo(np.float64).max
        return np.nan_to_num(found, copy=False, nan=0.0, posinf=largest, neginf=-largest)

    def indicate(self, values: FloatArray) -> FloatArray:
        """The standardised indicator of missing values."""
        return _standardised(np.isnan(values).astype(np.float64), self.missing)


def _standardised(indicator: FloatArray, share: FloatArray | float) -> FloatArray:
    variance = np.maximum(np.multiply(share, np.subtract(1.0, share)), _LEAST_VARIANCE)
    return np.asarray((indicator - share) / np.sqrt(variance))


@dataclass(frozen=True)
class LevelColumn:
    """Standardised indicators of levels.

    Attributes
    ----------
    place : int
        Which column of X it is.
    keys : tuple
        Levels with an indicator of their own.
    shares : ndarray of shape (n_levels,) or (n_levels + 1,)
        Their released shares of the records, and that of the others where they have an indicator.
    none : tuple
        Levels that are known to be none of them; only of binary columns, where any further value
        counts as missing.
    """

    place: int
    keys: tuple[Any, ...]
    shares: FloatArray
    none: tuple[Any, ...] = ()

    @property
    def has_rest(self) -> bool:
        """Whether all other levels together have an indicator."""
        return len(self.shares) > len(self.keys)

    def transform(self, column: Any) -> FloatArray:
        """Standardised indicators of shape (n_rows, n_indicators)."""
        codes = places(levels_of(column), (*self.keys, *self.none))
        width = len(self.shares)
        n_keys = len(self.keys)
        if self.has_rest:
            codes = np.where(codes < 0, n_keys, codes)
        indicators = np.zeros((len(codes), width))
        rows = np.flatnonzero((codes >= 0) & (codes < width))
        indicators[rows, codes[rows]] = 1.0
        found = _standardised(indicators, self.shares)
        if self.none:  # missing, for a binary column
            found[codes < 0] = 0.0
        return found

    def names(self, name: str) -> list[str]:
        """Names of the indicators."""
        values = array_of(self.keys).tolist() if self.keys else []
        found = [f"{name}_{value}" for value in values]
        return [*found, f"{name}_{_INFREQUENT}"] if self.has_rest else found


def coded(column: Any, keys: Sequence[Any] | None) -> LevelCodes:
    """Levels of a column: those that occur, or the places among public ones."""
    found = levels_of(column)
    if keys is None:
        return found
    return LevelCodes(tuple(keys), places(found, keys), known=True)


def level_column(
    place: int,
    keys: Sequence[Any],
    counts: FloatArray,
    *,
    n_rows: int,
    sigma: float,
    least: int,
) -> LevelColumn:
    """Indicators of a categorical column from the noisy counts of its levels.

    Parameters
    ----------
    place : int
        Which column of X it is.
    keys : sequence of Key
        Levels, given or found.
    counts : ndarray of shape (n_levels,)
        Their noisy counts.
    n_rows : int
        Declared number of rows.
    sigma : float
        Standard deviation of the noise of a count.
    least : int
        Least noisy count of a level with an indicator of its own.
    """
    kept = np.flatnonzero(counts >= least) if least > 0 else np.arange(len(keys))
    found = counts[kept]
    rest = n_rows - found.sum()
    # All levels alike, as far as the noise does not tell otherwise.
    even = 1.0 / max(len(keys), 1)
    believed = 1.0 / (1.0 + (sigma / (even * n_rows)) ** 2)
    shares = np.clip(believed * found / n_rows + (1.0 - believed) * even, 0.0, 1.0)
    if len(kept) == 0 or rest > _SURE * sigma * sqrt(len(kept)):
        shares = np.append(shares, min(max(rest / n_rows, 0.0), 1.0))
    return LevelColumn(place, tuple(keys[i] for i in kept.tolist()), shares)


def binary_column(
    place: int, keys: Sequence[Any], count: float, *, n_rows: int, sigma: float
) -> LevelColumn:
    """Indicator of the second value of a binary column, from its noisy count."""
    believed = 1.0 / (1.0 + (2.0 * sigma / n_rows) ** 2)
    share = believed * count / n_rows + (1.0 - believed) / 2.0
    return LevelColumn(place, (keys[1],), np.array([min(max(share, 0.0), 1.0)]), none=(keys[0],))
