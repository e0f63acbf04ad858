"""DPSimpleImputer and DPVarianceThreshold, and the moments of values that are there.

Statistical tests: the limits are more than six standard deviations of the noise away, so that a
false alarm has a probability below 1e-6.
"""

from fractions import Fraction
from math import inf

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from test_proof_page import Keeping, integers, neighbours_of

from skdp import DPSelectKBest, DPSimpleImputer, DPVarianceThreshold
from skdp._moments import release_sums
from skdp._threads import Workers
from skdp.exceptions import UtilityWarning


def table(n=6000, missing=0.2):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 4))
    X = np.column_stack([50 + 10 * z[:, 0], np.exp(z[:, 1]), z[:, 2] > 0.5, np.rint(3 + z[:, 3])])
    X[rng.random(X.shape) < missing] = np.nan
    return X


BOUNDS = (np.zeros(4), np.array([120.0, 20.0, 1.0, 10.0]))


# ---- the release ----


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@pytest.mark.parametrize("second", [True, False])
def test_no_record_moves_the_moments_further_than_claimed(neighboring, second):
    d = 3
    rng = np.random.default_rng(1)
    worst = (np.sqrt(0.5) - 1) / 2  # with a neighbour at 1 - sqrt(1/8) the worst pair
    X = np.vstack(
        [rng.uniform(-1.5, 1.5, (20, d)), np.ones((1, d)), np.zeros((1, d)), np.full((1, d), worst)]
    )
    X = np.vstack([X, np.full((1, d), np.nan), [[np.nan, 1.0, 0.0]], [[1e308, -1e308, 5e-324]]])

    def share(data):
        keeping = Keeping(100.0)
        options = {"n_rows": 20, "noise": keeping, "neighboring": neighboring, "pool": Workers(1)}
        release_sums(data, -np.ones(d), np.ones(d), second=second, missing=True, **options)
        (released,) = keeping.given
        weights = [w for count, w in released.groups for _ in range(count)]
        values = [Fraction(int(v)) * Fraction(released.unit) for v in integers(released.total)]
        return np.array([v / Fraction(w) for v, w in zip(values, weights, strict=True)]), released

    base, released = share(X)
    bound, largest = Fraction(released.sensitivity) ** 2, 0
    for other in neighbours_of(X, neighboring):
        change = sum((base - share(other)[0]) ** 2)
        assert change <= bound
        largest = max(largest, change)
    assert largest > 0.99 * bound
    # A missing value has a count in place of its moments, and leaves the other columns alone.
    one = share(np.array([[np.nan, 1.0, 1.0]]))[0].reshape(-1, d)
    assert not one[:-1, 0].any() and one[-1, 0] > 0
    assert one[:-1, 1:].all() and not one[-1, 1:].any()


# ---- imputing ----


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent"])
@pytest.mark.parametrize("bounds", [None, BOUNDS])
def test_private_statistics_are_nearly_the_twins(strategy, bounds):
    X = table()
    twin = SimpleImputer(strategy=strategy).fit(X)
    spread = np.nanstd(X, axis=0)
    for _ in range(2):
        got = DPSimpleImputer(8.0, strategy=strategy, bounds=bounds).fit(X).statistics_
        apart = np.abs(got - twin.statistics_) / spread
        if strategy == "most_frequent":  # of continuous columns only the peak is known
            assert apart[2] == 0 == apart[3]
        else:
            assert apart.max() < 0.3


def test_a_constant_costs_nothing():
    imputer = DPSimpleImputer(strategy="constant", fill_value=-1.0).fit(table())
    assert imputer.privacy_cost_.mu == 0 and imputer.releases_ == ()
    assert np.array_equal(imputer.statistics_, np.full(4, -1.0))


def test_indicators_are_of_all_columns():
    X = pd.DataFrame(table(500), columns=list("abcd"))
    X["b"] = X["b"].fillna(0.0)
    imputer = DPSimpleImputer(8.0, bounds=BOUNDS, add_indicator=True)
    out = imputer.set_output(transform="pandas").fit_transform(X)
    assert list(out.columns) == [*"abcd", *(f"missingindicator_{name}" for name in "abcd")]
    assert np.array_equal(out.to_numpy()[:, 4:] > 0, X.isna())
    assert not out.isna().any(axis=None)
    back = imputer.inverse_transform(out.to_numpy())
    np.testing.assert_allclose(back, X.to_numpy())
    with pytest.raises(ValueError, match="add_indicator"):
        DPSimpleImputer(bounds=BOUNDS).fit(X).inverse_transform(X.fillna(0))


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize("indicator", [False, True])
def test_without_privacy_it_is_the_twin(strategy, indicator):
    X = table(300)
    imputer = DPSimpleImputer(inf, strategy=strategy, add_indicator=indicator).fit(X)
    twin = imputer.make_non_private().fit(X)
    np.testing.assert_array_equal(imputer.transform(X), twin.transform(X))


def test_too_few_rows_warn():
    with pytest.warns(UtilityWarning, match="means are rough.*30 rows"):
        imputer = DPSimpleImputer(0.3, bounds=BOUNDS).fit(table(30))
    assert np.all((imputer.statistics_ >= 0) & (imputer.statistics_ <= BOUNDS[1]))


# ---- variances ----


@pytest.mark.parametrize("bounds", [None, (np.full(5, -3.0), np.full(5, 5.0))])
def test_columns_are_selected_by_their_variances(bounds):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 5)) * [1.0, 0.0, 0.6, 0.1, 1.0] + [0, 2.0, 1.0, 0, 0]
    X[rng.random(X.shape) < 0.2] = np.nan
    selector = DPVarianceThreshold(5.0, bounds=bounds, threshold=0.15).fit(X)
    assert selector.get_support().tolist() == [True, False, True, False, True]
    twin = VarianceThreshold(0.15).fit(X)
    np.testing.assert_array_equal(selector.transform(X), twin.transform(X))
    assert np.all(np.abs(selector.variances_ - twin.variances_)[[0, 2]] < 0.5)
    assert list(selector.get_feature_names_out()) == ["x0", "x2", "x4"]
    assert selector.inverse_transform(np.nan_to_num(selector.transform(X))).shape == X.shape


def test_constant_columns_are_told_from_others_by_the_noise():
    X = np.random.default_rng(0).uniform(size=(6000, 3)) * [1.0, 0.0, 1.0] + [0, 0.5, 0]
    support = np.array([DPVarianceThreshold(bounds=(0, 1)).fit(X).get_support() for _ in range(40)])
    assert support[:, [0, 2]].all()
    # Two standard deviations: 2.3% each time, so ten of forty have a probability of 1e-8.
    assert support[:, 1].sum() < 10


def test_hopeless_budgets_keep_everything_and_warn():
    X = np.full((40, 3), 0.5)
    with pytest.warns(UtilityWarning, match="all columns are kept.*40 rows"):
        selector = DPVarianceThreshold(0.1, bounds=(0, 1)).fit(X)
    assert selector.get_support().all()


def test_one_column_is_always_kept():
    X = np.full((6000, 3), 0.5)
    with pytest.warns(UtilityWarning, match="no column"):
        selector = DPVarianceThreshold(5.0, bounds=(0, 1), threshold=0.2).fit(X)
    assert selector.get_support().sum() == 1


def test_the_selector_without_privacy_is_the_twin():
    X = table(300)
    selector = DPVarianceThreshold(inf, threshold=0.5).fit(X)
    twin = VarianceThreshold(0.5).fit(X)
    np.testing.assert_array_equal(selector.variances_, twin.variances_)
    np.testing.assert_array_equal(selector.get_support(), twin.get_support())


@pytest.mark.parametrize(
    "selector",
    [DPVarianceThreshold(bounds=(-5, 5)), DPSelectKBest(k=2, bounds=(-5, 5), y_bounds=(-1, 1))],
    ids=lambda s: type(s).__name__,
)
def test_what_selectors_are_given_back_is_not_quoted(selector):
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    selector.fit(rows, rows[:, 0])
    kept = selector.transform(rows)
    back = selector.inverse_transform(kept)
    assert np.array_equal(back[:, selector.get_support()], kept)
    odd = kept.astype(object)
    odd[3, 0] = 123456789 + 1j
    with pytest.raises(ValueError) as caught:
        selector.inverse_transform(odd.tolist())
    assert str(caught.value) == "Complex data not supported" and caught.value.__context__ is None
