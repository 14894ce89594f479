"""Audit: one structured event for each request of an authenticated caller, and for refused ones.

    AuthSettings(verifiers=[...], audit=JsonLinesAudit("audit.jsonl"))

The rules that live here, and only here:

* An event says who asked for what, when, and how it ended. It has no arguments, no results and no
  credentials.
* A request whose credential is refused has an event too, without a caller: 10 per second, and 100
  at once. The event after those that were left out has their number: a flood of wrong tokens fills
  neither a disk nor the queue of other events. A request without a credential has none: clients
  begin with one.
* A hook that raises is logged once, and the request is answered all the same.
* Events are written in the order in which requests end, by a thread: neither a slow disk nor a full
  one delays a request. Beyond 10,000 events that wait, further ones are dropped and counted, and
  so are those that the disk does not take. The next line that is written has their number, or the
  last one.
* A line that was written in part, by a disk that filled up, is ended before the next one.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct
from msgspec.json import Encoder

from ...exception_text import as_redacted
from ...private_file import open_private
from ...redaction import show

__all__ = ["AuditEvent", "JsonLinesAudit", "RefusalAudit"]

_log: Final = logging.getLogger("trunkline.auth")

# Events that wait to be written: some megabytes.
MAX_WAITING_EVENTS: Final = 10_000
# Refused requests that have an event.
_REFUSALS_AT_ONCE: Final = 100
_REFUSALS_PER_SECOND: Final = 10.0
# Seconds that `close` waits for the events that are left.
_CLOSE_TIMEOUT_S: Final = 5.0

_LINE_BREAK: Final = ord("\n")
_encode: Final = Encoder().encode


class AuditEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request of an authenticated caller, when it has ended; or one that was refused."""

    # Unix time in seconds, of the end, and how long it took.
    time: float
    seconds: float
    # Who: as the credential says, and the digest that everything of the principal is bound to.
    issuer: str = ""
    subject: str = ""
    client_id: str = ""
    tenant: str | None = None
    principal_key: str = ""
    # What: the method, and the registered tool, prompt or resource that it named.
    method: str
    name: str = ""
    # How it ended: "ok", "error", "refused" or "cancelled"; of an error its code. A tool that ran
    # and failed is "error" without a code. "unauthenticated" is a credential that was refused: over
    # HTTP `method` is that of HTTP, and `code` the status.
    outcome: str
    code: int | None = None
    # Where: the id of the request, the transport, and the address of the client if it is known.
    request_id: str | int | None = None
    transport: str = ""
    address: str = ""
    # Refused requests before this one that have no event, since there were too many.
    omitted: int = 0

    def __repr__(self) -> str:
        who = show(self.subject or self.client_id)
        what = f"{show(self.method)} {show(self.name)}"
        return f"<AuditEvent: {what} of {who}, {show(self.outcome)}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


class RefusalAudit:
    """Reports requests whose credential was refused to a hook, a bounded number of them."""

    def __init__(
        self, hook: Callable[[AuditEvent], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hook = hook
        self._clock = clock
        # A token bucket as one number: the time at which it is full again.
        self._full_at = float("-inf")
        self._omitted = 0
        self._has_failed = False

    def __repr__(self) -> str:
        return "<RefusalAudit>"

    def __call__(
        self,
        *,
        method: str,
        code: int,
        transport: str,
        address: str,
        request_id: str | int | None = None,
    ) -> None:
        """Report a request, unless there were too many."""
        interval = 1 / _REFUSALS_PER_SECOND
        now = self._clock()
        full_at = max(self._full_at, now)
        # Sums of floats are not exact: half an interval decides.
        if full_at - now > (_REFUSALS_AT_ONCE - 0.5) * interval:
            self._omitted += 1
            return
        self._full_at = full_at + interval
        omitted, self._omitted = self._omitted, 0
        event = AuditEvent(
            time=time.time(),
            seconds=0.0,
            method=method,
            outcome="unauthenticated",
            code=code,
            request_id=request_id,
            transport=transport,
            address=address,
            omitted=omitted,
        )
        try:
            self._hook(event)
        except Exception as error:  # noqa: BLE001  # of the author's hook; the client gets its answer
            if not self._has_failed:
                self._has_failed = True
                _log.error(
                    "the audit hook failed, further failures are not logged\n%s",
                    as_redacted(error),
                )


class JsonLinesAudit:
    """Writes audit events to a file, one line of JSON each.

    The file is opened for appending, with permissions for its owner alone: those that a file has
    for others are withdrawn. `close` writes what is left; it is called at exit too.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file, or make it.

        Raises:
            OSError: the path is a symbolic link, not a regular file, or a file of another user; or
                the file cannot be opened.
        """
        self.path = Path(path)
        # Events that were not written, since there were too many or the file cannot be written.
        self.dropped = 0
        self._waiting: deque[AuditEvent] = deque()
        self._wake = threading.Condition()
        self._is_closed = False
        self._has_failed = False
        # True if the file ends with a part of a line.
        self._is_amid_line = False
        self._thread: threading.Thread | None = None
        self._file: IO[bytes] | None = self._open()

    def __repr__(self) -> str:
        return f"<JsonLinesAudit {show(str(self.path))}>"

    def _open(self) -> IO[bytes]:
        descriptor = open_private(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        return os.fdopen(descriptor, "ab", buffering=0)

    def __call__(self, event: AuditEvent) -> None:
        """Take an event; it is written soon."""
        with self._wake:
            if self._is_closed or len(self._waiting) >= MAX_WAITING_EVENTS:
                self.dropped += 1
                return
            self._waiting.append(event)
            if self._thread is None:
                # Not before: a server may fork its workers after it was made.
                self._thread = threading.Thread(
                    target=self._run, name="trunkline-audit", daemon=True
                )
                self._thread.start()
                atexit.register(self.close)
            self._wake.notify()

    def flush(self, timeout: float = _CLOSE_TIMEOUT_S) -> bool:
        """Wait until what was taken is written; return False if it takes longer."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._waiting, timeout)

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_CLOSE_TIMEOUT_S)
            atexit.unregister(self.close)
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _run(self) -> None:
        reported = 0
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._is_closed)
                events = list(self._waiting)
                dropped = self.dropped - reported
            if dropped:
                at = events[0].time if events else time.time()
                line = _encode({"time": _moment(at), "dropped": dropped}) + b"\n"
                if self._write(line) == 0:
                    reported += dropped
            if not events:
                return
            lost = self._write(b"".join(map(_line, events)))
            with self._wake:
                self.dropped += lost
                for _ in events:
                    self._waiting.popleft()
                self._wake.notify_all()

    def _write(self, lines: bytes) -> int:
        """Write lines; return the number of those that are not in the file as a whole."""
        rest = memoryview(b"\n" + lines if self._is_amid_line else lines)
        try:
            if self._file is None:
                raise OSError("it is closed")
            while rest:
                written = self._file.write(rest)
                self._is_amid_line = rest[written - 1] != _LINE_BREAK
                rest = rest[written:]
        except OSError as error:
            if not self._has_failed:
                self._has_failed = True
                _log.error("audit events cannot be written to %s: %s", show(str(self.path)), error)
        else:
            self._has_failed = False
        # The line break that ends a partial line is not one of them.
        return min(bytes(rest).count(b"\n"), lines.count(b"\n"))


def _line(event: AuditEvent) -> bytes:
    fields: dict[str, Any] = {"time": _moment(event.time)}
    for name in event.__struct_fields__[1:]:
        value = getattr(event, name)
        if value not in (None, "") and (value or name != "omitted"):
            fields[name] = round(value, 6) if name == "seconds" else value
    return _encode(fields) + b"\n"


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
