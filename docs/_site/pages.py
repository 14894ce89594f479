"""Smaller things: console blocks, pages outside the navigation, the home page, and llms.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic, Text
from sphinx import addnodes
from sphinx.application import Sphinx

# Found by a link, not in the navigation.
ASIDE = "decisions/"


class ConsoleLexer(RegexLexer):
    """A terminal: what follows `$ ` was typed, everything else was printed."""

    name = "Console"
    tokens = {  # noqa: RUF012  # the form that Pygments reads
        "root": [
            (r"(\$ )(.*\n?)", bygroups(Generic.Prompt, Text)),
            (r".*\n", Generic.Output),
            (r".+", Generic.Output),
        ]
    }


def set_aside(app: Sphinx, docname: str, _: list[str]) -> None:
    """Mark pages that no list of contents names."""
    if docname.startswith(ASIDE):
        app.env.metadata[docname]["orphan"] = "true"


def write_llms_txt(app: Sphinx, error: Exception | None) -> None:
    """Write a table of contents with a line on each page, for language models."""
    if error is None and app.builder.format == "html":
        text = "\n".join(llms_txt(app))
        Path(app.outdir, "llms.txt").write_text(text + "\n", encoding="utf-8")


def llms_txt(app: Sphinx) -> Iterator[str]:
    """Yield the lines of llms.txt.  [llmstxt.org]"""
    home = app.config.root_doc
    yield f"# {app.config.project}"
    yield ""
    yield f"> {app.env.metadata[home]['about']}"
    tree = app.env.get_doctree(home)
    for contents in tree.findall(addnodes.toctree):
        yield ""
        yield f"## {contents['caption']}"
        yield ""
        for title, docname in contents["entries"]:
            name = title or app.env.titles[docname].astext()
            about = app.env.metadata[docname]["about"]
            yield f"- [{name}]({docname}.html)" + (f": {about}" if about else "")


def read(app: Sphinx, tree: nodes.document) -> None:
    """Keep the first paragraph of a page, on one line."""
    first = next(iter(tree.findall(nodes.paragraph)), None)
    app.env.metadata[app.env.docname]["about"] = " ".join(first.astext().split()) if first else ""


def style_home(app: Sphinx, tree: nodes.document) -> None:
    """Set the classes of the home page: it is plain Markdown, which a forge shows as well."""
    if app.env.docname != app.config.root_doc:
        return
    for paragraph, name in zip(tree.findall(nodes.paragraph), ("lead", "facts"), strict=False):
        paragraph["classes"].append(name)
    for cards in tree.findall(nodes.bullet_list):
        cards["classes"].append("cards")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_lexer("console", ConsoleLexer)
    app.connect("source-read", set_aside)
    app.connect("doctree-read", read)
    app.connect("doctree-read", style_home)
    app.connect("build-finished", write_llms_txt)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
