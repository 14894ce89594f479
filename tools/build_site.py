"""Build the pages of `docs/` into a static site.

    python tools/build_site.py              # into site/
    python tools/build_site.py --check      # build in memory, write nothing

The site needs no server and no network: links are relative, search is a script beside the
pages, and nothing is loaded from elsewhere. Building twice gives the same bytes.

`docs/site.toml` is the one list of pages and their order. These rules live only here:
a page that is not in the list, an entry without a page, a link that leads nowhere, an anchor
that no heading has and code in a language that nobody knows are faults. All of them are told,
with file and line, and a build with faults writes nothing. HTML inside of a page is shown
as text and never as HTML.

What the pages look like is in `tools/site/`: a template, a style sheet and a script. Ids of the
template have a dot, which no anchor of a heading has.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

# Pygments brings no types of its own.
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from trunkline import __version__

ROOT: Final = Path(__file__).resolve().parent.parent
ASSETS: Final = ROOT / "tools" / "site"
LIST: Final = "site.toml"
INDEX: Final = "search-index.js"
# How many characters of code within a line are never broken: they fit the narrowest phone.
SHORT_CODE: Final = 16
# Copied as they are, beside the pages.
COPIED: Final = ("style.css", "site.js")

# Headings of these levels are in the table of contents of a page.
LISTED: Final = ("h2", "h3")
# A link with a scheme, or to a host: not ours to check.
ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
# Revisions are dates, and a date is not to be broken over two lines.
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
# What GitHub leaves out of an anchor, so that one link works in both places.
NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")


class Faulty(Exception):
    """The pages cannot be built; `faults` are lines for whoever wrote them."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the navigation, and the pages under it, by path below the docs."""

    title: str
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """What `site.toml` says."""

    title: str
    about: str
    sections: tuple[Section, ...]

    @property
    def pages(self) -> tuple[str, ...]:
        """Every page, in the order of reading."""
        return tuple(page for section in self.sections for page in section.pages)


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page; `text` is without markup."""

    tag: str
    text: str
    anchor: str


@dataclass(slots=True)
class Page:
    """A page that has been read: its tokens, and what others need to know of it."""

    path: str
    tokens: list[Token]
    headings: list[Heading] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The text of the first heading."""
        return self.headings[0].text if self.headings else self.path

    @property
    def address(self) -> str:
        """Where the page is in the site."""
        return address_of(self.path)

    def anchors(self) -> set[str]:
        """What can stand after `#` in a link to this page."""
        return {heading.anchor for heading in self.headings}


# The list of pages.


def load(docs: Path) -> Site:
    """Return what `site.toml` of a folder says.

    Raises:
        Faulty: a page is missing from the list, is in it twice, or is not there.
    """
    document = tomllib.loads((docs / LIST).read_text(encoding="utf-8"))
    there = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    faults: list[str] = []
    sections = []
    for table in document["section"]:
        pages = [page for entry in table["pages"] for page in matching(entry, there, faults)]
        sections.append(Section(table["title"], tuple(pages)))
    site = Site(document["title"], document["about"], tuple(sections))
    listed = site.pages
    faults += [f"docs/{LIST}: {page} is not in the list" for page in there if page not in listed]
    twice = sorted({page for page in listed if listed.count(page) > 1})
    faults += [f"docs/{LIST}: {page} is in the list twice" for page in twice]
    if faults:
        raise Faulty(faults)
    return site


def matching(entry: str, there: Iterable[str], faults: list[str]) -> list[str]:
    """Return the pages that an entry names; one with a `*` names all that fit, by name."""
    pattern = re.compile(re.escape(entry).replace(r"\*", "[^/]*"))
    found = [path for path in there if pattern.fullmatch(path)]
    if not found:
        faults.append(f"docs/{LIST}: there is no page {entry}")
    return found


def address_of(path: str) -> str:
    """Return where a page is in the site; a README is the index of its folder."""
    folder, name = posixpath.split(path)
    stem = "index" if name == "README.md" else name.removesuffix(".md")
    return posixpath.join(folder, f"{stem}.html")


# Reading.


def reader() -> MarkdownIt:
    """Return the parser: CommonMark with tables, and HTML as text."""
    made = MarkdownIt("commonmark", {"html": False, "highlight": coloured}).enable("table")
    made.add_render_rule("fence", render_fence)
    made.add_render_rule("code_inline", render_code)
    made.add_render_rule("text", render_text)
    made.add_render_rule("table_open", lambda *_: '<div class="wide"><table>\n')
    made.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return made


def coloured(code: str, language: str, _: str) -> str:
    """Return code as HTML with classes, for `style.css` to colour."""
    if not language:
        return escape(code)
    lexer = get_lexer_by_name(language, stripnl=False)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def language_of(fence: Token) -> str:
    """Return the language of a block of code, or nothing; what follows it is for tests."""
    return fence.info.split()[0] if fence.info.strip() else ""


def unknown_languages(page: Page) -> Iterator[str]:
    """Yield a fault for each block of code whose language cannot be coloured."""
    for token in page.tokens:
        language = language_of(token) if token.type == "fence" else ""
        try:
            if language:
                get_lexer_by_name(language)
        except ClassNotFound:
            line = token.map[0] + 1 if token.map is not None else 1
            yield f"docs/{page.path}:{line}: {language} is no language that can be coloured"


def render_fence(
    renderer: Any, tokens: Sequence[Token], number: int, options: Any, _: Mapping[str, Any]
) -> str:
    """Return a block of code, with its language for `site.js`."""
    token = tokens[number]
    language = language_of(token)
    code = options["highlight"](token.content, language, "")
    return (
        f'<div class="code" data-language="{escape(language)}">'
        f"<pre><code>{code}</code></pre></div>\n"
    )


def render_code(_: Any, tokens: Sequence[Token], number: int, *rest: Any) -> str:
    """Return code within a line, in one piece if it is short: `--` is one word."""
    code = tokens[number].content
    kept = ' class="short"' if len(code) <= SHORT_CODE else ""
    return f"<code{kept}>{escape(code)}</code>"


def render_text(_: Any, tokens: Sequence[Token], number: int, *rest: Any) -> str:
    """Return text as HTML, dates in one piece."""
    return DATE.sub(r'<span class="date">\g<0></span>', escape(tokens[number].content))


def read(path: str, text: str, parser: MarkdownIt) -> Page:
    """Return a page, with an anchor on each heading."""
    page = Page(path, parser.parse(text))
    drop_empty_heads(page.tokens)
    taken: dict[str, int] = {}
    for opening, inline in zip(page.tokens, page.tokens[1:], strict=False):
        if opening.type != "heading_open":
            continue
        plain = text_of(inline)
        anchor = anchor_of(plain, taken)
        opening.attrSet("id", anchor)
        page.headings.append(Heading(opening.tag, plain, anchor))
        if opening.tag != "h1" and inline.children is not None:
            inline.children += sign(anchor, plain)
    return page


def drop_empty_heads(tokens: Sequence[Token]) -> None:
    """Make plain cells of the empty heads of columns: a head that says nothing is none."""
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type == "th_open" and not inline.content:
            opening.tag = closing.tag = "td"


def text_of(inline: Token) -> str:
    """Return the text of a line without its markup."""
    parts = (
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in inline.children or ()
    )
    return "".join(parts)


def anchor_of(text: str, taken: dict[str, int]) -> str:
    """Return the anchor of a heading, as GitHub makes it; a second one of a name is numbered."""
    slug = NOT_IN_ANCHORS.sub("", text.lower()).replace(" ", "-")
    taken[slug] = taken.get(slug, -1) + 1
    return f"{slug}-{taken[slug]}" if taken[slug] else slug


def sign(anchor: str, text: str) -> list[Token]:
    """Return the link that a heading has to itself."""
    attrs: dict[str, str | int | float] = {
        "href": f"#{anchor}",
        "class": "anchor",
        "aria-label": f"Link to “{text}”",
    }
    return [
        Token("link_open", "a", 1, attrs=attrs),
        Token("text", "", 0, content="#"),
        Token("link_close", "a", -1),
    ]


# Links.


@dataclass(frozen=True, slots=True)
class Link:
    """A link or an image of a page, the member it is written in, and its line."""

    token: Token
    member: str
    line: int

    @property
    def target(self) -> str:
        """What was written."""
        return str(self.token.attrs[self.member])


def links_of(page: Page) -> Iterator[Link]:
    """Yield every link and image of a page, with the line it is on."""
    line = 1
    for block in page.tokens:
        # Cells of a table have no line of their own: that of their row counts.
        if block.map is not None:
            line = block.map[0] + 1
        here = line
        for child in block.children or ():
            if child.type in ("softbreak", "hardbreak"):
                here += 1
            elif child.type == "link_open":
                yield Link(child, "href", here)
            elif child.type == "image":
                yield Link(child, "src", here)


class Links:
    """Follows the links of all pages: rewrites what leads somewhere, and notes what does not."""

    def __init__(self, docs: Path, pages: Mapping[str, Page]) -> None:
        self._docs = docs
        self._pages = pages
        self.faults: list[str] = []
        # Files beside the pages that a page shows or links to.
        self.files: set[str] = set()

    def follow(self, page: Page) -> None:
        """Rewrite the links of a page for the site."""
        for link in links_of(page):
            if ELSEWHERE.match(link.target):
                if link.member == "src":
                    self._fault(page, link, "is an image from elsewhere")
                continue
            link.token.attrSet(link.member, self._rewritten(page, link))

    def _rewritten(self, page: Page, link: Link) -> str:
        path, _, anchor = unquote(link.target).partition("#")
        folder = posixpath.dirname(page.path)
        target = posixpath.normpath(posixpath.join(folder, path)) if path else page.path
        found = self._pages.get(target)
        if found is None and path.endswith("/"):
            found = self._pages.get(f"{target}/README.md")
        if found is not None:
            if anchor and anchor not in found.anchors():
                self._fault(page, link, f"has no heading for #{anchor}")
            ending = f"#{anchor}" if anchor else ""
            return (relative(page.address, found.address) if path else "") + ending
        if target.startswith("..") or not (self._docs / target).is_file():
            self._fault(page, link, "leads nowhere in the docs")
        else:
            self.files.add(target)
        return link.target

    def _fault(self, page: Page, link: Link, what: str) -> None:
        self.faults.append(f"docs/{page.path}:{link.line}: {link.target} {what}")


def relative(origin: str, target: str) -> str:
    """Return how a page of the site links to another."""
    return posixpath.relpath(target, posixpath.dirname(origin) or ".")


# Writing.


def navigation(site: Site, pages: Mapping[str, Page], here: Page) -> Iterator[str]:
    """Yield the lines of the list of all pages."""
    for section in site.sections:
        yield f'<p class="group">{escape(section.title)}</p>'
        yield "<ul>"
        for path in section.pages:
            page = pages[path]
            current = ' aria-current="page"' if page is here else ""
            address = relative(here.address, page.address)
            yield f'<li><a href="{address}"{current}>{escape(page.title)}</a></li>'
        yield "</ul>"


def contents(page: Page) -> Iterator[str]:
    """Yield the lines of the table of contents of a page; nothing, if it would be of one line."""
    listed = [heading for heading in page.headings if heading.tag in LISTED]
    if len(listed) < 2:
        return
    yield '<details class="contents" open>'
    yield "<summary>On this page</summary>"
    yield '<nav aria-label="On this page"><ul>'
    for each in listed:
        yield f'<li class="{each.tag}"><a href="#{each.anchor}">{escape(each.text)}</a></li>'
    yield "</ul></nav>"
    yield "</details>"


def neighbours(site: Site, pages: Mapping[str, Page], here: Page) -> Iterator[str]:
    """Yield the links to the page before and the page after."""
    order = site.pages
    at = order.index(here.path)
    if at > 0:
        yield neighbour(here, pages[order[at - 1]], "prev", "Previous")
    if at + 1 < len(order):
        yield neighbour(here, pages[order[at + 1]], "next", "Next")


def neighbour(here: Page, page: Page, rel: str, word: str) -> str:
    """Return the link to a page beside this one."""
    address = relative(here.address, page.address)
    return f'<a rel="{rel}" href="{address}"><span>{word}</span> {escape(page.title)}</a>'


def write(site: Site, pages: Mapping[str, Page], page: Page, parser: MarkdownIt) -> str:
    """Return the HTML of a page."""
    template = Template((ASSETS / "page.html").read_text(encoding="utf-8"))
    home = relative(page.address, "index.html")
    name = site.title if page.address == "index.html" else f"{page.title} · {site.title}"
    return template.substitute(
        name=escape(name),
        about=escape(site.about),
        site=escape(site.title),
        version=escape(__version__),
        home=home,
        root=home.removesuffix("index.html"),
        navigation="\n".join(navigation(site, pages, page)),
        contents="\n".join(contents(page)),
        body=parser.renderer.render(page.tokens, parser.options, {}),
        neighbours="\n".join(neighbours(site, pages, page)),
    )


# Search.


def entries(page: Page) -> Iterator[dict[str, str]]:
    """Yield what search knows of a page: one entry for each heading, with the text below it."""
    headings = iter(page.headings)
    entry = {"page": page.title, "at": page.address, "title": page.title, "text": ""}
    words: list[str] = []
    previous = None
    for token in page.tokens:
        if previous is not None and previous.type == "heading_open":
            if previous.tag != "h1":
                yield entry | {"text": " ".join(words)}
            words = []
            heading = next(headings)
            at = page.address if heading.tag == "h1" else f"{page.address}#{heading.anchor}"
            entry = {"page": page.title, "at": at, "title": heading.text}
        elif token.type == "inline":
            words += text_of(token).split()
        elif token.type == "fence":
            words += token.content.split()
        previous = token
    yield entry | {"text": " ".join(words)}


def search_index(pages: Iterable[Page]) -> str:
    """Return the script with all entries. A script, because a page may not fetch from a disk."""
    found = [entry for page in pages for entry in entries(page)]
    lines = (json.dumps(entry, ensure_ascii=False, sort_keys=True) for entry in found)
    return "window.searchIndex = [\n" + ",\n".join(lines) + "\n];\n"


# All of it.


def build(docs: Path) -> dict[str, bytes]:
    """Return every file of the site, by its path.

    Raises:
        Faulty: something is wrong with the list, a link or a block of code.
    """
    site = load(docs)
    parser = reader()
    pages = {
        path: read(path, (docs / path).read_text(encoding="utf-8"), parser) for path in site.pages
    }
    links = Links(docs, pages)
    for page in pages.values():
        links.follow(page)
    faults = links.faults + [each for page in pages.values() for each in unknown_languages(page)]
    if faults:
        raise Faulty(faults)
    files = {
        page.address: write(site, pages, page, parser).encode("utf-8") for page in pages.values()
    }
    files |= {name: (ASSETS / name).read_bytes() for name in COPIED}
    files |= {name: (docs / name).read_bytes() for name in sorted(links.files)}
    return files | {INDEX: search_index(pages.values()).encode("utf-8")}


def put(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the site into a folder, in the place of the one that was there.

    Raises:
        Faulty: the folder holds something that is no site; it is left alone.
    """
    if folder.exists():
        if any(folder.iterdir()) and not (folder / INDEX).is_file():
            raise Faulty([f"{folder} is no site of ours, and is not replaced"])
        shutil.rmtree(folder)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main(arguments: list[str] | None = None) -> int:
    """Build the site; return 1, and print why, if there is a fault."""
    parser = argparse.ArgumentParser(description="Build docs/ into a static site.")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="the pages")
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="where to (default: site)")
    parser.add_argument("--check", action="store_true", help="only say what is wrong")
    options = parser.parse_args(arguments)
    try:
        files = build(options.docs)
        if not options.check:
            put(files, options.out)
    except Faulty as error:
        print(*error.faults, sep="\n", file=sys.stderr)
        return 1
    pages = sum(name.endswith(".html") for name in files)
    place = "checked" if options.check else f"in {options.out / 'index.html'}"
    print(f"{pages} page{'s' * (pages != 1)} {place}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
