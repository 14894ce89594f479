"""One side of a JSON-RPC connection: dispatches what is received, sends what is asked for.

A `Peer` joins a codec and the tables of outgoing and incoming requests by plain
calls. It has no queue, task or clock: `feed` decodes a frame and calls the
callback, and `answer` writes the reply before it returns. A *route* is an opaque
token of the transport; the peer passes it from the frame to the reply.

The rules that live here, and only here:

* A batch is answered as one, in request order, when its last answer is known;
  a batch of notifications is not answered.              [JSON-RPC 2.0, section 6]
* An invalid reply that names an open request ends that request: no other reply
  will come. So does a message with neither method, result nor error.
* A request with the id of an open request is rejected without an id, whatever else
  is wrong with it: with the id, the sender would take the error for the answer to
  the open request.
* A request stays closed when `write` raises: an answer that may be partly sent
  is not sent again, and a request that may not have been sent is not waited for.
  The exception reaches the caller.

A peer belongs to one thread, or to one event loop.
Callbacks may answer, send, cancel or close from inside `feed`. What a callback
raises comes out of `feed`; a batch that it interrupts is not answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from ...errors import InvalidMessage, LocalProtocolError
from ..codec import encode_errors
from ..codec.codec import LARGE_BYTES, Codec, Envelope, Readable
from ..codec.decoders import UNREADABLE
from ..framing.framing import Oversize
from ..ids import IdSource, UuidSource
from ..messages import (
    Batch,
    Call,
    EnvelopeExtras,
    ErrorObject,
    ExtendedNotification,
    ExtendedRequest,
    ExtendedSentRequest,
    Failure,
    Notification,
    Reply,
    Request,
    RequestId,
    SentRequest,
    Success,
    shown_tuple,
)
from ..policy import Policy
from .incoming import IncomingRequest, IncomingRequests
from .outgoing import OutgoingRequests, Pending, Replies, UnmatchedReply

__all__ = ["Extras", "Peer", "ProtocolProblem", "UnmatchedReplyEvent"]


class UnmatchedReplyEvent(NamedTuple):
    """A reply that matches no open request, and why."""

    reply: Reply
    why: UnmatchedReply

    def __repr__(self) -> str:
        return shown_tuple(self)


# A mistake of the other side: expected in operation, so a value and not an exception.
ProtocolProblem: TypeAlias = InvalidMessage | UnmatchedReplyEvent

Write: TypeAlias = Callable[[bytes, Any], object]
# Sent with each call: a value, or a function of the method that returns one.
Extras: TypeAlias = EnvelopeExtras | Callable[[str], EnvelopeExtras]
WriteAnswer: TypeAlias = Callable[[bytes, Any, ErrorObject | InvalidMessage | None], object]


# Bytes of an invalid frame that are kept for a diagnosis.
_MAX_EXCERPT_BYTES: Final = 200


def _ignore(*_: object) -> None:
    pass


def _excerpt(frame: Readable | Oversize) -> bytes:
    begins = (frame.head if isinstance(frame, Oversize) else frame)[:_MAX_EXCERPT_BYTES]
    return begins.encode("utf-8", "replace") if isinstance(begins, str) else bytes(begins)


class Peer:
    """One side of one connection.

    `write(frame, route)` sends a frame. `on_request(asked)` has to end, now or
    later, in `answer`, `fail` or `drop`. `on_settled(route)` is called when a frame
    that was fed is complete: its answer was written, or none will be.
    `write_answer(frame, route, error)` sends the answer to a request or batch in place
    of `write`; `error` is that of a single request that failed, else None. A transport
    with one stream per frame needs both.

    `admits_notification(route, place)` is called for each notification of a batch, with its
    place there; without True it is dropped.

    Without `answers_faults` an invalid message is reported and never answered,
    alone or in a batch: it may be a log line on stdout, whose writer reads no answers.

    With `routes_requests` a request that is sent without a route is its own: `write` gets the
    `SentRequest` that was encoded.

    `envelope` is sent with each request and notification, under a policy that has such an
    envelope: credentials and context, or a function that returns them for a method.
    """

    __slots__ = (
        "_admits_notification",
        "_answers_faults",
        "_codec",
        "_extras",
        "_ids",
        "_ids_last",
        "_incoming",
        "_is_closed",
        "_on_notification",
        "_on_problem",
        "_on_reply",
        "_on_request",
        "_on_settled",
        "_outgoing",
        "_routes_requests",
        "_write",
        "_write_answer",
        "batched_bytes",
    )

    def __init__(
        self,
        codec: Codec,
        outgoing: OutgoingRequests | None = None,
        incoming: IncomingRequests | None = None,
        *,
        write: Write,
        on_request: Callable[[IncomingRequest], object],
        on_notification: Callable[[Envelope, Any], object] = _ignore,
        on_reply: Callable[[Pending, Reply | InvalidMessage], object] = _ignore,
        on_problem: Callable[[ProtocolProblem, Any], object] = _ignore,
        on_settled: Callable[[Any], object] | None = None,
        write_answer: WriteAnswer | None = None,
        admits_notification: Callable[[Any, int], bool] | None = None,
        ids: IdSource | UuidSource | None = None,
        answers_faults: bool = True,
        envelope: Extras | None = None,
        routes_requests: bool = False,
    ) -> None:
        policy = codec.policy
        self._codec = codec
        self._outgoing = OutgoingRequests() if outgoing is None else outgoing
        self._incoming = IncomingRequests() if incoming is None else incoming
        self._ids = _ids_of(policy) if ids is None else ids
        self._ids_last = policy.ids_last_a_session
        self._write = write
        self._write_answer = write_answer
        self._on_request = on_request
        self._on_notification = on_notification
        self._on_reply = on_reply
        self._on_problem = on_problem
        self._on_settled = on_settled
        self._admits_notification = admits_notification
        self._answers_faults = answers_faults
        self._extras = envelope
        self._routes_requests = routes_requests
        self._is_closed = False
        # Of answers that wait for the other answers of their batch.
        self.batched_bytes = 0

    @property
    def codec(self) -> Codec:
        """The codec in use."""
        return self._codec

    @property
    def outgoing(self) -> OutgoingRequests:
        """Requests sent that await a reply."""
        return self._outgoing

    @property
    def incoming(self) -> IncomingRequests:
        """Requests received that await an answer."""
        return self._incoming

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def use(self, codec: Codec) -> None:
        """Use another codec from the next frame on, after negotiation.

        Open requests stay open, and ids continue.
        """
        self._codec = codec
        self._ids_last = codec.policy.ids_last_a_session

    # -- receiving ---------------------------------------------------------------------------

    def feed(self, frame: Readable | Oversize, route: Any = None) -> None:
        """Receive one frame: dispatch its calls, match its replies, reject what is invalid.

        After `close` frames are dropped.
        """
        if self._is_closed:
            return
        try:
            if type(frame) is not bytes and isinstance(frame, Oversize):
                raise self._codec.oversize(frame.head, frame.limit, frame.size)
            read: Any = None
            if len(frame) >= LARGE_BYTES and type(frame) is bytes:
                read = self._large_reply(frame)
            if read is None:
                read = self._codec.envelope(frame)
        except InvalidMessage as fault:
            fault.excerpt = _excerpt(frame)
            self._refuse(fault, route, None)
            return
        if type(read) is list:
            self._feed_batch(read, route)
        else:
            self._dispatch(read, route, None)

    def feed_call(self, call: Call, route: Any = None) -> None:
        """Receive a request that was decoded with its params already."""
        if not self._is_closed:
            self._dispatch(call, route, None)

    def _large_reply(self, frame: bytes) -> Reply | None:
        """Return a large reply with its result decoded, or None if it has to go the usual way."""
        codec = self._codec
        found = codec.large_result(frame) if len(self._outgoing) else None
        pending = None if found is None else self._outgoing.find(found.id)
        if found is None or pending is None or pending.read is None or not codec.is_sound(frame):
            return None
        try:
            result = pending.read(memoryview(frame)[found.start : found.end])
        except UNREADABLE:
            return None
        return Reply(id=found.id, result=result)

    def _feed_batch(self, items: list[Envelope | InvalidMessage], route: Any) -> None:
        batch = _BatchAnswer(len(items))
        for place, item in enumerate(items):
            if self._is_closed:  # by what an earlier element called
                return
            if isinstance(item, InvalidMessage):
                self._refuse(item, route, (batch, place))
            else:
                self._dispatch(item, route, (batch, place))

    def _dispatch(self, message: Envelope, route: Any, slot: _Slot | None) -> None:
        if message.is_reply:
            self._match(message, route)
        elif message.id is UNSET:
            admits = self._admits_notification
            if slot is None or admits is None or admits(route, slot[1]):
                self._on_notification(message, route)
        else:
            asked = IncomingRequest(
                message.id, message.method, message.params, route, slot, message
            )
            if self._incoming.open(asked):
                self._on_request(asked)
            else:
                self._refuse(self._duplicate(asked.id, slot), route, slot)
            return
        # Nothing will be written, and most transports do not ask for `on_settled`.
        if slot is not None or self._on_settled is not None:
            self._settle(None, route, slot)

    def _match(self, reply: Reply, route: Any) -> None:
        id = reply.id
        if id is None or id is UNSET:
            # The other side could not read a request of ours, nor its id.
            self._on_problem(UnmatchedReplyEvent(reply, UnmatchedReply.UNKNOWN), route)
            return
        found = self._outgoing.match(id, is_error=reply.error is not UNSET)
        if type(found) is Pending:
            self._on_reply(found, reply)
        elif isinstance(found, UnmatchedReply):
            self._on_problem(UnmatchedReplyEvent(reply, found), route)

    def _duplicate(self, id: RequestId | None, slot: _Slot | None) -> InvalidMessage:
        where = "/id" if slot is None else f"/{slot[1]}/id"
        return self._codec.fault("jsonrpc.id.duplicate", where=where, got=id)

    def _refuse(self, fault: InvalidMessage, route: Any, slot: _Slot | None) -> None:
        is_answered = self._answers_faults
        if fault.id is not None:
            if not fault.answerable or fault.rule == "jsonrpc.message.kind":
                found = self._outgoing.match(fault.id, is_error=True)
                if isinstance(found, Pending):
                    self._on_reply(found, fault)
                    is_answered = False
            if self._incoming.find(fault.id) is not None:
                fault.id = None
        answer = fault.answer() if is_answered else None
        if answer is None:
            # First: some transports settle with a status.
            self._on_problem(fault, route)
        self._settle(answer, route, slot, fault)
        if answer is not None:
            self._on_problem(fault, route)

    def _settle(
        self,
        answer: bytes | None,
        route: Any,
        slot: _Slot | None,
        error: ErrorObject | InvalidMessage | None = None,
    ) -> None:
        """Record an answer, or None for no answer; write it, or the batch it completes."""
        if self._is_closed:
            return
        if slot is not None:
            batch, place = slot
            batch.answers[place] = answer
            batch.owed -= 1
            size = 0 if answer is None else len(answer)
            if batch.owed > 0:
                batch.held += size
                self.batched_bytes += size
                return
            self.batched_bytes -= batch.held
            answer, error = batch.joined(), None
        if answer is not None:
            if self._write_answer is None:
                self._write(answer, route)
            else:
                self._write_answer(answer, route, error)
        if self._on_settled is not None:
            self._on_settled(route)

    # -- answering ---------------------------------------------------------------------------

    def answer(self, asked: IncomingRequest, result: Any) -> bool:
        """Answer a request with its result; return False if it is not open any more.

        Raises:
            LocalProtocolError: the result cannot be encoded; the request is still open.
        """
        # Much as `fail`, and not one function for both: this is the hot path.
        try:
            written = self._codec.encode(Success(asked.id, result))
        except LocalProtocolError:
            if asked in self._incoming:
                raise
            return False
        if not self._incoming.take(asked):
            return False
        if asked.slot is None and self._on_settled is None:
            self._write(written, asked.route)
        else:
            self._settle(written, asked.route, asked.slot)
        return True

    def fail(self, asked: IncomingRequest, error: ErrorObject) -> bool:
        """Answer a request with an error; return False if it is not open any more.

        Raises:
            LocalProtocolError: the error cannot be encoded; the request is still open.
        """
        try:
            written = self._codec.encode(Failure(asked.id, error))
        except LocalProtocolError:
            if asked in self._incoming:
                raise
            return False
        if not self._incoming.take(asked):
            return False
        self._settle(written, asked.route, asked.slot, error)
        return True

    def drop(self, asked: IncomingRequest) -> bool:
        """Close a cancelled request without an answer; return False if it is not open."""
        if not self._incoming.take(asked):
            return False
        self._settle(None, asked.route, asked.slot)
        return True

    # -- sending -----------------------------------------------------------------------------

    def send_request(
        self,
        method: str,
        params: Any = None,
        *,
        id: RequestId | None = None,
        replies: Replies = Replies.ONE,
        deadline: float | None = None,
        waiter: Any = None,
        read: Callable[[Any], Any] | None = None,
        route: Any = None,
        envelope: EnvelopeExtras | None = None,
    ) -> Pending:
        """Send a request; its reply is passed to `on_reply` with the `Pending` returned here.

        Where `write` delivers at once `on_reply` is called before this returns, so pass the
        future or callback as `waiter`. An `id` of the caller must not be open; where ids
        are unique for a session it must be unused, and an integer above all used ones.
        `envelope` replaces that of the peer for this request. With `read` the result of a large
        reply may be what that returns; see `Pending`.

        Raises:
            IdsExhausted: the counter has no id left.
            LocalProtocolError: the id is in use, the message cannot be encoded, the policy has
                no such envelope, or this peer is closed. Nothing was sent.
            ValueError: the deadline is NaN; nothing was sent.
        """
        if self._is_closed:
            encode_errors.refuse("jsonrpc.peer.closed")
        if id is not None:
            self._check_own_id(id)
        chosen = self._next_id() if id is None else id
        if envelope is None and self._extras is None:
            message = SentRequest(chosen, method, params)
        else:
            carried = self._carried(method, envelope)
            message = ExtendedSentRequest(chosen, method, params, **carried)
        written = self._codec.encode(message)
        pending = Pending(chosen, method, replies, waiter, read)
        self._outgoing.open(pending, deadline=deadline)
        if id is not None and self._ids_last:
            self._ids.claim(id)
        if route is None and self._routes_requests:
            route = message
        try:
            self._write(written, route)
        except BaseException:  # a cancelled task too: the caller has no `Pending` to release
            self._outgoing.release(pending)
            raise
        return pending

    def send_notification(
        self,
        method: str,
        params: Any = None,
        *,
        route: Any = None,
        envelope: EnvelopeExtras | None = None,
    ) -> None:
        """Send a notification; `envelope` replaces that of the peer.

        Raises:
            LocalProtocolError: it cannot be encoded, the policy has no such envelope, or this
                peer is closed.
        """
        self._check_open()
        if envelope is None and self._extras is None:
            message = Notification(method, params)
        else:
            message = ExtendedNotification(method, params, **self._carried(method, envelope))
        self._write(self._codec.encode(message), route)

    def _carried(self, method: str, given: EnvelopeExtras | None = None) -> dict[str, Any]:
        """Return what a call carries beside its params, by member."""
        if self._codec.policy.envelope == "plain":
            encode_errors.refuse("jsonrpc.envelope.not-allowed")
        extras = self._extras if given is None else given
        if callable(extras):
            extras = extras(method)
        if not isinstance(extras, EnvelopeExtras):
            raise TypeError(
                f"the envelope of {method} is an EnvelopeExtras, not a {type(extras).__name__}"
            )
        return {"auth": extras.auth, "headers": extras.headers, "metadata": extras.metadata}

    def send_batch(
        self,
        calls: Iterable[Request | Notification],
        *,
        deadline: float | None = None,
        waiters: Sequence[Any] = (),
        route: Any = None,
    ) -> list[Pending]:
        """Send several calls as a batch; return its open requests, in order.

        A request whose id is None is given one. `waiters`, if any, has one item for each
        request; the deadline applies to each. An `ExtendedRequest` or `ExtendedNotification`
        keeps its own envelope; other calls carry that of the peer.

        Raises:
            IdsExhausted: the counter has no id left.
            LocalProtocolError: this revision has no batches, an id is in use or twice in the
                batch, the batch is empty or cannot be encoded, or this peer is closed.
                Nothing was sent.
        """
        self._check_open()
        if not self._codec.policy.sends_batches:
            encode_errors.refuse("jsonrpc.batch.not-allowed", got=self._codec.policy.revision)
        calls = list(calls)
        own: set[RequestId] = set()
        for call in calls:
            if isinstance(call, Request) and call.id is not None:
                self._check_own_id(call.id, own)
                own.add(call.id)
        batch = Batch(self._with_id(self._with_extras(call), own) for call in calls)
        requests = [call for call in batch if isinstance(call, Request)]
        expected = [
            Pending(call.id, call.method, Replies.ONE, waiter)  # type: ignore[arg-type]  # has one
            for call, waiter in zip(requests, waiters or repeat(None, len(requests)), strict=True)
        ]
        written = self._codec.encode(batch)
        for pending in expected:
            self._outgoing.open(pending, deadline=deadline)
        if self._ids_last:
            for id in own:
                self._ids.claim(id)
        try:
            self._write(written, route)
        except BaseException:  # as in `send_request`
            for pending in expected:
                self._outgoing.release(pending)
            raise
        return expected

    def _with_extras(self, call: Request | Notification) -> Request | Notification:
        if self._extras is None or isinstance(call, ExtendedRequest | ExtendedNotification):
            return call
        carried = self._carried(call.method)
        if isinstance(call, Request):
            return ExtendedRequest(call.method, call.params, id=call.id, **carried)
        return ExtendedNotification(call.method, call.params, **carried)

    def _with_id(
        self, call: Request | Notification, taken: Set[RequestId]
    ) -> Request | Notification:
        if isinstance(call, Request) and call.id is None:
            return replace(call, id=self._next_id(taken))
        return call

    def _next_id(self, taken: Set[RequestId] = frozenset()) -> RequestId:
        id: RequestId = self._ids.next()
        # A caller chose this one; or it closed lately, and its answer may still arrive.
        while self._outgoing.remembers(id) or id in taken:
            id = self._ids.next()
        return id

    def _check_own_id(self, id: RequestId, taken: Set[RequestId] = frozenset()) -> None:
        if type(id) is not int and type(id) is not str:
            encode_errors.refuse("jsonrpc.id.type", got=id)
        used = id in self._outgoing or id in taken
        if self._ids_last:
            used = used or self._ids.has_passed(id) or self._outgoing.remembers(id)
        if used:
            encode_errors.refuse("jsonrpc.id.in-use", got=id)

    def _check_open(self) -> None:
        if self._is_closed:
            encode_errors.refuse("jsonrpc.peer.closed")

    # -- closing -----------------------------------------------------------------------------

    def cancel(self, pending: Pending) -> bool:
        """Stop waiting for a reply; return False if the request is not open any more."""
        return self._outgoing.release(pending)

    def expire(
        self, now: float, *, error: ErrorObject | None = None
    ) -> tuple[list[Pending], list[IncomingRequest]]:
        """Close the outgoing and incoming requests whose deadline has passed; return both.

        The incoming ones are answered with `error`; if it is None they are not answered.

        Raises:
            LocalProtocolError: the error cannot be encoded; no request was closed.
        """
        if error is not None:
            self._codec.encode(Failure(None, error))
        overdue = self._incoming.expire(now)
        for asked in overdue:
            answer = None if error is None else self._codec.encode(Failure(asked.id, error))
            self._settle(answer, asked.route, asked.slot)
        # Last, so that outgoing requests are not lost when a write above raises.
        return self._outgoing.expire(now), overdue

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all open requests."""
        ours, theirs = self._outgoing.next_deadline(), self._incoming.next_deadline()
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        return min(ours, theirs)

    def close(self) -> tuple[list[Pending], list[IncomingRequest]]:
        """Close; return the outgoing and incoming requests still open, each oldest first."""
        self._is_closed = True
        return self._outgoing.drain(), self._incoming.drain()


def _ids_of(policy: Policy) -> IdSource | UuidSource:
    if policy.ids == "uuid":
        return UuidSource()
    return IdSource(first=policy.first_id, maximum=policy.max_id)


class _BatchAnswer:
    """The answers to one batch, in request order; None for no answer."""

    __slots__ = ("answers", "held", "owed")

    def __init__(self, size: int) -> None:
        self.answers: list[bytes | None] = [None] * size
        # Every element counts until it is settled, so that all are read before the answer.
        self.owed = size
        self.held = 0  # bytes of the answers so far

    def joined(self) -> bytes | None:
        given = [answer for answer in self.answers if answer is not None]
        return b"[" + b",".join(given) + b"]" if given else None


# The place of one element in the answer to its batch.
_Slot: TypeAlias = tuple[_BatchAnswer, int]
