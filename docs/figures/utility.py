"""Gap to the non-private model against epsilon, from the results of benchmarks/utility.py."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

MODELS = {
    "skdp": ("#e07a3f", "-", 2.4),
    "skdp, gradient descent": ("#e07a3f", ":", 1.4),
    "objective perturbation": ("#1b3a57", "-", 1.4),
    "objective perturbation, clipped loss": ("#1b3a57", "--", 1.4),
    "boosted adassp": ("#2f7f86", "--", 1.4),
    "adassp": ("#2f7f86", "-", 1.4),
    "dp-ebm": ("#9fbf8f", "-", 1.4),
    "diffprivlib": ("0.6", "-", 1.4),
}
PANELS = [
    ("auc", "binary", "AUC, {} binary sets", 0.3),
    ("log_loss", "binary", "log loss, {} binary sets", 1.0),
    ("r2", "regression", "R2, {} regression sets", 1.0),
]
LINEAR = 0.01  # the scale is linear below, logarithmic above

results = pd.read_csv("../data/utility.csv")
results = results[(results.group == "aims") & np.isfinite(results.epsilon)]
figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.6), layout="constrained")
for axis, (metric, task, title, top) in zip(axes, PANELS, strict=True):
    rows = results[(results.metric == metric) & (results.task == task)]
    for model, (colour, style, width) in MODELS.items():
        means = rows[rows.model == model].groupby("epsilon").gap.mean()
        if len(means) and means.min() < top:
            axis.plot(means.index, means, style, color=colour, lw=width, marker=".", label=model)
    axis.axhline(0.0, color="0.3", lw=0.8)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=LINEAR)
    axis.set(ylim=(-LINEAR, top), xlabel=r"$\varepsilon$")
    ticks = [t for t in (-0.005, 0, 0.005, 0.01, 0.03, 0.1, 0.3, 1.0) if t <= top]
    axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axis.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axis.minorticks_off()
    axis.set_title(title.format(rows.table.nunique()), fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)
axes[0].set_ylabel("mean gap to the non-private model")
handles = {label: h for a in axes for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
figure.legend(
    handles.values(), handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False
)
