"""Differentially private scikit-learn estimators with one exact privacy cost."""

from skdp._discovery import all_estimators
from skdp._show_versions import show_versions
from skdp.accounting import PrivacyCost
from skdp.linear_model import DPLinearRegression, DPLogisticRegression, DPRidge
from skdp.mechanism import GaussianMechanism

__version__ = "0.1.0"

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "DPRidge",
    "GaussianMechanism",
    "PrivacyCost",
    "all_estimators",
    "show_versions",
]
