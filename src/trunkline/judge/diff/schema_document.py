"""A listed schema as a document: its draft, its references, and digests of opaque conditions.

An opaque condition is identified by a digest of its text, of everything it refers to, and of
the draft where the meaning depends on that: conditions with equal digests are equivalent. Other
documents are not fetched.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from msgspec.json import encode

from ...errors import NOTHING

__all__ = ["LATEST", "MAX_HOPS", "Opaque", "SchemaDocument", "key_of", "text_of", "type_of"]

# A keyword, and the digest of its value.
Opaque: TypeAlias = tuple[str, bytes]

# References and combinations that may be nested in one place.
MAX_HOPS: Final = 24
# A condition with more references is compared with its document as a whole.
_MAX_TARGETS: Final = 200

# The draft of a schema that names none; unknown drafts are 0.
LATEST: Final = 2020
_DRAFT: Final = re.compile(
    r"https?://json-schema\.org/(?:draft-0([467])|draft/(2019)-09|draft/(2020)-12)"
    r"/(?:hyper-)?schema#?\Z"
)
_SAME_AS_LATEST: Final = "https://spec.openapis.org/oas/3.1/dialect/base"

_REFERENCE: Final = re.compile(rb'"\$(?:ref|dynamicRef|recursiveRef)":("[^"]*"|.)')
_ABSOLUTE: Final = re.compile(rb'"(?:https?://|urn:)')
# An id inside a document: references may be relative to it, or lead to it.
_ADDRESS: Final = re.compile(rb'"(?:\$id":|id":"|\$schema":)')
# Keywords whose meaning depends on the draft.
_VARYING: Final = re.compile(
    rb'"(?:const|contains|minContains|maxContains|if|propertyNames|prefixItems|additionalItems'
    rb'|items":\[|dependencies|dependent\w+|unevaluated\w+|exclusiveM\w+|content\w+|integer'
    rb"|\$ref|\$dynamicRef|\$recursiveRef)"
)
# Members of a root that do not constrain values and cannot be referred to.
_FOR_PEOPLE: Final = frozenset(("title", "description", "$comment"))


class SchemaDocument:
    """A listed schema, with its references and cached digests."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.draft = _draft_of(root)
        # Up to draft 7, keywords beside a $ref are ignored.
        self.ignores_siblings = 0 < self.draft <= 7
        # Caches of `normalize` and `keywords`, by the identity of a schema, which this document
        # keeps alive.
        self.shapes: dict[int, Any] = {}
        self.listed: dict[int, frozenset[bytes]] = {}
        self._texts: dict[int, tuple[bytes, list[bytes]]] = {}
        self._schemas: dict[int, Opaque] = {}
        self._root: bytes | None = None
        self._has_addresses: bool | None = None

    def is_elsewhere(self, schema: dict[str, Any]) -> bool:
        """Return True if a schema has an id of its own, which its references are relative to."""
        if schema is self.root:
            return False
        return "$id" in schema or "$schema" in schema or isinstance(schema.get("id"), str)

    def target(self, reference: Any) -> Any:
        """Return the target of a reference, or `NOTHING` if it is not in this document."""
        if reference == "#":
            return self.root
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return NOTHING
        value = self.root
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value and not self.is_elsewhere(value):
                value = value[name]
            elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
                value = value[int(name)]
            else:
                return NOTHING
        return value

    def followed(self, schema: Any, conditions: frozenset[str]) -> Any:
        """Return the target of a schema whose only condition is a reference, or the schema."""
        for _ in range(MAX_HOPS):
            if not isinstance(schema, dict) or schema.keys() & conditions != {"$ref"}:
                break
            target = NOTHING if self.is_elsewhere(schema) else self.target(schema["$ref"])
            if target is NOTHING:
                break
            schema = target
        return schema

    def schema(self, schema: Any) -> Opaque:
        """Return a schema of this document as one opaque condition, cached."""
        if id(schema) not in self._schemas:
            said = self._without(*_FOR_PEOPLE) if schema is self.root else schema
            self._schemas[id(schema)] = self.opaque("schema", said)
        return self._schemas[id(schema)]

    def opaque(self, keyword: str, said: Any) -> Opaque:
        """Return an opaque condition with the digest of its value and all that it refers to."""
        text = text_of(said)
        digest = blake2b(text, digest_size=16)
        if _VARYING.search(text) or self.draft == 0:
            digest.update(b" draft %d" % self.draft)
        for each in self._behind(_references(text)):
            digest.update(each)
        return (keyword, digest.digest())

    def _behind(self, references: list[bytes]) -> list[bytes]:
        # Digests that change when the target of a reference does.
        found: dict[bytes, bytes] = {}
        waiting = list(references)
        while waiting:
            reference = waiting.pop()
            if reference in found:
                continue
            if len(found) == _MAX_TARGETS or self._may_be_anywhere():
                return [self._whole()]
            if _ABSOLUTE.match(reference):
                found[reference] = b""  # another document, since this one has no id
                continue
            target = self.target(_read(reference))
            if target is NOTHING or target is self.root:
                return [self._whole()]
            digest, further = self._text(target)
            found[reference] = digest
            waiting += further
        return [part for pair in sorted(found.items()) for part in pair]

    def _text(self, target: Any) -> tuple[bytes, list[bytes]]:
        # Numbers and strings may share an identity; then they are equal, which does no harm.
        if id(target) not in self._texts:
            text = text_of(target)
            self._texts[id(target)] = (_digest(text), _references(text))
        return self._texts[id(target)]

    def _may_be_anywhere(self) -> bool:
        # With ids in the document, a reference may lead anywhere.
        if self._has_addresses is None:
            self._has_addresses = _ADDRESS.search(text_of(self._without("$schema"))) is not None
        return self._has_addresses

    def _whole(self) -> bytes:
        if self._root is None:
            self._root = _digest(text_of(self._without(*_FOR_PEOPLE)))
        return self._root

    def _without(self, *names: str) -> Any:
        if not isinstance(self.root, dict):
            return self.root
        return {name: said for name, said in self.root.items() if name not in names}


def _draft_of(root: Any) -> int:
    if not isinstance(root, dict) or "$schema" not in root:
        return LATEST
    named = root["$schema"]
    if not isinstance(named, str):
        return 0
    if named == _SAME_AS_LATEST:
        return LATEST
    found = _DRAFT.match(named)
    return 0 if found is None else int(found[found.lastindex or 0])


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10


def _references(text: bytes) -> list[bytes]:
    return _REFERENCE.findall(text) if b'"$' in text else []


def _read(reference: bytes) -> Any:
    # A reference with escapes in it is not resolved.
    text = reference[1:-1].decode("utf-8", "replace")
    return text if reference.startswith(b'"') and "\\" not in text else NOTHING


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=16).digest()


# Values


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def key_of(value: Any) -> bytes:
    """Return a text that is equal for values that are equal as JSON: 1 and 1.0, not 1 and true."""
    return text_of(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def text_of(value: Any) -> bytes:
    """Return the canonical text of a JSON value, with sorted members."""
    try:
        return encode(value, order="sorted")
    except ValueError:
        return _spelled(value)


def _spelled(value: Any) -> bytes:
    # For values that cannot be encoded: lone surrogates, integers beyond the digit limit.
    if isinstance(value, dict):
        members = sorted((_spelled(name), _spelled(said)) for name, said in value.items())
        return b"{%s}" % b",".join(b"%s:%s" % member for member in members)
    if isinstance(value, list):
        return b"[%s]" % b",".join(map(_spelled, value))
    if isinstance(value, str):
        return ascii(value).encode()
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value).encode()
    return encode(value)
