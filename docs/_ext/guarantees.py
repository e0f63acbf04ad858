"""The page of guarantees, made of ``docs/data/guarantees.toml`` and of the classes' signatures.

The placeholder ``[[guarantees]]`` of ``guarantees.rst`` becomes a section per estimator, and the
lemmas of ``proof.rst`` become targets for its links.
"""

import inspect
import re
import tomllib
from pathlib import Path

TABLE = Path(__file__).parents[1] / "data" / "guarantees.toml"
PLACEHOLDER = "[[guarantees]]"
STATEMENT = re.compile(r"^\.\. admonition:: (Lemma \d+|Corollary)", re.MULTILINE)


def load():
    """The table, as nested dictionaries."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def plan_name(table, release):
    """Name that a release of the table has in a plan."""
    return table["releases"][release].get("name", release)


def entry(table, name):
    """Entry of an estimator, completed by that of its family."""
    own = table["estimators"][name]
    family = table["families"].get(own.get("family"), {})
    return {
        "composition": own.get("composition", family.get("composition")),
        "releases": own["releases"],
        "not_protected": [*family.get("not_protected", []), *own.get("not_protected", [])],
        "claims": [*family.get("claims", []), *own.get("claims", [])],
    }


def label(text):
    """Name of a target: ``lemma-5``, or ``release-second-moments``."""
    return text.lower().replace(" ", "-")


def label_lemmas(text):
    """The page of proofs with a target before each statement."""
    return STATEMENT.sub(lambda found: f".. _{label(found[1])}:\n\n{found[0]}", text)


def heading(text, line):
    """Title of a section."""
    return [text, line * len(text), ""]


def bullets(items):
    """List of items of one line each."""
    return [*(f"* {item}" for item in items), ""]


def rows(header, widths, lines):
    """Table of cells of one line each."""
    text = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for cells in [header, *lines]:
        text += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(cells)]
    return [*text, ""]


def lemma_links(names):
    """Links to statements of the page of proofs."""
    return ", ".join(f":ref:`{name} <{label(name)}>`" for name in names)


def test_names(names):
    """Names of tests, as code."""
    return ", ".join(f"``{name}``" for name in names)


def releases_section(table):
    """What each release is, its sensitivity, and why that holds."""
    text = heading("Releases", "-")
    text += ["In the formulas:", ""]
    text += bullets(f"``{name}``: {meaning}" for name, meaning in table["symbols"].items())
    for name, release in sorted(table["releases"].items()):
        text += [f".. _{label('release ' + name)}:", "", *heading(name.capitalize(), "~")]
        text += [f"{release['what'][0].upper()}{release['what'][1:]}.", ""]
        text += bullets(
            [
                f"In a plan: ``{release.get('name', name)}``",
                f'Sensitivity under ``"add_or_remove"``: ``{release["add_or_remove"]}``',
                f'Sensitivity under ``"replace"``: ``{release["replace"]}``',
                f"Proof: {lemma_links(release['lemmas'])}",
                f"Tests: {test_names(release['tests'])}",
            ]
        )
    return text


def estimator_section(table, name, parameters):
    """What one estimator releases, what is public, what is not protected, who says so."""
    found = entry(table, name)
    text = [*heading(name, "~"), f":class:`{name}`. {found['composition']}", ""]
    lines = []
    for item in found["releases"]:
        release = table["releases"][item["release"]]
        lines.append(
            [
                f":ref:`{item['release']} <{label('release ' + item['release'])}>`",
                item.get("when", "always"),
                f"``{release['add_or_remove']}``",
                f"``{release['replace']}``",
                lemma_links(release["lemmas"]),
            ]
        )
    if lines:
        header = ["Release", "When", "add_or_remove", "replace", "Proof"]
        text += rows(header, "25 30 15 15 15", lines)
    facts = [(n, fact) for n, fact in table["facts"].items() if n in parameters]
    text += ["Public, if given:", "", *bullets(f"``{n}``: {fact}" for n, fact in facts)]
    text += ["Not protected:", "", *bullets(found["not_protected"])]
    if found["claims"]:
        text += ["Of its own:", ""]
        text += bullets(f"{claim['claim']} (``{claim['test']}``)" for claim in found["claims"])
    return text


def render(table, parameters):
    """Text of the page.

    `parameters` has the names of the parameters of every public estimator.
    """
    text = heading("What holds for all of them", "-")
    text += bullets(f"{c['claim']} ({test_names(c['tests'])})" for c in table["common"])
    text += heading("Estimators", "-")
    for name in sorted(parameters):
        text += estimator_section(table, name, parameters[name])
    return "\n".join(text + releases_section(table))


def insert(app, docname, source):
    """Fill in the placeholder, and mark the lemmas."""
    if docname == "guarantees":
        from skdp import all_estimators

        signatures = {n: list(inspect.signature(c).parameters) for n, c in all_estimators()}
        source[0] = source[0].replace(PLACEHOLDER, render(load(), signatures))
    elif docname == "proof":
        source[0] = label_lemmas(source[0])


def setup(app):
    """Read pages through `insert`."""
    app.connect("source-read", insert)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
