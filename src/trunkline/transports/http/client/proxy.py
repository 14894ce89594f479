"""How HTTP clients reach a server: at one of its addresses, or through a proxy.

The rules that live here, and only here:

* The addresses of a host are tried in parallel, 0.25 s apart, and its families in turn.
                                                                        [RFC 8305]
* HTTPS_PROXY is for `https` addresses, HTTP_PROXY for `http`; the lower-case names too, which win.
  In a CGI program HTTP_PROXY is a header of the client and is ignored.
* NO_PROXY lists hosts that are reached directly: names with their subdomains, addresses,
  networks, or `*`. Loopback hosts always are.
* Both kinds of address are reached by CONNECT, so that the proxy does not read the messages.
* Credentials in the URL of a proxy are sent to the proxy, and appear in no repr.
"""

from __future__ import annotations

import asyncio
import os
import socket
from base64 import b64encode
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ....errors import TransportError
from ....redaction import redact

__all__ = ["ProxyAddress", "dial", "failure_text", "open_tunnel", "parse_proxy", "proxy_for"]

_MAX_RESPONSE_BYTES: Final = 16 * 1024
HAPPY_EYEBALLS_DELAY_S: Final = 0.25


class ProxyAddress(NamedTuple):
    """Host, port and credentials of a proxy."""

    host: str
    port: int
    authorization: str | None = None

    def __repr__(self) -> str:
        return f"ProxyAddress({redact(self.host)!r}, {redact(str(self.port))})"


def proxy_for(
    scheme: str, host: str, environment: Mapping[str, str] = os.environ
) -> ProxyAddress | None:
    """Return the proxy for a host, or None to connect directly.

    Raises:
        TransportError: the variable does not name a proxy that can be used.
    """
    if _is_direct(host, environment):
        return None
    name = f"{scheme}_proxy"
    url = environment.get(name)
    if url is None and not (scheme == "http" and "REQUEST_METHOD" in environment):
        url = environment.get(name.upper())
    if not url:
        return None
    return parse_proxy(url, name.upper())


def parse_proxy(url: str, name: str) -> ProxyAddress:
    """Return the proxy that a URL names.

    Raises:
        TransportError: the URL cannot be used; the text names its variable, not the URL.
    """
    try:
        split = urlsplit(url if "://" in url else f"http://{url}")
        port = split.port or 8080
    except ValueError:
        split, port = urlsplit(""), 0
    if split.scheme != "http" or not split.hostname or not port:
        raise TransportError(f"{name} is not a proxy such as http://proxy.example.org:3128")
    authorization = None
    if split.username is not None:
        pair = f"{unquote(split.username)}:{unquote(split.password or '')}"
        authorization = f"Basic {b64encode(pair.encode()).decode()}"
    return ProxyAddress(split.hostname, port, authorization)


def _is_direct(host: str, environment: Mapping[str, str]) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    for each in (part.strip().lower() for part in given.split(",")):
        if each == "*" or (each and _covers(each, host.lower(), address)):
            return True
    return False


def _covers(rule: str, host: str, address: object) -> bool:
    if address is not None:
        try:
            return address in ip_network(rule, strict=False)
        except (ValueError, TypeError):
            return False
    name = rule.lstrip(".").partition(":")[0]
    return host == name or host.endswith(f".{name}")


async def dial(
    host: str, port: int, why_not: Callable[[str], str | None] | None = None
) -> socket.socket:
    """Return a connection to the first address of a host that accepts one.

    asyncio has the same, and leaves a socket open if it is cancelled at the wrong moment. With
    `why_not`, addresses for which it returns a reason are left out.

    Raises:
        OSError: the host has no address, or none accepts; the error is that of the last.
        PermissionError: all of its addresses are left out; the text is the reason.
        UnicodeError: the host is not a name.
    """
    loop = asyncio.get_running_loop()
    left = await _addresses(loop, host, port)
    if why_not is not None:
        reasons = [why_not(str(where[0])) for _, where in left]
        allowed = [each for each, why in zip(left, reasons, strict=True) if why is None]
        if left and not allowed:
            raise PermissionError(reasons[0])
        left = allowed
    tried: dict[asyncio.Task[None], socket.socket] = {}
    failure: OSError | None = None
    try:
        while left or tried:
            if left:
                family, where = left.pop(0)
                try:
                    sock = socket.socket(family, socket.SOCK_STREAM)
                except OSError as error:  # the system lacks this family
                    failure = error
                    continue
                sock.setblocking(False)
                tried[loop.create_task(loop.sock_connect(sock, where))] = sock
            delay = HAPPY_EYEBALLS_DELAY_S if left else None
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(tried, timeout=delay, return_when=first)
            for task in done:
                fault = task.exception()
                if fault is None:
                    return tried.pop(task)
                tried.pop(task).close()
                if not isinstance(fault, OSError):
                    raise fault
                failure = fault
    finally:
        await _give_up(tried)
    raise failure or OSError("the host has no address")


def failure_text(error: OSError | UnicodeError) -> str:
    """Return why a server is not reached, as the system words it: "Connection refused".

    The text of asyncio names its own calls.
    """
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    # The end of a connection during its TLS handshake has no text.
    return getattr(error, "strerror", None) or str(error) or "it closed the connection"


async def _give_up(tried: Mapping[asyncio.Task[None], socket.socket]) -> None:
    for task in tried:
        task.cancel()
    try:
        if tried:
            # The event loop watches the sockets until then.
            await asyncio.gather(*tried, return_exceptions=True)
    finally:
        for sock in tried.values():
            sock.close()


async def _addresses(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[int, tuple[object, ...]]]:
    """Return the families and addresses of a host, the families in turn."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return [(family, (host, port))]
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    others = [(row[0], row[4]) for row in rows if row[0] != rows[0][0]]
    found: list[tuple[int, tuple[object, ...]]] = []
    for row in rows:
        if row[0] == rows[0][0]:
            found += [(row[0], row[4]), *others[:1]]
            del others[:1]
    return found + others


async def open_tunnel(proxy: ProxyAddress, host: str, port: int) -> socket.socket:
    """Return a socket that leads to a server through a proxy.

    Raises:
        TransportError: the proxy refused; the text has its status.
        OSError: it cannot be reached.
    """
    sock = await dial(proxy.host, proxy.port)
    try:
        await _connect_through(sock, proxy, host, port)
    except BaseException:  # a cancelled task too: nothing may be left open
        sock.close()
        raise
    return sock


async def _connect_through(sock: socket.socket, proxy: ProxyAddress, host: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {name} HTTP/1.1", f"Host: {name}"]
    if proxy.authorization is not None:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        # One byte at a time at the end would be TLS of the server: a proxy sends nothing after
        # its head before the client has.
        data = await loop.sock_recv(sock, 4096)
        answer += data
        if not data or len(answer) > _MAX_RESPONSE_BYTES:
            raise TransportError(f"the proxy {proxy.host}:{proxy.port} did not answer CONNECT")
    status = b"".join(answer.split(None, 2)[1:2])  # a reason may be missing
    if len(status) != 3 or not status.isdigit():
        raise TransportError(f"the proxy {proxy.host}:{proxy.port} did not answer CONNECT")
    if not status.startswith(b"2"):
        shown = status.decode("ascii")
        raise TransportError(f"the proxy {proxy.host}:{proxy.port} answered CONNECT with {shown}")
