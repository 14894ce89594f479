"""The headers of a POST are compared with its body."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from trunkline.mcp.param_headers import param_headers
from trunkline.transports.http.endpoint.request_headers import (
    header_mismatch,
    name_member,
    param_mismatch,
)

VERSION = "2026-07-28"


class Headers:
    """The headers of a request, as the server hands them over."""

    def __init__(self, *headers: tuple[str, str | bytes], version: bytes | None = None) -> None:
        self.protocol_version = version
        self._headers = [
            (name.encode(), value if isinstance(value, bytes) else value.encode())
            for name, value in headers
        ]

    def all(self, name: bytes) -> list[bytes]:
        return [value for each, value in self._headers if each == name]


def base64(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def call(*headers: tuple[str, str | bytes], version: str | None = VERSION) -> Headers:
    raw = None if version is None else version.encode()
    return Headers(("mcp-method", "tools/call"), *headers, version=raw)


def checked(request: Headers, name: str | None = "a", version: str | None = VERSION) -> str | None:
    return header_mismatch(request, "tools/call", version, name)


# -- version and method ----------------------------------------------------------------------


def test_headers_that_repeat_the_body_are_accepted() -> None:
    assert checked(call(("mcp-name", "a"))) is None
    listing = Headers(("mcp-method", "tools/list"), version=VERSION.encode())
    assert header_mismatch(listing, "tools/list", VERSION, None) is None


def test_a_version_that_is_missing_or_differs_is_refused() -> None:
    named = ("mcp-name", "a")
    assert checked(call(named, version=None)) == "MCP-Protocol-Version is missing"
    assert checked(call(named, version=None), version=None) == "MCP-Protocol-Version is missing"
    differs = "MCP-Protocol-Version differs from the version in params._meta"
    assert checked(call(named, version="2025-11-25")) == differs
    assert checked(call(named, version=base64(VERSION))) == differs
    assert checked(call(named, version="ä"), version="ä") == differs


def test_a_version_that_the_body_lacks_is_left_to_the_check_of_the_body() -> None:
    assert checked(call(("mcp-name", "a")), version=None) is None


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ([], "is missing"),
        (["TOOLS/CALL"], "differs from the method of the message"),
        (["tools/list"], "differs from the method of the message"),
        ([""], "differs from the method of the message"),
        ([base64("tools/call")], "differs from the method of the message"),
        (["tools/call", "tools/call"], "is repeated"),
        (["tools/list", "tools/call"], "is repeated"),
    ],
)
def test_a_method_that_is_missing_or_differs_is_refused(values: list[str], fault: str) -> None:
    methods = [("mcp-method", value) for value in values]
    request = Headers(*methods, ("mcp-name", "a"), version=VERSION.encode())
    assert checked(request) == f"Mcp-Method {fault}"


def test_bytes_beyond_ascii_never_equal_a_method() -> None:
    for value in ("ä".encode(), b"\xe4", b"\xff"):
        request = Headers(("mcp-method", value), version=VERSION.encode())
        for method in ("ä", "\xe4", "\ufffd"):
            assert header_mismatch(request, method, VERSION, None) is not None


def test_a_notification_needs_the_version_alone() -> None:
    def mismatch_of(
        *headers: tuple[str, str], version: bytes | None = VERSION.encode()
    ) -> str | None:
        request = Headers(*headers, version=version)
        return header_mismatch(
            request, "notifications/cancelled", None, None, is_request=False
        )  # fmt: skip

    assert mismatch_of() is None
    assert mismatch_of(("mcp-method", "notifications/cancelled")) is None
    assert mismatch_of(("mcp-method", "tools/call")) is not None
    assert mismatch_of(version=None) == "MCP-Protocol-Version is missing"


# -- name ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/call", "name"),
        ("prompts/get", "name"),
        ("resources/read", "uri"),
        ("tasks/get", "taskId"),
        ("tasks/update", "taskId"),
        ("tasks/cancel", "taskId"),
    ],
)
def test_a_method_with_a_name_needs_the_header(method: str, member: str) -> None:
    assert name_member(method) == member
    version = VERSION.encode()
    request = Headers(("mcp-method", method), version=version)
    assert header_mismatch(request, method, VERSION, "a") == "Mcp-Name is missing"
    request = Headers(("mcp-method", method), ("mcp-name", "b"), version=version)
    fault = f"Mcp-Name differs from params.{member}"
    assert header_mismatch(request, method, VERSION, "a") == fault
    request = Headers(("mcp-method", method), ("mcp-name", "a"), version=version)
    assert header_mismatch(request, method, VERSION, "a") is None


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "tasks/result", "own/method"])
def test_another_method_has_no_name(method: str) -> None:
    assert name_member(method) is None
    request = Headers(("mcp-method", method), ("mcp-name", "b"), version=VERSION.encode())
    assert header_mismatch(request, method, VERSION, None) is None


@pytest.mark.parametrize("name", ["a", "a b", "ä", " a ", "", "a\nb", "=?base64?YQ==?="])
def test_a_name_may_be_in_base64(name: str) -> None:
    assert checked(call(("mcp-name", base64(name))), name) is None


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("A", "differs from params.name"),
        ("", "differs from params.name"),
        ("=?BASE64?YQ==?=", "differs from params.name"),
        ("=?base64?YQ?=", "has invalid characters or invalid Base64"),
        ("=?base64?Y*==?=", "has invalid characters or invalid Base64"),
        (b"\xe4", "has invalid characters or invalid Base64"),
        ("a\tb", "has invalid characters or invalid Base64"),
    ],
)
def test_a_name_that_differs_is_refused(value: str | bytes, fault: str) -> None:
    assert checked(call(("mcp-name", value))) == f"Mcp-Name {fault}"


def test_a_repeated_name_is_refused_even_if_all_are_equal() -> None:
    assert checked(call(("mcp-name", "a"), ("mcp-name", "a"))) == "Mcp-Name is repeated"


def test_a_name_that_the_body_lacks_is_left_to_the_check_of_the_body() -> None:
    assert checked(call(), None) is None
    assert checked(call(("mcp-name", "a")), None) is None


def test_no_fault_shows_a_value() -> None:
    secret = "sk-live-1234567890"
    faults = [
        checked(call(("mcp-name", secret)), "a"),
        checked(call(("mcp-name", "a")), secret),
        checked(call(("mcp-name", "a"), version=secret)),
        param_mismatch(Headers(("mcp-param-region", secret)), ANNOTATED, {"region": "x"}),
        param_mismatch(Headers(), ANNOTATED, {"region": secret}),
    ]
    assert all(fault is not None and secret not in fault for fault in faults)


# -- arguments -------------------------------------------------------------------------------

ANNOTATED = param_headers(
    {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "inner": {"properties": {"level": {"type": "integer", "x-mcp-header": "Level"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        }
    }
)


def param(arguments: Any, *headers: tuple[str, str | bytes]) -> str | None:
    return param_mismatch(Headers(*headers), ANNOTATED, arguments)


def test_arguments_that_headers_repeat_are_accepted() -> None:
    arguments = {"region": "north", "inner": {"level": 42}, "dry": False, "other": "x"}
    region, dry = ("mcp-param-region", "north"), ("mcp-param-dry-run", "false")
    assert param(arguments, region, dry, ("mcp-param-level", "42")) is None
    assert param(arguments, region, dry, ("mcp-param-level", "42.0")) is None
    assert param(arguments, dry, region, ("mcp-param-level", base64("42"))) is None


@pytest.mark.parametrize(
    ("arguments", "header"),
    [
        ({"region": "north"}, "Mcp-Param-Region"),
        ({"region": ""}, "Mcp-Param-Region"),
        ({"inner": {"level": 0}}, "Mcp-Param-Level"),
        ({"dry": False}, "Mcp-Param-Dry-Run"),
    ],
)
def test_an_argument_without_its_header_is_refused(arguments: Any, header: str) -> None:
    assert param(arguments) == f"{header} is missing"


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"region": "north"}, "North"),
        ({"region": "north"}, "south"),
        ({"region": "42"}, "42.0"),
        ({"region": "true"}, "True"),
    ],
)
def test_an_argument_that_differs_is_refused(arguments: Any, value: str) -> None:
    fault = "Mcp-Param-Region differs from the argument"
    assert param(arguments, ("mcp-param-region", value)) == fault


def test_an_argument_is_compared_after_decoding() -> None:
    assert param({"region": "Hello"}, ("mcp-param-region", "=?base64?SGVsbG8=?=")) is None
    invalid = "Mcp-Param-Region has invalid characters or invalid Base64"
    for value in ("=?base64?SGVsbG8?=", "=?base64?SGVs!G8=?=", b"\xff"):
        assert param({"region": "Hello"}, ("mcp-param-region", value)) == invalid
    for value in ("SGVsbG8=?=", "=?base64?SGVsbG8="):
        assert param({"region": value}, ("mcp-param-region", value)) is None


@pytest.mark.parametrize("arguments", [{}, {"region": None}, None, [], {"inner": {"region": "x"}}])
def test_a_header_without_an_argument_is_refused(arguments: Any) -> None:
    assert param(arguments) is None
    fault = "Mcp-Param-Region repeats an argument that the body does not have"
    assert param(arguments, ("mcp-param-region", "x")) == fault
    assert param(arguments, ("mcp-param-region", "")) == fault


def test_a_repeated_header_is_refused() -> None:
    twice = [("mcp-param-region", "north"), ("mcp-param-region", "north")]
    assert param({"region": "north"}, *twice) == "Mcp-Param-Region is repeated"
    assert param({}, *twice) == "Mcp-Param-Region is repeated"


@pytest.mark.parametrize("number", [2**53, -(2**53), 1e300, 1.5, 10**400])
def test_a_number_that_no_header_can_repeat_is_refused(number: float) -> None:
    fault = "Mcp-Param-Level can repeat integers within ±(2^53 - 1) alone"
    assert param({"inner": {"level": number}}) == fault


def test_an_argument_of_another_type_is_left_to_the_check_of_the_arguments() -> None:
    assert param({"region": ["north"]}) is None
    assert param({"region": {"a": 1}}) is None
    assert param({"region": ["north"]}, ("mcp-param-region", "north")) is not None


def test_headers_of_no_argument_are_ignored() -> None:
    assert param({}, ("mcp-param-other", "x")) is None
    assert param_mismatch(Headers(("mcp-param-region", "x")), (), {}) is None
