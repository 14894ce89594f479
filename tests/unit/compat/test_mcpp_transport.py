"""`compat.mcpp.Transport`: the six functions of mcpp, over transports of ours."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from queue import Empty, Queue
from typing import Any

import pytest

from tests.rigs.conditions import until
from trunkline import Server, Stdio
from trunkline.compat import mcpp
from trunkline.compat.mcpp import JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Transport
from trunkline.transports.base import HIGH_WATER

WAIT = 30
ECHO = """
import sys
for line in sys.stdin.buffer:
    if b"stop" in line:
        break
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "mcpp", "version": "1"},
}


def echo() -> Stdio:
    return Stdio(sys.executable, ["-c", ECHO])


class Heard:
    """What a transport called back with, and on which threads."""

    def __init__(self, transport: Transport) -> None:
        self.messages: Queue[bytes] = Queue()
        self.errors: Queue[str] = Queue()
        self.threads: set[int] = set()
        transport.set_message_callback(self._message)
        transport.set_error_callback(self._error)

    def _message(self, message: bytes) -> None:
        self.threads.add(threading.get_ident())
        self.messages.put(message)

    def _error(self, text: str) -> None:
        self.threads.add(threading.get_ident())
        self.errors.put(text)


@pytest.fixture
def line() -> Iterator[tuple[Transport, Heard]]:
    """A transport to a process that sends back what it reads."""
    transport = Transport(echo())
    yield transport, Heard(transport)
    transport.disconnect()


def test_nothing_is_open_before_connect_and_after_disconnect(line: Any) -> None:
    transport, heard = line
    assert transport.is_connected() is False
    assert transport.send(b"{}") is False
    transport.disconnect()
    assert transport.connect() is True
    assert transport.connect() is True
    assert transport.is_connected() is True
    transport.disconnect()
    assert transport.is_connected() is False
    assert transport.send(b"{}") is False
    transport.disconnect()
    assert heard.errors.empty()


def test_complete_messages_are_sent_and_received_in_order_on_one_thread(line: Any) -> None:
    transport, heard = line
    assert transport.connect()
    sent = [JsonRpcNotification(f"n{number}").dump() for number in range(50)]
    assert all(transport.send(message) for message in sent)
    assert [heard.messages.get(timeout=WAIT) for _ in sent] == sent
    assert len(heard.threads) == 1
    assert threading.get_ident() not in heard.threads


@pytest.mark.parametrize("message", ['{"a":\n1}\n', b'{"a":\r\n1}\r\n'], ids=["text", "bytes"])
def test_a_message_that_is_framed_or_has_line_breaks_is_one_message(
    line: Any, message: bytes | str
) -> None:
    transport, heard = line
    assert transport.connect()
    assert transport.send(message)
    assert heard.messages.get(timeout=WAIT) == b'{"a": 1}'


def test_a_callback_may_send_and_disconnect(line: Any) -> None:
    transport, heard = line

    def answer(message: bytes) -> None:
        if message == b'"last"':
            transport.disconnect()
        else:
            assert transport.send(b'"last"')
        heard.messages.put(message)

    transport.set_message_callback(answer)
    assert transport.connect()
    assert transport.send(b'"first"')
    assert [heard.messages.get(timeout=WAIT) for _ in range(2)] == [b'"first"', b'"last"']
    until(lambda: not transport.is_connected())


def test_the_end_of_the_other_side_is_an_error_and_the_transport_connects_again(
    line: Any,
) -> None:
    transport, heard = line
    assert transport.connect()
    assert transport.send(b'"stop"')
    assert heard.errors.get(timeout=WAIT)
    until(lambda: not transport.is_connected())
    assert transport.send(b"{}") is False
    assert transport.connect() is True
    assert transport.send(b"{}")
    assert heard.messages.get(timeout=WAIT) == b"{}"
    assert heard.errors.empty()


def test_disconnect_sends_what_is_left() -> None:
    transport = Transport(echo())
    heard = Heard(transport)
    read = threading.Event()
    transport.set_message_callback(lambda message: (heard.messages.put(message), read.set())[0])
    assert transport.connect()
    assert transport.send(b'"a"')
    assert read.wait(WAIT)
    transport.disconnect()
    assert heard.messages.get(timeout=WAIT) == b'"a"'


@pytest.mark.parametrize("target", [["no-such-command-of-this-test"], "tcp://127.0.0.1:1"])
def test_a_connection_that_cannot_be_opened_is_false_with_a_reason(target: Any) -> None:
    transport = Transport(target)
    heard = Heard(transport)
    assert transport.connect() is False
    assert transport.is_connected() is False
    assert heard.errors.get(timeout=WAIT)


def test_a_message_that_is_too_large_is_an_error_and_the_connection_goes_on() -> None:
    limits = mcpp.Transport(echo())._policy.limits
    small = Transport(echo(), policy=_policy_with(64))
    assert limits.message_size("stdio") != 64
    heard = Heard(small)
    assert small.connect()
    assert small.send(b'"' + b"x" * 100 + b'"')
    assert "Oversize" in heard.errors.get(timeout=WAIT)
    assert small.send(b'"fits"')
    assert heard.messages.get(timeout=WAIT) == b'"fits"'
    small.disconnect()


def _policy_with(size: int) -> Any:
    from trunkline.jsonrpc import Limits, Policy

    return Policy.mcpp().replace(limits=Limits(stdio=size))


def test_a_callback_that_raises_does_not_end_the_connection(
    line: Any, caplog: pytest.LogCaptureFixture
) -> None:
    transport, heard = line

    def fail(message: bytes) -> None:
        heard.messages.put(message)
        raise LookupError("a bug")

    transport.set_message_callback(fail)
    assert transport.connect()
    for message in (b"1", b"2"):
        assert transport.send(message)
        assert heard.messages.get(timeout=WAIT) == message
    assert transport.is_connected()
    assert "a callback of a transport raised an exception" in caplog.text


def test_messages_for_a_side_that_does_not_read_are_refused() -> None:
    transport = Transport(Stdio(sys.executable, ["-c", "import time; time.sleep(60)"]))
    assert transport.connect()
    chunk = b'"' + b"x" * (HIGH_WATER // 4) + b'"'
    accepted = 0
    while transport.send(chunk):
        accepted += 1
        assert accepted < 100
    assert accepted >= 4
    assert transport.is_connected()
    transport.disconnect()


def test_a_handshake_and_a_call_with_the_types_of_mcpp() -> None:
    app = Server("weather")

    @app.tool
    def forecast(city: str) -> str:
        return f"Rain in {city}"

    transport = Transport(app)
    heard = Heard(transport)
    tracker = mcpp.RequestTracker()
    assert transport.connect()

    def ask(method: str, params: Any) -> Any:
        id = tracker.next_id()
        results: list[Any] = []
        tracker.register_pending(id, results.append)
        assert transport.send(JsonRpcRequest(id, method, params).dump())
        response = JsonRpcResponse.from_json(heard.messages.get(timeout=WAIT))
        assert response is not None
        assert response.id is not None
        callback = tracker.complete(response.id)
        assert callback is not None
        callback(response.result)
        return results[0]

    assert ask("initialize", INITIALIZE)["protocolVersion"] == "2025-11-25"
    assert transport.send(JsonRpcNotification("notifications/initialized").dump())
    called = ask("tools/call", {"name": "forecast", "arguments": {"city": "Oslo"}})
    assert called["content"][0]["text"] == "Rain in Oslo"
    transport.disconnect()


def test_transports_leave_no_thread_behind(line: Any) -> None:
    transport, _ = line
    assert transport.connect()
    (thread,) = [each for each in threading.enumerate() if "mcpp-transport" in each.name]
    transport.disconnect()
    assert not thread.is_alive()


def test_disconnect_ends_a_transport_that_another_thread_connects() -> None:
    app = Server("weather")
    for _ in range(20):
        transport = Transport(app)
        connecting = threading.Thread(target=transport.connect)
        connecting.start()
        transport.disconnect()
        connecting.join(WAIT)
        assert not connecting.is_alive()
        transport.disconnect()
        assert transport.is_connected() is False


def test_both_callbacks_have_their_types() -> None:
    assert mcpp.MessageCallback is Transport.MessageCallback
    assert Transport.ErrorCallback != mcpp.ErrorCallback


def test_messages_are_not_passed_on_after_disconnect(line: Any) -> None:
    transport, heard = line
    assert transport.connect()
    transport.disconnect()
    with pytest.raises(Empty):
        heard.messages.get(timeout=0.05)
    assert heard.errors.empty()
    assert asyncio.iscoroutinefunction(transport.connect) is False
