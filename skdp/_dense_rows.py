"""Bounded rows that live in memory, as a dense array."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._kernels import kernels
from skdp._lattice import MANTISSA_BITS, clip_factors, clip_integers, entry_bound, round_rows
from skdp.engine import BoundedRows

__all__ = ["DenseRows"]

FloatArray = NDArray[np.float64]
# From this many entries on, compiled passes are used.
_COMPILED_ENTRIES = 1 << 23


def _by_rows(block: NDArray[np.floating]) -> NDArray[np.floating]:
    """The block, copied if it lies in memory column by column."""
    if block.strides[0] >= block.strides[1]:
        return block
    copy = np.empty(block.shape, dtype=block.dtype)
    for j in range(block.shape[1]):  # three times as fast as one copy of the block
        copy[:, j] = block[:, j]
    return copy


class DenseRows(BoundedRows):
    """Rows in memory, as a float32 working copy of integers (read once per pass).

    Large data use compiled passes where numba is installed; the results are the same. Products
    are by ``np.dot`` because, unlike ``@``, it lets other threads run.
    """

    def _allocate(self, X: NDArray[np.floating]) -> None:
        self.data: NDArray[np.float32] = np.empty((self.n_rows, self.n_columns), dtype=np.float32)
        # Loading the compiler takes longer than fitting small data.
        self._compiled = kernels() if self.data.size >= _COMPILED_ENTRIES else None

    def _round_block(
        self, X: NDArray[np.floating], rows: slice, constant: float, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        raw, block = _by_rows(X[rows]), self.data[rows]
        features = block[:, : raw.shape[1]]
        if constant:
            block[:, -1] = constant
        bits = self.grid.row_bits
        if self._compiled is None:
            features[:], squares, raw_squares = round_rows(
                raw, scale=self.scale, bits=bits, limit=limit, bound=self._feature_bound
            )
            return squares, raw_squares
        squares, raw_squares = np.empty((2, len(raw)))
        largest = entry_bound(self._feature_bound, self.scale, bits)
        # The whole block: it is contiguous, which its features alone are not.
        self._compiled.round_block(
            raw, self.scale * 2.0**bits, largest, block, squares, raw_squares
        )
        long = np.flatnonzero(~((squares <= limit) & (raw_squares < 2.0**MANTISSA_BITS)))
        if long.size:
            features[long], squares[long], raw_squares[long] = round_rows(
                raw[long], scale=self.scale, bits=bits, limit=limit, bound=self._feature_bound
            )
        return squares, raw_squares

    def _blank(self, rows: slice, which: NDArray[np.bool_]) -> None:
        self.data[rows][which] = 0.0

    def _blocks(self, parts: list[slice], *, wide: bool = True) -> Iterator[tuple[slice, Any]]:
        if self._compiled is not None and not wide:
            for part in parts:
                yield part, self.data[part]
            return
        longest = max(part.stop - part.start for part in parts)
        buffer = np.empty((longest, self.n_columns))
        for part in parts:
            block = buffer[: part.stop - part.start]
            np.copyto(block, self.data[part])
            yield part, block

    def _predictor(self, part: slice, block: Any, weights: FloatArray) -> FloatArray:
        if block.dtype == np.float64:
            return np.dot(block, weights)
        assert self._compiled is not None
        out = np.empty(len(block))
        self._compiled.predictor(block, weights, out)
        return out

    def _transposed(self, part: slice, block: Any, residual: FloatArray) -> FloatArray:
        if block.dtype == np.float64:
            return np.dot(block.T, residual)
        assert self._compiled is not None
        out = np.zeros(self.n_columns)
        self._compiled.transposed(block, residual, out)
        return out

    def _residual_integers(self, residual: FloatArray, rows: slice, clip_norm: float) -> FloatArray:
        if self._compiled is None or residual.ndim == 2:
            return super()._residual_integers(residual, rows, clip_norm)
        places = 2.0**self.grid.residual_bits
        out = np.empty(len(residual))
        self._compiled.clip_residual(
            residual, self._inverse_norm[rows], clip_norm * places, places, out
        )
        return out

    def _outer(self, part: slice, block: Any, limit: float) -> FloatArray:
        if block.dtype == np.float32:
            assert self._compiled is not None
            squares, clipped = np.empty(len(block)), np.empty(block.shape)
            self._compiled.squared_norms(block, squares)
            self._compiled.shrink(block, clip_factors(squares, limit), clipped)
            block = clipped
        else:
            long = np.flatnonzero(self._inverse_norm[part] < 1.0)
            if long.size:
                clipped = block[long]
                clip_integers(clipped, limit)
                block[long] = clipped
        roots = self._roots(part)
        if roots is not None:
            block *= roots[:, None]
            np.trunc(block, out=block)
        return np.dot(block.T, block)
