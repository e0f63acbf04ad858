"""The file of a `PrivacyLedger`: crashes, forks, damage, and settings that do not match."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from skdp import DPRidge, PrivacyCost, PrivacyLedger
from skdp.exceptions import PrivacyBudgetError, PrivacyLedgerError, PrivacyWarning
from skdp.ledger._caps import LIMIT, UNITS
from skdp.ledger._schema import VERSION

TOTAL = {"dataset": "people", "epsilon": 1.0, "delta": 1e-5}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.ledger"


@pytest.fixture
def ledger(path):
    with PrivacyLedger(path, **TOTAL) as made:
        yield made


@cache
def equal_share(total, shares):
    return total.split([1.0] * shares)[0]


def charge(ledger, shares=100):
    """One charge of an equal share of the total; its number, or None when refused."""
    cost = equal_share(ledger.total, shares)
    entry = {"estimator": "X", "parameters": {}, "assumptions": []}
    entry |= {"mu": cost.mu, "epsilon0": 0.0, "delta0": 0.0}
    try:
        return ledger._cashier.grant(entry, cost)
    except PrivacyBudgetError:
        return None


def total_charged(path):
    """Sum of the stored units, with SQLite alone; checks that the running sums agree."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT mu, spent_mu FROM charges ORDER BY number").fetchall()
    assert sum(mu for mu, _ in rows) == (rows[-1][1] if rows else 0)
    return sum(mu for mu, _ in rows)


def raw(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


# ---- opening again ----


def test_a_ledger_is_kept(path, ledger):
    charge(ledger)
    left = ledger.remaining()
    ledger.close()
    for settings in (TOTAL, {}, {"epsilon": 1.0}, {"dataset": "people"}, {"delta0": 0.0}):
        with PrivacyLedger(path, **settings) as again:
            assert again.remaining() == left
            assert again.dataset == "people"


def test_a_total_given_as_a_cost_is_kept(path):
    cost = PrivacyCost(0.4, "replace", "person", 1e-6, epsilon0=0.1, delta0=1e-8)
    for _ in range(2):
        with PrivacyLedger(path, dataset="d", epsilon=cost) as ledger:
            assert ledger.total == cost
    with pytest.raises(ValueError, match="was made with epsilon="):
        PrivacyLedger(path, epsilon=PrivacyCost(0.5, "replace", "person", 1e-6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 2.0}, "made with epsilon=1.0, got 2.0"),
        ({"delta": 1e-6}, "made with delta=1e-05, got 1e-06"),
        ({"epsilon0": 0.1}, "made with epsilon0=0.0, got 0.1"),
        ({"delta0": 1e-7}, "made with delta0=0.0, got 1e-07"),
        ({"neighboring": "replace"}, "made with neighboring='add_or_remove', got 'replace'"),
        ({"unit": "person"}, "made with unit='record', got 'person'"),
        ({"dataset": "cars"}, "that of the data set 'people', not of 'cars'"),
    ],
)
def test_other_settings_are_refused(path, ledger, changes, message):
    with pytest.raises(ValueError, match=message):
        PrivacyLedger(path, **{**TOTAL, **changes})


# ---- files that cannot be used ----


def refuses(path, message):
    with pytest.raises(PrivacyLedgerError, match=message):
        PrivacyLedger(path, **TOTAL)


def test_files_of_others_are_left_alone(path):
    raw(path, "CREATE TABLE mine (a)", "INSERT INTO mine VALUES (1)")
    before = path.read_bytes()
    refuses(path, "not a ledger of skdp")
    assert path.read_bytes() == before
    path.write_text("name,age\nAlice,30\n" * 500)
    refuses(path, "no SQLite file, or is corrupted")
    # A file cut to nothing is not a place for a new ledger.
    path.write_bytes(b"")
    refuses(path, "not a ledger of skdp")


def test_a_folder_is_no_ledger(tmp_path):
    refuses(tmp_path, "cannot be read or written")
    with pytest.raises(PrivacyLedgerError, match="cannot be created|cannot be used"):
        PrivacyLedger(tmp_path / "missing" / "x.ledger", **TOTAL)
    assert list(tmp_path.iterdir()) == []


def test_a_later_format_is_refused(path, ledger):
    ledger.close()
    raw(path, f"PRAGMA user_version = {VERSION + 1}")
    refuses(path, f"format {VERSION + 1} of a later version")


@pytest.mark.parametrize("place", [0, 30, "half", "schema", "charges"])
def test_damaged_files_are_refused(path, ledger, place):
    for _ in range(30):
        charge(ledger)
    ledger.close()
    content = bytearray(path.read_bytes())
    if place == "half":
        content = content[: len(content) // 2 // 4096 * 4096]
    else:
        start = {
            "schema": content.index(b"CREATE T"),
            "charges": content.rindex(b'{"estimator"'),
        }.get(place, place)
        content[start : start + 100] = os.urandom(100)
    path.write_bytes(content)
    refuses(path, "corrupted|not a ledger|cannot be used")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET mu = 0, spent_mu = 0",
        "UPDATE charges SET entry = '{}' WHERE number = 2",
        "DELETE FROM charges WHERE number = 3",
        "DELETE FROM charges WHERE number = 1",
        "UPDATE ledger SET dataset = 'cars'",
        "UPDATE ledger SET caps = replace(caps, '\"epsilon\": 1.0', '\"epsilon\": 9.0')",
    ],
)
def test_changed_lines_are_found(path, ledger, statement):
    for _ in range(3):
        charge(ledger)
    ledger.close()
    table = statement.split()[1 if statement.startswith("UPDATE") else 2]
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw(path, statement)
    raw(path, f"DROP TRIGGER {table}_no_update", f"DROP TRIGGER {table}_no_delete", statement)
    if "number = 3" in statement:  # the end of a chain can be cut off; whoever has seen it knows
        with pytest.raises(PrivacyLedgerError, match="charges have disappeared"):
            charge(ledger)
    else:
        refuses(path, "does not follow|does not match")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO charges SELECT number, time, '{}', 0, 0, 0, 0, 0, 0, digest "
        "FROM charges WHERE number = 2",
        "INSERT INTO charges SELECT 9, time, entry, 0, 0, 0, 0, 0, 0, digest FROM charges",
        f"INSERT INTO charges SELECT 4, time, entry, {LIMIT.mu}, 0, 0, spent_mu + {LIMIT.mu}, 0, 0,"
        " digest FROM charges WHERE number = 3",
        "INSERT OR REPLACE INTO ledger SELECT id, 'cars', caps, time, digest FROM ledger",
        "INSERT OR REPLACE INTO events SELECT 1, 3, '', 'released' FROM ledger",
        "DELETE FROM events",
    ],
)
def test_the_tables_themselves_refuse_what_is_wrong(path, ledger, statement):
    for _ in range(3):
        ledger._cashier.note(charge(ledger), "failed")
    before = ledger.to_json()
    with pytest.raises(sqlite3.IntegrityError):
        raw(path, statement)
    assert ledger.to_json() == before


def test_a_full_disk_refuses_fits(path, ledger):
    number = charge(ledger)
    with ledger._store._connection.transaction() as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
    ledger._store._connection._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(PrivacyLedgerError, match="the disk is full"):
        for _ in range(200):
            number = charge(ledger, shares=1000)
    with pytest.raises(PrivacyLedgerError, match="the disk is full"):
        ledger.fit(DPRidge(epsilon=0.01, y_bounds=(0, 1)), [[0.0]], [0.0])
    with pytest.warns(PrivacyWarning, match=f"charge {number} stays charged"):
        for _ in range(200):
            ledger._cashier.note(number, "released")
    ledger.close()
    with PrivacyLedger(path) as again:
        assert len(again.history()) == number
        assert charge(again) == number + 1


def in_child(function, *args):
    """Run in a forked process; its result, or the exception it ended with."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def call():
        try:
            sender.send(function(*args))
        except BaseException as error:
            sender.send(error)

    child = context.Process(target=call)
    child.start()
    result = receiver.recv()
    child.join()
    return result


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def _without_rights(action):
    if os.geteuid() == 0:
        os.seteuid(65534)
    return action()


@forks
@pytest.mark.parametrize("readonly", ["file", "folder"])
def test_read_only_places_refuse_fits(readonly):
    # Not below tmp_path, which other users cannot enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "people.ledger"
        with PrivacyLedger(path, **TOTAL) as ledger:
            charge(ledger)
        path.chmod(0o444 if readonly == "file" else 0o666)
        folder.chmod(0o777 if readonly == "file" else 0o555)

        def attempt():
            with PrivacyLedger(path) as opened:
                charge(opened)

        def create():
            PrivacyLedger(folder / "new", **TOTAL)

        error = in_child(_without_rights, attempt)
        assert isinstance(error, PrivacyLedgerError)
        assert "read-only" in str(error) or "cannot be read or written" in str(error)
        created = in_child(_without_rights, create)
        folder.chmod(0o700)
        assert (created is None) == (readonly == "file")
        assert created is None or isinstance(created, PrivacyLedgerError)
        with PrivacyLedger(path) as again:
            assert len(again.history()) == 1


def test_a_file_that_was_removed_or_replaced_is_noticed(path, ledger, tmp_path):
    charge(ledger)
    ledger.close()
    shutil.copy(path, tmp_path / "old")
    charge(ledger)
    ledger.close()
    ledger.history()
    os.replace(tmp_path / "old", path)
    with pytest.raises(PrivacyLedgerError, match="replaced by another file"):
        charge(ledger)
    ledger.close()
    with pytest.raises(PrivacyLedgerError, match="charges have disappeared"):
        charge(ledger)
    path.unlink()
    with pytest.raises(PrivacyLedgerError, match="does not exist any more"):
        charge(ledger)


@pytest.mark.parametrize("before", [0, 2])
def test_another_ledger_in_its_place_is_not_charged(path, ledger, tmp_path, before):
    for _ in range(before):
        charge(ledger)
    ledger.close()
    with PrivacyLedger(tmp_path / "b", **TOTAL | {"epsilon": 0.01}) as other:
        for _ in range(5):
            charge(other)
    os.replace(tmp_path / "b", path)
    # Units of the caps that were read when it was opened would be too few here.
    with pytest.raises(PrivacyLedgerError, match="charges have disappeared"):
        charge(ledger)
    with pytest.raises(PrivacyLedgerError, match="charges have disappeared"):
        ledger._store.use(1, "0", 1)


def test_a_second_name_is_refused_since_it_has_a_journal_of_its_own(path, ledger, tmp_path):
    charge(ledger)
    os.link(path, tmp_path / "other.ledger")
    for name in (path, tmp_path / "other.ledger"):
        with pytest.raises(PrivacyLedgerError, match="another name"):
            PrivacyLedger(name)
    with pytest.raises(PrivacyLedgerError, match="another name"):
        charge(ledger)
    os.unlink(tmp_path / "other.ledger")
    assert charge(ledger) == 2
    os.link(path, tmp_path / f".{path.name}.0123")  # as a maker leaves it that was killed
    (tmp_path / "there").symlink_to(path)
    with PrivacyLedger(tmp_path / "there") as other:
        assert charge(other) == 3
    assert charge(ledger) == 4


def test_a_file_that_is_held_is_waited_for_and_then_refused(path, ledger):
    ledger.close()
    with (
        PrivacyLedger(path, timeout=0.2) as waiting,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(PrivacyLedgerError, match="longer than the timeout"):
            charge(waiting)
        other.execute("ROLLBACK")
        assert charge(waiting) == 1


# ---- processes ----


@forks
def test_a_ledger_survives_forks(path, ledger):
    charge(ledger)
    assert in_child(charge, ledger) == 2
    assert charge(ledger) == 3
    assert in_child(lambda: (charge(ledger), in_child(charge, ledger), charge(ledger))) == (4, 5, 6)
    assert len(ledger.history()) == 6


def _make_and_charge(path, start):
    start.wait()
    with PrivacyLedger(path, **TOTAL) as ledger:
        return charge(ledger)


@forks
def test_one_ledger_is_made_by_many_at_once(path):
    context = multiprocessing.get_context("fork")
    start = context.Event()
    children = [context.Process(target=_make_and_charge, args=(path, start)) for _ in range(6)]
    for child in children:
        child.start()
    start.set()
    for child in children:
        child.join()
        assert child.exitcode == 0
    with PrivacyLedger(path) as ledger:
        assert len(ledger.history()) == 6
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def _charge_many(path, log, shares, durable):
    """Charge, and write down each grant once it was given."""
    with open(log, "ab", buffering=0) as granted:
        ledger = PrivacyLedger(path, durable=durable)
        for _ in range(200):
            if (number := charge(ledger, shares)) is not None:
                granted.write(f"{number}\n".encode())


def storm(path, *, shares, durable):
    """Eight processes charge; some are killed at random moments and replaced.

    Returns the numbers of the charges that were granted, and how many processes were killed.
    """
    context = multiprocessing.get_context("fork")
    chance = random.Random(shares)
    logs = []

    def start():
        logs.append(path.with_name(f"granted-{len(logs)}"))
        child = context.Process(target=_charge_many, args=(path, logs[-1], shares, durable))
        child.start()
        return child

    children = [start() for _ in range(8)]
    killed = 0
    for _ in range(40):
        time.sleep(chance.random() * 0.01)
        victim = chance.randrange(8)
        children[victim].kill()
        children[victim].join()
        killed += children[victim].exitcode == -signal.SIGKILL
        children[victim] = start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    numbers = [int(line) for log in logs if log.exists() for line in log.read_text().split()]
    return numbers, killed


@pytest.mark.slow
@forks
@pytest.mark.parametrize(("shares", "durable"), [(20_000, False), (700, True)])
def test_killed_processes_lose_and_double_nothing(path, shares, durable):
    # Fails if a charge is not one transaction, if the sums are kept outside of it, or if writers
    # do not wait for each other.
    PrivacyLedger(path, **TOTAL).close()
    granted, killed = storm(path, shares=shares, durable=durable)
    assert killed >= 10
    with PrivacyLedger(path) as ledger:
        numbers = [entry.number for entry in ledger.history()]
        one = ledger._store.caps.amount(equal_share(ledger.total, shares)).mu
    # A process may be killed after its charge was granted and before it noted that.
    assert len(granted) == len(set(granted)) and set(granted) <= set(numbers)
    assert len(numbers) - len(granted) <= killed
    assert total_charged(path) == one * len(numbers) <= LIMIT.mu
    if shares == 700:
        assert len(numbers) == 700 and total_charged(path) > UNITS - 2**20
    else:
        assert len(numbers) >= 8 * 200


@pytest.mark.slow
def test_charges_are_as_fast_as_the_disk(path):
    # A durable charge syncs the disk once. Fails if a charge reads the history or syncs more often.
    def rate(action, count=200):
        start = time.perf_counter()
        for _ in range(count):
            action()
        return count / (time.perf_counter() - start)

    def append():
        file.write(b"x" * 300)
        os.fsync(file.fileno())

    with (
        open(path.with_name("lines"), "ab", buffering=0) as file,
        PrivacyLedger(path, **TOTAL) as durable,
        PrivacyLedger(path, durable=False) as quick,
    ):
        # The disk of a shared machine is slower at times: the best of a few turns.
        turns = [
            (
                rate(append),
                rate(lambda: charge(durable, 10_000)),
                rate(lambda: charge(quick, 10_000)),
            )
            for _ in range(4)
        ]
    assert max(ours / plain for plain, ours, _ in turns) > 0.25
    assert max(fast for *_, fast in turns) > 500


def _reserve_and_die(path):
    ledger = PrivacyLedger(path)
    with ledger.charge(DPRidge(epsilon=0.5, y_bounds=(0, 1))):
        os.kill(os.getpid(), signal.SIGKILL)


@forks
def test_a_process_killed_in_its_fit_stays_charged(path, ledger):
    ledger.close()
    child = multiprocessing.get_context("fork").Process(target=_reserve_and_die, args=(path,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    (entry,) = ledger.history()
    assert entry.state == "reserved" and entry.cost.epsilon() == pytest.approx(0.5)
    assert json.loads(ledger.to_json())["charges"][0]["state"] == "reserved"
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(DPRidge(epsilon=0.95, y_bounds=(0, 1)), [[0.0]], [0.0])
