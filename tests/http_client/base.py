"""What both HTTP transports of the test client have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tests.http_client.connection import STEP_TIMEOUT_S, Pool, Url
from trunkline.errors import TransportError
from trunkline.jsonrpc.limits import TransportName
from trunkline.jsonrpc.policy import Policy
from trunkline.transports.base import Frame, ignore

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


class HttpTransport:
    """A queue of messages that are sent in order, and one end."""

    def __init__(self, url: str, policy: Policy, name: TransportName) -> None:
        self.name: TransportName = name
        self.on_message: Callable[[Frame, Any], object] = ignore
        self.on_error: Callable[[TransportError | None], object] = ignore
        self.on_drained: Callable[[], object] = ignore
        # The revision that a script speaks when it sends, where its messages do not tell.
        self.speaks: Callable[[], str | None] = lambda: None
        self.backlog = 0
        self.written = 0
        self.url = Url.parse(url)
        self._limit = policy.limits.message_size(name)
        self._pool = Pool(self.url)
        self._queue: asyncio.Queue[tuple[bytes, str | None] | None] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None
        # Streams that are resumed, and such.
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_connected = False
        self._is_reported = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        return self._sending is not None and not self._is_reported and self._closing is None

    async def connect(self) -> None:
        if self._has_connected:
            raise TransportError("a transport connects once")
        self._has_connected = True
        try:
            await self._open()
        except BaseException:  # a cancellation too: the connections would stay
            await self._pool.close()
            raise
        self._sending = asyncio.create_task(self._send_all())

    def send(self, frame: bytes, route: Any = None) -> None:
        if self.is_connected:
            self.backlog += len(frame)
            self._queue.put_nowait((frame, self.speaks()))

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._sending is not None:
            self._queue.put_nowait(None)
            await asyncio.wait([self._sending], timeout=STEP_TIMEOUT_S)
            self._sending.cancel()
            await asyncio.wait([self._sending])
            if not self._is_reported:
                await self._end_session()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._report(None)
        await self._pool.close()

    async def _send_all(self) -> None:
        while (entry := await self._queue.get()) is not None:
            frame, spoken = entry
            try:
                if not self._is_reported:
                    await self._post(frame, spoken)
            except TransportError as error:
                self._report(error)
            self.backlog -= len(frame)
            self.written += len(frame)

    def _report(self, error: TransportError | None) -> None:
        """Report the end, once."""
        if self._is_reported or not self._has_connected:
            return
        self._is_reported = True
        self.on_error(error)

    def _deliver(self, frame: Frame) -> None:
        if not self._is_reported:
            self.on_message(frame, None)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except TransportError as error:
                self._report(error)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # For each kind

    async def _open(self) -> None:
        raise NotImplementedError

    async def _post(self, frame: bytes, spoken: str | None) -> None:
        raise NotImplementedError

    async def _end_session(self) -> None:
        """End the session, if there is one."""
