"""The declared schema of a table: what is public about its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skdp.preprocessing._bounds import are_bounds
from skdp.preprocessing._levels import array_of, frame_columns, is_missing, keys_of, levels_of
from skdp.preprocessing._names import by_name

__all__ = [
    "Binary",
    "Categorical",
    "Column",
    "Drop",
    "Numeric",
    "check_kinds",
    "declared_kinds",
    "schema_from_public",
]

_MOST_LEVELS = 1000


@dataclass(frozen=True)
class Numeric:
    """A column of numbers.

    Parameters
    ----------
    bounds : pair of float, default=None
        Public lower and upper bound, in the units of the column. Values beyond are clipped to
        them while learning. None: location and scale are found privately.

    Examples
    --------
    >>> from skdp import Numeric
    >>> Numeric(bounds=(0, 120))
    Numeric(bounds=(0, 120))
    """

    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.bounds is None:
            return
        pair = tuple(self.bounds)
        if len(pair) != 2 or not are_bounds(*pair):
            raise ValueError("bounds of a Numeric must be finite, (low, high) with low < high")
        object.__setattr__(self, "bounds", pair)


@dataclass(frozen=True)
class Categorical:
    """A column of categories.

    Parameters
    ----------
    categories : sequence, default=None
        All categories that are told apart, as public knowledge; others are infrequent. None: they
        are found by a thresholded histogram.

    Examples
    --------
    >>> from skdp import Categorical
    >>> Categorical(["low", "high"])
    Categorical(categories=('low', 'high'))
    """

    categories: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        given: Any = self.categories  # of any type as yet
        if given is None:
            return
        if isinstance(given, str | bytes):
            raise ValueError("categories of a Categorical must be a sequence of them")
        values = tuple(given)
        keys = keys_of(values)
        if not keys or len(set(keys)) != len(keys):
            raise ValueError("categories of a Categorical are empty or repeat a category")
        object.__setattr__(self, "categories", values)


@dataclass(frozen=True)
class Binary:
    """A column with two public values, which becomes one column.

    Parameters
    ----------
    values : pair, default=(False, True)
        The two values; the second one is counted. False and True also stand for 0 and 1. Any
        other value counts as missing.

    Examples
    --------
    >>> from skdp import Binary
    >>> Binary(("no", "yes"))
    Binary(values=('no', 'yes'))
    """

    values: tuple[Any, Any] = (False, True)

    def __post_init__(self) -> None:
        values = tuple(self.values)
        keys = keys_of(values)
        if isinstance(self.values, str) or len(keys) != 2 or keys[0] == keys[1]:
            raise ValueError("values of a Binary must be two different values")
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Drop:
    """A column that is not used.

    Examples
    --------
    >>> from skdp import Drop
    >>> Drop()
    Drop()
    """


Column = Numeric | Categorical | Binary | Drop
KINDS = (Numeric, Categorical, Binary, Drop)


def declared_kinds(
    schema: Any, n_features: int, names: Sequence[str] | None, raw: Sequence[Any] | None
) -> tuple[Column, ...]:
    """The kind of every column.

    Parameters
    ----------
    schema : None, kind, sequence of kinds, or mapping of str to kind
        As given by the user.
    n_features : int
        Number of columns.
    names : sequence of str or None
        Their names, when they have any.
    raw : sequence of columns or None
        Only their declared types are looked at, and only if `schema` is None. None: numbers.

    Raises
    ------
    TypeError, ValueError
        If a column is missing or unknown, or its type has no kind.
    """
    if schema is None:
        if raw is None:
            return (Numeric(),) * n_features
        return tuple(
            _kind_of_type(column, j if names is None else repr(str(names[j])))
            for j, column in enumerate(raw)
        )
    if isinstance(schema, KINDS):
        return (schema,) * n_features
    if isinstance(schema, Mapping):
        schema = by_name(schema, names, "schema", "Drop() for those that are not used")
    if len(schema) != n_features:
        raise ValueError(
            f"schema must have one entry for each of the {n_features} columns of X, got "
            f"{len(schema)}"
        )
    check_kinds(schema)
    return tuple(schema)


def check_kinds(schema: Any) -> None:
    """Raise unless a schema is made of its classes."""
    if schema is None or isinstance(schema, KINDS):
        return
    for kind in schema.values() if isinstance(schema, Mapping) else schema:
        if not isinstance(kind, KINDS):
            raise TypeError(
                "a schema is made of Numeric, Categorical, Binary and Drop objects, got "
                f"{type(kind).__name__}"
            )


def _kind_of_type(column: Any, name: object) -> Column:
    """What the declared type of a column says; no value is looked at."""
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):  # polars
        text = str(dtype)
        if text == "Boolean":
            return Binary()
        if dtype.is_numeric():
            return Numeric()
        if text.startswith(("String", "Categorical", "Enum")):
            return Categorical()
    else:
        kind = getattr(dtype, "kind", "O")
        if kind == "b":
            return Binary()
        if kind in "iuf":
            return Numeric()
        if kind in "OUSTV" and not str(dtype).startswith(("datetime", "timedelta", "period")):
            return Categorical()
    raise TypeError(
        f"column {name} has a type that is neither of numbers, bools nor categories; convert it "
        "first, or declare Drop() for it"
    )


def schema_from_public(sample: Any, *, bounds: bool = False) -> dict[str, Column]:
    """Write a schema from a table that is public: a sample, an older release, a codebook.

    Never pass the private table: what is written into a schema counts as public and is not
    charged.

    Parameters
    ----------
    sample : DataFrame
        Public rows with the columns of the private table.
    bounds : bool, default=False
        Whether the range of the numbers in the sample is taken as their bounds.

    Returns
    -------
    schema : dict of str to kind
        By column name, to be looked over and changed. Columns with two values are `Binary`,
        numbers are `Numeric`, texts and bools `Categorical` with the categories that occur; texts
        with more than 1,000 are `Drop`, as names and keys would be.

    Notes
    -----
    **Privacy.** Nothing is charged: the sample must be public, or about other persons.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import schema_from_public
    >>> codebook = pd.DataFrame({"age": [18, 90, 40], "job": ["a", "b", "c"], "own": [0, 1, 1]})
    >>> for name, kind in schema_from_public(codebook, bounds=True).items():
    ...     print(name, kind)
    age Numeric(bounds=(18.0, 90.0))
    job Categorical(categories=('a', 'b', 'c'))
    own Binary(values=(0, 1))
    """
    if not hasattr(sample, "columns"):
        raise TypeError("sample must be a DataFrame of pandas or polars")
    found: dict[str, Column] = {}
    for name, column in zip(sample.columns, frame_columns(sample), strict=True):
        try:
            kind = _kind_of_type(column, repr(str(name)))
        except TypeError:
            found[name] = Drop()
            continue
        keys: list[Any] = [key for key in levels_of(column).levels if not is_missing(key)]
        values = array_of(keys).tolist()
        if len(keys) == 2:
            found[name] = Binary((values[0], values[1]))
        elif isinstance(kind, Numeric):
            wide = bounds and len(keys) > 1
            found[name] = Numeric((float(values[0]), float(values[-1])) if wide else None)
        elif 0 < len(keys) <= _MOST_LEVELS:
            found[name] = Categorical(tuple(values))
        else:
            found[name] = Drop()
    return found
