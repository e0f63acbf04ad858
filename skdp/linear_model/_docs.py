"""Parts of docstrings that private linear models share."""

from collections.abc import Callable
from textwrap import indent
from typing import TypeVar

__all__ = ["shared_docs"]

_Class = TypeVar("_Class", bound=type)

_BUDGET = """\
epsilon : float or PrivacyCost, default=1.0
    Privacy budget of the whole fit. ``inf`` fits scikit-learn's `{twin}`.
delta : float, default=1e-5
    Probability bound of the (epsilon, delta) guarantee; below one over the number of records."""
_Y_BOUNDS = """\
y_bounds : pair of float, default=None
    Public lower and upper bound of y, in its units: its centre and a sixth of its width set
    the location and the scale that learning starts from. None: a tenth of the budget
    or more finds a location and a scale privately, which needs hundreds of rows at
    epsilon 1, and more where it is smaller. Without an intercept y is not centred."""
_CLASSES = """\
classes : array-like of shape (n_classes,) or set, default=None
    All labels that can occur, as public knowledge; sorted like ``np.unique`` does. None: they
    are read from y, which is not covered by the guarantee and warned about."""
_CLASS_WEIGHT = """\
class_weight : dict or "balanced", default=None
    Weights of classes, as public knowledge: a dict by label, where a class that is not
    mentioned has weight 1. "balanced": the reciprocals of private counts. Either way a small
    share of the budget counts the classes, and noise grows as the largest weight over the
    mean one."""
_ROWS = """\
fit_intercept : bool, default=True
    Whether to learn an intercept.
feature_norm : float, default=None
    Public norm, in the units of X, of a typical row. While learning, rows are clipped to
    {slack} times this norm. None: ``sqrt(n_features)``, right for standardised features.
feature_bound : float, default=None
    Public bound, in the units of X, that every single feature is clipped to, while learning
    and in prediction: one extreme value decides neither a fit nor a prediction by itself.
    None: {deviations} times
    ``feature_norm / sqrt(n_features)``, the standard deviation of standardised features.
    ``inf``: none.
clip_norm : float, default=None
    Largest norm of one record's gradient, in units where a row of norm `feature_norm` has
    norm 1 and {residual}. None: planned."""
_MAX_ITER = """\
max_iter : int, default=None
    Number of gradient steps. More steps mean more noise in each. None: planned."""
_STEPS = f"""\
solver : {{{{"preconditioned-gradient-descent", "gradient-descent"}}}}, \
default="preconditioned-gradient-descent"
    Whether a share of the budget may go to the second moments of the features: the public shape
    of the problem decides whether that pays.
{_MAX_ITER}
gram_share : float in [0, 1), default=None
    Share of the solver's budget for the second moments. None: planned.
ridge_floor : float, default=None
    Least curvature that the preconditioner assumes, in units of its noise. None: planned.
learning_rate : float, default=None
    Step length. None: planned."""
_SCALE_CHECK = """\
scale_check_share : float in [0, 1), default=0.01
    Share of the budget for a private count of rows that are much longer or shorter than
    `feature_norm`, which warns about unscaled features. Where y is brought to a scale first, half
    as much more counts targets that do not suit it. 0 turns both off."""
_UNCERTAINTY = """\
uncertainty_share : float in [0, 1), default=0.01
    Share of the budget for a private histogram of the sizes of residuals, from which
    `confidence_interval` is made. With several targets none is made. 0 turns it off."""
_COMMON = """\
neighboring : {{"add_or_remove", "replace"}}, default="add_or_remove"
    A record against a blank one (zero-out in the literature; the number of rows is public),
    or one record's contents replaced by others (twice the noise).
max_sample_weight : float, default=1.0
    Public bound that `sample_weight` is clipped to, when it is given. The noise is set by it:
    weights that are mostly far smaller are drowned. Given weights, a small share of the budget
    releases their sum and the number of those above zero (of a classifier with
    `class_weight`: the sum by class).
n_rows : int, default=None
    Declared number of records that the plan is made for. None: the number of rows of X.
n_jobs : int, default=None
    Threads of a pass over the data. None: as many as the linear algebra would use.
random_state : int, RandomState instance or None, default=None
    None: noise from the operating system's entropy. An int makes fits reproducible, which is
    *not private* towards whoever knows it."""
_FITTED = """\
n_iter_ : int
    Number of gradient steps.
privacy_cost_ : PrivacyCost
    What the fit cost.
releases_ : tuple of Release
    Every noisy value that was released, with its sensitivity and noise.
plan_ : Plan
    What was planned before the data were touched.
second_moments_ : ndarray of shape (n_features + 1, n_features + 1)
    Released sums of products of the features and of the constant 1, the last, in the units of
    X, of rows clipped to `feature_norm`; without the constant if there is no intercept. Only
    where the plan has a `gram_share`.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of features, when X has string column names."""
_REGRESSION = """\
coef_ : ndarray of shape (n_features,)
    Coefficients.
intercept_ : float
    Intercept."""
_OUTPUTS = """\
coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    Coefficients.
intercept_ : float or ndarray of shape (n_outputs,)
    Intercepts."""
_BY_CLASS = """\
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Coefficients.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercepts.
classes_ : ndarray of shape (n_classes,)
    The public labels."""
_POSITIVE = """\
alpha : float, default=1.0
    Weight of the l2 penalty against the mean deviance, as in scikit-learn. The intercept is
    not penalised. Where y is mostly zero, as for claims, 1 is a strong penalty.
y_bounds : pair of float, default=None
    Public bounds of y, not negative, that hold nearly all of it: larger values count as the
    upper one in its mean and spread. None: found privately, with a tenth of the budget."""
_MEAN = """\
mean_ : float
    Mean of y, found privately; predictions stay within a factor of 20 of it."""
_LOG_LINK = """\
**Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
counts of ill-scaled rows; with weights, their sum and number; without `y_bounds`, histograms of
y; mean and variance of y within the bounds; the second moments of the clipped rows; the clipped
gradient sum of every step; the sums of the residuals and of the expectations. All are exact
sums on a grid with exactly rounded Gaussian noise. Public are the shapes of X and y, `y_bounds`
and all parameters. Checks of the data's values (missing values, targets out of range) answer
with an error, which is not covered. `predict` uses released values only; `score` compares them
with targets and is not private.

Residuals are clipped in units of the spread of y. That pulls a skewed target's level down, so
the intercept is set anew from a sum of residuals with a far wider clip."""
_LEAST_SQUARES = """\
**Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
counts of ill-scaled rows and targets; with weights, their sum and number; without `y_bounds`,
histograms of y; the second moments of the clipped rows; the clipped gradient sum of every step;
for one target, a histogram of the sizes of residuals. All are exact sums on a grid with exactly
rounded Gaussian noise, and several outputs share each release. Public are the shapes of X and
y, `y_bounds` and all parameters. `predict` uses released values only; `score` compares them
with targets and is not private."""
_ROBUST = """\
**Privacy.** `fit` is exactly mu-Gaussian DP [1]_, with the mu of `privacy_cost_`. It releases:
counts of ill-scaled rows and targets; with weights, their sum and number; without `y_bounds`,
histograms of y; the second moments of the clipped rows; the clipped gradient sum of every step;
after the first steps, a histogram of the sizes of residuals, which gives their scale. All are
exact sums on a grid with exactly rounded Gaussian noise. Public are the shapes of X and y,
`y_bounds` and all parameters. `predict` uses released values only; `score` compares them with
targets and is not private."""
_PARTS = {
    "%(robust)s": _ROBUST,
    "%(budget)s": _BUDGET,
    "%(y_bounds)s": _Y_BOUNDS,
    "%(y_bounds_each)s": _Y_BOUNDS.replace(
        "pair of float,", "pair of float, or array-like of shape (n_outputs, 2),"
    ),
    "%(classes)s": _CLASSES,
    "%(class_weight)s": _CLASS_WEIGHT,
    "%(rows)s": _ROWS,
    "%(steps)s": _STEPS,
    "%(max_iter)s": _MAX_ITER,
    "%(scale_check)s": _SCALE_CHECK,
    "%(uncertainty)s": _UNCERTAINTY,
    "%(common)s": _COMMON,
    "%(solver)s": "\n".join([_ROWS, _STEPS, _SCALE_CHECK, _COMMON]),
    "%(coefficients)s": _REGRESSION,
    "%(outputs)s": _OUTPUTS,
    "%(by_class)s": _BY_CLASS,
    "%(least_squares)s": _LEAST_SQUARES,
    "%(fitted)s": _FITTED,
    "%(positive)s": _POSITIVE,
    "%(mean)s": _MEAN,
    "%(log_link)s": _LOG_LINK,
}


def shared_docs(**words: str) -> Callable[[_Class], _Class]:
    """Class decorator that puts shared parts into a docstring, in place of ``%(part)s``.

    Parameters
    ----------
    **words : str
        What the parts leave open: ``twin``, ``slack``, ``deviations``, ``residual``.
    """

    def document(cls: _Class) -> _Class:
        text = cls.__doc__ or ""  # there is none under python -OO
        for token, part in _PARTS.items():
            if token in text:
                text = text.replace(f"    {token}", indent(part.format(**words), "    "))
        cls.__doc__ = text or None
        return cls

    return document
