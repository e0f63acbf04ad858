"""Checks that attack: one extreme record, on every path through a fit."""

from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from skdp.accounting import PrivacyCost
from skdp.audit import audit_epsilon
from skdp.audit._bounds import (
    counted,
    epsilon_from_errors,
    error_bounds,
    mean_error_bounds,
    mu_from_errors,
)
from skdp.estimator_checks._subject import Subject, require

__all__ = ["check_clipping_on_every_path", "check_small_audit"]

# The audits claim a violation wrongly with this probability at most.
_RISK = 1e-7
_EPSILON = 0.4
_PILOT = 7
# An audit takes as many fits as can refute the claim at all, up to so many.
_MOST_RUNS = 2000


class _ByPath(BaseEstimator):
    """Hands rows on in another form, with a weight for the last of them if asked to."""

    def __init__(self, estimator: Any, form: Any = None, weight: float | None = None) -> None:
        self.estimator, self.form, self.weight = estimator, form, weight

    def fit(self, X: Any, y: Any = None) -> Any:
        extra = {}
        if self.weight is not None:
            # The last record is the canary on the side that has one.
            weights = np.ones(len(X))
            weights[-1] = self.weight
            extra = {"sample_weight": weights}
        rows = X if self.form is None else self.form(X)
        self.fitted_ = clone(self.estimator)
        self.fitted_.fit(rows, **extra) if y is None else self.fitted_.fit(rows, y, **extra)
        return self


def check_clipping_on_every_path(subject: Subject) -> None:
    """A huge record moves the model no more than the cost allows, however it comes in.

    Parameters
    ----------
    subject : Subject
        The estimator.

    Notes
    -----
    Rows of 1e9, 1e300, in single precision, sparse, without an intercept, with a huge target, with
    a huge weight. A few fits with and without the record come first; where they are apart, an
    audit decides, which is wrong with probability 1e-7.
    """
    base = subject.with_epsilon(_EPSILON)
    subject.fit(model=clone(base))  # an error here is no refusal of an extreme record
    paths: dict[str, tuple[Any, float, Any, Any]] = {
        "rows of 1e9": (base, 1e9, None, None),
        "rows of 1e300": (base, 1e300, None, None),
        "float32": (base, 1e30, _single, None),
        "sparse rows": (base, 1e9, csr_array, None),
    }
    if subject.parameters("fit_intercept"):
        other = clone(base).set_params(**dict.fromkeys(subject.parameters("fit_intercept"), False))
        paths["no intercept"] = (other, 1e9, None, None)
        paths["no intercept, sparse"] = (other, 1e9, csr_array, None)
    if has_fit_parameter(subject.estimator, "sample_weight"):
        paths["a huge weight"] = (base, 2.0, None, 1e9)
    for name, (model, size, form, weight) in paths.items():
        if _is_moved(subject, _ByPath(model, form, weight), size):
            raise AssertionError(
                f"{name}: one record moves the model more than the stated cost allows"
            )


def check_small_audit(subject: Subject) -> None:
    """An extreme record within reach moves the model no more than the cost allows.

    Parameters
    ----------
    subject : Subject
        The estimator.
    """
    if not subject.cost().is_finite:
        raise SkipTest("no finite cost to compare with")
    subject.fit(model=subject.with_epsilon(_EPSILON))
    for size in (2.0, 50.0):
        model = _ByPath(subject.with_epsilon(_EPSILON))
        if _refused(subject, model, size):
            continue
        require(
            not _violated(subject, model, size),
            "an audit with one extreme record refutes the stated cost",
        )


def _single(X: Any) -> Any:
    return X.astype(np.float32)


def _data(subject: Subject, size: float) -> tuple[Any, Any]:
    X, y = subject.canary(size)
    if y is not None and np.asarray(y).dtype.kind == "f" and size > 2.0:
        y = y.copy()
        y[-1] = max(1e6, float(np.max(y))) if size < 1e100 else 1e300
    return X, y


def _refused(subject: Subject, model: Any, size: float) -> bool:
    """Whether such a record is an error: then it cannot move anything."""
    try:
        subject.fit(*_data(subject, size), model=clone(model))
    except Exception:  # whatever way it fails, it releases nothing
        return True
    return False


def _is_moved(subject: Subject, model: Any, size: float) -> bool:
    if _refused(subject, model, size):
        return False
    tables = []
    for X, y in (_null(subject), _data(subject, size)):
        fits = [subject.fit(X, y, model=clone(model)).fitted_ for _ in range(_PILOT)]
        rows = [subject.shown(fitted) for fitted in fits]
        shortest = min(map(len, rows))
        tables.append(np.nan_to_num(np.array([row[:shortest] for row in rows])))
    shortest = min(table.shape[1] for table in tables)
    centre = np.median(tables[1][:, :shortest], axis=0)
    first, second = (_features(table[:, :shortest], centre) for table in tables)
    apart = (first.max(axis=0) < second.min(axis=0)) | (second.max(axis=0) < first.min(axis=0))
    return bool(apart.any()) and _violated(subject, model, size, centre)


def _features(shown: NDArray[np.float64], centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is shown, and how near it is to where a record may have drawn it: noise may vanish."""
    with np.errstate(over="ignore"):
        near = np.log10(np.abs(shown[..., : len(centre)] - centre) + 1e-300)
    return np.concatenate([shown, near], axis=-1)


def _null(subject: Subject) -> tuple[Any, Any]:
    return subject.canary(0.0)


def _runs(subject: Subject, claim: PrivacyCost) -> int:
    """Fits after which an attack with one error on either side refutes the claim."""
    runs, delta = float(subject.n_runs), claim.reference_delta
    while runs <= max(_MOST_RUNS, subject.n_runs):
        trials = counted(int(runs))
        both = mean_error_bounds(1, 1, trials, _RISK)
        each = error_bounds(1, trials, 0.5 * _RISK)
        if epsilon_from_errors(each, each, delta) > claim.epsilon(delta) or (
            not claim.has_pair and mu_from_errors(both, both) > claim.gaussian_mu
        ):
            return int(runs)
        runs *= 1.2
    raise SkipTest(
        f"no audit of {_MOST_RUNS} fits could refute a claim of epsilon={claim.epsilon(delta):.3g} "
        f"for one record in place of another: give an estimator with less budget, or larger n_runs"
    )


def _violated(subject: Subject, model: Any, size: float, centre: Any = None) -> bool:
    # Two records against each other are two changes.
    claim = subject.replace_cost(model.estimator)
    (X, y), (_, null) = _data(subject, size), _null(subject)
    records = [
        (row, None if y is None else target)
        for row, target in (
            (np.zeros(X.shape[1]), None if null is None else null[-1]),
            (X[-1], None if y is None else y[-1]),
        )
    ]

    def see(fitted: Any, X: Any, y: Any) -> NDArray[np.float64]:
        shown = subject.shown(fitted.fitted_)
        return shown if centre is None else _features(shown, centre)

    result = audit_epsilon(
        model,
        X[:-1],
        None if y is None else y[:-1],
        neighbor=tuple(records),
        n_runs=_runs(subject, claim),
        confidence=1.0 - _RISK,
        claim=claim,
        observe=see,
    )
    return result.is_violated
