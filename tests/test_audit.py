"""Audits: bounds that hold, attacks that have power, and broken estimators that are caught.

Statistical tests. Every audit of a correct estimator is run at a confidence of 1 - 1e-9, so that
fewer than 20 of them fail by chance with probability below 1e-7. The audits that must find
something have a margin of many standard deviations, stated where they are made.
"""

import csv
from math import exp, inf
from pathlib import Path

import audits
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array, issparse
from scipy.stats import beta, binom, norm
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    DPSelectKBest,
    DPStandardScaler,
    PrivacyCost,
)
from skdp.audit import AuditDisplay, audit_epsilon, audit_one_run
from skdp.audit._bounds import (
    epsilon_from_errors,
    error_bounds,
    mean_error_bounds,
    mu_from_errors,
    one_run_epsilon,
)
from skdp.audit._neighbors import candidates, neighbors_for

ADD = "add_or_remove"
SURE = 1.0 - 1e-9
PUBLISHED = Path(__file__).parents[1] / "docs" / "data" / "audit.csv"
X, Y = np.zeros((20, 2)), np.zeros(20)


class NoisySum(TransformerMixin, BaseEstimator):
    """Releases the clipped sum of a column, with the noise of a claimed mu times a factor."""

    def __init__(self, mu=1.0, factor=1.0, clipped=True):
        self.mu = mu
        self.factor = factor
        self.clipped = clipped

    def fit(self, X, y=None):
        rows = np.clip(X[:, 0], -1.0, 1.0) if self.clipped else X[:, 0]
        noise = np.random.default_rng().normal() * self.factor / self.mu
        self.sum_ = rows.sum() + noise
        return self


def claim(mu):
    return PrivacyCost(mu)


# ---------------------------------------------------------------- bounds


def test_error_bounds_are_those_of_clopper_and_pearson():
    errors = np.array([0, 3, 50, 99, 100])
    found = error_bounds(errors, 100, 0.01)
    expected = [beta.ppf(0.99, k + 1, 100 - k) if k < 100 else 1.0 for k in errors]
    assert_allclose(found, expected, rtol=1e-10)
    # By definition: so few errors, or fewer, have the stated probability at the bound.
    assert_allclose(binom.cdf(errors[:4], 100, found[:4]), 0.01, rtol=1e-8)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.3, 0.3), (0.02, 0.5), (0.0, 0.2), (0.01, 0.02)])
def test_bounds_of_the_mean_error_hold_whatever_the_two_rates_are(rates):
    # In exact probabilities, so there is nothing to chance: all pairs of numbers of errors for
    # which the bound is below the truth.
    n, risk = 60, 0.05
    k = np.arange(n + 1)
    pairs = binom.pmf(k, n, rates[0])[:, None] * binom.pmf(k, n, rates[1])
    bounds = mean_error_bounds(k[:, None], k, n, risk)
    wrong = pairs[bounds < np.mean(rates)].sum()
    assert wrong <= risk
    if rates[0] == rates[1]:  # as sharp as whole numbers allow
        assert wrong > 0.4 * risk


def test_the_mean_error_of_equal_rates_is_known_better_than_each():
    each = error_bounds(460, 1000, 0.005)
    assert mu_from_errors(*[mean_error_bounds(460, 460, 1000, 0.01)] * 2) > 0.06
    assert mu_from_errors(each, each) == 0.0
    assert mean_error_bounds(9, 10, 10, 0.01) == mean_error_bounds(10, 10, 10, 0.01) == 1.0


def test_bounds_at_the_true_rates_give_the_true_mu():
    alarms = np.array([0.01, 0.2, 0.5, 0.9])
    misses = norm.cdf(norm.isf(alarms) - 1.3)
    assert_allclose(mu_from_errors(alarms, misses), 1.3, rtol=1e-9)
    assert mu_from_errors(0.6, 0.7) == 0.0


def test_epsilon_counts_both_directions():
    # Randomised response with probability 3/4 of the truth is ln(3)-private, both ways.
    assert_allclose(epsilon_from_errors(0.25, 0.25, 0.0), np.log(3.0))
    assert_allclose(epsilon_from_errors(0.1, 0.5, 0.0), np.log(5.0))
    assert_allclose(epsilon_from_errors(0.5, 0.1, 0.0), np.log(5.0))
    assert epsilon_from_errors(0.5, 0.49, 0.02) == 0.0


def test_one_run_bound_without_delta_is_a_binomial_test():
    # All 20 guesses right has probability p^20 under epsilon, p = e^eps / (1 + e^eps).
    p = 0.01 ** (1 / 20)
    assert_allclose(one_run_epsilon(100, 20, 20, 0.0, 0.01), np.log(p / (1 - p)), rtol=1e-5)
    assert one_run_epsilon(100, 20, 10, 0.0, 0.01) == 0.0
    assert one_run_epsilon(10_000, 10_000, 10_000, 0.0, 0.01) > 5.0


def test_one_run_bound_pays_for_delta():
    free, paid = (one_run_epsilon(1000, 300, 270, d, 0.01) for d in (0.0, 1e-5))
    assert 0.0 < paid < free
    assert one_run_epsilon(1000, 300, 270, 0.1, 0.01) == 0.0


def test_one_run_bound_holds_for_randomised_response():
    # The mechanism that answers with the true bit with probability p is exactly epsilon-private,
    # and guessing its answers is right Bin(m, p) times: the bound errs as often as it says.
    epsilon, m, trials, risk = 1.0, 200, 2000, 0.05
    p = exp(epsilon) / (1 + exp(epsilon))
    right = np.random.default_rng(0).binomial(m, p, size=trials)
    wrong = np.mean([one_run_epsilon(m, m, int(k), 0.0, risk) > epsilon for k in right])
    assert 0.02 < wrong <= 0.065  # seeded; 0.05 less what is lost to whole numbers


# ---------------------------------------------------------------- audits by many runs


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
def test_a_gaussian_release_is_recovered_and_never_exceeded(relation):
    # mu = 1 (replace: the sums are 2 apart), 3,000 runs for the count: the two rates have
    # standard deviations of 0.011, so 60% of mu is more than 10 of them below what is found.
    scale = 2.0 if relation == "replace" else 1.0
    neighbor = (([-9.0, 0.0], None), ([9.0, 0.0], None))
    found = audit_epsilon(
        NoisySum(mu=1.0, factor=scale),
        X,
        neighbor=neighbor if relation == "replace" else neighbor[1],
        n_runs=6000,
        claim=PrivacyCost(1.0, neighboring=relation),
        confidence=SURE,
    )
    assert not found.is_violated and found.recovered <= 1.0
    loose = found.at_confidence(0.95)
    assert found.mu < loose.mu and loose.recovered > 0.6
    assert 0.0 < found.epsilon <= PrivacyCost(1.0).epsilon(1e-5)


@pytest.mark.parametrize("broken", [{"factor": 0.5}, {"factor": 1e-9}, {"clipped": False}])
def test_a_broken_release_is_caught(broken):
    # True mu of at least 2 against a claim of 1: 20 standard deviations.
    found = audit_epsilon(
        NoisySum(mu=1.0, **broken), X, n_runs=4000, claim=claim(1.0), confidence=SURE
    )
    assert found.is_violated and found.mu > 1.0


def test_what_is_released_without_noise_is_caught():
    class Counting(NoisySum):
        def fit(self, X, y=None):
            super().fit(X)
            self.largest_ = X.max()
            return self

    found = audit_epsilon(Counting(), X, n_runs=400, claim=claim(1.0), confidence=SURE)
    assert found.is_violated and found.epsilon > 1.5


def test_private_models_keep_their_promise_and_the_audit_has_power():
    model = DPRidge(epsilon=16.0, y_bounds=(-1.0, 1.0))
    found = audit_epsilon(model, X, Y, neighbor=([0.0, 0.0], 9.0), n_runs=400, confidence=SURE)
    assert found.claim == model.planned_cost()
    assert not found.is_violated
    assert found.at_confidence(0.99).mu > 0.1  # of 2.9; 1.2 to 1.6 measured


def test_non_private_models_have_no_claim_and_an_unbounded_loss():
    found = audit_epsilon(LinearRegression(), X + np.eye(20, 2), Y, n_runs=100)
    assert found.claim is None and not found.is_violated
    assert np.isnan(found.recovered)
    assert found.mu > 2.0  # all that 35 perfect guesses a side can show


def test_canaries_are_found_and_rows_declared():
    model = DPLogisticRegression(epsilon=8.0, classes=[0, 1], max_iter=1)
    found = audit_epsilon(model, X, np.arange(20) % 2, n_runs=40, confidence=SURE)
    assert "target" in found.neighbor and not found.is_violated
    removed = audit_epsilon(NoisySum(), X + 1.0, neighbor=3, n_runs=100)
    assert removed.neighbor == "row 3"


def test_searches_are_audited_with_one_record_in_place_of_another():
    search = DPGridSearchCV(
        DPRidge(y_bounds=(-1.0, 1.0), max_iter=1), {"alpha": [0.1, 1.0]}, epsilon=9.0
    )
    rows = X + np.linspace(-1.0, 1.0, 20)[:, None]
    found = audit_epsilon(search, rows, Y, n_runs=40, neighboring="replace", confidence=SURE)
    assert found.claim == search.planned_cost().to_replace() and not found.is_violated
    # Another number of rows is another division of them, for all records: found by itself, that
    # had a mu of 4.3 against a claim of 1.8.
    with pytest.raises(ValueError, match="neighboring='replace'"):
        audit_epsilon(search, rows, Y, n_runs=40)


def test_labels_that_a_transformer_declares_stay_labels():
    model = DPSelectKBest(k=1, classes=[0, 1], bounds=(-1, 1))
    tried = [record for _, record in candidates(model, X, np.arange(20) % 2, ADD)]
    pairs = [pair for _, pair in candidates(model, X, np.arange(20) % 2, "replace")]
    labels = {label for _, label in tried + [record for pair in pairs for record in pair]}
    assert labels == {0, 1}
    found = audit_epsilon(
        model, X, np.arange(20) % 2, n_runs=20, neighboring="replace", confidence=SURE
    )
    assert not found.is_violated


def test_a_claim_that_says_nothing_about_the_relation_is_refused():
    with pytest.raises(ValueError, match="says nothing about 'add_or_remove'"):
        audit_epsilon(
            NoisySum(),
            X,
            claim=PrivacyCost(1.0, neighboring="replace"),
            neighboring="add_or_remove",
        )


def test_pipelines_are_seen_through():
    pipe = make_pipeline(
        DPStandardScaler(epsilon=4.0, bounds=(-5, 5), random_state=0),  # the seed is taken out
        DPLogisticRegression(epsilon=4.0, classes=[0, 1]),
    )
    canary = ([99.0, 99.0], 1)
    data = (X, np.arange(20) % 2)
    found = audit_epsilon(pipe, *data, neighbor=canary, n_runs=40, confidence=SURE)
    assert not found.is_violated
    assert found.claim.assumptions  # the seed, in the claim


def test_data_frames_and_outputs():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = DPRidge(epsilon=4.0, y_bounds=(-1, 1), max_iter=1)
    given = {"neighbor": ([9.0, 9.0], 1.0), "observe": "outputs", "confidence": SURE}
    found = audit_epsilon(model, frame, Y, n_runs=40, **given)
    assert not found.is_violated and found.neighbor == "given record"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_runs": 5}, "n_runs"),
        ({"confidence": 1.0}, "confidence"),
        ({"observe": "everything"}, "observe"),
        ({"neighbor": "row"}, "neighbor"),
        ({"neighbor": 3, "neighboring": "replace"}, "two records"),
    ],
)
def test_senseless_parameters_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        audit_epsilon(NoisySum(), X, **settings)


# ---------------------------------------------------------------- neighbouring data sets


class ClipsDoubleOnly(NoisySum):
    """Forgets to clip rows of single precision."""

    def fit(self, X, y=None):
        self.clipped = X.dtype != np.float32
        return super().fit(X)


def test_single_precision_stays_so():
    rows = X.astype(np.float32)
    found = audit_epsilon(ClipsDoubleOnly(), rows, n_runs=200, claim=claim(1.0))
    assert found.is_violated
    for record in (([9.0, 9.0], 1.0), ([0.1, 0.0], 0.5)):
        with_record, without = neighbors_for(rows, Y.astype(np.float32), record, ADD).sides[::-1]
        assert [a.dtype for a in (*with_record, *without)] == [np.float32] * 4


@pytest.mark.parametrize(
    ("rows", "y", "record"),
    [
        (np.zeros((3, 2), int), np.zeros(3, int), ([0.5, 9.0], -0.5)),
        (np.zeros((3, 2), np.uint8), np.zeros(3, np.uint8), ([-1, 300], 256)),
        (np.array([["a"], ["b"]]), np.array(["no", "no"]), (["other"], "perhaps")),
        (np.zeros((3, 2)), np.zeros((3, 2), int), ([1.0, 2.0], [0.5, 7.0])),
        (csr_array(np.zeros((3, 2), int)), np.zeros(3), ([0.5, 2.0], 0.5)),
    ],
)
def test_no_record_is_cut_off_and_both_sides_are_of_one_type(rows, y, record):
    (without, with_record) = neighbors_for(rows, y, record, ADD).sides
    last = with_record[0][[-1]]
    assert np.ravel(last.toarray() if issparse(last) else last).tolist() == list(record[0])
    assert np.ravel(with_record[1][-1]).tolist() == np.ravel(record[1]).tolist()
    for a, b in zip(without, with_record, strict=True):
        assert a.dtype == b.dtype and len(b[:-1].shape) == len(a.shape) and b.shape[0] == len(y) + 1


@pytest.mark.parametrize("given", ["list", "series", "frame", "dict"])
def test_rows_of_data_frames(given):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": [0.5, 1.5]})
    row = {"a": 7, "b": "y", "c": 2.5}
    made = {
        "list": list(row.values()),
        "series": pd.Series(row)[["c", "b", "a"]],
        "frame": pd.DataFrame([row]),
        "dict": row,
    }[given]
    without, with_record = neighbors_for(frame, None, (made,), ADD).sides
    assert with_record[0].iloc[-1].to_dict() == row
    assert (with_record[0].dtypes == frame.dtypes).all() and without[0].equals(frame)


def frames():
    pd = pytest.importorskip("pandas")
    mixed = pd.DataFrame({"a": [1.0, np.nan] * 10, "b": ["x", "y"] * 10, "c": [3, 4] * 10})
    return {"numbers": mixed[["a", "c"]], "mixed": mixed, "texts": mixed[["b"]]}


@pytest.mark.parametrize(
    "rows",
    [
        *(pytest.param(lambda name=name: frames()[name], id=name) for name in frames()),
        pytest.param(lambda: np.where(np.eye(20, 2), np.nan, 1.0), id="missing values"),
        pytest.param(lambda: np.array([["a"], ["b"]] * 10, dtype=object), id="objects"),
        pytest.param(lambda: csr_array(np.eye(20, 2)), id="sparse"),
        pytest.param(lambda: np.full((20, 2), 7, np.uint8), id="bytes"),
        pytest.param(lambda: np.zeros((0, 2)), id="no rows"),
    ],
)
@pytest.mark.parametrize("y", [None, np.array(["no", "yes"] * 10), np.array([True, False] * 10)])
def test_canaries_are_found_for_all_sorts_of_data(rows, y):
    rows = rows()
    y = None if y is None or rows.shape[0] == 0 else y
    for relation in (ADD, "replace"):
        found = list(candidates(NoisySum(), rows, y, relation))
        assert found
        for label, neighbor in found:
            without, with_record = neighbors_for(rows, y, neighbor, relation).sides
            assert ("target" in label) == (y is not None)
            assert with_record[0].shape[0] == rows.shape[0] + 1
            for side in (without, with_record):
                assert side[1] is None or set(side[1].tolist()) <= set(y.tolist())


class NoisySumOfAFrame(NoisySum):
    def fit(self, X, y=None):
        return super().fit(X.to_numpy())


def test_canaries_in_data_frames_of_numbers_are_extreme():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"a": np.zeros(20), "b": np.zeros(20, int)})
    model = NoisySumOfAFrame(clipped=False)
    assert audit_epsilon(model, rows, n_runs=200, claim=claim(1.0)).is_violated


class KeepsTheLeast(NoisySum):
    def fit(self, X, y=None):
        self.least_ = X.min(axis=0)
        return super().fit(X)


def test_a_minimum_that_is_kept_is_caught():
    assert audit_epsilon(KeepsTheLeast(), X, n_runs=200, claim=claim(1.0)).is_violated


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"neighbor": 20}, "neighbor=20 is not the number of one of the 20 rows"),
        ({"neighbor": ([1.0, 2.0],)}, "a tuple .x, y. of a row and its target"),
        ({"neighbor": ([1.0, 2.0], None)}, "a target where, and only where"),
        ({"neighbor": (([1.0, 2.0], 0.0), ([1.0, 2.0], 1.0))}, "go with neighboring='replace'"),
        ({"neighbor": ([1.0, 2.0], 0.0), "neighboring": "replace"}, "give two records"),
    ],
)
def test_senseless_neighbours_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        audit_epsilon(LinearRegression(), X, Y, **settings)


# ---------------------------------------------------------------- audits by one run


def test_one_run_catches_a_model_that_remembers():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(50, 400)), np.arange(50) % 2
    given = {
        "n_canaries": 200,
        "random_state": 0,
        "claim": claim(0.1),
        "confidence": SURE,
        "delta": 1e-13,
    }
    found = audit_one_run(LinearRegression(), rows, labels, **given)  # interpolates
    assert found.is_violated and found.n_right > 0.9 * found.n_guesses
    assert audit_one_run(LogisticRegression(C=1e3), rows, labels, **given).n_right > 60  # of 100


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_one_run_never_exceeds_the_claim(epsilon):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 20))
    model = DPLogisticRegression(epsilon=epsilon, classes=[0, 1])
    found = audit_one_run(model, rows, np.arange(50) % 2, n_canaries=300, confidence=SURE)
    assert found.claim == model.planned_cost() and not found.is_violated
    ridge = DPRidge(epsilon=epsilon, y_bounds=(-3, 3))
    given = (rng.normal(size=(40, 20)), rng.normal(size=40))
    found = audit_one_run(ridge, rows, rows[:, 0], canaries=given, confidence=SURE)
    assert found.n_canaries == 40 and not found.is_violated


def test_one_run_parameters():
    with pytest.raises(ValueError, match="n_guesses"):
        audit_one_run(LogisticRegression(), X, Y, n_canaries=10, n_guesses=11)


def test_one_run_takes_one_number_for_every_canary():
    # Sorted along the wrong axis, other shapes used to make all guesses right: proofs of nothing.
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    model = DPRidge(epsilon=0.5, y_bounds=[(-3.0, 3.0), (-3.0, 3.0)])
    for given in ({"canaries": (rows, targets)}, {"n_canaries": 30}):
        found = audit_one_run(model, rows, targets, confidence=SURE, **given)
        assert found.n_right <= found.n_guesses == 15 and not found.is_violated
    single = DPRidge(epsilon=0.5, y_bounds=(-3.0, 3.0))
    column = targets[:, :1]
    found = audit_one_run(single, rows, column, canaries=(rows, column), confidence=SURE)
    assert found.n_right <= found.n_guesses == 15
    model = DPLogisticRegression(classes=[0, 1])
    for wrong in (lambda fitted, X, y: fitted.predict_proba(X), lambda fitted, X, y: y[:-1]):
        with pytest.raises(ValueError, match="one number for each of the 30 canaries"):
            audit_one_run(model, rows, np.arange(30) % 2, n_canaries=30, score=wrong)


class TellsFits(ClassifierMixin, BaseEstimator):
    """Remembers all records, with its classes in no order."""

    def fit(self, X, y):
        self.classes_ = np.array(["yes", "no", "maybe"])
        self.known_ = {(*row, label) for row, label in zip(X.tolist(), y.tolist(), strict=True)}
        return self

    def decision_function(self, X):
        return np.array(
            [[(*r, k) in self.known_ for k in self.classes_] for r in X.tolist()], float
        )


def test_one_run_finds_the_right_class_in_any_order():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(100, 2)), rng.choice(["maybe", "no", "yes"], size=100)
    found = audit_one_run(TellsFits(), rows[:9], labels[:9], canaries=(rows, labels), n_guesses=40)
    assert found.n_right == 40


def test_one_run_says_what_is_missing():
    with pytest.raises(ValueError, match="give `canaries`"):
        audit_one_run(LinearRegression(), X[:0], Y[:0])
    with pytest.raises(ValueError, match="give a function as `score`"):
        audit_one_run(DPStandardScaler(bounds=(-1, 1)), X, Y, n_canaries=10)


# ---------------------------------------------------------------- picture


def test_display_shows_the_attack_and_the_promise():
    plt = pytest.importorskip("matplotlib.pyplot")
    found = audit_epsilon(NoisySum(), X, n_runs=200, claim=claim(1.0))
    display = AuditDisplay.from_result(found, name="sum")
    rates, hits = display.line_.get_data()
    assert rates[0] == hits[0] == 0.0 and rates[-1] == hits[-1] == 1.0
    assert np.all(np.diff(rates) >= 0) and np.all(np.diff(hits) >= 0)
    x, allowed = display.claim_.get_data()
    assert_allclose(allowed[100], norm.cdf(norm.ppf(x[100]) + 1.0))
    assert "sum" in display.ax_.get_legend_handles_labels()[0 + 1][0]
    plt.close(display.figure_)
    without = AuditDisplay.from_result(audit_epsilon(LinearRegression(), X, Y, n_runs=40))
    assert without.claim_ is None
    plt.close(without.figure_)


def test_infinite_epsilon_is_no_claim():
    found = audit_epsilon(DPRidge(epsilon=inf), X + np.eye(20, 2), Y, n_runs=40)
    assert found.claim is None


# ---------------------------------------------------------------- make audit


def test_the_published_audits_are_of_every_case_and_found_nothing():
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = [(row["estimator"], float(row["epsilon"]), row["neighboring"]) for row in rows]
    wanted = [
        (n, e, r) for n, _ in audits.cases() for e in audits.EPSILONS for r in audits.RELATIONS
    ]
    assert sorted(found) == sorted(wanted), (
        "audit what is new: python tests/audits.py --csv docs/data/audit.csv --resume"
    )
    assert not [row for row in rows if row["failure"]]


def test_an_audit_that_was_interrupted_is_resumed(tmp_path, monkeypatch, capsys):
    results = tmp_path / "audit.csv"
    options = ["--only", "DPSimpleImputer-frequent", "--runs", "20", "--csv", str(results)]
    monkeypatch.setattr("sys.argv", ["audits.py", *options])
    assert audits.main() == 0
    lines = results.read_text().splitlines()
    results.write_text("\n".join(lines[:-1] + [lines[1].replace("frequent", "gone")]) + "\n")
    monkeypatch.setattr("sys.argv", ["audits.py", *options, "--resume"])
    assert audits.main() == 0
    resumed = results.read_text().splitlines()
    assert resumed[:-1] == lines[:-1] and len(resumed) == len(lines) == 7
    assert "6 audits, 0 failures" in capsys.readouterr().out
