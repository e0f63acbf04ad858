"""Noise against epsilon, delta and sensitivity: the exact calibration and the classic one."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

from skdp.accounting import gdp_delta, gdp_mu

COLOURS = ["#1b3a57", "#2f7f86", "#e07a3f"]


def classic(epsilon, delta):
    return np.sqrt(2 * np.log(1.25 / delta)) / epsilon


figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.7), layout="constrained")

epsilons = np.geomspace(0.1, 30, 120)
for delta, colour in zip([1e-9, 1e-5, 1e-2], COLOURS[::-1], strict=True):
    exact = [1 / gdp_mu(epsilon, delta) for epsilon in epsilons]
    axes[0].plot(epsilons, exact, color=colour, label=rf"$\delta = 10^{{{np.log10(delta):.0f}}}$")
delta = 1e-5
proved = epsilons < 1
noise = classic(epsilons, delta)
axes[0].plot(epsilons[proved], noise[proved], "--", color="0.3", label=r"classic, $10^{-5}$")
axes[0].plot(epsilons[~proved], noise[~proved], ":", color="0.3", label="classic, not proved")
wrong = brentq(lambda epsilon: classic(epsilon, delta) * gdp_mu(epsilon, delta) - 1, 1, 20)
axes[0].plot(wrong, classic(wrong, delta), "x", color="#b3261e", ms=8, mew=2)
axes[0].annotate(
    f"above {wrong:.2f}\nthe classic formula\nadds too little",
    (wrong, classic(wrong, delta)),
    (3.2, 7),
    fontsize=8,
    color="#b3261e",
    arrowprops={"arrowstyle": "-", "color": "#b3261e", "lw": 0.8, "shrinkB": 5},
)
axes[0].set(
    xscale="log", yscale="log", xlabel=r"$\varepsilon$", ylabel=r"noise $\sigma\,/\,\Delta$"
)
axes[0].set_title(r"Smaller $\varepsilon$: more noise", fontsize=11)
axes[0].legend(fontsize=8, frameon=False, loc="lower left")

ratios = np.linspace(0.5, 12, 200)
for epsilon, colour in zip([0.5, 1.0, 3.0], COLOURS, strict=True):
    deltas = [gdp_delta(epsilon, 1 / ratio) for ratio in ratios]
    axes[1].plot(ratios, deltas, color=colour, label=rf"$\varepsilon = {epsilon:g}$")
axes[1].set(yscale="log", ylim=(1e-20, 1), xlabel=r"noise $\sigma\,/\,\Delta$", ylabel=r"$\delta$")
axes[1].set_title(r"$\delta$ falls faster than exponentially", fontsize=11)
axes[1].legend(fontsize=8, frameon=False)

sensitivities = np.linspace(0, 10, 2)
for epsilon, colour in zip([0.5, 1.0, 3.0], COLOURS, strict=True):
    noise = sensitivities / gdp_mu(epsilon, 1e-5)
    axes[2].plot(sensitivities, noise, color=colour, label=rf"$\varepsilon = {epsilon:g}$")
axes[2].set(xlim=(0, 10), ylim=(0, 75), xlabel=r"sensitivity $\Delta$", ylabel=r"noise $\sigma$")
axes[2].set_title(r"$\Delta$ sets the unit ($\delta = 10^{-5}$)", fontsize=11)
axes[2].legend(fontsize=8, frameon=False)

for axis in axes:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)
