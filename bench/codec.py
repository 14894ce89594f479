"""The codec against mcp's own path, orjson and the standard library.

Run as `python -m bench.codec`. Every rival's answers are compared with the expected ones before
anything is timed. What equal work means is said in `bench.rivals`.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bench import harness, rivals
from bench.harness import Bench, Case
from bench.messages import MESSAGES, REFUSED, Kind, Message
from bench.rivals import Adapter, decoder, encoder, plain_value
from bench.section import Section
from bench.shapes import PARAMS, RESULTS
from trunkline import jsonrpc
from trunkline.jsonrpc import (
    Batch,
    Codec,
    ErrorObject,
    Failure,
    Notification,
    Reply,
    Request,
    Success,
)
from trunkline.jsonrpc.codec.codec import LARGE_BYTES

OURS: Final = "trunkline"
DISTRIBUTIONS: Final = (
    "trunkline",
    "msgspec",
    "mcp",
    "mcp-types",
    "pydantic",
    "pydantic_core",
    "orjson",
)


# --- our side


def our_decoders(message: Message) -> list[Adapter]:
    """Our ways from the bytes of this message."""
    is_reply = message.kind in ("result", "error")
    codec = Codec(expect="replies" if is_reply else "calls")
    adapters = [
        decoder(OURS, "envelope", codec.envelope, view),
        decoder(OURS, "dict", codec.decode, view),
        decoder(f"{OURS} default", "dict", jsonrpc.decode, view),
    ]
    if message.kind == "batch":
        return adapters
    return [*adapters, decoder(OURS, "typed", _typed_reader(message, codec), view)]


def _typed_reader(message: Message, codec: Codec) -> Callable[[bytes], Any]:
    if message.kind == "error":
        return codec.envelope
    if message.kind != "result":
        return Codec(expect="calls", params=PARAMS[message.version]).envelope
    envelope: Callable[[bytes], Any] = codec.envelope
    to_result = msgspec.json.Decoder(RESULTS[message.method]).decode
    if len(message.wire[0]) >= LARGE_BYTES:
        return _large_reader(codec, to_result)

    def read(data: bytes) -> tuple[Any, Any]:
        reply = envelope(data)
        return reply, to_result(reply.result)

    return read


def _large_reader(codec: Codec, to_result: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    """As a `Peer` decodes a large reply whose request says how."""

    def read(data: bytes) -> tuple[Any, Any]:
        found = codec.large_result(data)
        if found is None or not codec.is_sound(data):
            raise ValueError("not a reply that is decoded in one pass")
        result = to_result(memoryview(data)[found.start : found.end])
        return Reply(id=found.id, result=result), result

    return read


def our_encoders(message: Message) -> list[Adapter]:
    """Our ways to the bytes of this message."""
    encode, build = Codec().encode, BUILDERS[message.kind]
    adapters = [
        encoder(OURS, "envelope", encode, build),
        encoder(OURS, "dict", lambda value: encode(build(value)), _same),
    ]
    if message.kind == "batch":
        return adapters
    return [*adapters, _typed_writer(message, encode)]


def _typed_writer(message: Message, encode: Callable[[Any], bytes]) -> Adapter:
    """From our typed message to bytes, as mcp's typed case starts from its typed request."""
    return encoder(OURS, "typed", encode, lambda value: _typed_message(message, value))


def _typed_message(message: Message, value: Any) -> Any:
    if message.kind == "error":
        return Failure(value["id"], ErrorObject(**value["error"]))
    if message.kind == "result":
        return Success(value["id"], msgspec.convert(value["result"], RESULTS[message.method]))
    shape = PARAMS[message.version][message.method]
    params = msgspec.convert(value["params"], shape)
    if message.kind == "notification":
        return Notification(message.method, params)
    return Request(message.method, params, id=value["id"])


def _request(value: Any) -> Request:
    return Request(value["method"], value["params"], id=value["id"])


def _notification(value: Any) -> Notification:
    return Notification(value["method"], value["params"])


def _success(value: Any) -> Success:
    return Success(value["id"], value["result"])


def _failure(value: Any) -> Failure:
    error = value["error"]
    return Failure(value["id"], ErrorObject(error["code"], error["message"], error["data"]))


def _batch(values: Any) -> Batch:
    return Batch([_request(value) for value in values])


BUILDERS: Final[dict[Kind, Callable[[Any], Any]]] = {
    "request": _request,
    "notification": _notification,
    "result": _success,
    "error": _failure,
    "batch": _batch,
}
"""Our message object for a message value, by the kind of message."""


def view(read: Any) -> Any:
    """The message value of what one of our decoders returned."""
    if type(read) is tuple:
        reply, result = read
        return view(reply) | {"result": plain_value(result)}
    if isinstance(read, Batch | list):
        return [view(item) for item in read]
    members = {name: getattr(read, name, None) for name in _MEMBERS}
    held = {name: plain_value(value) for name, value in members.items() if _is_set(value)}
    return {"jsonrpc": "2.0", **held}


_MEMBERS: Final = ("id", "method", "params", "result", "error")


def _is_set(value: Any) -> bool:
    return value is not None and value is not msgspec.UNSET


def _same(value: Any) -> Any:
    return value


# --- answers first


def check_answers(message: Message, adapters: Sequence[Adapter]) -> None:
    """Run each adapter once on every variant and compare with the expected value.

    Raises:
        SystemExit: an adapter gives a wrong answer; nothing has been timed.
    """
    for adapter in adapters:
        for value in message.values:
            got = adapter.view(adapter.run(adapter.feed(value)))
            if got != value:
                sys.exit(f"{message.name}, {adapter.name}: {got!r:.300} instead of {value!r:.300}")


def print_refusals() -> None:
    """Print which bad inputs each decoder accepts.

    Raises:
        SystemExit: a decoder compared as equal work accepts one; nothing has been timed.
    """
    mcp = next(item for item in rivals.decoders(MESSAGES[0]) if item.name == "dict mcp")
    readers = {
        OURS: jsonrpc.decode,
        "orjson": rivals.read_orjson,
        "json": rivals.read_json,
        "mcp": mcp.run,
    }
    print(f"\nbad inputs accepted, of {len(REFUSED)}:")
    for name, read in readers.items():
        accepted = [why for why, data in REFUSED.items() if not _refuses(read, data)]
        print(f"  {name}: {len(accepted)} {', '.join(accepted)}")
        if accepted and name != "mcp":
            sys.exit(f"{name} does less work than the others, so its times mean nothing")


def _refuses(read: Callable[[bytes], Any], data: bytes) -> bool:
    try:
        read(data)
    except Exception:  # noqa: BLE001  # a rival may raise whatever it likes
        return True
    return False


# --- cases and sizes


def register(bench: Bench, message: Message) -> None:
    """Check and add every case of this message, in both directions."""
    sides = {
        "decode": [*our_decoders(message), *rivals.decoders(message)],
        "encode": [*our_encoders(message), *rivals.encoders(message)],
    }
    for direction, adapters in sides.items():
        check_answers(message, adapters)
        for adapter in sorted(adapters, key=lambda item: _ORDER[item.depth]):
            items = tuple(adapter.feed(value) for value in message.values)
            bench.add(Case(f"{direction} {message.name}", adapter.name, adapter.run, items))


_ORDER: Final = {"envelope": 0, "dict": 1, "typed": 2}


def rivals_of(name: str) -> list[str]:
    """Return the cases that one is compared with: those of others at the same depth."""
    depth, library = name.split(maxsplit=1)
    if library not in (OURS, f"{OURS} default"):
        return [f"{depth} mcp"]
    return [f"{depth} {rival}" for rival in ("mcp", "orjson", "json")]


def print_sizes(section: Section, messages: Sequence[Message], kept: int = 500) -> None:
    """Print the bytes of a decoded message: the outer object, and all it keeps alive.

    The second is what the allocator hands out per message while many are kept, each decoded from
    its own copy of the input. Where a result points into that copy, the copy counts.
    """
    print(f"\n{'bytes per decoded message':<36}{'object':>10}{'all':>10}{'wire':>10}")
    for message in messages:
        if len(message.wire[0]) > 10_000 or message.kind == "batch":
            continue
        for adapter in (*our_decoders(message), *rivals.decoders(message)):
            if adapter.depth == "typed":
                outer, deep = _sizes(adapter.run, message.wire, kept)
                label = f"{message.name}, {adapter.rival}"
                print(f"  {label:<34}{outer:>10}{deep:>10}{len(message.wire[0]):>10}")
                section.value("memory of a decoded message", label, deep, "bytes")


def _sizes(run: Callable[[bytes], Any], wire: Sequence[bytes], kept: int) -> tuple[int, int]:
    run(wire[0])
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    held = [run(bytes(bytearray(wire[number % len(wire)]))) for number in range(kept)]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    first = held[0][0] if isinstance(held[0], tuple) else held[0]
    return sys.getsizeof(first), (after - before - sys.getsizeof(held)) // kept


def main() -> int:
    """Run the benchmark; the exit code says whether it holds."""
    about = "Messages decoded and encoded, against the path of mcp, orjson and json."
    section = Section("codec", about, DISTRIBUTIONS, has_only=True)
    print_refusals()
    chosen = [message for message in MESSAGES if section.options.only in message.name]
    if not chosen:
        sys.exit(f"no message has {section.options.only!r} in its name")
    bench = section.bench(harness.FULL, harness.QUICK)
    for message in chosen:
        register(bench, message)
    for direction in ("decode", "encode"):
        bench.control(f"{direction} {chosen[0].name}", f"envelope {OURS}")
    bench.run(harness.show_progress)
    for group in bench.groups():
        bench.compare(group, rivals_of)
        harness.print_group(bench, group)
    print_sizes(section, chosen)
    harness.print_overhead(bench)
    harness.print_controls(bench)
    return section.conclude()


if __name__ == "__main__":
    sys.exit(main())
