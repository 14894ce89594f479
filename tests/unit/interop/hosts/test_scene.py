"""`interop/hosts/scene.py`: a run with a small host, and what it must not touch or leave."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from interop.hosts import scene
from interop.hosts.facts import facts_of, judged_host
from interop.hosts.model import SCRIPT
from interop.hosts.rows import NODE, Host
from interop.hosts.run import problems
from interop.hosts.scene import WAYS, _Scene, run_host, transport_of

FAKE = Path(__file__).resolve().parent / "fake_host.py"
WAIT_S = 20.0


def host(program: Path, *arguments: str) -> Host:
    """Return a host that Python runs, and that has the file of Claude Code."""
    words = (NODE, str(program))
    return Host(title="Fake", id="claude-code", package="x", program=words, arguments=arguments)


@pytest.mark.parametrize("way", WAYS)
def test_a_host_reads_the_entry_connects_and_calls_every_tool(way: str, tmp_path: Path) -> None:
    fake = host(FAKE, "{model}", "{project}/.mcp.json" if way == "project" else ".claude.json")
    run = asyncio.run(run_host(fake, way, tmp_path / "run", tmp_path, sys.executable))
    facts, judged = facts_of(run.recordings), judged_host(run.recordings, transport_of(way))
    assert judged.errors() == []
    assert problems(fake, run, facts, []) == []
    assert facts.revision == "2026-07-28"
    assert list(facts.calls) == [step.tool for step in SCRIPT]
    assert (facts.asked, facts.calls["audit_books"]) == ("decline", "failed")


def test_a_host_that_fails_is_described_with_what_it_printed(tmp_path: Path) -> None:
    program = tmp_path / "host.py"
    program.write_text("raise SystemExit('no model here')")
    run = asyncio.run(run_host(host(program), "stdio", tmp_path / "run", tmp_path, sys.executable))
    assert run.failure.startswith("exited with 1: ")
    assert "no model here" in run.failure
    assert run.recordings == []


def test_no_variable_of_the_developer_reaches_a_host_and_its_folders_are_those_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/home/developer")
    program = tmp_path / "host.py"
    program.write_text("import json, os; print('SEEN', json.dumps(dict(os.environ)))")
    asyncio.run(run_host(host(program), "stdio", tmp_path / "run", tmp_path, sys.executable))
    log = (tmp_path / "run" / "host.log").read_text()
    seen = json.loads(log.partition("SEEN ")[2])
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"} & set(seen)
    assert "canary" not in log
    folders = [seen[name] for name in seen if name == "HOME" or name.startswith("XDG_")]
    assert len(folders) == 5
    assert all(Path(each).is_relative_to(tmp_path / "run") for each in folders)


def test_files_of_a_row_are_in_its_home_with_the_url_of_the_model(tmp_path: Path) -> None:
    row = host(FAKE)
    filled = Host(**{**vars(row), "files": {".x/settings": "at {model}"}})
    made = _Scene(filled, tmp_path / "run", "http://127.0.0.1:1", tmp_path, sys.executable)
    assert (made.home / ".x" / "settings").read_text() == "at http://127.0.0.1:1"


@pytest.mark.skipif(
    sys.platform != "linux", reason="a process that left its group is found by /proc"
)
def test_a_process_that_left_the_group_of_the_host_ends_with_the_run(tmp_path: Path) -> None:
    child = "import time; time.sleep(600)"
    program = tmp_path / "host.py"
    program.write_text(
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        "print('CHILD', child.pid)\n"
    )
    made = _Scene(host(program), tmp_path / "run", "", tmp_path, sys.executable)
    assert asyncio.run(made.start(made.program())) == 0
    pid = int(made.log.read_text().split()[1])
    until = time.monotonic() + WAIT_S
    while is_running(pid):
        assert time.monotonic() < until, "the child of the host runs on"
        time.sleep(0.01)


def test_an_entry_of_a_project_is_approved_before_the_host_runs(tmp_path: Path) -> None:
    program = tmp_path / "host.py"
    program.write_text("import sys; print('RUN', sys.argv[1:])")
    row = Host(**{**vars(host(program, "go")), "approve": ("approve",), "project": "read"})
    for way in ("project", "stdio"):
        asyncio.run(run_host(row, way, tmp_path / way, tmp_path, sys.executable))
    logs = {way: (tmp_path / way / "host.log").read_text() for way in ("project", "stdio")}
    runs = {way: [line for line in log.split("\n") if "RUN" in line] for way, log in logs.items()}
    assert runs == {"project": ["RUN ['approve']", "RUN ['go']"], "stdio": ["RUN ['go']"]}


def test_a_host_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene, "TIMEOUT_S", 0.2)
    program = tmp_path / "host.py"
    program.write_text("import time; time.sleep(600)")
    made = _Scene(host(program), tmp_path / "run", "", tmp_path, sys.executable)
    with pytest.raises(TimeoutError):
        asyncio.run(made.start(made.program()))


def is_running(pid: int) -> bool:
    """Return True if a process runs; one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and os.path.exists(f"/proc/{pid}")
