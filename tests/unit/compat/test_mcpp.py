"""`compat.mcpp`: message types, the tracker and the timeouts."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, Queue
from typing import Any

import pytest

from trunkline import Server, ToolError
from trunkline.compat import mcpp
from trunkline.compat.mcpp import (
    UNSET,
    JsonRpcError,
    JsonRpcNotification,
    JsonRpcRequest,
    JsonRpcResponse,
    RequestTracker,
    TimeoutManager,
    ToolExecutionError,
)
from trunkline.errors import LocalProtocolError

NAMES = """
    RequestId JsonValue JsonRpcRequest JsonRpcResponse JsonRpcNotification JsonRpcError
    ToolExecutionError RequestTracker ResponseCallback ErrorCallback TimeoutManager
    PARSE_ERROR INVALID_REQUEST METHOD_NOT_FOUND INVALID_PARAMS INTERNAL_ERROR UNSET
    InitializeRequestParams InitializeResult RequestMeta ServerCapabilities ClientCapabilities
    Implementation CapabilitySet LoggingCapability PromptCapability ResourceCapability
    ToolCapability Transport MessageCallback McpClient TimeoutEntry methods
"""


def test_every_name_is_there_and_public() -> None:
    assert sorted(mcpp.__all__) == sorted(NAMES.split())
    assert all(hasattr(mcpp, name) for name in mcpp.__all__)


def test_the_error_codes_have_their_numbers() -> None:
    assert mcpp.PARSE_ERROR == -32700
    assert mcpp.INVALID_REQUEST == -32600
    assert mcpp.METHOD_NOT_FOUND == -32601
    assert mcpp.INVALID_PARAMS == -32602
    assert mcpp.INTERNAL_ERROR == -32603


# --- messages


def test_a_request_is_an_object_with_its_members_in_order() -> None:
    request = JsonRpcRequest(1, "tools/list", {})
    assert (request.jsonrpc, request.id, request.method, request.params) == (
        "2.0",
        1,
        "tools/list",
        {},
    )
    assert list(request.to_json()) == ["jsonrpc", "id", "method", "params"]
    assert request.dump() == b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'


def test_absent_params_are_left_out() -> None:
    assert JsonRpcRequest(1, "ping").to_json() == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert JsonRpcNotification("a").to_json() == {"jsonrpc": "2.0", "method": "a"}


@pytest.mark.parametrize("id", [0, 7, "7", 2**63 - 1])
def test_ids_keep_their_type(id: int | str) -> None:
    request = JsonRpcRequest.from_json(JsonRpcRequest(id, "a").to_json())
    assert request is not None
    assert type(request.id) is type(id)
    assert request.id == id


@pytest.mark.parametrize(
    "message",
    [
        JsonRpcRequest(1, "a", {"b": [1, None]}),
        JsonRpcRequest("x", "a", [1]),
        JsonRpcNotification("a", {"b": 1}),
        JsonRpcNotification("a"),
        JsonRpcResponse(1, {"b": 1}),
        JsonRpcResponse(1, None),
        JsonRpcResponse(1, error=JsonRpcError(1, "No")),
        JsonRpcResponse(None, error=JsonRpcError(1, "No", None)),
    ],
)
def test_a_message_is_read_as_it_was_written(message: Any) -> None:
    kind = type(message)
    assert kind.from_json(message.to_json()) == message
    assert kind.from_json(message.dump()) == message
    assert kind.from_json(message.dump().decode()) == message
    assert kind.from_json(bytearray(message.dump())) == message
    assert json.loads(message.dump()) == message.to_json()


@pytest.mark.parametrize("kind", [JsonRpcRequest, JsonRpcNotification, JsonRpcResponse])
@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "not json",
        b"\xff",
        {},
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "a"}],
        {"jsonrpc": "1.0", "id": 1, "method": "a"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1, "method": ""},
        {"jsonrpc": "2.0", "id": 1.5, "method": "a"},
        {"jsonrpc": "2.0", "id": None, "method": "a"},
        {"jsonrpc": "2.0", "id": True, "method": "a"},
        {"jsonrpc": "2.0", "id": 1, "method": "a", "params": 7},
        {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"x": object()}},
        {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"x": float("nan")}},
        {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "method": "a", "result": 1},
        {"jsonrpc": "2.0", "result": 1},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        b"[" * 100_000,
    ],
)
def test_bad_input_is_none(kind: Any, bad: Any) -> None:
    assert kind.from_json(bad) is None


def test_a_message_of_another_kind_is_none() -> None:
    request = JsonRpcRequest(1, "a").to_json()
    notification = JsonRpcNotification("a").to_json()
    response = JsonRpcResponse(1, {}).to_json()
    assert JsonRpcRequest.from_json(notification) is None
    assert JsonRpcRequest.from_json(response) is None
    assert JsonRpcNotification.from_json(request) is None
    assert JsonRpcResponse.from_json(request) is None


def test_a_missing_version_an_integral_float_and_null_params_are_forgiven() -> None:
    assert JsonRpcRequest.from_json({"id": 1, "method": "a"}) == JsonRpcRequest(1, "a")
    assert JsonRpcRequest.from_json({"id": 1.0, "method": "a", "params": None}) == (
        JsonRpcRequest(1, "a")
    )
    assert JsonRpcNotification.from_json({"method": "a"}) == JsonRpcNotification("a")
    assert JsonRpcResponse.from_json({"id": 1, "result": 2}) == JsonRpcResponse(1, 2)


def test_an_error_without_an_id_is_read() -> None:
    error = {"code": -32700, "message": "Parse error"}
    expected = JsonRpcResponse(None, error=JsonRpcError(-32700, "Parse error"))
    assert JsonRpcResponse.from_json({"jsonrpc": "2.0", "id": None, "error": error}) == expected
    assert JsonRpcResponse.from_json({"jsonrpc": "2.0", "error": error}) == expected


def test_a_response_has_one_outcome() -> None:
    assert JsonRpcResponse(1, 2).error is UNSET
    assert JsonRpcResponse(1, error=JsonRpcError(1, "No")).result is UNSET
    for outcomes in ({}, {"result": 1, "error": JsonRpcError(1, "No")}):
        with pytest.raises(LocalProtocolError, match="a result or an error, not both"):
            JsonRpcResponse(1, **outcomes)  # type: ignore[arg-type]


def test_the_data_of_an_error_are_left_out_when_absent() -> None:
    assert JsonRpcError(1, "No").to_json() == {"code": 1, "message": "No"}
    assert JsonRpcError(1, "No", None).to_json() == {"code": 1, "message": "No", "data": None}


def test_an_error_is_read_or_none() -> None:
    assert JsonRpcError.from_json({"code": 1, "message": "No", "data": [1]}) == JsonRpcError(
        1, "No", [1]
    )
    for bad in (None, {}, {"code": 1}, {"code": "1", "message": ""}, {"code": True, "message": ""}):
        assert JsonRpcError.from_json(bad) is None


def test_a_failed_tool_is_a_result() -> None:
    failed = ToolExecutionError("disk full")
    assert failed.isError
    assert failed.content == "disk full"
    assert failed.to_json() == {
        "content": [{"type": "text", "text": "disk full"}],
        "isError": True,
    }


def test_nan_in_params_is_refused_with_its_pointer() -> None:
    with pytest.raises(LocalProtocolError, match="/params/x"):
        JsonRpcRequest(1, "a", {"x": float("nan")}).dump()


# --- the tracker


def ignore(_: Any) -> None:
    """Do nothing with a result."""


def test_ids_count_from_0() -> None:
    tracker = RequestTracker()
    assert [tracker.next_id() for _ in range(3)] == [0, 1, 2]


def test_a_callback_is_handed_back_once() -> None:
    tracker = RequestTracker()
    id = tracker.next_id()
    tracker.register_pending(id, ignore)
    assert tracker.complete(id) is ignore
    assert tracker.complete(id) is None


def test_an_id_that_was_never_registered_has_no_callback() -> None:
    assert RequestTracker().complete(7) is None


def test_an_integer_and_a_text_are_two_ids() -> None:
    tracker = RequestTracker()
    tracker.register_pending(7, ignore)
    assert tracker.complete("7") is None
    assert tracker.complete(7) is ignore


def test_an_id_that_waits_is_not_registered_again() -> None:
    tracker = RequestTracker()
    tracker.register_pending("a", ignore)
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.in-use"):
        tracker.register_pending("a", print)
    assert tracker.complete("a") is ignore
    tracker.register_pending("a", print)
    assert tracker.complete("a") is print


def test_an_id_of_the_callers_is_not_given_out_again() -> None:
    tracker = RequestTracker()
    tracker.register_pending(1, ignore)
    assert tracker.next_id() not in {1}
    assert tracker.next_id() not in {1}


# --- timeouts


class Fired(list[str]):
    """What has fired, in order."""

    def on(self, name: str) -> Callable[[], None]:
        return lambda: self.append(name)


def test_a_timeout_fires_once_when_its_time_has_come() -> None:
    fired, timeouts = Fired(), TimeoutManager(300.0)
    timeouts.set_timeout(1, 5.0, fired.on("a"), now=100.0)
    timeouts.check_timeouts(104.9)
    assert fired == []
    timeouts.check_timeouts(105.0)
    timeouts.check_timeouts(200.0)
    assert fired == ["a"]


def test_without_a_timeout_of_its_own_a_request_has_the_default() -> None:
    fired, timeouts = Fired(), TimeoutManager(300.0)
    assert timeouts.default_timeout == 300.0
    timeouts.set_timeout(1, None, fired.on("a"), now=0.0)
    timeouts.check_timeouts(299.0)
    assert fired == []
    timeouts.check_timeouts(300.0)
    assert fired == ["a"]


def test_timeouts_fire_earliest_first() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)
    for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        timeouts.set_timeout(name, seconds, fired.on(name), now=0.0)
    timeouts.check_timeouts(2.5)
    assert fired == ["a", "b"]


def test_a_cancelled_timeout_does_not_fire() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)
    timeouts.set_timeout(1, 1.0, fired.on("a"), now=0.0)
    timeouts.cancel(1)
    timeouts.cancel("never set")
    timeouts.check_timeouts(9.0)
    assert fired == []


def test_a_timeout_that_is_set_again_is_replaced() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)
    timeouts.set_timeout(1, 1.0, fired.on("first"), now=0.0)
    timeouts.set_timeout(1, 5.0, fired.on("second"), now=0.0)
    timeouts.check_timeouts(2.0)
    assert fired == []
    timeouts.check_timeouts(5.0)
    assert fired == ["second"]


def test_timeout_callback_can_set_its_timeout_again() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)

    def again() -> None:
        fired.append("a")
        timeouts.cancel(1)
        timeouts.set_timeout(1, 1.0, fired.on("b"), now=9.0)

    timeouts.set_timeout(1, 1.0, again, now=0.0)
    timeouts.check_timeouts(9.0)
    assert fired == ["a"]
    timeouts.check_timeouts(10.0)
    assert fired == ["a", "b"]


def test_a_callback_may_cancel_one_that_is_due_with_it() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)
    timeouts.set_timeout(1, 1.0, lambda: timeouts.cancel(2), now=0.0)
    timeouts.set_timeout(2, 2.0, fired.on("b"), now=0.0)
    timeouts.check_timeouts(9.0)
    assert fired == []


def test_a_callback_may_put_off_one_that_is_due_with_it() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)
    late = fired.on("b")
    timeouts.set_timeout(1, 1.0, lambda: timeouts.set_timeout(2, 5.0, late, now=9.0), now=0.0)
    timeouts.set_timeout(2, 2.0, late, now=0.0)
    timeouts.check_timeouts(9.0)
    assert fired == []
    timeouts.check_timeouts(14.0)
    assert fired == ["b"]


def test_a_callback_that_raises_loses_no_other() -> None:
    fired, timeouts = Fired(), TimeoutManager(1.0)

    def fail() -> None:
        raise RuntimeError("oops")

    timeouts.set_timeout(1, 1.0, fail, now=0.0)
    timeouts.set_timeout(2, 2.0, fired.on("b"), now=0.0)
    with pytest.raises(RuntimeError, match="oops"):
        timeouts.check_timeouts(9.0)
    timeouts.check_timeouts(9.0)
    assert fired == ["b"]


def test_the_clock_of_the_system_is_read_where_none_is_handed_in() -> None:
    fired, timeouts = Fired(), TimeoutManager(300.0)
    timeouts.set_timeout(1, 0.0, fired.on("a"))
    timeouts.set_timeout(2, 300.0, fired.on("b"))
    timeouts.check_timeouts()
    assert fired == ["a"]


def test_deadlines_are_seconds_of_the_monotonic_clock() -> None:
    fired: list[int] = []
    timeouts = TimeoutManager(30)
    timeouts.set_timeout(1, 5, lambda: fired.append(1))
    timeouts.check_timeouts(now=time.monotonic() + 4)
    assert fired == []
    timeouts.check_timeouts(now=time.monotonic() + 6)
    assert fired == [1]
    timeouts.set_timeout(2, 1000, lambda: fired.append(2), now=time.monotonic())
    timeouts.check_timeouts()
    assert fired == [1]


def test_the_callback_of_a_timeout_runs_without_the_lock() -> None:
    timeouts = TimeoutManager(30)
    free: list[bool] = []

    def expired() -> None:
        # With the lock held, this thread would wait for the callback to return.
        other = threading.Thread(target=timeouts.cancel, args=(2,), daemon=True)
        other.start()
        other.join(5)
        free.append(not other.is_alive())

    timeouts.set_timeout(1, 1, expired, now=0)
    timeouts.check_timeouts(now=2)
    assert free == [True]


def test_timeouts_are_checked_on_a_thread_until_it_is_stopped() -> None:
    fired: Queue[tuple[str, int]] = Queue()
    timeouts = TimeoutManager(30)
    timeouts.set_timeout(1, 0, lambda: fired.put(("first", threading.get_ident())))
    timeouts.start(0.001)
    with pytest.raises(RuntimeError, match="call stop"):
        timeouts.start()
    name, thread = fired.get(timeout=30)
    assert (name, thread != threading.get_ident()) == ("first", True)
    timeouts.stop()
    timeouts.stop()
    timeouts.set_timeout(2, 0, lambda: fired.put(("second", threading.get_ident())))
    with pytest.raises(Empty):
        fired.get(timeout=0.05)
    timeouts.start(0.001)
    assert fired.get(timeout=30)[0] == "second"
    timeouts.stop()


def test_a_callback_may_raise_or_stop_the_thread_that_checks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fired: Queue[int] = Queue()
    timeouts = TimeoutManager(30)

    def fail() -> None:
        raise LookupError("no such request")

    def stop() -> None:
        timeouts.stop()
        fired.put(2)

    timeouts.set_timeout(1, 0, fail)
    timeouts.set_timeout(2, 0.001, stop)
    timeouts.start(0.001)
    assert fired.get(timeout=30) == 2
    assert "the callback of a timeout raised an exception" in caplog.text
    timeouts.start(1)  # the thread before it has ended
    timeouts.stop()


def test_a_response_and_a_timeout_race_and_one_of_them_wins() -> None:
    fired, timeouts, tracker = Fired(), TimeoutManager(1.0), RequestTracker()
    id = tracker.next_id()

    def give_up() -> None:
        if tracker.complete(id) is not None:
            fired.append("timeout")

    tracker.register_pending(id, lambda result: fired.append(result))
    timeouts.set_timeout(id, 1.0, give_up, now=0.0)
    callback = tracker.complete(id)
    assert callback is not None
    callback("result")
    timeouts.check_timeouts(9.0)
    assert fired == ["result"]


# --- secrets

CANARY = "canary-7f3a91c04e5d"
SECRET = {"token": CANARY, "nested": [{"api_key": CANARY}]}


@pytest.mark.parametrize(
    "value",
    [
        JsonRpcRequest(1, "a", SECRET),
        JsonRpcNotification("a", SECRET),
        JsonRpcError(1, f"bearer {CANARY}", SECRET),
        JsonRpcResponse(1, SECRET),
        JsonRpcResponse(1, error=JsonRpcError(1, "No", SECRET)),
        ToolExecutionError(f"refused bearer {CANARY}"),
    ],
)
def test_nothing_shows_a_token(value: object, showings: Callable[[object], str]) -> None:
    assert CANARY not in showings(value)


def test_the_tracker_and_the_timeouts_show_no_token(showings: Callable[[object], str]) -> None:
    tracker, timeouts = RequestTracker(), TimeoutManager(1.0)
    tracker.register_pending(CANARY, ignore)
    timeouts.set_timeout(CANARY, 1.0, lambda: None, now=0.0)
    assert CANARY not in showings(tracker) + showings(timeouts)


# -- threads ------------------------------------------------------------------------------------


@pytest.fixture
def busy_switching() -> Iterator[None]:
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("busy_switching")
def test_a_timeout_that_is_due_fires_once_though_another_thread_checks() -> None:
    count = 10_000
    fired: list[int] = []
    failures: list[BaseException] = []
    manager = mcpp.TimeoutManager(0)
    done = threading.Event()

    def check() -> None:
        try:
            while not done.is_set():
                manager.check_timeouts(now=1)
        except BaseException as error:  # noqa: BLE001  # a thread must not swallow it
            failures.append(error)

    checker = threading.Thread(target=check)
    checker.start()
    try:
        for id in range(count):
            manager.set_timeout(id, None, lambda id=id: fired.append(id), now=0)  # type: ignore[misc]
            if id % 5 == 4:
                manager.set_timeout(-id, None, lambda: fired.append(-1), now=100)
                manager.cancel(-id)
    finally:
        done.set()
        checker.join()
    manager.check_timeouts(now=1)
    assert failures == []
    assert sorted(fired) == list(range(count))


@pytest.mark.usefixtures("busy_switching")
def test_two_threads_that_check_run_each_callback_once() -> None:
    count = 2_000
    fired: list[int] = []
    manager = mcpp.TimeoutManager(0)
    for id in range(count):
        manager.set_timeout(id, None, lambda id=id: fired.append(id), now=0)  # type: ignore[misc]
    threads = [threading.Thread(target=manager.check_timeouts, args=(1,)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(fired) == list(range(count))


@pytest.mark.usefixtures("busy_switching")
def test_of_two_threads_one_gets_the_callback_and_no_id_is_given_twice() -> None:
    count = 5_000
    tracker = mcpp.RequestTracker()
    ids: list[int] = []
    failures: list[BaseException] = []

    def register() -> None:
        try:
            for _ in range(count):
                id = tracker.next_id()
                tracker.register_pending(id, ids.append)
                ids.append(id)
        except BaseException as error:  # noqa: BLE001  # a thread must not swallow it
            failures.append(error)

    in_threads(register, register)
    assert sorted(ids) == list(range(2 * count))
    won: list[int] = []

    def complete() -> None:
        try:
            won.extend(id for id in range(2 * count) if tracker.complete(id) is not None)
        except BaseException as error:  # noqa: BLE001  # a thread must not swallow it
            failures.append(error)

    in_threads(complete, complete)
    assert failures == []
    assert sorted(won) == list(range(2 * count))


def test_the_tracker_is_locked_whenever_its_tables_are_used() -> None:
    tracker = mcpp.RequestTracker()
    seen: list[tuple[str, bool]] = []

    class Watched:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            seen.append((name, tracker._lock.locked()))
            return getattr(self.inner, name)

    tracker._ids = Watched(tracker._ids)  # type: ignore[assignment]
    tracker._outgoing = Watched(tracker._outgoing)  # type: ignore[assignment]
    tracker.register_pending(tracker.next_id(), print)
    assert tracker.complete(0) is print
    assert seen == [(name, True) for name in ("next", "open", "claim", "match")]


def in_threads(*works: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


# -- the client ---------------------------------------------------------------------------------


def test_a_client_calls_back_with_the_result_or_the_error_on_one_thread() -> None:
    app = Server("s")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def fails() -> str:
        raise ToolError("no luck")

    ended: Queue[tuple[str, Any, int]] = Queue()

    def success(value: Any) -> None:
        ended.put(("success", value, threading.get_ident()))

    def error(value: mcpp.JsonRpcError) -> None:
        ended.put(("error", value, threading.get_ident()))

    client = mcpp.McpClient(app, revision="2025-11-25")
    assert not client.is_connected()
    assert client.connect()
    assert client.is_connected()
    try:
        threads = set()
        for name, arguments in (("add", {"a": 1, "b": 2}), ("fails", {}), ("gone", {})):
            client.call_tool(name, arguments, success, error)
            kind, value, thread = ended.get(timeout=30)
            threads.add(thread)
            if name == "add":
                assert (kind, value["structuredContent"]) == ("success", {"result": 3})
                assert value["content"] == [{"type": "text", "text": "3"}]
            elif name == "fails":
                assert (kind, value["isError"]) == ("success", True)
            else:
                assert (kind, value.code) == ("error", mcpp.INVALID_PARAMS)
        assert len(threads) == 1
    finally:
        client.disconnect()
    assert not client.is_connected()


def test_a_server_that_cannot_be_reached_is_not_connected_to() -> None:
    client = mcpp.McpClient(["/no/such/command"], connect_timeout=5)
    assert client.connect() is False
    assert not client.is_connected()


@pytest.mark.parametrize("front", [mcpp.McpClient, mcpp.Transport], ids=lambda each: each.__name__)
def test_callbacks_are_documented_not_to_block(front: type[Any]) -> None:
    assert "must not block" in " ".join((front.__doc__ or "").split())
