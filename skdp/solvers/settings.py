"""Solver settings chosen from public facts alone: rows, columns, outputs, mu."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from skdp.losses import Loss
from skdp.plan import ProblemShape

__all__ = ["SolverSettings", "choose_settings", "default_feature_norm"]

# The signal-to-noise number s = mu n / sqrt(d) from which second moments are worth their price.
_GRAM_PAYS = 40.0
# And from which a regression needs fewer steps.
_PLENTY = 1000.0
# More columns than this have no second moments: a matrix of them would take over 128 MB.
_GRAM_COLUMNS = 4096


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
    momentum : float
        Share of the last step that is taken again (heavy ball).
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
    momentum: float
    gram_share: float
    ridge_floor: float
    constant: float
    row_slack: float

    def as_dict(self) -> dict[str, Any]:
        """Settings by name."""
        return asdict(self)


def default_feature_norm(n_features: int) -> float:
    """Root mean square norm of standardised rows."""
    return sqrt(n_features)


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
    signal = mu * shape.n_rows / sqrt(shape.n_features)
    rule: dict[str, Any]
    if loss.name == "squared":
        pays = shape.n_features <= _GRAM_COLUMNS
        # Clipped residuals bias the fit, noise grows with the clip: wider for larger data.
        clip_norm = min(1.0, max(0.5, 0.2 * signal ** (1 / 3)))
        rule = {
            "row_slack": 8.0,  # a numeric outcome is linear far out
            "max_iter": 20 if signal < _PLENTY else 12,
            "learning_rate": 1.0,
            "momentum": 0.0,
            "gram_share": 0.15,
            "ridge_floor": 2.0,
        }
    else:
        pays = signal >= _GRAM_PAYS and shape.n_features <= _GRAM_COLUMNS
        clip_norm = min(0.7, max(0.15, 0.07 * signal**0.4))
        rule = {"row_slack": 2.0, "learning_rate": 1.9, "gram_share": 0.1, "ridge_floor": 3.0}
        if loss.name == "softmax":
            clip_norm *= sqrt(2.0)
            rule.update(max_iter=20, momentum=0.8)
        else:
            rule.update(max_iter=12, momentum=0.25)
    wanted = chosen.get("gram_share")
    use_gram = preconditioned and (pays if wanted is None else wanted > 0)
    if not use_gram:
        steps, momentum = 80 if loss.name == "softmax" else 40, 0.8
        rule = {"row_slack": rule["row_slack"], "max_iter": steps, "momentum": momentum}
        rule.update(gram_share=0.0, ridge_floor=0.0)
    rule.update(clip_norm=clip_norm, constant=0.25)
    rule.update({name: value for name, value in chosen.items() if value is not None})
    rule["clip_norm"] = min(float(rule["clip_norm"]), loss.residual_bound * rule["row_slack"])
    if not use_gram:
        rule["gram_share"] = 0.0
        # Steps short enough that the noise averages out over the run, and never unstable.
        reach = 2.0 * mu * shape.n_rows / (rule["clip_norm"] * rule["max_iter"])
        rule.setdefault("learning_rate", min(2.0 / loss.curvature, (1.0 - momentum) * reach))
    return SolverSettings(**rule)
