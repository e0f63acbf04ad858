"""Privacy costs: a value object that converts, adds up and splits exactly."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self

from skdp._curve import PrivacyCurve
from skdp._gdp import (
    check_open_unit,
    check_real,
    classic_sigma,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)
from skdp._pairs import pair_of_two
from skdp._rounding import integer_ratios, proportional, root, root_of_squares, total

__all__ = ["PrivacyCost", "classic_sigma", "gdp_delta", "gdp_epsilon", "gdp_mu"]

NEIGHBORING = ("add_or_remove", "replace")


@dataclass(frozen=True, repr=False, init=False)
class PrivacyCost(PrivacyCurve):
    """What a set of releases costs, as one number mu of Gaussian differential privacy.

    Releases that are not Gaussian, if there are any, add a pair (epsilon0, delta0) to it.

    A cost is immutable, hashable and made of plain values, so it can be stored, pickled, compared
    and used as an estimator's parameter.

    Parameters
    ----------
    mu : float
        Gaussian privacy parameter: the root of the sum of (sensitivity / noise standard
        deviation)^2 over the releases. 0 when nothing was released, ``inf`` when something was
        released without noise.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        Which data sets count as neighbours: a unit against a blank one (zero-out in the
        literature; the number of rows is public), or one unit's contents against any
        other contents.
    unit : str, default="record"
        What is protected: one "record", or all records of one "person".
    reference_delta : float, default=1e-5
        The delta at which `epsilon` and the printed form state epsilon.
    assumptions : tuple of str, default=()
        What the guarantee takes as public or does not cover. Kept sorted, without repeats.
    epsilon0, delta0 : float, default=0.0
        Sums over the releases that are not Gaussian: what each is (epsilon0, delta0)-differentially
        private for, beside mu. A thresholded histogram, say, has a mu and a delta0.

    Attributes
    ----------
    mu : float
        The Gaussian privacy parameter. Absent (an AttributeError) where there is a pair beside it,
        since it is not the cost then.
    gaussian_mu : float
        The Gaussian part of any cost.

    Raises
    ------
    TypeError, ValueError
        If a field is not of its kind or range.

    See Also
    --------
    gdp_mu : The largest mu within an (epsilon, delta).

    Notes
    -----
    **Privacy.** A release with cost ``mu`` is exactly (epsilon, delta(epsilon; mu))-differentially
    private for every epsilon at once. Costs of releases add up in squares, also when later
    releases are chosen after seeing earlier ones [1]_. Every rounding in this class goes to the
    safe side: conversions never understate a cost, and parts never add up to more than the whole.

    With a pair beside mu, and d the curve of mu, ``p = e^epsilon0 / (1 + e^epsilon0)``,
    ``delta(epsilon) = delta0 + (1 - delta0) (p d(epsilon - epsilon0) + (1 - p) d(epsilon +
    epsilon0))`` [2]_. Pairs add up. This curve holds for releases that were planned in advance: who
    decides by it when to stop, as a ledger would, can exceed it.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. Su, "Gaussian differential privacy", JRSS B 84(1), 2022,
       Corollary 3.3 (composition) and Corollary 2.13 (conversion).
    .. [2] P. Kairouz, S. Oh and P. Viswanath, "The composition theorem for differential privacy",
       ICML 2015, Theorem 3.3.

    Examples
    --------
    >>> from skdp.accounting import PrivacyCost
    >>> budget = PrivacyCost.from_epsilon(1.0, 1e-5)
    >>> budget
    PrivacyCost(mu=0.268051, epsilon=1 at delta=1e-05, neighboring='add_or_remove')
    >>> scaler, model = budget.split([1, 3])
    >>> print(f"{scaler.epsilon():.3f} {model.epsilon():.3f}")
    0.469 0.854
    >>> PrivacyCost.compose([scaler, model]).mu <= budget.mu
    True
    >>> PrivacyCost(0.2, delta0=1e-6)
    PrivacyCost(gaussian_mu=0.2, delta0=1e-06, epsilon=0.730783 at delta=1e-05, \
neighboring='add_or_remove')
    """

    gaussian_mu: float = field(init=False)  # given as mu
    neighboring: str
    unit: str
    reference_delta: float
    assumptions: tuple[str, ...]
    epsilon0: float
    delta0: float

    def __init__(
        self,
        mu: float,
        neighboring: str = "add_or_remove",
        unit: str = "record",
        reference_delta: float = 1e-5,
        assumptions: Iterable[str] = (),
        *,
        epsilon0: float = 0.0,
        delta0: float = 0.0,
    ) -> None:
        if neighboring not in NEIGHBORING:
            raise ValueError(f"neighboring must be one of {NEIGHBORING}, got {neighboring!r}")
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"unit must be a word such as 'record', got {unit!r}")
        if isinstance(assumptions, str):  # it would be taken apart into letters
            raise TypeError("assumptions must be a sequence of strings, not one string")
        texts = set(assumptions)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("assumptions must be a sequence of strings")
        values = (
            check_real(mu, "mu"),
            neighboring,
            unit,
            check_open_unit(reference_delta, "reference_delta"),
            tuple(sorted(texts)),
            check_real(epsilon0, "epsilon0"),
            check_real(delta0, "delta0", upper=1.0),
        )
        for item, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, item.name, value)

    def _with(self, **changes: Any) -> Self:
        """The same cost with other fields, the Gaussian part called `mu`."""
        kept = {item.name: getattr(self, item.name) for item in fields(self)}
        kept["mu"] = kept.pop("gaussian_mu")
        return type(self)(**{**kept, **changes})

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float,
        delta: float,
        *,
        neighboring: str = "add_or_remove",
        unit: str = "record",
    ) -> Self:
        """Return the largest cost that is (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float
            Privacy loss that is tolerated outright, at least 0; ``inf`` gives an infinite cost.
        delta : float
            Probability with which the loss may exceed epsilon, strictly between 0 and 1. It
            becomes the cost's `reference_delta`.
        neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
            The neighbouring relation of the guarantee.
        unit : str, default="record"
            The unit of the guarantee.

        Returns
        -------
        PrivacyCost
            The cost, with mu rounded down.
        """
        mu = gdp_mu(epsilon, delta)
        return cls(mu, neighboring=neighboring, unit=unit, reference_delta=delta)

    @classmethod
    def zero(
        cls,
        *,
        neighboring: str = "add_or_remove",
        unit: str = "record",
        reference_delta: float = 1e-5,
    ) -> Self:
        """Return the cost of releasing nothing.

        Parameters
        ----------
        neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
            The neighbouring relation.
        unit : str, default="record"
            The unit of protection.
        reference_delta : float, default=1e-5
            The delta at which epsilon is stated.

        Returns
        -------
        PrivacyCost
            A cost with ``mu = 0``.
        """
        return cls(0.0, neighboring=neighboring, unit=unit, reference_delta=reference_delta)

    @classmethod
    def infinite(
        cls,
        reason: str,
        *,
        neighboring: str = "add_or_remove",
        unit: str = "record",
        reference_delta: float = 1e-5,
    ) -> Self:
        """Return the cost of a release without noise.

        Parameters
        ----------
        reason : str
            Why there is no guarantee; kept among the `assumptions`.
        neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
            The neighbouring relation.
        unit : str, default="record"
            The unit of protection.
        reference_delta : float, default=1e-5
            The delta at which epsilon is stated.

        Returns
        -------
        PrivacyCost
            A cost with ``mu = inf``.
        """
        return cls(math.inf, neighboring, unit, reference_delta, (reason,))

    @classmethod
    def compose(cls, costs: Iterable["PrivacyCost"]) -> Self:
        """Return the cost of all the releases together.

        The sum of the squares of mu is exact and its root rounded up, and so are the sums of
        epsilon0 and of delta0: one cost composes to itself and the order does not matter.

        Parameters
        ----------
        costs : iterable of PrivacyCost
            The costs, all of one relation and one unit. None at all compose to a zero cost.

        Returns
        -------
        PrivacyCost
            The total, with all assumptions and the smallest `reference_delta`.

        Raises
        ------
        ValueError
            If the costs differ in their relation or unit.
        """
        parts = tuple(costs)
        if not parts:
            return cls.zero()
        first = parts[0]
        for part in parts[1:]:
            first._check_same_kind(part, "composed")
        mus = [part.gaussian_mu for part in parts]
        return cls(
            root_of_squares(mus) if math.inf not in mus else math.inf,
            first.neighboring,
            first.unit,
            min(part.reference_delta for part in parts),
            [text for part in parts for text in part.assumptions],
            epsilon0=total(part.epsilon0 for part in parts),
            delta0=min(1.0, total(part.delta0 for part in parts)),
        )

    def __add__(self, other: object) -> Self:
        """`compose` of two costs. A cost plus the number 0 is itself, for the sake of `sum`."""
        if isinstance(other, PrivacyCost):
            return self.compose([self, other])
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    __radd__ = __add__

    def split(self, shares: Iterable[float]) -> tuple[Self, ...]:
        """Divide the cost into parts that compose to it.

        Parameters
        ----------
        shares : iterable of float
            Shares of mu^2, and of epsilon0 and delta0, positive and finite; only their
            proportions matter.

        Returns
        -------
        tuple of PrivacyCost
            One part for each share, ``mu * sqrt(share / sum)`` rounded down: composed, they never
            exceed this cost and stay within two units in the last place below it. Parts of an
            infinite cost are infinite.

        Raises
        ------
        TypeError, ValueError
            If there is no share, or one is not a positive finite number.
        """
        weights = [check_real(share, "each share") for share in shares]
        if not weights:
            raise ValueError("shares must hold at least one number")
        if not all(0.0 < weight < math.inf for weight in weights):
            raise ValueError(f"shares must be positive and finite, got {weights}")
        if not self.is_finite:
            return (self,) * len(weights)
        units, _ = integer_ratios(weights)
        whole = sum(units)
        top, bottom = self.gaussian_mu.as_integer_ratio()
        # Equal shares, of which a solver has many, are computed once.
        made = {
            unit: self._with(
                mu=root(unit * top**2, whole * bottom**2, up=False),
                epsilon0=proportional(self.epsilon0, unit, whole),
                delta0=proportional(self.delta0, unit, whole),
            )
            for unit in set(units)
        }
        for name in ("gaussian_mu", "epsilon0", "delta0"):
            if getattr(self, name) > 0.0 and any(getattr(p, name) == 0.0 for p in made.values()):
                raise ValueError(f"a share is too small: its part of {name} underflows to zero")
        return tuple(made[unit] for unit in units)

    def to_replace(self) -> Self:
        """Return the cost under the relation "replace".

        Replacing a unit is removing it and adding another one, so mu doubles, and a pair without
        a Gaussian part becomes ``(2 epsilon0, (1 + e^epsilon0) delta0)``. This is the only
        conversion there is: nothing can be said in the other direction.

        Returns
        -------
        PrivacyCost
            The converted cost, or this one if it is under "replace" already.

        Raises
        ------
        ValueError
            If there is a pair beside a Gaussian part: two steps along such a curve lead out of
            this family of curves, so the release must be accounted for under "replace" itself.
        """
        if self.neighboring == "replace":
            return self
        if self.has_pair and self.gaussian_mu > 0.0:
            raise ValueError(
                "a cost with a pair (epsilon0, delta0) beside mu has no bound of this form under "
                "'replace': plan the releases with neighboring='replace' instead"
            )
        epsilon0, delta0 = pair_of_two(self.epsilon0, self.delta0)
        return self._with(
            mu=2.0 * self.gaussian_mu, neighboring="replace", epsilon0=epsilon0, delta0=delta0
        )

    def with_assumptions(self, *texts: str) -> Self:
        """Return the same cost with more assumptions stated.

        Parameters
        ----------
        *texts : str
            What the guarantee takes as public or does not cover.

        Returns
        -------
        PrivacyCost
            A copy that lists them too.
        """
        return self._with(assumptions=self.assumptions + texts)

    def covers(self, other: "PrivacyCost") -> bool:
        """Return whether `other` fits into this cost.

        Parameters
        ----------
        other : PrivacyCost
            A cost of the same relation and unit.

        Returns
        -------
        bool
            Whether ``mu <= self.mu * (1 + 2**-40)`` for the Gaussian part of `other`, and neither
            its epsilon0 nor its delta0 is larger. The slack lets costs that were rounded on
            their way (k equal parts) fit; the noise of every release is larger by as much, which
            pays for it.

        Raises
        ------
        ValueError
            If the two costs differ in their relation or unit.
        """
        self._check_same_kind(other, "compared")
        return (
            other.gaussian_mu <= self.gaussian_mu + 2.0**-40 * self.gaussian_mu
            and other.epsilon0 <= self.epsilon0
            and other.delta0 <= self.delta0
        )

    def _check_same_kind(self, other: "PrivacyCost", action: str) -> None:
        if not isinstance(other, PrivacyCost):
            raise TypeError(f"only PrivacyCost objects can be {action}, got {type(other).__name__}")
        if other.neighboring != self.neighboring:
            raise ValueError(
                f"Costs under neighboring={self.neighboring!r} and {other.neighboring!r} cannot be "
                f"{action}; convert with to_replace() first."
            )
        if other.unit != self.unit:
            raise ValueError(
                f"Costs for unit={self.unit!r} and {other.unit!r} cannot be {action}: "
                "they protect different things."
            )

    def __repr__(self) -> str:
        """State mu, a pair if there is one, and the epsilon it means at the reference delta."""
        if not self.is_finite:
            text = "mu=inf, no privacy"
        elif not self.has_pair and self.gaussian_mu == 0.0:
            text = "mu=0, nothing released"
        else:
            shown = {"gaussian_mu" if self.has_pair else "mu": self.gaussian_mu}
            shown |= {"epsilon0": self.epsilon0, "delta0": self.delta0}
            text = ", ".join(f"{name}={value:.6g}" for name, value in shown.items() if value)
            text += f", epsilon={self.epsilon():.6g} at delta={self.reference_delta:g}"
        text += f", neighboring={self.neighboring!r}"
        if self.unit != "record":
            text += f", unit={self.unit!r}"
        if self.assumptions:
            text += f", assumptions={list(self.assumptions)}"
        return f"{type(self).__name__}({text})"
