"""Records of MCP tasks in the store: one form, which servers of other versions read too."""

from __future__ import annotations

import asyncio

from msgspec import Raw
from msgspec.json import decode, encode

from tests.unit.server.tasks.tool_record import record
from trunkline.engine.tasks.records import TaskRecords, with_question
from trunkline.server.tasks.records import ToolTaskRecord
from trunkline.store import Key, MemoryStore

STORED = {
    "id": "a" * 32,
    "tenant": "t",
    "owner": "alice",
    "form": "core",
    "tool": "work",
    "runner": "r",
    "created": 1000.0,
    "updated": 1001.0,
    "ttl": None,
    "poll_interval": 1.0,
    "status": "input_required",
    "status_message": "why",
    "result": {"content": []},
    "error": {"code": 1, "message": "no"},
    "questions": {"a": {"method": "roots/list"}},
    "responses": {"b": {"result": {}}, "c": {"is_timeout": True}},
    "scopes": ["s"],
}


def test_a_stored_record_keeps_its_names() -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.put(Key("t", "task", "a" * 32), encode(STORED), ttl=None)
        found = await TaskRecords(store, ToolTaskRecord).get("t", "a" * 32)
        assert found is not None
        assert (found.form, found.tool, found.scopes) == ("core", "work", ("s",))
        assert decode(encode(found)) == STORED

    asyncio.run(main())


def test_what_a_new_record_does_not_have_is_not_stored() -> None:
    made = decode(encode(record()))
    assert set(STORED) - set(made) == {
        *("status", "status_message", "result", "error"),
        *("questions", "responses", "scopes"),
    }
    asked = with_question(record(), "a", Raw(b"{}"))
    assert asked is not None
    assert decode(encode(asked))["status"] == "input_required"
