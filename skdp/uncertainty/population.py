"""A stand-in for the population of rows, made from released second moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from skdp.uncertainty.shapes import Shape

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


def _reshape(features: FloatArray, shapes: Sequence[Shape | None]) -> None:
    """Give columns of normal features other shapes, with their mean and variance, in place."""
    for column, shape in zip(features.T, shapes, strict=True):
        deviation = float(column.std())
        if shape is not None and deviation:
            column[:] = deviation * shape(column / deviation)


def simulate_population(
    moments: FloatArray,
    *,
    constant: float,
    feature_bound: float,
    slack: float,
    rng: np.random.Generator,
    shapes: Sequence[Shape | None] | None = None,
) -> Population:
    """Rows whose second moments, once the rows are clipped, are the given ones.

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
    shapes : sequence of Shape or None, default=None
        Shapes of the features; None for a normal one, and for all.
    """
    d = len(moments) - bool(constant)
    half = max(_ROWS // 2, 4 * d)
    z = rng.standard_normal((half, d))
    z = np.concatenate([z, -z])  # the mean is 0, and the covariance is made to be the identity
    z = np.linalg.solve(np.linalg.cholesky(z.T @ z / len(z)), z.T).T
    target, mean = moments[:d, :d], np.zeros(d)
    square = target.copy()
    columns = np.full((len(z), 1), constant)[:, : bool(constant)]
    bounds = np.full(d, feature_bound)
    if shapes is not None:
        # Of a rare category, what the bound cuts off is a matter of its unit.
        bounds[[shape is not None and shape.gaps for shape in shapes]] = np.inf
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(square - np.outer(mean, mean))
        features = z @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        if shapes is not None:
            _reshape(features, shapes)
        features += mean
        clipped = np.clip(features, -bounds, bounds)
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
