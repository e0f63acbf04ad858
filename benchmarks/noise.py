"""Exactly rounded Gaussian noise against numpy's float normal and OpenDP's exact sampler.

Run: ``python benchmarks/noise.py [--scale SIGMA] [--repeats N]``. All figures are the shortest of
many runs on one thread, taken in turns; ratios are to peers measured in the same run. OpenDP is
measured if it is installed (``pip install opendp``).
"""

import argparse
import os
from functools import partial

import numpy as np
from _timing import best_times

from skdp import _sampler
from skdp._entropy import _cipher_factory, system_source
from skdp._sampler import rounded_gaussian

MANY = 100_000
PEER = 2_000  # OpenDP takes tens of microseconds for one


class OperatingSystem:
    """What `system_source` is where cryptography is not installed."""

    def words(self, n):
        """Return n words of operating-system entropy."""
        return np.frombuffer(bytearray(os.urandom(8 * n)), np.uint64)


def opendp_sampler(sigma):
    """Return a function that draws PEER values with OpenDP's Gaussian on integers, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), sigma)
    zeros = [0] * PEER
    return lambda: measurement(zeros)


def table_time():
    """Shortest time of building the table."""

    def build():
        _sampler._table.cache_clear()
        _sampler._table()

    return best_times({"table": build}, 5)["table"].wall


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.37 * 2.0**40)
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    sigma = options.scale
    plain, generator = OperatingSystem(), np.random.default_rng()
    sources = {"operating system": plain}
    if _cipher_factory() is not None:
        sources["cryptography"] = system_source()

    functions, calls = {"numpy": lambda: generator.normal(0.0, sigma, MANY)}, {}
    for name, source in sources.items():
        for n in (30, 100, MANY):
            functions[name, n] = partial(rounded_gaussian, sigma, n, source)
            calls[name, n] = 1 if n == MANY else 10
    found = best_times(functions, options.repeats, calls=calls)
    times = {name: time.wall for name, time in found.items()}
    # In runs of its own: one takes as long as a hundred of the others.
    peer = opendp_sampler(sigma)
    peer_ns = best_times({"peer": peer}, 3)["peer"].wall / PEER * 1e9 if peer else None

    numpy_ns = times["numpy"] / MANY * 1e9
    print(f"sigma = 2**{np.log2(sigma):.2f} grid units; table {1e3 * table_time():.1f} ms, once")
    print(f"numpy float normal      {numpy_ns:9.1f} ns a sample")
    if peer_ns:
        print(f"OpenDP Gaussian (i64)   {peer_ns:9.0f} ns a sample")
    for name in sources:
        ns = times[name, MANY] / MANY * 1e9
        line = f"skdp, {name:17s} {ns:9.1f} ns a sample = {ns / numpy_ns:.1f} x numpy"
        if peer_ns:
            line += f", OpenDP takes {peer_ns / ns:.0f} x as long"
        print(line)
        print(
            f"{'':23s} {1e6 * times[name, 100]:9.1f} us a call of 100, "
            f"{1e6 * times[name, 30]:.1f} us of 30"
        )


if __name__ == "__main__":
    main()
