"""A process that tests fork is started as one that the system starts, but has the library."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forked_python import NEW_PYTHON, is_forking

pytestmark = pytest.mark.skipif(not is_forking(), reason="this platform does not fork")

# Writes what a process can know of its own start.
REPORT = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv, "path": sys.path[0], "name": __name__, "file": __file__,
    "parent": os.getppid(), "folder": os.getcwd(), "leads": os.getsid(0) == os.getpid(),
    "variable": os.environ.get("VARIABLE"), "home": os.environ.get("HOME"),
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
    "buffered": [sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering],
    "writes": not sys.dont_write_bytecode,
    "encodings": [sys.stdin.encoding, sys.stdout.encoding, sys.stderr.errors],
    "text": sys.stdin.read(),
}))
"""
# Sends the main thread a signal from another one, while it waits in a system call.
SIGNALS_ITSELF = """
import signal, threading, time
signal.signal(signal.SIGHUP, lambda *_: print(threading.current_thread().name))
send = lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGHUP)
threading.Timer(0.05, send).start()
signal.pause()
"""
IS_IMPORTED = "import sys; print('trunkline.server' in sys.modules)\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def report(command: list[str], **options: Any) -> Any:
    done = subprocess.run(
        command, input="héllo\r\n", stdout=subprocess.PIPE, text=True, check=True, **options
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("flags", [[], ["-u"]])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cwd": "/"},
        {"env": {**os.environ, "VARIABLE": "value"}},
        {"env": {**os.environ, "PYTHONUNBUFFERED": "", "PYTHONDONTWRITEBYTECODE": "1"}},
        {"env": {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}},
        {"start_new_session": True},
        {"stderr": subprocess.DEVNULL},
    ],
)
def test_a_forked_process_is_as_one_that_was_started(
    script: Path, flags: list[str], options: dict[str, Any]
) -> None:
    script.write_text(REPORT)
    words = [*flags, str(script), "one", "zwei é"]
    forked = report([sys.executable, *words], **options)
    assert forked == report([*NEW_PYTHON, *words], **options)
    assert forked["parent"] == os.getpid()


def test_the_main_thread_of_a_forked_process_takes_signals_of_another_thread(script: Path) -> None:
    script.write_text(SIGNALS_ITSELF)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=30
    )
    assert (done.stdout, done.stderr) == ("MainThread\n", "")


def test_a_forked_process_keeps_the_descriptors_that_it_is_passed(script: Path) -> None:
    script.write_text("import os, sys; os.write(int(sys.argv[1]), b'said')")
    ours, theirs = os.pipe()
    subprocess.run([sys.executable, script, str(theirs)], pass_fds=[theirs], check=True)
    os.close(theirs)
    with open(ours) as file:
        assert file.read() == "said"


def test_only_a_plain_command_is_forked(script: Path) -> None:
    script.write_text(IS_IMPORTED)

    def is_imported(*command: Any, **options: Any) -> bool:
        done = subprocess.run([*command], capture_output=True, text=True, check=True, **options)
        return done.stdout == "True\n"

    assert is_imported(sys.executable, str(script))
    assert is_imported(sys.executable, script.name, cwd=script.parent)
    assert not is_imported(*NEW_PYTHON, str(script))
    assert not is_imported(sys.executable, "-c", IS_IMPORTED)
    assert not is_imported(sys.executable, script, env={**os.environ, "PYTHONHASHSEED": "1"})
    assert not is_imported(sys.executable, script, preexec_fn=lambda: None)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('why')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("atexit.register(print, 'at exit'); sys.stdout.close(); os.close(1)", 0),
        ("threading.Thread(target=lambda: (time.sleep(0.1), os._exit(7))).start()", 7),
    ],
)
def test_a_forked_process_ends_as_one_that_was_started(
    script: Path, line: str, status: int
) -> None:
    script.write_text(f"import atexit, os, signal, sys, threading, time\n{line}\n")
    for python in ([sys.executable], NEW_PYTHON):
        done = subprocess.run([*python, script], stderr=subprocess.PIPE)
        assert done.returncode == status


def test_a_forked_process_can_be_interrupted_and_waited_for(script: Path) -> None:
    script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(30) == -signal.SIGINT
        assert time.monotonic() - began < 30
