"""Validates everything that a server sends against the specification (`Client(validate=...)`).

The judge decodes each message in full and tracks the conversation, which costs many times the
message itself; it is for authors of servers. It is imported only if it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import RemoteProtocolError
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.messages import RequestId
from .decode import decoder
from .diagnostics import RateLimitedLog

if TYPE_CHECKING:
    from ...judge import Finding

__all__ = ["MessageValidator"]


class MessageValidator:
    """Validates the messages of one session."""

    def __init__(self, transport: str, server_log: RateLimitedLog, *, raises: bool) -> None:
        # Imported here: the judge loads the rows of the whole specification.
        from ...judge import Conversation

        self._talk = Conversation()
        self._transport = transport
        self._server_log = server_log
        self._raises = raises
        # The errors of the current frame by request id; None applies to all of its replies.
        self._faults: dict[RequestId | None, RemoteProtocolError] = {}

    def note(self, frame: bytes) -> None:
        """Record a sent message: replies are validated against it."""
        self._talk.feed(frame, "client", self._transport)

    def judge(self, frame: bytes) -> None:
        """Validate a received message; log its violations, and keep them for `fault_of`."""
        found = self._talk.feed(frame, "server", self._transport)
        errors = [each for each in found if each.level == "error"]
        if self._raises and errors:
            ids = _ids_of_batch(frame)
            for finding in errors:
                whose = _whose(finding, ids)
                # A reply without a valid id belongs to no request.
                if whose is None or type(whose) is int or type(whose) is str:
                    self._faults.setdefault(whose, _as_error(finding))
        for finding in found:
            if finding.level != "info":
                self._server_log.warning("the server broke a rule: %s", finding, kind=finding.rule)

    def fault_of(self, id: RequestId) -> RemoteProtocolError | None:
        """Return the error for the reply to a request, if it is invalid."""
        return self._faults.get(id) or self._faults.get(None)

    def forget(self) -> None:
        """Forget the errors of the current frame."""
        self._faults.clear()


def _ids_of_batch(frame: bytes) -> list[Any]:
    """Return the ids of the elements of a batch; empty if the frame is not a batch."""
    if not frame.lstrip().startswith(b"["):
        return []
    try:
        items = decoder(list[Any])(frame)
    except UNREADABLE:
        return []
    ids = [item.get("id") if type(item) is dict else None for item in items]
    return [False if id is None else id for id in ids]


def _whose(finding: Finding, ids: list[Any]) -> Any:
    """Return the id of the element that a finding is about, or None for the whole frame."""
    place = finding.where.split("/", 2)[1] if "/" in finding.where else ""
    return ids[int(place)] if place.isdecimal() and int(place) < len(ids) else None


def _as_error(finding: Finding) -> RemoteProtocolError:
    got = f"; got {finding.got}" if finding.got else ""
    return RemoteProtocolError(
        finding.rule,
        where=finding.where,
        expected=f"{finding.expected}{got}",
        source=finding.source,
    )
