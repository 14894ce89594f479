"""Files that are changed while other things go wrong: the old text or the new one, never less."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline.hosts import write
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.write import MAX_BACKUPS, change_file


def add(name: str) -> Callable[[str], str]:
    def edit(text: str) -> str:
        found = json.loads(text or "[]")
        return json.dumps([*found, name])

    return edit


def others(path: Path) -> list[str]:
    """Return what is beside a file."""
    return sorted(each.name for each in path.parent.iterdir() if each.name != path.name)


def test_a_file_is_changed_and_the_old_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('["a"]')
    backup = change_file(str(path), add("b"))
    assert json.loads(path.read_text()) == ["a", "b"]
    assert backup == f"{path}.bak.1"
    assert Path(backup).read_text() == '["a"]'
    assert others(path) == ["f.json.bak.1"]


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    assert change_file(str(path), add("a")) is None
    assert json.loads(path.read_text()) == ["a"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert others(path) == []
    other = tmp_path / "g.json"
    change_file(str(other), add("a"), mode=0o644)
    assert stat.S_IMODE(other.stat().st_mode) == 0o644


def test_a_text_that_stays_the_same_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("x")
    before = path.stat()
    assert change_file(str(path), lambda text: text) is None
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert others(path) == []


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o400])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "f.json"
    path.write_text("[]")
    path.chmod(mode)
    backup = change_file(str(path), add("a"))
    assert backup is not None
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(os.stat(backup).st_mode) == mode


def test_bytes_of_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    data = b"\xef\xbb\xbfa\r\nb\rc\n\xc3\xa4\x0c"
    path.write_bytes(data)
    change_file(str(path), lambda text: text + "!")
    assert path.read_bytes() == data + b"!"


def test_a_link_stays_and_its_file_is_changed(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "real.json"
    real.write_text("[]")
    link = tmp_path / "f.json"
    link.symlink_to("dotfiles/real.json")
    backup = change_file(str(link), add("a"))
    assert os.readlink(link) == "dotfiles/real.json"
    assert json.loads(real.read_text()) == ["a"]
    assert backup == f"{real}.bak.1"


def test_a_link_to_nothing_stays_and_its_file_is_made(tmp_path: Path) -> None:
    link = tmp_path / "f.json"
    link.symlink_to("real.json")
    change_file(str(link), add("a"))
    assert link.is_symlink()
    assert json.loads((tmp_path / "real.json").read_text()) == ["a"]


def test_the_newest_backups_stay(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("[]")
    (tmp_path / "f.json.bak").write_text("of somebody else")
    for number in range(MAX_BACKUPS + 3):
        change_file(str(path), add(str(number)))
    kept = [each for each in others(path) if ".bak." in each]
    assert kept == [f"f.json.bak.{number}" for number in range(4, MAX_BACKUPS + 4)]
    assert (tmp_path / "f.json.bak").read_text() == "of somebody else"
    assert json.loads((tmp_path / f"f.json.bak.{MAX_BACKUPS + 3}").read_text()) == [
        str(each) for each in range(MAX_BACKUPS + 2)
    ]


def test_backup_is_a_copy_on_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    path = tmp_path / "f.json"
    path.write_text("[]")
    path.chmod(0o640)
    backup = change_file(str(path), add("a"))
    assert backup is not None
    assert Path(backup).read_text() == "[]"
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod", "link", "open"])
def test_a_failure_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "f.json"
    path.write_text('["a"]')
    real_open = os.open

    def fail(*given: object, **_: object) -> int:
        if call == "open" and not (isinstance(given[1], int) and given[1] & os.O_CREAT):
            return real_open(*given)  # type: ignore[arg-type]  # as it was called
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(HostConfigError, match=r"not changed: .*No space left on device"):
        change_file(str(path), add("b"))
    monkeypatch.undo()
    assert path.read_text() == '["a"]'
    assert others(path) == []
    change_file(str(path), add("b"))
    assert json.loads(path.read_text()) == ["a", "b"]


def test_a_folder_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.json"
    path.write_text("[]")
    real_open = os.open

    def no_new_files(name: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real_open(name, flags, mode)

    monkeypatch.setattr(os, "open", no_new_files)
    with pytest.raises(HostConfigError, match=r"not changed: .*Permission denied"):
        change_file(str(path), add("a"))
    assert path.read_text() == "[]"


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostConfigError, match="No such file or directory"):
        change_file(str(tmp_path / "none" / "f.json"), add("a"))


def test_exception_in_an_edit_is_raised_and_the_file_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("not json")
    with pytest.raises(ValueError):
        change_file(str(path), add("a"))
    assert path.read_text() == "not json"
    assert others(path) == []


def test_a_file_that_is_not_text_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(HostConfigError, match="not UTF-8"):
        change_file(str(path), add("a"))
    assert path.read_bytes() == b"\xff\xfe"


@pytest.mark.parametrize("is_atomic", [True, False])
def test_concurrent_write_by_another_program_is_kept(tmp_path: Path, is_atomic: bool) -> None:
    path = tmp_path / "f.json"
    path.write_text('["a"]')
    seen: list[str] = []

    def edit(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            # The host saves its own change after the file was read.
            if is_atomic:
                (tmp_path / "new").write_text('["a", "host"]')
                os.replace(tmp_path / "new", path)
            else:
                path.write_text('["a", "host"]')
        return add("b")(text)

    change_file(str(path), edit)
    assert seen == ['["a"]', '["a", "host"]']
    assert json.loads(path.read_text()) == ["a", "host", "b"]
    assert json.loads((tmp_path / "f.json.bak.1").read_text()) == ["a", "host"]
    assert others(path) == ["f.json.bak.1"]


def test_a_file_that_another_program_makes_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f.json"

    def edit(text: str) -> str:
        if not text:
            path.write_text('["host"]')
        return add("a")(text)

    change_file(str(path), edit)
    assert json.loads(path.read_text()) == ["host", "a"]


def test_file_that_changes_during_every_attempt_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("[]")
    count = 0

    def edit(text: str) -> str:
        nonlocal count
        count += 1
        path.write_text(f'["{count}"]')
        return add("a")(text)

    with pytest.raises(HostConfigError, match="another program keeps writing it"):
        change_file(str(path), edit)
    assert json.loads(path.read_text()) == [str(count)]
    assert others(path) == []


def test_a_lock_that_is_held_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr(write, "_LOCK_TIMEOUT_S", 0.0)
    file = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(HostConfigError, match="another process holds its lock"):
            change_file(str(tmp_path / "f.json"), add("a"))
    finally:
        os.close(file)
    change_file(str(tmp_path / "f.json"), add("a"))


def test_a_file_system_without_locks_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    change_file(str(tmp_path / "f.json"), add("a"))
    assert json.loads((tmp_path / "f.json").read_text()) == ["a"]


def test_without_flock_a_file_is_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_HAS_FLOCK", False)
    monkeypatch.setattr(write, "_LOCK_TIMEOUT_S", 0.0)
    path = tmp_path / "f.json"
    lock = tmp_path / ".f.json.trunkline-lock"

    def edit(text: str) -> str:
        assert lock.exists()
        with pytest.raises(HostConfigError, match="another process holds its lock"):
            change_file(str(path), add("no"))
        return add("a")(text)

    change_file(str(path), edit)
    assert json.loads(path.read_text()) == ["a"]
    assert others(path) == []
    # Of a process that was killed.
    lock.touch()
    os.utime(lock, (0, 0))
    monkeypatch.setattr(write, "_LOCK_TIMEOUT_S", 10.0)
    change_file(str(path), add("b"))
    assert json.loads(path.read_text()) == ["a", "b"]
    assert others(path) == ["f.json.bak.1"]


# Real processes

KILLED = """
import os, signal, sys
from trunkline.hosts.write import change_file
real = getattr(os, sys.argv[2])
def die(*given, **named):
    if sys.argv[3] == "after":
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], die)
change_file(sys.argv[1], lambda text: text + "new " * 100000)
"""


@pytest.mark.parametrize(
    ("call", "when", "is_written"),
    [
        ("fsync", "before", False),
        ("fsync", "after", False),
        ("link", "before", False),
        ("link", "after", False),
        ("replace", "before", False),
        ("replace", "after", True),
    ],
)
def test_a_process_that_is_killed_in_the_middle_leaves_a_whole_file(
    tmp_path: Path, call: str, when: str, is_written: bool
) -> None:
    path = tmp_path / "f.json"
    path.write_text("old ")
    run = subprocess.run([sys.executable, "-c", KILLED, str(path), call, when], timeout=60)
    assert run.returncode == -signal.SIGKILL
    text = path.read_text()
    assert text == ("old " + "new " * 100_000 if is_written else "old ")
    # The next process is not kept out, and cleans up.
    change_file(str(path), lambda text: text + "next")
    assert path.read_text() == text + "next"
    assert not [each for each in others(path) if each.endswith(".tmp")]


ADDING = """
import json, sys
from trunkline.hosts.write import change_file
def add(name):
    def edit(text):
        found = json.loads(text or "[]")
        return json.dumps([*found, name])
    return edit
sys.stdin.readline()
for number in range(10):
    change_file(sys.argv[1], add(f"{sys.argv[2]}-{number}"))
"""


def test_several_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", ADDING, str(path), str(each)], stdin=subprocess.PIPE
        )
        for each in range(4)
    ]
    try:
        for run in runs:
            assert run.stdin is not None
            run.stdin.write(b"go\n")
            run.stdin.flush()
        assert [run.wait(60) for run in runs] == [0] * len(runs)
    finally:
        for run in runs:
            run.kill()
            run.wait(60)
            assert run.stdin is not None
            run.stdin.close()
    found = json.loads(path.read_text())
    assert sorted(found) == sorted(f"{one}-{two}" for one in range(4) for two in range(10))
    assert len([each for each in others(path) if ".bak." in each]) == MAX_BACKUPS
