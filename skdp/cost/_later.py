"""Whether parts release records again after their fit, as a `GaussianMechanism` does."""

from typing import Any

from skdp.cost._core import cost_parts
from skdp.mechanism import GaussianMechanism

__all__ = ["releases_later"]


def releases_later(*estimators: Any) -> bool:
    """Whether estimators have released, or have planned to release, more than their fits do.

    Parameters
    ----------
    *estimators : estimator
        Those that an ensemble fits, each to some of the records. All of them are shown all records
        later, when they predict.

    Returns
    -------
    later : bool
    """
    return any(
        _released_or_planned(part.estimator) > 1
        for estimator in estimators
        for part in cost_parts(estimator)
        if isinstance(part.estimator, GaussianMechanism)
    )


def _released_or_planned(mechanism: GaussianMechanism) -> int:
    plan = getattr(mechanism, "plan_", None)
    if plan is None:
        return mechanism.n_releases
    return max(len(mechanism.releases_), *(planned.count for planned in plan.releases), 0)
