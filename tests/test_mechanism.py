"""Values and rows given to the Gaussian mechanism reach the noise exactly."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer

from skdp import GaussianMechanism, mechanism, privacy_cost
from skdp.mechanism import COPIED


def released_integers(monkeypatch, value, **params):
    """The integers that `release` adds noise to, and their unit."""
    seen = []

    def add_noise(bounded, sigma, seed, context):
        seen.append(bounded)
        return bounded.total.to_float(bounded.unit)

    monkeypatch.setattr(mechanism, "add_noise", add_noise)
    GaussianMechanism(**params).fit(np.zeros((2, 1))).release(value)
    (bounded,) = seen
    high, low = bounded.total.high.ravel(), bounded.total.low.ravel()
    return [(int(h) << 32) + int(x) for h, x in zip(high, low, strict=True)], bounded.unit


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_not_rounded_to_float64_first(monkeypatch, dtype):
    # float64 would move them by up to 1, while a 2**-30th of the sensitivity is charged.
    values = np.array([2**53 + 1, 2**54 + 2, 3, 2**60 + 5], dtype=dtype)
    integers, unit = released_integers(monkeypatch, values, sensitivity=2.0**31)
    assert [Fraction(i) * Fraction(unit) for i in integers] == [int(v) for v in values]
    rounded, _ = released_integers(monkeypatch, values.astype(float), sensitivity=2.0**31)
    assert rounded != integers


def test_values_beyond_the_grid_are_clipped_to_its_end(monkeypatch):
    top = 2**61
    for value in (np.int64(-(2**63)), np.int64(2**63 - 1), 1e300, -1e300):
        (integer,), _ = released_integers(monkeypatch, value, sensitivity=1.0)
        assert integer == (top if value > 0 else -top)


@pytest.mark.parametrize("value", ["1", 1j, None, np.longdouble(1), [object()]])
def test_other_kinds_of_values_are_refused(value):
    fitted = GaussianMechanism(sensitivity=1.0).fit(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="at most 64 bits"):
        fitted.release(value)
    assert fitted.releases_ == ()


def test_without_privacy_a_value_is_returned_as_it_is():
    fitted = GaussianMechanism(epsilon=np.inf, sensitivity=1.0).fit(np.zeros((2, 1)))
    found = fitted.release([1, 2])
    assert found.dtype == np.float64 and found.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
@pytest.mark.parametrize("params", [{}, {"clip_norm": 2.0}])
def test_a_release_needs_a_sensitivity_and_takes_none_from_the_rows(epsilon, params):
    fitted = GaussianMechanism(epsilon=epsilon, **params).fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="release needs the sensitivity"):
        fitted.release(1.0)
    fitted.set_params(sensitivity=1e-3)  # after the fit: not what the noise was made for
    with pytest.raises(ValueError, match="release needs the sensitivity"):
        fitted.release(1.0)
    assert fitted.releases_ == ()
    assert np.isfinite(fitted.release(1.0, sensitivity=2.0))


@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_a_single_number_comes_back_as_a_number(epsilon):
    fitted = GaussianMechanism(epsilon=epsilon, sensitivity=1.0, n_releases=2).fit([[0.0]])
    assert isinstance(fitted.release(3), float)
    assert fitted.release([3]).shape == (1,)


def test_copies_are_stated_since_they_count_by_themselves():
    columns = ColumnTransformer([("noisy", GaussianMechanism(), [0])], n_jobs=2)
    X = np.zeros((3, 1))
    columns.fit_transform(X)  # made in another process, and no copy is left there
    before = privacy_cost(columns)
    assert COPIED not in before.assumptions
    columns.transform(X)
    after = privacy_cost(columns)
    assert COPIED in after.assumptions and after.mu == before.mu
    mechanism = GaussianMechanism().fit(X)
    other = pickle.loads(pickle.dumps(mechanism))
    assert COPIED in mechanism.privacy_cost_.assumptions
    assert COPIED not in other.privacy_cost_.assumptions


def test_the_scale_of_the_noise_is_right_to_a_percent():
    # The standard deviation of 200,000 draws has an error of 0.16%; by more than 1% it is wrong
    # with probability below 1e-9.
    for epsilon in (0.5, 5.0):
        mechanism = GaussianMechanism(epsilon=epsilon, sensitivity=1.0).fit(np.zeros((2, 1)))
        noise = mechanism.release(np.zeros(200_000))
        (made,) = mechanism.releases_
        assert abs(np.sqrt(np.mean(noise**2)) / made.sigma - 1.0) < 0.01
