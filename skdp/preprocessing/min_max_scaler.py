"""Columns mapped to a range by public bounds, or by private extreme quantiles."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import MinMaxScaler

from skdp.accounting import PrivacyCost
from skdp.plan import Plan
from skdp.preprocessing._columns import Bounds, PrivateQuantiles
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPMinMaxScaler"]

# Extreme quantiles that stand for minimum and maximum, at least: and that many times their noise.
_EXTREME, _NOISE = 0.002, 1.5


@shared_docs(twin="MinMaxScaler")
class DPMinMaxScaler(OneToOneFeatureMixin, PrivateQuantiles):
    """Map columns to a range by public bounds, or by private extreme quantiles.

    Parameters
    ----------
    %(budget)s
        With `bounds` nothing is released and the fit costs nothing: they are the minimum and
        the maximum.
    feature_range : tuple (min, max), default=(0, 1)
        Range of the transformed data.
    clip : bool, default=False
        Whether `transform` clips to `feature_range`.
    %(common)s

    Attributes
    ----------
    data_min_, data_max_ : ndarray of shape (n_features,)
        The bounds; without them *not* the minimum and maximum of the data, which are single
        records, but private quantiles near the ends: at 0.2% and 99.8%, or further inside
        where the noise is larger.
    data_range_ : ndarray of shape (n_features,)
        Their difference.
    scale_, min_ : ndarray of shape (n_features,)
        The map is ``X * scale_ + min_``.
    n_samples_seen_ : int
        Declared number of records.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(quantiles)s

    Columns that cannot be told from the noise are mapped as if they lay between -1 and 1, and a
    warning says how large the noise is.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMinMaxScaler
    >>> ages = np.array([[34.0], [51.0], [29.0], [62.0]])
    >>> scaler = DPMinMaxScaler(bounds=(0, 100)).fit(ages)
    >>> scaler.transform(ages).ravel()
    array([0.34, 0.51, 0.29, 0.62])
    >>> scaler.privacy_cost_.mu
    0.0
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateQuantiles._parameter_constraints,
        "feature_range": [tuple],
        "clip": ["boolean"],
    }
    _copied = ("data_min_", "data_max_", "data_range_", "scale_", "min_", "n_samples_seen_")

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        feature_range: tuple[float, float] = (0, 1),
        clip: bool = False,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.feature_range = feature_range
        self.clip = clip
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns(self) -> bool:
        return self.bounds is None

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        low, high = self.feature_range
        if not low < high:
            raise ValueError(f"feature_range must be (min, max) with min < max, got {low, high}")
        return budget

    def _learn(
        self, X: NDArray[np.floating], bounds: Bounds | None, plan: Plan, options: dict[str, Any]
    ) -> None:
        if bounds is None:
            ranks = self._ranks(X, None, plan, options)
            level = min(max(_EXTREME, _NOISE * ranks.noise), 0.25)
            low, high = ranks.quantiles(np.array([level, 1.0 - level]))
            # A column of one value: the bin around it.
            flat = high - low < ranks.resolution
            low, high = low - flat * ranks.resolution, high + flat * ranks.resolution
            low, high = np.where(ranks.found, (low, high), ranks.edges[:, [0, -1]].T)
        else:
            low, high = bounds
        start, stop = self.feature_range
        self.data_min_, self.data_max_, self.data_range_ = low, high, high - low
        self.scale_ = (stop - start) / self.data_range_
        self.min_ = start - low * self.scale_
        self.n_samples_seen_ = plan.shape.n_rows

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Map columns to `feature_range`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; missing values stay missing.

        Returns
        -------
        scaled : ndarray of shape (n_samples, n_features)
        """
        scaled = self._check_input(X)
        with np.errstate(all="ignore"):
            scaled *= self.scale_
            scaled += self.min_
        largest = np.finfo(scaled.dtype).max
        low, high = self.feature_range if self.clip else (-largest, largest)
        return np.clip(scaled, low, high, out=scaled)

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
            original -= self.min_
            original /= self.scale_
        return original

    def make_non_private(self) -> MinMaxScaler:
        """Scikit-learn's `MinMaxScaler`."""
        return MinMaxScaler(feature_range=self.feature_range, clip=self.clip)
