"""Location and scale of a regression target."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.accounting import PrivacyCost
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease

__all__ = ["TargetScale", "find_target_scale", "plan_target_scale"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TargetScale:
    """Centre and scale of every output.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_outputs,)
        In the units of y.
    """

    centre: FloatArray
    scale: FloatArray

    def forward(self, y: FloatArray) -> FloatArray:
        """Targets in units of the scale, clipped to where squares cannot overflow.

        Parameters
        ----------
        y : ndarray of shape (n_rows, n_outputs)
            Targets.
        """
        with np.errstate(over="ignore"):
            scaled = (y - self.centre) / self.scale
        return np.clip(scaled, -(2.0**40), 2.0**40)


def plan_target_scale(budget: PrivacyCost, n_outputs: int) -> tuple[PlannedRelease, ...]:
    """Releases of a private location and scale."""
    raise NotImplementedError


def find_target_scale(
    y: FloatArray, plan: Plan, noise: NoiseCore, *, neighboring: str, centred: bool
) -> TargetScale:
    """Private location and scale."""
    raise NotImplementedError
