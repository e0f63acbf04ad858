"""Solver settings chosen from public facts alone: rows, columns, outputs, mu."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from skdp.losses import Loss
from skdp.plan import ProblemShape

__all__ = ["SolverSettings", "choose_settings", "default_feature_norm"]

# Second moments are worth their price from this signal-to-noise number s = mu n / sqrt(parameters)
# and this s' = mu n / d^1.5 on: a quarter of s' is their mean eigenvalue over the spectral norm of
# their noise. Regression gains from them well below that.
_GRAM_PAYS = {
    **dict.fromkeys(("logistic", "softmax", "hinge", "hinges"), (60.0, 1.5)),
    **dict.fromkeys(("squared", "absolute", "log-link"), (40.0, 0.0)),
}
# From these on, fewer steps are enough: pairs of (s, number of steps), the last that applies.
_STEPS = {
    "logistic": ((0.0, 16), (5e3, 12)),
    "softmax": ((0.0, 20),),
    "hinge": ((0.0, 16), (5e3, 12)),
    "hinges": ((0.0, 20),),
    "squared": ((0.0, 20), (3e3, 12), (2e4, 8)),
    "absolute": ((0.0, 30), (1e4, 20)),
    "log-link": ((0.0, 32),),
}
# From this s on, regression affords second moments that tell nearly collinear features apart; with
# a still lower floor a few draws go astray on such features.
_CLEAR = 500.0
# More columns than this have no second moments: a matrix of them would take over 128 MB.
_GRAM_COLUMNS = 4096
_CONSTANT = 0.25


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
    averaged : float
        Share of the iterates, the last ones, whose mean is the result.
    row_slack : float
        Rows are clipped to this many units of norm, second moments to one.
    least_rows : float, default=0.0
        With fewer rows (or a smaller sum of weights) the learning rate would go further than the
        noise lets the optimum be known.
    """

    clip_norm: float
    max_iter: int
    learning_rate: float
    momentum: float
    gram_share: float
    ridge_floor: float
    averaged: float
    constant: float
    row_slack: float
    least_rows: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Settings by name."""
        return asdict(self)


def default_feature_norm(n_features: int) -> float:
    """Root mean square norm of standardised rows."""
    return sqrt(n_features)


def signal_to_noise(shape: ProblemShape, mu: float, directions: int = 1) -> float:
    """Signal-to-noise number s of a problem, which most rules go by.

    Parameters
    ----------
    shape : ProblemShape
        Rows and features.
    mu : float
        Budget.
    directions : int, default=1
        Coefficient vectors that are learned beside each other.
    """
    return mu * shape.n_rows / sqrt(shape.n_features * directions)


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
    directions = max(1, shape.n_outputs - 1) if loss.rule in ("softmax", "hinges") else 1
    signal = signal_to_noise(shape, mu, directions)
    moments = mu * shape.n_rows / shape.n_features**1.5
    wanted = chosen.get("gram_share")
    if wanted is None:
        least_signal, least_moments = _GRAM_PAYS[loss.rule]
        pays = signal >= least_signal and moments >= least_moments
        use_gram = preconditioned and pays and shape.n_features <= _GRAM_COLUMNS
    else:
        use_gram = preconditioned and wanted > 0
    rule = (_with_gram if use_gram else _plain)(loss.rule, signal)
    rule.update({name: value for name, value in chosen.items() if value is not None})
    # A row may be `row_slack` units long: beyond that product a clip would only add noise.
    rule["clip_norm"] = min(float(rule["clip_norm"]), loss.residual_bound * rule["row_slack"])
    if not use_gram:
        rule["gram_share"] = 0.0
        # The run as a whole can travel about as far as the noise lets the optimum be known, in
        # steps that are never unstable.
        travel = rule.pop("travel") * mu * shape.n_rows
        pace = travel / (rule["clip_norm"] * rule["max_iter"])
        fastest = rule.pop("fastest")
        if "learning_rate" not in rule:
            rule["learning_rate"] = min(fastest, pace)
            rule["least_rows"] = min(fastest / pace, 1.0) * shape.n_rows
    return SolverSettings(**rule)


def _with_gram(loss: str, signal: float) -> dict[str, Any]:
    """Rule for descent preconditioned by second moments.

    Clipped gradients bias the fit and noise grows with the clip: it is wider for larger data.
    Heavy-ball momentum makes up for the curvature bound, which is far above the true curvature of
    a classifier.
    """
    steps = [count for least, count in _STEPS[loss] if signal >= least][-1]
    rule: dict[str, Any] = {"averaged": 0.5, "constant": _CONSTANT, "max_iter": steps}
    if loss in ("squared", "absolute"):
        rule.update(
            clip_norm=min(1.0, max(0.5, 0.2 * signal ** (1 / 3))),
            learning_rate=1.0,
            momentum=0.0,
            gram_share=0.15 if signal < _CLEAR else 0.3,
            ridge_floor=2.0 if signal < _CLEAR else 1.5,
            row_slack=8.0,  # a numeric outcome is linear far out
        )
        return rule
    if loss == "log-link":
        rule.update(
            clip_norm=1.0,  # the unit of residuals is chosen once their spread is known
            learning_rate=0.5,
            momentum=0.0,
            gram_share=0.15,
            ridge_floor=1.0,
            row_slack=2.0,
        )
        return rule
    rule.update(learning_rate=1.9, gram_share=0.1, ridge_floor=3.0, row_slack=2.0)
    clip_norm = min(1.0, max(0.45, 0.07 * signal**0.4))
    if loss == "softmax":
        rule.update(clip_norm=sqrt(2.0) * clip_norm, momentum=0.7)
    elif loss == "hinges":
        rule.update(clip_norm=sqrt(2.0) * clip_norm, momentum=0.5, learning_rate=1.0)
    elif loss == "hinge":
        rule.update(clip_norm=clip_norm, momentum=0.25, learning_rate=1.0)
    else:
        rule.update(clip_norm=clip_norm, momentum=0.25)
    return rule


def _plain(loss: str, signal: float) -> dict[str, Any]:
    """Rule for plain descent, in steps of the gradient divided by the number of rows."""
    rule: dict[str, Any] = {"gram_share": 0.0, "ridge_floor": 0.0, "constant": _CONSTANT}
    if loss in ("softmax", "hinges"):
        rule.update(clip_norm=sqrt(2.0) * max(0.15, 0.07 * signal**0.4), max_iter=80)
        rule.update(momentum=0.9, averaged=0.2, row_slack=2.0)
        if loss == "softmax":
            rule.update(travel=0.175, fastest=4.0)
        else:  # four times the curvature, half the size of coefficients
            rule.update(travel=0.11, fastest=1.0)
    elif loss == "hinge":
        rule.update(clip_norm=min(0.45, max(0.15, 0.06 * sqrt(signal))), max_iter=40)
        rule.update(momentum=0.8, averaged=0.2, row_slack=2.0, travel=0.11, fastest=2.0)
    elif loss == "logistic":
        rule.update(clip_norm=min(0.45, max(0.15, 0.06 * sqrt(signal))), max_iter=40)
        rule.update(momentum=0.8, averaged=0.2, row_slack=2.0, travel=0.22, fastest=8.0)
    else:
        rule.update(clip_norm=min(1.0, max(0.5, 0.2 * signal ** (1 / 3))))
        # Noise moves an iterate by a large part of the residuals: shorter steps, and more of them.
        rule.update(max_iter=60 if loss == "squared" else 40)
        rule.update(momentum=0.8, averaged=0.5, row_slack=8.0, travel=0.1, fastest=1.0)
    return rule
