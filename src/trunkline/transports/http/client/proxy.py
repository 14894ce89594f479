"""Proxies of HTTP clients: which one the environment names, and a tunnel through it.

The rules that live here, and only here:

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
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ....errors import TransportError
from ....redaction import redact

__all__ = ["ProxyAddress", "open_tunnel", "proxy_for"]

_MAX_RESPONSE_BYTES: Final = 16 * 1024


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


async def open_tunnel(proxy: ProxyAddress, host: str, port: int) -> socket.socket:
    """Return a socket that leads to a server through a proxy.

    Raises:
        TransportError: the proxy refused; the text has its status.
        OSError: it cannot be reached.
    """
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for family, kind, protocol, _, where in rows:
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, where)
            await _connect_through(sock, proxy, host, port)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:  # a cancelled task too: nothing may be left open
            sock.close()
            raise
        else:
            return sock
    raise failure or OSError("the proxy has no address")


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
