"""docs/limits.md lists every limit with its default."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tools.source_files import ROOT
from trunkline import HttpLimits, ServerLimits, SocketLimits
from trunkline.engine.budget import connection_bytes, server_bytes
from trunkline.jsonrpc import Limits
from trunkline.server import ClientShares

PAGE = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
MIB = 1024 * 1024


def shown(value: Any) -> str:
    """Return a default as the page writes it."""
    if isinstance(value, int) and value >= 1024 * MIB:
        return f"{value // (1024 * MIB)} GiB"
    if isinstance(value, int) and value % 1024 == 0 and value > 1024:
        return f"{value // MIB} MiB" if value >= MIB else f"{value // 1024} KiB"
    return f"{value:,.12g}".replace(",", " ") if abs(value) >= 10_000 else f"{value:g}"


def rows_of(limits: str) -> dict[str, str]:
    """Return the text of the default of each limit of a class: those from its name on."""
    if limits == "ClientShares":
        begin = PAGE.index("| `ClientShares` |")
    else:
        begin = PAGE.index(f"| [`{limits}`]")
    end = min(PAGE.find(each, begin + 1) for each in ("\n| [`", "\n\n") if each in PAGE[begin:])
    found = {}
    for line in PAGE[begin:end].splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        names = re.findall(r"`(\w+)`", cells[0])
        values = cells[1].split(", ")
        found |= dict(zip(names[-len(values) :], values, strict=False))
    return found


def defaults() -> list[tuple[str, str, Any]]:
    found = [
        (type(limits).__name__, name, getattr(limits, name))
        for limits in (ServerLimits(), HttpLimits(), SocketLimits(), ClientShares())
        for name in limits.__struct_fields__
    ]
    sizes = Limits()
    derived = {
        "connection_bytes": connection_bytes(ServerLimits(), sizes.message_size("http")),
        "server_bytes": server_bytes(ServerLimits(), sizes),
    }
    return [
        (kind, name, derived.get(name, value))
        for kind, name, value in found
        if name != "client_shares"
    ]


@pytest.mark.parametrize(("kind", "name", "value"), defaults())
def test_page_has_the_limit_and_its_default(kind: str, name: str, value: Any) -> None:
    text = rows_of(kind)[name]
    assert re.match(rf"{re.escape(shown(value))}\b", text), f"{text} is not {shown(value)}"
