"""Redaction of secrets in reprs, log lines, error texts and recordings.

The rules that live here, and only here:

* A member whose name suggests a secret is hidden, whatever its type: whole where it is
  shown to a person, and in a recording every scalar at or below it, so that the structure
  stays.
* In a message the names inside a JSON Schema, and the keys of `inputRequests`, are names of
  arguments and questions: they hide nothing.
* Text that looks like a credential is hidden wherever it occurs.
* Long text and large containers are truncated, except in recordings.

Nothing here is reversible and nothing here is sent to a peer. The time is linear in the size
of the text, whatever it holds: each pattern begins with a literal, and what it skips or takes
is not searched again by the same pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

__all__ = [
    "HIDDEN",
    "conceal",
    "conceal_message",
    "first_and_last",
    "hidden_places",
    "is_secret_name",
    "may_hide",
    "redact",
    "show",
]

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

# Patterns of credentials. Each begins with the literal that it is listed by, so that a text is
# searched by `in` first and by the pattern only if the literal is there. A group is the part to
# hide; without one it is the whole match.
_SEPARATOR: Final = rb"\\*[\"']?\s*+[=:]\s*+"
# A value in quotes, in quotes that are escaped once more, or up to the next delimiter; and not
# one that was hidden before.
_VALUE: Final = (
    _SEPARATOR + rb"(?!\\*[\"']?\[redacted\](?:[\s\"'&,;}\]\\]|\Z))"
    rb"(?:\\+[\"']((?:[^\\\"'\r\n]|\\++[^\\\"'\r\n])++)|\"((?:[^\"\\\r\n]|\\.)++)"
    rb"|'((?:[^'\\\r\n]|\\.)++)|([^\s\"'&,;}\]\\]++))"
)
_WORD_KEY: Final = b"|".join(
    b"(?<=%s%skey)" % (word, between)
    for word in (b"api", b"access", b"private", b"encryption", b"signing")
    for between in (b"", b"[-_ ]")
)
# In lower case, and searched in the text in lower case.
_LOWER_PATTERNS: Final[dict[bytes, bytes]] = {
    # The value after a name that suggests a secret: in a query, a header, a JSON text.
    b"authorization": rb"authorization" + _SEPARATOR + rb"([^\r\n]++)",
    b"cookie": rb"cookie" + _SEPARATOR + rb"([^\r\n]++)",
    b"token": rb"token(?<!progresstoken)" + _VALUE,
    b"secret": rb"secret" + _VALUE,
    b"passw": rb"passw(?:or)?d" + _VALUE,
    b"passphrase": rb"passphrase" + _VALUE,
    b"pwd": rb"pwd" + _VALUE,
    b"credential": rb"credential" + _VALUE,
    b"session": rb"session[-_]?id" + _VALUE,
    b"key": rb"key(?:" + _WORD_KEY + rb")" + _VALUE,
    # An Authorization value; the second group is checked by `_is_credential`.
    b"bearer": rb"bearer(?<![a-z0-9]bearer)(?=(\s++([a-z0-9._~+/=-]{6,}+)))",
    b"basic": rb"basic(?<![a-z0-9]basic)(?=(\s++([a-z0-9+/=_-]{6,}+)))",
    # An option and its value in a list; the first group is checked by its name.
    **{
        quote + b"-": quote
        + rb"(-[\w-]{2,64}+)\\*[\"'],\s*+\\*[\"'](?!-)((?:[^\"'\\\r\n]|\\[^\"'])++)"
        for quote in (b"'", b'"')
    },
}
# Words of prose that follow the name of a scheme.
_PROSE: Final = frozenset(
    (b"authentication", b"authorization", b"authorisation", b"credentials", b"scheme", b"tokens")
)
_START: Final = rb"(?<![A-Za-z0-9]%s)"
_PATTERNS: Final[dict[bytes, bytes]] = {
    # A JSON web token. A run without a dot is taken too, or each start in it would search it.
    b"eyJ": rb"eyJ(?<![A-Za-z0-9]eyJ)[\w-]{8,}+((?:\.[\w-]*+)++)?",
    # user:password@host
    b"://": rb"://([^\s/]+)(?=@)",
    b"-----BEGIN ": (
        rb"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^-]*+(?:-----END [A-Z ]*+-----)?"
    ),
    **{
        prefix: prefix + _START % prefix + rb"(?:live|test|proj|ant)[-_][\w-]{8,}+"
        for prefix in (b"sk_", b"pk_", b"rk_", b"pk-", b"rk-")
    },
    b"sk-": (rb"sk-" + _START % b"sk-" + rb"(?:(?:live|test|proj|ant)[-_][\w-]{8,}+|[\w-]{20,}+)"),
    **{
        prefix: re.escape(prefix) + _START % re.escape(prefix) + rest
        for prefix, rest in (
            *((b"gh%c_" % kind, rb"[A-Za-z0-9]{20,}+") for kind in b"pousr"),
            (b"github_pat_", rb"\w{20,}+"),
            (b"glpat-", rb"[\w-]{16,}+"),
            *((b"xox%c-" % kind, rb"[A-Za-z0-9-]{10,}+") for kind in b"abeprs"),
            (b"xapp-", rb"[A-Za-z0-9-]{10,}+"),
            (b"AKIA", rb"[0-9A-Z]{16}"),
            (b"ASIA", rb"[0-9A-Z]{16}"),
            (b"AIza", rb"[\w-]{30,}+"),
            (b"ya29.", rb"[\w-]{20,}+"),
            (b"npm_", rb"[A-Za-z0-9]{30,}+"),
            (b"hf_", rb"[A-Za-z0-9]{20,}+"),
            (b"whsec_", rb"[A-Za-z0-9]{16,}+"),
        )
    },
}
# The shortest text with a credential: pwd=x.
_MIN_CREDENTIAL: Final = 5
# Up to this length one pattern of all literals is faster than a search for each.
_SHORT_TEXT: Final = 128
# A host that is cut off, in a text of which only the beginning is examined.
_CUT_HOST: Final = rb"://[^\s/]{200,}+\Z"
_PLAIN_WORD: Final = (
    rb"(?:[A-Z]?[a-z]++|[A-Z]++)(?:[-._/~+=]++(?:[A-Z]?[a-z]++|[A-Z]++))*+[-._/~+=]*+"
)

# Limits of a value that is shown to a person.
_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 32
_MAX_TEXT: Final = 200
_MAX_BITS: Final = 640
# In total, because nested containers multiply.
_MAX_VALUES: Final = 500
# The pointers that `conceal_message` returns. Beyond these bounds a pointer names a container
# further up, so that a message with a million secrets does not have a million of them.
_MAX_POINTERS: Final = 1000
_MAX_POINTER_BYTES: Final = 65536
_MAX_POINTER_STEPS: Final = 8
# Containers with more elements than this are examined at once, not text by text.
_MANY: Final = 64
# Base64 of content: nothing in it is readable as it stands.
_CONTENT_MEMBERS: Final = frozenset({"data", "blob"})
_MIN_CONTENT: Final = 1024
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@cache  # one entry for each pattern above
def _pattern(text: str) -> re.Pattern[str]:
    # On first use: all programs load this module, and few print anything at startup.
    return re.compile(text)


@cache  # as above
def _bytes_pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text)


@cache
def _any_literal() -> re.Pattern[bytes]:
    literals = {each.lower() for each in (*_LOWER_PATTERNS, *_PATTERNS)}
    return re.compile(b"|".join(map(re.escape, sorted(literals))))


@cache
def _secret_part() -> re.Pattern[str]:
    return re.compile("|".join(_SECRET_PARTS))


def is_secret_name(name: str) -> bool:
    """Return True if a member called `name` is hidden whatever its value."""
    plain = _pattern(_PUNCTUATION).sub("", name[:_MAX_TEXT]).lower()
    if plain in _PLAIN_NAMES:
        return False
    return plain in _SECRET_NAMES or _secret_part().search(plain) is not None


def redact(value: object, *, depth: int = _MAX_DEPTH) -> object:
    """Return a copy of `value` that is safe to print: secrets hidden, long parts truncated."""
    return _redacted(value, depth, [_MAX_VALUES])


def conceal(value: object) -> object:
    """Return a copy of JSON `value` with its secrets hidden and everything else unchanged.

    A value that contains itself is not JSON, and does not terminate.
    """
    return _concealed(value, None, [])


def may_hide(text: bytes) -> bool:
    """Return False if a JSON text without escaped letters surely has nothing to hide.

    It takes a fraction of the time of `conceal`; True means no more than that it is needed.
    """
    low = text.lower()
    if any(literal in low for literal in _LOWER_PATTERNS):
        return True
    if any(literal in text for literal in _PATTERNS):
        return True
    plain = low.translate(None, b" -_.:/@$#~+*&()<>[]")
    if not plain.isascii():
        return True  # punctuation of other scripts is not removed above
    return any(part.encode() in plain for part in _SECRET_PARTS) or any(
        b'"%s"' % name.encode() in plain for name in _SECRET_NAMES
    )


def conceal_message(message: object) -> tuple[object, list[str]]:
    """Return a copy of a message or batch with its secrets hidden, and where.

    The JSON pointers name each place whose value is not the one that was sent, or a container
    of such places.
    """
    places: list[_Path] = []
    copy = _concealed(message, _MESSAGE, places)
    return copy, _pointers(places)


def hidden_places(message: object, text: bytes) -> list[str]:
    """Return the JSON pointers of the placeholders in a message, whose JSON text is in `text`."""
    if HIDDEN.encode() not in text:
        return []
    places: list[_Path] = []
    waiting: list[tuple[object, _Path]] = [(message, None)]
    while waiting:
        item, path = waiting.pop()
        if isinstance(item, str):
            if HIDDEN in item:
                places.append(path)
        elif isinstance(item, dict):
            places += [(path, name) for name in item if HIDDEN in name]
            waiting += [(each, (path, name)) for name, each in item.items()]
        elif isinstance(item, list):
            waiting += [(each, (path, index)) for index, each in enumerate(item)]
    return _pointers(places)


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
    return isinstance(label, str | bytes) and _known_name(_name(label))[1]


def _name(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("latin-1")
    return str(redact(key, depth=1))


def _plain_text(text: str) -> str:
    # A bounded window is examined, twice the part that is shown: enough to recognise a
    # credential that starts in it.
    window = text[: _MAX_TEXT * 2]
    end = len(text) if len(text) <= _MAX_TEXT else _MAX_TEXT
    if window.isascii():
        data, limit = window.encode(), end
    else:
        data = window.encode("utf-8", "surrogatepass")
        limit = len(window[:end].encode("utf-8", "surrogatepass"))
    shown, at = [], 0
    for start, stop in _credentials(data, is_cut=len(window) < len(text)):
        if start >= limit:
            break
        shown += [data[at:start], HIDDEN.encode()]
        at = stop
    shown.append(data[at:limit])
    plain = b"".join(shown).decode("utf-8", "surrogatepass")
    return plain if end == len(text) else f"{plain}… ({len(text)} characters)"


# Credentials in text


def _credentials(data: bytes, *, is_cut: bool = False) -> list[tuple[int, int]]:
    """Return the spans to hide, in order and without overlap."""
    if len(data) < _MIN_CREDENTIAL:
        return []
    low = data.lower()
    if len(low) <= _SHORT_TEXT and _any_literal().search(low) is None:
        return []
    found: list[tuple[int, int]] = []
    for literal, pattern in _LOWER_PATTERNS.items():
        if literal in low:
            found += _lower_spans(literal, pattern, low, data)
    for literal, pattern in _PATTERNS.items():
        if literal in data:
            found += _spans(literal, pattern, data)
    if is_cut and (cut := _bytes_pattern(_CUT_HOST).search(data)):
        found.append((cut.start() + 3, cut.end()))
    return _merged(found)


def _lower_spans(
    literal: bytes, pattern: bytes, low: bytes, data: bytes
) -> Iterator[tuple[int, int]]:
    for match in _bytes_pattern(pattern).finditer(low):
        if literal in (b"bearer", b"basic"):
            begin, end = match.span(2)
            is_whole = match.start() == 0 and end == len(data)
            if _is_credential(data[begin:end], literal, is_whole=is_whole):
                yield match.start(), end
        elif literal[1:] == b"-":
            if is_secret_name(match[1].decode("ascii")):
                yield match.span(2)
        else:
            yield match.span(match.lastindex or 0)


def _spans(literal: bytes, pattern: bytes, data: bytes) -> Iterator[tuple[int, int]]:
    for match in _bytes_pattern(pattern).finditer(data):
        if literal == b"eyJ":
            if match[1]:
                yield match.span()
        else:
            yield match.span(match.lastindex or 0)


def _is_credential(token: bytes, scheme: bytes, *, is_whole: bool) -> bool:
    """Return True if what follows the name of a scheme is a credential, and not a word."""
    is_word = _bytes_pattern(_PLAIN_WORD).fullmatch(token) is not None
    if scheme == b"bearer":
        # A text that is nothing but the scheme and a word is the value of a header.
        is_value = is_whole and token.lower() not in _PROSE
        return is_value or not is_word or len(token) >= 20
    # Base64 of user:password. Shorter words with a digit in them are names: python3.
    return not is_word and (token.endswith(b"=") or len(token) >= 12 or _has_colon(token))


def _has_colon(token: bytes) -> bool:
    from binascii import Error, a2b_base64

    try:
        return b":" in a2b_base64(token[: len(token) // 4 * 4])
    except Error:
        return False


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _concealed_text(text: str) -> str:
    if len(text) < _MIN_CREDENTIAL:
        return text
    data = text.encode("utf-8", "surrogatepass")
    spans = _credentials(data)
    if not spans:
        return text
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts += (data[at:start], HIDDEN.encode())
        at = end
    parts.append(data[at:])
    return b"".join(parts).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)  # a peer chooses the names
def _short_name(name: str) -> tuple[str, bool]:
    return _concealed_text(name), is_secret_name(name)


def _known_name(name: str) -> tuple[str, bool]:
    """Return a member name with credentials hidden, and True if it suggests a secret."""
    if len(name) <= 64:
        return _short_name(name)
    return _concealed_text(name), is_secret_name(name)


# Whole values: `conceal` and `conceal_message`

# The path to a value, innermost step first; None is the top.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


class _Place(NamedTuple):
    """What a place of a message is, where its names are not those of the peer's own data."""

    # By name of a member; the elements of an array are the same place as the array.
    members: Mapping[str, _Place] = {}
    # What members of any other name are; None is data.
    others: _Place | None = None
    # True if the names of members are checked.
    has_names: bool = True


# A JSON Schema: names of arguments, and no values.
_SCHEMA: Final = _Place({}, None, has_names=False)
# At or below a member whose name suggests a secret.
_SECRET: Final = _Place({}, None, has_names=False)
_TOOL: Final = _Place({"inputSchema": _SCHEMA, "outputSchema": _SCHEMA})
_ASKED: Final = _Place({"tools": _TOOL, "requestedSchema": _SCHEMA})
_QUESTIONS: Final = _Place({}, _Place({"params": _ASKED}), has_names=False)
_BODY: Final = _Place({"tools": _TOOL, "requestedSchema": _SCHEMA, "inputRequests": _QUESTIONS})
_MESSAGE: Final = _Place({"params": _BODY, "result": _BODY})

_Holder: TypeAlias = dict[str, object] | list[object]
_Container: TypeAlias = "Mapping[object, object] | list[object] | tuple[object, ...]"
_Work: TypeAlias = "list[tuple[_Container, _Holder, str | int, _Place | None, _Path, int]]"
_NUMBERS: Final = frozenset({int, float, bool, type(None)})


def _concealed(value: object, place: _Place | None, places: list[_Path]) -> object:
    top: list[object] = [value]
    # A stack instead of recursion: the peer decides how deep a value nests.
    waiting: _Work = []
    _copy_item(value, top, 0, place, None, 0, waiting, places)
    while waiting:
        item, holder, key, here, path, depth = waiting.pop()
        kept: object
        if type(item) is dict or isinstance(item, Mapping):
            kept = _concealed_members(item, here, path, depth, waiting, places)
        else:
            kept = _concealed_items(item, here, path, depth, waiting, places)
        holder[key] = kept  # type: ignore[index]  # a name with a dict, a number with a list
    return top[0]


def _copy_item(
    item: object,
    holder: _Holder,
    key: str | int,
    place: _Place | None,
    path: _Path,
    depth: int,
    waiting: _Work,
    places: list[_Path],
) -> None:
    """Put a copy of `item` into `holder`: a scalar now, a container later."""
    kept: object = item
    # The usual types first: to test for a Mapping takes longer than all the rest.
    kind = type(item)
    if kind is not str and (
        kind is dict or kind is list or isinstance(item, Mapping | list | tuple)
    ):
        kept = kind() if kind is dict or kind is list else None  # keeps the order of members
        if item:
            waiting.append((item, holder, key, place, path, depth))  # type: ignore[arg-type]  # a container, see above
        elif kept is None:
            kept = {} if isinstance(item, Mapping) else []
    elif place is _SECRET:
        kept = HIDDEN
    elif isinstance(item, str):
        if len(item) >= _MIN_CREDENTIAL:
            kept = _concealed_text(item)
            if kept != item:
                places.append(path)
    elif item is not None and not isinstance(item, int | float):
        kept = redact(item)
    holder[key] = kept  # type: ignore[index]  # a name with a dict, a number with a list


def _concealed_members(
    value: Mapping[object, object],
    place: _Place | None,
    path: _Path,
    depth: int,
    waiting: _Work,
    places: list[_Path],
) -> dict[str, object]:
    has_names = place is None or place.has_names
    label = value.get("name", value.get("key")) if has_names else None
    value_is_secret = label is not None and _is_secret_label(label)
    are_plain = len(value) > _MANY and _are_plain_names(value)
    kept: dict[str, object] = {}
    for key, item in value.items():
        name = key if type(key) is str else _name(key)
        shown, is_secret = (name, False) if are_plain else _known_name(name)
        if shown != name:
            shown = _unused(shown, kept)
            places.append(path if depth >= _MAX_POINTER_STEPS else (path, shown))
        if place is None and not is_secret and not value_is_secret and type(item) in _NUMBERS:
            kept[shown] = item
            continue
        below = path if depth >= _MAX_POINTER_STEPS else (path, shown)
        if place is _SECRET or place is _SCHEMA:
            there: _Place | None = place
        elif has_names and (
            (is_secret and not _is_count(name, item)) or (value_is_secret and name == "value")
        ):
            there = _SECRET
            places.append(below)
        else:
            there = None if place is None else place.members.get(name, place.others)
        if there is None and name in _CONTENT_MEMBERS and _is_base64(item):
            kept[shown] = item
        else:
            _copy_item(item, kept, shown, there, below, depth + 1, waiting, places)
    return kept


def _concealed_items(
    value: list[object] | tuple[object, ...],
    place: _Place | None,
    path: _Path,
    depth: int,
    waiting: _Work,
    places: list[_Path],
) -> list[object]:
    kept = list(value)
    if place is not _SECRET and len(kept) > _MANY and _are_plain_items(kept):
        return kept
    has_names = place is None or place.has_names
    is_pair = has_names and len(kept) == 2 and _is_secret_label(kept[0])
    if is_pair and not isinstance(kept[0], str):
        kept[0] = _name(kept[0])
    option_before = False
    for index, item in enumerate(tuple(kept)):
        there = place
        # A header as a pair, or an option and its value.
        is_secret = (is_pair and index == 1) or (
            option_before and isinstance(item, str) and not item.startswith("-")
        )
        option_before = (
            has_names and isinstance(item, str) and item[:1] == "-" and is_secret_name(item)
        )
        if type(item) in _NUMBERS and not is_secret and place is not _SECRET:
            continue
        below = path if depth >= _MAX_POINTER_STEPS else (path, index)
        if is_secret and place is not _SECRET:
            there = _SECRET
            places.append(below)
        _copy_item(item, kept, index, there, below, depth + 1, waiting, places)
    return kept


def _is_count(name: str, item: object) -> bool:
    return type(item) in (int, float) and name.lower().endswith("tokens")


def _unused(name: str, taken: Mapping[str, object]) -> str:
    # Two names may differ only in what was hidden. The numbers go up, so that each is tried once.
    return name if name not in taken else f"{name} {len(taken) + 1}"


def _are_plain_names(value: Mapping[object, object]) -> bool:
    """Return True if no name of many hides anything; False may be wrong."""
    try:
        text = "\n".join(value)  # type: ignore[arg-type]  # raises where a name is not a string
        data = text.encode("utf-8", "surrogatepass")
    except TypeError:
        return False
    if not data.isascii() or _credentials(data):
        return False
    plain = data.lower().translate(None, b" -_.:/@$#")
    return (
        not any(part.encode() in plain for part in (*_SECRET_PARTS, *_SECRET_NAMES))
        and plain.replace(b"\n", b"").isalnum()
    )


def _are_plain_items(items: list[object]) -> bool:
    """Return True if all are numbers, or texts that hide nothing; False may be wrong."""
    kinds = set(map(type, items))
    if kinds <= {int, float, bool, type(None)}:
        return True
    if kinds != {str}:
        return False
    text = "\n".join(items)  # type: ignore[arg-type]  # see above
    if text.startswith("-") or "\n-" in text:
        return False
    return not _credentials(text.encode("utf-8", "surrogatepass"))


def _is_base64(text: object) -> bool:
    if not isinstance(text, str) or len(text) < _MIN_CONTENT or not text.isascii():
        return False
    data = text.encode()
    return not data.rstrip(b"=").translate(None, _BASE64) and len(data) % 4 == 0


# Pointers


def _pointers(places: list[_Path]) -> list[str]:
    for most in (_MAX_POINTER_STEPS, 4, 3, 2, 1):
        found: dict[str, None] = {}
        size = 0
        for path in places:
            text = _pointer(path, most)
            if text not in found:
                found[text] = None
                size += len(text)
                if len(found) > _MAX_POINTERS or size > _MAX_POINTER_BYTES:
                    break
        else:
            return list(found)
    return [""]


def _pointer(path: _Path, most: int) -> str:
    """Return the first `most` steps of a path as a JSON pointer.        [RFC 6901]"""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(
        "/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps[: -most - 1 : -1]
    )
