"""Private linear models."""

from skdp.linear_model.glm import DPGammaRegressor, DPPoissonRegressor, DPTweedieRegressor
from skdp.linear_model.huber import DPHuberRegressor
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.linear_model.quantile import DPQuantileRegressor
from skdp.linear_model.regression import DPLinearRegression, DPRidge
from skdp.linear_model.ridge_cv import DPRidgeCV
from skdp.linear_model.svm import DPLinearSVC, DPLinearSVR

__all__ = [
    "DPGammaRegressor",
    "DPHuberRegressor",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLinearSVR",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidge",
    "DPRidgeCV",
    "DPTweedieRegressor",
]
