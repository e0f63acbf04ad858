"""What every private estimator shares: its budget, its plan, its public twin."""

from abc import ABCMeta, abstractmethod
from math import isinf
from typing import Any

from sklearn.base import BaseEstimator

from skdp._validation import (
    PRIVACY_CONSTRAINTS,
    check_budget,
    check_parameters,
    check_seed,
    warn_large_delta,
)
from skdp.accounting import PrivacyCost
from skdp.noise import NoiseCore
from skdp.plan import Plan

__all__ = ["PrivateEstimator", "PrivateLearner"]

SEEDED = "random_state is set: whoever knows the seed can remove the noise (not private)"


class PrivateEstimator(BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators that release everything through Gaussian noise.

    Subclasses have the parameters `epsilon`, `delta`, `neighboring` and `random_state`, make
    their `plan` from public facts only, and know their scikit-learn twin.
    """

    _parameter_constraints: dict[str, Any] = {**PRIVACY_CONSTRAINTS}

    epsilon: float | PrivacyCost
    delta: float
    neighboring: str
    random_state: Any

    @abstractmethod
    def plan(self, n_samples: int, n_features: int, n_outputs: int = 1) -> Plan:
        """All that `fit` would release, computed without data."""

    @abstractmethod
    def make_non_private(self) -> BaseEstimator:
        """The scikit-learn estimator that this one privatises, unfitted, with its parameters."""

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            Made from `epsilon`, `delta` and `neighboring`; the other parameters decide at most
            about its assumptions.
        """
        budget = check_budget(self.epsilon, self.delta, self.neighboring)
        budget = budget.with_assumptions(*self._planned_assumptions())
        if self.random_state is not None and budget.is_finite:
            budget = budget.with_assumptions(SEEDED)
        return budget

    def needs_delta0(self) -> bool:
        """Whether a fit needs a part of delta for itself, beside that of Gaussian noise.

        Returns
        -------
        needed : bool
            False unless something is released that can fail with a small probability.
        """
        return False

    def _planned_assumptions(self) -> tuple[str, ...]:
        """What the parameters leave to be read from the data."""
        return ()

    def _check_parameters(self) -> PrivacyCost:
        """Parameters are valid, whatever scikit-learn's configuration skips; the budget."""
        check_parameters(self)
        return check_budget(self.epsilon, self.delta, self.neighboring)

    @property
    def _is_private(self) -> bool:
        """Whether noise is added: epsilon is not an explicit infinity."""
        epsilon = (
            self.epsilon.gaussian_mu if isinstance(self.epsilon, PrivacyCost) else self.epsilon
        )
        return not isinf(epsilon)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # With noise on a few dozen rows no score can be promised, and without a seed no two
        # fits are equal: this is the purpose.
        tags.non_deterministic = self.random_state is None and self._is_private
        return tags


class PrivateLearner(PrivateEstimator):
    """Base of estimators that release everything in one `fit`.

    A subclass calls, in this order: `_check_parameters`, its validation of the data, `plan`,
    `_start` (which gives the noise core of the plan), and `_finish`.
    """

    def _start(self, plan: Plan) -> NoiseCore:
        """Noise core for the plan; warns when delta is senseless for the number of rows.

        The fit is charged with its first release, even if it ends in an error later, and at once
        where there is none.
        """
        if plan.releases:
            warn_large_delta(plan.budget, plan.shape.n_rows)
        else:
            self._charge(plan)
        return NoiseCore(
            plan.releases,
            seed=check_seed(self.random_state),
            owner=type(self).__name__,
            on_first_release=lambda: self._charge(plan),
        )

    def _charge(self, plan: Plan) -> None:
        """State what the fit costs, and forget what an earlier one learned."""
        kept = ("n_features_in_", "feature_names_in_")
        for name in [n for n in vars(self) if n.endswith("_") and n not in kept]:
            delattr(self, name)
        self.plan_ = plan
        self.privacy_cost_ = self.planned_cost()

    def _finish(self, plan: Plan, noise: NoiseCore, assumptions: tuple[str, ...] = ()) -> None:
        """Record what was spent; it must equal the plan."""
        self.releases_ = noise.finish()
        self.privacy_cost_ = self.planned_cost().with_assumptions(*assumptions)

    def _finish_non_private(self, plan: Plan, assumptions: tuple[str, ...] = ()) -> None:
        """The attributes of a fit at ``epsilon=inf``."""
        self.releases_ = ()
        self.plan_ = plan
        self.privacy_cost_ = PrivacyCost.infinite(
            f"{type(self).__name__} has an infinite epsilon: no privacy",
            neighboring=self.neighboring,
        ).with_assumptions(*assumptions)
