"""All checks, run at once or as tests of their own."""

# Signatures in `help` show the names of types, not what they stand for.
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import SkipTest

from skdp.estimator_checks import _attacks, _costs, _leaks, _noise
from skdp.estimator_checks._subject import Check, Subject

__all__ = [
    "CHECKS",
    "PrivacyCheckResult",
    "check_estimator_privacy",
    "parametrize_with_privacy_checks",
]

CHECKS: tuple[Check, ...] = (
    _costs.check_cost_is_stated,
    _costs.check_copies_keep_the_cost,
    _costs.check_fit_leaves_the_parameters_alone,
    _costs.check_searches_are_charged,
    _costs.check_releases_add_up,
    _costs.check_late_failures_are_charged,
    _noise.check_noise_is_fresh,
    _noise.check_global_seeds_have_no_effect,
    _noise.check_noise_is_fresh_in_workers,
    _noise.check_noise_is_fresh_in_forks,
    _noise.check_noise_cannot_be_replayed,
    _noise.check_seeds_are_flagged_and_keyed,
    _noise.check_noise_grows_as_epsilon_falls,
    _noise.check_releases_lie_on_a_grid,
    _leaks.check_nothing_is_without_noise,
    _leaks.check_no_statistic_in_the_state,
    _leaks.check_no_value_per_record,
    _leaks.check_classes_are_declared,
    _leaks.check_messages_show_no_values,
    _attacks.check_clipping_on_every_path,
    _attacks.check_small_audit,
)


@dataclass(frozen=True)
class PrivacyCheckResult:
    """What one check found.

    Attributes
    ----------
    check_name : str
        Name of the check.
    status : {"passed", "failed", "xfail", "skipped"}
        "xfail" is an expected failure that was one; "skipped" is a check that does not apply.
    reason : str
        What is wrong, or why it was skipped; empty where it passed.
    exception : Exception or None
        What the check raised.
    """

    check_name: str
    status: str
    reason: str = ""
    exception: Exception | None = None


def check_estimator_privacy(
    estimator: Any,
    *,
    data: Callable[[Any], tuple[Any, Any]] | None = None,
    released: Callable[[Any, Any, Any], Any] | None = None,
    expected_failed_checks: Mapping[str, str] | None = None,
    n_runs: int = 120,
    on_fail: str | None = "raise",
) -> list[PrivacyCheckResult]:
    """Check an estimator for the ways in which private estimators were found not to be private.

    Parameters
    ----------
    estimator : estimator
        With scikit-learn's interface, its public facts (bounds, classes) declared. It states its
        cost by a method ``planned_cost()`` and, once fitted, an attribute ``privacy_cost_``, or by
        a rule given to `register_cost_rule`.
    data : callable, default=None
        ``data(estimator)`` gives ``(X, y)`` that the declared facts cover, as NumPy arrays, `y` of
        None for estimators without targets. None: 61 rows of three features between -2 and 2, with
        targets by tags and parameters ``classes`` or ``y_bounds``.
    released : callable, default=None
        ``released(fitted, X, y)`` gives numbers just as the noise left them; without it nothing is
        said about their low bits.
    expected_failed_checks : mapping of str to str, default=None
        Names of checks that the estimator does not pass, each with a reason.
    n_runs : int, default=120
        Number of fits of each audit, at least: a larger cost takes more before it can be refuted.
        With so few only gross violations are found.
    on_fail : {"raise"} or None, default="raise"
        Whether a failed check is an error.

    Returns
    -------
    results : list of PrivacyCheckResult
        One for each check, in order.

    Raises
    ------
    AssertionError
        If a check fails that was not expected to, and `on_fail` is "raise".
    ValueError
        If a parameter is out of range.

    See Also
    --------
    parametrize_with_privacy_checks : The same, as tests of pytest.
    skdp.audit.audit_epsilon : A longer attack.

    Notes
    -----
    A check that fails has found a defect; that all pass proves nothing. Statistical checks fail a
    correct estimator with probability below 1e-6 each, as long as its fits differ: where nearly
    all show the same, noise of so little effect and fixed noise look alike.

    **Privacy.** The data are made up.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.estimator_checks import check_estimator_privacy
    >>> found = check_estimator_privacy(DPStandardScaler(bounds=(-3, 3)), n_runs=40)
    >>> sorted({result.status for result in found})
    ['passed', 'skipped']
    """
    if on_fail not in ("raise", None):
        raise ValueError(f"on_fail must be 'raise' or None, got {on_fail!r}")
    expected = _known(expected_failed_checks or {})
    subject = _subject(estimator, data, released, n_runs)
    results = []
    for check in CHECKS:
        name = check.__name__
        try:
            check(subject)
        except SkipTest as skipped:
            results.append(PrivacyCheckResult(name, "skipped", str(skipped)))
        except Exception as error:
            if name in expected:
                results.append(PrivacyCheckResult(name, "xfail", expected[name], error))
                continue
            if on_fail == "raise":
                raise
            results.append(PrivacyCheckResult(name, "failed", str(error), error))
        else:
            results.append(PrivacyCheckResult(name, "passed"))
    return results


def parametrize_with_privacy_checks(
    estimators: Iterable[Any],
    *,
    data: Callable[[Any], tuple[Any, Any]] | None = None,
    released: Callable[[Any, Any, Any], Any] | None = None,
    expected_failed_checks: Callable[[Any], Mapping[str, str]] | None = None,
    n_runs: int = 120,
) -> Any:
    """Make a test of every check for every estimator.

    Parameters
    ----------
    estimators : iterable of estimators
        As in `check_estimator_privacy`.
    data : callable, default=None
        As in `check_estimator_privacy`.
    released : callable, default=None
        As in `check_estimator_privacy`.
    expected_failed_checks : callable, default=None
        Gives for an estimator the names of checks that it does not pass, with reasons; these tests
        are marked as expected failures.
    n_runs : int, default=120
        Number of fits of each audit, at least.

    Returns
    -------
    decorator : pytest.MarkDecorator
        For a test function with the arguments ``estimator`` and ``check``, which calls
        ``check(estimator)``.

    Raises
    ------
    TypeError
        If an estimator is a class.

    See Also
    --------
    check_estimator_privacy : All checks at once, without pytest.

    Notes
    -----
    **Privacy.** The data are made up.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.estimator_checks import parametrize_with_privacy_checks
    >>> @parametrize_with_privacy_checks([DPRidge(y_bounds=(-3.0, 3.0))])
    ... def test_privacy(estimator, check):
    ...     check(estimator)
    """
    import pytest

    def tests() -> Iterator[Any]:
        for estimator in estimators:
            if isinstance(estimator, type):
                raise TypeError(f"give an instance, got the class {estimator.__name__}")
            reasons = expected_failed_checks(estimator) if expected_failed_checks else {}
            expected = _known(reasons)
            for check in CHECKS:
                name = check.__name__
                marks = [pytest.mark.xfail(reason=expected[name])] if name in expected else []
                test = partial(_run, check, data=data, released=released, n_runs=n_runs)
                label = f"{_label(estimator)}-{name}"
                yield pytest.param(estimator, test, marks=marks, id=label)

    return pytest.mark.parametrize(("estimator", "check"), list(tests()))


def _run(check: Check, estimator: Any, *, data: Any, released: Any, n_runs: int) -> None:
    check(_subject(estimator, data, released, n_runs))


def _subject(estimator: Any, data: Any, released: Any, n_runs: int) -> Subject:
    if isinstance(estimator, type):
        raise TypeError(f"give an instance, got the class {estimator.__name__}")
    return Subject(estimator, data, released, n_runs)


def _known(expected: Mapping[str, str]) -> Mapping[str, str]:
    unknown = sorted(set(expected) - {check.__name__ for check in CHECKS})
    if unknown:
        raise ValueError(f"there are no checks {unknown}")
    return expected


def _label(estimator: Any) -> str:
    return "".join(repr(estimator).split())[:80]
