"""Private linear models."""

from skdp.linear_model.glm import DPGammaRegressor, DPPoissonRegressor, DPTweedieRegressor
from skdp.linear_model.huber import DPHuberRegressor
from skdp.linear_model.logistic import DPLogisticRegression
from skdp.linear_model.regression import DPLinearRegression, DPRidge
from skdp.linear_model.svm import DPLinearSVC

__all__ = [
    "DPGammaRegressor",
    "DPHuberRegressor",
    "DPLinearRegression",
    "DPLinearSVC",
    "DPLogisticRegression",
    "DPPoissonRegressor",
    "DPRidge",
    "DPTweedieRegressor",
]
