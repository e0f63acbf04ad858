"""Mechanisms that go on releasing after the fit: every release that was not planned is charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skdp.base import SEEDED
from skdp.exceptions import PrivacyBudgetError
from skdp.mechanism import GaussianMechanism

if TYPE_CHECKING:
    from skdp.ledger._cashier import Cashier

__all__ = ["attach"]


class _Guard:
    """Asked before each release of a mechanism, and of its copies, in whatever process."""

    def __init__(self, cashier: Cashier, number: int, label: str) -> None:
        self.cashier, self.number, self.label = cashier, number, label

    def watch(self, mechanism: GaussianMechanism) -> None:
        self.name = type(mechanism).__name__
        self.cost, self.paid = mechanism._ask_before_releases(self)

    def __call__(self, seeded: bool) -> None:
        if seeded:
            raise PrivacyBudgetError(f"a ledger does not take seeded noise: {SEEDED}")
        self.cashier.use(self.number, self.label, self.paid, self.name, self.cost)


def attach(cashier: Cashier, number: int, fitted: Any) -> None:
    """Let all mechanisms in a fitted object ask the ledger before they release anything more."""
    for place, mechanism in enumerate(_mechanisms(fitted, set())):
        _Guard(cashier, number, str(place)).watch(mechanism)


def _mechanisms(value: Any, seen: set[int]) -> Iterator[GaussianMechanism]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, GaussianMechanism):
        if "_counter" in vars(value) and value.plan_.releases:
            yield value
        return
    if isinstance(value, dict):
        children: Any = value.values()
    elif isinstance(value, list | tuple):
        children = value
    elif hasattr(value, "get_params") and not isinstance(value, type):
        children = vars(value).values()
    else:
        return
    for child in children:
        yield from _mechanisms(child, seen)
