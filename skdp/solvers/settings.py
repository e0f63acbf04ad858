"""Solver settings chosen from public facts alone: rows, columns, outputs, mu."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from skdp.losses import Loss
from skdp.plan import ProblemShape

__all__ = ["SolverSettings", "choose_settings", "default_feature_norm"]

# Signal-to-noise number s = mu n / sqrt(parameters per output direction). Below it the second
# moments cost more than they give.
_GRAM_PAYS = 60.0
_LARGE = 300.0


@dataclass(frozen=True)
class SolverSettings:
    """How the gradient descent runs.

    Attributes
    ----------
    clip_norm : float
        Largest norm of one record's gradient; working rows have norm 1.
    max_iter : int
        Number of noisy gradient steps.
    learning_rate : float
        Step length: in units of the preconditioned gradient, or, without second moments, of the
        gradient divided by the number of rows.
    gram_share : float
        Share of mu^2 spent on the second moments of the rows; 0: none are released.
    ridge_floor : float
        Smallest eigenvalue of the preconditioner, in units of the spectral norm of its noise.
    constant : float
        Value of the intercept's column, in units of the feature norm.
    row_slack : float
        Rows are clipped to this many units of norm, second moments to one.
    """

    clip_norm: float
    max_iter: int
    learning_rate: float
    gram_share: float
    ridge_floor: float
    constant: float
    row_slack: float

    def as_dict(self) -> dict[str, Any]:
        """Settings by name."""
        return asdict(self)


def default_feature_norm(n_features: int) -> float:
    """Norm that standardised rows are clipped to.

    Their root mean square norm is ``sqrt(n_features)``, and about half of them are longer; one
    unit more leaves most of them whole.
    """
    return sqrt(n_features) + 1.0


def choose_settings(
    loss: Loss,
    shape: ProblemShape,
    mu: float,
    chosen: Mapping[str, Any],
    *,
    preconditioned: bool,
) -> SolverSettings:
    """Settings for a problem: the rule's, but for those that the user has chosen.

    Parameters
    ----------
    loss : Loss
        The loss.
    shape : ProblemShape
        Rows, features, outputs.
    mu : float
        Budget of the solver.
    chosen : mapping
        Settings by name; None leaves one to the rule.
    preconditioned : bool
        Whether second moments may be used.

    Returns
    -------
    settings : SolverSettings
    """
    directions = max(shape.n_outputs - 1, 1) if loss.name == "softmax" else shape.n_outputs
    signal = mu * shape.n_rows / sqrt(max(shape.n_features, 1) * directions)
    squared = loss.name == "squared"
    rule: dict[str, Any]
    use_gram = preconditioned and (squared or (loss.name == "logistic" and signal >= _GRAM_PAYS))
    if chosen.get("gram_share") is not None:
        use_gram = preconditioned and chosen["gram_share"] > 0
    if not use_gram:
        rule = {"max_iter": 80, "gram_share": 0.0, "ridge_floor": 0.0}
        rule["clip_norm"] = 1.0 if squared else 0.35
    elif squared:
        rule = {"clip_norm": 1.0, "max_iter": 10, "gram_share": 0.15, "ridge_floor": 3.0}
    else:
        clip_norm = 0.5 if signal < _LARGE else 1.0
        rule = {"clip_norm": clip_norm, "max_iter": 40, "gram_share": 0.1, "ridge_floor": 4.0}
    rule["learning_rate"] = 1.0
    rule["constant"] = 0.25
    rule["row_slack"] = 2.0
    rule.update({name: value for name, value in chosen.items() if value is not None})
    rule["clip_norm"] = min(float(rule["clip_norm"]), loss.residual_bound)
    if not use_gram:
        rule["gram_share"] = 0.0
        if chosen.get("learning_rate") is None:
            # Steps short enough that the noise averages out over the run, and never unstable.
            reach = 2.0 * mu * shape.n_rows / (rule["clip_norm"] * rule["max_iter"])
            rule["learning_rate"] = min(1.5 if squared else 16.0, reach)
    return SolverSettings(**rule)
