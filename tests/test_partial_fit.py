"""DPStandardScaler in chunks of disjoint records."""

from math import inf

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from skdp import DPStandardScaler, PrivacyCost
from skdp.preprocessing._chunks import DISJOINT

X = np.random.default_rng(0).normal(size=(12_000, 3)) * [1.0, 5.0, 0.1] + [0.0, 20.0, -0.3]
BOUNDS = (np.array([-5.0, 0.0, -1.0]), np.array([5.0, 40.0, 1.0]))


def in_chunks(scaler, count=4):
    for chunk in np.array_split(X, count):
        scaler.partial_fit(chunk)
    return scaler


@pytest.mark.parametrize("bounds", [None, BOUNDS])
def test_chunks_cost_what_one_costs_and_add_up(bounds):
    # The noise of a mean is below 0.01 of half the bounds: limits far beyond six times that.
    scaler = in_chunks(DPStandardScaler(5.0, bounds=bounds))
    assert scaler.privacy_cost_.mu == PrivacyCost.from_epsilon(5.0, 1e-5).mu
    assert DISJOINT in scaler.privacy_cost_.assumptions
    assert scaler.n_samples_seen_ == len(X)
    assert np.all(np.abs(scaler.mean_ - X.mean(axis=0)) < 0.3 * X.std(axis=0))
    assert np.all(np.abs(np.log(scaler.scale_ / X.std(axis=0))) < 0.5)
    # Each chunk is released once, and never beyond the budget of a chunk.
    assert [r.name for r in scaler.releases_].count("moments") == 4
    assert all(r.mu <= scaler.privacy_cost_.mu for r in scaler.releases_)


def test_noise_of_chunks_is_added_up_and_no_sum_is_kept_without_it():
    # The chi-square of 600 draws: a factor of 1.3 in the standard deviation is eight of its own.
    zeros = np.zeros((40, 3))
    sums = []
    for _ in range(200):
        scaler = DPStandardScaler(8.0, bounds=(-1, 1))
        for _ in range(4):
            scaler.partial_fit(zeros)
        sums.append(scaler._sums["values"][:3])
        assert not any(np.array_equal(value, np.zeros(3)) for value in scaler._sums.values())
    sigma = scaler.releases_[0].sigma
    assert scaler._sums["noise"] == pytest.approx(4 * sigma**2)
    assert 1 / 1.3 < np.std(sums) / (2 * sigma) < 1.3


def test_a_fit_starts_anew_and_more_chunks_go_on_from_it():
    scaler = DPStandardScaler(5.0, bounds=BOUNDS).fit(X[:6000])
    assert DISJOINT not in scaler.privacy_cost_.assumptions
    scaler.partial_fit(X[6000:])
    assert scaler.n_samples_seen_ == 12_000 and len(scaler.releases_) == 2
    assert scaler.fit(X[:100]).n_samples_seen_ == 100 and len(scaler.releases_) == 1


def test_the_dearest_chunk_counts():
    scaler = DPStandardScaler(5.0, bounds=BOUNDS).partial_fit(X[:6000])
    scaler.set_params(epsilon=1.0).partial_fit(X[6000:])
    assert scaler.privacy_cost_.mu == PrivacyCost.from_epsilon(5.0, 1e-5).mu


def test_a_seed_of_an_earlier_chunk_stays_in_the_cost():
    scaler = DPStandardScaler(5.0, bounds=BOUNDS, random_state=0).partial_fit(X[:6000])
    scaler.set_params(random_state=None).partial_fit(X[6000:])
    assert any("random_state" in text for text in scaler.privacy_cost_.assumptions)


def test_a_chunk_that_fails_late_leaves_the_dearest_cost_and_nothing_to_go_on_from(monkeypatch):
    scaler = DPStandardScaler(5.0, bounds=BOUNDS).partial_fit(X[:6000])
    with monkeypatch.context() as patch:
        patch.setattr(DPStandardScaler, "_output_norm", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            scaler.set_params(epsilon=1.0).partial_fit(X[6000:])
    assert scaler.privacy_cost_.mu == PrivacyCost.from_epsilon(5.0, 1e-5).mu
    assert DISJOINT in scaler.privacy_cost_.assumptions
    del scaler.n_samples_seen_  # as it is where the failure comes before it is set
    with pytest.raises(ValueError, match="earlier chunk failed"):
        scaler.partial_fit(X[6000:])
    assert scaler.fit(X).n_samples_seen_ == 12_000


@pytest.mark.parametrize(
    "change", [{"bounds": (-9.0, 40.0)}, {"with_std": False}, {"neighboring": "replace"}]
)
def test_what_is_added_up_is_of_one_kind(change):
    scaler = DPStandardScaler(5.0, bounds=BOUNDS).partial_fit(X[:6000])
    with pytest.raises(ValueError, match="between chunks"):
        scaler.set_params(**change).partial_fit(X[6000:])


@pytest.mark.parametrize("with_mean", [True, False])
def test_without_privacy_it_is_the_twin(with_mean):
    scaler = in_chunks(DPStandardScaler(inf, with_mean=with_mean))
    twin = StandardScaler(with_mean=with_mean)
    for chunk in np.array_split(X, 4):
        twin.partial_fit(chunk)
    for name in ("mean_", "var_", "scale_", "n_samples_seen_"):
        np.testing.assert_array_equal(getattr(scaler, name), getattr(twin, name))
    scaler.fit(X)
    np.testing.assert_array_equal(scaler.mean_, StandardScaler().fit(X).mean_)


def test_columns_must_stay_the_same():
    scaler = DPStandardScaler(5.0, bounds=(-9, 90)).partial_fit(X[:100, :2])
    with pytest.raises(ValueError, match="3 features"):
        scaler.partial_fit(X[:100])
