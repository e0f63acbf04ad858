"""
GridSearchCV over privacy settings, and what the search costs
=============================================================

Privacy settings are parameters like any other, so ``GridSearchCV`` can run over them. It fits
many models on the same records, though, and all of these fits are paid for. This example looks at
both sides: which settings are good, and what it costs to find out.
"""

# %%
# A search over epsilon and the clip norm
# ---------------------------------------
#
# ``clip_norm`` bounds what one record may contribute to a gradient. A small one means little
# noise and a short stride; a large one lets hard records speak up, and the noise too. The
# default, ``None``, is chosen by a plan from the public shape of the problem.
#
# ``KFold`` on purpose: with stratified folds one changed label would move other records around.

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline

from skdp import DPLogisticRegression, DPStandardScaler, privacy_cost

X, y = load_digits(return_X_y=True)
pipeline = Pipeline(
    [
        ("scaler", DPStandardScaler(epsilon=0.5, bounds=(0, 16))),
        ("model", DPLogisticRegression(classes=range(10))),
    ]
)
epsilons = [0.3, 1.0, 3.0, 10.0]
clip_norms = [0.03, 0.1, 0.3, 1.0]
search = GridSearchCV(
    pipeline,
    {"model__epsilon": epsilons, "model__clip_norm": clip_norms},
    cv=KFold(3, shuffle=True, random_state=0),
).fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")

# %%
# The scores, laid out as a table: the best clip norm grows with the budget.

import matplotlib.pyplot as plt

scores = np.empty((len(epsilons), len(clip_norms)))
for params, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    place = epsilons.index(params["model__epsilon"]), clip_norms.index(params["model__clip_norm"])
    scores[place] = score

figure, axis = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
image = axis.imshow(scores, cmap="YlGnBu", vmin=0.6, vmax=1, aspect="auto")
for (i, j), score in np.ndenumerate(scores):
    best = score == scores[i].max()
    axis.text(
        j,
        i,
        f"{score:.2f}",
        ha="center",
        va="center",
        color="white" if score > 0.8 else "black",
        weight="bold" if best else "normal",
    )
    if best:
        axis.add_patch(
            plt.Rectangle((j - 0.48, i - 0.46), 0.96, 0.92, fill=False, ec="#e07a3f", lw=2.5)
        )
axis.set_xticks(range(len(clip_norms)), [f"{c:g}" for c in clip_norms])
axis.set_yticks(range(len(epsilons)), [f"{e:g}" for e in epsilons])
axis.set(xlabel="clip_norm", ylabel="epsilon of the model")
axis.set_title("Accuracy on digits, 3 folds; boxed: the best of its row", fontsize=11)
figure.colorbar(image, ax=axis, shrink=0.85)

# %%
# What the search costs
# ---------------------
#
# Every candidate is fitted on every training set, and with 3 folds a record is in 2 of them; the
# refit comes on top. Costs add up in squares of mu. :func:`~skdp.privacy_cost` does it for the
# whole search, scaler included, before or after the fit:

one = privacy_cost(search.best_estimator_)
total = privacy_cost(search)
print(f"the best model alone: epsilon {one.epsilon():6.2f}  (mu {one.mu:.2f})")
print(f"the whole search:     epsilon {total.epsilon():6.2f}  (mu {total.mu:.2f})")

# %%
# The expensive candidates dominate. So a search is planned from its total: the
# :class:`~skdp.PrivacyBudget` around it divides what is stated over all fits. The more one wants
# to try, the less is left for each.

from skdp import PrivacyBudget

for tried in ([None], [0.1, 0.3], [0.03, 0.1, 0.3, 1.0]):
    planned = PrivacyBudget(
        GridSearchCV(pipeline, {"model__clip_norm": tried}, cv=KFold(3)), epsilon=3.0
    )
    part = planned.allocate()["estimator__model"]
    print(
        f"{len(tried)} candidates within epsilon 3 in all: epsilon {part.epsilon():.2f} for a model"
    )

# %%
# Two things the total does not cover, and its assumptions say so: scores are computed from raw
# data, and so is the choice that follows from them. Where that matters, choose on public data of
# the same kind, or stay with the plan.

for assumption in total.assumptions:
    print("-", assumption)
