"""The file of `--trace`: what it takes the place of, and what is in it."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from trunkline.cli import main
from trunkline.cli.command import UsageError
from trunkline.cli.recording import (
    check_continuable,
    continued_recording,
    recorded,
    recording,
)
from trunkline.jsonrpc.framing.framing import Oversize
from trunkline.judge import TraceEntry, read_trace
from trunkline.judge.trace.reader import UnreadFrame

CANARY = "canary-3310"


def test_each_frame_is_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    with recorded(str(file), "unix", print) as record:
        record("client", b'{"jsonrpc":"2.0","method":"a"}')
        record("server", b"no json")
    first, second = read_trace(file.read_bytes().splitlines())
    assert isinstance(first, TraceEntry)
    assert isinstance(second, TraceEntry)
    assert (first.sender, first.transport) == ("client", "unix")
    assert first.message == {"jsonrpc": "2.0", "method": "a"}
    assert (second.sender, second.raw, second.unread) == (
        "server",
        None,
        UnreadFrame(length=7, digest=f"sha256:{sha256(b'no json').hexdigest()}"),
    )
    assert [fault.rule for fault in second.faults] == ["jsonrpc.text.json"]
    assert first.at is not None
    assert second.at is not None
    assert 0 <= first.at <= second.at


def test_secrets_are_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    with recorded(str(file), "stdio", print) as record:
        record("client", b'{"params":{"password":"%s"}}' % CANARY.encode())
        record("client", b'{"password": "%s", broken' % CANARY.encode())
        record("server", Oversize(b'{"token":"%s"' % CANARY.encode(), 99, 10))
    assert CANARY not in file.read_text()
    assert len(file.read_bytes().splitlines()) == 4


@pytest.mark.parametrize("content", ["", '{"trunkline-trace":1}\n{"at":0}\n', "\n"])
def test_a_recording_takes_the_place_of_another(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace"
    file.write_text(content)
    with recorded(str(file), "stdio", print):
        pass
    assert file.read_text() == '{"trunkline-trace":1}\n'


@pytest.mark.parametrize("content", ["mine", '{"a": 1}', "\0"])
def test_nothing_else_is_replaced(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace"
    file.write_text(content)
    with pytest.raises(UsageError, match="is not a recording"), recorded(str(file), "stdio", print):
        pass
    assert file.read_text() == content


def test_recording_to_a_device_is_allowed() -> None:
    with recorded("/dev/null", "stdio", print) as record:
        record("client", b"{}")


def test_a_link_is_kept_and_written_through(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    file.write_text('{"trunkline-trace":1}\n{"at":0}\n')
    link.symlink_to(file)
    with recorded(str(link), "stdio", print):
        pass
    assert link.is_symlink()
    assert file.read_text() == '{"trunkline-trace":1}\n'


def test_a_program_that_still_writes_the_one_before_does_not_write_into_this_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "trace"
    with (
        recorded(str(file), "stdio", print) as before,
        recorded(str(file), "stdio", print) as record,
    ):
        record("client", b"1")
        before("client", b"2")
    assert '"message":1' in file.read_text()
    assert '"message":2' not in file.read_text()


def test_failed_write_is_reported_once_and_the_conversation_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Or a module that is loaded meanwhile would have half its bytecode kept.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    told: list[str] = []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with recorded(str(tmp_path / "trace"), "stdio", told.append) as record:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            # The first is cut off in the middle, which is a failure too.
            record("client", b'"%s"' % (b"x" * 200))
            record("client", b"{}")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        record("client", b"{}")
    assert told == ["recording stopped: File too large"]


def test_recording_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    before = os.umask(0)
    try:
        for _ in range(2):
            with recording(str(path)):
                assert path.stat().st_mode & 0o777 == 0o600
            path.chmod(0o644)
    finally:
        os.umask(before)


def test_file_that_begins_with_blanks_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(" " * 300 + "precious")
    with pytest.raises(UsageError, match="is not a recording"), recording(str(path)):
        pass
    assert "precious" in path.read_text()


def test_file_of_another_user_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "theirs", tmp_path / "link"
    path.touch()
    link.symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("trunkline.cli.recording.os.geteuid", lambda: path.stat().st_uid + 1)
    for opened in (recording, continued_recording):
        with pytest.raises(UsageError, match="belongs to another user"), opened(str(path)):
            pass
        with pytest.raises(UsageError, match="a symbolic link of another user"), opened(str(link)):
            pass
    assert path.read_bytes() == b""
    assert not (tmp_path / "elsewhere").exists()


# A recording that is continued


def connections(file: Path) -> list[object]:
    found = list(read_trace(file.read_bytes().splitlines()))
    assert all(isinstance(each, TraceEntry) for each in found), found
    return [each.connection for each in found if isinstance(each, TraceEntry)]


def test_each_run_that_continues_a_recording_has_connections_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    for _ in range(3):
        with continued_recording(str(file)) as record:
            record.add("client", b"{}", "stdio")
            record.add("client", b"{}", "unix", 1)
    alone, numbered, *others = connections(file)
    assert (alone, numbered) == (None, 1)
    assert len(set(others)) == 4
    assert [str(each).endswith("/1") for each in others] == [False, True] * 2
    assert file.read_text().count("trunkline-trace") == 1


@pytest.mark.parametrize("content", ["mine", '{"a": 1}', "\0", " " * 300 + "x"])
def test_a_file_that_is_not_a_recording_is_not_continued(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace"
    file.write_text(content)
    problem = "is not a recording: it is not continued"
    with pytest.raises(UsageError, match=problem), continued_recording(str(file)):
        pass
    with pytest.raises(UsageError, match=problem):
        check_continuable(str(file))
    assert file.read_text() == content


def test_a_line_that_was_cut_does_not_cut_the_next(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"trunkline-trace":1}\n{"at":0,"message":{"jsonrpc"')
    with continued_recording(str(file)) as record:
        record.add("client", b"{}", "stdio")
    fault, entry = read_trace(file.read_bytes().splitlines())
    assert isinstance(entry, TraceEntry)
    assert (type(fault).__name__, entry.message) == ("TraceFault", {})


def test_a_line_that_does_not_fit_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "t.jsonl"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with continued_recording(str(file)) as record:
        record.add("client", b"1", "stdio")
        whole = file.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                record.add("client", b'"%s"' % (b"x" * 200), "stdio")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert file.read_bytes() == whole


def test_a_recording_that_is_continued_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    for _ in range(2):
        with continued_recording(str(file)):
            assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)


def test_a_process_that_keeps_the_lock_does_not_stop_the_traffic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.cli.recording._LOCK_TIMEOUT_S", 0.01)
    file = tmp_path / "t.jsonl"
    with continued_recording(str(file)) as record, file.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        record.add("client", b"1", "stdio")
        record.add("client", b"2", "stdio")
    assert len(connections(file)) == 2


def test_proxies_that_record_at_once_write_whole_lines(tmp_path: Path) -> None:
    file, count = tmp_path / "t.jsonl", 12
    script = tmp_path / "echo.py"
    script.write_text("import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line)\n")
    command = [sys.executable, "-m", "trunkline", "proxy", "--record", str(file), "--"]
    # Far more than a pipe takes at once.
    text = "x" * 300_000
    lines = [
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d,"text":"%s"}}\n'
        % (number, text.encode())
        for number in range(count)
    ]
    processes = [
        subprocess.Popen(
            [*command, sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    with ThreadPoolExecutor() as threads:
        ended = list(
            threads.map(lambda each: each.communicate(b"".join(lines), timeout=60), processes)
        )
    assert [out.count(b"\n") for out, _ in ended] == [count] * 2, ended
    assert [each.returncode for each in processes] == [0, 0]
    found = list(read_trace(file.read_bytes().splitlines()))
    entries = [each for each in found if isinstance(each, TraceEntry)]
    assert len(entries) == len(found) == 4 * count
    seen = Counter((each.connection, each.sender, each.message["params"]["n"]) for each in entries)
    assert set(seen.values()) == {1}
    assert len({each.connection for each in entries}) == 2
    assert file.read_text().count("trunkline-trace") == 1


def test_a_continued_recording_is_judged_as_separate_conversations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, script = tmp_path / "t.jsonl", tmp_path / "server.py"
    script.write_text("from trunkline import Server\napp = Server('s')\napp.run()\n")
    command = [sys.executable, "-m", "trunkline", "proxy", "--record", str(file), "--"]
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n'
    )
    for _ in range(2):
        subprocess.run([*command, sys.executable, str(script)], input=hello, check=True, timeout=60)
    assert len(connections(file)) == 10
    # As one conversation, ids would be used twice and the second initialize be an error.
    assert main(["validate", str(file)]) == 0, capsys.readouterr().out
