"""The client of a server on standard streams, kept while servers come and go behind it.

The client started one process and talks to it; that process is us. Frames are handed on as they
are, both ways. What they say is read only as far as it takes to know whose they are.

The rules that live here, and only here:

* What was asked of one worker is answered by that worker, or by us in its name: nothing that a
  client asks stays without an answer.
* A client that has made a handshake makes it once. Its later servers are told of it by us, with
  the log level and the subscriptions it asked for, and what they answer is ours.
* A server that does not agree on the same revision is not put in the place of one that did.
* What can be told of the change in the client's revision is told: that lists may have changed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType
from msgspec.json import Decoder, decode, encode

from ..errors import TransportError
from ..jsonrpc.framing import BadHeader, Oversize
from ..jsonrpc.limits import Limits
from ..jsonrpc.policy import Policy
from ..transports.base import HIGH_WATER, ignore
from ..transports.framed import FramedTransport
from ..transports.pipes import FdReader, FdWriter
from ..transports.stdio_server import StdioServer
from .exits import FINE, MISUSED
from .reloading import Rejected, say

if TYPE_CHECKING:
    import socket

    from ..transports.base import Frame
    from .reloading import Worker
    from .supervised import Report

__all__ = ["StandIn"]

_INTERNAL_ERROR: Final = -32603
_PARSE_ERROR: Final = -32700
_RELOADED: Final = "the server was reloaded; ask again"
_STOPPED: Final = "the server was stopped"
_ENDED: Final = "the server has ended; it is started again when one of its files changes"
# How long a new worker may take to answer what is asked on the client's behalf, in seconds. It
# has been loaded by then; what is left is its lifespan.
_ANSWERS: Final = 30.0
# How long the worker before may take to have read what it was sent: a handler may hold it up.
_HAS_READ: Final = 5.0
# How long what a worker wrote may take to be read, once it is gone.
_REST: Final = 1.0
# How long a worker may go on when the client has gone; its own bound is far shorter.
_LAST_ANSWERS: Final = 10.0
# How long a worker may be waited for that does not take the rest of what was sent to it.
_FLUSH: Final = 1.0
# Subscriptions that are repeated for a client; a server takes no more by itself.
_SUBSCRIPTIONS: Final = 10_000
# Frames that are held back while a worker is put in another's place, in bytes.
_HELD: Final = HIGH_WATER


# What is read of a message


class _Head(Struct):
    """A message, of which only so much is read as says whose it is."""

    id: Any = UNSET
    method: Any = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET


class _Cancelled(Struct):
    requestId: Any = UNSET  # as the wire has it


class _Subscription(Struct):
    uri: Any = UNSET


class _Agreed(Struct):
    """The result of `initialize`."""

    protocolVersion: Any = UNSET
    capabilities: dict[str, Any] = {}


Key = tuple[type, Any]

_one: Final = Decoder(_Head).decode
_several: Final = Decoder(list[_Head]).decode


def _heads(frame: bytes) -> tuple[list[_Head], bool]:
    """Return what is read of each message in a frame, and whether they are a batch."""
    try:
        if frame.lstrip()[:1] == b"[":
            return _several(frame), True
        return [_one(frame)], False
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return [], False  # whoever it is for will say what is wrong with it


def _key(id: object) -> Key | None:
    """Return what an id is found by: 1 and "1" are two, and so are 1 and true."""
    return (type(id), id) if isinstance(id, str | int) else None


def _is(head: _Head, method: str) -> bool:
    return bool(head.method == method)


def _cancelled(head: _Head) -> Key | None:
    """Return what a notification of that name cancels."""
    return _key(_read(head.params, _Cancelled).requestId)


def _read(params: Raw | UnsetType, kind: Any) -> Any:
    try:
        return kind() if params is UNSET else decode(params, type=kind)
    except (DecodeError, UnicodeDecodeError):
        return kind()


# A worker, as the client's other side


class _Pipes(FramedTransport):
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
        self._writer = FdWriter(loop, self._fds[1], self._drained, ignore)
        self._is_open = True

    def _input_ended(self, error: OSError | None) -> None:
        self._receive_end()
        if not self.ended.done():
            self.ended.set_result(None)
        self._report(None)

    def _output(self) -> int:
        return self._fds[1] if len(self._fds) > 1 else -1

    def _end_output(self) -> None:
        if self._writer is not None and len(self._fds) > 1:
            self._writer.close()
            os.close(self._fds.pop())

    async def _end(self) -> None:
        try:
            if self._writer is not None:
                await self._writer.finish(_FLUSH)
        finally:
            self._end_output()
            if self._reader is not None:
                self._reader.close()
            while self._fds:
                os.close(self._fds.pop())
            self._report(None)


class _Line:
    """A worker, and what is open between it and the client."""

    def __init__(self, worker: Worker, pipes: _Pipes) -> None:
        self.worker = worker
        self.pipes = pipes
        # What the client has asked of it, and which batch that was part of.
        self.asked: dict[Key | None, tuple[Any, int | None]] = {}
        # What it has asked of the client.
        self.asks: set[Key | None] = set()
        # What we have asked of it ourselves.
        self.ours: dict[str, asyncio.Future[_Head]] = {}

    def send(self, frame: bytes) -> None:
        self.pipes.send(frame)

    async def ask(self, frame: bytes, id: str, seconds: float) -> _Head:
        """Ask something of our own, by a request with this id, and return the answer.

        Raises:
            Rejected: there was none.
        """
        answer: asyncio.Future[_Head] = asyncio.get_running_loop().create_future()
        self.ours[id] = answer
        self.send(frame)
        ended = self.worker.ended
        await asyncio.wait((answer, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        self.ours.pop(id, None)
        if answer.done():
            return answer.result()
        if ended.done():
            raise Rejected(f"the server ended with status {ended.result()}")
        raise Rejected(f"the server did not answer within {seconds:g} s")


def _message(**members: Any) -> bytes:
    given = {name: value for name, value in members.items() if value is not UNSET}
    return encode({"jsonrpc": "2.0", **given})


def _failure(id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


# The handshake that was made


class _Session:
    """What a client has told the first server, and every later one has to know.

    Requests are kept as they came: what an envelope holds besides belongs to them.
    """

    def __init__(self, key: Key | None, opening: bytes) -> None:
        self.key = key
        self.opening = opening
        # What the first server agreed to; None until it has.
        self.revision: Any = None
        self.capabilities: dict[str, Any] = {}
        # Whether it has, or never will.
        self.is_over = asyncio.Event()
        # The notification that the client is ready.
        self.ready: bytes | None = None
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}

    def hear(self, head: _Head, frame: bytes) -> None:
        """Remember what a client says that has to be said again."""
        method = head.method
        if method == "notifications/initialized":
            self.ready = frame
        elif method == "logging/setLevel":
            self._level = frame
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = _read(head.params, _Subscription).uri
            if isinstance(uri, str):
                self._subscriptions.pop(uri, None)
                if method == "resources/subscribe" and len(self._subscriptions) < _SUBSCRIPTIONS:
                    self._subscriptions[uri] = frame

    def wishes(self) -> list[bytes]:
        """Return the requests that still hold."""
        level = [] if self._level is None else [self._level]
        return [*level, *self._subscriptions.values()]

    def changed_lists(self) -> list[str]:
        """Return the notifications by which a client is told that there may be something new."""
        if self.ready is None:
            return []
        found = []
        for name in ("tools", "resources", "prompts"):
            declared = self.capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged") is True:
                found.append(f"notifications/{name}/list_changed")
        return found


# Standing in


class StandIn:
    """Keeps the client, and hands what it says to the worker whose turn it is."""

    listen: socket.socket | None = None

    def __init__(self, framing: str | None) -> None:
        self._framing = framing
        # Called with an exit status when the client has gone.
        self.on_end: Callable[[int], object] = ignore
        self._host: StdioServer | None = None
        self._current: _Line | None = None
        self._retiring: set[_Line] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: _Session | None = None
        # While one worker is put in the place of another: what came for whichever it will be.
        self._held: list[bytes] | None = None
        self._held_size = 0
        self._ids = 0
        self._batches = 0
        self._last_status = FINE

    @property
    def is_served(self) -> bool:
        """Whether there is a worker."""
        return self._current is not None

    async def open(self) -> None:
        """Wait: how the client's messages are told apart is for the first worker to say."""

    async def wait_without(self) -> None:
        """Take the client on though there is no worker; it is told so."""
        await self._take_host(self._framing or "detect", Limits().stdio)

    async def _take_host(self, framing: str, size: int | None) -> None:
        if self._host is not None:
            return
        policy = Policy(framing=framing, limits=Limits(stdio=size))  # type: ignore[arg-type]  # one of its names
        self._host = host = StdioServer(policy)
        host.on_message = self._hear_host
        host.on_error = self._host_gone
        host.on_drained = self._host_drained
        try:
            await host.connect()
        except TransportError as error:
            # There is no client, and never will be.
            say(str(error))
            self.on_end(MISUSED)

    # -- one worker after the other --------------------------------------------------------

    async def adopt(self, worker: Worker, report: Report) -> None:
        """Let a worker take over, when it knows what the one before it knew.

        Raises:
            Rejected: it cannot; the one before goes on.
        """
        if worker.pipes is None or worker.ended.done():
            raise Rejected("the server has ended")
        line = await self._line(worker, worker.pipes, report)
        try:
            session = await self._greet(line)
            self._held, self._held_size = [], 0
            if session is not None:
                await self._repeat(line, session)
        except BaseException:
            # Rejected, or whoever reloads was told to end.
            self._let_go()
            await line.pipes.close()
            raise
        before, self._current = self._current, line
        if before is not None:
            self._retiring.add(before)
        await self._take_host(report.framing, report.size)
        self._let_go()
        for method in [] if session is None else session.changed_lists():
            self._tell_host(_message(method=method))
        if before is not None:
            self._go_on(self._retire(before))

    async def _line(self, worker: Worker, pipes: tuple[int, int], report: Report) -> _Line:
        # Who detects hears lines from us. What a worker may write is for it to know.
        framing: Any = "newline" if report.framing == "detect" else report.framing
        worker.pipes = None
        way = _Pipes(Policy(framing=framing, limits=Limits(stdio=None)), pipes)
        line = _Line(worker, way)
        way.on_message = lambda frame, _: self._hear_worker(line, frame)
        way.on_drained = self._worker_drained
        await way.connect()
        return line

    async def _greet(self, line: _Line) -> _Session | None:
        """See that a worker serves, which takes as long as its lifespan; return the session.

        Nothing is held back meanwhile: the worker before serves.
        """
        if self._session is None and self._current is not None:
            # Any answer will do.
            await line.ask(_message(id=(id := self._id()), method="ping"), id, _ANSWERS)
        if self._session is not None and self._session.revision is None:
            await self._wait_for_handshake(self._session)
        session = self._session
        if session is None:
            return None
        answer = await line.ask(*self._again(session.opening), _ANSWERS)
        if answer.result is UNSET:
            raise Rejected("the server refuses the handshake that the client has made")
        agreed = _read(answer.result, _Agreed).protocolVersion
        if agreed != session.revision:
            raise Rejected(
                f"the server speaks {agreed!r}, and the client was promised {session.revision!r}"
            )
        return session

    async def _wait_for_handshake(self, session: _Session) -> None:
        """Wait until a handshake that has begun is over: its answer is what has to be agreed on."""
        try:
            async with asyncio.timeout(_ANSWERS):
                await session.is_over.wait()
        except TimeoutError:
            raise Rejected("the server before has not answered initialize") from None

    async def _repeat(self, line: _Line, session: _Session) -> None:
        """Tell a worker what else the client has told the one before."""
        if session.ready is not None:
            line.send(session.ready)
        for frame in session.wishes():
            await line.ask(*self._again(frame), _ANSWERS)

    def _again(self, frame: bytes) -> tuple[bytes, str]:
        """Return a request of the client's as one of our own, and its id."""
        id = self._id()
        members = decode(frame, type=dict[str, Raw])
        members["id"] = Raw(encode(id))
        return encode(members), id

    def _id(self) -> str:
        self._ids += 1
        return f"trunkline-reload-{self._ids}"

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if self._host is not None and self._held_size > _HELD:
            self._host.resume()
        for frame in held or ():
            self._hand_on(frame)

    async def _retire(self, line: _Line) -> None:
        """Have a worker finish what it has begun, then answer what it could not."""
        try:
            # What was sent to it before is begun when it has read this, and so is not refused.
            await line.ask(_message(id=(id := self._id()), method="ping"), id, _HAS_READ)
        except Rejected:
            pass  # it is at work in its event loop, or gone
        line.worker.stop()
        await self._bury(line, _RELOADED)

    async def _bury(self, line: _Line, why: str) -> None:
        """Wait until a worker has ended, hear the rest, and answer in its name."""
        await line.worker.end()
        await asyncio.wait((line.pipes.ended,), timeout=_REST)
        self._retiring.discard(line)
        self._answer_for(line, why)
        await line.pipes.close()

    def _go_on(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def lost(self, worker: Worker, status: int) -> bool:
        """Take note that a worker has ended; say whether that leaves nobody to serve."""
        line = self._current
        if line is None or line.worker is not worker:
            return False
        self._current = None
        self._last_status = status
        self._go_on(self._bury(line, _ENDED))
        return True

    async def close(self) -> None:
        """End all workers in order, give the client the rest, and leave it."""
        line, self._current = self._current, None
        if line is not None:
            self._retiring.add(line)
            line.worker.stop()
            self._go_on(self._bury(line, _STOPPED))
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._host is not None:
            await self._host.close()

    # -- what the client says ----------------------------------------------------------------

    def _hear_host(self, frame: Frame, _: Any) -> None:
        if isinstance(frame, Oversize):
            # Too large for the worker too, which knows how to say so. Only its head is known.
            frame = frame.head.ljust(frame.limit + 1)
        elif not isinstance(frame, bytes):
            self._tell_host(encode(_failure(None, _PARSE_ERROR, "Parse error")))
            if isinstance(frame, BadHeader) and frame.lost:
                self._host_gone(None)
            return
        self._hand_on(frame)

    def _hand_on(self, frame: bytes) -> None:
        """Hand a frame to the worker it is for."""
        heads, is_batch = _heads(frame)
        lines = self._lines_for(heads)
        if self._held is not None and self._current in lines:
            self._held.append(frame)
            self._held_size += len(frame)
            if self._host is not None and self._held_size > _HELD:
                self._host.pause()
            return
        self._note(heads, frame, is_batch)
        for line in lines:
            if line is None:
                self._refuse(heads, is_batch)
                continue
            line.send(frame)
            if line.pipes.backlog > HIGH_WATER and self._host is not None:
                self._host.pause()

    def _lines_for(self, heads: list[_Head]) -> list[_Line | None]:
        """Return whom a frame is for: who asked, who was asked, or whose turn it is."""
        head = heads[0] if len(heads) == 1 else None
        if head is not None and self._retiring:
            if head.method is UNSET:
                key = _key(head.id)
            elif _is(head, "notifications/cancelled"):
                key = _cancelled(head)
            elif _is(head, "notifications/progress"):
                return [self._current, *self._retiring]
            else:
                return [self._current]
            for line in self._retiring:
                if key in (line.asks if head.method is UNSET else line.asked):
                    return [line]
        return [self._current]

    def _note(self, heads: list[_Head], frame: bytes, is_batch: bool) -> None:
        """Take note of what a client asks, and of what later workers have to be told."""
        self._batches += is_batch
        line = self._current
        for head in heads:
            if head.method is UNSET:
                for each in self._lines():
                    each.asks.discard(_key(head.id))
                continue
            if _is(head, "notifications/cancelled"):
                for each in self._lines():
                    each.asked.pop(_cancelled(head), None)
            key = None if head.id is UNSET else _key(head.id)
            if key is not None and line is not None:
                line.asked[key] = head.id, self._batches if is_batch else None
            alone = frame
            if is_batch:
                alone = _message(id=head.id, method=head.method, params=head.params)
            if _is(head, "initialize") and self._session is None and line is not None:
                self._session = _Session(key, alone)
            elif self._session is not None:
                self._session.hear(head, alone)

    def _lines(self) -> list[_Line]:
        return [*([] if self._current is None else [self._current]), *self._retiring]

    def _refuse(self, heads: list[_Head], is_batch: bool) -> None:
        """Answer what is asked while there is no worker."""
        asked = [head.id for head in heads if head.method is not UNSET and head.id is not UNSET]
        answers = [_failure(id, _INTERNAL_ERROR, _ENDED) for id in asked if _key(id)]
        if answers:
            self._tell_host(encode(answers if is_batch else answers[0]))

    def _host_gone(self, why: TransportError | None) -> None:
        self._go_on(self._follow())

    async def _follow(self) -> None:
        """Let the worker end as its client has, and end with it."""
        line = self._current
        if line is not None:
            line.worker.is_stopping = True
            self._go_on(line.pipes.finish())
            # By itself: it still answers what was asked before.
            await asyncio.wait((line.worker.ended,), timeout=_LAST_ANSWERS)
            if line.worker.ended.done():
                self._last_status = line.worker.ended.result()
        for each in self._retiring:
            each.worker.stop()  # nobody waits for what they have still to say
        self.on_end(self._last_status)

    # -- what workers say --------------------------------------------------------------------

    def _hear_worker(self, line: _Line, frame: Frame) -> None:
        if not isinstance(frame, bytes):
            return  # its last words were cut short
        heads, is_batch = _heads(frame)
        for head in heads:
            if head.method is not UNSET:
                if _is(head, "notifications/cancelled"):
                    line.asks.discard(_cancelled(head))
                elif head.id is not UNSET:
                    line.asks.add(_key(head.id))
            elif not is_batch and isinstance(head.id, str) and head.id in line.ours:
                answer = line.ours[head.id]
                if not answer.done():
                    answer.set_result(_Head(head.id, UNSET, UNSET, _kept(head.result)))
                return
            else:
                self._answered(line, head)
        if self._host is not None:
            self._host.send(frame)
            if self._host.backlog > HIGH_WATER:
                line.pipes.pause()

    def _answered(self, line: _Line, head: _Head) -> None:
        key = _key(head.id)
        if key is None:
            return
        line.asked.pop(key, None)
        session = self._session
        if session is not None and session.key == key and not session.is_over.is_set():
            session.is_over.set()
            if head.result is UNSET:
                self._session = None  # it was refused: the client may try again
                return
            agreed = _read(head.result, _Agreed)
            session.revision, session.capabilities = agreed.protocolVersion, agreed.capabilities

    def _answer_for(self, line: _Line, why: str) -> None:
        """Answer what a worker has left open when it ended."""
        batches: dict[int, list[dict[str, Any]]] = {}
        session = self._session
        for key, (id, batch) in line.asked.items():
            failure = _failure(id, _INTERNAL_ERROR, why)
            if session is not None and session.key == key and session.revision is None:
                session.is_over.set()
                self._session = None
            if batch is None:
                self._tell_host(encode(failure))
            else:
                batches.setdefault(batch, []).append(failure)
        for answers in batches.values():
            self._tell_host(encode(answers))
        line.asked.clear()

    # -- the two together --------------------------------------------------------------------

    def _tell_host(self, frame: bytes) -> None:
        if self._host is not None:
            self._host.send(frame)

    def _host_drained(self) -> None:
        for line in self._lines():
            line.pipes.resume()

    def _worker_drained(self) -> None:
        if self._host is not None:
            self._host.resume()


def _kept(raw: Raw | UnsetType) -> Raw | UnsetType:
    """Return what was read in a form that outlives the frame it stood in."""
    return raw if raw is UNSET else raw.copy()
