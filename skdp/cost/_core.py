"""The registry of cost rules and the walk that composes them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.base import clone

from skdp.accounting import PrivacyCost
from skdp.cost._advice import advice_for
from skdp.cost._facts import given_facts
from skdp.cost._row_wise import is_declared_row_wise

__all__ = [
    "CostPart",
    "Fit",
    "Rule",
    "cost_parts",
    "free",
    "holds_private_estimator",
    "privacy_cost",
    "register_cost_rule",
    "rule_for",
    "stated",
    "unfitted",
    "without_privacy",
]


class Fit(NamedTuple):
    """One line of a rule: a part is fitted, and on how many data sets with one record in them.

    Attributes
    ----------
    name : str
        Name of the part as in ``set_params``; empty for what the object does itself.
    estimator : object
        The part that is fitted: an estimator, ``"passthrough"``, ``"drop"`` or None, which cost
        nothing, or a `PrivacyCost` for what the object itself releases or assumes.
    times : int
        Largest number of training sets of this part that contain one record (the sum of the
        squared multiplicities where records are repeated).
    repeated : bool
        Whether a training set may hold a record more than once. The mu of a Gaussian release grows
        by that factor; what has a pair (epsilon0, delta0) beside mu then has no bound.
    """

    name: str
    estimator: Any
    times: int = 1
    repeated: bool = False


Rule = Callable[[Any], PrivacyCost | Iterable[Fit]]

_EXACT: dict[type, Rule] = {}
_INHERITED: dict[type, Rule] = {}
_BY_NAME: dict[str, Rule] = {}


@dataclass(frozen=True)
class CostPart:
    """One estimator inside an object, what a fit of it costs, and how many fits there are.

    Attributes
    ----------
    path : str
        Name of the part as in ``set_params``, such as ``"columns__num__scaler"``; empty for the
        object itself.
    estimator : object
        The part; None for a cost that belongs to no estimator.
    cost : PrivacyCost
        Cost of one fit. Where it is infinite, its assumptions say why and name the step.
    times : int
        Number of fits that one record takes part in.
    """

    path: str
    estimator: Any
    cost: PrivacyCost
    times: int = 1

    @property
    def is_charged(self) -> bool:
        """Whether it costs anything."""
        return self.cost.gaussian_mu > 0.0 or self.cost.has_pair


def free(obj: object) -> PrivacyCost:
    """Rule of objects that learn nothing from the values of the data."""
    return PrivacyCost.zero()


def register_cost_rule(cls: type | str, rule: Rule | type, *, subclasses: bool = False) -> None:
    """Tell `privacy_cost` what objects of a class cost.

    Parameters
    ----------
    cls : type or str
        The class; or, for one that cannot be imported here, its top-level package and its name,
        such as ``"sklearn.HalvingGridSearchCV"``.
    rule : callable or type
        ``rule(obj)`` returns what a fit of `obj` costs: a `PrivacyCost`, or for an object that
        fits others an iterable of `Fit`. It sees fitted and unfitted objects and never changes
        them. A class instead of a callable: the same rule as for that class.
    subclasses : bool, default=False
        Whether the rule holds for all classes derived from `cls` too. A subclass may learn
        more than its parent does, so this is for base classes written with it in mind.

    Raises
    ------
    TypeError
        If `cls` is neither a class nor such a name, or `rule` neither callable nor a class with a
        rule.

    See Also
    --------
    row_wise : Declare a transformer or function that learns nothing.

    Notes
    -----
    Estimators with a method ``planned_cost()`` and, once fitted, an attribute ``privacy_cost_``
    need no rule.

    **Privacy.** A rule is a promise: nothing checks it. State the cost for one record (or the
    unit of the `PrivacyCost`), under adaptive composition with everything around it.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skdp import DPLogisticRegression, privacy_cost
    >>> from skdp.cost import Fit, register_cost_rule
    >>> class TwoFits(BaseEstimator):
    ...     def __init__(self, estimator):
    ...         self.estimator = estimator
    ...
    ...     def fit(self, X, y): ...
    >>> register_cost_rule(TwoFits, lambda meta: [Fit("estimator", meta.estimator, times=2)])
    >>> privacy_cost(TwoFits(DPLogisticRegression(epsilon=1.0, classes=[0, 1])))
    PrivacyCost(mu=0.379082, epsilon=1.46517 at delta=1e-05, neighboring='add_or_remove')
    """
    if isinstance(rule, type):
        known = _registered(rule)
        if known is None:
            raise TypeError(f"no rule is registered for {rule.__name__}")
        rule = known
    elif not callable(rule):
        raise TypeError(f"rule must be callable, or a class that has a rule, got {rule!r}")
    if isinstance(cls, type):
        (_INHERITED if subclasses else _EXACT)[cls] = rule
    elif isinstance(cls, str) and cls.count(".") == 1 and not subclasses:
        _BY_NAME[cls] = rule
    else:
        raise TypeError(f"cls must be a class, or a name like 'package.Class', got {cls!r}")


def stated(*texts: str) -> Fit:
    """Line of a rule for the assumptions of an object, which cost nothing."""
    return Fit("", PrivacyCost.zero().with_assumptions(*texts))


def unfitted(part: Any) -> Any:
    """A part as a meta-estimator fits it: a clone, of which only the parameters count."""
    return clone(part, safe=False)


def _registered(kind: type) -> Rule | None:
    """The rule of a class: its own, or one that a base class hands down."""
    if kind in _EXACT:
        return _EXACT[kind]
    if is_declared_row_wise(kind):
        return free
    name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    if name in _BY_NAME:
        return _BY_NAME[name]
    return next((_INHERITED[base] for base in kind.__mro__ if base in _INHERITED), None)


def rule_for(obj: Any) -> Rule:
    """Return the rule that `obj` is priced by, which is `_unknown` where there is none."""
    kind = type(obj)
    if rule := _registered(kind):
        return rule
    # On the class, since wrappers that pass on unknown attributes would pass this one on too.
    return _own_cost if hasattr(kind, "planned_cost") else _unknown


def _own_cost(obj: Any) -> PrivacyCost:
    """Rule of estimators that know their cost."""
    cost = getattr(obj, "privacy_cost_", None)
    cost = obj.planned_cost() if cost is None else cost
    if cost.is_finite or cost.assumptions:
        return cost
    return cost.with_assumptions(f"{type(obj).__name__} has an infinite epsilon: no privacy")


def holds_private_estimator(obj: Any) -> bool:
    """Whether `obj` is, or has among its parameters at any depth, an estimator with a cost."""
    values = [obj, *obj.get_params(deep=True).values()] if hasattr(obj, "get_params") else [obj]
    return any(hasattr(type(value), "planned_cost") for value in values)


def _unknown(obj: Any) -> PrivacyCost:
    """Rule of everything that has none: it counts as a release without noise."""
    kind = type(obj)
    name = kind.__name__
    if isinstance(obj, type) or not hasattr(obj, "fit"):
        raise TypeError(f"only estimators have a privacy cost, got {obj!r}")
    if parent := next((base for base in kind.__mro__[1:] if base in _EXACT), None):
        return PrivacyCost.infinite(
            f"{name} is derived from {parent.__name__} and may learn more than it does; if it does "
            f"not: skdp.cost.register_cost_rule({name}, {parent.__name__})"
        )
    if holds_private_estimator(obj):
        return PrivacyCost.infinite(
            f"how often {name} fits the private estimators in it is not known to skdp; give it a "
            "rule with skdp.cost.register_cost_rule"
        )
    return without_privacy(obj)


def without_privacy(obj: Any, advice: str | None = None) -> PrivacyCost:
    """Cost of what learns from data without noise; it says what to use instead."""
    advice = advice_for(type(obj)) if advice is None else advice
    return PrivacyCost.infinite(
        f"{type(obj).__name__} learns from the data without privacy; {advice}"
    )


def cost_parts(
    obj: Any,
    *,
    n_classes: int | None = None,
    n_outputs: int | None = None,
    n_features: int | None = None,
) -> tuple[CostPart, ...]:
    """List everything inside `obj` that is fitted, with its cost and its number of fits.

    Parameters
    ----------
    obj : object
        As for `privacy_cost`.
    n_classes, n_outputs, n_features : int, default=None
        As for `privacy_cost`.

    Returns
    -------
    parts : tuple of CostPart
        In the order of fitting, free ones included. `privacy_cost` is their composition.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import DPRidge
    >>> from skdp.cost import cost_parts
    >>> for part in cost_parts(make_pipeline(Normalizer(), DPRidge(epsilon=2.0))):
    ...     print(part.path, round(part.cost.epsilon(), 6), part.times)
    normalizer 0.0 1
    dpridge 2.0 1
    """
    with given_facts(n_classes=n_classes, n_outputs=n_outputs, n_features=n_features):
        return tuple(_walk(obj, "", 1, False))


def _walk(obj: Any, path: str, times: int, repeated: bool) -> Iterator[CostPart]:
    if obj is None or (isinstance(obj, str) and obj in ("passthrough", "drop")):
        return
    if isinstance(obj, PrivacyCost):
        yield CostPart(path, None, _located(_multiplied(obj, repeated), path), times)
        return
    try:
        found = rule_for(obj)(obj)
        if not isinstance(found, PrivacyCost):
            found = tuple(found)  # rules may be generators: run them here
    except ValueError as error:
        if path and not str(error).startswith("step "):
            raise ValueError(f"step {path!r}: {error}") from error
        raise
    if isinstance(found, PrivacyCost):
        yield CostPart(path, obj, _located(_multiplied(found, repeated), path), times)
        return
    for name, part, count, again in found:
        inner = "__".join(filter(None, [path, name]))
        yield from _walk(part, inner, times * count, repeated or again)


def _multiplied(cost: PrivacyCost, repeated: bool) -> PrivacyCost:
    if repeated and cost.has_pair:
        return PrivacyCost.infinite(
            "a cost with a pair (epsilon0, delta0) beside mu has no bound where a training set "
            "holds a record more than once",
            neighboring=cost.neighboring,
            unit=cost.unit,
            reference_delta=cost.reference_delta,
        )
    return cost


def _located(cost: PrivacyCost, path: str) -> PrivacyCost:
    """The same cost; the reasons of an infinite one say where they are."""
    if cost.is_finite or not path:
        return cost
    texts = tuple(f"step {path!r}: {text}" for text in cost.assumptions)
    return PrivacyCost(
        cost.gaussian_mu,
        cost.neighboring,
        cost.unit,
        cost.reference_delta,
        texts,
        epsilon0=cost.epsilon0,
        delta0=cost.delta0,
    )


def privacy_cost(
    obj: Any,
    *,
    n_classes: int | None = None,
    n_outputs: int | None = None,
    n_features: int | None = None,
) -> PrivacyCost:
    """Return what fitting an object costs in privacy, whatever it is made of.

    Parameters
    ----------
    obj : estimator
        A private estimator, or one of scikit-learn's that is made of such, nested at will:
        pipelines and transformers of columns and targets, searches, voting, stacking, bagging,
        one model per class, pair of classes or output, chains, selectors. Fitted: the cost of what
        it holds. Unfitted: the cost that a fit will have, known before any data.
    n_classes, n_outputs, n_features : int, default=None
        Public counts for estimators whose number of fits depends on them, such as
        `OneVsRestClassifier`, `MultiOutputRegressor` and `RFE`. Fitted ones need none, but in a
        stack or a search, whose models of training sets leave no trace.

    Returns
    -------
    cost : PrivacyCost
        The exact composition. Infinite if a step learns from data without privacy; the
        `assumptions` then name the step and what to use instead. Otherwise they say what is
        taken as public or is not covered.

    Raises
    ------
    TypeError
        If `obj` is not an estimator.
    ValueError
        If steps use different neighbouring relations, or the number of fits of a part cannot
        be known.

    See Also
    --------
    skdp.cost.register_cost_rule : Price other classes.
    skdp.cost.row_wise : Declare functions and transformers that learn nothing.
    PrivacyBudget : Fit a pipeline to a stated total.

    Notes
    -----
    **Privacy.** Costs compose in squares [1]_: every record passes all steps of a pipeline, all
    blocks of a `ColumnTransformer`, all candidates of a search. With `KFold` a record is in all
    training sets but one, so a search over m candidates with k folds and a refit costs
    ``sqrt(m * (k - 1) + 1)`` times one fit. Splitters that look at y or at groups, which are the
    default for classifiers, get no discount, since one changed label moves other records: k
    fits are charged, and that the folds are taken as public is stated. The scores, the ranking
    and the choice of a search are not private; scoring a pipeline with a `GaussianMechanism`
    releases the test fold once more per candidate, into the scores only.

    Fitted objects are priced by what they hold. Of a search that is the candidates, the number of
    splits and the refitted estimator: where other parameters were set since and these show it, the
    cost is infinite. A change that leaves no trace, such as of the kind of splits, of `bootstrap`
    or of an estimator that was not refitted, is on trust. After a second fit that broke off,
    scikit-learn's objects hold the first: a `PrivacyLedger` charges for both. What another object
    fits, it clones: of a part that was fitted before only the parameters count.

    A class derived from a private estimator states the cost that it inherits, whatever a ``fit``
    of its own learns beside: what it adds to the cost belongs into its `planned_cost`. Derived
    from one of scikit-learn's classes it has no rule, and counts as learning without privacy.

    Free are steps that learn nothing from the values of data and map row by row: hashing,
    `Normalizer`, `PolynomialFeatures`, random projections and features, encoders with given
    categories, and what is declared. Steps after a `GaussianMechanism` in the same pipeline
    learn from rows that are released already; that the labels they use are taken as public
    is stated.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression, privacy_cost
    >>> model = DPLogisticRegression(epsilon=1.0, classes=[0, 1])
    >>> search = GridSearchCV(model, {"C": [0.1, 1.0, 3.0, 10.0]}, cv=KFold(5))
    >>> round(privacy_cost(search).mu / privacy_cost(model).mu, 6)  # sqrt(4 * 4 + 1)
    4.123106
    >>> print(*privacy_cost(make_pipeline(StandardScaler(), model)).assumptions)
    step 'standardscaler': StandardScaler learns from the data without privacy; use DPStandardScaler
    """
    parts = cost_parts(obj, n_classes=n_classes, n_outputs=n_outputs, n_features=n_features)
    # What is free or without any privacy is so under every relation.
    charged = [part for part in parts if part.is_charged and part.cost.is_finite]
    for part in charged[1:]:
        for kind in ("neighboring", "unit"):
            first, other = getattr(charged[0].cost, kind), getattr(part.cost, kind)
            if first != other:
                raise ValueError(
                    f"step {charged[0].path!r} has {kind}={first!r}, but step {part.path!r} has "
                    f"{kind}={other!r}: such costs cannot be added up; make them equal"
                )
    infinite = [part for part in parts if not part.cost.is_finite]
    kind_of = next((part.cost for part in [*charged, *infinite]), PrivacyCost.zero())
    total = PrivacyCost.compose(part.cost for part in charged for _ in range(part.times))
    return PrivacyCost(
        float("inf") if infinite else total.gaussian_mu,
        kind_of.neighboring,
        kind_of.unit,
        min((part.cost.reference_delta for part in charged), default=kind_of.reference_delta),
        tuple(text for part in parts for text in part.cost.assumptions),
        epsilon0=total.epsilon0,
        delta0=total.delta0,
    )
