"""Imports point inward: the allowed lists, and a reading of every module against them.

What counts: every import that can run, at import time or inside a function. Imports under
`if TYPE_CHECKING` never run and do not count between sub-packages. Between packages they do: an
annotation that names a class of an outer package ties the two together as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cases import for_each
from tests.source_imports import import_statements, statements_below

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trunkline"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# What each part may import of the others. A part that is not here does not exist yet.
ALLOWED: dict[str, set[str]] = {
    "_lazy_exports": {"migration_hints"},
    "redaction": set(),
    "private_file": {"redaction"},
    "migration_hints": set(),
    "extras": set(),
    "errors": {"redaction"},
    "exception_text": {"errors", "redaction"},
    "concurrency": {"errors"},
    "accounts": {"concurrency"},
    "spec": set(),
    "jsonrpc": {"errors", "redaction", "spec"},
    "mcp": {"errors", "redaction", "migration_hints", "spec", "jsonrpc"},
    "judge": {"errors", "redaction", "spec", "jsonrpc", "mcp"},
    "store": {"errors", "redaction", "spec", "jsonrpc"},
    "transports": {
        *("errors", "redaction", "exception_text", "concurrency", "spec", "jsonrpc", "mcp"),
        *("accounts", "extras"),
        "store",  # the events of HTTP streams that can be resumed
    },
    "auth": {
        *("errors", "redaction", "exception_text", "concurrency", "spec", "jsonrpc", "mcp"),
        *("store", "transports", "private_file", "accounts", "migration_hints"),
        "extras",
    },
    # Runs handlers and keeps their state; it knows no protocol: neither MCP nor another one.
    "engine": {
        *("errors", "redaction", "exception_text", "concurrency", "spec", "jsonrpc", "store"),
        *("transports", "auth", "accounts"),
    },
    "server": {
        *("errors", "redaction", "concurrency", "spec", "jsonrpc", "mcp", "store", "transports"),
        *("exception_text", "migration_hints", "auth", "engine", "accounts", "extras"),
    },
    "client": {
        *("errors", "redaction", "concurrency", "spec", "jsonrpc", "mcp", "judge", "transports"),
        *("exception_text", "migration_hints", "auth", "hosts"),
    },
    "hosts": {"errors", "redaction", "extras"},
    "skills": {"errors", "redaction", "spec", "jsonrpc", "mcp", "server"},
    "testing": {
        *("errors", "redaction", "spec", "jsonrpc", "mcp", "judge", "store", "transports"),
        *("exception_text", "server", "client", "auth", "engine"),
    },
    "compat": {
        *("errors", "redaction", "spec", "jsonrpc", "mcp", "judge"),
        *("transports", "client", "server", "auth"),
    },
    "cli": {
        *("errors", "redaction", "concurrency", "spec", "jsonrpc", "mcp", "judge", "store"),
        *("transports", "server", "client", "auth", "hosts", "engine", "private_file"),
        *("accounts", "extras"),
    },
    "__main__": {"cli"},
    "__init__": {
        *("errors", "judge", "jsonrpc", "mcp", "spec", "transports", "auth", "server", "client"),
    },
}

# What each sub-package may import of its sisters. Modules beside the sub-packages join them
# (`server/api/app.py`) or are shared by them (`server/errors.py`), and are not listed here.
SISTERS: dict[str, dict[str, set[str]]] = {
    "engine": {"access": set(), "observability": set(), "tasks": set()},
    "server": {
        "handlers": set(),
        "access": set(),
        "registry": {"handlers"},
        "dispatch": {"handlers", "registry"},
        "methods": {"handlers", "registry", "dispatch"},
        "client_requests": {"handlers", "registry", "dispatch"},
        "subscriptions": {"handlers", "registry", "dispatch"},
        "observability": {"handlers", "registry", "dispatch", "methods"},
        "runtime": {"handlers", "access", "registry", "dispatch", "observability"},
        "tasks": {
            *("handlers", "registry", "dispatch", "methods", "client_requests"),
            *("subscriptions", "runtime"),
        },
        "api": {
            *("handlers", "access", "registry", "dispatch", "methods", "client_requests"),
            *("subscriptions", "observability", "runtime", "tasks"),
        },
    },
    "client": {
        "session": set(),
        "requests": {"session"},
        "server_requests": {"session"},
        "subscriptions": {"session", "requests"},
        "connect": {"session", "requests", "server_requests", "subscriptions"},
        "tasks": {"session", "requests", "server_requests", "subscriptions", "connect"},
        "group": {"session", "requests", "subscriptions", "connect", "tasks"},
        "sync": {"session", "requests", "server_requests", "subscriptions", "connect", "tasks"},
    },
    "cli": {
        "output": set(),
        "connect": {"output"},
        "proxy": {"output"},
        "reload": {"output"},
        "init": set(),
        "shell": {"output", "connect"},
        "commands": {"output", "connect", "proxy", "reload", "init", "shell"},
    },
    "transports": {
        "io": set(),
        "sockets": {"io"},
        "stdio": {"io"},
        "http": {"io", "sockets"},
        "websocket": {"http", "io", "sockets"},
    },
    # The resource server and the client know nothing of each other.
    "auth": {"server": set(), "client": set()},
    "judge": {
        "types": set(),
        "messages": {"types"},
        "trace": {"messages"},
        "rules": {"types", "trace"},
        "conversation": {"messages", "trace", "rules"},
        "diff": {"trace"},
    },
    "spec": {"mcp": set(), "profiles": set(), "lookup": {"mcp", "profiles"}},
    "jsonrpc": {"framing": set(), "codec": {"framing"}, "peer": {"framing", "codec"}},
    "compat": {"erlmcp": set()},
    "testing": {"authorization_server": set()},
}

# Imports inside a function that point outward: a table of methods that loads the modules of a
# feature when a peer first uses it. Each line has a reason, and goes when its import goes.
DEFERRED: dict[tuple[str, str], str] = {
    (
        "server.dispatch",
        "server.methods",
    ): "loaded by guards and middleware, which few servers have",
    ("server.methods", "server.subscriptions"): "loaded by the first subscriptions/listen",
    ("server.methods", "server.tasks"): "loaded by the first request about a task",
    ("server.registry", "server.methods"): "loaded by the first method of an extension",
    ("client.session", "client.server_requests"): "loaded by the first request of the server",
    ("client.session", "client.tasks"): "loaded by the late answer to a call that was abandoned",
    ("client.requests", "client.server_requests"): "loaded by the first result that needs input",
    ("client.subscriptions", "client.tasks"): "loaded when a stream is closed before its answer",
    ("cli.reload", "cli.commands"): "the worker runs `serve`; `serve` starts the supervisor",
}

# Packages whose `__init__` is a module in its own right. That of any other is a docstring.
PACKAGES_WITH_CODE = {
    *ALLOWED,
    "cli.output.reports",
    "compat.erlmcp",
    "judge.diff",
    "spec.lookup",
    "spec.profiles",
}

# More than this in a folder, beside `__init__`, do not fit on a screen: it wants sub-packages.
MAX_ENTRIES = 14
# Where a verb is found by its name.
MAX_VERBS = 18
# The parts of the library itself, which `ALLOWED` lists; `a2a`, `check`, `hub`, `inspector` and
# `openapi` are to come.
MAX_PARTS = 30

# The core works under any event loop, or none: it opens nothing and reads no clock.
SANS_IO = {"errors", "exception_text", "redaction", "spec", "jsonrpc", "mcp", "judge"}
OUTSIDE_WORLD = {"asyncio", "socket", "subprocess", "threading", "time", "http", "selectors", "ssl"}

MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> list[str]:
    """Return the absolute names of the modules that one file imports, wherever it does so."""
    package = ["trunkline", *path.relative_to(SOURCE).parent.parts]
    found = []
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            # `from . import x` names modules, not what is in one.
            found += [f"{module}.{a.name}" for a in node.names] if not node.module else [module]
    return found


@for_each("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    part = part_of(path)
    inner = {name.split(".")[1] for name in imports_of(path) if name.startswith("trunkline.")}
    # The version is a literal of the package itself.
    assert inner - {part, "__version__", "_lazy_exports"} <= ALLOWED[part]


@for_each("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_core_does_not_touch_the_outside_world(path: Path) -> None:
    if part_of(path) in SANS_IO:
        assert not {name.split(".")[0] for name in imports_of(path)} & OUTSIDE_WORLD


class RunTimeImport(NamedTuple):
    """An import that can run: the importing and the imported module, below `trunkline`."""

    importer: str
    imported: str
    is_deferred: bool


def names_below(folder: Path) -> dict[str, Path]:
    """Return the dotted name of every module and package below a folder, with its file."""
    names = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


NAMES = names_below(SOURCE)


def run_time_nodes(node: ast.AST, *, deferred: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the statements that can run, each with whether a function has to be called first."""
    for child in statements_below(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child, deferred
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from run_time_nodes(child, deferred=deferred or is_function)


def run_time_imports(name: str, path: Path, text: str) -> Iterator[RunTimeImport]:
    package = path.relative_to(SOURCE).parent.parts
    for node, is_deferred in run_time_nodes(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield RunTimeImport(name, inner if inner in NAMES else module, is_deferred)


@cache
def edges() -> list[RunTimeImport]:
    return [
        edge
        for name, path in NAMES.items()
        for edge in run_time_imports(name, path, path.read_text(encoding="utf-8"))
    ]


def sub_package_of(name: str) -> str:
    """Return `package.sub_package` of a module, or nothing for one that is in no sub-package."""
    package, _, rest = name.partition(".")
    sub = rest.partition(".")[0]
    return f"{package}.{sub}" if sub in SISTERS.get(package, ()) else ""


def sister_edges(*, deferred: bool) -> set[tuple[str, str]]:
    pairs = (
        (sub_package_of(edge.importer), sub_package_of(edge.imported))
        for edge in edges()
        if edge.is_deferred is deferred
    )
    return {
        (one, other)
        for one, other in pairs
        if one and other and one != other and one.split(".")[0] == other.split(".")[0]
    }


def is_allowed(edge: tuple[str, str]) -> bool:
    package, importer = edge[0].split(".")
    return edge[1].split(".")[1] in SISTERS[package][importer]


def test_every_sub_package_is_listed() -> None:
    folders = {path.parent.relative_to(SOURCE).parts for path in NAMES.values()}
    found = {".".join(parts) for parts in folders if len(parts) == 2}
    assert found == {f"{package}.{sub}" for package, subs in SISTERS.items() for sub in subs}


def test_a_sub_package_imports_only_the_sisters_it_may() -> None:
    outward = {edge for edge in sister_edges(deferred=False) if not is_allowed(edge)}
    assert outward == set()


def test_a_deferred_import_points_inward_or_has_a_reason() -> None:
    outward = {edge for edge in sister_edges(deferred=True) if not is_allowed(edge)}
    assert outward == set(DEFERRED)


def test_no_module_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {name: set() for name in NAMES}
    for edge in edges():
        # A package imports its own modules for its exports; they may name it too.
        if not edge.is_deferred and not edge.importer.startswith(f"{edge.imported}."):
            graph[edge.importer].add(edge.imported)
    TopologicalSorter(graph).prepare()  # raises CycleError, with the modules of the cycle


@pytest.mark.parametrize("lists", [{"trunkline": ALLOWED}, SISTERS], ids=["packages", "sisters"])
def test_the_lists_have_no_cycle(lists: dict[str, dict[str, set[str]]]) -> None:
    for allowed in lists.values():
        TopologicalSorter(allowed).prepare()


# Calls that open a connection or start a process.
OPENERS = {
    *("create_connection", "create_unix_connection", "create_server", "create_unix_server"),
    *("start_server", "start_unix_server", "create_subprocess_exec", "create_subprocess_shell"),
    *("Popen", "fork", "socketpair", "posix_spawn"),
}


def test_the_page_names_each_package_that_opens_something() -> None:
    found = {
        part_of(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute | ast.Name)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) in OPENERS
    }
    (sentences,) = (each for each in ARCHITECTURE.splitlines() if each.startswith("Imports point"))
    of_opening = sentences.partition(" open nothing ")[0].partition("`store`, ")[0]
    assert found == set(re.findall(r"`(\w+)`", of_opening))


def test_the_picture_on_the_page_has_every_package_and_its_arrows_are_true() -> None:
    (picture,) = (each for each in ARCHITECTURE.splitlines() if each.startswith("    errors, "))
    order = [name for level in picture.split("←") for name in level.strip().split(", ")]
    packages = {name for name in ALLOWED if (SOURCE / name).is_dir()}
    assert sorted(order) == sorted({*packages, "errors"})
    for at, name in enumerate(order):
        assert ALLOWED[name] & set(order) <= set(order[:at]), name


INNER_PACKAGES = sorted(
    name
    for name, path in NAMES.items()
    if path.name == "__init__.py" and name and name not in PACKAGES_WITH_CODE
)


@pytest.mark.parametrize("name", INNER_PACKAGES)
def test_the_init_of_an_inner_package_is_a_docstring(name: str) -> None:
    body = ast.parse(NAMES[name].read_text(encoding="utf-8")).body
    code = [each for each in body if ast.unparse(each) != "from __future__ import annotations"]
    assert len(code) == 1
    assert isinstance(code[0], ast.Expr)


def test_no_folder_is_crowded() -> None:
    folders = {path.parent for path in NAMES.values()}
    for folder in folders:
        # `__init__` and its like say nothing new to a reader; stubs are generated.
        shown = [each for each in folder.iterdir() if each.is_dir() or each.suffix == ".py"]
        modules = [each.name for each in shown if not each.name.startswith("__")]
        most = {SOURCE: MAX_PARTS, SOURCE / "cli" / "commands": MAX_VERBS}.get(folder, MAX_ENTRIES)
        assert len(modules) <= most, f"{folder.relative_to(SOURCE)}: {sorted(modules)}"


def test_run_time_imports_leave_out_imports_for_types_and_mark_deferred_ones() -> None:
    text = (
        "from .handlers import arguments\n"
        "if TYPE_CHECKING:\n    from .app import Server\n"
        "def load():\n    from ..errors import visible\n"
    )
    assert list(run_time_imports("server.new", SOURCE / "server" / "new.py", text)) == [
        RunTimeImport("server.new", "server.handlers.arguments", is_deferred=False),
        RunTimeImport("server.new", "errors", is_deferred=True),
    ]


def test_modules_import_each_other_by_relative_names() -> None:
    # `run_time_imports` reads those alone.
    for name, path in NAMES.items():
        for node in import_statements(path):
            if isinstance(node, ast.Import):
                assert not any(a.name.split(".")[0] == "trunkline" for a in node.names), name
            elif not node.level:
                assert (node.module or "").split(".")[0] != "trunkline", name


def test_relative_imports_are_resolved() -> None:
    assert "trunkline.jsonrpc.messages" in imports_of(SOURCE / "jsonrpc" / "codec" / "codec.py")
    assert "trunkline.errors" in imports_of(SOURCE / "jsonrpc" / "codec" / "codec.py")
    assert "trunkline.jsonrpc.codec.encode_errors" in imports_of(
        SOURCE / "jsonrpc" / "codec" / "codec.py"
    )
