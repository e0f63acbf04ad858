"""Differentially private scikit-learn estimators with one exact privacy cost."""

from skdp._discovery import all_estimators
from skdp._show_versions import show_versions
from skdp.accounting import PrivacyCost
from skdp.budget import PrivacyBudget
from skdp.cost import privacy_cost
from skdp.counterpart import privatize
from skdp.display import PrivacyUtilityDisplay
from skdp.ledger import PrivacyLedger
from skdp.linear_model import (
    DPGammaRegressor,
    DPHuberRegressor,
    DPLinearRegression,
    DPLinearSVC,
    DPLinearSVR,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidge,
    DPRidgeCV,
    DPTweedieRegressor,
)
from skdp.mechanism import GaussianMechanism
from skdp.model_selection import DPGridSearchCV, DPRandomizedSearchCV, privacy_utility_curve
from skdp.preprocessing import (
    Binary,
    Categorical,
    DPKBinsDiscretizer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    DPVarianceThreshold,
    Drop,
    Numeric,
    schema_from_public,
)
from skdp.report import PrivacyReport, privacy_report
from skdp.twins import non_private

__version__ = "0.1.0"

__all__ = [
    "Binary",
    "Categorical",
    "DPGammaRegressor",
    "DPGridSearchCV",
    "DPHuberRegressor",
    "DPKBinsDiscretizer",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLinearSVR",
    "DPLogisticRegression",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPOrdinalEncoder",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPQuantileTransformer",
    "DPRandomizedSearchCV",
    "DPRidge",
    "DPRidgeCV",
    "DPRobustScaler",
    "DPSelectKBest",
    "DPSimpleImputer",
    "DPStandardScaler",
    "DPTableVectorizer",
    "DPTargetEncoder",
    "DPTweedieRegressor",
    "DPVarianceThreshold",
    "Drop",
    "GaussianMechanism",
    "Numeric",
    "PrivacyBudget",
    "PrivacyCost",
    "PrivacyLedger",
    "PrivacyReport",
    "PrivacyUtilityDisplay",
    "all_estimators",
    "non_private",
    "privacy_cost",
    "privacy_report",
    "privacy_utility_curve",
    "privatize",
    "schema_from_public",
    "show_versions",
]
