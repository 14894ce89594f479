"""What a program loads that names the client: nothing that only some clients use."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

# Each is loaded by the first who needs it: a server that asks, a list, a task, a judge.
LATER = (
    "connect.extensions",
    "requests.batch",
    "requests.pagination",
    "server_requests.form_validation",
    "server_requests.incoming",
    "server_requests.input_required",
    "session.validation",
    "subscriptions.callback_stream",
    "sync.base",
    "sync.callbacks",
    "sync.client",
    "sync.event_loop_thread",
    "sync.handles",
    "tasks.cleanup",
    "tasks.input_requests",
    "tasks.poller",
    "tasks.retry",
    "tasks.task_call",
    "tasks.wait_timeout",
)


def loaded(program: str) -> set[str]:
    """Return the modules of the client that a program has loaded when it ends."""
    tail = "import sys; print(*(name for name in sys.modules if 'trunkline.client.' in name))"
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\n{tail}"],
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    return {name.removeprefix("trunkline.client.") for name in run.stdout.split()}


@pytest.mark.parametrize("name", LATER)
def test_modules_loaded_on_demand_exist(name: str) -> None:
    assert find_spec(f"trunkline.client.{name}") is not None


def test_to_name_the_client_loads_nothing_that_only_some_use() -> None:
    assert loaded("from trunkline import Client").isdisjoint(LATER)


CALL = """
import asyncio
from trunkline import Client, Server

app = Server("loading")

@app.tool
async def echo(text: str) -> str:
    return text

async def main() -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(app, revision=revision) as client:
            assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"

asyncio.run(main())
"""


def test_a_plain_call_loads_nothing_more() -> None:
    assert loaded(CALL).isdisjoint(LATER)
