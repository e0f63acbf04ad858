"""Which costs a ledger takes at all."""

from collections.abc import Iterable

from skdp.accounting import PrivacyCost
from skdp.base import SEEDED
from skdp.exceptions import PrivacyBudgetError

__all__ = ["Accept", "check_admissible", "checked_accept", "is_charged", "new_assumptions"]

Accept = bool | Iterable[str]


def check_admissible(
    name: str, cost: PrivacyCost, neighboring: str, unit: str, accept: Accept
) -> None:
    """Refuse costs that are infinite, seeded, of another kind, or assume what was not accepted.

    Raises
    ------
    PrivacyBudgetError
        Saying what to do instead.
    """
    if not cost.is_finite:
        raise PrivacyBudgetError(
            f"{name} has no finite privacy cost, so it cannot be charged: "
            f"{'; '.join(cost.assumptions)}"
        )
    if any(SEEDED in text for text in cost.assumptions):
        raise PrivacyBudgetError(
            f"{name} has seeded noise, which a ledger does not take: {SEEDED}; leave random_state "
            "None"
        )
    if is_charged(cost) and (cost.neighboring, cost.unit) != (neighboring, unit):
        raise PrivacyBudgetError(
            f"{name} costs privacy with neighboring={cost.neighboring!r} and unit={cost.unit!r}, "
            f"and the ledger guarantees it with neighboring={neighboring!r} and unit={unit!r}; set "
            "the same on the estimator"
        )
    if missing := _not_accepted(cost.assumptions, accept):
        raise PrivacyBudgetError(
            f"the privacy cost of {name} assumes: {'; '.join(missing)}. Remove the cause, or take "
            "it upon you: accept=[...] with a part of each text"
        )


def is_charged(cost: PrivacyCost) -> bool:
    """Whether a cost takes anything."""
    return cost.gaussian_mu > 0.0 or cost.has_pair


def new_assumptions(cost: PrivacyCost, planned: PrivacyCost, accept: Accept) -> tuple[str, ...]:
    """Assumptions that a fit added to those that were planned, and that nobody accepted."""
    return _not_accepted(sorted({*cost.assumptions} - {*planned.assumptions}), accept)


def checked_accept(accept: Accept) -> Accept:
    """What a user accepts, in a form that can be read several times."""
    if isinstance(accept, bool):
        return accept
    parts = (accept,) if isinstance(accept, str) else tuple(accept)
    if not all(isinstance(part, str) and part.strip() for part in parts):
        raise TypeError("accept must be True, False or texts that occur in the assumptions")
    return parts


def _not_accepted(texts: Iterable[str], accept: Accept) -> tuple[str, ...]:
    if isinstance(accept, bool):
        return () if accept else tuple(texts)
    return tuple(text for text in texts if not any(part in text for part in accept))
