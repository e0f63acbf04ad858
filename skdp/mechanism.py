"""The Gaussian mechanism as a scikit-learn transformer and as an expert's tool."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, isinf, sqrt
from numbers import Integral, Real
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._lattice import BoundedSum, ExactTotal, floor_power_of_two, iter_blocks, round_rows
from skdp._validation import (
    Interval,
    StrOptions,
    check_features,
    check_seed,
    warn_large_delta,
)
from skdp.accounting import PrivacyCost, classic_sigma
from skdp.base import SEEDED, PrivateEstimator
from skdp.exceptions import PrivacyBudgetError
from skdp.noise import MAX_SIGMA_BITS, add_noise
from skdp.plan import SIGMA_SLACK, Plan, PlannedRelease, ProblemShape, Release, relation_factor

__all__ = ["GaussianMechanism"]

# Rounding a value onto its grid is charged as this share of the sensitivity, 2**-30: small enough
# not to matter, large enough for sums over 10**9 records to stay within 64 bits.
_GRID_BITS = 30
_ROW_BITS = 20
# Largest integer of a value on the grid.
_TOP = 1 << 61
_BLOCK_ENTRIES = 1 << 17
# Sizes for which neither the grid's step nor a value at the end of its range leaves float64.
_SMALLEST, _LARGEST = 1e-280, 1e280


COPIED = (
    "copies of a fitted GaussianMechanism (pickled, or sent to other processes by n_jobs) count "
    "their releases by themselves"
)


# Held while a release is counted: threads that share a mechanism share its budget.
_COUNTING = Lock()


class _ReleaseCounter:
    """The releases made by one fitted mechanism."""

    def __init__(self) -> None:
        self.releases: list[Release] = []
        self.seeded = False
        self.copied = False
        # Asked before every release; a ledger charges it, or refuses by an exception.
        self.guard: Callable[[bool], None] | None = None

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state = dict(vars(self))
        # The copy knows all releases so far, this one none of its later ones; a guard would.
        self.copied |= self.guard is None
        return type(self), (), state

    @property
    def made(self) -> int:
        """How many there are."""
        return len(self.releases)

    def charge(self, release: Release, *, seeded: bool, most: float) -> int:
        """Add a release and return its number; refuse more than `most`."""
        with _COUNTING:
            if self.made >= most:
                raise PrivacyBudgetError(
                    f"all of the n_releases={most:g} planned releases were made; fit a mechanism "
                    "with more, or with a new budget"
                )
            if self.guard is not None:
                self.guard(seeded)
            self.releases.append(release)
            self.seeded |= seeded
            return self.made


class GaussianMechanism(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Release vectors with Gaussian noise calibrated to a privacy budget.

    To release a function f of the data with L2 sensitivity D, the mechanism returns
    ``f(data) + N(0, sigma**2 I)``. As a *transformer* it releases every row of X, clipped to
    `clip_norm`, with fresh noise at every call; `release` is the door for one statistic whose
    sensitivity you have derived yourself.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of all `n_releases` releases together. ``inf`` adds no noise.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    sensitivity : float, default=None
        L2 sensitivity of the values given to `release`, in their units, for the relation in
        `neighboring`. None: it is given to `release`. `transform` needs none: there it is that
        of a row clipped to `clip_norm`.
    clip_norm : float, default=None
        Norm that `transform` clips rows to, in the units of X. None: the norm for which a row
        has the given `sensitivity`; when that is None too, ``sqrt(n_features)``, which suits
        standardised features.
    n_releases : int, default=1
        Number of releases that share the budget.
    calibration : {"analytic", "classic"}, default="analytic"
        ``"analytic"`` is exact [1]_. ``"classic"`` is ``sqrt(2 ln(1.25 / delta)) D / epsilon``,
        proved for epsilon < 1 only and refused elsewhere; it adds about 30% more noise.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes noise reproducible, which
        is *not private* towards whoever knows it.

    Attributes
    ----------
    sigma_ : float
        Noise standard deviation of one `release`, in the units of the value. Without
        `sensitivity`: `row_sigma_`.
    row_sigma_ : float
        Noise standard deviation per entry of one `transform`. Equal to `sigma_` unless both
        `sensitivity` and `clip_norm` are given.
    clip_norm_ : float
        Norm that rows are clipped to.
    plan_ : Plan
        The planned releases.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    PrivacyBudgetError
        By `release`, when `n_releases` releases were made.

    Notes
    -----
    **Privacy.** `fit` looks at the number of columns only. Each release is exactly mu-Gaussian
    DP [2]_ with ``mu = sensitivity / sigma``, in floating point too: a value is rounded onto a
    grid that depends on the sensitivity alone (the rounding is charged, less than 1e-9 of the
    sensitivity), and the noise is an exactly rounded Gaussian on that grid.
    `transform` releases *each row* it is given, at fit and at predict time: a record that passes
    k times is charged k releases, and `privacy_cost_` counts every call as if it held the same
    records. Calls in other processes, as by ``n_jobs``, are counted by a `PrivacyLedger` only: else
    the cost says that there are copies. Rows alone in their release are hidden by noise as large as
    themselves: useful epsilons are 10 to 50. The number of rows is public.

    References
    ----------
    .. [1] B. Balle and Y.-X. Wang, "Improving the Gaussian Mechanism for Differential Privacy:
       Analytical Calibration and Optimal Denoising", ICML 2018.
    .. [2] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GaussianMechanism
    >>> ages = np.array([[34.0], [51.0], [29.0], [62.0]])
    >>> mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5, sensitivity=100.0).fit(ages)
    >>> round(mechanism.sigma_, 2)
    373.06
    >>> noisy_sum = mechanism.release(ages.clip(0, 100).sum())
    >>> mechanism.privacy_cost_
    PrivacyCost(mu=0.268051, epsilon=1 at delta=1e-05, neighboring='add_or_remove')
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEstimator._parameter_constraints,
        "sensitivity": [None, Interval(Real, 0, None, closed="neither")],
        "clip_norm": [None, Interval(Real, 0, None, closed="neither")],
        "n_releases": [Interval(Integral, 1, None, closed="left")],
        "calibration": [StrOptions({"analytic", "classic"})],
    }

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        sensitivity: float | None = None,
        clip_norm: float | None = None,
        n_releases: int = 1,
        calibration: str = "analytic",
        neighboring: str = "add_or_remove",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.sensitivity = sensitivity
        self.clip_norm = clip_norm
        self.n_releases = n_releases
        self.calibration = calibration
        self.neighboring = neighboring
        self.random_state = random_state

    def _sizes(self, n_features: int) -> tuple[float, float, float]:
        """Sensitivity of `release`, clip norm and sensitivity of a row."""
        factor = relation_factor(self.neighboring)
        if self.clip_norm is not None:
            clip_norm = float(self.clip_norm)
        elif self.sensitivity is not None:
            clip_norm = self.sensitivity / factor
        else:
            clip_norm = sqrt(n_features)
        row = clip_norm * factor
        value = row if self.sensitivity is None else float(self.sensitivity)
        for name, size in (("sensitivity", value), ("clip_norm", clip_norm)):
            if not (_SMALLEST < size < _LARGEST):
                raise ValueError(
                    f"{name} must be between {_SMALLEST:g} and {_LARGEST:g}, got {size:g}"
                )
        return value, clip_norm, row

    def plan(self, n_samples: int, n_features: int, n_outputs: int = 1) -> Plan:
        """Sigma and cost of the releases, computed without data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of X. The number of rows has no influence.
        n_outputs : int, default=1
            Not used.

        Returns
        -------
        plan : Plan
        """
        budget = self._check_parameters()
        shape = ProblemShape(n_samples, n_features)
        value, clip_norm, _ = self._sizes(n_features)
        settings = {"clip_norm": clip_norm}
        if isinf(budget.mu):
            return Plan(shape, budget, (), settings)
        # Rounding onto the grid moves each of two neighbouring values by at most half its
        # diagonal: together one diagonal, 2**-30 of the sensitivity.
        rounded = value * (1.0 + 2.0**-_GRID_BITS)
        mu = budget.split([1.0] * self.n_releases)[0].mu
        if self.calibration == "classic":
            mu = min(mu, self._classic_mu(budget))
        return Plan(
            shape, budget, (PlannedRelease("value", rounded, mu, self.n_releases),), settings
        )

    def _classic_mu(self, budget: PrivacyCost) -> float:
        """Mu of one release under the classic calibration of all of them together."""
        epsilon = budget.epsilon() if isinstance(self.epsilon, PrivacyCost) else self.epsilon
        return 1.0 / (classic_sigma(float(epsilon), budget.reference_delta) * sqrt(self.n_releases))

    def fit(self, X: ArrayLike, y: object = None) -> GaussianMechanism:
        """Calibrate the noise; of X only the number and the names of columns are used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; its values are validated but not used.
        y : None
            Ignored.

        Returns
        -------
        self : GaussianMechanism
        """
        self._check_parameters()
        n_samples, n_features = check_features(self, X, reset=True).shape
        self.plan_ = self.plan(n_samples, n_features)
        warn_large_delta(self.plan_.budget, n_samples)
        value, self.clip_norm_, row = self._sizes(n_features)
        self.sigma_ = self.row_sigma_ = 0.0
        if self.plan_.releases:
            planned = self.plan_.releases[0]
            self.sigma_ = planned.sigma
            self.row_sigma_ = planned.sigma if row == value else row / planned.mu * SIGMA_SLACK
        self._sensitivity_given = self.sensitivity is not None
        self._counter = _ReleaseCounter()
        return self

    @property
    def privacy_cost_(self) -> PrivacyCost:
        """Cost of the planned releases, or of those made when `transform` was called more often."""
        check_is_fitted(self, "plan_")
        # Of the plan that the noise was made for, not of parameters changed since.
        planned = self.plan_.budget
        if not planned.is_finite:
            return planned
        if self.random_state is not None or self._counter.seeded:
            planned = planned.with_assumptions(SEEDED)
        if self._counter.copied:
            planned = planned.with_assumptions(COPIED)
        if self._counter.made <= self.plan_.releases[0].count:
            return planned
        one = self._cost_of_one().with_assumptions(*planned.assumptions)
        return PrivacyCost.compose([one] * self._counter.made)

    def _cost_of_one(self) -> PrivacyCost:
        """Cost of a single release of the plan."""
        return self.plan_.budget.split([1.0] * self.plan_.releases[0].count)[0]

    def _ask_before_releases(self, guard: Callable[[bool], None]) -> tuple[PrivacyCost, int]:
        """Have `guard` called before each further release; cost of one, and how many are paid."""
        self._counter.guard = guard
        return self._cost_of_one(), self.plan_.releases[0].count - self._counter.made

    @property
    def releases_(self) -> tuple[Release, ...]:
        """The releases made so far, by `release` and by `transform`."""
        check_is_fitted(self, "plan_")
        return tuple(self._counter.releases)

    def release(
        self, value: ArrayLike, *, sensitivity: float | None = None
    ) -> NDArray[np.float64] | np.float64:
        """Release a statistic that you have computed from the data.

        Parameters
        ----------
        value : array-like
            Finite numbers; values beyond the grid's range (about 2e9 times the sensitivity, over
            the square root of the number of entries) are clipped to it.
        sensitivity : float, default=None
            L2 sensitivity of this value: the most that it can change with one record. It scales
            the noise. None: the one of the constructor.

        Returns
        -------
        noisy : ndarray of the shape of `value`, or float for a single number
            On a grid of step ``2**-30 * sensitivity / sqrt(size)`` or less.

        Raises
        ------
        PrivacyBudgetError
            If `n_releases` releases were already made.
        ValueError
            If no sensitivity is given, or the value is not made of finite numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import GaussianMechanism
        >>> heights = np.array([[1.62], [1.80], [1.75]])
        >>> mechanism = GaussianMechanism(epsilon=1.0, n_releases=2).fit(heights)
        >>> mean = mechanism.release(heights.clip(0, 2.5).mean(), sensitivity=2.5 / 3)
        >>> counts, _ = np.histogram(heights, bins=[0.0, 1.5, 1.7, 2.5])
        >>> mechanism.release(counts, sensitivity=1.0).shape
        (3,)
        """
        check_is_fitted(self, "plan_")
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise ValueError("value must hold numbers of at most 64 bits")
        if not np.isfinite(array).all():
            raise ValueError("value must hold finite numbers")
        if sensitivity is None and not self._sensitivity_given:
            # The norm that rows are clipped to says nothing about a statistic of many of them.
            raise ValueError(
                "release needs the sensitivity of the value, the most that one record can change "
                "it: release(value, sensitivity=...), or GaussianMechanism(sensitivity=...)"
            )
        if sensitivity is not None and not (_SMALLEST < sensitivity < _LARGEST):
            raise ValueError(f"sensitivity must be between {_SMALLEST:g} and {_LARGEST:g}")
        if not self.plan_.releases:
            return array.astype(np.float64)[()]
        planned = self.plan_.releases[0]
        size = planned.sensitivity
        if sensitivity is not None:
            size = sensitivity * (1.0 + 2.0**-_GRID_BITS)
        sigma = size / planned.mu * SIGMA_SLACK
        step = floor_power_of_two(size * 2.0**-_GRID_BITS / sqrt(max(array.size, 1)))
        # A single number comes back as one, not as an array without dimensions.
        return self._noisy("value", _on_grid(array, step), step, sigma, size, planned.count)[()]

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Release every row of X: clipped to `clip_norm_`, plus fresh noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to release. Each call is a release of each row.

        Returns
        -------
        noisy : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "plan_")
        features = check_features(self, X, reset=False)
        if not self.plan_.releases:
            return np.array(features)
        n_features = features.shape[1]
        sensitivity = self.clip_norm_ * relation_factor(self.plan_.budget.neighboring)
        # Rows are rounded toward zero within the norm: no rounding to pay for.
        step = floor_power_of_two(self.clip_norm_ * 2.0**-_ROW_BITS)
        limit = np.floor((self.clip_norm_ / step) ** 2 * (1.0 - 2.0**-50))
        bits = _ROW_BITS + 1  # clip_norm_ is below 2**bits steps
        scale = 2.0**-bits / step
        integers = np.empty(features.shape)
        for rows in iter_blocks(len(features), max(1, _BLOCK_ENTRIES // n_features)):
            integers[rows], _, _ = round_rows(features[rows], scale=scale, bits=bits, limit=limit)
        return self._noisy("rows", integers, step, self.row_sigma_, sensitivity, inf)

    def _noisy(
        self,
        name: str,
        integers: NDArray[Any],
        step: float,
        sigma: float,
        sensitivity: float,
        most: float,
    ) -> NDArray[np.float64]:
        """Charge a release, then make it."""
        if sigma / step > 2.0**MAX_SIGMA_BITS:
            raise ValueError("the budget is too small for a value with so many entries")
        total = ExactTotal(integers.shape)
        total.add(integers)
        seed = check_seed(self.random_state)
        made = Release(name, sensitivity, sigma, self.plan_.releases[0].mu)
        number = self._counter.charge(made, seeded=seed is not None, most=most)
        context = (type(self).__name__, number)
        return add_noise(BoundedSum(name, total, step, sensitivity), sigma, seed, context)

    def make_non_private(self) -> Any:
        """``"passthrough"``: without privacy there is nothing to do."""
        return "passthrough"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        tags.non_deterministic = self._is_private
        return tags


def _on_grid(value: NDArray[Any], step: float) -> NDArray[Any]:
    """Nearest integers in units of `step`, clipped to 62 bits."""
    if value.dtype.kind in "iu" and (np.abs(value.astype(np.float64)) > 2.0**52).any():
        # float64 would round such integers by more than the step, which nobody has paid for.
        exact = [round(Fraction(int(v)) / Fraction(step)) for v in value.flat]
        clipped = [max(-_TOP, min(_TOP, v)) for v in exact]
        return np.array(clipped, dtype=np.int64).reshape(value.shape)
    with np.errstate(all="ignore"):
        return np.rint(np.clip(value.astype(np.float64) / step, -_TOP, _TOP))
