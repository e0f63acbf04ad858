"""How a privacy report is written: as a table of text, as a table of HTML."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from skdp.base import SEEDED

__all__ = ["html_report", "text_report"]

_STEP = ("step", "estimator", "fits", "mu", "epsilon", "share")
_RELEASE = ("release", "mechanism", "count", "sensitivity", "sigma", "mu", "epsilon", "share")
_NUMBERS = {"fits", "count", "sensitivity", "sigma", "mu", "epsilon", "share"}
_SECTIONS = ("Not covered", "Taken as public, or not protected", "Seeded")


def text_report(report: Any) -> str:
    """Write a `PrivacyReport` as text.

    Parameters
    ----------
    report : PrivacyReport
        What to write.

    Returns
    -------
    text : str
        Lines of a table, then the remarks.
    """
    lines = [_headline(report), "", *_aligned([_STEP, *map(_step_cells, report.steps)], _STEP)]
    for step in report.steps:
        if step.releases:
            cells = [_RELEASE, *map(_release_cells, step.releases)]
            title = f"releases of one fit of {step.path or step.estimator}"
            lines += ["", title, *(f"  {line}" for line in _aligned(cells, _RELEASE))]
    for heading, texts in _remarks(report):
        lines += ["", f"{heading}:", *(f"- {text}" for text in texts)]
    return "\n".join(lines)


def html_report(report: Any) -> str:
    """Write a `PrivacyReport` as HTML, all text escaped.

    Parameters
    ----------
    report : PrivacyReport
        What to write.

    Returns
    -------
    html : str
        A ``div``.
    """
    parts = [f"<p><b>{escape(_headline(report))}</b></p>"]
    parts.append(_table(_STEP, [_step_cells(step) for step in report.steps]))
    for step in report.steps:
        if step.releases:
            table = _table(_RELEASE, [_release_cells(release) for release in step.releases])
            title = escape(f"Releases of one fit of {step.path or step.estimator}")
            parts.append(f"<details><summary>{title}</summary>{table}</details>")
    for heading, texts in _remarks(report):
        items = "".join(f"<li>{escape(text)}</li>" for text in texts)
        parts.append(f"<p>{escape(heading)}:</p><ul>{items}</ul>")
    return f'<div class="skdp-privacy-report">{"".join(parts)}</div>'


def _headline(report: Any) -> str:
    state = "fitted" if report.is_fitted else "planned"
    total = report.total
    if not total.is_finite:
        return f"{report.title}, {state}: no privacy (epsilon is infinite)"
    parts = [f"epsilon {report.epsilon:.3g} at delta {report.delta:g}"]
    parts.append(f"{'Gaussian part ' if total.has_pair else ''}mu {total.gaussian_mu:.3g}")
    if total.has_pair:
        parts.append(f"epsilon0 {total.epsilon0:.3g}, delta0 {total.delta0:.3g}")
    parts.append(f"neighboring {total.neighboring!r}")
    if total.unit != "record":
        parts.append(f"unit {total.unit!r}")
    return f"{report.title}, {state}: {', '.join(parts)}"


def _step_cells(step: Any) -> tuple[str, ...]:
    name = step.path or "(itself)"
    mu, epsilon = _number(step.cost.gaussian_mu), _number(step.epsilon)
    return name, step.estimator, str(step.fits), mu, epsilon, _percent(step.share)


def _release_cells(release: Any) -> tuple[str, ...]:
    numbers = (release.sensitivity, release.sigma, release.mu, release.epsilon)
    return (
        release.name,
        release.mechanism,
        str(release.count),
        *map(_number, numbers),
        _percent(release.share),
    )


def _number(value: float) -> str:
    return f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100.0 * share:.3g}%"


def _remarks(report: Any) -> Iterator[tuple[str, Sequence[str]]]:
    names = dict.fromkeys(step.path or step.estimator for step in report.steps if step.is_seeded)
    seeded = [f"{name}: {SEEDED}" for name in names]
    for heading, texts in zip(_SECTIONS, (report.not_covered, report.public, seeded), strict=True):
        if texts:
            yield heading, texts


def _aligned(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if name in _NUMBERS else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
