"""Poisson, gamma and Tweedie regression: the loss, mean and spread of y, the level."""

import warnings

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance

from skdp import DPGammaRegressor, DPPoissonRegressor, DPTweedieRegressor
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.linear_model._positive_target import find_target_mean, plan_target_mean
from skdp.linear_model._sample_weight import Sizes
from skdp.losses import LogLinkLoss
from skdp.noise import NoiseCore

COEF = np.array([0.5, -0.5, 0.2])


def problem(kind, n=6000, level=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    expected = np.exp(level + X @ COEF)
    if kind == "poisson":
        return X, rng.poisson(expected).astype(float)
    y = rng.gamma(2.0, expected / 2.0)
    return X, y if kind == "gamma" else y * 2.0 * rng.integers(0, 2, n)


MODELS = {
    "poisson": (DPPoissonRegressor, {}, PoissonRegressor),
    "gamma": (DPGammaRegressor, {}, GammaRegressor),
    "tweedie": (DPTweedieRegressor, {"power": 1.5}, TweedieRegressor),
}


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0, 3.0])
def test_the_residual_is_the_derivative_of_half_the_deviance(power):
    loss = LogLinkLoss(power)
    for y in (0.7, 1.0, 5.0):

        def deviance(z, y=y):
            return mean_tweedie_deviance([y], np.exp(z), power=power) / 2.0

        def slope(z, y=y):
            return loss.residual(np.array(z), np.array([y]))

        for z in (-1.0, 0.0, 1.5):
            assert check_grad(deviance, slope, [z]) < 1e-5


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0, 3.0])
def test_the_curvature_at_the_mean_is_the_stated_one(power):
    loss = LogLinkLoss(power, unit=4.0, offset=0.3)
    step = 1e-6
    z = np.array([-0.3 - step, -0.3 + step])
    slope = np.diff(loss.residual(z, np.ones(2)))[0] * loss.unit / (2 * step)
    assert slope == pytest.approx(loss.curvature, rel=1e-5)
    # Beyond the cap nothing grows.
    far = loss.residual(np.array([1e9, 1e300, -1e9, -1e300]), np.ones(4))
    assert far[0] == far[1] and far[2] == far[3] and np.isfinite(far).all()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("bounded", [True, False])
def test_it_comes_close_to_the_twin(kind, bounded):
    # Coefficients have noise of about 0.02 and a bias by clipping of about as much.
    X, y = problem(kind)
    cls, own, _ = MODELS[kind]
    bounds = (0, 60) if bounded else None
    model = cls(epsilon=5.0, alpha=0.01, y_bounds=bounds, **own).fit(X, y)
    twin = model.make_non_private().fit(X, y)
    assert np.allclose(model.coef_, twin.coef_, atol=0.2)
    assert model.score(X, y) > 0.8 * twin.score(X, y)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.2)
    power = getattr(model, "power", {"poisson": 1, "gamma": 2}.get(kind))
    assert model.score(X, y) == d2_tweedie_score(y, model.predict(X), power=power)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_privacy_it_is_the_twin(kind, fit_intercept):
    X, y = problem(kind, 300)
    cls, own, twin_class = MODELS[kind]
    model = cls(np.inf, alpha=0.3, fit_intercept=fit_intercept, **own).fit(X, y)
    if kind == "tweedie":
        own = {**own, "link": "log"}
    twin = twin_class(alpha=0.3, fit_intercept=fit_intercept, **own).fit(X, y)
    assert np.array_equal(model.coef_, twin.coef_)
    assert np.array_equal(model.predict(X), twin.predict(X))
    assert model.mean_ == y.mean()


def rare_counts(n=25_000, seed=0):
    """Counts of which 4% are above zero, some of them large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    rate = np.exp(X @ [0.6, -0.4, 0.3, 0.0, 0.0, 0.0])
    y = rng.poisson(0.05 * rate) * (1 + rng.geometric(0.35, size=n))
    return X, y.astype(float)


@pytest.mark.parametrize("bounds", [(0, 40), None])
def test_rare_counts_keep_their_level(bounds):
    # The level has a standard error of about 0.04; without its release it would be about 0.5.
    X, y = rare_counts()
    model = DPPoissonRegressor(epsilon=3.0, alpha=0.0, y_bounds=bounds).fit(X, y)
    assert model.predict(X).mean() == pytest.approx(y.mean(), rel=0.3)
    twin = PoissonRegressor(alpha=0.0).fit(X, y)
    assert model.score(X, y) > 0.5 * twin.score(X, y)


def test_a_tight_clip_pulls_the_level_down_and_its_release_brings_it_back(monkeypatch):
    # The level's noise is about 0.04: bounds that hold and fail with many times that to spare.
    X, y = rare_counts()
    model = DPPoissonRegressor(epsilon=3.0, alpha=0.0, y_bounds=(0, 40), clip_norm=0.3)
    assert model.fit(X, y).predict(X).mean() == pytest.approx(y.mean(), rel=0.3)
    monkeypatch.setattr(DPPoissonRegressor, "_level", lambda self, *args: 0.0)
    monkeypatch.setattr(NoiseCore, "finish", lambda self: ())
    assert model.fit(X, y).predict(X).mean() < 0.6 * y.mean()


def test_predictions_stay_near_the_mean():
    X, y = problem("poisson")
    model = DPPoissonRegressor(epsilon=3.0, alpha=0.0, y_bounds=(0, 60)).fit(X, y)
    model.coef_ = model.coef_ * 100
    predicted = model.predict(X)
    assert predicted.max() <= model.mean_ * np.exp(3.0) * (1 + 1e-12)
    assert predicted.min() >= model.mean_ * np.exp(-3.0) * (1 - 1e-12)


def mean_of(y, bounds, mu=1.0):
    releases, rest = plan_target_mean(PrivacyCost(mu), len(y), bounded=bounds is not None)
    noise = NoiseCore(releases, seed=None, owner="test")
    sizes = Sizes(len(y), len(y))
    found = find_target_mean(y, bounds, sizes=sizes, noise=noise, neighboring="add_or_remove")
    noise.finish()
    return found


@pytest.mark.parametrize("bounds", [(0.0, 50.0), None])
def test_mean_and_variation_are_found(bounds):
    rng = np.random.default_rng(0)
    for y in (rng.poisson(3.0, 20_000), rng.gamma(1.0, 5.0, 20_000), 10 + rng.random(20_000)):
        found = mean_of(y.astype(float), bounds)
        assert found.mean == pytest.approx(y.mean(), rel=0.1)
        spread = max(y.std() / y.mean(), 0.05)
        assert 0.5 * spread < found.variation < (2.0 * spread if bounds is None else 6.0 * spread)


@pytest.mark.filterwarnings("ignore:y, with a standard deviation")
def test_zeros_alone_give_a_positive_mean():
    found = mean_of(np.zeros(5000), (0.0, 10.0))
    assert 0.0 < found.mean < 0.5 and found.variation > 0.0
    X = np.random.default_rng(0).normal(size=(5000, 2))
    model = DPPoissonRegressor(y_bounds=(0, 10)).fit(X, np.zeros(5000))
    assert np.all(model.predict(X) < 2.0)


@pytest.mark.parametrize("kind", MODELS)
def test_targets_out_of_range_are_refused(kind):
    X, y = problem(kind, 50)
    y[3] = -7431.5
    with pytest.raises(ValueError, match="y must be") as caught:
        MODELS[kind][0]().fit(X, y)
    assert "7431" not in str(caught.value)
    y[3] = 0.0
    if kind == "gamma":
        with pytest.raises(ValueError, match="y must be positive"):
            DPGammaRegressor().fit(X, y)


def test_everything_that_looks_at_the_target_is_planned():
    plan = DPPoissonRegressor(y_bounds=(0, 9)).plan(1000, 3)
    names = [r.name for r in plan.releases]
    assert names == ["row lengths", "moments", "level", "second moments", "gradient"]
    assert plan.budget.covers(plan.cost)
    names = [r.name for r in DPPoissonRegressor(fit_intercept=False).plan(1000, 3).releases]
    assert names[1:5] == ["magnitudes", "locations", "distances", "moments"]
    assert "level" not in names


def test_a_spread_that_is_too_large_for_the_budget_warns():
    X, y = rare_counts(10_000)
    with pytest.warns(UtilityWarning, match="spreads too far"):
        DPPoissonRegressor(epsilon=0.3, y_bounds=(0, 40)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DPPoissonRegressor(epsilon=3.0, y_bounds=(0, 40)).fit(X, y)


@pytest.mark.filterwarnings("ignore:y, with a standard deviation")
def test_too_few_rows_for_private_bounds_warn():
    X, y = problem("poisson", 200)
    with pytest.warns(UtilityWarning, match="y_bounds"):
        DPPoissonRegressor().fit(X, y)


def test_without_an_intercept_the_model_goes_through_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = rng.poisson(np.exp(X @ COEF)).astype(float)
    model = DPPoissonRegressor(epsilon=5.0, alpha=0.01, y_bounds=(0, 20), fit_intercept=False).fit(
        X, y
    )
    assert model.intercept_ == 0.0
    assert np.allclose(model.coef_, COEF, atol=0.2)


def test_a_run_that_diverges_poisons_no_sum():
    # Coefficients beyond the range of squares make predictors that are not numbers.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = rng.poisson(np.exp(0.3 * X[:, 0]))
    model = DPPoissonRegressor(
        alpha=10, learning_rate=1e6, gram_share=0.15, max_iter=52, y_bounds=(0, 10)
    )
    totals = []
    release = NoiseCore.release

    def spy(self, bounded):
        totals.append(bounded)
        return release(self, bounded)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(NoiseCore, "release", spy)
        model.fit(X, y)
    (level,) = [b for b in totals if b.name == "level"]
    assert abs(level.total.to_float(level.unit)[0]) <= 400 * level.sensitivity
