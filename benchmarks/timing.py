"""What the time of a fit tells of the values: the same fits on data of one shape.

Run: ``python benchmarks/timing.py [--rows N] [--columns D] [--repeats R]``. Figures are CPU times,
the shortest of several turns, over that of standard normal rows. One thread.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from _timing import best_times

from skdp import (
    DPLogisticRegression,
    DPQuantileTransformer,
    DPRidge,
    DPStandardScaler,
    GaussianMechanism,
)


def data_sets(n_rows, n_columns):
    """Rows of one shape and of many sizes."""
    normal = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    one = normal.copy()
    one[0] = 1e308
    return {
        "normal": normal,
        "zeros": np.zeros_like(normal),
        "equal": np.ones_like(normal),
        "clipped": 100.0 * normal,
        "1e308": np.copysign(1e308, normal),
        "tiny": 1e-300 * normal,
        "subnormal": 1e-310 * normal,
        "one 1e308": one,
    }


def fits(labels):
    """What is timed, as functions of the rows."""
    public = (-5.0, 5.0)
    return {
        "logistic": lambda X: DPLogisticRegression(classes=[0, 1], n_jobs=1).fit(X, labels),
        "ridge": lambda X: DPRidge(y_bounds=(-1.0, 2.0), n_jobs=1).fit(X, labels),
        "scaler": lambda X: DPStandardScaler(bounds=public, n_jobs=1).fit(X),
        "scaler, no bounds": lambda X: DPStandardScaler(n_jobs=1).fit(X),
        "quantiles": lambda X: DPQuantileTransformer(bounds=public, n_jobs=1).fit(X),
        "mechanism": lambda X: GaussianMechanism(clip_norm=4.0).fit(X).transform(X),
    }


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = data_sets(options.rows, options.columns)
    labels = (data["normal"][:, 0] > 0).astype(int)
    print(f"{'':18s}" + "".join(f"{name:>11s}" for name in data))
    for name, fit in fits(labels).items():
        functions = {kind: partial(fit, rows) for kind, rows in data.items()}
        times = {k: t.cpu for k, t in best_times(functions, options.repeats).items()}
        ratios = "".join(f"{time / times['normal']:11.2f}" for time in times.values())
        print(f"{name:18s}{ratios}")


if __name__ == "__main__":
    main()
