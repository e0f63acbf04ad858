"""Rules for what chooses: features, thresholds, calibrations, labels."""

from collections.abc import Iterator
from functools import partial
from math import ceil
from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp.accounting import PrivacyCost
from skdp.cost._core import Fit, register_cost_rule, unfitted
from skdp.cost._facts import declared

__all__ = ["register"]

# Reads labels or scores without noise, and keeps what it read: why, and what to use.
_NOT_PRIVATE = {
    CalibratedClassifierCV: (
        "fits its calibration to labels without noise; use a private classifier that has "
        "predict_proba, such as DPLogisticRegression"
    ),
    RFECV: "chooses the number of features by scores without noise; use RFE with a given number",
    SelfTrainingClassifier: (
        "picks records, and decides when to stop, without noise; use a private classifier on the "
        "records that have labels"
    ),
    SequentialFeatureSelector: (
        "chooses features by scores without noise; use SelectFromModel over a private estimator"
    ),
    TunedThresholdClassifierCV: (
        "chooses its threshold by scores without noise; use FixedThresholdClassifier"
    ),
}


def register() -> None:
    """Register the rules of this module."""
    for cls, why in _NOT_PRIVATE.items():
        register_cost_rule(cls, partial(_not_private, why))
    register_cost_rule(FixedThresholdClassifier, _fixed_threshold)
    register_cost_rule(RFE, _rfe)
    register_cost_rule(SelectFromModel, _select_from_model)


def _not_private(why: str, obj: Any) -> PrivacyCost:
    return PrivacyCost.infinite(f"{type(obj).__name__} {why}")


def _fixed_threshold(obj: Any) -> Iterator[Fit]:
    fitted = getattr(obj, "estimator_", None)
    yield Fit("estimator", unfitted(obj.estimator) if fitted is None else fitted)


def _select_from_model(obj: Any) -> Iterator[Fit]:
    """The choice is made from released coefficients."""
    held = getattr(obj, "estimator_", obj.estimator if obj.prefit else None)
    yield Fit("estimator", unfitted(obj.estimator) if held is None else held)
    if callable(obj.max_features):
        yield Fit("", PrivacyCost.infinite("`max_features` of SelectFromModel is shown X; set it"))


def _rfe(obj: Any) -> Iterator[Fit]:
    """Features are dropped by released coefficients: only the number of fits counts."""
    fitted = getattr(obj, "estimator_", None)
    if fitted is not None:
        # Every elimination has left a rank; its model was a clone of the last one.
        if eliminations := int(max(obj.ranking_)) - 1:
            yield Fit("estimator", clone(fitted), eliminations)
        yield Fit("estimator", fitted)
        return
    n_features = declared("n_features", obj)
    chosen = obj.n_features_to_select
    if chosen is None:
        chosen = n_features // 2
    elif not isinstance(chosen, Integral):
        chosen = int(n_features * chosen)
    step = int(max(1, obj.step * n_features)) if 0.0 < obj.step < 1.0 else int(obj.step)
    eliminations = ceil(max(0, n_features - chosen) / step)
    yield Fit("estimator", unfitted(obj.estimator), eliminations + 1)
