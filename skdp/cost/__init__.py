"""What an object costs in privacy: `privacy_cost`, and the rules it is put together from.

A rule says what fitting an object of one class costs: a `PrivacyCost`, or the fits that it
consists of. The walk over them gives the cost of pipelines and searches, names the step that
learns without privacy, and tells a `PrivacyBudget` how often it has to pay for each step.
"""

from skdp.cost._core import CostPart, Fit, cost_parts, privacy_cost, register_cost_rule, row_wise
from skdp.cost._rules import register as register_rules
from skdp.cost._search import register as register_searches

__all__ = ["CostPart", "Fit", "cost_parts", "privacy_cost", "register_cost_rule", "row_wise"]

register_rules()
register_searches()
