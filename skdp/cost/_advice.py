"""What to use instead of an estimator that learns without privacy."""

from collections.abc import Iterator
from contextlib import suppress
from inspect import isabstract

from skdp.base import PrivateEstimator

__all__ = ["advice_for", "counterpart", "register_advice"]

_OTHERWISE = "use a private estimator, or give it a rule (skdp.cost)"
# Where no private estimator stands for the class, or more is to be said than its name.
_ADVICE = {
    "AdaBoostClassifier": "use a private classifier",
    "AdaBoostRegressor": "use a private regressor",
    "BayesianRidge": "use DPRidge",
    "ElasticNet": "use DPRidge",
    "HistGradientBoostingClassifier": "use a private classifier",
    "HistGradientBoostingRegressor": "use a private regressor",
    "Lasso": "use DPRidge",
    "LogisticRegressionCV": "use DPLogisticRegression with a given C",
    "MaxAbsScaler": "use DPMinMaxScaler, or a declared function with public bounds",
    "PCA": "use GaussianRandomProjection, which learns nothing",
    "RidgeClassifier": "use DPLogisticRegression",
    "SGDClassifier": "use DPLogisticRegression or DPLinearSVC",
    "SGDRegressor": "use DPRidge or DPHuberRegressor",
    "SVC": "use RBFSampler with a given gamma, and DPLinearSVC",
    "SVR": "use RBFSampler with a given gamma, and DPLinearSVR",
    "SelectKBest": "name the columns, or select by SelectFromModel over a private estimator",
    "SelectPercentile": "name the columns, or select by SelectFromModel over a private estimator",
    "TruncatedSVD": "use GaussianRandomProjection, which learns nothing",
    "VarianceThreshold": "name the columns, or select by SelectFromModel over a private estimator",
    "Nystroem": "use RBFSampler with a given gamma, which learns nothing",
}


def register_advice(name: str, text: str) -> None:
    """Say what to use instead of a class that learns without privacy.

    A class derived from ``skdp.base.PrivateEstimator`` is named without this, for the class of
    which it makes the non-private twin.

    Parameters
    ----------
    name : str
        Name of the class, without its module.
    text : str
        What to do, as in ``"use DPRidge with a given alpha"``.

    Raises
    ------
    TypeError
        If an argument is not a str.
    """
    if not isinstance(name, str) or not isinstance(text, str):
        raise TypeError("register_advice takes the name of a class and a text")
    _ADVICE[name] = text


def advice_for(kind: type) -> str:
    """Return what to use instead of a class, as the end of a sentence.

    Parameters
    ----------
    kind : type
        The class that learns without privacy.

    Returns
    -------
    advice : str
        The private estimator that has it as its twin; else what was registered.
    """
    private = counterpart(kind)
    return f"use {private}" if private else _ADVICE.get(kind.__name__, _OTHERWISE)


def counterpart(kind: type) -> str | None:
    """Return the name of the private estimator that has a class as its twin, if there is one.

    Parameters
    ----------
    kind : type
        The class that learns without privacy.

    Returns
    -------
    name : str or None
        One of skdp's, if there are several.
    """
    own = [cls for cls in _private_classes() if _twin_of(cls) is kind]
    ours_first = sorted(own, key=lambda c: (not c.__module__.startswith("skdp."), c.__name__))
    return ours_first[0].__name__ if ours_first else None


def _private_classes(base: type = PrivateEstimator) -> Iterator[type]:
    subclasses: list[type] = base.__subclasses__()
    for cls in subclasses:
        if not isabstract(cls) and not cls.__name__.startswith("_"):
            yield cls
        yield from _private_classes(cls)


def _twin_of(cls: type) -> type | None:
    with suppress(Exception):  # a class of somebody's that cannot be made without arguments
        return type(cls().make_non_private())
    return None
