"""Skills on disk: which are found, which are unfit, and what is read again."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tests.unit.skills.shelves import skill, write
from trunkline.skills import folder
from trunkline.skills.entries import MAX_SKILL_BYTES
from trunkline.skills.folder import SkillFile, read_inside, scan


def only_fault(path: Path) -> str:
    shelf = scan([path])
    assert shelf.skills == {}
    assert shelf.files == {}
    [fault] = shelf.faults
    return str(fault)


def test_a_folder_is_searched_for_skills(tmp_path: Path) -> None:
    skill(tmp_path)
    skill(tmp_path / "acme" / "billing", "refunds")
    write(tmp_path, {"README.md": "not a skill"})
    shelf = scan([tmp_path])
    assert list(shelf.skills) == ["skill://acme/billing/refunds/SKILL.md", "skill://pdf/SKILL.md"]
    assert set(shelf.files) == set(shelf.skills)
    assert shelf.faults == ()


def test_a_folder_with_a_skill_file_is_a_skill(tmp_path: Path) -> None:
    assert list(scan([skill(tmp_path)]).skills) == ["skill://pdf/SKILL.md"]


def test_an_entry_lists_every_file_with_size_and_digest(tmp_path: Path) -> None:
    home = skill(tmp_path)
    write(home, {"references/FORMS.md": "abc", "a b/ü#.bin": b"\xff"})
    entry = scan([tmp_path]).skills["skill://pdf/SKILL.md"]
    assert isinstance(entry.resources, list)
    found = {each.uri: (each.size, each.digest[:14]) for each in entry.resources}
    assert found["skill://pdf/references/FORMS.md"] == (3, "sha256:ba7816b")
    assert found["skill://pdf/a%20b/%C3%BC%23.bin"] == (1, "sha256:a8100ae")
    assert len(found) == 3


def test_a_skill_in_a_skill_is_one_and_its_files_are_of_both(tmp_path: Path) -> None:
    skill(skill(tmp_path), "inner")
    shelf = scan([tmp_path])
    inner = "skill://pdf/inner/SKILL.md"
    assert list(shelf.skills) == ["skill://pdf/SKILL.md", inner]
    outer = shelf.skills["skill://pdf/SKILL.md"].resources
    assert isinstance(outer, list)
    assert inner in [each.uri for each in outer]


def test_dot_files_are_not_published(tmp_path: Path) -> None:
    home = skill(tmp_path)
    write(home, {".env": "KEY=secret", ".git/config": "x", "a/.hidden": "x"})
    skill(tmp_path / ".drafts", "later")
    assert list(scan([tmp_path]).files) == ["skill://pdf/SKILL.md"]


def test_kinds_are_guessed_by_name_then_by_content(tmp_path: Path) -> None:
    write(skill(tmp_path), {"a.py": "x", "b.zzz": "text", "c.zzz": b"\xff", "d.png": b"\x89"})
    kinds = {uri.rpartition("/")[2]: file.mime_type for uri, file in scan([tmp_path]).files.items()}
    assert kinds == {
        "SKILL.md": "text/markdown",
        "a.py": "text/x-python",
        "b.zzz": "text/plain",
        "c.zzz": "application/octet-stream",
        "d.png": "image/png",
    }


def test_folders_have_their_direct_children(tmp_path: Path) -> None:
    home = skill(tmp_path / "acme")
    write(home, {"templates/eu/x.md": "x", "templates/y.md": "y"})
    (home / "empty").mkdir()
    assert scan([tmp_path]).folders == {
        "skill://acme": ("skill://acme/pdf",),
        "skill://acme/pdf": (
            "skill://acme/pdf/SKILL.md",
            "skill://acme/pdf/empty",
            "skill://acme/pdf/templates",
        ),
        "skill://acme/pdf/empty": (),
        "skill://acme/pdf/templates": (
            "skill://acme/pdf/templates/eu",
            "skill://acme/pdf/templates/y.md",
        ),
        "skill://acme/pdf/templates/eu": ("skill://acme/pdf/templates/eu/x.md",),
    }


# -- what is unfit ---------------------------------------------------------------------------


def test_a_name_is_that_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "pdf", {"SKILL.md": "---\nname: other\ndescription: x\n---\n"})
    assert "name must be that of its folder, 'pdf', not 'other'" in only_fault(tmp_path)


def test_a_name_must_be_in_order(tmp_path: Path) -> None:
    skill(tmp_path, "PDF")
    assert "name must be 1 to 64" in only_fault(tmp_path)


def test_a_fault_of_the_frontmatter_has_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "pdf", {"SKILL.md": "---\nname: pdf\ndescription: a: b\n---\n"})
    assert f"{tmp_path / 'pdf' / 'SKILL.md'}, line 3: " in only_fault(tmp_path)


def test_a_text_must_be_utf_8(tmp_path: Path) -> None:
    write(tmp_path / "pdf", {"SKILL.md": b"---\nname: pdf\ndescription: \xff\n---\n"})
    assert "not UTF-8" in only_fault(tmp_path)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    home = skill(tmp_path)
    write(home, {f"{number}.md": "x" for number in range(512)})
    assert "at most 512 files, not 513" in only_fault(tmp_path)
    (home / "0.md").unlink()
    assert len(scan([tmp_path]).files) == 512


def test_too_many_bytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    home = skill(tmp_path)
    with open(home / "big.bin", "wb") as file:
        file.truncate(MAX_SKILL_BYTES)  # nothing is written to the disk
    assert "at most 16777216 bytes" in only_fault(tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": "secret"})
    home = skill(tmp_path / "skills")
    (home / "notes.md").symlink_to(tmp_path / "secret.txt")
    assert "leads out of" in only_fault(tmp_path / "skills")


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    home = skill(tmp_path)
    (home / "loop").symlink_to(home)
    assert "a link that does not lead to a file" in only_fault(tmp_path)


def test_a_link_to_a_file_inside_is_a_file(tmp_path: Path) -> None:
    home = skill(tmp_path)
    write(home, {"a.md": "abc"})
    (home / "b.md").symlink_to(home / "a.md")
    assert scan([tmp_path]).files["skill://pdf/b.md"].size == 3


@pytest.mark.parametrize("target", [".env", "../.git/config", "a/.cache/x", "other.md"])
def test_a_link_to_what_begins_with_a_dot_is_refused(tmp_path: Path, target: str) -> None:
    home = skill(tmp_path)
    write(home, {".env": "KEY=secret", "../.git/config": "token", "a/.cache/x": "x"})
    (home / "other.md").symlink_to(".env")
    (home / "notes.txt").symlink_to(target)
    fault = only_fault(tmp_path)
    assert fault.startswith(f"{home / 'notes.txt'}: ")
    assert "leads to a name that begins with a dot" in fault


def test_dot_folder_above_the_root_does_not_matter(tmp_path: Path) -> None:
    home = skill(tmp_path / ".config")
    write(home, {"a.md": "abc"})
    (home / "b.md").symlink_to("a.md")
    file = scan([tmp_path / ".config"]).files["skill://pdf/b.md"]
    assert read_inside(file) == b"abc"


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    home = skill(tmp_path)
    (home / "loop").symlink_to("loop")
    assert "a link that does not lead to a file" in only_fault(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_fifo_in_a_skill_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(skill(tmp_path) / "pipe")
    assert "not a regular file" in only_fault(tmp_path)


def test_one_uri_for_two_skills_is_refused(tmp_path: Path) -> None:
    skill(tmp_path / "one")
    skill(tmp_path / "two")
    shelf = scan([tmp_path / "one", tmp_path / "two"])
    assert len(shelf.skills) == 1
    assert "another skill has the URI skill://pdf/SKILL.md" in str(shelf.faults[0])


def test_one_name_for_two_skills_is_refused(tmp_path: Path) -> None:
    skill(tmp_path / "one")
    second = skill(tmp_path / "two")
    shelf = scan([tmp_path])
    assert list(shelf.skills) == list(shelf.files) == ["skill://one/pdf/SKILL.md"]
    assert set(shelf.folders) == {"skill://one", "skill://one/pdf"}
    [fault] = shelf.faults
    assert str(fault) == f"{second}: skill://one/pdf/SKILL.md already has the name 'pdf'"


def test_a_skill_in_a_skill_has_a_name_of_its_own(tmp_path: Path) -> None:
    home = skill(skill(tmp_path), "pdf")
    shelf = scan([tmp_path])
    assert list(shelf.skills) == ["skill://pdf/SKILL.md"]
    assert str(shelf.faults[0]).startswith(f"{home}: ")
    # It is a file of the skill around it all the same.
    assert "skill://pdf/pdf/SKILL.md" in shelf.files


def test_one_unfit_skill_leaves_the_others(tmp_path: Path) -> None:
    skill(tmp_path)
    skill(tmp_path, "UNFIT")
    shelf = scan([tmp_path])
    assert list(shelf.skills) == ["skill://pdf/SKILL.md"]
    assert len(shelf.faults) == 1


def test_a_folder_that_is_gone_is_a_fault(tmp_path: Path) -> None:
    assert "the folder cannot be read" in only_fault(tmp_path / "gone")


# -- looking again ---------------------------------------------------------------------------


def test_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    skill(tmp_path)
    before = scan([tmp_path])
    again = scan([tmp_path], before)
    uri = "skill://pdf/SKILL.md"
    assert again.files[uri] is before.files[uri]
    assert again.skills[uri].frontmatter is before.skills[uri].frontmatter
    assert again.fingerprint == before.fingerprint


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    home = skill(tmp_path)
    write(home, {"a.md": "abc"})
    before = scan([tmp_path])
    write(home, {"a.md": "abcd"})
    again = scan([tmp_path], before)
    assert again.files["skill://pdf/a.md"].digest != before.files["skill://pdf/a.md"].digest
    assert again.fingerprint != before.fingerprint


def test_a_newcomer_does_not_take_the_name_of_a_skill_that_is_served(tmp_path: Path) -> None:
    served = skill(tmp_path / "two")
    before = scan([tmp_path])
    skill(tmp_path / "one")
    again = scan([tmp_path], before)
    assert list(again.skills) == ["skill://two/pdf/SKILL.md"]
    assert "already has the name 'pdf'" in str(again.faults[0])
    (served / "SKILL.md").unlink()
    assert list(scan([tmp_path], again).skills) == ["skill://one/pdf/SKILL.md"]


def test_a_newcomer_does_not_take_the_uri_of_a_skill_that_is_served(tmp_path: Path) -> None:
    served = skill(tmp_path / "two")
    folders = [tmp_path / "one", tmp_path / "two"]
    folders[0].mkdir()
    before = scan(folders)
    skill(tmp_path / "one")
    again = scan(folders, before)
    assert again.files["skill://pdf/SKILL.md"].path.parent == served
    assert "another skill has the URI skill://pdf/SKILL.md" in str(again.faults[0])


# -- reading ---------------------------------------------------------------------------------


def one_file(tmp_path: Path) -> SkillFile:
    home = skill(tmp_path / "skills")
    write(home, {"refs/a.md": "abc"})
    file = scan([tmp_path / "skills"]).files["skill://pdf/refs/a.md"]
    assert read_inside(file) == b"abc"
    return file


def test_a_file_that_became_a_link_to_what_begins_with_a_dot_is_not_read(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    write(file.path.parent, {".env": "KEY=secret"})
    file.path.unlink()
    file.path.symlink_to(".env")
    with pytest.raises(PermissionError, match="begins with a dot"):
        read_inside(file)


def test_a_folder_that_became_a_link_to_what_begins_with_a_dot_is_not_read(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    hidden = file.path.parent.with_name(".hidden")
    file.path.parent.rename(hidden)
    file.path.parent.symlink_to(hidden)
    with pytest.raises(PermissionError, match="begins with a dot"):
        read_inside(file)


def test_a_file_that_became_a_link_to_the_folder_itself_is_not_read(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    file.path.unlink()
    file.path.symlink_to(file.root)
    with pytest.raises(OSError, match="leads out"):
        read_inside(file)


def test_a_file_that_became_a_link_to_itself_is_not_read(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    file.path.unlink()
    file.path.symlink_to(file.path.name)
    with pytest.raises(OSError) as caught:  # its number says which
        read_inside(file)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed on this system")
@pytest.mark.parametrize("part", ["refs", "refs/a.md"])
def test_a_link_that_appears_after_the_look_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    file = one_file(tmp_path)
    write(tmp_path, {"outside/refs/a.md": "secret"})

    looked = os.path.realpath

    def look_then_swap(path: Path) -> str:
        found = looked(path)
        swapped = file.root / "pdf" / part
        swapped.rename(tmp_path / "away")
        swapped.symlink_to(tmp_path / "outside" / part)
        return found

    monkeypatch.setattr(os.path, "realpath", look_then_swap)
    with pytest.raises(OSError) as caught:  # its number says which
        read_inside(file)
    assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)
    assert file.path.read_text() == "secret"  # which a reader that follows links would give


def test_a_file_that_becomes_a_link_while_it_is_looked_at_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"secret.txt": "secret"})
    home = skill(tmp_path / "skills", **{"a.md": "abc"})
    stamped = folder._stamp

    def stamp_then_swap(path: Path) -> tuple[int, int, int]:
        found = stamped(path)
        if path.name == "a.md":
            path.unlink()
            path.symlink_to(tmp_path / "secret.txt")
        return found

    monkeypatch.setattr(folder, "_stamp", stamp_then_swap)
    assert only_fault(tmp_path / "skills").startswith(f"{home}: a file cannot be read: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_a_file_that_became_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    file.path.unlink()
    os.mkfifo(file.path)
    found: list[BaseException | bytes] = []

    def reads() -> None:
        try:
            found.append(read_inside(file))
        except OSError as error:
            found.append(error)

    # On a thread that nobody waits for at the end: it might wait for a writer for ever.
    thread = threading.Thread(target=reads, daemon=True)
    thread.start()
    thread.join(10)
    [error] = found
    assert isinstance(error, OSError)
    assert "not a regular file" in str(error)


def test_a_file_that_became_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    with open(file.path, "wb") as grown:
        grown.truncate(1 << 40)  # more than any memory: nothing is written to the disk
    with pytest.raises(OSError, match="larger than a skill may be"):
        read_inside(file)


def test_a_file_that_grows_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = one_file(tmp_path)
    monkeypatch.setattr("trunkline.skills.folder.MAX_SKILL_BYTES", 3)
    assert read_inside(file) == b"abc"
    looked = os.fstat

    def look_then_grow(number: int) -> os.stat_result:
        found = looked(number)
        if found.st_size == 3:
            write(file.path.parent, {"a.md": "abcd"})
        return found

    monkeypatch.setattr(os, "fstat", look_then_grow)
    with pytest.raises(OSError, match="larger than a skill may be"):
        read_inside(file)


def test_no_file_is_left_open(tmp_path: Path) -> None:
    file = one_file(tmp_path)
    lowest = os.dup(0)
    os.close(lowest)
    read_inside(file)
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        read_inside(file)
    now = os.dup(0)
    os.close(now)
    assert now == lowest


def test_a_file_that_became_a_link_out_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": "secret"})
    home = skill(tmp_path / "skills")
    write(home, {"a.md": "abc"})
    file = scan([tmp_path / "skills"]).files["skill://pdf/a.md"]
    assert read_inside(file) == b"abc"
    (home / "a.md").unlink()
    (home / "a.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(PermissionError, match="leads out"):
        read_inside(file)
