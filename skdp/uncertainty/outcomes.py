"""What targets a fitted model expects of rows, and the gradients that follow from them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from skdp.losses import Loss

__all__ = ["BinaryOutcomes", "ClassOutcomes", "Outcomes", "SymmetricOutcomes"]

FloatArray = NDArray[np.float64]


# Targets and their probabilities, of shape (n_runs, n_rows) or broadcast to it.
Targets = list[tuple[NDArray, FloatArray]]


class Outcomes(ABC):
    """Possible targets of rows and their probabilities, given the linear predictor of the truth.

    Linear predictors have the shape (n_runs, n_rows), or (n_runs, n_outputs, n_rows) where there
    are several outputs. Residuals are clipped as the solver clips them.
    """

    @abstractmethod
    def targets(self, truth: FloatArray) -> Targets:
        """Possible targets of every row, and their probabilities.

        Parameters
        ----------
        truth : ndarray
            Linear predictors of the true model.
        """

    def residuals(
        self, loss: Loss, predictor: FloatArray, targets: Targets, bound: FloatArray
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the clipped residuals for each possible target, and its probabilities.

        Parameters
        ----------
        loss : Loss
            The loss.
        predictor : ndarray
            Linear predictors of the model.
        targets : list of tuple
            From `targets`.
        bound : ndarray of shape (n_rows,)
            Largest norm of a residual.
        """
        wide = predictor.ndim == 3
        by_row = np.moveaxis(predictor, 1, 2) if wide else predictor
        flat = by_row.reshape(-1, predictor.shape[1]) if wide else by_row.reshape(-1)
        for target, probability in targets:
            every = np.broadcast_to(target, by_row.shape[:2]).reshape(-1)
            residual = loss.residual(flat, every).reshape(by_row.shape)
            if wide:
                residual = np.moveaxis(residual, 2, 1)
                norm = np.sqrt(np.einsum("ikj,ikj->ij", residual, residual))
                residual *= np.minimum(1.0, bound / np.maximum(norm, 1e-300))[:, None]
            else:
                np.clip(residual, -bound, bound, out=residual)
            yield residual, probability[:, None] if wide else probability

    def mean_residual(
        self, loss: Loss, predictor: FloatArray, targets: Targets, bound: FloatArray
    ) -> FloatArray:
        """Expected clipped residual, with the parameters of `residuals`."""
        total = np.zeros(predictor.shape)
        for residual, probability in self.residuals(loss, predictor, targets, bound):
            residual *= probability
            total += residual
        return total


class BinaryOutcomes(Outcomes):
    """Codes 1 and 0 with the probabilities of a logistic model."""

    def targets(self, truth: FloatArray) -> Targets:
        """One, then zero."""
        probability = expit(truth)
        return [(np.ones((1, 1)), probability), (np.zeros((1, 1)), 1.0 - probability)]

    def mean_residual(
        self, loss: Loss, predictor: FloatArray, targets: Targets, bound: FloatArray
    ) -> FloatArray:
        """As of the base; the residual of code 1 is that of code 0 less one."""
        (_, one), (_, zero) = targets
        residual = loss.residual(predictor, np.zeros((1, 1)))
        total = np.minimum(residual, bound) * zero
        residual -= 1.0
        np.maximum(residual, -bound, out=residual)
        residual *= one
        total += residual
        return total


class SymmetricOutcomes(Outcomes):
    """The truth plus or minus an error.

    Parameters
    ----------
    quantile : callable
        Gives the sizes of errors at levels between 0 and 1.
    """

    def __init__(self, quantile: Callable[[FloatArray], FloatArray]) -> None:
        self.quantile = quantile

    def targets(self, truth: FloatArray) -> Targets:
        """Above and below, so that errors add up to nothing."""
        half = np.full((1, 1), 0.5)
        # Rows are in random order, but for the second half, which mirrors the first.
        places = (np.arange(truth.shape[1]) + 0.5) / truth.shape[1]
        errors = self.quantile(np.concatenate([places[::2], places[1::2]]))
        return [(truth + errors, half), (truth - errors, half)]


class ClassOutcomes(Outcomes):
    """Codes with the probabilities of a softmax model."""

    def targets(self, truth: FloatArray) -> Targets:
        """One class after the other."""
        probabilities = np.moveaxis(softmax(truth, axis=1), 1, 0)
        return [(np.full((1, 1), code), shares) for code, shares in enumerate(probabilities)]

    def mean_residual(
        self, loss: Loss, predictor: FloatArray, targets: Targets, bound: FloatArray
    ) -> FloatArray:
        """As of the base, for all classes at once."""
        fitted = np.exp(predictor - predictor.max(axis=1, keepdims=True))
        fitted /= fitted.sum(axis=1, keepdims=True)
        # The squared norm of p - e_k is |p|^2 - 2 p_k + 1; weights are min(1, bound / norm).
        weights = fitted * -2.0
        weights += (fitted**2).sum(axis=1, keepdims=True) + 1.0
        np.maximum(weights, np.square(bound), out=weights)
        np.sqrt(weights, out=weights)
        np.divide(bound, weights, out=weights)
        for code, (_, probability) in enumerate(targets):
            weights[:, code] *= probability
        fitted *= weights.sum(axis=1, keepdims=True)
        fitted -= weights
        return fitted
