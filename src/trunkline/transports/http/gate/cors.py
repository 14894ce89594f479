"""CORS: which pages may read the answers of a listener, and what they may send.

A listener has one `Cors`, if its settings name origins; each protocol that it serves adds its
`CorsPolicy`.

The rules that live here, and only here:

* A response names the exact origin, never `*`, and allows no credentials: callers are authorized
  by header, and a cookie would be sent by any page.              [WHATWG Fetch, CORS protocol]
* Responses to other origins differ, which `Vary` tells caches.
* Headers whose names are not fixed are allowed by name, at most `MAX_ECHOED_HEADERS` of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ..authority import parse_origin
from ..response import Headers

if TYPE_CHECKING:
    from ..request import HttpRequest

__all__ = ["Cors", "CorsPolicy"]

# Names of headers in one preflight that are echoed: parameters of one tool.
MAX_ECHOED_HEADERS: Final = 64
# Seconds that a browser may keep the answer to a preflight. None keeps it for longer than 2 h.
PREFLIGHT_MAX_AGE_S: Final = 600

_VARY: Final[Headers] = ((b"vary", b"Origin"),)


class CorsPolicy(NamedTuple):
    """What a page may use of one protocol."""

    methods: tuple[bytes, ...]
    # Headers of requests.
    headers: tuple[bytes, ...]
    # Headers of responses that a page may read.
    exposed: tuple[bytes, ...]
    # Matches whole names of further request headers, in any case.
    echoed: re.Pattern[bytes] | None = None


class Cors:
    """The CORS headers of one listener; `origins` are those of pages that may read answers."""

    __slots__ = ("_policies", "_readers")

    def __init__(self, origins: Iterable[str]) -> None:
        self._policies: list[CorsPolicy] = []
        # The headers of a response, by origin.
        self._readers: dict[bytes, Headers] = {}
        for each in origins:
            origin = parse_origin(each)
            if origin is not None:  # always: the settings are checked
                self._readers[str(origin).encode()] = ()
        self._expose()

    def add(self, policy: CorsPolicy) -> None:
        """Allow what one more protocol uses."""
        self._policies.append(policy)
        self._expose()

    def _expose(self) -> None:
        exposed = _joined(each.exposed for each in self._policies)
        for origin in self._readers:
            self._readers[origin] = (
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", exposed),
                *_VARY,
            )

    def headers(self, request: HttpRequest) -> Headers:
        """Return the CORS headers of a response."""
        return self._readers.get(request.origin or b"", _VARY)

    def preflight(self, request: HttpRequest) -> tuple[int, Headers] | None:
        """Return the answer to a preflight from an allowed origin; None if it is not one."""
        origin = request.origin or b""
        if (
            request.method != "OPTIONS"
            or origin not in self._readers
            or request.header(b"access-control-request-method") is None
        ):
            return None
        allowed = _joined((*(each.headers for each in self._policies), self._echoed(request)))
        return 204, (
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", _joined(each.methods for each in self._policies)),
            (b"access-control-allow-headers", allowed),
            (b"access-control-max-age", b"%d" % PREFLIGHT_MAX_AGE_S),
            (b"vary", b"Origin, Access-Control-Request-Headers"),
        )

    def _echoed(self, request: HttpRequest) -> list[bytes]:
        """Return the headers that a preflight asks for and a pattern allows."""
        patterns = [each.echoed for each in self._policies if each.echoed is not None]
        asked = b",".join(request.all(b"access-control-request-headers")).split(b",")
        names = [each.strip() for each in asked]
        found = [name for name in names if any(each.fullmatch(name) for each in patterns)]
        return found[:MAX_ECHOED_HEADERS]


def _joined(lists: Iterable[Iterable[bytes]]) -> bytes:
    """Return several lists as one, each element once."""
    return b", ".join(dict.fromkeys(name for names in lists for name in names))
