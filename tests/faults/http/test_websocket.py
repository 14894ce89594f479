"""WebSockets byte by byte: who may open one, and what a client may send over it.

The frames are written and read here, by RFC 6455 alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import trunkline.transports.websocket.connection as connection
from tests.faults.http.serving import (
    BY_HEADER,
    Closed,
    Response,
    Served,
    Wire,
    call,
    certified,
    make_app,
    serving,
    single,
    text_of,
    user,
)
from tests.rigs.http_requests import Headers
from tests.rigs.messages import META, initialize_params
from tests.rigs.turns import Turns
from trunkline import HttpLimits, HttpSettings
from trunkline.jsonrpc import Limits, Policy
from trunkline.transports.websocket.server import AcceptedWebSocket

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # of this key, as the RFC has it
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
LIMIT = 2000


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(http=HttpSettings(websocket=True)) as found:
        yield found


# -- a client --------------------------------------------------------------------------------


class Got(NamedTuple):
    """A frame of the server."""

    opcode: int
    data: bytes

    @property
    def json(self) -> Any:
        assert self.opcode == TEXT, self
        return json.loads(self.data)

    @property
    def code(self) -> int:
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.data[:2], "big")


def frame(
    opcode: int,
    data: bytes = b"",
    *,
    fin: bool = True,
    masked: bool = True,
    size: int | None = None,
) -> bytes:
    """Return a frame; `size` is declared in place of the actual one."""
    length = len(data) if size is None else size
    mask = 0x80 if masked else 0
    head = bytes([opcode | (0x80 if fin else 0)])
    if length < 126:
        head += bytes([mask | length])
    elif length < 65536:
        head += bytes([mask | 126]) + struct.pack("!H", length)
    else:
        head += bytes([mask | 127]) + struct.pack("!Q", length)
    if not masked:
        return head + data
    key = b"\x01\x02\x03\x04"
    return head + key + bytes(each ^ key[at % 4] for at, each in enumerate(data))


def text(message: Any) -> bytes:
    return frame(TEXT, json.dumps(message).encode())


def tool(name: str, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    return call("tools/call", id, name=name, arguments=arguments, _meta=META)


def got(wire: Wire) -> Got:
    """Return the next frame of the server, which is whole and not masked."""
    first, second = wire.exactly(2)
    assert first & 0x80
    assert not first & 0x70, "compressed, or of an extension"
    size = second
    if second == 126:
        size = int.from_bytes(wire.exactly(2), "big")
    elif second == 127:
        size = int.from_bytes(wire.exactly(8), "big")
    return Got(first & 0x0F, wire.exactly(size))


def handshake(wire: Wire, *headers: tuple[str, str], **replaced: str | None) -> bytes:
    """Return the request for a WebSocket; a header that is replaced by None is left out."""
    given: dict[str, str | None] = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": KEY,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "mcp",
    }
    given.update({name.replace("_", "-"): value for name, value in replaced.items()})
    kept = [(name, value) for name, value in given.items() if value is not None]
    return wire.head("GET", "/mcp", [*kept, *headers])


def knock(served: Served, *headers: tuple[str, str], **replaced: str | None) -> Response:
    with served.connect() as wire:
        wire.send(handshake(wire, *headers, **replaced))
        response = wire.start()
        body = b"" if response.status == 101 else wire.exactly(length(response))
        return response._replace(body=body)


def length(response: Response) -> int:
    return int(response.header("content-length") or 0)


def opened(served: Served, headers: Headers = (), **options: Any) -> Wire:
    wire = served.connect(**options)
    wire.send(handshake(wire, *headers))
    response = wire.start()
    assert response.status == 101, response
    return wire


def ends(wire: Wire) -> None:
    """Fail unless the server has ended the connection."""
    with pytest.raises(Closed):
        while True:
            wire.exactly(1)


# -- the handshake ---------------------------------------------------------------------------


def test_the_handshake_is_accepted_by_the_rules_of_the_rfc(served: Served) -> None:
    response = knock(served)
    assert response.status == 101
    assert response.header("sec-websocket-accept") == ACCEPT
    assert response.header("sec-websocket-protocol") == "mcp"
    assert (response.header("upgrade") or "").lower() == "websocket"
    assert response.header("content-length") is None


def test_mcp_is_chosen_among_several_subprotocols(served: Served) -> None:
    assert (
        knock(served, Sec_WebSocket_Protocol="soap, mcp").header("sec-websocket-protocol") == "mcp"
    )


def test_a_client_without_subprotocols_gets_none(served: Served) -> None:
    response = knock(served, Sec_WebSocket_Protocol=None)
    assert (response.status, response.header("sec-websocket-protocol")) == (101, None)


def test_compression_is_not_agreed_to(served: Served) -> None:
    response = knock(served, ("Sec-WebSocket-Extensions", "permessage-deflate"))
    assert (response.status, response.header("sec-websocket-extensions")) == (101, None)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_cve_2026_59950_a_websocket_to_a_foreign_host_is_refused(served: Served, host: str) -> None:
    """A page that has made its name resolve to this machine (DNS rebinding)."""
    response = knock(served, ("Host", host), ("Origin", f"http://{host}"))
    assert response.status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1.evil.example", "file://"]
)
def test_cve_2026_59950_a_websocket_of_a_foreign_origin_is_refused(
    served: Served, origin: str
) -> None:
    """A page of another site: browsers send no preflight for a WebSocket."""
    assert knock(served, ("Origin", origin)).status == 403


def test_a_websocket_of_an_allowed_origin_is_accepted(served: Served) -> None:
    assert knock(served, ("Origin", f"http://127.0.0.1:{served.port}")).status == 101


@pytest.mark.parametrize("offered", ["soap", "mcp2", "MCP-x, wamp"])
def test_a_client_that_offers_other_subprotocols_only_is_refused(
    served: Served, offered: str
) -> None:
    response = knock(served, Sec_WebSocket_Protocol=offered)
    assert response.status == 400
    assert "mcp" in response.json["error"]["message"]


@pytest.mark.parametrize("version", ["12", "8", "13, 8", "", None])
def test_another_version_is_answered_with_the_one_that_is_served(
    served: Served, version: str | None
) -> None:
    response = knock(served, Sec_WebSocket_Version=version)
    assert (response.status, response.header("sec-websocket-version")) == (426, "13")


@pytest.mark.parametrize("key", [None, "", "short", "a" * 24, f"{KEY}, {KEY}"])
def test_a_malformed_key_is_refused(served: Served, key: str | None) -> None:
    assert knock(served, Sec_WebSocket_Key=key).status == 400


def test_two_keys_are_refused(served: Served) -> None:
    assert knock(served, ("Sec-WebSocket-Key", KEY)).status == 400


def test_nothing_but_the_path_of_mcp_has_a_websocket(served: Served) -> None:
    for path, status in (("/other", 404), ("/healthz", 200)):
        with served.connect() as wire:
            request = handshake(wire).replace(b"GET /mcp", b"GET " + path.encode())
            assert wire.ask(request).status == status


def test_a_post_that_offers_a_websocket_is_served_by_http(served: Served) -> None:
    offer = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", KEY)]
    with served.connect() as wire:
        answer = wire.ask(single(wire, "echo", headers=offer, text="by POST"))
        assert text_of(answer.json) == "by POST"
        assert wire.ask(single(wire, "echo", text="again")).status == 200


def test_http_1_0_has_no_websocket(served: Served) -> None:
    with served.connect() as wire:
        assert wire.ask(handshake(wire).replace(b"HTTP/1.1", b"HTTP/1.0")).status != 101


def test_frames_that_follow_the_handshake_too_early_are_refused_and_not_read(
    served: Served,
) -> None:
    with served.connect() as wire:
        wire.send(handshake(wire) + text(tool("echo", text="early")))
        assert wire.response().status == 400
        ends(wire)
    assert "early" not in served.on_loop(lambda: list(served.journal.begun))


def test_a_websocket_is_not_served_unless_it_is_turned_on() -> None:
    with serving() as plain:
        response = knock(plain)
        assert response.status != 101
        assert response.header("sec-websocket-accept") is None


def test_the_principal_of_the_handshake_is_that_of_every_call() -> None:
    with serving(http=HttpSettings(websocket=True), auth=BY_HEADER) as found:
        assert knock(found, *user("nobody")).status == 401
        with opened(found, user("ada")) as wire:
            for id in (1, 2):
                wire.send(text(tool("whoami", id)))
                assert text_of(got(wire).json) == "ada"


def test_handshakes_count_for_the_rate_of_a_client() -> None:
    with serving(http=HttpSettings(websocket=True, rate=0.001, burst=2)) as found:
        statuses = [knock(found).status for _ in range(4)]
        assert statuses == [101, 101, 429, 429]


def test_messages_beyond_the_rate_are_not_begun() -> None:
    settings = HttpSettings(websocket=True, rate=0.001, burst=3)
    with serving(http=settings) as found, opened(found) as wire:
        wire.send(b"".join(text(tool("echo", n, text=str(n))) for n in range(10)))
        # Two, beside the handshake; the next is due in a quarter of an hour.
        assert sorted(got(wire).json["id"] for _ in range(2)) == [0, 1]
        assert found.on_loop(lambda: sorted(found.journal.begun)) == ["0", "1"]


def test_each_element_of_a_batch_counts_for_the_rate() -> None:
    # The handshake, `initialize` and the batch are three requests.
    settings = HttpSettings(websocket=True, rate=0.001, burst=5)
    with serving(http=settings) as found, opened(found) as wire:
        wire.send(text(call("initialize", 0, **initialize_params("2025-03-26"))))
        assert got(wire).json["result"]["protocolVersion"] == "2025-03-26"
        wire.send(text([call("ping", n) for n in range(5)]))
        answers = got(wire).json
        assert [each["id"] for each in answers] == [0, 1, 2, 3, 4]
        assert ["result" in each for each in answers] == [True] * 3 + [False] * 2
        assert answers[3]["error"]["data"]["retryAfterMs"] > 1000


# -- frames ----------------------------------------------------------------------------------


def test_a_message_is_answered_in_one_text_frame(served: Served) -> None:
    with opened(served) as wire:
        wire.send(text(tool("echo", text="hello")))
        assert text_of(got(wire).json) == "hello"


def test_frames_may_arrive_byte_by_byte(served: Served) -> None:
    with opened(served) as wire:
        wire.send(text(tool("echo", text="slowly")), at_a_time=1)
        assert text_of(got(wire).json) == "slowly"


def test_fragments_are_joined_and_control_frames_may_be_between_them(served: Served) -> None:
    message = json.dumps(tool("echo", text="in parts")).encode()
    with opened(served) as wire:
        wire.send(frame(TEXT, message[:10], fin=False) + frame(PING, b"still here?"))
        assert got(wire) == Got(PONG, b"still here?")
        wire.send(frame(CONT, message[10:30], fin=False) + frame(CONT, message[30:]))
        assert text_of(got(wire).json) == "in parts"


def test_a_binary_message_ends_the_connection_with_1003(served: Served) -> None:
    with opened(served) as wire:
        wire.send(frame(BINARY, json.dumps(tool("echo", text="binary")).encode()))
        assert got(wire).code == 1003
        ends(wire)
    assert "binary" not in served.on_loop(lambda: list(served.journal.begun))


MALFORMED = {
    "not masked": frame(TEXT, b"{}", masked=False),
    "an unknown opcode": frame(3, b"{}"),
    "a reserved bit": bytes([0xC1, 0x82]) + b"\0\0\0\0{}",
    "a fragmented ping": frame(PING, fin=False),
    "a long ping": frame(PING, b"x" * 126),
    "a continuation of nothing": frame(CONT, b"{}"),
    "a message inside another": frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"),
    "a Close frame of one byte": frame(CLOSE, b"\x03"),
    "a Close code that is not sent": frame(CLOSE, struct.pack("!H", 1005)),
}


@pytest.mark.parametrize("why", MALFORMED)
def test_a_malformed_frame_ends_the_connection_with_1002(served: Served, why: str) -> None:
    with opened(served) as wire:
        # What precedes it is still served.
        wire.send(text(tool("nothing", 7)) + MALFORMED[why])
        assert got(wire).json["id"] == 7
        assert got(wire).code == 1002
        ends(wire)
    assert served.is_healthy


def test_text_that_is_not_utf_8_is_answered_and_ends_the_connection_with_1007(
    served: Served,
) -> None:
    with opened(served) as wire:
        wire.send(frame(TEXT, b'{"jsonrpc":"2.0","id":"a","method":"p\xff"}'))
        assert got(wire).json["error"]["code"] == -32700
        assert got(wire).code == 1007
        ends(wire)


def test_text_that_is_not_json_is_answered_and_the_connection_goes_on(served: Served) -> None:
    with opened(served) as wire:
        wire.send(frame(TEXT, b"GET / HTTP/1.1"))
        assert got(wire).json["error"]["code"] == -32700
        wire.send(text(tool("echo", text="after")))
        assert text_of(got(wire).json) == "after"


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    app, journal = make_app()
    app._core.policy = Policy(limits=Limits(websocket=LIMIT))
    with serving(app, journal, http=HttpSettings(websocket=True)) as found:
        yield found


def test_a_message_over_the_limit_is_answered_and_ends_the_connection_with_1009(
    small: Served,
) -> None:
    message = json.dumps(tool("echo", "large", text="x" * LIMIT)).encode()
    with opened(small) as wire:
        wire.send(frame(TEXT, message))
        answer = got(wire).json
        assert answer["id"] == "large"
        assert answer["error"]["message"] == "Message too large"
        assert got(wire).code == 1009
        ends(wire)
    assert small.is_healthy


def test_a_size_that_is_only_declared_is_refused_at_once(small: Served) -> None:
    with opened(small) as wire:
        wire.send(frame(TEXT, size=2**62))
        assert got(wire).json["error"]["code"]
        assert got(wire).code == 1009


def test_fragments_over_the_limit_are_answered_under_the_id_in_the_first(small: Served) -> None:
    message = json.dumps(tool("echo", "parts", text="x" * LIMIT)).encode()
    with opened(small) as wire:
        wire.send(frame(TEXT, message[:1500], fin=False) + frame(CONT, message[1500:]))
        assert got(wire).json["id"] == "parts"
        assert got(wire).code == 1009


def test_a_message_of_exactly_the_limit_is_served(small: Served) -> None:
    empty = json.dumps(tool("echo", text="")).encode()
    with opened(small) as wire:
        wire.send(text(tool("echo", text="x" * (LIMIT - len(empty)))))
        assert len(text_of(got(wire).json)) == LIMIT - len(empty)


def test_empty_fragments_without_end_end_the_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_FRAGMENTS", 50)
    with opened(served) as wire:
        wire.send(frame(TEXT, b"{", fin=False) + frame(CONT, fin=False) * 60)
        assert got(wire).code == 1009
        ends(wire)


def test_a_flood_of_pings_ends_the_connection(served: Served) -> None:
    with opened(served) as wire:
        wire.try_send(frame(PING, b"x" * 100) * 5000)
        opcodes = []
        while True:
            found = got(wire)
            if found.opcode == CLOSE:
                break
            opcodes.append(found.opcode)
        assert found.code == 1008
        assert set(opcodes) == {PONG}
        ends(wire)
    assert served.is_healthy


def test_turn_of_a_websocket_is_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    deliver = AcceptedWebSocket._deliver

    def counted(self: AcceptedWebSocket, frame: Any, route: Any = None) -> None:
        turns.add(frame)
        deliver(self, frame, route)

    monkeypatch.setattr(AcceptedWebSocket, "_deliver", counted)
    with opened(served) as wire:
        served.loop.call_soon_threadsafe(turns.start)
        # Valid every now and then, so that the connection is kept.
        part = frame(TEXT, b"{}") * 500 + text(tool("echo", text="still there"))
        for _ in range(20):
            wire.send(part)
            while "result" not in got(wire).json:
                pass
        served.loop.call_soon_threadsafe(turns.stop)
    assert sum(turns.messages) == 20 * 501
    turns.check("websocket")


def test_1000_invalid_messages_in_a_row_end_the_connection_with_1008(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(http=HttpSettings(websocket=True)) as found, opened(found) as wire:
        wire.send(frame(TEXT, b"{}") * 999 + text(tool("echo", text="valid")))
        wire.try_send(frame(TEXT, b"{}") * 2000)
        answers = []
        while (last := got(wire)).opcode == TEXT:
            answers.append(last.json)
        assert (last.code, last.data[2:]) == (1008, b"1000 invalid messages in a row")
        assert len(answers) == 2000
        ends(wire)
        found.until(lambda: "1000 invalid messages in a row" in caplog.text)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"", id="in one frame"),
        pytest.param(frame(CONT, b" ", fin=False), id="in fragments"),
        pytest.param(frame(CONT, fin=False), id="in empty fragments"),
    ],
)
def test_message_that_drips_ends_the_connection_with_1008(part: bytes) -> None:
    limits = HttpLimits(body_timeout=0.2)
    with serving(http=HttpSettings(websocket=True), limits=limits) as found, opened(found) as wire:
        wire.send(frame(TEXT, b"", fin=False) if part else frame(TEXT, b"{", size=5000))
        wire.sock.settimeout(0.01)
        for _ in range(3000):
            try:
                wire._more()
                break
            except TimeoutError:
                if not wire.try_send(part or b" "):
                    break
        wire.sock.settimeout(30)
        last = got(wire)
        assert (last.code, last.data[2:]) == (1008, b"a message took too long")
        ends(wire)


# -- the end ---------------------------------------------------------------------------------


def test_a_close_frame_is_answered_and_the_connection_ends(served: Served) -> None:
    with opened(served) as wire:
        wire.send(frame(CLOSE, struct.pack("!H", 1000)))
        assert got(wire).code == 1000
        ends(wire)
    served.until(lambda: not served.http.connections)


def test_a_client_that_vanishes_has_its_calls_cancelled(served: Served) -> None:
    with opened(served) as wire:
        wire.send(text(tool("held", key="vanished")))
        served.until(lambda: "vanished" in served.journal.begun)
    served.until(lambda: "vanished" in served.journal.cancelled)
    served.until(lambda: not served.http.connections)


def test_a_server_that_stops_answers_what_was_begun_and_closes_with_1001() -> None:
    with serving(http=HttpSettings(websocket=True)) as found, opened(found) as wire:
        wire.send(text(tool("held", key="last")))
        found.until(lambda: "last" in found.journal.begun)
        found.listener.stop()
        found.until(lambda: found.http.is_stopping)
        wire.send(text(tool("echo", 2, text="too late")))
        refused = got(wire).json
        assert refused["id"] == 2
        assert "error" in refused
        found.open_gate("last")
        assert text_of(got(wire).json) == "held last"
        assert got(wire).code == 1001
        wire.send(frame(CLOSE, struct.pack("!H", 1001)))
        ends(wire)


def test_websockets_count_as_connections() -> None:
    limits = HttpLimits(connections=2)
    with (
        serving(http=HttpSettings(websocket=True), limits=limits) as found,
        opened(found) as one,
        opened(found),
        found.connect() as late,
    ):
        assert found.on_loop(lambda: found.listener.connections) == 2
        assert late.response().status == 503
        one.send(text(tool("echo", text="still here")))
        assert text_of(got(one).json) == "still here"


# -- time ------------------------------------------------------------------------------------


def test_a_silent_client_is_pinged_and_lost_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "PONG_TIMEOUT_S", 0.2)
    limits = HttpLimits(keep_alive=0.05)
    with serving(http=HttpSettings(websocket=True), limits=limits) as found:
        with opened(found) as wire:
            assert got(wire).opcode == PING
            ends(wire)
        found.until(lambda: not found.http.connections)


def test_a_client_that_answers_pings_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PONG_TIMEOUT_S", 10.0)
    limits = HttpLimits(keep_alive=0.05)
    with serving(http=HttpSettings(websocket=True), limits=limits) as found, opened(found) as wire:
        for _ in range(5):
            assert got(wire).opcode == PING
            wire.send(frame(PONG))
        wire.send(text(tool("echo", text="alive")))
        while (found_frame := got(wire)).opcode == PING:
            wire.send(frame(PONG))
        assert text_of(found_frame.json) == "alive"


def test_an_idle_client_is_closed_in_order_though_it_answers_pings() -> None:
    limits = HttpLimits(keep_alive=0.05, session_idle=0.4)
    with serving(http=HttpSettings(websocket=True), limits=limits) as found, opened(found) as wire:
        while (last := got(wire)).opcode == PING:
            wire.send(frame(PONG))
        assert last.code == 1000


def test_a_client_that_never_reads_is_lost_and_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "UNREAD_TIMEOUT_S", 0.3)
    with serving(http=HttpSettings(websocket=True)) as found, opened(found, buffer=4096) as wire:
        for n in range(20):
            wire.send(text(tool("big", n, size=1_000_000)))
        found.until(lambda: not found.http.connections, "the connection is still there")
        assert found.is_healthy


def test_answer_that_is_not_read_counts_for_its_client_over_tls(tmp_path: Path) -> None:
    tls, trusting = certified(tmp_path)
    app, journal = make_app()
    budget, settings = app._core.runtime.budget, HttpSettings(websocket=True)
    with serving(app, journal, http=settings, tls=tls) as found:
        with found.connect(buffer=4096) as wire:
            wire.start_tls(trusting)
            wire.send(handshake(wire))
            assert wire.start().status == 101
            wire.send(text(tool("big", 1, size=12_000_000)))
            found.until(lambda: budget.used > 4_000_000, "it does not count")
            wire.send(text(tool("echo", 2, text="after it")))
            assert got(wire).json["id"] == 1
            assert text_of(got(wire).json) == "after it"
            found.until(lambda: budget.used < 100_000, "it counts after it was read")
        found.until(lambda: not found.http.connections)
        assert budget.used == 0
