"""Audit by one fit with many canaries."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from skdp.accounting import PrivacyCost
from skdp.audit._bounds import one_run_epsilon
from skdp.audit._epsilon import claim_of
from skdp.audit._neighbors import declare_rows

__all__ = ["OneRunResult", "audit_one_run"]

FloatArray = NDArray[np.float64]
# Canaries are that many times as long as the longest row.
_REACH = 3.0


@dataclass(frozen=True, eq=False)
class OneRunResult:
    """What an audit with one run found.

    Attributes
    ----------
    epsilon : float
        Lower bound on epsilon at `delta`.
    delta : float
        Delta that it belongs to.
    confidence : float
        Probability, at least, with which the bound holds.
    claim : PrivacyCost or None
        What the estimator promises; None when it makes no promise that is known.
    n_canaries, n_guesses, n_right : int
        Canaries, guesses about them, and guesses that were right.
    """

    epsilon: float
    delta: float
    confidence: float
    claim: PrivacyCost | None
    n_canaries: int
    n_guesses: int
    n_right: int

    @property
    def is_violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.claim is not None and self.epsilon > self.claim.epsilon(self.delta)


def audit_one_run(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    canaries: tuple[ArrayLike, ArrayLike] | None = None,
    n_canaries: int = 1000,
    n_guesses: int | None = None,
    delta: float | None = None,
    confidence: float = 0.99,
    claim: PrivacyCost | None = None,
    score: Callable[[Any, Any, Any], ArrayLike] | None = None,
    random_state: Any = None,
) -> OneRunResult:
    """Bound the privacy loss of an estimator from below, with a single fit.

    Every canary is put among the data, or left out, by a fair coin. From the fitted model the
    auditor guesses which canaries were there; too many right guesses refute the claim.

    Parameters
    ----------
    estimator : classifier or regressor
        Any estimator or pipeline with scikit-learn's interface. It is cloned; every
        `random_state` in it is set to None and, where there is an `n_rows`, the number of
        rows (with all canaries) is declared.
    X : array-like of shape (n_samples, n_features)
        Data that are always there; may have no rows at all.
    y : array-like of shape (n_samples,)
        Their targets.
    canaries : tuple of (X, y), default=None
        Records to include or not. None: `n_canaries` long rows of random signs with random
        targets among those in `y`.
    n_canaries : int, default=1000
        How many to make.
    n_guesses : int, default=None
        How many guesses are taken, half of them "there" (highest scores) and half "not there"
        (lowest). None: half of the canaries. Fix it before you look at results.
    delta : float, default=None
        Delta at which epsilon is bounded; None: that of the claim, or 1e-5.
    confidence : float, default=0.99
        Probability with which the bound holds.
    claim : PrivacyCost, default=None
        What is promised. None: `privacy_cost` of the estimator, if it knows one.
    score : callable, default=None
        Function of (fitted, X, y) that gives one number for every canary, larger for those that
        seem to have been there. None: the decision for the right class, or minus the squared
        error.
    random_state : int, RandomState instance or None, default=None
        Seed of the coins and canaries (never of the estimator's noise).

    Returns
    -------
    result : OneRunResult
        The bound and the counts behind it.

    Raises
    ------
    ValueError
        If a parameter is out of range, or `score` does not give one number for every canary.

    See Also
    --------
    audit_epsilon : Sharper bounds from many runs.

    Notes
    -----
    The relation is "add_or_remove" with as many records at stake as there are canaries. A claim
    under "replace" is held to the same bound: how many canaries were there is public to it, which
    tells next to nothing about any one of many.

    **Privacy.** An audit is made on data that are public or made up; its result is not private.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS
    2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skdp.audit import audit_one_run
    >>> X, y = np.random.default_rng(0).normal(size=(50, 400)), np.arange(50) % 2
    >>> audit_one_run(LinearRegression(), X, y, n_canaries=200, random_state=0).epsilon > 1.0
    True
    """
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be in [0.5, 1), got {confidence!r}")
    rng = check_random_state(random_state)
    data, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
    if canaries is None:
        extra, labels = _made_up(estimator, data, targets, n_canaries, rng)
    else:
        extra, labels = np.asarray(canaries[0], dtype=np.float64), np.asarray(canaries[1])
    m = len(extra)
    guesses = m // 2 if n_guesses is None else n_guesses
    if not 1 <= guesses <= m:
        raise ValueError(f"n_guesses must be between 1 and the {m} canaries, got {n_guesses!r}")
    claim = claim_of(estimator) if claim is None else claim
    if delta is None:
        delta = claim.reference_delta if claim is not None else 1e-5

    included = rng.uniform(size=m) < 0.5
    model = declare_rows(estimator, len(data) + m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model.fit(
            np.vstack([data, extra[included]]), np.concatenate([targets, labels[included]])
        )
    scores = np.asarray((score or _fit_of)(fitted, extra, labels), dtype=np.float64)
    if scores.shape != (m,):
        # Sorted by rows, other shapes would turn into guesses that are all right.
        raise ValueError(
            f"score must give one number for each of the {m} canaries, an array of shape ({m},), "
            f"got {scores.shape}"
        )
    order = np.argsort(scores, kind="stable")
    lowest, highest = order[: guesses // 2], order[m - (guesses - guesses // 2) :]
    right = int(np.sum(~included[lowest]) + np.sum(included[highest]))
    return OneRunResult(
        one_run_epsilon(m, guesses, right, delta, 1.0 - confidence),
        delta,
        confidence,
        claim,
        m,
        guesses,
        right,
    )


def _made_up(
    estimator: Any, X: FloatArray, y: NDArray, count: int, rng: np.random.RandomState
) -> tuple[FloatArray, NDArray]:
    """Long rows of random signs, with the most extreme targets."""
    longest = float(np.sqrt(np.max(np.sum(X**2, axis=1), initial=0.0))) or 1.0
    rows = rng.choice([-1.0, 1.0], size=(count, X.shape[1]))
    rows *= _REACH * longest / np.sqrt(X.shape[1])
    if not len(y):
        raise ValueError("without any rows there are no targets to take: give `canaries`")
    if is_classifier(estimator):
        kinds = np.unique(y)
    else:
        kinds = np.array([y.min(axis=0), y.max(axis=0)])
    return rows, kinds[rng.randint(len(kinds), size=count)]


def _fit_of(fitted: Any, X: FloatArray, y: NDArray) -> FloatArray:
    """How well the model fits each record."""
    if not is_classifier(fitted):
        if not hasattr(fitted, "predict"):
            raise ValueError(
                f"{type(fitted).__name__} predicts nothing: give a function as `score`"
            )
        missed = np.reshape(fitted.predict(X), y.shape) - y
        return -np.sum(np.square(missed).reshape(len(y), -1), axis=1)
    order = np.argsort(fitted.classes_)
    place = order[np.searchsorted(fitted.classes_, y, sorter=order)]
    if hasattr(fitted, "decision_function"):
        decision = np.asarray(fitted.decision_function(X))
        if decision.ndim == 1:
            return np.where(place == 1, decision, -decision)
    else:
        decision = np.asarray(fitted.predict_proba(X))
    own = decision[np.arange(len(y)), place]
    others = decision.copy()
    others[np.arange(len(y)), place] = -np.inf
    return own - others.max(axis=1)
