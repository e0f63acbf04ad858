"""Private counts of the values of features by size, for simulated rows of their shape."""

from math import sqrt
from typing import Any

import numpy as np
from scipy.sparse import issparse

from skdp._lattice import BoundedSum, ExactTotal, iter_blocks
from skdp.accounting import PrivacyCost
from skdp.engine import BoundedRows
from skdp.plan import PlannedRelease, ProblemShape, relation_factor
from skdp.uncertainty import EDGES

__all__ = ["SHAPES", "count_values", "counts_pay", "plan_shapes"]

SHAPES = "shapes"
# Counting more entries would take a noticeable part of the time of a fit.
_MOST_ENTRIES = 1 << 24
# Edges are multiples of this many standard deviations.
_STEP = 0.25
_BLOCK_ENTRIES = 1 << 16


def counts_pay(shape: ProblemShape) -> bool:
    """Whether the values are few enough to be counted."""
    return shape.n_rows * shape.n_features <= _MOST_ENTRIES


def _sensitivity(n_features: int, neighboring: str) -> float:
    # A record has one value of each feature. Roundings of the factors are paid for.
    return sqrt(n_features) * relation_factor(neighboring, "nonnegative") * (1.0 + 2.0**-50)


def plan_shapes(
    budget: PrivacyCost, shape: ProblemShape, share: float
) -> tuple[PlannedRelease, PrivacyCost]:
    """The release of the counts, for a share of the budget, and the budget that is left."""
    first, rest = budget.split([share, 1.0 - share])
    return PlannedRelease(
        SHAPES, _sensitivity(shape.n_features, budget.neighboring), first.mu
    ), rest


def count_values(X: Any, rows: BoundedRows, deviation: float) -> BoundedSum:
    """Numbers of values of each feature between the edges of `EDGES`.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_rows, n_features)
        Features, as they came.
    rows : BoundedRows
        The same, bounded; blank records count nowhere.
    deviation : float
        The unit of the edges, in the units of X.

    Returns
    -------
    sum : BoundedSum of shape (n_features, len(EDGES) + 1)
    """
    n_rows, d = X.shape
    # Narrow bins of one width are found faster, and are joined afterwards.
    top = int(EDGES[-1] / _STEP)
    width = 2 * top + 2
    offsets = width * np.arange(d) + (top + 1)
    values = np.zeros(width * d, dtype=np.int64)
    for part in iter_blocks(n_rows, max(1, _BLOCK_ENTRIES // d)):
        block = X[part].toarray() if issparse(X) else X[part]
        # In float32 a large factor would be inf, and zeros times it no numbers.
        block = np.multiply(block[rows.live[part]], 1.0 / (deviation * _STEP), dtype=np.float64)
        np.clip(block, -top - 1.0, float(top), out=block)
        places = np.floor(block).astype(np.int64) + offsets
        values += np.bincount(places.ravel(), minlength=len(values))
    starts = np.concatenate([[0], np.rint(EDGES / _STEP).astype(np.int64) + top + 1])
    total = ExactTotal((d, len(starts)))
    total.add(np.add.reduceat(values.reshape(d, width), starts, axis=1))
    return BoundedSum(SHAPES, total, 1.0, _sensitivity(d, rows.neighboring))
