"""The verb `list`: what it shows of a server, for people and for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

# Speaks 2025-11-25 by hand, to offer what no library would.
HOSTILE = """
import json, sys
TOOLS = [
    {"name": "\\x1b[31mred", "inputSchema": {"type": "object", "properties": 7}},
    {"name": "old", "deprecated": True, "description": "\\x07As\\nbefore.\\n\\nMore.",
     "inputSchema": {"type": "object", "properties": {"a": {"deprecated": True}}}},
    {"name": "n" * 40, "inputSchema": {"type": "object"}, "description": "long"},
]
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "odd\\x1b", "version": "1", "title": "Odd"}},
    "tools/list": {"tools": TOOLS},
}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") in RESULTS:
        answer = {"result": RESULTS[asked["method"]]}
    else:
        answer = {"error": {"code": -32601, "message": "no"}}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
ODD = ["--", sys.executable, "-c", HOSTILE]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_everything_is_shown(run: Any, server: list[str], revision: str) -> None:
    shown = run("list", "--revision", revision, *server)
    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.split("\n")
    assert lines[:3] == [f"demo 1.0, MCP {revision}", "Use it well.", ""]
    # Results have had a schema since 2025-06-18.
    result = "" if revision == "2024-11-05" else " -> integer"
    at = lines.index(f"  add(a: integer, b: integer){result}")
    assert lines[at + 1] == "    Add two numbers."
    assert "    Deprecated: use add. Add two numbers, as before." in lines
    assert "Resources (2)" in lines
    at = lines.index("  demo://picture.png  image/png")
    assert lines[at + 1] == "    Return a picture."
    assert "Resource templates (1)" in lines
    at = lines.index("  demo://city/{name}")
    assert lines[at + 1] == "    Return what is known of a city."
    assert lines[-4:] == ["Prompts (1)", "  report(city, style?)", "    Ask for a report.", ""]


@pytest.mark.parametrize(
    ("kind", "there", "not_there"),
    [("tools", "add", "report"), ("resources", "city/{name}", "add"), ("prompts", "report", "add")],
)
def test_one_kind_alone(run: Any, server: list[str], kind: str, there: str, not_there: str) -> None:
    shown = run("list", kind, *server)
    assert shown.status == 0
    assert there in shown.out
    assert f"  {not_there} " not in shown.out


def test_long_shows_schemas(run: Any, server: list[str]) -> None:
    shown = run("list", "tools", "--long", *server)
    assert '  inputSchema: {\n    "type": "object"' in shown.out
    assert "    a  integer  required" in shown.out


FORECAST = """\
forecast
  Say how the weather will be, in a city of which this is a rather long description.

  Arguments
    city       string           required   the city to look at
    days       integer          = 1
    detail     full | short     = "short"
    tags       string[] | null  optional
    place      object | null    optional   Where something is.
    place.lat  number           required
    place.lon  number           = 0.0
    is_dry     boolean          = false

  Result: object
"""


def test_one_tool_alone_has_a_line_for_each_argument(run: Any, server: list[str]) -> None:
    assert run("list", "tools", "forecast", *server).out == FORECAST
    long = run("list", "tools", "forecast", "--long", *server).out
    assert long.startswith(FORECAST)
    assert "\n  inputSchema: {\n" in long


def test_one_resource_or_prompt_alone(run: Any, server: list[str]) -> None:
    shown = run("list", "resources", "demo://picture.png", *server)
    assert shown.out == (
        "demo://picture.png\n  Return a picture.\n  name:  picture\n  type:  image/png\n"
    )
    shown = run("list", "prompts", "report", *server)
    assert shown.out == (
        "report\n  Ask for a report.\n\n  Arguments\n    city   required\n    style  optional\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tool"], "list takes tools, resources, templates, prompts"),
        (["tools", "ad"], "did you mean 'add'?"),
        (["tools", "zzz"], "it has: add, forecast, plus, login, draw, point, shout, fail, look"),
        (["prompts", "\udcff"], "it has: report"),
    ],
)
def test_unknown_kind_or_name_is_misuse(
    run: Any, server: list[str], words: list[str], said: str
) -> None:
    shown = run("list", *words, *server)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err


def test_json_is_a_listing(run: Any, server: list[str]) -> None:
    shown = run("list", "-o", "json", *server)
    assert (shown.status, shown.err) == (0, "")
    document = json.loads(shown.out)
    assert document["format"] == "trunkline.listing/1"
    assert [each["name"] for each in document["prompts"]] == ["report"]
    assert shown.out == run("list", "--json", *server).out


def test_hostile_names_do_not_act_on_a_terminal(run: Any) -> None:
    shown = run("list", *ODD)
    assert shown.status == 0
    assert not set(shown.out) & {"\x1b", "\x07"}
    assert shown.out.startswith("Odd (odd\\x1b 1), MCP 2025-11-25\n")
    long = run("list", "--long", *ODD)
    assert not set(long.out) & {"\x1b", "\x07"}


def test_deprecated_entries_are_marked(run: Any) -> None:
    lines = run("list", *ODD).out.split("\n")
    assert any("Deprecated. \\x07As before." in line for line in lines)
    assert any("a?: any (deprecated)" in line for line in lines)


def test_a_server_without_anything(run: Any, tmp_path: Path) -> None:
    script = tmp_path / "empty.py"
    script.write_text("from trunkline import Server\nServer('empty', version='1').run()\n")
    shown = run("list", "--", sys.executable, str(script))
    assert shown == (0, "empty 1, MCP 2026-07-28\nThe server offers nothing.\n", "")
    assert run("list", "tools", "--", sys.executable, str(script)).out == "no tools\n"
