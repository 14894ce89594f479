"""Replies that belong to nothing, and ids that are used twice, in both directions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.piped_server import Piped, address, piped
from tests.rigs.conditions import until
from tests.rigs.leaks import run
from trunkline import Client, PeerError, RequestAborted, RequestTimeout
from trunkline.errors import RemoteProtocolError

INVALID_REQUEST = -32600

# To a server that has asked nothing, or something else.
STRAY_REPLIES: dict[str, Any] = {
    "an unknown id": {"jsonrpc": "2.0", "id": 99, "result": {}},
    "an unknown text": {"jsonrpc": "2.0", "id": "99", "result": {}},
    "an error of an unknown id": {"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": ""}},
    "an error without an id": {"jsonrpc": "2.0", "error": {"code": 1, "message": "what?"}},
    "an error with a null id": {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": ""}},
    "a result and an error": {
        "jsonrpc": "2.0",
        "id": 99,
        "result": {},
        "error": {"code": 1, "message": ""},
    },
    "a result that is a number": {"jsonrpc": "2.0", "id": 99, "result": 1},
    "an error that is a text": {"jsonrpc": "2.0", "id": 99, "error": "no"},
}


def test_a_server_takes_no_reply_for_a_request_and_answers_none() -> None:
    with piped() as server:
        server.handshake()
        for number, (what, stray) in enumerate(STRAY_REPLIES.items()):
            server.send(stray)
            server.send(stray)
            # A reply is never answered, whatever is wrong with it: the next answer is to this.
            server.call("echo", f"next-{number}", text="on")
            assert server.read()["id"] == f"next-{number}", what
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


def ask_back(server: Piped, id: Any) -> Any:
    """Call the tool that asks us something; return the id of its question."""
    params = {"name": "asks", "arguments": {}}
    server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    question = server.read()
    assert question["method"] == "ping"
    return question["id"]


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_a_question_of_the_server_is_answered_by_its_own_id_only() -> None:
    with piped() as server:
        server.handshake()
        question = ask_back(server, "a")
        server.send({"jsonrpc": "2.0", "id": str(question), "result": {}})
        server.send({"jsonrpc": "2.0", "id": question + 1, "result": {}})
        assert server.serves()
        server.send({"jsonrpc": "2.0", "id": question, "result": {}})
        assert text_of(server.answer("a")) == "answered"
        # A second time is one too many, and changes nothing.
        server.send({"jsonrpc": "2.0", "id": question, "result": {}})
        again = ask_back(server, "b")
        assert again != question
        server.send({"jsonrpc": "2.0", "id": question, "result": {}})
        assert server.serves()
        server.send({"jsonrpc": "2.0", "id": again, "result": {}})
        assert text_of(server.answer("b")) == "answered"


FAULTY_ANSWERS: list[dict[str, Any]] = [
    {"result": {}, "error": {"code": 1, "message": "both"}},
    {"result": 1},
    {"error": {"code": "one", "message": "no number"}},
    {"error": {"code": 1, "message": "refused"}},
]


def test_a_faulty_answer_to_a_question_of_the_server_ends_the_question() -> None:
    with piped() as server:
        server.handshake()
        for number, answer in enumerate(FAULTY_ANSWERS):
            question = ask_back(server, number)
            server.send({"jsonrpc": "2.0", "id": question, **answer})
            assert server.answer(number)["result"]["isError"] is True, answer
            assert server.serves()


def test_an_answer_after_the_server_stopped_waiting_is_ignored() -> None:
    with piped() as server:
        server.handshake()
        params = {"name": "asks", "arguments": {"timeout": 0.05}}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        question = server.read()["id"]
        cancelled = server.read()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == question
        assert server.answer(1)["result"]["isError"] is True
        server.send({"jsonrpc": "2.0", "id": question, "result": {}})
        assert server.serves()
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


# Ids of the client


def test_an_id_that_is_open_is_refused_without_it_and_the_open_one_is_answered(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    with piped() as server:
        server.call("until_file", id=1, path=str(gate))
        server.call("echo", id=1, text="again")
        refused = server.read()
        assert refused.get("id") is None
        assert refused["error"]["code"] == INVALID_REQUEST
        # 1 and "1" are two ids.
        server.call("echo", id="1", text="another")
        assert text_of(server.answer("1")) == "another"
        gate.touch()
        assert text_of(server.answer(1)) == str(gate)
        server.end_input()
        assert server.rest() == []
        assert server.wait() == 0


def test_an_id_may_be_used_again_once_it_was_answered() -> None:
    with piped() as server:
        for n in range(50):
            server.call("echo", id=1, text=str(n))
            assert text_of(server.answer(1)) == str(n)


def test_an_id_may_be_used_again_once_it_was_cancelled_and_gets_its_own_answer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "go"
    with piped() as server:
        server.call("swallows", id=1, path=str(path), then="of the first")
        until(Path(f"{path}.begun").exists)
        server.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        )
        server.call("until_file", id=1, path=f"{path}.second")
        path.touch()
        until(Path(f"{path}.done").exists)
        assert server.serves()
        Path(f"{path}.second").touch()
        assert text_of(server.answer(1)) == f"{path}.second"
        server.end_input()
        assert server.rest() == []


CANCELLED: list[Any] = [
    {"requestId": 99},
    {"requestId": "99"},
    {"requestId": None},
    {"requestId": [1]},
    {"requestId": 1.5},
    {},
    None,
]


def test_a_cancel_of_what_is_not_open_is_ignored() -> None:
    with piped() as server:
        for params in CANCELLED:
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            server.send(message if params is None else {**message, "params": params})
            server.call("echo", "next", text="on")
            assert server.read()["id"] == "next", params
        server.end_input()
        assert server.rest() == []


# Replies to a client, by a server that follows a script


def test_a_client_ignores_replies_to_what_it_never_asked() -> None:
    strays = [*STRAY_REPLIES.values(), {"jsonrpc": "2.0", "id": 0, "result": {"a": 1}}]

    async def script() -> None:
        async with Client(address("peer.py", "strays", json.dumps(strays))) as client:
            assert (await client.call_tool("echo", {"text": "one"})).text == "one"
            assert (await client.call_tool("echo", {"text": "two"})).text == "two"

    run(script)


def test_a_reply_that_comes_twice_is_taken_once() -> None:
    async def script() -> None:
        async with Client(address("peer.py", "twice")) as client:
            for text in "abc":
                assert (await client.call_tool("echo", {"text": text})).text == text

    run(script)


def test_late_reply_is_ignored_and_resolves_no_other_call() -> None:
    async def script() -> None:
        async with Client(address("peer.py", "late")) as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("echo", {"text": "late"}, timeout=0.05)
            # The late one comes with this one.
            assert (await client.call_tool("echo", {"text": "on time"})).text == "on time"
            assert (await client.call_tool("echo", {"text": "after"})).text == "after"

    run(script)


@pytest.mark.parametrize("what", ["both", "neither", "number", "bad error", "text for an id"])
def test_a_faulty_reply_ends_its_call_and_no_other(what: str) -> None:
    async def script() -> None:
        async with Client(address("peer.py", "faulty", what)) as client:
            other = asyncio.create_task(client.call_tool("wait"))
            await asyncio.sleep(0)
            with pytest.raises((RemoteProtocolError, PeerError, RequestAborted)) as raised:
                await client.call_tool("faulty", timeout=1.0)
            assert isinstance(raised.value, RequestTimeout) == (what == "text for an id")
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"
            other.cancel()
            await asyncio.wait([other])

    run(script)
