"""The official SDK for Python, `mcp` 2: its `Client`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

from .protocol import Target, drive
from .session import SessionVerbs


def _reference(name: str) -> types.PromptReference:
    return types.PromptReference(name=name)


async def _elicit(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"city": "Oslo"})


@asynccontextmanager
async def opened(target: Target) -> AsyncIterator[SessionVerbs]:
    """Open a connection in the era."""
    logs: list[str] = []

    async def on_log(params: Any) -> None:
        logs.append(params.level)

    command, *arguments = target.command or [""]
    client = Client(
        target.url or StdioServerParameters(command=command, args=arguments),
        mode="auto" if target.is_modern else "legacy",
        logging_callback=on_log,
        elicitation_callback=_elicit,
    )
    async with client:
        yield SessionVerbs(client, _reference, logs)


if __name__ == "__main__":
    drive(opened)
