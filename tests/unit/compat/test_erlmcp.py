"""`compat.erlmcp`: its names, its bytes and its reasons, over our codec."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rigs.conditions import until_async
from trunkline import Client, PeerError, Server
from trunkline.compat import erlmcp
from trunkline.errors import (
    IdsExhausted,
    InvalidMessage,
    LocalProtocolError,
    RemoteProtocolError,
)
from trunkline.jsonrpc import Batch, ErrorObject, Failure, Notification, Policy, Request, Success

MIB = 1024 * 1024

# Each helper, its number, and the members of its data in the order of its arguments.
HELPERS = """
error_resource_not_found -32001 uri
error_tool_not_found -32002 tool
error_prompt_not_found -32003 prompt
error_capability_not_supported -32004 capability
error_not_initialized -32005
error_validation_failed -32007 details
error_tool_description_too_large -32011 actualSize maxSize
error_invalid_content_type -32013 contentType
error_content_too_large -32014 actualSize maxSize
error_invalid_encoding -32015 encoding
error_resource_template_not_found -32021 templateUri
error_invalid_uri -32022 uri
error_uri_syntax_error -32023 uri reason
error_resource_access_denied -32025 uri
error_template_render_failed -32029 templateUri reason
error_tool_execution_failed -32031 tool reason
error_tool_timeout -32032 tool timeoutMs
error_tool_cancelled -32033 tool
error_invalid_tool_arguments -32034 tool details
error_prompt_argument_missing -32043 prompt argument
error_prompt_render_failed -32044 prompt reason
error_invalid_prompt_arguments -32045 prompt details
error_sampling_failed -32046 reason
error_authentication_failed -32051 reason
error_authorization_failed -32052 reason
error_invalid_credentials -32053
error_token_expired -32054
error_access_denied -32056 resource
error_unsupported_protocol_version -32061 version
error_protocol_version_mismatch -32062 clientVersion serverVersion
error_capability_negotiation_failed -32063 reason
error_method_not_supported -32065 method
error_invalid_cursor -32071 cursor
error_cursor_expired -32072 cursor
error_pagination_not_supported -32073 method
error_page_size_too_large -32074 actualSize maxSize
error_task_not_found -32081 taskId
error_task_already_exists -32082 taskId
error_task_failed -32083 taskId reason
error_task_cancelled -32084 taskId
error_task_timeout -32085 taskId timeoutMs
error_invalid_progress_token -32091 progressToken
error_progress_token_expired -32092 progressToken
error_progress_update_failed -32093 progressToken reason
error_notification_failed -32094 notificationType reason
error_notification_queue_full -32095 queueSize
error_completion_not_found -32110 completionId
error_invalid_completion_reference -32111 reference
error_invalid_completion_argument -32112 argument details
error_completion_failed -32113 completionId reason
error_method_not_found -32601 method
error_invalid_params -32602 details
error_internal -32603
error_parse -32700
error_elicitation_failed 1090 reason
error_elicitation_timeout 1091 timeoutMs
error_elicitation_cancelled 1092
error_invalid_elicitation_mode 1093 mode
error_elicitation_security_error 1094 reason
error_experimental_task_not_found 1095 taskId
error_task_dependency_failed 1096 taskId dependencyId
error_experimental_task_cancelled 1097 taskId
error_experimental_task_timeout 1098 taskId timeoutMs
error_invalid_task_state 1099 taskId currentState expectedState
"""
ROWS = [line.split() for line in HELPERS.strip().splitlines()]

NAMES = """
    JSONRPC_VERSION MCP_VERSION JSONRPC_FIELD_JSONRPC JSONRPC_FIELD_ID JSONRPC_FIELD_METHOD
    JSONRPC_FIELD_PARAMS JSONRPC_FIELD_RESULT JSONRPC_FIELD_ERROR JSONRPC_ERROR_FIELD_CODE
    JSONRPC_ERROR_FIELD_MESSAGE JSONRPC_ERROR_FIELD_DATA MAX_SAFE_REQUEST_ID VALID_ERROR_CODES
    MCP_METHOD_INITIALIZE
    encode_request encode_response encode_error_response encode_notification encode_batch
    encode_message build_message_map build_error_object decode decode_message decode_batch
    is_batch_request
    parse_json_rpc parse_by_type parse_notification parse_batch validate_jsonrpc_version
    create_batch_error_response map_batch_error_to_code
    safe_increment check_thresholds validate_message_size get_max_message_size
    error_message_too_large validate_error_code error_category error_severity
    json_rpc_id json_rpc_params json_rpc_message batch_decode_result json_rpc_request
    json_rpc_response json_rpc_notification mcp_error
    is_jsonrpc_standard_error is_mcp_core_error is_mcp_content_error is_mcp_resource_error
    is_mcp_tool_error is_mcp_prompt_error is_mcp_auth_error is_mcp_protocol_error
    is_mcp_pagination_error is_mcp_task_error is_mcp_progress_error is_mcp_completion_error
    range_group error_code reason_of safe_extract_result safe_extract_error safe_extract_nested
    safe_get_field validate_utf8 ensure_utf8_encoding
    ID_WARNING_THRESHOLD ID_CRITICAL_THRESHOLD ID_RESERVED_THRESHOLD
"""


def fault_of(call: Callable[..., object], *arguments: Any) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as caught:
        call(*arguments)
    return caught.value


def reason(call: Callable[..., object], *arguments: Any) -> tuple[str, Any]:
    return erlmcp.reason_of(fault_of(call, *arguments))


# --- names


def test_every_name_is_there_and_public() -> None:
    wanted = {*NAMES.split(), *(row[0] for row in ROWS)}
    assert wanted - set(erlmcp.__all__) == set()
    assert all(hasattr(erlmcp, name) for name in erlmcp.__all__)


def test_no_name_is_exported_twice() -> None:
    assert len(erlmcp.__all__) == len(set(erlmcp.__all__))


def test_the_constants_have_their_values() -> None:
    assert (erlmcp.JSONRPC_VERSION, erlmcp.MCP_VERSION) == ("2.0", "2025-11-25")
    assert erlmcp.MCP_METHOD_INITIALIZE == "initialize"
    for name in ("jsonrpc", "id", "method", "params", "result", "error"):
        assert getattr(erlmcp, f"JSONRPC_FIELD_{name.upper()}") == name
    for name in ("code", "message", "data"):
        assert getattr(erlmcp, f"JSONRPC_ERROR_FIELD_{name.upper()}") == name


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("MCP_ERROR_RESOURCE_NOT_FOUND", -32001),
        ("MCP_ERROR_TOOL_NOT_FOUND", -32002),
        ("MCP_ERROR_NOT_INITIALIZED", -32005),
        ("MCP_ERROR_TASK_NOT_FOUND", -32081),
        ("MCP_ERROR_PROMPT_TOO_LARGE", -32101),
        ("JSONRPC_PARSE_ERROR", -32700),
        ("JSONRPC_INVALID_REQUEST", -32600),
        ("JSONRPC_METHOD_NOT_FOUND", -32601),
        ("JSONRPC_INVALID_PARAMS", -32602),
        ("JSONRPC_INTERNAL_ERROR", -32603),
        ("ELICITATION_FAILED", 1090),
        ("TASK_NOT_FOUND", 1095),
        ("INVALID_TASK_STATE", 1099),
        ("REFUSAL_QUEUE_CAP_EXCEEDED", 1001),
    ],
)
def test_a_number_goes_by_the_name_of_the_header(name: str, number: int) -> None:
    assert getattr(erlmcp, name) == number
    assert name in dir(erlmcp)


def test_every_number_of_the_header_has_a_name() -> None:
    names = erlmcp.CODE_CONSTANTS
    assert sum(name.startswith("MCP_ERROR_") for name in names) == 107
    assert sum(name.startswith("JSONRPC_") for name in names) == 5
    assert sum(1090 <= number <= 1099 for number in names.values()) == 10


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="MCP_ERROR_NO_SUCH_THING"):
        erlmcp.MCP_ERROR_NO_SUCH_THING  # noqa: B018


# --- writing


def test_a_request_is_written_in_the_order_of_the_original() -> None:
    expected = b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{}}'
    assert erlmcp.encode_request(1, "resources/list", {}) == expected
    request = erlmcp.json_rpc_request(id=1, method="resources/list", params={})
    assert erlmcp.encode_message(request) == expected


def test_absent_params_are_not_written() -> None:
    assert erlmcp.encode_request(1, "initialize") == (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}'
    )
    assert erlmcp.encode_notification("initialized") == b'{"jsonrpc":"2.0","method":"initialized"}'


@pytest.mark.parametrize("id", [1, 42, 2147483647, "req-001", "client-1-request-1"])
def test_ids_are_numbers_or_text(id: int | str) -> None:
    message = erlmcp.decode_message(erlmcp.encode_request(id, "ping"))
    assert message == Request("ping", id=id)


@pytest.mark.parametrize("id", [None, True, 1.5])
def test_a_request_has_no_other_id(id: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.id\.type"):
        erlmcp.encode_request(id, "ping")


def test_a_response_is_written() -> None:
    assert erlmcp.encode_response(1, {"status": "ok"}) == (
        b'{"jsonrpc":"2.0","id":1,"result":{"status":"ok"}}'
    )
    assert erlmcp.encode_response(1, None) == b'{"jsonrpc":"2.0","id":1,"result":null}'


def test_an_error_response_is_written() -> None:
    data = {"details": "Missing required field: uri"}
    assert erlmcp.encode_error_response(1, -32602, "Invalid params", data) == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params",'
        b'"data":{"details":"Missing required field: uri"}}}'
    )


@pytest.mark.parametrize("code", [-32101, -32041, -32100, 1001, 7, 0])
def test_a_code_outside_the_list_goes_out_as_an_internal_error(code: int) -> None:
    assert not erlmcp.validate_error_code(code)
    written = json.loads(erlmcp.encode_error_response(1, code, "No"))
    assert written["error"] == {"code": -32603, "message": "No"}


def test_every_code_of_the_list_goes_out_as_it_is() -> None:
    assert len(erlmcp.VALID_ERROR_CODES) == 118
    for code in erlmcp.VALID_ERROR_CODES:
        assert erlmcp.validate_error_code(code)
        assert json.loads(erlmcp.encode_error_response(1, code, "No"))["error"]["code"] == code


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ({}, {}),
        ("why", {"details": "why"}),
        (["a", 1], {"details": ["a", 1]}),
        (("wrong_version", "1.0"), {"details": ["wrong_version", "1.0"]}),
        (7, {"details": 7}),
        (False, {"details": False}),
    ],
)
def test_data_on_the_wire_are_always_an_object(data: Any, expected: Any) -> None:
    written = json.loads(erlmcp.encode_error_response(1, -32000, "No", data))
    assert written["error"]["data"] == expected


def test_no_data_are_not_written() -> None:
    assert b"data" not in erlmcp.encode_error_response(1, -32000, "No")
    assert b"data" not in erlmcp.encode_error_response(1, -32000, "No", None)
    assert erlmcp.build_error_object(1, "No") == ErrorObject(1, "No")


def test_a_notification_is_written() -> None:
    params = {"uri": "weather://city"}
    assert erlmcp.encode_notification("resources/updated", params) == (
        b'{"jsonrpc":"2.0","method":"resources/updated","params":{"uri":"weather://city"}}'
    )


def test_a_batch_is_written_in_order() -> None:
    batch = [
        Request("resources/list", {}, id=1),
        Request("tools/list", {}, id=2),
        Notification("resources/list_changed", {}),
    ]
    assert erlmcp.encode_batch(batch) == (
        b'[{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{}},'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}},'
        b'{"jsonrpc":"2.0","method":"resources/list_changed","params":{}}]'
    )


def test_a_batch_of_responses_is_written() -> None:
    failure = Failure(2, erlmcp.build_error_object(-32601, "Method not found"))
    assert erlmcp.encode_batch([Success(1, {}), failure]) == (
        b'[{"jsonrpc":"2.0","id":1,"result":{}},'
        b'{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}]'
    )


def test_an_empty_batch_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.batch\.empty"):
        erlmcp.encode_batch([])


def test_unserialisable_params_are_refused_with_their_pointer() -> None:
    with pytest.raises(LocalProtocolError, match="/params/x"):
        erlmcp.encode_request(1, "echo", {"x": object()})


@pytest.mark.parametrize(
    "message",
    [
        Request("tools/list", {"cursor": "c"}, id=1),
        Notification("progress"),
        Success("a", [1]),
        Failure(None, ErrorObject(-32700, "Parse error")),
    ],
)
def test_the_map_of_a_message_is_what_is_written(message: erlmcp.json_rpc_message) -> None:
    built = erlmcp.build_message_map(message)
    assert json.dumps(built, separators=(",", ":")).encode() == erlmcp.encode_message(message)


# --- reading


def test_a_message_is_read_as_its_record() -> None:
    read = erlmcp.decode_message
    assert read(b'{"jsonrpc":"2.0","id":1,"method":"a"}') == erlmcp.json_rpc_request(
        id=1, method="a"
    )
    assert read('{"jsonrpc":"2.0","method":"a","params":[1]}') == erlmcp.json_rpc_notification(
        method="a", params=[1]
    )
    assert isinstance(read(b'{"jsonrpc":"2.0","id":1,"result":1}'), erlmcp.json_rpc_response)
    failure = read(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"No"}}')
    assert isinstance(failure, erlmcp.json_rpc_response)
    assert failure == Failure(1, erlmcp.mcp_error(code=-32002, message="No"))
    assert erlmcp.decode is erlmcp.decode_message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{", ("parse_error", "invalid_json")),
        (b"\xff{}", ("parse_error", "invalid_json")),
        (rb'{"jsonrpc":"2.0","id":1,"method":"\ud83d"}', ("parse_error", "invalid_json")),
        (b"\xef\xbb\xbf{}", ("parse_error", "invalid_json")),
        (b"7", ("invalid_json", "not_object")),
        (b'{"id":1,"method":"a"}', ("invalid_request", "missing_jsonrpc")),
        (b'{"jsonrpc":"1.0","id":1,"method":"a"}', ("invalid_request", ("wrong_version", "1.0"))),
        (b'{"jsonrpc":"2.0","id":1}', ("invalid_request", "unknown_message_type")),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', ("invalid_method", "number")),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', ("invalid_method", "string")),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":7}', ("invalid_params", "number")),
        (
            b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}',
            ("invalid_request", "result_and_error_exclusive"),
        ),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}', ("invalid_request", "jsonrpc.id.not-null")),
        (b"[]", ("invalid_request", "empty_batch")),
        (b'[{"jsonrpc":"2.0","method":"a"},7]', ("batch_request", 2)),
    ],
)
def test_a_fault_has_the_reason_of_the_original(text: bytes, expected: tuple[str, Any]) -> None:
    assert reason(erlmcp.decode_message, text) == expected


def test_invalid_json_is_answered_with_a_parse_error_and_a_null_id() -> None:
    fault = fault_of(erlmcp.decode_message, b"{")
    assert fault.answer() == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    )


def test_params_of_null_are_absent() -> None:
    read = erlmcp.decode_message(b'{"jsonrpc":"2.0","id":1,"method":"a","params":null}')
    assert read == Request("a", id=1)


def test_a_batch_is_read_element_by_element() -> None:
    found = erlmcp.decode_batch(
        b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"id":2,"method":"b"},7,'
        b'{"jsonrpc":"2.0","method":"c"}]'
    )
    assert type(found) is list
    assert found[0] == Request("a", id=1)
    assert found[3] == Notification("c")
    faults = [item for item in found if isinstance(item, InvalidMessage)]
    assert [erlmcp.reason_of(fault) for fault in faults] == [
        ("invalid_request", "missing_jsonrpc"),
        ("invalid_request", "not_an_object"),
    ]
    assert [fault.id for fault in faults] == [2, None]


def test_a_single_message_is_a_batch_of_one() -> None:
    assert erlmcp.decode_batch(b'{"jsonrpc":"2.0","id":1,"method":"a"}') == [Request("a", id=1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[", ("parse_error", "invalid_json")),
        (b"[]", ("invalid_request", "empty_batch")),
        (b"7", ("invalid_json", "not_object")),
        (b'{"jsonrpc":"2.0"}', ("invalid_request", "unknown_message_type")),
    ],
)
def test_malformed_batch_has_a_reason(text: bytes, expected: tuple[str, Any]) -> None:
    assert reason(erlmcp.decode_batch, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"[]", True),
        (b' [{"a":1}]', True),
        ("[1]", True),
        (b"{}", False),
        (b"[", False),
        (b"[] x", False),
        (b'["\xff"]', False),
        ('["\ud800"]', False),
        (b"", False),
        (b"[" * 100_000, False),
    ],
)
def test_a_batch_is_a_json_array(text: bytes | str, expected: bool) -> None:
    assert erlmcp.is_batch_request(text) is expected


def test_null_is_none_both_ways() -> None:
    written = erlmcp.encode_request(1, "a", {"x": None, "y": [None]})
    assert written == b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":null,"y":[null]}}'
    read = erlmcp.decode_message(written)
    assert isinstance(read, Request)
    assert read.params == {"x": None, "y": [None]}
    assert erlmcp.encode_response(1, None) == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert erlmcp.decode_message(erlmcp.encode_response(1, None)) == Success(1, None)
    parsed = erlmcp.parse_json_rpc({"jsonrpc": "2.0", "id": 1, "result": None})
    assert erlmcp.build_message_map(parsed)["result"] is None


# --- parsed values


def test_a_parsed_object_is_read_by_the_same_rules() -> None:
    parse = erlmcp.parse_json_rpc
    assert parse({"jsonrpc": "2.0", "id": 1, "method": "a"}) == Request("a", id=1)
    assert parse({"jsonrpc": "2.0", "id": 1, "result": None}) == Success(1, None)
    assert reason(parse, {"jsonrpc": "2.0", "id": 1, "method": 7}) == ("invalid_method", "number")
    assert reason(parse, {"id": 1}) == ("invalid_request", "missing_jsonrpc")


@pytest.mark.parametrize("value", [object(), float("nan"), "\ud800"])
def test_a_value_that_json_has_not_is_the_callers_mistake(value: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"x": value}}
    with pytest.raises(LocalProtocolError, match="/params/x"):
        erlmcp.parse_json_rpc(message)


def test_a_value_that_contains_itself_is_the_callers_mistake() -> None:
    params: dict[str, Any] = {}
    params["again"] = params
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.value\.cyclic"):
        erlmcp.parse_json_rpc({"jsonrpc": "2.0", "id": 1, "method": "a", "params": params})


def test_parse_by_type_does_not_need_the_version() -> None:
    assert erlmcp.parse_by_type({"id": 1, "method": "a"}) == Request("a", id=1)
    assert erlmcp.parse_by_type({"method": "a"}) == Notification("a")
    assert reason(erlmcp.parse_by_type, {"id": 1}) == ("invalid_request", "unknown_message_type")


def test_a_notification_is_parsed_from_its_method_and_params() -> None:
    assert erlmcp.parse_notification("a", {"params": {"b": 1}}) == Notification("a", {"b": 1})
    assert erlmcp.parse_notification("a", {}) == Notification("a")
    assert reason(erlmcp.parse_notification, "", {}) == ("invalid_method", "string")
    assert reason(erlmcp.parse_notification, "a", {"params": 1}) == ("invalid_params", "number")


def test_a_parsed_array_is_read_element_by_element() -> None:
    found = erlmcp.parse_batch([{"jsonrpc": "2.0", "method": "a"}, 7])
    assert found[0] == Notification("a")
    assert isinstance(found[1], InvalidMessage)
    assert reason(erlmcp.parse_batch, []) == ("invalid_request", "empty_batch")


def test_the_version_is_checked_by_itself() -> None:
    check = erlmcp.validate_jsonrpc_version
    check({"jsonrpc": "2.0"})
    assert reason(check, {}) == ("invalid_request", "missing_jsonrpc")
    assert reason(check, {"jsonrpc": "1.0"}) == ("invalid_request", ("wrong_version", "1.0"))
    assert reason(check, {"jsonrpc": 2.0}) == ("invalid_request", ("wrong_version", 2.0))
    assert fault_of(check, {"id": 7, "method": "a"}).id == 7


@pytest.mark.parametrize(
    ("reason", "details", "expected"),
    [
        ("invalid_request", "not_an_object", (-32600, "Invalid Request: not an object")),
        ("invalid_request", None, (-32600, "Invalid Request")),
        ("invalid_request", "empty_batch", (-32600, "Invalid Request")),
        ("missing_jsonrpc", None, (-32600, "Missing jsonrpc version field")),
        ("invalid_request", "missing_jsonrpc", (-32600, "Missing jsonrpc version field")),
        ("wrong_version", "1.0", (-32600, "Invalid jsonrpc version (must be 2.0)")),
        (
            "invalid_request",
            ("wrong_version", "1.0"),
            (-32600, "Invalid jsonrpc version (must be 2.0)"),
        ),
        ("invalid_method", "x", (-32600, "Invalid method: x")),
        ("invalid_method", None, (-32600, "Invalid method")),
        ("unknown_message_type", None, (-32600, "Unknown message type")),
        ("parse_error", "invalid_json", (-32700, "Parse error")),
        ("something_else", None, (-32603, "Internal error")),
        ("something_else", "missing_jsonrpc", (-32603, "Internal error")),
        ("invalid_request", ["unhashable"], (-32600, "Invalid Request")),
        ("invalid_request", (), (-32600, "Invalid Request")),
    ],
)
def test_a_reason_has_a_number_and_a_text(
    reason: str, details: Any, expected: tuple[int, str]
) -> None:
    assert erlmcp.map_batch_error_to_code(reason, details) == expected


@pytest.mark.parametrize(
    ("request_", "id"),
    [({"id": 123}, 123), ({"id": "a"}, "a"), ({}, None), ({"id": True}, None), (7, None)],
)
def test_a_faulty_element_is_answered_under_its_own_id(request_: Any, id: int | str | None) -> None:
    answer = erlmcp.create_batch_error_response(request_, "invalid_request", "not_an_object")
    error = ErrorObject(-32600, "Invalid Request: not an object", {"details": "not_an_object"})
    assert answer == Failure(id, error)
    assert erlmcp.encode_batch([answer])


def test_a_fault_of_a_batch_makes_its_own_answer() -> None:
    element = {"jsonrpc": "1.0", "id": 5, "method": "a"}
    [fault] = erlmcp.parse_batch([element])
    assert isinstance(fault, InvalidMessage)
    answer = erlmcp.create_batch_error_response(element, *erlmcp.reason_of(fault))
    assert erlmcp.encode_message(answer) == (
        b'{"jsonrpc":"2.0","id":5,"error":{"code":-32600,'
        b'"message":"Invalid jsonrpc version (must be 2.0)",'
        b'"data":{"details":["wrong_version","1.0"]}}}'
    )


# --- sizes


@pytest.mark.parametrize(
    ("transport", "size"),
    [
        ("stdio", 10 * MIB),
        ("tcp", 100 * MIB),
        ("http", 50 * MIB),
        ("websocket", 50 * MIB),
        ("sse", 10 * MIB),
        ("default", None),
    ],
)
def test_every_transport_has_its_limit(transport: Any, size: int | None) -> None:
    assert erlmcp.get_max_message_size(transport) == size


@pytest.mark.parametrize("transport", ["carrier-pigeon", "batch", "depth"])
def test_an_unknown_transport_is_refused_with_the_names_there_are(transport: Any) -> None:
    for call in (
        lambda: erlmcp.get_max_message_size(transport),
        lambda: erlmcp.validate_message_size(transport, b""),
        lambda: erlmcp.decode_message(b"{}", transport),
    ):
        with pytest.raises(LookupError, match="stdio, tcp"):
            call()


TOO_LARGE = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32012,'
    b'"message":"Message size exceeds maximum allowed",'
    b'"data":{"maxSize":10485760,"unit":"bytes"}}}'
)


def test_a_message_as_large_as_the_limit_is_let_in() -> None:
    erlmcp.validate_message_size("stdio", b" " * (10 * MIB))
    erlmcp.validate_message_size("default", b" " * (10 * MIB + 1))


def test_a_larger_message_has_its_answer_ready() -> None:
    text = b" " * (10 * MIB + 1)
    for call, arguments in (
        (erlmcp.validate_message_size, ("stdio", text)),
        (erlmcp.validate_message_size, ("stdio", text.decode())),
        (erlmcp.decode_message, (text, "stdio")),
    ):
        assert reason(call, *arguments) == ("message_too_large", TOO_LARGE)
    assert erlmcp.error_message_too_large(None, 10 * MIB) == TOO_LARGE


def test_the_answer_to_a_message_that_is_too_large_has_a_null_id_though_it_could_be_read() -> None:
    text = b'{"jsonrpc":"2.0","id":7,"method":"' + b"a" * (10 * MIB) + b'"}'
    name, answer = reason(erlmcp.decode_message, text, "stdio")
    assert name == "message_too_large"
    assert answer == TOO_LARGE == erlmcp.error_message_too_large(None, 10 * MIB)
    assert fault_of(erlmcp.validate_message_size, "stdio", text).answer() == TOO_LARGE


# --- ids


def test_ids_go_up_to_two_to_the_sixty() -> None:
    assert erlmcp.MAX_SAFE_REQUEST_ID == 2**60 - 1 == 1152921504606846975
    assert erlmcp.safe_increment(1) == 2
    assert erlmcp.safe_increment(2**60 - 2) == 2**60 - 1
    for id in (2**60 - 1, 2**60):
        with pytest.raises(IdsExhausted) as caught:
            erlmcp.safe_increment(id)
        assert erlmcp.reason_of(caught.value) == "overflow"


def test_the_thresholds_are_exact() -> None:
    assert erlmcp.ID_WARNING_THRESHOLD == 922337203685477580
    assert erlmcp.ID_CRITICAL_THRESHOLD == 1037629354146162277
    assert erlmcp.ID_RESERVED_THRESHOLD == 1106804644422573096


@pytest.mark.parametrize(
    ("id", "level", "percentage"),
    [
        (1, "normal", 0.0),
        (922337203685477579, "normal", 80.0),
        (922337203685477580, "warning", 80.0),
        (1037629354146162276, "warning", 90.0),
        (1037629354146162277, "critical", 90.0),
        (1106804644422573095, "critical", 96.0),
        (1106804644422573096, "reserved", 96.0),
        (2**60 - 1, "reserved", 100.0),
    ],
)
def test_the_use_of_ids_has_a_level(id: int, level: str, percentage: float) -> None:
    usage = erlmcp.check_thresholds(id)
    assert usage.level == level
    assert usage.percentage == pytest.approx(percentage)


# --- errors


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_helper_writes_its_number_its_text_and_its_data(row: list[str]) -> None:
    name, number, *members = row
    helper = getattr(erlmcp, name)
    values = [f"value of {member}" for member in members]
    written = json.loads(helper("a", *values))
    assert list(written) == ["jsonrpc", "id", "error"]
    assert written["error"]["code"] == int(number)
    assert written["error"].get("data") == (
        dict(zip(members, values, strict=True)) if members else None
    )
    assert written["error"]["message"]
    assert helper.__name__ == name
    assert number in helper.__doc__
    with pytest.raises(TypeError, match=f"{name}.. takes id"):
        helper("a", *values, "one too many")


def test_the_helpers_of_the_document_write_its_examples() -> None:
    assert erlmcp.error_tool_not_found(1, "execute_query") == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Tool not found",'
        b'"data":{"tool":"execute_query"}}}'
    )
    assert erlmcp.error_resource_not_found(1, "doc://readme") == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Resource not found",'
        b'"data":{"uri":"doc://readme"}}}'
    )
    assert erlmcp.error_invalid_params(1, "Missing required field: uri") == (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params",'
        b'"data":{"details":"Missing required field: uri"}}}'
    )
    assert erlmcp.error_parse(None) == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    )


def test_a_missing_resource_is_a_resource_error_by_symbol_and_a_core_error_by_range() -> None:
    assert erlmcp.error_category(-32001) == "resource"
    assert erlmcp.error_severity(-32001) == "error"
    assert erlmcp.is_mcp_resource_error(-32001)
    assert erlmcp.is_mcp_core_error(-32001)
    assert erlmcp.range_group(-32001) == "mcp_core"


@pytest.mark.parametrize(
    ("code", "category", "severity"),
    [
        (-32700, "jsonrpc", "critical"),
        (-32602, "jsonrpc", "error"),
        (-32012, "content", "warning"),
        (-32041, "prompt", "warning"),
        (-32100, "progress", "info"),
        (1095, "task", "info"),
        (7, "unknown", "info"),
    ],
)
def test_a_number_has_a_category_and_a_severity(code: int, category: str, severity: str) -> None:
    assert erlmcp.error_category(code) == category
    assert erlmcp.error_severity(code) == severity


@pytest.mark.parametrize(
    ("group", "low", "high", "more"),
    [
        ("core", -32010, -32000, []),
        ("content", -32020, -32011, []),
        ("resource", -32030, -32021, [-32001]),
        ("tool", -32040, -32031, [-32002]),
        ("prompt", -32050, -32041, [-32003]),
        ("auth", -32060, -32051, []),
        ("protocol", -32070, -32061, []),
        ("pagination", -32080, -32071, []),
        ("task", -32090, -32081, [1095, 1096, 1097, 1098, 1099]),
        ("progress", -32100, -32091, []),
        ("completion", -32113, -32110, []),
    ],
)
def test_error_group_predicate_accepts_its_range(
    group: str, low: int, high: int, more: list[int]
) -> None:
    predicate = getattr(erlmcp, f"is_mcp_{group}_error")
    numbers = [*range(-32800, -31900), *range(1000, 1100)]
    assert [code for code in numbers if predicate(code)] == sorted([*range(low, high + 1), *more])


def test_standard_error_predicate_accepts_the_range_of_json_rpc() -> None:
    assert [c for c in range(-32800, 1100) if erlmcp.is_jsonrpc_standard_error(c)] == list(
        range(-32700, -32599)
    )


@pytest.mark.parametrize(
    ("atom", "number"),
    [
        ("parse_error", -32700),
        ("invalid_request", -32600),
        ("method_not_found", -32601),
        ("invalid_params", -32602),
        ("internal_error", -32603),
        ("resource_not_found", -32001),
        ("tool_not_found", -32002),
        ("not_initialized", -32005),
        ("validation_failed", -32007),
        ("rate_limited", -32010),
        ("unauthorized", -32051),
        ("prompt_not_found", -32603),
        ("nonsense", -32603),
    ],
)
def test_an_atom_has_a_number(atom: str, number: int) -> None:
    assert erlmcp.error_code(atom) == number
    assert (atom in erlmcp.ERROR_ATOMS) == (number != -32603 or atom == "internal_error")


# --- reaching into responses


def test_a_result_is_taken_out_of_a_response() -> None:
    assert erlmcp.safe_extract_result({"id": 1, "result": {"data": "value"}}) == {"data": "value"}
    assert erlmcp.safe_extract_result(Success(1, None)) is None
    for response in (Failure(1, ErrorObject(1, "No")), {"id": 1}, 7):
        with pytest.raises(RemoteProtocolError, match="a response with a result"):
            erlmcp.safe_extract_result(response)  # type: ignore[arg-type]


def test_an_error_is_taken_out_of_a_response() -> None:
    error = {"code": 1, "message": "No"}
    assert erlmcp.safe_extract_error({"id": 1, "error": error}) == error
    assert erlmcp.safe_extract_error(Failure(1, ErrorObject(1, "No"))) == error
    for response in (Success(1, {}), {"id": 1, "error": "No"}, None):
        with pytest.raises(RemoteProtocolError):
            erlmcp.safe_extract_error(response)  # type: ignore[arg-type]


def test_a_nested_value_is_found_or_the_default_is() -> None:
    response = {"result": {"tools": [{"name": "test"}]}}
    for holder in (response, Success(1, response["result"])):
        path = ["result", "tools", 0, "name"]
        assert erlmcp.safe_extract_nested(holder, path) == "test"
        assert erlmcp.safe_extract_nested(holder, [*path, "more"], "none") == "none"
        for step in (1, -1, "0", True):
            assert erlmcp.safe_extract_nested(holder, ["result", "tools", step], 0) == 0
    assert erlmcp.safe_extract_nested({}, ["result"]) is None


def test_a_member_is_found_or_none_is() -> None:
    assert erlmcp.safe_get_field({"key": "value"}, "key") == "value"
    assert erlmcp.safe_get_field({"key": "value"}, "other") is None
    assert erlmcp.safe_get_field(7, "key") is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain", True),
        ("\u00e9".encode(), True),
        ("\u00e9", True),
        (b"\xff", False),
        (b"\xed\xa0\x80", False),
        (b"\xc0\x80", False),
        ("\ud800", False),
        (7, False),
    ],
)
def test_validate_utf8_accepts_utf8_only(data: Any, expected: bool) -> None:
    assert erlmcp.validate_utf8(data) is expected


def test_bytes_become_text_wherever_they_stand() -> None:
    term = {b"name": [b"a", "b", ({"c": b"\xc3\xa9"},)], "n": 1, "none": None}
    assert erlmcp.ensure_utf8_encoding(term) == {
        "name": ["a", "b", [{"c": "\u00e9"}]],
        "n": 1,
        "none": None,
    }


def test_ensure_utf8_encoding_refuses_other_text_with_its_pointer() -> None:
    for bad in (b"\xff", "\ud800"):
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.text\.surrogate at /a/1/b"):
            erlmcp.ensure_utf8_encoding({"a": [0, {"b": bad}]})
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.value\.unserialisable"):
        erlmcp.ensure_utf8_encoding({"a": object()})
    again: list[Any] = []
    again.append(again)
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.value\.cyclic"):
        erlmcp.ensure_utf8_encoding(again)


# --- secrets

CANARY = "canary-7f3a91c04e5d"


def test_no_message_shows_a_token(showings: Callable[[object], str]) -> None:
    secret = {"token": CANARY, "nested": [{"api_key": CANARY}]}
    error = erlmcp.build_error_object(-32051, "No", secret)
    for value in (
        Request("a", secret, id=1),
        Notification("a", secret),
        Success(1, secret),
        error,
        Failure(1, error),
        Batch([Notification("a", secret)]),
        erlmcp.create_batch_error_response({"id": 1}, "invalid_request", secret),
    ):
        assert CANARY not in showings(value)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"jsonrpc":"2.0","id":1,"method":"a","params":"{CANARY}"}}',
        f'{{"jsonrpc":"2.0","id":1,"method":["{CANARY}"]}}',
        f'{{"jsonrpc":"2.0","id":["{CANARY}"],"method":"a"}}',
        f'{{"token":"{CANARY}"',
        f'["{CANARY}"]',
    ],
)
def test_no_fault_shows_or_sends_back_a_token(text: str, showings: Callable[[object], str]) -> None:
    try:
        [fault] = erlmcp.decode_batch(text)
    except InvalidMessage as error:
        fault = error
    assert isinstance(fault, InvalidMessage)
    assert CANARY not in showings(fault)
    assert CANARY.encode() not in (fault.answer() or b"")
    assert CANARY not in repr(erlmcp.reason_of(fault))


# -- responses, sessions, clients ---------------------------------------------------------------


def test_a_response_is_made_of_a_result_or_an_error() -> None:
    made = erlmcp.json_rpc_response
    assert made(1, {"a": 1}) == Success(1, {"a": 1})
    assert made(id=1, result=None) == Success(1, None)
    assert made(2, error=erlmcp.mcp_error(-32002, "Tool not found")) == Failure(
        2, ErrorObject(-32002, "Tool not found")
    )
    assert made(2, error={"code": 5, "message": "m"}) == Failure(2, ErrorObject(5, "m"))
    for both in ({}, {"result": 1, "error": {"code": 5, "message": "m"}}):
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.reply\.one-outcome"):
            made(1, **both)
    assert isinstance(made(1, {}), made)
    assert not isinstance(Request("m", id=1), made)


def weather() -> Server:
    app = Server("weather", policy=Policy.erlmcp())

    @app.tool
    def forecast(city: str) -> str:
        return f"Rain in {city}"

    return app


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "claude-client", "version": "1.0.0"},
}


async def test_a_request_before_initialize_is_refused_and_served_after_it() -> None:
    async with erlmcp.server_state(weather()) as state:
        early = await erlmcp.handle_request(1, "tools/list", {}, state)
        assert isinstance(early, Failure)
        assert early.error.code == erlmcp.MCP_ERROR_NOT_INITIALIZED
        opened = await erlmcp.handle_initialize("2", INITIALIZE, state)
        assert isinstance(opened, Success)
        assert opened.result["protocolVersion"] == "2025-11-25"
        call = {"name": "forecast", "arguments": {"city": "Oslo"}}
        called = await erlmcp.handle_request(3, "tools/call", call, state)
        assert isinstance(called, Success)
        assert called.result["content"][0]["text"] == "Rain in Oslo"


async def test_a_client_calls_notifies_and_sends_batches_by_the_names_of_the_original() -> None:
    heard: list[Any] = []
    app = weather()
    app.notification("example.com/noted")(heard.append)
    policy = Policy.erlmcp()
    async with Client(app, policy=policy, revision=policy.revision) as client:
        assert (await erlmcp.call_tool(client, "forecast", {"city": "Oslo"})).text == "Rain in Oslo"
        erlmcp.send_notification(client, "example.com/noted", {"a": 1})
        good, bad = await erlmcp.batch(
            client,
            [
                Request("tools/call", {"name": "forecast", "arguments": {"city": "Bern"}}, id=None),
                Notification("example.com/noted", {"a": 2}),
                Request("tools/call", {"name": "gone"}, id=None),
            ],
        )
        await until_async(lambda: len(heard) >= 2)
    assert isinstance(good, dict)
    assert good["content"][0]["text"] == "Rain in Bern"
    assert isinstance(bad, PeerError)
    assert (bad.code, bad.message) == (-32002, "Tool not found")
    assert heard == [{"a": 1}, {"a": 2}]


def test_an_error_is_sent_to_a_transport() -> None:
    sent: list[Any] = []
    transport = SimpleNamespace(send=lambda frame, route: sent.append(frame))
    erlmcp.send_error_via_registry(transport, 7, -32005, "early")  # type: ignore[arg-type]
    assert sent == [b'{"jsonrpc":"2.0","id":7,"error":{"code":-32005,"message":"early"}}']
