"""Privacy costs of Gaussian releases: a value object that converts, adds up and splits exactly."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from skdp._gdp import (
    check_open_unit,
    check_real,
    classic_sigma,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
)

__all__ = ["PrivacyCost", "classic_sigma", "gdp_delta", "gdp_epsilon", "gdp_mu"]

NEIGHBORING = ("add_or_remove", "replace")


@dataclass(frozen=True, slots=True, repr=False)
class PrivacyCost:
    """What a set of Gaussian releases costs, as one number mu of Gaussian differential privacy.

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

    References
    ----------
    .. [1] J. Dong, A. Roth and W. Su, "Gaussian differential privacy", JRSS B 84(1), 2022,
       Corollary 3.3 (composition) and Corollary 2.13 (conversion).

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
    """

    mu: float
    neighboring: str = "add_or_remove"
    unit: str = "record"
    reference_delta: float = 1e-5
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields and bring them to their one form."""
        object.__setattr__(self, "mu", check_real(self.mu, "mu"))
        if self.neighboring not in NEIGHBORING:
            raise ValueError(f"neighboring must be one of {NEIGHBORING}, got {self.neighboring!r}")
        if not isinstance(self.unit, str) or not self.unit:
            raise ValueError(f"unit must be a word such as 'record', got {self.unit!r}")
        delta = check_open_unit(self.reference_delta, "reference_delta")
        object.__setattr__(self, "reference_delta", delta)
        texts: object = self.assumptions
        if isinstance(texts, str):  # it would be taken apart into letters
            raise TypeError("assumptions must be a sequence of strings, not one string")
        if not all(isinstance(text, str) for text in self.assumptions):
            raise TypeError("assumptions must be a sequence of strings")
        object.__setattr__(self, "assumptions", tuple(sorted(set(self.assumptions))))

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

        The sum of the squares of mu is exact and its root rounded up, so one cost composes to
        itself and the order does not matter.

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
        if all(part.is_finite for part in parts):
            ratios = [part.mu.as_integer_ratio() for part in parts]
            scale = max(bottom for _, bottom in ratios)  # a power of two, as they all are
            total = sum((top * (scale // bottom)) ** 2 for top, bottom in ratios)
            mu = _square_root(total, scale * scale, up=True)
        else:
            mu = math.inf
        return cls(
            mu,
            first.neighboring,
            first.unit,
            min(part.reference_delta for part in parts),
            tuple(text for part in parts for text in part.assumptions),
        )

    def __add__(self, other: object) -> Self:
        """`compose` of two costs. A cost plus the number 0 is itself, for the sake of `sum`."""
        if isinstance(other, PrivacyCost):
            return self.compose([self, other])
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    __radd__ = __add__

    @property
    def is_finite(self) -> bool:
        """Whether there is a guarantee at all."""
        return math.isfinite(self.mu)

    def epsilon(self, delta: float | None = None) -> float:
        """Return the smallest epsilon that holds at `delta`, rounded up.

        Parameters
        ----------
        delta : float, default=None
            Probability with which the loss may exceed epsilon, in [0, 1]; None for the
            cost's `reference_delta`.

        Returns
        -------
        float
            The epsilon; ``inf`` where none is large enough.
        """
        return gdp_epsilon(self.reference_delta if delta is None else delta, self.mu)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`, rounded up.

        Parameters
        ----------
        epsilon : float
            Privacy loss that is tolerated outright, at least 0.

        Returns
        -------
        float
            The delta, in [0, 1].
        """
        return gdp_delta(epsilon, self.mu)

    def split(self, shares: Iterable[float]) -> tuple[Self, ...]:
        """Divide the cost into parts that compose to it.

        Parameters
        ----------
        shares : iterable of float
            Shares of mu^2, positive and finite; only their proportions matter.

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
        ratios = [weight.as_integer_ratio() for weight in weights]
        scale = max(bottom for _, bottom in ratios)
        units = [top * (scale // bottom) for top, bottom in ratios]
        top, bottom = self.mu.as_integer_ratio()
        divisor = sum(units) * bottom**2
        # Equal shares, of which a solver has many, are computed once.
        made = {
            unit: replace(self, mu=_square_root(unit * top**2, divisor, up=False))
            for unit in set(units)
        }
        parts = tuple(made[unit] for unit in units)
        if self.mu > 0.0 and any(part.mu == 0.0 for part in parts):
            raise ValueError("a share is too small: its part of mu underflows to zero")
        return parts

    def to_replace(self) -> Self:
        """Return the cost under the relation "replace".

        Replacing a unit is removing it and adding another one, so mu doubles. This is the only
        conversion there is: nothing can be said in the other direction.

        Returns
        -------
        PrivacyCost
            The converted cost, or this one if it is under "replace" already.
        """
        if self.neighboring == "replace":
            return self
        return replace(self, mu=2.0 * self.mu, neighboring="replace")

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
        return replace(self, assumptions=self.assumptions + texts)

    def covers(self, other: "PrivacyCost") -> bool:
        """Return whether `other` fits into this cost.

        Parameters
        ----------
        other : PrivacyCost
            A cost of the same relation and unit.

        Returns
        -------
        bool
            Whether ``other.mu <= self.mu * (1 + 2**-40)``. The slack lets costs that were rounded
            on their way (k equal parts) fit; the noise of every release is larger by as
            much, which pays for it.

        Raises
        ------
        ValueError
            If the two costs differ in their relation or unit.
        """
        self._check_same_kind(other, "compared")
        return other.mu <= self.mu + 2.0**-40 * self.mu

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
        """State mu and the epsilon it means at the reference delta."""
        if self.mu == 0.0:
            text = "mu=0, nothing released"
        elif not self.is_finite:
            text = "mu=inf, no privacy"
        else:
            text = f"mu={self.mu:.6g}, epsilon={self.epsilon():.6g}"
            text += f" at delta={self.reference_delta:g}"
        text += f", neighboring={self.neighboring!r}"
        if self.unit != "record":
            text += f", unit={self.unit!r}"
        if self.assumptions:
            text += f", assumptions={list(self.assumptions)}"
        return f"{type(self).__name__}({text})"


def _square_root(top: int, bottom: int, *, up: bool) -> float:
    """Return sqrt(top / bottom) for integers, rounded up or down to a double without error."""
    # Scale by 4^shift so that the integer root has 54 or 55 bits, then cut it to 53; below the
    # normal range there are fewer bits to have.
    shift = min(55 - (top.bit_length() - bottom.bit_length()) // 2, 1074)
    top <<= 2 * max(shift, 0)
    bottom <<= 2 * max(-shift, 0)
    root = math.isqrt(top // bottom)
    extra = max(root.bit_length() - 53, 0)
    cut = root >> extra << extra
    if up and cut * cut * bottom != top:
        cut += 1 << extra
    try:
        return math.ldexp(cut, -shift)
    except OverflowError:
        return math.inf
