"""HTTP connections, by the invariants of `tests/fuzz/fuzz_http.py`, and cut anywhere.

The invariants are held to account as well: with a defect put into the server, they must fail.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz import fuzz_http
from tests.fuzz.fuzz_http import (
    SESSION,
    Choices,
    FuzzedConnection,
    Protocol,
    Sent,
    body_of,
    check,
    ended,
    opened,
    owed_of,
    plain,
    request,
    scene,
)
from tests.rigs.http_endpoint import alone
from tests.rigs.http_responses import Malformed, Response, read_responses
from tests.rigs.messages import META
from trunkline.jsonrpc.framing.sse import Event, EventReader
from trunkline.spec.revisions import LATEST
from trunkline.transports.http.endpoint.exchange import event_of
from trunkline.transports.http.endpoint.sessions import HttpSession
from trunkline.transports.http.server.connection import HttpServerConnection, Phase
from trunkline.transports.http.server.request_reader import RequestReader
from trunkline.transports.http.server.response_writer import ResponseWriter

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "http"
SEEDS = sorted(CORPUS.iterdir())


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_a_saved_script_holds(seed: Path) -> None:
    check(seed.read_bytes())


@settings(max_examples=examples(100), deadline=None)
@given(script=st.binary(max_size=120))
def test_any_script_holds(script: bytes) -> None:
    check(script)


# Cut anywhere


@settings(max_examples=examples(100), deadline=None)
@given(
    scripts=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=6),
    data=st.data(),
    turns=st.integers(0, 2),
)
def test_valid_requests_get_the_same_responses_wherever_they_are_cut(
    scripts: list[bytes], data: st.DataObject, turns: int
) -> None:
    sent = [request(Choices(each), number + 1) for number, each in enumerate(scripts * 2)]
    sent = owed_of(sent)
    size = sum(len(each.data) for each in sent)
    cuts = data.draw(st.lists(st.integers(1, max(1, size + 50)), max_size=12, unique=True))
    whole, _ = answered(sent, [], 0)
    split, protocol = answered(sent, sorted(cuts), turns)
    assert [shown(each) for each in split] == [shown(each) for each in whole]
    assert len(whole) == len(sent) == len(protocol.methods)
    # One read for each, so that heads that are repeated are not parsed again.
    ends = list(accumulate(len(each.data.replace(SESSION, ID)) for each in sent))
    one_by_one, _ = answered(sent, ends[:-1], 8)
    assert [shown(each) for each in one_by_one] == [shown(each) for each in whole]


# As long as the id of a session.
ID = b"x" * 43


def test_a_head_that_is_repeated_is_not_parsed_again() -> None:
    choices = bytes([0, 1, 0, 0, 0, 0, 1])
    sent = [request(Choices(choices), number + 1) for number in range(6)]
    size = len(sent[0].data)
    responses, protocol = answered(sent, [size * number for number in range(1, 6)], 8)
    assert [each.status for each in responses] == [200] * 6
    assert len(protocol.methods) == 6
    assert protocol.known == 4


def answered(sent: list[Sent], cuts: list[int], turns: int) -> tuple[list[Response], Protocol]:
    """Return the responses to requests that are read in pieces, and what has read them."""
    stage = scene()

    async def exchanged() -> tuple[list[Response], Protocol]:
        alone = asyncio.all_tasks()
        stage.released = asyncio.Event()
        stage.released.set()
        try:
            session = await opened(stage)
            stream = b"".join(each.data for each in sent).replace(SESSION, session)
            wire = FuzzedConnection(stage.http)
            for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
                if stream[start:end]:
                    await wire.feed(stream[start:end], turns)
            async with asyncio.timeout(10):
                while len([each for each in wire.responses() if each.is_whole]) < len(sent):
                    await asyncio.sleep(0)
            for _ in range(5):
                await asyncio.sleep(0)
            return wire.responses(), wire.protocol
        finally:
            await ended(stage, alone)

    return stage.runner.run(exchanged())


def shown(response: Response) -> tuple[Any, ...]:
    """What does not depend on time or chance: streams are the same if their messages are."""
    headers = {**response.headers, b"date": b"", b"mcp-session-id": b""}
    del headers[b"date"], headers[b"mcp-session-id"]
    body = re.sub(rb"reference [0-9a-f]{8}", b"", response.body)
    return response.status, headers, body


# Defects that are found

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = HEALTH.replace(b"GET", b"HEAD")
CLOSE = HEALTH[:-2] + b"Connection: close\r\n\r\n"
LAST: list[Any] = []
RESPOND = ResponseWriter.respond


def script(*requests: bytes) -> bytes:
    return bytes([0, 1, 128]) + b"".join(requests)


def call(number: int, tool: str = "echo") -> bytes:
    params = {"name": tool, "arguments": {"text": f"b{number}-7f3a"}, "_meta": META}
    headers = f"MCP-Protocol-Version: {LATEST}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    return plain(body_of("tools/call", params, number), headers.encode())


def respond_twice(self: ResponseWriter, *given: Any) -> None:
    self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    RESPOND(self, *given)


def respond_with_a_body(self: ResponseWriter, *given: Any) -> None:
    self._is_head = False
    RESPOND(self, *given)


def respond_with_an_old_body(
    self: ResponseWriter, status: int, body: bytes, headers: Any = ()
) -> None:
    LAST.append(body)
    RESPOND(self, status, b"".join(LAST[-2:]), ((b"content-type", b"text/plain"),))


def respond_with_a_header_of_the_request(
    self: ResponseWriter, status: int, body: bytes, headers: Any = ()
) -> None:
    RESPOND(
        self,
        status,
        body,
        (*headers, *(each for each in self._connection.reader._headers if b"x" in each[0])),
    )


def respond_with_an_injected_header(
    self: ResponseWriter, status: int, body: bytes, headers: Any = ()
) -> None:
    RESPOND(self, status, body, (*headers, (b"x-a", b"b\r\n c")))


def stay_open(self: HttpServerConnection) -> None:
    self.phase = Phase.READY


def fail(self: ResponseWriter, *_given: Any) -> None:
    raise RuntimeError("a defect")


def fail_later(self: ResponseWriter, *given: Any) -> None:
    self._server.loop.call_soon(fail, self)
    RESPOND(self, *given)


def leave_a_task(self: ResponseWriter, *given: Any) -> None:
    LAST.append(self._server.loop.create_task(asyncio.sleep(60)))
    RESPOND(self, *given)


def log_an_error(self: ResponseWriter, *given: Any) -> None:
    logging.getLogger("trunkline.http").error("a defect")
    RESPOND(self, *given)


def keep_everything(self: RequestReader, _refusal: Any) -> None:
    self._bytes = 0


ENDLESS = b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 3000
Defect = tuple[str, Callable[..., Any], bytes]
DEFECTS: dict[str, Defect] = {
    "two responses": ("respond", respond_twice, script(HEALTH)),
    "a body of a response to HEAD": ("respond", respond_with_a_body, script(HEAD, HEAD)),
    "a body of another response": (
        *("respond", respond_with_an_old_body),
        script(call(1), call(2)),
    ),
    "a header of the request": (
        *("respond", respond_with_a_header_of_the_request),
        script(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: h1-7f3a\r\n\r\n"),
    ),
    "a header in two lines": ("respond", respond_with_an_injected_header, script(HEALTH)),
    "a connection that is not closed": ("_close_in_order", stay_open, script(CLOSE)),
    "raised to the event loop": ("buffer_updated", fail, script(HEALTH)),
    "raised in the event loop": ("respond", fail_later, script(HEALTH)),
    "a task is left": ("respond", leave_a_task, script(HEALTH)),
    "an error is logged": ("respond", log_an_error, script(HEALTH)),
    "endless headers are kept": ("_reject", keep_everything, bytes([4, 0, 128]) + ENDLESS),
    "a response is lost": ("respond", lambda *_: None, bytes([0, 1, 0, 0, 5, 0, 0])),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, defect, sent = DEFECTS[name]
    check(sent)
    monkeypatch.setattr(fuzz_http, "PATIENCE", 0.2)
    classes = (ResponseWriter, RequestReader, HttpServerConnection)
    monkeypatch.setattr(next(each for each in classes if hasattr(each, where)), where, defect)
    fuzz_http.scene.cache_clear()  # what a defect leaves is not left to the other tests
    try:
        with pytest.raises((AssertionError, RuntimeError, TimeoutError)):
            check(sent)
    finally:
        for each in LAST:
            if isinstance(each, asyncio.Task):
                each.cancel()
        LAST.clear()
        fuzz_http.scene.cache_clear()


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\ncontent-length: 0\n\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length : 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: \x00\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a\r\na\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
    ],
)
def test_the_reader_of_responses_is_strict(stream: bytes) -> None:
    with pytest.raises(Malformed):
        read_responses(stream, ["GET"], True)


# Streams

TEXTS = st.text(max_size=40)
FRAMES = st.one_of(
    TEXTS.map(lambda text: json.dumps({"text": text}).encode()),
    # Of an author, with line breaks between its members.
    TEXTS.map(lambda text: json.dumps({"text": text}, indent=1).encode()),
    TEXTS.map(lambda text: json.dumps({"text": text}, ensure_ascii=False).encode()),
    st.just(b'{\r\n"a":\r1}'),
)
IDS = st.one_of(st.none(), st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)))


@settings(max_examples=examples(200), deadline=None)
@given(sent=st.lists(st.tuples(FRAMES, IDS), max_size=8), cuts=st.lists(st.integers(0, 400)))
def test_messages_written_as_events_are_read_as_they_were(
    sent: list[tuple[bytes, tuple[int, int] | None]], cuts: list[int]
) -> None:
    ids = [None if id is None else b"%d-%d" % id for _, id in sent]
    stream = b"".join(event_of(frame, id) for (frame, _), id in zip(sent, ids, strict=True))
    reader = EventReader()
    edges = sorted({0, *(each for each in cuts if each < len(stream)), len(stream)})
    found: list[Any] = []
    for start, end in pairwise(edges):
        found += reader.feed(stream[start:end])
    assert all(isinstance(each, Event) for each in found)
    assert [json.loads(each.data) for each in found] == [json.loads(frame) for frame, _ in sent]
    texts = [None if id is None else id.decode() for id in ids]
    assert [(each.event, each.id) for each in found] == [("message", text) for text in texts]
    assert reader.last_event_id == next((each for each in reversed(texts) if each), "")


@given(stream=st.integers(1, 10**6), retry=st.integers(1, 10**6))
def test_priming_event_has_the_event_id_and_the_retry_delay(stream: int, retry: int) -> None:
    class Stream:
        last_event = 0

    session = HttpSession("id", None, 0.0, retry, alone())
    session.is_resumable = session.primes = True
    session.make_log = lambda _: None  # type: ignore[assignment,return-value]  # it is not used
    session._next_stream = stream
    reader = EventReader(empty=True)
    (event,) = reader.feed(session.priming_event(Stream()))  # type: ignore[arg-type]  # as an Exchange
    assert (event.id, event.data, event.retry) == (f"{stream}-0", "", retry)
    assert reader.retry_ms == retry
