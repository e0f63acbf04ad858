"""The page of guarantees says what the estimators plan, and names proofs and tests that exist."""

import ast
import inspect
import re
import sys
from math import sqrt
from pathlib import Path

import pytest
import registry

from skdp import Binary, Categorical, Numeric

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import guarantees  # noqa: E402

TABLE = guarantees.load()
NAMES = sorted(registry.CLASSES)
RELATIONS = ["add_or_remove", "replace"]
HOW = (
    "docs/data/guarantees.toml says for every public estimator what it releases, and why that is "
    "private: add what is new there"
)


# Settings that decide what is released, of all estimators that have them and of single ones.
SETTINGS = [
    {"scale_check_share": 0.0},
    {"uncertainty_share": 0.0},
    {"gram_share": 0.0},
    {"fit_intercept": False},
    {"max_sample_weight": 4.0},
]
OWN_SETTINGS = {
    "DPOneHotEncoder": {"min_frequency": None},
    "DPOrdinalEncoder": {"max_categories": None},
    "DPTableVectorizer": {"schema": Categorical([-1, 0, 1])},
    **dict.fromkeys(registry.SEARCHES, {"scoring": "roc_auc"}),
}
# Settings that an estimator refuses: what it then would not release, it needs.
REFUSED = {"DPRidgeCV": [{"uncertainty_share": 0.0}, {"gram_share": 0.0}]}


def planning(name, neighboring):
    """The declared estimator with its variants, and the one with nothing declared."""
    made = [*registry.variants(name), registry.default(name)]
    known = set(registry.make(name).get_params())
    settings = [s for s in SETTINGS if s not in REFUSED.get(name, [])]
    more = [*(s for s in settings if set(s) <= known), OWN_SETTINGS.get(name, {})]
    made += [registry.declared(name, **settings) for settings in more]
    return [
        registry.Entry(e.name, e.label, e.estimator.set_params(neighboring=neighboring))
        for e in made
    ]


def plans_of(entry):
    """Plans for few rows and for many; none for an estimator that only wraps others."""
    estimator = entry.estimator
    if entry.name in registry.SEARCHES:  # they plan when they know the number of candidates
        return [registry.fit(estimator, *registry.rows_for(entry)).plan_]
    if not hasattr(estimator, "plan"):
        return []
    classes = len(estimator.get_params().get("classes") or [0, 1])
    labels = registry.has_labels(estimator)
    n_outputs = (classes if classes > 2 else 1) if labels else entry.n_outputs
    weighted = {"weighted": True} if registry.is_weighted(estimator) else {}
    return [estimator.plan(n, registry.N_FEATURES, n_outputs, **weighted) for n in (300, 30_000)]


def symbols(plan, estimator):
    """Values of the symbols of the formulas."""
    d = plan.shape.n_features
    clip = plan.settings.get("clip_norm")
    # Up to 32 bins are released without a tree.
    depth = plan.settings.get("depth", 0)
    kinds = estimator.get_params().get("schema")
    kinds = kinds if isinstance(kinds, list) else [kinds or Numeric()] * d
    numbers = [kind for kind in kinds if isinstance(kind, Numeric)]
    known = plan.settings.get("uses_bounds")
    found = [kind for kind in numbers if not (known and kind.bounds is not None)]
    return {
        "d": d,
        "K": plan.shape.n_features,  # of a search, as n is
        "n": plan.shape.n_rows,
        "C": clip,
        "c": clip,
        "L": depth if depth > 5 else 1,
        "k": len(numbers),
        "h": len(found) + sum(isinstance(kind, Categorical) for kind in kinds),
        "b": sum(isinstance(kind, Binary) for kind in kinds),
    }


def matches(release, planned, neighboring, values):
    """Whether a formula gives the planned sensitivity, or a tiny bit less."""
    formula = TABLE["releases"][release][neighboring]
    wanted = eval(formula, {"__builtins__": {}, "sqrt": sqrt}, values)
    return wanted * (1 - 1e-12) <= planned.sensitivity <= wanted * (1 + 1e-7)


def matched(table, name, neighboring):
    """For each plan of an estimator, the releases of its entry that the plan has."""
    found = []
    planners = planning(name, neighboring)
    for planner, plan in [(p, plan) for p in planners for plan in plans_of(p)]:
        values, seen = symbols(plan, planner.estimator), set()
        for planned in plan.releases:
            named = [
                item["release"]
                for item in table["estimators"][name]["releases"]
                if guarantees.plan_name(table, item["release"]) == planned.name
            ]
            assert named, f"{planner} releases {planned.name!r}, which its entry lacks. {HOW}"
            right = [r for r in named if matches(r, planned, neighboring, values)]
            assert right, f"{planner}: no formula for {named} gives {planned.sensitivity}. {HOW}"
            seen.update(right)
        found.append(seen)
    return found


def test_every_public_estimator_has_an_entry():
    assert sorted(TABLE["estimators"]) == NAMES, HOW


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")
def test_the_entry_has_what_is_planned_with_its_sensitivity_and_nothing_else(name, neighboring):
    plans = matched(TABLE, name, neighboring)
    for item in TABLE["estimators"][name]["releases"]:
        where = [item["release"] in seen for seen in plans]
        assert any(where), f"no plan of {name} releases {item['release']!r}. {HOW}"
        if neighboring == "replace":  # under the other relation two formulas may agree
            right = all(where) == ("when" not in item)
            assert right, f"{name}: when is {item['release']!r}? {HOW}"
    if not plans:  # a wrapper: its parts have entries of their own
        assert not TABLE["estimators"][name]["releases"]
        entry = registry.declared(name, neighboring=neighboring)
        fitted = registry.fit(entry.estimator, *registry.rows_for(entry))
        parts = registry.private_parts(fitted)
        assert parts and all(type(part).__name__ in TABLE["estimators"] for part in parts)


@pytest.mark.parametrize("change", ["missing", "extra", "formula"])
def test_an_entry_that_is_wrong_would_be_noticed(change, monkeypatch):
    releases = TABLE["estimators"]["DPStandardScaler"]["releases"]
    if change == "missing":
        wrong = [item for item in releases if item["release"] != "octaves"]
        monkeypatch.setitem(TABLE["estimators"]["DPStandardScaler"], "releases", wrong)
    elif change == "extra":
        wrong = [*releases, {"release": "levels", "when": "never"}]
        monkeypatch.setitem(TABLE["estimators"]["DPStandardScaler"], "releases", wrong)
    else:
        monkeypatch.setitem(TABLE["releases"]["moments"], "replace", "2 * sqrt(d)")
    with pytest.raises(AssertionError, match="guarantees.toml"):
        test_the_entry_has_what_is_planned_with_its_sensitivity_and_nothing_else(
            "DPStandardScaler", "replace"
        )


def test_every_part_of_the_table_is_used():
    estimators = TABLE["estimators"].values()
    used = {item["release"] for entry in estimators for item in entry["releases"]}
    assert used == set(TABLE["releases"])
    assert {entry["family"] for entry in estimators if "family" in entry} == set(TABLE["families"])
    parameters = {p for cls in registry.CLASSES.values() for p in inspect.signature(cls).parameters}
    assert set(TABLE["facts"]) <= parameters
    formulas = [r[relation] for r in TABLE["releases"].values() for relation in RELATIONS]
    names = {n.id for f in formulas for n in ast.walk(ast.parse(f)) if isinstance(n, ast.Name)}
    assert names - {"sqrt"} == set(TABLE["symbols"])


def statements():
    """Statements of the page of proofs."""
    page = (ROOT / "docs" / "proof.rst").read_text("utf-8")
    return page, set(guarantees.STATEMENT.findall(page))


@pytest.mark.parametrize("release", sorted(TABLE["releases"]))
def test_every_release_has_a_proof_and_a_test(release):
    assert TABLE["releases"][release]["lemmas"] and TABLE["releases"][release]["tests"]
    assert set(TABLE["releases"][release]["lemmas"]) <= statements()[1]


def named_tests():
    """All tests that the table names."""
    for part in [*TABLE["common"], *TABLE["releases"].values()]:
        yield from part["tests"]
    for part in [*TABLE["families"].values(), *TABLE["estimators"].values()]:
        yield from (claim["test"] for claim in part.get("claims", []))


def test_the_tests_exist():
    found = sorted(set(named_tests()))
    assert len(found) > 40
    for name in found:
        file, function = name.split("::")
        assert f"\ndef {function}(" in (ROOT / file).read_text("utf-8"), name


def test_what_is_claimed_of_all_is_tested_on_all():
    # Tests of single cases may stand beside those that run over the registry, not alone.
    for claim in TABLE["common"]:
        sources = [
            (ROOT / name.split("::")[0]).read_text("utf-8").split(f"def {name.split('::')[1]}(")
            for name in claim["tests"]
        ]
        before = [source[0].rsplit("\n\n\n", 1)[-1] for source in sources]
        assert any(re.search("for_each_|registry.CLASSES|entry|ENTRIES", b) for b in before), claim


def test_the_page_is_made_and_its_links_lead_somewhere():
    parameters = {n: list(inspect.signature(c).parameters) for n, c in registry.CLASSES.items()}
    page = (ROOT / "docs" / "guarantees.rst").read_text("utf-8")
    assert page.count(guarantees.PLACEHOLDER) == 1
    page = page.replace(guarantees.PLACEHOLDER, guarantees.render(TABLE, parameters))
    for name in NAMES:
        assert re.search(rf"^{name}\n~+\n\n:class:`{name}`\. \S", page, re.MULTILINE), name
        assert guarantees.entry(TABLE, name)["not_protected"], name
    proof, found = statements()
    pages = [page, guarantees.label_lemmas(proof), (ROOT / "docs/threat_model.rst").read_text()]
    targets = set(re.findall(r"^\.\. _([\w-]+):$", "\n".join(pages), re.MULTILINE))
    links = set(re.findall(r":ref:`[^<`]+<([\w-]+)>`", page))
    assert links and links <= targets
    assert {guarantees.label(statement) for statement in found} <= targets
