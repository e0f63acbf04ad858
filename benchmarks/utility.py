"""Leaderboard: test scores at the defaults for real data sets, beside rivals in the same splits.

Run: ``python benchmarks/utility.py [--only SET ...]``, then ``python benchmarks/utility.py
--report``. A run replaces the lines of its sets, models and epsilons; peers that want an
environment of their own are named by ``--ebm-python`` and ``--diffprivlib-python``.

Features and numeric targets are standardised by the training rows, as if their scales were public
(`y_bounds`: three standard deviations), and all private models see the same splits. Each is run
with its defaults and nothing is tuned. A gap is a score's shortfall from the non-private model of
the same split.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _rivals import (
    HuberLoss,
    LogisticLoss,
    adassp,
    boosted_adassp,
    objective_perturbation,
    working_rows,
)
from _tables import TASKS, load, names
from _utility_report import group, report
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import (
    accuracy_score,
    d2_tweedie_score,
    log_loss,
    mean_poisson_deviance,
    r2_score,
    roc_auc_score,
)

from skdp import DPLogisticRegression, DPPoissonRegressor, DPRidge

DELTA = 1e-5
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Standard deviations that features are clipped to for the rivals: skdp's own defaults.
BOUND = {"binary": 3.0, "classes": 3.0, "regression": 8.0, "counts": 8.0}
SMALL = 5_000
RESULTS = Path(__file__).parents[1] / "docs" / "data" / "utility.csv"
DESCENT = "gradient-descent"


class Split:
    """Training and test rows of one split, standardised as if the scales were public."""

    def __init__(self, table, train, test):
        self.task = table.task
        self.bound = BOUND[table.task]
        X, y = table.encoded, table.y
        self.train, self.test = _standardised(X, train, test)
        self.y, self.y_test = y[train], y[test]
        self.raw_y = self.y  # in the units of the table
        self.centre, self.scale = 0.0, 1.0
        if table.task == "regression":
            self.centre, self.scale = self.y.mean(), self.y.std()
            self.y = (self.y - self.centre) / self.scale
            self.y_test = (self.y_test - self.centre) / self.scale

    def clipped(self):
        """Training and test features within the bound."""
        return (np.clip(X, -self.bound, self.bound) for X in (self.train, self.test))

    def rival(self, fit):
        """Linear predictor of a rival: `fit(rows)` gives its coefficients."""
        train, test = self.clipped()
        return working_rows(test) @ fit(working_rows(train))


def _standardised(X, train, test):
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    scale = np.where(scale > 1e-9 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
    return (X[train] - mean) / scale, (X[test] - mean) / scale


def scores(task, y, found):
    """Scores of a prediction: a probability (or one for each class), or a number."""
    if task == "binary":
        return {
            "auc": roc_auc_score(y, found),
            "log_loss": log_loss(y, found),
            "accuracy": accuracy_score(y, found > 0.5),
            "level": found.mean() / y.mean(),
        }
    if task == "classes":
        return {
            "accuracy": accuracy_score(y, found.argmax(axis=1)),
            "log_loss": log_loss(y, found, labels=np.arange(found.shape[1])),
            "auc": roc_auc_score(y, found, multi_class="ovr"),
        }
    if task == "regression":
        return {"r2": r2_score(y, found)}
    found = np.clip(found, 1e-9, None)
    return {
        "deviance": mean_poisson_deviance(y, found),
        "deviance_explained": d2_tweedie_score(y, found, power=1),
    }


# ---- models: functions of (split, epsilon, seed) that predict the test rows ----


def skdp_classifier(solver="preconditioned-gradient-descent"):
    """`DPLogisticRegression` at its defaults."""

    def predict(split, epsilon, seed):
        classes = np.arange(split.y.max() + 1)
        model = DPLogisticRegression(
            epsilon, DELTA, classes=classes, solver=solver, random_state=seed
        )
        found = model.fit(split.train, split.y).predict_proba(split.test)
        return found[:, 1] if split.task == "binary" else found

    return predict


def skdp_ridge(solver="preconditioned-gradient-descent"):
    """`DPRidge` at its defaults, bounds of three standard deviations being public."""

    def predict(split, epsilon, seed):
        model = DPRidge(epsilon, DELTA, y_bounds=(-3.0, 3.0), solver=solver, random_state=seed)
        return model.fit(split.train, split.y).predict(split.test)

    return predict


def skdp_ridge_unscaled(split, epsilon, seed):
    """`DPRidge` that finds the scale of y itself, for a charge."""
    model = DPRidge(epsilon, DELTA, random_state=seed).fit(split.train, split.raw_y)
    return (model.predict(split.test) - split.centre) / split.scale


def skdp_poisson(solver="preconditioned-gradient-descent"):
    """`DPPoissonRegressor` at its defaults."""

    def predict(split, epsilon, seed):
        model = DPPoissonRegressor(epsilon, DELTA, solver=solver, random_state=seed)
        return model.fit(split.train, split.y).predict(split.test)

    return predict


def objective_classifier(slope):
    """Objective perturbation on the logistic loss."""

    def predict(split, epsilon, seed):
        rng = np.random.default_rng(seed)
        loss = LogisticLoss(slope)
        return expit(
            split.rival(
                lambda rows: objective_perturbation(rows, split.y, loss, epsilon, DELTA, rng)
            )
        )

    return predict


def objective_huber(split, epsilon, seed):
    """Objective perturbation on the Huber loss."""
    rng = np.random.default_rng(seed)
    return split.rival(
        lambda rows: objective_perturbation(rows, split.y, HuberLoss(), epsilon, DELTA, rng)
    )


def ssp(method):
    """AdaSSP and its boosted form; the target is brought to [-1, 1] by its bounds."""

    def predict(split, epsilon, seed):
        rng = np.random.default_rng(seed)
        y = np.clip(split.y / 3.0, -1.0, 1.0)
        return 3.0 * split.rival(lambda rows: method(rows, y, epsilon, DELTA, rng))

    return predict


def models(task):
    """Private models of a task by name."""
    if task == "binary":
        return {
            "skdp": skdp_classifier(),
            "skdp, gradient descent": skdp_classifier(DESCENT),
            "objective perturbation": objective_classifier(1.0),
            "objective perturbation, clipped loss": objective_classifier(0.5),
        }
    if task == "classes":
        return {"skdp": skdp_classifier(), "skdp, gradient descent": skdp_classifier(DESCENT)}
    if task == "regression":
        return {
            "skdp": skdp_ridge(),
            "skdp, gradient descent": skdp_ridge(DESCENT),
            "skdp, scale of y private": skdp_ridge_unscaled,
            "objective perturbation": objective_huber,
            "adassp": ssp(adassp),
            "boosted adassp": ssp(boosted_adassp),
        }
    return {"skdp": skdp_poisson(), "skdp, gradient descent": skdp_poisson(DESCENT)}


def non_private(split):
    """Prediction without privacy."""
    if split.task == "regression":
        return Ridge().fit(split.train, split.y).predict(split.test)
    if split.task == "counts":
        model = PoissonRegressor(alpha=0.0, max_iter=1000)
        return model.fit(split.train, split.y).predict(split.test)
    found = LogisticRegression(max_iter=2000).fit(split.train, split.y).predict_proba(split.test)
    return found[:, 1] if split.task == "binary" else found


# ---- peers in interpreters of their own ----


def peer_predictions(python, library, table, splits, epsilons):
    """Predictions by (split, place of epsilon) of a library in another interpreter."""
    job = {
        "task": table.task,
        "epsilons": np.asarray(epsilons),
        "delta": DELTA,
        "splits": len(splits),
        "bound": BOUND[table.task],
        "nominal": np.array([table.frame[c].dtype.kind not in "biuf" for c in table.frame]),
    }
    coded = table.frame.apply(lambda c: c if c.dtype.kind in "biuf" else pd.factorize(c)[0])
    coded = coded.astype(float).fillna(coded.median()).to_numpy()
    nominal = job["nominal"]
    for k, (train, test) in enumerate(splits):
        split = Split(table, train, test)
        job[f"train{k}"], job[f"test{k}"] = split.clipped()
        job[f"y{k}"] = split.y
        trees = [np.array(coded[rows]) for rows in (train, test)]
        numbers = _standardised(coded[:, ~nominal], train, test)
        for rows, standardised in zip(trees, numbers, strict=True):
            rows[:, ~nominal] = np.clip(standardised, -split.bound, split.bound)
        job[f"tree_train{k}"], job[f"tree_test{k}"] = trees
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "job.npz", Path(folder) / "answer.npz"
        np.savez(asked, **job)
        script = Path(__file__).with_name("peer_predictions.py")
        subprocess.run([python, script, library, asked, answered], check=True)
        with np.load(answered) as answer:
            return {
                (k, epsilon): answer[f"{k}_{place}"]
                for k in range(len(splits))
                for place, epsilon in enumerate(epsilons)
            }


# ---- the run ----


class Progress:
    """A bar on stderr."""

    def __init__(self, total):
        self.total, self.done = total, 0

    def step(self, text):
        """One more thing done."""
        self.done += 1
        filled = 30 * self.done // self.total
        bar = "#" * filled + "." * (30 - filled)
        print(f"\r[{bar}] {self.done}/{self.total} {text:50.50s}", end="", file=sys.stderr)
        if self.done == self.total:
            print(file=sys.stderr)


def measure(table, options, peers, progress):
    """Scores of all models: a frame of one line per fit and metric."""
    found = []

    def add(model, epsilon, k, values):
        for metric, value in values.items():
            found.append((model, epsilon, k, metric, value))

    splits = table.splits(options.splits)
    draws = options.draws * (5 if len(table.y) < SMALL else 1)
    private = {
        name: model
        for name, model in models(table.task).items()
        if options.models is None or name in options.models
    }
    for k, (train, test) in enumerate(splits):
        split = Split(table, train, test)
        add("non-private", np.inf, k, scores(table.task, split.y_test, non_private(split)))
        for name, model in private.items():
            for epsilon in options.epsilon:
                for draw in range(draws):
                    prediction = model(split, epsilon, 1000 * k + draw)
                    add(name, epsilon, k, scores(table.task, split.y_test, prediction))
                progress.step(f"{table.name}: {name}")
    for library, python in peers.items():
        answers = peer_predictions(
            python, library, table, splits[: options.peer_splits], options.epsilon
        )
        for (k, epsilon), prediction in answers.items():
            y = Split(table, *splits[k]).y_test
            add(library, epsilon, k, scores(table.task, y, prediction))
        progress.step(f"{table.name}: {library}")
    return pd.DataFrame(found, columns=["model", "epsilon", "split", "metric", "value"])


def summary(table, fits):
    """Means and gaps to the non-private model of the same split, with their standard errors."""
    baseline = fits[fits.model == "non-private"].set_index(["split", "metric"]).value
    reference = baseline.loc[list(zip(fits.split, fits.metric, strict=True))].to_numpy()
    lower_is_better = fits.metric.isin(["log_loss", "deviance"])
    gap = np.where(lower_is_better, fits.value - reference, reference - fits.value)
    grouped = fits.assign(gap=gap).groupby(["model", "epsilon", "metric"], sort=False)
    rows = grouped.agg(
        fits=("value", "size"),
        mean=("value", "mean"),
        gap=("gap", "mean"),
        gap_error=("gap", lambda g: g.std(ddof=1) / np.sqrt(len(g)) if len(g) > 1 else np.nan),
    ).reset_index()
    shape = {
        "table": table.name,
        "task": table.task,
        "group": group(table.name),
        "rows": len(table.y),
    }
    return rows.assign(**shape, columns=table.encoded.shape[1])[
        [*shape, "columns", "model", "epsilon", "metric", "fits", "mean", "gap", "gap_error"]
    ]


def merge(path, rows):
    """Write results, in place of older ones of the same set, model and epsilon."""
    if path.is_file():
        old = pd.read_csv(path)
        new = set(zip(rows.table, rows.model, rows.epsilon, strict=True))
        kept = [one not in new for one in zip(old.table, old.model, old.epsilon, strict=True)]
        rows = pd.concat([old[kept], rows])
    order = {name: k for k, name in enumerate(n for task in TASKS for n in names(task))}
    rows = rows.sort_values("table", key=lambda c: c.map(order), kind="stable")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.to_csv(path, index=False, float_format="%.5g", lineterminator="\n")


def main():
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="data sets; all by default")
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS))
    parser.add_argument("--models", nargs="*", help="models; all by default, none when empty")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--draws", type=int, default=1, help="of noise for every split; times 5 below 5,000 rows"
    )
    parser.add_argument("--peer-splits", type=int, default=2, help="splits of the two below")
    parser.add_argument("--ebm-python", help="an interpreter that has interpret")
    parser.add_argument("--diffprivlib-python", help="an interpreter that has diffprivlib")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="only print what is there")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if not options.report:
        run(options)
    report(pd.read_csv(options.results))


def run(options):
    """Measure all that is at hand."""
    pythons = {"dp-ebm": options.ebm_python, "diffprivlib": options.diffprivlib_python}
    tables = []
    for task in options.task:
        for name in names(task):
            if options.only is None or name in options.only:
                table = load(name, options.data)
                if table is None:
                    print(f"{name}: not at hand, left out", file=sys.stderr)
                else:
                    tables.append(table)
    plan = []
    for table in tables:
        suits = {
            "dp-ebm": table.task in ("binary", "regression"),
            "diffprivlib": table.task != "counts",
        }
        plan.append((table, {p: python for p, python in pythons.items() if python and suits[p]}))
    total = 0
    for table, peers in plan:
        wanted = set(models(table.task)) & set(
            models(table.task) if options.models is None else options.models
        )
        total += options.splits * len(wanted) * len(options.epsilon) + len(peers)
    progress = Progress(max(1, total))
    for table, peers in plan:
        fits = measure(table, options, peers, progress)
        merge(options.results, summary(table, fits))


if __name__ == "__main__":
    main()
