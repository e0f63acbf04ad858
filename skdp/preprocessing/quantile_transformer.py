"""Columns mapped to ranks, or to normal scores, by private quantiles."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import QuantileTransformer

from skdp._validation import Interval, StrOptions
from skdp.accounting import PrivacyCost
from skdp.plan import Plan, ProblemShape
from skdp.preprocessing._columns import Bounds, PrivateQuantiles
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPQuantileTransformer"]


@shared_docs(twin="QuantileTransformer")
class DPQuantileTransformer(OneToOneFeatureMixin, PrivateQuantiles):
    """Map columns to their ranks, from 0 to 1, or to normal scores, by private quantiles.

    Parameters
    ----------
    %(budget)s
    n_quantiles : int, default=1000
        Number of quantiles that describe a column, at most the number of rows. All of them come
        from the same release: more cost nothing.
    output_distribution : {"uniform", "normal"}, default="uniform"
        Distribution of the transformed columns.
    %(common)s

    Attributes
    ----------
    n_quantiles_ : int
        Number of quantiles.
    quantiles_ : ndarray of shape (n_quantiles_, n_features)
        Private quantiles. The outermost are bounds, given or found, and no record's values.
    references_ : ndarray of shape (n_quantiles_,)
        Their levels.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(quantiles)s

    Columns that cannot be told from the noise are taken to lie evenly between -1 and 1, or
    between their public bounds, and a warning says how large the noise is.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPQuantileTransformer
    >>> incomes = np.random.default_rng(0).lognormal(10.0, 0.5, size=(20_000, 1))
    >>> ranks = DPQuantileTransformer(epsilon=1.0).fit_transform(incomes)
    >>> bool(abs(np.median(ranks) - 0.5) < 0.05)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateQuantiles._parameter_constraints,
        "n_quantiles": [Interval(Integral, 1, None, closed="left")],
        "output_distribution": [StrOptions({"uniform", "normal"})],
    }
    _copied = ("n_quantiles_", "quantiles_", "references_")

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        n_quantiles: int = 1000,
        output_distribution: str = "uniform",
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.n_quantiles = n_quantiles
        self.output_distribution = output_distribution
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(
        self, X: NDArray[np.floating], bounds: Bounds | None, plan: Plan, options: dict[str, Any]
    ) -> None:
        ranks = self._ranks(X, bounds, plan, options)
        self.n_quantiles_ = min(self.n_quantiles, plan.shape.n_rows)
        self.references_ = np.linspace(0.0, 1.0, self.n_quantiles_)
        quantiles = ranks.quantiles(self.references_)
        # Rounding must not make them decrease.
        self.quantiles_ = np.maximum.accumulate(quantiles, axis=0)

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Map columns to ranks or normal scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; missing values stay missing.

        Returns
        -------
        transformed : ndarray of shape (n_samples, n_features)
        """
        return np.asarray(self._by_twin("transform", self._check_input(X)))

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Map ranks or normal scores back to values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed data.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
        """
        return np.asarray(self._by_twin("inverse_transform", self._check_scaled(X)))

    def _twin_for(self, shape: ProblemShape) -> QuantileTransformer:
        # More quantiles than rows would be a warning.
        return self.make_non_private().set_params(n_quantiles=min(self.n_quantiles, shape.n_rows))

    def make_non_private(self) -> QuantileTransformer:
        """Scikit-learn's `QuantileTransformer`, of all rows."""
        return QuantileTransformer(
            n_quantiles=self.n_quantiles,
            output_distribution=self.output_distribution,
            subsample=None,
        )
