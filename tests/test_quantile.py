"""Quantile regression and support vector regression: losses with a corner, made smooth."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.svm import LinearSVR

from skdp import DPLinearSVR, DPQuantileRegressor
from skdp.linear_model._residuals import SIZES, root_mean_square
from skdp.losses import InsensitiveLoss, PinballLoss

BOUNDS = {"y_bounds": (-10.0, 16.0)}


def problem(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, X @ [2.0, -1.0, 0.5, 0.0] + 3.0 + rng.gumbel(size=n)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_far_from_zero_it_is_the_slope_of_the_pinball_loss(quantile):
    loss = PinballLoss(quantile, 0.25, unit=3.0)
    for error in (-7.0, -0.3, 0.3, 7.0):
        step = 1e-6
        costs = [
            mean_pinball_loss([0.0], [error + sign * step], alpha=quantile) for sign in (-1, 1)
        ]
        slope = loss.residual(np.array([error]), np.zeros(1))[0] * loss.unit / 3.0
        assert slope == pytest.approx((costs[1] - costs[0]) / (2 * step), abs=1e-6)
    z = np.linspace(-1, 1, 201)
    residual = loss.residual(z, np.zeros(201))
    assert np.all(np.diff(residual) >= 0) and np.abs(residual).max() == 1.0


def test_the_tolerance_is_flat_and_the_rest_odd():
    loss = InsensitiveLoss(1.0, 0.5)
    error = np.array([-9.0, -1.5, -1.25, -1.0, 0.0, 0.9, 1.25, 1e300])
    want = [-1.0, -1.0, -0.5, 0.0, 0.0, 0.0, 0.5, 1.0]
    assert np.allclose(loss.residual(error, np.zeros(8)), want)


def test_the_scale_of_residuals_ignores_the_far_ones():
    shares = np.zeros(len(SIZES))
    shares[30] = 0.9
    shares[-1] = 0.1
    assert SIZES[30] <= root_mean_square(shares) < 1.4 * SIZES[30]


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_the_quantile_is_met(quantile):
    # The share below has a standard deviation of about .005 here.
    X, y = problem()
    model = DPQuantileRegressor(epsilon=5.0, quantile=quantile, **BOUNDS).fit(X, y)
    assert (y < model.predict(X)).mean() == pytest.approx(quantile, abs=0.05)
    twin = model.make_non_private().fit(X, y)
    assert np.allclose(model.coef_, twin.coef_, atol=0.25)


def test_support_vector_regression_comes_close_to_the_twin():
    # Coefficients have noise of about 0.01; the smooth corner moves them by less.
    X, y = problem()
    for insensitivity in (0.0, 0.5):
        model = DPLinearSVR(epsilon=5.0, insensitivity=insensitivity, **BOUNDS).fit(X, y)
        twin = LinearSVR(epsilon=insensitivity, max_iter=10_000, random_state=0).fit(X, y)
        assert np.allclose(model.coef_, twin.coef_, atol=0.2)
        assert model.intercept_ == pytest.approx(twin.intercept_[0], abs=0.2)


def test_the_penalty_means_what_it_does_in_the_twin():
    X, y = problem()
    strong = DPLinearSVR(epsilon=5.0, C=2e-4, **BOUNDS).fit(X, y)
    twin = LinearSVR(C=2e-4, max_iter=10_000, random_state=0, intercept_scaling=100.0).fit(X, y)
    weak = DPLinearSVR(epsilon=5.0, **BOUNDS).fit(X, y)
    ratio = np.linalg.norm(twin.coef_) / np.linalg.norm(weak.coef_)
    assert ratio < 0.7  # the penalty matters
    assert np.linalg.norm(strong.coef_) / np.linalg.norm(weak.coef_) == pytest.approx(
        ratio, abs=0.2
    )


def test_outliers_do_not_matter_to_the_median():
    X, y = problem()
    clean = QuantileRegressor(alpha=0.0).fit(X, y)
    y[:300] = 1e300
    model = DPQuantileRegressor(epsilon=5.0, **BOUNDS).fit(X, y)
    assert np.abs(model.predict(X) - clean.predict(X)).mean() < 0.4


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.5, None, "0.5"])
def test_quantiles_out_of_range_are_refused(quantile):
    with pytest.raises(ValueError, match="quantile"):
        DPQuantileRegressor(quantile=quantile).plan(100, 2)


def test_without_privacy_they_are_the_twins():
    X, y = problem(200)
    model = DPQuantileRegressor(np.inf, quantile=0.3).fit(X, y)
    twin = QuantileRegressor(quantile=0.3, alpha=0.0).fit(X, y)
    assert np.array_equal(model.coef_, twin.coef_) and model.intercept_ == twin.intercept_
    model = DPLinearSVR(np.inf, insensitivity=0.2, C=0.5).fit(X, y)
    twin = LinearSVR(epsilon=0.2, C=0.5, max_iter=10_000, random_state=0).fit(X, y)
    assert np.array_equal(model.coef_, twin.coef_) and model.n_iter_ == twin.n_iter_
