"""The example servers of each kind that people write: files, a database, a REST API, a long job."""

from __future__ import annotations

import asyncio
import importlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from examples import files_server, long_job_server, rest_api_server
from trunkline import Client, Stdio, ToolError
from trunkline.errors import PeerError
from trunkline.mcp.types import ElicitRequestParams

ROOT = Path(__file__).resolve().parents[3]
ERAS = ("2025-11-25", "2026-07-28")
CANARY = "token-4f1d-of-a-test"

# ---- files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    secret = tmp_path / "secret.txt"
    secret.write_text("not for clients")
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("Milk and\nbread\n")
    (folder / "deep" / "b.md").write_text("more milk\n")
    (folder / "picture.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "link.txt").symlink_to(secret)
    return folder


@pytest.mark.parametrize("revision", ERAS)
def test_files_are_listed_searched_and_read(folder: Path, revision: str) -> None:
    async def scenario() -> None:
        async with Client(files_server.make(folder), revision=revision) as client:
            listed = await client.call_tool("list_files", {"pattern": "*.md"})
            assert [each["path"] for each in listed.value] == ["a.md", "deep/b.md"]
            found = await client.call_tool("search", {"text": "MILK"})
            assert [(each["path"], each["line"]) for each in found.value] == [
                ("a.md", 1),
                ("deep/b.md", 1),
            ]
            assert (
                await client.call_tool("read_file", {"path": "a.md"})
            ).text == "Milk and\nbread\n"
            assert (
                "not a text" in (await client.call_tool("read_file", {"path": "picture.bin"})).text
            )
            completed = await client.complete(
                resource="file:///{+path}", argument="path", value="deep"
            )
            assert completed.values == ["deep/b.md"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "path", ["../secret.txt", "link.txt", "/etc/hostname", "deep/../../secret.txt"]
)
def test_nothing_outside_of_the_folder_is_read_or_written(folder: Path, path: str) -> None:
    async def scenario() -> None:
        async with Client(files_server.make(folder)) as client:
            read = await client.call_tool("read_file", {"path": path})
            assert read.is_error
            assert "outside of the folder" in read.text
            written = await client.call_tool("write_file", {"path": path, "text": "x"})
            assert written.is_error
            with pytest.raises(PeerError):
                await client.read_resource(f"file:///{path.lstrip('/')}")
            found = await client.call_tool("search", {"text": "not for clients"})
            assert found.value == []

    asyncio.run(scenario())
    assert (folder.parent / "secret.txt").read_text() == "not for clients"


@pytest.mark.parametrize("revision", ERAS)
def test_a_file_is_replaced_only_if_the_user_agrees(folder: Path, revision: str) -> None:
    async def write(agrees: bool) -> str:
        def answer(question: ElicitRequestParams) -> dict[str, Any]:
            return {"value": agrees}

        async with Client(files_server.make(folder), revision=revision, on_elicit=answer) as client:
            return (await client.call_tool("write_file", {"path": "a.md", "text": "new"})).text

    assert "was not changed" in asyncio.run(write(agrees=False))
    assert (folder / "a.md").read_text() == "Milk and\nbread\n"
    assert "Wrote 3" in asyncio.run(write(agrees=True))
    assert (folder / "a.md").read_text() == "new"


def test_a_client_without_elicitation_cannot_replace_a_file(folder: Path) -> None:
    async def scenario() -> None:
        async with Client(files_server.make(folder), revision="2024-11-05") as client:
            refused = await client.call_tool("write_file", {"path": "a.md", "text": "new"})
            assert refused.is_error
            assert "cannot ask" in refused.text
            made = await client.call_tool("write_file", {"path": "new/c.md", "text": "c"})
            assert not made.is_error

    asyncio.run(scenario())
    assert (folder / "a.md").read_text() == "Milk and\nbread\n"
    assert (folder / "new" / "c.md").read_text() == "c"


# ---- a database


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("DATABASE", str(tmp_path / "shop.db"))
    return importlib.import_module("examples.database_server").app


def test_queries_read_and_cannot_change(shop: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Client(shop) as client:
            found = await client.call_tool(
                "query",
                {"sql": "SELECT name FROM goods WHERE price > ? ORDER BY price", "values": [20]},
            )
            assert found.value == {"columns": ["name"], "rows": [["lamp"], ["desk"]], "more": False}
            for sql in ("DELETE FROM goods", "WITH x AS (SELECT 1) DELETE FROM goods", "SELEC"):
                refused = await client.call_tool("query", {"sql": sql})
                assert refused.is_error
                assert refused.text.startswith("SQLite: ")

    asyncio.run(scenario())
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("SELECT count(*) FROM goods").fetchone() == (3,)


def test_a_query_with_many_rows_is_cut(shop: Any) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "

    async def scenario() -> None:
        async with Client(shop) as client:
            found = await client.call_tool("query", {"sql": numbers + "SELECT i FROM n"})
            assert (len(found.value["rows"]), found.value["more"]) == (100, True)

    asyncio.run(scenario())


def test_a_query_is_interrupted_when_its_call_is_cancelled(shop: Any) -> None:
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e6) "
    module = importlib.import_module("examples.database_server")

    async def scenario() -> None:
        async with module.lifespan(shop) as database:
            going, cancelled = (
                SimpleNamespace(state=database, cancelled=each) for each in (False, True)
            )
            assert module.query(going, slow + "SELECT max(i) FROM n").rows == [[1_000_000]]
            with pytest.raises(ToolError, match="interrupted"):
                module.query(cancelled, slow + "SELECT max(i) FROM n")

    asyncio.run(scenario())


def test_an_order_is_written_and_the_table_is_a_resource(shop: Any) -> None:
    async def scenario() -> None:
        async with Client(shop) as client:
            made = await client.call_tool("order", {"name": "pen", "count": 2})
            assert made.value == 1
            unknown = await client.call_tool("order", {"name": "boat"})
            assert unknown.text == "There are no goods named boat."
            (orders,) = (await client.read_resource("table://orders")).contents
            assert json.loads(orders.text)["rows"] == 1
            with pytest.raises(PeerError):
                await client.read_resource("table://nothing")
            completed = await client.complete(resource="table://{name}", argument="name", value="o")
            assert completed.values == ["orders"]

    asyncio.run(scenario())


# ---- a REST API


class Tracker(BaseHTTPRequestHandler):
    """A tracker with one issue; it wants the token."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.headers["Authorization"] != f"Bearer {CANARY}":
            self.answer(401, {"message": f"bad token {self.headers['Authorization']}"})
        elif self.path.startswith("/issues?"):
            self.answer(200, [ISSUE])
        elif self.path == "/issues/7":
            self.answer(200, ISSUE)
        elif self.path == "/labels/a%2Fb":
            self.answer(200, {"about": "two words"})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, {**ISSUE, **given, "number": 8})

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


ISSUE = {"number": 7, "title": "It rains in", "state": "open", "body": "Oslo", "votes": 3}


@contextmanager
def tracker() -> Iterator[tuple[str, list[str]]]:
    """Run the tracker; yield its URL and the paths that were asked for."""
    asked: list[str] = []
    handler = type("_Tracker", (Tracker,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_the_rest_api_is_called_with_the_token_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> list[str]:
        async with Client(rest_api_server.app) as client:
            found = await client.call_tool("search_issues", {"text": "rain & snow"})
            assert found.value == [
                {key: ISSUE[key] for key in ("number", "title", "state", "body")}
            ]
            made = await client.call_tool("open_issue", {"title": "Snow in Oslo"})
            assert made.value["number"] == 8
            (read,) = (await client.read_resource("issue://7")).contents
            assert json.loads(read.text)["title"] == "It rains in"
            missing = await client.call_tool("get_issue", {"number": 9})
            assert missing.text == "There is no such issue."
            return [missing.text, found.text, made.text]

    with tracker() as (url, asked):
        monkeypatch.setenv("ISSUES_URL", url)
        monkeypatch.setenv("ISSUES_TOKEN", CANARY)
        texts = asyncio.run(scenario())
    assert "/issues?q=rain+%26+snow&state=open&page=1&per_page=20" in asked
    assert not any(CANARY in text for text in texts)


def test_a_refused_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> str:
        async with Client(rest_api_server.app) as client:
            return (await client.call_tool("get_issue", {"number": 7})).text

    with tracker() as (url, _):
        monkeypatch.setenv("ISSUES_URL", url)
        monkeypatch.setenv("ISSUES_TOKEN", CANARY[:-1])
        assert asyncio.run(scenario()) == "The tracker does not accept the token of this server."
    # The tracker has ended.
    assert asyncio.run(scenario()) == "The tracker cannot be reached; try again later."


# ---- a long job


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", *ERAS])
def test_a_long_job_reports_its_steps(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_job_server, "MONTH_S", 0)

    async def scenario() -> None:
        async with Client(long_job_server.app, revision=revision) as client:
            done = await client.call_tool("archive", {"year": 2025})
            assert json.loads(done.text)["files"] == 360
            assert "nothing of 1500" in (await client.call_tool("archive", {"year": 1500})).text

    asyncio.run(scenario())


@pytest.mark.parametrize("revision", ERAS)
def test_a_long_job_is_a_task_that_asks_and_can_be_cancelled(
    revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_job_server, "MONTH_S", 0)
    asked: list[str] = []

    def agree(question: ElicitRequestParams) -> dict[str, Any]:
        asked.append(question.message)
        return {"value": True}

    async def scenario() -> None:
        async with Client(long_job_server.app, revision=revision, on_elicit=agree) as client:
            task = await client.call_tool_as_task("archive", {"year": 2025, "delete": True})
            assert (await task.result()).value["deleted"] is True
            assert asked == ["Delete the files of 2025 when they are packed?"]
            monkeypatch.setattr(long_job_server, "MONTH_S", 60)
            endless = await client.call_tool_as_task("archive", {"year": 2024})
            await endless.cancel()
            await endless.refresh()
            assert endless.status == "cancelled"

    asyncio.run(scenario())


# ---- as programs


@pytest.mark.parametrize(
    ("example", "tools"),
    [
        ("files_server", ["list_files", "read_file", "search", "write_file"]),
        ("database_server", ["order", "query"]),
        ("rest_api_server", ["get_issue", "open_issue", "search_issues"]),
        ("long_job_server", ["archive"]),
    ],
)
def test_an_example_runs_as_a_program(example: str, tools: list[str], tmp_path: Path) -> None:
    async def scenario() -> None:
        program = Stdio(
            sys.executable, [str(ROOT / "examples" / f"{example}.py")], cwd=str(tmp_path)
        )
        async with Client(program) as client:
            assert sorted(tool.name for tool in await client.list_tools()) == tools

    asyncio.run(scenario())
