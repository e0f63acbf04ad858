"""A stated total for a whole pipeline: `PrivacyBudget`."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from math import inf
from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdp._validation import PRIVACY_CONSTRAINTS, Interval, check_budget, check_parameters
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.base import PrivateEstimator
from skdp.budget._counts import check_counts
from skdp.budget._delegate import DelegatingMixin, inner_has
from skdp.budget._errors import guarded
from skdp.budget._shares import (
    default_shares,
    is_share,
    may_fail,
    parameter,
    set_budgets,
    taken_apart,
)
from skdp.cost import cost_parts, privacy_cost
from skdp.exceptions import PrivacyBudgetError, PrivacyWarning
from skdp.twins import register_twin

__all__ = ["PrivacyBudget"]


def _within(budget: PrivacyCost, spent: PrivacyCost) -> PrivacyCost:
    """The budget if it was kept to, else what was spent; with what the steps assume."""
    return budget.with_assumptions(*spent.assumptions) if budget.covers(spent) else spent


class PrivacyBudget(DelegatingMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a pipeline, or any estimator with private steps, to a stated total privacy cost.

    A clone of `estimator` is fitted in which the budget of every private step is set: to a part of
    the total, such that all of them compose to it and never to more. What the steps themselves
    have as `epsilon`, `delta` and `neighboring` is not used; a fit warns when they were given.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or a pipeline, `ColumnTransformer`, search and so on made of private
        and of free steps (see `privacy_cost`).
    epsilon : float or PrivacyCost, default=1.0
        Total budget of a fit. ``inf`` fits everything without privacy.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    shares : dict of str to float, default=None
        Share of mu^2 for every private step, by the step's name as in ``set_params``, such as
        ``{"scaler": 1, "columns__num__scaler": 1, "model": 8}``; only proportions matter. None: a
        tenth for each step that prepares features, three tenths if it has to find the bounds of
        numbers, a quarter for a `DPTableVectorizer` (half at most for all of them), the rest for
        the model.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others. Set on all steps.
    n_classes, n_outputs, n_features : int, default=None
        Public counts that say how often a step is fitted where one model is fitted per class or
        output, or features are eliminated (see `privacy_cost`). A fit on data with more classes or
        outputs is an error.
    random_state : int, RandomState instance or None, default=None
        None: the noise of each step is what its own `random_state` makes it. An int is set on all
        private steps: the noise is then reproducible, which is *not private* towards whoever knows
        it.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone: its steps have `coef_`, `releases_`, `plan_` and so on.
    privacy_cost_ : PrivacyCost
        The stated total, with all that the steps assume. More than the total if the fitted
        steps released more since, as a `GaussianMechanism` does when it transforms again.
    classes_ : ndarray of shape (n_classes,)
        The labels, if `estimator` is a classifier.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        By `fit`, before the data are touched: if a step learns without privacy, if `shares` do
        not fit the private steps, or if steps set budgets that cannot be changed.

    See Also
    --------
    privacy_cost : What any estimator costs.

    Notes
    -----
    **Privacy.** A fit is exactly mu-Gaussian DP [1]_ with the mu of the total: a step with share s
    gets ``mu * sqrt(s)``, rounded down, and the squares add up. Where a step has to find
    categories, a tenth of `delta` is set aside as the delta0 of all such steps, and mu is made for
    the rest: ``delta0 + delta(epsilon; mu) <= delta``; an `epsilon` that is a `PrivacyCost` must
    have a delta0 then. Steps that release nothing get nothing. A step that is fitted several times,
    in a search, gets its share divided by the number of its fits. `score` compares predictions with
    labels and is not private. A fit that breaks off leaves nothing, of an earlier one either.
    Messages of errors that arise inside quote no values of the data; whether there is an error,
    and a warning of a free step, may depend on them.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import DPLogisticRegression, PrivacyBudget
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipeline = make_pipeline(Normalizer(), DPLogisticRegression(classes=[0, 1], feature_norm=1))
    >>> model = PrivacyBudget(pipeline, epsilon=2.0, delta=1e-5).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    >>> model.privacy_cost_
    PrivacyCost(mu=0.501552, epsilon=2 at delta=1e-05, neighboring='add_or_remove')
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": "no_validation",
        "epsilon": PRIVACY_CONSTRAINTS["epsilon"],
        "delta": PRIVACY_CONSTRAINTS["delta"],
        "shares": [None, dict],
        "neighboring": PRIVACY_CONSTRAINTS["neighboring"],
        "n_classes": [None, Interval(Integral, 1, None, closed="left")],
        "n_outputs": [None, Interval(Integral, 1, None, closed="left")],
        "n_features": [None, Interval(Integral, 1, None, closed="left")],
        "random_state": PRIVACY_CONSTRAINTS["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        shares: dict[str, float] | None = None,
        neighboring: str = "add_or_remove",
        n_classes: int | None = None,
        n_outputs: int | None = None,
        n_features: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.shares = shares
        self.neighboring = neighboring
        self.n_classes = n_classes
        self.n_outputs = n_outputs
        self.n_features = n_features
        self.random_state = random_state

    # ---- planning ----

    def allocate(self) -> dict[str, PrivacyCost]:
        """Budget of one fit of every private step, computed without data.

        Returns
        -------
        budgets : dict of str to PrivacyCost
            By name of the step, as in ``set_params``; the empty name is `estimator` itself.

        Raises
        ------
        TypeError, ValueError
            As `fit`.

        Examples
        --------
        >>> from sklearn.pipeline import Pipeline
        >>> from skdp import DPRidge, GaussianMechanism, PrivacyBudget
        >>> pipeline = Pipeline([("noise", GaussianMechanism()), ("model", DPRidge())])
        >>> budget = PrivacyBudget(pipeline, epsilon=8.0, shares={"noise": 3, "model": 1})
        >>> for name, part in budget.allocate().items():
        ...     print(name, round(part.epsilon(), 2))
        noise 6.73
        model 3.55
        """
        check_parameters(self)
        steps, fits = self._private_steps()
        budget = self._total(steps)
        shares = self._checked_shares(steps)
        failing = [name for name, step in steps.items() if may_fail(step)]
        gaussian, failure = taken_apart(budget, len(failing))
        parts = dict(zip(steps, gaussian.split(shares[name] for name in steps), strict=True))
        for name in failing:
            parts[name] += failure
        return {name: part.split([1.0] * fits[name])[0] for name, part in parts.items()}

    def planned_cost(self) -> PrivacyCost:
        """Privacy cost that a fit would have with the present parameters.

        Returns
        -------
        cost : PrivacyCost
            The stated total, with all that the steps assume.

        Raises
        ------
        TypeError, ValueError
            As `fit`.
        """
        configured = self.configured()
        return _within(
            self._total(self._private_steps()[0]), privacy_cost(configured, **self._counts())
        )

    def needs_delta0(self) -> bool:
        """Whether a step needs a part of delta for itself, beside that of Gaussian noise.

        Returns
        -------
        needed : bool
            True where categories are to be found, by an encoder.
        """
        return any(map(may_fail, self._private_steps()[0].values()))

    def _total(self, steps: dict[str, Any]) -> PrivacyCost:
        """The stated total; a part of delta is set aside if and only if a step needs it."""
        failure = any(map(may_fail, steps.values()))
        return check_budget(self.epsilon, self.delta, self.neighboring, failure=failure)

    def _private_steps(self) -> tuple[dict[str, Any], dict[str, int]]:
        """The steps whose budget can be set, by name, and how often each is fitted."""
        parts = cost_parts(self._related(), **self._counts())
        params = self.estimator.get_params(deep=True)
        steps: dict[str, Any] = {}
        fits: dict[str, int] = {}
        unlimited = getattr(self.epsilon, "gaussian_mu", self.epsilon) == inf
        for part in parts:
            name, step = part.path, part.estimator
            if part.cost.is_finite and not part.is_charged and not unlimited:
                continue  # it would have no use for a share
            if hasattr(type(step), "planned_cost") and parameter(name, "epsilon") in params:
                steps.setdefault(name, step)
                fits[name] = fits.get(name, 0) + part.times
            elif not part.cost.is_finite:
                raise ValueError(f"no budget can be kept: {'; '.join(part.cost.assumptions)}")
            elif part.is_charged and part.cost.gaussian_mu == 0.0 and step is None:
                raise ValueError(
                    "how often bags drawn with replacement hold a record is left to chance, which "
                    "has no place in a budget; set bootstrap=False"
                )
            elif part.is_charged:
                raise ValueError(
                    f"the cost of step {name!r} ({type(step).__name__}) cannot be set, so it has "
                    "no place in a budget"
                )
        if not steps:
            raise ValueError("estimator has no private step that a budget could be spent on")
        return steps, fits

    def _related(self) -> Any:
        """An unfitted clone whose private steps have the relation of the budget.

        What is fitted is a clone: what the steps have learned before does not count. How often a
        record is used can depend on the relation. Budgets inside get the counts too.
        """
        estimator = clone(self.estimator, safe=False)
        if not hasattr(estimator, "get_params"):
            return estimator
        params = estimator.get_params(deep=True)
        settings = {"neighboring": self.neighboring, **self._counts()}
        for name, value in {"": estimator, **params}.items():
            if not hasattr(type(value), "planned_cost"):
                continue
            for setting, new in settings.items():
                full = parameter(name, setting)
                if full in params and (setting == "neighboring" or params[full] is None):
                    estimator.set_params(**{full: new})
        return estimator

    def _checked_shares(self, steps: dict[str, Any]) -> dict[str, float]:
        if self.shares is None:
            return default_shares(steps)
        for name, share in self.shares.items():
            if not is_share(share):
                raise ValueError(
                    f"shares must be positive and finite numbers, got {share!r} for {name!r}"
                )
        if set(self.shares) != set(steps):
            raise ValueError(
                f"shares must name each private step once: {sorted(steps)}, got "
                f"{sorted(self.shares, key=str)}"
            )
        return {name: float(share) for name, share in self.shares.items()}

    def configured(self) -> Any:
        """Return what `fit` fits: an unfitted clone of the estimator with its budgets set.

        Returns
        -------
        estimator : estimator
            Whose private steps have parts of the total as their `epsilon`.

        Raises
        ------
        TypeError, ValueError
            As `fit`.
        """
        budgets = self.allocate()
        estimator = self._related()
        params = estimator.get_params(deep=True)
        for step, budget in budgets.items():
            settings: dict[str, Any] = {"epsilon": budget}
            if self.random_state is not None:
                settings["random_state"] = self.random_state
            named = {parameter(step, name): value for name, value in settings.items()}
            estimator.set_params(**{name: named[name] for name in named if name in params})
        if not self._total(self._private_steps()[0]).covers(
            privacy_cost(estimator, **self._counts())
        ):
            raise ValueError(
                "the steps would cost more than the budget: is epsilon, or a private step, among "
                "the parameters that a search inside the budget varies?"
            )
        return estimator

    def _counts(self) -> dict[str, int | None]:
        names = ("n_classes", "n_outputs", "n_features")
        return {name: getattr(self, name) for name in names}

    # ---- fit ----

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> PrivacyBudget:
        """Set the budget of every private step of a clone of `estimator`, and fit it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as the inner estimator wants them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        **params : dict
            Passed on to the inner ``fit``; routed, when metadata routing is enabled.

        Returns
        -------
        self : PrivacyBudget
        """
        estimator = self._checked("fit", params)
        check_counts(y, self.n_classes, self.n_outputs)
        self._forget()
        guarded(estimator.fit, X, y, **self._routed("fit", params))
        return self._keep(estimator)

    @available_if(inner_has("fit_transform"))
    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None, **params: Any) -> Any:
        """Fit, and transform the same X in one go: it is released once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as the inner estimator wants them.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        **params : dict
            Passed on to the inner ``fit_transform``; routed, when metadata routing is enabled.

        Returns
        -------
        X_new : array-like of shape (n_samples, n_features_new)
        """
        estimator = self._checked("fit_transform", params)
        check_counts(y, self.n_classes, self.n_outputs)
        routed = self._routed("fit_transform", params)
        self._forget()
        transformed = guarded(estimator.fit_transform, X, y, **routed)
        self._keep(estimator)
        return transformed

    def _checked(self, method: str, params: dict[str, Any]) -> Any:
        """`configured`, before the data are touched; warns about budgets that are not used."""
        estimator = self.configured()
        owners = {"": self.estimator, **self.estimator.get_params(deep=True)}
        for name in params:
            path, _, parameter = name.rpartition("__")
            kind = type(owners.get(path))
            if issubclass(kind, PrivateEstimator) and not has_fit_parameter(kind, parameter):
                raise TypeError(
                    f"{kind.__name__}.{method} takes no {parameter!r}: what one record can change "
                    "is calibrated for records that count alike"
                )
        # A delta that is that of the budget as well is no misunderstanding.
        ignored = [
            name
            for name in set_budgets(self.estimator, **self._counts())
            if name.split("__")[-1] == "epsilon" or owners[name] != self.delta
        ]
        if ignored:
            warn(
                f"{', '.join(ignored)} of the estimator in a PrivacyBudget are not used: the "
                "budgets of its steps are parts of its total; set, or search over, `epsilon`, "
                "`delta` and `shares` of the PrivacyBudget",
                PrivacyWarning,
            )
        return estimator

    def _forget(self) -> None:
        """Drop an earlier fit: its cost is not that of one that breaks off after its releases."""
        self.__dict__.pop("estimator_", None)

    def _keep(self, estimator: Any) -> PrivacyBudget:
        budget = self._total(self._private_steps()[0])
        # With more classes than were declared, say: what was released too much is not kept.
        if not budget.covers(privacy_cost(estimator, **self._counts())):
            raise PrivacyBudgetError(
                "the fit would have cost more than was planned, and nothing of it was kept: are "
                "n_classes, n_outputs and n_features what the data have, and does every class "
                "have records?"
            )
        self.estimator_ = estimator
        self._budget = budget
        return self

    @property
    def privacy_cost_(self) -> PrivacyCost:
        """The stated total, or what was spent if that is more by now."""
        check_is_fitted(self)
        return _within(self._budget, privacy_cost(self.estimator_, **self._counts()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        epsilon: Any = self.epsilon
        steps = [self.estimator, *self.estimator.get_params(deep=True).values()]
        tags.non_deterministic = (
            getattr(epsilon, "gaussian_mu", epsilon) != inf
            and self.random_state is None
            and any(hasattr(s, "__sklearn_tags__") and get_tags(s).non_deterministic for s in steps)
        )
        return tags


register_twin(PrivacyBudget, "estimator")
