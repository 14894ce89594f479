"""Multi round-trip requests (MRTR) of 2026-07-28: the handler is replayed with the responses.

A server of that revision sends no requests. When a handler asks for something that has no response
yet, the request is answered with the questions (`input_required`) and the handler is suspended. The
client sends the request again with the responses, and the handler runs from the start. The results
of earlier runs travel in between as a sealed `requestState` (`request_state.py`), so that any
process with the keys can continue, and none keeps state.

The rules that live here, and only here:

* A response belongs to the question it was given to: the state holds a digest of the question with
  its key, and a handler that asks something else under that key is rejected. Questions of tasks
  that the handler started are matched by digest alone, because their order may differ.
* A round trip ends one turn of the event loop after its first open question, and after running
  `once` calls have finished: questions asked together travel together, and no work is lost.
* The state is valid for the same server, caller, method and params, for `state_ttl` seconds. Reuse
  is not prevented.                          [MCP 2026-07-28, basic/patterns/mrtr]
* A handler that does not end when suspended is cancelled: its client waits for the questions.
* A response to a question that was not asked is ignored; a question without one is asked again.
* In a call without a state, responses belong to the questions whose keys the handler gives. The
  client could as well send the call twice; only the check for a changed question is lost.
* A call over its limit of round trips, or with a state over its size limit, is rejected.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw, Struct, ValidationError
from msgspec.json import Decoder, Encoder

from ...engine.handler_run import HandlerRun, InputQuestion, SuspendHandler, handler_run_of
from ...errors import RemoteProtocolError, RequestAborted, RequestError
from ...jsonrpc.messages import Shown
from ...mcp.names import official
from ...mcp.tables import result_types
from ...mcp.types import (
    CreateMessageRequest,
    ElicitRequest,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
)
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from .. import errors
from ..dispatch.params import PARAMS, ToolCall, members_of
from . import capabilities
from .request_state import InvalidSeal, StateSealer

if TYPE_CHECKING:
    from ...engine.limits import ServerLimits
    from ..dispatch.request import ServerRequest

__all__ = [
    "InvalidRequestState",
    "ReplayMismatch",
    "RequestStateTooLarge",
    "RoundTrip",
    "RoundTripLimitExceeded",
    "RoundTrips",
]

_log: Final = logging.getLogger("trunkline.server")

# Bound into the seal together with the server name: other sealed texts do not open as a state.
_SEAL_PURPOSE: Final = b"requestState of "
# For a suspended handler to clean up before it is cancelled.
_SUSPEND_TIMEOUT_S: Final = 1.0
# Generated keys of questions asked by tasks that the handler started.
_BRANCH_KEY: Final = re.compile(r"([a-z]+-[0-9]+\.)[0-9]+")
# Params members that differ between a request and its retry.
_RETRY_MEMBERS: Final = frozenset(("_meta", "inputResponses", "requestState"))


class InvalidRequestState(RequestError):
    """A `requestState` that this server did not issue, or for another request, or that expired."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorKind.INVALID_REQUEST_STATE, f"Invalid request state: {text}")


class InvalidInputResponses(RequestError):
    """Responses that do not have the result type of their question."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorKind.INVALID_INPUT_RESPONSES, f"Invalid input responses: {text}")


class ReplayMismatch(InvalidRequestState):
    """The replayed handler asks a different question under a key that was answered."""


class RoundTripLimitExceeded(RequestError):
    """A handler needs more round trips than one call may have."""


class RequestStateTooLarge(RequestError):
    """The `requestState` of a call exceeds its size limit."""


class _State(Shown, Struct, frozen=True, array_like=True):
    """The content of a `requestState`."""

    expires: int
    # A digest of the method and the params.
    request: str
    # Of round trips so far.
    number: int
    # Progress and log notifications that the client has received.
    said: int
    # By key: the digest of the question, and the response.
    answers: dict[str, tuple[str, Raw]]
    # Results of `once`, by key.
    done: dict[str, Raw]
    # The open questions, by key: digest and method.
    asked: dict[str, tuple[str, str]]


_sorted: Final = Encoder(order="sorted")
_encode: Final = Encoder().encode
_read_state: Final = Decoder(_State).decode
_read_text: Final = Decoder(str).decode
_read_tool_call: Final = Decoder(ToolCall).decode
# A number with a decimal point keeps its text, which a handler may read as a Decimal. The member
# name is a noncharacter, so that no other JSON has the same digest.
_any: Final = Decoder(float_hook=lambda text: {"\ufdd0": text}).decode

_NO_RESPONSES: Final[Mapping[str, Raw]] = {}

_REQUESTS: Final[Mapping[str, type[InputRequest]]] = {
    "elicitation/create": ElicitRequest,
    "sampling/createMessage": CreateMessageRequest,
    "roots/list": ListRootsRequest,
}


class RoundTrips:
    """Keys, limits and clock of one server's multi round-trip requests."""

    __slots__ = ("_now", "_use", "limits", "seal")

    def __init__(
        self,
        seal: StateSealer,
        limits: ServerLimits,
        *,
        server: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self.seal = seal
        self.limits = limits
        self._use = _SEAL_PURPOSE + server.encode("utf-8", "surrogatepass")
        self._now = now

    @property
    def is_secret(self) -> bool:
        """Whether the `requestState` is encrypted."""
        return self.seal.is_secret

    def begin(self, request: ServerRequest, run: HandlerRun) -> RoundTrip:
        """Return the first round trip of a call."""
        run.round = made = RoundTrip(self, request, None, {})
        return made

    def resume(self, request: ServerRequest, responses: Any, state: Any) -> None:
        """Prepare the replay of a handler; both arguments are raw JSON or UNSET.

        Raises:
            RequestError: the state or a response is invalid; the text says why.
        """
        try:
            given = {} if responses is UNSET else members_of(responses)
        except (ValidationError, DecodeError):
            raise InvalidInputResponses("they are not an object") from None
        run = handler_run_of(request)
        if state is UNSET:
            run.asker = run.round = RoundTrip(self, request, None, {}, given)
            return
        opened = self._open(request, state)
        answers = dict(opened.answers)
        for key, (digest, method) in opened.asked.items():
            if key in given:
                _check_answer(request, key, method, given[key])
                answers[key] = digest, given[key]
        run.heard = opened.said
        run.asker = run.round = RoundTrip(self, request, opened, answers)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "%s %s: the handler runs again from its start, with %d of its questions answered; "
                "ctx.once keeps code from being repeated",
                request.method,
                show(request.name),
                len(answers),
            )

    def _open(self, request: ServerRequest, state: Raw) -> _State:
        try:
            text = _read_text(state)
        except (ValidationError, DecodeError):
            raise InvalidRequestState("it is not a string") from None
        if len(text) > self.limits.state_size:
            raise InvalidRequestState("it is longer than any this server issues")
        try:
            found: _State = _read_state(self.seal.open(text, self._bound_to(request)))
        except InvalidSeal as error:
            raise InvalidRequestState(str(error)) from None
        except (ValidationError, DecodeError):
            # Sealed with our key by a release with another format.
            raise InvalidRequestState("it was made by another version of this server") from None
        if found.expires < self._now():
            raise InvalidRequestState("it has expired; begin again")
        if found.request != request_digest(request):
            raise InvalidRequestState("it belongs to another request")
        return found

    def _bound_to(self, request: ServerRequest) -> bytes:
        # To another principal, or another tenant, the state of one is as a forged one.
        return b"%b\0%b" % (self._use, (request.principal_key or "").encode())

    def sealed(self, request: ServerRequest, state: _State) -> str:
        """Return the `requestState`, for the principal of a call.

        Raises:
            RequestStateTooLarge: it exceeds `limits.state_size`.
        """
        text = self.seal.seal(_encode(state), self._bound_to(request))
        limit = self.limits.state_size
        if len(text) > limit:
            text = f"The request state has {len(text)} characters; the limit is {limit}"
            raise RequestStateTooLarge(ErrorKind.REQUEST_STATE_TOO_LARGE, text)
        return text

    def expiry(self) -> int:
        """Return when a state issued now expires, in seconds since the epoch."""
        return round(self._now() + self.limits.state_ttl)


class RoundTrip:
    """One run of a handler, from the responses it starts with to the questions it ends with."""

    __slots__ = (
        "_answers",
        "_cancel_timer",
        "_done",
        "_is_ending",
        "_number",
        "_open",
        "_request",
        "_rounds",
        "_unasked",
        "_under_way",
        "_used",
        "_waiting",
        "is_over",
    )

    def __init__(
        self,
        rounds: RoundTrips,
        request: ServerRequest,
        state: _State | None,
        answers: dict[str, tuple[str, Raw]],
        unasked: Mapping[str, Raw] = _NO_RESPONSES,
    ) -> None:
        self._rounds = rounds
        self._request = request
        self._answers = answers
        # Responses of a call without a state.
        self._unasked = unasked
        self._done: dict[str, Raw] = {} if state is None else dict(state.done)
        self._number = 0 if state is None else state.number
        # Open questions by key, and the futures of all that wait for a response.
        self._open: dict[str, InputQuestion] = {}
        self._waiting: list[asyncio.Future[Raw]] = []
        # Running `once` calls.
        self._under_way = 0
        self._is_ending = False
        # Keys of responses used in this run.
        self._used: set[str] = set()
        # Cancels a handler that does not end when suspended.
        self._cancel_timer: asyncio.TimerHandle | None = None
        self.is_over = False

    async def ask(self, question: InputQuestion) -> Raw:
        """Return the client's response, or suspend the handler with the question."""
        known = self.known(question)
        if known is not None:
            return known
        key = self._key_of(question, question.digest())
        self._check_open(question)
        self._check_allowed()
        self._open[key] = question
        if not self._is_ending:
            self._is_ending = True
            asyncio.get_running_loop().call_soon(self._end)
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    def known(self, question: InputQuestion) -> Raw | None:
        """Return the client's response to a question, or None.

        Raises:
            ReplayMismatch: the response belongs to a different question.
            InvalidInputResponses: the response of a call without a state is malformed.
        """
        digest = question.digest()
        key = self._key_of(question, digest)
        known = self._answers.get(key)
        if known is None and question.has_given_key and key in self._unasked:
            _check_answer(self._request, key, question.method, self._unasked[key])
            known = self._answers[key] = digest, self._unasked[key]
        if known is None:
            return None
        if known[0] != digest:
            self._reject_changed(key)
        self._used.add(key)
        return known[1]

    def done(self, key: str) -> Raw | None:
        """Return the result of `once` under a key, in this run or an earlier one."""
        return self._done.get(key)

    async def give_way(self) -> None:
        """Suspend the caller if questions are about to go out; otherwise return at once."""
        if not self._is_ending:
            return
        self._check_open()
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _key_of(self, question: InputQuestion, digest: str) -> str:
        """Return the key of a question; in a task of the handler, that of an equal answered one."""
        if not question.branch:
            return question.key
        for key, (answered, _) in self._answers.items():
            if answered == digest and key not in self._used and _BRANCH_KEY.fullmatch(key):
                return key
        # Another task may have used the key in an earlier run.
        taken, key = self._answers.keys() | self._open.keys(), question.key
        while key in taken:
            head, number = key.rsplit(".", 1)
            key = f"{head}.{int(number) + 1}"
        return key

    def _check_open(self, question: InputQuestion | None = None) -> None:
        request = self._request
        if request.message not in request.connection.peer.incoming:
            method = "" if question is None else question.method
            raise RequestAborted("the request it belongs to has ended", method=method)
        if self.is_over:
            raise SuspendHandler

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Return the result of an earlier run, or run `work` and record its result."""
        if key in self._done:
            return self._done[key]
        self._check_open()  # otherwise the result could not be recorded any more
        self._under_way += 1
        try:
            self._done[key] = found = await work()
        finally:
            self._under_way -= 1
            if self._is_ending:
                # After the awaiting code has continued, which may ask more questions.
                asyncio.get_running_loop().call_soon(self._end)
        return found

    def _end(self) -> None:
        """Suspend the handler: its open questions go out."""
        if self.is_over or self._under_way:
            return  # a running `once` would be lost, and repeated
        if self._request.message not in self._request.connection.peer.incoming:
            for future in self._waiting:
                future.cancel()  # of tasks left behind by a handler that failed
            return
        self.is_over = True
        for future in self._waiting:
            if not future.done():
                future.set_exception(SuspendHandler())
        # The handler may wait for something that needs the response, or clean up for ever.
        loop = asyncio.get_running_loop()
        self._cancel_timer = loop.call_later(_SUSPEND_TIMEOUT_S, self._request.stop)

    def ending(self) -> Any:
        """Return the `InputRequiredResult` with the open questions and the `requestState`."""
        request, rounds = self._request, self._rounds
        state = _State(
            rounds.expiry(),
            request_digest(request),
            self._number + 1,
            request.reports,
            self._answers,
            self._done,
            {key: (each.digest(), each.method) for key, each in self._open.items()},
        )
        try:
            sealed = rounds.sealed(request, state)
        except RequestStateTooLarge as error:
            _log.error("%s %s: %s", request.method, show(request.name), error)
            return errors.refusal(error, request.rev.policy)
        questions = {key: _on_the_wire(each) for key, each in self._open.items()}
        result = InputRequiredResult(input_requests=questions, request_state=sealed)
        return request.rev.result(result)

    def end(self) -> None:
        """Stop the cancel timer: the handler has ended."""
        if self._cancel_timer is not None:
            self._cancel_timer.cancel()

    def _check_allowed(self) -> None:
        request, limits = self._request, self._rounds.limits
        if InputRequiredResult not in result_types(_method(request), request.revision):
            raise RequestError(
                ErrorKind.INTERNAL_ERROR,
                f"client requests are not allowed in {request.method} in {request.revision}",
            )
        if self._number >= limits.rounds:
            text = f"{show(request.name)} needs more than {limits.rounds} round trips"
            raise RoundTripLimitExceeded(ErrorKind.TOO_MANY_ROUNDS, text)

    def _reject_changed(self, key: str) -> None:
        what = show(self._request.name)
        # Most often the text contains a time or a random id.
        _log.error(
            "%s: question %s differs from the one that was answered; the handler is replayed, so "
            "values that differ between runs belong in once(), and questions in varying order "
            "need a key=",
            what,
            show(key),
        )
        raise ReplayMismatch(f"the question {key!r} has changed since it was answered")


def _on_the_wire(question: InputQuestion) -> InputRequest:
    if question.params is None:
        return ListRootsRequest()  # the only one without params
    return _REQUESTS[question.method](question.params)


def request_digest(request: ServerRequest) -> str:
    """Return a digest of method and params that is the same for a request and its retries."""
    import hashlib  # here: slow to import, and few servers send client requests

    params = request.message.params
    method = _method(request)
    if method in PARAMS and type(params) is not ToolCall:
        params = _read_tool_call(params)  # as every other process decodes it
    if type(params) is ToolCall:
        arguments = {} if params.arguments is UNSET else _any(params.arguments)
        members: Any = {"name": params.name, "arguments": arguments}
    else:
        found = {} if params is UNSET else members_of(params)
        members = {name: _any(raw) for name, raw in found.items() if name not in _RETRY_MEMBERS}
    return hashlib.sha256(_sorted.encode([method, members])).hexdigest()


def _method(request: ServerRequest) -> str:
    return official(request.method, request.rev.policy, request.revision)


def _check_answer(request: ServerRequest, key: str, method: str, raw: Raw) -> None:
    try:
        capabilities.read(raw, request.rev, method)
    except RemoteProtocolError as error:
        raise InvalidInputResponses(f"{show(key)} is not {error.expected}") from None
