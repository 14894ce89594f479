"""Keeps the client of a stdio server connected while workers are replaced.

The client has started the supervisor and talks to its standard streams. Frames are forwarded
unchanged in both directions; `session_state` reads as much of them as routing needs.

The rules that live here, and only here:

* A request is answered by the worker that received it, or with an error when that worker ends:
  no request stays without an answer.
* A client initializes once. For each later worker its handshake, log level and subscriptions are
  replayed, and the answers are consumed here.
* A worker that negotiates another revision is rejected.
* After a reload the client is sent list_changed notifications, where it may receive them.
* The client is read only while there is room for its messages. Flow control is updated on every
  change: a worker that exits must not leave the client paused.
* What a worker wrote before it exited reaches the client, however slowly that reads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import decode, encode

from ...errors import TransportError
from ...jsonrpc.framing.framing import BadHeader, Oversize
from ...jsonrpc.limits import Limits
from ...jsonrpc.policy import Policy
from ...transports.base import HIGH_WATER, ignore
from ...transports.framed import FramedTransport
from ...transports.io.fd import FdReader, FdWriter
from ...transports.stdio.server import StdioServer
from ..exit_codes import SUCCESS, USAGE_ERROR
from .session_state import (
    NegotiatedFields,
    ReplayedSession,
    RequestKey,
    RoutedMessage,
    cancelled_request,
    decode_as,
    error_response,
    message,
    owned,
    parse_heads,
    request_key,
)
from .supervisor import WorkerFront, WorkerRejected, notify

if TYPE_CHECKING:
    from ...transports.base import Frame
    from .supervisor import Worker
    from .worker import WorkerReport

__all__ = ["StdioFront"]

_INTERNAL_ERROR: Final = -32603
_PARSE_ERROR: Final = -32700
_RELOADED: Final = "the server was reloaded; send the request again"
_STOPPED: Final = "the server was stopped"
_ENDED: Final = "the server has exited; it is restarted when one of its files changes"
# For a new worker to answer a replayed request. It is loaded by then; its lifespan is not.
_REPLY_TIMEOUT_S: Final = 30.0
# For an old worker to have read its input: a handler may block its event loop.
_PING_TIMEOUT_S: Final = 5.0
# For the output of a worker that has exited to end: its children may keep the pipe open. Time
# in which the client does not read is not counted.
_DRAIN_TIMEOUT_S: Final = 1.0
# Rounds of that timeout at shutdown, because the client may never finish reading.
_MAX_DRAIN_ROUNDS: Final = 10
# For a worker to end after the client has gone, beyond the `linger` of the command line; its own
# limits are far shorter.
_CLIENT_GONE_TIMEOUT_S: Final = 10.0
# For a worker to take the rest of its input.
_FLUSH_TIMEOUT_S: Final = 1.0
# Frames held back while one worker replaces another.
_MAX_HELD_BYTES: Final = HIGH_WATER


# A worker


class _WorkerPipes(FramedTransport):
    """Transport to a worker: frames over two pipes."""

    def __init__(self, policy: Policy, pipes: tuple[int, int]) -> None:
        super().__init__(policy, "stdio")
        self._fds = list(pipes)
        # Done when the worker has closed its output.
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self) -> None:
        """Start reading."""
        loop = asyncio.get_running_loop()
        self._reader = FdReader(loop, self._fds[0], self._receive, self._input_ended)
        self._writer = FdWriter(loop, self._fds[1], self._drained, self._output_broke)
        self._is_open = True

    def _input_ended(self, error: OSError | None) -> None:
        self._receive_end()
        if not self.ended.done():
            self.ended.set_result(None)
        self._report(None)

    def _output_broke(self, error: OSError) -> None:
        self._drained()  # the rest is dropped; `Worker.ended` reports the exit

    def _output(self) -> int:
        return self._fds[1] if len(self._fds) > 1 else -1

    def _end_output(self) -> None:
        if self._writer is not None and len(self._fds) > 1:
            self._writer.close()
            os.close(self._fds.pop())

    async def _end(self) -> None:
        try:
            if self._writer is not None:
                await self._writer.finish(_FLUSH_TIMEOUT_S)
        finally:
            self._end_output()
            if self._reader is not None:
                self._reader.close()
            while self._fds:
                os.close(self._fds.pop())
            self._report(None)


class _WorkerConnection:
    """A worker, and the open requests between it and the client."""

    def __init__(self, worker: Worker, pipes: _WorkerPipes) -> None:
        self.worker = worker
        self.pipes = pipes
        # Requests of the client, with their id and batch number.
        self.client_requests: dict[RequestKey | None, tuple[Any, int | None]] = {}
        # Requests to the client.
        self.server_requests: set[RequestKey | None] = set()
        # Replayed requests and pings.
        self.own_requests: dict[str, asyncio.Future[RoutedMessage]] = {}
        # Paused while the client is slow to read; `pauses` counts how often.
        self.is_paused = False
        self.pauses = 0
        self._ids = 0

    @property
    def is_full(self) -> bool:
        """True if it has not read enough of its input."""
        return self.pipes.backlog > HIGH_WATER

    def pause(self) -> None:
        """Stop reading its output."""
        if not self.is_paused:
            self.is_paused = True
            self.pauses += 1
            self.pipes.pause()

    def resume(self) -> None:
        """Continue reading its output."""
        if self.is_paused:
            self.is_paused = False
            self.pipes.resume()

    def send(self, frame: bytes) -> None:
        self.pipes.send(frame)

    async def request(self, frame: bytes, seconds: float) -> RoutedMessage:
        """Send a frame as a request with an id of our own, and return the answer.

        Raises:
            WorkerRejected: no answer came.
        """
        self._ids += 1
        id = f"trunkline-reload-{self._ids}"
        answer: asyncio.Future[RoutedMessage] = asyncio.get_running_loop().create_future()
        self.own_requests[id] = answer
        members = decode(frame, type=dict[str, Raw])
        self.send(encode({**members, "id": Raw(encode(id))}))
        ended = self.worker.ended
        await asyncio.wait((answer, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self.own_requests.pop(id, None)
        if answer.done():
            return answer.result()
        if ended.done():
            raise WorkerRejected(f"the server exited with status {ended.result()}")
        raise WorkerRejected(f"the server did not answer within {seconds:g} s")


# The client


class StdioFront(WorkerFront):
    """Keeps the client connected and forwards its messages to the current worker."""

    def __init__(self, framing: str | None, linger: float | None = None) -> None:
        super().__init__()
        self._framing = framing
        self._gone_timeout = _CLIENT_GONE_TIMEOUT_S + (linger or 0)
        # Called with an exit status when the client has gone.
        self.on_end: Callable[[int], object] = ignore
        self._host: StdioServer | None = None
        self._current: _WorkerConnection | None = None
        # Replaced or exited workers whose output has not ended.
        self._retiring: set[_WorkerConnection] = set()
        # The worker that is about to take over.
        self._next: _WorkerConnection | None = None
        self._session: ReplayedSession | None = None
        # Frames of the client while one worker replaces another.
        self._held: list[bytes] | None = None
        self._held_size = 0
        self._is_client_paused = False
        self._is_closing = False
        # Whether the client has ended its output: then nothing more is answered for a worker.
        self._has_client_closed = False
        self._batches = 0
        self._last_status = SUCCESS

    async def serve_without_worker(self) -> None:
        """Connect the client without a worker; its requests are answered with an error."""
        await self._connect_client(self._framing or "detect", Limits().stdio)

    async def _connect_client(self, framing: str, size: int | None) -> None:
        if self._host is not None:
            return
        policy = Policy(framing=framing, limits=Limits(stdio=size))  # type: ignore[arg-type]  # one of its names
        self._host = host = StdioServer(policy)
        host.on_message = self._receive_from_client
        host.on_error = self._client_gone
        host.on_drained = self._client_drained
        try:
            await host.connect()
        except TransportError as error:
            notify(str(error))
            self.on_end(USAGE_ERROR)

    # -- replacing workers -----------------------------------------------------------------

    async def adopt(self, worker: Worker, report: WorkerReport) -> None:
        """Let a worker take over after the session was replayed to it.

        Raises:
            WorkerRejected: it cannot take over; the one before continues.
        """
        if worker.pipes is None or worker.ended.done():
            raise WorkerRejected("the server has exited")
        self._next = connection = await self._connect_worker(worker, worker.pipes, report)
        try:
            session = await self._initialize_worker(connection)
            self._held = []
            if session is not None:
                await self._replay(connection, session)
            if worker.ended.done():
                # It exited after its last answer, which `request` cannot see.
                raise WorkerRejected(f"the server exited with status {worker.ended.result()}")
        except BaseException:  # rejected, or cancelled
            self._next = None
            self._release_held()
            await connection.pipes.close()
            raise
        before, self._current, self._next = self._current, connection, None
        if before is not None:
            self._retiring.add(before)
        await self._connect_client(report.framing, report.size)
        self._release_held()
        for method in [] if session is None else session.changed_lists():
            self._send_to_client(message(method=method))
        if before is not None:
            self._spawn(self._retire(before))

    async def _connect_worker(
        self, worker: Worker, pipes: tuple[int, int], report: WorkerReport
    ) -> _WorkerConnection:
        # A worker that detects the framing gets newlines. The size of its output is not limited.
        framing: Any = "newline" if report.framing == "detect" else report.framing
        worker.pipes = None
        way = _WorkerPipes(Policy(framing=framing, limits=Limits(stdio=None)), pipes)
        connection = _WorkerConnection(worker, way)
        way.on_message = lambda frame, _: self._receive_from_worker(connection, frame)
        way.on_drained = self._update_flow_control
        await way.connect()
        return connection

    async def _initialize_worker(self, connection: _WorkerConnection) -> ReplayedSession | None:
        """Wait until a worker serves, and replay the handshake; return the session.

        Meanwhile the worker before serves.
        """
        if self._session is None and self._current is not None:
            # Any answer shows that it serves.
            await connection.request(message(method="ping"), _REPLY_TIMEOUT_S)
        if self._session is not None and self._session.revision is None:
            await self._wait_for_handshake(self._session)
        session = self._session
        if session is None:
            return None
        answer = await connection.request(session.opening, _REPLY_TIMEOUT_S)
        if answer.result is UNSET:
            raise WorkerRejected("the server refuses the handshake of the client")
        agreed = decode_as(answer.result, NegotiatedFields).protocolVersion
        if agreed != session.revision:
            raise WorkerRejected(
                f"the server negotiates {agreed!r}, and the client speaks {session.revision!r}"
            )
        return session

    async def _wait_for_handshake(self, session: ReplayedSession) -> None:
        """Wait for the answer to an open initialize: it names the revision."""
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                await session.is_over.wait()
        except TimeoutError:
            raise WorkerRejected("the previous worker has not answered initialize") from None

    async def _replay(self, connection: _WorkerConnection, session: ReplayedSession) -> None:
        if session.ready is not None:
            connection.send(session.ready)
        for frame in session.requests_to_replay():
            await connection.request(frame, _REPLY_TIMEOUT_S)

    def _release_held(self) -> None:
        """Forward the held frames to the current worker."""
        held, self._held = self._held, None
        self._held_size = 0
        for frame in held or ():
            self._forward(frame)
        self._update_flow_control()

    async def _retire(self, connection: _WorkerConnection) -> None:
        """Let a worker finish its open requests, then stop it."""
        try:
            # Once it has read this, its earlier requests have started and finish.
            await connection.request(message(method="ping"), _PING_TIMEOUT_S)
        except WorkerRejected:
            pass  # its event loop is blocked, or it has exited
        connection.worker.stop()
        await self._finish_worker(connection, _RELOADED)

    async def _finish_worker(self, connection: _WorkerConnection, why: str) -> None:
        """Wait for a worker to exit, forward its last output, fail its open requests."""
        await connection.worker.end()
        await self._drain_worker(connection)
        self._retiring.discard(connection)
        self._fail_open_requests(connection, why)
        await connection.pipes.close()

    async def _drain_worker(self, connection: _WorkerConnection) -> None:
        """Forward the rest of a worker's output, as fast as the client reads it."""
        rounds = _MAX_DRAIN_ROUNDS
        while not connection.pipes.ended.done() and rounds:
            pauses, left = connection.pauses, self._client_backlog
            await asyncio.wait((connection.pipes.ended,), timeout=_DRAIN_TIMEOUT_S)
            if not connection.is_paused and connection.pauses == pauses:
                return  # a child of the worker keeps the pipe open
            if self._is_closing:
                is_stuck = (
                    connection.is_paused
                    and connection.pauses == pauses
                    and self._client_backlog >= left
                )
                rounds = 0 if is_stuck else rounds - 1

    @property
    def _client_backlog(self) -> int:
        """Bytes that the client has not read yet."""
        return 0 if self._host is None else self._host.backlog

    def on_worker_exit(self, worker: Worker, status: int) -> bool:
        """Handle the exit of a worker; return True if none is left."""
        connection = self._current
        if connection is None or connection.worker is not worker:
            return False
        self._current = None
        self._retiring.add(connection)
        self._last_status = status
        self._spawn(self._finish_worker(connection, _ENDED))
        self._update_flow_control()
        return True

    async def close(self) -> None:
        """Stop all workers, send the client their last output, and close."""
        self._is_closing = True
        connection, self._current = self._current, None
        if connection is not None:
            self._retiring.add(connection)
            connection.worker.stop()
            self._spawn(self._finish_worker(connection, _STOPPED))
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._host is not None:
            await self._host.close()

    # -- messages of the client --------------------------------------------------------------

    def _receive_from_client(self, frame: Frame, _: Any) -> None:
        if isinstance(frame, Oversize):
            # Padded to be too large for the worker as well, which answers with the error.
            frame = frame.head.ljust(frame.limit + 1)
        elif not isinstance(frame, bytes):
            self._send_to_client(encode(error_response(None, _PARSE_ERROR, "Parse error")))
            if isinstance(frame, BadHeader) and frame.lost:
                self._client_gone(None)
            return
        self._forward(frame)

    def _forward(self, frame: bytes) -> None:
        heads, is_batch = parse_heads(frame)
        connections = self._recipients(heads)
        if self._held is not None and self._current in connections:
            self._held.append(frame)
            self._held_size += len(frame)
            self._update_flow_control()
            return
        self._track(heads, frame, is_batch)
        for connection in connections:
            if connection is None:
                self._refuse(heads, is_batch)
                continue
            connection.send(frame)
        self._update_flow_control()

    def _recipients(self, heads: list[RoutedMessage]) -> list[_WorkerConnection | None]:
        """Return the workers for a frame: a reply goes to the worker that sent the request."""
        head = heads[0] if len(heads) == 1 else None
        if head is not None and self._retiring:
            if head.method is UNSET:
                key = request_key(head.id)
            elif head.method == "notifications/cancelled":
                key = cancelled_request(head)
            elif head.method == "notifications/progress":
                # Progress is dropped for a worker that does not read.
                return [self._current, *(each for each in self._retiring if not each.is_full)]
            else:
                return [self._current]
            for connection in self._retiring:
                if key in (
                    connection.server_requests
                    if head.method is UNSET
                    else connection.client_requests
                ):
                    return [connection]
        return [self._current]

    def _track(self, heads: list[RoutedMessage], frame: bytes, is_batch: bool) -> None:
        """Record open requests, and what has to be replayed to later workers."""
        self._batches += is_batch
        connection = self._current
        for head in heads:
            if head.method is UNSET:
                for each in self._connections():
                    each.server_requests.discard(request_key(head.id))
                continue
            if head.method == "notifications/cancelled":
                for each in self._connections():
                    each.client_requests.pop(cancelled_request(head), None)
            key = None if head.id is UNSET else request_key(head.id)
            if key is not None and connection is not None:
                connection.client_requests[key] = head.id, self._batches if is_batch else None
            alone = frame
            if is_batch:
                alone = message(id=head.id, method=head.method, params=head.params)
            if head.method == "initialize" and self._session is None and connection is not None:
                self._session = ReplayedSession(key, alone)
            elif self._session is not None:
                self._session.track(head, alone)

    def _connections(self) -> list[_WorkerConnection]:
        return [*([] if self._current is None else [self._current]), *self._retiring]

    def _refuse(self, heads: list[RoutedMessage], is_batch: bool) -> None:
        """Answer requests with an error while no worker serves."""
        asked = [head.id for head in heads if head.method is not UNSET and head.id is not UNSET]
        answers = [error_response(id, _INTERNAL_ERROR, _ENDED) for id in asked if request_key(id)]
        if answers:
            self._send_to_client(encode(answers if is_batch else answers[0]))

    def _client_gone(self, why: TransportError | None) -> None:
        if why is not None:
            self._client_drained()  # what it did not read is dropped
        self._has_client_closed = True
        self._spawn(self._end_with_client())

    async def _end_with_client(self) -> None:
        """Close the input of the worker, and end when it has exited."""
        connection = self._current
        if connection is not None:
            connection.worker.is_stopping = True
            self._spawn(connection.pipes.finish())
            # It still answers earlier requests, then exits by itself.
            await asyncio.wait((connection.worker.ended,), timeout=self._gone_timeout)
            if connection.worker.ended.done():
                self._last_status = connection.worker.ended.result()
        for each in self._retiring:
            each.worker.stop()  # their answers cannot be delivered
        self.on_end(self._last_status)

    # -- messages of workers -----------------------------------------------------------------

    def _receive_from_worker(self, connection: _WorkerConnection, frame: Frame) -> None:
        if not isinstance(frame, bytes):
            return  # a last frame that was cut off
        heads, is_batch = parse_heads(frame)
        for head in heads:
            if head.method is not UNSET:
                if head.method == "notifications/cancelled":
                    connection.server_requests.discard(cancelled_request(head))
                elif head.id is not UNSET:
                    connection.server_requests.add(request_key(head.id))
            elif not is_batch and isinstance(head.id, str) and head.id in connection.own_requests:
                answer = connection.own_requests[head.id]
                if not answer.done():
                    answer.set_result(
                        RoutedMessage(
                            head.id,
                            UNSET,
                            UNSET,
                            owned(head.result),
                        )
                    )
                return
            else:
                self._on_reply(connection, head)
        if self._host is not None:
            self._host.send(frame)
            if self._client_backlog > HIGH_WATER:
                connection.pause()

    def _on_reply(self, connection: _WorkerConnection, head: RoutedMessage) -> None:
        key = request_key(head.id)
        if key is None:
            return
        connection.client_requests.pop(key, None)
        session = self._session
        if session is not None and session.key == key and not session.is_over.is_set():
            session.is_over.set()
            if head.result is UNSET:
                self._session = None  # the client may initialize again
                return
            agreed = decode_as(head.result, NegotiatedFields)
            session.revision, session.capabilities = agreed.protocolVersion, agreed.capabilities

    def _fail_open_requests(self, connection: _WorkerConnection, why: str) -> None:
        """Answer the open requests of a worker that has exited with an error.

        A client that has ended its output gets no answer, as from the worker itself.
        """
        batches: dict[int, list[dict[str, Any]]] = {}
        session = self._session
        for key, (id, batch) in connection.client_requests.items():
            answer = error_response(id, _INTERNAL_ERROR, why)
            if session is not None and session.key == key and session.revision is None:
                session.is_over.set()
                self._session = None
            if self._has_client_closed:
                continue
            if batch is None:
                self._send_to_client(encode(answer))
            else:
                batches.setdefault(batch, []).append(answer)
        for answers in batches.values():
            self._send_to_client(encode(answers))
        connection.client_requests.clear()

    # -- flow control ------------------------------------------------------------------------

    def _send_to_client(self, frame: bytes) -> None:
        if self._host is not None:
            self._host.send(frame)

    def _client_drained(self) -> None:
        for connection in (*self._connections(), self._next):
            if connection is not None:
                connection.resume()

    @property
    def _has_room(self) -> bool:
        """True if the next message of the client can be forwarded or held."""
        connection = self._current
        return self._held_size <= _MAX_HELD_BYTES and (connection is None or not connection.is_full)

    def _update_flow_control(self) -> None:
        """Pause or resume reading the client; called after every change."""
        host, is_to_pause = self._host, not self._has_room
        if host is not None and is_to_pause != self._is_client_paused:
            self._is_client_paused = is_to_pause
            if is_to_pause:
                host.pause()
            else:
                host.resume()
