"""Private preprocessing."""

from skdp.preprocessing.k_bins_discretizer import DPKBinsDiscretizer
from skdp.preprocessing.min_max_scaler import DPMinMaxScaler
from skdp.preprocessing.one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing.ordinal_encoder import DPOrdinalEncoder
from skdp.preprocessing.quantile_transformer import DPQuantileTransformer
from skdp.preprocessing.robust_scaler import DPRobustScaler
from skdp.preprocessing.schema import (
    Binary,
    Categorical,
    Drop,
    Numeric,
    schema_from_public,
)
from skdp.preprocessing.select_k_best import DPSelectKBest
from skdp.preprocessing.simple_imputer import DPSimpleImputer
from skdp.preprocessing.standard_scaler import DPStandardScaler
from skdp.preprocessing.table_vectorizer import DPTableVectorizer
from skdp.preprocessing.target_encoder import DPTargetEncoder
from skdp.preprocessing.variance_threshold import DPVarianceThreshold

__all__ = [
    "Binary",
    "Categorical",
    "DPKBinsDiscretizer",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPOrdinalEncoder",
    "DPQuantileTransformer",
    "DPRobustScaler",
    "DPSelectKBest",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DPTableVectorizer",
    "DPTargetEncoder",
    "DPVarianceThreshold",
    "Drop",
    "Numeric",
    "schema_from_public",
]
