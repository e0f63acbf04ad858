"""Neighbouring data sets on which a model differs as much as it can."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

__all__ = ["Neighbors", "candidates", "declare_rows", "divides_rows", "neighbors_for"]

# Canaries are that many times as long as the longest row: any clipping is active.
_REACH = 100.0


class Neighbors:
    """Two neighbouring data sets.

    Parameters
    ----------
    with_record, without : tuple of (X, y)
        The data with the canary; and without it, or with another record in its place.
    n_rows : int or None
        The number of rows that is declared as public; None: both sides have as many anyway.
    label : str
        How the pair was made.
    """

    def __init__(
        self,
        with_record: tuple[Any, Any],
        without: tuple[Any, Any],
        n_rows: int | None,
        label: str,
    ) -> None:
        self.sides = (without, with_record)
        self.n_rows = n_rows
        self.label = label


def declare_rows(estimator: Any, n_rows: int | None) -> Any:
    """A clone whose number of rows is declared, wherever that can be, with fresh noise.

    Parameters
    ----------
    estimator : estimator
        Anything with `get_params`.
    n_rows : int or None
        Public number of rows; None: nothing is declared.
    """
    made = clone(estimator)
    settings: dict[str, Any] = {}
    for name, value in made.get_params(deep=True).items():
        last = name.rpartition("__")[2]
        if last == "n_rows" and value is None and n_rows is not None:
            settings[name] = n_rows
        elif last == "random_state" and value is not None:
            settings[name] = None
    return made.set_params(**settings)


def divides_rows(estimator: Any) -> bool:
    """Whether an estimator divides the rows by their places, as cross-validation does.

    Parameters
    ----------
    estimator : estimator
        Anything with `get_params`.
    """
    names = {name.rpartition("__")[2] for name in estimator.get_params(deep=True)}
    return not names.isdisjoint({"cv", "validation_fraction"})


def neighbors_for(X: Any, y: Any, neighbor: Any, relation: str) -> Neighbors:
    """The pair of data sets for a canary.

    Parameters
    ----------
    X, y : array-like
        The data that do not change.
    neighbor : int or tuple
        A row of the data, which is removed; or a record ``(x, y)``, which is added; or, under
        "replace", two records, which take the place of each other.
    relation : {"add_or_remove", "replace"}
        Neighbouring relation.
    """
    if isinstance(neighbor, int | np.integer):
        if relation == "replace":
            raise ValueError("under neighboring='replace' give two records (x0, y0), (x1, y1)")
        kept = np.delete(np.arange(_length(X)), neighbor)
        rows = X.iloc[kept] if hasattr(X, "iloc") else X[kept]
        without = (rows, None if y is None else np.asarray(y)[kept])
        return Neighbors((X, y), without, _length(X), f"row {int(neighbor)}")
    if not isinstance(neighbor, tuple):
        raise ValueError("neighbor must be None, the number of a row, or a tuple")
    if relation == "replace":
        other, canary = neighbor
        first, second = _add(X, y, canary), _add(X, y, other)
        return Neighbors(first, second, None, "given records")
    return Neighbors(_add(X, y, neighbor), (X, y), _length(X) + 1, "given record")


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _add(X: Any, y: Any, record: tuple[Any, Any]) -> tuple[Any, Any]:
    row, label = record
    if hasattr(X, "iloc"):
        import pandas as pd

        added = pd.DataFrame([row], columns=X.columns).astype(X.dtypes)
        rows = pd.concat([X, added], ignore_index=True)
    else:
        rows = np.vstack([X, np.asarray(row).reshape(1, -1)])
    if y is None:
        return rows, None
    targets = np.asarray(y)
    return rows, np.concatenate([targets, np.asarray([label], dtype=targets.dtype)])


def candidates(estimator: Any, X: Any, y: Any, relation: str) -> Iterator[tuple[str, Any]]:
    """Canaries worth a try: far out in the directions that the data know least.

    Parameters
    ----------
    estimator : estimator
        The estimator under audit.
    X, y : array-like
        The data that do not change.
    relation : {"add_or_remove", "replace"}
        Neighbouring relation.

    Yields
    ------
    label : str
    neighbor : int or tuple
        As in `neighbors_for`.
    """
    targets = None if y is None else np.asarray(y)
    extremes: list[Any] = [None]
    if targets is not None:
        if is_classifier(estimator):
            extremes = list(np.unique(targets)[[0, -1]])
        else:
            low, high = targets.min(axis=0), targets.max(axis=0)
            beyond = _REACH * np.maximum(high - low, 1.0)
            extremes = [low - beyond, high + beyond, high]
    for label, row, opposite in _rows(X):
        for number, extreme in enumerate(extremes):
            if relation == "replace":
                yield (
                    f"{label}, target {number}, against its opposite",
                    ((opposite, extremes[-1 - number]), (row, extreme)),
                )
                if len(extremes) > 1:
                    other = extremes[-1 - number]
                    yield f"{label}, target {number} replaced", ((row, other), (row, extreme))
            else:
                yield f"{label}, target {number}", (row, extreme)


def _rows(X: Any) -> Iterator[tuple[str, Any, Any]]:
    """Rows to try, each with one that is far from it."""
    if hasattr(X, "iloc"):
        middle = len(X) // 2
        yield "first row", list(X.iloc[0]), list(X.iloc[middle])
        yield "last row", list(X.iloc[-1]), list(X.iloc[middle])
        return
    values = np.asarray(X, dtype=np.float64)
    n_features = values.shape[1]
    longest = float(np.sqrt(np.max(np.sum(np.square(values), axis=1), initial=0.0))) or 1.0
    _, _, directions = np.linalg.svd(values - values.mean(axis=0), full_matrices=True)
    far = _REACH * longest * directions[-1]
    yield "least known direction", far, -far
    diagonal = np.full(n_features, _REACH * longest / np.sqrt(n_features))
    yield "diagonal", diagonal, -diagonal
    yield "zero", np.zeros(n_features), far
