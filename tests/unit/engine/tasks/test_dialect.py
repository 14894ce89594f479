"""Tasks of a protocol that the engine does not know: its statuses, records and questions."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import UNSET, Raw
from msgspec.json import decode

from tests.unit.engine.tasks.errands import ErrandDialect, connected
from trunkline.engine.tasks.dialect import TaskDialect
from trunkline.engine.tasks.records import InputResponse, answered, cancelled
from trunkline.store.memory import MemoryStore
from trunkline.store.values import Key

ROOT = Path(__file__).resolve().parents[4]


async def fetch(request: Any) -> str:
    return "milk"


async def lose(request: Any) -> str:
    raise ValueError("the shop is closed")


async def hang(request: Any) -> None:
    await asyncio.Event().wait()


async def choose(request: Any) -> str:
    return f"got {await request.ask('Which?')}"


def test_an_errand_runs_to_completion() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with connected(store, fetch=fetch) as (client, dialect):
            created = await client.call(1, "send", name="fetch", context="home")
            assert (created["contextId"], created["state"]) == ("home", "submitted")
            record = await client.reaches(created["id"], "completed")
            assert record.context == "home"
            assert record.result is not UNSET
            assert decode(record.result) == {"artifacts": ["milk"]}
            assert dialect.notified == [("completed", True)]
            stored = await store.get(Key("", "task", created["id"]))
            assert stored is not None
            assert decode(stored.value)["context"] == "home"

    asyncio.run(main())


def test_an_errand_whose_handler_raises_fails() -> None:
    async def main() -> None:
        async with connected(MemoryStore(), lose=lose) as (client, _):
            created = await client.call(1, "send", name="lose", context="home")
            record = await client.reaches(created["id"], "failed")
            assert record.status_message == "the shop is closed"
            assert record.error is not UNSET
            assert decode(record.error)["code"] == -32603

    asyncio.run(main())


def test_a_cancelled_errand_has_the_status_of_its_protocol_and_answers_who_waits() -> None:
    async def main() -> None:
        async with connected(MemoryStore(), hang=hang) as (client, _):
            created = await client.call(1, "send", name="hang", context="home")
            waiting = asyncio.create_task(client.call(2, "wait", id=created["id"]))
            record = await client.reaches(created["id"], "submitted")
            running = client.tasks.running[record.id]
            assert (await client.tasks.change(record, cancelled)).is_ours
            assert await waiting == {"state": "canceled"}
            await asyncio.wait_for(running.done, 10)
            assert running.request.cancelled
            # It is final: nothing changes it any more.
            assert not (await client.tasks.change(record, cancelled)).is_ours

    asyncio.run(main())


def test_an_errand_that_asks_waits_for_input() -> None:
    async def main() -> None:
        async with connected(MemoryStore(), choose=choose) as (client, dialect):
            created = await client.call(1, "send", name="choose", context="home")
            record = await client.reaches(created["id"], "input-required")
            assert {key: decode(each) for key, each in record.questions.items()} == {
                "first": {"text": "Which?"}
            }
            response = InputResponse(result=Raw(b'"oats"'))
            await client.tasks.change(record, lambda now: answered(now, {"first": response}))
            record = await client.reaches(created["id"], "completed")
            assert record.result is not UNSET
            assert decode(record.result) == {"artifacts": ["got oats"]}
            assert dialect.carried == []

    asyncio.run(main())


def test_a_question_goes_out_on_a_request_that_waits_if_the_dialect_says_so() -> None:
    async def main() -> None:
        async with connected(MemoryStore(), choose=choose) as (client, dialect):
            created = await client.call(1, "send", name="choose", context="phone")
            await client.reaches(created["id"], "input-required")
            assert await client.call(2, "wait", id=created["id"]) == {"state": "completed"}
            assert dialect.carried == [(2, {"text": "Which?"})]

    asyncio.run(main())


def test_an_errand_left_by_its_server_has_failed() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with connected(store, hang=hang) as (client, dialect):
            created = await client.call(1, "send", name="hang", context="home")
            record = await client.reaches(created["id"], "submitted")
            client.tasks.running.pop(record.id).stop()  # as if it had run in another process
            found = await client.tasks.fail_if_orphaned(record)
            assert found is not None
            assert found.status == "failed"
            assert dialect.notified == [("failed", True)]

    asyncio.run(main())


def test_the_made_up_dialect_is_one() -> None:
    dialect: TaskDialect[Any] = ErrandDialect()
    assert dialect.record_type.statuses.final > {"rejected"}


PROGRAM = """
import sys
from tests.unit.engine.tasks import test_dialect

for name, test in list(vars(test_dialect).items()):
    if name.startswith("test_an_errand") or name.startswith("test_a_"):
        test()
        print(name)
known = [each for each in sys.modules if each.startswith(("trunkline.server", "trunkline.mcp"))]
assert known == [], known
"""


def test_tasks_of_another_protocol_load_nothing_of_mcp() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, timeout=60, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout.splitlines()) == 6
