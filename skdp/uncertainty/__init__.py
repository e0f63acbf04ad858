"""Uncertainty of a released model: fits like it are simulated from released values alone."""

from skdp.uncertainty.intervals import Bootstrap, ConfidenceInterval, bootstrap
from skdp.uncertainty.outcomes import (
    BinaryOutcomes,
    ClassOutcomes,
    Outcomes,
    SymmetricOutcomes,
)
from skdp.uncertainty.released import ReleasedFit
from skdp.uncertainty.shapes import EDGES

__all__ = [
    "EDGES",
    "BinaryOutcomes",
    "Bootstrap",
    "ClassOutcomes",
    "ConfidenceInterval",
    "Outcomes",
    "ReleasedFit",
    "SymmetricOutcomes",
    "bootstrap",
]
