"""The verb `validate`: what it takes a file for, what it finds, and how it ends."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trunkline.cli import main

FINE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
BROKEN = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 7}}
# An info and nothing else: an unknown member.
ODD = {"jsonrpc": "2.0", "id": 3, "method": "tools/list", "extra": True}
OLD = ("--revision", "2025-11-25")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "given.json"


def lines(*messages: object) -> str:
    return "".join(f"{json.dumps(message)}\n" for message in messages)


def report(
    file: Path, capsys: pytest.CaptureFixture[str], *words: str, status: int = 0
) -> dict[str, Any]:
    """Return the JSON report, which is all that is on standard output."""
    assert main(["validate", str(file), *words, "--format", "json"]) == status
    shown = capsys.readouterr()
    assert shown.err == ""
    found: dict[str, Any] = json.loads(shown.out)
    return found


def rules(found: dict[str, Any]) -> list[list[str]]:
    return [[each["rule"] for each in message["findings"]] for message in found["messages"]]


# What a file holds


def test_one_message(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(lines(FINE))
    found = report(file, capsys, *OLD)
    assert (found["shape"], found["ok"], rules(found)) == ("message", True, [[]])


def test_one_message_over_several_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("\n\n" + json.dumps(BROKEN, indent=2))
    found = report(file, capsys, *OLD, status=1)
    assert found["shape"] == "message"
    assert found["messages"][0]["line"] == 3


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_a_list_of_messages(
    file: Path, indent: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(json.dumps([FINE, BROKEN], indent=indent))
    found = report(file, capsys, *OLD, status=1)
    assert (found["shape"], rules(found)) == ("list", [[], ["mcp.type.json-type"]])
    assert [message["line"] for message in found["messages"]] == ([2, 7] if indent else [1, 1])


def test_equal_messages_of_an_array_have_lines_of_their_own(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = json.dumps(FINE, indent=1)
    file.write_text(f"[\n{one},\n{one}\n]")
    found = report(file, capsys, *OLD)
    assert [message["line"] for message in found["messages"]] == [2, 7]


def test_an_array_is_a_batch_where_there_are_batches(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(json.dumps([FINE, BROKEN]))
    found = report(file, capsys, "--revision", "2025-03-26", status=1)
    assert [message["what"] for message in found["messages"]] == ["batch of 2"]
    assert found["messages"][0]["findings"][0]["where"] == "/1/params/name"


def test_a_message_per_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(lines(FINE) + "\n" + lines(BROKEN, ODD))
    found = report(file, capsys, *OLD, status=1)
    assert found["shape"] == "lines"
    assert [message["line"] for message in found["messages"]] == [1, 3, 4]
    assert rules(found) == [[], ["mcp.type.json-type"], ["mcp.envelope.unknown-member"]]


def test_an_array_on_a_line_is_what_was_sent(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(lines(FINE, [FINE]))
    found = report(file, capsys, *OLD, status=1)
    assert "jsonrpc.batch.not-allowed" in rules(found)[1]


@pytest.mark.parametrize("broken_first", [True, False])
def test_a_broken_line_is_a_finding_among_others(
    file: Path, broken_first: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("{broken\n" + lines(FINE) if broken_first else lines(FINE) + "{broken\n")
    found = report(file, capsys, *OLD, status=1)
    assert sorted(rules(found)) == [[], ["jsonrpc.text.json"]]


def recording(*entries: object) -> str:
    return lines({"trunkline-trace": 1}, *entries)


def test_recording_gives_the_sender_of_each_message(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        recording(
            {"at": 0, "from": "server", "message": FINE},
            {"at": 1, "from": "client", "raw": '{"jsonrpc":"2.0","id":1,"result":5}'},
            {"at": 2, "from": "client", "http": {"method": "GET", "path": "/"}},
            {"at": 3, "from": "somebody", "message": FINE},
        )
    )
    found = report(file, capsys, *OLD, status=1)
    assert found["shape"] == "trace"
    told = [(message["line"], message["from"], message["what"]) for message in found["messages"]]
    assert told == [
        (2, "server", "request tools/list"),
        (3, "client", "result of tools/list"),
        (4, "client", "no message"),
        (5, None, "unreadable entry"),
    ]
    assert "mcp.method.direction" in rules(found)[0]
    assert "trace.line" in rules(found)[3]


def test_a_finding_about_http_shows_the_headers_that_came(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    info = {"name": "a", "version": "1"}
    opened = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": "Bearer canary-9f8e7d6c5b",
    }
    wrong = {**headers, "accept": "application/json", "mcp-protocol-version": "2025-03-26"}

    def entry(sender: str, message: object, **http: object) -> object:
        return {"from": sender, "transport": "http", "message": message, "http": http}

    post = {"method": "POST", "path": "/mcp"}
    first = {**opened, "params": {**about, "clientInfo": info}}
    reply = {"jsonrpc": "2.0", "id": 1, "result": {**about, "serverInfo": info}}
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    file.write_text(
        recording(
            entry("client", first, **post, headers=headers),
            entry("server", reply, status=200, headers={"content-type": "application/json"}),
            entry("client", notice, **post, headers=headers),
            entry("client", notice, **post, headers=wrong),
        )
    )
    assert main(["validate", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "canary" not in shown
    assert "mcp.headers.version-sent: its HTTP headers\n" in shown
    assert (
        "    POST /mcp\n"
        "    ^^^^^^^^^ Every HTTP request after initialize has MCP-Protocol-Version.\n"
        "    content-type: application/json\n"
        "    accept: application/json, text/event-stream\n"
        "    authorization: [redacted]\n"
    ) in shown
    # The header that has the value, and that the rule names.
    assert "    accept: application/json\n            ^^^^^^^^^^^^^^^^ The Accept" in shown
    assert "    mcp-protocol-version: 2025-03-26\n" + " " * 26 + "^^^^^^^^^^ expected" in shown


def test_a_recording_is_judged_as_a_conversation(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = {"jsonrpc": "2.0", "id": 9, "result": {}}
    file.write_text(
        recording({"from": "client", "message": FINE}, {"from": "server", "message": stray})
    )
    found = report(file, capsys, *OLD, status=1)
    # Nobody asked 9; and nobody answered 1, which is told where it was asked.
    assert "mcp.id.echoed" in rules(found)[1]
    assert "trace.unanswered" in rules(found)[0]


def test_the_sender_of_an_entry_can_be_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(recording({"at": 0, "message": FINE}))
    found = report(file, capsys, *OLD, "--from", "server", status=1)
    assert found["messages"][0]["from"] == "server"


def test_lines_are_read_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Endless(io.BytesIO):
        """Refuses to be read as a whole."""

        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("read as a whole")

    text = (lines(FINE) * 500).encode()
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": Endless(text)}))
    assert main(["validate", "-", *OLD]) == 0
    assert "stdin: 500 messages by MCP 2025-11-25: nothing found" in capsys.readouterr().out


# Judging


def test_a_reply_is_judged_by_its_request(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reply = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": 3}]}}
    file.write_text(lines(FINE, reply))
    found = report(file, capsys, *OLD, status=1)
    assert found["messages"][1]["what"] == "result of tools/list"
    assert "mcp.type.json-type" in rules(found)[1]


def test_ids_of_different_types_are_different(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(lines(FINE, {"jsonrpc": "2.0", "id": "1", "result": {}}))
    found = report(file, capsys, *OLD)
    assert found["messages"][1]["what"] == "result"


def test_the_sender_can_be_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(lines(FINE))
    report(file, capsys, *OLD, "--from", "client")
    found = report(file, capsys, *OLD, "--from", "server", status=1)
    assert rules(found) == [["mcp.method.direction"]]


@pytest.mark.parametrize(
    ("messages", "revision", "why"),
    [
        ([FINE], "2026-07-28", "the newest, because no message names one"),
        (
            [{"method": "initialize", "params": {"protocolVersion": "2025-06-18"}}],
            "2025-06-18",
            "requested",
        ),
        (
            [
                {"method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
                {"result": {"protocolVersion": "2024-11-05"}},
                {"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}},
            ],
            "2024-11-05",
            "negotiated by initialize",
        ),
        (
            [{"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}],
            "2026-07-28",
            "named in _meta",
        ),
        (
            [{"method": "initialize", "params": {"protocolVersion": "1999-01-01"}}],
            "2026-07-28",
            "the newest, because no message names one",
        ),
        ([{"params": [1], "result": 5}], "2026-07-28", "the newest, because no message names one"),
    ],
)
def test_the_revision_is_found_in_the_messages(
    file: Path,
    messages: list[object],
    revision: str,
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file.write_text(json.dumps(messages))
    main(["validate", str(file), "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["revision"], found["revision_because"]) == (revision, why)


def test_the_text_report_says_the_revision_on_the_side(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(lines(FINE))
    main(["validate", str(file)])
    assert "MCP 2026-07-28, the newest" in capsys.readouterr().err


# Exit statuses


def test_remarks_never_count(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(lines(ODD))
    assert report(file, capsys, *OLD, "--strict")["counts"]["info"] == 1


def test_warnings_count_when_strict(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from trunkline.cli.commands import validate
    from trunkline.judge import Finding

    one = Finding("mcp.some.rule", "warn", "/id", "1", "another", "2025-11-25 · basic")
    monkeypatch.setattr(validate, "judge", lambda *facts: [one])
    file.write_text(lines(FINE))
    assert report(file, capsys, *OLD)["ok"] is True
    assert report(file, capsys, *OLD, "--strict", status=1)["ok"] is False


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (b"[]", "it holds no message"),
        (b"\xff\xfe{", "it is not UTF-8: byte 1 is invalid"),
        (b"{bad", "it is not JSON: "),
        # From 3.13 on `json` names the comma, before that the place after it.
        (
            b'{\n "a": 1,\n}\n',
            "line 2, column 8" if sys.version_info >= (3, 13) else "line 3, column 1",
        ),
        (b"hello\nworld\n", "it is not JSON: expecting value, line 1, column 1"),
        (b"[" * 100, "it is not JSON"),
        (b'{"trunkline-trace": 1}', "it holds no message"),
        (
            b'{"trunkline-trace": 2}\n{"from": 1}',
            "no line can be read: unsupported trace version, expected 1",
        ),
    ],
)
def test_unreadable_file_ends_with_6(
    file: Path, text: bytes, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(text)
    assert main(["validate", str(file), "--format", "json"]) == 6
    shown = capsys.readouterr()
    assert shown.out == ""
    assert says in shown.err


CUT = (
    r'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    r'"params":{"name":"a","arguments":{"b":"\ud83d"}}}'
)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        (CUT, "message"),
        (f"[{CUT}]", "list"),
        (f"[\n{CUT},\n{CUT}\n]", "list"),
        (f"{CUT}\n{CUT}\n", "lines"),
        (f'{{"from":"client","message":{CUT}}}', "trace"),
        (f'{{"trunkline-trace":1}}\n{{"from":"client","message":{CUT}}}\n', "trace"),
    ],
)
def test_a_lone_surrogate_is_named_in_every_kind_of_file(
    file: Path, text: str, shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    found = report(file, capsys, *OLD, status=1)
    assert found["shape"] == shape
    for each in rules(found):
        assert [rule for rule in each if rule.startswith("jsonrpc.")] == ["jsonrpc.text.surrogate"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            rb'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"\ud800"}}}',
            "jsonrpc.text.surrogate",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":NaN}}', "jsonrpc.text"),
        (b"[" * 100_000 + b"]" * 100_000, "jsonrpc."),
    ],
)
def test_text_accepted_only_by_lenient_parsers_is_judged(
    file: Path, text: bytes, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(text)
    ((found,),) = rules(report(file, capsys, *OLD, status=1))
    assert found.startswith(rule)


def test_the_mark_before_a_text_is_passed_over(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + lines(FINE).encode())
    assert report(file, capsys, *OLD)["ok"] is True


def test_a_file_that_is_not_there_is_misuse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(tmp_path / "nowhere")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_scalar_is_a_message_that_is_none(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("5")
    assert rules(report(file, capsys, status=1)) == [["jsonrpc.message.object"]]


# The command itself


def test_the_command_reads_standard_input() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "trunkline", "validate", "-", *OLD],
        input=lines(FINE, BROKEN).encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert b"stdin:2: error mcp.type.json-type: got 7 at /params/name" in run.stdout
    assert run.stderr == b"stdin: MCP 2025-11-25, as given\n"
    assert b"\033" not in run.stdout


def test_lone_surrogate_is_printed_in_every_format(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('{"jsonrpc":"2.0","id":1,"method":"\\ud800"}')
    for form in ("text", "json", "junit", "sarif", "markdown"):
        assert main(["validate", str(file), "--format", form]) == 1
        capsys.readouterr()
