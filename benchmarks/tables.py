"""From a raw table to a model: what it costs in score to find everything privately.

Run: ``python benchmarks/tables.py [--epsilon 0.3 1] [--splits 4] [--draws 2] [--only SET ...]
[--task binary regression] [--results FILE]``.

`DPTableVectorizer` and a linear model with their defaults in a `PrivacyBudget` see the raw
columns; every statistic is paid for from the total. They do without any public fact but the types
of the columns (and the classes), or with public bounds of the numbers (the range of the training
rows) and public categories. Regressors find the scale of y privately in the first case and are
given bounds of it in the second. A gap is the shortfall from scikit-learn's imputer, scaler,
encoder and model on the same split; its standard error is over splits and draws together.
"""

import argparse
import warnings
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import load, names
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import Categorical as Levels
from skdp import DPLogisticRegression, DPRidge, DPTableVectorizer, Numeric, PrivacyBudget

DELTA = 1e-5
AIMS = {
    ("binary", "nothing", 0.3): 0.030,
    ("binary", "nothing", 1.0): 0.010,
    ("binary", "bounds", 0.3): 0.026,
    ("binary", "bounds", 1.0): 0.008,
    ("regression", "nothing", 1.0): 0.08,
}


def cleaned(table):
    """The columns as a user would read them: numbers, and texts with missing ones as such."""
    frame = table.frame.copy()
    for column in frame:
        if frame[column].dtype.kind not in "iuf":
            frame[column] = frame[column].astype(object)
    return frame


def public_schema(frame, rows):
    """Ranges of the training rows and all categories, as if both were public."""
    schema = {}
    for name, column in frame.items():
        if column.dtype.kind in "iuf":
            low, high = float(column[rows].min()), float(column[rows].max())
            schema[name] = Numeric((low, high) if low < high else (low - 1.0, low + 1.0))
        else:
            schema[name] = Levels(tuple(sorted(column.dropna().unique())))
    return schema


def non_private(task):
    """Scikit-learn's pipeline."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    model = LogisticRegression(max_iter=2000) if task == "binary" else Ridge()
    return make_pipeline(columns, model)


def private(task, epsilon, schema, y):
    """The same with skdp, at its defaults."""
    if task == "binary":
        model = DPLogisticRegression(classes=[0, 1])
    else:
        bounds = None if schema is None else (float(y.min()), float(y.max()))
        model = DPRidge(y_bounds=bounds)
    return PrivacyBudget(make_pipeline(DPTableVectorizer(schema), model), epsilon, DELTA)


def scores(task, model, X, y):
    """Score of a fitted model, and its accuracy."""
    if task == "binary":
        return roc_auc_score(y, model.decision_function(X)), accuracy_score(y, model.predict(X))
    return r2_score(y, model.predict(X)), np.nan


def measure(name, args):
    """Lines of the results of one table."""
    table = load(name, args.data)
    if table is None:
        print(f"{name}: not at hand")
        return []
    frame, lines = cleaned(table), []
    for split, (train, test) in enumerate(table.splits(args.splits)):
        X, X_test = frame.iloc[train], frame.iloc[test]
        y, y_test = table.y[train], table.y[test]
        best, _ = scores(table.task, non_private(table.task).fit(X, y), X_test, y_test)
        for epsilon in args.epsilon:
            for known in ("nothing", "bounds"):
                schema = public_schema(frame, train) if known == "bounds" else None
                for _ in range(args.draws):
                    model = private(table.task, epsilon, schema, y).fit(X, y)
                    score, accuracy = scores(table.task, model, X_test, y_test)
                    lines.append(
                        {
                            "table": name,
                            "task": table.task,
                            "rows": len(train),
                            "split": split,
                            "epsilon": epsilon,
                            "known": known,
                            "score": score,
                            "accuracy": accuracy,
                            "gap": best - score,
                        }
                    )
    return lines


def report(results):
    """Mean gap of every table with its standard error, and the means beside the aims."""
    keys = ["task", "epsilon", "known"]
    for (task, epsilon, known), rows in results.groupby(keys):
        metric = "AUC" if task == "binary" else "R2"
        print(f"\n{task}, epsilon {epsilon:g}, public: {known}")
        gaps, errors = [], []
        for name, found in rows.groupby("table", sort=False):
            error = found.gap.std() / sqrt(len(found))
            gaps.append(found.gap.mean())
            errors.append(error)
            extra = f"  accuracy {found.accuracy.mean():.4f}" if task == "binary" else ""
            print(
                f"  {name:24s} n={found.rows.iloc[0]:<6d} {metric} {found.score.mean():8.4f}  "
                f"gap {gaps[-1]:8.4f} +- {error:.4f}{extra}"
            )
        aim = AIMS.get((task, epsilon, known))
        stated = "" if aim is None else f"   aim <= {aim:g}"
        error = sqrt(sum(e * e for e in errors)) / len(errors)
        print(f"  mean gap of {len(gaps)} tables: {np.mean(gaps):.4f} +- {error:.4f}{stated}")


def main():
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the csv files")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--task", nargs="+", default=["binary", "regression"])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--results", type=Path, help="csv file to write")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = args.only or [name for task in args.task for name in names(task)]
    results = pd.DataFrame([line for name in wanted for line in measure(name, args)])
    if args.results:
        results.to_csv(args.results, index=False)
    report(results)


if __name__ == "__main__":
    main()
