"""Find the Python files of a source tree, and tell generated files from hand-written ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

# A generated file announces itself in its first lines.
_HEAD_LINES: Final = 5
_GENERATED: Final = re.compile(r"\bgenerated (from \S+ )?by\b|\bdo not edit\b", re.IGNORECASE)


def python_files(folder: Path) -> Iterator[Path]:
    """Yield every Python file below `folder`, in the order of its path."""
    yield from sorted(folder.rglob("*.py"))


def is_generated(text: str) -> bool:
    """Return True if the first lines of a file announce that a program wrote it."""
    head = "\n".join(text.splitlines()[:_HEAD_LINES])
    return _GENERATED.search(head) is not None
