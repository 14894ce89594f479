"""Publishing skills: `app.add_extension(Skills("skills/"))`.

What is served is what is on the disk. Whoever asks for skills or folders has it looked at anew;
a file is read when it is asked for, and one that is unknown, or not what was listed, has the
same effect. Clients are told of changes as of any other resource: SKILL.md files are listed as
resources, and so of those that come, go or have another description; and of every file that
holds something else. `resources/list` is the server's own, which asks nobody before it answers:
it has what was last looked at.

The rules that live here, and only here:         [MCP extension io.modelcontextprotocol/skills]

* Nobody has to declare the extension to use its methods: a server alone declares it.
* Folders are read where the server said so, and only folders: a file there is no folder.
* A cursor is good for the list that gave it out, as it was.

Everything is done with what any author of an extension has; handlers are plain functions, so
that the disk is waited for on a thread.
"""

from __future__ import annotations

import logging
import os
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final
from weakref import WeakSet

from msgspec import UNSET

from ..errors import RequestError
from ..mcp.types import Resource, ResourceContents
from ..redaction import redact
from ..server import CacheHint, Context, Extension, Server
from ..spec.error_kinds import ErrorKind
from .entries import DIRECTORY, EXTENSION, SkillEntry, digest_of
from .folder import SkillFile, SkillSnapshot, read_inside, scan

__all__ = ["Skills"]

_log: Final = logging.getLogger("trunkline.skills")

# All files of all skills; SKILL.md files are listed one by one beside it.
_ANY_FILE: Final = "skill://{+path}"
_ABOUT_FILES: Final = "A file of one of the skills that this server publishes."
# Of the fingerprint of a list, in a cursor: enough to tell lists apart, and no secret.
_MARK: Final = 16


class Skills(Extension):
    """The skills in one or several folders, as an extension of a server.

    A folder that has a SKILL.md is a skill; any other is searched for skills. With
    `directory_read` clients may list folders. `cache` says how long clients may keep lists and
    files; without it the server's own holds.

    Raises:
        ValueError: a skill is not in order, or there is no such folder; the text says where.
    """

    def __init__(
        self,
        folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        directory_read: bool = False,
        cache: CacheHint | None = None,
        page_size: int = 50,
    ) -> None:
        super().__init__(EXTENSION, settings={"directoryRead": True} if directory_read else {})
        if page_size < 1:
            raise ValueError(f"a page holds at least one skill, not {page_size}")
        self._folders = _paths(folders)
        self._cache = cache
        self._page_size = page_size
        self._extended: WeakSet[Server] = WeakSet()
        # Two threads that found the same change would tell of it twice.
        self._lock = Lock()
        self._shelf = scan(self._folders)
        if self._shelf.faults:
            raise self._shelf.faults[0]
        self.method("skills/list", always=True)(self._list)
        self.method("skills/get", always=True)(self._get)
        if directory_read:
            self.method("resources/directory/read", always=True)(self._read_directory)

    def on_extend(self, app: Server) -> None:
        """Have the server list SKILL.md files, and serve all others."""
        added: list[str] = []
        try:
            app.add_resource(
                self._read_file,
                _ANY_FILE,
                name="skill-file",
                description=_ABOUT_FILES,
                cache=self._cache,
            )
            added.append(_ANY_FILE)
            for uri in self._shelf.skills:
                self._add(app, self._shelf, uri)
                added.append(uri)
        except ValueError:
            for uri in added:
                app.remove_resource(uri)
            raise
        self._extended.add(app)

    # -- methods -----------------------------------------------------------------------------

    def _list(self, context: Context, cursor: str | None = None) -> dict[str, Any]:
        shelf = self._look()
        entries = list(shelf.skills.values())
        mark = shelf.fingerprint[:_MARK]
        start = 0 if cursor is None else _position(cursor, mark, len(entries))
        end = start + self._page_size
        more = {"nextCursor": f"{end}.{mark}"} if end < len(entries) else {}
        return {"skills": entries[start:end], **more, **self._kept(context)}

    def _get(self, context: Context, uri: str) -> dict[str, Any]:
        entry = self._look().skills.get(uri)
        if entry is None:
            raise RequestError(ErrorKind.INVALID_PARAMS, f"No skill is served at {redact(uri)}")
        return {"skill": entry, **self._kept(context)}

    def _read_directory(self, uri: str, cursor: str | None = None) -> dict[str, Any]:
        shelf = self._look()
        children = shelf.folders.get(uri)
        if children is None:
            raise RequestError(
                ErrorKind.INVALID_PARAMS, f"{redact(uri)} is not a directory resource"
            )
        if cursor is not None:  # a folder has one page
            raise RequestError(ErrorKind.INVALID_CURSOR)
        return {"resources": [_resource(shelf, child) for child in children]}

    def _kept(self, context: Context) -> dict[str, Any]:
        cache = context._core.cache if self._cache is None else self._cache
        return {"ttlMs": cache.milliseconds, "cacheScope": cache.scope}

    # -- files -------------------------------------------------------------------------------

    def _read_skill(self, context: Context) -> ResourceContents | None:
        return self._content(context.name)

    def _read_file(self, context: Context, path: str) -> ResourceContents | None:
        # By the URI as it came: what was decoded of it could be spelt in many ways.
        return self._content(context.name)

    def _content(self, uri: str) -> ResourceContents | None:
        """Return what a file holds, or None where no such file is served."""
        file = self._shelf.files.get(uri) or self._look().files.get(uri)
        if file is None:
            return None
        try:
            content = read_inside(file)
        except OSError as error:
            _log.warning("%s is listed and cannot be read: %s", redact(uri), error)
            self._look()
            return None
        if digest_of(content) != file.digest:
            self._look()
        return _contents(file, content)

    # -- changes -----------------------------------------------------------------------------

    def _look(self) -> SkillSnapshot:
        """Return what is on the disk now; tell clients if that is not what it was."""
        with self._lock:
            before = self._shelf
            shelf = scan(self._folders, before)
            told = {str(fault) for fault in before.faults}
            for fault in shelf.faults:
                if str(fault) not in told:
                    _log.error("a skill is left out: %s", fault)
            self._shelf = shelf
            if shelf.fingerprint != before.fingerprint:
                for app in list(self._extended):
                    self._tell(app, before, shelf)
        return shelf

    def _tell(self, app: Server, before: SkillSnapshot, shelf: SkillSnapshot) -> None:
        """Bring the resources of a server up to date, which tells its clients."""
        for uri in before.skills:
            if _listed(before, uri) != _listed(shelf, uri):
                with suppress(LookupError):  # its author has removed it
                    app.remove_resource(uri)
        for uri in shelf.skills:
            if _listed(before, uri) != _listed(shelf, uri):
                try:
                    self._add(app, shelf, uri)
                except ValueError as error:
                    _log.error("a skill is not listed: %s", error)
        for uri, file in before.files.items():
            now = shelf.files.get(uri)
            if now is None or now.digest != file.digest:
                app.notify_resource_updated(uri)

    def _add(self, app: Server, shelf: SkillSnapshot, uri: str) -> None:
        row = _listed(shelf, uri)
        assert row is not None
        app.add_resource(
            self._read_skill,
            uri,
            name=row.name,
            description=row.description or None,
            mime_type=row.mime_type or None,
            size=None if row.size is UNSET else row.size,
            cache=self._cache,
        )


def _paths(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> tuple[Path, ...]:
    given = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
    # Absolute, since a program may go elsewhere while it serves.
    found = tuple(Path(each).absolute() for each in given)
    for each in found:
        if not each.is_dir():
            raise ValueError(f"there is no folder {str(each)!r} with skills in it")
    return found


def _position(cursor: str, mark: str, most: int) -> int:
    """Return where a page begins.

    Raises:
        RequestError: the cursor is not of the list as it is now.
    """
    place, _, told = cursor.partition(".")
    # No list is so long that its places have ten digits.
    if told != mark or not (place.isascii() and place.isdigit()) or len(place) > 9:
        raise RequestError(ErrorKind.INVALID_CURSOR)
    if not 0 < int(place) < most:
        raise RequestError(ErrorKind.INVALID_CURSOR)
    return int(place)


def _listed(shelf: SkillSnapshot, uri: str) -> Resource | None:
    """Return a SKILL.md as it is listed, or None where it is not."""
    entry: SkillEntry | None = shelf.skills.get(uri)
    return None if entry is None else _resource(shelf, uri)


def _resource(shelf: SkillSnapshot, uri: str) -> Resource:
    """Return a file, or a folder, as resources are listed."""
    file = shelf.files.get(uri)
    if file is None:
        return Resource(uri.rpartition("/")[2], uri, mime_type=DIRECTORY)
    entry = shelf.skills.get(uri)
    name = file.path.name if entry is None else entry.name
    about = UNSET if entry is None else entry.frontmatter["description"]
    return Resource(name, uri, description=about, mime_type=file.mime_type, size=file.size)


def _contents(file: SkillFile, content: bytes) -> ResourceContents:
    try:
        return ResourceContents(file.uri, text=content.decode(), mime_type=file.mime_type)
    except UnicodeDecodeError:
        blob = b64encode(content).decode("ascii")
        return ResourceContents(file.uri, blob=blob, mime_type=file.mime_type)
