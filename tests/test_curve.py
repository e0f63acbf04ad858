"""`privacy_utility_curve`."""

import math
import re

import numpy as np
import pytest
from joblib import parallel_config
from private_centre import PrivateCentre
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPRidge, PrivacyBudget, PrivacyCost, privacy_utility_curve
from skdp.exceptions import PrivacyWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]


def clf(**params):
    return DPLogisticRegression(classes=[0, 1], **params)


def pipeline(**params):
    return make_pipeline(PrivateCentre(), clf(**params))


def data(n=300, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_every_budget_reaches_its_fits():
    def spent(model, X, y):
        return model.privacy_cost_.epsilon()

    X, y = data()
    curve = privacy_utility_curve(
        pipeline(),
        X,
        y,
        epsilons=[4.0, 0.1, 100.0],
        cv=3,
        n_repeats=2,
        scoring=spent,
        baseline=None,
    )
    assert list(curve.epsilons) == [4.0, 0.1, 100.0]
    expected = np.broadcast_to(curve.epsilons[:, None, None], (3, 3, 2))
    np.testing.assert_allclose(curve.test_scores, expected, rtol=1e-12)
    assert curve.scoring is spent


def test_the_baseline_is_the_twin_of_the_whole_pipeline():
    X, y = data()
    curve = privacy_utility_curve(
        pipeline(C=3.0), X, y, epsilons=[1.0], cv=KFold(3), scoring="neg_log_loss"
    )
    twin = make_pipeline(StandardScaler(), LogisticRegression(C=3.0))
    expected = cross_val_score(twin, X, y, cv=KFold(3), scoring="neg_log_loss")
    np.testing.assert_allclose(curve.baseline_scores, expected, rtol=1e-12)
    assert curve.scoring == "neg_log_loss"


def test_costs_are_those_of_the_whole_fit():
    X, y = data(60)
    estimator = pipeline(epsilon=5.0, delta=1e-7)
    curve = privacy_utility_curve(estimator, X, y, epsilons=[1.0, 4.0], cv=2, baseline=None)
    # The smallest delta among the steps, as for their composition.
    expected = [PrivacyCost.from_epsilon(e, 1e-7) for e in (1.0, 4.0)]
    assert curve.costs == tuple(expected)
    assert curve.delta == 1e-7
    np.testing.assert_array_equal(curve.mus, [cost.mu for cost in expected])
    np.testing.assert_array_equal(curve.sigmas, [1 / cost.mu for cost in expected])
    assert curve.baseline_scores is None
    assert estimator[-1].epsilon == 5.0  # untouched


@pytest.mark.parametrize("wrap", [False, True])
def test_what_has_an_epsilon_of_its_own_is_not_wrapped(wrap):
    class Recording(DPLogisticRegression):
        seen = []

        def fit(self, X, y):
            self.seen.append(self.epsilon)
            return super().fit(X, y)

    X, y = data(60)
    estimator = Recording(classes=[0, 1])
    if wrap:
        estimator = PrivacyBudget(estimator, delta=1e-6, shares={"": 2})
    curve = privacy_utility_curve(estimator, X, y, epsilons=[2.0], cv=2, baseline=None)
    if wrap:
        assert Recording.seen == [PrivacyCost.from_epsilon(2.0, 1e-6)] * 2
    else:
        assert Recording.seen == [2.0] * 2
    assert curve.delta == (1e-6 if wrap else 1e-5)


def test_relation_of_the_steps_is_kept():
    X, y = data(60)
    steps = make_pipeline(PrivateCentre(neighboring="replace"), clf(neighboring="replace"))
    curve = privacy_utility_curve(steps, X, y, epsilons=[2.0], cv=2)
    assert curve.costs[0].neighboring == "replace"


def test_budgets_and_baseline_share_their_splits():
    class Memory(ClassifierMixin, BaseEstimator):
        """Scores by the first value that it was trained on."""

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.first_ = X[0, 0]
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

    def first(estimator, X, y):
        return estimator.first_ if isinstance(estimator, Memory) else X[0, 0]

    X, y = data(60)
    curve = privacy_utility_curve(
        clf(), X, y, epsilons=[1.0, 2.0], cv=3, n_repeats=2, scoring=first, baseline=Memory()
    )
    tests, trains = curve.test_scores, curve.baseline_scores
    assert np.all(tests == tests[:1, :, :1])  # the same test part whatever the budget and draw
    assert len(np.unique(trains)) > 1
    again = [
        privacy_utility_curve(
            clf(), X, y, epsilons=[1.0], cv=3, scoring=first, baseline=None, random_state=seed
        ).test_scores[0, :, 0]
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(again[0], again[1])
    assert np.any(again[0] != again[2])


def test_random_state_does_not_seed_the_noise():
    X, y = data()
    runs = [
        privacy_utility_curve(
            clf(epsilon=1.0),
            X,
            y,
            epsilons=[0.1],
            cv=2,
            n_repeats=2,
            scoring=lambda model, X, y: model.coef_[0, 0],
            baseline=None,
            random_state=0,
        ).test_scores.ravel()
        for _ in range(2)
    ]
    assert len(np.unique(runs)) == 8


@pytest.mark.parametrize(
    ("estimator", "cv", "kind"),
    [
        (clf(), None, StratifiedKFold),
        (clf(), 3, StratifiedKFold),
        (DPRidge(y_bounds=(0, 1)), 3, KFold),
    ],
)
def test_splits_are_shuffled_and_stratified_as_usual(estimator, cv, kind):
    X, y = data(60)
    X[:, 1] = np.arange(60)
    seen = []

    def record(model, X, y):
        seen.append(X[:, 1].astype(int))
        return 0.0

    privacy_utility_curve(
        estimator, X, y, epsilons=[1.0], cv=cv, scoring=record, baseline=None, random_state=5
    )
    rng = np.random.RandomState(5)
    expected = kind(cv or 5, shuffle=True, random_state=rng).split(X, y)
    for (_, test), found in zip(expected, seen, strict=True):
        np.testing.assert_array_equal(test, found)


def test_splitters_groups_and_scorers_are_used_as_given():
    X, y = data(60)
    groups = np.arange(60) // 20
    curve = privacy_utility_curve(
        clf(), X, y, epsilons=[1.0], cv=GroupKFold(3), groups=groups, baseline=LogisticRegression(),
        scoring=make_scorer(accuracy_score),
    )  # fmt: skip
    splits = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(
        curve.baseline_scores, cross_val_score(LogisticRegression(), X, y, cv=splits)
    )


def test_regression_with_two_workers():
    X, _ = data()
    curve = privacy_utility_curve(
        DPRidge(y_bounds=(-4, 4)), X, X[:, 0], epsilons=[50.0], cv=KFold(2), n_jobs=2
    )
    assert curve.test_scores.shape == (1, 2, 1)
    np.testing.assert_allclose(
        curve.baseline_scores, cross_val_score(Ridge(), X, X[:, 0], cv=KFold(2))
    )


def test_the_table():
    pd = pytest.importorskip("pandas")
    X, y = data(90)
    curve = privacy_utility_curve(clf(), X, y, epsilons=[2.0, 1.0], cv=3, n_repeats=2)
    frame = curve.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 12
    assert list(frame) == ["epsilon", "mu", "sigma", "split", "repeat", "score", "baseline"]
    row = frame.query("epsilon == 1.0 and split == 2 and repeat == 1").squeeze()
    assert row.score == curve.test_scores[1, 2, 1]
    assert row.baseline == curve.baseline_scores[2]
    assert row.mu == curve.costs[1].mu and row.sigma == 1 / row.mu
    without = privacy_utility_curve(clf(), X, y, epsilons=[2.0], cv=3, baseline=None)
    assert without.to_frame().baseline.isna().all()


def test_the_table_says_that_it_needs_pandas(monkeypatch):
    X, y = data(60)
    curve = privacy_utility_curve(clf(), X, y, epsilons=[2.0], cv=2, baseline=None)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        curve.to_frame()


def test_progress_goes_to_the_standard_error(capfd):
    X, y = data(60)
    privacy_utility_curve(clf(), X, y, epsilons=[1.0, 2.0], cv=2, verbose=1)
    out, err = capfd.readouterr()
    assert out == ""
    bars = err.strip("\r\n").split("\r")
    assert len(bars) == 6
    assert bars[2] == "[" + "#" * 20 + "." * 20 + "] 3/6 fits"
    assert bars[-1] == "[" + "#" * 40 + "] 6/6 fits" and err.endswith("\n")
    privacy_utility_curve(clf(), X, y, epsilons=[1.0], cv=2)
    assert capfd.readouterr() == ("", "")


class Untouchable:
    def __getattribute__(self, name):
        raise AssertionError(f"the data were touched: {name}")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilons": []}, "at least one number"),
        ({"epsilons": 1.0}, "at least one number"),
        ({"epsilons": [0.0]}, "positive and finite"),
        ({"epsilons": [1.0, math.nan]}, "positive and finite"),
        ({"epsilons": [math.inf]}, "baseline stands for infinity"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"n_repeats": 1.5}, "n_repeats"),
        ({"n_repeats": True}, "n_repeats"),
        ({"baseline": "none"}, "baseline"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        privacy_utility_curve(clf(), Untouchable(), Untouchable(), **{"epsilons": [1.0], **params})


def test_steps_without_privacy_are_refused():
    steps = make_pipeline(StandardScaler(), clf())
    with pytest.raises(ValueError, match="'standardscaler': StandardScaler learns"):
        privacy_utility_curve(steps, Untouchable(), Untouchable(), epsilons=[1.0])


def test_a_failing_fit_is_an_error():
    X, y = data(60)
    with pytest.raises(ValueError, match=re.escape("not among `classes`")):
        privacy_utility_curve(DPLogisticRegression(classes=[0, 2]), X, y, epsilons=[1.0], cv=2)


def test_what_all_fits_warn_about_is_said_once_and_here():
    X, y = data()
    estimator = PrivacyBudget(pipeline(epsilon=2.0))  # not used: every fit says so
    with pytest.warns(PrivacyWarning, match="are not used") as caught:
        privacy_utility_curve(estimator, X, y, epsilons=[1.0, 2.0], cv=2, n_repeats=2)
    said = [(w.filename, str(w.message)) for w in caught if "are not used" in str(w.message)]
    assert len(said) == 1 and said[0][0] == __file__


@pytest.mark.filterwarnings("error::skdp.exceptions.PrivacyWarning")
def test_budgets_of_the_steps_of_a_bare_pipeline_are_replaced_silently():
    X, y = data()
    curve = privacy_utility_curve(pipeline(epsilon=2.0, delta=1e-6), X, y, epsilons=[1.0], cv=2)
    assert curve.costs[0].epsilon() == pytest.approx(1.0)
    assert curve.delta == 1e-6


def test_in_threads_warnings_pass_as_they_are():
    X, y = data()
    estimator = PrivacyBudget(pipeline(epsilon=2.0))
    with pytest.warns(PrivacyWarning), parallel_config(backend="threading"):
        privacy_utility_curve(estimator, X, y, epsilons=[1.0, 2.0], cv=2, n_jobs=2)


def test_a_curve_has_a_short_repr_and_names_its_score():
    X, y = data()
    curve = privacy_utility_curve(clf(), X, y, epsilons=[1.0, 50.0], cv=2)
    pattern = (
        r"PrivacyUtilityCurve\(accuracy by epsilon \{1: [\d.]+, 50: [\d.]+\} at delta=1e-05, base"
    )
    assert re.match(pattern, repr(curve)) and len(repr(curve)) < 120
    ridge = DPRidge(y_bounds=(-1, 1))
    curve = privacy_utility_curve(ridge, X, y, epsilons=[9.0], cv=2, baseline=None)
    assert repr(curve).startswith("PrivacyUtilityCurve(R2 by epsilon") and "base" not in repr(curve)
