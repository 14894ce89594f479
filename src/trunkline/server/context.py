"""What a handler is told about the request it serves, and what it can say meanwhile.

One `Context` per request that runs a handler; it is made before the handler is called and
is good for nothing once the request has been answered: what is reported then is dropped.

`progress` and `log` may be called from any thread, with or without `await`. They send at
once; to await them waits, where the other side reads slowly, until there is room again.

What a handler asks meanwhile is put in `questions`, and goes wherever its era sends it.

The rules that live here, and only here:

* Progress is reported only to a request that brought a token, only while it is open, and
  only when it has grown.                        [MCP 2025-11-25, basic/utilities/progress]
* A handler that is run again reports nothing that the client has heard before.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from msgspec import UNSET, Struct

from ..jsonrpc.messages import RequestId
from ..mcp.types import ClientCapabilities, Implementation, ProgressNotificationParams
from ..migration_hints import ELICIT_OPTIONS, LOG_OPTIONS, with_hints
from ..redaction import show
from .extensions import declared

if TYPE_CHECKING:
    import asyncio

    from ..jsonrpc.incoming import IncomingRequest
    from ..mcp.meta import Caller
    from ..mcp.types import CreateMessageResult, Root
    from .app import Server
    from .client_requests.client_request import ClientRequest, ElicitationResult
    from .core import ServerCore
    from .dispatch.connection import Connection
    from .dispatch.handler_run import HandlerRun
    from .dispatch.revision import ServerRevision

__all__ = ["ClientFacts", "Context"]

T = TypeVar("T")


class ClientFacts:
    """Who is asking, as it says of itself: for display and logs, never to decide by."""

    __slots__ = ("_revision", "capabilities", "info")

    def __init__(
        self, info: Implementation | None, capabilities: ClientCapabilities, revision: str
    ) -> None:
        self.info = info
        self.capabilities = capabilities
        self._revision = revision

    @property
    def name(self) -> str:
        """The name the client gave, or "" if none."""
        return "" if self.info is None else self.info.name

    def supports(self, capability: str) -> bool:
        """Return True if the client declared a capability, such as "sampling.tools"."""
        from .client_requests.capabilities import declares  # here, as below: most servers never ask

        return declares(self.capabilities, capability, self._revision)

    def __repr__(self) -> str:
        return f"ClientFacts(info={self.info!r}, capabilities={self.capabilities!r})"


class _Sent:
    """What `progress` and `log` return: done when awaited, unless there is no room."""

    __slots__ = ("_context",)

    def __init__(self, context: Context | None) -> None:
        self._context = context

    def __await__(self) -> Generator[Any, None, None]:
        if self._context is not None:
            yield from self._context._connection.runner.room().__await__()


_DONE: Final = _Sent(None)
_NOTHING_YET: Final = float("-inf")


# A Struct, because one is made for each call and a Struct is made in C.
class Context(Struct, eq=False):
    """One request being served. Any handler gets it by annotating a parameter with this class."""

    _connection: Connection
    _asked: IncomingRequest
    _rev: ServerRevision
    _caller: Caller | None
    # Of the server the handler was registered with: of a mounted one, that one.
    _core: ServerCore
    # The tool, prompt or method that is served; of a resource its URI.
    name: str
    # Whether nobody waits any more: the client gave up, time is over, or the server ends.
    # A handler on a thread has to look; others are cancelled.
    cancelled: bool = False
    # When the handler will be stopped, by the clock of the event loop; None is never.
    deadline: float | None = None
    _task: asyncio.Task[None] | None = None
    _reported: float = _NOTHING_YET
    # How many times the handler has reported something.
    _said: int = 0
    _run: HandlerRun | None = None
    # What ends the handler when its time is over.
    _limit: asyncio.Timeout | None = None

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        name, id = show(self.name), show(self.request_id)
        return f"<Context of {show(self.method)} {name}, id {id}{state}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # a Struct's own would show all that it holds

    # -- what was asked, and by whom ---------------------------------------------------------

    @property
    def app(self) -> Server:
        """The server that the handler was registered with."""
        return self._core.app

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
        return self._rev.revision

    @property
    def client(self) -> ClientFacts:
        """Who is asking: what the client says of itself and of what it can do."""
        caller, session = self._caller, self._connection.session
        if self._rev.has_handshake and session is not None:
            return ClientFacts(session.client, session.capabilities, self.revision)
        if caller is None:
            return ClientFacts(None, ClientCapabilities(), self.revision)
        capabilities = caller.capabilities or ClientCapabilities()
        return ClientFacts(caller.client_info, capabilities, self.revision)

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
        return self._core.state

    def extension(self, id: str) -> dict[str, Any] | None:
        """The settings with which the client declared an extension; None where it did not."""
        return declared(self._caller, id)

    # -- asking the client -------------------------------------------------------------------

    @overload
    def elicit(
        self, message: str, form: type[T], *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[ElicitationResult[T]]: ...

    @overload
    def elicit(
        self, message: str, form: None, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[ElicitationResult[None]]: ...

    @overload
    def elicit(
        self,
        message: str,
        form: Mapping[str, Any],
        *,
        key: str | None = None,
        timeout: float | None = None,
    ) -> ClientRequest[ElicitationResult[dict[str, Any]]]: ...

    @overload
    def elicit(
        self, message: str, form: Any, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[ElicitationResult[Any]]: ...

    @with_hints(ELICIT_OPTIONS)
    def elicit(
        self, message: str, form: Any, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[ElicitationResult[Any]]:
        """Ask the user to fill in a form: `answer = await context.elicit("Which day?", Day)`.

        `form` is a flat Struct, dataclass or TypedDict, a plain type such as `str` or a
        `Literal`, None for a mere yes or no, or a JSON Schema. `answer.action` is "accept",
        "decline" or "cancel"; with the first `answer.content` is what was filled in.

        In 2026-07-28 code before an ask runs again; see `once`. A `key` names the question,
        and keeps naming it when others are put before it. `timeout` is in seconds, where the
        client answers while this waits.

        Raises:
            MissingCapability: the client cannot be asked this.
            InvalidClientResponse: what it answered does not fit the form.
            TypeError: no form can ask for such a type.
            ValueError: another question of this call has that key.
            PeerError: the client answered with an error.
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        from .client_requests import client_request

        return client_request.elicit(self, message, form, key, timeout)

    def elicit_url(
        self, message: str, url: str, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[ElicitationResult[None]]:
        """Ask the user to visit an address, for what must not pass through the client.

        "accept" says that the user agreed to go there, not that anything was done there.

        Raises:
            MissingCapability: the client does not open addresses.
        """
        from .client_requests import client_request

        return client_request.elicit_url(self, message, url, key, timeout)

    def sample(
        self,
        messages: Any,
        *,
        max_tokens: int,
        system: str | None = None,
        model_preferences: Any = None,
        temperature: float | None = None,
        stop_sequences: Iterable[str] | None = None,
        include_context: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tools: Iterable[Any] | None = None,
        tool_choice: str | None = None,
        key: str | None = None,
        timeout: float | None = None,
    ) -> ClientRequest[CreateMessageResult]:
        """Ask the client's model: `reply = await context.sample("Summarise …", max_tokens=200)`.

        `messages` is a text, a message, or several; `tools` need a client that declared
        `sampling.tools`.

        Raises:
            MissingCapability: the client does not sample, or not with tools.
            LocalProtocolError: the messages cannot be sent so.
        """
        options: dict[str, Any] = {
            "max_tokens": max_tokens,
            "system": system,
            "model_preferences": model_preferences,
            "temperature": temperature,
            "stop_sequences": stop_sequences,
            "include_context": include_context,
            "metadata": metadata,
            "tools": tools,
            "tool_choice": tool_choice,
        }
        from .client_requests import client_request

        return client_request.sample(self, messages, options, key, timeout)

    def roots(
        self, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[list[Root]]:
        """Ask which folders the client works in.

        Raises:
            MissingCapability: the client has no roots to tell.
        """
        from .client_requests import client_request

        return client_request.roots(self, key, timeout)

    @overload
    def once(
        self,
        key: str,
        work: Callable[[], Awaitable[Any] | Any],
        *,
        type: type[T],
        secret: bool = False,
    ) -> ClientRequest[T]: ...

    @overload
    def once(
        self,
        key: str,
        work: Callable[[], Awaitable[Any] | Any],
        *,
        type: Any = Any,
        secret: bool = False,
    ) -> ClientRequest[Any]: ...

    def once(
        self,
        key: str,
        work: Callable[[], Awaitable[Any] | Any],
        *,
        type: Any = Any,
        secret: bool = False,
    ) -> ClientRequest[Any]:
        """Do something that must not be done again when the handler is run again.

        What `work` returns is kept with the answers, as JSON, and read back as `type`: on the
        first run too, so that both runs see the same. It is done at least once: a client can
        present what it was given before. `secret` refuses to go on where the client could
        read what is kept.

        Raises:
            ValueError: `once` was called with that key before, in this call.
            RuntimeError: it is to be secret, and the `crypto` extra is not installed.
        """
        from .client_requests import client_request

        return client_request.once(self, key, work, type, secret)

    def become_task(self) -> ClientRequest[bool]:
        """Let the client go, and go on as a task; say whether this call is one now.

        Await it, or `wait` for it on a thread. Questions before this are asked in rounds, after
        it they are inputs of the task. Where the client or the tool cannot have tasks, or the
        server has no room for one more, the call goes on as it was.

        Raises:
            RequestError: there is no room, and the tool has to be a task.
        """
        from .client_requests.client_request import ClientRequest

        return ClientRequest(self, self._become)

    async def _become(self) -> bool:
        run = self._run
        if run is None or run.become is None:
            return False
        return await run.become()

    def _stop(self) -> None:
        """Stop the handler: nobody wants its outcome any more."""
        self.cancelled = True  # a handler on a thread has to look
        if self._task is not None:
            self._task.cancel()
        if self._run is not None:
            self._run.stop()

    # -- saying something meanwhile ----------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> _Sent:
        """Report how far the work is, if the client asked to be told.

        `progress` grows from report to report; one that did not is left out.
        """
        caller = self._caller
        if caller is None or caller.progress_token is None or self._was_heard():
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
        params = self._rev.log_params(self._connection, self._caller, level, data, logger)
        if params is None or self._was_heard():
            return _DONE
        return self._say(self._send_log, params)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> _Sent:
        """Report progress: the same as `progress`."""
        return self.progress(progress, total, message)

    @with_hints(LOG_OPTIONS)
    def debug(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log line of level "debug"; see `log`."""
        return self.log("debug", message, logger)

    @with_hints(LOG_OPTIONS)
    def info(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log line of level "info"; see `log`."""
        return self.log("info", message, logger)

    @with_hints(LOG_OPTIONS)
    def warning(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log line of level "warning"; see `log`."""
        return self.log("warning", message, logger)

    @with_hints(LOG_OPTIONS)
    def error(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log line of level "error"; see `log`."""
        return self.log("error", message, logger)

    def _was_heard(self) -> bool:
        """Say whether this report went out already, when the handler ran before; count it."""
        self._said += 1
        return self._run is not None and self._said <= self._run.heard

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
            self._send("notifications/progress", params)

    def _send_log(self, params: Any) -> None:
        self._send("notifications/message", params)

    def _send(self, method: str, params: Any) -> None:
        narrowed, run = self._rev.narrowed(params), self._run
        if run is not None and run.outlet is not None:
            run.outlet(method, narrowed)
        else:
            self._connection.notify_about(self._asked, method, narrowed)

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
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        from .client_requests import capabilities as client_capabilities

        client_capabilities.check(self._connection.session, self._rev, method, params)
        raw = await self._connection.ask(self._asked, self._rev, method, params, timeout)
        return client_capabilities.read(raw, self._rev, method)
