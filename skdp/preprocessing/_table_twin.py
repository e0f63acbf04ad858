"""The public twin of a table's vectorizer, made of scikit-learn's transformers."""

from dataclasses import dataclass
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp.preprocessing._levels import frame_columns
from skdp.preprocessing.schema import Binary, Categorical, Column, Numeric, declared_kinds

__all__ = ["KindSelector", "table_twin"]


def order_of(kind: Column) -> str:
    """Group of a column; groups follow each other in the output in alphabetical order."""
    if isinstance(kind, Numeric):
        return "a"
    if isinstance(kind, Binary):
        return "b"
    if isinstance(kind, Categorical):
        return "c" if kind.categories is not None else "d"
    return ""


@dataclass(frozen=True)
class KindSelector:
    """Positions of the columns of one group, for a `ColumnTransformer`.

    Parameters
    ----------
    schema : None, kind, sequence or mapping
        The schema.
    group : str
        The group.
    """

    schema: Any
    group: str

    def __call__(self, X: Any) -> list[int]:
        """Positions of the columns in X."""
        if hasattr(X, "columns"):
            names, raw = [str(name) for name in X.columns], frame_columns(X)
        else:
            names, raw = None, [X[:, j] for j in range(X.shape[1])]
        kinds = declared_kinds(self.schema, len(raw), names, raw)
        return [j for j, kind in enumerate(kinds) if order_of(kind) == self.group]

    __hash__ = object.__hash__


def _given(schema: Any, group: str) -> Any:
    """Categories of the columns of a group, "auto" if they are of as many columns as X has."""
    if schema is None or isinstance(schema, Column):
        return "auto"
    kinds = schema.values() if hasattr(schema, "values") else schema
    return [
        list(kind.values if isinstance(kind, Binary) else kind.categories)
        for kind in kinds
        if order_of(kind) == group
    ]


def table_twin(schema: Any, min_frequency: Any) -> Pipeline:
    """Impute and standardise numbers, encode categories, standardise what results.

    Parameters
    ----------
    schema : None, kind, sequence or mapping
        The schema.
    min_frequency : int, float or None
        As of the vectorizer.
    """
    encoders = {
        "binaries": ("b", {"drop": "first", "handle_unknown": "ignore"}),
        "given": ("c", {"handle_unknown": "infrequent_if_exist", "min_frequency": min_frequency}),
        "found": ("d", {"handle_unknown": "infrequent_if_exist", "min_frequency": min_frequency}),
    }
    steps: list[tuple[str, Any, Any]] = [
        (
            "numbers",
            SimpleImputer(add_indicator=True, keep_empty_features=True),
            KindSelector(schema, "a"),
        )
    ]
    for name, (group, options) in encoders.items():
        categories = "auto" if group == "d" else _given(schema, group)
        encoder = OneHotEncoder(categories=categories, sparse_output=False, **options)
        steps.append((name, encoder, KindSelector(schema, group)))
    columns = ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)
    return Pipeline([("columns", columns), ("scaler", StandardScaler())])
