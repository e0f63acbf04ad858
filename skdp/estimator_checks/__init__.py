"""Checks of privacy for estimators of anybody, after the manner of scikit-learn's own."""

from skdp.estimator_checks._run import (
    PrivacyCheckResult,
    check_estimator_privacy,
    parametrize_with_privacy_checks,
)

__all__ = ["PrivacyCheckResult", "check_estimator_privacy", "parametrize_with_privacy_checks"]
