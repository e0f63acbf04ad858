"""Shapes of features: counts of their values by size, and what follows from noisy ones."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

__all__ = ["EDGES", "Shape", "find_shapes"]

FloatArray = NDArray[np.float64]
_HALF = np.array([0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.5, 8.0, 11.0])
# Inner edges of the bins, in standard deviations of standardised features.
EDGES = np.concatenate([-_HALF[::-1], [0.0], _HALF])
EDGES.flags.writeable = False
# Counts below this many standard deviations of their noise are taken for nothing; the second, of
# values beyond the third: there a single false bin would decide.
_FAINT, _FAINT_FAR, _FAR = 3.0, 4.0, 3.0
# Standard deviations that the squared distance from normal counts must exceed its mean by.
_CLEAR = 4.0
_NEAREST = np.minimum(np.abs(np.append(EDGES, np.inf)), np.abs(np.insert(EDGES, 0, -np.inf)))
_LEAST = np.where(_NEAREST < _FAR, _FAINT, _FAINT_FAR)


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution on the line, as a rising function of a normal variable.

    Attributes
    ----------
    levels, values : ndarray of shape (n_knots,)
        The function is linear between these, and of slope 1 beyond them.
    gaps : bool
        Whether there is nothing between some of the values: how far away those at the end are is
        known to the width of a bin only.
    """

    levels: FloatArray
    values: FloatArray
    gaps: bool

    def __call__(self, normal: FloatArray) -> FloatArray:
        """Values with mean 0 and variance 1 over the given standard normal ones.

        Parameters
        ----------
        normal : ndarray of shape (n_points,)
            Draws.
        """
        low, high = self.levels[0], self.levels[-1]
        inner = np.interp(normal, self.levels, self.values)
        values = inner + np.maximum(normal - high, 0.0) + np.minimum(normal - low, 0.0)
        return (values - values.mean()) / values.std()


def find_shapes(counts: FloatArray, sigma: float) -> list[Shape | None]:
    """Shapes of features from noisy counts.

    Parameters
    ----------
    counts : ndarray of shape (n_features, len(EDGES) + 1)
        Numbers of values between the edges.
    sigma : float
        Standard deviation of their noise.

    Returns
    -------
    shapes : list of Shape or None
        None for a feature that may well be normal.

    Notes
    -----
    Counts are drawn to those of a normal distribution by the share of their distance that noise
    explains (James and Stein).
    """
    normal = np.diff(np.concatenate([[0.0], ndtr(EDGES), [1.0]]))
    return [_shape(one, sigma, normal) for one in counts]


def _shape(counts: FloatArray, sigma: float, normal: FloatArray) -> Shape | None:
    expected = normal * max(counts.sum(), sigma)
    away = counts - expected
    distance, freedom = float(away @ away), len(counts) - 2
    if distance <= (freedom + _CLEAR * sqrt(2.0 * freedom)) * sigma**2:
        return None
    weight = 1.0 - freedom * sigma**2 / distance
    drawn = expected + weight * away
    drawn = np.where(drawn > weight * sigma * _LEAST, drawn, 0.0)
    if not drawn.any():
        return None
    kept = np.flatnonzero(drawn)
    first, last = max(kept[0] - 1, 0), min(kept[-1], len(EDGES) - 1)
    # Knots at the edges of the bins that are held; empty ones make jumps.
    below = np.clip(np.cumsum(drawn)[first : last + 1] / drawn.sum(), 1e-9, 1.0 - 1e-9)
    levels = ndtri(below) + 1e-9 * np.arange(last + 1 - first)
    return Shape(levels, EDGES[first : last + 1], len(kept) <= kept[-1] - kept[0])
