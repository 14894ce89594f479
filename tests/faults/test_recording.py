"""Recordings of hostile traffic: no secrets, no stalls, and no other readers."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.canaries import SECRETS
from tests.cpu_time import calibration_s, cpu_s
from trunkline.cli import main
from trunkline.cli.command import UsageError
from trunkline.cli.recording import recording
from trunkline.judge import Conversation, TraceEntry
from trunkline.judge.trace.writer import encode_entry, frame_entry

SERVER = """
from trunkline import Server
app = Server("s")

@app.tool(inline=True)
def login(auth: str = "", note: str = "") -> str:
    return "in"

app.run()
"""
NOTES = [
    b"plain",
    b"cut emoji \\ud83d",
    b"latin \xe9t\xe9",
    b'x","n":1e400,"z":"',
    b'x","n":' + b"9" * 5000 + b',"z":"',
    b'x" y',
]
MIB = 1 << 20


def frame(id: int, note: bytes) -> bytes:
    params = {"name": "login", "arguments": {**SECRETS, "note": "NOTE"}}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return json.dumps(message).encode().replace(b"NOTE", note) + b"\n"


def test_a_proxy_records_no_secret_of_a_frame_that_cannot_be_decoded(tmp_path: Path) -> None:
    script, record = tmp_path / "server.py", tmp_path / "talk.jsonl"
    script.write_text(SERVER)
    command = ["-m", "trunkline", "proxy", "--judge", "--record", str(record), "--"]
    proxy = subprocess.run(
        [sys.executable, *command, sys.executable, str(script)],
        input=b"".join(frame(id, note) for id, note in enumerate(NOTES)),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"CANARY" not in record.read_bytes()
    assert b"CANARY" not in proxy.stderr
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    sent = [entry for entry in entries if entry.get("from") == "client"]
    assert len(sent) == len(NOTES)
    # The second, with a lone surrogate, is read with U+FFFD in its place.
    assert ["message" in entry for entry in sent] == [True, True, *[False] * (len(NOTES) - 2)]
    assert [each["rule"] for each in sent[1]["faults"]] == ["jsonrpc.text.surrogate"]
    ids = [entry["unread"].get("value", entry["unread"])["id"] for entry in sent[2:]]
    assert ids == list(range(2, len(NOTES)))


@pytest.mark.parametrize("part", [b"some text ", b"-eyJ", b"token=", b"://"])
def test_recording_a_large_text_takes_time_in_proportion_to_it(part: bytes) -> None:
    text = part * (4 * MIB // len(part))
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"%s"}}' % text
    unit = calibration_s()
    entry = TraceEntry(sender="client", transport="stdio")
    assert cpu_s(lambda: encode_entry(frame_entry(data, entry))) < 60 * unit


def test_judging_a_batch_takes_no_more_time_than_one_of_the_limit() -> None:
    unit = calibration_s()
    data = b"[" + b"{}," * (2 * MIB // 3) + b"{}]"
    assert cpu_s(lambda: Conversation().feed(data, "client", "stdio")) < 60 * unit


def test_a_pipe_of_another_user_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "weather.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with monkeypatch.context() as patched:
            patched.setattr("trunkline.cli.recording.os.geteuid", lambda: os.getuid() + 1)
            with (
                pytest.raises(UsageError, match="belongs to another user"),
                recording(str(pipe)),
            ):
                pass
        assert os.read(reader, 100) == b""
        # Our own one is written to.
        with recording(str(pipe)):
            assert os.read(reader, 100).startswith(b'{"trunkline-trace"')
    finally:
        os.close(reader)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "markdown"])
def test_validate_prints_no_character_that_a_terminal_acts_on(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "\x9b2J\u202e\x7f\u2066x"
    params = {"name": "x", "_meta": {key: 1}, key: 1}
    file = tmp_path / "t.jsonl"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    file.write_text(json.dumps(message, ensure_ascii=False) + "\n")
    main(["validate", str(file), "--format", form])
    printed = capsys.readouterr().out
    assert "2J" in printed
    assert printed.replace("\n", "").isprintable()
    if form in ("json", "sarif"):
        assert key in json.dumps(json.loads(printed), ensure_ascii=False)


@pytest.mark.full
def test_validate_keeps_a_bounded_number_of_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "t.jsonl"
    entry = b'{"from":"server","transport":"stdio","message":{"jsonrpc":"2.0","id":%d,"x":1}}\n'
    with file.open("wb") as lines:
        lines.write(b'{"trunkline-trace":1}\n')
        for number in range(20_000):
            lines.write(entry % number)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["validate", str(file), "--format", "json"]) == 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    report = json.loads(capsys.readouterr().out)
    assert grown < 100 * 1024  # KiB
    shown = sum(len(message["findings"]) for message in report["messages"])
    rules = {each["rule"] for message in report["messages"] for each in message["findings"]}
    assert shown == 100 * len(rules)
    assert sum(report["counts"].values()) == 20_000 * len(rules)
    assert report["left_out"]["findings"] == dict.fromkeys(rules, 19_900)
    assert len(report["messages"]) + report["left_out"]["messages"] == 20_000
