"""Parts of docstrings that transformers of columns share."""

from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

__all__ = ["shared_docs"]

_Class = TypeVar("_Class", bound=type)

_BUDGET = """\
epsilon : float or PrivacyCost, default=1.0
    Privacy budget of the whole fit. ``inf`` fits scikit-learn's `{twin}`.
delta : float, default=1e-5
    Probability bound of the (epsilon, delta) guarantee; below one over the number of records.
bounds : pair, or dict of str to pair, default=None
    Public lower and upper bound of the columns, in their units: ``(low, high)`` with numbers
    for all columns, or with arrays of shape (n_features,); or a dict that gives every column,
    by name, its pair. Values beyond count as if they were there. None: most of the budget
    finds bounds privately."""
_COMMON = """\
neighboring : {{"add_or_remove", "replace"}}, default="add_or_remove"
    A record against a blank one (zero-out in the literature; the number of rows is public),
    or one record's contents replaced by others.
n_rows : int, default=None
    Declared number of records that the plan is made for. None: the number of rows of X.
n_jobs : int, default=None
    Threads of a pass over the data. None: as many as the linear algebra would use.
random_state : int, RandomState instance or None, default=None
    None: noise from the operating system's entropy. An int makes fits reproducible, which is
    *not private* towards whoever knows it."""
_FITTED = """\
privacy_cost_ : PrivacyCost
    What the fit cost.
releases_ : tuple of Release
    Every noisy value that was released, with its sensitivity and noise.
plan_ : Plan
    What was planned before the data were touched.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of features, when X has string column names."""
_QUANTILES = """\
**Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases
one vector: the counts of every column in equal bins within its bounds or, where bins are many,
at all levels of a binary tree over them. A record counts once per column and level, so the
sensitivity is ``sqrt(n_features * n_levels)``. Without `bounds`, histograms that tell where the
columns lie are released before. Public are the shape of X, `bounds` and all parameters; how
many values are missing is not, and the noisy counts are all that is used. Other methods use
released values only."""
_REFERENCE = """\
.. [1] J. Dong, A. Roth and W. J. Su, "Gaussian Differential Privacy", JRSS B, 2022."""
_PARTS = {
    "%(budget)s": _BUDGET,
    "%(common)s": _COMMON,
    "%(fitted)s": _FITTED,
    "%(quantiles)s": _QUANTILES,
    "%(reference)s": _REFERENCE,
}


def shared_docs(**words: str) -> Callable[[_Class], _Class]:
    """Class decorator that puts shared parts into a docstring, in place of ``%(part)s``.

    Parameters
    ----------
    **words : str
        What the parts leave open: ``twin``.
    """

    def document(cls: _Class) -> _Class:
        text = cls.__doc__ or ""  # there is none under python -OO
        for token, part in _PARTS.items():
            if token in text:
                text = text.replace(f"    {token}", indent(part.format(**words), "    "))
        cls.__doc__ = text or None
        return cls

    return document
