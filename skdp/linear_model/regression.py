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
from skdp.linear_model._least_squares import PrivateLeastSquares

__all__ = ["DPLinearRegression", "DPRidge"]


class DPLinearRegression(MultiOutputMixin, PrivateLeastSquares):
    """Ordinary least squares with differential privacy.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `LinearRegression`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    y_bounds : pair of float, or array-like of shape (n_outputs, 2), default=None
        Public lower and upper bound of y, in its units: its centre and a sixth of its width set
        the location and the scale on which residuals are clipped. None: a tenth of the budget
        or more finds a location and a scale privately, which needs hundreds of rows at
        epsilon 1, and more where it is smaller.
    fit_intercept : bool, default=True
        Whether to learn an intercept. Without one y is not centred.
    feature_norm : float, default=None
        Public norm, in the units of X, of a typical row. While learning, rows are clipped to
        twice this norm. None: ``sqrt(n_features)``, right for standardised features.
    feature_bound : float, default=None
        Public bound, in the units of X, that every single feature is clipped to, while learning
        and in prediction: one extreme value does not decide a fit or a prediction by itself.
        None: 3 to 8 times ``feature_norm / sqrt(n_features)``, standard deviations of
        standardised features; the more records for the budget, the more. ``inf``: none.
    clip_norm : float, default=None
        Largest norm of one record's gradient, in units where a row of norm
        `feature_norm` has norm 1 and y has scale 1. None: planned.
    solver : {"preconditioned-gradient-descent", "gradient-descent"}, \
default="preconditioned-gradient-descent"
        Whether a share of the budget may go to the second moments of the features.
    max_iter : int, default=None
        Number of gradient steps. More steps mean more noise in each. None: planned.
    gram_share : float in [0, 1), default=None
        Share of the solver's budget for the second moments. None: planned.
    ridge_floor : float, default=None
        Least curvature that the preconditioner assumes, in units of its noise. None: planned.
    learning_rate : float, default=None
        Step length. None: planned.
    scale_check_share : float in [0, 1), default=0.01
        Share of the budget for a private count of rows that are much longer or shorter than
        `feature_norm`, which warns about unscaled features. Half as much more counts targets that
        are far outside of their scale or tiny on it. 0 turns both off.
    uncertainty_share : float in [0, 1), default=0.01
        Share of the budget for a private histogram of the sizes of residuals, from which
        `confidence_interval` is made. With several targets none is made. 0 turns it off.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others (twice the noise).
    max_sample_weight : float, default=1.0
        Public bound that `sample_weight` is clipped to, when it is given. The noise is set by it:
        weights that are mostly far smaller are drowned. Given weights, a small share of the budget
        releases their sum and the number of those above zero.
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    n_jobs : int, default=None
        Threads of a pass over the data. None: as many as the linear algebra would use.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercepts.
    n_iter_ : int
        Number of gradient steps.
    privacy_cost_ : PrivacyCost
        What the fit cost.
    releases_ : tuple of Release
        Every noisy value that was released, with its sensitivity and noise.
    plan_ : Plan
        What was planned before the data were touched.
    second_moments_ : ndarray of shape (n_features + 1, n_features + 1)
        Released sums of products of the features and of the constant 1, the last, in the units of
        X, of rows clipped to `feature_norm`; without the constant if there is no intercept. Only
        where the plan has a `gram_share`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
    counts of ill-scaled rows and targets; with weights, their sum and number; without `y_bounds`,
    histograms of y; the second moments of the clipped rows; the clipped gradient sum of every step;
    for one target, a histogram of the sizes of residuals. All are exact sums on a grid with exactly
    rounded Gaussian noise, and several outputs share each release. Public are the shapes of X and
    y, `y_bounds` and all parameters. `predict` uses released values only; `score` compares them
    with targets and is not private.

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


class DPRidge(MultiOutputMixin, PrivateLeastSquares):
    """Least squares with an l2 penalty and differential privacy.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `Ridge`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    y_bounds : pair of float, or array-like of shape (n_outputs, 2), default=None
        Public lower and upper bound of y, in its units: its centre and a sixth of its width set
        the location and the scale on which residuals are clipped. None: a tenth of the budget
        or more finds a location and a scale privately, which needs hundreds of rows at
        epsilon 1, and more where it is smaller.
    alpha : float, default=1.0
        Weight of the squared coefficients against the sum of squared residuals, as in
        scikit-learn. The intercept is not penalised.
    fit_intercept : bool, default=True
        Whether to learn an intercept. Without one y is not centred.
    feature_norm : float, default=None
        Public norm, in the units of X, of a typical row. While learning, rows are clipped to
        twice this norm. None: ``sqrt(n_features)``, right for standardised features.
    feature_bound : float, default=None
        Public bound, in the units of X, that every single feature is clipped to, while learning
        and in prediction: one extreme value does not decide a fit or a prediction by itself.
        None: 3 to 8 times ``feature_norm / sqrt(n_features)``, standard deviations of
        standardised features; the more records for the budget, the more. ``inf``: none.
    clip_norm : float, default=None
        Largest norm of one record's gradient, in units where a row of norm
        `feature_norm` has norm 1 and y has scale 1. None: planned.
    solver : {"preconditioned-gradient-descent", "gradient-descent"}, \
default="preconditioned-gradient-descent"
        Whether a share of the budget may go to the second moments of the features.
    max_iter : int, default=None
        Number of gradient steps. More steps mean more noise in each. None: planned.
    gram_share : float in [0, 1), default=None
        Share of the solver's budget for the second moments. None: planned.
    ridge_floor : float, default=None
        Least curvature that the preconditioner assumes, in units of its noise. None: planned.
    learning_rate : float, default=None
        Step length. None: planned.
    scale_check_share : float in [0, 1), default=0.01
        Share of the budget for a private count of rows that are much longer or shorter than
        `feature_norm`, which warns about unscaled features. Half as much more counts targets that
        are far outside of their scale or tiny on it. 0 turns both off.
    uncertainty_share : float in [0, 1), default=0.01
        Share of the budget for a private histogram of the sizes of residuals, from which
        `confidence_interval` is made. With several targets none is made. 0 turns it off.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others (twice the noise).
    max_sample_weight : float, default=1.0
        Public bound that `sample_weight` is clipped to, when it is given. The noise is set by it:
        weights that are mostly far smaller are drowned. Given weights, a small share of the budget
        releases their sum and the number of those above zero.
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    n_jobs : int, default=None
        Threads of a pass over the data. None: as many as the linear algebra would use.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercepts.
    n_iter_ : int
        Number of gradient steps.
    privacy_cost_ : PrivacyCost
        What the fit cost.
    releases_ : tuple of Release
        Every noisy value that was released, with its sensitivity and noise.
    plan_ : Plan
        What was planned before the data were touched.
    second_moments_ : ndarray of shape (n_features + 1, n_features + 1)
        Released sums of products of the features and of the constant 1, the last, in the units of
        X, of rows clipped to `feature_norm`; without the constant if there is no intercept. Only
        where the plan has a `gram_share`.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
    counts of ill-scaled rows and targets; with weights, their sum and number; without `y_bounds`,
    histograms of y; the second moments of the clipped rows; the clipped gradient sum of every step;
    for one target, a histogram of the sizes of residuals. All are exact sums on a grid with exactly
    rounded Gaussian noise, and several outputs share each release. Public are the shapes of X and
    y, `y_bounds` and all parameters. `predict` uses released values only; `score` compares them
    with targets and is not private.

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
