"""A server that does as it is told, behind a transport that keeps what was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from trunkline.client import Client
from trunkline.errors import TransportError
from trunkline.jsonrpc import Policy
from trunkline.jsonrpc.limits import TransportName
from trunkline.spec.revisions import LATEST
from trunkline.transports.base import Frame

T = TypeVar("T")

SILENT: Any = object()
NEWEST_HANDSHAKE = "2025-11-25"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a test of ours to its end, which is not far."""

    async def bounded() -> T:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(bounded())


class Refused:
    """An error to answer with."""

    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Line:
    """A transport to a scripted server. `sent` is what the client wrote, `frames` how."""

    name: TransportName = "default"

    def __init__(self, server: Callable[[Line, dict[str, Any]], object], at_once: bool) -> None:
        self.on_message: Callable[[Frame, Any], object] = lambda frame, route: None
        self.on_error: Callable[[TransportError | None], object] = lambda error: None
        self.on_drained: Callable[[], object] = lambda: None
        self.sent: list[Any] = []
        self.frames: list[bytes] = []
        self.closed = 0
        # How many bytes the server has not read, for the client to see.
        self.backlog = 0
        self._server = server
        self._at_once = at_once
        self._state = "new"
        self._arrived = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        return self._state == "open"

    async def connect(self) -> None:
        self._state = "open"

    def send(self, frame: bytes, route: Any = None) -> None:
        if self._state != "open":
            return
        message = json.loads(frame)
        self.sent.append(message)
        self.frames.append(bytes(frame))
        self._arrived.set()
        for each in message if isinstance(message, list) else [message]:
            self._server(self, each)

    async def close(self) -> None:
        self.closed += 1
        self.end()

    def say(self, message: Any) -> None:
        """Send the client something: a message, or bytes as they are."""
        frame = message if isinstance(message, bytes) else json.dumps(message).encode()
        if self._at_once:
            self._deliver(frame)
        else:
            asyncio.get_running_loop().call_soon(self._deliver, frame)

    def _deliver(self, frame: Frame) -> None:
        if self._state == "open":
            self.on_message(frame, None)

    def end(self, error: TransportError | None = None) -> None:
        if self._state != "ended":
            was_open, self._state = self._state == "open", "ended"
            if was_open:
                self.on_error(error)

    def methods(self) -> list[str]:
        """The methods of what the client sent, replies left out."""
        return [each["method"] for each in self.sent if "method" in each]

    def last(self, method: str) -> dict[str, Any]:
        """The last message of a method."""
        return next(each for each in reversed(self.sent) if each.get("method") == method)

    async def until(self, method: str, times: int = 1) -> dict[str, Any]:
        """Wait until the client has sent something."""
        while self.methods().count(method) < times:
            self._arrived.clear()
            await self._arrived.wait()
        return self.last(method)

    async def until_reply(self, id: Any) -> dict[str, Any]:
        """Wait until the client has answered a request of the server."""
        while True:
            for each in self.sent:
                if "method" not in each and each.get("id") == id:
                    return each
            self._arrived.clear()
            await self._arrived.wait()


class Place:
    """An address with a scripted server. `answers` are results by method.

    An answer is a result, `Refused`, `SILENT`, or a function of the message that gives one.
    """

    def __init__(
        self,
        answers: dict[str, Any] | None = None,
        *,
        revision: str = LATEST,
        at_once: bool = False,
    ) -> None:
        opening: dict[str, Any] = {}
        if revision == LATEST:
            opening["server/discover"] = discovery()
        else:
            opening["server/discover"] = Refused(-32601, "Method not found")
            opening["initialize"] = initialized(revision)
        self.answers = {**opening, "ping": {}, **(answers or {})}
        self.lines: list[Line] = []
        self.policies: list[Policy] = []
        self._at_once = at_once

    @property
    def line(self) -> Line:
        return self.lines[-1]

    def transport(self, policy: Policy) -> Line:
        self.policies.append(policy)
        self.lines.append(Line(self._serve, self._at_once))
        return self.line

    def _serve(self, line: Line, message: dict[str, Any]) -> None:
        if "method" not in message or "id" not in message:
            return
        answer = self.answers.get(message["method"], Refused(-32601, "Method not found"))
        if callable(answer):
            answer = answer(message)
        if answer is SILENT:
            return
        if isinstance(answer, Refused):
            line.say({"jsonrpc": "2.0", "id": message["id"], "error": answer.error})
        else:
            line.say({"jsonrpc": "2.0", "id": message["id"], "result": answer})


def discovery(*versions: str, **members: Any) -> dict[str, Any]:
    return {
        "resultType": "complete",
        "supportedVersions": list(versions or (LATEST,)),
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
        **members,
    }


def initialized(revision: str, **members: Any) -> dict[str, Any]:
    return {
        "protocolVersion": revision,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
        **members,
    }


def text(*texts: str, **members: Any) -> dict[str, Any]:
    """A result of a tool."""
    return {"content": [{"type": "text", "text": each} for each in texts], **members}


def use(place: Place, work: Callable[[Client], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Run `work` with a client of a scripted server."""

    async def main() -> Any:
        async with Client(place, **options) as client:
            return await work(client)

    return run(main())
