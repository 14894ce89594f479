"""Metrics of a server as a page in the Prometheus text format 0.0.4.

    page = metrics_page(core)

The page has the gauges and counters of `ServerStats`, and, after `enable_metrics`, a histogram of
the duration of operations by the names of the OpenTelemetry conventions.

The rules that live here, and only here:

* Values of labels come from known sets, and the number of series of the histogram is bounded, so
  that neither clients nor tools that come and go make the page grow without end.
* An empty label is left out: Prometheus takes both for the same.
* Backslash, quote and line feed in the value of a label are escaped, and backslash and line feed
  in a help text.                                 [Prometheus text exposition format 0.0.4]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from ...engine.observability.operations import OTHER, Observer, add_observer
from .operations import DURATION_BUCKETS, ServerOperation
from .stats import stats_of

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["CONTENT_TYPE", "MAX_SERIES", "ROWS", "Metrics", "enable_metrics", "metrics_page"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Of the histogram, each about 2 KiB of the page. From here on tools and prompts that have no
# series yet share one.
MAX_SERIES: Final = 2000

_DURATION: Final = "mcp_server_operation_duration_seconds"
_DURATION_HELP: Final = "Time from receiving a request to sending its answer, in seconds."
_LABELS: Final = (
    "mcp_method_name",
    "gen_ai_tool_name",
    "gen_ai_prompt_name",
    "error_type",
    "mcp_protocol_version",
    "network_transport",
    "tenant",
)
_BOUNDS: Final = (*(f"{bound:g}" for bound in DURATION_BUCKETS), "+Inf")


class _Row(NamedTuple):
    """How one field of `ServerStats` is shown: its name without `trunkline_`, and a help text."""

    field: str
    name: str
    help: str
    # The label of a field that is a dict.
    label: str = ""


# A name that ends in `_total` is a counter, any other a gauge.
ROWS: Final = (
    _Row("connections", "connections", "Open connections."),
    _Row("in_flight", "requests_in_flight", "Running handlers."),
    _Row("waiting", "requests_waiting", "Requests that wait for a handler."),
    _Row("held_bytes", "held_bytes", "Bytes that count for ServerLimits.server_bytes."),
    _Row("unread_bytes", "unread_bytes", "Bytes sent that clients have not read."),
    _Row("threads_busy", "threads_busy", "Threads that run a handler."),
    _Row("threads_waiting", "threads_waiting", "Calls that wait for a thread."),
    _Row("streams", "streams", "Open subscriptions/listen requests."),
    _Row("sessions", "sessions", "Open sessions over HTTP."),
    _Row("clients", "clients", "Clients over HTTP and sockets."),
    _Row("largest_client", "largest_client", "The most that one client has.", "of"),
    _Row("refused", "requests_refused_total", "Refused requests, by the limit reached.", "limit"),
    _Row("dropped_answers", "answers_dropped_total", "Results dropped as unread."),
    _Row(
        "dropped_notifications", "notifications_dropped_total", "Notifications dropped unhandled."
    ),
    _Row("dropped_streams", "streams_dropped_total", "Streams ended as unread."),
    _Row("deferred_changes", "changes_deferred_total", "Changes sent late as unread."),
    _Row("coerced_calls", "calls_coerced_total", "Calls whose arguments were coerced."),
    _Row("late_threads", "threads_late_total", "Calls that waited over 1 s for a thread."),
    _Row("closed_unread", "connections_closed_unread_total", "Connections closed as unread."),
    _Row("refused_connections", "connections_refused_total", "Connections beyond the limit."),
    _Row("dropped_connections", "connections_dropped_total", "Silent connections that made room."),
)


class _Series:
    """One series of the histogram: how many operations fell into each bucket, and their sum."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        self.sum = 0.0


class Metrics(Observer[ServerOperation]):
    """The durations of the operations of a server."""

    def __init__(self) -> None:
        # By the values of the labels.
        self._series: dict[tuple[str, ...], _Series] = {}
        # A server may run on several event loops, and the page be read from another thread.
        self._lock = Lock()

    def end(self, operation: ServerOperation) -> None:
        """Add an operation to its series."""
        labels = (
            operation.method,
            operation.tool or "",
            operation.prompt or "",
            operation.error_type or "",
            operation.revision or "",
            operation.network_transport or "",
            operation.tenant_label,
        )
        bucket = bisect_left(DURATION_BUCKETS, operation.seconds)
        with self._lock:
            series = self._series.get(labels) or self._new(labels)
            series.counts[bucket] += 1
            series.sum += operation.seconds

    def _new(self, labels: tuple[str, ...]) -> _Series:
        if len(self._series) >= MAX_SERIES:
            method, tool, prompt, *others = labels
            labels = (method, OTHER if tool else "", OTHER if prompt else "", *others)
        return self._series.setdefault(labels, _Series())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the histogram."""
        with self._lock:
            found = [(key, each.counts[:], each.sum) for key, each in self._series.items()]
        if found:
            yield from _heading(_DURATION, "histogram", _DURATION_HELP)
        for values, counts, total in sorted(found):
            pairs = [(name, value) for name, value in zip(_LABELS, values, strict=True) if value]
            upto = 0
            for bound, count in zip(_BOUNDS, counts, strict=True):
                upto += count
                yield f"{_DURATION}_bucket{_braces([*pairs, ('le', bound)])} {upto}"
            yield f"{_DURATION}_sum{_braces(pairs)} {total!r}"
            yield f"{_DURATION}_count{_braces(pairs)} {upto}"


def enable_metrics(core: ServerCore) -> None:
    """Record the duration of operations, on connections opened from now on; twice is once."""
    if _metrics_of(core) is None:
        add_observer(core.runtime, Metrics())


def metrics_page(core: ServerCore) -> bytes:
    """Return the metrics of a server, as a page of the type `CONTENT_TYPE`."""
    lines: list[str] = []
    stats = stats_of(core)
    for row in ROWS:
        value, name = getattr(stats, row.field), f"trunkline_{row.name}"
        lines += _heading(name, "counter" if name.endswith("_total") else "gauge", row.help)
        if row.label:
            found = sorted(value.items())
            lines += (f"{name}{_braces([(row.label, key)])} {count}" for key, count in found)
        else:
            lines.append(f"{name} {value}")
    metrics = _metrics_of(core)
    if metrics is not None:
        lines += metrics.lines()
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


def _metrics_of(core: ServerCore) -> Metrics | None:
    return next((each for each in core.runtime.observers if isinstance(each, Metrics)), None)


def _heading(name: str, kind: str, text: str) -> Iterator[str]:
    escaped = text.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {escaped}"
    yield f"# TYPE {name} {kind}"


def _braces(labels: Iterable[tuple[str, str]]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
