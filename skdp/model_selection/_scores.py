"""Scores that one record can change by a known amount, as exact integers."""

from abc import ABC, abstractmethod
from math import inf, log, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from skdp._lattice import BoundedSum, ExactTotal
from skdp.plan import relation_factor

__all__ = ["SCORINGS", "BoundedScore", "bounded_score"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BITS = 20  # binary places of what one record contributes
# Log loss of a record counts up to this for two classes, and that of guessing is added for more:
# a record on which a model is certain and wrong would drown all the others.
_LARGEST_LOG_LOSS = 3.0


class BoundedScore(ABC):
    """A score for models as exact sums that one record changes by at most a known amount.

    Attributes
    ----------
    name : str
        As in scikit-learn.
    n_shared : int
        Number of sums that are the same for all models and are released once.
    unit : float
        Value of one integer, a power of two.
    """

    name: str
    n_shared = 0
    unit = 1.0

    @abstractmethod
    def sums(self, model: Any, X: Any, y: Any) -> IntArray:
        """The integer sum of one model over the rows, and after it the shared ones."""

    @abstractmethod
    def largest_share(self, n_rows: int) -> float:
        """Most that a record against a blank one changes each of the sums, in their value."""

    @abstractmethod
    def scores(self, noisy: FloatArray, n_rows: int) -> FloatArray:
        """Scores of the models, from released sums."""

    @abstractmethod
    def noise(self, sigma: float, n_rows: int) -> float:
        """Standard deviation of the noise of a score, from that of a sum."""

    def relative_noise(self, sigma: float, n_rows: int) -> float:
        """Noise of a sum, of the range that it can have."""
        return sigma / (2.0 * self.largest_share(n_rows) * n_rows)

    def sensitivity(self, n_models: int, n_rows: int, neighboring: str) -> float:
        """L2 sensitivity of the sums of all models together, rounded up."""
        size = nextafter(sqrt(n_models + self.n_shared), inf)
        return size * self.largest_share(n_rows) * relation_factor(neighboring)

    def together(self, sums: list[IntArray], n_rows: int, neighboring: str) -> BoundedSum:
        """The sums of all models as one vector."""
        values = np.array([own[0] for own in sums] + list(sums[0][1:]), dtype=np.int64)
        total = ExactTotal(values.shape)
        total.add(values)
        sensitivity = self.sensitivity(len(sums), n_rows, neighboring)
        return BoundedSum("scores", total, self.unit, sensitivity)


class _MeanScore(BoundedScore):
    """Mean over records of a number between 0, the worst, and 1.

    What is summed is that number less a half, so that a blank record, which adds nothing, differs
    from any other by a half at most.
    """

    unit = 2.0**-_BITS

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def _records(self, model: Any, X: Any, y: Any) -> FloatArray:
        """One number per record, from its own row and target alone; may be anything."""

    def _scaled(self, means: FloatArray) -> FloatArray:
        """Means in the units of the score: linear."""
        return means

    def noise(self, sigma: float, n_rows: int) -> float:
        none, one = self._scaled(np.array([0.0, sigma / n_rows]))
        return float(one - none)

    def sums(self, model: Any, X: Any, y: Any) -> IntArray:
        with np.errstate(all="ignore"):  # a warning would tell of a single record
            found = np.nan_to_num(self._records(model, X, y), nan=0.0).clip(0.0, 1.0)
            integers = np.rint(found * 2.0**_BITS).astype(np.int64) - (1 << (_BITS - 1))
        return np.array([integers.sum()])

    def largest_share(self, n_rows: int) -> float:
        return 0.5

    def scores(self, noisy: FloatArray, n_rows: int) -> FloatArray:
        return self._scaled(noisy / n_rows + 0.5)


class _Accuracy(_MeanScore):
    def _records(self, model: Any, X: Any, y: Any) -> FloatArray:
        return _equal(np.asarray(model.predict(X)), _labels(y)).astype(np.float64)


class _LogLoss(_MeanScore):
    """Negative log loss, of each record up to a bound."""

    bound = _LARGEST_LOG_LOSS

    def __init__(self, name: str, n_classes: int | None) -> None:
        super().__init__(name)
        self.bound = _LARGEST_LOG_LOSS + log(max(n_classes or 2, 2) / 2)

    def _records(self, model: Any, X: Any, y: Any) -> FloatArray:
        probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
        members = _members(y, model.classes_)
        own = np.where(members, probabilities, 0.0).sum(axis=1)
        return 1.0 + np.log(own) / self.bound

    def _scaled(self, means: FloatArray) -> FloatArray:
        return (means - 1.0) * self.bound


class _Brier(_MeanScore):
    """Negative Brier score, half of it for more than two classes, so that it is 1 at most."""

    def _records(self, model: Any, X: Any, y: Any) -> FloatArray:
        probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
        errors = probabilities - _members(y, model.classes_)
        return 1.0 - np.square(errors).sum(axis=1) / 2.0

    def _scaled(self, means: FloatArray) -> FloatArray:
        return means - 1.0


class _Error(_MeanScore):
    """Negative mean of a power of errors, which count up to half of the width of the bounds."""

    def __init__(self, name: str, power: int, bounds: ArrayLike) -> None:
        super().__init__(name)
        pairs = np.asarray(bounds, dtype=np.float64).reshape(-1, 2)
        self.power = power
        self.largest = (pairs[:, 1] - pairs[:, 0]) / 2.0
        self.weights = self.largest**power

    def _records(self, model: Any, X: Any, y: Any) -> FloatArray:
        predicted = np.asarray(model.predict(X), dtype=np.float64)
        errors = predicted - np.asarray(y, dtype=np.float64).reshape(predicted.shape)
        relative = np.abs(errors.reshape(len(errors), -1)) / self.largest
        losses = np.minimum(relative, 1.0) ** self.power
        weights = np.broadcast_to(self.weights, losses.shape[1])
        return 1.0 - losses @ (weights / weights.sum())

    def _scaled(self, means: FloatArray) -> FloatArray:
        return (means - 1.0) * self.weights.mean()


class _Auc(BoundedScore):
    """Area under the ROC curve of two classes.

    Every pair of a positive and a negative record counts 1 if it is in order, 0 if it is tied and
    -1 otherwise. A record is in fewer pairs than there are rows. The shared sum is the number of
    positive less that of negative records, times the number of rows, so that it is as sensitive.
    """

    name = "roc_auc"
    n_shared = 1

    def sums(self, model: Any, X: Any, y: Any) -> IntArray:
        members = _members(y, model.classes_)
        _check_two_classes(members.shape[1])
        method = "decision_function" if hasattr(model, "decision_function") else "predict_proba"
        values = np.asarray(getattr(model, method)(X), dtype=np.float64)
        values = values[:, -1] if values.ndim == 2 else values
        values = np.where(np.isnan(values), -inf, values)
        known = members.any(axis=1)
        positive = members[known, 1]
        ranks = 2.0 * rankdata(values[known])  # ties get the mean of their ranks: halves
        n_positive = int(positive.sum())
        n_negative = len(positive) - n_positive
        above = int(ranks[positive].sum()) - n_positive * (n_positive + 1)
        signs = n_positive - n_negative
        return np.array([above - n_positive * n_negative, signs * len(members)], dtype=np.int64)

    def largest_share(self, n_rows: int) -> float:
        return float(n_rows)

    def noise(self, sigma: float, n_rows: int) -> float:
        return 2.0 * sigma / n_rows**2  # with as many positive as negative records; else more

    def scores(self, noisy: FloatArray, n_rows: int) -> FloatArray:
        positive = min(max((n_rows + noisy[-1] / n_rows) / 2.0, 1.0), max(n_rows - 1.0, 1.0))
        pairs = positive * max(n_rows - positive, 1.0)
        return 0.5 + noisy[:-1] / (2.0 * pairs)


SCORINGS = (
    "accuracy",
    "neg_brier_score",
    "neg_log_loss",
    "neg_mean_absolute_error",
    "neg_mean_squared_error",
    "roc_auc",
)


def bounded_score(name: str, *, y_bounds: Any = None, n_classes: int | None = None) -> BoundedScore:
    """Make the score of a name.

    Parameters
    ----------
    name : str
        One of `SCORINGS`.
    y_bounds : pair of float, or one per output, default=None
        Public bounds of numeric targets.
    n_classes : int, default=None
        Public number of classes, if it is known.

    Raises
    ------
    ValueError
        If there is no such score, or bounds are needed and are none.
    """
    if name not in SCORINGS:
        raise ValueError(f"scoring must be None or one of {SCORINGS}, got {name!r}")
    if name == "accuracy":
        return _Accuracy(name)
    if name == "neg_log_loss":
        return _LogLoss(name, n_classes)
    if name == "neg_brier_score":
        return _Brier(name)
    if name == "roc_auc":
        _check_two_classes(n_classes or 2)
        return _Auc()
    if y_bounds is None:
        raise ValueError(
            f"scoring={name!r} needs public bounds of the targets: y_bounds=(low, high)"
        )
    pairs = np.asarray(y_bounds, dtype=np.float64)
    if pairs.shape[-1:] != (2,) or pairs.ndim > 2 or not np.isfinite(pairs).all():
        raise ValueError("y_bounds must be a pair (low, high) of numbers, or one for each output")
    if not (pairs[..., 0] < pairs[..., 1]).all():
        raise ValueError("y_bounds must be pairs (low, high) with low < high")
    return _Error(name, 1 if name == "neg_mean_absolute_error" else 2, pairs)


def _check_two_classes(n_classes: int) -> None:
    if n_classes != 2:
        raise ValueError(f"scoring='roc_auc' is for two classes, and the estimator has {n_classes}")


def _labels(y: Any) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError("classifiers are scored on one label per record")
    return labels


def _equal(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Elementwise; of kinds that cannot be compared nothing is equal."""
    shape = np.broadcast_shapes(first.shape, second.shape)
    return np.broadcast_to(np.asarray(first == second, dtype=bool), shape)


def _members(y: Any, classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Of which class every record is; of none, if its label is not known."""
    return _equal(_labels(y)[:, None], np.asarray(classes)[None, :])
