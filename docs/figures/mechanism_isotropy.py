"""Isotropic noise in many dimensions: every direction is alike, the length concentrates."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi, norm

from skdp import GaussianMechanism
from skdp.accounting import gdp_mu

COLOURS = ["#1b3a57", "#2f7f86", "#9fbf8f", "#e07a3f"]
figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.7), layout="constrained")

# Noise as skdp draws it: the release of a vector of zeros.
d, draws = 500, 4000
mechanism = GaussianMechanism(epsilon=1.0, sensitivity=1.0, n_releases=draws)
mechanism.fit(np.zeros((1, d)))
noise = np.stack([mechanism.release(np.zeros(d)) for _ in range(draws)]) / mechanism.sigma_
directions = {
    "first coordinate": np.eye(d)[0],
    "main diagonal": np.full(d, d**-0.5),
    "a slope: (1, 2, 3, ...)": np.arange(1, d + 1) / np.linalg.norm(np.arange(1, d + 1)),
}
grid = np.linspace(-4, 4, 200)
for (name, direction), colour in zip(directions.items(), COLOURS, strict=False):
    axes[0].hist(
        noise @ direction, 40, (-4, 4), density=True, histtype="step", color=colour, label=name
    )
axes[0].plot(grid, norm.pdf(grid), color=COLOURS[-1], lw=2, label="N(0, 1)")
axes[0].set(xlabel=r"noise along a direction, in $\sigma$", yticks=[], ylim=(0, 0.62))
axes[0].set_title(f"All directions are alike (d = {d})", fontsize=11)
axes[0].legend(fontsize=8, frameon=False, loc="upper center", ncols=2)

lengths = np.linspace(0, 2.5, 1000)
for d_, colour in zip([2, 10, 100, 1000], COLOURS, strict=True):
    root = np.sqrt(d_)
    density = chi.pdf(lengths * root, d_)
    axes[1].plot(lengths, density / density.max(), color=colour, label=f"d = {d_}")
axes[1].set(xlabel=r"length of the noise, in $\sigma\sqrt{d}$", yticks=[], ylim=(0, 1.1))
axes[1].set_title("Its length concentrates", fontsize=11)
axes[1].legend(fontsize=8, frameon=False)

dimensions = np.geomspace(1, 1e4, 100)
sigma = 1 / gdp_mu(1.0, 1e-5)
axes[2].plot(dimensions, sigma * np.sqrt(dimensions), color=COLOURS[0], label="Gaussian")
axes[2].plot(dimensions, np.sqrt(2) * dimensions, color=COLOURS[3], label="Laplace")
axes[2].set(xscale="log", yscale="log", xlabel="dimension d", ylabel="length of the noise")
axes[2].set_title("What it takes to hide vectors of length 1", fontsize=11)
axes[2].legend(fontsize=8, frameon=False)

for axis in axes:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.2)
