"""tools/venv.sh says plainly what is wrong before it makes or removes anything."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "tools" / "venv.sh"


def make_environment(directory, *arguments, python):
    return subprocess.run(
        ["sh", SCRIPT, directory / "env", "constraints.txt", *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHON": str(python)},
        capture_output=True,
        text=True,
        cwd=directory,
    )


def fake_python(directory, unlike):
    """Return an interpreter that fails on any code that contains `unlike`."""
    path = directory / "python"
    path.write_text(
        f'#!/bin/sh\ncase "$2" in *"{unlike}"*) exit 1 ;; esac\nexec "{sys.executable}" "$@"\n'
    )
    path.chmod(0o755)
    return path


def test_interpreter_that_does_not_run(tmp_path):
    run = make_environment(tmp_path, python="no-such-python")
    assert run.returncode == 1
    assert run.stderr == "skdp: PYTHON=no-such-python does not run.\n"


def test_interpreter_that_is_too_old(tmp_path):
    python = fake_python(tmp_path, unlike="sys.exit")
    run = make_environment(tmp_path, python=python)
    assert run.returncode == 1
    assert run.stderr.endswith("but >= 3.11 is needed.\n")


def test_interpreter_that_is_too_new_for_the_oldest_dependencies(tmp_path):
    run = make_environment(tmp_path, "11", python=sys.executable)
    assert run.returncode == 1
    assert run.stderr.endswith("but >= 3.11 and < 3.11 is needed.\n")


def test_interpreter_without_venv_prints_the_line_to_run(tmp_path):
    python = fake_python(tmp_path, unlike="ensurepip")
    run = make_environment(tmp_path, python=python)
    assert run.returncode == 1
    assert "    apt-get install python3-venv\n" in run.stderr


def test_a_directory_that_is_no_environment_is_left_alone(tmp_path):
    precious = tmp_path / "env" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    run = make_environment(tmp_path, python=sys.executable)
    assert run.returncode == 1
    assert "is no virtual environment: move it away" in run.stderr
    assert precious.read_text() == "mine"
