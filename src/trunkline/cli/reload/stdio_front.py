"""The client of a server on standard streams, owned while servers come and go behind it.

The client started one process and talks to it; that process is us. Frames are handed on as they
are, both ways. What is read of them, and what is remembered of the client, is in `remembered`.

The rules that live here, and only here:

* What was asked of one worker is answered by that worker, or by us in its name: nothing that a
  client asks stays without an answer.
* A client that has made a handshake makes it once. Its later servers are told of it by us, with
  the log level and the subscriptions it asked for, and what they answer is ours.
* A server that does not agree on the same revision is not put in the place of one that did.
* What can be told of the change in the client's revision is told: that lists may have changed.
* The client is read exactly while there is room for what it says, and that is looked at anew
  whenever it may have changed: a worker that goes away takes the reason to wait with it.
* What a worker wrote before it was gone reaches a client that reads, however slowly.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw
from msgspec.json import decode, encode

from ...errors import TransportError
from ...jsonrpc.framing import BadHeader, Oversize
from ...jsonrpc.limits import Limits
from ...jsonrpc.policy import Policy
from ...transports.base import HIGH_WATER, ignore
from ...transports.framed import FramedTransport
from ...transports.io.fd import FdReader, FdWriter
from ...transports.stdio.server import StdioServer
from ..exit_codes import SUCCESS, USAGE_ERROR
from .session_state import (
    MessageHead,
    NegotiatedFields,
    ReplayedSession,
    RequestKey,
    cancelled_request,
    decode_as,
    error_response,
    is_method,
    message,
    owned,
    parse_heads,
    request_key,
)
from .supervisor import WorkerRejected, notify

if TYPE_CHECKING:
    import socket

    from ...transports.base import Frame
    from .supervisor import Worker
    from .worker import WorkerReport

__all__ = ["StdioFront"]

_INTERNAL_ERROR: Final = -32603
_PARSE_ERROR: Final = -32700
_RELOADED: Final = "the server was reloaded; ask again"
_STOPPED: Final = "the server was stopped"
_ENDED: Final = "the server has ended; it is started again when one of its files changes"
# How long a new worker may take to answer what is asked on the client's behalf, in seconds. It
# has been loaded by then; what is left is its lifespan.
_REPLY_TIMEOUT_S: Final = 30.0
# How long the worker before may take to have read what it was sent: a handler may hold it up.
_PING_TIMEOUT_S: Final = 5.0
# How long what a worker wrote may take to be read, once it is gone: what it has started may keep
# the pipe open. The time in which the client does not take it does not count.
_DRAIN_TIMEOUT_S: Final = 1.0
# How often that is waited for when we are to end: a client may read slowly for ever.
_MAX_DRAIN_ROUNDS: Final = 10
# How long a worker may go on when the client has gone; its own bound is far shorter.
_CLIENT_GONE_TIMEOUT_S: Final = 10.0
# How long a worker may be waited for that does not take the rest of what was sent to it.
_FLUSH_TIMEOUT_S: Final = 1.0
# Frames that are held back while a worker is put in another's place, in bytes.
_MAX_HELD_BYTES: Final = HIGH_WATER


# A worker, as the client's other side


class _WorkerPipes(FramedTransport):
    """Frames to and from a worker."""

    def __init__(self, policy: Policy, pipes: tuple[int, int]) -> None:
        super().__init__(policy, "stdio")
        self._fds = list(pipes)
        # Done when the worker writes no more.
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self) -> None:
        """Begin to read."""
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
        self._drained()  # what was left is dropped, and that it has ended comes from elsewhere

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
    """A worker, and what is open between it and the client."""

    def __init__(self, worker: Worker, pipes: _WorkerPipes) -> None:
        self.worker = worker
        self.pipes = pipes
        # What the client has asked of it, and which batch that was part of.
        self.client_requests: dict[RequestKey | None, tuple[Any, int | None]] = {}
        # What it has asked of the client.
        self.server_requests: set[RequestKey | None] = set()
        # What we have asked of it ourselves.
        self.own_requests: dict[str, asyncio.Future[MessageHead]] = {}
        # Whether it is not read because the client is slow, and how often that was so.
        self.is_paused = False
        self.pauses = 0

    @property
    def is_full(self) -> bool:
        """Whether it has more to read than it should be sent."""
        return self.pipes.backlog > HIGH_WATER

    def pause(self) -> None:
        """Leave what it says where it is."""
        if not self.is_paused:
            self.is_paused = True
            self.pauses += 1
            self.pipes.pause()

    def resume(self) -> None:
        """Read on."""
        if self.is_paused:
            self.is_paused = False
            self.pipes.resume()

    def send(self, frame: bytes) -> None:
        self.pipes.send(frame)

    async def request(self, frame: bytes, id: str, seconds: float) -> MessageHead:
        """Ask something of our own, by a request with this id, and return the answer.

        Raises:
            WorkerRejected: there was none.
        """
        answer: asyncio.Future[MessageHead] = asyncio.get_running_loop().create_future()
        self.own_requests[id] = answer
        self.send(frame)
        ended = self.worker.ended
        await asyncio.wait((answer, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self.own_requests.pop(id, None)
        if answer.done():
            return answer.result()
        if ended.done():
            raise WorkerRejected(f"the server ended with status {ended.result()}")
        raise WorkerRejected(f"the server did not answer within {seconds:g} s")


# Standing in


class StdioFront:
    """Keeps the client, and hands what it says to the worker whose turn it is."""

    listen: list[socket.socket] | None = None

    def __init__(self, framing: str | None) -> None:
        self._framing = framing
        # Called with an exit status when the client has gone.
        self.on_end: Callable[[int], object] = ignore
        self._host: StdioServer | None = None
        self._current: _WorkerConnection | None = None
        # Those that have still something to say, though it is another's turn or nobody's.
        self._retiring: set[_WorkerConnection] = set()
        # The one that is about to take over.
        self._next: _WorkerConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: ReplayedSession | None = None
        # While one worker is put in the place of another: what came for whichever it will be.
        self._held: list[bytes] | None = None
        self._held_size = 0
        self._is_client_paused = False
        self._is_closing = False
        self._ids = 0
        self._batches = 0
        self._last_status = SUCCESS

    @property
    def is_served(self) -> bool:
        """Whether there is a worker."""
        return self._current is not None

    async def open(self) -> None:
        """Wait: how the client's messages are told apart is for the first worker to say."""

    async def serve_without_worker(self) -> None:
        """Take the client on though there is no worker; it is told so."""
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
            # There is no client, and never will be.
            notify(str(error))
            self.on_end(USAGE_ERROR)

    # -- one worker after the other --------------------------------------------------------

    async def adopt(self, worker: Worker, report: WorkerReport) -> None:
        """Let a worker take over, when it knows what the one before it knew.

        Raises:
            WorkerRejected: it cannot; the one before goes on.
        """
        if worker.pipes is None or worker.ended.done():
            raise WorkerRejected("the server has ended")
        self._next = connection = await self._connect_worker(worker, worker.pipes, report)
        try:
            session = await self._initialize_worker(connection)
            self._held = []
            if session is not None:
                await self._replay(connection, session)
            if worker.ended.done():
                # While it gave its last answer: nobody will say so again.
                raise WorkerRejected(f"the server ended with status {worker.ended.result()}")
        except BaseException:  # rejected, or whoever reloads was told to end
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
        # Who detects hears connections from us. What a worker may write is for it to know.
        framing: Any = "newline" if report.framing == "detect" else report.framing
        worker.pipes = None
        way = _WorkerPipes(Policy(framing=framing, limits=Limits(stdio=None)), pipes)
        connection = _WorkerConnection(worker, way)
        way.on_message = lambda frame, _: self._receive_from_worker(connection, frame)
        way.on_drained = self._update_flow_control
        await way.connect()
        return connection

    async def _initialize_worker(self, connection: _WorkerConnection) -> ReplayedSession | None:
        """See that a worker serves, which takes as long as its lifespan; return the session.

        Nothing is held back meanwhile: the worker before serves.
        """
        if self._session is None and self._current is not None:
            # Any answer will do.
            await connection.request(
                message(id=(id := self._next_id()), method="ping"), id, _REPLY_TIMEOUT_S
            )
        if self._session is not None and self._session.revision is None:
            await self._wait_for_handshake(self._session)
        session = self._session
        if session is None:
            return None
        answer = await connection.request(*self._as_own_request(session.opening), _REPLY_TIMEOUT_S)
        if answer.result is UNSET:
            raise WorkerRejected("the server refuses the handshake that the client has made")
        agreed = decode_as(answer.result, NegotiatedFields).protocolVersion
        if agreed != session.revision:
            raise WorkerRejected(
                f"the server speaks {agreed!r}, and the client was promised {session.revision!r}"
            )
        return session

    async def _wait_for_handshake(self, session: ReplayedSession) -> None:
        """Wait until a handshake that has begun is over: its answer is what has to be agreed on."""
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                await session.is_over.wait()
        except TimeoutError:
            raise WorkerRejected("the server before has not answered initialize") from None

    async def _replay(self, connection: _WorkerConnection, session: ReplayedSession) -> None:
        """Tell a worker what else the client has told the one before."""
        if session.ready is not None:
            connection.send(session.ready)
        for frame in session.requests_to_replay():
            await connection.request(*self._as_own_request(frame), _REPLY_TIMEOUT_S)

    def _as_own_request(self, frame: bytes) -> tuple[bytes, str]:
        """Return a request of the client's as one of our own, and its id."""
        id = self._next_id()
        members = decode(frame, type=dict[str, Raw])
        members["id"] = Raw(encode(id))
        return encode(members), id

    def _next_id(self) -> str:
        self._ids += 1
        return f"trunkline-reload-{self._ids}"

    def _release_held(self) -> None:
        """Hand on what was held back, to whoever is there now."""
        held, self._held = self._held, None
        self._held_size = 0
        for frame in held or ():
            self._forward(frame)
        self._update_flow_control()

    async def _retire(self, connection: _WorkerConnection) -> None:
        """Have a worker finish what it has begun, then answer what it could not."""
        try:
            # What was sent to it before is begun when it has read this, and so is not refused.
            await connection.request(
                message(id=(id := self._next_id()), method="ping"), id, _PING_TIMEOUT_S
            )
        except WorkerRejected:
            pass  # it is at work in its event loop, or gone
        connection.worker.stop()
        await self._finish_worker(connection, _RELOADED)

    async def _finish_worker(self, connection: _WorkerConnection, why: str) -> None:
        """Wait until a worker has ended, track the rest, and answer in its name."""
        await connection.worker.end()
        await self._drain_worker(connection)
        self._retiring.discard(connection)
        self._fail_open_requests(connection, why)
        await connection.pipes.close()

    async def _drain_worker(self, connection: _WorkerConnection) -> None:
        """Hear what a worker wrote before it was gone, as fast as the client takes it."""
        spells = _MAX_DRAIN_ROUNDS
        while not connection.pipes.ended.done() and spells:
            pauses, left = connection.pauses, self._client_backlog
            await asyncio.wait((connection.pipes.ended,), timeout=_DRAIN_TIMEOUT_S)
            if not connection.is_paused and connection.pauses == pauses:
                return  # somebody else keeps the pipe open
            if self._is_closing:
                is_stuck = (
                    connection.is_paused
                    and connection.pauses == pauses
                    and self._client_backlog >= left
                )
                spells = 0 if is_stuck else spells - 1

    @property
    def _client_backlog(self) -> int:
        """How much the client has still to take, in bytes."""
        return 0 if self._host is None else self._host.backlog

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_worker_exit(self, worker: Worker, status: int) -> bool:
        """Take note that a worker has ended; say whether that leaves nobody to serve."""
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
        """End all workers in order, give the client the rest, and leave it."""
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

    # -- what the client says ----------------------------------------------------------------

    def _receive_from_client(self, frame: Frame, _: Any) -> None:
        if isinstance(frame, Oversize):
            # Too large for the worker too, which knows how to say so. Only its head is known.
            frame = frame.head.ljust(frame.limit + 1)
        elif not isinstance(frame, bytes):
            self._send_to_client(encode(error_response(None, _PARSE_ERROR, "Parse error")))
            if isinstance(frame, BadHeader) and frame.lost:
                self._client_gone(None)
            return
        self._forward(frame)

    def _forward(self, frame: bytes) -> None:
        """Hand a frame to the worker it is for."""
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

    def _recipients(self, heads: list[MessageHead]) -> list[_WorkerConnection | None]:
        """Return whom a frame is for: who asked, who was asked, or whose turn it is."""
        head = heads[0] if len(heads) == 1 else None
        if head is not None and self._retiring:
            if head.method is UNSET:
                key = request_key(head.id)
            elif is_method(head, "notifications/cancelled"):
                key = cancelled_request(head)
            elif is_method(head, "notifications/progress"):
                # Nobody waits for one that does not read: it can do without.
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

    def _track(self, heads: list[MessageHead], frame: bytes, is_batch: bool) -> None:
        """Take note of what a client asks, and of what later workers have to be told."""
        self._batches += is_batch
        connection = self._current
        for head in heads:
            if head.method is UNSET:
                for each in self._connections():
                    each.server_requests.discard(request_key(head.id))
                continue
            if is_method(head, "notifications/cancelled"):
                for each in self._connections():
                    each.client_requests.pop(cancelled_request(head), None)
            key = None if head.id is UNSET else request_key(head.id)
            if key is not None and connection is not None:
                connection.client_requests[key] = head.id, self._batches if is_batch else None
            alone = frame
            if is_batch:
                alone = message(id=head.id, method=head.method, params=head.params)
            if is_method(head, "initialize") and self._session is None and connection is not None:
                self._session = ReplayedSession(key, alone)
            elif self._session is not None:
                self._session.track(head, alone)

    def _connections(self) -> list[_WorkerConnection]:
        return [*([] if self._current is None else [self._current]), *self._retiring]

    def _refuse(self, heads: list[MessageHead], is_batch: bool) -> None:
        """Answer what is asked while there is no worker."""
        asked = [head.id for head in heads if head.method is not UNSET and head.id is not UNSET]
        answers = [error_response(id, _INTERNAL_ERROR, _ENDED) for id in asked if request_key(id)]
        if answers:
            self._send_to_client(encode(answers if is_batch else answers[0]))

    def _client_gone(self, why: TransportError | None) -> None:
        if why is not None:
            self._client_drained()  # what it did not take is dropped
        self._spawn(self._end_with_client())

    async def _end_with_client(self) -> None:
        """Let the worker end as its client has, and end with it."""
        connection = self._current
        if connection is not None:
            connection.worker.is_stopping = True
            self._spawn(connection.pipes.finish())
            # By itself: it still answers what was asked before.
            await asyncio.wait((connection.worker.ended,), timeout=_CLIENT_GONE_TIMEOUT_S)
            if connection.worker.ended.done():
                self._last_status = connection.worker.ended.result()
        for each in self._retiring:
            each.worker.stop()  # nobody waits for what they have still to say
        self.on_end(self._last_status)

    # -- what workers say --------------------------------------------------------------------

    def _receive_from_worker(self, connection: _WorkerConnection, frame: Frame) -> None:
        if not isinstance(frame, bytes):
            return  # its last words were cut short
        heads, is_batch = parse_heads(frame)
        for head in heads:
            if head.method is not UNSET:
                if is_method(head, "notifications/cancelled"):
                    connection.server_requests.discard(cancelled_request(head))
                elif head.id is not UNSET:
                    connection.server_requests.add(request_key(head.id))
            elif not is_batch and isinstance(head.id, str) and head.id in connection.own_requests:
                answer = connection.own_requests[head.id]
                if not answer.done():
                    answer.set_result(MessageHead(head.id, UNSET, UNSET, owned(head.result)))
                return
            else:
                self._on_reply(connection, head)
        if self._host is not None:
            self._host.send(frame)
            if self._client_backlog > HIGH_WATER:
                connection.pause()

    def _on_reply(self, connection: _WorkerConnection, head: MessageHead) -> None:
        key = request_key(head.id)
        if key is None:
            return
        connection.client_requests.pop(key, None)
        session = self._session
        if session is not None and session.key == key and not session.is_over.is_set():
            session.is_over.set()
            if head.result is UNSET:
                self._session = None  # it was refused: the client may try again
                return
            agreed = decode_as(head.result, NegotiatedFields)
            session.revision, session.capabilities = agreed.protocolVersion, agreed.capabilities

    def _fail_open_requests(self, connection: _WorkerConnection, why: str) -> None:
        """Answer what a worker has left open when it ended."""
        batches: dict[int, list[dict[str, Any]]] = {}
        session = self._session
        for key, (id, batch) in connection.client_requests.items():
            answer = error_response(id, _INTERNAL_ERROR, why)
            if session is not None and session.key == key and session.revision is None:
                session.is_over.set()
                self._session = None
            if batch is None:
                self._send_to_client(encode(answer))
            else:
                batches.setdefault(batch, []).append(answer)
        for answers in batches.values():
            self._send_to_client(encode(answers))
        connection.client_requests.clear()

    # -- the two together --------------------------------------------------------------------

    def _send_to_client(self, frame: bytes) -> None:
        if self._host is not None:
            self._host.send(frame)

    def _client_drained(self) -> None:
        for connection in (*self._connections(), self._next):
            if connection is not None:
                connection.resume()

    @property
    def _has_room(self) -> bool:
        """Whether what the client says next finds room."""
        connection = self._current
        return self._held_size <= _MAX_HELD_BYTES and (connection is None or not connection.is_full)

    def _update_flow_control(self) -> None:
        """Read the client, or leave what it says where it is; for whenever there is a change."""
        host, is_to_pause = self._host, not self._has_room
        if host is not None and is_to_pause != self._is_client_paused:
            self._is_client_paused = is_to_pause
            if is_to_pause:
                host.pause()
            else:
                host.resume()
