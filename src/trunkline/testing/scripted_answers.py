"""Scripted answers to the elicitation, sampling and roots requests of a handler.

    {"day": {"date": "2026-08-01"}, "Sure?": True}      by key, or by the text of the question
    [{"date": "2026-08-01"}, True]                      in order
    lambda question: "decline"                          by a function

The rules that live here, and only here:

* None and "decline" decline, "cancel" cancels, any other value accepts.
* A value that is not an object fills the only field of a form.
* A question without an answer fails the test, and so does an unused answer of a sequence.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, to_builtins

from ..jsonrpc.messages import Shown
from ..mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root
from ..redaction import show

__all__ = ["AskedQuestion", "Given", "ScriptedAnswers", "UnansweredQuestion"]

Given: TypeAlias = (
    Mapping[str, Any] | Sequence[Any] | Callable[["AskedQuestion"], Any | Awaitable[Any]]
)

# By method: the kind of a question, which also begins its default key.
_KINDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
# The model name in sampling results.
_MODEL: Final = "test"


class UnansweredQuestion(AssertionError):
    """A handler asked a question that the test does not answer."""


class AskedQuestion(Shown, Struct, frozen=True):
    """A question as the client received it."""

    # Chosen by the author, or kind and number such as "elicitation-1"; "" for a request sent by
    # `context.request`.
    key: str
    method: str
    params: dict[str, Any]
    revision: str

    @property
    def kind(self) -> str:
        """One of "elicitation", "sampling" and "roots"."""
        return _KINDS.get(self.method, self.method)

    @property
    def text(self) -> str:
        """The message to the user or the model; "" for roots."""
        if "message" in self.params:
            return str(self.params["message"])
        blocks = [
            block
            for message in self.params.get("messages", ())
            for block in _listed(message.get("content"))
        ]
        return "\n".join(str(each["text"]) for each in blocks if "text" in each)

    @property
    def url(self) -> str | None:
        """The URL to visit, or None."""
        return self.params.get("url")

    def __str__(self) -> str:
        text = f": {show(self.text)}" if self.text else ""
        return f"{self.key or 'without a key'} ({self.method}){text}"


class ScriptedAnswers:
    """The answers of one run; a sequence starts at its beginning."""

    def __init__(self, given: Given | None) -> None:
        self._given: Given = {} if given is None else given
        self._taken = 0

    async def to(self, question: AskedQuestion) -> dict[str, Any]:
        """Return the result to send for a question.

        Raises:
            UnansweredQuestion: there is no answer.
            TypeError: the answer does not fit the question.
        """
        answer = self._find(question)
        if inspect.isawaitable(answer):
            answer = await answer
        return _WRITTEN.get(question.method, _elicited)(question, answer)

    def unused(self) -> Sequence[Any]:
        """Return the answers of a sequence that were not used."""
        if callable(self._given) or isinstance(self._given, Mapping):
            return ()
        return self._given[self._taken :]

    def _find(self, question: AskedQuestion) -> Any:
        given = self._given
        if callable(given):
            return given(question)
        if isinstance(given, Mapping):
            for name in (question.key, question.text, question.kind):
                if name and name in given:
                    return given[name]
            raise UnansweredQuestion(_unanswered(question, map(show, given)))
        if self._taken >= len(given):
            raise UnansweredQuestion(_unanswered(question, map(show, given)))
        self._taken += 1
        return given[self._taken - 1]


def _unanswered(question: AskedQuestion, given: Any) -> str:
    known = ", ".join(given) or "none"
    return (
        f"no answer to the question {question} in {question.revision}.\n"
        f"Answers exist for: {known}.\n"
        f"Answer it by its key, {question.key!r}, or by its text."
    )


# -- results ---------------------------------------------------------------------------------


def _elicited(question: AskedQuestion, answer: Any) -> dict[str, Any]:
    if isinstance(answer, ElicitResult):
        return _plain(answer)
    fields = list(question.params.get("requestedSchema", {}).get("properties", {}))
    if answer is None or (answer is False and not fields):
        return {"action": "decline"}
    if isinstance(answer, str) and answer in ("decline", "cancel"):
        return {"action": answer}
    if question.url is not None:
        return {"action": "accept"}
    content = to_builtins(answer)
    if not isinstance(content, dict):
        if fields and len(fields) != 1:
            raise TypeError(
                f"the form of {question} has {len(fields)} fields ({', '.join(fields)}): "
                f"answer it with a dict, not with {show(answer)}"
            )
        content = {fields[0]: content} if fields else {}
    return {"action": "accept", "content": content}


def _sampled(question: AskedQuestion, answer: Any) -> dict[str, Any]:
    if isinstance(answer, str):
        text = {"type": "text", "text": answer}
        return {"role": "assistant", "content": text, "model": _MODEL}
    if isinstance(answer, CreateMessageResult | dict):
        return _plain(answer)
    raise TypeError(f"{question} is answered with a text or a CreateMessageResult, not {answer!r}")


def _rooted(question: AskedQuestion, answer: Any) -> dict[str, Any]:
    if isinstance(answer, ListRootsResult):
        return _plain(answer)
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        raise TypeError(f"{question} is answered with a list of URIs, not {answer!r}")
    return {"roots": [_plain(each) if isinstance(each, Root) else {"uri": each} for each in answer]}


_WRITTEN: Final[dict[str, Callable[[AskedQuestion, Any], dict[str, Any]]]] = {
    "elicitation/create": _elicited,
    "sampling/createMessage": _sampled,
    "roots/list": _rooted,
}


def _plain(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = to_builtins(value)
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
