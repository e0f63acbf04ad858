"""Rules for searches over private estimators: every candidate on every training set is paid for."""

import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    ParameterGrid,
    ParameterSampler,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
)

from skdp.accounting import PrivacyCost
from skdp.base import PrivateEstimator
from skdp.cost._core import (
    Fit,
    Rule,
    cost_parts,
    free,
    privacy_cost,
    register_cost_rule,
    rule_for,
)
from skdp.cost._largest import costliest, largest_cost

__all__ = ["distinct_prices", "register", "repeats_rows", "same_price", "training_sets_per_record"]

# Defined by row numbers, with no record repeated: a record is in all training sets at most.
_BY_INDEX = (ShuffleSplit, TimeSeriesSplit)
# One changed label or group moves other records too.
_BY_DATA = (
    GroupKFold,
    GroupShuffleSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
_BY_GROUP_COUNT = (LeaveOneGroupOut, LeavePGroupsOut)

# The parameters that the cost of a private estimator depends on.
_BUDGET_PARAMETERS = {"classes", "epsilon", "delta", "neighboring", "random_state"}

Candidates = list[tuple[dict[str, Any], int]]


def register() -> None:
    """Register the rules of this module."""
    register_cost_rule(GridSearchCV, _search)
    register_cost_rule(RandomizedSearchCV, _search)
    # By name: they can be imported only after an experimental import of the user's.
    register_cost_rule("sklearn.HalvingGridSearchCV", _search)
    register_cost_rule("sklearn.HalvingRandomSearchCV", _search)


def _search(search: Any) -> Iterator[Fit]:
    kind = type(search).__name__
    best = getattr(search, "best_estimator_", None)
    fits, notes = training_sets_per_record(
        search.cv,
        classifier=is_classifier(search.estimator if best is None else best),
        n_splits=getattr(search, "n_splits_", None),
    )
    notes += (f"the scores, the ranking and the choice of {kind} are not private",)
    yield Fit("", PrivacyCost.zero().with_assumptions(*notes))
    fitted = hasattr(search, "cv_results_")
    if fitted and (changed := _changed(search)):
        text = f"{changed} of {kind} was changed after the fit, whose cost is no longer known"
        yield Fit("", PrivacyCost.infinite(text))
    candidates = _candidates(search)
    made = [(_with(search.estimator, params), count) for params, count in candidates]
    for estimator, count in made:
        if count:
            yield Fit("estimator", estimator, count * fits, repeats_rows(search.cv))
        else:  # as good as any other that may be drawn, but for what it assumes
            assumed = privacy_cost(estimator).assumptions
            yield Fit("", PrivacyCost.zero().with_assumptions(*assumed))
    if best is not None:
        yield Fit("estimator", best)
    elif search.refit and not fitted:
        yield Fit("estimator", costliest(estimator for estimator, _ in made))


def _changed(search: Any) -> str | None:
    """The parameter of a fitted search that is not what it was fitted with, as far as it shows.

    The candidates need no check: they are those that the search has noted.
    """
    counted = type(search.cv) not in _BY_GROUP_COUNT
    if counted and check_cv(search.cv).get_n_splits() != search.n_splits_:
        return "cv"
    if hasattr(search, "best_estimator_"):
        made = _with(search.estimator, search.best_params_)
        if not same_price(made, search.best_estimator_):
            return "estimator"
    return None


def same_price(planned: Any, fitted: Any) -> bool:
    """Whether a fit of `planned` costs what one of a clone of `fitted` would, part by part."""
    return _priced(planned) == _priced(clone(fitted))


def _priced(estimator: Any) -> list[tuple[Any, ...]]:
    parts = cost_parts(estimator)
    return [(part.path, type(part.estimator), part.cost, part.times) for part in parts]


def _with(estimator: Any, params: dict[str, Any]) -> Any:
    # As a search does it: values that are estimators are cloned too.
    return clone(estimator).set_params(**{key: clone(v, safe=False) for key, v in params.items()})


def _worst(estimator: Any, candidates: Candidates) -> dict[str, Any]:
    """Parameters of the candidate that costs most."""
    largest = largest_cost([privacy_cost(_with(estimator, params)) for params, _ in candidates])
    if largest is None:
        raise ValueError(
            "which candidate costs most is not known: one has the largest mu, another the largest "
            "epsilon0 or delta0; use GridSearchCV, or candidates that differ in one of them"
        )
    return candidates[largest][0]


# ---- training sets ----


def training_sets_per_record(
    cv: Any, *, classifier: bool, n_splits: int | None = None
) -> tuple[int, tuple[str, ...]]:
    """Return in how many training sets of a splitter one record can be, and what that assumes.

    Parameters
    ----------
    cv : int, splitter, list of (train, test) or None
        As in `GridSearchCV`.
    classifier : bool
        Whether an int means `StratifiedKFold`.
    n_splits : int, default=None
        Number of splits of a fitted search.

    Returns
    -------
    times : int
    assumptions : tuple of str

    Raises
    ------
    ValueError
        If it cannot be known.
    """
    if cv is None or isinstance(cv, Integral):
        k = 5 if cv is None else int(cv)
        return (k, _folds_are_public("StratifiedKFold")) if classifier else (k - 1, ())
    kind = type(cv)
    if kind is KFold:
        return cv.n_splits - 1, ()
    if kind is RepeatedKFold:
        return cv.get_n_splits() - cv.n_repeats, ()
    if kind in _BY_INDEX:
        return cv.get_n_splits(), ()
    if kind in _BY_DATA:
        return cv.get_n_splits(), _folds_are_public(kind.__name__)
    if kind is PredefinedSplit:
        return cv.get_n_splits(), ("the given test folds are taken as public",)
    if kind in _BY_GROUP_COUNT and n_splits is not None:
        return n_splits, _folds_are_public(kind.__name__)
    if isinstance(cv, list | tuple):
        return max(_largest_share(cv), len(cv)), ("the given splits are taken as public",)
    raise ValueError(
        f"in how many training sets of {kind.__name__} a record can be is not known; use KFold, "
        "RepeatedKFold, ShuffleSplit, TimeSeriesSplit, PredefinedSplit, one of the stratified or "
        "group splitters with a fixed number of splits (charged in full), or a list of (train, "
        "test) indices"
    )


def repeats_rows(cv: Any) -> bool:
    """Whether a training set of given splits holds a row more than once; no splitter does that."""
    return isinstance(cv, list | tuple) and any(
        len(np.unique(rows)) < len(rows)
        for rows in (np.asarray(train) for train, _ in cv)
        if rows.dtype != bool
    )


def _folds_are_public(kind: str) -> tuple[str, ...]:
    return (
        f"the splits of {kind} depend on labels or groups and are taken as public (changing one "
        "record can move others); KFold needs no such assumption and costs less",
    )


def _largest_share(splits: Iterable[tuple[Any, Any]]) -> int:
    """Largest sum over training sets of the squared number of times they hold one row."""
    totals = np.zeros(0, dtype=np.int64)
    for train, _ in splits:
        rows = np.asarray(train)
        counts = rows.astype(np.int64) if rows.dtype == bool else np.bincount(rows)
        if len(counts) > len(totals):
            totals = np.pad(totals, (0, len(counts) - len(totals)))
        totals[: len(counts)] += counts**2
    return int(totals.max(initial=0))


# ---- candidates ----


def _candidates(search: Any) -> Candidates:
    """Parameters of the candidates as far as the cost depends on them, and how often each occurs.

    Before a fit, where a candidate is drawn at random, the costliest one that can be drawn; the
    others occur no times.
    """
    if hasattr(search, "cv_results_"):
        return _grouped(search.estimator, search.cv_results_["params"])
    if isinstance(search, GridSearchCV):
        return _grid(search.estimator, search.param_grid)
    if isinstance(search, RandomizedSearchCV):
        return _sample(search, search.n_iter)
    return _halving(search)


def _grouped(estimator: Any, candidates: Iterable[dict[str, Any]]) -> Candidates:
    found: dict[Any, tuple[dict[str, Any], int]] = {}
    for candidate in candidates:
        params = {key: candidate[key] for key in _relevant(estimator, candidate)}
        # Equal numbers and strings are one candidate; of other values, the same object is.
        key = tuple(
            (name, value if isinstance(value, float | int | str | PrivacyCost) else id(value))
            for name, value in params.items()
        )
        found[key] = (params, found.get(key, (None, 0))[1] + 1)
    return list(found.values())


def _grid(estimator: Any, grids: Any) -> Candidates:
    found = []
    for grid in [grids] if isinstance(grids, Mapping) else grids:
        part = {key: grid[key] for key in _relevant(estimator, grid)}
        count = len(ParameterGrid(grid)) // len(ParameterGrid(part))
        found += [(params, count) for params in ParameterGrid(part)]
    return found


def distinct_prices(estimator: Any, grids: Any) -> list[dict[str, Any]]:
    """Settings of a grid as far as the cost of the estimator can depend on them."""
    return [params for params, _ in _grid(estimator, grids)]


def _sample(search: Any, n_iter: int) -> Candidates:
    space = search.param_distributions
    grids = [space] if isinstance(space, Mapping) else list(space)
    lists_only = not any(hasattr(values, "rvs") for grid in grids for values in grid.values())
    if lists_only:
        everything = _grid(search.estimator, space)
        size = sum(count for _, count in everything)
        if n_iter >= size:
            return everything
    if isinstance(search.random_state, Integral):  # the same candidates as in fit
        drawn = ParameterSampler(space, n_iter, random_state=int(search.random_state))
        return _grouped(search.estimator, drawn)
    possible: Candidates = []
    for grid in grids:
        part = {key: grid[key] for key in _relevant(search.estimator, grid)}
        if drawn_from := [key for key, values in part.items() if hasattr(values, "rvs")]:
            raise ValueError(
                f"the cost depends on {drawn_from}, which will be drawn from a distribution: set "
                "random_state of the search to an int, or list the values"
            )
        possible += [(params, 1) for params in ParameterGrid(part)]
    worst = _worst(search.estimator, possible)
    return [(worst, n_iter), *((params, 0) for params, _ in possible if params is not worst)]


def _halving(search: Any) -> Candidates:
    """Upper bound: as many iterations as the candidates need, the costliest ones surviving."""
    if search.resource != "n_samples" and _relevant(search.estimator, [search.resource]):
        raise ValueError(f"the cost depends on resource={search.resource!r}, which grows")
    if hasattr(search, "param_grid"):
        first = _grid(search.estimator, search.param_grid)
    elif search.n_candidates == "exhaust":
        raise ValueError("n_candidates='exhaust' depends on the data; set it to an int")
    else:
        first = _sample(search, search.n_candidates)
    worst = _worst(search.estimator, first)
    left = sum(count for _, count in first)
    later = 0
    for _ in range(math.floor(math.log(left, search.factor))):
        left = math.ceil(left / search.factor)
        later += left
    return [*first, (worst, later)]


def _relevant(estimator: Any, params: Iterable[str]) -> list[str]:
    """Parameters that the cost can depend on: all but those known not to."""
    names = list(params)
    values = estimator.get_params(deep=True)
    found = []
    for name in names:
        owner_name, _, parameter = name.rpartition("__")
        owner = values.get(owner_name) if owner_name else estimator
        replaced = any(name.startswith(f"{other}__") for other in names)
        if replaced or not _is_neutral(owner, parameter):
            found.append(name)
    return found


def _is_neutral(owner: Any, parameter: str) -> bool:
    if isinstance(owner, PrivateEstimator):
        default = type(owner).planned_cost is PrivateEstimator.planned_cost
        return default and parameter not in _BUDGET_PARAMETERS
    rule: Rule | None = rule_for(owner) if owner is not None else None
    return rule is free
