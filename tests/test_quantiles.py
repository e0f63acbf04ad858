"""Quantiles of columns and the transformers that are made of them.

Statistical tests: the limits below are more than six standard deviations of what 200 runs gave
away, so that a false alarm has a probability below 1e-6.
"""

import warnings
from math import inf

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import issparse
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
)

from skdp import (
    DPKBinsDiscretizer,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPRobustScaler,
    PrivacyCost,
)
from skdp._quantiles import _consistent, _roundest, find_ranks, plan_ranks
from skdp._threads import Workers
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore

ALL = [DPKBinsDiscretizer, DPMinMaxScaler, DPQuantileTransformer, DPRobustScaler]
LOW = np.array([-6.0, 1900.0, 0.0, 0.0, 0.0])
HIGH = np.array([6.0, 2030.0, 400.0, 1.0, 64.0])


def table(n=6000, seed=0, missing=0.0):
    """Normal values, years, amounts with outliers, flags, counts with many zeros."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 4))
    X = np.column_stack(
        [
            z[:, 0],
            np.rint(1990 + 8 * z[:, 1]),
            np.where(rng.random(n) < 0.003, 1e12, np.exp(3 + 0.7 * z[:, 2])),
            z[:, 3] > 0.3,
            np.where(rng.random(n) < 0.6, 0.0, rng.poisson(3.0, n)),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    return X


def ranks_of(X, mu, bounds, neighboring="add_or_remove", n_rows=None):
    n_rows = n_rows or len(X)
    budget = PrivacyCost(mu, neighboring)
    releases, depth = plan_ranks(budget, X.shape[1], n_rows, bounded=bounds is not None)
    noise = NoiseCore(releases, seed=None, owner="test")
    options = {"n_rows": n_rows, "neighboring": neighboring, "pool": Workers(1)}
    found = find_ranks(X, bounds, depth, noise=noise, **options)
    spent = sum(r.mu**2 for r in noise.finish())
    assert 1 - 1e-9 < spent / mu**2 < 1 + 1e-15
    return found, depth


# ---- accuracy ----


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("mu", "bounds"), [(0.2, (LOW, HIGH)), (0.8, None)])
def test_ranks_of_private_quantiles_are_nearly_right(mu, bounds, missing):
    X = table(missing=missing)
    levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    found, depth = ranks_of(X, mu, bounds)
    assert depth > 5
    for column, got in zip(X.T, found.quantiles(levels).T, strict=True):
        values = column[~np.isnan(column)]
        # Between the share below and the share up to it, as values are tied.
        width = 0.05 * np.nanstd(values[values < 1e11])
        below = (values[:, None] < got - width).mean(axis=0)
        up_to = (values[:, None] <= got + width).mean(axis=0)
        assert np.all(below - 0.08 < levels) and np.all(levels < up_to + 0.08)


def test_a_tree_is_better_than_a_flat_histogram_would_be():
    # The noise of a rank: 1.2 times that of a node, claimed and measured in 300 trees.
    rng = np.random.default_rng(0)
    depth = 8
    levels = [rng.normal(size=(300, 2**level)) for level in range(1, depth + 1)]
    leaves = _consistent(levels)
    sums = np.cumsum(leaves, axis=1)
    middle = sums - sums[:, -1:] * np.arange(1, 257) / 256
    assert 1.0 < middle.std(axis=0).max() < 1.45
    flat = np.sqrt(256 / depth) / 2  # bins with the noise of one release add up
    assert middle.std(axis=0).max() < 0.6 * flat
    assert 0.7 < leaves.std() < 0.85
    # What is consistent already stays as it is.
    exact = [rng.integers(0, 9, size=(2, 16)).astype(float)]
    for _ in range(3):
        exact.insert(0, exact[0][:, ::2] + exact[0][:, 1::2])
    assert np.allclose(_consistent(exact), exact[-1])


def test_single_values_stay_what_they_are():
    X = table()
    for _ in range(3):
        found, _ = ranks_of(X, 1.0, (LOW, HIGH))
        quantiles = found.quantiles(np.array([0.2, 0.5, 0.95]))
        assert quantiles[:, 3].tolist() == [0.0, 0.0, 1.0]
        assert quantiles[:2, 4].tolist() == [0.0, 0.0]
        assert found.modes()[3:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (-0.1, 0.2, 0.0),
        (2.97, 3.02, 3.0),
        (0.499, 0.512, 0.5),
        (1989.9, 1990.4, 1990.0),
        (-41.3, -38.0, -40.0),
        (1e-9, 1.1e-9, 1e-9),
    ],
)
def test_roundest_number(low, high, want):
    assert _roundest(low, high) == pytest.approx(want, rel=1e-12, abs=0)


def test_missing_values_are_counted_privately():
    # As good with as without them; the shares are those of the values that are there.
    X = np.full((4000, 1), np.nan)
    X[:1000, 0] = np.linspace(0, 1, 1000)
    found, _ = ranks_of(X, 0.5, (np.zeros(1), np.ones(1)))
    assert abs(found.quantiles(np.array([0.5]))[0, 0] - 0.5) < 0.1
    blank, _ = ranks_of(np.full((4000, 1), np.nan), 0.5, (np.zeros(1), np.ones(1)))
    assert np.all(np.isfinite(blank.shares)) and np.all(np.diff(blank.shares) >= 0)


# ---- budgets without hope ----


@pytest.mark.parametrize("bounds", [None, (LOW, HIGH)])
def test_hopeless_budgets_warn_and_give_identity_like_results(bounds):
    X = table(60)
    X[:, 2] = X[:, 2].clip(0, 400)
    with pytest.warns(UtilityWarning, match="given up|told") as caught:
        scaler = DPRobustScaler(0.1, bounds=bounds).fit(X)
    assert "60 rows" in str(caught[-1].message)
    low, high = (-np.ones(5), np.ones(5)) if bounds is None else bounds
    np.testing.assert_allclose(scaler.center_, (low + high) / 2)
    np.testing.assert_allclose(scaler.scale_, (high - low) / 2)
    with pytest.warns(UtilityWarning, match="given up|told"):
        scaler = DPMinMaxScaler(0.1).fit(X)
    np.testing.assert_array_equal(scaler.data_min_, -1)
    np.testing.assert_array_equal(scaler.data_max_, 1)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("value", [0.0, 7.0, -1e-12, 1e9])
def test_constant_columns_do_not_explode(value):
    X = np.column_stack([np.full(4000, value), table(4000)[:, 0]])
    scaler = DPRobustScaler(3.0).fit(X)
    assert np.all(np.abs(scaler.transform(X)[:, 0]) < 3)
    scaled = DPMinMaxScaler(3.0).fit_transform(X)
    assert np.all((scaled[:, 0] > -1) & (scaled[:, 0] < 2))
    assert np.isfinite(DPQuantileTransformer(3.0).fit_transform(X)).all()
    assert DPKBinsDiscretizer(3.0, encode="ordinal").fit_transform(X)[:, 0].std() == 0


# ---- the estimators ----


def test_public_bounds_of_a_min_max_scaler_cost_nothing():
    X = table()
    scaler = DPMinMaxScaler(bounds=(LOW, HIGH), feature_range=(-1, 1)).fit(X)
    assert scaler.privacy_cost_.mu == 0 == scaler.planned_cost().mu
    assert scaler.releases_ == () == scaler.plan_.releases
    twin = MinMaxScaler(feature_range=(-1, 1)).fit(np.vstack([LOW, HIGH]))
    np.testing.assert_allclose(scaler.transform(X), twin.transform(X))
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=1e-9)
    clipped = DPMinMaxScaler(bounds=(LOW, HIGH), clip=True).fit(X).transform(X)
    assert clipped.min() == 0 and clipped.max() == 1
    even = DPKBinsDiscretizer(bounds=(LOW, HIGH), strategy="uniform").fit(X)
    assert even.privacy_cost_.mu == 0
    np.testing.assert_allclose(even.bin_edges_[1], np.linspace(1900, 2030, 6))


def test_extreme_quantiles_are_no_records_and_outliers_do_not_move_them():
    X = table()
    for _ in range(2):
        scaler = DPMinMaxScaler(1.0).fit(X)
        usual = np.sort(X, axis=0)[:-60]
        assert np.all(scaler.data_max_ < 3 * usual.max(axis=0) + 1)
        assert np.all(scaler.data_range_ > 0.2 * np.ptp(usual, axis=0))


@pytest.mark.parametrize("cls", ALL)
def test_without_privacy_it_is_the_twin_missing_values_and_all(cls):
    X = table(400)
    if cls is DPKBinsDiscretizer:  # no missing values, and a warning about equal edges
        X = X[:, :2]
    else:
        X[3, 0] = X[8, 2] = np.nan
    fitted = cls(inf).fit(X)
    twin = fitted._twin_for(fitted.plan_.shape).fit(X)
    got, want = fitted.transform(X), twin.transform(X)
    if issparse(got):
        got, want = got.toarray(), want.toarray()
    np.testing.assert_array_equal(got, want)
    assert list(fitted.get_feature_names_out()) == list(twin.get_feature_names_out())
    kinds = (KBinsDiscretizer, MinMaxScaler, QuantileTransformer, RobustScaler)
    assert isinstance(twin, kinds)


@pytest.mark.parametrize("cls", ALL)
def test_frames_in_frames_out(cls):
    data = dict(zip("abcde", table(500).T, strict=True))
    bounds = {name: pair for name, *pair in zip("abcde", LOW, HIGH, strict=True)}
    options = {"encode": "onehot-dense"} if cls is DPKBinsDiscretizer else {}
    for module, frame in (("pandas", pd.DataFrame(data)), ("polars", pl.DataFrame(data))):
        fitted = cls(8.0, bounds=bounds, **options).set_output(transform=module).fit(frame)
        out = fitted.transform(frame)
        assert type(out) is type(frame)
        assert list(out.columns) == list(fitted.get_feature_names_out())
    with pytest.raises(ValueError, match="missing: \\['a'\\]"):
        cls(bounds={k: v for k, v in bounds.items() if k != "a"}).fit(pd.DataFrame(data))


@pytest.mark.parametrize("cls", ALL)
def test_missing_values_stay_missing(cls):
    X = table(500)
    X[7, 1] = np.nan
    options = {"encode": "ordinal"} if cls is DPKBinsDiscretizer else {}
    fitted = cls(8.0, bounds=(LOW, HIGH), **options).fit(X)
    out = fitted.transform(X)
    assert np.array_equal(np.isnan(out), np.isnan(X))
    assert np.array_equal(np.isnan(fitted.inverse_transform(out)), np.isnan(X))


def test_indicators_of_bins():
    X = table(3000)
    X[7, 1] = np.nan
    binner = DPKBinsDiscretizer(8.0, bounds=(LOW, HIGH), n_bins=4).fit(X)
    ones = binner.transform(X)
    assert issparse(ones) and ones.shape == (3000, binner.n_bins_.sum())
    rows = np.asarray(ones.sum(axis=1)).ravel()
    assert rows[7] == 4 and np.all(np.delete(rows, 7) == 5)
    assert binner.output_norm_ == np.sqrt(5)
    assert binner.n_bins_[0] == 4 and binner.n_bins_[3] <= 2
    shares = np.asarray(ones[:, :4].mean(axis=0)).ravel()
    assert np.all(np.abs(shares - 0.25) < 0.08)
    back = binner.inverse_transform(ones)
    assert np.isnan(back[7, 1]) and np.nanmax(np.abs(back[:, 0] - X[:, 0])) < 5
    assert len(binner.get_feature_names_out()) == ones.shape[1]


def test_quantile_transformer_gives_even_ranks_and_normal_scores():
    X = table()[:, [0, 2]]
    for _ in range(2):
        ranks = DPQuantileTransformer(3.0).fit_transform(X)
        assert np.all(np.abs(np.quantile(ranks, [0.2, 0.5, 0.8], axis=0).T - [0.2, 0.5, 0.8]) < 0.1)
        normal = DPQuantileTransformer(3.0, output_distribution="normal").fit_transform(X)
        assert np.all(np.abs(np.median(normal, axis=0)) < 0.3)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (DPMinMaxScaler(feature_range=(1, 1)), "min < max"),
        (DPRobustScaler(quantile_range=(75.0, 25.0)), "q_min < q_max"),
        (DPKBinsDiscretizer(n_bins=1), "n_bins"),
    ],
)
def test_wrong_parameters_are_named(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(table(50))


def test_nothing_to_learn_costs_nothing():
    scaler = DPRobustScaler(with_centering=False, with_scaling=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = scaler.fit(table(50))
    assert fitted.privacy_cost_.mu == 0 and fitted.center_ is None and fitted.scale_ is None
    np.testing.assert_array_equal(fitted.transform(LOW[None]), LOW[None])


@pytest.mark.parametrize("cls", ALL)
def test_bounds_that_are_neighbouring_floats_give_numbers(cls):
    low, high = 1.0, np.nextafter(1.0, 2.0)
    X = np.resize([low, high], 200)[:, None]
    fitted = cls(epsilon=9.0, bounds=(low, high)).fit(X)
    found = fitted.transform(X)
    assert np.isfinite(found.toarray() if issparse(found) else found).all()
