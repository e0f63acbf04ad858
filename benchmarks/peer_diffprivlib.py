"""Fit times of diffprivlib's models; prints a line of JSON.

`fit.py` runs it in an environment that has diffprivlib (which needs scikit-learn 1.7.2 or older):
``python benchmarks/peer_diffprivlib.py``.
"""

import argparse
import json
import warnings
from math import sqrt
from time import perf_counter

import numpy as np
from _data import standardised
from diffprivlib.models import LinearRegression, LogisticRegression, StandardScaler


def shortest(function, repeats):
    """Shortest of a few runs."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, labels, target = standardised(options.rows, options.columns)
    d = options.columns
    bounds = (np.full(d, -5.0), np.full(d, 5.0))
    logistic = LogisticRegression(epsilon=1.0, data_norm=sqrt(d) + 1.0)
    linear = LinearRegression(epsilon=1.0, bounds_X=bounds, bounds_y=(-6.0, 6.0))
    scaler = StandardScaler(epsilon=1.0, bounds=bounds)
    figures = {
        "LogisticRegression": shortest(lambda: logistic.fit(X, labels), options.repeats),
        "LinearRegression": shortest(lambda: linear.fit(X, target), options.repeats),
        "StandardScaler": shortest(lambda: scaler.fit(X), options.repeats),
    }
    scores = {
        "LogisticRegression": logistic.score(X, labels),
        "LinearRegression": linear.score(X, target),
    }
    print(json.dumps({"seconds": figures, "scores": scores}))


if __name__ == "__main__":
    main()
