"""Compiled passes over a block of float32 rows, for large data where numba is installed.

They read the working copy without converting it to float64 first, which halves a pass. All sums
are of integers below ``2**53`` and hence exact, so the compiler may reorder and contract them:
results are bitwise those of the numpy code in `skdp._dense_rows`, which is the reference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

__all__ = ["Kernels", "kernels"]


@dataclass(frozen=True)
class Kernels:
    """The compiled functions.

    Attributes
    ----------
    predictor : callable
        ``predictor(block, weights, out)``: rows times weights.
    transposed : callable
        ``transposed(block, residual, out)``: adds the transposed block times residual to `out`.
    round_block : callable
        ``round_block(raw, scale, bound, out, squares, raw_squares)``: entries times `scale`,
        truncated and clipped to integers of size `bound`, with the squared norm of each row
        after and before that.
    clip_residual : callable
        ``clip_residual(residual, inverse_norm, clip, places, out)``: residuals times `places`,
        rounded, within ``floor(inverse_norm * clip)``; NaN becomes 0.
    squared_norms : callable
        ``squared_norms(block, out)``: of each row.
    shrink : callable
        ``shrink(block, factors, out)``: rows times their factors, truncated.
    """

    predictor: Callable[..., None]
    transposed: Callable[..., None]
    round_block: Callable[..., None]
    clip_residual: Callable[..., None]
    squared_norms: Callable[..., None]
    shrink: Callable[..., None]


@cache
def kernels() -> Kernels | None:
    """Compiled functions; None where numba is not installed or does not suit this numpy."""
    try:
        import numba
    except ImportError:
        return None
    import numpy as np

    def compiled(function: Any) -> Any:
        # Exact sums may be reordered; nothing else may be relaxed (NaN and inf must survive).
        options: dict[str, Any] = {"fastmath": {"reassoc", "contract"}, "nogil": True}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # there is no folder that compiled code could be kept in
            return numba.njit(**options)(function)

    @compiled
    def predictor(block: Any, weights: Any, out: Any) -> None:
        for i in range(block.shape[0]):
            total = 0.0
            for j in range(block.shape[1]):
                total += np.float64(block[i, j]) * weights[j]
            out[i] = total

    @compiled
    def transposed(block: Any, residual: Any, out: Any) -> None:
        n, d = block.shape
        whole = n - n % 4  # four rows at a time: a quarter of the traffic of `out`
        for i in range(0, whole, 4):
            r0, r1, r2, r3 = residual[i], residual[i + 1], residual[i + 2], residual[i + 3]
            for j in range(d):
                out[j] += (
                    np.float64(block[i, j]) * r0
                    + np.float64(block[i + 1, j]) * r1
                    + np.float64(block[i + 2, j]) * r2
                    + np.float64(block[i + 3, j]) * r3
                )
        for i in range(whole, n):
            for j in range(d):
                out[j] += np.float64(block[i, j]) * residual[i]

    @compiled
    def round_block(
        raw: Any, scale: float, bound: float, out: Any, squares: Any, raw_squares: Any
    ) -> None:
        for i in range(raw.shape[0]):
            total = raw_total = 0.0
            for j in range(raw.shape[1]):
                value = np.trunc(np.float64(raw[i, j]) * scale)
                raw_total += value * value
                value = min(max(value, -bound), bound)
                out[i, j] = value
                total += value * value
            squares[i] = total
            raw_squares[i] = raw_total

    @compiled
    def clip_residual(
        residual: Any, inverse_norm: Any, clip: float, places: float, out: Any
    ) -> None:
        for i in range(residual.shape[0]):
            bound = np.floor(np.float64(inverse_norm[i]) * clip)
            value = np.rint(residual[i] * places)
            if np.isnan(value):
                value = 0.0
            out[i] = max(min(value, bound), -bound)

    @compiled
    def squared_norms(block: Any, out: Any) -> None:
        for i in range(block.shape[0]):
            total = 0.0
            for j in range(block.shape[1]):
                total += np.float64(block[i, j]) * np.float64(block[i, j])
            out[i] = total

    @compiled
    def shrink(block: Any, factors: Any, out: Any) -> None:
        for i in range(block.shape[0]):
            for j in range(block.shape[1]):
                out[i, j] = np.trunc(np.float64(block[i, j]) * factors[i])

    return Kernels(predictor, transposed, round_block, clip_residual, squared_norms, shrink)
