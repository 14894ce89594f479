"""The routes of a listener: the era of each message, sessions, streams and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rigs.http_endpoint import Plain, PlainResponder, request, serving
from tests.rigs.messages import HANDSHAKE, META, PER_REQUEST, frame, initialize_params
from trunkline import Context, HttpLimits, HttpSettings, Server
from trunkline.auth import AuthSettings
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.store.errors import StoreFull
from trunkline.store.memory import MemoryStore
from trunkline.transports.http.request import HttpRequest

JSON = "application/json"
EVENTS = "text/event-stream"
BOTH = f"{JSON}, {EVENTS}"


class Stage:
    """A server, and the gate that its handlers wait for."""

    def __init__(self, **options: Any) -> None:
        self.gate = asyncio.Event()
        self.app = app = Server("tests", **options)

        @app.tool
        async def echo(text: str) -> str:
            return text

        @app.tool
        async def reports(ctx: Context, times: int = 1) -> str:
            for n in range(times):
                await ctx.progress(n + 1)
            return "reported"

        @app.tool
        async def hold() -> str:
            await self.gate.wait()
            return "held"

        @app.tool
        async def polls(ctx: Context) -> str:
            closed = ctx.close_stream()
            await self.gate.wait()
            return f"closed {closed}"


def run(
    work: Callable[[Stage, Plain], Awaitable[None]],
    settings: HttpSettings | None = None,
    limits: HttpLimits | None = None,
    auth: Any = None,
    **options: Any,
) -> None:
    async def main() -> None:
        stage = Stage(**options)
        async with serving(stage.app, settings, limits, auth) as plain:
            await work(stage, plain)

    asyncio.run(main())


def text_of(answered: PlainResponder) -> str:
    found: str = answered.messages[-1]["result"]["content"][0]["text"]
    return found


WITH_TOKEN = {"progressToken": "t"}


# -- the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "HEAD", "PUT", "OPTIONS"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/", "/nothing"])
def test_each_route_but_those_for_health_checks_host_and_origin(method: str, path: str) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        assert plain.send(request(method, path, host="evil.example")).status == 421
        assert plain.send(request(method, path, origin="https://evil.example")).status == 403

    run(work)


def test_health_checks_answer_any_host_and_reveal_nothing() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        for path in ("/healthz", "/readyz"):
            found = plain.send(request("GET", path, host="10.0.0.1:8000"))
            assert (found.status, found.body) == (200, b"ok\n")
            assert plain.send(request("HEAD", path)).status == 200
            refused = plain.send(request("POST", path))
            assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
        plain.service.stop()
        assert plain.send(request("GET", "/healthz")).status == 200
        waits = plain.send(request("GET", "/readyz"))
        assert (waits.status, waits.body) == (503, b"unavailable\n")

    run(work)


@pytest.mark.parametrize(
    ("known", "status"),
    [
        ({"content_type": "text/plain"}, 415),
        ({"content_type": None}, 415),
        ({"content_type": "application/json-seq"}, 415),
        ({"accept": "text/html"}, 406),
        ({"accept": "application/json;q=0"}, 406),
    ],
)
def test_a_post_is_json_and_accepts_json_or_events(known: dict[str, Any], status: int) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        assert plain.send(request(**known), frame("ping")).status == status
        right = {"content_type": "Application/JSON; charset=utf-8", "accept": "*/*"}
        answered = plain.call("echo", arguments={"text": "a"}, **right)
        assert (await answered.over()).status == 200

    run(work)


def test_an_unknown_method_is_405_and_the_known_ones_are_named() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        for method in ("PUT", "HEAD", "OPTIONS", "PATCH"):
            refused = plain.send(request(method))
            assert (refused.status, refused.headers["allow"]) == (405, "POST, GET, DELETE")
        assert plain.send(request("GET", "/nothing")).status == 404

    run(work)


# -- the era of a message ----------------------------------------------------------------------


def test_a_version_without_a_handshake_or_an_unknown_one_makes_a_single_request() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        answered = await plain.call("echo", arguments={"text": "a"}).over()
        assert text_of(answered) == "a"
        assert "mcp-session-id" not in answered.headers
        unknown = plain.send(request(protocol_version="2031-01-01"), frame("ping"))
        assert unknown.status == 400
        assert unknown.json["error"]["data"]["requested"] == "2031-01-01"
        # Even with the id of a session.
        session = plain.open()
        single = plain.call("echo", arguments={"text": "b"}, session_id=session.id)
        assert text_of(await single.over()) == "b"
        session.delete()

    run(work)


def test_initialize_opens_a_session_and_the_id_leads_to_it() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        assert session.opened.json["result"]["protocolVersion"] == HANDSHAKE
        assert text_of(await session.call("echo", arguments={"text": "a"}).over()) == "a"
        # The header of the version may be left out.
        answered = session.call("echo", arguments={"text": "b"}, protocol_version=None)
        assert text_of(await answered.over()) == "b"
        assert session.delete().status == 204
        for gone in (session.call("echo"), session.get(), session.delete()):
            assert gone.status == 404

    run(work)


def test_request_without_session_id_is_400_with_its_id() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        refused = plain.send(request(), frame("tools/list", id="seven"))
        assert (refused.status, refused.json["id"]) == (400, "seven")
        assert "Mcp-Session-Id is missing" in refused.json["error"]["message"]
        assert plain.send(request(), b"[]").status == 400
        for method in ("GET", "DELETE"):
            assert plain.send(request(method)).status == 400
        # A version in the body alone: the header is missing.
        body = frame("tools/list", {"_meta": META})
        refused = plain.send(request(), body)
        assert (refused.status, refused.json["error"]["code"]) == (400, -32020)

    run(work)


def test_request_with_meta_of_a_stateless_revision_but_no_version_is_refused_for_that() -> None:
    meta = {"io.modelcontextprotocol/clientInfo": META["io.modelcontextprotocol/clientInfo"]}
    body = frame("tools/list", {"_meta": meta}, id="seven")

    async def both_eras(stage: Stage, plain: Plain) -> None:
        refused = await plain.send(request(), body).over()
        assert (refused.status, refused.json["id"]) == (400, "seven")
        assert refused.json["error"]["code"] == -32602
        assert "needs a protocol version" in refused.json["error"]["message"]

    run(both_eras)

    async def sessions_alone(stage: Stage, plain: Plain) -> None:
        refused = plain.send(request(), body)
        assert (refused.status, refused.json["error"]["code"]) == (400, -32600)
        assert "Mcp-Session-Id is missing" in refused.json["error"]["message"]

    run(sessions_alone, revisions=[HANDSHAKE])


def test_get_and_delete_are_405_where_no_revision_has_sessions() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        for method in ("GET", "DELETE"):
            refused = plain.send(request(method, session_id="x"))
            assert (refused.status, refused.headers["allow"]) == (405, "POST")
        params = initialize_params()
        opened = plain.send(request(), frame("initialize", params))
        assert opened.status == 400
        assert opened.json["error"]["data"]["supported"] == [PER_REQUEST]
        assert len(plain.endpoint.sessions) == 0

    run(work, revisions=[PER_REQUEST])
    # And by the version of the request.

    async def versioned(stage: Stage, plain: Plain) -> None:
        assert plain.send(request("GET", protocol_version=PER_REQUEST)).status == 405

    run(versioned)


def test_invalid_json_or_message_is_400() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        for body, code in ((b"{", -32700), (b"{}", -32600), (b"7", -32600), (b"\xff", -32700)):
            for known in ({}, {"protocol_version": PER_REQUEST}, session.headers):
                refused = plain.send(request(**known), body)
                assert refused.status == 400, (body, known)
                assert refused.json["error"]["code"] == code, (body, known)
        session.delete()

    run(work)


def test_a_body_that_is_too_large_is_413_with_the_id_that_was_read() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        head = b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"name":"'
        extra = {"mcp-method": "tools/call", "mcp-name": "echo"}
        for known in ({"protocol_version": PER_REQUEST, "extra": extra}, session.headers):
            refused = plain.send(request(**known), Oversize(head, 10**9, 10**6))
            assert (refused.status, refused.json["id"]) == (413, "big")
        assert plain.send(request(), Oversize(head, 10**9, 10**6)).status == 413
        session.delete()

    run(work)


# -- forms of the answer -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "kind", "reported"),
    [(JSON, JSON, 0), (EVENTS, EVENTS, 2), (BOTH, EVENTS, 2), (None, EVENTS, 2)],
)
@pytest.mark.parametrize("is_single", [True, False])
def test_a_client_gets_what_it_accepts(
    accept: str | None, kind: str, reported: int, is_single: bool
) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        given: dict[str, Any] = {"arguments": {"times": 2}, "accept": accept}
        if is_single:
            answered = plain.call("reports", meta={**META, **WITH_TOKEN}, **given)
        else:
            session = plain.open()
            answered = session.call("reports", meta=WITH_TOKEN, **given)
        await answered.over()
        assert answered.headers["content-type"] == kind
        assert len(answered.messages) == reported + 1
        assert text_of(answered) == "reported"

    run(work)


def test_progress_for_a_json_only_client_is_sent_on_its_get_stream() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        listening = session.get()
        answered = await session.call("reports", meta=WITH_TOKEN, accept=JSON).over()
        assert text_of(answered) == "reported"
        (progress,) = listening.messages
        assert progress["method"] == "notifications/progress"

    run(work)


def test_a_batch_is_answered_by_one_batch_where_the_revision_has_them() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open("2025-03-26")
        call = json.loads(frame("tools/call", {"name": "echo", "arguments": {"text": "a"}}))
        calls = [{**call, "id": n} for n in (1, 2)]
        told = {"jsonrpc": "2.0", "method": "notifications/x"}
        asked = request(**session.headers)
        answered = await plain.send(asked, json.dumps([*calls, told]).encode()).over()
        assert answered.status == 200
        assert {each["id"] for each in answered.json} == {1, 2}
        # Without a request there is no answer.
        told_only = plain.send(request(**session.headers), json.dumps([told, told]).encode())
        assert (told_only.status, told_only.body) == (202, b"")
        # As events, what precedes the answers and then all of them.
        reports = {"name": "reports", "arguments": {}, "_meta": WITH_TOKEN}
        mixed = [calls[0], {**call, "id": 3, "params": reports}]
        answered = await plain.send(request(**session.headers), json.dumps(mixed).encode()).over()
        progress, batch = answered.messages
        assert progress["method"] == "notifications/progress"
        assert {each["id"] for each in batch} == {1, 3}
        newer = plain.open("2025-06-18")
        refused = plain.send(request(**newer.headers), json.dumps(calls).encode())
        assert refused.status == 400

    run(work)


# -- principals --------------------------------------------------------------------------------


def user_of(asked: HttpRequest) -> str | None:
    name = asked.header(b"x-user")
    if name == b"nobody":
        raise PermissionError
    if name == b"broken":
        raise ValueError("secret")
    return None if name is None else name.decode()


async def slow_user_of(asked: HttpRequest) -> str | None:
    await asyncio.sleep(0)
    return user_of(asked)


def by(function: Any) -> AuthSettings:
    return AuthSettings(verifiers=[function], required=False)


@pytest.mark.parametrize("hook", [user_of, slow_user_of])
def test_a_session_and_its_streams_do_not_exist_for_another_principal(hook: Any) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        params = initialize_params()
        ada, bob = {"x-user": "ada"}, {"x-user": "bob"}
        opened = await plain.send(request(extra=ada), frame("initialize", params)).over()
        id = opened.headers["mcp-session-id"]
        for extra in (bob, {}):
            for method in ("POST", "GET", "DELETE"):
                asked = request(method, session_id=id, extra=extra)
                theirs = await plain.send(asked, frame("ping")).over()
                unknown = request(method, session_id="x" * 43, extra=extra)
                other = await plain.send(unknown, frame("ping")).over()
                assert theirs.status == 404
                assert (theirs.body, theirs.headers) == (other.body, other.headers)
        mine = await plain.send(request(session_id=id, extra=ada), frame("ping")).over()
        assert mine.status == 200

    run(work, auth=by(hook))


def test_a_caller_that_is_refused_is_401_and_a_hook_that_fails_is_500(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        refused = plain.send(request(extra={"x-user": "nobody"}), frame("ping"))
        assert (await refused.over()).status == 401
        failed = plain.send(request(extra={"x-user": "broken"}), frame("ping"))
        assert (await failed.over()).status == 500
        assert b"secret" not in failed.body
        assert "principal of a request cannot be determined" in caplog.text

    run(work, auth=by(user_of))


def test_disconnect_during_authentication_ends_the_request() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        params = initialize_params()
        gone = plain.send(request(), frame("initialize", params))
        gone.hang_up()
        while plain.routes._tasks:
            await asyncio.sleep(0)
        assert len(plain.endpoint.sessions) == 0
        assert gone.status == 0

    run(work, auth=by(slow_user_of))


def test_a_client_that_sends_too_often_is_429_by_principal_or_address() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        def ask(client: str, user: str | None = None) -> PlainResponder:
            extra = {} if user is None else {"x-user": user}
            return plain.single("no/such", client=client, extra=extra)

        assert [(await ask("10.0.0.1").over()).status for _ in range(3)] == [404, 404, 429]
        refused = await ask("10.0.0.1").over()
        assert refused.headers["retry-after"] == "2"
        assert (await ask("10.0.0.2").over()).status == 404
        # A principal has a bucket of its own, whatever the address.
        for client in ("10.0.0.1", "10.0.0.3"):
            assert (await ask(client, "ada").over()).status == 404
        assert (await ask("10.0.0.4", "ada").over()).status == 429
        plain.now += 2
        assert (await ask("10.0.0.1").over()).status == 404

    run(work, HttpSettings(rate=0.5, burst=2), auth=by(user_of))


# -- streams -----------------------------------------------------------------------------------


def test_a_get_stream_has_what_belongs_to_no_request() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        assert session.get(accept=JSON).status == 406
        listening = session.get()
        assert (listening.status, listening.events) == (200, [("1-0", None)])
        stage.app.add_tool(lambda: "x", "another")
        (changed,) = await listening.received(1)
        assert changed["method"] == "notifications/tools/list_changed"

    run(work)


def test_the_end_of_the_connection_cancels_a_single_request_and_not_one_of_a_session() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        held, single = session.call("hold"), plain.call("hold")
        while stage.app._core.runtime.in_flight < 2:
            await asyncio.sleep(0)
        held.hang_up()
        single.hang_up()
        while stage.app._core.runtime.in_flight > 1:
            await asyncio.sleep(0)
        (connection,) = plain.service._sessions.values()
        assert len(connection.runner.at_work) == 1
        stage.gate.set()

    run(work)


@pytest.mark.parametrize(
    ("revision", "closes"),
    [("2025-03-26", False), ("2025-06-18", False), ("2025-11-25", True), (PER_REQUEST, False)],
)
def test_close_stream_closes_where_the_revision_polls(revision: str, closes: bool) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        if revision == PER_REQUEST:
            called = plain.call("polls")
        else:
            session = plain.open(revision)
            called = session.call("polls")
        while not stage.app._core.runtime.in_flight or called.is_over is not closes:
            await asyncio.sleep(0)
        assert called.is_over is closes
        if closes:
            # The client polls: before the answer, and after it.
            assert called.events == [("1-0", None)]
            first = session.get("1-0")
            while not first.status:
                await asyncio.sleep(0)
            assert first.messages == []
            stage.gate.set()
            assert text_of(await first.over()) == "closed True"
            ((id, _),) = first.events
            assert id == "1-1"
            again = await session.get("1-0").over()
            assert again.events == first.events
        else:
            stage.gate.set()
            assert text_of(await called.over()) == "closed False"

    run(work)


def test_close_stream_does_nothing_for_a_client_that_accepts_json_only() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        stage.gate.set()
        answered = await plain.open().call("polls", accept=JSON).over()
        assert text_of(answered) == "closed False"

    run(work)


def test_an_answer_that_comes_while_the_stream_is_resumed_is_sent_once() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        called = await session.call("polls").over()
        assert session.http.log is not None
        read, reads = session.http.log.read, 0

        async def slow_read(stream: int, after: int) -> Any:
            nonlocal reads
            reads += 1
            events = await read(stream, after)
            if reads == 1:
                # The answer is sent between the look at the log and the response.
                stage.gate.set()
                while stage.app._core.runtime.in_flight:
                    await asyncio.sleep(0)
            return events

        session.http.log.read = slow_read  # type: ignore[method-assign]  # of this one
        resumed = await session.get("1-0").over()
        assert called.events == [("1-0", None)]
        assert text_of(resumed) == "closed True"
        assert [id for id, _ in resumed.events] == ["1-1"]

    run(work)


def test_events_that_come_while_a_stream_is_resumed_are_sent_once_and_in_order() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        listening = session.get()
        session.http.send(b'{"n":1}')
        listening.hang_up()
        assert session.http.log is not None
        read, sent = session.http.log.read, 1

        async def slow_read(stream: int, after: int) -> Any:
            nonlocal sent
            events = await read(stream, after)
            if sent < 4:
                sent += 1
                session.http.send(b'{"n":%d}' % sent)
            return events

        session.http.log.read = slow_read  # type: ignore[method-assign]  # of this one
        resumed = session.get("1-0")
        await resumed.received(4)
        session.http.send(b'{"n":5}')
        assert resumed.events == [(f"1-{n}", {"n": n}) for n in range(1, 6)]

    run(work)


@pytest.mark.parametrize("id", ["", "x", "1-9", "9-0", "0-0", "1-0-0", "-", "1-" + "9" * 60])
def test_an_event_id_that_is_not_one_of_the_session_is_400(id: str) -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        listening = session.get()
        held = session.call("hold")
        refused = await session.get(id).over()
        assert refused.status == 400
        # What is open stays as it is.
        stage.gate.set()
        assert text_of(await held.over()) == "held"
        assert not listening.is_over

    run(work)


def test_events_that_are_not_kept_any_more_are_400_and_not_a_silent_gap() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        session.get()
        for n in range(1, 8):
            session.http.send(b'{"n":%d}' % n)
        assert (await session.get("1-2").over()).status == 400
        resumed = session.get("1-4")
        assert await resumed.received(3) == [{"n": n} for n in (5, 6, 7)]

    run(work, limits=HttpLimits(replay_events=3))


def test_an_event_that_a_full_store_did_not_keep_cannot_be_skipped() -> None:
    class Full(MemoryStore):
        async def append(self, key: Any, data: bytes, **given: Any) -> Any:
            if data.endswith(b'{"n":2}'):
                raise StoreFull("entries", 1)
            return await super().append(key, data, **given)

    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        session.get()
        for n in range(1, 4):
            session.http.send(b'{"n":%d}' % n)
        assert (await session.get("1-1").over()).status == 400
        assert await session.get("1-2").received(1) == [{"n": 3}]

    run(work, store=Full())


def test_a_store_that_does_not_answer_is_503() -> None:
    class Broken(MemoryStore):
        async def read(self, *_: Any, **__: Any) -> Any:
            raise StoreFull("entries", 1)

    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        session.get()
        session.http.send(b'{"n":1}')
        assert (await session.get("1-0").over()).status == 503

    run(work, store=Broken())


def test_a_client_that_goes_away_while_it_resumes_takes_nothing_with_it() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        listening = session.get()
        session.http.send(b'{"n":1}')
        listening.hang_up()
        gone = session.get("1-0")
        gone.hang_up()
        while plain.routes._tasks:
            await asyncio.sleep(0)
        assert gone.status == 0
        assert await session.get("1-0").received(1) == [{"n": 1}]

    run(work)


# -- CORS --------------------------------------------------------------------------------------


def test_each_response_to_a_page_that_may_read_it_says_so() -> None:
    origin = "https://app.example"

    async def work(stage: Stage, plain: Plain) -> None:
        def allows(answered: PlainResponder) -> bool:
            return answered.headers.get("access-control-allow-origin") == origin

        asked = {"access-control-request-method": "POST"}
        preflight = plain.send(request("OPTIONS", origin=origin, extra=asked))
        assert preflight.status == 204
        assert allows(preflight)
        session = plain.open(origin=origin)
        listening = session.get()
        session.http.send(b'{"n":1}')
        listening.hang_up()
        resumed = session.get("1-0")
        await resumed.received(1)
        ended = await session.call("reports", meta=WITH_TOKEN).over()
        replayed = await session.get("2-0").over()
        answered = [
            session.opened,
            listening,
            resumed,
            ended,
            replayed,
            await session.call("echo", arguments={"text": "a"}).over(),
            session.tell("notifications/x"),
            plain.single("no/such", origin=origin),
            plain.send(request(origin=origin, content_type="text/plain")),
            session.delete(),
        ]
        assert [each.status for each in answered] == [200] * 6 + [202, 404, 415, 204]
        assert all(map(allows, answered))
        assert not allows(plain.single("no/such"))

    run(work, HttpSettings(cors=[origin]))


def test_preflight_is_405_without_cors() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        asked = {"access-control-request-method": "POST"}
        assert plain.send(request("OPTIONS", extra=asked)).status == 405

    run(work)


# -- time --------------------------------------------------------------------------------------


def test_a_session_expires_and_what_it_had_is_gone() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        assert stage.app.stats().connections == 1
        plain.now += 1800
        plain.endpoint.reap(plain.now)
        assert session.call("echo").status == 404
        while stage.app._core.runtime.connections:
            await asyncio.sleep(0)

    run(work)


def test_when_all_sessions_are_in_use_a_new_one_is_503() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open()
        listening = session.get()
        params = initialize_params()
        refused = plain.send(request(), frame("initialize", params))
        assert (refused.status, refused.headers["retry-after"]) == (503, "10")
        listening.hang_up()
        plain.open()
        assert session.call("echo").status == 404

    run(work, limits=HttpLimits(sessions=1))


def test_each_element_of_a_batch_counts_for_the_rate() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open("2025-03-26")
        call = json.loads(frame("tools/call", {"name": "echo", "arguments": {"text": "a"}}))
        told = {"jsonrpc": "2.0", "method": "notifications/x"}

        async def ask(client: str, *messages: Any) -> PlainResponder:
            asked = request(client=client, **session.headers)
            return await plain.send(asked, json.dumps(messages).encode()).over()

        def served(answered: PlainResponder) -> list[int]:
            assert answered.status == 200
            return [each["id"] for each in answered.json if "result" in each]

        calls = [{**call, "id": n} for n in range(5)]
        answered = await ask("10.0.0.1", *calls)
        assert [each["id"] for each in answered.json] == [0, 1, 2, 3, 4]
        assert served(answered) == [0, 1, 2]
        refused = answered.json[3]["error"]
        assert (refused["message"], refused["data"]) == (
            "Rate limit exceeded",
            {"retryAfterMs": 2000},
        )
        # The next message is refused as a whole, and another client is not.
        assert (await ask("10.0.0.1", *calls)).status == 429
        assert served(await ask("10.0.0.2", *calls)) == [0, 1, 2]
        # A batch that has waited is served as far as the rate allows by then.
        plain.now += 4
        assert served(await ask("10.0.0.1", *calls)) == [0, 1]
        # Notifications count too.
        assert served(await ask("10.0.0.3", told, told, *calls)) == [0]

    run(work, HttpSettings(rate=0.5, burst=3))


def test_elements_of_a_batch_count_for_the_principal() -> None:
    async def work(stage: Stage, plain: Plain) -> None:
        session = plain.open("2025-03-26", extra={"x-user": "ada"})
        plain.now += 100
        pings = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(5)]
        asked = request(client="10.0.0.1", **session.headers)
        answered = await plain.send(asked, json.dumps(pings).encode()).over()
        assert ["result" in each for each in answered.json] == [True] * 3 + [False] * 2
        asked = request(client="10.0.0.2", **session.headers)
        assert (await plain.send(asked, json.dumps(pings[:1]).encode()).over()).status == 429

    run(work, HttpSettings(rate=0.5, burst=3), auth=by(user_of))
