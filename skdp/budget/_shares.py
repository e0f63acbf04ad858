"""How a total is divided among private steps."""

from collections.abc import Iterable
from inspect import signature
from math import inf
from numbers import Real
from typing import Any

from skdp.accounting import PrivacyCost
from skdp.cost import cost_parts
from skdp.mechanism import GaussianMechanism

__all__ = [
    "default_shares",
    "is_share",
    "may_fail",
    "parameter",
    "set_budgets",
    "taken_apart",
]

# Of mu^2, for each private step that prepares features, and for all of them together at most.
_PREPROCESSING_SHARE = 0.1
_ALL_PREPROCESSING = 0.5
# Of what a stack gets, for the estimator that learns from the predictions of the others.
_LAST, _LAST_SHARE = "final_estimator", 0.1


def default_shares(steps: dict[str, Any]) -> dict[str, float]:
    """Shares of mu^2 for the private steps of an estimator when none are given.

    Parameters
    ----------
    steps : dict of str to estimator
        The private steps by name, as in ``set_params``.

    Returns
    -------
    shares : dict of str to float
        In a pipeline, a tenth for every step that only prepares features, or what it states as
        its ``preparation_share``, half at most for all of those together; the rest in equal parts
        for the others: models, and mechanisms that release rows. What holds several models, such as
        a vote, counts as one, and what it gets is divided by the same rule: equal parts for its
        members, the same shares of each for what prepares features inside. The `final_estimator` of
        a stack gets a tenth of the stack's. Equal parts if all steps prepare features.

    Notes
    -----
    A tenth is what a standardisation within public bounds was measured to deserve before a linear
    model: at epsilon 1 it costs half of what scaling by public bounds costs in AUC. A step without
    `bounds` states three tenths: with hundreds of rows finding them is what limits the model (AUC
    .64 and .77 on pima at epsilon 0.3, .964 and .977 on breast cancer at 1), and with tens of
    thousands the model has no use for the difference (within .0015 from epsilon 0.1 to 3), so the
    number of rows need not be known. A `DPTableVectorizer`, which does all the
    preparation there is, states a quarter.
    """
    if len(steps) <= 1:
        return dict.fromkeys(steps, 1.0)
    branches: dict[str, dict[str, Any]] = {}
    for name, step in steps.items():
        first, _, rest = name.partition("__")
        branches.setdefault(first, {})[rest] = step
    preparing = [
        _joined(first, rest)
        for first, branch in branches.items()
        if _all_prepare(branch.values())
        for rest in branch
    ]
    models = [first for first, branch in branches.items() if not _all_prepare(branch.values())]
    if not models:
        return dict.fromkeys(steps, 1.0 / len(steps))
    stated = {
        name: getattr(steps[name], "preparation_share", _PREPROCESSING_SHARE) for name in preparing
    }
    most = min(1.0, _ALL_PREPROCESSING / sum(stated.values())) if stated else 0.0
    weights = dict.fromkeys(models, 1.0)
    if _LAST in models and len(models) > 1:
        weights[_LAST] = _LAST_SHARE / (1.0 - _LAST_SHARE) * (len(models) - 1)
    scale = (1.0 - most * sum(stated.values())) / sum(weights.values())
    found = {name: most * share for name, share in stated.items()}
    for first in models:
        for rest, part in default_shares(branches[first]).items():
            found[_joined(first, rest)] = part * weights[first] * scale
    return {name: found[name] for name in steps}


def _all_prepare(steps: Iterable[Any]) -> bool:
    return all(
        hasattr(step, "transform")
        and not hasattr(step, "predict")
        and not isinstance(step, GaussianMechanism)
        for step in steps
    )


def _joined(first: str, rest: str) -> str:
    return f"{first}__{rest}" if rest else first


def set_budgets(estimator: Any, **counts: int | None) -> dict[str, Any]:
    """Budgets that private steps were given of their own, which a `PrivacyBudget` does not use.

    Parameters
    ----------
    estimator : estimator
        What holds the steps.
    **counts : int or None
        As `cost_parts` takes them: ``n_classes`` and so on.

    Returns
    -------
    defaults : dict of str to object
        The default of every `epsilon` and `delta` that has another value, by name as in
        ``set_params``.
    """
    params = estimator.get_params(deep=True)
    found = {}
    for part in cost_parts(estimator, **counts):
        if not hasattr(type(part.estimator), "planned_cost"):
            continue
        known = signature(type(part.estimator)).parameters
        for name in ("epsilon", "delta"):
            full = parameter(part.path, name)
            if name in known and full in params and params[full] != known[name].default:
                found[full] = known[name].default
    return found


def may_fail(step: Any) -> bool:
    """Whether a step releases something that can fail with a small probability."""
    return hasattr(step, "needs_delta0") and bool(step.needs_delta0())


def taken_apart(budget: PrivacyCost, n_failing: int) -> tuple[PrivacyCost, PrivacyCost]:
    """The Gaussian part of a budget, and what each of some steps gets of its delta0."""
    kind = (budget.neighboring, budget.unit, budget.reference_delta)
    gaussian = PrivacyCost(budget.gaussian_mu, *kind, budget.assumptions)
    failure = PrivacyCost(0.0, *kind, delta0=budget.delta0)
    return gaussian, failure.split([1.0] * n_failing)[0] if n_failing else failure


def parameter(step: str, name: str) -> str:
    return f"{step}__{name}" if step else name


def is_share(value: Any) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool)
    return number and 0.0 < float(value) < inf
