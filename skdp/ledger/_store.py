"""What a ledger file holds: the caps, charges in their order, and what became of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from skdp.exceptions import PrivacyLedgerError
from skdp.ledger._caps import NOTHING, Amount, Caps, plus
from skdp.ledger._connection import LedgerConnection, faults
from skdp.ledger._schema import APPLICATION, SCRIPT, VERSION

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["Line", "Store", "create"]

_COLUMNS = ", ".join((*Amount._fields, *(f"spent_{name}" for name in Amount._fields)))
_MARKS = ", ".join("?" * 10)


class Line(NamedTuple):
    """One charge as it is stored, with its last state."""

    number: int
    time: str
    entry: dict[str, Any]
    amount: Amount
    state: str


def create(path: Path, dataset: str, caps: Caps) -> None:
    """Write a new ledger file, complete from the first moment it exists.

    Raises
    ------
    FileExistsError
        If there is a file already.
    PrivacyLedgerError
        If the file cannot be written.
    """
    import sqlite3

    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with faults(path):
            connection = sqlite3.connect(draft, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")  # one sync to the disk per charge
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(SCRIPT)
                genesis = (dataset, json.dumps(asdict(caps)), _now())
                connection.execute(
                    "INSERT INTO ledger VALUES (1, ?, ?, ?, ?)", (*genesis, _digest("", *genesis))
                )
                connection.execute("COMMIT")
            finally:
                connection.close()
        # Unlike a renaming, a link never takes the place of a file that another process made.
        os.link(draft, path)
        _sync_folder(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        raise PrivacyLedgerError(
            f"the ledger {str(path)!r} cannot be created: {error.strerror or error}"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


class Store:
    """The contents of one ledger file.

    Parameters
    ----------
    path : Path
        An existing file.
    timeout : float
        Seconds to wait for other processes.
    durable : bool
        Whether charges wait until they are on the disk.

    Raises
    ------
    PrivacyLedgerError
        If it is no ledger, was made by a later version, or has been tampered with.
    """

    def __init__(self, path: Path, timeout: float, durable: bool) -> None:
        self._durable = durable
        self._connection = LedgerConnection(path, timeout)
        self._seen = (0, "")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        self._connection.close()

    def _open(self) -> None:
        with self._connection.transaction() as connection:
            self._check_kind(connection)
            row = connection.execute("SELECT dataset, caps, time, digest FROM ledger").fetchone()
            if row is None or row[3] != _digest("", *row[:3]):
                raise self._damaged("its first line does not match its digest")
            self.dataset, self.caps, self.created = row[0], Caps(**json.loads(row[1])), row[2]
            self._seen = self._verified(connection, row[3])

    def _check_kind(self, connection: Connection) -> None:
        ((application,),) = connection.execute("PRAGMA application_id")
        if application != APPLICATION:
            raise PrivacyLedgerError(
                f"{str(self._connection.path)!r} is not a ledger of skdp; it is left as it is"
            )
        ((version,),) = connection.execute("PRAGMA user_version")
        if version > VERSION:
            raise PrivacyLedgerError(
                f"the ledger {str(self._connection.path)!r} has the format {version} of a later "
                f"version of skdp, and this one knows formats up to {VERSION}"
            )
        ((health,),) = connection.execute("PRAGMA quick_check(1)")
        if health != "ok":
            raise self._damaged("its pages are damaged")

    def _verified(self, connection: Connection, digest: str) -> tuple[int, str]:
        """The last charge, after all charges were checked against their digests and sums."""
        number, spent = 0, NOTHING
        for row in connection.execute(
            f"SELECT number, time, entry, {_COLUMNS}, digest FROM charges ORDER BY number"
        ):
            amount = Amount(*row[3:6])
            number += 1
            spent = plus(spent, amount)
            digest = _digest(digest, *row[:9])
            if (number, spent, digest) != (row[0], Amount(*row[6:9]), row[9]):
                raise self._damaged(f"line {number} does not follow from those before it")
        return number, digest

    def _damaged(self, how: str) -> PrivacyLedgerError:
        return PrivacyLedgerError(
            f"the ledger {str(self._connection.path)!r} is corrupted: {how}; restore it from a copy"
        )

    def _last(self, connection: Connection) -> tuple[int, Amount, str]:
        """Number, sums and digest of the last charge."""
        row = connection.execute(
            "SELECT number, spent_mu, spent_epsilon0, spent_delta0, digest FROM charges "
            "ORDER BY number DESC LIMIT 1"
        ).fetchone()
        if row is None:
            ((digest,),) = connection.execute("SELECT digest FROM ledger")
            number, spent = 0, NOTHING
        else:
            number, spent, digest = row[0], Amount(*row[1:4]), row[4]
        self._check_continues(connection)
        return number, spent, digest

    def _check_continues(self, connection: Connection) -> None:
        """What was there when it was last looked at is still there, and not another ledger."""
        number, digest = self._seen
        row = connection.execute(
            "SELECT digest FROM charges WHERE number = ? UNION ALL "
            "SELECT digest FROM ledger WHERE ? = 0",
            (number, number),
        ).fetchone()
        if row != (digest,):
            raise self._damaged("charges have disappeared since it was opened")

    def append(
        self,
        decide: Callable[[Amount], tuple[dict[str, Any], Amount]],
        state: str | None = None,
    ) -> int:
        """Append a charge.

        Parameters
        ----------
        decide : callable
            Gives what is written down about the charge, for JSON, and its units, from those spent
            so far. It may refuse by an exception.
        state : str, default=None
            What has become of it already.

        Returns
        -------
        number : int
        """
        with self._connection.transaction(write=True, durable=self._durable) as connection:
            number, before, digest = self._last(connection)
            entry, taken = decide(before)
            spent = plus(before, taken)
            row = (number + 1, _now(), json.dumps(entry, allow_nan=False), *taken, *spent)
            digest = _digest(digest, *row)
            connection.execute(f"INSERT INTO charges VALUES ({_MARKS})", (*row, digest))
            if state is not None:
                _append_event(connection, number + 1, state)
        self._seen = max(self._seen, (number + 1, digest))
        return number + 1

    def note(self, number: int, state: str) -> None:
        """Append what became of a charge."""
        with self._connection.transaction(write=True) as connection:
            _append_event(connection, number, state)

    def use(self, number: int, label: str, allowed: int) -> bool:
        """Count one more use of a part of a charge, if fewer than `allowed` were made."""
        state = f"used {label}"
        with self._connection.transaction(write=True, durable=self._durable) as connection:
            self._check_continues(connection)
            ((used,),) = connection.execute(
                "SELECT count(*) FROM events WHERE charge = ? AND state = ?", (number, state)
            )
            if used >= allowed:
                return False
            _append_event(connection, number, state)
            return True

    def spent(self) -> Amount:
        """The sums of all charges."""
        with self._connection.transaction() as connection:
            return self._last(connection)[1]

    def lines(self) -> list[Line]:
        """All charges, in their order."""
        with self._connection.transaction() as connection:
            states = dict(
                connection.execute(
                    "SELECT charge, state FROM events WHERE state NOT LIKE 'used %' ORDER BY id"
                )
            )
            return [
                Line(
                    row[0],
                    row[1],
                    json.loads(row[2]),
                    Amount(*row[3:6]),
                    states.get(row[0], "reserved"),
                )
                for row in connection.execute(
                    "SELECT number, time, entry, mu, epsilon0, delta0 FROM charges ORDER BY number"
                )
            ]


def _append_event(connection: Connection, number: int, state: str) -> None:
    connection.execute(
        "INSERT INTO events SELECT coalesce(max(id), 0) + 1, ?, ?, ? FROM events",
        (number, _now(), state),
    )


def _sync_folder(folder: Path) -> None:
    """Bring the name of a new file to the disk too, where folders can be opened at all."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _digest(before: str, *values: Any) -> str:
    return hashlib.sha256(json.dumps([before, *values]).encode()).hexdigest()
