"""Location and scale of a regression target."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._lattice import iter_blocks
from skdp._location import find_location, plan_location, warn_location
from skdp._threads import Workers
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import PlannedRelease, ProblemShape

__all__ = [
    "TargetScale",
    "find_target_scale",
    "plan_target_scale",
    "public_scale",
    "warn_missed",
    "warn_unsuited",
]

FloatArray = NDArray[np.float64]
_ROWS = 1 << 16
# Public bounds are taken as this many scales on either side of the centre.
_BOUND_SCALES = 3.0


@dataclass(frozen=True)
class TargetScale:
    """Centre and scale of every output.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_outputs,)
        In the units of y.
    """

    centre: FloatArray
    scale: FloatArray

    def forward(self, y: FloatArray) -> NDArray[np.float32]:
        """Targets in units of the scale, clipped to where squares cannot overflow.

        Parameters
        ----------
        y : ndarray of shape (n_rows, n_outputs)
            Targets.

        Returns
        -------
        scaled : ndarray of shape (n_rows, n_outputs), float32
            Finer than the grid of residuals, and half the memory of y.
        """
        scaled = np.empty(y.shape, dtype=np.float32)
        for rows in iter_blocks(len(y), _ROWS):
            with np.errstate(over="ignore"):
                block = (y[rows] - self.centre) / self.scale
            scaled[rows] = np.clip(block, -(2.0**40), 2.0**40)
        return scaled


def public_scale(y_bounds: Any, n_outputs: int, *, centred: bool) -> TargetScale:
    """Centre and scale of every output from public bounds.

    Parameters
    ----------
    y_bounds : array-like of shape (2,) or (n_outputs, 2)
        Lower and upper bound, of all outputs or of each.
    n_outputs : int
        Number of outputs.
    centred : bool
        Whether targets may be shifted. Otherwise the centre is 0.

    Returns
    -------
    scale : TargetScale

    Raises
    ------
    ValueError
        If the shape is another, or bounds are not finite with ``low < high``.
    """
    bounds = np.asarray(y_bounds, dtype=np.float64)
    if bounds.shape == (2,):
        bounds = np.tile(bounds, (n_outputs, 1))
    if bounds.shape != (n_outputs, 2):
        raise ValueError(
            "y_bounds must be a pair (low, high), or one pair per output of y, got shape "
            f"{bounds.shape} for {n_outputs} outputs"
        )
    low, high = bounds.T
    with np.errstate(all="ignore"):
        widths = high - low
        scale = widths / (2.0 * _BOUND_SCALES)
    right = np.isfinite(widths) & (scale > 0)
    if not right.all():
        output = int(np.argmin(right))
        where = f"; those of output {output} are" if n_outputs > 1 else ", got"
        raise ValueError(
            f"y_bounds must be finite, with low < high{where} ({low[output]:g}, {high[output]:g})"
        )
    if not centred:
        return TargetScale(np.zeros(n_outputs), np.abs(bounds).max(axis=1) / _BOUND_SCALES)
    return TargetScale(low + widths / 2.0, scale)


def warn_missed(intercept: FloatArray) -> bool:
    """Warn where the released intercept lies outside of public bounds.

    Parameters
    ----------
    intercept : ndarray of shape (n_outputs,)
        In units of the scale, from the centre.

    Returns
    -------
    missed : bool
        Whether there was a warning.
    """
    outside = np.flatnonzero(np.abs(intercept) > _BOUND_SCALES)
    if outside.size:
        where = "" if len(intercept) == 1 else f" of output {', '.join(map(str, outside))}"
        warn(
            f"the intercept{where} lies outside of y_bounds: are they in the units of y? (If they "
            "are, features are far from centred, or the budget is too small)",
            UtilityWarning,
        )
    return bool(outside.size)


def warn_unsuited(
    released: FloatArray, sigma: float, shape: ProblemShape, *, bounded: bool
) -> None:
    """Warn, from released counts only, where the scale of y does not suit the targets.

    Parameters
    ----------
    released : ndarray of shape (2,)
        Noisy numbers of records whose first gradient is far longer, and far shorter, than the clip.
    sigma : float
        Standard deviation of their noise.
    shape : ProblemShape
        Rows and outputs.
    bounded : bool
        Whether the scale comes from public bounds.
    """
    # The noise alone reaches 5 sigma once in 3 million fits. Of a target within its bounds next to
    # no first gradient is long (of one output: more outputs have longer ones, and the same clip),
    # and of a normal one of the right scale one in eight is short.
    long, short = released - 5.0 * sigma
    scale = "the scale of y_bounds" if bounded else "the scale that was found for it"
    if shape.n_outputs == 1 and long > 0.5 * shape.n_rows:
        text = f"y is far outside of {scale}, so most gradients are clipped to a fraction"
    elif short > 0.75 * shape.n_rows:
        text = f"y is tiny on {scale}, so noise drowns it"
    else:
        return
    warn(
        f"{text}: set y_bounds to the centre of y plus and minus three of its standard deviations "
        "(a private count, charged in scale_check_share, says so)",
        UtilityWarning,
    )


def plan_target_scale(
    budget: PrivacyCost, n_outputs: int, n_rows: int
) -> tuple[PlannedRelease, ...]:
    """Releases of a private location and scale.

    Parameters
    ----------
    budget : PrivacyCost
        What they may cost together.
    n_outputs : int
        Number of outputs; they share each release.
    n_rows : int
        Declared number of rows.
    """
    return plan_location(budget, n_outputs, n_rows)


def find_target_scale(
    y: FloatArray, n_rows: int, noise: NoiseCore, *, neighboring: str, centred: bool
) -> TargetScale:
    """Private location and scale of every output.

    Parameters
    ----------
    y : ndarray of shape (n_rows, n_outputs)
        Finite targets.
    n_rows : int
        Declared number of rows.
    noise : NoiseCore
        Has the releases of `plan_target_scale` in its plan.
    neighboring : {"add_or_remove", "replace"}
        The relation of the plan.
    centred : bool
        Whether targets may be shifted. Otherwise the centre is 0 and the scale the root of their
        mean square.

    Returns
    -------
    scale : TargetScale

    Notes
    -----
    The scale is a standard deviation without outliers. It need not be exact: between 0.7 and 2
    standard deviations a clipped gradient descent learns equally well.
    """
    found = find_location(y, n_rows=n_rows, noise=noise, neighboring=neighboring, pool=Workers(1))
    warn_location(found, n_rows, noise, "outputs", "give public `y_bounds` or a larger budget")
    if centred:
        return TargetScale(found.mean, found.spread)
    return TargetScale(np.zeros(y.shape[1]), np.hypot(found.mean, found.spread))
