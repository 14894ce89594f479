"""What the recordings of a run show: the revision, what the host declares, and what it called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trunkline.judge import Finding, TraceEntry, read_trace
from trunkline.spec.mcp.meta import CLIENT_CAPABILITIES, PROGRESS_TOKEN, PROTOCOL_VERSION

from ..recordings import Judged, by_session, judged

__all__ = ["NOT_ASKED", "Facts", "facts_of", "judged_host", "rules_of"]

# By connection, sender and id: the method of a request, and the tool if one is called.
Asked = dict[tuple[object, str, object], tuple[str, str]]
# The host did not say that it can ask its user.
NOT_ASKED: Final = "not declared"
ELICITATION: Final = "elicitation"
# Levels of findings that the table shows, and what it calls them.
LEVELS: Final = {"error": "error", "warn": "warning"}


@dataclass
class Facts:
    """What was recorded of a host."""

    revision: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    # Whether the tools were listed.
    is_listed: bool = False
    # How each tool that was called has ended: "ok", "failed", or the code of an error.
    calls: dict[str, str] = field(default_factory=dict)
    # What the host answered to a question: accept, decline or cancel.
    question: str = ""
    # Whether the host asked for progress, and how many reports there were.
    wants_progress: bool = False
    progress: int = 0

    @property
    def declared(self) -> str:
        """The capabilities as the table shows them."""
        names = (
            f"{name} ({', '.join(sorted(value))})" if value else name
            for name, value in sorted(self.capabilities.items())
        )
        return ", ".join(names) or "nothing"

    @property
    def asked(self) -> str:
        """How the question was answered."""
        return self.question or ("" if ELICITATION in self.capabilities else NOT_ASKED)


def facts_of(recordings: Sequence[Path]) -> Facts:
    """Read the recordings of a run, in their order."""
    facts = Facts()
    for recording in recordings:
        asked: Asked = {}
        for connection, sender, message in _messages(recording):
            if "method" in message:
                if "id" in message:
                    params = message.get("params") or {}
                    about = (message["method"], params.get("name", ""))
                    asked[connection, sender, message["id"]] = about
                _request(facts, sender, message)
            else:
                other = "server" if sender == "client" else "client"
                key = (connection, other, message.get("id"))
                _reply(facts, message, *asked.pop(key, ("", "")))
    return facts


def _messages(recording: Path) -> Iterator[tuple[object, str, dict[str, Any]]]:
    """Yield the connection, the sender and the message of each entry."""
    with recording.open(encoding="utf-8") as lines:
        for entry in read_trace(lines):
            if not isinstance(entry, TraceEntry) or not entry.sender:
                continue
            message: Any = entry.message
            if entry.raw is not None:
                try:
                    message = json.loads(entry.raw)
                except ValueError:
                    continue  # a page of HTTP
            for each in message if isinstance(message, list) else [message]:
                if isinstance(each, dict):
                    yield entry.connection, entry.sender, each


def _request(facts: Facts, sender: str, message: dict[str, Any]) -> None:
    method, params = message["method"], message.get("params") or {}
    meta = params.get("_meta") or {}
    if method == "notifications/progress":
        facts.progress += 1
    if sender != "client":
        return
    facts.revision = meta.get(PROTOCOL_VERSION) or facts.revision
    facts.capabilities = (
        params.get("capabilities", {})
        if method == "initialize"
        else meta.get(CLIENT_CAPABILITIES) or facts.capabilities
    )
    if method == "tools/call":
        facts.wants_progress |= PROGRESS_TOKEN in meta
    for answer in (params.get("inputResponses") or {}).values():
        facts.question = answer.get("action", "") or facts.question


def _reply(facts: Facts, message: dict[str, Any], method: str, tool: str) -> None:
    result = message.get("result") or {}
    if method == "initialize" and "protocolVersion" in result:
        facts.revision = result["protocolVersion"]
    elif method == "tools/list":
        facts.is_listed |= "tools" in result
    elif method == "elicitation/create":
        facts.question = result.get("action", "") or f"error {message['error']['code']}"
    elif method == "tools/call" and result.get("resultType", "complete") == "complete":
        if "error" in message:
            facts.calls[tool] = f"error {message['error']['code']}"
        else:
            facts.calls[tool] = "failed" if result.get("isError") else "ok"


def judged_host(recordings: Sequence[Path], transport: str) -> Judged:
    """Judge the recordings of a run; over HTTP each session by itself."""
    ours: list[Finding] = []
    theirs: list[Finding] = []
    for recording in recordings:
        found = judged(by_session(recording) if transport == "HTTP" else recording, "server")
        ours += found.ours
        theirs += found.theirs
    return Judged(ours, theirs)


def rules_of(found: Sequence[Finding]) -> list[str]:
    """Return the rules that a side has broken, each once; remarks are left out."""
    broken = {(each.level, each.rule) for each in found if each.level in LEVELS}
    return [f"{LEVELS[level]} `{rule}`" for level, rule in sorted(broken)]
