"""What a run of the soak test must end with, and the table that it prints.

The rules that live here, and only here:

* Every accepted request is answered exactly once. Requests that were abandoned at the end of input
  on pipes, and requests that their client cancelled, are counted apart. Over HTTP a client abandons
  some: such a request ran once at most, and one that was answered ran once.
* Memory after the last tenth of the run is at most 10 % above that after the first.
* No task, timer, thread, descriptor, session, log of events, account or held byte is left that was
  not there before the load, in the server and in the clients. Idle threads of the handler pool
  stay, and so do the timer that reports suppressed warnings once a minute and the keep-alive timers
  of uvicorn.
* A flood of one client was refused all that it tried to take beyond its share. The other clients
  are refused nothing: each of them notes that as a failure.
* The server exits with 0, and its log has no traceback.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tools.soak.wire import Tally

__all__ = ["Holding", "Report", "misses", "table"]

MAX_GROWTH: Final = 0.10
_POOL: Final = "trunkline-handler"
_NUMBERS: Final = (
    "descriptors",
    "in_flight",
    "connections",
    "sessions",
    "exchanges",
    "event_logs",
    "accounts",
    "held_bytes",
)
# uvicorn does not cancel the keep-alive timer of a connection that was closed.
_STAYING_TIMERS: Final = ("LogLimit._report", "HttpToolsProtocol.timeout_keep_alive_handler")


@dataclass
class Holding:
    """What a process holds at one moment."""

    rss_kib: int = 0
    descriptors: int = 0
    tasks: list[str] = field(default_factory=list)
    timers: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    in_flight: int = 0
    connections: int = 0
    # Over HTTP: sessions, requests and streams of theirs, and logs of events.
    sessions: int = 0
    exchanges: int = 0
    event_logs: int = 0
    # Clients that the server knows, and bytes that it holds for them.
    accounts: int = 0
    held_bytes: int = 0

    def more_than(self, before: Holding) -> list[str]:
        """Return what is here and was not there before."""
        found = []
        for name in _NUMBERS:
            more = getattr(self, name) - getattr(before, name)
            if more > 0:
                found.append(f"{more} {name}")
        for name in ("tasks", "timers", "threads"):
            more_names = Counter(_counted(getattr(self, name)))
            more_names.subtract(Counter(_counted(getattr(before, name))))
            found += [
                f"{count} {name[:-1]} {what}" for what, count in more_names.items() if count > 0
            ]
        return found


def _counted(names: Iterable[str]) -> list[str]:
    return [each for each in names if each not in _STAYING_TIMERS and not each.startswith(_POOL)]


@dataclass
class Report:
    """What was found at one target."""

    kind: str
    tally: Tally
    server_before: Holding
    server_first: Holding
    server_last: Holding
    client_before: Holding
    client_first: Holding
    client_last: Holding
    client_after: Holding
    exit_status: int = 0
    log: str = ""


def misses(report: Report) -> list[str]:
    """Return what is not as it must be."""
    tally, found = report.tally, list(report.tally.failures)
    if tally.twice:
        found.append(f"{tally.twice} requests were answered twice")
    if tally.unanswered:
        found.append(f"{tally.unanswered} requests were not answered")
    if tally.ran_too_often:
        found.append(f"{tally.ran_too_often} requests ran more than once")
    if tally.did_not_run:
        found.append(f"{tally.did_not_run} requests were answered and did not run")
    if not_refused := [name for name, count in tally.refused.items() if not count]:
        found.append(f"the flood was not refused: {', '.join(not_refused)}")
    if not tally.accepted or not tally.calls:
        found.append("there was no load")
    for side, first, last in (
        ("server", report.server_first, report.server_last),
        ("clients", report.client_first, report.client_last),
    ):
        if last.rss_kib > first.rss_kib * (1 + MAX_GROWTH):
            found.append(f"{side}: RSS has grown from {first.rss_kib} to {last.rss_kib} KiB")
    for side, after, before in (
        ("server", report.server_last, report.server_before),
        ("clients", report.client_after, report.client_before),
    ):
        left = after.more_than(before)
        if left:
            found.append(f"{side}: left behind: {', '.join(left[:10])}")
    if report.exit_status:
        found.append(f"the server has exited with {report.exit_status}")
    if "Traceback" in report.log:
        place = report.log.index("Traceback")
        found.append(f"the log of the server has a traceback: {report.log[place:][:1000]}")
    return found


_COLUMNS: Final = (
    "",
    "sessions",
    "requests",
    "answered",
    "cancelled",
    "abandoned",
    "calls",
    "refused",
    "server MiB",
    "clients MiB",
    "",
)


def table(reports: Sequence[Report]) -> str:
    """Return one row for each target."""
    rows = [_COLUMNS, *map(_row, reports)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _row(report: Report) -> tuple[str, ...]:
    tally = report.tally
    return (
        report.kind,
        str(sum(tally.sessions.values())),
        str(tally.accepted),
        str(tally.answered),
        str(tally.cancelled),
        str(tally.abandoned),
        str(tally.calls),
        str(sum(tally.refused.values())),
        _growth(report.server_first, report.server_last),
        _growth(report.client_first, report.client_last),
        "FAILED" if misses(report) else "ok",
    )


def _growth(first: Holding, last: Holding) -> str:
    return f"{first.rss_kib / 1024:.1f} -> {last.rss_kib / 1024:.1f}"
