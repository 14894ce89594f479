"""Connections of sessions and of single requests: what clients share, and what they never do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.rigs.http_endpoint import PlainResponder, request, serving
from tests.rigs.messages import META, PER_REQUEST, frame
from trunkline import Context, HttpSettings, Server, ServerLimits
from trunkline.accounts.client_key import principal_key
from trunkline.auth import AuthSettings, Principal
from trunkline.server.runtime import http_service as module
from trunkline.transports.http.request import HttpRequest

TASKS = "io.modelcontextprotocol/tasks"
WITH_TASKS = {
    **META,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
}


def user_of(request: HttpRequest) -> str | None:
    found = request.header(b"x-user")
    return None if found is None else found.decode()


BY_USER = AuthSettings(verifiers=[user_of], required=False)


def subject(ctx: Context) -> str:
    return "None" if ctx.principal is None else ctx.principal.subject


def as_user(name: str) -> dict[str, Any]:
    return {"extra": {"x-user": name}}


def content(answered: PlainResponder) -> Any:
    result = answered.messages[-1]["result"]
    assert not result.get("isError"), result
    return result["content"][0]["text"]


class Gates:
    """What handlers wait for, and what they have begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    def __getitem__(self, key: str) -> asyncio.Event:
        return self._gates.setdefault(key, asyncio.Event())

    async def at(self, key: str) -> None:
        while key not in self.begun:
            await asyncio.sleep(0)


def make_app(**settings: Any) -> tuple[Server, Gates]:
    app, gates = Server("tests", **settings), Gates()

    @app.tool
    async def me(ctx: Context) -> str:
        return subject(ctx)

    @app.tool
    async def hold(ctx: Context, key: str, padding: str = "") -> str:
        gates.begun.append(key)
        await gates[key].wait()
        return f"{key} of {subject(ctx)}"

    return app, gates


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]  # a coroutine function


# -- what is used again ------------------------------------------------------------------------


def test_a_connection_is_used_again_and_knows_the_principal_of_each_request() -> None:
    app, _ = make_app()

    async def main() -> None:
        async with serving(app, auth=BY_USER) as plain:
            for user in ("ada", "bob", "ada"):
                assert content(await plain.call("me", **as_user(user)).over()) == user
            assert content(await plain.call("me").over()) == "None"
            # All of them were served by one.
            assert len(plain.service._idle) == 1

    run(main)


def test_a_request_does_not_use_a_connection_on_which_something_is_left() -> None:
    app, gates = make_app()

    @app.tool
    async def deaf() -> str:
        gates.begun.append("deaf")
        while not gates["deaf"].is_set():
            try:
                await gates["deaf"].wait()
            except asyncio.CancelledError:
                continue
        return "deaf"

    async def main() -> None:
        async with serving(app, auth=BY_USER) as plain:
            first = plain.call("deaf", **as_user("ada"))
            await gates.at("deaf")
            first.hang_up()
            (left,) = plain.service._idle
            assert not left.is_free
            assert content(await plain.call("me", **as_user("bob")).over()) == "bob"
            (other,) = plain.service._idle
            assert other is not left
            assert left.principal == Principal(subject="ada")
            gates["deaf"].set()
            while app._core.runtime.in_flight:
                await asyncio.sleep(0)

    run(main)


@pytest.mark.parametrize("padding", ["", "x" * 5000])
def test_a_task_keeps_its_principal_when_its_connection_serves_another_client(padding: str) -> None:
    app, gates = make_app()

    @app.tool(task="required")
    async def long(ctx: Context, padding: str) -> str:
        gates.begun.append("long")
        await gates["long"].wait()
        return f"{subject(ctx)} {ctx.client.name}"

    async def main() -> None:
        async with serving(app, auth=BY_USER) as plain:
            made = await plain.call(
                "long", arguments={"padding": padding}, meta=WITH_TASKS, **as_user("ada")
            ).over()
            task = {"taskId": made.json["result"]["taskId"]}
            await gates.at("long")
            assert content(await plain.call("me", **as_user("bob")).over()) == "bob"
            accounts = {each.key: each for each in app._core.runtime.accounts}
            if padding:
                held = accounts[principal_key(Principal(subject="ada").key)].budget.used
                assert held >= len(padding)
            # Those of others do not find it.
            stolen = plain.single("tasks/get", task, meta=WITH_TASKS, **as_user("bob"))
            assert (await stolen.over()).json["error"]["code"] == -32602
            # Nor do they hear of it.
            listening = plain.single(
                "subscriptions/listen",
                {"notifications": {"taskIds": [task["taskId"]]}},
                meta=WITH_TASKS,
                **as_user("bob"),
            )
            (acknowledged,) = await listening.received(1)
            assert "taskIds" not in acknowledged["params"]["notifications"]
            listening.hang_up()
            gates["long"].set()
            while True:
                found = plain.single("tasks/get", task, meta=WITH_TASKS, **as_user("ada"))
                result = (await found.over()).json["result"]
                if result["status"] == "completed":
                    break
            assert result["result"]["content"][0]["text"] == "ada tests"
            assert app._core.runtime.budget.used == 0

    run(main)


def test_background_task_of_a_handler_keeps_its_principal() -> None:
    app, gates = make_app()
    left: list[asyncio.Task[str]] = []

    @app.tool
    async def leaves(ctx: Context) -> str:
        async def later() -> str:
            await gates["later"].wait()
            return subject(ctx)

        left.append(asyncio.create_task(later()))
        return "done"

    async def main() -> None:
        async with serving(app, auth=BY_USER) as plain:
            await plain.call("leaves", **as_user("ada")).over()
            held = plain.call("hold", arguments={"key": "held"}, **as_user("bob"))
            await gates.at("held")
            gates["later"].set()
            assert await left[0] == "ada"
            gates["held"].set()
            assert content(await held.over()) == "held of bob"

    run(main)


def test_a_task_of_a_client_without_a_name_belongs_to_its_address() -> None:
    app, gates = make_app()

    @app.tool(task="required")
    async def long() -> str:
        await gates["long"].wait()
        return "done"

    async def main() -> None:
        async with serving(app) as plain:
            for client in ("127.0.0.1", "127.0.0.2", "127.0.0.1"):
                await plain.call("long", meta=WITH_TASKS, client=client).over()
            tasks = list(app._core.services.tasks.running.values())
            first, second, third = (each.requestor for each in tasks)
            assert first == third != second
            gates["long"].set()
            while app._core.services.tasks.running:
                await asyncio.sleep(0)

    run(main)


def test_subscriptions_of_single_requests_end_with_them() -> None:
    app, _ = make_app()

    @app.resource("memo://a")
    def memo() -> str:
        return "a"

    async def main() -> None:
        async with serving(app) as plain:
            params = {"notifications": {"resourceSubscriptions": ["memo://a"]}}
            listening = [plain.single("subscriptions/listen", params) for _ in range(300)]
            for each in listening:
                await each.received(1)
            assert app._core.services.streams.open_streams == 300
            for each in listening:
                each.hang_up()
            assert app._core.services.streams.open_streams == 0
            assert app._core.runtime.budget.used == 0
            # Not those of connections that are kept, and not those of the others.
            assert app._core.services.streams.connections == {}
            assert len(plain.service._idle) == module._MAX_IDLE

    run(main)


# -- what clients share ------------------------------------------------------------------------


def test_a_client_has_so_many_requests_at_once_and_others_have_theirs() -> None:
    app, gates = make_app(limits=ServerLimits(in_flight=2))

    async def main() -> None:
        async with serving(app) as plain:
            held = [plain.call("hold", arguments={"key": key}) for key in ("a", "b")]
            refused = plain.call("me")
            assert refused.status == 503
            assert refused.headers["retry-after"] == "1"
            assert app.stats().refused == {"in_flight": 1}
            other = plain.call("me", client="127.0.0.2")
            assert (await other.over()).status == 200
            held[0].hang_up()
            while app._core.runtime.in_flight > 1:
                await asyncio.sleep(0)
            assert (await plain.call("me").over()).status == 200
            gates["b"].set()
            await held[1].over()

    run(main)


def test_requests_of_one_client_share_a_byte_budget_and_others_have_theirs() -> None:
    app, gates = make_app(limits=ServerLimits(connection_bytes=100_000, server_bytes=130_000))
    padding = "x" * 60_000

    async def main() -> None:
        async with serving(app) as plain:
            first = plain.call("hold", arguments={"key": "a", "padding": padding})
            await gates.at("a")
            second = await plain.call("hold", arguments={"key": "b", "padding": padding}).over()
            assert second.status == 503
            assert second.json["error"]["data"] == {"retryAfterMs": 1000}
            assert app.stats().refused == {"client_bytes": 1}
            # What is small is served, and so are others.
            assert (await plain.call("me").over()).status == 200
            other = plain.call(
                "hold", arguments={"key": "c", "padding": padding}, client="127.0.0.2"
            )
            await gates.at("c")
            for key in "abc":
                gates[key].set()
            assert content(await first.over()) == "a of None"
            assert content(await other.over()) == "c of None"
            third = plain.call("hold", arguments={"key": "b", "padding": padding})
            assert content(await third.over()) == "b of None"
            assert gates.begun == ["a", "c", "b"]

    run(main)


def test_a_client_that_holds_nothing_may_send_one_message_of_any_size() -> None:
    app, gates = make_app(limits=ServerLimits(connection_bytes=1000))
    gates["a"].set()

    async def main() -> None:
        async with serving(app) as plain:
            one = plain.call("hold", arguments={"key": "a", "padding": "x" * 100_000})
            assert content(await one.over()) == "a of None"

    run(main)


def test_subscriptions_of_one_client_share_its_budget() -> None:
    app, _ = make_app(limits=ServerLimits(connection_bytes=4000, server_bytes=4200))

    @app.resource("memo://{name}")
    def memo(name: str) -> str:
        return name

    async def main() -> None:
        async with serving(app) as plain:
            params = {"notifications": {"resourceSubscriptions": ["memo://" + "x" * 1000]}}
            listening = [plain.single("subscriptions/listen", params) for _ in range(2)]
            for each in listening:
                await each.received(1)
            refused = await plain.single("subscriptions/listen", params).over()
            assert "No room for the URIs" in refused.messages[0]["error"]["message"]
            assert app.stats().refused == {"client_bytes": 1}
            other = plain.single("subscriptions/listen", params, client="127.0.0.2")
            await other.received(1)
            for each in (*listening, other):
                each.hang_up()

    run(main)


def test_threads_of_one_client_are_one_share() -> None:
    app, _ = make_app(limits=ServerLimits(threads=4))

    async def main() -> None:
        async with serving(app) as plain:
            accounts = app._core.runtime.accounts
            one = plain.service.single(accounts.open("a"), None)
            two = plain.service.single(accounts.open("a"), None)
            other = plain.service.single(accounts.open("b"), None)
            shares = [each.on_free.args[0].runner.threads for each in (one, two, other)]  # type: ignore[union-attr]  # a partial
            assert shares[0] is shares[1] is not shares[2]
            for each in (one, two, other):
                each.on_free()  # type: ignore[union-attr]  # as above

    run(main)


def test_clients_behind_a_proxy_have_accounts_of_their_own_while_they_are_served() -> None:
    app, gates = make_app()
    settings = HttpSettings(trusted_proxies=["127.0.0.1"])

    async def main() -> None:
        async with serving(app, settings) as plain:
            busy = [
                plain.call("hold", arguments={"key": "a"}, extra={"x-forwarded-for": f"10.0.0.{n}"})
                for n in range(2)
            ]
            await gates.at("a")
            for n in range(20):
                extra = {"x-forwarded-for": f"10.0.1.{n}"}
                await plain.call("me", extra=extra).over()
            keys = {each.key for each in app._core.runtime.accounts if not each.is_many}
            assert keys == {"10.0.0.0", "10.0.0.1"}
            gates["a"].set()
            for each in busy:
                await each.over()
            assert all(each.is_many for each in app._core.runtime.accounts)

    run(main)


# -- headers and statuses ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"mcp-method": "tools/list"},
        {"mcp-method": "tools/call"},
        {"mcp-method": "tools/call", "mcp-name": "other"},
    ],
)
def test_a_single_request_needs_headers_that_agree_with_its_body(extra: dict[str, str]) -> None:
    app, _ = make_app()
    body = frame("tools/call", {"name": "me", "arguments": {}, "_meta": META})

    async def main() -> None:
        async with serving(app) as plain:
            answered = plain.send(request(protocol_version=PER_REQUEST, extra=extra), body)
            assert answered.status == 400
            assert answered.json["error"]["code"] == -32020
            right = {"mcp-method": "tools/call", "mcp-name": "me"}
            answered = plain.send(request(protocol_version=PER_REQUEST, extra=right), body)
            assert (await answered.over()).status == 200

    run(main)


def test_a_request_in_a_session_that_names_another_version_needs_the_headers_too() -> None:
    app, _ = make_app()
    body = {"name": "me", "arguments": {}, "_meta": META}

    async def main() -> None:
        async with serving(app) as plain:
            session = plain.open()
            refused = session.ask("tools/call", body)
            assert (refused.status, refused.json["error"]["code"]) == (400, -32020)
            session.delete()

    run(main)


def test_a_method_that_there_is_not_is_404_for_a_single_request_and_200_in_a_session() -> None:
    app, _ = make_app()

    async def main() -> None:
        async with serving(app) as plain:
            single = plain.single("no/such")
            assert (single.status, single.json["error"]["code"]) == (404, -32601)
            session = plain.open()
            asked = session.ask("no/such")
            assert (asked.status, asked.json["error"]["code"]) == (200, -32601)
            session.delete()

    run(main)


# -- the end -----------------------------------------------------------------------------------


def test_a_stopping_server_answers_what_runs_and_refuses_what_comes() -> None:
    app, gates = make_app()

    async def main() -> None:
        async with serving(app) as plain:
            session = plain.open()
            held = [
                plain.call("hold", arguments={"key": "single"}),
                session.call("hold", arguments={"key": "session"}),
            ]
            await gates.at("single")
            await gates.at("session")
            listening = plain.single("subscriptions/listen", {"notifications": {}})
            await listening.received(1)
            plain.service.stop()
            assert not plain.service.is_ready
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
            late = [
                plain.call("me"),
                session.call("me", id=9),
                session.get(),
                plain.send(request(), frame("initialize", params)),
            ]
            assert [each.status for each in late] == [503] * 4
            # Answered before the others have finished: the client can go elsewhere.
            await listening.over()
            assert listening.messages[-1]["result"] is not None
            assert not any(each.is_over for each in held)
            for key in ("single", "session"):
                gates[key].set()
            for each in held:
                assert content(await each.over()).endswith("of None")

    run(main)


def test_a_server_that_stops_at_once_cancels_what_runs() -> None:
    app, gates = make_app(limits=ServerLimits(grace=3600))

    async def main() -> None:
        async with serving(app) as plain:
            held = plain.call("hold", arguments={"key": "a"})
            await gates.at("a")
            plain.service.stop(at_once=True)
            answered = await held.over()
            assert answered.status == 503
            assert "error" in json.loads(answered.body)

    run(main)
