"""Which of several estimators costs most."""

from collections.abc import Iterable, Sequence
from typing import Any

from skdp.accounting import PrivacyCost
from skdp.cost._core import privacy_cost

__all__ = ["costliest", "largest_cost"]


def costliest(estimators: Iterable[Any]) -> Any:
    """The estimator that costs most, or the least cost that covers all if none of them does."""
    found = list(estimators)
    costs = [privacy_cost(estimator) for estimator in found]
    largest = largest_cost(costs)
    if largest is not None:
        return found[largest]
    return PrivacyCost(
        max(cost.gaussian_mu for cost in costs),
        costs[0].neighboring,
        costs[0].unit,
        min(cost.reference_delta for cost in costs),
        [text for cost in costs for text in cost.assumptions],
        epsilon0=max(cost.epsilon0 for cost in costs),
        delta0=max(cost.delta0 for cost in costs),
    )


def largest_cost(costs: Sequence[PrivacyCost]) -> int | None:
    """Index of the cost that no other exceeds in mu, epsilon0 or delta0, if there is one."""
    sizes = [(cost.gaussian_mu, cost.epsilon0, cost.delta0) for cost in costs]
    largest = tuple(map(max, zip(*sizes, strict=True)))
    return sizes.index(largest) if largest in sizes else None
