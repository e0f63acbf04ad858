"""Validation of parameters and data; the only file that touches private scikit-learn names.

Two things are done beyond scikit-learn: what the guarantee rests on is checked even under
``skip_parameter_validation`` and ``assume_finite``, and no message carries a value of the data.
"""

import re
from collections.abc import Callable
from math import inf, isnan, nextafter
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_array, column_or_1d
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    generate_valid_param,
    make_constraint,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, validate_data

from skdp._warn import warn
from skdp.accounting import NEIGHBORING, PrivacyCost, gdp_mu
from skdp.exceptions import PrivacyLeakWarning, PrivacyWarning

__all__ = [
    "CLASSES_FROM_Y",
    "Interval",
    "StrOptions",
    "check_budget",
    "check_features",
    "check_features_and_target",
    "check_numbers",
    "check_parameters",
    "check_sample_weight",
    "check_seed",
    "declared_classes",
    "encode_labels",
    "feature_names_in",
    "invalid_value_for",
    "missing_values",
    "without_data",
]

FLOATS = (np.float64, np.float32)
# Of delta, for releases that can fail. With what is left, all noise is half a percent larger.
_FAILURE_SHARE = 0.1

# Parameters that every private estimator has.
PRIVACY_CONSTRAINTS: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, 0, None, closed="right"), PrivacyCost],
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "neighboring": [StrOptions(set(NEIGHBORING))],
    "random_state": ["random_state"],
}


def invalid_value_for(constraint: object) -> object:
    """A value that does not satisfy a parameter constraint (for tests)."""
    return generate_valid_param(make_constraint(constraint))


_MISSING = {
    "X": "Impute or remove such records first, in a way that does not look at the other records, "
    "such as SimpleImputer(strategy='constant', keep_empty_features=True)",
    "y": "Remove such records first",
    "sample_weight": "Give such records weight 0",
}


def missing_values(name: str) -> str:
    """Message about values that are missing or not finite.

    Parameters
    ----------
    name : {"X", "y", "sample_weight"}
        Where they are.
    """
    return f"Input {name} contains NaN, infinity or values too large. {_MISSING[name]}"


# Beginnings of the messages of scikit-learn and numpy that hold shapes, types, counts and column
# names only. Whatever else may be said, today or by a later release, is not passed on.
_SAFE_MESSAGES = (
    "Input contains ",
    "Input X contains ",
    "Input y contains ",
    "Found array with ",
    "Found input variables with ",
    "Expected a 2-dimensional container",
    "Expected sequence or array-like",
    "Expected 2D input",
    "np.matrix is not supported",
    "X has ",
    "The feature names should match",
    "Feature names are only supported",
    "y should be a 1d array",
    "Sparse data was passed",
    "Unknown label type",
    "Support for labels represented as bytes",
    "setting an array element with a sequence",
    "float() argument must be",
    "boolean value of NA",
    "categories must be ",
)


def _without_values(kind: type[Exception], message: str) -> str:
    """An error message of scikit-learn or numpy without any value of the data."""
    if "could not convert" in message or "invalid literal" in message:
        return (
            "the data hold values that are not numbers; encode text columns first "
            "(with categories that are public)"
        )
    if found := re.match(r"Input (X |y |sample_weight |)contains (NaN|infinity)", message):
        return missing_values(found[1].strip() or "X")
    if message.startswith("Expected 2D array, got"):
        return (
            message.partition(" instead")[0] + " instead. Reshape your data using "
            "array.reshape(-1, 1) if it has a single feature, or array.reshape(1, -1) if it is a "
            "single sample"
        )
    if message.startswith("Complex data not supported"):
        return "Complex data not supported"
    if message.startswith(_SAFE_MESSAGES) or "requires y to be passed" in message:
        return message
    return f"the data cannot be read as arrays of numbers or labels ({kind.__name__})"


def without_data(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a validator; an error is raised anew, its message freed of values of the data.

    The new exception is raised outside of the handler: no context links back to the old one.
    Floating-point warnings, which would tell of single values, are silenced.
    """
    try:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    except Exception as error:  # user-defined objects in the data may raise anything
        kind, message = type(error), _without_values(type(error), str(error))
    raise (kind if kind in (TypeError, ValueError) else ValueError)(message)


def _positive_number(name: str, value: object) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    number = float(value)
    if isnan(number) or number <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}")
    return number


def check_parameters(estimator: Any) -> None:
    """Check constructor parameters against ``_parameter_constraints``.

    Unlike scikit-learn's own check it cannot be switched off where the guarantee depends on it:
    see `check_budget`.
    """
    estimator._validate_params()


def check_budget(
    epsilon: float | PrivacyCost, delta: float, neighboring: str, *, failure: bool = False
) -> PrivacyCost:
    """The privacy budget that a private estimator's parameters ask for.

    Parameters
    ----------
    epsilon : float or PrivacyCost
        A number, ``inf`` for no privacy, or a budget that is taken as it is.
    delta : float
        In (0, 1); not used when `epsilon` is a `PrivacyCost`.
    neighboring : {"add_or_remove", "replace"}
        The relation.
    failure : bool, default=False
        Whether what is released may fail to be Gaussian with a small probability delta0. A tenth
        of `delta` is set aside for it, and mu is such that ``delta0 + delta(epsilon; mu)`` is at
        most `delta`; a budget must have a delta0 of its own.

    Returns
    -------
    budget : PrivacyCost
        With a delta0 beside mu, if and only if one is needed.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter at fault.
    """
    if neighboring not in NEIGHBORING:
        raise ValueError(f"neighboring must be one of {NEIGHBORING}, got {neighboring!r}")
    if isinstance(epsilon, PrivacyCost):
        if epsilon.neighboring != neighboring:
            raise ValueError(
                f"epsilon is a PrivacyCost for neighboring={epsilon.neighboring!r}, but the "
                f"estimator has neighboring={neighboring!r}; make them equal"
            )
        if epsilon.unit != "record":
            raise ValueError(
                f"epsilon is a PrivacyCost for unit={epsilon.unit!r}, but what is clipped here, "
                "and hence protected, is a record"
            )
        if epsilon.has_pair and not failure:
            raise ValueError(
                "epsilon is a PrivacyCost with a pair (epsilon0, delta0) beside mu, which Gaussian "
                "noise cannot make use of; give one without"
            )
        if not epsilon.gaussian_mu > 0:
            raise ValueError("epsilon is a PrivacyCost of zero: nothing could be released")
        if failure and epsilon.is_finite and not epsilon.delta0 > 0:
            raise ValueError(
                "epsilon is a PrivacyCost without a delta0, and categories that nobody knows "
                "beforehand can be found with a small probability of failure only: give public "
                "`categories`, epsilon as a number, or PrivacyCost(mu, delta0=...)"
            )
        if failure and epsilon.epsilon0 > 0:
            raise ValueError(
                "epsilon is a PrivacyCost with an epsilon0, which cannot be made use of"
            )
        return epsilon
    value = _positive_number("epsilon", epsilon)
    tail = _positive_number("delta", delta)
    if tail >= 1:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}")
    if value == inf:
        return PrivacyCost(inf, neighboring, reference_delta=tail)
    if failure:
        delta0 = tail * _FAILURE_SHARE
        rest = gdp_mu(value, nextafter(tail - delta0, 0.0))
        return PrivacyCost(rest, neighboring, reference_delta=tail, delta0=delta0)
    return PrivacyCost.from_epsilon(value, tail, neighboring=neighboring)


def warn_large_delta(budget: PrivacyCost, n_rows: int) -> None:
    """Warn when the stated delta allows to publish a record outright."""
    if budget.is_finite and budget.reference_delta * n_rows >= 1:
        warn(
            f"delta={budget.reference_delta:g} is not below 1 / n_rows: a mechanism that publishes "
            "a random record would satisfy it; choose a smaller delta",
            PrivacyWarning,
        )


def check_seed(random_state: Any) -> int | None:
    """The seed of reproducible, hence not private, noise; None for fresh entropy."""
    if random_state is None:
        return None
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(random_state.randint(2**31 - 1))


def _check_finite(array: Any, name: str, *, allow_nan: bool = False) -> None:
    """What scikit-learn skips under ``assume_finite``."""
    if not get_config()["assume_finite"]:
        return
    values = getattr(array, "data", array) if hasattr(array, "indptr") else array
    if values.dtype.kind != "f":
        return
    if np.isinf(values).any() if allow_nan else not np.isfinite(values).all():
        raise ValueError(missing_values(name))


def check_features(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """X as a float array, with `n_features_in_` and feature names set or compared."""
    options = {"dtype": FLOATS, **options}
    result = without_data(validate_data, estimator, X, reset=reset, **options)
    checked = options.get("ensure_all_finite", True)
    if checked is not False:
        _check_finite(result, "X", allow_nan=checked == "allow-nan")
    return result


def feature_names_in(estimator: Any, names: Any) -> NDArray[Any]:
    """Names of the features that went into a fitted estimator, compared with those given."""
    return np.asarray(_check_feature_names_in(estimator, names))


def check_features_and_target(
    estimator: Any, X: Any, y: Any, *, y_numeric: bool, multi_output: bool = False, **options: Any
) -> tuple[Any, Any]:
    """X as a float array and y checked for shape; numeric targets as float64.

    Whether X is finite is not checked here: the engine sees it while it rounds the rows, in the
    same pass and before any release.
    """
    X, y = without_data(
        validate_data,
        estimator,
        X,
        y,
        dtype=FLOATS,
        y_numeric=y_numeric,
        multi_output=multi_output,
        ensure_all_finite=False,
        **options,
    )
    return X, check_numbers(y) if y_numeric else y


def check_numbers(y: Any) -> NDArray[np.float64]:
    """A numeric target as float64, finite."""
    array = without_data(check_array, y, dtype=np.float64, ensure_2d=False, input_name="y")
    _check_finite(array, "y")
    return array


def check_sample_weight(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights of records as float64; a number is that of all of them, None stays None.

    Raises
    ------
    ValueError
        If they are negative, not finite, or not one for each record.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = without_data(
        check_array,
        sample_weight,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name="sample_weight",
    )
    _check_finite(weights, "sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must be 1D, got {weights.ndim} dimensions")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight has {len(weights)} entries for {n_rows} rows")
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative")
    return weights


# By the dtypes, which are public.
_KINDS = {**dict.fromkeys("biuf", "numbers"), **dict.fromkeys("US", "strings")}


CLASSES_FROM_Y = "the set of class labels in y is public"


def declared_classes(classes: Any, y: NDArray) -> tuple[NDArray, tuple[str, ...]]:
    """Sorted class labels, and what had to be assumed to know them.

    Parameters
    ----------
    classes : array-like, set or None
        Public labels. None: read from y, with a `PrivacyLeakWarning`.
    y : ndarray of shape (n_rows,)
        Labels.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
    assumptions : tuple of str
    """
    if classes is None:
        without_data(check_classification_targets, y)
        found = np.unique(y)
        if len(found) < 2:
            raise ValueError(
                "y holds one class only, and `classes` is not given: a classifier needs at least "
                "2 classes. Declare them: classes=[...]"
            )
        warn(
            "the class labels were read from y, which the privacy cost does not cover; declare "
            "them as public: classes=[...]",
            PrivacyLeakWarning,
        )
        return found, (CLASSES_FROM_Y,)
    declared = np.asarray(list(classes) if isinstance(classes, set | frozenset) else classes)
    labels = np.unique(declared)
    if declared.ndim != 1 or len(labels) < 2:
        raise ValueError("classes must list at least 2 different labels")
    if len(labels) != len(declared):
        raise ValueError("classes must not repeat a label")
    return labels, ()


def encode_labels(y: NDArray, classes: NDArray) -> NDArray[np.unsignedinteger]:
    """Position of every label in `classes`, in the smallest type that holds them.

    Raises
    ------
    ValueError
        If a label is not among them; the message does not say which.
    """
    labels = column_or_1d(y)
    if labels.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = classes[codes] == labels
    else:
        places = {label: code for code, label in enumerate(classes.tolist())}
        found = [places.get(label, -1) for label in labels.tolist()]
        codes = np.array(found, dtype=np.intp)
        known = codes >= 0
    if not known.all():
        of_y, of_classes = (_KINDS.get(a.dtype.kind, "objects") for a in (labels, classes))
        hint = f" (y holds {of_y}, `classes` {of_classes})" if of_y != of_classes else ""
        raise ValueError(
            f"y holds labels that are not among `classes`{hint}; declare every label that can occur"
        )
    return codes.astype(np.min_scalar_type(len(classes)))
