"""One exact clipped-gradient pass against reading the matrix and against the naive float form.

Run: ``python benchmarks/pass.py [--rows N] [--columns D]``. Prints ratios to peers measured in
the same run: the blocked sum of the float64 matrix on all cores (a pass cannot be faster than
memory), and the textbook two-pass clipped gradient in float64 with the same threads.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count

import numpy as np
from _timing import best_times
from scipy.special import expit

from skdp._dense_rows import DenseRows
from skdp._threads import workers
from skdp.engine import Grid
from skdp.losses import LogisticLoss


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    n, d, cores = options.rows, options.columns, cpu_count() or 1
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 0.5).astype(float)
    theta = rng.normal(size=d + 1) * 0.3
    parts = [slice(i * n // (8 * cores), (i + 1) * n // (8 * cores)) for i in range(8 * cores)]

    with workers(None) as threads, ThreadPoolExecutor(cores) as pool:
        make = partial(
            DenseRows,
            X,
            feature_norm=np.sqrt(d),
            slack=2.0,
            constant=0.25,
            neighboring="add_or_remove",
            grid=Grid(20, 20),
            pool=threads,
        )
        rows = make()
        made = best_times({"copy": make}, 3)["copy"].wall
        theta = rows.round_coefficients(theta)
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
        loss = LogisticLoss()

        def read():
            return sum(pool.map(lambda part: X[part].sum(), parts))

        def naive_part(part):
            residual = expit(X[part] @ theta[:d]) - y[part]
            residual *= np.minimum(1.0, 1.0 / np.maximum(np.abs(residual) * norms[part], 1e-12))
            return X[part].T @ residual

        halves = [slice(i * n // cores, (i + 1) * n // cores) for i in range(cores)]

        def naive():
            return sum(pool.map(naive_part, halves))

        def exact():
            return rows.gradient_sum("gradient", theta, loss, y, 1.0)

        def gram():
            return rows.gram("second moments")

        functions = {"read": read, "naive": naive, "exact": exact, "gram": gram}
        found = best_times(functions, options.repeats)
        times = {name: time.wall for name, time in found.items()}
    print(f"{n:,} x {d}, {cores} cores, best of {options.repeats}")
    for name, label in (
        ("read", "reading the float64 matrix once (sum by blocks on threads)"),
        ("naive", "naive two-pass clipped gradient, float64, threads"),
        ("exact", "skdp exact clipped gradient"),
        ("gram", "skdp exact second moments"),
    ):
        print(f"  {1e3 * times[name]:8.1f} ms  {label}")
    print(f"  {1e3 * made:8.1f} ms  making the working copy (once per fit)")
    print(f"pass / reading the matrix: {times['exact'] / times['read']:.2f}  (aim: at most 1.0)")
    print(f"pass / naive two-pass:     {times['exact'] / times['naive']:.2f}  (aim: at most 0.55)")


if __name__ == "__main__":
    main()
