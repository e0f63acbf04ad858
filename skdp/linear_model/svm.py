"""Differentially private support vector machines: linear, for classes and for numbers."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.svm import LinearSVC, LinearSVR

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.linear_model._classifier import PrivateClassifier
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._residuals import root_mean_square
from skdp.linear_model._robust import SHARPNESS, STEP, RobustRegressor
from skdp.losses import InsensitiveLoss, Loss, SmoothHingeLoss

__all__ = ["DPLinearSVC", "DPLinearSVR"]

FloatArray = NDArray[np.float64]


@shared_docs(twin="LinearSVC", slack="two", deviations="3", residual="margins are not scaled")
class DPLinearSVC(PrivateClassifier):
    """Linear support vector classification with differential privacy.

    Parameters
    ----------
    %(budget)s
    %(classes)s
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The intercept is not penalised
        (by scikit-learn's solver it is, a little).
    %(class_weight)s
    %(solver)s

    Attributes
    ----------
    %(by_class)s
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters, and for a label that is not among `classes`.

    Notes
    -----
    The loss is scikit-learn's default, the squared hinge, for margins from 0 on, and continues
    as a line for negative ones: no record has a gradient longer than its row. Several classes
    are learned one against the rest, as in scikit-learn, but in one joint release.

    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
    counts of ill-scaled rows; with `class_weight`, counts of the classes; otherwise, with weights,
    their sum and number; the matrix of second moments of the clipped rows (not in every plan); the
    clipped gradient sum of every step. All are exact sums on a grid with exactly rounded Gaussian
    noise. Public are the number of rows, the shape of X, `classes` and all parameters. Checks of
    the data's values (missing values, unknown labels) answer with an error, which is not covered.
    `predict` and `decision_function` use released values only; `score` compares them with labels
    and is not private.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLinearSVC(epsilon=1.0, classes=[0, 1]).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.85)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
    }
    _bound_deviations = 3.0
    C: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        classes: ArrayLike | None = None,
        C: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
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
        return SmoothHingeLoss(n_outputs)

    def _l2_penalty(self, unit: float = 1.0) -> float:
        # Twin: half the squared coefficients beside C times the squared hinge, not half of it.
        return min(0.5 / self.C, 1e300)

    def make_non_private(self) -> LinearSVC:
        """Scikit-learn's `LinearSVC` with the same penalty and intercept.

        `max_iter` is not carried over: noisy gradient steps are not those of its solver.
        """
        return LinearSVC(C=self.C, fit_intercept=self.fit_intercept, class_weight=self.class_weight)


@shared_docs(
    twin="LinearSVR",
    slack="eight",
    deviations="3 to 8 (the more records, the more)",
    residual="the loss has slope 1",
)
class DPLinearSVR(RobustRegressor):
    """Linear support vector regression with differential privacy.

    Parameters
    ----------
    %(budget)s
    insensitivity : float, default=0.0
        Size of a residual, in the units of y, up to which it costs nothing. It is what
        scikit-learn's `LinearSVR` calls ``epsilon``, a name that is taken here by the privacy
        budget.
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The intercept is not penalised
        (by scikit-learn's solver it is, a little).
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

    The derivative of the loss rises from 0 to 1 over a quarter of the residual scale, instead of
    at once.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLinearSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=5000)
    >>> model = DPLinearSVR(epsilon=1.0, y_bounds=(-7, 13)).fit(X, y)
    >>> bool(abs(model.coef_ - [1.0, -2.0, 0.5]).max() < 0.2)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **RobustRegressor._parameter_constraints,
        "insensitivity": [Interval(Real, 0, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
    }
    insensitivity: float
    C: float

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        insensitivity: float = 0.0,
        C: float = 1.0,
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
        return InsensitiveLoss(0.0, SHARPNESS)

    def _loss_for(self, shares: FloatArray, unit: float) -> tuple[Loss, float]:
        found = root_mean_square(shares)
        tolerance = self.insensitivity / unit
        return InsensitiveLoss(tolerance, SHARPNESS * found, STEP * found), found

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return min(STEP * unit / self.C, 1e300)

    def make_non_private(self) -> LinearSVR:
        """Scikit-learn's `LinearSVR` with the same tolerance, penalty and intercept.

        Its solver is a random one, here with a fixed seed and enough iterations.
        """
        return LinearSVR(
            epsilon=self.insensitivity,
            C=self.C,
            fit_intercept=self.fit_intercept,
            max_iter=10_000,
            random_state=0,
        )
