"""One side of a conversation: what comes in is called, what goes out is written.

A `Peer` joins a codec, a ledger and an inbox by plain calls. It has no queue, no
task and no clock: `feed` decodes a frame and calls straight through, an answer
is written by the call that gives it. A *route* is the transport's own token for
"where the answer goes"; the peer carries it from the frame to the reply unread.

The rules that live here, and only here:

* A batch is answered as one, in request order, when its last answer is there;
  a batch of notifications is not answered.              [JSON-RPC 2.0, section 6]
* A reply that is faulty but names an open request ends that request: nobody
  waits for an answer that has come and cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from ..errors import InvalidMessage
from . import misuse
from .codec import Codec, Envelope
from .framing import Oversize
from .ids import IdSource
from .inbox import Asked, Inbox
from .ledger import Ledger, Pending, Replies, Stray
from .messages import (
    Batch,
    ErrorObject,
    Failure,
    Notification,
    Reply,
    Request,
    RequestId,
    SentRequest,
    Success,
)

__all__ = ["Peer", "Problem", "StrayReply"]


class StrayReply(NamedTuple):
    """A reply that belongs to no open request, and why."""

    reply: Reply
    why: Stray


# What the other side did wrong: an ordinary day, so a value and not an exception.
Problem: TypeAlias = InvalidMessage | StrayReply

Write: TypeAlias = Callable[[bytes, Any], object]


def _ignore(*_: object) -> None:
    """Do nothing: the layer above did not ask to be told."""


class Peer:
    """One side of one connection."""

    __slots__ = (
        "_codec",
        "_ids",
        "_inbox",
        "_is_closed",
        "_ledger",
        "_on_notification",
        "_on_problem",
        "_on_reply",
        "_on_request",
        "_write",
    )

    def __init__(
        self,
        codec: Codec,
        ledger: Ledger | None = None,
        inbox: Inbox | None = None,
        *,
        write: Write,
        on_request: Callable[[Asked], object],
        on_notification: Callable[[Envelope, Any], object] = _ignore,
        on_reply: Callable[[Pending, Reply | InvalidMessage], object] = _ignore,
        on_problem: Callable[[Problem], object] = _ignore,
        ids: IdSource | None = None,
    ) -> None:
        policy = codec.policy
        self._codec = codec
        self._ledger = Ledger() if ledger is None else ledger
        self._inbox = Inbox() if inbox is None else inbox
        self._ids = IdSource(first=policy.first_id, maximum=policy.max_id) if ids is None else ids
        self._write = write
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_reply = on_reply
        self._on_problem = on_problem
        self._is_closed = False

    @property
    def ledger(self) -> Ledger:
        """What we asked."""
        return self._ledger

    @property
    def inbox(self) -> Inbox:
        """What we were asked."""
        return self._inbox

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    # -- coming in ---------------------------------------------------------------------------

    def feed(self, frame: bytes | Oversize, route: Any = None) -> None:
        """Take in one frame: call what it calls, deliver what it answers, refuse what is faulty.

        After `close` frames are dropped: nobody is there to be called.
        """
        if self._is_closed:
            return
        try:
            if type(frame) is not bytes:
                raise self._codec.oversize(frame.head, frame.limit, frame.size)  # type: ignore[union-attr]  # no bytes
            read = self._codec.envelope(frame)
        except InvalidMessage as fault:
            self._refuse(fault, route)
            return
        if type(read) is list:
            self._feed_batch(read, route)
        else:
            self._dispatch(read, route, None)  # type: ignore[arg-type]  # no list, by the line above

    def _dispatch(self, message: Envelope, route: Any, slot: _Slot | None) -> None:
        if isinstance(message, Reply):
            self._match(message)
        elif message.id is UNSET:
            self._on_notification(message, route)
        else:
            asked = Asked(message.id, message.method, message.params, route, slot)
            if self._inbox.open(asked):
                self._on_request(asked)
            else:
                fault = self._codec.fault("jsonrpc.id.duplicate", where="/id", id=asked.id)
                self._refuse(fault, route, slot)

    def _match(self, reply: Reply) -> None:
        id = reply.id
        if id is None or id is UNSET:
            # Some request of ours could not be read; which one, the other side cannot say.
            self._on_problem(StrayReply(reply, Stray.UNKNOWN))
            return
        found = self._ledger.match(id, is_error=reply.error is not UNSET)
        if isinstance(found, Stray):
            self._on_problem(StrayReply(reply, found))
        else:
            self._on_reply(found, reply)

    def _refuse(self, fault: InvalidMessage, route: Any, slot: _Slot | None = None) -> None:
        answer = fault.answer()
        if slot is not None:
            self._fill(slot, answer)
        elif answer is not None:
            self._write(answer, route)
        elif fault.id is not None and fault.id in self._ledger:
            pending = self._ledger.match(fault.id, is_error=True)
            if isinstance(pending, Pending):
                self._on_reply(pending, fault)
        self._on_problem(fault)

    # -- batches -----------------------------------------------------------------------------

    def _feed_batch(self, items: list[Envelope | InvalidMessage], route: Any) -> None:
        batch = _BatchAnswer(route)
        slots = [_Slot(batch) if _is_owed(item) else None for item in items]
        batch.slots = [slot for slot in slots if slot is not None]
        batch.owed = len(batch.slots)
        for item, slot in zip(items, slots, strict=True):
            if isinstance(item, InvalidMessage):
                self._refuse(item, route, slot)
            else:
                self._dispatch(item, route, slot)

    def _fill(self, slot: _Slot, answer: bytes | None) -> None:
        batch = slot.batch
        slot.answer = answer
        batch.owed -= 1
        if batch.owed == 0:
            answers = [slot.answer for slot in batch.slots if slot.answer is not None]
            if answers:
                self._write(b"[" + b",".join(answers) + b"]", batch.route)

    # -- answering ---------------------------------------------------------------------------

    def answer(self, asked: Asked, result: Any) -> bool:
        """Answer a request with its result; say whether it was still open.

        Raises:
            LocalProtocolError: the result cannot be written; the request is still open.
        """
        return self._reply(asked, Success(asked.id, result))

    def fail(self, asked: Asked, error: ErrorObject) -> bool:
        """Answer a request with an error; say whether it was still open.

        Raises:
            LocalProtocolError: the error cannot be written; the request is still open.
        """
        return self._reply(asked, Failure(asked.id, error))

    def drop(self, asked: Asked) -> bool:
        """Owe a request no answer any more, because it was cancelled; say whether it was open."""
        if not self._inbox.take(asked):
            return False
        if asked.slot is not None:
            self._fill(asked.slot, None)
        return True

    def _reply(self, asked: Asked, reply: Success | Failure) -> bool:
        if asked not in self._inbox:
            return False
        written = self._codec.encode(reply)
        self._inbox.take(asked)
        if asked.slot is not None:
            self._fill(asked.slot, written)
        else:
            self._write(written, asked.route)
        return True

    # -- asking ------------------------------------------------------------------------------

    def send_request(
        self,
        method: str,
        params: Any = None,
        *,
        id: RequestId | None = None,
        replies: Replies = Replies.ONE,
        deadline: float | None = None,
        waiter: Any = None,
        route: Any = None,
    ) -> Pending:
        """Send a request; its reply comes to `on_reply` with what is returned here.

        Raises:
            IdsExhausted: the counter has no id left.
            LocalProtocolError: the id is open, the message cannot be written, or this peer
                is closed. Nothing was sent and nothing is expected.
        """
        self._check_open()
        chosen = self._next_id() if id is None else self._own_id(id)
        written = self._codec.encode(SentRequest(chosen, method, params))
        pending = Pending(chosen, method, replies, waiter)
        self._ledger.open(pending, deadline=deadline)
        self._write(written, route)
        return pending

    def send_notification(self, method: str, params: Any = None, *, route: Any = None) -> None:
        """Send a notification.

        Raises:
            LocalProtocolError: it cannot be written, or this peer is closed.
        """
        self._check_open()
        self._write(self._codec.encode(Notification(method, params)), route)

    def send_batch(
        self, calls: Iterable[Request | Notification], *, route: Any = None
    ) -> list[Pending]:
        """Send several calls as one; return what is expected, in order.

        Raises:
            LocalProtocolError: an id is open or twice in the batch, the batch is empty or
                cannot be written, or this peer is closed. Nothing was sent.
        """
        self._check_open()
        batch = Batch(calls)
        requests = [call for call in batch if isinstance(call, Request)]
        expected = [Pending(self._own_id(call.id), call.method) for call in requests]
        if len({pending.id for pending in expected}) < len(expected):
            misuse.refuse("jsonrpc.id.in-use")
        written = self._codec.encode(batch)
        for pending in expected:
            self._ledger.open(pending)
        self._write(written, route)
        return expected

    def _next_id(self) -> int:
        id = self._ids.next()
        while id in self._ledger:  # a caller chose this one
            id = self._ids.next()
        return id

    def _own_id(self, id: RequestId | None) -> RequestId:
        if id is None:
            misuse.refuse("jsonrpc.id.type", got=id)
        passed = not self._ids.claim(id) and self._codec.policy.ids_last_a_session
        if passed or id in self._ledger:
            misuse.refuse("jsonrpc.id.in-use", got=id)
        return id

    def _check_open(self) -> None:
        if self._is_closed:
            misuse.refuse("jsonrpc.peer.closed")

    # -- ending ------------------------------------------------------------------------------

    def cancel(self, pending: Pending) -> bool:
        """Stop waiting for a reply; say whether we still were. A reply from now on is late."""
        return self._ledger.release(pending)

    def expire(self, now: float) -> tuple[list[Pending], list[Asked]]:
        """Take out what is due: requests nobody answered us, and requests we did not answer."""
        asked = self._inbox.expire(now)
        for item in asked:
            if item.slot is not None:
                self._fill(item.slot, None)
        return self._ledger.expire(now), asked

    def close(self) -> tuple[list[Pending], list[Asked]]:
        """End: return what we still waited for and what we still owed, each oldest first."""
        self._is_closed = True
        return self._ledger.drain(), self._inbox.drain()


class _Slot:
    """The place of one answer in the answer to a batch."""

    __slots__ = ("answer", "batch")

    def __init__(self, batch: _BatchAnswer) -> None:
        self.batch = batch
        self.answer: bytes | None = None


class _BatchAnswer:
    """The answers to one batch, written when the last is there."""

    __slots__ = ("owed", "route", "slots")

    def __init__(self, route: Any) -> None:
        self.route = route
        self.slots: list[_Slot] = []
        self.owed = 0


def _is_owed(item: Envelope | InvalidMessage) -> bool:
    """Say whether an element of a batch has a place in the answer."""
    if isinstance(item, InvalidMessage):
        return item.answerable
    return not isinstance(item, Reply) and item.id is not UNSET
