"""Any bytes in: each gets the answer the protocol has for it, and the server serves on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import for_each
from tests.faults.piped_server import MIB, Piped, address, piped
from tests.faults.test_sockets import SocketClient, listening
from tests.rigs.conditions import until
from tests.rigs.leaks import run
from trunkline import Client
from trunkline.jsonrpc import InvalidMessage

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601

# What is no JSON, or no message, and names no request that could be read.
NAMELESS: dict[str, tuple[bytes, int]] = {
    "garbage": (b"garbage", PARSE_ERROR),
    "binary": (bytes(b for b in range(256) if b not in b"\r\n"), PARSE_ERROR),
    "nul": (b"\0\0\0\0", PARSE_ERROR),
    "a brace": (b"{", PARSE_ERROR),
    "a third of a message": (b'{"jsonrpc":"2.0","id":1,"meth', PARSE_ERROR),
    "two ids and invalid utf-8": (
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"\xff"}',
        PARSE_ERROR,
    ),
    "an id inside, and NaN": (
        b'{"jsonrpc":"2.0","method":"ping","id":NaN,"params":{"id":1}}',
        PARSE_ERROR,
    ),
    "a surrogate in the id": (rb'{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}', PARSE_ERROR),
    "two messages on a line": (b'{"a":1}{"a":1}', PARSE_ERROR),
    "a header": (b"Content-Length: 52", PARSE_ERROR),
    "an http request": (b"POST /mcp HTTP/1.1", PARSE_ERROR),
    "a number": (b"42", INVALID_REQUEST),
    "a text": (b'"initialize"', INVALID_REQUEST),
    "null": (b"null", INVALID_REQUEST),
    "an empty object": (b"{}", INVALID_REQUEST),
    "an empty batch": (b"[]", INVALID_REQUEST),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST),
    "a fraction for an id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST),
    "true for an id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST),
    "a list for an id": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID_REQUEST),
    "100 000 brackets": (b"[" * 100_000, INVALID_REQUEST),
    "100 000 braces": (b'{"a":' * 100_000, INVALID_REQUEST),
}

# What names its request, and is still no request.
NAMED: dict[str, tuple[dict[str, Any] | bytes, int]] = {
    "no version": ({"id": 7, "method": "ping"}, INVALID_REQUEST),
    "another version": ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, INVALID_REQUEST),
    "no method": ({"jsonrpc": "2.0", "id": 7}, INVALID_REQUEST),
    "the params of a tool and no method": (
        {"jsonrpc": "2.0", "id": 7, "params": {"name": "echo", "arguments": {"text": "x"}}},
        INVALID_REQUEST,
    ),
    "a number for a method": ({"jsonrpc": "2.0", "id": 7, "method": 1}, INVALID_REQUEST),
    "a list for params": (
        {"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]},
        INVALID_PARAMS,
    ),
    "an unknown method": ({"jsonrpc": "2.0", "id": 7, "method": "no/such"}, METHOD_NOT_FOUND),
    "100 000 levels of params": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":'
        + b"[" * 100_000
        + b"]" * 100_000
        + b"}}",
        0,
    ),
    "invalid utf-8": (b'{"jsonrpc":"2.0","id":7,"method":"\xff\xfe"}', PARSE_ERROR),
    "an overlong utf-8 form": (b'{"jsonrpc":"2.0","id":7,"method":"\xc0\xaf"}', PARSE_ERROR),
    "invalid utf-8 in what is not read": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"\xff"},"y":{"z":"\xe9"}}',
        PARSE_ERROR,
    ),
    "nul in a text": (b'{"jsonrpc":"2.0","id":7,"method":"a\0b"}', PARSE_ERROR),
    "a tab in a text": (b'{"jsonrpc":"2.0","id":7,"method":"a\tb"}', PARSE_ERROR),
    "half a message": (b'{"jsonrpc":"2.0","id":7,"method":"tools/l', PARSE_ERROR),
    "NaN": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}', PARSE_ERROR),
    "a comma too many": (b'{"jsonrpc":"2.0","id":7,"method":"ping",}', PARSE_ERROR),
    "a surrogate in the method": (rb'{"jsonrpc":"2.0","id":7,"method":"\ud83d"}', PARSE_ERROR),
    "a surrogate in the name of a tool": (
        rb'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo\ud83d"}}',
        PARSE_ERROR,
    ),
    "a surrogate in a member name": (
        rb'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
        rb'"params":{"name":"echo","arguments":{"\ud83d":1}}}',
        PARSE_ERROR,
    ),
    "an integer of 5000 digits": (
        b'{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":'
        + b"9" * 5000
        + b"}}",
        INVALID_PARAMS,
    ),
}


@pytest.fixture
def server() -> Iterator[Piped]:
    """Return a server for all cases of a test; in the end it has nothing more to say."""
    with piped() as server:
        yield server
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


@pytest.fixture
def handshaken(server: Piped) -> Piped:
    server.handshake()
    return server


@for_each("what", NAMELESS)
def test_unreadable_message_is_answered_without_id_and_the_server_continues(
    what: str, server: Piped
) -> None:
    data, code = NAMELESS[what]
    server.write(data + b"\n")
    answer = server.read()
    assert answer["error"]["code"] == code, answer
    assert answer.get("id") is None
    assert server.serves()


@for_each("what", NAMED)
def test_invalid_message_with_readable_id_is_answered_with_that_id(
    what: str, handshaken: Piped
) -> None:
    data, code = NAMED[what]
    line = data if isinstance(data, bytes) else json.dumps(data).encode()
    handshaken.write(line + b"\n")
    answer = handshaken.read()
    assert "error" in answer, answer
    if code:
        assert answer["id"] == 7
        assert answer["error"]["code"] == code
    assert handshaken.serves()


NOT_JSON: dict[str, bytes] = {
    "NaN": b"NaN",
    "a byte of latin-1": b'"ann\xe9"',
    "a comma too many": b"[1,]",
    "a tab": b'"\t"',
}


def test_an_argument_with_half_an_emoji_is_read_with_a_replacement_character() -> None:
    with piped() as server:
        call = server.request("tools/call", 7, name="echo", arguments={"text": "cut \ud83d"})
        server.write(json.dumps(call).encode() + b"\n")
        assert server.answer(7)["result"]["content"][0]["text"] == "cut \ufffd"
        assert server.serves()


@for_each("value", [*NOT_JSON.values(), rb'"cut \ud83d"'], ids=[*NOT_JSON, "surrogate"])
def test_a_notification_is_not_answered_whatever_is_in_it(value: bytes, handshaken: Piped) -> None:
    handshaken.write(
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":1,"progress":1,"message":%b}}\n' % value
    )
    # An answer would come before that of the next request.
    handshaken.call("echo", "next", text="on")
    assert handshaken.read()["id"] == "next"


def test_a_faulty_request_with_the_id_of_an_open_one_is_answered_without_it() -> None:
    with piped() as server:
        server.handshake()
        server.call("forever", 7)
        server.write(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}\n')
        answer = server.read()
        assert answer["error"]["code"] == PARSE_ERROR
        assert answer.get("id") is None


def test_a_socket_is_answered_with_the_id_too(tmp_path: Path) -> None:
    with listening(f"unix:{tmp_path / 's'}") as (_, place), SocketClient(place) as raw:
        raw.socket.sendall(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}\n')
        answer = raw.read()
        assert (answer["id"], answer["error"]["code"]) == (7, PARSE_ERROR)
        raw.call(8, "echo", text="cut \ud83d")
        assert raw.read()["result"]["content"][0]["text"] == "cut \ufffd"


# Replies that are not JSON. Without their id, whatever waits for them waits for its timeout.


@pytest.mark.parametrize("tool", ["asks_the_user", "asks_the_user_from_a_thread"])
def test_an_answer_that_is_not_json_ends_the_question_at_once(tool: str) -> None:
    with piped() as server:
        server.handshake(elicitation={})
        for what, value in NOT_JSON.items():
            question = asked_by(server, tool, what)
            ended = server.log().count("asking ended: InvalidMessage")
            server.write(
                b'{"jsonrpc":"2.0","id":%d,"result":{"action":"accept","content":{"value":%b}}}\n'
                % (question, value)
            )
            assert server.answer(what)["result"]["isError"] is True
            until(lambda now=ended: server.log().count("asking ended: InvalidMessage") == now + 1)
            assert server.serves()
        # In one line: a client could fill the disk with tracebacks.
        assert "Traceback" not in server.log()


@pytest.mark.parametrize("tool", ["asks_the_user", "asks_the_user_from_a_thread"])
def test_an_answer_with_half_an_emoji_is_an_answer(tool: str) -> None:
    with piped() as server:
        server.handshake(elicitation={})
        question = asked_by(server, tool, "a")
        content = {"value": "ann \ud83d"}
        server.send(
            {"jsonrpc": "2.0", "id": question, "result": {"action": "accept", "content": content}}
        )
        answer = server.answer("a")["result"]
        assert answer["content"][0]["text"] == "Hello, ann \ufffd!"


def asked_by(server: Piped, tool: str, id: str) -> int:
    """Call a tool that asks the user, and return the id of its question."""
    params = {"name": tool, "arguments": {}}
    server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    asked = server.read()
    assert asked["method"] == "elicitation/create"
    assert isinstance(asked["id"], int)
    return asked["id"]


BAD_REPLIES: dict[str, bytes] = {
    **{
        what: b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":%b}}' % value
        for what, value in NOT_JSON.items()
    },
    "an error with NaN": b'{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"e","data":NaN}}',
    "the id last": b'{"result":{"content":[],"x":NaN},"jsonrpc":"2.0","id":ID}',
    "no end": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","te',
    "invalid utf-8 in what is not read": (
        b'{"jsonrpc":"2.0","id":ID,"result":{"content":[]},"x":"\xff"}'
    ),
    "a surrogate in a uri": (
        rb'{"jsonrpc":"2.0","id":ID,"result":'
        rb'{"content":[{"type":"resource_link","uri":"file:///\ud83d","name":"n"}]}}'
    ),
}


@pytest.mark.parametrize("what", BAD_REPLIES)
def test_a_reply_that_is_not_json_ends_its_call_at_once_and_no_other(what: str) -> None:
    async def script() -> None:
        peer = address("peer.py", "normal", BAD_REPLIES[what].decode("latin-1"))
        async with Client(peer) as client:
            other = asyncio.create_task(client.call_tool("wait"))
            await asyncio.sleep(0)
            # Without a timeout of its own, so that only the reply can end it.
            with pytest.raises(InvalidMessage) as raised:
                await client.call_tool("raw")
            assert raised.value.rule.startswith("jsonrpc.text.")
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"
            assert not other.done()
            other.cancel()
            await asyncio.wait([other])

    run(script)


def test_a_reply_with_half_an_emoji_is_read_with_a_replacement_character() -> None:
    async def script() -> None:
        block = r'{"type":"text","text":"cut \ud83d"}'
        reply = f'{{"jsonrpc":"2.0","id":ID,"result":{{"content":[{block}]}}}}'
        async with Client(address("peer.py", "normal", reply)) as client:
            assert (await client.call_tool("raw")).text == "cut \ufffd"

    run(script)


def test_an_argument_of_5000_digits_is_refused_in_a_sentence() -> None:
    with piped() as server:
        head = json.dumps(server.request("tools/call", 7, name="quick")).encode()[:-2]
        server.write(head + b',"arguments":{"number":' + b"9" * 5000 + b"}}}\n")
        answer = server.answer(7)
        assert "error" in answer or answer["result"]["isError"]
        assert "99999" not in json.dumps(answer)
        assert server.serves()


def test_all_of_it_in_one_write_is_answered_one_by_one() -> None:
    with piped() as server:
        server.write(b"".join(data + b"\n" for data, _ in NAMELESS.values()))
        assert [server.read()["error"]["code"] for _ in NAMELESS] == [
            c for _, c in NAMELESS.values()
        ]
        assert server.serves()


@for_each("blank", [b"\n", b"\r\n", b"   \n", b"\n\n\n\t\n"])
def test_blank_lines_are_ignored(blank: bytes, server: Piped) -> None:
    server.write(blank * 100)
    # An answer would come before that of the next request.
    server.call("echo", "next", text="on")
    assert server.read()["id"] == "next"


def test_a_byte_order_mark_is_refused_or_passed_over_and_the_next_message_is_served() -> None:
    with piped() as server:
        server.write(b"\xef\xbb\xbf" + json.dumps(server.request("tools/list", 1)).encode() + b"\n")
        answer = server.read()
        assert "result" in answer or answer["error"]["code"] == PARSE_ERROR
        assert server.serves()


def test_a_message_that_comes_byte_by_byte_is_one_message() -> None:
    with piped() as server:
        line = json.dumps(server.request("tools/call", 1, name="echo", arguments={"text": "ü"}))
        for byte in line.encode() + b"\n":
            server.write(bytes([byte]))
        assert server.answer(1)["result"]["content"][0]["text"] == "ü"


@pytest.mark.parametrize("id", [7, "seven"])
def test_a_line_over_the_limit_is_refused_under_its_id_and_the_connection_lives_on(id: Any) -> None:
    with piped() as server:
        assert server.serves()
        before = server.resident("VmHWM")
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"method":"tools/call","params":{{"text":"'
        server.write(head.encode() + b"x" * (17 * MIB) + b'"}}\n')
        answer = server.read()
        assert answer["id"] == id
        assert answer["error"]["code"] == INVALID_REQUEST
        assert server.serves()
        # The limit, and a few copies of a chunk: what is over it is not kept.
        assert server.resident("VmHWM") - before < 40 * MIB


def test_a_line_without_end_is_refused_once_and_not_kept() -> None:
    with piped() as server:
        assert server.serves()
        before = server.resident("VmHWM")
        for _ in range(100):
            server.write(b"x" * MIB)
        assert server.read()["error"]["code"] == INVALID_REQUEST
        assert server.resident("VmHWM") - before < 40 * MIB
        server.write(b"\n")
        assert server.serves()
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


def test_truncated_frame_at_end_of_input_is_dropped_and_the_server_exits_with_0() -> None:
    with piped() as server:
        assert server.serves()
        server.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/li')
        server.end_input()
        assert all("error" in answer for answer in server.rest())
        assert server.wait() == 0


def test_half_a_frame_by_a_client_that_is_killed_ends_the_server_in_order() -> None:
    # A process between us and the server: it writes half a frame, and is killed.
    with piped() as server:
        assert server.process.stdin is not None
        writer = subprocess.Popen(
            ["/bin/sh", "-c", 'printf \'{"jsonrpc":"2.0","id":1,"meth\'; exec sleep 600'],
            stdout=server.process.stdin,
        )
        server.end_input()
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(10)
        assert all("error" in answer for answer in server.rest())
        assert server.wait() == 0


def test_error_replies_and_log_do_not_quote_the_input() -> None:
    with piped() as server:
        server.write(b"canary-4f1c\n")
        assert "canary" not in json.dumps(server.read())
        server.write(
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"canary-4f1c":' + b"[" * 99
        )
        server.write(b"\n")
        assert "canary" not in json.dumps(server.read())
        assert server.serves()
        assert "canary" not in server.log()


def test_many_faults_do_not_fill_the_log() -> None:
    with piped() as server:
        server.write(b"garbage\n" * 1000)
        for _ in range(1000):
            assert server.read()["error"]["code"] == PARSE_ERROR
        assert server.serves()
        assert server.log().count("\n") < 100
