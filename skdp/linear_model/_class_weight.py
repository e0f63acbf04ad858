"""Weights of classes: public ones, or the reciprocals of private counts."""

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import WEIGHT_BITS, BoundedSum, ExactTotal, counts, weight_integers
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.linear_model._sample_weight import Sizes
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease, relation_factor

__all__ = ["check_class_weight", "plan_class_counts", "weigh_classes", "weights_by_code"]

FloatArray = NDArray[np.float64]
_NAME = "class counts"
_SHARE = 0.03
# A class counts as at least so many standard deviations of the noise.
_LEAST = 3.0


def check_class_weight(class_weight: Mapping[Any, Any] | str | None) -> None:
    """Refuse weights that are not finite, negative, or all zero.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    if class_weight is None or isinstance(class_weight, str):
        return
    for weight in class_weight.values():
        if not isinstance(weight, Real) or not isfinite(weight) or weight < 0:
            raise ValueError("class_weight must hold finite numbers that are not negative")


def plan_class_counts(budget: PrivacyCost) -> tuple[PlannedRelease, PrivacyCost]:
    """The release of the counts, and the budget that is left."""
    first, rest = budget.split([_SHARE, 1.0 - _SHARE])
    sensitivity = relation_factor(budget.neighboring, "nonnegative")
    return PlannedRelease(_NAME, sensitivity, first.mu), rest


def weights_by_code(class_weight: Mapping[Any, float], classes: NDArray) -> FloatArray:
    """Weights in the order of the classes; 1 for those that are not mentioned.

    Raises
    ------
    ValueError
        If a label is not among the classes, or nothing has a weight.
    """
    labels = classes.tolist()
    if unknown := [label for label in class_weight if label not in labels]:
        raise ValueError(f"class_weight has {len(unknown)} labels that are not among the classes")
    weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not weights.any():
        raise ValueError("class_weight must not be zero for every class")
    return weights


def _count(
    codes: NDArray[np.integer], n_classes: int, weights: NDArray | None, neighboring: str
) -> BoundedSum:
    """Sizes of the classes: numbers of records, or sums of their weights."""
    if weights is None:
        exact = np.bincount(codes, minlength=n_classes).astype(np.int64)
        return counts(_NAME, exact, neighboring)
    total = ExactTotal((n_classes,))
    total.add(np.bincount(codes, weight_integers(weights), minlength=n_classes))
    sensitivity = relation_factor(neighboring, "nonnegative")
    return BoundedSum(_NAME, total, 2.0**-WEIGHT_BITS, sensitivity)


def weigh_classes(
    rows: BoundedRows,
    class_weight: Mapping[Any, float] | str,
    classes: NDArray,
    codes: NDArray[np.integer],
    noise: NoiseCore,
    *,
    n_rows: int,
    unit: float,
) -> Sizes:
    """Multiply the weights of the records by those of their classes.

    Parameters
    ----------
    rows : BoundedRows
        The records; their weights are changed.
    class_weight : mapping or "balanced"
        Weights by label; balanced: the mean size of the classes over that of the class.
    classes : ndarray of shape (n_classes,)
        Labels.
    codes : ndarray of shape (n_rows,)
        Position of every record's label in `classes`.
    noise : NoiseCore
        Has the release of `plan_class_counts` in its plan.
    n_rows : int
        Declared number of rows.
    unit : float
        Bound of the weights that the records have already.

    Returns
    -------
    sizes : Sizes
    """
    weighted = rows.weights is not None
    released = noise.release(_count(codes, len(classes), rows.weights, rows.neighboring))
    sizes = np.clip(released, max(1.0, _LEAST * noise.sigma(_NAME)), None)
    sizes = np.minimum(sizes, n_rows)
    if isinstance(class_weight, str):
        weights = (sizes.sum() if weighted else n_rows) / (len(classes) * sizes)
    else:
        weights = weights_by_code(class_weight, classes)
    largest = float(weights.max())
    shares = weights / largest  # extreme weights neither overflow nor vanish
    rows.weigh(shares[codes])
    total = float(shares @ sizes) * (1.0 if weighted else n_rows / sizes.sum())
    return Sizes(max(total, 1.0), n_rows, unit * largest)
