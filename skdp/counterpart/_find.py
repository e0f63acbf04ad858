"""Which private class stands for which public one, and with which parameters.

There is no second table beside the twins: what a private estimator gives as its public twin, with
each of its parameters, is asked for and read backwards.
"""

from collections.abc import Iterable, Iterator
from inspect import isabstract
from typing import Any

from sklearn.pipeline import Pipeline

from skdp.base import PrivateEstimator
from skdp.twins import digest, registered_classes, twin_rule

__all__ = ["HARMLESS", "PRIVACY", "carry_over", "counterparts", "sources_of"]

# Parameters of scikit-learn's estimators that do not say what is to be learned, but how it is
# computed: they have no meaning where something else is computed. Among them is whether columns
# without any value are dropped: where that is up to the data, a private estimator keeps them.
HARMLESS = frozenset(
    {
        "cache_size",
        "copy",
        "copy_X",
        "dual",
        "intercept_scaling",
        "keep_empty_features",
        "max_iter",
        "n_jobs",
        "precompute",
        "random_state",
        "solver",
        "solver_options",
        "tol",
        "verbose",
        "warm_start",
    }
)
# Values of a parameter that mean the same.
_EQUIVALENT: dict[str, tuple[Any, ...]] = {
    "penalty": ("l2", "deprecated"),
    "l1_ratio": (None, 0, 0.0),
    "link": ("auto", "log"),
    # An error about categories that are not known makes no sense where rare ones are not found.
    "handle_unknown": ("error", "infrequent_if_exist", "use_encoded_value"),
    "unknown_value": (None, -1),
    "multi_class": ("auto", "deprecated", "multinomial"),
}
# They have a meaning of their own in private estimators.
PRIVACY = frozenset({"delta", "epsilon", "neighboring", "random_state"})
_ABSENT = object()


def counterparts() -> dict[type, type]:
    """Private classes by the public ones that they stand for.

    Returns
    -------
    classes : dict of type to type
        Of all private estimators that are imported, or registered with `register_twin`; those of
        skdp first.
    """
    found: dict[type, type] = {}
    known = [*_subclasses(PrivateEstimator), *registered_classes()]
    for cls in sorted(known, key=lambda cls: not cls.__module__.startswith("skdp.")):
        twin = _twin(cls, {})
        # A pipeline as a twin stands for what is in it, not for pipelines.
        if twin is not None and type(twin) not in (cls, Pipeline):
            found.setdefault(type(twin), cls)
    return found


def _subclasses(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        if not isabstract(child):
            yield child
        yield from _subclasses(child)


def _twin(cls: type, parameters: dict[str, Any]) -> Any:
    """The public twin of an object of a class, or None if it has none with such parameters."""
    try:
        private = cls(**parameters)
        rule = twin_rule(private)
        twin = rule(private) if callable(rule) else None
    except Exception:  # of another's class, or for a value that it does not expect
        return None
    return twin if hasattr(twin, "get_params") else None


def _twin_parameters(cls: type, parameters: dict[str, Any]) -> dict[str, Any]:
    twin = _twin(cls, parameters)
    return {} if twin is None else twin.get_params(deep=False)


def sources_of(cls: type, name: str, values: Iterable[Any]) -> set[str | None]:
    """The parameters of a private class that give its twin a parameter.

    Parameters
    ----------
    cls : type
        The private class.
    name : str
        Parameter of the twin.
    values : iterable
        Values of it.

    Returns
    -------
    sources : set of str or None
        Mostly of one name, the same; with None if there is no source of some value. Values that the
        twin has by itself need none.
    """
    default = _twin_parameters(cls, {}).get(name, _ABSENT)
    return {_source(cls, name, value) for value in values if not _same(name, default, value)}


def _source(cls: type, name: str, value: Any) -> str | None:
    known = [other for other in cls().get_params(deep=False) if other not in PRIVACY]
    known.sort(key=lambda other: other != name)
    for other in known:
        if _same(name, _twin_parameters(cls, {other: value}).get(name, _ABSENT), value):
            return other
    return None


def carry_over(public: Any, cls: type) -> tuple[Any, dict[str, Any]]:
    """The private counterpart of an estimator, and what of it could not be carried over.

    Parameters
    ----------
    public : estimator
        Of scikit-learn, for instance.
    cls : type
        Its private class.

    Returns
    -------
    private : estimator
        Unfitted.
    lost : dict of str to object
        Parameters of `public` that make a difference and that the counterpart cannot have.
    """
    wanted = public.get_params(deep=False)
    chosen = {
        source: value
        for name, value in wanted.items()
        for source in sources_of(cls, name, [value])
        if source is not None
    }
    # Says who computes, not what, so twins do without it.
    if wanted.get("n_jobs") is not None and "n_jobs" in cls().get_params(deep=False):
        chosen["n_jobs"] = wanted["n_jobs"]
    reached = _twin_parameters(cls, chosen)
    lost = {
        name: value
        for name, value in wanted.items()
        if name not in HARMLESS and not _same(name, reached.get(name, _ABSENT), value)
    }
    return cls(**chosen), lost


def _same(name: str, a: Any, b: Any) -> bool:
    if a is _ABSENT:
        return False
    equivalent = _EQUIVALENT.get(name, ())
    if _is_among(a, equivalent) and _is_among(b, equivalent):
        return True
    return a is b or digest(a) == digest(b) or _equal_numbers(a, b)


def _is_among(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value is other or (_plain(value) and value == other) for other in values)


def _equal_numbers(a: Any, b: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (a, b))
    return numbers and bool(a == b)


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
