"""Spans and durations of OpenTelemetry, as an SDK exports them."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pydantic
import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.canaries import CANARY, SECRETS
from tests.rigs.messages import PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.observability.observed import (
    REVISIONS,
    ask,
    make_app,
    requests_about_everything,
)
from trunkline import Client, Server, ServerLimits, TaskSettings
from trunkline.auth import Fixed, Principal
from trunkline.server.observability.operations import DURATION_BUCKETS

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
SPAN_ID = 0xB7AD6B7169203331
TRACEPARENT = f"00-{TRACE_ID:032x}-{SPAN_ID:016x}-01"


class Exported:
    """What an application's SDK was given."""

    def __init__(self, app: Server, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._meters = MeterProvider([self._reader])
        app.enable_tracing(tracer_provider=self.provider, meter_provider=self._meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    @property
    def last(self) -> ReadableSpan:
        return self.spans[-1]

    def points(self) -> list[Any]:
        data: Any = self._reader.get_metrics_data()
        ((metric,),) = [
            list(scope.metrics)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
        ]
        assert (metric.name, metric.unit) == ("mcp.server.operation.duration", "s")
        return list(metric.data.data_points)

    def everything(self) -> str:
        """Return all that would leave the process."""
        spans = [span.to_json() for span in self.spans]
        return json.dumps([*spans, [repr(point) for point in self.points()]])


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_span_names_its_caller_by_a_digest_and_its_tenant() -> None:
    app = make_app()
    exported = Exported(app)
    ann = Principal(subject="canary-ann", tenant="acme", claims={"secret": "canary"})

    async def talk() -> None:
        async with connected(app, auth=Fixed(ann)) as wire:
            wire.ask(1, "tools/list", {})
            await wire.answer(1)

    asyncio.run(talk())
    found = attributes(exported.last)
    assert found["enduser.pseudo.id"] == ann.key
    assert found["trunkline.tenant"] == "acme"
    assert "canary" not in exported.everything()


async def converse(
    app: Server, revision: str, *requests: tuple[str, dict[str, Any]], **meta: Any
) -> list[Any]:
    async with connected(app, revision) as wire:
        return [
            await ask(wire, revision, number, method, params, **meta)
            for number, (method, params) in enumerate(requests, start=1)
        ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_request_has_a_span_named_by_method_and_target(revision: str) -> None:
    app = make_app()
    exported = Exported(app)
    asyncio.run(converse(app, revision, *requests_about_everything(revision)))
    names = [span.name for span in exported.spans]
    ending = ["server/discover"] if revision == PER_REQUEST else ["ping", "logging/setLevel"]
    assert names == [
        *([] if revision == PER_REQUEST else ["initialize"]),
        "tools/call echo",
        "resources/read",
        "prompts/get greet",
        "completion/complete greet",
        "tools/list",
        "resources/list",
        "prompts/list",
        "resources/templates/list",
        "stars/list",
        *ending,
    ]
    assert {span.kind for span in exported.spans} == {SpanKind.SERVER}
    assert {span.status.status_code for span in exported.spans} == {StatusCode.UNSET}
    assert {attributes(span)["mcp.protocol.version"] for span in exported.spans} == {revision}
    assert {span.parent for span in exported.spans} == {None}


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_attributes_are_those_of_the_convention(revision: str) -> None:
    app = make_app()
    exported = Exported(app)
    asyncio.run(converse(app, revision, ("tools/call", {"name": "echo"})))
    assert attributes(exported.last) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "jsonrpc.request.id": "1",
    }
    asyncio.run(converse(app, revision, ("resources/read", {"uri": "note://mine/text"})))
    assert attributes(exported.last) == {
        "mcp.method.name": "resources/read",
        "mcp.protocol.version": revision,
        "mcp.resource.uri": "note://{name}/text",
        "jsonrpc.request.id": "1",
    }
    asyncio.run(converse(app, revision, ("prompts/get", {"name": "greet"})))
    assert attributes(exported.last)["gen_ai.prompt.name"] == "greet"


@pytest.mark.parametrize(
    ("method", "params", "error_type", "code"),
    [
        ("tools/call", {"name": "fail"}, "tool_error", None),
        ("tools/call", {"name": "unknown"}, "-32602", "-32602"),
        ("tools/call", {"name": "refuse", "arguments": {"kind": 31415}}, "_OTHER", "31415"),
        ("made/up", {}, "-32601", "-32601"),
    ],
)
def test_an_error_is_the_status_of_its_span(
    method: str, params: dict[str, Any], error_type: str, code: str | None
) -> None:
    app = make_app()
    exported = Exported(app)
    asyncio.run(converse(app, PER_REQUEST, (method, params)))
    found = attributes(exported.last)
    assert exported.last.status.status_code is StatusCode.ERROR
    # The text of an error may quote an argument.
    assert exported.last.status.description is None
    assert found["error.type"] == error_type
    assert found.get("rpc.response.status_code") == code


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_parent_is_the_span_in_the_meta_of_the_request(revision: str) -> None:
    app = make_app()
    exported = Exported(app)
    call = ("tools/call", {"name": "echo"})
    asyncio.run(converse(app, revision, call, traceparent=TRACEPARENT, tracestate="a=1,b=2"))
    parent, own = exported.last.parent, exported.last.context
    assert parent is not None
    assert own is not None
    assert (parent.trace_id, parent.span_id, parent.is_remote) == (TRACE_ID, SPAN_ID, True)
    assert own.trace_id == TRACE_ID
    assert own.trace_state == {"a": "1", "b": "2"}
    assert exported.last.links == ()


@pytest.mark.parametrize(
    "given",
    [7, None, "", "00-0-0-00", "x" * 100_000, {"a": 1}, TRACEPARENT + "-" + "x" * 10_000],
    ids=str,
)
def test_a_malformed_trace_context_is_ignored_and_the_request_served(given: Any) -> None:
    app = make_app()
    exported = Exported(app)
    call = ("tools/call", {"name": "echo"})
    meta = {"traceparent": given, "tracestate": given, "baggage": given}
    (answer,) = asyncio.run(converse(app, PER_REQUEST, call, **meta))
    assert "result" in answer
    assert exported.last.parent is None


def test_the_context_of_clients_can_be_refused() -> None:
    app = make_app()
    exported = Exported(app, client_context=False)
    seen = []

    @app.tool
    async def look() -> str:
        seen.append(baggage.get_all())
        return ""

    meta = {"traceparent": TRACEPARENT, "baggage": "user=alice"}
    asyncio.run(converse(app, PER_REQUEST, ("tools/call", {"name": "look"}), **meta))
    assert exported.last.parent is None
    assert seen == [{}]


def test_a_span_around_the_transport_is_linked_or_the_parent() -> None:
    app = make_app()
    exported = Exported(app)
    tracer = exported.provider.get_tracer("transport")

    async def main() -> None:
        async with Client(app, revision=PER_REQUEST) as client:
            with tracer.start_as_current_span("POST /mcp"):
                await client.call_tool("echo", {"text": ""})
        async with connected(app, PER_REQUEST) as wire:
            await ask(wire, PER_REQUEST, 0, "server/discover", {})
            with tracer.start_as_current_span("POST /mcp"):
                call = {"name": "echo"}
                await ask(wire, PER_REQUEST, 1, "tools/call", call, traceparent=TRACEPARENT)

    asyncio.run(main())
    first, outer, second, other = [
        span for span in exported.spans if span.name in ("tools/call echo", "POST /mcp")
    ]
    assert (first.parent, first.links) == (outer.context, ())
    assert second.parent is not None
    assert second.parent.span_id == SPAN_ID
    assert [link.context for link in second.links] == [other.context]


@pytest.mark.parametrize("kind", ["coroutine", "thread", "inline"])
def test_spans_and_baggage_of_a_handler_belong_to_its_request(kind: str) -> None:
    app = Server("tests")
    exported = Exported(app)
    tracer = exported.provider.get_tracer("author")
    seen = []

    def look() -> str:
        with tracer.start_as_current_span("inner"):
            seen.append(baggage.get_baggage("user"))
        return ""

    async def look_async() -> str:
        await asyncio.sleep(0)
        return look()

    handler = look_async if kind == "coroutine" else look
    app.add_tool(handler, "look", inline=kind == "inline")
    meta = {"traceparent": TRACEPARENT, "baggage": "user=alice"}
    asyncio.run(converse(app, PER_REQUEST, ("tools/call", {"name": "look"}), **meta))
    inner, outer = exported.spans
    assert (inner.name, inner.parent) == ("inner", outer.context)
    assert seen == ["alice"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_request_that_has_waited_is_not_traced_under_the_one_before() -> None:
    app = Server("tests", limits=ServerLimits(in_flight=1))
    exported = Exported(app)
    tracer = exported.provider.get_tracer("author")

    @app.tool
    async def look(name: str) -> str:
        with tracer.start_as_current_span(f"inner {name}"):
            await asyncio.sleep(0)
        return ""

    async def main() -> None:
        async with connected(app) as wire:
            for id in (1, 2, 3):
                wire.call(id, "look", name=str(id))
            for id in (1, 2, 3):
                await wire.answer(id)

    asyncio.run(main())
    outer = {attributes(s)["jsonrpc.request.id"]: s for s in exported.spans if s.kind.value == 1}
    for span in exported.spans:
        if span.name.startswith("inner"):
            assert span.parent == outer[span.name[-1]].context
            assert outer[span.name[-1]].parent is None


def test_a_call_that_becomes_a_task_ends_with_the_request() -> None:
    app = Server("tests", tasks=TaskSettings())
    exported = Exported(app)
    gate = asyncio.Event()

    @app.tool(task="required")
    async def work() -> str:
        await gate.wait()
        return "done"

    async def main() -> None:
        async with Client(app, revision="2025-11-25") as client:
            handle = await client.call_tool_as_task("work")
            assert exported.last.name == "tools/call work"
            assert exported.last.status.status_code is StatusCode.UNSET
            gate.set()
            await handle.result()

    asyncio.run(main())
    assert [span.name for span in exported.spans].count("tools/call work") == 1


def test_a_cancelled_request_has_a_span_of_that_type() -> None:
    app = make_app()
    exported = Exported(app)

    async def main() -> None:
        async with connected(app) as wire:
            wire.call(1, "forever")
            wire.tell("notifications/cancelled", {"requestId": 1})
            await ask(wire, "2025-11-25", 2, "ping", {})
            assert attributes(exported.spans[1])["error.type"] == "cancelled"

    asyncio.run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_durations_are_a_histogram_with_the_buckets_of_the_convention(revision: str) -> None:
    app = make_app()
    exported = Exported(app)
    calls = [("tools/call", {"name": name}) for name in ("echo", "echo", "fail", "made-up")]
    asyncio.run(converse(app, revision, *calls))
    points = [
        point for point in exported.points() if point.attributes["mcp.method.name"] == "tools/call"
    ]
    assert {tuple(point.explicit_bounds) for point in points} == {DURATION_BUCKETS}
    found = {
        (point.attributes.get("gen_ai.tool.name"), point.attributes.get("error.type")): point.count
        for point in points
    }
    assert found == {("echo", None): 2, ("fail", "tool_error"): 1, (None, "-32602"): 1}
    names = {name for point in points for name in point.attributes}
    assert names == {
        *("mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name"),
        *("gen_ai.tool.name", "error.type"),
    }


# Secrets


def secret_requests() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "tools/call", {"name": "anything", "arguments": {"value": SECRETS}}
    yield "tools/call", {"name": "echo", "arguments": {"text": CANARY}}
    yield "tools/call", {"name": "fail", "arguments": {"text": CANARY}}
    yield "tools/call", {"name": "echo", "arguments": {"text": [CANARY]}}
    yield "tools/call", {"name": CANARY}
    yield "prompts/get", {"name": "greet", "arguments": {"name": CANARY}}
    yield "prompts/get", {"name": CANARY}
    yield "resources/read", {"uri": f"note://{CANARY}/text"}
    yield "resources/read", {"uri": f"unknown://{CANARY}"}
    yield CANARY, {}
    yield "tasks/get", {"taskId": CANARY}


@pytest.mark.parametrize("revision", REVISIONS)
def test_nothing_of_arguments_and_results_leaves_the_process_unless_asked_for(
    revision: str,
) -> None:
    app = make_app()
    exported = Exported(app)

    @app.tool
    async def anything(value: Any) -> Any:
        return value

    requests = list(secret_requests())
    meta = {"org.example/own": CANARY, "baggage": f"user={CANARY}"}
    asyncio.run(converse(app, revision, *requests, **meta))
    assert len(exported.spans) >= len(requests)
    assert CANARY not in exported.everything()


@contextmanager
def recording(**options: Any) -> Iterator[tuple[Server, Exported]]:
    app = make_app()

    @app.tool
    async def anything(value: Any) -> Any:
        return value

    yield app, Exported(app, record_content=True, **options)


def test_content_is_recorded_by_option_with_credentials_hidden() -> None:
    with recording() as (app, exported):
        call = ("tools/call", {"name": "anything", "arguments": {"value": {"city": "Oslo"}}})
        asyncio.run(converse(app, PER_REQUEST, call))
        found = attributes(exported.last)
        assert json.loads(found["gen_ai.tool.call.arguments"]) == {"value": {"city": "Oslo"}}
        result = json.loads(found["gen_ai.tool.call.result"])
        assert result["structuredContent"] == {"city": "Oslo"}

        secret = ("tools/call", {"name": "anything", "arguments": {"value": SECRETS}})
        for revision in REVISIONS:
            asyncio.run(converse(app, revision, secret))
            found = attributes(exported.last)
            assert "[redacted]" in found["gen_ai.tool.call.arguments"]
            assert "[redacted]" in found["gen_ai.tool.call.result"]
        assert CANARY not in exported.everything()

        uri = "note://sk-live_0123456789abcdef/text"
        asyncio.run(converse(app, PER_REQUEST, ("resources/read", {"uri": uri})))
        assert attributes(exported.last)["mcp.resource.uri"] == "note://[redacted]/text"

        asyncio.run(converse(app, PER_REQUEST, ("tools/call", {"name": "unknown"})))
        assert exported.last.status.description == "Unknown tool: unknown"


def test_an_argument_whose_type_is_a_secret_is_not_recorded() -> None:
    with recording() as (app, exported):

        @app.tool
        def spell(word: pydantic.SecretStr, city: str) -> str:
            return f"{word} {city}"

        given = {"word": CANARY, "city": "Oslo"}
        call = ("tools/call", {"name": "spell", "arguments": given})
        asyncio.run(converse(app, PER_REQUEST, call))
        found = attributes(exported.last)
        hidden = {"word": "[redacted]", "city": "Oslo"}
        assert json.loads(found["gen_ai.tool.call.arguments"]) == hidden
        broken = ("tools/call", {"name": "spell", "arguments": [CANARY]})
        asyncio.run(converse(app, PER_REQUEST, broken))
        assert CANARY not in exported.everything()


def test_of_large_content_only_the_size_is_recorded() -> None:
    with recording() as (app, exported):
        call = ("tools/call", {"name": "anything", "arguments": {"value": "x" * 100_000}})
        asyncio.run(converse(app, PER_REQUEST, call))
        found = attributes(exported.last)
        assert found["gen_ai.tool.call.arguments"] == "100013 bytes, not recorded"
        assert found["gen_ai.tool.call.result"].endswith(" bytes, not recorded")


def test_a_long_request_id_is_cut_and_its_credentials_hidden() -> None:
    app = make_app()
    exported = Exported(app)

    async def main() -> None:
        async with connected(app) as wire:
            await ask(wire, "2025-11-25", "token=" + CANARY + "\n" + "x" * 900, "ping", {})

    asyncio.run(main())
    id = attributes(exported.last)["jsonrpc.request.id"]
    assert len(id) <= 64
    assert id.isprintable()
    assert CANARY not in id


# Switching it on


def test_tracing_is_enabled_once() -> None:
    app = make_app()
    Exported(app)
    with pytest.raises(RuntimeError, match="tracing of the server 'observed' is enabled already"):
        app.enable_tracing()


def test_without_an_sdk_requests_are_served_and_nothing_is_recorded() -> None:
    app = make_app()
    app.enable_tracing()
    (answer,) = asyncio.run(converse(app, PER_REQUEST, ("tools/call", {"name": "echo"})))
    assert "result" in answer


def test_metrics_and_tracing_go_together() -> None:
    app = make_app()
    app.enable_metrics()
    exported = Exported(app)
    asyncio.run(converse(app, PER_REQUEST, ("tools/call", {"name": "echo"})))
    assert exported.last.name == "tools/call echo"
    assert b'_count{mcp_method_name="tools/call",gen_ai_tool_name="echo"' in app.metrics_page()


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    plain = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "opentelemetry":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    module = "trunkline.server.observability.tracing"
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=r'pip install "trunkline\[otel\]"'):
        app.enable_tracing()
    monkeypatch.undo()
    importlib.import_module(module)


def test_a_server_that_is_not_traced_loads_nothing_of_it() -> None:
    program = (
        "import sys, trunkline\n"
        "app = trunkline.Server('x')\n"
        "app.add_tool(lambda: '', 'look')\n"
        "print(*sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = run.stdout.split()
    assert "trunkline.server.api.app" in loaded
    assert not [name for name in loaded if "opentelemetry" in name or "observability" in name]
