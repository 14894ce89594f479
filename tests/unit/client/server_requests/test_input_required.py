"""Requests that are sent again with what the server asked for, seen from its side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec import Raw

from tests.unit.client.scripted import SILENT, Place, Refused, run, text
from trunkline.client import Client, ClientExtension
from trunkline.client.server_requests import input_required
from trunkline.client.session.session import OutgoingRequest, Session
from trunkline.errors import (
    ConnectionLost,
    InputRequestFailed,
    PeerError,
    RemoteProtocolError,
    RequestError,
    RequestTimeout,
    TooManyRoundTrips,
)
from trunkline.jsonrpc import Policy
from trunkline.mcp import CreateMessageResult, ElicitResult, TextContent
from trunkline.spec.revisions import LATEST

SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}
DAY = {"method": "elicitation/create", "params": {"message": "When?", "requestedSchema": SCHEMA}}
PAGE = {
    "method": "elicitation/create",
    "params": {"message": "Pay", "mode": "url", "url": "https://pay.example"},
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "maxTokens": 5,
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
    },
}
ROOTS = {"method": "roots/list"}
FRIDAY = {"action": "accept", "content": {"day": "Friday"}}


def asks(state: Any = None, **requests: Any) -> dict[str, Any]:
    """A result that asks for more."""
    result: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        result["inputRequests"] = requests
    if state is not None:
        result["requestState"] = state
    return result


def script(*answers: Any) -> Callable[[dict[str, Any]], Any]:
    """Answer one after the other, the last again and again."""
    left = list(answers)
    return lambda message: left.pop(0) if len(left) > 1 else left[0]


def use(place: Place, work: Callable[[Client], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def main() -> Any:
        async with Client(place, **{"on_elicit": friday, **options}) as client:
            return await work(client)

    return run(main())


async def friday(params: Any) -> Any:
    return {"day": "Friday"}


def sampled(params: Any) -> CreateMessageResult:
    return CreateMessageResult(TextContent("yes"), "model", "assistant")


def sent(place: Place, method: str = "tools/call") -> list[dict[str, Any]]:
    return [each for each in place.line.sent if each.get("method") == method]


def own(message: dict[str, Any]) -> dict[str, Any]:
    """Params without what every request carries."""
    return {name: value for name, value in message["params"].items() if name != "_meta"}


# -- what is sent again ----------------------------------------------------------------------


def test_a_request_is_sent_again_with_answers_and_state() -> None:
    state = 'é"\\ \u0007 \U0001f40c =='
    place = Place({"tools/call": script(asks(state, day=DAY), text("booked"))})
    result = use(place, lambda client: client.call_tool("book", {"city": "Oslo"}))
    assert result.text == "booked"
    first, second = sent(place)
    assert own(first) == {"name": "book", "arguments": {"city": "Oslo"}}
    answers = {"day": FRIDAY}
    assert own(second) == {**own(first), "inputResponses": answers, "requestState": state}
    assert first["params"]["_meta"] == second["params"]["_meta"]
    assert first["id"] != second["id"]


def test_the_state_goes_back_byte_for_byte() -> None:
    state = b'"\\u0041\\/ \\ud83d\\udc0c A"'

    async def main() -> None:
        place = Place({"tools/call": SILENT})
        async with Client(place) as client:
            call = client.submit_tool("book")
            message = await place.line.until("tools/call")
            place.line.say(
                b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required",'
                b'"requestState":%b}}' % (message["id"], state)
            )
            message = await place.line.until("tools/call", 2)
            assert b'"requestState":' + state in place.line.frames[-1]
            place.line.say({"jsonrpc": "2.0", "id": message["id"], "result": text("done")})
            assert (await call).text == "done"

    run(main())


def test_no_state_is_sent_where_none_was_given() -> None:
    place = Place({"tools/call": script(asks(day=DAY), text("booked"))})
    use(place, lambda client: client.call_tool("book"))
    assert own(sent(place)[1]) == {"name": "book", "inputResponses": {"day": FRIDAY}}


def test_each_round_has_only_its_own_answers_and_state() -> None:
    place = Place(
        {"tools/call": script(asks("one", a=DAY), asks(b=DAY, c=ROOTS), asks("three"), text("x"))}
    )
    use(place, lambda client: client.call_tool("book"), roots=["file:///r"])
    messages = [own(message) for message in sent(place)]
    roots = {"roots": [{"uri": "file:///r"}]}
    assert messages[1:] == [
        {"name": "book", "inputResponses": {"a": FRIDAY}, "requestState": "one"},
        {"name": "book", "inputResponses": {"b": FRIDAY, "c": roots}},
        {"name": "book", "requestState": "three"},
    ]
    assert len({message["id"] for message in sent(place)}) == 4


def test_nothing_is_carried_into_another_call() -> None:
    place = Place({"tools/call": script(asks("mine", day=DAY), text("a"), text("b"))})

    async def work(client: Client) -> None:
        await client.call_tool("book")
        await client.call_tool("other", {"x": 1})

    use(place, work)
    assert own(sent(place)[2]) == {"name": "other", "arguments": {"x": 1}}


def test_all_kinds_of_questions_are_answered() -> None:
    place = Place({"tools/call": script(asks(a=DAY, b=PAGE, c=SAMPLE, d=ROOTS, e=DAY), text("x"))})
    options: dict[str, Any] = {
        "on_elicit_url": lambda params: True,
        "on_sample": sampled,
        "roots": ["file:///r"],
    }
    use(place, lambda client: client.call_tool("book"), **options)
    answers = own(sent(place)[1])["inputResponses"]
    message = {"content": {"type": "text", "text": "yes"}, "model": "model", "role": "assistant"}
    assert answers == {
        "a": FRIDAY,
        "b": {"action": "accept"},
        "c": message,
        "d": {"roots": [{"uri": "file:///r"}]},
        "e": FRIDAY,
    }


def test_params_that_are_null_are_none() -> None:
    place = Place({"tools/call": script(asks(where=ROOTS | {"params": None}), text("x"))})
    assert use(place, lambda client: client.call_tool("book"), roots=["file:///r"]).text == "x"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, {"action": "decline"}),
        (ElicitResult("cancel"), {"action": "cancel"}),
        (ElicitResult("accept", meta={"a": 1}), {"action": "accept", "content": {}}),
    ],
)
def test_to_decline_is_an_answer(given: Any, expected: Any) -> None:
    place = Place({"tools/call": script(asks(day=DAY), text("left"))})
    result = use(place, lambda client: client.call_tool("book"), on_elicit=lambda _: given)
    assert result.text == "left"
    assert own(sent(place)[1])["inputResponses"] == {"day": expected}


def test_the_questions_of_a_round_are_answered_side_by_side() -> None:
    most = input_required._MAX_CONCURRENT_HANDLERS
    at_work, seen = 0, []

    async def slow(params: Any) -> Any:
        nonlocal at_work
        at_work += 1
        seen.append(at_work)
        await asyncio.sleep(0)
        at_work -= 1
        return {}

    questions = {f"q{number}": DAY for number in range(3 * most)}
    place = Place({"tools/call": script(asks(**questions), text("x"))})
    use(place, lambda client: client.call_tool("book"), on_elicit=slow)
    assert max(seen) == most
    assert list(own(sent(place)[1])["inputResponses"]) == list(questions)


# -- every way to ask ------------------------------------------------------------------------


def test_prompts_and_resources_may_ask_too() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    place = Place(
        {
            "prompts/get": script(asks("p", day=DAY), {"messages": [message]}),
            "resources/read": script(asks("r", day=DAY), {"contents": []}),
        }
    )

    async def work(client: Client) -> None:
        assert len((await client.get_prompt("plan", {"who": "me"})).messages) == 1
        assert (await client.read_resource("x:r")).contents == []

    use(place, work)
    added = {"inputResponses": {"day": FRIDAY}}
    assert own(sent(place, "prompts/get")[1]) == {
        "name": "plan",
        "arguments": {"who": "me"},
        "requestState": "p",
        **added,
    }
    assert own(sent(place, "resources/read")[1]) == {"uri": "x:r", "requestState": "r", **added}


def test_a_request_of_ones_own_is_sent_again_as_it_was_written() -> None:
    given = {"name": "book", "odd": 1, "_meta": {"com.example/a": 2}, "requestState": "old"}
    place = Place({"tools/call": script(asks("new", day=DAY), {"content": [], "also": 3})})
    found = use(place, lambda client: client.request("tools/call", given))
    assert found == {"content": [], "also": 3}
    again = {"name": "book", "odd": 1, "inputResponses": {"day": FRIDAY}, "requestState": "new"}
    assert own(sent(place)[1]) == again
    assert sent(place)[1]["params"]["_meta"]["com.example/a"] == 2
    assert given["requestState"] == "old"


def test_a_call_with_options_of_its_own_is_sent_again_with_them() -> None:
    place = Place({"tools/call": script(asks("s", day=DAY), text("x"))})
    meta = {"com.example/a": 2}
    use(place, lambda client: client.call_tool("book", timeout=5, meta=meta))
    assert [message["params"]["_meta"]["com.example/a"] for message in sent(place)] == [2, 2]


@pytest.mark.parametrize("raw", [False, True])
def test_a_call_in_hand_ends_once_with_the_last_result(raw: bool) -> None:
    place = Place({"tools/call": script(asks("a", day=DAY), asks("b", day=DAY), text("x"))})
    heard: list[Any] = []

    async def work(client: Client) -> None:
        submit = client.submit if raw else client.submit_tool
        args: Any = ("tools/call", {"name": "book"}) if raw else ("book",)
        call = submit(*args, on_success=heard.append, on_error=heard.append)
        call.add_done_callback(lambda call: heard.append(call.done()))
        await place.line.until("tools/call", 2)
        assert not call.done()
        found = await call
        assert call.result() is found
        await asyncio.sleep(0)
        assert heard == [found, True]

    use(place, work)


def test_submitted_call_reports_the_error_of_a_later_round_trip() -> None:
    place = Place({"tools/call": script(asks(day=DAY), Refused(-32602))})
    heard: list[Any] = []

    async def work(client: Client) -> None:
        call = client.submit_tool("book", on_error=heard.append)
        with pytest.raises(PeerError):
            await call
        assert isinstance(call.exception(), PeerError)
        await asyncio.sleep(0)

    use(place, work)
    assert [type(each) for each in heard] == [PeerError]


def test_progress_is_reported_in_every_round_trip() -> None:
    seen: list[float] = []
    place = Place()
    left = [asks(day=DAY), text("x")]

    def report(message: dict[str, Any]) -> Any:
        token = message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 3 - len(left)}
        place.line.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        return left.pop(0)

    place.answers["tools/call"] = report
    use(
        place,
        lambda client: client.call_tool("book", on_progress=lambda done, *_: seen.append(done)),
    )
    assert seen == [1, 2]
    tokens = [message["params"]["_meta"]["progressToken"] for message in sent(place)]
    assert tokens[0] != tokens[1]


# -- what a server may not do ----------------------------------------------------------------


def refused(result: Any, **options: Any) -> RemoteProtocolError:
    place = Place({"tools/call": result})
    with pytest.raises(RemoteProtocolError) as caught:
        use(place, lambda client: client.call_tool("book"), **options)
    # Nothing is sent again, and nobody was asked anything.
    assert len(sent(place)) == 1
    return caught.value


async def never(params: Any) -> Any:
    raise AssertionError("nobody is to be asked")


@pytest.mark.parametrize(
    ("asked", "rule", "where", "named"),
    [
        (SAMPLE, "mcp.rounds.declared-only", "/inputRequests/k~1/method", "sampling"),
        (ROOTS, "mcp.rounds.declared-only", "/inputRequests/k~1/method", "roots"),
        (PAGE, "mcp.elicitation.declared-mode", "/inputRequests/k~1/params/mode", "url"),
        ({"method": "acme/own"}, "mcp.rounds.kinds", "/inputRequests/k~1/method", "acme/own"),
        ({"method": "tools/list"}, "mcp.rounds.kinds", "/inputRequests/k~1/method", "tools/list"),
        (
            {"method": "elicitation/create", "params": {}},
            "mcp.type.required",
            "/inputRequests/k~1/params",
            "message",
        ),
    ],
)
def test_undeclared_input_request_raises_a_protocol_error(
    asked: Any, rule: str, where: str, named: str
) -> None:
    error = refused(asks(day=DAY, **{"k/": asked}), on_elicit=never)
    assert (error.rule, error.where) == (rule, where)
    assert named in str(error)
    # The text says what would have been right.
    assert ": expected " in str(error)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "file:///x", "https:"])
def test_url_input_request_with_an_unsafe_url_raises(url: str) -> None:
    page = {"method": PAGE["method"], "params": PAGE["params"] | {"url": url}}  # type: ignore[operator]
    error = refused(asks(k=page), on_elicit_url=never)
    assert (error.rule, error.where) == ("mcp.type.format", "/inputRequests/k/params/url")
    assert "http or https" in str(error)


def test_roots_that_are_not_file_uris_fail_the_call() -> None:
    place = Place({"tools/call": asks(k=ROOTS)})
    with pytest.raises(InputRequestFailed, match="the handler raised ValueError") as caught:
        use(place, lambda client: client.call_tool("book"), roots=lambda: ["https://a.example"])
    assert "https://a.example" in str(caught.value.__cause__)
    assert len(sent(place)) == 1


def test_tools_for_a_model_are_not_taken_undeclared() -> None:
    with_tools = {"method": SAMPLE["method"], "params": SAMPLE["params"] | {"tools": []}}  # type: ignore[operator]
    error = refused(asks(k=with_tools), on_sample=never)
    assert "sampling.tools" in str(error)
    place = Place({"tools/call": script(asks(k=with_tools), text("x"))})
    options: dict[str, Any] = {"on_sample": sampled, "sampling_tools": True}
    assert use(place, lambda client: client.call_tool("book"), **options).text == "x"


@pytest.mark.parametrize(
    ("result", "rule"),
    [
        (asks(), "mcp.result.input-empty"),
        (asks() | {"inputRequests": {}}, "mcp.result.input-empty"),
        (asks() | {"inputRequests": None, "requestState": None}, "mcp.result.input-empty"),
        (asks(5), "mcp.type.json-type"),
        (asks() | {"inputRequests": []}, "mcp.type.json-type"),
        (asks(k={}), "mcp.type.json-type"),
        (asks("s") | {"resultType": "odd"}, "mcp.result.type-unknown"),
    ],
)
def test_a_result_that_makes_no_sense_is_refused(result: Any, rule: str) -> None:
    assert refused(result).rule == rule


def test_other_methods_may_not_ask() -> None:
    place = Place(
        {
            "tools/list": asks(day=DAY),
            "completion/complete": asks(day=DAY),
            "acme/own": asks(day=DAY),
        }
    )

    async def work(client: Client) -> None:
        for ask in (
            client.list_tools(),
            client.complete("a", "b", prompt="p"),
            client.request("acme/own"),
            client.submit("acme/own"),
        ):
            with pytest.raises(RemoteProtocolError) as caught:
                await ask
            error = caught.value
            assert (error.rule, error.where) == ("mcp.result.input-not-allowed", "/resultType")
            assert error.got == "input_required"
            assert "complete" in error.expected

    use(place, work, on_elicit=never)


def test_call_fails_after_the_maximum_of_round_trips() -> None:
    place = Place({"tools/call": asks(day=DAY)})
    with pytest.raises(TooManyRoundTrips, match="after 3 rounds"):
        use(place, lambda client: client.call_tool("book"), max_rounds=3)
    assert len(sent(place)) == 4


def test_round_trips_up_to_the_maximum_are_answered() -> None:
    place = Place({"tools/call": script(*[asks(day=DAY)] * 3, text("x"))})
    assert use(place, lambda client: client.call_tool("book"), max_rounds=3).text == "x"


def test_a_server_that_only_names_a_state_is_asked_again_less_and_less_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []

    async def pause(self: Session, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(Session, "pause", pause)
    monkeypatch.setattr("trunkline.concurrency.backoff._uniform", lambda: 1.0)
    place = Place({"tools/call": asks("s")})
    with pytest.raises(TooManyRoundTrips):
        use(place, lambda client: client.call_tool("book"))
    assert waits == sorted(waits)
    assert len(waits) == 16
    assert waits[-1] == input_required._MAX_DELAY_S
    assert {json.dumps(own(message)) for message in sent(place)[1:]} == {
        json.dumps({"name": "book", "requestState": "s"})
    }


# -- handlers that do not answer -------------------------------------------------------------


async def fail(params: Any) -> Any:
    raise ValueError("private: canary")


async def refuse(params: Any) -> Any:
    raise RequestError("USER_REJECTED", "canary")


async def cancelled(params: Any) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("handler", "said", "cause"),
    [
        (fail, "the handler raised ValueError", ValueError),
        (refuse, "the handler refused to answer", RequestError),
        (cancelled, "the handler was cancelled", asyncio.CancelledError),
        (lambda _: {"day": 5}, "the field 'day' takes a text, not 5", ValueError),
        (lambda _: {"nope": 5}, "the form has no field 'nope', but 'day'", ValueError),
        (lambda _: 5, "the handler raised TypeError", TypeError),
    ],
)
def test_a_question_that_cannot_be_answered_ends_the_call(
    handler: Any, said: str, cause: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    place = Place({"tools/call": asks("s", day=DAY)})
    with pytest.raises(InputRequestFailed) as caught:
        use(place, lambda client: client.call_tool("book"), on_elicit=handler)
    error = caught.value
    assert (error.method, error.asked, error.key) == ("tools/call", "elicitation/create", "day")
    assert said in str(error)
    assert "'day'" in str(error)
    assert isinstance(error.__cause__, cause)
    # The server hears of it by hearing no more.
    assert len(sent(place)) == 1
    assert "canary" not in str(error)
    assert "canary" not in json.dumps(place.line.sent)


def test_one_that_fails_stops_the_others() -> None:
    stopped: list[bool] = []

    async def handler(params: Any) -> Any:
        if params.message == "When?":
            await begun.wait()
            raise ValueError
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    begun = asyncio.Event()
    slow = {"method": DAY["method"], "params": {"message": "Who?", "requestedSchema": SCHEMA}}

    async def work(client: Client) -> None:
        with pytest.raises(InputRequestFailed):
            await client.call_tool("book")
        await asyncio.sleep(0)
        assert stopped == [True]

    use(Place({"tools/call": asks(day=DAY, who=slow)}), work, on_elicit=handler)


def test_plain_handlers_are_bounded_by_threads() -> None:
    async def work(client: Client) -> None:
        client._connection.threads._max_threads = 0
        with pytest.raises(InputRequestFailed, match="too many handlers"):
            await client.call_tool("book")

    use(Place({"tools/call": asks(day=DAY)}), work, on_elicit=lambda _: None)


# -- going away ------------------------------------------------------------------------------


class Thinking:
    """A user who thinks until somebody stops it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.stopped = asyncio.Event()

    async def __call__(self, params: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


def thinking() -> tuple[Thinking, Callable[[Any], Any]]:
    user = Thinking()

    async def handler(params: Any) -> Any:
        return await user(params)

    return user, handler


def test_cancelling_the_caller_cancels_the_elicitation_handler() -> None:
    async def main() -> None:
        user, handler = thinking()
        place = Place({"tools/call": asks(day=DAY)})
        async with Client(place, on_elicit=handler) as client:
            task = asyncio.ensure_future(client.call_tool("book"))
            await user.begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await user.stopped.wait()
            assert len(sent(place)) == 1
            # What was asked is answered: there is nothing to be cancelled on the server.
            assert "notifications/cancelled" not in place.line.methods()

    run(main())


@pytest.mark.parametrize("how", ["task", "call"])
def test_cancelling_a_submitted_call_cancels_the_elicitation_handler(how: str) -> None:
    async def main() -> None:
        user, handler = thinking()
        place = Place({"tools/call": asks(day=DAY)})
        heard: list[Any] = []
        async with Client(place, on_elicit=handler) as client:
            call = client.submit_tool("book", on_success=heard.append, on_error=heard.append)
            await user.begun.wait()
            if how == "call":
                assert call.cancel()
                assert not call.cancel()
            else:
                task = asyncio.ensure_future(_await(call))
                await asyncio.sleep(0)
                task.cancel()
            await user.stopped.wait()
            assert call.cancelled()
            await asyncio.sleep(0)
            assert len(sent(place)) == 1
        assert not heard

    run(main())


async def _await(call: Any) -> Any:
    return await call


@pytest.mark.parametrize("how", ["task", "call"])
def test_cancelling_mid_round_cancels_the_request_under_way(how: str) -> None:
    async def main() -> None:
        place = Place({"tools/call": script(asks("s", day=DAY), SILENT)})
        async with Client(place, on_elicit=friday) as client:
            work: Any
            if how == "call":
                work = client.submit_tool("book")
            else:
                work = asyncio.ensure_future(client.call_tool("book"))
            again = await place.line.until("tools/call", 2)
            work.cancel()
            note = await place.line.until("notifications/cancelled")
            assert note["params"]["requestId"] == again["id"]

    run(main())


@pytest.mark.parametrize("closing", [False, True])
def test_connection_lost_during_an_elicitation_ends_the_call(closing: bool) -> None:
    async def main() -> None:
        user, handler = thinking()
        place = Place({"tools/call": asks(day=DAY)})
        async with Client(place, on_elicit=handler) as client:
            task = asyncio.ensure_future(client.call_tool("book"))
            call = client.submit_tool("book")
            await user.begun.wait()
            if closing:
                await client.close()
            else:
                place.line.end()
            for each in (task, call):
                with pytest.raises(ConnectionLost):
                    await each
            assert user.stopped.is_set()

    run(main())


def test_connection_lost_during_an_uncancellable_handler_ends_the_call() -> None:
    async def main() -> None:
        begun, done = asyncio.Event(), asyncio.Event()

        async def stubborn(params: Any) -> Any:
            begun.set()
            while not done.is_set():
                try:
                    await done.wait()
                except asyncio.CancelledError:
                    continue

        place = Place({"tools/call": asks(day=DAY)})
        async with Client(place, on_elicit=stubborn) as client:
            task = asyncio.ensure_future(client.call_tool("book"))
            await begun.wait()
            place.line.end()
            with pytest.raises(ConnectionLost):
                await task
            done.set()

    run(main())


def test_a_connection_that_is_lost_during_a_pause_ends_the_call_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(input_required, "_FIRST_DELAY_S", 60.0)

    async def main() -> None:
        place = Place({"tools/call": asks("s")})
        async with Client(place) as client:
            task = asyncio.ensure_future(client.call_tool("book"))
            await place.line.until("tools/call")
            await asyncio.sleep(0.01)
            place.line.end()
            with pytest.raises(ConnectionLost):
                await task

    monkeypatch.setattr(input_required, "_MAX_DELAY_S", 60.0)
    run(main())


def test_a_handler_may_close_the_client() -> None:
    async def main() -> None:
        async def close(params: Any) -> Any:
            await client.close()
            done.set()

        done = asyncio.Event()
        client = Client(Place({"tools/call": asks(day=DAY)}), on_elicit=close)
        await client.connect()
        with pytest.raises(ConnectionLost):
            await client.call_tool("book")
        await done.wait()

    run(main())


def test_wait_for_an_elicitation_does_not_count_toward_the_call_timeout() -> None:
    async def slow(params: Any) -> Any:
        await asyncio.sleep(0.2)
        return {}

    place = Place({"tools/call": script(asks(day=DAY), text("x"))})
    result = use(place, lambda client: client.call_tool("book", timeout=0.1), on_elicit=slow)
    assert result.text == "x"


def test_each_round_has_the_time_of_the_call() -> None:
    place = Place({"tools/call": script(asks(day=DAY), SILENT)})
    with pytest.raises(RequestTimeout, match=r"within 0\.05 s"):
        use(place, lambda client: client.call_tool("book", timeout=0.05))
    assert len(sent(place)) == 2


# -- what is kept, and what takes over -------------------------------------------------------


def test_result_after_input_requests_is_not_cached() -> None:
    contents = {"contents": [], "ttlMs": 60_000, "cacheScope": "private"}
    place = Place({"resources/read": script(asks("s", day=DAY), contents)})

    async def work(client: Client) -> None:
        await client.read_resource("x:r")
        assert len(sent(place, "resources/read")) == 2
        await client.read_resource("x:r")
        assert len(sent(place, "resources/read")) == 3
        # That one was asked for nothing, and may be kept.
        await client.read_resource("x:r")
        assert len(sent(place, "resources/read")) == 3

    use(place, work)


def test_a_round_goes_on_by_a_new_connection_when_ids_are_used_up() -> None:
    place = Place({"tools/call": script(asks("s", day=DAY), text("x"))})
    policy = Policy(max_id=2)
    assert use(place, lambda client: client.call_tool("book"), policy=policy).text == "x"
    assert len(place.lines) == 2
    assert own(place.line.last("tools/call"))["requestState"] == "s"


def test_elicitation_continues_while_the_connection_is_replaced() -> None:
    async def main() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def handler(params: Any) -> Any:
            begun.set()
            await go_on.wait()
            return {}

        place = Place({"tools/call": script(asks("s", day=DAY), text("b"), text("c"), text("a"))})
        async with Client(place, on_elicit=handler, policy=Policy(max_id=3)) as client:
            first = asyncio.ensure_future(client.call_tool("book"))
            await begun.wait()
            assert (await client.call_tool("other")).text == "b"
            assert (await client.call_tool("other")).text == "c"
            assert len(place.lines) == 2
            assert not place.lines[0].closed
            go_on.set()
            assert (await first).text == "a"
            while not place.lines[0].closed:
                await asyncio.sleep(0)

    run(main())


def test_the_last_answer_of_a_connection_that_is_left_may_ask() -> None:
    async def main() -> None:
        def answer(message: dict[str, Any]) -> Any:
            return SILENT if message["params"]["name"] == "slow" else text("quick")

        place = Place({"tools/call": answer})
        async with Client(place, on_elicit=friday, policy=Policy(max_id=2)) as client:
            slow = asyncio.ensure_future(client.call_tool("slow"))
            asked = await place.line.until("tools/call")
            await client.call_tool("quick")
            old, new = place.lines
            place.answers["tools/call"] = text("late")
            old.say({"jsonrpc": "2.0", "id": asked["id"], "result": asks("s", day=DAY)})
            # The second connection has no ids left either, so the answers go by a third.
            assert (await slow).text == "late"
            assert new is not place.line
            assert own(place.line.last("tools/call"))["requestState"] == "s"

    run(main())


# -- types of others -------------------------------------------------------------------------


def test_an_extension_completes_results_of_its_own_type() -> None:
    given: list[Any] = []

    async def resolve(session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        given.append(
            (session.revision, request.method, dict(request.fields), json.loads(bytes(raw)))
        )
        return Raw(json.dumps(text("starred")).encode())

    place = Place({"tools/call": script(asks("s", day=DAY), {"resultType": "starred", "n": 5})})

    async def work(client: Client) -> None:
        assert (await client.call_tool("book", {"a": 1})).text == "starred"
        assert (await client.submit_tool("book", {"a": 1})).text == "starred"

    stars = ClientExtension("com.example/stars", resolvers={"starred": resolve})
    use(place, work, extensions=[stars])
    fields = {"name": "book", "arguments": {"a": 1}}
    expected = (LATEST, "tools/call", fields, {"resultType": "starred", "n": 5})
    assert given == [expected, expected]


def test_a_result_that_changes_its_type_for_ever_is_left() -> None:
    async def resolve(session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        return raw

    async def work(client: Client) -> None:
        client._sender.resolvers["starred"] = resolve
        with pytest.raises(TooManyRoundTrips):
            await client.call_tool("book")

    use(Place({"tools/call": {"resultType": "starred"}}), work)


def test_a_resolver_that_is_cancelled_cancels_a_call_in_hand() -> None:
    async def resolve(session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        raise asyncio.CancelledError

    async def work(client: Client) -> None:
        call = client.submit_tool("book")
        with pytest.raises(asyncio.CancelledError):
            await call
        assert call.cancelled()

    stars = ClientExtension("com.example/stars", resolvers={"starred": resolve})
    use(Place({"tools/call": {"resultType": "starred"}}), work, extensions=[stars])


def test_a_resolver_that_breaks_ends_a_call_in_hand(caplog: pytest.LogCaptureFixture) -> None:
    async def resolve(session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        raise ValueError("mine")

    heard: list[Any] = []

    async def work(client: Client) -> None:
        client._sender.resolvers["starred"] = resolve
        with pytest.raises(ValueError, match="mine"):
            await client.call_tool("book")
        call = client.submit_tool("book", on_error=heard.append)
        with pytest.raises(Exception, match="could not be completed"):
            await call
        await asyncio.sleep(0)

    use(Place({"tools/call": {"resultType": "starred"}}), work)
    assert len(heard) == 1
    assert "mine" in caplog.text
