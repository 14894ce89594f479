"""Tokens in files: private, replaced as a whole, one process at a time."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trunkline.auth.client.storage import file_lock as locks
from trunkline.auth.client.storage import file_tokens
from trunkline.auth.client.storage.file_tokens import MAX_FILE_BYTES, FileTokens, default_folder
from trunkline.errors import AuthorizationFailed

KEY = "https://files.example.org/mcp https://login.example.org"
CANARY = b"CANARY-31f8"


@pytest.fixture
def tokens(tmp_path: Path) -> FileTokens:
    return FileTokens(tmp_path / "state" / "tokens")


def only_file(tokens: FileTokens) -> Path:
    (found,) = Path(tokens.path).glob("*.json")
    return found


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_record_is_loaded_until_it_is_deleted(tokens: FileTokens) -> None:
    assert tokens.load(KEY) is None
    tokens.delete(KEY)
    tokens.store(KEY, b"one")
    tokens.store("another", b"two")
    assert tokens.load(KEY) == b"one"
    assert set(tokens.records()) == {b"one", b"two"}
    tokens.store(KEY, b"three")
    assert tokens.load(KEY) == b"three"
    tokens.delete(KEY)
    assert tokens.load(KEY) is None
    assert list(tokens.records()) == [b"two"]


def test_folder_and_files_are_private_whatever_the_umask(tokens: FileTokens) -> None:
    before = os.umask(0)
    try:
        tokens.store(KEY, b"one")
        asyncio.run(hold(tokens))
    finally:
        os.umask(before)
    assert mode(tokens.path) == 0o700
    assert {mode(path) for path in Path(tokens.path).iterdir()} == {0o600}


async def hold(tokens: FileTokens) -> None:
    async with tokens.lock(KEY):
        pass


def test_file_names_do_not_reveal_the_key(tokens: FileTokens) -> None:
    tokens.store(KEY, b"one")
    asyncio.run(hold(tokens))
    for path in Path(tokens.path).iterdir():
        assert "example" not in path.name
        assert len(path.name.partition(".")[0]) == 64
    assert "example" not in repr(tokens)


def test_a_file_that_others_can_read_is_refused(tokens: FileTokens) -> None:
    tokens.store(KEY, CANARY)
    for bits in (0o640, 0o604, 0o620):
        only_file(tokens).chmod(bits)
        with pytest.raises(AuthorizationFailed, match=r"reached by other users.*chmod 600") as one:
            tokens.load(KEY)
        assert CANARY.decode() not in str(one.value)
    tokens.store("another", b"two")
    assert {type(each) for each in tokens.records()} == {AuthorizationFailed, bytes}


def test_a_folder_that_others_can_reach_is_refused(tokens: FileTokens) -> None:
    tokens.store(KEY, CANARY)
    os.chmod(tokens.path, 0o750)
    for use in (lambda: tokens.load(KEY), lambda: tokens.store(KEY, b""), lambda: tokens.lock(KEY)):
        with pytest.raises(AuthorizationFailed, match="chmod 700"):
            use()


def test_symbolic_links_are_not_followed(tokens: FileTokens, tmp_path: Path) -> None:
    tokens.store(KEY, b"one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(CANARY)
    elsewhere.chmod(0o600)
    path = only_file(tokens)
    path.unlink()
    path.symlink_to(elsewhere)
    with pytest.raises(AuthorizationFailed, match="is a symbolic link"):
        tokens.load(KEY)
    # A new login replaces the link, and not what it leads to.
    tokens.store(KEY, b"two")
    assert tokens.load(KEY) == b"two"
    assert elsewhere.read_bytes() == CANARY


def test_a_lock_that_is_a_symbolic_link_is_refused(tokens: FileTokens, tmp_path: Path) -> None:
    asyncio.run(hold(tokens))
    (lock,) = Path(tokens.path).glob("*.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "made-by-the-lock")
    with pytest.raises(AuthorizationFailed, match="the lock of the tokens cannot be opened"):
        asyncio.run(hold(tokens))
    assert not (tmp_path / "made-by-the-lock").exists()


def test_a_folder_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "file").touch(0o600)
    for name in ("link", "file"):
        with pytest.raises(AuthorizationFailed, match="is not a folder"):
            FileTokens(tmp_path / name).store(KEY, b"one")
    assert list(real.iterdir()) == []


def test_a_fifo_in_place_of_a_file_does_not_block(tokens: FileTokens) -> None:
    tokens.store(KEY, b"one")
    path = only_file(tokens)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(AuthorizationFailed, match="is not a file"):
        tokens.load(KEY)


def test_a_file_that_is_too_large_is_refused(tokens: FileTokens) -> None:
    tokens.store(KEY, bytes(MAX_FILE_BYTES + 1))
    with pytest.raises(AuthorizationFailed, match="has more than"):
        tokens.load(KEY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_another_user_are_refused(tokens: FileTokens) -> None:
    tokens.store(KEY, b"one")
    os.chown(only_file(tokens), 12345, -1)
    with pytest.raises(AuthorizationFailed, match="belongs to another user"):
        tokens.load(KEY)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tokens: FileTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens.store(KEY, b"one")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AuthorizationFailed, match="cannot be written: No space left"):
        tokens.store(KEY, b"two")
    assert tokens.load(KEY) == b"one"
    assert len(list(Path(tokens.path).iterdir())) == 1


def test_the_default_folder_follows_xdg_state_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_folder() == f"{tmp_path}/.local/state/trunkline/tokens"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_folder() == f"{tmp_path}/.local/state/trunkline/tokens"
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}/other")
    assert FileTokens().path == f"{tmp_path}/other/trunkline/tokens"


def test_temporary_file_of_a_killed_process_is_removed_by_the_next_change(
    tokens: FileTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def left() -> list[str]:
        return [each.name for each in Path(tokens.path).iterdir() if b"one" in each.read_bytes()]

    for end in (lambda: tokens.store(KEY, b"two"), lambda: tokens.delete(KEY)):
        tokens.store("another", b"other")
        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", killed)
            patched.setattr(file_tokens, "_unlink", lambda _: None)
            with pytest.raises(KeyboardInterrupt):
                tokens.store(KEY, b"one")
        assert len(left()) == 1
        end()
        assert left() == []
        assert tokens.load("another") == b"other"


def test_a_folder_in_place_of_a_file_is_refused(tokens: FileTokens) -> None:
    tokens.store(KEY, b"one")
    path = only_file(tokens)
    path.unlink()
    path.mkdir(mode=0o700)
    with pytest.raises(AuthorizationFailed, match="is not a file"):
        tokens.load(KEY)
    assert [str(each) for each in tokens.records()] == [
        f"storage: {str(path)!r} is not a file",
    ]


def test_without_a_home_nothing_is_written_below_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    tokens = FileTokens()
    assert tokens.load(KEY) is None
    assert list(tokens.records()) == []
    with pytest.raises(AuthorizationFailed, match="XDG_STATE_HOME"):
        tokens.store(KEY, b"one")
    with pytest.raises(AuthorizationFailed, match="XDG_STATE_HOME"):
        asyncio.run(hold(tokens))
    assert list(tmp_path.iterdir()) == []


COUNT = """
import asyncio, sys
from trunkline.auth.client.storage.file_tokens import FileTokens
from trunkline.auth.client.storage import file_lock

if sys.argv[2] == "without-flock":
    file_lock.fcntl = None
tokens = FileTokens(sys.argv[1])

async def main():
    for _ in range(20):
        async with tokens.lock("key"):
            number = int(tokens.load("key") or b"0")
            await asyncio.sleep(0)
            tokens.store("key", str(number + 1).encode())

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["flock", "without-flock"])
def test_processes_that_count_together_lose_nothing(tmp_path: Path, kind: str) -> None:
    folder = str(tmp_path / "tokens")
    command = [sys.executable, "-c", COUNT, folder, kind]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    assert FileTokens(folder).load("key") == b"60"


HOLD = """
import asyncio, sys
from trunkline.auth.client.storage.file_tokens import FileTokens

async def main():
    async with FileTokens(sys.argv[1]).lock("key"):
        print("held", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    folder = tmp_path / "tokens"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (path,) = folder.glob("*.lock")

        async def wait(timeout: float) -> None:
            async with locks.file_lock(str(path), timeout=timeout):
                pass

        with pytest.raises(AuthorizationFailed, match="another process has held the lock"):
            asyncio.run(wait(0.02))
        holder.kill()
    asyncio.run(wait(30))


def test_without_flock_a_stale_lock_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    path = tmp_path / "key.lock"
    left = tmp_path / "key.locked"
    left.touch()

    async def take() -> None:
        async with locks.file_lock(str(path), timeout=0.02):
            assert left.exists()

    with pytest.raises(AuthorizationFailed, match="another process"):
        asyncio.run(take())
    old = time.time() - 2 * locks.MAX_HELD_S
    os.utime(left, (old, old))
    asyncio.run(take())
    assert list(tmp_path.iterdir()) == []


def test_tasks_of_one_process_take_turns(tokens: FileTokens) -> None:
    inside: list[int] = []

    async def work() -> None:
        async with tokens.lock(KEY):
            inside.append(1)
            await asyncio.sleep(0.001)
            assert inside == [1]
            inside.clear()

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(5)))

    asyncio.run(main())
