"""The redirect of an authorization: a loopback listener, the browser, and what came back.

The rules that live here, and only here:

* The listener is on 127.0.0.1, or at the loopback address of the redirect URI that is given, at a
  port of the system's choice unless one is given, and ends
  with the first response that has the `state` of the request. Other paths are 404, other methods
  405, and responses with another state 400: they change nothing.      [RFC 8252, section 7.3]
* The page that it answers with is fixed: nothing of the request is in it, and it loads nothing.
* An authorization URL is `https`, or `http` to a loopback host. It is handed to the browser as one
  argument, never to a shell.                                          [SEC-27]
* A response counts if it is to the redirect URI and has each parameter once; `state` is compared
  in constant time. Then `iss` is compared with the issuer as texts: before the code is used, and
  before an error is shown.                   [RFC 9207; RFC 6749, 4.1.2; SEC-19, SEC-22]
* An authorization server that announces `iss` has to send it.         [RFC 9207, section 2.4]
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from hmac import compare_digest
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from ....errors import AuthorizationFailed, TransportError
from ....redaction import HIDDEN
from ....transports.http.client.fetch import check_url, is_loopback_host

__all__ = ["ExpectedResponse", "LoopbackListener", "check_authorization_url", "open_browser"]

CALLBACK_PATH: Final = "/callback"
_HOST: Final = "127.0.0.1"
# The head of a request; codes of large providers have 1 to 2 KiB.
_MAX_HEAD_BYTES: Final = 16 * 1024
# Beyond them the oldest is closed.
_MAX_CONNECTIONS: Final = 16
# For one request: the browser sends it at once.
_READ_TIMEOUT_S: Final = 5.0
_MAX_PARAMETERS: Final = 32
# The characters of a URL, and no quotes.                             [RFC 3986, section 2]
_is_browsable: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]+").fullmatch
_is_code: Final = re.compile(r"[ -~]{1,8192}").fullmatch
_is_error: Final = re.compile(r"[ !#-\[\]-~]{1,100}").fullmatch

_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title>"
    "<body><h1>{0}</h1><p>{1}</p></body></html>\n"
)
_PAGES: Final[dict[int, tuple[str, str, str]]] = {
    200: ("OK", "Login received", "You can close this window."),
    400: ("Bad Request", "Not the expected response", "Begin the login again."),
    404: ("Not Found", "Not found", "There is nothing here."),
    405: ("Method Not Allowed", "Not allowed", "There is nothing here."),
    431: ("Request Header Fields Too Large", "Too large", "There is nothing here."),
}


class ExpectedResponse(Struct, frozen=True, kw_only=True):
    """What the response to an authorization request must be."""

    redirect_uri: str
    state: str
    # The issuer of the authorization server that was asked.
    issuer: str
    # True if it announces that its responses name it.
    has_iss: bool = False

    def __repr__(self) -> str:
        return f"<ExpectedResponse {HIDDEN}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]

    def has_state(self, query: str) -> bool:
        """Return True if a query has the state of the request, once."""
        found = [value for name, value in _parameters(query) or [] if name == "state"]
        return len(found) == 1 and _is_equal(found[0], self.state)

    def code_of(self, url: str) -> str:
        """Return the code in a response.

        Raises:
            AuthorizationFailed: the response is not the expected one, or an error.
        """
        given, wanted = _split(url), _split(self.redirect_uri)
        if given is None or given[:3] != (wanted or ())[:3]:
            raise _failure("the response is not to the redirect URI of the client")
        pairs = _parameters(given[3])
        if pairs is None:
            raise _failure("the response cannot be read")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _failure("the response has a parameter twice")
        if not _is_equal(found.get("state", ""), self.state):
            raise _failure("the response is not to the request of the client: `state` differs")
        iss = found.get("iss")
        if iss is None and self.has_iss:
            raise _failure("the response does not name its authorization server: `iss` is missing")
        if iss is not None and iss != self.issuer:
            raise _failure("the response is from another authorization server: `iss` differs")
        if "error" in found:
            error = found["error"] if _is_error(found["error"]) else None
            raise _failure("the authorization server refused", error)
        code = found.get("code", "")
        if _is_code(code) is None:
            raise _failure("the response has no code")
        return code


class LoopbackListener:
    """Waits for the response of an authorization server at this machine."""

    def __init__(self, redirect_uri: str | None = None) -> None:
        """Listen at the host and port of a redirect URI, or at a port of the system's choice."""
        parts = None if redirect_uri is None else urlsplit(redirect_uri)
        self._host = _HOST if parts is None else _address_of(parts.hostname or "")
        self._port = 0 if parts is None else parts.port or 80
        self._path = CALLBACK_PATH if parts is None else parts.path or "/"
        self._given = redirect_uri
        self._server: asyncio.Server | None = None
        self._expected: ExpectedResponse | None = None
        self._found: asyncio.Future[str] | None = None
        # In the order of their connections.
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def __repr__(self) -> str:
        return f"<LoopbackListener at port {self._port}>"

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server redirects to."""
        return self._given or f"http://{_HOST}:{self._port}{self._path}"

    async def open(self) -> None:
        """Begin to listen.

        Raises:
            AuthorizationFailed: the port is taken.
        """
        self._found = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(
                self._accept, self._host, self._port, limit=_MAX_HEAD_BYTES
            )
        except OSError as error:
            reason = error.strerror or "it cannot be opened"
            raise _failure(f"{self._host}:{self._port} for the redirect: {reason}") from None
        self._port = self._server.sockets[0].getsockname()[1]

    async def wait(self, expected: ExpectedResponse) -> str:
        """Return the URL of the response."""
        if self._found is None:
            raise RuntimeError("the listener is not open")
        self._expected = expected
        return await self._found

    async def close(self) -> None:
        """End the listener. Connections that brought no request, as browsers open them, end too."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()  # what was written is still sent
        if tasks:
            await asyncio.wait(tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        try:
            if task is not None:
                while len(self._tasks) >= _MAX_CONNECTIONS:
                    # Silent connections do not keep the browser out.
                    oldest = next(iter(self._tasks))
                    del self._tasks[oldest]
                    oldest.cancel()
                self._tasks[task] = None
                task.add_done_callback(lambda done: self._tasks.pop(done, None))
                async with asyncio.timeout(_READ_TIMEOUT_S):
                    await self._serve(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a connection that brought no request, or the end of the listener
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            writer.write(_answer(431))
            await writer.drain()
            return
        status, url = self._judged(head.partition(b"\r\n")[0])
        writer.write(_answer(status))
        try:
            await writer.drain()
        finally:
            # A browser that does not wait for the page has still sent the response.
            if url is not None and self._found is not None and not self._found.done():
                self._found.set_result(url)

    def _judged(self, line: bytes) -> tuple[int, str | None]:
        """Return the status of the answer, and the URL of the response if it is the expected."""
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return 400, None
        path, _, query = words[1].partition("?")
        if path != self._path:
            return 404, None
        if words[0] != "GET":
            return 405, None
        if self._expected is None or not self._expected.has_state(query):
            return 400, None
        return 200, f"{self.redirect_uri}?{query}"


def _answer(status: int) -> bytes:
    reason, title, text = _PAGES[status]
    body = _PAGE.format(title, text).encode()
    lines = [
        f"HTTP/1.1 {status} {reason}",
        "content-type: text/html; charset=utf-8",
        f"content-length: {len(body)}",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


# -- the browser -------------------------------------------------------------------------------


def check_authorization_url(url: str) -> str:
    """Return a URL that may be opened in a browser.

    Raises:
        AuthorizationFailed: it may not; the text says why.
    """
    try:
        check_url(url)
    except TransportError as error:
        raise _failure(f"the authorization endpoint cannot be opened: {error.reason}") from None
    if _is_browsable(url) is None:
        raise _failure("the authorization endpoint has characters that no URL has")
    return url


async def open_browser(url: str, open_url: Callable[[str], object] | None = None) -> None:
    """Open a URL in the browser of the user, or with a function of the caller.

    Raises:
        AuthorizationFailed: there is no browser, or the function raised.
    """
    check_authorization_url(url)
    if open_url is None:
        # Imported here: a login is rare. It starts programs with the URL as one argument.
        import webbrowser

        open_url = webbrowser.open
    try:
        # In a thread: a browser of a terminal runs until it is closed.
        is_open = await asyncio.to_thread(open_url, url)
    except Exception as error:  # of a browser, or of the author
        raise _failure(f"the browser cannot be opened: {type(error).__name__}") from error
    if is_open is False:
        raise _failure("no browser can be opened here; on_authorize= shows the URL to the user")


# -- texts -------------------------------------------------------------------------------------


def is_redirect_uri(uri: object) -> bool:
    """Return True if responses may be sent to a URI: `https`, or this machine.  [SEC-21]"""
    try:
        parts = urlsplit(uri) if isinstance(uri, str) else None
        if parts is None or parts.fragment or parts.username is not None or not parts.hostname:
            return False
        is_local = parts.scheme == "http" and is_loopback_host(parts.hostname)
        return (parts.scheme == "https" or is_local) and (parts.port or 1) > 0
    except ValueError:
        return False


def _address_of(host: str) -> str:
    """Return where to listen for a loopback host: at its address, or at that of every name."""
    try:
        return str(ip_address(host))
    except ValueError:
        return _HOST


def _split(url: str) -> tuple[str, str, str, str] | None:
    """Return scheme, host with port, path and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.scheme, parts.netloc, parts.path, parts.query


def _parameters(query: str) -> list[tuple[str, str]] | None:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        return None


def _is_equal(one: str, other: str) -> bool:
    return compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _failure(reason: str, error: str | None = None) -> AuthorizationFailed:
    return AuthorizationFailed(reason, step="authorization request", error=error)
