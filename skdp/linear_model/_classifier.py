"""What private linear classifiers share: labels, classes, scores."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from skdp._threads import workers
from skdp._validation import (
    CLASSES_FROM_Y,
    StrOptions,
    check_features_and_target,
    check_sample_weight,
    declared_classes,
    encode_labels,
    without_data,
)
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._base import PrivateLinearModel
from skdp.linear_model._class_weight import (
    check_class_weight,
    plan_class_counts,
    weigh_classes,
    weights_by_code,
)
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape

__all__ = ["PrivateClassifier"]

FloatArray = NDArray[np.float64]
# Score of a class that was declared but does not occur, at epsilon=inf.
_NEVER = -700.0


class PrivateClassifier(ClassifierMixin, PrivateLinearModel):
    """A linear classifier: one score for two classes, else one for each.

    Subclasses give the loss, the penalty and the public twin.
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLinearModel._parameter_constraints,
        "classes": [None, "array-like", set, frozenset],
        "class_weight": [None, dict, StrOptions({"balanced"})],
    }

    classes: ArrayLike | None
    class_weight: dict[Any, float] | str | None

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        check_class_weight(self.class_weight)
        return budget

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        if self.class_weight is None:
            return (), budget
        released, rest = plan_class_counts(budget)
        return (released,), rest

    def _planned_assumptions(self) -> tuple[str, ...]:
        return (CLASSES_FROM_Y,) if self.classes is None else ()

    def _plan_sizes(self, budget: PrivacyCost) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        # With weights of classes their sizes are released, which add up to all of it.
        return super()._plan_sizes(budget) if self.class_weight is None else ((), budget)

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PrivateClassifier:
        """Learn a private model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Features, standardised or otherwise of public norm.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, at most `max_sample_weight`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        features, labels = check_features_and_target(
            self, X, y, y_numeric=False, accept_sparse="csr"
        )
        labels = without_data(column_or_1d, labels, warn=True)
        classes, assumptions = declared_classes(self.classes, labels)
        codes = encode_labels(labels, classes)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        n_samples, n_features = features.shape
        weights = check_sample_weight(sample_weight, n_samples)
        plan = self.plan(n_samples, n_features, n_outputs, weighted=weights is not None)
        if isinstance(self.class_weight, dict):
            weights_by_code(self.class_weight, classes)  # wrong ones are refused here
        if not plan.budget.is_finite:
            self.classes_ = classes
            self._fit_non_private(features, codes, weights)
            self._finish_non_private(plan, assumptions)
            return self
        noise = self._start(plan)
        with workers(self.n_jobs) as pool, np.errstate(all="ignore"):
            rows = self._bounded_rows(features, plan, pool, weights)
            coef, intercept = self._learn(rows, codes, plan, noise, classes)
            self._look(features, rows, plan, noise)
        self.classes_ = classes
        self.coef_ = np.atleast_2d(coef)
        self.intercept_ = np.atleast_1d(intercept)
        self._finish(plan, noise, assumptions)
        return self

    def _look(self, X: Any, rows: BoundedRows, plan: Plan, noise: NoiseCore) -> None:
        """Release what a learned model's intervals need to know of the features."""

    def _learn(
        self, rows: BoundedRows, codes: NDArray, plan: Plan, noise: NoiseCore, classes: NDArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.class_weight is None:
            sizes = self._sizes(rows, plan, noise)
        else:
            unit = 1.0 if rows.weights is None else self.max_sample_weight
            n_rows = plan.shape.n_rows
            sizes = weigh_classes(
                rows, self.class_weight, classes, codes, noise, n_rows=n_rows, unit=unit
            )
        n_outputs = plan.shape.n_outputs
        theta = self._descend(
            rows,
            codes,
            plan,
            noise,
            None if n_outputs == 1 else n_outputs,
            sizes=sizes,
            loss=self._loss(n_outputs),
            l2_penalty=self._l2_penalty(),
        )
        return self._in_units(theta, rows)

    def _fit_non_private(
        self, X: NDArray, codes: NDArray[np.integer], weights: FloatArray | None
    ) -> None:
        """Copy the twin's solution; declared classes that do not occur get no probability."""
        n_classes = len(self.classes_)
        seen = np.unique(codes)
        coef = np.zeros((n_classes, X.shape[1]))
        intercept = np.full(n_classes, _NEVER)
        self.n_iter_ = 1
        if len(seen) == 1:
            intercept[seen] = 0.0
        else:
            twin = self.make_non_private()
            if isinstance(self.class_weight, dict):  # by code, as the labels that it is given
                by_code = weights_by_code(self.class_weight, self.classes_)
                twin.set_params(class_weight={code: float(by_code[code]) for code in seen.tolist()})
            twin.fit(X, codes, sample_weight=weights)
            self.n_iter_ = int(np.max(twin.n_iter_))
            if len(seen) == n_classes:
                self.coef_, self.intercept_ = twin.coef_, np.atleast_1d(twin.intercept_)
                if not self.fit_intercept:
                    self.intercept_ = np.zeros(len(twin.coef_))
                return
            if len(seen) == 2:
                coef[seen[1]], intercept[seen] = twin.coef_[0], (0.0, float(twin.intercept_[0]))
            else:
                coef[seen], intercept[seen] = twin.coef_, twin.intercept_
        if n_classes == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_, self.intercept_ = coef, intercept

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of classes: the linear predictor.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Score of ``classes_[1]``, the larger the likelier, or one score per class.
        """
        scores = self._linear_predictor(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks fit a few dozen rows, where the noise that privacy needs drowns any model.
        tags.classifier_tags.poor_score = self._is_private
        tags.input_tags.sparse = True
        return tags
