"""What may be shown of a value that could hold a secret.

Every `repr`, log line and error text of this library passes through here, so a
token that a caller put in the wrong place still stays out of sight. The rules
that live here, and only here:

* a member whose name speaks of a secret is hidden whole, whatever its type;
* text that looks like a credential is hidden wherever it stands;
* long text and large containers are cut, because a log line is not a store.

Nothing here is reversible and nothing here is sent to a peer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["HIDDEN", "first_and_last", "is_secret_name", "redact", "show"]

HIDDEN: Final = "[redacted]"

# A name is compared without case, hyphens and underscores: `X-Api-Key`,
# `apiKey` and `api_key` are one name.
_SECRET_PARTS: Final = (
    "authorization",
    "cookie",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "encryptionkey",
    "credential",
    "bearer",
    "jwt",
    "token",
)
_SECRET_NAMES: Final = frozenset({"auth", "wwwauthenticate", "pwd", "sessionid", "mcpsessionid"})
# Protocol members that contain "token" and hold none.
_PLAIN_NAMES: Final = frozenset(
    {"progresstoken", "maxtokens", "inputtokens", "outputtokens", "totaltokens", "tokens"}
)
_SEPARATORS: Final = re.compile(r"[-_.\s]")
_CREDENTIAL: Final = re.compile(
    r"(?i:\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,})"  # an Authorization value
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"  # a JSON web token
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_][A-Za-z0-9_-]{8,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\bAIza[0-9A-Za-z_-]{30,}"
    r"|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"  # user:password@host
)

# A shown value is for a human: deeper or longer than this tells them nothing.
_DEPTH: Final = 8
_ITEMS: Final = 32
_TEXT: Final = 200


def is_secret_name(name: str) -> bool:
    """Say whether a member called `name` is hidden whatever it holds."""
    plain = _SEPARATORS.sub("", name).lower()
    if plain in _PLAIN_NAMES:
        return False
    return plain in _SECRET_NAMES or any(part in plain for part in _SECRET_PARTS)


def redact(value: object, *, depth: int = _DEPTH) -> object:
    """Return a copy of `value` that is safe to print: secrets hidden, bulk cut."""
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return _members(value, depth)
    if isinstance(value, list | tuple | set | frozenset):
        shown = [redact(item, depth=depth - 1) for item in list(value)[:_ITEMS]]
        return [*shown, f"… {len(value) - _ITEMS} more"] if len(value) > _ITEMS else shown
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    fields = getattr(type(value), "__struct_fields__", None)
    if fields is not None:
        return _members({name: getattr(value, name) for name in fields}, depth)
    # An object of a stranger's making may print anything; its type is enough.
    return f"<{type(value).__name__}>"


def show(value: object, *, limit: int = _TEXT) -> str:
    """Return `value` as one short, safe line for an error text."""
    text = repr(redact(value, depth=3))
    return text if len(text) <= limit else f"{text[:limit]}…"


def first_and_last(secret: str) -> str:
    """Return the first 10 and last 8 characters of a long secret; hide a short one whole."""
    return f"{secret[:10]}...{secret[-8:]}" if len(secret) > 20 else "[REDACTED]"


def _members(value: Mapping[object, object], depth: int) -> dict[str, object]:
    shown: dict[str, object] = {}
    for count, (key, item) in enumerate(value.items()):
        if count == _ITEMS:
            shown["…"] = f"{len(value) - _ITEMS} more"
            break
        name = key if isinstance(key, str) else str(redact(key, depth=1))
        shown[_plain_text(name)] = HIDDEN if is_secret_name(name) else redact(item, depth=depth - 1)
    return shown


def _plain_text(text: str) -> str:
    # Cut first: a credential pattern must not be run over a megabyte. What the
    # cut leaves of a credential at the edge is dropped with the tail.
    whole = len(text) <= _TEXT
    shown = _CREDENTIAL.sub(HIDDEN, text if whole else text[: _TEXT * 2])
    return shown if whole else f"{shown[:_TEXT]}… ({len(text)} characters)"
