"""The messages as values: what they hold, how they compare, how they are written and shown."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from msgspec import UNSET, Raw, Struct

from trunkline.errors import InvalidMessage
from trunkline.jsonrpc import (
    Batch,
    Call,
    ErrorObject,
    ExtendedCall,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    Notification,
    Reply,
    Request,
    Success,
    decode,
    encode,
)
from trunkline.jsonrpc.messages import SentRequest, Shown, shown

ERROR = ErrorObject(-32601, "Method not found")
FAULT = InvalidMessage("jsonrpc.id.type", code=-32600, message="Invalid Request", id=3)
MESSAGES: list[Any] = [
    Request("m", {"a": 1}, id=1),
    Notification("m", {"a": 1}),
    ExtendedRequest("m", {"a": 1}, id=1, auth="x", metadata={"k": "v"}),
    ExtendedNotification("m", {"a": 1}, headers={"h": 1}),
    SentRequest(1, "m", {"a": 1}),
    Success(1, {"a": 1}),
    Failure(1, ERROR),
    ERROR,
]


def name(message: Any) -> str:
    return type(message).__name__


# Values


@pytest.mark.parametrize("message", MESSAGES, ids=name)
def test_a_message_does_not_change(message: Struct) -> None:
    for field in message.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(message, field, 5)


@pytest.mark.parametrize("message", MESSAGES, ids=name)
def test_a_message_takes_no_further_attributes(message: Any) -> None:
    with pytest.raises(AttributeError):
        message.extra = 5


@pytest.mark.parametrize("message", MESSAGES, ids=name)
def test_a_message_equals_its_copies(message: Any) -> None:
    assert copy.copy(message) == copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert type(copy.deepcopy(message)) is type(message)


def test_messages_are_compared_by_content() -> None:
    assert Request("m", {"a": [1]}, id=1) == Request("m", {"a": [1]}, id=1)
    assert Request("m", id=1) != Request("m", id=2)
    assert Request("m", id=1) != Request("n", id=1)
    assert Request("m", id=7) != Request("m", id="7")
    assert Success(1, {}) != Success(1, {"a": 1})
    assert Failure(1, ERROR) != Failure(1, ErrorObject(-32601, "Method not found", None))


def test_messages_of_two_kinds_are_not_equal() -> None:
    for place, message in enumerate(MESSAGES):
        assert all(message != other for other in MESSAGES[place + 1 :])
    assert Request("m", id=1) != ExtendedRequest("m", id=1)


def test_a_message_without_containers_is_a_key() -> None:
    assert {Request("m", id=1): "kept"}[Request("m", id=1)] == "kept"
    assert len({Notification("a"), Notification("a"), Notification("b")}) == 2
    assert hash(Failure(1, ERROR)) == hash(Failure(1, ErrorObject(-32601, "Method not found")))


def test_request_without_an_id_raises_a_type_error() -> None:
    with pytest.raises(TypeError, match="id"):
        Request("m")  # type: ignore[call-arg]


def test_a_notification_has_no_id_and_takes_none() -> None:
    assert Notification("m").id is None
    with pytest.raises(TypeError):
        Notification("m", id=1)  # type: ignore[call-arg]


def test_every_extended_message_has_metadata_of_its_own() -> None:
    first, second = ExtendedRequest("m", id=1), ExtendedRequest("m", id=2)
    first.metadata["k"] = "v"
    assert second.metadata == {}


# Telling them apart


def kind_of(message: Any) -> str:
    match message:
        case Batch():
            return f"batch of {len(message)}"
        case ExtendedRequest(method, auth=str(auth)):
            return f"request {method} by {auth}"
        case Request(method, params, id=id):
            return f"request {method} {params} {id}"
        case Notification(method, params):
            return f"notification {method} {params}"
        case Success(id, result):
            return f"success {id} {result}"
        case Failure(id, ErrorObject(code, text)):
            return f"failure {id} {code} {text}"
    return "nothing"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (Request("m", {"a": 1}, id=7), "request m {'a': 1} 7"),
        (Notification("m"), "notification m None"),
        (ExtendedRequest("m", id=1, auth="someone"), "request m by someone"),
        (ExtendedRequest("m", id=1), "request m None 1"),
        (ExtendedNotification("m"), "notification m None"),
        (Success(1, []), "success 1 []"),
        (Failure(None, ERROR), "failure None -32601 Method not found"),
        (Batch([Notification("m")]), "batch of 1"),
    ],
)
def test_messages_are_distinguished_by_match_patterns(message: Any, kind: str) -> None:
    assert kind_of(message) == kind


# On the wire


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Request("m", id=1), b'{"jsonrpc":"2.0","method":"m","id":1}'),
        (Request("m", {}, id=1), b'{"jsonrpc":"2.0","method":"m","params":{},"id":1}'),
        (Request("m", [], id=1), b'{"jsonrpc":"2.0","method":"m","params":[],"id":1}'),
        (SentRequest(1, "m"), b'{"jsonrpc":"2.0","id":1,"method":"m"}'),
        (SentRequest(1, "m", {}), b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'),
        (Notification("m"), b'{"jsonrpc":"2.0","method":"m"}'),
        (Notification("m", {}), b'{"jsonrpc":"2.0","method":"m","params":{}}'),
        (Success(1, {}), b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        (Success(1, None), b'{"jsonrpc":"2.0","id":1,"result":null}'),
        (
            Failure(1, ErrorObject(5, "x")),
            b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x"}}',
        ),
        (
            Failure(1, ErrorObject(5, "x", None)),
            b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x","data":null}}',
        ),
        (
            Failure(None, ErrorObject(5, "x")),
            b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"x"}}',
        ),
        (
            Failure(UNSET, ErrorObject(5, "x")),
            b'{"jsonrpc":"2.0","error":{"code":5,"message":"x"}}',
        ),
        (ExtendedRequest("m", id=1), b'{"jsonrpc":"2.0","method":"m","id":1}'),
        (
            ExtendedRequest("m", id=1, auth="t", headers={"h": 1}, metadata={"k": "v"}),
            b'{"jsonrpc":"2.0","method":"m","id":1,"auth":"t","headers":{"h":1},"metadata":{"k":"v"}}',
        ),
    ],
)
def test_a_message_writes_its_version_and_what_it_has(message: Any, text: bytes) -> None:
    assert encode(message) == text


def test_no_params_and_empty_params_are_two_things_both_ways() -> None:
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"m"}') == Request("m", None, id=1)
    assert decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}') == Request("m", {}, id=1)


def test_no_data_and_null_data_are_two_things_both_ways() -> None:
    without = decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x"}}')
    with_null = decode(b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"x","data":null}}')
    assert isinstance(without, Failure)
    assert isinstance(with_null, Failure)
    assert without.error.data is UNSET
    assert with_null.error.data is None


# Batches


def test_a_batch_is_a_tuple_of_its_messages() -> None:
    batch = Batch([Request("a", id=1), Notification("b")])
    first, second = batch
    assert (first, second) == tuple(batch)
    assert len(batch) == 2
    assert batch.id is None
    assert batch == Batch([Request("a", id=1), Notification("b")])
    assert batch != Batch([Notification("b"), Request("a", id=1)])


def test_batch_separates_messages_from_faults() -> None:
    batch = Batch([Request("a", id=1), FAULT, Notification("b")])
    assert batch.messages == [Request("a", id=1), Notification("b")]
    assert batch.faults == [FAULT]
    assert Batch().messages == []
    assert Batch().faults == []


def test_a_batch_does_not_change() -> None:
    batch = Batch([Notification("a")])
    with pytest.raises(TypeError):
        batch[0] = Notification("b")  # type: ignore[index]
    with pytest.raises(AttributeError):
        batch.extra = 5  # type: ignore[attr-defined]


def test_a_batch_survives_pickling() -> None:
    batch = Batch([Request("a", id=1), Success(1, {})])
    again = pickle.loads(pickle.dumps(batch))
    assert (type(again), again) == (Batch, batch)


# Shown


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Request("m", {"a": 1}, id=1), "Request(method='m', params={'a': 1}, id=1)"),
        (Request("m", id="x"), "Request(method='m', params=None, id='x')"),
        (Notification("m"), "Notification(method='m', params=None)"),
        (Success(1, [True]), "Success(id=1, result=[True])"),
        (
            Failure(UNSET, ERROR),
            "Failure(error=ErrorObject(code=-32601, message='Method not found'))",
        ),
        (
            Failure(1, ErrorObject(5, "x", None)),
            "Failure(id=1, error=ErrorObject(code=5, message='x', data=None))",
        ),
        (
            ExtendedRequest("m", id=1, auth="t"),
            "ExtendedRequest(method='m', params=None, id=1, auth=[redacted], headers=None, "
            "metadata={})",
        ),
        (
            ExtendedRequest("m", id=1),
            "ExtendedRequest(method='m', params=None, id=1, auth=None, headers=None, metadata={})",
        ),
        (
            Call(id=1, method="m", params=Raw(b'{"a":[1]}')),
            "Call(id=1, method='m', params={'a': [1]})",
        ),
        (Call(method="m"), "Call(method='m')"),
        (ExtendedCall(method="m", auth="t"), "ExtendedCall(method='m', auth=[redacted])"),
        (Reply(id=1, result=Raw(b"[]")), "Reply(id=1, result=[])"),
        (Reply(id=1, result=Raw(b"{")), "Reply(id=1, result='<1 bytes of unreadable JSON>')"),
        (Batch([Notification("m")]), "Batch([Notification(method='m', params=None)])"),
    ],
)
def test_a_message_shows_what_it_holds(message: Any, text: str) -> None:
    assert repr(message) == str(message) == f"{message}" == text


def test_large_params_are_not_decoded_for_repr() -> None:
    at_most = Raw(b'"' + b"x" * 65_534 + b'"')
    assert "xxx" in repr(Call(method="m", params=at_most))
    more = Raw(b'"' + b"x" * 65_535 + b'"')
    assert repr(Call(method="m", params=more)) == "Call(method='m', params='<65537 bytes of JSON>')"


def test_a_large_batch_is_cut() -> None:
    text = repr(Batch([Notification("m")] * 1000))
    assert text.count("Notification") == 32
    assert text.endswith("… 968 more])")
    assert "more" not in repr(Batch([Notification("m")] * 32))


def test_deeply_nested_params_are_shown_to_a_limited_depth() -> None:
    value: list[Any] = []
    value.append(value)
    assert "…" in repr(Request("m", value, id=1))
    assert "…" in repr(Call(method="m", params=Raw(b"[" * 500 + b"]" * 500)))


def test_how_one_field_is_shown_can_be_overridden() -> None:
    text = shown(ExtendedRequest("m", id=1, auth="t"), auth="<some>")
    assert "auth=<some>" in text


@pytest.mark.parametrize("message", MESSAGES, ids=name)
def test_rich_repr_shows_no_more_than_repr(message: Any) -> None:
    # A Struct has a `__rich_repr__` of its own, which shows everything.
    told = ", ".join(f"{key}={value!r}" for key, value in message.__rich_repr__())
    assert f"{type(message).__name__}({told})" == repr(message)
    assert isinstance(message, Shown)
