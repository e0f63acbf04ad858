"""Make the distributions of a commit, twice, and keep them if both are the same bit by bit.

Usage: python tools/make_dist.py [OUTPUT]

What is committed is exported to a new folder: neither changes nor stray files of the checkout get
in. The wheel is made from the unpacked source distribution, as it is by whoever installs that.
Times are those of the commit. Needs git and hatchling, and no network.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from check_wheel import package_version, problems

ROOT = Path(__file__).parents[1]


def git(*arguments):
    """Output of a git command."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return run.stdout


def unpack(archive, folder):
    """Unpack a tar file."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def hatch(source, kind, output, epoch):
    """Make one distribution of the sources in a folder; return its file."""
    run = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", output],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"hatchling failed:\n{run.stdout}")
    return next(output.iterdir())


def make(folder, commit="HEAD"):
    """Make both distributions of a commit.

    Parameters
    ----------
    folder : Path
        Empty folder to work in.
    commit : str
        What to make them of.

    Returns
    -------
    files : list of Path
        Source distribution and wheel.
    sources : Path
        Folder with the exported commit.
    """
    epoch = git("log", "-1", "--format=%ct", commit).decode().strip()
    (folder / "commit.tar").write_bytes(git("archive", "--format=tar", commit))
    sources = folder / "sources"
    unpack(folder / "commit.tar", sources)
    source_dist = hatch(sources, "sdist", folder / "sdist", epoch)
    unpack(source_dist, folder / "unpacked")
    wheel = hatch(next((folder / "unpacked").iterdir()), "wheel", folder / "wheel", epoch)
    return [source_dist, wheel], sources


def tag_problems(sources, tags):
    """What is wrong with the tags of a commit, one line each."""
    version = package_version(sources)
    found = [f"tag {tag} is not v{version}" for tag in tags if tag != f"v{version}"]
    changes = (sources / "CHANGELOG.md").read_text(encoding="utf-8")
    if tags and f"## [{version}]" not in changes:
        found.append(f"CHANGELOG.md has no section for {version}")
    return found


def main():
    """Make, compare, check, and keep."""
    output = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    tags = git("tag", "--points-at", "HEAD").decode().split()
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        files, sources = make(Path(first))
        again, _ = make(Path(second))
        found = [
            f"{file.name}: two builds differ"
            for file, other in zip(files, again, strict=True)
            if file.read_bytes() != other.read_bytes()
        ]
        found += problems(files[1], sources) + tag_problems(sources, tags)
        if found:
            print(*found, sep="\n", file=sys.stderr)
            return 1
        output.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, output)
            print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")
    print(f"made from {git('rev-parse', 'HEAD').decode().strip()}, tagged {tags or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
