"""What a handler is told about the request it serves, and what it can say meanwhile.

One `Context` per request that runs a handler; it is made before the handler is called and
is good for nothing once the request has been answered: what is reported then is dropped.

`progress` and `log` may be called from any thread, with or without `await`. They send at
once; to await them waits, where the other side reads slowly, until there is room again.

The rules that live here, and only here:

* Progress is reported only to a request that brought a token, only while it is open, and
  only when it has grown.                        [MCP 2025-11-25, basic/utilities/progress]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from ..jsonrpc.messages import RequestId
from ..mcp.types import ClientCapabilities, Implementation, ProgressNotificationParams
from ..redaction import show

if TYPE_CHECKING:
    import asyncio

    from ..jsonrpc.inbox import Asked
    from ..mcp.meta import Caller
    from .app import Server
    from .connection import Connection
    from .surface import Surface

__all__ = ["ClientFacts", "Context"]


class ClientFacts:
    """Who is asking, as it says of itself: for display and logs, never to decide by."""

    __slots__ = ("capabilities", "info")

    def __init__(self, info: Implementation | None, capabilities: ClientCapabilities) -> None:
        self.info = info
        self.capabilities = capabilities

    @property
    def name(self) -> str:
        """The name the client gave, or "" if none."""
        return "" if self.info is None else self.info.name

    def __repr__(self) -> str:
        return f"ClientFacts(info={self.info!r}, capabilities={self.capabilities!r})"


class _Sent:
    """What `progress` and `log` return: done when awaited, unless there is no room."""

    __slots__ = ("_context",)

    def __init__(self, context: Context | None) -> None:
        self._context = context

    def __await__(self) -> Generator[Any, None, None]:
        if self._context is not None:
            yield from self._context._connection.jobs.room().__await__()


_DONE: Final = _Sent(None)
_NOTHING_YET: Final = float("-inf")


# A Struct, because one is made for each call and a Struct is made in C.
class Context(Struct, eq=False):
    """One request being served. Any handler gets it by annotating a parameter with this class."""

    _connection: Connection
    _asked: Asked
    _surface: Surface
    _caller: Caller | None
    # The server the handler was registered with: of a mounted one, that one.
    app: Server
    # The tool, resource, prompt or method that is served, by name.
    what: str
    # Whether nobody waits any more: the client gave up, time is over, or the server ends.
    # A handler on a thread has to look; others are cancelled.
    cancelled: bool = False
    # When the handler will be stopped, by the clock of the event loop; None is never.
    deadline: float | None = None
    _task: asyncio.Task[None] | None = None
    _reported: float = _NOTHING_YET

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        what, id = show(self.what), show(self.request_id)
        return f"<Context of {show(self.method)} {what}, id {id}{state}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own would show all that it holds

    # -- what was asked, and by whom ---------------------------------------------------------

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request."""
        return self._asked.id

    @property
    def method(self) -> str:
        """The method that was called."""
        return self._asked.method

    @property
    def revision(self) -> str:
        """The revision of MCP that the request is in."""
        return self._surface.revision

    @property
    def client(self) -> ClientFacts:
        """Who is asking: what the client says of itself and of what it can do."""
        caller, session = self._caller, self._connection.session
        if self._surface.has_handshake and session is not None:
            return ClientFacts(session.client, session.capabilities)
        if caller is None:
            return ClientFacts(None, ClientCapabilities())
        return ClientFacts(caller.client_info, caller.capabilities or ClientCapabilities())

    @property
    def meta(self) -> dict[str, Any]:
        """The `_meta` of the request, as it came; empty if there was none.

        A copy: what requests say alike is read once, and kept for the next of them.
        """
        return {} if self._caller is None else deepcopy(self._caller.meta)

    @property
    def headers(self) -> dict[str, Any]:
        """The headers that came with the request, where the transport or envelope has any."""
        found = getattr(self._asked.envelope, "headers", None)
        return found if isinstance(found, dict) else {}

    @property
    def principal(self) -> str | None:
        """Who the client was authenticated as; None where nobody asked."""
        return None

    @property
    def tenant(self) -> str | None:
        """Whose data the request is about; None where there are no tenants."""
        return None

    @property
    def state(self) -> Any:
        """What the lifespan of the server gave; None where there is no lifespan."""
        return self.app.state

    # -- saying something meanwhile ----------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> _Sent:
        """Report how far the work is, if the client asked to be told.

        `progress` grows from report to report; one that did not is left out.
        """
        caller = self._caller
        if caller is None or caller.progress_token is None:
            return _DONE
        params = ProgressNotificationParams(
            progress,
            caller.progress_token,
            total=UNSET if total is None else total,
            message=UNSET if message is None else message,
        )
        return self._say(self._send_progress, params)

    def log(self, level: str, data: Any, logger: str | None = None) -> _Sent:
        """Send the client a line of the server's log, from the level on that it asked for.

        Levels are those of RFC 5424, from "debug" to "emergency"; `data` is any JSON value.

        Raises:
            ValueError: there is no such level; the text lists those there are.
        """
        params = self._surface.log_params(self._connection, self._caller, level, data, logger)
        return _DONE if params is None else self._say(self._send_log, params)

    def _say(self, send: Callable[[Any], None], params: Any) -> _Sent:
        connection = self._connection
        if threading.get_ident() == connection.thread:
            send(params)
            return _Sent(self) if connection.is_slow else _DONE
        try:
            connection.loop.call_soon_threadsafe(send, params)
        except RuntimeError:
            pass  # the loop is closed: nobody listens any more
        return _DONE

    def _send_progress(self, params: ProgressNotificationParams) -> None:
        # Here, on the loop: several threads may report at once, and what goes out must grow.
        if params.progress > self._reported:
            self._reported = params.progress
            narrowed = self._surface.narrowed(params)
            self._connection.say(self._asked, "notifications/progress", narrowed)

    def _send_log(self, params: Any) -> None:
        self._connection.say(self._asked, "notifications/message", self._surface.narrowed(params))

    async def request(
        self, method: str, params: Any = None, *, timeout: float | None = None
    ) -> Any:
        """Ask the client something, as a request on the wire, and return its typed result.

        Only revisions with a handshake let a server do so: `sampling/createMessage`,
        `roots/list`, `elicitation/create` and `ping`, of which the client must have declared
        the capability.

        Raises:
            LocalProtocolError: the revision or the client does not allow it; nothing was sent.
            PeerError: the client answered with an error.
            RequestEnded: no answer will come: TimedOut, or ConnectionLost.
        """
        return await self._connection.ask(self._asked, self._surface, method, params, timeout)

    def close_stream(self, retry: float | None = None) -> bool:
        """Let the client come back for the answer, in `retry` seconds; say whether it will.

        Only a transport that gives each request a stream of its own can do so.
        """
        return False
