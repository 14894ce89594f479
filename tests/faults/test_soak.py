"""`make soak` against a server with faults: a short run finds them all."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.faults.scene import WAIT


def test_a_soak_run_finds_what_a_server_leaks() -> None:
    faults = "memory,task,timer,descriptor,thread"
    command = [sys.executable, "-m", "tools.soak"]
    options = ["--seconds", "3", "--warm-up", "0.5", "--settle", "0.5", "unix"]
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, "SOAK_FAULT": faults},
        capture_output=True,
        text=True,
        timeout=WAIT * 2,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "unix: server: RSS has grown from" in done.stdout
    (left,) = (line for line in done.stdout.splitlines() if "server: left behind" in line)
    for what in ("descriptors", "task Event.wait", "timer print", "thread kept"):
        assert what in left
    # What is as it should be is not reported.
    assert "not answered" not in done.stdout
    assert "twice" not in done.stdout
    assert "clients: left behind" not in done.stdout
