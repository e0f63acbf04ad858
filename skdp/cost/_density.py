"""Which transformers give dense output whatever the data: where none does, its format tells."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
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

from skdp.mechanism import GaussianMechanism
from skdp.preprocessing import DPStandardScaler

__all__ = ["blocks_are_dense", "is_dense"]

_DENSE = {
    GaussianMechanism,
    GaussianRandomProjection,
    OrdinalEncoder,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
}
# Sparse output for sparse input.
_AS_INPUT = {
    AdditiveChi2Sampler,
    Binarizer,
    Normalizer,
    PolynomialFeatures,
    SimpleImputer,
    SparseRandomProjection,
}


def blocks_are_dense(obj: ColumnTransformer) -> bool:
    """Whether all blocks of a `ColumnTransformer`, and its remainder, are known to be dense."""
    blocks = [*(transformer for _, transformer, _ in obj.transformers), obj.remainder]
    return all(map(is_dense, blocks))


def is_dense(obj: Any, given_dense: bool = False) -> bool:
    """Whether the output is known to be dense, and not sparse for some data.

    Parameters
    ----------
    obj : transformer, str or None
        A transformer, or what may stand for one in a pipeline. Unknown ones may be sparse.
    given_dense : bool, default=False
        Whether the input is known to be dense.

    Returns
    -------
    dense : bool
    """
    kind = type(obj)
    if obj is None or isinstance(obj, str):
        return given_dense or obj == "drop"
    if kind is Pipeline:
        for _, step in obj.steps:
            given_dense = is_dense(step, given_dense)
        return given_dense
    if kind is FeatureUnion:
        return all(is_dense(part, given_dense) for _, part in obj.transformer_list)
    if kind is ColumnTransformer:
        return obj.sparse_threshold == 0 or blocks_are_dense(obj)
    if kind is FrozenEstimator:
        return is_dense(obj.estimator, given_dense)
    if kind is DPStandardScaler:
        return obj.with_mean or given_dense
    if kind in (OneHotEncoder, SplineTransformer):
        return not obj.sparse_output
    if kind is MissingIndicator:
        return not obj.sparse
    if kind is FunctionTransformer:
        return given_dense and (obj.func is None or isinstance(obj.func, np.ufunc))
    return kind in _DENSE or (kind in _AS_INPUT and given_dense)
