"""Admission of HTTP requests: Host, Origin, the client behind proxies, and rate.

Each listener has one `Admission`. It is compiled from the settings, does no I/O and reads no
clock. An ordinary request costs two lookups, of the bytes of Host and of Origin.

The rules that live here, and only here:

* A web page can give its own name the address of this server (DNS rebinding), and is then of the
  same origin. So Host has to be a name of this server, compared whole; otherwise the answer is
  421, and 400 without a Host.  [RFC 9110, sections 7.2 and 15.5.20; RFC 9112, section 3.2]
* On a loopback address or a Unix socket the names are `localhost`, `127.0.0.1`, `[::1]` and the
  address itself. An application inside another server does not know its address; it has these
  names too. On any other address there are none: without `hosts` or `public_url` the server does
  not start.  [MCP 2025-11-25, basic/transports, security warning]
* A port says nothing about rebinding, which is about names, and differs behind port forwarding
  and published ports of containers. So a name is allowed with every port, unless `hosts` gives
  it one. A Host without a port means the default port.  [RFC 9110, section 4.2]
* A request with an Origin that is not allowed gets 403; without one it comes from a program that
  is not a browser, and passes unless `require_origin` is set. Allowed are the origins of allowed
  hosts, `origins` and `cors`, never `null`.  [MCP 2025-11-25, basic/transports; MCP 2026-07-28,
  basic/transports/streamable-http]
* The host that a trusted proxy reports takes the place of Host.  [RFC 7239, section 5.3]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ....redaction import show
from ....spec.http_conditions import HTTP
from ..authority import DEFAULT_PORTS, Authority, Origin, parse_authority, parse_origin
from ..response import Refusal
from ..settings import HttpSettings

if TYPE_CHECKING:
    from ..request import HttpRequest
    from .forwarded import TrustedProxies
    from .rate_limit import RateLimiter

__all__ = ["Admission"]

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
# Accepted values of Host and of Origin that are remembered. A client can spell one name in many
# ways, by case and port; a server has few.
MAX_REMEMBERED: Final = 256

_NO_HOST: Final = Refusal(HTTP["host-missing"], "the request has no Host header")
_WRONG_HOST: Final = Refusal(
    HTTP["host-not-allowed"],
    "the Host header does not name this server; its operator allows names with "
    "HttpSettings(hosts=[...]) or --allowed-host",
)
_WRONG_ORIGIN: Final = Refusal(
    HTTP["origin-not-allowed"],
    "the Origin header is not allowed; the operator of this server allows origins with "
    "HttpSettings(origins=[...])",
)
_NO_ORIGIN: Final = Refusal(
    HTTP["origin-not-allowed"], "the request has no Origin header, and this server requires one"
)
_BAD_FORWARDED: Final = Refusal(
    HTTP["malformed-request"], "the Forwarded or X-Forwarded-Host header is malformed"
)


class Admission:
    """Which requests a listener admits.

    `bound` are the addresses that the server listens on, by the names they were given and as the
    system reports them; an application inside another server gives none.

    Raises:
        ValueError: an address is reachable from other machines, and no name is given that they
            use; the text names the options.
    """

    __slots__ = (
        "_default_ports",
        "_known_hosts",
        "_known_origins",
        "_names",
        "_origins",
        "_ports",
        "_proxies",
        "_rate",
        "_without_origin",
    )

    def __init__(
        self,
        settings: HttpSettings,
        bound: Sequence[tuple[str, int]],
        *,
        is_unix: bool = False,
        is_secure: bool = False,
    ) -> None:
        exposed = [] if is_unix else [host for host, _ in bound if not _is_loopback(host)]
        if exposed and not settings.hosts and settings.public_url is None:
            raise ValueError(
                f"{show(exposed[0])} can be reached from other machines: give the names that "
                "clients use for this server with HttpSettings(hosts=[...]) or --allowed-host, "
                "or its URL with HttpSettings(public_url=...)"
            )
        names = set() if exposed else {*LOOPBACK_NAMES, *_literals(host for host, _ in bound)}
        ports: dict[str, set[int]] = {}
        for host, port in _parsed_hosts(settings.hosts):
            if port is None:
                names.add(host)
            else:
                ports.setdefault(host, set()).add(port)
        if settings.public_url is not None:
            names.update(_host_of(settings.public_url))
        self._names: Final = frozenset(names)
        self._ports: Final = ports
        # A Host without a port: on a socket without TLS, a proxy may be the end of TLS.
        self._default_ports: Final = {443} if is_secure else {80, 443}
        self._origins: Final = frozenset(_parsed_origins((*settings.origins, *settings.cors)))
        self._without_origin: Final = _NO_ORIGIN if settings.require_origin else None
        self._known_hosts: Final[set[bytes]] = set()
        self._known_origins: Final[set[bytes]] = set()
        self._proxies: Final = _proxies(settings)
        self._rate: Final = _rate(settings)

    def check(self, request: HttpRequest) -> Refusal | None:
        """Return why a request is not admitted, or None if it is: by its Host and its Origin."""
        host = request.host
        if host is None:
            return _NO_HOST
        forwarding = None if self._proxies is None else self._proxies.read(request)
        if forwarding is not None and forwarding.is_malformed:
            return _BAD_FORWARDED
        if forwarding is not None and forwarding.hosts:
            if not all(map(self._is_host, forwarding.hosts)):
                return _WRONG_HOST
        elif host not in self._known_hosts:
            if not self._is_host(host.decode("latin-1")):
                return _WRONG_HOST
            _remember(self._known_hosts, host)
        origin = request.origin
        if origin is None:
            return self._without_origin
        if origin not in self._known_origins:
            if not self._is_origin(origin.decode("latin-1")):
                return _WRONG_ORIGIN
            _remember(self._known_origins, origin)
        return None

    def client_of(self, request: HttpRequest) -> str:
        """Return the address of the client, or its identifier, as trusted proxies report it."""
        forwarding = None if self._proxies is None else self._proxies.read(request)
        return request.client if forwarding is None else forwarding.client

    def is_from_proxy(self, request: HttpRequest) -> bool:
        """Return True if a request comes from a trusted proxy."""
        return self._proxies is not None and self._proxies.read(request) is not None

    def is_proxy(self, address: str) -> bool:
        """Return True if the peer of a connection is a trusted proxy."""
        return self._proxies is not None and self._proxies.trusts_peer(address)

    def scheme_of(self, request: HttpRequest) -> str:
        """Return the scheme that the client used: `http` or `https`."""
        forwarding = None if self._proxies is None else self._proxies.read(request)
        if forwarding is not None and forwarding.scheme is not None:
            return forwarding.scheme
        return "https" if request.is_secure else "http"

    def host_of(self, request: HttpRequest) -> str:
        """Return the host that the client used, as `check` has admitted it."""
        forwarding = None if self._proxies is None else self._proxies.read(request)
        if forwarding is not None and forwarding.hosts:
            return forwarding.hosts[0]
        return (request.host or b"").decode("latin-1")

    def wait(self, client: str, now: float) -> float | None:
        """Return the seconds until the next request of a client is admitted, or None if it is."""
        return None if self._rate is None else self._rate.wait(client, now)

    def _is_host(self, text: str) -> bool:
        authority = parse_authority(text)
        return authority is not None and self._allows(authority)

    def _is_origin(self, text: str) -> bool:
        origin = parse_origin(text)
        if origin is None:
            return False
        is_web = origin.scheme in DEFAULT_PORTS
        return origin in self._origins or (
            is_web and self._allows(Authority(origin.host, origin.port))
        )

    def _allows(self, authority: Authority) -> bool:
        host, port = authority
        if host in self._names:
            return True
        ports = self._ports.get(host, set())
        return port in ports if port is not None else not ports.isdisjoint(self._default_ports)


def _is_loopback(host: str) -> bool:
    # Imported here: an application inside another server has no address.
    from ipaddress import IPv6Address, ip_address

    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False  # a name may resolve to anything, and `0` to every address
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (address if mapped is None else mapped).is_loopback


def _literals(hosts: Iterable[str]) -> Iterator[str]:
    """Yield bound addresses as a Host header has them."""
    for host in hosts:
        authority = parse_authority(f"[{host}]" if ":" in host else host)
        if authority is not None:
            yield authority.host


def _parsed_hosts(hosts: Iterable[str]) -> Iterator[Authority]:
    for each in hosts:
        authority = parse_authority(each)
        if authority is not None:  # always: the settings are checked
            yield authority


def _parsed_origins(origins: Iterable[str]) -> Iterator[Origin]:
    for each in origins:
        origin = parse_origin(each)
        if origin is not None:  # always, as above
            yield origin


def _host_of(url: str) -> Iterator[str]:
    return (each.host for each in _parsed_origins(["/".join(url.split("/", 3)[:3])]))


def _proxies(settings: HttpSettings) -> TrustedProxies | None:
    if not settings.trusted_proxies:
        return None
    # Imported here: most servers trust no proxy.
    from .forwarded import TrustedProxies

    return TrustedProxies(settings.trusted_proxies)


def _rate(settings: HttpSettings) -> RateLimiter | None:
    if settings.rate is None:
        return None
    # Imported here, as above.
    from .rate_limit import RateLimiter

    return RateLimiter(settings.rate, settings.burst)


def _remember(known: set[bytes], value: bytes) -> None:
    if len(known) >= MAX_REMEMBERED:
        known.clear()
    known.add(value)
