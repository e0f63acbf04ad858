"""Missing values replaced by private statistics of their columns."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_union
from sklearn.utils.validation import check_is_fitted

from skdp._location import find_bounds
from skdp._moments import plan_moments, release_sums
from skdp._validation import StrOptions
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.preprocessing._columns import Bounds, PrivateQuantiles
from skdp.preprocessing._docs import shared_docs

__all__ = ["DPSimpleImputer"]

# Noise of a mean, in units of half the distance of the bounds, that is worth a warning.
_ROUGH = 0.25


@shared_docs(twin="SimpleImputer")
class DPSimpleImputer(PrivateQuantiles):
    """Replace missing values by private statistics of their columns.

    Parameters
    ----------
    %(budget)s
        Not used by ``strategy="constant"``, which costs nothing.
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        What takes the place of a missing value. ``"most_frequent"`` is the roundest number in the
        fullest of many equal bins: right for flags, integers and other round values, and near
        the peak of continuous ones.
    fill_value : float, default=None
        The value for ``strategy="constant"``. None: 0.
    add_indicator : bool, default=False
        Whether indicators of missing values are appended: one for *every* column, as which columns
        have missing values is data.
    %(common)s

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        What missing values are replaced by.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data.

    Notes
    -----
    %(quantiles)s For means it is instead the sums of the values that are there and the numbers of
    those that are missing, with sensitivity ``sqrt(n_features)`` in units where bounds are -1 and
    1.

    Columns that cannot be told from the noise are filled with 0, or with the middle of their public
    bounds, and a warning says how large the noise is.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSimpleImputer
    >>> ages = np.random.default_rng(0).uniform(18, 90, size=(5000, 1))
    >>> ages[::10] = np.nan
    >>> imputer = DPSimpleImputer(epsilon=1.0, bounds=(0, 120)).fit(ages)
    >>> bool(abs(imputer.statistics_[0] - 54) < 3)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateQuantiles._parameter_constraints,
        "strategy": [StrOptions({"mean", "median", "most_frequent", "constant"})],
        "fill_value": [None, Real],
        "add_indicator": ["boolean"],
    }
    _copied = ("statistics_",)

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        strategy: str = "mean",
        fill_value: float | None = None,
        add_indicator: bool = False,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.strategy = strategy
        self.fill_value = fill_value
        self.add_indicator = add_indicator
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns(self) -> bool:
        return self.strategy != "constant"

    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        if self.strategy != "mean":
            return super()._releases(budget, shape)
        located, rest = self._located(budget, shape)
        return (*located, plan_moments(rest, shape.n_features, second=False)), {}

    def _learn(
        self, X: NDArray[np.floating], bounds: Bounds | None, plan: Plan, options: dict[str, Any]
    ) -> None:
        if self.strategy == "constant":
            self.statistics_ = np.full(X.shape[1], float(self.fill_value or 0.0))
        elif self.strategy == "mean":
            self.statistics_ = self._means(X, bounds, options)
        else:
            ranks = self._ranks(X, bounds, plan, options)
            middle = ranks.quantiles(np.array([0.5]))[0]
            found = middle if self.strategy == "median" else ranks.modes()
            self.statistics_ = np.where(ranks.found, found, middle)

    def _means(
        self, X: NDArray[np.floating], bounds: Bounds | None, options: dict[str, Any]
    ) -> NDArray[np.float64]:
        found = np.ones(X.shape[1], dtype=bool)
        if bounds is None:
            place = find_bounds(X, **options)
            found, bounds = ~place.unscaled, (place.low, place.high)
        moments = release_sums(X, *bounds, second=False, missing=True, **options)
        worst = float(moments.doubt.max())
        if worst > _ROUGH:
            warn(
                f"means are rough: their noise is {worst:.3g} of half the distance of the "
                f"bounds, with {moments.n_rows} rows; use a larger budget or fewer columns",
                UtilityWarning,
            )
        return np.where(found, moments.mean, 0.0)

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Replace missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features) or (n_samples, 2 * n_features)
            With the indicators at the end, if there are any.
        """
        filled = self._check_input(X)
        missing = np.isnan(filled)
        filled = np.where(missing, self.statistics_.astype(filled.dtype), filled)
        return np.hstack([filled, missing.astype(filled.dtype)]) if self.add_indicator else filled

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Make values missing again, where indicators tell.

        Parameters
        ----------
        X : array-like of shape (n_samples, 2 * n_features)
            What `transform` returned with `add_indicator`.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "statistics_")
        if not self.add_indicator:
            raise ValueError("inverse_transform needs add_indicator=True, as in scikit-learn")
        n_features = self.n_features_in_
        filled = self._check_scaled(X, 2 * n_features)
        return np.where(filled[:, n_features:] > 0.5, np.nan, filled[:, :n_features])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input's columns. None: those seen in `fit`.

        Returns
        -------
        names : ndarray of str
            Those of the input, and of the indicators.
        """
        names = self._names_in(input_features)
        if not self.add_indicator:
            return names
        return np.array([*names, *(f"missingindicator_{name}" for name in names)], dtype=object)

    def _twin_for(self, shape: ProblemShape) -> SimpleImputer:
        return SimpleImputer(
            strategy=self.strategy, fill_value=self.fill_value, keep_empty_features=True
        )

    def make_non_private(self) -> SimpleImputer | FeatureUnion:
        """Scikit-learn's `SimpleImputer`, beside indicators of all columns where they are added."""
        imputer = self._twin_for(ProblemShape(1, 1))
        if not self.add_indicator:
            return imputer
        return make_union(imputer, MissingIndicator(features="all"))
