"""Weights of records: their public bound, and the private sums that a fit needs of them."""

from dataclasses import dataclass
from math import hypot, inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import WEIGHT_BITS, BoundedSum, ExactTotal, weight_integers
from skdp.accounting import PrivacyCost
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

__all__ = ["Sizes", "check_bound", "find_sizes", "plan_sizes"]

_NAME = "weights"
_SHARE = 0.03
# The number of records may be this much noisier than the sum of their weights.
_ROUGHER = 4.0
# A record changes either coordinate by at most 1, in units of its noise; rounded up.
_SENSITIVITY = nextafter(hypot(1.0, 1.0 / _ROUGHER), inf)
# The sum counts as at least so many standard deviations of its noise.
_LEAST = 3.0


@dataclass(frozen=True)
class Sizes:
    """How many records there are, as far as is known.

    Parameters
    ----------
    total : float
        Sum of the relative weights: each is between 0 and 1.
    records : int
        Number of records that are not null.
    unit : float
        The weight that a relative weight of 1 stands for.
    """

    total: float
    records: int
    unit: float = 1.0


def check_bound(max_sample_weight: float) -> None:
    """Refuse a bound that weights cannot be divided by.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    if not 1e-150 <= max_sample_weight <= 1e150:
        raise ValueError(
            f"max_sample_weight must be between 1e-150 and 1e150, got {max_sample_weight:g}"
        )


def plan_sizes(budget: PrivacyCost) -> tuple[PlannedRelease, PrivacyCost]:
    """The release of `find_sizes`, and the budget that is left."""
    first, rest = budget.split([_SHARE, 1.0 - _SHARE])
    return PlannedRelease(_NAME, _SENSITIVITY, first.mu), rest


def find_sizes(
    weights: NDArray[np.float32], noise: NoiseCore, *, n_rows: int, unit: float
) -> Sizes:
    """Private sum of weights and number of records that have one.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,), float32
        Relative weights on their grid.
    noise : NoiseCore
        Has the release of `plan_sizes` in its plan.
    n_rows : int
        Declared number of rows.
    unit : float
        Bound of the weights.
    """
    exact = [weight_integers(weights).sum(), np.count_nonzero(weights) * 2.0**WEIGHT_BITS]
    total = ExactTotal((2,))
    total.add(np.array(exact))
    groups: tuple[tuple[int, float], ...] = ((1, 1.0), (1, _ROUGHER))
    bounded = BoundedSum(_NAME, total, 2.0**-WEIGHT_BITS, _SENSITIVITY, groups)
    released: Any = noise.release(bounded)
    least = max(1.0, _LEAST * noise.sigma(_NAME))
    known = min(max(float(released[0]), least), n_rows)
    return Sizes(known, round(min(max(float(released[1]), known), n_rows)), unit)
