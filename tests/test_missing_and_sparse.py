"""Missing values and sparse data in DPStandardScaler, DPVarianceThreshold and DPSelectKBest.

Statistical tests: the limits are more than six standard deviations of the noise away, so that a
false alarm has a probability below 1e-6.
"""

import re
import tracemalloc
import warnings
from math import inf, sqrt

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from skdp import DPSelectKBest, DPStandardScaler, DPVarianceThreshold
from skdp.exceptions import UtilityWarning

SHARES = np.array([0.0, 0.05, 0.3, 0.7])
LOW, HIGH = np.array([0.0, -4.0, 1900.0, 0.0]), np.array([120.0, 20.0, 2030.0, 1.0])
RELATIONS = ["add_or_remove", "replace"]


def holes(n=20_000):
    """Columns of several kinds; large values are missing more often."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    X = np.column_stack(
        [50 + 10 * z[:, 0], np.exp(z[:, 1] / 2), np.rint(1990 + 8 * z[:, 2]), (z[:, 3] > 0.5)]
    )
    X[rng.random(X.shape) < SHARES] = np.nan
    return X


def sparse_rows(n=3000, d=20, seed=0):
    return sp.random(n, d, density=0.1, random_state=seed, format="csr")


# ---- missing values ----


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("bounds", [None, (LOW, HIGH)])
@pytest.mark.parametrize("with_std", [True, False])
def test_missing_values_are_ignored_in_fit_and_kept_in_transform(bounds, neighboring, with_std):
    X = holes()
    scaler = DPStandardScaler(30.0, bounds=bounds, neighboring=neighboring, with_std=with_std)
    scaler.fit(X)
    mean, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    # Dividing by all rows would be off by 30% and 70% of means that are several spreads from the
    # middle of the bounds.
    assert np.all(np.abs(scaler.mean_ - mean) < 0.1 * spread)
    if with_std:
        assert np.all(np.abs(np.log(scaler.scale_ / spread)) < 0.15)
    scaled = scaler.transform(X)
    assert np.array_equal(np.isnan(scaled), np.isnan(X))
    np.testing.assert_allclose(scaler.inverse_transform(scaled), X, rtol=1e-9, equal_nan=True)


def test_counting_costs_nothing_where_nothing_is_missing():
    # 400 columns of which each is counted wrongly with a probability below 0.023: 40 of them have
    # one below 1e-13.
    X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 400))
    scaler = DPStandardScaler(8.0, bounds=(-1, 1)).fit(X)
    (release,) = scaler.releases_
    assert release.sensitivity == pytest.approx(1.25 * sqrt(400))
    plain = scaler._sums["values"][:400] / 3000
    assert np.count_nonzero(scaler.mean_ != plain) < 40


def test_fits_without_privacy_are_the_twins_with_missing_values():
    X = holes(600)
    scaler, twin = DPStandardScaler(inf), StandardScaler()
    for chunk in np.array_split(X, 3):
        scaler.partial_fit(chunk)
        twin.partial_fit(chunk)
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_array_equal(getattr(scaler, name), getattr(twin, name))
    np.testing.assert_array_equal(scaler.transform(X), twin.transform(X))


def test_missing_values_of_chunks_add_up():
    X = holes()
    scaler = DPStandardScaler(30.0, bounds=(LOW, HIGH))
    for chunk in np.array_split(X, 4):
        scaler.partial_fit(chunk)
    missing = scaler._sums["values"][-4:] / len(X)
    assert np.all(np.abs(missing - np.isnan(X).mean(axis=0)) < 0.02)
    assert np.all(np.abs(scaler.mean_ - np.nanmean(X, axis=0)) < 0.1 * np.nanstd(X, axis=0))


def test_a_column_without_values_is_said_to_tell_nothing():
    X = holes(4000)
    X[:, 1] = np.nan
    said = []
    for _ in range(20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scaler = DPStandardScaler(3.0, bounds=(LOW, HIGH)).fit(X)
        assert np.isfinite(scaler.mean_).all() and np.all(scaler.scale_ > 0)
        said += [w.message for w in caught if issubclass(w.category, UtilityWarning)]
    # The noise of the number of missing values hides it in 3% of fits, in 8 of 20 by 1e-7.
    assert len(said) >= 13
    assert all(re.search(r"4000 values, of which a column has \d+\)", str(one)) for one in said)
    with pytest.warns(UtilityWarning, match="of 4 columns 1 could not be told"):
        scaler = DPStandardScaler(8.0).fit(X)
    assert scaler.mean_[1] == 0.0 and scaler.scale_[1] == 1.0


def test_few_rows_with_missing_values_are_found_too():
    # The two rounds for few rows: a record with one missing value is no null record there.
    rng = np.random.default_rng(0)
    X = rng.normal([100.0, -3.0, 0.2], [10.0, 1.0, 0.05], size=(500, 3))
    X[rng.random(X.shape) < 0.4] = np.nan
    scaler = DPStandardScaler(1.1).fit(X)
    assert [r.name for r in scaler.releases_] == ["octaves", "rough moments", "moments"]
    assert np.all(np.abs(scaler.mean_ / [100.0, -3.0, 0.2] - 1) < 0.5)


# ---- sparse data ----


@pytest.mark.parametrize("bounds", [None, (0, 1)])
@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
def test_sparse_data_give_bitwise_what_dense_ones_give(bounds, form):
    X = sparse_rows()
    X.data[::50] = np.nan
    make = getattr(sp, form)
    scaler = DPStandardScaler(3.0, bounds=bounds, with_mean=False, random_state=0)
    dense = scaler.fit(X.toarray())
    mean, scale, want = dense.mean_, dense.scale_, dense.transform(X.toarray())
    scaler.fit(make(X))
    assert np.array_equal(scaler.mean_, mean) and np.array_equal(scaler.scale_, scale)
    scaled = scaler.transform(make(X))
    assert sp.issparse(scaled) and scaled.format in ("csr", "csc")
    np.testing.assert_array_equal(scaled.toarray(), want)
    back = scaler.inverse_transform(scaled)
    np.testing.assert_allclose(back.toarray(), X.toarray(), equal_nan=True)


def test_values_at_zero_are_beyond_bounds_without_zero():
    X = sparse_rows()
    dense = DPStandardScaler(3.0, bounds=(0.3, 0.9), with_mean=False, random_state=0)
    scale = dense.fit(X.toarray()).scale_
    assert np.array_equal(dense.fit(X).scale_, scale)


def test_sparse_data_are_never_made_dense():
    n, d = 20_000, 4000  # dense: 640 MB
    places = np.random.default_rng(0).integers(0, [[n], [d]], size=(2, 80_000))
    X = sp.csr_array((np.ones(80_000), places), shape=(n, d))
    scaler = DPStandardScaler(8.0, bounds=(0, 1), with_mean=False, n_jobs=1)
    tracemalloc.start()
    scaler.fit(X).transform(X)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 40e6


def test_sparse_data_are_not_centred():
    X = sparse_rows(100)
    scaler = DPStandardScaler(bounds=(0, 1))
    for call in (scaler.fit, scaler.partial_fit, scaler.fit(X.toarray()).transform):
        with pytest.raises(ValueError, match=r"sparse.*with_mean=False"):
            call(X)
    with pytest.raises(ValueError, match="with_mean=False"):
        scaler.inverse_transform(X)


def test_chunks_may_be_sparse():
    X = sparse_rows()
    scaler = DPStandardScaler(8.0, bounds=(0, 1), with_mean=False, random_state=0)
    scaler.partial_fit(X[:1000]).partial_fit(X[1000:])
    scale = scaler.scale_
    scaler.fit(X[:1000].toarray()).partial_fit(X[1000:].toarray())
    assert np.array_equal(scaler.scale_, scale)


def test_selectors_keep_sparse_data_sparse():
    X = sparse_rows()
    X = sp.csr_array(X.multiply(np.arange(20) != 3))
    y = (np.asarray(X[:, [5]].toarray()).ravel() > 0).astype(int)
    variances = DPVarianceThreshold(30.0, threshold=0.015, bounds=(0, 1)).fit(X)
    assert not variances.get_support()[3] and variances.get_support().sum() > 15
    best = DPSelectKBest(8.0, k=2, bounds=(0, 1), classes=[0, 1]).fit(X, y)
    assert best.get_support()[5]
    for selector in (variances, best):
        for rows in (X, sp.csc_array(X)):
            kept = selector.transform(rows)
            assert sp.issparse(kept)
            assert np.array_equal(kept.toarray(), X.toarray()[:, selector.get_support()])
