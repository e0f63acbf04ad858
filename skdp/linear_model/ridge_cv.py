"""Differentially private ridge regression that chooses its own penalty."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import RidgeCV

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._least_squares import PrivateLeastSquares
from skdp.linear_model._penalty_choice import candidates
from skdp.linear_model._residuals import root_mean_square
from skdp.linear_model._sample_weight import Sizes
from skdp.linear_model._target_scale import TargetScale
from skdp.noise import NoiseCore
from skdp.plan import Plan

__all__ = ["DPRidgeCV"]

FloatArray = NDArray[np.float64]


@shared_docs(
    twin="RidgeCV",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="y has scale 1",
)
class DPRidgeCV(PrivateLeastSquares):
    """Ridge regression that chooses its penalty from what it has released, at no further cost.

    Parameters
    ----------
    %(budget)s
    %(y_bounds)s
    alphas : array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        Candidates for the weight of the squared coefficients against the sum of squared
        residuals, as in scikit-learn: positive. The intercept is not penalised.
    %(rows)s
    %(max_iter)s
    gram_share : float in (0, 1), default=0.2
        Share of the solver's budget for the second moments, without which there is no choice.
    ridge_floor : float, default=None
        Least curvature that is assumed, in units of the second moments' noise. None: planned.
    learning_rate : float, default=None
        Step length. None: planned.
    %(scale_check)s
    uncertainty_share : float in (0, 1), default=0.01
        Share of the budget for a private histogram of the sizes of residuals, from which their
        variance is estimated.
    %(common)s

    Attributes
    ----------
    %(coefficients)s
    alpha_ : float
        The chosen penalty.
    best_score_ : float
        Estimated mean squared error of the chosen model, in the units of y, with a minus sign as
        in scikit-learn. It is made from released values and as noisy as they are.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    See Also
    --------
    DPRidge : With a given penalty, several targets and confidence intervals.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases
    what `DPRidge` does: counts of ill-scaled rows and targets; with weights, their sum and number;
    without `y_bounds`, histograms of y; the second moments of the clipped rows; the clipped
    gradient sum of every step; a histogram of the sizes of residuals. All are exact sums on a grid
    with exactly rounded Gaussian noise. Public are the shapes of X and y, `y_bounds` and all
    parameters. The choice of `alpha_` reads released values only: it is post-processing, for any
    number of candidates. `predict` uses released values only; `score` compares them with targets
    and is not private.

    The descent runs with the least of `alphas`. Second moments and gradients together give noisy
    products of X and y, hence the solution for every other penalty; the one with the least error
    by Stein's unbiased risk estimate [2]_ is taken, which counts the noise of the mechanism beside
    that of y. There is no cross-validation, in spite of the name, which is that of the twin.
    One target only, and no confidence intervals: they would be of a fit with a given penalty.

    The choice gains little. Over four sets of 768 to 1,599 rows (8 fits each, nine candidates) the
    mean R2 was .0008, .0001 and .0002 above that of the least penalty of the same fits at epsilon
    .3, 1 and 3. That of `DPRidge` with ``alpha=1``, which may do without second moments, was .005
    and .003 higher at .3 and 1, and the same at 3. Where y was mostly noise (40 features, 2,000
    rows) the choice gained .004 and .007 at .3 and 1, and was above `DPRidge`.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.
    .. [2] C. M. Stein, "Estimation of the Mean of a Multivariate Normal Distribution", Annals of
       Statistics, 1981.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=5000)
    >>> model = DPRidgeCV(epsilon=1.0, alphas=[1.0, 1e5], y_bounds=(-7, 13)).fit(X, y)
    >>> model.alpha_
    1.0
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLeastSquares._parameter_constraints,
        "alphas": ["array-like"],
        "gram_share": [Interval(Real, 0, 1, closed="neither")],
        "uncertainty_share": [Interval(Real, 0, 1, closed="neither")],
    }
    del _parameter_constraints["solver"]
    solver = "preconditioned-gradient-descent"
    _simulates_targets = False
    _no_intervals = "its penalty is chosen by the data, and they are for DPRidge with a given alpha"
    alphas: ArrayLike

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        y_bounds: ArrayLike | None = None,
        alphas: ArrayLike = (0.1, 1.0, 10.0),
        fit_intercept: bool = True,
        feature_norm: float | None = None,
        feature_bound: float | None = None,
        clip_norm: float | None = None,
        max_iter: int | None = None,
        gram_share: float = 0.2,
        ridge_floor: float | None = None,
        learning_rate: float | None = None,
        scale_check_share: float = 0.01,
        uncertainty_share: float = 0.01,
        neighboring: str = "add_or_remove",
        max_sample_weight: float = 1.0,
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _candidates(self) -> FloatArray:
        """The penalties, checked."""
        message = "alphas must be a list of positive finite numbers"
        try:
            alphas = np.asarray(self.alphas, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(message) from None
        if alphas.ndim != 1 or not len(alphas):
            raise ValueError(f"{message}, got shape {alphas.shape}")
        wrong = alphas[~(np.isfinite(alphas) & (alphas > 0.0))]
        if wrong.size:
            raise ValueError(f"{message}, got {wrong[0]:g}")
        return alphas

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        self._candidates()
        return budget

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return float(self._candidates().min())

    def _learn(
        self,
        rows: BoundedRows,
        targets: NDArray,
        plan: Plan,
        noise: NoiseCore,
        scale: TargetScale,
        sizes: Sizes,
    ) -> tuple[FloatArray, FloatArray]:
        super()._learn(rows, targets, plan, noise, scale, sizes)
        # From here on rows give their units only.
        fit, alphas = self._released_, self._candidates()
        assert fit.residuals is not None  # its share is positive
        penalised = np.arange(rows.n_columns) < fit.n_features
        # As of the descent, which ran with the least of them.
        penalties = np.minimum(alphas / sizes.unit, 1e300) * fit.scale**2
        found = candidates(
            fit,
            penalties[:, None] * penalised,
            variance=root_mean_square(fit.residuals) ** 2,
            n_rows=sizes.total,
        )
        best = int(np.argmin(found.errors))
        self.alpha_ = float(alphas[best])
        self.best_score_ = -float(found.errors[best]) * float(scale.scale[0]) ** 2
        return self._in_units(found.coefficients[best], rows)

    def _copy_twin(self, X: Any, y: NDArray, weights: NDArray[np.float64] | None) -> Any:
        twin = super()._copy_twin(X, y, weights)
        self.alpha_, self.best_score_ = float(twin.alpha_), float(twin.best_score_)
        return twin

    def make_non_private(self) -> RidgeCV:
        """Scikit-learn's `RidgeCV` with the same candidates."""
        return RidgeCV(alphas=self.alphas, fit_intercept=self.fit_intercept)
