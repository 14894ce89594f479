"""The file of `--trace`: what it takes the place of, and what is in it."""

from __future__ import annotations

import os
import resource
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from trunkline.cli.command import UsageError
from trunkline.cli.recording import recorded, recording
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
    with pytest.raises(UsageError, match="belongs to another user"), recording(str(path)):
        pass
    with pytest.raises(UsageError, match="a symbolic link of another user"), recording(str(link)):
        pass
    assert path.read_bytes() == b""
    assert not (tmp_path / "elsewhere").exists()
