"""The estimators under contract, built from `skdp.all_estimators()`: add an estimator here once.

Every contract that holds for all estimators (scikit-learn's checks, the privacy contract, bad
input, exactness) runs over these instances. A new estimator needs an entry in `DECLARED`, and in
`REQUIRED` when its constructor cannot be called without arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import make_pipeline

import skdp

CLASSES = dict(skdp.all_estimators())
N_FEATURES = 3

# Public facts that the data of `data_for` conform to; with them nothing is read from the data
# outside of the charged releases.
DECLARED: dict[str, dict[str, Any]] = {
    "DPLogisticRegression": {"classes": [0, 1]},
    "DPLinearSVC": {"classes": [0, 1]},
    "DPLinearSVR": {"y_bounds": (-6.0, 6.0)},
    "DPQuantileRegressor": {"y_bounds": (-6.0, 6.0)},
    "DPLinearRegression": {"y_bounds": (-6.0, 6.0)},
    "DPRidge": {"y_bounds": (-6.0, 6.0)},
    "DPRidgeCV": {"y_bounds": (-6.0, 6.0)},
    "DPHuberRegressor": {"y_bounds": (-6.0, 6.0)},
    "DPPoissonRegressor": {"y_bounds": (0.0, 12.0)},
    "DPGammaRegressor": {"y_bounds": (0.0, 12.0)},
    "DPTweedieRegressor": {"y_bounds": (0.0, 12.0)},
    "GaussianMechanism": {"clip_norm": 2.0, "n_releases": 3},
    "DPStandardScaler": {"bounds": (-5.0, 5.0)},
    "DPKBinsDiscretizer": {"bounds": (-5.0, 5.0), "encode": "ordinal"},
    "DPMinMaxScaler": {"clip": True},
    "DPQuantileTransformer": {"bounds": (-5.0, 5.0), "n_quantiles": 30},
    "DPRobustScaler": {"bounds": (-5.0, 5.0)},
    "DPSimpleImputer": {"bounds": (-5.0, 5.0)},
    "DPVarianceThreshold": {"bounds": (-5.0, 5.0)},
    "DPTableVectorizer": {"schema": skdp.Numeric()},
    "DPSelectKBest": {"bounds": (-5.0, 5.0), "y_bounds": (-6.0, 6.0), "k": 2},
    # Given categories that are counted: what is released has a fixed shape.
    "DPOneHotEncoder": {"categories": [[-1, 0, 1]] * N_FEATURES, "min_frequency": 1},
    "DPOrdinalEncoder": {"categories": [[-1, 0, 1]] * N_FEATURES, "max_categories": 3},
    "DPTargetEncoder": {"categories": [[-1, 0, 1]] * N_FEATURES, "y_bounds": (-6.0, 6.0)},
}
# Estimators that choose among settings of another one. They divide the rows by their places: the
# order of rows matters, no row can be left out (there is no `n_rows`), and one row is too few. What
# the contract says of such data sets is in tests/test_search.py for them.
SEARCHES = ("DPGridSearchCV", "DPRandomizedSearchCV")
# Estimators whose columns hold categories.
CATEGORICAL = {"DPOneHotEncoder", "DPOrdinalEncoder", "DPTargetEncoder"}


def _pipeline(**facts):
    names = ("DPStandardScaler", "DPLogisticRegression")
    return make_pipeline(*(CLASSES[name](**facts.get(name, {})) for name in names))


# Of candidates, by the name of the step that `make_pipeline` gives.
_GRID = {"dplogisticregression__C": [0.1, 1.0], "dplogisticregression__max_iter": [4]}
# Arguments without which a constructor cannot be called, or a fit cannot be private.
REQUIRED: dict[str, Any] = {
    "DPSelectKBest": lambda: {"y_bounds": (-6.0, 6.0), "k": 2},
    "DPTargetEncoder": lambda: {"y_bounds": (-6.0, 6.0)},
    "PrivacyBudget": lambda: {"estimator": _pipeline()},
    "DPGridSearchCV": lambda: {"estimator": _pipeline(), "param_grid": _GRID},
    "DPRandomizedSearchCV": lambda: {"estimator": _pipeline(), "param_distributions": _GRID},
}
DECLARED["PrivacyBudget"] = {"estimator": _pipeline(**DECLARED)}
for _name in SEARCHES:  # the split of the rows is public
    DECLARED[_name] = {**DECLARED["PrivacyBudget"], "search_random_state": 0}

# More settings of the declared estimators, where other code paths run.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "DPLogisticRegression": {
        "gram": {"gram_share": 0.2, "max_iter": 5},
        "plain": {"solver": "gradient-descent", "max_iter": 7},
        "weighted": {"class_weight": {0: 1.0, 1: 4.0}, "max_iter": 5},
        "softmax": {"classes": [0, 1, 2], "max_iter": 6},
        "no-intercept": {"fit_intercept": False, "max_iter": 4, "scale_check_share": 0.0},
        "exposure": {"max_sample_weight": 4.0, "max_iter": 5},
        "exposure-balanced": {
            "max_sample_weight": 4.0,
            "classes": [0, 1, 2],
            "class_weight": "balanced",
            "gram_share": 0.2,
            "max_iter": 4,
        },
        "unbounded": {"feature_bound": inf, "feature_norm": 1.0, "max_iter": 3},
    },
    "DPLinearSVC": {
        "gram": {"gram_share": 0.2, "max_iter": 5},
        "three": {"classes": [0, 1, 2], "max_iter": 6, "clip_norm": 1.0},
        "balanced": {"classes": [0, 1, 2], "class_weight": "balanced", "max_iter": 5},
        "no-intercept": {"fit_intercept": False, "max_iter": 4},
    },
    "DPLinearRegression": {
        "exposure": {"max_sample_weight": 4.0, "y_bounds": [(-6.0, 6.0), (-4.0, 8.0)]},
        "plain": {"solver": "gradient-descent", "max_iter": 7},
        "no-intercept": {"fit_intercept": False},
        "private-scale": {"y_bounds": None, "epsilon": 20.0},
        "no-residuals": {"uncertainty_share": 0.0, "max_iter": 5},
        "two-outputs": {"y_bounds": [(-6.0, 6.0), (-4.0, 8.0)]},
    },
    "DPQuantileRegressor": {
        "high": {"quantile": 0.9, "max_iter": 7},
        "private-scale": {"y_bounds": None, "epsilon": 20.0},
    },
    "DPLinearSVR": {"tolerant": {"insensitivity": 0.5, "C": 0.1, "max_iter": 6}},
    "DPHuberRegressor": {
        "exposure": {"max_sample_weight": 4.0, "y_bounds": None, "epsilon": 20.0},
        "plain": {"solver": "gradient-descent", "max_iter": 7, "threshold": 2.0},
        "private-scale": {"y_bounds": None, "epsilon": 20.0},
        "no-intercept": {"fit_intercept": False, "alpha": 0.5},
    },
    "DPPoissonRegressor": {
        "exposure": {"max_sample_weight": 4.0, "y_bounds": None, "epsilon": 20.0},
        "plain": {"solver": "gradient-descent", "max_iter": 7},
        "private-scale": {"y_bounds": None, "epsilon": 20.0},
        "no-intercept": {"fit_intercept": False, "max_iter": 6},
    },
    "DPGammaRegressor": {
        "exposure": {"max_sample_weight": 4.0, "max_iter": 5},
        "weak": {"alpha": 0.0, "max_iter": 5},
    },
    "DPTweedieRegressor": {"steep": {"power": 3.0, "max_iter": 5}},
    "DPRidge": {"strong": {"alpha": 1e4, "gram_share": 0.0}},
    "DPRidgeCV": {
        "exposure": {"max_sample_weight": 4.0, "y_bounds": None, "epsilon": 20.0},
        "no-intercept": {"fit_intercept": False, "alphas": [1e4, 1e-3], "max_iter": 6},
    },
    "DPKBinsDiscretizer": {
        "onehot": {"encode": "onehot", "bounds": None, "epsilon": 20.0},
        "uniform": {"strategy": "uniform", "encode": "onehot-dense", "bounds": None},
    },
    "DPQuantileTransformer": {"normal": {"output_distribution": "normal", "bounds": None}},
    "DPRobustScaler": {
        "only-scale": {"with_centering": False, "unit_variance": True},
        "private-scale": {"bounds": None, "epsilon": 20.0},
    },
    "DPSimpleImputer": {
        "median": {"strategy": "median", "add_indicator": True},
        "frequent": {"strategy": "most_frequent"},
        "private-bounds": {"bounds": None, "epsilon": 20.0},
    },
    "DPSelectKBest": {
        "two": {"classes": [0, 1], "y_bounds": None},
        "three": {"classes": [0, 1, 2], "y_bounds": None},
        "private-bounds": {"bounds": None, "epsilon": 20.0},
    },
    "DPVarianceThreshold": {"private-bounds": {"bounds": None, "epsilon": 20.0, "threshold": 0.2}},
    "DPOneHotEncoder": {"ignore": {"handle_unknown": "ignore", "drop": "first"}},
    "DPTargetEncoder": {
        "smooth": {"smooth": 10.0},
        "binary": {"y_bounds": None, "classes": [0, 1]},
        "three": {"y_bounds": None, "classes": [0, 1, 2]},
    },
    "DPTableVectorizer": {
        "clear": {"epsilon": 20.0},
        "bounded": {"schema": skdp.Numeric((-5.0, 5.0)), "epsilon": 20.0},
        "bounds-only": {"schema": skdp.Numeric((-5.0, 5.0)), "epsilon": 0.1},
        "mixed": {
            "schema": [skdp.Numeric(), skdp.Categorical([-1, 0, 1]), skdp.Categorical([0, 1])],
            "epsilon": 20.0,
        },
    },
    "DPStandardScaler": {
        "only-mean": {"with_std": False},
        "only-scale": {"with_mean": False},
    },
}


@dataclass(frozen=True)
class Entry:
    """An estimator and how to name it in a test."""

    name: str
    label: str
    estimator: Any

    def __str__(self):
        return f"{self.name}-{self.label}"

    @property
    def n_outputs(self):
        """Number of targets, for regressors with several; else 1."""
        bounds = np.shape(self.estimator.get_params().get("y_bounds"))
        return bounds[0] if len(bounds) == 2 else 1


def make(name, **parameters):
    """An estimator with its required arguments and these parameters."""
    return CLASSES[name](**{**REQUIRED.get(name, dict)(), **parameters})


def default(name):
    return Entry(name, "default", make(name))


def non_private(name):
    return Entry(name, "inf", make(name, epsilon=inf))


def declared(name, **parameters):
    return Entry(name, "declared", make(name, **{**DECLARED[name], **parameters}))


def variants(name, **parameters):
    """The declared estimator and its further settings."""
    yield declared(name, **parameters)
    for label, settings in VARIANTS.get(name, {}).items():
        known = make(name).get_params()
        if set(settings) <= set(known):
            yield Entry(name, label, make(name, **{**DECLARED[name], **settings, **parameters}))


def all_entries(kind, names=None, **parameters):
    """Entries of all estimators (or the named ones) for one of the functions above."""
    found = []
    for name in CLASSES if names is None else names:
        made = kind(name, **parameters)
        found += [made] if isinstance(made, Entry) else list(made)
    return found


def rows_for(entry, n_rows=200, n_features=N_FEATURES, seed=0):
    """Standard normal rows with targets that conform to the declared facts.

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray, or None for an estimator without targets
    """
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features)).clip(-5, 5)
    signal = X @ np.resize([1.0, -0.7, 0.4], n_features) + 0.3 * generator.normal(size=n_rows)
    estimator = entry.estimator
    if entry.name in CATEGORICAL or entry.label == "mixed":
        X = np.rint(X).clip(-1, 1) + 0.0
    if has_labels(estimator):
        n_classes = len(estimator.get_params().get("classes") or [0, 1])
        return X, np.digitize(signal, [-0.5, 0.5][: n_classes - 1])
    if has_numbers(estimator):
        y = signal.clip(-4, 6)
        if positive_targets(estimator):
            y = np.exp(y / 3.0)
        return X, y if entry.n_outputs == 1 else np.column_stack([y] * entry.n_outputs)
    return X, None


def has_labels(estimator):
    """Whether targets are classes."""
    return is_classifier(estimator) or estimator.get_params().get("classes") is not None


def has_numbers(estimator):
    """Whether targets are numbers."""
    return is_regressor(estimator) or estimator.get_params().get("y_bounds") is not None


def positive_targets(estimator):
    """Whether a target that is not positive is an error."""
    return estimator.__sklearn_tags__().target_tags.positive_only


def is_weighted(estimator):
    """Whether `fit` gives weights to this estimator: a bound other than the default asks for it."""
    return estimator.get_params(deep=False).get("max_sample_weight", 1.0) != 1.0


def weights_for(estimator, X):
    """Further arguments of a fit: weights that depend on the own row alone, up to 1e308, or none.

    A row of zeros has weight 0, tiny ones next to none; long and short ones are above the bound.
    """
    if not is_weighted(estimator):
        return {}
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)
    with np.errstate(over="ignore"):
        weights = 2.0 * np.abs(rows[:, 0]) + np.abs(rows[:, -1])
    weights[(weights > 1e-200) & (weights < 1e-3)] = 1e308
    return {"sample_weight": np.nan_to_num(weights, nan=1.0, posinf=1e308).clip(0.0, 1e308)}


def fit(estimator, X, y):
    """A fitted clone, with categories for as many columns as there are."""
    estimator = clone(estimator)
    shape = np.shape(X)
    for name in ("categories", "schema"):
        given = estimator.get_params().get(name)
        if isinstance(given, list) and len(shape) == 2 and len(given) != shape[1]:
            estimator.set_params(**{name: given[:1] * shape[1]})
    if y is None:
        return estimator.fit(X)
    return estimator.fit(X, y, **weights_for(estimator, X))


def walk(value, path="", seen=None):
    """Everything that an object holds, recursively, as pairs of a path and a value."""
    seen = set() if seen is None else seen
    yield path, value
    if value is None or isinstance(value, (str, bytes, bool, int, float, complex, type)):
        return
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        children = enumerate(value.ravel().tolist())
    elif isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, (list, tuple)):
        children = enumerate(value)
    elif isinstance(value, (set, frozenset)):
        children = enumerate(sorted(value, key=repr))
    else:
        names = {n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ())}
        slots = {n: getattr(value, n) for n in names if hasattr(value, n)}
        children = {**slots, **getattr(value, "__dict__", {})}.items()
    for key, child in children:
        yield from walk(child, f"{path}.{key}", seen)


def state(value):
    """All that an object holds, in a form that compares bit by bit.

    Returns
    -------
    found : dict of str to tuple
        By the path of attributes, keys and positions that leads to it.
    """
    found = {}
    for path, held in walk(value):
        if isinstance(held, (np.ndarray, np.generic)) and held.dtype != object:
            array = np.asarray(held)
            found[path] = (array.shape, array.dtype.str, array.tobytes())
        elif held is None or isinstance(held, (str, bytes, bool, int, float, complex, type)):
            found[path] = (type(held).__name__, repr(held))
        else:
            found[path] = (type(held).__name__, "")
    return found


def private_parts(fitted):
    """The private estimators inside a fitted one, itself included, each with its plan."""
    return [held for _, held in walk(fitted) if "plan_" in getattr(held, "__dict__", {})]


def set_deep(estimator, name, value):
    """A clone in which the parameter `name` has a value wherever it occurs, however deep."""
    estimator = clone(estimator)
    names = [n for n in estimator.get_params() if n.split("__")[-1] == name]
    return estimator.set_params(**dict.fromkeys(names, value))


def outputs(fitted, X):
    """Everything that a fitted estimator says about rows, by method."""
    names = ["predict", "predict_proba", "decision_function", "transform"]
    found = {name: getattr(fitted, name)(X) for name in names if hasattr(fitted, name)}
    return {name: v.toarray() if issparse(v) else v for name, v in found.items()}


def ids(entries):
    return [str(entry) for entry in entries]
