"""What each rival does between bytes and objects, as functions to time.

Three depths, compared only with each other:

* `envelope`: the envelope is validated, params and results stay raw.
* `dict`: params and results are plain dicts.
* `typed`: params and results are objects specific to the method.

Encoding starts from what a caller holds at that depth. At `envelope` the message object exists
already; at `dict` and `typed` it is made as part of the work, since every message is a new one.

The functions for mcp call what mcp's own session code calls, in its order. Left out, in mcp's
favour, is what is not codec work: tasks, streams, tracing, HTTP headers, the check of structured
output against a JSON Schema, the text layer of stdio and the line feed. Names and modules cited
are those of mcp 2.3.0 and mcp-types 2.3.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import mcp_types as types
import msgspec
import orjson
from mcp.client.session import _CallToolResultAdapter, _clamp_inbound_ttl, _later_revision_fields
from mcp.server import Server
from mcp.server.runner import ServerRunner, _dump_result, _extract_meta
from mcp_types import methods
from mcp_types.jsonrpc import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic import BaseModel, TypeAdapter

from bench.messages import PER_REQUEST_VERSION, Kind, Message, to_bytes
from bench.shapes import PARAMS, RESULTS

Depth = Literal["envelope", "dict", "typed"]
Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One rival's way through one direction at one depth.

    `feed` turns a message value into what `run` is given, `view` turns what `run` returns back
    into a message value; only `run` is timed.
    """

    rival: str
    depth: Depth
    run: Callable[[Any], Any]
    feed: Callable[[Any], Any]
    view: Callable[[Any], Any]

    @property
    def name(self) -> str:
        """Depth and rival, as shown in a table."""
        return f"{self.depth} {self.rival}"


def decoder(
    rival: str, depth: Depth, run: Callable[[bytes], Any], view: Callable[[Any], Any]
) -> Adapter:
    """An adapter from bytes."""
    return Adapter(rival, depth, run, to_bytes, view)


def encoder(
    rival: str, depth: Depth, run: Callable[[Any], bytes], feed: Callable[[Any], Any]
) -> Adapter:
    """An adapter to bytes."""
    return Adapter(rival, depth, run, feed, json.loads)


def decoders(message: Message) -> list[Adapter]:
    """Every rival's way from the bytes of this message."""
    plain = [
        decoder("orjson", "dict", read_orjson, _same),
        decoder("json", "dict", read_json, _same),
    ]
    if message.kind == "batch":
        return plain
    return [*_bare_decoders(message), *plain, *_mcp_decoders(message)]


def encoders(message: Message) -> list[Adapter]:
    """Every rival's way to the bytes of this message."""
    make = _ENVELOPES[message.kind]
    plain = [
        encoder("orjson", "envelope", orjson.dumps, _same),
        encoder("orjson", "dict", lambda value: orjson.dumps(make(value)), _same),
        encoder("json", "envelope", write_json, _same),
        encoder("json", "dict", lambda value: write_json(make(value)), _same),
    ]
    if message.kind == "batch":
        return plain
    return [*_bare_encoders(message), *plain, *_mcp_encoders(message)]


def _same(value: Any) -> Any:
    return value


# --- orjson and json, with the checks of a correct hand-written decoder


def _make_request(value: Value) -> Value:
    return {
        "jsonrpc": "2.0",
        "id": value["id"],
        "method": value["method"],
        "params": value["params"],
    }


def _make_notification(value: Value) -> Value:
    return {"jsonrpc": "2.0", "method": value["method"], "params": value["params"]}


def _make_result(value: Value) -> Value:
    return {"jsonrpc": "2.0", "id": value["id"], "result": value["result"]}


def _make_error(value: Value) -> Value:
    error = value["error"]
    held = {"code": error["code"], "message": error["message"], "data": error["data"]}
    return {"jsonrpc": "2.0", "id": value["id"], "error": held}


def _make_batch(values: list[Value]) -> list[Value]:
    return [_make_request(value) for value in values]


_ENVELOPES: dict[Kind, Callable[[Any], Any]] = {
    "request": _make_request,
    "notification": _make_notification,
    "result": _make_result,
    "error": _make_error,
    "batch": _make_batch,
}


class Refused(ValueError):
    """The input is not a message."""


def read_orjson(data: bytes) -> Any:
    """A validated message, or list of messages, as dicts; they are not wrapped in objects."""
    return _checked(orjson.loads(data))


def read_json(data: bytes) -> Any:
    """The same with the standard library; the decoder is made once, at its best."""
    return _checked(_json_decode(data.decode()))


def write_json(value: Any) -> bytes:
    """Compact UTF-8 with the standard library; the encoder is made once, at its best."""
    return _json_encode(value).encode()


def _no_constant(name: str) -> None:
    raise Refused(f"{name} is not JSON")


_json_decode = json.JSONDecoder(parse_constant=_no_constant).decode
_json_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


def _checked(value: Any) -> Any:
    if type(value) is list:
        if not value:
            raise Refused("an empty batch")
        return [_check(item) for item in value]
    return _check(value)


def _check(value: Any) -> Value:
    if type(value) is not dict or value.get("jsonrpc") != "2.0":
        raise Refused("not a JSON-RPC 2.0 object")
    if "method" in value:
        _check_call(value)
    else:
        _check_reply(value)
    return value


def _check_call(value: Value) -> None:
    if type(value["method"]) is not str:
        raise Refused("method is not a string")
    if "id" in value and type(value["id"]) not in (int, str):
        raise Refused("id is neither integer nor string")
    if "params" in value and type(value["params"]) not in (dict, list):
        raise Refused("params are not structured")
    if "result" in value or "error" in value:
        raise Refused("a call with a result or an error")


def _check_reply(value: Value) -> None:
    identifier = value.get("id", UNSET)
    if "result" in value:
        if "error" in value:
            raise Refused("result and error")
        if type(identifier) not in (int, str):
            raise Refused("id is neither integer nor string")
        return
    error = value.get("error")
    if type(error) is not dict:
        raise Refused("neither call nor reply")
    if type(error.get("code")) is not int or type(error.get("message")) is not str:
        raise Refused("code or message of the error")
    if identifier is not None and type(identifier) not in (int, str):
        raise Refused("id is neither integer, string nor null")


# --- mcp, decoding

# Both transports of the session end in this call: mcp/server/stdio.py stdin_reader and
# mcp/client/stdio.py _parse_line. They pass a str; bytes save mcp that decoding.
_mcp_read: Callable[[bytes], JSONRPCMessage] = partial(
    jsonrpc_message_adapter.validate_json, by_name=False
)

_PARAMS_MODELS: dict[str, type[BaseModel]] = {
    "initialize": types.InitializeRequestParams,
    "tools/call": types.CallToolRequestParams,
}
_RESULT_MODELS: dict[str, Any] = {
    "tools/call": _CallToolResultAdapter,
    "tools/list": types.ListToolsResult,
}


def _mcp_decoders(message: Message) -> list[Adapter]:
    typed = {
        "request": _mcp_typed_request,
        "notification": _mcp_typed_notification,
        "result": _mcp_typed_result,
        "error": _mcp_typed_error,
    }
    return [decoder("mcp", "dict", _mcp_read, _mcp_plain), typed[message.kind](message)]


def _mcp_typed_request(message: Message) -> Adapter:
    # mcp/server/runner.py ServerRunner._on_request. Not counted: for `initialize` the session
    # validates the params twice, and for 2026-07-28 Connection.from_envelope validates the
    # client's info and capabilities once more.
    version, model = message.version, _PARAMS_MODELS[message.method]

    def run(data: bytes) -> tuple[JSONRPCRequest, BaseModel]:
        request = cast(JSONRPCRequest, _mcp_read(data))
        params = request.params
        _extract_meta(params)
        if request.method in methods.SPEC_CLIENT_METHODS:
            methods.validate_client_request(request.method, version, params)
        return request, model.model_validate({} if params is None else params, by_name=False)

    return decoder("mcp", "typed", run, lambda pair: _mcp_view("params", *pair))


def _mcp_typed_notification(message: Message) -> Adapter:
    # mcp/client/session.py ClientSession._on_notify.
    version = message.version

    def run(data: bytes) -> tuple[JSONRPCNotification, Any]:
        frame = cast(JSONRPCNotification, _mcp_read(data))
        return frame, methods.parse_server_notification(frame.method, version, frame.params)

    return decoder("mcp", "typed", run, lambda pair: _mcp_view("params", pair[0], pair[1].params))


def _mcp_typed_result(message: Message) -> Adapter:
    # mcp/client/session.py ClientSession.send_request, after the answer has arrived.
    method, version, model = message.method, message.version, _RESULT_MODELS[message.method]
    is_adapter = isinstance(model, TypeAdapter)
    to_model = model.validate_python if is_adapter else model.model_validate

    def run(data: bytes) -> tuple[JSONRPCResponse, BaseModel]:
        response = cast(JSONRPCResponse, _mcp_read(data))
        raw = response.result
        _clamp_inbound_ttl(raw)
        methods.validate_server_result(method, version, raw)
        if not (foreign := _later_revision_fields(method, version)).isdisjoint(raw):
            raw = {key: value for key, value in raw.items() if key not in foreign}
        return response, to_model(raw, by_name=False)

    return decoder("mcp", "typed", run, lambda pair: _mcp_view("result", *pair))


def _mcp_typed_error(_: Message) -> Adapter:
    # The envelope's ErrorData is the typed form: JSONRPCDispatcher._resolve_pending hands it on.
    return decoder("mcp", "typed", _mcp_read, _mcp_plain)


def _mcp_plain(frame: BaseModel) -> Any:
    return frame.model_dump(by_alias=True, mode="json", exclude_unset=True)


def _mcp_view(member: str, frame: BaseModel, typed: BaseModel) -> Any:
    return _mcp_plain(frame) | {member: _mcp_plain(typed)}


# --- mcp, encoding

_runner = ServerRunner(Server("bench"), cast(Any, None), None)


def _mcp_write(frame: BaseModel) -> bytes:
    # mcp/server/stdio.py stdout_writer and mcp/client/stdio.py stdin_writer, without line feed.
    return frame.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _mcp_encoders(message: Message) -> list[Adapter]:
    makers = {
        "request": (_mcp_dict_request, _mcp_typed_send),
        "notification": (_mcp_dict_notification, _mcp_typed_notify),
        "result": (_mcp_dict_result, _mcp_typed_reply),
        "error": (_mcp_dict_error, _mcp_typed_failure),
    }
    plain, typed = makers[message.kind]
    return [encoder("mcp", "dict", plain, _same), typed(message)]


def _mcp_dict_request(value: Value) -> bytes:
    return _mcp_write(
        JSONRPCRequest(
            jsonrpc="2.0", id=value["id"], method=value["method"], params=value["params"]
        )
    )


def _mcp_dict_notification(value: Value) -> bytes:
    return _mcp_write(
        JSONRPCNotification(jsonrpc="2.0", method=value["method"], params=value["params"])
    )


def _mcp_dict_result(value: Value) -> bytes:
    return _mcp_write(JSONRPCResponse(jsonrpc="2.0", id=value["id"], result=value["result"]))


def _mcp_dict_error(value: Value) -> bytes:
    error = value["error"]
    held = ErrorData(code=error["code"], message=error["message"], data=error["data"])
    return _mcp_write(JSONRPCError(jsonrpc="2.0", id=value["id"], error=held))


def _mcp_typed_send(message: Message) -> Adapter:
    # mcp/client/session.py ClientSession.send_request, then
    # mcp/shared/jsonrpc_dispatcher.py JSONRPCDispatcher.send_raw_request.
    model = methods.MONOLITH_REQUESTS[message.method]
    modern = message.version == PER_REQUEST_VERSION

    def feed(value: Value) -> tuple[int, BaseModel, Value]:
        params = dict(value["params"])
        stamp = params.pop("_meta") if modern else {}
        body = {"method": message.method, "params": params}
        return value["id"], model.model_validate(body, by_name=False), stamp

    def run(given: tuple[int, BaseModel, Value]) -> bytes:
        identifier, request, stamp = given
        body = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        if stamp:
            # The part of _make_modern_stamp that touches the message.
            body["params"].setdefault("_meta", {}).update(stamp)
        params = dict(body["params"])
        meta = dict(params.get("_meta") or {})
        if meta:
            params["_meta"] = meta
        return _mcp_write(
            JSONRPCRequest(jsonrpc="2.0", id=identifier, method=body["method"], params=params)
        )

    return encoder("mcp", "typed", run, feed)


def _mcp_typed_notify(message: Message) -> Adapter:
    # mcp/server/session.py ServerSession._notify, then JSONRPCDispatcher.notify.
    model = methods.MONOLITH_NOTIFICATIONS[message.method]

    def feed(value: Value) -> BaseModel:
        body = {"method": message.method, "params": value["params"]}
        return model.model_validate(body, by_name=False)

    def run(notification: BaseModel) -> bytes:
        body = notification.model_dump(by_alias=True, mode="json", exclude_none=True)
        return _mcp_write(
            JSONRPCNotification(jsonrpc="2.0", method=body["method"], params=dict(body["params"]))
        )

    return encoder("mcp", "typed", run, feed)


def _mcp_typed_reply(message: Message) -> Adapter:
    # mcp/server/runner.py ServerRunner._on_request: _serialize dumps the model, validates the
    # dump against the revision's surface and dumps that; then JSONRPCDispatcher._write_result.
    method, version = message.method, message.version
    model: Any = {"tools/call": types.CallToolResult, "tools/list": types.ListToolsResult}[method]

    def feed(value: Value) -> tuple[int, BaseModel]:
        return value["id"], model.model_validate(value["result"], by_name=False)

    def run(given: tuple[int, BaseModel]) -> bytes:
        identifier, result = given
        shaped = _dump_result(_runner._serialize(method, version, result))
        return _mcp_write(JSONRPCResponse(jsonrpc="2.0", id=identifier, result=shaped))

    return encoder("mcp", "typed", run, feed)


def _mcp_typed_failure(_: Message) -> Adapter:
    # JSONRPCDispatcher._write_error.
    def feed(value: Value) -> tuple[int, ErrorData]:
        return value["id"], ErrorData(**value["error"])

    def run(given: tuple[int, ErrorData]) -> bytes:
        identifier, error = given
        return _mcp_write(JSONRPCError(jsonrpc="2.0", id=identifier, error=error))

    return encoder("mcp", "typed", run, feed)


# --- msgspec by itself: one Struct that fits the message and nothing around it. It is the floor,
# since it has no other shapes to fall back on and cannot name what is wrong.


class _Error(Struct):
    code: int
    message: str
    data: Any = UNSET


def _member(message: Message) -> str:
    return {"request": "params", "notification": "params"}.get(message.kind, message.kind)


def _shape(message: Message) -> type[Struct]:
    if message.kind == "error":
        return _Error
    if message.kind == "result":
        return RESULTS[message.method]
    return PARAMS[message.version][message.method]


def _bare(message: Message, held: Any, *, method: Any) -> type[Struct]:
    members: list[Any] = [("jsonrpc", Literal["2.0"])]
    if message.kind != "notification":
        members.append(("id", int | str))
    if _member(message) == "params":
        members.append(("method", method))
        absent = ("result", "error")
    else:
        absent = ("method", "error" if message.kind == "result" else "result")
    members.append((_member(message), held))
    # A required member that must be absent: any value but this word is refused by the decoder.
    never = Literal["absent"] | UnsetType
    return msgspec.defstruct("Bare", [*members, *((name, never, UNSET) for name in absent)])


def _bare_decoders(message: Message) -> list[Adapter]:
    raw = _Error if message.kind == "error" else Raw
    envelope = _bare(message, raw, method=str)
    typed = _bare(message, _shape(message), method=Literal[message.method])
    return [
        decoder("msgspec", "envelope", msgspec.json.Decoder(envelope).decode, _bare_view),
        decoder("msgspec", "typed", msgspec.json.Decoder(typed).decode, _bare_view),
    ]


def _bare_encoders(message: Message) -> list[Adapter]:
    encode = msgspec.json.Encoder().encode
    member, shape = _member(message), _shape(message)
    names = [name for name in ("id", "method", member) if name in message.values[0]]
    out = msgspec.defstruct("Out", [(name, Any) for name in names], tag_field="jsonrpc", tag="2.0")

    def feed(value: Value) -> Struct:
        return out(*(value[name] for name in names))

    def parts(value: Value) -> tuple[Any, ...]:
        held = msgspec.convert(value[member], shape)
        return tuple(held if name == member else value[name] for name in names)

    return [
        encoder("msgspec", "envelope", encode, feed),
        encoder("msgspec", "typed", lambda given: encode(out(*given)), parts),
    ]


def _bare_view(message: Struct) -> Any:
    plain = {name: getattr(message, name) for name in message.__struct_fields__}
    return {name: plain_value(value) for name, value in plain.items() if value is not UNSET}


def plain_value(value: Any) -> Any:
    """A raw, typed or plain member as a plain JSON value."""
    if isinstance(value, Raw):
        return json.loads(bytes(value))
    return msgspec.to_builtins(value)
