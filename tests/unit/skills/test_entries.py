"""Entries of skills: what may be in one."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.skills import SkillEntry, SkillResource
from trunkline.skills.entries import digest_of, faults_of, frontmatter_fault

URI = "skill://acme/pdf/SKILL.md"
DIGEST = "sha256:" + "0" * 64


def entry(**changes: Any) -> SkillEntry:
    members: dict[str, Any] = {
        "uri": URI,
        "frontmatter": {"name": "pdf", "description": "Reads PDFs."},
        "resources": [SkillResource(URI, DIGEST, 3)],
    }
    return SkillEntry(**{**members, **changes})


def test_an_entry_that_is_in_order_has_no_fault() -> None:
    assert faults_of(entry()) == ""
    assert faults_of(entry(resources="dynamic")) == ""
    assert (entry().name, entry().root) == ("pdf", "skill://acme/pdf")


@pytest.mark.parametrize("name", ["a", "pdf-2", "a-b-c", "0", "x" * 64])
def test_a_name_that_is_in_order(name: str) -> None:
    assert frontmatter_fault({"name": name, "description": "x"}) == ""


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "a--b", "A", "a_b", "a b", "é", "x" * 65, None, 7, "a\n"]
)
def test_a_name_that_is_not(name: Any) -> None:
    assert "name must be 1 to 64" in frontmatter_fault({"name": name, "description": "x"})


@pytest.mark.parametrize("description", ["", None, 7, "x" * 1025])
def test_a_description_that_is_not_in_order(description: Any) -> None:
    assert "description must be" in frontmatter_fault({"name": "a", "description": description})


def files(count: int, size: int = 1) -> list[SkillResource]:
    others = [SkillResource(f"skill://acme/pdf/{n}", DIGEST, size) for n in range(count - 1)]
    return [SkillResource(URI, DIGEST, size), *others]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"uri": "skill://acme/other/SKILL.md"}, "uri must end in /pdf/SKILL.md"),
        ({"uri": "skill://acme/pdf"}, "uri must end in"),
        ({"resources": []}, "SKILL.md is not listed"),
        ({"resources": files(1) * 2}, "listed twice"),
        ({"resources": files(513)}, "at most 512 files, not 513"),
        ({"resources": files(2, 8 * 1024 * 1024 + 1)}, "at most 16777216 bytes"),
        ({"resources": [SkillResource(URI, DIGEST, -1)]}, "bytes"),
        (
            {"resources": [*files(1), SkillResource("skill://acme/pdf2/x", DIGEST, 1)]},
            "not in the folder of the skill",
        ),
        ({"resources": [SkillResource(URI, DIGEST.upper(), 3)]}, "a digest must be"),
        ({"resources": [SkillResource(URI, "sha256:" + "F" * 64, 3)]}, "a digest must be"),
    ],
)
def test_fault_of_an_entry_is_named(changes: dict[str, Any], why: str) -> None:
    assert why in faults_of(entry(**changes))


def test_the_limits_themselves_are_in_order() -> None:
    assert faults_of(entry(resources=files(512))) == ""
    assert faults_of(entry(resources=files(2, 8 * 1024 * 1024))) == ""


def test_a_digest_is_that_of_sha256() -> None:
    assert digest_of(b"abc") == (
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
