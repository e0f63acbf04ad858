"""Granting, refusing and settling charges."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.cost import privacy_cost
from skdp.exceptions import PrivacyBudgetError, PrivacyLedgerError, PrivacyWarning
from skdp.ledger._admission import Accept, check_admissible, is_charged, new_assumptions
from skdp.ledger._caps import LIMIT, UNITS, Amount, all_left, fits, minus
from skdp.ledger._describe import describe
from skdp.ledger._mechanisms import attach
from skdp.ledger._store import Store

__all__ = ["Cashier", "numbers"]


class Cashier:
    """Decides about charges to a stored ledger; may be pickled.

    Parameters
    ----------
    store : Store
        The file.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def left(
        self, spent: Amount, delta: float | None = None, *, pairs: bool = False
    ) -> PrivacyCost:
        """What may still be spent."""
        left = minus(Amount(UNITS, UNITS, UNITS) if pairs else Amount(UNITS, 0, 0), spent)
        return self.cost(left, up=False, delta=delta)

    def cost(self, units: Amount, *, up: bool, delta: float | None = None) -> PrivacyCost:
        """A number of units as a cost, rounded up or down."""
        caps = self.store.caps
        epsilon0, delta0 = caps.pair_of(units, up=up)
        return PrivacyCost(
            caps.mu_of(units.mu, up=up),
            caps.neighboring,
            caps.unit,
            caps.delta if delta is None else delta,
            epsilon0=epsilon0,
            delta0=delta0,
        )

    def check(self, estimator: Any, cost: PrivacyCost, accept: Accept) -> None:
        """Refuse a cost that no ledger takes."""
        caps = self.store.caps
        check_admissible(type(estimator).__name__, cost, caps.neighboring, caps.unit, accept)

    def reserve(self, estimator: Any, cost: PrivacyCost, accept: Accept = ()) -> int:
        """Charge the planned cost of a fit, or refuse it; the number of the charge."""
        self.check(estimator, cost, accept)
        return self.grant(_entry(estimator, cost, cost.assumptions), cost)

    def grant(self, entry: dict[str, Any], cost: PrivacyCost, state: str | None = None) -> int:
        """Charge a cost, or refuse it."""
        asked = self.store.caps.amount(cost)

        def decide(spent: Amount) -> tuple[dict[str, Any], Amount]:
            if not fits(spent, asked):
                raise PrivacyBudgetError(self._refusal(entry["estimator"], cost, spent, asked))
            return entry, asked

        return self.store.append(decide, state)

    def use(self, number: int, label: str, paid: int, name: str, cost: PrivacyCost) -> None:
        """Take one of the releases that a charge has paid for, or charge one more."""
        if not self.store.use(number, label, paid):
            entry = {"estimator": name, "parameters": {"charge": number}, **numbers(cost)}
            self.grant({**entry, "assumptions": []}, cost, "released")

    def charge_anyway(self, estimator: Any, asked: Amount, assumptions: tuple[str, ...]) -> int:
        """Charge what was spent already; all that is left if it is more than that."""
        short: list[bool] = []

        def decide(spent: Amount) -> tuple[dict[str, Any], Amount]:
            short.append(not fits(spent, asked))
            taken = all_left(spent) if short[-1] else asked
            return _entry(estimator, self.cost(taken, up=True), assumptions), taken

        number = self.store.append(decide, "released")
        if short[-1]:
            self.note(number, "exceeded")
            raise PrivacyBudgetError(
                f"{type(estimator).__name__} cost more than was left of the total, so all of that "
                "was charged: nothing more can be fitted on this data set"
            )
        return number

    def _refusal(self, name: str, cost: PrivacyCost, spent: Amount, asked: Amount) -> str:
        caps = self.store.caps
        if spent.mu + asked.mu > LIMIT.mu:
            left = self.left(spent)
            return (
                f"{name} would cost epsilon={cost.epsilon(caps.delta):.6g} at "
                f"delta={caps.delta:g}, but epsilon={left.epsilon():.6g} is left of the "
                f"{caps.epsilon:g} of the ledger for {self.store.dataset!r}; "
                "nothing was charged, and the data were not touched"
            )
        return (
            f"{name} would cost a pair epsilon0={cost.epsilon0:.6g}, delta0={cost.delta0:.6g} for "
            f"releases that are not Gaussian, and the ledger for {self.store.dataset!r}, made with "
            f"epsilon0={caps.epsilon0:g} and delta0={caps.delta0:g}, has less than that left; "
            "nothing was charged, and the data were not touched. A new ledger, made with delta0= a "
            "tenth of delta, has room for steps that need one"
        )

    def settle(self, number: int, model: Any, planned: PrivacyCost, accept: Accept) -> None:
        """Compare what a fit cost with what was reserved for it."""
        # First, as the block that fitted it has it whatever follows.
        attach(self, number, model)
        name, cost = type(model).__name__, privacy_cost(model)
        if not cost.is_finite or (is_charged(cost) and not planned.covers(cost)):
            self.note(number, "exceeded")
            asked = minus(self.store.caps.amount(cost), self.store.caps.amount(planned))
            self.charge_anyway(model, asked, ())
            raise PrivacyBudgetError(
                f"{name} cost more than was planned and reserved; the difference was charged too. "
                "Whoever gave it a cost should know"
            )
        if more := new_assumptions(cost, planned, accept):
            self.note(number, "withheld")
            raise PrivacyBudgetError(
                f"the fit of {name}, which is charged, made assumptions that were not accepted: "
                f"{'; '.join(more)}"
            )
        self.note(number, "released")

    def fail(self, number: int, model: Any, planned: PrivacyCost) -> None:
        """Note that a fit ended in an error; what its mechanisms released beyond it is charged."""
        attach(self, number, model)
        self.note(number, "failed")
        with suppress(Exception):  # half fitted, it may have no cost; the error goes on its way
            cost = privacy_cost(model)
            if cost.is_finite and is_charged(cost) and not planned.covers(cost):
                asked = minus(self.store.caps.amount(cost), self.store.caps.amount(planned))
                self.charge_anyway(model, asked, ())

    def note(self, number: int, state: str) -> None:
        """Write down what became of a charge; it counts even where that fails."""
        try:
            self.store.note(number, state)
        except PrivacyLedgerError as error:
            warn(
                f"charge {number} stays charged, but that it is {state!r} could not be written "
                f"down: {error}",
                PrivacyWarning,
            )


def numbers(cost: PrivacyCost) -> dict[str, float]:
    """What a cost is made of, for JSON."""
    return {"mu": cost.gaussian_mu, "epsilon0": cost.epsilon0, "delta0": cost.delta0}


def _entry(estimator: Any, cost: PrivacyCost, assumptions: tuple[str, ...]) -> dict[str, Any]:
    return {
        "estimator": type(estimator).__name__,
        "parameters": describe(estimator),
        **numbers(cost),
        "assumptions": list(assumptions),
    }
