"""Private choice among settings drawn from distributions."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from sklearn.model_selection import (
    ParameterGrid,
    ParameterSampler,
    RandomizedSearchCV,
    ShuffleSplit,
)
from sklearn.utils import check_random_state

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.cost._search import distinct_prices
from skdp.model_selection._search import DPSearch, Settings

__all__ = ["DPRandomizedSearchCV"]


class DPRandomizedSearchCV(DPSearch):
    """Choose the best of some randomly drawn settings, all for one stated privacy cost.

    As `DPGridSearchCV`, with candidates that are drawn from distributions, which never see data.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline or anything else that a `PrivacyBudget` can hold. What
        its steps have as `epsilon`, `delta` and `neighboring` is not used.
    param_distributions : dict or list of dict
        As in `RandomizedSearchCV`: lists, or distributions with a method ``rvs``. Budgets cannot be
        searched over.
    n_iter : int, default=10
        Number of candidates.
    epsilon : float or PrivacyCost, default=1.0
        Total budget: of the training of all candidates, of the choice and of the last fit.
        ``inf``: no noise; candidates and the last fit are scikit-learn's.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    scoring, y_bounds, search_share, validation_fraction : object
        As in `DPGridSearchCV`.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others. Set on all steps.
    n_jobs : int, default=None
        Number of candidates that are trained at the same time.
    search_random_state : int, RandomState instance or None, default=None
        Draws the candidates and the split of the rows, which are public: a seed here costs no
        privacy. None: they are new for every fit, unless `random_state` is an int.
    random_state : int, RandomState instance or None, default=None
        None: noise is what the steps make it, and that of the scores is fresh. An int makes all
        noise reproducible, which is *not private* towards whoever knows it.

    Attributes
    ----------
    best_estimator_, best_params_, best_score_, best_index_, cv_results_ : object
        As of `DPGridSearchCV`.
    candidate_cost_, score_noise_, scoring_, plan_, releases_ : object
        As of `DPGridSearchCV`.
    privacy_cost_ : PrivacyCost
        The stated total, with all that the candidates assume.
    classes_ : ndarray of shape (n_classes,)
        The labels, of a classifier.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        As by `DPGridSearchCV`.

    See Also
    --------
    DPGridSearchCV : Tries the settings of a grid.

    Notes
    -----
    **Privacy.** As of `DPGridSearchCV` [1]_.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression, DPRandomizedSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> search = DPRandomizedSearchCV(model, {"C": loguniform(0.01, 10.0)}, n_iter=4, epsilon=8.0)
    >>> search.fit(scale(X), y).best_score_ > -0.5
    True
    >>> round(search.privacy_cost_.epsilon(), 6)
    8.0
    """

    _parameter_constraints: dict[str, Any] = {
        **DPSearch._parameter_constraints,
        "param_distributions": [dict, list],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        n_iter: int = 10,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        scoring: str | None = None,
        y_bounds: Any = None,
        search_share: float = 0.2,
        validation_fraction: float = 0.25,
        neighboring: str = "add_or_remove",
        n_jobs: int | None = None,
        search_random_state: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.y_bounds = y_bounds
        self.search_share = search_share
        self.validation_fraction = validation_fraction
        self.neighboring = neighboring
        self.n_jobs = n_jobs
        self.search_random_state = search_random_state
        self.random_state = random_state

    def _possible(self) -> list[Settings]:
        seed = self.search_random_state
        if isinstance(seed, Integral):  # these are the candidates of the fit
            return self._sample(check_random_state(int(seed)))
        # Some that might be drawn, and all that lists can say about the cost.
        lists = [
            {name: values for name, values in space.items() if not hasattr(values, "rvs")}
            for space in self._spaces()
        ]
        drawn = self._sample(check_random_state(0))
        return [*drawn, *distinct_prices(self.estimator, lists)]

    def _drawn(self, rng: Any) -> list[Settings]:
        return self._sample(rng)

    def _sample(self, rng: Any) -> list[Settings]:
        return list(
            ParameterSampler(self.param_distributions, self._n_candidates(), random_state=rng)
        )

    def _n_candidates(self) -> int:
        """As many as asked for, or as there are."""
        spaces = self._spaces()
        if any(hasattr(values, "rvs") for space in spaces for values in space.values()):
            return self.n_iter
        return min(self.n_iter, len(ParameterGrid(spaces)))

    def _spaces(self) -> list[Mapping[str, Any]]:
        spaces = self.param_distributions
        return [spaces] if isinstance(spaces, Mapping) else list(spaces)

    def _twin(self, cv: ShuffleSplit) -> RandomizedSearchCV:
        return RandomizedSearchCV(
            self.estimator,
            self.param_distributions,
            n_iter=self._n_candidates(),
            scoring=self.scoring,
            n_jobs=self.n_jobs,
            cv=cv,
            random_state=self.search_random_state,
        )
