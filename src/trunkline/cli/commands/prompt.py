"""The verb `prompt`: gets a prompt with its arguments filled in, and shows the messages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import SUCCESS
from ..output.reports import emit
from .call import JSON_HELP, add_options, json_arguments

if TYPE_CHECKING:
    from ...client.client import Client
    from ...mcp.types import GetPromptResult, Prompt
    from ..connect.talk import Work
    from ..output.progress import Console

__all__ = ["EXAMPLES", "TAKES_COMMAND", "add_options", "configure", "run", "work_of"]

TAKES_COMMAND: Final = True
EXAMPLES: Final = """\
trunkline prompt notes.py review code=@main.py
trunkline prompt https://mcp.example.org/mcp greeting name=Ada
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(
        parser,
        "NAME [key=value ...]",
        json_help=JSON_HELP,
    )
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Get the prompt and return the exit status."""
    words = take_words(options, "NAME", can_list=True)
    if not words:
        # Imported here: most command lines have one.
        from ..connect.listing import missing_name

        return talk(options, missing_name(options.prog, "NAME", "prompts"))
    return talk(options, work_of(options, words))


def work_of(options: argparse.Namespace, words: Sequence[str]) -> Work:
    """Return what gets the prompt that is the first of `words`, with the others as arguments.

    Raises:
        UsageError: the value of `--json` is not an object of strings, or there are words as well.
    """
    name, *words = words
    given = json_arguments(options, words)
    if given is not None and not all(isinstance(each, str) for each in given.values()):
        raise UsageError("the arguments of a prompt are strings")

    async def work(client: Client, console: Console) -> int:
        arguments = given
        with console.waiting(f"getting {name}"):
            if arguments is None:
                arguments = _arguments(words, await _prompt(client, name))
            result = await client.get_prompt(name, arguments, on_progress=console.progress)
        return _shown(result, options, name)

    return work


async def _prompt(client: Client, name: str) -> Prompt:
    prompts = await client.list_prompts()
    for each in prompts:
        if each.name == name:
            return each
    # Imported here: most names exist.
    from ..connect.errors import unknown_name

    raise unknown_name(name, (each.name for each in prompts), "prompt")


def _arguments(words: Sequence[str], prompt: Prompt) -> dict[str, Any]:
    from ..connect.tool_arguments import parse_arguments

    declared = prompt.arguments if isinstance(prompt.arguments, list) else []
    schema = {
        "properties": {
            each.name: {"type": "string", "description": each.description} for each in declared
        },
        "required": [each.name for each in declared if each.required is True],
        "additionalProperties": False,
    }
    made = parse_arguments(words, schema, f"the prompt {prompt.name!r}")
    for name, value in made.items():
        if not isinstance(value, str):
            raise UsageError(f"{name!r} is an argument of a prompt: it takes a string")
    return made


def _shown(result: GetPromptResult, options: argparse.Namespace, name: str) -> int:
    from ..output.content import SaveFolder, blocks_shown, document_shown, plain
    from ..output.terminal import bold, dim

    if wants_json(options):
        document: dict[str, Any] = {"messages": result.messages}
        if isinstance(result.description, str):
            document = {"description": result.description, **document}
        emit(document_shown(document))
        return SUCCESS
    folder = SaveFolder(options.save, name)
    parts = [dim(plain(result.description))] if isinstance(result.description, str) else []
    for message in result.messages:
        text = "\n".join(blocks_shown([message.content], folder))
        parts.append(f"{bold(f'{message.role}:')}\n{text}")
    emit("\n\n".join(parts))
    return folder.status(options.prog)
