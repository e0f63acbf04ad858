"""Bad input: clear errors before anything is spent, and never a value of the data in a message.

The marker values below are put into the data in every way that a user may do by mistake; no text
that reaches the user (messages, chained exceptions, notes, warnings) may contain them.
"""

import warnings
from decimal import Decimal
from math import inf, nan

import numpy as np
import pandas as pd
import polars as pl
import pytest
import registry
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor

import skdp.noise
from skdp import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    DPSelectKBest,
    GaussianMechanism,
    PrivacyCost,
)
from skdp.exceptions import PrivacyBudgetError, PrivacyLeakWarning, PrivacyWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]
DECLARED = registry.all_entries(registry.declared)
VARIANTS = registry.all_entries(registry.variants)
for_each = pytest.mark.parametrize("entry", DECLARED, ids=registry.ids(DECLARED))
for_each_variant = pytest.mark.parametrize("entry", VARIANTS, ids=registry.ids(VARIANTS))
for_each_name = pytest.mark.parametrize("name", sorted(registry.CLASSES))
LABELLED = [entry for entry in DECLARED if is_classifier(entry.estimator)]
NUMERIC = [entry for entry in DECLARED if is_regressor(entry.estimator)]
SUPERVISED = [
    e for e in DECLARED if registry.has_labels(e.estimator) or registry.has_numbers(e.estimator)
]

WORD, NUMBER = "SECRET-7431", 74317431.25
MARKERS = ("SECRET", "7431", "7.43")
N, D = 30, registry.N_FEATURES
CONFIGURATIONS = {
    "plain": {},
    "nothing checked": {"assume_finite": True, "skip_parameter_validation": True},
}
for_each_configuration = pytest.mark.parametrize(
    "configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS
)


def spend_nothing(patch):
    """Whatever reaches the noise fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("something was spent")

    patch.setattr(skdp.noise, "add_noise", refuse)


def texts_of(error):
    """All texts of an exception and of those it is chained to."""
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found += [str(error), repr(error), *getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return found


def outcome(function, *args):
    """The exception of a call, or None; everything it says is free of the markers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function(*args)
            error = None
        except Exception as raised:
            error = raised
    said = texts_of(error) + [str(w.message) for w in caught]
    revealing = [text for text in said if any(marker in text for marker in MARKERS)]
    assert not revealing, revealing[0][:200]
    # numpy's warnings about overflow and the like would tell of single values.
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    return error


def clear_error(error, *kinds):
    assert isinstance(error, kinds or (TypeError, ValueError)), repr(error)
    assert len(str(error)) > 10
    return str(error)


def test_a_revealing_message_or_warning_would_be_noticed():
    def chained():
        try:
            raise KeyError(WORD)
        except KeyError:
            raise ValueError("clean") from None

    def noted():
        error = ValueError("clean")
        error.add_note(f"value {NUMBER}")
        raise error

    for reveal in (chained, noted, lambda: warnings.warn(WORD, stacklevel=1)):
        with pytest.raises(AssertionError):
            outcome(reveal)
    with pytest.raises(AssertionError):
        outcome(lambda: np.array([1e308]) * 10)
    assert outcome(lambda: None) is None


class Hostile:
    """An object in the data whose conversion fails with a revealing message."""

    def __init__(self, kind):
        self.kind = kind

    def __float__(self):
        raise self.kind(WORD)

    def __repr__(self):
        return WORD


class HostileArray:
    def __array__(self, *args, **kwargs):
        raise KeyError(WORD)


def one_bad(value):
    rows = np.random.default_rng(0).normal(size=(N, D)).astype(object)
    rows[3, 1] = value
    return rows


MISSING = {"nullable integers", "nullable floats", "polars nulls", "NaN", "NaN in float32"}
BAD_ROWS = {
    "text in objects": lambda: one_bad(WORD),
    "dict in objects": lambda: one_bad({WORD: NUMBER}),
    "list in objects": lambda: one_bad([WORD]),
    "bytes in objects": lambda: one_bad(WORD.encode()),
    "complex in objects": lambda: one_bad(complex(NUMBER, 1)),
    "huge int in objects": lambda: one_bad(10**400 + 7431),
    "signalling decimal": lambda: one_bad(Decimal("sNaN7431")),
    "hostile ValueError": lambda: one_bad(Hostile(ValueError)),
    "hostile RuntimeError": lambda: one_bad(Hostile(RuntimeError)),
    "hostile array": HostileArray,
    "complex": lambda: np.full((N, D), complex(NUMBER, 1.0)),
    "vector": lambda: np.full(N, NUMBER),
    "vector of texts": lambda: np.array([f"Reshape your data {WORD}"] * N),
    "series": lambda: pd.Series([NUMBER] * N),
    "scalar": lambda: NUMBER,
    "text": lambda: WORD,
    "three axes": lambda: np.full((N, D, 2), NUMBER),
    "texts": lambda: np.full((N, D), WORD),
    "bytes": lambda: np.full((N, D), WORD.encode()),
    "number texts": lambda: np.full((N, D), f"{NUMBER}x"),
    "ragged": lambda: [[NUMBER] * 3] * 5 + [[NUMBER] * 2],
    "list of texts": lambda: [[WORD, 1.0, 2.0]] * N,
    "dict": lambda: {WORD: NUMBER},
    "set": lambda: {NUMBER},
    "None": lambda: None,
    "text column": lambda: pd.DataFrame({"a": [WORD] * N, "b": 1.0, "c": 2.0}),
    "category column": lambda: pd.DataFrame({"a": pd.Categorical([WORD] * N), "b": 1.0, "c": 2.0}),
    "string column": lambda: pd.DataFrame({"a": pd.array([WORD] * N, dtype="string"), "b": 1.0}),
    "date column": lambda: pd.DataFrame({"a": pd.to_datetime(["1999-07-04"] * N), "b": NUMBER}),
    "nullable integers": lambda: pd.DataFrame(
        {"a": pd.array([None, 74317431] * (N // 2), dtype="Int64"), "b": NUMBER}
    ),
    "nullable floats": lambda: pd.DataFrame(
        {"a": pd.array([None, NUMBER] * (N // 2), dtype="Float64"), "b": NUMBER}
    ),
    "mixed names": lambda: pd.DataFrame({"a": [NUMBER] * N, 0: [NUMBER] * N}),
    "polars texts": lambda: pl.DataFrame({"a": [WORD] * N, "b": [1.0] * N}),
    "polars nulls": lambda: pl.DataFrame({"a": [None, NUMBER] * (N // 2), "b": [1.0] * N}),
    "polars categories": lambda: pl.DataFrame({"a": pl.Series([WORD] * N, dtype=pl.Categorical)}),
    # Of different lengths: numpy could make a column of equal ones a valid array.
    "polars lists": lambda: pl.DataFrame({"a": [[NUMBER], [NUMBER, NUMBER]] * (N // 2)}),
    "NaN": lambda: np.where(np.arange(N * D).reshape(N, D) == 4, nan, NUMBER),
    "inf": lambda: np.where(np.arange(N * D).reshape(N, D) == 4, -inf, NUMBER),
    "NaN in float32": lambda: np.full((N, D), nan, dtype=np.float32),
    "beyond float64": lambda: np.full((N, D), np.longdouble("1e4000")),
    "no rows": lambda: np.zeros((0, D)),
    "no columns": lambda: np.zeros((N, 0)),
    "sparse with NaN": lambda: sp.csr_array(np.full((N, D), nan)),
    "structured": lambda: np.zeros(N, dtype=[("a", float)]),
}
if np.finfo(np.longdouble).max <= np.finfo(np.float64).max:
    del BAD_ROWS["beyond float64"]


# Of these, what holds levels of columns.
LEVELS = {
    "text in objects",
    "bytes in objects",
    "huge int in objects",
    "texts",
    "bytes",
    "number texts",
    "list of texts",
    "text column",
    "category column",
    "string column",
    "nullable integers",
    "nullable floats",
    "polars texts",
    "polars nulls",
    "polars categories",
    "NaN",
    "inf",
    "NaN in float32",
    "beyond float64",
}


def targets_for(entry, n=N):
    return None if entry not in SUPERVISED else registry.rows_for(entry, n)[1]


def fit_call(entry, X, y):
    """Fit a clone; transformers are given no target."""
    estimator = clone(entry.estimator)
    if entry in SUPERVISED:
        return lambda: estimator.fit(X, y)
    return lambda: estimator.fit(X)


@for_each_configuration
@pytest.mark.parametrize("kind", BAD_ROWS)
@for_each
def test_bad_rows_are_refused_without_being_shown(entry, kind, configuration, monkeypatch):
    levels = entry.name in registry.CATEGORICAL and kind in LEVELS
    tags = entry.estimator.__sklearn_tags__().input_tags
    missing = MISSING | ({"sparse with NaN"} if tags.sparse else set())
    allowed = kind in missing and tags.allow_nan
    # In the pipeline of a budget it is the model that refuses what the scaler left missing.
    late = entry.name == "PrivacyBudget" and kind in MISSING
    if not (levels or allowed or late):
        spend_nothing(monkeypatch)
    with config_context(**configuration):
        error = outcome(fit_call(entry, BAD_ROWS[kind](), targets_for(entry)))
    if levels:
        assert error is None or "Shape mismatch" in clear_error(error)
    elif allowed:
        assert error is None
    else:
        clear_error(error)


@for_each_configuration
@for_each
def test_bad_rows_are_refused_after_the_fit_too(entry, configuration):
    X, y = registry.rows_for(entry, N)
    fitted = registry.fit(entry.estimator, X, y)
    methods = ["predict", "predict_proba", "decision_function", "transform", "predict_log_proba"]
    # Under assume_finite scikit-learn lets them pass: nobody else's record is touched.
    allow_nan = entry.estimator.__sklearn_tags__().input_tags.allow_nan
    lenient = MISSING | {"sparse with NaN"} if allow_nan else set()
    if configuration.get("assume_finite"):
        lenient = MISSING | {"inf", "beyond float64", "sparse with NaN"}
    for method in [m for m in methods if hasattr(fitted, m)]:
        for kind, bad in BAD_ROWS.items():
            with config_context(**configuration):
                error = outcome(getattr(fitted, method), bad())
            if entry.name in registry.CATEGORICAL and kind in LEVELS:
                assert error is None or "feature" in clear_error(error)
            elif kind in lenient:
                assert error is None or clear_error(error)
            else:
                clear_error(error)
        for wrong in (X[:, :2], np.c_[X, X], X[:0]):
            clear_error(outcome(getattr(fitted, method), wrong), ValueError)


BAD_TARGETS = {
    "complex": lambda: np.full(N, complex(NUMBER, 1)),
    "three axes": lambda: np.full((N, 2, 2), NUMBER),
    "NaN": lambda: np.where(np.arange(N) == 3, nan, NUMBER),
    "inf": lambda: np.where(np.arange(N) == 3, inf, NUMBER),
    "too few": lambda: np.full(N - 1, NUMBER),
    "None": lambda: None,
    "scalar": lambda: NUMBER,
    "text": lambda: WORD,
    "lists of numbers": lambda: [[NUMBER], [NUMBER, NUMBER]] * (N // 2),
    "lists of texts": lambda: [[WORD], [WORD, WORD]] * (N // 2),
    "objects": lambda: np.array([Hostile(ValueError)] * N, dtype=object),
    "dicts": lambda: [{WORD: 1}] * N,
    "nullable": lambda: pd.Series([None, 74317431] * (N // 2), dtype="Int64"),
    "strings with NA": lambda: pd.Series([None, WORD] * (N // 2), dtype="string"),
    "texts and NaN": lambda: np.array([nan, WORD] * (N // 2), dtype=object),
    "texts and numbers": lambda: np.array([WORD, 1] * (N // 2), dtype=object),
    "hostile array": HostileArray,
    "sparse": lambda: sp.csr_array(np.full((N, 1), NUMBER)),
    "texts": lambda: np.array([WORD] * N),
    "polars texts": lambda: pl.Series([WORD] * N),
    "frame of texts": lambda: pd.DataFrame({"a": [WORD] * N}),
    "bytes": lambda: np.array([WORD.encode()] * N),
    "huge integers": lambda: np.array([10**400 + 7431] * N, dtype=object),
    "no rows": lambda: np.zeros(0),
}


@for_each_configuration
@pytest.mark.parametrize("kind", BAD_TARGETS)
@pytest.mark.parametrize("entry", SUPERVISED, ids=registry.ids(SUPERVISED))
def test_bad_targets_are_refused_without_being_shown(entry, kind, configuration, monkeypatch):
    if entry.name != "PrivacyBudget":  # its first step sees no target, and is lost with the fit
        spend_nothing(monkeypatch)
    X, _ = registry.rows_for(entry, N)
    with config_context(**configuration):
        error = outcome(fit_call(entry, X, BAD_TARGETS[kind]()))
    clear_error(error)


@pytest.mark.parametrize("kind", [*BAD_TARGETS, "numbers"])
def test_labels_that_are_not_declared_are_refused_without_being_shown(kind, monkeypatch):
    spend_nothing(monkeypatch)
    X = np.random.default_rng(0).normal(size=(N, D))
    y = {**BAD_TARGETS, "numbers": lambda: np.full(N, NUMBER)}[kind]()
    for classes in ([0, 1], ["a", "b"], [0.5, 1.5], [True, False]):
        clear_error(outcome(DPLogisticRegression(classes=classes).fit, X, y))
    if kind not in ("texts and numbers",):
        clear_error(outcome(DPLogisticRegression().fit, X, y))


def test_the_message_names_the_remedy():
    X, y = np.zeros((N, D)), np.arange(N) % 2
    with pytest.raises(ValueError, match="one class only.*classes="), warnings.catch_warnings():
        DPLogisticRegression().fit(X, np.zeros(N, int))
    with pytest.raises(ValueError, match="not among `classes`; declare"):
        DPLogisticRegression(classes=[0, 1]).fit(X, y + 1)
    with pytest.raises(ValueError, match="encode text columns first"):
        DPLogisticRegression(classes=[0, 1]).fit(X.astype(str).astype(object) + "x", y)
    with pytest.raises(ValueError, match="Reshape your data"):
        DPLogisticRegression(classes=[0, 1]).fit(X[0], y)
    with pytest.raises(ValueError, match="NaN"):
        DPLogisticRegression(classes=[0, 1]).fit(X + nan, y)
    with pytest.warns(PrivacyLeakWarning, match=r"classes=\["):
        DPLogisticRegression().fit(X, y)


def test_one_class_of_the_declared_ones_is_enough():
    X = np.random.default_rng(0).normal(size=(N, D))
    for classes, label in (([0, 1], 0), (["a", "b", "c"], "b")):
        for epsilon in (1.0, inf):
            fitted = DPLogisticRegression(classes=classes, epsilon=epsilon)
            fitted.fit(X, np.full(N, label))
            assert list(fitted.classes_) == classes
            assert fitted.predict_proba(X).shape == (N, len(classes))
            assert np.isfinite(fitted.predict_proba(X)).all()


# ---------------------------------------------------------------- parameters

BAD_COMMON = {
    "epsilon": [0, 0.0, -1.0, nan, -inf, "1", None, True, False, [1.0], 1j, PrivacyCost(0.0)],
    "delta": [0.0, 1.0, 1.5, -1e-5, nan, inf, "1e-5", None, True],
    "neighboring": ["add", "replace_one", None, 1, ["replace"]],
}


@for_each_configuration
@for_each_name
def test_bad_privacy_parameters_are_refused_and_named(name, configuration, monkeypatch):
    spend_nothing(monkeypatch)
    for parameter, values in BAD_COMMON.items():
        for value in values:
            entry = registry.declared(name, **{parameter: value})
            X, y = registry.rows_for(registry.declared(name), N)
            with config_context(**configuration):
                error = outcome(lambda e=entry, x=X, t=y: registry.fit(e.estimator, x, t))
            assert parameter in clear_error(error), (parameter, value)


@for_each_name
def test_a_budget_for_something_else_is_refused(name, monkeypatch):
    spend_nothing(monkeypatch)
    X, y = registry.rows_for(registry.declared(name), N)
    budget = PrivacyCost(0.5, "replace")
    for other, message in (
        (budget, "neighboring='replace'"),
        (PrivacyCost(0.5, unit="person"), "unit='person'"),
    ):
        with pytest.raises(ValueError, match=message):
            registry.fit(registry.declared(name, epsilon=other).estimator, X, y)
    monkeypatch.undo()
    accepted = registry.declared(name, epsilon=budget, neighboring="replace")
    assert registry.fit(accepted.estimator, X, y).privacy_cost_.mu == 0.5


# Values that scikit-learn's check refuses; without it they must do no harm.
BAD_OTHERS = {
    "feature_norm": [0.0, -1.0, inf, nan, "1", 5e-324, 1e200],
    "clip_norm": [0.0, -1.0, nan, inf, "1"],
    "feature_bound": [0.0, -1.0, nan, "1"],
    "max_iter": [0, -3, 2.5, "10", nan],
    "gram_share": [1.0, 1.5, -0.5, nan, "0.1"],
    "ridge_floor": [-1.0, nan, "1"],
    "learning_rate": [0.0, -1.0, inf, nan, "1"],
    "scale_check_share": [1.0, -0.1, nan, 2.0, None],
    "n_rows": [0, -5, 2.5, "9", nan],
    "max_sample_weight": [0.0, -1.0, nan, inf, "1", 5e-324, 1e308],
    "C": [0.0, -1.0, nan, "1"],
    "alpha": [-1.0, nan, inf, "1"],
    "fit_intercept": ["yes", 2, None],
    "solver": ["lbfgs", None],
    "classes": [3, "ab", [0], {0}, [0, 0], [[0, 1], [2, 3]]],
    "class_weight": [
        "even",
        3.0,
        {0: -1.0},
        {1: nan},
        {1: inf},
        {0: 0.0, 1: 0.0},
        {7: 1.0},
        {0: "1"},
    ],
    "y_bounds": [
        (1, 0),
        (0, inf),
        (nan, 1),
        (0, 0),
        (1,),
        5.0,
        "01",
        [(0, 1), (0, 1)],
        (0, 5e-324),
    ],
    "bounds": [(1, 0), (0, inf), (nan, 1), (2, 2), (1,), "01", ([0, 0], [1, 1]), (0, 5e-324), {}],
    "categories": [3, "all", None, [[]] * D, [[0, 0]] * D, [3] * D, ["01"] * D, {"a": [0]}],
    "min_frequency": [0, -1, 1.5, "1", nan],
    "max_categories": [0, 2.5, "2"],
    "handle_unknown": ["drop", None],
    "drop": ["last", 3],
    "target_type": ["labels", "multiclass", None],
    "smooth": ["much", -1.0, nan, inf],
    "unknown_value": ["a", None],
    "encoded_missing_value": ["a", None],
    "with_mean": ["yes", 2],
    "n_releases": [0, -1, 1.5, "2"],
    "sensitivity": [0.0, -1.0, nan, inf, 5e-324, 1e308],
    "calibration": ["classical", None],
    "random_state": ["seed", -1, 1.5],
    "shares": [{"dplogisticregression": 0.0}, {"nothing": 1.0}, 3, {}],
}


@for_each_name
def test_bad_parameters_are_refused_before_anything_is_spent(name, monkeypatch):
    spend_nothing(monkeypatch)
    X, y = registry.rows_for(registry.declared(name), N)
    known = set(registry.declared(name).estimator.get_params(deep=False))
    for parameter in known & set(BAD_OTHERS):
        for value in BAD_OTHERS[parameter]:
            entry = registry.declared(name, **{parameter: value})
            error = outcome(lambda e=entry: registry.fit(e.estimator, X, y))
            assert error is not None, (parameter, value)
            clear_error(error)


@for_each_name
def test_parameters_that_nobody_checked_cannot_break_the_guarantee(name):
    # Under skip_parameter_validation nonsense is refused, or fits with the noise of its plan.
    X, y = registry.rows_for(registry.declared(name), N)
    known = set(registry.declared(name).estimator.get_params(deep=False))
    for parameter in sorted(known & set(BAD_OTHERS)):
        for value in BAD_OTHERS[parameter]:
            estimator = registry.declared(name, **{parameter: value}).estimator
            try:
                with config_context(skip_parameter_validation=True), warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    fitted = registry.fit(estimator, X, y)
            except AssertionError:
                raise
            except Exception as error:
                assert not any(marker in text for text in texts_of(error) for marker in MARKERS)
                continue
            for part in registry.private_parts(fitted):
                spent = sum((r.sensitivity / r.sigma) ** 2 for r in part.releases_)
                assert spent <= part.plan_.budget.mu**2 * (1 + 1e-12), (parameter, value)
                assert all(r.sensitivity > 0 and np.isfinite(r.sigma) for r in part.releases_)


# Estimators that learn in chunks of disjoint records.
IN_CHUNKS = {"DPStandardScaler"}


def test_there_is_no_warm_start_and_no_partial_fit():
    for entry in DECLARED:
        X, y = registry.rows_for(entry, N)
        estimator = clone(entry.estimator)
        for word in ("sample_weight", "warm_start", "accountant"):
            assert word not in estimator.get_params()
            with pytest.raises(TypeError):
                type(estimator)(**{**registry.REQUIRED.get(entry.name, dict)(), word: True})
        assert hasattr(estimator, "partial_fit") == (entry.name in IN_CHUNKS)
        if "max_sample_weight" not in estimator.get_params(deep=False):
            with pytest.raises((TypeError, ValueError), match="sample_weight"):
                estimator.fit(X, y, sample_weight=np.ones(N))


# ---------------------------------------------------------------- warnings


@for_each_name
def test_a_delta_that_allows_to_publish_a_record_is_warned_about(name):
    X, y = registry.rows_for(registry.declared(name), N)
    for delta, senseless in ((1 / N, True), (0.5, True), (0.99 / N, False), (1e-6, False)):
        entry = registry.declared(name, delta=delta)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            registry.fit(entry.estimator, X, y)
        found = [w for w in caught if issubclass(w.category, PrivacyWarning)]
        assert bool(found) == senseless, delta
        assert all("delta" in str(w.message) for w in found)


@for_each_variant
def test_settings_of_numpy_neither_break_a_fit_nor_reveal_a_record(entry):
    X, y = registry.rows_for(entry, N)
    estimator = registry.set_deep(entry.estimator, "random_state", 3)
    X[0], X[1], X[2] = 1e308, 5e-324, [1e308, -1e308, 1e-320]
    want = registry.state(registry.fit(estimator, X, y))
    for setting in ("raise", "warn", "ignore"):
        with np.errstate(all=setting), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fitted = registry.fit(estimator, X, y)
            assert registry.state(fitted) == want
            assert registry.state(registry.outputs(fitted, X))


@for_each_variant
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-200, 1e150, 1e308])
def test_columns_of_every_size_fit(entry, scale):
    X, y = registry.rows_for(entry, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = registry.fit(entry.estimator, np.clip(X, -1, 1) * scale, y)
        answers = registry.outputs(fitted, X)
    assert all(np.isfinite(v).all() for v in answers.values() if v.dtype.kind == "f")


@pytest.mark.parametrize("entry", NUMERIC, ids=registry.ids(NUMERIC))
def test_targets_of_every_size_fit(entry):
    X, y = registry.rows_for(entry, N)
    for scale in (0.0, 5e-324, 1e-200, 1e150, 4e307):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            target = np.clip(y, -4, 4) * scale
            if registry.positive_targets(entry.estimator):
                target = np.maximum(target, 5e-324)
            fitted = registry.fit(entry.estimator, X, target)
        assert np.isfinite(fitted.predict(X)).all()


@for_each_variant
@pytest.mark.parametrize("epsilon", [1e-6, 1e6, 1e300, PrivacyCost(1e-9), PrivacyCost(1e9)])
def test_budgets_of_every_size_fit(entry, epsilon):
    X, y = registry.rows_for(entry, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = registry.fit(clone(entry.estimator).set_params(epsilon=epsilon), X, y)
        answers = registry.outputs(fitted, X)
    assert fitted.privacy_cost_.is_finite
    assert all(np.isfinite(v).all() for v in answers.values() if v.dtype.kind == "f")


@for_each_variant
def test_budgets_too_small_for_any_grid_are_refused_before_anything_is_spent(entry, monkeypatch):
    spend_nothing(monkeypatch)
    X, y = registry.rows_for(entry, N)
    estimator = clone(entry.estimator).set_params(epsilon=PrivacyCost(1e-30))
    with pytest.raises(ValueError, match="budget is too small"):
        registry.fit(estimator, X, y)


def test_a_value_with_too_many_entries_for_the_budget_is_refused_and_not_counted():
    mechanism = GaussianMechanism(epsilon=PrivacyCost(1e-9)).fit(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="too small for a value with so many entries"):
        mechanism.release(np.zeros(1000), sensitivity=1.0)
    assert not mechanism.releases_
    mechanism.set_params(epsilon=PrivacyCost(2e-12)).fit(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="too small"):
        mechanism.transform(np.zeros((4, 2)))
    assert not mechanism.releases_


@for_each_variant
def test_a_single_row_and_a_single_column_fit(entry):
    fewest = 2 if entry.name in registry.SEARCHES else 1
    for n_rows, n_features in ((fewest, 3), (2, 1), (N, 1)):
        X, y = registry.rows_for(entry, n_rows, n_features)
        fitted = registry.fit(entry.estimator, X, y)
        assert fitted.n_features_in_ == n_features
        answers = registry.outputs(fitted, X)
        assert all(len(v) == n_rows for v in answers.values())


@for_each_variant
def test_constant_and_repeated_columns_fit(entry):
    X, y = registry.rows_for(entry, N)
    for rows in (np.ones((N, 3)), np.c_[X[:, 0], X[:, 0], X[:, 0]], np.zeros((N, 3))):
        fitted = registry.fit(entry.estimator, rows, y)
        answers = registry.outputs(fitted, rows)
        assert all(np.isfinite(v).all() for v in answers.values() if v.dtype.kind == "f")


# ---------------------------------------------------------------- forms of the same rows


WHOLE = np.random.default_rng(0).integers(0, 2, size=(N, D))


def memory_map(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


def frozen(rows):
    rows = rows.copy()
    rows.setflags(write=False)
    return rows


FORMS = {
    "int8": lambda _: WHOLE.astype(np.int8),
    "uint8": lambda _: WHOLE.astype(np.uint8),
    "uint64": lambda _: WHOLE.astype(np.uint64),
    "bool": lambda _: WHOLE.astype(bool),
    "float16": lambda _: WHOLE.astype(np.float16),
    "float32": lambda _: WHOLE.astype(np.float32),
    "longdouble": lambda _: WHOLE.astype(np.longdouble),
    "objects": lambda _: WHOLE.astype(float).astype(object),
    "number texts": lambda _: WHOLE.astype(float).astype(str).astype(object),
    "big endian": lambda _: WHOLE.astype(">f8"),
    "list": lambda _: WHOLE.tolist(),
    "frame": lambda _: pd.DataFrame(WHOLE),
    "nullable frame": lambda _: pd.DataFrame(WHOLE).astype("Int64"),
    "polars": lambda _: pl.from_numpy(WHOLE),
    "matrix of masks": lambda _: np.ma.masked_array(WHOLE, mask=False),
    "read only": lambda _: frozen(WHOLE.astype(float)),
    "memory map": lambda path: memory_map(WHOLE.astype(float), path),
    "float32 memory map": lambda path: memory_map(WHOLE.astype(np.float32), path),
    "Fortran": lambda _: np.asfortranarray(WHOLE.astype(float)),
    "reversed": lambda _: WHOLE[::-1].copy()[::-1],
    "negative strides": lambda _: WHOLE.astype(float)[:, ::-1].copy()[:, ::-1],
}


@pytest.mark.parametrize("form", FORMS)
@for_each
def test_every_form_of_the_same_rows_gives_the_same_fit(entry, form, tmp_path):
    estimator = registry.set_deep(entry.estimator, "random_state", 3)
    _, y = registry.rows_for(entry, N)
    want = registry.fit(estimator, WHOLE.astype(float), y)
    rows = FORMS[form](tmp_path)
    before = np.array(rows, copy=True)
    fitted = registry.fit(estimator, rows, y)
    for part in ("coef_", "intercept_", "mean_", "scale_", "sigma_"):
        if hasattr(want, part):
            mine, theirs = getattr(fitted, part), getattr(want, part)
            assert np.array_equal(mine, theirs) and np.asarray(mine).dtype == np.float64
    assert np.array_equal(np.array(rows), before)  # the caller's data are left alone
    registry.outputs(fitted, rows)


def test_labels_of_every_kind_are_matched_exactly():
    X = np.random.default_rng(0).normal(size=(N, D))
    codes = np.arange(N) % 2
    want = DPLogisticRegression(classes=[0, 1], random_state=0).fit(X, codes)
    kinds = {
        "texts": (["no", "yes"], np.array(["no", "yes"])),
        "objects": (["no", "yes"], np.array(["no", "yes"], dtype=object)),
        "bool": ([False, True], np.array([False, True])),
        "floats": ([0.5, 2.5], np.array([0.5, 2.5])),
        "negative": ([-1, 1], np.array([-1, 1], dtype=np.int8)),
        "large": ([2**60, 2**60 + 1], np.array([2**60, 2**60 + 1])),
        "float for int": ([0, 1], np.array([0.0, 1.0])),
    }
    for kind, (classes, values) in kinds.items():
        y = values[codes]
        for labels in (y, y.tolist(), pd.Series(y), y[:, None][:, 0]):
            fitted = DPLogisticRegression(classes=classes, random_state=0).fit(X, labels)
            assert np.array_equal(fitted.coef_, want.coef_), kind
            assert np.isin(fitted.predict(X), classes).all()
    # 2**60 + 1 is not 2**60, though both are the same float.
    with pytest.raises(ValueError, match="not among"):
        DPLogisticRegression(classes=[2**60, 2**60 + 2]).fit(X, kinds["large"][1][codes])


# ---------------------------------------------------------------- the mechanism


def test_bad_values_for_a_release_are_refused_and_cost_nothing():
    mechanism = GaussianMechanism(sensitivity=1.0, n_releases=1).fit(np.zeros((4, 2)))
    bad = [nan, [1.0, inf], WORD, [WORD], None, complex(NUMBER), [[NUMBER], [1, 2]], {WORD: 1}]
    for value in bad:
        clear_error(outcome(mechanism.release, value))
    for sensitivity in (0.0, -1.0, nan, inf, 5e-324, 1e308, "1"):
        error = outcome(lambda s=sensitivity: mechanism.release(1.0, sensitivity=s))
        clear_error(error)
    assert mechanism.releases_ == ()
    assert np.isfinite(mechanism.release(NUMBER))
    error = outcome(mechanism.release, NUMBER)
    assert "n_releases=1" in clear_error(error, PrivacyBudgetError)


def test_extreme_values_of_a_release_stay_finite():
    mechanism = GaussianMechanism(sensitivity=1e200, n_releases=9).fit(np.zeros((4, 2)))
    with np.errstate(all="raise"):
        for value in (1e308, -1e308, 5e-324, np.zeros((0, 3)), np.full((2, 2), 1e308), True):
            assert np.isfinite(mechanism.release(value)).all()
    small = GaussianMechanism(sensitivity=1e-200, n_releases=9).fit(np.zeros((4, 2)))
    with np.errstate(all="raise"):
        for value in (1e308, 5e-324, 2**63 - 1):
            assert abs(small.release(value)) < 1e-185  # clipped to the range of the grid


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 50.0])
def test_classic_calibration_is_refused_where_it_is_not_proved(epsilon):
    with pytest.raises(ValueError, match="analytic"):
        GaussianMechanism(epsilon=epsilon, calibration="classic").fit(np.zeros((4, 2)))


def test_regression_without_public_bounds_on_few_rows_says_so():
    X = np.random.default_rng(0).normal(size=(N, D))
    with pytest.warns(UserWarning, match="y_bounds"):
        DPLinearRegression(epsilon=0.1).fit(X, X[:, 0])


def test_missing_values_are_refused_in_one_text_everywhere():
    X = np.random.default_rng(0).normal(size=(N, D))
    y = (X[:, 0] > 0).astype(int)
    holes = np.where(np.arange(N * D).reshape(N, D) == 4, nan, X)
    selector = DPSelectKBest(bounds=(-3, 3), classes=[0, 1], k=2).fit(X, y)
    model = DPLogisticRegression(classes=[0, 1]).fit(X, y)
    calls = [
        lambda: clone(selector).fit(holes, y),
        lambda: selector.transform(holes),
        lambda: GaussianMechanism().fit(holes),
        lambda: clone(model).fit(holes, y),
        lambda: model.predict(holes),
        lambda: model.predict_proba(np.where(np.isnan(holes), inf, holes)),
    ]
    texts = {clear_error(outcome(call)) for call in calls}
    (text,) = texts
    assert "SimpleImputer(strategy='constant', keep_empty_features=True)" in text
    text = clear_error(outcome(DPRidge(y_bounds=(0, 1)).fit, X, holes[:, 4 % D]))
    assert text.startswith("Input y contains NaN") and "Remove such records" in text


def test_classes_may_be_a_set():
    X = np.random.default_rng(0).normal(size=(N, D))
    y = np.where(X[:, 0] > 0, "ill", "well")
    for classes in ({"ill", "well"}, frozenset({"ill", "well"})):
        fitted = clone(DPLogisticRegression(classes=classes)).fit(X, y)
        assert fitted.classes_.tolist() == ["ill", "well"]


@pytest.mark.parametrize(
    ("classes", "labels", "hint"),
    [
        ([0, 1], np.array(["0", "1"] * (N // 2)), "(y holds strings, `classes` numbers)"),
        (["0", "1"], np.array([0, 1] * (N // 2)), "(y holds numbers, `classes` strings)"),
        ([0, 1], np.array(["0", "1"] * (N // 2), object), "(y holds objects, `classes` numbers)"),
    ],
)
def test_labels_of_another_kind_than_the_classes_are_said_to_be(classes, labels, hint):
    X = np.zeros((len(labels), D))
    error = outcome(DPLogisticRegression(classes=classes).fit, X, labels)
    assert hint in clear_error(error)
