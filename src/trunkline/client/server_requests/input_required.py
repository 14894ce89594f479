"""Requests that are sent again, with answers to what the server asked first.

A server of the per-request era does not send requests. It answers a request with questions, and
the client sends the request again with their answers. To the caller it is one call.

The rules that live here, and only here:

* Only some methods may be answered like this; the rows say which.
* All questions are answered, or the request is not sent again: there is no place for an error
  among the answers.
* The request is sent as it was, under a new id, with the answers by the server's own keys, and
  with the state of this round, byte for byte, if there was one. What one round brought goes
  into no other, and into no other request.
* A server that asks for nothing and names a state wants to be asked again: soon, then less so.
* Each sending has the time that the call has. The time a user takes counts for nothing.
* Who asks on and on is left.
                                            [MCP 2026-07-28, basic/patterns/mrtr]
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType, field

from ...concurrency.thread_pool import NoThreadFree
from ...errors import InputRequestFailed, RemoteProtocolError, RequestError, TooManyRoundTrips
from ...jsonrpc.decode_errors import UNREADABLE
from ...jsonrpc.tokenizer import pointer
from ...mcp.tables import result_types
from ...mcp.types import InputRequiredResult
from ...spec import lookup
from ..diagnostics import current_task
from ..requests.decode import INPUT_REQUIRED, decoder, result_type, where_and_what
from ..session import OutgoingRequest, Session
from .form_validation import FormMismatch
from .handlers import ClientHandlers

__all__ = ["InputRequest", "InputRequiredResolver", "fulfil"]

# Sends a request by a connection, or by the one that takes over from it.
Ask: TypeAlias = Callable[[Session, OutgoingRequest], Awaitable[tuple[Raw, Session]]]

# How many questions of one round are answered at a time. The server decides how many there are;
# what a user can look at side by side is less.
_SIDE_BY_SIDE: Final = 16

# How long to wait before a request is sent again for which nothing was asked: the first time
# hardly at all, and never so long that a server that is ready waits for us.
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0


class InputRequest(Struct, frozen=True):
    """One request, as it stands among the `inputRequests` of a result."""

    method: str
    params: Raw | UnsetType = UNSET


class _InputRequired(Struct, frozen=True):
    """What a server wants before it answers."""

    # Some servers write null for what is absent.
    requests: dict[str, InputRequest] | None = field(default=None, name="inputRequests")
    # Not read: it goes back as it came.
    state: Raw | UnsetType = field(default=UNSET, name="requestState")


class InputRequiredResolver:
    """Completes results of the type `input_required`."""

    __slots__ = ("_ask", "_most")

    def __init__(self, ask: Ask, most: int) -> None:
        self._ask = ask
        self._most = most

    async def resolve(self, session: Session, request: OutgoingRequest, raw: Raw) -> Raw:
        """Return what a request is answered with once the server has asked for nothing more.

        Raises:
            RemoteProtocolError: the server may not ask, or not this.
            InputRequestFailed: a question could not be answered; the request was not sent again.
            TooManyRoundTrips: the server did not stop asking.
            RequestAborted, PeerError: of any of the requests.
        """
        if InputRequiredResult not in result_types(request.method, session.revision):
            raise RemoteProtocolError(
                "mcp.result.input-not-allowed",
                where="/resultType",
                got=INPUT_REQUIRED,
                expected=f"a complete result: a server asks for nothing more on {request.method}",
            )
        waits = _waits()
        for _ in range(self._most):
            wanted = _read(raw)
            if wanted.requests:
                answers = await fulfil(session, wanted.requests, request.method)
            else:
                answers = {}
                await session.pause(next(waits))
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
    """Return the answers to all questions, by their keys; `method` is what they are about.

    Raises:
        RemoteProtocolError: the server may not ask this; nobody was bothered with any of it.
        InputRequestFailed: one could not be answered; the others are not waited for.
        ConnectionLost: there is nobody to give the answers to.
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

    workers = min(_SIDE_BY_SIDE, len(read))
    await _outcome(session, [answering.begin(work()) for _ in range(workers)], method)
    return {key: answers[key] for key in read}


async def _outcome(session: Session, tasks: list[asyncio.Task[None]], method: str) -> None:
    """Wait until all tasks have ended well, one has failed, or the connection is gone."""
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
            # Otherwise the end of the session has stopped them, but for who brought it about.
            for each in tasks:
                each.cancel()


def _params(answering: ClientHandlers, key: str, asking: InputRequest, revision: str) -> Any:
    """Return the params of a question that this client has declared it would answer."""
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
    """Return an answer, or raise what the caller is told when there is none."""
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
    except Exception as error:  # noqa: BLE001  # somebody else's code: the caller is told
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
    """Return a request as its caller put it, with the answers and the state of one round."""
    # Params that a caller wrote down himself have the names of the wire.
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


def _waits() -> Iterator[float]:
    wait = _FIRST_WAIT
    while True:
        yield wait
        wait = min(2 * wait, _LONGEST_WAIT)
