"""The scripts of `interop/typescript`, with the packages that its lock file pins."""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Final

from conformance.install import node, packages

from ..menu import PIXEL

__all__ = ["command", "environment"]

SCRIPTS: Final = Path(__file__).resolve().parent.parent / "typescript"


def command(script: str, *arguments: str, scripts: Path = SCRIPTS) -> list[str]:
    """Return the command that runs a script of a folder; the first call installs its packages.

    Raises:
        NotInstalled: npm or Node is missing.
    """
    folder = packages(scripts)
    # Beside the packages, where Node looks for what it imports.
    shutil.copy(scripts / script, folder / script)
    return [node(), str(folder / script), *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a script."""
    return {**os.environ, "INTEROP_PIXEL": b64encode(PIXEL).decode()}
