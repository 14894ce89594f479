"""Serving `subscriptions/listen`: which part of what is asked for is honoured, and saying so.

Who listens is kept by `streams.py`; here one request is read, refused or acknowledged.

The rules that live here, and only here:

* The first message of a stream says what will come on it: what was asked for, without what
  the server does not offer and what does not exist. A stream on which nothing will come is
  acknowledged and stays open all the same.  [MCP 2026-07-28, basic/patterns/subscriptions]
* A stream is no part of a batch, whose answer would wait until the stream ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw, UnsetType
from msgspec.json import Decoder

from ...errors import RequestError
from ...jsonrpc.incoming import IncomingRequest
from ...mcp.meta import SUBSCRIPTION_ID, Caller
from ...mcp.types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
)
from ...spec.error_kinds import ErrorKind
from ..dispatch.connection import Connection
from ..dispatch.requests import RETRY_AFTER
from ..dispatch.revision import Surface
from ..errors import refusal
from .fanout import Topic
from .registry import LISTS, list_topic, resource_topic, task_topic

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = ["listen"]

_read: Final = Decoder(SubscriptionsListenRequestParams)
_EMPTY: Final = Raw(b"{}")


def listen(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, surface: Surface
) -> None:
    """Open a stream of changes, or say why not."""
    wanted = _read.decode(_EMPTY if asked.params is UNSET else asked.params).notifications
    if _is_refused(connection, asked, surface, wanted):
        return
    try:
        honoured = _honoured(connection, caller, wanted)
    except RequestError as error:
        connection.answer(asked, refusal(error, surface.policy), surface.policy)
        return
    asked = connection.peer.incoming.lighten(asked)
    # Before it is acknowledged: a client in this process may cancel while it is told.
    connection.core.streams.open(connection, asked, surface, _topics(honoured))
    acknowledged = SubscriptionsAcknowledgedNotificationParams(
        honoured, meta={SUBSCRIPTION_ID: asked.id}
    )
    connection.notify("notifications/subscriptions/acknowledged", acknowledged, asked.route)


def _is_refused(
    connection: Connection, asked: IncomingRequest, surface: Surface, wanted: SubscriptionFilter
) -> bool:
    if asked.slot is not None:
        text = "subscriptions/listen must not be part of a batch"
        connection.refuse(asked, surface.policy, ErrorKind.INVALID_REQUEST, text)
        return True
    if connection.jobs.is_stopping:
        kind = ErrorKind.SERVICE_UNAVAILABLE
        connection.refuse(asked, surface.policy, kind, retryAfterMs=RETRY_AFTER)
        return True
    # Before anything is looked up: a client may name as many as it likes.
    named = len({*_given(wanted.resource_subscriptions)}) + len({*_given(wanted.task_ids)})
    problem = connection.core.streams.no_room(connection, named, is_stream=True)
    if problem is not None:
        connection.refuse(asked, surface.policy, ErrorKind.SUBSCRIPTION_FAILED, problem)
    return problem is not None


def _honoured(
    connection: Connection, caller: Caller | None, wanted: SubscriptionFilter
) -> SubscriptionFilter:
    """Return what of a filter is honoured.

    Raises:
        RequestError: the client may not ask about tasks.
    """
    app = connection.core
    lists: dict[str, Any] = {
        name: True
        for what in LISTS
        if getattr(wanted, name := f"{what}_list_changed") is True and getattr(app, f"has_{what}")
    }
    uris = _known(app, dict.fromkeys(_given(wanted.resource_subscriptions)))
    tasks: list[str] = []
    look_up = app.streams.honoured_task_ids
    if look_up is not None and wanted.task_ids is not UNSET:
        tasks = look_up(connection, caller, list(dict.fromkeys(wanted.task_ids)))
    return SubscriptionFilter(
        **lists, resource_subscriptions=list(uris) or UNSET, task_ids=tasks or UNSET
    )


def _known(app: ServerCore, uris: dict[str, None]) -> Iterator[str]:
    """Yield the URIs that name something the server offers."""
    if app.has_resources:
        yield from (uri for uri in uris if next(app.find_resources(uri), None) is not None)


def _topics(honoured: SubscriptionFilter) -> Iterator[Topic]:
    for what in LISTS:
        if getattr(honoured, f"{what}_list_changed") is True:
            yield list_topic(what)
    yield from map(resource_topic, _given(honoured.resource_subscriptions))
    yield from map(task_topic, _given(honoured.task_ids))


def _given(names: list[str] | UnsetType) -> list[str]:
    return [] if names is UNSET else names
