"""Warnings and errors of skdp."""

__all__ = [
    "PrivacyBudgetError",
    "PrivacyLeakWarning",
    "PrivacyLedgerError",
    "PrivacyWarning",
    "UtilityWarning",
]


class PrivacyWarning(UserWarning):
    """A setting weakens the privacy guarantee or makes it meaningless."""


class PrivacyLeakWarning(PrivacyWarning):
    """Something was read from the private data that the privacy cost does not cover."""


class UtilityWarning(UserWarning):
    """The released values are dominated by noise or by clipping."""


class PrivacyBudgetError(RuntimeError):
    """More was asked of a mechanism than its privacy budget was planned for."""


class PrivacyLedgerError(RuntimeError):
    """The file of a `PrivacyLedger` cannot be used; nothing was charged and nothing fitted."""
