"""Target encoding of categories that are public or found privately."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from math import inf, nextafter, sqrt
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import TargetEncoder
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from skdp._level_sums import FoundLevels, LevelCodes, release_levels
from skdp._validation import (
    Interval,
    StrOptions,
    check_numbers,
    declared_classes,
    encode_labels,
    feature_names_in,
    without_data,
)
from skdp.accounting import PrivacyCost
from skdp.preprocessing._bounds import target_bounds
from skdp.preprocessing._encoder import PrivateEncoder
from skdp.preprocessing._levels import array_of, given_levels, read_columns

__all__ = ["DPTargetEncoder"]

FloatArray = NDArray[np.float64]
# Binary places of counts and of sums by level; a target has one less, so that half of it, which is
# what the sum over all records counts for, is on the grid too.
_BITS = 20
# Variance of a bounded target within a level, in units of half its range, where it is not known.
_WITHIN = 1.0 / 9.0


class DPTargetEncoder(PrivateEncoder):
    """Encode each category as the private mean of the target of its records.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `TargetEncoder`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    categories : "auto", list of array-like, or dict of str to array-like, default="auto"
        Public categories of the columns, in their order or by column name; "auto" in the place of
        a list has them found. "auto" for all: found in the same release.
    classes : array-like or set, default=None
        Public labels of a target that is a class. Two: each feature becomes the share of the
        second one, in sorted order; more: the shares of all of them.
    y_bounds : pair of float, default=None
        Public lower and upper bound of a target that is a number; values beyond are clipped to
        them. Either this or `classes` is needed.
    target_type : {"auto", "binary", "multiclass", "continuous"}, default="auto"
        Kind of target, which must agree with what is declared. "auto": what is declared.
    smooth : "auto" or float, default="auto"
        A number: records at the overall mean that are added to each category. "auto": means are
        drawn toward the overall mean as far as their noise and the sampling of their records ask
        for, judged by how much they differ.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others.
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    categories_ : list of ndarray
        Given or found categories of every column; those found are sorted.
    counts_ : list of ndarray
        Their noisy counts.
    encodings_ : list of ndarray
        What the categories of each feature become; with more than two classes, for feature i and
        class j at ``i * n_classes + j``.
    target_mean_ : float, or ndarray of shape (n_classes,)
        Private overall mean, which stands for unknown categories.
    target_type_ : {"continuous", "binary", "multiclass"}
        Kind of target that was declared.
    classes_ : ndarray of shape (n_classes,) or None
        The labels.
    output_norm_ : float or None
        Largest norm of a row of the output; None where the target is not declared.
    privacy_cost_ : PrivacyCost
        What the fit cost.
    releases_ : tuple of Release
        Every noisy value that was released, with its sensitivity and noise.
    plan_ : Plan
        What was planned before the data were touched.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        For invalid parameters or data, and for a budget without a delta0 where one is needed.

    See Also
    --------
    DPOneHotEncoder : One column per category, for few of them.

    Notes
    -----
    **Privacy.** One vector is released: for all levels of all columns the counts and the sums of
    the target, mapped to [-1, 1] by its bounds (one of each class), and half the sum over all
    records. A record has a share of norm at most ``sqrt(2 d + 1/4)`` in d columns; two records
    differ by at most ``sqrt(4 d + 1)``. Levels to be found appear with their sums where their noisy
    counts reach a threshold, as in `DPOneHotEncoder`. Public are the shape of X, the given
    categories, `classes` or `y_bounds`, and all parameters. `transform` uses released values only.

    `fit_transform` is `fit` followed by `transform`. Scikit-learn's cross-fitting would release
    everything several times, and is there to keep a model from trusting means that a record has a
    large part in: here the noise hides every record's part. (With ``epsilon=inf`` it is
    scikit-learn's.)

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTargetEncoder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice(["low", "high"], size=(8000, 1))
    >>> y = rng.random(8000) < np.where(X[:, 0] == "high", 0.9, 0.1)
    >>> encoder = DPTargetEncoder(epsilon=1.0, classes=[False, True]).fit(X, y)
    >>> encoder.transform([["low"], ["high"], ["unheard of"]]).ravel().round(1)
    array([0.1, 0.9, 0.5])
    """

    _parameter_constraints: dict[str, Any] = {
        name: constraint
        for name, constraint in PrivateEncoder._parameter_constraints.items()
        if name not in ("min_frequency", "max_categories")
    } | {
        "classes": ["array-like", set, frozenset, None],
        "y_bounds": ["array-like", None],
        "target_type": [StrOptions({"auto", "binary", "multiclass", "continuous"})],
        "smooth": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    _release_name = "targets by level"
    # Every level has its mean, and unknown ones that of all records.
    handle_unknown = "ignore"
    min_frequency = None
    max_categories = None

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        categories: Any = "auto",
        classes: Any = None,
        y_bounds: Any = None,
        target_type: str = "auto",
        smooth: float | str = "auto",
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.classes = classes
        self.y_bounds = y_bounds
        self.target_type = target_type
        self.smooth = smooth
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.random_state = random_state

    # ---- planning ----

    @property
    def _counts_all(self) -> bool:
        return True

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        if self.classes is not None and self.y_bounds is not None:
            raise ValueError("either classes or y_bounds describes the target, not both")
        if self.y_bounds is not None:
            target_bounds(self.y_bounds)
        elif self.classes is None and budget.is_finite:
            raise ValueError(
                "the target must be declared: classes=[...] if it is a label, y_bounds=(low, high) "
                "if it is a number"
            )
        if self.target_type != "auto" and self.target_type != self._declared_type():
            raise ValueError(
                f"target_type={self.target_type!r} does not agree with the declared classes or "
                "y_bounds"
            )
        if self.smooth != "auto" and not float(self.smooth) < inf:
            raise ValueError(f"smooth must be finite, got {self.smooth!r}")
        return budget

    def _declared_type(self) -> str:
        if self.y_bounds is not None:
            return "continuous"
        if self.classes is None:
            return self.target_type
        return "binary" if len(self._labels()) == 2 else "multiclass"

    def _labels(self) -> NDArray[Any]:
        """The declared classes, sorted."""
        return declared_classes(self.classes, np.zeros(0))[0]

    def _sensitivity(self, n_columns: int) -> float:
        """Joint sensitivity of counts, sums of targets, and half of the sum over all records.

        In each column a record has a count of 1 and a target of norm 1 at most. Two records in
        different levels differ by 4 in the squared norm, in the same level by no more.
        """
        if self.neighboring == "add_or_remove":
            square = 2.0 * n_columns + 0.25
        else:  # targets of -1 and 1, or of two classes
            square = 4.0 * n_columns + (0.5 if self._declared_type() == "multiclass" else 1.0)
        return nextafter(sqrt(square), inf)

    # ---- fit ----

    def fit(self, X: ArrayLike, y: Any = None) -> DPTargetEncoder:
        """Learn the private mean of the target of each category.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories: texts, numbers, bools or missing values, in an array, a frame or lists.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        self : DPTargetEncoder
        """
        self._check_parameters()
        columns = read_columns(self, X, reset=True)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        names = getattr(self, "feature_names_in_", None)
        given = given_levels(self.categories, len(columns), names)
        target = self._target(y)
        without_data(check_consistent_length, columns[0].codes, target)
        plan = self.plan(len(columns[0].codes), len(columns))
        if not plan.budget.is_finite:
            self._take_twin(without_data(self._twin_for(names).fit, X, target))
            self._finish_non_private(plan)
            return self
        shares = self._shares(target)
        noise = self._start(plan)
        counted = [
            column
            if keys is None
            else LevelCodes(tuple(keys), self._places(column, keys), known=True)
            for column, keys in zip(columns, given, strict=True)
        ]
        (planned,) = plan.releases
        found, half = release_levels(
            counted,
            name=planned.name,
            noise=noise,
            sensitivity=planned.sensitivity,
            delta0=planned.delta0,
            values=2.0 * shares,
            bits=_BITS,
            overall=_exact_sums(shares),
        )
        mean = np.clip(2.0 * half / plan.shape.n_rows, self._least, 1.0)
        self.target_type_ = self._declared_type()
        self.classes_ = None
        if self.classes is not None:
            self.classes_ = self._labels()
        self.categories_ = [array_of(column.levels) for column in found]
        self.counts_ = [column.sums[:, 0] for column in found]
        self.encodings_ = [
            self._in_units(encoding)
            for column in found
            for encoding in self._means(column, mean, planned.sigma).T
        ]
        target_mean = self._in_units(mean)
        multiclass = self.target_type_ == "multiclass"
        self.target_mean_ = target_mean if multiclass else float(target_mean[0])
        self.output_norm_ = self._output_norm(len(self.encodings_))
        self._finish(plan, noise)
        self._warn_lost(given, [(column.levels, None, False) for column in found], plan)
        return self

    def _target(self, y: ArrayLike) -> NDArray[Any]:
        """The target as an array: codes of the classes, numbers, or for the twin as it is."""
        if self.y_bounds is not None:
            return np.asarray(without_data(_one_column, check_numbers(y)))
        labels = np.asarray(without_data(_one_column, y))
        if self.classes is None or not self._is_private:
            return labels
        return encode_labels(labels, self._labels())

    @property
    def _least(self) -> float:
        """Least value of a target on the scale of the release: shares of classes start at 0."""
        return 0.0 if self._declared_type() == "multiclass" else -1.0

    def _shares(self, target: NDArray[Any]) -> FloatArray:
        """Integers of shape (n_rows, n_targets), targets in units of ``2**(1 - _BITS)``."""
        one = 2.0 ** (_BITS - 1)
        kind = self._declared_type()
        if kind == "multiclass":
            return (target[:, None] == np.arange(len(self._labels()))) * one
        if kind == "binary":
            return np.where(target == 1, one, -one)[:, None]
        low, high = target_bounds(self.y_bounds)
        half = high / 2.0 - low / 2.0
        with np.errstate(all="ignore"):
            scaled = (np.clip(target, low, high) / half - low / half - 1.0) * one
        return np.clip(np.trunc(scaled), -one, one)[:, None]

    def _in_units(self, values: FloatArray) -> FloatArray:
        """Means of the target in its own units."""
        kind = self._declared_type()
        if kind == "multiclass":
            return values
        if kind == "binary":
            return (1.0 + values) / 2.0
        low, high = target_bounds(self.y_bounds)
        return low * ((1.0 - values) / 2.0) + high * ((1.0 + values) / 2.0)

    def _means(self, column: FoundLevels, mean: FloatArray, sigma: float) -> FloatArray:
        """Smoothed means of shape (n_levels, n_targets), on the scale of the release.

        With the excess ``d = sum - mean * count`` of a level, ``d**2`` has the expectation
        ``count**2 A + count W + N`` for the variance A between levels, W within them, and N of the
        noise; that gives A, and ``count A d / (count**2 A + count W + N)`` is the best linear guess
        of how far the level lies from the mean.
        """
        counts = np.maximum(column.sums[:, :1], 0.0)
        excess = column.sums[:, 1:] - mean * column.sums[:, :1]
        if self.smooth != "auto":
            weight = counts + float(self.smooth)
            shift = np.divide(excess, weight, out=np.zeros_like(excess), where=weight > 0)
        else:
            within = {
                "continuous": np.full_like(mean, _WITHIN),
                "binary": 1.0 - mean**2,
                "multiclass": mean * (1.0 - mean),
            }[self._declared_type()]
            other = counts * within + sigma**2 * (1.0 + mean**2)
            squares = max(float((counts**2).sum()), 1.0)
            between = np.maximum((excess**2 - other).sum(axis=0) / squares, 0.0)
            shift = between * counts * excess / (between * counts**2 + other)
        return np.clip(mean + shift, self._least, 1.0)

    def _output_norm(self, n_outputs: int) -> float | None:
        """Means lie within the bounds, shares between 0 and 1."""
        if self.classes is None and self.y_bounds is None:
            return None
        largest = 1.0 if self.y_bounds is None else max(map(abs, target_bounds(self.y_bounds)))
        return largest * sqrt(n_outputs)

    def _take_twin(self, twin: Any) -> None:
        self._twin_ = twin
        self.output_norm_ = self._output_norm(len(twin.encodings_))
        self.categories_ = twin.categories_
        self.counts_ = [None] * len(twin.categories_)
        for name in ("encodings_", "target_mean_", "target_type_", "classes_"):
            setattr(self, name, getattr(twin, name))

    # ---- transform ----

    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray[Any]:
        """Fit, and transform the same X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_encoded_features)
        """
        self.fit(X, y)
        if self._twin_ is not None:
            return np.asarray(without_data(self._twin_.fit_transform, X, self._target(y)))
        return self.transform(X)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Encode categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_encoded_features)
            One column per feature; one per feature and class with more than two classes.
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return np.asarray(without_data(self._twin_.transform, X))
        means = np.atleast_1d(self.target_mean_)
        encoded = []
        for j, code in enumerate(self._codes(X)):
            for k, mean in enumerate(means):
                table = np.append(self.encodings_[j * len(means) + k], mean)  # -1 takes the last
                encoded.append(table[code])
        return np.stack(encoded, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; those seen in `fit`, or x0, x1, ... when not given.

        Returns
        -------
        names : ndarray of str
            With more than two classes, feature and class joined by an underscore.
        """
        check_is_fitted(self, "categories_")
        names = feature_names_in(self, input_features)
        if self.target_type_ != "multiclass" or self.classes_ is None:
            return names
        both = [f"{name}_{label}" for name in names for label in self.classes_]
        return np.array(both, dtype=object)

    def make_non_private(self) -> TargetEncoder:
        """Scikit-learn's `TargetEncoder`; categories by name are taken in their order."""
        return TargetEncoder(
            categories=self._twin_categories(None),
            target_type=self._declared_type(),
            smooth=self.smooth,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _one_column(y: ArrayLike) -> NDArray[Any]:
    return np.asarray(column_or_1d(y, warn=True))


def _exact_sums(shares: FloatArray) -> NDArray[np.int64]:
    """Sums over all records: integers far below 2**53, exact in any order."""
    return shares.sum(axis=0).astype(np.int64)
