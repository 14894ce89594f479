"""Audit points of a server: an event for each request of an authenticated caller that has ended.

The rules that live here, and only here:

* Names are those of registered entries: a caller cannot write any text into the audit.
* A hook that raises is logged once, and the request is answered all the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ...auth.server.audit import AuditEvent
from ...exception_text import as_redacted
from ...spec.error_kinds import ErrorKind
from ...spec.profiles import profile
from .operations import CANCELLED, Observer, Operation, add_observer

if TYPE_CHECKING:
    from ..runtime import ServerRuntime

__all__ = ["AuditTrail", "enable_audit"]

_log: Final = logging.getLogger("trunkline.auth")

_REFUSALS: Final = (
    ErrorKind.UNAUTHORIZED,
    ErrorKind.INSUFFICIENT_PERMISSIONS,
    ErrorKind.AUTHORIZATION_FAILED,
)


class AuditTrail(Observer[Operation]):
    """Calls a hook about each request of an authenticated caller."""

    def __init__(self, hook: Callable[[AuditEvent], object]) -> None:
        self.hook = hook
        self._has_failed = False

    def end(self, operation: Operation) -> None:
        """Report a request that has ended."""
        principal = operation.principal
        if principal is None:
            return
        outcome, code = _outcome(operation)
        event = AuditEvent(
            time=time.time(),
            seconds=operation.seconds,
            issuer=principal.issuer,
            subject=principal.subject,
            client_id=principal.client_id,
            tenant=principal.tenant,
            principal_key=principal.key,
            method=operation.method,
            name=operation.name or "",
            outcome=outcome,
            code=code,
            request_id=operation.asked.id,
            transport=operation.transport,
            address=operation.address,
        )
        try:
            self.hook(event)
        except Exception as error:  # noqa: BLE001  # of the author's hook; the request was served
            if not self._has_failed:
                self._has_failed = True
                _log.error(
                    "the audit hook failed, further failures are not logged\n%s",
                    as_redacted(error),
                )


def _outcome(operation: Operation) -> tuple[str, int | None]:
    error = operation.error
    if error is not None:
        policy = operation.policy
        codes = {profile(policy.codes).to_send(kind, policy.revision)[0] for kind in _REFUSALS}
        # Several kinds share a code in some profiles; there the text tells them apart.
        is_refusal = operation.is_refused or error.code in codes - _GENERIC
        return "refused" if is_refusal else "error", error.code
    if operation.error_type == CANCELLED:
        return "cancelled", None
    # Of a result that is a failure, as that of a tool that ran and failed.
    return ("ok" if operation.error_type is None else "error"), None


_GENERIC: Final = {-32600, -32602, -32603}


def enable_audit(runtime: ServerRuntime, hook: Callable[[AuditEvent], object]) -> None:
    """Report the requests of connections that are opened from now on; a hook is used once."""
    known = [each.hook for each in runtime.observers if isinstance(each, AuditTrail)]
    if hook not in known:
        add_observer(runtime, AuditTrail(hook))
