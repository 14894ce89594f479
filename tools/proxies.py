"""nginx and Caddy for `tests/docs/test_deploying.py`, from packages of Debian or Ubuntu.

    python -m tools.proxies     unpacks into `.proxies/` what is not installed

Nothing is installed into the system, and no service is started: the packages are downloaded by apt,
which needs no root, and unpacked. Without apt the tests that need a proxy are skipped, and the
reason says which package to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["PROXIES", "find"]

ROOT: Final = Path(__file__).resolve().parent.parent
UNPACKED: Final = ROOT / ".proxies"
# The program, which is also the name of its package.
PROXIES: Final = ("nginx", "caddy")
# Folders of programs, in a package and in the system; `sbin` is not in the PATH of every user.
FOLDERS: Final = ("usr/sbin", "usr/bin")
SECONDS: Final = 120.0


def find(program: str) -> str | None:
    """Return the path of a proxy, or None if it is neither installed nor unpacked."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep)]
    folders += [str(base / each) for base in (Path("/"), UNPACKED) for each in FOLDERS]
    return shutil.which(program, path=os.pathsep.join(folders))


def main() -> int:
    """Unpack what is missing, and return 0: what cannot be had is only named."""
    missing = [each for each in PROXIES if find(each) is None]
    if not missing:
        return 0
    advice = f"install the package {' and '.join(missing)}"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        print(f"{', '.join(missing)}: there is no apt here; {advice}, or its tests are skipped")
        return 0
    print(f"Unpacking {' and '.join(missing)} into {UNPACKED.name} (once) ...", flush=True)
    try:
        for each in missing:
            _unpack(each)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"apt: {error}; {advice}, or its tests are skipped", file=sys.stderr)
    return 0


def _unpack(package: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        download = ["apt-get", "--quiet=2", "download", package]
        if _run(download, folder).returncode and os.geteuid() == 0:
            # A new machine has no lists of packages yet, and only root may fetch them.
            _run(["apt-get", "--quiet=2", "update"], folder)
            _run(download, folder)
        for file in Path(folder).glob("*.deb"):
            _run(["dpkg-deb", "--extract", file.name, str(UNPACKED)], folder).check_returncode()
    if find(package) is None:
        raise OSError(f"{package} cannot be downloaded")


def _run(command: list[str], folder: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS)


if __name__ == "__main__":
    sys.exit(main())
