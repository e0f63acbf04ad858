"""What a ledger allows, and what of it a charge takes, counted in whole units."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

from skdp._gdp import check_open_unit, check_real, gdp_epsilon, gdp_mu
from skdp._rounding import cut, root
from skdp.accounting import PrivacyCost

__all__ = ["LIMIT", "NOTHING", "UNITS", "Amount", "Caps", "all_left", "fits", "minus", "plus"]

# A cap is this many units, and every charge a whole number of them, rounded up.
UNITS = 1 << 60


class Amount(NamedTuple):
    """Units of the three caps: of mu squared, of epsilon0, of delta0."""

    mu: int
    epsilon0: int
    delta0: int


# What rounding may add beyond the cap. Sigma's slack pays for that of mu: the noise of every
# release is larger by 1 + 2**-40 than its mu says, and (1 + 2**-40)**2 * 2**60 > 2**60 + 2**21. The
# caps of the pairs are taken from the budget with the slack included.
LIMIT = Amount(UNITS + (1 << 21), UNITS + (1 << 20), UNITS + (1 << 20))
NOTHING = Amount(0, 0, 0)
_TOO_MUCH = Amount(*(2 * limit for limit in LIMIT))
_WITH_SLACK = 1 + Fraction(1, 1 << 40)


def plus(a: Amount, b: Amount) -> Amount:
    """The sum of two amounts."""
    return Amount(*(x + y for x, y in zip(a, b, strict=True)))


def minus(a: Amount, b: Amount) -> Amount:
    """What `a` has more than `b`."""
    return Amount(*(max(x - y, 0) for x, y in zip(a, b, strict=True)))


def all_left(spent: Amount) -> Amount:
    """What fills all caps to their limit."""
    return minus(LIMIT, spent)


def fits(spent: Amount, more: Amount) -> bool:
    """Whether a charge is within all three caps."""
    return all(total <= limit for total, limit in zip(plus(spent, more), LIMIT, strict=True))


@dataclass(frozen=True)
class Caps:
    """The three caps that together stay within (epsilon, delta), fixed before anything is charged.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee for everything that is ever charged.
    mu : float
        Cap of the root of the sum of mu squared.
    epsilon0, delta0 : float
        Caps of the sums of epsilon0 and of delta0.
    neighboring, unit : str
        Relation and unit of the guarantee and of every charge.

    Notes
    -----
    Whoever charges a ledger has seen what was released before, and may stop or go on because of
    it. The sums of mu squared, of epsilon0 and of delta0 can be capped under such a choice; a
    formula for the total of a plan that is fixed beforehand cannot. What stays below
    ``mu``, ``epsilon0`` and ``delta0`` is (epsilon, delta)-DP with
    ``delta = delta0 + d(epsilon - epsilon0; mu)``, d the curve of `gdp_delta`.
    """

    epsilon: float
    delta: float
    mu: float
    epsilon0: float
    delta0: float
    neighboring: str
    unit: str

    @classmethod
    def of(
        cls,
        epsilon: object,
        delta: object,
        epsilon0: object,
        delta0: object,
        neighboring: str,
        unit: str,
    ) -> Self:
        """The caps with the largest mu for a budget.

        Raises
        ------
        TypeError, ValueError
            Naming the parameter at fault.
        """
        if isinstance(epsilon, PrivacyCost):
            return cls._of_cost(epsilon, delta)
        if delta is None:
            raise ValueError("give delta= with epsilon=")
        total = check_real(epsilon, "epsilon")
        if not 0.0 < total < math.inf:
            raise ValueError(
                f"the epsilon of a ledger must be positive and finite, got {total}: without a "
                "bound there is nothing to keep to"
            )
        tail = check_open_unit(delta, "delta")
        pure, lost = check_real(epsilon0, "epsilon0"), check_real(delta0, "delta0")
        if not pure < total:
            raise ValueError(f"epsilon0 must be less than epsilon={total:g}, got {pure:g}")
        if not lost < tail:
            raise ValueError(f"delta0 must be less than delta={tail:g}, got {lost:g}")
        mu = gdp_mu(_less(total, pure), _less(tail, lost))
        # Validates the relation and the unit too.
        return cls(
            total,
            tail,
            PrivacyCost(mu, neighboring, unit).gaussian_mu,
            pure,
            lost,
            *(neighboring, unit),
        )

    @classmethod
    def _of_cost(cls, cost: PrivacyCost, delta: object) -> Self:
        """Caps as a cost has them; the guarantee is at its `reference_delta`."""
        mu, tail = cost.gaussian_mu, cost.reference_delta
        if not (cost.is_finite and mu > 0.0):
            raise ValueError("the epsilon of a ledger must be a finite PrivacyCost with a mu")
        if delta is not None and delta != tail:
            raise ValueError(
                f"delta={delta!r} is not the reference_delta={tail!r} of the PrivacyCost given as "
                "epsilon; leave delta out"
            )
        if not cost.delta0 < tail:
            raise ValueError(
                f"the PrivacyCost has delta0={cost.delta0:g}, which leaves nothing of its "
                f"reference_delta={tail:g}"
            )
        rest = gdp_epsilon(_less(tail, cost.delta0), mu)
        epsilon = cut(Fraction(rest) + Fraction(cost.epsilon0) * _WITH_SLACK, up=True)
        return cls(epsilon, tail, mu, cost.epsilon0, cost.delta0, cost.neighboring, cost.unit)

    def amount(self, cost: PrivacyCost) -> Amount:
        """Units that a cost takes, rounded up; more than any limit if it is infinite."""
        if not cost.is_finite:
            return _TOO_MUCH
        share = Fraction(cost.gaussian_mu) / Fraction(self.mu)
        return Amount(
            min(math.ceil(share * share * UNITS), _TOO_MUCH.mu),
            _pair_units(cost.epsilon0, self.epsilon0),
            _pair_units(cost.delta0, self.delta0),
        )

    def mu_of(self, units: int, *, up: bool) -> float:
        """The mu of a number of units, rounded up or down to a double."""
        top, bottom = self.mu.as_integer_ratio()
        return root(units * top**2, UNITS * bottom**2, up=up)

    def pair_of(self, units: Amount, *, up: bool) -> tuple[float, float]:
        """The epsilon0 and delta0 of a number of units, rounded up or down."""
        return (
            cut(Fraction(units.epsilon0, UNITS) * Fraction(repr(self.epsilon0)), up=up),
            cut(Fraction(units.delta0, UNITS) * Fraction(repr(self.delta0)), up=up),
        )


def _less(total: float, part: float) -> float:
    """``total - part * (1 + 2**-40)``, rounded down; exactly the total without a part."""
    return cut(Fraction(total) - Fraction(part) * _WITH_SLACK, up=False)


def _pair_units(value: float, cap: float) -> int:
    """Units of a number that adds up as it stands: read as the decimal that one would write.

    Ten times 0.1 are 1 then. The difference to the double is far within the slack.
    """
    if value == 0.0:
        return 0
    if cap == 0.0:
        return _TOO_MUCH.mu
    return min(math.ceil(Fraction(repr(value)) / Fraction(repr(cap)) * UNITS), _TOO_MUCH.mu)
