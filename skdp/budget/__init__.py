"""A stated total for a whole pipeline: `PrivacyBudget`."""

from skdp.budget._budget import PrivacyBudget
from skdp.budget._shares import default_shares, set_budgets

__all__ = ["PrivacyBudget", "default_shares", "set_budgets"]
