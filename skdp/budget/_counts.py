"""Whether y has more classes or outputs than a budget was made for."""

from typing import Any

import numpy as np

__all__ = ["check_counts"]


def check_counts(y: Any, n_classes: int | None, n_outputs: int | None) -> None:
    """Refuse a target that would need more fits than were planned, before it is used.

    Parameters
    ----------
    y : array-like or None
        The target of a fit.
    n_classes, n_outputs : int or None
        What was declared.

    Raises
    ------
    ValueError
        If there are more; the message does not say how many.
    """
    if y is None or (n_classes is None and n_outputs is None):
        return
    shape = np.shape(y)
    columns = shape[1] if len(shape) == 2 else 1
    if n_outputs is not None and columns > n_outputs:
        raise ValueError("y has more columns than n_outputs")
    if n_classes is None:
        return
    # With an indicator of labels every column is a class; other outputs have classes of their own.
    if columns == 1 or n_outputs is not None:
        values = np.asarray(y).reshape(len(y), -1)
        found = max(len(np.unique(column)) for column in values.T)
    else:
        found = columns
    if found > n_classes:
        raise ValueError("y has more classes than n_classes")
