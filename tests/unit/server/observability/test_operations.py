"""What is observed of each request, from when it is received until it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.observability.observed import (
    REVISIONS,
    ask,
    make_app,
    requests_about_everything,
)
from trunkline import Server, ServerLimits
from trunkline.engine.observability.operations import (
    CANCELLED,
    OTHER,
    Observer,
    add_observer,
)
from trunkline.jsonrpc import Peer, Policy
from trunkline.server.observability.operations import TOOL_ERROR, ServerOperation


class Ended(Observer[ServerOperation]):
    """Keeps the operations that have ended."""

    def __init__(self) -> None:
        self.begun: list[ServerOperation] = []
        self.ended: list[ServerOperation] = []

    def begin(self, operation: ServerOperation) -> None:
        self.begun.append(operation)

    def end(self, operation: ServerOperation) -> None:
        self.ended.append(operation)


def watched(app: Server) -> Ended:
    ended = Ended()
    add_observer(app._core.runtime, ended)
    return ended


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_is_an_operation_that_ends_with_its_answer(revision: str) -> None:
    app = make_app()
    seen = watched(app)
    asked = list(requests_about_everything(revision))

    async def main() -> None:
        async with connected(app, revision) as wire:
            for number, (method, params) in enumerate(asked):
                answer = await ask(wire, revision, number, method, params)
                assert "result" in answer

    asyncio.run(main())
    opening = [] if revision == PER_REQUEST else ["initialize"]
    assert [each.method for each in seen.ended] == opening + [method for method, _ in asked]
    assert seen.begun == seen.ended
    assert {each.revision for each in seen.ended} == {revision}
    assert {each.error_type for each in seen.ended} == {None}
    assert all(each.seconds > 0 for each in seen.ended)
    names = [(each.tool, each.prompt, each.resource) for each in seen.ended[len(opening) :][:4]]
    assert names == [
        ("echo", None, None),
        (None, None, "note://plain"),
        (None, "greet", None),
        (None, "greet", None),
    ]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "params", "error_type"),
    [
        ("tools/call", {"name": "fail"}, TOOL_ERROR),
        ("tools/call", {"name": "echo", "arguments": {"text": 7}}, TOOL_ERROR),
        ("tools/call", {"name": "refuse", "arguments": {"kind": "INVALID_PARAMS"}}, "-32602"),
        ("tools/call", {"name": "refuse", "arguments": {"kind": 31415}}, OTHER),
        ("tools/call", {"name": "unknown"}, "-32602"),
        ("nonsense/made up", {}, "-32601"),
        ("prompts/get", {"name": 7}, "-32602"),
    ],
)
def test_an_error_has_a_type_of_a_known_set(
    revision: str, method: str, params: dict[str, Any], error_type: str
) -> None:
    app = make_app()
    seen = watched(app)

    async def main() -> None:
        async with connected(app, revision) as wire:
            await ask(wire, revision, 1, method, params)

    asyncio.run(main())
    assert seen.ended[-1].error_type == error_type


def test_names_that_a_client_makes_up_are_not_kept() -> None:
    app = make_app()
    seen = watched(app)
    made_up: list[tuple[str, dict[str, Any]]] = [
        ("made/up", {}),
        ("tools/call", {"name": "made-up"}),
        ("prompts/get", {"name": "made-up"}),
        ("resources/read", {"uri": "made://up"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "made-up"}}),
        ("completion/complete", {"ref": {"type": "ref/resource", "name": "greet"}}),
        ("completion/complete", {"ref": 7}),
    ]

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            for number, (method, params) in enumerate(made_up):
                await ask(wire, PER_REQUEST, number, method, params)
            version = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}
            await ask(wire, PER_REQUEST, "old", "ping", {}, **version)

    asyncio.run(main())
    assert seen.ended[0].method == OTHER
    assert {(each.tool, each.prompt, each.resource) for each in seen.ended} == {(None, None, None)}
    assert seen.ended[-1].revision is None


def test_a_resource_of_a_template_is_named_by_the_template() -> None:
    app = make_app()
    seen = watched(app)

    async def main() -> None:
        async with connected(app) as wire:
            await ask(wire, "2025-11-25", 1, "resources/read", {"uri": "note://mine/text"})

    asyncio.run(main())
    assert seen.ended[-1].resource == "note://{name}/text"


def test_an_alias_is_counted_under_its_official_name() -> None:
    app = make_app(policy=Policy.mcp("2025-11-25").replace(method_names="accept-bare"))
    seen = watched(app)

    async def main() -> None:
        async with connected(app) as wire:
            wire.ask(1, "tool/execute", {"name": "echo"})
            assert "result" in await wire.answer(1)

    asyncio.run(main())
    assert (seen.ended[-1].method, seen.ended[-1].tool) == ("tools/call", "echo")


def test_a_cancelled_request_and_one_that_is_open_at_the_end_are_cancelled() -> None:
    app = make_app()
    seen = watched(app)

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "forever")
            wire.call(2, "forever")
            wire.tell("notifications/cancelled", {"requestId": 1})
            await ask(wire, "2025-11-25", 3, "ping", {})
            assert [each.asked.id for each in seen.ended] == ["open", 1, 3]

    asyncio.run(main())
    by_id = {each.asked.id: each.error_type for each in seen.ended}
    assert by_id[1] == CANCELLED
    assert by_id[2] is not None
    assert len(seen.ended) == len(seen.begun) == 4


def test_a_call_that_asks_in_a_result_is_two_operations() -> None:
    app = make_app()
    seen = watched(app)
    capabilities = {"elicitation": {"form": {}}}
    meta = {"io.modelcontextprotocol/clientCapabilities": capabilities}

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            params = {"name": "asks", "arguments": {}}
            first = (await ask(wire, PER_REQUEST, 1, "tools/call", params, **meta))["result"]
            assert first["resultType"] == "input_required"
            assert [each.asked.id for each in seen.ended] == [1]
            (key,) = first["inputRequests"]
            answers = {key: {"action": "accept", "content": {"value": 3}}}
            again = {**params, "inputResponses": answers, "requestState": first["requestState"]}
            await ask(wire, PER_REQUEST, 2, "tools/call", again, **meta)

    asyncio.run(main())
    assert [(each.asked.id, each.tool) for each in seen.ended] == [(1, "asks"), (2, "asks")]


def test_each_request_of_a_batch_is_an_operation() -> None:
    app = make_app()
    seen = watched(app)

    async def main() -> None:
        async with connected(app, "2025-03-26") as wire:
            wire.send([{"jsonrpc": "2.0", "id": id, "method": "ping"} for id in (1, 2)])
            await wire.until(1)

    asyncio.run(main())
    assert [each.asked.id for each in seen.ended] == ["open", 1, 2]


_current: ContextVar[Any] = ContextVar("_current", default=None)


class InContext(Observer[ServerOperation]):
    """Sets a context variable to the id of the request."""

    def enter(self, operation: ServerOperation) -> Callable[[], object]:
        token = _current.set(operation.asked.id)
        return lambda: _current.reset(token)


@pytest.mark.parametrize("inline", [False, True])
def test_a_handler_runs_in_the_context_of_its_own_request_also_after_it_has_waited(
    inline: bool,
) -> None:
    app = Server("observed", limits=ServerLimits(in_flight=1))
    add_observer(app._core.runtime, InContext())
    gate = asyncio.Event()
    found: list[tuple[str, Any]] = []

    @app.tool
    async def hold(name: str) -> str:
        found.append((name, _current.get()))
        await gate.wait()
        return ""

    @app.tool(inline=inline)
    def look(name: str) -> str:
        found.append((name, _current.get()))
        return ""

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "hold", name="first")
            await asyncio.sleep(0)
            for id in (2, 3, 4):
                wire.call(id, "look", name=f"waited {id}")
            assert app.stats().waiting == 3
            gate.set()
            for id in (1, 2, 3, 4):
                await wire.answer(id)
        assert _current.get() is None

    asyncio.run(main())
    assert found == [("first", 1), ("waited 2", 2), ("waited 3", 3), ("waited 4", 4)]


class Broken(Observer[ServerOperation]):
    """Raises wherever it is called."""

    def begin(self, operation: ServerOperation) -> None:
        raise ValueError("no begin")

    def enter(self, operation: ServerOperation) -> None:
        raise ValueError("no context")

    def end(self, operation: ServerOperation) -> None:
        raise ValueError("no end")


def test_an_observer_that_raises_is_logged_and_the_request_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = make_app()
    add_observer(app._core.runtime, Broken())
    seen = watched(app)

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "echo", text="still there")
            answer = await wire.answer(1)
            assert answer["result"]["content"][0]["text"] == "still there"

    asyncio.run(main())
    assert [each.method for each in seen.ended] == ["initialize", "tools/call"]
    # One line: further ones within 10 s are counted.
    assert caplog.messages == ["a request is not observed: ValueError: no begin"]


def test_a_server_without_observers_has_the_plain_peer_and_no_observability_in_its_chain() -> None:
    app = make_app()

    async def main() -> None:
        async with connected(app):
            (connection,) = app._core.runtime.connections
            assert type(connection.peer) is Peer
            assert connection.peer._on_request == connection._on_request
            assert connection.runner._serve == connection._serve

    asyncio.run(main())
