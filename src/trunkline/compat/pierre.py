"""The API of Pierre: one envelope with credentials and context, and its protocol handler.

Everything here decodes and encodes under `Policy.pierre()`. An absent member is UNSET
where null is a valid value: an id of None is the null id of a request, and an absent id
makes a notification. The codec checks messages, and `trunkline.redaction` hides secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, overload

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, to_builtins
from msgspec.structs import replace

from .. import __version__
from ..errors import InvalidMessage, ProtocolError
from ..jsonrpc import (
    Codec,
    ErrorObject,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Policy,
    RequestId,
    Success,
    named_error,
)
from ..jsonrpc.codec import encode_errors
from ..jsonrpc.messages import Shown, shown
from ..mcp import types as mcp
from ..redaction import first_and_last, redact, show
from ..spec.error_kinds import ErrorKind
from ..spec.profiles import profile
from ..spec.profiles.pierre import SERVER_ERRORS, VERSIONS, negotiated
from ..spec.profiles.wording import wording
from ..spec.revisions import V2024_11_05, V2025_06_18

if TYPE_CHECKING:
    from ..server import Server

__all__ = [
    "ERROR_AUTHENTICATION",
    "ERROR_INVALID_PARAMS",
    "ERROR_METHOD_NOT_FOUND",
    "ERROR_SERIALIZATION",
    "ERROR_VERSION_MISMATCH",
    "HEADER_ENABLE_EXPERIMENTAL",
    "HEADER_REQUEST_ID",
    "HEADER_TENANT_ID",
    "HEADER_TENANT_NAME",
    "JSONRPC_VERSION",
    "MSG_SERIALIZATION",
    "MSG_VERSION_MISMATCH",
    "SERVER_VERSION",
    "SUPPORTED_VERSIONS",
    "UNSET",
    "ClientInfo",
    "ExperimentalCapabilities",
    "InitializeRequest",
    "InitializeResponse",
    "JsonRpcError",
    "JsonRpcRequest",
    "JsonRpcResponse",
    "McpError",
    "McpRequest",
    "McpResponse",
    "ProtocolError",
    "ProtocolHandler",
    "ServerCapabilities",
    "capabilities_for_version",
    "default_request_id",
    "error_codes",
    "get_tools",
    "handle_initialize_internal",
    "handle_ping",
    "handle_tools_list",
    "handle_unknown_method",
    "methods",
    "negotiate_version",
    "server_name_multitenant",
]

JSONRPC_VERSION: Final = "2.0"
# In order of preference.
SUPPORTED_VERSIONS: Final = (V2025_06_18, V2024_11_05)
# The version that `handle_initialize_internal` answers with.
SERVER_VERSION: Final = __version__

_log: Final = logging.getLogger("trunkline.compat")

# Members of a request's `headers`.
HEADER_TENANT_ID: Final = "x-tenant-id"
HEADER_TENANT_NAME: Final = "x-tenant-name"
HEADER_REQUEST_ID: Final = "x-request-id"
HEADER_ENABLE_EXPERIMENTAL: Final = "x-enable-experimental"

_POLICY: Final = Policy.pierre()
_codec: Final = Codec(_POLICY)
_codes: Final = profile(_POLICY.codes)


def _number(kind: str) -> int:
    return _codes.number(kind, _POLICY.revision)


class error_codes:
    """The error codes of JSON-RPC, and the block for applications."""

    PARSE_ERROR: Final = _number(ErrorKind.PARSE_ERROR)
    INVALID_REQUEST: Final = _number(ErrorKind.INVALID_REQUEST)
    METHOD_NOT_FOUND: Final = _number(ErrorKind.METHOD_NOT_FOUND)
    INVALID_PARAMS: Final = _number(ErrorKind.INVALID_PARAMS)
    INTERNAL_ERROR: Final = _number(ErrorKind.INTERNAL_ERROR)
    # The block counts downwards in the original; the pair is its lowest and highest number.
    SERVER_ERRORS: Final = SERVER_ERRORS
    SERVER_ERROR_START: Final = SERVER_ERRORS[1]
    SERVER_ERROR_END: Final = SERVER_ERRORS[0]


ERROR_METHOD_NOT_FOUND: Final = error_codes.METHOD_NOT_FOUND
ERROR_INVALID_PARAMS: Final = error_codes.INVALID_PARAMS
ERROR_VERSION_MISMATCH: Final = _number(ErrorKind.UNSUPPORTED_PROTOCOL_VERSION)
ERROR_AUTHENTICATION: Final = _number(ErrorKind.AUTHENTICATION_FAILED)
ERROR_SERIALIZATION: Final = _number("SERIALIZATION_FAILED")
MSG_VERSION_MISMATCH: Final = _codes.text(ErrorKind.UNSUPPORTED_PROTOCOL_VERSION, _POLICY.revision)
MSG_SERIALIZATION: Final = _codes.text("SERIALIZATION_FAILED", _POLICY.revision)


def default_request_id() -> int:
    """Return 0, the id of the original's answers to requests without one.

    0 is a valid id, so nothing here uses it by default.
    """
    return 0


class JsonRpcRequest(
    Shown,
    Struct,
    frozen=True,
    omit_defaults=True,
    rename={"auth_token": "auth"},
    tag_field="jsonrpc",
    tag=JSONRPC_VERSION,
):
    """A request or, with no id, a notification. Immutable."""

    jsonrpc: ClassVar[str] = JSONRPC_VERSION

    method: str
    params: Any = None
    id: RequestId | UnsetType | None = UNSET
    auth_token: str | None = None
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] = {}

    @classmethod
    def new(cls, method: str, params: Any = None) -> JsonRpcRequest:
        """Return a request whose id is 1: for the only request of a connection."""
        return cls(method, params, 1)

    @classmethod
    def with_id(cls, method: str, params: Any, id: RequestId | None) -> JsonRpcRequest:
        """Return a request with the given id."""
        return cls(method, params, id)

    @classmethod
    def notification(cls, method: str, params: Any = None) -> JsonRpcRequest:
        """Return a notification, which has no id and no response."""
        return cls(method, params)

    @classmethod
    def from_json(cls, data: bytes | str) -> JsonRpcRequest:
        """Return the request or notification that `data` holds.

        Raises:
            InvalidMessage: it holds none; `answer()` is the reply to send, if any.
        """
        read = _codec.decode(data)
        if not isinstance(read, ExtendedRequest | ExtendedNotification):
            raise _other_kind("a response", "a request or a notification")
        id = read.id if isinstance(read, ExtendedRequest) else UNSET
        return cls(read.method, read.params, id, read.auth, read.headers, read.metadata)

    def to_json(self) -> bytes:
        """Return the encoded message: the token as `auth`, without absent or empty members.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        if not isinstance(self.params, dict | list | tuple | Struct | None):
            # `from_json` would refuse it: JSON-RPC has objects and arrays as params.
            kind = f"a {type(self.params).__name__}"
            encode_errors.refuse("jsonrpc.params.type", where="/params", got=kind)
        context: dict[str, Any] = {
            "auth": self.auth_token,
            "headers": self.headers,
            "metadata": self.metadata,
        }
        if self.id is UNSET:
            return _codec.encode(ExtendedNotification(self.method, self.params, **context))
        return _codec.encode(ExtendedRequest(self.method, self.params, id=self.id, **context))

    def with_metadata(self, key: str, value: str) -> JsonRpcRequest:
        """Return a copy with one entry of metadata set."""
        return replace(self, metadata={**self.metadata, key: value})

    def get_metadata(self, key: str) -> str | None:
        """Return one entry of metadata, or None."""
        return self.metadata.get(key)

    def __repr__(self) -> str:
        token = None if self.auth_token is None else first_and_last(self.auth_token)
        return shown(self, auth_token=repr(token))

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # The one of Struct would show the token.
        members = redact(self)
        return list(members.items()) if isinstance(members, dict) else []


class JsonRpcError(ErrorObject, frozen=True):
    """An error: its code of 32 bits, its message, and any JSON value as detail.

    Raises:
        LocalProtocolError: the code has more than 32 bits.
    """

    def __post_init__(self) -> None:
        if not profile("pierre").holds(self.code):
            encode_errors.refuse("jsonrpc.error.code-range", where="/code", got=self.code)

    @classmethod
    def new(cls, code: int, message: str) -> JsonRpcError:
        """Return an error without data."""
        return cls(code, message)

    @classmethod
    def with_data(cls, code: int, message: str, data: Any) -> JsonRpcError:
        """Return an error with data; None is encoded as null."""
        return cls(code, message, data)


# The id is last, as in the original: a keyword-only field is encoded after the others.
class _Succeeded(Success, frozen=True, kw_only=True, tag=JSONRPC_VERSION):
    id: RequestId | None


class _Failed(Failure, frozen=True, kw_only=True, tag=JSONRPC_VERSION):
    id: RequestId | None


class _MakesError(Protocol):
    def __call__(self, id: RequestId | None, code: int, message: str) -> JsonRpcResponse: ...


class _ErrorMember:
    """`error` is both a member and a constructor in the original."""

    @overload
    def __get__(self, response: None, kind: type[JsonRpcResponse]) -> _MakesError: ...

    @overload
    def __get__(
        self, response: JsonRpcResponse, kind: type[JsonRpcResponse]
    ) -> JsonRpcError | None: ...

    def __get__(
        self, response: JsonRpcResponse | None, kind: type[JsonRpcResponse]
    ) -> JsonRpcError | _MakesError | None:
        if response is None:
            return _error_response
        reply = response._reply
        # Only made with an error of this type.
        return reply.error if isinstance(reply, _Failed) else None  # type: ignore[return-value]


class JsonRpcResponse:
    """The response to a request: a result or an error, never both. Immutable.

    `response.error` is its error or None, and `JsonRpcResponse.error(id, code, message)`
    makes an error response.
    """

    __slots__ = ("_reply",)

    jsonrpc: ClassVar[str] = JSONRPC_VERSION
    error = _ErrorMember()

    def __init__(
        self,
        *,
        id: RequestId | None = None,
        result: Any = UNSET,
        error: JsonRpcError | None = None,
    ) -> None:
        """Take a result (None is null) or an error.

        Raises:
            LocalProtocolError: both were given, or neither.
        """
        if (result is UNSET) == (error is None):
            encode_errors.refuse("jsonrpc.reply.one-outcome")
        self._reply: _Succeeded | _Failed = (
            _Succeeded(result, id=id) if error is None else _Failed(error, id=id)
        )

    @classmethod
    def success(cls, id: RequestId | None, result: Any) -> JsonRpcResponse:
        """Return a successful response."""
        return cls(id=id, result=result)

    @classmethod
    def error_with_data(
        cls, id: RequestId | None, code: int, message: str, data: Any
    ) -> JsonRpcResponse:
        """Return an error response with details."""
        return cls(id=id, error=JsonRpcError.with_data(code, message, data))

    @classmethod
    def from_json(cls, data: bytes | str) -> JsonRpcResponse:
        """Return the response that `data` holds.

        Raises:
            InvalidMessage: it holds none.
        """
        read = _codec.decode(data)
        if isinstance(read, Success):
            return cls(id=read.id, result=read.result)
        if not isinstance(read, Failure):
            raise _other_kind("a request or a notification", "a response")
        if not profile("pierre").holds(read.error.code):
            raise _invalid("jsonrpc.error.code", str(read.error.code), "a code of 32 bits")
        error = JsonRpcError(read.error.code, read.error.message, read.error.data)
        return cls(id=None if read.id is UNSET else read.id, error=error)

    @property
    def id(self) -> RequestId | None:
        """The id of the request, or None where that could not be read."""
        return self._reply.id

    @property
    def result(self) -> Any:
        """The result, or None beside an error."""
        return self._reply.result if isinstance(self._reply, _Succeeded) else None

    def is_success(self) -> bool:
        """Return True if the response has a result."""
        return isinstance(self._reply, _Succeeded)

    def is_error(self) -> bool:
        """Return True if the response has an error."""
        return isinstance(self._reply, _Failed)

    def to_json(self) -> bytes:
        """Return the encoded response, always with an id, which may be null.

        Raises:
            LocalProtocolError: it cannot be encoded; the text has the place and the remedy.
        """
        return _codec.encode(self._reply)

    def __eq__(self, other: object) -> bool:
        return self._reply == other._reply if isinstance(other, JsonRpcResponse) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._reply)

    def __repr__(self) -> str:
        outcome = f"error={self.error!r}" if self.is_error() else f"result={redact(self.result)!r}"
        return f"JsonRpcResponse({outcome}, id={redact(self.id)!r})"


def _error_response(id: RequestId | None, code: int, message: str) -> JsonRpcResponse:
    return JsonRpcResponse(id=id, error=JsonRpcError.new(code, message))


def _other_kind(got: str, expected: str) -> InvalidMessage:
    return _invalid("jsonrpc.message.kind", got, expected)


def _invalid(rule: str, got: str, expected: str) -> InvalidMessage:
    error = named_error(ErrorKind.INVALID_REQUEST, policy=_POLICY)
    return InvalidMessage(
        rule,
        code=error.code,
        message=error.message,
        got=got,
        expected=expected,
        answerable=False,
    )


McpRequest: TypeAlias = JsonRpcRequest
McpResponse: TypeAlias = JsonRpcResponse
McpError: TypeAlias = JsonRpcError

# -- the protocol handler ------------------------------------------------------------------------

InitializeRequest: TypeAlias = mcp.InitializeRequestParams
ClientInfo: TypeAlias = mcp.Implementation


class ExperimentalCapabilities(Struct, frozen=True):
    """The experimental features that Pierre declares."""

    a2a: bool = True
    streaming: bool = True

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the member `experimental` of the capabilities: an entry for each that is on."""
        return {name: {} for name in self.__struct_fields__ if getattr(self, name)}


class ServerCapabilities(mcp.ServerCapabilities, frozen=True):
    """The capabilities of a server, as MCP has them."""

    @classmethod
    def minimal(cls) -> ServerCapabilities:
        """Return basic support of tools, and nothing else."""
        return cls(tools=mcp.ServerCapabilitiesTools())


class InitializeResponse(mcp.InitializeResult, frozen=True):
    """The result of `initialize`."""

    @classmethod
    def new(cls, protocol_version: str, name: str, version: str) -> InitializeResponse:
        """Return the result with the capabilities of a version."""
        declared = capabilities_for_version(protocol_version)
        return cls(declared, protocol_version, mcp.Implementation(name, version))

    @classmethod
    def new_with_ports(
        cls, protocol_version: str, name: str, version: str, http_port: int
    ) -> InitializeResponse:
        """Return the same: MCP has no member for a port, and the client has the URL."""
        return cls.new(protocol_version, name, version)


def server_name_multitenant() -> str:
    """Return the name that `handle_initialize_internal` answers with."""
    return "trunkline"


def negotiate_version(client_version: str) -> str:
    """Return the version to answer with: the requested one, or what Pierre falls back to."""
    if client_version in SUPPORTED_VERSIONS:
        return client_version
    row = negotiated(client_version)
    if row.warning:
        _log.warning(
            "%s: client_version=%s, server_version=%s",
            row.warning,
            show(client_version),
            row.answer,
        )
    return row.answer


def capabilities_for_version(version: str) -> ServerCapabilities:
    """Return what Pierre declares in a version; for an unknown one the minimum."""
    if version not in SUPPORTED_VERSIONS and version not in VERSIONS:
        return ServerCapabilities.minimal()
    all_of_them: dict[str, Any] = {
        "tools": mcp.ServerCapabilitiesTools(),
        "resources": mcp.ServerCapabilitiesResources(),
        "prompts": mcp.ServerCapabilitiesPrompts(),
        "logging": {},
        "experimental": ExperimentalCapabilities().to_json(),
    }
    row = VERSIONS.get(version)
    declared = (
        all_of_them if row is None else {name: all_of_them[name] for name in row.capabilities}
    )
    return ServerCapabilities(**declared)


def handle_initialize_internal(
    request: McpRequest, http_port: int | None = None
) -> JsonRpcResponse:
    """Answer `initialize`: the version of the client if it is supported, else an error."""
    id = _id_of(request)
    try:
        asked = convert(request.params, InitializeRequest)
    except ValidationError:
        row = wording("pierre", ErrorKind.INVALID_PARAMS, "initialize")
        text = "" if row is None else row.message
        return JsonRpcResponse.error(id, ERROR_INVALID_PARAMS, text)
    version = asked.protocol_version
    if version not in SUPPORTED_VERSIONS:
        row = wording("pierre", ErrorKind.PROTOCOL_VERSION_MISMATCH)
        known = {"clientVersion": version, "supportedVersions": ", ".join(SUPPORTED_VERSIONS)}
        text = "" if row is None else row.message.format_map(known)
        return JsonRpcResponse.error(id, ERROR_VERSION_MISMATCH, text)
    _log.info(
        "MCP version negotiated: %s (client: %s, server supports: %s)",
        version,
        version,
        ", ".join(SUPPORTED_VERSIONS),
    )
    names = (version, server_name_multitenant(), SERVER_VERSION)
    if http_port is None:
        answer = InitializeResponse.new(*names)
    else:
        answer = InitializeResponse.new_with_ports(*names, http_port)
    return JsonRpcResponse.success(id, to_builtins(answer))


def handle_ping(request: McpRequest) -> JsonRpcResponse:
    """Answer `ping` with an empty result."""
    return JsonRpcResponse.success(_id_of(request), {})


def get_tools(tools: Iterable[mcp.Tool] = ()) -> list[dict[str, Any]]:
    """Return name, description and input schema of tools, as `tools/list` has them."""
    shown = ("name", "description", "inputSchema")
    return [
        {name: value for name, value in to_builtins(tool).items() if name in shown}
        for tool in tools
    ]


def handle_tools_list(request: McpRequest, tools: Iterable[mcp.Tool] = ()) -> JsonRpcResponse:
    """Answer `tools/list` with the given tools."""
    return JsonRpcResponse.success(_id_of(request), {"tools": get_tools(tools)})


def handle_unknown_method(request: McpRequest) -> JsonRpcResponse:
    """Answer a method that does not exist with -32601, and its name in the text."""
    text = f"Unknown method: {redact(request.method)}"
    return JsonRpcResponse.error(_id_of(request), ERROR_METHOD_NOT_FOUND, text)


def _id_of(request: McpRequest) -> RequestId | None:
    return default_request_id() if request.id is UNSET else request.id


class ProtocolHandler:
    """The functions above as members, as in the original."""

    SUPPORTED_VERSIONS: ClassVar[tuple[str, ...]] = SUPPORTED_VERSIONS

    handle_initialize_internal = staticmethod(handle_initialize_internal)
    handle_ping = staticmethod(handle_ping)
    handle_tools_list = staticmethod(handle_tools_list)
    handle_unknown_method = staticmethod(handle_unknown_method)


def methods(app: Server, authenticate: Callable[..., object]) -> None:
    """Register `authenticate`, which Pierre serves and MCP does not have.

    The handler gets the member `token` of the params, and a `Context` if it has a parameter for
    one; what it returns is the result. It raises `RequestError("AUTHENTICATION_FAILED")` for a
    token that is not valid, which is -32002 under `Policy.pierre()`.

    Raises:
        TypeError: the signature cannot be a method's.
        ValueError: the server has the method already.
    """
    app.method("authenticate")(authenticate)
