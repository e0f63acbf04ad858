"""`privacy_report`: the numbers are those of the costs, the remarks those that matter."""

import dataclasses
import json
import math
import re
import sys

import numpy as np
import pytest
from private_centre import PrivateCentre
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp import (
    DPLogisticRegression,
    DPStandardScaler,
    GaussianMechanism,
    PrivacyBudget,
    PrivacyCost,
    PrivacyReport,
    privacy_cost,
    privacy_report,
)

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")


def clf(**params):
    return DPLogisticRegression(**{"epsilon": 1.0, "classes": [0, 1], **params})


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def fitted(data):
    return make_pipeline(Normalizer(), DPStandardScaler(), clf(epsilon=2.0)).fit(*data)


def test_steps_add_up_to_the_total(data):
    search = GridSearchCV(clf(), {"C": [1, 2]}, cv=KFold(3))
    for obj in (
        make_pipeline(PrivateCentre(), VotingClassifier([("a", search), ("b", clf())])),
        make_pipeline(PrivateCentre(2.0), search),
        PrivacyBudget(make_pipeline(PrivateCentre(), search), epsilon=3.0),
        PrivacyBudget(PrivacyBudget(make_pipeline(PrivateCentre(), clf()), epsilon=3.0)),
    ):
        reports = [privacy_report(obj)]
        reports.append(privacy_report(obj.fit(*data)))
        assert [report.is_fitted for report in reports] == [False, True]
        for report in reports:
            assert report.total == privacy_cost(obj)
            again = PrivacyCost.compose(step.cost for step in report.steps)
            assert again.mu == pytest.approx(report.total.mu, rel=1e-12)
            assert report.total.covers(again)
            assert sum(step.share for step in report.steps) == pytest.approx(1.0, rel=1e-12)


def test_releases_add_up_to_their_step(fitted):
    report = privacy_report(fitted)
    _, scaler, model = report.steps
    assert [step.path for step in report.steps] == [
        "normalizer",
        "dpstandardscaler",
        "dplogisticregression",
    ]
    for step, estimator in ((scaler, fitted[1]), (model, fitted[2])):
        assert sum(release.count for release in step.releases) == len(estimator.releases_)
        assert {(r.name, r.sigma, r.mu) for r in step.releases} == {
            (r.name, r.sigma, r.mu) for r in estimator.releases_
        }
        parts = [PrivacyCost(r.mu) for r in step.releases for _ in range(r.count)]
        assert PrivacyCost.compose(parts).mu == pytest.approx(step.cost.mu, rel=1e-9)
        assert sum(r.share for r in step.releases) == pytest.approx(step.share, rel=1e-9)
        for release in step.releases:
            assert release.sigma == pytest.approx(release.sensitivity / release.mu, rel=1e-9)
            assert release.epsilon <= step.epsilon
    assert report.steps[0].releases == ()


def test_fits_of_training_sets_are_counted_and_leave_no_releases(data):
    search = GridSearchCV(clf(), {"C": [1, 2]}, cv=KFold(3)).fit(*data)
    of_folds, refit = privacy_report(search).steps
    assert (of_folds.fits, of_folds.releases) == (4, ())
    assert refit.fits == 1 and refit.releases
    assert of_folds.cost == PrivacyCost.compose([refit.cost] * 4)


def test_delta_can_be_chosen(fitted):
    report = privacy_report(fitted, delta=1e-9)
    assert (report.delta, report.epsilon) == (1e-9, privacy_cost(fitted).epsilon(1e-9))
    assert report.steps[1].epsilon == report.steps[1].cost.epsilon(1e-9)
    for bad in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="delta"):
            privacy_report(fitted, delta=bad)


def test_counts_reach_the_rules():
    report = privacy_report(OneVsRestClassifier(clf()), n_classes=4)
    assert report.steps[0].fits == 4
    with pytest.raises(ValueError, match="n_classes"):
        privacy_report(OneVsRestClassifier(clf()))
    budget = PrivacyBudget(OneVsRestClassifier(clf()), n_classes=4)
    for obj, outside in ((budget, {}), (budget, {"n_classes": 2}), (PrivacyBudget(budget), {})):
        report = privacy_report(obj, **outside)
        assert report.steps[0].fits == 4
        assert report.total == privacy_cost(budget)


def test_what_is_not_covered_public_and_seeded_is_told_apart():
    obj = make_pipeline(StandardScaler(), VotingClassifier([("a", clf(random_state=0))]))
    report = privacy_report(obj)
    assert report.is_seeded and not report.total.is_finite
    (reason,) = report.not_covered
    assert "StandardScaler learns" in reason and "use DPStandardScaler" in reason
    (text,) = report.public
    assert "classes that VotingClassifier reads" in text
    assert all(step.share is None for step in report.steps)
    printed = str(report)
    for line in ("no privacy (epsilon is infinite)", "Not covered:", "Taken as public", "Seeded:"):
        assert line in printed
    assert privacy_report(clf(random_state=0)).public == ()  # told under its own heading
    assert not privacy_report(clf()).is_seeded
    assert privacy_report(clf(epsilon=math.inf)).not_covered


def test_a_pair_is_shown():
    report = privacy_report(BaggingClassifier(clf(), n_estimators=2))
    assert report.steps[-1].estimator == ""
    assert "Gaussian part mu" in str(report) and "delta0 9.09e-13" in str(report)


def test_it_prints_as_a_table(fitted):
    report = privacy_report(fitted)
    lines = str(report).splitlines()
    assert lines[0].startswith("Pipeline, fitted: epsilon 2.3 at delta 1e-05, mu 0.569")
    assert lines[2].split() == ["step", "estimator", "fits", "mu", "epsilon", "share"]
    assert repr(report) == str(report)
    assert any(re.match(r"  gradient +Gaussian +\d+ ", line) for line in lines)
    assert "(itself)" in str(privacy_report(clf()))
    assert "unit 'person'" in str(privacy_report(Person()))


class Person(PrivateCentre):
    def planned_cost(self):
        return PrivacyCost(0.1, unit="person")


def test_html_escapes_all_text(fitted):
    report = privacy_report(fitted)
    html = report._repr_html_()
    assert html.count("<table>") == 3 == html.count("</table>")
    sly = dataclasses.replace(report, public=("<script>",), title="<b>")
    assert "<script>" not in sly._repr_html_() and "&lt;script&gt;" in sly._repr_html_()


def test_it_becomes_plain_values_and_a_frame(fitted):
    report = privacy_report(fitted)
    found = json.loads(json.dumps(report.to_dict()))
    assert found["epsilon"] == report.epsilon
    assert found["total"]["gaussian_mu"] == report.total.mu
    assert found["steps"][1]["cost"]["gaussian_mu"] == report.steps[1].cost.mu
    assert found["steps"][2]["releases"][-1]["sigma"] == report.steps[2].releases[-1].sigma
    frame = report.to_frame()
    assert len(frame) == 1 + sum(len(step.releases) for step in report.steps)
    assert frame["share"].sum() == pytest.approx(1.0, rel=1e-9)
    assert frame.loc[0, "step"] == "normalizer"


def test_a_frame_needs_pandas(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        privacy_report(fitted).to_frame()


def test_it_is_a_frozen_value(fitted):
    report = privacy_report(fitted)
    assert isinstance(report, PrivacyReport) and report == privacy_report(fitted)
    with pytest.raises(AttributeError):
        report.epsilon = 0.0


def test_a_mechanism_reports_every_call(data):
    mechanism = GaussianMechanism().fit(data[0])
    mechanism.transform(data[0])
    mechanism.transform(data[0])
    (step,) = privacy_report(mechanism).steps
    assert sum(release.count for release in step.releases) == 2
