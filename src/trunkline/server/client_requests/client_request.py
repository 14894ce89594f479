"""What a handler asks its client, put into words of the wire and read back.

A question is checked, gets its key and its digest, and is handed to whoever carries it in
this run: the connection, a round of 2026-07-28, or a task. What comes back is read here, so
that a handler sees the same whichever way it came.

`ClientRequest` is what the methods of `Context` return: await it, or call `wait()` on the thread of
a synchronous handler.

The rules that live here, and only here:

* Nothing is asked that the client did not declare.   [MCP 2026-07-28, basic/patterns/mrtr]
* An answer that does not fit what was asked ends the call, unless the handler catches it.
* What `once` gives has been JSON, also the first time, so that every run sees the same.
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

from msgspec import UNSET, Raw, Struct, ValidationError
from msgspec.json import Decoder

from ...concurrency.thread_pool import deliver
from ...errors import LocalProtocolError, RemoteProtocolError, RequestAborted, RequestError
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
from ..dispatch.handler_run import Asker, HandlerRun, InputQuestion, QuestionName, handler_run_of
from ..handlers.dataclass_defaults import filled
from ..handlers.json_encoding import OutputMismatch, encoded
from ..handlers.pydantic_models import read_model
from . import capabilities as client_capabilities

if TYPE_CHECKING:
    from ..context import Context
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

# Whose `once` this runs inside of. Another server in this process may be asked from there.
_within_once: Final[ContextVar[HandlerRun | None]] = ContextVar("within_once", default=None)


class AcceptedElicitation(Struct, Generic[T], frozen=True):
    """The user agreed, and this is what was filled in."""

    content: T
    action: Literal["accept"] = "accept"

    @property
    def accepted(self) -> Literal[True]:
        """Whether the user agreed: yes."""
        return True


class DeclinedElicitation(Struct, frozen=True):
    """The user said no ("decline"), or would not even say that ("cancel")."""

    action: Literal["decline", "cancel"]
    content: None = None

    @property
    def accepted(self) -> Literal[False]:
        """Whether the user agreed: no."""
        return False


# What the user did with a question. A type checker knows of which kind it is once its `action`
# was looked at: `if answer.action == "accept": answer.content`.
ElicitationResult: TypeAlias = AcceptedElicitation[T] | DeclinedElicitation


class MissingCapability(RequestError):
    """The client cannot be asked: it did not declare that it can, or its revision cannot.

    `capabilities` are the names of what is missing, such as "elicitation.url".
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
    """What the client answered is not what it was asked for."""


class ClientRequest(Coroutine[Any, Any, T]):
    """A question that was put: `await` it, or `wait` for it on a thread.

    It is a coroutine, so that a task can be made of it, and costs nothing until it is begun.
    """

    __slots__ = ("_answer", "_begun", "_context", "_is_taken")

    def __init__(self, context: Context, answer: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._context = context
        self._answer = answer
        self._begun: Coroutine[Any, Any, T] | None = None
        self._is_taken = False

    def __await__(self) -> Generator[Any, None, T]:
        return self._take().__await__()

    def send(self, value: Any) -> Any:
        """Go on, as a coroutine does."""
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception, as a coroutine does."""
        return self._coroutine().throw(*error)

    def close(self) -> None:
        """Give it up, as a coroutine is."""
        if self._begun is not None:
            self._begun.close()

    def _coroutine(self) -> Coroutine[Any, Any, T]:
        if self._begun is None:
            self._begun = self._take()
        return self._begun

    def wait(self) -> T:
        """Wait for the answer, in a handler that is no coroutine and runs on a thread.

        Raises:
            RuntimeError: this is the thread of the event loop, which has to go on: await it.
        """
        workers = self._context._connection.core.threads
        future = self._begin_on_loop()
        with workers.blocked():
            return _outcome(future)

    def _begin_on_loop(self) -> concurrent.futures.Future[T]:
        """Begin to get the answer, for a thread that will wait for it."""
        self._check_thread()
        coroutine = self._waited()
        try:
            loop = self._context._connection.loop
            return asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:
            # The loop is closed, and with it everything that could be waited for.
            coroutine.close()
            raise asyncio.CancelledError from None

    def _check_thread(self) -> None:
        if threading.get_ident() == self._context._connection.thread:
            raise RuntimeError("this is the event loop's own thread: await the question instead")

    async def _waited(self) -> T:
        """Get the answer in a task that ends with the handler."""
        run = handler_run_of(self._context)
        if self._context.cancelled:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(self._take())
        run.waits.add(task)
        try:
            return await task
        finally:
            run.waits.discard(task)

    def _take(self) -> Coroutine[Any, Any, T]:
        if self._is_taken:
            raise RuntimeError("a question is asked once: put it again under another key")
        if asyncio.get_running_loop() is not self._context._connection.loop:
            raise RuntimeError("this is not the server's event loop: wait() for the question")
        self._is_taken = True
        return self._answer()


class _OnceRequest(ClientRequest[Any]):
    """Something to be done: on the thread that waits for it, if one does."""

    __slots__ = ("_calls",)

    def __init__(self, context: Context, answer: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(context, answer)
        self._calls: SimpleQueue[Callable[[], object] | None] | None = None

    def wait(self) -> Any:
        """Do it here, unless it was done; see `ClientRequest.wait`."""
        calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._calls = calls
        future = self._begin_on_loop()
        future.add_done_callback(lambda _: calls.put(None))
        while (call := calls.get()) is not None:
            call()
        return _outcome(future)

    async def do(self, work: Callable[[], Any]) -> Any:
        """Call `work`, wherever this is waited for."""
        if self._calls is None:
            return work()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        inside = copy_context()  # which says that it is inside `once`

        def call() -> None:
            outcome: Any = None
            error: BaseException | None = None
            try:
                outcome = inside.run(work)
            except BaseException as raised:  # noqa: BLE001  # the handler's own, told below
                error = raised
            loop.call_soon_threadsafe(deliver, future, outcome, error)

        self._calls.put(call)
        return await future


def _outcome(future: concurrent.futures.Future[T]) -> T:
    """Return what a future comes to, on the thread that waits for it."""
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        # That one is an Exception, which a handler would catch, and go on.
        raise asyncio.CancelledError from None


# -- the questions there are -----------------------------------------------------------------


def elicit(
    context: Context, message: str, kind: Any, key: str | None, timeout: float | None
) -> ClientRequest[ElicitationResult[Any]]:
    """Ask the user to fill in a form."""
    from .form import form_of  # here, as below: a server that never asks does not load it

    form = form_of(kind)
    _check_text("the message of a question", message)
    _check_timeout(timeout)
    chosen = handler_run_of(context).name("elicitation", _checked(key), context._task)

    async def answer() -> ElicitationResult[Any]:
        _check_revision(context, "elicitation/create")
        schema = _schema(context, form)
        params = ElicitRequestParams(message, mode="form", requested_schema=schema)
        result: ElicitResult = await _ask(context, chosen, "elicitation/create", params, timeout)
        if result.action != "accept":
            return DeclinedElicitation(result.action)
        return AcceptedElicitation(_content(context, chosen.key, form, result))

    return ClientRequest(context, answer)


def elicit_url(
    context: Context, message: str, url: str, key: str | None, timeout: float | None
) -> ClientRequest[ElicitationResult[None]]:
    """Ask the user to visit an address."""
    _check_text("the message of a question", message)
    _check_address(url)
    _check_timeout(timeout)
    chosen = handler_run_of(context).name("elicitation", _checked(key), context._task)

    async def answer() -> ElicitationResult[None]:
        _check_revision(context, "elicitation/create", "elicitation.url")
        # One revision has an id for it; elsewhere it is left out.
        id = os.urandom(16).hex()
        params = ElicitRequestParams(message, mode="url", url=url, elicitation_id=id)
        result: ElicitResult = await _ask(context, chosen, "elicitation/create", params, timeout)
        return (
            AcceptedElicitation(None)
            if result.action == "accept"
            else DeclinedElicitation(result.action)
        )

    return ClientRequest(context, answer)


def sample(
    context: Context, messages: Any, options: dict[str, Any], key: str | None, timeout: float | None
) -> ClientRequest[CreateMessageResult]:
    """Ask the client's model."""
    from .sampling import sampling_params

    params = sampling_params(messages, **options)
    _check_timeout(timeout)
    chosen = handler_run_of(context).name("sampling", _checked(key), context._task)

    async def answer() -> CreateMessageResult:
        return await _ask(context, chosen, "sampling/createMessage", params, timeout)  # type: ignore[no-any-return]  # read as this type

    return ClientRequest(context, answer)


def roots(context: Context, key: str | None, timeout: float | None) -> ClientRequest[list[Root]]:
    """Ask which folders the client works in."""
    _check_timeout(timeout)
    chosen = handler_run_of(context).name("roots", _checked(key), context._task)

    async def answer() -> list[Root]:
        result: ListRootsResult = await _ask(context, chosen, "roots/list", None, timeout)
        return result.roots

    return ClientRequest(context, answer)


def once(
    context: Context, key: str, work: Callable[[], Any], kind: Any, is_secret: bool
) -> ClientRequest[Any]:
    """Do something that is not done again when the handler is."""
    run = handler_run_of(context)
    chosen = run.name("once", _once_key(key)).key
    if is_secret and not context._connection.core.rounds.is_secret:
        raise RuntimeError("what the client carries can be read: install trunkline[crypto]")

    async def perform() -> Raw:
        _within_once.set(run)
        value = await ask.do(work)
        if inspect.isawaitable(value):
            value = await value
        try:
            return Raw(encoded(value))
        except OutputMismatch as error:
            text = f"what once({key!r}) gave cannot be kept: {error}"
        raise TypeError(text)

    async def answer() -> Any:
        # As a task, so that what is set inside is set for it alone.
        begun = _asker(context, run).once(chosen, perform)
        raw = await asyncio.ensure_future(begun)
        try:
            return filled(Decoder(kind, dec_hook=read_model).decode(raw))
        except ValidationError as error:
            text = f"what once({key!r}) gave is not {show(str(kind))}: {error}"
        raise TypeError(text)

    ask = _OnceRequest(context, answer)
    return ask


# -- putting one -----------------------------------------------------------------------------


def _asker(context: Context, run: HandlerRun) -> Asker:
    if run.asker is None:
        connection = context._connection
        run.asker = (
            WireAsker(context)
            if context._rev.has_handshake
            else connection.core.rounds.begin(context, run)
        )
    return run.asker


class WireAsker:
    """Asks by requests of our own, which the handshake revisions let a server send."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    async def ask(self, question: InputQuestion) -> Raw:
        """Send the question, and wait for its answer."""
        context = self._context
        connection, rev, run = context._connection, context._rev, handler_run_of(context)
        method, params = question.method, question.params
        client_capabilities.check(connection.session, rev, method, params)
        try:
            with run.paused(context):
                return await connection.ask(
                    context._asked, rev, method, params, question.timeout, run.waits
                )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if run.is_done and (task is None or not task.cancelling()):
                # Withdrawn, because the handler has ended and left the task that asks behind.
                raise RequestAborted("the request it belongs to has ended", method=method) from None
            raise

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Do it: nothing is run again here."""
        return await work()


async def _ask(
    context: Context, name: QuestionName, method: str, params: Any, timeout: float | None
) -> Any:
    """Return the client's answer to one question, typed."""
    run = handler_run_of(context)
    if _within_once.get() is run:
        # The round could not end, because what is done once is waited for.
        raise RuntimeError("a question cannot be asked inside once(): ask first, then do")
    _check_revision(context, method)
    lacking = client_capabilities.missing(
        context.client.capabilities, context.revision, method, params
    )
    if lacking:
        text = f"{context.name!r} asks for what the client did not declare: {', '.join(lacking)}"
        raise MissingCapability(lacking, text)
    narrowed = context._rev.narrowed(params) if params is not None else None
    question = InputQuestion(name.key, method, narrowed, timeout, name.branch)
    run.check_unambiguous(question)
    raw = await _asker(context, run).ask(question)
    try:
        return client_capabilities.read(raw, context._rev, method)
    except RemoteProtocolError as error:
        text = f"the answer to {name.key!r} is not {error.expected}"
    _refuse(context, text)


def _check_revision(context: Context, method: str, capability: str = "") -> None:
    """Refuse what the revision has no way to ask."""
    row = method_row(method, context.revision)
    if row is None:
        name = capability or method.split("/")[0]
        text = f"{context.name!r} asks with {method}, which MCP {context.revision} does not have"
        raise MissingCapability([name], text)


def _schema(context: Context, form: Form) -> dict[str, Any]:
    """Return a form as the revision has it, or refuse what that cannot ask."""
    try:
        return form.schema(context.revision)
    except LocalProtocolError as error:
        text = f"{context.name!r} asks what MCP {context.revision} cannot: {error.expected}"
    raise MissingCapability(["elicitation"], text)


def _content(context: Context, key: str, form: Form, result: ElicitResult) -> Any:
    try:
        return form.read(None if result.content is UNSET else result.content)
    except (ValueError, ValidationError) as error:
        text = f"the answer to {key!r} does not fit the form: {error}"
    _refuse(context, text)


def _refuse(context: Context, text: str) -> NoReturn:
    # Only where answers are part of the request are they its params.
    kind = (
        ErrorKind.VALIDATION_FAILED
        if context._rev.has_handshake
        else ErrorKind.INVALID_INPUT_RESPONSES
    )
    raise InvalidClientResponse(kind, text)


def _checked(key: str | None) -> str | None:
    """Return an author's key.

    Raises:
        ValueError: it cannot be one.
    """
    if key is not None:
        _check_text("a key", key)
        if not 0 < len(key) <= _MAX_KEY_CHARS:
            text = f"a key is a text of 1 to {_MAX_KEY_CHARS} characters, not {show(key)}"
            raise ValueError(text)
    return key


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not {show(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"there is half a character in {what}") from None


def _check_address(url: object) -> None:
    from urllib.parse import urlsplit

    _check_text("an address", url)
    parts = urlsplit(str(url))
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError(f"a user is sent to an address with http(s), not to {show(url)}")


def _check_timeout(timeout: object) -> None:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (is_number and 0 < timeout < inf):  # type: ignore[operator]  # a number
        raise ValueError(f"a timeout is a number of seconds, not {show(timeout)}")


def _once_key(key: str) -> str:
    # Apart from the keys of questions: the client sees those, and sends them.
    return f"once {_checked(key)}"
