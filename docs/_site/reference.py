"""The directives of the reference pages.

`{api} PACKAGE` describes the names in its content, which may be patterns such as `*Result`; with
`:exceptions:` it describes every exported exception that the page does not name elsewhere.
`{api} PACKAGE.Class` describes a class, its members under the labels of its content:

    Registration: tool resource prompt
    Running: run serve

`{api-table} PACKAGE` lists names with a line each and links to where they are described.

An exported name without a description, and a description without an exported name, are warnings.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from .objects import Entry, entry, is_exception, public_names

logger = logging.getLogger(__name__)

BLOCK = re.compile(r"^```\{api(?:-table)?\} (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OTHERS = "Other members"


class Described:
    """What the pages describe: by path of a name, and by key of an object."""

    def __init__(self) -> None:
        # Full descriptions: the object's key to page, anchor and public path.
        self.homes: dict[str, tuple[str, str, str]] = {}
        # Every name with an entry, and its page.
        self.names: dict[str, str] = {}


def described(env: BuildEnvironment) -> Described:
    """Return the record that goes with an environment."""
    if not hasattr(env, "trunkline_described"):
        env.trunkline_described = Described()  # type: ignore[attr-defined]  # ours
    found = env.trunkline_described
    assert isinstance(found, Described)
    return found


class _Api(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {"exceptions": directives.flag}  # noqa: RUF012  # the form that docutils reads

    def warn(self, text: str) -> None:
        """Report something wrong with the page."""
        logger.warning(text, location=self.get_location(), type="api")

    def names(self, package: str) -> Iterator[str]:
        """Yield the names of the content, patterns replaced by what they match."""
        exported = public_names(package)
        given = described(self.env).names
        named = set(self.named_on_page(package))
        free = [name for name in exported if name not in named and f"{package}.{name}" not in given]
        for name in " ".join(self.content).split():
            if "*" in name:
                found = [each for each in free if fnmatch.fnmatchcase(each, name)]
                if not found:
                    self.warn(f"{package} exports nothing like {name}")
                free = [each for each in free if each not in found]
                yield from found
            elif name in exported:
                yield name
            else:
                self.warn(f"{package} exports no {name}")
        if "exceptions" in self.options:
            yield from sorted(name for name in free if is_exception(package, name))

    def named_on_page(self, package: str) -> Iterator[str]:
        """Yield the names of this package that any block of the page gives in full."""
        text = self.env.doc2path(self.env.docname).read_text(encoding="utf-8")
        for target, content in BLOCK.findall(text):
            if target == package:
                yield from (word for word in content.split() if "*" not in word)
            elif target.rpartition(".")[0] == package:
                yield target.rpartition(".")[2]

    def take(self, one: Entry) -> None:
        """Note that a name has its entry on this page."""
        names = described(self.env).names
        if one.path in names:
            self.warn(f"{one.path} has two entries; the other is in {names[one.path]}")
        names[one.path] = self.env.docname


class Api(_Api):
    """Descriptions of exported names."""

    def run(self) -> list[nodes.Node]:
        """Return the descriptions."""
        target = self.arguments[0]
        package, _, name = target.rpartition(".")
        if name[:1].isupper():
            return self.describe(entry(package, name), dict(self.member_groups()))
        found: list[nodes.Node] = []
        for name in self.names(target):
            found += self.describe(entry(target, name), {})
        return found

    def member_groups(self) -> Iterator[tuple[str, list[str]]]:
        """Yield label and names of each line of the content."""
        for line in self.content:
            label, _, names = line.partition(":")
            if line.strip():
                yield label.strip(), names.split()

    def describe(self, one: Entry, groups: dict[str, list[str]]) -> list[nodes.Node]:
        """Return the description of one name."""
        self.take(one)
        found = self.desc(one, lambda content: self.fill(content, one, groups))
        homes = described(self.env).homes
        if one.key in homes:
            self.warn(f"{one.path} is described as {homes[one.key][2]} already; use api-table")
        homes[one.key] = (self.env.docname, one.path, one.path)
        for each in (*one.members, *one.fields):
            homes.setdefault(each.key, (self.env.docname, each.path, each.path))
        return found

    def fill(self, content: nodes.Element, one: Entry, groups: dict[str, list[str]]) -> None:
        """Put fields and members into the description of a class."""
        for each in one.fields:
            content += self.desc(each)
        members = {each.name.rpartition(".")[2]: each for each in one.members}
        for label, names in groups.items():
            content += nodes.rubric("", label, classes=["api-group"])
            for name in names:
                if name not in members:
                    self.warn(f"{one.path} has no public member {name} with a docstring")
                    continue
                content += self.desc(members.pop(name))
        if groups and members:
            content += nodes.rubric("", OTHERS, classes=["api-group"])
        for each in members.values():
            content += self.desc(each)

    def desc(
        self, one: Entry, fill: Callable[[nodes.Element], None] | None = None
    ) -> list[nodes.Node]:
        """Run the directive of the Python domain for an entry."""
        kind = self.env.domains["py"].directives[one.kind]

        class Filled(kind):  # type: ignore[misc, valid-type]  # the class is chosen by the entry
            def transform_content(self, content: addnodes.desc_content) -> None:
                super().transform_content(content)
                if fill is not None:
                    fill(content)

        options: dict[str, Any] = {"module": one.package, **one.options}
        if one.kind == "attribute":
            options["no-contents-entry"] = None
        directive = Filled(
            f"py:{one.kind}",
            ["\n".join(one.signatures)],
            options,
            StringList(one.text.splitlines(), source=f"docstring of {one.path}"),
            self.lineno,
            self.content_offset,
            "",
            self.state,
            self.state_machine,
        )
        found: list[nodes.Node] = directive.run()
        for part in found:
            for link in part.findall(addnodes.pending_xref):
                # By the object that is meant: a method `list` is not the type of an argument.
                if link.get("refdomain") == "py":
                    link["refdomain"] = ""
                    link["api"] = one.scope.get(link["reftarget"], "")
        return found


class ApiTable(_Api):
    """A list of exported names that are described elsewhere."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        package = self.arguments[0]
        rows = [self.row(entry(package, name)) for name in self.names(package)]
        group = nodes.tgroup("", cols=2)
        group += [nodes.colspec(colwidth=width) for width in (1, 3)]
        group += nodes.tbody("", *rows)
        return [nodes.table("", group, classes=["api-table"])]

    def row(self, one: Entry) -> nodes.row:
        """Return the row of a name, which is a target for links."""
        self.take(one)
        link = addnodes.pending_xref(
            "",
            nodes.literal("", one.name),
            refdomain="",
            reftype="api",
            reftarget=one.path,
            refexplicit=True,
            refwarn=one.kind != "module",
            api=one.key,
        )
        row = nodes.row("", ids=[one.path])
        name = nodes.entry("", nodes.paragraph("", "", link))
        text = nodes.entry("")
        summary = one.summary.splitlines() or [""]
        self.state.nested_parse(StringList(summary, source=one.path), self.content_offset, text)
        row += [name, text]
        if one.kind != "module":
            domain: Any = self.env.domains["py"]
            domain.note_object(one.path, one.kind, one.path, aliased=True)
        return row


# Links.


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.TextElement
) -> nodes.reference | None:
    """Lead a name to the description of its object."""
    if "api" not in node:
        return None
    key = node["api"]
    home = described(env).homes.get(key)
    if home is None and node["reftype"] == "exc":
        home = by_name(env, node["reftarget"])
    docname = node.get("refdoc", env.docname)
    if home is None and key:
        # A sub-package has a page, not a description.
        domain: Any = env.domains["py"]
        module = domain.modules.get(key)
        home = module and (module.docname, module.node_id, key)
    if home is None:
        return None
    return make_refnode(app.builder, docname, home[0], home[1], [text], home[2])


def by_name(env: BuildEnvironment, name: str) -> tuple[str, str, str] | None:
    """Return the description that a name without its package must mean, if only one can be."""
    if not hasattr(env, "trunkline_by_name"):
        found: dict[str, set[tuple[str, str, str]]] = {}
        record = described(env)
        for home in record.homes.values():
            words = home[2].split(".")
            for at in range(1, len(words)):
                found.setdefault(".".join(words[at:]), set()).add(home)
        # What the top package exports is meant before its namesakes elsewhere.
        for path in record.names:
            package, _, local = path.rpartition(".")
            if package == "trunkline":
                home = record.homes.get(entry(package, local).key)
                if home:
                    found[local] = {home}
        env.trunkline_by_name = found  # type: ignore[attr-defined]  # ours
    homes: set[tuple[str, str, str]] = env.trunkline_by_name.get(name, set())
    return next(iter(homes)) if len(homes) == 1 else None


class LinkNames(SphinxPostTransform):
    """Link code such as `ToolError` or `ctx.elicit(...)` to its description, once per section."""

    default_priority = 5
    variables = {"app": "Server", "ctx": "Context", "context": "Context", "client": "Client"}  # noqa: RUF012
    form = re.compile(r"@?([A-Za-z_][\w.]*)(?:\(.*\))?$", re.DOTALL)

    def run(self, **_: Any) -> None:
        """Put the links in."""
        seen: set[tuple[int, str]] = set()
        for literal in list(self.document.findall(nodes.literal)):
            home = self.meant(literal)
            if home is None:
                continue
            place = literal.parent
            while place is not None and not isinstance(place, (nodes.section, addnodes.desc)):
                place = place.parent
            if (id(place), home[2]) in seen or home[1] in self.own(place):
                continue
            seen.add((id(place), home[2]))
            text = literal.deepcopy()
            link = make_refnode(
                self.app.builder, self.env.docname, home[0], home[1], [text], home[2]
            )
            literal.replace_self(link)

    def own(self, place: nodes.Node | None) -> set[str]:
        """Return the anchors of the description that a text belongs to."""
        if not isinstance(place, addnodes.desc):
            return set()
        return {
            each
            for signature in place.findall(addnodes.desc_signature)
            for each in signature["ids"]
        }

    def meant(self, literal: nodes.literal) -> tuple[str, str, str] | None:
        """Return the description that a piece of code is about."""
        at: nodes.Node | None = literal.parent
        while at is not None:
            if isinstance(at, (nodes.reference, nodes.title, addnodes.pending_xref)):
                return None
            if isinstance(at, addnodes.desc_signature):
                return None
            at = at.parent
        found = self.form.match(literal.astext())
        if not found:
            return None
        name = found[1].removeprefix("trunkline.")
        first, _, rest = name.partition(".")
        if rest and first in self.variables:
            name = f"{self.variables[first]}.{rest}"
        # A word without a capital or a dot may be anything: an argument, a field, a verb.
        if "." not in name and not name[:1].isupper():
            return None
        return by_name(self.env, name)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget the entries of a page that is read again."""
    record = described(env)
    record.names = {name: page for name, page in record.names.items() if page != docname}
    record.homes = {key: home for key, home in record.homes.items() if home[0] != docname}
    vars(env).pop("trunkline_by_name", None)


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn of exported names without an entry."""
    there = described(env).names
    for package in app.config.api_packages:
        for name in public_names(package):
            if f"{package}.{name}" not in there:
                logger.warning("%s.%s is exported and has no entry in the reference", package, name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("api_packages", (), "env")
    app.add_directive("api", Api)
    app.add_directive("api-table", ApiTable)
    app.add_post_transform(LinkNames)
    app.connect("missing-reference", resolve)
    app.connect("env-purge-doc", forget)
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
