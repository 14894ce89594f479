"""Two principals of one server: nothing of one is seen, changed or counted by the other.

The principals differ in one part of their identity each: the subject, the issuer, the client or
the tenant. Each test does something as Ann, and then tries every method that can name it by an id
as another principal, over HTTP with signed tokens. The answer has to be that to an id that does not
exist, byte for byte, and what is Ann's goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults.auth.issuing import ANN, OTHERS, Who, auth
from tests.faults.http.serving import (
    SESSION,
    WAIT,
    Journal,
    Response,
    Served,
    Session,
    Wire,
    call,
    make_app,
    notification,
    serving,
    single_headers,
    text_of,
)
from tests.faults.http.test_websocket import got, opened, text
from tests.rigs.messages import META
from trunkline import Context, HttpSettings, Server, TaskSettings
from trunkline.server.api.middleware import ResultCache
from trunkline.spec.lookup import methods
from trunkline.spec.revisions import V2025_11_25, V2026_07_28

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = {"elicitation": {"form": {}}, "extensions": {TASKS: {}}}
WITH_TASKS = {**META, "io.modelcontextprotocol/clientCapabilities": CAPABILITIES}


def app_of(journal: Journal, app: Server) -> Server:
    @app.tool(task="required")
    async def job(key: str) -> str:
        """Run as a task."""
        journal.begun.append(key)
        await journal.gate(key).wait()
        return f"job {key}"

    @app.tool(task="required")
    async def asks(ctx: Context, key: str) -> str:
        """Run as a task that asks."""
        answer = await ctx.elicit("Who?", str)
        return f"{key} {answer.content}"

    @app.tool
    async def greet(ctx: Context) -> str:
        """Ask for a name, inside the result."""
        answer = await ctx.elicit("Who?", str, key="who")
        journal.begun.append(f"greeted {answer.content}")
        return f"Hello {answer.content}"

    @app.tool
    async def scopes(ctx: Context) -> str:
        """Return the scopes of the caller."""
        assert ctx.principal is not None
        return " ".join(sorted(ctx.principal.scopes))

    @app.resource("memo://all")
    async def memo() -> str:
        return "memo"

    return app


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    app, journal = make_app(tasks=TaskSettings(quick=0))
    settings = HttpSettings(old_sse=True, websocket=True)
    with serving(app_of(journal, app), journal, http=settings, auth=auth()) as found:
        yield found


@pytest.fixture(params=OTHERS.values(), ids=OTHERS)
def other(request: pytest.FixtureRequest) -> Who:
    found: Who = request.param
    return found


def session_of(served: Served, who: Who, **params: Any) -> Session:
    return Session(served, who.headers(), capabilities={"elicitation": {"form": {}}}, **params)


def ask(
    served: Served, who: Who, method: str, named: str | None = None, /, **params: Any
) -> Response:
    """Send a request that stands by itself."""
    with served.connect() as wire:
        return wire.ask(_single(wire, who, method, named, **params))


def _single(wire: Wire, who: Who, method: str, named: str | None = None, /, **params: Any) -> bytes:
    message = call(method, **params, _meta=WITH_TASKS)
    return wire.post(message, [*single_headers(method, named), *who.headers()])


def alike(one: Response, another: Response, *ids: str) -> None:
    """Check that two responses are equal, but for the ids that the client has sent itself."""
    texts = [one.timeless, another.timeless]
    for id in ids:
        texts = [each.replace(id.encode(), b"ID") for each in texts]
    assert texts[0] == texts[1]


# -- sessions and streams --------------------------------------------------------------------

# What a client can do with the id of a session.
WITH_SESSION: dict[str, Callable[[Session, Wire], bytes]] = {
    "a request": lambda s, w: s.post(w, call("tools/list")),
    "a call": lambda s, w: s.post(w, call("tools/call", name="note", arguments={"name": "x"})),
    "initialize": lambda s, w: s.post(w, call("initialize", protocolVersion=SESSION)),
    "a batch": lambda s, w: s.post(w, [call("ping")]),
    "a notification": lambda s, w: s.post(w, notification("notifications/initialized")),
    "a cancellation": lambda s, w: s.post(
        w, notification("notifications/cancelled", requestId="held")
    ),
    "progress": lambda s, w: s.post(
        w, notification("notifications/progress", progressToken=1, progress=1)
    ),
    "a response": lambda s, w: s.post(
        w, {"jsonrpc": "2.0", "id": 1, "result": {"action": "decline"}}
    ),
    "a stream": lambda s, w: s.get(w),
    "the events of a stream": lambda s, w: s.get(w, [("Last-Event-ID", "1-0")]),
    "those of none": lambda s, w: s.get(w, [("Last-Event-ID", "x")]),
    "its end": lambda s, w: w.head("DELETE", "/mcp", s.headers),
    "no JSON": lambda s, w: s.post(w, b"{"),
}


@pytest.mark.parametrize("what", WITH_SESSION.values(), ids=WITH_SESSION)
def test_session_of_another_principal_is_not_found(
    served: Served, other: Who, what: Callable[[Session, Wire], bytes]
) -> None:
    ann, thief = session_of(served, ANN), session_of(served, other)
    answers = []
    for id in (ann.id, "A" * len(ann.id)):
        thief.id = id
        with served.connect() as wire:
            answers.append(wire.ask(what(thief, wire)))
    assert answers[0].status == 404
    alike(*answers)
    assert ann.call("echo", text="still there").status == 200


def test_session_accepts_another_token_of_its_principal(served: Served) -> None:
    ann = session_of(served, ANN)
    for scopes in ("files:read", "files:read files:write", ""):
        ann.extra = ANN.headers(scope=scopes)
        # Each request has the scopes of its own token, not those that opened the session.
        assert text_of(ann.call("scopes").json) == scopes


def test_cancels_responses_and_event_ids_reach_only_their_own_session(
    served: Served, other: Who
) -> None:
    """A cancellation, a response, progress and event ids name what is in the own session."""
    ann, thief = session_of(served, ANN), session_of(served, other)
    key = f"held {ann.id}"
    message = call(
        "tools/call",
        "r1",
        name="held",
        arguments={"key": key, "says": 2},
        _meta={"progressToken": 1},
    )
    with served.connect() as wire, served.connect() as own:
        wire.send(ann.post(wire, message, [("Accept", "text/event-stream")]))
        assert wire.start().status == 200
        served.until(lambda: key in served.journal.begun)
        last = None
        while last is None:
            event = wire.event()
            assert event is not None
            last = event.get("id")
        found = []
        for place in (last, "999-1"):
            with thief.resume(place) as resumed:
                found.append(resumed.response())
        assert found[0].status == 400
        alike(*found)
        # The other has a stream too, and the same ids.
        own.send(thief.get(own))
        assert own.start().status == 200
        cancel = notification("notifications/cancelled", requestId="r1")
        assert thief.ask(cancel).status == 202
        answers = [
            thief.ask({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}})
            for id in (1, 10_000)
        ]
        alike(*answers)
        served.open_gate(key)
        answer = {}
        while "result" not in answer:
            answer = wire.message()
        assert text_of(answer) == f"held {key}"
        with served.connect() as ending:
            assert ending.ask(ending.head("DELETE", "/mcp", thief.headers)).status == 204
        assert key.encode() not in own.everything()


def test_a_question_in_a_session_is_not_answered_by_another(served: Served, other: Who) -> None:
    ann, thief = session_of(served, ANN), session_of(served, other)
    message = call("tools/call", "q1", name="greet", arguments={})
    with served.connect() as wire:
        wire.send(ann.post(wire, message, [("Accept", "text/event-stream")]))
        assert wire.start().status == 200
        question = wire.message()
        while question.get("method") != "elicitation/create":
            question = wire.message()
        content = {"action": "accept", "content": {"value": "mallory"}}
        thief.ask({"jsonrpc": "2.0", "id": question["id"], "result": content})
        right = {"action": "accept", "content": {"value": "Ann"}}
        assert ann.ask({"jsonrpc": "2.0", "id": question["id"], "result": right}).status == 202
        answer = wire.message()
        while "result" not in answer:
            answer = wire.message()
        assert text_of(answer) == "Hello Ann"
    assert "greeted mallory" not in served.journal.begun


def test_a_resource_is_subscribed_to_by_each_for_itself(served: Served, other: Who) -> None:
    ann, thief = session_of(served, ANN), session_of(served, other)
    with served.connect() as wire, served.connect() as own:
        wire.send(ann.get(wire))
        own.send(thief.get(own))
        assert (wire.start().status, own.start().status) == (200, 200)
        for each in (ann, thief):
            assert each.ask(call("resources/subscribe", uri="memo://all")).status == 200
        assert thief.ask(call("resources/unsubscribe", uri="memo://all")).status == 200
        app = served.listener._app.app
        served.on_loop(lambda: app.notify_resource_updated("memo://all"))
        told = wire.message()
        assert told["params"]["uri"] == "memo://all"
        # What follows on the stream of the other is not of the resource.
        with served.connect() as ending:
            assert ending.ask(ending.head("DELETE", "/mcp", thief.headers)).status == 204
        assert b"memo://all" not in own.everything()


# -- tasks -----------------------------------------------------------------------------------


# The methods that name a task, in each form, with params beside its id.
OF_SESSIONS: dict[str, dict[str, Any]] = {"tasks/get": {}, "tasks/result": {}, "tasks/cancel": {}}
OF_SINGLE_REQUESTS: dict[str, dict[str, Any]] = {
    "tasks/get": {},
    "tasks/cancel": {},
    "tasks/update": {"inputResponses": {}},
}


def test_every_method_that_names_a_task_is_tried_by_another_principal() -> None:
    for revision, tried in ((V2025_11_25, OF_SESSIONS), (V2026_07_28, OF_SINGLE_REQUESTS)):
        named = {row.name for row in methods(revision) if row.entry == "task"}
        assert named == set(tried)


def test_a_task_of_a_session_does_not_exist_for_another(served: Served, other: Who) -> None:
    ann, thief = session_of(served, ANN), session_of(served, other)
    made = {}
    for each in (ann, thief):
        message = call(
            "tools/call", name="job", arguments={"key": f"job {each.id}"}, task={"ttl": 60_000}
        )
        made[each] = each.ask(message).json["result"]["task"]["taskId"]
    id = made[ann]
    unknown = "0" * len(id)
    for method in OF_SESSIONS:
        answers = [thief.ask(call(method, taskId=each)) for each in (id, unknown)]
        assert answers[0].json["error"]["code"] == -32602
        alike(*answers, id, unknown)
    listed = thief.ask(call("tasks/list"))
    assert made[thief] in [each["taskId"] for each in listed.json["result"]["tasks"]]
    assert id not in listed.body.decode()
    for each in (ann, thief):
        served.open_gate(f"job {each.id}")
        assert text_of(each.ask(call("tasks/result", taskId=made[each])).json)


def test_a_task_does_not_exist_for_another(served: Served, other: Who) -> None:
    key = f"single {other}"
    created = ask(served, ANN, "tools/call", "job", name="job", arguments={"key": key})
    id = created.json["result"]["taskId"]
    unknown = "0" * len(id)
    for method, params in OF_SINGLE_REQUESTS.items():
        answers = [
            ask(served, other, method, each, taskId=each, **params) for each in (id, unknown)
        ]
        assert answers[0].json["error"]["code"] == -32602
        alike(*answers, id, unknown)
    # On a WebSocket and on the old transport it is the same.
    with opened(served, other.headers()) as wire:
        texts = []
        for number, each in enumerate((id, unknown)):
            wire.send(text({**call("tasks/get", number, taskId=each, _meta=WITH_TASKS)}))
            answer = got(wire).json
            texts.append({**answer, "id": 0})
        assert texts[0] == texts[1]
    assert ask(served, ANN, "tasks/get", id, taskId=id).json["result"]["status"] == "working"
    served.open_gate(key)


def test_tasks_of_one_do_not_count_for_the_limit_of_another(other: Who) -> None:
    app, journal = make_app(tasks=TaskSettings(quick=0, running_each=1))
    with serving(app_of(journal, app), journal, auth=auth()) as served:

        def begin(who: Who) -> Response:
            return ask(served, who, "tools/call", "job", name="job", arguments={"key": "counted"})

        assert "taskId" in begin(ANN).json["result"]
        assert "error" in begin(ANN).json
        assert "taskId" in begin(other).json["result"]
        served.open_gate("counted")


def test_the_question_of_a_task_is_not_answered_by_another(served: Served, other: Who) -> None:
    created = ask(served, ANN, "tools/call", "asks", name="asks", arguments={"key": "k"})
    id = created.json["result"]["taskId"]

    def until(status: str) -> Any:
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            found = ask(served, ANN, "tasks/get", id, taskId=id).json["result"]
            if found["status"] == status:
                return found
        pytest.fail(f"the task is not {status}")

    (key,) = until("input_required")["inputRequests"]
    for who, value in ((other, "mallory"), (ANN, "Ann")):
        responses = {key: {"action": "accept", "content": {"value": value}}}
        ask(served, who, "tasks/update", id, taskId=id, inputResponses=responses)
    assert until("completed")["result"]["content"][0]["text"] == "k Ann"


def test_a_stream_of_tasks_has_none_of_another(served: Served, other: Who) -> None:
    key = f"listened {other}"
    created = ask(served, ANN, "tools/call", "job", name="job", arguments={"key": key})
    id = created.json["result"]["taskId"]
    acknowledged = []
    for each in (id, "0" * len(id)):
        with served.connect() as wire:
            wanted = {"taskIds": [each]}
            wire.send(_single(wire, other, "subscriptions/listen", notifications=wanted))
            assert wire.start().status == 200
            acknowledged.append(wire.message()["params"]["notifications"])
    assert acknowledged == [{}, {}]
    served.open_gate(key)


def test_a_cursor_of_a_task_list_is_of_no_use_to_another(other: Who) -> None:
    app, journal = make_app(tasks=TaskSettings(quick=0))
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(app_of(journal, app), journal, auth=auth()) as served,
    ):
        patch.setattr("trunkline.server.tasks.methods._PAGE_TASKS", 1)
        ann, thief = session_of(served, ANN), session_of(served, other)
        for each in (ann, ann, thief, thief):
            message = call(
                "tools/call", name="job", arguments={"key": "cursor"}, task={"ttl": 60_000}
            )
            assert "task" in each.ask(message).json["result"]
        cursor = ann.ask(call("tasks/list")).json["result"]["nextCursor"]
        forged = cursor[:-4] + ("AAAA" if cursor[-4:] != "AAAA" else "BBBB")
        answers = [thief.ask(call("tasks/list", cursor=each)) for each in (cursor, forged)]
        assert answers[0].json["error"]["code"] == -32602
        alike(*answers, cursor, forged)
        assert ann.ask(call("tasks/list", cursor=cursor)).json["result"]["tasks"]
        served.open_gate("cursor")


# -- single requests -------------------------------------------------------------------------


def test_request_state_of_another_principal_is_refused_like_a_forged_one(
    served: Served, other: Who
) -> None:
    state = ask(served, ANN, "tools/call", "greet", name="greet", arguments={}).json["result"][
        "requestState"
    ]
    middle = len(state) // 2
    forged = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]

    def go_on(who: Who, given: str, name: str) -> Response:
        responses = {"who": {"action": "accept", "content": {"value": name}}}
        params = {"requestState": given, "inputResponses": responses}
        return ask(served, who, "tools/call", "greet", name="greet", arguments={}, **params)

    answers = [go_on(other, each, "mallory") for each in (state, forged)]
    assert answers[0].json["error"]["code"] == -32602
    alike(*answers)
    assert text_of(go_on(ANN, state, "Ann").json) == "Hello Ann"
    assert "greeted mallory" not in served.journal.begun


def test_a_request_is_not_cancelled_by_another(served: Served, other: Who) -> None:
    key = f"uncancelled {other}"
    with served.connect() as wire:
        params = {"name": "held", "arguments": {"key": key}}
        wire.send(_single(wire, ANN, "tools/call", "held", **params))
        served.until(lambda: key in served.journal.begun)
        message = {**notification("notifications/cancelled", requestId=1, _meta=WITH_TASKS)}
        headers = [*single_headers("notifications/cancelled"), *other.headers()]
        with served.connect() as theirs:
            assert theirs.ask(theirs.post(message, headers)).status == 202
        served.open_gate(key)
        assert text_of(wire.response().json) == f"held {key}"


def test_result_cache_is_separate_for_each_principal(other: Who) -> None:
    app = Server("cached")
    app.middleware(ResultCache(60, tools=["mine"]))

    @app.tool
    async def mine(ctx: Context) -> str:
        assert ctx.principal is not None
        return f"{ctx.principal.issuer} {ctx.principal.client_id} {ctx.tenant} {ctx.principal}"

    with serving(app, Journal(), auth=auth()) as served:
        found = [
            text_of(ask(served, who, "tools/call", "mine", name="mine", arguments={}).json)
            for who in (ANN, other, ANN)
        ]
        assert found[0] == found[2]
        assert found[0] != found[1]


def test_requests_of_one_do_not_count_for_the_rate_of_another(other: Who) -> None:
    with serving(http=HttpSettings(rate=0.001, burst=2), auth=auth()) as served:
        statuses = [ask(served, ANN, "tools/list").status for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert ask(served, other, "tools/list").status == 200
        # With another token, one is the same.
        assert ask(served, ANN, "tools/list").status == 429


# -- the old transport and WebSockets --------------------------------------------------------


def test_the_address_of_an_old_stream_does_not_exist_for_another(
    served: Served, other: Who
) -> None:
    with served.connect() as wire, served.connect() as posting:
        wire.send(wire.head("GET", "/sse", [("Accept", "text/event-stream"), *ANN.headers()]))
        assert wire.start().status == 200
        event = wire.event()
        assert event is not None
        target = event["data"]
        stolen = call("tools/call", name="echo", arguments={"text": "stolen"})
        unknown = target[:-4] + ("AAAA" if target[-4:] != "AAAA" else "BBBB")
        answers = [
            posting.ask(posting.post(stolen, other.headers(), target=each))
            for each in (target, unknown)
        ]
        assert answers[0].status == 404
        alike(*answers)
        own = call("ping", 7)
        assert posting.ask(posting.post(own, ANN.headers(), target=target)).status == 202
        assert wire.message()["id"] == 7


def test_a_websocket_has_the_principal_of_its_handshake(served: Served, other: Who) -> None:
    with opened(served, ANN.headers()) as ann, opened(served, other.headers()) as thief:
        for wire in (ann, thief):
            key = f"websocket {id(wire)}"
            params = {"name": "held", "arguments": {"key": key}, "_meta": WITH_TASKS}
            wire.send(text(call("tools/call", 5, **params)))
            served.until(lambda key=key: key in served.journal.begun)
        cancelled = notification("notifications/cancelled", requestId=5, _meta=WITH_TASKS)
        thief.send(text(cancelled))
        thief.send(text(call("ping", 6, _meta=WITH_TASKS)))
        served.open_gate(f"websocket {id(ann)}")
        assert text_of(got(ann).json) == f"held websocket {id(ann)}"
        served.open_gate(f"websocket {id(thief)}")
