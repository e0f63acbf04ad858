"""Regressors whose loss needs the scale of the residuals."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._regressor import ScaledRegressor
from skdp.linear_model._residuals import find_residuals, plan_residuals
from skdp.linear_model._sample_weight import Sizes
from skdp.linear_model._target_scale import TargetScale
from skdp.losses import Loss, SquaredLoss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape

__all__ = ["SHARPNESS", "STEP", "RobustRegressor"]

FloatArray = NDArray[np.float64]
# Losses with a corner are made smooth over this many residual scales, and weighted by about the
# reciprocal of the density of the residuals, which gives them the curvature of a squared loss.
SHARPNESS, STEP = 0.25, 2.0


class RobustRegressor(ScaledRegressor):
    """A regressor that finds the scale of its residuals after the first steps.

    Those are steps of the loss given by `_loss`, whose clipped gradients keep outliers from
    deciding the fit. Till then, the penalty is that of residuals of scale 1.
    """

    @abstractmethod
    def _loss_for(self, shares: FloatArray, unit: float) -> tuple[Loss, float]:
        """The loss for residuals of these sizes, and the factor of the penalty.

        Parameters
        ----------
        shares : ndarray
            Of `find_residuals`, in units of the target's scale.
        unit : float
            The target's scale.
        """

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        located, rest = super()._target_releases(shape, budget)
        residuals, rest = plan_residuals(rest)
        return (*located, residuals), rest

    def _learn(
        self,
        rows: BoundedRows,
        targets: NDArray,
        plan: Plan,
        noise: NoiseCore,
        scale: TargetScale,
        sizes: Sizes,
    ) -> tuple[FloatArray, FloatArray]:
        column, unit = targets[:, 0], float(scale.scale[0])
        first_steps = plan.settings["max_iter"] // 3
        found: list[FloatArray] = []

        def adapt(iteration: int, coefficients: FloatArray) -> tuple[Loss, float] | None:
            if iteration != first_steps:
                return None
            found.append(find_residuals(rows, coefficients, column, noise, sizes.total))
            return self._loss_for(found[0], unit)

        theta = self._descend(
            rows,
            column,
            plan,
            noise,
            None,
            sizes=sizes,
            loss=SquaredLoss(),
            l2_penalty=self._l2_penalty(unit),
            adapt=adapt,
        )
        self._released_ = replace(self._released_, residuals=found[0], target_unit=unit)
        return self._in_units(theta, rows)
