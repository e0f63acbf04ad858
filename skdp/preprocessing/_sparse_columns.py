"""Columns of sparse arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

__all__ = ["SPARSE_FORMATS", "entries_and"]

# Formats whose columns can be scaled in place.
SPARSE_FORMATS = ("csr", "csc")


def entries_and(
    X: Any, values: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Entries of X to work on in place, and what each column has, in a shape that goes with them.

    Parameters
    ----------
    X : ndarray, CSR or CSC array of shape (n_rows, n_columns)
        Data.
    values : ndarray of shape (n_columns,)
        A number for every column.
    """
    if not issparse(X):
        return X, values
    if X.format == "csc":
        return X.data, np.repeat(values, np.diff(X.indptr))
    return X.data, values[X.indices]
