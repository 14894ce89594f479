"""What `proxy` hears on the way: each frame is recorded and judged, and findings are told at once.

Knows nothing of transports but their names. Whatever fails here is said once and then left
alone: the conversation is not the listener's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...redaction import redact
from ..output.reports import visible

if TYPE_CHECKING:
    from ...judge.conversation import Conversation
    from ...judge.finding import Finding
    from ...transports.base import Frame
    from ..recording import Recording

__all__ = ["ConnectionObserver", "ProxyObserver"]

Side: TypeAlias = Literal["client", "server"]

# A peer decides how often it breaks a rule; nobody reads more of them than this, of each rule
# and connection. The others are counted.
_TOLD: Final = 3
_LEVELS: Final = {"error": "error", "warn": "warning", "info": "remark"}
_WAYS: Final = {"client": "client → server", "server": "server → client"}


class ProxyObserver:
    """All that one run hears, of however many connections."""

    def __init__(
        self,
        say: Callable[[str], object],
        *,
        record: Recording | None = None,
        judges: bool = False,
        revision: str | None = None,
    ) -> None:
        self.say = say
        self.record = record
        self.messages = 0
        self.counts: Counter[str] = Counter()
        self._judges = judges
        self._revision = revision
        if judges:
            from ...judge import conversation  # noqa: F401  # loaded before somebody waits for it

    def connection(self, number: int | None, source: str, target: str) -> ConnectionObserver:
        """Return what hears one connection; the names are those of its transports."""
        talk = None
        if self._judges:
            from ...judge.conversation import Conversation

            talk = Conversation(self._revision)
        return ConnectionObserver(self, talk, number, {"client": source, "server": target})

    def summary(self) -> str:
        """Return one line that says how it went."""
        found = [_count(self.counts[level], word) for level, word in _LEVELS.items()]
        told = ", ".join(each for each in found if each)
        return f"{_count(self.messages, 'message') or 'no message'}: {told or 'nothing found'}"


class ConnectionObserver:
    """Hears one connection."""

    def __init__(
        self,
        run: ProxyObserver,
        talk: Conversation | None,
        number: int | None,
        transports: dict[Side, str],
    ) -> None:
        self._run = run
        self._talk = talk
        self._number = number
        self._transports = transports
        self._told: Counter[str] = Counter()

    def hear(self, sender: Side, frame: Frame) -> None:
        """Take in a frame; what is wrong with it is said before it is passed on."""
        self._run.messages += 1
        self._record(sender, frame)
        if self._talk is not None and isinstance(frame, bytes):
            self._judge(self._talk, sender, frame)

    def end(self) -> None:
        """Say what only the end shows."""
        if self._talk is not None:
            try:
                found = self._talk.end()
            except Exception as error:  # noqa: BLE001  # a fault of the judge's is not the server's
                self._give_up(error)
            else:
                for finding in found:
                    self._tell(finding, "")

    def _record(self, sender: Side, frame: Frame) -> None:
        record = self._run.record
        if record is not None:
            try:
                record.add(sender, frame, self._transports[sender], self._number)
            except OSError as error:
                self._run.record = None
                self._run.say(f"nothing is recorded from here on: {error.strerror}")

    def _judge(self, talk: Conversation, sender: Side, frame: bytes) -> None:
        try:
            found = talk.feed(frame, sender, self._transports[sender])
        except Exception as error:  # noqa: BLE001  # a fault of the judge's is not the server's
            self._give_up(error)
            return
        if found:
            about = f"{_method(frame)}{_WAYS[sender]}"
            for finding in found:
                self._tell(finding, about)

    def _give_up(self, error: Exception) -> None:
        self._talk = None
        at = f" of connection {self._number}" if self._number is not None else ""
        # Not its text, which may quote a message.
        self._run.say(f"the judge failed, and judges no more{at}: {type(error).__name__}")

    def _tell(self, finding: Finding, about: str) -> None:
        self._run.counts[finding.level] += 1
        self._told[finding.rule] += 1
        times = self._told[finding.rule]
        if times > _TOLD:
            return
        # Imported here: who only records has no findings.
        from msgspec.structs import replace

        from ..output.reports.text import advice, sentence

        # It may repeat a peer's method or id.
        safe = replace(finding, got=str(redact(finding.got)))
        facts = []
        if self._number is not None:
            facts.append(f"connection {self._number}")
        if finding.message_index is not None:
            facts.append(f"message {finding.message_index + 1}")
        facts += [about] if about else []
        facts.append(visible(finding.source))
        rest = "; further ones are counted only" if times == _TOLD else ""
        level = _LEVELS[finding.level]
        what = "; ".join(each for each in (sentence(safe), advice(safe)) if each)
        self._run.say(f"{level} {finding.rule}: {what}\n  {', '.join(facts)}{rest}")


def _method(frame: bytes) -> str:
    """Return the method of a message, as it may be shown, if it has one."""
    from msgspec.json import decode

    from ...jsonrpc.decode_errors import UNREADABLE

    try:
        message = decode(frame)
    except UNREADABLE:
        return ""
    method = message.get("method") if isinstance(message, dict) else None
    return f"{visible(str(redact(method)))}, " if isinstance(method, str) else ""


def _count(number: int, word: str) -> str:
    if not number:
        return ""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
