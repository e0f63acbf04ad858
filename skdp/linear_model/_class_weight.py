"""Weights of classes: public ones, or the reciprocals of private counts."""

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import counts
from skdp.accounting import PrivacyCost
from skdp.losses import ClassWeightedLoss, Loss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, relation_factor

__all__ = ["check_class_weight", "plan_class_counts", "weigh_classes", "weights_by_code"]

FloatArray = NDArray[np.float64]
_NAME = "class counts"
_SHARE = 0.03
# A class counts as at least so many standard deviations of the noise, and no class is worth more
# than so many times the mean.
_LEAST, _LARGEST = 3.0, 1e6


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


def weigh_classes(
    loss: Loss,
    class_weight: Mapping[Any, float] | str,
    classes: NDArray,
    codes: NDArray[np.integer],
    plan: Plan,
    noise: NoiseCore,
    neighboring: str,
) -> tuple[Loss, float]:
    """The weighted loss, brought to a mean weight of 1, and the mean weight.

    Parameters
    ----------
    loss : Loss
        Loss of class codes.
    class_weight : mapping or "balanced"
        Weights by label; balanced: the mean count over the count of the class.
    classes : ndarray of shape (n_classes,)
        Labels.
    codes : ndarray of shape (n_rows,)
        Position of every record's label in `classes`.
    plan : Plan
        Gives the declared number of rows.
    noise : NoiseCore
        Has the release of `plan_class_counts` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.

    Returns
    -------
    loss : Loss
    mean : float
        By it the penalty is to be divided.
    """
    exact = np.bincount(codes, minlength=len(classes)).astype(np.int64)
    released = noise.release(counts(_NAME, exact, neighboring))
    n_rows = plan.shape.n_rows
    sizes = np.clip(released, max(1.0, _LEAST * noise.sigma(_NAME)), None)
    sizes = np.minimum(sizes, n_rows)
    if isinstance(class_weight, str):
        weights = n_rows / (len(classes) * sizes)
    else:
        weights = weights_by_code(class_weight, classes)
    largest = float(weights.max())
    shares = weights / largest  # extreme weights neither overflow nor vanish
    mean = float(shares @ sizes / sizes.sum())
    return ClassWeightedLoss(loss, np.minimum(shares / mean, _LARGEST)), largest * mean
