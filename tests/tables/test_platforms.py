"""What only POSIX has is used where a check stands before it, and nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.without_posix import MODULES, NAMES

SOURCE: Final = Path(__file__).parents[2] / "src" / "trunkline"

# The modules that use it, and what stands before that.
CHECKED: Final = {
    "auth/client/storage/file_lock.py": "an ImportError of fcntl",
    "auth/client/storage/file_tokens.py": "hasattr",
    "cli/__init__.py": "hasattr",
    "cli/connect/elicitation.py": "an ImportError of termios",
    "cli/proxy/run.py": "hasattr",
    "cli/recording.py": "hasattr",
    "cli/reload/supervisor.py": "check_platform",
    "cli/workers.py": "hasattr, before the first worker",
    "client/sync/event_loop_thread.py": "hasattr",
    "hosts/write.py": "an ImportError of fcntl, and hasattr",
    "private_file.py": "hasattr",
    "transports/io/fd.py": "can_watch or check_platform of each user",
    "transports/io/thread.py": "hasattr",
    "transports/sockets/connection.py": "check_platform",
    "transports/sockets/listener.py": "check_platform, or hasattr in cli/workers.py",
    "transports/sockets/unix_path.py": "check_platform, before it is imported",
    "transports/stdio/process.py": "can_watch of the client, or hasattr in cli/connect/talk.py",
}


def test_posix_is_used_only_by_modules_that_check_for_it() -> None:
    found: dict[str, list[str]] = {}
    words = re.compile(rf"\b({'|'.join({*MODULES}.union(*NAMES.values()))})\b")
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # Most modules have none of the names, and need not be parsed.
        uses = sorted(set(_uses(ast.parse(text)))) if words.search(text) else []
        if uses:
            found[path.relative_to(SOURCE).as_posix()] = uses
    assert {name: uses for name, uses in found.items() if name not in CHECKED} == {}
    assert [name for name in CHECKED if name not in found] == []


def _uses(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, ()):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module in MODULES:
                yield str(node.module)
            names = NAMES.get(str(node.module), frozenset())
            yield from (f"{node.module}.{each.name}" for each in node.names if each.name in names)
