"""What docs/mechanism.rst says of the Gaussian mechanism, statement by statement."""

import re
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, norm

from skdp import GaussianMechanism
from skdp._dense_rows import DenseRows
from skdp.accounting import PrivacyCost, classic_sigma, gdp_delta, gdp_epsilon, gdp_mu
from skdp.engine import Grid

PAGE = Path(__file__).parents[1] / "docs" / "mechanism.rst"
EPSILONS = [1e-3, 0.01, 0.1, 0.3, 0.7, 0.999]
DELTAS = [1e-300, 1e-50, 1e-10, 1e-5, 1e-2, 0.3, 0.9]
# Probability with which one statistical test below fails by chance.
FALSE_ALARM = 1e-8


def classic_formula(epsilon, delta):
    """The classic calibration for sensitivity 1, also where it is not proved."""
    return sqrt(2 * log(1.25 / delta)) / epsilon


def noise_rows(n, d, **parameters):
    """n draws of d-dimensional noise in units of its standard deviation."""
    mechanism = GaussianMechanism(**parameters).fit(np.zeros((1, d)))
    return mechanism.transform(np.zeros((n, d))) / mechanism.row_sigma_


def unlikely_variance(values):
    """Whether the mean square of independent normal values is too far from 1 for chance."""
    total = float(np.sum(np.square(values)))
    tail = min(chi2.cdf(total, len(values)), chi2.sf(total, len(values)))
    return 2 * tail < FALSE_ALARM


def test_the_page_names_each_test_here_and_no_other():
    named = set(re.findall(r"``(test_\w+)``", PAGE.read_text(encoding="utf-8")))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_the_page_names_each_test_here_and_no_other"}


@pytest.mark.parametrize("name", ["sensitivity", "clip_norm"])
def test_infinite_sensitivity_is_refused(name):
    with pytest.raises(ValueError, match=name):
        GaussianMechanism(**{name: np.inf}).fit(np.zeros((3, 2)))


@pytest.mark.parametrize("value", [1.0, 1e9, 1e308, -1e308])
def test_clipping_makes_the_sensitivity_finite(value):
    # At an enormous epsilon the noise is below 1e-3: what is left is the clipped row.
    mechanism = GaussianMechanism(epsilon=1e8, clip_norm=0.5).fit(np.zeros((1, 2)))
    released = mechanism.transform([[value, 0.0]])
    assert released[0, 0] == pytest.approx(np.sign(value) * 0.5, abs=2e-3)


def test_the_relation_matters_by_a_factor_of_two():
    # A sum of rows clipped to norm 3; at an enormous epsilon the noise is below 1e-2.
    X = np.array([[9.0, 0.0], [0.6, 0.8], [0.0, -7.0]])
    mechanism = GaussianMechanism(epsilon=1e8, clip_norm=3.0).fit(X)
    base = mechanism.transform(X).sum(axis=0)
    replaced = mechanism.transform(X * [[-1.0], [1.0], [1.0]]).sum(axis=0)
    removed = mechanism.transform(X[1:]).sum(axis=0)
    assert np.linalg.norm(replaced - base) == pytest.approx(6.0, abs=0.05)
    assert np.linalg.norm(removed - base) == pytest.approx(3.0, abs=0.05)
    sigmas = [
        GaussianMechanism(clip_norm=3.0, neighboring=neighboring).fit(X).sigma_
        for neighboring in ("add_or_remove", "replace")
    ]
    assert sigmas[1] == pytest.approx(2 * sigmas[0], rel=1e-12)
    assert PrivacyCost(0.5).to_replace().mu == 1.0


def test_noise_is_isotropic():
    # Four directions: a false alarm has a probability below 1e-7.
    d = 20
    noise = noise_rows(20_000, d)
    directions = [np.eye(d)[0], np.full(d, d**-0.5), np.arange(d) / np.linalg.norm(np.arange(d))]
    directions.append(np.linalg.eigh(np.cov(np.arange(d * d).reshape(d, d) % 7))[1][:, 3])
    assert not any(unlikely_variance(noise @ direction) for direction in directions)
    # The same test sees noise that is 10% too large along one coordinate.
    assert unlikely_variance(1.1 * noise[:, 0])


def test_outputs_lie_on_a_grid_that_ignores_the_data():
    values = [np.zeros(50), np.linspace(-3, 3, 50), np.full(50, 1e4 / 3)]
    for value in values:
        mechanism = GaussianMechanism(sensitivity=1.0).fit(np.zeros((1, 1)))
        steps = mechanism.release(value) * 2.0**33  # 2**-30 / sqrt(50), rounded down to 2**-33
        assert np.array_equal(steps, np.rint(steps))
        assert np.any(steps % 2 == 1)
    # Floats that were noised without a grid would not pass.
    assert np.any((0.1 + norm.ppf(0.3)) * 2.0**33 % 1 != 0)


def test_more_noise_is_more_privacy():
    mus = 1 / np.geomspace(0.1, 100, 30)
    for epsilon in [0.0, 0.1, 1.0, 10.0]:
        deltas = [gdp_delta(epsilon, mu) for mu in mus]
        assert all(
            a > b or b in (0.0, 1.0) or b < 1e-320 for a, b in zip(deltas, deltas[1:], strict=False)
        )
    sigmas = [GaussianMechanism(epsilon=e).fit(np.zeros((1, 1))).sigma_ for e in [0.1, 1, 10, 100]]
    assert sigmas == sorted(sigmas, reverse=True)
    classic = [classic_sigma(epsilon, 1e-5) for epsilon in EPSILONS]
    assert classic == sorted(classic, reverse=True)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_classic_formula_is_safe_below_one(epsilon, delta):
    assert gdp_delta(epsilon, 1 / classic_sigma(epsilon, delta)) <= delta


def test_classic_formula_fails_for_large_epsilon():
    def reached(epsilon):
        return gdp_delta(epsilon, 1 / classic_formula(epsilon, 1e-5))

    assert reached(8.41) < 1e-5 < reached(8.43)
    assert 140 < reached(20.0) / 1e-5 < 160
    for epsilon in [1.0, 8.43, 20.0]:
        with pytest.raises(ValueError, match="analytic"):
            GaussianMechanism(epsilon=epsilon, calibration="classic").fit(np.zeros((1, 1)))


def test_exact_calibration_needs_less_noise():
    for epsilon in EPSILONS:
        for delta in DELTAS:
            assert 1 / gdp_mu(epsilon, delta) < classic_sigma(epsilon, delta)
    ratio = 1 / gdp_mu(1.0, 1e-5) / classic_formula(1.0, 1e-5)
    assert ratio == pytest.approx(1 - 0.23, abs=0.005)
    ratio = 1 / gdp_mu(0.01, 1e-5) / classic_formula(0.01, 1e-5)
    assert ratio == pytest.approx(0.5, abs=0.01)
    # Exact: a little less noise and the promise is broken.
    assert gdp_delta(1.0, gdp_mu(1.0, 1e-5)) <= 1e-5 < gdp_delta(1.0, 1.0001 * gdp_mu(1.0, 1e-5))


@pytest.mark.parametrize(("delta", "value"), [(1e-5, 4.845), (1e-10, 6.819), (1e-300, 37.175)])
def test_the_constant_grows_slowly(delta, value):
    assert 0.5 * classic_sigma(0.5, delta) == pytest.approx(value, abs=5e-4)


def test_delta_is_not_the_probability_of_a_larger_loss():
    epsilon, delta = 1.0, 1e-5
    mu = gdp_mu(epsilon, delta)
    loss = norm(mu**2 / 2, mu)
    assert loss.sf(epsilon) == pytest.approx(1.6e-4, rel=0.02)
    assert loss.sf(epsilon) > 16 * delta
    excess, _ = quad(
        lambda x: (1 - exp(epsilon - x)) * loss.pdf(x), epsilon, epsilon + 12 * mu, epsabs=1e-12
    )
    assert excess == pytest.approx(delta, rel=1e-6)


def test_delta_falls_faster_than_exponentially():
    mu = gdp_mu(1.0, 1e-5)
    logs = [log(gdp_delta(1.0, mu / factor)) for factor in [1, 2, 4, 8]]
    assert [round(value / log(10)) for value in logs[:3]] == [-5, -15, -52]
    ratios = [b / a for a, b in zip(logs, logs[1:], strict=False)]
    assert all(2 < ratio < 4 for ratio in ratios)  # an exponential would give 2
    assert ratios == sorted(ratios)


def test_noise_grows_like_the_root_of_a_logarithm():
    for epsilon in [0.1, 1.0, 10.0]:
        noise = [1 / gdp_mu(epsilon, 10.0**-digits) for digits in (75, 150, 300)]
        for less, more in zip(noise, noise[1:], strict=False):
            assert more / less == pytest.approx(sqrt(2), rel=0.03)


@pytest.mark.parametrize("calibration", ["analytic", "classic"])
def test_noise_is_proportional_to_sensitivity(calibration):
    one, many = (
        GaussianMechanism(0.5, sensitivity=size, calibration=calibration).fit(np.zeros((1, 1)))
        for size in (1.0, 1e3)
    )
    assert many.sigma_ == pytest.approx(1e3 * one.sigma_, rel=1e-12)


@pytest.mark.parametrize("d", [2, 2000])
def test_length_of_the_noise_concentrates(d):
    # The largest and smallest of 200 lengths: each bound fails with probability below 1e-8.
    squares = np.square(noise_rows(200, d)).sum(axis=1)
    level = FALSE_ALARM / 200
    assert chi2.ppf(level, d) < squares.min()
    assert squares.max() < chi2.isf(level, d)
    relative = np.sqrt(squares / d)
    if d == 2000:
        assert 0.9 < relative.min() < relative.max() < 1.1
    else:  # lengths differ by far more: all of 200 this near to 1 has a probability below 1e-100
        assert not 0.9 < relative.min() < relative.max() < 1.1


def test_isotropic_noise_is_the_least_for_a_ball():
    d, mu, clip = 5, 0.7, 2.0
    least = (clip / mu) ** 2
    random = np.random.default_rng(0)
    for _ in range(20):
        root = random.normal(size=(d, d))
        shape = root @ root.T
        # The record that is hidden worst lies along the smallest eigenvalue of the covariance.
        values, vectors = np.linalg.eigh(shape)
        worst = clip * vectors[:, 0]
        covariance = shape * (worst @ np.linalg.solve(shape, worst)) / mu**2
        assert sqrt(worst @ np.linalg.solve(covariance, worst)) == pytest.approx(mu)
        assert np.linalg.eigvalsh(covariance - least * np.eye(d)).min() > -1e-9 * values.max()
        curvature = np.diag(random.random(d))
        assert np.trace(curvature @ covariance) >= least * np.trace(curvature)


def test_known_widths_of_coordinates_allow_less_noise():
    widths, mu = np.array([1.0, 1.0, 1.0, 30.0]), 0.5
    isotropic = len(widths) * np.sum(widths**2) / mu**2
    variances = widths * widths.sum() / mu**2
    assert np.sum(widths**2 / variances) == pytest.approx(mu**2)  # as private
    assert variances.sum() == pytest.approx(widths.sum() ** 2 / mu**2)
    assert variances.sum() < 0.35 * isotropic


def second_moments(X):
    rows = DenseRows(
        X, feature_norm=1.0, slack=1.0, constant=0.0, neighboring="add_or_remove", grid=Grid()
    )
    return rows.gram("second moments")


def test_second_moments_get_less_noise_off_the_diagonal():
    X = 3.0 * np.random.default_rng(0).normal(size=(50, 4))  # all rows clipped to norm 1
    bounded = second_moments(X)
    (diagonal, one), (above, weight) = bounded.groups
    assert (diagonal, above, one) == (4, 6, 1.0)
    assert weight == pytest.approx(sqrt(0.5), rel=1e-15)
    # One record's share, in units of the noise of each entry, is as long as its squared norm.
    alone = second_moments(X[:1])
    share = alone.total.to_float(alone.unit) / np.repeat([one, weight], [diagonal, above])
    assert 0.999 < np.linalg.norm(share) <= bounded.sensitivity == 1.0


def test_gaussian_noise_is_shorter_from_seven_dimensions_on():
    sigma = 1 / gdp_mu(1.0, 1e-5)
    for d in [6, 7]:
        laplace = sqrt(2 * d) * sqrt(d)  # per coordinate sqrt(2) times the l1 sensitivity
        assert (sigma * sqrt(d) < laplace) == (d >= 7)
    assert gdp_epsilon(1e-5, 1 / sigma) == pytest.approx(1.0)
