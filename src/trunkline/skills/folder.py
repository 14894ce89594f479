"""Skills on disk: scans folders for skills and their files.

`scan` returns a `SkillSnapshot`: everything served, by URI. Files are looked up by URI in the
snapshot, so a path that was not found by the scan cannot be read, however it is spelled.

The rules that live here, and only here:

* A folder with a SKILL.md is a skill; the folders above it, up to the given one, are the first part
  of its URI. Skills may nest: the files of the inner one also belong to the outer one.
* Names are unique: hosts show them to users. The skill that was served first keeps the name.
* Names that begin with a dot are not published: such files are for tools, and may hold secrets.
* A symbolic link may lead to a file in the same folder. A link to the outside, to a name with a
  dot, or to a folder makes its skill invalid.
* The file that was checked is the file that is read, even if it is replaced by a link or a pipe in
  between (needs O_NOFOLLOW and openat).
* A file is read again only when its size, modification time or inode number has changed.
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
# Characters of a path segment that need no quoting.          [RFC 3986, 3.3]
_UNQUOTED: Final = "-._~!$&'()*+,;=:@"

# Not on every system. O_NONBLOCK: opening a pipe would otherwise wait for a writer.
_NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
_FOLDER: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)

_Stamp = tuple[int, int, int]


class SkillFile(NamedTuple):
    """A served file, at the time of the scan."""

    uri: str
    path: Path
    # The folder it must stay inside.
    root: Path
    mime_type: str
    size: int
    digest: str
    stamp: _Stamp


class SkillSnapshot(NamedTuple):
    """Everything served at one time, by URI."""

    skills: Mapping[str, SkillEntry]
    files: Mapping[str, SkillFile]
    # The URIs of the direct children of every folder, sorted.
    folders: Mapping[str, tuple[str, ...]]
    # Why skills were left out.
    faults: tuple[ValueError, ...]

    @property
    def fingerprint(self) -> str:
        """A digest of all URIs and file digests."""
        found = sha256()
        for uri, entry in self.skills.items():
            found.update(f"{uri}\n".encode())
            for each in entry.resources if isinstance(entry.resources, list) else ():
                found.update(f"{each.uri} {each.digest}\n".encode())
        return found.hexdigest()


_EMPTY_SNAPSHOT: Final = SkillSnapshot({}, {}, {}, ())


class _FoundFile(NamedTuple):
    """A file or folder found on disk; `fault` says why it cannot be served."""

    path: Path
    is_folder: bool
    fault: str = ""


class _SkillFolder(NamedTuple):
    """A folder with a SKILL.md, and everything below it."""

    path: Path
    below: list[_FoundFile]
    # URIs are relative to this folder.
    lead: Path
    root: Path


def scan(folders: Iterable[Path], before: SkillSnapshot = _EMPTY_SNAPSHOT) -> SkillSnapshot:
    """Scan folders for skills; unchanged files are taken from `before`.

    An invalid skill is left out, with the reason in `faults`.
    """
    found = _Scan(before)
    homes: list[_SkillFolder] = []
    for folder in folders:
        try:
            homes += _skill_folders(Path(os.path.realpath(folder)))
        except OSError as error:
            found.faults.append(ValueError(f"{folder}: the folder cannot be read: {error}"))
    # Skills served before come first, so that a new one cannot take their name or URI.
    served = {before.files[uri].path.parent for uri in before.skills}
    for home in sorted(homes, key=lambda each: each.path not in served):
        found.add(home)
    folders_ = {uri: tuple(sorted(below)) for uri, below in found.children.items()}
    skills = dict(sorted(found.skills.items()))
    return SkillSnapshot(skills, found.files, folders_, tuple(found.faults))


def read_inside(file: SkillFile) -> bytes:
    """Return the current content of a file.

    Raises:
        OSError: it is gone, unreadable, too large, not a regular file any more, or now leads
            out of its folder or to a name that begins with a dot.
    """
    return _content(file.path, file.root)


class _Scan:
    """A scan in progress."""

    def __init__(self, before: SkillSnapshot) -> None:
        self._before = before
        self._seen = {file.path: file for file in before.files.values()}
        # The URI of each skill by its name.
        self._named: dict[str, str] = {}
        self.skills: dict[str, SkillEntry] = {}
        self.files: dict[str, SkillFile] = {}
        self.children: dict[str, set[str]] = {}
        self.faults: list[ValueError] = []

    def add(self, home: _SkillFolder) -> None:
        """Add a skill, or why it is invalid."""
        try:
            self._skill(*home)
        except ValueError as error:
            self.faults.append(error)
        except OSError as error:
            self.faults.append(ValueError(f"{home.path}: a file cannot be read: {error}"))

    def _skill(self, home: Path, below: list[_FoundFile], lead: Path, root: Path) -> None:
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
            raise ValueError(f"{home}: another skill has the URI {uri}")
        if entry.name in self._named:
            other = self._named[entry.name]
            raise ValueError(f"{home}: {other} already has the name {entry.name!r}")
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
        self._seen[path] = found  # it may also belong to an outer skill
        return found

    def _frontmatter(self, file: SkillFile) -> dict[str, Any]:
        known = self._before.skills.get(file.uri)
        if known is not None and self._before.files.get(file.uri) is file:
            return known.frontmatter
        content = read_inside(file)
        if digest_of(content) != file.digest:
            raise ValueError(f"{file.path}: the file changed during the scan")
        try:
            frontmatter = read(content.decode(), str(file.path))
        except UnicodeDecodeError:
            raise ValueError(f"{file.path}: the file is not UTF-8") from None
        fault, home = frontmatter_fault(frontmatter), file.path.parent.name
        if not fault and frontmatter["name"] != home:
            fault = f"name must be that of its folder, {home!r}, not {frontmatter['name']!r}"
        if fault:
            raise ValueError(f"{file.path}: {fault}")
        return frontmatter

    def _note_folders(self, found: list[_FoundFile], lead: Path) -> None:
        for each in found:
            child = _uri(each.path, lead)
            if each.is_folder:
                self.children.setdefault(child, set())
            above = child.rpartition("/")[0]
            while len(above) > len(_SCHEME):
                self.children.setdefault(above, set()).add(child)
                child, above = above, above.rpartition("/")[0]


def _skill_folders(root: Path) -> list[_SkillFolder]:
    """Return the skills in a folder, unchecked."""
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
            yield _FoundFile(path, False, "" if each.is_file() else "not a regular file")


def _link_fault(path: Path, root: Path) -> str:
    fault = _target_fault(Path(os.path.realpath(path)), root)
    if fault:
        return f"a link that {fault}"
    return "" if path.is_file() else "a link that does not lead to a file"


def _target_fault(target: Path, root: Path) -> str:
    if root not in target.parents:
        return f"leads out of {root}"
    if any(part.startswith(".") for part in target.relative_to(root).parts):
        return "leads to a name that begins with a dot"
    return ""


def _content(path: Path, root: Path) -> bytes:
    target = Path(os.path.realpath(path))
    fault = _target_fault(target, root)
    if fault:
        raise PermissionError(f"{path} {fault}")
    with open(target, "rb", opener=lambda _, flags: _opened(target, root, flags)) as file:
        facts = os.fstat(file.fileno())
        if not S_ISREG(facts.st_mode):
            raise OSError(f"{path} is not a regular file")
        # It may grow while it is read; one that is too large already is not read at all.
        content = b"" if facts.st_size > MAX_SKILL_BYTES else file.read(MAX_SKILL_BYTES + 1)
    if max(facts.st_size, len(content)) > MAX_SKILL_BYTES:
        raise OSError(f"{path} is larger than a skill may be")
    return content


def _opened(target: Path, root: Path, flags: int) -> int:
    """Open a file whose resolved path has no links, unless a link was put in since.

    Folder by folder: O_NOFOLLOW covers only the last component of a path.
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
