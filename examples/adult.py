"""Adult census income, from the raw table to a private model and its report, nothing declared.

Run: ``python examples/adult.py [adult.csv.gz]``. Without a file the table is fetched from OpenML.
The file has a header with the names of the columns and a last column ``income``.
"""

import sys
import warnings

import pandas as pd
from sklearn.datasets import fetch_openml
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skdp import (
    DPLogisticRegression,
    DPTableVectorizer,
    PrivacyBudget,
    non_private,
    privacy_report,
)
from skdp.exceptions import PrivacyLeakWarning


def adult(path=None):
    """Features and whether the income is above 50,000."""
    if path is None:
        table = fetch_openml("adult", version=2, as_frame=True).frame
        target = table.pop("class")
    else:
        table = pd.read_csv(path)
        target = table.pop("income")
    return table, target.astype(str).str.strip().str.startswith(">50K").astype(int)


def main():
    """Fit at several budgets, and print the report of one."""
    X, y = adult(*sys.argv[1:2])
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    # The types of the columns are taken as public, which the report lists.
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    pipeline = make_pipeline(DPTableVectorizer(), DPLogisticRegression(classes=[0, 1]))
    models = {"without privacy": non_private(pipeline).fit(X_train, y_train)}
    for epsilon in (3.0, 0.3, 1.0):
        models[f"epsilon {epsilon:g}"] = PrivacyBudget(pipeline, epsilon).fit(X_train, y_train)
    for name, model in models.items():
        area = roc_auc_score(y_test, model.decision_function(X_test))
        print(f"{name:16} AUC {area:.4f}  accuracy {model.score(X_test, y_test):.4f}")
    print(privacy_report(model))


if __name__ == "__main__":
    main()
