"""Write the vectors of the message judge that follow from the rows.

For every method of every revision: valid messages, and messages that break one rule each: a
member missing or of a wrong type, the wrong sender, a superfluous or missing id; and the methods
of other revisions. The expected findings follow from the fault that was put into a message; the
judge itself is not consulted.

    python tools/judge_vectors.py           write the files
    python tools/judge_vectors.py --check   exit 1 if a file is not what the rows say
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from trunkline.spec import lookup
from trunkline.spec.mcp.methods import METHODS
from trunkline.spec.revisions import REVISIONS
from trunkline.spec.rows import Method
from trunkline.spec.types import Expr, FieldView, need, parse, type_

Json: TypeAlias = dict[str, Any]

FOLDER: Final = Path(__file__).resolve().parents[1] / "tests" / "vectors" / "judge"

# Rules that a message in order obeys, whatever it is.
OF_ALL: Final = ["mcp.type.json-type", "mcp.type.required", "mcp.type.constant", "mcp.type.format"]
OF_REQUESTS: Final = [
    "mcp.method.unknown",
    "mcp.method.direction",
    "mcp.request.id-missing",
    "mcp.params.required",
]
OF_NOTIFICATIONS: Final = ["mcp.notification.unknown", "mcp.notification.id"]

# Values by the format of a text, and by the names that need more than their type says.
FORMATS: Final = {"uri": "file:///a/b.txt", "uri-template": "file:///{path}", "byte": "aGk="}
# Which optional members every obeying message leaves out: to declare them is to use what is
# on its way out, and the judge says so.
DEPRECATED: Final = frozenset(("io.modelcontextprotocol/logLevel",))
ADVISED: Final = {
    "request": "io.modelcontextprotocol/clientInfo",
    "result": "io.modelcontextprotocol/serverInfo",
}
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
# A value of each JSON type, to be put where another is due.
WRONG: Final = {
    "integer": 7,
    "string": "x",
    "object": {},
    "array": [],
    "boolean": True,
    "null": None,
}


# -- values ----------------------------------------------------------------------------------


def value_of(expr: Expr, revision: str, *, full: bool) -> Any:
    """Return a value of a type: as small as may be, or with everything it can have."""
    if expr.kind == "primitive":
        values = {"string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None}
        return values.get(expr.name, {"any": ["thing", 1, None]})
    if expr.kind == "constant":
        return expr.value
    if expr.kind == "union":
        return value_of(expr.of[0], revision, full=full)
    if expr.kind == "name":
        return named_value(expr.name, revision, full=full)
    options = options_of(expr.of[0], revision) if full else []
    inner = [value_of(option, revision, full=full) for option in options]
    if expr.kind == "list":
        return inner
    return {f"key{number}": item for number, item in enumerate(inner)}


def options_of(expr: Expr, revision: str) -> list[Expr]:
    """Return all that a type can be, unions taken apart."""
    if expr.kind == "union":
        return [option for member in expr.of for option in options_of(member, revision)]
    view = type_(expr.name, revision) if expr.kind == "name" else None
    if view is not None and view.kind in ("union", "alias") and expr.name != "JSONValue":
        return options_of(view.expr, revision)
    return [expr]


def named_value(name: str, revision: str, *, full: bool) -> Any:
    """Return a value of a type that has a name."""
    if name in ("ClientCapabilities", "ServerCapabilities"):
        return {}
    if name == "JSONValue":
        return {"any": ["thing", 1, None]}
    view = need(name, revision)
    if view.kind != "object":
        return value_of(view.expr, revision, full=full)
    made = {
        field.name: field_value(field, revision, full=full)
        for field in view.fields.values()
        if field.required or (full and field.name not in DEPRECATED)
    }
    if name == "RequestMetaObject" and ADVISED["request"] in view.fields:
        made["io.modelcontextprotocol/protocolVersion"] = revision
        made[ADVISED["request"]] = {"name": "client", "version": "1"}
    return made


def field_value(field: FieldView, revision: str, *, full: bool) -> Any:
    """Return a value of a member."""
    for keyword, bound in field.limits:
        if keyword == "format":
            return FORMATS[str(bound)]
    return value_of(field.expr, revision, full=full)


def kinds_of(expr: Expr, revision: str) -> set[str]:
    """Return the JSON types that a type can have."""
    kinds: set[str] = set()
    for option in options_of(expr, revision):
        if option.kind == "primitive":
            kinds |= {"integer"} if option.name == "number" else {option.name}
        elif option.kind == "constant":
            kinds.add("string" if isinstance(option.value, str) else "integer")
        elif option.kind == "name":
            view = type_(option.name, revision)
            is_enum = view is not None and view.kind == "enum"
            kinds.add("any" if option.name == "JSONValue" else "string" if is_enum else "object")
        else:
            kinds.add("array" if option.kind == "list" else "object")
    return kinds


def wrong_value(expr: Expr, revision: str) -> tuple[bool, Any, str]:
    """Return whether a type can be missed at all, a value that does, and the rule about it."""
    kinds = kinds_of(expr, revision)
    if "any" in kinds:
        return False, None, ""
    wrong = next(value for kind, value in WRONG.items() if kind not in kinds)
    options = options_of(expr, revision)
    view = type_(options[0].name, revision) if options[0].kind == "name" else None
    is_listed = options[0].kind == "constant" or (view is not None and view.kind == "enum")
    return True, wrong, "mcp.type.constant" if is_listed else "mcp.type.json-type"


# -- messages --------------------------------------------------------------------------------


def vectors_of(revision: str) -> list[Json]:
    """Return every vector of a revision, each with a name of its own."""
    made = [
        vector
        for row in lookup.methods(revision)
        for vector in (embedded(row, revision) if row.form != "wire" else sent(row, revision))
    ]
    made += others(revision)
    return [{**vector, "name": f"{revision} {vector['name']}"} for vector in made]


def sent(row: Method, revision: str) -> Iterator[Json]:
    """Yield what can be said of a method that travels by itself."""
    yield from in_order(row, revision)
    yield from spoilt_envelope(row, revision)
    yield from spoilt_params(row, revision)
    if row.kind == "request":
        yield from results(row, revision)


def in_order(row: Method, revision: str) -> Iterator[Json]:
    """Yield the messages that nothing is wrong with."""
    obeys = [*OF_ALL, *(OF_REQUESTS if row.kind == "request" else OF_NOTIFICATIONS)]
    notes = [["mcp.method.deprecated", "info", "/method"]] if row.status == "deprecated" else []
    for size in ("least", "most"):
        message = message_of(row, revision, full=size == "most")
        for sender in row.senders:
            why = f"{row.name} with the {size} it can carry."
            name = f"{row.name} {size} by {sender}"
            yield vector(name, why, revision, message, notes, sender=sender, obeys=obeys)


def spoilt_envelope(row: Method, revision: str) -> Iterator[Json]:
    """Yield messages whose sender, id or params are not what the method needs."""
    message = message_of(row, revision)
    notes = [["mcp.method.deprecated", "info", "/method"]] if row.status == "deprecated" else []
    for wrong in {"client", "server"} - set(row.senders):
        found = [["mcp.method.direction", "error", "/method"], *notes]
        why = f"Only the {row.by} sends {row.name}."
        yield vector(f"{row.name} by {wrong}", why, revision, message, found, sender=wrong)
    if row.kind == "request":
        without = {name: value for name, value in message.items() if name != "id"}
        found = [["mcp.request.id-missing", "warn", "/id"], *notes]
        yield vector(f"{row.name} without id", "Nobody answers it.", revision, without, found)
    else:
        found = [["mcp.notification.id", "error", "/id"], *notes]
        why = "A notification has no id."
        yield vector(f"{row.name} with id", why, revision, {**message, "id": 1}, found)
    if row.params_required:
        without = {name: value for name, value in message.items() if name != "params"}
        found = [["mcp.params.required", "error", "/params"], *notes]
        why = f"{row.name} needs params."
        yield vector(f"{row.name} without params", why, revision, without, found)


def spoilt_params(row: Method, revision: str) -> Iterator[Json]:
    """Yield messages with one member of params missing or wrong."""
    notes = [["mcp.method.deprecated", "info", "/method"]] if row.status == "deprecated" else []
    message = message_of(row, revision)
    params = message.get("params") or {}
    for what, changed, found in spoilt(parse(row.params or "any"), params, "/params", revision):
        spoils_meta = "_meta" in what
        more = meta_lost(row, revision) if spoils_meta else []
        spoilt_message = {**message, "params": changed}
        why = f"In params of {row.name}: {what}."
        yield vector(f"{row.name} {what}", why, revision, spoilt_message, [*found, *more, *notes])
    if row.kind == "request" and "_meta" in params:
        yield from spoilt_meta(row, message, revision)


def spoilt_meta(row: Method, message: Json, revision: str) -> Iterator[Json]:
    """Yield messages with one required key of `_meta` missing."""
    for field in need("RequestMetaObject", revision).fields.values():
        if field.required:
            meta = {k: v for k, v in message["params"]["_meta"].items() if k != field.name}
            params = {**message["params"], "_meta": meta}
            found = [["mcp.type.required", "error", f"/params/_meta/{escaped(field.name)}"]]
            name = f"{row.name} without {field.name}"
            why = f"Every request says its {field.name}."
            yield vector(name, why, revision, {**message, "params": params}, found)


def meta_lost(row: Method, revision: str) -> list[Any]:
    """Return what follows from a `_meta` that is missing or no object."""
    found = []
    if row.kind == "request" and ADVISED["request"] in need("RequestMetaObject", revision).fields:
        found.append(["mcp.meta.advised", "info", f"/params/_meta/{escaped(ADVISED['request'])}"])
    if row.stream:
        found.append(["mcp.meta.subscription", "error", f"/params/_meta/{escaped(SUBSCRIPTION)}"])
    return found


def results(row: Method, revision: str) -> Iterator[Json]:
    """Yield replies to a request: in order, and with one member missing or wrong."""
    by = "server" if row.by != "server" else "client"
    options = options_of(parse(row.result or "Result"), revision)
    for option in options:
        least = result_of(option, revision, full=False)
        most = result_of(option, revision, full=True)
        for size, result in (("least", least), ("most", most)):
            name, why = f"{row.name} {option.name} {size}", f"{option.name} answers {row.name}."
            yield reply(name, why, revision, row, result, [], sender=by, obeys=OF_ALL)
        if option.name == "InputRequiredResult":
            continue  # what is wrong with one is judged by what tells it from others
        for what, changed, found in spoilt(option, least, "/result", revision):
            if not changed and option is not options[0]:
                continue  # nothing is left by which it could be told from the first
            if what.startswith("_meta") and is_per_request(revision):
                lost = f"/result/_meta/{escaped(ADVISED['result'])}"
                found.append(["mcp.meta.advised", "info", lost])
            name, why = f"{row.name} {option.name} {what}", f"In a result of {row.name}: {what}."
            yield reply(name, why, revision, row, changed, found)


def result_of(expr: Expr, revision: str, *, full: bool) -> Json:
    """Return a result, with the identity of the server where one is advised."""
    result: Json = value_of(expr, revision, full=full)
    if expr.name == "InputRequiredResult":
        result.setdefault("requestState", "opaque")
    if is_per_request(revision):
        meta = {**result.get("_meta", {}), ADVISED["result"]: {"name": "server", "version": "1"}}
        result["_meta"] = meta
    return result


def is_per_request(revision: str) -> bool:
    """Return True if requests of a revision carry their own metadata."""
    return lookup.meta_key(ADVISED["result"], revision) is not None


def spoilt(expr: Expr, value: Json, at: str, revision: str) -> Iterator[tuple[str, Json, Any]]:
    """Yield a value with one member missing or wrong, and what is found then."""
    option = options_of(expr, revision)[0]
    view = type_(option.name, revision) if option.kind == "name" else None
    if view is None or view.kind != "object":
        return
    for field in view.fields.values():
        where = f"{at}/{escaped(field.name)}"
        if field.required:
            rest = {name: item for name, item in value.items() if name != field.name}
            yield f"{field.name} is missing", rest, [["mcp.type.required", "error", where]]
        can_miss, wrong, rule = wrong_value(field.expr, revision)
        if can_miss:
            yield f"{field.name} is wrong", {**value, field.name: wrong}, [[rule, "error", where]]


def embedded(row: Method, revision: str) -> Iterator[Json]:
    """Yield what can be said of a request that only travels inside a result."""
    asks = {"method": row.name, "params": value_of(parse(row.params or ""), revision, full=True)}
    result = result_of(parse("InputRequiredResult"), revision, full=False)
    result["inputRequests"] = {"first": asks}
    asking = lookup.method("tools/call", revision)
    assert asking is not None
    name, why = f"{row.name} inside a result", f"{row.name} travels among inputRequests."
    obeys = ["mcp.method.inside-result"]
    yield reply(name, why, revision, asking, result, [], sender="server", obeys=obeys)
    found = [["mcp.method.inside-result", "error", "/method"]]
    if row.status == "deprecated":
        found.append(["mcp.method.deprecated", "info", "/method"])
    key = escaped(ADVISED["request"])
    found.append(["mcp.meta.advised", "info", f"/params/_meta/{key}"])
    message = {"jsonrpc": "2.0", "id": 1, **asks}
    why = f"{row.name} is no request of its own any more."
    yield vector(f"{row.name} by itself", why, revision, message, found, sender="server")
    for field, changed, faults in spoilt(parse(row.params or ""), asks["params"], "", revision):
        at = "/result/inputRequests/first/params"
        spoilt_result = {**result, "inputRequests": {"first": {**asks, "params": changed}}}
        moved = [[rule, level, at + where] for rule, level, where in faults]
        why = f"In params of an embedded {row.name}: {field}."
        yield reply(f"{row.name} embedded {field}", why, revision, asking, spoilt_result, moved)


def others(revision: str) -> Iterator[Json]:
    """Yield methods that other revisions have."""
    for name in {row.name: None for row in METHODS}:
        if lookup.method(name, revision) is None:
            gone = lookup.method_status(name, revision) == "removed"
            rule = "mcp.method.no-longer" if gone else "mcp.method.not-yet"
            message = {"jsonrpc": "2.0", "method": name}
            if not name.startswith("notifications/"):
                message["id"] = "1"
            why = f"{name} is of {'an earlier' if gone else 'a later'} revision."
            yield vector(f"{name} elsewhere", why, revision, message, [[rule, "error", "/method"]])


def message_of(row: Method, revision: str, *, full: bool = False) -> Json:
    """Return a message with this method."""
    message: Json = {"jsonrpc": "2.0", "method": row.name}
    if row.kind == "request":
        message["id"] = 1
    if row.params_required or full or row.stream:
        params = value_of(parse(row.params or "any"), revision, full=full)
        if row.stream:
            params["_meta"] = {**params.get("_meta", {}), SUBSCRIPTION: 1}
        message["params"] = params
    return message


def vector(
    name: str, why: str, revision: str, message: Json, findings: list[Any], **more: Any
) -> Json:
    """Return one case."""
    told = sorted(findings)
    return {
        "name": name,
        "why": why,
        "revision": revision,
        **more,
        "message": message,
        "findings": told,
    }


def reply(
    name: str, why: str, revision: str, row: Method, result: Json, found: list[Any], **more: Any
) -> Json:
    """Return one case of a reply."""
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    notes = deprecated_questions(result, revision)
    return vector(name, why, revision, message, [*found, *notes], request=row.name, **more)


def deprecated_questions(result: Json, revision: str) -> list[Any]:
    """Return what is found about the requests to the client in a result: some are deprecated."""
    asked = result.get("inputRequests")
    rows = {
        key: lookup.method(request["method"], revision)
        for key, request in (asked.items() if isinstance(asked, dict) else ())
    }
    return [
        ["mcp.method.deprecated", "info", f"/result/inputRequests/{key}/method"]
        for key, row in rows.items()
        if row is not None and row.status == "deprecated"
    ]


def escaped(name: str) -> str:
    """Return a member name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


# -- files -----------------------------------------------------------------------------------


def text_of(revision: str) -> str:
    """Return the file of a revision, one case per line."""
    lines = (json.dumps(case, ensure_ascii=False) for case in vectors_of(revision))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> int:
    """Write or check the files; the exit code says whether they are what the rows say."""
    parser = argparse.ArgumentParser(description="Vectors that follow from the rows.")
    parser.add_argument("--check", action="store_true", help="exit 1 if a file is stale")
    only_check = parser.parse_args().check
    stale = 0
    for revision in REVISIONS:
        path, text = FOLDER / f"methods-{revision}.json", text_of(revision)
        is_stale = not path.exists() or path.read_text(encoding="utf-8") != text
        stale += is_stale
        if only_check and is_stale:
            print(f"{path.name} is stale: run python tools/judge_vectors.py")
        elif is_stale:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {text.count(chr(10)) - 2} vectors")
    return 1 if only_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
