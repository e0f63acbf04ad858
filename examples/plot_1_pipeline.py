"""
A private pipeline from end to end
==================================

Standardise, learn, predict, with one stated cost for everything that is learned, the scaler's
means included. The data are 569 biopsies with 30 measures of cell nuclei each, and whether the
tumour was benign.
"""

# %%
# What is public
# --------------
#
# A private scaler wants to know what range a column can have. These are round numbers that a
# pathologist could have written down before the first biopsy: limits for the mean of each
# measure, a fifth of them for its standard error, and the limits again for the largest cells.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

limits = np.array([40.0, 60.0, 300.0, 5000.0, 0.3, 1.5, 1.5, 0.4, 0.8, 0.3])
bounds = (np.zeros(30), np.concatenate([limits, limits / 5.0, limits]))

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %%
# One budget for all steps
# ------------------------
#
# The pipeline is written as always. :class:`~skdp.PrivacyBudget` sets the budget of each step so
# that they add up to the total: a tenth goes to the scaler unless you say otherwise.

from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyBudget

pipeline = make_pipeline(DPStandardScaler(bounds=bounds), DPLogisticRegression(classes=[0, 1]))
model = PrivacyBudget(pipeline, epsilon=1.0, delta=1e-5).fit(X_train, y_train)
print(model.privacy_cost_)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# What was released
# -----------------
#
# Nothing but noisy sums leaves the data. Each fitted step lists its own, with the sensitivity
# that its clipping guarantees and the noise that was added.

from itertools import groupby

for name, step in model.estimator_.steps:
    for release, group in groupby(step.releases_):
        print(
            f"{name:21} {len(list(group)):3} x {release.name:15}"
            f" sensitivity {release.sensitivity:5.2f}   sigma {release.sigma:7.2f}"
        )

# %%
# What the noise does to a model
# ------------------------------
#
# Fit the pipeline and its public twin, the same steps from scikit-learn. Every private fit is
# different; here are twenty at each of two budgets.

import matplotlib.pyplot as plt
from sklearn.metrics import roc_auc_score, roc_curve

from skdp import non_private

twin = non_private(pipeline).fit(X_train, y_train)
fits = {
    epsilon: [PrivacyBudget(pipeline, epsilon).fit(X_train, y_train) for _ in range(20)]
    for epsilon in (0.3, 3.0)
}
colours = {0.3: "#e07a3f", 3.0: "#2f7f86"}

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
grid = np.linspace(0, 1, 201)
for epsilon, models in fits.items():
    curves, areas = [], []
    for fitted in models:
        score = fitted.decision_function(X_test)
        curves.append(np.interp(grid, *roc_curve(y_test, score)[:2]))
        areas.append(roc_auc_score(y_test, score))
    label = rf"$\varepsilon$ = {epsilon:g}: AUC {np.mean(areas):.3f} $\pm$ {np.std(areas):.3f}"
    left.plot(grid, np.mean(curves, axis=0), color=colours[epsilon], lw=2, label=label)
    left.fill_between(
        grid,
        np.min(curves, axis=0),
        np.max(curves, axis=0),
        color=colours[epsilon],
        alpha=0.2,
        lw=0,
    )
score = twin.decision_function(X_test)
area = roc_auc_score(y_test, score)
left.plot(*roc_curve(y_test, score)[:2], "--", color="0.2", label=f"no privacy: AUC {area:.3f}")
left.set(xlim=(-0.01, 0.4), ylim=(0.5, 1.01), xlabel="false alarms", ylabel="found")
left.set_title("20 private fits: mean and range")
left.legend(frameon=False, loc="lower right")

order = np.argsort(-np.abs(twin[-1].coef_[0]))[:12]
places = np.arange(len(order))
for epsilon, models in fits.items():
    coefficients = np.array([fitted.estimator_[-1].coef_[0, order] for fitted in models])
    shift = 0.15 if epsilon < 1 else -0.15
    right.plot(
        coefficients.T, places + shift, ".", color=colours[epsilon], alpha=0.5, markeredgewidth=0
    )
right.plot(twin[-1].coef_[0, order], places, "|", color="0.2", ms=16, mew=2)
right.axvline(0, color="0.7", lw=0.8, zorder=0)
right.set_yticks(places, X.columns[order])
right.invert_yaxis()
right.set(
    xlabel="coefficient per standard deviation", title="Largest coefficients of the twin (bars)"
)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)

# %%
# The ranking of patients survives a strong guarantee on a few hundred records; single
# coefficients do not. Correlated columns share what they know, and the private fits share it
# differently each time.
