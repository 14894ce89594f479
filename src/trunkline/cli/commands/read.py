"""The verb `read`: reads a resource, and shows or saves its contents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..command import UsageError
from ..connect.options import add_target, take_words, wants_json
from ..connect.talk import talk
from ..exit_codes import PROBLEMS_FOUND, SUCCESS
from ..output.reports import emit
from ..output.terminal import tell, writing

if TYPE_CHECKING:
    from ...client.client import Client
    from ...mcp.types import ReadResourceResult
    from ..connect.talk import Work
    from ..output.progress import Console

__all__ = ["EXAMPLES", "TAKES_COMMAND", "add_options", "configure", "run", "work_of"]

TAKES_COMMAND: Final = True
EXAMPLES: Final = """\
trunkline read notes.py note://1
trunkline read unix:/run/notes.sock note://1
trunkline read file:///logo.png --raw -- npx some-server > logo.png
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, "URI")
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that are not about the connection."""
    parser.add_argument("--save", metavar="DIR", help="folder for binary contents; default: .")
    parser.add_argument(
        "--raw", action="store_true", help="write the contents to standard output unchanged"
    )


def run(options: argparse.Namespace) -> int:
    """Read the resource and return the exit status."""
    words = take_words(options, "URI", can_list=True)
    if not words:
        # Imported here: most command lines have one.
        from ..connect.listing import missing_name

        return talk(options, missing_name(options.prog, "URI", "resources"))
    return talk(options, work_of(options, words))


def work_of(options: argparse.Namespace, words: Sequence[str]) -> Work:
    """Return what reads the resource whose URI is the only one of `words`.

    Raises:
        UsageError: there are more words, or options that exclude each other.
    """
    if len(words) > 1:
        raise UsageError("read takes one URI; give the others in calls of their own")
    if options.raw and wants_json(options):
        raise UsageError("--raw writes bytes and -o json a JSON document: choose one")

    async def work(client: Client, console: Console) -> int:
        with console.waiting(f"reading {words[0]}"):
            result = await client.read_resource(words[0], on_progress=console.progress)
        return _shown(result, options, words[0])

    return work


def _shown(result: ReadResourceResult, options: argparse.Namespace, uri: str) -> int:
    from ..output.content import SaveFolder, contents_shown, document_shown

    if wants_json(options):
        emit(document_shown({"contents": result.contents}))
    elif options.raw:
        return _write_raw(result, options)
    elif result.contents:
        name = uri.rstrip("/").rpartition("/")[2].rpartition(".")[0] or uri.rpartition("/")[2]
        folder = SaveFolder(options.save, name)
        emit("\n".join(contents_shown(result.contents, folder)))
        return folder.status(options.prog)
    return SUCCESS


def _write_raw(result: ReadResourceResult, options: argparse.Namespace) -> int:
    from base64 import b64decode

    for each in result.contents:
        blob = each.blob if isinstance(each.blob, str) else ""
        try:
            raw = (
                each.text.encode() if isinstance(each.text, str) else b64decode(blob, validate=True)
            )
        except ValueError:
            tell(f"{options.prog}: the server sent contents that are not Base64")
            return PROBLEMS_FOUND
        _write(raw)
    return SUCCESS


def _write(raw: bytes) -> None:
    if sys.stdout is None:  # it was closed when Python started
        return
    with writing():
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
