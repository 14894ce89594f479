"""An extension with two methods, and a request to a server that has it."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from trunkline import Context, Extension, Server

STARS = "com.example/stars"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class Star(Struct):
    name: str


def stars(**options: Any) -> Extension:
    extension = Extension(STARS, result_types=("starred",), **options)

    @extension.method("stars/list")
    async def list_stars(context: Context, limit: int = 10) -> list[Star]:
        return [Star(f"star {number}") for number in range(min(limit, 2))]

    @extension.method("stars/count", always=True)
    async def count() -> dict[str, int]:
        return {"count": 2}

    return extension


def meta(**extensions: Any) -> dict[str, Any]:
    """`_meta` of a request that declares extensions, by the last part of their ids."""
    ids = {f"com.example/{name}": settings for name, settings in extensions.items()}
    return {**META, CAPABILITIES: {"extensions": ids}}


async def ask(app: Server, method: str, revision: str = PER_REQUEST, **params: Any) -> Any:
    async with connected(app, revision) as wire:
        wire.ask(1, method, params)
        return await wire.answer(1)


def reply_to(app: Server, method: str, revision: str = PER_REQUEST, **params: Any) -> Any:
    if revision == PER_REQUEST:
        params.setdefault("_meta", META)
    return asyncio.run(ask(app, method, revision, **params))
