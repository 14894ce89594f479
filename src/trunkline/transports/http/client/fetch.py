"""One request to a URL that a peer may have chosen: bounded, and only where it may lead.

    response = await fetch("https://login.example.org/.well-known/openid-configuration")

The rules that live here, and only here:

* A URL is `https`, or `http` to a loopback host, and has no user and no fragment.  [SEC-21, SEC-26]
* Unless `allow_private`, the address is one of the public internet: not private, loopback,
  link-local or reserved, and not such an IPv4 address inside an IPv6 one.
* The address that is checked is the one that is connected to: a name that leads elsewhere when it
  is looked up again has no effect. Where a proxy looks up names, addresses and names of this
  machine are checked as they are written; other names are up to the proxy.
* Plain `http` is connected to a loopback address alone, whatever a name such as `a.localhost`
  leads to.
* A redirect is followed within the origin, for GET alone; any other is an error.
* Body and time are bounded as a whole.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import inet_aton, inet_ntoa
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from ....errors import TransportError
from ....jsonrpc.framing.framing import Pieces
from ....redaction import show
from .connection import HttpClientConnection
from .proxy import dial, failure_text, open_tunnel, proxy_for

__all__ = [
    "FetchRefused",
    "FetchedResponse",
    "check_url",
    "fetch",
    "is_loopback_host",
    "is_private_host",
    "is_public_address",
]

MAX_BODY_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 15.0
_MAX_REDIRECTS: Final = 3
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_MAX_URL_CHARS: Final = 4096
_READ_BYTES: Final = 64 * 1024

# IPv4 addresses behind a translator.                                          [RFC 6052]
_NAT64: Final = ip_network("64:ff9b::/96")
# All that is assigned to the public internet; the rest are translators, and networks of a site.
#                                                             [RFC 4291; IANA registry]
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
# Special purposes that the standard library does not know in all versions.    [RFC 6890, 9637]
_SPECIAL: Final = (ip_network("192.0.0.0/24"), ip_network("3fff::/20"))

_NOT_PUBLIC: Final = "leads to an address that is not public"
_is_url_text: Final = re.compile(r"[!-~]+").fullmatch
# How an IPv4 address can be written.
_is_number: Final = re.compile(r"[0-9a-fx.]+").fullmatch


class FetchRefused(TransportError):
    """A URL that is not asked, because of the rules above."""


class FetchedResponse(Struct, frozen=True):
    """A response; its body and headers appear in no repr."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of a name, which is in lower case."""
        return next((value for each, value in self.headers if each == name), None)

    def all_headers(self, name: bytes) -> list[bytes]:
        """Return every header of a name, which is in lower case."""
        return [value for each, value in self.headers if each == name]

    def __repr__(self) -> str:
        return f"<FetchedResponse {self.status}, {len(self.body)} bytes>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


def is_loopback_host(host: str) -> bool:
    """Return True if a host is this machine by its name or address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return _plain(ip_address(host)).is_loopback
    except ValueError:
        return False


def check_url(url: str) -> SplitResult:
    """Return the parts of a URL that may be asked, as far as its text tells.

    Raises:
        FetchRefused: it may not; the text says why.
    """
    if len(url) > _MAX_URL_CHARS or _is_url_text(url) is None or "\\" in url:
        raise FetchRefused("a URL is too long, or has characters that do not belong there")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise FetchRefused("a URL cannot be read") from None
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise FetchRefused("a URL has a user or a fragment")
    if not host or parts.scheme not in ("https", "http"):
        raise FetchRefused(f"a URL of the scheme {show(parts.scheme)} is not asked")
    if parts.scheme == "http" and not is_loopback_host(host):
        raise FetchRefused(f"http://{host} is not encrypted, and not this machine")
    return parts


async def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    allow_private: bool = False,
    context: ssl.SSLContext | None = None,
    max_bytes: int = MAX_BODY_BYTES,
    timeout: float = TIMEOUT_S,
) -> FetchedResponse:
    """Send a request, and return the response whatever its status.

    `context` has the authorities to trust in place of those of the system.

    Raises:
        FetchRefused: the rules above forbid it, or the response is too large.
        TransportError: the server cannot be reached, or did not answer in time.
    """
    parts = check_url(url)
    try:
        async with asyncio.timeout(timeout):
            for _ in range(_MAX_REDIRECTS + 1):
                found = await _ask(
                    parts, method, headers or {}, body, allow_private, context, max_bytes
                )
                location = found.header(b"location")
                if found.status not in _REDIRECTS or location is None or method != "GET":
                    return found
                parts = _redirected(parts, location)
    except TimeoutError:
        raise TransportError(f"{_shown(parts)} did not answer within {timeout:g} s") from None
    raise FetchRefused(f"{_shown(parts)} redirects too often")


def _redirected(parts: SplitResult, location: bytes) -> SplitResult:
    target = check_url(urljoin(parts.geturl(), location.decode("latin-1")))
    if _origin(target) != _origin(parts):
        raise FetchRefused(f"{_shown(parts)} redirects to another origin")
    return target


async def _ask(
    parts: SplitResult,
    method: str,
    headers: Mapping[str, str],
    body: bytes | None,
    allow_private: bool,
    context: ssl.SSLContext | None,
    max_bytes: int,
) -> FetchedResponse:
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    tls = None
    if parts.scheme == "https":
        tls = context or ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    loop = asyncio.get_running_loop()
    handler = _Handler(loop.create_future(), max_bytes)
    buffer = memoryview(bytearray(_READ_BYTES))
    try:
        # Plain http is for this machine, which no proxy reaches.
        proxy = None if tls is None else proxy_for(parts.scheme, host)
        if proxy is not None:
            if not allow_private and is_private_host(host):
                raise PermissionError(_NOT_PUBLIC)
            sock = await open_tunnel(proxy, host, port)
        else:
            why_not = _why_not_here if tls is None else None
            sock = await dial(host, port, why_not if allow_private else _why_not_public)
        _, connection = await loop.create_connection(
            lambda: HttpClientConnection(buffer, _ignore, _ignore),
            sock=sock,
            ssl=tls,
            server_hostname=host if tls is not None else None,
        )
    except TransportError as error:
        raise TransportError(f"{_shown(parts)} cannot be reached: {error.reason}") from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or "TLS failed"
        raise TransportError(f"{_shown(parts)} cannot be trusted: {reason}") from None
    except PermissionError as error:
        raise FetchRefused(f"{_shown(parts)} {error}") from None
    except (OSError, UnicodeError) as error:
        reason = failure_text(error)
        raise TransportError(f"{_shown(parts)} cannot be reached: {reason}") from None
    try:
        connection.send(_encode(parts, method, headers, body), handler)
        return await handler.done
    except TransportError as error:
        raise type(error)(f"{_shown(parts)} {error.reason}") from None
    finally:
        connection.forget()


def _encode(
    parts: SplitResult, method: str, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    lines = [f"{method} {path} HTTP/1.1", f"host: {parts.netloc}", "accept-encoding: identity"]
    lines.append("connection: close")
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise FetchRefused(f"the value of the header {name} cannot be sent")
        lines.append(f"{name}: {value}")
    if body is not None or method == "POST":
        lines.append(f"content-length: {len(body or b'')}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


class _Handler:
    """Collects one response."""

    def __init__(self, done: asyncio.Future[FetchedResponse], max_bytes: int) -> None:
        self.done = done
        self._left = max_bytes
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._body = Pieces()

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._status, self._headers = status, headers

    def on_data(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left >= 0:
            self._body.add(data)
        elif not self.done.done():
            self._body.clear()
            self.done.set_exception(FetchRefused("sent a response that is too large"))

    def on_complete(self) -> None:
        if not self.done.done():
            found = FetchedResponse(self._status, self._headers, self._body.take())
            self.done.set_result(found)

    def on_lost(self, error: Exception | None, *, was_reused: bool, has_begun: bool) -> None:
        if not self.done.done():
            self.done.set_exception(TransportError("closed the connection before its answer"))


def _ignore(_: object) -> None:
    pass


def is_public_address(address: str) -> bool:
    """Return True if an IP address is one of the public internet.

    Raises:
        ValueError: it is not an IP address.
    """
    found = _plain(ip_address(address.partition("%")[0]))
    if isinstance(found, IPv6Address) and found not in _GLOBAL_UNICAST:
        return False
    is_special = any(found in each for each in _SPECIAL)
    return found.is_global and not found.is_multicast and not is_special


def is_private_host(host: str) -> bool:
    """Return True if a host is written as an address that is not public, or as this machine.

    Resolvers read other spellings of IPv4 addresses too, such as 127.1 and 0x7f000001.
    """
    host = host.rstrip(".").lower()
    if is_loopback_host(host):
        return True
    try:
        return not is_public_address(host)
    except ValueError:
        pass
    try:
        return bool(_is_number(host)) and not is_public_address(inet_ntoa(inet_aton(host)))
    except OSError:
        return False


def _why_not_public(address: str) -> str | None:
    """Return why an IP address may not be connected to, or None."""
    return None if is_public_address(address) else _NOT_PUBLIC


def _why_not_here(address: str) -> str | None:
    """Return why an IP address may not be connected to without encryption, or None."""
    is_here = _plain(ip_address(address.partition("%")[0])).is_loopback
    return None if is_here else "leads to another machine, and is not encrypted"


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address inside an IPv6 one, or the address itself."""
    if isinstance(address, IPv6Address):
        teredo = address.teredo
        found = address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
        if found is None and address in _NAT64:
            found = IPv4Address(int(address) & 0xFFFFFFFF)
        return found or address
    return address


def _origin(parts: SplitResult) -> tuple[str, str | None, int]:
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, parts.port or default


def _shown(parts: SplitResult) -> str:
    """Return a URL for an error: without its query, which may hold a secret."""
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
