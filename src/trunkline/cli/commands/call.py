"""The verb `call`: calls a tool and shows its result.

Arguments are words, converted by the tool's input schema before the call, or one JSON object,
which is sent as it is: then the tools are not listed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import PeerError
from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import emit
from ..output.terminal import fitted, paint, tell, tell_error

if TYPE_CHECKING:
    from ...client.client import Client
    from ...client.requests.tool_result import ToolResult
    from ...mcp.types import Tool
    from ..connect.talk import Work
    from ..output.progress import Console

__all__ = [
    "EXAMPLES",
    "JSON_HELP",
    "TAKES_COMMAND",
    "add_options",
    "configure",
    "json_arguments",
    "run",
    "show_result",
    "work_of",
]

TAKES_COMMAND: Final = True

EXAMPLES: Final = """\
trunkline call notes.py find text=tea
trunkline call https://mcp.example.org/mcp forecast city=Oslo days=3
trunkline call claude:github search_issues --json '{"query": "is:open"}'
trunkline call find text=tea --env API_KEY=abc -- npx some-server
"""
JSON_HELP: Final = (
    "all arguments as a JSON object, or - to read it from standard input; "
    "without a value: the same as -o json"
)
_EPILOG: Final = """\
arguments of the tool:
  key=text      converted by the tool's schema: a number if it asks for one
  key:=JSON     JSON, whatever the schema says
  key=@FILE     the text of a file; key=@@text for a text that begins with @
  a.b=text      member b of the object a
  a=1,2         a list; also a=1 a=2 or a=[1,2]
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_target(
        parser,
        "TOOL [key=value ...]",
        json_help=JSON_HELP,
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are not about the connection."""
    parser.add_argument(
        "--save", metavar="DIR", help="folder for images, audio and other files; default: ."
    )


def run(options: argparse.Namespace) -> int:
    """Call the tool and return the exit status."""
    words = take_words(options, "TOOL", can_list=True)
    if not words:
        # Imported here: most command lines have one.
        from ..connect.listing import missing_name

        return talk(options, missing_name(options.prog, "TOOL", "tools"))
    return talk(options, work_of(options, words))


def work_of(options: argparse.Namespace, words: Sequence[str]) -> Work:
    """Return what calls the tool that is the first of `words`, with the others as arguments.

    Raises:
        UsageError: the value of `--json` is not a JSON object, or there are words as well.
    """
    name, *words = words
    given = json_arguments(options, words)

    async def work(client: Client, console: Console) -> int:
        with console.waiting(f"calling {name}"):
            result = await _called(client, name, words, given, console, options.prog)
        if result.is_error:
            console.failure = result.text
        return show_result(result, options, name)

    return work


def json_arguments(options: argparse.Namespace, words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments in `--json`, or None if it has no value.

    Raises:
        UsageError: its value is not a JSON object, or there are words as well.
    """
    text = options.json
    if text is None or text is True:
        return None
    from msgspec import DecodeError
    from msgspec.json import decode

    if text != "-" and not text.lstrip().startswith("{"):
        raise UsageError(
            "--json takes the arguments as a JSON object, or -; for JSON output use -o json"
        )
    if words:
        raise UsageError("give the arguments as words or by --json, not both")
    raw = _standard_input() if text == "-" else text.encode("utf-8", "surrogateescape")
    try:
        value = decode(raw)
    except UnicodeDecodeError:
        raise UsageError("the arguments of --json are not UTF-8 text") from None
    except (DecodeError, RecursionError) as error:
        # The input is not quoted: it may hold a secret.
        raise UsageError(f"the arguments of --json are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError("the arguments of --json are not a JSON object")
    return value


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UsageError("--json - reads standard input, which is closed")
    return sys.stdin.buffer.read()


async def _called(
    client: Client,
    name: str,
    words: Sequence[str],
    given: dict[str, Any] | None,
    console: Console,
    prog: str,
) -> ToolResult[Any]:
    if given is None:
        tools = await client.list_tools()
        tool = next((each for each in tools if each.name == name), None)
        if tool is None:
            raise _unknown(name, tools)
        from ..connect.tool_arguments import parse_arguments, unknown_arguments

        given = parse_arguments(words, tool.input_schema, f"the tool {name!r}")
        for sentence in unknown_arguments(given, tool.input_schema):
            console.note(f"{prog}: {sentence}")
        return await client.call_tool(name, given, on_progress=console.progress)
    try:
        return await client.call_tool(name, given, on_progress=console.progress)
    except PeerError as error:
        refused = error
    if refused.kind == "INVALID_PARAMS":
        # The name may be wrong; the tools are listed only now.
        tools = await client.list_tools()
        if all(each.name != name for each in tools):
            raise _unknown(name, tools)
    raise refused


def _unknown(name: str, tools: Sequence[Tool]) -> UsageError:
    # Imported here: most names exist.
    from ..connect.errors import unknown_name

    return unknown_name(name, (each.name for each in tools), "tool")


def show_result(result: ToolResult[Any], options: argparse.Namespace, name: str) -> int:
    """Print a result as the options say; return the exit status."""
    from ..output.content import SaveFolder, document_shown, result_shown

    if wants_json(options):
        emit(document_shown(_document(result)))
        return PROBLEMS_FOUND if result.is_error else SUCCESS
    folder = SaveFolder(options.save, name)
    stream = sys.stderr if result.is_error else sys.stdout
    text = "\n".join(result_shown(result, folder, stream))
    if result.is_error:
        _tell_failure(text, options.prog)
        return PROBLEMS_FOUND
    if text:
        emit(text)
    return folder.status(options.prog)


def _tell_failure(text: str, prog: str) -> None:
    """Print the text of a failed tool, its first line in red."""
    if not text:
        tell_error(prog, "the tool failed without an error message")
        return
    first, line_break, rest = text.partition("\n")
    tell(f"{fitted(paint(first, 'red', sys.stderr))}{line_break}{rest}")


def _document(result: ToolResult[Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"content": result.content}
    if result.has_value:
        document["structuredContent"] = result.structured_content
    document["isError"] = result.is_error
    if result.meta:
        document["_meta"] = result.meta
    return document
