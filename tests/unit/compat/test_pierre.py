"""`compat.pierre`: one envelope for requests and responses, and nothing secret in sight."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import to_builtins

from trunkline.compat import pierre
from trunkline.compat.pierre import (
    UNSET,
    JsonRpcError,
    JsonRpcRequest,
    JsonRpcResponse,
    error_codes,
)
from trunkline.errors import InvalidMessage, LocalProtocolError
from trunkline.mcp.types import Tool

JWT = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJjYW5hcnkifQ.V6T6QMBvcanary0123456789"
CANARY = "canary-7f3a91c04e5d-and-more"
LEGACY = "Client using legacy MCP version, some features unavailable"
UNKNOWN = "Unknown client version, attempting compatibility"
TENANT = "550e8400-e29b-41d4-a716-446655440000"

NAMES = """
    JSONRPC_VERSION JsonRpcRequest JsonRpcResponse JsonRpcError error_codes McpRequest McpResponse
    McpError default_request_id HEADER_TENANT_ID HEADER_TENANT_NAME HEADER_REQUEST_ID
    HEADER_ENABLE_EXPERIMENTAL ERROR_INVALID_PARAMS ERROR_METHOD_NOT_FOUND ERROR_VERSION_MISMATCH
    ERROR_SERIALIZATION ERROR_AUTHENTICATION MSG_VERSION_MISMATCH MSG_SERIALIZATION UNSET
    SUPPORTED_VERSIONS SERVER_VERSION server_name_multitenant ProtocolHandler ProtocolError
    InitializeRequest InitializeResponse ClientInfo ServerCapabilities ExperimentalCapabilities
    handle_initialize_internal handle_ping handle_tools_list get_tools handle_unknown_method
    negotiate_version capabilities_for_version methods
"""


# --- names


def test_every_name_is_there_and_public() -> None:
    assert sorted(pierre.__all__) == sorted(NAMES.split())
    assert all(hasattr(pierre, name) for name in pierre.__all__)


def test_the_types_of_mcp_are_the_shared_ones() -> None:
    assert pierre.McpRequest is JsonRpcRequest
    assert pierre.McpResponse is JsonRpcResponse
    assert pierre.McpError is JsonRpcError


def test_the_error_codes_have_their_numbers() -> None:
    assert error_codes.PARSE_ERROR == -32700
    assert error_codes.INVALID_REQUEST == -32600
    assert error_codes.METHOD_NOT_FOUND == -32601
    assert error_codes.INVALID_PARAMS == -32602
    assert error_codes.INTERNAL_ERROR == -32603
    assert error_codes.SERVER_ERROR_START == -32000
    assert error_codes.SERVER_ERROR_END == -32099


def test_the_block_for_applications_is_a_pair_of_lowest_and_highest() -> None:
    low, high = error_codes.SERVER_ERRORS
    assert low < high
    assert (low, high) == (error_codes.SERVER_ERROR_END, error_codes.SERVER_ERROR_START)


def test_the_other_constants_have_their_values() -> None:
    assert pierre.JSONRPC_VERSION == "2.0"
    assert pierre.SUPPORTED_VERSIONS == ("2025-06-18", "2024-11-05")
    assert pierre.ProtocolHandler.SUPPORTED_VERSIONS == pierre.SUPPORTED_VERSIONS
    assert pierre.default_request_id() == 0
    assert pierre.HEADER_TENANT_ID == "x-tenant-id"
    assert pierre.HEADER_TENANT_NAME == "x-tenant-name"
    assert pierre.HEADER_REQUEST_ID == "x-request-id"
    assert pierre.HEADER_ENABLE_EXPERIMENTAL == "x-enable-experimental"
    assert pierre.ERROR_METHOD_NOT_FOUND == -32601
    assert pierre.ERROR_INVALID_PARAMS == pierre.ERROR_VERSION_MISMATCH == -32602
    assert pierre.ERROR_AUTHENTICATION == -32002
    assert pierre.ERROR_SERIALIZATION == -32004
    assert pierre.MSG_VERSION_MISMATCH == "Unsupported MCP protocol version"
    assert pierre.MSG_SERIALIZATION == "Data serialization failed"


# --- requests


def test_a_new_request_has_the_id_1() -> None:
    request = JsonRpcRequest.new("initialize", {"a": 1})
    assert (request.jsonrpc, request.method, request.params, request.id) == (
        "2.0",
        "initialize",
        {"a": 1},
        1,
    )
    assert (request.auth_token, request.headers, request.metadata) == (None, None, {})
    assert JsonRpcRequest.new("initialize").id == 1


def test_a_request_takes_an_id_of_the_callers() -> None:
    request = JsonRpcRequest.with_id("tools/call", {}, "req-123")
    assert request.id == "req-123"
    assert request.to_json() == (
        b'{"jsonrpc":"2.0","method":"tools/call","params":{},"id":"req-123"}'
    )


def test_a_null_id_is_an_id() -> None:
    request = JsonRpcRequest.with_id("ping", None, None)
    assert request.to_json() == b'{"jsonrpc":"2.0","method":"ping","id":null}'
    assert JsonRpcRequest.from_json(request.to_json()) == request


def test_a_notification_has_no_id() -> None:
    params = {"progressToken": "tok-123", "progress": 50, "total": 100}
    notification = JsonRpcRequest.notification("notifications/progress", params)
    assert notification.id is UNSET
    assert notification.to_json() == (
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":"tok-123","progress":50,"total":100}}'
    )
    assert JsonRpcRequest.from_json(notification.to_json()) == notification


def test_absent_params_are_never_written_as_null() -> None:
    assert JsonRpcRequest.new("ping").to_json() == b'{"jsonrpc":"2.0","method":"ping","id":1}'
    assert JsonRpcRequest.notification("ping").to_json() == b'{"jsonrpc":"2.0","method":"ping"}'


def test_the_token_goes_as_auth_and_the_context_beside_it() -> None:
    request = JsonRpcRequest(
        "tools/call",
        {"name": "get_activities"},
        1,
        auth_token="eyJhbGciOiJSUzI1NiIs",
        headers={"x-tenant-id": TENANT, "x-tenant-name": "Acme Corp"},
        metadata={"platform": "macos"},
    )
    text = (
        '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"get_activities"},"id":1,'
        '"auth":"eyJhbGciOiJSUzI1NiIs",'
        f'"headers":{{"x-tenant-id":"{TENANT}","x-tenant-name":"Acme Corp"}},'
        '"metadata":{"platform":"macos"}}'
    )
    assert request.to_json() == text.encode()
    assert JsonRpcRequest.from_json(text) == request


def test_members_missing_on_input_have_their_defaults() -> None:
    request = JsonRpcRequest.from_json(b'{"jsonrpc":"2.0","method":"ping","id":1,"auth":null}')
    assert request == JsonRpcRequest.new("ping")


def test_metadata_are_set_on_a_copy() -> None:
    request = JsonRpcRequest.new("initialize")
    changed = request.with_metadata("tenant_id", TENANT).with_metadata("request_source", "web_ui")
    assert request.metadata == {}
    assert changed.metadata == {"tenant_id": TENANT, "request_source": "web_ui"}
    assert changed.get_metadata("request_source") == "web_ui"
    assert changed.get_metadata("locale") is None
    assert changed.with_metadata("tenant_id", "b").get_metadata("tenant_id") == "b"


def test_a_request_does_not_change() -> None:
    with pytest.raises(AttributeError):
        JsonRpcRequest.new("ping").method = "pong"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"{", "jsonrpc.text.json"),
        (b'{"method":"a","id":1}', "jsonrpc.version.required"),
        (b'{"jsonrpc":"1.0","method":"a","id":1}', "jsonrpc.version.value"),
        (b'{"jsonrpc":"2.0","method":"","id":1}', "jsonrpc.method.empty"),
        (b'{"jsonrpc":"2.0","method":"a","id":1,"auth":7}', "jsonrpc.envelope.auth"),
        (b'{"jsonrpc":"2.0","method":"a","id":1,"headers":[]}', "jsonrpc.envelope.headers"),
        (b'{"jsonrpc":"2.0","method":"a","id":1,"metadata":{"a":1}}', "jsonrpc.envelope.metadata"),
        (b'[{"jsonrpc":"2.0","method":"a","id":1}]', "jsonrpc.batch.not-allowed"),
    ],
)
def test_malformed_request_is_refused_with_the_rule_it_breaks(text: bytes, rule: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        JsonRpcRequest.from_json(text)
    assert caught.value.rule == rule
    assert caught.value.answer() is not None


def test_request_from_json_refuses_a_response_without_an_answer() -> None:
    with pytest.raises(InvalidMessage, match="a request or a notification") as caught:
        JsonRpcRequest.from_json(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert caught.value.answer() is None


# --- responses


def test_a_success_has_a_result() -> None:
    response = JsonRpcResponse.success(1, {"tools": []})
    assert (response.jsonrpc, response.id, response.result) == ("2.0", 1, {"tools": []})
    assert response.error is None
    assert response.is_success()
    assert not response.is_error()
    assert response.to_json() == b'{"jsonrpc":"2.0","result":{"tools":[]},"id":1}'


def test_an_empty_result_is_a_result() -> None:
    assert JsonRpcResponse.success(1, {}).to_json() == b'{"jsonrpc":"2.0","result":{},"id":1}'
    response = JsonRpcResponse.success(1, None)
    assert response.is_success()
    assert response.to_json() == b'{"jsonrpc":"2.0","result":null,"id":1}'


def test_an_error_response_has_an_error() -> None:
    response = JsonRpcResponse.error(1, error_codes.METHOD_NOT_FOUND, "Method not found")
    assert response.error == JsonRpcError.new(-32601, "Method not found")
    assert response.result is None
    assert response.is_error()
    assert not response.is_success()
    assert response.to_json() == (
        b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}'
    )


def test_an_error_response_has_the_text_that_its_sender_chooses() -> None:
    message = "Method 'unknown_method' not found"
    response = JsonRpcResponse.error(1, error_codes.METHOD_NOT_FOUND, message)
    assert json.loads(response.to_json())["error"] == {"code": -32601, "message": message}


def test_an_error_response_can_have_data() -> None:
    data = {"required_params": ["provider"], "received_params": ["limit", "offset"]}
    message = "Missing required parameter 'provider'"
    response = JsonRpcResponse.error_with_data(1, error_codes.INVALID_PARAMS, message, data)
    assert response.error is not None
    assert response.error.data == data
    assert json.loads(response.to_json())["error"] == {
        "code": -32602,
        "message": message,
        "data": data,
    }


def test_the_id_is_always_written() -> None:
    assert JsonRpcResponse.error(None, -32700, "Parse error").to_json() == (
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}'
    )
    assert JsonRpcResponse.success(None, 1).to_json() == b'{"jsonrpc":"2.0","result":1,"id":null}'


def test_result_and_error_together_are_refused_with_a_sentence() -> None:
    with pytest.raises(LocalProtocolError, match="a result or an error, not both"):
        JsonRpcResponse(id=1, result={}, error=JsonRpcError.new(1, "No"))
    with pytest.raises(LocalProtocolError, match="a result or an error, not both"):
        JsonRpcResponse(id=1)
    with pytest.raises(InvalidMessage, match="either a result or an error"):
        JsonRpcResponse.from_json(
            b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"No"}}'
        )


@pytest.mark.parametrize(
    "response",
    [
        JsonRpcResponse.success(1, {"a": [1, None]}),
        JsonRpcResponse.success("a", None),
        JsonRpcResponse.error(7, -32000, "No"),
        JsonRpcResponse.error_with_data(None, -32000, "No", None),
    ],
)
def test_a_response_is_read_as_it_was_written(response: JsonRpcResponse) -> None:
    assert JsonRpcResponse.from_json(response.to_json()) == response
    assert pickle.loads(pickle.dumps(response)) == copy.copy(response) == response


def test_responses_compare_by_content() -> None:
    assert JsonRpcResponse.success(1, 2) == JsonRpcResponse.success(1, 2)
    assert hash(JsonRpcResponse.success(1, 2)) == hash(JsonRpcResponse.success(1, 2))
    assert JsonRpcResponse.success(1, 2) != JsonRpcResponse.success("1", 2)
    assert JsonRpcResponse.success(1, 2) != 2


def test_an_error_without_an_id_is_read_as_one_with_none() -> None:
    read = JsonRpcResponse.from_json(b'{"jsonrpc":"2.0","error":{"code":1,"message":"No"}}')
    assert read == JsonRpcResponse.error(None, 1, "No")


def test_response_from_json_refuses_a_request() -> None:
    with pytest.raises(InvalidMessage, match="expected a response"):
        JsonRpcResponse.from_json(b'{"jsonrpc":"2.0","method":"ping","id":1}')


def test_an_error_knows_null_data_from_none() -> None:
    assert JsonRpcError.new(1, "No").data is UNSET
    assert JsonRpcError.with_data(1, "No", None).data is None
    assert b"data" not in JsonRpcResponse(id=1, error=JsonRpcError.new(1, "No")).to_json()
    assert b'"data":null' in JsonRpcResponse.error_with_data(1, 1, "No", None).to_json()


# --- secrets


def test_a_long_token_is_shown_by_its_ends() -> None:
    request = JsonRpcRequest("a", None, 1, auth_token=JWT)
    assert f"auth_token='{JWT[:10]}...{JWT[-8:]}'" in repr(request)


@pytest.mark.parametrize("token", ["short", "exactly-twenty-chars", ""])
def test_a_short_token_is_not_shown_at_all(token: str) -> None:
    shown = repr(JsonRpcRequest("a", None, 1, auth_token=token))
    assert "auth_token='[REDACTED]'" in shown
    assert not token or token not in shown


def test_a_token_is_cut_between_characters() -> None:
    shown = repr(JsonRpcRequest("a", None, 1, auth_token="\N{SNOWMAN}" * 21))
    assert "\N{SNOWMAN}" * 10 + "..." + "\N{SNOWMAN}" * 8 + "'" in shown


def test_an_absent_token_stays_absent() -> None:
    assert "auth_token=None" in repr(JsonRpcRequest.new("a"))


SECRET: dict[str, Any] = {"token": CANARY, "nested": [{"apiKey": CANARY}], "text": JWT}


@pytest.mark.parametrize(
    "value",
    [
        JsonRpcRequest("a", None, 1, auth_token=CANARY),
        JsonRpcRequest("a", None, 1, auth_token=JWT),
        JsonRpcRequest("a", SECRET, 1),
        JsonRpcRequest("a", None, JWT),
        JsonRpcRequest("a", headers={"Authorization": f"Bearer {CANARY}", "cookie": CANARY}),
        JsonRpcRequest("a", headers={"x-note": f"bearer {CANARY}"}),
        JsonRpcRequest("a", metadata={"access_token": CANARY, "note": JWT}),
        JsonRpcRequest.new("a").with_metadata("session_id", CANARY),
        JsonRpcResponse.success(1, SECRET),
        JsonRpcResponse.success(JWT, 1),
        JsonRpcResponse.error(1, 1, f"refused: bearer {CANARY}"),
        JsonRpcResponse.error_with_data(1, 1, "No", SECRET),
        JsonRpcError.with_data(1, "No", SECRET),
    ],
)
def test_nothing_shows_a_token(value: object, showings: Callable[[object], str]) -> None:
    shown = showings(value)
    assert CANARY not in shown
    assert JWT not in shown


def test_rich_shows_no_token_either() -> None:
    request = JsonRpcRequest("a", SECRET, 1, auth_token=CANARY, headers={"cookie": CANARY})
    shown = repr(request.__rich_repr__())
    assert CANARY not in shown
    assert JWT not in shown


@pytest.mark.parametrize(
    "text",
    [
        f'{{"jsonrpc":"2.0","method":"a","id":1,"auth":["{CANARY}"]}}',
        f'{{"jsonrpc":"2.0","method":"a","id":1,"auth":"{CANARY}","headers":7}}',
        f'{{"jsonrpc":"2.0","method":"a","id":1,"auth":"{CANARY}"',
        f'{{"jsonrpc":"2.0","method":["{CANARY}"],"id":1}}',
    ],
)
def test_no_fault_shows_or_sends_back_a_token(
    text: str, showings: Callable[[object], str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidMessage) as caught:
        JsonRpcRequest.from_json(text)
    assert CANARY not in showings(caught.value)
    assert CANARY.encode() not in (caught.value.answer() or b"")
    try:
        JsonRpcRequest.from_json(text)
    except InvalidMessage:
        logging.getLogger("compat").exception("refused")
    # The line of this file that is quoted in a traceback has the name, not the value.
    assert CANARY not in caplog.text


def test_a_request_that_cannot_be_written_shows_no_token() -> None:
    request = JsonRpcRequest("a", {"x": object()}, 1, auth_token=CANARY)
    with pytest.raises(LocalProtocolError, match="/params/x") as caught:
        request.to_json()
    assert CANARY not in repr(caught.value)


# -- the protocol handler -----------------------------------------------------------------------

ASKED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-desktop", "version": "0.7.0"},
}


@pytest.mark.parametrize("params", ["x", 5, True])
def test_scalar_params_are_not_written(params: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.params\.type at /params"):
        JsonRpcRequest.new("a", params).to_json()


@pytest.mark.parametrize("params", [None, {}, {"a": 1}, [1, "x"]])
def test_a_new_request_is_read_as_it_was_written(params: Any) -> None:
    request = JsonRpcRequest.new("a", params)
    assert JsonRpcRequest.from_json(request.to_json()) == request


@pytest.mark.parametrize("port", [None, 8081])
def test_initialize_echoes_a_supported_version_whatever_the_port(port: int | None) -> None:
    request = JsonRpcRequest.new("initialize", ASKED)
    result = pierre.ProtocolHandler.handle_initialize_internal(request, port).result
    assert result["protocolVersion"] == "2025-06-18"
    assert result["serverInfo"] == {
        "name": pierre.server_name_multitenant(),
        "version": pierre.SERVER_VERSION,
    }
    assert sorted(result["capabilities"]) == [
        *("experimental", "logging", "prompts", "resources", "tools")
    ]
    assert result["capabilities"]["experimental"] == {"a2a": {}, "streaming": {}}


def test_initialize_with_another_version_or_other_params_is_an_error() -> None:
    handle = pierre.handle_initialize_internal
    error = handle(JsonRpcRequest.new("initialize", {**ASKED, "protocolVersion": "1.0"})).error
    assert error is not None
    assert (error.code, error.message) == (
        pierre.ERROR_VERSION_MISMATCH,
        "Unsupported MCP protocol version. Client version: 1.0, "
        "Supported versions: 2025-06-18, 2024-11-05",
    )
    error = handle(JsonRpcRequest.notification("initialize", {})).error
    assert error is not None
    assert (error.code, error.message) == (-32602, "Invalid initialize request parameters")


@pytest.mark.parametrize(
    ("asked", "answer", "warning"),
    [
        ("2025-06-18", "2025-06-18", None),
        ("2024-11-05", "2024-11-05", None),
        ("2024-10-07", "2024-10-07", None),
        ("1.0", "1.0", LEGACY),
        ("1", "1.0", LEGACY),
        ("3000-01-01", "2024-11-05", UNKNOWN),
    ],
)
def test_a_version_is_negotiated_and_logged_as_pierre_does(
    asked: str, answer: str, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert pierre.negotiate_version(asked) == answer
    logged = [(record.levelname, record.getMessage()) for record in caplog.records]
    facts = f"client_version={asked!r}, server_version={answer}"
    assert logged == ([] if warning is None else [("WARNING", f"{warning}: {facts}")])


def test_the_negotiated_version_is_logged_in_the_words_of_pierre(
    caplog: pytest.LogCaptureFixture,
) -> None:
    info = {"name": "claude-desktop", "version": "0.7.0"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    with caplog.at_level(logging.INFO, logger="trunkline.compat"):
        pierre.handle_initialize_internal(JsonRpcRequest.new("initialize", params))
    assert [record.getMessage() for record in caplog.records] == [
        "MCP version negotiated: 2025-06-18 (client: 2025-06-18, "
        "server supports: 2025-06-18, 2024-11-05)"
    ]


@pytest.mark.parametrize(
    ("version", "declared"),
    [
        ("2024-11-05", {"tools", "resources", "prompts", "logging", "experimental"}),
        ("2024-10-07", {"tools", "resources"}),
        ("1.0", {"tools"}),
        ("nonsense", {"tools"}),
    ],
)
def test_a_version_has_its_capabilities(version: str, declared: set[str]) -> None:
    assert to_builtins(pierre.capabilities_for_version(version)).keys() == declared


def test_ping_tools_and_unknown_methods_are_answered() -> None:
    handler = pierre.ProtocolHandler
    request = JsonRpcRequest.with_id("ping", None, "p")
    assert handler.handle_ping(request) == JsonRpcResponse.success("p", {})
    tool = Tool({"type": "object"}, "get_activities", description="Lists them", title="Hidden")
    listed = handler.handle_tools_list(request, [tool]).result
    assert listed == {
        "tools": [
            {
                "name": "get_activities",
                "description": "Lists them",
                "inputSchema": {"type": "object"},
            }
        ]
    }
    error = handler.handle_unknown_method(JsonRpcRequest.with_id("a/b", None, 1)).error
    assert error == JsonRpcError.new(-32601, "Unknown method: a/b")
    assert handler.handle_ping(JsonRpcRequest.notification("ping")).id == 0


# --- codes of 32 bits


@pytest.mark.parametrize("code", [2**31, -(2**31) - 1, 2**40])
def test_a_code_of_more_than_32_bits_is_refused(code: int) -> None:
    for make in (
        lambda: JsonRpcError.new(code, "x"),
        lambda: JsonRpcError.with_data(code, "x", {}),
        lambda: JsonRpcResponse.error(1, code, "x"),
    ):
        with pytest.raises(LocalProtocolError, match=r"jsonrpc\.error\.code-range"):
            make()
    text = f'{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"x"}}}}'
    with pytest.raises(InvalidMessage, match="a code of 32 bits"):
        JsonRpcResponse.from_json(text)


@pytest.mark.parametrize("code", [1.5, "7", None])
def test_a_code_that_is_not_an_integer_is_refused(code: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"jsonrpc\.error\.code-range"):
        JsonRpcError.new(code, "x")


@pytest.mark.parametrize("code", [2**31 - 1, -(2**31), 0])
def test_a_code_of_32_bits_is_read_and_written(code: int) -> None:
    written = JsonRpcResponse.error(1, code, "x").to_json()
    error = JsonRpcResponse.from_json(written).error
    assert error is not None
    assert error.code == code
