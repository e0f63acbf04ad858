"""The penalty that is chosen from released values: what is estimated, read and picked."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV

from skdp import DPRidge, DPRidgeCV, non_private
from skdp.linear_model._penalty_choice import _step_weights, candidates, estimated_risk
from skdp.linear_model._residuals import root_mean_square
from skdp.solvers import SolverSettings

ALPHAS = np.logspace(-1, 5, 7)


def problem(n=4000, d=5, signal=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, signal * X @ np.resize([0.6, -0.4, 0.3], d) + rng.normal(size=n)


@pytest.mark.parametrize("weight", [0.0, 3.0, 200.0])
def test_the_risk_is_estimated_without_bias(weight):
    # The mean of 5,000 draws is normal: 6 standard errors are passed with probability 2e-9.
    # Without the trace, or with half of it, the bias is beyond them, as the last line says.
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 4)) @ np.diag([1.0, 0.5, 2.0, 0.1])
    gram, truth = rows.T @ rows, np.array([0.5, -1.0, 0.2, 3.0])
    covariance = 0.7 * gram + 9.0 * np.eye(4)
    metric = np.diag([50.0, 1.0, 0.0, 7.0]) + 5.0
    penalty = weight * np.array([1.0, 1.0, 1.0, 0.0])
    root = np.linalg.cholesky(covariance)
    gaps = []
    for _ in range(5_000):
        found, risk = estimated_risk(
            gram, gram @ truth + root @ rng.standard_normal(4), penalty, covariance, metric
        )
        error = found - truth
        gaps.append(risk - (error @ metric @ error - truth @ metric @ truth))
    tolerance = 6.0 * np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < tolerance
    inverse = np.linalg.inv(gram + np.diag(penalty))
    optimism = np.trace(inverse @ covariance @ np.linalg.solve(gram, metric))
    assert optimism > tolerance


@pytest.mark.parametrize("ratio", [1.0, 0.4, 0.01, 0.0])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_the_weight_of_every_step_is_what_a_descent_shows(ratio, rate):
    # The same descent, in floats and one dimension, with an impulse in one step after the other.
    settings = DPRidgeCV(max_iter=7, learning_rate=rate, y_bounds=(0, 1)).plan(500, 3).settings
    averaged, taken = 4, 50.0
    shown = []
    for impulse in np.eye(7):
        iterates, gradients, t = [], [], 0.0
        for products in impulse:
            iterates.append(t)
            gradients.append(ratio * taken * t - products)
            t -= rate * gradients[-1] / taken
        shown.append(taken * np.mean(iterates[-averaged:]) - np.mean(gradients[-averaged:]))
    weights = _step_weights(np.array([ratio]), averaged, SolverSettings(**settings))
    np.testing.assert_allclose(weights[:, 0], shown, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_next_to_no_noise_every_candidate_is_the_ridge_solution(fit_intercept):
    X, y = problem()
    # No row or gradient is clipped.
    X = X.clip(-2, 2) / 4.0
    model = DPRidgeCV(
        1e6,
        alphas=ALPHAS,
        y_bounds=(-6, 6),
        clip_norm=4.0,
        feature_norm=np.sqrt(5),
        scale_check_share=0.0,
        ridge_floor=0.0,
        fit_intercept=fit_intercept,
    )
    model.fit(X, y)
    fit = model._released_
    scale = np.append(np.full(5, fit.scale), [fit.constant] if fit_intercept else [])
    penalties = ALPHAS[:, None] * (np.arange(len(scale)) < 5) * fit.scale**2
    found = candidates(fit, penalties, variance=0.01, n_rows=len(X)).coefficients * scale
    for alpha, coefficients in zip(ALPHAS, 2.0 * found, strict=True):
        twin = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y)
        wanted = np.append(twin.coef_, [twin.intercept_] if fit_intercept else [])
        assert np.abs(coefficients - wanted).max() < 0.01
    assert np.abs(wanted[:5]).max() < 0.1  # and they differ: the largest penalty leaves little


def test_the_choice_reads_released_values_only():
    # All that it depends on is in the record of the fit: made anew from that, it is the same.
    X, y = problem()
    model = DPRidgeCV(1.0, alphas=ALPHAS, y_bounds=(-9, 9)).fit(X, y)
    fit = model._released_
    found = candidates(
        fit,
        ALPHAS[:, None] * fit.scale**2 * np.append(np.ones(5), 0.0),
        variance=root_mean_square(fit.residuals) ** 2,
        n_rows=model.plan_.shape.n_rows,
    )
    best = int(np.argmin(found.errors))
    assert model.alpha_ == ALPHAS[best]
    np.testing.assert_allclose(model.coef_, found.coefficients[best, :5] * fit.scale * 3.0)
    assert model.best_score_ == pytest.approx(-9.0 * found.errors[best])


@pytest.mark.parametrize("n_alphas", [1, 40])
def test_any_number_of_candidates_costs_what_one_fit_does(n_alphas):
    shared = {"epsilon": 0.7, "y_bounds": (-1, 1), "neighboring": "replace"}
    one = DPRidge(gram_share=0.2, **shared).plan(900, 7)
    several = DPRidgeCV(alphas=np.logspace(-3, 3, n_alphas), **shared).plan(900, 7)
    assert one.releases == several.releases and one.budget == several.budget


def test_few_rows_release_second_moments_all_the_same():
    assert not DPRidge(0.1, y_bounds=(0, 1)).plan(100, 5).settings["gram_share"]
    assert DPRidgeCV(0.1, y_bounds=(0, 1)).plan(100, 5).settings["gram_share"] == 0.2


def test_a_strong_signal_takes_a_weak_penalty_and_noise_a_strong_one():
    # A wrong choice in either direction, or one that does not depend on the data, fails. Over 100
    # fits each, the gap between the errors of the candidates was on average 58 and 9 times its
    # standard deviation.
    alphas = [1e-2, 1e5]
    strong = DPRidgeCV(1.0, alphas=alphas, y_bounds=(-5, 5)).fit(*problem())
    assert strong.alpha_ == 1e-2
    X, y = problem(d=120, signal=0.0)
    weak = DPRidgeCV(10.0, alphas=alphas, y_bounds=(-5, 5)).fit(X, y)
    assert weak.alpha_ == 1e5
    assert np.abs(weak.coef_).max() < 0.1


def test_the_score_is_that_of_the_twin():
    # The released variance of residuals of this size is good to a few per cent.
    X, y = problem(20_000)
    model = DPRidgeCV(3.0, alphas=[1.0, 10.0], y_bounds=(-5, 5)).fit(X, y)
    twin = RidgeCV([1.0, 10.0]).fit(X, y)
    assert model.best_score_ == pytest.approx(twin.best_score_, rel=0.2)


def test_without_privacy_it_is_the_twin():
    X, y = problem(300)
    model = DPRidgeCV(np.inf, alphas=ALPHAS).fit(X, y)
    twin = RidgeCV(alphas=ALPHAS).fit(X, y)
    assert model.alpha_ == twin.alpha_ and model.best_score_ == twin.best_score_
    assert np.array_equal(model.coef_, twin.coef_) and model.intercept_ == twin.intercept_
    assert non_private(DPRidgeCV(alphas=[2.0])).alphas == [2.0]


@pytest.mark.parametrize("alphas", [[], [0.0], [1.0, -1.0], [np.nan], [np.inf], [[1.0]], ["a"]])
def test_candidates_that_are_no_penalties_are_refused_before_the_data(alphas):
    with pytest.raises(ValueError, match="alphas must be a list of positive finite numbers"):
        DPRidgeCV(alphas=alphas).plan(100, 3)


def test_shares_that_the_choice_needs_are_not_zero():
    for name in ("gram_share", "uncertainty_share"):
        with pytest.raises(ValueError, match=name):
            DPRidgeCV(**{name: 0.0}).plan(100, 3)


def test_extreme_candidates_give_finite_models():
    X, y = problem(500)
    for alphas in ([5e-324], [1e308], [5e-324, 1e308]):
        model = DPRidgeCV(1.0, alphas=alphas, y_bounds=(-5, 5)).fit(X, y)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.best_score_)


def test_intervals_are_not_offered():
    model = DPRidgeCV(1.0, y_bounds=(-5, 5)).fit(*problem(300))
    with pytest.raises(AttributeError, match="no attribute 'confidence_interval'") as error:
        model.confidence_interval()
    assert "for DPRidge with a given alpha" in str(error.value.__cause__)
