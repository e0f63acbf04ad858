"""The checks for anybody's estimators: each fails where its defect is, all pass where none is.

`NoisySum` is private; every other estimator of this file has one defect that was found in a
published library, or is next to one.
"""

import itertools
import re
from contextlib import suppress
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pytest
import registry
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_array

from skdp import DPRidge, PrivacyCost
from skdp.estimator_checks import check_estimator_privacy, parametrize_with_privacy_checks
from skdp.estimator_checks._run import CHECKS
from skdp.estimator_checks._subject import default_data
from skdp.plan import Release

NAMES = [check.__name__ for check in CHECKS]
STEP = 2.0**-20


class NoisySum(TransformerMixin, BaseEstimator):
    """Sum of rows clipped to norm 1, with noise on a grid."""

    def __init__(self, epsilon=1.0, delta=1e-5, random_state=None, fit_intercept=True):
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state
        self.fit_intercept = fit_intercept

    def planned_cost(self):
        texts = () if self.random_state is None else ("the noise has a seed",)
        return PrivacyCost.from_epsilon(self.epsilon, self.delta).with_assumptions(*texts)

    def validated(self, X):
        with suppress(TypeError, ValueError):  # an error raised in here would be chained to it
            return check_array(X, accept_sparse=True, dtype=(np.float64, np.float32))
        raise ValueError("X must be a matrix of finite numbers")

    def clipped(self, X):
        X = (X.toarray() if issparse(X) else X).astype(np.float64)
        largest = np.maximum(np.abs(X).max(axis=1, keepdims=True), 1.0)
        X = X / largest  # the square of 1e300 is infinite
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0 / largest)

    def generator(self, total):
        if self.random_state is None:
            return np.random.default_rng()
        key = (total / STEP).astype(np.int64).astype(np.uint64).tolist()
        return np.random.default_rng([self.random_state, *key])

    def sigma(self):
        # The rounding to the grid moves a sum by less than this slack.
        return (1.0 + 2.0**-17) / PrivacyCost.from_epsilon(self.epsilon, self.delta).mu

    def noisy(self, total):
        total = np.rint(total / STEP)
        noise = self.generator(total * STEP).normal(0.0, self.sigma() / STEP, total.shape)
        return (total + np.rint(noise)) * STEP

    def fit(self, X, y=None):
        X = self.validated(X)
        total = self.clipped(X).sum(axis=0)
        self.privacy_cost_ = self.planned_cost()
        self.sum_ = self.noisy(total)
        mu = self.privacy_cost_.gaussian_mu
        self.releases_ = (Release("sum", 1.0, self.sigma(), mu),)
        return self

    def transform(self, X):
        return self.validated(X) @ self.sum_[:, None]


class NoisyCounts(ClassifierMixin, NoisySum):
    """Noisy counts of declared classes."""

    def __init__(self, epsilon=1.0, delta=1e-5, random_state=None, classes=(0, 1)):
        super().__init__(epsilon, delta, random_state)
        self.classes = classes

    def fit(self, X, y):
        self.validated(X)
        self.classes_ = self.found(y)
        self.privacy_cost_ = self.planned_cost()
        self.sum_ = self.noisy(np.array([np.sum(y == k) for k in self.classes_], dtype=float))
        return self

    def found(self, y):
        if not np.isin(y, self.classes).all():
            raise ValueError("a label is not among the classes")
        return np.array(self.classes)

    def predict(self, X):
        return np.full(len(X), self.classes_[np.argmax(self.sum_)])


# ---------------------------------------------------------------- costs


class Free(NoisySum):
    def planned_cost(self):
        return PrivacyCost.zero()


class Unstated(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


class PlansLessThanItSpends(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        self.privacy_cost_ = self.privacy_cost_ + self.privacy_cost_
        return self


SPENT: dict[int, PrivacyCost] = {}


class CostsKeptById(NoisySum):
    privacy_cost_ = property(
        lambda self: SPENT.get(id(self), PrivacyCost.zero()),
        lambda self, cost: SPENT.__setitem__(id(self), cost),
    )


class Account:
    def __init__(self):
        self.spent = 0.0


class AccountInTheConstructor(NoisySum):
    def __init__(self, epsilon=1.0, delta=1e-5, account=None):
        super().__init__(epsilon, delta)
        self.account = account

    def fit(self, X, y=None):
        self.account.spent += 1.0
        return super().fit(X)


class CostOfTheLastFitOnly(AccountInTheConstructor):
    def planned_cost(self):
        return PrivacyCost(self.account.spent)

    def fit(self, X, y=None):
        super().fit(X)
        self.privacy_cost_ = PrivacyCost.from_epsilon(self.epsilon, self.delta)
        return self


class RoundsUp(NoisySum):
    def planned_cost(self):
        return PrivacyCost(PrivacyCost.from_epsilon(self.epsilon, self.delta).mu * (1 + 1e-12))


class SharesOfOneAndAHalf(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        half = self.releases_[0]
        self.releases_ = (half, Release("more", 0.5, half.sigma, 0.5 * half.mu))
        return self


class ChargedAtTheEnd(NoisySum):
    def fit(self, X, y=None):
        self.sum_ = self.noisy(self.clipped(self.validated(X)).sum(axis=0))
        self.spread_ = float(np.abs(self.sum_).max())
        self.privacy_cost_ = self.planned_cost()
        return self


# ---------------------------------------------------------------- noise


class FixedNoise(NoisySum):
    def generator(self, total):
        return np.random.default_rng(7)


class KeptGenerator(NoisySum):
    def generator(self, total):
        if not hasattr(self, "_own"):
            self._own = np.random.default_rng()
        return self._own


class CopiedGenerator(KeptGenerator):
    """Copies of a fitted one draw the same."""

    def fit(self, X, y=None):
        self.generator(None)
        return super().fit(X)


class SharedWithItsJobs(NoisySum):
    def __init__(self, epsilon=1.0, delta=1e-5, n_jobs=None):
        super().__init__(epsilon, delta)
        self.n_jobs = n_jobs

    def generator(self, total):
        return np.random.default_rng(3 if self.n_jobs == 2 else None)


class GlobalNoise(NoisySum):
    def generator(self, total):
        return np.random.mtrand


DRAWN = itertools.count()


class CountedInEveryProcess(NoisySum):
    def generator(self, total):
        return np.random.default_rng(next(DRAWN))


DRAWN_IN_ADVANCE = np.random.default_rng()


class SharedAfterAFork(NoisySum):
    def generator(self, total):
        return DRAWN_IN_ADVANCE


class KeptSeed(NoisySum):
    def generator(self, total):
        self.seed_ = int(np.random.default_rng().integers(2**31))
        return np.random.default_rng(self.seed_)


class KeptSeedsOfParts(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        self.parts_ = [NoisySum(random_state=5)]
        return self


class SeedNotSaid(NoisySum):
    def planned_cost(self):
        return PrivacyCost.from_epsilon(self.epsilon, self.delta)


class SeedWithoutTheData(NoisySum):
    def generator(self, total):
        return np.random.default_rng(self.random_state)


class IgnoresEpsilon(NoisySum):
    def sigma(self):
        return 3.7


class RootOfEpsilon(NoisySum):
    def sigma(self):
        return 3.7 / self.epsilon**0.5


class FloatNoise(NoisySum):
    def noisy(self, total):
        return total + self.generator(total).normal(0.0, self.sigma(), total.shape)


# ---------------------------------------------------------------- leaks


class KeepsBounds(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        self.bounds_ = (np.min(X, axis=0), np.max(X, axis=0))
        return self


class ExactWhereTheBoundIsZero(NoisySum):
    """The first column is released with a sensitivity of zero."""

    def noisy(self, total):
        return np.r_[total[:1], super().noisy(total)[1:]]


class KeepsMean(NoisySum):
    def fit(self, X, y=None):
        self.offset_ = {"mean": float(np.mean(X, axis=0)[1])}
        return super().fit(X)


class KeepsCounts(NoisyCounts):
    def fit(self, X, y):
        super().fit(X, y)
        self.n_per_class_ = [int(np.sum(y == k)) for k in self.classes_]
        return self


class KeepsRow(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        self.example_ = np.array(X[4])
        return self


class KeepsLabels(NoisyCounts):
    def fit(self, X, y):
        super().fit(X, y)
        self.labels_ = y
        return self


class KeepsDistances(NoisySum):
    def fit(self, X, y=None):
        super().fit(X)
        self.tree_ = {"leaves": list(self.transform(X).ravel())}
        return self


class ClassesRead(NoisyCounts):
    def found(self, y):
        return np.unique(y)


class OneClassIsAnError(NoisyCounts):
    def found(self, y):
        if len(np.unique(y)) < 2:
            raise ValueError("there is one class only")
        return super().found(y)


class QuotesRows(NoisySum):
    def validated(self, X):
        return check_array(X, accept_sparse=True, dtype=(np.float64, np.float32))


class QuotesLabels(NoisyCounts):
    def found(self, y):
        unknown = set(np.unique(y)) - set(self.classes)
        if unknown:
            raise ValueError(f"unknown labels {unknown}")
        return np.array(self.classes)


# ---------------------------------------------------------------- one record


class NeverClips(NoisySum):
    def clipped(self, X):
        return X.toarray() if issparse(X) else X


class ClipsWithoutScaling(NoisySum):
    """Squares of 1e300 are infinite: their norm says nothing."""

    def clipped(self, X):
        X = (X.toarray() if issparse(X) else X).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt((X**2).sum(axis=1, keepdims=True))
        norms[~np.isfinite(norms)] = 1.0
        return X / np.maximum(norms, 1.0)


class DividesByTheNorms(NoisySum):
    """A huge record makes the noise vanish."""

    def fit(self, X, y=None):
        super().fit(X)
        self.sum_ = self.sum_ / max(1.0, np.abs(X).max())
        return self


class ClipsDenseOnly(NoisySum):
    def clipped(self, X):
        return X.toarray() if issparse(X) else super().clipped(X)


class ClipsDoubleOnly(NoisySum):
    def clipped(self, X):
        return X.astype(np.float64) if X.dtype == np.float32 else super().clipped(X)


class ClipsWithInterceptOnly(NoisySum):
    def clipped(self, X):
        return super().clipped(X) if self.fit_intercept else NeverClips.clipped(self, X)


class Weighted(NoisySum):
    def fit(self, X, y=None, sample_weight=None):
        weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
        self._weights = self.bounded(weights)
        super().fit(X)
        del self._weights
        return self

    def bounded(self, weights):
        return np.minimum(weights, 1.0)

    def clipped(self, X):
        return super().clipped(X) * self._weights[:, None]


class WeightsWithoutBound(Weighted):
    def bounded(self, weights):
        return weights


class NormForItsSquare(NoisySum):
    """The noise is for a norm of 1; rows of norm 100 are summed."""

    def clipped(self, X):
        return 100.0 * super().clipped(X)


class AtOnePrice(NoisySum):
    """Without a parameter epsilon; its cost is larger than those which the checks choose."""

    def __init__(self, mu=1.0):
        self.mu = mu

    def planned_cost(self):
        return PrivacyCost(self.mu)

    def generator(self, total):
        return np.random.default_rng()

    def sigma(self):
        return (1.0 + 2.0**-17) / self.mu


class NeverClipsAtOnePrice(AtOnePrice):
    def clipped(self, X):
        return X.toarray() if issparse(X) else np.asarray(X, np.float64)


class WithPairs(NoisySum):
    """States (epsilon, delta), half of it beside a Gaussian part."""

    def planned_cost(self):
        mu = 0.5 * PrivacyCost.from_epsilon(self.epsilon, self.delta).mu
        return PrivacyCost(mu, epsilon0=0.5 * self.epsilon, delta0=1e-9)

    def sigma(self):
        return 2.0 * super().sigma()


class NeverClipsWithPairs(WithPairs):
    def clipped(self, X):
        return X.toarray() if issparse(X) else np.asarray(X, np.float64)


class DenseOnly(AtOnePrice):
    """Fails on sparse rows in a way of its own."""

    def validated(self, X):
        if issparse(X):
            raise IndexError("tuple index out of range")
        return super().validated(X)


class MostLikely(AtOnePrice):
    """Shows which of two numbers of rows is nearer, for a lot of budget."""

    def __init__(self, epsilon=8.0):
        self.epsilon = epsilon

    def planned_cost(self):
        return PrivacyCost(0.0, epsilon0=self.epsilon)

    def fit(self, X, y=None):
        super().validated(X)
        self.privacy_cost_ = self.planned_cost()
        noisy = len(X) + np.random.default_rng().laplace(0.0, 1.0 / self.epsilon)
        self.near_ = int(noisy > 50.0)
        self.grid_ = np.linspace(0.0, 1.0, 61)  # as many as the records, by chance
        return self

    def transform(self, X):
        return self.validated(X) * self.near_


class GeometricCounts(NoisyCounts):
    """Counts that are nearly always exact, for a lot of budget."""

    def __init__(self, epsilon=8.0, classes=(0, 1)):
        self.epsilon = epsilon
        self.classes = classes

    def planned_cost(self):
        return PrivacyCost(0.0, epsilon0=self.epsilon)

    def noisy(self, total):
        one, other = np.random.default_rng().geometric(1.0 - np.exp(-self.epsilon), (2, len(total)))
        return total + one - other


class Coarse(AtOnePrice):
    """Sure of its answer on either side: allowed at so large a mu."""

    def __init__(self, mu=12.0):
        super().__init__(mu)

    def fit(self, X, y=None):
        super().validated(X)
        self.privacy_cost_ = self.planned_cost()
        total = np.clip(X[:, 0], 0.0, 1.0).sum() - self.halfway
        self.many_ = bool(total + np.random.default_rng().normal() / self.mu > 0.0)
        return self

    def transform(self, X):
        return self.validated(X) * self.many_

    @property
    def halfway(self):
        rows = default_data(self, 0)[0][:-1, 0]
        return np.clip(rows, 0.0, 1.0).sum() + 0.5


CORRECT = [
    (DenseOnly(), "check_clipping_on_every_path"),
    (MostLikely(), "check_noise_is_fresh"),
    (MostLikely(), "check_global_seeds_have_no_effect"),
    (MostLikely(), "check_noise_is_fresh_in_forks"),
    (MostLikely(), "check_no_value_per_record"),
    (GeometricCounts(), "check_no_statistic_in_the_state"),
    (WithPairs(), "check_small_audit"),
    (make_pipeline(NoisySum(), NoisySum()), "check_fit_leaves_the_parameters_alone"),
]

DEFECTS = [
    (Free(), "check_cost_is_stated", "costs nothing"),
    (Unstated(), "check_cost_is_stated", "not finite|states no cost"),
    (PlansLessThanItSpends(), "check_cost_is_stated", "must be equal"),
    (CostsKeptById(), "check_copies_keep_the_cost", "loses the cost"),
    (AccountInTheConstructor(account=Account()), "check_fit_leaves_the_parameters_alone", "accou"),
    (CostOfTheLastFitOnly(account=Account()), "check_searches_are_charged", "three fits"),
    (RoundsUp(), "check_releases_add_up", "safe side"),
    (SharesOfOneAndAHalf(), "check_releases_add_up", "together"),
    (ChargedAtTheEnd(), "check_late_failures_are_charged", "after its releases"),
    (FixedNoise(), "check_noise_is_fresh", "share"),
    (CopiedGenerator(), "check_noise_is_fresh", "share"),
    (SharedWithItsJobs(), "check_noise_is_fresh", "share"),
    (GlobalNoise(), "check_global_seeds_have_no_effect", "global generator"),
    (CountedInEveryProcess(), "check_noise_is_fresh_in_workers", "workers"),
    (SharedAfterAFork(), "check_noise_is_fresh_in_forks", "forks"),
    (GlobalNoise(), "check_noise_is_fresh_in_forks", "forks"),
    (KeptGenerator(), "check_noise_cannot_be_replayed", "tells the noise"),
    (KeptSeed(), "check_noise_cannot_be_replayed", "keeps a seed"),
    (KeptSeedsOfParts(), "check_noise_cannot_be_replayed", "keeps a seed"),
    (SeedNotSaid(), "check_seeds_are_flagged_and_keyed", "does not say so"),
    (SeedWithoutTheData(), "check_seeds_are_flagged_and_keyed", "same noise"),
    (IgnoresEpsilon(), "check_noise_grows_as_epsilon_falls", "does not grow|not\ngrow"),
    (RootOfEpsilon(), "check_noise_grows_as_epsilon_falls", "which of two"),
    (FloatNoise(), "check_releases_lie_on_a_grid", "low bits"),
    (KeepsBounds(), "check_nothing_is_without_noise", "bounds_"),
    (ExactWhereTheBoundIsZero(), "check_nothing_is_without_noise", "sum_"),
    (KeepsBounds(), "check_no_statistic_in_the_state", "exact m"),
    (KeepsMean(), "check_no_statistic_in_the_state", "mean"),
    (KeepsCounts(), "check_no_statistic_in_the_state", "count"),
    (KeepsRow(), "check_no_statistic_in_the_state", "value"),
    (KeepsLabels(), "check_no_value_per_record", "labels_"),
    (KeepsDistances(), "check_no_value_per_record", "leaves"),
    (ClassesRead(), "check_classes_are_declared", "read from"),
    (OneClassIsAnError(), "check_classes_are_declared", "read from"),
    (QuotesRows(), "check_messages_show_no_values", "text in the rows"),
    (QuotesLabels(), "check_messages_show_no_values", "target"),
    (NeverClips(), "check_clipping_on_every_path", "rows of 1e9"),
    (ClipsWithoutScaling(), "check_clipping_on_every_path", "rows of 1e300"),
    (DividesByTheNorms(), "check_clipping_on_every_path", "rows of 1e9"),
    (ClipsDenseOnly(), "check_clipping_on_every_path", "sparse"),
    (ClipsDoubleOnly(), "check_clipping_on_every_path", "float32"),
    (ClipsWithInterceptOnly(), "check_clipping_on_every_path", "no intercept"),
    (WeightsWithoutBound(), "check_clipping_on_every_path", "weight"),
    (NeverClipsAtOnePrice(), "check_clipping_on_every_path", "rows of 1e9"),
    (NeverClipsWithPairs(), "check_clipping_on_every_path", "rows of 1e9"),
    (NormForItsSquare(), "check_small_audit", "refutes"),
    (NeverClipsAtOnePrice(), "check_small_audit", "refutes"),
    (NeverClipsWithPairs(), "check_small_audit", "refutes"),
]


def released(fitted, X, y):
    return fitted.sum_


def run(estimator, name):
    check = next(check for check in CHECKS if check.__name__ == name)
    (test,) = [
        param.values[1]
        for param in parametrize_with_privacy_checks([estimator], released=released).args[1]
        if param.values[1].args[0] is check
    ]
    test(estimator)


@pytest.mark.parametrize(
    ("estimator", "name", "message"),
    DEFECTS,
    ids=[f"{type(d[0]).__name__}-{d[1]}" for d in DEFECTS],
)
def test_the_check_fails_where_its_defect_is(estimator, name, message):
    with pytest.raises(AssertionError, match=message):
        run(estimator, name)


@pytest.mark.parametrize(
    ("estimator", "name"), CORRECT, ids=[f"{type(c[0]).__name__}-{c[1]}" for c in CORRECT]
)
def test_what_is_correct_in_an_unusual_way_passes(estimator, name):
    run(estimator, name)


def test_the_seed_of_a_public_projection_is_no_seed_of_noise():
    pipe = make_pipeline(RBFSampler(n_components=4), AtOnePrice())
    with pytest.raises(SkipTest, match="no release has its noise"):
        run(pipe, "check_seeds_are_flagged_and_keyed")
    hidden = make_pipeline(RBFSampler(n_components=4), SeedNotSaid())
    with pytest.raises(AssertionError, match="does not say so"):
        run(hidden, "check_seeds_are_flagged_and_keyed")


class AlwaysFails(AtOnePrice):
    def fit(self, X, y=None):
        raise AttributeError("a mistake")


@pytest.mark.parametrize("name", ["check_small_audit", "check_clipping_on_every_path"])
def test_a_mistake_is_not_taken_for_the_refusal_of_a_record(name):
    with pytest.raises(AttributeError, match="a mistake"):
        run(AlwaysFails(), name)


def test_what_nobody_can_tell_is_skipped():
    for name in ("check_small_audit", "check_clipping_on_every_path"):
        with pytest.raises(SkipTest, match="no audit of 2000 fits"):
            run(NeverClipsAtOnePrice(mu=3.0), name)
    with pytest.raises(SkipTest, match="many_ may have no noise, or be sure"):
        run(Coarse(), "check_nothing_is_without_noise")


def test_every_check_is_shown_to_fail_and_is_on_the_page():
    assert {name for _, name, _ in DEFECTS} == set(NAMES)
    page = (Path(__file__).parents[1] / "docs" / "trust.rst").read_text("utf-8")
    assert re.findall(r"^``(check_\w+)``  ", page, re.MULTILINE) == NAMES


@parametrize_with_privacy_checks([NoisySum(), NoisyCounts(), Weighted()], released=released)
def test_private_estimators_pass(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- all of skdp

QUICK = ["DPMinMaxScaler", "DPStandardScaler"]


def data_for(estimator):
    name = type(estimator).__name__
    return registry.rows_for(registry.Entry(name, "declared", estimator), 61)


def estimators(names):
    return [registry.declared(name).estimator for name in names]


@parametrize_with_privacy_checks(estimators(QUICK), data=data_for)
def test_skdp_passes(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_privacy_checks(
    estimators(sorted(set(registry.CLASSES) - set(QUICK))), data=data_for
)
def test_all_of_skdp_passes(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- how they are run


def test_results_are_listed_and_expected_failures_told_apart():
    expected = {"check_messages_show_no_values": "scikit-learn's own message"}
    found = check_estimator_privacy(
        QuotesRows(), expected_failed_checks=expected, released=released, n_runs=40
    )
    assert [result.check_name for result in found] == NAMES
    status = {result.check_name: result.status for result in found}
    assert status.pop("check_messages_show_no_values") == "xfail"
    assert set(status.values()) == {"passed"}
    with pytest.raises(AssertionError, match="a text in the rows"):
        check_estimator_privacy(QuotesRows(), n_runs=40)
    found = check_estimator_privacy(KeepsLabels(), on_fail=None, n_runs=40)
    failed = [result for result in found if result.status == "failed"]
    assert "check_no_value_per_record" in [result.check_name for result in failed]
    assert all(result.reason and result.exception is not None for result in failed)


def test_expected_failures_are_marked():
    reasons = {"check_small_audit": "why"}
    mark = parametrize_with_privacy_checks(
        [DPRidge()], expected_failed_checks=lambda estimator: reasons
    )
    marked = {
        param.id.rpartition("-")[2]: param.marks[0].kwargs for param in mark.args[1] if param.marks
    }
    assert marked == {"check_small_audit": {"reason": "why"}}


def test_senseless_parameters_are_refused():
    with pytest.raises(TypeError, match="instance"):
        parametrize_with_privacy_checks([NoisySum])
    with pytest.raises(TypeError, match="instance"):
        check_estimator_privacy(NoisySum)
    with pytest.raises(ValueError, match="on_fail"):
        check_estimator_privacy(NoisySum(), on_fail="warn")
    with pytest.raises(ValueError, match="no checks"):
        check_estimator_privacy(NoisySum(), expected_failed_checks={"check_that": "why"})
