"""The privacy checks of skdp on diffprivlib's models.

Run: ``PYTHONPATH=. python benchmarks/peer_checks.py`` in an environment that has diffprivlib and
what skdp needs (scikit-learn 1.7.2 is the newest that diffprivlib works with). Its bounds, norms
and classes are declared where it has a parameter for them; its costs are pure epsilon, by rules.
"""

import argparse
import csv
import signal
import sys
import warnings

import numpy as np
from diffprivlib.models import (
    PCA,
    DecisionTreeClassifier,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    RandomForestClassifier,
    StandardScaler,
)

from skdp import PrivacyCost
from skdp.cost import register_cost_rule
from skdp.estimator_checks import check_estimator_privacy

LOW, HIGH = np.full(3, -2.0), np.full(3, 2.0)
BOUNDS = (LOW, HIGH)


def models():
    """Every model with its public facts declared."""
    yield StandardScaler(bounds=BOUNDS)
    yield StandardScaler(bounds=(np.zeros(3), HIGH))
    yield StandardScaler()
    yield LogisticRegression(data_norm=4.0, max_iter=200)
    yield LinearRegression(bounds_X=BOUNDS, bounds_y=(-4.0, 4.0))
    yield LinearRegression(bounds_X=BOUNDS, bounds_y=(-4.0, 4.0), fit_intercept=False)
    yield DecisionTreeClassifier(bounds=BOUNDS, classes=[0, 1])
    yield RandomForestClassifier(n_estimators=5, bounds=BOUNDS, classes=[0, 1])
    yield PCA(n_components=2, bounds=BOUNDS, data_norm=4.0)
    yield KMeans(n_clusters=3, bounds=BOUNDS)
    yield GaussianNB(bounds=BOUNDS)


def label(model):
    """Name of the class and the settings that are not common to all."""
    known = model.get_params()
    texts = [] if known.get("fit_intercept", True) else ["no intercept"]
    if "bounds" in known and known["bounds"] is None:
        texts.append("bounds not given")
    elif "bounds" in known and not np.any(known["bounds"][0]):
        texts.append("lower bounds 0")
    return ", ".join([type(model).__name__, *texts])


def give_up(*ignored):
    """End the check that is running."""
    raise TimeoutError("the check takes too long")


def main():
    """Check all and print what fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", help="file for the results")
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--seconds", type=float, default=120.0, help="after which to give up")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    signal.signal(signal.SIGALRM, give_up)
    for model in models():
        register_cost_rule(type(model), lambda m: PrivacyCost(0.0, epsilon0=m.epsilon))
        signal.setitimer(signal.ITIMER_REAL, options.seconds, options.seconds)
        results = check_estimator_privacy(model, on_fail=None, n_runs=options.runs)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        late = [r for r in results if isinstance(r.exception, TimeoutError)]
        failed = [r for r in results if r.status == "failed" and r not in late]
        print(f"{label(model)}: {len(failed)} of {len(results)} fail, {len(late)} not finished")
        for result in failed:
            print(f"    {result.check_name}: {result.reason[:110]}", flush=True)
        rows += [(label(model), r.check_name, r.status, r.reason) for r in results]
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["model", "check", "status", "reason"])
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
