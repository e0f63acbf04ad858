"""Neighbouring data sets on which a model differs as much as it can."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
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
    n_rows, targets = X.shape[0], None if y is None else np.asarray(y)
    if isinstance(neighbor, int | np.integer):
        if relation == "replace":
            raise ValueError("under neighboring='replace' give two records (x0, y0), (x1, y1)")
        if not -n_rows <= neighbor < n_rows:
            raise ValueError(f"neighbor={neighbor} is not the number of one of the {n_rows} rows")
        kept = np.delete(np.arange(n_rows), neighbor)
        rows = X.iloc[kept] if hasattr(X, "iloc") else X[kept]
        without = (rows, None if targets is None else targets[kept])
        return Neighbors((X, targets), without, n_rows, f"row {int(neighbor)}")
    if not isinstance(neighbor, tuple):
        raise ValueError("neighbor must be None, the number of a row, or a tuple")
    if relation == "replace":
        if len(neighbor) != 2 or not all(isinstance(record, tuple) for record in neighbor):
            raise ValueError("under neighboring='replace' give two records (x0, y0), (x1, y1)")
        first, second, _ = _added(X, targets, [_record(record, y) for record in neighbor])
        return Neighbors(second, first, None, "given records")
    with_record, without = _added(X, targets, [_record(neighbor, y)])
    return Neighbors(with_record, without, n_rows + 1, "given record")


def _record(given: tuple[Any, ...], y: Any) -> tuple[Any, Any]:
    """Row and target of a record; the target may be left out where there are none."""
    if len(given) == 1 and y is None:
        return given[0], None
    if len(given) != 2 or isinstance(given[1], tuple):
        raise ValueError(
            "a record is a tuple (x, y) of a row and its target; two records, each of them such a "
            "tuple, go with neighboring='replace'"
        )
    if (given[1] is None) != (y is None):
        raise ValueError("a record has a target where, and only where, there is a y")
    return given[0], given[1]


def _added(X: Any, targets: Any, records: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The data with each of the records, and without any: of one type, which tells nothing."""
    if hasattr(X, "iloc"):
        import pandas as pd

        rows = [_frame_of(row, X) for row, _ in records]
        tables = [pd.concat([X, row], ignore_index=True) for row in rows]
        tables.append(X.reset_index(drop=True))
    else:
        lists = [np.asarray(row).reshape(1, -1) for row, _ in records]
        dtype = _common_type(X.dtype, lists)
        stack = sparse.vstack if sparse.issparse(X) else np.vstack
        tables = [stack([X.astype(dtype), row.astype(dtype)]) for row in lists]
        tables = [table.tocsr() if sparse.issparse(X) else table for table in tables]
        tables.append(X.astype(dtype))
    if targets is None:
        return [(table, None) for table in tables]
    labels = [np.asarray(label).reshape(1, *targets.shape[1:]) for _, label in records]
    dtype = _common_type(targets.dtype, labels)
    y = targets.astype(dtype)
    columns = [*(np.concatenate([y, label.astype(dtype)]) for label in labels), y]
    return list(zip(tables, columns, strict=True))


def _common_type(dtype: Any, rows: list[Any]) -> Any:
    """A type that cuts off no row; single precision stays so, since that is a path of its own."""
    if dtype.kind == "f" and all(row.dtype.kind in "biuf" for row in rows):
        return dtype
    if dtype.kind in "iu" and all(_fits(row, dtype) for row in rows):
        return dtype
    return np.result_type(dtype, *rows)


def _fits(row: Any, dtype: Any) -> bool:
    if row.dtype.kind not in "iuf":
        return False
    limits = np.iinfo(dtype)
    return bool(np.all((row == np.rint(row)) & (row >= limits.min) & (row <= limits.max)))


def _frame_of(row: Any, X: Any) -> Any:
    """A row as a table like another: by position, or by name where it has names."""
    import pandas as pd

    if isinstance(row, pd.DataFrame):
        row = row.iloc[0]
    values = [row[name] for name in X.columns] if isinstance(row, dict | pd.Series) else list(row)
    return pd.DataFrame([values], columns=X.columns).astype(X.dtypes)


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
    extremes = [None] if y is None else _extreme_targets(estimator, np.asarray(y))
    for label, row, opposite in _rows(X):
        for number, extreme in enumerate(extremes):
            text = label if y is None else f"{label}, target {number}"
            if relation == "replace":
                against = extremes[-1 - number]
                yield f"{text}, against its opposite", ((opposite, against), (row, extreme))
                if len(extremes) > 1:
                    yield f"{text} replaced", ((row, against), (row, extreme))
            else:
                yield text, (row, extreme)
                if y is None:  # a minimum is moved by nothing else
                    yield f"opposite of {text}", (opposite, extreme)


def _extreme_targets(estimator: Any, targets: Any) -> list[Any]:
    declared = estimator.get_params().get("classes") is not None  # by a transformer too
    if is_classifier(estimator) or declared or targets.dtype.kind not in "iuf":
        return list(np.unique(targets)[[0, -1]])
    low, high = (side.astype(np.float64) for side in (targets.min(axis=0), targets.max(axis=0)))
    beyond = _REACH * np.maximum(high - low, 1.0)
    return [low - beyond, high + beyond, high]


def _rows(X: Any) -> Iterator[tuple[str, Any, Any]]:
    """Rows to try, each with one that is far from it."""
    if hasattr(X, "iloc"):
        yield from _rows_of_a_frame(X)
        return
    try:
        values = (X.toarray() if sparse.issparse(X) else X).astype(np.float64)
    except (TypeError, ValueError):  # texts
        yield "first row", X[0], X[len(X) // 2]
        yield "last row", X[-1], X[len(X) // 2]
        return
    for label, row, opposite in _far_rows(values):
        yield label, _like(row, X.dtype), _like(opposite, X.dtype)


def _rows_of_a_frame(X: Any) -> Iterator[tuple[str, Any, Any]]:
    """Far rows in the columns of numbers; in the others, what the data have."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    first, middle, last = (list(X.iloc[i]) for i in (0, len(X) // 2, -1))
    numeric = [i for i, t in enumerate(X.dtypes) if is_numeric_dtype(t) and not is_bool_dtype(t)]
    if len(numeric) < X.shape[1]:
        yield "first row", first, middle
        yield "last row", last, middle
    if not numeric:
        return
    values = X.iloc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    for label, *both in _far_rows(values):
        made = []
        for numbers, others in zip(both, (first, middle), strict=True):
            row = list(others)
            for i, number in zip(numeric, numbers, strict=True):
                dtype = X.dtypes.iloc[i]
                row[i] = _like(number, getattr(dtype, "numpy_dtype", dtype))
            made.append(row)
        yield label, made[0], made[1]


def _like(values: Any, dtype: Any) -> Any:
    """Numbers as near to these as whole numbers of a type can be."""
    if dtype.kind not in "iu":
        return values
    limits = np.iinfo(dtype)
    # As floats: the largest of 64 bits would be rounded to one that is too large.
    inside = np.clip(np.rint(values), limits.min * (1.0 - 2.0**-50), limits.max * (1.0 - 2.0**-50))
    return np.trunc(inside).astype(dtype)


def _far_rows(values: Any) -> Iterator[tuple[str, Any, Any]]:
    values = np.nan_to_num(values)
    n_features = values.shape[1]
    longest = float(np.sqrt(np.max(np.sum(np.square(values), axis=1), initial=0.0))) or 1.0
    middle = values.mean(axis=0) if len(values) else np.zeros(n_features)
    _, _, directions = np.linalg.svd(values - middle, full_matrices=True)
    far = _REACH * longest * directions[-1]
    yield "least known direction", far, -far
    diagonal = np.full(n_features, _REACH * longest / np.sqrt(n_features))
    yield "diagonal", diagonal, -diagonal
    yield "zero", np.zeros(n_features), far
