"""`make soak` against a server with faults: a short run finds them all."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.rigs.conditions import WAIT_S


def soaked(kind: str, faults: str, seconds: str = "3") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.soak"]
    options = ["--seconds", seconds, "--warm-up", "0.5", "--settle", "0.5", kind]
    return subprocess.run(
        [*command, *options],
        env={**os.environ, "SOAK_FAULT": faults},
        capture_output=True,
        text=True,
        timeout=WAIT_S * 2,
        check=False,
    )


@pytest.mark.full
def test_a_soak_run_finds_what_a_server_leaks() -> None:
    done = soaked("unix", "memory,task,timer,descriptor,thread")
    assert done.returncode == 1, done.stderr
    assert "unix: server: RSS has grown from" in done.stdout
    (left,) = (line for line in done.stdout.splitlines() if "server: left behind" in line)
    for what in ("descriptors", "task Event.wait", "timer print", "thread kept"):
        assert what in left
    # What is as it should be is not reported.
    assert "not answered" not in done.stdout
    assert "twice" not in done.stdout
    assert "clients: left behind" not in done.stdout


@pytest.mark.full
def test_a_soak_run_over_http_finds_what_runs_twice_and_what_is_left() -> None:
    done = soaked("http", "twice,answers,session,memory,task", "2")
    assert done.returncode == 1, done.stderr
    assert "requests ran more than once" in done.stdout
    assert "requests were answered twice" in done.stdout
    assert "http: server: RSS has grown from" in done.stdout
    (left,) = (line for line in done.stdout.splitlines() if "server: left behind" in line)
    for what in ("task Event.wait", "sessions", "event_logs"):
        assert what in left
    assert "not answered" not in done.stdout
    assert "clients: left behind" not in done.stdout


@pytest.mark.full
def test_a_soak_run_finds_clients_that_suffer_from_a_flood_and_accounts_that_are_left() -> None:
    done = soaked("asgi", "shares,account")
    assert done.returncode == 1, done.stderr
    # Of clients that are not the flood: what that is refused is not reported.
    assert "asgi: 503 for" in done.stdout
    assert "Server overloaded" in done.stdout
    (left,) = (line for line in done.stdout.splitlines() if "server: left behind" in line)
    for what in ("accounts", "held_bytes"):
        assert what in left
    assert "clients: left behind" not in done.stdout
