"""What private least squares models share: residuals are released for intervals and choices."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._regressor import ScaledRegressor
from skdp.linear_model._residuals import find_residuals, plan_residuals, symmetric_outcomes
from skdp.linear_model._sample_weight import Sizes
from skdp.linear_model._target_scale import TargetScale
from skdp.losses import Loss, SquaredLoss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.uncertainty import Outcomes, ReleasedFit

__all__ = ["PrivateLeastSquares"]

FloatArray = NDArray[np.float64]


class PrivateLeastSquares(ScaledRegressor):
    """Least squares, for one target with a private histogram of residuals."""

    _parameter_constraints: dict[str, Any] = {
        **ScaledRegressor._parameter_constraints,
        "uncertainty_share": [Interval(Real, 0, 1, closed="left")],
    }
    _simulates_targets = True
    uncertainty_share: float

    def _loss(self, n_outputs: int) -> Loss:
        return SquaredLoss()

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        located, rest = super()._target_releases(shape, budget)
        if shape.n_outputs > 1 or not self.uncertainty_share:
            return located, rest
        residuals, rest = plan_residuals(rest, self.uncertainty_share)
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
        result = super()._learn(rows, targets, plan, noise, scale, sizes)
        if plan.shape.n_outputs == 1:
            unit, shares = float(scale.scale[0]), None
            if self.uncertainty_share:
                theta = rows.round_coefficients(self._released_.descent.coefficients)
                shares = find_residuals(rows, theta, targets[:, 0], noise, sizes.total)
            self._released_ = replace(self._released_, residuals=shares, target_unit=unit)
        return result

    def _outcomes(self, fit: ReleasedFit) -> Outcomes:
        if fit.descent.coefficients.ndim == 2:
            raise ValueError("intervals are for one target; fit one model for each")
        if fit.residuals is None:
            raise ValueError(
                "intervals need the sizes of residuals, which this fit did not release: fit with "
                "uncertainty_share=0.02"
            )
        return symmetric_outcomes(fit.residuals)
