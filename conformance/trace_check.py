"""What the judge finds in the recording of a run, and which findings have an explanation.

The suites send wrong messages on purpose, to see them refused. Each of those findings needs a row
in `explained.toml`, with the rule, the place in the message, the scenarios and the reason; a row
that never applies is an error. Our side has no errors and no warnings; a remark (level "info")
needs a row as well.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from trunkline.judge import Conversation, Finding, TraceEntry, TraceFault, read_trace
from trunkline.judge.trace.reader import StreamId
from trunkline.spec.rows import Role

from .recorder import scenario_of

__all__ = ["Judged", "Observed", "Row", "judge_recording", "load", "stale", "totals"]

FILE: Final = Path(__file__).resolve().parent / "explained.toml"

Side = Literal["suite", "server"]
_SIDES: Final[tuple[Side, ...]] = ("suite", "server")
_MEMBERS: Final = {"rule", "where", "scenarios", "why"}
# In place of scenarios: in each of them.
EVERY: Final = "*"


class Row(NamedTuple):
    """Why a side breaks a rule in a scenario."""

    side: Side
    rule: str
    # A JSON pointer into the message; empty for what is about its headers.
    where: str
    scenario: str
    why: str


class Observed(NamedTuple):
    """A finding, and where it was made."""

    side: Side
    scenario: str
    finding: Finding

    def __str__(self) -> str:
        text = " ".join(str(self.finding).split())
        return f"{self.side} in {self.scenario}: {text}"


class Judged(NamedTuple):
    """What the judge says of one recording."""

    messages: int
    conversations: int
    explained: list[tuple[Observed, Row]]
    unexplained: list[Observed]

    def lines(self) -> list[str]:
        """Return each unexplained finding once, with how often it was made."""
        counts = Counter(map(_key, self.unexplained))
        first = {_key(each): each for each in reversed(self.unexplained)}
        return [f"{count}x {first[key]}" for key, count in counts.items()]


def _key(each: Observed) -> tuple[str, ...]:
    return (each.side, each.scenario, each.finding.rule, each.finding.where)


def load(text: str | None = None) -> list[Row]:
    """Return the rows of `explained.toml`; `text` in place of the file is for tests.

    Raises:
        ValueError: a row lacks a member or has another, or is there twice.
    """
    read = tomllib.loads(FILE.read_text(encoding="utf-8") if text is None else text)
    rows: list[Row] = []
    for side in _SIDES:
        for each in read.pop(side, []):
            if {"where", *each} != _MEMBERS or not all(each.values()):
                raise ValueError(f"explained.toml: a row needs {sorted(_MEMBERS)}: {each}")
            rows += (
                Row(side, each["rule"], each.get("where", ""), name, each["why"])
                for name in each["scenarios"]
            )
    if read:
        raise ValueError(f"explained.toml: no side is called {', '.join(map(repr, read))}")
    for key, count in Counter(row[:4] for row in rows).items():
        if count > 1:
            raise ValueError(
                f"explained.toml: {' '.join(filter(None, key))} is there {count} times"
            )
    return rows


def judge_recording(lines: Iterable[str | bytes], rows: Iterable[Row]) -> Judged:
    """Judge each conversation of a recording by itself."""
    by_key = {row[:4]: row for row in rows}
    talks: dict[StreamId | None, _Talk] = {}
    messages = 0
    for entry in read_trace(lines):
        key = entry.connection if isinstance(entry, TraceEntry) else None
        messages += isinstance(entry, TraceEntry) and bool(entry.raw)
        talks.setdefault(key, _Talk(scenario_of(key))).feed(entry)
    for talk in talks.values():
        talk.end()
    judged = Judged(messages, len(talks), [], [])
    for each in (observed for talk in talks.values() for observed in talk.observed):
        place = (each.side, each.finding.rule, each.finding.where)
        row = by_key.get((*place, each.scenario)) or by_key.get((*place, EVERY))
        if row is None or (each.side == "server" and each.finding.level != "info"):
            judged.unexplained.append(each)
        else:
            judged.explained.append((each, row))
    return judged


class _Talk:
    """One conversation of a recording, and what was found in it."""

    def __init__(self, scenario: str) -> None:
        self._scenario = scenario
        self._judge = Conversation()
        self._senders: list[Role | None] = []
        self.observed: list[Observed] = []

    def feed(self, entry: TraceEntry | TraceFault) -> None:
        """Judge the next entry. A line that is not an entry is a fault of the recording: ours."""
        sender = entry.sender if isinstance(entry, TraceEntry) else None
        self._senders.append(sender)
        self._note(_side(sender), self._judge.feed(entry))

    def end(self) -> None:
        """Judge the requests without a reply, which the other side owes."""
        for found in self._judge.end():
            index = found.message_index
            asked_by = None if index is None else self._senders[index]
            self._note("suite" if asked_by == "server" else "server", [found])

    def _note(self, side: Side, found: Iterable[Finding]) -> None:
        self.observed += (Observed(side, self._scenario, each) for each in found)


def _side(sender: str | None) -> Side:
    return "suite" if sender == "client" else "server"


def stale(rows: Iterable[Row], judged: Sequence[Judged]) -> list[Row]:
    """Return the rows that explain nothing in the recordings."""
    used = {row for each in judged for _, row in each.explained}
    return [row for row in rows if row not in used]


def totals(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the numbers of several recordings for the summary."""
    explained = [pair for each in judged for pair in each.explained]
    unexplained = [each for one in judged for each in one.unexplained]
    return {
        "messages": sum(each.messages for each in judged),
        "conversations": sum(each.conversations for each in judged),
        # Findings by side; remarks about our side are listed by themselves.
        "server": sum(each.side == "server" for each in unexplained),
        "server_remarks": sum(each.side == "server" for each, _ in explained),
        "suite": sum(each.side == "suite" for each, _ in explained),
        "suite_unexplained": sum(each.side == "suite" for each in unexplained),
        "rows": len({row for _, row in explained}),
    }
