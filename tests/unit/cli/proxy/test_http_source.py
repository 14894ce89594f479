"""The side of a proxy that leads to clients over HTTP: which exchange gets what a server sends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.rigs.http_endpoint import PlainResponder, alone
from trunkline.cli.proxy.http_source import HttpSource, SessionSource, SharedSource
from trunkline.transports.http.endpoint.exchange import Exchange
from trunkline.transports.http.endpoint.sessions import HttpSession
from trunkline.transports.http.request import HttpRequest
from trunkline.transports.http.settings import HttpLimits

VERSION = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
LATEST = "2026-07-28"
SERVICE = HttpSource(HttpLimits(), print)


def message(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def http_request(method: str = "POST", **headers: str) -> HttpRequest:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    version = headers.get("mcp_protocol_version")
    return HttpRequest(
        *(method, "/mcp", "", "1.1", pairs, "127.0.0.1", False),
        protocol_version=None if version is None else version.encode(),
    )


class SourceSession:
    """A session, the source behind it, and what the server got."""

    def __init__(self) -> None:
        self.session = HttpSession("id", None, 0.0, 1000, alone())
        self.source = SessionSource(self.session)
        self.got: list[dict[str, Any]] = []
        self.ends: list[Any] = []
        self.source.on_message = lambda frame, _: self.got.append(json.loads(frame))
        self.source.on_error = self.ends.append
        asyncio.run(self.source.connect())

    def post(self, body: bytes, *, opens: bool = False) -> PlainResponder:
        response = PlainResponder()
        exchange = Exchange(http_request(), response, self.session, SERVICE.handshake_status, 0.0)
        if opens:
            exchange.opening_headers = ((b"mcp-session-id", b"id"),)
        self.session.open(exchange)
        exchange.is_receiving = True
        self.session.on_message(body, exchange)
        exchange.is_receiving = False
        return response

    def listen(self) -> PlainResponder:
        response = PlainResponder()
        exchange = Exchange(
            http_request("GET"), response, self.session, SERVICE.handshake_status, 0.0
        )
        self.session.open(exchange, listens=True)
        exchange.start_stream()
        return response

    def send(self, **members: Any) -> None:
        self.source.send(message(**members))


def test_an_answer_goes_to_the_post_that_asked() -> None:
    made = SourceSession()
    one, other = made.post(message(id=1, method="ping")), made.post(message(id="1", method="ping"))
    assert [each["id"] for each in made.got] == [1, "1"]
    made.send(id="1", result={"n": 2})
    assert not one.is_over
    assert other.json["result"] == {"n": 2}
    made.send(id=1, error={"code": -32601, "message": "no"})
    assert one.json["error"]["code"] == -32601
    made.send(id=1, result={})  # a second one is for nobody


def test_message_without_a_request_is_answered_with_202() -> None:
    made = SourceSession()
    assert made.post(message(method="notifications/initialized")).status == 202
    assert made.post(message(id=5, result={})).status == 202
    assert len(made.got) == 2


@pytest.mark.parametrize("body", [b"", b"{", b"7", b"[]", b'"x"', b"\xff"])
def test_invalid_message_is_refused_and_not_forwarded(body: bytes) -> None:
    made = SourceSession()
    response = made.post(body)
    assert response.status == 400
    assert response.json["error"]["code"] == -32700
    assert made.got == []


def test_an_id_that_is_in_use_is_refused() -> None:
    made = SourceSession()
    first = made.post(message(id=1, method="ping"))
    second = made.post(message(id=1, method="ping"))
    assert (second.status, second.json["error"]["code"]) == (400, -32600)
    made.send(id=1, result={})
    assert first.is_over
    assert len(made.got) == 1


def test_a_request_that_is_cancelled_is_not_open_any_more() -> None:
    made = SourceSession()
    meta = {"_meta": {"progressToken": "t"}}
    response = made.post(message(id=1, method="tools/call", params=meta))
    other = made.post(message(id=2, method="ping"))
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    assert made.post(message(**cancel)).status == 202
    assert [each["method"] for each in made.got][-1] == "notifications/cancelled"
    assert response.is_over
    assert not other.is_over
    made.send(id=1, result={})  # it crossed the cancellation
    made.send(id=2, result={})
    assert (made.source._open, made.source._tokens) == ({}, {})
    assert made.post(message(id=1, method="ping")).status == 0  # the id is free


def test_a_batch_is_answered_when_all_its_requests_are() -> None:
    made = SourceSession()
    both = b"[%b,%b]" % (message(id=1, method="ping"), message(id=2, method="ping"))
    response = made.post(both)
    made.send(id=2, result={})
    assert not response.is_over
    made.send(id=1, result={})
    assert response.is_over
    assert [each["id"] for each in response.messages] == [2, 1]
    response = made.post(both)
    made.source.send(b"[%b,%b]" % (message(id=1, result={}), message(id=2, result={})))
    assert [each["id"] for each in response.json] == [1, 2]


def test_progress_goes_by_its_token_and_news_to_the_stream() -> None:
    made = SourceSession()
    ask = {"name": "x", "_meta": {"progressToken": "t"}}
    one = made.post(message(id=1, method="tools/call", params=ask))
    other = made.post(message(id=2, method="ping"))
    stream = made.listen()
    made.send(method="notifications/progress", params={"progressToken": "t", "progress": 1})
    made.send(method="notifications/tools/list_changed")
    made.send(id="s", method="sampling/createMessage")
    assert [each["method"] for each in one.messages] == ["notifications/progress"]
    assert other.body == b""
    assert [each["method"] for each in stream.messages] == [
        "notifications/tools/list_changed",
        "sampling/createMessage",
    ]
    made.send(id=2, result={})
    # With one open request there is no doubt.
    made.send(id="q", method="elicitation/create")
    assert [each["method"] for each in one.messages][1:] == ["elicitation/create"]


def test_without_a_stream_the_latest_request_gets_what_is_asked() -> None:
    made = SourceSession()
    one, other = made.post(message(id=1, method="ping")), made.post(message(id=2, method="ping"))
    made.send(id="q", method="roots/list")
    assert one.body == b""
    assert [each["id"] for each in other.messages] == ["q"]


def test_the_revision_decides_about_streams() -> None:
    made = SourceSession()
    made.post(message(id=1, method="initialize"), opens=True)
    made.send(id=1, result={"protocolVersion": "2025-11-25"})
    assert (made.session.is_resumable, made.session.primes) == (True, True)


def test_open_request_is_answered_with_502_when_the_server_ends() -> None:
    made = SourceSession()
    ended: list[bool] = []
    made.source.on_closed = lambda: ended.append(True)
    response = made.post(message(id=1, method="ping"))
    asyncio.run(made.source.close())
    assert (response.status, response.json["id"], response.json["error"]["code"]) == (
        502,
        1,
        -32603,
    )
    assert ended == [True]


def test_messages_before_the_relay_are_kept() -> None:
    session = HttpSession("id", None, 0.0, 1000, alone())
    source = SessionSource(session)
    exchange = Exchange(http_request(), PlainResponder(), session, SERVICE.handshake_status, 0.0)
    session.on_message(b'{"method":\n"x"}', exchange)
    session.on_end()
    got: list[Any] = []
    source.on_message = lambda frame, _: got.append(frame)
    source.on_error = got.append
    asyncio.run(source.connect())
    assert got == [b'{"method": "x"}', None]


# Single requests


class Shared:
    """The source of single requests, and what the server got."""

    def __init__(self) -> None:
        self.source = SharedSource()
        self.got: list[dict[str, Any]] = []
        self.source.on_message = lambda frame, _: self.got.append(json.loads(frame))
        asyncio.run(self.source.connect())

    def post(self, method: str, id: Any = None, **more: Any) -> PlainResponder:
        params = {**more.pop("params", {}), "_meta": {VERSION: LATEST, **more.pop("meta", {})}}
        named = {"id": id} if id is not None else {}
        headers = {"mcp_protocol_version": LATEST, "mcp_method": method, **more}
        return self.raw(message(**named, method=method, params=params), **headers)

    def raw(self, body: bytes, **headers: str) -> PlainResponder:
        response, carrier = PlainResponder(), self.source.carrier()
        exchange = Exchange(
            http_request(**headers), response, carrier, SERVICE.per_request_status, 0.0
        )
        response.exchange = carrier.exchange = exchange
        exchange.is_receiving = True
        carrier.on_message(body, exchange)
        exchange.is_receiving = False
        return response

    def send(self, **members: Any) -> None:
        self.source.send(message(**members))


def test_clients_with_the_same_id_get_their_own_answers() -> None:
    made = Shared()
    one, other = made.post("tools/list", 1), made.post("tools/list", "1")
    first, second = (each["id"] for each in made.got)
    assert first != second
    made.send(id=second, result={"n": 2})
    made.send(id=first, result={"n": 1})
    assert (one.json["id"], one.json["result"]) == (1, {"n": 1})
    assert (other.json["id"], other.json["result"]) == ("1", {"n": 2})


def test_tokens_and_subscriptions_are_those_of_the_client() -> None:
    made = Shared()
    one = made.post("tools/list", 7, meta={"progressToken": "t"})
    other = made.post("subscriptions/listen", "seven")
    number, listen = (each["id"] for each in made.got)
    assert made.got[0]["params"]["_meta"]["progressToken"] == number
    made.send(method="notifications/progress", params={"progressToken": number, "progress": 1})
    note = {"_meta": {SUBSCRIPTION: listen}}
    made.send(method="notifications/tools/list_changed", params=note)
    made.send(method="notifications/message", params={})  # of which request is not known
    assert [each["params"] for each in one.messages] == [{"progressToken": "t", "progress": 1}]
    assert [each["params"]["_meta"][SUBSCRIPTION] for each in other.messages] == ["seven"]
    made.send(id=listen, result=note)
    assert other.messages[-1]["result"]["_meta"][SUBSCRIPTION] == "seven"
    # With one open request there is no doubt.
    made.send(method="notifications/message", params={"data": "x"})
    assert one.messages[-1]["method"] == "notifications/message"


def test_a_client_that_hangs_up_cancels_its_request() -> None:
    made = Shared()
    response = made.post("tools/list", 1)
    response.exchange.disconnected()
    assert made.got[1]["method"] == "notifications/cancelled"
    assert made.got[1]["params"]["requestId"] == made.got[0]["id"]
    made.send(id=made.got[0]["id"], result={})
    assert response.body == b""


def test_a_cancellation_by_another_client_is_not_forwarded() -> None:
    made = Shared()
    made.post("tools/list", 1)
    assert made.post("notifications/cancelled", params={"requestId": 1}).status == 202
    assert made.post("notifications/odd").status == 202
    assert [each["method"] for each in made.got] == ["tools/list", "notifications/odd"]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"mcp_method": "ping"}, "Mcp-Method differs"),
        ({"mcp_protocol_version": "2026-01-01"}, "MCP-Protocol-Version differs"),
        ({"mcp_name": "other"}, "Mcp-Name differs"),
    ],
)
def test_headers_that_differ_from_the_body_are_refused(headers: dict[str, str], said: str) -> None:
    made = Shared()
    given = {"mcp_name": "x", **headers}
    response = made.post("tools/call", 1, params={"name": "x"}, **given)
    assert (response.status, response.json["error"]["code"]) == (400, -32020)
    assert said in response.json["error"]["message"]
    assert made.got == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"id":1,"result":{}}',
        b'[{"method":"a"},{"method":"b"}]',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"%b":"%b"}}}]'
        % (VERSION.encode(), LATEST.encode()),
    ],
)
def test_body_that_is_not_one_request_is_refused(body: bytes) -> None:
    made = Shared()
    response = made.raw(body, mcp_protocol_version=LATEST, mcp_method="ping")
    assert response.status == 400
    assert made.got == []


def test_answers_in_a_batch_of_the_server_go_to_their_clients() -> None:
    made = Shared()
    responses = [made.post("tools/list", id) for id in ("a", "b")]
    answers = [message(id=each["id"], result={"n": each["id"]}) for each in made.got]
    made.source.send(b"[" + b",".join(answers) + b"]")
    assert [each.json["id"] for each in responses] == ["a", "b"]
    assert [each.json["result"]["n"] for each in responses] == [each["id"] for each in made.got]


def test_numbers_and_order_of_members_pass_unchanged() -> None:
    source, got = SharedSource(), list[bytes]()
    source.on_message = lambda frame, _: got.append(frame)  # type: ignore[arg-type, return-value]
    asyncio.run(source.connect())
    made = Shared()
    made.source = source
    body = b'{"id":1,"method":"x","params":{"z":1e2,"a":12345678901234567890,"_meta":{}}}'
    made.raw(body, mcp_protocol_version=LATEST, mcp_method="x")
    assert got == [body]


def test_single_requests_that_are_open_when_the_server_ends_are_answered() -> None:
    served: list[Any] = []
    service = HttpSource(HttpLimits(), served.append)
    assert service.single(alone(), None) is not None
    assert service.single(alone(), None) is not None
    assert len(served) == 1
    asyncio.run(served[0].close())
    assert service.single(alone(), None) is not None
    assert len(served) == 2
    made = Shared()
    response = made.post("tools/list", "x")
    asyncio.run(made.source.close())
    assert (response.status, response.json["id"]) == (502, "x")
