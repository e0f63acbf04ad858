"""The private counterpart of an ordinary estimator: `privatize`."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from skdp.accounting import PrivacyCost
from skdp.budget import PrivacyBudget
from skdp.cost import cost_parts, privacy_cost
from skdp.counterpart._find import HARMLESS, PRIVACY, carry_over, counterparts, sources_of
from skdp.twins import is_estimator, keep_configuration

__all__ = ["privatize"]

_GRIDS = ("param_grid", "param_distributions")


def privatize(
    estimator: Any,
    epsilon: float | PrivacyCost = 1.0,
    delta: float = 1e-5,
    *,
    public: Mapping[str, Any] | None = None,
    shares: dict[str, float] | None = None,
    neighboring: str = "add_or_remove",
) -> PrivacyBudget:
    """Return the private counterpart of an ordinary scikit-learn estimator, with a stated total.

    Parameters
    ----------
    estimator : estimator
        A scikit-learn estimator, or a pipeline, `ColumnTransformer`, search or other
        meta-estimator of such, nested at will. It is left as it is.
    epsilon : float or PrivacyCost, default=1.0
        Total budget of a fit.
    delta : float, default=1e-5
        Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
    public : dict of str to object, default=None
        What is known without the data: ``bounds`` of columns, ``classes``, ``y_bounds``,
        ``categories`` and other parameters of the private steps, by name as in ``set_params``
        of `estimator`, such as ``"standardscaler__bounds"``. A name without a step, such as
        ``"classes"``, is for all steps that have such a parameter.
    shares : dict of str to float, default=None
        Share of mu^2 for every private step, as in `PrivacyBudget`.
    neighboring : {"add_or_remove", "replace"}, default="add_or_remove"
        The relation of the guarantee, for all steps.

    Returns
    -------
    private : PrivacyBudget
        Unfitted. In its `estimator`, every step that learns without privacy is replaced by its
        private counterpart, under the same name and with the parameters that mean the same; steps
        that learn nothing, and private ones, stay. Parameters of the replaced steps that say how to
        compute, such as ``solver``, ``tol`` or ``max_iter``, are dropped.

    Raises
    ------
    TypeError
        If `estimator` is not an estimator.
    ValueError
        Naming all steps that have no counterpart, all parameters that a counterpart cannot have,
        and all names in `public` that fit nothing.

    See Also
    --------
    non_private : The other way.
    skdp.twins.register_twin : Makes other private classes known to both.
    PrivacyBudget : What is returned.

    Notes
    -----
    **Privacy.** No data are seen. The guarantee is that of the `PrivacyBudget`; what is not stated
    in `public` is found privately, or read from the data with a warning, as the steps'
    documentation says.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import privatize
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=3.0))
    >>> private = privatize(pipeline, epsilon=2.0, public={"bounds": (0, 16), "classes": [0, 1]})
    >>> private.estimator
    Pipeline(steps=[('standardscaler', DPStandardScaler(bounds=(0, 16))),
                    ('logisticregression',
                     DPLogisticRegression(C=3.0, classes=[0, 1]))])
    >>> privatize(LogisticRegression(penalty="l1", solver="saga"))
    Traceback (most recent call last):
        ...
    ValueError: there is no private counterpart:
    - LogisticRegression: penalty='l1' is not among what DPLogisticRegression can do
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"only estimators have a private counterpart, got {estimator!r}")
    if isinstance(estimator, PrivacyBudget):
        estimator = estimator.estimator
    work = _Conversion(dict(public or {}))
    private = work.convert(estimator, "")
    problems = [*work.problems, *_without_privacy(private), *work.unused()]
    if problems:
        raise ValueError("\n- ".join(["there is no private counterpart:", *problems]))
    budget = PrivacyBudget(private, epsilon, delta, shares=shares, neighboring=neighboring)
    budget.allocate()
    return budget


def _without_privacy(estimator: Any) -> list[str]:
    """What still learns without privacy; budgets of private steps are yet to be set."""
    texts: dict[str, None] = {}
    for part in cost_parts(estimator):
        if not part.cost.is_finite and not hasattr(type(part.estimator), "planned_cost"):
            texts.update(dict.fromkeys(part.cost.assumptions))
    if not texts:
        return []
    known = ", ".join(sorted(cls.__name__ for cls in counterparts()))
    return [*texts, f"there are private counterparts of {known}"]


class _Conversion:
    """One walk through an estimator, which notes what goes wrong."""

    def __init__(self, public: dict[str, Any]) -> None:
        self.public = public
        self.problems: list[str] = []
        self._used: set[str] = set()
        self._classes = counterparts()

    def unused(self) -> list[str]:
        """Public facts that no step has asked for."""
        return [
            f"public names {name!r}, which is a parameter of no step"
            for name in self.public
            if name not in self._used
        ]

    def convert(self, obj: Any, path: str) -> Any:
        """A new object in the place of one, unfitted."""
        if not is_estimator(obj):
            return obj
        copy = clone(obj)
        if copy is obj:  # frozen: it is not fitted any more
            return obj
        self._state(copy, path)
        if hasattr(type(copy), "planned_cost"):
            return copy
        cls = self._classes.get(type(copy))
        if cls is not None and not _learns_nothing(copy):
            return self._replaced(copy, cls, path)
        params = copy.get_params(deep=False)
        changed = {name: self._inside(value, path, name) for name, value in params.items()}
        changed = {name: new for name, new in changed.items() if new is not params[name]}
        copy.set_params(**changed)
        for name in _GRIDS:
            if name in params and "estimator" in changed:
                place = _join(path, "estimator")
                grids = self._grids(obj.estimator, copy.estimator, params[name], place)
                copy.set_params(**{name: grids})
        return copy

    def _replaced(self, copy: Any, cls: type, path: str) -> Any:
        private, lost = carry_over(copy, cls)
        where = f"step {path!r}: " if path else ""
        self.problems += [
            f"{where}{type(copy).__name__}: {name}={value!r} is not among what {cls.__name__} can "
            "do"
            for name, value in lost.items()
        ]
        keep_configuration(copy, private)
        self._state(private, path)
        return private

    def _state(self, obj: Any, path: str) -> None:
        """Set the public facts about an object."""
        private = hasattr(type(obj), "planned_cost")
        for name in obj.get_params(deep=False):
            if is_estimator(getattr(obj, name)) or (private and name in PRIVACY):
                continue
            for fact in (name, _join(path, name)):
                if fact in self.public:
                    obj.set_params(**{name: self.public[fact]})
                    self._used.add(fact)

    def _inside(self, value: Any, path: str, name: str) -> Any:
        """A parameter with counterparts in the place of estimators."""
        if is_estimator(value) and not isinstance(value, FrozenEstimator):
            return self.convert(value, _join(path, name))
        if type(value) not in (list, tuple):
            return value
        items = [self._item(item, path, f"{name}{place}") for place, item in enumerate(value)]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)

    def _item(self, item: Any, path: str, name: str) -> Any:
        """An estimator in a list, mostly in a tuple with its name."""
        if is_estimator(item):
            return self.convert(item, _join(path, name))
        if type(item) is not tuple or not item or not isinstance(item[0], str):
            return item
        place = _join(path, item[0])
        if not any(map(is_estimator, item)):
            return item
        return (item[0], *(self.convert(part, place) for part in item[1:]))

    # ---- the grid of a search ----

    def _grids(self, old: Any, new: Any, grids: Any, path: str) -> Any:
        if isinstance(grids, Mapping):
            return self._grid(old, new, grids, path)
        return [self._grid(old, new, grid, path) for grid in grids]

    def _grid(self, old: Any, new: Any, grid: Mapping[str, Any], path: str) -> dict[str, Any]:
        before, after = ({"": e, **e.get_params(deep=True)} for e in (old, new))
        found: dict[str, Any] = {}
        for key, values in grid.items():
            owner, _, name = key.rpartition("__")
            if any(map(is_estimator, [] if hasattr(values, "rvs") else values)):
                found[key] = [self.convert(value, _join(path, key)) for value in values]
                continue
            cls = type(after.get(owner))
            if owner not in after or cls is type(before.get(owner)):
                found[key] = values
                continue
            drawn = [values.rvs(random_state=0)] if hasattr(values, "rvs") else values
            sources = sources_of(cls, name, drawn)
            if len(sources) == 1 and None not in sources:
                found["__".join(filter(None, [owner, *sources]))] = values
            elif sources and name not in HARMLESS:
                self.problems.append(
                    f"the grid of a search: {key!r} has no counterpart in {cls.__name__}"
                )
        return found


def _join(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name


def _learns_nothing(estimator: Any) -> bool:
    return privacy_cost(estimator).is_finite
