"""The exception tree: facts inside, text at the edge, and the exact answer to a bad message."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest

from trunkline import errors
from trunkline.errors import (
    NOTHING,
    Cancelled,
    ConnectionLost,
    IdsExhausted,
    InputRequestFailed,
    InvalidMessage,
    LocalProtocolError,
    PeerError,
    ProtocolError,
    RemoteProtocolError,
    RequestAborted,
    RequestError,
    RequestTimeout,
    ToolError,
    ToolFailed,
    TooManyRoundTrips,
    TransportError,
    TrunklineError,
)


def invalid(**facts: Any) -> InvalidMessage:
    facts = {"code": -32600, "message": "Invalid Request", **facts}
    return InvalidMessage("jsonrpc.id.type", **facts)


# The tree


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (TrunklineError, Exception),
        (ProtocolError, TrunklineError),
        (LocalProtocolError, ProtocolError),
        (IdsExhausted, LocalProtocolError),
        (RemoteProtocolError, ProtocolError),
        (InvalidMessage, RemoteProtocolError),
        (InputRequestFailed, RequestAborted),
        (TooManyRoundTrips, RequestAborted),
    ],
)
def test_an_error_is_caught_by_its_parent(kind: type, parent: type) -> None:
    assert kind.__bases__ == (parent,)


def test_the_tree_is_drawn_in_the_docstring_and_exported() -> None:
    classes = {
        name
        for name, thing in vars(errors).items()
        if isinstance(thing, type) and issubclass(thing, TrunklineError)
    }
    assert set(errors.__all__) == classes
    assert all(name in (errors.__doc__ or "") for name in classes)


def test_the_tree_loads_without_the_codecs_dependency() -> None:
    script = "import sys, trunkline.errors; print('msgspec' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "False\n"


# Text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (LocalProtocolError("a.rule"), "a.rule"),
        (LocalProtocolError("a.rule", where="/id"), "a.rule at /id"),
        (LocalProtocolError("a.rule", got=None), "a.rule got null"),
        (LocalProtocolError("a.rule", got="x"), 'a.rule got "x"'),
        (LocalProtocolError("a.rule", expected="a string"), "a.rule: expected a string"),
        (
            LocalProtocolError("a.rule", where="/id", got=True, expected="a string", source="RFC"),
            "a.rule at /id got true: expected a string",
        ),
        (invalid(), "jsonrpc.id.type (-32600 Invalid Request)"),
        (
            invalid(where="/id", got="null", expected="an id", data={"a": 1}, id=5),
            'jsonrpc.id.type at /id got "null": expected an id (-32600 Invalid Request)',
        ),
    ],
)
def test_text_is_composed_of_the_facts(error: ProtocolError, text: str) -> None:
    assert str(error) == text
    assert repr(error) == f"{type(error).__name__}({text!r})"


def test_facts_are_fields() -> None:
    got = {"a": [1]}
    error = RemoteProtocolError("a.rule", where="/x", got=got, expected="y", source="z")
    facts = (error.rule, error.where, error.expected, error.source)
    assert facts == ("a.rule", "/x", "y", "z")
    assert error.got is got
    assert error.args == ("a.rule",)


def test_missing_fact_is_distinct_from_none() -> None:
    assert LocalProtocolError("a.rule").got is NOTHING
    assert LocalProtocolError("a.rule", got=None).got is None
    assert repr(NOTHING) == "nothing"


@pytest.mark.parametrize(
    ("got", "text"),
    [
        ({"token": "hunter2"}, '{"token": "[redacted]"}'),
        ("Bearer abcdefghijkl", '"[redacted]"'),
        (b"hunter2", '"<7 bytes>"'),
        (object(), '"<object>"'),
        pytest.param(10**5000, '"<integer of 16610 bits>"', id="an int too long to print"),
        ("\ud800", r'"\ud800"'),
        ({"listChanged": True, "of": [None, 1.5]}, '{"listChanged": true, "of": [null, 1.5]}'),
        ("\u202e", r'"\u202e"'),
        ("line\nbreak", r'"line\nbreak"'),
    ],
)
def test_text_shows_what_was_there_in_a_safe_way(got: Any, text: str) -> None:
    error = LocalProtocolError("a.rule", got=got)
    assert str(error) == f"a.rule got {text}"
    assert error.got is got


def test_text_is_short_whatever_was_there() -> None:
    value: Any = {f"k{n}": ["x" * 10_000] * 1000 for n in range(1000)}
    error = invalid(got=value, where="/" + "y" * 100_000)
    assert len(str(error)) < 700


@pytest.mark.parametrize(
    "where", ["/params/token", "/headers/Authorization", "/params/api-key/0", "/auth"]
)
def test_value_at_a_secret_pointer_is_redacted(where: str) -> None:
    error = LocalProtocolError("a.rule", where=where, got="hunter2")
    assert str(error) == f"a.rule at {where} got [redacted]"


def test_a_member_name_that_is_a_credential_is_not_shown() -> None:
    name = "ghp_" + "a1B2" * 9
    assert name not in str(LocalProtocolError("a.rule", where=f"/params/{name}"))


def test_a_place_with_a_lone_surrogate_can_be_printed() -> None:
    assert str(LocalProtocolError("a.rule", where="/\ud800")) == r"a.rule at /\ud800"


# Across processes


ERRORS: list[ProtocolError] = [
    ProtocolError("a.rule", where="/x", got=[1], expected="y", source="z"),
    LocalProtocolError("a.rule"),
    LocalProtocolError("a.rule", got=None),
    IdsExhausted("a.rule", got=5),
    RemoteProtocolError("a.rule", where="/x"),
    invalid(data={"a": [None]}, where="/x", got="y", id="7"),
    invalid(data=None),
    invalid(answerable=False),
    invalid(omit_id=True),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: f"{type(error).__name__}")
def test_pickling_and_copying_keep_the_facts(error: ProtocolError) -> None:
    copies: list[Any] = [
        pickle.loads(pickle.dumps(error)),
        copy.copy(error),
        copy.deepcopy(error),
    ]
    for again in copies:
        assert type(again) is type(error)
        assert again.__dict__ == error.__dict__
        assert (again.args, str(again)) == (error.args, str(error))


@pytest.mark.parametrize(
    "error", [invalid(data=None), invalid(id=7), invalid(answerable=False), invalid(omit_id=True)]
)
def test_the_answer_is_the_same_after_pickling(error: InvalidMessage) -> None:
    assert pickle.loads(pickle.dumps(error)).answer() == error.answer()


def test_a_fact_that_was_not_given_stays_that_one_object() -> None:
    again = pickle.loads(pickle.dumps(LocalProtocolError("a.rule")))
    assert again.got is NOTHING
    assert copy.deepcopy(NOTHING) is NOTHING


def test_notes_are_kept() -> None:
    error = LocalProtocolError("a.rule")
    error.add_note("while testing")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while testing"]


# The answer


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        (
            {},
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}',
        ),
        (
            {"id": 7},
            b'{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid Request"}}',
        ),
        (
            {"id": "7", "omit_id": True},
            b'{"jsonrpc":"2.0","id":"7","error":{"code":-32600,"message":"Invalid Request"}}',
        ),
        (
            {"omit_id": True},
            b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}',
        ),
        (
            {"id": 0, "data": {"at": "/id"}},
            b'{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"Invalid Request",'
            b'"data":{"at":"/id"}}}',
        ),
        (
            {"id": "", "data": None},
            b'{"jsonrpc":"2.0","id":"","error":{"code":-32600,"message":"Invalid Request",'
            b'"data":null}}',
        ),
        ({"answerable": False}, None),
        ({"answerable": False, "id": 7}, None),
    ],
)
def test_the_answer_is_exact(facts: dict[str, Any], answer: bytes | None) -> None:
    error = invalid(**facts)
    assert error.answer() == answer
    assert error.answerable is (answer is not None)


def test_the_answer_is_made_of_code_message_and_data_alone() -> None:
    error = invalid(where="/where", got="what was got", expected="what was expected", source="src")
    answer = error.answer()
    assert answer is not None
    assert json.loads(answer)["error"] == {"code": -32600, "message": "Invalid Request"}


def test_an_id_longer_than_a_machine_word_is_answered_exactly() -> None:
    answer = invalid(id=10**40).answer()
    assert answer is not None
    assert b'"id":1' + b"0" * 40 + b"," in answer


def test_answering_does_not_change_the_error() -> None:
    error = invalid(data={"a": 1})
    assert error.answer() == error.answer()
    assert error.data == {"a": 1}


@pytest.mark.parametrize(
    "error",
    [
        PeerError(
            -32602, "no such tool", {"tool": "x"}, method="tools/call", kind="TOOL_NOT_FOUND"
        ),
        RequestTimeout("no answer in 5 s", method="ping"),
        Cancelled("given up", method="tools/call"),
        ConnectionLost("gone", method="ping", exit_status=-9, stderr=("one", "two")),
        InputRequestFailed("no", method="tools/call", asked="roots/list", key="k"),
        TooManyRoundTrips("no end", method="tools/call"),
        TransportError("cannot start", exit_status=1, stderr=("one",)),
        RequestError("RESOURCE_NOT_FOUND", "no such file", data={"uri": "x"}),
        ToolError("no such city"),
        ToolFailed("it failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_survives_pickling_with_its_facts(error: TrunklineError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_connection_lost_text_has_exit_status_and_last_stderr_lines() -> None:
    error = ConnectionLost(
        "the server exited", method="ping", exit_status=-9, stderr=("one", "two")
    )
    assert str(error) == (
        "ping: the server exited (exit status -9); last lines on stderr:\n  one\n  two"
    )
    assert str(TransportError("cannot start")) == "cannot start"


def test_last_words_and_messages_of_a_peer_show_no_secret() -> None:
    canary = "hunter2canary"
    texts = [
        str(ConnectionLost("gone", stderr=(f"password={canary}",))),
        str(TransportError("gone", stderr=(f"Authorization: Bearer {canary}",))),
        str(PeerError(-1, f"token={canary}")),
        repr(PeerError(-1, f"token={canary}")),
        str(RequestError("INTERNAL_ERROR", f"secret={canary}")),
        str(ToolFailed(f"api_key={canary}")),
        str(TransportError(f"refused: token={canary}")),
        str(RequestTimeout(f"no answer from https://user:{canary}@host/")),
    ]
    assert not [text for text in texts if canary in text]


@pytest.mark.parametrize(
    "kind",
    [
        Cancelled,
        ConnectionLost,
        InputRequestFailed,
        RequestTimeout,
        TooManyRoundTrips,
        RequestAborted,
        ToolError,
        ToolFailed,
        TransportError,
    ],
)
@pytest.mark.parametrize("secret", ["token=hunter2canary", "Authorization: Bearer hunter2canary"])
def test_no_repr_shows_a_secret(kind: type[TrunklineError], secret: str) -> None:
    error = kind(secret)
    assert "hunter2canary" not in repr(error)
    assert repr(error).startswith(f"{kind.__name__}('")
    assert "hunter2canary" not in repr(RequestError("INTERNAL_ERROR", secret, data=secret))
    assert "hunter2canary" not in repr(PeerError(-1, secret, secret))


def test_a_repr_is_the_text_of_the_error() -> None:
    lost = ConnectionLost("the server exited", method="ping", exit_status=1, stderr=("one",))
    assert repr(lost) == f"ConnectionLost({str(lost)!r})"
    assert repr(ToolError("no such city")) == "ToolError('no such city')"
    assert repr(RequestError("NOT_FOUND", "gone")) == "RequestError('NOT_FOUND: gone')"


def test_the_text_of_a_tool_error_is_what_was_raised() -> None:
    text = "token=abc\x1b" + "x" * 1000
    assert str(ToolError(text)) == text
    assert len(repr(ToolError(text))) < 300


CONTROL = "\x1b[2Jboo\x07\x9b\u202e"
SHOWN = "\\x1b[2Jboo\\x07\\x9b\\u202e"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("gone", stderr=(CONTROL,)),
        TransportError("gone", stderr=(CONTROL,)),
        TransportError(CONTROL),
        Cancelled(CONTROL),
        PeerError(-1, CONTROL),
        ToolFailed(CONTROL),
        RequestError("INTERNAL_ERROR", CONTROL),
        invalid(message=CONTROL),
    ],
    ids=lambda error: type(error).__name__,
)
def test_control_characters_in_error_texts_are_escaped(error: TrunklineError) -> None:
    assert SHOWN in str(error)
    assert str(error).replace("\n", "").isprintable()


def test_lines_and_tabs_stay_what_they_are_in_a_message_and_no_line_is_forged_in_a_log() -> None:
    assert str(ToolFailed("one\n\ttwo é")) == "one\n\ttwo é"
    forged = ConnectionLost("gone", stderr=("one\r\vtwo\nthree",))
    assert str(forged).endswith("\n  one\\r\\x0btwo\\nthree")


def test_a_reason_is_not_cut() -> None:
    reason = "cannot start " + "x" * 1000
    assert str(TransportError(reason)) == reason


@pytest.mark.parametrize("number", [-32768, -32603, -32050, -32000, -31999, 7])
def test_a_request_error_may_have_any_number(number: int) -> None:
    # What a revision reserves is decided when it is sent.
    assert RequestError(number, "text").kind == number
