"""What a private search finds, against settings it has to choose away from and naive splitting.

Run: ``python benchmarks/search.py [--draws N] [--data FOLDER]``. Mean test AUC at a total epsilon
of 1 (delta 1e-5), features standardised as if their moments were public, for grids of 10 and 50
candidates: *poor* ones, of which one in ten is good, and *mild* ones around the defaults.

- default: the estimator without a search, all of the budget in one fit
- search: `DPGridSearchCV`
- fixed: mean over the poor settings (of a mild grid: over all), each fitted with all of the budget
- naive: every candidate and the last fit with epsilon / (K + 1) and delta / (K + 1) by the
  simplest composition, chosen by exact scores on the rows set aside, which are not even charged
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from _tables import load
from sklearn.base import clone
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import ParameterGrid, train_test_split

from skdp import DPGridSearchCV, DPLogisticRegression

SETS = ["adult", "bank_marketing", "credit_default_taiwan", "spambase"]
# One change each that spoils a fit: far too much shrinkage, one step, noise for gradients of 20,
# steps too small, rows of another scale.
POOR = [
    {"C": [1e-5]},
    {"C": [1e-4]},
    {"max_iter": [1]},
    {"clip_norm": [5.0]},
    {"clip_norm": [20.0]},
    {"learning_rate": [1e-3]},
    {"feature_norm": [300.0]},
    {"feature_norm": [0.05]},
    {"feature_bound": [0.05]},
]
STEPS = [None, 18, 22, 26, 30]
SHARES = [0.0, 0.01, 0.02, 0.03, 0.04]


def poor(count):
    """A tenth of the candidates are good."""
    if count == 10:
        return [*POOR, {"C": [1.0]}]
    return [{**spoilt, "scale_check_share": SHARES} for spoilt in POOR] + [
        {"C": [1.0], "scale_check_share": SHARES}
    ]


def mild(count):
    """All candidates are good."""
    strengths = [0.1, 1.0, 10.0, 30.0, 100.0]
    if count == 10:
        return [{"C": strengths, "max_iter": STEPS[:2]}]
    return [{"C": strengths, "max_iter": STEPS, "scale_check_share": SHARES[:2]}]


def auc(model, part):
    """Area under the curve on the test rows."""
    return roc_auc_score(part[1], model.decision_function(part[0]))


def naive(grid, training, part, rng):
    """See the first lines."""
    candidates = list(ParameterGrid(grid))
    parts = len(candidates) + 1
    base = DPLogisticRegression(1.0 / parts, 1e-5 / parts, classes=[0, 1])
    X, X_held, y, y_held = train_test_split(*training, random_state=rng)
    losses = []
    for settings in candidates:
        model = clone(base).set_params(**settings).fit(X, y)
        losses.append(log_loss(y_held, model.predict_proba(X_held), labels=[0, 1]))
    return auc(clone(base).set_params(**candidates[int(np.argmin(losses))]).fit(*training), part)


def fixed(grid, training, part):
    """Mean over settings, each with all of the budget."""
    found = [
        auc(DPLogisticRegression(classes=[0, 1], **settings).fit(*training), part)
        for settings in ParameterGrid(grid)
    ]
    return float(np.mean(found))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=3, help="splits, with fresh noise each")
    parser.add_argument("--rows", type=int, default=12_000, help="of every set, at most")
    parser.add_argument("--only", nargs="+", default=SETS)
    parser.add_argument("--max-candidates", type=int, nargs="+", default=[32])
    parser.add_argument("--search-share", type=float, nargs="+", default=[0.2])
    parser.add_argument("--no-naive", action="store_true")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    settings = [(k, s) for k in options.max_candidates for s in options.search_share]
    labels = ["search" if len(settings) == 1 else f"k={k} s={s:g}" for k, s in settings]
    columns = ["default", *labels, *([] if options.no_naive else ["fixed", "naive"])]
    print(f"{'data':<24}{'grid':<6}{'K':>3} " + "".join(f"{name:>12}" for name in columns))
    totals = {}
    for name in options.only:
        table = load(name, options.data)
        if table is None:
            print(f"{name}: not at hand")
            continue
        for label, make in (("poor", poor), ("mild", mild)):
            for count in (10, 50):
                grid, found = make(count), {column: [] for column in columns}
                for draw, (train, test) in enumerate(table.splits(options.draws)):
                    X, y = table.encoded, table.y
                    train = train[: options.rows]
                    mean, width = X[train].mean(axis=0), X[train].std(axis=0) + 1e-12
                    training = ((X[train] - mean) / width, y[train])
                    part = ((X[test] - mean) / width, y[test])
                    base = DPLogisticRegression(classes=[0, 1])
                    found["default"].append(auc(clone(base).fit(*training), part))
                    for column, (most, share) in zip(labels, settings, strict=True):
                        search = DPGridSearchCV(base, grid, max_candidates=most, search_share=share)
                        found[column].append(auc(search.fit(*training), part))
                    if not options.no_naive:
                        spoilt = grid[:-1] if label == "poor" else grid
                        found["fixed"].append(fixed(spoilt, training, part))
                        found["naive"].append(naive(grid, training, part, draw))
                means = {column: float(np.mean(scores)) for column, scores in found.items()}
                totals.setdefault((label, count), []).append(list(means.values()))
                print(f"{name:<24}{label:<6}{count:>3} " + _line(means.values()), flush=True)
    for (label, count), lines in totals.items():
        print(f"{'mean':<24}{label:<6}{count:>3} " + _line(np.mean(lines, axis=0)))


def _line(values):
    return "".join(f"{value:>12.4f}" for value in values)


if __name__ == "__main__":
    main()
