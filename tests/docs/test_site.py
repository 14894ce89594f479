"""`tools/build_site.py`: the real pages, and small ones with one fault each."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tools.build_site import (
    ASSETS,
    INDEX,
    ROOT,
    Faulty,
    anchor_of,
    build,
    load,
    main,
    put,
    relative,
)

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder of pages by name, all of them in its list unless `listed` says otherwise."""

    def make(pages: dict[str, str], listed: list[str] | None = None) -> Path:
        docs = tmp_path / "docs"
        for name, text in pages.items():
            (docs / name).parent.mkdir(parents=True, exist_ok=True)
            (docs / name).write_text(text)
        entries = json.dumps([name for name in pages if name.endswith(".md")])
        entries = entries if listed is None else json.dumps(listed)
        section = f'[[section]]\ntitle = "All <of> it"\npages = {entries}\n'
        (docs / "site.toml").write_text(f'title = "Here"\nabout = "What & why"\n{section}')
        return docs

    return make


def faults_of(docs: Path) -> list[str]:
    with pytest.raises(Faulty) as caught:
        build(docs)
    return list(caught.value.faults)


@dataclass
class Seen(HTMLParser):
    """What a browser makes of a page: its tags, its links, and what can be linked to."""

    tags: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has {name}"
            if name in ("href", "src", "action"):
                self.links.append((tag, value or ""))
            elif name == "id":
                self.ids.append(value or "")


def seen(html: bytes) -> Seen:
    found = Seen()
    found.feed(html.decode())
    return found


# The real pages.


@cache
def real() -> dict[str, bytes]:
    return build(ROOT / "docs")


def test_every_page_of_the_docs_is_in_the_list_and_every_link_leads_somewhere() -> None:
    pages = {path for path in real() if path.endswith(".html")}
    there = list((ROOT / "docs").rglob("*.md"))
    assert len(pages) == len(there)
    assert {"index.html", "servers.html", "decisions/index.html"} <= pages


def test_what_was_written_can_be_reached_and_nothing_is_loaded_from_elsewhere() -> None:
    files = real()
    pages = {name: seen(content) for name, content in files.items() if name.endswith(".html")}
    for name, page in pages.items():
        for tag, link in page.links:
            if link.startswith(("http://", "https://")):
                assert tag == "a", f"{name} loads {link}"
                continue
            if link.startswith("data:"):
                continue
            assert not link.startswith("/"), f"{name} links to {link}, which depends on the host"
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            assert target in files, f"{name} links to {link}"
            assert not anchor or anchor in pages[target].ids, f"{name} links to {link}"
    assert b"url(" not in files["style.css"]
    assert b"@import" not in files["style.css"]


def test_a_page_has_landmarks_one_heading_and_no_id_twice() -> None:
    for name, content in real().items():
        if not name.endswith(".html"):
            continue
        page = seen(content)
        for tag in ("header", "main", "h1", "title"):
            assert page.tags.count(tag) == 1, f"{name} has {page.tags.count(tag)} of {tag}"
        assert page.tags.count("nav") >= 2
        assert len(page.ids) == len(set(page.ids)), name
        assert ("a", "#site.main") in page.links


def test_two_builds_give_the_same_bytes_whatever_the_order_of_sets(tmp_path: Path) -> None:
    trees = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        command = [sys.executable, str(ROOT / "tools" / "build_site.py"), "--out", str(out)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run(command, check=True, env=environment, timeout=60, capture_output=True)
        files = (path for path in out.rglob("*") if path.is_file())
        trees.append({path.relative_to(out): path.read_bytes() for path in files})
    assert trees[0] == trees[1]
    assert Path("decisions/index.html") in trees[0]


def test_search_knows_every_heading() -> None:
    files = real()
    script = files[INDEX].decode()
    entries = json.loads(script.removeprefix("window.searchIndex = ").removesuffix(";\n"))
    by_address = {entry["at"]: entry for entry in entries}
    assert by_address["servers.html"]["title"] == "Servers"
    assert "ToolError" in by_address["servers.html#errors"]["text"]
    for entry in entries:
        path, _, anchor = entry["at"].partition("#")
        assert path in files
        assert not anchor or anchor in seen(files[path]).ids


def test_colours_can_be_told_from_their_ground() -> None:
    style = (ASSETS / "style.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    for scheme in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#\w{6});", scheme))
        grounds = [colours.pop(name) for name in ("ground", "raised", "marked")]
        colours.pop("line")
        assert len(colours) == 8
        for name, colour in colours.items():
            # On what is marked stand the names of pages alone.
            for ground in grounds if name in ("text", "soft", "accent") else grounds[:2]:
                assert contrast(colour, ground) >= 4.5, f"{name}: {colour} on {ground}"


def contrast(one: str, two: str) -> float:
    """The contrast of two colours, as WCAG 2 counts it."""
    bright, dim = sorted((luminance(one), luminance(two)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# The list.


def test_a_page_that_is_not_in_the_list_is_a_fault(folder: Folder) -> None:
    docs = folder({"index.md": "# A", "more/lost.md": "# B"}, listed=["index.md"])
    assert faults_of(docs) == ["docs/site.toml: more/lost.md is not in the list"]


def test_an_entry_without_a_page_and_one_that_stands_twice_are_faults(folder: Folder) -> None:
    docs = folder({"index.md": "# A"}, listed=["index.md", "gone.md", "index.md"])
    assert faults_of(docs) == [
        "docs/site.toml: there is no page gone.md",
        "docs/site.toml: index.md is in the list twice",
    ]


def test_a_star_stands_for_pages_of_one_folder_by_name(folder: Folder) -> None:
    pages = {"index.md": "# A", "all/2.md": "# 2", "all/1.md": "# 1", "all/of/3.md": "# 3"}
    docs = folder(pages, listed=["index.md", "all/*.md", "all/of/3.md"])
    assert load(docs).pages == ("index.md", "all/1.md", "all/2.md", "all/of/3.md")


def test_pages_know_their_neighbours(folder: Folder) -> None:
    docs = folder({"index.md": "# A", "b/README.md": "# B", "c.md": "# C"})
    html = build(docs)["b/index.html"].decode()
    assert '<a rel="prev" href="../index.html">' in html
    assert '<a rel="next" href="../c.html">' in html
    assert '<a href="index.html" aria-current="page">B</a>' in html


# Links.


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("# A\n\n[gone](gone.md)\n", "docs/index.md:3: gone.md leads nowhere in the docs"),
        ("# A\n\nOne.\nTwo [x](b.md#no).\n", "docs/index.md:4: b.md#no has no heading for #no"),
        ("# A\n\n[x](#no)\n", "docs/index.md:3: #no has no heading for #no"),
        ("# A\n\n- one\n- [x](c/)\n", "docs/index.md:4: c/ leads nowhere in the docs"),
        ("# A\n\n| a |\n|---|\n| [x](c.md) |\n", "docs/index.md:5: c.md leads nowhere in the docs"),
        ("# A\n\n[x](../secret)\n", "docs/index.md:3: ../secret leads nowhere in the docs"),
        ("# A\n\n![x](a.png)\n", "docs/index.md:3: a.png leads nowhere in the docs"),
        (
            "# A\n\n![x](https://example.com/a.png)\n",
            "docs/index.md:3: https://example.com/a.png is an image from elsewhere",
        ),
    ],
)
def test_a_link_that_leads_nowhere_is_told_with_its_line(
    folder: Folder, text: str, fault: str
) -> None:
    docs = folder({"index.md": text, "b.md": "# B"})
    (docs.parent / "secret").write_text("not for the site")
    assert faults_of(docs) == [fault]


def test_a_language_that_nobody_knows_is_told_with_its_line(folder: Folder) -> None:
    page = "# A\n\n```python\nx\n```\n\n- one\n\n  ```klingon x\n  y\n  ```\n"
    docs = folder({"index.md": page, "b.md": "# B\n\n```\nx\n```\n\n```nonesuch\n```\n"})
    assert faults_of(docs) == [
        "docs/index.md:9: klingon is no language that can be coloured",
        "docs/b.md:7: nonesuch is no language that can be coloured",
    ]


def test_short_code_is_in_one_piece_and_long_code_is_not(folder: Folder) -> None:
    long = "trunkline call TARGET TOOL"
    html = build(folder({"index.md": f"# A\n\n`--` and `<b>` and `{long}`\n"}))["index.html"]
    assert b'<code class="short">--</code>' in html
    assert b'<code class="short">&lt;b&gt;</code>' in html
    assert f"<code>{long}</code>".encode() in html
    style = (ASSETS / "style.css").read_text()
    assert re.search(r"\.short[^{}]*\{[^{}]*white-space: nowrap", style)


def test_all_faults_are_told_at_once_and_nothing_is_written(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = folder({"index.md": "# A\n\n[x](x.md)\n\n[y](y.md)\n"})
    assert main(["--docs", str(docs), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/index.md:3: x.md leads nowhere in the docs",
        "docs/index.md:5: y.md leads nowhere in the docs",
    ]
    assert not (tmp_path / "out").exists()


def test_links_between_pages_are_rewritten_and_others_left(folder: Folder) -> None:
    page = "# A\n\n[b](b/c.md#two-words) [f](b/) [t](t.toml) [o](https://example.com/x.md)\n"
    pages = {"index.md": page, "b/c.md": "# C\n\n## Two words\n\n[a](../index.md)", "t.toml": "x"}
    files = build(folder({**pages, "b/README.md": "# B"}))
    for link in ("b/c.html#two-words", "b/index.html", "t.toml", "https://example.com/x.md"):
        assert f'<a href="{link}">' in files["index.html"].decode()
    assert '<a href="../index.html">a</a>' in files["b/c.html"].decode()
    assert files["t.toml"] == b"x"


def test_links_are_relative_to_the_page_they_are_on() -> None:
    assert relative("index.html", "b/c.html") == "b/c.html"
    assert relative("b/c.html", "index.html") == "../index.html"
    assert relative("b/c.html", "b/d.html") == "d.html"


def test_anchors_are_those_that_a_forge_makes() -> None:
    taken: dict[str, int] = {}
    assert anchor_of("What a server asks, and `tells`", taken) == "what-a-server-asks-and-tells"
    assert anchor_of("Errors", taken) == "errors"
    assert anchor_of("Errors", taken) == "errors-1"
    assert anchor_of("snake_case & co-op", taken) == "snake_case--co-op"


def test_a_head_that_says_nothing_is_none(folder: Folder) -> None:
    table = "# A\n\n| | b |\n|---|---|\n| c | d |\n"
    page = seen(build(folder({"index.md": table}))["index.html"])
    assert page.tags.count("th") == 1
    assert page.tags.count("td") == 3


# Safety.


def test_html_in_a_page_is_shown_as_text(folder: Folder) -> None:
    evil = "<script>alert(1)</script>"
    page = f"# A {evil}\n\n{evil}\n\n`{evil}` [x](javascript:alert(1)) ![{evil}](a.txt)\n\n"
    page += f"```python\nx = '{evil}'\n```\n\n```\n{evil}\n```\n\n## B {evil}\n\n## C\n"
    html = build(folder({"index.md": page, "a.txt": ""}))["index.html"]
    template = seen((ASSETS / "page.html").read_bytes())
    assert seen(html).tags.count("script") == template.tags.count("script")
    assert b"alert(1)" in html
    assert not [link for _, link in seen(html).links if link.startswith("javascript:")]


def test_a_folder_that_is_no_site_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "letters.txt").write_text("dear")
    with pytest.raises(Faulty, match="is no site of ours"):
        put({INDEX: b""}, out)
    assert (out / "letters.txt").read_text() == "dear"


def test_a_site_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    put({INDEX: b"", "gone.html": b""}, out)
    put({INDEX: b"", "b/new.html": b"new"}, out)
    assert not (out / "gone.html").exists()
    assert (out / "b" / "new.html").read_bytes() == b"new"


def test_checking_writes_nothing(
    folder: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = folder({"index.md": "# A"})
    assert main(["--docs", str(docs), "--out", str(tmp_path / "out"), "--check"]) == 0
    assert capsys.readouterr().out == "1 page checked\n"
    assert not (tmp_path / "out").exists()
