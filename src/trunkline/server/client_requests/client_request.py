"""Client requests of handlers: elicitation, sampling, roots, and `once`.

A question is checked, gets its key and digest, and is handed to the asker of the run: the
connection, a round trip of 2026-07-28, or a task. The response is decoded here, so that a handler
sees the same value whichever way it came.

The methods of `Context` return a `ClientRequest`: await it, or call `wait()` on the thread of a
synchronous handler.

The rules that live here, and only here:

* A request needs the capabilities the client declared.  [MCP 2026-07-28, basic/patterns/mrtr]
* A response that does not fit the request ends the call, unless the handler catches the error.
* The result of `once` goes through JSON even in the first run, so that every run sees the same.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar, copy_context
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, TypeAlias, TypeVar

from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder

from ...concurrency.thread_pool import deliver
from ...engine.handler_run import Asker, HandlerRun, InputQuestion, QuestionName, handler_run_of
from ...errors import LocalProtocolError, RemoteProtocolError, RequestAborted, RequestError
from ...extras import install_command
from ...jsonrpc.messages import Shown
from ...mcp.types import (
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
)
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ...spec.lookup import method as method_row
from ..handlers.custom_types import filled, read_custom
from ..handlers.json_encoding import OutputMismatch, encoded
from . import capabilities as client_capabilities

if TYPE_CHECKING:
    from ..dispatch.request import ServerRequest
    from .form import Form

__all__ = [
    "AcceptedElicitation",
    "ClientRequest",
    "DeclinedElicitation",
    "ElicitationResult",
    "InvalidClientResponse",
    "MissingCapability",
]

T = TypeVar("T")

_MAX_KEY_CHARS: Final = 200

# The run whose `once` this code runs in. A call to another server in this process is another run.
_within_once: Final[ContextVar[HandlerRun | None]] = ContextVar("within_once", default=None)


class AcceptedElicitation(Shown, Struct, Generic[T], frozen=True):
    """The user accepted, with this content."""

    content: T
    action: Literal["accept"] = "accept"

    @property
    def accepted(self) -> Literal[True]:
        """True."""
        return True

    def __bool__(self) -> Literal[True]:
        return True


class DeclinedElicitation(Shown, Struct, frozen=True):
    """The user declined ("decline") or dismissed the form ("cancel")."""

    action: Literal["decline", "cancel"]
    content: None = None

    @property
    def accepted(self) -> Literal[False]:
        """False."""
        return False

    def __bool__(self) -> Literal[False]:
        return False


# Type checkers narrow this by `if answer:` and by `action`. By `if answer.accepted:` mypy does,
# and pyright does not, which narrows an object by a member only where that is compared.
ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation


class MissingCapability(RequestError):
    """The client did not declare a needed capability, or its revision lacks the request.

    `capabilities` has the missing names, such as "elicitation.url".
    """

    def __init__(self, capabilities: list[str], message: str) -> None:
        required: dict[str, Any] = {}
        for name in capabilities:
            inner = required
            for part in name.split("."):
                inner = inner.setdefault(part, {})
        kind = ErrorKind.MISSING_REQUIRED_CLIENT_CAPABILITY
        super().__init__(kind, message, data={"requiredCapabilities": required})
        self.capabilities = tuple(capabilities)


class InvalidClientResponse(RequestError):
    """The client's response does not fit the request."""


class ClientRequest(Coroutine[Any, Any, T]):
    """A request to the client: `await` it, or call `wait` on a thread.

    It is a coroutine, so that `asyncio.create_task` accepts it, and is not sent until awaited.
    """

    __slots__ = ("_answer", "_begun", "_is_taken", "_request")

    def __init__(
        self, request: ServerRequest, answer: Callable[[], Coroutine[Any, Any, T]]
    ) -> None:
        self._request = request
        self._answer = answer
        self._begun: Coroutine[Any, Any, T] | None = None
        self._is_taken = False

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_"):
                text += ": is an `await` missing? The client is asked when it is awaited"
            raise AttributeError(text, name=name, obj=self)

    def __await__(self) -> Generator[Any, None, T]:
        return self._take().__await__()

    def send(self, value: Any) -> Any:
        """Resume, as a coroutine."""
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        """Resume with an exception, as a coroutine."""
        return self._coroutine().throw(*error)

    def close(self) -> None:
        """Close, as a coroutine."""
        if self._begun is not None:
            self._begun.close()

    def _coroutine(self) -> Coroutine[Any, Any, T]:
        if self._begun is None:
            self._begun = self._take()
        return self._begun

    def wait(self) -> T:
        """Block until the response arrives, in a synchronous handler on a thread.

        Raises:
            RuntimeError: called on the thread of the event loop: await it instead.
        """
        workers = self._request.connection.core.runtime.threads
        future = self._begin_on_loop()
        with workers.blocked():
            return _outcome(future)

    def _begin_on_loop(self) -> concurrent.futures.Future[T]:
        if threading.get_ident() == self._request.connection.thread:
            raise RuntimeError("wait() blocks the event loop's thread: await the request instead")
        coroutine = self._waited()
        try:
            loop = self._request.connection.loop
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            # The loop is closed: the response cannot arrive.
            coroutine.close()
            raise asyncio.CancelledError from None

    async def _waited(self) -> T:
        # In a task that is cancelled with the handler.
        run = handler_run_of(self._request)
        if self._request.cancelled:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(self._take())
        run.waits.add(task)
        try:
            return await task
        finally:
            run.waits.discard(task)

    def _take(self) -> Coroutine[Any, Any, T]:
        if self._is_taken:
            raise RuntimeError("a ClientRequest is awaited once: make another, with another key")
        if asyncio.get_running_loop() is not self._request.connection.loop:
            raise RuntimeError("this is not the server's event loop: call wait() on the request")
        self._is_taken = True
        return self._answer()


class _OnceRequest(ClientRequest[Any]):
    """The `once` request: its work runs on the thread that waits for it, if one does."""

    __slots__ = ("_calls",)

    def __init__(
        self, request: ServerRequest, answer: Callable[[], Coroutine[Any, Any, Any]]
    ) -> None:
        super().__init__(request, answer)
        self._calls: SimpleQueue[Callable[[], object] | None] | None = None

    def wait(self) -> Any:
        """Run the work on this thread, unless an earlier run has; see `ClientRequest.wait`."""
        calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._calls = calls
        future = self._begin_on_loop()
        future.add_done_callback(lambda _: calls.put(None))
        while (call := calls.get()) is not None:
            call()
        return _outcome(future)

    async def do(self, work: Callable[[], Any]) -> Any:
        """Call `work` on the thread that waits, or here."""
        if self._calls is None:
            return work()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        inside = copy_context()  # with `_within_once` set

        def call() -> None:
            outcome: Any = None
            error: BaseException | None = None
            try:
                outcome = inside.run(work)
            except BaseException as raised:  # noqa: BLE001  # the handler's own, delivered below
                error = raised
            loop.call_soon_threadsafe(deliver, future, outcome, error)

        self._calls.put(call)
        return await future


def _outcome(future: concurrent.futures.Future[T]) -> T:
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        # This one is an Exception, which `except Exception` in a handler would catch.
        raise asyncio.CancelledError from None


# -- the requests ----------------------------------------------------------------------------


def elicit(
    request: ServerRequest, message: str, kind: Any, key: str | None, timeout: float | None
) -> ClientRequest[ElicitationResult[Any]]:
    """Ask the user to fill in a form."""
    from .form import form_of  # here, as below: few servers need it

    form = form_of(kind)
    _check_text("the message", message)
    _check_timeout(timeout)
    chosen = handler_run_of(request).name("elicitation", _checked(key), request.task)

    async def answer() -> ElicitationResult[Any]:
        _check_revision(request, "elicitation/create")
        schema = _schema(request, form)
        params = ElicitRequestParams(message, mode="form", requested_schema=schema)

        def check(result: ElicitResult) -> None:
            if result.action == "accept":
                _read_content(form, result)

        result: ElicitResult = await _ask(
            request, chosen, "elicitation/create", params, timeout, check
        )
        if result.action != "accept":
            return DeclinedElicitation(result.action)
        return AcceptedElicitation(_content(request, chosen.key, form, result))

    return ClientRequest(request, answer)


def elicit_url(
    request: ServerRequest,
    message: str,
    url: str,
    key: str | None,
    timeout: float | None,
    elicitation_id: str | None,
) -> ClientRequest[ElicitationResult[None]]:
    """Ask the user to visit a URL."""
    _check_text("the message", message)
    _check_address(url)
    _check_timeout(timeout)
    chosen = handler_run_of(request).name("elicitation", _checked(key), request.task)

    async def answer() -> ElicitationResult[None]:
        _check_revision(request, "elicitation/create", "elicitation.url")
        # Only one revision has an id; the others drop it.
        id = os.urandom(16).hex() if elicitation_id is None else elicitation_id
        params = ElicitRequestParams(message, mode="url", url=url, elicitation_id=id)
        result: ElicitResult = await _ask(request, chosen, "elicitation/create", params, timeout)
        return (
            AcceptedElicitation(None)
            if result.action == "accept"
            else DeclinedElicitation(result.action)
        )

    return ClientRequest(request, answer)


def sample(
    request: ServerRequest,
    messages: Any,
    options: dict[str, Any],
    key: str | None,
    timeout: float | None,
) -> ClientRequest[CreateMessageResult]:
    """Ask the client's model for a completion."""
    from .sampling import sampling_params

    params = sampling_params(messages, **options)
    _check_timeout(timeout)
    chosen = handler_run_of(request).name("sampling", _checked(key), request.task)

    async def answer() -> CreateMessageResult:
        return await _ask(request, chosen, "sampling/createMessage", params, timeout)  # type: ignore[no-any-return]  # read as this type

    return ClientRequest(request, answer)


def roots(
    request: ServerRequest, key: str | None, timeout: float | None
) -> ClientRequest[list[Root]]:
    """Ask for the client's roots."""
    _check_timeout(timeout)
    chosen = handler_run_of(request).name("roots", _checked(key), request.task)

    async def answer() -> list[Root]:
        result: ListRootsResult = await _ask(request, chosen, "roots/list", None, timeout)
        return result.roots

    return ClientRequest(request, answer)


def once(
    request: ServerRequest, key: str, work: Callable[[], Any], kind: Any, is_secret: bool
) -> ClientRequest[Any]:
    """Run `work` once, and return its recorded result when the handler is replayed."""
    run = handler_run_of(request)
    # A namespace apart from the keys of questions, which clients see and send.
    chosen = run.name("once", f"once {_checked(key)}").key
    if is_secret and not request.connection.core.services.rounds.is_secret:
        raise RuntimeError(f"the request state is not encrypted: {install_command('crypto')}")

    async def perform() -> Raw:
        _within_once.set(run)
        value = await ask.do(work)
        if inspect.isawaitable(value):
            value = await value
        try:
            return Raw(encoded(value))
        except OutputMismatch as error:
            text = f"the result of once({key!r}) cannot be encoded: {error}"
        raise TypeError(text)

    async def answer() -> Any:
        # As a task, so that `_within_once` is set for it alone.
        begun = _asker(request, run).once(chosen, perform)
        raw = await asyncio.ensure_future(begun)
        try:
            return filled(Decoder(kind, dec_hook=read_custom).decode(raw))
        except ValidationError as error:
            text = f"the result of once({key!r}) is not {show(str(kind))}: {error}"
        raise TypeError(text)

    ask = _OnceRequest(request, answer)
    return ask


# -- sending one -----------------------------------------------------------------------------


def _asker(request: ServerRequest, run: HandlerRun) -> Asker:
    if run.asker is None:
        connection = request.connection
        run.asker = (
            WireAsker(request)
            if request.rev.has_handshake
            else connection.core.services.rounds.begin(request, run)
        )
    return run.asker


class WireAsker:
    """Asker of the handshake revisions, in which a server sends requests of its own."""

    __slots__ = ("_request",)

    def __init__(self, request: ServerRequest) -> None:
        self._request = request

    async def ask(self, question: InputQuestion) -> Raw:
        """Send the request and wait for its response."""
        request = self._request
        connection, rev, run = request.connection, request.rev, handler_run_of(request)
        method, params = question.method, question.params
        client_capabilities.check(connection.session, rev, method, params)
        try:
            with run.paused(request):
                return await connection.ask(
                    request.message, rev, method, params, question.timeout, run.waits
                )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if run.is_done and (task is None or not task.cancelling()):
                # Withdrawn: the handler has ended and left behind the task that asks.
                raise RequestAborted("the request it belongs to has ended", method=method) from None
            raise

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Run `work`: handlers are not replayed in these revisions."""
        return await work()


async def _ask(
    request: ServerRequest,
    name: QuestionName,
    method: str,
    params: Any,
    timeout: float | None,
    check: Callable[[Any], None] | None = None,
) -> Any:
    run = handler_run_of(request)
    if _within_once.get() is run:
        # A deadlock: the round trip ends only after `once` has finished.
        raise RuntimeError("a client request cannot be made inside once(): make it before")
    _check_revision(request, method)
    lacking = client_capabilities.missing(
        request.client_capabilities, request.revision, method, params
    )
    if lacking:
        names = " and ".join(lacking)
        text = f"{show(request.name)} needs {names}, which the client does not support"
        raise MissingCapability(lacking, text)
    narrowed = request.rev.narrowed(params) if params is not None else None
    question = InputQuestion(name.key, method, narrowed, timeout, name.branch, check, name.is_given)
    run.check_unambiguous(question)
    raw = await _asker(request, run).ask(question)
    try:
        return client_capabilities.read(raw, request.rev, method)
    except RemoteProtocolError as error:
        text = f"the response to {name.key!r} is not {error.expected}"
    _reject(request, text)


def _check_revision(request: ServerRequest, method: str, capability: str = "") -> None:
    row = method_row(method, request.revision)
    if row is None:
        name = capability or method.split("/")[0]
        text = f"{show(request.name)} needs {method}, which MCP {request.revision} does not have"
        raise MissingCapability([name], text)


def _schema(request: ServerRequest, form: Form) -> dict[str, Any]:
    try:
        return form.schema(request.revision)
    except LocalProtocolError as error:
        text = f"{show(request.name)} needs more than MCP {request.revision} has: {error.expected}"
    raise MissingCapability(["elicitation"], text)


def _read_content(form: Form, result: ElicitResult) -> Any:
    return form.read(result.content)


def _content(request: ServerRequest, key: str, form: Form, result: ElicitResult) -> Any:
    try:
        return _read_content(form, result)
    except ValueError as error:
        text = f"the response to {key!r} does not fit the form: {error}"
    _reject(request, text)


def _reject(request: ServerRequest, text: str) -> NoReturn:
    # In a multi round-trip request the responses are params of the call.
    kind = (
        ErrorKind.VALIDATION_FAILED
        if request.rev.has_handshake
        else ErrorKind.INVALID_INPUT_RESPONSES
    )
    raise InvalidClientResponse(kind, text)


def _checked(key: str | None) -> str | None:
    if key is not None:
        _check_text("a key", key)
        if not 0 < len(key) <= _MAX_KEY_CHARS:
            text = f"a key has 1 to {_MAX_KEY_CHARS} characters, not {show(key)}"
            raise ValueError(text)
    return key


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str, not {show(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} contains a lone surrogate, not encodable as UTF-8") from None


def _check_address(url: object) -> None:
    from urllib.parse import urlsplit

    _check_text("the URL", url)
    parts = urlsplit(str(url))
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError(f"the URL needs http or https and a host, not {show(url)}")


def _check_timeout(timeout: object) -> None:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and 0 < timeout < inf):  # type: ignore[operator]  # a number
        raise ValueError(f"a timeout is a positive number of seconds, not {show(timeout)}")
