"""Asking the client, in the revisions where a server may send requests.

What may be asked, of whom, and what comes back is in the rows of the methods.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, ValidationError, to_builtins
from msgspec.json import Decoder

from ..errors import LocalProtocolError, RemoteProtocolError
from ..mcp.tables import result_type
from ..spec.lookup import explain_method
from ..spec.lookup import method as method_row
from ..spec.mcp.behaviour import ASKING_NEEDS

if TYPE_CHECKING:
    from .connection import Session
    from .surface import Surface

__all__ = ["check", "read"]

# Methods that a server may ask for, times revisions.
_DECODERS_KEPT: Final = 32


def check(session: Session | None, surface: Surface, method: str, params: Any = None) -> None:
    """Refuse to ask what the revision does not have, or the client did not declare.

    Raises:
        LocalProtocolError: it may not be sent; the text says why.
    """
    row = method_row(method, surface.revision)
    if row is None or row.kind != "request" or "server" not in row.senders:
        why = explain_method(method, surface.revision)
        raise LocalProtocolError("mcp.method.unknown", got=method, expected=why)
    if row.form != "wire" or session is None:
        why = f"a revision in which a server may send requests; this is {surface.revision}"
        raise LocalProtocolError("mcp.direction.server-request", got=method, expected=why)
    if not session.is_ready and method != "ping":
        why = "a client that said it is initialized"
        raise LocalProtocolError("mcp.lifecycle.server-waits", got=method, expected=why)
    told = to_builtins(params) if params is not None else {}
    needed = [row.capability] if row.capability else []
    needed += [
        need.capability
        for need in ASKING_NEEDS
        if need.method == method
        and need.when.holds(surface.revision)
        and need.member in told
        and need.value in (None, told[need.member])
    ]
    for name in needed:
        if not _declares(session, name):
            why = f"a client that declared {name}"
            raise LocalProtocolError("mcp.capability.not-declared", got=method, expected=why)


def _declares(session: Session, name: str) -> bool:
    declared: Any = session.capabilities
    for part in name.split("."):
        declared = getattr(declared, part, UNSET)
    return declared is not UNSET


def read(raw: Raw, surface: Surface, method: str) -> Any:
    """Return the result of an ask, typed.

    Raises:
        RemoteProtocolError: it is not what the method gives.
    """
    try:
        return _decoder(method, surface.revision).decode(raw)
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = RemoteProtocolError(
            "mcp.result.type", got=method, expected=f"a result of {method}: {error}"
        )
    raise problem


@lru_cache(maxsize=_DECODERS_KEPT)
def _decoder(method: str, revision: str) -> Decoder[Any]:
    return Decoder(result_type(method, revision))
