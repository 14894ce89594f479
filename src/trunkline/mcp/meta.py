"""Who sends a request: the `_meta` of its params, read and written.

    caller = read_caller(b'{"progressToken": 7}')
    request_meta("2026-07-28", Implementation("me", "1.0"), ClientCapabilities())

Which keys there are, on what they go and who must send them are rows of the specification;
here is how each is read. A key is read in every revision: whether it counts is known only
once the protocol version is. `lacking` names those that a revision requires.

The rules that live here, and only here:

* A known key with a value of another type is a fault of the request. A value that is merely
  unheard of is not: members of capabilities that no revision lists are let through.
* A log level that does not exist has an error of its own.      [MCP 2026-07-28, logging]
* What is not known stays in `Caller.meta`, as it came.

Clients of 2026-07-28 say the same with every request, so a `CallerMemo` reads it once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar, get_args

from msgspec import Raw, Struct, ValidationError, convert
from msgspec.json import Decoder, encode

from ..jsonrpc.messages import Shown
from ..redaction import show
from ..spec.error_kinds import ErrorKind
from ..spec.lookup import meta_keys
from ..spec.mcp.meta import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    META_KEYS,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    SERVER_INFO,
    SUBSCRIPTION_ID,
)
from ..spec.rows import MetaKey
from .shaping import narrow
from .types import ClientCapabilities, Implementation, LoggingLevel, ProgressToken

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "PROGRESS_TOKEN",
    "PROTOCOL_VERSION",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "BadMeta",
    "Caller",
    "CallerMemo",
    "encoded_request_meta",
    "lacking",
    "read_caller",
    "request_meta",
    "with_progress_token",
]


# Where `_meta` is in a request; a fault is named by its place in the whole message.
_PLACE: Final = "/params/_meta"


class BadMeta(ValueError):
    """A `_meta` that cannot be read: where the fault is, and what should be there.

    `symbol` is the error to answer with.
    """

    def __init__(
        self, where: str, expected: str, symbol: ErrorKind = ErrorKind.INVALID_PARAMS
    ) -> None:
        super().__init__(where, expected)
        self.where = where
        self.expected = expected
        self.symbol = symbol

    def __str__(self) -> str:
        return f"{self.where}: expected {self.expected}"


class Caller(Shown, Struct, frozen=True):
    """What a request says of its sender; None is what it does not say.

    `meta` is all of `_meta`. A memo hands the same caller to every request that says the same:
    read it, and copy what is to be changed.
    """

    protocol_version: str | None = None
    capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None
    log_level: LoggingLevel | None = None
    progress_token: ProgressToken | None = None
    meta: dict[str, Any] = {}


# Reading


T = TypeVar("T")

_LEVELS: Final = frozenset(get_args(LoggingLevel))
# A fault is told in a sentence, however long the word is that a peer made up.
_LONGEST_FAULT: Final = 200
_object: Final = Decoder(dict[str, Any])


def read_caller(raw: bytes) -> Caller:
    """Return what the `_meta` of a request says.

    Raises:
        BadMeta: it is no object, or a known key has a value of the wrong type.
    """
    try:
        meta = _object.decode(raw)
    except ValidationError:
        raise BadMeta(_PLACE, "an object") from None
    # A number may be too long for Python, and a list too deep.
    except (ValueError, RecursionError):
        raise BadMeta(_PLACE, "JSON that can be read") from None
    told = {name: read(meta[key], key) for key, name, read in _READ if key in meta}
    return Caller(meta=meta, **told)


def lacking(caller: Caller, revision: str) -> tuple[str, ...]:
    """Return the keys that every request of `revision` must have and this one has not.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    required, meta = _required(revision), caller.meta
    for key in required:
        if key not in meta:
            return tuple(key for key in required if key not in meta)
    return ()


def _text(value: object, key: str) -> str:
    if type(value) is not str:
        raise BadMeta(_pointer(key), "a string")
    return value


def _token(value: object, key: str) -> ProgressToken:
    # True is an int to Python, and to nobody else.
    if type(value) is not str and type(value) is not int:
        raise BadMeta(_pointer(key), "a string or an integer")
    return value


def _level(value: object, key: str) -> str:
    if type(value) is not str or value not in _LEVELS:
        expected = f"one of {', '.join(sorted(_LEVELS))}, not {show(value)}"
        raise BadMeta(_pointer(key), expected, ErrorKind.INVALID_LOG_LEVEL)
    return value


def _struct(kind: type[T]) -> Callable[[object, str], T]:
    def read(value: object, key: str) -> T:
        try:
            return convert(value, kind)
        except ValidationError as error:
            raise BadMeta(_pointer(key), _expectation(kind, error)) from None

    return read


def _expectation(kind: type, error: ValidationError) -> str:
    """Return what msgspec says of a value; it may quote a word that should be one of a few."""
    text = str(error)[:_LONGEST_FAULT]
    if text.startswith("Expected "):
        return text.removeprefix("Expected ")
    return f"{kind.__name__}: {text[:1].lower()}{text[1:]}"


def _pointer(key: str) -> str:
    return f"{_PLACE}/{key.replace('~', '~0').replace('/', '~1')}"


# How a value is read, by the type that its row names.
_READERS: Final[dict[str, Callable[[object, str], Any]]] = {
    "ClientCapabilities": _struct(ClientCapabilities),
    "Implementation": _struct(Implementation),
    "LoggingLevel": _level,
    "ProgressToken": _token,
    "string": _text,
}

# Where a caller keeps what a key says. Keys that are not here, such as those of tracing, are
# for whoever looks into `meta`.
_MEMBERS: Final = {
    PROTOCOL_VERSION: "protocol_version",
    CLIENT_CAPABILITIES: "capabilities",
    CLIENT_INFO: "client_info",
    LOG_LEVEL: "log_level",
    PROGRESS_TOKEN: "progress_token",
}

_READ: Final = tuple(
    (row.key, _MEMBERS[row.key], _READERS[row.type]) for row in META_KEYS if row.key in _MEMBERS
)


def _on_every_request(revision: str) -> tuple[MetaKey, ...]:
    """Return the keys that belong on every request of `revision`, or may be there."""
    return tuple(row for row in meta_keys(revision) if "request" in row.on and not row.only)


@cache  # one entry per released revision: another raises, and nothing is kept
def _required(revision: str) -> tuple[str, ...]:
    return tuple(row.key for row in _on_every_request(revision) if row.required == "must")


# Remembering


class CallerMemo:
    """Callers by the bytes that told of them, so that the same bytes are read once.

    It holds so many at most, the oldest goes first, and long ones are read each time: a peer
    that says something new with every request costs what it would without a memo, and memory
    for some mebibytes at most. Several threads may use one memo.
    """

    __slots__ = ("_callers", "_longest", "_size")

    def __init__(self, size: int = 256, longest: int = 4096) -> None:
        self._callers: dict[bytes, Caller] = {}
        self._size = size
        self._longest = longest

    def __len__(self) -> int:
        return len(self._callers)

    def read(self, raw: bytes) -> Caller:
        """Return what the `_meta` of a request says, as `read_caller` does.

        Raises:
            BadMeta: as `read_caller`; what is faulty is not remembered.
        """
        found = self._callers.get(raw) if len(raw) <= self._longest else None
        return self._learn(raw) if found is None else found

    def _learn(self, raw: bytes) -> Caller:
        caller = read_caller(raw)
        if len(raw) <= self._longest and self._size > 0:
            # Another thread may forget the same one, so a copy is gone through and nothing is
            # missed; what two threads put in at once beyond the size goes the next time.
            surplus = len(self._callers) + 1 - self._size
            for oldest in list(self._callers)[:surplus] if surplus > 0 else ():
                self._callers.pop(oldest, None)
            self._callers[raw] = caller
        return caller


# Writing


def request_meta(
    revision: str,
    client_info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LoggingLevel | None = None,
) -> dict[str, Any]:
    """Return what the `_meta` of every request says in `revision`: nothing, up to 2025-11-25.

    The values are narrowed to the revision.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    told = {
        PROTOCOL_VERSION: revision,
        CLIENT_INFO: narrow(client_info, revision),
        CLIENT_CAPABILITIES: narrow(capabilities, revision),
        LOG_LEVEL: log_level,
    }
    keys = [row.key for row in _on_every_request(revision)]
    return {key: told[key] for key in keys if told.get(key) is not None}


def encoded_request_meta(
    revision: str,
    client_info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LoggingLevel | None = None,
) -> Raw:
    """Return `request_meta` as JSON, to be written once and put into every request.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
    """
    return Raw(encode(request_meta(revision, client_info, capabilities, log_level)))


def with_progress_token(meta: Raw, token: ProgressToken) -> Raw:
    """Return an encoded `_meta` with the token under which progress is asked for."""
    told = bytes(meta)
    comma = b"," if told != b"{}" else b""
    return Raw(b'%b%b"%b":%b}' % (told[:-1], comma, PROGRESS_TOKEN.encode(), encode(token)))
