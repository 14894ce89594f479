"""A worker's own end: what it reports, and to whom."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode, encode

from trunkline.cli.command import parser_of
from trunkline.cli.reload.worker import WorkerOrders, WorkerReport

WAIT = 30
START = "import sys; from trunkline.cli.reload.worker import main; sys.exit(main(sys.argv[1]))"
SERVER = "from trunkline import Server, ServerLimits\nimport part\napp = Server('x', {})\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "part.py").write_text("")
    path = tmp_path / "server.py"
    path.write_text(SERVER.format("limits=ServerLimits(grace=2.5)"))
    return path


def started(file: Path, control: int, **options: Any) -> subprocess.Popen[bytes]:
    given = vars(parser_of("serve").parse_args([str(file), "--framing", "content-length"]))
    orders = encode(WorkerOrders(given, control, None, 0)).decode()
    return subprocess.Popen(
        [sys.executable, "-c", START, orders],
        pass_fds=(control,),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def reported(file: Path) -> tuple[WorkerReport, int, bytes]:
    """Return what a worker reports, its status, and what it says on standard error."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = started(file, theirs.fileno(), stdin=subprocess.DEVNULL)
        theirs.close()
        _, said = process.communicate(timeout=WAIT)
        ours.settimeout(WAIT)
        report = b""
        while data := ours.recv(65536):
            report += data
    assert report.count(b"\n") == 1
    return decode(report, type=WorkerReport), process.returncode, said


def test_a_server_that_is_ready_says_what_there_is_to_know(file: Path) -> None:
    report, status, said = reported(file)
    files = [str(file.with_name("part.py")), str(file)]
    assert report == WorkerReport(True, files, "content-length", 16 * 1024 * 1024, 2.5)
    assert (status, said) == (0, b"")


@pytest.mark.parametrize("broken", ["1 / 0", "app = 1", "app = ("])
def test_one_that_cannot_be_loaded_says_why_and_names_its_files(file: Path, broken: str) -> None:
    file.write_text(f"import part\n{broken}")
    report, status, said = reported(file)
    assert not report.is_ready
    assert str(file) in report.files or "app = 1" in broken
    assert status == 2
    assert b"trunkline/cli" not in said
    assert said


def test_one_whose_starter_is_gone_before_it_is_ready_ends(file: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        process = started(file, theirs.fileno(), stdin=subprocess.PIPE)
        try:
            # Its input stays open: nothing else tells it.
            assert process.wait(WAIT) == 0
        finally:
            process.kill()
            process.communicate()
