"""Columns cut into bins, even ones or with private quantiles as edges."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from math import sqrt
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from skdp._validation import Interval, StrOptions
from skdp.accounting import PrivacyCost
from skdp.plan import Plan
from skdp.preprocessing._columns import Bounds, PrivateQuantiles
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPKBinsDiscretizer"]

# Extreme quantiles between which bins of equal width lie without public bounds, at least: and
# that many times their noise.
_EXTREME, _NOISE = 0.002, 1.5
# Edges closer than this share of a bin of the histogram are one.
_APART = 1e-6


@shared_docs(twin="KBinsDiscretizer")
class DPKBinsDiscretizer(OneToOneFeatureMixin, PrivateQuantiles):
    """Cut columns into bins, of equal width or of about equal numbers of records.

    Parameters
    ----------
    %(budget)s
        With `bounds` and ``strategy="uniform"`` nothing is released and the fit costs nothing.
    n_bins : int, default=5
        Number of bins of every column, at least 2.
    encode : {"onehot", "onehot-dense", "ordinal"}, default="onehot"
        Indicators of the bins, as a sparse or a dense matrix, or their numbers. A missing value is
        in no bin: its indicators are 0, its number is NaN.
    strategy : {"quantile", "uniform"}, default="quantile"
        Private quantiles as edges; or bins of equal width between the bounds, which are private
        quantiles near the ends where none are given.
    %(common)s

    Attributes
    ----------
    bin_edges_ : ndarray of ndarray of shape (n_features,)
        Edges of every column's bins, not all of one length: quantiles that coincide are one edge.
    n_bins_ : ndarray of shape (n_features,)
        Number of bins of every column.
    output_norm_ : float or None
        Norm of a row of indicators, ``sqrt(n_features)``, a public number: the `feature_norm` that
        a linear model behind can be given. None for ``encode="ordinal"``.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(quantiles)s

    Columns that cannot be told from the noise get even bins between -1 and 1, or between their
    public bounds, and a warning says how large the noise is.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKBinsDiscretizer
    >>> ages = np.random.default_rng(0).uniform(18, 90, size=(5000, 1))
    >>> binner = DPKBinsDiscretizer(bounds=(0, 120), n_bins=4, encode="ordinal").fit(ages)
    >>> bool(abs(binner.bin_edges_[0][2] - 54) < 5)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateQuantiles._parameter_constraints,
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "encode": [StrOptions({"onehot", "onehot-dense", "ordinal"})],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }
    _copied = ("bin_edges_", "n_bins_")

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        n_bins: int = 5,
        encode: str = "onehot",
        strategy: str = "quantile",
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_bins = n_bins
        self.encode = encode
        self.strategy = strategy
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns(self) -> bool:
        return self.bounds is None or self.strategy == "quantile"

    @property
    def _finite(self) -> str | bool:
        return "allow-nan" if self._is_private else True  # the twin refuses missing values

    @property
    def output_norm_(self) -> float | None:
        """Norm of a row of indicators."""
        if self.encode == "ordinal" or not hasattr(self, "n_features_in_"):
            return None
        return sqrt(self.n_features_in_)

    def _learn(
        self, X: NDArray[np.floating], bounds: Bounds | None, plan: Plan, options: dict[str, Any]
    ) -> None:
        if not self._learns and bounds is not None:
            edges = [np.linspace(*pair, self.n_bins + 1) for pair in zip(*bounds, strict=True)]
        else:
            ranks = self._ranks(X, bounds, plan, options)
            level = min(max(_EXTREME, _NOISE * ranks.noise), 0.1)
            if self.strategy == "quantile":
                levels = np.linspace(0.0, 1.0, self.n_bins + 1)
                levels[[0, -1]] = level, 1.0 - level
                found = ranks.quantiles(np.sort(levels))
            else:
                low, high = ranks.quantiles(np.array([level, 1.0 - level]))
                found = np.linspace(low, high, self.n_bins + 1)
            least = _APART * ranks.resolution
            edges = [_distinct(e, gap) for e, gap in zip(found.T, least, strict=True)]
        self.bin_edges_ = np.empty(len(edges), dtype=object)
        self.bin_edges_[:] = edges
        self.n_bins_ = np.array([len(e) - 1 for e in edges])

    def transform(self, X: ArrayLike) -> Any:
        """Bins of the values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; what lies beyond the outermost edges is in the outermost bins.

        Returns
        -------
        binned : ndarray of shape (n_samples, n_features), or indicators of shape \
(n_samples, n_output_features)
        """
        values = self._check_input(X)
        missing = np.isnan(values)
        for j, edges in enumerate(self.bin_edges_):
            values[:, j] = np.searchsorted(edges[1:-1], values[:, j], side="right")
        values[missing] = np.nan
        if self.encode == "ordinal":
            return values
        values[missing] = -1.0  # a category that no column has
        return self._encoder(values.dtype).transform(values)

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Centres of the bins.

        Parameters
        ----------
        X : array-like or sparse matrix
            What `transform` returned.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
            NaN where a value is in no bin.
        """
        if self.encode != "ordinal":
            encoder = self._encoder(np.dtype(np.float64))
            codes = encoder.inverse_transform(X)
            X = np.array([[np.nan if c is None else c for c in row] for row in codes], dtype=float)
        original = self._check_scaled(X)
        missing = np.isnan(original)
        for j, edges in enumerate(self.bin_edges_):
            centres = (edges[1:] + edges[:-1]) * 0.5
            codes = np.where(missing[:, j], 0.0, original[:, j]).astype(np.int64)
            original[:, j] = centres[np.clip(codes, 0, len(centres) - 1)]
        original[missing] = np.nan
        return original

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input's columns. None: those seen in `fit`.

        Returns
        -------
        names : ndarray of str
            Those of the input, followed by the number of the bin for indicators.
        """
        names = super().get_feature_names_out(input_features)
        if self.encode == "ordinal":
            return np.asarray(names)
        return np.asarray(self._encoder(np.dtype(np.float64)).get_feature_names_out(names))

    def _encoder(self, dtype: np.dtype) -> OneHotEncoder:
        """Encoder of the numbers of bins; it learns nothing."""
        encoder = OneHotEncoder(
            categories=[np.arange(float(count)) for count in self.n_bins_],
            sparse_output=self.encode == "onehot",
            handle_unknown="ignore",
            dtype=dtype.type,
        )
        return encoder.set_output(transform="default").fit(np.zeros((1, len(self.n_bins_))))

    def make_non_private(self) -> KBinsDiscretizer:
        """Scikit-learn's `KBinsDiscretizer`, of all rows."""
        return KBinsDiscretizer(
            n_bins=self.n_bins,
            encode=self.encode,
            strategy=self.strategy,
            quantile_method="averaged_inverted_cdf",
            subsample=None,
        )


def _distinct(edges: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Edges that are further apart than `least`; two at least."""
    kept = edges[np.concatenate([[True], np.diff(edges) > least])]
    if len(kept) > 1:
        return kept
    width = max(least / _APART, float(np.spacing(abs(edges[0]))))
    return np.array([edges[0] - width, edges[0] + width])
