"""Steps of a conversation with a server: what is called, and what is expected of the answer.

A `Caller` is a client of any library. `play` has it take the steps of a conversation, and raises
`AssertionError` at the first answer that is not as expected. The expectations are the same for
every caller; what differs between revisions is stated here, once:

* Up to 2025-11-25 structured content is an object: other values are in `{"result": ...}`.
* A call with invalid arguments is an error up to 2025-06-18, and a failed result since.
* A resource that does not exist is -32002 up to 2025-11-25, and -32602 since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

__all__ = [
    "ABSENT",
    "NOT_CHECKED",
    "Call",
    "CallAsTask",
    "Caller",
    "Complete",
    "Conversation",
    "Failure",
    "GetPrompt",
    "Heard",
    "ListNames",
    "Outcome",
    "ReadResource",
    "Step",
    "Watch",
    "play",
]

# How long a notification may take on a busy machine.
TIMEOUT_S: Final = 10.0
INVALID_PARAMS: Final = -32602


class Sentinel(Enum):
    """What stands for no value."""

    NOT_CHECKED = "not checked"
    ABSENT = "absent"


NOT_CHECKED: Final[Any] = Sentinel.NOT_CHECKED
ABSENT: Final[Any] = Sentinel.ABSENT

Kind: TypeAlias = Literal["tools", "resources", "templates", "prompts"]
# A list, or the URI of a resource.
Change: TypeAlias = str


class Failure(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code, self.message, self.data = code, message, data


class Outcome(NamedTuple):
    """The result of a call, as every client has it."""

    is_error: bool
    # The texts of all text blocks.
    text: str
    # The types of all blocks; with the MIME type where there is one.
    blocks: list[str]
    # As it was sent, or ABSENT.
    structured: Any
    # As the client reads it, if it does.
    value: Any = NOT_CHECKED
    meta: Mapping[str, Any] | None = None


@dataclass
class Heard:
    """What a client was sent and asked during a call."""

    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)
    logs: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Forget everything."""
        for each in (self.progress, self.logs, self.asked):
            each.clear()


class Caller(Protocol):
    """A client that takes steps; errors of the server are raised as `Failure`."""

    revision: str
    heard: Heard
    # Answers to questions, by their text: content of a form, a text of a model, or an action.
    answers: Mapping[str, Any]

    async def names(self, kind: Kind) -> list[str]:
        """Return the names of tools and prompts, or the URIs of resources and templates."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Call a tool."""

    async def call_as_task(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Call a tool as a task, and wait for its result."""

    async def read(self, uri: str) -> tuple[str | None, str | bytes]:
        """Return the MIME type and the content of a resource."""

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[tuple[str, str]]:
        """Return role and text of each message of a prompt; of other content the MIME type."""

    async def complete(
        self, what: Literal["prompt", "resource"], of: str, argument: tuple[str, str], known: Any
    ) -> list[str]:
        """Return the values of an argument."""

    def watch(
        self, lists: Sequence[str], uris: Sequence[str]
    ) -> AbstractAsyncContextManager[Callable[[], Sequence[Change]]]:
        """Subscribe to changes; the function returns those that were notified so far."""


@dataclass(frozen=True)
class ListNames:
    """The names of a list are these."""

    kind: Kind
    names: Sequence[str]

    async def take(self, caller: Caller) -> None:
        """List them."""
        equal(await caller.names(self.kind), list(self.names), self.kind)


@dataclass(frozen=True)
class Call:
    """A tool is called."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    text: str | None = None
    # The value as JSON; ABSENT is no structured content.
    value: Any = NOT_CHECKED
    # Whether the output schema is a union, which is wrapped even if the value is an object.
    is_union: bool = False
    blocks: Sequence[str] | None = None
    meta: Mapping[str, Any] | None = None
    # Part of the text of a failed result, of the fault in the arguments, of an error.
    fails: str | None = None
    faulty: str | None = None
    refused: tuple[int, str] | None = None
    progress: Sequence[tuple[float, float | None, str | None]] | None = None
    logs: Sequence[tuple[str, Any]] | None = None
    # The texts of the questions, in their order.
    asked: Sequence[str] = ()

    async def take(self, caller: Caller) -> None:
        """Call it."""
        caller.heard.clear()
        try:
            outcome = await self._send(caller)
        except Failure as failure:
            code, part = self.refused or (INVALID_PARAMS, self.faulty)
            if part is None or (self.faulty and caller.revision > "2025-06-18"):
                raise
            equal(failure.code, code, "code")
            contains(failure.message, part)
        else:
            equal(self.refused, None, "error")
            self._compare(outcome, caller)
        equal(caller.heard.asked, list(self.asked), "questions")
        await same(caller.heard.progress, self.progress, "progress")
        await same(caller.heard.logs, self.logs, "logs")

    async def _send(self, caller: Caller) -> Outcome:
        return await caller.call(self.tool, self.arguments)

    def _compare(self, outcome: Outcome, caller: Caller) -> None:
        part = self.fails or self.faulty
        equal(outcome.is_error, part is not None, f"failed: {outcome.text!r}; failure")
        if part is not None:
            contains(outcome.text, part)
            return
        if self.text is not None:
            equal(outcome.text, self.text, "text")
        if self.blocks is not None:
            equal(outcome.blocks, list(self.blocks), "blocks")
        if self.value is not NOT_CHECKED:
            sent = self._structured(caller.revision)
            equal(outcome.structured, sent, "structured content")
            if outcome.value is not NOT_CHECKED and self.value is not ABSENT:
                equal(outcome.value, self.value, "value")
        if outcome.value is not NOT_CHECKED and outcome.structured is ABSENT and outcome.text:
            equal(outcome.value, outcome.text, "value of a text")
        for key, value in (self.meta or {}).items():
            equal((outcome.meta or {}).get(key), value, key)

    def _structured(self, revision: str) -> Any:
        is_object = isinstance(self.value, dict) and not self.is_union
        if self.value is ABSENT or is_object or revision >= "2026-07-28":
            return self.value
        return {"result": self.value}


@dataclass(frozen=True)
class CallAsTask(Call):
    """A tool is called as a task."""

    async def _send(self, caller: Caller) -> Outcome:
        return await caller.call_as_task(self.tool, self.arguments)


@dataclass(frozen=True)
class ReadResource:
    """A resource is read; without content it does not exist."""

    uri: str
    content: str | bytes | None = None
    mime_type: Any = NOT_CHECKED

    async def take(self, caller: Caller) -> None:
        """Read it."""
        try:
            mime_type, content = await caller.read(self.uri)
        except Failure as failure:
            missing = -32602 if caller.revision >= "2026-07-28" else -32002
            equal((failure.code, self.content), (missing, None), f"{failure.message}: error")
            return
        equal(content, self.content, self.uri)
        if self.mime_type is not NOT_CHECKED:
            equal(mime_type, self.mime_type, "MIME type")


@dataclass(frozen=True)
class GetPrompt:
    """A prompt is filled in; without messages it is refused."""

    name: str
    arguments: dict[str, str] = field(default_factory=dict)
    messages: Sequence[tuple[str, str]] = ()

    async def take(self, caller: Caller) -> None:
        """Get it."""
        try:
            messages = await caller.prompt(self.name, self.arguments)
        except Failure as failure:
            equal((failure.code, list(self.messages)), (INVALID_PARAMS, []), failure.message)
        else:
            equal(messages, list(self.messages), self.name)


@dataclass(frozen=True)
class Complete:
    """An argument is completed."""

    what: Literal["prompt", "resource"]
    of: str
    argument: str
    typed: str
    values: Sequence[str]
    known: Mapping[str, str] | None = None

    async def take(self, caller: Caller) -> None:
        """Complete it."""
        argument = (self.argument, self.typed)
        values = await caller.complete(self.what, self.of, argument, self.known)
        equal(values, list(self.values), self.argument)


@dataclass(frozen=True)
class Watch:
    """Changes of lists and resources are notified while steps are taken."""

    steps: Sequence[Step]
    changes: Sequence[Change]
    lists: Sequence[str] = ()
    uris: Sequence[str] = ()

    async def take(self, caller: Caller) -> None:
        """Subscribe, take the steps, and wait for each change."""
        async with caller.watch(self.lists, self.uris) as seen:
            for step in self.steps:
                await step.take(caller)
            await arrived(lambda: set(self.changes) <= set(seen()), seen)
            equal(set(seen()), set(self.changes), "changes")


Step: TypeAlias = ListNames | Call | CallAsTask | ReadResource | GetPrompt | Complete | Watch


class Conversation(NamedTuple):
    """Steps with one server, after those of the conversations before it."""

    server: str
    title: str
    steps: Sequence[Step]
    answers: Mapping[str, Any] = {}
    since: str = "2025-06-18"
    # Capabilities that the client does not declare.
    without: frozenset[str] = frozenset()
    # Whether it needs tasks, which the official client does not have.
    tasks: bool = False


async def play(conversation: Conversation, caller: Caller) -> None:
    """Take the steps of a conversation.

    Raises:
        AssertionError: an answer is not as expected; its notes name the step.
    """
    caller.answers = conversation.answers
    for number, step in enumerate(conversation.steps, 1):
        try:
            await step.take(caller)
        except Exception as error:
            error.add_note(f"{conversation.server}: {conversation.title}: step {number}: {step}")
            raise


async def arrived(condition: Callable[[], bool], seen: Callable[[], Any]) -> None:
    """Wait until something has come."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"after {TIMEOUT_S:g} s there is only {seen()!r}") from None


async def same(heard: Sequence[Any], wanted: Sequence[Any] | None, what: str) -> None:
    """Compare what was heard with what is expected, once there is as much."""
    if wanted is not None:
        await arrived(lambda: len(heard) >= len(wanted), lambda: heard)
        equal(heard, list(wanted), what)


def equal(got: Any, wanted: Any, what: str) -> None:
    """Compare two values."""
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, expected {wanted!r}")


def contains(text: str, part: str) -> None:
    """Look for a part of a text."""
    if part not in text:
        raise AssertionError(f"there is no {part!r} in {text!r}")
