"""Histograms of the columns of a matrix, all of them one release.

A record counts at most once per column, so the joint sensitivity of d columns is sqrt(d), or
sqrt(2 d) when a record is replaced, however many bins there are.
"""

from collections.abc import Callable
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skdp._lattice import BoundedSum, ExactTotal, iter_blocks
from skdp._threads import Workers
from skdp.noise import NoiseCore
from skdp.plan import relation_factor

__all__ = ["Histograms", "column_sensitivity"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BLOCK_ENTRIES = 1 << 17
_SERIAL_ENTRIES = 1 << 18


def column_sensitivity(n_columns: int, neighboring: str) -> float:
    """Joint sensitivity of one count in each column: the root of their number, rounded up."""
    return nextafter(sqrt(n_columns), inf) * relation_factor(neighboring, "nonnegative")


class Histograms:
    """Noisy histograms of the columns of X, one joint release each.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_columns)
        Data. A sparse array is made dense block by block.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    pool : Workers
        Threads to use.
    """

    def __init__(
        self,
        X: Any,
        n_rows: int,
        noise: NoiseCore,
        neighboring: str,
        pool: Workers,
    ) -> None:
        self._X = X
        self.n_rows = n_rows
        self._noise = noise
        self._neighboring = neighboring
        self._pool = pool if X.size >= _SERIAL_ENTRIES else Workers(1)

    def sigma(self, name: str) -> float:
        """Standard deviation of the noise of every count of a release."""
        return self._noise.sigma(name)

    def release(
        self,
        name: str,
        bins: Callable[[FloatArray], IntArray],
        n_bins: int,
        *,
        missing: bool = False,
    ) -> FloatArray:
        """Noisy counts of every column.

        Parameters
        ----------
        name : str
            The planned release.
        bins : callable
            Maps a block of rows of shape (n, n_columns), which it may change, to numbers of bins
            from 0 to ``n_bins + 1``. The two ends are not released.
        n_bins : int
            Number of bins.
        missing : bool, default=False
            Whether entries that are not finite have a bin of their own, the last one. Otherwise
            they count nowhere.

        Returns
        -------
        counts : ndarray of shape (n_columns, n_bins + missing)
        """
        return self._release(name, self._count(bins, n_bins, missing), 1)

    def release_tree(
        self, name: str, bins: Callable[[FloatArray], IntArray], depth: int
    ) -> list[FloatArray]:
        """Noisy counts at every level of a binary tree over bins.

        Parameters
        ----------
        name : str
            The planned release, with `depth` times the squared sensitivity of a histogram.
        bins : callable
            See `release`, for ``2**depth`` bins.
        depth : int
            Number of levels.

        Returns
        -------
        levels : list of ndarray of shape (n_columns, 2**level)
            From level 1 to level `depth`.
        """
        levels = [self._count(bins, 1 << depth)]
        for _ in range(depth - 1):
            levels.insert(0, levels[0][:, ::2] + levels[0][:, 1::2])
        noisy = self._release(name, np.concatenate(levels, axis=1), depth)
        return np.split(noisy, np.cumsum([level.shape[1] for level in levels])[:-1], axis=1)

    def _release(self, name: str, counts: IntArray, levels: int) -> FloatArray:
        total = ExactTotal(counts.shape)
        total.add(counts)
        sensitivity = column_sensitivity(levels * len(counts), self._neighboring)
        return self._noise.release(BoundedSum(name, total, 1.0, sensitivity))

    def _count(
        self, bins: Callable[[FloatArray], IntArray], n_bins: int, missing: bool = False
    ) -> IntArray:
        X = self._X
        n_rows, n_columns = X.shape
        width = n_bins + 2 + missing
        other = n_bins + 2 if missing else 0
        sparse = issparse(X)
        places = np.arange(n_columns) * width

        def count(blocks: list[slice]) -> IntArray:
            counts = np.zeros(n_columns * width, dtype=np.int64)
            with np.errstate(all="ignore"):  # a warning would tell of a single record
                for rows in blocks:
                    part = X[rows].toarray() if sparse else X[rows]
                    block = np.array(part, dtype=np.float64, order="C")
                    null = None
                    if not np.isfinite(block.sum()):
                        null = ~np.isfinite(block)
                        block[null] = 0.0
                    index = bins(block)
                    if null is not None:
                        index[null] = other
                    index += places
                    counts += np.bincount(index.ravel(), minlength=counts.size)
            return counts

        # A block is worth a pass over all the bins.
        entries = max(_BLOCK_ENTRIES, n_columns * width)
        blocks = list(iter_blocks(n_rows, max(entries // n_columns, 1)))
        counts = np.sum(self._pool.map_parts(count, blocks), axis=0)
        inner: IntArray = np.delete(counts.reshape(n_columns, width), [0, n_bins + 1], axis=1)
        return inner
