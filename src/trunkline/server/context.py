"""The context of a request: what a handler knows of it, and what it can do meanwhile.

A `Context` is the public face of a `ServerRequest` (`dispatch/request.py`), which has its state;
each handler, guard and middleware of a request gets the same one. After the request was answered,
reports are dropped.

`progress` and `log` may be called from any thread, with or without `await`. They send at once;
awaiting them waits until a slow client has read enough.

Requests to the client are in `client_requests`.

The rules that live here, and only here:

* Progress is sent only for a request with a progress token, only while it is open, and only if
  it has grown.                                  [MCP 2025-11-25, basic/utilities/progress]
* A handler that is run again does not repeat reports that were sent before.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NewType, TypeAlias, TypeVar, overload

from msgspec import UNSET, Struct

from ..jsonrpc.messages import RequestId
from ..mcp.types import ClientCapabilities, Implementation, ProgressNotificationParams
from ..migration_hints import ELICIT_OPTIONS, LOG_OPTIONS, with_hints
from ..redaction import show

if TYPE_CHECKING:
    from ..auth.principal import Principal
    from ..mcp.types import CreateMessageResult, Root
    from .api.app import Server
    from .client_requests.client_request import ClientRequest, ElicitationResult
    from .dispatch.connection import Connection
    from .dispatch.middleware_params import MiddlewareParams
    from .dispatch.request import ServerRequest
else:
    # Loaded on first use; `help` and `inspect.signature` of a Struct need a name.
    ServerRequest = NewType("ServerRequest", object)

__all__ = ["ClientFacts", "Context", "Middleware", "request_of"]

T = TypeVar("T")
if TYPE_CHECKING:
    # A default needs Python 3.13. Type checkers know it in every version, so that `Context` alone
    # is `Context[Any]` to them.
    from typing_extensions import TypeVar as _TypeVarWithDefault

    State = _TypeVarWithDefault("State", default=Any)
else:
    State = TypeVar("State")


class ClientFacts:
    """What the client says of itself: for display and logs, never for access decisions."""

    __slots__ = ("_revision", "capabilities", "info")

    def __init__(
        self, info: Implementation | None, capabilities: ClientCapabilities, revision: str
    ) -> None:
        self.info = info
        self.capabilities = capabilities
        self._revision = revision

    @property
    def name(self) -> str:
        """The name of the client, or ""."""
        return "" if self.info is None else self.info.name

    def supports(self, capability: str) -> bool:
        """Return True if the client declared a capability, such as "sampling.tools"."""
        from .client_requests.capabilities import declares  # here, as below: few servers need it

        return declares(self.capabilities, capability, self._revision)

    def __repr__(self) -> str:
        return f"ClientFacts(info={self.info!r}, capabilities={self.capabilities!r})"


class _Sent:
    """What `progress` and `log` return; awaiting it waits for a slow client."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection

    def __await__(self) -> Generator[Any, None, None]:
        if self._connection is not None:
            yield from self._connection.runner.room().__await__()


_DONE: Final = _Sent(None)


# A Struct: one is made for each call that needs it, and a Struct is made in C.
class Context(Struct, Generic[State], eq=False):
    """The request being served. A handler gets it by a parameter annotated with this class.

    `Context[Database]` says what the lifespan yields, for type checkers: `ctx.state` is a Database.
    """

    _request: ServerRequest

    def __repr__(self) -> str:
        state = ", cancelled" if self.cancelled else ""
        name, id = show(self.name), show(self.request_id)
        return f"<Context of {show(self.method)} {name}, id {id}{state}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]  # that of a Struct shows everything

    # -- the request -------------------------------------------------------------------------

    @property
    def app(self) -> Server:
        """The server that the handler was registered with."""
        return self._request.owner.app

    @property
    def name(self) -> str:
        """The tool, prompt or method that is served; of a resource its URI."""
        return self._request.name

    @property
    def cancelled(self) -> bool:
        """Whether the request was cancelled, timed out, or the server stops.

        A handler on a thread has to check it; a coroutine is cancelled.
        """
        return self._request.cancelled

    @property
    def deadline(self) -> float | None:
        """When the handler times out, by the clock of the event loop; None is never."""
        limit = self._request.limit
        return None if limit is None else limit.when()

    @property
    def request_id(self) -> RequestId | None:
        """The id of the request."""
        return self._request.message.id

    @property
    def method(self) -> str:
        """The method that was called."""
        return self._request.message.method

    @property
    def revision(self) -> str:
        """The revision of MCP of the request."""
        return self._request.rev.revision

    @property
    def params(self) -> Any:
        """The typed params of the request, for middleware: a `CallToolRequestParams`, for example.

        Those of methods outside MCP are a dict. A middleware may set it to others before
        `proceed`.

        Raises:
            RequestError: the params are invalid; not caught, it is what the client gets.
            AttributeError: the server has no middleware.
        """
        return self._middleware_params().get()

    @params.setter
    def params(self, params: Any) -> None:
        self._middleware_params().set(params)

    def _middleware_params(self) -> MiddlewareParams:
        run = self._request.run
        if run is None or run.params is None:
            raise AttributeError("params is for middleware: a handler has its arguments")
        found: MiddlewareParams = run.params
        return found

    @property
    def client(self) -> ClientFacts:
        """The client: its name, version and capabilities, as it declares them."""
        request = self._request
        return ClientFacts(request.client_info, request.client_capabilities, self.revision)

    @property
    def meta(self) -> dict[str, Any]:
        """A copy of the `_meta` of the request; empty without one."""
        return {} if self._request.caller is None else deepcopy(self._request.caller.meta)

    @property
    def headers(self) -> dict[str, Any]:
        """The headers of the request, if the transport or envelope has headers."""
        found = getattr(self._request.message.envelope, "headers", None)
        if isinstance(found, dict):
            return found
        request = getattr(self._request.message.route, "request", None)
        return {} if request is None else request.readable_headers()

    @property
    def auth(self) -> str | None:
        """The credentials in the envelope of the request, as sent and unverified.

        Only a policy such as `Policy.pierre()` reads them. They are in no repr and no log line.
        """
        found = getattr(self._request.message.envelope, "auth", None)
        return found if isinstance(found, str) else None

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata in the envelope of the request; empty without such an envelope."""
        found = getattr(self._request.message.envelope, "metadata", None)
        return dict(found) if isinstance(found, dict) else {}

    def close_stream(self) -> bool:
        """Close the connection that waits for the answer; the client comes back for it later.

        For work that takes longer than proxies keep a connection open: the answer is kept, and
        the client asks for it after the retry delay. Only clients on HTTP whose revision has that,
        2025-11-25, can be sent away; otherwise this does nothing and returns False.
        """
        close = getattr(self._request.message.route, "close_stream", None)
        return close is not None and close()

    @property
    def principal(self) -> Principal | None:
        """The authenticated caller; None without authentication, and for an anonymous one."""
        return self._request.principal

    @property
    def tenant(self) -> str | None:
        """The tenant of the caller; None without tenants."""
        return self._request.tenant

    @property
    def state(self) -> State:
        """What the lifespan of the server yielded; None without a lifespan."""
        state: State = self._request.owner.runtime.state
        return state

    def extension(self, id: str) -> dict[str, Any] | None:
        """The settings that the client declared for an extension, or None.

        Up to 2025-11-25 it declares them in `initialize`, and in 2026-07-28 in each request.
        """
        from .registry.extensions import declared_by_client  # here: few handlers ask for it

        return deepcopy(declared_by_client(self._request, id))

    # -- requests to the client --------------------------------------------------------------

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
        `Literal`, None for yes or no, or a JSON Schema. `answer.action` is "accept", "decline" or
        "cancel"; after "accept" `answer.content` is the filled-in form.

        In 2026-07-28 code before a question runs again; see `once`. A `key` identifies the
        question also if others are asked before it later. `timeout` is in seconds, in revisions
        where the client answers while the handler waits.

        Raises:
            MissingCapability: the client did not declare elicitation.
            InvalidClientResponse: the answer does not fit the form.
            TypeError: the type cannot be a form.
            ValueError: another question of this call has that key.
            PeerError: the client answered with an error.
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        from .client_requests import client_request

        return client_request.elicit(self._request, message, form, key, timeout)

    def elicit_url(
        self,
        message: str,
        url: str,
        *,
        key: str | None = None,
        timeout: float | None = None,
        elicitation_id: str | None = None,
    ) -> ClientRequest[ElicitationResult[None]]:
        """Ask the user to visit a URL, for what must not pass through the client.

        "accept" means that the user agreed to go there, not that anything was done there.
        `elicitation_id` is for `elicitation_complete`; by default it is random.

        Raises:
            MissingCapability: the client did not declare URL elicitation.
        """
        from .client_requests import client_request

        return client_request.elicit_url(self._request, message, url, key, timeout, elicitation_id)

    def sample(
        self,
        messages: Any,
        *,
        max_tokens: int = 1024,
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
            MissingCapability: the client did not declare sampling, or not with tools.
            LocalProtocolError: the messages are not valid.
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

        return client_request.sample(self._request, messages, options, key, timeout)

    def roots(
        self, *, key: str | None = None, timeout: float | None = None
    ) -> ClientRequest[list[Root]]:
        """Ask which folders the client works in.

        Raises:
            MissingCapability: the client did not declare roots.
        """
        from .client_requests import client_request

        return client_request.roots(self._request, key, timeout)

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
        """Do something that must not be repeated when the handler is run again.

        The result of `work` is kept with the answers, as JSON, and decoded as `type`, also in the
        first run, so that all runs see the same. It is done at least once: a client can replay an
        earlier state. `secret` raises if the client could read what is kept.

        Raises:
            ValueError: `once` was called with that key before, in this call.
            RuntimeError: `secret` is set, and the `crypto` extra is not installed.
        """
        from .client_requests import client_request

        return client_request.once(self._request, key, work, type, secret)

    def become_task(self) -> ClientRequest[bool]:
        """Answer the client with a task, and go on as one; return True if this call is a task.

        Await it, or `wait` for it on a thread. Questions before this are asked in round trips,
        those after it are input requests of the task. If the client or the tool does not allow
        tasks, or the server has too many, the call goes on as it was.

        Raises:
            RequestError: the server has too many tasks, and the tool requires one.
        """
        from .client_requests.client_request import ClientRequest

        return ClientRequest(self._request, self._become)

    async def _become(self) -> bool:
        run = self._request.run
        if run is None or run.become is None:
            return False
        return await run.become()

    # -- progress and log --------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> _Sent:
        """Report progress, if the client sent a progress token.

        `progress` has to grow from report to report; a report that did not grow is not sent.
        In a task of 2026-07-28, which has no progress notifications, the status message shows the
        newest report, as in "step 3 (3 of 5)".
        """
        caller, run = self._request.caller, self._request.run
        reports = None if run is None else run.progress
        if reports is not None and reports.report(progress, total, message):
            return _DONE
        if caller is None or caller.progress_token is None or self._was_sent():
            return _DONE
        params = ProgressNotificationParams(
            progress,
            caller.progress_token,
            total=UNSET if total is None else total,
            message=UNSET if message is None else message,
        )
        return self._deliver(self._send_progress, params)

    def log(self, level: str, data: Any, logger: str | None = None) -> _Sent:
        """Send the client a log message, if its level is at least the one that it set.

        Levels are those of RFC 5424, from "debug" to "emergency"; `data` is any JSON value.

        Raises:
            ValueError: the level is unknown; the text lists the levels.
        """
        request = self._request
        params = request.rev.log_params(request.connection, request.caller, level, data, logger)
        if params is None or self._was_sent():
            return _DONE
        return self._deliver(self._send_log, params)

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> _Sent:
        """Report progress: the same as `progress`."""
        return self.progress(progress, total, message)

    @with_hints(LOG_OPTIONS)
    def debug(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log message of level "debug"; see `log`."""
        return self.log("debug", message, logger)

    @with_hints(LOG_OPTIONS)
    def info(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log message of level "info"; see `log`."""
        return self.log("info", message, logger)

    @with_hints(LOG_OPTIONS)
    def warning(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log message of level "warning"; see `log`."""
        return self.log("warning", message, logger)

    @with_hints(LOG_OPTIONS)
    def error(self, message: Any, logger: str | None = None) -> _Sent:
        """Send a log message of level "error"; see `log`."""
        return self.log("error", message, logger)

    def _was_sent(self) -> bool:
        """Count a report; return True if it was sent in an earlier run."""
        request = self._request
        request.reports += 1
        return request.run is not None and request.reports <= request.run.heard

    def _deliver(self, send: Callable[[Any], None], params: Any) -> _Sent:
        connection = self._request.connection
        if threading.get_ident() == connection.thread:
            send(params)
            return _Sent(connection) if connection.is_slow else _DONE
        try:
            connection.loop.call_soon_threadsafe(send, params)
        except RuntimeError:
            pass  # the event loop is closed
        return _DONE

    def _send_progress(self, params: ProgressNotificationParams) -> None:
        # On the event loop: several threads may report at once, and progress must grow.
        if params.progress > self._request.progress:
            self._request.progress = params.progress
            self._send("notifications/progress", params)

    def _send_log(self, params: Any) -> None:
        self._send("notifications/message", params)

    def _send(self, method: str, params: Any) -> None:
        request = self._request
        narrowed, run = request.rev.narrowed(params), request.run
        if run is not None and run.outlet is not None:
            run.outlet(method, narrowed)
        else:
            request.connection.notify_about(request.message, method, narrowed)

    def notify(self, method: str, params: Any = None) -> _Sent:
        """Send the client a notification of an extension, or of your own, about this request.

            await context.notify("notifications/stars/moved", {"star": "vega"})

        It is dropped once the request is answered. `params` is a dict or a Struct.

        Raises:
            ValueError: MCP has a notification or method of that name.
            TypeError: the params are not an object, or cannot be encoded.
        """
        # Imported here: few handlers send their own.
        from .client_requests.own_notification import checked

        members = checked(method, params)
        if self._was_sent():
            return _DONE
        return self._deliver(lambda members: self._send(method, members), members)

    def elicitation_complete(self, elicitation_id: str) -> _Sent:
        """Tell the client that its user is done at the page of `elicit_url`.

        `elicitation_id` is that given to `elicit_url`. Only 2025-11-25 has the notification, for
        clients that declared URL elicitation; otherwise nothing is sent. It may be called while
        the question is open, and after the request was answered.
        """
        from .client_requests.own_notification import elicitation_complete

        if not isinstance(elicitation_id, str) or not elicitation_id:
            raise ValueError("elicitation_id is the text that elicit_url was given")
        if self._was_sent() or not elicitation_complete.is_sent(self._request):
            return _DONE
        return self._deliver(partial(elicitation_complete.send, self._request), elicitation_id)

    async def request(
        self, method: str, params: Any = None, *, timeout: float | None = None
    ) -> Any:
        """Send the client a request, and return its typed result.

        Only in revisions with a handshake: `sampling/createMessage`, `roots/list`,
        `elicitation/create` and `ping`. The client must have declared the capability.

        Raises:
            LocalProtocolError: the revision or the client does not allow it; nothing was sent.
            PeerError: the client answered with an error.
            RequestAborted: no answer will come: RequestTimeout, or ConnectionLost.
        """
        from .client_requests import capabilities as client_capabilities

        request = self._request
        connection, rev = request.connection, request.rev
        client_capabilities.check(connection.session, rev, method, params)
        raw = await connection.ask(request.message, rev, method, params, timeout)
        return client_capabilities.read(raw, rev, method)


def request_of(context: Context) -> ServerRequest:
    """Return the request that a context is the face of."""
    return context._request


# A function around requests; see `methods/middleware_chain.py`.
Middleware: TypeAlias = Callable[[Context, Callable[[], Awaitable[Any]]], Awaitable[Any]]
