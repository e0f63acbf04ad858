"""A stand-in for the population of rows, made from released second moments."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["Population", "denoise", "simulate_population"]

FloatArray = NDArray[np.float64]
_ROWS = 4000
_ROUNDS = 25


@dataclass(frozen=True)
class Population:
    """Simulated rows, the constant column last where there is one.

    Attributes
    ----------
    raw : ndarray of shape (n_points, n_columns)
        As they come, in the units of the solver.
    bounded : ndarray of shape (n_points, n_columns)
        With entries and norms clipped as the solver clips them.
    moments : ndarray of shape (n_columns, n_columns)
        Mean outer product of the rows, clipped to norm 1.
    """

    raw: FloatArray
    bounded: FloatArray
    moments: FloatArray


def denoise(moments: FloatArray, sigma: float) -> FloatArray:
    """Second moments without the part that is likely to be noise: symmetric, no negative values.

    Parameters
    ----------
    moments : ndarray of shape (p, p)
        With noise of standard deviation `sigma` on the diagonal and ``sigma / sqrt(2)`` off it.
    sigma : float
        See above.

    Notes
    -----
    Large eigenvalues that stand out from the noise are kept. The others are drawn to their mean,
    by the share of their spread that noise explains.
    """
    values, vectors = np.linalg.eigh(moments)
    count = len(values)
    # The eigenvalues of the noise alone are within sigma sqrt(2 count).
    while count > 2 and values[count - 1] - values[: count - 1].mean() > sigma * sqrt(3.0 * count):
        count -= 1
    bulk = values[:count]
    spread = float(np.sum((bulk - bulk.mean()) ** 2))
    share = min(1.0, sigma**2 * count * (count + 1) / 2.0 / spread) if spread else 1.0
    values[:count] = (1.0 - share) * bulk + share * bulk.mean()
    return (vectors * np.maximum(values, 1e-6 * abs(values[-1]))) @ vectors.T


def _shortened(rows: FloatArray, norm: float) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows * np.minimum(1.0, norm / np.maximum(lengths, 1e-300))[:, None]


def simulate_population(
    moments: FloatArray,
    *,
    constant: float,
    feature_bound: float,
    slack: float,
    rng: np.random.Generator,
) -> Population:
    """Normal rows whose second moments, once the rows are clipped, are the given ones.

    Parameters
    ----------
    moments : ndarray of shape (p, p)
        Mean outer product of the rows clipped to norm 1, positive definite.
    constant : float
        Value of the last column; 0: there is none, and the features have mean 0.
    feature_bound : float
        Bound of a feature, in the units of the rows.
    slack : float
        Norm that the solver clips rows to.
    rng : numpy Generator
        Draws the rows.
    """
    d = len(moments) - bool(constant)
    half = max(_ROWS // 2, 4 * d)
    z = rng.standard_normal((half, d))
    z = np.concatenate([z, -z])  # the mean is 0, and the covariance is made to be the identity
    z = np.linalg.solve(np.linalg.cholesky(z.T @ z / len(z)), z.T).T
    target, mean = moments[:d, :d], np.zeros(d)
    square = target.copy()
    columns = np.full((len(z), 1), constant)[:, : bool(constant)]
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(square - np.outer(mean, mean))
        features = z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T + mean
        clipped = np.clip(features, -feature_bound, feature_bound)
        unit = _shortened(np.hstack([clipped, columns]), 1.0)
        seen = unit.T @ unit / len(z)
        square = square + target - seen[:d, :d]
        # What is longer than the solver sees cannot be told from its second moments.
        square *= min(1.0, slack**2 / max(np.trace(square), 1e-300))
        if constant:
            mean = mean + (moments[:d, d] - seen[:d, d]) / constant
    room = np.sqrt(slack**2 - constant**2)
    bounded = np.hstack([_shortened(clipped, room), columns])
    return Population(np.hstack([features, columns]), bounded, seen)
