"""The `_meta` of a request: protocol version, client and capabilities of the sender.

    caller = read_caller(b'{"progressToken": 7}')
    request_meta("2026-07-28", Implementation("me", "1.0"), ClientCapabilities())

The keys are rows of the specification; this module decodes and encodes them. A key is decoded in
every revision: whether it applies is known only with the protocol version. `lacking` returns the
missing keys that a revision requires.

The rules that live here, and only here:

* A known key with a value of another type makes the request invalid. Unknown members of
  capabilities are accepted.
* An unknown log level has an error of its own.                 [MCP 2026-07-28, logging]
* Unknown keys stay in `Caller.meta`, unchanged. So do keys that the revision of a session lacks.

Clients of 2026-07-28 send the same with every request, so a `CallerMemo` decodes it once.
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
    "WRAPPED",
    "BadMeta",
    "Caller",
    "CallerMemo",
    "encoded_request_meta",
    "lacks_version",
    "read_caller",
    "read_session_caller",
    "request_meta",
    "required_keys",
    "with_progress_token",
]


# The place of `_meta` in a request; errors have pointers into the whole message.
_PLACE: Final = "/params/_meta"


# In the `_meta` of a tool's result: structured content is `{"result": value}` around the value.
# It is sent where the text beside it does not show that.
WRAPPED: Final = "trunkline/wrapped"


class BadMeta(ValueError):
    """An invalid `_meta`: the place, and what was expected; `symbol` is the error to send."""

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
    """The sender of a request, by its `_meta`; None is absent.

    `meta` is all of `_meta`. A memo returns the same caller for equal requests: copy what is to
    be changed.
    """

    protocol_version: str | None = None
    capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None
    log_level: LoggingLevel | None = None
    progress_token: ProgressToken | None = None
    meta: dict[str, Any] = {}


# Decoding


T = TypeVar("T")

_LEVELS: Final = frozenset(get_args(LoggingLevel))
# Bounds the part of an error text that quotes the peer.
_MAX_ERROR_LENGTH: Final = 200
# Each progress notification repeats the token; the same as the limit on ids.
MAX_TOKEN_LENGTH: Final = 1024
_object: Final = Decoder(dict[str, Any])


def read_caller(raw: bytes) -> Caller:
    """Decode the `_meta` of a request.

    Raises:
        BadMeta: it is not an object, or a known key has a value of the wrong type.
    """
    try:
        meta = _object.decode(raw)
    except ValidationError:
        raise BadMeta(_PLACE, "an object") from None
    # A number may be too long for Python, and a list too deep.
    except (ValueError, RecursionError):
        raise BadMeta(_PLACE, "JSON that can be read") from None
    known = {name: read(meta[key], key) for key, name, read in _READ if key in meta}
    return Caller(meta=meta, **known)


def read_session_caller(raw: bytes, revision: str) -> Caller | None:
    """Decode only the keys that the revision of a session has; None if a version is named.

    Raises:
        BadMeta: as `read_caller`.
    """
    try:
        meta = _object.decode(raw)
    except (ValueError, RecursionError):
        return None  # `read_caller` raises for it
    if PROTOCOL_VERSION in meta:
        return None
    keys = {row.key for row in meta_keys(revision)}
    known = {name: read(meta[key], key) for key, name, read in _READ if key in meta and key in keys}
    return Caller(meta=meta, **known)


def lacks_version(caller: Caller) -> bool:
    """Return True if a request has keys of a revision without a handshake, and no version."""
    return caller.protocol_version is None and not _NEED_VERSION.isdisjoint(caller.meta)


@cache  # one entry per released revision: another raises, and nothing is kept
def required_keys(revision: str) -> frozenset[str]:
    """Return the keys that the `_meta` of every request of `revision` must have.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    rows = _on_every_request(revision)
    return frozenset(row.key for row in rows if row.required == "must")


def _text(value: object, key: str) -> str:
    if type(value) is not str:
        raise BadMeta(_pointer(key), "a string")
    return value


def check_token_length(token: ProgressToken, where: str) -> None:
    """Raise BadMeta for a progress token that is too long."""
    if type(token) is str and len(token) > MAX_TOKEN_LENGTH:
        raise BadMeta(where, f"at most {MAX_TOKEN_LENGTH} characters, not {len(token)}")


def _token(value: object, key: str) -> ProgressToken:
    # Not `isinstance`: True is an int in Python only.
    if type(value) is not str and type(value) is not int:
        raise BadMeta(_pointer(key), "a string or an integer")
    check_token_length(value, _pointer(key))
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
    """Return the text of msgspec, which may quote the value."""
    text = str(error)[:_MAX_ERROR_LENGTH]
    if text.startswith("Expected "):
        return text.removeprefix("Expected ")
    return f"{kind.__name__}: {text[:1].lower()}{text[1:]}"


def _pointer(key: str) -> str:
    return f"{_PLACE}/{key.replace('~', '~0').replace('/', '~1')}"


# Decoders by the type in the row of a key.
_READERS: Final[dict[str, Callable[[object, str], Any]]] = {
    "ClientCapabilities": _struct(ClientCapabilities),
    "Implementation": _struct(Implementation),
    "LoggingLevel": _level,
    "ProgressToken": _token,
    "string": _text,
}

# Attributes of a caller by key. Other keys, such as those of tracing, are in `meta` only.
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


# Keys that have a meaning only beside the version of the request.
_NEED_VERSION: Final = frozenset((CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL))


def _on_every_request(revision: str) -> tuple[MetaKey, ...]:
    """Return the required and optional keys of every request of `revision`."""
    return tuple(row for row in meta_keys(revision) if "request" in row.on and not row.only)


# Caching


class CallerMemo:
    """A cache of callers by the bytes of `_meta`.

    It holds at most `size` callers, evicts the oldest first, and does not keep `_meta` of more
    than `longest` bytes, so a peer that changes it with every request costs some mebibytes at
    most. Several threads may use one memo.
    """

    __slots__ = ("_longest", "_size", "known")

    def __init__(self, size: int = 256, longest: int = 4096) -> None:
        # For callers that look here before they call `read`.
        self.known: dict[bytes, Caller] = {}
        self._size = size
        self._longest = longest

    def __len__(self) -> int:
        return len(self.known)

    def read(self, raw: bytes) -> Caller:
        """Decode the `_meta` of a request, as `read_caller` does.

        Raises:
            BadMeta: as `read_caller`; an invalid `_meta` is not cached.
        """
        found = self.known.get(raw)
        if found is not None:
            return found
        caller = read_caller(raw)
        if len(raw) <= self._longest and self._size > 0:
            # Another thread may evict the same one, so this iterates over a copy; what two
            # threads add at once beyond the size is evicted the next time.
            surplus = len(self.known) + 1 - self._size
            for oldest in list(self.known)[:surplus] if surplus > 0 else ():
                self.known.pop(oldest, None)
            self.known[raw] = caller
        return caller


# Encoding


def request_meta(
    revision: str,
    client_info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LoggingLevel | None = None,
) -> dict[str, Any]:
    """Return the `_meta` of every request in `revision`, which is empty up to 2025-11-25.

    The values are narrowed to the revision.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    values = {
        PROTOCOL_VERSION: revision,
        CLIENT_INFO: narrow(client_info, revision),
        CLIENT_CAPABILITIES: narrow(capabilities, revision),
        LOG_LEVEL: log_level,
    }
    keys = [row.key for row in _on_every_request(revision)]
    return {key: values[key] for key in keys if values.get(key) is not None}


def encoded_request_meta(
    revision: str,
    client_info: Implementation,
    capabilities: ClientCapabilities,
    log_level: LoggingLevel | None = None,
) -> Raw:
    """Return `request_meta` as JSON, to be encoded once and reused in every request.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
    """
    return Raw(encode(request_meta(revision, client_info, capabilities, log_level)))


def with_progress_token(meta: Raw, token: ProgressToken) -> Raw:
    """Return an encoded `_meta` with a progress token."""
    text = bytes(meta)
    comma = b"," if text != b"{}" else b""
    return Raw(b'%b%b"%b":%b}' % (text[:-1], comma, PROGRESS_TOKEN.encode(), encode(token)))
