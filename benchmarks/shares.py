"""How a `PrivacyBudget` should divide its total in a pipeline, over a vote and over a stack.

Run: ``python benchmarks/shares.py [--epsilon E ...] [--only KIND] [--sets NAME ...]``. Mean test
AUC over real data sets and random splits, features privately standardised in every member, for
several rules of dividing mu^2 among members, their scalers, and the last estimator of a stack.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from _tables import load, names
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyBudget

SETS = ["spambase", "credit_default_taiwan", "adult", "bank_marketing"]


def member(C):
    """A scaler and a model."""
    model = DPLogisticRegression(C=C, classes=[0, 1])
    return Pipeline([("s", DPStandardScaler()), ("m", model)])


def vote():
    """Three members."""
    members = [(name, member(C)) for name, C in zip("abc", (0.1, 1.0, 10.0), strict=True)]
    return VotingClassifier(members, voting="soft")


def stack():
    """Two members, three folds."""
    members = [(name, member(C)) for name, C in zip("ab", (0.1, 10.0), strict=True)]
    return StackingClassifier(members, DPLogisticRegression(classes=[0, 1]), cv=KFold(3))


def shares(names, scaler, last=0.0):
    """Equal members, a share of each for its scaler, and one of all for the last estimator."""
    each = (1.0 - last) / len(names)
    found = {f"{name}__s": each * scaler for name in names}
    found |= {f"{name}__m": each * (1.0 - scaler) for name in names}
    return found | ({"final_estimator": last} if last else {})


RULES = {
    "alone: a tenth for the scaler": (lambda: member(1.0), {"s": 1, "m": 9}),
    "alone: three tenths for the scaler": (lambda: member(1.0), {"s": 3, "m": 7}),
    "vote: the default": (vote, None),
    "vote: .05 of a member for its scaler": (vote, shares("abc", 0.05)),
    "vote: .1 of a member for its scaler": (vote, shares("abc", 0.1)),
    "stack: the default": (stack, None),
    "stack: .05 for the last": (stack, shares("ab", 0.3, 0.05)),
    "stack: a third for the last": (stack, shares("ab", 0.3, 1 / 3)),
    "stack: half for the last": (stack, shares("ab", 0.3, 0.5)),
}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--only", choices=["alone", "vote", "stack"], default="")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=names("binary"))
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=12_000, help="of every set, at most")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = {}
    for table in filter(None, (load(name, options.data) for name in options.sets)):
        X, y = table.encoded, table.y
        for train, test in table.splits(options.splits):
            train = train[: options.rows]
            for epsilon in options.epsilon:
                chosen = [rule for rule in RULES if rule.startswith(options.only)]
                for rule in chosen * options.draws:
                    make, divided = RULES[rule]
                    model = PrivacyBudget(make(), epsilon=epsilon, shares=divided)
                    scores = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
                    found.setdefault((epsilon, rule), []).append(roc_auc_score(y[test], scores))
    for (epsilon, rule), scores in sorted(found.items()):
        print(f"epsilon {epsilon:<4g} {rule:<38} {np.mean(scores):.4f}  (least {min(scores):.3f})")


if __name__ == "__main__":
    main()
