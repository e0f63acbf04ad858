"""Share of the Poisson deviance explained, features standardised as if public.

Run: ``python benchmarks/counts.py [--epsilon E ...] [--data FOLDER]``. Mean over random splits, a
quarter of the rows for testing, with the least value, of `DPPoissonRegressor` with `y_bounds` given
and without, and of its twin. Needs pandas and the csv files in FOLDER.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from skdp import DPPoissonRegressor

CATEGORIES = ["season", "mnth", "hr", "weekday", "weathersit"]
# File, columns left out, columns taken as categories, target, its bounds, alpha.
CASES = {
    "bike sharing": ("bike_sharing_hourly", ["instant", "dteday"], [], "cnt", (0, 1000), 1.0),
    "bike sharing, one-hot": (
        "bike_sharing_hourly",
        ["instant", "dteday"],
        CATEGORIES,
        "cnt",
        (0, 1000),
        1.0,
    ),
    "motor claims": ("fremtpl_mini", [], [], "ClaimRate", (0, 40), 1.0),
    "motor claims, alpha=0": ("fremtpl_mini", [], [], "ClaimRate", (0, 40), 0.0),
    "claims with exposures": ("fremtpl_mini", [], [], "ClaimRate", (0, 40), 0.0),
}


def table(folder, file, left_out, categories, target):
    """Features, categories as indicators, and the target."""
    import pandas as pd

    frame = pd.read_csv(folder / f"{file}.csv.gz").dropna().drop(columns=left_out)
    y = frame.pop(target).to_numpy(float)
    frame = frame.astype(dict.fromkeys(categories, "category"))
    return pd.get_dummies(frame, drop_first=True).to_numpy(float), y


def drawn(X, y):
    """Claims per year and the exposures, drawn at a tenth of the rates that the twin finds."""
    rng = np.random.default_rng(5)
    twin = DPPoissonRegressor(alpha=0.0).make_non_private().set_params(max_iter=1000)
    scaled = StandardScaler().fit_transform(X)
    rate = twin.fit(scaled, y).predict(scaled)
    exposure = np.where(rng.random(len(y)) < 0.25, 1.0, rng.beta(0.8, 1.0, len(y))).clip(0.003)
    heterogeneous = rng.gamma(2.0, 0.5, len(y))
    return rng.poisson(0.1 * rate / rate.mean() * exposure * heterogeneous) / exposure, exposure


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    if not options.data.is_dir():
        sys.exit(f"{options.data} is not a folder")
    warnings.filterwarnings("ignore")
    for name, (file, left_out, categories, target, bounds, alpha) in CASES.items():
        X, y = table(options.data, file, left_out, categories, target)
        weights = None
        if "exposures" in name:
            y, weights = drawn(X, y)
        found = {}
        for train, test in ShuffleSplit(options.splits, test_size=0.25, random_state=1).split(X):
            scaler = StandardScaler().fit(X[train])
            seen, unseen = scaler.transform(X[train]), scaler.transform(X[test])
            mine, theirs = (
                {} if weights is None else {"sample_weight": weights[part]}
                for part in (train, test)
            )
            twin = DPPoissonRegressor(alpha=alpha).make_non_private().set_params(max_iter=1000)
            twin.fit(seen, y[train], **mine)
            scores = {"non-private": twin.score(unseen, y[test], **theirs)}
            for epsilon in options.epsilon:
                for label, known in (("y_bounds", bounds), ("no bounds", None)):
                    model = DPPoissonRegressor(epsilon, alpha=alpha, y_bounds=known)
                    model.fit(seen, y[train], **mine)
                    score = model.score(unseen, y[test], **theirs)
                    scores[f"epsilon {epsilon:g}, {label}"] = score
            for label, score in scores.items():
                found.setdefault(label, []).append(score)
        for label, scores in found.items():
            print(f"{name:22s} {label:24s} {np.mean(scores):7.4f}  least {min(scores):7.4f}")


if __name__ == "__main__":
    main()
