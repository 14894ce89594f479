"""Extensions: who may have which, who is served, and what is sent to whom."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec.json import encode

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.stars_extension import STARS, Star, meta, reply_to, stars
from trunkline import Client, Context, Extension, RequestError, Server
from trunkline.engine.request import Answer
from trunkline.errors import PeerError
from trunkline.mcp.meta import Caller, read_caller
from trunkline.mcp.types import ClientCapabilities
from trunkline.server.dispatch.revision import ServerRevision
from trunkline.server.registry.extensions import declared

# -- what an extension may be called, and have -----------------------------------------------


def test_an_extension_with_a_bad_id_settings_or_type_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="is not an extension id"):
        Extension("stars")
    with pytest.raises(TypeError, match="cannot be sent"):
        Extension(STARS, settings={"most": object()})
    with pytest.raises(ValueError, match="is a result type of MCP itself"):
        Extension(STARS, result_types=("complete",))


@pytest.mark.parametrize("name", ["tools/list", "ping", "tasks/get", "tasks/list", "initialize"])
def test_a_method_that_mcp_has_is_refused(name: str) -> None:
    async def serve() -> None: ...

    with pytest.raises(ValueError, match="is a method of"):
        Extension(STARS).method(name)(serve)


def test_an_extension_may_have_what_the_specification_gives_it() -> None:
    tasks = Extension("io.modelcontextprotocol/tasks", result_types=("task",))
    tasks.serve("tasks/get", lambda *_: None)
    with pytest.raises(ValueError, match="'tasks/list' is a method of MCP"):
        tasks.serve("tasks/list", lambda *_: None)


def test_a_method_is_registered_once_and_with_parentheses() -> None:
    extension = stars()

    async def again() -> None: ...

    with pytest.raises(ValueError, match="already"):
        extension.method("stars/list")(again)
    with pytest.raises(TypeError, match="parentheses"):
        extension.method(again)  # type: ignore[arg-type]  # that is the point


def test_a_signature_that_cannot_be_a_methods_is_refused_at_once() -> None:
    def unfit(callback: asyncio.Task[None]) -> None: ...

    with pytest.raises(TypeError):
        Extension(STARS).method("stars/watch")(unfit)


# -- what is advertised ----------------------------------------------------------------------


def test_extension_is_advertised_in_discover_with_its_settings() -> None:
    app = Server("a", extensions=[stars(settings={"most": 5})])
    assert reply_to(app, "server/discover")["result"]["capabilities"]["extensions"] == {
        STARS: {"most": 5}
    }


def test_nothing_is_advertised_where_there_is_none() -> None:
    assert "extensions" not in reply_to(Server("a"), "server/discover")["result"]["capabilities"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_a_handshake_declares_extensions_but_not_that_of_tasks(revision: str) -> None:
    app = Server("a", extensions=[stars()])
    app.add_tool(lambda: 1, "long", task="optional")
    declared = app._core.revision(revision).initialized().capabilities.extensions
    assert declared == {STARS: stars().settings}


# -- who is served ---------------------------------------------------------------------------


def test_extension_method_is_served_to_a_client_that_declares_it() -> None:
    app = Server("a", extensions=[stars()])
    result = reply_to(app, "stars/list", _meta=meta(stars={}), limit=1)["result"]
    assert result["result"] == [{"name": "star 0"}]
    assert result["resultType"] == "complete"
    assert "io.modelcontextprotocol/serverInfo" in result["_meta"]


def test_params_that_do_not_fit_are_refused() -> None:
    app = Server("a", extensions=[stars()])
    error = reply_to(app, "stars/list", _meta=meta(stars={}), limit="many")["error"]
    assert error["code"] == -32602
    assert "limit" in error["message"]


@pytest.mark.parametrize("_meta", [META, meta(), meta(other={})])
def test_extension_method_without_declaration_is_refused_with_required_capabilities(
    _meta: dict[str, Any],
) -> None:
    error = reply_to(Server("a", extensions=[stars()]), "stars/list", _meta=_meta)["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {STARS: {}}}}


def test_extension_declared_by_an_earlier_request_does_not_count() -> None:
    async def main() -> None:
        async with connected(Server("a", extensions=[stars()]), PER_REQUEST) as wire:
            wire.ask(1, "stars/list", {"_meta": meta(stars={})})
            wire.ask(2, "stars/list", {"_meta": META})
            assert "result" in await wire.answer(1)
            assert (await wire.answer(2))["error"]["code"] == -32021

    asyncio.run(main())


def test_a_method_that_is_always_served_needs_no_declaration() -> None:
    assert reply_to(Server("a", extensions=[stars()]), "stars/count")["result"]["count"] == 2


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_in_a_session_the_declaration_of_initialize_counts(revision: str) -> None:
    app = Server("a", extensions=[stars()])

    @app.tool
    async def settings(context: Context) -> str:
        return str(context.extension(STARS))

    async def main() -> None:
        async with Client(app, revision=revision, extensions={STARS: {"colour": "red"}}) as client:
            assert client.server_extensions == {STARS: stars().settings}
            found = await client.request("stars/list", {"limit": 1})
            assert found["result"] == [{"name": "star 0"}]
            assert (await client.call_tool("settings")).text == "{'colour': 'red'}"
        async with Client(app, revision=revision) as client:
            assert (await client.request("stars/count"))["count"] == 2
            assert (await client.call_tool("settings")).text == "None"
            with pytest.raises(PeerError) as caught:
                await client.request("stars/list")
            assert caught.value.code == -32600
            assert caught.value.data == {"requiredCapabilities": {"extensions": {STARS: {}}}}

    asyncio.run(main())


@pytest.mark.parametrize("extensions", [[], "x", {STARS: 1}, {STARS: {}, "other": None}])
def test_strange_extensions_in_initialize_do_not_end_it(extensions: Any) -> None:
    async def main() -> None:
        async with connected(Server("a", extensions=[stars()]), PER_REQUEST) as wire:
            params = {
                "protocolVersion": "2025-11-25",
                "clientInfo": {"name": "x", "version": "1"},
                "capabilities": {"extensions": extensions},
            }
            wire.ask(1, "initialize", params)
            assert (await wire.answer(1))["result"]["protocolVersion"] == "2025-11-25"

    asyncio.run(main())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18"])
def test_a_session_has_no_methods_of_the_tasks_extension(revision: str) -> None:
    app = Server("a")
    app.add_tool(lambda: 1, "long", task="optional")
    assert not {"tasks/get", "tasks/update"} & set(app._core.revision(revision).methods)


def test_a_server_that_was_not_extended_has_no_such_method() -> None:
    assert reply_to(Server("a"), "stars/list", _meta=meta(stars={}))["error"]["code"] == -32601


def test_methods_of_an_official_extension_are_not_served_without_it() -> None:
    served: dict[str, Any] = {"tasks/get": print, "tools/list": print}
    app = Server("a")
    assert list(ServerRevision(app._core, PER_REQUEST, served).methods) == ["tools/list"]
    # In the revision whose core has it, it is served like the rest.
    assert set(ServerRevision(app._core, "2025-11-25", served).methods) == set(served)


def test_a_server_can_be_extended_and_an_extension_grow_while_it_is_served() -> None:
    async def main() -> None:
        app, extension = Server("a"), Extension(STARS)
        async with connected(app, PER_REQUEST) as wire:
            wire.ask(1, "stars/late", {"_meta": meta(stars={})})
            assert (await wire.answer(1))["error"]["code"] == -32601
            app.add_extension(extension)

            @extension.method("stars/late")
            async def late() -> dict[str, bool]:
                return {"late": True}

            wire.ask(2, "stars/late", {"_meta": meta(stars={})})
            assert (await wire.answer(2))["result"]["late"] is True

    asyncio.run(main())


def test_a_late_method_that_is_taken_is_refused_and_not_kept() -> None:
    extension = Extension(STARS)
    app = Server("a", extensions=[extension])
    app.method("stars/own")(lambda: None)
    with pytest.raises(ValueError, match="stars/own"):
        extension.serve("stars/own", lambda *_: None)
    assert extension.methods == {}


def test_a_handler_may_refuse_and_middleware_is_around_it() -> None:
    extension, seen = Extension(STARS), []

    @extension.method("stars/none")
    async def none() -> None:
        raise RequestError("INVALID_PARAMS", "no stars tonight")

    app = Server("a", extensions=[extension])

    @app.middleware
    async def watch(context: Context, proceed: Any) -> Any:
        seen.append(context.name)
        return await proceed()

    error = reply_to(app, "stars/none", _meta=meta(stars={}))["error"]
    assert (error["code"], error["message"]) == (-32602, "no stars tonight")
    assert seen == ["stars/none"]


def test_a_function_that_serves_by_itself_is_behind_the_same_gate() -> None:
    extension = Extension(STARS)
    extension.serve(
        "stars/raw",
        lambda request: Answer({**request.rev.empty(), "raw": True}),
    )
    app = Server("a", extensions=[extension])
    assert reply_to(app, "stars/raw")["error"]["code"] == -32021
    assert reply_to(app, "stars/raw", _meta=meta(stars={}))["result"]["raw"] is True


# -- what a request declares -----------------------------------------------------------------


def test_declared_gives_the_settings_of_this_request() -> None:
    caller = read_caller(encode(meta(stars={"colour": "red"}, plain={})))
    assert declared(caller, STARS) == {"colour": "red"}
    assert declared(caller, "com.example/plain") == {}
    assert declared(caller, "com.example/other") is None
    assert declared(None, STARS) is None
    assert declared(Caller(), STARS) is None


def test_declared_gives_a_copy() -> None:
    caller = Caller(
        protocol_version=PER_REQUEST,
        capabilities=ClientCapabilities(extensions={STARS: {"colours": ["red"]}}),
    )
    told = declared(caller, STARS)
    assert told is not None
    told["colours"].append("blue")
    assert declared(caller, STARS) == {"colours": ["red"]}


@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_a_declaration_in_a_revision_without_extensions_is_none(version: str | None) -> None:
    capabilities = ClientCapabilities(extensions={STARS: {}})
    assert declared(Caller(protocol_version=version, capabilities=capabilities), STARS) is None


# -- results of an extension's own type ------------------------------------------------------


def starring() -> Server:
    extension = stars()
    app = Server("a", extensions=[extension])

    @app.tool
    async def star(name: str) -> int:
        answer: int = extension.result("starred", {"star": name, "_meta": {"com.example/x": 1}})
        return answer

    @extension.method("stars/star", always=True)
    async def star_method() -> Any:
        return extension.result("starred", Star("vega"))

    return app


def test_a_tool_answers_with_a_type_that_the_client_declared() -> None:
    told = meta(stars={})
    call = reply_to(starring(), "tools/call", name="star", arguments={"name": "vega"}, _meta=told)
    result = call["result"]
    assert result["resultType"] == "starred"
    assert result["star"] == "vega"
    assert "content" not in result
    assert result["_meta"]["com.example/x"] == 1
    assert "io.modelcontextprotocol/serverInfo" in result["_meta"]


def test_the_tool_still_promises_what_it_completes_with() -> None:
    [tool] = reply_to(starring(), "tools/list")["result"]["tools"]
    assert tool["outputSchema"]["type"] == "integer"


def test_a_method_answers_with_a_type_that_the_client_declared() -> None:
    result = reply_to(starring(), "stars/star", _meta=meta(stars={}))["result"]
    assert (result["resultType"], result["name"]) == ("starred", "vega")


def test_result_type_that_the_client_did_not_declare_is_a_server_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "trunkline.server"):
        result = reply_to(starring(), "tools/call", name="star", arguments={"name": "v"})["result"]
        assert result["isError"] is True
        assert result["resultType"] == "complete"
        assert "invalid result" in result["content"][0]["text"]
        error = reply_to(starring(), "stars/star")["error"]
    assert error["code"] == -32603
    assert "did not declare" not in error["message"]
    assert "which the client did not declare" in caplog.text


def test_result_type_in_a_revision_without_them_is_a_server_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    params = {"name": "star", "arguments": {"name": "v"}}
    assert reply_to(starring(), "tools/call", "2025-11-25", **params)["result"]["isError"] is True
    assert "MCP 2025-11-25 has no result types" in caplog.text


def test_a_handler_can_ask_whether_results_of_own_types_are_accepted() -> None:
    extension = stars()
    app = Server("a", extensions=[extension])

    @app.tool
    async def look(context: Context) -> str:
        return str(extension.accepts_results(context))

    async def main() -> list[str]:
        found = []
        for revision in ("2025-11-25", "2026-07-28"):
            for options in ({}, {"extensions": {STARS: {}}}):
                async with Client(app, revision=revision, **options) as client:
                    found.append((await client.call_tool("look")).text)
        return found

    assert asyncio.run(main()) == ["False", "False", "False", "True"]


def test_a_server_that_lacks_the_extension_does_not_send_its_types(
    caplog: pytest.LogCaptureFixture,
) -> None:
    extension, app = stars(), Server("a")
    app.add_tool(lambda: extension.result("starred"), "star")
    result = reply_to(app, "tools/call", name="star", _meta=meta(stars={}))["result"]
    assert result["isError"] is True
    assert "which was not added to this server" in caplog.text


def test_a_result_is_of_a_known_type_and_has_members() -> None:
    extension = stars()
    with pytest.raises(ValueError, match="no result type 'shot'; it has starred"):
        extension.result("shot")
    with pytest.raises(TypeError, match="members of a result"):
        extension.result("starred", [1])
    for unfit in (float("nan"), object()):
        with pytest.raises(TypeError, match=r'an object at "star" cannot|contains a NaN'):
            extension.result("starred", {"star": unfit})
    with pytest.raises(ValueError, match="not one of the members"):
        extension.result("starred", {"resultType": "complete"})
