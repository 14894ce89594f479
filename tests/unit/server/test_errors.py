"""Errors that a handler chooses by number, in each revision and under each policy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from trunkline import Client, PeerError, RequestError, Server
from trunkline.client.client import Client as AsyncClient
from trunkline.jsonrpc import Policy
from trunkline.server import errors
from trunkline.spec.revisions import HANDSHAKE, PER_REQUEST, REVISIONS

BEFORE = [revision for revision in REVISIONS if HANDSHAKE.holds(revision)]
SINCE = [revision for revision in REVISIONS if PER_REQUEST.holds(revision)]
QUOTA = {"limit": 100}

POLICIES = {
    "mcp": Policy.mcp(),
    "pierre": Policy.pierre(),
    "erlmcp": Policy.erlmcp(),
    "jsonrpc": Policy.jsonrpc(),
    "mcpp": Policy.mcpp(),
}
CALLS: dict[str, Callable[[AsyncClient], Awaitable[Any]]] = {
    "tool": lambda client: client.call_tool("provider"),
    "resource": lambda client: client.read_resource("quota://a"),
    "template": lambda client: client.read_resource("quota://city/oslo"),
    "prompt": lambda client: client.get_prompt("provider"),
    "completion": lambda client: client.complete("city", "os", prompt="trip"),
    "method": lambda client: client.request("quota/read"),
}


@pytest.fixture(autouse=True)
def nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_reported", set())


def app_of(policy: Policy, code: int, message: str | None, **data: Any) -> Server:
    app = Server("fitness", policy=policy)

    def provider() -> str:
        raise RequestError(code, message, **data)

    app.add_tool(provider)
    app.add_resource(provider, "quota://a")
    app.add_prompt(provider)
    app.method("quota/read")(provider)

    @app.resource("quota://city/{name}")
    def city(name: str) -> str:
        return provider()

    @app.prompt
    def trip(city: str) -> str:
        return city

    @app.completion(prompt="trip", argument="city")
    def cities(value: str) -> list[str]:
        return [provider()]

    return app


def refused(
    code: int,
    revision: str,
    *,
    policy: Policy = POLICIES["mcp"],
    call: str = "resource",
    message: str | None = "Provider quota exceeded",
    **data: Any,
) -> PeerError:
    async def main() -> PeerError:
        app = app_of(policy, code, message, **data)
        async with Client(app, policy=policy, revision=revision) as client:
            with pytest.raises(PeerError) as caught:
                await asyncio.wait_for(CALLS[call](client), 30)
            return caught.value

    return asyncio.run(main())


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", POLICIES)
def test_an_application_code_is_sent_unchanged_by_every_kind_of_handler(
    name: str, call: str
) -> None:
    error = refused(-32050, BEFORE[-1], policy=POLICIES[name], call=call, data=QUOTA)
    assert (error.code, error.message) == (-32050, "Provider quota exceeded")
    assert error.data == QUOTA


@pytest.mark.parametrize("revision", BEFORE)
@pytest.mark.parametrize("code", [-32099, -32000])
def test_the_block_of_applications_is_theirs_before_2026_07_28(revision: str, code: int) -> None:
    assert refused(code, revision).code == code


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("revision", SINCE)
def test_a_reserved_code_is_sent_as_data_of_an_internal_error(revision: str, call: str) -> None:
    error = refused(-32050, revision, call=call, data=QUOTA)
    assert (error.code, error.message) == (-32603, "Provider quota exceeded")
    assert error.data == {**QUOTA, "code": -32050}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("code", [-32602, 5, -1, 2**40])
def test_codes_of_json_rpc_and_codes_outside_the_block_are_sent_in_every_revision(
    revision: str, code: int
) -> None:
    error = refused(code, revision, message=None)
    assert (error.code, error.message, error.data) == (code, "Refused", None)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_code_that_json_rpc_keeps_for_later_is_never_sent(revision: str) -> None:
    error = refused(-32500, revision)
    assert (error.code, error.data) == (-32603, {"code": -32500})


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        ({}, {"code": -32050}),
        ({"data": None}, {"code": -32050, "details": None}),
        ({"data": [1]}, {"code": -32050, "details": [1]}),
        ({"data": {"code": "over"}}, {"code": -32050, "details": {"code": "over"}}),
    ],
    ids=["none", "null", "array", "a-code-of-its-own"],
)
def test_the_data_of_the_author_are_kept_beside_the_code(data: Any, sent: Any) -> None:
    assert refused(-32050, SINCE[-1], **data).data == sent


def test_erlmcp_sends_its_own_codes_and_others_as_data() -> None:
    erlmcp = POLICIES["erlmcp"]
    assert refused(-32110, erlmcp.revision, policy=erlmcp).code == -32110
    error = refused(-32041, erlmcp.revision, policy=erlmcp)
    assert (error.code, error.data) == (-32603, {"code": -32041})


def test_pierre_sends_a_code_of_more_than_32_bits_as_data() -> None:
    pierre = POLICIES["pierre"]
    error = refused(2**31, pierre.revision, policy=pierre)
    assert (error.code, error.data) == (-32603, {"code": 2**31})


def test_a_code_that_the_newest_revision_reserves_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="trunkline.server"):
        for revision in (BEFORE[0], BEFORE[-1], SINCE[-1]):
            refused(-32050, revision)
        refused(-32051, SINCE[-1])
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(" is reserved")[0] for line in lines] == [
        "RequestError of a handler: error code -32050",
        "RequestError of a handler: error code -32051",
    ]
    assert "a code above -32000 is sent in every revision" in lines[0]


@pytest.mark.parametrize("code", [-32602, 7, -32000])
def test_a_code_that_every_client_receives_or_the_profile_defines_is_not_logged(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    pierre = POLICIES["pierre"]
    with caplog.at_level(logging.WARNING, logger="trunkline.server"):
        assert refused(code, pierre.revision, policy=pierre).code == code
    assert caplog.records == []


def test_the_codes_that_were_logged_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    policy = POLICIES["erlmcp"]
    with caplog.at_level(logging.WARNING, logger="trunkline.server"):
        for code in range(40_000, 41_500):
            errors.refusal(RequestError(code), policy)
    assert len(caplog.records) == 1000
