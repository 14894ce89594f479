"""The official SDK for Python, `mcp` 1: a `ClientSession` over the streams of a transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from .protocol import Target, drive
from .session import SessionVerbs


def _reference(name: str) -> types.PromptReference:
    return types.PromptReference(type="ref/prompt", name=name)


async def _elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"city": "Oslo"})


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[SessionVerbs]:
    """Open a session."""
    logs: list[str] = []

    async def on_log(params: Any) -> None:
        logs.append(params.level)

    command, *arguments = target.command or [""]
    transport = (
        streamable_http_client(target.url)
        if target.url
        else stdio_client(StdioServerParameters(command=command, args=arguments))
    )
    async with (
        transport as (reads, writes, *_),
        ClientSession(
            reads, writes, logging_callback=on_log, elicitation_callback=_elicit
        ) as session,
    ):
        await session.initialize()
        yield SessionVerbs(session, _reference, logs)


if __name__ == "__main__":
    drive(opened)
