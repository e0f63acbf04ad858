"""`privacy_cost`: rules, composition, and what is never too small."""

import math

import numpy as np
import pandas as pd
import pytest
from private_centre import PrivateCentre
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPStandardScaler,
    GaussianMechanism,
    PrivacyCost,
    privacy_cost,
)
from skdp._validation import CLASSES_FROM_Y
from skdp.cost import Fit, cost_parts, register_cost_rule, row_wise
from skdp.cost._core import _EXACT, rule_for
from skdp.cost._rules import ALWAYS_FREE, FREE_IF
from skdp.cost._search import training_sets_per_record

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")

MU = PrivacyCost.from_epsilon(1.0, 1e-5).mu
MU2 = PrivacyCost.from_epsilon(2.0, 1e-5).mu


def clf(**params):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], **params})


def reg(**params):
    return DPRidge(**{"epsilon": 1.0, "y_bounds": (-5, 5), **params})


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


# ---- steps that learn nothing ----

NUMBERS = "numbers"
POSITIVE = "positive"
WORDS = "words"
FREE = [
    (AdditiveChi2Sampler(), POSITIVE),
    (Binarizer(threshold=0.1), NUMBERS),
    (FeatureHasher(n_features=8, input_type="string"), "tokens"),
    (GaussianRandomProjection(2, random_state=0), NUMBERS),
    (HashingVectorizer(n_features=16), WORDS),
    (Normalizer(), NUMBERS),
    (PolynomialCountSketch(n_components=4, random_state=0), NUMBERS),
    (PolynomialFeatures(degree=3), NUMBERS),
    (SkewedChi2Sampler(n_components=4, random_state=0), POSITIVE),
    (SparseRandomProjection(2, random_state=0), NUMBERS),
    (CountVectorizer(vocabulary=["cat", "dog"], min_df=2), WORDS),
    (MissingIndicator(features="all"), "holes"),
    (OneHotEncoder(categories=[["a", "b"]] * 2, handle_unknown="ignore"), "letters"),
    (OneHotEncoder(categories=[["a", "b"]] * 2, drop="first", handle_unknown="ignore"), "letters"),
    (
        OrdinalEncoder(
            categories=[["a", "b"]] * 2, handle_unknown="use_encoded_value", unknown_value=-1
        ),
        "letters",
    ),
    (RBFSampler(gamma=0.5, n_components=4, random_state=0), NUMBERS),
    (SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True), "holes"),
    (SplineTransformer(knots=np.linspace(-3, 3, 5)[:, None] * np.ones(3)), NUMBERS),
    (TfidfTransformer(use_idf=False), POSITIVE),
    (TfidfVectorizer(vocabulary=["cat", "dog"], use_idf=False), WORDS),
    (FunctionTransformer(), NUMBERS),
    (FunctionTransformer(np.tanh), NUMBERS),
]
# The same classes, or their neighbours, where they do learn.
LEARNING = [
    (CountVectorizer(), WORDS),
    (MissingIndicator(error_on_new=False), "holes"),
    (OneHotEncoder(handle_unknown="ignore"), "letters"),
    (
        OneHotEncoder(categories=[["a", "b", "c"]] * 2, max_categories=2, handle_unknown="ignore"),
        "letters",
    ),
    (OneHotEncoder(categories=[["a", "b", "c"]] * 2, min_frequency=5), "letters"),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), "letters"),
    (RBFSampler(gamma="scale", n_components=4, random_state=0), NUMBERS),
    (SimpleImputer(strategy="mean"), "holes"),
    (
        SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
        "holes",
    ),
    (SplineTransformer(), NUMBERS),
    (TfidfTransformer(), POSITIVE),
    (TfidfVectorizer(vocabulary=["cat", "dog"]), WORDS),
    (TfidfVectorizer(use_idf=False), WORDS),
    (KBinsDiscretizer(quantile_method="averaged_inverted_cdf", subsample=None), NUMBERS),
    (Nystroem(n_components=4, random_state=0), NUMBERS),
    (StandardScaler(), NUMBERS),
    (PCA(2), NUMBERS),
]


def rows(kind, seed, n=12):
    rng = np.random.default_rng(seed)
    # The second data set has other words, other categories and other holes than the first.
    if kind == WORDS:
        return [" ".join(rng.choice(["cat", "dog", f"w{seed}"], 4)) for _ in range(n)]
    if kind == "tokens":
        return [[*rng.choice(["cat", "dog", f"w{seed}"], 4)] for _ in range(n)]
    if kind == "letters":
        X = rng.choice(["a", "b", "c"], (n, 2), p=[0.2, 0.5, 0.3]).astype(object)
        X[X == "abc"[seed]] = "abc"[seed + 1]
        return X
    X = rng.normal(size=(n, 3)) * (1 + seed) + seed
    if kind == POSITIVE:
        return np.maximum(X, 0.0)
    if kind == "holes":
        X[rng.random((n, 3)) < 0.3] = np.nan
        X[:, seed] = np.nan if seed == 1 else 1.0
    return X


def dense(A):
    return A.toarray() if hasattr(A, "toarray") else np.asarray(A)


def learns(transformer, kind):
    """Whether fit depends on values, or a row's output on other rows."""
    X = rows(kind, 0)
    a = dense(clone(transformer).fit(rows(kind, 0)).transform(X))
    b = dense(clone(transformer).fit(rows(kind, 1)).transform(X))
    if a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return True
    fitted = clone(transformer).fit(rows(kind, 0))
    alone = np.vstack([dense(fitted.transform(X[i : i + 1])) for i in range(len(X))])
    return not np.allclose(alone, a, rtol=1e-12, atol=1e-14, equal_nan=True)


def name_of(value):
    # Never an address: all test processes must agree on the names.
    plain = isinstance(value, (str, int, type))
    return str(value) if plain else type(value).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("transformer", "kind"), FREE, ids=name_of)
def test_free_transformers_learn_nothing_and_map_row_by_row(transformer, kind):
    assert not learns(transformer, kind)
    planned = privacy_cost(transformer)
    assert planned == PrivacyCost.zero().with_assumptions(*planned.assumptions)
    assert all("warns where" in text for text in planned.assumptions)  # see test_free_steps.py
    assert privacy_cost(clone(transformer).fit(rows(kind, 0))) == planned


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("transformer", "kind"), LEARNING, ids=name_of)
def test_what_learns_is_not_free(transformer, kind):
    assert learns(transformer, kind)
    cost = privacy_cost(transformer)
    assert not cost.is_finite
    assert type(transformer).__name__ in cost.assumptions[0]


def test_imputers_that_may_drop_columns_are_not_free():
    # Whether a constant imputer drops empty columns depends on scikit-learn's version.
    assert not privacy_cost(SimpleImputer(strategy="constant", keep_empty_features=False)).is_finite
    # The call that the guide and the error about missing values name.
    assert privacy_cost(SimpleImputer(strategy="constant", keep_empty_features=True)).mu == 0.0


def test_the_probe_sees_every_class_of_the_maintained_list():
    probed = {type(transformer) for transformer, _ in FREE}
    assert probed == {*ALWAYS_FREE, *FREE_IF, FunctionTransformer}


def test_advice_says_what_to_do():
    for estimator, advice in [
        (StandardScaler(), "DPStandardScaler"),
        (MinMaxScaler(), "DPMinMaxScaler"),
        (LogisticRegression(), "DPLogisticRegression"),
        (LinearRegression(), "DPLinearRegression"),
        (Ridge(), "DPRidge"),
        (OneHotEncoder(), "categories"),
        (RBFSampler(gamma="scale"), "number"),
        (RandomForestClassifier(), "private estimator"),
    ]:
        (text,) = privacy_cost(estimator).assumptions
        assert text.startswith(f"{type(estimator).__name__} learns")
        assert advice in text


def test_functions_are_free_only_if_known_to_map_row_by_row():
    def centred(X):
        return X - X.max(axis=0)

    @row_wise
    def halved(X):
        return X / 2

    assert privacy_cost(FunctionTransformer(halved)).mu == 0
    assert privacy_cost(FunctionTransformer(np.log1p, np.expm1)).mu == 0
    for func in (centred, lambda X: X, np.cumsum, np.add):
        cost = privacy_cost(FunctionTransformer(func))
        assert not cost.is_finite
        assert "row_wise" in cost.assumptions[0]
    where = {"where": np.zeros((60, 3), dtype=bool)}
    assert not privacy_cost(FunctionTransformer(np.log1p, kw_args=where)).is_finite
    # The declaration survives what a pipeline and a search do to their parameters.
    assert privacy_cost(clone(make_pipeline(FunctionTransformer(halved), clf()))).mu == MU


def test_declared_classes_are_free_but_not_their_subclasses():
    @row_wise
    class Squares(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return X**2

    class Learning(Squares):
        pass

    assert privacy_cost(Squares()).mu == 0
    assert not privacy_cost(Learning()).is_finite


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (Normalizer(), "lost by clone"),
        (len, "cannot carry a declaration"),
        ("passthrough", "only functions and transformers"),
    ],
    ids=str,
)
def test_declarations_that_cannot_hold_are_refused(obj, message):
    with pytest.raises(TypeError, match=message):
        row_wise(obj)


def test_a_frozen_estimator_costs_what_it_learned():
    X, y = data()
    fitted = clf(epsilon=2.0).fit(X, y)
    assert privacy_cost(make_pipeline(FrozenEstimator(fitted))).mu == MU2
    frozen = FrozenEstimator(StandardScaler().fit(X))
    cost = privacy_cost(make_pipeline(frozen, clf()))
    assert not cost.is_finite
    assert "'frozenestimator': what the StandardScaler in a Froz" in cost.assumptions[0]
    row_wise(frozen)  # it was public data
    assert privacy_cost(clone(make_pipeline(frozen, clf()))).mu == MU


# ---- composition ----


def union(*parts):
    return FeatureUnion([(f"part{i}", part) for i, part in enumerate(parts)])


def columns(*parts, remainder="drop"):
    blocks = [(f"block{i}", part, [i]) for i, part in enumerate(parts)]
    return ColumnTransformer(blocks, remainder=remainder)


SCALER = PrivateCentre()  # epsilon = 1
GRID4 = {"C": [0.1, 1.0, 3.0, 10.0]}

# An object, and its mu^2 in units of the mu^2 of (1, 1e-5) and of (2, 1e-5), derived by hand.
TABLE = {
    "a model: itself": (clf(), 1, 0),
    "a mechanism: all its releases share its budget": (GaussianMechanism(n_releases=7), 1, 0),
    "a pipeline: the sum": (make_pipeline(SCALER, clf()), 2, 0),
    "steps of different budgets": (make_pipeline(SCALER, clf(epsilon=2.0)), 1, 1),
    "free steps": (make_pipeline(Normalizer(), PolynomialFeatures(), clf()), 1, 0),
    "passthrough and None": (Pipeline([("a", "passthrough"), ("b", None), ("c", clf())]), 1, 0),
    "only passthrough": (Pipeline([("a", "passthrough")]), 0, 0),
    "a pipeline in a pipeline": (make_pipeline(make_pipeline(SCALER, SCALER), clf()), 3, 0),
    "a union: a record passes all parts": (make_pipeline(union(SCALER, SCALER), clf()), 3, 0),
    "a union with a free and a dropped part": (union(SCALER, "drop", Normalizer()), 1, 0),
    "columns: a record passes all blocks": (columns(SCALER, SCALER, SCALER), 3, 0),
    "columns with dropped and passed ones": (columns(SCALER, "drop", "passthrough"), 1, 0),
    "columns with a private remainder": (columns(SCALER, remainder=PrivateCentre(2.0)), 1, 1),
    "columns of pipelines": (
        make_pipeline(
            columns(
                make_pipeline(SimpleImputer(strategy="constant", keep_empty_features=True), SCALER),
                OneHotEncoder(categories=[["a", "b"]], sparse_output=False),
            ),
            clf(epsilon=2.0),
        ),
        1,
        1,
    ),
    "a target with a function": (
        TransformedTargetRegressor(reg(), func=np.log1p, inverse_func=np.expm1),
        1,
        0,
    ),
    "a target with a private scaler": (
        TransformedTargetRegressor(reg(epsilon=2.0), transformer=SCALER),
        1,
        1,
    ),
    "a search: 4 x 4 + 1": (GridSearchCV(clf(), GRID4, cv=KFold(5)), 17, 0),
    "without refit": (GridSearchCV(clf(), GRID4, cv=KFold(5), refit=False), 16, 0),
    "a stratified search gets no discount": (GridSearchCV(clf(), GRID4, cv=5), 21, 0),
    "the same by default": (GridSearchCV(clf(), GRID4), 21, 0),
    "a regressor's folds are by index": (GridSearchCV(reg(), {"alpha": [1, 2]}, cv=3), 5, 0),
    "candidates with budgets of their own: 2 each, the costliest for the refit": (
        GridSearchCV(clf(), {"epsilon": [1.0, 2.0]}, cv=KFold(3)),
        2,
        3,
    ),
    "two grids": (
        GridSearchCV(clf(), [{"epsilon": [1.0]}, {"C": [1, 2], "epsilon": [2.0]}], cv=KFold(2)),
        1,
        3,
    ),
    "a search over a pipeline": (
        GridSearchCV(
            Pipeline([("s", SCALER), ("m", clf(epsilon=2.0))]), {"m__C": [1, 2]}, cv=KFold(3)
        ),
        5,
        5,
    ),
    "a search over steps": (
        GridSearchCV(
            Pipeline([("s", SCALER), ("m", clf())]),
            {"s": ["passthrough", Normalizer(), SCALER]},
            cv=KFold(2),
        ),
        6,  # 1 + 1 + 2, and 2 for the costliest again
        0,
    ),
    "a search in a pipeline": (
        make_pipeline(SCALER, GridSearchCV(clf(), GRID4, cv=KFold(5))),
        18,
        0,
    ),
    "a search in a search: (2 x 2 + 1)(2 x 1 + 1)": (
        GridSearchCV(
            GridSearchCV(clf(), {"C": [1, 2]}, cv=KFold(2)), {"refit": [True, "score"]}, cv=KFold(3)
        ),
        15,
        0,
    ),
    "a random search": (
        RandomizedSearchCV(clf(), {"C": loguniform(1, 9)}, n_iter=7, cv=KFold(3)),
        15,
        0,
    ),
    "a random search with fewer values than draws": (
        RandomizedSearchCV(clf(), {"epsilon": [1.0, 2.0]}, n_iter=7, cv=KFold(2)),
        1,
        2,
    ),
    "repeated folds": (
        GridSearchCV(clf(), GRID4, cv=RepeatedKFold(n_splits=5, n_repeats=2)),
        33,
        0,
    ),
    "random splits: a record can be in all of them": (
        GridSearchCV(clf(), GRID4, cv=ShuffleSplit(6)),
        25,
        0,
    ),
    "a halving search: 9 + 3 + 1 candidates": (
        HalvingGridSearchCV(clf(), {"C": list(range(1, 10))}, cv=KFold(3)),
        27,
        0,
    ),
    "a random halving search: 8 + 4 + 2 + 1": (
        HalvingRandomSearchCV(
            clf(), {"C": loguniform(1, 9)}, n_candidates=8, factor=2, cv=KFold(2), refit=False
        ),
        15,
        0,
    ),
}


@pytest.mark.parametrize("title", TABLE)
def test_composition(title):
    obj, ones, twos = TABLE[title]
    parts = [PrivacyCost.from_epsilon(1.0, 1e-5)] * ones
    parts += [PrivacyCost.from_epsilon(2.0, 1e-5)] * twos
    assert privacy_cost(obj).mu == PrivacyCost.compose(parts).mu
    assert privacy_cost(clone(obj)).mu == PrivacyCost.compose(parts).mu


def test_the_cost_of_one_step_is_the_step_s_own():
    budget = PrivacyCost.from_epsilon(0.3, 1e-3, neighboring="replace")
    model = clf(epsilon=budget, neighboring="replace")
    assert privacy_cost(model) == budget
    assert privacy_cost(make_pipeline(Normalizer(), model)) == budget
    assert privacy_cost(budget) == budget


def test_steps_of_different_relations_are_refused():
    pipeline = make_pipeline(SCALER, clf(neighboring="replace"))
    with pytest.raises(ValueError, match=r"'privatecentre' has neighboring='add.* 'dplog.*replace"):
        privacy_cost(pipeline)
    free_or_without = make_pipeline(Normalizer(), StandardScaler(), clf(neighboring="replace"))
    cost = privacy_cost(free_or_without)
    assert (cost.neighboring, cost.is_finite) == ("replace", False)


def test_units_are_not_mixed():
    person = PrivacyCost(0.1, unit="person")
    with pytest.raises(ValueError, match="unit"):
        privacy_cost(make_pipeline(SCALER, clf(epsilon=person)))


def test_steps_without_privacy_are_named_by_their_path():
    pipeline = Pipeline(
        [
            ("columns", ColumnTransformer([("num", make_pipeline(StandardScaler()), [0])])),
            ("scale", PrivateCentre(epsilon=math.inf)),
            ("model", RandomForestClassifier()),
        ]
    )
    cost = privacy_cost(pipeline)
    assert not cost.is_finite
    texts = "\n".join(cost.assumptions)
    assert "'columns__num__standardscaler': StandardScaler learns from the data" in texts
    assert "'model': RandomForestClassifier learns from the data" in texts
    assert "'scale': PrivateCentre has an infinite epsilon" in texts
    search = GridSearchCV(pipeline, {"columns__num__standardscaler": [SCALER, MinMaxScaler()]})
    texts = "\n".join(privacy_cost(search).assumptions)
    assert "'estimator__columns__num__standardscaler': MinMaxScaler learns" in texts


@pytest.mark.parametrize(
    "meta",
    [
        RANSACRegressor(reg()),
    ],
    ids=name_of,
)
def test_meta_estimators_without_a_rule_are_never_too_small(meta):
    cost = privacy_cost(make_pipeline(SCALER, meta))
    assert not cost.is_finite
    assert f"how often {type(meta).__name__} fits the private" in cost.assumptions[0]


def test_subclasses_do_not_inherit_a_rule():
    class Scaling(Normalizer):
        def fit(self, X, y=None):
            self.max_ = X.max()
            return self

    class OtherPipeline(Pipeline):
        pass

    assert "derived from Normalizer" in privacy_cost(Scaling()).assumptions[0]
    pipeline = OtherPipeline([("m", clf())])
    assert "register_cost_rule(OtherPipeline, Pipeline)" in privacy_cost(pipeline).assumptions[0]
    try:
        register_cost_rule(OtherPipeline, Pipeline)
        assert privacy_cost(pipeline).mu == MU
    finally:
        del _EXACT[OtherPipeline]


def test_wrappers_that_pass_on_attributes_are_not_taken_for_private():
    class Ensemble(BaseEstimator):
        def __init__(self, estimator):
            self.estimator = estimator

        def fit(self, X, y):
            return self

        def __getattr__(self, name):
            return getattr(self.estimator, name)

    X, y = data()
    assert not privacy_cost(Ensemble(clf().fit(X, y))).is_finite


def test_rules_can_be_registered_for_bases_and_by_name():
    class Base(BaseEstimator):
        def fit(self, X, y):
            return self

    class Child(Base): ...

    register_cost_rule(Base, lambda obj: [Fit("m", clf(), 2), Fit("", PrivacyCost(1.0))])
    assert (
        privacy_cost(Base()).mu
        == PrivacyCost.compose([PrivacyCost(MU)] * 2 + [PrivacyCost(1.0)]).mu
    )
    assert not privacy_cost(Child()).is_finite
    register_cost_rule(Base, lambda obj: PrivacyCost(0.5), subclasses=True)
    assert privacy_cost(Child()).mu == 0.5

    ByName = type(
        "SomeClass", (BaseEstimator,), {"fit": lambda self, X: self, "__module__": "pkg.x"}
    )
    register_cost_rule("pkg.SomeClass", Normalizer)
    assert privacy_cost(ByName()).mu == 0.0

    for cls, rule in [
        ("SomeClass", Pipeline),
        (3, Pipeline),
        (Base, PCA),
        (Base, "free"),
        ("pkg.SomeClass", 1.0),
    ]:
        with pytest.raises(TypeError):
            register_cost_rule(cls, rule)


@pytest.mark.parametrize(
    "obj", [Pipeline, 3, "some text", object()], ids=["class", "number", "text", "object"]
)
def test_what_is_no_estimator_is_refused(obj):
    with pytest.raises(TypeError, match="only estimators have a privacy cost"):
        privacy_cost(obj)


def test_parts_are_listed_with_path_and_times():
    search = GridSearchCV(
        Pipeline([("free", Normalizer()), ("m", clf())]), {"m__C": [1, 2]}, cv=KFold(3)
    )
    found = [(part.path, part.cost.mu, part.times) for part in cost_parts(search)]
    assert found == [
        ("", 0.0, 1),
        ("estimator__free", 0.0, 4),
        ("estimator__m", MU, 4),
        ("estimator__free", 0.0, 1),
        ("estimator__m", MU, 1),
    ]


# ---- assumptions ----


def assumes(obj, text):
    return any(text in assumption for assumption in privacy_cost(obj).assumptions)


def test_assumptions_are_stated():
    model = clf()
    assert privacy_cost(make_pipeline(SCALER, model)).assumptions == ()
    assert assumes(make_pipeline(SCALER, model, memory="cache"), "cache")
    assert assumes(clf(random_state=0), "random_state")
    search = GridSearchCV(model, GRID4, cv=KFold(5))
    assert privacy_cost(search).assumptions == (
        "the scores, the ranking and the choice of GridSearchCV are not private",
    )
    assert assumes(GridSearchCV(model, GRID4), "StratifiedKFold depend on labels")

    by_dtype = make_column_transformer((SCALER, make_column_selector(dtype_include=float)))
    assert assumes(by_dtype, "block 'privatecentre': the columns that a function picks")
    scaler = DPStandardScaler()
    by_name = make_column_transformer((scaler, make_column_selector(pattern="x")))
    assert privacy_cost(by_name).assumptions == ()

    encoder = OneHotEncoder(categories=[["a", "b"]])
    assert assumes(columns(encoder, SCALER), "sparse")
    fixed = ColumnTransformer([("a", encoder, [0]), ("b", SCALER, [1])], sparse_threshold=0)
    assert not assumes(fixed, "sparse")


def test_after_a_gaussian_mechanism_steps_are_post_processing_but_for_the_labels():
    pipeline = make_pipeline(SCALER, GaussianMechanism(20.0), PCA(2), Normalizer(), Ridge())
    cost = privacy_cost(pipeline)
    parts = [PrivacyCost.from_epsilon(e, 1e-5) for e in (1.0, 20.0)]
    assert cost.mu == PrivacyCost.compose(parts).mu
    assert len(cost.assumptions) == 2  # none for the Normalizer
    assert assumes(pipeline, "'ridge': Ridge learns from the rows that step 'gaussianmechanism'")
    # A private step still pays, for its labels; steps before the mechanism learn as they do.
    assert privacy_cost(make_pipeline(GaussianMechanism(), clf())).mu == pytest.approx(MU * 2**0.5)
    assert not privacy_cost(make_pipeline(PCA(), GaussianMechanism(), Ridge())).is_finite
    # Other blocks do not pass the mechanism.
    beside = make_pipeline(make_union(GaussianMechanism(), Normalizer()), Ridge())
    assert not privacy_cost(beside).is_finite
    assert not privacy_cost(make_pipeline(GaussianMechanism(math.inf), Ridge())).is_finite


def test_a_fitted_mechanism_counts_what_it_released():
    X, y = data()
    pipeline = make_pipeline(GaussianMechanism(20.0), LogisticRegression()).fit(X, y)
    once = PrivacyCost.from_epsilon(20.0, 1e-5).mu
    assert privacy_cost(pipeline).mu == once
    pipeline.predict(X)
    assert privacy_cost(pipeline).mu == pytest.approx(once * 2**0.5)


def test_targets():
    centred = TransformedTargetRegressor(reg(), func=lambda y: y - y.max(), inverse_func=abs)
    assert assumes(centred, "row_wise")
    assert not privacy_cost(
        TransformedTargetRegressor(reg(), transformer=StandardScaler())
    ).is_finite
    assert not privacy_cost(TransformedTargetRegressor()).is_finite
    assert privacy_cost(TransformedTargetRegressor(reg())).mu == MU


# ---- fitted objects ----


@pytest.mark.parametrize(
    "obj",
    [
        make_pipeline(SCALER, Normalizer(), clf(epsilon=2.0)),
        make_pipeline(columns(SCALER, "passthrough", PrivateCentre(3.0)), clf()),
        make_pipeline(union(SCALER, "passthrough", PrivateCentre(3.0)), clf()),
        make_pipeline(make_pipeline(SCALER), TransformedTargetRegressor(reg(), transformer=SCALER)),
        GridSearchCV(clf(), {"epsilon": [1.0, 1.0], "C": [1.0, 2.0]}, cv=KFold(3)),
        GridSearchCV(make_pipeline(SCALER, clf()), {"dplogisticregression__C": [1.0, 2.0]}, cv=2),
        GridSearchCV(clf(), {"C": [1.0, 2.0]}, cv=KFold(3), refit=False),
        GridSearchCV(clf(), {"C": [1.0, 2.0]}, cv=[([0, 1, 2, 40], [3]), (range(60), [4])]),
        RandomizedSearchCV(clf(), {"C": loguniform(1, 9)}, n_iter=3, cv=KFold(2)),
        RandomizedSearchCV(
            clf(), {"epsilon": uniform(1, 9)}, n_iter=3, cv=KFold(2), random_state=3, refit=False
        ),
        HalvingGridSearchCV(clf(), {"C": [1, 2, 3]}, cv=KFold(2), min_resources=20),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_fitted_costs_what_was_planned(obj):
    X, y = data()
    planned = privacy_cost(obj)
    assert planned.is_finite
    before = repr(obj)
    fitted = clone(obj).fit(X, y)
    assert privacy_cost(fitted) == planned
    assert privacy_cost(clone(fitted)) == planned
    assert repr(obj) == before


def test_fitted_costs_state_what_the_fit_assumed():
    X, y = data()
    pipeline = make_pipeline(SCALER, clf(classes=None)).fit(X, y)
    assert assumes(pipeline, "class labels")


def test_the_refit_costs_what_the_chosen_candidate_costs():
    X, y = data()
    search = GridSearchCV(clf(), {"epsilon": [0.5, 50.0]}, cv=KFold(2)).fit(X, y)
    best = search.best_estimator_.epsilon
    parts = [PrivacyCost.from_epsilon(e, 1e-5) for e in (0.5, 50.0, best)]
    assert privacy_cost(search).mu == PrivacyCost.compose(parts).mu


def test_data_frames_and_callable_columns():
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    blocks = [("picked", SCALER, make_column_selector(dtype_include=float))]
    pipeline = make_pipeline(ColumnTransformer(blocks), clf())
    planned = privacy_cost(pipeline)
    assert privacy_cost(pipeline.fit(frame, y)) == planned
    assert planned.mu == pytest.approx(MU * 2**0.5)


# ---- searches ----

N = 60
GROUPS = np.arange(N) // 4
BY_INDEX = [
    KFold(5),
    KFold(7, shuffle=True, random_state=0),
    RepeatedKFold(n_splits=4, n_repeats=3, random_state=0),
    ShuffleSplit(5, test_size=0.02, random_state=0),
    TimeSeriesSplit(4),
    PredefinedSplit([0] * 20 + [1] * 30 + [-1] * 10),
    [(list(range(50)), list(range(50, 60))), (list(range(10, 60)), list(range(10)))],
    [(np.arange(N) < 30, np.arange(N) >= 30)],
    [([1, 1, 1, 2], [0]), ([1, 2], [0])],
]
BY_DATA = [
    StratifiedKFold(5),
    RepeatedStratifiedKFold(n_splits=3, n_repeats=2),
    StratifiedShuffleSplit(5),
    GroupKFold(4),
    GroupShuffleSplit(3),
    StratifiedGroupKFold(3),
]


def most_frequent(splits):
    """Largest sum over training sets of the squared multiplicity of one record."""
    totals = np.zeros(N)
    for train, _ in splits:
        totals += np.bincount(np.arange(N)[train], minlength=N) ** 2
    return totals.max()


@pytest.mark.parametrize("cv", BY_INDEX, ids=lambda cv: type(cv).__name__)
def test_training_sets_are_counted_by_index(cv):
    X, y = data(N)
    times, _ = training_sets_per_record(cv, classifier=True)
    # A random split that happens to leave a record out of the training set once may be charged
    # for it nevertheless.
    found = most_frequent(cv if isinstance(cv, list) else cv.split(X, y))
    assert times >= found
    if isinstance(cv, KFold | RepeatedKFold | TimeSeriesSplit):
        assert times == found


@pytest.mark.parametrize("cv", BY_DATA, ids=lambda cv: type(cv).__name__)
def test_splitters_that_see_labels_or_groups_get_no_discount(cv):
    times, (text,) = training_sets_per_record(cv, classifier=True)
    assert times == cv.get_n_splits()
    assert type(cv).__name__ in text


@pytest.mark.parametrize(("shuffle", "moved"), [(False, 5), (True, 100)])
def test_why_stratified_folds_get_no_discount(shuffle, moved):
    y = np.random.default_rng(0).integers(0, 3, 750)
    other = y.copy()
    other[1] = (y[1] + 1) % 3
    folds = [np.empty(750, dtype=int), np.empty(750, dtype=int)]
    splitter = StratifiedKFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
    for labels, fold in zip([y, other], folds, strict=True):
        for k, (_, test) in enumerate(splitter.split(y[:, None], labels)):
            fold[test] = k
    others = np.delete(folds[0] != folds[1], 1)
    assert np.count_nonzero(others) > moved


def test_an_int_means_stratified_folds_for_classifiers_only():
    assert training_sets_per_record(4, classifier=False) == (3, ())
    assert training_sets_per_record(None, classifier=False) == (4, ())
    assert training_sets_per_record(4, classifier=True)[0] == 4
    assert training_sets_per_record(None, classifier=True)[0] == 5
    pipeline = make_pipeline(SCALER, reg())
    assert privacy_cost(GridSearchCV(pipeline, {"dpridge__alpha": [1]}, cv=3)).mu == (
        PrivacyCost.compose([PrivacyCost(MU)] * 6).mu
    )


class KFoldOfMine(KFold):
    pass


@pytest.mark.parametrize(
    "cv",
    [LeaveOneOut(), LeaveOneGroupOut(), KFoldOfMine(), iter([])],
    ids=name_of,
)
def test_unknown_splitters_are_refused_with_a_list_of_known_ones(cv):
    with pytest.raises(ValueError, match="not known; use KFold, RepeatedKFold"):
        privacy_cost(GridSearchCV(clf(), GRID4, cv=cv))


def test_the_error_of_a_nested_search_names_its_step():
    pipeline = make_pipeline(SCALER, GridSearchCV(clf(), GRID4, cv=LeaveOneOut()))
    with pytest.raises(ValueError, match="^step 'gridsearchcv': in how many training sets"):
        privacy_cost(pipeline)


def test_groups_are_counted_after_the_fit():
    X, y = data(N)
    search = GridSearchCV(clf(), {"C": [1.0, 2.0]}, cv=LeaveOneGroupOut(), refit=False)
    search.fit(X, y, groups=np.arange(N) % 3)
    assert privacy_cost(search).mu == PrivacyCost.compose([PrivacyCost(MU)] * 6).mu


def test_random_searches_are_planned_for_the_costliest_draw():
    space = {"epsilon": [0.5, 1.0, 2.0], "C": loguniform(1, 9)}
    search = RandomizedSearchCV(clf(), space, n_iter=4, cv=KFold(2))
    assert privacy_cost(search).mu == PrivacyCost.compose([PrivacyCost(MU2)] * 5).mu
    X, y = data()
    search.set_params(random_state=0)  # one time in eighty all draws are the costliest
    assert privacy_cost(search.fit(X, y)).mu < PrivacyCost.compose([PrivacyCost(MU2)] * 5).mu
    unknown = RandomizedSearchCV(clf(), {"epsilon": uniform(1, 2)}, cv=KFold(2))
    with pytest.raises(ValueError, match=r"\['epsilon'\].*random_state"):
        privacy_cost(unknown)


@pytest.mark.parametrize("classes", [[None, [0, 1]], [[0, 1], None]])
def test_random_searches_state_what_any_draw_may_assume(classes):
    space = {"classes": classes, "C": loguniform(1, 9)}
    search = RandomizedSearchCV(DPLogisticRegression(), space, n_iter=1, cv=KFold(2))
    assert CLASSES_FROM_Y in privacy_cost(search).assumptions


def test_candidates_of_unknown_estimators_are_all_priced():
    # The cost of a third party's estimator may depend on any of its parameters.
    class Growing(PrivateCentre):
        def planned_cost(self):
            return PrivacyCost(2.0 if self.with_std else 1.0)

    search = GridSearchCV(Growing(), {"with_std": [True, False]}, cv=KFold(2), refit=False)
    assert privacy_cost(search).mu == PrivacyCost.compose([PrivacyCost(2.0), PrivacyCost(1.0)]).mu


def test_a_large_grid_is_priced_quickly():
    grid = {"C": list(range(1, 1001)), "max_iter": [5, 10], "epsilon": [1.0, 2.0]}
    parts = cost_parts(GridSearchCV(clf(), grid, cv=KFold(2), refit=False))
    assert [part.times for part in parts] == [1, 2000, 2000]


def test_halving_refuses_what_cannot_be_planned():
    space = {"C": loguniform(1, 9)}
    exhaust = HalvingRandomSearchCV(clf(), space, cv=KFold(2), min_resources=10)
    with pytest.raises(ValueError, match="n_candidates='exhaust'"):
        privacy_cost(exhaust)
    growing = HalvingGridSearchCV(clf(), GRID4, resource="epsilon", max_resources=9, cv=KFold(2))
    with pytest.raises(ValueError, match="resource='epsilon'"):
        privacy_cost(growing)
    X, y = data()
    exhaust.set_params(random_state=0).fit(X, y)
    fits = sum(exhaust.n_candidates_) + 1
    assert privacy_cost(exhaust).mu == PrivacyCost.compose([PrivacyCost(MU)] * fits).mu


@pytest.mark.parametrize(
    ("search", "changes", "named"),
    [
        (GridSearchCV(clf(), GRID4, cv=KFold(5)), {"cv": KFold(2)}, "cv"),
        (GridSearchCV(clf(), GRID4, cv=KFold(5)), {"cv": 2}, "cv"),
        (GridSearchCV(clf(), GRID4, cv=KFold(3), refit=False), {"cv": KFold(2)}, "cv"),
        (GridSearchCV(clf(), GRID4, cv=KFold(3)), {"estimator__epsilon": 0.01}, "estimator"),
        (GridSearchCV(clf(), GRID4, cv=KFold(3)), {"estimator__epsilon": 9.0}, "estimator"),
        (GridSearchCV(clf(random_state=0), GRID4), {"estimator__random_state": None}, "estimator"),
        (GridSearchCV(clf(), {"delta": [1e-5]}, cv=3), {"estimator": reg()}, "estimator"),
        (
            GridSearchCV(make_pipeline(SCALER, clf()), {"dplogisticregression__C": [1.0]}, cv=2),
            {"estimator__privatecentre": Normalizer()},
            "estimator",
        ),
        (
            HalvingGridSearchCV(clf(), {"C": [1, 2, 3]}, cv=KFold(3), min_resources=20),
            {"cv": KFold(2)},
            "cv",
        ),
    ],
    ids=name_of,
)
@pytest.mark.filterwarnings("ignore")
def test_parameters_changed_after_a_search_do_not_make_it_cheaper(search, changes, named):
    X, y = data()
    fitted = clone(search).fit(X, y)
    planned = privacy_cost(fitted)
    assert planned.is_finite
    cost = privacy_cost(fitted.set_params(**changes))
    assert not cost.is_finite
    assert any(
        text.startswith(f"{named} of {type(search).__name__} was") for text in cost.assumptions
    )
    assert privacy_cost(clone(fitted)).is_finite


def test_what_a_search_has_noted_is_not_changed_by_its_parameters():
    X, y = data()
    search = GridSearchCV(clf(), {"C": [1.0, 2.0]}, cv=KFold(3)).fit(X, y)
    planned = privacy_cost(search)
    assert privacy_cost(search.set_params(refit=False)) == planned
    assert privacy_cost(search.set_params(param_grid={"C": [1.0]})) == planned
    assert privacy_cost(search.set_params(estimator__C=3.0)) == planned
    unrefitted = GridSearchCV(clf(), {"C": [1.0, 2.0]}, cv=KFold(3), refit=False).fit(X, y)
    assert privacy_cost(unrefitted.set_params(refit=True)).mu < planned.mu
    # Rows that the refitted estimator released later are paid for.
    released = GridSearchCV(
        make_pipeline(GaussianMechanism(), clf()), {"dplogisticregression__C": [1.0]}, cv=KFold(2)
    ).fit(X, y)
    before = privacy_cost(released)
    released.predict(X)
    assert math.inf > privacy_cost(released).mu > before.mu


def test_a_class_derived_from_a_private_estimator_inherits_its_cost_and_can_add_to_it():
    class Logs(DPRidge):
        def fit(self, X, y):
            return super().fit(X, y)

    class Counts(Logs):
        def planned_cost(self):
            return super().planned_cost() + PrivacyCost(0.5)

    X = np.random.default_rng(0).normal(size=(60, 2))
    for derived, expected in ((Logs, MU), (Counts, math.hypot(MU, 0.5))):
        model = derived(epsilon=1.0, y_bounds=(-5, 5))
        assert privacy_cost(model).mu == pytest.approx(expected)
        assert privacy_cost(model.fit(X, X[:, 0])).mu == pytest.approx(expected)


def test_third_party_searches_are_not_guessed():
    class MySearch(GridSearchCV):
        pass

    assert not privacy_cost(MySearch(clf(), GRID4, cv=KFold(2))).is_finite


def test_clusterers_and_others_are_without_privacy():
    assert not privacy_cost(KMeans()).is_finite
    assert rule_for(KMeans())(KMeans()).assumptions[0].startswith("KMeans learns")
    assert not privacy_cost(make_pipeline(SCALER, DPLinearRegression(math.inf))).is_finite


def test_a_fitted_search_says_of_a_step_once_that_it_has_no_privacy():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(clf(), {"epsilon": [math.inf]}, cv=KFold(2)).fit(X, y)
    for found in (clone(search), search):
        texts = privacy_cost(found).assumptions
        assert sum("DPLogisticRegression" in text for text in texts) == 1
