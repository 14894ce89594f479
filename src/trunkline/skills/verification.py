"""Verification of skill files by a client: size, digest and frontmatter against the entry.

    entry = listed["skills"][0]
    text = verify(entry, await client.read_resource(entry["uri"])).decode()

Nothing is fetched here: a file is read when it is needed, and verified then.

The rules that live here, and only here:         [MCP extension io.modelcontextprotocol/skills]

* A file that is not listed, or has another size or digest than listed, is rejected.
* The frontmatter of SKILL.md equals that of the entry, member by member: a user approved the entry.
* A "dynamic" skill has no digests; its frontmatter is compared all the same.

A match means that list and file agree, not that either can be trusted.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from msgspec import ValidationError, convert

from ..errors import TrunklineError
from ..mcp.types import ReadResourceResult, ResourceContents
from ..redaction import show
from .entries import SkillEntry, SkillResource, digest_of, faults_of
from .frontmatter import FrontmatterError, read

__all__ = ["VerificationFailed", "verify"]


class VerificationFailed(TrunklineError):
    """A skill differs from its entry: do not use it. `skills/get` returns the current entry."""

    def __init__(self, uri: str, why: str) -> None:
        super().__init__(f"{show(uri)}: {why}")
        self.uri = uri
        self.why = why


def verify(
    entry: SkillEntry | Mapping[str, Any], contents: ReadResourceResult | ResourceContents
) -> bytes:
    """Return the verified content of one file of a skill.

    `entry` is one of `skills/list`, or the `skill` of `skills/get`; `contents` is the result of
    `resources/read` for one of its files.

    Raises:
        VerificationFailed: the content differs from the entry, or the entry is invalid.
    """
    known = _entry(entry)
    one = _only(known, contents)
    content = _bytes(one)
    if isinstance(known.resources, list):
        _check_listed(known.resources, one.uri, content)
    elif not one.uri.startswith(f"{known.root}/"):
        raise VerificationFailed(one.uri, f"not a file of the skill {show(known.uri)}")
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
            raise VerificationFailed(uri, f"not an entry of a skill: {error}") from None
    fault = faults_of(entry)
    if fault:
        raise VerificationFailed(entry.uri, f"invalid entry: {fault}")
    return entry


def _only(entry: SkillEntry, contents: ReadResourceResult | ResourceContents) -> ResourceContents:
    if isinstance(contents, ResourceContents):
        return contents
    if len(contents.contents) != 1:
        why = f"expected one content, got {len(contents.contents)}"
        raise VerificationFailed(entry.uri, why)
    return contents.contents[0]


def _bytes(contents: ResourceContents) -> bytes:
    try:
        if contents.text is not None:
            return contents.text.encode()
        if contents.blob is not None:
            return b64decode(contents.blob, validate=True)
    except ValueError:
        raise VerificationFailed(contents.uri, "the content cannot be decoded") from None
    raise VerificationFailed(contents.uri, "the content has neither text nor blob")


def _check_listed(resources: list[SkillResource], uri: str, content: bytes) -> None:
    listed = next((each for each in resources if each.uri == uri), None)
    if listed is None:
        raise VerificationFailed(uri, "the skill does not list this file")
    if len(content) != listed.size:
        why = f"the size is {len(content)} bytes, {listed.size} were listed"
        raise VerificationFailed(uri, why)
    found = digest_of(content)
    if found != listed.digest:
        raise VerificationFailed(uri, f"the digest is {found}, {listed.digest} was listed")


def _check_frontmatter(entry: SkillEntry, content: bytes) -> None:
    try:
        found = read(content.decode(), entry.uri)
    except UnicodeDecodeError:
        raise VerificationFailed(entry.uri, "the file is not UTF-8") from None
    except FrontmatterError as error:
        raise VerificationFailed(entry.uri, f"invalid frontmatter: {error}") from None
    for key in sorted({*found, *entry.frontmatter}):
        if key not in found or key not in entry.frontmatter:
            where = "the file" if key in found else "the entry"
            why = f"{show(key)} is only in the frontmatter of {where}"
            raise VerificationFailed(entry.uri, why)
        if not _same(found[key], entry.frontmatter[key]):
            raise VerificationFailed(entry.uri, f"{show(key)} differs from the entry")


def _same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal: true differs from 1, and 1 equals 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)
