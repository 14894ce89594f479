"""What a server asks of its client: roots, a message of its model, an answer of its user.

Only the handshake revisions have this. Each question has a task of its own, so a user who
thinks for an hour keeps nobody waiting, and a server that changes its mind can say so.

The rules that live here, and only here:

* `ping` is answered at once, whatever else goes on.  [MCP 2025-11-25, basic/utilities/ping]
* What is not handled is "method not found".                   [JSON-RPC 2.0, section 5.1]
* A question that was cancelled is not answered.
  [MCP 2025-11-25, basic/utilities/cancellation]
* What a handler raises stays here: the server gets a fixed text, or what `Refusal` chose.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import UNSET, UnsetType

from ..errors import NOTHING, LocalProtocolError, Refusal
from ..jsonrpc.faults import UNREADABLE
from ..jsonrpc.inbox import Asked
from ..jsonrpc.messages import ErrorObject
from ..jsonrpc.named import named_error
from ..jsonrpc.peer import Peer
from ..jsonrpc.policy import Policy
from ..mcp.shaping import narrow
from ..mcp.tables import params_type
from ..mcp.types import (
    CancelledNotificationParams,
    ClientCapabilities,
    ClientCapabilitiesElicitation,
    ClientCapabilitiesRoots,
    ClientCapabilitiesSampling,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    Root,
)
from ..spec import lookup
from ..spec.kinds import ErrorKind
from .failures import log, outlast, report
from .reading import decoder

__all__ = ["Answers", "Handlers", "capabilities"]

RootsGiven: TypeAlias = Iterable[Root | str]
Roots: TypeAlias = RootsGiven | Callable[[], RootsGiven | Awaitable[RootsGiven]]
OnSample: TypeAlias = Callable[
    [CreateMessageRequestParams], CreateMessageResult | Awaitable[CreateMessageResult]
]
Elicited: TypeAlias = ElicitResult | dict[str, Any] | None
OnElicit: TypeAlias = Callable[[ElicitRequestParams], Elicited | Awaitable[Elicited]]

# A server decides how much it asks at a time; nobody has so many users to answer.
AT_ONCE: Final = 100


class Handlers(NamedTuple):
    """What a client can answer, and by whom."""

    roots: Roots | None = None
    on_sample: OnSample | None = None
    on_elicit: OnElicit | None = None


def capabilities(
    handlers: Handlers, experimental: dict[str, dict[str, Any]] | None, revision: str
) -> ClientCapabilities:
    """Return what to declare to a server of `revision`."""
    own = UNSET if experimental is None else experimental
    asking = lookup.method("roots/list", revision)
    if asking is None or asking.form != "wire":
        # A server of the per-request era asks inside its results, which this client does not
        # answer yet: it declares none of what it would then be asked for.
        return ClientCapabilities(experimental=own)
    forms: dict[str, Any] | UnsetType = (
        {} if lookup.capability("elicitation.form", revision) is not None else UNSET
    )
    found = ClientCapabilities(
        elicitation=(
            UNSET if handlers.on_elicit is None else ClientCapabilitiesElicitation(form=forms)
        ),
        experimental=own,
        roots=UNSET if handlers.roots is None else ClientCapabilitiesRoots(list_changed=True),
        sampling=UNSET if handlers.on_sample is None else ClientCapabilitiesSampling(),
    )
    return narrow(found, revision)


class Answers:
    """Answers what one server asks."""

    __slots__ = ("_handlers", "_running")

    def __init__(self, handlers: Handlers) -> None:
        found: dict[str, Callable[[Any], Awaitable[Any]]] = {}
        if handlers.roots is not None:
            found["roots/list"] = _roots_from(handlers.roots)
        if handlers.on_sample is not None:
            found["sampling/createMessage"] = _sampling_by(handlers.on_sample)
        if handlers.on_elicit is not None:
            found["elicitation/create"] = _asking_by(handlers.on_elicit)
        self._handlers = found
        self._running: dict[Asked, asyncio.Task[None]] = {}

    def take(self, asked: Asked, peer: Peer, policy: Policy) -> None:
        """Answer a request, now or later."""
        if asked.method == "ping":
            peer.answer(asked, {})
            return
        handler = self._handlers.get(asked.method)
        kind = params_type(asked.method, policy.revision)
        if handler is None or kind is None:
            peer.fail(asked, named_error(ErrorKind.METHOD_NOT_FOUND, policy=policy))
            return
        if len(self._running) >= AT_ONCE:
            peer.fail(asked, named_error(ErrorKind.OVERLOADED, policy=policy))
            return
        try:
            params = decoder(kind)(b"{}" if asked.params is UNSET else asked.params)
        except UNREADABLE:
            peer.fail(asked, named_error(ErrorKind.INVALID_PARAMS, policy=policy))
            return
        work = self._answer(asked, peer, policy, handler, params)
        task = asyncio.get_running_loop().create_task(work)
        self._running[asked] = task
        task.add_done_callback(lambda _: self._running.pop(asked, None))

    def cancel(self, params: Any, peer: Peer) -> None:
        """Stop answering what the server no longer wants to know."""
        try:
            note = decoder(CancelledNotificationParams)(b"{}" if params is UNSET else params)
        except UNREADABLE:
            return  # a cancel that cannot be read cancels nothing
        asked = None if note.request_id is UNSET else peer.inbox.find(note.request_id)
        if asked is not None:
            peer.drop(asked)
            task = self._running.get(asked)
            if task is not None:
                task.cancel()

    def stop(self) -> None:
        """Stop all that runs: there is nobody to answer any more."""
        current = _current_task()
        for task in list(self._running.values()):
            if task is not current:
                task.cancel()

    async def end(self) -> None:
        """Wait until all that was stopped has ended."""
        await outlast(self._running.values())

    async def _answer(
        self,
        asked: Asked,
        peer: Peer,
        policy: Policy,
        handler: Callable[[Any], Awaitable[Any]],
        params: Any,
    ) -> None:
        try:
            result = narrow(await handler(params), policy.revision)
            peer.answer(asked, result)
        except LocalProtocolError as error:
            report(error, f"the answer to {asked.method}")
            peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))
        except Refusal as refusal:
            peer.fail(asked, _refused(refusal, policy))
        except Exception as error:  # noqa: BLE001  # somebody else's code
            report(error, f"the handler of {asked.method}")
            peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))


def _refused(refusal: Refusal, policy: Policy) -> ErrorObject:
    data = UNSET if refusal.data is NOTHING else refusal.data
    if isinstance(refusal.kind, int):
        return ErrorObject(refusal.kind, refusal.message or "Refused", data)
    try:
        return named_error(refusal.kind, policy=policy, message=refusal.message, data=data)
    except LookupError as error:
        log.error("a handler refused with a symbol that has no number: %s", error)
        return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


async def _call(handler: Callable[..., Any], *args: Any) -> Any:
    """Return what a handler gives; a plain function may wait for a user, so it gets a thread."""
    if inspect.iscoroutinefunction(handler):
        return await handler(*args)
    given = await asyncio.to_thread(handler, *args)
    return await given if inspect.isawaitable(given) else given


def _roots_from(roots: Roots) -> Callable[[Any], Awaitable[ListRootsResult]]:
    async def answer(_: Any) -> ListRootsResult:
        given = roots() if callable(roots) else roots
        if inspect.isawaitable(given):
            given = await given
        return ListRootsResult([root if isinstance(root, Root) else Root(root) for root in given])

    return answer


def _sampling_by(handler: OnSample) -> Callable[[Any], Awaitable[CreateMessageResult]]:
    async def answer(params: CreateMessageRequestParams) -> CreateMessageResult:
        given = await _call(handler, params)
        if not isinstance(given, CreateMessageResult):
            raise TypeError(f"on_sample returns a CreateMessageResult, not {type(given).__name__}")
        return given

    return answer


def _asking_by(handler: OnElicit) -> Callable[[Any], Awaitable[ElicitResult]]:
    async def answer(params: ElicitRequestParams) -> ElicitResult:
        if params.mode == "url":
            raise Refusal(ErrorKind.INVALID_PARAMS, "this client declared forms only")
        given = await _call(handler, params)
        if given is None:
            return ElicitResult("decline")
        if isinstance(given, dict):
            return ElicitResult("accept", content=given)
        if not isinstance(given, ElicitResult):
            raise TypeError(
                f"on_elicit returns an ElicitResult, a dict or None, not {type(given).__name__}"
            )
        return given

    return answer


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None  # outside of a loop nothing of ours is running
