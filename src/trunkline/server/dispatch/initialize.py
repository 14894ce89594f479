"""Version negotiation: the `initialize` request.

The rules that live here, and only here:

* A requested revision that the server has is accepted; for any other the server offers its
  newest, rejects, or falls back, as the policy says.
                                      [MCP 2025-11-25, basic/lifecycle; K-13, K-14, K-15]
* `initialize` is accepted once, and not in a batch.      [MCP 2025-03-26, basic/lifecycle]
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, ValidationError, convert
from msgspec.json import Decoder

from ...jsonrpc.incoming import IncomingRequest
from ...mcp.types import InitializeRequestParams
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ...spec.revisions import FORMER_NAMES
from .connection import Connection, HandshakeSession, brief, plain
from .revision import ServerRevision

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = ["cancel_by_token", "initialize"]

_log: Final = logging.getLogger("trunkline.server")

# Members of `initialize` as some senders spell them, for lenient policies.  [K-57]
_SNAKE: Final = {"protocol_version": "protocolVersion", "client_info": "clientInfo"}

_any: Final = Decoder()


def initialize(
    connection: Connection,
    asked: IncomingRequest,
    decoder: Decoder[InitializeRequestParams],
    rev: ServerRevision,
) -> None:
    """Open a session, or answer with an error."""
    core = connection.core
    if connection.session is not None:
        text = rev.sentence(ErrorKind.ALREADY_INITIALIZED)
        connection.refuse(asked, rev.policy, ErrorKind.ALREADY_INITIALIZED, text)
        return
    if asked.slot is not None:
        text = "initialize must not be part of a batch"
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_REQUEST, text)
        return
    try:
        params = _read(asked, decoder, rev)
    except ValidationError as error:
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_PARAMS, plain(error))
        return
    agreed = _agree(core, params.protocol_version)
    client = params.client_info
    if _log.isEnabledFor(logging.INFO):  # redaction takes time
        _log.info(
            "client %s %s requested revision %s; supported are %s; negotiated %s",
            show(client.name),
            show(client.version),
            show(params.protocol_version),
            ", ".join(core.revisions),
            agreed,
        )
    if agreed is None:
        kind = ErrorKind.PROTOCOL_VERSION_MISMATCH
        connection.refuse(
            asked,
            rev.policy,
            kind,
            supported=[each for each in core.revisions if core.revision(each).has_handshake],
            requested=brief(params.protocol_version),
        )
        return
    chosen = core.revision(agreed)
    result = chosen.initialized()
    connection.answer(asked, result, chosen.policy)
    # After the answer, which is encoded as the request was.
    connection.use_session(
        HandshakeSession(chosen, client, params.capabilities, result.capabilities)
    )


def _read(
    asked: IncomingRequest, decoder: Decoder[InitializeRequestParams], rev: ServerRevision
) -> InitializeRequestParams:
    if asked.params is UNSET:
        raise ValidationError("Object missing required field `protocolVersion`")
    is_lenient = rev.policy.strictness == "lenient"
    if not is_lenient:
        try:
            return decoder.decode(asked.params)
        except ValidationError:
            pass  # it may be for a member that is not used
    members: Any = _any.decode(asked.params)
    if isinstance(members, dict):
        if is_lenient:
            members = {_SNAKE.get(name, name): value for name, value in members.items()}
        members["capabilities"] = _usual(members.get("capabilities"))
    return convert(members, InitializeRequestParams)


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


def _agree(core: ServerCore, wanted: str) -> str | None:
    """Return the negotiated revision, or None to reject the client."""
    if wanted in core.revisions and core.revision(wanted).has_handshake:
        return wanted
    policy = core.policy.version_policy
    if policy == "reject":
        return None
    newest = core.handshake_revision.revision if core.handshake_revision is not None else None
    if policy == "fallback":
        former = FORMER_NAMES.get(wanted)
        agreed = former if former in core.revisions else newest
        _log.warning(
            "client requested unknown revision %s, falling back to %s", show(wanted), agreed
        )
        return agreed
    return newest


def cancel_by_token(connection: Connection, params: Any) -> None:
    """Cancel the request of a progress token, if the policy allows that.  [K-56]"""
    if connection.core.policy.envelope != "pierre" or params is UNSET:
        return
    members = _any.decode(params)
    token = members.get("progressToken") if isinstance(members, dict) else None
    for asked, context in list(connection.runner.at_work.items()):
        caller = context._caller
        if token is not None and caller is not None and caller.progress_token == token:
            connection.runner.cancel(asked.id)  # type: ignore[arg-type]  # a running request has an id
