"""Promises of `docs/parity.toml` that no test of a single module keeps.

Each test stands for one or more rows there: what holds across modules, what the source and
its metadata say of themselves, and what a value may cost.
"""

from __future__ import annotations

import ast
import gc
import json
import random
import re
import sys
import threading
import tomllib
import weakref
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, Struct

from bench.limits import calls
from tests.source_imports import import_statements
from trunkline import errors
from trunkline.jsonrpc import (
    Batch,
    Codec,
    ContentLengthFraming,
    DetectingFraming,
    ErrorObject,
    EventReader,
    Failure,
    IdSource,
    IncomingRequest,
    InvalidMessage,
    LengthPrefixFraming,
    Limits,
    NewlineFraming,
    Notification,
    OutgoingRequests,
    Peer,
    Pending,
    Policy,
    Replies,
    Request,
    Success,
    UnmatchedReply,
    decode,
    encode,
    encode_event,
    named_error,
)
from trunkline.spec.jsonrpc import RULES
from trunkline.spec.profiles import PROFILE_NAMES, profile
from trunkline.spec.profiles.presets import LIMITS, POLICIES
from trunkline.spec.revisions import REVISIONS

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "trunkline"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MIB = 1024 * 1024
TRANSPORTS = ("default", "stdio", "tcp", "unix", "http", "websocket", "sse")

STANDARD = {
    "PARSE_ERROR": (-32700, "Parse error"),
    "INVALID_REQUEST": (-32600, "Invalid Request"),
    "METHOD_NOT_FOUND": (-32601, "Method not found"),
    "INVALID_PARAMS": (-32602, "Invalid params"),
    "INTERNAL_ERROR": (-32603, "Internal error"),
}


class WritingPeer:
    """A peer with nobody behind it: it keeps what it wrote, read back as JSON."""

    def __init__(self, policy: Policy, **callbacks: Any) -> None:
        self.sent: list[Any] = []
        callbacks = {"on_request": lambda _asked: None, **callbacks}
        self.peer = Peer(Codec(policy), write=self._write, **callbacks)

    def _write(self, frame: bytes, _route: object) -> None:
        self.sent.append(json.loads(frame))

    def feed(self, message: Any) -> None:
        self.peer.feed(json.dumps(message).encode())


def call(id: Any, method: str = "work", **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **members}


# What goes over the wire


@pytest.mark.parametrize(
    "framing", [NewlineFraming, ContentLengthFraming, LengthPrefixFraming, DetectingFraming]
)
def test_a_message_is_the_same_json_whatever_carries_it(framing: Any) -> None:
    request = Request("tools/call", {"name": "\N{SNOWMAN}\n"}, id="1")
    written = encode(request)
    assert json.loads(written)["jsonrpc"] == "2.0"
    assert framing().feed(framing().frame(written)) == [written]
    (event,) = EventReader().feed(encode_event(written))
    assert decode(event.data) == decode(written) == request  # type: ignore[union-attr]


def test_a_full_initialize_result_comes_back_with_every_capability() -> None:
    capabilities = {
        "resources": {"subscribe": True, "listChanged": True},
        "tools": {"listChanged": True},
        "prompts": {"listChanged": False},
        "logging": {},
        "sampling": {},
        "roots": {},
        "completions": {"supported": True},
        "experimental": {"features": ["task_management"]},
    }
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "serverInfo": {"name": "erlmcp-server", "version": "2.2.0"},
    }
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}, separators=(",", ":")).encode()
    for policy in (Policy.mcp("2025-11-25"), Policy.erlmcp()):
        read = Codec(policy).decode(text)
        assert read == Success(1, result)
        assert Codec(policy).encode(read) == text


@pytest.mark.parametrize("token", ["7", 7, "tok-123", 0])
def test_meta_is_kept_in_params_and_results_with_every_key_and_type(token: int | str) -> None:
    meta = {"progressToken": token, "com.example/trace": {"n": [1, None]}}
    for message in (
        Request("tools/call", {"name": "echo", "_meta": meta}, id=1),
        Notification("notifications/progress", {"_meta": meta}),
        Success(1, {"content": [], "_meta": meta}),
    ):
        read = decode(encode(message), Policy.mcp())
        assert read == message
        kept = (read.result if isinstance(read, Success) else read.params)["_meta"]  # type: ignore[union-attr]
        assert type(kept["progressToken"]) is type(token)


@pytest.mark.parametrize(
    "method",
    [
        "notifications/progress",
        "notifications/cancelled",
        "notifications/message",
        "logging/logMessage",
        "my.own.event",
    ],
)
def test_whatever_is_announced_is_one_type_of_notification(method: str) -> None:
    text = json.dumps({"jsonrpc": "2.0", "method": method, "params": {"a": {"b": [1]}}})
    read = decode(text, Policy.mcp())
    assert type(read) is Notification
    assert read == Notification(method, {"a": {"b": [1]}})


def test_a_message_is_written_by_one_call_of_the_encoder() -> None:
    request = Request("tools/call", {"text": "x" * 10_000}, id=1)
    for message in (request, Batch([request] * 10), Failure(1, ErrorObject(1, "m", ["d"]))):
        codec, seen = Codec(), list[str]()

        def note(_frame: object, event: str, argument: Any, seen: list[str] = seen) -> None:
            if event == "c_call":
                seen.append(argument.__qualname__)

        sys.setprofile(note)
        try:
            codec.encode(message)
        finally:
            sys.setprofile(None)
        assert seen.count("Encoder.encode") == 1


def test_bytes_spoilt_at_random_raise_nothing_but_invalid_messages() -> None:
    chance = random.Random(8259)
    texts = [
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":[1.5,null,"\xc3\xa9"]}}',
        b'[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":"2","result":{}}]',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":[]}}',
    ]
    codecs = [Codec(Policy.named(name)) for name in POLICIES]
    broken: list[str] = []
    for _ in range(2000):
        text = bytearray(chance.choice(texts))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 2)] = chance.choice(
                [b"", b"\xff", b"{", b'"', b"9e999", b"\\ud800", bytes([chance.randrange(256)])]
            )
        for read in (chance.choice(codecs).decode, chance.choice(codecs).envelope):
            try:
                read(bytes(text))
            except InvalidMessage as fault:
                broken.append(fault.rule)
    assert set(broken) <= RULES.keys()
    assert len(broken) > 1000


# Asking and answering


def test_a_request_may_go_by_a_random_uuid_and_its_reply_comes_back_by_it() -> None:
    replies: list[Any] = []
    wire = WritingPeer(Policy.mcp(), on_reply=lambda pending, _reply: replies.append(pending))
    first = wire.peer.send_request("a", id=IdSource.uuid())
    second = wire.peer.send_request("b", id=IdSource.uuid())
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(first.id))
    assert [message["id"] for message in wire.sent] == [first.id, second.id]
    wire.feed({"jsonrpc": "2.0", "id": second.id, "result": {}})
    assert replies == [second]


def test_a_notification_whose_handler_fails_is_not_answered() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug above")

    wire = WritingPeer(Policy.mcp("2025-03-26"), on_notification=fail)
    for message in ({"jsonrpc": "2.0", "method": "a"}, [{"jsonrpc": "2.0", "method": "a"}]):
        with pytest.raises(RuntimeError):
            wire.feed(message)
    assert wire.sent == []


def test_in_a_batch_an_unknown_method_fails_in_its_own_place() -> None:
    def serve(asked: IncomingRequest) -> None:
        if asked.method == "known":
            wire.peer.answer(asked, {})
        else:
            wire.peer.fail(asked, named_error("METHOD_NOT_FOUND"))

    wire = WritingPeer(Policy.mcp("2025-03-26"), on_request=serve)
    wire.feed(
        [call(1, "known"), {"jsonrpc": "2.0", "method": "n"}, call(2, "what"), call(3, "known")]
    )
    (answers,) = wire.sent
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, None]


def test_an_error_reply_is_the_id_a_symbol_a_text_and_the_facts_by_name() -> None:
    wire = WritingPeer(
        Policy.mcp(),
        on_request=lambda asked: wire.peer.fail(
            asked,
            named_error(
                "INVALID_PARAMS",
                message="Missing required parameter 'provider'",
                required_params=["provider"],
                received_params=["limit"],
            ),
        ),
    )
    wire.feed(call("x"))
    error = {
        "code": -32602,
        "message": "Missing required parameter 'provider'",
        "data": {"required_params": ["provider"], "received_params": ["limit"]},
    }
    assert wire.sent == [{"jsonrpc": "2.0", "id": "x", "error": error}]


def test_headers_of_a_request_reach_its_handler_with_their_types() -> None:
    headers = {
        "x-tenant-id": "550e8400-e29b-41d4-a716-446655440000",
        "x-tenant-name": "Acme Corp",
        "x-request-id": "trace-7",
        "x-enable-experimental": True,
    }
    found: list[Any] = []
    wire = WritingPeer(
        Policy.pierre(), on_request=lambda asked: found.append(asked.envelope.headers)
    )
    wire.feed(call(1, headers=headers))
    assert found == [headers]
    assert found[0]["x-enable-experimental"] is True


def test_the_same_peer_speaks_mcp_agent_to_agent_and_plain_json_rpc() -> None:
    a2a = Policy.jsonrpc().replace(codes="pierre-a2a")
    for policy, method, params, replies in (
        (Policy.mcp(), "tools/call", {"name": "echo"}, Replies.ONE),
        (a2a, "message/stream", {"message": {"parts": []}}, Replies.MANY),
        (Policy.jsonrpc(), "subtract", [42, 23], Replies.ONE),
    ):
        got: list[Any] = []
        wire = WritingPeer(policy, on_reply=lambda _pending, reply, got=got: got.append(reply.id))
        pending = wire.peer.send_request(method, params, replies=replies)
        assert wire.sent == [call(1, method, params=params)]
        for _ in range(2):
            wire.feed({"jsonrpc": "2.0", "id": pending.id, "result": {}})
        assert len(got) == (2 if replies is Replies.MANY else 1)


def test_callbacks_run_in_the_thread_that_feeds_and_no_other_is_started() -> None:
    ran: list[int] = []
    wire = WritingPeer(Policy.mcp(), on_request=lambda _asked: ran.append(threading.get_ident()))
    before = threading.active_count()
    feeder = threading.Thread(target=wire.feed, args=(call(1),))
    feeder.start()
    feeder.join()
    wire.feed(call(2))
    assert ran == [feeder.ident, threading.get_ident()]
    assert threading.active_count() == before


def test_functions_lambdas_and_methods_serve_as_callbacks_and_stay_alive() -> None:
    noted: list[str] = []

    class Handler:
        def __init__(self, name: str) -> None:
            self.name = name

        def handle(self, *_: object) -> None:
            noted.append(self.name)

    def function(*_: object) -> None:
        noted.append("function")

    def feed_all(wire: WritingPeer) -> None:
        wire.feed(call(1))
        wire.feed({"jsonrpc": "2.0", "method": "n"})
        wire.feed(7)

    wire = WritingPeer(
        Policy.mcp(),
        on_request=Handler("method").handle,
        on_notification=function,
        on_problem=lambda *_: noted.append("lambda"),
    )
    gc.collect()
    feed_all(wire)
    assert noted == ["method", "function", "lambda"]


class Waiter:
    """Something that waits for a reply, and can be seen to go."""


@pytest.mark.parametrize("end", ["reply", "cancel", "expire", "close"])
def test_waiter_of_a_closed_request_is_released(end: str) -> None:
    wire, waiter = WritingPeer(Policy.mcp()), Waiter()
    gone = weakref.ref(waiter)
    pending = wire.peer.send_request("work", waiter=waiter, deadline=5.0)
    del waiter
    gc.collect()
    assert gone() is not None
    if end == "reply":
        wire.feed({"jsonrpc": "2.0", "id": 1, "result": {}})
    elif end == "cancel":
        wire.peer.cancel(pending)
    elif end == "expire":
        wire.peer.expire(5.0)
    else:
        wire.peer.close()
    del pending
    gc.collect()
    assert gone() is None


def test_dropping_every_reference_to_an_open_request_leaves_it_open() -> None:
    replies: list[str] = []
    wire = WritingPeer(
        Policy.mcp(), on_reply=lambda pending, _reply: replies.append(pending.method)
    )
    wire.peer.send_request("work")
    wire.feed(call(1, "theirs"))
    gc.collect()
    assert (len(wire.peer.outgoing), len(wire.peer.incoming)) == (1, 1)
    wire.feed({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert replies == ["work"]


class CountedId(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedId.compared += 1
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def test_a_reply_is_compared_with_few_of_the_open_requests() -> None:
    outgoing = OutgoingRequests()
    for number in range(10_000):
        outgoing.open(Pending(CountedId(number), "work"))
    CountedId.compared = 0
    assert outgoing.match(CountedId(9_999), is_error=False) is not UnmatchedReply.UNKNOWN
    assert 1 <= CountedId.compared < 100


# The messages as values


@pytest.mark.parametrize(
    ("message", "members"),
    [
        (Request("a", id=1), {"id", "method", "params"}),
        (Notification("a"), {"method", "params"}),
        (Success(1, {}), {"id", "result"}),
        (Failure(1, ErrorObject(1, "m")), {"id", "error"}),
        (ErrorObject(10**30, "m"), {"code", "message", "data"}),
    ],
    ids=["Request", "Notification", "Success", "Failure", "ErrorObject"],
)
def test_a_message_is_a_struct_of_its_members_and_no_others(
    message: Struct, members: set[str]
) -> None:
    assert isinstance(message, Struct)
    assert set(message.__struct_fields__) == members
    assert not hasattr(message, "__dict__")
    for name in members:
        with pytest.raises(AttributeError):
            setattr(message, name, 1)


def test_a_reply_cannot_be_made_with_both_outcomes() -> None:
    error: Any = ErrorObject(1, "m")
    with pytest.raises(TypeError):
        Success(1, {}, error=error)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Failure(1, error, result={})  # type: ignore[call-arg]
    assert not hasattr(Success(1, {}), "error")
    assert not hasattr(Failure(1, error), "result")


def test_a_notification_has_no_id_to_set() -> None:
    with pytest.raises(TypeError):
        Notification("a", id=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Notification("a").id = 1  # type: ignore[misc]
    assert b"id" not in encode(Notification("a"))


@pytest.mark.parametrize(
    ("message", "most"),
    [
        (Request("tools/call", {}, id=1), 128),
        (Success(1, {}), 128),
        (Failure(1, ErrorObject(1, "m")), 128),
        (Notification("a", {}), 96),
        (ErrorObject(1, "m", {}), 80),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_message_takes_up_few_bytes(message: Struct, most: int) -> None:
    assert sys.getsizeof(message) <= most


def test_a_batch_of_ten_takes_up_few_bytes() -> None:
    batch = Batch(Request("tools/call", {}, id=id) for id in range(10))
    assert sys.getsizeof(batch) + sum(map(sys.getsizeof, batch)) <= 1300


def test_an_error_response_is_written_in_few_calls() -> None:
    codec, failure = Codec(), Failure(1, ErrorObject(-32602, "Unknown tool", {"name": "echo"}))
    assert calls(lambda: codec.encode(failure)) <= 4


# Errors by name


@pytest.mark.parametrize("name", POLICIES)
def test_the_five_of_json_rpc_are_made_by_name_with_nothing_in_their_data(name: str) -> None:
    for kind, (number, _) in STANDARD.items():
        error = named_error(kind, policy=Policy.named(name))
        assert (error.code, error.data) == (number, UNSET)
        assert json.loads(encode(Failure(1, error)))["error"].keys() == {"code", "message"}


def test_the_texts_of_the_five_are_those_of_json_rpc_but_for_two_that_are_kept_as_found() -> None:
    found = {
        (name, kind): profile(name).text(kind)
        for name in PROFILE_NAMES
        for kind, (_, text) in STANDARD.items()
        if profile(name).text(kind) != text
    }
    assert found == {
        ("erlmcp-guide", "INVALID_REQUEST"): "Invalid request",
        ("pierre", "INVALID_PARAMS"): "Invalid parameters",
    }


# Each group of the erlmcp header: its highest number, and its symbols from there downwards.
ERLMCP = {
    "core": (
        -32001,
        """RESOURCE_NOT_FOUND TOOL_NOT_FOUND PROMPT_NOT_FOUND CAPABILITY_NOT_SUPPORTED
        NOT_INITIALIZED SUBSCRIPTION_FAILED VALIDATION_FAILED TRANSPORT_ERROR TIMEOUT
        RATE_LIMITED""",
    ),
    "content": (
        -32011,
        """TOOL_DESCRIPTION_TOO_LONG MESSAGE_TOO_LARGE INVALID_CONTENT_TYPE CONTENT_TOO_LARGE
        INVALID_ENCODING BINARY_DATA_TOO_LARGE TEXT_TOO_LONG INVALID_MIME_TYPE
        UNSUPPORTED_MEDIA_TYPE MEDIA_TYPE_NOT_ACCEPTABLE""",
    ),
    "resource": (
        -32021,
        """RESOURCE_TEMPLATE_NOT_FOUND INVALID_URI URI_SYNTAX_ERROR URI_TOO_LONG
        RESOURCE_ACCESS_DENIED RESOURCE_ALREADY_EXISTS RESOURCE_LOCKED RESOURCE_VERSION_MISMATCH
        TEMPLATE_RENDER_FAILED INVALID_URI_TEMPLATE""",
    ),
    "tool": (
        -32031,
        """TOOL_EXECUTION_FAILED TOOL_TIMEOUT TOOL_CANCELLED INVALID_TOOL_ARGUMENTS TOOL_DISABLED
        TOOL_RESULT_TOO_LARGE TOOL_NOT_ALLOWED MAX_CONCURRENT_TOOLS TOOL_DEPENDENCY_FAILED
        TOOL_SCHEMA_INVALID""",
    ),
    "prompt": (
        -32042,
        """URL_ELICITATION_REQUIRED PROMPT_ARGUMENT_MISSING PROMPT_RENDER_FAILED
        INVALID_PROMPT_ARGUMENTS SAMPLING_FAILED SAMPLING_TIMEOUT INVALID_MODEL_PREFERENCES
        MODEL_NOT_AVAILABLE SAMPLING_RATE_LIMITED""",
    ),
    "auth": (
        -32051,
        """AUTHENTICATION_FAILED AUTHORIZATION_FAILED INVALID_CREDENTIALS TOKEN_EXPIRED
        INSUFFICIENT_PERMISSIONS ACCESS_DENIED SESSION_EXPIRED SESSION_NOT_FOUND INVALID_TOKEN
        UNAUTHORIZED_OPERATION""",
    ),
    "protocol": (
        -32061,
        """UNSUPPORTED_PROTOCOL_VERSION PROTOCOL_VERSION_MISMATCH CAPABILITY_NEGOTIATION_FAILED
        INCOMPATIBLE_CAPABILITIES METHOD_NOT_SUPPORTED NOTIFICATION_NOT_SUPPORTED
        REQUEST_ID_INVALID REQUEST_ID_CONFLICT BATCH_REQUEST_TOO_LARGE BATCH_PARTIAL_FAILURE""",
    ),
    "pagination": (
        -32071,
        """INVALID_CURSOR CURSOR_EXPIRED PAGINATION_NOT_SUPPORTED PAGE_SIZE_TOO_LARGE
        PAGE_SIZE_INVALID INVALID_OFFSET CURSOR_REQUIRES_PARAMETER CURSOR_ENCODING_FAILED
        PAGINATION_LIMIT_EXCEEDED CURSOR_POSITION_INVALID""",
    ),
    "task": (
        -32081,
        """TASK_NOT_FOUND TASK_ALREADY_EXISTS TASK_FAILED TASK_CANCELLED TASK_TIMEOUT
        TASK_STATE_INVALID MAX_CONCURRENT_TASKS TASK_DEPENDENCY_FAILED TASK_RESULT_NOT_READY
        TASK_ALREADY_COMPLETED""",
    ),
    "progress": (
        -32091,
        """INVALID_PROGRESS_TOKEN PROGRESS_TOKEN_EXPIRED PROGRESS_UPDATE_FAILED NOTIFICATION_FAILED
        NOTIFICATION_QUEUE_FULL INVALID_NOTIFICATION_TYPE NOTIFICATION_NOT_DELIVERED
        PROGRESS_VALUE_INVALID PROGRESS_TOTAL_INVALID""",
    ),
    "completion": (
        -32110,
        """COMPLETION_NOT_FOUND INVALID_COMPLETION_REFERENCE INVALID_COMPLETION_ARGUMENT
        COMPLETION_FAILED""",
    ),
    "experimental": (
        1099,
        """INVALID_TASK_STATE EXPERIMENTAL_TASK_TIMEOUT EXPERIMENTAL_TASK_CANCELLED
        EXPERIMENTAL_TASK_DEPENDENCY_FAILED EXPERIMENTAL_TASK_NOT_FOUND
        ELICITATION_SECURITY_ERROR INVALID_ELICITATION_MODE ELICITATION_CANCELLED
        ELICITATION_TIMEOUT ELICITATION_FAILED""",
    ),
}


@pytest.mark.parametrize("group", ERLMCP)
def test_the_erlmcp_profile_knows_a_group_by_symbol_and_by_number(group: str) -> None:
    highest, symbols = ERLMCP[group]
    codes = profile("erlmcp")
    for number, symbol in zip(range(highest, -32768, -1), symbols.split(), strict=False):
        meaning = codes.meaning(number, "2025-11-25")
        assert meaning is not None
        assert meaning.symbol == symbol
        assert codes.number(symbol, "2025-11-25") == number


# One tree of errors, one engine, one floor


def test_the_tree_of_errors_is_shallow_and_has_no_class_per_code() -> None:
    def below(kind: type, depth: int) -> Iterator[int]:
        yield depth
        for child in kind.__subclasses__():
            yield from below(child, depth + 1)

    assert max(below(errors.TrunklineError, 0)) <= 3
    faults = []
    for text in (b"{", b"7", b'{"jsonrpc":"2.0","id":1,"method":"a","params":7}'):
        with pytest.raises(InvalidMessage) as caught:
            decode(text)
        faults.append(caught.value)
    assert {type(fault) for fault in faults} == {InvalidMessage}
    assert [fault.code for fault in faults] == [-32700, -32600, -32602]
    assert len({fault.rule for fault in faults}) == 3


@cache
def imported(path: Path) -> set[str]:
    """Return the names of the packages that one file imports from outside its own."""
    found = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif not node.level:
            found.add(str(node.module).split(".")[0])
    return found


def test_msgspec_is_the_one_engine_and_the_one_package_from_outside() -> None:
    everything = set().union(*map(imported, SOURCE.rglob("*.py")))
    # What an extra brings is imported where it is used, by the modules that need it.
    extras = {
        "cryptography": ["jose.py", "request_state.py"],
        "httptools": ["connection.py", "request_reader.py"],
        "joserfc": ["jose.py"],
        "jsonschema_rs": ["schema_validator.py"],
        "keyring": ["keyring_tokens.py"],
        "opentelemetry": ["tracing.py"],
        "prompt_toolkit": ["prompt_editor.py"],
        "pydantic": ["pydantic_models.py"],
        "pytest": ["pytest_plugin.py"],
        "ruamel": ["yaml_text.py"],
        "websockets": ["client.py", "connection.py", "server.py"],
    }
    # For type checkers alone, which know it without an installation.
    only_typed = {"typing_extensions"}
    assert everything - set(sys.stdlib_module_names) == {"msgspec", *extras, *only_typed}
    naming = [path for path in SOURCE.rglob("*.py") if "typing_extensions" in imported(path)]
    assert [path.name for path in naming] == ["context.py"]
    assert "if TYPE_CHECKING:" in naming[0].read_text().partition("from typing_extensions")[0]
    for package, modules in extras.items():
        found = [path.name for path in SOURCE.rglob("*.py") if package in imported(path)]
        # The public face names types of tracing, for type checkers alone.
        listed = [name for name in found if (package, name) != ("opentelemetry", "app.py")]
        assert sorted(listed) == modules
    core = [path for path in SOURCE.rglob("*.py") if "cli" not in path.parts]
    assert "msgspec" in imported(SOURCE / "jsonrpc" / "codec" / "codec.py")
    assert not set().union(*map(imported, core)) & {"pickle", "marshal"}
    # The judge finds duplicate names, and records what is not JSON with a tolerant reader. The
    # JSON log escapes all that is not ASCII. Signed tokens must not have a member twice. Files of
    # hosts are edited as text, one string or number at a time. Errors show values that cannot be
    # encoded. Arguments that are read again keep the digits of their numbers.
    others = {path.name for path in core if "json" in imported(path)}
    hosts = {"edit.py", "jsonc.py", "mask.py", "toml_text.py", "yaml_text.py"}
    shown = {"json_log.py", "redaction.py"}
    assert others == {"coercion.py", "envelope.py", "jose.py", "writer.py", *shown, *hosts}


def test_python_3_11_and_msgspec_are_all_that_has_to_be_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert [re.split(r"[<>=!~ ]", needed)[0] for needed in project["dependencies"]] == ["msgspec"]
    assert re.search(r"^pytest==", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE)


def strings_of(path: Path) -> Iterator[str]:
    """Yield the texts that the code of one file works with; docstrings are not among them."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def test_the_core_is_typed_and_knows_no_method_by_name() -> None:
    assert (SOURCE / "py.typed").is_file()
    area = (
        r"(tools|resources|prompts|notifications|sampling|roots|tasks|logging|completion|message)"
    )
    name = re.compile(rf"initialized?|ping|server/discover|{area}/\w+")
    named = [
        (path.name, text)
        for path in (SOURCE / "jsonrpc").rglob("*.py")
        for text in strings_of(path)
        if name.fullmatch(text)
    ]
    assert named == []


def test_json_is_cited_by_its_rfc_and_json_rpc_is_not_called_one() -> None:
    cited = {rule.source.split(",")[0] for rule in RULES.values() if rule.id[8:13] == "text."}
    assert "RFC 8259" in cited
    assert {source for source in cited if "RFC" in source} == {"RFC 8259"}
    texts = [path.read_text() for path in [*PAGES, *SOURCE.rglob("*.py")]]
    assert sum("JSON-RPC 2.0" in text for text in texts) > 5
    assert not any(re.search(r"RFC[ -]?7049|JSON-RPC( 2\.0)?,? \(?RFC", text) for text in texts)


def test_revisions_are_dates_and_order_as_text() -> None:
    assert [date.fromisoformat(revision).isoformat() for revision in REVISIONS] == list(REVISIONS)
    assert sorted(REVISIONS) == sorted(REVISIONS, key=date.fromisoformat)


def test_every_transport_has_a_limit_unless_one_set_or_none_lifts_it() -> None:
    assert {getattr(Limits(), transport) for transport in TRANSPORTS} == {16 * MIB}
    unlimited = {
        (name, transport)
        for name in LIMITS
        for transport in TRANSPORTS
        if getattr(Limits.named(name), transport) is None
    }
    assert unlimited == {("erlmcp-doc", "default")}
