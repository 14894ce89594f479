"""What a skill looks like on the wire, and what may be in an entry.

    {"uri": "skill://pdf/SKILL.md", "frontmatter": {"name": "pdf", ...}, "resources": [...]}

The rules that live here, and only here, are for whoever writes an entry and for whoever reads
one:                                             [MCP extension io.modelcontextprotocol/skills]

* `uri` ends in /SKILL.md, and the segment before that is the name in the frontmatter.
* A name has 1 to 64 of a-z, 0-9 and hyphens, of which none is at an end or beside another.
* `resources` is "dynamic", or lists SKILL.md and every other file of the folder, once each.
* There are at most 512 of them, with 16 MiB together.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, Literal

from msgspec import Struct

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

# What every host takes; beyond that a skill may be of no use to anybody.
MAX_SKILL_FILES: Final = 512
MAX_SKILL_BYTES: Final = 16 * 1024 * 1024

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME_CHARS: Final = 64
# [Agent Skills, description field]
_MAX_DESCRIPTION_CHARS: Final = 1024
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class SkillResource(Struct, frozen=True):
    """A file of a skill: where it is read, and what it then has to be."""

    uri: str
    digest: str
    size: int


class SkillEntry(Struct, frozen=True):
    """A skill, as `skills/list` and `skills/get` give it."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource] | Literal["dynamic"]

    @property
    def name(self) -> str:
        """What the skill is called; another one may be called the same."""
        return str(self.frontmatter.get("name", ""))

    @property
    def root(self) -> str:
        """The URI of the folder."""
        return self.uri.removesuffix(f"/{SKILL_FILE}")


def digest_of(content: bytes) -> str:
    """Return the digest of a file, as entries have it."""
    return f"sha256:{sha256(content).hexdigest()}"


def frontmatter_fault(frontmatter: dict[str, Any]) -> str:
    """Return what the name or the description is not that it has to be, or nothing."""
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if type(name) is not str or len(name) > _MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"name is 1 to {_MAX_NAME_CHARS} of a-z, 0-9 and single hyphens inside"
    if type(description) is not str or not 0 < len(description) <= _MAX_DESCRIPTION_CHARS:
        return f"description is a text of 1 to {_MAX_DESCRIPTION_CHARS} characters"
    return ""


def faults_of(entry: SkillEntry) -> str:
    """Return what is wrong with an entry by itself, or nothing."""
    fault = frontmatter_fault(entry.frontmatter)
    if fault:
        return fault
    if not entry.uri.endswith(f"/{entry.name}/{SKILL_FILE}"):
        return f"uri ends in /{entry.name}/{SKILL_FILE}, as the name in the frontmatter has it"
    return "" if entry.resources == "dynamic" else _resources_fault(entry)


def _resources_fault(entry: SkillEntry) -> str:
    assert isinstance(entry.resources, list)
    uris = {each.uri for each in entry.resources}
    if len(entry.resources) > MAX_SKILL_FILES:
        return f"a skill has at most {MAX_SKILL_FILES} files, not {len(entry.resources)}"
    if len(uris) < len(entry.resources):
        return "each file is listed once"
    if entry.uri not in uris:
        return f"{SKILL_FILE} is listed, too"
    if not all(uri.startswith(f"{entry.root}/") for uri in uris):
        return "every file is in the skill's folder"
    if not all(_DIGEST.fullmatch(each.digest) for each in entry.resources):
        return "a digest is sha256: and 64 digits, 0 to 9 and a to f"
    total = sum(each.size for each in entry.resources)
    if total > MAX_SKILL_BYTES or any(each.size < 0 for each in entry.resources):
        return f"a skill has at most {MAX_SKILL_BYTES} bytes, not {total}"
    return ""
