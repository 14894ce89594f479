"""`interop/hosts/model.py`: a model that follows its script, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from interop.hosts.dialects import Asked
from interop.hosts.model import DONE, SCRIPT, Model, reply_to

from .requests_of_hosts import REQUESTS, call_of

TOOLS = [f"mcp__warehouse__{step.tool}" for step in SCRIPT]
TIMEOUT_S = 20.0


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as running:
        yield running


def ask(model: Model, method: str, path: str, body: Any = None, **options: Any) -> tuple[str, str]:
    """Return the content type and the text of a response."""
    connection = HTTPConnection(model.url.removeprefix("http://"), timeout=TIMEOUT_S)
    connection.request(method, path, body, **options)
    response = connection.getresponse()
    assert response.status == 200
    text = response.read().decode()
    connection.close()
    return response.headers["content-type"], text


@pytest.mark.parametrize("path", REQUESTS)
def test_every_tool_is_called_in_order_and_its_result_is_kept(model: Model, path: str) -> None:
    turns: list[tuple[dict[str, Any], str]] = []
    for step in SCRIPT:
        _, text = ask(model, "POST", path, json.dumps(REQUESTS[path](TOOLS, turns)))
        reply = json.loads(text)
        assert call_of(path, reply) == (f"mcp__warehouse__{step.tool}", dict(step.arguments))
        turns.append((reply, step.answer))
    _, text = ask(model, "POST", path, json.dumps(REQUESTS[path](TOOLS, turns)))
    assert call_of(path, json.loads(text)) is None
    assert DONE in text
    assert len(model.results) == len(SCRIPT)
    for step, result in zip(SCRIPT, model.results, strict=True):
        assert step.answer in result
    assert set(TOOLS) == model.offered


def test_a_short_request_between_does_not_replace_the_results(model: Model) -> None:
    """Hosts also ask for the title of a conversation."""
    body = {"messages": [{"role": "tool", "content": "12 lamps"}]}
    model.answer("/v1/chat/completions", body)
    model.answer("/v1/chat/completions", {"messages": []})
    assert model.results == ["12 lamps"]


def test_a_model_that_is_offered_other_tools_is_done() -> None:
    assert reply_to(Asked({"read_file": ""}, [], False)).text == DONE


def test_a_tool_is_called_by_the_name_and_in_the_namespace_that_the_host_gives_it() -> None:
    call = reply_to(Asked({"other": "", "warehouse-stock_level": "ns"}, [], False)).call
    assert call is not None
    assert (call.name, call.namespace) == ("warehouse-stock_level", "ns")


def test_a_stream_is_sent_as_events(model: Model) -> None:
    body = {**REQUESTS["/v1/messages"](TOOLS, []), "stream": True}
    kind, text = ask(model, "POST", "/v1/messages?beta=true", json.dumps(body))
    assert kind == "text/event-stream"
    assert text.startswith("event: message_start\ndata: {")


def test_a_body_in_chunks_is_read(model: Model) -> None:
    body = json.dumps(REQUESTS["/v1/messages"](TOOLS, [])).encode()
    _, text = ask(
        *(model, "POST", "/v1/messages", iter([body[:20], body[20:]])), encode_chunked=True
    )
    assert call_of("/v1/messages", json.loads(text)) is not None


def test_other_requests_are_answered_and_listed(model: Model) -> None:
    _, counted = ask(model, "POST", "/v1/messages/count_tokens", "{}")
    assert json.loads(counted)["input_tokens"] == 1
    _, models = ask(model, "GET", "/v1/models")
    assert json.loads(models)["data"][0]["id"] == "scripted"
    ask(model, "POST", "/telemetry", "not JSON")
    assert model.other_requests == ["/v1/messages/count_tokens", "/telemetry"]
