"""Public twins: the scikit-learn object that a private one stands for."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pickle import PicklingError
from typing import Any

from joblib import hash as content_hash
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

__all__ = [
    "digest",
    "is_estimator",
    "keep_configuration",
    "non_private",
    "register_twin",
    "registered_classes",
    "twin_rule",
]

_TWINS: dict[type, Callable[[Any], Any] | str] = {}
# Where "passthrough" may stand for an estimator.
_CONTAINERS = (ColumnTransformer, FeatureUnion, Pipeline)
_GRIDS = ("param_grid", "param_distributions")
# What clone carries over besides the parameters: the result of set_output and of metadata requests.
_CONFIGURATION = ("_sklearn_output_config", "_metadata_request")
_ABSENT = object()


def register_twin(cls: type, twin: Callable[[Any], Any] | str) -> None:
    """Tell `non_private` what to make of objects of a class and of classes derived from it.

    Parameters
    ----------
    cls : type
        The class. Private estimators with a method ``make_non_private`` need no registration.
        `privatize` replaces the twin by an object of this class, if it can be made without
        arguments: the parameters are those that bring the twin's about.
    twin : callable or str
        ``twin(obj)`` returns a new, unfitted estimator without changing `obj`, or
        ``"passthrough"``. A str names the parameter whose twin takes the place of the whole
        object, which suits wrappers.

    Raises
    ------
    TypeError
        If `cls` is not a class, or `twin` neither callable nor a str.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import non_private
    >>> from skdp.twins import register_twin
    >>> class MyPrivateScaler(BaseEstimator): ...
    >>> register_twin(MyPrivateScaler, lambda scaler: StandardScaler())
    >>> non_private(MyPrivateScaler())
    StandardScaler()
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, got {cls!r}")
    if not callable(twin) and not isinstance(twin, str):
        raise TypeError(f"twin must be callable or the name of a parameter, got {twin!r}")
    _TWINS[cls] = twin


def non_private(obj: Any) -> Any:
    """Return the scikit-learn counterpart of an object, for comparison.

    Parameters
    ----------
    obj : estimator
        Fitted or not: a private estimator, or anything made of estimators, such as a pipeline
        or a search. It is left as it is.

    Returns
    -------
    twin : estimator
        Unfitted. Private estimators are replaced at every depth, with the parameters that mean
        the same; a `GaussianMechanism` in a pipeline by ``"passthrough"``; a `PrivacyBudget` by
        the twin of its estimator. Ordinary estimators are cloned. Parameters of a search that the
        twin does not have, such as ``scaler__epsilon``, are dropped from its grid.

    Raises
    ------
    TypeError
        If `obj` is not an estimator.

    See Also
    --------
    skdp.twins.register_twin : Add the twins of other classes.
    privacy_utility_curve : Compare the two over a range of epsilon.

    Notes
    -----
    **Privacy.** The twin has no privacy whatever.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import DPLogisticRegression, GaussianMechanism, non_private
    >>> non_private(make_pipeline(Normalizer(), DPLogisticRegression(epsilon=0.5, C=10.0)))
    Pipeline(steps=[('normalizer', Normalizer()),
                    ('dplogisticregression', LogisticRegression(C=10.0))])
    >>> non_private(GaussianMechanism())
    FunctionTransformer()
    """
    if isinstance(obj, type) or not hasattr(obj, "get_params"):
        raise TypeError(f"only estimators have a non-private twin, got {obj!r}")
    twin = _twin(obj)
    return FunctionTransformer() if isinstance(twin, str) else twin


def registered_classes() -> tuple[type, ...]:
    """The classes that `register_twin` was told about."""
    return tuple(_TWINS)


def twin_rule(obj: Any) -> Callable[[Any], Any] | str | None:
    """What makes the twin of an object, or the name of the parameter whose twin it is."""
    registered = next((_TWINS[cls] for cls in type(obj).__mro__ if cls in _TWINS), None)
    if registered is None and hasattr(type(obj), "make_non_private"):
        return type(obj).make_non_private
    return registered


def _twin(obj: Any) -> Any:
    """The twin of an estimator, or "passthrough"."""
    rule = twin_rule(obj)
    if rule is None:
        return _rebuilt(obj)
    if isinstance(rule, str):
        return _twin(getattr(obj, rule))
    twin = rule(obj)
    if not isinstance(twin, str):
        keep_configuration(obj, twin)
    return twin


def keep_configuration(obj: Any, other: Any) -> None:
    """Give another estimator the output container and the metadata requests of this one."""
    vars(other).update({key: vars(obj)[key] for key in _CONFIGURATION if key in vars(obj)})


def _rebuilt(obj: Any) -> Any:
    """A clone in which every estimator among the parameters is its twin."""
    twin = clone(obj)
    params = obj.get_params(deep=False)
    if twin is obj:  # frozen: it stays what it is, unless it is private
        frozen = any(twin_rule(value) is not None for value in obj.get_params(deep=True).values())
        return _twin(params["estimator"]) if frozen else obj
    # Only what changes: the others were cloned already.
    changed = {name: _replaced(value, obj) for name, value in params.items()}
    twin.set_params(**{name: value for name, value in changed.items() if value is not params[name]})
    for name in _GRIDS:
        if name in params and "estimator" in params:
            twin.set_params(**{name: _twin_grids(obj.estimator, params[name])})
    return twin


def is_estimator(value: Any) -> bool:
    """Whether a value is an instance of an estimator."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def _replaced(value: Any, owner: Any) -> Any:
    """A parameter's value with twins in the place of estimators; the same object if there are none.

    Steps of pipelines and the like are lists of tuples.
    """
    if is_estimator(value):
        twin = _twin(value)
        if isinstance(twin, str) and not isinstance(owner, _CONTAINERS):
            return FunctionTransformer()
        return twin
    if type(value) in (list, tuple):
        items = [_replaced(item, owner) for item in value]
        if any(new is not old for new, old in zip(items, value, strict=True)):
            return type(value)(items)
    return value


# ---- the grid of a search ----


def _twin_grids(estimator: Any, grids: Any) -> Any:
    if isinstance(grids, Mapping):
        return _twin_grid(estimator, grids)
    return [_twin_grid(estimator, grid) for grid in grids]


def _twin_grid(estimator: Any, grid: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that make a difference to the twin, with the values that it gets."""
    found: dict[str, Any] = {}
    for key, values in grid.items():
        name = "__".join(_kept(estimator, key.split("__")))
        if not name:
            raise ValueError(
                f"the twin has no parameter that corresponds to {key!r} of the grid; make one "
                "search for each of its values"
            )
        if hasattr(values, "rvs"):  # kept if a draw arrives unchanged
            draw = values.rvs(random_state=0)
            if [digest(value) for value in _carried(estimator, grid, key, [draw])] == [
                digest(draw)
            ]:
                found[name] = values
        elif carried := _carried(estimator, grid, key, values):
            found[name] = carried
    return found


def digest(value: Any) -> str:
    """Equal for equal values, arrays and estimators among them."""
    try:
        return str(content_hash(value))
    except (AttributeError, PicklingError, TypeError):  # a lambda, for instance
        return f"object {id(value)}"


def _carried(estimator: Any, grid: Mapping[str, Any], key: str, values: Any) -> list[Any]:
    """Different values of a parameter in the twin; none if it stays what it is without them."""
    # A parameter of a step that the grid replaces exists for some of the replacements only.
    above = [
        other
        for other, others in grid.items()
        if key.startswith(f"{other}__") and not hasattr(others, "rvs")
    ]
    found: dict[str, Any] = {}
    changes = False
    for combination in product(*(grid[other] for other in above)):
        context = dict(zip(above, combination, strict=True))
        for value in values:
            twin_value = _value_in_twin(estimator, key, {**context, key: value})
            if twin_value is not _ABSENT:
                found.setdefault(digest(twin_value), twin_value)
                default = _value_in_twin(estimator, key, context)
                changes = changes or digest(default) != digest(twin_value)
    return list(found.values()) if changes else []


def _value_in_twin(estimator: Any, key: str, params: dict[str, Any]) -> Any:
    copies = {name: clone(value, safe=False) for name, value in params.items()}
    try:
        candidate = clone(estimator).set_params(**copies)
    except ValueError:
        return _ABSENT
    name = "__".join(_kept(candidate, key.split("__")))
    return non_private(candidate).get_params(deep=True).get(name, _ABSENT)


def _kept(obj: Any, parts: list[str]) -> Iterator[str]:
    """The parts of a parameter's name in the twin, where wrappers have vanished."""
    for part in parts:
        if twin_rule(obj) != part:
            yield part
        children = obj.get_params(deep=True) if is_estimator(obj) else {}
        obj = children.get(part)
