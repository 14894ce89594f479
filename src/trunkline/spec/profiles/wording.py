"""The words of a server's errors, where a profile has other words than we have.

A row replaces the message of an error, and says which members its `data` has. An error without
a row has the message of the server; a row without a message has that of the error's code.

The rules that live here, and only here:

* erlmcp answers with the fixed text of a code, and puts what is special into `data`.
                                              [E-35, E-39, E-82, E-99, E-102, R-EM-1, R-EM-45]
* Pierre names both versions in the text of a mismatch.                        [P-44, P-46]
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..error_kinds import ErrorKind as Kind

__all__ = ["WORDINGS", "Wording", "wording"]


class Wording(NamedTuple):
    """The message of an error and the members of its `data`."""

    # Names in braces are replaced by what is known of the request; "" is the text of the code.
    message: str = ""
    # Members that are not known are left out.
    data: tuple[str, ...] = ()


# By profile, symbol and method; "" is every method. `details` is the message of the server.
# One row per line, so that the table can be read beside the originals.
# fmt: off
WORDINGS: Final[dict[tuple[str, str, str], Wording]] = {
    ("mcp", Kind.NOT_INITIALIZED, ""): Wording("Server not initialized: send initialize first, or name a protocol version in params._meta"),
    ("mcp", Kind.ALREADY_INITIALIZED, ""): Wording("Server already initialized: initialize opens a session once"),
    # [E-99]
    ("erlmcp", Kind.NOT_INITIALIZED, ""): Wording("Cannot execute operation before server initialization. Call initialize first."),
    # [R-EM-45]
    ("erlmcp", Kind.ALREADY_INITIALIZED, ""): Wording("Server already initialized. Initialize must be called only once."),
    # [R-EM-1, E-35]
    ("erlmcp", Kind.METHOD_NOT_FOUND, ""): Wording(data=("method",)),
    ("erlmcp", Kind.INVALID_PARAMS, ""): Wording(data=("details",)),
    ("erlmcp", Kind.RESOURCE_NOT_FOUND, ""): Wording(data=("uri",)),
    ("erlmcp", Kind.TOOL_NOT_FOUND, ""): Wording(data=("tool", "details")),
    ("erlmcp", Kind.PROMPT_NOT_FOUND, ""): Wording(data=("prompt",)),
    ("erlmcp", Kind.CAPABILITY_NOT_SUPPORTED, ""): Wording(data=("capability",)),
    ("erlmcp", Kind.INVALID_TOOL_ARGUMENTS, ""): Wording(data=("tool", "details")),
    ("erlmcp", Kind.PROMPT_ARGUMENT_MISSING, ""): Wording(data=("prompt", "argument")),
    ("erlmcp", Kind.INVALID_PROMPT_ARGUMENTS, ""): Wording(data=("prompt", "details")),
    ("erlmcp", Kind.INVALID_CURSOR, ""): Wording(data=("cursor",)),
    ("erlmcp", Kind.INVALID_COMPLETION_REFERENCE, ""): Wording(data=("reference",)),
    ("erlmcp", Kind.PROTOCOL_VERSION_MISMATCH, ""): Wording(data=("clientVersion", "serverVersion")),
    # [P-44]
    ("pierre", Kind.INVALID_PARAMS, "initialize"): Wording("Invalid initialize request parameters", ("details",)),
    # [P-46]
    ("pierre", Kind.PROTOCOL_VERSION_MISMATCH, ""): Wording("Unsupported MCP protocol version. Client version: {clientVersion}, Supported versions: {supportedVersions}"),
}
# fmt: on


def wording(profile: str, kind: str, method: str = "") -> Wording | None:
    """Return the words that `profile` has for an error, or None if it has none of its own."""
    return WORDINGS.get((profile, kind, method)) or WORDINGS.get((profile, kind, ""))
