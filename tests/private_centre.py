"""A tiny private transformer, for tests of what is built around transformers."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

from skdp.base import PrivateEstimator
from skdp.plan import Plan, ProblemShape


class PrivateCentre(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Centres columns at 0, which takes no look at the data but is charged all the same."""

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        with_std=True,
        neighboring="add_or_remove",
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.neighboring = neighboring
        self.random_state = random_state
        self.with_std = with_std

    def plan(self, n_samples, n_features, n_outputs=1):
        return Plan(ProblemShape(n_samples, n_features), self._check_parameters())

    def fit(self, X, y=None):
        X = validate_data(self, X)
        self.plan_ = self.plan(*X.shape)
        self.privacy_cost_ = self.planned_cost()
        return self

    def transform(self, X):
        return np.asarray(validate_data(self, X, reset=False), dtype=np.float64)

    def inverse_transform(self, X):
        return np.array(X)

    def make_non_private(self):
        return StandardScaler(with_std=self.with_std)
