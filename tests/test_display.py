"""`PrivacyUtilityDisplay`."""

import math
import sys

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from skdp import DPLogisticRegression, PrivacyBudget, PrivacyCost, PrivacyUtilityDisplay
from skdp.model_selection import PrivacyUtilityCurve

matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def curve(**changes):
    fields = {
        "epsilons": np.array([1.0, 0.1, 10.0]),
        "test_scores": np.arange(12.0).reshape(3, 2, 2),
        "baseline_scores": np.array([20.0, 22.0]),
        "costs": tuple(PrivacyCost.from_epsilon(e, 1e-6) for e in (1.0, 0.1, 10.0)),
        "delta": 1e-6,
        "scoring": None,
    }
    return PrivacyUtilityCurve(**{**fields, **changes})


def clf():
    return DPLogisticRegression(classes=[0, 1])


def data(n=120):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_a_curve_is_drawn():
    display = PrivacyUtilityDisplay.from_curve(curve(), name="Model")
    x, mean = display.line_.get_data()
    assert list(x) == [0.1, 1.0, 10.0]  # sorted
    assert list(mean) == [5.5, 1.5, 9.5]
    spread = np.std([0, 1, 2, 3])
    band = display.fill_between_.get_paths()[0].vertices
    assert np.isclose(band[:, 1].min(), 1.5 - spread) and np.isclose(band[:, 1].max(), 9.5 + spread)
    assert list(display.baseline_.get_ydata()) == [21.0, 21.0]
    assert display.baseline_.get_linestyle() == "--"
    assert display.baseline_.get_color() == "0.5"
    assert display.errorbar_ is None
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "epsilon (delta=1e-06)"
    assert display.ax_.get_ylabel() == "Score"
    assert texts(display) == ["Model", "Model, non-private"]
    assert display.figure_ is display.ax_.figure


def test_error_bars_or_nothing_instead_of_the_band():
    display = PrivacyUtilityDisplay.from_curve(curve(), std_display_style="errorbar")
    assert display.line_ is None and display.fill_between_ is None
    assert list(display.errorbar_.lines[0].get_ydata()) == [5.5, 1.5, 9.5]
    display.plot(std_display_style=None)
    assert display.fill_between_ is None and display.errorbar_ is None
    assert display.line_ is not None
    with pytest.raises(ValueError, match="std_display_style"):
        display.plot(std_display_style="band")


def test_several_curves_on_given_axes():
    _, ax = plt.subplots()
    first = PrivacyUtilityDisplay.from_curve(curve(), ax=ax, name="A")
    second = PrivacyUtilityDisplay.from_curve(curve(baseline_scores=None), ax=ax, name="B")
    assert first.ax_ is second.ax_ is ax
    assert second.baseline_ is None
    assert texts(second) == ["A", "A, non-private", "B"]
    assert first.line_.get_color() != second.line_.get_color()


def test_keyword_arguments_reach_matplotlib():
    display = PrivacyUtilityDisplay.from_curve(
        curve(),
        line_kw={"color": "red", "label": "mine"},
        fill_between_kw={"alpha": 0.1},
        baseline_kw={"linestyle": ":", "color": "black", "label": "other"},
    )
    assert display.line_.get_color() == "red"
    assert display.fill_between_.get_alpha() == 0.1
    assert (display.baseline_.get_linestyle(), display.baseline_.get_color()) == (":", "black")
    assert texts(display) == ["mine", "other"]
    bars = display.plot(std_display_style="errorbar", errorbar_kw={"color": "green"})
    assert bars.errorbar_.lines[0].get_color() == "green"


@pytest.mark.parametrize(
    ("scoring", "negate", "given", "label"),
    [
        (None, False, None, "Score"),
        (None, True, None, "Negative score"),
        ("roc_auc", False, None, "Roc auc"),
        ("neg_log_loss", False, None, "Negative log loss"),
        ("neg_log_loss", True, None, "Log loss"),
        ("r2", True, None, "Negative r2"),
        (len, False, None, "Len"),
        (make_scorer(mean_squared_error), False, None, "Score"),
        ("r2", False, "Skill", "Skill"),
    ],
)
def test_score_labels(scoring, negate, given, label):
    display = PrivacyUtilityDisplay.from_curve(
        curve(scoring=scoring), negate_score=negate, score_name=given
    )
    assert display.ax_.get_ylabel() == label
    assert display.line_.get_ydata()[0] == (-5.5 if negate else 5.5)
    assert display.baseline_.get_ydata()[0] == (-21.0 if negate else 21.0)


def test_plot_can_rename():
    display = PrivacyUtilityDisplay.from_curve(curve()).plot(score_name="Skill", name="Other")
    assert display.ax_.get_ylabel() == "Skill"
    assert texts(display)[0] == "Other"


def test_from_estimator():
    X, y = data()
    pipeline = Pipeline([("n", Normalizer()), ("m", clf())])
    display = PrivacyUtilityDisplay.from_estimator(
        pipeline, X, y, epsilons=[0.1, 10.0], cv=2, n_repeats=2, scoring="roc_auc", random_state=0
    )
    assert display.test_scores.shape == (2, 2, 2)
    assert display.baseline_scores.shape == (2,)
    assert texts(display) == ["private", "non-private"]
    assert display.ax_.get_ylabel() == "Roc auc"


# ---- results of a search ----


def search(estimator, grid, **params):
    X, y = data()
    return GridSearchCV(estimator, grid, cv=KFold(3), **params).fit(X, y)


def test_from_cv_results():
    fitted = search(clf(), {"epsilon": [10.0, 0.1, math.inf]})
    display = PrivacyUtilityDisplay.from_cv_results(fitted)
    assert list(display.epsilons) == [0.1, 10.0]
    results = fitted.cv_results_
    np.testing.assert_allclose(display.line_.get_ydata(), results["mean_test_score"][[1, 0]])
    assert np.isclose(display.baseline_.get_ydata()[0], results["mean_test_score"][2])
    assert display.ax_.get_xlabel() == "epsilon"
    assert texts(display) == ["private", "non-private"]
    assert display.ax_.get_ylabel() == "Accuracy"


def test_the_best_of_other_parameters_is_drawn():
    fitted = search(
        Pipeline([("m", clf())]),
        {"m__epsilon": [1.0, PrivacyCost.from_epsilon(5.0, 1e-5)], "m__C": [0.01, 1.0]},
        scoring=["accuracy", "roc_auc"],
        refit=False,
    )
    display = PrivacyUtilityDisplay.from_cv_results(fitted, metric="roc_auc", name="P")
    np.testing.assert_allclose(display.epsilons, [1.0, 5.0])
    best = fitted.cv_results_["mean_test_roc_auc"].reshape(2, 2).max(axis=0)  # m__C varies slowest
    np.testing.assert_allclose(display.line_.get_ydata(), best)
    assert display.ax_.get_xlabel() == "m__epsilon"
    assert display.ax_.get_ylabel() == "Roc auc"
    with pytest.raises(ValueError, match="no scores called 'score'"):
        PrivacyUtilityDisplay.from_cv_results(fitted)


def test_which_epsilon_must_be_clear():
    fitted = search(
        PrivacyBudget(clf()), {"epsilon": [1.0, 2.0], "estimator__epsilon": [1.0]}, refit=False
    )
    with pytest.raises(ValueError, match="say which one in param_name"):
        PrivacyUtilityDisplay.from_cv_results(fitted)
    display = PrivacyUtilityDisplay.from_cv_results(fitted, param_name="epsilon")
    assert list(display.epsilons) == [1.0, 2.0]
    with pytest.raises(ValueError, match="did not vary 'delta'"):
        PrivacyUtilityDisplay.from_cv_results(fitted, param_name="delta")
    with pytest.raises(ValueError, match="varied no epsilon"):
        PrivacyUtilityDisplay.from_cv_results(search(clf(), {"C": [1.0]}))
    with pytest.raises(ValueError, match="no finite value"):
        PrivacyUtilityDisplay.from_cv_results(search(clf(), {"epsilon": [math.inf]}))
    with pytest.raises(NotFittedError):
        PrivacyUtilityDisplay.from_cv_results(GridSearchCV(clf(), {"epsilon": [1.0]}))


def test_matplotlib_is_asked_for_when_missing(monkeypatch):
    display = PrivacyUtilityDisplay(epsilons=np.ones(1), test_scores=np.ones((1, 1, 1)))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for action in (
        display.plot,
        lambda: PrivacyUtilityDisplay.from_estimator(clf(), None, None, epsilons=[1.0]),
        lambda: PrivacyUtilityDisplay.from_cv_results(None),
    ):
        with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'skdp\[plots\]'"):
            action()


def test_ticks_are_plain_numbers_and_labels_say_what_is_private():
    display = PrivacyUtilityDisplay.from_curve(curve(score_name="accuracy"))
    display.figure_.canvas.draw()
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert {"0.1", "1", "10"} <= set(ticks) and not any("$" in text for text in ticks)
    assert texts(display) == ["private", "non-private"]
    assert display.ax_.get_ylabel() == "Accuracy"
    narrow = PrivacyUtilityDisplay.from_curve(curve(epsilons=np.array([1.0, 2.0, 4.0])))
    narrow.figure_.canvas.draw()
    between = [label.get_text() for label in narrow.ax_.get_xticklabels(minor=True)]
    assert {"2", "3", "4"} <= set(between)
