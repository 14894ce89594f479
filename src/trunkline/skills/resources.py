"""Skills as resources of a server: `app.add_extension(Skills("skills/"))`.

The server serves what is on disk. `skills/list`, `skills/get` and directory reads scan the folders;
so does a read of an unknown or changed file. Clients get the notifications of any other resource:
`list_changed` when a SKILL.md appears, disappears or changes its description, and `updated` for
each changed file. `resources/list` does not scan: it shows the last scan.

The rules that live here, and only here:         [MCP extension io.modelcontextprotocol/skills]

* A client need not declare the extension to use its methods: only the server declares it.
* Directories are readable only with `directory_read`, and a file is not a directory.
* A cursor is valid for the list that issued it, until the list changes.

Handlers are plain functions, so that disk access runs on a thread.
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

from ..errors import RequestError
from ..mcp.types import Resource, ResourceContents
from ..redaction import redact, show
from ..server import CacheHint, Context, Extension, Server
from ..spec.error_kinds import ErrorKind
from .entries import DIRECTORY, EXTENSION, digest_of
from .folder import SkillFile, SkillSnapshot, read_inside, scan

__all__ = ["Skills"]

_log: Final = logging.getLogger("trunkline.skills")

# Template of all files; SKILL.md files are listed as resources of their own.
_ANY_FILE: Final = "skill://{+path}"
_ABOUT_FILES: Final = "A file of one of the skills that this server publishes."
# Of the fingerprint in a cursor. It separates lists; it is not a secret.
_FINGERPRINT_CHARS: Final = 16


class Skills(Extension):
    """The skills in one or several folders, as an extension of a server.

    A folder that has a SKILL.md is a skill; any other is searched for skills. With
    `directory_read` clients may list folders. `cache` says how long clients may cache lists and
    files; the default is that of the server.

    Raises:
        ValueError: a skill is invalid, or a folder does not exist; the text says which.
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
            raise ValueError(f"page_size must be at least 1, not {page_size}")
        self._folders = _paths(folders)
        self._cache = cache
        self._page_size = page_size
        self._extended: WeakSet[Server] = WeakSet()
        # Otherwise two threads that find the same change would notify twice.
        self._lock = Lock()
        self._snapshot = scan(self._folders)
        if self._snapshot.faults:
            raise self._snapshot.faults[0]
        self.method("skills/list", always=True)(self._list)
        self.method("skills/get", always=True)(self._get)
        if directory_read:
            self.method("resources/directory/read", always=True)(self._read_directory)

    def on_extend(self, app: Server) -> None:
        """Add the SKILL.md files, and the template of all other files, to a server."""
        added: list[str] = []
        try:
            app.add_resource(
                self._read_file,
                _ANY_FILE,
                name="skill-file",
                description=_ABOUT_FILES,
                cache=self._cache,
                fixed_uri=True,  # `skills/list` has the same
            )
            added.append(_ANY_FILE)
            for uri in self._snapshot.skills:
                self._add(app, self._snapshot, uri)
                added.append(uri)
        except ValueError:
            for uri in added:
                app.remove_resource(uri)
            raise
        self._extended.add(app)

    # -- methods -----------------------------------------------------------------------------

    def _list(self, context: Context, cursor: str | None = None) -> dict[str, Any]:
        snapshot = self._rescan()
        entries = list(snapshot.skills.values())
        fingerprint = snapshot.fingerprint[:_FINGERPRINT_CHARS]
        start = 0 if cursor is None else _position(cursor, fingerprint, len(entries))
        end = start + self._page_size
        more = {"nextCursor": f"{end}.{fingerprint}"} if end < len(entries) else {}
        return {"skills": entries[start:end], **more, **self._cache_hint(context)}

    def _get(self, context: Context, uri: str) -> dict[str, Any]:
        entry = self._rescan().skills.get(uri)
        if entry is None:
            raise RequestError(ErrorKind.INVALID_PARAMS, f"There is no skill at {redact(uri)}")
        return {"skill": entry, **self._cache_hint(context)}

    def _read_directory(self, uri: str, cursor: str | None = None) -> dict[str, Any]:
        snapshot = self._rescan()
        children = snapshot.folders.get(uri)
        if children is None:
            raise RequestError(
                ErrorKind.INVALID_PARAMS, f"{redact(uri)} is not a directory resource"
            )
        if cursor is not None:  # a folder has one page
            raise RequestError(ErrorKind.INVALID_CURSOR)
        return {"resources": [_resource(snapshot, child) for child in children]}

    def _cache_hint(self, context: Context) -> dict[str, Any]:
        cache = context._request.owner.options.cache if self._cache is None else self._cache
        return {"ttlMs": cache.milliseconds, "cacheScope": cache.scope}

    # -- files -------------------------------------------------------------------------------

    def _read_skill(self, context: Context) -> ResourceContents | None:
        return self._content(context.name)

    def _read_file(self, context: Context, path: str) -> ResourceContents | None:
        # By the URI as received: a decoded path has several spellings.
        return self._content(context.name)

    def _content(self, uri: str) -> ResourceContents | None:
        file = self._snapshot.files.get(uri) or self._rescan().files.get(uri)
        if file is None:
            return None
        try:
            content = read_inside(file)
        except OSError as error:
            _log.warning("skill file %s cannot be read: %s", show(uri), show(str(error)))
            self._rescan()
            return None
        if digest_of(content) != file.digest:
            self._rescan()
        return _contents(file, content)

    # -- changes -----------------------------------------------------------------------------

    def _rescan(self) -> SkillSnapshot:
        """Scan the folders; notify clients of changes."""
        with self._lock:
            before = self._snapshot
            snapshot = scan(self._folders, before)
            logged = {str(fault) for fault in before.faults}
            for fault in snapshot.faults:
                if str(fault) not in logged:
                    _log.error("skill left out: %s", fault)
            self._snapshot = snapshot
            if snapshot.fingerprint != before.fingerprint:
                for app in list(self._extended):
                    self._update(app, before, snapshot)
        return snapshot

    def _update(self, app: Server, before: SkillSnapshot, snapshot: SkillSnapshot) -> None:
        """Update the resources of a server, which notifies its clients."""
        for uri in before.skills:
            if _listed(before, uri) != _listed(snapshot, uri):
                with suppress(LookupError):  # its author has removed it
                    app.remove_resource(uri)
        for uri in snapshot.skills:
            if _listed(before, uri) != _listed(snapshot, uri):
                try:
                    self._add(app, snapshot, uri)
                except ValueError as error:
                    _log.error("skill not listed: %s", error)
        for uri, file in before.files.items():
            now = snapshot.files.get(uri)
            if now is None or now.digest != file.digest:
                app.notify_resource_updated(uri)

    def _add(self, app: Server, snapshot: SkillSnapshot, uri: str) -> None:
        row = _listed(snapshot, uri)
        assert row is not None
        app.add_resource(
            self._read_skill,
            uri,
            name=row.name,
            description=row.description or None,
            mime_type=row.mime_type or None,
            size=row.size,
            cache=self._cache,
            fixed_uri=True,
        )


def _paths(
    folders: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> tuple[Path, ...]:
    given = [folders] if isinstance(folders, str | os.PathLike) else list(folders)
    # Absolute: the working directory may change.
    found = tuple(Path(each).absolute() for each in given)
    for each in found:
        if not each.is_dir():
            raise ValueError(f"the skills folder {str(each)!r} does not exist")
    return found


def _position(cursor: str, fingerprint: str, length: int) -> int:
    place, _, issued = cursor.partition(".")
    # Nine digits bound the cost of int(), which comes from the client.
    is_number = place.isascii() and place.isdigit() and len(place) <= 9
    if issued != fingerprint or not is_number or not 0 < int(place) < length:
        raise RequestError(ErrorKind.INVALID_CURSOR)
    return int(place)


def _listed(snapshot: SkillSnapshot, uri: str) -> Resource | None:
    return _resource(snapshot, uri) if uri in snapshot.skills else None


def _resource(snapshot: SkillSnapshot, uri: str) -> Resource:
    file = snapshot.files.get(uri)
    if file is None:
        return Resource(uri.rpartition("/")[2], uri, mime_type=DIRECTORY)
    entry = snapshot.skills.get(uri)
    name = file.path.name if entry is None else entry.name
    about = None if entry is None else entry.frontmatter["description"]
    return Resource(name, uri, description=about, mime_type=file.mime_type, size=file.size)


def _contents(file: SkillFile, content: bytes) -> ResourceContents:
    try:
        return ResourceContents(file.uri, text=content.decode(), mime_type=file.mime_type)
    except UnicodeDecodeError:
        blob = b64encode(content).decode("ascii")
        return ResourceContents(file.uri, blob=blob, mime_type=file.mime_type)
