"""Diagnose a message that the decoder rejected.

The decoder checks everything in C, and reports only that it stopped. This module
examines the text again in the order of the pipeline: text, version, kind, fields,
params. It finds the first broken rule, its place, and an id that can be trusted,
which make up the error reply.

The rules that live here, and only here:

* An id is taken from valid JSON at the top level; from the first KiB of a frame
  over the size limit; from the first 64 KiB of a frame that is not JSON. It is
  never taken from a nested value, nor where several members could be the id. Elements
  of a batch that nest too deep have none once many invalid ones were examined.
* Replies and notifications are not answered.
* A lone surrogate in a text is read as U+FFFD. In an identifier or a member name,
  and everywhere in a strict codec, the message is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError, convert, defstruct
from msgspec.json import Decoder, encode

from ...errors import NOTHING, InvalidMessage
from ...spec.error_kinds import ErrorKind
from ...spec.jsonrpc import RULES
from ...spec.profiles import profile
from ..error_codes import named_error
from ..framing.framing import MAX_HEAD_BYTES
from ..messages import RequestId
from . import tokenizer
from .decoders import UNREADABLE

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = ["Diagnosis", "elements_of", "kind_of", "mended", "read_json"]

_CALL_MEMBERS: Final = ("jsonrpc", "id", "method", "params", "auth", "headers", "metadata")
_REPLY_MEMBERS: Final = ("jsonrpc", "id", "result", "error")
_ERROR_MEMBERS: Final = ("code", "message", "data")
_value: Final = Decoder().decode
# Parses a whole text and builds nothing.
_skim: Final = Decoder(Raw).decode

_KINDS: Final = {
    ord("{"): "object",
    ord("["): "array",
    ord('"'): "string",
    ord("t"): "boolean",
    ord("f"): "boolean",
    ord("n"): "null",
}
_BLANK: Final = b" \t\n\r"
# Of a text that is not JSON: every mark in it costs a step in Python.
_MAX_SCANNED_BYTES: Final = 65536
# A decoder manages this depth on every interpreter, and on a stack of 256 KiB.
_MAX_DECODED_DEPTH: Final = 512
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class Diagnosis:
    """Finds the broken rule under one policy."""

    __slots__ = ("_id_bound", "_omit_id", "_policy")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        # Once: a number of thousands of digits takes as long as all else of a diagnosis.
        self._id_bound: int = 10**policy.limits.integer_digits
        self._omit_id = policy.omits_unreadable_id

    # -- making a fault ----------------------------------------------------------------------

    def fault(
        self,
        rule: str,
        *,
        where: str = "",
        got: Any = NOTHING,
        id: RequestId | None = None,
        answerable: bool = True,
        null_id: bool = False,
        data: Any = UNSET,
    ) -> InvalidMessage:
        """Return the error for a broken `rule`."""
        row = RULES[rule]
        kind = row.answer
        if kind is ErrorKind.INVALID_PARAMS:
            kind = ErrorKind(self._policy.params_fault)
        if data is UNSET and self._policy.explain:
            # Names and types only: content of the message is not sent back.
            data = {"rule": rule, "at": where, "expected": row.expected}
        error = named_error(kind, policy=self._policy, data=data)
        return InvalidMessage(
            rule,
            code=error.code,
            message=error.message,
            data=NOTHING if error.data is UNSET else error.data,
            where=where,
            got=got,
            expected=row.expected,
            source=row.source,
            id=id,
            answerable=answerable,
            omit_id=self._omit_id and not null_id,
        )

    def oversize(self, head: bytes, limit: int, size: int | None = None) -> InvalidMessage:
        """Return the error for a frame over the size limit, given its first bytes."""
        got = NOTHING if size is None else size
        data = {"maxSize": limit, "unit": "bytes"}
        fault = self._unread("jsonrpc.limit.message-size", head, got=got, data=data)
        if fault.answerable and self._policy.oversize_id == "null":
            # A reply keeps its id, which ends the request that waits for it.
            return self.fault(fault.rule, got=got, data=data, null_id=True)
        return fault

    def too_deep(self, text: bytes, where: str = "") -> InvalidMessage:
        """Return the error for a text that nests deeper than the decoder allows."""
        return self._unread("jsonrpc.limit.depth", text, where=where)

    def _unread(self, rule: str, text: bytes, **facts: Any) -> InvalidMessage:
        """Return the error for a text of which only the beginning was examined.

        A reply is not answered. A notification cannot be recognised by its beginning, so a
        text without an id there is answered without one.
        """
        heads = tokenizer.message_heads(text[:MAX_HEAD_BYTES])
        head = heads[0] if heads and kind_of(text) == "object" else None
        return self.fault(
            rule,
            id=None if head is None else self.trusted(head.id),
            answerable=head is None or not head.is_reply,
            **facts,
        )

    def _unparsed(self, rule: str, text: bytes, got: str) -> InvalidMessage:
        """Return the error for a text that is not JSON, with the id and kind that it shows.

        Without a method, result or error it may be a request or a reply: it is answered without
        an id, which could be that of another request.
        """
        heads = tokenizer.message_heads(text[:_MAX_SCANNED_BYTES], most=2)
        if len(heads) != 1 or kind_of(text.removeprefix(_BOMS[0])) != "object":
            return self.fault(rule, got=got)
        head = heads[0]
        is_known = head.is_reply or b"method" in head.names
        return self.fault(
            rule,
            got=got,
            id=self.trusted(head.id) if is_known else None,
            answerable=not (head.is_reply or self._is_notification(head)),
        )

    def _is_notification(self, head: tokenizer.MessageHead) -> bool:
        is_message = b"jsonrpc" in head.names or self._policy.strictness == "lenient"
        return is_message and head.is_notification

    def replies_in(self, text: bytes, fault: InvalidMessage) -> list[InvalidMessage]:
        """Return an error for each reply of a batch that is not JSON.

        None if it has calls, or more elements than a batch may have.
        """
        if kind_of(text) != "array":
            return []
        most = self._policy.limits.batch
        heads = tokenizer.message_heads(text[:_MAX_SCANNED_BYTES], most + 1)
        if len(heads) > most or not all(head.is_reply for head in heads):
            return []
        return [
            self.fault(
                fault.rule,
                where=f"/{place}",
                got=fault.got,
                id=self.trusted(head.id),
                answerable=False,
            )
            for place, head in enumerate(heads)
        ]

    # -- examining a text --------------------------------------------------------------------

    def is_deep(self, text: bytes, limit: int = 0) -> bool:
        """Return True if a text nests deeper than allowed, and than `limit`."""
        limit = max(limit, self._policy.limits.max_depth)
        # Shorter than a nest of that depth with its closing brackets.
        return len(text) > 2 * limit and tokenizer.nests_deeper(text, limit)

    def excess(self, text: bytes, where: str = "") -> InvalidMessage | None:
        """Return the error for a text that fails the pre-scan of a strict or limited codec."""
        limits = self._policy.limits
        strict = self._policy.strictness == "strict"
        found = tokenizer.find_excess(
            text, depth=limits.max_depth, digits=limits.integer_digits, unique_names=strict
        )
        if found is None:
            return None
        heads = tokenizer.message_heads(text)
        id = self.trusted(heads[0].id) if heads and kind_of(text) == "object" else None
        try:
            is_answered = _Members(self, self._policy, _members(text), where).answerable()
        except ValidationError:
            is_answered = True  # not an object, so neither a reply nor a notification
        return self.fault(
            found.rule, where=where + found.where, got=found.got, id=id, answerable=is_answered
        )

    def encoding(self, text: bytes) -> InvalidMessage | None:
        """Return the error for a text that is not UTF-8, or None."""
        if text.startswith(_BOMS):
            return self._unparsed("jsonrpc.text.bom", text, text[:3].hex(" "))
        try:
            text.decode()
        except UnicodeDecodeError as error:
            return self._unparsed("jsonrpc.text.utf8", text, f"byte {error.start}")
        return None

    def text(self, text: bytes) -> InvalidMessage | None:
        """Return the error for a text that is not UTF-8 or not JSON, or None.

        A text that nests deeper than allowed is rejected here only if the decoder, which recurses,
        might not manage it; of any other one `excess` knows the place.
        """
        fault = self.encoding(text)
        if fault is not None:
            return fault
        if self.is_deep(text, _MAX_DECODED_DEPTH):
            return self.too_deep(text)
        try:
            _skim(text)
        except RecursionError:
            return self.too_deep(text)
        except UNREADABLE as error:
            return self._unparsed("jsonrpc.text.json", text, _place(error))
        return None

    def marked(
        self, text: bytes, fault: InvalidMessage
    ) -> tuple[bytes, bytes, InvalidMessage | None]:
        """Return a text that was rejected with a mark over each lone surrogate, and the mark.

        If that does not make it JSON, return it with an empty mark and the error.
        """
        # Imported here: few texts have one.
        from . import surrogates

        found = surrogates.mark(text)
        if found is None:
            return text, b"", fault
        other = self.text(found[0])
        return (text, b"", other) if other is not None else (*found, None)

    def unmarked(self, text: bytes, mark: bytes, where: str) -> tuple[bytes, InvalidMessage | None]:
        """Return a message with U+FFFD for each mark, and the error if one cannot be replaced."""
        # As above.
        from . import surrogates

        found = surrogates.find_in_identifier(text, mark)
        if found is None and self._policy.strictness == "strict":
            found = surrogates.Found(text.find(mark))
        if found is None:
            return surrogates.replace(text, mark), None
        inner = ""
        if found.offset < _MAX_SCANNED_BYTES:
            inner = tokenizer.place_of(text, found.offset)
            # The name itself cannot be sent back.
            inner = inner.rpartition("/")[0] if found.in_name else inner
        return text, self._surrogate(text, mark, where, inner)

    def _surrogate(self, text: bytes, mark: bytes, where: str, inner: str) -> InvalidMessage:
        rule, got = "jsonrpc.text.surrogate", "a lone surrogate"
        try:
            members = _members(text)
        except ValidationError:
            return self.fault(rule, where=where + inner, got=got)
        checked = _Members(self, self._policy, members, where)
        if mark in bytes(members.get("id", b"")):
            checked.distrust_id()
        return checked.broken(rule, inner.removeprefix("/"), got=got)

    def message(self, text: bytes, where: str = "") -> InvalidMessage | None:
        """Return the first error of a JSON text, or None if no rule is broken."""
        return next(self.every(text, where), None)

    def every(self, text: bytes, where: str = "") -> Iterator[InvalidMessage]:
        """Yield the error for each rule that a JSON text breaks."""
        try:
            members = _members(text)
        except ValidationError:
            yield self.fault("jsonrpc.message.object", where=where, got=kind_of(text))
        else:
            yield from _Members(self, self._policy, members, where).faults()

    def twice(self, text: bytes, where: str = "") -> InvalidMessage:
        """Return the error for a message with a duplicated nested member."""
        members = _Members(self, self._policy, _members(text), where)
        return members.broken("jsonrpc.text.duplicate-key")

    def essence(self, text: bytes) -> bytes:
        """Return the text of a message with each member once, with its last value.

        The decoder stops at the first invalid value, even if a later duplicate overrides it
        or this kind of message does not have the member.
        """
        members = _members(text)
        wanted = _CALL_MEMBERS if "method" in members else _REPLY_MEMBERS
        return encode({name: members[name] for name in wanted if name in members})

    def trusted(self, id: RequestId | None) -> RequestId | None:
        """Return `id` if it is within the limits, else None."""
        if isinstance(id, str):
            return id if len(id) <= self._policy.limits.id_length else None
        return id if id is None or abs(id) < self._id_bound else None


class _Members:
    """The members of one object, checked in the order of the pipeline."""

    __slots__ = ("_diagnosis", "_id", "_members", "_policy", "_where")

    def __init__(
        self, diagnosis: Diagnosis, policy: Policy, members: dict[str, Raw], where: str
    ) -> None:
        self._diagnosis = diagnosis
        self._policy = policy
        self._members = members
        self._where = where
        self._id = self._readable_id()

    def faults(self) -> Iterator[InvalidMessage]:
        """Yield each broken rule, in the order of the pipeline."""
        members = self._members
        if "method" in members:
            found = self._call()
        elif "result" in members or "error" in members:
            found = self._reply()
        else:
            found = iter([self.broken("jsonrpc.message.kind")])
        yield from (fault for fault in chain([self._version()], found) if fault is not None)

    def broken(self, rule: str, member: str = "", *, got: Any = NOTHING) -> InvalidMessage:
        """Return the error for a broken `rule` in this message."""
        where = f"{self._where}/{member}" if member else self._where
        if got is NOTHING and member in self._members:
            got = kind_of(bytes(self._members[member]))
        raw = self._members.get("id")
        null_id = self._policy.null_id == "as-request" and raw is not None and bytes(raw) == b"null"
        return self._diagnosis.fault(
            rule,
            where=where,
            got=got,
            id=self._id,
            answerable=self.answerable(),
            null_id=null_id,
        )

    def distrust_id(self) -> None:
        """Answer without the id: it is not what its sender meant."""
        self._id = None

    def answerable(self) -> bool:
        """Return True if this message is neither a reply nor a notification."""
        members = self._members
        if "method" not in members:
            return not ("result" in members or "error" in members)
        # A message without an id is a notification, if it can be recognised as a message.
        is_message = self._version() is None and isinstance(_read(members["method"]), str)
        return self._has_id() or not is_message

    def _has_id(self) -> bool:
        raw = self._members.get("id")
        null_is_none = self._policy.null_id == "as-notification"
        return raw is not None and not (null_is_none and bytes(raw) == b"null")

    # -- the pipeline ------------------------------------------------------------------------

    def _version(self) -> InvalidMessage | None:
        raw = self._members.get("jsonrpc")
        if raw is None:
            if self._policy.strictness == "lenient":
                return None
            return self._version_fault("jsonrpc.version.required")
        version = _read(raw)
        if version == "2.0":
            return None
        return self._version_fault("jsonrpc.version.value", version)

    def _version_fault(self, rule: str, got: Any = NOTHING) -> InvalidMessage:
        members = self._members
        is_reply = "method" not in members and ("result" in members or "error" in members)
        return self._diagnosis.fault(
            rule, where=f"{self._where}/jsonrpc", got=got, id=self._id, answerable=not is_reply
        )

    def _call(self) -> Iterator[InvalidMessage | None]:
        for unwanted in ("result", "error"):
            if unwanted in self._members:
                yield self.broken("jsonrpc.message.mixed", unwanted)
        yield self._id_of_call()
        yield self._method()
        yield self._params()
        yield self._extensions()

    def _id_of_call(self) -> InvalidMessage | None:
        raw = self._members.get("id")
        if raw is None:
            return None
        if bytes(raw) == b"null":
            if self._policy.null_id == "reject":
                return self.broken("jsonrpc.id.not-null", "id")
            return None
        return self._id_type(raw)

    def _id_type(self, raw: Raw) -> InvalidMessage | None:
        value = _read(raw)
        if isinstance(value, float) and self._policy.strictness == "lenient" and value.is_integer():
            return None
        if value is None and bytes(raw).lstrip(b"-").isdigit():
            return self.broken("jsonrpc.limit.number", "id")
        if isinstance(value, bool) or not isinstance(value, int | str):
            return self.broken("jsonrpc.id.type", "id")
        if isinstance(value, str) and len(value) > self._policy.limits.id_length:
            return self.broken("jsonrpc.limit.id-length", "id", got=f"{len(value)} characters")
        return None

    def _method(self) -> InvalidMessage | None:
        method = _read(self._members["method"])
        rule, got = "", NOTHING
        if not isinstance(method, str):
            rule = "jsonrpc.method.type"
        elif not method:
            rule = "jsonrpc.method.empty"
        elif len(method) > self._policy.limits.method_length:
            rule, got = "jsonrpc.limit.method-length", f"{len(method)} characters"
        if not rule:
            return None
        return self.broken(rule, "method", got=got)

    def _params(self) -> InvalidMessage | None:
        raw = self._members.get("params")
        if raw is None:
            return None
        allowed = {
            "object": ("object",),
            "structured": ("object", "array"),
            "nullable": ("object", "array", "null"),
        }[self._policy.params]
        if kind_of(bytes(raw)) not in allowed:
            only_objects = self._policy.params == "object"
            return self.broken(
                "jsonrpc.params.object" if only_objects else "jsonrpc.params.type", "params"
            )
        return self._numbers(raw, "params")

    def _numbers(self, raw: Raw, member: str) -> InvalidMessage | None:
        """Return the error for a JSON value with a number that Python cannot hold."""
        try:
            _value(raw)
        except ValidationError:
            return self.broken("jsonrpc.limit.number", member)
        return None

    def _extensions(self) -> InvalidMessage | None:
        if self._policy.envelope == "plain":
            return None
        kinds = {"auth": str | None, "headers": dict[str, Any] | None, "metadata": dict[str, str]}
        for member, kind in kinds.items():
            if member in self._members:
                raw = self._members[member]
                found = self._numbers(raw, member)
                if found is not None:
                    return found
                try:
                    convert(_read(raw), kind)
                except ValidationError:
                    return self.broken(f"jsonrpc.envelope.{member}", member)
        return None

    def _reply(self) -> Iterator[InvalidMessage | None]:
        members = self._members
        if "result" in members and "error" in members:
            yield self.broken("jsonrpc.reply.one-outcome", "error")
        yield self._id_of_reply()
        yield self._result() if "result" in members else None
        yield self._error() if "error" in members else None

    def _id_of_reply(self) -> InvalidMessage | None:
        raw = self._members.get("id")
        if raw is not None and bytes(raw) != b"null":
            return self._id_type(raw)
        if "error" in self._members:
            return None  # the answer to a request whose id could not be read
        if raw is not None and self._policy.null_id == "as-request":
            return None
        return self.broken("jsonrpc.reply.id-required", "id")

    def _result(self) -> InvalidMessage | None:
        raw = self._members["result"]
        if self._policy.results == "object" and kind_of(bytes(raw)) != "object":
            return self.broken("jsonrpc.result.object", "result")
        return self._numbers(raw, "result")

    def _error(self) -> InvalidMessage | None:
        raw = self._members["error"]
        try:
            error = _members_of(raw, _ERROR_MEMBERS)
        except ValidationError:
            return self.broken("jsonrpc.error.object", "error")
        code = _read(error["code"]) if "code" in error else None
        if isinstance(code, bool) or not isinstance(code, int):
            return self.broken("jsonrpc.error.code", "error/code")
        if "message" not in error or not isinstance(_read(error["message"]), str):
            return self.broken("jsonrpc.error.message", "error/message")
        return self._unlisted(code, error["message"]) or self._numbers(raw, "error")

    def _unlisted(self, code: int, message: Raw) -> InvalidMessage | None:
        """Return the error for an error object that the policy does not accept."""
        policy = self._policy
        if policy.unknown_code != "reject":
            return None
        if profile(policy.codes).meaning(code, policy.revision) is None:
            return self.broken("jsonrpc.error.unknown-code", "error/code")
        return (
            None if _read(message) else self.broken("jsonrpc.error.empty-message", "error/message")
        )

    def _readable_id(self) -> RequestId | None:
        raw = self._members.get("id")
        if raw is None:
            return None
        value = _read(raw)
        if isinstance(value, float) and self._policy.strictness == "lenient" and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int | str):
            return None
        return self._diagnosis.trusted(value)


def _members(text: bytes) -> dict[str, Raw]:
    """Return the known members of a message, each with its last value."""
    return _members_of(text, (*_CALL_MEMBERS, "result", "error"))


def _members_of(text: bytes | Raw, names: tuple[str, ...]) -> dict[str, Raw]:
    read = _object_of(names)(text)
    return {name: raw for name in names if (raw := getattr(read, name)) is not UNSET}


@lru_cache(maxsize=8)
def _object_of(names: tuple[str, ...]) -> Callable[[bytes | Raw], Struct]:
    """Return a decoder of objects that keeps these members raw, and skips all others."""
    return Decoder(defstruct("Members", [(name, Raw | UnsetType, UNSET) for name in names])).decode


def mended(text: bytes) -> bytes:
    """Return a text with U+FFFD for each lone surrogate, wherever it is."""
    # As above.
    from . import surrogates

    found = surrogates.mark(text)
    return text if found is None else surrogates.replace(*found)


def read_json(text: bytes | str) -> Any:
    """Return the value of a JSON text, with U+FFFD for each lone surrogate.

    Raises one of `UNREADABLE` if it is not JSON.
    """
    try:
        return _value(text)
    except DecodeError:
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")
        # Raised again below if it is not for a lone surrogate.
        fixed = mended(text)
    return _value(fixed)


def kind_of(text: bytes) -> str:
    """Return the JSON type of a text."""
    start = text.lstrip(_BLANK)[:1]
    return _KINDS.get(start[0], "number") if start else "nothing"


def elements_of(text: bytes, limit: int) -> list[Raw] | None:
    """Return the elements of an array, or None if there are more than `limit`."""
    read = _elements(limit)(text)
    elements = [
        item for name in read.__struct_fields__ if (item := getattr(read, name)) is not UNSET
    ]
    return elements if len(elements) <= limit else None


@lru_cache(maxsize=8)
def _elements(limit: int) -> Callable[[bytes], Struct]:
    """Return a decoder of arrays that keeps one element more than `limit` and skips the rest.

    A list would hold an object per element before its length can be checked: 16 MB of commas
    become 500 MB. An array-like Struct has a fixed length.
    """
    fields = [(f"at_{place}", Raw | UnsetType, UNSET) for place in range(limit + 1)]
    return Decoder(defstruct("Elements", fields, array_like=True)).decode


def _read(raw: Raw) -> Any:
    """Return the value of one member, or None if Python cannot hold it."""
    try:
        return _value(raw)
    except UNREADABLE:
        return None


def _place(error: Exception) -> str:
    # The decoder's text has a position and no content.
    return str(error).removeprefix("JSON is malformed: ")
