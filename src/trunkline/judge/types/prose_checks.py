"""Checks of some types that only the prose of the specification asks for.

They run in addition to the checks compiled from the rows: keys of `_meta`, capabilities, ids of
extensions, and a few values that a schema cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...spec.lookup.meta_key_check import KEY_SYNTAX, check_meta_key
from ...spec.mcp.capabilities import CAPABILITIES
from ...spec.mcp.meta import META_KEYS
from ...spec.mcp.methods import METHODS
from ...spec.revisions import REVISIONS
from ...spec.rows import MetaKey
from .checks import Check
from .collector import Path, Sink
from .formats import is_traceparent
from .hints import other_revision

__all__ = ["EXTRAS", "Compile", "is_capabilities", "side_of"]

Compile = Callable[[str, str], Check]

# Longer keys have no meaning in any revision; only their syntax is checked.
_MAX_KEY_CHARS: Final = 256
_TRACING: Final = frozenset(("traceparent", "tracestate", "baggage"))


# -- _meta -----------------------------------------------------------------------------------


def _meta(revision: str, listed: Mapping[str, Check], compile: Compile) -> Check:
    rows = [row for row in META_KEYS if row.when.holds(revision)]
    known = frozenset(row.key for row in rows)
    each = {
        row.key: _known(row, None if row.key in listed else compile(row.type, revision))
        for row in rows
        if row.key not in listed or row.status == "deprecated"
    }

    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is not dict:
            return
        for key in value:
            if key in each:
                each[key](value[key], (path, key), sink)
            elif key not in known:
                _unlisted(key, value[key], (path, key), sink)
                if len(value) > 256 and sink.is_full():
                    return

    return check


def _known(row: MetaKey, of_type: Check | None) -> Check:
    def check(value: Any, path: Path, sink: Sink) -> None:
        if of_type is not None:
            of_type(value, path, sink)
        if row.status == "deprecated":
            sink.report("mcp.type.deprecated", path, value, row.adopt)
        if row.key in _TRACING and type(value) is str and not _is_trace(row.key, value):
            sink.report("mcp.meta.trace", path, value)

    return check


def _is_trace(key: str, text: str) -> bool:
    if key == "traceparent":
        return is_traceparent(text)
    # Lists of `name=value`, in characters that an HTTP header can carry.
    return text.isascii() and text.isprintable() and all("=" in part for part in text.split(","))


def _unlisted(key: Any, item: Any, path: Path, sink: Sink) -> None:
    # A key that the revision does not define: malformed, reserved, or of another revision.
    problem = check_meta_key(str(key), sink.revision)
    if problem is None:
        return
    if len(str(key)) <= _MAX_KEY_CHARS and problem.rule != KEY_SYNTAX:
        having = [r for r in REVISIONS for row in META_KEYS if row.key == key and row.when.holds(r)]
        rule, phrase = other_revision(having, sink.revision, "type")
        if rule:
            sink.report(rule, path, item, f"no {key!r}: {phrase}")
            return
    sink.report(problem.rule, path, item, problem.says, problem.anchor.partition(" · ")[2])


# -- capabilities ----------------------------------------------------------------------------

_SIDES: Final = {"ClientCapabilities": "client", "ServerCapabilities": "server"}


def is_capabilities(type_name: str) -> bool:
    """Return True if a type is a set of capabilities, or part of one."""
    return type_name.partition(".")[0] in _SIDES


def side_of(name: str, revision: str) -> frozenset[str]:
    """Return the sides that can declare a capability of this name."""
    return frozenset(
        row.role for row in CAPABILITIES if row.name == name and row.when.holds(revision)
    )


def _capabilities(revision: str, listed: Mapping[str, Check], compile: Compile) -> Check:
    # A deprecated one is not reported where it is declared, but where it is used: a peer that
    # supports a feature has to declare it for those that still use it.
    def check(value: Any, path: Path, sink: Sink) -> None:
        extensions = value.get("extensions") if type(value) is dict else None
        if "extensions" in listed and type(extensions) is dict:
            _extensions(extensions, (path, "extensions"), sink)

    return check


def _extensions(value: dict[str, Any], path: Path, sink: Sink) -> None:
    for name, settings in value.items():
        prefix, _, rest = str(name).partition("/")
        problem = check_meta_key(str(name), sink.revision)
        if not prefix or not rest or (problem is not None and problem.rule == KEY_SYNTAX):
            sink.report("mcp.extension.id", (path, name), settings)
        if sink.is_full():
            return


# -- single rules ----------------------------------------------------------------------------


def _root(revision: str, listed: Mapping[str, Check], compile: Compile) -> Check:
    def check(value: Any, path: Path, sink: Sink) -> None:
        uri = value.get("uri") if type(value) is dict else None
        if type(uri) is str and not uri.startswith("file://"):
            sink.report("mcp.root.file", (path, "uri"), uri)

    return check


def _input_required(revision: str, listed: Mapping[str, Check], compile: Compile) -> Check:
    def check(value: Any, path: Path, sink: Sink) -> None:
        if type(value) is dict and "inputRequests" not in value and "requestState" not in value:
            sink.report("mcp.result.input-empty", path)

    return check


def _input_requests(revision: str, listed: Mapping[str, Check], compile: Compile) -> Check:
    old = {
        row.name: row.adopt or row.instead
        for row in METHODS
        if row.status == "deprecated" and row.form == "inside-result" and row.when.holds(revision)
    }

    def check(value: Any, path: Path, sink: Sink) -> None:
        for key, request in value.items() if type(value) is dict else ():
            name = request.get("method") if type(request) is dict else None
            if type(name) is str and name in old:
                sink.report("mcp.method.deprecated", ((path, key), "method"), name, old[name])
            if sink.is_full():
                return

    return check


# By name of the type, the factory of its additional check.
EXTRAS: Final[dict[str, Callable[[str, Mapping[str, Check], Compile], Check]]] = {
    "MetaObject": _meta,
    "NotificationMetaObject": _meta,
    "RequestMetaObject": _meta,
    "ResultMetaObject": _meta,
    "SubscriptionsListenResultMetaObject": _meta,
    "ClientCapabilities": _capabilities,
    "ServerCapabilities": _capabilities,
    "InputRequests": _input_requests,
    "InputRequiredResult": _input_required,
    "Root": _root,
}
