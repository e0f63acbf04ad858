"""Clipped noisy gradient descent, with or without a privately released preconditioner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, frexp, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh

from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows, Grid
from skdp.losses import Loss
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.plan import PlannedRelease, ProblemShape, relation_factor
from skdp.solvers.settings import SolverSettings, choose_settings

__all__ = ["Descent", "GradientDescent", "PreconditionedGradientDescent", "floored", "unpacked"]

FloatArray = NDArray[np.float64]
Step = Callable[[FloatArray], FloatArray]
_BITS = 20


@dataclass(frozen=True)
class Descent:
    """What a run of a solver gives, all of it released or made from released values.

    Attributes
    ----------
    coefficients : ndarray of shape (n_columns,) or (n_columns, n_outputs)
        In the units of the working rows.
    second_moments : ndarray of shape (n_columns * (n_columns + 1) / 2,), or None
        As released: see `BoundedRows.gram`.
    stages : tuple
        Numbers of the steps from which on there was another loss, with the loss and the factor
        of the penalty.
    gradient : ndarray of the shape of the coefficients
        Mean of the noisy clipped gradients, without the penalty's, of the steps that led to the
        iterates whose mean the coefficients are.
    origin : ndarray of the shape of the coefficients
        Mean of the iterates that those steps started from.
    averaged : int
        Number of those steps.
    """

    coefficients: FloatArray
    second_moments: FloatArray | None
    stages: tuple[tuple[int, Loss, float], ...]
    gradient: FloatArray
    origin: FloatArray
    averaged: int


def unpacked(packed: FloatArray, p: int) -> FloatArray:
    """The symmetric matrix of a diagonal and the entries above it, row by row."""
    matrix = np.empty((p, p))
    matrix[np.diag_indices(p)] = packed[:p]
    upper = np.triu_indices(p, 1)
    matrix[upper] = matrix[upper[1], upper[0]] = packed[p:]
    return matrix


def floored(values: FloatArray, sigma: float, ridge_floor: float) -> FloatArray:
    """Eigenvalues of noisy second moments, in rising order, as a preconditioner takes them.

    Parameters
    ----------
    values : ndarray of shape (..., p)
        Negative ones are noise.
    sigma : float
        Standard deviation of the noise of the diagonal.
    ridge_floor : float
        What is added, in units of the spectral norm of the noise.
    """
    # A least value of its own keeps factorisations possible when the user wants no floor.
    least = 2.0**-40 * np.maximum(values[..., -1:], sigma)
    floor = ridge_floor * sigma * sqrt(values.shape[-1])
    return np.maximum(values, 0.0) + np.maximum(floor, least)


@dataclass(frozen=True)
class GradientDescent:
    """Full-batch gradient descent on clipped sums with Gaussian noise.

    Every step releases the sum of the records' clipped gradients; the result is the mean of the
    last iterates, which is post-processing.
    """

    preconditioned = False

    def plan(
        self, loss: Loss, shape: ProblemShape, budget: PrivacyCost, chosen: Mapping[str, Any]
    ) -> tuple[tuple[PlannedRelease, ...], SolverSettings]:
        """Releases and settings for a budget.

        Parameters
        ----------
        loss : Loss
            The loss.
        shape : ProblemShape
            Public shape of the problem.
        budget : PrivacyCost
            All that the solver may spend.
        chosen : mapping
            Settings fixed by the user.

        Returns
        -------
        releases : tuple of PlannedRelease
        settings : SolverSettings
        """
        settings = choose_settings(
            loss, shape, budget.mu, chosen, preconditioned=self.preconditioned
        )
        gram, steps = settings.gram_share, settings.max_iter
        shares = [(1.0 - gram) / steps] * steps
        releases = []
        if gram:
            moments, *parts = budget.split([gram, *shares])
            sensitivity = relation_factor(budget.neighboring, "nonnegative")
            releases.append(PlannedRelease("second moments", sensitivity, moments.mu))
        else:
            parts = list(budget.split(shares))
        sensitivity = settings.clip_norm * relation_factor(budget.neighboring)
        releases.append(PlannedRelease("gradient", sensitivity, parts[0].mu, steps))
        return tuple(releases), settings

    def grid(self, releases: tuple[PlannedRelease, ...], clip_norm: float) -> Grid:
        """Binary places: 20 of the row and 20 of the clip norm, fewer under enormous noise."""
        places = 2.0 ** ceil(log2(clip_norm))
        noise = max(r.sigma / (places if r.name == "gradient" else 1.0) for r in releases)
        bits = max(1, min(_BITS, (MAX_SIGMA_BITS - frexp(noise)[1]) // 2))
        return Grid(bits, bits - ceil(log2(clip_norm)))

    def solve(
        self,
        rows: BoundedRows,
        targets: NDArray,
        loss: Loss,
        settings: SolverSettings,
        noise: NoiseCore,
        *,
        n_rows: float,
        penalty: FloatArray,
        n_outputs: int | None,
        adapt: Callable[[int, FloatArray], tuple[Loss, float] | None] | None = None,
    ) -> Descent:
        """Coefficients in the units of the working rows, and what else is released.

        Parameters
        ----------
        rows : BoundedRows
            The data.
        targets : ndarray of shape (n_rows, ...)
            Targets in the form that the loss asks for.
        loss : Loss
            The loss.
        settings : SolverSettings
            As planned.
        noise : NoiseCore
            Releases the sums.
        n_rows : float
            Declared number of rows, or the sum of their weights.
        penalty : ndarray of shape (n_columns,)
            Weights of half the squared coefficients.
        n_outputs : int or None
            Columns of the coefficients; None: a vector.
        adapt : callable, default=None
            Called with the number of the step and the coefficients before every step; may give
            another loss and a factor of the penalty, made from released values, for this and
            all further steps.

        Returns
        -------
        descent : Descent
        """
        moments, sigma = None, 0.0
        if settings.gram_share:
            moments = noise.release(rows.gram("second moments"))
            sigma = noise.sigma("second moments")
        step_for = self._preconditioner(moments, sigma, rows.n_columns, loss, settings, n_rows)
        stages = [(0, loss, 1.0)]
        step = step_for(penalty)
        shape = (rows.n_columns,) if n_outputs is None else (rows.n_columns, n_outputs)
        weights = penalty if n_outputs is None else penalty[:, None]
        theta, velocity = np.zeros(shape), np.zeros(shape)
        mean, mean_gradient, origin = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        averaged = 0
        first = min(round((1.0 - settings.averaged) * settings.max_iter), settings.max_iter - 1)
        for iteration in range(settings.max_iter):
            # The iterate is a function of released values, so rounding it is free, and makes
            # its products with the rows exact.
            theta = rows.round_coefficients(theta)
            if adapt is not None and (changed := adapt(iteration, theta)) is not None:
                loss, factor = changed
                stages.append((iteration, loss, factor))
                penalty, weights = penalty * factor, weights * factor
                step, velocity = step_for(penalty), np.zeros(shape)
            gradient = noise.release(
                rows.gradient_sum("gradient", theta, loss, targets, settings.clip_norm)
            )
            if loss.zero_sum:
                # The true gradient sums to zero over the classes; the noise need not.
                gradient -= gradient.mean(axis=1, keepdims=True)
            if iteration >= first:
                averaged += 1
                mean_gradient += (loss.unit * gradient - mean_gradient) / averaged
                origin += (theta - origin) / averaged
            total = loss.unit * gradient + weights * theta
            velocity = settings.momentum * velocity + step(total)
            theta = theta - settings.learning_rate * velocity
            if iteration >= first:
                mean += (theta - mean) / averaged
        return Descent(mean, moments, tuple(stages), mean_gradient, origin, averaged)

    def _preconditioner(
        self,
        moments: FloatArray | None,
        sigma: float,
        p: int,
        loss: Loss,
        settings: SolverSettings,
        n_rows: float,
    ) -> Callable[[FloatArray], Step]:
        """Function that gives, for a penalty, the function that turns a gradient into a step."""
        if moments is None:

            def plain(penalty: FloatArray) -> Step:
                # The penalty's part of the step is taken implicitly: stable however strong it is.
                curvature = n_rows + settings.learning_rate * penalty
                return lambda gradient: (gradient.T / curvature).T

            return plain
        values, vectors = eigh(unpacked(moments, p))
        values = floored(values, sigma, settings.ridge_floor)
        curvature = loss.curvature * (vectors * values) @ vectors.T

        def preconditioned(penalty: FloatArray) -> Step:
            factor = cho_factor(curvature + np.diag(penalty))
            return lambda gradient: cho_solve(factor, gradient)

        return preconditioned


class PreconditionedGradientDescent(GradientDescent):
    """Clipped noisy gradient descent in the metric of privately released second moments.

    A small share of the budget releases ``X'X`` once; the steps then solve against its projection
    on the cone of curvatures at least as large as its noise. Where that does not pay (few rows
    for the budget), the plan leaves it out.
    """

    preconditioned = True
