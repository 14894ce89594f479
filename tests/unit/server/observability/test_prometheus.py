"""The page of metrics, read as a Prometheus server reads it."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.server.observability.observed import REVISIONS, ask, make_app
from trunkline import Server, ServerLimits
from trunkline.server import METRICS_CONTENT_TYPE, ServerStats
from trunkline.server.observability import prometheus
from trunkline.server.observability.operations import DURATION_BUCKETS
from trunkline.server.observability.prometheus import ROWS

DURATION = "mcp_server_operation_duration_seconds"
Labels = frozenset[tuple[str, str]]

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def read(page: bytes) -> tuple[dict[str, str], dict[str, dict[Labels, float]]]:
    """Return the type of each metric and its samples; fail on what is not the text format."""
    text = page.decode()
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    helps: set[str] = set()
    samples: dict[str, dict[Labels, float]] = defaultdict(dict)
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helps
            helps.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helps
            assert name not in kinds
            assert kind in ("gauge", "counter", "histogram")
            kinds[name] = kind
        else:
            name, labels, value = sample(line)
            family = re.sub("_(bucket|sum|count)$", "", name) if name not in kinds else name
            # Lines of one metric stand together, after its type.
            assert family == list(kinds)[-1]
            assert labels not in samples[name]
            samples[name][labels] = value
    return kinds, dict(samples)


def sample(line: str) -> tuple[str, Labels, float]:
    found = _SAMPLE.fullmatch(line)
    assert found, line
    name, inner, value = found.groups()
    pairs, at = [], 0
    while inner and at < len(inner):
        label = _LABEL.match(inner, at)
        assert label, line
        pairs.append((label[1], re.sub(r"\\.", lambda each: _ESCAPES[each[0]], label[2])))
        at = label.end()
    assert len(dict(pairs)) == len(pairs)
    return name, frozenset(pairs), float(value)


def labels(**values: str) -> Labels:
    return frozenset(values.items())


def test_every_field_of_the_statistics_is_on_the_page() -> None:
    fields = [each.name for each in msgspec.structs.fields(ServerStats)]
    assert [row.field for row in ROWS] == fields


def test_a_new_server_has_a_page_of_zeros_and_no_durations() -> None:
    kinds, samples = read(Server("new").metrics_page())
    assert len(kinds) == len(ROWS)
    assert set(kinds) - set(samples) == {"trunkline_requests_refused_total"}
    assert {value for found in samples.values() for value in found.values()} == {0}
    assert kinds["trunkline_requests_in_flight"] == "gauge"
    assert kinds["trunkline_connections_refused_total"] == "counter"
    assert METRICS_CONTENT_TYPE == "text/plain; version=0.0.4; charset=utf-8"


def test_the_page_shows_what_the_server_does_at_the_moment() -> None:
    app = make_app(limits=ServerLimits(in_flight=1, in_flight_overall=1))

    async def main() -> None:
        async with connected(app) as wire, connected(app) as other:
            wire.call(1, "forever")
            wire.call(2, "forever")
            other.call(1, "echo")
            await other.answer(1)
            _, samples = read(app.metrics_page())
            assert samples["trunkline_connections"][labels()] == 2
            assert samples["trunkline_requests_in_flight"][labels()] == 1
            assert samples["trunkline_requests_waiting"][labels()] == 1
            refused = samples["trunkline_requests_refused_total"]
            assert refused == {labels(limit="in_flight_overall"): 1}
            wire.tell("notifications/cancelled", {"requestId": 1})
            wire.tell("notifications/cancelled", {"requestId": 2})

    asyncio.run(main())


def test_open_listen_requests_are_counted() -> None:
    app = make_app()

    async def main() -> None:
        async with connected(app, PER_REQUEST) as wire:
            topics = {"notifications": {"toolsListChanged": True}, "_meta": META}
            wire.ask("s", "subscriptions/listen", topics)
            await wire.until(1)
            assert app.stats().streams == 1
            assert b"\ntrunkline_streams 1\n" in app.metrics_page()
            wire.tell("notifications/cancelled", {"requestId": "s"})
            assert app.stats().streams == 0

    asyncio.run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_durations_are_a_histogram_by_method_tool_and_error(revision: str) -> None:
    app = make_app()
    app.enable_metrics()
    app.enable_metrics()  # twice is once

    async def main() -> None:
        async with connected(app, revision) as wire:
            for id, tool in enumerate(("echo", "echo", "fail", "made-up")):
                await ask(wire, revision, id, "tools/call", {"name": tool})
            await ask(wire, revision, "p", "prompts/get", {"name": "greet"})
            await ask(wire, revision, "x", "made/up", {})

    asyncio.run(main())
    kinds, samples = read(app.metrics_page())
    assert kinds[DURATION] == "histogram"
    counts = samples[f"{DURATION}_count"]
    common = {"mcp_protocol_version": revision}
    expected = {
        labels(mcp_method_name="tools/call", gen_ai_tool_name="echo", **common): 2,
        labels(
            mcp_method_name="tools/call",
            gen_ai_tool_name="fail",
            error_type="tool_error",
            **common,
        ): 1,
        labels(mcp_method_name="tools/call", error_type="-32602", **common): 1,
        labels(mcp_method_name="prompts/get", gen_ai_prompt_name="greet", **common): 1,
        labels(mcp_method_name="_OTHER", error_type="-32601", **common): 1,
    }
    if revision != PER_REQUEST:
        expected[labels(mcp_method_name="initialize", **common)] = 1
    assert counts == expected
    buckets = samples[f"{DURATION}_bucket"]
    for series, count in counts.items():
        bounds = [f"{each:g}" for each in DURATION_BUCKETS]
        found = [buckets[series | {("le", bound)}] for bound in (*bounds, "+Inf")]
        assert found == sorted(found)
        assert found[-1] == count
        assert samples[f"{DURATION}_sum"][series] > 0
    assert len(buckets) == len(counts) * 15


def test_a_duration_falls_into_the_bucket_that_bounds_it() -> None:
    metrics = prometheus.Metrics()
    for seconds in (0.0, 0.01, 0.010001, 300.0, 300.1):
        metrics.end(_ended(seconds=seconds))
    _, samples = read("\n".join([*metrics.lines(), ""]).encode())
    found = {dict(key)["le"]: value for key, value in samples[f"{DURATION}_bucket"].items()}
    assert (found["0.01"], found["0.02"], found["120"], found["300"], found["+Inf"]) == (
        2,
        3,
        3,
        4,
        5,
    )
    assert sum(samples[f"{DURATION}_sum"].values()) == pytest.approx(600.120001)


def test_a_label_is_escaped() -> None:
    hostile = 'a"b\\c\nd{e="f"} 1'
    metrics = prometheus.Metrics()
    metrics.end(_ended(tool=hostile))
    _, samples = read("\n".join([*metrics.lines(), ""]).encode())
    (only,) = samples[f"{DURATION}_count"]
    assert dict(only)["gen_ai_tool_name"] == hostile


def test_the_number_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_SERIES", 10)
    metrics = prometheus.Metrics()
    for number in range(1000):
        metrics.end(_ended(tool=f"tool-{number}"))
    metrics.end(_ended(tool="tool-3"))
    _, samples = read("\n".join([*metrics.lines(), ""]).encode())
    counts = {dict(key)["gen_ai_tool_name"]: n for key, n in samples[f"{DURATION}_count"].items()}
    assert len(counts) == 11
    assert (counts["tool-3"], counts["_OTHER"]) == (2, 990)


def _ended(*, seconds: float = 0.5, tool: str | None = None) -> Any:
    """Return an operation that has ended, as far as metrics look at it."""

    return SimpleNamespace(
        method="tools/call",
        tool=tool,
        prompt=None,
        error_type=None,
        revision=None,
        network_transport=None,
        tenant_label="",
        seconds=seconds,
    )


def test_the_page_of_a_server_that_is_called_is_made_while_other_threads_count() -> None:
    app = make_app()
    app.enable_metrics()

    async def main() -> None:
        async with connected(app) as wire:
            pages = [asyncio.to_thread(app.metrics_page) for _ in range(4)]
            for id in range(50):
                wire.call(id, "echo")
            for page in await asyncio.gather(*pages):
                read(page)
            await wire.answer(49)

    asyncio.run(main())
    _, samples = read(app.metrics_page())
    assert sum(samples[f"{DURATION}_count"].values()) == 51
