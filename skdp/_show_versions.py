"""What a bug report needs to say about the machine."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

__all__ = ["show_versions"]

_REQUIRED = ("skdp", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl")
_OPTIONAL = ("cryptography", "matplotlib", "pandas", "polars")


def show_versions() -> None:
    """Print the versions of Python, skdp and its dependencies, and the thread pools in use.

    Include the output in a bug report. Nothing optional is imported for it.

    Examples
    --------
    >>> from skdp import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System:
        python: ...
    """
    _print_section(
        "System",
        {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
    )
    _print_section("Python dependencies", {name: _version(name) for name in _REQUIRED})
    _print_section("Optional dependencies", {name: _version(name) for name in _OPTIONAL})
    for pool in threadpool_info():
        name = pool.pop("prefix")
        _print_section(f"Thread pool {name}", pool)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _print_section(title: str, values: dict[str, object]) -> None:
    print(f"{title}:")
    width = max(map(len, values))
    for name, value in values.items():
        print(f"    {name:>{width}}: {value}")
    print()
