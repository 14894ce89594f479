"""Skill entries on the wire, and their validation.

    {"uri": "skill://pdf/SKILL.md", "frontmatter": {"name": "pdf", ...}, "resources": [...]}

The rules that live here, and only here, used by servers and clients:
                                                 [MCP extension io.modelcontextprotocol/skills]

* `uri` ends in /SKILL.md, and the segment before that is the name in the frontmatter.
* A name has 1 to 64 characters of a-z, 0-9 and single hyphens, none at either end.
* `resources` is "dynamic", or lists SKILL.md and every other file of the folder, once each.
* At most 512 files, 16 MiB in total.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, Literal

from msgspec import Struct

from ..jsonrpc.messages import Shown

__all__ = [
    "DIRECTORY",
    "EXTENSION",
    "MARKDOWN",
    "MAX_SKILL_BYTES",
    "MAX_SKILL_FILES",
    "SKILL_FILE",
    "SkillEntry",
    "SkillResource",
    "digest_of",
    "faults_of",
    "frontmatter_fault",
]

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILL_FILE: Final = "SKILL.md"
MARKDOWN: Final = "text/markdown"
DIRECTORY: Final = "inode/directory"

# Hosts need not accept more.
MAX_SKILL_FILES: Final = 512
MAX_SKILL_BYTES: Final = 16 * 1024 * 1024

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME_CHARS: Final = 64
# [Agent Skills, description field]
_MAX_DESCRIPTION_CHARS: Final = 1024
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class SkillResource(Shown, Struct, frozen=True):
    """A file of a skill, with its expected digest and size."""

    uri: str
    digest: str
    size: int


class SkillEntry(Shown, Struct, frozen=True):
    """A skill in the result of `skills/list` and `skills/get`."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource] | Literal["dynamic"]

    @property
    def name(self) -> str:
        """The name in the frontmatter; not unique across servers."""
        return str(self.frontmatter.get("name", ""))

    @property
    def root(self) -> str:
        """The URI of the folder."""
        return self.uri.removesuffix(f"/{SKILL_FILE}")


def digest_of(content: bytes) -> str:
    """Return the digest of a file in the form of entries."""
    return f"sha256:{sha256(content).hexdigest()}"


def frontmatter_fault(frontmatter: dict[str, Any]) -> str:
    """Return what is wrong with the name or description, or ""."""
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if type(name) is not str or len(name) > _MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"name must be 1 to {_MAX_NAME_CHARS} of a-z, 0-9 and single inner hyphens"
    if type(description) is not str or not 0 < len(description) <= _MAX_DESCRIPTION_CHARS:
        return f"description must be a string of 1 to {_MAX_DESCRIPTION_CHARS} characters"
    return ""


def faults_of(entry: SkillEntry) -> str:
    """Return what is wrong with an entry, or ""."""
    fault = frontmatter_fault(entry.frontmatter)
    if fault:
        return fault
    if not entry.uri.endswith(f"/{entry.name}/{SKILL_FILE}"):
        return f"uri must end in /{entry.name}/{SKILL_FILE}, with the name in the frontmatter"
    return "" if entry.resources == "dynamic" else _resources_fault(entry)


def _resources_fault(entry: SkillEntry) -> str:
    assert isinstance(entry.resources, list)
    uris = {each.uri for each in entry.resources}
    if len(entry.resources) > MAX_SKILL_FILES:
        return f"a skill has at most {MAX_SKILL_FILES} files, not {len(entry.resources)}"
    if len(uris) < len(entry.resources):
        return "a file is listed twice"
    if entry.uri not in uris:
        return f"{SKILL_FILE} is not listed"
    if not all(uri.startswith(f"{entry.root}/") for uri in uris):
        return "a file is not in the folder of the skill"
    if not all(_DIGEST.fullmatch(each.digest) for each in entry.resources):
        return "a digest must be sha256: and 64 lower-case hexadecimal digits"
    total = sum(each.size for each in entry.resources)
    if total > MAX_SKILL_BYTES or any(each.size < 0 for each in entry.resources):
        return f"a skill has at most {MAX_SKILL_BYTES} bytes, not {total}"
    return ""
