"""Share of the claimed mu that audits proved to be lost, from the results of `make audit`."""

import matplotlib.pyplot as plt
import pandas as pd

COLOURS = {0.5: "#9fbf8f", 1.0: "#2f7f86", 4.0: "#e07a3f"}
TITLES = {"add_or_remove": "with and without a record", "replace": "one record for another"}

results = pd.read_csv("../data/audit.csv")
results["kind"] = results.estimator.str.partition("-")[0]
results["share"] = results.bound_mu / results.claimed_mu
kinds = list(results.kind.unique())[::-1]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 8.5), sharey=True, layout="constrained")
for axis, (relation, title) in zip(axes, TITLES.items(), strict=True):
    for shift, (epsilon, colour) in zip((-0.22, 0.0, 0.22), COLOURS.items(), strict=True):
        rows = results[(results.neighboring == relation) & (results.epsilon == epsilon)]
        places = rows.kind.map(kinds.index) + shift
        axis.plot(rows.share, places, "o", ms=3.5, color=colour, label=f"epsilon = {epsilon:g}")
    axis.axvline(1.0, color="0.3", lw=1.0)
    axis.set(title=title, xlabel="proven share of the claimed mu", xlim=(-0.03, 1.1))
    axis.set_yticks(range(len(kinds)), kinds, fontsize=8)
    axis.grid(alpha=0.2)
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylim(-0.7, len(kinds) - 0.3)
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
