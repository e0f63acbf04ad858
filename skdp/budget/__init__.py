"""A stated total for a whole pipeline: `PrivacyBudget`."""

from skdp.budget._budget import PrivacyBudget, default_shares, set_budgets

__all__ = ["PrivacyBudget", "default_shares", "set_budgets"]
