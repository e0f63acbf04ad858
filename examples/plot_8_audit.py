"""
Attack an estimator of your own
===============================

A proof says that an estimator is private; an attack can show that it is not, because of a slip that
the proof did not see. Here is an estimator with a common one, and what finds it.

It releases the mean of a table through `GaussianMechanism`, which adds noise for a stated
sensitivity. With every row clipped to a length of 1, one row changes the sum by 1 at most. The
clip is a parameter, so that it can be wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from skdp import GaussianMechanism
from skdp.audit import AuditDisplay, audit_epsilon


class PrivateCentring(TransformerMixin, BaseEstimator):
    """Subtracts a private mean."""

    def __init__(self, epsilon=1.0, delta=1e-5, clip="row"):
        self.epsilon = epsilon
        self.delta = delta
        self.clip = clip

    def _mechanism(self):
        return GaussianMechanism(epsilon=self.epsilon, delta=self.delta, sensitivity=1.0)

    def planned_cost(self):
        return self._mechanism().planned_cost()

    def fit(self, X, y=None):
        mechanism = self._mechanism().fit(X)  # refuses what are no finite numbers, quoting none
        X = np.asarray(X, dtype=float)
        if self.clip == "row":
            X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        else:  # the slip: with d columns a row is now as long as the root of d
            X = X.clip(-1.0, 1.0)
        mean = mechanism.release(X.sum(axis=0)) / len(X)
        self.privacy_cost_ = mechanism.privacy_cost_
        self.mean_ = mean
        return self

    def transform(self, X):
        return np.asarray(X, dtype=float) - self.mean_


# %%
# The audit fits the estimator many times, to data with one extreme record and without it, learns
# to tell the results apart on a part of the fits, and counts its errors on the others. Too few
# errors refute the promise, up to the stated confidence. Few rows make it sharp, because they
# move the result less, and a large epsilon does, because the attack is easier: a sensitivity that
# is wrong is wrong at every epsilon.

X = np.zeros((10, 4))
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for axis, clip in zip(axes, ["row", "column"], strict=True):
    result = audit_epsilon(
        PrivateCentring(epsilon=4.0, clip=clip), X, n_runs=3000, confidence=0.999
    )
    print(f"clip={clip!r}: promised mu {result.claim.mu:.3f}, at least {result.mu:.3f} is lost")
    print("    refuted" if result.is_violated else "    not refuted")
    AuditDisplay.from_result(result, ax=axis, name=f"clip={clip!r}")
    axis.set_title("refuted" if result.is_violated else "within the promise")

# %%
# An attack that does no better than the dashed line, but for chance, proves nothing by itself;
# one that comes up to it, as on the left, shows that this attack would have seen a promise that
# is a little too low.
#
# Quick checks look for other slips: noise that is shared or can be replayed, statistics kept on
# the model, costs that are forgotten, a clip that is missing on one path. In a test suite,
# `parametrize_with_privacy_checks` makes a test of each of them.

from skdp.estimator_checks import check_estimator_privacy

results = check_estimator_privacy(PrivateCentring())
print(f"{sum(result.status == 'passed' for result in results)} checks passed")
