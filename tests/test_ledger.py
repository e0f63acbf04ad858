"""`PrivacyLedger`: what it grants, refuses, writes down and shows."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from skdp import (
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPStandardScaler,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    PrivacyLedger,
    privacy_cost,
)
from skdp.accounting import gdp_delta
from skdp.exceptions import PrivacyBudgetError, PrivacyLeakWarning
from skdp.ledger._caps import LIMIT, NOTHING, UNITS, Caps, fits, plus
from skdp.ledger._describe import describe

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0]
LABELS = (X[:, 0] > 0).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.ledger"


@pytest.fixture
def ledger(path):
    with PrivacyLedger(path, dataset="people", epsilon=1.0, delta=1e-5) as made:
        yield made


def ridge(epsilon=0.3, **params):
    return DPRidge(epsilon=epsilon, y_bounds=(-4, 4), max_iter=2, **params)


def spent(ledger):
    return ledger._store.spent()


# ---- caps ----

small = st.floats(1e-3, 20.0)
tiny = st.floats(1e-9, 1e-3)
share = st.floats(0.0, 0.9)


@given(small, tiny, share, share)
@settings(max_examples=60, deadline=None)
def test_the_caps_with_all_their_slack_keep_the_guarantee(epsilon, delta, part0, part1):
    caps = Caps.of(epsilon, delta, epsilon * part0, delta * part1, "add_or_remove", "record")
    slack = 1 + Fraction(1, 1 << 40)
    epsilon0, delta0 = (Fraction(v) * slack for v in (caps.epsilon0, caps.delta0))
    # Noise is larger than its mu says by the slack, so of mu no more than the cap is spent.
    assert Fraction(LIMIT.mu, UNITS) <= slack**2
    assert Fraction(LIMIT.epsilon0, UNITS) == Fraction(LIMIT.delta0, UNITS) == slack
    rest = float(Fraction(epsilon) - epsilon0)
    if caps.mu > 0.0:
        assert delta0 + Fraction(gdp_delta(rest, caps.mu)) <= Fraction(delta) * (1 + 2**-40)
        # And none of the budget is wasted.
        assert delta0 + Fraction(gdp_delta(rest, caps.mu * 1.0001)) > Fraction(delta) * (1 - 2**-30)


def test_caps_without_pairs_are_the_cost_of_the_budget():
    caps = Caps.of(1.0, 1e-5, 0.0, 0.0, "replace", "record")
    assert caps.mu == PrivacyCost.from_epsilon(1.0, 1e-5).mu
    whole = PrivacyCost(0.3, reference_delta=1e-6, epsilon0=0.5, delta0=1e-7)
    caps = Caps.of(whole, None, 0.0, 0.0, "add_or_remove", "record")
    assert (caps.mu, caps.epsilon0, caps.delta0, caps.delta) == (0.3, 0.5, 1e-7, 1e-6)
    # The simple formula is the one that a stopping rule cannot beat: never below the tight one.
    assert caps.epsilon >= whole.epsilon()
    assert 1e-7 + gdp_delta(caps.epsilon - 0.5, 0.3) == pytest.approx(1e-6, rel=1e-6)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40), small)
@settings(max_examples=80, deadline=None)
def test_shares_of_the_total_fit_exactly_and_nothing_more(shares, epsilon):
    caps = Caps.of(epsilon, 1e-5, 0.0, 0.0, "add_or_remove", "record")
    spent = NOTHING
    for part in PrivacyCost(caps.mu).split(shares):
        asked = caps.amount(part)
        # Rounded up, by less than a unit.
        exact = Fraction(part.mu) ** 2 / Fraction(caps.mu) ** 2 * UNITS
        assert exact <= asked.mu < exact + 1
        assert fits(spent, asked)
        spent = plus(spent, asked)
    assert not fits(spent, caps.amount(PrivacyCost(caps.mu * 2.0**-18)))


@pytest.mark.parametrize("k", [3, 7, 10, 1000])
def test_hand_made_equal_shares_fit_too(k):
    caps = Caps.of(1.0, 1e-5, 0.3, 1e-6, "add_or_remove", "record")
    # 0.1 + 0.1 + 0.1 > 0.3 in floating point, and mu / sqrt(k) may round up.
    one = PrivacyCost(caps.mu / sqrt(k), epsilon0=0.3 / k, delta0=1e-6 / k)
    asked = caps.amount(one)
    total = NOTHING
    for _ in range(k):
        assert fits(total, asked)
        total = plus(total, asked)
    assert not fits(total, asked)
    tenth = caps.amount(PrivacyCost(0.0, epsilon0=0.1))
    assert fits(plus(tenth, tenth), tenth)


@given(small, st.integers(0, UNITS))
@settings(max_examples=60, deadline=None)
def test_what_is_left_can_be_spent_and_no_more(epsilon, units):
    caps = Caps.of(epsilon, 1e-5, 0.0, 0.0, "add_or_remove", "record")
    left = UNITS - units
    mu = caps.mu_of(left, up=False)
    assert caps.amount(PrivacyCost(mu)).mu <= left
    assert (
        Fraction(caps.mu_of(units, up=True)) ** 2 >= Fraction(units, UNITS) * Fraction(caps.mu) ** 2
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": inf}, "epsilon of a ledger must be positive and finite"),
        ({"epsilon": 1e309}, "epsilon of a ledger must be positive and finite"),
        ({"epsilon": 0.0}, "epsilon of a ledger must be positive and finite"),
        ({"epsilon": float("nan")}, "epsilon must be at least 0"),
        ({"epsilon": "1"}, "epsilon must be a real number"),
        ({"epsilon": PrivacyCost(inf)}, "must be a finite PrivacyCost"),
        ({"epsilon": PrivacyCost(1.0), "delta": 1e-6}, "leave delta out"),
        ({"epsilon": PrivacyCost(1.0, delta0=1e-5), "delta": None}, "leaves nothing"),
        ({"epsilon": PrivacyCost(1.0), "delta": None, "unit": "person"}, r"states \['unit'\]"),
        ({"delta": None}, "give delta="),
        ({"delta": 0.0}, "delta must be strictly between 0 and 1"),
        ({"delta": 1.0}, "delta must be strictly between 0 and 1"),
        ({"epsilon0": 1.0}, "epsilon0 must be less than epsilon"),
        ({"delta0": 1e-5}, "delta0 must be less than delta"),
        ({"neighboring": "swap"}, "neighboring must be one of"),
        ({"unit": ""}, "unit must be a word"),
        ({"dataset": " "}, "dataset must be the name"),
        ({"dataset": None}, "to make one, give dataset="),
    ],
)
def test_bad_totals_are_refused(path, changes, message):
    settings = {"dataset": "people", "epsilon": 1.0, "delta": 1e-5, **changes}
    with pytest.raises((ValueError, TypeError), match=message):
        PrivacyLedger(path, **settings)
    assert not path.exists()


# ---- charging ----


def test_fits_are_charged_until_the_total_is_spent(ledger):
    parts = ledger.total.split([0.1, 0.2, 0.7])
    for part in parts:
        model = ledger.fit(ridge(part), X, Y)
        assert model.coef_.shape == (3,)
    assert ledger.remaining().epsilon() < 1e-3
    with pytest.raises(PrivacyBudgetError, match="the data were not touched"):
        ledger.fit(ridge(0.05), X, Y)
    assert [entry.state for entry in ledger.history()] == ["released"] * 3
    assert ledger.spent.mu == pytest.approx(ledger.total.mu, rel=1e-12)


def test_all_that_remains_can_be_spent_at_once(ledger):
    ledger.fit(ridge(0.37), X, Y)
    ledger.fit(ridge(0.21), X, Y)
    ledger.fit(ridge(ledger.remaining()), X, Y)
    assert UNITS - 2**20 < spent(ledger).mu <= UNITS
    assert ledger.remaining().mu < 2**-20 * ledger.total.mu


class Spy(BaseEstimator):
    """Notes what was charged when its data are touched."""

    seen = ()

    def __init__(self, ledger=None, epsilon=0.5, fails=None, actual=None, notes=()):
        self.ledger = ledger
        self.epsilon = epsilon
        self.fails = fails
        self.actual = actual
        self.notes = notes

    def planned_cost(self):
        return PrivacyCost.from_epsilon(self.epsilon, 1e-5)

    def fit(self, X, y=None):
        Spy.seen = tuple(entry.state for entry in self.ledger.history())
        if self.fails:
            raise self.fails
        self.privacy_cost_ = (self.actual or self.planned_cost()).with_assumptions(*self.notes)
        return self


def test_a_fit_is_reserved_before_the_data_are_touched(ledger):
    ledger.fit(Spy(ledger), X)
    assert Spy.seen == ("reserved",)
    assert ledger.history()[0].state == "released"
    Spy.seen = ()
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(Spy(ledger, epsilon=0.95), X)
    assert Spy.seen == ()


@pytest.mark.parametrize("error", [ValueError("Alice is 1.83 m"), KeyboardInterrupt()])
def test_a_fit_that_fails_stays_charged_and_leaves_no_text(ledger, error):
    with pytest.raises(type(error)):
        ledger.fit(Spy(ledger, fails=error), X)
    (entry,) = ledger.history()
    assert entry.state == "failed" and entry.cost.epsilon() == pytest.approx(0.5)
    assert b"Alice" not in ledger.path.read_bytes()
    assert "Alice" not in ledger.to_json()


def test_a_fit_that_costs_more_than_planned_is_charged_for_all_of_it(ledger):
    actual = PrivacyCost.from_epsilon(0.8, 1e-5)
    with pytest.raises(PrivacyBudgetError, match="more than was planned"):
        ledger.fit(Spy(ledger, epsilon=0.3, actual=actual), X)
    assert ledger.spent.mu == pytest.approx(actual.mu)
    assert [entry.state for entry in ledger.history()] == ["exceeded", "released"]


@pytest.mark.parametrize("actual", [PrivacyCost(5.0), PrivacyCost.infinite("no noise")])
def test_a_fit_that_costs_more_than_is_left_closes_the_ledger(ledger, actual):
    with pytest.raises(PrivacyBudgetError, match="nothing more can be fitted"):
        ledger.fit(Spy(ledger, epsilon=0.3, actual=actual), X)
    assert ledger.remaining().mu == 0.0 and spent(ledger).mu == LIMIT.mu
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(ridge(1e-4), X, Y)
    PrivacyLedger(ledger.path).close()


def test_assumptions_made_by_the_fit_withhold_it(ledger):
    with pytest.raises(PrivacyBudgetError, match="is charged, made assumptions.*read from y"):
        ledger.fit(Spy(ledger, notes=("read from y",)), X)
    assert ledger.history()[0].state == "withheld"
    ledger.fit(Spy(ledger, notes=("read from y",)), X, accept="read from y")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Ridge(), "no finite privacy cost.*use DPRidge"),
        (ridge(inf), "no finite privacy cost"),
        (ridge(random_state=0), "seeded noise.*leave random_state"),
        (make_pipeline(DPStandardScaler(bounds=(-5, 5), random_state=1), ridge()), "seeded noise"),
        (PrivacyBudget(ridge(), 0.1, random_state=0), "seeded noise"),
        (ridge(neighboring="replace"), "set the same on the estimator"),
        (DPLogisticRegression(), "the set of class labels in y is public. Remove"),
    ],
)
def test_costs_that_no_ledger_takes(ledger, estimator, message):
    with pytest.raises(PrivacyBudgetError, match=message):
        ledger.fit(estimator, X, Y)
    assert ledger.history() == ()


@pytest.mark.parametrize("accept", [True, "class labels", ["nothing else", "class labels in y"]])
def test_assumptions_are_accepted_by_name_and_written_down(ledger, accept):
    with pytest.warns(PrivacyLeakWarning):
        ledger.fit(DPLogisticRegression(0.2, max_iter=2), X, LABELS, accept=accept)
    (entry,) = ledger.history()
    assert entry.accepted == ("the set of class labels in y is public",)


@pytest.mark.parametrize("accept", [[""], [3], [" "]])
def test_senseless_acceptance_is_refused(ledger, accept):
    with pytest.raises(TypeError, match="accept must be"):
        ledger.fit(ridge(), X, Y, accept=accept)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_is_one_charge(ledger, n_jobs):
    search = GridSearchCV(ridge(0.05), {"alpha": [1.0, 2.0]}, cv=KFold(3), n_jobs=n_jobs)
    with pytest.raises(PrivacyBudgetError, match="choice of GridSearchCV"):
        ledger.fit(search, X, Y)
    fitted = ledger.fit(search, X, Y, accept=["choice of GridSearchCV"])
    (entry,) = ledger.history()
    assert (
        entry.cost.mu
        == privacy_cost(fitted).mu
        == pytest.approx(sqrt(5) * privacy_cost(ridge(0.05)).mu)
    )
    assert entry.estimator == "GridSearchCV" and entry.state == "released"


def test_free_steps_cost_nothing_and_are_listed(ledger):
    ledger.fit(make_pipeline(Normalizer(), FunctionTransformer()), X)
    assert spent(ledger).mu == 0 and ledger.history()[0].cost.mu == 0.0


def test_relations_and_units_are_kept(path):
    ledger = PrivacyLedger(path, dataset="d", epsilon=1.0, delta=1e-5, neighboring="replace")
    ledger.fit(ridge(0.5, neighboring="replace"), X, Y)
    assert ledger.spent.neighboring == "replace"
    with pytest.raises(PrivacyBudgetError, match="neighboring='add_or_remove'"):
        ledger.fit(ridge(0.5), X, Y)
    ledger.close()


def test_other_methods_than_fit_are_charged_in_a_block(ledger):
    with ledger.charge(DPStandardScaler(epsilon=0.4, bounds=(-5, 5))) as scaler:
        assert ledger.history()[0].state == "reserved"
        scaled = scaler.fit_transform(X)
    assert scaled.shape == X.shape
    assert ledger.history()[0].state == "released"


@pytest.mark.parametrize(
    ("estimator", "first", "again"),
    [
        (DPStandardScaler(epsilon=0.2, bounds=(-5, 5)), "fit", "fit_transform"),
        (DPStandardScaler(epsilon=0.2, bounds=(-5, 5)), "partial_fit", "fit"),
        (GaussianMechanism(epsilon=0.2, clip_norm=1.0), "fit_transform", "fit"),
        (GridSearchCV(ridge(0.05), {"alpha": [1.0, 2.0]}, cv=KFold(2)), "fit", "fit"),
        (PrivacyBudget(make_pipeline(Normalizer(), ridge(1.0)), epsilon=0.2), "fit", "fit"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_charge_is_for_one_fit(ledger, estimator, first, again):
    with ledger.charge(estimator, accept=True) as model:
        pickle.dumps(copy.deepcopy(model))
        getattr(model, first)(X, Y)
        pickle.dumps(copy.deepcopy(model))
        learned = {n: v for n, v in vars(model).items() if n.endswith("_")}
        with pytest.raises(PrivacyBudgetError, match="one fit, which was made"):
            getattr(model, again)(X, Y)
        assert {n: v for n, v in vars(model).items() if n.endswith("_")} == learned
    assert ledger.history()[0].state == "released"
    assert not {"fit", "fit_transform", "partial_fit"} & set(vars(model))
    getattr(model, again)(X, Y)  # outside of the ledger


def test_a_fit_that_failed_in_a_block_is_not_tried_again(ledger):
    with ledger.charge(ridge()) as model:
        with pytest.raises(ValueError):
            model.fit(X, Y[:-1])
        with pytest.raises(PrivacyBudgetError, match="one fit"):
            model.fit(X, Y)
    assert ledger.history()[0].cost.epsilon() == pytest.approx(0.3)


def test_chunks_in_a_block_are_one_fit(ledger):
    scaler = DPStandardScaler(epsilon=0.2, bounds=(-5, 5))
    rows = np.tile(X, (10, 1))  # with a few hundred, noise may well be worth a warning
    with ledger.charge(scaler, accept="more than one of the chunks") as model:
        for chunk in np.array_split(rows, 2):
            model.partial_fit(chunk)
    assert model.n_samples_seen_ == len(rows)
    assert ledger.spent.epsilon() == pytest.approx(0.2)


def test_a_clone_is_fitted(ledger):
    model = ridge()
    fitted = ledger.fit(model, X, Y)
    assert fitted is not model and not hasattr(model, "coef_")


# ---- pairs ----


def test_pairs_need_room_that_was_set_aside(path, tmp_path, ledger):
    pair = PrivacyCost(0.01, epsilon0=0.05, delta0=1e-7)
    with pytest.raises(PrivacyBudgetError, match=r"made with epsilon0=0 and delta0=0"):
        ledger._cashier.grant({"estimator": "Histogram"}, pair)
    settings = {"dataset": "d", "epsilon": 1.0, "delta": 1e-5, "epsilon0": 0.1, "delta0": 1e-6}
    with PrivacyLedger(tmp_path / "pairs", **settings) as other:
        entry = {"estimator": "Histogram", "parameters": {}, "mu": 0.01, "epsilon0": 0.05}
        entry |= {"delta0": 1e-7, "assumptions": []}
        for _ in range(2):
            other._cashier.grant(entry, pair)
        with pytest.raises(PrivacyBudgetError, match="pair epsilon0=0.05"):
            other._cashier.grant(entry, pair)
        assert other.spent.epsilon0 == pytest.approx(0.1)
        assert other.total.delta0 == pytest.approx(1e-6)
        assert other.total.gaussian_mu < ledger.total.mu
        json.loads(other.to_json())
        other._repr_html_()


def test_steps_with_a_delta0_use_what_was_set_aside(tmp_path, ledger):
    words = np.array([["a"], ["b"]] * 100, dtype=object)
    budget = PrivacyBudget(DPOneHotEncoder(), epsilon=1.0, delta=1e-5)
    with pytest.raises(PrivacyBudgetError, match="delta0= a tenth of delta"):
        ledger.fit(budget, words)
    total = {"dataset": "words", "epsilon": 1.0, "delta": 1e-5, "delta0": 1e-6}
    # The budget of a pipeline for such steps, at once and in halves.
    with PrivacyLedger(tmp_path / "one", **total) as whole:
        whole.fit(budget, words)
        assert whole.remaining(pairs=True).delta0 < 1e-12
    with PrivacyLedger(tmp_path / "two", **total) as halves:
        first, _ = halves.total.split([1, 1])
        halves.fit(DPOneHotEncoder(epsilon=first), words)
        left = halves.remaining(pairs=True)
        assert left.delta0 == pytest.approx(5e-7) and not halves.remaining().has_pair
        halves.fit(DPOneHotEncoder(epsilon=left), words)
        with pytest.raises(PrivacyBudgetError):
            halves.fit(DPOneHotEncoder(epsilon=first), words)


# ---- mechanisms and objects fitted elsewhere ----


def test_releases_beyond_the_plan_are_charged_before_they_are_made(ledger):
    mechanism = ledger.fit(GaussianMechanism(epsilon=0.5, clip_norm=1.0), X)
    mechanism.transform(X)
    assert len(ledger.history()) == 1
    mechanism.transform(X)
    extra = ledger.history()[1]
    assert dict(extra.parameters) == {"charge": 1} and extra.cost.epsilon() == pytest.approx(0.5)
    assert ledger.spent.mu == pytest.approx(mechanism.privacy_cost_.mu)
    while ledger.remaining().epsilon() > 0.5:
        mechanism.transform(X)
    made = len(mechanism.releases_)
    with pytest.raises(PrivacyBudgetError):
        mechanism.transform(X)
    assert len(mechanism.releases_) == made


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_mechanism_share_what_was_paid_for(ledger, copied):
    mechanism = ledger.fit(GaussianMechanism(epsilon=0.3, sensitivity=1.0, n_releases=2), X)
    other = copied(mechanism)
    mechanism.release(1.0)
    other.release(1.0)
    assert len(ledger.history()) == 1
    other.release(1.0)
    assert len(ledger.history()) == 2
    one = privacy_cost(mechanism).mu / sqrt(2)
    assert ledger.history()[1].cost.mu == pytest.approx(one)


def test_a_mechanism_in_a_pipeline_charges_what_it_serves(ledger):
    pipeline = make_pipeline(GaussianMechanism(), DPRidge(y_bounds=(-4, 4)))
    fitted = ledger.fit(PrivacyBudget(pipeline, epsilon=0.4), X, Y)
    assert len(ledger.history()) == 1
    fitted.predict(X)
    assert len(ledger.history()) == 2
    fitted.estimator_.set_params(gaussianmechanism="passthrough").predict(X)
    assert len(ledger.history()) == 2


@pytest.mark.parametrize("ends", ["failed", "withheld", "exceeded"])
def test_a_mechanism_that_was_not_handed_over_charges_all_that_it_releases(ledger, ends):
    mechanism = GaussianMechanism(epsilon=0.3, clip_norm=1.0)
    with pytest.raises((RuntimeError, PrivacyBudgetError)), ledger.charge(mechanism) as made:
        made.fit_transform(X)
        if ends != "withheld":
            made.transform(X)
        if ends == "failed":
            raise RuntimeError
        if ends == "withheld":
            pickle.dumps(made)  # an assumption more
    assert ledger.history()[0].state == ends
    if ends == "withheld":
        made.transform(X)
    assert ledger.spent.mu == pytest.approx(made.privacy_cost_.mu)
    made.transform(X)
    assert len(made.releases_) == 3
    assert ledger.spent.mu == pytest.approx(made.privacy_cost_.mu)
    with pytest.raises(PrivacyBudgetError):
        for _ in range(20):
            made.transform(X)
    assert ledger.spent.mu <= ledger.total.mu * (1 + 2**-40)


def test_a_seed_set_after_the_fit_is_refused(ledger):
    mechanism = ledger.fit(GaussianMechanism(epsilon=0.3), X)
    with pytest.raises(PrivacyBudgetError, match="seeded"):
        mechanism.set_params(random_state=0).transform(X)


def test_what_was_fitted_elsewhere_is_recorded(ledger):
    fitted = ridge(0.5).fit(X, Y)
    assert ledger.record(fitted) == 1
    assert ledger.history()[0].state == "released"
    assert ledger.spent.epsilon() == pytest.approx(0.5)
    with pytest.raises(PrivacyBudgetError, match="all of that was charged"):
        ledger.record(ridge(0.99).fit(X, Y))
    assert ledger.remaining().mu == 0.0
    assert ledger.history()[1].state == "exceeded"


def test_only_fitted_objects_are_recorded(ledger):
    with pytest.raises(ValueError, match="not fitted"):
        ledger.record(ridge())
    with pytest.raises(PrivacyBudgetError, match="no finite privacy cost"):
        ledger.record(Ridge().fit(X, Y))


# ---- what is written down ----


def test_parameters_hold_no_data():
    names = ["Alice", "Bob"]
    estimator = make_pipeline(
        FunctionTransformer(np.log1p, kw_args={"where": X > 0}),
        DPLogisticRegression(
            epsilon=PrivacyCost.from_epsilon(0.5, 1e-5),
            classes=names,
            class_weight={"Alice": 2.0},
            C=np.float64(3.0),
            feature_bound=inf,
            solver="gradient-descent",
        ),
    )
    found = describe(estimator)
    assert found == {
        "steps": "list of length 2",
        "functiontransformer": "FunctionTransformer",
        "dplogisticregression": "DPLogisticRegression",
        "functiontransformer__func": "ufunc log1p",
        "functiontransformer__kw_args": "dict of length 1",
        "dplogisticregression__epsilon": "PrivacyCost of epsilon=0.5 at delta=1e-05",
        "dplogisticregression__classes": "list of length 2",
        "dplogisticregression__class_weight": "dict of length 1",
        "dplogisticregression__C": 3.0,
        "dplogisticregression__feature_bound": "inf",
        "dplogisticregression__solver": "gradient-descent",
    }
    json.dumps(found, allow_nan=False)
    assert describe(DPStandardScaler(bounds=X[:2])) == {"bounds": "ndarray of shape (2, 3)"}
    assert describe(Spy(notes="some free text, of whatever")) == {"notes": "str of length 27"}


def test_history_in_several_forms(ledger, tmp_path):
    pd = pytest.importorskip("pandas")
    ledger.fit(ridge(0.3, alpha=2.0), X, Y)
    ledger.fit(Spy(ledger, epsilon=0.1), X)
    frame = ledger.to_frame()
    assert list(frame["estimator"]) == ["DPRidge", "Spy"]
    assert frame["epsilon"].to_numpy() == pytest.approx([0.3, 0.1])
    assert isinstance(frame["time"].dtype, pd.DatetimeTZDtype)
    stored = json.loads(ledger.to_json())
    assert stored["dataset"] == "people" and stored["epsilon"] == 1.0
    assert stored["charges"][0]["parameters"]["alpha"] == 2.0
    assert stored["spent"]["mu"] == ledger.spent.mu
    assert ledger.to_json(tmp_path / "out.json") is None
    assert json.loads((tmp_path / "out.json").read_text()) == stored
    assert "epsilon=0.9" in repr(ledger) and "'people'" in repr(ledger)
    assert ledger._repr_html_().count("<tr>") == 3
    entry = ledger.history()[0]
    assert pickle.loads(pickle.dumps(entry)) == entry
    with pytest.raises(TypeError):
        entry.parameters["alpha"] = 3.0


def test_names_are_escaped_in_html(tmp_path):
    with PrivacyLedger(tmp_path / "x", dataset="<b>", epsilon=1.0, delta=1e-5) as ledger:
        assert "<b>" not in ledger._repr_html_()


def test_an_empty_history(ledger):
    pytest.importorskip("pandas")
    assert ledger.history() == () and len(ledger.to_frame()) == 0
    assert ledger.remaining() == ledger.total
    assert ledger.remaining(1e-7).epsilon() == ledger.total.epsilon(1e-7)
    assert ledger.spent.mu == 0.0


# ---- sharing ----


def test_threads_share_a_ledger(ledger):
    cost = ledger.total.split([1.0] * 40)[0]

    def ask(_):
        try:
            return ledger.fit(Spy(ledger, epsilon=cost.epsilon(1e-5) * 0.9999999), X) is not None
        except PrivacyBudgetError:
            return False

    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(ask, range(60)))
    assert granted == len(ledger.history()) == 40
    assert spent(ledger).mu <= LIMIT.mu


def test_a_ledger_can_be_pickled(ledger):
    ledger.fit(ridge(), X, Y)
    other = pickle.loads(pickle.dumps(ledger))
    other.fit(ridge(), X, Y)
    assert len(ledger.history()) == 2
    assert copy.deepcopy(ledger) is ledger
    other.close()
