"""Privacy accounting against high-precision arithmetic, and the laws of PrivacyCost."""

import copy
import dataclasses
import itertools
import math
import pickle
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from sklearn.base import BaseEstimator, clone

from skdp.accounting import PrivacyCost, classic_sigma, gdp_delta, gdp_epsilon, gdp_mu

EPSILONS = (0.0, 1e-6, 1e-3, 0.1, 1.0, 3.0, 8.0, 50.0, 1e3)
DELTAS = (
    *(1e-300, 1e-100, 1e-30, 1e-18, 1e-12, 1e-9, 1e-6, 1e-5, 1e-3, 0.1, 0.4999, 0.5, 0.5001),
    *(0.9, 0.999, 1 - 1e-6, 1 - 1e-9, 1 - 2.0**-53),
)
MUS = (1e-8, 1e-5, 1e-3, 0.03, 0.3, 0.7, 1.0, 2.0, 5.0, 20.0, 100.0, 1e3, 1e4)


def reference(epsilon, mu):
    """Return (delta, 1 - delta, density, tail) from the textbook formula with 50 digits to spare.

    The density phi(x) is d delta / d mu, the tail exp(epsilon) Phi(-y) is -d delta / d epsilon.
    """
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    x = epsilon / mu - mu / 2
    cancelled = 2 * abs(mpmath.log10(mu)) + 2 * mpmath.log10(2 + abs(x))
    with mpmath.workdps(60 + int(cancelled)):
        x = epsilon / mu - mu / 2
        tail = mpmath.exp(epsilon) * mpmath.ncdf(-x - mu)
        if x > 0:
            delta = mpmath.ncdf(-x) - tail
            return delta, 1 - delta, mpmath.npdf(x), tail
        complement = mpmath.ncdf(x) + tail
        return 1 - complement, complement, mpmath.npdf(x), tail


def log_slack(epsilon, mu, delta):
    """Return (true root minus current point) in units of delta's relative change, to first order.

    Positive when delta(epsilon; mu) is below `delta`; beyond one half the complement decides.
    """
    achieved, complement, _, _ = reference(epsilon, mu)
    if delta <= 0.5:
        return mpmath.log(mpmath.mpf(delta) / achieved) * achieved
    return mpmath.log(complement / (1 - mpmath.mpf(delta))) * complement


def mu_error(epsilon, delta, mu):
    """Return (true mu - mu) / mu, by one Newton step from a point that is good to 1e-6."""
    density = reference(epsilon, mu)[2]
    return float(log_slack(epsilon, mu, delta) / (density * mpmath.mpf(mu)))


def naive_log_delta(epsilon, mu):
    upper, lower = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return upper + math.log(-math.expm1(lower - upper))


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu"),
    [
        (1.0, 1e-5, 0.268051),
        (0.1, 1e-5, 0.032521),
        (3.0, 1e-5, 0.719117),
        (1.0, 1e-6, 0.236704),
        (8.0, 1e-5, 1.666031),
    ],
)
def test_pinned_values(epsilon, delta, mu):
    assert round(gdp_mu(epsilon, delta), 6) == mu


def test_mu_is_accurate_and_safe_everywhere():
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        error = mu_error(epsilon, delta, gdp_mu(epsilon, delta))
        # The lower bound is what the margin leaves for the evaluation's own error.
        assert 2.0**-45 < error < 2.0**-43, (epsilon, delta, error)


def test_mu_is_accurate_and_safe_at_random():
    rng = np.random.default_rng(20240611)
    for _ in range(1500):
        epsilon = float(10 ** rng.uniform(-6, 3))
        delta = float(10 ** rng.uniform(-300, -0.31))
        if rng.random() < 0.3:
            delta = float(1 - 10 ** rng.uniform(-9, -0.31))
        error = mu_error(epsilon, delta, gdp_mu(epsilon, delta))
        assert 2.0**-45 < error < 2.0**-43, (epsilon, delta, error)


def test_the_check_of_mu_sees_an_unsafe_and_an_inaccurate_value():
    mu = gdp_mu(1.0, 1e-5)
    assert mu_error(1.0, 1e-5, mu * (1 + 1e-13)) < 0
    assert mu_error(1.0, 1e-5, mu * (1 - 1e-12)) > 1e-12


def test_difference_of_logs_misses_the_accuracy_bar():
    epsilon, delta = 1e-6, 1e-12
    mu = gdp_mu(epsilon, delta)
    # Error of mu that an error of log delta becomes: d log(delta) / d log(mu) = mu phi(x) / delta.
    achieved, _, density, _ = reference(epsilon, mu)
    condition = float(mpmath.mpf(mu) * density / achieved)
    naive = abs(naive_log_delta(epsilon, mu) - float(mpmath.log(achieved))) / condition
    ours = abs(math.log(gdp_delta(epsilon, mu)) - float(mpmath.log(achieved))) / condition
    assert naive > 1e-12
    assert ours < 1e-13


def test_delta_is_accurate_and_safe_everywhere():
    for epsilon, mu in itertools.product(EPSILONS, MUS):
        exact = reference(epsilon, mu)[0]
        got = gdp_delta(epsilon, mu)
        if exact < mpmath.mpf(2) ** -1020:
            assert 0 < got < 2.0**-1019
            assert got >= exact
        elif got == 1.0:
            assert exact > 1 - mpmath.mpf(2) ** -46
        else:
            assert 0 < got / exact - 1 < 1e-14, (epsilon, mu)


def test_delta_is_accurate_where_it_is_tiny():
    for epsilon, delta in itertools.product(EPSILONS[1:], (1e-300, 1e-200, 1e-50)):
        mu = gdp_mu(epsilon, delta)
        assert 0 < gdp_delta(epsilon, mu) / reference(epsilon, mu)[0] - 1 < 1e-14, (epsilon, mu)


def test_reference_agrees_with_the_integral_of_the_privacy_loss():
    # The textbook formula is itself checked: delta = E max(0, 1 - exp(epsilon - loss)).
    for epsilon, mu in ((0.1, 0.3), (1.0, 0.268051), (3.0, 2.0)):
        x = mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2
        integral = mpmath.quad(
            lambda s, x=x, mu=mu: mpmath.npdf(x + s) * -mpmath.expm1(-mpmath.mpf(mu) * s),
            [0, 1, 2, 4, 8, 16],
        )
        assert abs(integral / reference(epsilon, mu)[0] - 1) < 1e-25


def test_epsilon_is_accurate_and_safe_everywhere():
    positive = 0
    for delta, mu in itertools.product(DELTAS, MUS):
        got = gdp_epsilon(delta, mu)
        at_zero, complement_at_zero, _, _ = reference(0.0, mu)
        enough = delta >= at_zero if delta <= 0.5 else 1 - mpmath.mpf(delta) <= complement_at_zero
        assert (got == 0.0) == enough, (delta, mu)
        if got > 0.0:
            positive += 1
            slack = log_slack(got, mu, delta)
            assert slack >= 0, (delta, mu)  # never below the truth
            achieved, complement, _, tail = reference(got, mu)
            worth = min(achieved, complement) / tail  # epsilon's change for delta's by itself
            assert slack / tail < 1e-13 * (got + worth), (delta, mu)
    assert positive > 100


def test_epsilon_near_zero_is_safe():
    # Here epsilon itself is ill-conditioned and the margin for delta's rounding carries the claim.
    rng = np.random.default_rng(20240612)
    for _ in range(300):
        mu = float(10 ** rng.uniform(-8, 1))
        delta = gdp_delta(0.0, mu) * (1 - 2.0 ** -rng.uniform(35, 46))
        got = gdp_epsilon(delta, mu)
        slack = log_slack(got, mu, delta)
        achieved, complement, _, tail = reference(got, mu)
        assert 0 <= slack < 1e-13 * (min(achieved, complement) + got * tail), (delta, mu)


def test_round_trip_never_exceeds_what_was_asked():
    for epsilon, delta in itertools.product(EPSILONS, DELTAS):
        mu = gdp_mu(epsilon, delta)
        back = gdp_epsilon(delta, mu)
        assert back <= epsilon, (epsilon, delta)
        _, complement, density, tail = reference(epsilon, mu)
        worth = float(density * mu / tail)  # d epsilon / d log(mu)
        assert epsilon - back <= 1e-12 * (worth + epsilon)
        if delta <= 0.5:
            assert gdp_delta(epsilon, mu) <= delta


def test_monotone_in_every_argument():
    epsilons = np.geomspace(1e-6, 1e3, 60).tolist()
    deltas = np.geomspace(1e-300, 0.999, 60).tolist()
    mus = np.geomspace(1e-8, 1e4, 60).tolist()
    for delta in DELTAS[::3]:
        assert np.all(np.diff([gdp_mu(e, delta) for e in epsilons]) > 0)
        assert np.all(np.diff([gdp_epsilon(delta, m) for m in mus]) >= 0)
    for epsilon in EPSILONS[::2]:
        assert np.all(np.diff([gdp_mu(epsilon, d) for d in deltas]) > 0)
        assert np.all(np.diff([gdp_delta(epsilon, m) for m in mus]) >= 0)
    for mu in MUS[::2]:
        assert np.all(np.diff([gdp_delta(e, mu) for e in epsilons]) <= 0)
        assert np.all(np.diff([gdp_epsilon(d, mu) for d in deltas]) <= 0)


def test_limits():
    assert gdp_delta(1.0, 0.0) == gdp_delta(0.0, 0.0) == 0.0
    assert gdp_delta(0.0, math.inf) == gdp_delta(math.inf, math.inf) == 1.0
    assert gdp_delta(math.inf, 1.0) == 0.0
    assert gdp_delta(1e3, 1e-8) == gdp_delta(1e300, 1e-300) == math.ulp(0.0)  # not pure DP
    assert gdp_delta(0.0, 1e4) == gdp_delta(0.0, 1e300) == 1.0
    assert gdp_epsilon(0.0, 1.0) == math.inf
    assert gdp_epsilon(0.0, 0.0) == gdp_epsilon(1e-5, 0.0) == 0.0
    assert gdp_epsilon(0.5, math.inf) == math.inf
    assert gdp_epsilon(1.0, math.inf) == gdp_epsilon(1.0, 1e300) == 0.0
    assert gdp_mu(math.inf, 1e-5) == math.inf
    # Half of the total variation distance at mu: 2 Phi(mu / 2) - 1.
    assert gdp_delta(0.0, 2.0) == pytest.approx(math.erf(1 / math.sqrt(2)), rel=1e-14)


@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, 1e16, 1e29, 1e31, 1e100, 1e308])
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-5, 0.5, 0.9, 1 - 2.0**-53])
def test_beyond_the_stated_range_stays_finite_and_safe(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    assert math.isfinite(mu)
    if 0 < mu < 1e100:
        assert log_slack(epsilon, mu, delta) >= 0
    if mu > 1e-300:
        assert gdp_epsilon(delta, mu) <= epsilon


@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-12, 1e14, 2e15, 1e100])
@pytest.mark.parametrize("delta", [5e-324, 1e-5, 0.5, 0.9, 1 - 2.0**-53])
def test_epsilon_beyond_the_stated_range_is_safe(mu, delta):
    epsilon = gdp_epsilon(delta, mu)
    assert 0 <= epsilon < math.inf
    assert log_slack(epsilon, mu, delta) >= -(mpmath.mpf(10) ** -40)


@pytest.mark.parametrize("function", [gdp_mu, classic_sigma])
@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, -1e-5, math.nan, math.inf, "1e-5", None, True])
def test_senseless_delta_is_named(function, delta):
    with pytest.raises((TypeError, ValueError), match="delta"):
        function(0.5, delta)
    with pytest.raises((TypeError, ValueError), match="delta"):
        PrivacyCost.from_epsilon(1.0, delta)


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf, "1", None, True, 1j, np.bool_(True)])
def test_senseless_numbers_are_named(bad):
    for call, name in (
        (lambda: gdp_mu(bad, 1e-5), "epsilon"),
        (lambda: gdp_delta(bad, 1.0), "epsilon"),
        (lambda: classic_sigma(bad, 1e-5), "epsilon"),
        (lambda: gdp_delta(1.0, bad), "mu"),
        (lambda: gdp_epsilon(1e-5, bad), "mu"),
        (lambda: PrivacyCost(bad), "mu"),
        (lambda: gdp_epsilon(bad, 1.0), "delta"),
        (lambda: classic_sigma(0.5, 1e-5, bad), "sensitivity"),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            call()


def test_numbers_too_large_and_arrays_are_refused():
    with pytest.raises(ValueError, match="epsilon is too large"):
        gdp_mu(10**400, 1e-5)
    with pytest.raises(TypeError, match="epsilon"):
        gdp_mu(np.array([1.0]), 1e-5)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\]"):
        gdp_epsilon(1.5, 1.0)


def test_numpy_scalars_are_numbers():
    assert gdp_mu(np.float64(1.0), np.float64(1e-5)) == gdp_mu(1, 1e-5)
    assert gdp_delta(np.float32(1.0), np.int64(2)) == gdp_delta(1.0, 2.0)
    assert type(PrivacyCost(np.float32(0.5)).mu) is float


def test_classic_calibration_is_what_it_says_and_is_private_where_it_is_proved():
    assert classic_sigma(0.5, 1e-5, 3.0) == pytest.approx(
        math.sqrt(2 * math.log(1.25e5)) * 3 / 0.5, rel=1e-14
    )
    for epsilon in (1e-6, 0.01, 0.5, 1 - 2.0**-53):
        for delta in (1e-300, 1e-5, 0.1, 0.9):
            assert gdp_delta(epsilon, 1 / classic_sigma(epsilon, delta)) <= delta
            assert classic_sigma(epsilon, delta) > 1 / gdp_mu(epsilon, delta)


def test_classic_calibration_is_refused_where_it_is_not_proved():
    for epsilon in (1.0, 8.0, math.inf):
        with pytest.raises(ValueError, match='calibration="analytic"'):
            classic_sigma(epsilon, 1e-5)
    # Not mere caution: the same formula is far from private at a large epsilon.
    sigma = math.sqrt(2 * math.log(1.25e5)) / 50.0
    assert gdp_delta(50.0, 1 / sigma) > 1e-5
    with pytest.raises(ValueError, match="epsilon must be positive"):
        classic_sigma(0.0, 1e-5)
    for sensitivity in (0.0, math.inf):
        with pytest.raises(ValueError, match="sensitivity"):
            classic_sigma(0.5, 1e-5, sensitivity)


# ---------------------------------------------------------------------------------------------
# PrivacyCost

any_mu = st.floats(min_value=0.0, max_value=1e300) | st.floats(min_value=1e-8, max_value=1e4)


@given(st.lists(any_mu, min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_composition_is_the_exact_sum_of_squares_rounded_up(mus, random):
    costs = [PrivacyCost(mu) for mu in mus]
    total = PrivacyCost.compose(costs).mu
    exact = sum(Fraction(mu) ** 2 for mu in mus)
    assert Fraction(total) ** 2 >= exact
    assert total == 0.0 or Fraction(math.nextafter(total, 0.0)) ** 2 < exact
    random.shuffle(costs)
    assert PrivacyCost.compose(costs).mu == total


@given(any_mu)
@settings(deadline=None)
def test_one_cost_composes_to_itself_and_zero_is_neutral(mu):
    cost = PrivacyCost(mu)
    assert PrivacyCost.compose([cost]) == cost
    assert PrivacyCost.compose([cost, PrivacyCost.zero()]) == cost
    assert sum([cost]) == cost + 0 == 0 + cost == cost


def test_plus_and_sum_compose():
    costs = [PrivacyCost(0.3, reference_delta=1e-6), PrivacyCost(0.4, assumptions=("so",))]
    assert costs[0] + costs[1] == sum(costs) == PrivacyCost.compose(costs)
    assert (costs[0] + costs[1]).mu == pytest.approx(0.5, rel=1e-12)
    with pytest.raises(ValueError, match="to_replace"):
        costs[0] + PrivacyCost(0.1, "replace")
    for other in (1, 0.3, "0", None):
        with pytest.raises(TypeError):
            costs[0] + other


@given(any_mu, any_mu, any_mu)
@settings(deadline=None)
def test_composition_in_stages_is_safe_and_close(a, b, c):
    parts = [PrivacyCost(mu) for mu in (a, b, c)]
    whole = PrivacyCost.compose(parts).mu
    staged = PrivacyCost.compose([PrivacyCost.compose(parts[:2]), parts[2]]).mu
    assert whole <= staged <= whole + 2 * math.ulp(whole)


@given(
    st.floats(min_value=1e-8, max_value=1e4),
    st.lists(st.floats(min_value=1e-6, max_value=1e6), min_size=1, max_size=12),
)
@settings(deadline=None)
def test_parts_compose_to_the_whole_and_never_exceed_it(mu, shares):
    whole = PrivacyCost(mu, "replace", "person", 1e-7, ("public bounds",))
    parts = whole.split(shares)
    total = PrivacyCost.compose(parts)
    assert sum(Fraction(part.mu) ** 2 for part in parts) <= Fraction(mu) ** 2
    assert mu - 2 * math.ulp(mu) <= total.mu <= mu
    assert whole.covers(total)
    assert total == dataclasses.replace(whole, mu=total.mu)
    for part, share in zip(parts, shares, strict=True):
        assert part.mu == pytest.approx(mu * math.sqrt(share / math.fsum(shares)), rel=1e-13)
        assert (part.neighboring, part.unit, part.assumptions) == (
            "replace",
            "person",
            ("public bounds",),
        )


def test_equal_shares_fit_exactly_where_plain_division_does_not():
    whole = PrivacyCost.from_epsilon(1.0, 1e-5)
    overrun = 0
    for k in range(1, 120):
        parts = whole.split([1] * k)
        assert len({part.mu for part in parts}) == 1
        assert PrivacyCost.compose(parts).mu <= whole.mu
        plain = whole.mu / math.sqrt(k)
        overrun += Fraction(plain) ** 2 * k > Fraction(whole.mu) ** 2
    assert overrun > 10


def test_splitting_extremes():
    assert [part.mu for part in PrivacyCost(5.0).split((9, 16))] == [3.0, 4.0]
    assert PrivacyCost(math.ulp(0.0)).split([1])[0].mu == math.ulp(0.0)
    assert all(part.mu == math.inf for part in PrivacyCost.infinite("raw").split([1, 2]))
    assert all(part.mu == 0.0 for part in PrivacyCost.zero().split([1, 2]))
    assert PrivacyCost(1.0).split(np.array([1.0, 3.0]))[0].mu == 0.5
    large = PrivacyCost(1.7e308)
    assert PrivacyCost.compose(large.split([1, 1])).mu == pytest.approx(1.7e308, rel=1e-15)
    assert PrivacyCost.compose([large, large]).mu == math.inf
    with pytest.raises(ValueError, match="underflows"):
        PrivacyCost(math.ulp(0.0)).split([1, 1])


@pytest.mark.parametrize("shares", [[], [1, 0], [1, math.nan], [1, math.inf], [1, -1], [0]])
@pytest.mark.parametrize("mu", [0.0, 1.0, math.inf])
def test_senseless_shares_are_refused(shares, mu):
    with pytest.raises(ValueError, match="share"):
        PrivacyCost(mu).split(shares)


def test_shares_that_are_not_numbers_are_refused():
    for shares in (["1"], [True, 1], [None]):
        with pytest.raises(TypeError, match="share"):
            PrivacyCost(1.0).split(shares)


def test_infinite_and_zero():
    infinite = PrivacyCost.infinite("StandardScaler reads the data", neighboring="replace")
    assert not infinite.is_finite
    assert infinite.epsilon() == math.inf
    assert infinite.delta(1e3) == 1.0
    assert infinite.assumptions == ("StandardScaler reads the data",)
    zero = PrivacyCost.zero(neighboring="replace")
    assert zero.is_finite
    assert (zero.epsilon(), zero.epsilon(0.0), zero.delta(0.0)) == (0.0, 0.0, 0.0)
    total = PrivacyCost.compose([zero, infinite, PrivacyCost(1.0, "replace")])
    assert total.mu == math.inf
    assert total.assumptions == infinite.assumptions
    assert PrivacyCost.compose([]) == PrivacyCost.zero()
    assert PrivacyCost.from_epsilon(math.inf, 1e-5).mu == math.inf
    assert math.copysign(1.0, PrivacyCost(-0.0).mu) == 1.0


def test_from_epsilon_keeps_its_delta():
    cost = PrivacyCost.from_epsilon(2.0, 1e-7, neighboring="replace", unit="person")
    assert (cost.neighboring, cost.unit, cost.reference_delta) == ("replace", "person", 1e-7)
    assert cost.epsilon() <= 2.0
    assert cost.epsilon() == pytest.approx(2.0, rel=1e-12)
    assert cost.delta(2.0) == pytest.approx(1e-7, rel=1e-10)
    assert cost.epsilon(1e-5) == gdp_epsilon(1e-5, cost.mu) < 2.0


def test_epsilon_falls_with_delta_and_reaches_zero():
    cost = PrivacyCost.from_epsilon(0.1, 1e-5)
    values = [cost.epsilon(d) for d in (1e-300, 1e-30, 1e-9, 1e-5, 0.01, 0.1, 0.5, 0.9, 1 - 1e-9)]
    assert values == sorted(values, reverse=True)
    assert all(math.isfinite(value) for value in values)
    assert values[-1] == 0.0


def test_composition_keeps_assumptions_and_the_smallest_delta():
    a = PrivacyCost(3.0, reference_delta=1e-6, assumptions=("b", "a", "b"))
    b = PrivacyCost(4.0).with_assumptions("c", "a")
    assert a.assumptions == ("a", "b")
    total = PrivacyCost.compose(iter([a, b]))
    assert total == PrivacyCost(5.0, reference_delta=1e-6, assumptions=("a", "b", "c"))


def test_different_relations_and_units_do_not_mix():
    record = PrivacyCost(1.0)
    for other, word in (
        (PrivacyCost(1.0, "replace"), "neighboring"),
        (PrivacyCost(1.0, unit="person"), "unit"),
        (PrivacyCost.zero(neighboring="replace"), "neighboring"),
    ):
        with pytest.raises(ValueError, match=word):
            PrivacyCost.compose([record, other])
        with pytest.raises(ValueError, match=word):
            record.covers(other)
    with pytest.raises(TypeError, match="float"):
        PrivacyCost.compose([record, 1.0])
    total = PrivacyCost.compose([record.to_replace(), PrivacyCost(1.0, "replace")])
    assert total.neighboring == "replace"


def test_add_or_remove_becomes_replace_by_doubling_mu():
    cost = PrivacyCost(0.3, unit="person", assumptions=("a",))
    replaced = cost.to_replace()
    assert replaced == PrivacyCost(0.6, "replace", "person", assumptions=("a",))
    assert replaced.to_replace() is replaced
    assert PrivacyCost.infinite("raw").to_replace().mu == math.inf


def test_covers_allows_the_stated_slack_only():
    budget = PrivacyCost(1.0)
    assert budget.covers(PrivacyCost(1.0000000000000002))
    assert budget.covers(PrivacyCost(1 + 2.0**-40))
    assert not budget.covers(PrivacyCost(1 + 2.0**-39))
    assert not budget.covers(PrivacyCost.infinite("raw"))
    assert PrivacyCost.infinite("raw").covers(PrivacyCost.infinite("raw"))
    assert PrivacyCost.zero().covers(PrivacyCost.zero())
    assert not PrivacyCost.zero().covers(PrivacyCost(math.ulp(0.0)))


def test_repr():
    assert repr(PrivacyCost.from_epsilon(1.0, 1e-5)) == (
        "PrivacyCost(mu=0.268051, epsilon=1 at delta=1e-05, neighboring='add_or_remove')"
    )
    assert repr(PrivacyCost.zero()) == (
        "PrivacyCost(mu=0, nothing released, neighboring='add_or_remove')"
    )
    assert repr(PrivacyCost.infinite("raw rows", neighboring="replace", unit="person")) == (
        "PrivacyCost(mu=inf, no privacy, neighboring='replace', unit='person', "
        "assumptions=['raw rows'])"
    )


def test_senseless_fields_are_refused():
    with pytest.raises(ValueError, match="neighboring"):
        PrivacyCost(1.0, "remove")
    for unit in ("", 3):
        with pytest.raises(ValueError, match="unit"):
            PrivacyCost(1.0, unit=unit)
    with pytest.raises(ValueError, match="reference_delta"):
        PrivacyCost(1.0, reference_delta=0.0)
    for assumptions in ("one string", (1,)):
        with pytest.raises(TypeError, match="assumptions"):
            PrivacyCost(1.0, assumptions=assumptions)


class Holder(BaseEstimator):
    def __init__(self, budget=None):
        self.budget = budget


def test_a_cost_is_an_immutable_value():
    cost = PrivacyCost.from_epsilon(1.0, 1e-5).with_assumptions("public bounds")
    for twin in (copy.copy(cost), copy.deepcopy(cost), pickle.loads(pickle.dumps(cost))):
        assert twin == cost
        assert hash(twin) == hash(cost)
        assert repr(twin) == repr(cost)
    with pytest.raises(AttributeError):
        cost.mu = 2.0
    assert clone(Holder(cost)).budget == cost
    assert "PrivacyCost" in repr(Holder(cost))


# ---- export ----


def test_export_needs_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        PrivacyCost(1.0).to_dp_event()


@pytest.mark.filterwarnings("ignore")
def test_dp_accounting_agrees_about_compositions():
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    parts = [PrivacyCost(mu) for mu in (0.1, 0.25, 0.4)]
    whole = PrivacyCost.compose(parts)
    for events in ([whole.to_dp_event()], [part.to_dp_event() for part in parts]):
        accountant = PLDAccountant(value_discretization_interval=1e-4)
        accountant.compose(dp_accounting.ComposedDpEvent(events))
        for delta in (1e-3, 1e-6):
            # Its epsilon is pessimistic by a few steps of its grid.
            assert 0.0 <= accountant.get_epsilon(delta) - whole.epsilon(delta) < 2e-3
    assert isinstance(PrivacyCost(0.0).to_dp_event(), dp_accounting.NoOpDpEvent)
    assert isinstance(PrivacyCost.infinite("raw").to_dp_event(), dp_accounting.NonPrivateDpEvent)
    with pytest.raises(ValueError, match="no event for a pair"):
        PrivacyCost(0.1, delta0=1e-6).to_dp_event()


@pytest.mark.filterwarnings("ignore")
def test_dp_accounting_agrees_about_pairs():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import common, privacy_loss_distribution

    step = 1e-4
    for epsilon0, delta0 in ((0.5, 0.0), (0.3, 1e-6), (0.0, 1e-5)):
        pair = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon0, delta0),
            value_discretization_interval=step,
        )
        gaussian = privacy_loss_distribution.from_gaussian_mechanism(
            1 / 0.3, value_discretization_interval=step
        )
        both = pair.compose(gaussian)
        cost = PrivacyCost(0.3, epsilon0=epsilon0, delta0=delta0)
        for epsilon in (0.1, 0.7, 1.2):
            got, exact = both.get_delta_for_epsilon(epsilon), cost.delta(epsilon)
            assert 0.999 * exact < got < 1.01 * exact, (epsilon0, delta0, epsilon)
