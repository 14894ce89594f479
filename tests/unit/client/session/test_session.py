"""One connection: time, progress, strays, and the end of it."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

import pytest

from tests.unit.client.scripted import (
    NEWEST_HANDSHAKE,
    SILENT,
    Place,
    Refused,
    initialized,
    run,
    text,
)
from trunkline.client import Client, SyncClient
from trunkline.client.session import diagnostics
from trunkline.client.session import session as sessions
from trunkline.errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    RequestTimeout,
    TransportError,
    TrunklineError,
)
from trunkline.jsonrpc import Oversize, Policy
from trunkline.spec.revisions import LATEST
from trunkline.transports.base import HIGH_WATER

EACH_ERA = pytest.mark.parametrize("revision", [NEWEST_HANDSHAKE, LATEST])


# -- time ------------------------------------------------------------------------------------


@EACH_ERA
def test_a_call_that_takes_too_long_is_cancelled_by_notification(revision: str) -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT}, revision=revision)
        async with Client(place, revision=revision) as client:
            with pytest.raises(RequestTimeout) as caught:
                await client.call_tool("slow", timeout=0.02)
            assert caught.value.method == "tools/call"
            assert "0.02 s" in str(caught.value)
            asked = place.line.last("tools/call")
            told = place.line.last("notifications/cancelled")
            assert told["params"]["requestId"] == asked["id"]
            # The answer crosses our word of it, and bothers nobody.
            place.line.say({"jsonrpc": "2.0", "id": asked["id"], "result": text("late")})
            place.answers["tools/call"] = text("now")
            assert (await client.call_tool("slow")).text == "now"

    run(main())


def test_the_time_of_all_calls_is_that_of_the_client() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT}), timeout=0.02) as client:
            results = await asyncio.gather(
                *(client.call_tool("slow") for _ in range(3)), return_exceptions=True
            )
            assert [type(each) for each in results] == [RequestTimeout] * 3
            assert "0.02 s" in str(results[0])

    run(main())


def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT})) as client:
            long = client.submit_tool("slow", timeout=500)
            with pytest.raises(RequestTimeout):
                await client.call_tool("slow", timeout=0.02)
            assert not long.done()

    run(main())


def test_no_call_takes_longer_than_the_maximum() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT}), max_timeout=0.02) as client:
            with pytest.raises(RequestTimeout, match=r"0\.02 s"):
                await client.call_tool("slow", timeout=5000)

    run(main())


def progressing(place: Place, every: float, times: int, then: Any = SILENT) -> Any:
    """Return an answer that reports progress first."""

    async def report(message: dict[str, Any]) -> None:
        token = message["params"]["_meta"]["progressToken"]
        for step in range(1, times + 1):
            params = {"progressToken": token, "progress": step, "total": times, "message": "on"}
            place.line.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            await asyncio.sleep(every)
        if then is not SILENT:
            place.line.say({"jsonrpc": "2.0", "id": message["id"], "result": then})

    def answer(message: dict[str, Any]) -> Any:
        place.tasks.append(asyncio.create_task(report(message)))  # type: ignore[attr-defined]
        return SILENT

    place.tasks = []  # type: ignore[attr-defined]  # kept, or they would be collected
    return answer


def test_progress_is_reported_and_renews_the_call_timeout() -> None:
    async def main() -> None:
        place = Place()
        place.answers["tools/call"] = progressing(place, 0.05, 6, text("done"))
        seen: list[Any] = []
        async with Client(place) as client:
            # Six reports take longer than the call may, without them.
            result = await client.call_tool(
                "slow", timeout=0.2, on_progress=lambda *args: seen.append(args)
            )
        assert result.text == "done"
        assert seen == [(step, 6, "on") for step in range(1, 7)]

    run(main())


def test_progress_does_not_go_beyond_the_maximum() -> None:
    async def main() -> None:
        place = Place()
        place.answers["tools/call"] = progressing(place, 0.02, 500)
        async with Client(place, max_timeout=0.2) as client:
            with pytest.raises(RequestTimeout, match=r"0\.2 s, the maximum"):
                await client.call_tool("slow", timeout=0.1, on_progress=lambda *args: None)
            for task in place.tasks:
                task.cancel()

    run(main())


def test_progress_token_is_sent_only_with_on_progress() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")}, revision=NEWEST_HANDSHAKE)
        async with Client(place) as client:
            await client.call_tool("x")
            assert "_meta" not in place.line.last("tools/call")["params"]
            await client.call_tool("x", on_progress=print)
            assert place.line.last("tools/call")["params"]["_meta"] == {"progressToken": 1}
            await client.call_tool("x", on_progress=print, meta={"a": 1})
            meta = place.line.last("tools/call")["params"]["_meta"]
            assert meta == {"progressToken": 2, "a": 1}

    run(main())


def test_progress_for_all_calls_is_the_clients() -> None:
    async def main() -> None:
        place = Place()
        place.answers["tools/call"] = progressing(place, 0, 1, text("done"))
        seen: list[Any] = []

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)
            told.set()

        told = asyncio.Event()
        async with Client(place, on_progress=listen) as client:
            await client.call_tool("slow")
            await told.wait()
        assert seen == [1]

    run(main())


@pytest.mark.parametrize(
    "params",
    [
        {"progressToken": 99, "progress": 1},
        {"progressToken": "1", "progress": 1},
        {"progress": 1},
        {"progressToken": 1, "progress": "much"},
    ],
)
def test_progress_of_no_call_is_ignored(params: dict[str, Any]) -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        seen: list[Any] = []
        async with Client(place) as client:
            call = client.submit_tool("slow", on_progress=lambda *args: seen.append(args))
            place.line.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            place.answers["tools/call"] = text("x")
            await client.call_tool("x")
            assert not seen
            assert not call.done()

    run(main())


def test_a_cancelled_task_cancels_its_call() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            task = asyncio.create_task(client.call_tool("slow"))
            asked = await place.line.until("tools/call")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            told = place.line.last("notifications/cancelled")
            assert told["params"]["requestId"] == asked["id"]

    run(main())


# -- replies that nobody waits for -----------------------------------------------------------


@pytest.mark.parametrize("id", [999, "1", None])
def test_a_reply_to_nothing_is_logged_and_ends_nothing(
    id: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            call = client.submit_tool("slow")
            error = {"code": -32603, "message": "token=canary-9f8e7d6c5b4a"}
            place.line.say({"jsonrpc": "2.0", "id": id, "error": error})
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not call.done()

    run(main())
    assert "never asked" in caplog.text
    assert "canary" not in caplog.text


def test_a_second_reply_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def twice(message: dict[str, Any]) -> Any:
            place.line.say({"jsonrpc": "2.0", "id": message["id"], "result": text("one")})
            return text("two")

        place = Place({"tools/call": twice})
        async with Client(place) as client:
            assert (await client.call_tool("x")).text == "one"
            await asyncio.sleep(0)

    run(main())
    assert "already answered" in caplog.text


@pytest.mark.parametrize("line", [b"Server listening on stdio", b"{", b"[]", b'{"jsonrpc": "2.0"}'])
@EACH_ERA
def test_invalid_message_is_logged_and_not_answered(
    line: bytes, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        place = Place({"tools/call": text("fine")}, revision=revision)
        async with Client(place) as client:
            before = len(place.line.sent)
            place.line.say(line)
            assert (await client.call_tool("x")).text == "fine"
            assert len(place.line.sent) == before + 1

    run(main())
    assert "invalid message" in caplog.text


@pytest.mark.parametrize(
    "members", [{"result": [1]}, {"result": 5}, {"result": {}, "error": {}}, {"error": 5}]
)
def test_a_faulty_reply_ends_its_call(members: dict[str, Any]) -> None:
    async def main() -> None:
        def faulty(message: dict[str, Any]) -> Any:
            place.line.say({"jsonrpc": "2.0", "id": message["id"], **members})
            return SILENT

        place = Place({"tools/call": faulty})
        async with Client(place) as client:
            with pytest.raises(RemoteProtocolError):
                await client.call_tool("x")

    run(main())


def test_a_reply_that_is_too_large_ends_its_call() -> None:
    async def main() -> None:
        def large(message: dict[str, Any]) -> Any:
            head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % message["id"]
            asyncio.get_running_loop().call_soon(place.line._deliver, Oversize(head, 10, None))
            return SILENT

        place = Place({"tools/call": large})
        async with Client(place) as client:
            with pytest.raises(InvalidMessage):
                await client.call_tool("x")

    run(main())


def test_an_error_has_its_meaning_in_the_revision_spoken() -> None:
    async def main() -> None:
        for revision, kind in ((NEWEST_HANDSHAKE, "RESOURCE_NOT_FOUND"), (LATEST, None)):
            place = Place({"resources/read": Refused(-32002, "gone", {"uri": "x:y"})})
            place.answers |= Place(revision=revision).answers | place.answers
            if revision != LATEST:
                place.answers["server/discover"] = Refused(-32601)
            async with Client(place) as client:
                with pytest.raises(PeerError) as caught:
                    await client.read_resource("x:y")
                assert caught.value.code == -32002
                assert caught.value.data == {"uri": "x:y"}
                assert caught.value.method == "resources/read"
                assert kind is None or caught.value.kind == kind

    run(main())


def test_unknown_error_code_raises_a_peer_error_without_a_kind() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": Refused(77, "odd")})) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("x")
            assert (caught.value.code, caught.value.kind) == (77, "")

    run(main())


# -- the end ---------------------------------------------------------------------------------


def test_a_server_that_dies_fails_all_open_calls_at_once() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            calls = [client.submit_tool("slow") for _ in range(3)]
            task = asyncio.create_task(client.call_tool("slow"))
            await place.line.until("tools/call", 4)
            place.line.end(TransportError("killed", exit_status=-9, stderr=("oh no",)))
            for waiting in (*calls, task):
                with pytest.raises(ConnectionLost) as caught:
                    await waiting
                assert caught.value.exit_status == -9
                assert caught.value.stderr == ("oh no",)
                assert caught.value.method == "tools/call"
            assert not client.is_connected
            with pytest.raises(ConnectionLost, match="killed"):
                await client.call_tool("slow")

    run(main())


def test_orderly_close_by_the_server_raises_connection_lost() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            call = client.submit_tool("slow")
            place.line.end()
            with pytest.raises(ConnectionLost, match="the server ended the connection"):
                await call

    run(main())


def test_a_lost_client_connects_again() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("hello")})
        client = Client(place)
        await client.connect()
        place.line.end()
        await client.connect()
        assert (await client.call_tool("x")).text == "hello"
        await client.close()
        assert all(line.closed for line in place.lines)

    run(main())


def test_close_ends_open_calls_and_may_be_called_twice_by_any_task() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        client = Client(place)
        await client.connect()
        task = asyncio.create_task(client.call_tool("slow"))
        await place.line.until("tools/call")
        await asyncio.gather(client.close(), asyncio.create_task(client.close()))
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await task
        await client.close()
        with pytest.raises(TrunklineError, match="not connected"):
            await client.call_tool("x")

    run(main())


def test_close_while_connecting_ends_that() -> None:
    async def main() -> None:
        place = Place({"server/discover": SILENT})
        client = Client(place)
        task = asyncio.create_task(client.connect())
        while not place.lines or not place.line.sent:
            await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await task
        assert place.line.closed

    run(main())


def test_a_client_that_never_connected_says_so() -> None:
    client = Client(Place())
    assert not client.is_connected
    with pytest.raises(TrunklineError, match="not connected"):
        _ = client.revision
    with pytest.raises(TrunklineError, match="not connected"):
        client.notify("notifications/x")
    run(client.close())


# -- ids -------------------------------------------------------------------------------------


def test_ids_that_are_used_up_bring_a_new_connection() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place, policy=Policy(max_id=3)) as client:
            for _ in range(7):
                assert (await client.call_tool("x")).text == "x"
            await asyncio.sleep(0.01)
            assert len(place.lines) == 4  # one id is for server/discover
            assert [line.closed > 0 for line in place.lines] == [True, True, True, False]

    run(main())


def test_a_connection_whose_ids_are_used_up_ends_with_its_last_answer() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place, policy=Policy(max_id=2)) as client:
            first = client.submit_tool("slow")
            place.answers["tools/call"] = text("quick")
            await client.call_tool("quick")
            old = place.lines[0]
            assert len(place.lines) == 2
            assert not old.closed
            id = old.last("tools/call")["id"]
            old.say({"jsonrpc": "2.0", "id": id, "result": text("slow")})
            assert (await first).text == "slow"
            await asyncio.sleep(0.01)
            assert old.closed

    run(main())


def test_a_connection_whose_ids_are_used_up_ends_when_its_last_call_is_cancelled() -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place, policy=Policy(max_id=2)) as client:
            task = asyncio.create_task(client.call_tool("slow"))
            await place.line.until("tools/call")
            place.answers["tools/call"] = text("quick")
            await client.call_tool("quick")
            old = place.lines[0]
            task.cancel()
            await asyncio.wait([task])
            await asyncio.sleep(0.01)
            assert old.methods()[-1] == "notifications/cancelled"
            assert old.closed
            assert client.is_connected

    run(main())


def test_a_transport_made_by_hand_cannot_be_renewed() -> None:
    async def main() -> None:
        policy = Policy(max_id=2)
        transport = Place({"tools/call": text("x")}).transport(policy)
        async with Client(transport, policy=policy) as client:
            await client.call_tool("x")
            with pytest.raises(TransportError, match="connects once"):
                await client.call_tool("x")
        with pytest.raises(TransportError, match="connects once"):
            await client.connect()

    run(main())


def test_arguments_that_cannot_be_written_are_refused_and_harm_nothing() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place) as client:
            with pytest.raises(LocalProtocolError):
                await client.call_tool("x", {"n": float("nan")})
            with pytest.raises(LocalProtocolError):
                await client.call_tool("x", {"n": object()}, on_progress=print)
            assert (await client.call_tool("x")).text == "x"
            assert place.line.methods().count("tools/call") == 1

    run(main())


def test_a_reply_that_comes_before_send_returns_is_not_missed() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")}, at_once=True)
        async with Client(place) as client:
            assert (await client.call_tool("x")).text == "x"
            assert (await client.call_tool("x", timeout=1, on_progress=print)).text == "x"
            session = client._connection.session
            assert session is not None
            assert not session._timeouts.watches
            assert not session._timeouts.tokens

    run(main())


def test_nothing_is_kept_of_calls_that_have_ended() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place) as client:
            await client.call_tool("x", timeout=5, on_progress=print)
            place.answers["tools/call"] = SILENT
            with pytest.raises(RequestTimeout):
                await client.call_tool("x", timeout=0.01, on_progress=print)
            call = client.submit_tool("x", timeout=5, on_progress=print)
            call.cancel()
            await asyncio.sleep(0)
            session = client._connection.session
            assert session is not None
            assert not session._timeouts.watches
            assert not session._timeouts.tokens
            assert not len(session._peer.outgoing)

    run(main())


def test_secrets_are_in_no_text(caplog: pytest.LogCaptureFixture) -> None:
    canary = "sk-canary0123456789abcdef0123456789"

    async def main() -> None:
        caplog.set_level(logging.DEBUG, "trunkline")
        place = Place({"tools/call": Refused(-32000, f"bad api_key={canary}")})
        async with Client(place, on_notification=fail) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("x", {"password": canary})
            assert canary not in str(caught.value) + repr(caught.value)
            call = client.submit_tool("x", {"password": canary})
            assert canary not in repr(call) + repr(client)
            params = {"token": canary}
            place.line.say({"jsonrpc": "2.0", "method": "notifications/x", "params": params})
            place.line.say(f'{{"authorization": "Bearer {canary}"'.encode())
            await asyncio.sleep(0.01)
            place.answers["tools/call"] = text(f"api_key={canary}")
            assert canary not in repr(await client.call_tool("x"))

    def fail(method: str, params: dict[str, Any]) -> None:
        raise ValueError(f"api_key={params['token']}")

    run(main())
    assert "on_notification" in caplog.text
    assert canary not in caplog.text


# -- times that are none ---------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [float("nan"), 0, -1, float("-inf")])
def test_invalid_timeout_is_refused_and_does_not_affect_other_calls(timeout: float) -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            for ask in (client.call_tool("x", timeout=timeout), client.list_tools(timeout=timeout)):
                with pytest.raises(ValueError, match="a number of seconds above 0"):
                    await ask
            with pytest.raises(ValueError, match="a number of seconds above 0"):
                client.submit_tool("x", timeout=timeout, on_progress=print)
            assert place.line.methods() == ["server/discover"]
            with pytest.raises(RequestTimeout):
                await client.call_tool("x", timeout=0.01)
            call = client.submit_tool("x", timeout=float("inf"))
            await asyncio.sleep(0)
            assert not call.done()

    run(main())


# -- ending ----------------------------------------------------------------------------------


def test_a_close_that_is_cancelled_closes_all_the_same() -> None:
    async def main() -> None:
        place = Place()
        client = Client(place)
        await client.connect()
        let_go = asyncio.Event()
        close = place.line.close

        async def slowly() -> None:
            await let_go.wait()
            await close()

        place.line.close = slowly  # type: ignore[method-assign]
        first = asyncio.create_task(client.close())
        await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(client.close())
        await asyncio.sleep(0.01)
        # The next one waits for what the first has begun.
        assert not second.done()
        assert not place.line.closed
        let_go.set()
        await second
        assert place.line.closed == 1

    run(main())


def test_a_handler_that_will_not_end_does_not_keep_the_connection_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diagnostics, "CANCEL_TIMEOUT_S", 5.0)

    async def main() -> None:
        async def stubborn(params: Any) -> Any:
            asked.set()
            while not done.is_set():
                try:
                    await done.wait()
                except asyncio.CancelledError:
                    continue

        asked, done = asyncio.Event(), asyncio.Event()
        place = Place(revision=NEWEST_HANDSHAKE)
        client = Client(place, on_elicit=stubborn)
        await client.connect()
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        request = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params}
        place.line.say(request)
        await asked.wait()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0.01)
        assert place.line.closed
        assert not closing.done()
        done.set()
        await closing

    run(main())


def test_a_transport_that_fails_to_close_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fail() -> None:
            raise OSError("stuck")

        place = Place()
        client = Client(place)
        await client.connect()
        place.line.close = fail  # type: ignore[method-assign]
        await client.close()
        assert not client.is_connected

    run(main())
    assert "closing a session raised" in caplog.text


# -- a server that does not read -------------------------------------------------------------


def test_no_handler_is_called_for_a_server_that_does_not_read() -> None:
    async def main() -> None:
        called: list[Any] = []
        place = Place({"tools/call": text("x")}, revision=NEWEST_HANDSHAKE)
        async with Client(place, roots=lambda: called.append(1) or []) as client:
            place.line.backlog = HIGH_WATER + 1
            place.line.say({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
            place.line.say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            assert (await place.line.until_reply("r"))["error"]["code"] == -32603
            assert (await place.line.until_reply("p"))["result"] == {}
            place.line.backlog = 0
            place.line.say({"jsonrpc": "2.0", "id": "s", "method": "roots/list"})
            assert (await place.line.until_reply("s"))["result"] == {"roots": []}
            assert called == [1]
            assert client.is_connected

    run(main())


@pytest.mark.parametrize("params", [{}, 5])  # faulty ones are answered too, so they count
def test_a_server_that_asks_on_and_does_not_read_loses_its_connection(
    params: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MAX_UNREAD_BYTES", 3000)

    async def main() -> None:
        place = Place({"tools/call": SILENT}, revision=NEWEST_HANDSHAKE, at_once=True)
        async with Client(place) as client:
            call = client.submit_tool("slow")
            # A large argument of our own proves nothing.
            place.line.backlog = 100 * HIGH_WATER
            place.line.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert client.is_connected
            before = len(place.line.sent)
            for number in range(100):
                ping = {"jsonrpc": "2.0", "id": f"{number:_>100}", "method": "ping"}
                place.line.say(ping | {"params": params})
            assert len(place.line.sent) < before + 20
            assert not client.is_connected
            with pytest.raises(ConnectionLost, match="did not read"):
                await call

    run(main())


# -- what is no message ----------------------------------------------------------------------


def test_batch_of_invalid_messages_is_not_answered() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("fine")}, revision="2025-03-26")
        async with Client(place, revision="2025-03-26") as client:
            before = len(place.line.sent)
            place.line.say(b'[1, 2, "a line of a log"]')
            assert (await client.call_tool("x")).text == "fine"
            assert len(place.line.sent) == before + 1

    run(main())


def test_a_faulty_request_that_can_be_named_is_answered() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("fine")}, revision=NEWEST_HANDSHAKE)
        async with Client(place):
            place.line.say({"jsonrpc": "2.0", "id": 7, "method": "roots/list", "params": 5})
            assert "error" in await place.line.until_reply(7)
        place = Place({"tools/call": text("fine")})
        async with Client(place) as client:
            place.line.say({"jsonrpc": "2.0", "id": 7, "method": "roots/list", "params": 5})
            await client.call_tool("x")
            assert place.line.methods() == ["server/discover", "tools/call"]

    run(main())


def test_a_server_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def fail(method: str, params: Any) -> None:
            raise ValueError("mine")

        caplog.set_level(logging.INFO, "trunkline")
        place = Place({"tools/call": text("x")}, revision=NEWEST_HANDSHAKE, at_once=True)
        async with Client(place, on_notification=fail):
            for number in range(100):
                place.line.say(b"a line of a log")
                place.line.say({"jsonrpc": "2.0", "id": 1000 + number, "result": {}})
                place.line.say({"jsonrpc": "2.0", "method": "notifications/acme"})
        counts = {
            text: caplog.text.count(text)
            for text in ("invalid message", "never asked", "ValueError: mine")
        }
        assert set(counts.values()) == {diagnostics.MAX_LOGGED}
        assert "270 more warnings" in caplog.text

    run(main())


# -- ids, again ------------------------------------------------------------------------------


def test_calls_in_hand_go_by_a_new_connection_when_ids_are_used_up() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place, policy=Policy(max_id=3)) as client:
            calls = [client.submit_tool("x") for _ in range(4)]
            assert [(await call).text for call in calls] == ["x"] * 4
            assert len(place.lines) == 2
            one, two = client.submit_tool("x"), client.submit_tool("x")
            two.cancel()
            await one
            assert two.cancelled()
            assert [line.methods().count("tools/call") for line in place.lines] == [2, 2, 1]

    run(main())


def test_submitted_call_fails_if_the_connection_cannot_be_renewed() -> None:
    async def main() -> None:
        heard: list[Any] = []
        policy = Policy(max_id=2)
        transport = Place({"tools/call": text("x")}).transport(policy)
        async with Client(transport, policy=policy) as client:
            await client.call_tool("x")
            call = client.submit_tool("x", on_error=heard.append)
            with pytest.raises(TransportError, match="connects once"):
                await call
            await asyncio.sleep(0)
            assert [type(each) for each in heard] == [TransportError]

    run(main())


def test_an_odd_failure_to_connect_ends_a_call_in_hand(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place, policy=Policy(max_id=2)) as client:
            await client.call_tool("x")
            place.transport = None  # type: ignore[method-assign, assignment]
            with pytest.raises(TransportError, match="no new connection"):
                await client.submit_tool("x")

    run(main())
    assert "connecting again raised" in caplog.text


@EACH_ERA
def test_the_log_level_outlasts_a_connection(revision: str) -> None:
    async def main() -> None:
        capabilities = {"tools": {}, "logging": {}}
        place = Place({"tools/call": text("x"), "logging/setLevel": {}}, revision=revision)
        if revision == NEWEST_HANDSHAKE:
            place.answers["initialize"] = initialized(revision, capabilities=capabilities)
        async with Client(place, revision=revision, policy=Policy(max_id=4)) as client:
            await client.set_logging_level("debug")
            for _ in range(4):
                await client.call_tool("x")
            assert len(place.lines) == 2
            if revision == NEWEST_HANDSHAKE:
                assert place.line.last("logging/setLevel")["params"] == {"level": "debug"}
            else:
                meta = place.line.last("tools/call")["params"]["_meta"]
                assert meta["io.modelcontextprotocol/logLevel"] == "debug"

    run(main())


def test_subscriptions_outlast_a_connection(caplog: pytest.LogCaptureFixture) -> None:
    def subscribe(message: dict[str, Any]) -> Any:
        gone = len(place.lines) > 1 and message["params"]["uri"] == "x:gone"
        return Refused(-32002, "not found") if gone else {}

    answers = {"tools/call": text("x"), "resources/subscribe": subscribe}
    place = Place(answers | {"resources/unsubscribe": {}}, revision=NEWEST_HANDSHAKE)

    async def main() -> None:
        options: dict[str, Any] = {"revision": NEWEST_HANDSHAKE, "policy": Policy(max_id=7)}
        async with Client(place, **options) as client:
            for uri in ("x:a", "x:gone", "x:b"):
                await client.subscribe(uri)
            await client.unsubscribe("x:b")
            for _ in range(3):
                await client.call_tool("x")
            assert len(place.lines) == 2
            asked = [each for each in place.line.sent if each["method"] == "resources/subscribe"]
            assert [each["params"]["uri"] for each in asked] == ["x:a", "x:gone"]
            await client.close()
            # To connect again is to begin again.
            await client.connect()
            assert "resources/subscribe" not in place.line.methods()

    run(main())
    assert "x:gone" in caplog.text


def test_making_a_client_opens_nothing_and_dropping_it_ends_no_connection() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("fine")})
        Client(place)
        SyncClient(place)
        assert place.lines == []
        client = Client(place)
        await client.connect()
        assert (await client.call_tool("any")).text == "fine"
        line = place.line
        del client
        gc.collect()
        await asyncio.sleep(0)
        assert line.is_connected
        assert line.closed == 0

    run(main())
