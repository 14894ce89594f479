"""Convert our rows to erlmcp's records: the tables of one revision.

Every function reads rows and returns records of `spec_records`. Only the members of types are
cached, which are costly to find and never change; `spec_parser` caches whole specifications.

The rules that live here, and only here:

* The original's values for ours: directions, categories of errors, framings.
* Params or a result of several alternatives are one table, where a member is required only
  if all alternatives require it.
* One code is one error: its meaning when received, and all symbols it is sent for.
* A capability is listed once, for both sides, with its features and methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from ...spec import lookup
from ...spec.rows import Capability, ErrorCode, Method, TransportRow
from ...spec.types import Expr, FieldView, TypeView, need, parse
from .spec_records import (
    Direction,
    ErrorCategory,
    Fields,
    Framing,
    capability_req,
    error_code_req,
    mcp_spec,
    method_req,
    method_validator,
    transport_req,
    validation_rule,
)

__all__ = [
    "capability_record",
    "error_record",
    "rule_records",
    "specification",
    "transport_record",
    "validator_record",
]

PROTOCOL_TYPE: Final = "JSON-RPC 2.0"

_DIRECTIONS: Final[Mapping[str, Direction]] = {
    "client": "client_to_server",
    "server": "server_to_client",
    "both": "bidirectional",
}
# What is not here is about MCP itself.
_CATEGORIES: Final[Mapping[str, ErrorCategory]] = {
    "jsonrpc": "json_rpc",
    "json_rpc": "json_rpc",
    "transport": "transport",
    "validation": "validation",
}
_FRAMINGS: Final[Mapping[str, Framing]] = {"newline": "json_delimiter"}


def specification(revision: str, profile: str) -> mcp_spec:
    """Return the record of a whole revision."""
    methods = {row.name: _method_record(row, revision) for row in lookup.methods(revision)}
    return mcp_spec(
        revision,
        revision,
        PROTOCOL_TYPE,
        MappingProxyType(methods),
        MappingProxyType(_error_table(revision, profile)),
        tuple(row.name for row in lookup.transports(revision)),
        MappingProxyType(_capability_table(revision)),
    )


def _method_record(row: Method, revision: str) -> method_req:
    return method_req(
        row.name,
        row.kind,
        _DIRECTIONS[row.by],
        row.required,
        _fields(row.params, revision),
        _fields(row.result, revision),
        row.capability or None,
        row.status,
        row.doc,
        row,
    )


# Each expression of the rows in each revision, twice over: a specification that is made again
# after its time has not changed.
@lru_cache(maxsize=512)
def _fields(expression: str | None, revision: str) -> Fields:
    """Return the members of a type, of all alternatives together where it has several."""
    views = [] if expression is None else list(_objects(parse(expression), revision))
    if len(views) == 1:
        return views[0].fields
    merged: dict[str, FieldView] = {}
    for name in dict.fromkeys(name for view in views for name in view.fields):
        merged[name] = _merged([view.fields.get(name) for view in views])
    return MappingProxyType(merged)


def _objects(expr: Expr, revision: str) -> Iterator[TypeView]:
    """Yield the object types of an expression."""
    if expr.kind == "union":
        for member in expr.of:
            yield from _objects(member, revision)
    elif expr.kind == "name":
        view = need(expr.name, revision)
        if view.kind == "object":
            yield view
        else:
            yield from _objects(view.expr, revision)


def _merged(fields: list[FieldView | None]) -> FieldView:
    """Return what a field is in a union: required only if no alternative does without it."""
    there = [field for field in fields if field is not None]
    types = dict.fromkeys(field.type for field in there)
    same = all(field.limits == there[0].limits for field in there)
    return there[0]._replace(
        type=" | ".join(types),
        required=len(there) == len(fields) and all(field.required for field in there),
        limits=there[0].limits if same else (),
    )


def _error_table(revision: str, profile: str) -> dict[int, error_code_req]:
    """Return what each number means when it is read, and what else it is sent for."""
    by_number: dict[int, list[ErrorCode]] = {}
    for row in lookup.errors(revision, profile):
        by_number.setdefault(row.number, []).append(row)
    return {number: error_record(rows[0], rows) for number, rows in by_number.items()}


def error_record(row: ErrorCode, sharing: Iterable[ErrorCode]) -> error_code_req:
    """Return one error; `sharing` are all rows whose number is to be explained with it."""
    rows = tuple(sharing)
    return error_code_req(
        row.number,
        row.message,
        _CATEGORIES.get(row.category, "mcp_protocol"),
        "; ".join(dict.fromkeys(other.message for other in rows)),
        "error" if row.severity in ("critical", "error") else "warning",
        row.retry,
        tuple(str(other.symbol) for other in rows),
        row,
    )


def transport_record(row: TransportRow) -> transport_req:
    """Return one transport in the words of the original."""
    return transport_req(
        row.name,
        "stream_based" if row.kind == "stream" else "message_based",
        _FRAMINGS.get(row.framing, "custom"),
        row.connection_oriented,
        row.multiplexing,
        row.required,
        row.optional,
        row,
    )


def _capability_table(revision: str) -> dict[str, capability_req]:
    """Return the capabilities that are inside no other, by name."""
    by_name: dict[str, list[Capability]] = {}
    for row in lookup.capabilities(revision):
        if "." not in row.name:
            by_name.setdefault(row.name, []).append(row)
    return {name: capability_record(tuple(rows), revision) for name, rows in by_name.items()}


def capability_record(rows: tuple[Capability, ...], revision: str) -> capability_req:
    """Return one capability, of the sides that `rows` are of."""
    first = rows[0]
    roles = {row.role for row in rows}
    inside = [
        row
        for row in lookup.capabilities(revision)
        if row.name.startswith(f"{first.name}.") and row.role in roles
    ]
    declared = (row.name.removeprefix(f"{first.name}.") for row in inside)
    return capability_req(
        first.name,
        "both" if len(roles) == 2 else first.role,
        False,
        _once(depends for row in rows for depends in row.depends),
        _once((*declared, *_opened(first, revision))),
        _once(rule for row in (*rows, *inside) for rule in row.rules),
        rows,
    )


def _opened(capability: Capability, revision: str) -> Iterator[str]:
    """Yield the requests that a capability opens, without their prefix."""
    for row in lookup.methods(revision):
        # The methods of an extension need the extension, not the map that contains it.
        inside = capability.kind != "map" and row.capability.startswith(f"{capability.name}.")
        if row.kind == "request" and (row.capability == capability.name or inside):
            yield row.name.partition("/")[2]


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


# -- checks and rules ----------------------------------------------------------------------------


def validator_record(method: method_req, codes: tuple[int, ...], revision: str) -> method_validator:
    """Return the check of one method's params; `codes` are what it may be answered with."""
    params = method.params_spec
    return method_validator(
        method.name,
        tuple(name for name, field in params.items() if field.required),
        tuple(name for name, field in params.items() if not field.required),
        MappingProxyType({name: field.type for name, field in params.items()}),
        MappingProxyType({name: field.limits for name, field in params.items()}),
        method.row.result,
        codes,
        _preconditions(method.row),
        (f"The result is {method.row.result}.",) if method.row.result else (),
        revision,
    )


_HOLDERS: Final = {"sender": "sender", "receiver": "receiver", "both": "client and the server"}


def _preconditions(row: Method) -> tuple[str, ...]:
    """Return what has to hold before a method may be sent, a sentence each."""
    found = [] if row.form == "wire" else ["It travels inside a result."]
    if row.capability:
        found.append(f"The {_HOLDERS[row.holder]} declared {row.capability}.")
    if row.stream:
        found.append(f"A stream of {row.stream} is open.")
    return tuple(found)


def rule_records(revision: str) -> tuple[validation_rule, ...]:
    """Return the rules that messages of a revision are judged by."""
    # Imported here: few programs print the rules.
    from ...spec.jsonrpc import RULES as OF_THE_ENVELOPE
    from ...spec.mcp.rules import RULES as OF_THE_CONTENT

    return (
        *(
            validation_rule(rule.id, "error", "json_rpc", rule.expected, rule.source)
            for rule in OF_THE_ENVELOPE.values()
        ),
        *(
            validation_rule(rule.id, rule.level, "mcp_protocol", rule.expected, rule.anchor)
            for rule in OF_THE_CONTENT.values()
            if rule.when.holds(revision)
        ),
    )
