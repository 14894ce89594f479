"""The verb `validate`: read messages from a file, have them judged, print what was found.

What a file holds is found out by looking: one message, an array of them, one per line, or a
recording. Lines are read one at a time, so a recording may be as long as it likes.
"""

from __future__ import annotations

import argparse
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from typing import IO, Any, Final, Literal, NamedTuple, TypeAlias, TypeGuard

from msgspec import Raw
from msgspec.json import Decoder
from msgspec.structs import replace

from ...errors import NOTHING
from ...jsonrpc.decode_errors import UNREADABLE
from ...jsonrpc.policy import Policy
from ...judge.finding import Finding
from ...judge.message import judge
from ...judge.trace import HEADER, TraceEntry, TraceFault, read_trace
from ...redaction import redact
from ...spec.mcp.meta import PROTOCOL_VERSION
from ...spec.revisions import LATEST, REVISIONS
from ...spec.rows import Role
from ..exit_codes import PROBLEMS_FOUND, SUCCESS, UNREADABLE_INPUT
from ..output.reports import (
    FORMATS,
    JudgedMessage,
    LocatedFinding,
    ValidationReport,
    emit,
    render,
    visible,
)
from ..output.reports.text import excerpt_of
from ..output.terminal import tell

__all__ = ["configure", "run"]

Members: TypeAlias = dict[str, Any]
Shape: TypeAlias = Literal["message", "list", "lines", "trace"]

# How far ahead the revision is looked for: an initialize and its answer come first.
_LOOK_AHEAD: Final = 32
# Unanswered requests that are remembered, so that a recording without answers cannot grow it.
_OPEN_KEPT: Final = 10_000

_read: Final = Decoder().decode
_read_items: Final = Decoder(list[Raw]).decode


class _Unreadable(Exception):
    """The input holds nothing that could be judged; the text says why."""


class _Piece(NamedTuple):
    """One thing to be judged: its text, and what that holds."""

    # The text, since it shows more than its value: a name that is there twice. Of a recording,
    # the entry, or the fault that stands for one.
    given: Any
    # NOTHING where there is no text, or it is not JSON.
    value: Any
    line: int | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="a file, or - for standard input")
    parser.add_argument(
        "--revision",
        default="detect",
        choices=("detect", *REVISIONS),
        metavar="R",
        help="judge by this revision; default: detect",
    )
    parser.add_argument(
        "--from", dest="sender", choices=("client", "server"), help="who sent the messages"
    )
    parser.add_argument("--format", default="text", choices=FORMATS, help="default: text")
    parser.add_argument("--strict", action="store_true", help="let warnings count")


def run(options: argparse.Namespace) -> int:
    """Judge the file, print the report and return the exit status."""
    name = "stdin" if options.file == "-" else options.file
    try:
        with _opened(options.file) as stream:
            report = _report(name, stream, options)
    except _Unreadable as problem:
        tell(f"trunkline validate: {name}: {problem}")
        return UNREADABLE_INPUT
    if options.format == "text":
        tell(f"{name}: MCP {report.revision}, {report.why}")
    emit(render(report, options.format))
    return PROBLEMS_FOUND if report.failed() else SUCCESS


def _opened(file: str) -> Any:
    if file != "-":
        return open(file, "rb")
    if sys.stdin is None:
        raise _Unreadable("it is closed")
    # Standard input is not ours to close.
    return nullcontext(sys.stdin.buffer)


def _report(name: str, stream: IO[bytes], options: argparse.Namespace) -> ValidationReport:
    shape, pieces = _pieces(stream)
    ahead = list(islice(pieces, _LOOK_AHEAD))
    if not ahead:
        raise _Unreadable("it holds no message")
    if all(isinstance(piece.given, TraceFault) for piece in ahead):
        raise _Unreadable(f"no line of it can be read: {ahead[0].given.why}")
    revision, why = _revision(options.revision, ahead)
    found: Iterator[_Piece] = chain(ahead, pieces)
    if shape == "list" and Policy.mcp(revision).accepts_batches:
        # Where messages may come in batches, an array is one.
        shape, found = "message", iter([_whole(ahead, pieces)])
    judges = _TraceJudge if shape == "trace" else _MessageJudge
    messages = tuple(judges(revision, options.sender).judge(found))
    return ValidationReport(name, shape, revision, why, options.strict, messages)


# Reading


def _pieces(stream: IO[bytes]) -> tuple[Shape, Iterator[_Piece]]:
    """Return what kind of file this is, and what it holds, read as it is asked for."""
    lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
    number, first = next(lines, (0, b""))
    # The mark that some editors put before a text belongs to the file, not to the message.
    first = first.removeprefix(BOM_UTF8)
    if not first.strip():
        raise _Unreadable("it is empty")
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
        return _read(text)
    except UNREADABLE:
        return NOTHING


def _is_entry(value: Any) -> bool:
    """Say whether a line belongs to a recording and is no message by itself."""
    if not isinstance(value, dict) or "jsonrpc" in value:
        return False
    return HEADER in value or "from" in value or "message" in value


def _document(text: bytes) -> tuple[Shape, Iterator[_Piece]]:
    """Read a text that is one value over several lines, or lines of which the first is broken."""
    value = _value(text)
    line = text[: len(text) - len(text.lstrip())].count(b"\n") + 1
    if isinstance(value, list):
        return "list", _items(text, 1)
    if value is not NOTHING:
        return "message", iter([_Piece(text.strip(), value, line)])
    lines = [(number, each) for number, each in enumerate(text.split(b"\n"), 1) if each.strip()]
    # A brace or a number on a line by itself is JSON as well; a message is an object.
    if any(isinstance(_value(each), dict) for _, each in lines[1:]):
        return "lines", _bare(iter(lines))
    if why := _why_not(text):
        raise _Unreadable(why)
    return "message", iter([_Piece(text.strip(), NOTHING, line)])


def _why_not(text: bytes) -> str:
    """Return why a text is not JSON, and where, without repeating any of it.

    What is JSON, if only to a lenient reader, is for the judge: it knows which rule is broken.
    """
    import json

    try:
        json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"it is not UTF-8: byte {error.start + 1} is out of place"
    except json.JSONDecodeError as error:
        return f"it is not JSON: {error.msg.lower()}, line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass  # too long a number, too deep
    return ""


def _items(text: bytes, line: int) -> Iterator[_Piece]:
    """Yield the elements of an array, each with the line it begins on."""
    at = 0
    for raw in _read_items(text):
        item = bytes(raw)
        begin = text.find(item, at)
        line += text.count(b"\n", at, begin)
        yield _Piece(item, _value(item), line)
        at = begin + len(item)
        line += item.count(b"\n")


def _bare(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Piece]:
    """Yield the messages of a file that has one per line."""
    for number, line in lines:
        text = line.strip()
        yield _Piece(text, _value(text), number)


def _entries(lines: Iterator[tuple[int, bytes]]) -> Iterator[_Piece]:
    """Yield the entries of a recording."""
    for entry in read_trace(_with_blanks(lines)):
        if isinstance(entry, TraceFault):
            yield _Piece(entry, NOTHING, entry.line)
        elif entry.message is NOTHING and entry.raw is not None:
            yield _Piece(entry, _value(entry.raw), entry.line)
        else:
            yield _Piece(entry, entry.message, entry.line)


def _with_blanks(lines: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield lines with the blank ones put back, so that whoever counts them counts right."""
    last = 0
    for number, line in lines:
        yield from (b"" for _ in range(number - last - 1))
        last = number
        yield line


def _whole(ahead: list[_Piece], rest: Iterator[_Piece]) -> _Piece:
    """Return the elements of an array as the one batch they are."""
    pieces = [*ahead, *rest]
    text = b"[" + b",".join(piece.given for piece in pieces) + b"]"
    return _Piece(text, [piece.value for piece in pieces], pieces[0].line)


# The revision


def _revision(asked: str, pieces: list[_Piece]) -> tuple[str, str]:
    """Return the revision to judge by, and how it came to be that one."""
    if asked != "detect":
        return asked, "as asked"
    named = ""
    for piece in pieces:
        members = piece.value if isinstance(piece.value, dict) else {}
        version, why = _named_by(members)
        if version in REVISIONS:
            # The answer to an initialize has the last word.
            named, told = version, why
            if "result" in members:
                break
    if named:
        return named, told
    return LATEST, "the newest, since no message names one"


def _named_by(members: Members) -> tuple[str, str]:
    """Return the revision that a message names, and where it does."""
    params, result = _object(members.get("params")), _object(members.get("result"))
    for version, why in (
        (_object(params.get("_meta")).get(PROTOCOL_VERSION), "named in _meta"),
        (members.get("method") == "initialize" and params.get("protocolVersion"), "asked for"),
        (result.get("protocolVersion"), "agreed on in the answer to initialize"),
    ):
        if isinstance(version, str) and version:
            return version, why
    return "", ""


def _object(value: Any) -> Members:
    return value if isinstance(value, dict) else {}


# Judging


class _Requests:
    """Remembers which requests are open, so that a reply is known by what it answers."""

    def __init__(self) -> None:
        # By who asked and the id; 1 and "1" are two ids, and two keys.
        self._open: dict[tuple[str, int | str], str] = {}

    def note(self, members: Members, sender: Role | None) -> str | None:
        """Take note of a message; return the method it answers, where the request was seen."""
        id, method = members.get("id"), members.get("method")
        if not _is_id(id):
            return None
        if "method" not in members:
            asker = {"client": "server", "server": "client"}.get(sender or "", "")
            return self._open.pop((asker, id), None)
        if isinstance(method, str):
            self._open[(sender or "", id)] = method
        if len(self._open) > _OPEN_KEPT:
            del self._open[next(iter(self._open))]
        return None


class _MessageJudge:
    """Judges each message by itself, and a reply by its request."""

    def __init__(self, revision: str, sender: Role | None) -> None:
        self._revision = revision
        self._sender = sender
        self._requests = _Requests()

    def judge(self, pieces: Iterator[_Piece]) -> list[JudgedMessage]:
        """Return what is wrong with each message."""
        return [self._one(number, piece) for number, piece in enumerate(pieces, 1)]

    def _one(self, number: int, piece: _Piece) -> JudgedMessage:
        answered = self._requests.note(_object(piece.value), self._sender)
        found = judge(piece.given, self._revision, self._sender, answered)
        return _judged(number, piece, self._sender, answered, found)


class _TraceJudge:
    """Judges the messages of a recording by those before them too."""

    def __init__(self, revision: str, sender: Role | None) -> None:
        # Imported here: one message needs none of the rules about many.
        from ...judge.conversation import Conversation

        self._talk = Conversation(revision)
        self._sender = sender
        self._requests = _Requests()

    def judge(self, pieces: Iterator[_Piece]) -> list[JudgedMessage]:
        """Return what is wrong with each message, what only the end shows included."""
        messages = [self._one(number, piece) for number, piece in enumerate(pieces, 1)]
        for finding in self._talk.end():
            # The end itself is no message; what it shows is told at the last one.
            last = len(messages) - 1
            at = last if finding.message_index is None else min(finding.message_index, last)
            seen = (*messages[at].seen, LocatedFinding(_safe(finding), None))
            messages[at] = messages[at]._replace(seen=seen)
        return messages

    def _one(self, number: int, piece: _Piece) -> JudgedMessage:
        entry = self._sent(piece.given)
        sender = None if isinstance(entry, TraceFault) else entry.sender
        answered = self._requests.note(_object(piece.value), sender)
        return _judged(number, piece, sender, answered, self._talk.feed(entry))

    def _sent(self, entry: TraceEntry | TraceFault) -> TraceEntry | TraceFault:
        """Return an entry with the sender that was given for those that name none."""
        if isinstance(entry, TraceFault) or entry.sender is not None or self._sender is None:
            return entry
        return replace(entry, sender=self._sender)


def _safe(finding: Finding) -> Finding:
    """Return a finding that shows no secret, even where it repeats a peer's method or id."""
    return replace(finding, got=str(redact(finding.got)))


def _judged(
    number: int, piece: _Piece, sender: Role | None, answered: str | None, found: list[Finding]
) -> JudgedMessage:
    method = _object(piece.value).get("method", answered)
    name = visible(str(redact(method))) if isinstance(method, str) else ""
    seen = tuple(LocatedFinding(each, excerpt_of(piece.value, each.where)) for each in found)
    return JudgedMessage(number, _label(piece, name), name, piece.line, sender or "", seen)


def _is_id(value: Any) -> TypeGuard[int | str]:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _label(piece: _Piece, method: str) -> str:
    """Return what a message is, in a few words."""
    value = piece.value
    if isinstance(piece.given, TraceFault):
        return "no entry"
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
    return "no message of JSON-RPC"
