"""Skills as a server publishes them: lists, files, folders, and what changes."""

from __future__ import annotations

import ast
import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

import trunkline.skills
from tests.rigs.messages import META, PER_REQUEST
from tests.rigs.server_connection import connected
from tests.unit.skills.shelves import skill, write
from trunkline import CacheHint, Client, Server
from trunkline.skills import Skills, verify

SKILLS = "io.modelcontextprotocol/skills"
URI = "skill://pdf/SKILL.md"


def reply_to(app: Server, method: str, **params: Any) -> Any:
    async def main() -> Any:
        async with connected(app, PER_REQUEST) as wire:
            wire.ask(1, method, {"_meta": META, **params})
            return await wire.answer(1)

    return asyncio.run(main())


def served(*folders: Path, **options: Any) -> Server:
    return Server("a", extensions=[Skills(folders, **options)])


def test_skills_extension_is_advertised_with_resources(tmp_path: Path) -> None:
    skill(tmp_path)
    found = reply_to(served(tmp_path), "server/discover")["result"]["capabilities"]
    assert found["extensions"] == {SKILLS: {}}
    assert "resources" in found
    found = reply_to(served(tmp_path, directory_read=True), "server/discover")["result"]
    assert found["capabilities"]["extensions"] == {SKILLS: {"directoryRead": True}}


def test_a_server_without_skills_yet_has_resources_all_the_same(tmp_path: Path) -> None:
    app = served(tmp_path)
    assert "resources" in reply_to(app, "server/discover")["result"]["capabilities"]
    assert reply_to(app, "skills/list")["result"]["skills"] == []


# -- skills/list -----------------------------------------------------------------------------


def test_skills_are_listed_without_a_declaration(tmp_path: Path) -> None:
    skill(tmp_path, **{"references/FORMS.md": "abc"})
    app = served(tmp_path, cache=CacheHint(60, "public"))
    result = reply_to(app, "skills/list")["result"]
    [entry] = result["skills"]
    assert entry["uri"] == URI
    assert entry["frontmatter"] == {"name": "pdf", "description": "Reads PDFs."}
    assert [each["uri"] for each in entry["resources"]] == [URI, "skill://pdf/references/FORMS.md"]
    assert entry["resources"][1]["size"] == 3
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == (
        "complete",
        60_000,
        "public",
    )
    assert "nextCursor" not in result


def test_without_a_cache_of_its_own_the_servers_holds(tmp_path: Path) -> None:
    app = Server("a", cache=CacheHint(5), extensions=[Skills(tmp_path)])
    assert reply_to(app, "skills/list")["result"]["ttlMs"] == 5000


def test_pages_end_and_have_each_skill_once(tmp_path: Path) -> None:
    names = [f"skill-{number}" for number in range(5)]
    for name in names:
        skill(tmp_path, name)
    app, found, cursor = served(tmp_path, page_size=2), [], {}
    for _ in range(3):
        result = reply_to(app, "skills/list", **cursor)["result"]
        found += [each["frontmatter"]["name"] for each in result["skills"]]
        cursor = {"cursor": result.get("nextCursor")}
    assert cursor == {"cursor": None}
    assert found == names


@pytest.mark.parametrize("cursor", ["", "x", "1", "2.", "-1.{}", "0.{}", "9.{}", "²..{}", "1{}.{}"])
def test_a_cursor_that_was_not_given_out_is_refused(tmp_path: Path, cursor: str) -> None:
    for number in range(3):
        skill(tmp_path, f"skill-{number}")
    app = served(tmp_path, page_size=1)
    given = reply_to(app, "skills/list")["result"]["nextCursor"]
    mark = given.partition(".")[2]
    error = reply_to(app, "skills/list", cursor=cursor.replace("{}", mark))["error"]
    assert error["code"] == -32602
    assert reply_to(app, "skills/list", cursor=given)["result"]["skills"]


def test_a_cursor_is_good_for_the_list_as_it_was(tmp_path: Path) -> None:
    for number in range(3):
        skill(tmp_path, f"skill-{number}")
    app = served(tmp_path, page_size=1)
    cursor = reply_to(app, "skills/list")["result"]["nextCursor"]
    skill(tmp_path, "another")
    assert reply_to(app, "skills/list", cursor=cursor)["error"]["code"] == -32602


# -- skills/get, and folders -----------------------------------------------------------------


def test_a_skill_is_got_by_its_uri(tmp_path: Path) -> None:
    skill(tmp_path)
    app = served(tmp_path)
    result = reply_to(app, "skills/get", uri=URI)["result"]
    assert [result["skill"]] == reply_to(app, "skills/list")["result"]["skills"]
    assert {"ttlMs", "cacheScope"} <= set(result)
    assert "nextCursor" not in result


@pytest.mark.parametrize("uri", ["skill://other/SKILL.md", "skill://pdf", "", "skill://pdf/a.md"])
def test_get_of_a_uri_that_is_not_a_skill_is_invalid_params(tmp_path: Path, uri: str) -> None:
    skill(tmp_path, **{"a.md": "x"})
    assert reply_to(served(tmp_path), "skills/get", uri=uri)["error"]["code"] == -32602


def test_a_folder_is_read_where_the_server_said_so(tmp_path: Path) -> None:
    write(skill(tmp_path), {"templates/a.md": "x"})
    app = served(tmp_path, directory_read=True)
    resources = reply_to(app, "resources/directory/read", uri="skill://pdf")["result"]["resources"]
    assert [(each["name"], each["mimeType"]) for each in resources] == [
        ("pdf", "text/markdown"),
        ("templates", "inode/directory"),
    ]
    below = reply_to(app, "resources/directory/read", uri="skill://pdf/templates")["result"]
    assert below["resources"] == [
        {
            "name": "a.md",
            "uri": "skill://pdf/templates/a.md",
            "mimeType": "text/markdown",
            "size": 1,
        }
    ]
    for unfit in (URI, "skill://other", "skill://pdf/", "skill://"):
        error = reply_to(app, "resources/directory/read", uri=unfit)["error"]
        assert error["code"] == -32602
    error = reply_to(app, "resources/directory/read", uri="skill://pdf", cursor="x")["error"]
    assert error["code"] == -32602


def test_directory_read_is_method_not_found_unless_enabled(tmp_path: Path) -> None:
    skill(tmp_path)
    error = reply_to(served(tmp_path), "resources/directory/read", uri="skill://pdf")["error"]
    assert error["code"] == -32601


# -- resources -------------------------------------------------------------------------------


def test_skill_files_are_listed_with_what_their_frontmatter_says(tmp_path: Path) -> None:
    skill(tmp_path, **{"a.md": "x"})
    [resource] = reply_to(served(tmp_path), "resources/list")["result"]["resources"]
    assert resource["uri"] == URI
    assert (resource["name"], resource["description"]) == ("pdf", "Reads PDFs.")
    assert resource["mimeType"] == "text/markdown"


def test_every_file_is_read_as_it_was_listed(tmp_path: Path) -> None:
    write(skill(tmp_path), {"references/ü b.md": "é", "scripts/a.bin": b"\xff\x00"})

    async def main() -> None:
        async with Client(served(tmp_path)) as client:
            [entry] = (await client.request("skills/list"))["skills"]
            assert len(entry["resources"]) == 3
            for each in entry["resources"]:
                assert len(verify(entry, await client.read_resource(each["uri"]))) == each["size"]

    asyncio.run(main())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_a_client_of_a_handshake_reads_them_as_resources(tmp_path: Path, revision: str) -> None:
    skill(tmp_path, **{"a.md": "abc"})

    async def main() -> None:
        async with Client(served(tmp_path), revision=revision) as client:
            assert [each.uri for each in await client.list_resources()] == [URI]
            assert (await client.read_resource("skill://pdf/a.md")).contents[0].text == "abc"

    asyncio.run(main())


@pytest.mark.parametrize(
    "uri",
    [
        "skill://pdf/../secret.txt",
        "skill://pdf/%2e%2e/secret.txt",
        "skill://pdf/..%2Fsecret.txt",
        "skill://../secret.txt",
        "skill:///etc/passwd",
        "skill://pdf/./a.md",
        "skill://pdf//a.md",
        "skill://pdf/%61.md",
        "skill://pdf/.hidden",
        "skill://pdf",
    ],
)
def test_nothing_else_is_read(tmp_path: Path, uri: str) -> None:
    write(tmp_path, {"secret.txt": "secret"})
    skill(tmp_path / "skills", **{"a.md": "x", ".hidden": "x"})
    assert (
        reply_to(served(tmp_path / "skills"), "resources/read", uri=uri)["error"]["code"] == -32602
    )


# -- changes ---------------------------------------------------------------------------------


def test_a_changed_file_has_a_fresh_digest_and_subscribers_hear_of_it(tmp_path: Path) -> None:
    home = skill(tmp_path, **{"a.md": "abc"})

    async def main() -> None:
        async with connected(served(tmp_path), "2025-11-25") as wire:
            wire.ask(1, "resources/subscribe", {"uri": "skill://pdf/a.md"})
            await wire.answer(1)
            write(home, {"a.md": "abcd"})
            wire.ask(2, "resources/read", {"uri": "skill://pdf/a.md"})
            assert (await wire.answer(2))["result"]["contents"][0]["text"] == "abcd"
            await wire.until(3)
            found = [each["params"] for each in wire.got if "method" in each]
            assert found == [{"uri": "skill://pdf/a.md"}]

    asyncio.run(main())
    app = served(tmp_path)
    before = reply_to(app, "skills/get", uri=URI)["result"]["skill"]["resources"]
    write(home, {"a.md": "other"})
    after = reply_to(app, "skills/get", uri=URI)["result"]["skill"]["resources"]
    assert before[0] == after[0]
    assert before[1]["digest"] != after[1]["digest"]


def test_skills_that_come_and_go_change_the_list_of_resources(tmp_path: Path) -> None:
    home = skill(tmp_path)
    app = served(tmp_path)

    async def main() -> None:
        async with connected(app, "2025-11-25") as wire:
            skill(tmp_path, "new", "A new one.")
            write(home, {"SKILL.md": "---\nname: pdf\ndescription: Changed.\n---\n"})
            # Whoever lists skills has the folders looked at.
            await asyncio.to_thread(app._core.extensions[SKILLS].extension._rescan)  # type: ignore[attr-defined]  # ours
            await wire.until(1)
            assert wire.got[0]["method"] == "notifications/resources/list_changed"
            wire.ask(1, "resources/list")
            rows = (await wire.answer(1))["result"]["resources"]
            assert {each["name"]: each["description"] for each in rows} == {
                "pdf": "Changed.",
                "new": "A new one.",
            }

    asyncio.run(main())
    (home / "SKILL.md").unlink()
    assert len(reply_to(app, "skills/list")["result"]["skills"]) == 1
    assert len(reply_to(app, "resources/list")["result"]["resources"]) == 1
    assert reply_to(app, "resources/read", uri=URI)["error"]["code"] == -32602


def test_a_file_that_is_new_is_found_when_it_is_asked_for(tmp_path: Path) -> None:
    home = skill(tmp_path)
    app = served(tmp_path)
    write(home, {"late.md": "late"})
    contents = reply_to(app, "resources/read", uri="skill://pdf/late.md")["result"]["contents"]
    assert contents[0]["text"] == "late"


def test_a_file_that_is_gone_is_not_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = skill(tmp_path, **{"a.md": "x"})
    app = served(tmp_path)
    (home / "a.md").unlink()
    assert reply_to(app, "resources/read", uri="skill://pdf/a.md")["error"]["code"] == -32602
    assert "cannot be read" in caplog.text


def test_invalid_skill_is_left_out_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = skill(tmp_path)
    app = served(tmp_path)
    write(home, {"SKILL.md": "---\nname: *x\n---\n"})
    with caplog.at_level(logging.ERROR, "trunkline.skills"):
        assert reply_to(app, "skills/list")["result"]["skills"] == []
        assert reply_to(app, "skills/list")["result"]["skills"] == []
    assert caplog.text.count("skill left out") == 1
    skill(tmp_path)
    assert len(reply_to(app, "skills/list")["result"]["skills"]) == 1


def test_second_skill_with_the_same_name_is_left_out_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skill(tmp_path / "two")
    app = served(tmp_path)
    skill(tmp_path / "one", description="Another.")
    for _ in range(2):
        [entry] = reply_to(app, "skills/list")["result"]["skills"]
        assert entry["uri"] == "skill://two/pdf/SKILL.md"
    assert caplog.text.count("already has the name 'pdf'") == 1
    error = reply_to(app, "resources/read", uri="skill://one/pdf/SKILL.md")["error"]
    assert error["code"] == -32602


def test_a_file_that_became_a_link_to_what_begins_with_a_dot_is_not_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = skill(tmp_path, **{"a.md": "x", ".env": "KEY=secret"})
    app = served(tmp_path)
    (home / "a.md").unlink()
    (home / "a.md").symlink_to(".env")
    assert reply_to(app, "resources/read", uri="skill://pdf/a.md")["error"]["code"] == -32602
    assert reply_to(app, "skills/list")["result"]["skills"] == []
    assert "begins with a dot" in caplog.text
    assert "secret" not in caplog.text


def test_a_list_of_resources_is_what_was_last_looked_at(tmp_path: Path) -> None:
    skill(tmp_path)
    app = served(tmp_path)
    skill(tmp_path, "new")

    def names() -> list[str]:
        rows = reply_to(app, "resources/list")["result"]["resources"]
        return [each["name"] for each in rows]

    assert names() == ["pdf"]
    assert reply_to(app, "resources/read", uri="skill://new/SKILL.md")["result"]
    assert names() == ["pdf", "new"]


# -- what an author may not do ---------------------------------------------------------------


def test_an_unfit_skill_is_said_when_it_is_made(tmp_path: Path) -> None:
    write(tmp_path / "pdf", {"SKILL.md": "---\nname: pdf\n---\n"})
    with pytest.raises(ValueError, match="description must be a string"):
        Skills(tmp_path)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        Skills(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="at least 1"):
        Skills(tmp_path, page_size=0)


def test_a_folder_is_where_it_was_when_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill(tmp_path / "skills")
    monkeypatch.chdir(tmp_path)
    app = served(Path("skills"))
    monkeypatch.chdir("/")
    assert len(reply_to(app, "skills/list")["result"]["skills"]) == 1


def test_one_name_for_two_skills_is_said_when_it_is_made(tmp_path: Path) -> None:
    skill(tmp_path / "one")
    skill(tmp_path / "two")
    with pytest.raises(ValueError, match=r"one/pdf/SKILL\.md already has the name 'pdf'"):
        Skills(tmp_path)


def test_a_link_to_what_begins_with_a_dot_is_said_when_it_is_made(tmp_path: Path) -> None:
    home = skill(tmp_path, **{".env": "KEY=secret"})
    (home / "notes.txt").symlink_to(".env")
    with pytest.raises(ValueError, match=r"notes\.txt: .* begins with a dot"):
        Skills(tmp_path)


def test_a_resource_that_is_taken_leaves_the_server_as_it_was(tmp_path: Path) -> None:
    skill(tmp_path)
    app = Server("a")
    app.add_resource(lambda: "mine", URI)
    with pytest.raises(ValueError, match="already"):
        app.add_extension(Skills(tmp_path))
    assert app._core.extensions == {}
    assert len(app._core.catalog.templates) == 0
    assert len(app._core.catalog.resources) == 1


def test_skills_import_only_the_public_interface_of_servers() -> None:
    package = Path(trunkline.skills.__file__).parent
    for path in package.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert not (node.module or "").startswith("server."), path
                if node.module == "server":
                    public = set(trunkline.server.__all__)
                    assert {each.name for each in node.names} <= public
