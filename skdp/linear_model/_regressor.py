"""Regressors of a target that is brought to a common scale first."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from skdp._threads import workers
from skdp._validation import check_features_and_target, check_sample_weight
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._base import PrivateLinearModel
from skdp.linear_model._sample_weight import Sizes
from skdp.linear_model._target_scale import (
    TargetScale,
    find_target_scale,
    plan_target_scale,
    public_scale,
    warn_missed,
    warn_unsuited,
)
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.solvers import signal_to_noise

__all__ = ["ScaledRegressor"]

FloatArray = NDArray[np.float64]
# Share of the budget for a private location and scale of y: at least a tenth, and with few rows
# for the budget as much as their histograms need to rise above the noise.
_SCALE_SHARE = (0.1, 0.5)
_SCALE_NEEDS = 90.0


class ScaledRegressor(RegressorMixin, PrivateLinearModel):
    """A linear predictor of targets that are brought to location 0 and scale 1.

    Subclasses give the loss, the penalty and the public twin.
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLinearModel._parameter_constraints,
        "y_bounds": [None, "array-like"],
    }

    # The least and the most; from where it grows, and how fast.
    _bound_deviations, _most_deviations = 3.0, 8.0
    _bound_grows_from, _bound_power = 300.0, 0.4
    _checks = ("row lengths", "first gradients")
    y_bounds: ArrayLike | None
    intercept_: Any
    # Whether y may have several columns.
    _multi_output = False
    # Whether the twin gives flat coefficients for a y with one column.
    _flat_single_target = False

    def _deviations(self, plan: Plan) -> float:
        # Few extreme values move a noisy fit as much as the noise; with more signal the model
        # had better be linear as far out as the data are.
        signal = signal_to_noise(plan.shape, plan.budget.gaussian_mu)
        wanted = self._bound_deviations * (signal / self._bound_grows_from) ** self._bound_power
        return min(max(wanted, self._bound_deviations), self._most_deviations)

    def _public_scale(self, n_outputs: int) -> TargetScale | None:
        """Centre and scale of every output from `y_bounds`; None when they are to be found."""
        if self.y_bounds is None:
            return None
        return public_scale(self.y_bounds, n_outputs, centred=self.fit_intercept)

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        if self._public_scale(shape.n_outputs) is not None:
            return (), budget
        needs = shape.n_outputs * (_SCALE_NEEDS / (shape.n_rows * budget.mu)) ** 2
        share = min(max(needs, _SCALE_SHARE[0]), _SCALE_SHARE[1])
        first, rest = budget.split([share, 1.0 - share])
        return plan_target_scale(first, shape.n_outputs, shape.n_rows), rest

    def _learn(
        self,
        rows: BoundedRows,
        targets: NDArray,
        plan: Plan,
        noise: NoiseCore,
        scale: TargetScale,
        sizes: Sizes,
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercepts for targets in units of the scale."""
        one = len(scale.scale) == 1
        theta = self._descend(
            rows,
            targets[:, 0] if one else targets,
            plan,
            noise,
            None if one else len(scale.scale),
            sizes=sizes,
            loss=self._loss(len(scale.scale)),
            l2_penalty=self._l2_penalty(),
        )
        return self._in_units(theta, rows)

    def _copy_twin(self, X: Any, y: NDArray, weights: NDArray[np.float64] | None) -> Any:
        """Fit the public twin and take over what it learned; the twin."""
        twin = self.make_non_private().fit(X, y, sample_weight=weights)
        self.coef_, self.intercept_ = twin.coef_, twin.intercept_
        self.n_iter_ = int(np.max(getattr(twin, "n_iter_", None) or 1))
        return twin

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ScaledRegressor:
        """Learn a private model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Features, standardised or otherwise of public norm.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, at most `max_sample_weight`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        features, target = check_features_and_target(
            self, X, y, y_numeric=True, multi_output=self._multi_output, accept_sparse="csr"
        )
        n_outputs = 1 if target.ndim == 1 else target.shape[1]
        n_samples, n_features = features.shape
        weights = check_sample_weight(sample_weight, n_samples)
        plan = self.plan(n_samples, n_features, n_outputs, weighted=weights is not None)
        if not plan.budget.is_finite:
            self._copy_twin(features, target, weights)
            self._finish_non_private(plan)
            return self
        noise = self._start(plan)
        columns = target.reshape(len(target), n_outputs)
        with workers(self.n_jobs) as pool, np.errstate(all="ignore"):
            rows = self._bounded_rows(features, plan, pool, weights)
            sizes = self._sizes(rows, plan, noise)
            scale = self._public_scale(n_outputs)
            if scale is None:
                scale = find_target_scale(
                    columns if rows.weights is None else columns[rows.weights > 0.0],
                    sizes.records,
                    noise,
                    neighboring=self.neighboring,
                    centred=self.fit_intercept,
                )
            targets = scale.forward(columns)
            coef, intercept = self._learn(rows, targets, plan, noise, scale, sizes)
            bounded = self.y_bounds is not None
            missed = bounded and warn_missed(np.atleast_1d(intercept))
            if self.scale_check_share:
                clip_norm = plan.settings["clip_norm"]
                found = noise.release(rows.gradient_misfits("first gradients", targets, clip_norm))
                if not missed:
                    sigma = noise.sigma("first gradients")
                    warn_unsuited(found, sigma, plan.shape, bounded=bounded)
            self._set_coefficients(coef, intercept, scale, target.ndim)
        self._finish(plan, noise)
        return self

    def _set_coefficients(
        self, coef: NDArray, intercept: NDArray, scale: TargetScale, y_ndim: int
    ) -> None:
        """Coefficients in the units of y, in scikit-learn's shapes."""
        coef = np.atleast_2d(coef) * scale.scale[:, None]
        intercept = np.atleast_1d(intercept) * scale.scale + scale.centre
        flat = y_ndim == 1 or (self._flat_single_target and len(coef) == 1)
        self.coef_ = coef[0] if flat else coef
        if not self.fit_intercept:
            self.intercept_ = 0.0
        else:
            self.intercept_ = float(intercept[0]) if y_ndim == 1 else intercept

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Linear prediction.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._linear_predictor(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks fit a few dozen rows, where the noise that privacy needs drowns any model.
        tags.regressor_tags.poor_score = self._is_private
        tags.input_tags.sparse = True
        return tags
