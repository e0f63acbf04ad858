"""Coverage of 95% confidence intervals on simulated data, where the true coefficients are known.

Run: ``python benchmarks/intervals.py [--models M ...] [--designs D ...] [--rows N ...] [--columns D
...] [--epsilon E ...] [--fits K]``. Every fit has new rows, targets and noise. Printed for each
setting: the share of all coefficients (with the intercept) that their interval holds, with its
standard error over fits; the lowest share of a single coefficient; the share that intervals of
the same width around the coefficients themselves would hold; the median width over that of the
twin on the same data (in standard errors); and the share of fits that came with a warning.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from scipy.special import expit, ndtri

from skdp import DPHuberRegressor, DPLinearRegression, DPLogisticRegression
from skdp.exceptions import UtilityWarning

DELTA = 1e-6
ERROR = 0.7  # standard deviation of regression errors


def rows(design, n, d, rng):
    """Features of mean 0 and variance 1."""
    X = rng.normal(size=(n, d))
    if design == "correlated":  # 0.5 between any two
        return np.sqrt(0.5) * (X + rng.normal(size=(n, 1)))
    if design == "heavy":  # Student's t with 3 degrees of freedom
        return rng.standard_t(3, size=(n, d)) / np.sqrt(3.0)
    if design == "mixed":  # a third binary, a third heavy-tailed
        third = d // 3
        p = np.linspace(0.1, 0.5, third)
        X[:, :third] = ((rng.random((n, third)) < p) - p) / np.sqrt(p * (1.0 - p))
        X[:, third : 2 * third] = rng.standard_t(5, size=(n, third)) * np.sqrt(3 / 5)
    return X


def truth(d, n_classes=2):
    """Coefficients and intercepts; the linear predictor has a standard deviation of about 0.8."""
    coef = np.resize([1.0, -0.7, 0.4, 0.0, 0.5], d) * 0.6 * np.sqrt(5 / d)
    if n_classes == 2:
        return coef, 0.3
    coef = np.array([np.roll(coef, k) for k in range(n_classes)])
    intercept = np.linspace(-0.5, 0.5, n_classes)
    return coef - coef.mean(axis=0), intercept - intercept.mean()


def fitted(model, design, n, d, epsilon, rng, settings):
    """A private fit, the true coefficients, and standard errors without privacy."""
    X = rows(design, n, d, rng)
    if model in ("logistic", "softmax"):
        n_classes = 2 if model == "logistic" else 3
        coef, intercept = truth(d, n_classes)
        scores = X @ coef.T + intercept
        if n_classes == 2:
            y = (rng.random(n) < expit(scores)).astype(int)
            weight = expit(scores) * expit(-scores)
        else:
            y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
            weight = np.full(n, np.nan)
        private = DPLogisticRegression(epsilon, DELTA, C=1e3, classes=range(n_classes))
    else:
        coef, intercept = truth(d)
        errors = ERROR * rng.normal(size=n)
        if model == "skewed":
            errors = ERROR * (rng.exponential(size=n) - 1.0)
        y = X @ coef + intercept + errors
        weight = np.full(n, ERROR**-2)
        cls = DPHuberRegressor if model == "huber" else DPLinearRegression
        private = cls(epsilon, DELTA, y_bounds=(-3.3, 3.9))
    design_matrix = np.column_stack([X, np.ones(n)])
    information = design_matrix.T @ (design_matrix * weight[:, None])
    if np.isnan(weight).any():
        classical = np.nan
    else:
        classical = np.sqrt(np.linalg.inv(information).diagonal())
    return private.set_params(**settings).fit(X, y), np.append(coef, intercept), classical


def measure(model, design, n, d, epsilon, n_fits, settings, level=0.95):
    """Print a line for a setting."""
    held, plain, widths, standard, warned, spent = [], [], [], [], 0, 0.0
    for number in range(n_fits):
        rng = np.random.default_rng([number, n, d])
        private, true, classical = fitted(model, design, n, d, epsilon, rng, settings)
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UtilityWarning)
            try:
                interval = private.confidence_interval(level)
            except ValueError:
                print(f"{model:9} {design:10} {n:7} {d:3} {epsilon:4g}  refused", flush=True)
                return
        spent += time.perf_counter() - start
        warned += bool(caught)
        ends = np.vstack([interval.coef.reshape(-1, 2), interval.intercept.reshape(-1, 2)])
        found = np.append(private.coef_, private.intercept_)
        half = np.diff(ends)[:, 0] / 2.0
        held.append((ends[:, 0] <= true) & (true <= ends[:, 1]))
        plain.append(np.abs(found - true) <= half)
        widths.append(np.median(half / ndtri(0.5 + level / 2.0) / classical))
        standard.append((ends.mean(axis=1) - true) / half * ndtri(0.5 + level / 2.0))
    held, standard = np.array(held), np.array(standard)
    error = held.mean(axis=1).std() / np.sqrt(n_fits)
    print(
        f"{model:9} {design:10} {n:7} {d:3} {epsilon:4g}  {held.mean():.3f} +- {error:.3f}"
        f"  lowest {held.mean(axis=0).min():.2f}  uncorrected {np.mean(plain):.2f}"
        f"  width {np.median(widths):5.2f}  bias {np.abs(standard.mean(axis=0)).max():.2f}"
        f"  spread {standard.std(axis=0).mean():.2f}"
        f"  warned {warned / n_fits:.2f}  {spent / n_fits:.2f} s",
        flush=True,
    )


def main():
    """Measure the settings of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=["logistic", "squared", "huber", "softmax"])
    parser.add_argument("--designs", nargs="*", default=["normal", "correlated", "mixed"])
    parser.add_argument("--rows", nargs="*", type=int, default=[2_000, 10_000, 100_000])
    parser.add_argument("--columns", nargs="*", type=int, default=[5, 20])
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--clip-norm", type=float, default=None)
    parser.add_argument("--feature-bound", type=float, default=None)
    parser.add_argument("--fits", type=int, default=60)
    asked = parser.parse_args()
    settings = {"clip_norm": asked.clip_norm, "feature_bound": asked.feature_bound}
    for model in asked.models:
        for design in asked.designs:
            for n in asked.rows:
                for d in asked.columns:
                    for epsilon in asked.epsilon:
                        measure(model, design, n, d, epsilon, asked.fits, settings)


if __name__ == "__main__":
    sys.exit(main())
