"""Install Node and pinned packages from npm into `.conformance/`.

    python -m conformance.install [FOLDER ...]

Each folder of `suites/`, and `interop/typescript`, has a package.json and a package-lock.json: the
only place where versions are written. An installation is kept until its lock file changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["NotInstalled", "node", "packages", "suite", "version"]

ROOT: Final = Path(__file__).resolve().parent.parent
PINS: Final = ROOT / "conformance" / "suites"
INSTALLED: Final = ROOT / ".conformance"
PACKAGE: Final = "@modelcontextprotocol/conformance"
# Both suites import `globSync` from `fs`, which Node 20 does not have.
OLDEST_NODE: Final = 22
# What npm may take for one folder, in seconds.
NPM_TIMEOUT_S: Final = 120.0


class NotInstalled(Exception):
    """Node or a suite cannot be installed; the text says what to do."""


def node() -> str:
    """Return the path of a Node that runs the suites: `$NODE`, `node`, or one from npm.

    Raises:
        NotInstalled: npm has no Node for this system, or cannot install it.
    """
    named = os.environ.get("NODE") or shutil.which("node")
    if named and _major(named) >= OLDEST_NODE:
        return named
    folder = packages(PINS / "node") / "node_modules"
    for found in folder.glob("node-*/bin/node"):
        return str(found)
    raise NotInstalled(
        f"the suites need Node {OLDEST_NODE} or newer, and npm has none for this system: "
        "install one, and set NODE to its path"
    )


def suite(name: str) -> Path:
    """Return the program of a suite, a folder of `suites/`; install it if needed.

    Raises:
        NotInstalled: npm cannot install it.
    """
    return packages(PINS / name) / "node_modules" / PACKAGE / "dist" / "index.js"


def packages(pins: Path, *, timeout_s: float = NPM_TIMEOUT_S, node: str = "") -> Path:
    """Return the folder with the packages of a lock file, installed once.

    npm leaves out an optional package that its own Node is too old for: `node` is another Node.

    Raises:
        NotInstalled: npm cannot install them.
    """
    name, folder = pins.name, INSTALLED / pins.name
    digest = hashlib.sha256((pins / "package-lock.json").read_bytes()).hexdigest()
    mark = folder / "lock.sha256"
    if mark.exists() and mark.read_text() == digest:
        return folder
    print(f"Installing {name} into {folder.relative_to(ROOT)} (once) ...", flush=True)
    INSTALLED.mkdir(exist_ok=True)
    # Renamed at the end, so that an installation that was interrupted is not taken for a whole one.
    with tempfile.TemporaryDirectory(dir=INSTALLED, prefix=".new-") as scratch:
        fresh = Path(scratch) / name
        shutil.copytree(pins, fresh)
        _npm_ci(fresh, timeout_s, node)
        (fresh / mark.name).write_text(digest)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    return folder


def version(name: str) -> str:
    """Return the pinned version of a suite."""
    pinned: dict[str, str] = json.loads((PINS / name / "package.json").read_bytes())["dependencies"]
    return pinned[PACKAGE]


def _major(node: str) -> int:
    """Return the major version of a Node, or 0 if it does not run."""
    script = "process.stdout.write(process.versions.node.split('.')[0])"
    try:
        done = subprocess.run([node, "-e", script], capture_output=True, text=True, timeout=20)
        return int(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def _npm_ci(folder: Path, timeout_s: float, node: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled("the suites are npm packages: install npm, which comes with Node")
    # Without scripts: a package could run anything with them, and the suites need none.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    # npm is a script, which is run by the first Node of the path.
    path = os.pathsep.join([*([str(Path(node).parent)] if node else []), os.environ["PATH"]])
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm ci of {folder.name}: no end after {timeout_s:.0f} s") from None
    if done.returncode != 0:
        raise NotInstalled(f"npm ci of {folder.name} failed:\n{done.stderr.strip()}")


def main(folders: Sequence[str]) -> int:
    """Install Node, the suites, and the packages of further folders with a lock file."""
    try:
        node()
        for pins in (PINS / "stable", PINS / "alpha", *(ROOT / folder for folder in folders)):
            packages(pins)
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
