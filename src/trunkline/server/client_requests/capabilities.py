"""What a server may ask a client, in which revision, of whom, and what comes back.

All of it is in the rows of the methods and capabilities; here they are read. How a question
travels is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, ValidationError, to_builtins
from msgspec.json import Decoder

from ...errors import LocalProtocolError, RemoteProtocolError
from ...mcp.tables import result_type
from ...mcp.types import ClientCapabilities
from ...spec.lookup import capability as lookup_capability
from ...spec.lookup import explain_method
from ...spec.lookup import method as method_row
from ...spec.mcp.behaviour import ASKING_NEEDS, IMPLIED

if TYPE_CHECKING:
    from ..dispatch.connection import HandshakeSession
    from ..dispatch.revision import ServerRevision

__all__ = ["check", "declares", "missing", "read"]

# Methods that a server may ask for, times revisions.
_MAX_DECODERS: Final = 32


def missing(capabilities: ClientCapabilities, revision: str, method: str, params: Any) -> list[str]:
    """Return the capabilities that a question needs and the client did not declare.

    Raises:
        LocalProtocolError: no server may ask this in the revision; the text says why.
    """
    row = method_row(method, revision)
    if row is None or row.kind != "request" or "server" not in row.senders:
        why = explain_method(method, revision)
        raise LocalProtocolError("mcp.method.unknown", got=method, expected=why)
    needed = {row.capability: None} if row.capability else {}
    for need in ASKING_NEEDS:
        if need.method == method and need.when.holds(revision):
            told = _member(params, need.member)
            if told is not UNSET and need.value in (None, told):
                needed[need.capability] = None
    lacking = [name for name in needed if not declares(capabilities, name, revision)]
    # What the one above it would declare as well need not be named.
    return [name for name in lacking if name not in IMPLIED or name.split(".")[0] not in lacking]


def check(
    session: HandshakeSession | None, rev: ServerRevision, method: str, params: Any = None
) -> None:
    """Refuse to send what the revision does not let a server send, or the client not declared.

    Raises:
        LocalProtocolError: it may not be sent; the text says why.
    """
    capabilities = ClientCapabilities() if session is None else session.capabilities
    lacking = missing(capabilities, rev.revision, method, params)
    row = method_row(method, rev.revision)
    if row is None or row.form != "wire" or session is None:
        why = f"a revision in which a server may send requests; this is {rev.revision}"
        raise LocalProtocolError("mcp.direction.server-request", got=method, expected=why)
    if not session.is_ready and method != "ping":
        why = "a client that said it is initialized"
        raise LocalProtocolError("mcp.lifecycle.server-waits", got=method, expected=why)
    if lacking:
        why = f"a client that declared {lacking[0]}"
        raise LocalProtocolError("mcp.capability.not-declared", got=method, expected=why)


def _member(params: Any, name: str) -> Any:
    """Return a member of params by its name on the wire: of a Struct, or as an author wrote it."""
    if isinstance(params, Mapping):
        return params.get(name, UNSET)
    return getattr(params, _python_name(name), UNSET)


def declares(capabilities: ClientCapabilities, name: str, revision: str) -> bool:
    """Say whether a client declared a capability, by its name with dots, that a revision has."""
    if lookup_capability(name, revision, "client") is None:
        return False  # a word like any other, whoever says it
    declared: Any = capabilities
    for part in name.split("."):
        declared = getattr(declared, _python_name(part), UNSET)
    if declared is not UNSET:
        return True
    if name not in IMPLIED:
        return False
    # Meant all the same, where its siblings are not declared either.
    parent: Any = getattr(capabilities, name.split(".")[0], UNSET)
    return parent is not UNSET and not to_builtins(parent)


def _python_name(part: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in part)


def read(raw: Raw, rev: ServerRevision, method: str) -> Any:
    """Return the result of an ask, typed.

    Raises:
        RemoteProtocolError: it is not what the method gives.
    """
    try:
        return _decoder(method, rev.revision).decode(raw)
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = RemoteProtocolError(
            "mcp.result.type", got=method, expected=f"a result of {method}: {error}"
        )
    raise problem


@lru_cache(maxsize=_MAX_DECODERS)
def _decoder(method: str, revision: str) -> Decoder[Any]:
    return Decoder(result_type(method, revision))
