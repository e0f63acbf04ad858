"""Choosing and comparing: private searches, and utility as a function of privacy."""

from skdp.model_selection._curve import PrivacyUtilityCurve, privacy_utility_curve
from skdp.model_selection._grid_search import DPGridSearchCV
from skdp.model_selection._randomized_search import DPRandomizedSearchCV

__all__ = [
    "DPGridSearchCV",
    "DPRandomizedSearchCV",
    "PrivacyUtilityCurve",
    "privacy_utility_curve",
]
