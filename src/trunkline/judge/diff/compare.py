"""Compares two listings of a server: capabilities, tools, resources, prompts.

A listing is a document as `trunkline list -o json` prints it; entries are as on the wire and
may be malformed: they are compared as far as possible. A part that one of the two listings
lacks is not compared, and a note says so, unless the server does not declare the capability:
then the part counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ...jsonrpc.codec.tokenizer import pointer
from ...redaction import show
from .change import Changes, Comparison
from .normal_form import Budget
from .rules import RULES, is_deprecated
from .schema_diff import compare_schemas
from .schema_document import text_of

__all__ = ["PARTS", "compare"]

# The work of one comparison, all schemas together: a few seconds at most.
_MAX_STEPS: Final = 50_000
_MAX_RENAME_NOTES: Final = 20
_MAX_CAPABILITY_DEPTH: Final = 8


class _ListKind(NamedTuple):
    """One list: the kind and the key of its entries, and the capability it belongs to."""

    member: str
    kind: str
    key: str
    capability: str


_TABLE: Final = (
    _ListKind("tools", "tool", "name", "tools"),
    _ListKind("prompts", "prompt", "name", "prompts"),
    _ListKind("resources", "resource", "uri", "resources"),
    _ListKind("resourceTemplates", "template", "uriTemplate", "resources"),
)
PARTS: Final = tuple(part.member for part in _TABLE)

# Hints of a tool: the default, and the value that is safe for users.
_HINTS: Final = (
    ("readOnlyHint", False, True),
    ("destructiveHint", True, False),
    ("idempotentHint", False, True),
    ("openWorldHint", True, False),
)
# Members for people and models to read; changes of these are always safe.
_TEXT: Final = ("title", "description", "icons", "annotations", "_meta")


def compare(
    old: Mapping[str, Any] | Sequence[Any], new: Mapping[str, Any] | Sequence[Any]
) -> Comparison:
    """Return the changes from one listing to another.

    A listing is a document as `trunkline list -o json` prints it, the result of a `tools/list`,
    or a list of tools. No content of a listing makes this raise.
    """
    return _ListingComparison(_document(old), _document(new)).compare()


def _document(listing: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    return listing if isinstance(listing, Mapping) else {"tools": list(listing)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _same(old: Any, new: Any) -> bool:
    try:
        return text_of(old) == text_of(new)
    except RecursionError:
        return False


class _ListingComparison:
    def __init__(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        self._old = old
        self._new = new
        self._changes = Changes()
        self._notes: list[str] = []
        self._compared: list[str] = []
        self._budget = Budget(_MAX_STEPS)

    def compare(self) -> Comparison:
        """Compare part by part."""
        self._revisions()
        self._capabilities()
        for part in _TABLE:
            self._entries(part)
        versions = [_text(_object(each.get("server")).get("version")) for each in self._both()]
        found = Comparison(
            tuple(self._changes.kept()),
            self._changes.counts,
            (),
            versions[0],
            versions[1],
            tuple(self._compared),
        )
        self._version_notes(found)
        if not self._compared:
            self._notes.append("nothing was compared: the two listings have no part in common")
        return replace(found, notes=tuple(self._notes))

    def _both(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return self._old, self._new

    def _version_notes(self, found: Comparison) -> None:
        old, new = found.old_version, found.new_version
        if not (old and new):
            return
        moved = f"goes from {show(old)} to {show(new)}" if old != new else f"stays {show(new)}"
        if found.counts["breaking"] or found.counts["announced"]:
            if not found.is_next_major:
                self._notes.append(
                    f"the version {moved}: changes that break clients belong in the next major "
                    "version"
                )
        elif not found.is_next_minor and not all(RULES[e.rule].is_patch for e in found.changes):
            self._notes.append(
                f"the version {moved}: additions that break no client belong in the next minor "
                "version"
            )

    # The server

    def _revisions(self) -> None:
        old, new = (each.get("supportedVersions") for each in self._both())
        if not isinstance(old, list) or not isinstance(new, list):
            return
        self._compared.append("supportedVersions")
        for each in old:
            if each not in new:
                self._changes.add("listing.revision.dropped", "server", "", each)
        for each in new:
            if each not in old:
                self._changes.add("listing.revision.added", "server", "", "", each)

    def _capabilities(self) -> None:
        old, new = (each.get("capabilities") for each in self._both())
        if isinstance(old, dict) and isinstance(new, dict):
            self._compared.append("capabilities")
            self._settings(old, new, ())
        elif isinstance(old, dict) or isinstance(new, dict):
            self._not_compared("capabilities", "old" if isinstance(new, dict) else "new")

    def _settings(self, old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]) -> None:
        for name in sorted(old.keys() | new.keys()):
            here = (*path, name)
            # A capability that is false counts as absent.
            before, after = old.get(name, False), new.get(name, False)
            if isinstance(before, dict) and isinstance(after, dict):
                if len(here) < _MAX_CAPABILITY_DEPTH:
                    self._settings(before, after, here)
                elif not _same(before, after):
                    self._capability("changed", here)
            elif isinstance(before, list) and isinstance(after, list):
                self._capability_values(before, after, here)
            elif not _same(before, after):
                self._capability(_change_of(before, after), here, before, after)

    def _capability_values(self, old: list[Any], new: list[Any], path: tuple[str, ...]) -> None:
        before, after = _by_text(old), _by_text(new)
        for text, value in before.items():
            if text not in after:
                self._capability("removed", path, value)
        for text, value in after.items():
            if text not in before:
                self._capability("added", path, "", value)

    def _capability(self, how: str, path: tuple[str, ...], old: Any = "", new: Any = "") -> None:
        # The rule itself says that a flag or an object came or went.
        before, after = (
            each if isinstance(each, str | int | float) and not isinstance(each, bool) else ""
            for each in (old, new)
        )
        what = f"capability {'.'.join(path)}"
        self._changes.add(f"listing.capability.{how}", what, pointer(path), before, after)

    def _not_compared(self, part: str, side: str) -> None:
        self._notes.append(f"{part} were not compared: the {side} listing does not have them")

    # Lists

    def _list(self, part: _ListKind, listing: Mapping[str, Any]) -> list[Any] | None:
        # None if the content of the list is unknown.
        found = listing.get(part.member)
        if isinstance(found, list):
            return found
        capabilities = listing.get("capabilities")
        if isinstance(capabilities, dict) and part.capability not in capabilities:
            return []
        return None

    def _entries(self, part: _ListKind) -> None:
        lists = [self._list(part, each) for each in self._both()]
        if lists[0] is None or lists[1] is None:
            if lists[0] or lists[1]:
                self._not_compared(part.member, "old" if lists[0] is None else "new")
            return
        self._compared.append(part.member)
        old, new = (_by_key(entries, part.key) for entries in (lists[0], lists[1]))
        gone = {key: entry for key, entry in old.items() if key not in new}
        added = {key: entry for key, entry in new.items() if key not in old}
        for key, entry in gone.items():
            self._removed(f"listing.{part.kind}.removed", f"{part.kind} {key}", entry)
        for key in added:
            self._changes.add(f"listing.{part.kind}.added", f"{part.kind} {key}")
        for key, entry in old.items():
            if key in new:
                self._entry(part, f"{part.kind} {key}", entry, new[key])
        if part.kind == "tool":
            self._renamed(gone, added)

    def _removed(self, rule: str, what: str, entry: Any, where: str = "") -> None:
        announced = "-as-announced" if is_deprecated(entry) else ""
        self._changes.add(f"{rule}{announced}", what, where)

    def _renamed(self, gone: dict[str, Any], added: dict[str, Any]) -> None:
        # A removed and an added tool with the same arguments may be one tool.
        by_schema = {
            _schema_text(entry): name for name, entry in added.items() if _has_arguments(entry)
        }
        for name, entry in gone.items():
            if len(self._notes) >= _MAX_RENAME_NOTES:
                return
            now = by_schema.get(_schema_text(entry)) if _has_arguments(entry) else None
            if now is not None:
                self._notes.append(
                    f"tool {show(name)} may have been renamed to {show(now)}: same arguments"
                )

    def _entry(self, part: _ListKind, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        if _same(old, new):
            return
        if is_deprecated(new) and not is_deprecated(old):
            self._changes.add(f"listing.{part.kind}.deprecated", what, "", "", _reason(new))
        elif any(not _same(old.get(name), new.get(name)) for name in _text_members(part.kind)):
            changed = [n for n in _text_members(part.kind) if not _same(old.get(n), new.get(n))]
            self._changes.add(f"listing.{part.kind}.text-changed", what, detail=", ".join(changed))
        if part.kind == "tool":
            self._tool(what, old, new)
        elif part.kind == "prompt":
            self._prompt(what, old, new)
        elif not _same(old.get("mimeType"), new.get("mimeType")):
            before, after = _text(old.get("mimeType")), _text(new.get("mimeType"))
            self._changes.add(
                f"listing.{part.kind}.media-type-changed", what, "/mimeType", before, after
            )

    # Tools

    def _tool(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = old.get("inputSchema", True), new.get("inputSchema", True)
        compare_schemas(before, after, "input", what, self._changes, self._budget)
        self._output(what, old, new)
        self._hints(what, old, new)
        self._tasks(what, old, new)

    def _output(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = old.get("outputSchema"), new.get("outputSchema")
        if before is None and after is None:
            return
        if before is None:
            self._changes.add("listing.tool.output-added", what, "/outputSchema")
        elif after is None:
            self._changes.add("listing.tool.output-removed", what, "/outputSchema")
        else:
            compare_schemas(before, after, "output", what, self._changes, self._budget)

    def _hints(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = _hints_of(old), _hints_of(new)
        for name, _, careful in _HINTS:
            if before[name] != after[name]:
                how = "strengthened" if after[name] is careful else "weakened"
                where = f"/annotations/{name}"
                self._changes.add(
                    f"listing.tool.hint-{how}", what, where, before[name], after[name]
                )

    def _tasks(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = _task_support(old), _task_support(new)
        if before == after:
            return
        if after == "required":
            how = "required"
        elif after == "forbidden":
            how = "removed"
        else:
            how = "added" if before == "forbidden" else "optional"
        where = "/execution/taskSupport"
        self._changes.add(f"listing.tool.tasks-{how}", what, where, before, after)

    # Prompts

    def _prompt(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = (_by_key(each.get("arguments"), "name") for each in (old, new))
        for name, argument in before.items():
            where = pointer(("arguments", name))
            if name not in after:
                self._removed("listing.prompt.argument-removed", what, argument, where)
                continue
            now = after[name]
            is_needed, was_needed = now.get("required") is True, argument.get("required") is True
            if is_needed and not was_needed:
                self._changes.add("listing.prompt.argument-required", what, where)
            elif was_needed and not is_needed:
                self._changes.add("listing.prompt.argument-optional", what, where)
            if is_deprecated(now) and not is_deprecated(argument):
                self._changes.add("listing.prompt.argument-deprecated", what, where)
        for name, argument in after.items():
            if name not in before:
                how = "required" if argument.get("required") is True else "added"
                where = pointer(("arguments", name))
                self._changes.add(f"listing.prompt.argument-{how}", what, where)


def _by_text(values: list[Any]) -> dict[bytes, Any]:
    try:
        return {text_of(value): value for value in values}
    except RecursionError:
        return {}


def _change_of(old: Any, new: Any) -> str:
    # false and null count as absent.
    if new is False or new is None:
        return "removed"
    return "added" if old is False or old is None else "changed"


def _by_key(entries: Any, key: str) -> dict[str, dict[str, Any]]:
    # Of two entries with the same key the first one counts.
    found: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get(key), str):
            found.setdefault(entry[key], entry)
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _reason(entry: dict[str, Any]) -> str:
    # The first line of the description usually names the replacement.
    return _text(entry.get("description")).split("\n")[0][:200]


def _text_members(kind: str) -> Iterator[str]:
    for name in _TEXT:
        # The annotations of a tool are hints, which are compared separately.
        if kind != "tool" or name != "annotations":
            yield name
    if kind in ("resource", "template"):
        yield "name"


def _schema_text(entry: dict[str, Any]) -> bytes:
    try:
        return text_of(entry.get("inputSchema"))
    except RecursionError:
        return b""


def _has_arguments(entry: dict[str, Any]) -> bool:
    return bool(_object(_object(entry.get("inputSchema")).get("properties")))


def _hints_of(tool: dict[str, Any]) -> dict[str, bool]:
    given = _object(tool.get("annotations"))
    hints = {
        name: given[name] if isinstance(given.get(name), bool) else default
        for name, default, _ in _HINTS
    }
    if hints["readOnlyHint"]:
        # These two only apply to tools that change something.
        hints["destructiveHint"], hints["idempotentHint"] = False, True
    return hints


def _task_support(tool: dict[str, Any]) -> str:
    given = _object(tool.get("execution")).get("taskSupport")
    return given if given in ("optional", "required") else "forbidden"
