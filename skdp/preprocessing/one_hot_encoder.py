"""One-hot encoding of categories that are public or found privately."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skdp._validation import StrOptions, feature_names_in, without_data
from skdp.accounting import PrivacyCost
from skdp.plan import Plan
from skdp.preprocessing._encoder import Levels, PrivateEncoder
from skdp.preprocessing._levels import Key, keys_of, values_of

__all__ = ["DPOneHotEncoder"]

_INFREQUENT = "infrequent_sklearn"


class DPOneHotEncoder(PrivateEncoder):
    """Encode categories as one column of zeros and ones each.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `OneHotEncoder`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    categories : "auto", list of array-like, or dict of str to array-like, default="auto"
        Public categories of the columns, in their order or by column name; "auto" in the place of
        a list has them found. "auto" for all: a thresholded histogram of all columns together.
    drop : {"first", "if_binary"} or array-like of shape (n_features,), default=None
        Category of each column that becomes all zeros: the first one, the first one of two, or
        those given. One that was not found is not dropped.
    sparse_output : bool, default=False
        Whether `transform` returns a sparse array.
    dtype : number type, default=numpy.float64
        Type of the output.
    handle_unknown : {"infrequent_if_exist", "ignore", "error"}, default="infrequent_if_exist"
        What becomes of categories that are not among those given or found. "infrequent_if_exist":
        they go to a column of their own, beside those that are below `min_frequency` or beyond
        `max_categories`, where there is one. There is if categories are to be found and the
        released counts leave records over. "ignore" makes them all zeros; "error" needs given
        categories.
    min_frequency : int or float, default=None
        Least count, or share of the records, of a category that has a column of its own. Judged
        by noisy counts, which are charged if the categories are given.
    max_categories : int, default=None
        Largest number of columns for one feature, that of infrequent categories included; the
        most frequent are kept. Judged by noisy counts.
    feature_name_combiner : "concat" or callable, default="concat"
        ``combiner(feature, category)`` names a column of the output.
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
    counts_ : list of ndarray or None
        Their noisy counts; None for columns that were not counted.
    infrequent_categories_ : list of ndarray or None
        Those without a column of their own.
    drop_idx_ : ndarray of shape (n_features,) or None
        Place of the dropped category of every column, or None.
    output_norm_ : float
        Largest norm of a row of the output: ``sqrt(n_features)``, since a row has at most a one per
        feature, however many columns there are.
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
    DPOrdinalEncoder : One column of numbers per feature.
    DPTargetEncoder : One column per feature, for many categories.

    Notes
    -----
    **Privacy.** With given categories, and neither `min_frequency` nor `max_categories`, nothing is
    learned and the cost is zero. Otherwise one vector is released: the counts of the levels of all
    columns together, a missing value being a level. A record counts once in each of d columns: the
    L2 sensitivity is ``sqrt(d)``, or ``sqrt(2 d)`` under ``"replace"``. Levels to be found appear
    where their noisy count reaches a threshold, above which a level that one record has alone
    comes with a probability of at most delta0; a tenth of `delta` is set aside for that, and mu is
    made such that ``delta0 + delta(epsilon; mu) <= delta``. A budget given as a `PrivacyCost`
    must have its own delta0; a `PrivacyBudget` gives it one. Public are the shape of X, the given
    categories and all parameters. `transform` uses released values only.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPOneHotEncoder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice(["blue", "red", "green"], size=(5000, 1), p=[0.5, 0.4, 0.1])
    >>> X[0] = "a word that one record has alone"
    >>> encoder = DPOneHotEncoder(epsilon=1.0).fit(X)
    >>> encoder.categories_
    [array(['blue', 'green', 'red'], dtype=object)]
    >>> encoder.transform([["red"], ["blue"]])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    >>> given = DPOneHotEncoder(categories=[["blue", "red", "green"]]).fit(X)
    >>> given.privacy_cost_
    PrivacyCost(mu=0, nothing released, neighboring='add_or_remove')
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateEncoder._parameter_constraints,
        "drop": [StrOptions({"first", "if_binary"}), "array-like", None],
        "sparse_output": ["boolean"],
        "dtype": "no_validation",
        "handle_unknown": [StrOptions({"infrequent_if_exist", "ignore", "error"})],
        "feature_name_combiner": [StrOptions({"concat"}), callable],
    }

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        categories: Any = "auto",
        drop: Any = None,
        sparse_output: bool = False,
        dtype: Any = np.float64,
        handle_unknown: str = "infrequent_if_exist",
        min_frequency: float | None = None,
        max_categories: int | None = None,
        feature_name_combiner: str | Callable[[str, Any], str] = "concat",
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.drop = drop
        self.sparse_output = sparse_output
        self.dtype = dtype
        self.handle_unknown = handle_unknown
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.feature_name_combiner = feature_name_combiner
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.random_state = random_state

    # ---- which columns there are ----

    def _given(self, given: list[list[Key] | None]) -> list[list[Key] | None]:
        one_each = self.drop is not None and not isinstance(self.drop, str)
        if one_each and len(self.drop) != len(given):
            raise ValueError(f"drop must have one category for each of {len(given)} columns")
        return super()._given(given)

    def _set_levels(self, plan: Plan, levels: list[Levels]) -> None:
        super()._set_levels(plan, levels)
        self.output_norm_ = sqrt(len(levels))
        drops = [self._dropped(j) for j in range(len(levels))]
        self._dropped_groups = drops
        self.drop_idx_ = None
        if self.drop is not None:
            self.drop_idx_ = np.array(
                [
                    None if group is None else int(np.argmax(self._groups[j].codes == group))
                    for j, group in enumerate(drops)
                ],
                dtype=object,
            )

    def _take_twin(self, twin: Any) -> None:
        super()._take_twin(twin)
        self.output_norm_ = sqrt(self.n_features_in_)
        self.drop_idx_ = twin.drop_idx_

    def _dropped(self, column: int) -> int | None:
        """The group of a column that is dropped; one of levels, not that of unknown ones alone."""
        group = self._groups[column]
        if self.drop is None or not len(group.codes):
            return None
        if isinstance(self.drop, str):
            wanted = self.drop == "first" or group.n_groups == 2
            return int(group.codes.min()) if wanted else None
        (key,) = keys_of([self.drop[column]])
        keys = keys_of(self.categories_[column])
        return int(group.codes[keys.index(key)]) if key in keys else None

    def _labels(self, column: int, *, dropped: bool) -> list[Any]:
        """What the columns of a feature stand for."""
        group, categories = self._groups[column], self.categories_[column]
        labels = values_of(categories[~group.infrequent])
        labels += [_INFREQUENT] * group.has_rest
        gone = self._dropped_groups[column]
        return [label for i, label in enumerate(labels) if dropped or i != gone]

    def _widths(self) -> list[int]:
        return [len(self._labels(j, dropped=False)) for j in range(len(self._groups))]

    # ---- transform ----

    def transform(self, X: ArrayLike) -> Any:
        """Encode categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Categories.

        Returns
        -------
        encoded : ndarray, or sparse array, of shape (n_samples, n_encoded_features)
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return without_data(self._twin_.transform, X)
        codes = self._group_codes(X)
        places, starts = [], np.cumsum([0, *self._widths()])
        for code, gone, start in zip(codes, self._dropped_groups, starts[:-1], strict=True):
            place = start + code
            if gone is not None:
                place -= code > gone
                place[code == gone] = -1
            place[code < 0] = -1
            places.append(place)
        n_rows, width = len(places[0]), int(starts[-1])
        if self.sparse_output:
            columns = np.stack(places, axis=1)
            shown = columns >= 0
            indptr = np.concatenate([[0], np.cumsum(shown.sum(axis=1))])
            ones = np.ones(indptr[-1], dtype=self.dtype)
            return csr_array((ones, columns[shown], indptr), shape=(n_rows, width))
        encoded = np.zeros((n_rows, width), dtype=self.dtype)
        for place in places:
            rows = np.flatnonzero(place >= 0)
            encoded[rows, place[rows]] = 1
        return encoded

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Categories of encoded rows.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_encoded_features)
            Encoded rows.

        Returns
        -------
        original : ndarray of shape (n_samples, n_features), of objects
            None where a row is all zero and nothing was dropped.
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return np.asarray(without_data(self._twin_.inverse_transform, X))
        rows = without_data(check_array, X, accept_sparse="csr")
        widths = self._widths()
        if rows.shape[1] != sum(widths):
            raise ValueError(
                f"Shape of the passed X data is not correct. Expected {sum(widths)} columns, got "
                f"{rows.shape[1]}."
            )
        if hasattr(rows, "toarray"):
            rows = rows.toarray()
        original = np.full((len(rows), len(widths)), None, dtype=object)
        start = 0
        for j, width in enumerate(widths):
            block = rows[:, start : start + width]
            start += width
            if (gone := self._dropped_groups[j]) is not None:
                original[:, j] = self._labels(j, dropped=True)[gone]
            if width:
                labels = np.empty(width, dtype=object)
                labels[:] = self._labels(j, dropped=False)
                some = block.any(axis=1)
                original[some, j] = labels[block[some].argmax(axis=1)]
        return original

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; those seen in `fit`, or x0, x1, ... when not given.

        Returns
        -------
        names : ndarray of str
        """
        check_is_fitted(self, "categories_")
        if self._twin_ is not None:
            return np.asarray(self._twin_.get_feature_names_out(input_features))
        features = feature_names_in(self, input_features)
        combine = self.feature_name_combiner
        if isinstance(combine, str):
            combine = "{}_{}".format
        names = [
            combine(feature, label)
            for j, feature in enumerate(features)
            for label in self._labels(j, dropped=False)
        ]
        return np.array(names, dtype=object)

    def make_non_private(self) -> OneHotEncoder:
        """Scikit-learn's `OneHotEncoder`; categories by name are taken in their order."""
        return OneHotEncoder(
            categories=self._twin_categories(None),
            drop=self.drop,
            sparse_output=self.sparse_output,
            dtype=self.dtype,
            handle_unknown=self.handle_unknown,
            min_frequency=self.min_frequency,
            max_categories=self.max_categories,
            feature_name_combiner=self.feature_name_combiner,
        )
