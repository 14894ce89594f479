"""Hosts, ports and origins, parsed and normalised so that they can be compared whole.

The rules that live here, and only here:

* A host is a name of letters, digits, `-`, `_` and single dots, or an IP address; IPv6 is in
  brackets. User information, percent-encodings, zone ids, whitespace, a trailing dot and
  characters beyond ASCII are refused, although some of them are legal: no client of MCP sends
  them, and each is a second spelling of a name.  [RFC 3986, section 3.2; RFC 9110, section 7.2]
* Hosts are compared without case.  [RFC 3986, section 3.2.2]
* An origin is a scheme, a host and a port, and nothing after them. The opaque origin `null` is
  not one: sandboxed frames of any page send it.  [RFC 6454, section 7]
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ...redaction import redact

__all__ = ["DEFAULT_PORTS", "Authority", "Origin", "parse_authority", "parse_origin"]

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_MAX_PORT: Final = 65_535
# A name of the DNS has at most 253 characters.  [RFC 1035, section 2.3.4]
_MAX_HOST: Final = 253
_LABEL: Final = "[a-z0-9_-]+"
_AUTHORITY: Final = re.compile(
    rf"(?P<name>{_LABEL}(?:\.{_LABEL})*|\[(?P<ipv6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{{1,5}}))?"
)
_SCHEME: Final = re.compile("[a-z][a-z0-9+.-]*")


class Authority(NamedTuple):
    """A host, in lower case and IPv6 in brackets, and the port if there is one."""

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Authority({redact([*self])!r})"


class Origin(NamedTuple):
    """A scheme, a host and a port; of `http` and `https` the port is always there."""

    scheme: str
    host: str
    port: int | None

    def __str__(self) -> str:
        """Return the origin as browsers send it: without the default port."""
        if self.port is None or self.port == DEFAULT_PORTS.get(self.scheme):
            return f"{self.scheme}://{self.host}"
        return f"{self.scheme}://{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Origin({redact([*self])!r})"


def parse_authority(text: str) -> Authority | None:
    """Return the parts of `HOST` or `HOST:PORT`, or None if the text is something else."""
    # Before `lower`, which makes an ASCII letter of the Kelvin sign.
    if not text.isascii() or len(text) > _MAX_HOST + 6:
        return None
    found = _AUTHORITY.fullmatch(text.lower())
    if found is None:
        return None
    host, ipv6, port = found["name"], found["ipv6"], found["port"]
    if port is not None and int(port) > _MAX_PORT:
        return None
    if ipv6 is not None:
        # Imported here: most hosts are names.
        from ipaddress import IPv6Address

        try:
            host = f"[{IPv6Address(ipv6).compressed}]"
        except ValueError:
            return None
    return Authority(host, None if port is None else int(port))


def parse_origin(text: str) -> Origin | None:
    """Return the parts of `SCHEME://HOST` or `SCHEME://HOST:PORT`, or None for other texts."""
    scheme, _, rest = text.partition("://")
    authority = parse_authority(rest)
    if authority is None or not text.isascii() or not _SCHEME.fullmatch(scheme.lower()):
        return None
    scheme, port = scheme.lower(), authority.port
    return Origin(scheme, authority.host, DEFAULT_PORTS.get(scheme) if port is None else port)
