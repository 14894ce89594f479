"""Which requests a server may send to a client, and the decoders of their results.

Everything is looked up in the rows of methods and capabilities, by revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import DecodeError, Raw, ValidationError, to_builtins
from msgspec.json import Decoder

from ...errors import LocalProtocolError, RemoteProtocolError
from ...mcp.tables import result_type
from ...mcp.types import ClientCapabilities
from ...redaction import redact
from ...spec.lookup import capability as lookup_capability
from ...spec.lookup import explain_method
from ...spec.lookup import method as method_row
from ...spec.mcp.behaviour import ASKING_NEEDS, IMPLIED

if TYPE_CHECKING:
    from ..dispatch.initialize import HandshakeSession
    from ..dispatch.revision import ServerRevision

__all__ = ["check", "declares", "missing", "read"]

# More than the server-to-client methods times the revisions.
_MAX_DECODERS: Final = 32


def missing(capabilities: ClientCapabilities, revision: str, method: str, params: Any) -> list[str]:
    """Return the capabilities that a request needs and the client did not declare.

    Raises:
        LocalProtocolError: a server may not send this method in the revision.
    """
    row = method_row(method, revision)
    if row is None or row.kind != "request" or "server" not in row.senders:
        why = explain_method(method, revision)
        raise LocalProtocolError("mcp.method.unknown", got=method, expected=why)
    needed = {row.capability: None} if row.capability else {}
    for need in ASKING_NEEDS:
        if need.method == method and need.when.holds(revision):
            value = _member(params, need.member)
            if value is not None and need.value in (None, value):
                needed[need.capability] = None
    lacking = [name for name in needed if not declares(capabilities, name, revision)]
    # A capability implied by its missing parent is not named.
    return [name for name in lacking if name not in IMPLIED or name.split(".")[0] not in lacking]


def check(
    session: HandshakeSession | None, rev: ServerRevision, method: str, params: Any = None
) -> None:
    """Check that the revision and the client's capabilities allow a request.

    Raises:
        LocalProtocolError: the request may not be sent; the text says why.
    """
    capabilities = ClientCapabilities() if session is None else session.capabilities
    lacking = missing(capabilities, rev.revision, method, params)
    row = method_row(method, rev.revision)
    if row is None or row.form != "wire" or session is None:
        why = f"a revision in which a server may send requests; this is {rev.revision}"
        raise LocalProtocolError("mcp.direction.server-request", got=method, expected=why)
    if not session.is_ready and method != "ping":
        why = "a client that has sent notifications/initialized"
        raise LocalProtocolError("mcp.lifecycle.server-waits", got=method, expected=why)
    if lacking:
        why = f"a client that declared {lacking[0]}"
        raise LocalProtocolError("mcp.capability.not-declared", got=method, expected=why)


def _member(params: Any, name: str) -> Any:
    if isinstance(params, Mapping):
        return params.get(name)
    return getattr(params, _python_name(name), None)


def declares(capabilities: ClientCapabilities, name: str, revision: str) -> bool:
    """Return True if a client declared a capability of the revision, by its dotted name."""
    if lookup_capability(name, revision, "client") is None:
        return False  # not a capability in this revision
    declared: Any = capabilities
    for part in name.split("."):
        declared = getattr(declared, _python_name(part), None)
    if declared is not None:
        return True
    if name not in IMPLIED:
        return False
    # Implied by an empty parent.
    parent: Any = getattr(capabilities, name.split(".")[0], None)
    return parent is not None and not to_builtins(parent)


def _python_name(part: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in part)


def read(raw: Raw, rev: ServerRevision, method: str) -> Any:
    """Decode the result of a client request.

    Raises:
        RemoteProtocolError: it does not have the result type of the method.
    """
    try:
        return _decoder(method, rev.revision).decode(raw)
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = RemoteProtocolError(
            "mcp.result.type", got=method, expected=f"a result of {method}: {redact(str(error))}"
        )
    raise problem


@lru_cache(maxsize=_MAX_DECODERS)
def _decoder(method: str, revision: str) -> Decoder[Any]:
    return Decoder(result_type(method, revision))
