"""`privatize`: the private counterpart of ordinary estimators, and the way back."""

import numpy as np
import pytest
from registry import CLASSES, SEARCHES, variants
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import FastICA, KernelPCA
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC, LinearSVR

from skdp import (
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLinearSVR,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileRegressor,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    DPTweedieRegressor,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    non_private,
    privacy_cost,
    privatize,
)
from skdp.cost import row_wise
from skdp.counterpart._find import counterparts
from skdp.twins import _TWINS, register_twin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = (X[:, 0] > 0).astype(int)


def same(a, b):
    """Equal classes and parameters at every depth."""
    return repr(a.get_params(deep=True)) == repr(b.get_params(deep=True)) and type(a) is type(b)


# ---- over the registry ----


def with_twins():
    for name in CLASSES:
        for entry in variants(name):
            twin = non_private(entry.estimator)
            if not isinstance(twin, FunctionTransformer | Pipeline):
                yield pytest.param(entry.estimator, twin, id=str(entry))


@pytest.mark.parametrize(("private", "twin"), [*with_twins()])
def test_there_and_back(private, twin):
    if privacy_cost(twin).is_finite:  # it learns nothing, as it is set
        assert same(privatize(make_pipeline(twin, StandardScaler())).estimator[0], twin)
        return
    budget = privatize(twin)
    if type(twin) in counterparts():  # and no union of several
        assert type(budget.estimator) is type(private)
    assert same(non_private(budget), twin)


def test_every_private_estimator_can_be_found():
    found = set(counterparts().values())
    for param in with_twins():
        private, twin = param.values
        if type(private).__name__ in SEARCHES:
            continue  # an ordinary search stays one, with private candidates
        assert type(private) in found, f"another class stands for {type(twin).__name__} already"


# ---- parameters ----

CARRIED = {
    "same name": (
        LogisticRegression(C=3.0, class_weight={0: 2.0}),
        DPLogisticRegression(C=3.0, class_weight={0: 2.0}),
    ),
    "the threshold of Huber": (
        HuberRegressor(epsilon=2.0, alpha=0.1),
        DPHuberRegressor(threshold=2.0, alpha=0.1),
    ),
    "the tube of a support vector": (
        LinearSVR(epsilon=0.3, C=2.0),
        DPLinearSVR(insensitivity=0.3, C=2.0),
    ),
    "how to compute": (
        LogisticRegression(
            solver="saga", max_iter=7, tol=1.0, random_state=3, verbose=1, warm_start=True
        ),
        DPLogisticRegression(),
    ),
    "unknown categories": (OneHotEncoder(), DPOneHotEncoder(sparse_output=True)),
    "ignored categories": (
        OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False),
        DPOneHotEncoder(handle_unknown="ignore", min_frequency=5),
    ),
    "ordinal numbers": (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-2, max_categories=9),
        DPOrdinalEncoder(unknown_value=-2, max_categories=9),
    ),
    "no ordinal numbers": (OrdinalEncoder(), DPOrdinalEncoder()),
    "kinds of targets": (
        TargetEncoder(target_type="continuous", smooth=3.0),
        DPTargetEncoder(target_type="continuous", smooth=3.0),
    ),
    "jobs": (LinearRegression(n_jobs=2), DPLinearRegression(n_jobs=2)),
    "copies": (StandardScaler(copy=False, with_mean=False), DPStandardScaler(with_mean=False)),
    "a penalty by its name": (LogisticRegression(penalty="l2"), DPLogisticRegression()),
    "the dual": (LinearSVC(dual=False, C=0.5), DPLinearSVC(C=0.5)),
    "a link that means the same": (TweedieRegressor(power=2.0), DPTweedieRegressor(power=2.0)),
    "no other penalty": (
        QuantileRegressor(alpha=0.0, quantile=0.9),
        DPQuantileRegressor(quantile=0.9),
    ),
    "empty columns": (SimpleImputer(strategy="median"), DPSimpleImputer(strategy="median")),
    "numbers of another type": (Ridge(alpha=np.float64(1)), DPRidge()),
}


@pytest.mark.parametrize("title", CARRIED)
def test_parameters_are_carried_over(title):
    estimator, expected = CARRIED[title]
    before = repr(estimator.get_params())
    assert same(privatize(estimator).estimator, expected)
    assert repr(estimator.get_params()) == before


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(penalty="l1"), "penalty='l1' is not among what DPLogisticRegression"),
        (LogisticRegression(penalty=None), "penalty=None is not among"),
        (LogisticRegression(l1_ratio=0.5), "l1_ratio=0.5 is not among"),
        (Ridge(positive=True), "Ridge: positive=True is not among what DPRidge can do"),
        (LinearSVC(loss="hinge"), "loss='hinge'"),
        (QuantileRegressor(), "alpha=1.0"),
        (make_pipeline(LinearSVC(multi_class="crammer_singer")), "step 'linearsvc'.*multi_class="),
    ],
)
def test_parameters_that_matter_are_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        privatize(estimator)


# ---- structures ----


def test_whole_pipelines():
    columns = ColumnTransformer(
        [
            ("num", make_pipeline(PolynomialFeatures(2), StandardScaler()), [0, 1]),
            ("cat", OneHotEncoder(categories=[["a", "b"]]), [2]),
            ("rest", "drop", [3]),
        ],
        remainder="passthrough",
        sparse_threshold=0.0,
    )
    model = VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression(C=2.0))])
    pipeline = Pipeline(
        [("columns", columns), ("union", FeatureUnion([("s", StandardScaler())])), ("model", model)]
    )
    before = repr(pipeline.get_params())
    facts = {"classes": [0, 1], "bounds": (-5, 5), "model__b__classes": [0, 1, 2]}
    private = privatize(pipeline, 2.0, 1e-6, public=facts)
    assert repr(pipeline.get_params()) == before
    params = private.estimator.get_params(deep=True)
    kinds = {
        name: type(params[name]).__name__
        for name in params
        if name.split("__")[-1] in ("standardscaler", "s", "a", "b", "cat")
    }
    assert kinds == {
        "columns__num__standardscaler": "DPStandardScaler",
        "columns__cat": "OneHotEncoder",
        "union__s": "DPStandardScaler",
        "model__a": "DPLogisticRegression",
        "model__b": "DPLogisticRegression",
    }
    assert params["columns__num__standardscaler__bounds"] == params["union__s__bounds"] == (-5, 5)
    assert (params["model__a__classes"], params["model__b__classes"]) == ([0, 1], [0, 1, 2])
    assert privacy_cost(private).epsilon(1e-6) == pytest.approx(2.0)
    assert set(private.allocate()) == {
        "columns__num__standardscaler",
        "union__s",
        "model__a",
        "model__b",
    }
    assert same(non_private(private), pipeline)


def test_the_result_fits_to_the_total():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    facts = {"standardscaler__bounds": (-5, 5), "logisticregression__classes": [0, 1]}
    fitted = privatize(
        pipeline, 5.0, public=facts, shares={"standardscaler": 1, "logisticregression": 3}
    ).fit(X, Y)
    assert fitted.score(X, Y) > 0.8
    assert fitted.privacy_cost_ == PrivacyCost.from_epsilon(5.0, 1e-5)
    replace = privatize(pipeline, PrivacyCost(0.5, "replace"), public=facts, neighboring="replace")
    assert replace.planned_cost().mu == 0.5


def test_other_meta_estimators():
    assert same(
        privatize(
            TransformedTargetRegressor(
                Ridge(alpha=2.0), func=np.log1p, inverse_func=np.expm1, check_inverse=False
            )
        ).estimator,
        TransformedTargetRegressor(
            DPRidge(alpha=2.0), func=np.log1p, inverse_func=np.expm1, check_inverse=False
        ),
    )
    bagging = privatize(
        BaggingClassifier(LogisticRegression(), n_estimators=3, bootstrap=False),
        public={"estimator__classes": [0, 1]},
    )
    assert same(bagging.estimator.estimator, DPLogisticRegression(classes=[0, 1]))


def test_private_steps_and_budgets_stay():
    pipeline = make_pipeline(GaussianMechanism(clip_norm=2.0), DPRidge(alpha=3.0))
    assert same(privatize(pipeline).estimator, pipeline)
    assert same(privatize(PrivacyBudget(pipeline, 7.0), 2.0).estimator, pipeline)
    assert privatize(PrivacyBudget(pipeline, 7.0), 2.0).epsilon == 2.0


def test_frozen_estimators_stay_if_they_are_declared():
    frozen = FrozenEstimator(StandardScaler())
    with pytest.raises(ValueError, match="FrozenEstimator"):
        privatize(make_pipeline(frozen, Ridge()))
    assert privatize(make_pipeline(row_wise(frozen), Ridge())).estimator[0] is frozen


def test_output_containers_stay():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    private = privatize(StandardScaler().set_output(transform="pandas"), public={"bounds": (-5, 5)})
    assert list(private.fit_transform(frame).columns) == ["a", "b", "c"]


# ---- searches ----


def test_grids_are_translated():
    pipeline = make_pipeline(PolynomialFeatures(), HuberRegressor())
    grid = {
        "polynomialfeatures__degree": [1, 2],
        "huberregressor__epsilon": [1.35, 2.0],
        "huberregressor__max_iter": [10, 20],
        "huberregressor__alpha": loguniform(1e-4, 1.0),
    }
    private = privatize(RandomizedSearchCV(pipeline, grid, cv=KFold(3), random_state=0)).estimator
    assert isinstance(private.estimator[1], DPHuberRegressor)
    found = private.param_distributions
    assert found.pop("huberregressor__alpha").kwds == grid["huberregressor__alpha"].kwds
    assert found == {
        "polynomialfeatures__degree": [1, 2],
        "huberregressor__threshold": [1.35, 2.0],
    }


def test_steps_in_a_grid_are_replaced():
    pipeline = Pipeline([("scale", StandardScaler()), ("model", Ridge())])
    grids = [
        {"model": [Ridge(alpha=2.0), LinearRegression()]},
        {"scale": ["passthrough", Normalizer()]},
    ]
    private = privatize(GridSearchCV(pipeline, grids, cv=KFold(3)), public={"y_bounds": (0, 1)})
    found = private.estimator.param_grid
    assert same(found[0]["model"][0], DPRidge(alpha=2.0, y_bounds=(0, 1)))
    assert same(found[0]["model"][1], DPLinearRegression(y_bounds=(0, 1)))
    assert found[1]["scale"][0] == "passthrough"


def test_grids_without_counterpart_are_refused():
    search = GridSearchCV(Ridge(), {"positive": [True, False], "alpha": [1.0]}, cv=KFold(3))
    with pytest.raises(ValueError, match="'positive' has no counterpart in DPRidge"):
        privatize(search)


# ---- errors ----


def test_all_steps_without_counterpart_are_named():
    pipeline = Pipeline(
        [
            ("impute", SimpleImputer(strategy="most_frequent")),
            ("kernel", KernelPCA()),
            ("model", KNeighborsClassifier()),
            ("own", FunctionTransformer(lambda X: X - X.max())),
        ]
    )
    with pytest.raises(ValueError, match="no private counterpart") as caught:
        privatize(pipeline, public={"unheard_of": 1, "model__classes": [0, 1]})
    text = str(caught.value)
    for part in (
        "step 'kernel': KernelPCA",
        "step 'model': KNeighborsClassifier",
        "row_wise(func)",
        "counterparts of",
        "LogisticRegression",
        "public names 'unheard_of'",
        "public names 'model__classes'",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC(), "SVC learns from the data without privacy"),
        (KNeighborsClassifier(), "KNeighborsClassifier"),
        (make_pipeline(Normalizer()), "no private step"),
        (BaggingClassifier(), "BaggingClassifier|DecisionTree"),
        (CalibratedClassifierCV(SVC()), "SVC"),
    ],
)
def test_estimators_without_counterpart(estimator, message):
    with pytest.raises(ValueError, match=message):
        privatize(estimator)


@pytest.mark.parametrize("obj", [Ridge, "passthrough", None])
def test_what_is_no_estimator_is_refused(obj):
    with pytest.raises(TypeError, match="only estimators"):
        privatize(obj)


@pytest.mark.parametrize("name", ["nothing", "ridge__bounds", "epsilon", "random_state"])
def test_facts_that_fit_nothing_are_named(name):
    with pytest.raises(ValueError, match=f"public names '{name}'"):
        privatize(make_pipeline(Normalizer(), DPRidge()), public={name: 1})


def test_a_fact_can_make_a_step_free():
    pipeline = make_pipeline(OneHotEncoder(), PoissonRegressor())
    private = privatize(pipeline, public={"categories": [["a", "b"]]}).estimator
    assert private[0].categories == [["a", "b"]] and isinstance(private[0], OneHotEncoder)


# ---- classes of others ----


class PrivateICA(BaseEstimator):
    """A third party's estimator."""

    def __init__(self, epsilon=1.0, dimensions=2):
        self.epsilon = epsilon
        self.dimensions = dimensions

    def planned_cost(self):
        cost = self.epsilon
        return cost if isinstance(cost, PrivacyCost) else PrivacyCost.from_epsilon(cost, 1e-5)

    def fit(self, X, y=None): ...

    def transform(self, X): ...


def test_registered_twins_are_counterparts():
    try:
        register_twin(PrivateICA, lambda private: FastICA(n_components=private.dimensions))
        private = privatize(make_pipeline(FastICA(n_components=5, max_iter=9), Ridge())).estimator
        assert same(private[0], PrivateICA(dimensions=5))
        assert same(non_private(private)[0], FastICA(n_components=5))
        with pytest.raises(ValueError, match="fun='exp' is not among what PrivateICA"):
            privatize(FastICA(n_components=2, fun="exp"))
    finally:
        del _TWINS[PrivateICA]


def test_classes_of_skdp_come_first():
    class MyScaler(BaseEstimator): ...

    try:
        register_twin(MyScaler, lambda scaler: StandardScaler())
        assert counterparts()[StandardScaler] is DPStandardScaler
    finally:
        del _TWINS[MyScaler]
    assert isinstance(clone(privatize(StandardScaler())), PrivacyBudget)
