"""The conversation of every cell: what a client is asked to do, and what has to come of it.

The steps are the same for all servers; their names and values are those of the server's menu. A
step that a client has no API for, or that a revision does not have, is not counted.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from trunkline.spec.revisions import V2026_07_28, Window

from ..checks import ANY, Unexpected, expect
from ..menu import HELLO

__all__ = ["EVERYTHING", "SHORT", "STEPS", "WITHOUT_LOG", "Answer", "Menu", "NotShown", "Step"]

HANDSHAKE: Final = Window(until=V2026_07_28)
# Calls that are made at once.
AT_ONCE: Final = 10
# Bytes of a long text: more than a pipe or a socket takes at once.
LONG: Final = 200_000

Call = tuple[str, dict[str, Any]]


class Menu(NamedTuple):
    """What a server offers, as far as the conversation is about it."""

    tools: frozenset[str]
    # A tool, and the text that it answers.
    text: Call
    says: str
    # A tool with numbers as arguments, the names of its parameters, and how it says the sum.
    adds: str
    numbers: tuple[str, ...]
    sums: str
    structured: Call
    gives: dict[str, Any]
    image: str
    fails: Call
    why: str
    bad: Call
    resources: frozenset[str]
    templates: frozenset[str]
    note: str
    note_has: str
    template: str
    template_has: str
    missing: str
    prompts: frozenset[str]
    prompt: Call
    prompt_says: list[str]
    completes: dict[str, str]
    completed: list[str]
    steps: Call
    progress: list[list[float]]
    # A tool that logs, the level to begin at, and the levels that are sent then.
    logs: tuple[str, str, list[str]] | None
    asks: Call | None
    answered: str


SHORT: Final = Menu(
    tools=frozenset({"echo", "add", "forecast", "picture", "fails", "steps"}),
    text=("echo", {"text": HELLO}),
    says=HELLO,
    adds="add",
    numbers=("a", "b"),
    sums="{sum}",
    structured=("forecast", {"city": "Oslo"}),
    gives={"city": "Oslo", "days": ["sun", "sun"]},
    image="picture",
    fails=("fails", {}),
    why="no luck today",
    bad=("add", {"a": "one", "b": 2}),
    resources=frozenset({"note://hello", "note://pixel"}),
    templates=frozenset({"city://{name}"}),
    note="note://hello",
    note_has=HELLO,
    template="city://Oslo",
    template_has="Oslo is a city.",
    missing="note://missing",
    prompts=frozenset({"review", "greet"}),
    prompt=("review", {"code": "x = 1", "style": "long"}),
    prompt_says=["Review this in long form: x = 1"],
    completes={"prompt": "review", "argument": "style", "value": "l"},
    completed=["long"],
    steps=("steps", {"count": 3}),
    progress=[[1, 3], [2, 3], [3, 3]],
    logs=("chatter", "warning", ["warning", "error"]),
    asks=("ask_user", {"message": "Which city?"}),
    answered="accept Oslo",
)
# The official server for Python has no logging/setLevel.
WITHOUT_LOG: Final = SHORT._replace(logs=None)
EVERYTHING: Final = Menu(
    tools=frozenset({"echo", "get-sum", "get-structured-content", "get-tiny-image"}),
    text=("echo", {"message": HELLO}),
    says=f"Echo: {HELLO}",
    adds="get-sum",
    numbers=("a", "b"),
    sums="The sum of {a} and {b} is {sum}.",
    structured=("get-structured-content", {"location": "Chicago"}),
    gives={"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82},
    image="get-tiny-image",
    fails=("get-resource-reference", {"resourceType": "Text", "resourceId": -1}),
    why="resourceId",
    bad=("get-sum", {"a": "one", "b": 2}),
    resources=frozenset({"demo://resource/static/document/features.md"}),
    templates=frozenset({"demo://resource/dynamic/text/{resourceId}"}),
    note="demo://resource/static/document/features.md",
    note_has="Everything Server",
    template="demo://resource/dynamic/text/7",
    template_has="Resource 7",
    missing="demo://resource/missing",
    prompts=frozenset({"simple-prompt", "args-prompt", "completable-prompt"}),
    prompt=("args-prompt", {"city": "Oslo", "state": "Norway"}),
    prompt_says=["What's weather in Oslo, Norway?"],
    completes={"prompt": "completable-prompt", "argument": "department", "value": "S"},
    completed=["Sales", "Support"],
    steps=("trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
    progress=[[1, 3], [2, 3], [3, 3]],
    logs=None,
    asks=None,
    answered="",
)


class NotShown(Exception):
    """The client does not give what a step is about; the text says what is missing."""


class Answer(NamedTuple):
    """What a driver gave: a value, or how the client failed."""

    value: Any
    failed: str = ""
    code: int | None = None

    def given(self) -> Any:
        """Return the value.

        Raises:
            Unexpected: the client failed.
        """
        if self.failed:
            raise Unexpected(self.failed)
        return self.value


class Step(NamedTuple):
    """One thing that a client does, and what has to come of it."""

    name: str
    verb: str
    # The arguments of the verb; None if the server has no such thing.
    arguments: Callable[[Menu], dict[str, Any] | None]
    check: Callable[[Menu, Answer], None]
    when: Window = ANY


def _call(call: Call | None) -> dict[str, Any] | None:
    return None if call is None else {"name": call[0], "arguments": call[1]}


def _has(found: Any, wanted: frozenset[str]) -> None:
    expect(sorted(wanted - set(found)), [], "not listed")


def _parameters(menu: Menu, answer: Answer) -> None:
    _has(answer.given(), menu.tools)
    expect(tuple(answer.value[menu.adds]), menu.numbers, f"parameters of {menu.adds}")


def _said(answer: Answer, wanted: str) -> None:
    result = answer.given()
    expect((result["text"], result.get("is_error", False)), (wanted, False))


def _structured(menu: Menu, answer: Answer) -> None:
    if "structured" not in answer.given():
        raise NotShown("its results have no structured content")
    expect(answer.value["structured"], menu.gives)


def _image(menu: Menu, answer: Answer) -> None:
    if "kinds" not in answer.given():
        raise NotShown("its results have no images")
    expect("image" in answer.value["kinds"], True, f"an image in {answer.value}")


def _refused(answer: Answer, why: str = "") -> None:
    """See that the client shows an error, as an exception or a result; `why` is part of it."""
    text = answer.failed or answer.value["text"]
    if not answer.failed and "is_error" not in answer.value:
        if not why:
            raise NotShown("its results do not mark errors")
    elif not answer.failed:
        expect(answer.value["is_error"], True, f"an error, not {text!r}")
    expect(why in text, True, f"{why!r} in {text!r}")


def _failed(menu: Menu, answer: Answer) -> None:
    expect(bool(answer.failed), True, f"an error, not {answer.value!r}")


def _sum(menu: Menu, number: int) -> str:
    return menu.sums.format(a=20, b=number, sum=20 + number)


def _at_once(menu: Menu, answer: Answer) -> None:
    wanted = [_sum(menu, n) for n in range(AT_ONCE)]
    expect([each["text"] for each in answer.given()], wanted)


def _text(answer: Answer, wanted: str) -> None:
    content = answer.given()
    text = content["text"] or b64decode(content["blob"] or "").decode(errors="replace")
    expect(wanted in text, True, f"{wanted!r} in {text[:80]!r}")


STEPS: Final = (
    Step(
        "list the tools",
        "tools",
        lambda menu: {},
        lambda menu, answer: _has(answer.given(), menu.tools),
    ),
    Step("read the input schema of a tool", "tools", lambda menu: {}, _parameters),
    Step(
        "call a tool with text",
        "call",
        lambda menu: _call(menu.text),
        lambda menu, answer: _said(answer, menu.says),
    ),
    Step(
        "call a tool with numbers",
        "call",
        lambda menu: _call((menu.adds, {"a": 20, "b": 22})),
        lambda menu, answer: _said(answer, _sum(menu, 22)),
    ),
    Step(
        f"call a tool with {LONG // 1000} kB of text",
        "call",
        lambda menu: _call((menu.text[0], dict.fromkeys(menu.text[1], "é" * (LONG // 2)))),
        lambda menu, answer: _said(answer, menu.says.replace(HELLO, "é" * (LONG // 2))),
    ),
    Step("get structured content", "call", lambda menu: _call(menu.structured), _structured),
    Step("get an image", "call", lambda menu: _call((menu.image, {})), _image),
    Step(
        "get the error of a tool",
        "call",
        lambda menu: _call(menu.fails),
        lambda menu, answer: _refused(answer, menu.why),
    ),
    Step(
        "call a tool with arguments of the wrong type",
        "call",
        lambda menu: _call(menu.bad),
        lambda menu, answer: _refused(answer),
    ),
    Step(
        "call a tool that does not exist",
        "call",
        lambda menu: _call(("no_such_tool", {})),
        lambda menu, answer: _refused(answer),
    ),
    Step(
        f"make {AT_ONCE} calls at once",
        "at_once",
        lambda menu: {"calls": [(menu.adds, {"a": 20, "b": n}) for n in range(AT_ONCE)]},
        _at_once,
    ),
    Step(
        "list the resources",
        "resources",
        lambda menu: {},
        lambda menu, answer: _has(answer.given(), menu.resources),
    ),
    Step(
        "list the resource templates",
        "templates",
        lambda menu: {},
        lambda menu, answer: _has(answer.given(), menu.templates),
    ),
    Step(
        "read a resource",
        "read",
        lambda menu: {"uri": menu.note},
        lambda menu, answer: _text(answer, menu.note_has),
    ),
    Step(
        "read a resource of a template",
        "read",
        lambda menu: {"uri": menu.template},
        lambda menu, answer: _text(answer, menu.template_has),
    ),
    Step(
        "read a resource that does not exist", "read", lambda menu: {"uri": menu.missing}, _failed
    ),
    Step(
        "list the prompts",
        "prompts",
        lambda menu: {},
        lambda menu, answer: _has(answer.given(), menu.prompts),
    ),
    Step(
        "get a prompt",
        "prompt",
        lambda menu: _call(menu.prompt),
        lambda menu, answer: expect(answer.given(), menu.prompt_says),
    ),
    Step(
        "get a prompt that does not exist",
        "prompt",
        lambda menu: _call(("no_such_prompt", {})),
        _failed,
    ),
    Step(
        "complete an argument",
        "complete",
        lambda menu: menu.completes,
        lambda menu, answer: expect(answer.given(), menu.completed),
    ),
    Step(
        "ping",
        "ping",
        lambda menu: {},
        lambda menu, answer: expect(answer.given(), None),
        HANDSHAKE,
    ),
    Step(
        "get progress",
        "progress",
        lambda menu: _call(menu.steps),
        lambda menu, answer: expect(answer.given(), menu.progress),
    ),
    Step(
        "set the level of the log",
        "log",
        lambda menu: (
            {"name": menu.logs[0], "level": menu.logs[1], "lines": len(menu.logs[2])}
            if menu.logs
            else None
        ),
        lambda menu, answer: expect(answer.given(), menu.logs and menu.logs[2]),
        HANDSHAKE,
    ),
    Step(
        "answer an elicitation",
        "ask",
        lambda menu: _call(menu.asks),
        lambda menu, answer: _said(answer, menu.answered),
    ),
)
