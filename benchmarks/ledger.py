"""Charges per second of a `PrivacyLedger`, beside appending a line to a file and syncing it.

A durable charge waits for the disk once, so the peer is the least that any durable record costs:
the same line appended to a plain file with ``os.fsync``. The second peer is one inserted row of
plain SQLite, in write-ahead mode with full syncing, without checks, sums or digests. All are
measured in turns, in the folder given by --folder: the disk matters, not the processor.
"""

import argparse
import json
import multiprocessing
import os
import sqlite3
import tempfile
from pathlib import Path
from time import perf_counter

from skdp import PrivacyLedger

LINE = json.dumps({"estimator": "DPRidge", "parameters": {"alpha": 2.0, "epsilon": 0.1}})


def append(folder, count):
    """Lines appended and synced, per second."""
    with open(folder / "lines", "ab", buffering=0) as file:
        start = perf_counter()
        for _ in range(count):
            file.write(LINE.encode())
            os.fsync(file.fileno())
        return count / (perf_counter() - start)


def insert(folder, count):
    """Rows committed by SQLite, per second."""
    connection = sqlite3.connect(folder / "rows", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS charges (entry TEXT)")
    start = perf_counter()
    for _ in range(count):
        connection.execute("INSERT INTO charges VALUES (?)", (LINE,))
    rate = count / (perf_counter() - start)
    connection.close()
    return rate


def _charges(path, count, durable):
    with PrivacyLedger(path, durable=durable) as ledger:
        cost = ledger.total.split([1.0, 10_000_000.0])[0]
        entry = {**json.loads(LINE), "mu": cost.mu, "epsilon0": 0, "delta0": 0, "assumptions": []}
        start = perf_counter()
        for _ in range(count):
            ledger._cashier.grant(entry, cost)
        return start, perf_counter()


def charge(folder, count, durable=True, processes=1):
    """Charges per second of all processes together, from the first start to the last end."""
    path = folder / f"ledger-{durable}-{processes}"
    PrivacyLedger(path, dataset="benchmark", epsilon=1.0, delta=1e-5).close()
    if processes == 1:
        start, end = _charges(path, count, durable)
        return count / (end - start)
    each = count // processes
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        times = pool.starmap(_charges, [(path, each, durable)] * processes)
    return each * processes / (max(end for _, end in times) - min(start for start, _ in times))


def main():
    """Print the best rate of each, and its ratio to the first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=None, help="where to write")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    peers = {
        "append and fsync": append,
        "SQLite insert": insert,
        "ledger": charge,
        "ledger, 8 processes": lambda f, n: charge(f, n, processes=8),
        "ledger, durable=False": lambda f, n: charge(f, n, durable=False),
        "ledger, durable=False, 8 processes": lambda f, n: charge(f, n, durable=False, processes=8),
    }
    rates = {name: [] for name in peers}
    for _ in range(options.repeats):
        for name, function in peers.items():
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                rates[name].append(function(Path(folder), options.count))
    first = max(rates["append and fsync"])
    print(f"{'':36}{'per second':>12}{'ratio':>8}")
    for name, found in rates.items():
        print(f"{name:36}{max(found):12.0f}{max(found) / first:8.2f}")


if __name__ == "__main__":
    main()
