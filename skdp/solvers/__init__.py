"""Solvers: ``plan`` before the data, then ``solve`` on bounded rows through the noise core."""

from skdp.solvers.gradient_descent import (
    Descent,
    GradientDescent,
    PreconditionedGradientDescent,
    floored,
    unpacked,
)
from skdp.solvers.settings import (
    SolverSettings,
    choose_settings,
    default_feature_norm,
    signal_to_noise,
)

SOLVERS: dict[str, GradientDescent] = {
    "preconditioned-gradient-descent": PreconditionedGradientDescent(),
    "gradient-descent": GradientDescent(),
}

__all__ = [
    "SOLVERS",
    "Descent",
    "GradientDescent",
    "PreconditionedGradientDescent",
    "SolverSettings",
    "choose_settings",
    "default_feature_norm",
    "floored",
    "signal_to_noise",
    "unpacked",
]
