"""Checks of a request or a notification against the row of its method."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ...mcp.names import official
from ...spec import lookup
from ...spec.mcp.meta import PROTOCOL_VERSION
from ...spec.mcp.methods import EXTENSION_METHODS, METHODS, NOTIFICATION
from ...spec.revisions import REVISIONS
from ...spec.rows import MetaKey, Method, Place
from ..types.collector import Path, Sink
from ..types.hints import near, other_revision
from ..types.type_checks import compiled
from .context import MessageContext
from .envelope import Members

__all__ = ["is_vendor_method", "judge_call", "judge_meta"]

# What may end the namespace of a method: `com.example/stars`, `stars/list`, `stars.list`.
_SEPARATOR: Final = re.compile("[/.:]")


def judge_call(members: Members, path: Path, context: MessageContext, sink: Sink) -> None:
    """Report what is wrong with a message that has a method."""
    name = members["method"]
    if type(name) is not str or not name:
        return  # reported by the codec
    at: Path = (path, "method")
    row = _row(name, context)
    if row is None:
        if name not in EXTENSION_METHODS:
            _unknown(name, "id" in members, at, sink)
        return
    _judge_sender(row, name, at, context, sink)
    _judge_id(row, members, path, context, sink)
    if path is not None and row.name == "initialize":
        sink.report("mcp.batch.initialize", at, name)
    if row.status == "deprecated":
        sink.report("mcp.method.deprecated", at, name, row.adopt or row.instead)
    _judge_params(row, members, path, context, sink)


def _row(name: str, context: MessageContext) -> Method | None:
    return lookup.method(official(name, context.policy, context.revision), context.revision)


def _unknown(name: str, has_id: bool, at: Path, sink: Sink) -> None:
    revision = sink.revision
    rows = [row for row in METHODS if row.name == name]
    having = [other for other in REVISIONS if any(row.when.holds(other) for row in rows)]
    rule, phrase = other_revision(having, revision, "method")
    if rule:
        instead = f". {rows[-1].instead}" if rule.endswith("no-longer") else ""
        sink.report(rule, at, name, f"no {name!r}: {phrase}{instead}")
        return
    kind = "method" if has_id or not name.startswith(NOTIFICATION) else "notification"
    if is_vendor_method(name):
        sink.report(f"mcp.{kind}.vendor", at, name)
        return
    known = [row.name for row in lookup.methods(revision)]
    expected = f"a {kind} of {revision}{near(name, known)}"
    sink.report(f"mcp.{kind}.unknown", at, name, expected)


def is_vendor_method(name: str) -> bool:
    """Return True if a method is in a namespace of its own, unlike any of the specification."""
    space, *rest = _SEPARATOR.split(name.removeprefix(NOTIFICATION), 1)
    return bool(space and rest and rest[0]) and not near(space, _namespaces(), cutoff=0.8)


@cache
def _namespaces() -> tuple[str, ...]:
    names = (row.name.removeprefix(NOTIFICATION) for row in METHODS)
    return tuple(sorted({name.partition("/")[0] for name in names} | {NOTIFICATION[:-1]}))


def _judge_sender(row: Method, name: str, at: Path, context: MessageContext, sink: Sink) -> None:
    if row.form == "inside-result":
        sink.report("mcp.method.inside-result", at, name)
    elif context.sender is not None and context.sender not in row.senders:
        expected = f"{name!r} from the {row.by} only, never from the {context.sender}"
        sink.report("mcp.method.direction", at, name, expected)


def _judge_id(
    row: Method, members: Members, path: Path, context: MessageContext, sink: Sink
) -> None:
    has_id = "id" in members
    if members.get("id") is None and context.policy.null_id == "as-notification":
        has_id = False
    if row.kind == "request":
        if not has_id:
            sink.report("mcp.request.id-missing", (path, "id"))
    elif has_id and members["id"] is not None:  # a null id is reported by the codec
        sink.report("mcp.notification.id", (path, "id"), members["id"])


def _judge_params(
    row: Method, members: Members, path: Path, context: MessageContext, sink: Sink
) -> None:
    at: Path = (path, "params")
    if "params" not in members:
        if row.params_required:
            sink.report("mcp.params.required", at, expected=f"params: {row.params}")
        elif row.stream:
            _judge_stream(row, {}, at, sink)
        return
    params = members["params"]
    if type(params) is not dict:
        return  # reported by the codec
    if row.params is not None:
        compiled(row.params, context.revision)(params, at, sink)
    judge_meta(params, at, row.kind, sink)
    if row.kind == "request":
        _judge_version(params, at, sink)
    elif row.stream:
        _judge_stream(row, params, at, sink)


def judge_meta(holder: Members, at: Path, place: Place, sink: Sink) -> None:
    """Report missing keys of `_meta` that every message of this kind should carry."""
    meta = holder.get("_meta")
    for row in _advised(place, sink.revision):
        if type(meta) is not dict or row.key not in meta:
            sink.report("mcp.meta.advised", ((at, "_meta"), row.key), expected=row.doc)


@cache
def _advised(place: Place, revision: str) -> tuple[MetaKey, ...]:
    rows = lookup.meta_keys(revision)
    return tuple(row for row in rows if row.required == "should" and place in row.on)


def _judge_version(params: Members, at: Path, sink: Sink) -> None:
    meta = params.get("_meta")
    version = meta.get(PROTOCOL_VERSION) if type(meta) is dict else None
    known = lookup.meta_key(PROTOCOL_VERSION, sink.revision) is not None
    if known and type(version) is str and version != sink.revision:
        sink.report("mcp.meta.version", ((at, "_meta"), PROTOCOL_VERSION), version, sink.revision)


def _judge_stream(row: Method, params: Members, at: Path, sink: Sink) -> None:
    # A notification of a subscription names the stream it belongs to.
    meta = params.get("_meta")
    for key in lookup.meta_keys(sink.revision):
        is_due = row.stream in key.only and "notification" in key.on
        if is_due and (type(meta) is not dict or key.key not in meta):
            sink.report("mcp.meta.subscription", ((at, "_meta"), key.key))
