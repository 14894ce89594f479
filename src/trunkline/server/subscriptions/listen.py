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
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType
from msgspec.json import Decoder

from ...engine.request import LATER, Action, Refuse
from ...engine.runner import RETRY_AFTER_MS
from ...errors import RequestError
from ...mcp.meta import SUBSCRIPTION_ID
from ...mcp.types import (
    SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequestParams,
)
from ...spec.error_kinds import ErrorKind
from ..dispatch.params import params_of
from ..dispatch.request import ServerRequest
from ..errors import refusal
from .fanout import Topic
from .registry import LISTS, list_topic, resource_topic, task_topic

if TYPE_CHECKING:
    from ..api.core import ServerCore

__all__ = ["listen"]

_read: Final = Decoder(SubscriptionsListenRequestParams)

# Of all URIs in one request: 10,000 of a hundred characters, or 128 of the longest.
MAX_URI_CHARS: Final = 1024 * 1024


def listen(request: ServerRequest) -> Action:
    """Open a stream of change notifications, or refuse the request."""
    wanted = _read.decode(params_of(request.message)).notifications
    refused = _refusal(request, wanted)
    if refused is not None:
        return refused
    core, uris = request.connection.core, dict.fromkeys(_given(wanted.resource_subscriptions))
    is_guarded = core.catalog.has_guards(core.catalog.resources) or core.catalog.has_guards(
        core.catalog.templates
    )
    if uris and is_guarded and core.catalog.offers("resources.subscribe"):
        from .readable import readable  # here: most servers have no guards

        return readable(request, uris, partial(_open, request, wanted))
    return _open(request, wanted, list(_known(core, uris)))


def _open(request: ServerRequest, wanted: SubscriptionFilter, uris: list[str]) -> Action:
    """Open a stream of changes of these resources, and of what else is wanted."""
    connection, message = request.connection, request.message
    try:
        honoured = _honoured(request, wanted, uris)
    except RequestError as error:
        return Refuse(refusal(error, request.rev.policy), str(error.kind))
    message.set_params(UNSET)  # a stream stays open for long, and its params may be large
    # Opened before the acknowledgement: a client in this process may cancel on receiving it.
    connection.core.services.streams.open(connection, message, request.rev, _topics(honoured))
    acknowledged = SubscriptionsAcknowledgedNotificationParams(
        honoured, meta={SUBSCRIPTION_ID: message.id}
    )
    connection.notify("notifications/subscriptions/acknowledged", acknowledged, message.route)
    return LATER


def _refusal(request: ServerRequest, wanted: SubscriptionFilter) -> Refuse | None:
    connection = request.connection
    if request.message.slot is not None:
        text = "subscriptions/listen must not be part of a batch"
        return request.refuse(ErrorKind.INVALID_REQUEST, text)
    if connection.runner.is_stopping:
        return request.refuse(ErrorKind.SERVICE_UNAVAILABLE, retryAfterMs=RETRY_AFTER_MS)
    # Checked before any lookup: the filter may name any number of things.
    if sum(map(len, _given(wanted.resource_subscriptions))) > MAX_URI_CHARS:
        text = f"No more than {MAX_URI_CHARS} characters of URIs in one request"
        return request.refuse(ErrorKind.SUBSCRIPTION_FAILED, text)
    named = [*{*_given(wanted.resource_subscriptions)}, *{*_given(wanted.task_ids)}]
    problem = connection.core.services.streams.no_room(connection, named, is_stream=True)
    return None if problem is None else request.refuse(ErrorKind.SUBSCRIPTION_FAILED, problem)


def _honoured(
    request: ServerRequest, wanted: SubscriptionFilter, uris: list[str]
) -> SubscriptionFilter:
    """Return the filter reduced to what this server will send."""
    app = request.connection.core
    lists: dict[str, Any] = {
        name: True
        for what in LISTS
        if getattr(wanted, name := f"{what}_list_changed") is True and app.catalog.offers(what)
    }
    if not app.options.list_changed:
        lists = {}
    tasks: list[str] = []
    look_up = app.services.streams.honoured_task_ids
    if look_up is not None and wanted.task_ids is not UNSET:
        tasks = look_up(request, list(dict.fromkeys(wanted.task_ids)))
    return SubscriptionFilter(
        **lists, resource_subscriptions=uris or UNSET, task_ids=tasks or UNSET
    )


def _known(app: ServerCore, uris: dict[str, None]) -> Iterator[str]:
    if app.catalog.offers("resources.subscribe"):
        yield from (uri for uri in uris if next(app.catalog.find_resources(uri), None) is not None)


def _topics(honoured: SubscriptionFilter) -> Iterator[Topic]:
    for what in LISTS:
        if getattr(honoured, f"{what}_list_changed") is True:
            yield list_topic(what)
    yield from map(resource_topic, _given(honoured.resource_subscriptions))
    yield from map(task_topic, _given(honoured.task_ids))


def _given(names: list[str] | UnsetType) -> list[str]:
    return [] if names is UNSET else names
