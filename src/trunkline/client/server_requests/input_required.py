"""Results of type `input_required`: multi-round-trip requests (MRTR).

In the per-request era a server sends no requests. It returns input requests as a result, and the
client sends the original request again with the answers. The caller sees one call.

The rules that live here, and only here:

* Only some methods may return `input_required`; the rows say which.
* All input requests are answered, or the request is not sent again: there is no place for an
  error among the answers.
* The request is repeated unchanged, under a new id, with the answers under the server's keys and
  the `requestState` of this round, byte for byte. Nothing of one round goes into another, or into
  another request.
* A result with a state and no input requests is a request to retry: after 0.05 s, up to 2 s.
* Each repetition has the full timeout of the call. The time a user takes does not count.
* After `max_rounds` repetitions the call fails.
                                            [MCP 2026-07-28, basic/patterns/mrtr]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from ...concurrency.backoff import backoff
from ...concurrency.thread_pool import NoThreadFree
from ...errors import InputRequestFailed, RemoteProtocolError, RequestError, TooManyRoundTrips
from ...jsonrpc.codec.decoders import UNREADABLE
from ...jsonrpc.codec.tokenizer import pointer
from ...jsonrpc.messages import Shown
from ...mcp.tables import result_types
from ...mcp.types import InputRequiredResult
from ...spec import lookup
from ..session.decode import INPUT_REQUIRED, decoder, result_type, where_and_what
from ..session.diagnostics import current_task
from ..session.session import OutgoingRequest, Session
from .form_validation import FormMismatch
from .handlers import ClientHandlers

__all__ = ["InputRequest", "InputRequiredResolver", "fulfil"]

# Sends a request on a session, or on the one that replaces it.
Ask: TypeAlias = Callable[[Session, OutgoingRequest], Awaitable[tuple[Raw, Session]]]

# How many handlers of one round run at a time; the server decides how many requests there are.
_MAX_CONCURRENT_HANDLERS: Final = 16

# The backoff of a result without input requests.
_FIRST_DELAY_S: Final = 0.05
_MAX_DELAY_S: Final = 2.0


class InputRequest(Shown, Struct, frozen=True):
    """One of the `inputRequests` of a result."""

    method: str
    params: Raw | UnsetType = UNSET


class _InputRequired(Shown, Struct, frozen=True):
    # Some servers write null for an absent member.
    requests: dict[str, InputRequest] | None = field(default=None, name="inputRequests")
    # Not decoded: it is sent back byte for byte.
    state: Raw | UnsetType = field(default=UNSET, name="requestState")


class InputRequiredResolver:
    """Completes results of the type `input_required`."""

    __slots__ = ("_ask", "_most")

    def __init__(self, ask: Ask, most: int) -> None:
        self._ask = ask
        self._most = most

    async def resolve(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Return the first result of another type.

        Raises:
            RemoteProtocolError: the server may not request input here, or not this input.
            InputRequestFailed: a handler failed; the request was not sent again.
            TooManyRoundTrips: `max_rounds` was exceeded.
            RequestAborted, PeerError: from any of the requests.
        """
        if InputRequiredResult not in result_types(request.method, session.revision):
            raise RemoteProtocolError(
                "mcp.result.input-not-allowed",
                where="/resultType",
                got=INPUT_REQUIRED,
                expected=f"a complete result: a server asks for nothing more on {request.method}",
            )
        delays = backoff(_FIRST_DELAY_S, _MAX_DELAY_S)
        for _ in range(self._most):
            wanted = _read(raw)
            if wanted.requests:
                answers = await fulfil(session, wanted.requests, request.method)
            else:
                answers = {}
                await session.pause(next(delays))
            raw, session = await self._ask(session, _again(request, answers, wanted.state))
            if result_type(raw) != INPUT_REQUIRED:
                return raw
        raise TooManyRoundTrips(
            f"the server asked for more input after {self._most} rounds of it",
            method=request.method,
        )


async def fulfil(
    session: Session, requests: Mapping[str, InputRequest], method: str
) -> dict[str, Any]:
    """Return the answers to all input requests by key; `method` is the original request.

    Raises:
        RemoteProtocolError: one is not allowed; no handler was called.
        InputRequestFailed: a handler failed; the others are cancelled.
        ConnectionLost: the session has ended.
    """
    session.check_open(method)
    answering, revision = session.handlers, session.revision
    read = {
        key: (asking.method, _params(answering, key, asking, revision))
        for key, asking in requests.items()
    }
    answers: dict[str, Any] = {}
    left = iter(read.items())

    async def work() -> None:
        for key, (asked, params) in left:
            answers[key] = await _answered(answering, key, asked, params, session, method)

    workers = min(_MAX_CONCURRENT_HANDLERS, len(read))
    await _outcome(session, [answering.begin(work()) for _ in range(workers)], method)
    return {key: answers[key] for key in read}


async def _outcome(session: Session, tasks: list[asyncio.Task[None]], method: str) -> None:
    """Wait until all tasks are done, one has failed, or the session has ended."""
    over = session.over
    waiting: set[asyncio.Future[Any]] = set(tasks)
    try:
        while waiting:
            done, _ = await asyncio.wait({*waiting, over}, return_when=asyncio.FIRST_COMPLETED)
            session.check_open(method)
            for task in done:
                task.result()
            waiting -= done
    finally:
        if session.is_open:
            # The end of a session cancels them, except the one that caused it.
            for each in tasks:
                each.cancel()


def _params(answering: ClientHandlers, key: str, asking: InputRequest, revision: str) -> Any:
    """Return the decoded params of an input request that this client has declared."""
    where = pointer(("inputRequests", key))
    row = lookup.method(asking.method, revision)
    if row is None or row.form != "inside-result":
        rule = "mcp.rounds.kinds"
        expected = "an elicitation, a sampling or a listing of roots"
    elif not answering.answers(asking.method):
        rule = "mcp.rounds.declared-only"
        expected = f"nothing of this kind: this client has not declared {row.capability}"
    else:
        return answering.read(asking.method, asking.params, revision, f"{where}/params")
    raise RemoteProtocolError(rule, where=f"{where}/method", got=asking.method, expected=expected)


async def _answered(
    answering: ClientHandlers, key: str, asked: str, params: Any, session: Session, method: str
) -> Any:
    """Return the answer of a handler, or raise `InputRequestFailed`."""
    cause: BaseException
    try:
        return await answering.answer(asked, params, session.revision)
    except asyncio.CancelledError as error:
        task = current_task()
        if task is None or task.cancelling():
            raise  # by us: the caller is gone, or the connection
        cause, reason = error, "the handler was cancelled"
    except FormMismatch as error:
        cause, reason = error, f"the answer does not fit the form: {error}"
    except RequestError as error:
        cause, reason = error, "the handler refused to answer"
    except NoThreadFree as error:
        cause, reason = error, "too many handlers are at work"
    except Exception as error:  # noqa: BLE001  # application code
        cause, reason = error, f"the handler raised {type(error).__name__}"
    raise InputRequestFailed(reason, method=method, asked=asked, key=key) from cause


def _read(raw: Raw) -> _InputRequired:
    try:
        found: _InputRequired = decoder(_InputRequired)(raw)
    except UNREADABLE as error:
        where, what = where_and_what(error)
    else:
        state = b"null" if found.state is UNSET else bytes(found.state)
        if state == b"null":
            found = _InputRequired(found.requests)
        elif not state.startswith(b'"'):
            raise RemoteProtocolError(
                "mcp.type.json-type", where="/requestState", expected="a text"
            )
        if not found.requests and found.state is UNSET:
            raise RemoteProtocolError(
                "mcp.result.input-empty", expected="inputRequests, requestState or both"
            )
        return found
    raise RemoteProtocolError(
        "mcp.type.json-type", where=where, expected=f"a result that asks for input: {what}"
    )


def _again(
    request: OutgoingRequest, answers: dict[str, Any], state: Raw | UnsetType
) -> OutgoingRequest:
    """Return the original request with the answers and the state of one round."""
    # Params without a Struct have wire names.
    is_own = request.kind is None
    responses = "inputResponses" if is_own else "input_responses"
    named_state = "requestState" if is_own else "request_state"
    fields = dict(request.fields)
    fields.pop(responses, None)
    fields.pop(named_state, None)
    if answers:
        fields[responses] = answers
    if state is not UNSET:
        fields[named_state] = state
    return request._replace(fields=fields)
