"""Reads the requests of one HTTP connection: the callbacks of httptools, and what they decide.

A request that is read to its end, or refused, is submitted to the connection.

The rules that live here, and only here:

* A message whose length is ambiguous is refused, and its connection closed: two readers that
  disagree on where a message ends are a way around a proxy.        [RFC 9112, sections 5, 6.3]
* A request is admitted by its head, before its body is read. One that is refused there closes the
  connection if a body follows, or what the client takes for a tunnel. The credential of one whose
  body does not come with its head is checked before the body is read, and before 100 is sent.
* A target in absolute form counts as its Host header does.         [RFC 9112, section 3.2.2]
* A client that asks for another protocol has to wait for the response: data that follows its
  request is refused.                                               [RFC 9110, section 7.8]
* Empty lines before a request are none of it.                      [RFC 9112, section 2.2]
* A body takes about its size in memory, however small the parts are in which it arrives.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

import httptools

from ....accounts.account import ReceivedBytes
from ....jsonrpc.framing.framing import Oversize, Pieces, head_size
from ....spec.http_conditions import HTTP
from ..request import HttpRequest, read_headers
from ..response import LARGER_THAN_SHARE, TOO_MUCH_RECEIVED, Refusal
from .known_heads import KnownHeads

if TYPE_CHECKING:
    from .connection import HttpServerConnection
    from .http_server import HttpServer

__all__ = ["MAX_WAITING_BYTES", "Part", "RequestReader"]

_log: Final = logging.getLogger("trunkline.http")

# Bytes of bodies that are read while another request is served.
MAX_WAITING_BYTES: Final = 1024 * 1024
# The longest request target.
_MAX_TARGET_BYTES: Final = 8192

_FRAMING: Final = (b"content-length", b"transfer-encoding")


class Part(Enum):
    """The part of a request that is read."""

    NONE = auto()
    HEAD = auto()
    BODY = auto()


# Module constants: a member of an enum costs a lookup more.
_NONE: Final = Part.NONE
_HEAD: Final = Part.HEAD
_BODY: Final = Part.BODY


class RequestReader:
    """Reads one request after the other, perhaps while another one is served."""

    __slots__ = (
        "_body",
        "_bytes",
        "_connection",
        "_has_begun",
        "_has_upgrade",
        "_headers",
        "_is_checked",
        "_learnt",
        "_length",
        "_parser",
        "_pieces",
        "_received",
        "_refusal",
        "_request",
        "_server",
        "_target",
        "began",
        "body_bytes",
        "is_discarding",
        "is_stopped",
        "is_upgrade",
        "known",
        "part",
        "since",
    )

    def __init__(self, server: HttpServer, connection: HttpServerConnection) -> None:
        self._server = server
        self._connection = connection
        self._parser: Any = httptools.HttpRequestParser(self)
        self.part = _NONE
        # When the request began, 0 before the first one; since when its part is read, or the
        # connection is idle or closing.
        self.began = self.since = 0.0
        # Bytes since its start, its head or the last of its body.
        self._bytes = 0
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._request: HttpRequest | None = None
        self._refusal: Refusal | None = None
        self._length = 0
        # The body while it is one part, as most are; then its parts, perhaps millions of them.
        self._body: bytes | None = None
        self._pieces: Pieces | None = None
        self.body_bytes = 0
        # Of a body that did not come in one read; whether the credential of its head was checked.
        self._received: ReceivedBytes | None = None
        self._is_checked = False
        # Whether a request has begun in what is being parsed.
        self._has_begun = False
        # Whether it offered another protocol, so that llhttp does not read its body.
        self._has_upgrade = False
        # Whether it asks for a protocol that the connection may be handed to.
        self.is_upgrade = False
        # Heads that the client repeats; and the request that was read, if its head is learnt.
        self.known: KnownHeads | None = None
        self._learnt: HttpRequest | None = None
        # Whether nothing more is read, and whether that is because a request was refused.
        self.is_stopped = self.is_discarding = False

    @property
    def is_reading(self) -> bool:
        """Whether a part of a request was read."""
        return self.part is not _NONE

    @property
    def body_left(self) -> int:
        """The bytes that are left of a body of known length; 0 for what else is read."""
        return max(0, self._length - self.body_bytes) if self.part is _BODY else 0

    def discard(self) -> None:
        """Read nothing more: the rest of a request that was refused; nothing of it is kept."""
        self.is_stopped = self.is_discarding = True
        self._release()
        self._target, self._headers, self._body, self._pieces = b"", [], None, None

    def close(self) -> None:
        """Read nothing more, because the connection has ended."""
        self.is_stopped = True
        self._release()
        self._parser = None

    def feed(self, nbytes: int, learns: bool) -> None:
        """Parse what was read; with `learns`, the head of a request is remembered."""
        if self.part is not _NONE:
            self._bytes += nbytes
        self._has_begun = False
        data = self._server.buffer[:nbytes]
        whole = b""
        if learns and self.known is not None and self.known.learns:
            whole, self._learnt = bytes(data), None
        try:
            while True:
                try:
                    self._parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    data = data[upgrade.args[0] :]
                    if self.is_upgrade:
                        self._submit_upgrade(bool(data))
                        return
                    # Another protocol was offered. HTTP/1.1 goes on.
                    self._go_on()
        except httptools.HttpParserError as error:
            if not self.is_stopped:
                _log.debug("malformed HTTP request: %s", error)
                self._reject(Refusal(HTTP["malformed-request"], "Malformed HTTP request"))
            return
        if self.part is not _NONE:
            self._check_unfinished()
        if self.part is _BODY and not self.is_stopped:
            self._check_body()
        if self._learnt is not None:
            request, self._learnt = self._learnt, None
            if whole and self.known is not None and self.part is _NONE:
                self.known.learn(whole, request)

    def _check_unfinished(self) -> None:
        """Refuse a request whose head, or what is between parts of its body, is too large so far.

        An unfinished head has no more headers than a complete one: they take far more memory than
        bytes on the wire.
        """
        limits = self._server.limits
        if self._bytes > limits.header_bytes:
            self._reject(Refusal(HTTP["headers-too-large"], "The request head is too large"))
        elif self.part is _HEAD and len(self._headers) > limits.header_count:
            self._reject(Refusal(HTTP["headers-too-large"], "Too many request headers"))

    def _go_on(self) -> None:
        """Read on after the head of a request that offered another protocol.

        For llhttp the request has ended there, and what follows is of the other protocol.
        """
        if not self._has_upgrade:
            self._parser = httptools.HttpRequestParser(self)
            return
        self._has_upgrade = False
        lines = [
            b"POST / HTTP/1.1",
            *(b"%b: %b" % each for each in self._headers if each[0] in _FRAMING),
        ]
        if not self._parser.should_keep_alive():
            lines.append(b"connection: close")
        reader = _BodyReader(self)
        self._parser = httptools.HttpRequestParser(reader)
        self._parser.feed_data(b"\r\n".join([*lines, b"", b""]))
        reader.has_head = True

    def _submit_upgrade(self, has_more: bool) -> None:
        """Submit an Upgrade request; reading is paused until it is answered."""
        if self.is_stopped:
            return
        request = self._request or self._unusable_request()
        self._request, self.part = None, _NONE
        self.discard()
        self._connection.hold_reading()
        if has_more:
            text = "The client has to wait for the response to its Upgrade"
            refusal = Refusal(HTTP["upgrade-malformed"], text)
            self._connection.submit(request, refusal, keeps_alive=False)
        else:
            self._connection.submit(request, b"", keeps_alive=False)

    # -- the head ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self._has_begun and self._connection.is_lost:
            self.is_stopped = True  # the responses to those before it were not sent
        self._has_begun = True
        if self.is_stopped:
            return
        self.since = self.began = self._server.loop.time()
        self._server.idle.pop(self._connection, None)
        self.part = _HEAD
        self._bytes = 0
        self._target = b""
        self._headers = []
        self._request = self._body = self._pieces = self._refusal = self._learnt = None
        self.body_bytes = self._length = 0
        self._is_checked = False

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one that follows the body is dropped, because it was not checked."""
        if self.part is _HEAD:
            # Blanks around a value are not part of it; llhttp drops those before it.
            #                                                       [RFC 9110, section 5.5]
            self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Decide on the request by its head."""
        if self.is_stopped:
            return
        self.part = _BODY
        self._bytes = 0
        self.since = self._server.loop.time()
        refusal = self._read_head()
        request = self._request
        if refusal is None and request is not None:
            refusal = self._server.routes.admit(request)
        if refusal is not None:
            self._refuse(refusal)
            return
        if request is not None and request.header(b"expect") is not None:
            self._continue(request)
        if self._parser.should_upgrade():
            if _has_body(self._headers):
                self._has_upgrade = True
            elif request is not None and self._server.routes.is_upgrade(request):
                self.is_upgrade = True

    def _read_head(self) -> Refusal | None:
        """Make the request of its head, or refuse it."""
        headers = self._headers
        read = read_headers(headers, self._server.limits)
        if isinstance(read, Refusal):
            return read
        known, self._length = read
        target = self._target
        if len(target) > _MAX_TARGET_BYTES:
            return Refusal(HTTP["target-too-long"], "The request target is too long")
        version = self._parser.get_http_version()
        path, refusal = _path_of(target, known[0])
        refusal = refusal or self._framing_fault(version)
        if refusal is not None:
            return refusal
        raw, _, query = path.partition(b"?")
        self._request = HttpRequest(
            self._parser.get_method().decode("latin-1"),
            raw.decode("latin-1"),
            query.decode("latin-1"),
            version,
            headers,
            self._connection.peer,
            self._server.is_secure,
            *known,
        )
        return None

    def _framing_fault(self, version: str) -> Refusal | None:
        """Return why another reader might see another end of the request than llhttp does."""
        if version not in ("1.1", "1.0"):
            text = "The version of HTTP is not 1.1 or 1.0"
            return Refusal(HTTP["http-version-unsupported"], text)
        if self._length:
            return None  # llhttp refuses both a length and a coding
        for name, value in self._headers:
            if name == b"transfer-encoding":
                if version == "1.0":  # which has no codings   [RFC 9112, section 6.1]
                    return Refusal(HTTP["malformed-request"], "HTTP/1.0 has no Transfer-Encoding")
                if value.lower() != b"chunked":
                    text = "The Transfer-Encoding is not chunked"
                    return Refusal(HTTP["transfer-coding-unknown"], text)
        return None

    def _continue(self, request: HttpRequest) -> None:
        """Ask for the body, if the client waits for that.      [RFC 9110, section 10.1.1]"""
        if (request.header(b"expect") or b"").lower() != b"100-continue":
            self._refuse(Refusal(HTTP["expectation-unknown"], "Unknown expectation"))
            return
        self._is_checked = True
        refusal = self._server.routes.check_head(request)
        if refusal is not None:
            self._refuse(refusal)
        else:
            self._connection.send_continue()

    # -- refusals ----------------------------------------------------------------------------

    def _refuse(self, refusal: Refusal) -> None:
        """Answer a request by its head, in its turn."""
        self._refusal = refusal
        if _has_body(self._headers) or self._parser.get_method() == b"CONNECT":
            self.discard()
            self._connection.submit(self.current_request(), refusal, keeps_alive=False)

    def _reject(self, refusal: Refusal) -> None:
        """Answer what cannot be read, in its turn; nothing after it is read."""
        self.discard()
        self._headers = []
        self._connection.submit(self.current_request(), refusal, keeps_alive=False)

    def current_request(self) -> HttpRequest:
        """Return the request that is read, or what stands for one without a usable head."""
        if self.part is not _BODY:
            return HttpRequest("", "", "", "1.1", [], "", False)
        return self._request or self._unusable_request()

    def _unusable_request(self) -> HttpRequest:
        """Return what stands for a request whose head could not be used."""
        method = self._parser.get_method().decode("latin-1")
        return HttpRequest(method, "", "", "1.1", [], "", False)

    # -- the body ----------------------------------------------------------------------------

    def on_body(self, data: bytes) -> None:
        """Take a part of the body."""
        if self.is_stopped:
            return
        self._bytes = 0
        self.body_bytes += len(data)
        limit = self._server.message_size
        if limit is not None and max(self.body_bytes, self._length) > limit:
            self._refuse_size(data, limit)
        elif self._body is None:
            self._body = data
        elif self._pieces is None:
            self._pieces = Pieces(self._body)
            self._pieces.add(data)
        else:
            self._pieces.add(data)
            if self.body_bytes >= MAX_WAITING_BYTES:
                self._connection.pause_while_serving()

    def _refuse_size(self, data: bytes, limit: int) -> None:
        """Answer a body that is too large, when enough of it was read to find its id."""
        if self._pieces is None:
            self._pieces = Pieces(self._body or b"")
        self._pieces.add(data)
        wanted = min(head_size(limit), max(self._length, limit))
        if self.body_bytes < wanted:
            return
        head = self._pieces.take()[:wanted]
        size = self._length or None
        self.discard()
        request = self.current_request()
        self._connection.submit(request, Oversize(head, size, limit), keeps_alive=False)

    def _check_body(self) -> None:
        """Check the credential of a request whose body is not complete, and weigh the body."""
        if not self._is_checked:
            self._is_checked = True
            refusal = self._server.routes.check_head(self.current_request())
            if refusal is not None:
                self._reject(refusal)
                return
        if self.body_bytes:
            self._weigh()

    def _weigh(self) -> None:
        """Count the bytes of an unfinished body for the client, or refuse it."""
        received = self._received
        if received is None:
            connection, request = self._connection, self.current_request()
            account = self._server.routes.open_client_account(request, connection.account)
            received = self._received = ReceivedBytes(account)
        if received.weigh(self.body_bytes):
            return
        if self._length > received.account.most_received:
            self._reject(LARGER_THAN_SHARE)
        else:
            self._reject(TOO_MUCH_RECEIVED)

    def _release(self) -> None:
        """Count the bytes of a body no longer: it is complete, or will never be."""
        if self._received is not None:
            received, self._received = self._received, None
            received.close()

    def on_message_complete(self) -> None:
        """Submit the request, which was read to its end."""
        if self.is_stopped or self._has_upgrade or self.is_upgrade:
            return  # of an Upgrade request, what follows is reported next
        self.part = _NONE
        if self._received is not None:
            self._release()
        keeps_alive = self._parser.should_keep_alive()
        request = self._request or self._unusable_request()
        if self._refusal is not None:
            self._connection.submit(request, self._refusal, keeps_alive)
            return
        if keeps_alive:
            if self.known is None:
                self.known = KnownHeads()  # from the second request on
            elif self.known.learns:
                self._learnt = request
        body = b"" if self._body is None else self._body
        if self._pieces is not None:
            body = self._pieces.take()
        self._request = self._body = self._pieces = None
        self._connection.submit(request, body, keeps_alive)


class _BodyReader:
    """Callbacks of a parser for the body of a request whose head was read by another one.

    The head that the parser needs is not reported; the body and further requests are.
    """

    def __init__(self, reader: RequestReader) -> None:
        self.has_head = False
        self._reader = reader
        self.on_body = reader.on_body
        self.on_message_complete = reader.on_message_complete

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self.has_head:
            self._reader.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the target."""
        if self.has_head:
            self._reader.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        if self.has_head:
            self._reader.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Decide on the request by its head."""
        if self.has_head:
            self._reader.on_headers_complete()


def _has_body(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in headers
    )


def _path_of(target: bytes, host: bytes | None) -> tuple[bytes, Refusal | None]:
    """Return path and query of a target, which may be in absolute form."""
    if target[:1] == b"/":
        return target, None
    lowered = target[:8].lower()
    for scheme in (b"http://", b"https://"):
        if lowered.startswith(scheme):
            authority, slash, path = target[len(scheme) :].partition(b"/")
            if authority != host:
                return b"", Refusal(HTTP["target-invalid"], "The request target and Host differ")
            return slash + path if slash else b"/", None
    return b"", Refusal(HTTP["target-invalid"], "The request target is not a path")
