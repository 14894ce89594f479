"""Rounds: what goes out when a handler asks in 2026-07-28, and what may come back."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import ServerConnection, connected
from tests.unit.server.rounds_wire import EVERYTHING, accepted, attempt, meta
from trunkline import Client, Context, Server, ToolError
from trunkline.auth import Fixed, Principal
from trunkline.errors import RequestAborted, RequestError
from trunkline.jsonrpc import Policy
from trunkline.server import ServerLimits
from trunkline.server.client_requests.multi_round_trip import RoundTrips
from trunkline.server.client_requests.request_state import StateSealer

KEY = b"k" * 32


class Person(Struct):
    name: str
    age: int = 30


def run(work: Callable[[ServerConnection], Coroutine[Any, Any, None]], app: Server) -> None:
    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            await work(wire)

    asyncio.run(main())


def greeter(**settings: Any) -> Server:
    app = Server("tests", state_keys=[KEY], **settings)
    app.runs = 0  # type: ignore[attr-defined]  # for the tests alone

    @app.tool
    async def greet(context: Context, greeting: str = "Hello") -> str:
        app.runs += 1  # type: ignore[attr-defined]  # as above
        answer = await context.elicit("Who are you?", Person, key="who")
        return f"{greeting} {answer.content.name}" if answer.content else answer.action

    @app.tool
    async def two_rounds(context: Context) -> str:
        first = await context.elicit("First?", str)
        second = await context.elicit(f"Second after {first.content}?", str)
        return f"{first.content} {second.content}"

    @app.tool
    async def together(context: Context) -> str:
        person, reply, roots = await asyncio.gather(
            context.elicit("Name?", str, key="name"),
            context.sample("Capital?", max_tokens=10, key="capital"),
            context.roots(key="roots"),
        )
        return f"{person.content} {reply.content.text} {len(roots)}"  # type: ignore[union-attr]  # a text

    return app


CALL = {"name": "greet", "arguments": {}}


def test_a_question_goes_out_inside_the_result_and_the_answer_finishes_the_call() -> None:
    app = greeter()

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"] == {
            "who": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "Who are you?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "age": {"type": "integer", "default": 30},
                        },
                        "required": ["name"],
                    },
                },
            }
        }
        assert first["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "tests"
        assert "content" not in first
        assert "ttlMs" not in first
        second = await attempt(
            wire, 2, CALL, state=first["requestState"], responses={"who": accepted(name="Ada")}
        )
        assert second["result"]["resultType"] == "complete"
        assert second["result"]["content"][0]["text"] == "Hello Ada"
        assert app.runs == 2  # type: ignore[attr-defined]  # see above

    run(work, app)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_declined_or_cancelled_elicitation_is_returned_to_the_handler(action: str) -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        second = await attempt(
            wire, 2, CALL, state=first["requestState"], responses={"who": {"action": action}}
        )
        assert second["result"]["content"][0]["text"] == action

    run(work, greeter())


def test_concurrent_client_requests_are_sent_in_one_result() -> None:
    async def work(wire: ServerConnection) -> None:
        call = {"name": "together"}
        first = (await attempt(wire, 1, call))["result"]
        assert {key: each["method"] for key, each in first["inputRequests"].items()} == {
            "name": "elicitation/create",
            "capital": "sampling/createMessage",
            "roots": "roots/list",
        }
        assert first["inputRequests"]["roots"] == {"method": "roots/list"}
        responses = {
            "name": accepted(value="Ada"),
            "capital": {
                "role": "assistant",
                "content": {"type": "text", "text": "Oslo"},
                "model": "m",
            },
            "roots": {"roots": [{"uri": "file:///a"}]},
        }
        second = await attempt(wire, 2, call, state=first["requestState"], responses=responses)
        assert second["result"]["content"][0]["text"] == "Ada Oslo 1"

    run(work, greeter())


def test_each_round_has_a_state_of_its_own_that_carries_what_came_before() -> None:
    async def work(wire: ServerConnection) -> None:
        call = {"name": "two_rounds"}
        first = (await attempt(wire, 1, call))["result"]
        assert list(first["inputRequests"]) == ["elicitation-1"]
        second = (
            await attempt(
                wire,
                2,
                call,
                state=first["requestState"],
                responses={"elicitation-1": accepted(value="a")},
            )
        )["result"]
        assert list(second["inputRequests"]) == ["elicitation-2"]
        assert second["requestState"] != first["requestState"]
        third = await attempt(
            wire,
            3,
            call,
            state=second["requestState"],
            responses={"elicitation-2": accepted(value="b")},
        )
        assert third["result"]["content"][0]["text"] == "a b"

    run(work, greeter())


def test_answers_under_other_keys_are_ignored_and_the_question_is_asked_again() -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        again = await attempt(
            wire, 2, CALL, state=first["requestState"], responses={"other": accepted(name="x")}
        )
        assert list(again["result"]["inputRequests"]) == ["who"]
        last = await attempt(
            wire,
            3,
            CALL,
            state=again["result"]["requestState"],
            responses={"other": 7, "who": accepted(name="Ada")},
        )
        assert last["result"]["content"][0]["text"] == "Hello Ada"

    run(work, greeter())


def test_answers_without_a_state_answer_questions_whose_key_the_handler_gives() -> None:
    async def work(wire: ServerConnection) -> None:
        given = {"who": accepted(name="Ada"), "other": 7}
        reply = await attempt(wire, 1, CALL, responses=given)
        assert reply["result"]["content"][0]["text"] == "Hello Ada"
        assert app.runs == 1  # type: ignore[attr-defined]  # as above

    app = greeter()
    run(work, app)


def test_answers_without_a_state_do_not_answer_questions_that_are_numbered() -> None:
    async def work(wire: ServerConnection) -> None:
        call = {"name": "two_rounds", "arguments": {}}
        given = {"elicitation-1": accepted(value="one"), "elicitation-2": accepted(value="two")}
        reply = await attempt(wire, 1, call, responses=given)
        assert list(reply["result"]["inputRequests"]) == ["elicitation-1"]

    run(work, greeter())


def test_an_answer_without_a_state_that_is_malformed_is_rejected() -> None:
    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, CALL, responses={"who": 7})
        assert reply["error"]["code"] == -32602
        assert "'who' is not a result of elicitation/create" in reply["error"]["message"]

    run(work, greeter())


def test_an_answer_without_a_state_is_kept_for_the_next_round_trip() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def greet(context: Context) -> str:
        who = await context.elicit("Who are you?", Person, key="who")
        where = await context.elicit("Where are you?", str)
        return f"{who.content and who.content.name} in {where.content}"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, CALL, responses={"who": accepted(name="Ada")})
        assert list(reply["result"]["inputRequests"]) == ["elicitation-1"]
        state = reply["result"]["requestState"]
        given = {"elicitation-1": accepted(value="Oslo"), "who": accepted(name="Eve")}
        last = await attempt(wire, 2, CALL, state=state, responses=given)
        assert last["result"]["content"][0]["text"] == "Ada in Oslo"

    run(work, app)


@pytest.mark.parametrize(
    ("responses", "text"),
    [
        pytest.param({"who": 7}, "'who' is not a result of elicitation/create", id="a number"),
        pytest.param(
            {"who": {"action": "maybe"}},
            "'who' is not a result of elicitation/create",
            id="no action",
        ),
        pytest.param(
            {"who": {"content": {}}},
            "'who' is not a result of elicitation/create",
            id="without action",
        ),
        pytest.param(7, "they are not an object", id="no object"),
        pytest.param([], "they are not an object", id="a list"),
        pytest.param({"who": {"action": "accept", "content": {"age": 3}}}, "name", id="form"),
        pytest.param({"who": {"action": "accept"}}, "name", id="nothing filled in"),
    ],
)
def test_malformed_answers_are_refused_and_the_state_can_be_used_again(
    responses: Any, text: str
) -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        state = first["requestState"]
        refused = await attempt(wire, 2, CALL, state=state, responses=responses)
        assert refused["error"]["code"] == -32602
        assert text in refused["error"]["message"]
        last = await attempt(wire, 3, CALL, state=state, responses={"who": accepted(name="Ada")})
        assert last["result"]["content"][0]["text"] == "Hello Ada"

    run(work, greeter())


def test_null_for_answers_is_refused() -> None:
    async def work(wire: ServerConnection) -> None:
        params = {**CALL, "inputResponses": None}
        reply = await attempt(wire, 1, params)
        assert reply["error"]["code"] == -32602

    run(work, greeter())


def _changed(state: str) -> str:
    middle = len(state) // 2
    other = "A" if state[middle] != "A" else "B"
    return state[:middle] + other + state[middle + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda state: state + "-TAMPERED", id="longer"),
        pytest.param(lambda state: state[:-4], id="shorter"),
        pytest.param(_changed, id="changed"),
        pytest.param(lambda _: "", id="empty"),
        pytest.param(lambda _: "åäö", id="no base64"),
        pytest.param(lambda _: 7, id="a number"),
        pytest.param(lambda _: "x" * 200_000, id="endless"),
    ],
)
def test_a_state_that_was_tampered_with_is_refused_before_the_handler_runs(spoil: Any) -> None:
    app = greeter()

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        runs = app.runs  # type: ignore[attr-defined]  # see above
        reply = await attempt(
            wire,
            2,
            CALL,
            state=spoil(first["requestState"]),
            responses={"who": accepted(name="Ada")},
        )
        assert reply["error"]["code"] == -32602
        assert reply["error"]["message"].startswith("Invalid request state")
        assert app.runs == runs  # type: ignore[attr-defined]  # as above

    run(work, app)


def test_the_state_of_other_arguments_is_refused() -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        reply = await attempt(
            wire,
            2,
            {"name": "greet", "arguments": {"greeting": "Bye"}},
            state=first["requestState"],
            responses={"who": accepted(name="Ada")},
        )
        assert "belongs to another request" in reply["error"]["message"]

    run(work, greeter())


def test_the_state_of_another_tool_is_refused() -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        reply = await attempt(wire, 2, {"name": "two_rounds"}, state=first["requestState"])
        assert "belongs to another request" in reply["error"]["message"]

    run(work, greeter())


def test_the_order_of_arguments_and_other_meta_make_no_other_request() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def add(context: Context, a: int, b: int) -> str:
        answer = await context.elicit("Sure?", bool)
        return f"{a + b} {answer.content}"

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "add", "arguments": {"a": 1, "b": 2}}))["result"]
        last = await attempt(
            wire,
            2,
            {"name": "add", "arguments": {"b": 2, "a": 1}},
            state=first["requestState"],
            responses={"elicitation-1": accepted(value=True)},
            progressToken=7,
        )
        assert last["result"]["content"][0]["text"] == "3 True"

    run(work, app)


def test_a_state_that_is_too_old_is_refused() -> None:
    app = greeter()
    now = [1000.0]
    app._core.services.rounds = RoundTrips(StateSealer([KEY]), app._core.limits, now=lambda: now[0])

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        now[0] += app._core.limits.state_ttl + 2
        reply = await attempt(wire, 2, CALL, state=first["requestState"])
        assert "expired" in reply["error"]["message"]

    run(work, app)


@pytest.mark.parametrize("which", ["issuer", "subject", "client_id", "tenant"])
def test_the_state_of_another_principal_is_as_a_forged_one(which: str) -> None:
    app, ada = greeter(), Principal(subject="ada", tenant="acme")
    eve = replace(ada, **{which: "another"})

    async def main() -> None:
        async with connected(app, PER_REQUEST, auth=Fixed(ada)) as wire:
            state = (await attempt(wire, 1, CALL))["result"]["requestState"]
        given = {"responses": {"who": accepted(name="Ada")}}
        async with connected(app, PER_REQUEST, auth=Fixed(eve)) as wire:
            runs = app.runs  # type: ignore[attr-defined]  # see above
            stolen = await attempt(wire, 2, CALL, state=state, **given)
            forged = await attempt(wire, 3, CALL, state=_changed(state), **given)
            assert stolen["error"] == forged["error"]
            assert app.runs == runs  # type: ignore[attr-defined]  # as above
        # The same principal, on another connection and with another token.
        async with connected(app, PER_REQUEST, auth=Fixed(replace(ada, scopes={"x"}))) as wire:
            reply = await attempt(wire, 4, CALL, state=state, **given)
            assert reply["result"]["content"][0]["text"] == "Hello Ada"

    asyncio.run(main())


def test_a_handler_that_asks_something_else_under_a_key_is_refused(caplog: Any) -> None:
    app = Server("tests", state_keys=[KEY])
    times = iter(range(100))

    @app.tool
    async def clock(context: Context) -> str:
        answer = await context.elicit(f"It is {next(times)}. Sure?", bool, key="sure")
        return str(answer.content)

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "clock"}))["result"]
        reply = await attempt(
            wire,
            2,
            {"name": "clock"},
            state=first["requestState"],
            responses={"sure": accepted(value=True)},
        )
        assert reply["error"]["code"] == -32602
        assert "has changed since it was answered" in reply["error"]["message"]

    run(work, app)
    assert "the handler is replayed" in caplog.text


def test_a_handler_that_runs_again_is_logged_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def sure(context: Context) -> str:
        return str((await context.elicit("Sure?", bool, key="sure")).content)

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "sure"}))["result"]
        assert "runs again" not in caplog.text
        responses = {"sure": accepted(value=True)}
        state = first["requestState"]
        await attempt(wire, 2, {"name": "sure"}, state=state, responses=responses)

    with caplog.at_level(logging.DEBUG, "trunkline.server"):
        run(work, app)
    (line,) = [each.getMessage() for each in caplog.records if "runs again" in each.getMessage()]
    assert line.startswith("tools/call 'sure': the handler runs again from its start, with 1 ")


def test_more_rounds_than_allowed_are_refused_with_a_type() -> None:
    app = Server("tests", state_keys=[KEY], limits=ServerLimits(rounds=2))

    @app.tool
    async def endless(context: Context) -> str:
        while True:
            await context.elicit("More?", bool)

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 0, {"name": "endless"})
        for number in (1, 2):
            result = reply["result"]
            responses = {key: accepted(value=True) for key in result["inputRequests"]}
            reply = await attempt(
                wire,
                number,
                {"name": "endless"},
                state=result["requestState"],
                responses=responses,
            )
        assert reply["error"]["code"] == -32603
        assert "more than 2 round trips" in reply["error"]["message"]

    run(work, app)


def test_a_state_larger_than_allowed_is_refused_with_a_type(caplog: Any) -> None:
    app = Server("tests", state_keys=[KEY], limits=ServerLimits(state_size=1000))

    @app.tool
    async def heavy(context: Context) -> str:
        await context.once("load", lambda: "x" * 2000, type=str)
        await context.elicit("Sure?", bool)
        return "done"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "heavy"})
        assert reply["error"]["code"] == -32603
        assert "the limit is 1000" in reply["error"]["message"]

    run(work, app)
    assert "the limit is 1000" in caplog.text


def test_once_runs_once_per_state_and_returns_its_value_after_json() -> None:
    app = Server("tests", state_keys=[KEY])
    done: list[str] = []
    seen: list[Any] = []

    async def ticket() -> tuple[int, str]:
        done.append("ticket")
        return (7, "x")

    @app.tool
    async def book(context: Context) -> str:
        made = await context.once("ticket", ticket, type=list[Any])
        seen.append(made)
        answer = await context.elicit("Sure?", bool)
        return f"{made} {answer.content}"

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "book"}))["result"]
        last = await attempt(
            wire,
            2,
            {"name": "book"},
            state=first["requestState"],
            responses={"elicitation-1": accepted(value=True)},
        )
        assert last["result"]["content"][0]["text"] == "[7, 'x'] True"
        # A client that presents what it had before gets it done again: at least once.
        await attempt(wire, 3, {"name": "book"})

    run(work, app)
    assert seen == [[7, "x"]] * 3
    assert done == ["ticket", "ticket"]


def test_a_round_waits_for_what_once_has_begun() -> None:
    app = Server("tests", state_keys=[KEY])
    done: list[str] = []

    async def slow() -> str:
        await asyncio.sleep(0.05)
        done.append("slow")
        return "kept"

    @app.tool
    async def both(context: Context) -> str:
        kept, answer = await asyncio.gather(
            context.once("slow", slow, type=str), context.elicit("Sure?", bool)
        )
        return f"{kept} {answer.content}"

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "both"}))["result"]
        last = await attempt(
            wire,
            2,
            {"name": "both"},
            state=first["requestState"],
            responses={"elicitation-1": accepted(value=True)},
        )
        assert last["result"]["content"][0]["text"] == "kept True"

    run(work, app)
    assert done == ["slow"]


@pytest.mark.parametrize("swallow", ["gather", "bare", "taskgroup"])
def test_a_handler_that_swallows_its_end_is_still_answered_with_its_questions(
    swallow: str,
) -> None:
    app = Server("tests", state_keys=[KEY])
    after: list[str] = []

    @app.tool
    async def stubborn(context: Context) -> str:
        if swallow == "gather":
            await asyncio.gather(context.elicit("Sure?", bool), return_exceptions=True)
        elif swallow == "bare":
            try:
                await context.elicit("Sure?", bool)
            except BaseException:  # noqa: BLE001  # what this test is about
                after.append("caught")
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(_sure(context))
        return "never sent in the first round"

    async def _sure(context: Context) -> None:
        await context.elicit("Sure?", bool)

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "stubborn"})
        assert reply["result"]["resultType"] == "input_required"

    run(work, app)


def test_an_except_clause_for_errors_does_not_catch_the_end_of_a_round() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def careful(context: Context) -> str:
        try:
            answer = await context.elicit("Sure?", bool)
        except Exception:  # noqa: BLE001  # what this test is about
            return "caught"
        return str(answer.content)

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "careful"}))["result"]
        assert first["resultType"] == "input_required"

    run(work, app)


def test_reports_of_the_part_that_runs_again_are_not_sent_again() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def report(context: Context) -> str:
        context.log("info", "before")
        context.progress(1)
        await context.elicit("One?", bool)
        context.log("info", "between")
        context.progress(2)
        await context.elicit("Two?", bool)
        context.log("info", "after")
        context.progress(3)
        return "done"

    async def work(wire: ServerConnection) -> None:
        more = {"io.modelcontextprotocol/logLevel": "info", "progressToken": "p"}
        heard = []
        state, responses = None, None
        for number in (1, 2, 3):
            wire.got.clear()
            reply = await attempt(
                wire, number, {"name": "report"}, state=state, responses=responses, **more
            )
            heard.append(
                [
                    each["params"].get("data", each["params"].get("progress"))
                    for each in wire.got
                    if "method" in each
                ]
            )
            state = reply["result"].get("requestState")
            responses = {
                key: accepted(value=True) for key in reply["result"].get("inputRequests", {})
            }
        assert heard == [["before", 1], ["between", 2], ["after", 3]]

    run(work, app)


def test_nothing_can_be_asked_where_no_result_can_carry_it() -> None:
    app = Server("tests")

    @app.prompt
    def shout(text: str) -> str:
        return text

    @app.completion(prompt="shout", argument="text")
    async def suggest(value: str, context: Context) -> list[str]:
        await context.elicit("Which?", str)
        return []

    async def work(wire: ServerConnection) -> None:
        params = {
            "ref": {"type": "ref/prompt", "name": "shout"},
            "argument": {"name": "text", "value": "x"},
        }
        reply = await attempt(wire, 1, params, method="completion/complete")
        assert reply["error"]["code"] == -32603

    run(work, app)


def test_prompts_and_resources_can_elicit_and_their_results_are_not_cached() -> None:
    from trunkline.server import CacheHint

    app = Server("tests", state_keys=[KEY], cache=CacheHint(60))

    @app.prompt
    async def shout(context: Context) -> str:
        return ((await context.elicit("What?", str)).content or "").upper()

    @app.resource("test://thing")
    async def thing(context: Context) -> str:
        return (await context.elicit("Which?", str)).content or ""

    async def work(wire: ServerConnection) -> None:
        for number, (method, params) in enumerate(
            [("prompts/get", {"name": "shout"}), ("resources/read", {"uri": "test://thing"})]
        ):
            first = await attempt(wire, f"{number}a", params, method=method)
            assert first["result"]["resultType"] == "input_required"
            last = await attempt(
                wire,
                f"{number}b",
                params,
                method=method,
                state=first["result"]["requestState"],
                responses={"elicitation-1": accepted(value="aha")},
            )
            if method == "prompts/get":
                assert last["result"]["messages"][0]["content"]["text"] == "AHA"
            else:
                assert last["result"]["contents"][0]["text"] == "aha"
                assert last["result"]["ttlMs"] == 0
            wrong = await attempt(wire, f"{number}c", params, method=method, state="nonsense")
            assert wrong["error"]["code"] == -32602

    run(work, app)


def test_two_clients_that_race_with_one_state_both_get_their_answer() -> None:
    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, CALL))["result"]
        state = first["requestState"]
        one, other = await asyncio.gather(
            attempt(wire, 2, CALL, state=state, responses={"who": accepted(name="Ada")}),
            attempt(wire, 3, CALL, state=state, responses={"who": accepted(name="Eve")}),
        )
        assert one["result"]["content"][0]["text"] == "Hello Ada"
        assert other["result"]["content"][0]["text"] == "Hello Eve"

    run(work, greeter())


def test_a_server_with_an_older_key_of_the_ring_finishes_what_it_began() -> None:
    old, new = greeter(), greeter()
    new._core.services.rounds.seal = StateSealer([b"n" * 32, KEY])

    async def main() -> None:
        async with connected(old, PER_REQUEST) as one:
            first = (await attempt(one, 1, CALL))["result"]
        async with connected(new, PER_REQUEST) as two:
            last = await attempt(
                two, 1, CALL, state=first["requestState"], responses={"who": accepted(name="Ada")}
            )
        assert last["result"]["content"][0]["text"] == "Hello Ada"

    asyncio.run(main())


def test_a_server_without_the_key_refuses_the_state() -> None:
    one, other = greeter(), greeter()
    other._core.services.rounds.seal = StateSealer([b"o" * 32])

    async def main() -> None:
        async with connected(one, PER_REQUEST) as wire:
            first = (await attempt(wire, 1, CALL))["result"]
        async with connected(other, PER_REQUEST) as wire:
            reply = await attempt(wire, 1, CALL, state=first["requestState"])
        assert reply["error"]["code"] == -32602

    asyncio.run(main())


def test_a_refusal_is_one_that_a_handler_can_catch() -> None:
    app = Server("tests")

    @app.tool
    async def polite(context: Context) -> str:
        try:
            await context.elicit("Sure?", bool)
        except RequestError as error:
            return str(error.kind)
        return "asked"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "polite"}, capabilities={})
        text = reply["result"]["content"][0]["text"]
        assert text == "MISSING_REQUIRED_CLIENT_CAPABILITY"

    run(work, app)


@pytest.mark.parametrize(
    ("ask", "declared", "required"),
    [
        pytest.param("elicit", {}, {"elicitation": {}}, id="form"),
        pytest.param(
            "elicit", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}, id="url only"
        ),
        pytest.param("url", {"elicitation": {}}, {"elicitation": {"url": {}}}, id="url"),
        pytest.param("sample", {"elicitation": {}}, {"sampling": {}}, id="sampling"),
        pytest.param("tools", {"sampling": {}}, {"sampling": {"tools": {}}}, id="tools"),
        pytest.param("roots", {}, {"roots": {}}, id="roots"),
    ],
)
def test_undeclared_capability_is_refused_and_named(
    ask: str, declared: dict[str, Any], required: dict[str, Any]
) -> None:
    app = Server("tests")

    @app.tool
    async def curious(context: Context) -> str:
        if ask == "elicit":
            await context.elicit("Sure?", bool)
        elif ask == "url":
            await context.elicit_url("Go", "https://example.com/")
        elif ask == "roots":
            await context.roots()
        else:
            tool = {"name": "t", "inputSchema": {"type": "object"}}
            tools = [tool] if ask == "tools" else None
            await context.sample("Hm?", max_tokens=5, tools=tools)
        return "asked"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "curious"}, capabilities=declared)
        assert reply["error"]["code"] == -32021
        assert reply["error"]["data"] == {"requiredCapabilities": required}
        assert (await attempt(wire, 2, {"name": "curious"}, capabilities=EVERYTHING))["result"][
            "resultType"
        ] == "input_required"

    run(work, app)


def test_a_key_names_one_question_of_a_call() -> None:
    app = Server("tests")

    @app.tool
    async def twice(context: Context) -> str:
        one = context.elicit("One?", bool, key="same")
        try:
            context.elicit("Two?", bool, key="same")
        except ValueError as error:
            return str(error)
        return repr(one)

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "twice"})
        assert (
            "another question of this call has the key 'same'"
            in reply["result"]["content"][0]["text"]
        )

    run(work, app)


def test_a_tool_on_a_thread_asks_by_waiting() -> None:
    app = Server("tests", state_keys=[KEY])
    done: list[str] = []

    @app.tool
    def blocking(context: Context) -> str:
        import threading

        made = context.once(
            "made", lambda: done.append(threading.current_thread().name) or 7
        ).wait()
        answer = context.elicit("Sure?", bool).wait()
        return f"{made} {answer.content}"

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "blocking"}))["result"]
        last = await attempt(
            wire,
            2,
            {"name": "blocking"},
            state=first["requestState"],
            responses={"elicitation-1": accepted(value=True)},
        )
        assert last["result"]["content"][0]["text"] == "7 True"

    run(work, app)
    assert len(done) == 1
    assert done[0].startswith("trunkline-handler")


def test_waiting_on_the_loops_own_thread_is_refused() -> None:
    app = Server("tests")

    @app.tool
    async def wrong(context: Context) -> str:
        try:
            context.elicit("Sure?", bool).wait()
        except RuntimeError as error:
            return str(error)
        return "waited"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "wrong"})
        assert "await the request instead" in reply["result"]["content"][0]["text"]

    run(work, app)


def test_secret_once_without_the_crypto_extra_is_refused(monkeypatch: Any) -> None:
    app = Server("tests", state_keys=[KEY])
    # None makes the import fail, as where the extra is not installed.
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)

    @app.tool
    async def hide(context: Context) -> str:
        try:
            await context.once("token", lambda: "canary", type=str, secret=True)
        except RuntimeError as error:
            return str(error)
        return "kept"

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "hide"})
        assert 'pip install "trunkline[crypto]"' in reply["result"]["content"][0]["text"]

    run(work, app)


def test_secret_once_value_is_encrypted_in_the_request_state() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def hide(context: Context) -> str:
        token = await context.once("token", lambda: "canary-91c4", type=str, secret=True)
        answer = await context.elicit("Sure?", bool)
        return f"{len(token)} {answer.content}"

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "hide"}))["result"]
        state = first["requestState"]
        assert b"canary-91c4" not in base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))
        assert "canary-91c4" not in json.dumps(first)
        last = await attempt(
            wire,
            2,
            {"name": "hide"},
            state=state,
            responses={"elicitation-1": accepted(value=True)},
        )
        assert last["result"]["content"][0]["text"] == "11 True"

    run(work, app)


def test_questions_of_tasks_side_by_side_keep_their_keys_from_run_to_run() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def chains(context: Context) -> str:
        async def chain(name: str) -> str:
            one = await context.elicit(f"{name} one?", str)
            two = await context.elicit(f"{name} two after {one.content}?", str)
            return f"{one.content}{two.content}"

        first = await context.elicit("First?", str)
        return " ".join([first.content or "", *await asyncio.gather(chain("a"), chain("b"))])

    async def work(wire: ServerConnection) -> None:
        keys = []
        state, responses = None, None
        for number in range(10):
            reply = await attempt(
                wire, number, {"name": "chains"}, state=state, responses=responses
            )
            result = reply["result"]
            if result["resultType"] == "complete":
                break
            keys.append(sorted(result["inputRequests"]))
            state = result["requestState"]
            responses = {key: accepted(value=key[-1]) for key in result["inputRequests"]}
        assert keys == [
            ["elicitation-1"],
            ["elicitation-1.1", "elicitation-2.1"],
            ["elicitation-1.2", "elicitation-2.2"],
        ]
        assert result["content"][0]["text"] == "1 12 12"

    run(work, app)


@pytest.mark.parametrize("on_thread", [False, True])
def test_a_question_inside_once_is_refused_wherever_it_runs(on_thread: bool) -> None:
    app = Server("tests")

    if on_thread:

        @app.tool
        def knot(context: Context) -> str:
            try:
                return str(context.once("k", lambda: context.elicit("?", str).wait()).wait())
            except RuntimeError as error:
                return str(error)
    else:

        @app.tool
        async def knot(context: Context) -> str:
            async def ask() -> str:
                return (await context.elicit("Inside?", bool)).action

            try:
                return await context.once("ask", ask, type=str)
            except RuntimeError as error:
                return str(error)

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "knot"})
        assert "cannot be made inside once" in reply["result"]["content"][0]["text"]

    run(work, app)


def test_another_server_may_ask_its_own_client_inside_once() -> None:
    inner = Server("inner")

    @inner.tool
    async def ask(context: Context) -> str:
        return (await context.elicit("Inner?", str)).content or ""

    app = Server("tests")

    @app.tool
    async def outer(context: Context) -> str:
        async def work() -> str:
            async with Client(inner, on_elicit=lambda _: {"value": "yes"}) as client:
                return str((await client.call_tool("ask")).value)

        return await context.once("k", work, type=str)

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "outer"})
        assert reply["result"]["content"][0]["text"] == "yes"

    run(work, app)


def test_a_handler_that_waits_for_what_its_question_brings_is_ended_all_the_same() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def queued(context: Context) -> str:
        queue: asyncio.Queue[str] = asyncio.Queue()

        async def ask() -> None:
            try:
                await queue.put((await context.elicit("?", str)).content or "")
            except BaseException:  # noqa: BLE001  # or it would be reported as never looked at
                return

        context.app.kept = asyncio.create_task(ask())
        return await queue.get()

    async def work(wire: ServerConnection) -> None:
        first = (await attempt(wire, 1, {"name": "queued"}))["result"]
        assert first["resultType"] == "input_required"
        key = next(iter(first["inputRequests"]))
        last = await attempt(
            wire,
            2,
            {"name": "queued"},
            state=first["requestState"],
            responses={key: accepted(value="aha")},
        )
        assert last["result"]["content"][0]["text"] == "aha"

    run(work, app)


def test_tasks_whose_order_differs_get_their_own_answers() -> None:
    app = Server("tests", state_keys=[KEY])
    turns = iter([(0.0, 0.02), (0.02, 0.0), (0.02, 0.0)])

    @app.tool
    async def branches(context: Context) -> str:
        waits = next(turns)

        async def branch(name: str, seconds: float) -> str:
            await asyncio.sleep(seconds)
            return f"{name} {(await context.elicit(f'{name}?', str)).content}"

        return ", ".join(await asyncio.gather(branch("delete", waits[0]), branch("keep", waits[1])))

    async def work(wire: ServerConnection) -> None:
        call = {"name": "branches"}
        state, responses = None, None
        for number in range(3):
            reply = await attempt(wire, number, call, state=state, responses=responses)
            result = reply["result"]
            if result["resultType"] == "complete":
                break
            state = result["requestState"]
            responses = {
                key: accepted(value=f"to {each['params']['message']}")
                for key, each in result["inputRequests"].items()
            }
        assert result["content"][0]["text"] == "delete to delete?, keep to keep?"

    run(work, app)


def test_two_tasks_cannot_ask_the_same_without_keys(caplog: Any) -> None:
    app = Server("tests")

    @app.tool
    async def branches(context: Context) -> str:
        async def branch() -> str:
            return (await context.elicit("Sure?", str)).content or ""

        return ", ".join(await asyncio.gather(branch(), branch()))

    async def work(wire: ServerConnection) -> None:
        reply = await attempt(wire, 1, {"name": "branches"})
        assert reply["result"]["isError"]

    run(work, app)
    assert "give each a key" in caplog.text


@pytest.mark.parametrize("how", ["beside", "after", "instead"])
def test_a_handler_that_fails_beside_its_question_has_failed(how: str) -> None:
    app = Server("tests")

    @app.tool
    async def fails(context: Context) -> str:
        async def fail() -> None:
            raise ToolError("The well is dry.")

        if how == "beside":
            await asyncio.gather(context.elicit("Sure?", bool), fail())
        elif how == "after":
            await asyncio.gather(context.elicit("Sure?", bool), return_exceptions=True)
            await fail()
        try:
            await context.elicit("Sure?", bool, key="other")
        except BaseException:  # noqa: BLE001  # what this test is about
            raise ToolError("It did not work out.") from None
        return "done"

    async def work(wire: ServerConnection) -> None:
        result = (await attempt(wire, 1, {"name": "fails"}))["result"]
        if how == "instead":
            # What came of the end of the round is that end.
            assert result["resultType"] == "input_required"
        else:
            assert result["content"][0]["text"] == "The well is dry."

    run(work, app)


def test_request_state_is_refused_for_a_number_equal_only_after_rounding() -> None:
    app = Server("tests", state_keys=[KEY])

    @app.tool
    async def pay(context: Context, amount: Decimal) -> str:
        await context.elicit("Sure?", bool, key="sure")
        return str(amount)

    async def work(wire: ServerConnection) -> None:
        one, other = "10000000000000000.01", "10000000000000000.99"
        frame = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "pay", "arguments": {"amount": "AMOUNT"}, "_meta": meta()},
            }
        )
        wire.near.send(frame.replace('"AMOUNT"', one).encode())
        state = (await wire.answer(1))["result"]["requestState"]
        for id, amount, is_good in ((2, other, False), (3, one, True)):
            again = json.loads(frame)
            again["id"] = id
            again["params"] |= {
                "requestState": state,
                "inputResponses": {"sure": accepted(value=True)},
            }
            wire.near.send(json.dumps(again).replace('"AMOUNT"', amount).encode())
            reply = await wire.answer(id)
            assert ("result" in reply) is is_good

    run(work, app)


def test_request_state_is_refused_by_a_server_of_another_name() -> None:
    one, other = greeter(), greeter()
    other._core.services.rounds = RoundTrips(
        StateSealer([KEY]), other._core.limits, server="another"
    )

    async def main() -> None:
        async with connected(one, PER_REQUEST) as wire:
            first = (await attempt(wire, 1, CALL))["result"]
        async with connected(other, PER_REQUEST) as wire:
            reply = await attempt(wire, 1, CALL, state=first["requestState"])
        assert reply["error"]["code"] == -32602

    asyncio.run(main())


def test_asking_works_under_another_name_of_the_method() -> None:
    app = greeter(policy=Policy.mcp(PER_REQUEST).replace(method_names="accept-bare"))

    async def work(wire: ServerConnection) -> None:
        first = await attempt(wire, 1, CALL, method="tool/execute")
        last = await attempt(
            wire,
            2,
            CALL,
            state=first["result"]["requestState"],
            responses={"who": accepted(name="Ada")},
        )
        assert last["result"]["content"][0]["text"] == "Hello Ada"

    run(work, app)


def test_input_responses_of_a_waiting_request_count_toward_the_byte_budget() -> None:
    app = Server("tests", limits=ServerLimits(in_flight=1, connection_bytes=1000))
    gate = asyncio.Event()

    @app.tool
    async def hold() -> str:
        await gate.wait()
        return "done"

    async def work(wire: ServerConnection) -> None:
        params = {"name": "hold", "_meta": meta()}
        wire.ask(1, "tools/call", params)
        wire.ask(2, "tools/call", {**params, "inputResponses": {"x": "y" * 5000}})
        assert "retryAfterMs" in (await wire.answer(2))["error"]["data"]
        gate.set()
        await wire.answer(1)

    run(work, app)


def test_elicitation_from_a_background_task_after_the_reply_raises() -> None:
    app = Server("tests")
    raised: list[BaseException] = []

    @app.tool
    async def leave(context: Context) -> str:
        async def background() -> None:
            await asyncio.sleep(0.02)
            try:
                await context.elicit("Still there?", str)
            except RequestAborted as error:
                raised.append(error)

        context.app.left = asyncio.create_task(background())
        return "gone"

    async def work(wire: ServerConnection) -> None:
        await attempt(wire, 1, {"name": "leave"})
        async with asyncio.timeout(5):
            await app.left  # type: ignore[attr-defined]  # set above

    run(work, app)
    assert len(raised) == 1
