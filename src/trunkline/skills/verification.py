"""Checking what a server sends of a skill against what it listed.

    entry = listed["skills"][0]
    text = verify(entry, await client.read_resource(entry["uri"])).decode()

Nothing is fetched from here: a file is read when it is needed, and checked then.

The rules that live here, and only here:         [MCP extension io.modelcontextprotocol/skills]

* A file whose size or digest is not the listed one is not used, and neither is one that is
  not listed.
* The frontmatter of SKILL.md is what the entry says, member by member: a user approved that.
* A skill that is "dynamic" has no digests; its frontmatter is compared all the same.

A match says that list and file agree. It says nothing about whether either can be trusted.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, ValidationError, convert

from ..errors import TrunklineError
from ..mcp.types import ReadResourceResult, ResourceContents
from ..redaction import show
from .entries import SkillEntry, SkillResource, digest_of, faults_of
from .frontmatter import FrontmatterError, read

__all__ = ["VerificationFailed", "verify"]


class VerificationFailed(TrunklineError):
    """A skill is not what was listed: do not use it. Ask `skills/get` for what it is now."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(f"{show(uri)}: {why}")
        self.uri = uri
        self.why = why


def verify(
    entry: SkillEntry | Mapping[str, Any], contents: ReadResourceResult | ResourceContents
) -> bytes:
    """Return the content of one file of a skill, having checked that it is what was listed.

    `entry` is one of `skills/list`, or the `skill` of `skills/get`; `contents` is what
    `resources/read` gave for one of its files.

    Raises:
        VerificationFailed: it is something else, or the entry is none; the text says which.
    """
    known = _entry(entry)
    one = _only(known, contents)
    content = _bytes(one)
    if isinstance(known.resources, list):
        _check_listed(known.resources, one.uri, content)
    elif not one.uri.startswith(f"{known.root}/"):
        raise VerificationFailed(one.uri, f"it is no file of the skill {show(known.uri)}")
    if one.uri == known.uri:
        _check_frontmatter(known, content)
    return content


def _entry(entry: SkillEntry | Mapping[str, Any]) -> SkillEntry:
    if not isinstance(entry, SkillEntry):
        given = dict(entry)
        try:
            entry = convert(given, SkillEntry)
        except ValidationError as error:
            uri = str(given.get("uri"))
            raise VerificationFailed(uri, f"it is no entry of a skill: {error}") from None
    fault = faults_of(entry)
    if fault:
        raise VerificationFailed(entry.uri, f"the entry of the skill is not in order: {fault}")
    return entry


def _only(entry: SkillEntry, contents: ReadResourceResult | ResourceContents) -> ResourceContents:
    if isinstance(contents, ResourceContents):
        return contents
    if len(contents.contents) != 1:
        why = f"a file is one content, and here are {len(contents.contents)}"
        raise VerificationFailed(entry.uri, why)
    return contents.contents[0]


def _bytes(contents: ResourceContents) -> bytes:
    try:
        if contents.text is not UNSET:
            return contents.text.encode()
        if contents.blob is not UNSET:
            return b64decode(contents.blob, validate=True)
    except ValueError:
        raise VerificationFailed(contents.uri, "its content cannot be read") from None
    raise VerificationFailed(contents.uri, "it has neither a text nor a blob")


def _check_listed(resources: list[SkillResource], uri: str, content: bytes) -> None:
    listed = next((each for each in resources if each.uri == uri), None)
    if listed is None:
        raise VerificationFailed(uri, "it is not among the files that the skill lists")
    if len(content) != listed.size:
        why = f"its size is {len(content)} bytes, and {listed.size} were listed"
        raise VerificationFailed(uri, why)
    found = digest_of(content)
    if found != listed.digest:
        raise VerificationFailed(uri, f"its digest is {found}, and {listed.digest} was listed")


def _check_frontmatter(entry: SkillEntry, content: bytes) -> None:
    try:
        found = read(content.decode(), entry.uri)
    except UnicodeDecodeError:
        raise VerificationFailed(entry.uri, "its text is not UTF-8") from None
    except FrontmatterError as error:
        raise VerificationFailed(entry.uri, f"its frontmatter cannot be read: {error}") from None
    for key in sorted({*found, *entry.frontmatter}):
        if key not in found or key not in entry.frontmatter:
            where = "the file" if key in found else "the list"
            why = f"{show(key)} is in the frontmatter of {where} alone"
            raise VerificationFailed(entry.uri, why)
        if not _same(found[key], entry.frontmatter[key]):
            raise VerificationFailed(entry.uri, f"{show(key)} is not what was listed")


def _same(one: Any, other: Any) -> bool:
    """Say whether two JSON values are the same: true is no number, 1 and 1.0 are one."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
