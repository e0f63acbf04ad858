"""Differentially private regression by Huber's loss."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import HuberRegressor

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._residuals import huber_scale, symmetric_outcomes
from skdp.linear_model._robust import RobustRegressor
from skdp.losses import HuberLoss, Loss
from skdp.uncertainty import Outcomes, ReleasedFit

__all__ = ["DPHuberRegressor"]

FloatArray = NDArray[np.float64]


@shared_docs(
    twin="HuberRegressor",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="the residual scale 1",
)
class DPHuberRegressor(RobustRegressor):
    """Linear regression that is robust to outliers of y, with differential privacy.

    Parameters
    ----------
    %(budget)s
    threshold : float, default=1.35
        Size of a residual, in units of the residual scale, from which on it counts linearly;
        above 1. It is what scikit-learn's `HuberRegressor` calls ``epsilon``, a name that is
        taken here by the privacy budget.
    %(y_bounds)s
    alpha : float, default=0.0001
        Strength of the l2 penalty, as in scikit-learn. The intercept is not penalised.
    %(solver)s

    Attributes
    ----------
    %(coefficients)s
    scale_ : float
        Residual scale, in the units of y, found privately.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(robust)s

    There is no ``outliers_``: it would say something of every record. The residual scale is the one
    of Huber's proposal 2 [2]_, as in scikit-learn: it is found once and not refined, so it can be a
    tenth or so away from the twin's, which coefficients hardly notice.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.
    .. [2] P. J. Huber, "Robust Statistics", 1981.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHuberRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=5000)
    >>> y[:250] = 1e6
    >>> model = DPHuberRegressor(epsilon=1.0, y_bounds=(-7, 13)).fit(X, y)
    >>> bool(model.score(X[250:], y[250:]) > 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **RobustRegressor._parameter_constraints,
        "threshold": [Interval(Real, 1, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
    }
    _simulates_targets = True
    threshold: float
    alpha: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        threshold: float = 1.35,
        y_bounds: ArrayLike | None = None,
        alpha: float = 0.0001,
        fit_intercept: bool = True,
        feature_norm: float | None = None,
        feature_bound: float | None = None,
        clip_norm: float | None = None,
        solver: str = "preconditioned-gradient-descent",
        max_iter: int | None = None,
        gram_share: float | None = None,
        ridge_floor: float | None = None,
        learning_rate: float | None = None,
        scale_check_share: float = 0.01,
        neighboring: str = "add_or_remove",
        max_sample_weight: float = 1.0,
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _loss(self, n_outputs: int) -> Loss:
        return HuberLoss(self.threshold)

    def _loss_for(self, shares: FloatArray, unit: float) -> tuple[Loss, float]:
        found = huber_scale(shares, self.threshold)
        self.scale_ = found * unit
        return HuberLoss(self.threshold, found), found

    def _outcomes(self, fit: ReleasedFit) -> Outcomes:
        assert fit.residuals is not None  # every fit releases them
        return symmetric_outcomes(fit.residuals)

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return min(self.alpha * unit, 1e300)

    def _copy_twin(self, X: Any, y: NDArray, weights: NDArray[np.float64] | None) -> Any:
        twin = super()._copy_twin(X, y, weights)
        self.scale_ = float(twin.scale_)
        return twin

    def make_non_private(self) -> HuberRegressor:
        """Scikit-learn's `HuberRegressor` with the same threshold and penalty."""
        return HuberRegressor(
            epsilon=self.threshold, alpha=self.alpha, fit_intercept=self.fit_intercept
        )
