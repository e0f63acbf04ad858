"""What an object released, step by step, at what cost: `privacy_report`."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from skdp._report_text import html_report, text_report
from skdp.accounting import PrivacyCost
from skdp.base import SEEDED
from skdp.budget import PrivacyBudget
from skdp.cost import CostPart, cost_parts, given_facts, privacy_cost

__all__ = ["PrivacyReport", "ReportedRelease", "ReportedStep", "privacy_report"]


@dataclass(frozen=True)
class ReportedRelease:
    """Equal releases of one fitted step.

    Attributes
    ----------
    name : str
        What was released.
    mechanism : str
        How: "Gaussian", or "thresholded Gaussian".
    count : int
        How often in one fit.
    sensitivity : float
        L2 sensitivity of the released value, in its units.
    sigma : float
        Standard deviation of the noise, in the units of the value.
    mu : float
        Gaussian privacy parameter of each.
    epsilon : float
        Of all of them in one fit, at the delta of the report.
    share : float or None
        Of the total mu^2, all fits of the step counted; None where the total has no mu.
    """

    name: str
    mechanism: str
    count: int
    sensitivity: float
    sigma: float
    mu: float
    epsilon: float
    share: float | None


@dataclass(frozen=True)
class ReportedStep:
    """One part of the object, in the order of fitting.

    Attributes
    ----------
    path : str
        Name of the part as in ``set_params``; empty for the object itself.
    estimator : str
        Name of its class; empty for what belongs to no estimator.
    fits : int
        Number of fits that one record takes part in.
    cost : PrivacyCost
        Of all these fits.
    epsilon : float
        Of all these fits, at the delta of the report.
    share : float or None
        Of the total mu^2; None where the total has no mu.
    is_seeded : bool
        Whether the noise can be computed anew by who knows the seed.
    releases : tuple of ReportedRelease
        Of one fit. Empty for what is free, is not fitted yet or has left no trace.
    """

    path: str
    estimator: str
    fits: int
    cost: PrivacyCost
    epsilon: float
    share: float | None
    is_seeded: bool
    releases: tuple[ReportedRelease, ...] = ()


@dataclass(frozen=True, repr=False)
class PrivacyReport:
    """What an object released or will release; prints as a table, as HTML in a notebook.

    Attributes
    ----------
    title : str
        Name of the object's class.
    is_fitted : bool
        Whether anything in it is fitted; else all is planned.
    total : PrivacyCost
        Cost of the whole object, as of `privacy_cost`.
    delta : float
        Where epsilon is stated.
    epsilon : float
        Of the whole object at `delta`.
    steps : tuple of ReportedStep
        All parts, free ones too.
    public : tuple of str
        What is taken as public or is not protected.
    not_covered : tuple of str
        Why there is no guarantee at all, if so.
    is_seeded : bool
        Whether the noise of any step can be computed anew by who knows its seed.

    See Also
    --------
    privacy_report : Makes one.

    Notes
    -----
    **Privacy.** A report is made of parameters, plans and charges only, never of data.
    """

    title: str
    is_fitted: bool
    total: PrivacyCost
    delta: float
    epsilon: float
    steps: tuple[ReportedStep, ...]
    public: tuple[str, ...]
    not_covered: tuple[str, ...]
    is_seeded: bool

    def __repr__(self) -> str:
        """Write it as a table of text."""
        return text_report(self)

    def _repr_html_(self) -> str:
        """Write it as a table of HTML."""
        return html_report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values.

        Returns
        -------
        report : dict
            Of numbers, strings, lists and dicts: ready for JSON, but for infinities.
        """
        found: dict[str, Any] = _plain(asdict(self))
        return found

    def to_frame(self) -> Any:
        """Return the report as a table; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row for every release, or for a step that has none to show: step, estimator, fits,
            release, mechanism, count, sensitivity, sigma, mu, epsilon, share. Of a row without a
            release mu is that of the step, all fits together.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        rows = []
        for step in self.steps:
            start = {"step": step.path, "estimator": step.estimator, "fits": step.fits}
            rows += [{**start, "release": r.name, **_without_name(r)} for r in step.releases]
            if not step.releases:
                mu = step.cost.gaussian_mu
                rows.append({**start, "mu": mu, "epsilon": step.epsilon, "share": step.share})
        columns = ["step", "estimator", "fits", "release", "mechanism", "count", "sensitivity"]
        return pd.DataFrame(rows, columns=[*columns, "sigma", "mu", "epsilon", "share"])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _without_name(release: ReportedRelease) -> dict[str, Any]:
    return {key: value for key, value in vars(release).items() if key != "name"}


def privacy_report(
    obj: Any,
    *,
    delta: float | None = None,
    n_classes: int | None = None,
    n_outputs: int | None = None,
    n_features: int | None = None,
) -> PrivacyReport:
    """Say what an object released or will release, at what cost, and what is not covered.

    Parameters
    ----------
    obj : estimator
        Whatever has a `privacy_cost`, fitted or not.
    delta : float, default=None
        Where epsilon is stated, strictly between 0 and 1; None for the reference delta of the
        object's cost.
    n_classes, n_outputs, n_features : int, default=None
        As for `privacy_cost`.

    Returns
    -------
    report : PrivacyReport
        A value with the rows of the table; ``print`` it.

    Raises
    ------
    TypeError, ValueError
        As by `privacy_cost`, and if delta is out of its range.

    See Also
    --------
    privacy_cost : The total only.

    Notes
    -----
    **Privacy.** A report is made of parameters, plans and charges only, never of data. The
    parts of a `PrivacyBudget` are listed each; the total is what it states.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer
    >>> from skdp import DPLogisticRegression, DPStandardScaler, privacy_report
    >>> model = DPLogisticRegression(epsilon=2.0, classes=[0, 1])
    >>> privacy_report(make_pipeline(Normalizer(), DPStandardScaler(), model))
    Pipeline, planned: epsilon 2.3 at delta 1e-05, mu 0.569, neighboring 'add_or_remove'
    <BLANKLINE>
    step                  estimator             fits     mu  epsilon  share
    normalizer            Normalizer               1      0        0     0%
    dpstandardscaler      DPStandardScaler         1  0.268        1  22.2%
    dplogisticregression  DPLogisticRegression     1  0.502        2  77.8%
    """
    with given_facts(n_classes=n_classes, n_outputs=n_outputs, n_features=n_features):
        total = privacy_cost(obj)
        parts = tuple(_expanded(cost_parts(obj)))
    at = total.reference_delta if delta is None else delta
    scale = total.gaussian_mu**2 if total.is_finite else 0.0
    epsilon = total.epsilon(at)  # checks delta
    if not 0.0 < at < 1.0:
        raise ValueError(f"delta must be strictly between 0 and 1, got {at}")
    steps = tuple(_step(part, at, scale) for part in parts if _is_shown(part))
    reasons = {text for part in parts if not part.cost.is_finite for text in part.cost.assumptions}
    return PrivacyReport(
        type(obj).__name__,
        any(step.releases for step in steps) or _is_fitted(obj),
        total,
        at,
        epsilon,
        steps,
        tuple(text for text in total.assumptions if text not in reasons and text != SEEDED),
        tuple(sorted(reasons)) if not total.is_finite else (),
        any(step.is_seeded for step in steps),
    )


def _is_fitted(obj: Any) -> bool:
    return any(name.endswith("_") and not name.startswith("_") for name in vars(obj))


def _is_shown(part: CostPart) -> bool:
    return part.estimator is not None or part.is_charged


def _expanded(parts: tuple[CostPart, ...]) -> Iterator[CostPart]:
    """The same parts, those inside a `PrivacyBudget` in its place."""
    for part in parts:
        if not isinstance(part.estimator, PrivacyBudget):
            yield part
            continue
        budget = part.estimator
        held = getattr(budget, "estimator_", None)
        with given_facts(
            n_classes=budget.n_classes, n_outputs=budget.n_outputs, n_features=budget.n_features
        ):
            inner = tuple(_expanded(cost_parts(budget.configured() if held is None else held)))
        for found in inner:
            path = "__".join(filter(None, [part.path, "estimator", found.path]))
            yield CostPart(path, found.estimator, found.cost, found.times * part.times)


def _step(part: CostPart, delta: float, scale: float) -> ReportedStep:
    cost = PrivacyCost.compose([part.cost] * part.times)
    # An unfitted twin of a fitted part, of a search for instance, has none.
    releases = getattr(part.estimator, "releases_", ()) if part.cost.is_finite else ()
    return ReportedStep(
        part.path,
        "" if part.estimator is None else type(part.estimator).__name__,
        part.times,
        cost,
        cost.epsilon(delta),
        cost.gaussian_mu**2 / scale if scale else None,
        SEEDED in part.cost.assumptions,
        tuple(_released(releases, part, delta, scale)),
    )


def _released(
    releases: Any, part: CostPart, delta: float, scale: float
) -> Iterator[ReportedRelease]:
    def kind(release: Any) -> tuple[Any, ...]:
        mechanism = getattr(release, "mechanism", "Gaussian")
        delta0 = getattr(release, "delta0", 0.0)
        return release.name, mechanism, release.sensitivity, release.sigma, release.mu, delta0

    for (name, mechanism, sensitivity, sigma, mu, delta0), equal in groupby(releases, key=kind):
        count = sum(1 for _ in equal)
        spent = PrivacyCost.compose([PrivacyCost(mu, delta0=delta0)] * count)
        yield ReportedRelease(
            name,
            mechanism,
            count,
            sensitivity,
            sigma,
            mu,
            spent.epsilon(delta),
            mu**2 * count * part.times / scale if scale else None,
        )
