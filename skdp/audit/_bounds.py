"""Lower bounds on the privacy loss, from counts of right and wrong guesses."""

from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri
from scipy.stats import binom

__all__ = [
    "counted",
    "epsilon_from_errors",
    "error_bounds",
    "mean_error_bounds",
    "mu_from_errors",
    "one_run_epsilon",
]

FloatArray = NDArray[np.float64]
# Part of the runs that finds the attack, and the part that is enough from so many runs on; the
# others count its errors.
_TRAINING, _ENOUGH, _OF_MANY = 0.3, 1500, 0.15


def counted(n_runs: int) -> int:
    """How many runs on each side count errors; the others find the attack.

    Parameters
    ----------
    n_runs : int
        Runs on both sides together.
    """
    each = n_runs // 2
    return each - min(max(4, int(_TRAINING * each)), max(_ENOUGH, int(_OF_MANY * each)))


def error_bounds(errors: ArrayLike, trials: int, risk: float) -> FloatArray:
    """Upper bound on the probability of an error (Clopper and Pearson).

    Parameters
    ----------
    errors : array-like of int
        Errors made.
    trials : int
        Out of so many independent trials.
    risk : float
        Probability, at most, that the bound is below the truth.

    Returns
    -------
    bounds : ndarray
        One for every number of errors.
    """
    made = np.asarray(errors, dtype=np.float64)
    right = np.maximum(trials - made, 0.5)  # kept positive where every trial was an error
    # By symmetry from the small tail, which older scipy inverts better than the one near 1.
    return np.where(made < trials, 1.0 - betaincinv(right, made + 1.0, risk), 1.0)


def mean_error_bounds(
    false_alarms: ArrayLike, misses: ArrayLike, trials: int, risk: float
) -> FloatArray:
    """Upper bound on the mean of the two error rates of a test.

    Of all pairs of rates with one mean, equal ones make few errors in total likeliest, as long as
    the errors that are expected exceed those that are counted by one (Hoeffding 1956, theorem 4).
    The errors of both sides together are then bounded as those of one binomial. Where the two
    rates are about equal this is sharper than a bound for each of them: it takes a quarter of the
    runs.

    Parameters
    ----------
    false_alarms, misses : array-like of int
        Errors made on either side.
    trials : int
        Out of so many independent trials on each side.
    risk : float
        Probability, at most, that the bound is below the truth.

    Returns
    -------
    bounds : ndarray
        One for every pair of numbers.

    References
    ----------
    W. Hoeffding, "On the distribution of the number of successes in independent trials", Annals
    of Mathematical Statistics 27, 1956.
    """
    errors = np.asarray(false_alarms, dtype=np.float64) + np.asarray(misses, dtype=np.float64)
    least = (errors + 1.0) / (2.0 * trials)
    return np.minimum(np.maximum(error_bounds(errors, 2 * trials, risk), least), 1.0)


def mu_from_errors(false_alarms: ArrayLike, misses: ArrayLike) -> FloatArray:
    """Least mu of Gaussian differential privacy that allows a pair of error rates.

    A mu-GDP mechanism has ``misses >= Phi(Phi^-1(1 - false_alarms) - mu)`` for every test.

    Parameters
    ----------
    false_alarms, misses : array-like
        Upper bounds on the two error rates of a test.

    Returns
    -------
    mu : ndarray
        At least 0.
    """
    return np.maximum(-ndtri(np.asarray(false_alarms)) - ndtri(np.asarray(misses)), 0.0)


def epsilon_from_errors(false_alarms: ArrayLike, misses: ArrayLike, delta: float) -> FloatArray:
    """Least epsilon, at a delta, that allows a pair of error rates.

    An (epsilon, delta)-private mechanism has ``1 - misses <= exp(epsilon) false_alarms + delta``
    for every test, and the same with the two data sets exchanged.

    Parameters
    ----------
    false_alarms, misses : array-like
        Upper bounds on the two error rates of a test.
    delta : float
        Delta of the claim.

    Returns
    -------
    epsilon : ndarray
        At least 0.
    """
    first, second = np.asarray(false_alarms), np.asarray(misses)
    with np.errstate(divide="ignore"):
        ways = [
            np.log(np.maximum(1.0 - delta - b, 0.0)) - np.log(a)
            for a, b in ((first, second), (second, first))
        ]
    return np.maximum(np.maximum(*ways), 0.0)


def one_run_epsilon(
    n_canaries: int, n_guesses: int, n_right: int, delta: float, risk: float
) -> float:
    """Lower bound on epsilon from guesses about many canaries in one run.

    Parameters
    ----------
    n_canaries : int
        Records that were each included or left out by a fair coin.
    n_guesses : int
        Records that the auditor took a guess at.
    n_right : int
        Guesses that were right.
    delta : float
        Delta of the claim.
    risk : float
        Probability, at most, that the bound is above the truth.

    Returns
    -------
    epsilon : float
        Largest epsilon that is refuted; 0 when none is.

    References
    ----------
    T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS
    2023, Theorem 5.2.
    """
    if _p_value(0.0, n_canaries, n_guesses, n_right, delta) > risk:
        return 0.0
    low, high = 0.0, 1.0
    while _p_value(high, n_canaries, n_guesses, n_right, delta) <= risk:
        low, high = high, 2.0 * high
        if high > 64.0:
            return inf
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        refuted = _p_value(middle, n_canaries, n_guesses, n_right, delta) <= risk
        low, high = (middle, high) if refuted else (low, middle)
    return low


def _p_value(epsilon: float, m: int, guesses: int, right: int, delta: float) -> float:
    """Probability, at most, of so many right guesses under (epsilon, delta)."""
    p = 1.0 / (1.0 + exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, p))
    if not right or not delta:
        return min(tail, 1.0)
    # Every record may be exposed with probability delta; exposing i of them helps as much as i
    # guesses for sure, which costs a factor of 1 / i by Markov's inequality.
    steps = np.arange(1, right + 1)
    gained = binom.cdf(right - 1, guesses, p) - binom.cdf(right - 1 - steps, guesses, p)
    return min(tail + 2.0 * m * delta * float(np.max(gained / steps)), 1.0)
