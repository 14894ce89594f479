"""A small site with faults in it: its build fails, names each, and can be repeated."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.site_build import BUILD, DOCS, ROOT, finish, parse, start

# The build is shared by the tests of this file, so one worker runs them all.
pytestmark = pytest.mark.xdist_group("site")

EVIL = "<script>alert(1)</script>"
FAULTY = {
    "index.md": "# A\n\n```{toctree}\nlinks\nnames\nhtml\n```\n",
    "links.md": (
        "# B\n\n[gone](gone.md)\n\n[x](names.md#no)\n\n[here](#nowhere)\n\n```klingon\nx\n```\n"
    ),
    "lost.md": "# Lost\n",
    "names.md": (
        "# C\n\n```{api} trunkline.skills\nSkillEntry Nonesuch verify nothing_*\n```\n\n"
        "```{api} trunkline.skills\nverify\n```\n\n"
        "```{api} trunkline.server.Extension\nAll: method no_such_member\n```\n"
    ),
    "html.md": f"# H {EVIL}\n\n{EVIL}\n\n`{EVIL}` [x](javascript:alert(1))\n\n## Two {EVIL}\n",
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of pages with faults."""
    docs = tmp_path_factory.mktemp("faulty") / "docs"
    docs.mkdir()
    for name, text in FAULTY.items():
        (docs / name).write_text(text, encoding="utf-8")
    shutil.copytree(DOCS / "_site", docs / "_site", ignore=shutil.ignore_patterns("__pycache__"))
    (docs / "_site" / "objects.py").write_text(
        (DOCS / "_site" / "objects.py")
        .read_text(encoding="utf-8")
        .replace("Path(__file__).resolve().parents[2]", f"Path({str(ROOT)!r})"),
        encoding="utf-8",
    )
    settings = (DOCS / "conf.py").read_text(encoding="utf-8")
    settings += '\napi_packages = ("trunkline.skills",)\n'
    (docs / "conf.py").write_text(settings, encoding="utf-8")
    return docs


@pytest.fixture(scope="module")
def faulty(sources: Path) -> tuple[int, str, Path]:
    """A build of pages with faults: its status, what it says, and what it wrote."""
    out = sources.parent / "out"
    status, output = finish(start(sources, out))
    return status, output, out


@pytest.mark.full
def test_two_builds_give_the_same_bytes_whatever_the_order_of_sets(
    sources: Path, faulty: tuple[int, str, Path], tmp_path: Path
) -> None:
    again = tmp_path / "again"
    finish(start(sources, again, "2"))
    trees = [
        {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        for out in (faulty[2], again)
    ]
    assert len(trees[0]) > len(FAULTY)
    assert trees[0].keys() == trees[1].keys()
    assert [path for path in trees[0] if trees[0][path] != trees[1][path]] == []


@pytest.mark.parametrize(
    "fault",
    [
        r"links\.md:3: WARNING: .*gone\.md",
        r"links\.md:5: WARNING: .*no",
        r"links\.md:7: WARNING: .*nowhere",
        r"links\.md:9: WARNING: .*klingon",
        r"lost\.md: WARNING: document isn't included in any toctree",
        r"names\.md:3: WARNING: trunkline\.skills exports no Nonesuch",
        r"names\.md:3: WARNING: trunkline\.skills exports nothing like nothing_\*",
        r"names\.md:7: WARNING: trunkline\.skills\.verify has two entries",
        r"names\.md:11: WARNING: trunkline\.server\.Extension has no public member no_such_member",
        r"trunkline\.skills\.Skills is exported and has no entry in the reference",
    ],
)
def test_fault_fails_the_build_and_is_reported_with_file_and_line(
    fault: str, faulty: tuple[int, str, Path]
) -> None:
    status, output, _ = faulty
    assert status != 0
    assert re.search(fault, output), output


def test_html_in_a_page_is_shown_as_text(faulty: tuple[int, str, Path]) -> None:
    out = faulty[2]
    html = (out / "html.html").read_text(encoding="utf-8")
    plain = (out / "lost.html").read_text(encoding="utf-8")
    assert parse(html).tags.count("script") == parse(plain).tags.count("script")
    assert html.count("alert(1)") > 4
    assert not [link for _, link in parse(html).links if link.startswith("javascript:")]


def test_make_docs_builds_as_these_tests_do() -> None:
    assert f"/bin/python {BUILD} $(DOCS_VENV)/doctrees docs site" in (ROOT / "Makefile").read_text()
