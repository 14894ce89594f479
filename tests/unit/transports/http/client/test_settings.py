from __future__ import annotations

from typing import Any

import pytest

from trunkline import Client, HttpOptions, Stdio

CANARY = "CANARY-77a"


def test_headers_are_copied_and_their_values_are_in_no_repr() -> None:
    given = {"Authorization": f"Bearer {CANARY}"}
    options = HttpOptions(headers=given)
    given["X-Later"] = "x"
    assert dict(options.headers) == {"Authorization": f"Bearer {CANARY}"}
    assert CANARY not in repr(options)
    assert "headers=<1>" in repr(options)
    assert all(CANARY not in str(row) for row in options.__rich_repr__())


@pytest.mark.parametrize(
    "value",
    [
        f"{CANARY}\r\nX-Evil: 1",
        f"{CANARY}\n",
        f"{CANARY}\x00",
        f"{CANARY}\x7f",
        f"\t{CANARY}",
        f" {CANARY}",
        f"{CANARY} ",
        f"{CANARY}é",
        7,
        None,
        b"bytes",
    ],
)
def test_a_value_that_cannot_be_sent_is_refused_and_not_shown(value: Any) -> None:
    with pytest.raises(ValueError, match="the value of X-Key cannot be sent") as caught:
        HttpOptions(headers={"X-Key": value})
    assert CANARY not in str(caught.value)
    with pytest.raises(ValueError, match="the value of X-Key cannot be sent"):
        Client("http://example.org/mcp", headers={"X-Key": value})


@pytest.mark.parametrize("name", ["", "X Key", "X:Key", "X-Key\r\n", "Ü", "a\x00", 7])
def test_a_name_that_is_not_one_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="which is not a name"):
        HttpOptions(headers={name: "x"})


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "Content-Length", "content-type", "ACCEPT", "Transfer-Encoding", "Connection"),
        *("Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Last-Event-ID"),
    ],
)
def test_headers_of_the_transport_itself_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="which the client itself sends"):
        HttpOptions(headers={name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("connect_timeout", each) for each in (0, -1, float("nan"), "1", True, None)),
        *(("read_timeout", each) for each in (0, "1", float("inf"))),
        *(("longest_retry", each) for each in (0, 1e10)),
        *(("connections", each) for each in (0, -1, 1.0, True, 10**6)),
        *(("retries", each) for each in (-1, "2")),
        ("reconnects", -1),
        ("headers", ["X-Key"]),
    ],
)
def test_a_value_out_of_range_is_refused_by_the_name_of_its_option(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"HttpOptions\.{name} is"):
        HttpOptions(**options)


def test_zero_retries_and_reconnects_are_allowed() -> None:
    options = HttpOptions(retries=0, reconnects=0, connections=1)
    assert (options.retries, options.reconnects, options.connections) == (0, 0, 1)


def test_headers_of_the_client_are_added_to_those_of_the_options() -> None:
    options = HttpOptions(headers={"X-One": "1", "X-Two": "2"}, retries=1)
    client = Client("http://example.org/mcp", http=options, headers={"x-two": "two"})
    assert CANARY not in repr(client)
    address: Any = client._connection._target.address
    assert dict(address.options.headers) == {"X-One": "1", "x-two": "two"}
    assert address.options.retries == 1


def test_a_name_is_given_once_whatever_its_case() -> None:
    with pytest.raises(ValueError, match="a name twice"):
        HttpOptions(headers={"Authorization": "one", "authorization": "two"})


def test_headers_are_for_http_alone() -> None:
    with pytest.raises(ValueError, match="are for addresses such as https://"):
        Client(Stdio("python"), headers={"X-Key": "x"})
