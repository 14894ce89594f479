"""What a server asks of its client: roots, a message of its model, an answer of its user.

Only the handshake revisions have this. Each question has a task of its own, so a user who
thinks for an hour keeps nobody waiting, and a server that changes its mind can say so.

The rules that live here, and only here:

* `ping` is answered at once, whatever else goes on.  [MCP 2025-11-25, basic/utilities/ping]
* What is not handled is "method not found".                   [JSON-RPC 2.0, section 5.1]
* A question that was cancelled is not answered.
  [MCP 2025-11-25, basic/utilities/cancellation]
* Any other is, also when its handler is cancelled by something else than the server.
* What a handler raises stays here: the server gets a fixed text, or what `Refusal` chose.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
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
from .failures import Complaints, current_task, outlast
from .reading import decoder
from .threads import NoThreadFree, Threads

__all__ = ["AT_ONCE", "Answers", "Handlers", "capabilities"]

RootsGiven: TypeAlias = Iterable[Root | str]
Roots: TypeAlias = RootsGiven | Callable[[], RootsGiven | Awaitable[RootsGiven]]
OnSample: TypeAlias = Callable[
    [CreateMessageRequestParams], CreateMessageResult | Awaitable[CreateMessageResult]
]
Elicited: TypeAlias = ElicitResult | dict[str, Any] | None
OnElicit: TypeAlias = Callable[[ElicitRequestParams], Elicited | Awaitable[Elicited]]

# Calls a handler, wherever it has to run.
_Call: TypeAlias = Callable[..., Awaitable[Any]]

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

    __slots__ = ("_complaints", "_handlers", "_running")

    def __init__(self, handlers: Handlers, threads: Threads, complaints: Complaints) -> None:
        found: dict[str, Callable[[Any], Awaitable[Any]]] = {}
        call = partial(_call, threads)
        if handlers.roots is not None:
            found["roots/list"] = _roots_from(handlers.roots, call)
        if handlers.on_sample is not None:
            found["sampling/createMessage"] = _sampling_by(handlers.on_sample, call)
        if handlers.on_elicit is not None:
            found["elicitation/create"] = _asking_by(handlers.on_elicit, call)
        self._handlers = found
        self._complaints = complaints
        self._running: dict[Asked, asyncio.Task[None]] = {}

    def take(self, asked: Asked, peer: Peer, policy: Policy, *, is_busy: bool = False) -> None:
        """Answer a request, now or later; no handler is called while the line `is_busy`."""
        if asked.method == "ping":
            peer.answer(asked, {})
            return
        handler = self._handlers.get(asked.method)
        kind = params_type(asked.method, policy.revision)
        if handler is None or kind is None:
            peer.fail(asked, named_error(ErrorKind.METHOD_NOT_FOUND, policy=policy))
            return
        if is_busy or len(self._running) >= AT_ONCE:
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
        current = current_task()
        for task in list(self._running.values()):
            if task is not current:
                task.cancel()

    async def end(self, caller: asyncio.Task[Any] | None = None) -> None:
        """Wait until all that was stopped has ended, apart from who waits for this."""
        await outlast(task for task in self._running.values() if task is not caller)

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
            self._fail(asked, peer, policy, error, f"the answer to {asked.method}")
        except Refusal as refusal:
            peer.fail(asked, self._refused(refusal, policy))
        except NoThreadFree:
            peer.fail(asked, named_error(ErrorKind.OVERLOADED, policy=policy))
        except asyncio.CancelledError as error:
            task = current_task()
            if task is None or task.cancelling():
                raise  # by us: the server said so, or the connection has ended
            self._fail(asked, peer, policy, error, f"the handler of {asked.method}")
        except Exception as error:  # noqa: BLE001  # somebody else's code
            self._fail(asked, peer, policy, error, f"the handler of {asked.method}")

    def _fail(
        self, asked: Asked, peer: Peer, policy: Policy, error: BaseException, what: str
    ) -> None:
        self._complaints.report(error, what)
        peer.fail(asked, named_error(ErrorKind.INTERNAL_ERROR, policy=policy))

    def _refused(self, refusal: Refusal, policy: Policy) -> ErrorObject:
        data = UNSET if refusal.data is NOTHING else refusal.data
        if isinstance(refusal.kind, int):
            return ErrorObject(refusal.kind, refusal.message or "Refused", data)
        try:
            return named_error(refusal.kind, policy=policy, message=refusal.message, data=data)
        except LookupError as error:
            self._complaints.report(error, "a handler's refusal, whose symbol has no number,")
            return named_error(ErrorKind.INTERNAL_ERROR, policy=policy)


async def _call(threads: Threads, handler: Callable[..., Any], *args: Any) -> Any:
    """Return what a handler gives; a plain function may wait for a user, so it gets a thread."""
    if inspect.iscoroutinefunction(handler):
        return await handler(*args)
    given = await threads.run(partial(handler, *args))
    return await given if inspect.isawaitable(given) else given


def _roots_from(roots: Roots, call: _Call) -> Callable[[Any], Awaitable[ListRootsResult]]:
    async def answer(_: Any) -> ListRootsResult:
        given: RootsGiven = await call(roots) if callable(roots) else roots
        return ListRootsResult([root if isinstance(root, Root) else Root(root) for root in given])

    return answer


def _sampling_by(handler: OnSample, call: _Call) -> Callable[[Any], Awaitable[CreateMessageResult]]:
    async def answer(params: CreateMessageRequestParams) -> CreateMessageResult:
        given = await call(handler, params)
        if not isinstance(given, CreateMessageResult):
            raise TypeError(f"on_sample returns a CreateMessageResult, not {type(given).__name__}")
        return given

    return answer


def _asking_by(handler: OnElicit, call: _Call) -> Callable[[Any], Awaitable[ElicitResult]]:
    async def answer(params: ElicitRequestParams) -> ElicitResult:
        if params.mode == "url":
            raise Refusal(ErrorKind.INVALID_PARAMS, "this client declared forms only")
        given = await call(handler, params)
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
