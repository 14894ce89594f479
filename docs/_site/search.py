"""The index that the search of the site reads.

A page that was opened from a folder may not fetch files, so the index is a script. It has an
entry for each page, each section and each description of the reference, with its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

INDEX = "search-index.js"
# Fields are found by the text of the class they belong to.
WITHOUT_ENTRY = ("attribute",)
SKIPPED = (nodes.comment, nodes.raw, addnodes.index, addnodes.toctree, nodes.system_message)


@dataclass
class Found:
    """One entry: where it leads, what it is called, and the words in it."""

    at: str
    title: str
    kind: str
    words: list[str] = field(default_factory=list)
    # Signatures come after the text: excerpts are sentences where there are any.
    signature: list[str] = field(default_factory=list)


def entries(tree: nodes.document, address: str) -> Iterator[Found]:
    """Yield the entries of a page, in its order."""
    found: list[Found] = []

    def visit(node: nodes.Node, current: Found | None) -> None:
        if isinstance(node, SKIPPED):
            return
        if isinstance(node, nodes.section):
            title = next(iter(node.findall(nodes.title))).astext()
            is_page = not found
            at = address if is_page else f"{address}#{node['ids'][0]}"
            current = Found(at, title, "page" if is_page else "section")
            found.append(current)
        elif isinstance(node, addnodes.desc) and node["objtype"] not in WITHOUT_ENTRY:
            signature = next(iter(node.findall(addnodes.desc_signature)))
            if signature["ids"]:
                at = f"{address}#{signature['ids'][0]}"
                current = Found(at, signature["fullname"], node["objtype"])
                found.append(current)
        if current is not None and isinstance(node, addnodes.desc_signature):
            current.signature += node.astext().split()
            return
        if current is not None and isinstance(node, nodes.TextElement):
            if not isinstance(node, nodes.title):
                current.words += node.astext().split()
            return
        for child in node.children:
            visit(child, current)

    visit(tree, None)
    yield from found


def read(app: Sphinx, tree: nodes.document) -> None:
    """Keep the entries of a page that was read."""
    docname = app.env.docname
    kept(app.env)[docname] = list(entries(tree, app.builder.get_target_uri(docname)))


def kept(env: BuildEnvironment) -> dict[str, list[Found]]:
    """Return the entries that go with an environment, by page."""
    found: dict[str, list[Found]] = vars(env).setdefault("trunkline_search", {})
    return found


def index_of(env: BuildEnvironment) -> Iterator[dict[str, str]]:
    """Yield all entries, page by page."""
    for docname in sorted(env.found_docs):
        page = env.titles[docname].astext()
        for each in kept(env)[docname]:
            text = " ".join(each.words + each.signature)
            yield {
                "at": each.at,
                "kind": each.kind,
                "page": page,
                "text": text,
                "title": each.title,
            }


def without_stock_search(app: Sphinx) -> None:
    """Leave out Sphinx' own index: from a folder it finds titles without any text."""
    app.builder.search = False  # type: ignore[attr-defined]  # of the HTML builders


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the index beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    lines = (json.dumps(row, ensure_ascii=False, sort_keys=True) for row in index_of(app.env))
    text = "window.searchIndex = [\n" + ",\n".join(lines) + "\n];\n"
    Path(app.outdir, INDEX).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", without_stock_search)
    app.connect("doctree-read", read)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
