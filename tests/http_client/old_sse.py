"""The HTTP+SSE of 2024-11-05 as a client for tests speaks it."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin, urlsplit

from tests.http_client.base import EVENTS, JSON, HttpTransport
from tests.http_client.connection import Exchange, HttpFault, within_step
from tests.http_client.messages import messages_of, parse
from trunkline.errors import TransportError
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.jsonrpc.framing.sse import Event, EventReader
from trunkline.jsonrpc.policy import Policy


class OldSseTransport(HttpTransport):
    """The HTTP+SSE of 2024-11-05: one stream by GET, and POSTs to the place that it names."""

    def __init__(self, url: str, policy: Policy) -> None:
        super().__init__(url, policy, "sse")
        self._target = ""
        self._has_target = asyncio.Event()
        self._events = EventReader(self._limit)

    async def _open(self) -> None:
        stream = Exchange("GET", self.url.path, {"Accept": EVENTS})
        stream.on_data = self._receive_events
        stream.on_end = self._ended
        await self._pool.send(stream)
        await within_step(stream.has_head.wait(), "the head of the stream")
        if stream.status != 200 or stream.content_type != EVENTS:
            raise TransportError(f"GET was answered {stream.status} {stream.content_type!r}")
        await within_step(self._has_target.wait(), "the event that says where to POST")
        await self._pool.warm_up()

    def _receive_events(self, data: bytes) -> None:
        for event in self._events.feed(data):
            if isinstance(event, Event) and event.event == "endpoint":
                there = urljoin(str(self.url), event.data)
                parts = urlsplit(there)
                if parts.netloc != self.url.authority:
                    self._report(TransportError("the endpoint is at another origin"))
                    return
                self._target = f"{parts.path}?{parts.query}" if parts.query else parts.path
                self._has_target.set()
            elif isinstance(event, Event) and event.event == "message":
                self._deliver(event.data.encode())
            elif isinstance(event, Oversize):
                self._deliver(event)

    def _ended(self, fault: HttpFault | None) -> None:
        if self._closing is None:
            self._report(fault)

    async def _post(self, frame: bytes, spoken: str | None) -> None:
        post = Exchange("POST", self._target, {"Content-Type": JSON}, frame)
        await self._pool.send(post)
        await within_step(post.is_over.wait(), "the answer to a POST")
        if post.status >= 400:
            if not messages_of(parse(bytes(post.body))):
                raise TransportError(f"POST was answered with the HTTP status {post.status}")
            self._deliver(bytes(post.body))
