"""Differentially private standardisation of columns."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from skdp._location import find_bounds
from skdp._moments import MomentSums, plan_moments, release_sums
from skdp._sparse_rows import canonical_rows
from skdp._threads import workers
from skdp._validation import check_features
from skdp._warn import listed, warn
from skdp.accounting import PrivacyCost
from skdp.exceptions import UtilityWarning
from skdp.noise import NoiseCore
from skdp.plan import Plan, PlannedRelease, ProblemShape
from skdp.preprocessing._chunks import DISJOINT, cost_of_disjoint
from skdp.preprocessing._columns import Bounds, PrivateColumns
from skdp.preprocessing._sparse_columns import entries_and

__all__ = ["DPStandardScaler"]


class DPStandardScaler(OneToOneFeatureMixin, PrivateColumns):
    """Standardise columns by private means and standard deviations.

    Missing values, NaN, are ignored while learning and kept by `transform`. Sparse data stay
    sparse, with ``with_mean=False``.

    Parameters
    ----------
    epsilon : float or PrivacyCost, default=1.0
        Privacy budget of the whole fit. ``inf`` fits scikit-learn's `StandardScaler`.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    bounds : pair, or dict of str to pair, default=None
        Public lower and upper bound of the columns, in their units: ``(low, high)`` with numbers
        for all columns, or with arrays of shape (n_features,); or a dict that gives every column,
        by name, its pair. Lists of two numbers for two columns are refused, as they may be meant
        either way. Values beyond are clipped to them while learning, not in `transform`.
        None: most of the budget finds bounds privately.
    with_mean : bool, default=True
        Whether `transform` subtracts the mean. Sparse data, whose zeros would be filled, need
        False.
    with_std : bool, default=True
        Whether `transform` divides by the standard deviation.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        A record against a blank one (zero-out in the literature; the number of rows is public),
        or one record's contents replaced by others (about twice the noise).
    n_rows : int, default=None
        Declared number of records that the plan is made for. None: the number of rows of X.
    n_jobs : int, default=None
        Threads of a pass over the data. None: as many as the linear algebra would use.
    random_state : int, RandomState instance or None, default=None
        None: noise from the operating system's entropy. An int makes fits reproducible, which is
        *not private* towards whoever knows it.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,) or None
        Private means. None when neither mean nor deviation is used.
    var_ : ndarray of shape (n_features,) or None
        Private variances, at least as large as half their noise. None without `with_std`.
    scale_ : ndarray of shape (n_features,) or None
        Their square roots, by which columns are divided; 1 for a column that could not be told
        from the noise.
    n_samples_seen_ : int
        Declared number of records.
    output_norm_ : float or None
        Norm of a typical row of the output, ``sqrt(n_features)``, which is the default
        `feature_norm` of the linear models: a model after the scaler needs no argument. A public
        number, made of the shape alone; the norm of a single row may be larger. None without
        `with_std`, as the size of the output is then that of the data.
    privacy_cost_ : PrivacyCost
        What the fit cost.
    releases_ : tuple of Release
        Every noisy value that was released, with its sensitivity and noise.
    plan_ : Plan
        What was planned before the data were touched.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, when X has string column names.

    Raises
    ------
    ValueError
        For invalid parameters or data, infinite values among them, and for sparse data unless
        ``with_mean=False``.

    Notes
    -----
    **Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases
    one vector: the sums over records of all columns and of their squares, clipped to the bounds,
    exact on a grid, and the numbers of missing values. How many there are is data, so they are
    always counted; that is free, as a missing value has no share of the sums, and a number that
    may be nothing but noise is taken for zero. A record's share has norm at most
    ``1.25 * sqrt(n_features)`` in units where bounds are -1 and 1 (see the source for the
    derivation); ``sqrt(n_features)`` without `with_std`. Without `bounds` four histograms of every
    column are released before it: of binary exponents, of places, twice, and of distances to the
    place found; or, where rows are few for the noise, one histogram of signed binary exponents and
    moments within the bounds that it tells.
    Public are the shape of X, `bounds` and all parameters; whether X is sparse changes nothing.
    That no value is infinite is checked first. `transform` uses released values only.

    References
    ----------
    .. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPStandardScaler
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([50.0, 1990.0], [10.0, 8.0], size=(20000, 2))
    >>> bounds = np.array([0, 1900]), np.array([120, 2030])  # low, high
    >>> scaler = DPStandardScaler(epsilon=1.0, bounds=bounds).fit(X)
    >>> bool(abs(scaler.transform(X).std() - 1) < 0.1)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **PrivateColumns._parameter_constraints,
        "with_mean": ["boolean"],
        "with_std": ["boolean"],
    }
    _sparse = True
    _copied = ("mean_", "var_", "scale_")

    def __init__(
        self,
        epsilon: float | PrivacyCost = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        neighboring: str = "add_or_remove",
        n_rows: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.with_mean = with_mean
        self.with_std = with_std
        self.neighboring = neighboring
        self.n_rows = n_rows
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _learns(self) -> bool:
        return self.with_mean or self.with_std

    def _releases(
        self, budget: PrivacyCost, shape: ProblemShape
    ) -> tuple[tuple[PlannedRelease, ...], dict[str, Any]]:
        located, rest = self._located(budget, shape)
        return (*located, plan_moments(rest, shape.n_features, second=self.with_std)), {}

    def fit(self, X: ArrayLike, y: object = None) -> DPStandardScaler:
        """Learn private means and standard deviations.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Data; NaN is a missing value.
        y : None
            Ignored.

        Returns
        -------
        self : DPStandardScaler
        """
        self._check_parameters()
        return self._learn_from(X, {})

    def partial_fit(self, X: ArrayLike, y: object = None) -> DPStandardScaler:
        """Learn from one more chunk of records, none of which may be in another chunk.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Data; NaN is a missing value. `n_rows`, where given, is declared for every chunk.
        y : None
            Ignored.

        Returns
        -------
        self : DPStandardScaler

        Notes
        -----
        **Privacy.** A record is in one chunk, so all of them together cost what one does (parallel
        composition; chunks are told apart by rows, not by values). That no record is in two of
        them, an earlier `fit` included, is an assumption, which the cost lists. Each chunk is
        released with noise of its own and the noisy sums add up: with k chunks the noise is
        ``sqrt(k)`` times that of one `fit`. Without `bounds` the first chunk finds them.
        """
        self._check_parameters()
        learned = vars(self).get("_sums", {})
        if learned and not hasattr(self, "n_samples_seen_"):
            raise ValueError(
                "an earlier chunk failed after it was charged, and what was learned is gone; start "
                "again with fit, or with a clone"
            )
        self._learn_from(X, learned)
        self.privacy_cost_ = self.privacy_cost_.with_assumptions(DISJOINT)
        return self

    def _charge(self, plan: Plan) -> None:
        earlier = vars(self).get("privacy_cost_") if self._continues else None
        super()._charge(plan)
        if earlier is not None:
            self.privacy_cost_ = cost_of_disjoint(earlier, self.privacy_cost_)

    def _learn_from(self, X: ArrayLike, learned: dict[str, Any]) -> DPStandardScaler:
        """Learn from X, and from the sums of earlier chunks."""
        self._check_sparse(X)
        data = check_features(self, X, reset=not learned, **self._accepted)
        if issparse(data):
            data = canonical_rows(data.tocsr())
        n_features = data.shape[1]
        bounds = self._public_bounds(n_features)
        plan = self.plan(*data.shape)
        if not plan.budget.is_finite:
            self._learn_without_privacy(data, plan, learned)
            return self
        if learned and self._learns:
            second = plan_moments(plan.budget, n_features, second=self.with_std)
            plan = Plan(plan.shape, plan.budget, (second,))
            self._check_chunk(learned, bounds)
        made, cost = (self.releases_, self.privacy_cost_) if learned else ((), None)
        seen = int(learned.get("n_rows", 0))
        self._continues = bool(learned)
        noise = self._start(plan)
        mean = deviation = None
        self._sums: dict[str, Any] = {"n_rows": seen + plan.shape.n_rows}
        if self._learns:
            mean, deviation = self._add(data, bounds, plan, noise, learned)
        self.n_samples_seen_ = seen + plan.shape.n_rows
        self.mean_ = mean
        self.scale_ = deviation if self.with_std else None
        self.var_ = None
        if self.scale_ is not None:
            with np.errstate(over="ignore"):
                self.var_ = np.square(self.scale_)
        self._finish(plan, noise)
        self.releases_ = made + self.releases_
        if cost is not None:
            self.privacy_cost_ = cost_of_disjoint(cost, self.privacy_cost_)
        self.output_norm_ = self._output_norm(n_features)
        return self

    def _learn_without_privacy(self, X: Any, plan: Plan, learned: dict[str, Any]) -> None:
        twin = self.make_non_private()
        n_rows = int(learned.get("n_rows", 0))
        if learned:
            twin.n_samples_seen_ = learned.get("seen", np.int64(n_rows))
            for name in self._copied:
                setattr(twin, name, getattr(self, name))
        twin.partial_fit(X)
        for name in self._copied:
            setattr(self, name, getattr(twin, name))
        self.n_samples_seen_ = n_rows + plan.shape.n_rows
        self._sums = {"n_rows": self.n_samples_seen_, "seen": twin.n_samples_seen_}
        self._finish_non_private(plan)
        self.output_norm_ = self._output_norm(X.shape[1])

    def _check_sparse(self, X: Any) -> None:
        if self.with_mean and issparse(X):
            raise ValueError(
                "sparse data cannot be centred without filling their zeros: use with_mean=False"
            )

    def _output_norm(self, n_features: int) -> float | None:
        return sqrt(n_features) if self.with_std else None

    def _check_chunk(self, learned: dict[str, Any], bounds: Bounds | None) -> None:
        """What is added up must be of one kind."""
        same = "values" in learned and self.privacy_cost_.neighboring == self.neighboring
        if same:
            sums = learned["values"], learned["low"], learned["high"]
            same = len(sums[0]) == (2 + self.with_std) * len(sums[1])
            if bounds is not None:
                same = same and all(map(np.array_equal, bounds, sums[1:]))
        if not same:
            raise ValueError(
                "bounds, with_mean, with_std and neighboring must not change between chunks; use "
                "fit to start anew"
            )

    def _add(
        self,
        X: Any,
        bounds: Bounds | None,
        plan: Plan,
        noise: NoiseCore,
        learned: dict[str, Any],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and deviations of X and of the chunks before."""
        unscaled = learned.get("unscaled")
        with workers(self.n_jobs) as pool:
            options = self._options(plan, noise, pool)
            if learned:
                bounds = learned["low"], learned["high"]
            elif bounds is None:
                found = find_bounds(X, **options)
                bounds, unscaled = (found.low, found.high), found.unscaled
            sums = release_sums(X, *bounds, second=self.with_std, missing=True, **options)
        if learned:
            names = ("values", "n_rows", "noise")
            sums = replace(sums, **{name: learned[name] for name in names}) + sums
        self._sums = {**vars(sums), "unscaled": unscaled}
        mean, deviation = sums.moments()
        if unscaled is None:
            self._warn_noise(sums)
            self._warn_missed(sums.at_a_bound())
        else:
            mean[unscaled] = 0.0
            deviation[unscaled] = 1.0
        return mean, deviation

    def _warn_noise(self, sums: MomentSums) -> None:
        fewest = float(sums.count.min())
        doubt = sqrt(sums.noise) / (2.0 * fewest)
        if self.with_std and doubt > 1.0 / 3.0:
            of_them = "" if fewest == sums.n_rows else f", of which a column has {fewest:.0f}"
            warn(
                "the noise of the variances is as large as the variance of values spread evenly "
                f"between the bounds (standard deviation {doubt:.3g} of a quarter of the "
                f"squared width, with {sums.n_rows} values{of_them}): scales are guesses; use a "
                "larger budget or fewer columns",
                UtilityWarning,
            )

    def _warn_missed(self, missed: NDArray[np.bool_]) -> None:
        if missed.any():
            names = getattr(self, "feature_names_in_", np.arange(len(missed)))
            warn(
                f"the noise does not tell the mean of columns {listed(names[missed].tolist())} "
                "from one of their bounds, as if all values were there or beyond: are `bounds` in "
                "the units of X?",
                UtilityWarning,
            )

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Subtract the private mean and divide by the private standard deviation.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Data; it is not clipped to the bounds.

        Returns
        -------
        scaled : ndarray, CSR or CSC array of shape (n_samples, n_features)
            Missing values stay missing. Results too large for the floating-point type are the
            largest number that it has.
        """
        check_is_fitted(self, "n_samples_seen_")
        self._check_sparse(X)
        scaled = self._check_input(X)
        largest = np.finfo(scaled.dtype).max
        with np.errstate(all="ignore"):
            if self.with_mean:
                scaled -= self.mean_
            if self.scale_ is not None:
                entries, scale = entries_and(scaled, self.scale_)
                entries /= scale
                np.clip(entries, -largest, largest, out=entries)
            elif self.with_mean:
                np.clip(scaled, -largest, largest, out=scaled)
        return scaled

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Undo `transform`.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Scaled data.

        Returns
        -------
        original : ndarray, CSR or CSC array of shape (n_samples, n_features)
        """
        check_is_fitted(self, "n_samples_seen_")
        self._check_sparse(X)
        original: Any = self._check_scaled(X)
        with np.errstate(all="ignore"):
            if self.scale_ is not None:
                entries, scale = entries_and(original, self.scale_)
                entries *= scale
            if self.with_mean:
                original += self.mean_
        return original

    def make_non_private(self) -> StandardScaler:
        """Scikit-learn's `StandardScaler`."""
        return StandardScaler(with_mean=self.with_mean, with_std=self.with_std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags
