#!/bin/sh
# Makes a virtual environment from scratch and puts the pinned build tools into it.
# Usage: [PYTHON=interpreter] tools/venv.sh DIRECTORY CONSTRAINTS [BELOW]
# BELOW is the first Python 3 minor version that is too new for the constraints.
set -eu
venv=$1
constraints=$2
below=${3:-99}
range=">= 3.11"
[ "$below" = 99 ] || range=">= 3.11 and < 3.$below"

suits() { "$1" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, $below))" 2>/dev/null; }
makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
fail() {
    printf 'skdp: %s\n' "$@" >&2
    exit 1
}

if [ -n "${PYTHON:-}" ]; then
    version "$PYTHON" >/dev/null || fail "PYTHON=$PYTHON does not run."
    suits "$PYTHON" || fail "PYTHON=$PYTHON is Python $(version "$PYTHON"), but $range is needed."
    candidates=$PYTHON
else
    candidates="python3 python python3.13 python3.12 python3.11 python3.14"
fi

found= incomplete=
for candidate in $candidates; do
    suits "$candidate" || continue
    if makes_venvs "$candidate"; then
        found=$candidate
        break
    fi
    incomplete=${incomplete:-$candidate}
done
if [ -z "$found" ] && [ -n "$incomplete" ]; then
    fail "$incomplete (Python $(version "$incomplete")) lacks the venv module. On Debian or Ubuntu, run:" \
        "    apt-get install python3-venv" \
        "(python$(version "$incomplete")-venv if that is not the system's default Python)"
fi
[ -n "$found" ] || fail "no Python $range found. Install one, or name it: make PYTHON=/path/to/python3.11"

if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ]; then
    fail "$venv exists and is no virtual environment: move it away, or choose another with VENV=..."
fi
echo "skdp: making $venv with $found (Python $(version "$found")), packages pinned by $constraints"
rm -rf "$venv"
"$found" -m venv "$venv"
"$venv/bin/python" -m pip install -q -U -c "$constraints" pip
"$venv/bin/python" -m pip install -q -c "$constraints" hatchling
