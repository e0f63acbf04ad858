"""The tables of a ledger file, which themselves refuse changes, gaps and overspending."""

from typing import Any

from skdp.ledger._caps import LIMIT, Amount

__all__ = ["APPLICATION", "SCRIPT", "VERSION"]

APPLICATION = 0x736B6470  # "skdp": what sort of SQLite file this is
VERSION = 1

_SUMS = tuple(f"spent_{name}" for name in Amount._fields)


def _refuse(table: str, what: str) -> str:
    return (
        f"CREATE TRIGGER {table}_no_{what.lower()} BEFORE {what} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;"
    )


def _continues() -> str:
    """Condition that a new charge follows the last one and adds up with it."""
    conditions = ["NEW.number = (SELECT coalesce(max(number), 0) + 1 FROM charges)"]
    conditions += [
        f"NEW.spent_{name} = NEW.{name} + coalesce((SELECT spent_{name} FROM charges "
        "ORDER BY number DESC LIMIT 1), 0)"
        for name in Amount._fields
    ]
    return " AND ".join(conditions)


def _columns() -> str:
    lines: list[Any] = [f"{name} INTEGER NOT NULL CHECK ({name} >= 0)" for name in Amount._fields]
    lines += [
        f"{column} INTEGER NOT NULL CHECK ({column} <= {limit})"
        for column, limit in zip(_SUMS, LIMIT, strict=True)
    ]
    return ", ".join(lines)


SCRIPT = f"""
BEGIN EXCLUSIVE;
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY CHECK (id = 1), dataset TEXT NOT NULL, caps TEXT NOT NULL,
  time TEXT NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE charges (
  number INTEGER PRIMARY KEY, time TEXT NOT NULL, entry TEXT NOT NULL,
  {_columns()}, digest TEXT NOT NULL
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY, charge INTEGER NOT NULL REFERENCES charges (number),
  time TEXT NOT NULL, state TEXT NOT NULL
);
CREATE INDEX events_by_charge ON events (charge);
{
    " ".join(
        _refuse(table, what)
        for table in ("ledger", "charges", "events")
        for what in ("UPDATE", "DELETE")
    )
}
CREATE TRIGGER ledger_is_one BEFORE INSERT ON ledger WHEN EXISTS (SELECT 1 FROM ledger)
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END;
CREATE TRIGGER charges_follow BEFORE INSERT ON charges WHEN NOT ({_continues()})
BEGIN SELECT RAISE(ABORT, 'a charge must follow the last one'); END;
CREATE TRIGGER events_follow BEFORE INSERT ON events
WHEN NEW.id != (SELECT coalesce(max(id), 0) + 1 FROM events)
BEGIN SELECT RAISE(ABORT, 'an event must follow the last one'); END;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""
