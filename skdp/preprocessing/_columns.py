"""What transformers share that learn private statistics of single columns."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from abc import abstractmethod
from math import isinf
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skdp._location import plan_bounds
from skdp._quantiles import Ranks, find_ranks, plan_ranks
from skdp._sparse_rows import canonical_rows
from skdp._threads import Workers, workers
from skdp._validation import FLOATS, Interval, check_features, without_data
from skdp.accounting import PrivacyCost
from skdp.base import PrivateLearner
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.preprocessing._bounds import column_bounds, share_of_budget
from skdp.preprocessing._sparse_columns import SPARSE_FORMATS

__all__ = ["PrivateColumns", "PrivateQuantiles", "PrivateSelector"]

FloatArray = NDArray[np.float64]
Bounds = tuple[FloatArray, FloatArray]


class PrivateColumns(TransformerMixin, PrivateLearner):
    """Base of transformers with public or found bounds; NaN is a missing value.

    A subclass says what it releases (`_releases`), learns it (`_learn`, or a `fit` of its own), and
    names the attributes that an infinite epsilon takes from scikit-learn's transformer (`_copied`).
    """

    _sparse: ClassVar[bool] = False
    # Of the budget, for finding bounds where none are given.
    _location_share: ClassVar[float] = 0.8

    _parameter_constraints: dict[str, Any] = {
        **PrivateLearner._parameter_constraints,
        "bounds": [None, "array-like", dict],
        "n_rows": [None, Interval(Integral, 1, None, closed="left")],
        "n_jobs": [None, Integral],
    }
    _copied: ClassVar[tuple[str, ...]]

    bounds: Any
    n_rows: int | None
    n_jobs: int | None

    @property
    def preparation_share(self) -> float:
        """Share of mu^2 that a `PrivacyBudget` gives this step by default."""
        return share_of_budget(self.bounds)

    @property
    def _learns(self) -> bool:
        """Whether anything of the data is used."""
        return True

    @property
    def _finite(self) -> str | bool:
        """What X must be, in scikit-learn's words: missing values may be allowed."""
        return "allow-nan"

    @abstractmethod
    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        """Planned releases and settings."""

    def _learn(self, X: Any, bounds: Bounds | None, plan: Plan, options: dict[str, Any]) -> None:
        """Set the attributes; `options` are the keywords of queries."""
        raise NotImplementedError

    def _located(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        """Releases that find bounds where none are given, and what they leave of the budget."""
        if self.bounds is not None:
            return (), budget
        return plan_bounds(budget, shape.n_features, shape.n_rows, self._location_share)

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            The budget; zero where nothing of the data is used.
        """
        cost = super().planned_cost()
        if cost.is_finite and not self._learns:
            return PrivacyCost.zero(
                neighboring=cost.neighboring, unit=cost.unit, reference_delta=cost.reference_delta
            )
        return cost

    def plan(self, n_samples: int, n_features: int, n_outputs: int = 1) -> Plan:
        """All that `fit` would release, computed without data.

        Parameters
        ----------
        n_samples : int
            Number of rows; `n_rows` takes its place when given.
        n_features : int
            Number of columns of X.
        n_outputs : int, default=1
            Not used.

        Returns
        -------
        plan : Plan
            Releases with their sensitivity, noise and cost.
        """
        budget = self._check_parameters()
        shape = ProblemShape(self.n_rows or n_samples, n_features)
        if isinf(budget.mu) or not self._learns:
            return Plan(shape, budget)
        releases, settings = self._releases(budget, shape)
        return Plan(shape, budget, releases, settings)

    def _public_bounds(self, n_features: int) -> Bounds | None:
        if self.bounds is None:
            return None
        return column_bounds(self.bounds, n_features, getattr(self, "feature_names_in_", None))

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn private statistics of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        data = check_features(self, X, reset=True, **self._accepted)
        if issparse(data):
            data = canonical_rows(data.tocsr())
        bounds = self._public_bounds(data.shape[1])
        plan = self.plan(*data.shape)
        if not plan.budget.is_finite:
            twin = self._twin_for(plan.shape).fit(data)
            for name in self._copied:
                setattr(self, name, getattr(twin, name))
            self._finish_non_private(plan)
            return self
        noise = self._start(plan)
        with workers(self.n_jobs) as pool:
            self._learn(data, bounds, plan, self._options(plan, noise, pool))
        self._finish(plan, noise)
        return self

    def _twin_for(self, shape: ProblemShape) -> Any:
        """Scikit-learn's transformer for data of a shape."""
        return self.make_non_private()

    def _options(self, plan: Plan, noise: NoiseCore, pool: Workers) -> dict[str, Any]:
        return {
            "n_rows": plan.shape.n_rows,
            "noise": noise,
            "neighboring": self.neighboring,
            "pool": pool,
        }

    def _names_in(self, input_features: Any) -> NDArray[np.object_]:
        """Names of the input's columns, checked."""
        return np.asarray(OneToOneFeatureMixin.get_feature_names_out(self, input_features))

    def _check_scaled(self, X: ArrayLike, n_features: int | None = None) -> NDArray[np.floating]:
        """Data for `inverse_transform`, a copy."""
        n_features = n_features or self.n_features_in_
        options = {"accept_sparse": self._formats, "ensure_all_finite": "allow-nan"}
        scaled: NDArray[np.floating] = without_data(
            check_array, X, dtype=FLOATS, copy=True, **options
        )
        if scaled.shape[1] != n_features:
            raise ValueError(
                f"X has {scaled.shape[1]} features, but {type(self).__name__} is expecting "
                f"{n_features} features as input"
            )
        return scaled

    @property
    def _formats(self) -> tuple[str, ...] | bool:
        """What sparse data may be."""
        return SPARSE_FORMATS if self._sparse else False

    @property
    def _accepted(self) -> dict[str, Any]:
        """What X may be."""
        return {"accept_sparse": self._formats, "ensure_all_finite": self._finite}

    def _check_input(self, X: ArrayLike) -> Any:
        """Data for `transform`, a copy."""
        check_is_fitted(self, "releases_")  # the cost is there after a fit that failed, too
        return check_features(self, X, reset=False, **self._accepted).copy()

    def _by_twin(self, method: str, X: ArrayLike) -> Any:
        """What scikit-learn's transformer does with the attributes of this one."""
        twin = self.make_non_private()
        for name in (*self._copied, "n_features_in_"):
            setattr(twin, name, getattr(self, name))
        with config_context(transform_output="default"):
            return without_data(getattr(twin, method), X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._finite is not True
        tags.input_tags.sparse = self._sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PrivateSelector(SelectorMixin, PrivateColumns):
    """Base of transformers that keep some of the columns."""

    _sparse = True

    def transform(self, X: ArrayLike) -> Any:
        """Keep the selected columns.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Data.

        Returns
        -------
        kept : ndarray, CSR or CSC array of shape (n_samples, n_selected_features)
        """
        return self._check_input(X)[:, self._get_support_mask()]

    def inverse_transform(self, X: ArrayLike) -> Any:
        """Put the selected columns back in their places, with zeros for the others.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_selected_features)
            What `transform` returned.

        Returns
        -------
        original : ndarray or sparse array of shape (n_samples, n_features)
        """
        check_is_fitted(self, "releases_")
        return without_data(super().inverse_transform, X)


class PrivateQuantiles(PrivateColumns):
    """Base of transformers that learn quantiles."""

    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        releases, depth = plan_ranks(
            budget, shape.n_features, shape.n_rows, bounded=self.bounds is not None
        )
        return releases, {"depth": depth}

    def _ranks(
        self,
        X: NDArray[np.floating],
        bounds: Bounds | None,
        plan: Plan,
        options: dict[str, Any],
    ) -> Ranks:
        return find_ranks(X, bounds, plan.settings["depth"], **options)
