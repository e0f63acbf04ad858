"""What an object costs in privacy: `privacy_cost`, and the rules it is put together from.

A rule says what fitting an object of one class costs: a `PrivacyCost`, or the fits that it
consists of. The walk over them gives the cost of pipelines and searches, names the step that
learns without privacy, and tells a `PrivacyBudget` how often it has to pay for each step.
"""

from skdp.cost._advice import register_advice
from skdp.cost._choices import register as register_choices
from skdp.cost._core import CostPart, Fit, cost_parts, privacy_cost, register_cost_rule
from skdp.cost._ensembles import register as register_ensembles
from skdp.cost._facts import declared, given_facts
from skdp.cost._outputs import register as register_outputs
from skdp.cost._row_wise import row_wise
from skdp.cost._rules import register as register_rules
from skdp.cost._search import register as register_searches

__all__ = [
    "CostPart",
    "Fit",
    "cost_parts",
    "declared",
    "given_facts",
    "privacy_cost",
    "register_advice",
    "register_cost_rule",
    "row_wise",
]

for _register in (
    register_rules,
    register_searches,
    register_ensembles,
    register_outputs,
    register_choices,
):
    _register()
