"""What a server asks and tells: answers, refusals, and whoever listens."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.unit.client.scripted import NEWEST_HANDSHAKE, SILENT, Place, run, text
from trunkline.client import Client
from trunkline.client.server_requests.handlers import MAX_HANDLERS
from trunkline.client.session import diagnostics
from trunkline.client.subscriptions import notifications as noticing
from trunkline.errors import RemoteProtocolError, RequestError
from trunkline.mcp import CreateMessageResult, ElicitResult, Root, TextContent
from trunkline.spec.revisions import LATEST, V2025_06_18

SAMPLE = {
    "maxTokens": 5,
    "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}
ELICIT = {"message": "Who?", "requestedSchema": NAMED}
VISIT = {"message": "Pay", "mode": "url", "url": "https://pay.example", "elicitationId": "e"}


def use(
    work: Callable[[Client, Place], Coroutine[Any, Any, Any]],
    revision: str = NEWEST_HANDSHAKE,
    **options: Any,
) -> Any:
    async def main() -> Any:
        place = Place({"tools/call": text("fine")}, revision=revision)
        async with Client(place, revision=revision, **options) as client:
            return await work(client, place)

    return run(main())


def ask(method: str, params: Any = None, revision: str = NEWEST_HANDSHAKE, **options: Any) -> Any:
    """Return what the client answers to one request."""

    async def work(client: Client, place: Place) -> Any:
        request = {"jsonrpc": "2.0", "id": "s1", "method": method}
        place.line.say(request if params is None else request | {"params": params})
        reply = await place.line.until_reply("s1")
        return reply.get("error", {}).get("code") or reply["result"]

    return use(work, revision, **options)


def sampled(params: Any) -> CreateMessageResult:
    return CreateMessageResult(TextContent(f"{params.max_tokens}"), "model", "assistant")


def test_ping_is_answered_at_once() -> None:
    assert ask("ping") == {}


def test_roots_are_a_list_or_what_a_function_gives() -> None:
    async def later() -> list[str]:
        return ["file:///c"]

    expected = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
    given = [Root("file:///a", name="A"), "file:///b"]
    assert ask("roots/list", roots=given) == expected
    assert ask("roots/list", roots=lambda: given) == expected
    assert ask("roots/list", roots=iter(given)) == expected
    assert ask("roots/list", roots=later) == {"roots": [{"uri": "file:///c"}]}


@pytest.mark.parametrize("uri", ["https://a.example", "/home", "file:/a", "", 5])
def test_root_that_is_not_a_file_uri_is_refused_before_anything_is_sent(uri: Any) -> None:
    for given in (uri, Root(uri)):
        with pytest.raises(ValueError, match="a root is a file:// URI, not") as caught:
            Client(Place(), roots=["file:///a", given])
        assert repr(uri) in str(caught.value)
        assert ask("roots/list", roots=lambda given=given: ["file:///a", given]) == -32603


def test_the_scheme_of_a_root_may_be_in_capitals() -> None:
    assert ask("roots/list", roots=["FILE:///a"]) == {"roots": [{"uri": "FILE:///a"}]}


def test_a_message_is_sampled_by_any_kind_of_function() -> None:
    threads: list[int] = []

    def plain(params: Any) -> CreateMessageResult:
        threads.append(threading.get_ident())
        return sampled(params)

    async def later(params: Any) -> CreateMessageResult:
        return sampled(params)

    expected = {
        "content": {"type": "text", "text": "5"},
        "model": "model",
        "role": "assistant",
    }
    assert ask("sampling/createMessage", SAMPLE, on_sample=later) == expected
    assert ask("sampling/createMessage", SAMPLE, on_sample=plain) == expected
    # A model takes its time: the loop does not wait with it.
    assert threads != [threading.get_ident()]


def test_sampled_text_is_a_message_of_the_assistant_by_the_client() -> None:
    async def later(params: Any) -> str:
        return "5"

    expected = {"content": {"type": "text", "text": "5"}, "model": "acme", "role": "assistant"}
    for handler in (later, lambda params: "5"):
        found = ask("sampling/createMessage", SAMPLE, on_sample=handler, name="acme")
        assert found == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"name": "Ada"}, {"action": "accept", "content": {"name": "Ada"}}),
        (None, {"action": "decline"}),
        ("decline", {"action": "decline"}),
        (ElicitResult("cancel"), {"action": "cancel"}),
        (ElicitResult("cancel", content={"name": "x"}), {"action": "cancel"}),
        (ElicitResult("accept"), {"action": "accept", "content": {}}),
        ("accept", {"action": "accept", "content": {}}),
    ],
)
def test_a_user_is_asked(given: Any, expected: Any) -> None:
    async def answer(params: Any) -> Any:
        assert params.message == "Who?"
        return given

    assert ask("elicitation/create", ELICIT, on_elicit=answer) == expected


@pytest.mark.parametrize(
    ("given", "action"),
    [
        (True, "accept"),
        (False, "decline"),
        (None, "decline"),
        ("cancel", "cancel"),
        (ElicitResult("accept", content={"name": "x"}), "accept"),
    ],
)
def test_a_user_is_sent_to_a_page(given: Any, action: str) -> None:
    def answer(params: Any) -> Any:
        assert (params.message, params.url) == ("Pay", "https://pay.example")
        return given

    # To agree is all there is to it: what is entered there is not for this client to know.
    assert ask("elicitation/create", VISIT, on_elicit_url=answer) == {"action": action}


NO_PAGES = [
    "javascript:alert(1)",
    "JavaScript://pay.example/%0aalert(1)",
    "data:text/html,hi",
    "file:///etc/passwd",
    "ftp://pay.example/x",
    "about:blank",
    "https:",
    "https:pay.example",
    "https:///pay",
    "http://:80/pay",
    "http://user@/pay",
    "https://[pay]/",
    "https://pay.example:99999/",
    "//pay.example",
    "pay here",
    "",
]


@pytest.mark.parametrize("url", NO_PAGES)
def test_url_elicitation_with_an_unsafe_url_is_refused(url: str) -> None:
    called: list[Any] = []
    visit = VISIT | {"url": url}
    assert ask("elicitation/create", visit, on_elicit_url=called.append) == -32602
    assert called == []


@pytest.mark.parametrize("url", ["http://pay.example", "HTTPS://u@pay.example:8443/x?y#z"])
def test_a_page_is_one_of_http_or_https(url: str) -> None:
    visit = VISIT | {"url": url}
    assert ask("elicitation/create", visit, on_elicit_url=lambda _: True) == {"action": "accept"}


def test_url_elicitation_is_refused_in_revisions_without_it() -> None:
    options: dict[str, Any] = {"on_elicit": nothing, "on_elicit_url": lambda _: True}
    assert ask("elicitation/create", VISIT, "2025-06-18", **options) == -32602


def test_omitted_form_field_is_answered_with_its_default() -> None:
    schema = {"properties": {"name": {"type": "string", "default": "Ada"}}, "required": ["name"]}
    request = {"message": "Who?", "requestedSchema": schema}
    expected = {"action": "accept", "content": {"name": "Ada"}}
    assert ask("elicitation/create", request, on_elicit=lambda _: {}) == expected
    assert ask("elicitation/create", request, on_elicit=lambda _: "accept") == expected


def test_an_answer_that_does_not_fit_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    assert ask("elicitation/create", ELICIT, on_elicit=lambda _: {"name": 5}) == -32603
    assert "the field 'name' takes a text, not 5" in caplog.text


USED = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "toolUseId": "u", "content": []}
SAID = {"type": "text", "text": "hi"}


def sampling(*turns: Any, **members: Any) -> dict[str, Any]:
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"maxTokens": 5, "messages": messages, **members}


@pytest.mark.parametrize(
    ("turns", "is_balanced"),
    [
        ([("user", SAID)], True),
        ([("assistant", [SAID, USED]), ("user", [RESULT])], True),
        ([("assistant", USED), ("user", RESULT), ("assistant", SAID)], True),
        ([("assistant", [USED])], False),
        ([("assistant", [USED]), ("user", SAID)], False),
        ([("assistant", [USED]), ("user", [RESULT, SAID])], False),
        ([("assistant", [USED]), ("user", [RESULT | {"toolUseId": "v"}])], False),
        ([("assistant", [USED, USED | {"id": "v"}]), ("user", [RESULT])], False),
        ([("user", [RESULT])], False),
    ],
)
def test_uses_of_tools_and_their_results_match(turns: Any, is_balanced: bool) -> None:
    options: dict[str, Any] = {"on_sample": sampled, "sampling_tools": True}
    found = ask("sampling/createMessage", sampling(*turns), **options)
    assert (found != -32602) is is_balanced


@pytest.mark.parametrize("member", [{"tools": []}, {"toolChoice": {"mode": "auto"}}])
def test_sampling_with_tools_needs_the_declared_capability(member: dict[str, Any]) -> None:
    params = sampling(("user", SAID), **member)
    assert ask("sampling/createMessage", params, on_sample=sampled) == -32602
    found = ask("sampling/createMessage", params, on_sample=sampled, sampling_tools=True)
    assert found["model"] == "model"


def test_revisions_without_tools_for_models_are_not_asked_about_them() -> None:
    found = ask("sampling/createMessage", SAMPLE, "2025-06-18", on_sample=sampled)
    assert found["model"] == "model"


def refuse(kind: str | int) -> Callable[[Any], Any]:
    async def handler(params: Any) -> Any:
        raise RequestError(kind)

    return handler


async def fail(params: Any) -> Any:
    raise ValueError("private: api_key=sk-canary0123456789abcdef")


async def nothing(params: Any) -> Any:
    return 5


@pytest.mark.parametrize(
    ("method", "params", "options", "code"),
    [
        ("roots/list", None, {}, -32601),
        ("sampling/createMessage", SAMPLE, {}, -32601),
        ("acme/own", None, {"on_sample": sampled}, -32601),
        ("sampling/createMessage", {"maxTokens": "x"}, {"on_sample": sampled}, -32602),
        ("sampling/createMessage", None, {"on_sample": sampled}, -32602),
        ("sampling/createMessage", SAMPLE, {"on_sample": refuse("USER_REJECTED")}, -1),
        ("sampling/createMessage", SAMPLE, {"on_sample": refuse(77)}, 77),
        ("sampling/createMessage", SAMPLE, {"on_sample": refuse("NO_SUCH_SYMBOL")}, -32603),
        ("sampling/createMessage", SAMPLE, {"on_sample": fail}, -32603),
        ("sampling/createMessage", SAMPLE, {"on_sample": nothing}, -32603),
        ("elicitation/create", ELICIT, {"on_elicit": nothing}, -32603),
        ("elicitation/create", VISIT, {"on_elicit": fail}, -32602),
        ("elicitation/create", ELICIT, {"on_elicit_url": fail}, -32602),
        ("elicitation/create", {"message": "Who?"}, {"on_elicit": fail}, -32602),
        ("elicitation/create", {"message": "?", "mode": "url"}, {"on_elicit_url": fail}, -32602),
        ("elicitation/create", VISIT | {"url": "pay here"}, {"on_elicit_url": fail}, -32602),
        ("elicitation/create", ELICIT | {"mode": "odd"}, {"on_elicit": fail}, -32602),
        ("elicitation/create", VISIT, {"on_elicit_url": nothing}, -32603),
        ("elicitation/create", VISIT, {}, -32601),
        ("roots/list", None, {"roots": lambda: 5}, -32603),
        ("roots/list", None, {"roots": [Root("file:///a", name=float("nan"))]}, -32603),  # type: ignore[arg-type]
    ],
)
def test_server_requests_that_cannot_be_handled_are_answered_with_errors(
    method: str, params: Any, options: Any, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(method, params, **options) == code
    assert "canary" not in caplog.text


def test_a_question_that_a_revision_lacks_is_unknown_to_it() -> None:
    assert ask("elicitation/create", ELICIT, "2025-03-26", on_elicit=nothing) == -32601


def test_in_the_per_request_era_nothing_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def work(client: Client, place: Place) -> None:
        before = len(place.line.sent)
        for id, method in enumerate(("ping", "roots/list"), 100):
            place.line.say({"jsonrpc": "2.0", "id": id, "method": method})
        await client.call_tool("x")
        assert len(place.line.sent) == before + 1

    use(work, LATEST, roots=["file:///a"])
    assert "does not allow" in caplog.text


def test_a_cancelled_question_is_not_answered() -> None:
    async def work(client: Client, place: Place) -> None:
        place.line.say(
            {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": ELICIT}
        )
        await asked.wait()
        for params in ({}, {"requestId": [1]}, {"requestId": 8}, {"requestId": 7}):
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            place.line.say(note)
        await stopped.wait()
        await client.call_tool("x")
        assert not [
            each for each in place.line.sent if each.get("id") == 7 and "method" not in each
        ]

    async def wait(params: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    asked, stopped = asyncio.Event(), asyncio.Event()
    use(work, on_elicit=wait)


def test_questions_end_with_the_connection() -> None:
    async def work(client: Client, place: Place) -> None:
        place.line.say(
            {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": ELICIT}
        )
        await asked.wait()

    async def wait(params: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    asked, stopped = asyncio.Event(), []
    use(work, on_elicit=wait)
    assert stopped == [True]


def test_a_handler_may_close_the_client() -> None:
    async def main() -> None:
        async def close(params: Any) -> Any:
            await client.close()
            done.set()

        place, done = Place(revision=NEWEST_HANDSHAKE), asyncio.Event()
        client = Client(place, on_elicit=close)
        await client.connect()
        place.line.say(
            {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": ELICIT}
        )
        await done.wait()
        assert place.line.closed

    run(main())


def test_a_handler_that_will_not_end_does_not_keep_close_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(diagnostics, "CANCEL_TIMEOUT_S", 0.05)

    async def work(client: Client, place: Place) -> None:
        place.line.say(
            {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": ELICIT}
        )
        await asked.wait()
        await client.close()
        assert "1 callbacks were cancelled" in caplog.text
        done.set()

    async def stubborn(params: Any) -> Any:
        asked.set()
        while not done.is_set():
            try:
                await done.wait()
            except asyncio.CancelledError:
                continue

    asked, done = asyncio.Event(), asyncio.Event()
    use(work, on_elicit=stubborn)


def test_a_server_cannot_ask_without_end() -> None:
    async def work(client: Client, place: Place) -> None:
        for id in range(MAX_HANDLERS + 1):
            place.line.say(
                {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": ELICIT}
            )
        reply = await place.line.until_reply(MAX_HANDLERS)
        assert reply["error"]["code"] == -32603
        place.line.say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        assert (await place.line.until_reply("p"))["result"] == {}

    async def wait(params: Any) -> Any:
        await asyncio.Event().wait()

    use(work, on_elicit=wait)


# -- what is told ----------------------------------------------------------------------------


def send_notifications(notes: list[tuple[str, Any]], **options: Any) -> None:
    async def work(client: Client, place: Place) -> None:
        for method, params in notes:
            note = {"jsonrpc": "2.0", "method": method}
            place.line.say(note if params is None else note | {"params": params})
        assert (await client.call_tool("x")).text == "fine"
        await asyncio.sleep(0.01)

    use(work, **options)


NOTES: list[tuple[str, Any]] = [
    ("notifications/message", {"level": "info", "data": {"a": 1}, "logger": "l"}),
    ("notifications/tools/list_changed", None),
    ("notifications/resources/list_changed", {}),
    ("notifications/resources/updated", {"uri": "x:r"}),
    ("notifications/acme", {"b": 2}),
    ("notifications/initialized", None),
]


def test_notifications_are_passed_to_their_callbacks() -> None:
    seen: list[Any] = []

    async def later(method: str, params: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        seen.append((method, params))

    send_notifications(
        NOTES,
        on_log=lambda message: seen.append((message.level, message.data, message.logger)),
        on_list_changed=seen.append,
        on_resource_updated=seen.append,
        on_notification=later,
    )
    assert seen == [
        ("info", {"a": 1}, "l"),
        "tools",
        "resources",
        "x:r",
        ("notifications/acme", {"b": 2}),
    ]


def test_notification_without_a_callback_of_its_own_goes_to_on_notification() -> None:
    seen: list[str] = []
    send_notifications(NOTES, on_notification=lambda method, params: seen.append(method))
    assert seen == [method for method, _ in NOTES[:-1]]
    send_notifications(NOTES)


def test_a_listener_that_raises_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*args: Any) -> None:
        raise ValueError("mine")

    async def fail_later(*args: Any) -> None:
        raise ValueError("mine, too")

    send_notifications(NOTES, on_log=fail, on_list_changed=fail_later, on_notification=fail)
    assert caplog.text.count("raised an exception") == 5


def test_params_that_cannot_be_read_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    send_notifications(
        [("notifications/message", {"level": "loud"}), ("notifications/resources/updated", {})],
        on_log=seen.append,
        on_resource_updated=seen.append,
    )
    assert not seen
    assert caplog.text.count("invalid params") == 2


def test_slow_listener_misses_notifications(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(noticing, "MAX_WAITING_CALLBACKS", 3)
    seen: list[str] = []

    async def slow(method: str, params: dict[str, Any]) -> None:
        seen.append(method)
        await asyncio.Event().wait()

    send_notifications([("notifications/acme", None)] * 10, on_notification=slow)
    assert len(seen) == 1
    assert "one notification dropped" in caplog.text


# -- checks ----------------------------------------------------------------------------------


def odd(place: Place) -> None:
    place.answers["tools/list"] = {"tools": [], "resultType": "complete"}


def listing(validate: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(client: Client, place: Place) -> None:
        odd(place)
        await client.list_tools()

    use(work, LATEST, validate=validate)


def test_a_server_is_judged_when_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    listing("off", caplog)
    assert not caplog.text
    listing("warn", caplog)
    assert "mcp.caching.hints-present" in caplog.text


def test_validate_raise_refuses_a_reply_that_breaks_a_rule(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        listing("raise", caplog)
    assert caught.value.rule.startswith("mcp.")
    assert caught.value.source


@pytest.mark.parametrize("revision", [NEWEST_HANDSHAKE, LATEST])
def test_a_server_in_order_passes(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(client: Client, place: Place) -> None:
        result = text("fine")
        if revision == LATEST:
            meta = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
            result |= {"resultType": "complete", "_meta": meta}
        place.answers["tools/call"] = result
        assert (await client.call_tool("x")).text == "fine"

    use(work, revision, validate="raise")
    assert not caplog.text


@pytest.mark.parametrize("mode", ["warn", "raise"])
def test_in_a_batch_only_the_reply_that_breaks_a_rule_is_refused(mode: str) -> None:
    async def main() -> None:
        place = Place(revision="2025-03-26")
        place.answers["ping"] = SILENT
        async with Client(place, revision="2025-03-26", validate=mode) as client:
            async with client.batch() as batch:
                calls = [batch.submit("ping") for _ in range(3)]
            ids = [each["id"] for each in place.line.sent[-1]]
            replies = [{"jsonrpc": "2.0", "id": id, "result": {}} for id in ids]
            replies[1]["result"] = {"_meta": 5}
            place.line.say(replies)
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert [found[0], found[2]] == [{}, {}]
            assert isinstance(found[1], RemoteProtocolError) is (mode == "raise")

    run(main())


def test_a_listener_that_ends_everything_leaves_no_fault_behind() -> None:
    class End(BaseException):
        pass

    async def work(client: Client, place: Place) -> None:
        session = client._connection.session
        assert session is not None
        assert session._validator is not None
        faulty = {"jsonrpc": "2.0", "method": "notifications/acme", "params": {"_meta": 5}}
        with pytest.raises(End):
            session._feed_checked(json.dumps(faulty).encode(), None)
        assert session._validator.fault_of(1) is None

    def end(method: str, params: Any) -> None:
        raise End

    use(work, validate="raise", on_notification=end)


# -- threads, and handlers that are cancelled ------------------------------------------------


def test_roots_are_asked_for_on_a_thread_like_all_else() -> None:
    threads: list[threading.Thread] = []

    def roots() -> list[str]:
        threads.append(threading.current_thread())
        return ["file:///a"]

    assert ask("roots/list", roots=roots) == {"roots": [{"uri": "file:///a"}]}
    assert threads[0] is not threading.main_thread()
    # Nobody has to answer before the program can end.
    assert threads[0].daemon


def test_handlers_that_wait_take_no_thread_from_others() -> None:
    answered = threading.Event()

    def wait(params: Any) -> Any:
        answered.wait(20)

    async def work(client: Client, place: Place) -> None:
        for id in range(MAX_HANDLERS):
            request = {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": ELICIT}
            place.line.say(request)
        await client.call_tool("x")
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"

    try:
        use(work, on_elicit=wait)
    finally:
        answered.set()


def test_threads_of_questions_that_were_cancelled_still_count() -> None:
    answered = threading.Event()
    begun: list[int] = []

    async def work(client: Client, place: Place) -> None:
        client._connection.threads._max_threads = 2
        for id in range(3):
            request = {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": ELICIT}
            place.line.say(request)
            cancel = {"method": "notifications/cancelled", "params": {"requestId": id}}
            if id < 2:
                while len(begun) == id:  # a call that has no thread yet is not started
                    await asyncio.sleep(0.005)
                place.line.say({"jsonrpc": "2.0", **cancel})
        reply = await place.line.until_reply(2)
        assert reply["error"]["code"] == -32603

    def wait(params: Any) -> Any:
        begun.append(1)
        answered.wait(20)

    try:
        use(work, on_elicit=wait)
    finally:
        answered.set()


async def cancelled(params: Any) -> Any:
    raise asyncio.CancelledError


async def cancelled_within(params: Any) -> Any:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


@pytest.mark.parametrize("handler", [cancelled, cancelled_within])
def test_a_handler_that_is_cancelled_by_its_own_doing_is_an_error(handler: Any) -> None:
    assert ask("sampling/createMessage", SAMPLE, on_sample=handler) == -32603


def test_a_listener_that_is_cancelled_by_its_own_doing_stops_no_other() -> None:
    seen: list[str] = []

    async def listen(method: str, params: dict[str, Any]) -> None:
        seen.append(method)
        if len(seen) == 1:
            raise asyncio.CancelledError

    send_notifications([("notifications/acme", None)] * 3, on_notification=listen)
    assert len(seen) == 3


@pytest.mark.parametrize("revision", [V2025_06_18, NEWEST_HANDSHAKE])
def test_a_callback_may_refuse_with_a_code_of_the_application(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(params: Any) -> Any:
        raise RequestError(-32050, "no model is free")

    with caplog.at_level(logging.WARNING):
        code = ask("sampling/createMessage", SAMPLE, revision, on_sample=refuse)
    assert code == -32050
    assert "error code -32050 is reserved in MCP 2026-07-28" in caplog.text
