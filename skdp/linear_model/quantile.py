"""Differentially private quantile regression."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import QuantileRegressor

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._residuals import root_mean_square
from skdp.linear_model._robust import SHARPNESS, STEP, RobustRegressor
from skdp.losses import Loss, PinballLoss

__all__ = ["DPQuantileRegressor"]

FloatArray = NDArray[np.float64]


@shared_docs(
    twin="QuantileRegressor",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="the steeper slope is 1",
)
class DPQuantileRegressor(RobustRegressor):
    """Linear regression of a quantile with differential privacy.

    Parameters
    ----------
    %(budget)s
    quantile : float, default=0.5
        The quantile, between 0 and 1; the default is the median.
    %(y_bounds)s
    %(solver)s

    Attributes
    ----------
    %(coefficients)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(robust)s

    There is no penalty: scikit-learn's is the sum of absolute coefficients. The derivative of the
    loss passes from one value to the other over half of the residual scale, instead of at once.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=5000)
    >>> model = DPQuantileRegressor(epsilon=1.0, quantile=0.8, y_bounds=(-7, 13)).fit(X, y)
    >>> bool(0.7 < (y < model.predict(X)).mean() < 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **RobustRegressor._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither")],
    }
    quantile: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        quantile: float = 0.5,
        y_bounds: ArrayLike | None = None,
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
        return PinballLoss(self.quantile, SHARPNESS)

    def _loss_for(self, shares: FloatArray, unit: float) -> tuple[Loss, float]:
        found = root_mean_square(shares)
        return PinballLoss(self.quantile, SHARPNESS * found, STEP * found), 1.0

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return 0.0

    def make_non_private(self) -> QuantileRegressor:
        """Scikit-learn's `QuantileRegressor` of the same quantile, without its l1 penalty."""
        return QuantileRegressor(
            quantile=self.quantile, alpha=0.0, fit_intercept=self.fit_intercept
        )
