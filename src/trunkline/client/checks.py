"""Have everything that a server sends judged while it comes in.

A judge reads each message in full and keeps the conversation in mind, so this costs many
times what the message itself does; it is for those who write servers. Without it the judge
is not even imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ..errors import RemoteProtocolError
from .failures import log

if TYPE_CHECKING:
    from ..judge import Finding

__all__ = ["Checks", "Validate", "checks"]

Validate: TypeAlias = Literal["off", "warn", "raise"]


class Checks:
    """Judges one conversation."""

    def __init__(self, transport: str, *, raises: bool) -> None:
        # Imported here: a judge reads the rows of the whole specification.
        from ..judge import Conversation

        self._talk = Conversation()
        self._transport = transport
        self._raises = raises
        # What the replies of the frame being fed are refused with.
        self.fault: RemoteProtocolError | None = None

    def note(self, frame: bytes) -> None:
        """Take note of what we send: what comes back is judged by it."""
        self._talk.feed(frame, "client", self._transport)

    def judge(self, frame: bytes) -> None:
        """Judge what came; what is wrong with it is logged, or else `fault`."""
        found = self._talk.feed(frame, "server", self._transport)
        for finding in found:
            if finding.level == "error" and self._raises and self.fault is None:
                self.fault = _as_error(finding)
            if finding.level != "info":
                log.warning("the server broke a rule: %s", finding)

    def forget(self) -> None:
        """Be done with a frame."""
        self.fault = None


def checks(validate: Validate, transport: str) -> Checks | None:
    """Return what judges a conversation, or None where nothing does."""
    return None if validate == "off" else Checks(transport, raises=validate == "raise")


def _as_error(finding: Finding) -> RemoteProtocolError:
    got = f"; got {finding.got}" if finding.got else ""
    return RemoteProtocolError(
        finding.rule,
        where=finding.where,
        expected=f"{finding.expected}{got}",
        source=finding.source,
    )
