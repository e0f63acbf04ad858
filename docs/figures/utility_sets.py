"""Gap to the non-private model set by set, from the results of benchmarks/utility.py."""

import matplotlib.pyplot as plt
import pandas as pd

EPSILON = 1.0
MODELS = {
    "objective perturbation": ("#1b3a57", "o"),
    "objective perturbation, clipped loss": ("#1b3a57", "^"),
    "boosted adassp": ("#2f7f86", "s"),
    "skdp, gradient descent": ("#e07a3f", "x"),
    "skdp": ("#e07a3f", "D"),
}

results = pd.read_csv("../data/utility.csv")
results = results[(results.epsilon == EPSILON) & results.group.isin(["aims", "further"])]
figure, axes = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
for axis, metric, task, limits in [
    (axes[0], "auc", "binary", (-0.012, 0.06)),
    (axes[1], "r2", "regression", (-0.06, 0.14)),
]:
    gaps = results[(results.metric == metric) & (results.task == task)]
    gaps = gaps.pivot(index="table", columns="model", values="gap").sort_values("skdp")
    sizes = results.drop_duplicates("table").set_index("table")["rows"]
    for model, (colour, marker) in MODELS.items():
        if model in gaps:
            shown = gaps[model].clip(*limits)
            axis.plot(shown, range(len(gaps)), marker, color=colour, ms=6, label=model)
    axis.set_yticks(range(len(gaps)), [f"{t} ({sizes[t]:,})" for t in gaps.index], fontsize=8)
    axis.axvline(0.0, color="0.3", lw=0.8)
    margin = 0.02 * (limits[1] - limits[0])
    axis.set(xlim=(limits[0] - margin, limits[1] + margin))
    axis.locator_params(axis="x", nbins=5)
    axis.set_xlabel(f"gap in {'AUC' if metric == 'auc' else 'R2'}")
    axis.set_title(rf"{task}, $\varepsilon = {EPSILON:g}$ (rows of the set)", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)
handles = {label: h for a in axes for h, label in zip(*a.get_legend_handles_labels(), strict=True)}
figure.legend(
    handles.values(), handles, loc="outside lower center", ncols=5, fontsize=8, frameon=False
)
