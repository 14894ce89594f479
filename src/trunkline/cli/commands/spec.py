"""The verb `spec`: looks up methods, types, errors and requirements of a revision.

Each word after `spec` is a function from the options to a `_SpecAnswer`: a value for `--json`,
and the same facts as text.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ... import spec
from ...spec.lookup.revision_diff import SpecChange
from ...spec.profiles import OFFICIAL_PROFILE, PROFILE_NAMES, candidates
from ...spec.requirements import ACTORS, JUDGES, LEVELS, requirement, requirements
from ...spec.revisions import LATEST, REVISIONS, Window
from ...spec.rows import Capability, ErrorCode, Method
from ...spec.types import TypeView, need, parse
from ..command import UsageError
from ..exit_codes import SUCCESS
from ..output.reports import address, emit
from ..output.terminal import (
    bold,
    columns,
    dim,
    highlighted_document,
    row_width,
    table,
    width,
    wrap,
)

if TYPE_CHECKING:
    from ...spec.lookup.search import FoundRow

__all__ = ["EXAMPLES", "FORMAT", "WORDS", "configure", "expand", "run"]

# The member `format` of what `--json` prints; it changes when the document does.
FORMAT: Final = "trunkline.spec/1"
EXAMPLES: Final = """\
trunkline spec elicitation
trunkline spec method tools/call
trunkline spec diff 2025-11-25 2026-07-28
"""


# What the verb looks up; any other word is searched for.
WORDS: Final = (
    *("find", "methods", "method", "errors", "error", "transports", "capabilities", "types"),
    *("type", "headers", "statuses", "meta", "requirements", "requirement", "diff", "schema"),
)
# How many rows of a kind the text of a search shows.
_MAX_FOUND: Final = 12
# By the word that lists rows: their title in a search, and the word that shows one of them.
_FOUND: Final = {
    "methods": ("Methods", "method"),
    "capabilities": ("Capabilities", ""),
    "types": ("Types", "type"),
    "errors": ("Errors", "error"),
    "headers": ("HTTP headers", ""),
    "statuses": ("HTTP statuses", ""),
    "meta": ("Keys of _meta", ""),
    "transports": ("Transports", ""),
    "requirements": ("Requirements", "requirement"),
}


class _SpecAnswer(NamedTuple):
    facts: Mapping[str, Any]
    text: str


def run(options: argparse.Namespace) -> int:
    """Print the answer and return the exit status."""
    answer: _SpecAnswer = options.answer(options)
    emit(_document(options, answer.facts) if options.json else answer.text)
    return SUCCESS


def _document(options: argparse.Namespace, facts: Mapping[str, Any]) -> str:
    import json

    revision = {"revision": options.revision} if "revision" in options else {}
    document = {"format": FORMAT, "about": options.about, **revision, **_plain(facts)}
    return highlighted_document(json.dumps(document, ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    """Return a row, or a structure of rows, as JSON values."""
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


# Arguments


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    words = parser.add_subparsers(dest="about", required=True, metavar="WHAT", title="what")
    parser.description = (
        f"{parser.description} A word that is not below is searched for: `spec tools` is "
        "`spec find tools`."
    )
    find = _word(words, "find", _find, "everything with a word in its name or description")
    find.add_argument("words", nargs="+", metavar="WORD", help="a word such as elicitation")
    _word(words, "methods", _methods, "every method and notification")
    _word(
        words, "method", _method, "one method, with the types of its params and result"
    ).add_argument("name", metavar="NAME", help="such as tools/call")
    _profile(_word(words, "errors", _errors, "the error codes of a profile"), "mcp")
    one = _word(words, "error", _error, "what an error number or symbol means, by profile")
    one.add_argument(
        "code", metavar="CODE", help="a number such as -32602, or a symbol such as INVALID_PARAMS"
    )
    _profile(one, None)
    _word(words, "transports", _transports, "every transport")
    _word(words, "capabilities", _capabilities, "the capabilities of clients and servers")
    _word(words, "types", _types, "every type")
    _word(words, "type", _type, "one type, with its fields").add_argument(
        "name", metavar="NAME", help="such as CallToolResult"
    )
    _word(words, "headers", _headers, "the HTTP headers")
    _word(words, "statuses", _statuses, "the HTTP statuses of answers")
    _word(words, "meta", _meta, "the keys of _meta")
    asked = _word(words, "requirements", _requirements, "what clients and servers have to do")
    asked.add_argument(
        "--actor", choices=ACTORS, help="only requirements for this side; default: all"
    )
    asked.add_argument(
        "--level", choices=LEVELS, help="only requirements of this level; default: all"
    )
    asked.add_argument(
        "--judge",
        choices=JUDGES,
        help="only requirements that can be judged by this much; default: all",
    )
    single = _word(words, "requirement", _requirement, "one requirement", revision=False)
    single.add_argument(
        "id", metavar="ID", help="the id of a requirement, such as mcp.progress.grows"
    )
    both = _word(
        words,
        "diff",
        _diff,
        "what changes between two revisions, and what to do about it",
        revision=False,
    )
    both.add_argument(
        "before", choices=REVISIONS, metavar="BEFORE", help=f"a revision: {', '.join(REVISIONS)}"
    )
    both.add_argument("after", choices=REVISIONS, metavar="AFTER", help="another revision")
    schema = _word(words, "schema", _schema, "the JSON Schema of a type, or of all of them")
    schema.add_argument("name", nargs="?", metavar="TYPE", help="default: all types")


def expand(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a search if the first one is not a word of this verb.

    A number is that of an error.
    """
    if not words or words[0] in WORDS:
        return words
    if words[0].removeprefix("-").isdecimal():
        return ["error", *words]
    return words if words[0].startswith("-") else ["find", *words]


def _word(
    words: Any,
    name: str,
    answer: Callable[[argparse.Namespace], _SpecAnswer],
    help: str,
    *,
    revision: bool = True,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = words.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}."
    )
    parser.set_defaults(answer=answer)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    if revision:
        parser.add_argument(
            "--revision",
            default=LATEST,
            choices=REVISIONS,
            metavar="R",
            help=f"one of {', '.join(REVISIONS)}; default: {LATEST}",
        )
    return parser


def _profile(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument(
        "--profile",
        default=default,
        choices=PROFILE_NAMES,
        metavar="P",
        help=f"the system that gives numbers their meaning: {', '.join(PROFILE_NAMES)}; "
        f"default: {default or 'all'}",
    )


# A search


def _find(options: argparse.Namespace) -> _SpecAnswer:
    # Imported here: other words need none of it.
    from ...spec.lookup.search import search

    rows = search(options.words, options.revision)
    if not rows:
        raise UsageError(_not_found(options.words, options.revision))
    by_kind = {kind: [*found] for kind, found in groupby(rows, lambda row: row.kind)}
    sections = [_found_section(kind, found) for kind, found in by_kind.items()]
    return _SpecAnswer({"words": options.words, "found": rows}, "\n\n".join(sections))


def _found_section(kind: str, rows: list[FoundRow]) -> str:
    title, single = _FOUND[kind]
    command = f"trunkline spec {single} {rows[0].name}" if single else f"trunkline spec {kind}"
    heading = f"{bold(f'{title} ({len(rows)})')}  {dim(command)}"
    lines = wrap(heading, row_width(), hanging="  ")
    lines.append(table([(row.name, row.says) for row in rows[:_MAX_FOUND]], indent=2))
    if len(rows) > _MAX_FOUND:
        lines.append(dim(f"  … {len(rows) - _MAX_FOUND} more: trunkline spec {kind}"))
    return "\n".join(lines)


def _not_found(words: Sequence[str], revision: str) -> str:
    from difflib import get_close_matches

    from ...spec.lookup.search import search

    text = f"nothing in MCP {revision} has {' and '.join(map(repr, words))}"
    others = [other for other in REVISIONS if search(words, other)]
    if others:
        return f"{text}; MCP has it in {', '.join(others)}"
    near = get_close_matches(words[0], WORDS, n=1)
    return f"{text}; did you mean trunkline spec {near[0]}?" if near else text


# Methods


def _methods(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.methods(options.revision)
    lines = [(row.name, row.kind, _sender(row), row.capability, _status(row)) for row in rows]
    heading = ("METHOD", "KIND", "SENT BY", "CAPABILITY", "STATUS")
    return _SpecAnswer({"methods": rows}, table(lines, heading))


def _sender(row: Method) -> str:
    return "either side" if row.by == "both" else row.by


def _status(row: Method | Capability) -> str:
    extension = f"extension {row.extension}" if row.extension else ""
    inside = "inside a result" if getattr(row, "form", "") == "inside-result" else ""
    return ", ".join(part for part in (row.status, inside, extension) if part)


def _method(options: argparse.Namespace) -> _SpecAnswer:
    name, revision = options.name, options.revision
    row = spec.method(name, revision)
    if row is None:
        raise UsageError(spec.explain_method(name, revision))
    having = [other for other in REVISIONS if spec.method(name, other) is not None]
    shapes = [*_shapes("params", row.params, revision), *_shapes("result", row.result, revision)]
    facts = {
        "method": row,
        "revisions": having,
        "types": {view.name: {**view._asdict(), "fields": _fields(view)} for _, view in shapes},
    }
    blocks = [_method_facts(row, having), *(_shape(use, view) for use, view in shapes)]
    return _SpecAnswer(facts, "\n\n".join([f"{bold(row.name)}\n{_prose(row.doc)}", *blocks]))


def _method_facts(row: Method, having: list[str]) -> str:
    form = "" if row.when.since == having[0] else f"; in this form since {row.when.since}"
    next_form = row.when.until in having and f"it changes in {row.when.until}"
    last = having[-1] != LATEST and f"last in {having[-1]}"
    return columns(
        [
            ("kind", row.kind),
            ("sent by", _sender(row)),
            ("capability", _needed(row)),
            ("status", _status(row)),
            ("since", f"{having[0]}{form}"),
            ("until", next_form or last or ""),
            ("params", _types_of(row.params, "required" if row.params_required else "optional")),
            ("result", _types_of(row.result, "any number" * (row.replies == "many"))),
            ("only on", row.stream and f"the stream of {row.stream}"),
            *_source(row.anchor),
        ]
    )


def _needed(row: Method) -> str:
    if not row.capability:
        return ""
    # If either side may send it, the row names "sender" and "receiver" instead.
    whose = row.declared_by(row.by) if row.by != "both" and row.holder != "both" else (row.holder,)
    declared = "both sides declare it" if whose == ("both",) else f"the {whose[0]} declares it"
    return f"{row.capability} ({declared})"


def _types_of(expression: str | None, remark: str) -> str:
    return "" if expression is None else f"{expression} ({remark})" if remark else expression


def _shapes(use: str, expression: str | None, revision: str) -> Iterator[tuple[str, TypeView]]:
    if expression is None:
        return
    expr = parse(expression)
    for each in expr.of if expr.kind == "union" else (expr,):
        if each.kind == "name":
            yield use, need(each.name, revision)


def _shape(use: str, view: TypeView) -> str:
    heading = f"{bold(f'{use}: {view.name}')}  {dim('* required')}"
    return f"{heading}\n{_field_table(view, indent=2)}"


def _source(anchor: str) -> list[tuple[str, str]]:
    return [("source", anchor), ("page", address(anchor))]


def _prose(text: str) -> str:
    return "\n".join(wrap(text, width()))


# Types


def _types(options: argparse.Namespace) -> _SpecAnswer:
    views = spec.all_types(options.revision)
    lines = [(view.name, view.kind, _gist(view)) for view in views.values()]
    facts = [
        {"name": view.name, "kind": view.kind, "doc": view.doc, "extension": view.extension}
        for view in views.values()
    ]
    return _SpecAnswer({"types": facts}, table(lines, ("TYPE", "KIND", "DESCRIPTION")))


def _gist(view: TypeView) -> str:
    return view.doc or ", ".join(view.fields) or " | ".join(view.of)


def _type(options: argparse.Namespace) -> _SpecAnswer:
    view = need(options.name, options.revision)
    facts = {"type": {**view._asdict(), "fields": _fields(view)}}
    about = columns([("kind", view.kind), ("extension", view.extension), *_limits(view.limits)])
    parts = [bold(view.name), _prose(view.doc), about, _field_table(view)]
    return _SpecAnswer(facts, "\n".join(part for part in parts if part))


def _fields(view: TypeView) -> list[Mapping[str, Any]]:
    return [
        {**field._asdict(), "limits": dict(field.limits), "departs": field.departs}
        for field in view.fields.values()
    ]


def _limits(limits: Iterable[tuple[str, object]]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in limits]


def _field_table(view: TypeView, indent: int = 0) -> str:
    margin = " " * indent
    if view.kind != "object":
        return "\n".join(f"{margin}| {member}" for member in view.of)
    if not view.fields:
        return f"{margin}{dim('no fields of its own')}"
    rows = (
        (f"{field.name}{'*' * field.required}", field.type, _remarks(field.limits, field.extension))
        for field in view.fields.values()
    )
    return table(rows, indent=indent)


def _remarks(limits: Iterable[tuple[str, object]], extension: str) -> str:
    parts = [f"{name} {value}" for name, value in limits]
    return ", ".join([*parts, f"extension {extension}"] if extension else parts)


def _schema(options: argparse.Namespace) -> _SpecAnswer:
    import json

    if options.name is None:
        document = _bundle(options.revision)
    else:
        document = spec.json_schema(options.name, options.revision)
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return _SpecAnswer({"schema": document}, highlighted_document(text))


def _bundle(revision: str) -> dict[str, Any]:
    """Return one schema document with every type under `$defs`."""
    definitions: dict[str, Any] = {}
    dialect = ""
    for name in spec.all_types(revision):
        # A nested type is inlined where it is used.
        if "." not in name and name not in definitions:
            schema = spec.json_schema(name, revision)
            dialect = schema.pop("$schema")
            schema.pop("title")
            definitions |= schema.pop("$defs", {})
            definitions[name] = schema
    title = f"Model Context Protocol {revision}"
    return {"$schema": dialect, "title": title, "$defs": dict(sorted(definitions.items()))}


# Errors


def _errors(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.errors(options.revision, options.profile)
    heading = ("CODE", "SYMBOL", "HTTP", "SENT", "MESSAGE")
    facts = {"profile": options.profile, "errors": rows}
    return _SpecAnswer(facts, table((_error_line(row) for row in rows), heading))


def _error_line(row: ErrorCode) -> tuple[str, ...]:
    http = "" if row.http is None else str(row.http)
    sent = "yes" if row.sent else "only read"
    return (str(row.number), _plain(row.symbol), http, sent, row.message)


def _error(options: argparse.Namespace) -> _SpecAnswer:
    code = _number_or_symbol(options.code)
    readings = _readings(code, options)
    if not readings:
        whose = f"profile {options.profile!r}" if options.profile else "any profile"
        raise UsageError(
            f"{code} has no meaning for {whose} in {options.revision}{_hint(code, options)}"
        )
    facts = [{"profile": name, "error": row} for name, row in readings]
    heading = ("PROFILE", "CODE", "SYMBOL", "HTTP", "SENT", "MESSAGE", "CATEGORY, WHAT TO DO")
    lines = [(name, *_error_line(row), f"{row.category}, {row.retry}") for name, row in readings]
    text = table(lines, heading)
    others = [name for name, _ in readings if name != OFFICIAL_PROFILE]
    if others:
        text = f"{text}\n\n{_prose(_other_systems(others))}"
    return _SpecAnswer({"code": code, "readings": facts}, text)


def _other_systems(names: Sequence[str]) -> str:
    """Return what a profile is that is not the one of MCP."""
    return (
        f"Profiles other than {OFFICIAL_PROFILE} are those of other systems "
        f"({', '.join(names)}), which give numbers a meaning of their own."
    )


def _number_or_symbol(word: str) -> int | str:
    try:
        return int(word)
    except ValueError:
        return word.upper()


def _readings(code: int | str, options: argparse.Namespace) -> list[tuple[str, ErrorCode]]:
    names = (options.profile,) if options.profile else PROFILE_NAMES
    if isinstance(code, int):
        return [(name, row) for name, row in candidates(code, options.revision) if name in names]
    found = ((name, spec.error(code, name, options.revision)) for name in names)
    return [(name, row) for name, row in found if row is not None]


def _hint(code: int | str, options: argparse.Namespace) -> str:
    """Return the revisions of MCP that have a code, or a symbol spelled like it."""
    others = [other for other in REVISIONS if spec.error(code, revision=other) is not None]
    if others:
        return f"; MCP has it in {', '.join(others)}"
    from difflib import get_close_matches

    known = [str(_plain(row.symbol)) for row in spec.errors(options.revision)]
    near = get_close_matches(str(code), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


# Capabilities, transports, headers, statuses, keys


def _capabilities(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.capabilities(options.revision)
    lines = [(row.name, row.role, row.kind, _status(row), row.doc) for row in rows]
    heading = ("CAPABILITY", "SIDE", "KIND", "STATUS", "DESCRIPTION")
    return _SpecAnswer({"capabilities": rows}, table(lines, heading))


def _transports(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.transports(options.revision)
    lines = [
        (row.name, row.framing, "Trunkline only" if row.custom else row.status, row.doc)
        for row in rows
    ]
    return _SpecAnswer(
        {"transports": rows}, table(lines, ("TRANSPORT", "FRAMING", "STATUS", "DESCRIPTION"))
    )


def _headers(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.headers(options.revision)
    lines = [(row.name, row.by, row.required_on, row.doc) for row in rows]
    return _SpecAnswer(
        {"headers": rows}, table(lines, ("HEADER", "SENT BY", "REQUIRED ON", "DESCRIPTION"))
    )


def _statuses(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.http_statuses(options.revision)
    lines = [
        (
            str(row.status),
            row.condition,
            "our choice" if row.level == "own" else row.level,
            ", ".join(_plain(kind) for kind in row.kinds),
            row.doc,
        )
        for row in rows
    ]
    heading = ("STATUS", "CONDITION", "LEVEL", "ERRORS", "DESCRIPTION")
    return _SpecAnswer({"http_statuses": rows}, table(lines, heading))


def _meta(options: argparse.Namespace) -> _SpecAnswer:
    rows = spec.meta_keys(options.revision)
    lines = [(row.key, ", ".join(row.on), row.required, row.type, row.doc) for row in rows]
    heading = ("KEY", "ON", "REQUIRED", "TYPE", "DESCRIPTION")
    return _SpecAnswer({"meta_keys": rows}, table(lines, heading))


# Requirements


def _requirements(options: argparse.Namespace) -> _SpecAnswer:
    rows = requirements(options.revision, options.actor, options.judge, options.level)
    lines = [(row.id, row.level, row.actor, row.judge, row.says) for row in rows]
    heading = ("ID", "LEVEL", "SIDE", "JUDGED BY", "REQUIREMENT")
    return _SpecAnswer({"requirements": rows}, table(lines, heading))


def _requirement(options: argparse.Namespace) -> _SpecAnswer:
    row = requirement(options.id)
    facts = columns(
        [
            ("level", row.level),
            ("side", row.actor),
            ("revisions", _span(row.when)),
            ("extension", row.extension),
            ("judged by", f"{row.judge}, trace" if row.also_trace else row.judge),
            ("because", row.why),
            ("same as", row.same_as),
            ("statement", row.ref),
            *_source(row.anchor),
        ]
    )
    return _SpecAnswer({"requirement": row}, f"{bold(row.id)}\n{_prose(row.says)}\n{facts}")


def _span(when: Window) -> str:
    having = [revision for revision in REVISIONS if when.holds(revision)]
    return f"since {having[0]}" if having[-1] == LATEST else f"{having[0]} to {having[-1]}"


# Differences between two revisions


_PLURALS: Final = {
    "capability": "capabilities",
    "meta key": "keys of _meta",
    "header": "HTTP headers",
}
_ORDER: Final = ("removed", "renamed", "changed", "added")


def _diff(options: argparse.Namespace) -> _SpecAnswer:
    found = spec.diff(options.before, options.after)
    facts = {"before": found.before, "after": found.after, "changes": found.changes}
    title = bold(f"From MCP {found.before} to {found.after}")
    if not found.changes:
        return _SpecAnswer(facts, f"{title}\nNo changes.")
    by_subject = groupby(found.changes, lambda change: change.subject)
    # Types and their fields come one type after another, not one subject after another.
    subjects = dict.fromkeys(subject for subject, _ in by_subject)
    sections = [_section(subject, found.of(subject)) for subject in subjects]
    return _SpecAnswer(facts, "\n\n".join([title, *sections]))


def _section(subject: str, changes: tuple[SpecChange, ...]) -> str:
    counts = Counter(change.how for change in changes)
    told = ", ".join(f"{counts[how]} {how}" for how in _ORDER if counts[how])
    title = _PLURALS.get(subject, f"{subject}s")
    heading = bold(f"{title[0].upper()}{title[1:]} ({told})")
    lines = [
        line
        for how in _ORDER
        for sentence in _sentences([change for change in changes if change.how == how])
        for line in wrap(sentence, width(), indent="- ", hanging="  ")
    ]
    return "\n".join([heading, *lines])


def _sentences(changes: list[SpecChange]) -> Iterator[str]:
    """Yield what changes and what to do; changes that differ only in name share a sentence."""
    alike: dict[tuple[object, ...], list[SpecChange]] = {}
    for change in changes:
        # A renaming gets a sentence of its own.
        alike.setdefault((change.details, change.to_do, change.renamed_to), []).append(change)
    for same in alike.values():
        first = same[0]
        names = ", ".join(f"{each.name}{f' ({each.role})' * bool(each.role)}" for each in same)
        yield " ".join(part for part in (_what(names, first, len(same)), first.to_do) if part)


def _what(names: str, change: SpecChange, count: int) -> str:
    is_, change_ = ("is", "changes") if count == 1 else ("are", "change")
    if change.how == "removed":
        return f"{names} {is_} removed."
    if change.how == "added":
        return f"{names} {is_} new."
    if change.how == "renamed":
        return f"{names} is now called {change.renamed_to}."
    details = "; ".join(
        f"{each.what} was {each.before}, now {each.after}" for each in change.details
    )
    return f"{names} {change_}{f': {details}' if details else ''}."
