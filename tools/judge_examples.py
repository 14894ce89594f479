"""Check the official examples, and a copy of each with one fault.

    python tools/judge_examples.py DIR [--revision 2026-07-28]

DIR has a folder per type with JSON files in it, as the specification publishes them. Every
file must be valid as its type and, if it is a whole message, as a message; a copy with one
member removed or made invalid must not be. Exit 1 if either fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trunkline.judge import Finding, judge, judge_type
from trunkline.spec import lookup
from trunkline.spec.revisions import LATEST
from trunkline.spec.types import need

# Examples that contradict the prose, and how. As messages they are judged by the prose.
KNOWN: Final = {
    "ReadResourceResultResponse/read-resource-result-response.json": (
        "it lacks ttlMs and cacheScope, which server/utilities/caching requires of a complete"
        " result; the schema file takes it for an InputRequiredResult, whose resultType it"
        " leaves open"
    ),
}


def main() -> int:
    """Judge every example; the exit code says whether all came out as they should."""
    parser = argparse.ArgumentParser(description="Judge the official examples.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--revision", default=LATEST)
    options = parser.parse_args()
    files = sorted(options.folder.glob("*/*.json"))
    if not files:
        sys.exit(f"no examples in {options.folder.name}")
    problems = [line for file in files for line in outcome(file, options.revision)]
    print("\n".join(problems))
    messages = sum("jsonrpc" in read(file) for file in files)
    print(f"{len(files)} examples by type, {messages} as messages, each spoilt once:")
    print(f"{len(problems)} wrongly judged")
    return 1 if problems else 0


def outcome(file: Path, revision: str) -> Iterator[str]:
    """Yield what came out otherwise than it should."""
    name, type_name, value = f"{file.parent.name}/{file.name}", file.parent.name, read(file)
    found = judge_type(value, type_name, revision)
    yield from wrongly_refused(name, found)
    for finding in found:
        if finding.level == "warn":
            print(f"{name}: {finding}")
    broken = spoilt(value, type_name, revision)
    if not errors(judge_type(broken, type_name, revision)):
        yield f"{name}: spoilt, and judged valid as {type_name}: {json.dumps(broken)[:200]}"
    if "jsonrpc" in value:
        yield from as_message(name, value, type_name, revision)


def as_message(name: str, value: Any, type_name: str, revision: str) -> Iterator[str]:
    """Yield what came out otherwise than it should of a whole message."""
    request = answered_by(type_name, revision)
    found = judge(value, revision, request=request)
    if name in KNOWN and errors(found):
        print(f"{name}: as a message it is refused: {KNOWN[name]}")
    else:
        yield from wrongly_refused(name, found)
    broken = {**value, "jsonrpc": "1.0"}
    if not errors(judge(broken, revision, request=request)):
        yield f"{name}: spoilt, and judged valid as a message"


def answered_by(type_name: str, revision: str) -> str | None:
    """Return the method whose result a response type carries."""
    field = need(type_name, revision).fields.get("result")
    rows = lookup.methods(revision) if field is not None else ()
    return next((row.name for row in rows if field and row.result == field.type), None)


def spoilt(value: Any, type_name: str, revision: str) -> Any:
    """Return a copy that lacks a required member or, where there is none, has a wrong one."""
    view = need(type_name, revision)
    for field in view.fields.values():
        if field.required:
            return {name: item for name, item in value.items() if name != field.name}
    known = [name for name in value if name in view.fields or view.kind != "object"]
    return {**value, known[0]: 7} if known else 7


def wrongly_refused(name: str, found: list[Finding]) -> Iterator[str]:
    """Yield a line for each error in an example that has none."""
    return (f"{name}: {finding}" for finding in errors(found))


def errors(found: list[Finding]) -> list[Finding]:
    """Return the findings that make a value invalid."""
    return [finding for finding in found if finding.level == "error"]


def read(file: Path) -> Any:
    """Return what a file holds."""
    return json.loads(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
