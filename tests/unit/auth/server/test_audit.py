"""The file of audit events: private, bounded, and exact about the events that it lacks."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.auth import AuditEvent, JsonLinesAudit
from trunkline.auth.server import audit as module

WAIT_S = 60.0


def event(name: str) -> AuditEvent:
    return AuditEvent(time=0.0, seconds=0.0, method="tools/call", name=name, outcome="ok")


def lines_of(audit: JsonLinesAudit) -> list[Any]:
    """Return what is in the file: of an event its name, of another line its `dropped`."""
    found = [json.loads(each) for each in audit.path.read_text().splitlines()]
    return [each["name"] if "name" in each else each["dropped"] for each in found]


class Disk:
    """Stands in for the file: writes in pieces, waits, or is full, as a test asks."""

    def __init__(self, audit: Any) -> None:
        self._file, audit._file = audit._file, self
        # Bytes of one write, and bytes until the disk is full.
        self.most_at_once = sys.maxsize
        self.free = sys.maxsize
        self.is_open = threading.Event()
        self.is_open.set()
        self.has_begun = threading.Event()

    def write(self, data: memoryview) -> int:
        self.has_begun.set()
        assert self.is_open.wait(WAIT_S)
        if not self.free:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._file.write(data[: min(self.most_at_once, self.free)])
        self.free -= written
        return written

    def close(self) -> None:
        self._file.close()


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[JsonLinesAudit]:
    made = JsonLinesAudit(tmp_path / "audit.jsonl")
    yield made
    made.close()


def write(audit: JsonLinesAudit, *names: str) -> None:
    """Write events, each on its own."""
    for name in names:
        audit(event(name))
        assert audit.flush(WAIT_S)


# -- the file ----------------------------------------------------------------------------------


def test_a_file_that_others_can_reach_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"name":"old"}\n')
    path.chmod(0o666)
    audit = JsonLinesAudit(path)
    write(audit, "new")
    audit.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines_of(audit) == ["old", "new"]


def _link(path: Path) -> None:
    path.symlink_to(path.with_name("target"))


def _fifo(path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes on this system")
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(_link, "is a symbolic link, and is not followed", id="link"),
        pytest.param(_fifo, "is not a file", id="fifo"),
    ],
)
def test_a_link_or_a_fifo_in_place_of_the_file_is_refused(
    tmp_path: Path, make: Callable[[Path], object], error: str
) -> None:
    path = tmp_path / "audit.jsonl"
    make(path)
    with pytest.raises(OSError, match=error):
        JsonLinesAudit(path)
    assert os.listdir(tmp_path) == ["audit.jsonl"]


# -- events that are lost ----------------------------------------------------------------------


def test_events_beyond_the_bound_are_dropped_and_the_next_line_has_their_number(
    audit: JsonLinesAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING_EVENTS", 3)
    disk = Disk(audit)
    disk.is_open.clear()
    for at in range(8):
        audit(event(str(at)))
    assert audit.dropped == 5
    assert not audit.flush(0)
    disk.is_open.set()
    assert audit.flush(WAIT_S)
    write(audit, "next", "last")
    found = lines_of(audit)
    # The thread may take the first event before others are dropped, or after.
    assert [each for each in found if isinstance(each, str)] == ["0", "1", "2", "next", "last"]
    assert sum(each for each in found if isinstance(each, int)) == 5
    assert found[-1] == "last"


def test_the_bound_is_ten_thousand_events() -> None:
    assert module.MAX_WAITING_EVENTS == 10_000


def test_events_that_a_full_disk_does_not_take_are_counted_in_the_next_line(
    audit: JsonLinesAudit,
) -> None:
    disk = Disk(audit)
    write(audit, "first")
    disk.free = 0
    write(audit, "lost", "lost too")
    assert audit.dropped == 2
    disk.free = sys.maxsize
    write(audit, "next", "last")
    assert lines_of(audit) == ["first", 2, "next", "last"]


def test_a_count_that_could_not_be_written_is_part_of_the_next(audit: JsonLinesAudit) -> None:
    disk = Disk(audit)
    for free in (0, 0, sys.maxsize, 0, sys.maxsize):
        disk.free = free
        write(audit, "an event")
    assert audit.dropped == 3
    assert lines_of(audit) == [2, "an event", 1, "an event"]


def test_the_last_line_has_the_number_of_events_that_none_followed(tmp_path: Path) -> None:
    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    disk = Disk(audit)
    disk.free = 0
    write(audit, "lost")
    disk.free = sys.maxsize
    audit.close()
    assert lines_of(audit) == [1]


def test_a_write_of_a_part_is_continued(audit: JsonLinesAudit) -> None:
    Disk(audit).most_at_once = 7
    write(audit, "first", "last")
    assert audit.dropped == 0
    assert lines_of(audit) == ["first", "last"]


def test_a_line_that_a_full_disk_cut_is_ended_and_counted(audit: JsonLinesAudit) -> None:
    disk = Disk(audit)
    disk.free = 10
    write(audit, "cut")
    assert audit.dropped == 1
    disk.free = sys.maxsize
    write(audit, "next")
    cut, *rest = audit.path.read_text().splitlines()
    assert len(cut) == 10
    assert [json.loads(each).get("dropped") for each in rest] == [1, None]


def test_events_that_a_full_disk_did_take_are_not_counted(audit: JsonLinesAudit) -> None:
    disk = Disk(audit)
    disk.is_open.clear()
    audit(event("1"))
    # The thread has taken the first event: the others are written together.
    assert disk.has_begun.wait(WAIT_S)
    for at in (2, 3, 4):
        audit(event(str(at)))
    size = len(module._line(event("1")))
    disk.free = 3 * size + 5
    disk.is_open.set()
    assert audit.flush(WAIT_S)
    assert audit.dropped == 1
    disk.free = 0
    write(audit, "lost")
    assert audit.dropped == 2
    assert audit.path.stat().st_size == 3 * size + 5
    disk.free = sys.maxsize
    write(audit, "next")
    *whole, cut, dropped, last = audit.path.read_text().splitlines()
    assert [json.loads(each)["name"] for each in whole] == ["1", "2", "3"]
    assert len(cut) == 5
    assert json.loads(dropped)["dropped"] == 2
    assert json.loads(last)["name"] == "next"


def test_a_disk_that_fails_is_logged_once_until_it_works_again(
    audit: JsonLinesAudit, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(audit)
    logged = []
    for free in (sys.maxsize, 0, 0, sys.maxsize, 0, 0):
        disk.free = free
        write(audit, "an event")
        logged.append(len(caplog.records))
    assert logged == [0, 1, 1, 1, 2, 2]
    assert {each.levelno for each in caplog.records} == {logging.ERROR}
    text = f"audit events cannot be written to {str(audit.path)!r}: [Errno {errno.ENOSPC}]"
    assert all(each.getMessage().startswith(text) for each in caplog.records)


# -- the end -----------------------------------------------------------------------------------


def test_events_that_wait_are_written_at_exit(tmp_path: Path) -> None:
    # The disk takes nothing until `flush` waits for it: the program does not call that itself.
    program = """
import sys, threading
from trunkline.auth import AuditEvent, JsonLinesAudit

class Disk:
    def __init__(self, audit):
        self.file, self.close = audit._file, audit._file.close
        self.is_open, self.flush = threading.Event(), audit.flush
        audit._file, audit.flush = self, self.opened
    def write(self, data):
        self.is_open.wait()
        return self.file.write(data)
    def opened(self):
        self.is_open.set()
        return self.flush()

audit = JsonLinesAudit(sys.argv[1])
Disk(audit)
for at in range(50):
    audit(AuditEvent(time=0.0, seconds=0.0, method="ping", name=str(at), outcome="ok"))
"""
    path = tmp_path / "audit.jsonl"
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=WAIT_S)
    names = [json.loads(each)["name"] for each in path.read_text().splitlines()]
    assert names == [str(at) for at in range(50)]


def test_close_writes_what_waits_and_events_after_it_are_counted(tmp_path: Path) -> None:
    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    for at in range(100):
        audit(event(str(at)))
    audit.close()
    assert lines_of(audit) == [str(at) for at in range(100)]
    audit(event("late"))
    assert audit.dropped == 1
    audit.close()
    assert len(lines_of(audit)) == 100


def test_close_is_woken_by_the_last_write_not_by_its_timeout(tmp_path: Path) -> None:
    class Wake(threading.Condition):
        timed_out = 0

        def wait(self, timeout: float | None = None) -> bool:
            notified = super().wait(timeout)
            Wake.timed_out += not notified
            return notified

    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    audit._wake = Wake()
    disk = Disk(audit)
    disk.is_open.clear()
    audit(event("last"))
    assert disk.has_begun.wait(WAIT_S)
    threading.Timer(0.05, disk.is_open.set).start()
    audit.close()
    assert lines_of(audit) == ["last"]
    assert Wake.timed_out == 0


def test_write_after_close_is_an_error_of_the_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    audit = JsonLinesAudit(tmp_path / "audit.jsonl")
    audit.close()
    assert audit._write(b"{}\n{}\n") == 2
    assert "it is closed" in caplog.text


def test_repr_of_the_audit_of_refusals_tells_nothing() -> None:
    assert repr(module.RefusalAudit(print)) == "<RefusalAudit>"
