"""Finding the estimators of the package, for tests and registries."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isabstract, isclass
from pkgutil import walk_packages
from types import ModuleType

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClusterMixin,
    RegressorMixin,
    TransformerMixin,
)

__all__ = ["all_estimators"]

_MIXINS = {
    "classifier": ClassifierMixin,
    "cluster": ClusterMixin,
    "regressor": RegressorMixin,
    "transformer": TransformerMixin,
}


def all_estimators(
    type_filter: str | Iterable[str] | None = None,
) -> list[tuple[str, type[BaseEstimator]]]:
    """List every public estimator of skdp, as scikit-learn's function of this name does.

    Parameters
    ----------
    type_filter : {"classifier", "cluster", "regressor", "transformer"} or iterable, default=None
        Which kinds to return; estimators of any of the given kinds. None: all of them, also those
        of no kind, such as meta-estimators.

    Returns
    -------
    estimators : list of (str, type)
        Names and classes, sorted by name.

    Raises
    ------
    ValueError
        If `type_filter` names an unknown kind.

    Examples
    --------
    >>> from skdp import all_estimators
    >>> all(hasattr(estimator, "get_params") for _, estimator in all_estimators())
    True
    """
    kinds = [type_filter] if isinstance(type_filter, str) else list(type_filter or _MIXINS)
    if unknown := sorted(set(kinds) - set(_MIXINS)):
        raise ValueError(f"type_filter must be among {sorted(_MIXINS)} or None, got {unknown}.")
    found = {}
    for module in _public_modules():
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if not name.startswith("_") and _is_estimator(value):
                found[value.__name__] = value
    mixins = tuple(_MIXINS[kind] for kind in kinds)
    return sorted(
        (name, cls) for name, cls in found.items() if type_filter is None or issubclass(cls, mixins)
    )


def _public_modules() -> Iterator[ModuleType]:
    """All modules of the package without an underscore in their path, the package first."""
    skdp = import_module("skdp")
    yield skdp
    for info in walk_packages(skdp.__path__, "skdp."):
        if "._" not in info.name:
            yield import_module(info.name)


def _is_estimator(value: object) -> bool:
    """Whether `value` is a concrete estimator class of this package."""
    return (
        isclass(value)
        and issubclass(value, BaseEstimator)
        and value.__module__.startswith("skdp.")
        and not isabstract(value)
    )
