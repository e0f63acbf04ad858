"""Steps priced as free: one row moves no other, in every setting; and what they tell otherwise."""

import copy
import functools
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.special
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
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
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import (
    DPRidge,
    DPStandardScaler,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    privacy_cost,
)
from skdp.cost import row_wise
from skdp.cost._density import is_dense
from skdp.cost._rules import ALWAYS_FREE, FREE_IF

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")

KNOTS = np.linspace(-3, 3, 6)[:, None] * np.ones(3)
CATEGORIES = [[0.0, 1.0, 2.0, np.nan]] * 3
BOTH = [False, True]
# Every parameter that the way of computing depends on, with all its values.
GRIDS = {
    AdditiveChi2Sampler: {"sample_steps": [1, 2, 3, 4], "sample_interval": [0.5]},
    Binarizer: {"threshold": [0, 0.5], "copy": BOTH},
    GaussianRandomProjection: {
        "random_state": [0],
        "n_components": [2],
        "compute_inverse_components": BOTH,
    },
    MissingIndicator: {
        "features": ["all", "missing-only"],
        "sparse": ["auto", *BOTH],
        "missing_values": [np.nan, 0.0],
        "error_on_new": [False],
    },
    Normalizer: {"norm": ["l1", "l2", "max"], "copy": BOTH},
    OneHotEncoder: {
        "categories": [CATEGORIES, "auto"],
        "handle_unknown": ["error", "ignore", "infrequent_if_exist", "warn"],
        "drop": [None, "first", "if_binary"],
        "sparse_output": BOTH,
        "min_frequency": [None, 3],
        "max_categories": [None, 2],
    },
    OrdinalEncoder: {
        "categories": [CATEGORIES, "auto"],
        "handle_unknown": ["use_encoded_value"],
        "unknown_value": [-1],
        "encoded_missing_value": [-2, np.nan],
        "min_frequency": [None, 3],
        "max_categories": [None, 2],
    },
    PolynomialCountSketch: {"random_state": [0], "degree": [1, 2, 3], "coef0": [0, 1]},
    PolynomialFeatures: {
        "degree": [2, 3],
        "interaction_only": BOTH,
        "include_bias": BOTH,
        "order": ["C", "F"],
    },
    RBFSampler: {"random_state": [0], "gamma": [1.0, "scale"], "n_components": [5]},
    SimpleImputer: {
        "strategy": ["constant", "mean"],
        "keep_empty_features": BOTH,
        "add_indicator": BOTH,
        "fill_value": [None, 3],
        "missing_values": [np.nan, 0.0, -1.0],
    },
    SkewedChi2Sampler: {"random_state": [0], "n_components": [5], "skewedness": [1.0, 9.0]},
    SparseRandomProjection: {
        "random_state": [0],
        "n_components": [2],
        "dense_output": BOTH,
        "compute_inverse_components": BOTH,
    },
    SplineTransformer: {
        "knots": [KNOTS, "uniform"],
        "degree": [1, 3],
        "extrapolation": ["error", "constant", "linear", "continue", "periodic"],
        "include_bias": BOTH,
        "sparse_output": BOTH,
        "handle_missing": ["error", "zeros"],
    },
    TfidfTransformer: {
        "norm": ["l1", "l2", None],
        "use_idf": BOTH,
        "sublinear_tf": BOTH,
        "smooth_idf": BOTH,
    },
}
# Take words, one document at a time; probed in test_cost.
OF_WORDS = {CountVectorizer, FeatureHasher, HashingVectorizer, TfidfVectorizer}


def settings(cls):
    grid = {name: GRIDS[cls][name] for name in GRIDS[cls] if name in cls().get_params()}
    return [
        cls(**dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values())
    ]


def neighbours(trial):
    """Two data sets that differ in one row: integers, reals, positive numbers or with holes."""
    rng = np.random.default_rng(trial)
    kind, n = trial % 4, 3 + trial
    X = rng.normal(size=(n, 3)) if kind < 2 else rng.integers(0, 3, (n, 3)).astype(float)
    if kind == 1:
        X = np.abs(X)
    if kind == 3:
        X[rng.random((n, 3)) < 0.3] = np.nan
    row = int(rng.integers(n))
    Z = X.copy()
    # Least, greatest or missing: what others could be filled or compared with.
    Z[row] = rng.choice([0, 1, 2, 0.3], 3) if kind != 3 else rng.permutation([-2.5, 2.5, np.nan])
    return row, X, Z


def moves_others(transformer, trials=8):
    """Whether one row changes the output at others, its type or its format."""
    for trial, form in itertools.product(range(trials), (np.array, sp.csr_array, sp.csc_array)):
        row, X, Z = neighbours(trial)
        if form is not np.array and isinstance(transformer, SplineTransformer):
            continue  # refused
        try:
            a, b = (clone(transformer).fit_transform(form(data)) for data in (X, Z))
        except (TypeError, ValueError):  # it refuses such data, and may
            continue
        if (type(a), a.dtype, a.shape) != (type(b), b.dtype, b.shape):
            return True
        a, b = (np.delete(m.toarray() if sp.issparse(m) else m, row, 0) for m in (a, b))
        if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return True
    return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", GRIDS, ids=lambda cls: cls.__name__)
def test_what_is_free_moves_no_other_row_in_any_setting(cls):
    made = settings(cls)
    free = [transformer for transformer in made if privacy_cost(transformer).mu == 0.0]
    assert free
    assert [transformer for transformer in free if moves_others(transformer)] == []
    if cls in FREE_IF:  # the probe sees what learns
        assert any(moves_others(t, 40) for t in made if not privacy_cost(t).is_finite)


def test_the_grids_hold_every_free_class():
    assert {*GRIDS, *OF_WORDS} == {*ALWAYS_FREE, *FREE_IF}


@pytest.mark.skipif(
    "handle_missing" not in SplineTransformer().get_params(), reason="not in this scikit-learn"
)
def test_splines_that_replace_missing_values_from_other_rows_are_not_free():
    splines = SplineTransformer(knots=KNOTS, handle_missing="zeros", sparse_output=True)
    (text,) = privacy_cost(splines).assumptions
    assert "handle_missing='error'" in text
    assert moves_others(splines.set_params(extrapolation="continue"), 40)


# ---- declarations and functions ----


@row_wise
def halved(X):
    return X / 2


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, X):
        return X * self.factor


def test_what_wraps_a_declared_function_is_not_declared():
    @functools.wraps(halved)
    def centred(X):
        return halved(X) - X.max(axis=0)

    assert privacy_cost(FunctionTransformer(halved)).mu == 0.0
    for func in (centred, functools.lru_cache(halved), functools.partial(halved)):
        assert not privacy_cost(FunctionTransformer(func)).is_finite
    shallow = copy.copy(row_wise(Scale(2.0)))
    shallow.__call__ = centred
    assert not privacy_cost(FunctionTransformer(shallow)).is_finite


def test_declarations_survive_copies_and_pickles():
    class Holder:
        @row_wise
        def method(self, X):
            return X

        @staticmethod
        @row_wise
        def static(X):
            return X

    scale = row_wise(Scale(2.0))
    frozen = row_wise(FrozenEstimator(StandardScaler().fit(np.ones((2, 2)))))
    for declared in (scale, copy.deepcopy(scale), pickle.loads(pickle.dumps(scale)), halved):
        assert privacy_cost(clone(FunctionTransformer(declared))).mu == 0.0
    for declared in (Holder().method, Holder.static, Holder().static):
        assert privacy_cost(FunctionTransformer(declared)).mu == 0.0
    for made in (frozen, copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen)), clone(frozen)):
        assert privacy_cost(made).mu == 0.0
    stored = skops.io.loads(
        skops.io.dumps(frozen), trusted=["sklearn.frozen._frozen.FrozenEstimator"]
    )
    assert privacy_cost(stored).mu == 0.0
    frozen.set_params(estimator=StandardScaler().fit(np.ones((2, 2))))  # another one
    assert not privacy_cost(frozen).is_finite


def test_only_ufuncs_of_numpy_and_scipy_count_as_elementwise():
    seen = []

    def running_maximum(value):
        seen.append(value)
        return max(seen)

    for func in (np.log1p, np.abs, scipy.special.expit):
        assert privacy_cost(FunctionTransformer(func)).mu == 0.0
    for func in (np.frompyfunc(running_maximum, 1, 1), np.modf, np.add, np.vectorize(abs)):
        assert not privacy_cost(FunctionTransformer(func)).is_finite


# ---- warnings that the data decide ----


def said(obj, X, y=None):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clone(obj).fit(X, y)
        if hasattr(obj, "transform"):
            clone(obj).fit_transform(X)
    return [str(w.message)[:30] for w in found if w.category is UserWarning]


def regressor(**params):
    return TransformedTargetRegressor(DPRidge(20.0, y_bounds=(0, 9), random_state=0), **params)


UNKNOWN, INVERSE = "unknown categories", "come back from the inverse"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (FunctionTransformer(np.square, np.sqrt), INVERSE),
        (FunctionTransformer(np.square, np.sqrt, check_inverse=False), None),
        (FunctionTransformer(np.square), None),
        (FunctionTransformer(None, np.sqrt), None),
        (OneHotEncoder(categories=[[1.0, 2.0]], drop="first", handle_unknown="ignore"), UNKNOWN),
        (OneHotEncoder(categories=[[1.0, 2.0]], handle_unknown="warn"), UNKNOWN),
        (OneHotEncoder(categories=[[1.0, 2.0]], handle_unknown="ignore"), None),
        (OneHotEncoder(categories=[[1.0, 2.0]], handle_unknown="infrequent_if_exist"), None),
        (regressor(func=np.square, inverse_func=np.sqrt), INVERSE),
        (regressor(func=np.square, inverse_func=np.sqrt, check_inverse=False), None),
        (regressor(transformer=DPStandardScaler(20.0, bounds=(0, 2))), INVERSE),
        (regressor(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_warnings_that_the_data_decide_are_assumptions(obj, text):
    usual = np.array([[1.0], [2.0]] * 50)
    other = usual.copy()
    other[0] = -3.0
    if isinstance(obj, TransformedTargetRegressor):
        told = said(obj, usual, usual[:, 0]) != said(obj, usual, other[:, 0])
    else:
        told = said(obj, usual) != said(obj, other)
    assumptions = [a for a in privacy_cost(obj).assumptions if "random_state" not in a]
    if text is None:
        assert (told, assumptions) == (False, [])
        return
    if not isinstance(getattr(obj, "transformer", None), DPStandardScaler):  # noise may tell more
        assert told
    assert len(assumptions) == 1 and text in assumptions[0]
    assert privacy_cost(obj).is_finite


# ---- the format of a ColumnTransformer's output ----


def test_which_output_is_known_to_be_dense():
    one_hot = OneHotEncoder(categories=[["a", "b"]], sparse_output=False)
    always = [
        "drop",
        one_hot,
        SplineTransformer(),
        OrdinalEncoder(),
        DPStandardScaler(),
        GaussianMechanism(),
        RBFSampler(),
        MissingIndicator(sparse=False),
        make_pipeline("passthrough", one_hot, Normalizer(), FunctionTransformer(np.tanh)),
        make_union(one_hot, GaussianRandomProjection()),
        ColumnTransformer([("hash", HashingVectorizer(), 0)], sparse_threshold=0),
        make_column_transformer((one_hot, [0])),
        FrozenEstimator(one_hot),
    ]
    if_given_dense = ["passthrough", None, Normalizer(), SparseRandomProjection(), SimpleImputer()]
    perhaps_sparse = [
        CountVectorizer(),
        FeatureHasher(),
        HashingVectorizer(),
        TfidfTransformer(),
        TfidfVectorizer(),
        MissingIndicator(),
        OneHotEncoder(),
        FunctionTransformer(sp.csr_array),
        make_union(one_hot, CountVectorizer()),
        make_column_transformer((Normalizer(), [0])),
        make_pipeline(one_hot, FunctionTransformer(sp.csr_array)),
        BaseEstimator(),
    ]
    assert [obj for obj in always if not is_dense(obj)] == []
    assert [obj for obj in if_given_dense if is_dense(obj) or not is_dense(obj, True)] == []
    assert [obj for obj in perhaps_sparse if is_dense(obj, True)] == []


def states_format(obj):
    return any("sparse_threshold" in text for text in privacy_cost(obj).assumptions)


@pytest.mark.parametrize(("sparse_threshold", "extra"), [(0.3, "aa bb cc dd ee"), (1.0, "")])
def test_the_format_of_columns_is_stated_where_the_data_decide_it(sparse_threshold, extra):
    width = 1 if sparse_threshold == 1.0 else 8
    words = HashingVectorizer(n_features=width, norm=None, alternate_sign=False)
    columns = ColumnTransformer(
        [("words", words, 0), ("rest", "passthrough", [1])], sparse_threshold=sparse_threshold
    )
    frames = [pd.DataFrame({0: ["aa bb"] * 13 + ["aa"] * 7, 1: 1.0}) for _ in range(2)]
    frames[1].loc[0, 0] = extra
    fitted = [clone(columns).fit(frame) for frame in frames]
    assert fitted[0].sparse_output_ != fitted[1].sparse_output_  # one record decides
    for obj in (columns, *fitted):
        assert states_format(obj)
    assert not states_format(clone(columns).set_params(sparse_threshold=0))
    sparse = next(obj for obj in fitted if obj.sparse_output_)
    assert states_format(sparse.set_params(sparse_threshold=0))  # after the fit
    assert not states_format(make_column_transformer((DPStandardScaler(), [0, 1])))
    assert states_format(make_column_transformer(("passthrough", [0])))  # where X is sparse


# ---- parameters changed after the fit ----

LETTERS = np.array([["a"], ["b"], ["c"]] * 5, dtype=object)
NUMBERS = np.random.default_rng(0).normal(size=(20, 2))
HOLES = np.where(NUMBERS > 1.0, np.nan, NUMBERS)
HOLES[:, 1] = 1.0
WORDS = ["cat dog", "dog fish"]
POINTS = np.linspace(-3, 3, 5)[:, None] * np.ones(2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("learned", "X", "given"),
    [
        (OneHotEncoder(), LETTERS, {"categories": [["a", "b"]]}),
        (OneHotEncoder(), LETTERS, {"categories": [["a", "b", "x"]]}),
        (OneHotEncoder(), LETTERS.astype("U1"), {"categories": [["a", "b", "cat"]]}),
        (OneHotEncoder(), LETTERS, {"categories": [["a", "b", None]]}),
        (OneHotEncoder(), NUMBERS, {"categories": [["a", "b"], [1.0]]}),
        (
            OneHotEncoder(categories=[["a", "b", "c"]], max_categories=2),
            LETTERS,
            {"max_categories": None},
        ),
        (OrdinalEncoder(), LETTERS, {"categories": [["a", "b"]]}),
        (CountVectorizer(), WORDS, {"vocabulary": ["cat"]}),
        (TfidfVectorizer(use_idf=False), WORDS, {"vocabulary": ["cat"]}),
        (TfidfVectorizer(vocabulary=["cat"]), WORDS, {"use_idf": False}),
        (TfidfTransformer(), np.abs(NUMBERS), {"use_idf": False}),
        (MissingIndicator(), HOLES, {"features": "all"}),
        (RBFSampler(gamma="scale"), NUMBERS, {"gamma": 1.0}),
        (
            SimpleImputer(keep_empty_features=True),
            HOLES,
            {"strategy": "constant", "fill_value": 0.0},
        ),
        (
            SimpleImputer(keep_empty_features=True),
            HOLES,
            {"strategy": "constant", "fill_value": "x"},
        ),
        (
            SimpleImputer(strategy="constant", keep_empty_features=True, add_indicator=True),
            HOLES,
            {"add_indicator": False},
        ),
        (SplineTransformer(), NUMBERS, {"knots": POINTS}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_learned_does_not_become_free(learned, X, given):
    fitted = clone(learned).fit(X).set_params(**given)
    (text,) = privacy_cost(fitted).assumptions
    assert not privacy_cost(fitted).is_finite
    assert f"{type(learned).__name__} was fitted with other parameters" in text
    assert privacy_cost(clone(fitted)) == PrivacyCost.zero()
    # A budget fits a clone.
    model = PrivacyBudget(make_pipeline(fitted, DPRidge(y_bounds=(0, 1))))
    assert model.planned_cost().is_finite


@pytest.mark.parametrize(
    ("transformer", "X"),
    [
        (OneHotEncoder(categories=[["c", "b", "a", "longer"]]), LETTERS.astype("U1")),
        (OneHotEncoder(categories=[[0.1, 0.2, np.nan]]), np.float32([[0.1], [0.2], [np.nan]])),
        (
            OrdinalEncoder(categories=[["a", None, np.nan]]),
            np.array([["a"], [None], [np.nan]], dtype=object),
        ),
        (OrdinalEncoder(categories=[np.array(["a", "b", "c"])]), LETTERS),
        (SimpleImputer(strategy="constant", keep_empty_features=True), HOLES),
        (SimpleImputer(strategy="constant", keep_empty_features=True), LETTERS),
        (
            SimpleImputer(strategy="constant", keep_empty_features=True, fill_value=0.1),
            HOLES.astype(np.float32),
        ),
        (
            SimpleImputer(strategy="constant", keep_empty_features=True, fill_value=np.nan),
            HOLES,
        ),
        (SplineTransformer(knots=POINTS.tolist(), degree=1), NUMBERS),
        (SplineTransformer(knots=POINTS, extrapolation="periodic"), NUMBERS),
        (TfidfTransformer(use_idf=False), np.abs(NUMBERS)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_given_stays_free(transformer, X):
    assert privacy_cost(clone(transformer).fit(X)) == PrivacyCost.zero()


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_a_target_s_function_is_that_of_the_fit():
    X, y = NUMBERS, np.abs(NUMBERS[:, 0])
    model = regressor(func=lambda y: y - y.max(), inverse_func=abs, check_inverse=False).fit(X, y)
    model.set_params(func=np.log1p)
    assert not privacy_cost(model).is_finite
    paid = regressor(transformer=DPStandardScaler(20.0, bounds=(0, 9)), check_inverse=False)
    cost = privacy_cost(paid.fit(X, y)).mu
    assert privacy_cost(paid.set_params(transformer=None)).mu == cost
