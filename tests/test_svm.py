"""Support vector machines: the losses, the twins."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from skdp import DPLinearSVC
from skdp.losses import SmoothHingeLoss


def test_the_hinge_is_half_its_square_and_then_a_line():
    margin = np.array([-50.0, -1e-9, 0.25, 0.5, 1.0, 1.5, 1e9])
    want = -np.clip(1.0 - margin, 0.0, 1.0)
    loss = SmoothHingeLoss()
    assert np.allclose(loss.residual(margin, np.ones(7, dtype=np.uint8)), want)
    assert np.allclose(loss.residual(-margin, np.zeros(7, dtype=np.uint8)), -want)


def test_several_outputs_are_one_against_the_rest():
    generator = np.random.default_rng(0)
    predictor = generator.normal(size=(50, 4))
    target = generator.integers(0, 4, 50).astype(np.uint8)
    loss = SmoothHingeLoss(4)
    joint = loss.residual(predictor, target)
    for k in range(4):
        alone = SmoothHingeLoss().residual(predictor[:, k], (target == k).astype(np.uint8))
        assert np.array_equal(joint[:, k], alone)
    assert np.linalg.norm(joint, axis=1).max() <= loss.residual_bound == 2.0


@pytest.mark.parametrize("label", [0, 1])
def test_the_residual_is_a_derivative_with_the_stated_slope(label):
    z = np.linspace(-3, 3, 601)
    residual = SmoothHingeLoss().residual(z, np.full(601, label, dtype=np.uint8))
    slopes = np.diff(residual) / np.diff(z)
    assert slopes.min() >= -1e-9 and slopes.max() == pytest.approx(SmoothHingeLoss.curvature)


def test_it_ranks_nearly_as_well_as_the_twin():
    # At epsilon = 3 the AUC is .99 with a standard deviation of about .003.
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = DPLinearSVC(epsilon=3.0, classes=[0, 1]).fit(X, y)
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    assert model.coef_.shape == (1, 30) and model.intercept_.shape == (1,)


def test_classes_are_learned_jointly():
    X, y = load_digits(return_X_y=True)
    X = scale(X)
    model = DPLinearSVC(epsilon=3.0, classes=range(10)).fit(X, y)
    assert model.score(X, y) > 0.88  # .94, a standard deviation of .01
    assert model.coef_.shape == (10, 64)
    gradient = next(r for r in model.plan_.releases if r.name == "gradient")
    assert gradient.sensitivity == model.plan_.settings["clip_norm"]


def test_with_much_data_it_is_the_optimum_of_the_smoothed_hinge():
    # No margin of the optimum is negative here, so the line plays no part and the twin's
    # optimum is ours, up to its penalty of the intercept.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2))
    y = (X @ [1.0, -0.5] + 0.3 * rng.normal(size=40_000) > 0).astype(int)
    model = DPLinearSVC(epsilon=50.0, classes=[0, 1], C=1e-4).fit(X, y)
    twin = LinearSVC(C=1e-4).fit(X, y)
    assert (np.abs(twin.decision_function(X)).max() > 1.0) and np.allclose(
        model.coef_, twin.coef_, atol=0.08
    )


def test_without_privacy_the_twin_is_copied_and_absent_classes_are_never_chosen():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = DPLinearSVC(np.inf, classes=[0, 1, 2]).fit(X, y)
    twin = LinearSVC().fit(X, y)
    assert np.array_equal(model.predict(X), twin.predict(X))
    assert model.decision_function(X)[:, 2].max() < -100
    one = DPLinearSVC(np.inf, classes=[0, 1]).fit(X, np.zeros(len(X), int))
    assert np.all(one.predict(X) == 0)
