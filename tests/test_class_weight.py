"""Weights of classes: what they mean, what they cost."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from skdp import DPLinearSVC, DPLogisticRegression, non_private

CLASSIFIERS = [DPLogisticRegression, DPLinearSVC]


def problem(n=20_000, seed=0):
    """A fifth of the labels is 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ [1.0, -0.5, 0.0] + rng.normal(size=n) > 1.3).astype(int)


def test_weights_of_classes_and_of_records_multiply():
    # Noise is about 1e-3 at this epsilon.
    X, y = problem(4000)
    rng = np.random.default_rng(1)
    weights = np.where(X[:, 1] > 0, 2.0, rng.integers(0, 2, 4000))
    classes = {0: 0.5, 1: 3.0}
    for cls in CLASSIFIERS:
        settings = {"classes": [0, 1], "clip_norm": 2.0, "max_iter": 40}
        both = cls(1e4, class_weight=classes, max_sample_weight=2.0, **settings)
        both.fit(X, y, sample_weight=weights)
        product = weights * np.where(y == 1, 3.0, 0.5)
        one = cls(1e4, max_sample_weight=6.0, **settings).fit(X, y, sample_weight=product)
        assert np.allclose(both.coef_, one.coef_, atol=0.01)
        assert np.allclose(both.intercept_, one.intercept_, atol=0.01)
        plain = cls(1e4, class_weight=classes, **settings).fit(X, y)
        assert np.abs(both.coef_ - plain.coef_).max() > 0.03


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("class_weight", ["balanced", {1: 6.0}, {0: 0.1, 1: 2.0}])
def test_weights_mean_what_they_do_in_the_twin(cls, class_weight):
    # Intercepts differ by .02 or so from noise and clipping; the weights move them by 1.
    X, y = problem()
    model = cls(epsilon=5.0, classes=[0, 1], class_weight=class_weight).fit(X, y)
    twin = model.make_non_private().fit(X, y)
    plain = cls(epsilon=5.0, classes=[0, 1]).fit(X, y)
    moved = abs(twin.intercept_[0] - plain.intercept_[0])
    assert moved > 0.3
    assert abs(model.intercept_[0] - twin.intercept_[0]) < 0.35 * moved
    assert np.mean(model.predict(X) == twin.predict(X)) > 0.95


def test_labels_of_any_kind_have_weights():
    X, y = problem(4000)
    names = np.array(["no", "yes"])[y]
    model = DPLogisticRegression(3.0, classes=["no", "yes"], class_weight={"yes": 50.0})
    assert np.mean(model.fit(X, names).predict(X) == "yes") > 0.5
    exact = DPLogisticRegression(np.inf, classes=["no", "yes"], class_weight={"yes": 50.0})
    twin = LogisticRegression(class_weight={"yes": 50.0}).fit(X, names)
    assert np.array_equal(exact.fit(X, names).coef_, twin.coef_)
    balanced = DPLinearSVC(np.inf, class_weight="balanced", classes=[0, 1]).fit(X, y)
    assert np.array_equal(balanced.coef_, LinearSVC(class_weight="balanced").fit(X, y).coef_)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0}])
def test_the_counts_are_charged(class_weight):
    plan = DPLogisticRegression(class_weight=class_weight).plan(1000, 3)
    counts = next(r for r in plan.releases if r.name == "class counts")
    assert 0.02 < counts.mu**2 / plan.budget.mu**2 < 0.04
    assert plan.budget.covers(plan.cost)
    assert "class counts" not in [r.name for r in DPLogisticRegression().plan(1000, 3).releases]


def test_a_class_that_does_not_occur_has_a_finite_weight():
    X, y = problem(2000)
    for labels in (y, np.zeros_like(y)):
        model = DPLogisticRegression(classes=[0, 1, 2], class_weight="balanced").fit(X, labels)
        assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()


def test_labels_that_are_no_classes_are_refused():
    X, y = problem(100)
    with pytest.raises(ValueError, match="class_weight has 1 labels"):
        DPLogisticRegression(classes=[0, 1], class_weight={0: 1.0, 5: 2.0}).fit(X, y)
    with pytest.raises(ValueError, match="zero for every class"):
        DPLogisticRegression(classes=[0, 1], class_weight={0: 0.0, 1: 0.0}).fit(X, y)


@pytest.mark.parametrize("rate", [0.01, 0.05])
def test_a_direction_of_the_rare_class_alone_does_not_diverge(rate):
    # A feature that varies in the rare class only has its curvature times the largest weight.
    rng = np.random.default_rng(0)
    y = (rng.random(40_000) < rate).astype(int)
    X = rng.normal(size=(40_000, 3))
    X[:, 0] += y
    X[:, 1] *= np.where(y == 1, 1.0, 0.05)
    model = DPLogisticRegression(10.0, classes=[0, 1], class_weight="balanced").fit(X, y)
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    twin = non_private(model).fit(X, y)
    mine, theirs = (log_loss(y, m.predict_proba(X), sample_weight=weights) for m in (model, twin))
    assert mine < theirs + 0.1
