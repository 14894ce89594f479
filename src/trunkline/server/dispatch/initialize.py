"""Version negotiation: the `initialize` request.

The rules that live here, and only here:

* A requested revision that the server has is accepted; for any other the server offers its
  newest, rejects, or falls back, as the policy says; under Pierre's policy with the version and
  capabilities of Pierre's table.
                           [MCP 2025-11-25, basic/lifecycle; K-13, K-14, K-15, P-56, P-58]
* `initialize` is accepted once, and not in a batch.      [MCP 2025-03-26, basic/lifecycle]
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import UNSET, Struct, ValidationError, convert
from msgspec.json import Decoder
from msgspec.structs import replace

from ...engine.request import Action, Answer
from ...jsonrpc.messages import Shown, shown_tuple
from ...jsonrpc.peer.incoming import IncomingRequest
from ...mcp.types import (
    ClientCapabilities,
    Implementation,
    InitializeRequestParams,
    InitializeResult,
    ServerCapabilities,
)
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ...spec.revisions import FORMER_NAMES
from ..errors import brief, plain
from .request import ServerRequest
from .revision import ServerRevision

if TYPE_CHECKING:
    from ..api.core import ServerCore
    from .connection import Connection

__all__ = ["HandshakeSession", "cancel_by_token", "initialize"]

_log: Final = logging.getLogger("trunkline.server")

# Members of `initialize` as some senders spell them, for lenient policies.  [K-57]
_SNAKE: Final = {"protocol_version": "protocolVersion", "client_info": "clientInfo"}

# Required in every revision, in the order of the specification.
_MEMBERS: Final = ("protocolVersion", "capabilities", "clientInfo")

_any: Final = Decoder()
_params: Final = Decoder(InitializeRequestParams)


class HandshakeSession(Shown, Struct, eq=False, weakref=True):
    """What was negotiated by `initialize`."""

    rev: ServerRevision
    client: Implementation
    capabilities: ClientCapabilities
    # The capabilities that the client was sent.
    declared: ServerCapabilities
    # Of log messages to send; until the client sets it, a default.
    log_level: str = "info"
    # Whether `notifications/initialized` came.
    is_ready: bool = False

    def was_declared(self, what: str) -> bool:
        """Return True if the client was sent the capability of a list."""
        return getattr(self.declared, what) is not None


# The warning about a version that the server answers with another one.
_FALLS_BACK: Final = "unknown revision, falling back"


class _Agreed(NamedTuple):
    """What the server answers with."""

    # The version in the answer, and the revision whose rules apply.
    version: str
    revision: str
    # The capabilities to declare, of those that the server has; None is all.
    capabilities: tuple[str, ...] | None = None
    # What the log says about a version that the server does not have; "" is nothing.
    warning: str = ""

    def __repr__(self) -> str:
        return shown_tuple(self)


def initialize(request: ServerRequest) -> Action:
    """Open a session, or refuse to."""
    connection, message, rev = request.connection, request.message, request.rev
    core = connection.core
    if connection.session is not None:
        return request.refuse(ErrorKind.ALREADY_INITIALIZED)
    if message.slot is not None:
        text = "initialize must not be part of a batch"
        return request.refuse(ErrorKind.INVALID_REQUEST, text)
    try:
        params = _read(message, rev)
    except ValidationError as error:
        return request.refuse(ErrorKind.INVALID_PARAMS, plain(error))
    agreed = _agree(core, params.protocol_version)
    _log_agreed(core, params, agreed)
    if agreed is None:
        kind = ErrorKind.PROTOCOL_VERSION_MISMATCH
        supported = [each for each in core.revisions if core.revision(each).has_handshake]
        requested = brief(params.protocol_version)
        known = {
            "clientVersion": requested,
            "serverVersion": supported[0],
            "supportedVersions": ", ".join(supported),
        }
        return request.refuse(kind, known=known, supported=supported, requested=requested)
    chosen = core.revision(agreed.revision)
    result = _answered(chosen.initialized(), agreed)
    session = HandshakeSession(chosen, params.client_info, params.capabilities, result.capabilities)
    # After the answer, which is encoded as the request was.
    return Answer(result, then=partial(connection.use_session, session))


def _log_agreed(core: ServerCore, params: InitializeRequestParams, agreed: _Agreed | None) -> None:
    if agreed is not None and agreed.warning:
        _log.warning(
            "%s: client requested revision %s, answered %s",
            agreed.warning,
            show(params.protocol_version),
            agreed.version,
        )
    if _log.isEnabledFor(logging.INFO):  # redaction takes time
        client = params.client_info
        _log.info(
            "client %s %s requested revision %s; supported are %s; negotiated %s",
            show(client.name),
            show(client.version),
            show(params.protocol_version),
            ", ".join(core.revisions),
            None if agreed is None else agreed.version,
        )


def _read(message: IncomingRequest, rev: ServerRevision) -> InitializeRequestParams:
    if message.params is UNSET:
        raise ValidationError(f"Object missing required {_fields([*_MEMBERS])}")
    is_lenient = rev.policy.strictness == "lenient"
    if not is_lenient:
        try:
            return _params.decode(message.params)
        except ValidationError:
            pass  # it may be for a member that is not used
    members: Any = _any.decode(message.params)
    if isinstance(members, dict):
        if is_lenient:
            members = {_SNAKE.get(name, name): value for name, value in members.items()}
        missing = [name for name in _MEMBERS if name not in members]
        if missing:
            raise ValidationError(f"Object missing required {_fields(missing)}")
        members["capabilities"] = _usual(members["capabilities"])
    return convert(members, InitializeRequestParams)


def _fields(names: list[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return f"field {listed}" if len(names) == 1 else f"fields {listed}"


def _usual(capabilities: Any) -> Any:
    """Return capabilities without experimental ones and extensions that are not objects.  [K-33]"""
    if not isinstance(capabilities, dict):
        return capabilities
    usual = dict(capabilities)
    for member in ("experimental", "extensions"):
        given = usual.get(member)
        if isinstance(given, dict):
            usual[member] = {name: each for name, each in given.items() if isinstance(each, dict)}
    if "extensions" in usual and not isinstance(usual["extensions"], dict):
        del usual["extensions"]  # no member of these revisions
    return usual


def _answered(result: InitializeResult, agreed: _Agreed) -> InitializeResult:
    """Return the result of `initialize` with the version and capabilities to answer with."""
    declared = result.capabilities
    if agreed.capabilities is not None:
        declared = ServerCapabilities(
            **{name: getattr(declared, name) for name in agreed.capabilities}
        )
    if (agreed.version, declared) == (result.protocol_version, result.capabilities):
        return result
    return replace(result, protocol_version=agreed.version, capabilities=declared)


def _agree(core: ServerCore, wanted: str) -> _Agreed | None:
    """Return the negotiated revision, or None to reject the client."""
    if wanted in core.revisions and core.revision(wanted).has_handshake:
        return _Agreed(wanted, wanted)
    policy = core.policy.version_policy
    newest = core.handshake_revision
    if policy == "reject" or newest is None:
        return None
    if policy == "pierre":
        # Imported here: few servers have that policy.
        from ...spec.profiles.pierre import negotiated

        row = negotiated(wanted)
        if row.revision in core.revisions:
            return _Agreed(row.answer, row.revision, row.capabilities, row.warning)
    former = FORMER_NAMES.get(wanted) if policy == "fallback" else None
    agreed = former if former in core.revisions else newest.revision
    return _Agreed(agreed, agreed, warning="" if policy == "counter-offer" else _FALLS_BACK)


def cancel_by_token(connection: Connection, params: Any) -> None:
    """Cancel the request of a progress token, if the policy allows that.  [K-56]"""
    if connection.core.policy.envelope != "pierre" or params is UNSET:
        return
    members = _any.decode(params)
    token = members.get("progressToken") if isinstance(members, dict) else None
    for message, request in list(connection.runner.at_work.items()):
        caller = request.caller if isinstance(request, ServerRequest) else None
        if token is not None and caller is not None and caller.progress_token == token:
            connection.runner.cancel(message.id)  # type: ignore[arg-type]  # a running request has an id
