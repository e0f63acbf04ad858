"""An estimator under test, data that suit it, and what it shows after a fit."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import get_tags

from skdp.accounting import PrivacyCost
from skdp.audit._observe import observer_for
from skdp.cost import privacy_cost

__all__ = ["Subject", "leaves", "require"]

N_ROWS, N_FEATURES = 61, 3  # a prime: no size in a model is a multiple of it by chance
_SIMPLE = (str, bytes, bool, int, float, complex, type(None))


def require(condition: bool, message: str) -> None:
    """Fail the check unless the condition holds, also under ``python -O``.

    Parameters
    ----------
    condition : bool
        What has to be true.
    message : str
        What is wrong, for the author of the estimator.
    """
    if not condition:
        raise AssertionError(message)


class Subject:
    """An estimator under test.

    Parameters
    ----------
    estimator : estimator
        Cloned for every fit.
    data : callable or None
        Gives (X, y) for an estimator; None: small rows made from its tags.
    released : callable or None
        Gives the numbers of a fitted estimator exactly as the noise left them.
    n_runs : int
        Fits of an audit.
    """

    def __init__(
        self, estimator: Any, data: Any = None, released: Any = None, n_runs: int = 120
    ) -> None:
        self.estimator, self.released, self.n_runs = estimator, released, n_runs
        self._data = data
        self.X, self.y = self.data()
        self._observers: list[Any] = []

    def _find_observers(self) -> None:
        """See what a fit leaves; where that is always the same, what it says about rows too."""
        methods = ("predict_proba", "decision_function", "predict", "transform")
        self._observers = [observer_for("auto")]
        first, second = (self.shown(self.fit()) for _ in range(2))
        if np.array_equal(first, second) and any(hasattr(self.estimator, m) for m in methods):
            self._observers.append(observer_for("outputs"))

    @property
    def name(self) -> str:
        """Name of the class."""
        return type(self.estimator).__name__

    def data(self, seed: int = 0) -> tuple[Any, Any]:
        """Rows and targets, others for another seed where the estimator's own are not given.

        Parameters
        ----------
        seed : int, default=0
            Which set.
        """
        if self._data is None:
            return default_data(self.estimator, seed)
        X, y = self._data(self.estimator)
        if seed:  # the records of the given set, in another mixture
            rows = np.random.default_rng(seed).integers(len(X), size=len(X))
            X, y = X[rows], None if y is None else y[rows]
        return X, y

    def parameters(self, name: str) -> list[str]:
        """Parameters with this name, however deep.

        Parameters
        ----------
        name : str
            Without the path that leads to it.
        """
        known = self.estimator.get_params(deep=True)
        return [found for found in known if found.rpartition("__")[2] == name]

    def fresh(self, **settings: Any) -> Any:
        """A clone with these parameters wherever they occur.

        Parameters
        ----------
        **settings : object
            Values by name.
        """
        made = clone(self.estimator)
        for name, value in settings.items():
            made.set_params(**dict.fromkeys(self.parameters(name), value))
        return made

    def with_epsilon(self, most: float) -> Any:
        """A clone whose epsilon is at most this, where it is a number.

        Parameters
        ----------
        most : float
            Largest epsilon of the whole.
        """
        made = clone(self.estimator)
        known = made.get_params(deep=False)
        epsilon = known.get("epsilon")
        if isinstance(epsilon, int | float) and not isinstance(epsilon, bool) and epsilon > most:
            made.set_params(epsilon=most)
        return made

    def fit(self, X: Any = None, y: Any = None, model: Any = None, **settings: Any) -> Any:
        """A fitted clone, warnings left aside.

        Parameters
        ----------
        X, y : array-like, default=None
            Data; None: those of the subject.
        model : estimator, default=None
            Fitted itself instead of a clone.
        **settings : object
            Values of parameters, as in `fresh`.
        """
        X, y = (self.X, self.y) if X is None else (X, y)
        model = self.fresh(**settings) if model is None else model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X) if y is None else model.fit(X, y)

    def shown(self, fitted: Any, X: Any = None) -> NDArray[np.float64]:
        """All numbers that a fitted estimator shows.

        Parameters
        ----------
        fitted : estimator
            After a fit.
        X : array-like, default=None
            Rows about which it may say something; None: those of the subject.
        """
        if not self._observers:
            self._find_observers()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = [see(fitted, self.X if X is None else X, self.y) for see in self._observers]
        return np.concatenate([np.ravel(np.asarray(v, dtype=np.float64)) for v in seen])

    def stream(self, model: Any, count: int) -> NDArray[np.float64]:
        """What several fits of a model itself show, one after the other.

        Parameters
        ----------
        model : estimator
            Fitted again and again.
        count : int
            How often.
        """
        return np.concatenate([self.shown(self.fit(model=model)) for _ in range(count)])

    def runs(self, count: int, model: Any, X: Any = None, y: Any = None) -> NDArray[np.float64]:
        """What so many fits of a model show, one row each.

        Parameters
        ----------
        count : int
            How many.
        model : estimator
            Cloned for each.
        X, y : array-like, default=None
            As in `fit`.
        """
        rows = [self.shown(self.fit(X, y, model=clone(model))) for _ in range(count)]
        shortest = min(map(len, rows))
        table = np.array([row[:shortest] for row in rows])
        return np.nan_to_num(table, nan=0.0, posinf=1e300, neginf=-1e300)

    def cost(self, fitted: Any = None) -> PrivacyCost:
        """What the estimator says that it costs.

        Parameters
        ----------
        fitted : estimator, default=None
            None: before a fit.
        """
        return privacy_cost(clone(self.estimator) if fitted is None else fitted)

    def replace_cost(self, model: Any) -> PrivacyCost:
        """What a model says before a fit that one record in place of another costs.

        Parameters
        ----------
        model : estimator
            Not fitted.
        """
        cost = self.cost(clone(model))
        if not (cost.neighboring == "add_or_remove" and cost.has_pair and cost.gaussian_mu > 0.0):
            return cost.to_replace()
        # There is no exact conversion: of the whole curve, one point is kept.
        delta = cost.reference_delta
        point = PrivacyCost(0.0, epsilon0=cost.epsilon(delta), delta0=delta).to_replace()
        return PrivacyCost(
            0.0,
            "replace",
            cost.unit,
            point.delta0,
            cost.assumptions,
            epsilon0=point.epsilon0,
            delta0=point.delta0,
        )

    def canary(self, size: float) -> tuple[Any, Any]:
        """Data whose last record is as extreme as that, of the first target of the largest.

        Parameters
        ----------
        size : float
            Value of all its features; 0 for a null record.
        """
        X = np.array(self.X, dtype=np.float64)
        X[-1] = size
        y = None
        if self.y is not None:
            y = np.array(self.y)
            levels = np.unique(y, axis=0)
            y[-1] = levels[-1] if size else levels[0]
        return X, y


def default_data(estimator: Any, seed: int) -> tuple[NDArray[np.float64], Any]:
    """Small rows between -2 and 2, and targets by the tags and the declared facts.

    Parameters
    ----------
    estimator : estimator
        What the data are for.
    seed : int
        Which set.
    """
    generator = np.random.default_rng(seed)
    X = generator.uniform(-2.0, 2.0, size=(N_ROWS, N_FEATURES))
    tags = get_tags(estimator)
    if tags.input_tags.positive_only:
        X = np.abs(X)
    signal = X @ [1.0, -0.7, 0.4] + generator.uniform(-0.5, 0.5, size=N_ROWS)
    known = estimator.get_params(deep=True)
    facts = {name.rpartition("__")[2]: value for name, value in known.items()}
    classes = facts.get("classes")
    if is_classifier(estimator) or classes is not None:
        labels = np.array([0, 1] if classes is None else sorted(classes))
        shares = np.arange(1, len(labels)) + generator.uniform(-0.4, 0.4, size=len(labels) - 1)
        cuts = np.quantile(signal, shares / len(labels))
        return X, labels[np.digitize(signal, cuts)]
    bounds = facts.get("y_bounds")
    if not (is_regressor(estimator) or tags.target_tags.required or bounds is not None):
        return X, None
    if bounds is not None:
        low, high = (np.asarray(side, dtype=float) for side in np.transpose(bounds))
        unit = (signal - signal.min()) / (signal.max() - signal.min()) * 0.9 + 0.05
        return X, low + (high - low) * (unit if low.ndim == 0 else unit[:, None])
    return X, np.exp(signal / 3.0) if tags.target_tags.positive_only else signal


def leaves(value: Any, path: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Every object and number that an object holds, however deep, by the path that leads to it.

    Parameters
    ----------
    value : object
        Where to begin.
    path : str, default=""
        Where that is.
    seen : set of int, default=None
        What was visited.
    """
    seen = set() if seen is None else seen
    yield path, value
    if isinstance(value, _SIMPLE) or isinstance(value, type | np.generic) or callable(value):
        return
    if isinstance(value, np.ndarray) and value.dtype != object:
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    children: Any
    if issparse(value):
        children = [("data", value.data)]
    elif isinstance(value, np.ndarray):
        children = enumerate(value.ravel().tolist())
    elif isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list | tuple):
        children = enumerate(value)
    elif isinstance(value, set | frozenset):
        children = enumerate(sorted(value, key=repr))
    else:
        slots = {n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ())}
        held = {n: getattr(value, n) for n in slots if hasattr(value, n)}
        children = {**held, **getattr(value, "__dict__", {})}.items()
    for key, child in children:
        yield from leaves(child, f"{path}.{key}", seen)


Check = Callable[[Subject], None]
