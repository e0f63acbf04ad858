"""`non_private`: the public twin of any object."""

import numpy as np
import pytest
from private_centre import PrivateCentre
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, StackingRegressor, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from skdp import (
    DPLinearRegression,
    DPLogisticRegression,
    DPRidge,
    GaussianMechanism,
    PrivacyBudget,
    non_private,
)
from skdp.twins import _TWINS, register_twin

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")


def same(a, b):
    """Equal classes and parameters at every depth."""
    return repr(a.get_params(deep=True)) == repr(b.get_params(deep=True)) and type(a) is type(b)


CLF = DPLogisticRegression(epsilon=0.5, C=3.0, classes=[0, 1])
TWINS = {
    "logistic regression": (CLF, LogisticRegression(C=3.0)),
    "linear regression": (
        DPLinearRegression(fit_intercept=False),
        LinearRegression(fit_intercept=False),
    ),
    "ridge": (DPRidge(alpha=7.0), Ridge(alpha=7.0)),
    "a mechanism on its own": (GaussianMechanism(), FunctionTransformer()),
    "an ordinary estimator": (Ridge(alpha=2.0), Ridge(alpha=2.0)),
    "a pipeline": (
        Pipeline([("n", Normalizer()), ("s", PrivateCentre(with_std=False)), ("m", CLF)]),
        Pipeline(
            [
                ("n", Normalizer()),
                ("s", StandardScaler(with_std=False)),
                ("m", LogisticRegression(C=3.0)),
            ]
        ),
    ),
    "a mechanism in a pipeline": (
        Pipeline([("noise", GaussianMechanism()), ("m", Ridge())]),
        Pipeline([("noise", "passthrough"), ("m", Ridge())]),
    ),
    "columns": (
        ColumnTransformer(
            [("a", make_pipeline(PrivateCentre()), [0]), ("b", "drop", [1])],
            remainder=GaussianMechanism(),
        ),
        ColumnTransformer(
            [("a", Pipeline([("privatecentre", StandardScaler())]), [0]), ("b", "drop", [1])],
            remainder="passthrough",
        ),
    ),
    "a union": (
        FeatureUnion([("a", GaussianMechanism()), ("b", PrivateCentre())]),
        FeatureUnion([("a", "passthrough"), ("b", StandardScaler())]),
    ),
    "a target": (
        TransformedTargetRegressor(DPRidge(), transformer=PrivateCentre()),
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    ),
    "a mechanism where passthrough is no choice": (
        TransformedTargetRegressor(Ridge(), transformer=GaussianMechanism()),
        TransformedTargetRegressor(Ridge(), transformer=FunctionTransformer()),
    ),
    "a budget": (
        PrivacyBudget(make_pipeline(PolynomialFeatures(), DPRidge())),
        Pipeline([("polynomialfeatures", PolynomialFeatures()), ("dpridge", Ridge())]),
    ),
    "a budget in a pipeline": (
        Pipeline([("a", PrivacyBudget(PrivateCentre())), ("b", PrivacyBudget(DPRidge()))]),
        Pipeline([("a", StandardScaler()), ("b", Ridge())]),
    ),
    "bagging": (BaggingClassifier(CLF), BaggingClassifier(LogisticRegression(C=3.0))),
    "voting": (
        VotingClassifier([("a", CLF)]),
        VotingClassifier([("a", LogisticRegression(C=3.0))]),
    ),
    "stacking": (
        StackingRegressor([("a", DPRidge())], final_estimator=DPLinearRegression()),
        StackingRegressor([("a", Ridge())], final_estimator=LinearRegression()),
    ),
    "a search": (
        GridSearchCV(CLF, {"C": [1.0, 2.0], "epsilon": [1, 2]}, cv=KFold(3), refit=False),
        GridSearchCV(LogisticRegression(C=3.0), {"C": [1.0, 2.0]}, cv=KFold(3), refit=False),
    ),
}


@pytest.mark.parametrize("title", TWINS)
def test_twins(title):
    obj, expected = TWINS[title]
    before = repr(obj.get_params(deep=True))
    twin = non_private(obj)
    assert same(twin, expected)
    assert repr(obj.get_params(deep=True)) == before
    # Nothing is shared: the twin can be changed at every depth.
    ours = {id(v) for v in obj.get_params(deep=True).values() if isinstance(v, BaseEstimator)}
    theirs = {id(v) for v in twin.get_params(deep=True).values() if isinstance(v, BaseEstimator)}
    assert not ours & theirs and twin is not obj
    assert same(non_private(twin), twin)


def test_a_fitted_object_has_an_unfitted_twin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    pipeline = make_pipeline(PrivateCentre(), CLF).fit(X, X[:, 0] > 0)
    twin = non_private(pipeline)
    assert not hasattr(twin[0], "mean_")
    twin.fit(X, X[:, 0] > 0)
    assert twin.score(X, X[:, 0] > 0) > 0.9
    assert pipeline[-1].privacy_cost_.is_finite


def test_set_output_is_carried_over():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 2.0]})
    pipeline = Pipeline([("s", PrivateCentre())]).set_output(transform="pandas")
    result = non_private(pipeline).fit_transform(frame)
    assert list(result.columns) == ["a", "b"]


def test_frozen_estimators():
    frozen = FrozenEstimator(StandardScaler())
    assert non_private(frozen) is frozen
    assert same(non_private(FrozenEstimator(DPRidge())), Ridge())


# ---- the grid of a search ----

PIPELINE = Pipeline([("poly", PolynomialFeatures()), ("noise", GaussianMechanism()), ("m", CLF)])


def twin_grid(estimator, grid):
    return non_private(GridSearchCV(estimator, grid)).param_grid


def test_privacy_parameters_are_dropped_and_others_kept():
    grid = {
        "poly__degree": [1, 2],
        "noise__epsilon": [1, 2],
        "m__C": [1.0, 3.0],
        "m__epsilon": [1, 9],
    }
    assert twin_grid(PIPELINE, grid) == {"poly__degree": [1, 2], "m__C": [1.0, 3.0]}
    assert twin_grid(PIPELINE, {"m__epsilon": [1.0]}) == {}
    grids = [{"m__C": [1.0, 2.0]}, {"m__clip_norm": [0.1]}]
    assert twin_grid(PIPELINE, grids) == [{"m__C": [1.0, 2.0]}, {}]


def test_parameters_of_one_name_and_two_meanings_are_dropped():
    # Both logistic regressions have a `solver`, with other values each.
    assert twin_grid(CLF, {"solver": ["gradient-descent"], "n_jobs": [1, 2]}) == {}


def test_gradient_steps_are_not_iterations_of_the_twin():
    assert twin_grid(CLF, {"max_iter": [None, 20], "C": [0.1, 1.0]}) == {"C": [0.1, 1.0]}


def test_grids_over_steps():
    grid = {"m": [DPLogisticRegression(epsilon=2.0), DPRidge()], "m__fit_intercept": [True, False]}
    found = twin_grid(PIPELINE, grid)
    assert [repr(value) for value in found["m"]] == ["LogisticRegression()", "Ridge()"]
    assert found["m__fit_intercept"] == [True, False]
    found = twin_grid(PIPELINE, {"noise": [GaussianMechanism(), PrivateCentre()]})
    assert [str(value) for value in found["noise"]] == ["passthrough", "StandardScaler()"]
    # A parameter that only one of the replacements has.
    found = twin_grid(PIPELINE, {"m": [CLF, DPRidge()], "m__alpha": [1.0, 5.0]})
    assert found["m__alpha"] == [1.0, 5.0]


def test_names_lead_through_budgets_that_vanish():
    budget = PrivacyBudget(PIPELINE)
    grid = {
        "epsilon": [1, 2],
        "shares": [None],
        "estimator__m__C": [5.0],
        "estimator__poly__degree": [3],
    }
    assert twin_grid(budget, grid) == {"m__C": [5.0], "poly__degree": [3]}
    inside = Pipeline([("b", budget)])
    assert twin_grid(inside, {"b__estimator__m__C": [5.0], "b__epsilon": [2.0]}) == {
        "b__m__C": [5.0]
    }
    with pytest.raises(ValueError, match="'estimator' of the grid"):
        twin_grid(budget, {"estimator": [PIPELINE, CLF]})


def test_values_without_equality_are_kept():
    functions = [np.tanh, lambda X: X]
    found = twin_grid(Pipeline([("f", FunctionTransformer()), ("m", CLF)]), {"f__func": functions})
    assert found == {"f__func": functions}


def test_distributions():
    space = {"m__C": loguniform(1, 9), "m__epsilon": loguniform(1, 9), "poly__degree": [1, 3]}
    twin = non_private(RandomizedSearchCV(PIPELINE, space))
    assert set(twin.param_distributions) == {"m__C", "poly__degree"}
    assert 1 <= twin.param_distributions["m__C"].rvs() <= 9


def test_the_twin_of_a_search_runs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    search = GridSearchCV(PIPELINE, {"m__C": [1.0, 2.0], "m__epsilon": [1.0, 2.0]}, cv=KFold(2))
    twin = non_private(search).fit(X, X[:, 0] > 0)
    assert len(twin.cv_results_["params"]) == 2
    assert twin.score(X, X[:, 0] > 0) > 0.8


# ---- registry ----


def test_registered_twins():
    class Mine(BaseEstimator):
        def __init__(self, inner=None, depth=1):
            self.inner = inner
            self.depth = depth

    class Derived(Mine): ...

    try:
        register_twin(Mine, lambda obj: Ridge(alpha=obj.depth))
        assert same(non_private(Derived(depth=4)), Ridge(alpha=4))
        assert same(non_private(make_pipeline(Derived()))[0], Ridge(alpha=1))
        register_twin(Mine, "inner")
        assert same(non_private(Derived(inner=DPRidge())), Ridge())
    finally:
        del _TWINS[Mine]
    assert same(non_private(clone(Derived(depth=2))), Derived(depth=2))


@pytest.mark.parametrize(("cls", "twin"), [("Mine", "inner"), (Ridge, 3)])
def test_bad_registrations_are_refused(cls, twin):
    with pytest.raises(TypeError):
        register_twin(cls, twin)


@pytest.mark.parametrize("obj", [Ridge, "passthrough", None])
def test_what_is_no_estimator_is_refused(obj):
    with pytest.raises(TypeError, match="only estimators"):
        non_private(obj)
