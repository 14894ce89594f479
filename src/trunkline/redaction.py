"""Redaction of secrets in reprs, log lines, error texts and recordings.

The rules that live here, and only here:

* A member whose name suggests a secret is hidden whole, whatever its type.
* Text that looks like a credential is hidden wherever it occurs.
* Long text and large containers are truncated, except by `conceal`, which is for
  recordings.

Nothing here is reversible and nothing here is sent to a peer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Final

__all__ = ["HIDDEN", "conceal", "first_and_last", "is_secret_name", "redact", "show"]

HIDDEN: Final = "[redacted]"

# A name is compared without case and punctuation: `X-Api-Key`, `apiKey` and
# `api_key` are one name.
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
    "signingkey",
    "credential",
    "clientassertion",
    "codeverifier",
    "bearer",
    "jwt",
    "token",
)
_SECRET_NAMES: Final = frozenset(
    {"auth", "xauth", "wwwauthenticate", "pass", "pwd", "sessionid", "mcpsessionid"}
)
# Protocol members that contain "token" and hold no secret. One that ends in "tokens" is a count,
# and shown if it is a number.
_PLAIN_NAMES: Final = frozenset({"progresstoken", "maxtokens"})
_PUNCTUATION: Final = r"[\W_]+"

# Applied to a few hundred characters at most: see `_plain_text`.
_CREDENTIAL: Final = (
    # The value after a name that suggests a secret: in a query, a header, a JSON text.
    r"(?P<name>(?i:(?:authorization|cookie)\\?[\"']?\s*[=:]\s*))[^\r\n]+"
    r"|(?P<key>(?i:(?:(?<!progress)token|secret|passw(?:or)?d|passphrase|pwd|credential|session[-_]?id"
    r"|(?:api|access|private|encryption|signing)[-_ ]?key)\\?[\"']?\s*[=:]\s*\\?[\"']?))"
    r"(?!\[redacted\](?:[\s\"'&,;}\]\\]|\Z))[^\s\"'&,;}\]\\]+"  # not once more
    r"|(?i:(?<![a-z0-9])(?:bearer|basic)\s+[a-z0-9._~+/=-]{6,})"  # an Authorization value
    r"|(?<![A-Za-z0-9])eyJ[\w-]{8,}+(?:\.[\w-]*+)+"  # a JSON web token
    r"|(?<![A-Za-z0-9])(?:"
    r"(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_][\w-]{8,}|sk-[\w-]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9]{16,})"
    # user:password@host, or a part of it so long that the host is cut off.
    r"|(?<=://)(?:[^\s/]+(?=@)|[^\s/]{200,}\Z)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*-----)?"
)

# Limits of a value that is shown to a person.
_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 32
_MAX_TEXT: Final = 200
_MAX_BITS: Final = 640
# In total, because nested containers multiply.
_MAX_VALUES: Final = 500
# `conceal` searches text in pieces of this size, each with as much again behind it: the pattern
# takes quadratic time for a hostile text with many starts of credentials and no end.
_PIECE_LENGTH: Final = 1024
_LINE_END: Final = r"[\r\n]"
_TOKEN_END: Final = r"[\s\"'&,;}\]\\]"
_HOST_END: Final = r"[\s/]"
_KEY_END: Final = r"-----END [A-Z ]*-----"


@cache  # one entry for each pattern above
def _pattern(text: str) -> re.Pattern[str]:
    # On first use: all programs load this module, and few print anything at startup.
    return re.compile(text)


def is_secret_name(name: str) -> bool:
    """Return True if a member called `name` is hidden whatever its value."""
    plain = _pattern(_PUNCTUATION).sub("", name[:_MAX_TEXT]).lower()
    if plain in _PLAIN_NAMES:
        return False
    return plain in _SECRET_NAMES or any(part in plain for part in _SECRET_PARTS)


def redact(value: object, *, depth: int = _MAX_DEPTH) -> object:
    """Return a copy of `value` that is safe to print: secrets hidden, long parts truncated."""
    return _redacted(value, depth, [_MAX_VALUES])


def conceal(value: object) -> object:
    """Return a copy of JSON `value` with its secrets hidden and everything else unchanged.

    A value that contains itself is not JSON, and does not terminate.
    """
    top: list[object] = [None]
    # A stack instead of recursion: the peer decides how deep a value nests.
    waiting: list[tuple[object, dict[str, object] | list[object], str | int]] = [(value, top, 0)]
    while waiting:
        item, holder, place = waiting.pop()
        kept: object
        if isinstance(item, str):
            kept = _concealed_text(item)
        elif isinstance(item, Mapping):
            kept = _concealed_members(item, waiting)
        elif isinstance(item, list | tuple):
            kept = _concealed_items(item, waiting)
        else:
            kept = item if item is None or isinstance(item, int | float) else redact(item)
        holder[place] = kept  # type: ignore[index]  # a name with a dict, a number with a list
    return top[0]


def show(value: object, *, limit: int = _MAX_TEXT) -> str:
    """Return `value` as one short, safe line for an error text."""
    text = repr(redact(value, depth=3))
    return text if len(text) <= limit else f"{text[:limit]}…"


def first_and_last(secret: str) -> str:
    """Return the first 10 and last 8 characters of a long secret; hide a short one whole."""
    if not isinstance(secret, str) or len(secret) <= 20:
        return "[REDACTED]"
    return f"{secret[:10]}...{secret[-8:]}"


def _redacted(value: object, depth: int, left: list[int]) -> object:
    left[0] -= 1
    if left[0] < 0:
        return "…"
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # An exact int, because the repr of a subclass may print anything; and a short one,
        # because Python rejects printing the longest.
        bits = int.bit_length(value)
        return int.__pos__(value) if bits <= _MAX_BITS else f"<integer of {bits} bits>"
    if isinstance(value, float):
        return float.__pos__(value)
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return _members(value, depth, left)
    if isinstance(value, list | tuple | set | frozenset):
        return _items(value, depth, left)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    fields = getattr(type(value), "__struct_fields__", None)
    if fields is not None:
        return _fields(value, fields, depth, left)
    # The repr of an unknown object may print anything; its type is enough.
    return f"<{type(value).__name__}>"


def _items(
    value: list[object] | tuple[object, ...] | set[object] | frozenset[object],
    depth: int,
    left: list[int],
) -> list[object]:
    items = list(islice(value, _MAX_ITEMS))
    if len(value) == 2 and isinstance(value, list | tuple) and _is_secret_label(items[0]):
        return [_plain_text(_name(items[0])), HIDDEN]  # a header as a pair
    shown = [_redacted(item, depth - 1, left) for item in items]
    return [*shown, f"… {len(value) - _MAX_ITEMS} more"] if len(value) > _MAX_ITEMS else shown


def _members(value: Mapping[object, object], depth: int, left: list[int]) -> dict[str, object]:
    # A header or variable as an object: {"name": "X-Api-Key", "value": …}.
    value_is_secret = _is_secret_label(value.get("name", value.get("key")))
    shown: dict[str, object] = {}
    for key, item in islice(value.items(), _MAX_ITEMS):
        name = _name(key)
        hidden = _is_hidden(name, item) or (value_is_secret and name == "value")
        shown[_plain_text(name)] = HIDDEN if hidden else _redacted(item, depth - 1, left)
    if len(value) > _MAX_ITEMS:
        shown["…"] = f"{len(value) - _MAX_ITEMS} more"
    return shown


def _fields(
    value: object, fields: tuple[str, ...], depth: int, left: list[int]
) -> dict[str, object]:
    """Return the fields of a Struct; its attribute or its wire name may suggest a secret."""
    written = type(value).__struct_encode_fields__  # type: ignore[attr-defined]  # a Struct has it
    value_is_secret = _is_secret_label(getattr(value, "name", None))
    shown: dict[str, object] = {}
    for name, wire_name in zip(fields, written, strict=True):
        item = getattr(value, name)
        if type(item).__name__ == "UnsetType":  # by name: msgspec is not loaded here
            continue
        hidden = _is_hidden(name, item) or _is_hidden(wire_name, item)
        hidden = hidden or (value_is_secret and wire_name == "value")
        shown[wire_name] = HIDDEN if hidden else _redacted(item, depth - 1, left)
    return shown


def _is_hidden(name: str, item: object) -> bool:
    if type(item) in (int, float) and name.lower().endswith("tokens"):
        return False
    return is_secret_name(name)


def _is_secret_label(label: object) -> bool:
    return isinstance(label, str | bytes) and is_secret_name(_name(label))


def _name(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("latin-1")
    return str(redact(key, depth=1))


def _plain_text(text: str) -> str:
    # The pattern is applied to a bounded window, twice the part that is shown: enough to
    # recognise a credential that starts in it.
    window = text[: _MAX_TEXT * 2]
    end = len(text) if len(text) <= _MAX_TEXT else _MAX_TEXT
    shown, at = "", 0
    for found in _pattern(_CREDENTIAL).finditer(window):
        if found.start() >= end:
            break
        shown += window[at : found.start()] + (found["name"] or found["key"] or "") + HIDDEN
        at = found.end()
    shown += window[at:end]
    return shown if end == len(text) else f"{shown}… ({len(text)} characters)"


# `conceal`


def _concealed_members(
    value: Mapping[object, object],
    waiting: list[tuple[object, dict[str, object] | list[object], str | int]],
) -> dict[str, object]:
    value_is_secret = _is_secret_label(value.get("name", value.get("key")))
    kept: dict[str, object] = {}
    for key, item in value.items():
        name = _name(key)
        shown = _concealed_text(name)
        kept[shown] = HIDDEN
        if not _is_hidden(name, item) and not (value_is_secret and name == "value"):
            waiting.append((item, kept, shown))
    return kept


def _concealed_items(
    value: list[object] | tuple[object, ...],
    waiting: list[tuple[object, dict[str, object] | list[object], str | int]],
) -> list[object]:
    if len(value) == 2 and _is_secret_label(value[0]):
        return [_concealed_text(_name(value[0])), HIDDEN]  # a header as a pair
    kept: list[object] = [HIDDEN] * len(value)
    waiting.extend((item, kept, place) for place, item in enumerate(value))
    return kept


def _concealed_text(text: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(text):
        piece = min(at + _PIECE_LENGTH, len(text))
        window = min(at + 2 * _PIECE_LENGTH, len(text))
        # A credential that starts behind the piece belongs to the next one.
        found = _pattern(_CREDENTIAL).search(text, at, window)
        if found is None or found.start() >= piece:
            parts.append(text[at:piece])
            at = piece
            continue
        parts += (text[at : found.start()], found["name"] or found["key"] or "", HIDDEN)
        at = found.end() if found.end() < window else _end_of(found, text)
    return "".join(parts)


def _end_of(found: re.Match[str], text: str) -> int:
    """Return the end of a credential that is longer than the window."""
    if found["name"]:
        end = _pattern(_LINE_END).search(text, found.end())
    elif found[0].startswith("-----BEGIN"):
        end = _pattern(_KEY_END).search(text, found.end())
        return end.end() if end else len(text)
    elif text[max(0, found.start() - 3) : found.start()] == "://":
        end = _pattern(_HOST_END).search(text, found.end())
    else:
        end = _pattern(_TOKEN_END).search(text, found.end())
    return end.start() if end else len(text)
