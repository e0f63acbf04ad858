"""Encoders of categories: which levels are found, how they are encoded, what it costs.

No level that one record has alone may appear in `test_a_level_of_one_record_never_appears`: with
delta0 = 1e-11 for each of 200 fits that has a probability below 1e-8. Levels that must appear have
counts at least 6.5 standard deviations above the threshold, hence fail with 1e-10 each.
"""

import warnings
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from skdp import (
    DPLogisticRegression,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPTargetEncoder,
    PrivacyBudget,
    PrivacyCost,
    PrivacyLedger,
    _level_sums,
    non_private,
    privacy_cost,
    privacy_report,
    privatize,
)
from skdp._level_sums import threshold
from skdp.exceptions import PrivacyBudgetError, UtilityWarning
from skdp.preprocessing import _encoder, target_encoder
from skdp.preprocessing._levels import array_of, keys_of, read_columns

RNG = np.random.default_rng(0)
N = 3000
ENCODERS = [
    DPOneHotEncoder(),
    DPOrdinalEncoder(),
    DPTargetEncoder(classes=[0, 1]),
    DPTargetEncoder(y_bounds=(0, 1)),
]
NAMES = ["one-hot", "ordinal", "classes", "numbers"]
for_each = pytest.mark.parametrize("encoder", ENCODERS, ids=NAMES)


def table(n=N, seed=0):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "colour": generator.choice(["blue", "green", "red"], n, p=[0.5, 0.3, 0.2]),
            "size": generator.choice([1.0, 2.0, 40.0], n),
            "old": generator.random(n) < 0.4,
        }
    )
    return frame, (generator.random(n) < np.where(frame["colour"] == "red", 0.9, 0.2)).astype(int)


# ---------------------------------------------------------------- levels


def same_column(frame):
    return [
        (c.levels, c.codes.tolist()) for c in read_columns(DPOneHotEncoder(), frame, reset=True)
    ]


def test_a_level_is_the_same_in_every_container():
    values = ["b", None, "a", "b", "c", None]
    want = same_column(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert [value for _, value in want[0][0]] == ["a", "b", "c", 0]
    for dtype in ("category", "string", pd.CategoricalDtype(["z", "c", "b", "a"])):
        assert same_column(pd.DataFrame({"x": pd.Series(values, dtype=dtype)})) == want
    for dtype in (pl.String, pl.Categorical, pl.Enum(["z", "c", "b", "a"])):
        assert same_column(pl.DataFrame({"x": pl.Series(values, dtype=dtype)})) == want
    assert same_column([[value] for value in values]) == want
    assert same_column(np.array([[value] for value in values], dtype=object)) == want
    with_nan = [[nan if value is None else value] for value in values]
    assert same_column(np.array(with_nan, dtype=object)) == want


def test_a_number_is_the_same_level_whatever_one_missing_value_makes_of_its_column():
    whole = [3, 1, 2, 1]
    want = same_column(np.array(whole)[:, None])
    for rows in (
        np.array(whole, dtype=float)[:, None],
        np.array(whole, dtype=np.uint8)[:, None],
        np.array(whole, dtype=np.float32)[:, None],
        np.array(whole, dtype=object)[:, None],
        pd.DataFrame({"x": pd.array(whole, dtype="Int64")}),
        pl.DataFrame({"x": whole}),
        pl.DataFrame({"x": pl.Series(whole, dtype=pl.Float32)}),
    ):
        assert same_column(rows) == want
    for missing in (
        np.array([*whole, nan])[:, None],
        np.array([*whole, None], dtype=object)[:, None],
        pd.DataFrame({"x": pd.array([*whole, None], dtype="Int64")}),
        pl.DataFrame({"x": [*whole, None]}),
    ):
        (levels, codes), (found, places) = want[0], same_column(missing)[0]
        assert found[:-1] == levels and places == [*codes, 3]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", ">i4", "i8", "u8"])
def test_integers_at_the_ends_of_their_range(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for values in ([least, most, least], [most, most - 1, most], [least + 1, least, least]):
        found = read_columns(DPOneHotEncoder(), np.array(values, dtype=dtype)[:, None], reset=True)
        rounded = [int(float(value)) for value in values]
        want = sorted(set(rounded))
        assert [value for _, value in found[0].levels] == want
        assert [want[code] for code in found[0].codes] == rounded


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("power", [52, 53, 59, 63])
def test_one_missing_value_renames_no_large_integer(power, sign):
    # Numbers of accounts and hashes: as floats they lose their last digits.
    whole = [sign * (2**power - k) for k in (1, 3, 1025, 1, 123456)]
    want = same_column(np.array(whole)[:, None])[0]
    widest = getattr(pl, "Int128", pl.Int64)  # newer polars only
    for rows in (
        np.array([*whole, nan])[:, None],
        pd.DataFrame({"x": [*whole, None]}),
        pd.DataFrame({"x": pd.array([*whole, None], dtype="Int64")}),
        np.array([*whole, None], dtype=object)[:, None],
        pl.DataFrame({"x": [*whole, None]}),
        pl.DataFrame({"x": pl.Series([*whole, None], dtype=widest)}),
        pl.DataFrame({"x": pl.Series([*whole, whole[0]], dtype=widest)}),
    ):
        levels, codes = same_column(rows)[0]
        assert levels[: len(want[0])] == want[0] and codes[:-1] == want[1]
        assert keys_of(whole) == [levels[code] for code in codes[:-1]]
    beyond = 10**400  # no float is near it
    assert keys_of([beyond, 2**1024 - 1]) == [(1, beyond), (1, 2**1024 - 1)]


@settings(max_examples=60, deadline=None, database=None)
@given(
    st.lists(
        st.none()
        | st.booleans()
        | st.integers(-(10**20), 10**20)
        | st.floats()
        | st.text(max_size=3)
        | st.sampled_from([True, 1, 1.0, 0, False, 0.0, -0.0, nan, np.float32(1), np.int8(1), "1"]),
        min_size=1,
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_levels_do_not_depend_on_the_order_of_records(values, random):
    rows = np.empty((len(values), 1), dtype=object)
    rows[:, 0] = values
    (column,) = read_columns(DPOneHotEncoder(), rows, reset=True)
    order = list(range(len(values)))
    random.shuffle(order)
    (other,) = read_columns(DPOneHotEncoder(), rows[order], reset=True)
    assert repr(other.levels) == repr(column.levels)  # with the types
    assert np.array_equal(other.codes, column.codes[order])
    assert keys_of(values) == [column.levels[code] for code in column.codes]
    assert list(column.levels) == sorted(set(column.levels))
    assert keys_of(array_of(column.levels)) == list(column.levels)


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, ["a"], 1j, pd.Timestamp("2020-01-01"), object()],
    ids=lambda v: type(v).__name__,
)
@for_each
def test_objects_are_refused(encoder, value):
    frame, y = table(50)
    rows = frame.astype(object).to_numpy()
    rows[7, 1] = value
    with pytest.raises(TypeError, match="texts, numbers, bools or missing"):
        clone(encoder).fit(rows, y)


# ---------------------------------------------------------------- privacy


def sums_by_level(encoder, X, y, monkeypatch):
    """Exact sums by column and level, and the claimed sensitivity."""
    seen = {}

    def spy(columns, *, sensitivity, values=None, overall=None, bits=0, **options):
        for j, column in enumerate(columns):
            for i, level in enumerate(column.levels):
                here = column.codes == i
                more = [] if values is None else values[here].sum(axis=0) / 2**bits
                seen[j, level] = np.array([here.sum(), *more])
        if overall is not None:
            seen["overall"] = overall / 2**bits
        seen["claim"] = sensitivity
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        for module in (_encoder, target_encoder):
            patch.setattr(module, "release_levels", spy)
        with pytest.raises(KeyboardInterrupt):
            clone(encoder).fit(X, y)
    return seen


@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
@for_each
def test_no_record_moves_the_sums_by_more_than_the_sensitivity(encoder, neighboring, monkeypatch):
    frame, y = table(60)
    rows = frame.astype(object).to_numpy()
    encoder = clone(encoder).set_params(neighboring=neighboring, n_rows=60)
    records = [
        (["blue", 1.0, True], 0),
        (["red", 2.0, False], 1),
        (["alone", -7.5, "new"], 0),
        (["other", None, 3], 1),
        ([nan, nan, nan], 1),
    ]
    found = []
    for record, target in records:
        rows[9], y[9] = record, target
        found.append(sums_by_level(encoder, rows, y, monkeypatch))
    if neighboring == "add_or_remove":
        kept = np.arange(60) != 9
        pairs = [(seen, sums_by_level(encoder, rows[kept], y[kept], monkeypatch)) for seen in found]
    else:
        pairs = [(a, b) for a in found for b in found]
    worst = 0.0
    for mine, other in pairs:
        assert mine["claim"] == other["claim"]
        change = 0.0
        for key in (set(mine) | set(other)) - {"claim"}:
            change += np.sum((mine.get(key, 0.0) - other.get(key, 0.0)) ** 2)
        worst = max(worst, sqrt(change) / mine["claim"])
    assert 0.98 < worst <= 1.0


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@for_each
def test_the_threshold_is_for_the_delta0_that_is_planned_and_charged(encoder, monkeypatch):
    used = []

    def spy(sigma, n_columns, delta0, *unit):
        used.append((sigma, n_columns, delta0))
        return threshold(sigma, n_columns, delta0, *unit)

    monkeypatch.setattr(_level_sums, "threshold", spy)
    frame, y = table(N)
    fitted = clone(encoder).fit(frame, y)
    (release,) = fitted.releases_
    assert used == [(release.sigma, 3, release.delta0)]
    assert fitted.privacy_cost_.delta0 == fitted.plan_.cost.delta0 == release.delta0 > 0.0


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@for_each
def test_a_level_of_one_record_never_appears(encoder):
    frame, y = table(N)
    rows = frame.astype(object).to_numpy()
    rows[3] = ["alone", 77.25, "word"]
    encoder = clone(encoder).set_params(epsilon=3.0, delta=1e-10)
    for _ in range(50):
        fitted = clone(encoder).fit(rows, y)
        (release,) = fitted.releases_
        assert release.delta0 == fitted.privacy_cost_.delta0 == pytest.approx(1e-11)
        tau = threshold(release.sigma, 3, release.delta0, 1.0)
        assert 500 > tau + 6.5 * release.sigma  # all counts are above 500
        assert [list(c) for c in fitted.categories_] == [
            ["blue", "green", "red"],
            [1, 2, 40],
            [False, True],
        ]
        assert "alone" not in repr(vars(fitted))


def test_what_is_found_depends_neither_on_the_order_of_rows_nor_on_the_container():
    frame, y = table()
    order = RNG.permutation(N)
    for encoder in ENCODERS:
        seeded = clone(encoder).set_params(random_state=3)
        want = seeded.fit(frame, y)
        for rows, target in (
            (frame.iloc[order], y[order]),
            (pl.DataFrame(frame.to_dict("list")), y),
            (frame.astype({"colour": "category", "size": "category"}), y),
            (frame.astype({"colour": "string", "size": "Float64", "old": "boolean"}), y),
        ):
            fitted = clone(seeded).fit(rows, target)
            assert repr(fitted.categories_) == repr(want.categories_)
            assert all(map(np.array_equal, fitted.counts_, want.counts_))
            other = fitted.transform(rows)
            assert np.array_equal(
                other, want.transform(frame.iloc[order] if target is not y else frame)
            )


def test_categories_that_pandas_knows_of_but_no_record_has_stay_out():
    frame = pd.DataFrame({"x": pd.Categorical(["a"] * N, categories=["secret", "a"])})
    fitted = DPOneHotEncoder().fit(frame)
    assert [list(c) for c in fitted.categories_] == [["a"]]


def test_a_column_without_a_level_is_warned_about():
    rows = RNG.normal(size=(200, 2))
    with pytest.warns(UtilityWarning, match="no level of column '0', '1' was found") as caught:
        fitted = DPOneHotEncoder().fit(rows)
    assert "categories" in str(caught[0].message)
    assert fitted.transform(rows).tolist() == [[1.0, 1.0]] * 200  # infrequent
    ignoring = DPOneHotEncoder(handle_unknown="ignore")
    with pytest.warns(UtilityWarning):
        assert ignoring.fit(rows).transform(rows).shape == (200, 0)


# ---------------------------------------------------------------- cost


def test_given_categories_cost_nothing():
    frame, y = table(100)
    given = [["blue", "green", "red"], [1, 2, 40], [False, True]]
    for encoder in (DPOneHotEncoder(categories=given), DPOrdinalEncoder(categories=given)):
        assert encoder.planned_cost() == PrivacyCost.zero() and not encoder.needs_delta0()
        fitted = encoder.fit(frame)
        assert fitted.privacy_cost_ == PrivacyCost.zero() and fitted.releases_ == ()
        counted = clone(encoder).set_params(min_frequency=5)
        assert counted.planned_cost() == PrivacyCost.from_epsilon(1.0, 1e-5)
        assert not counted.needs_delta0()
        one = clone(encoder).set_params(categories=[given[0], "auto", given[2]])
        assert one.needs_delta0() and one.planned_cost().delta0 == pytest.approx(1e-6)
        (release,) = one.fit(frame).releases_
        assert release.sensitivity == pytest.approx(1.0)  # one column is counted
    target = DPTargetEncoder(categories=given, classes=[0, 1])
    assert target.planned_cost() == PrivacyCost.from_epsilon(1.0, 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("neighboring", ["add_or_remove", "replace"])
def test_the_total_is_kept_and_delta_set_aside_only_where_it_is_needed(epsilon, neighboring):
    columns = ColumnTransformer(
        [
            ("one", DPOneHotEncoder(), ["colour"]),
            ("two", DPOrdinalEncoder(), ["size"]),
            ("given", DPOneHotEncoder(categories=[[False, True]]), ["old"]),
        ]
    )
    pipeline = make_pipeline(columns, DPLogisticRegression(classes=[0, 1]))
    budget = PrivacyBudget(pipeline, epsilon=epsilon, neighboring=neighboring)
    assert budget.needs_delta0()
    parts = budget.allocate()
    assert set(parts) == {
        "columntransformer__one",
        "columntransformer__two",
        "dplogisticregression",
    }
    assert [part.delta0 for part in parts.values()] == pytest.approx([5e-7, 5e-7, 0.0])
    total = PrivacyCost.compose(parts.values())
    assert total.delta0 <= 1e-5 / 10 * (1 + 1e-12)
    gaussian = PrivacyCost(total.gaussian_mu, neighboring)
    assert 0.9999e-5 < total.delta0 + gaussian.delta(epsilon) <= 1e-5
    given = make_pipeline(columns.transformers[2][1], DPLogisticRegression(classes=[0, 1]))
    plain = PrivacyBudget(given, epsilon=epsilon, neighboring=neighboring)
    assert not plain.needs_delta0()
    full = PrivacyCost.from_epsilon(epsilon, 1e-5, neighboring=neighboring)
    assert list(plain.allocate().values()) == [full]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_a_pipeline_with_unknown_categories_works_out_of_the_box():
    frame, y = table()
    pipeline = make_pipeline(DPOneHotEncoder(), DPLogisticRegression(classes=[0, 1]))
    model = PrivacyBudget(pipeline, epsilon=2.0).fit(frame, y)
    assert model.privacy_cost_.epsilon(1e-5) <= 2.0 and model.privacy_cost_.delta(2.0) <= 1e-5
    assert model.score(frame, y) > 0.75
    spent = privacy_cost(model.estimator_)
    assert spent.delta0 == pytest.approx(1e-6) and model.privacy_cost_.covers(spent)
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    search = PrivacyBudget(GridSearchCV(pipeline, grid, cv=KFold(3), scoring="accuracy"), epsilon=9)
    search.fit(frame, y)
    assert search.allocate()["estimator__dponehotencoder"].delta0 == pytest.approx(2e-7)
    assert search.privacy_cost_.delta(9.0) <= 1e-5
    nested = PrivacyBudget(make_pipeline(PrivacyBudget(pipeline)), epsilon=2.0)
    assert nested.fit(frame, y).privacy_cost_.delta(2.0) <= 1e-5
    free = PrivacyBudget(pipeline, epsilon=inf).fit(frame, y)
    twin = non_private(pipeline).fit(frame, y)
    assert np.allclose(free.predict_proba(frame), twin.predict_proba(frame), rtol=1e-8)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_an_ordinary_pipeline_with_encoders_becomes_private_in_one_line():
    frame, y = table()
    columns = ColumnTransformer(
        [
            ("one", OneHotEncoder(), ["colour"]),
            ("two", TargetEncoder(), ["size"]),
            ("three", OrdinalEncoder(), ["old"]),
        ]
    )
    ordinary = make_pipeline(columns, LogisticRegression())
    model = privatize(ordinary, epsilon=3.0, public={"classes": [0, 1]}).fit(frame, y)
    assert model.privacy_cost_.delta(3.0) <= 1e-5
    assert model.score(frame, y) > 0.7


def test_a_report_and_a_ledger_know_of_delta0(tmp_path):
    frame, _ = table()
    fitted = DPOneHotEncoder(epsilon=0.5).fit(frame)
    (step,) = privacy_report(fitted).steps
    (release,) = step.releases
    assert release.mechanism == "thresholded Gaussian"
    # The noise is larger by 2**-40 than it had to be.
    assert release.epsilon == pytest.approx(step.cost.epsilon(), rel=1e-9)
    ledger = PrivacyLedger(tmp_path / "l", dataset="d", epsilon=3.0, delta=1e-5, delta0=1.5e-6)
    ledger.fit(DPOneHotEncoder(epsilon=0.5), frame)
    assert ledger.spent.delta0 == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(PrivacyBudgetError, match="pair"):
        ledger.fit(DPOneHotEncoder(epsilon=0.5), frame)
    given = [["blue", "green", "red"], [1, 2, 40], [False, True]]
    ledger.fit(DPOneHotEncoder(categories=given), frame)
    assert ledger.spent.delta0 == pytest.approx(1e-6, rel=1e-6)


def test_a_budget_without_a_delta0_is_refused_where_one_is_needed():
    frame, y = table(100)
    pipeline = make_pipeline(DPOneHotEncoder(), DPLogisticRegression(classes=[0, 1]))
    for encoder in ENCODERS:
        with pytest.raises(ValueError, match="without a delta0"):
            clone(encoder).set_params(epsilon=PrivacyCost(0.3)).fit(frame, y)
        with pytest.raises(ValueError, match="epsilon0"):
            pair = PrivacyCost(0.3, epsilon0=0.1, delta0=1e-6)
            clone(encoder).set_params(epsilon=pair).fit(frame, y)
    with pytest.raises(ValueError, match="without a delta0"):
        PrivacyBudget(pipeline, epsilon=PrivacyCost(0.3)).allocate()
    cost = PrivacyCost(0.3, delta0=2e-6)
    parts = PrivacyBudget(pipeline, epsilon=cost).allocate()
    assert parts["dponehotencoder"].delta0 == 2e-6 and not parts["dplogisticregression"].has_pair
    assert cost.covers(PrivacyCost.compose(parts.values()))


# ---------------------------------------------------------------- as scikit-learn encodes


def rich_table(n=4000):
    frame, y = table(n, seed=5)
    frame["rare"] = np.random.default_rng(1).choice(
        list("abcdef"), n, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01]
    )
    frame.loc[::7, "rare"] = nan
    return frame, y


SETTINGS = [
    {},
    {"min_frequency": 150},
    {"min_frequency": 0.05},
    {"max_categories": 3},
    {"max_categories": 2, "min_frequency": 300},
]


@pytest.mark.parametrize("options", SETTINGS, ids=repr)
@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
@pytest.mark.parametrize("handle_unknown", ["ignore", "infrequent_if_exist"])
def test_with_little_noise_it_encodes_as_scikit_learn_does(options, drop, handle_unknown):
    frame, _ = rich_table()
    frame["rare"] = frame["rare"].fillna("a")  # scikit-learn never groups missing values
    new = frame.iloc[:300].copy()
    new.loc[5, "colour"] = "never seen"
    options = {**options, "drop": drop, "handle_unknown": handle_unknown}
    private = DPOneHotEncoder(epsilon=1e6, delta=1e-9, **options).fit(frame)
    twin = private.make_non_private().fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of unknown categories
        want = twin.transform(new)
    assert np.array_equal(private.transform(new), want)
    assert np.linalg.norm(want, axis=1).max() <= private.output_norm_ == 2.0
    sparse = clone(private).set_params(sparse_output=True).fit(frame).transform(new)
    assert issparse(sparse) and np.array_equal(sparse.toarray(), want)
    mine, theirs = private.inverse_transform(want), twin.inverse_transform(want)
    assert np.array_equal(mine, theirs)
    assert np.array_equal(private.inverse_transform(sparse), theirs)
    names = [name.replace(".0", "") for name in twin.get_feature_names_out()]
    assert list(private.get_feature_names_out()) == names
    if drop is None:
        assert private.drop_idx_ is None
    else:
        assert list(private.drop_idx_) == list(twin.drop_idx_)
    for mine, theirs in zip(private.infrequent_categories_, _infrequent(twin), strict=True):
        assert (mine is None and theirs is None) or list(mine) == list(theirs)


def _infrequent(twin):
    return getattr(twin, "infrequent_categories_", [None] * len(twin.categories_))


def test_given_categories_are_dropped_if_they_were_found():
    rows = np.array([["a", "x"], ["b", "y"]] * 500)
    encoder = DPOneHotEncoder(drop=["b", "never"]).fit(rows)
    assert list(encoder.get_feature_names_out()) == ["x0_a", "x1_x", "x1_y"]
    assert np.array_equal(encoder.transform(rows[:2]), [[1, 1, 0], [0, 0, 1]])
    assert list(encoder.drop_idx_) == [1, None]
    wrong = DPOneHotEncoder(drop=["b"])
    with pytest.raises(ValueError, match="drop must have one category for each of 2 columns"):
        wrong.fit(rows)
    assert not hasattr(wrong, "privacy_cost_")  # nothing was released before


@pytest.mark.parametrize("options", SETTINGS, ids=repr)
def test_with_little_noise_ordinals_are_those_of_scikit_learn(options):
    frame, _ = rich_table()
    private = DPOrdinalEncoder(epsilon=1e6, delta=1e-9, **options).fit(frame)
    twin = private.make_non_private().fit(frame)
    new = frame.iloc[:300].copy()
    new.loc[5, "colour"] = "never seen"
    want = twin.transform(new)
    assert np.array_equal(private.transform(new), want, equal_nan=True)
    back = private.inverse_transform(want)
    back[pd.isna(back)] = "missing"
    original = new.astype(object).to_numpy()
    original[pd.isna(original)] = "missing"
    rare = back == "infrequent_sklearn"
    assert rare.any() == bool(options)
    assert rare[5, 0] or back[5, 0] == "missing"
    rare[5, 0] = True
    assert np.array_equal(back[~rare], original[~rare])


@pytest.mark.parametrize("smooth", [0.0, 7.5])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "continuous"])
def test_with_little_noise_targets_are_those_of_scikit_learn(kind, smooth):
    frame, y = rich_table()
    facts = {
        "binary": {"classes": ["no", "yes"]},
        "multiclass": {"classes": ["a", "b", "c"]},
        "continuous": {"y_bounds": (-3.0, 5.0)},
    }[kind]
    if kind == "continuous":
        target = y + np.random.default_rng(2).uniform(-1, 1, len(y))
    else:
        labels = np.array(facts["classes"])
        target = labels[np.minimum(y + (frame["size"] == 2) * (len(labels) - 2), len(labels) - 1)]
    private = DPTargetEncoder(epsilon=1e7, delta=1e-9, smooth=smooth, **facts).fit(frame, target)
    twin = private.make_non_private().fit(frame, target)
    new = frame.iloc[:300].copy()
    new.loc[5, "colour"] = "never seen"
    assert private.target_type_ == twin.target_type_ == kind
    assert np.allclose(private.transform(new), twin.transform(new), rtol=1e-3, atol=1e-3)
    assert np.allclose(private.target_mean_, twin.target_mean_, rtol=1e-3, atol=1e-3)
    assert list(private.get_feature_names_out()) == list(twin.get_feature_names_out())
    assert np.linalg.norm(private.transform(new), axis=1).max() <= private.output_norm_


@pytest.mark.parametrize(
    "encoder",
    [
        DPOneHotEncoder(epsilon=inf),
        DPOneHotEncoder(epsilon=inf, min_frequency=200, sparse_output=True),
        DPOneHotEncoder(epsilon=inf, drop="first", handle_unknown="error", dtype=np.int32),
        DPOneHotEncoder(epsilon=inf, categories={"a": [1, 2], "colour": ["red", "blue", "green"]}),
        DPOrdinalEncoder(epsilon=inf, max_categories=2, encoded_missing_value=-2),
        DPTargetEncoder(epsilon=inf),
        DPTargetEncoder(epsilon=inf, y_bounds=(0, 1), smooth=3.0),
    ],
    ids=repr,
)
def test_without_privacy_it_is_scikit_learns(encoder):
    frame, y = rich_table()
    if isinstance(encoder.categories, dict):
        frame = pd.DataFrame({"colour": frame["colour"], "a": frame["old"] + 1})
        options = {"categories": [["red", "blue", "green"], [1, 2]]}
    else:
        options = {}
    twin = encoder.make_non_private().set_params(**options).fit(frame, y)
    fitted = encoder.fit(frame, y)
    mine, theirs = fitted.transform(frame), twin.transform(frame)
    if issparse(theirs):
        assert issparse(mine)
        mine, theirs = mine.toarray(), theirs.toarray()
    assert np.array_equal(mine, theirs, equal_nan=True) and mine.dtype == theirs.dtype
    assert list(fitted.get_feature_names_out()) == list(twin.get_feature_names_out())
    assert not fitted.privacy_cost_.is_finite and fitted.releases_ == ()
    assert type(twin) in (OneHotEncoder, OrdinalEncoder, TargetEncoder)


def test_categories_by_name_and_parts_to_be_found():
    frame, _ = table()
    given = {"old": [True, False], "colour": ["red", "blue"], "size": "auto"}
    encoder = DPOneHotEncoder(categories=given, handle_unknown="ignore").fit(frame)
    assert list(encoder.get_feature_names_out()) == [
        "colour_red",
        "colour_blue",
        "size_1",
        "size_2",
        "size_40",
        "old_True",
        "old_False",
    ]
    for wrong in ({"old": [1]}, {**given, "more": [1]}, [["red"]], [["red"], "auto"]):
        with pytest.raises(ValueError, match="columns"):
            DPOneHotEncoder(categories=wrong).fit(frame)
    with pytest.raises(ValueError, match="needs given categories"):
        DPOneHotEncoder(handle_unknown="error").fit(frame)
    strict = DPOneHotEncoder(categories=[["red"], [1, 2, 40], [0, 1]], handle_unknown="error")
    with pytest.raises(ValueError, match="column 0") as error:
        strict.fit(frame)
    assert "blue" not in str(error.value)


# ---------------------------------------------------------------- means of targets


def test_automatic_smoothing_beats_none_where_noise_is_large():
    generator = np.random.default_rng(7)
    levels, n = 60, 12_000
    codes = generator.choice(levels, n, p=generator.dirichlet(np.ones(levels)))
    truth = generator.normal(0.5, 0.07, levels).clip(0, 1)
    y = (generator.random(n) < truth[codes]).astype(int)
    rows = codes[:, None]
    given = [list(range(levels))]
    errors = {}
    for smooth in ("auto", 0.0):
        encoder = DPTargetEncoder(epsilon=0.3, categories=given, classes=[0, 1], smooth=smooth)
        fits = [clone(encoder).fit(rows, y).encodings_[0] for _ in range(20)]
        errors[smooth] = np.mean((np.array(fits) - truth) ** 2)
    assert errors["auto"] < 0.25 * errors[0.0]
    assert errors["auto"] < 1.1 * truth.var()


def test_the_target_must_be_declared():
    frame, y = table(50)
    with pytest.raises(ValueError, match=r"classes=\[...\].*y_bounds"):
        DPTargetEncoder().fit(frame, y)
    with pytest.raises(ValueError, match="target_type='multiclass' does not agree"):
        DPTargetEncoder(classes=[0, 1], target_type="multiclass").fit(frame, y)
    with pytest.raises(ValueError, match="not both"):
        DPTargetEncoder(classes=[0, 1], y_bounds=(0, 1)).fit(frame, y)
    with pytest.raises(ValueError, match="not among `classes`"):
        DPTargetEncoder(classes=[0, 2]).fit(frame, y)
