"""Levels of categorical columns, read from any container in one canonical form.

Whether two values are the same level, and how a level is written, depends on the values alone: not
on the type of the column, which one missing value can change, nor on which of them comes first.
Whole floats are integers, and integers that a float cannot hold are the float next to them; None,
NaN and the like are one level, "missing"; True and 1 are two.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skdp._level_sums import LevelCodes
from skdp._validation import without_data
from skdp.preprocessing._names import by_name

__all__ = [
    "Key",
    "array_of",
    "frame_columns",
    "given_levels",
    "is_auto",
    "is_missing",
    "keys_of",
    "levels_of",
    "places",
    "raw_columns",
    "read_columns",
    "values_of",
]

# The kind of a level, and the level: sorts bools, numbers, texts, bytes, missing.
Key = tuple[int, Any]
_BOOL, _NUMBER, _TEXT, _BYTES, _MISSING = range(5)
_MISSING_KEY: Key = (_MISSING, 0)
# Integers up to the first are floats; from the second on they are none, rounded or not.
_LARGEST_EXACT, _LARGEST_FLOAT = 1 << 53, 1 << 1023
# Integers of this range are counted.
_NARROW = 1 << 16
_MISSING_TYPES = ("NAType", "NaTType")


def _has_key(kind: type) -> bool:
    """Whether values of a type can be levels."""
    return (
        issubclass(kind, str | bytes | bool | np.bool_ | Integral | Real | np.number | type(None))
        and not issubclass(kind, np.complexfloating)
    ) or kind.__name__ in _MISSING_TYPES


def _key(value: Any) -> Key:
    """The canonical form of a value."""
    if isinstance(value, str):
        return _TEXT, str.__str__(value)
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return _MISSING_KEY
    if isinstance(value, bytes):
        return _BYTES, bytes(value)
    if isinstance(value, bool | np.bool_):
        return _BOOL, bool(value)
    if isinstance(value, Integral):
        whole = int(value)
        # One missing value turns a column of integers into floats, and all large ones with it.
        is_large = _LARGEST_EXACT < abs(whole) < _LARGEST_FLOAT
        return _NUMBER, int(float(whole)) if is_large else whole
    number = float(value)
    if number != number:
        return _MISSING_KEY
    return _NUMBER, int(number) if number.is_integer() else number


def is_missing(key: Any) -> bool:
    """Whether a level stands for missing values."""
    return bool(key == _MISSING_KEY)


def _refuse_objects() -> None:
    raise TypeError(
        "categories must be texts, numbers, bools or missing: X holds objects of another kind; "
        "convert such columns first"
    )


def _coded(values: Sequence[Any], codes: NDArray[np.integer]) -> LevelCodes:
    """Levels in their order, from different values and the places among them."""
    keys = [_key(value) for value in values]
    levels = sorted(set(keys))
    place = {key: i for i, key in enumerate(levels)}
    order = np.array([place[key] for key in keys], dtype=np.int64)
    # A place of -1 is a missing value that was not listed.
    missing = np.asarray(codes) < 0
    if missing.any():
        if _MISSING_KEY not in place:
            levels.append(_MISSING_KEY)  # the last one in the order
            place[_MISSING_KEY] = len(levels) - 1
        order = np.append(order, place[_MISSING_KEY])
    return LevelCodes(tuple(levels), order[codes] if len(order) else np.zeros(0, np.int64))


def _of_objects(values: Sequence[Any]) -> LevelCodes:
    kinds = list(map(type, values))
    if not all(map(_has_key, set(kinds))):
        _refuse_objects()
    # Equal values of two types stay apart here, or the first one to come would decide.
    index: dict[tuple[type, Any], int] = {}
    codes = [index.setdefault(pair, len(index)) for pair in zip(kinds, values, strict=True)]
    return _coded([value for _, value in index], np.array(codes, dtype=np.int64))


def _of_array(values: NDArray[Any]) -> LevelCodes:
    kind = values.dtype.kind
    if kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _NARROW:  # counting is faster than sorting
            wide = values if kind == "u" else values.astype(np.int64)
            codes = (wide - wide.min()).astype(np.int64)
            occurs = np.bincount(codes) > 0
            found = [low + place for place in np.flatnonzero(occurs).tolist()]
            return _coded(found, (np.cumsum(occurs) - 1)[codes])
    if kind in "biufUS":
        with np.errstate(all="ignore"):
            uniques, codes = np.unique(values, return_inverse=True)
        return _coded(uniques.tolist(), codes.reshape(-1))
    if kind == "T":  # numpy's strings of any length
        return _of_objects(values.astype(object).tolist())
    if kind != "O":
        _refuse_objects()
    return _of_objects(values.tolist())


def _of_series(series: Any) -> LevelCodes:
    """A column of a frame."""
    if hasattr(series, "to_list") and not hasattr(series, "iloc"):  # polars
        if getattr(series.dtype, "is_nested", lambda: False)():
            _refuse_objects()
        # Integers of 128 bits have no type in numpy.
        wide = str(series.dtype).endswith("128")
        if series.dtype.is_numeric() and not wide and not series.null_count():
            return _of_array(series.to_numpy())
        return _of_objects(series.to_list())
    if isinstance(series.dtype, np.dtype):
        return _of_array(series.to_numpy())
    # Categories of pandas, its strings and nullable numbers: none of them mixes types.
    codes, uniques = series.factorize()
    values = list(uniques)
    if not all(_has_key(type(value)) for value in values):
        _refuse_objects()
    return _coded(values, codes)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def frame_columns(X: Any) -> list[Any]:
    """The columns of a frame, as series."""
    n_rows, n_columns = X.shape
    for axis, (size, word) in enumerate(((n_rows, "sample"), (n_columns, "feature"))):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {word}(s) (shape=({n_rows}, {n_columns})) while a minimum of "
                f"1 is required{'.' if axis else ' by an encoder.'}"
            )
    pick = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    return [pick((slice(None), j)) for j in range(n_columns)]


def _read_raw(estimator: Any, X: Any, reset: bool) -> list[Any]:
    if _is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return frame_columns(X)
    listed = isinstance(X, list | tuple)
    array = check_array(
        X,
        dtype=object if listed else None,
        ensure_all_finite=False,
        estimator=estimator,
        input_name="X",
    )
    validate_data(estimator, array, reset=reset, skip_check_array=True)
    return [array[:, j] for j in range(array.shape[1])]


def raw_columns(estimator: Any, X: Any, *, reset: bool) -> list[Any]:
    """The columns of X as they are, series or arrays; the rest as in `read_columns`."""
    return without_data(_read_raw, estimator, X, reset)


def levels_of(column: Any) -> LevelCodes:
    """Levels of one of the `raw_columns`."""
    return without_data(_of_array if isinstance(column, np.ndarray) else _of_series, column)


def _read(estimator: Any, X: Any, reset: bool) -> list[LevelCodes]:
    return [
        _of_array(column) if isinstance(column, np.ndarray) else _of_series(column)
        for column in _read_raw(estimator, X, reset)
    ]


def read_columns(estimator: Any, X: Any, *, reset: bool) -> list[LevelCodes]:
    """The columns of X, with `n_features_in_` and feature names set or compared.

    Parameters
    ----------
    estimator : estimator
        Whose attributes they are.
    X : array-like of shape (n_rows, n_columns)
        Array, frame of pandas or polars, or lists, of texts, numbers, bools and missing values.
    reset : bool
        Whether this is a fit.

    Returns
    -------
    columns : list of LevelCodes
        The levels that occur are of the type `Key`.

    Raises
    ------
    TypeError, ValueError
        If X is something else. No message holds a value.
    """
    return without_data(_read, estimator, X, reset)


def keys_of(values: Iterable[Any]) -> list[Key]:
    """Canonical forms of values."""
    listed = list(values)
    if not all(_has_key(type(value)) for value in listed):
        raise TypeError("categories must be texts, numbers, bools or missing")
    return [_key(value) for value in listed]


def values_of(categories: NDArray[Any]) -> list[Any]:
    """Levels as Python's own numbers, texts and so on; nan for missing ones."""
    return [nan if kind == _MISSING else value for kind, value in keys_of(categories)]


def array_of(keys: Sequence[Any]) -> NDArray[Any]:
    """Levels of the type `Key` as an array: of numbers or bools where all are, else of objects."""
    kinds = {kind for kind, _ in keys}
    values = [nan if kind == _MISSING else value for kind, value in keys]
    if kinds == {_BOOL}:
        return np.array(values, dtype=bool)
    if _NUMBER in kinds and kinds <= {_NUMBER, _MISSING}:
        array = np.array(values)
        # Large integers beside floats stay what they are.
        if array.dtype.kind in "if" and list(map(_key, array.tolist())) == list(keys):
            return array
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def places(column: LevelCodes, keys: Sequence[Key]) -> NDArray[np.int64]:
    """Place of every record's level among `keys`, -1 for those that are not.

    A bool finds the number 0 or 1, and the other way round, where there is no level of its own.
    """
    place = {key: i for i, key in reversed(list(enumerate(keys)))}

    def find(key: Any) -> int:
        if key not in place and key[1] in (0, 1):
            if key[0] == _BOOL:
                return place.get((_NUMBER, int(key[1])), -1)
            if key[0] == _NUMBER:
                return place.get((_BOOL, bool(key[1])), -1)
        return place.get(key, -1)

    found = np.array([find(key) for key in column.levels], dtype=np.int64)
    return found[column.codes]


def is_auto(given: Any) -> bool:
    """Whether the categories of a column are to be found."""
    return given is None or (isinstance(given, str) and given == "auto")


def given_levels(
    categories: Any, n_features: int, names: Sequence[str] | None
) -> list[list[Key] | None]:
    """Public levels of every column, None for those that are to be found.

    Parameters
    ----------
    categories : "auto", sequence or mapping
        Categories by column, in their order or by name; each array-like or "auto".
    n_features : int
        Number of columns.
    names : sequence of str or None
        Their names, when they have any.

    Raises
    ------
    ValueError
        If a column is missing or unknown, or has no category or repeats one.
    """
    if is_auto(categories):
        return [None] * n_features
    if isinstance(categories, Mapping):
        default = '"auto" for those to be found'
        categories = by_name(categories, names, "categories", default)
    if len(categories) != n_features:
        raise ValueError(
            f"Shape mismatch: categories must have one entry for each of the {n_features} columns "
            f"of X, got {len(categories)}"
        )
    found: list[list[Key] | None] = []
    for column, given in enumerate(categories):
        if is_auto(given):
            found.append(None)
            continue
        if isinstance(given, str | bytes) or not np.iterable(given):
            raise ValueError(f'the categories of column {column} must be a list or "auto"')
        keys = keys_of(given)
        if not keys or len(set(keys)) != len(keys):
            raise ValueError(f"the categories of column {column} are empty or repeat a category")
        found.append(keys)
    return found
