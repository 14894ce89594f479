"""Runs the client's handlers for server requests: roots, sampling and elicitation.

The same handlers serve requests of the handshake revisions (`incoming`) and input requests inside
results (`input_required`).

The rules that live here, and only here:

* A request that the client did not declare is rejected: a mode of elicitation, or tools for
  sampling.      [MCP 2025-11-25, client/elicitation, client/sampling]
* An elicitation without a mode is a form.        [MCP 2025-11-25, client/elicitation]
* A message with tool results contains nothing else, and has one result for each tool use in the
  message before it.                              [MCP 2025-11-25, client/sampling]
* An answer that does not match its form is not sent; omitted fields get their defaults. An
  accepted URL elicitation has no content.
* Only the handler shows a URL to the user; the client never opens it.
                                                  [MCP 2026-07-28, client/elicitation]
* The URL is http or https and has a host. Any other could run a script or show a file, so no
  handler is called for it.
* A sampled text is a message of the assistant, and its model the name of the client.
* A root is a `file://` URI; any other is not sent.              [MCP 2025-11-25, client/roots]
* A synchronous handler may wait for a user, so it runs on a thread.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType

from ...errors import RemoteProtocolError
from ...jsonrpc.codec.decoders import UNREADABLE
from ...mcp.shaping import narrow
from ...mcp.tables import params_type
from ...mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from ...redaction import show
from ...spec import lookup
from ..session.decode import decode_again, decoder, where_and_what
from ..session.diagnostics import current_task, wait_cancelled

if TYPE_CHECKING:
    from ...concurrency.thread_pool import ThreadPool

__all__ = [
    "MAX_HANDLERS",
    "ClientHandlers",
    "HandlerFunctions",
    "OnElicit",
    "OnElicitUrl",
    "OnSample",
    "Roots",
    "as_root",
    "fixed_roots",
]

T = TypeVar("T")

Action: TypeAlias = Literal["accept", "decline", "cancel"]
RootsGiven: TypeAlias = Iterable[Root | str]
Roots: TypeAlias = RootsGiven | Callable[[], RootsGiven | Awaitable[RootsGiven]]
Sampled: TypeAlias = CreateMessageResult | str
OnSample: TypeAlias = Callable[[CreateMessageRequestParams], Sampled | Awaitable[Sampled]]
Elicited: TypeAlias = ElicitResult | dict[str, Any] | Action | None
OnElicit: TypeAlias = Callable[[ElicitRequestParams], Elicited | Awaitable[Elicited]]
Visited: TypeAlias = ElicitResult | bool | Action | None
OnElicitUrl: TypeAlias = Callable[[ElicitRequestParams], Visited | Awaitable[Visited]]

# The server decides how many requests are in flight; beyond this many they are rejected.
MAX_HANDLERS: Final = 100


class HandlerFunctions(NamedTuple):
    """The handlers of a client."""

    roots: Roots | None = None
    on_sample: OnSample | None = None
    on_elicit: OnElicit | None = None
    on_elicit_url: OnElicitUrl | None = None
    # Whether `on_sample` supports the tools of a sampling request.
    sampling_tools: bool = False
    # The model of a sampled text without one: the name of the client.
    model: str = ""


class ClientHandlers:
    """Decodes and handles the requests of one server, and tracks those in progress."""

    __slots__ = ("_handlers", "_running", "_threads")

    def __init__(self, handlers: HandlerFunctions, threads: Callable[[], ThreadPool]) -> None:
        self._handlers = handlers
        # Created on demand, and shared by all sessions of a client.
        self._threads = threads
        self._running: set[asyncio.Task[Any]] = set()

    def answers(self, method: str) -> bool:
        """Return True if there is a handler for a method."""
        given = self._handlers
        if method == "elicitation/create":
            return given.on_elicit is not None or given.on_elicit_url is not None
        by = {"roots/list": given.roots, "sampling/createMessage": given.on_sample}
        return by.get(method) is not None

    def read(self, method: str, raw: Raw | UnsetType, revision: str, where: str) -> Any:
        """Return the decoded params of a request, which are at the JSON pointer `where`.

        Raises:
            RemoteProtocolError: the request is invalid or not allowed; the text says why.
        """
        kind = params_type(method, revision)
        # Some servers write null for an absent member.
        given = b"{}" if raw is UNSET or bytes(raw) == b"null" else raw
        params = _read_params(given, kind, method, where)
        if isinstance(params, ElicitRequestParams):
            self._check_mode(params, revision, where)
        elif isinstance(params, CreateMessageRequestParams):
            self._check_tools(params, revision, where)
        return params

    async def answer(self, method: str, params: Any, revision: str) -> Struct:
        """Call the handler for params that `read` returned; return the result for `revision`.

        Raises:
            FormMismatch: the answer does not match the form.
            NoThreadFree: all handler threads are in use.
            TypeError: the handler returned an invalid type.
            Exception: any other exception of the handler.
        """
        answer: Struct
        if isinstance(params, ElicitRequestParams):
            answer = await self._elicit(params, revision)
        elif isinstance(params, CreateMessageRequestParams):
            answer = await self._sample(params)
        else:
            answer = await self._list_roots()
        return narrow(answer, revision)

    # -- handlers in progress ----------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the maximum number of handlers is in progress."""
        return len(self._running) >= MAX_HANDLERS

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a handler in a task of its own, so that it does not block other messages."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return task

    def stop(self) -> None:
        """Cancel all handlers, except the one that calls this: the session has ended."""
        current = current_task()
        for task in list(self._running):
            if task is not current:
                task.cancel()

    async def end(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Wait for the cancelled handlers, except `caller`."""
        await wait_cancelled(task for task in self._running if task is not caller)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # Retrieved, so that asyncio does not log it: its caller may have been cancelled.
            task.exception()

    # -- checks ------------------------------------------------------------------------------

    def _check_mode(self, params: ElicitRequestParams, revision: str, where: str) -> None:
        mode, is_declared = "form", self._handlers.on_elicit is not None
        if params.mode == "url":
            has_pages = lookup.capability("elicitation.url", revision, "client") is not None
            mode, is_declared = "url", has_pages and self._handlers.on_elicit_url is not None
        if not is_declared:
            raise RemoteProtocolError(
                "mcp.elicitation.declared-mode",
                where=f"{where}/mode",
                got=mode,
                expected="a mode of elicitation that this client has declared",
            )
        if mode == "url":
            _check_address(params.url, f"{where}/url")
        elif params.requested_schema is None:
            raise RemoteProtocolError(
                "mcp.type.required", where=f"{where}/requestedSchema", expected="a form"
            )

    def _check_tools(self, params: CreateMessageRequestParams, revision: str, where: str) -> None:
        if lookup.capability("sampling.tools", revision, "client") is None:
            return
        brings = params.tools is not None or params.tool_choice is not None
        if brings and not self._handlers.sampling_tools:
            raise RemoteProtocolError(
                "mcp.capability.negotiated-only",
                where=f"{where}/tools",
                expected="none: this client has not declared sampling.tools",
            )
        _check_balance(params.messages, f"{where}/messages")

    # -- calls -------------------------------------------------------------------------------

    async def _list_roots(self) -> ListRootsResult:
        roots = self._handlers.roots
        given: RootsGiven = await self._call(roots) if callable(roots) else roots or ()
        return ListRootsResult([as_root(each) for each in given])

    async def _sample(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        given = await self._call(self._handlers.on_sample, params)
        if isinstance(given, str):
            return CreateMessageResult(TextContent(given), self._handlers.model, "assistant")
        if not isinstance(given, CreateMessageResult):
            _no_answer("on_sample", "a text or a CreateMessageResult", given)
        return given

    async def _elicit(self, params: ElicitRequestParams, revision: str) -> ElicitResult:
        if params.mode == "url":
            given = await self._call(self._handlers.on_elicit_url, params)
            if type(given) is bool:
                given = "accept" if given else "decline"
            answer = _elicited(given, "on_elicit_url", "True or False")
        else:
            given = await self._call(self._handlers.on_elicit, params)
            if isinstance(given, dict):
                given = ElicitResult("accept", content=given)
            answer = _elicited(given, "on_elicit", "a dict")
            if answer.action == "accept":
                # Imported here: few servers send forms.
                from .form_validation import answers_may_be_lists, fit

                schema = {} if params.requested_schema is None else params.requested_schema
                content = {} if answer.content is None else answer.content
                lists = answers_may_be_lists(revision)
                return ElicitResult("accept", answer.meta, fit(schema, content, lists=lists))
        return ElicitResult(answer.action, answer.meta)

    async def _call(self, handler: Any, *args: Any) -> Any:
        """Call a handler: on the event loop if it is async, else on a thread."""
        if inspect.iscoroutinefunction(handler):
            return await handler(*args)
        given = await self._threads().run(partial(_run_handler, handler, *args))
        return await given if inspect.isawaitable(given) else given


def _read_params(given: Any, kind: Any, method: str, where: str) -> Any:
    try:
        return decoder(kind)(given)
    except UNREADABLE as error:
        try:
            return decode_again(given, kind, error)
        except UNREADABLE as still:
            place, what = where_and_what(still)
    rule = "mcp.type.required" if "missing required" in what else "mcp.type.json-type"
    raise RemoteProtocolError(rule, where=where + place, expected=f"the params of {method}: {what}")


def as_root(given: Root | str) -> Root:
    """Return a root in wire form.

    Raises:
        ValueError: it is not a `file://` URI.
    """
    root = given if isinstance(given, Root) else Root(given)
    # Schemes are case-insensitive.  [RFC 3986, section 3.1]
    if not isinstance(root.uri, str) or not root.uri.lower().startswith("file://"):
        raise ValueError(f"a root is a file:// URI, not {show(root.uri)}")
    return root


def fixed_roots(roots: Roots | None) -> Roots | None:
    """Return roots that can be read more than once."""
    if roots is None or callable(roots):
        return roots
    if isinstance(roots, str):
        raise ValueError("roots are a list of file:// URIs, not one string")
    return [as_root(each) for each in roots]


def _elicited(given: Any, handler: str, also: str) -> ElicitResult:
    if given is None:
        return ElicitResult("decline")
    if given in ("accept", "decline", "cancel"):
        return ElicitResult(given)
    if not isinstance(given, ElicitResult):
        _no_answer(handler, f"an ElicitResult, {also}, an action by its name or None", given)
    return given


def _no_answer(handler: str, expected: str, given: Any) -> NoReturn:
    raise TypeError(f"{handler} returns {expected}, not {type(given).__name__}")


def _check_address(url: str | None, where: str) -> None:
    if url is None or not _is_page(url):
        rule = "mcp.type.required" if url is None else "mcp.type.format"
        expected = "the address of a page, by http or https and with a host"
        raise RemoteProtocolError(rule, where=where, expected=expected)


def _is_page(url: str) -> bool:
    # Imported here: few servers use URL elicitation.
    from urllib.parse import urlsplit

    from ...judge.types.formats import FORMATS

    if not FORMATS["uri"][1](url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # invalid host or port
        return False


def _check_balance(messages: list[SamplingMessage], where: str) -> None:
    """Reject messages whose tool uses and tool results do not match."""
    used: set[str] = set()
    for place, message in enumerate(messages):
        content = message.content
        blocks = content if isinstance(content, list) else [content]
        uses = {block.id for block in blocks if isinstance(block, ToolUseContent)}
        results = [block.tool_use_id for block in blocks if isinstance(block, ToolResultContent)]
        at = f"{where}/{place}/content"
        if results and len(results) != len(blocks):
            raise RemoteProtocolError(
                "mcp.sampling.results-alone", where=at, expected="results of tools and nothing else"
            )
        if set(results) != used:
            _unbalanced(at)
        used = uses
    if used:
        _unbalanced(where)


def _unbalanced(where: str) -> NoReturn:
    raise RemoteProtocolError(
        "mcp.sampling.results-match",
        where=where,
        expected="a result for each use of a tool in the message before, and for no other",
    )


def _run_handler(handler: Callable[..., Any], *args: Any) -> Any:
    """Call a synchronous handler on its thread; SystemExit must not reach the event loop."""
    try:
        return handler(*args)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error
