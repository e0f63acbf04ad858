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
from skdp.linear_model._shapes import SHAPES, count_values, counts_pay, plan_shapes
from skdp.losses import LogisticLoss, Loss, SoftmaxLoss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.uncertainty import BinaryOutcomes, ClassOutcomes, Outcomes, ReleasedFit

__all__ = ["DPLogisticRegression"]


class DPLogisticRegression(PrivateClassifier):
    """Logistic regression with differential privacy.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `LogisticRegression`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    classes : array-like of shape (n_classes,) or set, default=None
        All labels that can occur, as public knowledge; sorted like ``np.unique`` does. None: they
        are read from y, which is not covered by the guarantee and warned about.
    C : float, default=1.0
        Inverse strength of the l2 penalty, as in scikit-learn. The intercept is not penalised.
    class_weight : dict or "balanced", default=None
        Weights of classes, as public knowledge: a dict by label, where a class that is not
        mentioned has weight 1. "balanced": the reciprocals of private counts. Either way a small
        share of the budget counts the classes, and noise grows as the largest weight over the
        mean one.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    feature_norm : float, default=None
        Public norm, in the units of X, of a typical row. While learning, rows are clipped to
        twice this norm. None: ``sqrt(n_features)``, right for standardised features.
    feature_bound : float, default=None
        Public bound, in the units of X, that every single feature is clipped to, while learning
        and in prediction: one extreme value neither erases the rest of its record nor decides a
        prediction by itself. None: ``3 * feature_norm / sqrt(n_features)``, three standard
        deviations of standardised features. ``inf``: none.
    clip_norm : float, default=None
        Largest norm of one record's gradient, in units where a row of norm
        `feature_norm` has norm 1. None: planned.
    solver : {"preconditioned-gradient-descent", "gradient-descent"}, \
default="preconditioned-gradient-descent"
        The first may spend a share of the budget on the second moments of the features; whether
        that pays is decided from the public shape of the problem.
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
        `feature_norm`, which warns about unscaled features. 0 turns it off.
    uncertainty_share : float in [0, 1), default=0.01
        Share of the budget for private counts of the values of each feature by size, from which
        `confidence_interval` learns their shape. None are made where there would be no intervals
        (without second moments, or with class weights), and of more than 16 million values.
        0 turns them off, and intervals take features to be normal.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others (twice the noise).
    max_sample_weight : float, default=1.0
        Public bound that `sample_weight` is clipped to, when it is given. The noise is set by it:
        weights that are mostly far smaller are drowned. Given weights, a small share of the budget
        releases their sum and the number of those above zero (of a classifier with
        `class_weight`: the sum by class).
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    n_jobs : int, default=None
        Threads of a pass over the data. None: as many as the linear algebra would use.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        The public labels.
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
