"""Scores over a range of privacy budgets, beside those of the non-private twin."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, nan
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_val_score
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from skdp._progress import with_progress
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.base import PrivateEstimator
from skdp.budget import PrivacyBudget, set_budgets
from skdp.cost import privacy_cost
from skdp.twins import non_private

__all__ = ["PrivacyUtilityCurve", "privacy_utility_curve"]

# A score, and the warnings on the way to it.
Outcome = tuple[float, list[tuple[type[Warning], str]]]


@dataclass(frozen=True, eq=False)
class PrivacyUtilityCurve:
    """Scores for every privacy budget, split and noise draw.

    Attributes
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Total epsilon of a fit, at `delta`, in the order given.
    test_scores : ndarray of shape (n_epsilons, n_splits, n_repeats)
        Score on the test part of every split; along the last axis only the noise differs.
    baseline_scores : ndarray of shape (n_splits,) or None
        Scores of the baseline on the same splits.
    costs : tuple of PrivacyCost
        Planned cost of one fit for every epsilon, with what it assumes.
    delta : float
        Delta of the guarantees.
    scoring : str, callable or None
        How was scored.
    score_name : str or None
        What that is called. None: after `scoring`.

    Notes
    -----
    **Privacy.** The scores are computed from the test data without noise: they are not private.
    """

    epsilons: NDArray[np.float64]
    test_scores: NDArray[np.float64]
    baseline_scores: NDArray[np.float64] | None
    costs: tuple[PrivacyCost, ...]
    delta: float
    scoring: str | Callable[..., float] | None = None
    score_name: str | None = None

    def __repr__(self) -> str:
        """State the mean score for every epsilon, and that of the baseline."""
        pairs = zip(self.epsilons, self.test_scores.mean(axis=(1, 2)), strict=True)
        means = ", ".join(f"{epsilon:g}: {score:.3g}" for epsilon, score in pairs)
        name = self.score_name or name_of_score(self.scoring)
        text = f"{name} by epsilon {{{means}}} at delta={self.delta:g}"
        if self.baseline_scores is not None:
            text += f", baseline {self.baseline_scores.mean():.3g}"
        return f"{type(self).__name__}({text})"

    @property
    def mus(self) -> NDArray[np.float64]:
        """Gaussian privacy parameter mu of one fit, for every epsilon; NaN if it is not all."""
        return np.array([nan if cost.has_pair else cost.mu for cost in self.costs])

    @property
    def sigmas(self) -> NDArray[np.float64]:
        """Noise that means the same privacy: for one release of a value of sensitivity 1."""
        return 1.0 / self.mus

    def to_frame(self) -> Any:
        """Return all scores as a table; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame of n_epsilons * n_splits * n_repeats rows
            With columns epsilon, mu, sigma, split, repeat, score and baseline, the last one for
            the same split and missing without a baseline.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        n_epsilons, n_splits, n_repeats = self.test_scores.shape
        which, split, repeat = (
            axis.ravel() for axis in np.indices((n_epsilons, n_splits, n_repeats))
        )
        baseline = np.full(n_splits, np.nan)
        if self.baseline_scores is not None:
            baseline = self.baseline_scores
        return pd.DataFrame(
            {
                "epsilon": self.epsilons[which],
                "mu": self.mus[which],
                "sigma": self.sigmas[which],
                "split": split,
                "repeat": repeat,
                "score": self.test_scores.ravel(),
                "baseline": baseline[split],
            }
        )


def privacy_utility_curve(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    epsilons: ArrayLike,
    groups: ArrayLike | None = None,
    cv: Any = None,
    n_repeats: int = 1,
    scoring: str | Callable[..., float] | None = None,
    baseline: Any = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> PrivacyUtilityCurve:
    """Score an estimator by cross-validation over a range of privacy budgets.

    Parameters
    ----------
    estimator : estimator
        A private estimator or a `PrivacyBudget`, whose `epsilon` is set; or a pipeline or
        anything else with private steps, which is wrapped in a `PrivacyBudget` with the delta and
        the neighbouring relation of its steps. Epsilon is always that of a *whole* fit.
    X : array-like of shape (n_samples, n_features)
        Data.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        Targets.
    epsilons : array-like of shape (n_epsilons,)
        Positive, finite budgets.
    groups : array-like of shape (n_samples,), default=None
        Groups, for splitters that want them.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn, except that an int or None (5 folds) shuffles. All budgets and the
        baseline get the same splits.
    n_repeats : int, default=1
        Number of fits, with fresh noise each, for every split and budget.
    scoring : str, callable or None, default=None
        One score, as in `cross_val_score`; None: the estimator's own.
    baseline : "auto", estimator or None, default="auto"
        What to compare with, once for every split. ``"auto"``: the non-private twin of the whole
        estimator. None: nothing.
    n_jobs : int, default=None
        Number of fits at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffled splits, which are public. The noise is fresh, unless `estimator`
        itself has a seed; then all repeats are equal.
    verbose : int, default=0
        Above 0 a progress bar is written to the standard error.

    Returns
    -------
    curve : PrivacyUtilityCurve
        Scores, costs, and a method that makes a table.

    Raises
    ------
    ValueError
        If a budget or another parameter is out of range, or a step learns without privacy.

    See Also
    --------
    PrivacyUtilityDisplay : Draws the curve.
    non_private : The default baseline.

    Notes
    -----
    **Privacy.** This is a study on data that you may see in full, to choose a budget or a method
    before the real data are touched. Like ``score`` and ``cv_results_``, its result is not
    private: scores are exact functions of the test data, and every budget spends anew.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression, privacy_utility_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> curve = privacy_utility_curve(model, scale(X), y, epsilons=[0.1, 10.0], cv=3, n_repeats=2)
    >>> curve.test_scores.shape
    (2, 3, 2)
    >>> poor, good = curve.test_scores.mean(axis=(1, 2))
    >>> bool(poor < good < curve.baseline_scores.mean() + 0.01)
    True
    """
    budgets = _checked_epsilons(epsilons)
    if not _is_count(n_repeats):
        raise ValueError(f"n_repeats must be an integer of at least 1, got {n_repeats!r}")
    budgeted = _with_total(estimator)
    models = [clone(budgeted).set_params(epsilon=epsilon) for epsilon in budgets.tolist()]
    costs = tuple(model.planned_cost() for model in models)  # refuses non-private steps
    if isinstance(baseline, str):
        if baseline != "auto":
            raise ValueError(f"baseline must be 'auto', an estimator or None, got {baseline!r}")
        baseline = non_private(budgeted)
    scorer = check_scoring(models[0], scoring=scoring)
    splits = _splits(budgeted, X, y, groups, cv, random_state)

    # Repeats innermost, budgets outermost, the baseline at the end.
    tasks = [(model, split) for model in models for split in splits for _ in range(n_repeats)]
    if baseline is not None:
        tasks += [(baseline, split) for split in splits]
    run = Parallel(n_jobs=n_jobs, return_as="generator")
    results = run(delayed(_score)(model, X, y, scorer, split) for model, split in tasks)
    outcomes = list(with_progress(results, len(tasks)) if verbose else results)
    scores = np.array([score for score, _ in outcomes])
    for category, text in dict.fromkeys(found for _, caught in outcomes for found in caught):
        warn(text, category)
    n_private = len(models) * len(splits) * n_repeats
    return PrivacyUtilityCurve(
        epsilons=budgets,
        test_scores=scores[:n_private].reshape(len(models), len(splits), n_repeats),
        baseline_scores=None if baseline is None else scores[n_private:],
        costs=costs,
        delta=costs[0].reference_delta,
        scoring=scoring,
        score_name=name_of_score(scoring, budgeted),
    )


def name_of_score(scoring: Any, estimator: Any = None) -> str:
    """Name of a score, as it is written in `scoring` or by what the estimator's own one is.

    Parameters
    ----------
    scoring : str, callable or None
        As in `privacy_utility_curve`.
    estimator : estimator, default=None
        What is scored.
    """
    if scoring is None and estimator is not None:
        own = "R2" if is_regressor(estimator) else "score"
        return "accuracy" if is_classifier(estimator) else own
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")


def _checked_epsilons(epsilons: ArrayLike) -> NDArray[np.float64]:
    budgets = np.array(epsilons, dtype=np.float64)
    if budgets.ndim != 1 or not len(budgets):
        raise ValueError("epsilons must be a list of at least one number")
    if not all(isfinite(epsilon) and epsilon > 0.0 for epsilon in budgets):
        raise ValueError("epsilons must be positive and finite; the baseline stands for infinity")
    return budgets


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1


def _with_total(estimator: Any) -> Any:
    """The estimator itself if its `epsilon` is that of a whole fit, else a budget around it."""
    if isinstance(estimator, PrivateEstimator | PrivacyBudget):
        return estimator
    cost = privacy_cost(estimator)
    estimator = clone(estimator).set_params(**set_budgets(estimator))  # replaced by the total
    return PrivacyBudget(estimator, delta=cost.reference_delta, neighboring=cost.neighboring)


def _splits(
    estimator: Any, X: Any, y: Any, groups: Any, cv: Any, random_state: Any
) -> list[tuple[Any, Any]]:
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    if cv is None or isinstance(cv, Integral):
        kind = StratifiedKFold if isinstance(splitter, StratifiedKFold) else KFold
        rng = check_random_state(random_state)
        splitter = kind(splitter.n_splits, shuffle=True, random_state=rng)
    return list(splitter.split(X, y, groups))


def _score(estimator: Any, X: Any, y: Any, scorer: Any, split: tuple[Any, Any]) -> Outcome:
    """Fit a clone on the one part, score it on the other; the score, and what was warned about.

    A hundred fits would say the same a hundred times, from as many places. Python can catch
    warnings in the main thread of a process only.
    """

    def run() -> float:
        return cross_val_score(estimator, X, y, scoring=scorer, cv=[split], error_score="raise")[0]

    if threading.current_thread() is not threading.main_thread():
        return run(), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        score = run()
    return score, [(warning.category, str(warning.message)) for warning in caught]
