"""The solver once more, in floats on simulated rows, many runs at a time."""

import numpy as np
from numpy.typing import NDArray

from skdp.solvers import floored
from skdp.uncertainty.outcomes import Outcomes
from skdp.uncertainty.population import Population
from skdp.uncertainty.released import ReleasedFit

__all__ = ["Replicas"]

FloatArray = NDArray[np.float64]
# Linear predictors that are held at a time: they stay in the cache.
_BLOCK_ENTRIES = 1 << 17


class Replicas:
    """Runs of a planned descent on a simulated population.

    Sums over the data are replaced by their expectation and, for the final loss, the normal
    distribution of their sampling error: a run costs the same for any number of rows.

    Parameters
    ----------
    fit : ReleasedFit
        The fit to repeat. It has second moments.
    population : Population
        What the rows are drawn from.
    outcomes : Outcomes
        What the targets are drawn from.
    n_preconditioners : int
        How many draws of the second moments' noise the runs share. A number of runs is 1 or a
        multiple of it.
    rng : numpy Generator
        Draws all noise.
    """

    def __init__(
        self,
        fit: ReleasedFit,
        population: Population,
        outcomes: Outcomes,
        n_preconditioners: int,
        rng: np.random.Generator,
    ) -> None:
        self.fit, self.population, self.outcomes, self.rng = fit, population, outcomes, rng
        norms = np.sqrt(np.einsum("ij,ij->i", population.bounded, population.bounded))
        self._bound = fit.settings.clip_norm / np.maximum(norms, 1e-300)
        p = len(population.moments)
        noise = rng.standard_normal((n_preconditioners, p, p)) / np.sqrt(2.0)
        upper = np.triu(noise, 1)
        noise = upper + upper.transpose(0, 2, 1)
        noise[:, np.arange(p), np.arange(p)] = rng.standard_normal((n_preconditioners, p))
        noise *= fit.sigma_moments
        values, vectors = np.linalg.eigh(fit.n_rows * population.moments + noise)
        values = floored(values, fit.sigma_moments, fit.settings.ridge_floor)
        self._metrics = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)

    def sampling_noise(self, truth: FloatArray, n_runs: int) -> FloatArray:
        """Sampling errors of the sum of clipped gradients at the truth.

        Parameters
        ----------
        truth : ndarray of shape (n_columns,) or (n_columns, n_outputs)
            Coefficients.
        n_runs : int
            How many to draw.

        Returns
        -------
        errors : ndarray of shape (n_runs, n_columns) or (n_runs, n_columns, n_outputs)
        """
        rows, loss = self.population.bounded, self.fit.descent.stages[-1][1]
        seen = self._predictor(rows, truth[None])
        targets = self.outcomes.targets(self._predictor(self.population.raw, truth[None]))
        total = np.zeros((n_runs, truth.size))
        for residual, share in self.outcomes.residuals(loss, seen, targets, self._bound):
            weighted = (residual * np.sqrt(share)).reshape(-1, len(rows)).T
            scores = (rows[:, :, None] * weighted[:, None, :]).reshape(len(rows), -1)
            total += self.rng.standard_normal((n_runs, len(rows))) @ scores
        total *= np.sqrt(self.fit.n_rows / len(rows))
        return total.reshape(n_runs, *truth.shape)

    @staticmethod
    def _predictor(rows: FloatArray, coefficients: FloatArray) -> FloatArray:
        last = coefficients if coefficients.ndim == 2 else np.swapaxes(coefficients, 1, 2)
        return last @ rows.T

    def run(self, truth: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """Coefficients that fits would give.

        Parameters
        ----------
        truth : ndarray of shape (n_runs, n_columns) or (n_runs, n_columns, n_outputs)
            True coefficients of each run.
        errors : ndarray of the same shape, default=None
            Sampling errors of the gradients; noise is then drawn as well, such that the second
            run of each pair has that of the first with the opposite sign. None: what follows
            without noise and sampling errors.

        Returns
        -------
        coefficients : ndarray of the shape of `truth`
        """
        # One truth is run with the noise of all preconditioners averaged.
        shared = len(truth) % len(self._metrics) != 0
        metrics = self._metrics.mean(axis=0, keepdims=True) if shared else self._metrics
        group = len(truth) // len(metrics)
        size = len(self.population.raw) * truth[0, 0].size
        block = max(2, _BLOCK_ENTRIES // size // 2 * 2)  # whole pairs
        result = np.empty(truth.shape)
        for number, metric in enumerate(metrics):
            for first in range(number * group, (number + 1) * group, block):
                part = slice(first, min(first + block, (number + 1) * group))
                some = None if errors is None else errors[part]
                result[part] = self._descend(truth[part], metric, some)
        return result

    def _descend(
        self, truth: FloatArray, metric: FloatArray, errors: FloatArray | None
    ) -> FloatArray:
        fit, settings = self.fit, self.fit.settings
        rows, raw = self.population.bounded, self.population.raw
        stages = {first: (loss, factor) for first, loss, factor in fit.descent.stages}
        targets = self.outcomes.targets(self._predictor(raw, truth))
        theta, velocity, mean = (np.zeros(truth.shape) for _ in range(3))
        penalty, averaged = fit.penalty, 0
        first = settings.max_iter - fit.descent.averaged
        for iteration in range(settings.max_iter):
            if iteration in stages:
                loss, factor = stages[iteration]
                penalty = penalty * factor
                weights = penalty if theta.ndim == 2 else penalty[:, None]
                inverse = np.linalg.inv(loss.curvature * metric + np.diag(penalty))
                velocity = np.zeros(truth.shape)
            seen = self._predictor(rows, theta)
            residual = self.outcomes.mean_residual(loss, seen, targets, self._bound)
            gradient = residual @ rows
            if theta.ndim == 3:
                gradient = np.swapaxes(gradient, 1, 2)
            gradient = gradient * (fit.n_rows / len(rows))
            if errors is not None:
                half = self.rng.standard_normal((len(theta) // 2, 1, *theta.shape[1:]))
                noise = np.concatenate([half, -half], axis=1).reshape(theta.shape)
                gradient += errors + fit.sigma_gradient * noise
            if loss.zero_sum:
                gradient -= gradient.mean(axis=-1, keepdims=True)
            total = loss.unit * gradient + weights * theta
            step = total @ inverse if theta.ndim == 2 else inverse @ total
            velocity = settings.momentum * velocity + step
            theta = theta - settings.learning_rate * velocity
            if iteration >= first:
                averaged += 1
                mean += (theta - mean) / averaged
        return mean
