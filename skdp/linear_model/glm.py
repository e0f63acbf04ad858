"""Differentially private generalised linear models with a log link."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._log_link import LogLinkRegressor

__all__ = ["DPGammaRegressor", "DPPoissonRegressor", "DPTweedieRegressor"]

_WORDS = {
    "slack": "two (by plain descent, eight)",
    "deviations": "5",
    "residual": "the planned clip is 1",
}


@shared_docs(twin="PoissonRegressor", **_WORDS)
class DPPoissonRegressor(LogLinkRegressor):
    """Poisson regression of counts, with differential privacy.

    Parameters
    ----------
    %(budget)s
    %(positive)s
    %(solver)s

    Attributes
    ----------
    %(coefficients)s
    %(mean)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data, negative targets among them.

    Notes
    -----
    %(log_link)s

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> expected = np.exp(1.0 + X @ [0.5, -0.5, 0.2])
    >>> y = rng.poisson(expected)
    >>> model = DPPoissonRegressor(epsilon=3.0, alpha=0.01, y_bounds=(0, 30)).fit(X, y)
    >>> bool(abs(model.coef_ - [0.5, -0.5, 0.2]).max() < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float = 1.0,
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

    def _power(self) -> float:
        return 1.0

    def make_non_private(self) -> PoissonRegressor:
        """Scikit-learn's `PoissonRegressor` with the same penalty and intercept."""
        return PoissonRegressor(alpha=self.alpha, fit_intercept=self.fit_intercept)


@shared_docs(twin="GammaRegressor", **_WORDS)
class DPGammaRegressor(LogLinkRegressor):
    """Regression of positive values with a gamma deviance, with differential privacy.

    Parameters
    ----------
    %(budget)s
    %(positive)s
    %(solver)s

    Attributes
    ----------
    %(coefficients)s
    %(mean)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data, non-positive targets among them.

    Notes
    -----
    %(log_link)s

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> expected = np.exp(1.0 + X @ [0.5, -0.5, 0.2])
    >>> y = rng.gamma(2.0, expected / 2.0)
    >>> model = DPGammaRegressor(epsilon=3.0, alpha=0.01, y_bounds=(0, 30)).fit(X, y)
    >>> bool(abs(model.coef_ - [0.5, -0.5, 0.2]).max() < 0.2)
    True
    """

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float = 1.0,
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

    def _power(self) -> float:
        return 2.0

    def make_non_private(self) -> GammaRegressor:
        """Scikit-learn's `GammaRegressor` with the same penalty and intercept."""
        return GammaRegressor(alpha=self.alpha, fit_intercept=self.fit_intercept)


@shared_docs(twin="TweedieRegressor", **_WORDS)
class DPTweedieRegressor(LogLinkRegressor):
    """Regression with a Tweedie deviance and a log link, with differential privacy.

    Parameters
    ----------
    %(budget)s
    power : float, default=1.5
        Power of the mean that the variance is proportional to, from 1 to 3: 1 is Poisson, 2
        gamma, 3 inverse Gaussian; in between, zeros mixed with positive values.
    %(positive)s
    %(solver)s

    Attributes
    ----------
    %(coefficients)s
    %(mean)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data, negative targets among them.

    Notes
    -----
    %(log_link)s

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> expected = np.exp(1.0 + X @ [0.5, -0.5, 0.2])
    >>> y = rng.gamma(2.0, expected / 2.0) * rng.integers(0, 2, 5000) * 2.0
    >>> model = DPTweedieRegressor(epsilon=3.0, alpha=0.01, y_bounds=(0, 30)).fit(X, y)
    >>> bool(abs(model.coef_ - [0.5, -0.5, 0.2]).max() < 0.2)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **LogLinkRegressor._parameter_constraints,
        "power": [Interval(Real, 1, 3, closed="both")],
    }
    power: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        power: float = 1.5,
        alpha: float = 1.0,
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

    def _power(self) -> float:
        return float(self.power)

    def make_non_private(self) -> TweedieRegressor:
        """Scikit-learn's `TweedieRegressor` with the same penalty and intercept."""
        return TweedieRegressor(
            power=self.power, alpha=self.alpha, fit_intercept=self.fit_intercept, link="log"
        )
