"""Bounded rows that live in a scipy CSR array, never made dense.

The index arrays are the caller's; only the values are copied. All results are bitwise those of
`DenseRows`, since both add the same integers exactly and zeros add nothing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from skdp._lattice import clip_integers, round_rows
from skdp.engine import BoundedRows

__all__ = ["SparseRows", "canonical_rows"]

FloatArray = NDArray[np.float64]


def _is_canonical(X: Any) -> bool:
    """Whether columns increase within every row; scipy's own flag may be out of date."""
    rising = np.diff(X.indices) > 0
    starts = X.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < X.nnz)] - 1] = True
    return bool(rising.all())


def canonical_rows(X: Any) -> Any:
    """Checked CSR rows with one entry per place; the caller's array is left alone."""
    X.check_format(full_check=True)  # scipy trusts indices, and would read past its arrays
    if not _is_canonical(X):
        # Two entries in one place would be rounded apart.
        X = X.copy()
        X.has_canonical_format = X.has_sorted_indices = False
        X.sum_duplicates()
    return X


def _pad(
    data: NDArray[np.floating], indptr: NDArray[np.integer]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Stored values of some rows side by side, padded with zeros, and where they are."""
    lengths = np.diff(indptr)
    kept = np.arange(max(1, lengths.max())) < lengths[:, None]
    values = np.zeros(kept.shape, dtype=data.dtype)
    values[kept] = data
    return values, kept


class SparseRows(BoundedRows):
    """Rows of a CSR array on the grid; the constant column stays implicit."""

    def _allocate(self, X: Any) -> None:
        self._source = X = canonical_rows(X)
        self._indptr, self._indices = X.indptr, X.indices
        self._n_features = X.shape[1]
        self.data = np.empty(X.nnz, dtype=np.float32)
        # Integer value of the constant column, zero in null rows.
        self._constants = np.zeros(self.n_rows)

    def _round_block(
        self, X: Any, rows: slice, constant: float, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        start, stop = self._indptr[rows.start], self._indptr[rows.stop]
        indptr = self._indptr[rows.start : rows.stop + 1] - start
        values, kept = _pad(self._source.data[start:stop], indptr)
        integers, squares, raw = round_rows(
            values,
            scale=self.scale,
            bits=self.grid.row_bits,
            limit=limit,
            bound=self._feature_bound,
            n_columns=self._n_features,
        )
        self.data[start:stop] = integers[kept]
        self._constants[rows] = constant
        return squares, raw

    def _blank(self, rows: slice, which: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(which) + rows.start:
            self.data[self._indptr[row] : self._indptr[row + 1]] = 0.0
        self._constants[rows][which] = 0.0

    def _blocks(self, parts: list[slice], *, wide: bool = True) -> Iterator[tuple[slice, Any]]:
        for part in parts:
            start, stop = self._indptr[part.start], self._indptr[part.stop]
            indptr = self._indptr[part.start : part.stop + 1] - start
            values = self.data[start:stop].astype(np.float64)
            shape = (len(indptr) - 1, self._n_features)
            yield part, csr_array((values, self._indices[start:stop], indptr), shape=shape)

    def _predictor(self, part: slice, block: Any, weights: FloatArray) -> FloatArray:
        product = np.asarray(block @ weights[: self._n_features])
        if not self.constant:
            return product
        constants = self._constants[part]
        return product + np.multiply.outer(constants, weights[-1])

    def _transposed(self, part: slice, block: Any, residual: FloatArray) -> FloatArray:
        product = np.asarray(block.T @ residual)
        if not self.constant:
            return product
        last = self._constants[part] @ residual
        return np.concatenate([product, np.expand_dims(last, 0)])

    def _outer(self, part: slice, block: Any, limit: float) -> FloatArray:
        constants = self._constants[part]
        long = np.flatnonzero(self._inverse_norm[part] < 1.0)
        if long.size:
            constants = constants.copy()
            values, kept = _pad(block.data, block.indptr)
            clipped = np.column_stack([values[long], constants[long]])
            clip_integers(clipped, limit)
            values[long], constants[long] = clipped[:, :-1], clipped[:, -1]
            block.data = values[kept]
        roots = self._roots(part)
        if roots is not None:
            constants = np.trunc(constants * roots)
            block.data = np.trunc(block.data * np.repeat(roots, np.diff(block.indptr)))
        full = np.empty((self.n_columns, self.n_columns))
        d = self._n_features
        full[:d, :d] = (block.T @ block).toarray()
        if self.constant:
            full[:d, d] = full[d, :d] = block.T @ constants
            full[d, d] = constants @ constants
        return full
