"""What nested compositions cost: a table derived by hand, planned and fitted, to the last bit.

The unit is the squared mu of one fit at (epsilon, delta) = (1, 1e-5); fits at epsilon = 2 are
counted apart. In the table ``c``, ``s`` and ``r`` stand for one fit of a private classifier, scaler
and regressor, and ``c2`` for a classifier at epsilon = 2. Costs add up in squares, so counts do:

* voting, unions, blocks of columns: the sum of the parts;
* a search over m candidates: m times the training sets that hold a record, and once more to refit.
  KFold(k) leaves a record out of one training set: k - 1; stratified folds: k;
* stacking: every part once on everything and on the training sets that hold a record; the last
  estimator sees one row for each record: once;
* bagging without replacement: a record is in every bag at most;
* one-vs-rest: one fit per class. One-vs-one: a record is in the pairs of its class, K - 1; replaced
  by one of another class, it is in theirs too: 2K - 3;
* output codes: int(K * code_size) bits. Multi-output: one fit per output. A chain: the same, and
  with cv all but the last on the training sets that hold a record;
* RFE: ceil((features - chosen) / step) eliminations and one more.
"""

from fractions import Fraction
from math import inf, nextafter

import mpmath
import numpy as np
import pytest
from private_centre import PrivateCentre
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPLogisticRegression,
    DPRidge,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    privacy_cost,
)
from skdp.cost import Fit, cost_parts, declared, given_facts, register_advice, register_cost_rule
from skdp.cost._core import _EXACT
from skdp.cost._ensembles import _drawn, drawn_at_most

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")

MU, MU2 = (PrivacyCost.from_epsilon(epsilon, 1e-5).mu for epsilon in (1.0, 2.0))


def clf(**params):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], **params})


def reg(**params):
    return DPRidge(**{"epsilon": 1.0, "y_bounds": (-5, 5), **params})


def scaled(model):
    return make_pipeline(PrivateCentre(), model)


def voting(*parts):
    return VotingClassifier([(f"part{i}", part) for i, part in enumerate(parts)], voting="soft")


def stacked(kind, final, *parts, **params):
    return kind([(f"part{i}", part) for i, part in enumerate(parts)], final, **params)


def least(results):
    return int(np.argmin(results["mean_test_score"]))


C4, C2, ALPHA2 = {"C": [0.1, 1.0, 3.0, 10.0]}, {"C": [1.0, 3.0]}, {"alpha": [1.0, 3.0]}
K3, K4 = {"n_classes": 3}, {"n_classes": 4}

# Object, fits at epsilon 1, fits at epsilon 2, public counts for the plan, data.
TABLE = {
    "the case of 4 x 5: 4 x 4 + 1": (GridSearchCV(clf(), C4, cv=KFold(5)), 17, 0, {}, "binary"),
    "voting: c + c": (voting(clf(), clf(C=3.0)), 2, 0, {}, "binary"),
    "voting of pipelines, one dropped: (s + c2) + c": (
        voting(scaled(clf(epsilon=2.0)), clf(), "drop"),
        2,
        1,
        {},
        "binary",
    ),
    "voting of regressors: 3 r": (
        VotingRegressor([("a", reg()), ("b", reg()), ("c", reg())]),
        3,
        0,
        {},
        "numbers",
    ),
    "a voting vote: (c + c) + c": (voting(voting(clf(), clf()), clf()), 3, 0, {}, "binary"),
    "stacking by folds of row numbers: 2 x (2 + 1) + 1": (
        stacked(StackingRegressor, reg(), reg(), reg(alpha=3.0), cv=3),
        7,
        0,
        {},
        "numbers",
    ),
    "stacking by stratified folds: 2 x (5 + 1) + 1": (
        stacked(StackingClassifier, clf(), clf(), clf()),
        13,
        0,
        {},
        "binary",
    ),
    "stacking a pipeline, X passed through: (3 + 1)(s + c2) + c": (
        stacked(
            StackingClassifier,
            clf(),
            scaled(clf(epsilon=2.0)),
            "drop",
            cv=KFold(4),
            passthrough=True,
        ),
        5,
        4,
        {},
        "binary",
    ),
    "stacking a vote: (1 + 1)(c + c) + c": (
        stacked(StackingClassifier, clf(), voting(clf(), clf()), cv=KFold(2)),
        5,
        0,
        {},
        "binary",
    ),
    "stacking a search: (2 + 1)(2 x 1 + 1) + c": (
        stacked(StackingClassifier, clf(), GridSearchCV(clf(), C2, cv=KFold(2)), cv=KFold(3)),
        10,
        0,
        {},
        "binary",
    ),
    "bagging without replacement: 5 c": (
        BaggingClassifier(clf(), n_estimators=5, bootstrap=False),
        5,
        0,
        {},
        "binary",
    ),
    "bagging pipelines: 3 (s + r)": (
        BaggingRegressor(scaled(reg()), n_estimators=3, bootstrap=False),
        6,
        0,
        {},
        "numbers",
    ),
    "bagging searches: 2 (2 x 1 + 1)": (
        BaggingClassifier(GridSearchCV(clf(), C2, cv=KFold(2)), n_estimators=2, bootstrap=False),
        6,
        0,
        {},
        "binary",
    ),
    "one-vs-rest, 3 classes: 3 c": (OneVsRestClassifier(clf()), 3, 0, K3, "three"),
    "one-vs-rest of pipelines: 3 (s + c2)": (
        OneVsRestClassifier(scaled(clf(epsilon=2.0))),
        3,
        3,
        K3,
        "three",
    ),
    "one-vs-rest of searches: 3 (2 x 1 + 1)": (
        OneVsRestClassifier(GridSearchCV(clf(), C2, cv=KFold(2))),
        9,
        0,
        K3,
        "three",
    ),
    "one-vs-one, 4 classes: 3 c": (OneVsOneClassifier(clf()), 3, 0, K4, "four"),
    "one-vs-one, 4 classes, a record replaced: 5 c": (
        OneVsOneClassifier(clf(neighboring="replace")),
        5,
        0,
        K4,
        "four",
    ),
    "output codes: int(3 x 1.5) c": (
        OutputCodeClassifier(clf(classes=[-1, 1]), code_size=1.5, random_state=6),
        4,
        0,
        K3,
        "three",
    ),
    "two outputs of pipelines: 2 (s + r)": (
        MultiOutputRegressor(scaled(reg())),
        4,
        0,
        {"n_outputs": 2},
        "numbers2",
    ),
    "three binary outputs: 3 c": (
        MultiOutputClassifier(clf()),
        3,
        0,
        {"n_outputs": 3},
        "binary3",
    ),
    "outputs of targets with a private scaler: 2 (s + r)": (
        MultiOutputRegressor(TransformedTargetRegressor(reg(), transformer=PrivateCentre())),
        4,
        0,
        {"n_outputs": 2},
        "numbers2",
    ),
    "a chain on true targets: 2 r": (RegressorChain(reg()), 2, 0, {"n_outputs": 2}, "numbers2"),
    "a chain on predictions of 3 folds: 3 c + (3 - 1) x 3 c": (
        ClassifierChain(clf(), cv=3),
        9,
        0,
        {"n_outputs": 3},
        "binary3",
    ),
    "the same with folds of row numbers: 2 r + (2 - 1) x 2 r": (
        RegressorChain(reg(), cv=3),
        4,
        0,
        {"n_outputs": 2},
        "numbers2",
    ),
    "a fixed threshold: s + c": (
        FixedThresholdClassifier(scaled(clf()), threshold=0.3),
        2,
        0,
        {},
        "binary",
    ),
    "a target over a search: 2 x 2 + 1": (
        TransformedTargetRegressor(
            GridSearchCV(reg(), ALPHA2, cv=3), func=np.tanh, inverse_func=np.arctanh
        ),
        5,
        0,
        {},
        "numbers",
    ),
    "features by released coefficients, and a model: c + c": (
        make_pipeline(SelectFromModel(clf()), clf()),
        2,
        0,
        {},
        "binary",
    ),
    "elimination, and a model: (2 + 1) c + c2": (
        make_pipeline(RFE(clf(), n_features_to_select=1), clf(epsilon=2.0)),
        3,
        1,
        {"n_features": 3},
        "binary",
    ),
    "elimination by halves: (1 + 1) r": (
        RFE(reg(), step=0.9, n_features_to_select=0.5),
        2,
        0,
        {"n_features": 3},
        "numbers",
    ),
    "a search in a pipeline in a vote: (s + 4 x 4 + 1) + c": (
        voting(scaled(GridSearchCV(clf(), C4, cv=KFold(5))), clf()),
        19,
        0,
        {},
        "binary",
    ),
    "a search over a vote: (2 x 2 + 1)(c + c)": (
        GridSearchCV(voting(clf(), clf()), {"part0__C": [1.0, 3.0]}, cv=KFold(3)),
        10,
        0,
        {},
        "binary",
    ),
    "a search over stacking: (2 x 2 + 1)((1 + 1) r + r)": (
        GridSearchCV(
            stacked(StackingRegressor, reg(), reg(), cv=2),
            {"part0__alpha": [1.0, 3.0]},
            cv=KFold(3),
        ),
        15,
        0,
        {},
        "numbers",
    ),
    "a search over the number of bags: (2 + 3) x 1 + 3": (
        GridSearchCV(
            BaggingClassifier(clf(), bootstrap=False), {"n_estimators": [2, 3]}, cv=KFold(2)
        ),
        None,  # the refitted one may be the cheaper one
        0,
        {},
        "binary",
    ),
    "a search with two scores: 2 x 2 + 1": (
        GridSearchCV(clf(), C2, scoring=["accuracy", "roc_auc"], refit="roc_auc", cv=KFold(3)),
        5,
        0,
        {},
        "binary",
    ),
    "a search with a choice of its own: 2 x 2 + 1": (
        GridSearchCV(clf(), C2, refit=least, cv=KFold(3)),
        5,
        0,
        {},
        "binary",
    ),
    "columns, a union, and a vote: (s + s) + s + (c + c2)": (
        make_pipeline(
            ColumnTransformer([("a", PrivateCentre(), [0]), ("b", PrivateCentre(), [1, 2])]),
            FeatureUnion([("c", PrivateCentre()), ("d", Normalizer())]),
            voting(clf(), clf(epsilon=2.0)),
        ),
        4,
        1,
        {},
        "binary",
    ),
    "random splits around a pipeline with a cache: (3 x 4 + 1)(s + c)": (
        RandomizedSearchCV(
            Pipeline([("s", PrivateCentre()), ("m", clf())], memory="MEMORY"),
            {"m__C": [0.5, 1.0, 2.0]},
            n_iter=3,
            cv=ShuffleSplit(4, random_state=0),
        ),
        26,
        0,
        {},
        "binary",
    ),
    "a budget in a vote: its total, and c2": (
        voting(PrivacyBudget(scaled(clf(epsilon=9.0)), epsilon=1.0), clf(epsilon=2.0)),
        1,
        1,
        {},
        "binary",
    ),
    "a stack of one-vs-rest: (1 + 1) 3 c + 3 c2": (
        stacked(
            StackingClassifier,
            OneVsRestClassifier(clf(epsilon=2.0)),
            OneVsRestClassifier(clf()),
            cv=KFold(2),
        ),
        6,
        3,
        K3,
        "three",
    ),
    "free steps all around: c": (
        make_pipeline(Normalizer(), voting(make_pipeline(PolynomialFeatures(), clf()))),
        1,
        0,
        {},
        "binary",
    ),
}


def data(kind, n=60):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 3))
    label = np.arange(n)
    return X, {
        "binary": (X[:, 0] > 0).astype(int),
        "three": label % 3,
        "four": label % 4,
        "binary3": (X > 0).astype(int),
        "numbers": X[:, 0],
        "numbers2": X[:, :2],
    }[kind]


def is_root(mu, ones, twos):
    """Whether mu is the root of the sum of squares, rounded up to a double."""
    exact = ones * Fraction(MU) ** 2 + twos * Fraction(MU2) ** 2
    return Fraction(nextafter(mu, 0.0)) ** 2 < exact <= Fraction(mu) ** 2


def test_the_check_of_the_table_sees_one_bit_and_one_fit():
    mu = PrivacyCost.compose([PrivacyCost(MU)] * 5 + [PrivacyCost(MU2)] * 3).mu
    assert is_root(mu, 5, 3)
    for wrong in (nextafter(mu, 0.0), nextafter(mu, inf)):
        assert not is_root(wrong, 5, 3)
    assert not is_root(mu, 4, 3)


@pytest.mark.parametrize("title", TABLE)
def test_table_planned(title):
    obj, ones, twos, facts, _ = TABLE[title]
    before = repr(obj)
    cost = privacy_cost(obj, **facts)
    assert is_root(cost.mu, 8 if ones is None else ones, twos)
    assert repr(obj) == before


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", TABLE)
def test_table_fitted(title, tmp_path):
    obj, ones, twos, facts, kind = TABLE[title]
    obj = clone(obj)
    if "memory" in str(sorted(obj.get_params())):
        names = [name for name in obj.get_params() if name.endswith("memory")]
        obj.set_params(**{n: str(tmp_path) for n in names if obj.get_params()[n] == "MEMORY"})
    planned = privacy_cost(obj, **facts)
    fitted = obj.fit(*data(kind))
    # Models of training sets leave no trace, so their number of classes is asked for.
    cost = privacy_cost(fitted, **(facts if "a stack of" in title else {}))
    if ones is None:
        ones = 5 + fitted.best_params_["n_estimators"]
    else:
        assert cost == planned
    assert is_root(cost.mu, ones, twos)
    assert privacy_cost(clone(fitted), **facts) == planned


# ---- counts ----


def test_counts_that_are_not_known_are_asked_for():
    for obj, name in [
        (OneVsRestClassifier(clf()), "n_classes"),
        (OneVsOneClassifier(clf()), "n_classes"),
        (OutputCodeClassifier(clf()), "n_classes"),
        (MultiOutputRegressor(reg()), "n_outputs"),
        (RegressorChain(reg()), "n_outputs"),
        (RFE(reg()), "n_features"),
    ]:
        with pytest.raises(ValueError, match=rf"number of .* declare it: {name}=\.\.\."):
            privacy_cost(obj)
        with pytest.raises(ValueError, match=rf"step 'm': .*{name}=\.\.\."):
            privacy_cost(Pipeline([("m", obj)]))
        assert privacy_cost(obj, **{name: 4}).is_finite
    for bad in (0, -1, 2.0, True, "3"):
        with pytest.raises(ValueError, match="n_classes must be a positive integer"):
            privacy_cost(OneVsRestClassifier(clf()), n_classes=bad)


def test_two_classes_share_a_model_but_two_labels_do_not():
    X, y = data("binary")
    obj = OneVsRestClassifier(clf())
    assert is_root(privacy_cost(obj, n_classes=2).mu, 2, 0)
    assert is_root(privacy_cost(clone(obj).fit(X, y)).mu, 1, 0)
    assert is_root(privacy_cost(clone(obj).fit(X, (X[:, :2] > 0).astype(int))).mu, 2, 0)


def test_a_subclass_that_is_given_the_rule_of_its_parent_costs_the_same():
    # As the assumption of its infinite cost advises.
    objects = [(obj, facts) for obj, _, _, facts, _ in TABLE.values()]
    objects += [(kind(clf()), {}) for kind in (RFECV, TunedThresholdClassifierCV)]
    for obj, facts in {type(obj): (obj, facts) for obj, facts in objects}.values():
        derived = type("Derived", (type(obj),), {})
        made = derived(**obj.get_params(deep=False))
        assert "skdp.cost.register_cost_rule(Derived, " in str(privacy_cost(made).assumptions)
        register_cost_rule(derived, type(obj))
        try:
            found, parents = privacy_cost(made, **facts), privacy_cost(obj, **facts)
        finally:
            del _EXACT[derived]
        assert found.gaussian_mu == parents.gaussian_mu, type(obj)
        assert len(found.assumptions) == len(parents.assumptions)


def test_third_parties_can_ask_for_counts():
    class PerClass(OneVsRestClassifier):
        pass

    register_cost_rule(
        PerClass, lambda obj: [Fit("estimator", obj.estimator, declared("n_classes", obj))]
    )
    try:
        with given_facts(n_classes=5):
            assert is_root(privacy_cost(PerClass(clf())).mu, 5, 0)
            assert is_root(privacy_cost(PerClass(clf()), n_classes=2).mu, 2, 0)
        with pytest.raises(ValueError, match="how often PerClass fits"):
            privacy_cost(PerClass(clf()))
    finally:
        del _EXACT[PerClass]


# ---- bagging ----


def test_bags_with_replacement_are_charged_by_what_was_drawn():
    X, y = data("binary")
    fitted = BaggingClassifier(clf(), n_estimators=4, random_state=1).fit(X, y)
    most = max(
        sum(int(np.sum(bag == i)) ** 2 for bag in fitted.estimators_samples_) for i in range(len(X))
    )
    assert most > 4
    assert is_root(privacy_cost(fitted).mu, most, 0)


def test_the_plan_of_bags_holds_but_for_its_delta0():
    cost = privacy_cost(BaggingClassifier(clf(), n_estimators=10))
    assert cost.gaussian_mu == PrivacyCost.compose([PrivacyCost(MU)] * drawn_at_most(10, 2**-40)).mu
    assert cost.delta0 == 2.0**-40
    with pytest.raises(ValueError, match="as a fraction"):
        privacy_cost(BaggingClassifier(clf(), max_samples=30))
    assert is_root(
        privacy_cost(BaggingClassifier(clf(), max_samples=30, bootstrap=False)).mu, 10, 0
    )


def tail_of_squares(n_bags, n, bound):
    """Exact probability that the sum of squared multiplicities of one of n records exceeds it."""
    with mpmath.workdps(40):
        law = {0: mpmath.mpf(1)}
        q = mpmath.mpf(1) / n
        one = {m: mpmath.binomial(n, m) * q**m * (1 - q) ** (n - m) for m in range(min(n, 40) + 1)}
        for _ in range(n_bags):
            new = {}
            for total, weight in law.items():
                for m, p in one.items():
                    key = min(total + m * m, bound + 1)
                    new[key] = new.get(key, 0) + weight * p
            law = new
        return law.get(bound + 1, mpmath.mpf(0))


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_the_bound_of_draws_holds_for_any_number_of_records(n):
    for n_bags, probability in ((1, 2.0**-40), (3, 2.0**-40), (2, 1e-3)):
        bound = drawn_at_most(n_bags, probability)
        assert tail_of_squares(n_bags, n, bound) <= probability
    # Not vacuous: a quarter of it would not hold.
    if n == 1000:
        assert tail_of_squares(3, n, drawn_at_most(3, 2.0**-40) // 4) > 2.0**-40


@pytest.mark.filterwarnings("ignore")
def test_bags_of_an_earlier_fit_are_not_known():
    X, y = data("binary")
    bagging = BaggingClassifier(clf(), n_estimators=2, warm_start=True).fit(X, y)
    assert privacy_cost(bagging).is_finite
    bagging.set_params(n_estimators=4).fit(X, y)
    assert any("warm_start" in text for text in privacy_cost(bagging).assumptions)


def test_multiplicities_are_squared_before_they_are_added():
    assert _drawn([[0, 0, 0, 1], [1, 1, 2, 2], [1, 2, 0, 0]]) == 13
    assert _drawn([]) == 0


def test_repeated_rows_have_no_bound_for_a_pair():
    class Paired(PrivateCentre):
        def planned_cost(self):
            return PrivacyCost(0.1, delta0=1e-9)

    pair = make_pipeline(Paired(), clf())
    cost = privacy_cost(BaggingClassifier(pair))
    assert not cost.is_finite
    assert any("'estimator__paired': a cost with a pair" in text for text in cost.assumptions)
    assert privacy_cost(BaggingClassifier(pair, n_estimators=3, bootstrap=False)).delta0 < 3.1e-9
    twice = GridSearchCV(pair, {"paired__epsilon": [1.0]}, cv=[([0, 0, 1], [2])])
    assert not privacy_cost(twice).is_finite
    once = GridSearchCV(pair, {"paired__epsilon": [1.0]}, cv=[([0, 1], [2])])
    assert privacy_cost(once).is_finite


def test_bagging_seeds_its_estimators_and_says_so():
    bagging = BaggingClassifier(clf(), n_estimators=2, bootstrap=False)
    X, y = data("binary")
    fitted = clone(bagging).fit(X, y)
    assert fitted.estimators_[0].random_state is not None  # this is why
    for cost in (privacy_cost(bagging), privacy_cost(fitted)):
        assert any("random_state is set" in text for text in cost.assumptions)
        assert any("how often BaggingClassifier draws a record" in t for t in cost.assumptions)
    # A vote leaves them alone.
    assert not any("random_state" in t for t in privacy_cost(voting(clf(), clf())).assumptions)
    with_score = BaggingClassifier(clf(), oob_score=True)
    assert any("out-of-bag scores" in text for text in privacy_cost(with_score).assumptions)


# ---- stacking ----


@pytest.mark.filterwarnings("ignore")
def test_stacking_of_fitted_estimators_costs_what_they_hold_and_one_fit():
    X, y = data("binary")
    stack = stacked(StackingClassifier, clf(), clf(epsilon=2.0).fit(X, y), cv="prefit")
    assert is_root(privacy_cost(stack).mu, 1, 1)
    assert is_root(privacy_cost(stack.fit(X, y)).mu, 1, 1)
    frozen = voting(FrozenEstimator(clf(epsilon=2.0).fit(X, y)), clf())
    assert is_root(privacy_cost(frozen).mu, 1, 1)


@pytest.mark.filterwarnings("ignore")
def test_stacking_needs_a_private_last_estimator_and_notices_changes():
    (text,) = (
        t for t in privacy_cost(stacked(StackingRegressor, None, reg())).assumptions if "final" in t
    )
    assert text == (
        "StackingRegressor learns from the data without privacy; give it a private "
        "`final_estimator`"
    )
    cost = privacy_cost(stacked(StackingClassifier, LogisticRegression(), clf()))
    assert any("'final_estimator': LogisticRegression learns" in t for t in cost.assumptions)
    fitted = stacked(StackingRegressor, reg(), reg(), cv=2).fit(*data("numbers"))
    assert privacy_cost(fitted).is_finite
    fitted.set_params(part0__epsilon=0.1)
    assert any(
        "'part0' of StackingRegressor was changed" in t for t in privacy_cost(fitted).assumptions
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("obj", "labels"),
    [
        (voting(clf()), [0, 1]),
        (stacked(StackingClassifier, clf(), clf(), cv=2), [0, 1]),
        (BaggingClassifier(clf(), bootstrap=False), [0, 1]),
        (OneVsRestClassifier(clf()), [0, 1]),
        (OneVsOneClassifier(clf()), [0, 1]),
        (OutputCodeClassifier(clf(classes=[-1, 1]), random_state=6, code_size=4), [-1, 1]),
        (FixedThresholdClassifier(clf(classes=["n", "y"]), pos_label="y"), ["n", "y"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_that_members_see(obj, labels):
    # The guide says which `classes` to declare inside.
    X, y = data("binary")
    fitted = clone(obj).fit(X, np.where(y, "y", "n"))
    assert list(fitted.classes_) == ["n", "y"]
    members = getattr(fitted, "estimators_", None) or [fitted.estimator_]
    seen = [list(member.classes_) for member in members if isinstance(member, DPLogisticRegression)]
    assert seen and all(found == labels for found in seen)


def test_what_is_assumed():
    def assumes(obj, text, **facts):
        return any(text in assumption for assumption in privacy_cost(obj, **facts).assumptions)

    assert assumes(voting(clf(), clf()), "classes that VotingClassifier reads from y")
    assert privacy_cost(VotingRegressor([("a", reg())])).assumptions == ()
    assert assumes(BaggingClassifier(clf()), "classes that BaggingClassifier reads from y")
    assert not assumes(BaggingRegressor(reg()), "classes")
    assert assumes(stacked(StackingClassifier, clf(), clf()), "StratifiedKFold depend on labels")
    assert privacy_cost(stacked(StackingRegressor, reg(), reg())).assumptions == ()
    assert assumes(OneVsOneClassifier(clf()), "number of records in every class", n_classes=3)
    assert assumes(ClassifierChain(clf(), cv=2), "StratifiedKFold", n_outputs=2)
    assert privacy_cost(MultiOutputClassifier(clf()), n_outputs=2).assumptions == ()
    assert privacy_cost(FixedThresholdClassifier(clf())).assumptions == ()


# ---- what is not covered ----


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (CalibratedClassifierCV(clf()), "calibration to labels without noise; use a private"),
        (CalibratedClassifierCV(clf(), ensemble=False), "calibration to labels"),
        (TunedThresholdClassifierCV(clf()), "use FixedThresholdClassifier"),
        (SelfTrainingClassifier(clf()), "picks records, and decides when to stop"),
        (RFECV(clf()), "use RFE with a given number"),
        (SequentialFeatureSelector(clf()), "use SelectFromModel over a private estimator"),
        (AdaBoostClassifier(clf()), "weighs records by the errors"),
        (BaggingClassifier(), "give it a private `estimator`"),
        (SelectFromModel(clf(), max_features=len), "`max_features` of SelectFromModel is shown X"),
        (voting(clf(), LogisticRegression()), "use DPLogisticRegression"),
        (OneVsRestClassifier(make_pipeline(StandardScaler(), clf())), "use DPStandardScaler"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_has_no_privacy_is_named_with_what_to_use(obj, text):
    cost = privacy_cost(make_pipeline(Normalizer(), obj), n_classes=3)
    assert not cost.is_finite
    assert any(text in assumption for assumption in cost.assumptions)


def test_a_class_without_examples_has_no_model():
    # Scikit-learn keeps the constant that it saw: one unnoised bit.
    X, _ = data("binary")
    Y = np.zeros((len(X), 2), dtype=int)
    Y[:, 0] = X[:, 0] > 0
    with pytest.warns(UserWarning, match="present in all training examples"):
        fitted = OneVsRestClassifier(clf()).fit(X, Y)
    assert any("_ConstantPredictor learns" in text for text in privacy_cost(fitted).assumptions)


def test_advice_is_taken_from_twins_and_can_be_added():
    class SomebodysScaler(StandardScaler):
        knots = "uniform"

    class DPSomebodysScaler(PrivateCentre):
        def make_non_private(self):
            return SomebodysScaler()

    (text,) = privacy_cost(type("SomeModel", (LogisticRegression,), {})()).assumptions
    assert "use a private estimator" in text
    register_advice("SomeModel", "use that one")
    (text,) = privacy_cost(type("SomeModel", (LogisticRegression,), {})()).assumptions
    assert text.endswith("use that one")
    (text,) = privacy_cost(SomebodysScaler()).assumptions
    assert text.endswith("use DPSomebodysScaler")
    register_cost_rule(SomebodysScaler, _EXACT[SplineTransformer])
    try:
        (text,) = privacy_cost(SomebodysScaler()).assumptions
    finally:
        del _EXACT[SomebodysScaler]
    assert text.endswith("set handle_missing='error', or use DPSomebodysScaler")
    with pytest.raises(TypeError, match="register_advice takes"):
        register_advice(StandardScaler, "text")


def test_paths_are_those_of_set_params():
    obj = stacked(
        StackingClassifier,
        clf(),
        OneVsRestClassifier(scaled(clf())),
        voting(clf()),
        cv=KFold(2),
    )
    for part in cost_parts(obj, n_classes=3):
        if part.is_charged:
            assert f"{part.path}__epsilon" in obj.get_params()


def test_a_mechanism_in_a_stack_pays_for_every_training_set():
    obj = stacked(
        StackingRegressor, reg(), make_pipeline(GaussianMechanism(), Normalizer(), reg()), cv=3
    )
    assert is_root(privacy_cost(obj).mu, 2 * 3 + 1, 0)


CHANGED = reg().fit(np.eye(4), np.arange(4.0)).set_params(epsilon=2.0)
CHANGED_CLASSIFIER = clf().fit(np.eye(4), [0, 1, 0, 1]).set_params(epsilon=2.0)


@pytest.mark.parametrize(
    "obj",
    [
        VotingRegressor([("a", CHANGED)]),
        stacked(StackingRegressor, reg(), CHANGED),
        OneVsRestClassifier(CHANGED_CLASSIFIER),
        OneVsOneClassifier(CHANGED_CLASSIFIER),
        OutputCodeClassifier(CHANGED_CLASSIFIER),
        MultiOutputRegressor(CHANGED),
        RegressorChain(CHANGED),
        SelectFromModel(CHANGED),
        RFE(CHANGED),
        FixedThresholdClassifier(CHANGED_CLASSIFIER),
        TransformedTargetRegressor(CHANGED),
        ColumnTransformer([("a", CHANGED, [0])]),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_parts_that_were_fitted_before_cost_what_their_clones_will(obj):
    counts = {"n_classes": 3, "n_outputs": 2, "n_features": 4}
    cost = privacy_cost(obj, **counts)
    assert cost.mu == privacy_cost(clone(obj), **counts).mu > privacy_cost(CHANGED).mu


def test_prefit_parts_cost_what_they_hold():
    fitted = SelectFromModel(CHANGED, prefit=True)
    assert privacy_cost(fitted).mu == privacy_cost(CHANGED).mu == privacy_cost(reg()).mu


@pytest.mark.parametrize(
    ("obj", "later"),
    [
        (RFE(reg(), n_features_to_select=1), {"step": 3, "n_features_to_select": 4}),
        (RegressorChain(reg(), cv=KFold(2)), {}),
    ],
    ids=["RFE", "chain"],
)
def test_eliminations_and_chains_keep_their_cost_when_parameters_change(obj, later):
    rng = np.random.default_rng(0)
    obj.fit(rng.normal(size=(20, 4)), rng.normal(size=20 if later else (20, 2)))
    cost = privacy_cost(obj)
    obj.set_params(estimator__epsilon=0.001, **later)
    assert privacy_cost(obj) == cost


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_releases", [1, 5])
@pytest.mark.parametrize("kind", ["pairs", "bags"])
def test_mechanisms_of_parts_that_lack_a_record_release_it_later(kind, n_releases):
    X, y = np.zeros((60, 2)), np.arange(60) % 6
    member = make_pipeline(GaussianMechanism(n_releases=n_releases), LogisticRegression())
    if kind == "pairs":
        obj = OneVsOneClassifier(member)
    else:
        obj = BaggingClassifier(member, 15, bootstrap=False, max_samples=0.2, random_state=0)
    planned = privacy_cost(obj, n_classes=6)
    obj.fit(X, y)
    trained = 5  # of 15 pairs
    if kind == "bags":
        trained = np.bincount(np.concatenate(obj.estimators_samples_)).max()
    one = privacy_cost(GaussianMechanism()).mu ** 2 / n_releases
    for calls in range(6):
        cost = privacy_cost(obj).mu ** 2
        assert cost >= (trained + 15 * calls) * one * (1 - 1e-12)
        if calls < n_releases:  # a ledger takes these as paid for
            assert planned.mu**2 >= (trained + 15 * calls) * one * (1 - 1e-12)
        obj.predict(X)
