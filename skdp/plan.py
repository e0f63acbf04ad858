"""What a fit will release and how much noise it will add, known before any data.

Pure numbers: everything here is a function of hyper-parameters and of the public shape of the
problem, so a plan can be shown, stored, priced and compared without touching a record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isinf
from types import MappingProxyType
from typing import Any

from skdp.accounting import PrivacyCost

__all__ = ["Plan", "PlannedRelease", "ProblemShape", "Release", "relation_factor"]

# Noise scales carry this relative slack: it pays for the rounding of mu and sigma, so that what
# is spent is never above what was planned (shared decision of the accounting and the ledger).
SIGMA_SLACK = 1.0 + 2.0**-40
# Smallest mu of one release: the noise of any less would leave the 64 bits of its grid.
_LEAST_MU = 2.0**-40


def relation_factor(neighboring: str, kind: str = "signed") -> float:
    """Largest change of a sum when one record changes, in units of one record's largest share.

    Parameters
    ----------
    neighboring : {"add_or_remove", "replace"}
        The relation. ``"add_or_remove"`` compares a record with a blank one.
    kind : {"signed", "nonnegative"}
        Whether two records' shares can point in opposite directions (a clipped gradient) or have
        a non-negative inner product (counts, outer products of rows with themselves).

    Returns
    -------
    factor : float
        1 for ``"add_or_remove"``; for ``"replace"`` 2 or sqrt(2).
    """
    if neighboring == "add_or_remove":
        return 1.0
    # sqrt(2) rounded up, so that the product with a norm is never too small.
    return 2.0 if kind == "signed" else 1.4142135623730954


@dataclass(frozen=True)
class ProblemShape:
    """The public facts a plan may depend on.

    Parameters
    ----------
    n_rows : int
        Declared number of records.
    n_features : int
        Number of columns of X.
    n_outputs : int, default=1
        Number of coefficient vectors learned together.
    """

    n_rows: int
    n_features: int
    n_outputs: int = 1


@dataclass(frozen=True)
class PlannedRelease:
    """One Gaussian release, or `count` equal ones, before it happens.

    Parameters
    ----------
    name : str
        What is released.
    sensitivity : float
        L2 sensitivity of the released value, in its own units.
    mu : float
        Gaussian-DP parameter of each release.
    count : int, default=1
        How many times it is released.
    delta0 : float, default=0.0
        Probability with which each release may fail to be Gaussian, as a thresholded one may.
    """

    name: str
    sensitivity: float
    mu: float
    count: int = 1
    delta0: float = 0.0

    @property
    def sigma(self) -> float:
        """Noise standard deviation of each release, in the units of the value."""
        return self.sensitivity / self.mu * SIGMA_SLACK


@dataclass(frozen=True)
class Release:
    """One Gaussian release that took place: what, how sensitive, how noisy, at what cost.

    Attributes
    ----------
    name : str
        What was released.
    sensitivity : float
        L2 sensitivity in the units of the released value.
    sigma : float
        Standard deviation of the noise in the same units.
    mu : float
        Gaussian-DP parameter charged.
    delta0 : float, default=0.0
        Probability of failure charged beside it.
    """

    name: str
    sensitivity: float
    sigma: float
    mu: float
    delta0: float = 0.0

    @property
    def mechanism(self) -> str:
        """How: values that do not reach a threshold are not shown, or all of them are."""
        return "thresholded Gaussian" if self.delta0 else "Gaussian"


@dataclass(frozen=True)
class Plan:
    """All that a fit will do to the data.

    Attributes
    ----------
    shape : ProblemShape
        The public facts it was made from.
    budget : PrivacyCost
        What the user allowed.
    releases : tuple of PlannedRelease
        Every release, in order. Empty when `budget` is infinite.
    settings : mapping
        The solver's settings chosen for this shape and budget.

    Raises
    ------
    ValueError
        If the budget is too small for the noise of a release.
    """

    shape: ProblemShape
    budget: PrivacyCost
    releases: tuple[PlannedRelease, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        for release in self.releases:
            if not release.mu >= _LEAST_MU:
                raise ValueError(
                    f"the budget is too small: {release.name!r} would be released with "
                    f"mu={release.mu:g}, and noise is available down to mu={_LEAST_MU:.3g}"
                )

    def __repr__(self) -> str:
        """State the shape, the budget and how many releases there are; `str` lists them."""
        shape = self.shape
        count = sum(release.count for release in self.releases)
        return (
            f"Plan(n_rows={shape.n_rows}, n_features={shape.n_features}, "
            f"n_outputs={shape.n_outputs}, mu={self.budget.gaussian_mu:.6g}, {count} releases)"
        )

    def __str__(self) -> str:
        """Write a table of the releases."""
        lines = [repr(self)]
        if self.releases:
            lines.append(f"{'release':<16}{'count':>6}{'sensitivity':>13}{'sigma':>11}{'mu':>11}")
        for release in self.releases:
            lines.append(
                f"{release.name:<16}{release.count:>6}{release.sensitivity:>13.4g}"
                f"{release.sigma:>11.4g}{release.mu:>11.4g}"
            )
        if self.settings:
            found = (f"{name}={value!r}" for name, value in self.settings.items())
            lines.append(f"settings: {', '.join(found)}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:  # a mappingproxy cannot be pickled
        return type(self), (self.shape, self.budget, self.releases, dict(self.settings))

    @property
    def cost(self) -> PrivacyCost:
        """Composition of all planned releases; never above `budget`."""
        if isinf(self.budget.gaussian_mu):
            return self.budget
        parts = [
            PrivacyCost(r.mu, self.budget.neighboring, self.budget.unit, delta0=r.delta0)
            for r in self.releases
            for _ in range(r.count)
        ]
        total = PrivacyCost.compose(parts) if parts else PrivacyCost(0.0)
        return PrivacyCost(
            total.gaussian_mu,
            self.budget.neighboring,
            self.budget.unit,
            self.budget.reference_delta,
            self.budget.assumptions,
            delta0=total.delta0,
        )
