"""Two sides of a conversation: what each is called with, what each writes, and what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from msgspec import UNSET, Raw, Struct

from trunkline.errors import IdsExhausted, InvalidMessage, LocalProtocolError
from trunkline.jsonrpc import (
    Codec,
    EnvelopeExtras,
    ErrorObject,
    ExtendedRequest,
    IdSource,
    IncomingRequest,
    Limits,
    Notification,
    OutgoingRequests,
    Oversize,
    Peer,
    Pending,
    Policy,
    ProtocolProblem,
    Replies,
    Reply,
    Request,
    UnmatchedReply,
    UnmatchedReplyEvent,
)
from trunkline.jsonrpc.messages import SentRequest
from trunkline.jsonrpc.peer.outgoing import MAX_CLOSED_IDS
from trunkline.jsonrpc.peer.peer import Extras
from trunkline.spec.revisions import REVISIONS

# Ids last a session in the first and only while open in the second; both take batches.
SESSION = Policy.mcp("2025-03-26")
OPEN = Policy.mcp("2026-07-28").replace(batch="accept")
PLAIN = Policy.jsonrpc()
BUSY = ErrorObject(-32000, "busy")


class Side:
    """A peer that keeps what it wrote and what it was called with.

    `on_request` and the like are what it does besides; `link` delivers at once.
    """

    def __init__(
        self,
        policy: Policy = SESSION,
        *,
        ids: IdSource | None = None,
        answers_faults: bool = True,
        envelope: Extras | None = None,
        routes_requests: bool = False,
        admits_notification: Callable[[Any, int], bool] | None = None,
    ) -> None:
        self.sent: list[Any] = []
        self.routes: list[Any] = []
        self.asked: list[IncomingRequest] = []
        self.notified: list[tuple[str, Any]] = []
        self.replies: list[tuple[Pending, Reply | InvalidMessage]] = []
        self.problems: list[tuple[ProtocolProblem, Any]] = []
        self.settled: list[Any] = []
        self.on_request: Callable[[IncomingRequest], object] = lambda _: None
        self.on_notification: Callable[[], object] = lambda: None
        self.on_reply: Callable[[], object] = lambda: None
        self.on_problem: Callable[[], object] = lambda: None
        self.on_write: Callable[[bytes], object] = lambda _: None
        self.peer = Peer(
            Codec(policy),
            write=self._write,
            on_request=self._request,
            on_notification=self._notification,
            on_reply=self._reply,
            on_problem=self._problem,
            on_settled=self.settled.append,
            ids=ids,
            answers_faults=answers_faults,
            envelope=envelope,
            routes_requests=routes_requests,
            admits_notification=admits_notification,
        )

    def _write(self, frame: bytes, route: Any) -> None:
        self.sent.append(json.loads(frame))
        self.routes.append(route)
        self.on_write(frame)

    def _request(self, asked: IncomingRequest) -> None:
        self.asked.append(asked)
        self.on_request(asked)

    def _notification(self, message: Any, route: Any) -> None:
        self.notified.append((message.method, route))
        self.on_notification()

    def _reply(self, pending: Pending, reply: Reply | InvalidMessage) -> None:
        self.replies.append((pending, reply))
        self.on_reply()

    def _problem(self, problem: ProtocolProblem, route: Any) -> None:
        self.problems.append((problem, route))
        self.on_problem()

    def feed(self, message: Any, route: Any = None) -> None:
        self.peer.feed(json.dumps(message).encode(), route)

    @property
    def rules(self) -> list[str]:
        """What the other side was told it did wrong, or why its replies were stray."""
        return [
            problem.rule if isinstance(problem, InvalidMessage) else problem.why.name
            for problem, _ in self.problems
        ]

    @property
    def open(self) -> tuple[int, int]:
        return len(self.peer.outgoing), len(self.peer.incoming)


def joined(policy: Policy = SESSION) -> tuple[Side, Side]:
    """Two sides whose writes arrive at once."""
    one, other = Side(policy), Side(policy)
    one.on_write = other.peer.feed
    other.on_write = one.peer.feed
    return one, other


def call(id: Any, method: str = "work") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def notice(method: str = "note") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method}


def success(id: Any, result: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result or {}}


def failure(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "busy"}}


def broken_write(_: bytes) -> None:
    raise ConnectionResetError


def outcome(side: Side) -> Any:
    """What the last reply said."""
    reply = side.replies[-1][1]
    assert isinstance(reply, Reply)
    return reply.error if reply.result is UNSET else json.loads(bytes(reply.result))


# Asking and answering


def test_reply_is_matched_to_its_request_and_waiter() -> None:
    client, server = joined()
    server.on_request = lambda asked: server.peer.answer(asked, {"pong": asked.method})
    waiter = object()
    pending = client.peer.send_request("ping", {"a": 1}, waiter=waiter)
    assert client.sent == [{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": 1}}]
    assert [found for found, _ in client.replies] == [pending]
    assert pending.waiter is waiter
    assert outcome(client) == {"pong": "ping"}
    assert bytes(server.asked[0].params) == b'{"a":1}'
    assert client.open == server.open == (0, 0)


def test_a_request_may_be_answered_later_and_in_any_order() -> None:
    client, server = joined()
    first, second = client.peer.send_request("a"), client.peer.send_request("b")
    assert client.open == (2, 0)
    assert server.open == (0, 2)
    for asked in reversed(server.asked):
        assert server.peer.answer(asked, {"to": asked.method})
    assert [pending for pending, _ in client.replies] == [second, first]
    assert outcome(client) == {"to": "a"}


def test_an_error_is_an_answer_too() -> None:
    client, server = joined()
    server.on_request = lambda asked: server.peer.fail(asked, BUSY)
    client.peer.send_request("work")
    assert outcome(client) == BUSY
    assert client.open == server.open == (0, 0)


def test_both_sides_may_ask_with_the_same_ids() -> None:
    client, server = joined()
    server.on_request = lambda _: server.peer.send_request("roots")
    client.on_request = lambda asked: client.peer.answer(asked, {"roots": []})
    pending = client.peer.send_request("list")
    assert pending.id == server.replies[0][0].id == 1
    assert outcome(server) == {"roots": []}
    assert client.replies == []
    server.peer.answer(server.asked[0], {"done": True})
    assert outcome(client) == {"done": True}


def test_the_answer_goes_where_the_request_came_from() -> None:
    server = Side()
    server.feed(call(1), "first stream")
    server.feed(call(2), "second stream")
    for asked in reversed(server.asked):
        server.peer.answer(asked, {})
    assert server.routes == ["second stream", "first stream"]


def test_messages_are_sent_by_the_given_route() -> None:
    side = Side()
    side.peer.send_request("a", route="r1")
    side.peer.send_notification("b", route="r2")
    side.peer.send_batch([Notification("c")], route="r3")
    assert side.routes == ["r1", "r2", "r3"]


def test_request_without_a_route_is_its_own_route_if_the_peer_routes_requests() -> None:
    side = Side(routes_requests=True)
    pending = side.peer.send_request("a", {"b": 1})
    side.peer.send_request("a", route="r1")
    side.peer.send_notification("c")
    assert side.routes == [SentRequest(pending.id, "a", {"b": 1}), "r1", None]


def test_a_notification_draws_no_answer_and_knows_its_route() -> None:
    side = Side()
    side.feed(notice(), "stream")
    assert side.notified == [("note", "stream")]
    assert side.sent == []
    assert side.open == (0, 0)


def test_a_notification_is_sent_without_an_id_and_nothing_is_expected() -> None:
    side = Side()
    side.peer.send_notification("progress", {"n": 1})
    assert side.sent == [{"jsonrpc": "2.0", "method": "progress", "params": {"n": 1}}]
    assert side.open == (0, 0)


def test_a_frame_may_be_any_buffer_or_text() -> None:
    text = json.dumps(notice())
    side = Side()
    for frame in (text, text.encode(), bytearray(text.encode()), memoryview(text.encode())):
        side.peer.feed(frame)
    assert len(side.notified) == 4


def test_envelope_members_reach_the_request_handler() -> None:
    server = Side(Policy.pierre())
    server.feed({**call(1), "auth": "Bearer x", "metadata": {"k": "v"}})
    (asked,) = server.asked
    assert (asked.envelope.auth, asked.envelope.metadata) == ("Bearer x", {"k": "v"})
    assert "Bearer" not in repr(asked)


# The envelope of Pierre, sent

EXTRAS = EnvelopeExtras(auth="Bearer CANARY", headers={"x-tenant-id": "t"}, metadata={"k": "v"})
CARRIED = {"auth": "Bearer CANARY", "headers": {"x-tenant-id": "t"}, "metadata": {"k": "v"}}


def test_a_request_and_a_notification_carry_the_envelope_that_they_are_given() -> None:
    client = Side(Policy.pierre())
    client.peer.send_request("m", {"a": 1}, envelope=EXTRAS)
    client.peer.send_notification("n", envelope=EXTRAS)
    client.peer.send_request("m")
    first, second, third = client.sent
    assert first == {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}, **CARRIED}
    assert second == {"jsonrpc": "2.0", "method": "n", **CARRIED}
    assert third == {"jsonrpc": "2.0", "id": 2, "method": "m"}


def test_a_peer_with_an_envelope_sends_it_with_everything_unless_a_call_has_its_own() -> None:
    client, server = Side(Policy.pierre(), envelope=EXTRAS), Side(Policy.pierre())
    client.on_write, server.on_write = server.peer.feed, client.peer.feed
    client.peer.send_request("m")
    client.peer.send_request("m", envelope=EnvelopeExtras(metadata={"k": "own"}))
    assert client.sent[0] == {"jsonrpc": "2.0", "id": 1, "method": "m", **CARRIED}
    assert client.sent[1].keys() == {"jsonrpc", "id", "method", "metadata"}
    assert [asked.envelope.metadata for asked in server.asked] == [{"k": "v"}, {"k": "own"}]
    assert server.asked[0].envelope.auth == "Bearer CANARY"


def test_an_envelope_may_be_made_for_each_method() -> None:
    client = Side(
        Policy.pierre(), envelope=lambda method: EnvelopeExtras(headers={"x-request-id": method})
    )
    client.peer.send_request("a")
    client.peer.send_notification("b")
    assert [each["headers"]["x-request-id"] for each in client.sent] == ["a", "b"]


def test_the_calls_of_a_batch_carry_the_envelope_of_the_peer_or_their_own() -> None:
    client = Side(Policy.pierre().replace(batch="accept"), envelope=EXTRAS)
    client.peer.send_batch(
        [
            Request("a", id=None),
            Notification("b"),
            ExtendedRequest("c", id=None, metadata={"k": "own"}),
        ]
    )
    (batch,) = client.sent
    assert batch[0] == {"jsonrpc": "2.0", "method": "a", "id": 1, **CARRIED}
    assert batch[1] == {"jsonrpc": "2.0", "method": "b", **CARRIED}
    assert batch[2] == {"jsonrpc": "2.0", "method": "c", "id": 2, "metadata": {"k": "own"}}


def test_where_the_policy_has_no_such_envelope_nothing_is_sent() -> None:
    client = Side(PLAIN, envelope=EXTRAS)
    for send in (
        lambda: client.peer.send_request("m"),
        lambda: client.peer.send_notification("m"),
        lambda: client.peer.send_batch([Request("m", id=None)]),
    ):
        with pytest.raises(LocalProtocolError) as caught:
            send()
        assert caught.value.rule == "jsonrpc.envelope.not-allowed"
        assert "CANARY" not in str(caught.value)
    assert client.sent == []
    assert client.open == (0, 0)


def test_a_function_that_returns_no_envelope_is_reported() -> None:
    client = Side(Policy.pierre(), envelope=lambda method: {"auth": "CANARY"})  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="the envelope of m is an EnvelopeExtras, not a dict"):
        client.peer.send_request("m")
    assert client.sent == []


def test_requests_may_go_by_uuids_and_each_reply_finds_its_own() -> None:
    policy = SESSION.replace(ids="uuid")
    client, server = Side(policy), Side()
    client.on_write, server.on_write = server.peer.feed, client.peer.feed
    sent = [client.peer.send_request("m", waiter=number) for number in range(3)]
    ids = [each.id for each in sent]
    assert all(isinstance(id, str) and UUID(id).version == 4 for id in ids)
    assert len(set(ids)) == 3
    for asked in reversed(server.asked):
        server.peer.answer(asked, {})
    assert [pending.waiter for pending, _ in client.replies] == [2, 1, 0]
    client.peer.send_request("m", id=7)
    assert client.sent[-1]["id"] == 7


# At most one answer


def test_typed_params_reach_the_request_handler() -> None:
    class Params(Struct):
        name: str

    asked: list[IncomingRequest] = []
    peer = Peer(
        Codec(SESSION, expect="calls", params={"work": Params}),
        write=lambda _frame, _route: None,
        on_request=asked.append,
    )
    peer.feed(json.dumps({**call(1), "params": {"name": "echo"}}).encode())
    peer.feed(json.dumps({**call(2, "other"), "params": {"name": "echo"}}).encode())
    assert [(each.method, each.id) for each in asked] == [("work", 1), ("other", 2)]
    assert asked[0].params == Params("echo")
    assert asked[1].params == Raw(b'{"name": "echo"}')


def test_the_second_answer_to_a_request_is_not_sent() -> None:
    server = Side()
    server.feed(call(1))
    (asked,) = server.asked
    assert server.peer.answer(asked, {})
    assert not server.peer.answer(asked, {})
    assert not server.peer.fail(asked, BUSY)
    assert not server.peer.drop(asked)
    assert server.sent == [success(1)]


def test_a_cancelled_request_is_not_answered() -> None:
    server = Side()
    server.feed(call(1))
    asked = server.peer.incoming.find(1)
    assert asked is not None
    assert server.peer.drop(asked)
    assert not server.peer.answer(asked, {})
    assert server.sent == []
    assert server.open == (0, 0)


def test_an_answer_given_while_the_answer_is_written_is_not_sent() -> None:
    server = Side()
    again: list[bool] = []
    server.on_write = lambda _: again.append(server.peer.answer(server.asked[0], {"n": 2}))
    server.feed(call(1))
    server.peer.answer(server.asked[0], {"n": 1})
    assert again == [False]
    assert server.sent == [success(1, {"n": 1})]


def test_an_answer_that_cannot_be_written_leaves_the_request_open() -> None:
    server = Side()
    server.feed(call(1))
    (asked,) = server.asked
    with pytest.raises(LocalProtocolError):
        server.peer.answer(asked, {"x": object()})
    with pytest.raises(LocalProtocolError):
        server.peer.fail(asked, ErrorObject(1, "m", float("nan")))
    assert server.sent == []
    assert server.peer.fail(asked, BUSY)
    assert server.sent == [failure(1)]


def test_an_answer_that_cannot_be_written_to_a_request_that_is_closed_is_merely_late() -> None:
    server = Side()
    server.feed(call(1))
    (asked,) = server.asked
    server.peer.drop(asked)
    assert not server.peer.answer(asked, {"x": object()})
    assert server.sent == []


def test_request_with_a_nan_deadline_is_not_sent() -> None:
    side = Side()
    with pytest.raises(ValueError, match="NaN"):
        side.peer.send_request("work", deadline=float("nan"))
    with pytest.raises(ValueError, match="NaN"):
        side.peer.send_batch([Request("work", id=None)], deadline=float("nan"))
    assert side.sent == []
    assert side.open == (0, 0)


def test_a_late_answer_does_not_answer_the_next_request_with_that_id() -> None:
    server = Side(OPEN)
    server.feed(call(1))
    server.peer.drop(server.asked[0])
    server.feed(call(1))
    old, new = server.asked
    assert not server.peer.answer(old, {"n": "old"})
    assert server.peer.answer(new, {"n": "new"})
    assert server.sent == [success(1, {"n": "new"})]


def test_a_second_request_with_an_open_id_is_refused_without_an_id() -> None:
    server = Side(PLAIN)
    server.feed(call(1), "first")
    server.feed(call(1, "other"), "second")
    assert [asked.method for asked in server.asked] == ["work"]
    assert [reply["id"] for reply in server.sent] == [None]
    assert server.sent[0]["error"]["code"] == -32600
    assert server.routes == ["second"]
    ((problem, route),) = server.problems
    assert isinstance(problem, InvalidMessage)
    assert (problem.rule, problem.where, problem.got) == ("jsonrpc.id.duplicate", "/id", 1)
    assert route == "second"
    assert server.peer.answer(server.asked[0], {})


def test_a_frame_that_arrives_twice_does_not_spoil_the_answer() -> None:
    client, server = joined(OPEN)
    client.on_write = lambda frame: list(map(server.peer.feed, [frame, frame]))
    client.peer.send_request("work")
    server.peer.answer(server.asked[0], {"n": 1})
    assert outcome(client) == {"n": 1}
    assert client.rules == ["UNKNOWN"]


def test_seven_and_the_text_seven_are_two_requests() -> None:
    server = Side()
    server.feed(call(7, "number"))
    server.feed(call("7", "text"))
    assert [asked.method for asked in server.asked] == ["number", "text"]
    assert server.problems == []


def test_a_null_id_names_one_request_at_a_time_where_it_is_one() -> None:
    server = Side(PLAIN)
    server.feed(call(None))
    server.feed(call(None))
    assert server.rules == ["jsonrpc.id.duplicate"]
    assert server.peer.answer(server.asked[0], {"n": 1})
    assert server.sent[-1] == success(None, {"n": 1})
    server.feed(call(None))
    assert len(server.asked) == 2


# Replies that belong to nobody


@pytest.mark.parametrize("id", [1, "x", 99])
def test_a_reply_to_nothing_is_unknown_and_not_answered(id: Any) -> None:
    side = Side()
    side.feed(success(id), "stream")
    ((problem, route),) = side.problems
    assert isinstance(problem, UnmatchedReplyEvent)
    assert (problem.why, problem.reply.id, route) == (UnmatchedReply.UNKNOWN, id, "stream")
    assert side.sent == []


def test_a_reply_to_the_text_of_an_id_is_unknown() -> None:
    side = Side()
    side.peer.send_request("work")
    side.feed(success("1"))
    assert side.rules == ["UNKNOWN"]
    assert side.open == (1, 0)


def test_second_reply_is_a_duplicate_and_is_dropped() -> None:
    side = Side()
    side.peer.send_request("work")
    side.feed(success(1))
    side.feed(failure(1))
    assert len(side.replies) == 1
    assert side.rules == ["DUPLICATE"]


def test_a_reply_after_a_cancel_is_late() -> None:
    side = Side()
    pending = side.peer.send_request("work")
    assert side.peer.cancel(pending)
    assert not side.peer.cancel(pending)
    side.feed(success(1))
    assert side.replies == []
    assert side.rules == ["LATE"]


def test_a_cancel_after_the_reply_says_so() -> None:
    side = Side()
    pending = side.peer.send_request("work")
    side.feed(success(1))
    assert not side.peer.cancel(pending)


@pytest.mark.parametrize(
    "error", [failure(None), {"jsonrpc": "2.0", "error": failure(None)["error"]}]
)
def test_error_without_an_id_ends_no_request_and_is_reported_with_its_route(error: Any) -> None:
    side = Side()
    side.peer.send_request("work")
    side.feed(error, "stream")
    ((problem, route),) = side.problems
    assert isinstance(problem, UnmatchedReplyEvent)
    assert problem.reply.error == BUSY
    assert (problem.why, route) == (UnmatchedReply.UNKNOWN, "stream")
    assert len(side.sent) == 1
    assert side.open == (1, 0)


# Replies that are faulty


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"result": {}, "error": {"code": 1, "message": "m"}}, "jsonrpc.reply.one-outcome"),
        ({"error": {"message": "no code"}}, "jsonrpc.error.code"),
        ({"error": "text"}, "jsonrpc.error.object"),
        ({"result": {}, "jsonrpc": "1.0"}, "jsonrpc.version.value"),
    ],
)
@pytest.mark.parametrize("replies", Replies)
def test_a_faulty_reply_ends_the_request_it_names_and_is_not_answered(
    members: dict[str, Any], rule: str, replies: Replies
) -> None:
    side = Side()
    pending = side.peer.send_request("work", replies=replies, deadline=5.0)
    side.feed({"jsonrpc": "2.0", "id": 1, **members})
    ((found, fault),) = side.replies
    assert found is pending
    assert isinstance(fault, InvalidMessage)
    assert fault.rule == rule
    assert side.rules == [rule]
    assert len(side.sent) == 1
    assert side.open == (0, 0)
    assert side.peer.next_deadline() is None


@pytest.mark.parametrize("id", [2, "1", True, 1.5, [1]])
def test_a_faulty_reply_that_names_no_open_request_ends_none(id: Any) -> None:
    side = Side()
    side.peer.send_request("work")
    side.feed({"jsonrpc": "2.0", "id": id, "result": {}, "error": {}})
    assert side.replies == []
    assert len(side.problems) == 1
    assert len(side.sent) == 1
    assert side.open == (1, 0)


def test_invalid_reply_to_a_cancelled_request_is_dropped() -> None:
    side = Side()
    side.peer.cancel(side.peer.send_request("work"))
    side.feed({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}})
    assert side.replies == []
    assert side.rules == ["jsonrpc.reply.one-outcome"]


def test_a_reply_that_was_too_large_to_read_ends_the_request_it_began_with() -> None:
    side = Side()
    pending = side.peer.send_request("work")
    side.peer.feed(Oversize(b'{"jsonrpc":"2.0","id":1,"result":{"te', 99, 36))
    ((found, fault),) = side.replies
    assert found is pending
    assert isinstance(fault, InvalidMessage)
    assert fault.rule == "jsonrpc.limit.message-size"
    assert len(side.sent) == 1
    assert side.open == (0, 0)


def test_a_faulty_request_ends_no_request_of_ours_with_the_same_id() -> None:
    side = Side()
    side.peer.send_request("work")
    side.feed({**call(1), "method": 5})
    assert side.replies == []
    assert side.open == (1, 0)
    assert side.sent[-1]["id"] == 1
    assert side.sent[-1]["error"]["code"] == -32600


def test_a_message_with_nothing_but_the_id_of_an_open_request_ends_it() -> None:
    side = Side()
    pending = side.peer.send_request("work")
    side.feed({"jsonrpc": "2.0", "id": 1})
    ((found, fault),) = side.replies
    assert found is pending
    assert isinstance(fault, InvalidMessage)
    assert len(side.sent) == 1
    # Where no request is open, it is answered.
    side.feed({"jsonrpc": "2.0", "id": 2})
    assert side.sent[-1]["id"] == 2
    assert side.rules == ["jsonrpc.message.kind"] * 2


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":"\xff"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,',
        rb'{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"\ud83d"}}',
    ],
)
def test_a_reply_that_is_not_quite_json_ends_its_request_and_is_not_answered(frame: bytes) -> None:
    side = Side()
    pending = side.peer.send_request("work")
    other = side.peer.send_request("work")
    side.peer.feed(frame)
    ((found, fault),) = side.replies
    assert found is pending
    assert isinstance(fault, InvalidMessage)
    assert fault.code == -32700
    assert len(side.sent) == 2
    assert side.peer.outgoing.find(2) is other


def test_each_reply_of_a_batch_that_is_not_json_ends_its_request() -> None:
    side = Side()
    first, second = side.peer.send_request("work"), side.peer.send_request("work")
    side.peer.feed(
        b'[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}]'
    )
    assert [found for found, _ in side.replies] == [second, first]
    assert len(side.sent) == 2
    assert side.open == (0, 0)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"work","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","id":1}',
    ],
)
def test_a_faulty_request_with_the_id_of_an_open_one_is_answered_without_it(frame: bytes) -> None:
    side = Side(PLAIN)
    side.feed(call(1))
    side.peer.feed(frame)
    assert side.sent[-1]["id"] is None
    assert side.sent[-1]["error"]["code"] in (-32700, -32600)
    side.peer.answer(side.asked[0], {})
    assert side.sent[-1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    side.peer.feed(frame)
    assert side.sent[-1]["id"] == 1


# Frames that are faulty


def test_a_faulty_frame_is_answered_by_its_route_and_reported() -> None:
    side = Side(PLAIN)
    side.peer.feed(b"{not json", "stream")
    assert side.sent[0]["id"] is None
    assert side.sent[0]["error"]["code"] == -32700
    assert side.routes == ["stream"]
    assert side.rules == ["jsonrpc.text.json"]
    assert side.problems[0][1] == "stream"


def test_a_faulty_notification_is_reported_and_not_answered() -> None:
    side = Side(Policy.pierre())
    side.feed({**notice(), "auth": 5})
    assert side.rules == ["jsonrpc.envelope.auth"]
    assert side.sent == []
    assert side.notified == []


def test_a_frame_that_was_too_large_to_read_is_answered_by_the_id_it_began_with() -> None:
    side = Side()
    side.peer.feed(Oversize(b'{"jsonrpc":"2.0","id":7,"method":"wo', None, 36), "stream")
    assert side.sent[0]["id"] == 7
    assert side.sent[0]["error"]["data"]["maxSize"] == 36
    assert side.routes == ["stream"]
    assert side.rules == ["jsonrpc.limit.message-size"]


def test_a_refusal_is_never_refused_in_turn() -> None:
    one, other = joined(PLAIN)
    one.peer.feed(b"{not json")
    assert len(one.sent) == 1
    assert other.sent == []
    assert other.rules == ["UNKNOWN"]


# Frames that are faulty, where faults are not answered


@pytest.mark.parametrize(
    ("frame", "rules"),
    [
        (b"{not json", ["jsonrpc.text.json"]),
        (b"a line of a log", ["jsonrpc.text.json"]),
        (b'{"jsonrpc":"2.0","id":7,"method":5}', ["jsonrpc.method.type"]),
        (
            Oversize(b'{"jsonrpc":"2.0","id":7,"method":"wo', None, 36),
            ["jsonrpc.limit.message-size"],
        ),
        (b"[]", ["jsonrpc.batch.empty"]),
        (b"[5,5]", ["jsonrpc.message.object", "jsonrpc.message.object"]),
    ],
)
def test_where_faults_are_not_answered_they_are_reported_and_settled(
    frame: bytes | Oversize, rules: list[str]
) -> None:
    side = Side(PLAIN, answers_faults=False)
    side.peer.feed(frame, "stream")
    assert side.sent == []
    assert side.rules == rules
    assert side.problems[0][1] == "stream"
    assert side.settled == ["stream"]


def test_where_faults_are_not_answered_a_second_request_with_an_open_id_is_not_either() -> None:
    side = Side(answers_faults=False)
    side.feed(call(1))
    side.feed(call(1, "again"), "stream")
    assert side.sent == []
    assert side.rules == ["jsonrpc.id.duplicate"]
    assert side.settled == ["stream"]


def test_where_faults_are_not_answered_a_batch_is_answered_without_its_faulty_elements() -> None:
    side = Side(PLAIN, answers_faults=False)
    side.feed([7, call(1), {"jsonrpc": "2.0", "id": 2, "method": 5}], "stream")
    side.peer.answer(side.asked[0], {})
    assert side.sent == [[success(1)]]
    assert len(side.rules) == 2
    assert side.settled == ["stream"]


def test_where_faults_are_not_answered_a_faulty_reply_still_ends_the_request_it_names() -> None:
    side = Side(answers_faults=False)
    pending = side.peer.send_request("work")
    side.feed({"jsonrpc": "2.0", "id": pending.id, "result": {}, "error": {}})
    assert [found for found, _ in side.replies] == [pending]
    assert side.open == (0, 0)
    assert len(side.sent) == 1


# Many replies


def test_many_replies_reach_the_waiter_until_cancel() -> None:
    client = Side()
    pending = client.peer.send_request("stream", replies=Replies.MANY)
    for n in range(3):
        client.feed(success(1, {"n": n}))
    assert [found for found, _ in client.replies] == [pending] * 3
    assert client.peer.cancel(pending)
    client.feed(success(1))
    assert client.rules == ["LATE"]
    assert len(client.replies) == 3


def test_an_error_ends_a_request_that_draws_many_replies() -> None:
    client = Side()
    client.peer.send_request("stream", replies=Replies.MANY)
    client.feed(success(1))
    client.feed(failure(1))
    client.feed(success(1))
    assert len(client.replies) == 2
    assert client.rules == ["DUPLICATE"]


# Ids


def test_ids_count_from_where_the_policy_says_to_where_it_says() -> None:
    side = Side(SESSION.replace(first_id=0, max_id=1))
    assert [side.peer.send_request("a").id, side.peer.send_request("b").id] == [0, 1]
    with pytest.raises(IdsExhausted):
        side.peer.send_request("c")
    with pytest.raises(IdsExhausted):
        side.peer.send_batch([Request("c", id=None)])
    assert len(side.sent) == 2
    assert side.open == (2, 0)


def test_ids_may_come_from_a_source_of_ones_own() -> None:
    side = Side(ids=IdSource(first=50))
    assert side.peer.send_request("a").id == 50


@pytest.mark.parametrize(
    ("policy", "id"),
    [(policy, id) for policy in (SESSION, OPEN) for id in (1, 5, "five", "", 2**60)] + [(OPEN, -3)],
)
def test_a_caller_may_choose_an_id_that_is_not_open(policy: Policy, id: Any) -> None:
    side = Side(policy)
    assert side.peer.send_request("a", id=id).id == id
    with pytest.raises(LocalProtocolError) as caught:
        side.peer.send_request("b", id=id)
    assert (caught.value.rule, caught.value.got) == ("jsonrpc.id.in-use", id)
    assert len(side.sent) == 1
    side.feed(success(id))
    assert side.replies[0][0].method == "a"


@pytest.mark.parametrize("id", [True, 1.0, [1], {}, b"1", UNSET])
def test_an_id_of_another_kind_is_refused_and_nothing_is_sent(id: Any) -> None:
    side = Side(PLAIN)
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.type"):
        side.peer.send_request("a", id=id)
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.type"):
        side.peer.send_batch([Request("a", id=id)])
    assert side.sent == []
    assert side.peer.send_request("b").id == 1


@pytest.mark.parametrize("id", [5, "five", 2**60])
def test_where_ids_last_a_session_a_closed_id_stays_taken(id: Any) -> None:
    side = Side(SESSION)
    side.peer.send_request("a", id=id)
    side.feed(success(id))
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.in-use"):
        side.peer.send_request("b", id=id)
    assert side.open == (0, 0)


@pytest.mark.parametrize("id", [5, "five", 1])
def test_where_ids_last_while_open_a_closed_id_is_free(id: Any) -> None:
    side = Side(OPEN)
    side.peer.send_request("a", id=id)
    side.feed(success(id))
    side.peer.send_request("b", id=id)
    side.feed(success(id))
    assert [pending.method for pending, _ in side.replies] == ["a", "b"]


def test_where_ids_last_a_session_an_id_the_count_has_passed_is_taken() -> None:
    side = Side(SESSION)
    side.feed(success(side.peer.send_request("a").id))
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.in-use"):
        side.peer.send_request("b", id=1)
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.in-use"):
        side.peer.send_batch([Request("b", id=1)])


def test_where_ids_last_a_session_an_integer_stays_taken_however_long_ago_it_was_used() -> None:
    side = Side(SESSION)
    side.peer.cancel(side.peer.send_request("own", id=2))
    for n in range(MAX_CLOSED_IDS):
        side.peer.cancel(side.peer.send_request("other", id=f"text {n}"))
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.in-use"):
        side.peer.send_request("own", id=2)
    assert side.peer.send_request("next").id == 3


@pytest.mark.parametrize("policy", [SESSION, OPEN])
def test_the_count_passes_over_ids_that_callers_chose(policy: Policy) -> None:
    side = Side(policy)
    side.peer.send_request("own", id=1)
    side.peer.cancel(side.peer.send_request("own", id=2))
    # The answer to 2 may still be on its way: it must not find a request of another.
    assert side.peer.send_request("next").id == 3


def test_where_ids_last_while_open_a_far_id_does_not_use_up_those_before_it() -> None:
    side = Side(OPEN)
    side.peer.send_request("own", id=2**53 - 1)
    assert side.peer.send_request("next").id == 1


def test_where_ids_last_a_session_an_id_beyond_the_maximum_does_not_use_up_the_rest() -> None:
    side = Side(SESSION)
    side.peer.send_request("own", id=2**60)
    assert side.peer.send_request("next").id == 1


@pytest.mark.parametrize("policy", [SESSION, OPEN])
def test_an_id_whose_request_could_not_be_written_is_not_used_up(policy: Policy) -> None:
    side = Side(policy)
    with pytest.raises(LocalProtocolError):
        side.peer.send_request("a", object(), id=5)
    with pytest.raises(LocalProtocolError):
        side.peer.send_batch([Request("a", {"x": object()}, id=5)])
    assert side.sent == []
    assert side.open == (0, 0)
    assert side.peer.send_request("a", id=5).id == 5


def test_ids_of_requests_already_open_are_skipped() -> None:
    outgoing = OutgoingRequests()
    outgoing.open(Pending(1, "earlier"))
    sent: list[bytes] = []
    peer = Peer(
        Codec(), outgoing, write=lambda frame, _: sent.append(frame), on_request=lambda _: None
    )
    assert peer.send_request("next").id == 2
    assert peer.outgoing is outgoing


# Batches coming in


def test_a_batch_is_answered_as_one_in_request_order() -> None:
    server = Side()
    server.feed([call(1), notice(), call("2"), call(3)], "stream")
    for asked in reversed(server.asked):
        assert server.sent == []
        assert server.peer.answer(asked, {"to": asked.id})
    assert server.sent == [[success(id, {"to": id}) for id in (1, "2", 3)]]
    assert server.routes == ["stream"]
    assert server.notified == [("note", "stream")]
    assert server.open == (0, 0)


def test_a_batch_answered_at_once_is_answered_as_one_after_all_of_it_was_read() -> None:
    server = Side()
    server.on_request = lambda asked: server.peer.answer(asked, {})
    server.on_notification = lambda: server.sent.append("notified")
    server.feed([call(1), call(2), notice()])
    assert server.sent == ["notified", [success(1), success(2)]]


def test_a_batch_of_one_is_answered_as_a_batch() -> None:
    server = Side()
    server.on_request = lambda asked: server.peer.answer(asked, {})
    server.feed([call(1)])
    assert server.sent == [[success(1)]]


def test_a_batch_of_notifications_is_not_answered() -> None:
    server = Side()
    server.feed([notice("a"), notice("b")])
    assert [method for method, _ in server.notified] == ["a", "b"]
    assert server.sent == []


def test_a_faulty_element_is_refused_in_its_place_and_the_good_ones_run() -> None:
    server = Side(PLAIN)
    server.feed([call(1), {"jsonrpc": "2.0", "id": 2, "method": 5}, 7, call(3)])
    for asked in server.asked:
        server.peer.answer(asked, {})
    ((first, second, third, fourth),) = server.sent
    assert (first, fourth) == (success(1), success(3))
    assert (second["id"], second["error"]["code"]) == (2, -32600)
    assert (third["id"], third["error"]["code"]) == (None, -32600)
    assert [problem.where for problem, _ in server.problems] == ["/1/method", "/2"]  # type: ignore[union-attr]


def test_a_batch_of_nothing_but_faults_is_answered_at_once() -> None:
    server = Side(PLAIN)
    server.feed([1, 2])
    assert [reply["error"]["code"] for reply in server.sent[0]] == [-32600, -32600]


def test_a_faulty_notification_in_a_batch_takes_up_no_place() -> None:
    server = Side(Policy.pierre().replace(batch="accept"))
    server.feed([{**notice(), "auth": 5}, call(1)])
    server.peer.answer(server.asked[0], {})
    assert server.sent == [[success(1)]]
    assert server.rules == ["jsonrpc.envelope.auth"]


def test_an_id_that_is_twice_in_a_batch_is_refused_the_second_time() -> None:
    server = Side(PLAIN)
    server.feed([call(1), call(1, "again")])
    (asked,) = server.asked
    assert server.sent == []
    server.peer.answer(asked, {})
    ((good, bad),) = server.sent
    assert good == success(1)
    assert bad["id"] is None
    ((problem, _),) = server.problems
    assert isinstance(problem, InvalidMessage)
    assert (problem.rule, problem.where) == ("jsonrpc.id.duplicate", "/1/id")


def test_an_id_of_an_element_that_was_answered_at_once_is_free_for_the_next() -> None:
    server = Side(OPEN)
    server.on_request = lambda asked: server.peer.answer(asked, {"to": asked.method})
    server.feed([call(1, "a"), call(1, "b")])
    assert server.sent == [[success(1, {"to": "a"}), success(1, {"to": "b"})]]


def test_a_cancelled_element_leaves_no_place_in_the_answer() -> None:
    server = Side()
    server.feed([call(1), call(2)])
    first, second = server.asked
    assert server.peer.answer(second, {})
    assert server.peer.drop(first)
    assert server.sent == [[success(2)]]


def test_a_batch_whose_every_element_was_cancelled_is_not_answered() -> None:
    server = Side()
    server.feed([call(1), call(2)], "stream")
    assert [server.peer.drop(asked) for asked in server.asked] == [True, True]
    assert server.sent == []
    assert server.settled == ["stream"]


def test_an_element_answered_twice_counts_once() -> None:
    server = Side()
    server.feed([call(1), call(2)])
    first, second = server.asked
    assert server.peer.answer(first, {"n": 1})
    assert not server.peer.answer(first, {"n": 2})
    assert not server.peer.drop(first)
    assert server.sent == []
    server.peer.answer(second, {})
    assert server.sent == [[success(1, {"n": 1}), success(2)]]


def test_an_element_that_cannot_be_answered_as_wished_can_be_answered_otherwise() -> None:
    server = Side()
    server.feed([call(1), call(2)])
    first, second = server.asked
    server.peer.answer(second, {})
    with pytest.raises(LocalProtocolError):
        server.peer.answer(first, object())
    assert server.sent == []
    server.peer.fail(first, BUSY)
    assert server.sent == [[failure(1), success(2)]]


def test_two_batches_do_not_mix() -> None:
    server = Side()
    server.feed([call(1), call(2)], "first")
    server.feed([call(3), call(4)], "second")
    for asked in (server.asked[n] for n in (0, 2, 3, 1)):
        server.peer.answer(asked, {})
    assert server.sent == [[success(3), success(4)], [success(1), success(2)]]
    assert server.routes == ["second", "first"]


def test_a_batch_of_replies_finds_each_request() -> None:
    client = Side()
    pending = [client.peer.send_request("a"), client.peer.send_request("b")]
    client.feed([success(2), failure(1), success(3)])
    assert [found for found, _ in client.replies] == pending[::-1]
    assert client.rules == ["UNKNOWN"]
    assert len(client.sent) == 2


def test_replies_among_calls_are_read_where_they_may_be_there() -> None:
    side = Side(SESSION.replace(mixed_batches=True))
    side.peer.send_request("a")
    side.feed([call(1), success(1)])
    side.peer.answer(side.asked[0], {})
    assert side.sent[-1] == [success(1)]
    assert [type(reply) is InvalidMessage for _, reply in side.replies] == [False]
    assert side.rules == []


def test_a_reply_refused_among_calls_ends_the_request_it_names() -> None:
    side = Side(SESSION.replace(mixed_batches=False))
    side.peer.send_request("a")
    side.feed([call(1), success(1)])
    side.peer.answer(side.asked[0], {})
    assert side.sent[-1] == [success(1)]
    assert [type(reply) is InvalidMessage for _, reply in side.replies] == [True]
    assert side.rules == ["jsonrpc.batch.mixed"]
    assert len(side.peer.outgoing) == 0


def test_an_empty_batch_is_answered_with_a_single_refusal() -> None:
    server = Side(PLAIN)
    server.feed([])
    assert server.sent[0]["error"]["code"] == -32600
    assert server.rules == ["jsonrpc.batch.empty"]


def test_a_batch_that_is_too_long_is_not_run() -> None:
    server = Side(SESSION.replace(limits=Limits(batch=2)))
    server.feed([call(1), call(2), call(3)])
    assert server.asked == []
    assert server.rules == ["jsonrpc.limit.batch-length"]


# Batches going out


def test_a_batch_is_sent_as_one_and_each_reply_finds_its_waiter() -> None:
    client, server = joined()
    server.on_request = lambda asked: server.peer.answer(asked, {"to": asked.method})
    expected = client.peer.send_batch(
        [Request("a", id=None), Notification("n"), Request("b", {"x": 1}, id="own")],
        waiters=["first", "second"],
        route="stream",
    )
    assert [(pending.id, pending.waiter) for pending in expected] == [
        (1, "first"),
        ("own", "second"),
    ]
    assert [pending for pending, _ in client.replies] == expected
    assert [asked.method for asked in server.asked] == ["a", "b"]
    assert server.notified == [("n", None)]
    assert client.routes == ["stream"]
    assert client.open == server.open == (0, 0)


def test_the_requests_of_a_batch_have_its_deadline() -> None:
    client = Side()
    expected = client.peer.send_batch([Request("a", id=None), Request("b", id=None)], deadline=5.0)
    assert client.peer.next_deadline() == 5.0
    assert client.peer.expire(5.0) == (expected, [])


def test_a_batch_of_notifications_expects_nothing() -> None:
    client = Side()
    assert client.peer.send_batch([Notification("a"), Notification("b")]) == []
    assert client.sent == [[notice("a"), notice("b")]]


def test_a_batch_is_sent_only_where_the_revision_has_them() -> None:
    for revision in REVISIONS:
        client = Side(Policy.mcp(revision))
        if revision == "2025-03-26":
            client.peer.send_batch([Request("a", id=None)])
            assert len(client.sent) == 1
            continue
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.batch\.not-allowed"):
            client.peer.send_batch([Request("a", id=None)])
        assert client.sent == []
        assert len(client.peer.outgoing) == 0


def test_an_extended_request_keeps_its_extensions_when_it_is_given_an_id() -> None:
    client = Side(Policy.pierre().replace(batch="accept"))
    client.peer.send_batch([ExtendedRequest("a", id=None, auth="token")])
    assert (client.sent[0][0]["id"], client.sent[0][0]["auth"]) == (1, "token")


def test_ids_given_out_in_a_batch_differ_from_those_chosen_in_it() -> None:
    for policy in (SESSION, OPEN):
        client = Side(policy)
        calls = [
            Request("a", id=None),
            Request("b", id=1),
            Request("c", id=None),
            Request("d", id=2),
        ]
        assert [pending.id for pending in client.peer.send_batch(calls)] == [3, 1, 4, 2]
        assert client.peer.send_request("e").id == 5


def test_ids_of_a_batch_may_be_in_any_order_where_they_last_a_session() -> None:
    client = Side(SESSION)
    client.peer.send_batch([Request("a", id=9), Request("b", id=7)])
    assert client.peer.send_request("c").id == 10


@pytest.mark.parametrize(
    "calls",
    [
        [Request("a", id=5), Request("b", id=5)],
        [Request("a", id=6), Request("b", id="open")],
        [Request("a", id=5), Request("b", {"x": object()}, id=6)],
        [],
    ],
)
@pytest.mark.parametrize("policy", [SESSION, OPEN])
def test_a_batch_that_cannot_be_sent_changes_nothing(policy: Policy, calls: list[Request]) -> None:
    client = Side(policy)
    client.peer.send_request("x", id="open")
    with pytest.raises(LocalProtocolError):
        client.peer.send_batch(calls)
    assert len(client.sent) == 1
    assert client.open == (1, 0)
    client.peer.send_batch([Request("a", id=5), Request("b", id=6)])


def test_the_id_that_is_twice_in_a_batch_is_named() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        Side().peer.send_batch([Request("a", id="x"), Request("b", id="x")])
    assert (caught.value.rule, caught.value.got) == ("jsonrpc.id.in-use", "x")


def test_waiters_that_are_not_one_for_each_request_are_refused() -> None:
    client = Side()
    with pytest.raises(ValueError):
        client.peer.send_batch([Request("a", id=None), Notification("b")], waiters=["x", "y"])
    assert client.sent == []
    assert client.open == (0, 0)


# Deadlines


def test_unanswered_request_expires_at_its_deadline() -> None:
    client = Side()
    pending = client.peer.send_request("work", deadline=5.0)
    assert client.peer.next_deadline() == 5.0
    assert client.peer.expire(4.9) == ([], [])
    assert client.peer.expire(5.0) == ([pending], [])
    assert client.peer.next_deadline() is None
    client.feed(success(1))
    assert client.replies == []
    assert client.rules == ["LATE"]


def test_progress_puts_a_deadline_off() -> None:
    client = Side()
    client.peer.send_request("work", deadline=5.0)
    named = client.peer.outgoing.find(1)
    assert named is not None
    assert client.peer.outgoing.set_deadline(named, 9.0)
    assert client.peer.expire(8.0) == ([], [])
    assert client.peer.expire(9.0) == ([named], [])


def test_the_next_deadline_is_the_earlier_of_what_we_asked_and_were_asked() -> None:
    side = Side()
    assert side.peer.next_deadline() is None
    side.feed(call(1))
    side.peer.incoming.set_deadline(side.asked[0], 5.0)
    assert side.peer.next_deadline() == 5.0
    side.peer.send_request("a", deadline=3.0)
    assert side.peer.next_deadline() == 3.0
    side.peer.expire(3.0)
    assert side.peer.next_deadline() == 5.0
    side.peer.send_request("b", deadline=7.0)
    assert side.peer.next_deadline() == 5.0


@pytest.mark.parametrize("id", [1, None])
def test_a_request_we_do_not_answer_in_time_is_taken_out_unanswered(id: Any) -> None:
    server = Side(PLAIN)
    server.feed(call(id), "stream")
    (asked,) = server.asked
    server.peer.incoming.set_deadline(asked, 5.0)
    assert server.peer.expire(5.0) == ([], [asked])
    assert not server.peer.answer(asked, {})
    assert server.sent == []
    assert server.settled == ["stream"]


def test_a_request_we_do_not_answer_in_time_may_be_answered_with_an_error() -> None:
    server = Side()
    server.feed(call(1), "stream")
    server.peer.incoming.set_deadline(server.asked[0], 5.0)
    assert server.peer.expire(4.0, error=BUSY) == ([], [])
    assert server.peer.expire(5.0, error=BUSY) == ([], server.asked)
    assert not server.peer.answer(server.asked[0], {})
    assert server.sent == [failure(1)]
    assert server.routes == ["stream"]


def test_expired_element_completes_its_batch() -> None:
    for error, answers in ((None, [success(2)]), (BUSY, [failure(1), success(2)])):
        server = Side()
        server.feed([call(1), call(2)])
        first, second = server.asked
        server.peer.incoming.set_deadline(first, 5.0)
        server.peer.answer(second, {})
        assert server.sent == []
        server.peer.expire(5.0, error=error)
        assert server.sent == [answers]


def test_an_error_that_cannot_be_written_expires_nothing() -> None:
    side = Side()
    pending = side.peer.send_request("a", deadline=1.0)
    side.feed(call(1))
    side.peer.incoming.set_deadline(side.asked[0], 1.0)
    with pytest.raises(LocalProtocolError):
        side.peer.expire(2.0, error=ErrorObject(1, "m", object()))
    assert side.peer.expire(2.0) == ([pending], side.asked)


# Done with a frame


@pytest.mark.parametrize(
    "message",
    [
        notice(),
        success(1),
        failure(None),
        {**notice(), "auth": 5},
        [notice(), notice()],
        [success(1), success(2)],
        5,
        [5, 5],
        [],
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    ],
)
def test_a_frame_that_asks_nothing_is_settled_when_it_was_read(message: Any) -> None:
    side = Side(Policy.pierre().replace(batch="accept"))
    side.feed(message, "stream")
    assert side.settled == ["stream"]


def test_a_frame_that_asks_is_settled_when_its_answer_was_written() -> None:
    server = Side()
    server.on_write = lambda _: server.settled.append("written")
    server.feed(call(1), "stream")
    assert server.settled == []
    server.peer.answer(server.asked[0], {})
    server.peer.answer(server.asked[0], {})
    assert server.settled == ["written", "stream"]


def test_a_batch_is_settled_once() -> None:
    server = Side()
    server.feed([call(1), notice(), 5, call(1), call(2)], "stream")
    server.peer.drop(server.asked[0])
    assert server.settled == []
    server.peer.answer(server.asked[1], {})
    assert server.settled == ["stream"]


def test_on_settled_callback_is_optional() -> None:
    sent: list[bytes] = []
    peer = Peer(
        Codec(),
        write=lambda frame, _: sent.append(frame),
        on_request=lambda asked: peer.answer(asked, {}),
    )
    for message in (call(1), notice(), success(9), 5):
        peer.feed(json.dumps(message).encode())
    assert len(sent) == 2


# Calling back from inside


def test_a_request_may_be_sent_from_inside_a_request() -> None:
    client, server = joined()
    client.on_request = lambda asked: client.peer.answer(asked, {"inner": True})
    server.on_request = lambda _: server.peer.send_request("inner")
    server.on_reply = lambda: server.peer.answer(server.asked[0], {"outer": True})
    client.peer.send_request("outer")
    assert outcome(client) == {"outer": True}
    assert client.open == server.open == (0, 0)


def test_a_request_may_be_sent_from_inside_a_reply() -> None:
    client, server = joined()
    server.on_request = lambda asked: server.peer.answer(asked, {})
    client.on_reply = lambda: len(client.replies) < 3 and client.peer.send_request("again")
    client.peer.send_request("first")
    assert [pending.id for pending, _ in client.replies] == [1, 2, 3]
    assert client.open == server.open == (0, 0)


def test_a_reply_may_cancel_another_request() -> None:
    client = Side()
    client.peer.send_request("a")
    other = client.peer.send_request("b")
    client.on_reply = lambda: client.peer.cancel(other)
    client.feed([success(1), success(2)])
    assert len(client.replies) == 1
    assert client.rules == ["LATE"]


def test_closing_from_inside_a_request_ends_it_unanswered() -> None:
    server = Side()
    server.on_request = lambda _: server.peer.close()
    server.feed(call(1))
    assert not server.peer.answer(server.asked[0], {})
    assert server.sent == server.settled == []
    assert server.open == (0, 0)


@pytest.mark.parametrize("closing", ["on_request", "on_notification", "on_problem", "on_reply"])
def test_closing_from_inside_a_batch_drops_the_rest_of_it(closing: str) -> None:
    side = Side(SESSION.replace(mixed_batches=True))
    side.peer.send_request("ours")
    side.peer.send_request("ours")
    side.sent.clear()
    setattr(side, closing, lambda *_: side.peer.close())
    closer = {
        "on_request": call(1),
        "on_notification": notice(),
        "on_problem": 5,
        "on_reply": success(1),
    }[closing]
    others = [call(2), notice(), 5, success(2)]
    side.feed([closer, *others])
    assert len([*side.asked, *side.notified, *side.problems, *side.replies]) == 1
    assert side.sent == side.settled == []
    assert side.open == (0, 0)


def test_closing_while_an_answer_is_written_closes() -> None:
    server = Side()
    server.feed([call(1), call(2)])
    server.feed(call(3))
    server.on_write = lambda _: server.peer.close()
    assert server.peer.answer(server.asked[2], {})
    assert server.sent == [success(3)]
    assert not server.peer.answer(server.asked[0], {})
    assert server.open == (0, 0)


def test_close_during_expire_returns_each_request_once() -> None:
    side = Side()
    pending = side.peer.send_request("ours", deadline=1.0)
    side.sent.clear()
    closed: list[Any] = []
    for id in (1, 2):
        side.feed(call(id))
        side.peer.incoming.set_deadline(side.asked[-1], 1.0)
    side.on_write = lambda _: closed.append(side.peer.close())
    assert side.peer.expire(1.0, error=BUSY) == ([], side.asked)
    assert closed == [([pending], [])]
    assert side.sent == [failure(1)]


def test_exception_of_a_callback_propagates_and_its_request_stays_open() -> None:
    server = Side()

    def fail(_: IncomingRequest) -> None:
        raise KeyError("a bug above")

    server.on_request = fail
    with pytest.raises(KeyError):
        server.feed(call(1))
    assert server.settled == []
    assert server.peer.fail(server.asked[0], BUSY)
    assert server.sent == [failure(1)]


# Writes that fail


def test_a_request_that_could_not_be_written_is_not_expected() -> None:
    client = Side()
    client.on_write = broken_write
    with pytest.raises(ConnectionResetError):
        client.peer.send_request("a", deadline=1.0)
    with pytest.raises(ConnectionResetError):
        client.peer.send_batch([Request("b", id=None), Request("c", id=None)], deadline=1.0)
    assert client.open == (0, 0)
    assert client.peer.next_deadline() is None
    # Perhaps it went out before the write failed.
    client.feed(success(1))
    assert client.rules == ["LATE"]


def test_a_write_that_fails_after_its_reply_came_leaves_the_reply_delivered() -> None:
    client = Side()

    def write(_: bytes) -> None:
        client.feed(success(1))
        raise ConnectionResetError

    client.on_write = write
    with pytest.raises(ConnectionResetError):
        client.peer.send_request("a")
    assert len(client.replies) == 1
    assert client.open == (0, 0)


def test_an_answer_whose_write_failed_is_not_given_again() -> None:
    server = Side()
    server.feed(call(1))
    server.on_write = broken_write
    with pytest.raises(ConnectionResetError):
        server.peer.answer(server.asked[0], {})
    assert server.open == (0, 0)
    assert not server.peer.answer(server.asked[0], {})
    assert len(server.sent) == 1


def test_a_batch_whose_write_failed_is_not_given_again() -> None:
    server = Side()
    server.feed([call(1), call(2)])
    server.on_write = broken_write
    server.peer.answer(server.asked[0], {})
    with pytest.raises(ConnectionResetError):
        server.peer.answer(server.asked[1], {})
    assert not any(server.peer.answer(asked, {}) for asked in server.asked)
    assert len(server.sent) == 1
    assert server.open == (0, 0)


def test_failed_write_during_expire_keeps_our_expired_requests() -> None:
    side = Side()
    pending = side.peer.send_request("ours", deadline=1.0)
    side.feed(call(1))
    side.peer.incoming.set_deadline(side.asked[0], 1.0)
    side.on_write = broken_write
    with pytest.raises(ConnectionResetError):
        side.peer.expire(1.0, error=BUSY)
    assert side.peer.expire(1.0) == ([pending], [])


# Closing


def test_closing_gives_back_what_was_open_oldest_first_and_only_once() -> None:
    side = Side()
    pending = [side.peer.send_request(method) for method in "abc"]
    for id in (3, 1, 2):
        side.feed(call(id))
    closed = [side.peer.is_closed]
    assert side.peer.close() == (pending, side.asked)
    assert [*closed, side.peer.is_closed] == [False, True]
    assert side.peer.close() == ([], [])
    assert side.open == (0, 0)


def test_after_closing_frames_are_dropped() -> None:
    side = Side()
    side.peer.send_request("a")
    side.sent.clear()
    side.peer.close()
    for message in (call(1), notice(), success(1), [call(2)], 5):
        side.feed(message)
    side.peer.feed(b"not json")
    side.peer.feed(Oversize(b"{", None, 1))
    assert [*side.asked, *side.notified, *side.problems, *side.replies] == []
    assert side.sent == side.settled == []
    assert side.open == (0, 0)


def test_after_closing_nothing_is_sent() -> None:
    side = Side()
    side.peer.close()
    for send in (
        lambda: side.peer.send_request("a"),
        lambda: side.peer.send_notification("a"),
        lambda: side.peer.send_batch([Notification("a")]),
    ):
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.peer\.closed"):
            send()
    assert side.sent == []


def test_after_closing_nothing_is_answered_cancelled_or_due() -> None:
    side = Side()
    pending = side.peer.send_request("a", deadline=1.0)
    side.feed(call(1))
    side.feed([call(2), call(3)])
    side.peer.answer(side.asked[1], {})
    side.sent.clear()
    side.peer.close()
    for asked in side.asked:
        assert not side.peer.answer(asked, {})
        assert not side.peer.fail(asked, BUSY)
        assert not side.peer.drop(asked)
    assert not side.peer.cancel(pending)
    assert side.peer.next_deadline() is None
    assert side.peer.expire(9.0) == ([], [])
    assert side.sent == []


def test_a_notification_of_a_batch_that_is_not_admitted_is_dropped() -> None:
    asked: list[tuple[Any, int]] = []

    def admits(route: Any, place: int) -> bool:
        asked.append((route, place))
        return place < 2

    side = Side(admits_notification=admits)
    side.feed([{"jsonrpc": "2.0", "method": name} for name in "abc"], "batch")
    assert side.notified == [("a", "batch"), ("b", "batch")]
    assert asked == [("batch", 0), ("batch", 1), ("batch", 2)]
    assert side.settled == ["batch"]
    # One that is alone was admitted before.
    side.feed({"jsonrpc": "2.0", "method": "d"}, "alone")
    assert side.notified[-1] == ("d", "alone")
    assert len(asked) == 3
