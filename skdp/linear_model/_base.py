"""What private linear models share: parameters, plan, and the flow of a fit."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import inf, isinf, sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from skdp._dense_rows import DenseRows
from skdp._lattice import weights_to_grid
from skdp._sparse_rows import SparseRows
from skdp._threads import Workers
from skdp._validation import Interval, StrOptions, check_features, missing_values
from skdp._warn import warn
from skdp.accounting import PrivacyCost
from skdp.base import PrivateLearner
from skdp.engine import LONG, SHORT, BoundedRows
from skdp.exceptions import UtilityWarning
from skdp.linear_model._intervals import IntervalMixin
from skdp.linear_model._sample_weight import Sizes, check_bound, find_sizes, plan_sizes
from skdp.losses import Loss
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape, relation_factor
from skdp.solvers import SOLVERS, SolverSettings, default_feature_norm
from skdp.uncertainty import ReleasedFit

__all__ = ["PrivateLinearModel"]

FloatArray = NDArray[np.float64]
_positive = Interval(Real, 0, None, closed="neither")


class PrivateLinearModel(IntervalMixin, PrivateLearner):
    """Base of linear models trained by clipped noisy gradient descent.

    Subclasses give the loss, the penalty, the targets and the public twin.
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateLearner._parameter_constraints,
        "fit_intercept": ["boolean"],
        "feature_norm": [None, _positive],
        "feature_bound": [None, Interval(Real, 0, None, closed="right")],
        "clip_norm": [None, _positive],
        "solver": [StrOptions(set(SOLVERS))],
        "max_iter": [None, Interval(Integral, 1, None, closed="left")],
        "gram_share": [None, Interval(Real, 0, 1, closed="left")],
        "ridge_floor": [None, Interval(Real, 0, None, closed="left")],
        "learning_rate": [None, Interval(Real, 0, 1e6, closed="right")],
        "scale_check_share": [Interval(Real, 0, 1, closed="left")],
        "max_sample_weight": [_positive],
        "n_rows": [None, Interval(Integral, 1, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    fit_intercept: bool
    feature_norm: float | None
    feature_bound: float | None
    clip_norm: float | None
    solver: str
    max_iter: int | None
    gram_share: float | None
    ridge_floor: float | None
    learning_rate: float | None
    scale_check_share: float
    max_sample_weight: float
    n_rows: int | None
    n_jobs: int | None

    # What simulated fits need, all of it released or public.
    _released_: ReleasedFit

    # Counts that cost `scale_check_share`, and half as much for each further one.
    _checks: tuple[str, ...] = ("row lengths",)
    # Standard deviations of a feature at which it is clipped, unless `feature_bound` is given.
    _bound_deviations: float

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep the parameters of a constructor, given as its ``locals()``, and nothing else."""
        own = {name: value for name, value in parameters.items() if name[0] != "_"}
        del own["self"]
        for name, value in own.items():
            setattr(self, name, value)

    # ---- what a subclass decides ----

    @abstractmethod
    def _loss(self, n_outputs: int) -> Loss:
        """Loss for a number of outputs."""

    @abstractmethod
    def _l2_penalty(self, unit: float = 1.0) -> float:
        """Weight of half the squared coefficients (caller's units) beside the summed loss.

        `unit` is what the targets were divided by, where that makes a difference.
        """

    def _target_releases(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        """Releases that look at the targets before the solver, and the budget left for it."""
        return (), budget

    # ---- weights ----

    def _check_parameters(self) -> PrivacyCost:
        budget = super()._check_parameters()
        check_bound(self.max_sample_weight)
        return budget

    def _plan_sizes(self, budget: PrivacyCost) -> tuple[tuple[PlannedRelease, ...], PrivacyCost]:
        """Releases that a fit with weights needs more than one without, and the budget left."""
        released, rest = plan_sizes(budget)
        return (released,), rest

    def _sizes(self, rows: BoundedRows, plan: Plan, noise: NoiseCore) -> Sizes:
        n_rows = plan.shape.n_rows
        if rows.weights is None:
            return Sizes(n_rows, n_rows)
        return find_sizes(rows.weights, noise, n_rows=n_rows, unit=self.max_sample_weight)

    # ---- plan ----

    def _shape(self, n_samples: int, n_features: int, n_outputs: int) -> ProblemShape:
        return ProblemShape(self.n_rows or n_samples, n_features, n_outputs)

    def _deviations(self, plan: Plan) -> float:
        """Standard deviations of a feature that are the default bound."""
        return self._bound_deviations

    def _entry_bound(self, plan: Plan) -> float:
        """Bound that single features are clipped to, in learning and in prediction."""
        if self.feature_bound is not None:
            return float(self.feature_bound)
        n_features = plan.shape.n_features
        return self._deviations(plan) * self._norm(n_features) / sqrt(n_features)

    def _norm(self, n_features: int) -> float:
        if self.feature_norm is None:
            return default_feature_norm(n_features)
        norm = float(self.feature_norm)
        if not (1e-150 <= norm <= 1e150):  # its square and its reciprocal are ordinary floats
            raise ValueError(f"feature_norm must be between 1e-150 and 1e150, got {norm:g}")
        return norm

    def _plan_solver(
        self, shape: ProblemShape, budget: PrivacyCost
    ) -> tuple[tuple[PlannedRelease, ...], SolverSettings]:
        """Releases of the solver, and its settings, for what is left of the budget."""
        chosen = {
            "clip_norm": self.clip_norm,
            "max_iter": self.max_iter,
            "gram_share": self.gram_share,
            "ridge_floor": self.ridge_floor,
            "learning_rate": self.learning_rate,
        }
        return SOLVERS[self.solver].plan(self._loss(shape.n_outputs), shape, budget, chosen)

    def plan(
        self, n_samples: int, n_features: int, n_outputs: int = 1, *, weighted: bool = False
    ) -> Plan:
        """All that `fit` would release, computed without data.

        Parameters
        ----------
        n_samples : int
            Number of rows; `n_rows` takes its place when given.
        n_features : int
            Number of columns of X.
        n_outputs : int, default=1
            Number of coefficient vectors: 1 for a binary classifier or one target, else the
            number of classes or targets.
        weighted : bool, default=False
            Whether `sample_weight` will be given to `fit`.

        Returns
        -------
        plan : Plan
            Releases with their sensitivity, noise and cost, and the solver's settings.
        """
        budget = self._check_parameters()
        self._norm(n_features)  # a senseless one is refused before the data are touched
        shape = self._shape(n_samples, n_features, n_outputs)
        if isinf(budget.mu):
            return Plan(shape, budget)
        releases: list[PlannedRelease] = []
        rest = budget
        if self.scale_check_share:
            sensitivity = relation_factor(budget.neighboring, "nonnegative")
            share = self.scale_check_share
            for name in self._checks:
                check, rest = rest.split([share, 1.0 - share])
                releases.append(PlannedRelease(name, sensitivity, check.mu))
                share *= 0.5
        if weighted:
            sizes, rest = self._plan_sizes(rest)
            releases.extend(sizes)
        first, rest = self._target_releases(shape, rest)
        solving, settings = self._plan_solver(shape, rest)
        return Plan(shape, budget, (*releases, *first, *solving), settings.as_dict())

    # ---- fit ----

    def _bounded_rows(
        self, X: Any, plan: Plan, pool: Workers, weights: NDArray[np.float64] | None
    ) -> BoundedRows:
        settings = SolverSettings(**plan.settings)
        solving = tuple(r for r in plan.releases if r.name in ("second moments", "gradient"))
        home = SparseRows if issparse(X) else DenseRows
        rows = home(
            X,
            feature_norm=self._norm(X.shape[1]),
            slack=settings.row_slack,
            feature_bound=self._entry_bound(plan),
            constant=settings.constant if self.fit_intercept else 0.0,
            neighboring=self.neighboring,
            grid=SOLVERS[self.solver].grid(solving, settings.clip_norm),
            weights=None if weights is None else weights_to_grid(weights, self.max_sample_weight),
            pool=pool,
        )
        if rows.n_rejected:
            raise ValueError(missing_values("X"))
        return rows

    def _descend(
        self,
        rows: BoundedRows,
        targets: NDArray,
        plan: Plan,
        noise: NoiseCore,
        n_outputs: int | None,
        *,
        sizes: Sizes,
        loss: Loss,
        l2_penalty: float,
        adapt: Callable[[int, FloatArray], tuple[Loss, float] | None] | None = None,
    ) -> FloatArray:
        """Coefficients in the solver's units; loss and penalty may depend on released values."""
        if self.scale_check_share:
            self._check_scale(noise.release(rows.misfits("row lengths")), plan)
        settings = SolverSettings(**plan.settings)
        n_features = plan.shape.n_features
        penalty = np.zeros(rows.n_columns)
        # What is summed are relative weights.
        penalty[:n_features] = min(l2_penalty / sizes.unit, 1e300) * rows.scale**2
        # What the declared number of rows was planned for, a sum of weights may fall short of.
        weighed = rows.weights is not None
        n_rows = max(sizes.total, settings.least_rows) if weighed else sizes.total
        descent = SOLVERS[self.solver].solve(
            rows,
            targets,
            loss,
            settings,
            noise,
            n_rows=n_rows,
            penalty=penalty,
            n_outputs=n_outputs,
            adapt=adapt,
        )
        self.n_iter_ = settings.max_iter
        sigmas = {release.name: release.sigma for release in plan.releases}
        self._released_ = ReleasedFit(
            descent,
            settings,
            plan.shape.n_rows,
            penalty,
            rows.scale,
            rows.constant,
            self._entry_bound(plan),
            sigmas.get("second moments", 0.0),
            sigmas["gradient"],
            weighted=rows.weights is not None,
        )
        return descent.coefficients

    def _in_units(self, theta: FloatArray, rows: BoundedRows) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercepts in the caller's units of X."""
        n_features = rows.n_columns - bool(rows.constant)
        coefficients = theta[:n_features].T * rows.scale
        if rows.constant:
            return coefficients, theta[n_features] * rows.constant
        return coefficients, np.zeros(theta.shape[1:])

    def _check_scale(self, released: FloatArray, plan: Plan) -> None:
        """Warn, from released counts only, when the features do not suit their norm bound."""
        n = plan.shape.n_rows
        sigma = next(r.sigma for r in plan.releases if r.name == "row lengths")
        # The noise alone reaches 5 sigma once in 3 million fits, however few the rows. Of ordinary
        # standardised rows at most one in nine is long, and next to none is short (of a single
        # feature one in twelve): far from a quarter or a half of the rows.
        long, short = released - 5.0 * sigma
        norm = self._norm(plan.shape.n_features)
        text = None
        if long > 0.25 * n:
            text = f"more than {LONG:g} times longer than feature_norm={norm:.4g} and clipped to it"
        elif short > 0.5 * n:
            text = f"shorter than {SHORT:g} times feature_norm={norm:.4g}, so noise drowns them"
        if text:
            warn(
                f"a large part of the rows is {text}: scale the features first, for instance with "
                "DPStandardScaler (if one is there, its bounds or its budget do not suit the "
                "data), or set feature_norm (a private count, charged in scale_check_share, says "
                "so)",
                UtilityWarning,
            )

    def _finish_non_private(self, plan: Plan, assumptions: tuple[str, ...] = ()) -> None:
        self.__dict__.pop("_released_", None)  # of an earlier fit, from which intervals are made
        super()._finish_non_private(plan, assumptions)

    # ---- predict ----

    def _linear_predictor(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "coef_")
        features = check_features(self, X, reset=False, accept_sparse="csr")
        bound = self._entry_bound(self.plan_) if self.plan_.releases else inf
        if bound < inf:
            features = features.copy()
            entries = features.data if issparse(features) else features
            np.clip(entries, -bound, bound, out=entries)
        with np.errstate(all="ignore"):  # a warning would tell of single rows
            return np.asarray(safe_sparse_dot(features, self.coef_.T) + self.intercept_)
