"""`make audit`: attack every estimator of the registry and compare with what it promises.

Every estimator, in all its settings under contract, and scikit-learn's meta-estimators around
some, are audited at several epsilons under both neighbouring relations. The run fails

- when a lower bound is above the claim, at a confidence that makes a false alarm anywhere in the
  whole run less likely than 0.1%;
- when the audits of the mechanism and of linear models under a worst-case row (in two steps, and
  at the largest epsilon also in their own number) recover less than 60% of the claimed mu: an
  audit without power would prove nothing.

What divides the rows by their places (searches, cross-validation, bags) cannot be compared with
and without a record: another number of rows is another division. Under "add_or_remove" two records
take the place of each other there, which is two steps, and the claim is for those.

Usage: python tests/audits.py [--only NAME] [--runs N] [--csv FILE [--resume]]
"""

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import registry
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline

from skdp import GaussianMechanism, PrivacyCost, privacy_cost
from skdp.audit import AuditResult, audit_epsilon
from skdp.audit._neighbors import candidates

EPSILONS = (4.0, 1.0, 0.5)
# Where a few fits tell canaries apart: what moves a model the most hardly depends on epsilon.
FINDING = 100.0
RELATIONS = ("add_or_remove", "replace")
FALSE_ALARM = 1e-3
# Confidence of the recovered share.
USUAL = 0.95
LEAST_RECOVERED = 0.6
N_ROWS = 20


class ReleasedSum(BaseEstimator):
    """One release of the Gaussian mechanism, as an estimator: the clipped sum of a column."""

    def __init__(self, epsilon=1.0, neighboring="add_or_remove"):
        self.epsilon = epsilon
        self.neighboring = neighboring

    def fit(self, X, y=None):
        mechanism = GaussianMechanism(
            epsilon=self.epsilon,
            neighboring=self.neighboring,
            sensitivity=1.0 if self.neighboring == "add_or_remove" else 2.0,
        ).fit(X)
        self.sum_ = mechanism.release(np.clip(X[:, 0], -1.0, 1.0).sum())
        self.privacy_cost_ = mechanism.privacy_cost_
        return self


@dataclass
class Case:
    """One estimator to attack.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like
    neighboring : str
        Relation of the claim.
    tight : bool
        Whether most of the claim has to be recovered.
    neighbor : object
        As in `audit_epsilon`; None: found by it.
    claim : PrivacyCost or None
        None: `privacy_cost` of the estimator.
    replaced : bool
        Whether two records take the place of each other under either relation: from one to a
        blank record, and from that to the other, are two steps, for which a claim counts twice.
    """

    estimator: Any
    X: Any
    y: Any
    neighboring: str
    tight: bool = False
    neighbor: Any = None
    claim: PrivacyCost | None = None
    replaced: bool = False

    def audit(self, runs: int, risk: float) -> AuditResult:
        claim = self.claim or privacy_cost(self.estimator)
        relation = "replace" if self.replaced else self.neighboring
        return audit_epsilon(
            self.estimator,
            self.X,
            self.y,
            neighbor=self.neighbor,
            n_runs=runs_for(claim) if self.tight else runs,
            confidence=1.0 - risk,
            claim=claim,
            neighboring=relation,
            n_jobs=2,
        )

    def record(self, label: str) -> Any:
        """The canary of that name, among those that an audit tries."""
        relation = "replace" if self.replaced else self.neighboring
        return dict(candidates(self.estimator, self.X, self.y, relation))[label]


FAR = 1e3
LINEAR = ("DPLogisticRegression", "DPRidge", "DPLinearRegression")


def runs_for(claim: PrivacyCost) -> int:
    """Fits after which 95% confidence costs 0.1 mu, on a mu with a standard error of 0.06 mu.

    The mean of the two error rates has a standard deviation of at most 0.5 / sqrt(2 n), and mu
    moves by twice sqrt(2 pi) as much, or a little more where it is large.
    """
    counted = (1.65 * 2.0 * 2.51 * 0.5 / 1.414 / (0.1 * claim.mu)) ** 2
    return 2 * (int(counted / 0.85) + 2000)


def cases() -> Iterator[tuple[str, Any]]:
    """Name and maker (of epsilon and relation) of every case."""
    yield "GaussianMechanism.release", mechanism_case
    for name in LINEAR:
        for label, steps in (("two-steps", 2), ("worst-row", None)):
            yield f"{name}-{label}", lambda e, r, name=name, s=steps: linear_case(name, s, e, r)
    for entry in registry.all_entries(registry.variants):
        if entry.name != "GaussianMechanism":
            yield str(entry), lambda e, r, entry=entry: registry_case(entry, e, r)
    for name in COMPOSITIONS:
        yield name, lambda e, r, name=name: composed_case(name, e, r)


def mechanism_case(epsilon, neighboring):
    estimator = ReleasedSum(epsilon, neighboring)
    rows = np.zeros((N_ROWS, 1))
    claim = clone(estimator).fit(rows).privacy_cost_
    there = ([FAR], None)
    neighbor = there if neighboring == "add_or_remove" else (([-FAR], None), there)
    return Case(estimator, rows, None, neighboring, True, neighbor, claim)


def linear_case(name, steps, epsilon, neighboring):
    """A record that is far out, or (squared loss) whose residual stays clipped all the way.

    With the steps that the model takes by itself, sixty for so few rows, a hundred thousand slow
    fits would be needed at a small epsilon.
    """
    estimator = registry.declared(
        name, epsilon=epsilon, neighboring=neighboring, max_iter=steps
    ).estimator
    rows = np.zeros((N_ROWS, 2))
    if is_classifier(estimator):
        y, row, low, high = np.arange(N_ROWS) % 2, [FAR, 0.0], 0, 1
    else:
        y, row, low, high = np.zeros(N_ROWS), [1.0, 0.0], -FAR, FAR
    neighbor = (row, high) if neighboring == "add_or_remove" else ((row, low), (row, high))
    tight = steps is not None or epsilon == max(EPSILONS)
    return Case(estimator, rows, y, neighboring, tight, neighbor)


def registry_case(entry, epsilon, neighboring):
    estimator = clone(entry.estimator).set_params(epsilon=epsilon, neighboring=neighboring)
    X, y = registry.rows_for(entry, N_ROWS)
    return Case(estimator, X, y, neighboring, replaced=entry.name in registry.SEARCHES)


def _classifier(classes):
    return registry.declared("DPLogisticRegression", max_iter=3, classes=classes).estimator


def _regressor():
    return registry.declared("DPRidge", max_iter=3).estimator


def _scaler():
    return registry.declared("DPStandardScaler").estimator


def _columns():
    return ColumnTransformer([("a", _scaler(), [0, 1]), ("b", _scaler(), [1, 2])])


@dataclass(frozen=True)
class Composition:
    """A composition by scikit-learn, with its data.

    Parameters
    ----------
    estimator : estimator
    kind : {"labels", "numbers", "outputs"}
        What the targets are: three labels, numbers, two numbers each.
    counts : dict
        Public counts that the cost depends on.
    replaced : bool
        As in `Case`.
    """

    estimator: Any
    kind: str
    counts: dict[str, int] = field(default_factory=dict)
    replaced: bool = False


COMPOSITIONS = {
    "Pipeline": Composition(make_pipeline(_scaler(), _classifier([0, 1, 2])), "labels"),
    "ColumnTransformer": Composition(make_pipeline(_columns(), _regressor()), "numbers"),
    "VotingClassifier": Composition(
        VotingClassifier([("a", _classifier([0, 1, 2])), ("b", _classifier([0, 1, 2]))]), "labels"
    ),
    "OneVsRestClassifier": Composition(
        OneVsRestClassifier(_classifier([0, 1])), "labels", {"n_classes": 3}
    ),
    "MultiOutputRegressor": Composition(
        MultiOutputRegressor(_regressor()), "outputs", {"n_outputs": 2}
    ),
    "BaggingRegressor": Composition(
        BaggingRegressor(_regressor(), n_estimators=3, bootstrap=False), "numbers"
    ),
    "StackingRegressor": Composition(
        StackingRegressor([("a", _regressor())], _regressor(), cv=2), "numbers", {}, True
    ),
}


def composed_case(name, epsilon, neighboring):
    made = COMPOSITIONS[name]
    estimator = registry.set_deep(made.estimator, "neighboring", neighboring)
    estimator = registry.set_deep(estimator, "epsilon", epsilon)
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(N_ROWS, registry.N_FEATURES)), 0.3 * rng.normal(size=(N_ROWS, 2))
    signal = (X[:, 0] - X[:, 1])[:, None] + noise
    targets = {
        "labels": np.digitize(signal[:, 0], [-0.7, 0.7]),
        "numbers": signal[:, 0],
        "outputs": signal,
    }
    claim = privacy_cost(estimator, **made.counts)
    return Case(estimator, X, targets[made.kind], neighboring, claim=claim, replaced=made.replaced)


def canary(case: Case) -> tuple[str, Any]:
    """The record that moves an estimator the most, of those that an audit tries, and its name."""
    label = case.audit(20, 0.1).neighbor
    return label, case.record(label)


def attack(case: Case, runs: int, risk: float) -> dict[str, str]:
    """One audit, as a line of the table."""
    result = case.audit(runs, risk)
    usual = result.at_confidence(USUAL)
    bad = []
    if not result.claim.is_finite:
        bad.append("promises nothing")
    if result.is_violated:
        bad.append("above the claim")
    if case.tight and usual.recovered < LEAST_RECOVERED:
        bad.append("no power")
    return {
        "runs": str(result.n_runs),
        "claimed_mu": f"{result.claim.gaussian_mu:.4f}",
        "bound_mu": f"{result.mu:.4f}",
        "bound_mu_95": f"{usual.mu:.4f}",
        "recovered": f"{usual.recovered:.3f}",
        "bound_epsilon": f"{result.epsilon:.3f}",
        "failure": ", ".join(bad),
    }


def key(row: dict[str, str]) -> tuple[str, float, str]:
    return row["estimator"], float(row["epsilon"]), row["neighboring"]


def save(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the names to run")
    parser.add_argument("--runs", type=int, default=400, help="fits per audit")
    parser.add_argument("--csv", type=Path, help="file for the results, written after each audit")
    parser.add_argument(
        "--resume", action="store_true", help="keep what the file has, add the rest"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [(name, make) for name, make in cases() if options.only in name]
    jobs = [(n, make, e, r) for n, make in chosen for r in RELATIONS for e in EPSILONS]
    # Two bounds each. The same for an interrupted run and the one that resumes it.
    risk = FALSE_ALARM / (2 * len(jobs))
    rows: list[dict[str, str]] = []
    wanted = {(name, epsilon, relation) for name, _, epsilon, relation in jobs}
    if options.resume:
        with options.csv.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if key(row) in wanted]
    done = set(map(key, rows))
    jobs = [job for job in jobs if (job[0], *job[2:]) not in done]
    canaries: dict[tuple[str, str], tuple[str, Any]] = {}
    start = time.monotonic()
    print(f"{'estimator':44s} eps relation       claimed  bound  at 95%  share")
    for number, (name, make, epsilon, relation) in enumerate(jobs, start=1):
        case = make(epsilon, relation)
        label = "the worst case"
        if case.neighbor is None:
            if (name, relation) not in canaries:
                canaries[name, relation] = canary(make(FINDING, relation))
            label, case.neighbor = canaries[name, relation]
        row = attack(case, options.runs, risk)
        rows.append(
            {
                "estimator": name,
                "epsilon": f"{epsilon:g}",
                "neighboring": relation,
                "canary": label,
                **row,
            }
        )
        print(
            f"{name:44s} {epsilon:3g} {relation:14s} {float(row['claimed_mu']):7.3f} "
            f"{float(row['bound_mu']):6.3f} {float(row['bound_mu_95']):7.3f} "
            f"{float(row['recovered']):6.2f}  {row['failure']}",
            flush=True,
        )
        if options.csv:
            save(options.csv, rows)
        minutes = (time.monotonic() - start) / 60
        print(f"\r{number}/{len(jobs)} after {minutes:.0f} min ", end="", file=sys.stderr)
    failures = [row for row in rows if row["failure"]]
    print(f"{len(rows)} audits, {len(failures)} failures")
    for row in failures:
        print(f"{row['estimator']} at {row['epsilon']}, {row['neighboring']}: {row['failure']}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
