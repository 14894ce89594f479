"""One connection: time, progress, strays, and the end of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.unit.client.scripted import NEWEST_HANDSHAKE, SILENT, Place, Refused, run, text
from trunkline.client import Client
from trunkline.errors import (
    ConnectionLost,
    InvalidMessage,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    TimedOut,
    TransportError,
    TrunklineError,
)
from trunkline.jsonrpc import Oversize, Policy
from trunkline.spec.revisions import LATEST

EACH_ERA = pytest.mark.parametrize("revision", [NEWEST_HANDSHAKE, LATEST])


# -- time ------------------------------------------------------------------------------------


@EACH_ERA
def test_a_call_that_takes_too_long_is_cancelled_by_notification(revision: str) -> None:
    async def main() -> None:
        place = Place({"tools/call": SILENT}, revision=revision)
        async with Client(place, revision=revision) as client:
            with pytest.raises(TimedOut) as caught:
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
            assert [type(each) for each in results] == [TimedOut] * 3
            assert "0.02 s" in str(results[0])

    run(main())


def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT})) as client:
            long = client.submit_tool("slow", timeout=500)
            with pytest.raises(TimedOut):
                await client.call_tool("slow", timeout=0.02)
            assert not long.done()

    run(main())


def test_no_call_takes_longer_than_the_maximum() -> None:
    async def main() -> None:
        async with Client(Place({"tools/call": SILENT}), max_timeout=0.02) as client:
            with pytest.raises(TimedOut, match=r"0\.02 s"):
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


def test_progress_is_told_and_gives_a_call_its_time_again() -> None:
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
            with pytest.raises(TimedOut, match=r"0\.2 s, which is the most"):
                await client.call_tool("slow", timeout=0.1, on_progress=lambda *args: None)
            for task in place.tasks:
                task.cancel()

    run(main())


def test_no_token_is_sent_where_nobody_listens() -> None:
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
def test_what_is_no_message_is_logged_and_not_answered(
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
    assert "no message" in caplog.text


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


def test_an_error_of_no_meaning_is_told_all_the_same() -> None:
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


def test_an_orderly_end_is_told_as_such() -> None:
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
            session = client._session
            assert session is not None
            assert not session._watches
            assert not session._tokens

    run(main())


def test_nothing_is_kept_of_calls_that_have_ended() -> None:
    async def main() -> None:
        place = Place({"tools/call": text("x")})
        async with Client(place) as client:
            await client.call_tool("x", timeout=5, on_progress=print)
            place.answers["tools/call"] = SILENT
            with pytest.raises(TimedOut):
                await client.call_tool("x", timeout=0.01, on_progress=print)
            call = client.submit_tool("x", timeout=5, on_progress=print)
            call.cancel()
            await asyncio.sleep(0)
            session = client._session
            assert session is not None
            assert not session._watches
            assert not session._tokens
            assert not len(session._peer.ledger)

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
