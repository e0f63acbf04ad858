"""What is public about columns, given by their names."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["by_name"]


def by_name(
    facts: Mapping[Any, Any], names: Sequence[str] | None, what: str, default: str = ""
) -> list[Any]:
    """Facts about the columns of X in their order.

    Parameters
    ----------
    facts : mapping
        By column name.
    names : sequence of str or None
        Names of the columns, when they have any.
    what : str
        What the facts are.
    default : str, default=""
        Which one to give to columns of which nothing is known.

    Raises
    ------
    ValueError
        If a column is missing or unknown.
    """
    if names is None:
        raise ValueError(f"{what} by column name: X has no column names")
    missing = [name for name in names if name not in facts]
    unknown = [name for name in facts if name not in set(names)]
    if missing or unknown:
        advice = f" ({default})" if default else ""
        raise ValueError(
            f"{what} must name the columns of X, all of them{advice} and no others; "
            f"missing: {missing}, unknown: {unknown}"
        )
    return [facts[name] for name in names]
