"""What a handler asks its client, put into words of the wire and read back.

A question is checked, gets its key and its digest, and is handed to whoever carries it in
this run: the connection, a round of 2026-07-28, or a task. What comes back is read here, so
that a handler sees the same whichever way it came.

`Ask` is what the verbs of `Context` return. It is awaited, or waited for on the thread of a
handler that is no coroutine.

The rules that live here, and only here:

* Nothing is asked that the client did not declare.   [MCP 2026-07-28, basic/patterns/mrtr]
* An answer that does not fit what was asked ends the call, unless the handler catches it.
* What `once` gives has been JSON, also the first time, so that every run sees the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NoReturn, TypeVar

from msgspec import UNSET, Raw, Struct, ValidationError
from msgspec.json import Decoder, Encoder

from ..errors import Refusal, RemoteProtocolError
from ..mcp.types import (
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
)
from ..redaction import show
from ..spec.kinds import ErrorKind
from ..spec.lookup import method as method_row
from . import asking
from .adapters import read_model
from .course import Asker, Course, Question
from .encoding import encoded
from .workers import deliver

if TYPE_CHECKING:
    from .context import Context
    from .forms import Form

__all__ = ["Answer", "Ask", "BadAnswer", "MissingCapability"]

T = TypeVar("T")

# Enough that nobody finds two questions with one digest by accident.
_DIGEST: Final = 12
_MOST_KEY: Final = 200

_sorted: Final = Encoder(order="sorted")
_within_once: Final[ContextVar[bool]] = ContextVar("within_once", default=False)


class Answer(Struct, Generic[T], frozen=True):
    """What the user did with a question, and what was filled in."""

    action: Literal["accept", "decline", "cancel"]
    # Of the type that was asked for; None unless accepted.
    content: T | None = None

    @property
    def accepted(self) -> bool:
        """Whether the user agreed."""
        return self.action == "accept"


class MissingCapability(Refusal):
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


class BadAnswer(Refusal):
    """What the client answered is not what it was asked for."""


class Ask(Generic[T]):
    """A question that was put: `await` it, or `wait` for it on a thread."""

    __slots__ = ("_answer", "_context", "_is_taken")

    def __init__(self, context: Context, answer: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._context = context
        self._answer = answer
        self._is_taken = False

    def __await__(self) -> Generator[Any, None, T]:
        return self._take().__await__()

    def wait(self) -> T:
        """Wait for the answer, in a handler that is no coroutine and runs on a thread.

        Raises:
            RuntimeError: this is the thread of the event loop, which has to go on: await it.
        """
        self._check_thread()
        loop = self._context._connection.loop
        return asyncio.run_coroutine_threadsafe(self._waited(), loop).result()

    def _check_thread(self) -> None:
        if threading.get_ident() == self._context._connection.thread:
            raise RuntimeError("this is the event loop's own thread: await the question instead")

    async def _waited(self) -> T:
        """Get the answer in a task that ends with the handler."""
        course = course_of(self._context)
        if self._context.cancelled:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(self._take())
        course.waits.add(task)
        try:
            return await task
        finally:
            course.waits.discard(task)

    def _take(self) -> Coroutine[Any, Any, T]:
        if self._is_taken:
            raise RuntimeError("a question is asked once: put it again under another key")
        self._is_taken = True
        return self._answer()


class _Once(Ask[Any]):
    """Something to be done: on the thread that waits for it, if one does."""

    __slots__ = ("_calls",)

    def __init__(self, context: Context, answer: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        super().__init__(context, answer)
        self._calls: SimpleQueue[Callable[[], object] | None] | None = None

    def wait(self) -> Any:
        """Do it here, unless it was done; see `Ask.wait`."""
        self._check_thread()
        calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._calls = calls
        future = asyncio.run_coroutine_threadsafe(self._waited(), self._context._connection.loop)
        future.add_done_callback(lambda _: calls.put(None))
        while (call := calls.get()) is not None:
            call()
        return future.result()

    async def do(self, work: Callable[[], Any]) -> Any:
        """Call `work`, wherever this is waited for."""
        if self._calls is None:
            return work()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def call() -> None:
            outcome: Any = None
            error: BaseException | None = None
            try:
                outcome = work()
            except BaseException as raised:  # noqa: BLE001  # the handler's own, told below
                error = raised
            loop.call_soon_threadsafe(deliver, future, outcome, error)

        self._calls.put(call)
        return await future


# -- the questions there are -----------------------------------------------------------------


def elicit(
    context: Context, message: str, kind: Any, key: str | None, timeout: float | None
) -> Ask[Answer[Any]]:
    """Ask the user to fill in a form."""
    from .forms import form_of  # here, as below: a server that never asks does not load it

    form = form_of(kind)
    course = course_of(context)
    chosen = course.key_of("elicitation", _checked(key), context._task)

    async def answer() -> Answer[Any]:
        _check_revision(context, "elicitation/create")
        schema = form.schema(context.revision)
        params = ElicitRequestParams(message, mode="form", requested_schema=schema)
        result: ElicitResult = await _ask(context, chosen, "elicitation/create", params, timeout)
        if result.action != "accept":
            return Answer(result.action)
        return Answer("accept", _content(context, chosen, form, result))

    return Ask(context, answer)


def elicit_url(
    context: Context, message: str, url: str, key: str | None, timeout: float | None
) -> Ask[Answer[None]]:
    """Ask the user to visit an address."""
    course = course_of(context)
    chosen = course.key_of("elicitation", _checked(key), context._task)

    async def answer() -> Answer[None]:
        _check_revision(context, "elicitation/create", "elicitation.url")
        # One revision has an id for it; elsewhere it is left out.
        id = os.urandom(16).hex()
        params = ElicitRequestParams(message, mode="url", url=url, elicitation_id=id)
        result: ElicitResult = await _ask(context, chosen, "elicitation/create", params, timeout)
        return Answer(result.action)

    return Ask(context, answer)


def sample(
    context: Context, messages: Any, options: dict[str, Any], key: str | None, timeout: float | None
) -> Ask[CreateMessageResult]:
    """Ask the client's model."""
    from .sampling import sampling_params

    params = sampling_params(messages, **options)
    course = course_of(context)
    chosen = course.key_of("sampling", _checked(key), context._task)

    async def answer() -> CreateMessageResult:
        return await _ask(context, chosen, "sampling/createMessage", params, timeout)  # type: ignore[no-any-return]  # read as this type

    return Ask(context, answer)


def roots(context: Context, key: str | None, timeout: float | None) -> Ask[list[Root]]:
    """Ask which folders the client works in."""
    course = course_of(context)
    chosen = course.key_of("roots", _checked(key), context._task)

    async def answer() -> list[Root]:
        result: ListRootsResult = await _ask(context, chosen, "roots/list", None, timeout)
        return result.roots

    return Ask(context, answer)


def once(
    context: Context, key: str, work: Callable[[], Any], kind: Any, is_secret: bool
) -> Ask[Any]:
    """Do something that is not done again when the handler is."""
    course = course_of(context)
    chosen = course.key_of("once", _once_key(key))
    if is_secret and not context._connection.app.rounds.is_secret:
        raise RuntimeError("what the client carries can be read: install trunkline[crypto]")

    async def run() -> Raw:
        _within_once.set(True)
        value = await ask.do(work)
        if inspect.isawaitable(value):
            value = await value
        return Raw(encoded(value))

    async def answer() -> Any:
        # As a task, so that what is set inside is set for it alone.
        begun = _asker(context, course).once(chosen, run, is_secret=is_secret)
        raw = await asyncio.ensure_future(begun)
        try:
            return Decoder(kind, dec_hook=read_model).decode(raw)
        except ValidationError as error:
            text = f"what once({key!r}) gave is not {show(str(kind))}: {error}"
        raise TypeError(text)

    ask = _Once(context, answer)
    return ask


# -- putting one -----------------------------------------------------------------------------


def course_of(context: Context) -> Course:
    """Return the course of a run, made now if it had none."""
    return context._course or context._new_course()


def _asker(context: Context, course: Course) -> Asker:
    if course.asker is None:
        connection = context._connection
        course.asker = (
            Wire(context)
            if context._surface.has_handshake
            else connection.app.rounds.begin(context, course)
        )
    return course.asker


class Wire:
    """Asks by requests of our own, which the handshake revisions let a server send."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    async def ask(self, question: Question) -> Raw:
        """Send the question, and wait for its answer."""
        context = self._context
        connection, surface = context._connection, context._surface
        asking.check(connection.session, surface, question.method, question.params)
        with course_of(context).paused(context):
            return await connection.ask(
                context._asked, surface, question.method, question.params, question.timeout
            )

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]], *, is_secret: bool) -> Raw:
        """Do it: nothing is run again here."""
        return await work()


async def _ask(context: Context, key: str, method: str, params: Any, timeout: float | None) -> Any:
    """Return the client's answer to one question, typed."""
    if _within_once.get():
        # The round could not end, because what is done once is waited for.
        raise RuntimeError("a question cannot be asked inside once(): ask first, then do")
    _check_revision(context, method)
    lacking = asking.missing(context.client.capabilities, context.revision, method, params)
    if lacking:
        text = f"{context.what!r} asks for what the client did not declare: {', '.join(lacking)}"
        raise MissingCapability(lacking, text)
    narrowed = context._surface.narrowed(params) if params is not None else None
    digest = hashlib.sha256(_sorted.encode([method, narrowed])).digest()[:_DIGEST]
    question = Question(key, method, narrowed, digest, timeout)
    raw = await _asker(context, course_of(context)).ask(question)
    try:
        return asking.read(raw, context._surface, method)
    except RemoteProtocolError as error:
        text = f"the answer to {key!r} is no {error.expected}"
    _refuse(context, text)


def _check_revision(context: Context, method: str, capability: str = "") -> None:
    """Refuse what the revision has no way to ask."""
    row = method_row(method, context.revision)
    if row is None:
        name = capability or method.split("/")[0]
        text = f"{context.what!r} asks with {method}, which MCP {context.revision} does not have"
        raise MissingCapability([name], text)


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
        if context._surface.has_handshake
        else ErrorKind.INVALID_INPUT_RESPONSES
    )
    raise BadAnswer(kind, text)


def _checked(key: str | None) -> str | None:
    """Return an author's key.

    Raises:
        ValueError: it cannot be one.
    """
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= _MOST_KEY):
        raise ValueError(f"a key is a text of 1 to {_MOST_KEY} characters, not {show(key)}")
    return key


def _once_key(key: str) -> str:
    # Apart from the keys of questions: the client sees those, and sends them.
    return f"once {_checked(key)}"
