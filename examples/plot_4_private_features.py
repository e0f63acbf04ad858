"""
Releasing rows: features privatised by the Gaussian mechanism
=============================================================

Sometimes it is the rows that have to leave the house, and what will be learned from them is up to
others. :class:`~skdp.GaussianMechanism` in a pipeline clips every row and adds noise to it;
whatever comes after may be any estimator. This example does that to handwritten digits, shows
which epsilon makes sense for rows (10 to 50, far larger than for a model), and how to serve clean
rows with a model that learned from noisy ones.
"""

# %%
# Noise on a row has to hide that row alone
# -----------------------------------------
#
# A digit is 64 pixels from 0 to 16. We scale them to [0, 1] by that public range, and clip rows
# to a norm of 4, which is what an image with a quarter of all pixels inked has. Both are row by
# row and learn nothing.

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdp import GaussianMechanism

X, y = load_digits(return_X_y=True)
X = X / 16.0
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %%
# At epsilon = 1 the noise in a pixel would be 15 times as large as ink: there is nothing left. A
# model hides a record among all others and can do with 1; a row has nothing to hide behind but
# noise.

import matplotlib.pyplot as plt

budgets = [1.0, 10.0, 20.0, 50.0, 200.0]
mechanisms = [GaussianMechanism(epsilon, clip_norm=4.0).fit(X_train) for epsilon in budgets]

figure, axes = plt.subplots(4, 6, figsize=(8.4, 6.2), layout="constrained")
for row, image in zip(axes, X_train[[0, 3, 5, 8]], strict=True):
    shown = [image, *(mechanism.transform(image[None])[0] for mechanism in mechanisms)]
    for axis, pixels in zip(row, shown, strict=True):
        axis.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=-0.5, vmax=1.5)
        axis.set(xticks=[], yticks=[])
axes[0, 0].set_title("original", fontsize=10)
for axis, mechanism in zip(axes[0, 1:], mechanisms, strict=True):
    axis.set_title(
        f"$\\varepsilon$ = {mechanism.epsilon:g}\n$\\sigma$ = {mechanism.sigma_:.2f}", fontsize=10
    )

# %%
# Learning from noisy rows, serving clean ones
# --------------------------------------------
#
# The pipeline below learns from noisy rows. Its ``predict`` adds noise to the rows that it is
# asked about too, since it cannot know that they need no protection. Where they need none, take
# the mechanism out of a copy of the *fitted* pipeline: nothing is learned anew.

import copy

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

from skdp import non_private, privacy_cost

epsilons = [5.0, 10.0, 20.0, 35.0, 50.0, 100.0]
draws = 5
noisy, clean = np.empty((2, len(epsilons), draws))
for i, epsilon in enumerate(epsilons):
    for j in range(draws):
        pipeline = make_pipeline(
            GaussianMechanism(epsilon, clip_norm=4.0), LinearDiscriminantAnalysis()
        ).fit(X_train, y_train)
        cost = privacy_cost(pipeline)
        noisy[i, j] = pipeline.score(X_test, y_test)
        served = copy.deepcopy(pipeline).set_params(gaussianmechanism="passthrough")
        clean[i, j] = served.score(X_test, y_test)
    print(
        f"epsilon {cost.epsilon(1e-5):5.1f}   noisy rows {noisy[i].mean():.3f}   "
        f"clean rows {clean[i].mean():.3f}"
    )

baseline = non_private(pipeline).fit(X_train, y_train).score(X_test, y_test)

figure, axis = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
axis.axhline(baseline, color="0.35", ls="--", label="learned from clean rows")
for scores, colour, label in [
    (clean, "#2f7f86", "learned from noisy rows, asked clean ones"),
    (noisy, "#e07a3f", "learned from noisy rows, asked noisy ones"),
]:
    mean, spread = scores.mean(axis=1), scores.std(axis=1)
    axis.fill_between(epsilons, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    axis.plot(epsilons, mean, "o-", color=colour, label=label)
axis.axvspan(10, 50, color="0.93", zorder=0)
axis.annotate("useful", (22, 0.115), ha="center", color="0.45")
axis.set(xscale="log", xlabel="epsilon of each row", ylabel="accuracy", ylim=(0.1, 1.0))
axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axis.minorticks_off()
axis.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
axis.spines[["top", "right"]].set_visible(False)

# %%
# What is protected, and what is not
# ----------------------------------
#
# The cost of the pipeline is that of its mechanism: what the discriminant analysis learns from
# released rows is post-processing. But it read the *labels* as they are, and the cost says so.
# Asking about the same rows once more is another release of them, and is counted, too.

for assumption in cost.assumptions:
    print("-", assumption)

# %%
# A private model at the same cost is far better than a model of private rows, since it hides a
# record among all others. Release rows when it is rows that others need.
