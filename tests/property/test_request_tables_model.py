"""The tables of outgoing and incoming requests agree with a plain dict."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.effort import examples
from trunkline.errors import LocalProtocolError
from trunkline.jsonrpc import (
    IncomingRequest,
    IncomingRequests,
    OutgoingRequests,
    Pending,
    Replies,
    RequestId,
    UnmatchedReply,
)
from trunkline.jsonrpc.peer import deadlines as deadlines_module
from trunkline.jsonrpc.peer import outgoing as outgoing_module

# Few ids, so that they are used again; of both kinds, so that they could be confused.
ids: st.SearchStrategy[RequestId] = st.sampled_from([0, 1, 2, "0", "1", "2"])
times = st.integers(0, 8).map(float)
steps = settings(
    max_examples=examples(150), stateful_step_count=60, deadline=None, derandomize=True
)

CLOSED_KEPT = 3
STALE_KEPT = 2


class Bounded(RuleBasedStateMachine):
    """A machine whose bounds are so small that they are reached."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(outgoing_module, "MAX_CLOSED_IDS", CLOSED_KEPT)
        self.patch.setattr(deadlines_module, "_MAX_STALE_ENTRIES", STALE_KEPT)
        self.patch.setattr(deadlines_module, "_FEW", 1)  # so that some are pushed

    def teardown(self) -> None:
        self.patch.undo()


def due(deadlines: dict[Any, float], now: float) -> list[Any]:
    """What a dict of deadlines, the latest set last, says is due: earliest, then oldest first."""
    found = [key for key, when in deadlines.items() if when <= now]
    return sorted(found, key=lambda key: deadlines[key])


def put(deadlines: dict[Any, float], key: Any, when: float) -> None:
    """Set a deadline as the latest one."""
    deadlines.pop(key, None)
    deadlines[key] = when


class LedgerMachine(Bounded):
    """Open requests are a dict, closed ones a list of the last few."""

    def __init__(self) -> None:
        super().__init__()
        self.outgoing = OutgoingRequests()
        self.open: dict[RequestId, Pending] = {}
        self.closed: list[tuple[RequestId, UnmatchedReply]] = []
        self.deadlines: dict[RequestId, float] = {}
        self.ever: list[Pending] = []

    def close(self, id: RequestId, why: UnmatchedReply) -> Pending:
        self.deadlines.pop(id, None)
        self.closed = [*self.closed, (id, why)][-CLOSED_KEPT:]
        return self.open.pop(id)

    @rule(id=ids, replies=st.sampled_from(Replies), deadline=st.none() | times)
    def open_one(self, id: RequestId, replies: Replies, deadline: float | None) -> None:
        request = Pending(id, "work", replies)
        if id in self.open:
            with pytest.raises(LocalProtocolError):
                self.outgoing.open(request, deadline=deadline)
            return
        self.outgoing.open(request, deadline=deadline)
        self.ever.append(request)
        self.open[id] = request
        self.closed = [(other, why) for other, why in self.closed if other != id]
        if deadline is not None:
            put(self.deadlines, id, deadline)

    @rule(id=ids, is_error=st.booleans())
    def match(self, id: RequestId, is_error: bool) -> None:
        found = self.outgoing.match(id, is_error=is_error)
        if id not in self.open:
            assert found is dict(self.closed).get(id, UnmatchedReply.UNKNOWN)
        elif is_error or self.open[id].replies is Replies.ONE:
            assert found is self.close(id, UnmatchedReply.DUPLICATE)
        else:
            assert found is self.open[id]

    @precondition(lambda self: self.ever)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.ever[-8:]))
        was_open = self.open.get(request.id) is request
        assert self.outgoing.release(request) is was_open
        if was_open:
            self.close(request.id, UnmatchedReply.LATE)

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), deadline=times)
    def set_deadline(self, data: st.DataObject, deadline: float) -> None:
        request = data.draw(st.sampled_from(self.ever[-8:]))
        was_open = self.open.get(request.id) is request
        assert self.outgoing.set_deadline(request, deadline) is was_open
        if was_open:
            put(self.deadlines, request.id, deadline)

    @rule(now=times)
    def expire(self, now: float) -> None:
        expected = [self.close(id, UnmatchedReply.LATE) for id in due(self.deadlines, now)]
        assert self.outgoing.expire(now) == expected

    @rule(seldom=st.integers(0, 9))
    def drain(self, seldom: int) -> None:
        if seldom == 9:
            assert self.outgoing.drain() == [
                self.close(id, UnmatchedReply.LATE) for id in list(self.open)
            ]

    @invariant()
    def agrees(self) -> None:
        assert len(self.outgoing) == len(self.open)
        assert self.outgoing.next_deadline() == min(self.deadlines.values(), default=None)
        for id in (0, 1, 2, "0", "1", "2"):
            assert self.outgoing.find(id) is self.open.get(id)
            assert (id in self.outgoing) is (id in self.open)
            assert self.outgoing.remembers(id) is (id in self.open or id in dict(self.closed))

    @invariant()
    def stays_small(self) -> None:
        assert len(self.outgoing._closed) <= CLOSED_KEPT
        assert len(self.outgoing._deadlines) == len(self.deadlines)
        assert len(self.outgoing._deadlines._heap) <= 2 * len(self.deadlines) + STALE_KEPT


class InboxMachine(Bounded):
    """Open requests are a dict; null is an id like any other."""

    def __init__(self) -> None:
        super().__init__()
        self.incoming = IncomingRequests()
        self.open: dict[RequestId | None, IncomingRequest] = {}
        self.deadlines: dict[RequestId | None, float] = {}
        self.ever: list[IncomingRequest] = []

    def take_out(self, id: RequestId | None) -> IncomingRequest:
        self.deadlines.pop(id, None)
        return self.open.pop(id)

    @rule(id=st.none() | ids, deadline=st.none() | times)
    def open_one(self, id: RequestId | None, deadline: float | None) -> None:
        asked = IncomingRequest(id, "work")
        self.ever.append(asked)
        is_free = id not in self.open
        assert self.incoming.open(asked, deadline=deadline) is is_free
        if is_free:
            self.open[id] = asked
            if deadline is not None:
                put(self.deadlines, id, deadline)

    @precondition(lambda self: self.ever)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        asked = data.draw(st.sampled_from(self.ever[-8:]))
        was_open = self.open.get(asked.id) is asked
        assert (asked in self.incoming) is was_open
        assert self.incoming.take(asked) is was_open
        if was_open:
            self.take_out(asked.id)

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), deadline=times)
    def set_deadline(self, data: st.DataObject, deadline: float) -> None:
        asked = data.draw(st.sampled_from(self.ever[-8:]))
        was_open = self.open.get(asked.id) is asked
        assert self.incoming.set_deadline(asked, deadline) is was_open
        if was_open:
            put(self.deadlines, asked.id, deadline)

    @rule(now=times)
    def expire(self, now: float) -> None:
        expected = [self.take_out(id) for id in due(self.deadlines, now)]
        assert self.incoming.expire(now) == expected

    @rule(seldom=st.integers(0, 9))
    def drain(self, seldom: int) -> None:
        if seldom == 9:
            assert self.incoming.drain() == list(self.open.values())
            self.open.clear()
            self.deadlines.clear()

    @invariant()
    def agrees(self) -> None:
        assert len(self.incoming) == len(self.open)
        assert self.incoming.next_deadline() == min(self.deadlines.values(), default=None)
        for id in (0, 1, 2, "0", "1", "2"):
            assert self.incoming.find(id) is self.open.get(id)

    @invariant()
    def stays_small(self) -> None:
        kept = self.incoming._deadlines  # None until the first
        assert (0 if kept is None else len(kept)) == len(self.deadlines)
        assert kept is None or len(kept._heap) <= 2 * len(self.deadlines) + STALE_KEPT


TestLedgerAgreesWithADict = LedgerMachine.TestCase
TestLedgerAgreesWithADict.settings = steps
TestInboxAgreesWithADict = InboxMachine.TestCase
TestInboxAgreesWithADict.settings = steps
