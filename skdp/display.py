"""Pictures in the style of scikit-learn's displays."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skdp.accounting import PrivacyCost
from skdp.model_selection import PrivacyUtilityCurve, privacy_utility_curve
from skdp.model_selection._curve import name_of_score

__all__ = ["PrivacyUtilityDisplay"]


class PrivacyUtilityDisplay:
    """Utility against privacy: scores over a range of epsilon, beside a non-private baseline.

    It is recommended to use `from_estimator`, `from_curve` or `from_cv_results` to create a
    display. All parameters are stored as attributes.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        Privacy budgets.
    test_scores : ndarray of shape (n_epsilons, n_splits, n_repeats)
        Test scores.
    baseline_scores : ndarray of shape (n_splits,), default=None
        Test scores of the baseline.
    param_name : str, default="epsilon"
        What is varied, for the x-axis.
    score_name : str, default=None
        Name of the score, for the y-axis. None: ``"Score"``.
    estimator_name : str, default=None
        Name of the estimator, for the legend. None: ``"private"``, and ``"non-private"`` for the
        baseline.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that contains it.
    line_ : matplotlib Line2D or None
        The mean scores; None with error bars.
    fill_between_ : matplotlib PolyCollection or None
        The band of one standard deviation around them, if it was drawn.
    errorbar_ : matplotlib ErrorbarContainer or None
        Mean and standard deviation, if they were drawn as error bars.
    baseline_ : matplotlib Line2D or None
        Mean score of the baseline.

    See Also
    --------
    privacy_utility_curve : Computes what is drawn.

    Notes
    -----
    **Privacy.** Scores are exact functions of the test data. The picture, like the analysis behind
    it, ``score`` and ``cv_results_``, is not private.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skdp import DPLogisticRegression, PrivacyUtilityDisplay, privacy_utility_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(classes=[0, 1])
    >>> curve = privacy_utility_curve(model, scale(X), y, epsilons=[0.1, 1.0, 10.0], cv=3)
    >>> display = PrivacyUtilityDisplay.from_curve(curve)
    >>> plt.show()
    """

    def __init__(
        self,
        *,
        epsilons: NDArray[np.float64],
        test_scores: NDArray[np.float64],
        baseline_scores: NDArray[np.float64] | None = None,
        param_name: str = "epsilon",
        score_name: str | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.epsilons = epsilons
        self.test_scores = test_scores
        self.baseline_scores = baseline_scores
        self.param_name = param_name
        self.score_name = score_name
        self.estimator_name = estimator_name

    def plot(
        self,
        ax: Any = None,
        *,
        negate_score: bool = False,
        score_name: str | None = None,
        name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        baseline_kw: dict[str, Any] | None = None,
    ) -> PrivacyUtilityDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: a new figure.
        negate_score : bool, default=False
            Whether to change the sign of the scores, for scorers called ``neg_*``.
        score_name : str, default=None
            Name of the score on the y-axis.
        name : str, default=None
            Name of the estimator in the legend, of use where there are several.
        std_display_style : {"fill_between", "errorbar"} or None, default="fill_between"
            How one standard deviation, over splits and noise draws together, is drawn.
        line_kw, fill_between_kw, errorbar_kw, baseline_kw : dict, default=None
            Passed on to matplotlib's ``plot``, ``fill_between``, ``errorbar`` and ``axhline``.

        Returns
        -------
        display : PrivacyUtilityDisplay
            This object, with the drawn artists as attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `std_display_style` is none of those above.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        if std_display_style not in ("fill_between", "errorbar", None):
            raise ValueError(
                "std_display_style must be 'fill_between', 'errorbar' or None, got "
                f"{std_display_style!r}"
            )
        if ax is None:
            _, ax = plt.subplots()
        sign = -1.0 if negate_score else 1.0
        order = np.argsort(self.epsilons)
        x = self.epsilons[order]
        runs = sign * self.test_scores[order].reshape(len(x), -1)
        mean, spread = runs.mean(axis=1), runs.std(axis=1)
        name = name or self.estimator_name
        label = name or "private"

        self.line_ = self.fill_between_ = self.errorbar_ = self.baseline_ = None
        if std_display_style == "errorbar":
            self.errorbar_ = ax.errorbar(x, mean, spread, **{"label": label, **(errorbar_kw or {})})
            color = self.errorbar_.lines[0].get_color()
        else:
            (self.line_,) = ax.plot(x, mean, **{"label": label, **(line_kw or {})})
            color = self.line_.get_color()
        if std_display_style == "fill_between":
            settings = {"alpha": 0.3, "color": color, "linewidth": 0, **(fill_between_kw or {})}
            self.fill_between_ = ax.fill_between(x, mean - spread, mean + spread, **settings)
        if self.baseline_scores is not None:
            level = float(np.mean(sign * self.baseline_scores))
            text = f"{name}, non-private" if name else "non-private"
            settings = {"linestyle": "--", "color": "0.5", "label": text}
            self.baseline_ = ax.axhline(level, **{**settings, **(baseline_kw or {})})

        ax.set_xscale("log")
        _plain_ticks(ax)
        ax.set_xlabel(self.param_name)
        ax.set_ylabel(score_name or self.score_name or "Score")
        ax.legend()
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    @classmethod
    def from_estimator(
        cls,
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
        ax: Any = None,
        negate_score: bool = False,
        score_name: str | None = None,
        name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        baseline_kw: dict[str, Any] | None = None,
    ) -> PrivacyUtilityDisplay:
        """Compute the curve of an estimator and draw it.

        Parameters
        ----------
        estimator : estimator
            Private estimator, pipeline or `PrivacyBudget`.
        X : array-like of shape (n_samples, n_features)
            Data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets.
        epsilons, groups, cv, n_repeats, scoring, baseline, n_jobs, random_state, verbose
            See `privacy_utility_curve`.
        ax, negate_score, score_name, name, std_display_style, line_kw, fill_between_kw, \
errorbar_kw, baseline_kw
            See `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Notes
        -----
        **Privacy.** The analysis is not private, and every fit of it spends its budget.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skdp import DPLogisticRegression, PrivacyUtilityDisplay
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> display = PrivacyUtilityDisplay.from_estimator(
        ...     DPLogisticRegression(classes=[0, 1]), scale(X), y, epsilons=[0.1, 1.0], cv=2
        ... )
        """
        pyplot(f"{cls.__name__}.from_estimator")  # before the long part
        curve = privacy_utility_curve(
            estimator,
            X,
            y,
            epsilons=epsilons,
            groups=groups,
            cv=cv,
            n_repeats=n_repeats,
            scoring=scoring,
            baseline=baseline,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        return cls.from_curve(
            curve,
            ax=ax,
            negate_score=negate_score,
            score_name=score_name,
            name=name,
            std_display_style=std_display_style,
            line_kw=line_kw,
            fill_between_kw=fill_between_kw,
            errorbar_kw=errorbar_kw,
            baseline_kw=baseline_kw,
        )

    @classmethod
    def from_curve(
        cls,
        curve: PrivacyUtilityCurve,
        *,
        ax: Any = None,
        negate_score: bool = False,
        score_name: str | None = None,
        name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        baseline_kw: dict[str, Any] | None = None,
    ) -> PrivacyUtilityDisplay:
        """Draw a curve that was computed before.

        Parameters
        ----------
        curve : PrivacyUtilityCurve
            Result of `privacy_utility_curve`.
        ax, negate_score, score_name, name, std_display_style, line_kw, fill_between_kw, \
errorbar_kw, baseline_kw
            See `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Notes
        -----
        **Privacy.** The picture is not private.
        """
        display = cls(
            epsilons=curve.epsilons,
            test_scores=curve.test_scores,
            baseline_scores=curve.baseline_scores,
            param_name=f"epsilon (delta={curve.delta:g})",
            score_name=_score_label(
                score_name, curve.score_name or name_of_score(curve.scoring), negate_score
            ),
            estimator_name=name,
        )
        return display.plot(
            ax=ax,
            negate_score=negate_score,
            std_display_style=std_display_style,
            line_kw=line_kw,
            fill_between_kw=fill_between_kw,
            errorbar_kw=errorbar_kw,
            baseline_kw=baseline_kw,
        )

    @classmethod
    def from_cv_results(
        cls,
        search: Any,
        *,
        param_name: str | None = None,
        metric: str = "score",
        ax: Any = None,
        negate_score: bool = False,
        score_name: str | None = None,
        name: str | None = None,
        std_display_style: str | None = "fill_between",
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        errorbar_kw: dict[str, Any] | None = None,
        baseline_kw: dict[str, Any] | None = None,
    ) -> PrivacyUtilityDisplay:
        """Draw the results of a search that varied an epsilon.

        Parameters
        ----------
        search : GridSearchCV or similar
            Fitted search.
        param_name : str, default=None
            The searched parameter for the x-axis, whose values are numbers or `PrivacyCost`. None:
            the only one called ``epsilon``, or ``<step>__epsilon``. It is the budget of one fit
            of the step it belongs to, not that of the search. Where the search varied other
            parameters too, the best candidate for each epsilon is drawn, which is optimistic. An
            infinite epsilon becomes the baseline.
        metric : str, default="score"
            Which score, in a search with several.
        ax, negate_score, score_name, name, std_display_style, line_kw, fill_between_kw, \
errorbar_kw, baseline_kw
            See `plot`.

        Returns
        -------
        display : PrivacyUtilityDisplay

        Raises
        ------
        ValueError
            If there is no such parameter or metric, or more than one epsilon to choose from.

        Notes
        -----
        **Privacy.** ``cv_results_`` is not private, and neither is the picture.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.model_selection import GridSearchCV, KFold
        >>> from sklearn.preprocessing import scale
        >>> from skdp import DPLogisticRegression, PrivacyUtilityDisplay
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> grid = {"epsilon": [0.1, 1.0, 10.0, float("inf")]}
        >>> search = GridSearchCV(DPLogisticRegression(classes=[0, 1]), grid, cv=KFold(2))
        >>> display = PrivacyUtilityDisplay.from_cv_results(search.fit(scale(X), y))
        """
        pyplot(f"{cls.__name__}.from_cv_results")
        check_is_fitted(search, "cv_results_")
        results = search.cv_results_
        param_name = _epsilon_parameter(results, param_name)
        if f"split0_test_{metric}" not in results:
            raise ValueError(f"the search has no scores called {metric!r}")
        scores = np.stack(
            [results[f"split{i}_test_{metric}"] for i in range(search.n_splits_)], axis=1
        )
        epsilons = np.array([_as_number(params[param_name]) for params in results["params"]])
        levels = np.unique(epsilons)
        best = [max(scores[epsilons == level], key=np.mean) for level in levels]
        curve = [(level, row) for level, row in zip(levels, best, strict=True) if level < np.inf]
        if not curve:
            raise ValueError(f"{param_name} took no finite value in the search")
        measured = metric
        if metric == "score":
            measured = name_of_score(search.scoring, search.estimator)
        display = cls(
            epsilons=np.array([level for level, _ in curve]),
            test_scores=np.array([row for _, row in curve])[:, :, np.newaxis],
            baseline_scores=best[-1] if levels[-1] == np.inf else None,
            param_name=param_name,
            score_name=_score_label(score_name, measured, negate_score),
            estimator_name=name,
        )
        return display.plot(
            ax=ax,
            negate_score=negate_score,
            std_display_style=std_display_style,
            line_kw=line_kw,
            fill_between_kw=fill_between_kw,
            errorbar_kw=errorbar_kw,
            baseline_kw=baseline_kw,
        )


def pyplot(caller: str) -> Any:
    """Return matplotlib's pyplot, or say what to install.

    Parameters
    ----------
    caller : str
        Who needs it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'skdp[plots]'") from error
    return plt


def _epsilon_parameter(results: dict[str, Any], param_name: str | None) -> str:
    searched = [key.removeprefix("param_") for key in results if key.startswith("param_")]
    if param_name is None:
        found = [name for name in searched if name.split("__")[-1] == "epsilon"]
        if len(found) != 1:
            raise ValueError(
                f"the search varied {found or 'no epsilon'}; say which one in param_name"
            )
        return found[0]
    if param_name not in searched:
        raise ValueError(f"the search did not vary {param_name!r}, but {searched}")
    return param_name


def _as_number(epsilon: Any) -> float:
    return epsilon.epsilon() if isinstance(epsilon, PrivacyCost) else float(epsilon)


def _plain_ticks(ax: Any) -> None:
    """Write 0.1, 1, 10 and not powers of ten; between them only on an axis shorter than that."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    low, high = ax.get_xlim()
    ax.xaxis.set_major_formatter(plain)
    ax.xaxis.set_minor_formatter(plain if high < 10.0 * low else NullFormatter())


def _score_label(score_name: str | None, name: str, negate: bool) -> str:
    """Label of the y-axis, put together as scikit-learn's displays do it."""
    if score_name is not None:
        return score_name
    if negate:
        name = name.removeprefix("neg_") if name.startswith("neg_") else f"negative {name}"
    words = re.sub("^neg_", "negative ", name).replace("_", " ")
    return words[:1].upper() + words[1:]
