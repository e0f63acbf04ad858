"""Checks that nothing but noisy values leaves a fit: in its state, in messages."""

import warnings
from collections.abc import Callable
from functools import partial
from math import ceil, exp, log
from typing import Any
from unittest import SkipTest

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.base import clone, is_classifier

from skdp.accounting import PrivacyCost
from skdp.estimator_checks._subject import Subject, leaves, require

__all__ = [
    "check_classes_are_declared",
    "check_messages_show_no_values",
    "check_no_statistic_in_the_state",
    "check_no_value_per_record",
    "check_nothing_is_without_noise",
]

_WORD, _NUMBER = "SECRET-7431", 74317431.25
_MARKERS = ("SECRET", "7431", "7.43")
_TIMES = 4
_DATA_SETS = 8  # a noisy count may equal the count of one of them, not of all
_MOST_REPEATS = 400


def check_nothing_is_without_noise(subject: Subject) -> None:
    """What is the same in every fit of one data set is the same for its neighbour.

    Parameters
    ----------
    subject : Subject
        The estimator.

    Notes
    -----
    The neighbour has another record; the number of rows is public. Under mu <= 0.54 a value that
    repeats in twenty fits of one data set is missed by twenty fits of its neighbour with a
    probability below 1e-8. For larger costs there are more fits; where hundreds would not do,
    nothing is said.
    """
    model = subject.with_epsilon(1.0)
    sides = [subject.canary(0.0), subject.canary(2.0)]
    repeats = _repeats(subject.replace_cost(model))
    suspects = _without_noise(subject, model, sides, min(repeats, _MOST_REPEATS))
    if not suspects or subject.cost(subject.fit()).assumptions:
        return
    shown = ", ".join(sorted(suspects)[:3])
    if repeats > _MOST_REPEATS:
        raise SkipTest(f"{shown} may have no noise, or be sure at so large a cost: give less")
    raise AssertionError(f"{shown} of the fitted estimator depends on one record and has no noise")


def _without_noise(subject: Subject, model: Any, sides: Any, repeats: int) -> set[str]:
    """Paths to what is the same in all fits of either data set, and not on both."""
    first, second = (_state(subject.fit(X, y, model=clone(model))) for X, y in sides)
    suspects = {p for p in first.keys() | second.keys() if first.get(p) != second.get(p)}
    for _ in range(repeats - 1):
        for before, (X, y) in zip((first, second), sides, strict=True):
            if not suspects:
                return suspects
            again = _state(subject.fit(X, y, model=clone(model)))
            suspects = {p for p in suspects if again.get(p) == before.get(p)}
    return suspects


def _repeats(cost: PrivacyCost) -> int:
    """Fits after which no two values are sure on either side by chance, with 1e-8."""
    if cost.has_pair:
        epsilon = cost.epsilon()
        likely = (exp(min(epsilon, 50.0)) + cost.reference_delta) / (1.0 + exp(min(epsilon, 50.0)))
    else:
        likely = float(ndtr(0.5 * cost.gaussian_mu))
    return max(20, ceil(log(1e-8) / (2.0 * log(min(likely, 1.0 - 1e-9)))))


def check_no_statistic_in_the_state(subject: Subject) -> None:
    """No exact extreme, sum, mean, moment, count or row of the data is kept.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    suspects: dict[tuple[str, str], set[float]] | None = None
    for seed in range(_DATA_SETS):
        X, y = subject.data(seed)
        # With little budget: else a whole number is often what it was before the noise.
        model = subject.with_epsilon(0.1)
        found = _statistics_in(subject.fit(X, y, model=model), _statistics(X, y))
        before = dict.fromkeys(found, set()) if suspects is None else suspects
        suspects = {key: before[key] | {found[key]} for key in found.keys() & before.keys()}
        if not suspects:
            return
    # What is the same for all data is no statistic of them.
    left = sorted(key for key, values in (suspects or {}).items() if len(values) > 1)
    if not left or subject.cost(subject.fit()).assumptions:
        return
    path, name = left[0]
    raise AssertionError(f"{path} of the fitted estimator is the exact {name} of the data")


def check_no_value_per_record(subject: Subject) -> None:
    """No array of the fitted estimator has a length that follows the number of records.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    X, y = subject.X, subject.y
    n = len(X)
    suspects = [path for path, shape in _shapes(subject.fit()).items() if n in shape]
    if not suspects:
        return
    # By chance other things may be as many as the records; they do not become fewer with them.
    fewer = _shapes(subject.fit(X[:-1], None if y is None else y[:-1]))
    for path in suspects:
        require(
            n - 1 not in fewer.get(path, ()),
            f"{path} of the fitted estimator has a value for every record",
        )


def _shapes(fitted: Any) -> dict[str, tuple[int, ...]]:
    found = {}
    for path, value in leaves(fitted):
        if isinstance(value, np.ndarray) or issparse(value):
            found[path] = value.shape
        elif isinstance(value, list | tuple):
            found[path] = (len(value),)
    return found


def check_classes_are_declared(subject: Subject) -> None:
    """A class with one record is not told by the model, unless the cost says so.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    if not is_classifier(subject.estimator):
        return
    labels = np.unique(subject.y)
    y = np.full(len(subject.y), labels[0])
    y[-1] = labels[-1]
    says = bool(subject.cost(subject.fit()).assumptions)
    with_record = subject.fit(subject.X, y)
    try:
        without = subject.fit(subject.X, np.full_like(y, labels[0]))
    except ValueError:
        require(says, "classes are read from the labels, and the cost does not say so")
        return
    same = np.array_equal(
        getattr(with_record, "classes_", labels), getattr(without, "classes_", labels)
    )
    require(same or says, "classes_ are read from the labels, and the cost does not say so")


def check_messages_show_no_values(subject: Subject) -> None:
    """Errors and warnings about bad records do not quote them.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    for kind, X, y in _bad_data(subject):
        # More than once: a released number may have such digits by chance.
        shown = all(
            any(
                marker in text
                for text in _said(partial(_fit, subject, X, y))
                for marker in _MARKERS
            )
            for _ in range(_TIMES)
        )
        require(not shown, f"a message about {kind} shows a value of the data")


def _fit(subject: Subject, X: Any, y: Any) -> Any:
    model = subject.fresh()
    return model.fit(X) if y is None else model.fit(X, y)


def _bad_data(subject: Subject) -> list[tuple[str, Any, Any]]:
    def rows(value: Any, dtype: Any = float) -> Any:
        made = np.array(subject.X, dtype=dtype)
        made[3, 1] = value
        return made

    y = subject.y
    found = [
        ("a text in the rows", rows(_WORD, object), y),
        ("a large number", rows(_NUMBER), y),
        ("a large number and NaN", np.where(np.eye(*subject.X.shape), np.nan, rows(_NUMBER)), y),
        ("a large number and infinity", np.where(rows(0.0) > 1.9, np.inf, rows(_NUMBER)), y),
    ]
    if y is not None:
        for kind, value in (("a target that is a text", _WORD), ("a large target", _NUMBER)):
            targets = np.array(y, dtype=object)
            targets[3] = value
            if kind == "a large target":
                targets = targets.astype(float)
            found.append((kind, subject.X, targets))
        found.append(("too few targets", rows(_NUMBER), y[:-1]))
    return found


def _said(call: Callable[[], Any]) -> list[str]:
    """All texts of the warnings and of the error of a call, chained ones too."""
    texts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error: BaseException | None = None
        try:
            call()
        except Exception as raised:
            error = raised
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        texts += [str(error), repr(error), *getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return texts + [str(w.message) for w in caught]


def _state(fitted: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in leaves(fitted):
        if isinstance(value, np.ndarray) and value.dtype != object:
            found[path] = (value.shape, value.tobytes())
            if value.size <= 64:  # entries by themselves: one may have noise, another none
                found |= {f"{path}[{i}]": v.tobytes() for i, v in enumerate(value.ravel())}
        elif isinstance(value, str | bytes | bool | int | float | np.generic):
            found[path] = repr(value)
    return found


def _statistics(X: Any, y: Any) -> dict[str, Any]:
    """Exact statistics that a model may be tempted to keep, by name."""
    columns = np.column_stack([X, *([] if y is None or np.asarray(y).dtype.kind in "OUS" else [y])])
    norms = np.sqrt(np.sum(columns[:, : X.shape[1]] ** 2, axis=1))
    centred = columns - columns.mean(axis=0)
    found = {
        "minimum": columns.min(axis=0),
        "maximum": columns.max(axis=0),
        "sum": columns.sum(axis=0),
        "mean": columns.mean(axis=0),
        "median": np.median(columns, axis=0),
        "standard deviation": np.r_[columns.std(axis=0), columns.std(axis=0, ddof=1)],
        "variance": np.r_[columns.var(axis=0), columns.var(axis=0, ddof=1)],
        "largest absolute value": np.abs(columns).max(axis=0),
        "largest norm": norms.max(),
        "second moment": columns.T @ columns,
        "covariance": centred.T @ centred / len(columns),
        "value": columns,
    }
    if y is not None and len(levels := np.unique(y)) < len(X) // 2:
        counts = np.array([np.sum(np.asarray(y) == level) for level in levels])
        found |= {"count": counts, "share": counts / len(X)}
    # Whole numbers and zeros are equal by chance.
    kept = {"count"}
    return {
        name: np.unique(v if name in kept else np.ravel(v)[np.ravel(v) % 1.0 != 0.0])
        for name, v in found.items()
    }


def _statistics_in(fitted: Any, known: dict[str, Any]) -> dict[tuple[str, str], float]:
    found = {}
    parameters = {id(value) for value in fitted.get_params(deep=True).values()}
    for path, value in leaves(fitted):
        if isinstance(value, bool) or id(value) in parameters:
            continue
        if not isinstance(value, int | float | np.number | np.ndarray):
            continue
        numbers = np.ravel(np.asarray(value))
        if numbers.dtype.kind not in "iuf" or not len(numbers):
            continue
        for name, exact in known.items():
            for i, number in enumerate(numbers[:500]):
                near = np.abs(exact - float(number)) <= 1e-12 * np.abs(exact)
                if near.any():
                    found[f"{path}[{i}]" if np.ndim(value) else path, name] = float(number)
    return found
