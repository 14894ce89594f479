"""Have everything that a server sends judged while it comes in.

A judge reads each message in full and keeps the conversation in mind, so this costs many
times what the message itself does; it is for those who write servers. Without it the judge
is not even imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import RemoteProtocolError
from ..jsonrpc.decode_errors import UNREADABLE
from ..jsonrpc.messages import RequestId
from .diagnostics import RateLimitedLog
from .requests.decode import decoder

if TYPE_CHECKING:
    from ..judge import Finding

__all__ = ["MessageValidator"]


class MessageValidator:
    """Judges one conversation."""

    def __init__(self, transport: str, server_log: RateLimitedLog, *, raises: bool) -> None:
        # Imported here: a judge reads the rows of the whole specification.
        from ..judge import Conversation

        self._talk = Conversation()
        self._transport = transport
        self._server_log = server_log
        self._raises = raises
        # What replies of the frame being fed are refused with, by id; for None, all of them.
        self._faults: dict[RequestId | None, RemoteProtocolError] = {}

    def note(self, frame: bytes) -> None:
        """Take note of what we send: what comes back is judged by it."""
        self._talk.feed(frame, "client", self._transport)

    def judge(self, frame: bytes) -> None:
        """Judge what came; what is wrong with it is logged, and kept if it is to be refused."""
        found = self._talk.feed(frame, "server", self._transport)
        errors = [each for each in found if each.level == "error"]
        if self._raises and errors:
            ids = _ids_of_batch(frame)
            for finding in errors:
                whose = _whose(finding, ids)
                # One whose id is none answers nobody, so there is nobody to refuse it to.
                if whose is None or type(whose) is int or type(whose) is str:
                    self._faults.setdefault(whose, _as_error(finding))
        for finding in found:
            if finding.level != "info":
                self._server_log.warning("the server broke a rule: %s", finding, kind=finding.rule)

    def fault_of(self, id: RequestId) -> RemoteProtocolError | None:
        """Return what the reply to a request is refused with, if it is."""
        return self._faults.get(id) or self._faults.get(None)

    def forget(self) -> None:
        """Be done with a frame."""
        self._faults.clear()


def _ids_of_batch(frame: bytes) -> list[Any]:
    """Return the ids of the elements of a batch, and none where the frame is none."""
    if not frame.lstrip().startswith(b"["):
        return []
    try:
        items = decoder(list[Any])(frame)
    except UNREADABLE:
        return []
    ids = [item.get("id") if type(item) is dict else None for item in items]
    return [False if id is None else id for id in ids]


def _whose(finding: Finding, ids: list[Any]) -> Any:
    """Return the id of the element that a finding is about, or None where it is about all."""
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
