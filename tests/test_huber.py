"""Huber regression: the loss, the private residual scale, robustness."""

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, LinearRegression

from skdp import DPHuberRegressor, DPLinearRegression
from skdp.linear_model._residuals import SIZES, _bins, huber_scale
from skdp.losses import HuberLoss


def problem(n=6000, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X @ [2.0, -1.0, 0.5, 0.0] + 3.0 + noise * rng.standard_t(3, size=n)


def test_the_loss_is_quadratic_then_linear():
    loss = HuberLoss(1.5, unit=2.0)
    error = np.array([-1e9, -3.0, -1.0, 0.0, 2.0, 3.0, 7.0])
    residual = loss.residual(error + 5.0, np.full(7, 5.0))
    assert np.allclose(residual, [-1.5, -1.5, -0.5, 0.0, 1.0, 1.5, 1.5])
    assert loss.residual_bound == 1.5 and loss.curvature == 1.0


def test_every_error_is_in_one_bin():
    error = np.array([0.0, 5e-324, 2.0**-12, -0.99, 1.0, 15.9, -16.0, 1e300, np.inf, np.nan])
    bins = _bins(error)
    assert bins.min() == 0 and bins.max() == len(SIZES) - 1
    inner = [2, 3, 4, 5]
    ratio = SIZES[bins[inner]] / np.abs(error[inner])
    assert np.all((ratio > 2**-0.126) & (ratio < 2**0.126))
    assert list(bins[-4:]) == [len(SIZES) - 1] * 4


@pytest.mark.parametrize("threshold", [1.1, 1.35, 3.0])
def test_the_scale_solves_the_equation_of_the_twin(threshold):
    error = np.random.default_rng(0).normal(size=100_000) * 0.2
    shares = np.bincount(_bins(error), minlength=len(SIZES)) / len(error)
    twin = HuberRegressor(epsilon=threshold, alpha=0.0, fit_intercept=False)
    want = twin.fit(np.zeros((len(error), 1)), error).scale_
    assert huber_scale(shares, threshold) == pytest.approx(want, rel=0.05)


@pytest.mark.parametrize("threshold", [1.35, 2.5])
def test_it_comes_close_to_the_twin(threshold):
    # Noise of coefficients is about 0.01 here; a false alarm needs ten times that.
    X, y = problem()
    model = DPHuberRegressor(epsilon=5.0, y_bounds=(-10, 16), threshold=threshold).fit(X, y)
    twin = model.make_non_private().fit(X, y)
    assert np.allclose(model.coef_, twin.coef_, atol=0.1)
    assert model.intercept_ == pytest.approx(twin.intercept_, abs=0.1)
    assert model.scale_ == pytest.approx(twin.scale_, rel=0.3)


def test_outliers_that_move_least_squares_do_not_move_it():
    X, y = problem(noise=0.3)
    y[:900] = 16.0 + X[:900, 3] * 5.0
    clean = LinearRegression().fit(X[900:], y[900:])
    bounds = {"epsilon": 5.0, "y_bounds": (-10, 16)}

    def error(model):
        return np.abs(model.fit(X, y).predict(X[900:]) - clean.predict(X[900:])).mean()

    assert error(DPHuberRegressor(**bounds)) < 0.5 * error(DPLinearRegression(**bounds))


def test_the_scale_follows_the_units_of_y():
    X, y = problem()
    one = DPHuberRegressor(epsilon=5.0, y_bounds=(-10, 16)).fit(X, y)
    thousand = DPHuberRegressor(epsilon=5.0, y_bounds=(-1e4, 1.6e4)).fit(X, 1e3 * y)
    assert thousand.scale_ == pytest.approx(1e3 * one.scale_, rel=0.3)


def test_the_histogram_is_charged():
    plan = DPHuberRegressor(y_bounds=(0, 1)).plan(1000, 3)
    names = [r.name for r in plan.releases]
    assert names == ["row lengths", "first gradients", "residuals", "second moments", "gradient"]
    share = next(r.mu for r in plan.releases if r.name == "residuals") ** 2 / plan.budget.mu**2
    assert 0.04 < share < 0.06
    assert plan.budget.covers(plan.cost)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_noise_alone_gives_a_sane_scale():
    X, y = problem(60)
    for _ in range(20):
        model = DPHuberRegressor(epsilon=0.1, y_bounds=(-10, 16)).fit(X, y)
        assert 0.01 < model.scale_ < 100 and np.isfinite(model.coef_).all()


def test_without_privacy_it_has_the_scale_of_the_twin():
    X, y = problem(300)
    model = DPHuberRegressor(np.inf, threshold=2.0, alpha=0.1).fit(X, y)
    twin = HuberRegressor(epsilon=2.0, alpha=0.1).fit(X, y)
    assert model.scale_ == twin.scale_ and model.n_iter_ == twin.n_iter_
    assert np.array_equal(model.coef_, twin.coef_)


@pytest.mark.parametrize("threshold", [1.0, 0.5, -1.0, None, "1.35"])
def test_thresholds_that_make_no_sense_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold"):
        DPHuberRegressor(threshold=threshold).plan(100, 2)


@pytest.mark.parametrize("solver", ["preconditioned-gradient-descent", "gradient-descent"])
@pytest.mark.parametrize("alpha", [5e4, 5e6])
def test_a_strong_penalty_holds_when_the_scale_is_found_on_the_way(alpha, solver):
    # The scale changes the penalty after some steps: the steps must know.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = X @ [1.5, -2.0, 0.5] + 0.5 * rng.normal(size=5000)
    model = DPHuberRegressor(3.0, alpha=alpha, y_bounds=(-1, 1), solver=solver).fit(X, y)
    assert np.abs(model.coef_).max() < 0.2
