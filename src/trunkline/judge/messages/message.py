"""Check one message, or a batch of them, against a revision of MCP.

    for finding in judge(b'{"jsonrpc":"2.0","id":1,"method":"tools/cal"}'):
        print(finding)

The message is checked by itself; `conversation.py` checks what depends on earlier messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...jsonrpc.messages import Request
from ...jsonrpc.policy import Policy
from ...spec.mcp.rules import RULES
from ...spec.revisions import LATEST
from ...spec.rows import Role
from ...spec.types import types
from ..finding import Finding
from ..types.collector import Path, Sink
from ..types.hints import near
from .calls import judge_call
from .context import MessageContext, answered_request
from .envelope import Members, reader_for_policy, reader_for_revision
from .replies import judge_reply

__all__ = ["judge"]

_ENVELOPE: Final = ("jsonrpc", "id", "method", "params", "result", "error")
_EXTENDED: Final = (*_ENVELOPE, "auth", "headers", "metadata")


def judge(
    message: Any,
    revision: str = LATEST,
    sender: Role | None = None,
    request: str | Request | Mapping[str, Any] | None = None,
    policy: Policy | None = None,
) -> list[Finding]:
    """Return the findings about a message in order; an empty list if it has no faults.

    `message` is text, bytes, a message object, or parsed JSON. `request` is the request that
    a reply answers: its method name, or the request itself. A `policy` replaces the official
    rules about the envelope; its `codes` name the profile of error codes.

    Raises:
        UnknownRevision: no such revision was released; the text lists the released ones.
        TypeError: `request` is neither a method name nor a request.
        ValueError: `sender` is neither client nor server.
    """
    types(revision)
    if sender not in ("client", "server", None):
        raise ValueError(f"a sender is 'client' or 'server', not {sender!r}")
    reader = reader_for_revision(revision) if policy is None else reader_for_policy(policy)
    context = MessageContext(revision, sender, reader.policy, answered_request(request))
    sink = Sink(revision)
    messages = reader.messages(message, sink)
    if messages and messages[0][0] and RULES["mcp.batch.unstated"].when.holds(revision):
        sink.report("mcp.batch.unstated", None)
    for path, members in messages:
        _judge_one(members, path, context, sink)
        if sink.is_full():
            break
    return sink.findings()


def _judge_one(members: Members, path: Path, context: MessageContext, sink: Sink) -> None:
    known = _ENVELOPE if context.policy.envelope == "plain" else _EXTENDED
    for name, value in members.items():
        if name not in known:
            expected = f"no member but those of JSON-RPC{near(name, known)}"
            sink.report("mcp.envelope.unknown-member", (path, name), value, expected)
            if sink.is_full():
                break
    if "method" in members:
        judge_call(members, path, context, sink)
    elif "result" in members or "error" in members:
        judge_reply(members, path, context, sink)
