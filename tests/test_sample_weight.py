"""Weights of records: what they mean, what they cost, and that no sum gets more sensitive."""

from fractions import Fraction

import numpy as np
import pytest
import registry
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline

from skdp import PrivacyBudget, _dense_rows
from skdp._dense_rows import DenseRows
from skdp._lattice import weigh_integers, weights_to_grid
from skdp._sparse_rows import SparseRows
from skdp.engine import Grid
from skdp.losses import LogisticLoss, LogLinkLoss, SoftmaxLoss, SquaredLoss

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
WEIGHTED = [name for name in registry.CLASSES if hasattr(registry.make(name), "max_sample_weight")]
for_each_model = pytest.mark.parametrize("name", WEIGHTED)
sizes = st.floats(0.0, allow_infinity=False)


# ---------------------------------------------------------------- on the grid


@given(arrays(float, (5,), elements=sizes), st.floats(1e-150, 1e150))
def test_relative_weights_are_on_their_grid_and_never_too_large(weights, bound):
    relative = weights_to_grid(weights, bound)
    assert relative.dtype == np.float32
    for mine, weight in zip(relative.tolist(), weights.tolist(), strict=True):
        assert 0.0 <= mine <= 1.0 and (mine * 2**20).is_integer()
        exact = min(Fraction(weight) / Fraction(bound), 1)
        assert exact - Fraction(1, 2**20) < Fraction(mine) <= exact * (1 + Fraction(1, 2**52))


def test_weights_at_the_ends_of_the_floats():
    weights = np.array([0.0, 5e-324, 1e-9, 0.3, 2.0, 2.1, 1e308])
    assert weights_to_grid(weights, 2.0).tolist()[:3] == [0.0, 0.0, 0.0]
    assert weights_to_grid(weights, 2.0).tolist()[4:] == [1.0, 1.0, 1.0]


@settings(deadline=None)
@given(
    arrays(np.int64, (7,), elements=st.integers(-(2**52), 2**52)),
    arrays(np.float64, (7,), elements=st.floats(0.0, 1.0)),
)
def test_weighted_integers_are_integers_that_do_not_grow(values, weights):
    integers = values.astype(np.float64)
    weigh_integers(integers, weights)
    assert np.array_equal(integers, np.rint(integers))
    assert np.all(np.abs(integers) <= np.abs(values))
    assert np.all(np.abs(integers - values * weights) <= 1.0)


def rows_in(home, X, weights, **options):
    make, X = {"dense": (DenseRows, X), "sparse": (SparseRows, csr_array(X))}[home]
    facts = {"feature_norm": 1.0, "slack": 2.0, "constant": 0.25, "neighboring": "add_or_remove"}
    return make(X, **facts, grid=Grid(20, 20), weights=weights, **options)


def sums_of(rows, y):
    """Bytes of every kind of sum."""
    theta = rows.round_coefficients(np.full(rows.n_columns, 0.3))
    wide = rows.round_coefficients(np.outer(theta, [1.0, -1.0, 0.5]))
    found = [
        rows.gradient_sum("g", theta, LogisticLoss(), y, 0.4),
        rows.gradient_sum("g", wide, SoftmaxLoss(), y.astype(int), 0.4),
        rows.gram("moments"),
        rows.misfits("row lengths"),
    ]
    return [bounded.total.tobytes() for bounded in found]


def some_rows(n=500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * rng.exponential(size=(n, 1))
    X[:20], X[3] = 0.0, 1e300
    weights = weights_to_grid(rng.random(n) * (rng.random(n) < 0.8), 1.0)
    return X, (rng.random(n) < 0.5).astype(float), weights


def test_every_home_gives_the_same_weighted_sums(monkeypatch):
    X, y, weights = some_rows()
    want = sums_of(rows_in("dense", X, weights), y)
    assert sums_of(rows_in("sparse", X, weights), y) == want
    monkeypatch.setattr(_dense_rows, "_COMPILED_ENTRIES", 0)
    assert sums_of(rows_in("dense", X, weights), y) == want
    # By factors afterwards, as weights of classes come.
    for home in ("dense", "sparse"):
        rows = rows_in(home, X, weights)
        rows.weigh(np.full(len(X), 0.5))
        halved = rows_in(home, X, weights_to_grid(weights, 2.0))
        assert sums_of(rows, y)[:3] == sums_of(halved, y)[:3] != want[:3]


@pytest.mark.parametrize("home", ["dense", "sparse"])
def test_full_weight_changes_nothing_and_no_weight_is_no_record(home):
    X, y, weights = some_rows()
    full = np.ones(len(X), dtype=np.float32)
    assert sums_of(rows_in(home, X, full), y) == sums_of(rows_in(home, X, None), y)
    some = weights > 0
    kept = sums_of(rows_in(home, X[some], full[some]), y[some])
    assert sums_of(rows_in(home, X, some.astype(np.float32)), y) == kept


def test_weighted_sums_are_about_what_they_should_be():
    X, y, weights = some_rows()
    X = X[20:].clip(-0.3, 0.3)
    y, weights = y[20:], weights[20:]
    rows = rows_in("dense", X, weights)
    work = rows.data * 2.0**-20
    gram = rows.gram("moments")
    want = (work * weights[:, None]).T @ work
    found = gram.total.to_float(gram.unit)[: rows.n_columns]
    assert np.allclose(found, want.diagonal(), atol=len(X) * 2.0**-18)
    theta = rows.round_coefficients(np.full(rows.n_columns, 0.3))
    gradient = rows.gradient_sum("g", theta, LogisticLoss(), y, 2.0)
    residual = LogisticLoss().residual(work @ theta, y)
    found = gradient.total.to_float(gradient.unit)
    assert np.allclose(found, work.T @ (weights * residual), atol=len(X) * 2.0**-20)


# ---------------------------------------------------------------- what they mean


def problem(name, n=3000, seed=0):
    """Rows, targets, and counts 0 to 3 that depend on both, so that they matter."""
    entry = registry.declared(name)
    X, y = registry.rows_for(entry, n, seed=seed)
    rng = np.random.default_rng(seed)
    if not is_classifier(entry.estimator):
        y = y * np.exp(0.3 * rng.normal(size=n)) if y.min() > 0 else y + 0.7 * rng.normal(size=n)
    heavy = X[:, 1] + (y - y.mean()) / y.std() > 0
    return X, y, np.where(heavy, rng.integers(1, 4, n), rng.integers(0, 2, n))


def coefficients(model):
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))


SETTINGS = {
    "planned": {},
    "plain": {"solver": "gradient-descent"},
    "found": {"y_bounds": None, "class_weight": "balanced"},
}


@for_each_model
@pytest.mark.parametrize("label", SETTINGS)
def test_a_weight_of_k_is_k_copies(name, label):
    # Noise has a standard deviation of .0016 at this epsilon, that of the logistic model, and of
    # most below 1e-4. Weights shift coefficients by .09 and more.
    X, y, k = problem(name)
    model = registry.declared(name, epsilon=1e6, clip_norm=3.0, max_iter=60).estimator
    known = model.get_params()
    model.set_params(**{p: v for p, v in SETTINGS[label].items() if p in known})
    weighted = clone(model).set_params(max_sample_weight=3.0).fit(X, y, sample_weight=k)
    copies = clone(model).fit(np.repeat(X, k, axis=0), np.repeat(y, k))
    plain = clone(model).fit(X, y)
    error = np.abs(coefficients(weighted) - coefficients(copies)).max()
    assert error < 0.01
    assert np.abs(coefficients(plain) - coefficients(copies)).max() > 4 * error + 0.02


@for_each_model
def test_without_privacy_weights_go_to_the_twin(name):
    X, y, k = problem(name, 200)
    model = registry.declared(name, epsilon=np.inf).estimator.fit(X, y, sample_weight=k)
    twin = model.make_non_private().fit(X, y, sample_weight=k)
    assert np.allclose(coefficients(model), coefficients(twin), rtol=1e-10, atol=1e-12)
    assert model.score(X, y, sample_weight=k) == pytest.approx(twin.score(X, y, sample_weight=k))


PENALTIES = {
    "DPLogisticRegression": {"C": 1e-3},
    "DPLinearSVC": {"C": 1e-4},
    "DPLinearSVR": {"C": 5e-5},
    "DPRidge": {"alpha": 5e3},
    "DPRidgeCV": {"alphas": np.array([5e3])},
    "DPHuberRegressor": {"alpha": 3e4},
    "DPPoissonRegressor": {"alpha": 1.0},
    "DPGammaRegressor": {"alpha": 1.0},
    "DPTweedieRegressor": {"alpha": 1.0},
}


@pytest.mark.parametrize("name", PENALTIES)
def test_the_penalty_means_what_it_does_in_the_twin(name):
    # Weights in a unit of their own, which must not change what the penalty is beside them.
    X, y, k = problem(name)
    weights = 20.0 * k
    ((penalty, value),) = PENALTIES[name].items()
    model = registry.declared(name, epsilon=1e5, clip_norm=3.0, max_iter=60, **PENALTIES[name])
    model = model.estimator.set_params(max_sample_weight=60.0).fit(X, y, sample_weight=weights)
    twin = model.make_non_private().fit(X, y, sample_weight=weights)
    weak = clone(twin).set_params(**{penalty: value * (20.0 if penalty == "C" else 0.05)})
    shift = np.abs(twin.coef_ - weak.fit(X, y, sample_weight=weights).coef_).max()
    assert shift > 0.05
    # Off by a twentieth, the penalty would be that of `weak`; smoothed losses are a little off.
    assert np.abs(model.coef_ - twin.coef_).max() < 0.5 * shift


@for_each_model
def test_without_weights_their_bound_changes_nothing(name):
    entry = registry.declared(name, random_state=3, epsilon=3.0)
    X, y = registry.rows_for(entry, 150)
    plain = clone(entry.estimator).fit(X, y)
    bounded = clone(entry.estimator).set_params(max_sample_weight=50.0).fit(X, y)
    assert plain.releases_ == bounded.releases_ and plain.plan_ == bounded.plan_
    assert np.array_equal(coefficients(plain), coefficients(bounded))


@for_each_model
def test_the_sum_of_weights_is_planned_and_charged(name):
    model = registry.declared(name).estimator
    plain, weighted = (model.plan(500, 3, weighted=flag) for flag in (False, True))
    names = [[r.name for r in plan.releases] for plan in (plain, weighted)]
    assert "weights" not in names[0]
    assert sorted(names[1]) == sorted([*names[0], "weights"])
    assert weighted.budget == plain.budget and weighted.budget.covers(weighted.cost)
    (share,) = (r.mu**2 / plain.budget.mu**2 for r in weighted.releases if r.name == "weights")
    assert 0.02 < share < 0.04
    if is_classifier(model):  # the sizes of classes tell the sum of the weights
        balanced = model.set_params(class_weight="balanced").plan(500, 3, weighted=True)
        assert "weights" not in [r.name for r in balanced.releases]


@pytest.mark.parametrize("share", [1.0, 0.02])
def test_small_weights_are_learned_from(share):
    # With steps of the declared number of rows a fit to weights of 0.02 would hardly move.
    X, y, _ = problem("DPLogisticRegression", 20_000)
    model = registry.declared("DPLogisticRegression", epsilon=100.0).estimator
    model.set_params(solver="gradient-descent", max_sample_weight=1.0)
    twin = model.make_non_private().set_params(C=1.0).fit(X, y)
    model.fit(X, y, sample_weight=np.full(len(X), share))
    assert np.mean(model.predict(X) == twin.predict(X)) > 0.97
    assert abs(model.coef_).max() > 0.5 * abs(twin.coef_).max()


def test_rates_are_weighted_by_their_exposure_before_they_are_clipped():
    # A rate of one claim in a week of exposure is 52: its weight, not the clip, makes it small.
    rows = rows_in("dense", np.zeros((2, 1)), weights_to_grid(np.array([1 / 64, 1.0]), 1.0))
    targets = np.array([65.0, 1.0])
    found = rows.gradient_sum("g", np.zeros(2), LogLinkLoss(1.0), targets, 1.0)
    constant = rows.constant
    assert found.total.to_float(found.unit)[1] == pytest.approx(-constant, rel=1e-5)
    clipped = rows.gradient_sum("g", np.zeros(2), SquaredLoss(), targets, 0.1)
    assert abs(clipped.total.to_float(clipped.unit)[1]) < 0.11  # clipped, and then weighted


def test_claims_with_exposures_are_learned():
    # Over 40 draws the score was .996 of the twin's, with a deviation of .002, and the mean .986
    # of the true one with .016. With a level from residuals alone, taken to be right about the
    # mean of y, and weights after the clip, one in ten was at .06 and 1.86.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 4))
    exposure = rng.beta(0.8, 1.0, size=len(X)).clip(0.003, 1.0)
    claims = rng.poisson(0.1 * exposure * np.exp(X @ [0.5, -0.4, 0.3, 0.0]))
    rates = claims / exposure
    model = registry.declared("DPPoissonRegressor", epsilon=3.0, alpha=0.0, y_bounds=(0, 40))
    model = model.estimator.fit(X, rates, sample_weight=exposure)
    twin = model.make_non_private().fit(X, rates, sample_weight=exposure)
    mine, theirs = (m.score(X, rates, sample_weight=exposure) for m in (model, twin))
    assert mine > 0.95 * theirs > 0.0
    expected = np.average(model.predict(X), weights=exposure)
    assert expected == pytest.approx(np.average(rates, weights=exposure), rel=0.15)


# ---------------------------------------------------------------- errors


@for_each_model
@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_bad_weights_are_refused_without_being_shown(name, epsilon):
    X, y, _ = problem(name, 60)
    model = registry.declared(name, epsilon=epsilon).estimator
    bad = {
        "negative": (np.where(np.arange(60) == 7, -7431.5, 1.0), "must not be negative"),
        "NaN": (np.where(np.arange(60) == 7, np.nan, 1.0), "sample_weight contains NaN"),
        "infinite": (np.where(np.arange(60) == 7, np.inf, 1.0), "sample_weight contains NaN"),
        "short": (np.full(59, 7431.5), "59 entries for 60 rows"),
        "wide": (np.full((60, 2), 7431.5), "must be 1D"),
        "text": (np.full(60, "7431x"), "not numbers"),
    }
    for weights, message in bad.values():
        for assume_finite in (False, True):
            with (
                config_context(assume_finite=assume_finite),
                pytest.raises(ValueError, match=message) as caught,
            ):
                model.fit(X, y, sample_weight=weights)
            assert "7431" not in str(caught.value)
    with pytest.raises(ValueError, match="max_sample_weight"):
        clone(model).set_params(max_sample_weight=1e200).fit(X, y)


@for_each_model
def test_no_weight_at_all_is_noise_and_no_error(name):
    X, y, _ = problem(name, 80)
    for facts in (registry.DECLARED[name], {}):
        if facts or not is_classifier(registry.make(name)):
            model = registry.make(name, **facts).fit(X, y, sample_weight=np.zeros(80))
            assert np.isfinite(coefficients(model)).all()


# ---------------------------------------------------------------- around scikit-learn


def test_weights_find_their_way():
    X, y, k = problem("DPLogisticRegression", 300)
    model = registry.declared("DPLogisticRegression", random_state=0).estimator
    want = coefficients(clone(model).fit(X, y, sample_weight=k))
    one = PrivacyBudget(clone(model), random_state=0).fit(X, y, sample_weight=k)
    assert np.array_equal(coefficients(one.estimator_), want)
    pipeline = make_pipeline(clone(model)).fit(X, y, dplogisticregression__sample_weight=k)
    assert np.array_equal(coefficients(pipeline[-1]), want)
    scores = []
    with config_context(enable_metadata_routing=True):
        asks = (
            clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        )
        routed = make_pipeline(asks).fit(X, y, sample_weight=k)
        assert np.array_equal(coefficients(routed[-1]), want)
        budget = PrivacyBudget(make_pipeline(asks), random_state=0).fit(X, y, sample_weight=k)
        assert np.array_equal(coefficients(budget.estimator_[-1]), want)
        search = GridSearchCV(asks, {"epsilon": [1.0, 2.0]}, cv=KFold(2), error_score="raise")
        scores.append(search.fit(X, y, sample_weight=k).best_score_)
        found = cross_validate(asks, X, y, cv=KFold(2), params={"sample_weight": k})
        scores.extend(found["test_score"])
    plans = [search.best_estimator_.plan_, budget.estimator_[-1].plan_]
    assert all("weights" in [r.name for r in plan.releases] for plan in plans)
    assert all(0.0 <= score <= 1.0 for score in scores)
