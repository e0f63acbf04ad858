"""Test accuracy and R2 at the defaults, features standardised as if public.

Run: ``python benchmarks/accuracy.py [--epsilon E ...] [--data FOLDER]``. Classification: the
bundled sets of scikit-learn, mean over 10 stratified splits x 10 noise draws with its standard
error (over splits). Regression: csv files in FOLDER, when it exists, with `y_bounds` given.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from skdp import DPLinearRegression, DPLogisticRegression

DELTA = 1e-5
CLASSIFICATION = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
    "iris": load_iris,
}
# Target and bounds that a user would know of it, in its own units.
REGRESSION = {
    "airfoil": ("sound_pressure", (100.0, 145.0)),
    "power_plant": ("PE", (420.0, 500.0)),
    "california_housing": ("median_house_value", (0.0, 500_001.0)),
    "diamonds": ("price", (300.0, 19_000.0)),
}


def table(path, target):
    """Numeric features, one-hot categories and the target of a csv file."""
    import pandas as pd

    frame = pd.read_csv(path).dropna()
    y = frame.pop(target).to_numpy(float)
    return pd.get_dummies(frame, drop_first=True).to_numpy(float), y


def scores(make, twin, X, y, splits, draws):
    """Test scores of shape (splits, draws), and the twin's of shape (splits,)."""
    found, baseline = [], []
    for train, test in splits.split(X, y):
        scaler = StandardScaler().fit(X[train])
        seen, unseen = scaler.transform(X[train]), scaler.transform(X[test])
        fits = [make().fit(seen, y[train]).score(unseen, y[test]) for _ in range(draws)]
        found.append(fits)
        baseline.append(twin.fit(seen, y[train]).score(unseen, y[test]))
    return np.array(found), np.array(baseline)


def report(name, results, baseline):
    """One line: mean and standard error for every epsilon."""
    cells = [
        f"{r.mean():7.3f} +-{r.mean(axis=1).std(ddof=1) / np.sqrt(len(r)):.3f}" for r in results
    ]
    print(f"{name:20s} {'  '.join(cells)}   {baseline.mean():.3f}", flush=True)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    header = "  ".join(f"{f'epsilon {e:g}':>14s}" for e in options.epsilon)
    print(f"{options.splits} splits x {options.draws} noise draws, delta = {DELTA:g}")
    print(f"{'accuracy':20s} {header}   non-private")
    for name, load in CLASSIFICATION.items():
        X, y = load(return_X_y=True)
        classes = np.arange(y.max() + 1)
        splits = StratifiedShuffleSplit(options.splits, test_size=0.25, random_state=0)
        results = []
        for epsilon in options.epsilon:
            model = DPLogisticRegression(epsilon, DELTA, classes=classes)
            found, baseline = scores(
                lambda m=model: m, LogisticRegression(max_iter=2000), X, y, splits, options.draws
            )
            results.append(found)
        report(name, results, baseline)
    if not options.data.is_dir():
        print(f"no regression sets: {options.data} is not a folder", file=sys.stderr)
        return
    print(f"{'R2':20s} {header}   non-private")
    for name, (target, bounds) in REGRESSION.items():
        X, y = table(options.data / f"{name}.csv.gz", target)
        splits = ShuffleSplit(options.splits, test_size=0.25, random_state=0)
        results = []
        for epsilon in options.epsilon:
            model = DPLinearRegression(epsilon, DELTA, y_bounds=bounds)
            found, baseline = scores(
                lambda m=model: m, LinearRegression(), X, y, splits, options.draws
            )
            results.append(found)
        report(name, results, baseline)


if __name__ == "__main__":
    main()
