"""The whole exception tree of the library.

    TrunklineError                  everything this library raises on purpose
      ProtocolError                 rule, where, got, expected, source
        LocalProtocolError          we were about to break a rule: nothing sent, nothing changed
          IdsExhausted              the id counter passed its maximum: connect again
        RemoteProtocolError         the peer broke one
          InvalidMessage            what `decode` raises, with the answer we would send

Errors hold facts; text is composed here, at the edge, and never shows a secret.
"""

from __future__ import annotations

from typing import Any, Final

from .redaction import HIDDEN, is_secret_name, redact, show

__all__ = [
    "IdsExhausted",
    "InvalidMessage",
    "LocalProtocolError",
    "ProtocolError",
    "RemoteProtocolError",
    "TrunklineError",
]


class _Nothing:
    """The value of a fact that was not given; None is a value a peer can send."""

    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "NOTHING"  # one object per process: it is compared by identity


NOTHING: Final[Any] = _Nothing()


class TrunklineError(Exception):
    """Everything this library raises on purpose."""


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
            parts.append(f"got {HIDDEN if is_secret else show(self.got)}")
        text = " ".join(parts)
        return f"{text}: expected {self.expected}" if self.expected else text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The keyword-only facts would be lost by the way exceptions are pickled.
        return _restore, (type(self), self.args, self.__dict__.copy())


class LocalProtocolError(ProtocolError):
    """We were about to break a rule: nothing was sent and nothing changed."""


class IdsExhausted(LocalProtocolError):
    """The id counter passed its maximum; a new connection starts a new count."""


class RemoteProtocolError(ProtocolError):
    """The peer broke a rule."""


class InvalidMessage(RemoteProtocolError):
    """A message that cannot be accepted, and what to answer.

    `code`, `message` and `data` are the error we would send; `id` is the id of
    the faulty request where it could be read, else None.
    """

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
        """Whether the protocol lets an answer be given."""
        return self._answerable

    def answer(self) -> bytes | None:
        """Return the exact bytes to send back, or None where no answer may be given.

        A reply is never answered, and neither is a notification.
        """
        if not self._answerable:
            return None
        # Imported here: the tree must load without the codec's one dependency.
        from msgspec.json import encode

        reply: dict[str, Any] = {"jsonrpc": "2.0"}
        if self.id is not None or not self._omit_id:
            reply["id"] = self.id
        reply["error"] = {"code": self.code, "message": self.message}
        if self._has_data:
            reply["error"]["data"] = self.data
        return encode(reply)

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.code} {redact(self.message)})"


def show_pointer(pointer: str) -> str:
    """Return a JSON pointer with nothing secret in it: member names come from the peer.

    A name with a lone surrogate in it is shown as an escape, or no stream could take it.
    """
    return str(redact(pointer)).encode("utf-8", "backslashreplace").decode()


def _restore(
    kind: type[ProtocolError], args: tuple[Any, ...], facts: dict[str, Any]
) -> ProtocolError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
