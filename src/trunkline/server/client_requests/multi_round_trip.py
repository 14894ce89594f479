"""Asking in 2026-07-28: the handler is run again, with the answers so far.

A server of that revision sends no requests. When a handler asks something that is not
answered yet, its request is answered with the questions (`input_required`) and the handler
is ended. The client sends the request again with the answers, and the handler runs from the
start. What earlier runs learnt travels in between as `requestState`, sealed, so that any
process with the keys can go on, and none has to remember anything.

The rules that live here, and only here:

* An answer counts for the question it was given to: a digest of the question is kept with
  its key, and a handler that asks something else under it is refused. What tasks of the
  handler's own ask is known by its digest alone, because their order may differ.
* A round ends one turn of the loop after its first open question, and after what `once` has
  begun, so that questions put together travel together and nothing done is forgotten.
* The state is good for the same server, caller, method and params, for a while. It is not
  kept from being used twice.                [MCP 2026-07-28, basic/patterns/mrtr]
* A handler that does not end with its round is stopped: its client waits for the questions.
* Answers to what was not asked are ignored, and what was not answered is asked again.
* A round more than a call may have, or a state larger than it may be, is refused.
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

from ...errors import RemoteProtocolError, RequestAborted, RequestError
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
from ..dispatch.handler_run import HandlerRun, InputQuestion, SuspendHandler, handler_run_of
from ..dispatch.revision import PARAMS, ToolCall
from . import capabilities
from .request_state import InvalidSeal, StateSealer

if TYPE_CHECKING:
    from ..context import Context
    from ..settings import ServerLimits

__all__ = [
    "InvalidRequestState",
    "ReplayMismatch",
    "RequestStateTooLarge",
    "RoundTrip",
    "RoundTripLimitExceeded",
    "RoundTrips",
]

_log: Final = logging.getLogger("trunkline.server")

# What the seal is bound to, with the name of the server, so that nothing else passes for it.
_SEAL_PURPOSE: Final = b"requestState of "
# How long a handler may take to clean up when its round is over, in seconds.
_SUSPEND_TIMEOUT_S: Final = 1.0
# Keys of questions that tasks of a handler have put without one.
_BRANCH_KEY: Final = re.compile(r"([a-z]+-[0-9]+\.)[0-9]+")
# Members of params that tell one attempt from the next, and not what is asked for.
_RETRY_MEMBERS: Final = frozenset(("_meta", "inputResponses", "requestState"))


class InvalidRequestState(RequestError):
    """A `requestState` that we did not give out, or not for this, or too long ago."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorKind.INVALID_REQUEST_STATE, f"Invalid request state: {text}")


class InvalidInputResponses(RequestError):
    """Answers that have not the form of what was asked for."""

    def __init__(self, text: str) -> None:
        super().__init__(ErrorKind.INVALID_INPUT_RESPONSES, f"Invalid input responses: {text}")


class ReplayMismatch(InvalidRequestState):
    """The handler asks something else than what was answered under the same key."""


class RoundTripLimitExceeded(RequestError):
    """A handler asks more often than one call may be sent back and forth."""


class RequestStateTooLarge(RequestError):
    """What a call would carry to its next round is more than it may."""


class _State(Struct, frozen=True, array_like=True):
    """What travels, sealed, from one run to the next."""

    expires: int
    # Who the client was authenticated as, and whose data it is about.
    principal: str
    tenant: str
    # A digest of the method and the params.
    request: str
    number: int
    # How many reports the client has heard.
    said: int
    # By key: the digest of the question, and the answer.
    answers: dict[str, tuple[str, Raw]]
    # What `once` gave, by key.
    done: dict[str, Raw]
    # What was asked last, by key: the digest of the question and its method.
    asked: dict[str, tuple[str, str]]


_sorted: Final = Encoder(order="sorted")
_encode: Final = Encoder().encode
_read_state: Final = Decoder(_State).decode
_read_members: Final[Decoder[dict[str, Raw]]] = Decoder(dict[str, Raw])
_read_text: Final = Decoder(str).decode
_read_tool_call: Final = Decoder(ToolCall).decode
# A number with a point is kept as it was written: a handler may read it exactly. The name is one
# that no text can have in JSON that was sent for something else.
_any: Final = Decoder(float_hook=lambda text: {"\ufdd0": text}).decode

_REQUESTS: Final[Mapping[str, type[InputRequest]]] = {
    "elicitation/create": ElicitRequest,
    "sampling/createMessage": CreateMessageRequest,
    "roots/list": ListRootsRequest,
}


class RoundTrips:
    """The rounds of one server: its keys, its limits and its clock."""

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
        """Whether a client cannot read what it carries."""
        return self.seal.is_secret

    def begin(self, context: Context, run: HandlerRun) -> RoundTrip:
        """Return the first round of a call."""
        run.round = made = RoundTrip(self, context, None, {})
        return made

    def resume(self, context: Context, responses: Any, state: Any) -> None:
        """Have a handler run with what its client brings back; both are raw JSON or UNSET.

        Raises:
            RequestError: what is brought back cannot be used; it says why.
        """
        given = _responses(responses)
        run = handler_run_of(context)
        if state is UNSET:
            # Nothing says what was asked, so nothing in it is an answer.
            run.asker = run.round = RoundTrip(self, context, None, {})
            return
        opened = self._open(context, state)
        answers = dict(opened.answers)
        for key, (digest, method) in opened.asked.items():
            if key in given:
                _check_answer(context, key, method, given[key])
                answers[key] = digest, given[key]
        run.heard = opened.said
        run.asker = run.round = RoundTrip(self, context, opened, answers)

    def _open(self, context: Context, state: Raw) -> _State:
        try:
            text = _read_text(state)
        except (ValidationError, DecodeError):
            raise InvalidRequestState("it is no text") from None
        if len(text) > self.limits.state_size:
            raise InvalidRequestState("it is longer than any of ours")
        try:
            found: _State = _read_state(self.seal.open(text, self._use))
        except InvalidSeal as error:
            raise InvalidRequestState(str(error)) from None
        except (ValidationError, DecodeError):
            # Sealed with our key by a release that wrote it in another way.
            raise InvalidRequestState("it was made by another version of this server") from None
        if found.expires < self._now():
            raise InvalidRequestState("it has expired; begin again")
        who = context.principal or "", context.tenant or ""
        if (found.principal, found.tenant) != who:
            raise InvalidRequestState("it was given to somebody else")
        if found.request != request_digest(context):
            raise InvalidRequestState("it belongs to another request")
        return found

    def sealed(self, state: _State) -> str:
        """Return a state as the client gets it.

        Raises:
            RequestStateTooLarge: it is more than a call may carry.
        """
        text = self.seal.seal(_encode(state), self._use)
        if len(text) > self.limits.state_size:
            kind = ErrorKind.REQUEST_STATE_TOO_LARGE
            most = self.limits.state_size
            text = f"The answers so far take {len(text)} characters; a call may carry {most}"
            raise RequestStateTooLarge(kind, text)
        return text

    def expiry(self) -> int:
        """Return until when a state that is made now is good."""
        return round(self._now() + self.limits.state_ttl)


class RoundTrip:
    """One run of a handler, from the answers it begins with to the questions it ends with."""

    __slots__ = (
        "_answers",
        "_context",
        "_done",
        "_insisting",
        "_is_ending",
        "_number",
        "_open",
        "_rounds",
        "_under_way",
        "_used",
        "_waiting",
        "is_over",
    )

    def __init__(
        self,
        rounds: RoundTrips,
        context: Context,
        state: _State | None,
        answers: dict[str, tuple[str, Raw]],
    ) -> None:
        self._rounds = rounds
        self._context = context
        self._answers = answers
        self._done: dict[str, Raw] = {} if state is None else dict(state.done)
        self._number = 0 if state is None else state.number
        # Questions without an answer, by key, and who waits for them.
        self._open: dict[str, InputQuestion] = {}
        self._waiting: list[asyncio.Future[Raw]] = []
        # How many things `once` has begun and not finished.
        self._under_way = 0
        self._is_ending = False
        # Keys of answers that this run has had.
        self._used: set[str] = set()
        # What stops a handler that does not end with its round.
        self._insisting: asyncio.TimerHandle | None = None
        self.is_over = False

    async def ask(self, question: InputQuestion) -> Raw:
        """Return the answer that the client brought, or end the round with the question."""
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
        """Return the answer that the client brought, if it brought one.

        Raises:
            ReplayMismatch: it was given to something else.
        """
        digest = question.digest()
        key = self._key_of(question, digest)
        known = self._answers.get(key)
        if known is None:
            return None
        if known[0] != digest:
            self._refuse_changed(key)
        self._used.add(key)
        return known[1]

    def done(self, key: str) -> Raw | None:
        """Return what `once` gave under a key, now or in an earlier run."""
        return self._done.get(key)

    async def give_way(self) -> None:
        """Do nothing, unless questions are to go out: then end whoever calls this with them."""
        if not self._is_ending:
            return
        self._check_open()
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def _key_of(self, question: InputQuestion, digest: str) -> str:
        """Return the key of a question: of a branch's, that of an equal one which was answered."""
        if not question.branch:
            return question.key
        for key, (answered, _) in self._answers.items():
            if answered == digest and key not in self._used and _BRANCH_KEY.fullmatch(key):
                return key
        # Another may have had its key in another run.
        taken, key = self._answers.keys() | self._open.keys(), question.key
        while key in taken:
            head, number = key.rsplit(".", 1)
            key = f"{head}.{int(number) + 1}"
        return key

    def _check_open(self, question: InputQuestion | None = None) -> None:
        """End whoever asks when it is too late for it."""
        context = self._context
        if context._asked not in context._connection.peer.incoming:
            method = "" if question is None else question.method
            raise RequestAborted("the request it belongs to has ended", method=method)
        if self.is_over:
            raise SuspendHandler

    async def once(self, key: str, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Return what an earlier run has done, or do it and keep what it gave."""
        if key in self._done:
            return self._done[key]
        self._check_open()  # or its outcome could not be kept any more
        self._under_way += 1
        try:
            self._done[key] = found = await work()
        finally:
            self._under_way -= 1
            if self._is_ending:
                # After whoever waits for this has gone on, who may ask something too.
                asyncio.get_running_loop().call_soon(self._end)
        return found

    def _end(self) -> None:
        """End the handler: what it has asked by now goes out."""
        if self.is_over or self._under_way:
            return  # or what `once` has done would be lost, and done again
        if self._context._asked not in self._context._connection.peer.incoming:
            for future in self._waiting:
                future.cancel()  # of tasks that a handler which has failed left behind
            return
        self.is_over = True
        for future in self._waiting:
            if not future.done():
                future.set_exception(SuspendHandler())
        # It may wait for something else, which would come of the answer; or clean up for ever.
        loop = asyncio.get_running_loop()
        self._insisting = loop.call_later(_SUSPEND_TIMEOUT_S, self._context._stop)

    def ending(self) -> Any:
        """Return the questions, and what the client is to bring back with their answers."""
        context, rounds = self._context, self._rounds
        state = _State(
            rounds.expiry(),
            context.principal or "",
            context.tenant or "",
            request_digest(context),
            self._number + 1,
            context._said,
            self._answers,
            self._done,
            {key: (each.digest(), each.method) for key, each in self._open.items()},
        )
        try:
            sealed = rounds.sealed(state)
        except RequestStateTooLarge as error:
            _log.error("%s %s: %s", context.method, show(context.name), error)
            return errors.refusal(error, context._rev.policy)
        questions = {key: _on_the_wire(each) for key, each in self._open.items()}
        result = InputRequiredResult(input_requests=questions, request_state=sealed)
        return context._rev.result(result)

    def end(self) -> None:
        """Be done with: the handler has ended."""
        if self._insisting is not None:
            self._insisting.cancel()

    def _check_allowed(self) -> None:
        context, limits = self._context, self._rounds.limits
        if InputRequiredResult not in result_types(_method(context), context.revision):
            raise RequestError(
                ErrorKind.INTERNAL_ERROR,
                f"nothing can be asked while {context.method} is served in {context.revision}",
            )
        if self._number >= limits.rounds:
            text = f"{context.name!r} has asked in {limits.rounds} rounds, and would ask on"
            raise RoundTripLimitExceeded(ErrorKind.TOO_MANY_ROUNDS, text)

    def _refuse_changed(self, key: str) -> None:
        what = show(self._context.name)
        # Its author's next question: what changed? Most often a text with a time or a random id.
        _log.error(
            "%s: the question %s is not the one that was answered; code before an ask runs "
            "again, so what differs from run to run goes into once(), and questions whose order "
            "differs need a key=",
            what,
            show(key),
        )
        raise ReplayMismatch(f"the question {key!r} has changed since it was answered")


def _on_the_wire(question: InputQuestion) -> InputRequest:
    if question.params is None:
        return ListRootsRequest()  # the one that has nothing to say
    return _REQUESTS[question.method](question.params)


def request_digest(context: Context) -> str:
    """Return what tells one request from another, however often it is sent."""
    import hashlib  # here: it takes its time to load, and few servers ask

    params = context._asked.params
    method = _method(context)
    if method in PARAMS and type(params) is not ToolCall:
        params = _read_tool_call(params)  # as it would be read in any other process
    if type(params) is ToolCall:
        arguments = {} if params.arguments is UNSET else _any(params.arguments)
        members: Any = {"name": params.name, "arguments": arguments}
    else:
        found = {} if params is UNSET else _read_members.decode(params)
        members = {name: _any(raw) for name, raw in found.items() if name not in _RETRY_MEMBERS}
    return hashlib.sha256(_sorted.encode([method, members])).hexdigest()


def _method(context: Context) -> str:
    """Return the method that is served, whatever it was called."""
    return official(context.method, context._rev.policy, context.revision)


def _responses(raw: Any) -> dict[str, Raw]:
    if raw is UNSET:
        return {}
    try:
        return _read_members.decode(raw)
    except (ValidationError, DecodeError):
        raise InvalidInputResponses("they must be an object") from None


def _check_answer(context: Context, key: str, method: str, raw: Raw) -> None:
    try:
        capabilities.read(raw, context._rev, method)
    except RemoteProtocolError as error:
        text = f"{key!r} must be {error.expected}"
        raise InvalidInputResponses(text) from None
