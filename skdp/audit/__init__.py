"""Attacks on estimators that bound their privacy loss from below."""

from skdp.audit._display import AuditDisplay
from skdp.audit._epsilon import AuditResult, audit_epsilon
from skdp.audit._one_run import OneRunResult, audit_one_run

__all__ = ["AuditDisplay", "AuditResult", "OneRunResult", "audit_epsilon", "audit_one_run"]
