"""Thresholded histograms: what may appear, with what probability, and what does.

Statistical tests compare the number of appearances of a level that one record has alone with the
exact binomial law, at a two-sided p-value of 1e-9 each: fewer than ten of them, hence a correct
package fails with probability below 1e-8.
"""

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import skdp.noise
from skdp import PrivacyCost
from skdp._histograms import column_sensitivity
from skdp._level_sums import LevelCodes, failure, release_levels, threshold
from skdp.accounting import gdp_delta
from skdp.exceptions import PrivacyBudgetError
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease

SIZES = [0.01, 0.7, 3.7, 150.0, 1e6]


def core(sigma, delta0, sensitivity=1.0):
    return NoiseCore(
        [PlannedRelease("levels", sensitivity, sensitivity / sigma, delta0=delta0)],
        seed=None,
        owner="test",
    )


def release(columns, sigma, delta0, **options):
    noise = core(sigma, delta0)
    return release_levels(
        columns, name="levels", noise=noise, sensitivity=1.0, delta0=delta0, **options
    )


def exact_failure(tau, sigma, n_columns, unit):
    """1 - P(1 + unit round(sigma N / unit) < tau)^n_columns with 60 digits."""
    with mpmath.workdps(60):
        top = (mpmath.mpf(tau) - 1 - mpmath.mpf(unit) / 2) / mpmath.mpf(sigma)
        tail = mpmath.erfc(top / mpmath.sqrt(2)) / 2
        return -mpmath.expm1(n_columns * mpmath.log1p(-tail))


@pytest.mark.parametrize("unit", [1.0, 2.0**-20])
@pytest.mark.parametrize("n_columns", [1, 7, 100])
@pytest.mark.parametrize("delta0", [0.3, 1e-6, 1e-12, 1e-200])
def test_the_threshold_is_the_least_one_that_keeps_delta0(unit, n_columns, delta0):
    for sigma in SIZES:
        tau = threshold(sigma, n_columns, delta0, unit)
        assert tau > 1 and (tau / unit).is_integer()
        assert exact_failure(tau, sigma, n_columns, unit) <= delta0
        assert failure(tau, sigma, n_columns, unit) <= delta0
        # One unit less would be too little, but for the margin of the floats (and above 1).
        less = tau - max(unit, tau * 1e-9)
        assert less <= 1 or exact_failure(less, sigma, n_columns, unit) > delta0 * (1 - 1e-3)


def test_the_probability_of_failure_is_rounded_up():
    for sigma in SIZES[1:]:
        for tau in (2.0, 5.0, 40.0, 900.0):
            for n_columns in (1, 9):
                want = exact_failure(tau, sigma, n_columns, 1.0)
                if want > 1e-250:
                    found = failure(tau, sigma, n_columns)
                    assert want <= found <= want * (1 + mpmath.mpf(2) ** -28)


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize(("n_columns", "alone"), [(1, 1), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize(("sigma", "delta0"), [(2.0, 0.05), (5.0, 1e-4), (1.0, 1e-9)])
def test_what_is_charged_is_never_below_the_exact_trade_off(
    neighboring, n_columns, alone, sigma, delta0
):
    # A record that is alone with its level in some columns and shares the others, in exact terms.
    p = failure(threshold(sigma, n_columns, delta0), sigma, alone)
    replace = neighboring == "replace"
    shared = (n_columns - alone) * (2 if replace else 1)
    cost = PrivacyCost(column_sensitivity(n_columns, neighboring) / sigma, delta0=delta0)
    mu = np.sqrt(shared) / sigma
    # With probability p a name appears that only D can show; under "replace" also one of D'.
    q = p if replace else 0.0

    def curve(epsilon):
        """sup of P(S) - e^epsilon Q(S) of Gaussians, for any epsilon."""
        if epsilon >= 0:
            return gdp_delta(epsilon, mu) if mu else 0.0
        return 1 - np.exp(epsilon) + np.exp(epsilon) * curve(-epsilon)

    for epsilon in (0.0, 0.1, 1.0, 3.0):
        for mine, other in ((p, q), (q, p)):
            # Only what shows no name can come from both.
            shift = epsilon + np.log1p(-other) - np.log1p(-mine)
            exact = mine + (1 - mine) * curve(shift)
            assert exact <= cost.delta(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("sigma", "n_columns", "bits"), [(0.7, 2, 0), (3.0, 4, 0), (0.7, 2, 20), (10.0, 1, 20)]
)
def test_a_level_of_one_record_appears_with_the_exact_probability(sigma, n_columns, bits):
    # Not by tau - 1 / 2 or tau + 1 / 2 instead of tau - 1 - unit / 2: checked below.
    n_trials, delta0, unit = 3000, 0.4, 2.0**-bits
    columns = [
        LevelCodes(("all", f"own {j}"), np.r_[np.zeros(60, int), 1]) for j in range(n_columns)
    ]
    tau = threshold(sigma, n_columns, delta0, unit)
    appeared = 0
    for _ in range(n_trials):
        found, _ = release(columns, sigma, delta0, bits=bits)
        assert all(column.sums[column.sums[:, 0] < tau].size == 0 for column in found)
        appeared += any(level != "all" for column in found for level in column.levels)

    def p_value(p):
        return 2 * min(binom.cdf(appeared, n_trials, p), binom.sf(appeared - 1, n_trials, p))

    assert p_value(float(exact_failure(tau, sigma, n_columns, unit))) > 1e-9
    if sigma < 1:
        for wrong in (0.0, 2.0):  # the count taken as 0 or 2
            assert p_value(float(exact_failure(tau + 1 - wrong, sigma, n_columns, unit))) < 1e-9


def test_levels_of_many_records_appear_and_those_of_few_do_not():
    sigma, delta0 = 10.0, 1e-7
    tau = threshold(sigma, 2, delta0)
    assert 50 < tau < 60
    # Counts far enough from the threshold for 1e-7 together.
    sizes = {"many": 150, "some": 120, "few": 1, "fewer": 2}
    levels = tuple(sizes)
    codes = np.repeat(np.arange(4), list(sizes.values()))
    column = LevelCodes(levels, codes)
    given = LevelCodes(levels, codes, known=True)
    assert 2 * norm.sf((sizes["some"] - tau) / sigma) + 2 * failure(tau - 1, sigma, 2) < 1e-6
    found, _ = release([column, given, column], sigma, delta0)
    assert found[0].levels == found[2].levels == ("many", "some")
    assert found[1].levels == levels and found[1].sums.shape == (4, 1)


def without_noise(patch):
    patch.setattr(
        skdp.noise, "add_noise", lambda bounded, *args: bounded.total.to_float(bounded.unit)
    )


def test_sums_are_exact_before_the_noise(monkeypatch):
    without_noise(monkeypatch)
    generator = np.random.default_rng(0)
    n_rows, bits = 600_000, 20  # several blocks
    codes = generator.integers(-1, 3, n_rows)
    values = generator.integers(-(2**bits), 2**bits, (n_rows, 2)).astype(float)
    overall = values.sum(axis=0).astype(np.int64)
    column = LevelCodes(("a", "b", "c"), codes)
    found, more = release([column], 1.0, 1e-6, values=values, bits=bits, overall=overall)
    assert found[0].levels == column.levels
    for j in range(3):
        here = codes == j
        assert found[0].sums[j, 0] == here.sum()
        exact = [sum(map(int, values[here, k])) for k in range(2)]
        assert np.array_equal(found[0].sums[j, 1:] * 2**bits, exact)
    assert np.array_equal(more * 2**bits, overall)


def test_a_release_needs_a_plan_of_its_sensitivity():
    column = LevelCodes(("a",), np.zeros(9, int))
    with pytest.raises(PrivacyBudgetError, match="sensitive"):
        release_levels(
            [column, column], name="levels", noise=core(3.0, 0.1), sensitivity=1.5, delta0=0.1
        )
    with pytest.raises(PrivacyBudgetError, match="plan"):
        release_levels([column], name="other", noise=core(3.0, 0.1), sensitivity=1.0, delta0=0.1)
