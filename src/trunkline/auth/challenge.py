"""Challenges and credentials in HTTP headers: WWW-Authenticate and Authorization.

The rules that live here, and only here:

* A header value holds any number of challenges, and a header may come more than once; names of
  schemes and parameters are case-insensitive.                 [RFC 9110, section 11]
* What a peer wrote is bounded, and a malformed rest is dropped: the challenges before it count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from ..redaction import show

__all__ = [
    "Challenge",
    "challenges_in",
    "format_challenge",
    "parse_challenges",
    "split_scopes",
]

# Of one header value, and challenges in all.
_MAX_CHARS: Final = 8 * 1024
_MAX_CHALLENGES: Final = 16

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_scheme: Final = re.compile(rf"[ \t,]*({_TOKEN})(?:[ \t]+|(?=,)|\Z)").match
_parameter: Final = re.compile(
    rf'[ \t,]*({_TOKEN})[ \t]*=[ \t]*(?:({_TOKEN})|"((?:[^"\\]|\\.)*)")[ \t]*(?=,|\Z)'
).match
_token68: Final = re.compile(r"([A-Za-z0-9._~+/-]+=*)[ \t]*(?=,|\Z)").match
_is_error: Final = re.compile(r"[a-z_]{1,64}").fullmatch
_is_scope: Final = re.compile(r"[!#-\[\]-~]+").fullmatch


class Challenge(Struct, frozen=True):
    """One challenge of a server: a scheme in lower case, and its parameters."""

    scheme: str
    parameters: Mapping[str, str] = {}

    @property
    def error(self) -> str | None:
        """The error, such as "invalid_token" or "insufficient_scope".

        Any other text is not an error code: it may be the token that the server was sent.
        """
        found = self.parameters.get("error")
        return found if found is not None and _is_error(found) else None

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that the server asks for."""
        return split_scopes(self.parameters.get("scope"))

    @property
    def resource_metadata(self) -> str | None:
        """The URL of the metadata of the protected resource.              [RFC 9728, 5.1]"""
        return self.parameters.get("resource_metadata")

    def __repr__(self) -> str:
        return f"Challenge({show(self.scheme)}, {show(dict(self.parameters))})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", show(self.scheme)), ("", show(dict(self.parameters)))]


def parse_challenges(values: Iterable[str]) -> list[Challenge]:
    """Return the challenges in the values of WWW-Authenticate headers."""
    found: list[Challenge] = []
    for value in values:
        text = value[:_MAX_CHARS]
        place = 0
        while len(found) < _MAX_CHALLENGES and (match := _scheme(text, place)) is not None:
            place = match.end()
            parameters: dict[str, str] = {}
            token = _token68(text, place)
            if token is not None and _parameter(text, place) is None:
                place = token.end()
            while (each := _parameter(text, place)) is not None:
                name, plain, quoted = each.groups()
                content = plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted)
                parameters.setdefault(name.lower(), content)
                place = each.end()
            found.append(Challenge(match[1].lower(), parameters))
    return found


def challenges_in(headers: Iterable[tuple[bytes, bytes]]) -> list[Challenge]:
    """Return the challenges in the headers of a response, whose names are in lower case."""
    return parse_challenges(
        value.decode("latin-1") for name, value in headers if name == b"www-authenticate"
    )


def format_challenge(scheme: str, parameters: Mapping[str, str]) -> bytes:
    """Return a challenge as the value of a WWW-Authenticate header."""
    texts = []
    for name, value in parameters.items():
        if not value.isascii() or not value.isprintable():
            raise ValueError(f"the parameter {name} of a challenge is not printable ASCII")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        texts.append(f'{name}="{escaped}"')
    return f"{scheme} {', '.join(texts)}".rstrip().encode("ascii")


def split_scopes(text: object) -> frozenset[str]:
    """Return the scopes in a text; what is not a scope is left out.     [RFC 6749, 3.3]"""
    if not isinstance(text, str):
        return frozenset()
    return frozenset(each for each in text.split(" ") if _is_scope(each))
