"""Files that change, and which of them count."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trunkline.cli.reload.file_watch import FileWatch, is_own

# After whatever is written in these tests.
LATER = 2**62


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text("one")
    return path


def watching(file: Path, *trees: Path) -> FileWatch:
    watch = FileWatch(str(file.parent), [str(tree) for tree in trees])
    watch.expect([str(file)], LATER, is_complete=True)
    return watch


def test_a_file_that_is_left_alone_has_not_changed(file: Path) -> None:
    watch = watching(file)
    assert watch.changes() == []
    os.utime(file, ns=(1, file.stat().st_mtime_ns))
    assert watch.changes() == []


def test_change_is_reported_once(file: Path) -> None:
    watch = watching(file)
    file.write_text("two!")
    assert watch.changes() == [str(file)]
    assert watch.changes() == []


def test_a_file_that_is_put_in_the_place_of_another_has_changed(file: Path) -> None:
    watch = watching(file)
    other = file.with_name("other")
    other.write_text("two")
    os.utime(other, ns=(1, file.stat().st_mtime_ns))
    other.rename(file)
    assert watch.changes() == [str(file)]


def test_a_file_that_goes_and_comes_back_has_changed_twice(file: Path) -> None:
    watch = watching(file)
    file.unlink()
    assert watch.changes() == [str(file)]
    file.write_text("one")
    assert watch.changes() == [str(file)]


def test_a_change_while_it_was_loaded_is_not_missed(file: Path) -> None:
    watch = FileWatch(str(file.parent))
    before = time.time_ns() - 10**9
    watch.expect([str(file)], before, is_complete=True)
    assert watch.changes() == [str(file)]
    assert watch.changes() == []


def test_a_change_of_a_known_file_while_it_was_loaded_is_not_missed(file: Path) -> None:
    watch = watching(file)
    file.write_text("two!")
    watch.expect([str(file)], LATER, is_complete=True)
    assert watch.changes() == [str(file)]


def test_other_files_in_the_folder_count_only_while_something_is_missing(file: Path) -> None:
    watch = watching(file)
    other = file.with_name("other.py")
    other.write_text("x")
    assert watch.changes() == []
    watch.expect([], LATER, is_complete=False)
    assert watch.changes() == []
    other.write_text("changed")
    new = file.with_name("new.py")
    new.write_text("x")
    file.write_text("two!")
    assert watch.changes() == sorted(map(str, (file, other, new)))
    watch.expect([str(file)], LATER, is_complete=True)
    other.write_text("changed again")
    assert watch.changes() == []


def test_files_elsewhere_and_of_others_do_not_count(file: Path, tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert is_own(f"{folder}/part/a.py", folder)
    for inside in (".venv/lib/a.py", "node_modules/a.py", "part/__pycache__/a.py", "venv/a.py"):
        assert not is_own(f"{folder}/{inside}", folder)
    assert not is_own(os.__file__, folder)
    assert not is_own(str(tmp_path.parent / "a.py"), folder)
    watch = FileWatch(folder)
    watch.expect([os.__file__], 0, is_complete=True)
    assert watch.changes() == []


def test_a_folder_that_was_named_is_watched_with_all_in_it(file: Path, tmp_path: Path) -> None:
    more = tmp_path / "more" / "inner"
    more.mkdir(parents=True)
    (more / "old.py").write_text("")
    watch = watching(file, tmp_path / "more")
    assert watch.changes() == []
    (more / "new.py").write_text("")
    (more / "notes.txt").write_text("")
    (more / ".hidden.py").write_text("")
    hidden = more / ".venv"
    hidden.mkdir()
    (hidden / "a.py").write_text("")
    assert watch.changes() == [str(more / "new.py")]
    (more / "old.py").unlink()
    assert watch.changes() == [str(more / "old.py")]
    assert watch.changes() == []


def test_number_of_watched_files_is_bounded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.cli.reload.file_watch._MAX_FILES", 3)
    more = tmp_path / "more"
    more.mkdir()
    watch = watching(file, more)
    for number in range(10):
        (more / f"{number}.py").write_text("")
    assert len(watch.changes()) == 3
