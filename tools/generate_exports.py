"""Write the `__init__.pyi` of packages that export their names lazily.

    python -m tools.generate_exports            write them
    python -m tools.generate_exports --check    exit with status 1 if one is stale

The public names of such a package stand once, in the call of `lazy_exports` in its `__init__.py`.
Type checkers and editors cannot follow that call; the stub states the same as plain imports.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "trunkline"
HEAD = "# Generated from __init__.py by tools/generate_exports.py: run `make exports`.\n"


def lazy_packages() -> Iterator[tuple[Path, ast.Call]]:
    """Yield each package that exports lazily, with its call of `lazy_exports`."""
    for path in sorted(SOURCE.rglob("__init__.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_call and node.func.id == "lazy_exports":  # type: ignore[attr-defined]
                yield path, node  # type: ignore[misc]


def stub_of(call: ast.Call) -> str:
    """Return the text of the stub for one call of `lazy_exports`."""
    table: dict[str, str] = ast.literal_eval(call.args[1])
    more = [ast.literal_eval(argument) for argument in call.args[2:]]
    lines, names = [], [*more]
    for module, exported in sorted(table.items()):
        for name in sorted(exported.split()):
            there, _, public = name.partition("=")
            names.append(public or there)
            lines.append(f"from .{module} import {there} as {public or there}")
    lines += ["", *(f"{name}: str" for name in more), ""]
    quoted = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"{HEAD}{chr(10).join(lines)}\n__all__ = [\n{quoted}]\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the stubs, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the stubs of lazy packages.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    stale = []
    for path, call in lazy_packages():
        stub, text = path.with_suffix(".pyi"), stub_of(call)
        if stub.exists() and stub.read_text(encoding="utf-8") == text:
            continue
        stale.append(stub)
        if not options.check:
            stub.write_text(text, encoding="utf-8")
    for stub in stale:
        print(f"{'stale' if options.check else 'wrote'}: {stub.relative_to(SOURCE)}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
