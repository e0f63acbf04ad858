"""A line of a ledger's history, and how histories are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import inf
from types import MappingProxyType
from typing import Any

from skdp.accounting import PrivacyCost

__all__ = ["COLUMNS", "LedgerEntry", "as_dict", "html_table"]

COLUMNS = (
    "number",
    "time",
    "estimator",
    "parameters",
    "mu",
    "epsilon0",
    "delta0",
    "epsilon",
    "accepted",
    "state",
)


@dataclass(frozen=True)
class LedgerEntry:
    """One charge in the history of a `PrivacyLedger`.

    Attributes
    ----------
    number : int
        Place in the history, from 1.
    time : str
        When it was reserved, in UTC, as ISO 8601.
    estimator : str
        Name of the estimator's class.
    parameters : mapping of str to object
        Parameters that differ from their defaults, by name as in ``set_params``. Numbers, truth
        values and single words as they are; of everything else the type and the size.
    cost : PrivacyCost
        What was charged.
    accepted : tuple of str
        The assumptions of the cost, which the user accepted.
    state : {"reserved", "released", "failed", "withheld", "exceeded"}
        ``"reserved"``: granted, and the fit has not ended, or was killed. ``"released"``: the fit
        ended well. ``"failed"``: it ended in an error, after it may have released something.
        ``"withheld"``: it made assumptions that had not been accepted. ``"exceeded"``: it cost
        more than was planned. All of them count.
    """

    number: int
    time: str
    estimator: str
    parameters: Mapping[str, Any]
    cost: PrivacyCost
    accepted: tuple[str, ...]
    state: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    def __reduce__(self) -> tuple[Any, ...]:  # a mappingproxy cannot be pickled
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return type(self), tuple(dict(v) if isinstance(v, MappingProxyType) else v for v in values)


def as_dict(entry: LedgerEntry, delta: float) -> dict[str, Any]:
    """A flat form for tables and JSON; epsilon is stated at `delta`."""
    return {
        "number": entry.number,
        "time": entry.time,
        "estimator": entry.estimator,
        "parameters": dict(entry.parameters),
        "mu": entry.cost.gaussian_mu,
        "epsilon0": entry.cost.epsilon0,
        "delta0": entry.cost.delta0,
        "epsilon": _finite(entry.cost.epsilon(delta)),
        "accepted": list(entry.accepted),
        "state": entry.state,
    }


def _finite(epsilon: float) -> float | None:
    """JSON has no infinity; a delta0 that is not below delta has no epsilon."""
    return epsilon if epsilon < inf else None


def html_table(title: str, entries: Sequence[LedgerEntry], delta: float) -> str:
    """The history as a table."""
    head = ("", "time (UTC)", "estimator", "parameters", f"epsilon at {delta:g}", "mu", "state")
    lines = [
        (
            entry.number,
            entry.time[:19].replace("T", " "),
            entry.estimator,
            ", ".join(f"{name}={value!r}" for name, value in entry.parameters.items()),
            f"{entry.cost.epsilon(delta):.4g}",
            f"{entry.cost.gaussian_mu:.4g}",
            entry.state,
        )
        for entry in entries
    ]
    rows = [f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr>"]
    rows += [
        f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in line)}</tr>" for line in lines
    ]
    return f"<p>{escape(title)}</p><table>{''.join(rows)}</table>"
