"""Private choice from a grid of settings."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ParameterGrid, ShuffleSplit

from skdp._validation import Interval
from skdp.accounting import PrivacyCost
from skdp.cost._search import distinct_prices
from skdp.model_selection._search import DPSearch, Settings

__all__ = ["DPGridSearchCV"]


class DPGridSearchCV(DPSearch):
    """Choose the best settings from a grid and fit with them, all for one stated privacy cost.

    A random part of the rows is set aside. Candidates are trained on the others, with little
    budget each, and scored on the part; the one whose noisy score is best is fitted to all rows
    with most of the budget. There are no folds: one split serves best when every use of a record
    has a price.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline or anything else that a `PrivacyBudget` can hold. What
        its steps have as `epsilon`, `delta` and `neighboring` is not used.
    param_grid : dict or list of dict
        As in `GridSearchCV`. Budgets cannot be searched over.
    epsilon : float or PrivacyCost, default=1.0
        Total budget: of the training of all candidates, of the choice and of the last fit.
        ``inf``: no noise; candidates and the last fit are scikit-learn's.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    scoring : str, default=None
        ``"accuracy"``, ``"neg_log_loss"``, ``"neg_brier_score"``, ``"roc_auc"`` (two classes),
        ``"neg_mean_absolute_error"`` or ``"neg_mean_squared_error"``. None: log loss for
        classifiers with probabilities, accuracy for others, the squared error for regressors.
    y_bounds : (float, float) or list of such, default=None
        Public bounds of numeric targets, for scores of errors. None: those that `estimator` has.
    max_candidates : int or None, default=32
        From a larger grid that many candidates are drawn at random. None: all are tried. Of 32
        candidates one is among the best tenth of the grid with probability 97%.
    search_share : float, default=0.2
        Share of mu^2 that the training of the candidates, and their scores, get; the rest is for
        the last fit.
    validation_fraction : float, default=0.25
        Part of the rows that candidates are scored on.
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
    best_estimator_ : estimator
        The chosen candidate, fitted to all rows.
    best_params_ : dict
        Its settings.
    best_score_ : float
        Its noisy score: of the small fit, on the rows set aside. The largest of many noisy numbers
        is too high more often than not.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of str to array or list
        Released values only: ``params`` and ``param_...``, noisy ``mean_test_score`` and
        ``rank_test_score``.
    candidate_cost_ : PrivacyCost
        Budget of the training of each candidate.
    score_noise_ : float
        Standard deviation of the noise in each score; for ``"roc_auc"`` if both classes are
        equally frequent.
    scoring_ : str
        Name of the score.
    plan_ : Plan
        Of the scores: rows that are scored on, number of candidates, noise.
    releases_ : tuple of Release
        The release of the scores. Those of the last fit are in `best_estimator_`.
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
        By `fit`, before the data are touched: if a step learns without privacy, if a budget is
        among the settings, or if a score needs bounds of the targets that nobody has given. An
        error in the fit of a candidate is an error of the search.

    See Also
    --------
    DPRandomizedSearchCV : Draws candidates from distributions.
    PrivacyBudget : A stated total without a search.

    Notes
    -----
    **Privacy.** Of a total mu the search gets ``mu_s = mu sqrt(search_share)``, the last fit
    ``mu sqrt(1 - search_share)``. Which rows are set aside depends on their places only. Each of K
    candidates is trained on the other rows with ``mu_s / sqrt(K)``, and all K scores, as one
    vector of sums to which a record adds between -1/2 and 1/2 each, are released with
    ``mu_s``: a record takes part in the one or in the other, so that the search costs it ``mu_s``
    [1]_. The choice follows from the released scores. Log loss counts per record up to 3 (more
    for more than two classes: that of guessing is added), an error up to half of the width of
    `y_bounds`; what cannot be scored counts as worst. Whether a fit ends in an error may depend on
    the data, and so may its running time.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPGridSearchCV, DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> grid = {"C": [1e-6, 1.0], "max_iter": [None, 30]}
    >>> search = DPGridSearchCV(model, grid, epsilon=8.0).fit(scale(X), y)
    >>> search.best_params_["C"]
    1.0
    >>> search.privacy_cost_
    PrivacyCost(mu=1.66603, epsilon=8 at delta=1e-05, neighboring='add_or_remove')
    """

    _parameter_constraints: dict[str, Any] = {
        **DPSearch._parameter_constraints,
        "param_grid": [dict, list],
        "max_candidates": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        scoring: str | None = None,
        y_bounds: Any = None,
        max_candidates: int | None = 32,
        search_share: float = 0.2,
        validation_fraction: float = 0.25,
        neighboring: str = "add_or_remove",
        n_jobs: int | None = None,
        search_random_state: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.scoring = scoring
        self.y_bounds = y_bounds
        self.max_candidates = max_candidates
        self.search_share = search_share
        self.validation_fraction = validation_fraction
        self.neighboring = neighboring
        self.n_jobs = n_jobs
        self.search_random_state = search_random_state
        self.random_state = random_state

    def _possible(self) -> list[Settings]:
        return distinct_prices(self.estimator, self.param_grid)

    def _drawn(self, rng: Any) -> list[Settings]:
        grid = ParameterGrid(self.param_grid)
        if self.max_candidates is None or len(grid) <= self.max_candidates:
            return list(grid)
        chosen = rng.choice(len(grid), self.max_candidates, replace=False)
        return [grid[int(place)] for place in np.sort(chosen)]

    def _twin(self, cv: ShuffleSplit) -> GridSearchCV:
        return GridSearchCV(
            self.estimator, self.param_grid, scoring=self.scoring, n_jobs=self.n_jobs, cv=cv
        )
