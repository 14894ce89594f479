"""Decisions on requests: which entries a principal sees, and whether it may use one.

The rules that live here, and only here:

* An entry that is not visible, or not offered to the tenant, is answered like one that does not
  exist.
* An entry whose scopes are missing stays listed, so that a client can ask for them, unless the
  server has `hide_unscoped`.
* A refusal names all scopes of the operation at once, not one after the other, and those that are
  missing; an anonymous caller is asked to authenticate.
                                   [MCP 2026-07-28, basic/authorization#scope-challenge-handling]
* `allow` is checked after the scopes and before the handler. False and PermissionError refuse.
  Any other exception, of `visible` too, refuses as well, and is logged: access control that is
  broken must not let anyone in.
"""

from __future__ import annotations

import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from ...errors import NOTHING, RequestError
from ...exception_text import as_redacted
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ..request import context_of

if TYPE_CHECKING:
    from ...auth.principal import Principal
    from ...auth.scopes import ImpliedScopes
    from ..request import HandledRequest, HandlerEntry
    from .guard import AllowCheck, Guard

__all__ = [
    "AccessPolicy",
    "AccessRefused",
    "arguments_of",
    "check_allow",
    "check_allow_without_arguments",
    "check_scopes",
    "is_listed",
    "is_visible",
]

_log: Final = logging.getLogger("trunkline.server")

_LOGIN: Final = "Authentication required"
_RIGHTS: Final = "Insufficient permissions"


class AccessPolicy(Protocol):
    """What decides on access for all entries of a server, beside their guards."""

    # Whether lists leave out entries whose scopes the caller lacks.
    hide_unscoped: bool

    @property
    def implied_scopes(self) -> ImpliedScopes:
        """Which scopes grant others."""

    def offers_to_tenant(self, entry: Any, tenant: str | None) -> bool:
        """Return True if an entry exists for a tenant."""


class AccessRefused(RequestError):
    """A request that a guard refuses; the data has the scopes of the operation."""

    def __init__(
        self,
        principal: Principal | None,
        needed: frozenset[str] = frozenset(),
        missing: frozenset[str] = frozenset(),
    ) -> None:
        kind = ErrorKind.UNAUTHORIZED if principal is None else ErrorKind.INSUFFICIENT_PERMISSIONS
        data = {"requiredScopes": sorted(needed), "missingScopes": sorted(missing)}
        text = _LOGIN if principal is None else _RIGHTS
        super().__init__(kind, text, data=data if needed else NOTHING)


# -- seeing ----------------------------------------------------------------------------------


def is_visible(entry: HandlerEntry, request: HandledRequest) -> bool:
    """Return True if the caller may know that an entry exists."""
    if entry.guard is not None:
        for function in entry.guard.visible:
            try:
                if not function(context_of(request)):
                    return False
            except Exception as error:  # noqa: BLE001  # of the author's function; it must not show an entry
                _failed("visible", entry, error)
                return False
    return request.access.offers_to_tenant(entry, request.tenant)


def is_listed(entry: HandlerEntry, request: HandledRequest) -> bool:
    """Return True if an entry is in the lists of the caller."""
    guard, access = entry.guard, request.access
    if guard is not None and guard.scopes and access.hide_unscoped:
        principal = request.principal
        if principal is None or access.implied_scopes.missing(guard.scopes, principal.scopes):
            return False
    return is_visible(entry, request)


# -- using -----------------------------------------------------------------------------------


def check_scopes(guard: Guard, request: HandledRequest) -> None:
    """Raise AccessRefused if scopes of a guard are missing."""
    needed = guard.scopes
    if not needed:
        return
    principal = request.principal
    if principal is None:
        raise AccessRefused(None, needed, needed)
    missing = request.access.implied_scopes.missing(needed, principal.scopes)
    if missing:
        raise AccessRefused(principal, needed, missing)


async def check_allow(entry: HandlerEntry, values: Any, request: HandledRequest) -> None:
    """Raise AccessRefused if a function of the author does not allow a call."""
    arguments = arguments_of(entry, values)
    for check in _checks(entry):
        await _ask(check, entry, request, arguments)


async def check_allow_without_arguments(entry: HandlerEntry, request: HandledRequest) -> None:
    """Raise AccessRefused if a function that takes the context alone does not allow a request."""
    for check in _checks(entry):
        if not check.needs_arguments:
            await _ask(check, entry, request, {})


def _checks(entry: HandlerEntry) -> tuple[AllowCheck, ...]:
    return () if entry.guard is None else entry.guard.allow


async def _ask(
    check: AllowCheck, entry: HandlerEntry, request: HandledRequest, arguments: dict[str, Any]
) -> None:
    try:
        answer = check.call(context_of(request), arguments)
        if isawaitable(answer):
            answer = await answer
        is_allowed = bool(answer)
    except PermissionError:
        is_allowed = False
    except Exception as error:  # noqa: BLE001  # of the author's function; it must not let anyone in
        _failed("allow", entry, error)
        is_allowed = False
    if not is_allowed:
        raise AccessRefused(request.principal)


def arguments_of(entry: HandlerEntry, values: Any) -> dict[str, Any]:
    """Return decoded arguments by name."""
    if isinstance(values, Struct):
        fields = values.__struct_fields__
        return dict(
            zip(entry.arguments.names, (getattr(values, each) for each in fields), strict=True)
        )
    return values if isinstance(values, dict) else {}


def _failed(option: str, entry: HandlerEntry, error: Exception) -> None:
    trace = as_redacted(error)
    _log.error("%s= of %s failed, access is refused\n%s", option, show(entry.name), trace)
