"""Run pyright on what users write: typing tests, ports and examples, strict, and blocks of docs.

    python -m tools.run_pyright

The Python blocks of a page become one file, in their order, and lines keep their numbers. A block
that begins with the name of a file is that file, or more of it. Blocks are checked as `standard`:
short code in prose leaves out types that `strict` asks for. What pyright needs beside the source
is written to `.venv/pyright`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["block_files", "main"]

ROOT: Final = Path(__file__).resolve().parents[1]
WORK: Final = ROOT / ".venv" / "pyright"
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FILE: Final = re.compile(r"# ([\w./-]+\.py)\b(, more)?")

# Blocks of a page define the same small functions again and again, and import what the one before
# did; registered functions are not called by name.
_NOT_IN_BLOCKS: Final = (
    "reportRedeclaration",
    "reportUnusedFunction",
    "reportUnusedExpression",
    "reportUnusedVariable",
)
# Pages that show what happens with names that do not exist, and the rules that find them.
_WRONG_ON_PURPOSE: Final = {
    "docs/tutorial/5-migration.md": ("reportAttributeAccessIssue", "reportCallIssue"),
}


def block_files(page: Path) -> dict[str, str]:
    """Return the files that the blocks of a page make, by name."""
    text = page.read_text(encoding="utf-8")
    size = text.count("\n") + 1
    files: dict[str, list[str]] = {}
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        found = block[1].splitlines()
        named = _FILE.match(block[1])
        name = named[1] if named else "page.py"
        if named and not named[2]:
            files.pop(name, None)  # from its beginning
        lines = files.setdefault(name, [""] * size)
        lines[first : first + len(found)] = found
    return {name: "\n".join(lines) + "\n" for name, lines in files.items()}


def main() -> int:
    """Write the files, run pyright, and return its exit status."""
    blocks = WORK / "blocks"
    shutil.rmtree(blocks, ignore_errors=True)
    # What a page imports and does not show was shown on another one.
    shown = {"weather.py": (ROOT / "examples/weather.py").read_text(encoding="utf-8")}
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))):
        files = block_files(page)
        folder = blocks / page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_")
        folder.mkdir(parents=True)
        rules = (*_NOT_IN_BLOCKS, *_WRONG_ON_PURPOSE.get(page.relative_to(ROOT).as_posix(), ()))
        ignored = ", ".join(f"{rule}=false" for rule in rules)
        comment = f"# pyright: standard\n# pyright: {ignored}"
        for name, text in {**shown, **files}.items():
            # The comment is at the end: line numbers are those of the page.
            (folder / name).write_text(f"{text}{comment}\n", encoding="utf-8")
    config = {
        "include": ["../../tests/typing", "../../tests/ports/servers", "../../examples", "blocks"],
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
