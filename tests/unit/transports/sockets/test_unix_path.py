"""The files of Unix sockets: who may use them, who may remove them, and what stays."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trunkline import TransportError
from trunkline.jsonrpc import Policy
from trunkline.transports.addresses import Unix
from trunkline.transports.sockets import unix_path
from trunkline.transports.sockets.listener import Listener
from trunkline.transports.sockets.unix_path import SocketFile

WAIT = 30.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


@contextmanager
def made(path: Path, mode: int = 0o600) -> Iterator[SocketFile]:
    file = SocketFile(Unix(path, mode=mode), backlog=8)
    try:
        yield file
    finally:
        file.remove()
        file.socket.close()


@contextmanager
def masked(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def leave_behind(path: Path) -> None:
    """Leave the file of a server that is gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
        gone.bind(str(path))


# Permissions


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
def test_the_file_has_the_permissions_that_were_asked_for(path: Path, mask: int, mode: int) -> None:
    with masked(mask), made(path, mode):
        assert mode_of(path) == mode


@pytest.mark.parametrize("mask", [0, 0o777])
@pytest.mark.parametrize("can_tell", [True, False])
def test_the_file_is_never_wider_than_asked_for_not_even_for_a_moment(
    path: Path, mask: int, can_tell: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both on systems that make the file as the socket is, and where the mask has to do it."""
    seen: list[int] = []
    lstat = os.lstat

    def look(where: Any) -> os.stat_result:
        if path.exists():
            seen.append(mode_of(path))
        return lstat(where)

    # The first thing that is done to the file, once it is there, is to look at it.
    monkeypatch.setattr(unix_path.os, "lstat", look)
    if not can_tell:
        monkeypatch.setattr(unix_path.os, "fchmod", refuse)
    with masked(mask):
        with made(path):
            assert seen
            assert not any(each & ~0o600 for each in seen)
            assert mode_of(path) == 0o600
        assert os.umask(mask) == mask  # it is put back


def refuse(*_: object) -> None:
    raise OSError(22, "not here")


# What is there already


def test_stale_socket_is_replaced(path: Path) -> None:
    leave_behind(path)
    with made(path):
        assert answers(path)
    assert not path.exists()


def test_socket_of_a_running_server_is_not_replaced(path: Path) -> None:
    with made(path):
        before = path.stat().st_ino
        with pytest.raises(TransportError, match="is in use: a server listens there"):
            SocketFile(Unix(path), backlog=8)
        assert path.stat().st_ino == before
        assert answers(path)


def test_a_server_whose_queue_is_full_is_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy:
        busy.bind(str(path))
        busy.listen(0)
        waiting = []
        try:
            while True:
                client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                client.setblocking(False)
                waiting.append(client)
                client.connect(str(path))
        except BlockingIOError:
            pass
        try:
            with pytest.raises(TransportError, match="in use"):
                SocketFile(Unix(path), backlog=8)
            assert path.exists()
        finally:
            for client in waiting:
                client.close()


def test_new_socket_file_accepts_connections_before_the_lock_is_released(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lets go of the folder listens already."""
    looked: list[bool] = []
    flock = fcntl.flock

    def look(handle: int, what: int) -> None:
        flock(handle, what)
        if path.exists():
            looked.append(answers(path))

    monkeypatch.setattr(unix_path.fcntl, "flock", look)
    with made(path):
        looked.append(answers(path))
        with pytest.raises(TransportError, match="in use"):
            SocketFile(Unix(path), backlog=8)
    assert looked
    assert all(looked)


@pytest.mark.parametrize("kind", ["file", "empty", "folder", "fifo", "link", "dangling"])
def test_path_that_is_not_a_socket_is_not_replaced(path: Path, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    if kind == "file":
        path.write_text("precious")
    elif kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        if kind == "link":
            leave_behind(other)
        path.symlink_to(other)
    before = path.lstat()
    with pytest.raises(TransportError, match="not a socket, and is not replaced"):
        SocketFile(Unix(path), backlog=8)
    assert path.lstat() == before or kind == "dangling"
    assert path.is_symlink() == (kind in ("link", "dangling"))
    assert other.exists() == (kind == "link")


def test_a_socket_of_another_kind_is_left_alone(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        with pytest.raises(TransportError, match="cannot be used"):
            SocketFile(Unix(path), backlog=8)
        assert path.exists()


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="cannot be listened on: No such file"):
        SocketFile(Unix(tmp_path / "no" / "s"), backlog=8)


def test_file_as_parent_folder_raises_transport_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TransportError, match="cannot be listened on: Not a directory"):
        SocketFile(Unix(tmp_path / "file" / "s"), backlog=8)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_unwritable_folder_raises_transport_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(TransportError, match="Permission denied"):
            SocketFile(Unix(tmp_path / "s"), backlog=8)
    finally:
        tmp_path.chmod(0o700)


def test_waiting_for_the_folder_lock_times_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody who may read a folder may lock it."""
    monkeypatch.setattr(unix_path, "_LOCK_TIMEOUT_S", 0.05)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        with made(path) as file:
            fcntl.flock(handle, fcntl.LOCK_EX)
            with pytest.raises(TransportError, match="locked"):
                SocketFile(Unix(path), backlog=8)
            file.remove()
            assert not path.exists()  # the end waits for nobody
    finally:
        os.close(handle)


def test_a_relative_path_in_a_deep_folder_makes_room_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of it would be longer than the system has room for."""
    folder = tmp_path / ("deep" * 20) / ("deeper" * 12)
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    relative = Path("s")
    leave_behind(relative)
    with made(relative):
        assert answers(relative)
    assert not relative.exists()


def test_permissions_are_not_given_to_what_took_the_place_of_the_file(path: Path) -> None:
    victim = path.parent / "victim"
    victim.write_text("private")
    victim.chmod(0o600)
    path.symlink_to(victim)
    unix_path._widen(str(path), 0o666)
    assert mode_of(victim) == 0o600


# The end


def test_a_file_that_took_the_place_of_ours_is_not_removed(path: Path) -> None:
    with made(path):
        path.unlink()
        path.write_text("precious")
    assert path.read_text() == "precious"


def test_another_servers_socket_in_place_of_ours_is_not_removed(path: Path) -> None:
    with made(path) as first:
        path.unlink()
        with made(path):
            first.remove()
            assert answers(path)
    assert not path.exists()


def test_the_end_removes_its_file_once_and_minds_nothing(path: Path) -> None:
    with made(path) as file:
        file.remove()
        assert not path.exists()
        file.remove()
    with made(path) as file:
        path.unlink()
        file.remove()
    path.parent.rename(path.parent.with_name("elsewhere"))
    file.remove()
    path.parent.with_name("elsewhere").rename(path.parent)


def test_the_end_finds_its_file_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = SocketFile(Unix("s"), backlog=8)
    assert (tmp_path / "s").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "s").write_text("precious")
    monkeypatch.chdir(elsewhere)
    file.remove()
    file.socket.close()
    assert not (tmp_path / "s").exists()
    assert (elsewhere / "s").read_text() == "precious"


def test_one_that_ends_does_not_remove_the_file_of_one_that_begins(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the system gives the new file the number of the old one, as many do."""

    async def script() -> None:
        first = Listener(Unix(path), Policy(), lambda _: None)
        await first.open()
        second = Listener(Unix(path), Policy(), lambda _: None)
        remove, began = SocketFile.remove, []

        def begin_first(self: SocketFile) -> None:
            if not began:
                began.append(True)
                try:
                    # As the other process would in this very moment.
                    taking_over = second.open()
                    taking_over.send(None)
                except StopIteration:
                    began.append(True)
                except TransportError:
                    pass
            remove(self)

        monkeypatch.setattr(SocketFile, "remove", begin_first)
        first.close()
        assert began
        if len(began) == 2:  # it was let in, so it has a file
            assert answers(path)
        else:
            assert not path.exists()
        second.close()
        assert not path.exists()

    asyncio.run(asyncio.wait_for(script(), WAIT))


# Several processes

SERVER = """
import asyncio, sys
from trunkline import TransportError
from trunkline.jsonrpc import Policy
from trunkline.transports.addresses import Unix
from trunkline.transports.sockets.listener import Listener

async def main():
    listener = Listener(Unix(sys.argv[1]), Policy(), lambda each: each.discard())
    sys.stdout.write("ready\\n"); sys.stdout.flush()
    sys.stdin.readline()
    try:
        await listener.open()
    except TransportError as error:
        print(error, flush=True)
        return
    print("listening", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    listener.close()

asyncio.run(main())
"""


@contextmanager
def servers(path: Path, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SERVER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for each in started:
            assert said(each) == "ready"
        yield started
    finally:
        for each in started:
            each.kill()
            each.communicate(timeout=WAIT)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("stale", [False, True])
def test_of_servers_that_start_at_the_same_moment_one_wins(path: Path, stale: bool) -> None:
    with servers(path, 8) as started:
        if stale:
            leave_behind(path)
        for each in started:
            tell(each)
        words = [said(each) for each in started]
        winners = [n for n, word in enumerate(words) if word == "listening"]
        assert len(winners) == 1, words
        losers = [word for word in words if word != "listening"]
        assert all("is in use" in word for word in losers), losers
        assert answers(path)
        tell(started[winners[0]])
        assert started[winners[0]].wait(WAIT) == 0
        assert not path.exists()


def test_the_file_of_a_server_that_was_killed_is_found_to_be_left_behind(path: Path) -> None:
    with servers(path, 1) as (doomed,):
        tell(doomed)
        assert said(doomed) == "listening"
        with pytest.raises(TransportError, match="in use"):
            SocketFile(Unix(path), backlog=8)
        doomed.send_signal(signal.SIGKILL)
        doomed.wait(WAIT)
    assert path.exists()
    with made(path):
        assert answers(path)
