"""What a server says when it is called at the wrong time, where a profile has words of its own."""

from __future__ import annotations

from typing import Final

from ..error_kinds import ErrorKind as Kind

__all__ = ["lifecycle_sentence"]

# By profile and symbol; whoever is not here says what its row of the symbol says.
_SENTENCES: Final[dict[tuple[str, str], str]] = {
    (
        "mcp",
        Kind.NOT_INITIALIZED,
    ): "Server not initialized: send initialize first, or name a protocol version in params._meta",
    (
        "mcp",
        Kind.ALREADY_INITIALIZED,
    ): "Server already initialized: initialize opens a session once",
    (
        "erlmcp",
        Kind.NOT_INITIALIZED,
    ): "Cannot execute operation before server initialization. Call initialize first.",  # E-99
    (
        "erlmcp",
        Kind.ALREADY_INITIALIZED,
    ): "Server already initialized. Initialize must be called only once.",  # R-EM-45
}


def lifecycle_sentence(profile: str, kind: str) -> str | None:
    """Return what `profile` says of a call at the wrong time, or None for the usual text."""
    return _SENTENCES.get((profile, kind))
