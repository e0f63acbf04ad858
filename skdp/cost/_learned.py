"""What fitted transformers hold, where their parameters may have been changed since the fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["keeps_to_its_parameters"]


def keeps_to_its_parameters(obj: Any) -> bool:
    """Whether a transformer, if fitted, holds what its present parameters say and nothing else.

    Parameters
    ----------
    obj : transformer
        Fitted or not, of a class that is free under conditions on its parameters, with
        parameters that fulfil them.

    Returns
    -------
    keeps : bool
        False for an encoder that has learned its categories and was given others later, for
        instance. What was learned and then given back as a parameter cannot be told apart.
    """
    return all(
        check(obj)
        for attribute, check in _CHECKS.items()
        if getattr(obj, attribute, None) is not None
    )


def _has_given_categories(obj: Any) -> bool:
    given, held = list(obj.categories), list(obj.categories_)
    same = len(given) == len(held) and all(map(_are_same, given, held))
    # Set by min_frequency and max_categories only.
    return same and not hasattr(obj, "infrequent_categories_")


def _are_same(given: Any, held: NDArray) -> bool:
    try:
        # As a fit converts them; not to strings of a fixed length, which would cut them off.
        values = np.array(given, dtype=object if held.dtype.kind in "SU" else held.dtype)
    except (OverflowError, TypeError, ValueError):
        return False
    return len(values) == len(held) and all(map(_is_same, values, held))


def _is_same(a: Any, b: Any) -> bool:
    # Missing values differ from themselves, or know no answer.
    both_nan = all(isinstance(v, float | np.floating) and v != v for v in (a, b))
    equal = a == b
    return a is b or both_nan or (isinstance(equal, bool | np.bool_) and bool(equal))


def _has_given_statistics(obj: Any) -> bool:
    held = obj.statistics_
    # The default depends on the type of X.
    fillings = (0, "missing_value") if obj.fill_value is None else (obj.fill_value,)
    same = any(_are_same([filling] * len(held), held) for filling in fillings)
    return same and obj.indicator_ is None


def _has_given_knots(obj: Any) -> bool:
    knots, degree = np.asarray(obj.knots, dtype=np.float64), obj.degree
    held = [spline.t[degree : len(spline.t) - degree] for spline in obj.bsplines_]
    return knots.ndim == 2 and np.array_equal(knots.T, held)


# By the attribute that a fit leaves.
_CHECKS = {
    "bsplines_": _has_given_knots,
    "categories_": _has_given_categories,
    "features_": lambda obj: len(obj.features_) == obj.n_features_in_,
    "fixed_vocabulary_": lambda obj: bool(obj.fixed_vocabulary_),
    "idf_": lambda obj: False,
    "statistics_": _has_given_statistics,
    # The width that was used, the only trace of a learned one.
    "_gamma": lambda obj: bool(obj._gamma == obj.gamma),
}
