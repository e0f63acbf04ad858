"""Audit by many runs on two neighbouring data sets."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from skdp._progress import with_progress
from skdp.accounting import PrivacyCost
from skdp.audit._bounds import (
    counted,
    epsilon_from_errors,
    error_bounds,
    mean_error_bounds,
    mu_from_errors,
)
from skdp.audit._neighbors import (
    Neighbors,
    candidates,
    declare_rows,
    divides_rows,
    neighbors_for,
)
from skdp.audit._observe import Observer, observer_for
from skdp.cost import privacy_cost

__all__ = ["AuditResult", "audit_epsilon", "claim_of"]

FloatArray = NDArray[np.float64]
# Runs of a pilot on each side, and as many as are enough where a claim is so weak.
_PILOT_RUNS, _FEW_RUNS, _WEAK = 80, 16, 4.0
# Risk at which thresholds are compared: small enough for the rare errors of extreme thresholds
# not to be taken at their word, and not so small that few runs show nothing at all.
_COMPARED_AT = 1e-4
_BATCHES = 40


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found.

    Attributes
    ----------
    mu : float
        Lower bound on mu of Gaussian differential privacy: the estimator is mu'-GDP for no
        smaller mu'.
    epsilon : float
        Lower bound on epsilon at `delta`; holds whatever the mechanism is.
    delta : float
        Delta that `epsilon` belongs to.
    confidence : float
        Probability, at least, with which each of the two bounds holds.
    claim : PrivacyCost or None
        What the estimator promises; None when it makes no promise that is known.
    neighbor : str
        How the two data sets differ.
    n_runs : int
        Number of runs, on both data sets together.
    scores : tuple of two ndarrays
        Scores of the attack in the runs that were not used to find it: without the record, and
        with it.
    thresholds : tuple of two floats
        Scores above which the attack guesses that the record was there, for the bound on mu and
        for that on epsilon.
    """

    mu: float
    epsilon: float
    delta: float
    confidence: float
    claim: PrivacyCost | None
    neighbor: str
    n_runs: int
    scores: tuple[FloatArray, FloatArray] = field(repr=False)
    thresholds: tuple[float, float] = field(repr=False)
    together: bool = field(repr=False)

    def at_confidence(self, confidence: float) -> AuditResult:
        """Return the bounds that hold with another confidence, from the same runs.

        Parameters
        ----------
        confidence : float
            Probability with which each bound holds.

        Returns
        -------
        result : AuditResult
            With bounds that are higher for less confidence.

        Raises
        ------
        ValueError
            If it is not in [0.5, 1).
        """
        _check_confidence(confidence)
        risk = 1.0 - confidence
        mu = _mu_bound(self.scores, self.thresholds[0], self.together, risk)
        epsilon = _epsilon_bound(self.scores, self.thresholds[1], self.delta, risk)
        return replace(self, mu=mu, epsilon=epsilon, confidence=confidence)

    @property
    def is_violated(self) -> bool:
        """Whether the claim is refuted: wrongly so with a probability below ``2 (1 - confidence)``.

        False where no claim is known.
        """
        if self.claim is None or not self.claim.is_finite:
            return False
        gaussian = not (self.claim.epsilon0 or self.claim.delta0)
        beyond = gaussian and self.mu > self.claim.gaussian_mu
        return bool(beyond or self.epsilon > self.claim.epsilon(self.delta))

    @property
    def recovered(self) -> float:
        """Share of the claimed mu that the attack recovered; NaN without a claim."""
        if self.claim is None or not self.claim.is_finite or self.claim.gaussian_mu == 0.0:
            return float("nan")
        return self.mu / self.claim.gaussian_mu


def audit_epsilon(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    neighbor: Any = None,
    n_runs: int = 2000,
    delta: float | None = None,
    confidence: float = 0.99,
    claim: PrivacyCost | None = None,
    neighboring: str | None = None,
    observe: Any = "auto",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AuditResult:
    """Bound the privacy loss of an estimator from below, by attacking it.

    The estimator is fitted many times on two neighbouring data sets. An attack is trained on
    a part of the runs (a linear discriminant of all that a fitted model shows, and a threshold);
    its errors on the other runs bound, with `confidence`, how private the estimator can be.

    Parameters
    ----------
    estimator : estimator
        Any estimator or pipeline with scikit-learn's interface, private or not. It is cloned;
        every `random_state` in it is set to None and, where there is an `n_rows`, the number of
        rows is declared.
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Data that both sides share. Small sets of small rows give the sharpest audits: the less
        the other records move the model, the more a canary does.
    y : array-like of shape (n_samples,), default=None
        Targets.
    neighbor : int, tuple or None, default=None
        The record in which the data sets differ. An int: this row of `X` is removed. A tuple
        ``(x, y)``: this record is added, ``(x,)`` without targets; under "replace"
        ``((x0, y0), (x1, y1))``: the second in place of the first. None: several extreme records
        are tried in short pilots, of 160 fits each, and the one that moves the model most is
        taken; in columns that are not numbers it has what the first rows have.
    n_runs : int, default=2000
        Number of fits on both data sets together, pilots not counted.
    delta : float, default=None
        Delta at which epsilon is bounded; None: that of the claim, or 1e-5.
    confidence : float, default=0.99
        Probability with which each bound holds.
    claim : PrivacyCost, default=None
        What is promised. None: `privacy_cost` of the estimator, if it knows one.
    neighboring : {"add_or_remove", "replace"}, default=None
        Neighbouring relation. None: that of the claim, or "add_or_remove". Under "replace" a claim
        for "add_or_remove" counts twice; searches and other estimators that divide the rows by
        their places can be audited in this way only.
    observe : {"auto", "attributes", "outputs"} or callable, default="auto"
        What the attacker sees: all fitted numbers, what the model says about the rows (where
        there are no fitted numbers), or a function of ``(fitted, X, y)`` that returns numbers;
        on both sides it gets the data with the record.
    n_jobs : int, default=None
        Number of processes.
    verbose : int, default=0
        Above 0 a progress bar is written to the standard error.

    Returns
    -------
    result : AuditResult
        The bounds, the claim and the scores of the attack.

    Raises
    ------
    ValueError
        If a parameter is out of range, the runs are not comparable, or the estimator divides the
        rows by their places and is not audited under "replace".

    See Also
    --------
    audit_one_run : An audit by a single fit with many canaries.

    Notes
    -----
    A bound near zero proves nothing: a better attack may exist. A bound above the claim is a
    proof, up to the stated confidence, that the claim is wrong. Under "add_or_remove" the two
    sides differ in their number of rows: an estimator without `n_rows` that shows this number, or
    divides by it, is refuted even where its claim takes the number as public, as `PrivacyCost`
    does; ``neighboring="replace"`` keeps it the same.

    Errors are bounded as binomial numbers (Clopper and Pearson): each of the two rates or, for mu
    where that promises more, their mean, which is at least ``Phi(-mu / 2)``.

    **Privacy.** An audit is made on data that are public or made up; its result is not private.

    References
    ----------
    M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private machine learning",
    NeurIPS 2020. M. Nasr et al., "Tight auditing of differentially private machine learning",
    USENIX Security 2023 (the test for Gaussian differential privacy).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRidge
    >>> from skdp.audit import audit_epsilon
    >>> X, y = np.zeros((20, 2)), np.zeros(20)
    >>> model = DPRidge(epsilon=16.0, y_bounds=(-1.0, 1.0))
    >>> result = audit_epsilon(model, X, y, neighbor=([0.0, 0.0], 9.0), n_runs=400)
    >>> 0.0 < result.mu < result.claim.mu and not result.is_violated
    True
    """
    if not (isinstance(n_runs, int) and n_runs >= 20):
        raise ValueError(f"n_runs must be an integer of at least 20, got {n_runs!r}")
    _check_confidence(confidence)
    claim, relation = _promise(claim_of(estimator) if claim is None else claim, neighboring)
    if claim is not None and relation == "add_or_remove" and divides_rows(estimator):
        raise ValueError(
            "the estimator divides the rows by their places, which their number moves and which "
            "is taken as public: audit with neighboring='replace'"
        )
    if delta is None:
        delta = claim.reference_delta if claim is not None else 1e-5
    data: Any = X
    if issparse(X):
        data = data.tocsr()
    elif not hasattr(X, "iloc"):
        data = np.asarray(X)
    see = observer_for(observe)
    runs = Runner(estimator, see, n_jobs, verbose)
    if neighbor is None:
        few = claim is not None and claim.gaussian_mu >= _WEAK
        pair = _most_moving(runs, data, y, relation, _FEW_RUNS if few else _PILOT_RUNS)
    else:
        pair = neighbors_for(data, y, neighbor, relation)
    sides = runs.both(pair, n_runs // 2)
    n_training = n_runs // 2 - counted(n_runs)
    attack = _Attack(*(side[:n_training] for side in sides))
    scores = (attack.score(sides[0][n_training:]), attack.score(sides[1][n_training:]))
    found = (attack.score(sides[0][:n_training]), attack.score(sides[1][:n_training]))
    for_mu, together = _test_for_mu(found)
    for_epsilon = _threshold_for_epsilon(found, delta, for_mu)
    risk = 1.0 - confidence
    return AuditResult(
        mu=_mu_bound(scores, for_mu, together, risk),
        epsilon=_epsilon_bound(scores, for_epsilon, delta, risk),
        delta=delta,
        confidence=confidence,
        claim=claim,
        neighbor=pair.label,
        n_runs=2 * (n_runs // 2),
        scores=scores,
        thresholds=(for_mu, for_epsilon),
        together=together,
    )


def _check_confidence(confidence: float) -> None:
    if not 0.5 <= confidence < 1.0:
        raise ValueError(f"confidence must be in [0.5, 1), got {confidence!r}")


def _promise(claim: PrivacyCost | None, neighboring: str | None) -> tuple[PrivacyCost | None, str]:
    """What is promised under the relation that is audited, and that relation."""
    if claim is None or neighboring in (None, claim.neighboring):
        return claim, neighboring or (claim.neighboring if claim else "add_or_remove")
    if neighboring == "replace":
        return claim.to_replace(), neighboring
    raise ValueError(
        f"the claim is for neighboring={claim.neighboring!r} and says nothing about {neighboring!r}"
    )


def claim_of(estimator: Any) -> PrivacyCost | None:
    """What an estimator promises before a fit; None when no promise is known.

    Parameters
    ----------
    estimator : estimator
        Any estimator.
    """
    try:
        cost = privacy_cost(clone(estimator))
    except (TypeError, ValueError, NotImplementedError):
        return None
    return cost if cost.is_finite else None


class Runner:
    """Fits an estimator on given data and shows what is seen of it.

    Parameters
    ----------
    estimator : estimator
        The estimator under audit.
    see : callable
        What is observed.
    n_jobs : int or None
        Number of processes.
    verbose : int
        Whether to draw a progress bar.
    """

    def __init__(self, estimator: Any, see: Observer, n_jobs: int | None, verbose: int) -> None:
        self.estimator, self._see = estimator, see
        self._n_jobs, self._verbose = n_jobs, verbose

    def both(self, pair: Neighbors, n_runs: int, *, quiet: bool = False) -> list[FloatArray]:
        """Observations on the two sides, one row per run.

        Parameters
        ----------
        pair : Neighbors
            The data sets.
        n_runs : int
            Runs on each of them.
        quiet : bool, default=False
            Whether to draw no bar.
        """
        model = declare_rows(self.estimator, pair.n_rows)
        size = max(1, -(-n_runs // _BATCHES))
        sizes = [min(size, n_runs - start) for start in range(0, n_runs, size)]
        tasks = [(side, count) for count in sizes for side in (0, 1)]
        jobs = (
            delayed(_observations)(model, *pair.sides[side], pair.sides[1], self._see, count)
            for side, count in tasks
        )
        results: Iterable[list[FloatArray]] = Parallel(n_jobs=self._n_jobs, return_as="generator")(
            jobs
        )
        if self._verbose and not quiet:
            results = with_progress(results, len(tasks), "batches of fits")
        sides: list[list[FloatArray]] = [[], []]
        for (side, _), rows in zip(tasks, results, strict=True):
            sides[side] += rows
        return _comparable(sides)


def _observations(
    model: Any, X: Any, y: Any, shown: tuple[Any, Any], see: Observer, count: int
) -> list[FloatArray]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few dozen rows are never enough to learn from
        for _ in range(count):
            fresh = clone(model)
            fitted = fresh.fit(X) if y is None else fresh.fit(X, y)
            found.append(np.asarray(see(fitted, *shown), dtype=np.float64).ravel())
    return found


def _comparable(sides: list[list[FloatArray]]) -> list[FloatArray]:
    """Rows of equal length: what differs in length shows its length, and its beginning."""
    lengths = {len(row) for side in sides for row in side}
    shortest = min(lengths)
    if not max(lengths):
        raise ValueError("nothing is seen of the fitted estimator: give a function as `observe`")
    made = []
    for side in sides:
        rows = np.array([row[:shortest] for row in side])
        if len(lengths) > 1:
            rows = np.column_stack([rows, [len(row) for row in side]])
        made.append(np.nan_to_num(rows, nan=0.0, posinf=1e300, neginf=-1e300))
    return made


def _most_moving(runs: Runner, X: Any, y: Any, relation: str, n_runs: int) -> Neighbors:
    best, moved, refusal = None, -np.inf, None
    for label, neighbor in candidates(runs.estimator, X, y, relation):
        pair = neighbors_for(X, y, neighbor, relation)
        pair.label = label
        try:
            sides = runs.both(pair, n_runs, quiet=True)
        except ValueError as error:  # a canary that the estimator refuses
            refusal = error
            continue
        half = n_runs // 2
        attack = _Attack(sides[0][:half], sides[1][:half])
        first, second = attack.score(sides[0][half:]), attack.score(sides[1][half:])
        spread = np.sqrt(0.5 * (first.var() + second.var())) + 1e-100
        if (distance := (second.mean() - first.mean()) / spread) > moved:
            best, moved = pair, distance
    if best is None:
        raise ValueError(
            "the estimator refused every canary, the last one for what the error above says: give "
            "one as `neighbor`"
        ) from refusal
    return best


class _Attack:
    """Linear discriminant between two sets of observations, robust to long tails."""

    def __init__(self, without: FloatArray, with_record: FloatArray) -> None:
        both = np.vstack([without, with_record])
        self._centre = np.median(both, axis=0)
        spread = np.median(np.abs(both - self._centre), axis=0)
        fallback = np.abs(both - self._centre).mean(axis=0)
        self._scale = np.where(spread > 0.0, spread, np.where(fallback > 0.0, fallback, 1.0))
        first, second = self._standard(without), self._standard(with_record)
        centred = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
        n, p = centred.shape
        covariance = centred.T @ centred / n
        # Shrunk the more, the fewer the runs for the columns.
        weight = min(1.0, 2.0 * p / n)
        diagonal = np.diag(np.diag(covariance))
        shrunk = (1.0 - weight) * covariance + weight * diagonal
        shrunk[np.diag_indices(p)] += 1e-9 * max(1.0, float(np.trace(shrunk)) / p)
        self._direction = np.linalg.solve(shrunk, second.mean(axis=0) - first.mean(axis=0))

    def _standard(self, rows: FloatArray) -> FloatArray:
        return np.clip((rows - self._centre) / self._scale, -30.0, 30.0)

    def score(self, rows: FloatArray) -> FloatArray:
        return self._standard(rows) @ self._direction


def _errors(sides: tuple[FloatArray, FloatArray], at: FloatArray) -> tuple[Any, Any]:
    """False alarms and misses of the test that guesses "there" above a threshold."""
    return np.sum(sides[0][:, None] > at, axis=0), np.sum(sides[1][:, None] <= at, axis=0)


def _between(scores: FloatArray) -> FloatArray:
    """Candidates half-way between neighbouring scores: evenly by rank, and in the widest gap.

    A threshold that is itself a score would leave equal scores to rounding.
    """
    values = np.unique(scores)
    if len(values) == 1:
        return values
    gaps, middles = np.diff(values), values[:-1] + 0.5 * np.diff(values)
    ranks = np.linspace(0.01, 0.99, 99) * (len(middles) - 1)
    return middles[np.union1d(ranks.astype(int), [np.argmax(gaps)])]


def _test_for_mu(training: tuple[FloatArray, FloatArray]) -> tuple[float, bool]:
    """The test that promises the highest bound on mu, from the training runs."""
    at, trials = _between(np.concatenate(training)), len(training[0])
    errors = _errors(training, at)
    # Not cut off at zero: where all bounds are below it, the least bad one is still the best.
    each = -sum(ndtri(error_bounds(made, trials, _COMPARED_AT)) for made in errors)
    mean = -2.0 * ndtri(mean_error_bounds(*errors, trials, _COMPARED_AT))
    together = bool(np.max(mean) >= np.max(each))
    return float(at[np.argmax(mean if together else each)]), together


def _threshold_for_epsilon(
    training: tuple[FloatArray, FloatArray], delta: float, otherwise: float
) -> float:
    """The threshold that promises the highest bound on epsilon, or another if none does."""
    at = _between(np.concatenate(training))
    alarms, misses = (
        error_bounds(made, len(training[0]), _COMPARED_AT) for made in _errors(training, at)
    )
    bounds = epsilon_from_errors(alarms, misses, delta)
    return float(at[np.argmax(bounds)]) if np.any(bounds > 0.0) else otherwise


def _mu_bound(
    scores: tuple[FloatArray, FloatArray], threshold: float, together: bool, risk: float
) -> float:
    """Bound on mu that is wrong with probability `risk` at most."""
    errors, trials = _errors(scores, np.array([threshold])), len(scores[0])
    if together:
        alarms = misses = mean_error_bounds(*errors, trials, risk)
    else:
        alarms, misses = (error_bounds(made, trials, 0.5 * risk) for made in errors)
    return float(mu_from_errors(alarms, misses)[0])


def _epsilon_bound(
    scores: tuple[FloatArray, FloatArray], threshold: float, delta: float, risk: float
) -> float:
    """Bound on epsilon that is wrong with probability `risk` at most."""
    errors, trials = _errors(scores, np.array([threshold])), len(scores[0])
    alarms, misses = (error_bounds(made, trials, 0.5 * risk) for made in errors)
    return float(epsilon_from_errors(alarms, misses, delta)[0])
