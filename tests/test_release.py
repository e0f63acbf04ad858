"""Releases hold the package and nothing else, and anyone can make them again bit by bit."""

import os
import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import skdp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_wheel  # noqa: E402
import make_dist  # noqa: E402

pytest.importorskip("hatchling", reason="the build tool is not in this environment")
EPOCH = "1700000000"
INFO = f"skdp-{skdp.__version__}.dist-info"


def copy_sources(folder):
    """What a wheel is made from."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "skdp", folder / "skdp", ignore=ignore)
    for name in ["pyproject.toml", "README.md", "LICENSE"]:
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory):
    return make_dist.hatch(sources, "wheel", tmp_path_factory.mktemp("wheel"), EPOCH)


def test_a_wheel_holds_the_package_and_nothing_else(wheel, sources):
    assert check_wheel.problems(wheel, sources) == []


def test_a_second_build_is_the_same_whoever_makes_it_and_when(wheel, tmp_path):
    again = copy_sources(tmp_path / "elsewhere")
    for path in again.rglob("*.py"):  # other times and permissions
        os.utime(path, (1e9, 1e9))
        path.chmod(0o600)
    other = make_dist.hatch(again, "wheel", tmp_path / "wheel", EPOCH)
    assert other.name == wheel.name
    assert other.read_bytes() == wheel.read_bytes()
    # The comparison sees what it is for: a time that is part of the file.
    later = make_dist.hatch(again, "wheel", tmp_path / "later", str(int(EPOCH) + 86400))
    assert later.read_bytes() != wheel.read_bytes()


def rewritten(wheel, folder, change):
    """A copy of a wheel whose files, a dict of bytes by name, were changed."""
    with ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    change(held)
    path = folder / wheel.name
    with ZipFile(path, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda f: f.update({"tests/data/adult.csv": b"39,"}), "adult.csv has no place in a wheel"),
        (lambda f: f.update({"skdp/notes.txt": b""}), "skdp/notes.txt has no place"),
        (lambda f: f.pop("skdp/py.typed"), "skdp/py.typed is missing"),
        (lambda f: f.pop(f"{INFO}/licenses/LICENSE"), "LICENSE is missing"),
        (lambda f: f.update({"skdp/noise.py": b"sigma = 0"}), "skdp/noise.py differs"),
        (
            lambda f: f.update({f"{INFO}/METADATA": b"Version: 9\n"}),
            "the metadata state version 9",
        ),
        (
            lambda f: f.update({f"{INFO}/METADATA": f"Version: {skdp.__version__}\n".encode()}),
            "other dependencies",
        ),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said(wheel, sources, tmp_path, change, problem):
    found = check_wheel.problems(rewritten(wheel, tmp_path, change), sources)
    assert any(problem in line for line in found), found


def test_a_wheel_of_another_version_or_without_a_time_is_refused(sources, wheel, tmp_path):
    path = tmp_path / "skdp-9.9.9-py3-none-any.whl"
    with ZipFile(wheel) as old, ZipFile(path, "w") as new:
        for k, name in enumerate(old.namelist()):
            new.writestr(name, old.read(name))
            new.getinfo(name).date_time = (2020, 1, 1 + k % 2, 0, 0, 0)
    found = "\n".join(check_wheel.problems(path, sources))
    assert "is not named after version" in found and "SOURCE_DATE_EPOCH" in found


def test_tags_are_versions_that_the_changelog_knows(sources):
    (sources / "CHANGELOG.md").write_text(f"## [{skdp.__version__}] - 2023-11-14\n")
    assert make_dist.tag_problems(sources, [f"v{skdp.__version__}"]) == []
    assert make_dist.tag_problems(sources, ["v9.9.9"]) == [f"tag v9.9.9 is not v{skdp.__version__}"]
    (sources / "CHANGELOG.md").write_text("## [Unreleased]\n")
    assert make_dist.tag_problems(sources, []) == []
    assert "no section" in make_dist.tag_problems(sources, [f"v{skdp.__version__}"])[0]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_distributions_of_a_commit(tmp_path):
    (source_dist, wheel), sources = make_dist.make(tmp_path)
    assert check_wheel.problems(wheel, sources) == []
    assert source_dist.name.startswith("skdp-") and source_dist.name.endswith(".tar.gz")
    held = {p.name for p in next((tmp_path / "unpacked").iterdir()).iterdir()}
    assert {"skdp", "tests", "docs", "LICENSE", "README.md", "CHANGELOG.md", "PKG-INFO"} <= held
    assert not held & {".git", "dist", "build", ".venv"}
