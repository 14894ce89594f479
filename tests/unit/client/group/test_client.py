"""A client of several servers: one list, routed calls, and failures that stay with their server."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from tests.canaries import CANARY
from tests.rigs.leaks import children
from tests.unit.client.scripted import Place, discovery, run
from trunkline import (
    Client,
    Context,
    HttpOptions,
    Server,
    SyncClient,
    TransportError,
    TrunklineError,
)
from trunkline.client.client import state_of
from trunkline.client.group import members
from trunkline.client.group.client import OF_ONE_SERVER, ClientGroup
from trunkline.errors import ConnectionLost, PeerError
from trunkline.jsonrpc import Policy
from trunkline.transports import Stdio
from trunkline.transports.addresses import Http

ERAS = ["2025-11-25", "2026-07-28"]

# A server that ends in the middle of a call.
DYING = """
import os
from trunkline import Server
app = Server("dying", version="1")

@app.tool
def die() -> str:
    os._exit(7)

@app.tool
def live() -> str:
    return os.environ.get("GIVEN", "") + os.environ.get("PATH", "")[:1]
"""


def bounded(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test to its end."""

    @wraps(test)
    def call(*args: Any, **kwargs: Any) -> None:
        run(test(*args, **kwargs))

    return call


def server(name: str, *tools: str) -> Server:
    app = Server(name, version="1.0.0", instructions=f"of {name}")
    for tool in tools or ("hello",):
        app.add_tool(lambda text="", tool=tool: f"{name}:{tool}:{text}", tool)

    @app.prompt
    def greet(who: str = "you") -> str:
        return f"{name} greets {who}"

    @app.resource(f"{name}://own")
    def own() -> str:
        return f"own of {name}"

    @app.resource("shared://both")
    def both() -> str:
        return f"both of {name}"

    @app.resource(f"{name}-notes://{{id}}")
    def note(id: str) -> str:
        return f"note {id} of {name}"

    @app.completion(argument="who", prompt="greet")
    def known(typed: str) -> list[str]:
        return [f"{name}-{typed}"]

    return app


def two(**others: Any) -> dict[str, Any]:
    return {"mcpServers": {"a": server("a"), "b": server("b"), **others}}


@pytest.fixture(params=ERAS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Which client it is


def test_one_server_is_a_plain_client_and_several_are_a_group(tmp_path: Path) -> None:
    assert type(Client({"mcpServers": {"a": server("a")}})) is Client
    assert type(Client(two())) is ClientGroup
    assert type(Client({"servers": {"a": {"command": "x"}, "b": {"command": "y"}}})) is ClientGroup
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://h/mcp"}}}')
    assert type(Client(path)) is type(Client(str(path))) is ClientGroup
    off = {"command": "z", "disabled": True}
    assert type(Client({"mcpServers": {"a": {"command": "x"}, "b": off}})) is Client


def test_a_subclass_of_the_client_talks_to_one_server() -> None:
    class Own(Client):
        pass

    assert type(Own({"mcpServers": {"a": server("a")}})) is Own
    with pytest.raises(ValueError) as caught:
        Own(two())
    assert str(caught.value) == (
        "the configuration has 2 servers, and only Client(...) and SyncClient(...) themselves "
        "talk to several"
    )


@bounded
async def test_one_server_has_no_namespace_and_its_name_all_the_same(revision: str) -> None:
    async with Client({"mcpServers": {"a": server("a")}}, revision=revision) as client:
        assert [each.name for each in await client.list_tools()] == ["hello"]
        assert client.servers == {"a": client}
        assert client.failures == {}
    assert Client(server("a")).servers == {}


def test_the_signature_is_that_of_the_client() -> None:
    assert "on_elicit" in inspect.signature(Client).parameters
    with pytest.raises(TypeError, match="on_elicits"):
        Client(two(), **{"on_elicits": print})


# Lists and calls


@bounded
async def test_tools_and_prompts_have_the_name_of_their_server(revision: str) -> None:
    async with Client(two(), revision=revision) as client:
        assert [each.name for each in await client.list_tools()] == ["a_hello", "b_hello"]
        assert (await client.call_tool("b_hello", {"text": "x"})).value == "b:hello:x"
        assert (await client.submit_tool("a_hello")).value == "a:hello:"
        assert [each.name for each in await client.list_prompts()] == ["a_greet", "b_greet"]
        found = await client.get_prompt("a_greet", {"who": "Ada"})
        assert found.messages[0].content.text == "a greets Ada"
        completed = await client.complete("who", "x", prompt="b_greet")
        assert completed.values == ["b-x"]


@bounded
async def test_completion_is_of_a_prompt_or_of_a_resource_not_of_both_or_neither(
    revision: str,
) -> None:
    async with Client(two(), revision=revision) as client:
        for both in ({"prompt": "b_greet", "resource": "file:///{who}"}, {}):
            with pytest.raises(TypeError, match="either `prompt` or `resource`"):
                await client.complete("who", "x", **both)


@bounded
async def test_a_call_needs_no_list(revision: str) -> None:
    seen: list[str] = []
    app = server("a")

    @app.middleware
    async def record(context: Any, next: Any) -> Any:
        seen.append(context.method)
        return await next()

    async with Client({"mcpServers": {"a": app, "b": server("b")}}, revision=revision) as client:
        seen.clear()
        await client.call_tool("a_hello")
    assert seen == ["tools/call"]


@bounded
async def test_resources_keep_their_uris_and_are_routed(revision: str) -> None:
    async with Client(two(), revision=revision) as client:
        uris = [each.uri for each in await client.list_resources()]
        assert sorted(uris) == ["a://own", "b://own", "shared://both", "shared://both"]
        templates = [each.uri_template for each in await client.list_resource_templates()]
        assert templates == ["a-notes://{id}", "b-notes://{id}"]
    # Without a list before it.
    async with Client(two(), revision=revision) as client:
        for uri, text in [("b://own", "own of b"), ("a-notes://7", "note 7 of a")]:
            found = await client.read_resource(uri)
            assert found.contents[0].text == text


@bounded
async def test_a_resource_of_two_servers_is_ambiguous() -> None:
    async with Client(two()) as client:
        with pytest.raises(TrunklineError) as caught:
            await client.read_resource("shared://both")
        assert str(caught.value) == (
            "several servers have the resource 'shared://both': 'a', 'b'; "
            "name one: client.servers['a'].read_resource(...)"
        )
        found = await client.servers["b"].read_resource("shared://both")
        assert found.contents[0].text == "both of b"
        with pytest.raises(TrunklineError) as caught:
            await client.read_resource("none://x")
        assert str(caught.value) == (
            "no server lists the resource 'none://x', or a template that matches it; "
            "name the server: client.servers['a'].read_resource(...)"
        )


@bounded
async def test_the_only_server_with_resources_is_not_asked_for_a_list() -> None:
    bare = Place({"server/discover": discovery(capabilities={})})
    async with Client({"mcpServers": {"bare": bare, "b": server("b")}}) as client:
        assert client.servers["bare"].server_capabilities.resources is None
        found = await client.read_resource("b-notes://1")
        assert found.contents[0].text == "note 1 of b"
        with pytest.raises(PeerError):
            await client.read_resource("unlisted://x")
        assert [each.name for each in await client.list_prompts()] == ["b_greet"]
        assert client.failures == {}


@bounded
async def test_ambiguous_tool_name_is_resolved_by_the_tool_lists(revision: str) -> None:
    """`a` with `b_c`, and `a_b` with `d`: `a_b_c` and `a_b_d` each have one owner."""
    servers = {"a": server("a", "b_c"), "a_b": server("ab", "d")}
    async with Client({"mcpServers": servers}, revision=revision) as client:
        with pytest.raises(TrunklineError, match="is the name of several tools"):
            client.submit_tool("a_b_c")  # nothing was listed, and it does not wait for a list
        assert (await client.call_tool("a_b_c")).value == "a:b_c:"
        assert (await client.call_tool("a_b_d")).value == "ab:d:"
        assert (await client.submit_tool("a_b_c")).value == "a:b_c:"


@bounded
async def test_a_name_of_two_tools_is_an_error_in_the_list_and_in_a_call(revision: str) -> None:
    """`a` with `b_c`, and `a_b` with `c`, are both `a_b_c`."""
    servers = {"a": server("a", "b_c", "x"), "a_b": server("ab", "c")}
    text = (
        "'a_b_c' is the name of several tools, 'b_c' of 'a' and 'c' of 'a_b': "
        "rename a server, or name it: client.servers['a'].call_tool('b_c')"
    )
    async with Client({"mcpServers": servers}, revision=revision) as client:
        calls: list[Callable[[], Any]] = [client.list_tools, lambda: client.call_tool("a_b_c")]
        for call in calls:
            with pytest.raises(TrunklineError) as caught:
                await call()
            assert str(caught.value) == text
        assert (await client.call_tool("a_x")).value == "a:x:"
        assert (await client.servers["a_b"].call_tool("c")).value == "ab:c:"


@bounded
async def test_a_tool_with_a_long_name_is_called_by_its_short_one() -> None:
    long = "x" * 128
    servers = {"a": server("a", long, "y" * 126), "b": server("b")}
    async with Client({"mcpServers": servers}) as client:
        names = [each.name for each in await client.list_tools()]
        assert [len(each) for each in names[:2]] == [128, 128]
        assert (await client.call_tool(names[0])).value == f"a:{long}:"
        assert (await client.call_tool(names[1])).value == f"a:{'y' * 126}:"


@bounded
async def test_an_unknown_name_says_how_names_begin() -> None:
    async with Client(two()) as client:
        with pytest.raises(TrunklineError) as caught:
            await client.call_tool("hello")
        assert str(caught.value) == (
            "no server has a tool 'hello': the names of tools begin with a_…, b_…"
        )
        with pytest.raises(PeerError):
            await client.call_tool("a_unknown")


@bounded
async def test_a_task_is_of_the_server_of_its_tool(revision: str) -> None:
    async with Client(two(), revision=revision) as client:
        handle = await client.call_tool_as_task("b_hello", {"text": "y"})
        assert (await handle.result()).value == "b:hello:y"


# Options and handlers


@bounded
async def test_handlers_serve_every_server(revision: str) -> None:
    def asking(name: str) -> Server:
        app = Server(name, version="1")

        @app.tool
        async def ask(context: Context) -> str:
            await context.info(f"log of {name}")
            answer = await context.elicit(f"{name}?", str)
            return str(answer.content)

        return app

    logged: list[Any] = []
    asked: list[str] = []

    async def on_elicit(request: Any) -> Any:
        asked.append(request.message)
        return {"value": f"answer to {request.message}"}

    async with Client(
        {"mcpServers": {"a": asking("a"), "b": asking("b")}},
        revision=revision,
        on_elicit=on_elicit,
        on_log=lambda *facts: logged.append(facts),
    ) as client:
        await client.set_logging_level("debug")
        for name in ("a", "b"):
            result = await client.call_tool(f"{name}_ask")
            assert result.value == f"answer to {name}?", result
    assert asked == ["a?", "b?"]
    assert "log of a" in str(logged)
    assert "log of b" in str(logged)


@pytest.mark.parametrize("option", [{"headers": {"A": "b"}}, {"http": HttpOptions()}])
def test_credentials_are_not_sent_to_every_server(option: dict[str, Any]) -> None:
    name = next(iter(option))
    with pytest.raises(ValueError) as caught:
        Client(two(), **option)
    assert str(caught.value) == (
        f"{name} would be sent to every server: put headers into the entry of one, or make its "
        "value an address with options, such as Http(..., options=...)"
    )


def test_headers_of_an_entry_are_of_that_server_alone() -> None:
    servers = {
        "a": {"url": "https://one.example/mcp", "headers": {"Authorization": "Bearer one"}},
        "b": {"url": "https://two.example/mcp"},
    }
    client = Client({"mcpServers": servers})
    found = [each._connection._target.address for each in client.servers.values()]
    assert all(isinstance(each, Http) for each in found)
    assert [bool(getattr(each, "options", None)) for each in found] == [True, False]


@bounded
async def test_prefix_always_is_there_with_a_single_server_too() -> None:
    one = {"mcpServers": {"first": server("a")}}
    async with Client(one) as client:
        plain = [tool.name for tool in await client.list_tools()]
    async with Client(one, prefix="always") as client:
        assert [tool.name for tool in await client.list_tools()] == [f"first_{n}" for n in plain]
        assert list(client.servers) == ["first"]
    async with Client(two(), prefix="always") as client:
        always = [tool.name for tool in await client.list_tools()]
    async with Client(two()) as client:
        assert [tool.name for tool in await client.list_tools()] == always


def test_prefix_of_a_synchronous_client_is_always_there_too() -> None:
    one = {"mcpServers": {"first": server("a")}}
    with SyncClient(one, prefix="always") as client:
        assert all(tool.name.startswith("first_") for tool in client.list_tools())


@pytest.mark.parametrize("target", [Server("x"), "https://example.org/mcp", ["python", "x.py"]])
def test_prefix_always_is_for_configurations(target: Any) -> None:
    with pytest.raises(ValueError, match="prefix='always' is for a configuration of servers"):
        Client(target, prefix="always")


def test_prefix_has_two_values() -> None:
    for target in (two(), Server("x")):
        with pytest.raises(ValueError, match="prefix is one of"):
            Client(target, prefix="never")  # type: ignore[arg-type]  # the mistake


@bounded
async def test_roots_changes_and_log_levels_are_sent_to_every_server() -> None:
    async with Client(two(), roots=["file:///x"], revision="2025-11-25") as client:
        client.send_roots_list_changed()
        await client.send_roots_list_changed()
        await client.set_logging_level("error")
        with pytest.raises(ValueError, match="level is one of"):
            await client.set_logging_level("loud")


# Failures


@bounded
async def test_servers_that_fail_to_connect_do_not_affect_the_rest(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    others = {
        "gone": {"command": "no-such-program-5518"},
        "wrong": {"command": 5},
        "unset": {"command": "x", "args": ["${TRUNKLINE_UNSET_5518}"]},
        "odd": 5,
    }
    with caplog.at_level(logging.WARNING, "trunkline.client"):
        async with Client(two(**others), revision=revision) as client:
            assert client.is_connected
            assert repr(client) == "<Client 'trunkline', 2 of 6 servers connected>"
            assert [each.name for each in await client.list_tools()] == ["a_hello", "b_hello"]
            assert set(client.failures) == {"gone", "wrong", "unset", "odd"}
            assert set(client.servers) == {"a", "b", "gone"}
            with pytest.raises(TransportError) as caught:
                await client.call_tool("gone_x")
            assert str(caught.value) == (
                "the server 'gone' is not connected: cannot start 'no-such-program-5518' "
                "(No such file or directory)"
            )
            assert caught.value.__cause__ is client.failures["gone"]
            with pytest.raises(TransportError) as caught:
                await client.get_prompt("unset_x")
            assert str(caught.value) == (
                "the server 'unset' is not connected: 'unset' cannot be used: args: "
                "the environment variable TRUNKLINE_UNSET_5518 is not set"
            )
            with pytest.raises(TrunklineError, match=r"servers that failed: 'wrong', 'unset', 'od"):
                await client.read_resource("none://x")
    assert "server 'gone' cannot be used: cannot start 'no-such-program-5518'" in caplog.text


@bounded
async def test_connecting_fails_if_all_fail() -> None:
    servers = {"one": {"command": "no-such-1-5518"}, "two": {"command": "no-such-2-5518"}}
    client = Client({"mcpServers": {**servers, "three": {"command": 5}}})
    with pytest.raises(TransportError) as caught:
        await client.connect()
    assert str(caught.value) == (
        "no server could be reached:\n"
        "  'three': 'three' cannot be used: command: expected a string, got a number\n"
        "  'one': cannot start 'no-such-1-5518' (No such file or directory)\n"
        "  'two': cannot start 'no-such-2-5518' (No such file or directory)"
    )
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert not client.is_connected
    assert set(client.failures) == {"one", "two", "three"}


def test_a_configuration_without_a_usable_server_is_rejected() -> None:
    with pytest.raises(ValueError) as caught:
        Client({"mcpServers": {"a": {"command": 5}, "b": 5}})
    assert str(caught.value).startswith("no server can be used:\n  'a': 'a' cannot be used: ")


class Broken:
    """An address whose transport raises what it was given, or never connects."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    def transport(self, policy: Policy) -> Any:
        transport = server("x").transport(policy)
        return _BrokenTransport(transport, self.error)


class _BrokenTransport:
    def __init__(self, inner: Any, error: BaseException | None) -> None:
        self.__dict__.update(inner=inner, error=error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["inner"], name, value)

    async def connect(self) -> None:
        if self.__dict__["error"] is None:
            await asyncio.Event().wait()
        raise self.__dict__["error"]


@bounded
async def test_a_server_that_never_answers_has_its_own_timeout() -> None:
    async with Client(two(slow=Broken()), connect_timeout=0.2) as client:
        assert "no connection within 0.2 s" in str(client.failures["slow"])
        assert (await client.call_tool("a_hello")).value == "a:hello:"


@bounded
async def test_any_exception_of_one_server_is_its_failure_and_its_text_is_not_shown() -> None:
    async with Client(two(odd=Broken(RuntimeError(CANARY)))) as client:
        assert isinstance(client.failures["odd"], RuntimeError)
        with pytest.raises(TransportError) as caught:
            await client.call_tool("odd_x")
        assert str(caught.value) == "the server 'odd' is not connected: RuntimeError"


@bounded
async def test_a_cancelled_connect_leaves_nothing_open() -> None:
    client = Client(two(slow=Broken()), connect_timeout=30)
    task = asyncio.create_task(client.connect())
    while not client.servers["a"].is_connected:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not client.is_connected
    assert state_of(client).is_unused


@bounded
async def test_a_group_that_is_closed_while_it_connects_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(two())
    for each in client.servers.values():

        async def connect(each: Client = each, connect: Any = each.connect) -> None:
            await connect()
            await each.close()

        monkeypatch.setattr(each, "connect", connect)
    with pytest.raises(TrunklineError, match="the client was closed while it connected"):
        await client.connect()


@bounded
async def test_a_group_connects_once_and_again_after_it_was_closed() -> None:
    client = Client(two())
    async with client:
        with pytest.raises(TrunklineError, match="already connected or connecting"):
            await client.connect()
    with pytest.raises(TrunklineError, match="this client is not connected"):
        await client.call_tool("a_hello")
    with pytest.raises(TrunklineError, match="this client is not connected"):
        await client.list_tools()
    async with client:
        assert (await client.call_tool("a_hello")).value == "a:hello:"


@bounded
async def test_a_server_that_fails_to_list_is_left_out(revision: str) -> None:
    failing = server("c")
    fails = True

    @failing.middleware
    async def refuse(context: Any, next: Any) -> Any:
        if fails and context.method == "tools/list":
            raise RuntimeError("no list")
        return await next()

    async with Client(two(c=failing), revision=revision, cache=False) as client:
        assert [each.name for each in await client.list_tools()] == ["a_hello", "b_hello"]
        assert isinstance(client.failures["c"], PeerError)
        assert (await client.call_tool("c_hello")).value == "c:hello:"
        fails = False
        assert len(await client.list_tools()) == 3
        assert client.failures == {}


@bounded
async def test_closing_closes_all_though_one_fails_and_one_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(members, "_CLOSE_TIMEOUT_S", 0.1)
    client = Client(two(c=server("c")))
    await client.connect()
    release = asyncio.Event()
    kept = {name: client.servers[name].close for name in ("a", "b")}

    async def fail() -> None:
        raise RuntimeError("cannot close")

    monkeypatch.setattr(client.servers["a"], "close", fail)
    monkeypatch.setattr(client.servers["b"], "close", release.wait)
    await client.close()
    assert not client.servers["c"].is_connected
    assert "closing the server 'a'" in caplog.text
    assert "1 servers were not closed within 0.1 s" in caplog.text
    release.set()
    for close in kept.values():
        await close()


# Processes


@pytest.fixture
def dying(tmp_path: Path) -> str:
    path = tmp_path / "dying.py"
    path.write_text(DYING)
    return str(path)


@contextmanager
def no_child_left() -> Iterator[None]:
    before = children()
    yield
    assert children() == before


def entry(path: str, **more: Any) -> dict[str, Any]:
    args = ["-P", "-m", "trunkline", "serve", path]
    return {"command": sys.executable, "args": args, **more}


@bounded
async def test_a_server_that_dies_in_a_call_fails_alone_and_can_be_connected_again(
    revision: str, dying: str
) -> None:
    servers = {"a": entry(dying, env={"GIVEN": "x"}), "d": dying}
    with no_child_left():
        async with Client({"mcpServers": servers}, revision=revision) as client:
            # Variables are added to the inherited ones.
            assert (await client.call_tool("a_live")).value == "x" + os.environ["PATH"][:1]
            with pytest.raises(ConnectionLost):
                await client.call_tool("d_die")
            assert set(client.failures) == {"d"}
            assert isinstance(client.failures["d"], ConnectionLost)
            with pytest.raises(
                TransportError, match=r"the server 'd' is not connected: .*status 7"
            ):
                await client.call_tool("d_live")
            assert {each.name for each in await client.list_tools()} == {"a_die", "a_live"}
            assert (await client.call_tool("a_live")).value
            await client.servers["d"].connect()
            assert client.failures == {}
            assert (await client.call_tool("d_live")).value
            assert len(await client.list_tools()) == 4


def test_a_synchronous_client_talks_to_several(revision: str, dying: str) -> None:
    servers = {"a": entry(dying), "m": server("m"), "gone": {"command": "no-such-5518"}}
    told: list[Any] = []
    with no_child_left():
        with SyncClient(
            {"mcpServers": servers}, revision=revision, on_log=lambda *facts: told.append(facts)
        ) as client:
            assert repr(client) == "<SyncClient 'trunkline', 2 of 3 servers connected>"
            assert client.is_connected
            names = [each.name for each in client.list_tools()]
            assert names == ["a_die", "a_live", "m_hello"]
            assert client.call_tool("m_hello", {"text": "x"}).value == "m:hello:x"
            assert client.submit_tool("m_hello").result().value == "m:hello:"
            assert client.read_resource("m://own").contents[0].text == "own of m"
            inner = client.servers["m"]
            assert isinstance(inner, SyncClient)
            assert inner.revision == revision
            assert inner.call_tool("hello").value == "m:hello:"
            with pytest.raises(TrunklineError, match=r"use client.servers\['a'\].revision"):
                _ = client.revision
            with pytest.raises(ConnectionLost):
                client.call_tool("a_die")
            assert set(client.failures) == {"a", "gone"}
            client.servers["a"].connect()
            assert client.call_tool("a_live").value
            inner.close()
            assert not client.servers["m"].is_connected
            assert client.call_tool("a_live").value
        assert not client.is_connected
        assert set(client.failures) == {"gone"}


def test_a_synchronous_client_of_one_server_of_a_configuration() -> None:
    with SyncClient({"mcpServers": {"a": server("a")}}) as client:
        assert client.servers == {"a": client}
        assert client.failures == {}
        assert client.call_tool("hello").value == "a:hello:"


# Secrets


@bounded
async def test_no_repr_and_no_error_has_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    servers = {
        "a": server("a"),
        "env": {"command": "no-such-5518", "env": {"API_KEY": f"{CANARY}-env"}},
        "args": {"command": "no-such-5518", "args": ["--token", f"{CANARY}-args"]},
        "url": {
            "url": f"http://127.0.0.1:1/mcp?key={CANARY}-query",
            "headers": {"Authorization": f"Bearer {CANARY}-header"},
        },
        "odd": {"url": f"odd {CANARY}-url"},
        "header": {"url": "http://127.0.0.1:1/mcp", "headers": {"X": f"{CANARY}\nX: y"}},
    }
    async with Client({"mcpServers": servers}, connect_timeout=10) as client:
        shown = [repr(client), repr(client.servers), repr(client.failures), caplog.text]
        assert set(client.failures) == set(servers) - {"a"}
        for name in client.failures:
            with pytest.raises(TransportError) as caught:
                await client.call_tool(f"{name}_x")
            shown += [str(caught.value), repr(caught.value)]
        shown += [repr(each._connection._target) for each in client.servers.values()]
    assert CANARY not in "".join(shown)


# Every method


ROUTED = {
    *("call_tool", "call_tool_as_task", "submit_tool", "get_prompt"),
    *("read_resource", "subscribe", "unsubscribe", "complete"),
}
OF_ALL = {
    *("connect", "close", "is_connected", "servers", "failures", "dropped_notifications"),
    *("list_tools", "list_resources", "list_resource_templates", "list_prompts"),
    *("set_logging_level", "send_roots_list_changed"),
}


def test_every_public_name_of_the_client_is_decided() -> None:
    every = {name for name in dir(Client) if not name.startswith("_") and hasattr(Client, name)}
    refused = {*OF_ONE_SERVER["properties"], *OF_ONE_SERVER["methods"]}
    assert every == ROUTED | OF_ALL | refused
    assert not (ROUTED | OF_ALL) & refused
    # None falls through to a method that needs a connection of its own.
    assert all(name in vars(ClientGroup) for name in every)


@pytest.mark.parametrize("name", sorted(ROUTED | OF_ALL))
def test_a_method_takes_what_that_of_the_client_takes(name: str) -> None:
    ours, theirs = inspect.getattr_static(ClientGroup, name), getattr(Client, name)
    if isinstance(theirs, property):
        assert isinstance(ours, property)
        return
    given, wanted = (list(inspect.signature(each).parameters.values()) for each in (ours, theirs))
    if any(each.kind is each.VAR_KEYWORD for each in given):
        assert [each.name for each in given[:-1]] == [
            each.name for each in wanted if each.kind not in (each.KEYWORD_ONLY, each.VAR_KEYWORD)
        ]
    else:
        assert given == wanted


@bounded
async def test_member_of_a_single_server_raises_and_names_the_server_client() -> None:
    async with Client(two()) as client:
        for name in OF_ONE_SERVER["properties"]:
            with pytest.raises(TrunklineError) as caught:
                getattr(client, name)
            assert str(caught.value) == (
                f"{name} is about one server, and this client has several: "
                f"use client.servers['a'].{name}"
            )
        for name in OF_ONE_SERVER["methods"]:
            with pytest.raises(TrunklineError, match=f"use client.servers..a...{name}"):
                getattr(client, name)("x")


@bounded
async def test_a_subscription_is_of_the_server_that_has_the_resource(revision: str) -> None:
    updated: list[str] = []
    app = server("a")
    async with Client(
        {"mcpServers": {"a": app, "b": server("b")}},
        revision=revision,
        on_resource_updated=lambda uri: updated.append(uri),
    ) as client:
        await client.subscribe("a://own")
        app.notify_resource_updated("a://own")
        while not updated:
            await asyncio.sleep(0.01)
        await client.unsubscribe("a://own")
        assert client.dropped_notifications == 0
    assert updated == ["a://own"]


def test_the_address_of_a_value_may_be_anything_a_client_takes() -> None:
    client = Client({"mcpServers": {"a": ["x", "y"], "b": "tcp://h:1", "c": Stdio("z")}})
    shown = [repr(each._connection._target.address) for each in client.servers.values()]
    assert shown == ["Stdio('x', ['y'])", "Tcp('h', 1)", "Stdio('z')"]
