"""The verb `validate`: judges the messages in a file and prints the findings.

The kind of file is detected: one message, an array of messages, one message per line, or a
recording. Lines are read one at a time, and findings beyond a number for each rule are only
counted, so a recording may have any length.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from codecs import BOM_UTF8
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from typing import IO, Any, Final, Literal, NamedTuple, TypeAlias, TypeGuard

from msgspec import Raw
from msgspec.json import Decoder
from msgspec.structs import replace

from ...errors import NOTHING
from ...jsonrpc.codec.decode_errors import mended, read_json
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.policy import Policy
from ...judge.finding import Finding
from ...judge.messages.message import judge
from ...judge.trace.reader import HEADER, StreamId, TraceEntry, TraceFault, read_trace
from ...redaction import redact
from ...spec.mcp.meta import PROTOCOL_VERSION
from ...spec.revisions import LATEST, REVISIONS
from ...spec.rows import Role
from ..command import UnreadableInput
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import (
    FORMATS,
    Excerpt,
    JudgedMessage,
    LocatedFinding,
    ValidationReport,
    emit,
    render,
    visible,
)
from ..output.reports.text import excerpt_of, headers_excerpt, is_of_http
from ..output.terminal import tell

__all__ = ["EXAMPLES", "configure", "run"]

Members: TypeAlias = dict[str, Any]
Shape: TypeAlias = Literal["message", "list", "lines", "trace"]

EXAMPLES: Final = """\
trunkline validate talk.jsonl --strict
trunkline validate message.json --revision 2025-11-25 --from client
"""
# Messages searched for the revision: an initialize and its answer come first.
_MAX_LOOK_AHEAD: Final = 32
# A recording without answers must not grow the table of open requests.
_MAX_OPEN_REQUESTS: Final = 10_000
# Findings that are kept, of one rule and of all: the peers decide how often they break one.
_MAX_FINDINGS_OF_RULE: Final = 100
_MAX_FINDINGS: Final = 10_000
# Messages that are kept, with or without findings.
_MAX_MESSAGES: Final = 10_000
# Connections that are judged side by side; the one that was silent longest is closed first.
_MAX_CONNECTIONS: Final = 1024

_read_items: Final = Decoder(list[Raw]).decode


class _Piece(NamedTuple):
    """One message to judge."""

    # The text, which shows more than its value, such as a duplicate name. In a recording, the
    # entry or the fault in its place.
    given: Any
    # NOTHING if there is no text, or it is not JSON.
    value: Any
    line: int | None = None

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file", metavar="FILE", help="a JSON file, JSON lines, a recording, or - for standard input"
    )
    parser.add_argument(
        "--revision",
        default="detect",
        choices=("detect", *REVISIONS),
        metavar="R",
        help=f"MCP revision to judge by: {', '.join(REVISIONS)}; default: detect",
    )
    parser.add_argument(
        "--from",
        dest="sender",
        choices=("client", "server"),
        metavar="SIDE",
        help="the sender of the messages: client or server; default: unknown, or as recorded",
    )
    parser.add_argument(
        "--format",
        default="text",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"output format: {', '.join(FORMATS)}; default: text",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with status 1 after a warning too"
    )


def run(options: argparse.Namespace) -> int:
    """Judge the file, print the report and return the exit status."""
    name = "stdin" if options.file == "-" else options.file
    try:
        with _opened(options.file) as stream:
            report = _report(name, stream, options)
    except UnreadableInput as problem:
        raise UnreadableInput(f"{name}: {problem}") from None
    if options.format == "text":
        tell(f"{name}: MCP {report.revision}, {report.why}")
    emit(render(report, options.format))
    return PROBLEMS_FOUND if report.failed() else SUCCESS


def _opened(file: str) -> Any:
    if file != "-":
        return open(file, "rb")
    if sys.stdin is None:
        raise UnreadableInput("it is closed")
    # Standard input must not be closed.
    return nullcontext(sys.stdin.buffer)


def _report(name: str, stream: IO[bytes], options: argparse.Namespace) -> ValidationReport:
    shape, pieces = _pieces(stream)
    ahead = list(islice(pieces, _MAX_LOOK_AHEAD))
    if not ahead:
        raise UnreadableInput("it holds no message")
    if all(isinstance(piece.given, TraceFault) for piece in ahead):
        raise UnreadableInput(f"no line can be read: {ahead[0].given.why}")
    revision, why = _revision(options.revision, ahead)
    found: Iterator[_Piece] = chain(ahead, pieces)
    if shape == "list" and Policy.mcp(revision).accepts_batches:
        # In a revision with batches, an array is one.
        shape, found = "message", iter([_whole(ahead, pieces)])
    kept = _Kept()
    if shape == "trace":
        # A message that names no revision is judged by that of its session.
        given = None if options.revision == "detect" else revision
        _judge_trace(found, given, options.sender, kept)
    else:
        _judge_alone(found, revision, options.sender, kept)
    return ValidationReport(
        name,
        shape,
        revision,
        why,
        options.strict,
        tuple(kept.messages.values()),
        kept.count - len(kept.messages),
        kept.more,
    )


# Reading


def _pieces(stream: IO[bytes]) -> tuple[Shape, Iterator[_Piece]]:
    """Return the kind of file, and its messages, read lazily."""
    lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
    number, first = next(lines, (0, b""))
    # A byte order mark belongs to the file, not to the message.
    first = first.removeprefix(BOM_UTF8)
    if not first.strip():
        raise UnreadableInput("it is empty")
    value = _value(first)
    if value is NOTHING:
        return _document(b"\n" * (number - 1) + first + stream.read())
    if _is_entry(value):
        return "trace", _entries(chain([(number, first)], lines))
    second = next(lines, None)
    if second is not None:
        return "lines", _bare(chain([(number, first), second], lines))
    if isinstance(value, list):
        return "list", _items(first, number)
    return "message", iter([_Piece(first.strip(), value, number)])


def _value(text: bytes | str) -> Any:
    try:
        return read_json(text)
    except UNREADABLE:
        return NOTHING


def _is_entry(value: Any) -> bool:
    """Return True if a line is an entry of a recording, not a message."""
    if not isinstance(value, dict) or "jsonrpc" in value:
        return False
    return HEADER in value or "from" in value or "message" in value


def _document(text: bytes) -> tuple[Shape, Iterator[_Piece]]:
    """Read one value over several lines, or lines of which the first is broken."""
    value = _value(text)
    line = text[: len(text) - len(text.lstrip())].count(b"\n") + 1
    if isinstance(value, list):
        return "list", _items(text, 1)
    if value is not NOTHING:
        return "message", iter([_Piece(text.strip(), value, line)])
    lines = [(number, each) for number, each in enumerate(text.split(b"\n"), 1) if each.strip()]
    # A number alone on a line is JSON as well; a message is an object.
    if any(isinstance(_value(each), dict) for _, each in lines[1:]):
        return "lines", _bare(iter(lines))
    if why := _why_not(text):
        raise UnreadableInput(why)
    return "message", iter([_Piece(text.strip(), NOTHING, line)])


def _why_not(text: bytes) -> str:
    """Return why a text is not JSON, and where, without quoting it.

    Return "" for JSON that only the strict reader rejects: the judge names the broken rule.
    """
    import json

    try:
        json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"it is not UTF-8: byte {error.start + 1} is invalid"
    except json.JSONDecodeError as error:
        return f"it is not JSON: {error.msg.lower()}, line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass  # a number too long, or nested too deep
    return ""


def _items(text: bytes, line: int) -> Iterator[_Piece]:
    """Yield the elements of an array, each with the line it begins on."""
    at = 0
    readable = mended(text)  # of the same length
    for raw in _read_items(readable):
        begin = readable.find(bytes(raw), at)
        item = text[begin : begin + len(bytes(raw))]
        line += text.count(b"\n", at, begin)
        yield _Piece(item, _value(item), line)
        at = begin + len(item)
        line += item.count(b"\n")


def _bare(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Piece]:
    for number, line in lines:
        text = line.strip()
        yield _Piece(text, _value(text), number)


def _entries(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Piece]:
    for entry in read_trace(_with_blanks(lines)):
        if isinstance(entry, TraceFault):
            yield _Piece(entry, NOTHING, entry.line)
        elif entry.message is NOTHING and entry.raw is not None:
            yield _Piece(entry, _value(entry.raw), entry.line)
        else:
            yield _Piece(entry, entry.message, entry.line)


def _with_blanks(lines: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield lines with the blank ones put back, so that line numbers are right."""
    last = 0
    for number, line in lines:
        yield from (b"" for _ in range(number - last - 1))
        last = number
        yield line


def _whole(ahead: list[_Piece], rest: Iterator[_Piece]) -> _Piece:
    pieces = [*ahead, *rest]
    text = b"[" + b",".join(piece.given for piece in pieces) + b"]"
    return _Piece(text, [piece.value for piece in pieces], pieces[0].line)


# The revision


def _revision(asked: str, pieces: list[_Piece]) -> tuple[str, str]:
    """Return the revision to judge by, and why it is that one."""
    if asked != "detect":
        return asked, "as given"
    named = ""
    for piece in pieces:
        members = piece.value if isinstance(piece.value, dict) else {}
        version, why = _named_by(members)
        if version in REVISIONS:
            # The result of initialize decides.
            named, told = version, why
            if "result" in members:
                break
    if named:
        return named, told
    return LATEST, "the newest, because no message names one"


def _named_by(members: Members) -> tuple[str, str]:
    params, result = _object(members.get("params")), _object(members.get("result"))
    for version, why in (
        (_object(params.get("_meta")).get(PROTOCOL_VERSION), "named in _meta"),
        (members.get("method") == "initialize" and params.get("protocolVersion"), "requested"),
        (result.get("protocolVersion"), "negotiated by initialize"),
    ):
        if isinstance(version, str) and version:
            return version, why
    return "", ""


def _object(value: Any) -> Members:
    return value if isinstance(value, dict) else {}


# Judging


class _Kept:
    """The messages and findings that a report shows, and the number of the others."""

    def __init__(self) -> None:
        self.count = 0
        # By number.
        self.messages: dict[int, JudgedMessage] = {}
        self.more: Counter[tuple[str, str]] = Counter()
        self._rules: Counter[str] = Counter()

    def add(
        self, piece: _Piece, sender: Role | None, answered: str | None, found: list[Finding]
    ) -> int:
        """Add the next message with its findings; return its number."""
        self.count += 1
        shown = [each for each in found if self._takes(each)]
        if shown or len(self.messages) < _MAX_MESSAGES:
            self.messages[self.count] = _judged(self.count, piece, sender, answered, shown)
        return self.count

    def add_late(self, number: int, finding: Finding) -> None:
        """Add a finding about an earlier message."""
        if self._takes(finding):
            message = self.messages.get(number)
            message = message or JudgedMessage(number, "earlier message", "", None, "", ())
            seen = (*message.seen, LocatedFinding(_safe(finding), None))
            self.messages[number] = message._replace(seen=seen)

    def _takes(self, finding: Finding) -> bool:
        rule = finding.rule if len(self._rules) < _MAX_FINDINGS else "further rules"
        self._rules[rule] += 1
        is_kept = self._rules[rule] <= _MAX_FINDINGS_OF_RULE
        if not is_kept:
            self.more[finding.level, rule] += 1
        return is_kept


class _Requests:
    """Open requests, so that a reply is judged by the method it answers."""

    def __init__(self) -> None:
        # By sender and id; 1 and "1" are two ids.
        self._open: dict[tuple[str, int | str], str] = {}

    def note(self, members: Members, sender: Role | None) -> str | None:
        """Record a message; return the method it answers, if the request was seen."""
        id, method = members.get("id"), members.get("method")
        if not _is_id(id):
            return None
        if "method" not in members:
            asker = {"client": "server", "server": "client"}.get(sender or "", "")
            return self._open.pop((asker, id), None)
        if isinstance(method, str):
            self._open[(sender or "", id)] = method
        if len(self._open) > _MAX_OPEN_REQUESTS:
            del self._open[next(iter(self._open))]
        return None


def _judge_alone(pieces: Iterator[_Piece], revision: str, sender: Role | None, kept: _Kept) -> None:
    """Judge each message alone, and a reply by its request."""
    requests = _Requests()
    for piece in pieces:
        answered = requests.note(_object(piece.value), sender)
        found = judge(piece.given, revision, sender, answered)
        kept.add(piece, sender, answered, found)


class _Connection:
    """One connection of a recording."""

    def __init__(self, revision: str | None) -> None:
        # Imported here: one message alone needs no conversation rules.
        from ...judge.conversation.conversation import Conversation

        self.talk = Conversation(revision)
        self.requests = _Requests()
        # The numbers of its messages, by their index in the conversation.
        self.numbers = array("Q")

    def end(self, kept: _Kept) -> None:
        """Add the findings about its end."""
        for finding in self.talk.end():
            # A finding about the end is reported at the last message.
            index = finding.message_index
            last = len(self.numbers) - 1
            at = last if index is None else min(index, last)
            kept.add_late(self.numbers[at], finding)


def _judge_trace(
    pieces: Iterator[_Piece], revision: str | None, sender: Role | None, kept: _Kept
) -> None:
    """Judge each message of a recording in the context of those before it on its connection.

    `sender` is for entries that name none.
    """
    connections: OrderedDict[StreamId | None, _Connection] = OrderedDict()
    for piece in pieces:
        entry = piece.given
        if not isinstance(entry, TraceFault) and entry.sender is None and sender is not None:
            entry = replace(entry, sender=sender)
        is_fault = isinstance(entry, TraceFault)
        key = None if is_fault else entry.connection
        connection = connections.get(key)
        if connection is None:
            if len(connections) == _MAX_CONNECTIONS:
                connections.popitem(last=False)[1].end(kept)
            connection = connections[key] = _Connection(revision)
        connections.move_to_end(key)
        sent_by = None if is_fault else entry.sender
        answered = connection.requests.note(_object(piece.value), sent_by)
        found = connection.talk.feed(entry)
        connection.numbers.append(kept.add(piece, sent_by, answered, found))
    for connection in connections.values():
        connection.end(kept)


def _safe(finding: Finding) -> Finding:
    """Return a finding without secrets, which a method or an id may contain."""
    return replace(finding, got=str(redact(finding.got)))


def _judged(
    number: int, piece: _Piece, sender: Role | None, answered: str | None, found: list[Finding]
) -> JudgedMessage:
    method = _object(piece.value).get("method", answered)
    name = visible(str(redact(method))) if isinstance(method, str) else ""
    seen = tuple(LocatedFinding(each, _excerpt(piece, each)) for each in found)
    return JudgedMessage(number, _label(piece, name), name, piece.line, sender or "", seen)


def _excerpt(piece: _Piece, finding: Finding) -> Excerpt | None:
    """Return the part of a message that a finding is about: its HTTP headers, or its body."""
    http = piece.given.http if isinstance(piece.given, TraceEntry) else None
    if http is not None and http.headers is not None and is_of_http(finding):
        return headers_excerpt(http, finding)
    return excerpt_of(piece.value, finding.where)


def _is_id(value: Any) -> TypeGuard[int | str]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _label(piece: _Piece, method: str) -> str:
    value = piece.value
    if isinstance(piece.given, TraceFault):
        return "unreadable entry"
    if isinstance(piece.given, TraceEntry) and piece.given.unread is not None:
        return f"frame of {piece.given.unread.length} bytes that is not JSON"
    if isinstance(piece.given, TraceEntry) and value is NOTHING and piece.given.raw is None:
        return "no message"
    if isinstance(value, list):
        return f"batch of {len(value)}"
    members = _object(value)
    if "method" in members:
        kind = "request" if "id" in members else "notification"
        return f"{kind} {method}".strip()
    if "result" in members or "error" in members:
        kind = "error" if "error" in members else "result"
        return f"{kind} of {method}" if method else kind
    return "not a JSON-RPC message"
