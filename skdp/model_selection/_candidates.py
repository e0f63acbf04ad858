"""What a private search tries: settings that no data decide about, and their budgets."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from sklearn.base import clone

from skdp._validation import PRIVACY_CONSTRAINTS

__all__ = ["check_names", "given_to_all", "parameter_columns", "with_settings"]


def with_settings(estimator: Any, settings: Mapping[str, Any]) -> Any:
    """A clone with other parameters; values that are estimators are cloned too."""
    copies = {name: clone(value, safe=False) for name, value in settings.items()}
    return clone(estimator).set_params(**copies)


def check_names(estimator: Any, settings: Mapping[str, Any]) -> None:
    """Refuse settings that would decide what a candidate costs.

    Raises
    ------
    ValueError
        Naming them.
    """
    owners = {"": estimator, **estimator.get_params(deep=True)}
    for name in settings:
        path, _, own = name.rpartition("__")
        if own in PRIVACY_CONSTRAINTS and hasattr(type(owners.get(path)), "planned_cost"):
            raise ValueError(
                f"{name!r} cannot be searched over: all candidates get the same part of the total "
                "budget, which is the epsilon and delta of the search"
            )


def parameter_columns(candidates: list[dict[str, Any]]) -> dict[str, MaskedArray]:
    """Values of the candidates' parameters, masked where one has no such parameter."""
    names = dict.fromkeys(name for settings in candidates for name in settings)
    columns = {}
    for name in names:
        column: MaskedArray = MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
        for place, settings in enumerate(candidates):
            if name in settings:
                column[place] = settings[name]
        columns[f"param_{name}"] = column
    return columns


def given_to_all(estimators: Iterable[Any], parameter: str) -> Any:
    """What private steps were given as a parameter, if all have been given the same; else None."""
    found = [
        value
        for estimator in estimators
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] == parameter and value is not None
    ]
    if found and all(np.array_equal(value, found[0]) for value in found):
        return found[0]
    return None
