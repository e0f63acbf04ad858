"""Private location and scale of a target."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from skdp import DPLinearRegression, DPRidge, PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.linear_model._target_scale import find_target_scale, plan_target_scale
from skdp.noise import NoiseCore
from skdp.plan import Plan, ProblemShape

# What a tenth of the budget is at (epsilon, delta) = (1, 1e-5).
MU = 0.268051 * 0.1**0.5


def scale_of(y, mu=MU, *, centred=True, n_rows=None, neighboring="add_or_remove", seed=None):
    """Centre and scale found for one or several outputs."""
    y = np.asarray(y, dtype=float).reshape(len(y), -1)
    budget = PrivacyCost(mu, neighboring)
    releases = plan_target_scale(budget, y.shape[1], n_rows or len(y))
    plan = Plan(ProblemShape(n_rows or len(y), 1, y.shape[1]), budget, releases)
    noise = NoiseCore(releases, seed=seed, owner="test")
    found = find_target_scale(y, plan.shape.n_rows, noise, neighboring=neighboring, centred=centred)
    noise.finish()  # all that was planned was released
    return found.centre, found.scale


def targets(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return {
        "normal": z,
        "offset": 1e6 + 5 * z,
        "years": np.rint(1990 + 8 * z),
        "negative": -70 + 20 * z,
        "lognormal": np.exp(0.7 * z),
        "skewed": rng.exponential(size=n),
        "heavy": rng.standard_t(4, size=n),
        "marks": np.clip(np.rint(6 + 0.9 * z), 3, 9),
        "counts": rng.poisson(3, n),
        "tiny": 1e-9 * z,
        "huge": 1e250 * (2 + z),
        "uniform": 5 + rng.random(n),
        "inflated": np.where(rng.random(n) < 0.4, np.exp(6 + 0.5 * z), 0.0),
        "spiky": np.where(rng.random(n) < 0.5, 50.0, 100 * rng.random(n)),
        "signs": np.where(rng.random(n) < 0.5, -1.0, 1.0),
        "far apart": np.where(rng.random(n) < 0.6, z, 1e5 + z),
    }


@pytest.mark.parametrize("name", targets(1))
def test_target_is_standardised_well_enough(name):
    # Clipped gradient descent loses nothing for scales between 0.7 and 2 standard deviations and
    # centres within one of them. In 24,000 trials the factors were between 0.46 and 1.74 and the
    # centres within 0.58, so a false alarm (0.33, 3 and 1) is far below 1e-6.
    y = targets()[name].astype(float)
    unit = np.abs(y).max()  # squares of 1e250 overflow
    for _ in range(3):
        centre, scale = scale_of(y)
        assert 0.33 < scale[0] / unit / (y / unit).std() < 3
        assert abs(centre[0] / unit - (y / unit).mean()) < (y / unit).std()


@pytest.mark.parametrize("spoilt", [1e12, -1e12, 1.7e308, 1e20])
def test_outliers_do_not_matter(spoilt):
    y = 100 + targets()["normal"]
    y[:40] = spoilt
    centre, scale = scale_of(y)
    assert 0.33 < scale[0] < 3 and abs(centre[0] - 100) < 1


def test_constant_target_gets_a_small_scale_and_its_centre():
    centre, scale = scale_of(np.full(4000, 5.0))
    assert abs(centre[0] - 5) <= scale[0] < 1e-2


def test_zeros_keep_location_zero_and_scale_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centre, scale = scale_of(np.zeros(4000))
    assert (centre[0], scale[0]) == (0, 1)


def test_subnormal_targets_count_as_zeros():
    assert scale_of(np.full(4000, 5e-324)) == (0, 1)


def test_uncentred_scale_is_the_root_mean_square():
    y = targets()["normal"]
    for shift in (0.0, 3.0, -1000.0):
        centre, scale = scale_of(y + shift, centred=False)
        assert centre[0] == 0
        assert 0.5 < scale[0] / np.hypot(1, shift) < 2


def test_outputs_share_the_releases():
    # Four outputs: twice the noise of one, and each its own scale.
    releases = plan_target_scale(PrivacyCost(MU), 4, 4000)
    single = plan_target_scale(PrivacyCost(MU), 1, 4000)
    for joint, one in zip(releases, single, strict=True):
        assert joint.sensitivity == pytest.approx(2 * one.sensitivity)
        assert joint.mu == one.mu
    y = np.column_stack([targets()[name] for name in ("normal", "offset", "tiny", "counts")])
    _, scale = scale_of(y, 2 * MU)
    ratio = scale / y.std(axis=0)
    assert np.all((ratio > 0.33) & (ratio < 3))


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_plan_spends_its_budget_and_no_more(neighboring):
    budget = PrivacyCost(0.1, neighboring)
    releases = plan_target_scale(budget, 3, 4000)
    total = PrivacyCost.compose(
        [PrivacyCost(r.mu, neighboring) for r in releases for _ in range(r.count)]
    )
    assert total.mu <= budget.mu * (1 + 2**-50)
    assert total.mu >= budget.mu * (1 - 1e-9)
    root = {"add_or_remove": 3**0.5, "replace": 6**0.5}[neighboring]
    assert all(r.sensitivity == pytest.approx(root) for r in releases)


def test_too_few_rows_warn_and_keep_location_zero_and_scale_one():
    y = 125 + 7 * targets(40)["normal"]
    with pytest.warns(UtilityWarning, match="1 outputs 1 could not") as caught:
        centre, scale = scale_of(y)
    assert (centre[0], scale[0]) == (0, 1)
    message = str(caught[0].message)
    sigma = next(r.sigma for r in plan_target_scale(PrivacyCost(MU), 1, 40) if r.name == "octaves")
    assert f"{sigma:.3g}" in message and "40 rows" in message and "`y_bounds`" in message


def test_rough_results_warn():
    with pytest.warns(UtilityWarning, match="rough"):
        scale_of(125 + 7 * targets(300)["normal"])


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("n", "mu"), [(20, MU / 10), (20, MU), (100, MU / 10), (400, MU / 10)])
def test_with_too_few_rows_nothing_is_looked_for(n, mu):
    y = 125 + 7 * targets(n)["normal"]
    assert all(scale_of(y, mu) == (0, 1) for _ in range(25))


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize(("n", "mu"), [(100, MU), (400, MU), (700, MU / 10), (700, MU)])
def test_with_few_rows_absurd_scales_are_rare(n, mu):
    # Seen in .09% of 30,000 runs with 700 rows and a hundredth of mu^2, the worst of these; with no
    # price of far places in 42%. The seeds are fixed: a run that passed once passes again.
    y = 125 + 7 * targets(n)["normal"]
    found = [scale_of(y, mu, seed=seed) for seed in range(25)]
    centres, scales = np.array(found).reshape(25, 2).T
    assert np.all((scales > 1e-4) & (scales < 1e6))
    assert np.all(np.abs(centres) < 1e4)


def test_noise_alone_is_seldom_taken_for_data():
    # Missing values only: seen in 4.4% of 7,000 runs (few rows) and in none of 20,000 (many). A
    # threshold of two deviations in place of three gives 36%; without one, for many, all do it.
    # The seeds are fixed.
    for n_rows, n_runs, most in ((300, 1000, 90), (3000, 200, 0)):
        blank = np.full((n_rows, 1), np.nan)
        with pytest.warns(UtilityWarning):
            found = [scale_of(blank, n_rows=n_rows, seed=seed) for seed in range(n_runs)]
        assert sum(pair != (0, 1) for pair in found) <= most


def test_declared_rows_are_used_in_place_of_those_seen():
    y = targets()["offset"]
    for n_rows in (4000, 3900, 4500):
        centre, scale = scale_of(y, n_rows=n_rows)
        assert abs(centre[0] - 1e6) < 10 and 1.5 < scale[0] < 15
    with pytest.warns(UtilityWarning):
        centre, scale = scale_of(y, n_rows=10**6)  # half of a million was not there
    assert (centre[0], scale[0]) == (0, 1)


def test_seeded_result_does_not_depend_on_order():
    y = targets()["lognormal"]
    want = scale_of(y, seed=3)
    assert scale_of(y[::-1], seed=3) == want
    assert scale_of(np.sort(y), seed=3) == want
    assert scale_of(y, seed=4) != want


def test_a_little_noise_gives_the_standard_deviation():
    # Octaves of distances, taken as evenly filled, overstate a normal spread by up to a fifth.
    y = targets(50_000)["normal"]
    centre, scale = scale_of(y, 50.0)
    assert abs(centre[0]) < 0.05 and 0.95 < scale[0] < 1.25


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_regression_without_bounds_is_as_good_as_with_them(shift, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = 5 * (X @ [1.0, -0.5, 0.25]) + rng.normal(size=6000)
    if fit_intercept:
        y += shift
    best = LinearRegression(fit_intercept=fit_intercept).fit(X, y).score(X, y)
    model = DPLinearRegression(epsilon=3.0, fit_intercept=fit_intercept).fit(X, y)
    assert model.score(X, y) > best - 0.05


@pytest.mark.filterwarnings("ignore:y is far outside of the scale")
def test_regression_on_extreme_targets_stays_finite():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    for y in (np.full(3000, 1.7e308), np.where(X[:, 0] > 0, 1.7e308, -1.7e308)):
        model = DPLinearRegression(epsilon=3.0).fit(X, y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_)


# ---- public bounds that miss the targets ----


@pytest.mark.parametrize("make", [DPRidge, DPLinearRegression])
def test_y_bounds_in_other_units_are_warned_about(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = 510.0 + 30.0 * X[:, 0] + 40.0 * rng.normal(size=2000)
    with pytest.warns(UtilityWarning, match="the intercept lies outside of y_bounds") as caught:
        make(y_bounds=(0, 5.1), random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    make(y_bounds=(0, 510), random_state=0).fit(X, np.minimum(y, 500))  # near one end: no warning
    with pytest.warns(UtilityWarning, match="the intercept of output 1 lies outside"):
        make(y_bounds=[(300, 700), (0, 5.1)], random_state=0).fit(X, np.column_stack([y, y]))


def test_wrong_bounds_of_an_output_are_named():
    X, y = np.zeros((50, 2)), np.zeros((50, 2))
    with pytest.raises(ValueError, match=r"those of output 1 are \(3, 3\)"):
        DPRidge(y_bounds=[(0, 1), (3, 3)]).fit(X, y)
    with pytest.raises(ValueError, match=r"low < high, got \(2, 1\)"):
        DPRidge(y_bounds=(2, 1)).fit(X, y[:, 0])


# ---- rows of the wrong length ----


@pytest.mark.parametrize(
    ("factor", "text"), [(1e-3, "shorter than 0.1 times"), (1e3, "more than 3 times longer")]
)
def test_rows_of_another_scale_are_warned_about_in_small_data(factor, text):
    X = np.random.default_rng(0).normal(size=(400, 4))
    y = X[:, 0]
    with pytest.warns(UtilityWarning, match=f"{text}.*its bounds or its budget") as caught:
        DPRidge(y_bounds=(-3, 3), random_state=0).fit(factor * X, y)
    assert caught[0].filename == __file__
    DPRidge(y_bounds=(-3, 3), random_state=0).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_bounds_that_do_not_suit_y_are_told(n_outputs, fit_intercept):
    # Noise of the counts: 53 of 4,000; a false alarm or a miss needs more than 5 of it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y = X @ rng.normal(size=(5, n_outputs)) / np.sqrt(5) + 0.5 * rng.normal(size=(4000, n_outputs))

    def fit(unit):
        bounds = np.tile([-3.0 * unit, 3.0 * unit], (n_outputs, 1))
        DPLinearRegression(y_bounds=bounds, fit_intercept=fit_intercept).fit(X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(1.0)
        fit(0.25)
        fit(2.0)
    with pytest.warns(UtilityWarning, match="y is tiny on the scale of y_bounds"):
        fit(50.0)
    if n_outputs == 1:
        with pytest.warns(UtilityWarning, match="y is far outside of the scale"):
            fit(0.02)


@pytest.mark.parametrize("name", ["normal", "years", "skewed", "heavy", "counts", "signs"])
def test_a_private_scale_suits_y(name):
    y = targets()[name].astype(float)
    X = np.random.default_rng(0).normal(size=(4000, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        DPLinearRegression(epsilon=3.0).fit(X, y)


def test_the_check_of_targets_is_charged_and_can_be_turned_off():
    def names(**settings):
        plan = DPRidge(y_bounds=(0, 1), **settings).plan(1000, 3)
        assert plan.budget.covers(plan.cost)
        return [release.name for release in plan.releases]

    assert "first gradients" in names()
    assert "first gradients" not in names(scale_check_share=0.0)
