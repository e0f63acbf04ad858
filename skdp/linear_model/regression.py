"""Differentially private least squares: linear regression and ridge."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin
from sklearn.linear_model import LinearRegression, Ridge

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._least_squares import PrivateLeastSquares

__all__ = ["DPLinearRegression", "DPRidge"]


@shared_docs(
    twin="LinearRegression",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="y has scale 1",
)
class DPLinearRegression(MultiOutputMixin, PrivateLeastSquares):
    """Ordinary least squares with differential privacy.

    Parameters
    ----------
    %(budget)s
    %(y_bounds_each)s
    %(rows)s
    %(steps)s
    %(scale_check)s
    %(uncertainty)s
    %(common)s

    Attributes
    ----------
    %(outputs)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(least_squares)s

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=5000)
    >>> model = DPLinearRegression(epsilon=1.0, y_bounds=(-7, 13)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _multi_output = True

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
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
        uncertainty_share: float = 0.01,
        neighboring: str = "add_or_remove",
        max_sample_weight: float = 1.0,
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return 0.0

    def make_non_private(self) -> LinearRegression:
        """Scikit-learn's `LinearRegression`."""
        return LinearRegression(fit_intercept=self.fit_intercept)


@shared_docs(
    twin="Ridge",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="y has scale 1",
)
class DPRidge(MultiOutputMixin, PrivateLeastSquares):
    """Least squares with an l2 penalty and differential privacy.

    Parameters
    ----------
    %(budget)s
    %(y_bounds_each)s
    alpha : float, default=1.0
        Weight of the squared coefficients against the sum of squared residuals, as in
        scikit-learn. The intercept is not penalised.
    %(rows)s
    %(steps)s
    %(scale_check)s
    %(uncertainty)s
    %(common)s

    Attributes
    ----------
    %(outputs)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(least_squares)s

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * rng.normal(size=5000)
    >>> model = DPRidge(epsilon=1.0, y_bounds=(-7, 13)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLeastSquares._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
    }
    _multi_output = True
    _flat_single_target = True
    alpha: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        y_bounds: ArrayLike | None = None,
        alpha: float = 1.0,
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
        uncertainty_share: float = 0.01,
        neighboring: str = "add_or_remove",
        max_sample_weight: float = 1.0,
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return self.alpha

    def make_non_private(self) -> Ridge:
        """Scikit-learn's `Ridge` with the same penalty."""
        return Ridge(alpha=self.alpha, fit_intercept=self.fit_intercept)
