"""Check that a wheel holds the package of a checkout and nothing else.

Usage: python tools/check_wheel.py WHEEL [CHECKOUT]

The wheel must hold every tracked file of ``skdp/``, byte by byte, its licence and its metadata, and
no other file; its version must be that of the package.
"""

import re
import sys
import tomllib
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

METADATA = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE"}


def package_version(checkout):
    """Version that the package states."""
    source = (checkout / "skdp" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)[1]


def package_files(checkout):
    """Files of the package by name, generated ones apart."""
    paths = (path for path in (checkout / "skdp").rglob("*") if path.is_file())
    return {
        path.relative_to(checkout).as_posix(): path.read_bytes()
        for path in paths
        if "__pycache__" not in path.parts
    }


def problems(wheel, checkout):
    """What is wrong with a wheel, one line each.

    Parameters
    ----------
    wheel : Path
        The file.
    checkout : Path
        Folder with the sources that it should have been made from.

    Returns
    -------
    found : list of str
    """
    version = package_version(checkout)
    info = f"skdp-{version}.dist-info"
    found = []
    if wheel.name != f"skdp-{version}-py3-none-any.whl":
        found.append(f"{wheel.name} is not named after version {version}")
    with ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
        dates = {item.date_time for item in archive.infolist()}
    wanted = package_files(checkout)
    metadata = {f"{info}/{name}" for name in METADATA}
    found += [f"{name} is missing" for name in sorted(({*wanted} | metadata) - {*held})]
    found += [f"{name} has no place in a wheel" for name in sorted({*held} - {*wanted} - metadata)]
    changed = sorted(name for name in {*held} & {*wanted} if held[name] != wanted[name])
    found += [f"{name} differs from the checkout" for name in changed]
    if "skdp/py.typed" not in held:
        found.append("skdp/py.typed is not there to say that the package has types")
    if len(dates) > 1:
        found.append("files have times of their own: SOURCE_DATE_EPOCH was not used")
    return found + _metadata_problems(held.get(f"{info}/METADATA", b"").decode(), checkout, version)


def _metadata_problems(text, checkout, version):
    """What is wrong with the metadata."""
    stated = Parser().parsestr(text)
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    if stated["Version"] != version:
        found.append(f"the metadata state version {stated['Version']}, the package {version}")
    needed = [line for line in stated.get_all("Requires-Dist", []) if "extra ==" not in line]
    if sorted(needed) != sorted(project["dependencies"]):
        found.append("the metadata state other dependencies than pyproject.toml")
    return found


def main():
    """Check, print, and fail if something is wrong."""
    wheel = Path(sys.argv[1])
    checkout = Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    found = problems(wheel, checkout)
    for line in found:
        print(f"{wheel.name}: {line}", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
