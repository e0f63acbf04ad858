"""What the private encoders of categories share: which levels a column has, and at what cost."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._histograms import column_sensitivity
from skdp._level_sums import LevelCodes, release_levels
from skdp._validation import Interval, check_budget, check_parameters
from skdp._warn import listed, warn
from skdp.accounting import PrivacyCost
from skdp.base import SEEDED, PrivateLearner
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.preprocessing._levels import (
    Key,
    array_of,
    given_levels,
    is_auto,
    keys_of,
    places,
    read_columns,
)

__all__ = ["Grouping", "PrivateEncoder", "group_levels"]

# Levels of a column, their noisy counts, and whether records with none of them are surely there.
Levels = tuple[Sequence[Any], NDArray[np.float64] | None, bool]
# Records without a found level are a level of their own if they are surely more than none: that
# many standard deviations of the noise of their number.
_SURE = 4.0


@dataclass(frozen=True)
class Grouping:
    """Which levels of a column are told apart.

    Attributes
    ----------
    codes : ndarray of shape (n_levels,)
        Place of every level among the groups; infrequent ones share the last.
    n_frequent : int
        Number of levels with a group of their own.
    has_rest : bool
        Whether there is a group of infrequent levels after them.
    """

    codes: NDArray[np.int64]
    n_frequent: int
    has_rest: bool

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.n_frequent + self.has_rest

    @property
    def infrequent(self) -> NDArray[np.bool_]:
        """Which levels are infrequent."""
        return self.codes >= self.n_frequent


def group_levels(
    counts: NDArray[np.float64] | None,
    n_levels: int,
    *,
    n_rows: int,
    min_frequency: float | None,
    max_categories: int | None,
    has_rest: bool,
) -> Grouping:
    """Set the infrequent levels of a column apart, by released counts.

    Parameters
    ----------
    counts : ndarray of shape (n_levels,) or None
        Noisy counts. None: no level is infrequent.
    n_levels : int
        Number of levels.
    n_rows : int
        Declared number of records.
    min_frequency : int, float or None
        Least count, or least share of the records, of a level that is not infrequent.
    max_categories : int or None
        Largest number of groups.
    has_rest : bool
        Whether the group of infrequent levels is needed anyway.
    """
    rare = np.zeros(n_levels, dtype=bool)
    if counts is not None and min_frequency is not None:
        whole = isinstance(min_frequency, Integral)
        rare = counts < (min_frequency if whole else min_frequency * n_rows)
    # As scikit-learn counts: with a group for infrequent levels, whether there are any or not.
    if counts is not None and max_categories is not None:
        most = max_categories - 1
        if n_levels - rare.sum() > most:
            order = np.argsort(counts, kind="stable")
            rare[order[: n_levels - most]] = True
    n_frequent = int(n_levels - rare.sum())
    codes = np.where(rare, n_frequent, np.cumsum(~rare) - 1)
    return Grouping(codes.astype(np.int64), n_frequent, has_rest or bool(rare.any()))


class PrivateEncoder(TransformerMixin, PrivateLearner):
    """Base of encoders whose categories are public or found by a thresholded histogram."""

    _release_name = "levels"

    _parameter_constraints: dict[str, Any] = {
        **PrivateLearner._parameter_constraints,
        "categories": ["array-like", dict, str],
        "min_frequency": [
            None,
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "max_categories": [None, Interval(Integral, 1, None, closed="left")],
        "n_rows": [None, Interval(Integral, 1, None, closed="left")],
    }

    categories: Any
    handle_unknown: str
    min_frequency: float | None
    max_categories: int | None
    n_rows: int | None
    _twin_: Any = None  # what transforms where epsilon is infinite

    # ---- what is released ----

    @property
    def _counts_all(self) -> bool:
        """Whether given categories are counted too."""
        return self.min_frequency is not None or self.max_categories is not None

    def _n_auto(self, n_features: int) -> int:
        """Number of columns with levels to be found."""
        if is_auto(self.categories):
            return n_features
        given = self.categories
        return sum(map(is_auto, given.values() if isinstance(given, Mapping) else given))

    def needs_delta0(self) -> bool:
        """Whether a fit needs a part of delta for itself.

        Returns
        -------
        needed : bool
            True where categories are to be found: that a level which one record has alone stays
            hidden has a probability below one.
        """
        return self._n_auto(1) > 0

    def _releases_something(self) -> bool:
        return self._counts_all or self._n_auto(1) > 0

    def _check_parameters(self) -> PrivacyCost:
        check_parameters(self)
        if isinstance(self.categories, str) and self.categories != "auto":
            raise ValueError('categories must be "auto", a list by column or a dict by name')
        if self.handle_unknown == "error" and self._n_auto(1) > 0 and self._is_private:
            raise ValueError(
                "handle_unknown='error' needs given categories: rare levels are not found privately"
            )
        return self._budget()

    def _budget(self) -> PrivacyCost:
        return check_budget(self.epsilon, self.delta, self.neighboring, failure=self.needs_delta0())

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            The budget; zero when all categories are given and none is counted.
        """
        cost = self._budget()
        if not cost.is_finite:
            return cost
        if not self._releases_something():
            return PrivacyCost.zero(
                neighboring=cost.neighboring, unit=cost.unit, reference_delta=cost.reference_delta
            )
        return cost.with_assumptions(SEEDED) if self.random_state is not None else cost

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
            The release with its sensitivity, noise and cost.
        """
        budget = self._check_parameters()
        shape = ProblemShape(self.n_rows or n_samples, n_features)
        n_counted = n_features if self._counts_all else self._n_auto(n_features)
        if not budget.is_finite or not n_counted:
            return Plan(shape, budget)
        sensitivity = self._sensitivity(n_counted)
        mu, delta0 = budget.gaussian_mu, budget.delta0
        release = PlannedRelease(self._release_name, sensitivity, mu, delta0=delta0)
        return Plan(shape, budget, (release,))

    def _sensitivity(self, n_columns: int) -> float:
        """Joint sensitivity of what is released of the columns that are counted."""
        return column_sensitivity(n_columns, self.neighboring)

    # ---- fit ----

    def fit(self, X: ArrayLike, y: Any = None) -> Any:
        """Take the given categories, and find the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories: texts, numbers, bools or missing values, in an array, a frame or lists.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        columns = read_columns(self, X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        given = self._given(given_levels(self.categories, len(columns), names))
        plan = self.plan(len(columns[0].codes), len(columns))
        if not plan.budget.is_finite:
            twin = self._twin_for(names).fit(X)
            self._take_twin(twin)
            self._finish_non_private(plan)
            return self
        self._check_known(columns, given)
        noise = self._start(plan)
        levels: list[Levels] = [(keys or [], None, False) for keys in given]
        if plan.releases:
            levels = self._released(columns, given, plan, noise)
        self._set_levels(plan, levels)
        self._finish(plan, noise)
        self._warn_lost(given, levels, plan)
        return self

    def _check_known(
        self, columns: Sequence[LevelCodes], given: Sequence[Sequence[Key] | None]
    ) -> None:
        if self.handle_unknown != "error":
            return
        for j, (column, keys) in enumerate(zip(columns, given, strict=True)):
            if keys is not None and (self._places(column, keys) == -1).any():
                raise ValueError(
                    f"column {j} of X holds categories that are not among those given; list all "
                    "that can occur, or set handle_unknown"
                )

    def _places(self, column: LevelCodes, keys: Sequence[Key]) -> NDArray[np.int64]:
        """Place of every record's level; -1 for unknown ones, -2 for missing ones."""
        return places(column, keys)

    def _released(
        self,
        columns: list[LevelCodes],
        given: Sequence[Sequence[Key] | None],
        plan: Plan,
        noise: NoiseCore,
    ) -> list[Levels]:
        """Levels of every column, those of counted ones with their noisy counts."""
        counted = []
        for column, keys in zip(columns, given, strict=True):
            if keys is None:
                counted.append(self._without_missing(column))
            elif self._counts_all:
                codes = np.maximum(self._places(column, keys), -1)
                counted.append(LevelCodes(tuple(keys), codes, known=True))
        (planned,) = plan.releases
        found, _ = release_levels(
            counted,
            name=planned.name,
            noise=noise,
            sensitivity=planned.sensitivity,
            delta0=planned.delta0,
        )
        left = iter(found)
        levels: list[Levels] = []
        for keys in given:
            if keys is not None and not self._counts_all:
                levels.append((keys, None, False))
                continue
            column_found = next(left)
            counts = column_found.sums[:, 0]
            rest = plan.shape.n_rows - counts.sum()
            is_rest = keys is None and (
                len(counts) == 0 or rest > _SURE * planned.sigma * sqrt(len(counts))
            )
            levels.append((column_found.levels, counts, bool(is_rest)))
        return levels

    def _without_missing(self, column: LevelCodes) -> LevelCodes:
        """The column as it is counted."""
        return column

    def _given(self, given: list[list[Key] | None]) -> list[list[Key] | None]:
        """The given levels as they are encoded."""
        return given

    def _set_levels(self, plan: Plan, levels: list[Levels]) -> None:
        self.categories_ = [array_of(keys) for keys, _, _ in levels]
        self.counts_ = [counts for _, counts, _ in levels]
        self._groups = [
            group_levels(
                counts,
                len(keys),
                n_rows=plan.shape.n_rows,
                min_frequency=self.min_frequency,
                max_categories=self.max_categories,
                has_rest=rest and self._keeps_rest,
            )
            for keys, counts, rest in levels
        ]
        self.infrequent_categories_ = [
            categories[group.infrequent] if group.infrequent.any() else None
            for categories, group in zip(self.categories_, self._groups, strict=True)
        ]

    @property
    def _keeps_rest(self) -> bool:
        """Whether levels that were not found get a group of their own."""
        return self.handle_unknown == "infrequent_if_exist"

    def _warn_lost(self, given: Sequence[Any], levels: list[Levels], plan: Plan) -> None:
        """Warn of columns without any level found: known from released values."""
        lost = [
            j
            for j, (keys, (found, _, _)) in enumerate(zip(given, levels, strict=True))
            if keys is None and not found
        ]
        if lost:
            names = getattr(self, "feature_names_in_", range(len(given)))
            warn(
                f"no level of column {listed([str(names[j]) for j in lost])} was found: counts "
                f"have a noise of {plan.releases[0].sigma:.3g} among {plan.shape.n_rows} records, "
                "and a level must be far above it; give public `categories`, more budget or fewer "
                "columns, or bin numbers first",
                UtilityWarning,
            )

    # ---- the twin ----

    def _twin_categories(self, names: Sequence[str] | None) -> Any:
        """The categories as scikit-learn takes them: "auto" unless all are given."""
        given = self.categories
        if is_auto(given) or self._n_auto(1) > 0:
            return "auto"
        if isinstance(given, Mapping):
            given = [given[name] for name in (given if names is None else names)]
        return [np.asarray(column) for column in given]

    def _twin_for(self, names: Sequence[str] | None) -> Any:
        """The twin, for columns with these names."""
        twin = self.make_non_private()
        return twin.set_params(categories=self._twin_categories(names))

    def _take_twin(self, twin: Any) -> None:
        """Attributes of a fitted twin, which does the work from now on."""
        self._twin_ = twin
        self.categories_ = twin.categories_
        self.counts_ = [None] * len(twin.categories_)
        if self._counts_all:
            self.infrequent_categories_ = twin.infrequent_categories_
        else:
            self.infrequent_categories_ = [None] * len(twin.categories_)

    # ---- transform ----

    def _codes(self, X: ArrayLike) -> list[NDArray[np.int64]]:
        """Place of every record's level, by column; -1 for unknown and -2 for missing ones."""
        check_is_fitted(self, "categories_")
        columns = read_columns(self, X, reset=False)
        given = [keys_of(categories) for categories in self.categories_]
        self._check_known(columns, given)
        return [self._places(*pair) for pair in zip(columns, given, strict=True)]

    def _group_codes(self, X: ArrayLike) -> list[NDArray[np.int64]]:
        """Group of every record, by column; -1 for unknown levels and -2 for missing ones."""
        found = []
        for code, group in zip(self._codes(X), self._groups, strict=True):
            unknown = group.n_frequent if group.has_rest and self._keeps_rest else -1
            table = np.concatenate([group.codes, [-2, unknown]])  # the last two for -2 and -1
            found.append(table[code])
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self._n_auto(1) > 0
        return tags
