"""Completion of a line: commands, names, arguments and their values.

Names and values come from the server. The rules that live here, and only here:

* An entry that is not printable, or longer than 200 characters, is not offered: it could not be
  shown as it is, and what is inserted is what was shown.
* Descriptions are one line, with control characters escaped.
* At most 200 entries are offered.
* What a server names is never more than a word or a value: an entry that would be read as an
  option is not offered, and a value that begins with @, which would name a file, has a second @.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...errors import visible
from ...spec.mcp.meta import LOG_LEVELS
from ...spec.revisions import REVISIONS
from ..connect.tool_arguments import argument_schemas, type_summary, value_choices
from .words import PartialLine, partial_line, quoted

if TYPE_CHECKING:
    from ...mcp.types import Prompt, Tool
    from .catalogue import Catalogue

__all__ = ["Candidate", "ShellCompleter"]

MAX_CANDIDATES: Final = 200
_MAX_LENGTH: Final = 200
_MAX_ABOUT_LENGTH: Final = 80
_KINDS: Final = ("tools", "resources", "templates", "prompts")
_TASK_ACTIONS: Final = ("list", "get", "result", "cancel")
# A template expression of one variable, without an operator.
_VARIABLE: Final = re.compile(r"\{([A-Za-z0-9_.]+)\}")


class Candidate(NamedTuple):
    """A word that may stand in place of the one that is being typed."""

    # As it is inserted, with its quotes, and a space if the word is complete.
    text: str
    shown: str
    about: str = ""

    def __repr__(self) -> str:
        from ...jsonrpc.messages import shown_tuple  # here: slow to load, and few print it

        return shown_tuple(self)


_Complete = Callable[["ShellCompleter", PartialLine], Awaitable[list[Candidate]]]


class ShellCompleter:
    """Finds the candidates for the word under the cursor."""

    def __init__(
        self,
        catalogue: Catalogue,
        commands: Mapping[str, str],
        options: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Take the commands with their summaries, and the options of a command with theirs."""
        self._catalogue = catalogue
        self._commands = commands
        self._options = options

    async def candidates(self, text: str) -> tuple[int, list[Candidate]]:
        """Return where the word under the cursor begins, and the candidates for it."""
        line = partial_line(text)
        found = await self._found(line)
        is_option = line.word.startswith("-")
        kept = [
            each
            for each in found
            if _is_plain(each.text)
            and _is_plain(each.shown)
            and (is_option or not each.text.startswith(("-", "'-")))
        ]
        return line.start, kept[:MAX_CANDIDATES]

    async def _found(self, line: PartialLine) -> list[Candidate]:
        if not line.words:
            return await self._first_word(line.word)
        command = line.words[0]
        if line.word.startswith("-"):
            options = self._options(command)
            return [_word(each, options[each]) for each in options if each.startswith(line.word)]
        complete = _COMPLETES.get(command)
        if complete is not None:
            return await complete(self, line)
        if command in self._commands:
            return []
        # A tool by its name alone.
        return await self._tool_argument(line._replace(words=["call", *line.words]))

    async def _first_word(self, word: str) -> list[Candidate]:
        found = [_word(each, about) for each, about in _matching(self._commands.items(), word)]
        if word:
            tools = await self._catalogue.tools()
            found += [
                _word(each.name, _about(each))
                for each in tools
                if each.name.startswith(word) and each.name not in self._commands
            ]
        return found

    # -- commands ------------------------------------------------------------------------------

    async def _kind(self, line: PartialLine) -> list[Candidate]:
        if len(line.words) == 1:
            return [_word(each) for each in _KINDS if each.startswith(line.word)]
        kind = line.words[1]
        if kind == "tools":
            return _names(await self._catalogue.tools(), line.word)
        if kind == "prompts":
            return _names(await self._catalogue.prompts(), line.word)
        if kind == "templates":
            return [
                _word(each.uri_template, _about(each))
                for each in await self._catalogue.templates()
                if each.uri_template.startswith(line.word)
            ]
        return await self._listed_uri(line.word) if kind == "resources" else []

    async def _call(self, line: PartialLine) -> list[Candidate]:
        if len(_names_given(line)) == 0:
            return _names(await self._catalogue.tools(), line.word)
        return await self._tool_argument(line)

    async def _tool(self, line: PartialLine) -> list[Candidate]:
        return _names(await self._catalogue.tools(), line.word) if len(line.words) == 1 else []

    async def _prompt(self, line: PartialLine) -> list[Candidate]:
        prompts = await self._catalogue.prompts()
        given = _names_given(line)
        if not given:
            return _names(prompts, line.word)
        prompt = next((each for each in prompts if each.name == given[0]), None)
        return [] if prompt is None else await self._prompt_argument(prompt, given[1:], line.word)

    async def _uri(self, line: PartialLine) -> list[Candidate]:
        if len(_names_given(line)) > 0:
            return []
        found = await self._listed_uri(line.word)
        for template in await self._catalogue.templates():
            found += await self._expanded(template.uri_template, line.word, _about(template))
        return found

    async def _subscription(self, line: PartialLine) -> list[Candidate]:
        return await self._listed_uri(line.word) if len(line.words) == 1 else []

    async def _level(self, line: PartialLine) -> list[Candidate]:
        return _fixed(LOG_LEVELS, line)

    async def _switch(self, line: PartialLine) -> list[Candidate]:
        return _fixed(("on", "off"), line)

    async def _revision(self, line: PartialLine) -> list[Candidate]:
        return _fixed((*REVISIONS, "auto"), line)

    async def _task_action(self, line: PartialLine) -> list[Candidate]:
        return _fixed(_TASK_ACTIONS, line)

    async def _topic(self, line: PartialLine) -> list[Candidate]:
        found = _matching(self._commands.items(), line.word) if len(line.words) == 1 else ()
        return [_word(each, about) for each, about in found]

    async def _file(self, line: PartialLine) -> list[Candidate]:
        return list(_files("", line.word)) if len(line.words) == 1 else []

    # -- arguments -----------------------------------------------------------------------------

    async def _tool_argument(self, line: PartialLine) -> list[Candidate]:
        given = _names_given(line)
        tools = await self._catalogue.tools()
        tool = next((each for each in tools if each.name == given[0]), None)
        if tool is None:
            return []
        schemas = argument_schemas(tool.input_schema)
        key, sign, value = line.word.partition("=")
        if not sign:
            return list(_argument_names(schemas, tool, given[1:], key))
        if _names_file(value):
            return list(_files(f"{key}=@", value[1:]))
        value = _literal(value)
        return list(_choices(key, value, value_choices(schemas.get(key, {}), tool.input_schema)))

    async def _prompt_argument(
        self, prompt: Prompt, given: Sequence[str], word: str
    ) -> list[Candidate]:
        declared = {each.name: each for each in prompt.arguments or ()}
        key, sign, value = word.partition("=")
        others = dict(_pair(each) for each in given if "=" in each)
        if not sign:
            return [
                Candidate(f"{name}=", f"{name}=", _described(each.description))
                for name, each in declared.items()
                if name.startswith(key) and name not in others and "=" not in name
            ]
        if _names_file(value):
            return list(_files(f"{key}=@", value[1:]))
        value = _literal(value)
        if key not in declared:
            return []
        values = await self._catalogue.values(key, value, prompt=prompt.name, others=others)
        return [Candidate(_pair_text(key, each), each) for each in values]

    async def _listed_uri(self, word: str) -> list[Candidate]:
        return [
            _word(each.uri, _about(each))
            for each in await self._catalogue.resources()
            if each.uri.startswith(word)
        ]

    async def _expanded(self, template: str, word: str, about: str) -> list[Candidate]:
        """Return the URIs of a template that begin with `word`, as far as the server knows them."""
        open_variable = _variable_at_end(template, word)
        if open_variable is None:
            start = template.partition("{")[0]
            is_before = len(word) < len(start) and start.startswith(word)
            return [Candidate(quoted(start), template, about)] if is_before else []
        before, name, value, others = open_variable
        values = await self._catalogue.values(name, value, resource=template, others=others)
        return [Candidate(quoted(before + each), before + each, about) for each in values]


_COMPLETES: Final[dict[str, _Complete]] = {
    "list": ShellCompleter._kind,
    "call": ShellCompleter._call,
    "edit": ShellCompleter._tool,
    "read": ShellCompleter._uri,
    "prompt": ShellCompleter._prompt,
    "subscribe": ShellCompleter._subscription,
    "unsubscribe": ShellCompleter._subscription,
    "watch": ShellCompleter._switch,
    "log": ShellCompleter._level,
    "tasks": ShellCompleter._task_action,
    "revision": ShellCompleter._revision,
    "save": ShellCompleter._file,
    "help": ShellCompleter._topic,
}


# Candidates


def _is_plain(text: str) -> bool:
    return text.isprintable() and len(text) <= _MAX_LENGTH


def _names_file(value: str) -> bool:
    return value.startswith("@") and not value.startswith("@@")


def _literal(value: str) -> str:
    """Return the text that a value stands for, which is not a file."""
    return value.removeprefix("@")


def _pair_text(key: str, value: str) -> str:
    """Return an argument as it is typed, complete."""
    return f"{key}={quoted(f'@{value}' if value.startswith('@') else value)} "


def _word(text: str, about: str = "") -> Candidate:
    return Candidate(f"{quoted(text)} ", text, about)


def _fixed(words: Iterable[str], line: PartialLine) -> list[Candidate]:
    """Return the words that may stand after a command, and nothing after those."""
    if len(line.words) > 1:
        return []
    return [_word(each) for each in words if each.startswith(line.word)]


def _matching(pairs: Iterable[tuple[str, str]], word: str) -> Iterator[tuple[str, str]]:
    return ((name, about) for name, about in pairs if name.startswith(word))


def _names(entries: Iterable[Tool | Prompt], word: str) -> list[Candidate]:
    return [_word(each.name, _about(each)) for each in entries if each.name.startswith(word)]


def _about(entry: Any) -> str:
    return _described(entry.description) or _described(entry.title)


def _described(text: str | None) -> str:
    """Return the first line of a description, cut."""
    if not isinstance(text, str) or not text.strip():
        return ""
    line = visible(" ".join(text.strip().split("\n\n", 1)[0].split()), kept="")
    return line if len(line) <= _MAX_ABOUT_LENGTH else f"{line[:_MAX_ABOUT_LENGTH]}…"


def _names_given(line: PartialLine) -> list[str]:
    """Return the words after the command, without options."""
    return [each for each in line.words[1:] if not each.startswith("-")]


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key, value


def _argument_names(
    schemas: Mapping[str, Any], tool: Tool, given: Sequence[str], word: str
) -> Iterator[Candidate]:
    taken = {each.partition("=")[0].removesuffix(":") for each in given}
    for name, schema in schemas.items():
        is_word = quoted(name) == name and "=" not in name
        if name.startswith(word) and name not in taken and is_word:
            kind = type_summary(schema, tool.input_schema)
            text = schema.get("description") if isinstance(schema, dict) else None
            about = _described(text)
            yield Candidate(f"{name}=", f"{name}=", f"{kind}  {about}".strip())


def _choices(key: str, value: str, choices: Iterable[str]) -> Iterator[Candidate]:
    """Yield the choices of a value, or of the last item of a list."""
    before, _, last = value.rpartition(",")
    start = f"{before}," if before else ""
    for each in choices:
        if each.startswith(last):
            yield Candidate(_pair_text(key, start + each), each)


def _files(before: str, word: str) -> Iterator[Candidate]:
    """Yield the files and folders whose path begins with `word`."""
    folder, begin = os.path.split(word)
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda each: each.name)
    except OSError:
        return
    for each in entries:
        is_hidden = each.name.startswith(".") and not begin.startswith(".")
        if each.name.startswith(begin) and not is_hidden:
            is_folder = each.is_dir()
            path = os.path.join(folder, each.name)
            end = os.sep if is_folder else ""
            text = quoted(f"{before}{path}{end}")
            yield Candidate(text if is_folder else f"{text} ", f"{each.name}{end}")


def _variable_at_end(template: str, word: str) -> tuple[str, str, str, dict[str, str]] | None:
    """Return the variable of a template that `word` ends in, or None.

    The result is the text before the variable, its name, its value so far, and the variables
    before it.
    """
    at, place, others = 0, 0, dict[str, str]()
    for match in _VARIABLE.finditer(template):
        fixed = template[place : match.start()]
        if "{" in fixed or not word.startswith(fixed, at):
            return None
        at, place = at + len(fixed), match.end()
        # The value ends where the next fixed text begins, which is one character here.
        end = template[place : place + 1]
        stop = word.find(end, at) if end and end != "{" else -1
        if stop < 0:
            return word[:at], match[1], word[at:], others
        others[match[1]] = word[at:stop]
        at = stop
    return None
