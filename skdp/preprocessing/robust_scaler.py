"""Columns scaled by private quantiles."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import RobustScaler

from skdp.accounting import PrivacyCost
from skdp.plan import Plan
from skdp.preprocessing._columns import Bounds, PrivateQuantiles
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPRobustScaler"]

# Level of the quantiles that scale a column whose range of quantiles is a single value, as of rare
# flags, at least: and that many times their noise.
_WIDE, _NOISE = 0.01, 2.0
# A range below that many bins is a single value; that of the wide quantiles below twice as many.
_SINGLE = 1.5


@shared_docs(twin="RobustScaler")
class DPRobustScaler(OneToOneFeatureMixin, PrivateQuantiles):
    """Scale columns by private quantiles, which outliers do not move.

    Parameters
    ----------
    %(budget)s
    with_centering : bool, default=True
        Whether `transform` subtracts the median.
    with_scaling : bool, default=True
        Whether `transform` divides by the range between two quantiles.
    quantile_range : tuple (q_min, q_max), default=(25.0, 75.0)
        The two, in per cent.
    unit_variance : bool, default=False
        Whether the range is divided by what it is for a standard normal column.
    %(common)s

    Attributes
    ----------
    center_ : ndarray of shape (n_features,) or None
        Private medians. None without `with_centering`.
    scale_ : ndarray of shape (n_features,) or None
        Private ranges. Where both quantiles are one value, as for a flag that is seldom set, the
        range from 1% to 99% takes their place, and where that is one value too (a constant
        column), 1. None without `with_scaling`.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(quantiles)s

    Columns that cannot be told from the noise keep median 0 and range 1, or half the distance
    of their public bounds and their middle; a warning says how large the noise is.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRobustScaler
    >>> incomes = np.random.default_rng(0).lognormal(10.0, 0.5, size=(20_000, 1))
    >>> scaler = DPRobustScaler(epsilon=1.0).fit(incomes)
    >>> bool(abs(scaler.center_[0] / np.median(incomes) - 1) < 0.1)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateQuantiles._parameter_constraints,
        "with_centering": ["boolean"],
        "with_scaling": ["boolean"],
        "quantile_range": [tuple],
        "unit_variance": ["boolean"],
    }
    _copied = ("center_", "scale_")

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns(self) -> bool:
        return self.with_centering or self.with_scaling

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        low, high = self.quantile_range
        if not 0 <= low < high <= 100:
            raise ValueError(
                "quantile_range must be (q_min, q_max) with 0 <= q_min < q_max <= 100, got "
                f"{low, high}"
            )
        return budget

    def _learn(
        self, X: NDArray[np.floating], bounds: Bounds | None, plan: Plan, options: dict[str, Any]
    ) -> None:
        ranks = self._ranks(X, bounds, plan, options) if self._learns else None
        self.center_ = self.scale_ = None
        if ranks is None:
            return
        wide = min(max(_WIDE, _NOISE * ranks.noise), 0.25)
        levels = np.array([0.5, *np.divide(self.quantile_range, 100.0), wide, 1.0 - wide])
        centre, low, high, least, most = ranks.quantiles(levels)
        if self.with_centering:
            self.center_ = centre
        if self.with_scaling:
            single = _SINGLE * ranks.resolution
            scale = np.where(high - low < single, most - least, high - low)
            # Equal where the bins are as narrow as floats: both are 0.
            scale = np.where(scale <= 2.0 * single, 1.0, scale)
            if self.unit_variance:
                scale = scale / (ndtri(levels[2]) - ndtri(levels[1]))
            self.scale_ = scale

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Subtract the private median and divide by the private range.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; missing values stay missing.

        Returns
        -------
        scaled : ndarray of shape (n_samples, n_features)
            Results too large for the floating-point type are the largest number that it has.
        """
        scaled = self._check_input(X)
        with np.errstate(all="ignore"):
            if self.center_ is not None:
                scaled -= self.center_
            if self.scale_ is not None:
                scaled /= self.scale_
        largest = np.finfo(scaled.dtype).max
        return np.clip(scaled, -largest, largest, out=scaled)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Undo `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled data.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
        """
        original = self._check_scaled(X)
        with np.errstate(all="ignore"):
            if self.scale_ is not None:
                original *= self.scale_
            if self.center_ is not None:
                original += self.center_
        return original

    def make_non_private(self) -> RobustScaler:
        """Scikit-learn's `RobustScaler`."""
        return RobustScaler(
            with_centering=self.with_centering,
            with_scaling=self.with_scaling,
            quantile_range=self.quantile_range,
            unit_variance=self.unit_variance,
        )
