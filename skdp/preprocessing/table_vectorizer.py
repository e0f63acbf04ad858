"""Everything that a mixed table needs before a model, privately and in two releases."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._validation import Interval, check_budget, check_parameters, feature_names_in
from skdp._warn import listed, warn
from skdp.accounting import PrivacyCost
from skdp.base import SEEDED, PrivateLearner
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import Plan, ProblemShape
from skdp.preprocessing._levels import array_of, raw_columns
from skdp.preprocessing._table_columns import LevelColumn, NumberColumn, number_values
from skdp.preprocessing._table_counts import Found, plan_table, release_counts
from skdp.preprocessing._table_moments import release_numbers
from skdp.preprocessing._table_twin import table_twin
from skdp.preprocessing.schema import (
    Binary,
    Categorical,
    Column,
    Drop,
    Numeric,
    check_kinds,
    declared_kinds,
)

__all__ = ["DPTableVectorizer"]

_DTYPES = (
    "the types of the columns, by which DPTableVectorizer without a schema decides what they are, "
    "are public"
)


class DPTableVectorizer(TransformerMixin, PrivateLearner):
    """Turn a table of numbers, categories and missing values into standardised features.

    Numbers are standardised, on a logarithmic scale beyond their median where their tail is long,
    missing ones set to the mean and indicated. Categories become indicators, standardised too;
    rare and unknown ones share one. Nothing need be known of the data: what is learned is released
    privately, that of all columns together.

    Parameters
    ----------
    schema : dict of str to kind, list of kinds, or kind, default=None
        What is public about the columns, by name or in their order, or the same for all: `Numeric`,
        `Categorical`, `Binary` and `Drop` objects; `schema_from_public` writes one. None: the
        declared types of the columns decide, which the cost lists as an assumption.
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `SimpleImputer` (with
        indicators), `OneHotEncoder` and `StandardScaler` in a `ColumnTransformer`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
        Where categories may have to be found, a tenth of it is set aside for that.
    min_frequency : int or float, default=None
        Least count, or share of the records, of a category that is not infrequent; judged by noisy
        counts. None: of those that are found only what stands out of the noise is known anyway.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others (about twice the noise).
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    schema_ : tuple of kinds
        Kind of every column.
    mean_, scale_ : ndarray of shape (n_numbers,)
        Private means and standard deviations of the numbers, on their scales.
    units_ : list of float or None
        Unit u of every number whose scale is ``arcsinh(x / u)``; None for that of the column.
    missing_ : ndarray of shape (n_numbers,)
        Private shares of missing values; 0 where they are not surely more than none.
    categories_ : dict of int to list
        By place of the column: categories that have an indicator.
    output_norm_ : float
        Norm of a typical row of the output, the root of the number of its columns: the default
        `feature_norm` of the linear models, so that a model after this needs no argument.
    n_samples_seen_ : int
        Declared number of records.
    privacy_cost_ : PrivacyCost
        What the fit cost.
    releases_ : tuple of Release
        Every noisy value that was released, with its sensitivity and noise.
    plan_ : Plan
        What was planned before the data were touched.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, when X has string column names.

    Raises
    ------
    TypeError, ValueError
        If the schema does not fit the table, or a column of numbers holds something else.

    See Also
    --------
    schema_from_public : Write a schema from a public sample.

    Notes
    -----
    **Privacy.** With a schema in which all categories are given, `fit` is exactly mu-Gaussian DP
    [1]_; else a thresholded histogram adds the delta0 of `privacy_cost_` to it. Two vectors are
    released. *Counts*: of the categories, of the second value of binary columns, and of the signed
    binary exponents of the numbers; a record counts at most once in each column, so their joint
    sensitivity is the root of the number of columns. *Moments*: sums of ``u`` and of
    ``u**2 - 5/8`` for every column of numbers, mapped to [-1, 1] by its window, and the number of
    its missing values; of norm 1.25 per column (``_table_moments.py`` has the derivation). A
    vector with the squared sensitivity of both together would have the same noise. Public are the
    shape of X, `schema` and all parameters; without `schema` also the declared types of the
    columns. Whether a column of numbers holds anything else, or infinite values, is checked first.

    A record is seen once per release; there is no `partial_fit`, as the second release depends on
    the first. At ``epsilon=inf`` bounds and logarithmic scales are not used.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp import Binary, Categorical, DPTableVectorizer, Numeric
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({
    ...     "year": rng.integers(1950, 2010, 5000),
    ...     "income": rng.lognormal(10, 1, 5000),
    ...     "region": rng.choice(["north", "south", "west"], 5000),
    ... })
    >>> schema = {
    ...     "year": Numeric(bounds=(1900, 2020)),
    ...     "income": Numeric(),
    ...     "region": Categorical(["north", "south", "west"]),
    ... }
    >>> vectorizer = DPTableVectorizer(schema, epsilon=1.0).fit(table)
    >>> vectorizer.get_feature_names_out()
    array(['year', 'income', 'region_north', 'region_south', 'region_west'],
          dtype=object)
    >>> bool(abs(vectorizer.transform(table).std() - 1) < 0.3)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLearner._parameter_constraints,
        "schema": [None, dict, list, tuple, Numeric, Categorical, Binary, Drop],
        "min_frequency": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "n_rows": [None, Interval(Integral, 1, None, closed="left")],
    }

    # Share of mu^2 that a `PrivacyBudget` gives this step by default: a tenth is enough from tens
    # of thousands of rows on, where a quarter does no harm; with hundreds and little budget a
    # quarter loses a third less. The figures are in ``docs/tables.rst``.
    preparation_share = 0.25
    _twin_: Any = None  # what transforms where epsilon is infinite

    def __init__(
        self,
        schema: Any = None,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        min_frequency: float | None = None,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.min_frequency = min_frequency
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.random_state = random_state

    # ---- plan ----

    def needs_delta0(self) -> bool:
        """Whether a fit needs a part of delta for itself.

        Returns
        -------
        needed : bool
            True where categories may have to be found.
        """
        if self.schema is None:
            return True
        if isinstance(self.schema, Column):
            kinds = [self.schema]
        else:
            kinds = list(self.schema.values() if isinstance(self.schema, dict) else self.schema)
        return any(isinstance(k, Categorical) and k.categories is None for k in kinds)

    def _budget(self) -> PrivacyCost:
        return check_budget(self.epsilon, self.delta, self.neighboring, failure=self.needs_delta0())

    def _check_parameters(self) -> PrivacyCost:
        check_parameters(self)
        check_kinds(self.schema)
        return self._budget()

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            The budget, with what is assumed.
        """
        cost = self._budget()
        return cost.with_assumptions(*self._assumptions()) if cost.is_finite else cost

    def _assumptions(self) -> tuple[str, ...]:
        seeded = (SEEDED,) if self.random_state is not None else ()
        return (*seeded, _DTYPES) if self.schema is None else seeded

    def plan(self, n_samples: int, n_features: int, n_outputs: int = 1) -> Plan:
        """All that `fit` would release, computed without data.

        Parameters
        ----------
        n_samples : int
            Number of rows; `n_rows` takes its place when given.
        n_features : int
            Number of columns of X. Without a `schema` they are taken for numbers.
        n_outputs : int, default=1
            Not used.

        Returns
        -------
        plan : Plan
            Releases with their sensitivity, noise and cost.
        """
        names = list(self.schema) if isinstance(self.schema, dict) else None
        return self._plan(n_samples, declared_kinds(self.schema, n_features, names, None))

    def _plan(self, n_samples: int, kinds: Sequence[Column]) -> Plan:
        budget = self._check_parameters()
        shape = ProblemShape(self.n_rows or n_samples, len(kinds))
        if not budget.is_finite:
            return Plan(shape, budget)
        releases, settings = plan_table(kinds, shape.n_rows, budget)
        return Plan(shape, budget, releases, settings)

    # ---- fit ----

    def fit(self, X: ArrayLike, y: object = None) -> DPTableVectorizer:
        """Learn private statistics of all columns.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Table of pandas or polars, or an array.
        y : None
            Ignored.

        Returns
        -------
        self : DPTableVectorizer
        """
        self._check_parameters()
        raw = raw_columns(self, X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        kinds = declared_kinds(self.schema, len(raw), names, raw)
        plan = self._plan(len(raw[0]), kinds)
        numbers = {j: number_values(raw[j]) for j, k in enumerate(kinds) if isinstance(k, Numeric)}
        if not plan.budget.is_finite:
            self._twin_ = self.make_non_private().fit(X)
            self._set(kinds, [], [], plan)
            self._finish_non_private(plan)
            return self
        if self.schema is None:
            warn(
                "what the columns are was decided by their types, which the privacy cost does not "
                "cover; declare it as public: schema={...}, see schema_from_public",
                PrivacyLeakWarning,
            )
        noise = self._start(plan)
        levels, magnitudes = release_counts(
            raw, kinds, numbers, plan, noise, min_frequency=self.min_frequency
        )
        columns = self._release_moments(kinds, numbers, magnitudes, plan, noise)
        self._set(kinds, columns, levels, plan)
        self._finish(plan, noise, self._assumptions())
        self._warn_unknown(kinds, magnitudes, levels, plan)
        return self

    def _set(
        self,
        kinds: Sequence[Column],
        numbers: list[NumberColumn],
        levels: list[LevelColumn],
        plan: Plan,
    ) -> None:
        self.schema_ = tuple(kinds)
        self._numbers, self._levels = numbers, levels
        self.n_samples_seen_ = plan.shape.n_rows
        for name in ("mean_", "scale_", "units_", "missing_", "categories_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self._twin_ is None:
            # A scale with an anchor is linear.
            self.mean_ = np.array([column.mean + column.scale.anchor for column in numbers])
            self.scale_ = np.array([column.deviation for column in numbers])
            self.units_ = [column.scale.unit for column in numbers]
            self.missing_ = np.array([column.missing for column in numbers])
            self.categories_ = {c.place: array_of(c.keys).tolist() for c in levels}
        self.output_norm_ = sqrt(len(self.get_feature_names_out()))

    def _release_moments(
        self,
        kinds: Sequence[Column],
        numbers: dict[int, NDArray[np.float64]],
        magnitudes: dict[int, Found],
        plan: Plan,
        noise: NoiseCore,
    ) -> list[NumberColumn]:
        if not numbers:
            return []
        places = list(numbers)
        scales, found, guessed = zip(*(magnitudes[j] for j in places), strict=True)
        n_rows = plan.shape.n_rows
        statistics = release_numbers(
            [numbers[j] for j in places],
            found,
            scales,
            guessed,
            n_rows=n_rows,
            noise=noise,
            sensitivity=plan.releases[-1].sensitivity,
            neighboring=self.neighboring,
        )
        self._warn_unresolved(
            [j for j, told in zip(places, statistics.resolved, strict=True) if not told]
        )
        return [
            NumberColumn(j, scales[i], float(mean), float(deviation), float(missing) / n_rows)
            for i, (j, mean, deviation, missing) in enumerate(
                zip(places, statistics.mean, statistics.deviation, statistics.missing, strict=True)
            )
        ]

    def _warn_unresolved(self, places: Sequence[int]) -> None:
        """Warn of columns with one value, or with values too close together for their size."""
        if places:
            names = [str(name) for name in feature_names_in(self, None)]
            warn(
                f"the values of columns {listed([names[j] for j in places])} lie so close "
                "together for their size that their spread is not known: subtract a public number, "
                "give them bounds, or drop them if all values are the same",
                UtilityWarning,
            )

    def _warn_unknown(
        self,
        kinds: Sequence[Column],
        magnitudes: dict[int, Found],
        levels: Sequence[LevelColumn],
        plan: Plan,
    ) -> None:
        """Warn of columns that could not be told from the noise: known from released values."""
        names = [str(name) for name in feature_names_in(self, None)]
        n_rows = plan.shape.n_rows
        unseen = [names[j] for j, (_, magnitude, _) in magnitudes.items() if not magnitude.found]
        unseen += [
            names[c.place] for c in levels if not c.keys and isinstance(kinds[c.place], Categorical)
        ]
        if unseen:
            warn(
                f"columns {listed(unseen)} could not be told from the noise, so that their scales "
                f"are guesses and their categories unknown: a count has noise of standard "
                f"deviation {plan.releases[0].sigma:.3g}, against {n_rows} rows; declare public "
                "bounds and categories in `schema`, drop columns, or use more budget",
                UtilityWarning,
            )
        vague = plan.releases[-1].sigma / (2.0 * n_rows) if plan.settings["uses_bounds"] else 0.0
        if magnitudes and vague > 1.0 / 3.0:
            warn(
                "the noise of the variances of numbers is as large as the variance of values "
                f"spread evenly between the bounds ({n_rows} rows): scales are guesses made from "
                "the bounds; use more budget or fewer columns",
                UtilityWarning,
            )

    # ---- transform ----

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Turn a table into standardised features.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            Table with the columns that were seen in `fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_features_out)
            Numbers first, then indicators of missing values, then those of binary columns, given
            categories and found ones.
        """
        check_is_fitted(self, "n_samples_seen_")
        raw = raw_columns(self, X, reset=False)
        if self._twin_ is not None:
            return np.asarray(self._twin_.transform(X), dtype=np.float64)
        values = [number_values(raw[column.place]) for column in self._numbers]
        parts = [c.transform(v)[:, None] for c, v in zip(self._numbers, values, strict=True)]
        parts += [
            c.indicate(v)[:, None]
            for c, v in zip(self._numbers, values, strict=True)
            if c.missing > 0.0
        ]
        parts += [column.transform(raw[column.place]) for column in self._levels]
        return np.hstack(parts) if parts else np.zeros((len(raw[0]), 0))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of X, if it had none in `fit`.

        Returns
        -------
        names : ndarray of shape (n_features_out,), object
            Of a number its own, of an indicator that and the category.
        """
        check_is_fitted(self, "n_samples_seen_")
        names = feature_names_in(self, input_features)
        if self._twin_ is not None:
            return np.asarray(self._twin_.get_feature_names_out(names), dtype=object)
        found = [str(names[column.place]) for column in self._numbers]
        found += [
            f"missingindicator_{names[column.place]}"
            for column in self._numbers
            if column.missing > 0.0
        ]
        for column in self._levels:
            found += column.names(str(names[column.place]))
        return np.array(found, dtype=object)

    def make_non_private(self) -> Any:
        """Scikit-learn's transformers for the same columns, in a `Pipeline`."""
        return table_twin(self.schema, self.min_frequency)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
