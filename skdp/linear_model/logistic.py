"""Differentially private logistic regression, binary and multinomial."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from dataclasses import replace
from math import sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._classifier import PrivateClassifier
from skdp.linear_model._docs import shared_docs
from skdp.linear_model._shapes import SHAPES, count_values, counts_pay, plan_shapes
from skdp.losses import LogisticLoss, Loss, SoftmaxLoss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.uncertainty import BinaryOutcomes, ClassOutcomes, Outcomes, ReleasedFit

__all__ = ["DPLogisticRegression"]


@shared_docs(
    twin="LogisticRegression", slack="two", deviations="3", residual="residuals are not scaled"
)
class DPLogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy.

    Parameters
    ----------
    %(budget)s
    %(classes)s
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The intercept is not penalised.
    %(class_weight)s
    %(rows)s
    %(steps)s
    %(scale_check)s
    uncertainty_share : float in [0, 1), default=0.01
        Share of the budget for private counts of the values of each feature by size, from which
        `confidence_interval` learns their shape. None are made where there would be no intervals
        (without second moments, or with class weights), and of more than 16 million values.
        0 turns them off, and intervals take features to be normal.
    %(common)s

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
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, and (epsilon, delta)-DP with the mu of
    `privacy_cost_`. It releases: counts of ill-scaled rows; with `class_weight`, counts of the
    classes; otherwise, with weights, their sum and number; the matrix of second moments of the
    clipped rows (not in every plan) and with it counts of values by size; the clipped gradient sum
    of every step. All are exact sums on a grid with exactly rounded Gaussian noise. Public are the
    number of rows, the shape of X, `classes` and all parameters. Checks of the data's values
    (missing values, unknown labels) answer with an error, which is not covered. `predict` and its
    kin use released values only; `score` compares them with labels and is not private.

    All classes are learned in one joint release; there is no split of epsilon over them.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.
    .. [2] D. Böhning, "Multinomial logistic regression algorithm", AISM, 1992.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.9)
    True
    >>> model.privacy_cost_
    PrivacyCost(mu=0.268051, epsilon=1 at delta=1e-05, neighboring='add_or_remove')
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="right")],
        "uncertainty_share": [Interval(Real, 0, 1, closed="left")],
    }
    _bound_deviations = 3.0
    _simulates_targets = True
    C: float
    uncertainty_share: float

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
        uncertainty_share: float = 0.01,
        neighboring: str = "add_or_remove",
        max_sample_weight: float = 1.0,
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self._store(locals())

    def _loss(self, n_outputs: int) -> Loss:
        return LogisticLoss() if n_outputs == 1 else SoftmaxLoss()

    def _l2_penalty(self, unit: float = 1.0) -> float:
        return min(1.0 / self.C, 1e300)

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        counted, rest = super()._target_releases(shape, budget)
        if counted or not (self.uncertainty_share and counts_pay(shape)):
            return counted, rest
        shapes, left = plan_shapes(rest, shape, self.uncertainty_share)
        _, settings = self._plan_solver(shape, left)
        return ((shapes,), left) if settings.gram_share else ((), rest)

    def _look(self, X: Any, rows: BoundedRows, plan: Plan, noise: NoiseCore) -> None:
        if noise.plans(SHAPES):
            d, sigma = plan.shape.n_features, noise.sigma(SHAPES)
            found = noise.release(count_values(X, rows, self._norm(d) / sqrt(d)))
            self._released_ = replace(self._released_, shapes=found, sigma_shapes=sigma)

    def _outcomes(self, fit: ReleasedFit) -> Outcomes:
        return BinaryOutcomes() if fit.descent.coefficients.ndim == 1 else ClassOutcomes()

    def make_non_private(self) -> LogisticRegression:
        """Scikit-learn's `LogisticRegression` with the same penalty and intercept.

        `max_iter` is not carried over: noisy gradient steps are not lbfgs iterations.
        """
        return LogisticRegression(
            C=self.C, fit_intercept=self.fit_intercept, class_weight=self.class_weight
        )

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            with np.errstate(all="ignore"):
                return softmax(scores, axis=1)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of class probabilities.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(all="ignore"):
            return np.log(self.predict_proba(X))
