"""What a fit leaves for the simulation of fits like it: released and public values."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from skdp.solvers import Descent, SolverSettings, unpacked

__all__ = ["ReleasedFit"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReleasedFit:
    """A descent as it was run, in the units of the working rows.

    Attributes
    ----------
    descent : Descent
        What the solver released.
    settings : SolverSettings
        As planned.
    n_rows : int
        Declared number of rows.
    penalty : ndarray of shape (n_columns,)
        Weights of half the squared coefficients in the first stage.
    scale : float
        Working rows are features times `scale`.
    constant : float
        Value of their last column; 0: there is none.
    feature_bound : float
        Bound of a feature, in the units of X.
    sigma_moments, sigma_gradient : float
        Standard deviations of the noise of the diagonal of the second moments (0 without them)
        and of a gradient.
    residuals : ndarray, or None
        Shares of the sizes of residuals, where they were released: see `find_residuals`.
    target_unit : float
        The unit of the targets that the solver saw, in the units of y.
    weighted : bool
        Whether records had weights: sums are then weighted, in units of the largest weight.
    shapes : ndarray of shape (n_features, n_bins), or None
        Noisy counts of values of each feature by size, where they were released.
    sigma_shapes : float
        Standard deviation of their noise.
    """

    descent: Descent
    settings: SolverSettings
    n_rows: int
    penalty: FloatArray
    scale: float
    constant: float
    feature_bound: float
    sigma_moments: float
    sigma_gradient: float
    residuals: FloatArray | None = None
    target_unit: float = 1.0
    weighted: bool = False
    shapes: FloatArray | None = None
    sigma_shapes: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return len(self.penalty) - bool(self.constant)

    def moments(self) -> FloatArray:
        """Second moments of the working rows, clipped to norm 1: a noisy sum over the rows.

        Returns
        -------
        moments : ndarray of shape (n_columns, n_columns)
        """
        assert self.descent.second_moments is not None
        return unpacked(self.descent.second_moments, len(self.penalty))

    def moments_in_units(self) -> FloatArray:
        """The same in the units of X, the constant being 1."""
        units = np.full(len(self.penalty), 1.0 / self.scale)
        if self.constant:
            units[-1] = 1.0 / self.constant
        return self.moments() * np.outer(units, units)

    @property
    def moments_signal(self) -> float:
        """Mean eigenvalue of the second moments in units of the spectral norm of their noise."""
        p = len(self.penalty)
        assert self.descent.second_moments is not None
        return float(self.descent.second_moments[:p].mean() / (self.sigma_moments * sqrt(p)))
