"""What a client can be pointed at, and what it says of the rest."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.unit.client.scripted import Place
from trunkline.client import Client
from trunkline.client.connect.targets import remember_era, remembered_era, target_of
from trunkline.jsonrpc import Policy


@pytest.mark.parametrize("given", ["python server.py", "ftp://example.org/mcp", ""])
def test_a_text_is_never_a_command(given: str) -> None:
    with pytest.raises(ValueError, match=r"pass (a|its) command as a list"):
        Client(given)


@pytest.mark.parametrize("given", [[], [1], ["a", None], ()])
def test_a_command_is_a_list_of_strings(given: Any) -> None:
    with pytest.raises(ValueError, match="a list of strings"):
        Client(given)


@pytest.mark.parametrize("given", [None, 5, object(), b"x"])
def test_invalid_target_raises_a_type_error(given: Any) -> None:
    with pytest.raises(TypeError, match="a client connects to"):
        Client(given)


def test_a_command_becomes_an_address() -> None:
    from trunkline.transports.stdio.client import Stdio

    for given in (["python", "server.py"], ("python", "server.py")):
        target = target_of(given)
        assert isinstance(target.address, Stdio)
        assert target.is_reusable


def test_a_transport_serves_once() -> None:
    import asyncio

    async def main() -> None:
        transport = Place().transport(Policy())
        target = target_of(transport)
        assert not target.is_reusable
        assert target.address.transport(Policy()) is transport

    asyncio.run(main())


def test_eras_are_remembered_as_long_as_the_address() -> None:
    place = Place()
    assert remembered_era(place) is None
    remember_era(place, "handshake")
    assert remembered_era(place) == "handshake"

    class Unhashable(Place):
        __hash__ = None  # type: ignore[assignment]

    odd = Unhashable()
    remember_era(odd, "handshake")
    assert remembered_era(odd) is None


@pytest.mark.parametrize(
    "options",
    [
        {"revision": "2025-01-01"},
        {"validate": "maybe"},
        {"logging_level": "loud"},
        {"timeout": 0},
        {"max_timeout": -1},
        {"connect_timeout": float("nan")},
        {"probe_timeout": 0},
        {"roots": "file:///a"},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Client(Place(), **options)


def test_the_package_imports_nothing_until_a_name_is_used() -> None:
    code = (
        "import sys, trunkline.client as c; assert 'asyncio' not in sys.modules; "
        "assert {'Client', 'PendingCall', 'ToolResult'} <= set(dir(c)); c.Client; "
        "assert 'trunkline.judge' not in sys.modules; assert 'trunkline.server' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    with pytest.raises(AttributeError):
        from trunkline import client

        _ = client.Nothing
