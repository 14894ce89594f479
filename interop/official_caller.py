"""The client of the official SDK as a caller of the conversations in `tests/ports`."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, TextIO

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from tests.ports.steps import (
    ABSENT,
    Change,
    Conversation,
    Failure,
    Heard,
    Kind,
    Outcome,
    play,
)
from trunkline.spec.revisions import V2026_07_28, Window

from .checks import Check, Checks, Place

__all__ = ["checks_of", "opened"]

LISTED = {
    "tools": ("list_tools", "tools", "name"),
    "prompts": ("list_prompts", "prompts", "name"),
    "resources": ("list_resources", "resources", "uri"),
    "templates": ("list_resource_templates", "resource_templates", "uri_template"),
}


class OfficialCaller:
    """A client of one server, and what it was sent and asked."""

    def __init__(self) -> None:
        self.client: Any = None
        self.revision = ""
        self.heard = Heard()
        self.answers: Mapping[str, Any] = {}
        self.changes: list[Change] = []

    async def names(self, kind: Kind) -> list[str]:
        """Return the names or URIs of all pages."""
        method, member, name = LISTED[kind]
        found: list[str] = []
        cursor = None
        while True:
            page = await getattr(self.client, method)(cursor=cursor, cache_mode="refresh")
            found += [str(getattr(each, name)) for each in getattr(page, member)]
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Call a tool."""

        async def report(progress: float, total: float | None, message: str | None) -> None:
            self.heard.progress.append((progress, total, message))

        with _failures():
            result = await self.client.call_tool(tool, arguments, progress_callback=report)
        sent = "structured_content" in result.model_fields_set
        return Outcome(
            bool(result.is_error),
            "".join(each.text for each in result.content if each.type == "text"),
            [_block(each) for each in result.content],
            result.structured_content if sent else ABSENT,
            meta=result.meta,
        )

    async def call_as_task(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Refuse: the SDK has no tasks."""
        raise NotImplementedError

    async def read(self, uri: str) -> tuple[str | None, str | bytes]:
        """Return the MIME type and the content of a resource."""
        with _failures():
            (found,) = (await self.client.read_resource(uri, cache_mode="refresh")).contents
        if isinstance(found, types.BlobResourceContents):
            return found.mime_type, b64decode(found.blob)
        return found.mime_type, found.text

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[tuple[str, str]]:
        """Return role and text, or MIME type, of each message."""
        with _failures():
            found = await self.client.get_prompt(name, arguments)
        return [
            (each.role, each.content.text if each.content.type == "text" else _mime(each.content))
            for each in found.messages
        ]

    async def complete(
        self, what: Literal["prompt", "resource"], of: str, argument: tuple[str, str], known: Any
    ) -> list[str]:
        """Return the values of an argument."""
        ref = (
            types.PromptReference(name=of)
            if what == "prompt"
            else types.ResourceTemplateReference(uri=of)
        )
        name, value = argument
        with _failures():
            found = await self.client.complete(ref, {"name": name, "value": value}, known)
        return list(found.completion.values)

    @asynccontextmanager
    async def watch(
        self, lists: Sequence[str], uris: Sequence[str]
    ) -> AsyncIterator[Callable[[], Sequence[Change]]]:
        """Subscribe to changes, as the revision does."""
        self.changes.clear()
        if self.revision < V2026_07_28:
            for uri in uris:
                await self.client.subscribe_resource(uri)
            # Changes of lists are not asked for: those of earlier steps may still be on their way.
            yield lambda: [each for each in self.changes if each in lists or "://" in each]
            for uri in uris:
                await self.client.unsubscribe_resource(uri)
            return
        wanted = {f"{each}_list_changed": True for each in lists}
        async with self.client.listen(**wanted, resource_subscriptions=list(uris)) as stream:
            following = asyncio.create_task(self._follow(stream))
            try:
                yield lambda: self.changes
            finally:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following

    async def _follow(self, stream: Any) -> None:
        async for event in stream:
            if isinstance(event, ResourceUpdated):
                self.changes.append(str(event.uri))
            else:
                self.changes.append(type(event).__name__.removesuffix("ListChanged").lower())

    async def on_message(self, message: Any) -> None:
        """Take note of a change, in a session."""
        if self.revision >= V2026_07_28:
            return
        if isinstance(message, types.ResourceUpdatedNotification):
            self.changes.append(str(message.params.uri))
        elif getattr(message, "method", "").endswith("/list_changed"):
            self.changes.append(message.method.split("/")[1])

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Take note of a line of the log."""
        self.heard.logs.append((params.level, params.data))

    async def elicit(self, context: Any, params: Any) -> types.ElicitResult:
        """Answer as the conversation says."""
        self.heard.asked.append(params.message)
        answer = self.answers[params.message]
        if isinstance(answer, str):
            return types.ElicitResult(action=answer)
        return types.ElicitResult(action="accept", content=answer)

    async def sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        """Answer as the conversation says."""
        content = params.messages[0].content
        (block,) = content if isinstance(content, list) else [content]
        self.heard.asked.append(block.text)
        text = types.TextContent(text=self.answers[block.text])
        return types.CreateMessageResult(role="assistant", content=text, model="scripted")

    async def roots(self, context: Any) -> types.ListRootsResult:
        """Return the folder that every caller has."""
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])


@asynccontextmanager
async def opened(
    place: Place, mode: str, log: TextIO, without: frozenset[str]
) -> AsyncIterator[OfficialCaller]:
    """Open a connection whose client lacks some capabilities."""
    caller = OfficialCaller()
    callbacks = {
        "elicitation": ("elicitation_callback", caller.elicit),
        "sampling": ("sampling_callback", caller.sample),
        "roots": ("list_roots_callback", caller.roots),
    }
    given = dict(each for name, each in callbacks.items() if name not in without)
    command, *arguments = place.command
    transport = stdio_client(StdioServerParameters(command=command, args=arguments), log)
    async with Client(
        transport,
        mode=mode,
        log_level="info",
        logging_callback=caller.on_log,
        message_handler=caller.on_message,
        **given,
    ) as client:
        caller.client, caller.revision = client, client.protocol_version
        if caller.revision < V2026_07_28:
            await client.set_logging_level("info")
        yield caller


def checks_of(conversations: Sequence[Conversation]) -> Checks:
    """Return a check for each conversation that the official client can hold."""
    return Checks(
        [
            Check(f"{each.server}: {each.title}", _play(each), Window(each.since))
            for each in conversations
            if not each.tasks
        ]
    )


def _play(conversation: Conversation) -> Callable[[OfficialCaller], Any]:
    return lambda caller: play(conversation, caller)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except MCPError as error:
        raise Failure(error.code, error.message, error.data) from error


def _block(block: Any) -> str:
    mime_type = _mime(getattr(block, "resource", block))
    return f"{block.type} {mime_type}" if mime_type else str(block.type)


def _mime(block: Any) -> Any:
    return getattr(block, "mime_type", None)
