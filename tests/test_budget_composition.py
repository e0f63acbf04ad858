"""A stated total for everything that composes: never exceeded, used up to the last bits."""

from math import inf, ulp

import numpy as np
import pytest
from private_centre import PrivateCentre
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, StackingClassifier, StackingRegressor
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline, make_union
from test_composition import MU, TABLE, clf, data, reg, scaled, stacked, voting

from skdp import PrivacyBudget, PrivacyCost, privacy_cost
from skdp.budget import default_shares
from skdp.exceptions import PrivacyBudgetError

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:.*missing from test set:UserWarning"),
]
# One candidate fits its estimator more often than another: an equal budget for each fit leaves
# something unused.
UNEVEN = {"a search over the number of bags: (2 + 3) x 1 + 3"}
# The rest fits what these fit, several times over.
FITTED = [title for title in TABLE if "cache" not in title and "search" not in title]


def without_budgets(obj):
    """The same estimator, with no budgets of its own."""
    names = [name for name in obj.get_params() if name.rpartition("__")[2] == "epsilon"]
    return clone(obj).set_params(**dict.fromkeys(names, 1.0))


@pytest.mark.parametrize(
    ("title", "neighboring"),
    [
        *((title, "add_or_remove") for title in TABLE),
        *((title, "replace") for title in TABLE if "one-vs" in title or "chain" in title),
    ],
)
def test_parts_compose_to_the_total_and_never_to_more(title, neighboring):
    obj, _, _, facts, _ = TABLE[title]
    total = PrivacyCost.from_epsilon(2.0, 1e-6, neighboring=neighboring)
    budget = PrivacyBudget(obj, total, neighboring=neighboring, **facts)
    spent = privacy_cost(budget.configured(), **facts)
    assert spent.mu <= total.mu
    if title not in UNEVEN:
        assert spent.mu >= total.mu - 4 * ulp(total.mu)
    planned = clone(budget).set_params(epsilon=2.0, delta=1e-6).planned_cost()
    assert (planned.mu, planned.neighboring) == (total.mu, neighboring)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", FITTED)
def test_a_fit_costs_the_total(title):
    obj, _, _, facts, kind = TABLE[title]
    X, y = data(kind)
    budget = PrivacyBudget(without_budgets(obj), 3.0, **facts).fit(X, y)
    assert budget.privacy_cost_.mu == PrivacyCost.from_epsilon(3.0, 1e-5).mu
    assert budget.privacy_cost_ == budget.planned_cost()
    if hasattr(budget, "predict"):
        assert len(budget.predict(X)) == len(X)


# ---- shares ----


def test_default_shares_divide_what_a_member_gets_by_the_same_rule():
    def shares(obj, **facts):
        parts = PrivacyBudget(obj, PrivacyCost(1.0), **facts).allocate()
        fits = PrivacyBudget(obj, PrivacyCost(1.0), **facts)._private_steps()[1]
        return {n: pytest.approx(part.mu**2 * fits[n], rel=1e-12) for n, part in parts.items()}

    c, s, m = "part{}", "part{}__privatecentre", "part{}__dplogisticregression"
    assert shares(voting(clf(), scaled(clf()))) == {
        c.format(0): 1 / 2,
        s.format(1): 0.1 / 2,
        m.format(1): 0.9 / 2,
    }
    assert shares(stacked(StackingClassifier, clf(), clf(), scaled(clf()))) == {
        c.format(0): 0.45,
        s.format(1): 0.045,
        m.format(1): 0.405,
        "final_estimator": 0.1,
    }
    assert shares(make_pipeline(PrivateCentre(), voting(clf(), clf(), clf()))) == {
        "privatecentre": 0.1,
        **{f"votingclassifier__part{i}": 0.3 for i in range(3)},
    }
    # A single member, and members that only prepare features.
    assert shares(OneVsRestClassifier(scaled(clf())), n_classes=3) == {
        "estimator__privatecentre": 0.1,
        "estimator__dplogisticregression": 0.9,
    }
    union = make_pipeline(make_union(PrivateCentre(), PrivateCentre()), clf())
    assert sorted(default_shares(PrivacyBudget(union)._private_steps()[0]).values()) == [
        0.1,
        0.1,
        0.8,
    ]
    assert shares(stacked(StackingRegressor, reg(), PrivateCentre())) == {
        "part0": 0.1,
        "final_estimator": 0.9,
    }


def test_shares_are_of_all_fits_together():
    obj = stacked(StackingClassifier, clf(), clf(), cv=KFold(4))
    budget = PrivacyBudget(obj, PrivacyCost(1.0), shares={"part0": 3, "final_estimator": 1})
    parts = budget.allocate()
    assert parts["part0"].mu == pytest.approx((0.75 / 4) ** 0.5)
    assert parts["final_estimator"].mu == pytest.approx(0.25**0.5)
    with pytest.raises(ValueError, match="shares must name each private step once"):
        PrivacyBudget(obj, shares={"part0": 1}).allocate()


# ---- counts ----


@pytest.mark.filterwarnings("ignore")
def test_more_classes_or_outputs_than_declared_are_an_error_that_tells_no_number():
    for obj in (OneVsRestClassifier(clf()), OneVsOneClassifier(clf())):
        with pytest.raises(ValueError, match=r"n_classes=\.\.\."):
            PrivacyBudget(obj).planned_cost()
        X, y = data("four")
        with pytest.raises(ValueError, match=r"^y has more classes than n_classes$"):
            PrivacyBudget(obj, n_classes=3).fit(X, y)
        with pytest.raises(ValueError, match="more classes"):
            PrivacyBudget(obj, n_classes=3).fit(X, y.tolist())
        assert PrivacyBudget(obj, n_classes=5).fit(X, y).privacy_cost_.epsilon() <= 1.0
    X, Y = data("binary3")
    with pytest.raises(ValueError, match="more classes"):
        PrivacyBudget(OneVsRestClassifier(clf()), n_classes=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"^y has more columns than n_outputs$"):
        PrivacyBudget(MultiOutputClassifier(clf()), n_outputs=2).fit(X, Y)
    both = PrivacyBudget(
        MultiOutputClassifier(OneVsRestClassifier(clf())), n_outputs=3, n_classes=2
    )
    assert both.fit(X, Y).privacy_cost_.epsilon() <= 1.0
    with pytest.raises(ValueError, match="more classes"):
        both.fit(X, Y * np.arange(len(X))[:, None])
    with pytest.raises(ValueError, match="n_classes"):
        PrivacyBudget(OneVsRestClassifier(clf()), n_classes=0).fit(X, Y)


def test_what_was_released_too_much_is_not_kept():
    X, y = data("binary")
    budget = PrivacyBudget(RFE(clf(), n_features_to_select=1), n_features=2)
    with pytest.raises(PrivacyBudgetError, match="nothing of it was kept"):
        budget.fit(X, y)
    assert not hasattr(budget, "estimator_")
    assert budget.set_params(n_features=3).fit(X, y).privacy_cost_.epsilon() <= 1.0


def test_nested_budgets_know_the_counts_of_the_outer_one():
    inner = PrivacyBudget(MultiOutputRegressor(reg()))
    outer = PrivacyBudget(make_pipeline(PrivateCentre(), inner), n_outputs=2)
    X, y = data("numbers2")
    assert outer.fit(X, y).privacy_cost_.mu == MU


def test_draws_left_to_chance_have_no_place_in_a_budget():
    with pytest.raises(ValueError, match="set bootstrap=False"):
        PrivacyBudget(BaggingClassifier(clf())).allocate()
    cost = PrivacyBudget(BaggingClassifier(clf(), bootstrap=False)).planned_cost()
    assert any("random_state is set" in text for text in cost.assumptions)


# ---- as a scikit-learn object ----


@pytest.mark.filterwarnings("ignore")
def test_searches_over_budgets_of_ensembles():
    X, y = data("binary")
    budget = PrivacyBudget(voting(clf(), scaled(clf())))
    names = list(budget.allocate())
    grid = {"epsilon": [1.0, 30.0], "shares": [None, dict.fromkeys(names, 1.0)]}
    search = GridSearchCV(budget, {**grid, "estimator__part0__C": [1.0]}, cv=KFold(2)).fit(X, y)
    best = search.best_estimator_.epsilon
    parts = [PrivacyCost.from_epsilon(e, 1e-5) for e in [1.0] * 2 + [30.0] * 2 + [best]]
    assert privacy_cost(search).mu == PrivacyCost.compose(parts).mu


def test_parameters_html_and_output_pass_through():
    budget = PrivacyBudget(
        stacked(StackingClassifier, clf(), clf(), scaled(clf())), n_classes=2, shares=None
    )
    budget.set_params(estimator__part0__C=7.0, estimator__part1__privatecentre__with_std=False)
    again = clone(budget)
    assert again.estimator.estimators[0][1].C == 7.0
    assert again.get_params()["estimator__part1__privatecentre__with_std"] is False
    assert (again.n_classes, again.shares) == (2, None)
    for word in ("StackingClassifier", "DPLogisticRegression", "PrivateCentre"):
        assert word in again._repr_html_()
    columns = PrivacyBudget(make_pipeline(make_union(PrivateCentre(), PrivateCentre())))
    columns.set_output(transform="pandas")
    X, y = data("binary")
    frame = columns.fit(X, y).transform(X)
    assert list(frame.columns) == list(columns.get_feature_names_out())


@pytest.mark.filterwarnings("ignore")
def test_infinite_epsilon_fits_ensembles_without_privacy():
    X, y = data("three")
    budget = PrivacyBudget(OneVsRestClassifier(clf()), inf, n_classes=3).fit(X, y)
    assert not budget.privacy_cost_.is_finite
    plain = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(budget.predict_proba(X), plain.predict_proba(X))
