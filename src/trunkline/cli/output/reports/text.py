"""Renders a report as text, as compilers do: place, rule, an excerpt with a caret, the source.

The excerpt is made here too, when a message is judged. It shows the path to one member, with a
neighbour or two at each level, and no secrets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from json import dumps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ....errors import show_pointer
from ....judge.finding import Finding
from ....redaction import HIDDEN, redact
from ..terminal import bold, cells, cut, dim, paint, row_width, wrap
from . import Excerpt, JudgedMessage, LocatedFinding, ValidationReport, visible

if TYPE_CHECKING:
    from ....judge.trace.reader import TraceHttp

__all__ = [
    "advice",
    "excerpt_of",
    "headers_excerpt",
    "is_of_http",
    "marker",
    "render",
    "sentence",
    "where_it_is",
]

_INDENT: Final = "  "
_COLOURS: Final = {"error": "red", "warn": "yellow", "info": "cyan"}
_LEVELS: Final = {"error": "error", "warn": "warning", "info": "info"}
_MAX_VALUE_LENGTH: Final = 60
_MAX_DEPTH: Final = 20
# The same finding is shown so often, and then counted.
_MAX_REPEATS: Final = 3
# Of the HTTP headers of a message.
_MAX_HEADERS: Final = 20
# Rules about the HTTP side of a message, if they name no place in its body.
_OF_HTTP: Final = ("mcp.auth.", "mcp.headers.", "mcp.http.", "mcp.security.header-", "mcp.session.")


def render(report: ValidationReport) -> str:
    """Return the findings one after another, then a summary in one line."""
    blocks: list[str] = []
    times: Counter[tuple[str, str]] = Counter()
    folded: Counter[str] = Counter()
    for message, seen in report.all_seen():
        finding = seen.finding
        # A remark is the same wherever it is; for errors and warnings the place counts.
        key = (finding.rule, "" if finding.level == "info" else finding.where)
        times[key] += 1
        if times[key] <= _MAX_REPEATS:
            blocks.append(_block(report, message, seen))
        else:
            folded[finding.rule] += 1
    for rule, count in folded.items():
        more = "1 more finding" if count == 1 else f"{count} more findings"
        blocks.append(f"not shown: {more} of {visible(rule)}; --format json has all")
    blocks += [f"not shown: {each}" for each in report.left_out()]
    return "\n\n".join([*blocks, f"{bold(report.name)}: {report.summary()}"])


def _block(report: ValidationReport, message: JudgedMessage, seen: LocatedFinding) -> str:
    finding = seen.finding
    level = paint(_LEVELS[finding.level], _COLOURS[finding.level])
    place = bold(where_it_is(report, message))
    about = f"message {message.number}, {message.label}"
    room = row_width()
    said = f"{place}: {level} {finding.rule}: {sentence(finding)}"
    sender = f", from the {message.sender}" if message.sender else ""
    lines = [
        *wrap(said, room, hanging=_INDENT),
        *wrap(dim(f"{about}{sender}"), room, indent=_INDENT),
        *_pointed_at(seen),
        *wrap(dim(finding.source), room, indent=_INDENT),
    ]
    return "\n".join(lines)


def where_it_is(report: ValidationReport, message: JudgedMessage) -> str:
    """Return the file and, if known, the line."""
    return report.name if message.line is None else f"{report.name}:{message.line}"


def sentence(finding: Finding) -> str:
    """Return what was found, and where."""
    got = f"got {visible(finding.got)}" if finding.got else "nothing"
    if finding.where:
        return f"{got} at {visible(show_pointer(finding.where))}"
    if finding.got:
        return got
    return "its HTTP headers" if is_of_http(finding) else "the message as a whole"


def is_of_http(finding: Finding) -> bool:
    """Return True if a finding is about the HTTP headers of a message, and not about its body."""
    return not finding.where and finding.rule.startswith(_OF_HTTP)


def advice(finding: Finding) -> str:
    """Return what was expected; some rules have a sentence of their own."""
    says = visible(finding.expected)
    return says if says[:1].isupper() and says.endswith(".") else f"expected {says}" * bool(says)


def _pointed_at(seen: LocatedFinding) -> Iterator[str]:
    expected = advice(seen.finding)
    if seen.excerpt is None:
        if expected:
            yield from wrap(expected, row_width(), indent=_INDENT)
        return
    room = row_width()
    margin = _INDENT * 2
    for number, line in enumerate(seen.excerpt.lines):
        if number == seen.excerpt.line:
            carets = marker(seen.excerpt)
            marked = paint(carets.lstrip(), _COLOURS[seen.finding.level])
            before = margin + " " * (len(carets) - len(carets.lstrip()))
            yield f"{margin}{line}"
            yield from wrap(f"{marked} {expected}", room, indent=before, hanging=margin)
        else:
            # A neighbour only shows where the fault is.
            yield f"{margin}{line}" if room is None else cut(f"{margin}{line}", room)


def marker(excerpt: Excerpt) -> str:
    """Return the carets for the line below the marked one."""
    line = excerpt.lines[excerpt.line]
    before, marked = line[: excerpt.start], line[excerpt.start : excerpt.end]
    return " " * cells(before) + "^" * max(1, cells(marked))


# Excerpts


class _ExcerptLine(NamedTuple):
    text: str
    start: int
    end: int

    def __repr__(self) -> str:
        from ....jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


def excerpt_of(message: Any, pointer: str) -> Excerpt | None:
    """Return the excerpt at a JSON pointer, or at the last existing part of it."""
    if not isinstance(message, dict | list):
        return None
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    before: list[str] = []
    after: list[str] = []
    target = _descend(message, steps, before, after)
    lines = (*before, target.text, *reversed(after))
    return Excerpt(lines, len(before), target.start, target.end)


def headers_excerpt(http: TraceHttp, finding: Finding) -> Excerpt:
    """Return the first line and the headers of a request or a response, without secrets.

    The header whose value was found is marked, else the first line.
    """
    head = f"{http.method} {http.path}".strip() if http.status is None else f"HTTP {http.status}"
    lines = [visible(str(redact(head or "HTTP")))]
    mark = (0, 0, len(lines[0]))
    for name, value in islice((http.headers or {}).items(), _MAX_HEADERS):
        shown = redact({name: value}, depth=1)
        text = str(shown[name]) if isinstance(shown, dict) and name in shown else HIDDEN
        line = f"{visible(name)}: {visible(text)}"
        is_named = name.lower() in finding.expected.lower()
        if (is_named or mark[0] == 0) and finding.got == dumps(value, ensure_ascii=False):
            mark = (len(lines), len(name) + 2, len(line))
        lines.append(line)
    if len(http.headers or {}) > _MAX_HEADERS:
        lines.append("…")
    return Excerpt(tuple(lines), *mark)


def _descend(value: Any, steps: list[str], before: list[str], after: list[str]) -> _ExcerptLine:
    """Return the line of the last existing member; fill in the lines around it."""
    prefix, label, comma, depth = "", "", "", 0
    shown = redact(value, depth=2)
    while steps and depth < _MAX_DEPTH and shown != HIDDEN:
        names = _names(value)
        if steps[0] not in names:
            break
        at = names.index(steps.pop(0))
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        before.append(f"{prefix}{label}{opening}")
        after.append(f"{prefix}{closing}{comma}")
        depth += 1
        prefix, comma = _INDENT * depth, _comma(names, at)
        before += _beside(value, names, at - 1, prefix, is_before=True)
        after += reversed(_beside(value, names, at + 1, prefix, is_before=False))
        label, shown = _label(value, names[at]), _shown(value, names[at])
        value = value[names[at]] if isinstance(value, dict) else value[at]
    # Steps that are left name a missing member: the name of its parent is marked.
    text = _short(shown)
    if steps and label:
        start, end = len(prefix), len(prefix) + len(label.removesuffix(": "))
    else:
        start, end = len(prefix + label), len(prefix + label + text)
    return _ExcerptLine(f"{prefix}{label}{text}{comma}", start, end)


def _comma(names: list[str], at: int) -> str:
    return "," if at < len(names) - 1 else ""


def _names(value: Any) -> list[str]:
    if isinstance(value, dict):
        return list(value)
    return [str(place) for place in range(len(value))] if isinstance(value, list) else []


def _beside(value: Any, names: list[str], at: int, prefix: str, *, is_before: bool) -> list[str]:
    """Return the neighbour of a member, and an ellipsis for what is left out."""
    if not 0 <= at < len(names):
        return []
    line = (
        f"{prefix}{_label(value, names[at])}{_short(_shown(value, names[at]))}{_comma(names, at)}"
    )
    beyond = at > 0 if is_before else at < len(names) - 1
    lines = [line, f"{prefix}…"] if beyond else [line]
    return lines[::-1] if is_before else lines


def _label(value: Any, name: str) -> str:
    return f"{_short(redact(name))}: " if isinstance(value, dict) else ""


def _shown(value: Any, name: str) -> object:
    """Return a member, redacted in the context of its siblings."""
    if isinstance(value, list):
        whole = redact(value if len(value) == 2 else [value[int(name)]], depth=2)
        items = whole if isinstance(whole, list) else [whole]
        return items[int(name) if len(value) == 2 else 0]
    labels = {each: value[each] for each in ("name", "key") if each in value}
    asked = {**labels, name: value[name]}
    shown = redact(asked, depth=2)
    members = list(shown.values()) if isinstance(shown, dict) else [shown]
    return members[list(asked).index(name)]


def _short(value: object) -> str:
    text = visible(dumps(value, ensure_ascii=False))
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[:_MAX_VALUE_LENGTH]}…"
