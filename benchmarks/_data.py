"""Generated data that every peer, in whatever environment, makes alike (numpy is all it needs)."""

import numpy as np


def standardised(n, d, seed=0):
    """Standardised features, a binary label and a numeric target of known bounds (-6, 6)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signal = X @ np.random.default_rng(d).normal(size=d) / np.sqrt(d)
    labels = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * signal))).astype(np.int64)
    target = np.clip(signal + 0.5 * rng.normal(size=n), -6.0, 6.0)
    return X, labels, target
