"""The import statements of a file, for tests of what may import what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["import_statements", "statements_below"]


def statements_below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in the body of a node. No expression has one in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return the imports of one file, wherever it has them."""
    found: list[ast.Import | ast.ImportFrom] = []
    unread: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while unread:
        for node in statements_below(unread.pop()):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.append(node)
            else:
                unread.append(node)
    return found
