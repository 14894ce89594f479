"""`Forwarded` and `X-Forwarded-…`: what trusted proxies report about a request.

The rules that live here, and only here:

* The headers count only on connections from a trusted proxy: any client can send them.
  [RFC 7239, section 8.1]
* Each proxy appends the address it received the request from. The list is read from the right,
  past trusted proxies: the first address that is not one is the client, and what is left of it
  was written by the client.  [RFC 7239, section 5.2]
* `host` and `proto` are those of the element that names the client. Each host in
  `X-Forwarded-Host`, which has no such order, has to be allowed.  [RFC 7239, sections 5.3, 5.4]
* A proxy sets `Forwarded` or `X-Forwarded-For`, and passes the other on as the client sent it.
  If both are there and name different clients, the client is the proxy itself: a client that
  sends the one the proxy does not set cannot choose its address, and shares a rate with others
  that do the same.
* An unknown or obfuscated identifier is a client of that name.  [RFC 7239, sections 6.2, 6.3]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final, NamedTuple

from ....redaction import redact
from ..settings import UNIX_PEER

if TYPE_CHECKING:
    from ..request import HttpRequest

__all__ = ["Forwarding", "TrustedProxies", "parse_forwarded", "parse_node"]

# Proxies in a row that are read; each costs some microseconds.
MAX_HOPS: Final = 16
# Characters of Forwarded in one request, beyond which it counts as malformed.
_MAX_FORWARDED: Final = 8192
# Reports that are remembered, and the bytes of each.
_MAX_REMEMBERED: Final = 1024
_MAX_REMEMBERED_BYTES: Final = 512

_FORWARDED: Final = b"forwarded"
_FOR: Final = b"x-forwarded-for"
_HOST: Final = b"x-forwarded-host"
_PROTO: Final = b"x-forwarded-proto"
_NAMES: Final = frozenset((_FORWARDED, _FOR, _HOST, _PROTO))

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A value with a colon or brackets has to be quoted, and often is not.
_PAIR: Final = re.compile(
    rf"[ \t]*(?:({_TOKEN})=(?:([][:!#$%&'*+.^_`|~0-9A-Za-z-]+)|"
    r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*)"))?[ \t]*([;,]|\Z)'
)
_ESCAPED: Final = re.compile(r"\\(.)")
_NODE: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9.]+|unknown|_[0-9A-Za-z._-]{1,63}))"
    r"(?::[0-9]{1,5}|:_[0-9A-Za-z._-]{1,63})?"
)


class Forwarding(NamedTuple):
    """What trusted proxies report about a request.

    `hosts` have to be allowed, each of them; without any, the Host header counts.
    """

    client: str
    hosts: tuple[str, ...] = ()
    scheme: str | None = None
    is_malformed: bool = False

    def __repr__(self) -> str:
        return f"Forwarding({redact(self._asdict())!r})"


class TrustedProxies:
    """The proxies whose reports are believed."""

    __slots__ = ("_networks", "_read", "_trusts_unix", "_verdicts")

    def __init__(self, proxies: Sequence[str]) -> None:
        self._trusts_unix = UNIX_PEER in proxies
        self._networks = [ip_network(each) for each in proxies if each != UNIX_PEER]
        self._verdicts: dict[str, bool] = {}
        self._read: dict[tuple[object, ...], Forwarding] = {}

    def trusts_peer(self, address: str) -> bool:
        """Return True if a peer is one of them; the address of one on a Unix socket is empty."""
        return self._trusts(address) if address else self._trusts_unix

    def read(self, request: HttpRequest) -> Forwarding | None:
        """Return what is reported about a request, or None if its peer is not trusted."""
        if not self.trusts_peer(request.client):
            return None
        found = [each for each in request.headers if each[0] in _NAMES]
        # Requests of one client through one proxy have the same headers.
        key = (request.client, *found)
        known = self._read.get(key)
        if known is None:
            known = self._forwarding(request.client, found)
            if sum(len(value) for _, value in found) <= _MAX_REMEMBERED_BYTES:
                if len(self._read) >= _MAX_REMEMBERED:
                    self._read.clear()
                self._read[key] = known
        return known

    def _forwarding(self, peer: str, headers: list[tuple[bytes, bytes]]) -> Forwarding:
        peer = parse_node(peer) or peer
        clients: list[str] = []
        hosts = _listed(headers, _HOST)
        schemes = [each.lower() for each in _listed(headers, _PROTO)]
        text = ",".join(_values(headers, _FORWARDED))
        elements = parse_forwarded(text) if len(text) <= _MAX_FORWARDED else None
        if elements is None or len(hosts) > MAX_HOPS:
            return Forwarding(peer, is_malformed=True)
        if elements:
            elements.reverse()
            client, hop = self._client((each.get("for", "") for each in elements), peer)
            clients.append(client)
            # The proxy at the edge reports the host and scheme that the client used; one behind
            # it those that the edge used.
            hosts += _farthest(elements[: hop + 1], "host")
            schemes += [each.lower() for each in _farthest(elements[: hop + 1], "proto")]
        nodes = _listed(headers, _FOR)
        if nodes:
            clients.append(self._client(reversed(nodes), peer)[0])
        client = clients[0] if clients and clients[0] == clients[-1] else peer
        scheme = None
        if schemes:
            scheme = "https" if all(each == "https" for each in schemes) else "http"
        return Forwarding(client, tuple(hosts), scheme)

    def _client(self, nodes: Iterable[str], peer: str) -> tuple[str, int]:
        """Return the first client that is not a trusted proxy, and how many came before it."""
        nearest, hop = peer, 0
        for hop, node in enumerate(nodes):
            address = parse_node(node)
            if address is None:
                break  # the last proxy is all that is known
            nearest = address
            if hop + 1 == MAX_HOPS or not self._trusts(address):
                break
        return nearest, hop

    def _trusts(self, address: str) -> bool:
        known = self._verdicts.get(address)
        if known is None:
            if len(self._verdicts) >= _MAX_REMEMBERED:
                self._verdicts.clear()
            known = self._verdicts[address] = self._is_in_network(address)
        return known

    def _is_in_network(self, address: str) -> bool:
        try:
            found = _plain(ip_address(address))
        except ValueError:
            return False  # an identifier
        return any(found in each for each in self._networks)


def parse_forwarded(text: str) -> list[dict[str, str]] | None:
    """Return the elements of a `Forwarded` header, or None if it is malformed."""
    elements: list[dict[str, str]] = [{}]
    position = 0
    while position < len(text):
        found = _PAIR.match(text, position)
        if found is None:
            return None
        name, token, quoted, end = found.groups()
        if name is not None:
            if name.lower() in elements[-1]:
                return None
            value = token if token is not None else _ESCAPED.sub(r"\1", quoted)
            elements[-1][name.lower()] = value
        if end == ",":
            elements.append({})
        position = found.end()
    return [each for each in elements if each]


def parse_node(text: str) -> str | None:
    """Return the address or identifier of a node without its port, or None if it is neither."""
    if ":" in text and "[" not in text and "%" not in text:
        try:
            return str(_plain(IPv6Address(text)))
        except ValueError:
            pass  # with a port
    found = _NODE.fullmatch(text)
    if found is None:
        return None
    if found["name"] is not None and not found["name"][0].isdigit():
        return found["name"]
    try:
        return str(_plain(ip_address(found["ipv6"] or found["name"])))
    except ValueError:
        return None


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return an IPv4 address in IPv6 form, as sockets of both families report it, as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for each, value in headers if each == name]


def _listed(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    texts = ",".join(_values(headers, name)).split(",")
    return [each.strip(" \t") for each in texts if each.strip(" \t")]


def _farthest(elements: list[dict[str, str]], name: str) -> list[str]:
    """Return the value of the last element that has one, in a list; an empty list without."""
    return [each[name] for each in elements if name in each][-1:]
