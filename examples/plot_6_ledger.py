"""
A total for everything that is fitted
=====================================

One analysis is many fits: a first model, a second with other features, a last one that is
shipped. Each sees the same records. A ledger is a file with a total; it writes down what a fit will
cost before the data are touched, and refuses what would exceed the total.
"""

# %%
# Make it once
# ------------
#
# The total is fixed when the file is made, before anything is known about the data.

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

from skdp import PrivacyLedger

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
path = Path(tempfile.mkdtemp()) / "diabetes.ledger"
ledger = PrivacyLedger(path, dataset="diabetes, 442 patients", epsilon=3.0, delta=1e-5)
ledger

# %%
# Fit through it
# --------------
#
# The limits of the ten measurements, and of the progression of the disease, are public.

from sklearn.pipeline import make_pipeline

from skdp import DPRidge, DPStandardScaler, PrivacyBudget

low = np.array([18.0, 1.0, 15.0, 50.0, 80.0, 30.0, 15.0, 1.0, 3.0, 50.0])
high = np.array([90.0, 2.0, 50.0, 150.0, 350.0, 300.0, 120.0, 12.0, 7.0, 150.0])
pipeline = make_pipeline(DPStandardScaler(bounds=(low, high)), DPRidge(y_bounds=(0.0, 350.0)))

first = ledger.fit(PrivacyBudget(pipeline, epsilon=1.0), X, y)
print(f"{ledger.remaining().epsilon():.2f} is left")

# %%
# Epsilons do not add up, squares of mu do: after a fit at 1, more than 2 is left of 3.
#
# A search is one charge, for all of its fits. What its cost does not cover has to be accepted, by a
# part of the text: its scores and its choice are not private.

from sklearn.model_selection import GridSearchCV, KFold

from skdp.exceptions import PrivacyBudgetError

search = GridSearchCV(DPRidge(epsilon=0.3, y_bounds=(0, 350)), {"alpha": [1.0, 30.0]}, cv=KFold(3))
standardised = first.estimator_[0].transform(X)
try:
    ledger.fit(search, standardised, y)
except PrivacyBudgetError as error:
    print(error)
ledger.fit(search, standardised, y, accept=["choice of GridSearchCV"])
print(f"{ledger.remaining().epsilon():.2f} is left")

# %%
# Spend the rest
# --------------
#
# What remains is a cost, and can be given as a budget: it is granted to the last bit. After that,
# every fit is refused, in this process or any other.

last = ledger.fit(PrivacyBudget(pipeline, epsilon=ledger.remaining()), X, y)
try:
    ledger.fit(PrivacyBudget(pipeline, epsilon=0.1), X, y)
except PrivacyBudgetError as error:
    print(error)

# %%
# The history
# -----------
#
# It holds no data: names, numeric parameters, times and costs.

ledger

# %%
# How the three charges fill the total: their mu squared are its parts.

import matplotlib.pyplot as plt

entries = ledger.history()
parts = np.array([entry.cost.mu**2 for entry in entries]) / ledger.total.mu**2
figure, axis = plt.subplots(figsize=(8, 1.9), layout="constrained")
left = 0.0
for entry, part, colour in zip(entries, parts, ["#2f7f86", "#8fb8bc", "#e07a3f"], strict=True):
    axis.barh(0, part, left=left, color=colour, edgecolor="white", linewidth=2)
    text = f"{entry.number}.\n{entry.estimator}\n$\\varepsilon$ = {entry.cost.epsilon():.2f}"
    axis.text(left + part / 2, 0, text, ha="center", va="center", fontsize=6.5)
    left += part
axis.axvline(1.0, color="0.2", lw=1.5)
axis.set(xlim=(0, 1.02), yticks=[], xlabel=r"share of the total $\mu^2$ ($\varepsilon$ = 3)")
axis.spines[["top", "right", "left"]].set_visible(False)

# %%
# The file is still there tomorrow: ``PrivacyLedger(path)`` opens it again.

ledger.close()
with PrivacyLedger(path) as again:
    print(again)
