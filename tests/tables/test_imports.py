"""Imports point inward: the allowed list, and a reading of every module against it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.cases import for_each

SOURCE = Path(__file__).resolve().parents[2] / "src" / "trunkline"

# What each part may import of the others. A part that is not here does not exist yet.
ALLOWED: dict[str, set[str]] = {
    "_lazy_exports": set(),
    "redaction": set(),
    "migration_hints": set(),
    "errors": {"redaction"},
    "concurrency": {"errors"},
    "spec": set(),
    "jsonrpc": {"errors", "redaction", "spec"},
    "mcp": {"errors", "redaction", "spec", "jsonrpc"},
    "judge": {"errors", "redaction", "spec", "jsonrpc", "mcp"},
    "store": {"errors", "redaction", "spec", "jsonrpc"},
    "transports": {"errors", "redaction", "concurrency", "spec", "jsonrpc"},
    "server": {
        *("errors", "redaction", "concurrency", "spec", "jsonrpc", "mcp", "store", "transports"),
        "migration_hints",
    },
    "client": {
        *("errors", "redaction", "concurrency", "spec", "jsonrpc", "mcp", "judge", "transports"),
        "migration_hints",
    },
    "skills": {"errors", "redaction", "spec", "jsonrpc", "mcp", "server"},
    "testing": {
        *("errors", "redaction", "spec", "jsonrpc", "mcp", "judge", "store", "transports"),
        *("server", "client"),
    },
    "compat": {"errors", "redaction", "spec", "jsonrpc", "mcp", "judge"},
    "cli": {
        *("errors", "redaction", "spec", "jsonrpc", "mcp", "judge", "store", "transports"),
        *("server", "client"),
    },
    "__main__": {"cli"},
    "__init__": {"errors", "judge", "jsonrpc", "mcp", "spec", "transports", "server", "client"},
}

# The core works under any event loop, or none: it opens nothing and reads no clock.
SANS_IO = {"errors", "redaction", "spec", "jsonrpc", "mcp", "judge"}
OUTSIDE_WORLD = {"asyncio", "socket", "subprocess", "threading", "time", "http", "selectors", "ssl"}

MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


@cache
def imports_of(path: Path) -> list[str]:
    """Return the absolute names of the modules that one file imports, wherever it does so."""
    package = ["trunkline", *path.relative_to(SOURCE).parent.parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            # `from . import x` names modules, not what is in one.
            found += [f"{module}.{a.name}" for a in node.names] if not node.module else [module]
    return found


@for_each("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    part = part_of(path)
    inner = {name.split(".")[1] for name in imports_of(path) if name.startswith("trunkline.")}
    # The version is a literal of the package itself.
    assert inner - {part, "__version__", "_lazy_exports"} <= ALLOWED[part]


@for_each("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_does_not_touch_the_outside_world(path: Path) -> None:
    if part_of(path) in SANS_IO:
        assert not {name.split(".")[0] for name in imports_of(path)} & OUTSIDE_WORLD


def test_the_list_has_no_circle() -> None:
    def reach(part: str, seen: frozenset[str]) -> None:
        assert part not in seen, f"{part} reaches itself"
        for inner in ALLOWED[part]:
            reach(inner, seen | {part})

    for part in ALLOWED:
        reach(part, frozenset())


def test_relative_imports_are_resolved() -> None:
    assert "trunkline.jsonrpc.messages" in imports_of(SOURCE / "jsonrpc" / "codec.py")
    assert "trunkline.errors" in imports_of(SOURCE / "jsonrpc" / "codec.py")
    assert "trunkline.jsonrpc.encode_errors" in imports_of(SOURCE / "jsonrpc" / "codec.py")
