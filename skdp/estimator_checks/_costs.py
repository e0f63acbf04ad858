"""Checks of what an estimator says that it costs."""

import copy
import io
import pickle
from fractions import Fraction
from math import isfinite
from typing import Any
from unittest import SkipTest

import joblib
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from skdp.accounting import PrivacyCost
from skdp.cost import privacy_cost
from skdp.estimator_checks._subject import Subject, leaves, require

__all__ = [
    "check_copies_keep_the_cost",
    "check_cost_is_stated",
    "check_fit_leaves_the_parameters_alone",
    "check_late_failures_are_charged",
    "check_releases_add_up",
    "check_searches_are_charged",
]

_TRIED_EPSILONS = (0.1, 0.3, 1.0 / 3.0, 0.7, 1.0, 2.9)


def check_cost_is_stated(subject: Subject) -> None:
    """The cost is known before a fit, finite, of a stated relation, and the same after it.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    try:
        planned = subject.cost()
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{subject.name} states no cost before a fit: {error}") from error
    require(isinstance(planned, PrivacyCost), f"the cost must be a PrivacyCost, got {planned!r}")
    why = "; ".join(planned.assumptions)
    require(planned.is_finite, f"the cost of {subject.name} is not finite: {why}")
    require(isfinite(planned.epsilon()), "the cost has no finite epsilon at its own delta")
    require(planned.epsilon() > 0.0, "a fit learns from data and costs nothing")
    fitted = subject.cost(subject.fit())
    require(
        _sizes(fitted) == _sizes(planned),
        f"planned {planned!r}, fitted {fitted!r}: these must be equal",
    )
    require(
        (fitted.neighboring, fitted.unit) == (planned.neighboring, planned.unit),
        "the relation changes in a fit",
    )


def check_copies_keep_the_cost(subject: Subject) -> None:
    """Copies, pickles and joblib's files of a fitted estimator state the same cost.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    fitted = subject.fit()
    cost = subject.cost(fitted)
    stored = io.BytesIO()
    joblib.dump(fitted, stored)
    stored.seek(0)
    copies = {
        "deepcopy": copy.deepcopy(fitted),
        "pickle": pickle.loads(pickle.dumps(fitted)),
        "joblib": joblib.load(stored),
    }
    for how, made in copies.items():
        require(_sizes(subject.cost(made)) == _sizes(cost), f"{how} loses the cost of a fit")
    planned = subject.cost(clone(fitted))
    require(_sizes(planned) == _sizes(subject.cost()), "a clone states another cost")


def check_fit_leaves_the_parameters_alone(subject: Subject) -> None:
    """No parameter keeps an account: clones, workers and ``memory=`` fit copies of it.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    model = subject.fresh()
    before = _stored(model)
    subject.fit(model=model)
    changed = [name for name, value in _stored(model).items() if before.get(name) != value]
    require(
        not changed,
        f"fit changes what its parameters {changed} hold; an account kept there is lost as soon "
        f"as a search, a worker or a cache fits a copy",
    )


def check_searches_are_charged(subject: Subject) -> None:
    """A search over the estimator costs what its fits cost together.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    if "epsilon" not in subject.estimator.get_params(deep=False):
        raise SkipTest("no parameter epsilon")
    epsilon = subject.estimator.get_params(deep=False)["epsilon"]
    # Two candidates, two folds: every record is in one training set of each, and in the last fit.
    search = GridSearchCV(
        clone(subject.estimator),
        {"epsilon": [epsilon, epsilon]},
        scoring=lambda *args: 0.0,
        cv=KFold(2),
        error_score="raise",
    )
    least = 1.7 if subject.cost().epsilon0 == 0.0 and not subject.cost().delta0 else 1.0
    planned = privacy_cost(search)
    single = subject.cost()
    for cost in (planned, privacy_cost(subject.fit(model=search))):
        require(
            cost.gaussian_mu >= least * single.gaussian_mu
            and cost.epsilon0 >= 2.9 * single.epsilon0
            and cost.epsilon() > single.epsilon() > 0.0,
            f"three fits in a search are stated as {cost!r}, one as {single!r}",
        )
    best = subject.cost(search.best_estimator_)
    require(_sizes(best) == _sizes(single), "the best model of a search has lost its cost")


def check_releases_add_up(subject: Subject) -> None:
    """Releases that are listed cost together what is stated, and never more than was allowed.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    if "epsilon" in subject.estimator.get_params(deep=False):
        for epsilon in _TRIED_EPSILONS:
            cost = privacy_cost(subject.fresh().set_params(epsilon=epsilon))
            stated = max(cost.epsilon(), cost.epsilon0)
            require(
                stated <= epsilon,
                f"epsilon={epsilon!r} is stated as {stated!r}, which a ceiling of "
                f"{epsilon!r} refuses: round towards the safe side",
            )
    fitted = subject.fit()
    lists = {
        path: value
        for path, value in leaves(fitted)
        if path.endswith("releases_") and isinstance(value, list | tuple)
    }
    made = [release for releases in lists.values() for release in releases]
    if not made:
        return
    spent = sum(
        Fraction(release.sensitivity) ** 2 / Fraction(release.sigma) ** 2 for release in made
    )
    cost = subject.cost(fitted)
    require(
        spent <= Fraction(cost.gaussian_mu) ** 2,
        f"the releases of {subject.name} cost mu={float(spent) ** 0.5:g} together, "
        f"{cost.gaussian_mu:g} is stated",
    )


def check_late_failures_are_charged(subject: Subject) -> None:
    """A fit that breaks off after its releases states what it spent.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    fitted = subject.fit()
    if "privacy_cost_" not in vars(fitted):
        raise SkipTest("the cost of a fit is not kept in an attribute privacy_cost_")
    order = _attributes_in_order(subject)
    last = [name for name in order if name != "privacy_cost_"][-1]
    broken, _ = _spied(subject, fail_at=(last, order.count(last)))
    charged = vars(broken).get("privacy_cost_")
    require(
        charged is not None and _sizes(charged) == _sizes(subject.cost(fitted)),
        f"a fit that fails when {last!r} is set, after its releases, leaves no privacy_cost_: set "
        f"that before the first release",
    )


class _LateError(Exception):
    pass


def _attributes_in_order(subject: Subject) -> list[str]:
    _, order = _spied(subject)
    if not [name for name in order if name != "privacy_cost_"]:
        raise SkipTest("no attribute is set by name")
    return order


def _spied(subject: Subject, fail_at: tuple[str, int] | None = None) -> tuple[Any, list[str]]:
    """Fit a clone that notes the order of its fitted attributes, and fails at one of them."""
    order: list[str] = []
    kind: Any = type(subject.estimator)

    def note(self: Any, name: str, value: Any) -> None:
        if name.endswith("_") and not name.startswith("_"):
            order.append(name)
            if fail_at is not None and fail_at == (name, order.count(name)):
                raise _LateError
        kind.__setattr__(self, name, value)

    model = subject.fresh()
    model.__class__ = type(kind.__name__, (kind,), {"__setattr__": note})
    try:
        subject.fit(model=model)
    except (_LateError, NotFittedError):
        pass
    return model, order


def _sizes(cost: PrivacyCost) -> tuple[Any, ...]:
    return (cost.gaussian_mu, cost.epsilon0, cost.delta0, cost.neighboring, cost.unit)


def _stored(model: Any) -> dict[str, bytes]:
    """The parameters as bytes: what cannot be stored is compared by its identity.

    Estimators inside a pipeline are fitted in place; what counts is what their parameters hold.
    """
    found = {}
    for name, value in model.get_params(deep=True).items():
        if any(hasattr(held, "get_params") for _, held in leaves(value)):
            continue
        try:
            found[name] = pickle.dumps(value)
        except Exception:
            found[name] = repr(id(value)).encode()
    return found
