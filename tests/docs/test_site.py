"""The built site: its pages, links, reference and search."""

from __future__ import annotations

import importlib
import json
import os
import re
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from tests.docs.site_build import DOCS, ROOT, Page, finish, parse, start
from tools.generate_options import MODULES, Method, Module, OptionsSource

# A build takes half a minute, and is shared by the tests of this file: one worker runs them all.
pytestmark = [pytest.mark.full, pytest.mark.xdist_group("site")]

PACKAGES = [
    "trunkline",
    "trunkline.auth",
    "trunkline.client",
    "trunkline.compat",
    "trunkline.compat.erlmcp",
    "trunkline.compat.mcpp",
    "trunkline.compat.pierre",
    "trunkline.errors",
    "trunkline.jsonrpc",
    "trunkline.judge",
    "trunkline.mcp",
    "trunkline.server",
    "trunkline.skills",
    "trunkline.spec",
    "trunkline.store",
    "trunkline.testing",
    "trunkline.transports",
]


def built(folder: Path, seed: str) -> Path:
    """Build the docs, with sets in an order of their own."""
    assert finish(start(DOCS, folder / seed, seed)) == (0, "")
    return folder / seed


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("site"), "1")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {
        str(path.relative_to(site)): parse(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
    }


@pytest.fixture(scope="module")
def index(site: Path) -> list[dict[str, str]]:
    script = (site / "search-index.js").read_text(encoding="utf-8")
    found: list[dict[str, str]] = json.loads(
        script.removeprefix("window.searchIndex = ").removesuffix(";\n")
    )
    return found


def resolved(page: str, link: str) -> tuple[str, str]:
    """Return page and anchor that a relative link leads to."""
    path, _, anchor = link.partition("#")
    path = path.partition("?")[0]
    return os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page, anchor


@cache
def sources() -> frozenset[str]:
    found = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    assert len(found) > 40
    return frozenset(found)


# Pages and links.


def test_every_source_has_a_page(pages: dict[str, Page]) -> None:
    assert set(pages) == sources() | {"search.html"}


def test_every_page_is_in_the_navigation_but_decisions(pages: dict[str, Page]) -> None:
    linked = {
        resolved("index.html", link)[0] for tag, link in pages["index.html"].links if tag == "a"
    }
    decisions = {page for page in sources() if page.startswith("decisions/")}
    assert sources() - linked == decisions - {"decisions/README.html"}
    # Of all pages but the home page only a list of contents is common to all.
    common = set.intersection(
        *({resolved(name, link)[0] for _, link in page.links} for name, page in pages.items())
    )
    assert sources() - common == decisions


def test_decisions_are_reached_from_architecture_and_contributing(pages: dict[str, Page]) -> None:
    for name in ("architecture.html", "contributing.html"):
        assert "decisions/README.html" in {resolved(name, link)[0] for _, link in pages[name].links}
    listed = {
        resolved("decisions/README.html", link)[0]
        for _, link in pages["decisions/README.html"].links
    }
    assert {page for page in sources() if page.startswith("decisions/")} <= listed


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(
    site: Path, pages: dict[str, Page]
) -> None:
    for name, page in pages.items():
        for tag, link in page.links:
            if re.match(r"https?:|//", link):
                assert tag == "a", f"{name} loads {link}"
                continue
            assert not link.startswith(("/", "javascript:", "file:")), f"{name} links to {link}"
            target, anchor = resolved(name, link)
            assert (site / target).is_file(), f"{name} links to {link}"
            # "#" alone is the top of any page; icons are symbols inside the page.
            if anchor:
                assert anchor in pages[target].ids, f"{name} links to {link}"


def test_no_style_and_no_script_names_a_file_elsewhere(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    scripts = list(site.rglob("*.js"))
    assert len(styles) > 2
    assert len(scripts) > 2
    for style in styles:
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(https?:|//)", text), style
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        found = re.search(
            r"(importScripts|import)\s*\(\s*[\"']|\.src\s*=\s*[\"'](https?:|//)", text
        )
        assert not found, script


def test_a_page_has_landmarks_one_heading_and_no_id_twice(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for tag in ("header", "article", "footer", "form", "h1"):
            assert page.tags.count(tag) == 1, f"{name} has {page.tags.count(tag)} of {tag}"
        doubled = {each for each in page.ids if page.ids.count(each) > 1}
        assert not doubled, f"{name} has {doubled} twice"


def test_next_leads_from_the_home_page_through_the_whole_navigation(pages: dict[str, Page]) -> None:
    name = "index.html"
    path = [name]
    while "next" in pages[name].neighbours:
        following = resolved(name, pages[name].neighbours["next"])[0]
        assert resolved(following, pages[following].neighbours["prev"])[0] == name
        name = following
        path.append(name)
    assert len(path) == len(set(path))
    assert set(path) == {page for page in sources() if not page.startswith("decisions/")}


def test_files_of_the_repository_are_pages(site: Path) -> None:
    assert "newest first" in (site / "changelog.html").read_text(encoding="utf-8")
    assert "every target sets up" in (site / "contributing.html").read_text(encoding="utf-8")


def test_of_a_terminal_only_what_follows_a_dollar_is_a_prompt(site: Path) -> None:
    text = (site / "tutorial" / "3-elicitation.html").read_text(encoding="utf-8")
    prompts = re.findall(r'<span class="gp">(.*?)</span>', text)
    assert len(prompts) > 3
    assert set(prompts) == {"$ "}
    assert re.search(r'<span class="go">[^<]*\(Ctrl-D ', text)


def test_llms_txt_lists_the_pages_of_the_navigation(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.+?\]\((.+?)\)", text, re.MULTILINE)
    wanted = {page for page in sources() if not page.startswith("decisions/")} - {"index.html"}
    assert sorted(listed) == sorted(wanted)
    assert text.startswith("# Trunkline\n\n> ")


# The reference.


def test_a_package_with_public_names_is_in_the_reference() -> None:
    marked = {
        "trunkline." + ".".join(path.parent.relative_to(ROOT / "src/trunkline").parts)
        for path in (ROOT / "src" / "trunkline").glob("*/__init__.py")
        if re.search(r"__all__", path.read_text(encoding="utf-8"))
    }
    # The command is described by its own pages.
    assert marked - set(PACKAGES) == {"trunkline.cli"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_has_one_entry_in_the_reference(
    package: str, pages: dict[str, Page]
) -> None:
    ids = [
        each for name, page in pages.items() if name.startswith("reference/") for each in page.ids
    ]
    names = importlib.import_module(package).__all__
    assert names
    for name in names:
        assert ids.count(f"{package}.{name}") == 1, f"{package}.{name} has no entry, or several"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_found_by_search(
    package: str, index: list[dict[str, str]], pages: dict[str, Page]
) -> None:
    titles = {entry["title"]: entry for entry in index if entry["at"].startswith("reference/")}
    for name in importlib.import_module(package).__all__:
        if name in titles:
            continue
        # What is only listed there is found by the text of its section.
        anchor = f"{package}.{name}"
        (page,) = [where for where, page in pages.items() if anchor in page.ids]
        texts = [entry["text"].split() for entry in index if entry["at"].startswith(page)]
        assert any(name in words for words in texts), f"{package}.{name} is not found"


def test_a_description_has_signature_docstring_fields_and_groups(site: Path) -> None:
    text = (site / "reference" / "server.html").read_text(encoding="utf-8")
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    # Overloads, with their arguments.
    assert "output_schema : Any = DERIVE" in re.sub(r"\s*([:=])\s*", r" \1 ", plain)
    assert "Register a function as a tool" in plain
    # The comment above a field.
    assert 'id="trunkline.server.ServerLimits.in_flight"' in text
    assert "Running handlers per connection." in plain
    assert '<p class="api-group rubric">Running</p>' in text
    # A name in a signature that is not exported is explained below it.
    assert re.search(r"Types: .*Lifespan = Callable", plain)
    # An exception names its base.
    errors = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    assert "Base: ProtocolError" in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", errors))
    # A type of an argument leads to its description.
    assert re.search(r'href="mcp\.html#trunkline\.mcp\.ToolAnnotations"', text)


@pytest.mark.parametrize(
    ("module", "method"),
    [
        pytest.param(module, method, id=f"{module.owner}.{method.name}")
        for module in MODULES
        for method in module.methods
    ],
)
def test_the_reference_has_every_option_with_its_default(
    module: Module, method: Method, site: Path
) -> None:
    owner = module.owner
    text = (site / "reference" / f"{owner.lower()}.html").read_text(encoding="utf-8")
    anchor = owner if method.name == "__init__" else f"{owner}.{method.name}"
    place = f'id="trunkline.{owner.lower()}.{anchor}"'
    described = text.partition(place)[2].partition(' id="trunk')[0]
    plain = unescape(re.sub(r"\s+", "", re.sub(r"<[^>]+>", "", described))).replace("'", '"')
    source = OptionsSource(module.source.read_text(encoding="utf-8"))
    for option in source.of(method):
        assert option.parameter.replace(" ", "") in plain, option.name
        if "{args}" in method.doc:
            words = option.argument(method.kind).partition(": ")[2]
            assert re.sub(r"[\s`]", "", words).replace("'", '"') in plain, option.name


# Search.


def test_search_knows_every_heading_and_leads_to_it(
    index: list[dict[str, str]], pages: dict[str, Page]
) -> None:
    by_address = {entry["at"]: entry for entry in index}
    assert len(by_address) == len(index)
    assert by_address["servers.html"]["title"] == "Servers"
    assert "ToolError" in by_address["servers.html#errors"]["text"]
    assert by_address["reference/server.html#trunkline.server.Server.tool"]["kind"] == "method"
    assert {entry["at"].partition("#")[0] for entry in index} == sources()
    for entry in index:
        path, _, anchor = entry["at"].partition("#")
        assert not anchor or anchor in pages[path].ids, entry["at"]


# Colours.


@pytest.mark.parametrize(
    ("scheme", "grounds"),
    [("light", ("#ffffff", "#f8f9fb")), ("dark", ("#131416", "#1a1c1e"))],
)
def test_colours_have_a_contrast_of_at_least_4_5_with_the_background(
    site: Path, scheme: str, grounds: tuple[str, str]
) -> None:
    html = (site / "index.html").read_text(encoding="utf-8")
    # Once for light, then for dark: where it was chosen, and where the system asks for it.
    variables = re.findall(r"--(color-(?:brand|api)-[\w-]+): (#\w{6});", html)
    third, rest = divmod(len(variables), 3)
    assert (third, rest) == (5, 0)
    assert variables[third : 2 * third] == variables[2 * third :]
    for name, colour in variables[:third] if scheme == "light" else variables[third:]:
        for ground in grounds:
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
