"""A secret stays out of sight wherever it was put: canaries in every place, looked for in
everything that is printed.
"""

from __future__ import annotations

import io
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pprint import pformat
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec import field as named
from msgspec import json as msgspec_json

from tests.cases import for_each
from tests.cpu_time import calibration_s, cpu_s
from trunkline import redaction
from trunkline.errors import InvalidMessage, LocalProtocolError, RemoteProtocolError
from trunkline.jsonrpc import (
    Batch,
    Call,
    Codec,
    ErrorObject,
    ExtendedCall,
    ExtendedNotification,
    ExtendedRequest,
    Failure,
    IncomingRequest,
    Limits,
    Notification,
    Pending,
    Policy,
    Reply,
    Request,
    Success,
)
from trunkline.jsonrpc.messages import SentRequest
from trunkline.redaction import (
    HIDDEN,
    conceal,
    conceal_command,
    conceal_message,
    first_and_last,
    is_secret_name,
    may_hide,
    redact,
    show,
)

# Looks like nothing in particular: only its place says that it is a secret.
CANARY = "tweety-sylvester-granny"

SECRET_NAMES = [
    "token",
    "Token",
    "access_token",
    "accessToken",
    "refresh-token",
    "id_token",
    "auth",
    "authToken",
    "x-auth",
    "x-auth-token",
    "X-Access-Token",
    "api-key",
    "apiKey",
    "API_KEY",
    "api.key",
    "api key",
    "x-api-key",
    "Authorization",
    "authorization",
    "proxy-authorization",
    "www-authenticate",
    "cookie",
    "set-cookie",
    "client_secret",
    "clientSecret",
    "secret",
    "jwt_secret",
    "jwt",
    "password",
    "Password",
    "db_password",
    "passwd",
    "pass",
    "pwd",
    "passphrase",
    "private_key",
    "privateKey",
    "encryption_key",
    "signing-key",
    "aws_secret_access_key",
    "accessKey",
    "credentials",
    "bearer",
    "client_assertion",
    "code_verifier",
    "session_id",
    "Mcp-Session-Id",
    "tokens",
]
PLAIN_NAMES = [
    "progressToken",
    "progress_token",
    "maxTokens",
    "max_tokens",
    "name",
    "uri",
    "method",
    "author",
    "keyboard",
    "key",
    "compass",
    "pin",
    "description",
    "",
]


class Account(Struct):
    user: str
    password: Any


class Renamed(Struct):
    plain: Any = named(name="api_key")


class Frozen(Struct, frozen=True, kw_only=True):
    account: Any = None
    raw: Any = None


@dataclass
class Record:
    inner: Any


class Stranger:
    def __repr__(self) -> str:
        return CANARY


class TalkativeInt(int):
    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__


class TalkativeFloat(float):
    def __repr__(self) -> str:
        return CANARY


class TalkativeStr(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return CANARY


def hidden_places() -> Iterator[Any]:
    """Yield JSON values with the canary where its place gives it away."""
    for name in SECRET_NAMES:
        yield {name: CANARY}
    yield {"a": [{"b": ({"token": CANARY},)}]}
    yield {"password": {"deep": [CANARY]}, "secret": [CANARY, CANARY]}
    yield {"headers": {"authorization": CANARY, "cookie": [CANARY], "x-api-key": CANARY}}
    yield {"headers": [["X-Api-Key", CANARY], ("cookie", CANARY)]}
    yield {"env": [{"name": "API_KEY", "value": CANARY}, {"key": "DB_PASSWORD", "value": CANARY}]}
    yield Account("tom", CANARY)
    yield [Account("tom", [CANARY])]
    yield Renamed(CANARY)
    yield Frozen(account={"x": Account("tom", CANARY)})


def strange_places() -> Iterator[Any]:
    """Yield values with the canary in what JSON has not, or does not keep."""
    yield {b"authorization": CANARY}
    yield [(b"authorization", CANARY)]
    yield {("token", 1): CANARY}
    yield MappingProxyType({"token": CANARY})
    yield {"body": Raw(msgspec_json.encode({"plain": CANARY}))}
    yield [CANARY.encode(), bytearray(CANARY.encode()), memoryview(CANARY.encode())]
    yield Stranger()
    yield Record(CANARY)
    yield {"x": [Stranger()]}
    yield TalkativeInt(5)
    yield [TalkativeFloat(1.5), TalkativeStr("fine")]


JSON_PLACES = list(hidden_places())
PLACES = JSON_PLACES + list(strange_places())


def messages_with(value: Any) -> Iterator[Any]:
    """Yield every kind of message with `value` in every place that takes one."""
    yield Request("m", value, id=1)
    yield Notification("m", value)
    yield SentRequest(1, "m", value)
    yield Success(1, value)
    yield Failure(1, ErrorObject(5, "text", value))
    yield ErrorObject(5, "text", value)
    yield Batch([Request("m", value, id=1), Success(2, value)])
    yield ExtendedRequest("m", value, id=1, auth=CANARY, headers={"h": value}, metadata={})
    yield ExtendedNotification("m", value, auth=CANARY, headers={"cookie": CANARY})
    yield Call(id=1, method="m", params=value)
    yield ExtendedCall(id=1, method="m", params=value, auth=CANARY)
    if any(value is place for place in JSON_PLACES):
        raw = Raw(msgspec_json.encode(value))
        assert CANARY.encode() in bytes(raw)
        yield Call(id=1, method="m", params=raw)
        yield Reply(id=1, result=raw)


def printed(thing: Any) -> str:
    """Return everything that the usual ways of printing make of a thing."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.Logger("canary")
    logger.addHandler(handler)
    logger.error("%s %r", thing, thing)
    logger.error("in a dict: %s", {"thing": thing, "list": [thing]})
    rich = [f"{part}" for part in getattr(thing, "__rich_repr__", list)()]
    percent = "%s %r" % (thing, thing)  # noqa: UP031
    texts = [repr(thing), str(thing), f"{thing} {thing!r}", format(thing), percent, pformat(thing)]
    return "\n".join([*texts, stream.getvalue(), *rich])


@for_each("value", PLACES, ids=range(len(PLACES)))
def test_a_canary_is_hidden_in_every_place(value: Any) -> None:
    assert CANARY not in repr(redact(value))
    assert CANARY not in show(value)


@for_each("value", PLACES, ids=range(len(PLACES)))
def test_no_message_prints_a_canary(value: Any) -> None:
    for message in messages_with(value):
        assert CANARY not in printed(message)


@pytest.mark.parametrize("policy", [Policy(), Policy.pierre(), Policy.jsonrpc()])
@for_each("value", PLACES, ids=range(len(PLACES)))
def test_no_codec_describes_a_canary(value: Any, policy: Policy) -> None:
    codec = Codec(policy)
    for message in messages_with(value):
        assert CANARY not in codec.describe(message)


@pytest.mark.parametrize("kind", [LocalProtocolError, RemoteProtocolError, InvalidMessage])
@for_each("value", PLACES, ids=range(len(PLACES)))
def test_no_error_prints_a_canary(kind: Any, value: Any) -> None:
    facts = {"code": -32600, "message": "x"} if kind is InvalidMessage else {}
    error = kind("a.rule", got=value, where="/params", **facts)
    assert CANARY not in printed(error)
    try:
        raise error
    except kind:
        assert CANARY not in traceback.format_exc()


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_speaks_of_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)
    assert redact({name: 5 if name != "tokens" else "5"}) == {name: HIDDEN}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_name_that_does_not_is_left_alone(name: str) -> None:
    assert not is_secret_name(name)
    assert redact({name: "visible"}) == {name: "visible"}


def test_progress_tokens_and_counts_of_tokens_stay_visible() -> None:
    params = {
        "_meta": {"progressToken": "abc"},
        "maxTokens": 100,
        "usage": {"inputTokens": 5, "output_tokens": 6, "completionTokens": 7.5, "tokens": 8},
    }
    assert redact(params) == params
    assert "'progressToken': 'abc'" in repr(Request("m", params, id=1))
    assert "'maxTokens': 100" in repr(Request("m", params, id=1))


def test_list_under_tokens_is_hidden_like_a_secret() -> None:
    assert redact({"tokens": ["a", "b"], "inputTokens": "a"}) == {
        "tokens": HIDDEN,
        "inputTokens": HIDDEN,
    }


# Raised errors


def raised(run: Any) -> tuple[Exception, str]:
    """Return what `run` raises, and all that a traceback and a log tell of it."""
    stream = io.StringIO()
    logger = logging.Logger("canary")
    logger.addHandler(logging.StreamHandler(stream))
    try:
        run()
    except Exception as error:
        logger.exception("it failed: %r", error)
        text = "".join(traceback.format_exception(error)) + stream.getvalue() + printed(error)
        return error, text
    pytest.fail("nothing was raised")


TEXTS_WITH_A_CANARY = [
    '{"jsonrpc":"2.0","id":1,"method":"m","params":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"token":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":["CANARY"]}',
    '{"jsonrpc":"2.0","id":["CANARY"],"method":"m"}',
    '{"jsonrpc":"2.0","id":1,"method":["CANARY"]}',
    '{"jsonrpc":{"token":"CANARY"},"id":1,"method":"m"}',
    '{"id":1,"method":"m","params":{"password":"CANARY"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","result":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"result":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"error":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":"CANARY","message":"x"}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":["CANARY"],"data":"CANARY"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","auth":["CANARY"]}',
    '{"jsonrpc":"2.0","id":1,"method":"m","auth":"CANARY","headers":"CANARY"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","auth":"CANARY","metadata":{"k":["CANARY"]}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"CANARY","a":"CANARY"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"CANARY","n":1e999}}',
    '"CANARY"',
    '["CANARY"]',
    "CANARY",
    '{"CANARY',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"CANARY","b":"\\ud800"}}',
]
POLICIES = [
    Policy(),
    Policy.jsonrpc(),
    Policy.pierre().replace(batch="accept"),
    Policy(strictness="strict"),
    Policy(limits=Limits(default=20)),
]


@pytest.mark.parametrize("policy", POLICIES, ids=range(len(POLICIES)))
@for_each("text", TEXTS_WITH_A_CANARY)
def test_decode_fault_and_its_answer_do_not_quote_the_message(text: str, policy: Policy) -> None:
    codec = Codec(policy)
    data = text.replace("CANARY", CANARY).encode()
    for fault in [*faults_of(codec.decode, data), *faults_of(codec.envelope, data)]:
        assert CANARY not in printed(fault)
        assert CANARY.encode() not in (fault.answer() or b"")


def faults_of(read: Callable[[bytes], object], data: bytes) -> list[InvalidMessage]:
    try:
        found = read(data)
    except InvalidMessage as fault:
        return [fault]
    elements = found if isinstance(found, list | tuple) else []
    return [one for one in elements if isinstance(one, InvalidMessage)]


def test_a_version_that_is_a_credential_is_not_shown_either() -> None:
    data = b'{"jsonrpc":"Bearer tweety-sylvester-granny","id":1,"method":"m"}'
    error, text = raised(lambda: Codec().decode(data))
    assert isinstance(error, InvalidMessage)
    assert CANARY not in text
    assert CANARY.encode() not in (error.answer() or b"")


@pytest.mark.parametrize(
    "message",
    [
        Request("m", {"token": CANARY, "n": float("nan")}, id=1),
        Request("m", {"token": Stranger()}, id=1),
        Request("m", {"a": Stranger()}, id=1),
        Request("m", {"token": {CANARY, 2j}}, id=1),
        Request("m", [CANARY, object()], id=1),
        Request("m", {"token": CANARY + "\ud800"}, id=1),
        Request("m", CANARY, id=1),
        Request("m", id={"token": CANARY}),  # type: ignore[arg-type]
        ExtendedRequest("m", id=1, auth=CANARY, headers={"cookie": object()}),
        Batch([CANARY]),  # type: ignore[list-item]
        {"token": CANARY},
        CANARY,
        Stranger(),
    ],
    ids=range(13),
)
def test_encode_error_does_not_quote_the_message(message: Any) -> None:
    codec = Codec(Policy(strictness="strict"))
    error, text = raised(lambda: codec.encode(message))
    assert isinstance(error, LocalProtocolError)
    assert CANARY not in text


@pytest.mark.parametrize("field", ["batch", "codes", "limits", "first_id", "explain"])
def test_a_policy_does_not_repeat_a_credential_that_got_into_it(field: str) -> None:
    wrong: Any = {field: "Bearer " + CANARY}
    error, text = raised(lambda: Policy(**wrong))
    assert isinstance(error, ValueError)
    assert CANARY not in text
    for policy in POLICIES:
        assert CANARY not in printed(policy)


def test_repr_of_pending_requests_hides_params_and_waiter() -> None:
    pending = Pending(1, "m", waiter={"token": CANARY, "plain": CANARY})
    asked = IncomingRequest(1, "m", {"token": CANARY, "plain": CANARY}, route={"plain": CANARY})
    for thing in (pending, asked):
        assert CANARY not in repr(thing)
        assert CANARY not in f"{thing} {[thing]}"


# The one preset that shows a part of a token


def test_pierre_shows_the_first_ten_and_last_eight_of_a_token() -> None:
    # the rows: P-11, K-59
    token = "eyJhbGciOi.SECRETMIDDLEPART.V6T6QMBv"
    message = ExtendedRequest("m", id=1, auth=token, headers={"authorization": token})
    text = Codec(Policy.pierre()).describe(message)
    assert "auth=eyJhbGciOi...V6T6QMBv" in text
    rest = text.replace("auth=eyJhbGciOi...V6T6QMBv", "")
    assert all(token[at : at + 4] not in rest for at in range(len(token) - 3))
    assert "SECRET" not in text
    assert "eyJh" not in repr(message)
    assert "eyJh" not in Codec().describe(message)


@pytest.mark.parametrize("kind", [ExtendedNotification, ExtendedCall])
def test_pierre_shows_a_part_of_a_token_in_every_call(kind: Any) -> None:
    message = kind(method="m", auth="a" * 10 + "SECRET" + "b" * 8)
    assert "auth=aaaaaaaaaa...bbbbbbbb" in Codec(Policy.pierre()).describe(message)


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("", "[REDACTED]"),
        ("short", "[REDACTED]"),
        ("x" * 20, "[REDACTED]"),
        ("a" * 10 + "MID" + "b" * 8, "a" * 10 + "..." + "b" * 8),
        ("é" * 10 + "🙂" * 20 + "ü" * 8, "é" * 10 + "..." + "ü" * 8),
    ],
)
def test_a_part_is_shown_only_of_a_long_token(secret: str, text: str) -> None:
    # the rows: P-11, K-59
    assert first_and_last(secret) == text
    described = Codec(Policy.pierre()).describe(ExtendedRequest("m", id=1, auth=secret))
    assert f"auth={text}," in described


@pytest.mark.parametrize("secret", [b"x" * 40, 10**40, ["x" * 40], None, object()])
def test_first_and_last_hides_values_that_are_not_strings(secret: Any) -> None:
    assert first_and_last(secret) == "[REDACTED]"


def test_an_absent_token_stays_absent() -> None:
    codec = Codec(Policy.pierre())
    assert "auth=None" in codec.describe(ExtendedRequest("m", id=1))
    assert "auth" not in codec.describe(Request("m", id=1))
    assert "auth" not in codec.describe(Batch([Request("m", id=1)]))


# Credentials by their looks

BODY = "A1b2C3d4E5f6G7h8I9j0" * 2
CREDENTIALS = [
    f"Bearer {BODY}",
    f"bearer   {BODY}",
    f"Basic {BODY}==",
    f"eyJ{BODY}.eyJ{BODY}.{BODY}",
    f"eyJ{BODY}.eyJ{BODY}",
    f"eyJ{BODY}..{BODY}.{BODY}.{BODY}",
    f"sk_live_{BODY}",
    f"pk_test_{BODY}",
    f"rk_live_{BODY}",
    f"sk-ant-api03-{BODY}",
    f"sk-proj-{BODY}",
    f"sk-{BODY}",
    f"ghp_{BODY}",
    f"gho_{BODY}",
    f"github_pat_{BODY}",
    f"glpat-{BODY}",
    f"xoxb-{BODY}",
    f"xapp-1-{BODY}",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    f"AIza{BODY}",
    f"ya29.{BODY}",
    f"npm_{BODY}",
    f"hf_{BODY}",
    f"whsec_{BODY}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----",
]


def secret_part(credential: str) -> str:
    return BODY if BODY in credential else credential


@for_each("credential", CREDENTIALS)
@pytest.mark.parametrize(
    "text",
    ["{}", "it is {} indeed", "({})", '"{}"', "a={}&b=1", "x_{}", "/{}/", "{},{}", "\n{}\n"],
)
def test_a_credential_in_free_text_is_hidden(credential: str, text: str) -> None:
    written = text.replace("{}", credential)
    shown = redact({"message": written, "list": [written]})
    assert secret_part(credential) not in repr(shown)
    assert HIDDEN in repr(shown)
    assert secret_part(credential) not in repr(Success(1, {"text": written}))
    assert secret_part(credential) not in str(LocalProtocolError("a.rule", got=written))


@for_each("credential", CREDENTIALS)
@pytest.mark.parametrize("before", [0, 100, 150, 180, 195, 199, 200, 250])
def test_a_credential_at_the_edge_of_what_is_shown_is_hidden(credential: str, before: int) -> None:
    text = ". " * (before // 2) + credential + " and so on" * 100
    shown = str(redact(text))
    part = secret_part(credential)
    assert all(part[at : at + 9] not in shown for at in range(len(part) - 8))


@for_each("credential", CREDENTIALS)
def test_a_credential_past_what_is_shown_does_not_lengthen_it(credential: str) -> None:
    # Up to 200 characters are shown, and credentials are looked for in more than that.
    text = ". " * 125 + credential
    assert redact(text) == redact(". " * 125 + "," * len(credential))


@for_each("credential", CREDENTIALS)
def test_hidden_credential_does_not_extend_the_shown_text(credential: str) -> None:
    # The first takes most of what is looked at and shrinks to a word; the second is cut in two.
    text = f"Bearer {'x' * 360} {credential}" + " tail" * 100
    shown = str(redact(text))
    part = secret_part(credential)
    assert all(part[at : at + 9] not in shown for at in range(len(part) - 8))


@pytest.mark.parametrize(
    "text",
    [
        "https://tom:CANARY@example.org/x",
        "postgres://tom:CANARY@db:5432/x",
        "https://CANARY@example.org",
        "https://tom:p@CANARY@example.org",
        "https://tom:" + "x" * 300 + "CANARY@example.org",
        "https://example.org/?access_token=CANARY&x=1",
        "https://example.org/?x=1&api_key=CANARY",
        "password=CANARY",
        "password: CANARY",
        'PASSWORD = "CANARY"',
        "Server=x;Pwd=CANARY;Database=y",
        '{"client_secret": "CANARY"}',
        '{"api-key":"CANARY","x":1}',
        "{'token': 'CANARY'}",
        '{\\"token\\": \\"CANARY\\"}',
        "Authorization: CANARY",
        "Authorization: Digest username=tom, response=CANARY",
        '{"authorization": "Custom CANARY"}',
        "Cookie: a=b; sid=CANARY",
        "set-cookie: sid=CANARY; path=/",
        "session_id=CANARY",
    ],
)
def test_a_secret_that_its_surroundings_give_away_is_hidden(text: str) -> None:
    shown = str(redact(text.replace("CANARY", CANARY)))
    assert CANARY not in shown
    assert HIDDEN in shown


@pytest.mark.parametrize(
    "text",
    [
        "a plain sentence about tokens and passwords",
        "https://example.org:8080/path?x=1",
        "https://medium.com/@someone/a-post",
        "mail tom@example.org",
        "progressToken=5",
        "maxTokens: 5",
        "skip_test_of_something",
        "Method not found",
        "tools/call",
        "sk-learn",
        "eyJ",
    ],
)
def test_text_that_only_resembles_a_secret_is_left_alone(text: str) -> None:
    assert redact(text) == text


# Bulk


def test_long_text_is_cut() -> None:
    assert redact("x" * 200) == "x" * 200
    assert redact("x" * 201) == "x" * 200 + "… (201 characters)"
    assert redact({"k" * 300: 1}) == {"k" * 200 + "… (300 characters)": 1}


def test_large_containers_are_cut() -> None:
    assert redact(list(range(40))) == [*range(32), "… 8 more"]
    assert redact(tuple(range(33))) == [*range(32), "… 1 more"]
    shown = redact({n: n for n in range(100)})
    assert isinstance(shown, dict)
    assert len(shown) == 33
    assert shown["…"] == "68 more"
    assert len(str(redact(set(range(1000))))) < 300


def test_deep_values_are_cut() -> None:
    value: Any = "bottom"
    for _ in range(50):
        value = [value]
    assert repr(redact(value)).count("[") == 8
    assert "bottom" not in repr(redact(value))
    assert redact([[["x"]]], depth=2) == [["…"]]


def test_a_value_that_contains_itself_is_cut() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    assert "…" in repr(redact(value))


def test_a_value_that_branches_at_every_depth_is_cut() -> None:
    # Thirty-two to the eighth are a million million.
    value: Any = ["x" * 200] * 32
    for _ in range(7):
        value = [value] * 32
    assert len(repr(redact(value))) < 150_000
    assert len(show(value)) <= 201


def test_an_integer_that_python_does_not_print_is_described() -> None:
    assert redact(10**5000) == "<integer of 16610 bits>"
    assert redact(-(10**5000)) == "<integer of 16610 bits>"
    assert redact(10**100) == 10**100
    assert "<integer of 16610 bits>" in repr(Request("m", {"n": 10**5000}, id=10**5000))


@pytest.mark.parametrize("value", [None, True, False, 0, -1, 1.5, "", "text", [], {}])
def test_plain_small_value_is_shown_unchanged(value: Any) -> None:
    assert redact(value) == value
    assert type(redact(value)) is type(value)
    assert show(value) == repr(value)


def test_redacted_value_is_a_copy() -> None:
    inner = [1]
    value = {"a": inner}
    shown = redact(value)
    inner.append(2)
    assert shown == {"a": [1]}


def test_one_line_is_one_line() -> None:
    text = show({"a": "line\nbreak\r\x1b[31m", "b": ["x" * 500] * 500})
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) <= 201
    assert len(show("x" * 500, limit=50)) == 51


ADVERSARIAL = [
    "Bearer " * 150_000,
    "bearer" + " " * 1_000_000,
    "eyJ" * 350_000,
    "eyJ" + "a" * 1_000_000,
    "eyJaaaaaaaa" + "." * 1_000_000,
    "://" * 350_000,
    "://" + "a:" * 500_000,
    "://" + "@" * 1_000_000,
    "sk-" * 350_000,
    "-----BEGIN " * 90_000,
    "-----BEGIN " + "A" * 1_000_000,
    "token=" * 160_000,
    "token" + " " * 1_000_000,
    "authorization:" * 70_000,
    "x" * 1_000_000,
    '\\"' * 500_000,
]


@pytest.mark.parametrize("text", ADVERSARIAL, ids=range(len(ADVERSARIAL)))
def test_hostile_text_is_looked_at_up_to_a_bound(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[int] = []
    find = redaction._credentials

    def credentials(data: bytes, **facts: bool) -> list[tuple[int, int]]:
        examined.append(len(data))
        return find(data, **facts)

    monkeypatch.setattr(redaction, "_credentials", credentials)
    redact(text)
    redact({text: text})
    assert 0 < max(examined) <= 400


def test_absent_members_of_a_struct_are_not_shown() -> None:
    class Icon(Struct):
        src: str
        theme: str | UnsetType = UNSET

    assert redact([Icon("a")]) == [{"src": "a"}]


def test_a_struct_that_names_a_secret_hides_its_value() -> None:
    class Argument(Struct):
        name: str
        value: str

    assert redact(Argument("password", CANARY)) == {"name": "password", "value": HIDDEN}
    assert redact(Argument("city", "Oslo")) == {"name": "city", "value": "Oslo"}


@pytest.mark.parametrize("label", ["name", "key"])
def test_a_mapping_that_names_a_secret_hides_its_value_and_nothing_else(label: str) -> None:
    header = {label: "password", "value": CANARY, "note": "plain"}
    assert redact(header) == {label: "password", "value": HIDDEN, "note": "plain"}
    argument = {label: "city", "value": "Oslo", "note": "plain"}
    assert redact(argument) == argument


def test_a_value_that_no_member_names_is_shown() -> None:
    assert redact({"value": "Oslo"}) == {"value": "Oslo"}


def test_a_key_that_is_not_text_is_shown_to_a_depth_of_one() -> None:
    assert redact({(1, "a", (2, (3,))): "item"}) == {"[1, 'a', '…']": "item"}


def test_opaque_object_is_shown_by_its_type() -> None:
    assert redact([Stranger(), 2j, Record(1), Stranger]) == [
        "<Stranger>",
        "<complex>",
        "<Record>",
        "<type>",
    ]
    assert redact([b"abc", bytearray(2), memoryview(b"")]) == [
        "<3 bytes>",
        "<2 bytes>",
        "<0 bytes>",
    ]


def test_values_are_shown_up_to_a_number_of_them() -> None:
    shown = repr(redact([[n] * 31 for n in range(32)]))
    # The list, the lists in it, and what is in those: five hundred in all.
    assert shown.count(", ") + 1 > 480
    assert "15, 15" in shown
    assert "16, 16" not in shown
    assert "'…'" in shown


# Kept whole


@pytest.mark.parametrize("value", JSON_PLACES, ids=range(len(JSON_PLACES)))
def test_a_canary_is_concealed_in_every_place(value: Any) -> None:
    plain = msgspec_json.decode(msgspec_json.encode(value))
    concealed = conceal(plain)
    assert CANARY not in repr(concealed)
    assert HIDDEN in repr(concealed)


@for_each("credential", CREDENTIALS)
@pytest.mark.parametrize("before", [0, 1, 1000, 1015, 1023, 1024, 1025, 2040, 5000])
def test_a_credential_anywhere_in_a_long_text_is_concealed(credential: str, before: int) -> None:
    text = ". " * (before // 2) + "." * (before % 2) + credential + " and so on" * 500
    concealed = conceal({"a": [text]})
    part = secret_part(credential)
    assert all(part[at : at + 9] not in repr(concealed) for at in range(len(part) - 8))
    assert repr(concealed).count("and so on") == 500


def test_a_credential_longer_than_a_piece_is_concealed_to_its_end() -> None:
    secret = "A1b2" * 2000
    for text in (
        f"Bearer {secret} tail",
        f"password={secret} tail",
        f"Authorization: {secret}\n tail",
        f"-----BEGIN PRIVATE KEY-----{secret}-----END PRIVATE KEY----- tail",
        f"https://tom:{secret}@example.org tail",
        f'https://tom:{secret},"{secret}@example.org tail',
    ):
        concealed = str(conceal(text))
        assert "A1b2" not in concealed
        assert concealed.endswith(" tail")


def test_conceal_keeps_plain_values_whole() -> None:
    value: Any = {
        "text": "plain words " * 5000,
        "list": list(range(1000)),
        "deep": [[[[[[[[[[[["bottom"]]]]]]]]]]]],
        "many": {f"k{n}": [n, None, True, 1.5, ""] for n in range(100)},
        "_meta": {"progressToken": "abc"},
        "maxTokens": 5,
    }
    concealed = conceal(value)
    is_same = concealed == value  # not in the assert: a diff of so long a text takes minutes
    assert is_same
    assert list(concealed) == list(value)  # type: ignore[call-overload]
    is_same = conceal("x" * 100_000) == "x" * 100_000
    assert is_same
    assert conceal(()) == []
    for scalar in (None, True, 0, 1.5, "", 10**30):
        assert conceal(scalar) == scalar


def test_a_value_of_any_depth_is_concealed() -> None:
    value: Any = {"token": CANARY}
    for _ in range(5000):
        value = [value]
    concealed = conceal(value)
    for _ in range(5000):
        assert isinstance(concealed, list)
        (concealed,) = concealed
    assert concealed == {"token": HIDDEN}


def test_conceal_describes_values_without_json_form() -> None:
    assert conceal([b"abc", Stranger(), Account("tom", CANARY)]) == [
        "<3 bytes>",
        "<Stranger>",
        {"user": "tom", "password": HIDDEN},
    ]
    assert conceal({b"authorization": CANARY}) == {"authorization": HIDDEN}


@pytest.mark.parametrize(
    "text", ["token=abc123", '"password": "hunter2"]', "api_key=x, secret: y", "token=[redacted]x"]
)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


# Structure, and where it was hidden


def test_every_scalar_below_a_secret_name_is_hidden_and_the_structure_stays() -> None:
    message = {
        "params": {
            "arguments": {
                "token": 5,
                "auth": {"user": "tom", "keys": [1, None, {"deep": True}], "empty": {}},
                "city": "Rome",
            }
        }
    }
    assert conceal_message(message) == (
        {
            "params": {
                "arguments": {
                    "token": HIDDEN,
                    "auth": {
                        "user": HIDDEN,
                        "keys": [HIDDEN, HIDDEN, {"deep": HIDDEN}],
                        "empty": {},
                    },
                    "city": "Rome",
                }
            }
        },
        ["/params/arguments/token", "/params/arguments/auth"],
    )


def test_names_in_a_schema_and_keys_of_input_requests_hide_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"token": {"type": "integer"}, "auth": {"enum": ["a", "b"]}},
        "required": ["token", "city"],
    }
    question = {
        "method": "elicitation/create",
        "params": {"message": "Sure?", "requestedSchema": schema},
    }
    sampling = {"method": "sampling/createMessage", "params": {"tools": [{"inputSchema": schema}]}}
    for message in (
        {"result": {"tools": [{"name": "login", "inputSchema": schema, "outputSchema": schema}]}},
        [{"result": {"tools": [{"inputSchema": schema}]}}],
        {"params": {"message": "Sure?", "requestedSchema": schema}},
        {"params": {"tools": [{"inputSchema": schema}]}},
        {"result": {"inputRequests": {"auth": question, "token": sampling}}},
    ):
        assert conceal_message(message) == (message, [])


@pytest.mark.parametrize("holder", ["arguments", "structuredContent", "_meta", "content", "data"])
def test_data_that_is_called_a_schema_is_data(holder: str) -> None:
    value = {"inputSchema": {"password": CANARY}, "tools": [{"requestedSchema": {"pwd": CANARY}}]}
    copy, hidden = conceal_message({"params": {holder: value}})
    assert CANARY not in repr(copy)
    assert sorted(hidden) == [
        f"/params/{holder}/inputSchema/password",
        f"/params/{holder}/tools/0/requestedSchema/pwd",
    ]


def test_the_answer_to_a_question_with_a_secret_key_is_hidden() -> None:
    answer = {"action": "accept", "content": {"value": CANARY}}
    copy, hidden = conceal_message({"params": {"inputResponses": {"password": answer}}})
    assert CANARY not in repr(copy)
    assert hidden == ["/params/inputResponses/password"]


def test_each_way_to_hide_is_listed() -> None:
    message = {
        "text": "Bearer A1b2C3d4E5f6",
        "pair": ["X-Api-Key", "x"],
        "named": {"name": "cookie", "value": ["x"]},
        "args": ["tool", "--password", "x", "--verbose", "-q"],
        "a/b~c": {"token": "x"},
        "sk-" + "A1b2" * 8: 1,
        "[redacted]": "sent so",
    }
    copy, hidden = conceal_message(message)
    assert sorted(hidden) == [
        "/[redacted]",
        "/args/2",
        "/a~1b~0c/token",
        "/named/value",
        "/pair/1",
        "/text",
    ]
    assert isinstance(copy, dict)
    assert copy["args"] == ["tool", "--password", HIDDEN, "--verbose", "-q"]
    assert "A1b2" not in repr(copy)


def test_two_names_that_differ_only_in_what_was_hidden_stay_two() -> None:
    copy = conceal({f"AKIA{name * 16}": name for name in "ABC"})
    assert isinstance(copy, dict)
    assert list(copy.values()) == ["A", "B", "C"]
    assert "AAAAA" not in repr(copy)


def test_the_list_of_places_has_a_bound() -> None:
    many = [{"token": number} for number in range(5000)]
    copy, hidden = conceal_message({"params": {"list": many}})
    assert hidden == ["/params/list"]
    assert isinstance(copy, dict)
    assert copy["params"]["list"] == [{"token": HIDDEN}] * 5000
    deep: Any = [{"token": "x"}] * 200
    for _ in range(900):
        deep = {"a" * 200: deep}
    _, hidden = conceal_message({"params": deep})
    assert len(hidden) == 1
    assert sum(map(len, hidden)) < 65536
    _, hidden = conceal_message([{"token": 1}] * 1001)
    assert hidden == [""]


def test_may_hide_is_false_for_text_without_secret_names() -> None:
    assert not may_hide(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,"b"]}}')
    for text in (
        b'{"Pass_Word":1}',
        b'{"to-ken":1}',
        b'{"x.auth":1}',
        b'["pwd","x"]',
        b'"eyJx"',
        '{"to\u00b7ken":1}'.encode(),
    ):
        assert may_hide(text)


@for_each("value", JSON_PLACES, ids=range(len(JSON_PLACES)))
def test_no_text_with_a_secret_is_taken_for_one_without(value: Any) -> None:
    assert may_hide(msgspec_json.encode(value))


# Prose


@pytest.mark.parametrize(
    "text",
    [
        "Basic complexity metrics",
        "Basic authentication of a user: Basic complexity.",
        "basic read/write access",
        "Basic Python3 usage",
        "The Bearer scheme, or Bearer Authentication",
        "a bearer of news",
        "Bearer tokens",
        "BASIC PROGRAMS",
    ],
)
def test_prose_about_schemes_is_left_alone(text: str) -> None:
    assert conceal(text) == text
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Basic dXNlcjpwYXNz",
        "use Basic dG9tOmpl here",
        "Bearer Bearer A1b2C3d4",
        "Bearer tweety-sylvester-granny",
        "a Bearer tweety-sylvester-granny b",
        "BEARER abc123",
        'password: "two words"',
        "password='two words'",
        '{\\"token\\": \\"two words\\"}',
    ],
)
def test_credentials_after_a_scheme_or_in_quotes_are_hidden_whole(text: str) -> None:
    for secret in ("dXNlcjpwYXNz", "dG9tOmpl", "A1b2C3d4", "granny", "abc123", "words"):
        assert secret not in str(conceal(text))
        assert secret not in str(redact(text))


@pytest.mark.parametrize(
    "text",
    [
        "Command '['x', '--password', 'CANARY']' returned non-zero exit status 1.",
        '["x", "--api-key", "CANARY"]',
        "repr: 'Command \\'[\\'x\\', \\'-token\\', \\'CANARY\\']\\' failed'",
        "['--client_secret',\n 'CANARY']",
    ],
)
def test_an_option_and_its_value_in_a_list_are_hidden_in_text(text: str) -> None:
    for shown in (conceal(text), redact(text)):
        assert "CANARY" not in str(shown)
        assert HIDDEN in str(shown)


def test_an_option_that_is_followed_by_an_option_hides_nothing() -> None:
    for text in ("['--password', '--verbose']", "['--colour', 'red']"):
        assert conceal(text) == text
    assert conceal(["--password", "--verbose", "--token=x"]) == [
        "--password",
        "--verbose",
        f"--token={HIDDEN}",
    ]


def test_an_option_and_its_value_in_a_list_are_hidden_from_people_too() -> None:
    assert redact(["--api-key", CANARY, "--verbose"]) == ["--api-key", HIDDEN, "--verbose"]
    assert CANARY not in show({"args": ("server", "--password", CANARY)})


# Time

MIB = 1 << 20
# What the text repeats, and how often the time of the loop it may take for 4 MiB. A quarter of
# that is enough to tell: what grows with the square of the length would take hours.
REPEATED = [
    ("some text ", 30),
    ("-eyJ", 30),
    ("token", 30),
    ("token=", 30),
    ("://", 30),
    ("sk-", 30),
    ("-----BEGIN ", 30),
    ('\\"', 30),
    ("Bearer ", 150),
    ("pwd=x ", 250),
    ("'--password', 'x', ", 150),
]


@pytest.mark.parametrize(("part", "most"), REPEATED, ids=[part for part, _ in REPEATED])
def test_the_time_to_conceal_a_text_grows_with_its_length_alone(part: str, most: int) -> None:
    text = part * (MIB // len(part))
    unit = calibration_s()
    assert cpu_s(lambda: conceal(text)) < most / 4 * unit


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["x", "--api-key", "S"], ["x", "--api-key", HIDDEN]),
        (["x", "--key", "S", "y"], ["x", "--key", HIDDEN, "y"]),
        (["x", "--key=S"], ["x", f"--key={HIDDEN}"]),
        (["x", "-e", "OPENAI_KEY=S"], ["x", "-e", f"OPENAI_KEY={HIDDEN}"]),
        (["x --token S -v"], [f"x --token {HIDDEN} -v"]),
        (["sh", "-c", "x --key S; y"], ["sh", "-c", f"x --key {HIDDEN}; y"]),
        (["sh", "-c", 'x --key "S \\" S" y'], ["sh", "-c", f"x --key {HIDDEN} y"]),
        (["sh", "-c", "x --key 'S\nS'\"S S\"S y"], ["sh", "-c", f"x --key {HIDDEN} y"]),
        (["sh", "-c", "x --key S\\ S|y"], ["sh", "-c", f"x --key {HIDDEN}|y"]),
        (["sh", "-c", 'x --key "S S'], ["sh", "-c", f"x --key {HIDDEN}"]),
        (["sh", "-c", "A_KEY=S TOKEN='S S' x"], ["sh", "-c", f"A_KEY={HIDDEN} TOKEN={HIDDEN} x"]),
        (["x --run 'y --key S'"], [f"x --run 'y --key {HIDDEN}'"]),
        (["x --key", "S"], ["x --key", HIDDEN]),
    ],
)
def test_the_value_of_a_secret_option_is_hidden_in_a_command(
    words: list[str], shown: list[str]
) -> None:
    found = conceal_command(words)
    assert found == shown
    assert conceal_command(found) == shown


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["npx", "-y", "@scope/server-files", "/srv/keys"],
        ["sh", "-c", "x --verbose --keyboard us && y --port=1 > log"],
        ["x", "--key", "--verbose"],
        ["x", "--key="],
        ["x", "KEY= y"],
        ["docker", "run", "-i", "--rm", "-e", "API_KEY", "image"],
    ],
)
def test_the_rest_of_a_command_is_left_alone(words: list[str]) -> None:
    assert conceal_command(words) == words


@pytest.mark.parametrize("part", ["--aa=b.", "--key ", "--key=b.", '--key="', "a=", "-", "--k '"])
def test_the_time_to_conceal_a_command_grows_with_its_length_alone(part: str) -> None:
    text = part * (MIB // 4 // len(part))
    unit = calibration_s()
    assert cpu_s(lambda: conceal_command([text])) < 100 * unit


def test_base64_of_content_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "AKIAIOSFODNN7EXAMPLE" * 60
    examined: list[int] = []
    monkeypatch.setattr(redaction, "_credentials", lambda data: examined.append(len(data)) or [])
    conceal({"content": [{"type": "image", "data": data}, {"blob": data}]})
    assert max(examined, default=0) < 100
    conceal({"content": [{"data": data + "."}, {"text": data}, {"data": data[:400]}]})
    assert sorted(examined)[-3:] == [400, 1200, 1201]
