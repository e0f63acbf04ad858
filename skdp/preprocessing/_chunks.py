"""What chunks of disjoint records cost together."""

from skdp.accounting import PrivacyCost

__all__ = ["DISJOINT", "cost_of_disjoint"]

DISJOINT = "no record is in more than one of the chunks given to partial_fit, or to fit before them"


def cost_of_disjoint(first: PrivacyCost, second: PrivacyCost) -> PrivacyCost:
    """Cost of releases of disjoint records: the larger one, with all that both assume.

    Parameters
    ----------
    first, second : PrivacyCost
        Costs of the two, without pairs.
    """
    larger = max(first, second, key=lambda cost: cost.mu)
    return larger.with_assumptions(*first.assumptions, *second.assumptions, DISJOINT)
