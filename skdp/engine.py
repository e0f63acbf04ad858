"""Where the rows live: bounded rows on a lattice, and exact sums over them.

A `BoundedRows` holds a working copy of the data whose rows have norm at most 1 and lie on a grid.
Solvers ask it for sums (clipped gradients, second moments, counts); each comes back as a
`BoundedSum`, an exact integer sum that carries the sensitivity its own clipping guarantees. The
sum over blocks is all that another home of the rows (sparse, a cluster) would do differently.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, isfinite, log2, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import (
    BoundedSum,
    ExactTotal,
    block_rows,
    clip_integers,
    coefficients_to_grid,
    counts,
    iter_blocks,
    weigh_integers,
    weights_to_grid,
)
from skdp._threads import Workers
from skdp.losses import Loss
from skdp.plan import relation_factor

__all__ = ["LONG", "MISFIT", "SHORT", "BoundedRows", "Grid"]

FloatArray = NDArray[np.float64]
Result = TypeVar("Result")
# Rows per block where the exactness budget allows more: a block of this size fits the caches.
_CACHE_BYTES = 1 << 22
# Below this many entries a pass is shorter than handing it to threads.
_SERIAL_ENTRIES = 1 << 18
# Rows that do not fit their norm bound: more than 3 times as long, or less than a tenth.
# Standardised rows have mean square norm n_features: at most one in nine is that long.
LONG, SHORT = 3.0, 0.1
# Gradients that do not fit their clip: more than 8 times as long, or less than an eighth.
MISFIT = 8.0
_OFF_DIAGONAL = 0.7071067811865476  # sqrt(1/2) rounded up


@dataclass(frozen=True)
class Grid:
    """Binary places of rows and of clipped residuals.

    Parameters
    ----------
    row_bits, residual_bits : int
        Rows are multiples of ``2**-row_bits``, residuals of ``2**-residual_bits``.
    """

    row_bits: int = 20
    residual_bits: int = 20


class BoundedRows(ABC):
    """Rows of bounded norm on a grid, with a public constant column appended.

    Subclasses say where the rows live; every home gives bitwise the same sums.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_rows, n_features), float32 or float64
        Features in the caller's units.
    feature_norm : float
        Public norm, in the units of X, that together with the constant makes the unit.
    slack : float
        Rows are clipped to a norm of `slack` units; second moments clip them to one unit again.
        A power of two.
    feature_bound : float, default=inf
        Public bound, in the units of X, that entries are clipped to; inf for none.
    constant : float
        Value, in units of `feature_norm`, of the column appended for the intercept; 0 for none.
    neighboring : {"add_or_remove", "replace"}
        Relation for which sums state their sensitivity.
    grid : Grid
        Binary places.
    null : ndarray of shape (n_rows,), bool, default=None
        Records that count as blank: their row is zero, the constant column included.
    weights : ndarray of shape (n_rows,), float32, default=None
        Weights of the records, of `weights_to_grid`; those without weight count as blank. None:
        all have weight 1.
    pool : Workers, default=None
        Threads to use. None: the caller's.

    Attributes
    ----------
    n_rejected : int
        Number of rows with an entry that is not finite; they count as null records.
    scale : float
        Working rows are features times `scale`.
    constant : float
        Value of the last column of the working rows (0: there is none).
    n_columns : int
        Number of working columns.
    weights : ndarray of shape (n_rows,), float32, or None
        Weights of the records, between 0 and 1: a record's share of a gradient sum or of second
        moments is multiplied by it after clipping, so that no sum becomes more sensitive.

    Notes
    -----
    The unit is ``feature_norm * sqrt(1 + constant**2)``. Gradients are clipped record by record
    whatever the length of the row, so longer rows need no more noise there, and keep their
    direction against the constant; only second moments need the norm 1.
    A null record contributes exactly zero to every sum.
    """

    def __init__(
        self,
        X: Any,
        *,
        feature_norm: float,
        slack: float,
        feature_bound: float = inf,
        constant: float,
        neighboring: str,
        grid: Grid,
        null: NDArray[np.bool_] | None = None,
        weights: NDArray[np.float32] | None = None,
        pool: Workers | None = None,
    ) -> None:
        self.grid = grid
        self.neighboring = neighboring
        self.n_rows, n_features = X.shape
        self.n_columns = n_features + bool(constant)
        self._slack = slack
        self._feature_bound = feature_bound
        joint = sqrt(1.0 + constant**2)
        self.constant = floor(constant / joint * 2.0**grid.row_bits) * 2.0**-grid.row_bits
        self.scale = 1.0 / (feature_norm * joint)
        entries = self.n_rows * self.n_columns
        self._pool = pool if pool is not None and entries > _SERIAL_ENTRIES else Workers(1)
        self._cache_rows = max(64, _CACHE_BYTES // (8 * self.n_columns))
        # 1 / norm of the row, rounded down; 0 for a null row, whose residual is then 0 as well.
        # In float32: it and the working copy are all the memory that a fit needs.
        self._inverse_norm: NDArray[np.float32] = np.empty(self.n_rows, dtype=np.float32)
        self.weights = weights
        if weights is not None:
            null = weights == 0.0 if null is None else null | (weights == 0.0)
        self._allocate(X)
        self._round_all(X, null)

    @abstractmethod
    def _allocate(self, X: Any) -> None:
        """Make room for the working copy."""

    @abstractmethod
    def _round_block(
        self, X: Any, rows: slice, constant: float, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        """Round some rows into the working copy.

        Parameters
        ----------
        X : ndarray or sparse array
            All rows.
        rows : slice
            Which to round.
        constant : float
            Integer value of the constant column.
        limit : float
            Largest squared integer norm of the features.

        Returns
        -------
        squares, raw_squares : ndarray
            As of `round_rows`, of the features alone.
        """

    @abstractmethod
    def _blank(self, rows: slice, which: NDArray[np.bool_]) -> None:
        """Set rows of the working copy to zero."""

    @abstractmethod
    def _blocks(self, parts: list[slice], *, wide: bool = True) -> Iterator[tuple[slice, Any]]:
        """The blocks of some parts, one at a time; `wide`: for products with several columns."""

    @abstractmethod
    def _predictor(self, part: slice, block: Any, weights: FloatArray) -> FloatArray:
        """Rows of a block times weights."""

    @abstractmethod
    def _transposed(self, part: slice, block: Any, residual: FloatArray) -> FloatArray:
        """Transposed block times residuals."""

    @abstractmethod
    def _outer(self, part: slice, block: Any, limit: float) -> FloatArray:
        """Transposed block times block, each row clipped to a squared integer norm and weighted.

        It may change the block.
        """

    def _round_all(self, X: Any, null: NDArray[np.bool_] | None) -> None:
        bits = self.grid.row_bits
        constant = self.constant * 2.0**bits
        unit = 4.0**bits - constant**2
        limit = self._slack**2 * 4.0**bits - constant**2

        def work(blocks: list[slice]) -> NDArray[np.int64]:
            tally = np.zeros(3, dtype=np.int64)  # long, short, rejected
            for rows in blocks:
                squares, raw = self._round_block(X, rows, constant, limit)
                rejected = np.isnan(raw)
                tally[2] += np.count_nonzero(rejected)
                blank = rejected if null is None else rejected | null[rows]
                raw[blank] = np.nan  # compares false below
                tally[0] += np.count_nonzero(raw > unit * LONG**2)
                tally[1] += np.count_nonzero(raw < unit * SHORT**2)
                squares += constant**2
                if blank.any():
                    self._blank(rows, blank)
                    squares[blank] = 0.0
                inverse = 2.0**bits * (1.0 - 2.0**-22) / np.sqrt(squares)
                self._inverse_norm[rows] = np.where(squares > 0, inverse, 0.0)
            return tally

        tallies = np.sum(self._run(work, self._cache_rows), axis=0)
        self._misfits, self.n_rejected = tallies[:2], int(tallies[2])

    @property
    def live(self) -> NDArray[np.bool_]:
        """Which records are not blank, or nothing but zeros."""
        return self._inverse_norm > 0

    def misfits(self, name: str) -> BoundedSum:
        """Numbers of rows far longer (`LONG` times) or shorter (`SHORT` times) than the norm."""
        return counts(name, self._misfits, self.neighboring)

    def weigh(self, factors: NDArray[np.floating]) -> None:
        """Multiply the weights of the records by factors from 0 to 1."""
        weights = factors if self.weights is None else self.weights * factors
        self.weights = weights_to_grid(weights, 1.0)

    def _roots(self, part: slice) -> FloatArray | None:
        """Factors at most 1 of rows whose outer products are to be weighted."""
        if self.weights is None:
            return None
        return np.sqrt(self.weights[part], dtype=np.float64)

    def _run(self, work: Callable[[list[slice]], Result], rows: int) -> list[Result]:
        """Call `work` on lists of blocks that cover all rows, one list per thread.

        Floating-point warnings, or errors where the caller wants those, would tell of single
        rows: they are off, in every thread (each has settings of its own).
        """

        def quiet(blocks: list[slice]) -> Result:
            with np.errstate(all="ignore"):
                return work(blocks)

        return self._pool.map_parts(quiet, list(iter_blocks(self.n_rows, rows)))

    def _sum(
        self,
        block_sum: Callable[[slice, Any], FloatArray],
        shape: tuple[int, ...],
        rows: int,
        *,
        wide: bool,
    ) -> ExactTotal:
        """Exact sum over all blocks of `block_sum(rows, block)`, integers below 2**53."""

        def work(blocks: list[slice]) -> ExactTotal:
            total = ExactTotal(shape)
            for part, block in self._blocks(blocks, wide=wide):
                total.add(block_sum(part, block))
            return total

        total, *others = self._run(work, rows)
        for other in others:
            total.merge(other)
        return total

    def _residual_integers(self, residual: FloatArray, rows: slice, clip_norm: float) -> FloatArray:
        """Residuals rounded to the grid within ``clip_norm / norm of the row``, as integers.

        Values within the bound are rounded to nearest, so that rare classes are not biased; the
        bound itself is rounded down. The product with the row has norm at most `clip_norm`.
        """
        places = 2.0**self.grid.residual_bits
        # The roundings, to float32 among them, are covered by the shrunk inverse norm.
        bound = np.multiply(self._inverse_norm[rows], clip_norm * places, dtype=np.float64)
        np.floor(bound, out=bound)
        if not isfinite(np.add.reduce(residual, axis=None)):  # one record must not poison a sum
            residual = np.where(np.isnan(residual), 0.0, residual)
        integers = residual * places
        if residual.ndim == 1:
            np.rint(integers, out=integers)
            np.minimum(integers, bound, out=integers)
            np.negative(bound, out=bound)
            return np.maximum(integers, bound, out=integers)
        # Rows far beyond any bound are shrunk first, so that their squared norms stay exact.
        top = 2.0 ** ((52 - residual.shape[1].bit_length()) // 2)
        peak = np.abs(integers).max(axis=1)
        if (peak > top).any():
            large = np.flatnonzero(peak > top)
            finite = np.minimum(peak[large], 2.0**1000)
            integers[large] = np.clip(integers[large], -(2.0**1000), 2.0**1000)
            integers[large] *= (top / finite)[:, None]
        np.rint(integers, out=integers)
        clip_integers(integers, np.minimum(np.square(bound), 2.0**52))
        return integers

    def gradient_sum(
        self,
        name: str,
        coefficients: FloatArray,
        loss: Loss,
        targets: NDArray,
        clip_norm: float,
    ) -> BoundedSum:
        """Sum over rows of the loss gradient in the coefficients, each clipped and weighted.

        Parameters
        ----------
        name : str
            Name of the release.
        coefficients : ndarray of shape (n_columns,) or (n_columns, n_outputs)
            On the grid of `round_coefficients`.
        loss : Loss
            Pointwise loss.
        targets : ndarray of shape (n_rows, ...)
            Targets in the form that the loss asks for.
        clip_norm : float
            Largest norm of one record's gradient, in units of the rows.

        Returns
        -------
        sum : BoundedSum of shape like `coefficients`
        """
        bits = self.grid.row_bits + self.grid.residual_bits
        rows = block_rows(bits, clip_norm, cap=self._cache_rows)
        weights = coefficients * 2.0**-self.grid.row_bits  # exact; blocks hold integers

        def block_sum(part: slice, block: Any) -> FloatArray:
            residual = loss.residual(self._predictor(part, block, weights), targets[part])
            if self.weights is not None and loss.weigh_first:
                residual *= self.weights[part]
            integers = self._residual_integers(residual, part, clip_norm)
            if self.weights is not None and not loss.weigh_first:
                weigh_integers(integers, self.weights[part])
            return self._transposed(part, block, integers)

        total = self._sum(block_sum, coefficients.shape, rows, wide=coefficients.ndim == 2)
        sensitivity = clip_norm * relation_factor(self.neighboring)
        return BoundedSum(name, total, 2.0**-bits, sensitivity)

    def gradient_misfits(self, name: str, targets: NDArray, clip_norm: float) -> BoundedSum:
        """Numbers of records whose gradient at zero does not fit the clip.

        Parameters
        ----------
        name : str
            Name of the release.
        targets : ndarray of shape (n_rows,) or (n_rows, n_outputs)
            What the model starts from: minus the residuals at zero.
        clip_norm : float
            As of `gradient_sum`.

        Returns
        -------
        sum : BoundedSum of shape (2,)
            Gradients that are `MISFIT` times as long as the clip, and as short.
        """
        values = np.zeros(2, dtype=np.int64)
        for part in iter_blocks(self.n_rows, self._cache_rows):
            with np.errstate(all="ignore"):
                bound = np.multiply(self._inverse_norm[part], clip_norm, dtype=np.float64)
                size = np.abs(np.asarray(targets[part], dtype=np.float64))
                if size.ndim == 2:
                    size = np.sqrt(np.square(size).sum(axis=1))
                live = bound > 0
                values[0] += np.count_nonzero(live & (size > MISFIT * bound))
                values[1] += np.count_nonzero(live & (size < bound / MISFIT))
        return counts(name, values, self.neighboring)

    def predictor_sum(
        self,
        share: Callable[[FloatArray, NDArray[np.bool_], slice], FloatArray],
        coefficients: FloatArray,
        shape: tuple[int, ...],
    ) -> ExactTotal:
        """Exact sum over blocks of what a function makes of the linear predictor.

        Parameters
        ----------
        share : callable
            ``share(predictor, live, rows)`` gives a sum over the records that are not null
            (`live`) in integers below ``2**53``, each bounded by the function itself.
        coefficients : ndarray of shape (n_columns,)
            On the grid of `round_coefficients`.
        shape : tuple of int
            Shape of the sum.
        """
        weights = coefficients * 2.0**-self.grid.row_bits

        def block_sum(part: slice, block: Any) -> FloatArray:
            return share(self._predictor(part, block, weights), self._inverse_norm[part] > 0, part)

        return self._sum(block_sum, shape, self._cache_rows, wide=False)

    def round_coefficients(self, coefficients: FloatArray) -> FloatArray:
        """Coefficients rounded so that their products with rows are exact in any order."""
        return coefficients_to_grid(coefficients, self.grid.row_bits + ceil(log2(self._slack)))

    def gram(self, name: str) -> BoundedSum:
        """Weighted sum over rows, clipped to norm 1, of the outer product of the row with itself.

        Returns
        -------
        sum : BoundedSum of shape (n_columns * (n_columns + 1) / 2,)
            The diagonal, then the entries above it, row by row. With the latter weighted by
            sqrt(2), the norm of one record's share is its squared norm, at most 1.
        """
        bits = 2 * self.grid.row_bits
        # Small blocks stay in the cache from step to step, but each costs p * p additions.
        rows = block_rows(bits, 1.0, cap=max(1024, self._cache_rows // 4))
        p = self.n_columns
        upper = np.triu_indices(p, 1)

        limit = 4.0**self.grid.row_bits

        def block_sum(part: slice, block: Any) -> FloatArray:
            return self._outer(part, block, limit)

        full = self._sum(block_sum, (p, p), rows, wide=False)
        total = ExactTotal((p * (p + 1) // 2,))
        for limb in ("high", "low"):
            matrix = getattr(full, limb)
            getattr(total, limb)[:] = np.concatenate([matrix.diagonal(), matrix[upper]])
        return BoundedSum(
            name,
            total,
            2.0**-bits,
            relation_factor(self.neighboring, "nonnegative"),
            ((p, 1.0), (p * (p - 1) // 2, _OFF_DIAGONAL)),
        )
