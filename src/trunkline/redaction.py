"""Redaction of secrets in reprs, log lines, error texts and recordings.

The rules that live here, and only here:

* A member whose name suggests a secret is hidden, whatever its type: whole where it is
  shown to a person, and in a recording every scalar at or below it, so that the structure
  stays.
* In a message the names inside a JSON Schema, and the keys of `inputRequests`, are names of
  arguments and questions: they hide nothing.
* Text that looks like a credential is hidden wherever it occurs.
* In the words of a command the value of an option or a variable is hidden if its name suggests a
  secret, in a text for a shell too. There a name that ends in the word "key" does: outside of
  commands it is usually that of a dictionary.
* Long text and large containers are truncated, except in recordings.

Nothing here is reversible and nothing here is sent to a peer. The time is linear in the size
of the text, whatever it holds: each pattern begins with a literal, and what it skips or takes
is not searched again by the same pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = [
    "HIDDEN",
    "conceal",
    "conceal_command",
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
# In a command: an option, or a variable that is set for it; and the value that follows. That is
# one word of a shell: in quotes, without, or both. A quote that is not closed ends a value (it
# belongs to a text that the option is in), unless the value begins with it.
_OPTION: Final = r"(?<![\w-])(?:(--?[a-zA-Z][\w-]{1,63}+)(?:=|\s++(?!-)|\Z)|([a-zA-Z_]\w{0,63}+)=)"
_SHELL_WORD: Final = r"(?s:\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|\\.|[^\s\"'\\;|&<>()])++|[\"'](?s:.)++"
_KEY_NAME: Final = r"(?:\A|[-_])key\Z"
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
# Names up to this length are remembered.
_MAX_KNOWN_NAME: Final = 64
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
    return _Copy(depth).of(value)


def conceal(value: object) -> object:
    """Return a copy of JSON `value` with its secrets hidden and everything else unchanged.

    A value that contains itself is not JSON, and does not terminate.
    """
    return _Copy().of(value)


def conceal_command(words: Iterable[str]) -> list[str]:
    """Return the words of a command with their secrets hidden: options, and texts for a shell."""
    shown: list[str] = []
    follows_option = False
    whole = conceal(list(words))
    for word in map(str, whole if isinstance(whole, list) else []):
        if follows_option and not word.startswith("-"):
            shown.append(HIDDEN)
            follows_option = False
        else:
            text, follows_option = _shell_text(word)
            shown.append(text)
    return shown


def _shell_text(text: str) -> tuple[str, bool]:
    """Return a text with the values of secret names hidden; True if it ends with such a name."""
    parts: list[str] = []
    begin = at = 0
    while found := _pattern(_OPTION).search(text, at):
        at = found.end()
        name = found[1] or found[2]
        if not is_secret_name(name) and not _pattern(_KEY_NAME).search(name.lower()):
            continue
        if found[1] and at == len(text) and text[-1] != "=":
            return "".join((*parts, text[begin:])), True
        if value := _pattern(_SHELL_WORD).match(text, at):
            parts += (text[begin:at], HIDDEN)
            begin = at = value.end()
    return "".join((*parts, text[begin:])), False


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
    copy = _Copy()
    return copy.of(message, _MESSAGE), _pointers(copy.places)


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


def show_json(value: object, *, limit: int = _MAX_TEXT) -> str:
    """Return a JSON `value` as one short, safe line of JSON for an error text."""
    # Imported here: few programs show a value. It takes what msgspec refuses: half a character.
    from json import dumps

    shown = redact(value, depth=3)
    try:
        text = dumps(shown, ensure_ascii=False)
    except (TypeError, ValueError):
        return show(value, limit=limit)  # not JSON, such as a dict whose keys are not texts
    if not text.isprintable():
        # As JSON escapes them: a surrogate, or a character that changes the direction of text.
        text = "".join(each if each.isprintable() else dumps(each)[1:-1] for each in text)
    return text if len(text) <= limit else f"{text[:limit]}…"


def first_and_last(secret: str) -> str:
    """Return the first 10 and last 8 characters of a long secret; hide a short one whole."""
    if not isinstance(secret, str) or len(secret) <= 20:
        return "[REDACTED]"
    return f"{secret[:10]}...{secret[-8:]}"


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


def _without(data: bytes, spans: list[tuple[int, int]], end: int) -> str:
    """Return text up to `end`, with a placeholder for each span that begins before it."""
    parts: list[bytes] = []
    at = 0
    for start, stop in spans:
        if start >= end:
            break
        parts += (data[at:start], HIDDEN.encode())
        at = stop
    parts.append(data[at:end])
    return b"".join(parts).decode("utf-8", "surrogatepass")


def _whole_text(text: str) -> str:
    # A slice is an exact string: the repr of a subclass may print anything.
    if len(text) < _MIN_CREDENTIAL:
        return text[:]
    data = text.encode("utf-8", "surrogatepass")
    spans = _credentials(data)
    return _without(data, spans, len(data)) if spans else text[:]


def _short_text(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return _whole_text(text)
    # A bounded window is examined, twice the part that is shown: enough to recognise a
    # credential that starts in it.
    window = text[: _MAX_TEXT * 2]
    data = window.encode("utf-8", "surrogatepass")
    end = len(text[:_MAX_TEXT].encode("utf-8", "surrogatepass"))
    spans = _credentials(data, is_cut=len(window) < len(text))
    return f"{_without(data, spans, end)}… ({len(text)} characters)"


# Names


def _name(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode("latin-1")
    return str(redact(key, depth=1))


@lru_cache(maxsize=4096)  # a peer chooses the names
def _known_name(name: str) -> tuple[str, bool]:
    """Return a short name with credentials hidden, and True if it suggests a secret."""
    return _whole_text(name), is_secret_name(name)


def _is_secret_label(label: object) -> bool:
    if not isinstance(label, str | bytes):
        return False
    name = _name(label)
    return _known_name(name)[1] if len(name) <= _MAX_KNOWN_NAME else is_secret_name(name)


def _is_count(name: str, item: object) -> bool:
    return type(item) in (int, float) and name.lower().endswith("tokens")


def _unused(name: str, taken: Mapping[str, object]) -> str:
    # Two names may differ only in what was hidden. The numbers go up, so that each is tried once.
    return name if name not in taken else f"{name} {len(taken) + 1}"


# Values

# The path to a value, innermost step first; None is the top.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


class _Place(NamedTuple):
    """What a place of a message is, where its names are not those of the peer's own data."""

    # By name of a member; the elements of an array are the same place as the array.
    members: Mapping[str, _Place] = {}
    # What members of any other name are; None is the same as this.
    others: _Place | None = None
    # True if the names of members are checked.
    has_names: bool = True


_DATA: Final = _Place()
# A JSON Schema: names of arguments, and no values.
_SCHEMA: Final = _Place(has_names=False)
# At or below a member whose name suggests a secret.
_SECRET: Final = _Place(has_names=False)
_TOOL: Final = _Place({"inputSchema": _SCHEMA, "outputSchema": _SCHEMA}, _DATA)
_ASKED: Final = _Place({"tools": _TOOL, "requestedSchema": _SCHEMA}, _DATA)
_QUESTIONS: Final = _Place({}, _Place({"params": _ASKED}, _DATA), has_names=False)
_BODY: Final = _Place({**_ASKED.members, "inputRequests": _QUESTIONS}, _DATA)
_MESSAGE: Final = _Place({"params": _BODY, "result": _BODY}, _DATA)

_Holder: TypeAlias = dict[str, object] | list[object]
# What fills a container; each step is what fills a container inside it.
_List: TypeAlias = "list[object] | tuple[object, ...] | set[object] | frozenset[object]"
_Steps: TypeAlias = "Iterator[_Steps]"
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_LISTS: Final = (list, tuple, set, frozenset)
# The usual type first: to test for a Mapping takes longer than all the rest.
_MAPPINGS: Final = (dict, Mapping)


class _Copy:
    """A copy of one value with its secrets hidden: whole, or as much of it as a person reads."""

    __slots__ = ("_is_whole", "_left", "_max_depth", "_max_items", "places")

    def __init__(self, max_depth: int | None = None) -> None:
        """Copy everything, or what the limits show down to `max_depth`."""
        self._is_whole = max_depth is None
        self._max_depth = max_depth
        self._max_items = None if max_depth is None else _MAX_ITEMS
        self._left = _MAX_VALUES
        # Where something was hidden.
        self.places: list[_Path] = []

    def of(self, value: object, place: _Place = _DATA) -> object:
        top: list[object] = [None]
        first = self._put(value, top, 0, place, None, 0)
        # A stack instead of recursion: the peer decides how deep a value nests.
        waiting = [] if first is None else [first]
        while waiting:
            inner = next(waiting[-1], None)
            if inner is None:
                waiting.pop()
            else:
                waiting.append(inner)
        return top[0]

    def _put(
        self,
        item: object,
        holder: _Holder,
        key: str | int,
        place: _Place,
        path: _Path,
        depth: int,
    ) -> _Steps | None:
        """Put a copy of `item` into `holder`; of a container, return the steps that fill it."""
        kept: object
        steps: _Steps | None = None
        if place is _SECRET and not (self._is_whole and isinstance(item, (*_LISTS, *_MAPPINGS))):
            kept = HIDDEN
        elif not self._is_whole and self._is_cut(item, depth):
            kept = "…"
        elif isinstance(item, str):
            kept = self._text(item)
            if kept != item:
                self.places.append(path)
        elif item is None or isinstance(item, int | float):
            kept = item if self._is_whole else _number(item)
        elif isinstance(item, _LISTS):
            items = list(islice(item, self._max_items))
            kept, steps = items, self._items(item, items, place, path, depth)
        elif isinstance(item, _MAPPINGS) or hasattr(type(item), "__struct_fields__"):
            members: dict[str, object] = {}
            given = item if isinstance(item, _MAPPINGS) else _wire_members(item)
            kept, steps = members, self._members(given, members, place, path, depth)
        elif isinstance(item, bytes | bytearray | memoryview):
            kept = f"<{len(item)} bytes>"
        else:
            # The repr of an unknown object may print anything; its type is enough.
            kept = f"<{type(item).__name__}>"
        holder[key] = kept  # type: ignore[index]  # a name with a dict, a number with a list
        return steps

    def _is_cut(self, item: object, depth: int) -> bool:
        self._left -= 1
        is_scalar = item is None or isinstance(item, str | int | float)
        return self._left < 0 or (depth == self._max_depth and not is_scalar)

    def _members(
        self,
        value: Mapping[object, object],
        kept: dict[str, object],
        place: _Place,
        path: _Path,
        depth: int,
    ) -> _Steps:
        # A header or variable as an object: {"name": "X-Api-Key", "value": …}.
        value_is_secret = place.has_names and _is_secret_label(value.get("name", value.get("key")))
        are_plain = self._is_whole and len(value) > _MANY and _are_plain_names(value)
        for key, item in islice(value.items(), self._max_items):
            name = key if type(key) is str else _name(key)
            if are_plain:
                shown, is_secret = name, False
            elif len(name) <= _MAX_KNOWN_NAME:
                shown, is_secret = _known_name(name)
            else:
                shown, is_secret = self._text(name), is_secret_name(name)
            if is_secret or value_is_secret:
                is_secret = place.has_names and is_secret and not _is_count(name, item)
                is_secret = is_secret or (value_is_secret and name == "value")
            if shown != name:
                shown = _unused(shown, kept)
                self.places.append(path if depth >= _MAX_POINTER_STEPS else (path, shown))
            there = _SECRET if is_secret else place.members.get(name) or place.others or place
            is_data = self._is_whole and there is _DATA
            if is_data and (type(item) in _NUMBERS or _is_content(name, item)):
                kept[shown] = item
                continue
            below = path if depth >= _MAX_POINTER_STEPS else (path, shown)
            if is_secret:
                self.places.append(below)
            steps = self._put(item, kept, shown, there, below, depth + 1)
            if steps is not None:
                yield steps
        if self._max_items is not None and len(value) > self._max_items:
            kept["…"] = f"{len(value) - _MAX_ITEMS} more"

    def _text(self, text: str) -> str:
        return _whole_text(text) if self._is_whole else _short_text(text)

    def _items(
        self,
        value: _List,
        kept: list[object],
        place: _Place,
        path: _Path,
        depth: int,
    ) -> _Steps:
        if self._is_whole and place is not _SECRET and _are_plain_items(kept):
            return
        has_names = place.has_names and isinstance(value, list | tuple)
        is_pair = has_names and len(value) == 2 and _is_secret_label(kept[0])
        if is_pair:
            kept[0] = _name(kept[0])
        option_before = False
        for index, item in enumerate(tuple(kept)):
            # A header as a pair, or an option and its value.
            is_secret = (is_pair and index == 1) or (
                option_before and isinstance(item, str) and not item.startswith("-")
            )
            option_before = (
                has_names and isinstance(item, str) and item[:1] == "-" and is_secret_name(item)
            )
            if self._is_whole and type(item) in _NUMBERS and not is_secret and place is not _SECRET:
                continue
            below = path if depth >= _MAX_POINTER_STEPS else (path, index)
            if is_secret:
                self.places.append(below)
            there = _SECRET if is_secret else place
            steps = self._put(item, kept, index, there, below, depth + 1)
            if steps is not None:
                yield steps
        if self._max_items is not None and len(value) > self._max_items:
            kept.append(f"… {len(value) - _MAX_ITEMS} more")


def _number(value: int | float | None) -> object:
    """Return an exact number, because the repr of a subclass may print anything."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float.__pos__(value)
    # Python rejects printing the longest.
    bits = int.bit_length(value)
    return int.__pos__(value) if bits <= _MAX_BITS else f"<integer of {bits} bits>"


def _wire_members(struct: object) -> dict[object, object]:
    """Return the members of a Struct by wire name, hidden if the attribute suggests a secret."""
    names: Any = type(struct)
    members: dict[object, object] = {}
    for name, wire_name in zip(
        names.__struct_fields__, names.__struct_encode_fields__, strict=True
    ):
        item = getattr(struct, name)
        if type(item).__name__ != "UnsetType":  # by name: msgspec is not loaded here
            is_secret = is_secret_name(name) and not _is_count(name, item)
            members[wire_name] = HIDDEN if is_secret else item
    return members


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
    if len(items) <= _MANY:
        return False
    kinds = set(map(type, items))
    if kinds <= _NUMBERS:
        return True
    if kinds != {str}:
        return False
    text = "\n".join(items)  # type: ignore[arg-type]  # see above
    if text.startswith("-") or "\n-" in text:
        return False
    return not _credentials(text.encode("utf-8", "surrogatepass"))


def _is_content(name: str, text: object) -> bool:
    if name not in _CONTENT_MEMBERS:
        return False
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
