"""`PrivacyBudget`: a stated total for whatever has private steps."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from private_centre import PrivateCentre
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import (
    DPLogisticRegression,
    DPRidge,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    DPVarianceThreshold,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    privacy_cost,
)
from skdp.budget import default_shares
from skdp.cost import row_wise
from skdp.exceptions import PrivacyWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]


def clf(**params):
    return DPLogisticRegression(classes=[0, 1], **params)


def pipeline(**params):
    return Pipeline([("scaler", PrivateCentre()), ("model", clf(**params))])


def columns():
    blocks = [
        ("num", Pipeline([("scaler", PrivateCentre()), ("norm", Normalizer())]), [0, 1]),
        ("other", PrivateCentre(), [2]),
    ]
    return Pipeline([("columns", ColumnTransformer(blocks)), ("model", clf())])


def data(n=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


CHECKED = [
    PrivacyBudget(DPLogisticRegression()),
    PrivacyBudget(DPLogisticRegression(), epsilon=math.inf),
    PrivacyBudget(make_pipeline(PrivateCentre(), DPRidge(y_bounds=(-100, 100)))),
    PrivacyBudget(PrivateCentre(), epsilon=20.0),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    if "one_label_sample_weights" in str(check) and estimator.epsilon != math.inf:
        pytest.skip("ten rows do not decide a prediction, noise does")
    check(estimator)


# ---- allocation ----


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 30.0, PrivacyCost(0.7)])
@pytest.mark.parametrize("shares", [None, {"scaler": 1, "model": 2}, {"scaler": 0.3, "model": 9e3}])
def test_parts_compose_to_the_total_and_never_to_more(epsilon, shares):
    budget = PrivacyBudget(pipeline(), epsilon, shares=shares)
    total = epsilon if isinstance(epsilon, PrivacyCost) else PrivacyCost.from_epsilon(epsilon, 1e-5)
    composed = PrivacyCost.compose(budget.allocate().values()).mu
    assert total.mu * (1 - 1e-15) <= composed <= total.mu
    assert budget.planned_cost() == total
    X, y = data()
    fitted = budget.fit(X, y)
    assert fitted.privacy_cost_ == total
    spent = [step.privacy_cost_ for _, step in fitted.estimator_.steps]
    assert PrivacyCost.compose(spent).mu == composed
    assert privacy_cost(fitted) == total


def test_shares_are_shares_of_squared_mu():
    parts = PrivacyBudget(pipeline(), shares={"model": 3, "scaler": 1}).allocate()
    mu = PrivacyCost.from_epsilon(1.0, 1e-5).mu
    assert parts["scaler"].mu == pytest.approx(mu * 0.5, rel=1e-15)
    assert parts["model"].mu == pytest.approx(mu * 0.75**0.5, rel=1e-15)


def test_default_shares():
    def shares(estimator):
        parts = PrivacyBudget(estimator, PrivacyCost(1.0)).allocate()
        return {name: pytest.approx(part.mu**2, rel=1e-12) for name, part in parts.items()}

    assert shares(clf()) == {"": 1.0}
    assert shares(pipeline()) == {"scaler": 0.1, "model": 0.9}
    assert shares(columns()) == {
        "columns__num__scaler": 0.1,
        "columns__other": 0.1,
        "model": 0.8,
    }
    many = make_pipeline(*[PrivateCentre() for _ in range(9)], clf())
    assert list(shares(many).values()) == [0.5 / 9] * 9 + [0.5]
    assert shares(make_pipeline(PrivateCentre(), Normalizer(), PrivateCentre())) == {
        "privatecentre-1": 0.5,
        "privatecentre-2": 0.5,
    }
    # A mechanism that releases rows is no preparation.
    noise = Pipeline([("s", PrivateCentre()), ("noise", GaussianMechanism()), ("m", Ridge())])
    assert shares(noise) == {"s": 0.1, "noise": 0.9}
    assert default_shares({"a": clf(), "b": clf()}) == {"a": 0.5, "b": 0.5}


def test_a_step_that_has_to_find_bounds_gets_three_tenths():
    def share(step, *more):
        return PrivacyBudget(make_pipeline(step, *more, clf()), PrivacyCost(1.0)).allocate()

    for kind in (DPStandardScaler, DPRobustScaler, DPSimpleImputer, DPVarianceThreshold):
        name = kind.__name__.lower()
        total = PrivacyCost.compose(share(kind()).values()).mu
        assert 1 - 1e-12 < total <= 1.0  # whatever the shares are
        assert share(kind())[name].mu ** 2 == pytest.approx(0.3)
        assert share(kind(bounds=(0, 1)))[name].mu ** 2 == pytest.approx(0.1)
    both = share(DPSimpleImputer(), DPStandardScaler())
    assert both["dpstandardscaler"].mu ** 2 == pytest.approx(0.25)  # half for all of them


def test_nested_names():
    names = {"columns__num__scaler": 1, "columns__other": 1, "model": 2}
    budget = PrivacyBudget(columns(), 2.0, shares=names)
    X, y = data()
    budget.fit(X, y)
    num = budget.estimator_["columns"].named_transformers_["num"]
    assert num["scaler"].privacy_cost_.mu == pytest.approx(budget.privacy_cost_.mu / 2)
    assert budget.privacy_cost_.epsilon() == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"scaler": 1}, r"each private step once: \['model', 'scaler'\], got \['scaler'\]"),
        ({"scaler": 1, "model": 1, "modle": 1}, "'modle'"),
        ({"scaler": 1, "modle": 1}, "'modle'"),
        ({}, "each private step"),
        ({"scaler": 0, "model": 1}, "positive and finite numbers, got 0 for 'scaler'"),
        ({"scaler": -1, "model": 1}, "positive"),
        ({"scaler": math.inf, "model": 1}, "finite"),
        ({"scaler": math.nan, "model": 1}, "finite"),
        ({"scaler": True, "model": 1}, "numbers"),
        ({"scaler": "1", "model": 1}, "numbers"),
        ([1, 2], "'shares' parameter"),
    ],
)
def test_bad_shares_are_refused_before_the_data_are_touched(shares, message):
    with pytest.raises(ValueError, match=message):
        PrivacyBudget(pipeline(), shares=shares).fit(Untouchable(), Untouchable())


class Untouchable:
    """Fails on any use."""

    def __getattribute__(self, name):
        raise AssertionError(f"the data were touched: {name}")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(StandardScaler(), clf()),
            "'standardscaler': StandardScaler learns.*DPSt",
        ),
        (make_pipeline(PrivateCentre(), LogisticRegression()), "step 'logisticregression'"),
        (make_pipeline(PCA(), GaussianMechanism(), Ridge()), "step 'pca'"),
        (LogisticRegression(), "LogisticRegression learns"),
        (make_pipeline(Normalizer()), "no private step"),
        (
            make_pipeline(FrozenEstimator(PrivateCentre()), clf()),
            "'frozenestimator'.*cannot be set",
        ),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_estimators_that_keep_no_budget_are_refused(estimator, message, epsilon):
    budget = PrivacyBudget(estimator, epsilon)
    for action in (lambda: budget.fit(Untouchable(), Untouchable()), budget.planned_cost):
        with pytest.raises(ValueError, match=message):
            action()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"neighboring": "remove"}, "neighboring"),
        ({"epsilon": PrivacyCost(1.0, "replace")}, "neighboring"),
        ({"epsilon": PrivacyCost(0.0)}, "zero"),
    ],
)
def test_bad_budgets_are_refused(params, message):
    for skip in (False, True):
        with config_context(skip_parameter_validation=skip):
            with pytest.raises((TypeError, ValueError), match=message):
                PrivacyBudget(pipeline(), **params).fit(Untouchable(), Untouchable())


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match="only estimators"):
        PrivacyBudget("pipeline").fit(*data())


def test_what_the_steps_say_about_their_budget_is_not_used():
    steps = Pipeline(
        [
            ("scaler", PrivateCentre(epsilon=9.0, neighboring="replace")),
            ("model", clf(epsilon=math.inf, delta=0.1)),
        ]
    )
    budget = PrivacyBudget(steps, 1.0, 1e-6, neighboring="replace")
    X, y = data()
    cost = budget.fit(X, y).privacy_cost_
    assert cost == PrivacyCost.from_epsilon(1.0, 1e-6, neighboring="replace")
    assert steps["model"].epsilon == math.inf  # nor changed
    assert PrivacyBudget(steps).fit(X, y).privacy_cost_.neighboring == "add_or_remove"


def test_infinite_epsilon_fits_everything_without_privacy():
    X, y = data()
    budget = PrivacyBudget(pipeline(C=2.0), math.inf).fit(X, y)
    assert not budget.privacy_cost_.is_finite
    assert not budget.estimator_["scaler"].privacy_cost_.is_finite
    twin = LogisticRegression(C=2.0).fit(X, y)
    np.testing.assert_allclose(budget.decision_function(X), twin.decision_function(X))


def test_assumptions_of_the_steps_are_stated():
    X, y = data()
    budget = PrivacyBudget(pipeline(random_state=0).set_params(model__classes=None))
    assert any("random_state" in text for text in budget.planned_cost().assumptions)
    assert any("class labels" in text for text in budget.fit(X, y).privacy_cost_.assumptions)


def test_one_seed_for_all_steps():
    X, y = data()
    budget = PrivacyBudget(pipeline(), random_state=3)
    assert any("random_state" in text for text in budget.planned_cost().assumptions)
    a, b = clone(budget).fit(X, y), clone(budget).fit(X, y)
    np.testing.assert_array_equal(a.estimator_["model"].coef_, b.estimator_["model"].coef_)
    assert a.estimator_["scaler"].random_state == 3
    fresh = [clone(budget).set_params(random_state=None).fit(X, y) for _ in range(2)]
    assert np.all(fresh[0].estimator_["model"].coef_ != fresh[1].estimator_["model"].coef_)
    own = PrivacyBudget(pipeline(random_state=5))
    assert clone(own).fit(X, y).estimator_["model"].random_state == 5


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (PrivacyBudget(pipeline()), True),
        (PrivacyBudget(clf()), True),
        (PrivacyBudget(pipeline(), math.inf), False),
        (PrivacyBudget(pipeline(), PrivacyCost(math.inf)), False),
        (PrivacyBudget(pipeline(), random_state=0), False),
        (PrivacyBudget(clf(random_state=0)), False),
        (PrivacyBudget(pipeline(random_state=0)), True),  # the scaler has no seed
    ],
)
def test_tags_say_whether_two_fits_are_equal(budget, expected):
    assert get_tags(budget).non_deterministic is expected


def test_the_cost_is_that_of_the_fit():
    X, y = data()
    budget = PrivacyBudget(pipeline(), 1.0).fit(X, y)
    cost = budget.privacy_cost_
    assert budget.set_params(epsilon=0.1).privacy_cost_ == cost


def test_releases_after_the_fit_are_charged():
    X, y = data()
    budget = PrivacyBudget(make_pipeline(GaussianMechanism(), Ridge()), 20.0).fit(X, y)
    total = PrivacyCost.from_epsilon(20.0, 1e-5)
    assert budget.privacy_cost_.mu == total.mu
    budget.predict(X)
    assert budget.privacy_cost_.mu == pytest.approx(total.mu * 2**0.5)
    # fit_transform releases the rows once, not twice.
    noise = PrivacyBudget(make_pipeline(GaussianMechanism(), PCA(2)), 20.0)
    assert noise.fit_transform(X).shape == (200, 2)
    assert noise.privacy_cost_.mu == total.mu


# ---- searches inside ----


def test_a_search_gets_its_share_divided_by_its_fits():
    X, y = data()
    search = GridSearchCV(pipeline(), {"model__C": [0.1, 1.0]}, cv=KFold(3))
    budget = PrivacyBudget(search, 3.0)
    parts = budget.allocate()
    assert list(parts) == ["estimator__scaler", "estimator__model"]
    total = PrivacyCost.from_epsilon(3.0, 1e-5)
    fits = 2 * 2 + 1
    assert parts["estimator__model"].mu == pytest.approx(total.mu * (0.9 / fits) ** 0.5)
    assert budget.fit(X, y).privacy_cost_.mu == total.mu
    assert privacy_cost(budget.estimator_).mu <= total.mu
    assert privacy_cost(budget.estimator_).mu == pytest.approx(total.mu, rel=1e-14)
    assert any("choice of GridSearchCV" in text for text in budget.privacy_cost_.assumptions)


def test_a_search_of_unequal_counts_of_fits():
    grid = [{"scaler": ["passthrough"]}, {"model__C": [1.0, 2.0]}]
    budget = PrivacyBudget(GridSearchCV(pipeline(), grid, cv=KFold(2), refit=False), 3.0)
    # The model is fitted 3 times, the scaler twice.
    total = PrivacyCost.from_epsilon(3.0, 1e-5).mu
    parts = budget.allocate()
    assert parts["estimator__scaler"].mu == pytest.approx(total * (0.1 / 2) ** 0.5)
    assert parts["estimator__model"].mu == pytest.approx(total * (0.9 / 3) ** 0.5)


@pytest.mark.parametrize("grid", [{"model__epsilon": [1.0, 50.0]}, {"model": [clf(epsilon=50.0)]}])
def test_searches_that_vary_the_budget_itself_are_refused(grid):
    budget = PrivacyBudget(GridSearchCV(pipeline(), grid, cv=KFold(2)), 1.0)
    with pytest.raises(ValueError, match="more than the budget"):
        budget.fit(Untouchable(), Untouchable())


# ---- as a scikit-learn object ----


def test_nested_budgets():
    X, y = data()
    inner = PrivacyBudget(pipeline(), shares={"scaler": 1, "model": 1})
    outer = PrivacyBudget(Pipeline([("first", PrivateCentre()), ("inner", inner)]), 2.0)
    total = PrivacyCost.from_epsilon(2.0, 1e-5)
    assert outer.fit(X, y).privacy_cost_ == total
    inside = outer.estimator_["inner"]
    assert inside.privacy_cost_.mu == pytest.approx(total.mu * 0.9**0.5)
    assert inside.estimator_["model"].privacy_cost_.mu == pytest.approx(total.mu * 0.45**0.5)
    assert privacy_cost(outer.estimator_).mu <= total.mu


def test_searches_over_budgets():
    X, y = data()
    budget = PrivacyBudget(pipeline())
    grid = {
        "epsilon": [1.0, 30.0],
        "shares": [None, {"scaler": 1, "model": 1}],
        "estimator__model__C": [0.1, 1.0],
    }
    search = GridSearchCV(budget, grid, cv=KFold(2), n_jobs=2, error_score="raise").fit(X, y)
    # Four candidates of each epsilon, one training set of two holds a record, and a refit.
    best = search.best_estimator_.epsilon
    parts = [PrivacyCost.from_epsilon(e, 1e-5) for e in [1.0] * 4 + [30.0] * 4 + [best]]
    assert privacy_cost(search).mu == PrivacyCost.compose(parts).mu
    assert search.score(X, y) > 0.6


def test_clone_pickle_and_html():
    X, y = data()
    budget = PrivacyBudget(pipeline(C=2.0), 3.0, shares={"scaler": 1, "model": 4})
    assert repr(clone(budget)) == repr(budget)
    fitted = pickle.loads(pickle.dumps(clone(budget).fit(X, y)))
    assert fitted.predict(X).shape == (200,)
    assert fitted.privacy_cost_.epsilon() == pytest.approx(3.0)
    for name in ("PrivacyBudget", "PrivateCentre", "DPLogisticRegression"):
        assert name in budget._repr_html_()
    assert budget.set_params(estimator__model__C=5.0).estimator["model"].C == 5.0


def test_methods_are_those_of_the_estimator_inside():
    X, y = data()
    classifier = PrivacyBudget(pipeline())
    regressor = PrivacyBudget(make_pipeline(PrivateCentre(), DPRidge(y_bounds=(0, 1))))
    scaler = PrivacyBudget(PrivateCentre())
    assert is_classifier(classifier) and not is_regressor(classifier)
    assert is_regressor(regressor) and not is_classifier(regressor)
    assert hasattr(classifier, "predict_proba") and not hasattr(regressor, "predict_proba")
    assert not hasattr(classifier, "transform") and hasattr(scaler, "transform")
    assert not hasattr(scaler, "predict")
    with pytest.raises(NotFittedError):
        classifier.predict(X)
    for name in ("classes_", "n_features_in_", "privacy_cost_", "feature_names_in_"):
        assert not hasattr(classifier, name)
    classifier.fit(X, y)
    assert classifier.predict_proba(X).shape == (200, 2)
    assert np.allclose(np.exp(classifier.predict_log_proba(X)), classifier.predict_proba(X))
    assert list(classifier.classes_) == [0, 1]
    assert classifier.n_features_in_ == 3
    assert 0 <= classifier.score(X, y) <= 1
    assert cross_val_score(regressor, X, y, cv=2).shape == (2,)
    scaler.fit(X)
    np.testing.assert_array_equal(scaler.inverse_transform(scaler.transform(X)), X)


def test_feature_names_and_set_output():
    X, _ = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    scaler = PrivacyBudget(PrivateCentre()).set_output(transform="pandas").fit(frame)
    assert list(scaler.feature_names_in_) == ["a", "b", "c"]
    assert list(scaler.get_feature_names_out()) == ["a", "b", "c"]
    assert list(scaler.transform(frame).columns) == ["a", "b", "c"]
    scaler.set_output(transform="default")
    assert isinstance(scaler.transform(frame), np.ndarray)
    both = make_pipeline(PrivacyBudget(PrivateCentre()), Normalizer()).set_output(
        transform="pandas"
    )
    assert isinstance(both.fit_transform(frame), pd.DataFrame)


def test_metadata_are_passed_on_or_routed():
    class Weighted(PrivateCentre):
        def fit(self, X, y=None, sample_weight=None):
            self.weighted_ = sample_weight is not None
            return super().fit(X)

    X, _ = data()
    weights = np.ones(len(X))
    assert PrivacyBudget(Weighted()).fit(X, sample_weight=weights).estimator_.weighted_
    with config_context(enable_metadata_routing=True):
        routed = PrivacyBudget(Weighted().set_fit_request(sample_weight=True))
        assert routed.fit(X, sample_weight=weights).estimator_.weighted_
        step = make_pipeline(clone(routed)).fit(X, sample_weight=weights)
        assert step[-1].estimator_.weighted_
        with pytest.raises(TypeError, match="sample_weight"):
            PrivacyBudget(PrivateCentre()).fit(X, sample_weight=weights)


# ---- what is not used, and what cannot be passed on ----

NOT_USED = "estimator in a PrivacyBudget are not used"


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        (pipeline(epsilon=3.0), "model__epsilon of"),
        (pipeline(epsilon=math.inf, delta=1e-6), "model__epsilon, model__delta of"),
        (pipeline(epsilon=PrivacyCost(1.0)), "model__epsilon of"),
        (clf(epsilon=2.0), "epsilon of"),
    ],
)
def test_budgets_of_steps_are_warned_about(steps, names):
    with pytest.warns(PrivacyWarning, match=f"^{names} the {NOT_USED}") as caught:
        PrivacyBudget(steps).fit(*data())
    assert __file__ in [w.filename for w in caught]


@pytest.mark.filterwarnings("error::skdp.exceptions.PrivacyWarning")
def test_budgets_of_steps_at_their_defaults_or_of_equal_delta_are_silent():
    PrivacyBudget(pipeline(epsilon=1.0), epsilon=3.0).fit(*data())
    PrivacyBudget(pipeline(delta=1e-6), delta=1e-6).fit(*data())


def test_a_search_over_a_budget_that_is_not_used_says_so():
    search = GridSearchCV(
        PrivacyBudget(pipeline()), {"estimator__model__epsilon": [0.1, 1.0]}, cv=2
    )
    with pytest.warns(PrivacyWarning, match=f"model__epsilon of the {NOT_USED}"):
        search.fit(*data())


@pytest.mark.parametrize(
    ("estimator", "name"),
    [(PrivateCentre(), "sample_weight"), (pipeline(), "scaler__sample_weight")],
)
def test_sample_weights_are_refused_by_the_name_of_the_estimator(estimator, name):
    X, y = data()
    with pytest.raises(TypeError, match="^PrivateCentre.fit takes no 'sample_weight'"):
        PrivacyBudget(estimator).fit(X, y, **{name: np.ones(len(y))})


# ---- errors and what they quote ----

SECRET = "HIV+ John Doe"
ENCODER = OneHotEncoder(categories=[["a", "b"]])


def letters(secret=True):
    X = np.array([["a"], ["b"]] * 100, dtype=object)
    X[0, 0] = SECRET if secret else "a"
    return X, np.arange(200) % 2


def whole(error):
    """All that an error shows, with what led to it."""
    seen = []
    while error is not None:
        seen.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return "\n".join(seen)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([ENCODER], "categories that are not among"),
        ([Normalizer()], "not numbers"),
        ([FunctionTransformer(np.square, validate=True)], "not numbers"),
        ([FunctionTransformer(np.square)], "cannot be read"),
        ([ColumnTransformer([("words", ENCODER, [0])])], "categories that are not among"),
        ([ColumnTransformer([("a", ENCODER, [0]), ("b", ENCODER, [0])], n_jobs=2)], None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_inside_a_budget_quote_no_values(steps, message):
    X, y = letters()
    model = make_pipeline(*steps, clf())
    with pytest.raises((TypeError, ValueError)) as bare:
        clone(model).fit(X, y)
    if not isinstance(steps[0], FunctionTransformer):
        assert SECRET in whole(bare.value)
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        PrivacyBudget(model).fit(X, y)
    assert SECRET not in whole(caught.value)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "score"])
def test_errors_of_later_calls_quote_no_values(method):
    X, y = letters(secret=False)
    model = PrivacyBudget(make_pipeline(ENCODER, clf())).fit(X, y)
    arguments = letters() if method == "score" else letters()[:1]
    with pytest.raises(ValueError, match="categories that are not among") as caught:
        getattr(model, method)(*arguments)
    assert SECRET not in whole(caught.value)
    scaler = PrivacyBudget(make_pipeline(Normalizer(), PrivateCentre()))
    with pytest.raises(ValueError, match="not numbers") as caught:
        scaler.fit_transform(letters()[0])
    assert SECRET not in whole(caught.value)


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (clf(C=-1.0), ValueError, "'C' parameter of DPLogisticRegression"),
        (make_pipeline(Normalizer(norm="l3"), clf()), ValueError, "'norm' parameter of Normalizer"),
        (DPLogisticRegression(classes=[5, 6]), ValueError, "labels that are not among `classes`"),
        (make_pipeline(row_wise(FrozenEstimator(PCA())), clf()), NotFittedError, "PCA instance is"),
    ],
    ids=["own", "parameter", "labels", "not fitted"],
)
def test_errors_that_quote_nothing_stay_what_they_are(model, kind, message):
    with pytest.raises(kind, match=message):
        PrivacyBudget(model).fit(*data())


def test_unknown_arguments_are_named():
    X, y = data()
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        PrivacyBudget(make_pipeline(Normalizer(), clf())).fit(X, y, normalizer__weights=1)
    with pytest.raises(ValueError, match="does not accept the weights parameter"):
        PrivacyBudget(pipeline()).fit(X, y, weights=1)
