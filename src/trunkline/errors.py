"""The exceptions of the library.

    TrunklineError                  base of everything this library raises on purpose
      ProtocolError                 a protocol rule: rule, where, got, expected, source
        LocalProtocolError          we were about to break it: nothing sent, nothing changed
          IdsExhausted              the id counter passed its maximum: reconnect
        RemoteProtocolError         the peer broke it
          InvalidMessage            raised by `decode`, with the answer to send
      PeerError                     the peer answered with an error: code, message, data
      RequestAborted                no answer will come
        RequestTimeout              the timeout passed
        Cancelled                   one side cancelled the request
        ConnectionLost              the connection ended: reason, exit status, last log lines
        InputRequestFailed          the client could not provide the input the server asked for
        TooManyRoundTrips           the server asked for input too many times
      TransportError                the transport failed: spawn, connect, read, write
      AuthorizationFailed           a client has no credential for a server, and could not get one
      RequestError                  raised by a handler to choose the wire error
      ToolError                     raised by a tool to choose the text of its `isError` result
      ToolFailed                    raised by a client that asks a failed tool for its value
      ResultTypeMismatch            a result is not of the `result_type` of the caller

Errors hold facts; their text is composed here, and never shows a secret. Control characters in
the text of others are escaped. Only `str` of a ToolError is unchanged, because the caller of the
tool reads it; its repr is redacted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from .redaction import HIDDEN, conceal, is_secret_name, redact, show, show_json

__all__ = [
    "AuthorizationFailed",
    "Cancelled",
    "ConnectionLost",
    "IdsExhausted",
    "InputRequestFailed",
    "InvalidMessage",
    "LocalProtocolError",
    "PeerError",
    "ProtocolError",
    "RemoteProtocolError",
    "RequestAborted",
    "RequestError",
    "RequestTimeout",
    "ResultTypeMismatch",
    "TooManyRoundTrips",
    "ToolError",
    "ToolFailed",
    "TransportError",
    "TrunklineError",
]


class _Nothing:
    """The default of a fact that was not given; None is a value that a peer can send."""

    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "NOTHING"  # one object per process: it is compared by identity


NOTHING: Final[Any] = _Nothing()


class TrunklineError(Exception):
    """Base of everything this library raises on purpose."""

    def __repr__(self) -> str:
        # Of its text, not of `args`, which are the facts without redaction.
        return f"{type(self).__name__}({str(self)!r})"


class ProtocolError(TrunklineError):
    """A rule of a protocol was broken, or was about to be."""

    def __init__(
        self,
        rule: str,
        *,
        where: str = "",
        got: Any = NOTHING,
        expected: str = "",
        source: str = "",
    ) -> None:
        super().__init__(rule)
        self.rule = rule
        self.where = where
        self.got = got
        self.expected = expected
        self.source = source

    def __str__(self) -> str:
        parts = [self.rule]
        if self.where:
            parts.append(f"at {show_pointer(self.where)}")
        if self.got is not NOTHING:
            is_secret = any(map(is_secret_name, self.where.split("/")))
            parts.append(f"got {HIDDEN if is_secret else show_json(self.got)}")
        text = " ".join(parts)
        return f"{text}: expected {self.expected}" if self.expected else text

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickling an exception would lose the keyword-only facts.
        return _restore, (type(self), self.args, self.__dict__.copy())


class LocalProtocolError(ProtocolError):
    """We were about to break a rule: nothing was sent and nothing changed."""


class IdsExhausted(LocalProtocolError):
    """The id counter passed its maximum; a new connection starts a new count."""


class RemoteProtocolError(ProtocolError):
    """The peer broke a rule."""


class InvalidMessage(RemoteProtocolError):
    """A message that is invalid, and the answer to send.

    `code`, `message` and `data` are the error of the answer; `id` is the id of the
    invalid request if it could be read, else None. `excerpt` is how the frame begins, if a peer
    received it: at most 200 bytes, not redacted, and not part of the text of this exception.
    """

    excerpt: bytes = b""

    def __init__(
        self,
        rule: str,
        *,
        code: int,
        message: str,
        data: Any = NOTHING,
        where: str = "",
        got: Any = NOTHING,
        expected: str = "",
        source: str = "",
        id: int | str | None = None,
        answerable: bool = True,
        omit_id: bool = False,
    ) -> None:
        super().__init__(rule, where=where, got=got, expected=expected, source=source)
        self.code = code
        self.message = message
        self.data = None if data is NOTHING else data
        self.id = id
        self._has_data = data is not NOTHING
        self._answerable = answerable
        self._omit_id = omit_id

    @property
    def answerable(self) -> bool:
        """Whether the protocol allows an answer."""
        return self._answerable

    def answer(self) -> bytes | None:
        """Return the bytes of the answer, or None for a reply or a notification."""
        if not self._answerable:
            return None
        # Imported here: this module has to load without msgspec.
        from msgspec.json import encode

        reply: dict[str, Any] = {"jsonrpc": "2.0"}
        if self.id is not None or not self._omit_id:
            reply["id"] = self.id
        reply["error"] = {"code": self.code, "message": self.message}
        if self._has_data:
            reply["error"]["data"] = self.data
        return encode(reply)

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.code} {_told(self.message)})"


class PeerError(TrunklineError):
    """The peer answered a request with an error.

    `code`, `message` and `data` are those of the peer; `data` is None if absent. `method` is
    that of the request, `kind` the symbol of the code in the negotiated revision, or "".
    """

    def __init__(
        self, code: int, message: str, data: Any = None, *, method: str = "", kind: str = ""
    ) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data
        self.method = method
        self.kind = kind

    def __str__(self) -> str:
        asked = f"{self.method}: " if self.method else ""
        return f"{asked}{_told(self.message)} ({self.code})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__.copy())


class RequestAborted(TrunklineError):
    """A request was sent and no answer will come; whether it was executed is unknown.

    `server` is the address of the server, if it was reached by one.
    """

    def __init__(self, reason: str, *, method: str = "", server: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.method = method
        self.server = server

    def __str__(self) -> str:
        named = " to ".join(each for each in (self.method, self.server) if each)
        reason = _reason(self.reason)
        return f"{named}: {reason}" if named else reason

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__.copy())


class RequestTimeout(RequestAborted, TimeoutError):
    """The timeout of a request passed; a cancellation was sent. It is a TimeoutError, too."""


class Cancelled(RequestAborted):
    """The request was cancelled; the other side was notified."""


class ConnectionLost(RequestAborted):
    """The connection ended before the answer.

    For a child process `exit_status` is its exit status (negative: the signal) and `stderr`
    its last log lines; else they are None and ().
    """

    def __init__(
        self,
        reason: str,
        *,
        method: str = "",
        server: str = "",
        exit_status: int | None = None,
        stderr: tuple[str, ...] = (),
    ) -> None:
        super().__init__(reason, method=method, server=server)
        self.exit_status = exit_status
        self.stderr = stderr

    def __str__(self) -> str:
        return super().__str__() + _last_words(self.exit_status, self.stderr)


class InputRequestFailed(RequestAborted):
    """The server asked for input that the client could not provide; the request was not retried.

    `asked` is the method of the input request, `key` the name that the server gave it. The
    exception of a handler is the `__cause__`; nothing of it was sent.
    """

    def __init__(self, reason: str, *, method: str = "", asked: str = "", key: str = "") -> None:
        super().__init__(reason, method=method)
        self.asked = asked
        self.key = key

    def __str__(self) -> str:
        named = f" {show(self.key)}" if self.key else ""
        return f"{super().__str__()} ({self.asked}{named})" if self.asked else super().__str__()


class TooManyRoundTrips(RequestAborted):
    """The server asked for input more often than the limit allows."""


class TransportError(TrunklineError):
    """A connection could not be opened, or failed; `reason` is the cause.

    `exit_status` and `stderr` are as in `ConnectionLost`.
    """

    def __init__(
        self, reason: str, *, exit_status: int | None = None, stderr: tuple[str, ...] = ()
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_status = exit_status
        self.stderr = stderr

    def __str__(self) -> str:
        return _reason(self.reason) + _last_words(self.exit_status, self.stderr)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__.copy())


class AuthorizationFailed(TrunklineError):
    """A client has no credential that a server accepts, and could not obtain one.

    `step` names what failed, such as "discovery", "registration", "authorization request" or
    "token"; `error` is the OAuth error code of the other side, if it sent one. `status` is that of
    the request that the server refused, if there was one, and `scopes` are those that a login for
    it asks for, if the server named any.
    """

    def __init__(
        self,
        reason: str,
        *,
        step: str,
        error: str | None = None,
        status: int | None = None,
        scopes: Collection[str] = (),
    ) -> None:
        super().__init__(reason, step, error)
        self.reason = reason
        self.step = step
        self.error = error
        self.status = status
        self.scopes = frozenset(scopes)

    def __str__(self) -> str:
        code = f" ({_reason(self.error)})" if self.error else ""
        return f"{self.step}: {_reason(self.reason)}{code}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__.copy())


class RequestError(TrunklineError):
    """Raised by a handler to answer with an error of its choice, by symbol or by number.

    `RequestError("RESOURCE_NOT_FOUND", data={"uri": uri})` is sent with the code that the
    symbol has in the negotiated revision. An integer is sent unchanged where that revision does
    not reserve it, and as `data.code` of an internal error (-32603) where it does: -32000 to
    -32099 belong to applications up to 2025-11-25, and positive codes in every revision.
    """

    def __init__(self, kind: str | int, message: str | None = None, *, data: Any = NOTHING) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.kind}: {_told(self.message)}" if self.message else str(self.kind)


class ToolError(TrunklineError):
    """Raised by a tool that failed; its text is sent as an `isError` result."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_told(str(self))!r})"


class ToolFailed(TrunklineError):
    """Raised when the value of a failed tool is asked for; `result` is its `isError` result."""

    def __init__(self, text: str, result: Any = None) -> None:
        super().__init__(text)
        self.result = result

    def __str__(self) -> str:
        return _told(self.args[0])


class ResultTypeMismatch(TrunklineError):
    """A result is not of the `result_type` of the caller: one of the two is wrong.

    `expected` is the name of that type, `where` a JSON pointer into the result, and `reason`
    says what is different.
    """

    def __init__(self, expected: str, where: str = "", reason: str = "") -> None:
        super().__init__(expected, where, reason)
        self.expected = expected
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        place = f" at {show_pointer(self.where)}" if self.where else ""
        text = f"the result is not of result_type {_told(self.expected)}{place}"
        return f"{text}: {_told(self.reason)}" if self.reason else text


def pointer_value(pointer: str) -> str:
    """Return a redacted JSON pointer for an encoder, with lone surrogates escaped."""
    return str(redact(pointer)).encode("utf-8", "backslashreplace").decode()


def show_pointer(pointer: str) -> str:
    """Return a redacted JSON pointer on one line, with control characters escaped."""
    return visible(str(redact(pointer)), kept="")


def visible(text: str, *, kept: str = "\t") -> str:
    """Return a text with non-printable characters escaped, except those in `kept`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def _told(text: str) -> str:
    """Return the text of a peer or a handler, truncated and redacted; lines are kept."""
    return visible(str(redact(text)), kept="\t\n")


def _reason(text: str) -> str:
    """Return a redacted reason, not truncated: it is ours, and its quotes are short."""
    return visible(str(conceal(text)), kept="\t\n")


def _last_words(exit_status: int | None, stderr: tuple[str, ...]) -> str:
    status = "" if exit_status is None else f" (exit status {exit_status})"
    lines = "".join(f"\n  {visible(str(redact(line)))}" for line in stderr)
    return f"{status}; last lines on stderr:{lines}" if lines else status


def _restore(
    kind: type[TrunklineError], args: tuple[Any, ...], facts: dict[str, Any]
) -> TrunklineError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
