"""Rules for scikit-learn's transformers and for meta-estimators that fit each part once.

Whether a transformer is free was decided by reading its ``fit``: it may use the shape, the names
and the dtype of X and its parameters, nothing else, and ``transform`` must map row by row. The
tests probe both. What is listed nowhere counts as learning without privacy.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp.accounting import PrivacyCost
from skdp.cost._advice import counterpart
from skdp.cost._core import (
    Fit,
    free,
    holds_private_estimator,
    privacy_cost,
    register_cost_rule,
    rule_for,
    stated,
    unfitted,
    without_privacy,
)
from skdp.cost._density import blocks_are_dense
from skdp.cost._learned import keeps_to_its_parameters
from skdp.cost._row_wise import is_declared_row_wise
from skdp.mechanism import GaussianMechanism

__all__ = ["register"]

# The random ones draw from the shape of X and their own generator only.
ALWAYS_FREE = (
    AdditiveChi2Sampler,
    Binarizer,
    FeatureHasher,
    GaussianRandomProjection,
    HashingVectorizer,
    Normalizer,
    PolynomialCountSketch,
    PolynomialFeatures,
    SkewedChi2Sampler,
    SparseRandomProjection,
)

# Free where all of these parameters satisfy their condition; else the text says what to do.
_GIVEN_CATEGORIES = {
    "categories": lambda value: not isinstance(value, str),
    "min_frequency": lambda value: value is None,
    "max_categories": lambda value: value is None,
}
_CATEGORIES_ADVICE = (
    "give all `categories` as public knowledge, without min_frequency and max_categories, or use {}"
)
FREE_IF: dict[type, tuple[dict[str, Any], str]] = {
    CountVectorizer: ({"vocabulary": lambda value: value is not None}, "give a `vocabulary`"),
    MissingIndicator: ({"features": lambda value: value == "all"}, "set features='all'"),
    OneHotEncoder: (_GIVEN_CATEGORIES, _CATEGORIES_ADVICE.format("DPOneHotEncoder")),
    OrdinalEncoder: (_GIVEN_CATEGORIES, _CATEGORIES_ADVICE.format("DPOrdinalEncoder")),
    RBFSampler: ({"gamma": lambda value: not isinstance(value, str)}, "set gamma to a number"),
    SimpleImputer: (
        {
            "strategy": lambda value: value == "constant",
            "keep_empty_features": bool,
            "add_indicator": lambda value: not value,
        },
        "set strategy='constant', keep_empty_features=True and add_indicator=False",
    ),
    SplineTransformer: (
        {
            "knots": lambda value: not isinstance(value, str),
            # Missing values may be replaced by the least of the other rows. Older versions of
            # scikit-learn do not have the parameter.
            "handle_missing": lambda value: value in (None, "error"),
        },
        "give the positions of the `knots` and set handle_missing='error'",
    ),
    TfidfTransformer: ({"use_idf": lambda value: not value}, "set use_idf=False"),
    TfidfVectorizer: (
        {"vocabulary": lambda value: value is not None, "use_idf": lambda value: not value},
        "give a `vocabulary` and set use_idf=False",
    ),
}


def register() -> None:
    """Register the rules of this module."""
    for cls in ALWAYS_FREE:
        register_cost_rule(cls, free)
    for cls, (conditions, advice) in FREE_IF.items():
        register_cost_rule(cls, partial(_free_if, conditions, advice))
    register_cost_rule(OneHotEncoder, _one_hot_encoder)
    register_cost_rule(FunctionTransformer, _function_transformer)
    register_cost_rule(Pipeline, _pipeline)
    register_cost_rule(FeatureUnion, _feature_union)
    register_cost_rule(ColumnTransformer, _column_transformer)
    register_cost_rule(TransformedTargetRegressor, _transformed_target)
    register_cost_rule(FrozenEstimator, _frozen)


def _free_if(conditions: dict[str, Any], advice: str, obj: Any) -> PrivacyCost:
    if not all(condition(getattr(obj, name, None)) for name, condition in conditions.items()):
        private = counterpart(type(obj))
        return without_privacy(obj, f"{advice}, or use {private}" if private else advice)
    if not keeps_to_its_parameters(obj):
        return PrivacyCost.infinite(
            f"{type(obj).__name__} was fitted with other parameters than it has now, and may have "
            "learned from the data; fit it again"
        )
    return PrivacyCost.zero()


def _one_hot_encoder(obj: OneHotEncoder) -> PrivacyCost:
    cost = _free_if(*FREE_IF[OneHotEncoder], obj)
    ignores = obj.handle_unknown in ("ignore", "infrequent_if_exist")
    if cost.is_finite and (obj.handle_unknown == "warn" or (ignores and obj.drop is not None)):
        return cost.with_assumptions(
            "OneHotEncoder warns where X holds unknown categories; whether it does is taken as "
            "public; handle_unknown='ignore' and drop=None give no warning"
        )
    return cost


def _maps_rows(func: Any) -> bool:
    """Whether a function is known to map row by row: none, elementwise of numpy, declared."""
    return func is None or _is_elementwise(func) or is_declared_row_wise(func)


def _is_elementwise(func: Any) -> bool:
    """Whether a function of one argument is numpy's or scipy's own.

    What ``np.frompyfunc`` makes of a function has the same type and can do anything.
    """
    if not isinstance(func, np.ufunc) or (func.nin, func.nout, func.signature) != (1, 1, None):
        return False
    return any(func is known for module in (np, scipy.special) for known in vars(module).values())


def _function_transformer(obj: FunctionTransformer) -> PrivacyCost:
    # Keyword arguments can do anything to a numpy function (`where`, `out`).
    known = _maps_rows(obj.func) and not (isinstance(obj.func, np.ufunc) and obj.kw_args)
    if not known:
        return PrivacyCost.infinite(
            "the function of a FunctionTransformer may look at other rows; if it does not, declare "
            "it: skdp.cost.row_wise(func)"
        )
    if obj.check_inverse and obj.func is not None and obj.inverse_func is not None:
        return PrivacyCost.zero().with_assumptions(_checks_inverse(obj))
    return PrivacyCost.zero()


def _checks_inverse(obj: Any) -> str:
    return (
        f"{type(obj).__name__} warns where some values do not come back from the inverse; whether "
        "there are any is taken as public; check_inverse=False gives no warning"
    )


def _pipeline(obj: Pipeline) -> Iterator[Fit]:
    releasing = None
    for name, step in obj.steps:
        if releasing is None or _needs_no_mention(step) or holds_private_estimator(step):
            yield Fit(name, step)
        else:  # post-processing of released rows, but not of released labels
            text = (
                f"step {name!r}: {type(step).__name__} learns from the rows that step "
                f"{releasing!r} released; whatever else it reads, such as y, is taken as public"
            )
            yield Fit(name, PrivacyCost.zero().with_assumptions(text))
        if type(step) is GaussianMechanism:
            releasing = name
    if obj.memory is not None:
        yield stated("the cache of a pipeline (memory=) holds data without protection")


def _needs_no_mention(step: Any) -> bool:
    return step is None or isinstance(step, str) or rule_for(step) is free


def _feature_union(obj: FeatureUnion) -> Iterator[Fit]:
    for name, transformer in obj.transformer_list:
        yield Fit(name, transformer)


def _column_transformer(obj: ColumnTransformer) -> Iterator[Fit]:
    fitted = getattr(obj, "transformers_", None)
    for name, transformer, _ in fitted or [*obj.transformers, ("remainder", obj.remainder, None)]:
        yield Fit(name, transformer if fitted else unfitted(transformer))
    for name, _, columns in obj.transformers:
        if callable(columns) and not _selects_by_name(columns):
            yield stated(
                f"block {name!r}: the columns that a function picks (by dtype, for instance) are "
                "taken as public"
            )
    # Even at a threshold of 1: whether all values are stored is up to the data.
    undecided = obj.sparse_threshold > 0.0 and not blocks_are_dense(obj)
    if undecided or getattr(obj, "sparse_output_", False):
        yield stated(
            "where X or the output of a block is sparse, whether the output of ColumnTransformer "
            "is sparse too depends on the data and is taken as public; sparse_threshold=0 fixes it"
        )


def _selects_by_name(columns: Any) -> bool:
    return (
        type(columns) is make_column_selector
        and columns.dtype_include is None
        and columns.dtype_exclude is None
    )


def _transformed_target(obj: TransformedTargetRegressor) -> Iterator[Fit]:
    fitted = getattr(obj, "transformer_", None)
    # A fit without a transformer makes one of the functions, and keeps it.
    from_functions = obj.transformer is None and isinstance(fitted, FunctionTransformer | None)
    func = fitted.func if from_functions and fitted is not None else obj.func
    if not _maps_rows(func):
        yield Fit(
            "",
            PrivacyCost.infinite(
                "the `func` of a TransformedTargetRegressor may look at other rows; if it does "
                "not, declare it: skdp.cost.row_wise(func)"
            ),
        )
    given = (obj.func, obj.inverse_func, obj.transformer)
    if obj.check_inverse and any(part is not None for part in given):
        yield stated(_checks_inverse(obj))
    if not from_functions:
        yield Fit("transformer", unfitted(obj.transformer) if fitted is None else fitted)
    regressor = getattr(obj, "regressor_", None)
    if regressor is None:
        regressor = unfitted(obj.regressor)
    if regressor is None:
        yield Fit("regressor", without_privacy(obj, "give it a private `regressor`"))
    else:
        yield Fit("regressor", regressor)


def _frozen(obj: FrozenEstimator) -> PrivacyCost:
    """The inner estimator is not fitted any more, but what it learned it reveals."""
    if is_declared_row_wise(obj):
        return PrivacyCost.zero()
    cost = privacy_cost(obj.estimator)
    if cost.is_finite or holds_private_estimator(obj.estimator):
        return cost
    return PrivacyCost.infinite(
        f"what the {type(obj.estimator).__name__} in a FrozenEstimator learned from is not known; "
        "if it was public data: skdp.cost.row_wise(frozen_estimator)"
    )
