"""Confidence intervals of private linear models."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._warn import warn
from skdp.exceptions import UtilityWarning
from skdp.uncertainty import Bootstrap, ConfidenceInterval, Outcomes, ReleasedFit, bootstrap

__all__ = ["IntervalMixin"]

# Intervals are warned of where fits follow the truth less than this, where the mean second moment
# is below this in units of its noise, where residuals are of one size, and where what clipping
# does is more than this many standard errors, without and with counts of values by size.
_LEAST_SLOPE, _LEAST_SIGNAL, _ONE_SIZE, _LARGE_CORRECTION = 0.4, 0.4, 0.999, (2.0, 4.0)

FloatArray = NDArray[np.float64]


def _has_intervals(model: Any) -> bool:
    if not model._simulates_targets:
        raise AttributeError(
            f"{type(model).__name__} has no confidence intervals: {model._no_intervals}"
        )
    return True


class IntervalMixin:
    """Intervals from released values."""

    # Whether `_outcomes` is there.
    _simulates_targets = False
    # Why it is not.
    _no_intervals = "its fit says too little of the distribution of y to simulate more like it"
    _released_: ReleasedFit
    coef_: FloatArray
    intercept_: Any

    def _outcomes(self, fit: ReleasedFit) -> Outcomes:
        """How targets of simulated rows come about."""
        raise NotImplementedError

    @property
    def second_moments_(self) -> FloatArray:
        """Noisy sums of products of the features, and of the constant 1 as the last column.

        Rows are clipped to `feature_norm` first, with the constant; sums are in the units of X,
        and in units of the largest weight where records have weights.
        Released in `fit` where the plan has a `gram_share`.
        """
        check_is_fitted(self, "coef_")
        fit = getattr(self, "_released_", None)
        if fit is None or fit.descent.second_moments is None:
            raise AttributeError(
                f"this {type(self).__name__} has released no second moments: its plan has none"
            )
        return fit.moments_in_units()

    @available_if(_has_intervals)
    def confidence_interval(
        self, level: float = 0.95, *, n_draws: int = 200, random_state: Any = None
    ) -> ConfidenceInterval:
        """Confidence intervals of the coefficients of the population, at no further cost.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which each interval holds its coefficient.
        n_draws : int, default=200
            Number of simulated fits, rounded up to a multiple of 40.
        random_state : int, numpy Generator or None, default=None
            For the simulation. It sees released values only, so a seed does not weaken the
            guarantee.

        Returns
        -------
        interval : ConfidenceInterval
            With `coef`, `intercept` and their standard errors.

        Raises
        ------
        ValueError
            If the fit has not released what the simulation needs; the message says how to have
            it.

        Notes
        -----
        **Privacy.** Post-processing: the fitted model is all that is read.

        See the page on uncertainty for the method, and for where its intervals can be trusted.
        """
        check_is_fitted(self, "coef_")
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        if n_draws < 2:
            raise ValueError(f"n_draws must be at least 2, got {n_draws!r}")
        fit = getattr(self, "_released_", None)
        if fit is None:
            raise ValueError(
                "intervals are made from what a private fit releases, and this one had an "
                "infinite epsilon"
            )
        if fit.weighted:
            raise ValueError(
                "intervals are for records as they come, and this model was fitted with sample "
                "weights or class weights"
            )
        if fit.descent.second_moments is None:
            raise ValueError(
                "intervals need the second moments of the features, which this fit did not "
                "release: fit with gram_share=0.2, or with a larger budget or more rows"
            )
        found = bootstrap(fit, self._outcomes(fit), n_draws=n_draws, random_state=random_state)
        self._warn_untrusted(found)
        quantile = float(stdtrit(max(n_draws // 2 - 1, 1), 0.5 + level / 2.0))
        return self._interval(level, quantile, fit, found.centre, found.deviation)

    def _warn_untrusted(self, found: Bootstrap) -> None:
        """Warn, from released values, where the simulation and not the data has the say."""
        fit = self._released_
        correction = np.abs(found.centre - fit.descent.coefficients) / found.deviation
        text = None
        if found.least_slope < _LEAST_SLOPE or fit.moments_signal < _LEAST_SIGNAL:
            text = (
                "the noise hides some directions of the features, whose second moments are then "
                "taken to be alike: use a larger budget, more rows or fewer features"
            )
        elif fit.residuals is not None and fit.residuals.max() > _ONE_SIZE:
            text = (
                "the sizes of residuals drown in noise, and are taken to be those of y: use a "
                "larger uncertainty_share or budget"
            )
        elif correction.max() > _LARGE_CORRECTION[fit.shapes is not None]:
            text = (
                f"clipping moves a coefficient by {correction.max():.1f} standard errors, and what "
                "corrects it rests on the shape of the features, which is taken to be normal where "
                "nothing else is seen: use a larger clip_norm or budget"
            )
        if text:
            warn(f"intervals are not to be relied upon: {text}", UtilityWarning)

    def _interval(
        self,
        level: float,
        quantile: float,
        fit: ReleasedFit,
        centre: FloatArray,
        deviation: FloatArray,
    ) -> ConfidenceInterval:
        """The interval in the caller's units and shapes."""
        d, unit = fit.n_features, fit.target_unit
        shift = centre - fit.descent.coefficients
        coef_std = (deviation[:d].T * (fit.scale * unit)).reshape(self.coef_.shape)
        middle = self.coef_ + (shift[:d].T * (fit.scale * unit)).reshape(self.coef_.shape)
        coef = np.stack([middle - quantile * coef_std, middle + quantile * coef_std], axis=-1)
        shape = np.shape(self.intercept_)
        level_std, level_middle = np.zeros(shape), np.zeros(shape)
        if fit.constant:
            level_std = (deviation[d] * (fit.constant * unit)).reshape(shape)
            level_middle = self.intercept_ + (shift[d] * (fit.constant * unit)).reshape(shape)
        intercept = np.stack(
            [level_middle - quantile * level_std, level_middle + quantile * level_std], axis=-1
        )
        return ConfidenceInterval(level, coef, intercept, coef_std, level_std)
