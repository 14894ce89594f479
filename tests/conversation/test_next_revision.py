"""One more revision, with the facts of the newest, changes nothing for those before it.

`tests/imaginary_revision.py` adds it in a process of its own. There the judge reads recordings of
the newest and of the next revision, every script is played in memory in the next, and a client
negotiates with servers that know the next revision and servers that do not. Code that compares a
revision with `LATEST` where it means an era fails here.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.conversation.journal import HANGS
from trunkline import Client, Stdio
from trunkline.errors import RemoteProtocolError
from trunkline.spec.revisions import LATEST

ROOT: Final = Path(__file__).parents[2]
# As in `tests.imaginary_revision`, which changes the process that imports it.
NEXT: Final = "2027-01-15"
SERVER: Final = """
import sys, tests.imaginary_revision
from trunkline import Server
app = Server("next", **({"revisions": sys.argv[1:]} if sys.argv[1:] else {}))
@app.tool
def plus(a: int, b: int) -> int:
    return a + b
app.run()
"""


def run_with_the_next_revision(*arguments: str) -> None:
    command = [*(sys.executable, "-m", "pytest", "-q", "-x", "--tb=short"), "--color=no"]
    command += ["-p", "no:cacheprovider", "-p", "tests.imaginary_revision", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]


def test_recordings_are_judged_by_the_era_of_their_revision() -> None:
    run_with_the_next_revision("tests/vectors/conversations", "tests/unit/judge/rules")


def test_messages_and_negotiation_of_the_next_revision() -> None:
    run_with_the_next_revision("tests/conversation/next_revision.py")


def test_every_script_is_played_in_the_next_revision() -> None:
    run_with_the_next_revision("tests/conversation", "-k", f"memory-{NEXT}")


def server(*revisions: str) -> Stdio:
    return Stdio([sys.executable, "-c", SERVER, *revisions], cwd=str(ROOT))


def test_a_client_that_does_not_know_the_next_revision_uses_its_own_newest() -> None:
    async def main() -> None:
        async with Client(server(), timeout=HANGS) as client:
            assert (client.revision, client.era) == (LATEST, "per_request")
            assert (await client.call_tool("plus", {"a": 1, "b": 2})).value == 3

    asyncio.run(main())


def test_a_client_has_no_revision_in_common_with_a_server_of_the_next_alone() -> None:
    with pytest.raises(RemoteProtocolError, match=NEXT):
        asyncio.run(Client(server(NEXT), timeout=HANGS).connect())
