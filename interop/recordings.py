"""What a recording shows: how the server ended, and what the judge says of each side.

What a check does wrong on purpose is a row of `PROVOKED`; everything else that the judge finds
wrong with our side is ours to mend.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

from trunkline.cli.proxy.observer import ProxyObserver
from trunkline.cli.recording import Recording
from trunkline.judge import Conversation, Finding, TraceEntry, read_trace

from .checks import Unexpected, until

__all__ = [
    "PROVOKED",
    "Judged",
    "all_ended",
    "all_the_same",
    "behind",
    "by_session",
    "connections",
    "disagreements",
    "first_method",
    "judged",
    "missing_sides",
    "processes",
    "sent",
    "summed_up",
]

# The rule, what was found, and why it was sent.
PROVOKED: Final = (
    ("mcp.method.vendor", "'interop/no_such_method'", "a check asks for what is not there"),
)
SESSION: Final = "mcp-session-id"


class Judged(NamedTuple):
    """What the judge found, by who sent it."""

    ours: list[Finding]
    theirs: list[Finding]

    def errors(self) -> list[Finding]:
        """Return what we did wrong, and not on purpose."""
        provoked = {(rule, got) for rule, got, _ in PROVOKED}
        return [
            found
            for found in self.ours
            if found.level == "error" and (found.rule, found.got) not in provoked
        ]


def connections(path: Path) -> list[Path]:
    """Return the recordings of all connections of an exchange, the first one first."""
    found = [path] if path.exists() else []
    while (following := Path(f"{path}.{len(found) + 1}")).exists():
        found.append(following)
    return found


def behind(path: Path) -> Path:
    """Return the recording made behind a proxy, of the connection that was recorded before it."""
    return Path(f"{path}.behind")


def by_session(path: Path) -> Path:
    """Split recordings of HTTP by session: a client that connects for each call has many at once.

    A stream whose request and response name no session is kept in one recording with its like.
    """
    split = path.with_suffix(".sessions.jsonl")
    count = 0
    for each in connections(path):
        head, *lines = each.read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines]
        sessions = {
            entry.get("stream"): entry["http"]["headers"][SESSION]
            for entry in entries
            if SESSION in entry.get("http", {}).get("headers", {})
        }
        found: dict[str, list[str]] = {}
        for entry, line in zip(entries, lines, strict=True):
            found.setdefault(sessions.get(entry.get("stream"), ""), [head]).append(line)
        for kept in found.values():
            count += 1
            name = f"{split}.{count}" if count > 1 else str(split)
            Path(name).write_text("\n".join([*kept, ""]), encoding="utf-8")
    return split


def first_method(path: Path) -> str:
    """Return the method of the first message of a recording."""
    with path.open(encoding="utf-8") as lines:
        for entry in read_trace(lines):
            if isinstance(entry, TraceEntry) and isinstance(entry.raw, str):
                return str(json.loads(entry.raw).get("method"))
    return ""


def sent(path: Path, sender: str, method: str | None = None) -> list[dict[str, Any]]:
    """Return the requests and notifications of a side so far, of one method or of all."""
    found: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as lines:
        for entry in read_trace(lines):
            if isinstance(entry, TraceEntry) and entry.sender == sender and entry.raw:
                message = json.loads(str(entry.raw))
                if "method" in message and method in (None, message["method"]):
                    found.append(message)
    return found


def judged(path: Path, our_side: str) -> Judged:
    """Judge a whole exchange."""
    result = Judged([], [])
    for each in connections(path):
        _judge(each, our_side, result)
    return result


def _judge(path: Path, our_side: str, result: Judged) -> None:
    """Judge each connection of a recording by itself; most recordings have one."""
    talks: dict[object, tuple[Conversation, list[str | None]]] = {}
    found: list[tuple[Finding, list[str | None]]] = []
    with path.open(encoding="utf-8") as lines:
        for entry in read_trace(lines):
            key, sender = (
                (entry.connection, entry.sender) if isinstance(entry, TraceEntry) else (None, None)
            )
            talk, senders = talks.setdefault(key, (Conversation(), []))
            senders.append(sender)
            found += [(each, senders) for each in talk.feed(entry)]
    for talk, senders in talks.values():
        found += [(each, senders) for each in talk.end()]
    for finding, senders in found:
        index = finding.message_index
        by = senders[index] if index is not None and index < len(senders) else our_side
        (result.ours if by == our_side else result.theirs).append(finding)


def disagreements(path: Path) -> list[str]:
    """Return what `proxy --judge` and `validate` of its recording find differently.

    The frames of each connection are judged and recorded as a proxy does, and the recording is
    judged in turn; so is the one that a proxy on the way has made, if there was one.
    """
    differing: list[str] = []
    for each in connections(path):
        live, lines = _observed(each)
        proxied = Path(f"{each}.proxy")
        recordings = [lines, *([proxied.read_bytes().splitlines()] if proxied.exists() else [])]
        for recording in recordings:
            recorded = _facts_of(recording)
            differing += [f"only live: {fact}" for fact in (live - recorded)]
            differing += [f"only recorded: {fact}" for fact in (recorded - live)]
    return differing


def _observed(path: Path) -> tuple[Counter[tuple[str, ...]], list[bytes]]:
    lines: list[bytes] = []
    live: Counter[tuple[str, ...]] = Counter()
    run = ProxyObserver(lambda text: None, record=Recording(lines.append), judges=True)
    observer = run.connection(None, "stdio", "stdio")
    observer._report = lambda finding, about: live.update([_fact(finding)])  # type: ignore[method-assign]  # kept, not printed
    with path.open(encoding="utf-8") as entries:
        for entry in read_trace(entries):
            if isinstance(entry, TraceEntry) and entry.sender and entry.raw:
                observer.receive(entry.sender, str(entry.raw).encode())
    observer.end()
    run.jobs.wait()
    return live, lines


def _facts_of(lines: list[bytes]) -> Counter[tuple[str, ...]]:
    talk = Conversation()
    found = [finding for entry in read_trace(lines) for finding in talk.feed(entry)]
    return Counter(_fact(finding) for finding in [*found, *talk.end()])


def _fact(finding: Finding) -> tuple[str, ...]:
    return (finding.rule, finding.level, finding.where, finding.got, finding.source)


def missing_sides(path: Path) -> list[str]:
    """Return what a recording lacks, so that one without messages is not taken for a good one."""
    lines = {side: len(_lines(path, side)) for side in ("client", "server")}
    return [f"no message of the {side} was recorded" for side, count in lines.items() if not count]


def summed_up(found: list[Finding]) -> list[str]:
    """Return findings in short: each rule once, with how often it was broken and one example."""
    counts = Counter((each.level, each.rule) for each in found)
    first = {(each.level, each.rule): each for each in reversed(found)}
    return [
        f"{level} {rule} {count}x: {' '.join(str(first[level, rule]).split())}"
        for (level, rule), count in sorted(counts.items())
    ]


def processes(path: Path) -> dict[str, Any]:
    """Return what is known of the processes of an exchange."""
    end = Path(f"{path}.end")
    return json.loads(end.read_text(encoding="utf-8")) if end.exists() else {"pids": []}


async def all_ended(path: Path) -> None:
    """See that each server has exited, of its own accord and content.

    Raises:
        Unexpected: one has not.
    """
    for each in connections(path):
        await _ended(each)


async def _ended(path: Path) -> None:
    await until(lambda: "status" in processes(path), "end of the server")
    end = processes(path)
    if end["status"] != 0 or end["signals"]:
        how = f"exited with {end['status']}, after the signals {end['signals']}"
        raise Unexpected(f"the server {how}")
    await until(lambda: not any(map(_is_alive, end["pids"])), "end of its processes")


async def all_the_same(path: Path) -> None:
    """See that the lines behind a proxy are those before it, and that it has heard each.

    Raises:
        Unexpected: they are not, or a server behind it has not ended.
    """
    for each in connections(path):
        await _ended(behind(each))
        heard = _senders(Path(f"{each}.proxy"))
        for side in ("client", "server"):
            before, after = _lines(each, side), _lines(behind(each), side)
            if before != after or not before:
                raise Unexpected(f"{len(before)} lines of the {side} became {len(after)} others")
            if heard[side] != len(before):
                raise Unexpected(f"{len(before)} lines of the {side}, {heard[side]} recorded")


def _lines(path: Path, side: str) -> list[str]:
    with path.open(encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    return [entry["raw"] for entry in entries if entry.get("from") == side and "raw" in entry]


def _senders(path: Path) -> Counter[str]:
    with path.open(encoding="utf-8") as lines:
        return Counter(json.loads(line).get("from", "") for line in lines)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
