"""Log fields of tenants: `tenant` and `principal` in the log lines of handlers.

`JsonFormatter` adds the fields of the request that is being served to each record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...engine.observability.operations import Observer, Operation, add_observer
from .request_fields import REQUEST_FIELDS

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["enable_tenant_log"]


class _TenantLog(Observer[Operation]):
    """Sets the log fields while a request is served."""

    def enter(self, operation: Operation) -> Callable[[], object] | None:
        """Set the fields; return what resets them."""
        principal = operation.principal
        if principal is None:
            return None
        fields = {"principal": principal.subject or principal.client_id}
        if principal.tenant is not None:
            fields["tenant"] = principal.tenant
        return partial(REQUEST_FIELDS.reset, REQUEST_FIELDS.set(fields))


def enable_tenant_log(core: ServerCore) -> None:
    """Set log fields on connections that are opened from now on."""
    if not any(isinstance(each, _TenantLog) for each in core.runtime.observers):
        add_observer(core.runtime, _TenantLog())
