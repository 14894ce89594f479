"""Elicitation at the terminal: shows the questions of a server and reads the answers.

A form is filled in field by field: title and description, allowed values, and the default in
brackets. The event loop reads the line, so that Ctrl-C and a lost connection end a question.

The rules that live here, and only here:

* The server is named, and control characters in its text are escaped.
* Ctrl-D declines a form. "no" declines a URL. Ctrl-C in a shell cancels both.
* A form with one field called `value`, which is how a plain type is asked for, has the prompt
  "answer".
* An invalid value is asked again; an empty line takes the default, or leaves the field out.
* A field with the name of a secret is typed without echo; the terminal is always restored.
* A URL is shown in full, with its host, and never opened.
* Answers in advance (`--answer`) are used first. Without a terminal they are the only ones, and
  a form that needs more is declined. An answer without a field is for forms with one field.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from ...client.server_requests.form_validation import FormMismatch, defaults, fit
from ...errors import visible
from ...redaction import is_secret_name
from ...transports.io.fd import can_watch
from ..command import UsageError, check_text
from ..output.progress import is_interactive
from ..output.terminal import wants_colour
from .tool_arguments import ArgumentMismatch, coerce

if TYPE_CHECKING:
    from ...mcp.types import ElicitRequestParams
    from ..output.progress import Console

__all__ = ["ElicitationPrompt", "read_line"]

_YES: Final = frozenset(("y", "yes", "true", "1"))
_NO: Final = frozenset(("n", "no", "false", "0"))
# A server decides how many fields a form has.
_MAX_NAMES_SHOWN: Final = 20


class _Declined(Exception):
    """The user declined, or cannot be asked."""


class _Dismissed(Exception):
    """The question was cancelled before it was answered."""


class ElicitationPrompt:
    """Asks the user to fill in forms and to agree to URLs, one at a time."""

    def __init__(
        self,
        console: Console,
        answers: Sequence[str] = (),
        hold: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        """Take answers in advance, `field=value` or `value`.

        `hold` has the terminal for a question.

        Raises:
            UsageError: one of them is malformed.
        """
        self.server = "the server"
        self.can_ask = is_interactive()
        self._console = console
        self._hold = hold
        # By field. That of None is for a form with one field, whatever its name.
        self._answers = _given(answers)
        # A server may send several elicitations at once; the user has one keyboard.
        self._lock = asyncio.Lock()
        # Reads the line of the question on the screen.
        self._reading: asyncio.Future[str | None] | None = None

    @property
    def is_asking(self) -> bool:
        """Whether a question is on the screen."""
        return self._reading is not None

    def cancel(self) -> None:
        """Cancel the question on the screen: the server is answered "cancel"."""
        if self._reading is not None:
            self._reading.cancel()

    async def form(
        self, params: ElicitRequestParams
    ) -> dict[str, Any] | Literal["decline", "cancel"]:
        """Return the filled-in form, "decline", or "cancel"."""
        schema = params.requested_schema if isinstance(params.requested_schema, dict) else {}
        async with self._terminal():
            try:
                return await self._filled_in(params.message, schema)
            except _Declined:
                self._console.note("declined")
                return "decline"
            except _Dismissed:
                return "cancel"

    async def page(self, params: ElicitRequestParams) -> bool | Literal["cancel"]:
        """Return True if the user agrees to visit a URL, or "cancel"; nothing is opened."""
        async with self._terminal():
            self._introduce(params.message)
            self._console.note(_address_shown(str(params.url)))
            try:
                agrees = await self._yes_or_no("Do you agree to visit this page? [y/N]: ", False)
            except _Declined:
                agrees = False
            except _Dismissed:
                return "cancel"
            self._console.note("Open the address in a browser." if agrees else "declined")
            return agrees

    # -- forms ---------------------------------------------------------------------------------

    async def _filled_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        fields = schema.get("properties")
        fields = fields if isinstance(fields, dict) else {}
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        filled = self._from_advance(fields)
        if self.can_ask:
            self._introduce(message)
            left = [name for name in fields if name not in filled]
            if left:
                self._console.note(f"({_keys(schema, left, needed)})")
            for name, field in fields.items():
                if name not in filled and isinstance(field, dict):
                    label = "answer" if [*fields] == ["value"] else name
                    value = await self._field(name, field, name in needed, label)
                    if value is not None:
                        filled[name] = value
        try:
            return fit(schema, filled)
        except FormMismatch as misfit:
            self._console.note(f"the form is incomplete: {misfit}")
            raise _Declined from None

    def _from_advance(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        for name, text in self._texts_of(fields).items():
            try:
                filled[name] = coerce(text, fields[name])
            except ArgumentMismatch as unfit:
                self._console.note(f"--answer {visible(name, kept='')} takes {unfit}")
                raise _Declined from None
        return filled

    def _texts_of(self, fields: Mapping[str, Any]) -> dict[str, str]:
        """Return the answers in advance that concern a form, by field."""
        found = {name: self._answers[name] for name in fields if name in self._answers}
        given = self._answers.get(None)
        if given is None or found or not fields:
            return found
        if len(fields) == 1:
            return dict.fromkeys(fields, given)
        names = [_shown(name) for name in list(fields)[:_MAX_NAMES_SHOWN]]
        more = ", …" if len(fields) > _MAX_NAMES_SHOWN else ""
        self._console.note(
            f"--answer needs the name of a field, as {names[0]}=VALUE: the form has "
            f"{', '.join(names)}{more}"
        )
        if not self.can_ask:
            raise _Declined
        return {}

    async def _field(self, name: str, field: dict[str, Any], is_needed: bool, label: str) -> Any:
        """Return the value of one field, or None if it is left out."""
        choices = _choices(field)
        prompt = self._prompt(name, field, choices, label)
        default = defaults({"properties": {name: field}}).get(name)
        while True:
            text = await self._line(prompt, is_secret=is_secret_name(name))
            try:
                given = _read(text, field, choices) if text.strip() else default
                # A form has no null; None is a field that was left out.
                value = fit({"properties": {name: field}}, {name: given}).get(name)
            except ArgumentMismatch as mismatch:
                is_boolean = field.get("type") == "boolean"
                self._console.note("  y or n, please" if is_boolean else f"  expected {mismatch}")
                continue
            except FormMismatch as mismatch:
                self._console.note(f"  {mismatch}")
                continue
            if value is not None or not is_needed:
                return value
            self._console.note("  this field is required")

    def _prompt(
        self, name: str, field: dict[str, Any], choices: list[tuple[str, str]], label: str
    ) -> str:
        """Show a field, and return the prompt for its value."""
        title = field.get("title")
        called = _shown(title if isinstance(title, str) and title else label)
        about = field.get("description")
        if isinstance(about, str) and about:
            self._console.note(f"  {_shown(about)}")
        for number, (value, said) in enumerate(choices, 1):
            more = f" ({_shown(value)})" if said != value else ""
            self._console.note(f"    {number}) {_shown(said)}{more}")
        hint = _hint(field, choices)
        default = defaults({"properties": {name: field}}).get(name)
        bracket = ""
        if default is not None and not is_secret_name(name):
            bracket = f" [{_shown(_default_shown(default))}]"
        return f"  {called}{hint}{bracket}: "

    # -- the terminal --------------------------------------------------------------------------

    @asynccontextmanager
    async def _terminal(self) -> AsyncIterator[None]:
        """Hold the terminal for one question; no progress is drawn meanwhile."""
        async with self._lock, self._hold():
            self._console.pause()
            try:
                yield
            finally:
                self._console.pause(False)

    def _introduce(self, message: str) -> None:
        self._console.note(f"{_shown(self.server)} asks: {visible(message)}")

    async def _yes_or_no(self, prompt: str, default: bool) -> bool:
        while True:
            word = (await self._line(prompt)).strip().lower()
            if not word:
                return default
            if word in _YES or word in _NO:
                return word in _YES
            self._console.note("  y or n, please")

    async def _line(self, prompt: str, *, is_secret: bool = False) -> str:
        if is_secret and not _has_termios():
            # On Windows, which reads single keys.
            self._console.ask(prompt)
            text = await self._read(_in_thread(_read_secret))
        else:
            # Echo is off before the prompt appears, or the first keys could show.
            with _without_echo() if is_secret else nullcontext():
                self._console.ask(prompt)
                text = await self._read(read_line(sys.stdin.fileno()))
        if is_secret or text is None:
            self._console.note("")
        if text is None:
            raise _Declined
        return text

    async def _read(self, line: Coroutine[Any, Any, str | None]) -> str | None:
        self._reading = reading = asyncio.ensure_future(line)
        try:
            await asyncio.wait([reading])
        finally:
            self._reading = None
            if not reading.done():
                reading.cancel()
                # Standard input is watched until then, and the next reader could not watch it.
                await asyncio.wait([reading])
        if reading.cancelled():
            self._console.note("")
            raise _Dismissed
        return reading.result()


async def read_line(descriptor: int) -> str | None:
    """Return the line the user types, or None at the end of the input."""
    loop = asyncio.get_running_loop()
    if not can_watch(loop):
        return await _in_thread(partial(_read_available, descriptor))
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    try:
        loop.add_reader(descriptor, wake)
    except PermissionError:
        # epoll takes no regular files and no /dev/null, which never make a reader wait.
        return _read_available(descriptor)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return _read_available(descriptor)


async def _in_thread(read: Callable[[], str | None]) -> str | None:
    """Return what `read` returns; a thread that is not waited for any more is abandoned."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str | None] = loop.create_future()

    def deliver(text: str | None) -> None:
        if not line.done():
            line.set_result(text)

    def run() -> None:
        text = read()
        try:
            loop.call_soon_threadsafe(deliver, text)
        except RuntimeError:
            pass  # the loop is closed

    threading.Thread(target=run, name="trunkline prompt", daemon=True).start()
    return await line


def _has_termios() -> bool:
    try:
        import termios  # noqa: F401  # whether it can be imported is the question
    except ImportError:
        return False
    return True


def _read_secret() -> str | None:
    from getpass import getpass

    try:
        return getpass("")
    except EOFError:
        return None


def _read_available(descriptor: int) -> str | None:
    try:
        # A terminal returns one line, even if more was typed ahead.
        raw = os.read(descriptor, 65536)
    except OSError:
        return None  # the terminal is gone
    return raw.decode(sys.stdin.encoding or "utf-8", "replace").rstrip("\r\n") if raw else None


@contextmanager
def _without_echo() -> Iterator[None]:
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _keys(schema: dict[str, Any], names: Sequence[str], needed: Sequence[Any]) -> str:
    """Return what keys do in a form: Enter has a meaning only for some fields."""
    with_default = defaults(schema)
    parts = []
    if any(name in with_default for name in names):
        parts.append("Enter accepts the default")
    if any(name not in with_default and name not in needed for name in names):
        parts.append(f"Enter {'otherwise ' if parts else ''}leaves out what is not required")
    return ", ".join([*parts, "Ctrl-D declines"])


def _given(words: Sequence[str]) -> dict[str | None, str]:
    found: dict[str | None, str] = {}
    for word in words:
        check_text(word, "--answer")
        name, sign, text = word.partition("=")
        if not name:
            raise UsageError("--answer takes FIELD=VALUE, or VALUE for a form with one field")
        if sign:
            found[name] = text
        elif None in found:
            raise UsageError("--answer is given twice without a field; write FIELD=VALUE")
        else:
            found[None] = word
    return found


def _shown(text: str) -> str:
    return visible(text, kept="")


def _hint(field: dict[str, Any], choices: list[tuple[str, str]]) -> str:
    if choices and field.get("type") == "array":
        return f" (numbers from 1 to {len(choices)}, separated by commas)"
    if choices:
        return f" (1 to {len(choices)})"
    if field.get("type") == "boolean":
        return " (y/n)"
    return ""


def _default_shown(default: Any) -> str:
    if isinstance(default, bool):
        return "y" if default else "n"
    return ", ".join(map(str, default)) if isinstance(default, list) else str(default)


def _choices(field: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the choices of a field: each value with its title."""
    several = field.get("items")
    place = several if isinstance(several, dict) else field
    named = place.get("oneOf", place.get("anyOf"))
    if isinstance(named, list):
        return [
            (each["const"], str(each.get("title", each["const"])))
            for each in named
            if isinstance(each, dict) and isinstance(each.get("const"), str)
        ]
    plain = place.get("enum")
    values = [each for each in plain if isinstance(each, str)] if isinstance(plain, list) else []
    names = place.get("enumNames")
    if isinstance(names, list) and len(names) == len(values):
        return list(zip(values, map(str, names), strict=True))
    return [(value, value) for value in values]


def _read(text: str, field: dict[str, Any], choices: list[tuple[str, str]]) -> Any:
    if not choices:
        return coerce(text if field.get("type") == "string" else text.strip(), field)
    if field.get("type") == "array":
        return [_chosen(part.strip(), choices) for part in text.split(",") if part.strip()]
    return _chosen(text.strip(), choices)


def _chosen(word: str, choices: list[tuple[str, str]]) -> str:
    # A title is matched before a number: a choice may be called "2".
    for value, said in choices:
        if word in (value, said):
            return value
    for value, said in choices:
        if word.lower() in (value.lower(), said.lower()):
            return value
    if word.isdecimal() and 1 <= int(word) <= len(choices):
        return choices[int(word) - 1][0]
    raise ArgumentMismatch(f"a number from 1 to {len(choices)}")


def _address_shown(url: str) -> str:
    """Return a URL in full, and its host on a line of its own."""
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    shown = _shown(url)
    try:
        plain = host.encode("idna").decode()
    except UnicodeError:
        plain = host
    # Letters of other alphabets can imitate a trusted name.
    told = _shown(host) if plain == host else f"{_shown(host)} ({plain})"
    if wants_colour(sys.stderr):
        told = f"\033[1m{told}\033[0m"
    return f"  {shown}\n  host: {told}"
