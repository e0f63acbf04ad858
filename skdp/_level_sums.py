"""Sums over the levels of categorical columns, where the levels are known or must be found.

A level that nobody knows beforehand is a piece of data: that it occurs may tell of one record. A
*thresholded histogram* counts every level that occurs, adds noise, and releases those whose noisy
count reaches a threshold, under their names, in an order that depends on the names only.

**Privacy.** Let a record have one level in each of d columns (missing is a level too), f columns of
which have levels to be found, and let sigma be the standard deviation of the noise of a count, u
the unit that it is rounded to, tau the threshold, a multiple of u. A record that is the only one
with its level in some column makes that level appear with probability

    P(1 + u round(sigma N / u) >= tau) = P(sigma N >= tau - 1 - u / 2)

(1 + u round(x / u) is the multiple of u next to 1 + x, and exceeds tau - u exactly if that is at
least tau - u / 2). The noise of levels is independent, so that any of its levels appears with
probability at most

    delta0 = 1 - Phi((tau - 1 - u / 2) / sigma)^f .

If none does, the outputs with and without the record differ in the counts of levels that others
share, as Gaussian releases of their joint sensitivity do. So the output is, with probability
1 - delta0, that of a mu-GDP mechanism, and with the rest anything: the pair (0, delta0) beside mu,
composed with whatever comes before and after. Under "replace" the old and the new record may each
be alone with their levels; each output is such a mixture by itself, with the same delta0.
(``docs/proof.rst``, Lemma 14, has the details.)

The sums of more values than the count may be released along with it: they appear where it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from skdp._lattice import BoundedSum, ExactTotal, iter_blocks
from skdp.noise import NoiseCore

__all__ = [
    "FoundLevels",
    "LevelCodes",
    "failure",
    "release_levels",
    "threshold",
]

IntArray = NDArray[np.int64]
# Far above the errors of the normal distribution function, far below anything that matters.
_MARGIN = 1.0 + 2.0**-30
_BLOCK_ROWS = 1 << 18


@dataclass(frozen=True)
class LevelCodes:
    """One categorical column.

    Attributes
    ----------
    levels : tuple
        Levels in their order; those that occur, or those that are known.
    codes : ndarray of shape (n_rows,), integer
        Place of every record's level among them, -1 for none.
    known : bool
        Whether the levels are public. All of them are released then.
    """

    levels: tuple[object, ...]
    codes: NDArray[np.integer]
    known: bool = False


@dataclass(frozen=True)
class FoundLevels:
    """What was released of one column.

    Attributes
    ----------
    levels : tuple
        Levels in their order.
    sums : ndarray of shape (n_levels, n_values)
        Noisy sums, the count first.
    """

    levels: tuple[object, ...]
    sums: NDArray[np.float64]


def failure(tau: float, sigma: float, n_columns: int, unit: float = 1.0) -> float:
    """Probability that a level which one record has alone is released, rounded up.

    Parameters
    ----------
    tau : float
        The threshold, a multiple of `unit`.
    sigma : float
        Standard deviation of the noise of a count.
    n_columns : int
        Columns with levels to be found.
    unit : float, default=1.0
        What noise is rounded to.

    Returns
    -------
    delta0 : float
    """
    hidden = n_columns * float(log_ndtr((tau - 1.0 - unit / 2.0) / sigma))
    return min(-float(np.expm1(hidden)) * _MARGIN, 1.0)


def threshold(sigma: float, n_columns: int, delta0: float, unit: float = 1.0) -> float:
    """Least threshold that keeps to a probability of failure.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of a count.
    n_columns : int
        Columns with levels to be found.
    delta0 : float
        Largest `failure`.
    unit : float, default=1.0
        What noise is rounded to.

    Returns
    -------
    tau : float
        A multiple of `unit`, above 1.
    """
    single = -float(np.expm1(log1p(-delta0) / n_columns))
    least = 1.0 + unit / 2.0 - sigma * float(ndtri(single))
    tau = max(ceil(least / unit), ceil(1.0 / unit) + 1) * unit
    while failure(tau, sigma, n_columns, unit) > delta0:
        tau = max(tau + unit, tau * (1.0 + 2.0**-32) // unit * unit)
    return tau


def _totals(column: LevelCodes, values: NDArray[np.float64] | None, one: int) -> IntArray:
    """Exact integer sums of shape (n_levels, n_values) over the records of a column."""
    n_levels = len(column.levels)
    if values is None:
        values = np.zeros((len(column.codes), 0))
    found = np.zeros((n_levels, 1 + values.shape[1]), dtype=np.int64)
    for rows in iter_blocks(len(column.codes), _BLOCK_ROWS):
        # The first bin takes the records without a level.
        codes = column.codes[rows].astype(np.int64) + 1
        found[:, 0] += np.bincount(codes, minlength=n_levels + 1)[1:] * one
        for j, value in enumerate(values[rows].T, start=1):
            # Integers, with sums far below 2**53: exact in any order.
            found[:, j] += np.bincount(codes, value, n_levels + 1)[1:].astype(np.int64)
    return found


def release_levels(
    columns: Sequence[LevelCodes],
    *,
    name: str,
    noise: NoiseCore,
    sensitivity: float,
    delta0: float,
    values: NDArray[np.float64] | None = None,
    bits: int = 0,
    overall: IntArray | None = None,
) -> tuple[list[FoundLevels], NDArray[np.float64]]:
    """Release the counts of levels, and sums of values over their records, as one vector.

    Parameters
    ----------
    columns : sequence of LevelCodes
        The columns.
    name : str
        Name of the planned release.
    noise : NoiseCore
        Has it in its plan.
    sensitivity : float
        Of the whole vector.
    delta0 : float
        Largest probability that a level which one record has alone is released.
    values : ndarray of shape (n_rows, n_values), default=None
        Integers, in units of ``2**-bits``, that are summed by level.
    bits : int, default=0
        Binary places.
    overall : ndarray of shape (n_more,), int64, default=None
        Further sums in the same units, which are released as they are.

    Returns
    -------
    found : list of FoundLevels
        By column.
    overall : ndarray of shape (n_more,)
        The further sums, noisy.
    """
    unit = 2.0**-bits
    totals = [_totals(column, values, 1 << bits) for column in columns]
    more = np.zeros(0, dtype=np.int64) if overall is None else overall
    total = ExactTotal((more.size + sum(t.size for t in totals),))
    total.add(np.concatenate([more, *(t.ravel() for t in totals)]))
    noisy = noise.release(BoundedSum(name, total, unit, sensitivity))
    n_found = sum(not column.known for column in columns)
    tau = threshold(noise.sigma(name), n_found, delta0, unit) if n_found else -inf
    found, start = [], more.size
    for column, exact in zip(columns, totals, strict=True):
        sums = noisy[start : start + exact.size].reshape(exact.shape)
        start += exact.size
        kept = np.arange(len(sums)) if column.known else np.flatnonzero(sums[:, 0] >= tau)
        found.append(FoundLevels(tuple(column.levels[i] for i in kept), sums[kept]))
    return found, noisy[: more.size]
