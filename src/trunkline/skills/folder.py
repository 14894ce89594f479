"""Skills on disk: which there are, and which files each has.

`scan` looks at folders and gives a `SkillSnapshot`: all that is served, by URI. A caller
asks a shelf by URI, so a path that was not found here is not read, however it is spelt.

The rules that live here, and only here:

* A folder with a SKILL.md is a skill; the folders above it, up to the one that was given, are
  the first part of its URI. Skills may be inside of skills, whose files they then are, too.
* A name is that of one skill: hosts show names to users, who could not tell two apart. Which
  was served first keeps it.
* What begins with a dot is not published: such files are for tools, and may hold secrets.
* A link may lead to a file in the same folder. One that leads out of it, to what begins with a
  dot, or to a folder, makes its skill unfit.
* What was checked is what is read: whoever puts a link or a pipe in the place of a file in
  between gains nothing by it, where the system has O_NOFOLLOW and opens below a folder.
* A file is read again when its size, time or number on the disk has changed, and not before.
"""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from .entries import (
    MARKDOWN,
    MAX_SKILL_BYTES,
    MAX_SKILL_FILES,
    SKILL_FILE,
    SkillEntry,
    SkillResource,
    digest_of,
    faults_of,
    frontmatter_fault,
)
from .frontmatter import read

__all__ = ["SkillFile", "SkillSnapshot", "read_inside", "scan"]

_SCHEME: Final = "skill://"
# What may stand in a segment of a path as it is.          [RFC 3986, 3.3]
_UNQUOTED: Final = "-._~!$&'()*+,;=:@"

# Not every system has them. Without the second, to open a pipe is to wait for a writer.
_NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
_FOLDER: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)

_Stamp = tuple[int, int, int]


class SkillFile(NamedTuple):
    """A file that is served, as it was when it was looked at."""

    uri: str
    path: Path
    # The folder that it must not lead out of.
    root: Path
    mime_type: str
    size: int
    digest: str
    stamp: _Stamp


class SkillSnapshot(NamedTuple):
    """All that is served at one time, by URI."""

    skills: Mapping[str, SkillEntry]
    files: Mapping[str, SkillFile]
    # The direct children of every folder: URIs, in order.
    folders: Mapping[str, tuple[str, ...]]
    # What is wrong with the skills that are left out.
    faults: tuple[ValueError, ...]

    @property
    def fingerprint(self) -> str:
        """What is the same for equal shelves alone."""
        told = sha256()
        for uri, entry in self.skills.items():
            told.update(f"{uri}\n".encode())
            for each in entry.resources if isinstance(entry.resources, list) else ():
                told.update(f"{each.uri} {each.digest}\n".encode())
        return told.hexdigest()


_NOTHING: Final = SkillSnapshot({}, {}, {}, ())


class _FoundFile(NamedTuple):
    """Something in a folder; `fault` is why it cannot be served."""

    path: Path
    is_folder: bool
    fault: str = ""


class _SkillFolder(NamedTuple):
    """A folder with a SKILL.md, and all that is below it."""

    path: Path
    below: list[_FoundFile]
    # What URIs begin behind.
    lead: Path
    root: Path


def scan(folders: Iterable[Path], before: SkillSnapshot = _NOTHING) -> SkillSnapshot:
    """Return what is served of some folders; `before` saves reading what has not changed.

    A skill that is unfit is left out, and told of in `faults`.
    """
    looking = _Scan(before)
    homes: list[_SkillFolder] = []
    for folder in folders:
        try:
            homes += _homes(Path(os.path.realpath(folder)))
        except OSError as error:
            looking.faults.append(ValueError(f"{folder}: it cannot be looked into: {error}"))
    # Those that were served come first, so that no newcomer takes a name or a URI from one.
    served = {before.files[uri].path.parent for uri in before.skills}
    for home in sorted(homes, key=lambda each: each.path not in served):
        looking.take(home)
    folded = {uri: tuple(sorted(below)) for uri, below in looking.children.items()}
    skills = dict(sorted(looking.skills.items()))
    return SkillSnapshot(skills, looking.files, folded, tuple(looking.faults))


def read_inside(file: SkillFile) -> bytes:
    """Return what a file holds now.

    Raises:
        OSError: it is gone, or cannot be read, or is no file by now, or one that is too large,
            or leads out of its folder or to what begins with a dot.
    """
    return _content(file.path, file.root)


class _Scan:
    """One look at some folders, and what was found so far."""

    def __init__(self, before: SkillSnapshot) -> None:
        self._before = before
        self._seen = {file.path: file for file in before.files.values()}
        # The URI of each skill by its name.
        self._named: dict[str, str] = {}
        self.skills: dict[str, SkillEntry] = {}
        self.files: dict[str, SkillFile] = {}
        self.children: dict[str, set[str]] = {}
        self.faults: list[ValueError] = []

    def take(self, home: _SkillFolder) -> None:
        """Take up a skill, or what is wrong with it."""
        try:
            self._skill(*home)
        except ValueError as error:
            self.faults.append(error)
        except OSError as error:
            self.faults.append(ValueError(f"{home.path}: a file of it cannot be read: {error}"))

    def _skill(self, home: Path, below: list[_FoundFile], lead: Path, root: Path) -> None:
        """Take up one skill.

        Raises:
            ValueError: it is unfit; the text names the file and says why.
            OSError: a file of it cannot be read.
        """
        _check_fit(home, below)
        own = [self._file(each.path, lead, root) for each in below if not each.is_folder]
        uri = _uri(home / SKILL_FILE, lead)
        listed = [SkillResource(file.uri, file.digest, file.size) for file in own]
        skill_file = next(file for file in own if file.uri == uri)
        entry = SkillEntry(uri, self._frontmatter(skill_file), listed)
        fault = faults_of(entry)
        if fault:
            raise ValueError(f"{home}: {fault}")
        if uri in self.skills:
            raise ValueError(f"{home}: there is a skill {uri} already")
        if entry.name in self._named:
            other = self._named[entry.name]
            raise ValueError(f"{home}: {other} is called {entry.name!r} already")
        self._named[entry.name] = uri
        self.skills[uri] = entry
        self.files |= {file.uri: file for file in own}
        self._note_folders([_FoundFile(home, True), *below], lead)

    def _file(self, path: Path, lead: Path, root: Path) -> SkillFile:
        uri, stamp, seen = _uri(path, lead), _stamp(path), self._seen.get(path)
        if seen is not None and (seen.uri, seen.stamp) == (uri, stamp):
            return seen
        content = _content(path, root)
        kind = MARKDOWN if path.name == SKILL_FILE else _kind(path, content)
        found = SkillFile(uri, path, root, kind, len(content), digest_of(content), stamp)
        self._seen[path] = found  # it may be a file of a skill around this one, too
        return found

    def _frontmatter(self, file: SkillFile) -> dict[str, Any]:
        known = self._before.skills.get(file.uri)
        if known is not None and self._before.files.get(file.uri) is file:
            return known.frontmatter
        content = read_inside(file)
        if digest_of(content) != file.digest:
            raise ValueError(f"{file.path}: it changes while it is looked at")
        try:
            frontmatter = read(content.decode(), str(file.path))
        except UnicodeDecodeError:
            raise ValueError(f"{file.path}: its text is not UTF-8") from None
        fault, home = frontmatter_fault(frontmatter), file.path.parent.name
        if not fault and frontmatter["name"] != home:
            fault = f"its name is that of its folder, {home!r}, and not {frontmatter['name']!r}"
        if fault:
            raise ValueError(f"{file.path}: {fault}")
        return frontmatter

    def _note_folders(self, found: list[_FoundFile], lead: Path) -> None:
        """Note what is in which folder, up to the first part of the URI."""
        for each in found:
            child = _uri(each.path, lead)
            if each.is_folder:
                self.children.setdefault(child, set())
            above = child.rpartition("/")[0]
            while len(above) > len(_SCHEME):
                self.children.setdefault(above, set()).add(child)
                child, above = above, above.rpartition("/")[0]


def _homes(root: Path) -> list[_SkillFolder]:
    """Return the skills in a folder, fit or not.

    Raises:
        OSError: it cannot be looked into.
    """
    found = list(_walk(root, root))
    inside: dict[Path, list[_FoundFile]] = {
        each.path.parent: []
        for each in found
        if each.path.name == SKILL_FILE and not each.is_folder
    }
    for each in found:
        for parent in each.path.parents:
            if parent in inside:
                inside[parent].append(each)
            if parent == root:
                break
    lead = root.parent if root in inside else root
    return [_SkillFolder(path, below, lead, root) for path, below in inside.items()]


def _walk(folder: Path, root: Path) -> Iterator[_FoundFile]:
    """Yield what is below a folder, a folder before what is in it."""
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda each: each.name)
    for each in listed:
        if each.name.startswith("."):
            continue
        path = Path(each.path)
        if each.is_symlink():
            yield _FoundFile(path, False, _link_fault(path, root))
        elif each.is_dir():
            yield _FoundFile(path, True)
            yield from _walk(path, root)
        else:
            yield _FoundFile(path, False, "" if each.is_file() else "it is no file")


def _link_fault(path: Path, root: Path) -> str:
    fault = _target_fault(Path(os.path.realpath(path)), root)
    if fault:
        return f"it is a link that {fault}"
    return "" if path.is_file() else "it is a link, and not to a file"


def _target_fault(target: Path, root: Path) -> str:
    """Return why what a path leads to is not published, or nothing."""
    if root not in target.parents:
        return f"leads out of {root}"
    if any(part.startswith(".") for part in target.relative_to(root).parts):
        return "leads to what begins with a dot"
    return ""


def _content(path: Path, root: Path) -> bytes:
    """Return what a file in `root` holds, if it may be published and is not too large.

    Raises:
        OSError: it may not be, or is, or cannot be read.
    """
    target = Path(os.path.realpath(path))
    fault = _target_fault(target, root)
    if fault:
        raise PermissionError(f"{path} {fault}")
    with open(target, "rb", opener=lambda _, flags: _opened(target, root, flags)) as file:
        facts = os.fstat(file.fileno())
        if not S_ISREG(facts.st_mode):
            raise OSError(f"{path} is no file")
        # It may grow while it is read; what is too large already is not read at all.
        content = b"" if facts.st_size > MAX_SKILL_BYTES else file.read(MAX_SKILL_BYTES + 1)
    if max(facts.st_size, len(content)) > MAX_SKILL_BYTES:
        raise OSError(f"{path} has become larger than a skill may be")
    return content


def _opened(target: Path, root: Path, flags: int) -> int:
    """Return a descriptor of a file whose path had no links in it, if that is still so.

    Folder by folder, since the system looks for links at the end of a path alone.
    """
    flags |= _NO_LINK | _NO_WAIT
    if os.open not in os.supports_dir_fd:
        return os.open(target, flags)
    *folders, name = target.relative_to(root).parts
    above = os.open(root, _FOLDER)
    try:
        for each in folders:
            below = os.open(each, _FOLDER | _NO_LINK, dir_fd=above)
            os.close(above)
            above = below
        return os.open(name, flags, dir_fd=above)
    finally:
        os.close(above)


def _check_fit(home: Path, below: list[_FoundFile]) -> None:
    """Refuse a skill with something unfit in it, or too much."""
    for each in below:
        if each.fault:
            raise ValueError(f"{each.path}: {each.fault}")
    sizes = [each.path.stat().st_size for each in below if not each.is_folder]
    if len(sizes) > MAX_SKILL_FILES:
        raise ValueError(f"{home}: a skill has at most {MAX_SKILL_FILES} files, not {len(sizes)}")
    if sum(sizes) > MAX_SKILL_BYTES:
        raise ValueError(f"{home}: a skill has at most {MAX_SKILL_BYTES} bytes, not {sum(sizes)}")


def _stamp(path: Path) -> _Stamp:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _kind(path: Path, content: bytes) -> str:
    guessed = mimetypes.guess_type(path.name)[0]
    if guessed is not None:
        return guessed
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"


def _uri(path: Path, lead: Path) -> str:
    parts = (quote(part, safe=_UNQUOTED) for part in path.relative_to(lead).parts)
    return _SCHEME + "/".join(parts)
