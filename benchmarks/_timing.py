"""Timing in turns, so that all peers see the same machine."""

from time import perf_counter, process_time
from typing import NamedTuple


class Time(NamedTuple):
    """Seconds of one call: on the wall, and of all threads of the process."""

    wall: float
    cpu: float

    def over(self, other):
        """Ratios to another time, as text."""
        return f"{self.wall / other.wall:.2f} wall, {self.cpu / other.cpu:.2f} CPU"


def best_times(functions, repeats, calls=None):
    """Shortest time of each function, measured in turns.

    Parameters
    ----------
    functions : dict
        Functions by name.
    repeats : int
        Number of turns.
    calls : dict, default=None
        Calls per measurement by name; 1 where there is none.

    Returns
    -------
    times : dict of Time
        The shortest wall time and the shortest CPU time by name.
    """
    calls = calls or {}
    walls = {name: [] for name in functions}
    cpus = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            count = calls.get(name, 1)
            cpu, wall = process_time(), perf_counter()
            for _ in range(count):
                function()
            walls[name].append((perf_counter() - wall) / count)
            cpus[name].append((process_time() - cpu) / count)
    return {name: Time(min(walls[name]), min(cpus[name])) for name in functions}
