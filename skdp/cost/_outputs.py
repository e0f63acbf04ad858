"""Rules for what fits one model per class, pair of classes, code bit or output."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)

from skdp.cost._core import Fit, privacy_cost, register_cost_rule, stated, unfitted
from skdp.cost._ensembles import classes_are_public
from skdp.cost._facts import declared
from skdp.cost._largest import costliest
from skdp.cost._later import releases_later
from skdp.cost._search import repeats_rows, training_sets_per_record

__all__ = ["register"]


def register() -> None:
    """Register the rules of this module."""
    register_cost_rule(OneVsRestClassifier, _one_vs_rest)
    register_cost_rule(OneVsOneClassifier, _one_vs_one)
    register_cost_rule(OutputCodeClassifier, _output_code)
    for cls in (MultiOutputClassifier, MultiOutputRegressor):
        register_cost_rule(cls, _one_per_output)
    for cls in (ClassifierChain, RegressorChain):
        register_cost_rule(cls, _chain)


def _one_vs_rest(obj: Any) -> Iterator[Fit]:
    """Every record is in the training set of every class.

    Two classes share one model, but two labels of an indicator do not: a plan allows for both.
    """
    fitted = getattr(obj, "estimators_", None)
    if fitted is None:
        yield Fit("estimator", unfitted(obj.estimator), declared("n_classes", obj))
    else:
        for estimator in fitted:
            yield Fit("estimator", estimator)
    yield classes_are_public(obj)


def _one_vs_one(obj: Any) -> Iterator[Fit]:
    """Parts of the data that the labels define: a record is in those of the pairs of its class.

    Replaced by one of another class, it also moves: the pairs of either class see a change.
    """
    fitted = getattr(obj, "estimators_", None)
    n_classes = declared("n_classes", obj) if fitted is None else len(obj.classes_)
    estimator = unfitted(obj.estimator) if fitted is None else costliest(fitted)
    replaced = privacy_cost(estimator).neighboring == "replace"
    times = 2 * n_classes - 3 if replaced else n_classes - 1
    if releases_later(*(fitted or [estimator])):  # of all pairs, whatever the class
        times = n_classes * (n_classes - 1) // 2
    yield Fit("estimator", estimator, times)
    yield classes_are_public(obj)
    yield stated("the number of records in every class is taken as public by OneVsOneClassifier")


def _output_code(obj: Any) -> Iterator[Fit]:
    fitted = getattr(obj, "estimators_", None)
    if fitted is None:
        yield Fit(
            "estimator", unfitted(obj.estimator), int(declared("n_classes", obj) * obj.code_size)
        )
    else:
        for estimator, bits in zip(fitted, np.asarray(obj.code_book_).T, strict=True):
            if np.ptp(bits) > 0:  # else there was nothing to learn: the same code for all classes
                yield Fit("estimator", estimator)
    yield classes_are_public(obj)


def _one_per_output(obj: Any) -> Iterator[Fit]:
    fitted = getattr(obj, "estimators_", None)
    if fitted is None:
        yield Fit("estimator", unfitted(obj.estimator), declared("n_outputs", obj))
        return
    for estimator in fitted:
        yield Fit("estimator", estimator)


def _chain(obj: Any) -> Iterator[Fit]:
    """One model per output; with `cv`, all but the last are fitted on training sets too."""
    # Older versions of scikit-learn know the estimator by another name as well.
    name = "base_estimator" if obj.estimator is None else "estimator"
    estimator = getattr(obj, name)
    fitted = getattr(obj, "estimators_", None)
    n_outputs = declared("n_outputs", obj) if fitted is None else len(fitted)
    if obj.cv is not None and n_outputs > 1:
        fits, notes = training_sets_per_record(obj.cv, classifier=is_classifier(estimator))
        # Those of the training sets were clones of the same, whatever was set since.
        yield Fit(
            name,
            clone(fitted[0] if fitted else estimator),
            fits * (n_outputs - 1),
            repeats_rows(obj.cv),
        )
        if notes:
            yield stated(*notes)
    if fitted is None:
        yield Fit(name, unfitted(estimator), n_outputs)
    else:
        for part in fitted:
            yield Fit(name, part)
