"""Costs with a pair (epsilon0, delta0) beside mu, against high-precision arithmetic."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import make_pipeline

from skdp import DPRidge, PrivacyCost, privacy_cost
from skdp._validation import check_budget
from skdp.cost import register_cost_rule
from skdp.cost._core import _EXACT

MUS = (0.0, 1e-3, 0.3, 2.0)
EPSILONS0 = (0.0, 1e-6, 0.5, 3.0, 60.0)
DELTAS0 = (0.0, 1e-12, 1e-5, 0.2)
GRID = list(itertools.product(MUS, EPSILONS0, DELTAS0))


def loss_curve(epsilon, mu, epsilon0, delta0):
    """delta from the loss itself: E max(0, 1 - exp(epsilon - loss)), its law written down afresh.

    The loss is infinite with probability delta0, else a sign times epsilon0 plus a Gaussian of
    mean mu^2 / 2 and variance mu^2.
    """
    with mpmath.workdps(60):
        epsilon, mu, epsilon0, delta0 = map(mpmath.mpf, (epsilon, mu, epsilon0, delta0))
        total = mpmath.mpf(0)
        for sign in (1, -1):
            weight = 1 / (1 + mpmath.exp(-sign * epsilon0))
            rest = epsilon - sign * epsilon0
            if mu == 0:
                part = max(mpmath.mpf(0), -mpmath.expm1(rest))
            else:
                part = mpmath.ncdf(-rest / mu + mu / 2) - mpmath.exp(rest) * mpmath.ncdf(
                    -rest / mu - mu / 2
                )
            total += weight * part
        return delta0 + (1 - delta0) * total


def test_the_curve_of_the_loss_is_its_integral():
    # The reference itself, in the one place where quadrature is easy.
    mu, epsilon0, epsilon = mpmath.mpf("0.8"), mpmath.mpf("0.5"), mpmath.mpf("0.7")
    value = mpmath.mpf(0)
    for sign in (1, -1):
        start = (epsilon - sign * epsilon0) / mu - mu / 2
        tail = mpmath.quad(
            lambda z, sign=sign: (
                mpmath.npdf(z) * (1 - mpmath.exp(epsilon - sign * epsilon0 - mu * z - mu * mu / 2))
            ),
            [start, start + 4, start + 12],
        )
        value += tail / (1 + mpmath.exp(-sign * epsilon0))
    assert abs(value - loss_curve(epsilon, mu, epsilon0, 0)) < 1e-15


def test_delta_is_accurate_and_safe():
    for mu, epsilon0, delta0 in GRID:
        cost = PrivacyCost(mu, epsilon0=epsilon0, delta0=delta0)
        for epsilon in (0.0, 1e-7, 0.3, 0.5, 2.9999999, 3.0, 5.0, 61.0):
            exact = loss_curve(epsilon, mu, epsilon0, delta0)
            got = cost.delta(epsilon)
            assert exact <= got, (cost, epsilon)
            assert got <= exact * (1 + mpmath.mpf("1e-12")) + mpmath.mpf(10) ** -300
        assert cost.delta(math.inf) == delta0


def test_clamping_negative_arguments_would_be_unsound():
    # With d(-t) taken as d(0) the curve would be too low by more than a tenth.
    cost = PrivacyCost(0.3, epsilon0=0.5)
    clamped = PrivacyCost(0.3).delta(0.0) * math.exp(0.5) / (1 + math.exp(0.5))
    assert cost.delta(0.1) > clamped * 1.1


def test_epsilon_is_the_inverse_and_safe():
    for mu, epsilon0, delta0 in GRID:
        cost = PrivacyCost(mu, epsilon0=epsilon0, delta0=delta0)
        for delta in (1e-15, 1e-9, 2e-5, 0.1999, 0.21, 0.9):
            epsilon = cost.epsilon(delta)
            if epsilon == math.inf:
                assert delta <= delta0
                continue
            assert loss_curve(epsilon, mu, epsilon0, delta0) <= delta
            assert cost.delta(epsilon) <= delta
            if epsilon > 1e-6:
                less = loss_curve(epsilon * (1 - 1e-9), mu, epsilon0, delta0)
                assert less > delta or epsilon <= epsilon0 * (1 + 1e-9), (cost, delta)


def test_epsilon_at_and_below_delta0():
    assert PrivacyCost(0.3, delta0=1e-5).epsilon(1e-5) == math.inf
    assert PrivacyCost(0.3, delta0=1e-5).epsilon(1e-6) == math.inf
    assert PrivacyCost(0.3, delta0=1e-5).epsilon(math.nextafter(1e-5, 1)) < 10
    # Without a Gaussian part the pair holds as it stands.
    assert PrivacyCost(0.0, epsilon0=0.7, delta0=1e-5).epsilon(1e-5) == 0.7
    assert PrivacyCost(0.0, epsilon0=0.7).epsilon(0.0) == 0.7
    assert PrivacyCost(0.0, epsilon0=0.7).epsilon(0.3) < 0.11
    assert PrivacyCost(0.0, delta0=1e-5).epsilon(1e-5) == 0.0


def test_without_a_pair_nothing_changes():
    plain = PrivacyCost(0.3)
    assert plain == PrivacyCost(0.3, epsilon0=0.0, delta0=-0.0)
    assert (plain.mu, plain.gaussian_mu, plain.has_pair) == (0.3, 0.3, False)
    tiny = PrivacyCost(0.3, epsilon0=1e-300)
    assert tiny != plain
    assert tiny.delta(1.0) == pytest.approx(plain.delta(1.0), rel=1e-13)


def test_no_bare_mu():
    cost = PrivacyCost(0.3, delta0=1e-6)
    with pytest.raises(AttributeError, match="gaussian_mu"):
        _ = cost.mu
    assert not hasattr(PrivacyCost(0.0, epsilon0=1.0), "mu")
    assert cost.gaussian_mu == 0.3


def test_pairs_add_up_exactly_rounded_up():
    rng = np.random.default_rng(3)
    values = [float(v) for v in 10.0 ** rng.uniform(-12, -1, 200)]
    costs = [PrivacyCost(0.1, epsilon0=v, delta0=v / 7) for v in values]
    total = PrivacyCost.compose(costs)
    for name in ("epsilon0", "delta0"):
        exact = sum(Fraction(getattr(cost, name)) for cost in costs)
        got = getattr(total, name)
        assert Fraction(got) >= exact > Fraction(math.nextafter(got, 0.0))
    assert PrivacyCost.compose(reversed(costs)) == total
    assert PrivacyCost.compose([costs[0]]) == costs[0] == costs[0] + PrivacyCost.zero()
    assert PrivacyCost.compose([PrivacyCost(1.0, delta0=0.7)] * 2).delta0 == 1.0


def test_what_is_finite():
    assert PrivacyCost(0.1, epsilon0=5.0, delta0=0.9).is_finite
    for cost in (
        PrivacyCost(0.1, epsilon0=math.inf),
        PrivacyCost(0.1, delta0=1.0),
        PrivacyCost(math.inf, delta0=0.1),
    ):
        assert not cost.is_finite
        assert (cost.epsilon(0.5), cost.delta(3.0)) == (math.inf, 1.0)
        assert "no privacy" in repr(cost)


def test_parts_compose_to_the_whole():
    whole = PrivacyCost(0.3, epsilon0=0.1, delta0=1e-6, assumptions=("a",))
    for shares in ([1] * 7, [0.1, 0.2, 0.7], [1e-3, 5]):
        parts = whole.split(shares)
        again = PrivacyCost.compose(parts)
        assert whole.covers(again)
        for name in ("gaussian_mu", "epsilon0", "delta0"):
            value = getattr(whole, name)
            assert value - 2 * math.ulp(value) <= getattr(again, name) <= value
    with pytest.raises(ValueError, match="delta0 underflows"):
        PrivacyCost(0.3, delta0=5e-324).split([1, 1])


def test_covers_compares_each_part():
    budget = PrivacyCost(0.3, epsilon0=0.1, delta0=1e-6)
    assert budget.covers(budget) and budget.covers(PrivacyCost(0.3))
    assert not budget.covers(PrivacyCost(0.3, epsilon0=0.11))
    assert not budget.covers(PrivacyCost(0.3, delta0=2e-6))
    assert not budget.covers(PrivacyCost(0.31))
    assert not PrivacyCost(0.3).covers(PrivacyCost(0.1, delta0=1e-30))


def test_replace_doubles_a_pair_alone_and_is_refused_beside_mu():
    cost = PrivacyCost(0.0, epsilon0=0.5, delta0=1e-6).to_replace()
    assert (cost.gaussian_mu, cost.epsilon0, cost.neighboring) == (0.0, 1.0, "replace")
    exact = (1 + mpmath.exp(mpmath.mpf("0.5"))) * mpmath.mpf(1e-6)
    assert 0 <= cost.delta0 / exact - 1 < 1e-13
    assert PrivacyCost(0.0, epsilon0=800.0, delta0=1e-6).to_replace().delta0 == 1.0
    with pytest.raises(ValueError, match="neighboring='replace' instead"):
        PrivacyCost(0.3, delta0=1e-6).to_replace()
    kept = PrivacyCost(0.3, "replace", delta0=1e-6)
    assert kept.to_replace() is kept


def test_two_steps_along_a_curve_with_both_leave_the_family():
    # Why it is refused: f(1 - f(a)) at a = 0, for f of (mu, delta0), is what no doubling covers.
    mu, delta0 = 3.0, mpmath.mpf("1e-6")
    power = mpmath.ncdf(-mpmath.sqrt(2) * mpmath.erfinv(2 * delta0 / (1 - delta0) - 1) - mu)
    after_two = 1 - (1 - delta0) * power
    assert after_two > 1000 * delta0


def test_a_cost_with_a_pair_is_a_value():
    cost = PrivacyCost(0.3, "replace", epsilon0=0.1, delta0=1e-6).with_assumptions("b", "a")
    for twin in (copy.copy(cost), copy.deepcopy(cost), pickle.loads(pickle.dumps(cost))):
        assert twin == cost and hash(twin) == hash(cost) and repr(twin) == repr(cost)
    assert repr(cost).startswith("PrivacyCost(gaussian_mu=0.3, epsilon0=0.1, delta0=1e-06, eps")
    assert repr(PrivacyCost(0.0, epsilon0=1.0)).startswith("PrivacyCost(epsilon0=1, epsilon=")
    assert cost.assumptions == ("a", "b")
    assert cost != PrivacyCost(0.3, "replace", assumptions=("a", "b"))
    with pytest.raises(AttributeError):
        cost.delta0 = 0.0


@pytest.mark.parametrize("bad", [-1.0, math.nan, "1", None, True])
def test_senseless_pairs_are_named(bad):
    for name in ("epsilon0", "delta0"):
        with pytest.raises((TypeError, ValueError), match=name):
            PrivacyCost(0.1, **{name: bad})
    with pytest.raises(ValueError, match="delta0"):
        PrivacyCost(0.1, delta0=1.5)


# ---- where costs are used ----


def test_gaussian_estimators_refuse_a_budget_with_a_pair():
    with pytest.raises(ValueError, match="pair"):
        DPRidge(epsilon=PrivacyCost(0.3, delta0=1e-6)).planned_cost()
    cost = PrivacyCost(0.1, delta0=1e-6)
    assert check_budget(cost, 1e-5, "add_or_remove", failure=True) is cost
    for other, message in (
        (PrivacyCost(0.1), "without a delta0"),
        (PrivacyCost(0.1, epsilon0=0.1, delta0=1e-6), "epsilon0"),
        (PrivacyCost(0.0, delta0=1e-6), "zero"),
    ):
        with pytest.raises(ValueError, match=message):
            check_budget(other, 1e-5, "add_or_remove", failure=True)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-12])
def test_a_part_of_delta_is_set_aside_and_the_total_kept(epsilon, delta):
    budget = check_budget(epsilon, delta, "add_or_remove", failure=True)
    assert budget.delta0 == pytest.approx(delta / 10)
    gaussian = PrivacyCost(budget.gaussian_mu)
    assert budget.delta0 + gaussian.delta(epsilon) <= delta
    assert budget.delta0 + PrivacyCost(budget.gaussian_mu * 1.001).delta(epsilon) > delta
    assert budget.delta(epsilon) <= delta and budget.epsilon() <= epsilon


class Paired(BaseEstimator):
    """Stands for an estimator that costs a pair."""

    def __init__(self, pair=(0.1, 0.0, 0.0)):
        self.pair = pair

    def fit(self, X, y=None):
        return self

    def planned_cost(self):
        return PrivacyCost(self.pair[0], epsilon0=self.pair[1], delta0=self.pair[2])


def test_privacy_cost_composes_pairs():
    a, b = (0.3, 0.0, 1e-6), (0.4, 0.1, 0.0)
    cost = privacy_cost(make_pipeline(Paired(a), Paired(b)))
    assert (cost.gaussian_mu, cost.epsilon0, cost.delta0) == (
        PrivacyCost.compose([PrivacyCost(0.3), PrivacyCost(0.4)]).mu,
        0.1,
        1e-6,
    )
    assert privacy_cost(Paired((0.0, 0.1, 0.0))).epsilon0 == 0.1
    search = GridSearchCV(Paired(), {"pair": [a, b]}, cv=KFold(3))
    cost = privacy_cost(search)
    # Two fits of each, and a refit that is as bad as either in every respect.
    assert cost.epsilon0 == math.nextafter(0.3, 1)
    assert cost.delta0 == pytest.approx(3e-6)
    drawn = RandomizedSearchCV(Paired(), {"pair": [a, b]}, n_iter=1, cv=KFold(2))
    with pytest.raises(ValueError, match="which candidate costs most"):
        privacy_cost(drawn)


def test_an_infinite_step_beside_a_pair_keeps_its_path():
    register_cost_rule(Paired, lambda obj: PrivacyCost(0.1, delta0=1.0, assumptions=("why",)))
    try:
        cost = privacy_cost(make_pipeline(Paired()))
    finally:
        del _EXACT[Paired]
    assert not cost.is_finite
    assert cost.assumptions == ("step 'paired': why",)
