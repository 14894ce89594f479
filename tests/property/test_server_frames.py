"""Any frames at all to a server, by the invariants of `tests/fuzz/fuzz_server.py`.

The invariants are held to account as well: with a defect put into the server, they must fail.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz import fuzz_server
from tests.fuzz.fuzz_server import CANARY, META, MODES, check, kind_of, written
from tests.fuzz.strict_json import UNFIT, NotJson, Undecided, parse
from trunkline.jsonrpc import Codec, Peer
from trunkline.server.dispatch.connection import Connection

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "server"
SEEDS = sorted(CORPUS.iterdir())


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_a_saved_script_holds(seed: Path) -> None:
    check(seed.read_bytes())


@settings(max_examples=examples(60), deadline=None)
@given(mode=st.integers(0, len(MODES) - 1), script=st.binary(max_size=120))
def test_any_script_holds(mode: int, script: bytes) -> None:
    check(bytes([mode]) + script)


# Defects that are found

ECHO = {"name": "echo", "arguments": {"text": CANARY.decode()}, "_meta": META}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": ECHO}
NOTICE = {"jsonrpc": "2.0", "method": "no/such"}
NO_METHOD = {"jsonrpc": "2.0", "id": 7, "params": {"name": "reports", "_meta": META}}
NOT_UTF8 = written({**CALL, "x": "y"}).replace(b'"y"', b'"\xff"')


def script(*messages: object) -> bytes:
    lines = [each if isinstance(each, bytes) else written(each) for each in messages]
    # Without a handshake, which a defect would spoil.
    return bytes([MODES.index(None)]) + b"".join(b"\0" + line + b"\n" for line in lines)


def answer_twice(self: Peer, answer: Any, route: Any, _slot: Any) -> None:
    if answer is not None:
        self._write(answer, route)
        self._write(answer, route)


def answer_a_notification(self: Connection, _message: Any, _route: Any) -> None:
    self.transport.send(b'{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}')


def leave_a_task(self: Connection, _message: Any, _route: Any) -> None:
    LEFT.append(self.loop.create_task(asyncio.sleep(60)))


def log_the_message(self: Connection, asked: Any) -> None:
    logging.getLogger("trunkline.server").debug("serving %s", bytes(asked.params.arguments))
    self._serve(asked)


def lose_a_request(self: Connection, asked: Any) -> None:
    self.peer.drop(asked)


def serve_without_a_method(self: Codec, data: bytes) -> Any:
    return ENVELOPE(self, data.replace(b'"id":7,', b'"id":7,"method":"tools/call",'))


def serve_what_is_not_utf8(self: Codec, data: bytes) -> Any:
    return ENVELOPE(self, data.decode("utf-8", "replace").encode())


def write_what_is_not_json(self: Peer, answer: Any, route: Any, _slot: Any) -> None:
    if answer is not None:
        self._write(answer + b",", route)


ENVELOPE = Codec.envelope
LEFT: list[Any] = []
DEFECTS: dict[str, tuple[type, str, Callable[..., Any], bytes]] = {
    "a fault is answered twice": (Peer, "_settle", answer_twice, script(b"{")),
    "what is sent is not json": (Peer, "_settle", write_what_is_not_json, script(b"{")),
    "a notification is answered": (
        *(Connection, "_on_notification", answer_a_notification),
        script(NOTICE),
    ),
    "a task is left": (Connection, "_on_notification", leave_a_task, script(NOTICE)),
    "an argument is logged": (Connection, "_on_request", log_the_message, script(CALL)),
    "a request is lost": (Connection, "_on_request", lose_a_request, script(CALL)),
    "a message without a method is served": (
        *(Codec, "envelope", serve_without_a_method),
        script(NO_METHOD),
    ),
    "invalid utf-8 is served": (Codec, "envelope", serve_what_is_not_utf8, script(NOT_UTF8)),
}


FOUND = {"a request is lost": TimeoutError}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_of_the_server_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, defect, given_script = DEFECTS[what]
    check(given_script)
    monkeypatch.setattr(fuzz_server, "PATIENCE", 0.2)
    monkeypatch.setattr(owner, name, defect)
    with pytest.raises(FOUND.get(what, AssertionError)):
        check(given_script)
    while LEFT:
        LEFT.pop().cancel()


# The oracle


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "[]", "0", "-0", "1.5e-3", '""', "null", " [1 , 2 ]\n", '{"a":{"b":[true,false]}}'),
        *(r'"\u00e9\ud83d\ude00"', r'"\ud83d"', r'"\"\\\/\b\f\n\r\t"', '"é"', "1E+2"),
    ],
)
def test_the_oracle_reads_what_json_allows(text: str) -> None:
    assert parse(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"",
            b" ",
            b"{",
            b"[1,]",
            b"{,}",
            b'{"a":1,}',
            b"{a:1}",
            b"'a'",
            b"01",
            b"1.",
            b".5",
            b"+1",
        ),
        *(b"NaN", b"Infinity", b"-", b"1e", b'"', b'"\t"', rb'"\q"', rb'"\u12"', b"tru", b"nulll"),
        *(
            b"1 2",
            b"\xef\xbb\xbf1",
            b'"\xff"',
            b'"\xed\xa0\x80"',
            b"\0",
            b"{}\0",
            b'{"a" 1}',
            b"\x0b1",
        ),
    ],
)
def test_the_oracle_refuses_what_it_does_not(text: bytes) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_the_oracle_says_what_it_cannot_decide() -> None:
    assert parse(b"1e999") is UNFIT
    assert parse(b"9" * 5000) is UNFIT
    with pytest.raises(Undecided):
        parse(b"[" * 200 + b"]" * 200)


@settings(max_examples=examples(200), deadline=None)
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_the_oracle_agrees_with_a_second_parser(value: Any) -> None:
    for ascii_only in (True, False):
        assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (CALL, "request"),
        (NOTICE, "silent"),
        ({**NOTICE, "params": 5}, "silent"),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, "silent"),
        ({**CALL, "id": None}, "faulty"),
        ({**CALL, "id": True}, "faulty"),
        ({**CALL, "id": "\ud83d"}, "faulty"),
        ({**CALL, "method": ""}, "faulty"),
        ({**CALL, "result": {}}, "faulty"),
        (NO_METHOD, "faulty"),
        (7, "faulty"),
    ],
)
def test_the_oracle_knows_what_is_answered(message: Any, kind: str) -> None:
    assert kind_of(message) == kind
