"""Skills: what a server publishes of them, and that a client finds it as it was told."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tests.conversation.app import SKILLS
from tests.conversation.rig import PREFIX, Raw, Rig
from tests.conversation.rules import rule
from trunkline.spec.revisions import V2026_07_28

NEW = V2026_07_28
PDF = "skill://pdf-processing/SKILL.md"


async def listed(raw: Raw, method: str, member: str) -> list[dict[str, Any]]:
    """Return what is on all pages of a list, and nothing twice."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = await raw.result(method, {} if cursor is None else {"cursor": cursor})
        assert page["ttlMs"] >= 0
        assert page["cacheScope"] in ("private", "public")
        found += page[member]
        if (cursor := page.get("nextCursor")) is None:
            break
    assert len({each["uri"] for each in found}) == len(found)
    return found


@rule("BP-050", since=NEW)
async def test_skills_are_advertised_beside_resources(rig: Rig) -> None:
    capabilities = (await (await rig.able_line("skilled")).result("server/discover"))[
        "capabilities"
    ]
    assert capabilities["extensions"][f"{PREFIX}skills"] == {"directoryRead": True}
    assert "resources" in capabilities


@rule("BP-051", "BP-145", since=NEW)
async def test_skills_are_listed_with_all_their_files(rig: Rig) -> None:
    raw = await rig.able_line("skilled")
    found = {each["uri"]: each for each in await listed(raw, "skills/list", "skills")}
    assert found.keys() == {PDF, "skill://notes/SKILL.md"}
    entry = found[PDF]
    assert entry["frontmatter"] == {
        "name": "pdf-processing",
        "description": "Extracts, fills in and joins PDF documents.",
    }
    files = {each["uri"]: each for each in entry["resources"]}
    assert files.keys() == {PDF, "skill://pdf-processing/references/FORMS.md"}
    for uri, each in files.items():
        content = (SKILLS / uri.removeprefix("skill://")).read_bytes()
        assert each["size"] == len(content)
        assert each["digest"] == f"sha256:{sha256(content).hexdigest()}"


@rule("BP-145", since=NEW)
async def test_one_skill_is_got_by_its_uri(rig: Rig) -> None:
    raw = await rig.able_line("skilled")
    got = await raw.result("skills/get", {"uri": PDF})
    assert got["skill"]["uri"] == PDF
    assert got["ttlMs"] >= 0
    assert "nextCursor" not in got
    for uri in ("skill://nowhere/SKILL.md", "note://text", ""):
        assert (await raw.error("skills/get", {"uri": uri}))["code"] == -32602


@rule("F-25")
async def test_a_skill_is_a_resource_in_every_revision(rig: Rig) -> None:
    client = (await rig.able_client("skilled")).client
    rows = {each.uri: each for each in await client.list_resources()}
    assert rows[PDF].name == "pdf-processing"
    assert rows[PDF].description == "Extracts, fills in and joins PDF documents."
    (contents,) = (await client.read_resource(PDF)).contents
    assert contents.mime_type == "text/markdown"
    assert contents.text == (SKILLS / "pdf-processing" / "SKILL.md").read_text()


@rule("BP-051", since=NEW)
async def test_the_children_of_a_folder_are_read(rig: Rig) -> None:
    raw = await rig.able_line("skilled")
    method = "resources/directory/read"
    found = await raw.result(method, {"uri": "skill://pdf-processing"})
    kinds = {each["uri"]: each["mimeType"] for each in found["resources"]}
    assert kinds[PDF] == "text/markdown"
    assert kinds["skill://pdf-processing/references"] == "inode/directory"
    assert len(kinds) == 2
    for uri in (PDF, "skill://nowhere"):
        assert (await raw.error(method, {"uri": uri}))["code"] == -32602


@rule("K-23", until=NEW, fresh=True)
async def test_skills_are_declared_and_listed_in_sessions_too(rig: Rig) -> None:
    raw = await rig.line("skilled", opened=False)
    declared = (await raw.shake_hands())["capabilities"]["extensions"]
    assert declared[f"{PREFIX}skills"] == {"directoryRead": True}
    found = {each["uri"] for each in await listed(raw, "skills/list", "skills")}
    assert found == {PDF, "skill://notes/SKILL.md"}
    assert (await raw.result("skills/get", {"uri": PDF}))["skill"]["uri"] == PDF
