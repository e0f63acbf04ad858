"""Rules for ensembles: what votes, what is stacked, what is drawn with replacement."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import factorial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)

from skdp.accounting import PrivacyCost
from skdp.cost._core import Fit, register_cost_rule, stated, unfitted, without_privacy
from skdp.cost._largest import costliest
from skdp.cost._later import releases_later
from skdp.cost._search import repeats_rows, same_price, training_sets_per_record

__all__ = ["classes_are_public", "register"]

# Probability that a record is drawn more often than a plan says, charged as delta0: below one in
# a million that any of a million records is.
_OVERDRAWN = 2.0**-40


def register() -> None:
    """Register the rules of this module."""
    for cls in (VotingClassifier, VotingRegressor):
        register_cost_rule(cls, _voting)
    for cls in (StackingClassifier, StackingRegressor):
        register_cost_rule(cls, _stacking)
    for cls in (BaggingClassifier, BaggingRegressor):
        register_cost_rule(cls, _bagging)
    for cls in (AdaBoostClassifier, AdaBoostRegressor):
        register_cost_rule(cls, _boosting)


def classes_are_public(obj: Any) -> Fit:
    """The assumption of what reads its classes from y."""
    kind = type(obj).__name__
    return stated(f"the classes that {kind} reads from y, and their number, are taken as public")


def _voting(obj: Any) -> Iterator[Fit]:
    fitted = getattr(obj, "named_estimators_", None)
    holds = fitted is not None or _is_given_fitted(obj)
    for name, estimator in obj.estimators if fitted is None else fitted.items():
        yield Fit(name, estimator if holds else unfitted(estimator))
    if is_classifier(obj):
        yield classes_are_public(obj)


def _is_given_fitted(obj: Any) -> bool:
    """Whether the members of a stack are not fitted any more."""
    return isinstance(getattr(obj, "cv", None), str) and obj.cv == "prefit"


def _stacking(obj: Any) -> Iterator[Fit]:
    """All parts on all records, all again on the training sets, the last one on predictions.

    What the models of the training sets say of a record depends on released numbers and on that
    record only, so the last estimator sees one row for each record.
    """
    fitted = getattr(obj, "named_estimators_", None)
    if not _is_given_fitted(obj):
        fits, notes = training_sets_per_record(obj.cv, classifier=is_classifier(obj))
        if notes:
            yield stated(*notes)
        for name, estimator in obj.estimators:
            if isinstance(estimator, str):
                continue
            fresh = clone(estimator)
            yield Fit(name, fresh, fits, repeats_rows(obj.cv))
            if fitted is not None and not same_price(fresh, fitted.get(name, estimator)):
                text = f"{name!r} of {type(obj).__name__} was changed after the fit"
                yield Fit("", PrivacyCost.infinite(f"{text}, whose cost is no longer known"))
    yield from _voting(obj)
    final = getattr(obj, "final_estimator_", None)
    if final is None:
        final = unfitted(obj.final_estimator)
    if final is None:
        yield Fit("", without_privacy(obj, "give it a private `final_estimator`"))
    else:
        yield Fit("final_estimator", final)


def _boosting(obj: Any) -> PrivacyCost:
    return PrivacyCost.infinite(
        f"{type(obj).__name__} weighs records by the errors of earlier models, without privacy; "
        "use a single private model, or a vote of several"
    )


# ---- bagging ----


def _bagging(obj: Any) -> Iterator[Fit]:
    kind = type(obj).__name__
    if obj.estimator is None:
        yield Fit("", without_privacy(obj, "give it a private `estimator`"))
        return
    texts = [
        f"how often {kind} draws a record, by its seeds and by weights given to its fit, is taken "
        "as public"
    ]
    if obj.oob_score:
        texts.append(f"the out-of-bag scores and predictions of {kind} are not private")
    yield stated(*texts)
    if is_classifier(obj):
        yield classes_are_public(obj)
    fitted = getattr(obj, "estimators_", None)
    if fitted is not None:
        bags = obj.estimators_samples_
        if len(bags) < len(fitted):
            text = f"the bags that {kind} drew before its last fit (warm_start) are not known"
            yield Fit("estimator", PrivacyCost.infinite(text))
        else:
            times = _drawn(bags)
            if releases_later(*fitted):  # of all bags, whoever is in them
                times = max(times, len(fitted))
            yield Fit("estimator", costliest(fitted), times, obj.bootstrap)
        return
    estimator = _with_seeds(obj.estimator)
    if not obj.bootstrap:
        yield Fit("estimator", estimator, obj.n_estimators)
        return
    size = obj.max_samples  # None, in newer versions, draws as many records as there are
    if size is not None and (isinstance(size, Integral) or size > 1.0):
        raise ValueError(
            f"how often {kind} draws a record depends on the number of records; give max_samples "
            "as a fraction of them, at most 1.0, or set bootstrap=False"
        )
    yield Fit("estimator", estimator, drawn_at_most(obj.n_estimators, _OVERDRAWN), True)
    yield Fit("", PrivacyCost(0.0, delta0=_OVERDRAWN))


def _with_seeds(estimator: Any) -> Any:
    """What an ensemble makes of its estimator: every `random_state` in it is set, and kept."""
    seeded = clone(estimator)
    names = [
        name
        for name in seeded.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    ]
    return seeded.set_params(**dict.fromkeys(names, 0))


def _drawn(bags: list[Any]) -> int:
    """Largest sum over the bags of the squared number of times they hold one record."""
    totals: Counter[int] = Counter()
    for bag in bags:
        rows, counts = np.unique(np.asarray(bag), return_counts=True)
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            totals[row] += count * count
    return max(totals.values(), default=0)


@cache
def drawn_at_most(n_bags: int, probability: float) -> int:
    """Bound of the sum over bags of squared multiplicities of one record, but for bad luck.

    Parameters
    ----------
    n_bags : int
        Number of bags, each of at most n draws with replacement from n records.
    probability : float
        With which the sum may be larger.

    Returns
    -------
    bound : int

    Notes
    -----
    A record is drawn m times or more with probability at most ``C(n, m) n^-m <= 1 / m!``, for any
    n. So m is stochastically below a variable that is k with probability ``1/k! - 1/(k+1)!``, and
    the sum of squares below that of independent ones: their exact law is convolved.
    """
    # Heavier multiplicities than `most` have less than a millionth of the probability together.
    most = next(k for k in range(1, 200) if n_bags * 10**6 < probability * factorial(k + 1))
    law = {
        k * k: float(Fraction(1, factorial(k)) - Fraction(1, factorial(k + 1)))
        for k in range(1, most + 1)
    }
    sums = np.ones(1)
    power = np.zeros(most**2 + 1)
    for square, weight in law.items():
        power[square] = weight
    for _ in range(n_bags):
        sums = np.convolve(sums, power)
        # Beyond the bound by far: their mass stays in the last cell.
        limit = most**2 * 4 + 20 * n_bags
        if len(sums) > limit:
            sums = np.append(sums[: limit - 1], sums[limit - 1 :].sum())
    # Sums of positive numbers have small relative errors; those and the cut are paid by a margin.
    tails = np.cumsum(sums[::-1])[::-1] * (1.0 + 1e-6) + probability * 1e-6
    above = np.flatnonzero(tails <= probability)
    return int(above[0]) - 1
