"""A connection to a ledger file that survives forks, threads and pickling."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, finalize

from skdp.exceptions import PrivacyLedgerError

if TYPE_CHECKING:
    from sqlite3 import Connection

__all__ = ["LedgerConnection", "faults"]

# All that may be open in this process.
_ALL: WeakSet[LedgerConnection] = WeakSet()
_LISTING = RLock()
_HELD: list[LedgerConnection] = []


def _before_fork() -> None:
    """SQLite must not be carried over a fork, so nothing is open while one happens."""
    _LISTING.acquire()
    _HELD[:] = list(_ALL)
    for holder in _HELD:
        holder.lock.acquire()
        holder.close()


def _after_fork() -> None:
    while _HELD:
        _HELD.pop().lock.release()
    _LISTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into errors that say what is the matter with the file."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        reason = next((say for part, say in _REASONS if part in text), text)
        raise PrivacyLedgerError(f"the ledger {str(path)!r} cannot be used: {reason}") from error


_REASONS = (
    ("readonly", "the file or its folder is read-only, so nothing can be charged"),
    ("unable to open", "the file or its folder cannot be read or written"),
    ("locked", "another process has held it for longer than the timeout"),
    ("is full", "the disk is full, so nothing can be charged"),
    ("not a database", "it is no SQLite file, or is corrupted; restore it from a copy"),
    ("malformed", "it is corrupted; restore it from a copy"),
    ("disk I/O", "the disk reports an error, so nothing can be charged"),
)


class LedgerConnection:
    """One connection per process to one file; calls of threads wait for each other.

    Parameters
    ----------
    path : Path
        The file, which exists.
    timeout : float
        Seconds to wait for other processes.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.timeout = timeout
        self._reset()

    def _reset(self) -> None:
        self.lock = RLock()
        self._connection: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._closing: Any = None
        with _LISTING:
            _ALL.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self.timeout = state["path"], state["timeout"]
        self._reset()

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self.lock:
            if self._closing is not None:
                self._closing()
            self._connection = self._closing = None

    @contextmanager
    def transaction(self, *, write: bool = False, durable: bool = False) -> Iterator[Connection]:
        """Everything inside happens at once or not at all.

        Parameters
        ----------
        write : bool, default=False
            Whether to keep all others from writing meanwhile.
        durable : bool, default=False
            Whether what was written is on the disk at the end, and survives a power cut. Without,
            it survives the end of the process.

        Raises
        ------
        PrivacyLedgerError
            If the file cannot be used.
        """
        with self.lock, faults(self.path):
            connection = self._opened()
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(Exception):
                        connection.execute("ROLLBACK")
                raise

    def _opened(self) -> Connection:
        identity = self._on_disk()
        if self._connection is not None:
            if identity != self._identity:
                raise PrivacyLedgerError(
                    f"the ledger {str(self.path)!r} was replaced by another file while it was open"
                )
            return self._connection
        import sqlite3

        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
        self._connection, self._identity = connection, identity
        self._closing = finalize(self, connection.close)
        return connection

    def _on_disk(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            raise PrivacyLedgerError(
                f"the ledger {str(self.path)!r} does not exist any more, or cannot be reached"
            ) from None
        if S_ISREG(found.st_mode) and found.st_nlink > 1 and _has_other_names(self.path):
            raise PrivacyLedgerError(
                f"the ledger {str(self.path)!r} has another name (a hard link), under which it "
                "could be charged unseen; remove that"
            )
        return found.st_dev, found.st_ino


def _has_other_names(path: Path) -> bool:
    """Whether a file has hard links beside the draft that it was made from."""
    real = path.resolve()
    drafts = [p for p in real.parent.iterdir() if p.name.startswith(f".{real.name}.")]
    own = 0
    for draft in drafts:
        with suppress(FileNotFoundError):  # its maker has just removed it
            own += draft.samefile(real)
    # Looked up again: what was removed meanwhile is not held against it.
    return real.stat().st_nlink > 1 + own
