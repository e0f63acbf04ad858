"""The package as a whole: what importing it costs, where its code may live, what it may use."""

import ast
import inspect
import re
import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from joblib.externals.loky import process_executor
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import skdp

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skdp"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# A module imports only from those above it; the modules of one subpackage may import each other.
# A new module gets its place here.
ORDER = [
    "exceptions",
    "_warn",
    "_threads",
    "_progress",
    "_gdp",
    "_rounding",
    "_pairs",
    "_curve",
    "accounting",
    "plan",
    "_validation",
    "_entropy",
    "_sampler",
    "_kernels",
    "_lattice",
    "noise",
    "base",
    "mechanism",
    "losses",
    "engine",
    "_dense_rows",
    "_sparse_rows",
    "_moments",
    "_histograms",
    "_octaves",
    "_location",
    "_quantiles",
    "_level_sums",
    "solvers",
    "uncertainty",
    "linear_model",
    "preprocessing",
    "cost",
    "twins",
    "budget",
    "_report_text",
    "report",
    "ledger",
    "counterpart",
    "model_selection",
    "display",
    "audit",
    "estimator_checks",
    "_discovery",
    "_show_versions",
]

# Modules that may use numpy's generators, because what they draw is public (never noise): why.
PUBLIC_RANDOMNESS: dict[str, str] = {
    "skdp.audit._one_run": "the auditor's canaries and coins",
    "skdp.estimator_checks._subject": "rows to check estimators with",
    "skdp.estimator_checks._noise": "seeds that must have no effect",
}
# Modules that draw simulated fits from released values: why. They know no rows and no noise core.
SIMULATION: dict[str, str] = {
    "skdp.uncertainty.intervals": "makes the generator, which may be seeded: it is no noise",
    "skdp.uncertainty.population": "draws rows with released second moments",
    "skdp.uncertainty.replicas": "draws the noise of simulated fits",
}
PRIVATE_SIDE = [
    "_entropy",
    "_sampler",
    "_lattice",
    "noise",
    "engine",
    "_dense_rows",
    "_sparse_rows",
]
RANDOM_NOISE = {"normal", "standard_normal", "laplace", "multivariate_normal", "standard_t"}

OPTIONAL = [
    "matplotlib",
    "dp_accounting",
    "pandas",
    "sqlite3",
    "cryptography",
    "dask",
    "polars",
    "numba",
]


def imported_names(tree, module):
    """Yield every dotted name that a source tree imports, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")[: -node.level]
                base = ".".join([*package, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def order_violations(tree, module, order=ORDER):
    """Return the imports of `module` that point downwards, or at the top-level package."""
    own = module.split(".")[1]
    found = []
    for name in imported_names(tree, module):
        parts = name.split(".")
        if parts[0] != "skdp":
            continue
        target = parts[1] if len(parts) > 1 else None
        if target not in order or (target != own and order.index(target) > order.index(own)):
            found.append(name)
    return found


def private_sklearn_uses(tree, module):
    """Return private scikit-learn names that are imported, or reached through attributes."""
    names = [*imported_names(tree, module)]
    names += [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [
        name
        for name in names
        if name.startswith("sklearn.") and any(p.startswith("_") for p in name.split("."))
    ]


def random_uses(tree, module):
    """Return uses of numpy.random and of generator methods that draw noise."""
    names = [*imported_names(tree, module)]
    names = [name for name in names if name.startswith("numpy.random")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if name in ("np.random", "numpy.random") or node.attr in RANDOM_NOISE:
                names.append(name)
    return names


def tree_of(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def test_importing_skdp_needs_and_loads_nothing_optional():
    # Every optional package is made unimportable, and who asked for it is written down.
    # scikit-learn itself tries pandas; nobody else may ask, not even within try/except.
    script = f"""
import sys
asked = []
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL}:
            frame = sys._getframe(1)
            while frame.f_globals["__name__"].startswith("importlib"):
                frame = frame.f_back
            asked.append((frame.f_globals["__name__"].split(".")[0], name))
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
import skdp
print(sorted(set(asked) - {{("sklearn", "pandas")}}))
print([name for name in {OPTIONAL} if name in sys.modules])
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.split("\n")[:2] == ["[]", "[]"]


def test_version_is_that_of_the_installed_distribution():
    assert skdp.__version__ == version("skdp")
    assert f"version: {skdp.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_public_names_exist_and_are_sorted():
    assert skdp.__all__ == sorted(skdp.__all__)
    assert [name for name in skdp.__all__ if not hasattr(skdp, name)] == []


def test_every_public_name_is_in_the_api_reference():
    listed = set((ROOT / "docs" / "api.rst").read_text(encoding="utf-8").split())
    assert sorted(set(skdp.__all__) - listed) == []


@pytest.mark.parametrize("module", [name for name in MODULES if name != "skdp"])
def test_imports_go_one_way(module):
    assert module.split(".")[1] in ORDER, "give the module its place in ORDER"
    assert order_violations(tree_of(module), module) == []


def test_the_import_order_names_each_module_once_and_so_does_the_guide():
    assert len(ORDER) == len(set(ORDER))
    guide = (ROOT / "docs" / "developer.rst").read_text("utf-8").split("Reason to exist")[1]
    cells = re.findall(r"^   \* - (``.*)$", guide, re.MULTILINE)
    assert re.findall(r"``(\w+)``", " ".join(cells)) == ORDER


@pytest.mark.parametrize(
    ("source", "violations"),
    [
        ("from skdp.exceptions import PrivacyWarning", []),
        ("from skdp.display import x", ["skdp.display.x"]),
        ("from .display import x", ["skdp.display.x"]),
        ("def f():\n    from skdp import budget", ["skdp.budget"]),
        ("import skdp.display", ["skdp.display"]),
        ("import skdp", ["skdp"]),
        ("from skdp import __version__", ["skdp.__version__"]),
        ("from skdp.unheard_of import x", ["skdp.unheard_of.x"]),
    ],
)
def test_order_violations_are_found(source, violations):
    assert order_violations(ast.parse(source), "skdp.plan") == violations


@pytest.mark.parametrize("module", MODULES)
def test_no_module_is_longer_than_500_lines(module):
    assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= 500


@pytest.mark.parametrize("module", MODULES)
def test_private_scikit_learn_names_stay_in_one_module(module):
    if module != "skdp._validation":
        assert private_sklearn_uses(tree_of(module), module) == []


@pytest.mark.parametrize(
    "source",
    [
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.base import _fit_context",
        "import sklearn.utils._tags",
        "import sklearn\nsklearn.utils._tags.Tags",
    ],
)
def test_private_scikit_learn_names_are_found(source):
    assert private_sklearn_uses(ast.parse(source), "skdp.plan")
    public = source.replace("._", ".").replace(" _", " ")
    assert not private_sklearn_uses(ast.parse(public), "skdp.plan")


@pytest.mark.parametrize("module", MODULES)
def test_noise_comes_from_the_sampler_only(module):
    if module != "skdp._sampler" and module not in {**PUBLIC_RANDOMNESS, **SIMULATION}:
        assert random_uses(tree_of(module), module) == []


def test_modules_with_public_randomness_draw_no_noise():
    for module in PUBLIC_RANDOMNESS:
        uses = random_uses(tree_of(module), module)
        assert uses, f"{module} needs no exception any more"
        assert [name for name in uses if name.split(".")[-1] in RANDOM_NOISE] == []


def test_simulations_are_apart_from_the_data():
    for module in SIMULATION:
        assert random_uses(tree_of(module), module), f"{module} needs no exception any more"
        names = [name.split(".") for name in imported_names(tree_of(module), module)]
        assert [n for n in names if n[0] == "skdp" and n[1] in PRIVATE_SIDE] == []


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.default_rng()",
        "from numpy.random import default_rng",
        "import numpy.random",
        "rng.normal(size=3)",
        "rng.standard_normal(3)",
    ],
)
def test_random_draws_are_found(source):
    assert random_uses(ast.parse(source), "skdp.plan")


# Two constraints files pin everything that the Makefile installs.
def pinned(name):
    lines = (ROOT / "constraints" / name).read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def installed_version(distribution):
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def requirements_of(distribution, extras=("",)):
    for line in requires(distribution) or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield requirement


@pytest.mark.parametrize(
    ("constraints", "extras"),
    [
        ("current.txt", ["fast", "plots", "demo", "tests", "docs", "benchmarks", "dev"]),
        ("oldest.txt", ["fast", "plots", "tests"]),
    ],
)
def test_constraints_pin_every_requirement(constraints, extras):
    pins = pinned(constraints)
    waiting = [*requirements_of("skdp", ["", *extras])]
    waiting += map(Requirement, ["pip", "hatchling"])
    seen = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = (name, *sorted(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        assert name in pins, f"{constraints} does not pin {name}"
        # What a pinned version itself requires is known only where that version is installed.
        if installed_version(name) == pins[name]:
            waiting += requirements_of(name, ["", *requirement.extras])


def test_oldest_constraints_are_the_declared_floors():
    pins = pinned("oldest.txt")
    for requirement in requirements_of("skdp", ["", "fast", "plots"]):
        floor = str(requirement.specifier).removeprefix(">=")
        assert pins[canonicalize_name(requirement.name)] == floor


def test_joblib_may_say_that_a_worker_idled_out():
    # An error in the thread that says so would leave every later search waiting for its workers.
    said = "A worker stopped while some jobs were given"
    assert said in inspect.getsource(process_executor).replace('"\n', "")
    warnings.warn(f"{said} to the executor.", UserWarning, stacklevel=1)
    with pytest.raises(UserWarning):
        warnings.warn("Anything else", UserWarning, stacklevel=1)


def test_show_versions_names_the_dependencies(capsys):
    assert skdp.show_versions() is None
    printed = capsys.readouterr().out
    for name in ["skdp", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"]:
        assert f"{name}: {version(name)}\n" in printed
    assert "Thread pool" in printed


def test_show_versions_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr("skdp._show_versions._OPTIONAL", ("no-such-distribution",))
    skdp.show_versions()
    assert "no-such-distribution: not installed\n" in capsys.readouterr().out


def test_all_estimators_are_public_and_sorted():
    names = [name for name, _ in skdp.all_estimators()]
    assert names == sorted(set(names))
    assert sorted(set(names) - set(skdp.__all__)) == []


@pytest.mark.parametrize(
    ("type_filter", "names"),
    [
        (None, ["DPMeta", "DPThing"]),
        ("transformer", ["DPThing"]),
        (["transformer", "cluster"], ["DPThing"]),
        ("regressor", []),
    ],
)
def test_all_estimators_finds_public_concrete_classes(type_filter, names, tmp_path, monkeypatch):
    source = """
        from abc import ABC, abstractmethod
        from sklearn.base import BaseEstimator, TransformerMixin
        from sklearn.linear_model import Ridge
        class DPThing(TransformerMixin, BaseEstimator): ...
        class DPMeta(BaseEstimator): ...
        class _DPHidden(BaseEstimator): ...
        class DPAbstract(BaseEstimator, ABC):
            @abstractmethod
            def fit(self): ...
        class NotAnEstimator: ...
    """
    lines = [line.removeprefix(" " * 8) for line in source.splitlines()]
    package = tmp_path / "extra"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "things.py").write_text("\n".join(lines))
    (package / "_private.py").write_text("raise AssertionError('private modules are left alone')")
    monkeypatch.setattr(skdp, "__path__", [str(tmp_path)])
    try:
        found = skdp.all_estimators(type_filter)
        assert [name for name, cls in found if cls.__module__ == "skdp.extra.things"] == names
    finally:
        for name in ["skdp.extra.things", "skdp.extra"]:
            sys.modules.pop(name, None)
        del skdp.extra


def test_all_estimators_refuses_unknown_kinds():
    with pytest.raises(ValueError, match=r"type_filter must be among .* got \['classifer'\]"):
        skdp.all_estimators("classifer")


def test_signatures_are_short_enough_to_read():
    for name in skdp.__all__:
        value = getattr(skdp, name)
        methods = [value, *(vars(value).values() if inspect.isclass(value) else ())]
        for function in filter(inspect.isfunction, methods):
            text = str(inspect.signature(function))
            assert "Buffer" not in text and "_Supports" not in text, (name, function)


def test_a_plan_is_short_as_a_repr_and_a_table_as_a_string():
    plan = skdp.DPLogisticRegression(epsilon=1.0).plan(10_000, 20)
    assert len(repr(plan)) < 100 and "\n" not in repr(plan)
    lines = str(plan).splitlines()
    assert lines[1].split() == ["release", "count", "sensitivity", "sigma", "mu"]
    assert len(lines) == 3 + len(plan.releases)
    for line, release in zip(lines[2:], plan.releases, strict=False):
        assert line.startswith(release.name) and f" {release.count} " in line
        assert f"{release.sigma:.4g}" in line
    free = skdp.DPStandardScaler(with_mean=False, with_std=False).plan(10, 2)
    assert str(free) == repr(free)
