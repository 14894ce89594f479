"""Trunkline's client as a caller of conversations."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal

from tests.ports.steps import ABSENT, NOT_CHECKED, Change, Failure, Heard, Kind, Outcome
from trunkline import Client, PeerError, ToolResult
from trunkline.mcp import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    LoggingMessageNotificationParams,
    TextContent,
)

__all__ = ["OurCaller"]


class OurCaller:
    """A client of one server, and what it was sent and asked."""

    def __init__(self, target: Any, revision: str, without: frozenset[str] = frozenset()) -> None:
        callbacks: dict[str, dict[str, Any]] = {
            "elicitation": {"on_elicit": self._elicit, "on_elicit_url": self._elicit},
            "sampling": {"on_sample": self._sample},
            "roots": {"roots": ["file:///home/ada"]},
        }
        declared = [given for name, given in callbacks.items() if name not in without]
        self.client = Client(
            target,
            revision=revision,
            validate="raise",
            on_log=lambda log: self.heard.logs.append(_logged(log)),
            on_progress=lambda *report: self.heard.progress.append(report),
            logging_level="info",
            **{name: value for given in declared for name, value in given.items()},
        )
        self.revision = revision
        self.heard = Heard()
        self.answers: Mapping[str, Any] = {}

    async def __aenter__(self) -> OurCaller:
        await self.client.connect()
        if self.client.era == "handshake":
            await self.client.set_logging_level("info")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    async def names(self, kind: Kind) -> list[str]:
        if kind == "tools":
            return [each.name for each in await self.client.list_tools()]
        if kind == "prompts":
            return [each.name for each in await self.client.list_prompts()]
        if kind == "resources":
            return [each.uri for each in await self.client.list_resources()]
        return [each.uri_template for each in await self.client.list_resource_templates()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        with _failures():
            return _outcome(await self.client.call_tool(tool, arguments))

    async def call_as_task(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        with _failures():
            task = await self.client.call_tool_as_task(tool, arguments)
            return _outcome(await task.result())

    async def read(self, uri: str) -> tuple[str | None, str | bytes]:
        with _failures():
            (found,) = (await self.client.read_resource(uri)).contents
        content = b64decode(found.blob) if found.blob is not None else found.text
        assert content is not None
        return found.mime_type, content

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[tuple[str, str]]:
        with _failures():
            found = await self.client.get_prompt(name, arguments)
        return [(each.role, _said(each.content)) for each in found.messages]

    async def complete(
        self, what: Literal["prompt", "resource"], of: str, argument: tuple[str, str], known: Any
    ) -> list[str]:
        with _failures():
            of_what: dict[str, Any] = {what: of}
            found = await self.client.complete(*argument, **of_what, context=known)
        return list(found.values)

    @asynccontextmanager
    async def watch(
        self, lists: Sequence[str], uris: Sequence[str]
    ) -> AsyncIterator[Callable[[], Sequence[Change]]]:
        seen: list[Change] = []
        wanted: dict[str, Any] = {**dict.fromkeys(lists, True), "uris": uris}
        async with self.client.listen(**wanted) as changes:

            async def follow() -> None:
                async for change in changes:
                    seen.append(change.uri or change.kind)

            following = asyncio.create_task(follow())
            try:
                yield lambda: seen
            finally:
                following.cancel()
                with suppress(asyncio.CancelledError):
                    await following

    async def _elicit(self, question: ElicitRequestParams) -> Any:
        self.heard.asked.append(question.message)
        return self.answers[question.message]

    async def _sample(self, question: CreateMessageRequestParams) -> CreateMessageResult:
        content = question.messages[0].content
        assert isinstance(content, TextContent)
        self.heard.asked.append(content.text)
        return CreateMessageResult(TextContent(self.answers[content.text]), "scripted", "assistant")


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except PeerError as error:
        raise Failure(error.code, error.message, error.data) from error


def _outcome(result: ToolResult[Any]) -> Outcome:
    return Outcome(
        bool(result.is_error),
        "".join(each.text for each in result.content if isinstance(each, TextContent)),
        [_block(each) for each in result.content],
        result.structured_content if result.has_value else ABSENT,
        NOT_CHECKED if result.is_error else result.value,
        result.meta,
    )


def _block(block: Any) -> str:
    inner = getattr(block, "resource", block)
    mime_type = getattr(inner, "mime_type", None)
    return f"{block.type} {mime_type}" if mime_type else str(block.type)


def _said(block: Any) -> str:
    return str(block.text) if isinstance(block, TextContent) else str(block.mime_type)


def _logged(log: LoggingMessageNotificationParams) -> tuple[str, Any]:
    return log.level, log.data
