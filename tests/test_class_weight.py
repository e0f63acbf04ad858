"""Weights of classes: what they mean, what they cost."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC

from skdp import DPLinearSVC, DPLogisticRegression, non_private
from skdp.losses import ClassWeightedLoss, LogisticLoss, SoftmaxLoss

CLASSIFIERS = [DPLogisticRegression, DPLinearSVC]


def problem(n=20_000, seed=0):
    """A fifth of the labels is 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ [1.0, -0.5, 0.0] + rng.normal(size=n) > 1.3).astype(int)


def test_residuals_are_weighted_and_keep_their_bound():
    z = np.linspace(-4, 4, 40)
    codes = (np.arange(40) % 2).astype(np.uint8)
    loss = ClassWeightedLoss(LogisticLoss(), np.array([0.5, 3.0]))
    plain = LogisticLoss().residual(z, codes)
    assert np.allclose(loss.unit * loss.residual(z, codes), plain * np.where(codes, 3.0, 0.5))
    assert np.abs(loss.residual(z, codes)).max() <= loss.residual_bound == 1.0
    assert (loss.rule, loss.zero_sum) == ("logistic", False)
    assert np.array_equal(loss.inverse_link(z), LogisticLoss().inverse_link(z))
    several = ClassWeightedLoss(SoftmaxLoss(), np.array([1.0, 2.0, 0.0]))
    codes = (np.arange(40) % 3).astype(np.uint8)
    residual = several.residual(np.column_stack([z, -z, z / 2]), codes)
    assert np.allclose(residual.sum(axis=1), 0.0) and several.zero_sum
    assert np.all(residual[codes == 2] == 0.0)


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
