"""Choosing and comparing: utility as a function of privacy."""

from skdp.model_selection._curve import PrivacyUtilityCurve, privacy_utility_curve

__all__ = ["PrivacyUtilityCurve", "privacy_utility_curve"]
