"""The pages say what the code does: their examples are run, their links lead somewhere."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest
import registry
from scipy.stats import norm

from skdp import PrivacyCost

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.rst"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_the_page_are_true(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    assert result.failed == 0


def test_most_pages_for_users_have_examples():
    parser = doctest.DocTestParser()
    examples = {page.stem: len(parser.get_examples(page.read_text("utf-8"))) for page in PAGES}
    assert all(examples[name] >= 5 for name in ("getting_started", "user_guide", "mechanism"))


def readme():
    return (ROOT / "README.md").read_text("utf-8")


def test_the_readme_example_prints_what_it_says():
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", readme(), re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    printed, shown = printed.getvalue().splitlines(), shown.splitlines()
    assert printed[0] == shown[0]  # the cost
    # Accuracy on 450 digits; its spread over draws of the noise is about 0.01.
    for k, name, tolerance in [(1, "private ", 0.07), (2, "without ", 0.01)]:
        now, then = (float(lines[k].removeprefix(name)) for lines in (printed, shown))
        assert abs(now - then) < tolerance


def test_the_readme_links_to_files_that_exist():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", readme()):
        assert (ROOT / target).exists(), target


def test_pages_refer_to_gallery_examples_that_exist():
    for page in PAGES:
        for name in re.findall(r"sphx_glr_auto_examples_(plot_\w+)\.py", page.read_text("utf-8")):
            assert (ROOT / "examples" / f"{name}.py").is_file(), (page.name, name)


def test_every_make_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for text in [readme(), *(page.read_text("utf-8") for page in PAGES)]:
        for target in re.findall(r"(?:``?|^)make ([a-z-]+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_what_the_best_test_finds_is_what_the_pages_say():
    mu = PrivacyCost.from_epsilon(1.0, 1e-5).mu
    power = [f"{100 * norm.cdf(norm.ppf(0.05) + k * mu):.1f}%" for k in (1, 2)]
    for text in (readme(), (ROOT / "docs" / "threat_model.rst").read_text("utf-8")):
        assert re.findall(r"\d+\.\d%", text)[:2] == power


def seeded(text):
    """Private estimators that are made with a seed, as far as they are called."""
    inside = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*?"
    names = r"(?:DP[A-Z]\w+|GaussianMechanism|PrivacyBudget)"
    return re.findall(rf"\b{names}\({inside}\brandom_state=", text)


def test_no_example_seeds_its_noise():
    assert seeded("DPRidge(y_bounds=(0, max(1, (2))), random_state=0)")
    assert not seeded("DPGridSearchCV(DPRidge(), search_random_state=0), split(random_state=0)")
    code = [*(ROOT / "examples").glob("*.py"), *(ROOT / "skdp").rglob("*.py")]
    shown = {path.name: seeded(path.read_text("utf-8")) for path in [*PAGES, *code]}
    shown = {name: found for name, found in shown.items() if found}
    assert shown == {"user_guide.rst": ["DPRidge(random_state="]}  # which shows what it costs
    assert not seeded(readme())


LINEAR = [name for name in registry.CLASSES if "feature_norm" in registry.make(name).get_params()]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_say_how_long_a_row_may_be(name):
    said = " ".join(registry.CLASSES[name].__doc__.split())
    said = re.search(r"rows are clipped to (.*?) times this norm", said)[1]
    default, _, plain = said.partition(" (by plain descent, ")
    made = registry.declared(name).estimator
    solvers = ["gradient-descent"] if "solver" in made.get_params() else []
    for solver, words in [(None, default), *((s, plain.rstrip(")") or default) for s in solvers)]:
        if solver:
            made.set_params(solver=solver)
        slack = made.plan(2000, 3).settings["row_slack"]
        assert words == {2.0: "two", 8.0: "eight"}[slack]
