"""Two peers over a wire that loses, doubles and reorders: each request ends at most once.

Every request carries a number of its own and every answer the number it answers,
so that an answer that reaches the wrong request is seen. Frames wait on two
wires until a rule delivers one, any one; handlers answer at once, later, never,
or ask back.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import UNSET
from msgspec.json import encode

from tests.effort import examples, is_full
from trunkline.errors import InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Codec,
    ErrorObject,
    IncomingRequest,
    Notification,
    Peer,
    Pending,
    Policy,
    ProtocolProblem,
    Replies,
    Reply,
    Request,
    RequestId,
)
from trunkline.jsonrpc.peer.outgoing import MAX_CLOSED_IDS

# What a side does with a request when it comes, what becomes of a frame on the wire, and of a
# request that waits for its answer.
MANNERS = (*["later"] * 5, *["at once"] * 5, "ask back", "ask back", "drop", "close")
FATES = (*["deliver"] * 7, "double", "lose", "cut")
WAYS = (*["answer"] * 4, "fail", "drop", "put off")
# Ids of a caller's own, some in the way of the count.
OWN_IDS: list[RequestId | None] = [*[None] * 12, 1, 2, 3, 5, 8, 13, 21, "1", "2", "a"]
# The answer to every request that was not answered in time; a request has a number of its own.
TOO_LATE = ErrorObject(-32000, "too late", {"n": -1})
# One number drawn stands for many choices, so that runs are long.
chances = st.integers(0, 2**32).map(Random)


class ModelledPeer:
    """One peer, and a record of all that happened to it."""

    def __init__(self, policy: Policy, numbers: count[int]) -> None:
        self.numbers = numbers
        self.manner = "later"
        self.wire: list[bytes] = []
        self.fed = 0
        # What we asked, by its number; how often each ended; and what was used as its id.
        self.pending: dict[int, Pending] = {}
        self.ended: Counter[int] = Counter()
        self.used: set[RequestId] = set()
        # What we were asked, and which of it was answered, dropped or given back.
        self.asked: list[IncomingRequest] = []
        self.taken: list[IncomingRequest] = []
        self.granted: Counter[int] = Counter()
        self.written: Counter[int] = Counter()
        self.settled: Counter[int] = Counter()
        self.peer = Peer(
            Codec(policy),
            write=self.write,
            on_request=self.on_request,
            on_notification=self.is_open,
            on_reply=self.on_reply,
            on_problem=self.on_problem,
            on_settled=self.on_settled,
        )

    # -- what the peer calls

    def is_open(self, *_: object) -> None:
        assert not self.peer.is_closed

    def on_settled(self, route: int) -> None:
        self.is_open()
        self.settled[route] += 1

    def write(self, frame: bytes, _route: object) -> None:
        self.is_open()
        self.wire.append(frame)
        read = json.loads(frame)
        named = [
            message
            for message in (read if isinstance(read, list) else [read])
            if "method" not in message and message.get("id") is not None
        ]
        # A frame that was cut names its request: never one that is open.
        for message in named:
            assert not is_cut(message) or self.peer.incoming.find(message["id"]) is None
        answers = [number_of(message) for message in named]
        answers = [number for number in answers if number != -1]
        # A batch is numbered in request order, and its answer has that order.
        assert answers == sorted(answers)
        self.written.update(answers)

    def on_request(self, asked: IncomingRequest) -> None:
        self.is_open()
        assert all(asked is not other for other in self.asked)
        self.asked.append(asked)
        if self.manner == "at once":
            assert self.answer(asked)
        elif self.manner == "ask back":
            self.ask(None, None, Replies.ONE)
        elif self.manner == "drop":
            assert self.peer.drop(asked)
            self.taken.append(asked)
        elif self.manner == "close":
            self.close()

    def on_reply(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        self.is_open()
        number = pending.waiter
        assert self.ended[number] == 0
        if isinstance(reply, Reply):
            # Nobody's answer but its own.
            assert reply.id == pending.id
            assert number_of(json.loads(encode(reply))) in (number, -1)
        is_result = isinstance(reply, Reply) and reply.error is UNSET
        if pending.replies is Replies.ONE or not is_result:
            self.ended[number] += 1

    def on_problem(self, _problem: ProtocolProblem, _route: object) -> None:
        """Loss, doubling and late replies make these; which, the unit tests say."""

    # -- what the rules do

    def feed(self, frame: bytes) -> None:
        self.fed += 1
        self.peer.feed(frame, self.fed)

    def ask(self, id: RequestId | None, deadline: float | None, replies: Replies) -> None:
        number = next(self.numbers)
        try:
            pending = self.peer.send_request(
                "work", {"n": number}, id=id, deadline=deadline, replies=replies, waiter=number
            )
        except LocalProtocolError:
            assert self.peer.is_closed or id is not None
            return
        self.expect([pending])

    def expect(self, expected: list[Pending]) -> None:
        for pending in expected:
            self.pending[pending.waiter] = pending
            self.used.add(pending.id)

    def answer(self, asked: IncomingRequest, *, failing: bool = False) -> bool:
        number = json.loads(bytes(asked.params))["n"]
        if failing:
            done = self.peer.fail(asked, ErrorObject(-32000, "no", {"n": number}))
        else:
            done = self.peer.answer(asked, {"n": number})
        if done:
            self.granted[number] += 1
            self.taken.append(asked)
        return done

    def end(self, pending: list[Pending], asked: list[IncomingRequest]) -> None:
        self.ended.update(request.waiter for request in pending)
        self.taken += asked

    def close(self) -> None:
        self.end(*self.peer.close())

    # -- what always holds

    def a_request_ends_at_most_once(self) -> None:
        assert max(self.ended.values(), default=0) <= 1
        waiting = {number for number in self.pending if not self.ended[number]}
        assert len(self.peer.outgoing) == len(waiting)
        for number in waiting:
            assert self.peer.outgoing.find(self.pending[number].id) is self.pending[number]

    def a_request_is_answered_at_most_once(self) -> None:
        assert len({id(asked) for asked in self.taken}) == len(self.taken)
        assert len(self.peer.incoming) == len(self.asked) - len(self.taken)
        assert self.written <= self.granted

    def a_frame_is_settled_when_nothing_of_it_is_open(self) -> None:
        owed = {asked.route for asked in self.asked if asked in self.peer.incoming}
        assert max(self.settled.values(), default=0) <= 1
        assert not owed & self.settled.keys()
        if not self.peer.is_closed:
            assert owed | self.settled.keys() == set(range(1, self.fed + 1))


def number_of(reply: dict[str, Any]) -> int:
    """The number of the request that a reply, as we write them, answers; -1 for none."""
    if is_cut(reply):
        return -1
    number = reply["result"]["n"] if "result" in reply else reply["error"]["data"]["n"]
    assert isinstance(number, int)
    return number


def is_cut(reply: dict[str, Any]) -> bool:
    """Say whether this reply is to a request that was cut on its way."""
    return "error" in reply and reply["error"]["code"] == -32700


class PeersMachine(RuleBasedStateMachine):
    """Two sides, two wires and a clock."""

    policy = Policy.mcp("2025-03-26")
    manners: tuple[str, ...] = MANNERS

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.now = 0.0
        self.sides = (ModelledPeer(self.policy, numbers), ModelledPeer(self.policy, numbers))

    def chosen(self, side: ModelledPeer, id: RequestId | None) -> RequestId | None:
        """An id that the policy lets a caller use without risk, or none."""
        return id

    def deadline(self, chance: Random) -> float | None:
        return chance.choice([None, self.now + chance.randrange(1, 20)])

    @rule(chance=chances)
    def many_things(self, chance: Random) -> None:
        doings = (self.ask, self.ask_together, self.notify, self.spoil, self.let_go, self.pass_time)
        often = (*[self.move] * 6, *[self.finish] * 5, *doings, self.ask, self.behave)
        for _ in range(30):
            chance.choice(often)(chance)
            self.holds()

    # -- asking

    @rule(chance=chances)
    def ask(self, chance: Random) -> None:
        side = chance.choice(self.sides)
        id = self.chosen(side, chance.choice(OWN_IDS))
        replies = chance.choice([Replies.ONE, Replies.ONE, Replies.MANY])
        side.ask(id, self.deadline(chance), replies)

    @rule(chance=chances)
    def ask_together(self, chance: Random) -> None:
        side = chance.choice(self.sides)
        numbers = [next(side.numbers) for _ in range(chance.randrange(1, 5))]
        calls: list[Request | Notification] = [
            Request("work", {"n": number}, id=self.chosen(side, chance.choice(OWN_IDS)))
            for number in numbers
        ]
        calls.insert(1, Notification("note"))
        before = len(side.peer.outgoing)
        try:
            expected = side.peer.send_batch(calls, deadline=self.deadline(chance), waiters=numbers)
        except LocalProtocolError:
            assert len(side.peer.outgoing) == before
        else:
            side.expect(expected)

    @rule(chance=chances)
    def notify(self, chance: Random) -> None:
        side = chance.choice(self.sides)
        if not side.peer.is_closed:
            side.peer.send_notification("note")

    # -- the wire

    @rule(chance=chances)
    def move(self, chance: Random) -> None:
        at = chance.randrange(2)
        wire, other = self.sides[at].wire, self.sides[1 - at]
        if not wire:
            return
        frame, fate = wire.pop(chance.randrange(len(wire))), chance.choice(FATES)
        if fate == "double":
            wire.append(frame)
        if fate == "cut":
            other.feed(frame[:-1])
        elif fate != "lose":
            other.feed(frame)

    @rule(chance=chances)
    def spoil(self, chance: Random) -> None:
        """A reply with two outcomes comes in, to a request of ours or to none."""
        side = chance.choice(self.sides)
        ids = [pending.id for pending in side.pending.values()]
        id = chance.choice([*ids, "nobody's"])
        side.feed(json.dumps({"jsonrpc": "2.0", "id": id, "result": {}, "error": {}}).encode())
        assert id not in side.peer.outgoing

    # -- answering

    @rule(chance=chances)
    def behave(self, chance: Random) -> None:
        chance.choice(self.sides).manner = chance.choice(self.manners)

    @rule(chance=chances)
    def finish(self, chance: Random) -> None:
        side, how = chance.choice(self.sides), chance.choice(WAYS)
        if not side.asked:
            return
        asked = chance.choice(side.asked[-10:])
        was_open = all(asked is not other for other in side.taken)
        if how == "put off":
            assert side.peer.incoming.set_deadline(asked, self.now + 5) is was_open
        elif how == "drop":
            assert side.peer.drop(asked) is was_open
            side.taken += [asked] * was_open
        else:
            assert side.answer(asked, failing=how == "fail") is was_open

    # -- ending

    @rule(chance=chances)
    def let_go(self, chance: Random) -> None:
        side = chance.choice(self.sides)
        if not side.pending:
            return
        number = chance.choice(list(side.pending)[-10:])
        pending, was_open = side.pending[number], side.ended[number] == 0
        if chance.random() < 0.5:
            assert side.peer.outgoing.set_deadline(pending, self.now + 5) is was_open
        else:
            assert side.peer.cancel(pending) is was_open
            side.ended[number] += was_open

    @rule(chance=chances)
    def pass_time(self, chance: Random) -> None:
        self.now += chance.randrange(6)
        for side in self.sides:
            pending, asked = side.peer.expire(self.now, error=chance.choice([None, TOO_LATE]))
            side.end(pending, asked)
            upcoming = side.peer.next_deadline()
            assert upcoming is None or upcoming > self.now

    # -- what always holds

    @invariant()
    def holds(self) -> None:
        for side in self.sides:
            side.a_request_ends_at_most_once()
            side.a_request_is_answered_at_most_once()
            side.a_frame_is_settled_when_nothing_of_it_is_open()
            assert len(side.peer.outgoing._closed) <= MAX_CLOSED_IDS

    def teardown(self) -> None:
        wires = [list(side.wire) for side in self.sides]
        for side in self.sides:
            side.close()
        for side, frames in zip(self.sides, reversed(wires), strict=True):
            for frame in frames:
                side.peer.feed(frame)
            assert (len(side.peer.outgoing), len(side.peer.incoming)) == (0, 0)
            assert side.peer.close() == ([], [])
            assert all(side.ended[number] == 1 for number in side.pending)
            assert len(side.taken) == len(side.asked)


class OpenIdsMachine(PeersMachine):
    """Ids last only while open, so it is for the caller not to use one again too soon."""

    policy = Policy.mcp("2026-07-28").replace(batch="accept")

    def chosen(self, side: ModelledPeer, id: RequestId | None) -> RequestId | None:
        if id in side.used:
            return None
        if id is not None:
            side.used.add(id)
        return id


steps = settings(
    max_examples=examples(150), stateful_step_count=30, deadline=None, derandomize=True
)
TestIdsLastASession = PeersMachine.TestCase
TestIdsLastASession.settings = steps
TestIdsLastWhileOpen = OpenIdsMachine.TestCase
TestIdsLastWhileOpen.settings = steps


@pytest.mark.parametrize("seed", range(2 if is_full() else 1))
def test_a_long_conversation_holds_as_well(seed: int) -> None:
    machine, chance = OpenIdsMachine(), Random(seed)
    machine.manners = tuple(manner for manner in MANNERS if manner != "close")
    for _ in range(160):
        machine.many_things(chance)
    # So long that the memory of closed ids is full.
    assert all(len(side.peer.outgoing._closed) == MAX_CLOSED_IDS for side in machine.sides)
    machine.teardown()
