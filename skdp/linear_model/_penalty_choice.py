"""Choice of a ridge penalty from what a fit has released."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from skdp.solvers import SolverSettings, floored
from skdp.uncertainty import ReleasedFit

__all__ = ["Candidates", "candidates", "estimated_risk"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Ridge solutions for several penalties.

    Attributes
    ----------
    coefficients : ndarray of shape (n_candidates, n_columns)
        In the units of the working rows.
    errors : ndarray of shape (n_candidates,)
        Estimates of the mean squared error on new targets of the same rows, in units of the
        target's scale.
    """

    coefficients: FloatArray
    errors: FloatArray


def estimated_risk(
    gram: FloatArray,
    products: FloatArray,
    penalty: FloatArray,
    covariance: FloatArray,
    metric: FloatArray,
) -> tuple[FloatArray, float]:
    """Ridge solution, and Stein's unbiased estimate of how far its predictions are off.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Positive definite.
    products : ndarray of shape (p,)
        Normal, with mean ``gram truth``.
    penalty : ndarray of shape (p,)
        Weights of half the squared coefficients.
    covariance : ndarray of shape (p, p)
        Covariance of `products`.
    metric : ndarray of shape (p, p)
        Of errors: second moments of the rows that predictions are for.

    Returns
    -------
    coefficients : ndarray of shape (p,)
    risk : float
        With e = coefficients - truth, its expectation is that of ``e' metric e``, less
        ``truth' metric truth``.

    References
    ----------
    .. [1] C. M. Stein, "Estimation of the Mean of a Multivariate Normal Distribution", Annals of
       Statistics, 1981.
    """
    # With A the inverse below and G the gram, e'We is t'Wt - 2 t'W truth plus a constant, and
    # t'W truth has the mean of t'W G^-1 b, less trace(A covariance G^-1 W).
    solve, undo = cho_factor(gram + np.diag(penalty)), cho_factor(gram)
    coefficients = cho_solve(solve, products)
    optimism = np.trace(cho_solve(solve, covariance) @ cho_solve(undo, metric))
    fitted = metric @ coefficients
    risk = coefficients @ fitted - 2.0 * cho_solve(undo, products) @ fitted + 2.0 * optimism
    return coefficients, float(risk)


def _step_weights(ratios: FloatArray, averaged: int, settings: SolverSettings) -> FloatArray:
    """How much of the products of X and y, with the noise of each step, is in `products` below.

    Of a direction whose moments the floor exaggerates, a step corrects a part only, and the next
    ones correct it again: they all have weights, which can add up to far more than 1.

    Parameters
    ----------
    ratios : ndarray of shape (n_columns,)
        Moments over what the solver took them to be, by direction.
    averaged : int
        Number of the last steps that are averaged.
    settings : SolverSettings
        Steps and their length; without momentum, as least squares has none here.

    Returns
    -------
    weights : ndarray of shape (n_steps, n_columns)
    """
    count, rate = settings.max_iter, settings.learning_rate
    first = count - averaged
    left = np.clip(1.0 - rate * ratios, -1.0, 1.0)
    sums = np.cumsum(np.vstack([0.0 * left, left ** np.arange(count)[:, None]]), axis=0)
    step = np.arange(count)
    passed = sums[count - 1 - step] - sums[np.maximum(first - 1 - step, 0)]
    return np.asarray(
        ((1.0 - ratios) * rate * passed + (step >= first)[:, None]) / averaged, dtype=np.float64
    )


def candidates(
    fit: ReleasedFit, penalties: FloatArray, *, variance: float, n_rows: float
) -> Candidates:
    """Ridge solutions around a released fit of least squares, with their estimated errors.

    Parameters
    ----------
    fit : ReleasedFit
        The fit, with second moments.
    penalties : ndarray of shape (n_candidates, n_columns)
        Weights of half the squared coefficients.
    variance : float
        Variance of the residuals of the fit's coefficients, in units of the target's scale.
    n_rows : float
        Number of rows, or the sum of their weights.

    Notes
    -----
    A gradient of least squares is ``X'X t - X'y``: second moments and gradients, both released,
    give ``X'y`` with noise whose covariance is known.
    """
    descent, settings = fit.descent, fit.settings
    values, vectors = eigh(fit.moments())
    seen = np.maximum(values, 0.0)
    # As the solver takes them: its coefficients are then the solution for its own penalty.
    values = floored(values, fit.sigma_moments, settings.ridge_floor)
    gram = (vectors * values) @ vectors.T
    products = gram @ descent.origin - descent.gradient
    steps = _step_weights(seen / values, descent.averaged, settings)
    noise = fit.sigma_gradient**2 * np.sum(steps**2, axis=0)
    spread = variance * seen * np.sum(steps, axis=0) ** 2 + noise
    covariance = (vectors * spread) @ vectors.T
    metric = (vectors * seen) @ vectors.T
    found = [estimated_risk(gram, products, p, covariance, metric) for p in penalties]
    t, least = descent.coefficients, np.linalg.solve(gram, products)
    # Sum of the squared targets, as far as the fit explains them and does not.
    squares = n_rows * variance + 2.0 * least @ metric @ t - t @ metric @ t
    risks = np.array([risk for _, risk in found])
    return Candidates(np.array([c for c, _ in found]), (squares + risks) / n_rows)
