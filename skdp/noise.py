"""The noise core: the one place where something leaves the private side.

Whatever skdp releases passes `NoiseCore.release`: an exact integer sum with a known sensitivity
goes in, the same sum plus an exactly rounded Gaussian on the same grid comes out, and the release
is counted against the plan.
"""

from collections.abc import Callable, Iterable
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import BoundedSum
from skdp._sampler import BitSource, keyed_source, rounded_gaussian, system_source
from skdp.exceptions import PrivacyBudgetError
from skdp.plan import PlannedRelease, Release

__all__ = ["MAX_SIGMA_BITS", "NoiseCore", "add_noise"]

FloatArray = NDArray[np.float64]
# Largest noise in grid units, as a power of two, so that draws fit 64 bits with certainty.
MAX_SIGMA_BITS = 57


def add_noise(
    bounded: BoundedSum, sigma: float, seed: int | None, context: Iterable[object]
) -> FloatArray:
    """Exact sum plus exactly rounded Gaussian noise, as float64.

    Parameters
    ----------
    bounded : BoundedSum
        What to release.
    sigma : float
        Noise standard deviation in the units of the value (times the weights of its groups).
    seed : int or None
        None: fresh entropy of the operating system. An int: a stream keyed by the seed, the
        context and the exact integers, so that it is reproducible but shared by no two values.
    context : iterable of object
        Further keys of a seeded stream, with stable representations.

    Returns
    -------
    noisy : ndarray of the shape of the sum

    Notes
    -----
    ``f + round(N) = round(f + N)`` for f on the grid: the output is a rounding, hence
    post-processing, of the continuous Gaussian mechanism.
    """
    if not (isfinite(sigma) and sigma > 0):
        raise ValueError("a release needs noise: sigma must be positive and finite")
    shape, size = bounded.total.shape, bounded.total.size
    source: BitSource
    if seed is None:
        source = system_source()
    else:
        keys = [seed, bounded.name, sigma.hex(), float(bounded.unit).hex(), shape, *context]
        source = keyed_source(*(repr(k).encode() for k in keys), bounded.total.tobytes())
    units = sigma / bounded.unit
    if bounded.groups:
        draws = [rounded_gaussian(units * w, count, source) for count, w in bounded.groups]
        noise = np.concatenate(draws)
    else:
        noise = rounded_gaussian(units, size, source)
    total = bounded.total.copy()
    total.add(noise.reshape(shape))
    return total.to_float(bounded.unit)


class NoiseCore:
    """Releases what a plan lists, once each, and keeps the record.

    Parameters
    ----------
    planned : iterable of PlannedRelease
        What may be released.
    seed : int or None
        See `add_noise`.
    owner : str
        Name of the estimator, part of the key of seeded noise.
    on_first_release : callable, default=None
        Called when something is about to leave the private side for the first time.
    """

    def __init__(
        self,
        planned: Iterable[PlannedRelease],
        *,
        seed: int | None,
        owner: str,
        on_first_release: Callable[[], None] | None = None,
    ) -> None:
        self._on_first_release = on_first_release
        self._planned = {p.name: p for p in planned}
        self._left = {p.name: p.count for p in self._planned.values()}
        self._seed = seed
        self._owner = owner
        self._made: list[Release] = []

    def plans(self, name: str) -> bool:
        """Whether the plan has a release of that name."""
        return name in self._planned

    def sigma(self, name: str) -> float:
        """Planned noise standard deviation of a release, in the units of its value."""
        return self._planned[name].sigma

    def release(self, bounded: BoundedSum) -> FloatArray:
        """Add the planned noise to a sum and charge it.

        Raises
        ------
        PrivacyBudgetError
            If the plan has no such release left, or one of a smaller sensitivity.
        """
        planned = self._planned.get(bounded.name)
        if planned is None or self._left[bounded.name] < 1:
            raise PrivacyBudgetError(f"the plan has no release {bounded.name!r} left")
        if bounded.sensitivity > planned.sensitivity:
            raise PrivacyBudgetError(f"{bounded.name!r} is more sensitive than planned")
        if not self._made and self._on_first_release is not None:
            self._on_first_release()
        self._left[bounded.name] -= 1
        made = Release(planned.name, planned.sensitivity, planned.sigma, planned.mu, planned.delta0)
        self._made.append(made)
        return add_noise(bounded, made.sigma, self._seed, (self._owner, len(self._made)))

    def finish(self) -> tuple[Release, ...]:
        """All releases made; spent must equal planned.

        Raises
        ------
        PrivacyBudgetError
            If something planned was not released: the plan then misstates the fit.
        """
        if any(self._left.values()):
            raise PrivacyBudgetError("the fit released less than it had planned")
        return tuple(self._made)
