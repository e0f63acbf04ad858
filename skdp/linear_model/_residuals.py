"""A private histogram of residuals, and the scale that follows from it."""

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import WEIGHT_BITS, BoundedSum, weight_integers
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease, relation_factor
from skdp.uncertainty import Outcomes, SymmetricOutcomes

__all__ = [
    "find_residuals",
    "huber_scale",
    "plan_residuals",
    "root_mean_square",
    "symmetric_outcomes",
]

FloatArray = NDArray[np.float64]
_NAME = "residuals"
_SHARE = 0.05
# Standard deviations of the noise of a bin that the rows must be.
_HOPELESS = 12.0
# Sizes from 2**-12 to 2**4 target scales in quarters of an octave, and one bin at either end.
_LOWEST, _HIGHEST, _PER_OCTAVE = -12, 4, 4
_BINS = (_HIGHEST - _LOWEST) * _PER_OCTAVE + 2
# Representative sizes: the middle of each bin on the scale of octaves.
SIZES = np.exp2(_LOWEST + (np.arange(_BINS) - 0.5) / _PER_OCTAVE)


def plan_residuals(
    budget: PrivacyCost, share: float = _SHARE
) -> tuple[PlannedRelease, PrivacyCost]:
    """The release of the histogram, for a share of the budget, and the budget that is left."""
    first, rest = budget.split([share, 1.0 - share])
    return PlannedRelease(_NAME, _sensitivity(budget.neighboring), first.mu), rest


def _sensitivity(neighboring: str) -> float:
    return relation_factor(neighboring, "nonnegative")


def _bins(error: FloatArray) -> NDArray[np.intp]:
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        place = np.log2(np.abs(error))
    place -= _LOWEST
    place *= _PER_OCTAVE
    place = np.floor(place, out=place) + 1.0
    place[np.isnan(place)] = _BINS - 1.0
    return np.clip(place, 0.0, _BINS - 1.0, out=place).astype(np.intp)


def find_residuals(
    rows: BoundedRows, coefficients: FloatArray, targets: NDArray, noise: NoiseCore, n_rows: float
) -> FloatArray:
    """Shares of the records, by weight, whose residuals have the sizes `SIZES`.

    Parameters
    ----------
    rows : BoundedRows
        The data.
    coefficients : ndarray of shape (n_columns,)
        Released iterate on the grid.
    targets : ndarray of shape (n_rows,)
        Targets in units of their scale.
    noise : NoiseCore
        Has the release of `plan_residuals` in its plan.
    n_rows : float
        Declared number of rows, or the sum of their weights.

    Returns
    -------
    shares : ndarray
        Not negative; they add up to 1.
    """
    sigma = noise.sigma(_NAME)

    def share(predictor: FloatArray, live: NDArray[np.bool_], part: slice) -> FloatArray:
        error = (predictor - targets[part])[live]
        if rows.weights is None:
            return np.bincount(_bins(error), minlength=_BINS).astype(np.float64)
        weights = weight_integers(rows.weights[part])[live]
        return np.bincount(_bins(error), weights, minlength=_BINS).astype(np.float64)

    total = rows.predictor_sum(share, coefficients, (_BINS,))
    unit = 1.0 if rows.weights is None else 2.0**-WEIGHT_BITS
    counts = noise.release(BoundedSum(_NAME, total, unit, _sensitivity(rows.neighboring)))
    # Isolated bins that do not rise above the noise would add up over many of them.
    smooth = np.convolve(counts, np.ones(3), "same") / np.sqrt(3.0)
    counts = np.where(smooth > 2.0 * sigma, np.maximum(counts, 0.0), 0.0)
    held = counts.sum()
    if n_rows < _HOPELESS * sigma or held < 0.5 * n_rows:
        # Noise drowned them: the scale that the targets came with.
        return np.asarray(np.isclose(SIZES, 2.0 ** (0.5 / _PER_OCTAVE)), dtype=np.float64)
    return counts / held


def symmetric_outcomes(shares: FloatArray) -> Outcomes:
    """Targets of simulated rows, with errors of released sizes and of either sign.

    Parameters
    ----------
    shares : ndarray
        From `find_residuals`.
    """
    edges = _LOWEST + (np.arange(_BINS + 1) - 1.0) / _PER_OCTAVE
    places = np.concatenate([[0.0], np.cumsum(shares)])
    return SymmetricOutcomes(lambda level: np.exp2(np.interp(level, places, edges)))


def root_mean_square(shares: FloatArray) -> float:
    """Root mean square of residuals, those cut that are beyond three times their median size."""
    median = float(SIZES[np.searchsorted(np.cumsum(shares), 0.5)])
    return float(np.sqrt(np.minimum(SIZES, 3.0 * median) ** 2 @ shares))


def huber_scale(shares: FloatArray, threshold: float) -> float:
    """Scale of residuals that goes with Huber's loss: the mean of min(r / scale, t)**2 is 1.

    Parameters
    ----------
    shares : ndarray
        From `find_residuals`.
    threshold : float
        The t above, greater than 1.

    Returns
    -------
    scale : float
        In the units of the residuals.

    References
    ----------
    .. [1] P. J. Huber, "Robust Statistics", 1981, section 7.7 (proposal 2).
    """

    def excess(scale: float) -> float:
        return float(np.minimum(SIZES / scale, threshold) ** 2 @ shares) - 1.0

    low, high = float(SIZES[0]), float(SIZES[-1])
    for _ in range(60):  # excess falls with the scale
        middle = np.sqrt(low * high)
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return float(high)
