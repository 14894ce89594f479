"""Files of one user: no link, no FIFO, no file of another user is opened."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from trunkline.private_file import UnsafeFile, open_own, open_private

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
WAYS = pytest.mark.parametrize("flags", [os.O_RDONLY, APPEND], ids=["read", "append"])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        os.close(open_own(tmp_path / "new", APPEND))
    finally:
        os.umask(previous)
    assert mode_of(tmp_path / "new") == 0o600


def test_a_shared_file_is_made_private_by_open_private_alone(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.touch()
    path.chmod(0o666)
    os.close(open_own(path, os.O_RDONLY))
    assert mode_of(path) == 0o666
    os.close(open_private(path, os.O_RDONLY))
    assert mode_of(path) == 0o600


@WAYS
@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_not_followed(tmp_path: Path, flags: int, exists: bool) -> None:
    if exists:
        (tmp_path / "target").touch(0o644)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UnsafeFile, match="is a symbolic link, and is not followed"):
        open_private(tmp_path / "link", flags)
    assert (tmp_path / "target").exists() == exists
    if exists:
        assert mode_of(tmp_path / "target") == 0o644


@WAYS
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_a_fifo_is_refused_at_once(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UnsafeFile, match="is not a file"):
        open_private(tmp_path / "fifo", flags)
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(UnsafeFile, match="is not a file"):
            open_private(tmp_path / "fifo", flags)
    finally:
        os.close(reader)


def test_devices_folders_and_sockets_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path in (os.devnull, str(tmp_path), str(tmp_path / "socket")):
            with pytest.raises(UnsafeFile, match="is not a file"):
                open_private(path, os.O_RDONLY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@WAYS
def test_a_file_of_another_user_is_refused_and_left_as_it_is(tmp_path: Path, flags: int) -> None:
    path = tmp_path / "foreign"
    path.touch(0o644)
    os.chown(path, 12345, -1)
    with pytest.raises(UnsafeFile, match="belongs to another user"):
        open_private(path, flags)
    assert mode_of(path) == 0o644


def test_a_refused_file_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        with pytest.raises(UnsafeFile):
            open_own(tmp_path, os.O_RDONLY)
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_other_errors_are_those_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_own(tmp_path / "absent", os.O_RDONLY)
