"""Versions, read where they are pinned: `requirements/*.txt` and the package.json of a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

__all__ = ["ROOT", "npm_version", "pypi_version"]

ROOT: Final = Path(__file__).resolve().parent.parent.parent


def pypi_version(package: str, requirements: str) -> str:
    """Return the version that a list of requirements pins.

    Raises:
        KeyError: it pins none.
    """
    text = (ROOT / "requirements" / requirements).read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(package)}(?:\[[^]]*\])?==(\S+)", text, re.MULTILINE)
    if found is None:
        raise KeyError(f"{requirements} pins no {package}")
    return found[1]


def npm_version(package: str, folder: Path) -> str:
    """Return the version that a package.json pins.

    Raises:
        KeyError: it pins none.
    """
    pinned: dict[str, str] = json.loads((folder / "package.json").read_bytes())["dependencies"]
    return pinned[package]
