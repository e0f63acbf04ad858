"""scikit-learn citizenship: its own checks, and the tools that people use around estimators."""

import pickle
from math import inf

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import registry
import skops.io
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter

from skdp import GaussianMechanism, losses
from skdp.base import PrivateEstimator

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning"),
    # scikit-learn's twin on the few iterations that its checks ask for.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DEFAULTS = registry.all_entries(registry.default)
NON_PRIVATE = registry.all_entries(registry.non_private)
DECLARED = registry.all_entries(registry.declared)
for_each = pytest.mark.parametrize("entry", DECLARED, ids=registry.ids(DECLARED))

EQUIVALENCE = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
# Checks that fits with noise do not pass, with the reason; those that take weights only.
NOISE_FORBIDS = {
    **dict.fromkeys(EQUIVALENCE, "noise: two fits to different arrays are never close"),
    "check_all_zero_sample_weights_error": "an error would tell that a record has a weight",
}
# And without noise: what the twin does not pass itself.
TWIN_FAILS = dict.fromkeys(EQUIVALENCE, "scikit-learn's own solver does not pass it")
TWINS_THAT_FAIL = {
    **dict.fromkeys(("DPHuberRegressor", "DPLinearSVC", "DPLinearSVR"), TWIN_FAILS),
    "DPRidgeCV": dict.fromkeys(EQUIVALENCE, "the twin leaves one of several equal records out"),
}


def expected_failures(estimator):
    """Checks that an estimator does not pass, with the reason."""
    if not hasattr(estimator, "max_sample_weight"):
        return {}
    if estimator.epsilon != inf:
        return NOISE_FORBIDS
    return TWINS_THAT_FAIL.get(type(estimator).__name__, {})


def test_every_estimator_is_in_the_registry():
    assert set(registry.CLASSES) == set(registry.DECLARED)
    with pytest.raises(KeyError):
        registry.declared("DPNothing")


@parametrize_with_checks(
    [entry.estimator for entry in DEFAULTS],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks_at_the_defaults(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [entry.estimator for entry in NON_PRIVATE], expected_failed_checks=expected_failures
)
def test_scikit_learns_checks_without_privacy(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        entry.estimator
        for entry in registry.all_entries(registry.declared)
        # The checks have labels and numbers of columns of their own.
        if not is_classifier(entry.estimator) and entry.name not in registry.CATEGORICAL
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_checks_with_declared_facts(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- parameters


@for_each
def test_clones_and_parameters(entry):
    estimator = entry.estimator
    copy = clone(estimator)
    assert type(copy) is type(estimator)
    assert repr(copy) == repr(estimator)
    changed = copy.set_params(epsilon=0.25, delta=1e-7)
    assert changed is copy and (copy.epsilon, copy.delta) == (0.25, 1e-7)
    assert estimator.epsilon == 1.0  # the clone is another object
    for name in ("epsilon", "delta", "neighboring"):
        assert name in estimator.get_params(deep=False)


@for_each
def test_a_fit_changes_no_parameter_and_a_second_fit_starts_anew(entry):
    X, y = registry.rows_for(entry, 80)
    estimator = clone(entry.estimator)
    before = estimator.get_params(deep=False)
    args = (X,) if y is None else (X, y)
    estimator.fit(*args)
    names = set(vars(estimator))
    estimator.fit(*args)
    assert set(vars(estimator)) == names
    after = estimator.get_params(deep=False)
    assert all(before[name] is after[name] for name in before)
    assert not hasattr(clone(estimator), "releases_") or entry.name == "GaussianMechanism"


# ---------------------------------------------------------------- containers


@pytest.mark.parametrize("container", ["pandas", "polars"])
@pytest.mark.parametrize("label", ["declared", "inf"])
@pytest.mark.parametrize("name", sorted(registry.CLASSES))
def test_frames_in_and_out(name, label, container):
    entry = registry.declared(name, epsilon=1.0 if label == "declared" else inf)
    entry = registry.Entry(name, label, registry.set_deep(entry.estimator, "random_state", 3))
    X, y = registry.rows_for(entry, 80)
    names = ["age", "income", "debt"]
    make = pd.DataFrame if container == "pandas" else pl.DataFrame
    frame = make(dict(zip(names, X.T, strict=True)))
    estimator = clone(entry.estimator)
    if hasattr(estimator, "set_output"):
        estimator.set_output(transform=container)
    fitted = estimator.fit(frame) if y is None else estimator.fit(frame, y)
    plain = registry.fit(entry.estimator, X, y)
    assert list(fitted.feature_names_in_) == names
    assert not hasattr(plain, "feature_names_in_")
    if label == "declared" and hasattr(fitted, "coef_"):
        assert np.array_equal(fitted.coef_, plain.coef_)
    for method, value in registry.outputs(fitted, frame).items():
        if method == "transform":
            assert type(value).__module__.startswith(container)
            assert list(value.columns) == list(fitted.get_feature_names_out())
            if isinstance(fitted, SelectorMixin):  # of few rows it is chance which are kept
                assert set(value.columns) <= set(names)
            elif name != "DPOneHotEncoder":
                assert list(value.columns) == names
        # To rounding: a frame's columns are another layout of memory for the products.
        assert np.allclose(np.asarray(value), registry.outputs(plain, X)[method], rtol=1e-10)
    # Columns in another order, or fewer of them, are refused.
    method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    with pytest.raises(ValueError, match="feature names should match"):
        method(frame[names[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        method(frame[names[:2]])


def test_names_of_transformed_features():
    for entry in DECLARED:
        if hasattr(entry.estimator, "transform"):
            X, y = registry.rows_for(entry, 80)
            fitted = registry.fit(entry.estimator, X, y)
            if entry.name == "DPOneHotEncoder":
                own = [f"{name}_{level}" for name in ("x0", "x1", "x2") for level in (-1, 0, 1)]
                assert set(fitted.get_feature_names_out()) - set(own) <= {
                    f"{name}_infrequent_sklearn" for name in ("x0", "x1", "x2")
                }
                continue
            if isinstance(fitted, SelectorMixin):  # of few rows it is chance which are kept
                assert set(fitted.get_feature_names_out()) <= {"x0", "x1", "x2"}
                continue
            assert list(fitted.get_feature_names_out()) == ["x0", "x1", "x2"]
            assert list(fitted.get_feature_names_out(["a", "b", "c"])) == ["a", "b", "c"]


# ---------------------------------------------------------------- storing


def stored(entry):
    X, y = registry.rows_for(entry, 80)
    fitted = registry.fit(registry.set_deep(entry.estimator, "random_state", 3), X, y)
    return fitted, X


def known(fitted):
    """What is compared with a copy: from before it, as a mechanism notes that there is one."""
    return registry.state(fitted), fitted.privacy_cost_


def same(copy, fitted, before, X):
    assert known(copy) == before
    answers = registry.outputs(copy, X), registry.outputs(fitted, X)
    assert registry.state(answers[0]) == registry.state(answers[1])


@for_each
def test_pickle_and_joblib(entry, tmp_path):
    fitted, X = stored(entry)
    before = known(fitted)
    same(pickle.loads(pickle.dumps(fitted)), fitted, before, X)
    fitted, X = stored(entry)
    before = known(fitted)
    joblib.dump(fitted, tmp_path / "model.joblib")
    same(joblib.load(tmp_path / "model.joblib"), fitted, before, X)


# What a user of skops has to trust to load a fitted estimator: classes of skdp and numpy only.
TRUSTED = {
    *(f"skdp.losses.{name}" for name in losses.__all__),
    "skdp.solvers.gradient_descent.Descent",
    "skdp.solvers.settings.SolverSettings",
    "skdp.uncertainty.released.ReleasedFit",
    "skdp.accounting.PrivacyCost",
    "skdp.plan.Plan",
    "skdp.plan.PlannedRelease",
    "skdp.plan.ProblemShape",
    "skdp.plan.Release",
    "skdp.mechanism._ReleaseCounter",
    "skdp.preprocessing.one_hot_encoder.DPOneHotEncoder",
    "skdp.preprocessing.ordinal_encoder.DPOrdinalEncoder",
    "skdp.preprocessing.standard_scaler.DPStandardScaler",
    "skdp.preprocessing.target_encoder.DPTargetEncoder",
    "skdp.preprocessing._encoder.Grouping",
    "skdp.preprocessing._table_columns.LevelColumn",
    "skdp.preprocessing._table_columns.NumberColumn",
    "skdp.preprocessing._table_moments.Scale",
    "skdp.preprocessing.schema.Binary",
    "skdp.preprocessing.schema.Categorical",
    "skdp.preprocessing.schema.Numeric",
    "skdp.preprocessing.table_vectorizer.DPTableVectorizer",
    "skdp.linear_model.logistic.DPLogisticRegression",
    "skdp.linear_model.glm.DPGammaRegressor",
    "skdp.linear_model.glm.DPPoissonRegressor",
    "skdp.linear_model.glm.DPTweedieRegressor",
    "skdp.linear_model.huber.DPHuberRegressor",
    "skdp.linear_model.regression.DPLinearRegression",
    "skdp.linear_model.regression.DPRidge",
    "skdp.linear_model.ridge_cv.DPRidgeCV",
    "skdp.linear_model.quantile.DPQuantileRegressor",
    "skdp.linear_model.svm.DPLinearSVC",
    "skdp.linear_model.svm.DPLinearSVR",
    "skdp.preprocessing.k_bins_discretizer.DPKBinsDiscretizer",
    "skdp.preprocessing.simple_imputer.DPSimpleImputer",
    "skdp.preprocessing.variance_threshold.DPVarianceThreshold",
    "skdp.preprocessing.select_k_best.DPSelectKBest",
    "skdp.preprocessing.min_max_scaler.DPMinMaxScaler",
    "skdp.preprocessing.quantile_transformer.DPQuantileTransformer",
    "skdp.preprocessing.robust_scaler.DPRobustScaler",
    "skdp.mechanism.GaussianMechanism",
    "skdp.budget._budget.PrivacyBudget",
    "skdp.model_selection._grid_search.DPGridSearchCV",
    "skdp.model_selection._randomized_search.DPRandomizedSearchCV",
    "types.MappingProxyType",
}


@for_each
def test_skops(entry):
    fitted, X = stored(entry)
    before = known(fitted)
    data = skops.io.dumps(fitted)
    unknown = set(skops.io.get_untrusted_types(data=data))
    assert unknown <= TRUSTED
    same(skops.io.loads(data, trusted=sorted(unknown)), fitted, before, X)


# ---------------------------------------------------------------- searching


@pytest.mark.parametrize("name", sorted(registry.CLASSES))
def test_searches_over_privacy_settings(name):
    entry = registry.declared(name)
    X, y = registry.rows_for(entry, 300)
    score = None if hasattr(entry.estimator, "score") else (lambda *args: 0.0)
    search = GridSearchCV(
        entry.estimator,
        {"epsilon": [0.5, 5.0, inf]},
        cv=KFold(2),
        n_jobs=2,
        scoring=score,
        error_score="raise",
    )
    search.fit(X) if y is None else search.fit(X, y)
    assert search.best_estimator_.epsilon in (0.5, 5.0, inf)
    assert len(search.cv_results_["params"]) == 3


def test_a_search_over_steps_and_settings_of_a_pipeline():
    entry = registry.declared("DPLogisticRegression")
    X, y = registry.rows_for(entry, 300)
    scaler = registry.declared("DPStandardScaler").estimator
    pipeline = Pipeline([("scale", scaler), ("noise", "passthrough"), ("model", entry.estimator)])
    grid = {
        "scale": [scaler, "passthrough"],
        "noise": ["passthrough", GaussianMechanism(epsilon=50.0, clip_norm=2.0)],
        "model__epsilon": [1.0, 3.0],
        "model__clip_norm": [None, 0.2],
    }
    search = GridSearchCV(pipeline, grid, cv=KFold(2), n_jobs=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 16
    assert 0.0 <= search.best_score_ <= 1.0
    noisy = clone(pipeline).set_params(noise=GaussianMechanism(epsilon=50.0, clip_norm=2.0))
    noisy.fit(X, y)
    assert noisy.predict_proba(X[:4]).shape == (4, 2)
    # Serving clean rows: the mechanism out of the way, the model as it was learned.
    clean = Pipeline([step for step in noisy.steps if step[0] != "noise"])
    want = noisy[-1].predict_proba(noisy[0].transform(X[:4]))
    assert np.array_equal(clean.predict_proba(X[:4]), want)


def test_cross_validation_of_several_targets():
    entry = registry.declared("DPRidge", y_bounds=[(-6, 6), (-6, 6)], epsilon=50.0)
    X, y = registry.rows_for(entry, 400)
    scores = cross_validate(entry.estimator, X, y, cv=KFold(3), error_score="raise")
    assert scores["test_score"].shape == (3,)


# ---------------------------------------------------------------- metadata and tags


@for_each
def test_metadata_routing(entry):
    X, y = registry.rows_for(entry, 60)
    with config_context(enable_metadata_routing=True):
        routing = entry.estimator.get_metadata_routing()
        assert isinstance(routing, (MetadataRequest, MetadataRouter))
        # Nothing is asked for by default; and what is passed is not ignored.
        if not isinstance(routing, MetadataRouter):
            weights = {"sample_weight": None} if hasattr(entry.estimator, "n_rows") else {}
            assert {**weights, **routing.fit.requests} == weights
        free = FunctionTransformer()
        pipeline = make_pipeline(free, clone(entry.estimator))
        pipeline.fit(X) if y is None else pipeline.fit(X, y)
        with pytest.raises((TypeError, UnsetMetadataPassedError), match="sample_weight"):
            clone(pipeline).fit(X, y, sample_weight=np.ones(60))


@pytest.mark.parametrize("name", sorted(registry.CLASSES))
def test_tags_say_what_noise_means(name):
    entry = registry.declared(name)
    if not isinstance(entry.estimator, PrivateEstimator):
        pytest.skip("has the tags of what it holds")
    private, exact = entry.estimator, clone(entry.estimator).set_params(epsilon=inf)
    seeded = registry.set_deep(entry.estimator, "random_state", 3)
    assert private.__sklearn_tags__().non_deterministic
    assert not exact.__sklearn_tags__().non_deterministic
    assert seeded.__sklearn_tags__().non_deterministic == (entry.name == "GaussianMechanism")
    for estimator in (private, exact):
        tags = estimator.__sklearn_tags__()
        if is_classifier(estimator):
            assert tags.classifier_tags.poor_score == (estimator is private)
        if is_regressor(estimator):
            assert tags.regressor_tags.poor_score == (estimator is private)


# ---------------------------------------------------------------- epsilon = inf


TWINS = [
    registry.Entry(
        entry.name,
        entry.label,
        registry.set_deep(clone(entry.estimator).set_params(epsilon=inf), "max_iter", None),
    )
    for entry in registry.all_entries(registry.variants)
    if isinstance(entry.estimator, PrivateEstimator) and entry.label != "private-scale"
]


@pytest.mark.parametrize("entry", TWINS, ids=registry.ids(TWINS))
def test_without_privacy_it_is_the_scikit_learn_twin(entry):
    X, y = registry.rows_for(entry, 150)
    fitted = registry.fit(entry.estimator, X, y)
    twin = entry.estimator.make_non_private()
    assert fitted.privacy_cost_.mu == inf and not fitted.releases_
    if twin == "passthrough":
        assert np.array_equal(fitted.transform(X), X)
        return
    if y is None:
        twin.fit(X)
    else:
        twin.fit(X, y, **registry.weights_for(entry.estimator, X))
    mine, theirs = registry.outputs(fitted, X), registry.outputs(twin, X)
    assert set(mine) == set(theirs)
    for method, values in theirs.items():
        assert np.allclose(mine[method], values, rtol=1e-10, atol=1e-10), method
    for name in ("coef_", "intercept_", "mean_", "var_", "scale_", "classes_"):
        if getattr(twin, name, None) is not None:
            mine, theirs = getattr(fitted, name), getattr(twin, name)
            if name == "intercept_":  # a number, or an array of one: liblinear has both
                mine, theirs = np.atleast_1d(mine), np.atleast_1d(theirs)
            assert np.shape(mine) == np.shape(theirs)
            assert np.allclose(mine, theirs, rtol=1e-10, atol=1e-10)


def test_a_budget_without_end_fits_the_whole_pipeline_without_privacy():
    entry = registry.declared("PrivacyBudget", epsilon=inf)
    X, y = registry.rows_for(entry, 150)
    fitted = registry.fit(entry.estimator, X, y)
    assert fitted.privacy_cost_.mu == inf
    steps = [step.make_non_private() for _, step in entry.estimator.estimator.steps]
    twin = make_pipeline(*steps).fit(X, y)
    assert np.allclose(fitted.predict_proba(X), twin.predict_proba(X), rtol=1e-10, atol=1e-10)


def test_fitted_objects_print():
    for entry in DECLARED:
        fitted, _ = stored(entry)
        assert "epsilon=1 at delta=1e-05" in repr(fitted.privacy_cost_)
        assert len(fitted._repr_html_()) > 100 and repr(fitted).startswith(entry.name)
