"""The HTTP targets of the soak test: many clients and a flood against one server."""

from __future__ import annotations

import random
from base64 import b64decode
from types import SimpleNamespace
from typing import Any, Final

from tools.soak.flood import Flood, refusals
from tools.soak.http_clients import CONVERSATIONS, Conversation, HttpClient, HttpScene
from tools.soak.http_wire import Register
from tools.soak.limits import HTTP_CLIENTS, capacity_for
from tools.soak.load import Load
from tools.soak.old_sse_clients import OLD_SSE_CONVERSATIONS
from trunkline.spec.revisions import LATEST
from trunkline.transports.addresses import Http

__all__ = ["HttpLoad"]

_ALL: Final = CONVERSATIONS | OLD_SSE_CONVERSATIONS
# Counts that are fetched at once.
_PAGE: Final = 400_000


class Monitor:
    """A client of the newest revision that asks the server what it holds.

    It connects for each question: the server closes a connection that is idle between two.
    """

    def __init__(self, scene: HttpScene) -> None:
        self._client = HttpClient(scene, LATEST)

    async def __aenter__(self) -> Monitor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.disconnect()

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool; return an object with its `value`, as a `Client` does."""
        number = self._client.scene.register.new(runs=False)
        params = {"name": name, "arguments": arguments or {}}
        result = await self._client.request(number, "tools/call", params)
        await self._client.disconnect()
        return SimpleNamespace(value=result["structuredContent"])


class HttpLoad(Load):
    """A run of HTTP clients."""

    # So many clients would use all of the machine, which other targets share.
    max_pause = 2.0

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._register = Register()
        self._tally.refused = refusals(self._kind)

    def _scene(self) -> HttpScene:
        address = self._target.address
        if not isinstance(address, Http):
            raise TypeError(f"not an address for HTTP: {address}")
        rng = random.Random(self._rng.random())
        context = self._target.context() if self._target.ca else None
        return HttpScene(address, self._tally, self._register, rng, context)

    def _monitor(self, scene: Any) -> Any:
        return Monitor(self._scene())

    async def _first_steps(self, scene: Any, monitor: Any) -> None:
        for name, (conversation, _) in _ALL.items():
            await self._converse(name, conversation, self._scene())

    def _plan(self, scene: Any, monitor: Any) -> list[tuple[str, Any, Any]]:
        plan: list[tuple[str, Conversation, Any]] = []
        factor = HTTP_CLIENTS[self._kind] / sum(count for _, count in _ALL.values())
        for name, (conversation, count) in _ALL.items():
            workers = max(1, round(count * factor))
            plan += [(name, conversation, self._scene()) for _ in range(workers)]
        flood = Flood(capacity_for(HTTP_CLIENTS[self._kind]), self._tally.refused)
        return [*plan, ("flood", flood.visit, self._scene())]

    async def _last_steps(self, monitor: Any) -> None:
        ran = b""
        while len(ran) < len(self._register):
            page = {"start": len(ran), "count": _PAGE}
            ran += b64decode((await monitor.call_tool("executions", page)).value["result"])
        self._register.close(self._tally, ran)
