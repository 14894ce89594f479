"""The params of a request as middleware reads and replaces them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, Struct
from msgspec.json import Decoder, decode, encode
from msgspec.structs import fields, force_setattr, replace

from ...mcp.tables import params_type
from ..errors import unreadable_params
from .params import EMPTY, UNREADABLE, ToolCall

if TYPE_CHECKING:
    from ...jsonrpc.peer.incoming import IncomingRequest
    from .revision import ServerRevision

__all__ = ["MiddlewareParams"]

_object: Final = Decoder(dict[str, Any])


class MiddlewareParams:
    """The params of a request as middleware reads and replaces them."""

    __slots__ = ("_rev", "_typed", "method", "raw")

    def __init__(self, message: IncomingRequest, method: str, rev: ServerRevision) -> None:
        # The runner may drop those of the request.
        self.raw = message.params
        # As MCP spells it.
        self.method = method
        self._rev = rev
        self._typed: Any = None

    def get(self) -> Any:
        """Return the params as a Struct; those of methods outside MCP are a dict.

        Absent members are None: UNSET is for the readers of the library, which refuse null.
        """
        if self._typed is None:
            raw = self.raw
            if raw is UNSET:
                raw = EMPTY
            elif type(raw) is ToolCall:
                raw = encode(raw)
            try:
                kind = params_type(self.method, self._rev.revision)
                self._typed = _object.decode(raw) if kind is None else decode(raw, type=kind)
                _show_absent(self._typed)
            except UNREADABLE as error:
                raise unreadable_params(error, self.method, self._rev.policy) from None
        return self._typed

    def set(self, params: Any) -> None:
        """Replace the params: a Struct, or a dict with the names of the wire."""
        self.raw, self._typed = Raw(encode(_hide_absent(params))), None


def _show_absent(value: Any) -> None:
    """Set the absent members of Structs that were just decoded to None."""
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            member = getattr(value, name)
            if member is UNSET:
                force_setattr(value, name, None)
            else:
                _show_absent(member)


def _hide_absent(value: Any) -> Any:
    """Return a Struct with UNSET for the members that `_show_absent` set to None."""
    if not isinstance(value, Struct):
        return value
    members = {name: _hide_absent(getattr(value, name)) for name in value.__struct_fields__}
    absent = {
        each.name: UNSET
        for each in fields(value)
        if members[each.name] is None and each.default is UNSET
    }
    return replace(value, **{**members, **absent})
