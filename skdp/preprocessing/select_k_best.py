"""Columns selected by private scores of how they go with the target."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from math import frexp, inf, nextafter, sqrt
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skdp._lattice import BoundedSum, ExactTotal, block_rows, iter_blocks
from skdp._location import find_bounds
from skdp._sparse_rows import canonical_rows
from skdp._threads import workers
from skdp._validation import (
    Interval,
    check_features_and_target,
    declared_classes,
    encode_labels,
    missing_values,
    without_data,
)
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.noise import MAX_SIGMA_BITS, NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape, relation_factor
from skdp.preprocessing._bounds import target_bounds
from skdp.preprocessing._columns import Bounds, PrivateSelector
from skdp.preprocessing._docs import shared_docs
from skdp.preprocessing._sparse_columns import SPARSE_FORMATS

__all__ = ["DPSelectKBest"]

FloatArray = NDArray[np.float64]
_BITS = 20
_BLOCK_ENTRIES = 1 << 16
# Largest squared norm of one column's share: labels, and numbers, which need one more sum.
_LABELS, _NUMBERS = 25.0 / 16.0, 2.0 + 9.0 / 16.0
# Rows for each standard deviation of the noise of a sum below which scores are mostly noise.
_ROUGH = 10.0


@shared_docs(twin="SelectKBest")
class DPSelectKBest(PrivateSelector):
    """Keep the k columns that go best with the target, by private scores.

    Parameters
    ----------
    %(budget)s
    k : int, default=10
        Number of columns to keep; all if there are no more.
    classes : array-like, default=None
        Public labels, all that can occur: columns are scored by the variance between the classes,
        as scikit-learn's ``f_classif`` does.
    y_bounds : pair of float, default=None
        Public lower and upper bound of y: columns are scored by their correlation with it, as
        ``f_regression`` does. Either this or `classes` must be given.
    %(common)s

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Private F statistics, less what the noise adds to them.
    %(fitted)s

    Raises
    ------
    ValueError
        For invalid parameters or data, missing values among them.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases
    one vector, from which all scores follow: the sums of every column in each class (or of its
    products with y, and of itself), the sums of its squares, and those of the target. A record's
    share has norm at most ``sqrt(25 / 16 * n_features + 1)`` for labels and
    ``sqrt(41 / 16 * n_features + 25 / 16)`` for numbers, in units where bounds are -1 and 1; twice
    that where records are replaced. Without `bounds`, histograms that tell where the columns lie
    are released before. Public are the shape of X, `bounds`, `classes`, `y_bounds` and all
    parameters. Which columns are kept is post-processing.

    References
    ----------
    %(reference)s

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSelectKBest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 8))
    >>> y = X[:, 2] - X[:, 5] > 0
    >>> selector = DPSelectKBest(k=2, bounds=(-4, 4), classes=[False, True]).fit(X, y)
    >>> selector.get_support(indices=True)
    array([2, 5])
    """

    _location_share = 0.6
    _parameter_constraints: dict[str, Any] = {
        **PrivateSelector._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "classes": [None, "array-like", set, frozenset],
        "y_bounds": [None, "array-like"],
    }

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        k: int = 10,
        bounds: Any = None,
        classes: Any = None,
        y_bounds: Any = None,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.k = k
        self.bounds = bounds
        self.classes = classes
        self.y_bounds = y_bounds
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        if (self.classes is None) == (self.y_bounds is None) and (
            budget.is_finite or self.classes is not None
        ):
            raise ValueError(
                "the target must be declared: either classes=[...] if it is a label, or "
                "y_bounds=(low, high) if it is a number"
            )
        if self.classes is not None:
            declared_classes(self.classes, np.zeros(0))
        if self.y_bounds is not None:
            target_bounds(self.y_bounds)
        return budget

    def _sensitivity(self, n_features: int) -> float:
        if self.classes is not None:
            square = _LABELS * n_features + 1.0
        else:
            square = _NUMBERS * n_features + _LABELS
        return nextafter(sqrt(square), inf) * relation_factor(self.neighboring)

    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        located, rest = self._located(budget, shape)
        sensitivity = self._sensitivity(shape.n_features)
        return (*located, PlannedRelease("scores", sensitivity, rest.mu)), {}

    @property
    def _finite(self) -> str | bool:
        return True

    def fit(self, X: ArrayLike, y: Any = None) -> DPSelectKBest:
        """Learn private scores of the columns.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Data without missing values.
        y : array-like of shape (n_samples,)
            Target.

        Returns
        -------
        self : DPSelectKBest
        """
        self._check_parameters()
        labelled = self.classes is not None
        data, target = check_features_and_target(
            self, X, y, y_numeric=not labelled, accept_sparse=SPARSE_FORMATS
        )
        if issparse(data):
            data = canonical_rows(data.tocsr())
        if not np.isfinite(data.data if issparse(data) else data).all():
            raise ValueError(missing_values("X"))
        without_data(check_consistent_length, data, target)
        bounds = self._public_bounds(data.shape[1])
        plan = self.plan(*data.shape)
        if labelled:
            labels = declared_classes(self.classes, target)[0]
            codes = encode_labels(target, labels)
            shares = (codes[:, None] == np.arange(len(labels))).astype(np.float64)
        if not plan.budget.is_finite:
            twin = self.make_non_private().set_params(k=min(self.k, data.shape[1]))
            twin.fit(data, target)
            self.scores_ = twin.scores_
            self._finish_non_private(plan)
            return self
        if not labelled:
            low, high = target_bounds(self.y_bounds)
            half = high / 2.0 - low / 2.0
            clipped = np.clip(np.asarray(target, dtype=np.float64).ravel(), low, high)
            shares = ((clipped / 2.0 - low / 4.0 - high / 4.0) * (2.0 / half))[:, None]
        noise = self._start(plan)
        self.scores_ = self._score(data, shares, bounds, plan, noise)
        self._finish(plan, noise)
        return self

    def _score(
        self,
        X: Any,
        shares: FloatArray,
        bounds: Bounds | None,
        plan: Plan,
        noise: NoiseCore,
    ) -> FloatArray:
        n_rows, n_features = plan.shape.n_rows, X.shape[1]
        if bounds is None:
            with workers(self.n_jobs) as pool:
                place = find_bounds(X, **self._options(plan, noise, pool))
            bounds = place.low, place.high
        sigma = noise.sigma("scores")
        if n_rows < _ROUGH * sigma:
            warn(
                f"scores are mostly noise: every sum has noise of standard deviation {sigma:.3g}, "
                f"against {n_rows} rows; use a larger budget or fewer columns",
                UtilityWarning,
            )
        bits = min(_BITS, (MAX_SIGMA_BITS - frexp(sigma)[1]) // 2)
        total, groups = _sums(X, shares, bounds, bits, labelled=self.classes is not None)
        sensitivity = self._sensitivity(n_features)
        released = noise.release(BoundedSum("scores", total, 4.0**-bits, sensitivity, groups))
        if self.classes is not None:
            return _f_of_classes(released, n_features, shares.shape[1], n_rows, sigma)
        return _f_of_numbers(released, n_features, n_rows, sigma)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "scores_")
        mask = np.zeros(len(self.scores_), dtype=bool)
        scores = np.where(np.isnan(self.scores_), -np.inf, self.scores_)
        mask[np.argsort(scores, kind="stable")[-self.k :]] = True
        return mask

    def make_non_private(self) -> SelectKBest:
        """Scikit-learn's `SelectKBest` with the score of the declared target."""
        score = f_regression if self.classes is None else f_classif
        return SelectKBest(score, k=self.k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _sums(
    X: Any, shares: FloatArray, bounds: Bounds, bits: int, *, labelled: bool
) -> tuple[ExactTotal, tuple[tuple[int, float], ...]]:
    """Exact sums of all shares in units of ``4**-bits``, and the weights of their noise."""
    low, high = bounds
    centre, half = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
    top, five = 2.0**bits, 5 << (2 * bits - 3)
    (n_rows, d), k = X.shape, shares.shape[1]
    sparse = issparse(X)
    groups: tuple[tuple[int, float], ...] = ((d * k, 1.0), (d, 0.5), (k, 1.0))
    if not labelled:
        groups = (*groups, (d, 1.0), (1, 0.5))
    total = ExactTotal((sum(count for count, _ in groups),))
    with np.errstate(all="ignore"):  # a warning would tell of a single record
        for rows in iter_blocks(n_rows, block_rows(2 * bits, 1.0, cap=_BLOCK_ENTRIES // d + 64)):
            block = X[rows].toarray() if sparse else X[rows]
            u = np.clip(np.rint((block - centre) * (top / half)), -top, top)
            t = np.clip(np.rint(shares[rows] * top), -top, top)
            of_t = t.sum(axis=0).astype(np.int64) << bits
            parts = [
                (t.T @ u).astype(np.int64).ravel(),
                np.square(u).sum(axis=0).astype(np.int64) - len(u) * five,
                of_t,
            ]
            if not labelled:
                parts.append(u.sum(axis=0).astype(np.int64) << bits)
                parts.append(np.square(t).sum(axis=0).astype(np.int64) - len(u) * five)
            total.add(np.concatenate(parts))
    return total, groups


def _f_of_classes(released: FloatArray, d: int, k: int, n_rows: int, sigma: float) -> FloatArray:
    """F statistics of columns between classes, less what the noise adds to the numerator."""
    sums = released[: d * k].reshape(k, d)
    counts = np.clip(released[-k:], max(2.0 * sigma, 1.0), n_rows)[:, None]
    mean = sums.sum(axis=0) / n_rows
    inside = np.clip(released[d * k : -k] / n_rows + 0.625 - mean**2, 0.0, 1.0) * n_rows
    between = (counts * (np.clip(sums / counts, -1.0, 1.0) - mean) ** 2).sum(axis=0)
    between = between - (k - 1) / k * (sigma**2 / counts).sum()
    inside = np.maximum(inside - np.maximum(between, 0.0), sigma)
    return np.asarray(between / (k - 1) / inside * max(n_rows - k, 1))


def _f_of_numbers(released: FloatArray, d: int, n_rows: int, sigma: float) -> FloatArray:
    """F statistics of columns' correlations, less what the noise adds to their squares."""
    mean, target = released[2 * d + 1 : 3 * d + 1] / n_rows, released[2 * d] / n_rows
    least = sigma / n_rows
    spread = np.clip(released[d : 2 * d] / n_rows + 0.625 - mean**2, least, 1.0)
    of_target = float(np.clip(released[-1] / n_rows + 0.625 - target**2, least, 1.0))
    product = released[:d] / n_rows - mean * target
    square = (product**2 - least**2 * (1.0 + mean**2 + target**2)) / (spread * of_target)
    return np.asarray(square / np.maximum(1.0 - square, 1e-3) * max(n_rows - 2, 1))
