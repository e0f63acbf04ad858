"""The declaration that a function or a transformer maps row by row and learns nothing."""

from types import MethodType
from typing import Any

from sklearn.frozen import FrozenEstimator

__all__ = ["is_declared_row_wise", "row_wise"]

_MARK = "__skdp_row_wise__"


def row_wise(obj: Any) -> Any:
    """Declare that a function or a transformer maps row by row and learns nothing from data.

    Each row of the output depends on the same row of the input only, and on nothing that was
    learned from other rows, at fit or later. `privacy_cost` then counts the step as free.

    Parameters
    ----------
    obj : function, type or FrozenEstimator
        A function given to a `FunctionTransformer` or `TransformedTargetRegressor`; a class of
        transformers, for all its instances but not for subclasses; or a `FrozenEstimator` whose
        inner estimator learned from public data only.

    Returns
    -------
    obj : object
        The same object, so that this serves as a decorator.

    Raises
    ------
    TypeError
        If `obj` cannot carry the declaration: an ordinary instance, which ``clone`` would make
        anew without it, or a builtin, which needs a ``def`` around it. Numpy's functions of one
        argument such as ``np.log1p`` need no declaration.

    See Also
    --------
    register_cost_rule : For classes that are not yours, or that cost something.

    Notes
    -----
    **Privacy.** The declaration is taken on trust. ``lambda X: X - X.max(axis=0)`` is *not* row by
    row: one record moves all the others. A function that wraps a declared one needs a
    declaration of its own.

    Examples
    --------
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from skdp import privacy_cost
    >>> from skdp.cost import row_wise
    >>> @row_wise
    ... def to_celsius(X):
    ...     return (X - 32.0) / 1.8
    >>> privacy_cost(FunctionTransformer(to_celsius))
    PrivacyCost(mu=0, nothing released, neighboring='add_or_remove')
    """
    is_instance = hasattr(obj, "get_params") and not isinstance(obj, type)
    if is_instance and not isinstance(obj, FrozenEstimator):
        raise TypeError(
            f"a declaration on one {type(obj).__name__} would be lost by clone; declare its class "
            "or its function"
        )
    if not callable(obj) and not is_instance:
        raise TypeError(f"only functions and transformers can be declared, got {obj!r}")
    try:
        setattr(obj, _MARK, _declared(obj))
    except (AttributeError, TypeError):
        raise TypeError(
            f"{obj!r} cannot carry a declaration; define a function that calls it"
        ) from None
    return obj


def is_declared_row_wise(obj: Any) -> bool:
    """Whether `obj` itself was declared by `row_wise`, not what it derives from or wraps."""
    declared = obj.__func__ if isinstance(obj, MethodType) else obj
    marks = getattr(declared, "__dict__", {})
    return _MARK in marks and marks[_MARK] is _declared(declared)


def _declared(obj: Any) -> Any:
    """What the mark of `row_wise` must be: the object that was declared.

    What copies its attributes, as `functools.wraps` does, is another. Of a `FrozenEstimator` it is
    what is frozen, which can be replaced.
    """
    return obj.estimator if isinstance(obj, FrozenEstimator) else obj
