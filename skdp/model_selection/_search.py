"""Private choice among settings: training, scores, choice and refit for one stated total."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import threading
import warnings
from abc import ABCMeta, abstractmethod
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import ShuffleSplit, train_test_split
from sklearn.utils import check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp._validation import (
    PRIVACY_CONSTRAINTS,
    Interval,
    StrOptions,
    check_budget,
    check_parameters,
    check_seed,
    without_data,
)
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.base import SEEDED
from skdp.budget import PrivacyBudget
from skdp.budget._delegate import METHODS, DelegatingMixin, inner_has
from skdp.budget._errors import guarded
from skdp.cost import privacy_cost
from skdp.exceptions import PrivacyWarning, UtilityWarning
from skdp.model_selection._candidates import (
    check_names,
    given_to_all,
    parameter_columns,
    with_settings,
)
from skdp.model_selection._scores import SCORINGS, BoundedScore, bounded_score
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.twins import is_estimator, non_private

__all__ = ["DPSearch"]

Settings = dict[str, Any]
# Noise of a mean score, of the range that it can have, from which on the choice is a guess.
_GUESS = 0.1


class DPSearch(DelegatingMixin, MetaEstimatorMixin, BaseEstimator, metaclass=ABCMeta):
    """What the private searches share; see `DPGridSearchCV`.

    Parameters that all of them have are attributes here.
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": "no_validation",
        "epsilon": PRIVACY_CONSTRAINTS["epsilon"],
        "delta": PRIVACY_CONSTRAINTS["delta"],
        "scoring": [None, StrOptions(set(SCORINGS))],
        "y_bounds": [None, "array-like", tuple],
        "search_share": [Interval(Real, 0, 1, closed="neither")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "neighboring": PRIVACY_CONSTRAINTS["neighboring"],
        "n_jobs": [None, Integral],
        "search_random_state": ["random_state"],
        "random_state": PRIVACY_CONSTRAINTS["random_state"],
    }

    epsilon: float | PrivacyCost
    delta: float
    scoring: str | None
    y_bounds: Any
    search_share: float
    validation_fraction: float
    neighboring: str
    n_jobs: int | None
    search_random_state: Any
    random_state: Any

    # ---- candidates ----

    @abstractmethod
    def _possible(self) -> list[Settings]:
        """Settings that say what candidates can be like, for planning."""

    @abstractmethod
    def _drawn(self, rng: Any) -> list[Settings]:
        """The candidates of a fit: drawn without a look at data."""

    @abstractmethod
    def _twin(self, cv: ShuffleSplit) -> Any:
        """Scikit-learn's search over the same settings of the same estimator."""

    def _models(
        self, candidates: list[Settings], budget: Any, seed: int | None
    ) -> list[PrivacyBudget]:
        """The estimator with the settings of each candidate, and a budget."""
        for settings in candidates:
            check_names(self.estimator, settings)
        return [
            PrivacyBudget(
                with_settings(self.estimator, settings),
                epsilon=budget,
                delta=self.delta,
                neighboring=self.neighboring,
                random_state=seed,
            )
            for settings in candidates
        ]

    # ---- planning ----

    def _planned_models(self) -> list[PrivacyBudget]:
        check_parameters(self)
        if not is_estimator(self.estimator):
            raise TypeError(f"estimator must be an estimator, got {self.estimator!r}")
        seed = None if self.random_state is None else 0
        return self._models(self._possible(), self.epsilon, seed)

    def needs_delta0(self) -> bool:
        """Whether a candidate needs a part of delta for itself, beside that of Gaussian noise.

        Returns
        -------
        needed : bool
            True where categories are to be found, by an encoder.
        """
        return any(model.needs_delta0() for model in self._planned_models())

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            The stated total, with all that the candidates assume.

        Raises
        ------
        TypeError, ValueError
            As `fit`, before data are touched.
        """
        models = self._planned_models()
        failure = any(model.needs_delta0() for model in models)
        total = check_budget(self.epsilon, self.delta, self.neighboring, failure=failure)
        if not total.is_finite:
            return total.with_assumptions(
                f"{type(self).__name__} has an infinite epsilon: no privacy"
            )
        for model in models:
            model.set_params(epsilon=_usable(total, model))
        texts = {text for model in models for text in model.planned_cost().assumptions}
        seeded = () if self.random_state is None else (SEEDED,)
        return total.with_assumptions(*texts, *seeded)

    def _scoring(self, estimators: list[Any]) -> str:
        """Name of the score, from public facts."""
        if self.scoring is not None:
            return self.scoring
        if all(map(is_classifier, estimators)):
            probable = all(hasattr(estimator, "predict_proba") for estimator in estimators)
            return "neg_log_loss" if probable else "accuracy"
        if all(map(is_regressor, estimators)):
            return "neg_mean_squared_error"
        raise ValueError(
            "estimator is neither a classifier nor a regressor: how to score it must be said by "
            f"scoring, one of {SCORINGS}"
        )

    def _score(self, estimators: list[Any]) -> BoundedScore:
        bounds = given_to_all(estimators, "y_bounds") if self.y_bounds is None else self.y_bounds
        classes = given_to_all(estimators, "classes")
        return bounded_score(
            self._scoring(estimators),
            y_bounds=bounds,
            n_classes=None if classes is None else len(classes),
        )

    def make_non_private(self) -> Any:
        """Scikit-learn's search over the twin of the estimator, with one split too."""
        cv = ShuffleSplit(
            1, test_size=self.validation_fraction, random_state=self.search_random_state
        )
        return non_private(self._twin(cv))

    # ---- fit ----

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> DPSearch:
        """Try the candidates, choose by noisy scores, and fit the chosen one to all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as the inner estimator wants them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.

        Returns
        -------
        self : object
        """
        total = self.planned_cost()
        seed = check_seed(self.random_state)
        rng = check_random_state(
            seed if self.search_random_state is None else self.search_random_state
        )
        candidates = self._drawn(rng)
        search, last = total.split([self.search_share, 1.0 - self.search_share])
        # A record is in the training rows of all candidates, or in the scores of all: never in
        # both, so that either may cost it all of `search`.
        models = self._models(candidates, search, seed)
        one = search.split([1.0] * len(models))[0]
        for model in models:
            model.set_params(epsilon=_usable(one, model)).configured()
        score = self._score([model.estimator for model in models])
        training, validation = _split_rows(X, y, self.validation_fraction, rng)
        n_rows = _length(validation[0])
        plan = self._plan(score, n_rows, len(models), search)

        # The cost of an earlier fit is not that of one that breaks off after its releases.
        for attribute in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, attribute)
        run = Parallel(n_jobs=self.n_jobs)
        sums = run(delayed(_sums)(model, score, training, validation) for model in models)
        released = score.together(sums, n_rows, self.neighboring)
        if plan.releases:
            noise = NoiseCore(plan.releases, seed=seed, owner=type(self).__name__)
            noisy = noise.release(released)
            releases, score_noise = noise.finish(), score.noise(plan.releases[0].sigma, n_rows)
        else:
            noisy, releases, score_noise = released.total.to_float(score.unit), (), 0.0
        scores = score.scores(noisy, n_rows)
        chosen = models[int(np.argmax(scores))]
        chosen.set_params(epsilon=_usable(last, chosen)).fit(X, y)
        self._budgets = (total, search, last)
        self.releases_, self.score_noise_ = releases, score_noise
        self.candidate_cost_ = one
        self.plan_ = plan
        return self._keep(candidates, scores, score.name, chosen.estimator_)

    def _plan(
        self, score: BoundedScore, n_rows: int, n_candidates: int, budget: PrivacyCost
    ) -> Plan:
        """The release of the scores; warns where its noise drowns them."""
        shape = ProblemShape(n_rows, n_candidates)
        if not budget.is_finite:
            return Plan(shape, budget)
        sensitivity = score.sensitivity(n_candidates, n_rows, self.neighboring)
        released = PlannedRelease("scores", sensitivity, budget.gaussian_mu)
        if (relative := score.relative_noise(released.sigma, n_rows)) > _GUESS:
            warn(
                f"the noise of the scores is {relative:.2g} of their range, with {n_rows} rows to "
                f"score {n_candidates} candidates on: the choice is a guess; try fewer candidates, "
                "or spend a larger budget",
                UtilityWarning,
            )
        return Plan(shape, budget, (released,))

    def _keep(
        self, candidates: list[Settings], scores: NDArray[np.float64], name: str, model: Any
    ) -> DPSearch:
        self.cv_results_ = {
            **parameter_columns(candidates),
            "params": candidates,
            "mean_test_score": scores,
            "rank_test_score": rankdata(-scores, method="min").astype(np.int32),
        }
        self.scoring_ = name
        self.best_index_ = int(np.argmax(scores))
        self.best_score_ = float(scores[self.best_index_])
        self.best_params_ = candidates[self.best_index_]
        self.best_estimator_ = model
        return self

    # ---- the chosen estimator ----

    @property
    def estimator_(self) -> Any:
        """The chosen estimator, fitted; another name of `best_estimator_`."""
        return self.best_estimator_

    @available_if(inner_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> float:
        """Score of the chosen estimator by `scoring`, or by its own if that is None; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True targets.
        **params : dict
            Passed on or routed.

        Returns
        -------
        score : float
            As scikit-learn has it: losses of single records have no bound.
        """
        check_is_fitted(self)
        if self.scoring is None:
            return super().score(X, y, **params)
        scorer = get_scorer(self.scoring)
        return guarded(scorer, self.best_estimator_, X, y, **self._routed("score", params))

    @property
    def privacy_cost_(self) -> PrivacyCost:
        """The stated total, or what was spent if that is more by now."""
        check_is_fitted(self)
        total, search, last = self._budgets
        spent = privacy_cost(self.best_estimator_)
        if last.covers(spent):
            return total.with_assumptions(*spent.assumptions)
        return PrivacyCost.compose([search.with_assumptions(*total.assumptions), spent])

    def get_metadata_routing(self) -> MetadataRouter:
        """Where metadata go: those of predictions to the same method; `fit` takes none.

        Returns
        -------
        routing : MetadataRouter
        """
        mapping = MethodMapping()
        for method in METHODS:
            if not method.startswith("fit"):
                mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        epsilon: Any = self.epsilon
        unlimited = getattr(epsilon, "gaussian_mu", epsilon) == inf
        tags.non_deterministic = not unlimited and self.random_state is None
        return tags


def _usable(budget: PrivacyCost, model: PrivacyBudget) -> PrivacyCost:
    """The budget, without the delta0 that only some candidates have a use for."""
    if model.needs_delta0():
        return budget
    kind = (budget.neighboring, budget.unit, budget.reference_delta)
    return PrivacyCost(budget.gaussian_mu, *kind, budget.assumptions)


def _split_rows(
    X: Any, y: Any, fraction: float, rng: Any
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Training and validation rows, by their places alone."""
    arrays = without_data(indexable, *([X] if y is None else [X, y]))
    if (n_rows := _length(arrays[0])) < 2:
        raise ValueError(f"n_samples={n_rows}: a search needs at least 2 rows, to train and score")
    parts = without_data(train_test_split, *arrays, test_size=fraction, random_state=rng)
    targets = parts[2:] if y is not None else (None, None)
    return (parts[0], targets[0]), (parts[1], targets[1])


def _length(rows: Any) -> int:
    return int(rows.shape[0] if hasattr(rows, "shape") else len(rows))


def _sums(model: PrivacyBudget, score: BoundedScore, training: Any, validation: Any) -> Any:
    """Fit a candidate on the one part; its exact score sums on the other, which stay inside.

    Candidates are expected to be poor, and the chosen one warns again. Python can silence warnings
    in the main thread of a process only.
    """
    if threading.current_thread() is not threading.main_thread():
        return score.sums(model.fit(*training), *validation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return score.sums(model.fit(*training), *validation)
