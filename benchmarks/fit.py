"""Whole fits against scikit-learn, opacus and diffprivlib.

Run: ``python benchmarks/fit.py [--only large small opacus diffprivlib] [--repeats N]
[--opacus-python PATH] [--diffprivlib-python PATH]``. Default settings throughout; each function is
called once before it is timed; times are the shortest of a few taken in turns. Peers that need an
environment of their own are run by the interpreter named, and skipped without one.
"""

import argparse
import json
import subprocess
import tracemalloc
import warnings
from functools import partial
from importlib.util import find_spec
from os import cpu_count
from pathlib import Path

import numpy as np
from _data import standardised
from _timing import best_times
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import StandardScaler

from skdp import DPLinearRegression, DPLogisticRegression, DPStandardScaler

CLASSES = [0, 1]
TEST_ROWS = 50_000


def show(times):
    """Wall and CPU time of each name, as lines."""
    for name, time in times.items():
        print(f"  {1e3 * time.wall:9.2f} ms wall {1e3 * time.cpu:9.2f} ms CPU  {name}")


def ratios(ours, theirs):
    """Ratios of two times, as text."""
    return f"{ours.wall / theirs.wall:.2f} wall, {ours.cpu / theirs.cpu:.2f} CPU"


def peak_memory(fit):
    """Bytes allocated at the peak of a fit."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peer(python, script, *arguments):
    """Figures of a peer in its own environment, or None with a message."""
    if python is None:
        print("  skipped: no interpreter named")
        return None
    command = [python, str(Path(__file__).with_name(script)), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  skipped: {getattr(error, 'stderr', '') or error}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def large(options):
    """Fits of many rows, with memory and scores."""
    for d in options.columns:
        n = options.rows
        X, labels, target = standardised(n + TEST_ROWS, d)
        train, test = slice(None, n), slice(n, None)
        problems = (
            (DPLogisticRegression(classes=CLASSES), LogisticRegression(), labels, 1.0),
            (DPLinearRegression(y_bounds=(-6, 6)), LinearRegression(), target, 0.3),
        )
        for ours, theirs, y, aim in problems:
            fits = {
                type(model).__name__: partial(model.fit, X[train], y[train])
                for model in (ours, theirs)
            }
            for fit in fits.values():
                fit()
            times = best_times(fits, options.repeats)
            print(f"{n:,} x {d}, {type(ours).__name__}")
            show(times)
            mine, peer_time = times.values()
            print(f"  ratio: {ratios(mine, peer_time)}  (aim: at most {aim})")
            print(f"  steps: {ours.n_iter_}, iterations: {getattr(theirs, 'n_iter_', [1])[0]}")
            memory = peak_memory(next(iter(fits.values()))) / X[train].nbytes
            print(f"  peak memory above the input: {memory:.2f} of it  (aim: at most 0.6)")
            scores = (model.score(X[test], y[test]) for model in (ours, theirs))
            print("  test score: {:.4f} against {:.4f}".format(*scores))


def small(options):
    """One fit of breast_cancer, and a search of 100."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": np.logspace(-3, 2, 20)}
    models = {
        "DPLogisticRegression": DPLogisticRegression(classes=CLASSES),
        "LogisticRegression": LogisticRegression(),
    }
    searches = {
        name: GridSearchCV(model, grid, cv=KFold(5, shuffle=True, random_state=0), refit=False)
        for name, model in models.items()
    }
    for title, estimators, repeats, aim in (
        ("breast_cancer, 569 x 30, one fit", models, 30 * options.repeats, 4),
        ("breast_cancer, GridSearchCV of 100 fits", searches, options.repeats, 3),
    ):
        fits = {name: partial(e.fit, X, y) for name, e in estimators.items()}
        for fit in fits.values():
            fit()
        times = best_times(fits, repeats, pause=0.1)
        print(title)
        show(times)
        mine, peer_time = times.values()
        print(f"  ratio: {ratios(mine, peer_time)}  (aim: at most {aim})")
    scores = (model.score(X, y) for model in models.values())
    print("  training accuracy of one fit: {:.4f} against {:.4f}".format(*scores))


def opacus(options):
    """Examples per second at equal epochs."""
    n, d = 20_000, 100
    print(f"opacus, DP-SGD, one epoch of {n:,} x {d}")
    figures = peer(options.opacus_python, "peer_opacus.py", "--batches", 256, 1024)
    if figures is None:
        return
    X, labels, _ = standardised(n, d)
    model = DPLogisticRegression(classes=CLASSES)
    fit = {"fit": partial(model.fit, X, labels)}
    best_times(fit, 1)
    rate = n * model.n_iter_ / best_times(fit, 10 * options.repeats)["fit"].wall
    accuracy = model.score(X, labels)
    print(f"  {rate / 1e6:9.2f} M examples/s, accuracy {accuracy:.3f}: DPLogisticRegression")
    for batch, figure in figures.items():
        other = n / figure["seconds"]
        print(
            f"  {other / 1e6:9.2f} M examples/s, accuracy {figure['accuracy']:.3f}: opacus, "
            f"batches of {batch}; skdp is {rate / other:.0f} x as fast  (aim: at least 50)"
        )


def diffprivlib(options):
    """Fit times of diffprivlib's models."""
    for d in options.columns:
        n = options.rows
        print(f"diffprivlib, {n:,} x {d}")
        figures = peer(
            options.diffprivlib_python, "peer_diffprivlib.py", "--rows", n, "--columns", d
        )
        if figures is None:
            return
        X, labels, target = standardised(n, d)
        ours = {
            "LogisticRegression": (DPLogisticRegression(classes=CLASSES), labels),
            "LinearRegression": (DPLinearRegression(y_bounds=(-6, 6)), target),
            "StandardScaler": (DPStandardScaler(bounds=(-5, 5)), None),
        }
        fits = {name: partial(model.fit, X, y) for name, (model, y) in ours.items()}
        best_times(fits, 1)
        times = best_times(fits, options.repeats)
        for name, seconds in figures["seconds"].items():
            model, y = ours[name]
            wall = times[name].wall
            print(
                f"  {1e3 * seconds:9.1f} ms  {name}; skdp's {1e3 * wall:.1f} ms: "
                f"{wall / seconds:.2f} of it"
            )
            if name in figures["scores"]:
                print(f"    score {figures['scores'][name]:.3f}; skdp's {model.score(X, y):.3f}")


SECTIONS = {"large": large, "small": small, "opacus": opacus, "diffprivlib": diffprivlib}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--opacus-python", help="interpreter that has opacus")
    parser.add_argument("--diffprivlib-python", help="interpreter that has diffprivlib")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of noise at this size, and of peers' convergence
    compiled = "with" if find_spec("numba") else "without"
    print(f"{cpu_count()} cores, {compiled} numba, shortest of {options.repeats} turns")
    for name in options.only:
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
