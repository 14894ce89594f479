"""Run pyright, strict, on what users write: tests/typing, the examples and the blocks of the docs.

    python -m tools.run_pyright

The Python blocks of a page become one file, in their order, and lines keep their numbers. A block
that begins with the name of a file is a file of its own. What pyright needs beside the source is
written to `.venv/pyright`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["block_files", "main"]

ROOT: Final = Path(__file__).resolve().parents[1]
WORK: Final = ROOT / ".venv" / "pyright"
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"# ([\w./-]+\.py)\b")

# Blocks of a page define the same small functions again and again, and import what the one before
# did; registered functions are not called by name.
_NOT_IN_BLOCKS: Final = (
    "reportRedeclaration",
    "reportUnusedFunction",
    "reportUnusedExpression",
    "reportUnusedVariable",
)


def block_files(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file that the blocks of a page make."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix().removesuffix(".md").replace("/", "_").replace("-", "_")
    lines = [""] * (text.count("\n") + 1)
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        found = block[1].splitlines()
        file = _FILE.match(block[1])
        if file:
            yield f"{name}_{first}.py", "\n" * first + block[1]
        else:
            lines[first : first + len(found)] = found
    if any(lines):
        yield f"{name}.py", "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, run pyright, and return its exit status."""
    blocks = WORK / "blocks"
    blocks.mkdir(parents=True, exist_ok=True)
    wanted: dict[str, str] = {}
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))):
        wanted.update(block_files(page))
    for old in blocks.glob("*.py"):
        if old.name not in wanted:
            old.unlink()
    comment = "# pyright: " + ", ".join(f"{rule}=false" for rule in _NOT_IN_BLOCKS)
    for name, text in wanted.items():
        # On a line of its own at the end: line numbers are those of the page.
        (blocks / name).write_text(f"{text}{comment}\n", encoding="utf-8")
    config = {
        "include": ["../../tests/typing", "../../examples", "blocks"],
        "exclude": [],
        "extraPaths": [str(ROOT / "src"), str(ROOT)],
        "pythonVersion": "3.11",
        "pythonPlatform": "Linux",
        "typeCheckingMode": "strict",
        "reportPrivateUsage": "error",
        "reportUnnecessaryTypeIgnoreComment": False,
    }
    path = WORK / "pyrightconfig.json"
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "-p", str(path), "--pythonpath", sys.executable]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout.replace(f"{blocks}/", "docs: ").replace(f"{ROOT}/", ""), end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
