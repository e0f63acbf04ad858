"""Columns selected by private variances."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import VarianceThreshold
from sklearn.utils.validation import check_is_fitted

from skdp._location import find_bounds
from skdp._moments import plan_moments, release_sums
from skdp._validation import Interval
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.preprocessing._columns import Bounds, PrivateSelector
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPVarianceThreshold"]

# A variance above zero is that many standard deviations of its noise.
_ABOVE_ZERO = 2.0
# Noise of a variance, in units of half the distance of the bounds squared, from which on nothing
# is known.
_HOPELESS = 1.0 / 3.0


@shared_docs(twin="VarianceThreshold")
class DPVarianceThreshold(PrivateSelector):
    """Drop columns whose private variance is not above a threshold.

    Parameters
    ----------
    %(budget)s
    threshold : float, default=0.0
        Columns with a variance up to it are dropped. With 0 those that cannot be told from
        constant ones: a variance within two standard deviations of its noise counts as zero.
    %(common)s

    Attributes
    ----------
    variances_ : ndarray of shape (n_features,)
        Private variances; negative ones are noise.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases
    one vector: the sums of all columns and of their squares, clipped to the bounds, and the numbers
    of missing values, with sensitivity ``1.25 * sqrt(n_features)`` in units where bounds are -1
    and 1. Without `bounds`, histograms that tell where the columns lie are released before.
    Public are the shape of X, `bounds` and all parameters. Which columns are kept follows from
    released values only.

    Columns that cannot be found are kept. Where the noise is as large as the variances could be,
    all are kept, and a warning says how large it is. Where none is above the threshold the one
    with the largest variance is kept, with a warning.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPVarianceThreshold
    >>> X = np.random.default_rng(0).uniform(size=(5000, 3))
    >>> X[:, 1] = 0.5
    >>> DPVarianceThreshold(bounds=(0, 1)).fit(X).get_support()
    array([ True, False,  True])
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateSelector._parameter_constraints,
        "threshold": [Interval(Real, 0, None, closed="left")],
    }
    _copied = ("variances_",)

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        threshold: float = 0.0,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.threshold = threshold
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        located, rest = self._located(budget, shape)
        return (*located, plan_moments(rest, shape.n_features, second=True)), {}

    def _learn(self, X: Any, bounds: Bounds | None, plan: Plan, options: dict[str, Any]) -> None:
        unknown = np.zeros(X.shape[1], dtype=bool)
        if bounds is None:
            place = find_bounds(X, **options)
            unknown, bounds = ~place.found, (place.low, place.high)
        moments = release_sums(X, *bounds, second=True, missing=True, **options)
        variances, worst = moments.variance, float(moments.doubt.max())
        least = np.full(X.shape[1], self.threshold)
        if self.threshold == 0.0:
            least = _ABOVE_ZERO * moments.variance_doubt
        if worst > _HOPELESS:
            warn(
                "all columns are kept: the noise of the variances is as large as the variance of "
                f"values spread evenly between the bounds (standard deviation {worst:.3g} "
                f"of a quarter of the squared width, with {plan.shape.n_rows} rows); use a "
                "larger budget or fewer columns",
                UtilityWarning,
            )
            unknown[:] = True
        kept = unknown | (variances > least)
        if not kept.any():
            warn(
                "no column has a private variance above the threshold; the one with the largest is "
                "kept",
                UtilityWarning,
            )
            kept[variances.argmax()] = True
        self.variances_, self._kept = variances, kept

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "variances_")
        if not self.plan_.budget.is_finite:
            return np.asarray(self.variances_ > self.threshold)
        return self._kept

    def make_non_private(self) -> VarianceThreshold:
        """Scikit-learn's `VarianceThreshold`."""
        return VarianceThreshold(threshold=self.threshold)
