"""Handler of `subscriptions/listen`: reads the filter, and rejects or acknowledges the stream.

`registry.py` keeps the open streams.

The rules that live here, and only here:

* The first message of a stream acknowledges the filter, reduced to what the server offers and to
  resources and tasks that exist. A stream whose filter becomes empty is acknowledged and stays
  open.                                       [MCP 2026-07-28, basic/patterns/subscriptions]
* A resource that the caller may not read is left out of the filter, as one that does not exist.
* A stream cannot be part of a batch, whose response would wait until the stream ends.
* The URIs of one request are limited in length as well as in number: each is compared with the
  templates of the server, on the event loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType
from msgspec.json import Decoder

from ...errors import RequestError
from ...jsonrpc.peer.incoming import IncomingRequest
from ...mcp.meta import SUBSCRIPTION_ID, Caller
from ...mcp.types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
)
from ...spec.error_kinds import ErrorKind
from ..dispatch.connection import Connection
from ..dispatch.params import params_of
from ..dispatch.requests import RETRY_AFTER_MS
from ..dispatch.revision import ServerRevision
from ..errors import refusal
from .fanout import Topic
from .registry import LISTS, list_topic, resource_topic, task_topic

if TYPE_CHECKING:
    from ..core import ServerCore

__all__ = ["listen"]

_read: Final = Decoder(SubscriptionsListenRequestParams)

# Of all URIs in one request: 10,000 of a hundred characters, or 128 of the longest.
MAX_URI_CHARS: Final = 1024 * 1024


def listen(
    connection: Connection, asked: IncomingRequest, caller: Caller | None, rev: ServerRevision
) -> None:
    """Open a stream of change notifications, or reject the request."""
    wanted = _read.decode(params_of(asked)).notifications
    if _is_refused(connection, asked, rev, wanted):
        return
    core, uris = connection.core, dict.fromkeys(_given(wanted.resource_subscriptions))
    is_guarded = core.has_guards(core.resources) or core.has_guards(core.templates)
    if uris and is_guarded and core.offers("resources.subscribe"):
        from .readable import readable  # here: most servers have no guards

        def proceed(found: list[str]) -> None:
            if asked in connection.peer.incoming and not connection.runner.is_stopping:
                _open(connection, asked, caller, rev, wanted, found)

        readable(connection, asked, caller, rev, uris, proceed)
    else:
        _open(connection, asked, caller, rev, wanted, list(_known(core, uris)))


def _open(
    connection: Connection,
    asked: IncomingRequest,
    caller: Caller | None,
    rev: ServerRevision,
    wanted: SubscriptionFilter,
    uris: list[str],
) -> None:
    """Open a stream of changes of these resources, and of what else is wanted."""
    try:
        honoured = _honoured(connection, caller, wanted, uris)
    except RequestError as error:
        connection.answer(asked, refusal(error, rev.policy), rev.policy)
        return
    asked.set_params(UNSET)  # a stream stays open for long, and its params may be large
    # Opened before the acknowledgement: a client in this process may cancel on receiving it.
    connection.core.streams.open(connection, asked, rev, _topics(honoured))
    acknowledged = SubscriptionsAcknowledgedNotificationParams(
        honoured, meta={SUBSCRIPTION_ID: asked.id}
    )
    connection.notify("notifications/subscriptions/acknowledged", acknowledged, asked.route)


def _is_refused(
    connection: Connection, asked: IncomingRequest, rev: ServerRevision, wanted: SubscriptionFilter
) -> bool:
    if asked.slot is not None:
        text = "subscriptions/listen must not be part of a batch"
        connection.refuse(asked, rev.policy, ErrorKind.INVALID_REQUEST, text)
        return True
    if connection.runner.is_stopping:
        kind = ErrorKind.SERVICE_UNAVAILABLE
        connection.refuse(asked, rev.policy, kind, retryAfterMs=RETRY_AFTER_MS)
        return True
    # Checked before any lookup: the filter may name any number of things.
    if sum(map(len, _given(wanted.resource_subscriptions))) > MAX_URI_CHARS:
        text = f"No more than {MAX_URI_CHARS} characters of URIs in one request"
        connection.refuse(asked, rev.policy, ErrorKind.SUBSCRIPTION_FAILED, text)
        return True
    named = [*{*_given(wanted.resource_subscriptions)}, *{*_given(wanted.task_ids)}]
    problem = connection.core.streams.no_room(connection, named, is_stream=True)
    if problem is not None:
        connection.refuse(asked, rev.policy, ErrorKind.SUBSCRIPTION_FAILED, problem)
    return problem is not None


def _honoured(
    connection: Connection, caller: Caller | None, wanted: SubscriptionFilter, uris: list[str]
) -> SubscriptionFilter:
    """Return the filter reduced to what this server will send."""
    app = connection.core
    lists: dict[str, Any] = {
        name: True
        for what in LISTS
        if getattr(wanted, name := f"{what}_list_changed") is True and app.offers(what)
    }
    if not app.list_changed:
        lists = {}
    tasks: list[str] = []
    look_up = app.streams.honoured_task_ids
    if look_up is not None and wanted.task_ids is not UNSET:
        tasks = look_up(connection, caller, list(dict.fromkeys(wanted.task_ids)))
    return SubscriptionFilter(
        **lists, resource_subscriptions=uris or UNSET, task_ids=tasks or UNSET
    )


def _known(app: ServerCore, uris: dict[str, None]) -> Iterator[str]:
    if app.offers("resources.subscribe"):
        yield from (uri for uri in uris if next(app.find_resources(uri), None) is not None)


def _topics(honoured: SubscriptionFilter) -> Iterator[Topic]:
    for what in LISTS:
        if getattr(honoured, f"{what}_list_changed") is True:
            yield list_topic(what)
    yield from map(resource_topic, _given(honoured.resource_subscriptions))
    yield from map(task_topic, _given(honoured.task_ids))


def _given(names: list[str] | UnsetType) -> list[str]:
    return [] if names is UNSET else names
