"""Comparison of the headers of a POST with its body: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*`.

A proxy decides by the headers, the server acts on the body: a request in which they differ is
refused with status 400 and HEADER_MISMATCH. Each function returns a short text that names the
header, never a value, or None.

The rules that live here, and only here:

* `MCP-Protocol-Version` is on every POST and equals the version in `_meta`; `Mcp-Method` is on
  every request and equals its method.        [MCP 2026-07-28, basic/transports/streamable-http]
* `Mcp-Name` is on the methods of its row, whose member of `params` it repeats. On other methods
  it is ignored.
* An argument with a value needs its `Mcp-Param-*` header. A header without a value in the body
  is refused: the specification does not mention it, and a proxy would act on a value that the
  tool never gets.
* A number without a header form is refused, because it would pass by every proxy unseen.
* None of these headers is repeated. A proxy may read another one of them than the server.
* A notification needs the version alone, because no rule asks for more. A header that it has
  still has to be true.

What the body lacks is left to the check of the body, whose answer is more helpful: a version
in `_meta`, a name, an argument of the right type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ....mcp.header_values import decode_header_value, header_text, literal_value, same_value
from ....mcp.param_headers import ParamPath
from ....spec.mcp.headers import NAME_MEMBERS

__all__ = ["RequestHeaders", "header_mismatch", "name_member", "param_mismatch"]

_VERSION: Final = "MCP-Protocol-Version"
_METHOD: Final = "Mcp-Method"
_NAME: Final = "Mcp-Name"
_METHOD_KEY: Final = b"mcp-method"
_NAME_KEY: Final = b"mcp-name"


class RequestHeaders(Protocol):
    """The headers of one HTTP request: names in lower case, values without outer blanks."""

    @property
    def protocol_version(self) -> bytes | None:
        """The value of `MCP-Protocol-Version`, which is not repeated."""

    def all(self, name: bytes) -> Sequence[bytes]:
        """Return the values of a header, in order."""


def name_member(method: str) -> str | None:
    """Return the member of `params` that `Mcp-Name` repeats, or None if the method has none."""
    return NAME_MEMBERS.get(method)


def header_mismatch(
    request: RequestHeaders,
    method: str,
    version: str | None,
    name: str | None,
    *,
    is_request: bool = True,
) -> str | None:
    """Return how the headers differ from the body, or None.

    `version` is the one in `_meta`, `name` the member of `params` that `name_member` names; None
    if the body lacks it, or has something else than a text there.
    """
    given = request.protocol_version
    if given is None:
        return f"{_VERSION} is missing"
    if version is not None and literal_value(given) != version:
        return f"{_VERSION} differs from the version in params._meta"
    found = request.all(_METHOD_KEY)
    if len(found) != 1:
        if found or is_request:
            return _count(_METHOD, found)
    elif literal_value(found[0]) != method:
        return f"{_METHOD} differs from the method of the message"
    member = NAME_MEMBERS.get(method)
    if member is None or name is None or not is_request:
        return None
    found = request.all(_NAME_KEY)
    if len(found) != 1:
        return _count(_NAME, found)
    text = decode_header_value(found[0])
    if text is None:
        return _undecodable(_NAME)
    return None if text == name else f"{_NAME} differs from params.{member}"


def param_mismatch(
    request: RequestHeaders, annotated: tuple[ParamPath, ...], arguments: Any
) -> str | None:
    """Return how the `Mcp-Param-*` headers of a `tools/call` differ from its arguments, or None.

    `annotated` are the headers of the tool. Other `Mcp-Param-*` headers are ignored.
    """
    for row in annotated:
        value = row.value(arguments)
        found = request.all(row.key)
        if len(found) > 1:
            return _count(row.header, found)
        if header_text(value) is None:
            if type(value) is int or type(value) is float:
                return f"{row.header} can repeat integers within ±(2^53 - 1) alone"
            # A value of another type is refused by the check of the arguments.
            if found:
                return f"{row.header} repeats an argument that the body does not have"
        elif not found:
            return _count(row.header, found)
        else:
            text = decode_header_value(found[0])
            if text is None:
                return _undecodable(row.header)
            if not same_value(text, value):
                return f"{row.header} differs from the argument"
    return None


def _count(header: str, found: Sequence[bytes]) -> str:
    return f"{header} is repeated" if found else f"{header} is missing"


def _undecodable(header: str) -> str:
    return f"{header} has invalid characters or invalid Base64"
