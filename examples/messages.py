"""A conversation through the codec, then a dozen broken messages and their answers.

    python examples/messages.py

Each message is decoded, shown with its kind, and encoded again; each broken one
is shown with the exact bytes we would send back and the rule it broke. Answers
are compared with what is written here, so a wrong one makes the command fail.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Final, NamedTuple

from trunkline.jsonrpc import (
    Batch,
    Failure,
    InvalidMessage,
    Message,
    Notification,
    Policy,
    Request,
    Success,
    decode,
    encode,
)
from trunkline.spec.jsonrpc import RULES


class Said(NamedTuple):
    """One message of the conversation."""

    by: str
    what: str
    text: str


class Broken(NamedTuple):
    """One message that cannot be accepted, and all that may be answered."""

    what: str
    data: bytes
    answer: str | None
    rule: str
    policy: Policy


NEWEST: Final = Policy.mcp().replace(explain=False)
OLDER: Final = Policy.mcp("2025-03-26").replace(explain=False)

# fmt: off
CONVERSATION: Final = (
    Said("client", "opens", '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo","version":"1"}}}'),
    Said("server", "answers", '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}}'),
    Said("client", "is ready", '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    Said("client", "calls a tool", '{"jsonrpc":"2.0","id":"a-7","method":"tools/call","params":{"name":"forecast","arguments":{"city":"Oslo"},"_meta":{"progressToken":"p1"}}}'),
    Said("server", "reports progress", '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p1","progress":1,"total":2}}'),
    Said("server", "asks back", '{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Celsius?","requestedSchema":{"type":"object","properties":{}}}}'),
    Said("client", "answers", '{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{}}}'),
    Said("server", "answers", '{"jsonrpc":"2.0","id":"a-7","result":{"content":[{"type":"text","text":"Snow, -4 °C"}],"isError":false}}'),
    Said("client", "mistypes", '{"jsonrpc":"2.0","id":7,"method":"tools/cal"}'),
    Said("server", "refuses", '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}'),
    Said("client", "sends three at once", '[{"jsonrpc":"2.0","id":8,"method":"ping"},{"jsonrpc":"2.0","id":"8","method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"8"}}]'),
)

BROKEN: Final = (
    Broken("cut off in the middle", b'{"jsonrpc":"2.0","id":1,"meth', '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}', "jsonrpc.text.json", NEWEST),
    Broken("the same, in a revision that wants an id", b'{"jsonrpc":"2.0","id":1,"meth', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}', "jsonrpc.text.json", OLDER),
    Broken("not UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', '{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error"}}', "jsonrpc.text.utf8", NEWEST),
    Broken("no version", b'{"id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.version.required", NEWEST),
    Broken("an old version", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.version.value", NEWEST),
    Broken("true for an id", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.id.type", NEWEST),
    Broken("null for an id", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.id.not-null", NEWEST),
    Broken("a number for a method", b'{"jsonrpc":"2.0","id":2,"method":5}', '{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.method.type", NEWEST),
    Broken("an array for params", b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}', '{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params"}}', "jsonrpc.params.object", NEWEST),
    Broken("the same, in a notification", b'{"jsonrpc":"2.0","method":"ping","params":[1]}', None, "jsonrpc.params.object", NEWEST),
    Broken("a result and an error", b'{"jsonrpc":"2.0","id":4,"result":{},"error":{"code":1,"message":"?"}}', None, "jsonrpc.reply.one-outcome", NEWEST),
    Broken("a call that is also a reply", b'{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}', '{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.message.mixed", NEWEST),
    Broken("an empty batch", b"[]", '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.batch.empty", OLDER),
    Broken("a batch, where there are none", b'[{"jsonrpc":"2.0","id":6,"method":"ping"}]', '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.batch.not-allowed", NEWEST),
    Broken("100 000 brackets", b'{"jsonrpc":"2.0","id":9,"method":"ping","params":' + b"[" * 100_000, '{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"Invalid Request"}}', "jsonrpc.limit.depth", NEWEST),
    Broken("17 MB", b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"' + b"x" * 17_000_000 + b'"}}', '{"jsonrpc":"2.0","id":"big","error":{"code":-32600,"message":"Message too large","data":{"maxSize":16777216,"unit":"bytes"}}}', "jsonrpc.limit.message-size", NEWEST),
)
# fmt: on


def main() -> int:
    """Show everything and return the number of wrong answers as an exit status."""
    print(bold("A conversation, both sides through the codec"))
    for said in CONVERSATION:
        show(said)
    print(bold("\nMessages that cannot be accepted"))
    wrong = sum(not holds(case) for case in BROKEN)
    print(f"\n{len(CONVERSATION)} messages read and written again, {len(BROKEN)} refused, ", end="")
    print(f"{wrong} answers wrong" if wrong else "every answer as it should be")
    return min(wrong, 1)


def show(said: Said) -> None:
    """Print one message, its kind, and what the codec made of it."""
    message = decode(said.text)
    if json.loads(encode(message)) != json.loads(said.text):
        sys.exit(f"encoding changed a message: {said.text}")
    arrow = "→" if said.by == "client" else "←"
    print(f"\n{arrow} {bold(f'{said.by} {said.what}')}  {dim(kind_of(message))}")
    print(indented(encode(message)))


def indented(written: bytes) -> str:
    """Return JSON as people read it: on one line if it fits, else a member a line."""
    value = json.loads(written)
    line = json.dumps(value, ensure_ascii=False)
    text = line if len(line) <= 90 else json.dumps(value, ensure_ascii=False, indent=2)
    return "\n".join(f"    {row}" for row in text.splitlines())


def holds(case: Broken) -> bool:
    """Print one refusal; say whether rule and answer are the expected ones."""
    try:
        print(f"\n✗ {case.what}: accepted as {decode(case.data, case.policy)!r}")
    except InvalidMessage as fault:
        answer = fault.answer()
        got = None if answer is None else answer.decode()
        right = got == case.answer and fault.rule == case.rule
        print(f"\n{'✓' if right else '✗'} {bold(case.what)}  {dim(shortened(case.data))}")
        print(f"    answer  {got if got is not None else 'none: ' + why_silent(case.data)}")
        print(f"    because {fault.rule}: expected {RULES[fault.rule].expected}")
        if not right:
            print(f"    WRONG   expected {case.rule} and {case.answer}")
        return right
    return False


def kind_of(message: Message | Batch) -> str:
    """Return what a message is, in a word or two."""
    match message:
        case Request(id=id):
            return f"request {id!r}"
        case Notification():
            return "notification"
        case Success(id=id):
            return f"reply to {id!r}"
        case Failure(id=id):
            return f"error reply to {id!r}"
        case Batch():
            return f"batch of {len(message)}"


def why_silent(data: bytes) -> str:
    """Return why a faulty message gets no answer."""
    return "a notification is not answered" if b'"method"' in data else "a reply is not answered"


def shortened(data: bytes) -> str:
    """Return a message as one short line."""
    text = data.decode("utf-8", "backslashreplace")
    return text if len(text) <= 90 else f"{text[:60]}… ({len(data):,} bytes)"


def bold(text: str) -> str:
    """Return `text` emphasised, on a terminal that shows it."""
    return f"\033[1m{text}\033[0m" if COLOUR else text


def dim(text: str) -> str:
    """Return `text` in the background, on a terminal that shows it."""
    return f"\033[2m{text}\033[0m" if COLOUR else text


COLOUR: Final = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

if __name__ == "__main__":
    # Piped into a file with another encoding, the marks must not end the demo.
    output: object = sys.stdout
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="replace")
    sys.exit(main())
