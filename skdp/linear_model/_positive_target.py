"""Mean and spread of a target that is not negative."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from skdp._location import find_location, plan_location, warn_location
from skdp._moments import plan_moments, release_moments
from skdp._threads import Workers
from skdp.accounting import PrivacyCost
from skdp.linear_model._sample_weight import Sizes
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

__all__ = ["TargetMean", "find_target_mean", "plan_target_mean"]

FloatArray = NDArray[np.float64]
# Shares of the budget for bounds, when they are not public, and for the moments within them.
_BOUNDS_SHARE, _MOMENTS_SHARE = 0.1, 0.05
# Bounds that are found hold nearly all values; a long tail is above them, and weighs.
_HEADROOM = 4.0
# Standard deviation over mean is taken to be within these.
_VARIATION = (0.05, 50.0)


@dataclass(frozen=True)
class TargetMean:
    """What is known of the target.

    Parameters
    ----------
    mean : float
        Positive.
    variation : float
        Standard deviation over mean.
    largest : float
        Public upper bound over mean; inf without one.
    """

    mean: float
    variation: float
    largest: float


def plan_target_mean(
    budget: PrivacyCost, n_rows: int, *, bounded: bool
) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
    """Releases of `find_target_mean`, and the budget that is left.

    Parameters
    ----------
    budget : PrivacyCost
        All there is.
    n_rows : int
        Declared number of rows.
    bounded : bool
        Whether public bounds of the target are given.
    """
    bounds = 0.0 if bounded else _BOUNDS_SHARE
    shares = [_MOMENTS_SHARE, 1.0 - bounds - _MOMENTS_SHARE, *([] if bounded else [bounds])]
    moments, rest, *first = budget.split(shares)
    located = plan_location(first[0], 1, n_rows) if first else ()
    return (*located, plan_moments(moments, 1, second=True)), rest


def find_target_mean(
    y: FloatArray,
    bounds: tuple[float, float] | None,
    *,
    sizes: Sizes,
    noise: NoiseCore,
    neighboring: str,
    weights: NDArray[np.float32] | None = None,
) -> TargetMean:
    """Private mean and variation.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Finite targets, not negative.
    bounds : pair of float, or None
        Public bounds of y; None: found privately.
    sizes : Sizes
        Numbers of records.
    noise : NoiseCore
        Has the releases of `plan_target_mean` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    weights : ndarray of shape (n_rows,), float32, default=None
        Relative weights of the records.

    Returns
    -------
    found : TargetMean
        The mean is not below the size of its noise.
    """
    column, pool = y[:, None], Workers(1)
    if bounds is None:
        live = column if weights is None else column[weights > 0.0]
        found = find_location(
            live, n_rows=sizes.records, noise=noise, neighboring=neighboring, pool=pool
        )
        remedy = "give public `y_bounds` or a larger budget"
        warn_location(found, sizes.records, noise, "outputs", remedy)
        low, high = np.maximum(found.low, 0.0), np.maximum(_HEADROOM * found.high, 1e-300)
    else:
        low, high = (np.array([float(bound)]) for bound in bounds)
    mean, deviation = release_moments(
        column,
        low,
        high,
        second=True,
        n_rows=sizes.total,
        noise=noise,
        neighboring=neighboring,
        pool=pool,
        weights=weights,
    )
    doubt = noise.sigma("moments") / sizes.total * (high - low) / 2.0
    level = float(max(mean[0], min(doubt[0], high[0])))
    largest = inf if bounds is None else bounds[1] / level
    return TargetMean(level, float(np.clip(deviation[0] / level, *_VARIATION)), largest)
