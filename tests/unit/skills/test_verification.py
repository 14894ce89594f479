"""Verifying: what was listed is used, and nothing else."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from msgspec import to_builtins

from trunkline import TrunklineError
from trunkline.mcp.types import ReadResourceResult, ResourceContents
from trunkline.skills import SkillEntry, SkillResource, VerificationFailed, verify
from trunkline.skills.entries import digest_of

URI = "skill://pdf/SKILL.md"
FORMS = "skill://pdf/references/FORMS.md"
TEXT = "---\nname: pdf\ndescription: Reads PDFs.\nmetadata:\n  version: 2\n---\n# PDF é\n"


def listed(uri: str, content: bytes) -> SkillResource:
    return SkillResource(uri, digest_of(content), len(content))


def entry(**changes: Any) -> SkillEntry:
    members: dict[str, Any] = {
        "uri": URI,
        "frontmatter": {"name": "pdf", "description": "Reads PDFs.", "metadata": {"version": 2}},
        "resources": [listed(URI, TEXT.encode()), listed(FORMS, b"\xffforms")],
    }
    return SkillEntry(**{**members, **changes})


def text(content: str = TEXT, uri: str = URI) -> ReadResourceResult:
    return ReadResourceResult([ResourceContents(uri, text=content)])


def blob(content: bytes, uri: str = FORMS) -> ResourceContents:
    return ResourceContents(uri, blob=b64encode(content).decode())


def test_verify_returns_the_bytes_that_were_listed() -> None:
    assert verify(entry(), text()) == TEXT.encode()
    assert verify(entry(), blob(b"\xffforms")) == b"\xffforms"


def test_an_entry_may_be_as_it_came() -> None:
    assert verify(to_builtins(entry()), text()) == TEXT.encode()
    assert verify(to_builtins(entry(resources="dynamic")), text()) == TEXT.encode()


def fails(given: Any, contents: Any) -> VerificationFailed:
    with pytest.raises(VerificationFailed) as caught:
        verify(given, contents)
    assert isinstance(caught.value, TrunklineError)
    return caught.value


def test_another_size_is_a_failure() -> None:
    assert "the size is 5 bytes, 6 were listed" in str(fails(entry(), blob(b"forms")))


def test_another_digest_is_a_failure() -> None:
    error = fails(entry(), blob(b"\xffFORMS"))
    assert "the digest is sha256:" in error.why
    assert error.uri == FORMS


def test_a_file_that_is_not_listed_is_a_failure() -> None:
    error = fails(entry(), text("x", "skill://pdf/other.md"))
    assert "does not list this file" in error.why


@pytest.mark.parametrize(
    ("frontmatter", "why"),
    [
        ({"description": "Reads all."}, "'description' differs from the entry"),
        ({"license": "MIT"}, "'license' is only in the frontmatter of the entry"),
        ({"metadata": {"version": "2"}}, "'metadata' differs from the entry"),
        ({"metadata": {"version": 2, "more": 1}}, "'metadata' differs from the entry"),
        ({"metadata": [2]}, "'metadata' differs from the entry"),
    ],
)
def test_another_frontmatter_is_a_failure(frontmatter: dict[str, Any], why: str) -> None:
    told = {**entry().frontmatter, **frontmatter}
    assert why in fails(entry(frontmatter=told), text()).why
    # Where there are no digests, it is all that can be compared.
    assert why in fails(entry(frontmatter=told, resources="dynamic"), text()).why


def test_a_member_that_only_the_file_has_is_a_failure() -> None:
    told = {"name": "pdf", "description": "Reads PDFs."}
    assert "only in the frontmatter of the file" in fails(entry(frontmatter=told), text()).why


def test_true_is_not_one_and_one_is_one() -> None:
    head = "---\nname: pdf\ndescription: x\na: {}\n---\n"

    def given(word: str, value: Any) -> tuple[SkillEntry, ReadResourceResult]:
        content = head.replace("{}", word)
        told = {"name": "pdf", "description": "x", "a": value}
        return entry(frontmatter=told, resources=[listed(URI, content.encode())]), text(content)

    assert verify(*given("1", 1.0))
    assert verify(*given("[1, 2.5]", [1, 2.5]))
    fails(*given("true", 1))
    fails(*given("1", True))
    fails(*given("[1]", [1, 2]))
    fails(*given("null", False))


def test_a_frontmatter_that_cannot_be_read_is_a_failure() -> None:
    content = "---\nname: *x\n---\n"
    error = fails(entry(resources=[listed(URI, content.encode())]), text(content))
    assert "invalid frontmatter" in error.why
    assert "line 2" in error.why
    broken = b"---\nname: \xff\n---\n"
    error = fails(entry(resources=[listed(URI, broken)]), blob(broken, URI))
    assert "not UTF-8" in error.why


def test_a_dynamic_skill_has_files_in_its_folder_alone() -> None:
    dynamic = entry(resources="dynamic")
    assert verify(dynamic, text("anything", FORMS)) == b"anything"
    assert "not a file of the skill" in fails(dynamic, text("x", "skill://other/x.md")).why


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "not an entry of a skill"),
        ({"uri": URI, "frontmatter": {"name": "pdf"}}, "not an entry of a skill"),
        (
            {"uri": URI, "frontmatter": {"name": "pdf", "description": "x"}, "resources": "some"},
            "not an entry of a skill",
        ),
        (
            {"uri": URI, "frontmatter": {"name": "pdf"}, "resources": "dynamic"},
            "invalid entry: description",
        ),
        (
            {"uri": URI, "frontmatter": {"name": "pdf", "description": "x"}, "resources": []},
            "invalid entry: SKILL.md is not listed",
        ),
    ],
)
def test_an_entry_that_is_none_is_a_failure(given: dict[str, Any], why: str) -> None:
    assert why in fails(given, text()).why


@pytest.mark.parametrize(
    ("contents", "why"),
    [
        (ReadResourceResult([]), "got 0"),
        (ReadResourceResult([ResourceContents(URI, text="a")] * 2), "got 2"),
        (ResourceContents(URI), "neither text nor blob"),
        (ResourceContents(URI, blob="no base64!"), "cannot be decoded"),
        (ResourceContents(URI, text="\ud83d"), "cannot be decoded"),
    ],
)
def test_malformed_contents_fail_verification(contents: Any, why: str) -> None:
    assert why in fails(entry(), contents).why
