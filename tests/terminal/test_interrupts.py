"""Ctrl-C and signals, at every stage: nothing is left, and the terminal can be used."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.forked_python import NEW_PYTHON
from tests.rigs.conditions import until
from tests.rigs.processes import is_there

Start = Callable[..., Any]
WAIT = 30
# By which signal, and what a shell calls it.
SIGNALS = [(signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture
def pid_file(tmp_path: Path) -> Path:
    return tmp_path / "pid"


def assert_ended(run: Any, pid_file: Path, *statuses: int) -> None:
    """See that a run was interrupted, and left neither a child nor words."""
    assert run.wait() in (statuses or (130,))
    assert not is_there(int(pid_file.read_text()))
    assert "Traceback" not in run.text
    assert "trunkline" not in run.text
    run.assert_usable()


@pytest.mark.parametrize(
    ("stage", "method"),
    [
        ("connecting", "initialize"),
        ("connecting", "server/discover"),
        ("listing", "tools/list"),
        ("calling", "tools/call"),
        ("closing", "close"),
    ],
)
def test_ctrl_c_ends_a_call_at_every_stage(
    terminal: Start, silent: Any, pid_file: Path, stage: str, method: str
) -> None:
    run = terminal("call", "wait", *silent(method), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    assert_ended(run, pid_file)
    assert (b"waited" in run.raw) == (stage == "closing")


def test_ctrl_c_takes_the_bar_of_progress_away(
    terminal: Start, silent: Any, pid_file: Path
) -> None:
    run = terminal("call", "wait", *silent("tools/call"), PIDFILE=str(pid_file))
    run.until("25% begun")
    run.type("\x03")
    assert_ended(run, pid_file)
    assert "25%" not in run.text


def test_ctrl_c_ends_a_question(terminal: Start, process: list[str], pid_file: Path) -> None:
    run = terminal("call", "order", *process, PIDFILE=str(pid_file))
    run.until("Your name:")
    run.type("\x03")
    assert_ended(run, pid_file)


def test_ctrl_c_at_a_secret_has_the_terminal_show_what_is_typed_again(
    terminal: Start, process: list[str], pid_file: Path
) -> None:
    run = terminal("call", "unlock", *process, PIDFILE=str(pid_file))
    run.until("password:")
    run.type("canary")
    run.type("\x03")
    assert_ended(run, pid_file)
    assert b"canary" not in run.raw


@pytest.mark.parametrize("verb", [["list"], ["read", "x:y"], ["prompt", "x"], ["ping"]])
def test_ctrl_c_ends_the_other_verbs(
    terminal: Start, silent: Any, pid_file: Path, verb: list[str]
) -> None:
    run = terminal(*verb, *silent("initialize"), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    assert_ended(run, pid_file)


def test_ctrl_c_between_pings_still_prints_the_summary(
    terminal: Start, process: list[str], pid_file: Path
) -> None:
    run = terminal("ping", "-c", "3", "--interval", "60", *process, PIDFILE=str(pid_file))
    run.until("answer 1")
    run.type("\x03")
    assert_ended(run, pid_file)
    assert "1 sent, 1 answered; min " in run.text


def test_second_ctrl_c_does_not_wait_for_a_server_that_does_not_exit(
    terminal: Start, silent: Any, pid_file: Path
) -> None:
    run = terminal("call", "wait", *silent("close"), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.type("\x03")
    run.type("\x03")
    # The second may find an interpreter that ends, and has no handlers any more. A shell calls
    # that 130 too.
    assert_ended(run, pid_file, 130, -signal.SIGINT)


# Other signals


@pytest.mark.parametrize(("number", "status"), SIGNALS)
@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call", "close"])
def test_a_signal_ends_a_call_as_ctrl_c_does(
    terminal: Start, silent: Any, pid_file: Path, method: str, number: int, status: int
) -> None:
    run = terminal("call", "wait", *silent(method), PIDFILE=str(pid_file))
    run.until_there(pid_file.with_name("pid.silent"))
    run.send(number)
    assert_ended(run, pid_file, status)


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_at_a_secret_has_the_terminal_show_what_is_typed_again(
    terminal: Start, process: list[str], pid_file: Path, number: int, status: int
) -> None:
    run = terminal("call", "unlock", *process, PIDFILE=str(pid_file))
    run.until("password:")
    run.send(number)
    assert_ended(run, pid_file, status)


def in_the_background(
    words: list[str], pid_file: Path, ignored: int | None
) -> subprocess.Popen[bytes]:
    """Start the command without a terminal, with a signal ignored."""
    become = "import os, signal, sys; "
    if ignored is not None:
        become += f"signal.signal({int(ignored)}, signal.SIG_IGN); "
    return subprocess.Popen(
        [
            *(sys.executable, "-S", "-c", f"{become}os.execv(sys.argv[1], sys.argv[1:])"),
            *(sys.executable, "-m", "trunkline", *words),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PIDFILE": str(pid_file)},
        start_new_session=True,
    )


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_a_signal_ends_what_a_script_runs_in_the_background(
    silent: Any, pid_file: Path, number: int, status: int
) -> None:
    # Where Ctrl-C is ignored, others are not.
    words = ["call", "wait", *silent("tools/call")]
    with in_the_background(words, pid_file, signal.SIGINT) as run:
        until(pid_file.with_name("pid.silent").exists)
        run.send_signal(number)
        said = run.communicate(timeout=WAIT)
    assert (run.returncode, said) == (status, (b"", b""))
    assert not is_there(int(pid_file.read_text()))


def test_ignored_sighup_does_not_end_a_call(silent: Any, pid_file: Path) -> None:
    words = ["call", "wait", "--timeout", "1", *silent("tools/call")]
    with in_the_background(words, pid_file, signal.SIGHUP) as run:
        until(pid_file.with_name("pid.silent").exists)
        run.send_signal(signal.SIGHUP)
        run.communicate(timeout=WAIT)
    assert run.returncode == 3  # by its own time


# The beginning: the child is started before all else.


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), *(pytest.param(*each, marks=pytest.mark.full) for each in SIGNALS)],
)
def test_a_signal_at_any_moment_of_the_beginning_leaves_no_child(
    tmp_path: Path, number: int, status: int
) -> None:
    # A server that will not leave by itself.
    words = ["ping", "--", "sleep", "60"]
    endings: list[int] = []
    delay = 0
    # Longer where the machine is busy, until our code has run.
    while delay < 150 or (not endings and delay < 1000 * WAIT):
        mark = tmp_path / f"run-{delay}"
        with in_the_background(words, mark, None) as run:
            # It has become the command.
            until(lambda: b"-m\0trunkline\0" in Path(f"/proc/{run.pid}/cmdline").read_bytes())
            time.sleep(delay / 1000)
            run.send_signal(number)
            said = _said_until_the_end(run, number)
        assert not _marked(mark), f"after {delay} ms"
        if not _is_of_python(run.returncode, said, number):
            assert (run.returncode, said) == (status, b""), f"after {delay} ms"
            endings.append(delay)
        delay += 10
    assert endings  # some of them came when our code ran


# Which drops the exception of a signal that arrives before our code runs.
_DROPPED = b"Exception ignored in"


def _said_until_the_end(run: subprocess.Popen[bytes], number: int) -> bytes:
    """Return what a run writes to standard error, sending a signal again that Python dropped."""
    assert run.stderr is not None
    said = b""
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if select.select([run.stderr], [], [], 0.1)[0]:
            part = os.read(run.stderr.fileno(), 65536)
            if not part:
                run.wait(WAIT)
                return said
            if _DROPPED in said + part and _DROPPED not in said:
                run.send_signal(number)
            said += part
    run.kill()
    pytest.fail(f"still running: {said!r}")


# Raises a signal in the callback that the import system runs when it has imported a module.
_IN_A_CALLBACK = """
import signal, sys
number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
def on_event(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name == "cb" and code.co_filename.startswith("<frozen"):
        if frame.f_locals["name"] == module:
            sys.setprofile(None)
            signal.raise_signal(number)
sys.setprofile(on_event)
from trunkline.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("number", "status", "module"),
    [
        pytest.param(signal.SIGINT, 130, "argparse", id="SIGINT-without-a-child"),
        pytest.param(signal.SIGINT, 130, "asyncio.events", id="SIGINT-with-a-child"),
        pytest.param(signal.SIGTERM, 143, "asyncio.events", id="SIGTERM-with-a-child"),
    ],
)
def test_signal_in_a_callback_of_the_import_system_ends_the_command(
    number: int, status: int, module: str
) -> None:
    words = [*NEW_PYTHON, "-c", _IN_A_CALLBACK, str(int(number)), module]
    run = subprocess.run(
        [*words, "ping", "--", "sleep", "60"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (status, b"", b"")


def _is_of_python(status: int, said: bytes, number: int) -> bool:
    """Return True if a run was ended before our code could know of it."""
    if _DROPPED in said:
        return True
    if b"TypeError: expected a message argument" in said:
        return True  # what CPython makes of an interrupt while it initialises a C module
    return status == -number or (b"trunkline/cli" not in said and b"Traceback" in said)


def _marked(mark: Path) -> list[str]:
    """Return the processes that have a mark in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(mark) + b"\0" in (each / "environ").read_bytes():
                found.append(each.name)
        except OSError:
            pass  # somebody else's, or gone
    return found
