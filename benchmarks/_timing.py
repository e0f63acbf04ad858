"""Timing in turns, so that all peers see the same machine."""

from time import perf_counter, process_time, sleep
from typing import NamedTuple


class Time(NamedTuple):
    """Seconds of one call: on the wall, and of all threads of the process."""

    wall: float
    cpu: float


def best_times(functions, repeats, *, calls=None, pause=0.0):
    """Shortest times of each function, measured in turns.

    Parameters
    ----------
    functions : dict
        Functions by name.
    repeats : int
        Number of turns.
    calls : dict, default=None
        Calls per measurement by name; 1 where there is none.
    pause : float, default=0.0
        Seconds of rest before each function. Threads of a linear algebra library spin for some
        30 ms after their last work, which would slow a short function of the next peer.

    Returns
    -------
    times : dict of Time
        The shortest wall time and the shortest CPU time by name, each on its own.
    """
    calls = calls or {}
    walls, cpus = ({name: [] for name in functions} for _ in range(2))
    for _ in range(repeats):
        for name, function in functions.items():
            sleep(pause)
            count = calls.get(name, 1)
            cpu, wall = process_time(), perf_counter()
            for _ in range(count):
                function()
            walls[name].append((perf_counter() - wall) / count)
            cpus[name].append((process_time() - cpu) / count)
    return {name: Time(min(walls[name]), min(cpus[name])) for name in functions}
