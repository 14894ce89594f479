"""Middleware around every request, and the ready ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from trunkline import Client, Context, Extension, RequestError, Server, ToolError
from trunkline.errors import PeerError
from trunkline.jsonrpc import Policy
from trunkline.mcp import CallToolRequestParams, ListToolsResult, ReadResourceResult
from trunkline.server import ErrorMap, RateLimit, RequestLog, RequestTimer, ResultCache
from trunkline.spec.revisions import REVISIONS

BOTH = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
Proceed = Callable[[], Awaitable[Any]]


def make() -> Server:
    app = Server("test")
    app.calls = []  # type: ignore[attr-defined]  # for the tests

    @app.tool
    def double(a: int) -> int:
        app.calls.append(a)  # type: ignore[attr-defined]  # as above
        return 2 * a

    @app.tool
    async def fail(kind: str) -> str:
        raise {"key": KeyError, "value": ValueError, "tool": ToolError}[kind]("secret")

    @app.resource("note://{name}")
    def note(name: str) -> str:
        app.calls.append(name)  # type: ignore[attr-defined]  # as above
        return name

    @app.prompt
    def review(style: str) -> str:
        return style

    @app.completion(prompt="review", argument="style")
    def styles(typed: str) -> list[str]:
        return [f"{typed}!"]

    @app.method("example/own")
    async def own(value: int = 0) -> dict[str, int]:
        return {"value": value}

    return app


def talk(app: Server, script: Callable[[Client], Awaitable[Any]], revision: str) -> Any:
    async def main() -> Any:
        async with Client(app, revision=revision) as client:
            return await script(client)

    return asyncio.run(main())


async def refused(call: Awaitable[Any]) -> PeerError:
    with pytest.raises(PeerError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_request_is_seen_with_its_params_and_its_end(revision: str) -> None:
    app, seen = make(), []

    @app.middleware
    async def audit(context: Context, proceed: Proceed) -> Any:
        end: Any = None
        try:
            end = value = await proceed()
            return value
        except RequestError as error:
            end = error.kind
            raise
        finally:
            subject = getattr(context.params, "arguments", context.params)
            seen.append((context.method, context.name, subject, end))

    async def script(client: Client) -> None:
        await client.list_tools()
        await client.list_prompts()
        await client.call_tool("double", {"a": 1})
        await client.read_resource("note://x")
        await client.complete(prompt="review", argument="style", value="q")
        await client.request("example/own", {"value": 3})
        assert "Unknown tool" in str(await refused(client.call_tool("nope")))
        assert "not found" in str(await refused(client.read_resource("other://x")))
        assert (await refused(client.request("example/none"))).code == -32601
        if revision >= "2025-11-25":
            assert (await client.call_tool("double", {"a": "x"})).is_error
        else:
            assert (await refused(client.call_tool("double", {"a": "x"}))).code == -32602

    talk(app, script, revision)
    found = {(method, name): (subject, end) for method, name, subject, end in seen}
    listed = found["tools/list", "tools/list"][1]
    assert [tool.name for tool in listed.tools] == ["double", "fail"]
    assert found["prompts/list", "prompts/list"][1].prompts[0].name == "review"
    assert found["resources/read", "note://x"][1] == "x"
    assert found["completion/complete", "review"][1] == ["q!"]
    assert found["example/own", "example/own"][1] == {"value": 3}
    assert found["tools/call", "nope"][1] == "TOOL_NOT_FOUND"
    assert found["resources/read", "other://x"][1] == "RESOURCE_NOT_FOUND"
    assert found["example/none", "example/none"][1] == "METHOD_NOT_FOUND"
    doubled, invalid = (each for each in seen if each[1] == "double")
    assert doubled[2:] == ({"a": 1}, 2)
    assert invalid[2] == {"a": "x"}
    assert getattr(invalid[3], "is_error", invalid[3]) in (True, "INVALID_TOOL_ARGUMENTS")


@BOTH
def test_params_and_results_can_be_changed(revision: str) -> None:
    app = make()

    @app.middleware
    async def change(context: Context, proceed: Proceed) -> Any:
        if isinstance(context.params, CallToolRequestParams) and context.name == "triple":
            context.params = replace(context.params, name="double", arguments={"a": 10})
            return 1 + await proceed()
        value = await proceed()
        if isinstance(value, ListToolsResult):
            return replace(value, tools=value.tools[:1])
        return value

    async def script(client: Client) -> None:
        assert (await client.call_tool("triple")).value == 21
        assert [tool.name for tool in await client.list_tools()] == ["double"]

    talk(app, script, revision)


@BOTH
def test_members_that_were_not_sent_are_none_and_stay_absent(revision: str) -> None:
    app, seen = make(), []

    @app.middleware
    async def look(context: Context, proceed: Proceed) -> Any:
        if context.method in ("tools/list", "completion/complete", "tools/call"):
            seen.append(context.params)
            context.params = context.params
        return await proceed()

    async def script(client: Client) -> None:
        await client.list_tools()
        await client.complete(prompt="review", argument="style", value="q")
        assert (await client.call_tool("double", {"a": 4})).value == 8

    talk(app, script, revision)
    listed, completed, called = seen
    assert listed.cursor is None
    assert completed.context is None
    assert called.task is None
    assert called.arguments == {"a": 4}
    assert "UNSET" not in f"{seen!r}"


@BOTH
def test_a_request_can_be_answered_without_its_method(revision: str) -> None:
    app = make()

    @app.middleware
    async def answer(context: Context, proceed: Proceed) -> Any:
        return {
            ("tools/call", "double"): 5,
            ("tools/call", "ghost"): "boo",
            ("resources/read", "note://x"): "kept",
            ("resources/read", "ghost://x"): "boo",
            ("prompts/get", "ghost"): "boo",
            ("example/own", "example/own"): {"value": 7},
            ("tools/list", "tools/list"): ListToolsResult([]),
        }.get((context.method, context.name)) or await proceed()

    async def script(client: Client) -> None:
        assert (await client.call_tool("double", {"a": 1})).value == 5
        assert (await client.call_tool("ghost")).value == "boo"
        assert (await client.read_resource("note://x")).contents[0].text == "kept"
        assert (await client.read_resource("ghost://x")).contents[0].text == "boo"
        assert (await client.get_prompt("ghost")).messages[0].content.text == "boo"
        assert (await client.request("example/own"))["value"] == 7
        assert await client.list_tools() == []

    talk(app, script, revision)
    assert app.calls == []  # type: ignore[attr-defined]  # see `make`


@BOTH
def test_a_request_can_be_refused(revision: str) -> None:
    app = make()

    @app.middleware
    async def refuse(context: Context, proceed: Proceed) -> Any:
        if context.method == "tools/list":
            raise RequestError("INVALID_REQUEST", "not for you")
        if context.name == "double":
            raise ToolError("closed")
        return await proceed()

    async def script(client: Client) -> None:
        error = await refused(client.list_tools())
        assert (error.code, error.message) == (-32600, "not for you")
        result = await client.call_tool("double", {"a": 1})
        assert (result.is_error, result.text) == (True, "closed")

    talk(app, script, revision)


@BOTH
def test_a_middleware_that_returns_nothing_is_an_error_of_the_server(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = make()

    @app.middleware
    async def forgets(context: Context, proceed: Proceed) -> Any:
        value = await proceed()
        return None if context.method == "tools/list" else value

    assert talk(app, lambda client: refused(client.list_tools()), revision).code == -32603
    assert "end it with `return await proceed()`" in caplog.text


def test_streams_and_subscriptions_go_through_middleware() -> None:
    app, seen = make(), []

    @app.middleware
    async def note(context: Context, proceed: Proceed) -> Any:
        seen.append(context.method)
        return await proceed()

    async def script(client: Client) -> None:
        async with client.listen(tools=True, resources=True, uris=["note://x"]) as changes:
            app.add_tool(lambda: 1, f"new-{client.revision}")
            assert (await asyncio.wait_for(anext(changes), 5)).kind == "tools"

    talk(app, script, "2026-07-28")
    talk(app, script, "2025-11-25")
    assert {"subscriptions/listen", "resources/subscribe", "resources/unsubscribe"} <= set(seen)


def test_a_question_inside_a_result_passes_through_middleware() -> None:
    app, seen = Server("test"), []

    @app.middleware
    async def note(context: Context, proceed: Proceed) -> Any:
        seen.append(context.method)
        return await proceed()

    @app.tool
    async def ask(context: Context) -> str:
        answer = await context.elicit("Sure?", bool)
        return f"{answer.action} {answer.content}"

    async def main() -> None:
        for revision in ("2025-11-25", "2026-07-28"):
            async with Client(
                app, revision=revision, on_elicit=lambda _: {"value": True}
            ) as client:
                assert (await client.call_tool("ask")).text == "accept True"

    asyncio.run(main())
    assert seen.count("tools/call") == 3


def test_tasks_go_through_middleware() -> None:
    app = Server("test")

    @app.middleware
    async def louder(context: Context, proceed: Proceed) -> Any:
        value = await proceed()
        return value.upper() if isinstance(value, str) else value

    @app.tool(task="required")
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    async def main() -> None:
        for revision in ("2025-11-25", "2026-07-28"):
            async with Client(app, revision=revision) as client:
                assert (await client.call_tool("work")).text == "DONE"

    asyncio.run(main())


def test_methods_of_extensions_go_through_middleware_also_refused_ones() -> None:
    extension, seen = Extension("com.example/stars"), []

    @extension.method("stars/list")
    async def stars() -> list[str]:
        return ["sun"]

    app = Server("test", extensions=[extension])

    @app.middleware
    async def note(context: Context, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except RequestError as error:
            seen.append((context.method, error.kind))
            raise

    async def script(client: Client) -> None:
        await refused(client.request("stars/list"))

    talk(app, script, "2026-07-28")
    assert ("stars/list", "MISSING_REQUIRED_CLIENT_CAPABILITY") in seen


def test_unreadable_params_are_refused_in_the_words_of_the_profile() -> None:
    async def script(client: Client) -> list[Any]:
        errors = [await refused(client.request("tools/list", {"cursor": 5})) for _ in range(2)]
        return [(each.code, each.message, each.data) for each in errors]

    answers = []
    for look in (None, lambda ctx: None, lambda ctx: ctx.params):
        app = Server("test", policy=Policy.erlmcp())

        if look is not None:

            @app.middleware
            async def looking(ctx: Context, proceed: Proceed, look: Any = look) -> Any:
                look(ctx)
                return await proceed()

        answers.append(talk(app, script, "2025-11-25"))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0][:2] == (-32602, "Invalid params")


def test_params_are_for_middleware() -> None:
    app = Server("test")

    @app.tool
    async def look(context: Context) -> str:
        return str(hasattr(context, "params"))

    assert talk(app, lambda client: client.call_tool("look"), "2025-11-25").text == "False"


def test_the_module_of_the_pipeline_is_loaded_for_middleware_only() -> None:
    import subprocess
    import sys

    script = """
import asyncio, sys
from trunkline import Client, Server
app = Server("test")
app.add_tool(lambda: 1, "one")
async def main():
    async with Client(app) as client:
        await client.call_tool("one")
asyncio.run(main())
print([name for name in sys.modules if "pipeline" in name or name.endswith("server.middleware")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.stdout.strip() == b"[]", done.stderr


# -- the ready ones --------------------------------------------------------------------------


def test_requests_are_logged_without_arguments(caplog: pytest.LogCaptureFixture) -> None:
    app = make()
    app.middleware(RequestLog())

    async def script(client: Client) -> None:
        await client.call_tool("double", {"a": 4711})
        await client.call_tool("fail", {"kind": "key"})
        await client.call_tool("fail", {"kind": "wrong", "more": 1})
        await refused(client.call_tool("nope"))

    with caplog.at_level(logging.INFO, "trunkline.requests"):
        talk(app, script, "2025-11-25")
    lines = [each for each in caplog.records if each.name == "trunkline.requests"]
    shown = [(each.levelname, each.getMessage().partition(" after ")[0]) for each in lines]
    assert shown == [
        ("INFO", "'tools/call' 'double' of 'trunkline': ok"),
        ("WARNING", "'tools/call' 'fail' of 'trunkline': KeyError"),
        ("WARNING", "'tools/call' 'fail' of 'trunkline': failed"),
        ("WARNING", "'tools/call' 'nope' of 'trunkline': TOOL_NOT_FOUND"),
    ]
    assert "4711" not in "".join(each.getMessage() for each in lines)


def test_requests_are_timed_also_those_that_fail() -> None:
    app, times = make(), []
    app.middleware(RequestTimer(lambda context, seconds: times.append((context.name, seconds))))

    async def script(client: Client) -> None:
        await client.call_tool("fail", {"kind": "value"})
        await refused(client.call_tool("nope"))

    talk(app, script, "2025-11-25")
    assert [name for name, seconds in times if seconds >= 0] == ["fail", "nope"]


def test_a_client_beyond_its_rate_is_refused_until_time_has_passed() -> None:
    app, now = make(), [0.0]
    limit = RateLimit(2, burst=2, methods=["tools/call"], clock=lambda: now[0])
    app.middleware(limit)

    async def script(client: Client) -> None:
        for a in (1, 2):
            assert (await client.call_tool("double", {"a": a})).value == 2 * a
        error = await refused(client.call_tool("double", {"a": 3}))
        assert (error.code, error.data) == (-32603, {"retryAfterMs": 501})
        await client.list_tools()
        async with Client(app, revision="2025-11-25") as other:
            assert (await other.call_tool("double", {"a": 4})).value == 8
        now[0] += 0.5
        assert (await client.call_tool("double", {"a": 5})).value == 10
        await refused(client.call_tool("double", {"a": 6}))

    talk(app, script, "2025-11-25")
    assert app.calls == [1, 2, 4, 5]  # type: ignore[attr-defined]  # see `make`
    for bad in ({"rate": 0}, {"rate": 1, "burst": 0}):
        with pytest.raises(ValueError, match="a rate is above 0"):
            RateLimit(**bad)


def test_clients_that_are_gone_are_forgotten_by_a_rate_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("trunkline.server.api.middleware.MAX_CLIENTS", 3)
    limit = RateLimit(1)
    for number in range(10):
        limit._take(str(number))
    assert list(limit._buckets) == ["7", "8", "9"]


@BOTH
def test_results_are_kept_for_equal_requests(revision: str) -> None:
    app, now = make(), [0.0]
    cache = ResultCache(10, tools=["double"], clock=lambda: now[0])
    app.middleware(cache)

    async def script(client: Client) -> None:
        for _ in range(3):
            assert (await client.call_tool("double", {"a": 1})).value == 2
            assert (await client.read_resource("note://x")).contents[0].text == "x"
        assert (await client.call_tool("double", {"a": 2})).value == 4
        assert app.calls == [1, "x", 2]  # type: ignore[attr-defined]  # see `make`
        now[0] += 10
        await client.call_tool("double", {"a": 1})
        cache.clear()
        await client.call_tool("double", {"a": 1})
        for _ in range(2):
            assert (await client.call_tool("fail", {"kind": "tool"})).is_error
        async with Client(app, revision=revision) as other:
            await other.call_tool("double", {"a": 1})
        assert app.calls == [1, "x", 2, 1, 1, 1]  # type: ignore[attr-defined]  # see `make`

    talk(app, script, revision)


def test_a_cache_holds_so_many_results_and_may_be_shared() -> None:
    app = make()
    app.middleware(ResultCache(10, tools=["double"], size=1, shared=True))

    async def script(client: Client) -> None:
        await client.call_tool("double", {"a": 1})
        async with Client(app, revision="2025-11-25") as other:
            await other.call_tool("double", {"a": 1})
            await other.call_tool("double", {"a": 2})
        await client.call_tool("double", {"a": 1})

    talk(app, script, "2025-11-25")
    assert app.calls == [1, 2, 1]  # type: ignore[attr-defined]  # see `make`


@BOTH
def test_exceptions_are_mapped_to_errors(revision: str) -> None:
    app = make()
    mapped: dict[type[Exception], Any] = {
        KeyError: lambda error: ToolError(f"no {error.args[0]}"),
        ValueError: "INVALID_PARAMS",
    }
    app.middleware(ErrorMap(mapped))

    async def script(client: Client) -> None:
        assert (await client.call_tool("fail", {"kind": "key"})).text == "no secret"
        assert (await refused(client.call_tool("fail", {"kind": "value"}))).code == -32602
        assert (await client.call_tool("fail", {"kind": "tool"})).text == "secret"

    talk(app, script, revision)


@BOTH
def test_a_result_of_the_wire_is_sent_as_it_is(revision: str) -> None:
    app = make()

    @app.middleware
    async def answer(context: Context, proceed: Proceed) -> Any:
        return ReadResourceResult([]) if context.method == "resources/read" else await proceed()

    async def script(client: Client) -> None:
        assert (await client.read_resource("note://x")).contents == []

    talk(app, script, revision)
