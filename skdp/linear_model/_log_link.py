"""What private generalised linear models with a log link share."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import exp, frexp, hypot, inf, log, nextafter, sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score

from skdp._lattice import BoundedSum
from skdp._threads import workers
from skdp._validation import Interval, check_features_and_target, check_sample_weight
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.exceptions import UtilityWarning
from skdp.linear_model._base import PrivateLinearModel
from skdp.linear_model._positive_target import find_target_mean, plan_target_mean
from skdp.linear_model._sample_weight import Sizes
from skdp.losses import LogLinkLoss, Loss
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape, relation_factor

__all__ = ["LogLinkRegressor"]

FloatArray = NDArray[np.float64]
# Share of the solver's budget for the level, and the residual, in units of their spread, that one
# record may add to it.
_LEVEL_SHARE, _LEVEL_BOUND = 0.1, 20.0
# The same for what the model expects of a record.
_EXPECTED_BOUND = 6.0
_LEVEL_NORM = nextafter(hypot(_LEVEL_BOUND, _EXPECTED_BOUND), inf)
_LEVEL_SIGNAL, _LEVEL_LEAST, _LEVEL_TAIL, _LEVEL_RANGE = 600.0, 0.25, 4.0, (0.5, 1.5)
_LEVEL_BITS = 20
# Gradients are clipped to this many spreads of y, wider where the noise allows it: at the signal
# given to the first, growing as the power given, within the range.
_CLIP, _CLIP_SIGNAL, _CLIP_POWER, _CLIP_RANGE = 2.0, 350.0, 0.4, (1.0, 16.0)


class LogLinkRegressor(RegressorMixin, PrivateLinearModel):
    """A positive target whose logarithm of the expectation is linear."""

    _parameter_constraints: dict[str, Any] = {
        **PrivateLinearModel._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "y_bounds": [None, "array-like"],
    }
    _bound_deviations = 5.0
    alpha: float
    y_bounds: ArrayLike | None

    @abstractmethod
    def _power(self) -> float:
        """Power of the mean that the variance is proportional to."""

    def _loss(self, n_outputs: int) -> Loss:
        return LogLinkLoss(self._power())

    def _l2_penalty(self, unit: float = 1.0) -> float:
        """As of the base, for one record: it goes with the mean loss."""
        return min(self.alpha * exp((self._power() - 2.0) * log(unit)), 1e100)

    def _public_bounds(self) -> tuple[float, float] | None:
        if self.y_bounds is None:
            return None
        bounds = np.asarray(self.y_bounds, dtype=np.float64)
        if bounds.shape != (2,):
            raise ValueError(f"y_bounds must be a pair (low, high), got shape {bounds.shape}")
        low, high = bounds.tolist()
        # Their distance and its reciprocal are ordinary floats.
        if not (0.0 <= low < high <= 1e300 and high - low >= 1e-290):
            raise ValueError("y_bounds must be finite, with 0 <= low < high")
        return low, high

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        bounded = self._public_bounds() is not None
        located, rest = plan_target_mean(budget, shape.n_rows, bounded=bounded)
        if not self.fit_intercept:
            return located, rest
        level, rest = rest.split([_LEVEL_SHARE, 1.0 - _LEVEL_SHARE])
        sensitivity = _LEVEL_NORM * relation_factor(budget.neighboring)
        return (*located, PlannedRelease("level", sensitivity, level.mu)), rest

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LogLinkRegressor:
        """Learn a private model.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Features, standardised or otherwise of public norm.
        y : array-like of shape (n_samples,)
            Targets, not negative; positive where the power is 2 or more.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, at most `max_sample_weight`. Where y is a rate, such as claims
            per year, the weight is the exposure.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        features, target = check_features_and_target(
            self, X, y, y_numeric=True, accept_sparse="csr"
        )
        least = target.min()
        if least < 0.0 or (least == 0.0 and self._power() >= 2.0):
            positive = "positive" if self._power() >= 2.0 else "non-negative"
            raise ValueError(f"y must be {positive}")
        weights = check_sample_weight(sample_weight, len(target))
        plan = self.plan(*features.shape, weighted=weights is not None)
        if not plan.budget.is_finite:
            twin = self.make_non_private().fit(features, target, sample_weight=weights)
            self.coef_, self.intercept_, self.n_iter_ = twin.coef_, twin.intercept_, twin.n_iter_
            self.mean_ = float(np.average(target, weights=weights))
            self._finish_non_private(plan)
            return self
        noise = self._start(plan)
        with workers(self.n_jobs) as pool, np.errstate(all="ignore"):
            rows = self._bounded_rows(features, plan, pool, weights)
            sizes = self._sizes(rows, plan, noise)
            self.coef_, self.intercept_ = self._learn(rows, target, plan, noise, sizes)
        self._finish(plan, noise)
        return self

    def _learn(
        self, rows: BoundedRows, target: FloatArray, plan: Plan, noise: NoiseCore, sizes: Sizes
    ) -> tuple[FloatArray, float]:
        # The mean loss has the penalty: the unit of weights is of no account.
        n_rows, sizes = sizes.total, replace(sizes, unit=1.0)
        known = find_target_mean(
            target,
            self._public_bounds(),
            sizes=sizes,
            noise=noise,
            neighboring=self.neighboring,
            weights=rows.weights,
        )
        self.mean_, level = known.mean, log(known.mean)
        # With an intercept the model starts at the mean, without one at expectation 1.
        offset = 0.0 if self.fit_intercept else -level
        scaled = (target / known.mean).astype(np.float32)
        np.minimum(scaled, np.float32(2.0**40), out=scaled)
        penalty = self._l2_penalty(known.mean)
        # What a record adds is its residual times its weight, whose mean is this.
        variation = known.variation * (sizes.total / sizes.records)
        signal = plan.budget.mu * n_rows / sqrt(plan.shape.n_features) / variation
        wide = _CLIP * (signal / _CLIP_SIGNAL) ** _CLIP_POWER * (1.0 + penalty)
        unit = variation * min(max(wide, _CLIP_RANGE[0]), _CLIP_RANGE[1])
        loss = LogLinkLoss(self._power(), unit, offset)
        theta = self._descend(
            rows, scaled, plan, noise, None, sizes=sizes, loss=loss, l2_penalty=penalty * n_rows
        )
        coefficients, intercept = self._in_units(theta, rows)
        if not self.fit_intercept:
            return coefficients, 0.0
        # A narrower clip where the noise would be worse than the bias, and a wider one for the
        # long tail that goes with a large spread.
        clear = plan.budget.mu * n_rows / variation / _LEVEL_SIGNAL
        if clear < 0.5:
            warn(
                f"y, with a standard deviation of about {known.variation:.2g} times its mean, "
                f"spreads too far for {plan.shape.n_rows} rows and this budget: its level is "
                "clipped and noisy, and a constant may predict better",
                UtilityWarning,
            )
        reach = min(max(known.variation / _LEVEL_TAIL, _LEVEL_RANGE[0]), _LEVEL_RANGE[1])
        spread = variation * min(max(clear, _LEVEL_LEAST), reach)
        spread = min(spread, max(known.largest, exp(LogLinkLoss.cap) / 4.0) / _LEVEL_BOUND)
        wide_loss = LogLinkLoss(self._power(), spread, offset)
        shift = self._level(rows, theta, scaled, wide_loss, noise)
        return coefficients, float(intercept) + level + shift

    def _level(
        self,
        rows: BoundedRows,
        theta: FloatArray,
        scaled: NDArray,
        loss: LogLinkLoss,
        noise: NoiseCore,
    ) -> float:
        """Change of the intercept that brings the sum of residuals to zero, where it is sure.

        Clipped gradients pull the level of a skewed target down; here the clip is far wider.
        """
        sigma = noise.sigma("level")
        places = 2.0 ** min(_LEVEL_BITS, MAX_SIGMA_BITS - frexp(sigma)[1])
        # What the model expects is bounded by itself: it is brought to a share of the bound, and
        # costs next to nothing beside the residuals.
        slope = 2.0 - loss.power
        most = exp(loss.cap * abs(slope))

        def share(predictor: FloatArray, live: NDArray[np.bool_], part: slice) -> FloatArray:
            weights = 1.0 if rows.weights is None else rows.weights[part][live].astype(np.float64)
            predictor = predictor[live]
            residual = loss.residual(predictor, scaled[part][live]) * weights
            z = np.clip(predictor + loss.offset, -loss.cap, loss.cap)
            expected = np.exp(slope * z) * weights * (_EXPECTED_BOUND / most)
            sums = np.stack([residual, expected])
            sums[np.isnan(sums)] = 0.0  # one record must never poison a sum
            bounds = np.array([[_LEVEL_BOUND], [_EXPECTED_BOUND]])
            return np.rint(np.clip(sums, -bounds, bounds) * places).sum(axis=1)

        total = rows.predictor_sum(share, rows.round_coefficients(theta), (2,))
        sensitivity = _LEVEL_NORM * relation_factor(self.neighboring)
        released = noise.release(BoundedSum("level", total, 1.0 / places, sensitivity))
        excess, doubt = float(released[0]) * loss.unit, sigma * loss.unit
        expected = float(released[1]) * most / _EXPECTED_BOUND
        excess *= max(0.0, 1.0 - (doubt / excess) ** 2) if excess else 0.0
        return min(max(log(max(1.0 - excess / max(expected, doubt), 0.05)), -1.5), 1.5)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Expected target.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            Positive; unless epsilon is infinite, within a factor of 20 of `mean_`.
        """
        predictor = self._linear_predictor(X)
        if self.plan_.releases:
            level = log(self.mean_)
            np.clip(predictor, level - LogLinkLoss.cap, level + LogLinkLoss.cap, out=predictor)
        with np.errstate(all="ignore"):
            return np.exp(predictor)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of the deviance that is explained, D^2, as in scikit-learn; it is not private.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            At most 1; 0 for a constant model.
        """
        predicted = self.predict(X)
        return float(
            d2_tweedie_score(y, predicted, sample_weight=sample_weight, power=self._power())
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The checks fit a few dozen rows, where the noise that privacy needs drowns any model.
        tags.regressor_tags.poor_score = self._is_private
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = True
        return tags
