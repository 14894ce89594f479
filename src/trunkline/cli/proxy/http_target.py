"""The server of a proxy over HTTP: an `HttpTransport` that a relay can use like a stream.

    Relay(StdioServer(policy), HttpTarget(transport, say))

A stream keeps the order of messages and ends as a whole; over HTTP each message is a request of
its own, which can be overtaken and can fail.

The rules that live here, and only here:

* What follows `initialize` waits for its answer, and what follows `notifications/initialized` waits
  until the server has accepted that: a request must not overtake them.
* A request that fails over HTTP is answered with a JSON-RPC error that has the reason. A message
  that is not JSON cannot be sent, and is answered with a parse error.
* Headers that repeat arguments follow the tools that the client has listed.
                                        [MCP 2026-07-28, basic/transports/streamable-http]
* When the client has ended its input, open requests are still answered; subscriptions end.
* Line breaks between the members of a message become blanks: the other side may frame by lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder, encode

from ...errors import AuthorizationFailed, TransportError
from ...jsonrpc.messages import Shown
from ...mcp.param_headers import InvalidParamHeader, ParamPath, param_headers
from ...transports.base import HIGH_WATER, LOW_WATER, ignore
from ...transports.http.client.message import UNREADABLE, SentMessage, read_messages
from ...transports.http.client.stream import PlainRequest

if TYPE_CHECKING:
    from ...jsonrpc.framing.sse import Event
    from ...jsonrpc.limits import TransportName
    from ...transports.base import Frame
    from ...transports.http.client.transport import HttpTransport
    from .http_record import HttpRecorder

__all__ = ["HttpTarget", "error_frame", "one_line"]

INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
_INITIALIZE: Final = "initialize"
_INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"
_LISTEN: Final = "subscriptions/listen"
_LINE_BREAKS: Final = bytes.maketrans(b"\r\n", b"  ")
# How often a slow connection is checked for having taken what was sent.
_POLL_INTERVAL_S: Final = 0.05
# Tools that are remembered; a server decides how many it lists.
_MAX_TOOLS: Final = 10_000


class _Hints(Shown, Struct, frozen=True):
    idempotent: Any = field(default=None, name="idempotentHint")
    read_only: Any = field(default=None, name="readOnlyHint")


class _ListedTool(Shown, Struct, frozen=True):
    name: str
    schema: dict[str, Any] = field(name="inputSchema")
    annotations: _Hints | UnsetType = UNSET


class _ListedTools(Shown, Struct, frozen=True):
    tools: list[Raw] = []


_read_listing: Final = Decoder(_ListedTools).decode
_read_tool: Final = Decoder(_ListedTool).decode


def one_line(frame: bytes) -> bytes:
    """Return a message without line breaks, which JSON has between its members only."""
    return frame.translate(_LINE_BREAKS) if b"\n" in frame or b"\r" in frame else frame


def error_frame(id: Any, text: str, code: int = INTERNAL_ERROR) -> bytes:
    """Return the answer to a request that the proxy itself refuses."""
    error = {"code": code, "message": text}
    return encode({"jsonrpc": "2.0", "id": None if id is UNSET else id, "error": error})


class HttpTarget:
    """The server of one client; it implements the transport contract."""

    def __init__(self, inner: HttpTransport, say: Callable[[str], object]) -> None:
        self.name: TransportName = "http"
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        # Set before `connect` if requests and responses are recorded.
        self.recorder: HttpRecorder | None = None
        self._inner = inner
        self._say = say
        # Requests without an answer, by id, and their methods.
        self._open: dict[Any, str] = {}
        # What later messages wait for: the id of `initialize`, or the frame of `initialized`.
        self._gate: object = None
        self._waiting: list[bytes] = []
        self._is_finishing = False
        self._is_reported = False
        self._draining: asyncio.Task[None] | None = None
        self._params: dict[str, tuple[ParamPath, ...]] = {}
        self._repeatable: set[str] = set()

    # -- the transport contract --------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether frames can be sent."""
        return self._inner.is_connected

    @property
    def backlog(self) -> int:
        """The number of bytes sent and not written yet."""
        return self._inner.backlog + sum(map(len, self._waiting))

    @property
    def written(self) -> int:
        """The number of bytes that have left the backlog, in total."""
        return self._inner.written

    async def connect(self) -> None:
        """Open a first connection.

        Raises:
            TransportError: the server cannot be reached.
        """
        inner = self._inner
        inner.on_message = self._receive
        inner.on_error = self._end
        inner.is_waiting = self._open.__contains__
        inner.on_request_lost = self._lose
        inner.on_event = lambda kind, text: self._say(f"{kind}: {text}")
        inner.param_headers = lambda tool: self._params.get(tool, ())
        inner.is_idempotent = self._repeatable.__contains__
        inner.observer = self
        await inner.connect()

    def send(self, frame: bytes, route: Any = None) -> None:
        """Send one message, after those that it must not overtake."""
        if self._gate is not None:
            self._waiting.append(frame)
        else:
            self._send(frame)
        if self.backlog > HIGH_WATER and self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def finish(self) -> None:
        """End after the open requests were answered: nothing else will be sent."""
        self._is_finishing = True
        self._check_finished()

    async def close(self) -> None:
        """End the session, and close every connection."""
        if self._draining is not None:
            self._draining.cancel()
        await self._inner.close()
        self._end(None)

    # -- what the client sends ---------------------------------------------------------------

    def _send(self, frame: bytes) -> None:
        try:
            messages = read_messages(frame)
        except UNREADABLE:
            if self.recorder is not None:
                self.recorder.unsent(frame)
            self._answer(error_frame(UNSET, "Parse error: not a JSON-RPC message", PARSE_ERROR))
            return
        for each in messages:
            if each.method is UNSET:
                continue
            if type(each.id) in (int, str):
                self._open[each.id] = each.method
            elif each.method == _CANCELLED and each.params is not UNSET:
                # It is not answered, or not read any more.
                id = each.params.request_id
                self._open.pop(id if type(id) in (int, str) else None, None)
        first = messages[0] if messages else SentMessage()
        if first.method == _INITIALIZE:
            self._gate = (first.id,)
        elif first.method == _INITIALIZED:
            self._gate = frame
        self._inner.send(frame)
        self._check_finished()

    def _release(self) -> None:
        """Send what has waited, up to the next message that must not be overtaken."""
        self._gate = None
        while self._waiting and self._gate is None:
            self._send(self._waiting.pop(0))

    async def _drain(self) -> None:
        while self.backlog > LOW_WATER and self.is_connected:
            await asyncio.sleep(_POLL_INTERVAL_S)
        self._draining = None
        self.on_drained()

    # -- what the server sends ---------------------------------------------------------------

    def _receive(self, frame: Frame, route: Any) -> None:
        if not isinstance(frame, bytes):
            # The request that it belongs to is lost, and is answered so.
            self._say("a message of the server is over the limit of --max-size")
            return
        frame = one_line(frame)
        try:
            messages = read_messages(frame)
        except UNREADABLE:
            messages = []
        opens = False
        for each in messages:
            if each.method is UNSET:
                method = self._open.pop(each.id, None)
                opens = opens or self._gate == (each.id,)
                if method == "tools/list" and each.result is not UNSET:
                    self._learn(each.result)
        self._answer(frame)
        if opens:
            self._release()
        self._check_finished()

    def _learn(self, result: Raw) -> None:
        """Remember which arguments of tools headers repeat, and which tools may be called twice."""
        try:
            listed = _read_listing(result).tools
        except UNREADABLE:
            return
        for raw in listed:
            try:
                tool = _read_tool(raw)
                rows = param_headers(tool.schema)
            except (*UNREADABLE, DecodeError, InvalidParamHeader):
                continue  # the client finds that out
            if len(self._params) < _MAX_TOOLS:
                self._params[tool.name] = rows
            hints = tool.annotations
            is_repeatable = hints is not UNSET and (
                hints.idempotent is True or hints.read_only is True
            )
            if is_repeatable and len(self._repeatable) < _MAX_TOOLS:
                self._repeatable.add(tool.name)
            else:
                self._repeatable.discard(tool.name)

    def _lose(self, id: Any, error: Exception) -> None:
        if self._open.pop(id, None) is None:
            return  # it was cancelled
        reason = error.reason if isinstance(error, TransportError) else str(error)
        if isinstance(error, AuthorizationFailed):
            reason = _login_advice(error, str(self._inner.address)) or reason
        self._answer(error_frame(id, f"trunkline proxy: {reason}"))
        if self._gate == (id,):
            self._release()
        self._check_finished()

    def _answer(self, frame: bytes) -> None:
        if not self._is_reported:
            self.on_message(frame, None)

    # -- the end -----------------------------------------------------------------------------

    def _check_finished(self) -> None:
        is_idle = not self._waiting and self._gate is None
        if self._is_finishing and is_idle and set(self._open.values()) <= {_LISTEN}:
            self._end(None)

    def _end(self, error: TransportError | None) -> None:
        if not self._is_reported:
            self._is_reported = True
            self.on_error(error)

    # -- the observer of the transport -------------------------------------------------------

    def on_request(self, origin: object, request: bytes) -> None:
        """Record a request."""
        if self.recorder is not None:
            self.recorder.on_request(origin, request)

    def on_response(self, origin: object, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Record the head of a response."""
        if self.recorder is not None:
            self.recorder.on_response(origin, status, headers)

    def on_frame(self, origin: object, frame: Frame, event: Event | None) -> None:
        """Record a message of the server."""
        if self.recorder is not None:
            self.recorder.on_frame(origin, frame, event)

    def on_end(self, origin: object) -> None:
        """Record the end of a response, and go on after `notifications/initialized`."""
        if self.recorder is not None:
            self.recorder.on_end(origin)
        is_gate = getattr(origin, "frame", None) is self._gate or isinstance(origin, PlainRequest)
        if isinstance(self._gate, bytes) and is_gate:
            # Not at once: the transport is in the middle of its own work.
            asyncio.get_running_loop().call_soon(self._pass_initialized, self._gate)

    def _pass_initialized(self, frame: bytes) -> None:
        if self._gate is frame:
            self._release()
            self._check_finished()


def _login_advice(error: AuthorizationFailed, address: str) -> str | None:
    """Return how to log in, if that may help."""
    # Imported here: it is rare.
    from ..output.login_advice import is_about_login, login_advice

    if not is_about_login(error):
        return None
    return f"the server asks for a login: {login_advice(error, address)}"
