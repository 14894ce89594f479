"""Records and judges the frames that `proxy` forwards, and reports findings at once.

The rules that live here, and only here:

* A failure is reported once and stops the recording or the judging, never the traffic.
* A small frame is handled before it is forwarded. A large one, and all that follow while it is
  handled, go to a thread in the same order: the other connections do not wait for it. A sender
  is paused while too much waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...redaction import redact
from ...transports.base import ignore
from ..output.reports import visible
from .job_thread import JobThread

if TYPE_CHECKING:
    from ...judge.conversation.conversation import Conversation
    from ...judge.finding import Finding
    from ...judge.trace.reader import TraceEntry, TraceHttp
    from ...transports.base import Frame
    from ..recording import Recording

__all__ = ["ConnectionObserver", "ProxyObserver"]

Side: TypeAlias = Literal["client", "server"]

# Findings printed for each rule and connection: a peer decides how often it breaks a rule. The
# others are counted.
_MAX_FINDINGS_PRINTED: Final = 3
# Handled in about a millisecond.
_MAX_INLINE_BYTES: Final = 16384
_LEVELS: Final = {"error": "error", "warn": "warning", "info": "remark"}
_WAYS: Final = {"client": "client → server", "server": "server → client"}


class ProxyObserver:
    """Observes all connections of one run.

    `say` may be called on another thread; `call` runs a function on that of the event loop.
    """

    def __init__(
        self,
        say: Callable[[str], object],
        *,
        record: Recording | None = None,
        judges: bool = False,
        revision: str | None = None,
        call: Callable[[Callable[[], object]], object] = lambda run: run(),
    ) -> None:
        self.say = say
        self.call = call
        self.record = record
        self.messages = 0
        self.counts: Counter[str] = Counter()
        self.begin = monotonic()
        self.jobs = JobThread(self._resume)
        # What to call when less waits.
        self._paused: list[Callable[[], object]] = []
        self._judges = judges
        self._revision = revision
        # Loaded before a client waits for it.
        from ...judge.trace import writer  # noqa: F401

        if judges:
            from ...judge.conversation import conversation  # noqa: F401

    def connection(
        self,
        number: int | None,
        source: str,
        target: str,
        transports: Mapping[Side, object] | None = None,
    ) -> ConnectionObserver:
        """Return the observer of one connection; `source` and `target` name its transports."""
        talk = None
        if self._judges:
            from ...judge.conversation.conversation import Conversation

            talk = Conversation(self._revision)
        names: dict[Side, str] = {"client": source, "server": target}
        return ConnectionObserver(self, talk, number, names, transports or {})

    def pause(self, transport: object) -> None:
        """Stop reading from a transport until less waits to be recorded and judged."""
        stop: Callable[[], object] = getattr(transport, "pause", ignore)
        go_on: Callable[[], object] = getattr(transport, "resume", ignore)
        stop()
        self._paused.append(go_on)
        if not self.jobs.is_full:
            self._resume()  # it was handled meanwhile

    def _resume(self) -> None:
        paused, self._paused = self._paused, []
        for go_on in paused:
            self.call(go_on)

    def summary(self) -> str:
        """Return the numbers of messages and findings, in one line."""
        if not self.messages:
            return "no messages passed"
        found = [_count(self.counts[level], word) for level, word in _LEVELS.items()]
        told = ", ".join(each for each in found if each)
        return f"{_count(self.messages, 'message')}: {told or 'nothing found'}"


class ConnectionObserver:
    """Observes one connection."""

    def __init__(
        self,
        run: ProxyObserver,
        talk: Conversation | None,
        number: int | None,
        transports: dict[Side, str],
        senders: Mapping[Side, object],
    ) -> None:
        self._run = run
        self._talk = talk
        self._number = number
        self._transports = transports
        self._senders = senders
        self._findings: Counter[str] = Counter()
        self._streams = 0

    def new_stream(self) -> int:
        """Return the number of a new stream: an HTTP request and all that answers it."""
        self._streams += 1
        return self._streams

    def receive(
        self,
        sender: Side,
        frame: Frame,
        *,
        http: TraceHttp | None = None,
        stream: int | None = None,
        event: Mapping[str, Any] | None = None,
    ) -> None:
        """Record and judge a frame, before it is forwarded if it is small.

        Over HTTP there is more to record; a frame that is empty is a response without a message.
        """
        self._run.messages += 1 if frame else 0
        if self._talk is None and self._run.record is None:
            return
        from ...judge.trace.reader import TraceEntry

        at = round(monotonic() - self._run.begin, 6)
        size = len(frame) if isinstance(frame, bytes) else 0
        entry = TraceEntry(
            at=at,
            sender=sender,
            transport="http" if http is not None or event else self._transports[sender],
            http=http,
            stream=stream,
            event=event,
            connection=self._number,
        )
        jobs = self._run.jobs
        if size <= _MAX_INLINE_BYTES and jobs.is_idle:
            self._observe(frame, entry)
            return
        jobs.submit(size, lambda: self._observe(frame, entry))
        if jobs.is_full and sender in self._senders:
            self._run.pause(self._senders[sender])

    def _observe(self, frame: Frame, entry: TraceEntry) -> None:
        try:
            entry = self._entry(frame, entry)
        except Exception as error:  # noqa: BLE001  # a bug here must not stop the traffic
            self._run.say(f"a message was not recorded: {type(error).__name__}")
            return
        self._record(entry)
        if self._talk is not None:
            self._judge(self._talk, entry)

    def _entry(self, frame: Frame, entry: TraceEntry) -> TraceEntry:
        from ...judge.trace.writer import frame_entry

        kept = frame_entry(frame, entry)
        if kept.http is not None:
            from .http_record import hide_params

            kept = hide_params(kept)
        return kept

    def end(self) -> None:
        """Report what only the end of the connection shows, after its last frames."""
        if self._run.jobs.is_idle:
            self._end()
        else:
            self._run.jobs.submit(0, self._end)

    def _end(self) -> None:
        if self._talk is not None:
            try:
                found = self._talk.end()
            except Exception as error:  # noqa: BLE001  # a bug in the judge must not stop the traffic
                self._stop_judging(error)
            else:
                for finding in found:
                    self._report(finding, "")

    def _record(self, entry: TraceEntry) -> None:
        record = self._run.record
        if record is not None:
            try:
                record.write(entry)
            except OSError as error:
                self._run.record = None
                self._run.say(f"recording stopped: {error.strerror}")
            except ValueError:  # the file was closed, at the end
                self._run.record = None

    def _judge(self, talk: Conversation, entry: TraceEntry) -> None:
        try:
            # What is recorded, so that the recording is judged the same.
            found = talk.feed(entry)
        except Exception as error:  # noqa: BLE001  # a bug in the judge must not stop the traffic
            self._stop_judging(error)
            return
        if found:
            about = f"{_method(entry)}{_WAYS[entry.sender or 'client']}"
            for finding in found:
                self._report(finding, about)

    def _stop_judging(self, error: Exception) -> None:
        self._talk = None
        at = f" of connection {self._number}" if self._number is not None else ""
        # Without its text, which may quote a message.
        self._run.say(f"judging{at} stopped, the judge failed: {type(error).__name__}")

    def _report(self, finding: Finding, about: str) -> None:
        self._run.counts[finding.level] += 1
        self._findings[finding.rule] += 1
        times = self._findings[finding.rule]
        if times > _MAX_FINDINGS_PRINTED:
            return
        # Imported here: a recording alone has no findings.
        from msgspec.structs import replace

        from ..output.reports.text import advice, sentence

        # `got` may repeat a secret in a method or an id.
        safe = replace(finding, got=str(redact(finding.got)))
        facts = []
        if self._number is not None:
            facts.append(f"connection {self._number}")
        if finding.message_index is not None:
            facts.append(f"message {finding.message_index + 1}")
        facts += [about] if about else []
        facts.append(visible(finding.source))
        rest = "; further ones are only counted" if times == _MAX_FINDINGS_PRINTED else ""
        level = _LEVELS[finding.level]
        what = "; ".join(each for each in (sentence(safe), advice(safe)) if each)
        self._run.say(f"{level} {finding.rule}: {what}\n  {', '.join(facts)}{rest}")


def _method(entry: TraceEntry) -> str:
    message = entry.message
    method = message.get("method") if isinstance(message, dict) else None
    if entry.unread is not None and entry.unread.method:
        method = entry.unread.method
    return f"{visible(str(redact(method)))}, " if isinstance(method, str) else ""


def _count(number: int, word: str) -> str:
    if not number:
        return ""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
