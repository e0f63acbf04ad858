"""`make audit`: attack every estimator of the registry and compare with what it promises.

Every estimator, in all its settings under contract, pipelines and a search included, is audited
at several epsilons under both neighbouring relations. The run fails

- when a lower bound is above the claim, at a confidence that makes a false alarm anywhere in the
  whole run less likely than 0.1%;
- when the audits of the mechanism, and of linear models at epsilon 1 and 4, recover less than 60%
  of the claimed mu: an audit without power would prove nothing.

Usage: python tests/audits.py [--only NAME] [--runs N] [--csv FILE]
"""

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import registry
from sklearn.base import BaseEstimator, clone, is_classifier

from skdp import GaussianMechanism, privacy_cost
from skdp.audit import AuditResult, audit_epsilon

EPSILONS = (0.5, 1.0, 4.0)
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
    """One estimator to attack."""

    label: str
    estimator: Any
    X: Any
    y: Any
    tight: bool = False
    neighbors: dict[str, Any] | None = None
    claim: Any = None

    def audit(self, runs: int, risk: float) -> AuditResult:
        neighboring = self.estimator.neighboring
        return audit_epsilon(
            self.estimator,
            self.X,
            self.y,
            neighbor=(self.neighbors or {}).get(neighboring),
            n_runs=runs_for(self.claim or privacy_cost(self.estimator)) if self.tight else runs,
            confidence=1.0 - risk,
            claim=self.claim,
            neighboring=neighboring,
            n_jobs=2,
        )


FAR = 1e3


def runs_for(claim) -> int:
    """Fits after which the bound, at the usual confidence, is within 0.15 mu of the truth.

    The two error rates have standard deviations of at most 0.5 / sqrt(n) each, 2.24 of which are
    allowed for at 95%, and mu moves by at least 2.5 times as much.
    """
    counted = (2 * 2.24 * 0.5 * 2.5 / (0.15 * claim.mu)) ** 2
    return 2 * (int(counted) + 1500)


def cases() -> Iterator[tuple[str, Any]]:
    """Name and maker (of epsilon and relation) of every case."""
    yield "GaussianMechanism.release", mechanism_case
    for name in ("DPLogisticRegression", "DPRidge", "DPLinearRegression"):
        yield f"{name}-worst-case-row", lambda e, r, name=name: linear_case(name, e, r)
    for entry in registry.all_entries(registry.variants):
        # A search cannot be told its number of rows: its split would move (tests/test_search.py).
        if entry.name not in {"GaussianMechanism", *registry.SEARCHES}:
            yield str(entry), lambda e, r, entry=entry: registry_case(entry, e, r)


def mechanism_case(epsilon, neighboring):
    estimator = ReleasedSum(epsilon, neighboring)
    rows = np.zeros((N_ROWS, 1))
    claim = clone(estimator).fit(rows).privacy_cost_
    neighbors = {"add_or_remove": ([FAR], None), "replace": (([-FAR], None), ([FAR], None))}
    return Case("", estimator, rows, None, True, neighbors, claim)


def linear_case(name, epsilon, neighboring):
    """A record that is far out, or (squared loss) whose residual stays clipped all the way."""
    entry = registry.declared(name, epsilon=epsilon, neighboring=neighboring)
    rows = np.zeros((N_ROWS, 2))
    if is_classifier(entry.estimator):
        y, low, high = np.arange(N_ROWS) % 2, 0, 1
    else:
        y, low, high = np.zeros(N_ROWS), -FAR, FAR
    row = [FAR, 0.0] if is_classifier(entry.estimator) else [1.0, 0.0]
    neighbors = {"add_or_remove": (row, high), "replace": ((row, low), (row, high))}
    # At 0.5 the power would take a hundred thousand fits.
    return Case("", entry.estimator, rows, y, epsilon >= 1.0, neighbors)


def registry_case(entry, epsilon, neighboring):
    estimator = clone(entry.estimator).set_params(epsilon=epsilon, neighboring=neighboring)
    X, y = registry.rows_for(entry, N_ROWS)
    return Case("", estimator, X, y)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the names to run")
    parser.add_argument("--runs", type=int, default=1000, help="fits per audit")
    parser.add_argument("--csv", help="file for the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [(name, make) for name, make in cases() if options.only in name]
    jobs = [(n, make, e, r) for n, make in chosen for e in EPSILONS for r in RELATIONS]
    risk = FALSE_ALARM / (2 * len(jobs))
    rows, failures, start = [], [], time.monotonic()
    print(f"{'estimator':44s} eps relation       claimed  bound  at 95%  share")
    for number, (name, make, epsilon, relation) in enumerate(jobs, start=1):
        case = make(epsilon, relation)
        result = case.audit(options.runs, risk)
        usual = result.at_confidence(USUAL)
        claimed = result.claim.gaussian_mu
        bad = []
        if result.is_violated:
            bad.append("above the claim")
        if case.tight and usual.recovered < LEAST_RECOVERED:
            bad.append("no power")
        failures += [f"{name} at {epsilon} under {relation}: {text}" for text in bad]
        rows.append(
            {
                "estimator": name,
                "epsilon": epsilon,
                "neighboring": relation,
                "runs": result.n_runs,
                "claimed_mu": f"{claimed:.4f}",
                "bound_mu": f"{result.mu:.4f}",
                "bound_mu_95": f"{usual.mu:.4f}",
                "recovered": f"{usual.recovered:.3f}",
                "bound_epsilon": f"{result.epsilon:.3f}",
            }
        )
        print(
            f"{name:44s} {epsilon:3g} {relation:14s} {claimed:7.3f} {result.mu:6.3f} "
            f"{usual.mu:7.3f} {usual.recovered:6.2f}  {'; '.join(bad)}",
            flush=True,
        )
        minutes = (time.monotonic() - start) / 60
        left = minutes * (len(jobs) / number - 1)
        print(f"\r{number}/{len(jobs)}, {left:.0f} min left ", end="", file=sys.stderr)
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    print(f"{len(jobs)} audits, {len(failures)} failures")
    for text in failures:
        print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
