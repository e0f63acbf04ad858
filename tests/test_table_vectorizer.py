"""DPTableVectorizer: what it learns of a mixed table, what it claims, what it refuses.

Fits are seeded where a bound on their noise is tested: they never change.
"""

import warnings
from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import skdp.noise
from skdp import (
    Binary,
    Categorical,
    DPLogisticRegression,
    DPTableVectorizer,
    Drop,
    Numeric,
    PrivacyBudget,
    schema_from_public,
)
from skdp._lattice import ExactTotal
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skdp.preprocessing import _table_moments

LARGE = 50.0  # an epsilon at which noise does not matter
REAL_NOISE = skdp.noise.add_noise
RELATIONS = ["add_or_remove", "replace"]


def table(n=3000, seed=0):
    """Numbers of several kinds, two of them with missing values, and categories."""
    rng = np.random.default_rng(seed)
    half = rng.normal(3.0, 2.0, n)
    half[rng.random(n) < 0.3] = np.nan
    jobs = np.array(["clerk", "cook", "driver", "nurse"], dtype=object)
    job = jobs[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    job[rng.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "age": rng.normal(45.0, 12.0, n),
            "year": np.rint(rng.normal(1990.0, 8.0, n)),
            "half": half,
            "job": job,
            "owns": rng.random(n) < 0.4,
        }
    )


GIVEN = {
    "age": Numeric((0.0, 120.0)),
    "year": Numeric((1900.0, 2030.0)),
    "half": Numeric((-10.0, 20.0)),
    "job": Categorical(("clerk", "cook", "driver", "nurse")),
    "owns": Binary(),
}
NOTHING = {
    "age": Numeric(),
    "year": Numeric(),
    "half": Numeric(),
    "job": Categorical(),
    "owns": Binary(),
}
SCHEMAS = pytest.mark.parametrize("schema", [GIVEN, NOTHING], ids=["given", "nothing"])


def in_polars(X):
    columns = {name: X[name].tolist() for name in X}
    columns["job"] = [value if isinstance(value, str) else None for value in columns["job"]]
    return pl.DataFrame(columns)


def seeded(schema, epsilon=LARGE, **options):
    return DPTableVectorizer(schema, epsilon, random_state=0, **options)


# ---- what is learned ----


@SCHEMAS
def test_without_noise_to_speak_of_features_are_standardised(schema):
    X = table(20_000)
    vectorizer = seeded(schema).fit(X)
    Z = vectorizer.transform(X)
    names = list(vectorizer.get_feature_names_out())
    assert names[:4] == ["age", "year", "half", "missingindicator_half"]
    assert names[4] == "owns_True"
    assert [name.split("_")[0] for name in names[5:]] == ["job"] * (len(names) - 5)
    assert abs(Z[:, :3].mean(axis=0)).max() < 0.1
    assert abs(Z[:, :2].std(axis=0) - 1.0).max() < 0.1
    assert abs(Z[:, 3:].mean(axis=0)).max() < 0.01
    assert abs(Z[:, 3:].std(axis=0) - 1.0).max() < 0.05
    np.testing.assert_allclose(vectorizer.mean_[:2], [45.0, 1990.0], atol=0.6)
    np.testing.assert_allclose(vectorizer.scale_, [12.0, 8.0, 2.0], rtol=0.1)
    np.testing.assert_allclose(vectorizer.missing_, [0.0, 0.0, 0.3], atol=0.01)
    assert not Z[X.half.isna(), 2].any()
    assert vectorizer.output_norm_ == sqrt(Z.shape[1])
    assert abs(np.sqrt((Z**2).sum(axis=1).mean()) / vectorizer.output_norm_ - 1.0) < 0.1


def test_columns_of_every_size_are_found_without_bounds_beside_outliers():
    rng = np.random.default_rng(1)
    n = 20_000
    columns = {
        "normal": rng.normal(size=n),
        "year": np.rint(rng.normal(1990, 8, n)),
        "time": 1.6e9 + rng.uniform(0, 3e7, n),
        "tiny": 1e-200 * rng.normal(size=n),
        "huge": -1e250 * rng.uniform(size=n),
        "flag": rng.integers(0, 2, n).astype(float),
        "below": rng.normal(-100, 5, n),
    }
    X = pd.DataFrame(columns)
    clean = X.copy()
    X.iloc[:20] = 1e12
    vectorizer = seeded(Numeric(), epsilon=1.0).fit(X)
    Z = vectorizer.transform(clean)
    assert abs(Z.mean(axis=0)).max() < 0.3
    assert (np.abs(np.log2(Z.std(axis=0))) < 0.5).all()
    assert vectorizer.units_ == [None] * 7


def test_a_spread_that_is_too_small_to_be_found_is_said():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"far": 1e9 + rng.normal(size=20_000), "near": rng.normal(50.0, 1.0, 20_000)})
    with pytest.warns(UtilityWarning, match="'far' lie so close together"):
        seeded(Numeric()).fit(X)
    told = seeded({"far": Numeric((1e9 - 10.0, 1e9 + 10.0)), "near": Numeric()}).fit(X)
    assert abs(told.transform(X).std(axis=0) - 1.0).max() < 0.1


def test_long_tails_are_put_on_a_logarithmic_scale():
    rng = np.random.default_rng(2)
    X = rng.lognormal(10.0, 2.0, size=(20_000, 1))
    vectorizer = seeded(Numeric(), epsilon=1.0).fit(X)
    (unit,) = vectorizer.units_
    assert 0.5 < unit / np.exp(10.0) < 2.0
    z = np.arcsinh(X[:, 0] / unit)
    np.testing.assert_allclose(
        vectorizer.transform(X)[:, 0], (z - vectorizer.mean_) / vectorizer.scale_
    )
    assert abs(vectorizer.transform(X).std() - 1.0) < 0.1


def test_levels_that_one_record_has_alone_stay_hidden_and_rare_ones_share_an_indicator():
    X = pd.DataFrame({"job": ["a"] * 5000 + ["b"] * 3000 + [f"own{i}" for i in range(800)]})
    vectorizer = seeded(Categorical(), epsilon=1.0).fit(X)
    names = ["job_a", "job_b", "job_infrequent_sklearn"]
    assert list(vectorizer.get_feature_names_out()) == names
    assert vectorizer.categories_ == {0: ["a", "b"]}
    Z = vectorizer.transform(pd.DataFrame({"job": ["a", "own3", "never seen", None]}))
    assert (Z[0] > 0).tolist() == [True, False, False]
    assert (Z[1:] > 0).tolist() == [[False, False, True]] * 3
    given = seeded(Categorical(("a", "b")), min_frequency=4000).fit(X)
    assert list(given.get_feature_names_out()) == ["job_a", "job_infrequent_sklearn"]


def test_binary_columns_have_one_feature_in_which_anything_else_is_the_mean():
    X = pd.DataFrame({"owns": ["no"] * 6000 + ["yes"] * 2000})
    vectorizer = seeded(Binary(("no", "yes"))).fit(X)
    assert list(vectorizer.get_feature_names_out()) == ["owns_yes"]
    Z = vectorizer.transform(pd.DataFrame({"owns": ["no", "yes", None, "perhaps"]}))
    spread = sqrt(0.25 * 0.75)
    np.testing.assert_allclose(Z[:, 0], [-0.25 / spread, 0.75 / spread, 0, 0], atol=0.01)


@pytest.mark.parametrize("epsilon", [1.0, inf])
def test_pandas_polars_and_numpy_are_one_table(epsilon):
    X = table(2000)
    found = [
        DPTableVectorizer(NOTHING, epsilon, random_state=0).fit(frame).transform(frame)
        for frame in (X, in_polars(X))
    ]
    np.testing.assert_allclose(np.nan_to_num(found[0]), np.nan_to_num(found[1]), rtol=1e-12)
    numbers = X[["age", "year"]]
    found = [
        DPTableVectorizer(Numeric(), epsilon, random_state=0).fit(frame).transform(frame)
        for frame in (numbers, numbers.to_numpy())
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_types_of_columns_are_what_decides_without_a_schema():
    X = table(4000)
    for frame in (X, in_polars(X)):
        with pytest.warns(PrivacyLeakWarning, match="schema_from_public"):
            vectorizer = DPTableVectorizer(epsilon=5.0).fit(frame)
        assert vectorizer.schema_ == tuple(NOTHING.values())
        assert "types of the columns" in vectorizer.privacy_cost_.assumptions[0]
    with pytest.raises(TypeError, match="column 'day' has a type"):
        DPTableVectorizer().fit(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 9)}))
    assert DPTableVectorizer(NOTHING).fit(X).privacy_cost_.assumptions == ()


def test_set_output_names_the_features():
    X = table(2000)
    frame = seeded(GIVEN).set_output(transform="pandas").fit_transform(X)
    assert list(frame)[:3] == ["age", "year", "half"]
    assert len(frame) == len(X)


# ---- without privacy ----


@SCHEMAS
def test_infinite_epsilon_is_sklearns_imputer_encoder_and_scaler(schema):
    X = table(500)
    vectorizer = DPTableVectorizer(schema, inf).fit(X)
    jobs = "auto" if schema is NOTHING else [list(GIVEN["job"].categories)]
    unknown = "infrequent_if_exist"
    columns = make_column_transformer(
        (SimpleImputer(add_indicator=True), ["age", "year", "half"]),
        (OneHotEncoder(categories=[[False, True]], drop="first"), ["owns"]),
        (OneHotEncoder(categories=jobs, handle_unknown=unknown), ["job"]),
        sparse_threshold=0.0,
        verbose_feature_names_out=False,
    )
    twin = make_pipeline(columns, StandardScaler()).fit(X)
    np.testing.assert_array_equal(vectorizer.transform(X), twin.transform(X))
    names = twin.get_feature_names_out().tolist()
    assert vectorizer.get_feature_names_out().tolist() == names
    assert vectorizer.privacy_cost_.mu == inf and vectorizer.releases_ == ()


def test_a_fit_that_fails_before_its_first_release_leaves_the_one_before():
    X = table(500)
    vectorizer = DPTableVectorizer(Numeric(), inf).fit(X[["age", "year"]])
    want = vectorizer.transform(X[["age", "year"]])
    odd = pd.DataFrame({"age": [object()] * 500, "year": [1.0] * 500})
    with pytest.raises(TypeError, match="objects of another kind"):
        vectorizer.set_params(schema=Categorical(), epsilon=1.0).fit(odd)
    np.testing.assert_array_equal(vectorizer.transform(X[["age", "year"]]), want)
    assert vectorizer.privacy_cost_.mu == inf


# ---- what is claimed ----


def counted(schema, X, neighboring, answers=None, **options):
    """What a fit hands to the noise, and the noisy answers."""
    sums, given = [], []

    def noise(bounded, sigma, seed, context):
        total = ExactTotal(bounded.total.shape)
        total.merge(bounded.total)
        sums.append(replace(bounded, total=total))
        fresh = answers is None
        given.append(REAL_NOISE(bounded, sigma, seed, context) if fresh else answers[len(given)])
        return given[-1].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skdp.noise, "add_noise", noise)
        DPTableVectorizer(schema, neighboring=neighboring, **options).fit(X)
    return sums, given


def change(one, other):
    """Squared distance of two sums in units of their noise, over the squared sensitivity."""
    weights = [w for count, w in one.groups for _ in range(count)] or [1.0] * one.total.size
    apart = (one.total.high - other.total.high) * 2**32 + one.total.low - other.total.low
    squares = [(Fraction(int(apart[i])) / Fraction(weights[i])) ** 2 for i in np.flatnonzero(apart)]
    return sum(squares) * (Fraction(one.unit) / Fraction(one.sensitivity)) ** 2


ODD = pd.DataFrame(
    {
        "age": [0.0, 120.0, -1e308, 1e308, np.nan, 45.0],
        "year": [1900.0, 2030.0, 1e308, -1e308, np.nan, 1024.0],
        "half": [-10.0, 20.0, 1e308, -1e308, np.nan, 5e-324],
        "job": ["clerk", "cook", "driver", "clerk", None, "nurse"],
        "owns": [False, True, True, False, True, False],
    }
)


def worst_ratios(schema, neighboring, n=400):
    """Largest change of each release by one record, over what is claimed, both squared."""
    X = pd.concat([table(n), ODD], ignore_index=True)  # so that no level is one record's own
    options = {"n_rows": len(X), "epsilon": 30.0}
    _, answers = counted(schema, X, neighboring, **options)
    tapes = []
    for i in range(len(ODD)):
        other = X.copy()
        other.iloc[7] = ODD.iloc[i]
        tapes.append(counted(schema, other, neighboring, answers, **options)[0])
    pairs = [(a, b) for a in tapes for b in tapes]
    if neighboring == "add_or_remove":
        blank, _ = counted(schema, X.drop(index=7), neighboring, answers, **options)
        pairs = [(a, blank) for a in tapes]
    return [max(change(a[k], b[k]) for a, b in pairs) for k in range(len(answers))]


@SCHEMAS
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_no_record_moves_a_release_of_a_mixed_table_by_more_than_is_claimed(schema, neighboring):
    counts, moments = worst_ratios(schema, neighboring)
    assert 0.99 < counts <= 1
    assert 0.7 < moments <= 1


def test_the_claim_rests_on_the_noise_of_counts(monkeypatch):
    # With less noise for missing values and bins one record would move them by more.
    monkeypatch.setitem(_table_moments._COUNT_WEIGHT, "add_or_remove", 0.4)
    assert worst_ratios(GIVEN, "add_or_remove")[1] > 1


def test_a_pipeline_keeps_to_its_total_with_a_quarter_for_the_table():
    X = table(3000)
    y = (X.age + 20 * X.owns > 50).astype(int)
    pipeline = make_pipeline(DPTableVectorizer(NOTHING), DPLogisticRegression(classes=[0, 1]))
    model = PrivacyBudget(pipeline, epsilon=4.0, delta=1e-5).fit(X, y)
    cost = model.privacy_cost_
    assert cost.delta(4.0) <= 1e-5 and 0 < cost.delta0 < 2e-6
    first, second = model.estimator_
    share = first[1] if isinstance(first, tuple) else first
    mu = share.privacy_cost_.gaussian_mu, second.privacy_cost_.gaussian_mu
    assert mu[0] ** 2 / (mu[0] ** 2 + mu[1] ** 2) == pytest.approx(0.25)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("schema", [None, NOTHING, GIVEN], ids=["none", "nothing", "given"])
def test_delta_is_set_aside_only_where_categories_may_have_to_be_found(schema):
    vectorizer = DPTableVectorizer(schema)
    assert vectorizer.needs_delta0() == (schema is not GIVEN)
    assert vectorizer.planned_cost().delta0 == pytest.approx(0.0 if schema is GIVEN else 1e-6)
    plan = vectorizer.plan(1000, 5)
    assert [release.name for release in plan.releases] == ["counts", "moments"]
    assert plan.cost.gaussian_mu <= vectorizer.planned_cost().gaussian_mu


# ---- what is refused or said ----


def test_few_rows_are_warned_of_and_give_no_nonsense():
    X = table(60)
    for schema in (GIVEN, NOTHING):
        with pytest.warns(UtilityWarning, match="60 rows") as caught:
            vectorizer = DPTableVectorizer(schema, epsilon=0.1).fit(X)
        assert "use more budget" in str(caught[0].message)
        assert np.isfinite(vectorizer.transform(X)).all()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"age": Numeric()}, "missing: \\['year', 'half', 'job', 'owns'\\]"),
        ({**NOTHING, "pet": Drop()}, "unknown: \\['pet'\\]"),
        ([Numeric()] * 4, "5 columns"),
        ([Numeric] * 5, "Numeric, Categorical"),
        ({**NOTHING, "job": Numeric()}, "not numbers"),
    ],
)
def test_schemas_that_do_not_fit_are_named(schema, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DPTableVectorizer(schema).fit(table(50))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Numeric((1.0, 1.0)),
        lambda: Numeric((0.0, inf)),
        lambda: Numeric((0.0, 1.0, 2.0)),
        lambda: Categorical(()),
        lambda: Categorical(("a", "a")),
        lambda: Categorical("abc"),
        lambda: Binary(("a", "a")),
        lambda: Binary(("a", "b", "c")),
    ],
)
def test_senseless_kinds_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_dropped_columns_are_not_looked_at():
    X = table(1000)
    X["key"] = [object() for _ in range(len(X))]
    vectorizer = seeded({**GIVEN, "key": Drop()}).fit(X)
    same = seeded(GIVEN).fit(X.drop(columns="key"))
    np.testing.assert_array_equal(vectorizer.transform(X), same.transform(X.drop(columns="key")))
    nothing = seeded(Drop()).fit(X)
    assert nothing.transform(X).shape == (1000, 0)
    assert nothing.releases_ == nothing.plan_.releases == ()


@pytest.mark.parametrize("polars", [False, True])
def test_a_schema_is_written_from_a_public_sample(polars):
    sample = table(300)
    sample["key"] = [f"k{i}" for i in range(len(sample))]
    sample["zero"] = 0
    if polars:
        sample = in_polars(sample)
    schema = schema_from_public(sample)
    assert schema == {
        **NOTHING,
        "job": Categorical(("clerk", "cook", "driver", "nurse")),
        "key": Categorical(tuple(sorted(f"k{i}" for i in range(300)))),
        "zero": Numeric(),
    }
    bounded = schema_from_public(sample, bounds=True)
    assert bounded["year"].bounds == (sample["year"].min(), sample["year"].max())
    assert bounded["zero"] == Numeric()
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        DPTableVectorizer(schema, epsilon=10.0).fit(sample)


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324])
def test_columns_at_the_ends_of_the_floats_have_a_window(value):
    # Their octaves are beyond the powers that windows end at.
    X = np.full((400, 2), value)
    fitted = DPTableVectorizer(schema=Numeric(), epsilon=20.0).fit(X)
    assert np.isfinite(fitted.transform(X)).all()
