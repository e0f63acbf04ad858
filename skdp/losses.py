"""Losses of generalised linear models, pointwise in the linear predictor.

A loss knows nothing of rows, noise or privacy. Adding one means writing its residual (the
derivative in the linear predictor) and a bound of its curvature.
"""

from abc import ABC, abstractmethod
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HuberLoss",
    "InsensitiveLoss",
    "LogLinkLoss",
    "LogisticLoss",
    "Loss",
    "PinballLoss",
    "SmoothHingeLoss",
    "SoftmaxLoss",
    "SquaredLoss",
]

FloatArray = NDArray[np.float64]


class Loss(ABC):
    """A convex loss of (target, linear predictor).

    Attributes
    ----------
    name : str
        Name used in plans.
    curvature : float
        Upper bound of the second derivative in the linear predictor (largest eigenvalue of the
        Hessian for several outputs).
    residual_bound : float
        Largest norm of the residual of one record; inf when unbounded. Clipping above it would
        only add noise.
    zero_sum : bool
        Whether the residuals of every record sum to zero over the outputs.
    unit : float
        What a residual of 1 stands for: the derivative is `unit` times the residual, and
        `curvature` bounds the derivative's slope. It brings clipped values to a common size.
    weigh_first : bool
        Whether the weight of a record multiplies its residual before it is clipped: right where
        the spread of residuals falls with the weight, as it does for rates and their exposure.
        Otherwise the clipped residual is multiplied, and a weight of k is k copies.
    rule : str
        Which rule chooses the solver's settings; in subclasses that give none, their name.
    """

    name: str
    curvature: float
    residual_bound: float
    zero_sum: bool = False
    weigh_first: bool = False
    unit: float = 1.0
    rule: str

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "rule" not in vars(cls) and "name" in vars(cls):
            cls.rule = cls.name

    @abstractmethod
    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Derivative of the loss in the linear predictor, in units of `unit`.

        Parameters
        ----------
        predictor : ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Linear predictor.
        target : ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Targets of the same rows, in the form that the loss asks for.

        Returns
        -------
        residual : ndarray of the shape of `predictor`
        """


class SquaredLoss(Loss):
    """``(predictor - target)**2 / 2``."""

    name = "squared"
    curvature = 1.0
    residual_bound = inf

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Predictor minus target."""
        return predictor - target


class HuberLoss(Loss):
    """Half the square of (predictor - target) near zero, linear far from it.

    Parameters
    ----------
    threshold : float
        Size of the error, in units of `unit`, from which on the loss is linear.
    unit : float
        Scale of the errors.
    """

    name = "huber"
    rule = "squared"
    curvature = 1.0

    def __init__(self, threshold: float, unit: float = 1.0) -> None:
        self.threshold = threshold
        self.unit = unit
        self.residual_bound = threshold

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Predictor minus target, clipped to the threshold."""
        result = predictor - target
        result /= self.unit
        return np.clip(result, -self.threshold, self.threshold, out=result)


class PinballLoss(Loss):
    """The pinball loss of a quantile, made smooth around zero.

    Its curvature is that of the density of errors: `curvature` holds on average over records,
    when `unit` is at most the reciprocal of that density.

    Parameters
    ----------
    quantile : float
        Between 0 and 1.
    width : float
        Errors up to this size, on either side of zero, are where the derivative goes from one
        value to the other.
    unit : float
        Factor of the loss.

    Notes
    -----
    Residuals have size 1 on the steeper side, and `unit` makes up for it.
    """

    name = "pinball"
    rule = "absolute"
    curvature = 1.0
    residual_bound = 1.0

    def __init__(self, quantile: float, width: float, unit: float = 1.0) -> None:
        steepest = max(quantile, 1.0 - quantile)
        self.quantile = quantile
        self.width = width
        self.unit = unit * steepest
        self.low, self.high = -quantile / steepest, (1.0 - quantile) / steepest

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Whether the target is below the predictor, smoothed, minus the quantile; at most 1."""
        result = predictor - target
        result *= (self.high - self.low) / (2.0 * self.width)
        result += (self.high + self.low) / 2.0
        return np.clip(result, self.low, self.high, out=result)


class InsensitiveLoss(Loss):
    """The absolute error beyond a tolerance, made smooth where it begins.

    See `PinballLoss` for the meaning of `curvature` and `unit`.

    Parameters
    ----------
    tolerance : float
        Errors up to this size cost nothing.
    width : float
        The derivative rises from 0 to 1 over this distance beyond the tolerance.
    unit : float
        Factor of the loss.
    """

    name = "insensitive"
    rule = "absolute"
    curvature = 1.0
    residual_bound = 1.0

    def __init__(self, tolerance: float, width: float, unit: float = 1.0) -> None:
        self.tolerance = tolerance
        self.width = width
        self.unit = unit

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Sign of the error, less near the tolerance and 0 within it."""
        error = predictor - target
        size = np.abs(error)
        size -= self.tolerance
        size /= self.width
        return np.copysign(np.clip(size, 0.0, 1.0, out=size), error)


class LogisticLoss(Loss):
    """Negative log-likelihood of targets 0 and 1 given the log-odds."""

    name = "logistic"
    curvature = 0.25
    residual_bound = 1.0

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Probability of 1 minus target."""
        # The logistic function by tanh: vectorised by numpy, four times as fast as expit. What it
        # loses of tiny probabilities is far below the grid that residuals are rounded to.
        result = predictor * 0.5
        np.tanh(result, out=result)
        result += 1.0
        result *= 0.5
        result -= target
        return result


class LogLinkLoss(Loss):
    """Half the Tweedie deviance of a target of mean 1, given the logarithm of its expectation.

    Its curvature is not bounded: it is 1 at the mean, and predictors are cut at `cap` on either
    side of it, beyond which the derivative does not grow.

    Parameters
    ----------
    power : float
        Power of the mean that the variance is proportional to: 1 Poisson, 2 gamma; from 1 to 3.
    unit : float
        Scale of the residuals.
    offset : float
        Added to the predictor.
    """

    name = "log-link"
    curvature = 1.0
    residual_bound = inf
    weigh_first = True
    cap = 3.0

    def __init__(self, power: float, unit: float = 1.0, offset: float = 0.0) -> None:
        self.power = power
        self.unit = unit
        self.offset = offset

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Expectation minus target, divided by the variance at the expectation over its slope."""
        z = predictor + self.offset
        np.clip(z, -self.cap, self.cap, out=z)
        result = np.exp((2.0 - self.power) * z)
        if self.power == 1.0:
            result -= target
        else:
            result -= target * np.exp((1.0 - self.power) * z)
        result /= self.unit
        return result


class SmoothHingeLoss(Loss):
    """Half the squared hinge of margins, linear for negative ones; summed over the outputs.

    The margin is the predictor, with its sign changed where the class is another. Targets are
    codes: 0 and 1 for one output, else the number of the output.

    Parameters
    ----------
    n_outputs : int
        Number of linear predictors.
    """

    name = "hinge"
    curvature = 1.0

    def __init__(self, n_outputs: int = 1) -> None:
        self.residual_bound = sqrt(n_outputs)
        self.rule = "hinge" if n_outputs == 1 else "hinges"

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Minus the sign of the class, times how far the margin is below 1, at most 1."""
        if predictor.ndim == 1:
            sign = target * 2.0 - 1.0
        else:
            sign = np.full(predictor.shape, -1.0)
            sign[np.arange(len(sign)), target] = 1.0
        result = 1.0 - sign * predictor
        np.clip(result, 0.0, 1.0, out=result)
        result *= -sign
        return result


class SoftmaxLoss(Loss):
    """Negative log-likelihood of class codes given one predictor per class.

    Targets are integer codes ``0 .. n_outputs - 1``. The Hessian in the predictors is at most
    ``1/2 (I - 11'/K)`` (Böhning 1992), and a residual, a probability vector minus a unit vector,
    has norm below sqrt(2).
    """

    name = "softmax"
    curvature = 0.5
    residual_bound = sqrt(2.0)
    zero_sum = True

    def residual(self, predictor: FloatArray, target: NDArray) -> FloatArray:
        """Probabilities minus the indicator of the class."""
        result = predictor - predictor.max(axis=1, keepdims=True)
        np.exp(result, out=result)
        result /= result.sum(axis=1, keepdims=True)
        result[np.arange(len(result)), target] -= 1.0
        return result
