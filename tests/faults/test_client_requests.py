"""Faults during elicitation: disconnects, malformed replies, floods, endings, endless rounds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import random
import signal
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import MIB, Piped, address, piped
from tests.rigs.conditions import until, until_async
from tests.rigs.leaks import alive, children, grown, nothing_left, run, timers
from tests.rigs.messages import HANDSHAKE, PER_REQUEST
from tests.rigs.server_connection import ServerConnection, connected
from tests.unit.client.scripted import SILENT, Place, text
from tests.unit.server.rounds_wire import EVERYTHING, accepted, attempt, meta
from trunkline import (
    Client,
    ConnectionLost,
    Context,
    InputRequestFailed,
    PeerError,
    RemoteProtocolError,
    RequestAborted,
    Server,
    ServerLimits,
    TooManyRoundTrips,
    TrunklineError,
)
from trunkline.engine.handler_run import HandlerRun
from trunkline.server.client_requests.multi_round_trip import RoundTrip, RoundTrips
from trunkline.server.client_requests.request_state import StateSealer
from trunkline.server.dispatch.connection import Connection

ABLE: dict[str, Any] = {"elicitation": {}}
KEY = b"a key that everybody has"
ASKING = ("hello", "hello_from_a_thread")


class ElicitingServer:
    """A server with tools that ask, and what became of them."""

    def __init__(self, **limits: Any) -> None:
        self.app = app = Server(
            "asking", state_keys=[KEY], limits=ServerLimits(**{"grace": 0.05, **limits})
        )
        # How asking ended, and how often what is done once was.
        self.ended: list[str] = []
        self.done = 0
        self.begun = asyncio.Event()
        self.release = threading.Event()

        @app.tool
        async def hello(ctx: Context) -> str:
            try:
                answer = await ctx.elicit("Name?", str, key="name")
            except BaseException as error:
                self.ended.append(type(error).__name__)
                raise
            return f"Hello, {answer.content}!"

        @app.tool
        def hello_from_a_thread(ctx: Context) -> str:
            try:
                answer = ctx.elicit("Name?", str, key="name").wait()
            except BaseException as error:
                self.ended.append(type(error).__name__)
                raise
            return f"Hello, {answer.content}!"

        @app.tool
        async def impatient(ctx: Context) -> str:
            await ctx.elicit("Name?", str, timeout=0.05)
            return "in time"

        async def work() -> int:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except BaseException as error:
                self.ended.append(type(error).__name__)
                raise
            return 1

        @app.tool
        async def asks_and_works(ctx: Context) -> str:
            """Ask while something is being done that the round waits for."""
            await asyncio.gather(ctx.once("work", work), ctx.elicit("Name?", str))
            return "both"

        def work_on_a_thread() -> int:
            app_loop.call_soon_threadsafe(self.begun.set)
            self.release.wait(20)
            return 1

        app_loop = asyncio.get_running_loop()

        @app.tool
        def works_on_a_thread(ctx: Context) -> str:
            try:
                ctx.once("work", work_on_a_thread).wait()
            except BaseException as error:
                self.ended.append(type(error).__name__)
                raise
            return "worked"

        def count() -> int:
            self.done += 1
            return self.done

        @app.tool
        async def counts(ctx: Context) -> str:
            number = await ctx.once("count", count, type=int)
            answer = await ctx.elicit("Name?", str, key="name")
            return f"{answer.content} {number}"

        @app.tool
        async def many(ctx: Context, number: int) -> int:
            asked = [ctx.elicit("Name?", str, key=f"k{n}") for n in range(number)]
            return len(await asyncio.gather(*asked))

        @app.tool
        async def never_ends(ctx: Context) -> str:
            try:
                await ctx.elicit("Name?", str)
            except BaseException:  # noqa: BLE001  # this is the fault
                self.begun.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.ended.append("at last")
                    raise
            return "not reached"

        @app.tool(timeout=0.1)
        async def runs_out(ctx: Context) -> str:
            try:
                await ctx.elicit("Name?", str)
            except BaseException:  # noqa: BLE001  # this is the fault
                await asyncio.Event().wait()
            return "not reached"

        @app.tool
        async def echo(text: str) -> str:
            return text

    async def question(self, wire: ServerConnection, id: Any, tool: str) -> Any:
        """Call a tool in a session, and return what it asks."""
        wire.got.clear()
        wire.call(id, tool)
        (asked,) = await wire.until(1)
        assert asked["method"] == "elicitation/create"
        return asked

    async def still_serves(self, wire: ServerConnection) -> None:
        wire.got.clear()
        reply = await attempt(wire, "still", {"name": "echo", "arguments": {"text": "on"}})
        assert reply["result"]["content"][0]["text"] == "on"


def answer(id: Any, name: str = "Ada") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": accepted(value=name)}


def cancel(wire: ServerConnection, id: Any) -> None:
    wire.tell("notifications/cancelled", {"requestId": id})


def texts_of(reply: Any) -> str:
    found: str = reply["result"]["content"][0]["text"]
    return found


async def soon(is_so: Callable[[], object]) -> None:
    """Wait for something that is a few turns of the loop away."""
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0)


def replies(wire: ServerConnection) -> list[Any]:
    return [each["id"] for each in wire.got if "method" not in each]


# Clients that leave


@pytest.mark.parametrize("tool", ASKING)
def test_disconnect_during_elicitation_ends_the_handler_with_connection_lost(tool: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            await server.question(wire, 1, tool)
            assert server.app._core.runtime.in_flight == 1
        assert server.ended == ["ConnectionLost"]
        assert server.app._core.runtime.in_flight == 0
        assert not server.app._core.runtime.connections

    run(script, timers_too=True)


@pytest.mark.parametrize("tool", ["asks_the_user", "asks_the_user_from_a_thread"])
def test_disconnect_during_elicitation_ends_the_process_in_order(tool: str) -> None:
    with piped() as server:
        server.handshake(elicitation={})
        server.send(_session_call(tool))
        assert server.read()["method"] == "elicitation/create"
        server.end_input()
        server.has_logged("asking ended: ConnectionLost")
        server.rest()
        assert server.wait() == 0
        assert "lifespan left" in server.log()


@pytest.mark.usefixtures("census")
def test_nothing_is_kept_of_a_client_that_disconnects_between_rounds() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            for n in range(50):
                reply = await attempt(wire, n, {"name": "counts"})
                assert reply["result"]["resultType"] == "input_required"
            assert server.app._core.runtime.in_flight == 0
            assert alive(Context, HandlerRun, RoundTrip) == []
        del wire
        assert alive(Context, HandlerRun, RoundTrip, Connection) == []

    run(script, timers_too=True)


# Clients that answer as they like


def test_second_reply_to_a_server_request_is_ignored() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, "hello")
            wire.send(answer(asked["id"], "Ada"))
            wire.send(answer(asked["id"], "Bob"))
            assert texts_of(await wire.answer(1)) == "Hello, Ada!"
            wire.send(answer(asked["id"], "Eve"))
            await server.still_serves(wire)

    run(script, timers_too=True)


def test_reply_with_another_id_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, "hello")
            id = asked["id"]
            others = [id + 1, -1, str(id), "", f" {id}", 10**30, float(id) + 0.5, None, [id], {}]
            for other in others:
                wire.send(answer(other))
            wire.send({"jsonrpc": "2.0", "result": accepted(value="Ada")})
            await server.still_serves(wire)
            wire.send(answer(id))
            assert texts_of(await wire.answer(1)) == "Hello, Ada!"

    run(script, timers_too=True)
    assert "unexpected reply from the client" in caplog.text


GARBAGE: dict[str, dict[str, Any]] = {
    "a text": {"result": "yes"},
    "null": {"result": None},
    "nothing": {"result": {}},
    "an unknown action": {"result": {"action": "maybe"}},
    "content of no kind": {"result": {"action": "accept", "content": [1]}},
    "content that does not fit": {"result": accepted(value={"deep": 1})},
    "content that is large": {"result": accepted(value="x", **{"y" * 100_000: "z" * 100_000})},
    "no content": {"result": {"action": "accept"}},
    "both": {**answer(0), "error": {"code": 1, "message": "both"}},
    "neither": {},
    "an error": {"error": {"code": -32603, "message": "broken"}},
    "no error": {"error": "broken"},
    "an error without a code": {"error": {"message": "broken"}},
}


@pytest.mark.parametrize("tool", ASKING)
@pytest.mark.parametrize("what", GARBAGE)
def test_malformed_reply_to_an_elicitation_ends_the_call_with_a_reply(tool: str, what: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, tool)
            wire.send({**GARBAGE[what], "jsonrpc": "2.0", "id": asked["id"]})
            reply = await wire.answer(1)
            assert "error" in reply or reply["result"].get("isError") or "large" in what, reply
            assert "broken" not in json.dumps(reply)
            # It is asked no more, and a better answer is late.
            wire.send(answer(asked["id"]))
            await server.still_serves(wire)
            await until_async(lambda: server.app._core.runtime.in_flight == 0)

    run(script, timers_too=True)


@pytest.mark.parametrize("tool", ASKING)
def test_an_answer_after_the_call_was_cancelled_is_dropped(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, tool)
            cancel(wire, 1)
            await until_async(lambda: server.app._core.runtime.in_flight == 0)
            wire.send(answer(asked["id"]))
            await server.still_serves(wire)
            assert 1 not in replies(wire)
            # Nor does one that comes together with the cancel make a difference.
            asked = await server.question(wire, 2, tool)
            cancel(wire, 2)
            wire.send(answer(asked["id"]))
            await until_async(lambda: server.app._core.runtime.in_flight == 0)
            await server.still_serves(wire)
            assert 2 not in replies(wire)

    run(script, timers_too=True)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_an_answer_after_the_handler_gave_up_is_dropped() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, "impatient")
            assert (await wire.answer(1))["result"]["isError"]
            told = [each["params"] for each in wire.got if "id" not in each]
            assert [each["requestId"] for each in told] == [asked["id"]]
            wire.send(answer(asked["id"]))
            await server.still_serves(wire)

    run(script, timers_too=True)


# Calls that are cancelled


@pytest.mark.parametrize("tool", ASKING)
def test_a_call_that_is_cancelled_while_it_asks_is_not_answered_and_asks_no_more(tool: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, tool)
            cancel(wire, 1)
            cancel(wire, 1)
            await until_async(lambda: server.app._core.runtime.in_flight == 0)
            await until_async(lambda: server.ended == ["CancelledError"])
            # The client is told that its user need not think any longer.
            told = [each for each in wire.got if each.get("method") == "notifications/cancelled"]
            assert [each["params"]["requestId"] for each in told] == [asked["id"]]
            await server.still_serves(wire)
            assert 1 not in replies(wire)

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_call_that_is_cancelled_while_it_asks_and_works_leaves_neither(revision: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, revision, ABLE) as wire:
            params: dict[str, Any] = {"name": "asks_and_works"}
            if revision == PER_REQUEST:
                params["_meta"] = meta()
            wire.ask(1, "tools/call", params)
            await asyncio.wait_for(server.begun.wait(), 5)
            cancel(wire, 1)
            await until_async(lambda: server.app._core.runtime.in_flight == 0)
            await until_async(lambda: server.ended == ["CancelledError"])
            await server.still_serves(wire)
            assert 1 not in replies(wire)

    run(script, timers_too=True)


@pytest.mark.parametrize("how", ["cancel", "leave"])
def test_thread_in_once_ends_after_a_cancel_or_disconnect(how: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            wire.ask(1, "tools/call", {"name": "works_on_a_thread", "_meta": meta()})
            await asyncio.wait_for(server.begun.wait(), 5)
            if how == "cancel":
                cancel(wire, 1)
                await until_async(lambda: server.app._core.runtime.in_flight == 0)
                await server.still_serves(wire)
                assert 1 not in replies(wire)
        server.release.set()
        await until_async(lambda: server.ended == ["CancelledError"])

    run(script, timers_too=True)


@pytest.mark.parametrize("verb", ["elicit", "once"])
def test_elicit_and_once_on_a_thread_raise_after_the_server_has_ended(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    unraisable: list[Any] = []
    release = threading.Event()
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    async def script() -> None:
        app = Server("asking", limits=ServerLimits(grace=0.01, linger=0.01))
        begun = asyncio.Event()
        loop = asyncio.get_running_loop()

        @app.tool
        def late(ctx: Context) -> str:
            loop.call_soon_threadsafe(begun.set)
            release.wait(20)
            try:
                ask: Any = ctx.elicit("Name?", str) if verb == "elicit" else ctx.once("a", int)
                ask.wait()
            except BaseException as error:
                found.append(type(error).__name__)
                raise
            return "not reached"

        async with connected(app, HANDSHAKE, ABLE) as wire:
            wire.call(1, "late")
            await asyncio.wait_for(begun.wait(), 5)

    with nothing_left():
        asyncio.run(script())
        release.set()
        until(lambda: found, "the thread still waits")
    gc.collect()
    assert unraisable == []
    assert found == ["CancelledError"]


@pytest.mark.parametrize("tool", ASKING)
def test_an_answer_that_comes_before_the_question_is_sent_off_is_taken(tool: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            take = wire.near.on_message

            def at_once(frame: Any, route: Any) -> None:
                message = json.loads(frame)
                if message.get("method") == "elicitation/create":
                    wire.send(answer(message["id"]))
                take(frame, route)

            wire.near.on_message = at_once
            for n in range(20):
                wire.call(n, tool)
                assert texts_of(await wire.answer(n)) == "Hello, Ada!"

    run(script, timers_too=True)


def test_a_client_that_answers_nothing_takes_no_threads_from_others() -> None:
    async def script() -> None:
        server = ElicitingServer(threads=4)

        @server.app.tool
        def on_a_thread() -> str:
            return "served"

        async with (
            connected(server.app, HANDSHAKE) as other,
            connected(server.app, HANDSHAKE, ABLE) as mute,
        ):
            for n in range(4):
                mute.call(n, "hello_from_a_thread")
            await mute.until(4)
            other.call("mine", "on_a_thread")
            with contextlib.suppress(AssertionError):
                await until_async(lambda: replies(other))
            found = replies(other)
        assert found == ["mine"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.rigs.conditions.WAIT_S", 1.0)
        run(script, timers_too=True)


# Servers that end


@pytest.mark.parametrize("tool", ASKING)
def test_a_server_that_stops_during_a_question_answers_the_call(tool: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            await server.question(wire, 1, tool)
            server.app.stop()
            reply = await wire.answer(1)
            assert reply["error"]["data"]["retryAfterMs"]
            assert replies(wire) == [1]
            await until_async(lambda: server.ended == ["CancelledError"])

    run(script, timers_too=True)


@pytest.mark.parametrize("tool", ASKING)
def test_a_server_that_is_to_stop_still_takes_the_answer(tool: str) -> None:
    async def script() -> None:
        server = ElicitingServer(grace=5.0)
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            asked = await server.question(wire, 1, tool)
            server.app.stop()
            await asyncio.sleep(0)
            wire.send(answer(asked["id"]))
            assert texts_of(await wire.answer(1)) == "Hello, Ada!"

    run(script, timers_too=True)


def test_a_server_that_stops_at_once_waits_for_no_user() -> None:
    async def script() -> None:
        server = ElicitingServer(grace=20.0)
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            await server.question(wire, 1, "hello")
            server.app.stop(at_once=True)
            assert "error" in await wire.answer(1)

    run(script, timers_too=True)


def test_a_server_that_stops_between_rounds_owes_nothing() -> None:
    async def script() -> None:
        server = ElicitingServer(grace=20.0)
        async with connected(server.app, PER_REQUEST) as wire:
            state = (await attempt(wire, 1, {"name": "counts"}))["result"]["requestState"]
            server.app.stop()
            await until_async(lambda: wire.ended)
        # The next server goes on with what the client has.
        other = ElicitingServer()
        async with connected(other.app, PER_REQUEST) as wire:
            given = {"name": accepted(value="Ada")}
            reply = await attempt(wire, 2, {"name": "counts"}, state=state, responses=given)
            assert texts_of(reply) == "Ada 1"
            assert (server.done, other.done) == (1, 0)

    run(script, timers_too=True)


def _session_call(tool: str, id: Any = "asks") -> dict[str, Any]:
    params = {"name": tool, "arguments": {}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def _round_call(server: Piped, id: Any, **params: Any) -> Any:
    own = {"_meta": {**meta(EVERYTHING)}}
    server.send(server.request("tools/call", id, name="asks_the_user", **params, **own))
    return server.answer(id)


@pytest.mark.parametrize("tool", ["asks_the_user", "asks_the_user_from_a_thread"])
def test_sigterm_during_a_question_answers_the_call_and_exits_with_0(tool: str) -> None:
    with piped("server.py", '{"grace": 0.2}') as server:
        server.handshake(elicitation={})
        server.send(_session_call(tool))
        assert server.read()["method"] == "elicitation/create"
        os.kill(server.pid, signal.SIGTERM)
        assert "error" in server.answer("asks")
        assert server.wait() == 0
        server.has_logged("asking ended: CancelledError")


def test_sigterm_between_rounds_ends_a_server_at_once() -> None:
    with piped("server.py", '{"grace": 600}') as server:
        assert _round_call(server, 1)["result"]["resultType"] == "input_required"
        os.kill(server.pid, signal.SIGTERM)
        assert server.rest() == []
        assert server.wait() == 0


@pytest.mark.parametrize("has_key", [True, False])
def test_a_server_that_is_killed_between_rounds_goes_on_if_the_next_has_its_key(
    has_key: bool,
) -> None:
    environment = {**os.environ, **({"STATE_KEY": "k" * 32} if has_key else {})}
    with piped(env=environment) as server:
        state = _round_call(server, 1)["result"]["requestState"]
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
    with piped(env=environment) as server:
        given = {"name": accepted(value="Ada")}
        reply = _round_call(server, 1, requestState=state, inputResponses=given)
        if has_key:
            assert texts_of(reply) == "Hello, Ada!"
        else:
            assert reply["error"]["code"] == -32602
            assert "Invalid request state" in reply["error"]["message"]
        assert server.serves()


def test_our_client_says_clearly_that_a_restarted_server_knows_nothing_of_its_state() -> None:
    async def script() -> None:
        server = ElicitingServer()

        async def on_elicit(_: Any) -> dict[str, Any]:
            # As after a restart, with keys that were drawn anew.
            server.app._core.services.rounds = RoundTrips(
                StateSealer([os.urandom(32)]), server.app._core.limits
            )
            return {"value": "Ada"}

        async with Client(server.app, on_elicit=on_elicit) as client:
            with pytest.raises(PeerError) as raised:
                await client.call_tool("hello")
            assert raised.value.code == -32602
            assert "Invalid request state" in str(raised.value)
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"

    run(script, timers_too=True)


# The same state, time and again


def test_attempts_that_race_with_one_state_are_all_answered_and_do_nothing_twice() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            state = (await attempt(wire, 1, {"name": "counts"}))["result"]["requestState"]
            names = ["Ada", "Bob"] * 10
            found = await asyncio.gather(
                *(
                    attempt(
                        wire,
                        f"race-{n}",
                        {"name": "counts"},
                        state=state,
                        responses={"name": accepted(value=name)},
                    )
                    for n, name in enumerate(names)
                )
            )
            assert [texts_of(each) for each in found] == [f"{name} 1" for name in names]
            assert server.done == 1

    run(script, timers_too=True)


def test_a_state_that_is_replayed_a_thousand_times_takes_no_memory() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            state = (await attempt(wire, "first", {"name": "counts"}))["result"]["requestState"]
            given = {"name": accepted(value="Ada")}

            async def replay(n: int) -> None:
                wire.got.clear()
                params = {"name": "counts", "_meta": meta(), "requestState": state}
                half = {} if n % 2 else {"inputResponses": given}
                wire.ask(n, "tools/call", {**params, **half})
                await soon(lambda: wire.got)
                assert "result" in wire.got[0]

            # One thing that is kept of each would be a thousand.
            assert await grown(replay, 1000, first=1000) < 500
            assert server.done == 1

    run(script, timers_too=True)


# Hostile params


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def filled_in(value: str) -> str:
    """Return an answer, with some JSON for its value."""
    return f'{{"name":{{"action":"accept","content":{{"value":{value}}}}}}}'


HOSTILE: dict[str, Callable[[], str]] = {
    "a large answer": lambda: filled_in(json.dumps("x" * (4 * MIB))),
    "10 000 answers": lambda: json.dumps({f"k{n}": accepted(value="x") for n in range(10_000)}),
    "one key 10 000 times": lambda: "{" + ",".join(['"name":{"action":"x"}'] * 10_000) + "}",
    "deep answers": lambda: f'{{"name":{deep(900)}}}',
    "deeper answers": lambda: f'{{"name":{deep(200_000)}}}',
    "deep content": lambda: filled_in(deep(900)),
    "a list": lambda: "[]",
    "a number": lambda: "1e999",
    "a lone surrogate": lambda: filled_in('"\\ud800"'),
    "a key of a megabyte": lambda: json.dumps({"k" * MIB: {}}),
}


@pytest.mark.usefixtures("census")
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_answers_are_answered_and_nothing_of_them_is_kept(what: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            state = (await attempt(wire, 1, {"name": "hello"}))["result"]["requestState"]
            params = json.dumps({"name": "hello", "_meta": meta(), "requestState": state})
            params = f'{params[:-1]},"inputResponses":{HOSTILE[what]()}}}'
            head = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":'
            wire.near.send((head + params + "}").encode())
            # What cannot be read has no id.
            await until_async(lambda: any(each.get("id") in (2, None) for each in wire.got))
            assert server.app._core.runtime.in_flight == 0
            await server.still_serves(wire)
            wire.got.clear()
            assert alive(Context, HandlerRun, RoundTrip) == []

    run(script, timers_too=True)


STATES: dict[str, Any] = {
    "huge": "A" * (8 * MIB),
    "as long as it may be": "A" * (64 * 1024),
    "empty": "",
    "no Base64": "?" * 100,
    "not ASCII": "\u00e9\u4e2d" * 100,
    "a surrogate": "\ud800",
    "a number": 7,
    "null": None,
    "a list": ["A"] * 1000,
    "an object": {"state": "A"},
    "a head alone": "AgAAAAA",
    "a signed one": "AQ" + "A" * 200,
    "zeros": "\0" * 1000,
}


@pytest.mark.parametrize("what", STATES)
def test_a_state_that_is_none_of_ours_is_refused_and_runs_nothing(what: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            params = {"name": "counts", "requestState": STATES[what], "_meta": meta()}
            wire.ask(1, "tools/call", params)
            (reply,) = await wire.until(1)
            is_json = what != "a surrogate"
            assert reply["error"]["code"] == (-32602 if is_json else -32700)
            assert len(json.dumps(reply)) < 1000
            assert server.done == 0
            await server.still_serves(wire)

    run(script, timers_too=True)


@pytest.mark.parametrize("what", ["huge", "a number", "no Base64"])
@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
def test_so_it_is_for_prompts_and_resources(method: str, what: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        runs: list[str] = []

        @server.app.prompt
        async def greeting(ctx: Context) -> str:
            runs.append("prompt")
            return str((await ctx.elicit("Name?", str)).content)

        @server.app.resource("greeting://{who}")
        async def resource(ctx: Context, who: str) -> str:
            runs.append("resource")
            return str((await ctx.elicit("Name?", str)).content)

        async with connected(server.app, PER_REQUEST) as wire:
            named = {"name": "greeting"} if method == "prompts/get" else {"uri": "greeting://x"}
            first = await attempt(wire, "first", named, method=method)
            assert first["result"]["resultType"] == "input_required"
            runs.clear()
            reply = await attempt(wire, 1, named, method=method, state=STATES[what])
            assert reply["error"]["code"] == -32602
            reply = await attempt(wire, 2, named, method=method, responses=[1])
            assert reply["error"]["code"] == -32602
            assert runs == []
            await server.still_serves(wire)

    run(script, timers_too=True)


def test_a_flood_of_states_that_are_none_of_ours_grows_no_process() -> None:
    with piped() as server:
        assert server.serves()
        before = server.resident()
        for n in range(16):
            reply = _round_call(server, n, requestState="A" * (2 * MIB))
            assert reply["error"]["code"] == -32602
        assert server.serves()
        assert server.resident() < before + 24 * MIB


@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
def test_input_responses_and_state_of_waiting_calls_count_as_held_bytes(member: str) -> None:
    async def script() -> None:
        server = ElicitingServer(in_flight=1, connection_bytes=MIB)
        async with connected(server.app, PER_REQUEST) as wire:
            wire.ask("first", "tools/call", {"name": "never_ends", "_meta": meta()})
            await asyncio.wait_for(server.begun.wait(), 5)
            large = "A" * (MIB // 2)
            brought = {"k": accepted(value=large)} if member == "inputResponses" else large
            for n in range(8):
                wire.ask(n, "tools/call", {"name": "hello", "_meta": meta(), member: brought})
            # There is room for one of them, or for two, and not for eight.
            await asyncio.sleep(0.05)
            refused = [each for each in wire.got if "error" in each]
            cancel(wire, "first")
            assert len(refused) >= 6

    run(script, timers_too=True)


# Handlers that ask too much, or do not stop


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_a_handler_that_asks_a_thousand_questions_at_once_gets_an_end(revision: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        at_once = most = 0

        async def on_elicit(_: Any) -> dict[str, Any]:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return {"value": "Ada"}

        async with Client(server.app, revision=revision, on_elicit=on_elicit) as client:
            # Too many for one client, or for what it may carry.
            if revision == HANDSHAKE:
                assert (await client.call_tool("many", {"number": 1000})).is_error
            else:
                with pytest.raises(PeerError):
                    await client.call_tool("many", {"number": 1000})
            assert (await client.call_tool("many", {"number": 90})).text == "90"
            assert most <= 100
            assert server.app._core.runtime.in_flight == 0

    run(script, timers_too=True)


def test_a_thousand_questions_can_be_answered_by_a_client_that_has_so_many_users() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, HANDSHAKE, ABLE) as wire:
            wire.call(1, "many", number=1000)
            asked = list(await wire.until(1000))
            for each in reversed(asked):
                wire.send(answer(each["id"]))
            assert texts_of(await wire.answer(1)) == "1000"
            assert len(wire.got) == 1001
            # And by one that leaves in the middle.
            wire.got.clear()
            wire.call(2, "many", number=1000)
            for each in list(await wire.until(1000))[:500]:
                wire.send(answer(each["id"]))
        assert server.app._core.runtime.in_flight == 0

    run(script, timers_too=True)


def test_more_questions_than_a_state_can_carry_are_refused_with_the_reason_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            params = {"name": "many", "arguments": {"number": 1000}}
            reply = await attempt(wire, 1, params)
            assert "error" in reply
            await server.still_serves(wire)

    run(script, timers_too=True)
    assert "characters; the limit is" in caplog.text


@pytest.mark.usefixtures("census")
def test_a_handler_that_does_not_end_with_its_round_is_stopped_and_its_questions_go_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "trunkline.server.client_requests.multi_round_trip._SUSPEND_TIMEOUT_S", 0.05
    )

    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            for n in range(3):
                reply = await attempt(wire, n, {"name": "never_ends"})
                assert reply["result"]["resultType"] == "input_required"
            assert server.ended == ["at last"] * 3
            assert server.app._core.runtime.in_flight == 0
            wire.got.clear()
            assert alive(Context, HandlerRun, RoundTrip) == []

    run(script, timers_too=True)


@pytest.mark.parametrize("how", ["cancel", "leave", "stop", "stop at once"])
def test_a_handler_that_does_not_end_with_its_round_is_stopped_like_any_other(how: str) -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            wire.ask(1, "tools/call", {"name": "never_ends", "_meta": meta()})
            await asyncio.wait_for(server.begun.wait(), 5)
            if how == "cancel":
                cancel(wire, 1)
                await until_async(lambda: server.app._core.runtime.in_flight == 0)
                await server.still_serves(wire)
                assert 1 not in replies(wire)
            elif how.startswith("stop"):
                server.app.stop(at_once="once" in how)
                reply = await wire.answer(1)
                # What it asked, or that there is no time for it: one of them, and once.
                assert ("error" in reply) != ("result" in reply)
                assert replies(wire) == [1]
        assert server.ended == ["at last"]
        assert server.app._core.runtime.in_flight == 0

    run(script, timers_too=True)


def test_a_handler_that_does_not_end_with_its_round_runs_out_of_its_time() -> None:
    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            reply = await attempt(wire, 1, {"name": "runs_out"})
            assert "exceeded its timeout" in texts_of(reply)

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("fault", ["undeclared", "misfit"])
def test_client_fault_inside_a_task_group_is_reported_as_client_fault(
    fault: str, revision: str
) -> None:
    async def script() -> None:
        server = ElicitingServer()

        @server.app.tool
        async def grouped(ctx: Context) -> str:
            async with asyncio.TaskGroup() as group:
                asked = group.create_task(asks(ctx))
            return asked.result()

        async def asks(ctx: Context) -> str:
            return str((await ctx.elicit("Name?", str, key="name")).content)

        able = {} if fault == "undeclared" else ABLE
        async with connected(server.app, revision, able) as wire:
            params = {"name": "grouped", "arguments": {}}
            if revision == PER_REQUEST:
                reply = await attempt(wire, 1, params, capabilities=able)
                if fault == "misfit":
                    state, bad = reply["result"]["requestState"], {"name": accepted(value=7)}
                    reply = await attempt(wire, 2, params, state=state, responses=bad)
            else:
                wire.ask(1, "tools/call", params)
                if fault == "misfit":
                    (question,) = await wire.until(1)
                    bad = {"result": accepted(value=7)}
                    wire.send({"jsonrpc": "2.0", "id": question["id"], **bad})
                reply = await wire.answer(1)
            # As it is where the handler asks by itself.
            if fault == "undeclared" and revision == HANDSHAKE:
                assert texts_of(reply) == (
                    "'grouped' needs elicitation, which the client does not support"
                )
            else:
                assert "error" in reply, reply

    run(script, timers_too=True)


@pytest.mark.usefixtures("census")
def test_nothing_is_kept_of_calls_that_are_cancelled_as_their_round_ends() -> None:
    def insists() -> bool:
        return any("ServerRequest.stop" in repr(each) for each in timers())

    async def script() -> None:
        server = ElicitingServer()
        async with connected(server.app, PER_REQUEST) as wire:
            for n in range(20):
                wire.ask(n, "tools/call", {"name": "hello", "_meta": meta()})
                # Its question is put, and not yet sent.
                await soon(insists)
                cancel(wire, n)
                await soon(lambda: server.app._core.runtime.in_flight == 0)
                assert not insists()
            assert replies(wire) == []
            for _ in range(3):  # the last of them is still being let go of
                await asyncio.sleep(0)
            assert alive(Context, HandlerRun, RoundTrip) == []

    run(script, timers_too=True)


# In whatever order

ANSWERS: dict[str, Any] = {
    "elicitation/create": accepted(value="v"),
    "roots/list": {"roots": []},
    "sampling/createMessage": {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "x"},
    },
}


class Erratic:
    """A client that calls, cancels, answers, answers wrongly or twice, or does not, by chance."""

    def __init__(self, wire: ServerConnection, chance: random.Random, revision: str) -> None:
        self.wire = wire
        self._chance = chance
        self._is_new = revision == PER_REQUEST
        self._sent: dict[int, dict[str, Any]] = {}
        self._seen = 0

    def send(self, params: dict[str, Any]) -> None:
        id = len(self._sent)
        self._sent[id] = params
        self.wire.ask(id, "tools/call", params)

    def act(self) -> None:
        what = self._chance.random()
        if what < 0.4:
            name = self._chance.choice(["mixed", "threaded", "hello", "counts", "impatient"])
            self.send({"name": name, **({"_meta": meta()} if self._is_new else {})})
        elif what < 0.55 and self._sent:
            cancel(self.wire, self._chance.choice(list(self._sent)))
        for message in self.wire.got[self._seen :]:
            self._answer(message)
        self._seen = len(self.wire.got)

    def _given(self, method: str) -> Any:
        wrong = [{}, {"action": "maybe"}, 5, {"action": "decline"}]
        return self._chance.choice(wrong) if self._chance.random() < 0.1 else ANSWERS[method]

    def _answer(self, message: dict[str, Any]) -> None:
        result = message.get("result", {})
        if message.get("method") in ANSWERS:
            for _ in range(self._chance.choice([0, 1, 1, 1, 2])):
                given = self._given(message["method"])
                self.wire.send({"jsonrpc": "2.0", "id": message["id"], "result": given})
        elif result.get("resultType") == "input_required" and self._chance.random() < 0.9:
            asked = result["inputRequests"].items()
            given = {key: self._given(each["method"]) for key, each in asked}
            carried = {"inputResponses": given, "requestState": result["requestState"]}
            self.send({**self._sent[message["id"]], **carried})


@pytest.mark.parametrize("seed", range(12))
def test_in_whatever_order_a_client_calls_cancels_and_answers_nothing_is_left(seed: int) -> None:
    chance = random.Random(seed)
    revision = (HANDSHAKE, PER_REQUEST)[seed % 2]
    how = ("leave", "stop", "stop at once")[seed % 3]

    async def script() -> None:
        server = ElicitingServer(ask_timeout=chance.choice([0.05, 5.0]))

        @server.app.tool
        async def mixed(ctx: Context) -> str:
            async def branch(name: str) -> Any:
                await ctx.once(name, lambda: asyncio.sleep(0, name))
                return await ctx.elicit(name, str, key=f"ask {name}")

            asked = (branch("a"), branch("b"), ctx.roots(), ctx.sample("Hi", max_tokens=3))
            return str(len(await asyncio.gather(*asked)))

        @server.app.tool
        def threaded(ctx: Context) -> str:
            ctx.once("a", int).wait()
            ctx.elicit("b", str).wait()
            return str(ctx.elicit("c", str).wait().content)

        async with connected(server.app, revision, EVERYTHING) as wire:
            client = Erratic(wire, chance, revision)
            for _ in range(60):
                client.act()
                await asyncio.sleep(chance.choice([0, 0, 0, 0.001]))
            if how != "leave":
                server.app.stop(at_once=how != "stop")
                await until_async(lambda: wire.ended)
        # No thread asks on when the loop is gone.
        threads = server.app._core.runtime.threads
        await until_async(lambda: not threads.busy and not threads.waiting)
        answered = replies(wire)
        assert len(answered) == len(set(map(str, answered)))
        assert server.app._core.runtime.in_flight == 0
        assert not server.app._core.runtime.connections

    run(script, timers_too=True)


# Secrets

CANARY = "canary5b81d0e4"


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
def test_no_canary_of_questions_answers_and_keys_is_seen(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[object] = []

    async def script() -> None:
        key = f"{CANARY}-key-of-the-state".encode()
        app = Server("secrets", state_keys=[key])
        changing = iter(range(100))

        def ticket() -> dict[str, str]:
            return {"ticket": f"{CANARY}-once"}

        @app.tool
        async def careful(ctx: Context) -> str:
            kept = await ctx.once("ticket", ticket, secret=True)
            answer = await ctx.elicit("Password?", str, key="password")
            shown.extend(
                [
                    ctx,
                    ctx._request.run,
                    app,
                    app._core.services.rounds,
                    app._core.services.rounds.seal,
                ]
            )
            assert kept["ticket"].endswith("once")
            assert answer.content is not None
            return str(len(answer.content))

        @app.tool
        async def fails(ctx: Context) -> str:
            await ctx.once("ticket", ticket, secret=True)
            await ctx.elicit("Password?", str, key="password")
            raise RuntimeError("after the answer")

        @app.tool
        async def wants_a_number(ctx: Context) -> str:
            await ctx.elicit("Number?", int, key="number")
            return "a number"

        @app.tool
        async def changes_its_mind(ctx: Context) -> str:
            await ctx.elicit(f"Password {next(changing)}?", str, key="password")
            return "not reached"

        @app.tool
        async def wrong_type(ctx: Context) -> str:
            await ctx.once("ticket", ticket, type=int, secret=True)
            return "not reached"

        async def on_elicit(params: Any) -> Any:
            if "Number" in params.message:
                # Past our own check of the form, as another client could.
                return {"value": 7}
            return {"value": f"{CANARY}-answer"}

        async with Client(app, revision=revision, on_elicit=on_elicit) as client:
            for tool in ("careful", "fails", "wants_a_number", "changes_its_mind", "wrong_type"):
                call = client.submit_tool(tool)
                shown.append(call)
                try:
                    shown.append((await call).text)
                except TrunklineError as error:
                    shown.append(error)
                shown.append(call)
            shown.append(client)
        async with connected(app, revision, ABLE) as wire:
            await _answered_with_a_canary(wire, revision)
            shown.extend(each for each in wire.got if "error" in each or "result" in each)

    run(script, timers_too=True)
    assert caplog.records
    for record in caplog.records:
        assert CANARY not in caplog.handler.format(record), record.getMessage()
    for each in shown:
        assert CANARY not in repr(each)
        assert CANARY not in str(each)


async def _answered_with_a_canary(wire: ServerConnection, revision: str) -> None:
    """Answer what asks for a number with something else, and with a state of one's own."""
    bad = accepted(value=f"{CANARY}-misfit")
    if revision == HANDSHAKE:
        wire.call(1, "wants_a_number")
        (asked,) = await wire.until(1)
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": bad})
        assert "error" in await wire.answer(1)
        return
    params = {"name": "wants_a_number"}
    state = (await attempt(wire, 1, params))["result"]["requestState"]
    assert CANARY not in state
    given = {"number": bad, f"token={CANARY}": bad}
    assert "error" in await attempt(wire, 2, params, state=state, responses=given)
    wrong = f"{CANARY}-state"
    assert "error" in await attempt(wire, 4, params, state=wrong, responses=given)


# Our client, and servers that ask as they like


def asking(*questions: tuple[str, Any], state: Any = "s") -> dict[str, Any]:
    requests = {
        key: {"method": "elicitation/create", "params": params} for key, params in questions
    }
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


FORM = {
    "mode": "form",
    "message": "Name?",
    "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
}
DONE = text("done", resultType="complete")


def test_client_stops_after_too_many_rounds_of_one_call() -> None:
    async def script() -> None:
        place = Place({"tools/call": asking(("a", FORM))})
        async with Client(place, on_elicit=lambda _: {"value": "x"}) as client:
            with pytest.raises(TooManyRoundTrips) as raised:
                await client.call_tool("t")
            assert raised.value.method == "tools/call"
            assert place.line.methods().count("tools/call") == 17
            # One that asks for nothing and names a state is left as well.
            place.answers["tools/call"] = {"resultType": "input_required", "requestState": "s"}
        async with Client(place, max_rounds=3) as client:
            with pytest.raises(TooManyRoundTrips):
                await client.call_tool("t")

    run(script, timers_too=True)


def test_a_large_state_goes_back_as_it_came_and_is_not_kept() -> None:
    async def script() -> None:
        state = "\u00e9" + "x" * (10 * MIB)
        sent: list[str] = []

        def serve(message: Any) -> Any:
            params = message["params"]
            if "requestState" not in params:
                return asking(("a", FORM), state=state)
            sent.append(params["requestState"])
            return DONE

        place = Place({"tools/call": serve})
        async with Client(place, on_elicit=lambda _: {"value": "x"}) as client:
            tracemalloc.start()
            try:
                assert (await client.call_tool("t")).text == "done"
                assert sent == [state]
                assert tracemalloc.get_traced_memory()[0] > 10 * MIB  # by this test
                for held in (sent, place.line.sent, place.line.frames):
                    held.clear()
                gc.collect()
                assert tracemalloc.get_traced_memory()[0] < MIB
            finally:
                tracemalloc.stop()

    run(script, timers_too=True)


def test_ten_thousand_questions_are_answered_a_few_at_a_time() -> None:
    async def script() -> None:
        at_once = most = count = 0

        async def on_elicit(_: Any) -> dict[str, Any]:
            nonlocal at_once, most, count
            count, at_once = count + 1, at_once + 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return {"value": "x"}

        def serve(message: Any) -> Any:
            given = message["params"].get("inputResponses")
            if given is None:
                return asking(*((f"k{n}", FORM) for n in range(10_000)))
            return text(str(len(given)), resultType="complete")

        async with Client(Place({"tools/call": serve}), on_elicit=on_elicit) as client:
            assert (await client.call_tool("t")).text == "10000"
            assert (count, most) == (10_000, 16)

    run(script, timers_too=True)


def test_call_with_ten_thousand_input_requests_can_be_cancelled() -> None:
    async def script() -> None:
        count = 0
        asked = asyncio.Event()

        async def on_elicit(_: Any) -> None:
            nonlocal count
            count += 1
            asked.set()
            await asyncio.Event().wait()

        place = Place({"tools/call": asking(*((f"k{n}", FORM) for n in range(10_000)))})
        async with Client(place, on_elicit=on_elicit) as client:
            call = asyncio.create_task(client.call_tool("t"))
            await asked.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert count <= 16
            # Nothing more is sent about it: between rounds no request is open.
            assert place.line.methods().count("tools/call") == 1

    run(script, timers_too=True)


BAD_RESULTS: dict[str, Any] = {
    "an unknown kind": {"a": {"method": "elicitation/destroy", "params": {}}},
    "a kind of another direction": {"a": {"method": "tools/call", "params": {"name": "x"}}},
    "a ping": {"a": {"method": "ping"}},
    "one unknown among known ones": {
        "a": {"method": "elicitation/create", "params": FORM},
        "b": {"method": "nonsense"},
    },
    "undeclared": {"a": {"method": "roots/list"}},
    "no params": {"a": {"method": "elicitation/create"}},
    "params of no kind": {"a": {"method": "elicitation/create", "params": [1]}},
    "a number": {"a": 7},
    "a list": [],
    "a text": "a",
}


@pytest.mark.parametrize("what", BAD_RESULTS)
def test_malformed_input_requests_call_no_handler_and_raise(what: str) -> None:
    async def script() -> None:
        bothered: list[Any] = []
        answers = {
            "resultType": "input_required",
            "inputRequests": BAD_RESULTS[what],
            "requestState": "s",
        }
        if what == "a list":
            del answers["requestState"]
        place = Place({"tools/call": answers})
        async with Client(place, on_elicit=bothered.append) as client:
            with pytest.raises(RemoteProtocolError):
                await client.call_tool("t")
            assert bothered == []
            assert place.line.methods().count("tools/call") == 1
            assert client.is_connected

    run(script, timers_too=True)


@pytest.mark.parametrize("state", [7, {}, [], True, "x" * MIB])
def test_a_state_of_another_kind_is_refused_and_not_sent(state: Any) -> None:
    async def script() -> None:
        place = Place({"tools/call": asking(("a", FORM), state=state)})
        async with Client(place, on_elicit=lambda _: {"value": "x"}, max_rounds=2) as client:
            with pytest.raises((RemoteProtocolError, TooManyRoundTrips)) as raised:
                await client.call_tool("t")
            is_text = isinstance(state, str)
            assert isinstance(raised.value, TooManyRoundTrips) == is_text
            assert len(str(raised.value)) < 1000

    run(script, timers_too=True)


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete"])
def test_input_required_for_a_method_without_rounds_raises(method: str) -> None:
    async def script() -> None:
        bothered: list[Any] = []
        place = Place({method: asking(("a", FORM))})
        client = Client(place, on_elicit=bothered.append)
        calls: dict[str, Callable[[], Any]] = {
            "tools/list": client.list_tools,
            "server/discover": client.connect,
            "completion/complete": lambda: client.request(
                method,
                {
                    "ref": {"type": "ref/prompt", "name": "p"},
                    "argument": {"name": "a", "value": ""},
                },
            ),
        }
        try:
            if method != "server/discover":
                await client.connect()
            with pytest.raises(TrunklineError):
                await calls[method]()
        finally:
            await client.close()
        assert bothered == []

    run(script, timers_too=True)


def test_deep_forms_and_deep_params_of_a_server_end_one_call_and_no_more() -> None:
    async def script() -> None:
        nested: Any = {"type": "string"}
        for _ in range(300):
            nested = {"type": "object", "properties": {"value": nested}}
        form = {**FORM, "requestedSchema": nested}
        place = Place({"tools/call": asking(("a", form))})
        async with Client(place, on_elicit=lambda _: {"value": "x"}, max_rounds=2) as client:
            with pytest.raises(TrunklineError):
                await client.call_tool("t")
            place.answers["tools/call"] = DONE
            assert (await client.call_tool("t")).text == "done"

    run(script, timers_too=True)


def elicitation(id: Any) -> dict[str, Any]:
    params = {key: value for key, value in FORM.items() if key != "mode"}
    return {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}


def test_a_server_that_floods_a_session_with_questions_bothers_few_and_is_answered_all() -> None:
    async def script() -> None:
        at_once = most = 0
        go = asyncio.Event()

        async def on_elicit(_: Any) -> dict[str, Any]:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await go.wait()
            at_once -= 1
            return {"value": "x"}

        place = Place({"tools/call": text("on")}, revision=HANDSHAKE)
        async with Client(place, revision=HANDSHAKE, on_elicit=on_elicit) as client:
            for n in range(5000):
                place.line.say(elicitation(f"q{n}"))
            assert (await client.call_tool("t")).text == "on"
            go.set()
            await place.line.until_reply("q0")
            answered = [each for each in place.line.sent if "method" not in each]
            assert len({each["id"] for each in answered}) == len(answered) == 5000
            assert most == 100
            assert sum("result" in each for each in answered) == 100

    run(script, timers_too=True)


def test_a_server_that_withdraws_its_questions_has_them_stopped_and_not_answered() -> None:
    async def script() -> None:
        stopped = 0
        asked = 0

        async def on_elicit(_: Any) -> None:
            nonlocal asked, stopped
            asked += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stopped += 1
                raise

        place = Place({"tools/call": text("on")}, revision=HANDSHAKE)
        async with Client(place, revision=HANDSHAKE, on_elicit=on_elicit) as client:
            line = place.line
            for n in range(50):
                line.say(elicitation(n))
                line.say(elicitation(n))  # an id that is open
            await until_async(lambda: asked == 50)
            method = "notifications/cancelled"
            for n in (*range(50), *range(50), "0", None, -1, [1]):
                line.say({"jsonrpc": "2.0", "method": method, "params": {"requestId": n}})
            await until_async(lambda: stopped == 50)
            assert (await client.call_tool("t")).text == "on"
            assert not [each for each in line.sent if "result" in each]

    run(script, timers_too=True)


def test_a_result_after_the_caller_has_left_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async def script() -> None:
        place = Place({"tools/call": SILENT})
        bothered: list[Any] = []
        async with Client(place, on_elicit=bothered.append) as client:
            call = asyncio.create_task(client.call_tool("t"))
            id = (await place.line.until("tools/call"))["id"]
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            for _ in range(3):
                place.line.say({"jsonrpc": "2.0", "id": id, "result": asking(("a", FORM))})
            await asyncio.sleep(0.01)
            assert bothered == []
            assert place.line.methods().count("tools/call") == 1

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("handler", ["async", "thread"])
def test_a_server_that_dies_while_the_user_thinks_ends_the_call(
    handler: str, revision: str
) -> None:
    release = threading.Event()

    async def script() -> None:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        ended: list[str] = []

        async def thinks(_: Any) -> None:
            asked.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        def thinks_on_a_thread(_: Any) -> None:
            loop.call_soon_threadsafe(asked.set)
            release.wait(20)

        on_elicit: Any = thinks if handler == "async" else thinks_on_a_thread
        before = children()
        async with Client(address("server.py"), revision=revision, on_elicit=on_elicit) as client:
            (pid,) = children() - before
            call = asyncio.create_task(client.call_tool("asks_the_user"))
            await asyncio.wait_for(asked.wait(), 10)
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ConnectionLost) as raised:
                await call
            assert raised.value.exit_status == -signal.SIGKILL
            assert raised.value.method == "tools/call"
        if handler == "async":
            assert ended == ["cancelled"]
        release.set()

    run(script, timers_too=True)


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("handler", ["swallows", "thread"])
def test_a_client_closes_though_the_handler_of_a_question_hangs(
    handler: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.client.session.diagnostics.CANCEL_TIMEOUT_S", 0.1)
    release = threading.Event()

    async def script() -> None:
        server = ElicitingServer()
        asked, go = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        async def swallows(_: Any) -> None:
            asked.set()
            while not go.is_set():
                try:
                    await go.wait()
                except asyncio.CancelledError:
                    pass  # this is the fault

        def on_a_thread(_: Any) -> None:
            loop.call_soon_threadsafe(asked.set)
            release.wait(20)

        on_elicit: Any = swallows if handler == "swallows" else on_a_thread
        client = Client(server.app, revision=revision, on_elicit=on_elicit)
        await client.connect()
        call = asyncio.create_task(client.call_tool("hello"))
        await asyncio.wait_for(asked.wait(), 5)
        async with asyncio.timeout(5):
            await client.close()
        with pytest.raises(RequestAborted):
            await call
        assert not client.is_connected
        await until_async(lambda: server.app._core.runtime.in_flight == 0)
        go.set()
        release.set()

    run(script, timers_too=True)


def test_elicitation_handler_exception_is_the_cause_of_input_request_failed() -> None:
    async def script() -> None:
        server = ElicitingServer()

        async def on_elicit(_: Any) -> Any:
            raise RuntimeError("the user has left the building")

        async with Client(server.app, on_elicit=on_elicit) as client:
            with pytest.raises(InputRequestFailed) as raised:
                await client.call_tool("hello")
            assert "building" not in str(raised.value)
            assert isinstance(raised.value.__cause__, RuntimeError)
            assert server.ended == ["SuspendHandler"]

    run(script, timers_too=True)


def test_a_process_that_asks_ends_with_its_client(tmp_path: Path) -> None:
    async def script() -> None:
        asked = asyncio.Event()

        async def on_elicit(_: Any) -> None:
            asked.set()
            await asyncio.Event().wait()

        for revision in (HANDSHAKE, PER_REQUEST):
            asked.clear()
            client = Client(address("server.py"), revision=revision, on_elicit=on_elicit)
            await client.connect()
            call = asyncio.create_task(client.call_tool("asks_the_user"))
            await asyncio.wait_for(asked.wait(), 10)
            await client.close()
            with pytest.raises(ConnectionLost):
                await call

    run(script, timers_too=True)
