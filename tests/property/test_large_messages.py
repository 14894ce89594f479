"""A large message has the same outcome in one pass as on the usual way, whatever it holds.

Messages are made of parts that are valid alone and of ones that are not, in any order, and padded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct
from msgspec.json import Decoder

from tests.effort import examples
from trunkline import Server
from trunkline.errors import InvalidMessage
from trunkline.jsonrpc import Codec, Limits, Peer, Policy
from trunkline.jsonrpc.codec.codec import LARGE_BYTES
from trunkline.jsonrpc.codec.decoders import UNREADABLE
from trunkline.server.dispatch import connection as connections
from trunkline.server.dispatch.connection import Connection
from trunkline.server.dispatch.large_calls import read_large_call

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
PAD = b"x" * LARGE_BYTES
# Stands for it in what hypothesis draws and shows.
MARK = b"<pad>"
# Of a string: plain, escaped, beyond ASCII, and what makes the message invalid.
CONTENTS = (
    *[b"", b"a", b"[[{{", b'\\"}', b"\\\\", b"\\n", "é€😀".encode(), b"\\ud83d\\ude00"],
    *[b"\\ud83d", b"\xff", b"\n", b'"', b"\\x"],
)
DEEP = [b"[" * n + b"]" * n for n in (3, 252, 253, 254, 255, 256, 300)]
IDS = [b"1", b"1", b"1", b'"a"', b"0", b"2", b"-1", b"1.0", b"01", b"null", b'"\xc3\xa9"', b"[]"]
VERSIONS = [b'"2.0"'] * 8 + [b'"1.0"', b"2.0"]
METHODS = [b'"tools/call"'] * 8 + [b'"tools/list"', b'""', b"1", b'"tools\\/call"']
NAMES = [b'"echo"'] * 4 + [b'"sum"', b'"pairs"', b'"any"', b'"no"', b"1", b'"ech\\u006f"']
METAS = [b"{}", b'{"a":{"b":1}}', b'{"progressToken":1}', b"{a}", b"[]", b'{"a":[1]}', b"1"]

texts = st.sampled_from(CONTENTS).map(lambda text: b'"' + text + MARK + text + b'"')
values = st.one_of(texts, st.sampled_from([b"1", b"1.0", b"null", b"{}", b"[1,2]", *DEEP]))


def joined(members: list[tuple[bytes, bytes]], spaced: bool) -> bytes:
    between, colon = (b", ", b": ") if spaced else (b",", b":")
    return b"{" + between.join(b'"' + name + b'"' + colon + each for name, each in members) + b"}"


@st.composite
def objects(draw: Any, *members: tuple[bytes, Any], extra: Any = values) -> bytes:
    """Return an object of members in order, or with one more, one twice, one less, or shuffled."""
    held = [(name, draw(value)) for name, value in members]
    change = draw(st.sampled_from(["none"] * 6 + ["more", "twice", "less", "shuffle"]))
    if change == "more":
        held.insert(draw(st.integers(0, len(held))), (b"x", draw(extra)))
    elif change == "twice":
        held.append(draw(st.sampled_from(held)))
    elif change == "less":
        del held[draw(st.integers(0, len(held) - 1))]
    elif change == "shuffle":
        held = draw(st.permutations(held))
    return joined(held, draw(st.booleans()))


def messages(*members: tuple[bytes, Any]) -> Any:
    """Return messages with the envelope around members, before or after them."""
    version, id = (b"jsonrpc", st.sampled_from(VERSIONS)), (b"id", st.sampled_from(IDS))
    whole = objects(version, id, *members) | objects(*members, version, id)
    around = st.sampled_from([b"%b"] * 8 + [b"[%b]", b"%b\n", b" %b", b"%b}", b"%b,1", b"\xef%b"])
    return st.tuples(around, whole).map(lambda both: both[0].replace(b"%b", both[1]))


blocks = objects((b"type", st.just(b'"text"')), (b"text", values))
results = objects((b"content", blocks.map(lambda block: b"[" + block + b"]")))
replies = messages((b"result", results | values)) | messages(
    (b"error", st.just(b'{"code":1,"message":"' + MARK + b'"}'))
)
arguments = objects((b"text", texts)) | objects((b"numbers", values), (b"text", texts)) | values
calls = messages(
    (b"method", st.sampled_from(METHODS)),
    (
        b"params",
        objects((b"name", st.sampled_from(NAMES)), (b"arguments", arguments))
        | objects(
            (b"name", st.sampled_from(NAMES)),
            (b"_meta", st.sampled_from(METAS)),
            (b"arguments", arguments),
        )
        | objects(
            (b"name", st.sampled_from(NAMES)),
            (b"arguments", arguments),
            (b"_meta", st.sampled_from(METAS)),
        ),
    ),
)


# -- replies ---------------------------------------------------------------------------------


class Block(Struct):
    type: str
    text: str


class Content(Struct):
    content: list[Block]


read_content = Decoder(Content).decode


def outcome_of(frame: bytes, policy: Policy, *, in_one_pass: bool) -> tuple[list[Any], bool]:
    """Return what a client saw of a frame, and whether it was decoded in one pass."""
    seen: list[Any] = []
    passes: list[bool] = []

    def replied(pending: Any, reply: Any) -> None:
        if isinstance(reply, InvalidMessage):
            seen.append((pending.id, reply.rule, reply.where, repr(reply.got)))
            return
        result = reply.result
        passes.append(isinstance(result, Content))
        if isinstance(result, Raw):
            try:
                result = read_content(result)
            except UNREADABLE:
                result = bytes(result)
        seen.append((pending.id, result, reply.error))

    peer = Peer(
        Codec(policy, expect="replies"),
        write=lambda frame, _: seen.append(("written", frame)),
        on_request=lambda asked: seen.append(("asked", asked.id, asked.method)),
        on_notification=lambda call, _: seen.append(("notified", call)),
        on_reply=replied,
        on_problem=lambda problem, _: seen.append(("problem", repr(problem))),
    )
    for id in (None, None, "a", "é"):
        peer.send_request("m", id=id, read=read_content if in_one_pass else None)
    seen.clear()
    peer.feed(frame)
    return seen, any(passes)


@settings(max_examples=examples(600), deadline=None)
@given(frame=replies, policy=st.sampled_from([Policy(), Policy(revision="2025-03-26")]))
def test_a_reply_has_the_same_outcome_in_one_pass(frame: bytes, policy: Policy) -> None:
    frame = frame.replace(MARK, PAD)
    is_same = (
        outcome_of(frame, policy, in_one_pass=True)[0]
        == (outcome_of(frame, policy, in_one_pass=False)[0])
    )
    assert is_same


def test_a_plain_reply_is_decoded_in_one_pass() -> None:
    content = b'{"content":[{"type":"text","text":"' + PAD + b'"}]}'
    for text in (
        b'{"jsonrpc":"2.0","id":1,"result":' + content + b"}",
        b'{"result": ' + content + b', "jsonrpc": "2.0", "id": "a"}',
    ):
        assert outcome_of(text, Policy(), in_one_pass=True)[1]
        assert not outcome_of(text, Policy(), in_one_pass=False)[1]


CONTENT = b'"content":[{"type":"text","text":"' + PAD + b'"}]'


@pytest.mark.parametrize(
    "result",
    [
        b'{"x":"\xff",' + CONTENT + b"}",
        b'{"x":' + DEEP[-1] + b"," + CONTENT + b"}",
        b'{"x":' + b"[" * 254 + b"]" * 254 + b"," + CONTENT + b"}",
        b'{"x":"\\ud83d",' + CONTENT + b"}",
        b"{" + CONTENT + b'},"error":{"code":1,"message":""}',
        b"{" + CONTENT + b'},"method":"m"',
        b"{" + CONTENT + b'},"id":2',
        b"{" + CONTENT,
        b"{" + CONTENT + b"}}",
    ],
    ids=["utf-8", "deep", "almost deep", "surrogate", "error", "method", "id", "cut", "long"],
)
def test_faults_in_parts_that_the_result_decoder_skips_are_found(result: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":' + result + b"}"
    one, usual = (outcome_of(frame, Policy(), in_one_pass=each) for each in (True, False))
    is_same = one[0] == usual[0]
    assert is_same
    assert usual[0]


def vectors() -> Iterator[bytes]:
    """Yield the messages of the vectors, padded in a text of theirs, or in their whitespace."""
    for path in sorted(VECTORS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            if "input" not in case:
                continue
            frame = case["input"].encode()
            yield frame.replace(b'":"', b'":"' + PAD, 1)
            yield frame.replace(b"{", b"{" + b" " * LARGE_BYTES, 1)
            yield frame.replace(b"}", b',"y":"' + PAD + b'"}', 1)


def test_every_vector_has_the_same_outcome_in_one_pass() -> None:
    frames = [frame for frame in vectors() if len(frame) >= LARGE_BYTES]
    assert len(frames) > 200
    for frame in frames:
        one, usual = (outcome_of(frame, Policy(), in_one_pass=each) for each in (True, False))
        assert one[0] == usual[0]


# -- calls -----------------------------------------------------------------------------------


class Recorder:
    """A transport that records what is sent."""

    name = "default"
    is_connected = True
    backlog = 0
    written = 0

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, frame: bytes, _route: Any = None) -> None:
        self.sent.append(frame)


def app() -> Server:
    made = Server("large")

    @made.tool(inline=True)
    def echo(text: str) -> str:
        return text[-100:]

    @made.tool(inline=True)
    def sum(numbers: list[int], text: str = "") -> int:
        return len(numbers) + len(text)

    @made.tool(inline=True)
    def pairs(numbers: dict[str, list[float]] | None, text: str | int = 1) -> str:
        return repr((numbers, str(text)[-100:]))

    @made.tool(inline=True)
    def any(text: Any, numbers: Any = None) -> str:
        return repr((text, numbers))[-100:]

    return made


OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "large", "version": "1"},
}


@contextmanager
def the_usual_way() -> Iterator[None]:
    usual, connections.LARGE_BYTES = connections.LARGE_BYTES, 2**40  # type: ignore[misc]  # a constant
    try:
        yield
    finally:
        connections.LARGE_BYTES = usual  # type: ignore[misc]  # as above


def answers(frames: list[bytes]) -> list[list[bytes]]:
    """Return what a server sends for each frame."""

    async def run() -> list[list[bytes]]:
        transport = Recorder()
        served: Any = Connection(APP._core, transport)  # type: ignore[arg-type]  # enough of one
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENING}
        served.receive(json.dumps(opening).encode())
        found = []
        for frame in frames:
            transport.sent.clear()
            served.receive(frame)
            found.append([*transport.sent])
        return found

    return asyncio.run(run())


APP = app()


@settings(max_examples=examples(400), deadline=None)
@given(frames=st.lists(calls, min_size=1, max_size=4))
def test_calls_have_the_same_answers_in_one_pass(frames: list[bytes]) -> None:
    frames = [frame.replace(MARK, PAD) for frame in frames]
    in_one_pass = answers(frames)
    with the_usual_way():
        is_same = answers(frames) == in_one_pass
    assert is_same


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"echo","arguments":{"text":"<pad>"}]',
        b'{"name":"echo","arguments":{"text":"<pad>"} "_meta":{}}',
        b'{"name":"echo","arguments":{"text":"<pad>"};"_meta":{}}',
        b'{"name":"echo","arguments":{"text":"<pad>"},"_meta":{a}}',
        b'{"name":"echo","arguments":{"text":"<pad>"},"_meta":{}]',
        b'{"name":"echo","_meta":{"progressToken":"a"},"arguments":{"text":"<pad>"},"_meta":{}}',
        b'{"name":"echo","_meta":{},"arguments":{"text":"<pad>"},"_meta":{"progressToken":[]}}',
        b'{"name":"echo","_meta":{a},"arguments":{"text":"<pad>"},"_meta":{}}',
        b'{"name":"echo","arguments":{"text":"<pad>"},"task":{}}',
        b'{"name":"echo","arguments":{"text":"<pad>","_meta":{}}}',
        b'{"name":"echo","arguments":{"text":"<pad>"},"name":"sum"}',
    ],
)
def test_a_call_that_is_not_quite_plain_has_the_same_answer(params: bytes) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    in_one_pass = answers([frame.replace(MARK, PAD)])
    with the_usual_way():
        is_same = answers([frame.replace(MARK, PAD)]) == in_one_pass
    assert is_same
    assert in_one_pass[0]


@pytest.mark.parametrize(("depth", "is_read"), [(2, False), (3, True)])
def test_the_levels_around_arguments_count(depth: int, is_read: bool) -> None:
    policy = Policy.mcp("2025-11-25").replace(limits=Limits(depth=depth))
    served = Server("shallow", policy=policy)
    served.tool(echo)
    frame = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + ECHO + b"}}"

    async def read() -> Any:
        return read_large_call(Connection(served._core, Recorder()), frame)  # type: ignore[arg-type]  # as above

    assert (asyncio.run(read()) is not None) is is_read


def echo(text: str) -> str:
    return text


ECHO = b'{"name":"echo","arguments":{"text":"' + PAD + b'"}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}}',
        b'{"method": "tools/call", "params": %b}, "jsonrpc": "2.0", "id": "a"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b,"_meta":{"a":{"b":"c"}}}}',
    ],
    ids=["last", "first", "meta"],
)
def test_a_plain_call_is_decoded_in_one_pass(text: bytes) -> None:
    frame = text.replace(b"%b", ECHO)

    async def read() -> Any:
        return read_large_call(Connection(APP._core, Recorder()), frame)  # type: ignore[arg-type]  # as above

    found = asyncio.run(read())
    assert found is not None
    assert len(found.values.text) == len(PAD)
