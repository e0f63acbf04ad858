"""Confidence intervals of coefficients, by a parametric bootstrap on released values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.uncertainty.outcomes import Outcomes
from skdp.uncertainty.population import Population, denoise, simulate_population
from skdp.uncertainty.released import ReleasedFit
from skdp.uncertainty.replicas import Replicas
from skdp.uncertainty.shapes import Shape, find_shapes

__all__ = ["Bootstrap", "ConfidenceInterval", "bootstrap"]

FloatArray = NDArray[np.float64]
_PRECONDITIONERS = 20
# Outputs that add up to nothing have directions in which no fit moves.
_NO_SLOPE = 1e-6
# Steps towards the truth without noise, and with that of the preconditioners.
_ROUNDS = (1, 1, 1, 1, 1, _PRECONDITIONERS)
_SHAPE_DRAWS = 8


@dataclass(frozen=True, eq=False)
class ConfidenceInterval:
    """Intervals that hold the coefficients of the population, each with a given probability.

    Attributes
    ----------
    level : float
        The probability.
    coef : ndarray of shape (n_features, 2) or (n_outputs, n_features, 2)
        Lower and upper ends for the entries of ``coef_``. The middle is the coefficient less
        its estimated bias, by clipping for instance, and not the coefficient itself.
    intercept : ndarray of shape (2,) or (n_outputs, 2)
        The same for ``intercept_``; zeros where the model has none.
    coef_std : ndarray of the shape of ``coef_``
        Standard errors of the middles: sampling and the noise of the mechanism together.
    intercept_std : float or ndarray of the shape of ``intercept_``
        The same for the intercept.
    """

    level: float
    coef: FloatArray
    intercept: FloatArray
    coef_std: FloatArray
    intercept_std: FloatArray

    def __repr__(self) -> str:
        """State the level and the shapes."""
        return f"ConfidenceInterval(level={self.level:g}, coef of shape {self.coef.shape})"


@dataclass(frozen=True)
class Bootstrap:
    """What simulated fits say of one fit, in its units.

    Attributes
    ----------
    centre : ndarray of the shape of the coefficients
        Coefficients less their bias.
    deviation : ndarray of the same shape
        Standard deviation of the centre.
    least_slope : float
        How far the average fit follows the truth in the direction where it follows least.
    """

    centre: FloatArray
    deviation: FloatArray
    least_slope: float


def bootstrap(
    fit: ReleasedFit, outcomes: Outcomes, *, n_draws: int, random_state: Any = None
) -> Bootstrap:
    """Bias and spread of fits like the given one.

    Parameters
    ----------
    fit : ReleasedFit
        The fit. It has second moments.
    outcomes : Outcomes
        What its targets may have been drawn from.
    n_draws : int
        Number of simulated fits, rounded up to a multiple of 40.
    random_state : int, numpy Generator or None, default=None
        For the simulation.

    Notes
    -----
    First the truth is sought for which the average fit is the given one. Then fits are drawn
    at that truth; how the average fit moves with the truth turns their spread into that of the
    truth.
    """
    rng = np.random.default_rng(random_state)
    shapes = None if fit.shapes is None else find_shapes(fit.shapes, fit.sigma_shapes)
    population = _population(fit, shapes, rng)
    count = _PRECONDITIONERS
    replicas = Replicas(fit, population, outcomes, count, rng)
    found = fit.descent.coefficients
    truth = _truth(replicas, found, _ROUNDS)
    n_runs = -(-n_draws // (2 * count)) * 2 * count
    half = replicas.sampling_noise(truth, n_runs // 2)[:, None]
    errors = np.concatenate([half, -half], axis=1).reshape(n_runs, *truth.shape)
    draws = replicas.run(np.repeat(truth[None], n_runs, axis=0), errors)
    average = draws.mean(axis=0)
    spread = (draws - average).reshape(n_runs, -1)
    slope = _slope(replicas, truth, spread.std(axis=0))
    deviation = (spread @ np.linalg.pinv(slope, rcond=_NO_SLOPE).T).std(axis=0)
    slopes = np.linalg.svd(slope, compute_uv=False)
    least = float(slopes[slopes > _NO_SLOPE * slopes[0]][-1])
    deviation = deviation.reshape(truth.shape)
    if shapes is not None and any(shapes):
        deviation = np.hypot(deviation, _shape_deviation(fit, outcomes, truth, rng))
    return Bootstrap(truth + found - average, deviation, least)


def _population(
    fit: ReleasedFit, shapes: Sequence[Shape | None] | None, rng: np.random.Generator
) -> Population:
    return simulate_population(
        denoise(fit.moments(), fit.sigma_moments) / fit.n_rows,
        constant=fit.constant,
        feature_bound=fit.feature_bound * fit.scale,
        slack=fit.settings.row_slack,
        rng=rng,
        shapes=shapes,
    )


def _truth(
    replicas: Replicas, truth: FloatArray, rounds: Sequence[int], start: FloatArray | None = None
) -> FloatArray:
    """The truth for which the average fit is the given one."""
    found, truth = truth, (truth if start is None else start)
    for n_runs in rounds:
        fits = replicas.run(np.repeat(truth[None], n_runs, axis=0))
        truth = truth + found - fits.mean(axis=0)
    return truth


def _shape_deviation(
    fit: ReleasedFit, outcomes: Outcomes, truth: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """How far the noise of the shapes moves the truth that is found."""
    assert fit.shapes is not None
    seed = int(rng.integers(1 << 62))  # all else is the same
    truths = []
    for _ in range(_SHAPE_DRAWS):
        counts = fit.shapes + fit.sigma_shapes * rng.standard_normal(fit.shapes.shape)
        shapes = find_shapes(counts, np.sqrt(2.0) * fit.sigma_shapes)
        same = np.random.default_rng(seed)
        replicas = Replicas(fit, _population(fit, shapes, same), outcomes, 1, same)
        truths.append(_truth(replicas, fit.descent.coefficients, (1, 1, 1), truth))
    return np.asarray(np.std(truths, axis=0, ddof=1))


def _slope(replicas: Replicas, truth: FloatArray, step: FloatArray) -> FloatArray:
    """How the average fit moves with the truth, by differences: (size, size)."""
    size = truth.size
    steps = 0.5 * step + 1e-9 * np.abs(truth).max()
    moved = truth.reshape(-1) + np.concatenate([np.zeros((1, size)), np.diag(steps)])
    fits = replicas.run(moved.reshape(size + 1, *truth.shape)).reshape(size + 1, size)
    return ((fits[1:] - fits[0]) / steps[:, None]).T
