"""No canary of a frame is in its recording, and `proxy --judge` finds what `validate` finds in it.

Run `python -m tests.fuzz.fuzz_recording -max_total_time=20`; it needs atheris. Without it, `check`
can be called on any input. The input chooses messages with secrets in every shape, and the damage
that is done to their texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from tests.fuzz.engine import fuzz
from trunkline.cli.proxy.observer import ConnectionObserver, ProxyObserver
from trunkline.cli.recording import Recording
from trunkline.judge import Conversation, Finding, TraceEntry, read_trace

CANARY: Final = "CANARY-3f81"
NAMES: Final = (
    *("token", "auth", "pass", "jwt", "bearer", "codeVerifier", "password", "cookies", "api.key"),
    *("X-Api-Key", "private_key_pem", "accessKeyId", "client_secret", "sessionId", "to-ken"),
)
# Values that hold the canary, and are hidden below a secret name.
SHAPES: Final[tuple[Callable[[], Any], ...]] = (
    lambda: CANARY,
    lambda: {"value": CANARY, "n": [1, None, {"x": CANARY}]},
    lambda: [CANARY, [CANARY], 5],
    lambda: {CANARY[:0] + "deep": {"deeper": {"deepest": [True, CANARY]}}},
    lambda: f"two words of {CANARY}",
)
# What is done to the text of a frame. The first few leave it readable to a tolerant reader.
DAMAGE: Final = (
    b"plain",
    b"\\ud83d",
    b"\xe9t\xe9",
    b'x","n":1e400,"z":"',
    b'x","n":' + b"9" * 5000 + b',"z":"',
    b'x","n":NaN,"z":"',
    b"a\tb\0c",
    b'a"b',
    b'x","n":[[[,"z":"',
    b"\\x41",
    b'x"}}',
    b"\\",
    b'x","note":"y',
)
METHODS: Final = (
    *("tools/call", "tools/list", "initialize", "resources/read", "prompts/get", "stars/list"),
    *("notifications/message", "notifications/progress", "tools/cal", "ping", "server/discover"),
)
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SCHEMA: Final = {"type": "object", "properties": {"token": {"type": "integer"}}, "required": ["a"]}


class Choices:
    """Takes one choice after another from bytes; the first option once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)
        self.is_over = False

    def of(self, options: Any) -> Any:
        number = next(self._data, None)
        if number is None:
            self.is_over = True
            number = 0
        return options[number % len(options)]


def secret(choose: Choices) -> dict[str, Any]:
    """Return members that hold the canary."""
    name, value = choose.of(NAMES), choose.of(SHAPES)()
    kind = choose.of(range(6))
    if kind == 0:
        return {"h": {"name": name, "value": value}}
    if kind == 1:
        return {"pair": [name, value]}
    if kind == 2:
        return {"args": ["tool", f"--{name}", CANARY, "-v"]}
    if kind == 3:
        return {"text": f"Authorization: Basic {CANARY}", "list": [{name: value}]}
    return {name: value}


def message(choose: Choices) -> Any:
    """Return a message, or a batch, with secrets in it."""
    id = choose.of((1, 2, "a", None, 1.5))
    held = {**secret(choose), "note": "NOTE"}
    kind = choose.of(range(8))
    meta = {"io.modelcontextprotocol/protocolVersion": choose.of(REVISIONS), **secret(choose)}
    params = {
        "name": "login",
        "arguments": held,
        "protocolVersion": choose.of(REVISIONS),
        "requestState": choose.of(("s", f"eyJhbGciOiJ.{CANARY}", "t")),
        "inputResponses": {choose.of(NAMES): {"action": "accept", "content": held}},
    }
    if kind == 0:
        params["_meta"] = meta
    if kind <= 3:
        return {"jsonrpc": "2.0", "id": id, "method": choose.of(METHODS), "params": params}
    if kind == 4:
        tools = [{"name": "login", "inputSchema": SCHEMA, "outputSchema": SCHEMA, "_meta": held}]
        return {"jsonrpc": "2.0", "id": id, "result": {"tools": tools, **held}}
    if kind == 5:
        result = {"resultType": "input_required", "inputRequests": {"auth": {"method": "x"}}}
        return {"jsonrpc": "2.0", "id": id, "result": {**result, "structuredContent": held}}
    if kind == 6:
        error = {"code": choose.of((-32601, -32602, 5)), "message": "no", "data": held}
        return {"jsonrpc": "2.0", "id": id, "error": error}
    return [{"jsonrpc": "2.0", "id": id, "method": "ping", "params": held}, {"x": held}, 5]


def frame(choose: Choices) -> bytes:
    """Return the text of a message, damaged or not."""
    text = json.dumps(message(choose)).encode()
    kind = choose.of(range(8))
    if kind == 0:
        return text[: choose.of(range(256)) * len(text) // 256]
    if kind == 1:
        return choose.of((b"\xef\xbb\xbf", b"[", b"banner ", b"\x00")) + text
    return text.replace(b"NOTE", choose.of(DAMAGE))


def check(data: bytes) -> None:
    """Record and judge the frames that `data` chooses."""
    choose = Choices(data)
    lines: list[bytes] = []
    live: list[tuple[str, ...]] = []
    said: list[str] = []
    run = ProxyObserver(said.append, record=Recording(lines.append), judges=True)
    talks = {number: _connection(run, number, live) for number in (1, 2)}
    while not choose.is_over:
        number, sender = choose.of((1, 2)), choose.of(("client", "server"))
        talks[number].receive(sender, frame(choose))
    for each in talks.values():
        each.end()
    assert run.jobs.wait(60)
    assert said == []
    recording = b"".join(lines)
    assert CANARY.encode() not in recording, recording
    assert CANARY not in str(live)
    assert sorted(live) == sorted(_validated(lines))


def _connection(run: ProxyObserver, number: int, live: list[tuple[str, ...]]) -> ConnectionObserver:
    observer = run.connection(number, "stdio", "stdio")

    def report(finding: Finding, about: str) -> None:
        live.append(_facts(finding))

    observer._report = report  # type: ignore[method-assign]  # in place of what prints it
    return observer


def _validated(lines: list[bytes]) -> list[tuple[str, ...]]:
    talks: dict[Any, Conversation] = {}
    found: list[Finding] = []
    for entry in read_trace(b"".join(lines).splitlines()):
        assert isinstance(entry, TraceEntry)
        found += talks.setdefault(entry.connection, Conversation()).feed(entry)
    for talk in talks.values():
        found += talk.end()
    return [_facts(each) for each in found]


def _facts(finding: Finding) -> tuple[str, ...]:
    facts = (finding.rule, finding.level, finding.where, finding.got, finding.expected)
    return (*facts, finding.source, str(finding.message_index))


if __name__ == "__main__":
    fuzz(check)
