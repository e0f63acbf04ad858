"""Ordinal encoding of categories that are public or found privately."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skdp._level_sums import LevelCodes
from skdp._validation import StrOptions, without_data
from skdp.accounting import PrivacyCost
from skdp.preprocessing._encoder import PrivateEncoder
from skdp.preprocessing._levels import Key, is_missing, places, values_of

__all__ = ["DPOrdinalEncoder"]


class DPOrdinalEncoder(OneToOneFeatureMixin, PrivateEncoder):
    """Encode the categories of each column as the numbers 0, 1, 2 and so on.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `OrdinalEncoder`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    categories : "auto", list of array-like, or dict of str to array-like, default="auto"
        Public categories of the columns, in their order or by column name; "auto" in the place of
        a list has them found. "auto" for all: a thresholded histogram of all columns together.
    dtype : number type, default=numpy.float64
        Type of the output.
    handle_unknown : {"use_encoded_value", "error"}, default="use_encoded_value"
        What becomes of categories that are not among those given or found: `unknown_value`, or
        the number of the infrequent ones where there are such; "error" needs given categories.
    unknown_value : int or nan, default=-1
        Number of unknown categories.
    encoded_missing_value : int or nan, default=nan
        Number of missing values. They are no category: none has to be found for them.
    min_frequency : int or float, default=None
        Least count, or share of the records, of a category with a number of its own; infrequent
        ones share the number after. Judged by noisy counts, which are charged if the
        categories are given.
    max_categories : int, default=None
        Largest number of numbers for one feature, that of infrequent categories included; the most
        frequent are kept. Judged by noisy counts.
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
        Given or found categories of every column, in the order of their numbers but for the
        infrequent ones; those found are sorted.
    counts_ : list of ndarray or None
        Their noisy counts; None for columns that were not counted.
    infrequent_categories_ : list of ndarray or None
        Those that share the last number.
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
    DPOneHotEncoder : One column per category.

    Notes
    -----
    **Privacy.** As that of `DPOneHotEncoder`, which see: nothing is learned from data with given
    categories, else the counts of the levels of all columns are one release.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPOrdinalEncoder
    >>> X = np.array([["low"], ["high"], ["mid"], [None], ["?"]], dtype=object)
    >>> encoder = DPOrdinalEncoder(categories=[["low", "mid", "high"]]).fit(X)
    >>> encoder.transform(X).ravel()
    array([ 0.,  2.,  1., nan, -1.])
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEncoder._parameter_constraints,
        "dtype": "no_validation",
        "handle_unknown": [StrOptions({"use_encoded_value", "error"})],
        "unknown_value": [Real],
        "encoded_missing_value": [Real],
    }

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        categories: Any = "auto",
        dtype: Any = np.float64,
        handle_unknown: str = "use_encoded_value",
        unknown_value: float = -1,
        encoded_missing_value: float = nan,
        min_frequency: float | None = None,
        max_categories: int | None = None,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.dtype = dtype
        self.handle_unknown = handle_unknown
        self.unknown_value = unknown_value
        self.encoded_missing_value = encoded_missing_value
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.random_state = random_state

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        for name in ("unknown_value", "encoded_missing_value"):
            value = getattr(self, name)
            if isnan(value) and np.dtype(self.dtype).kind != "f":
                raise ValueError(f"{name} is nan, which dtype={self.dtype!r} cannot hold")
        return budget

    # Missing values have their number, whether they occur or not.

    def _without_missing(self, column: LevelCodes) -> LevelCodes:
        kept = [level for level in column.levels if not is_missing(level)]
        # Missing comes last in the order.
        codes = np.where(column.codes < len(kept), column.codes, -1)
        return LevelCodes(tuple(kept), codes)

    def _given(self, given: Sequence[list[Key] | None]) -> list[list[Key] | None]:
        return [
            keys if keys is None else [key for key in keys if not is_missing(key)] for keys in given
        ]

    def _places(self, column: LevelCodes, keys: Sequence[Key]) -> NDArray[np.int64]:
        found = places(column, keys)
        missing = np.array([is_missing(level) for level in column.levels], dtype=bool)
        return np.where(missing[column.codes], -2, found)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Encode categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories.

        Returns
        -------
        encoded : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return np.asarray(without_data(self._twin_.transform, X))
        codes = np.stack(self._group_codes(X), axis=1)
        encoded = codes.astype(self.dtype)
        encoded[codes == -1] = self.unknown_value
        encoded[codes == -2] = self.encoded_missing_value
        return encoded

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Categories of encoded rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Encoded rows.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features), of objects
            None for what is the number of no category, nan for missing values.
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return np.asarray(without_data(self._twin_.inverse_transform, X))
        rows = without_data(check_array, X, ensure_all_finite="allow-nan")
        if rows.shape[1] != len(self._groups):
            raise ValueError(
                f"Shape of the passed X data is not correct. Expected {len(self._groups)} columns, "
                f"got {rows.shape[1]}."
            )
        original = np.full(rows.shape, None, dtype=object)
        for j, group in enumerate(self._groups):
            labels = values_of(self.categories_[j][~group.infrequent])
            labels += ["infrequent_sklearn"] * group.has_rest
            for i, label in enumerate(labels):
                original[rows[:, j] == i, j] = label
            number = self.encoded_missing_value
            missing = np.isnan(rows[:, j]) if isnan(number) else rows[:, j] == number
            original[missing, j] = nan
        return original

    def make_non_private(self) -> OrdinalEncoder:
        """Scikit-learn's `OrdinalEncoder`; categories by name are taken in their order."""
        unknown = self.unknown_value if self.handle_unknown == "use_encoded_value" else None
        return OrdinalEncoder(
            categories=self._twin_categories(None),
            dtype=self.dtype,
            handle_unknown=self.handle_unknown,
            unknown_value=unknown,
            encoded_missing_value=self.encoded_missing_value,
            min_frequency=self.min_frequency,
            max_categories=self.max_categories,
        )
