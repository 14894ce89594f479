"""The judge and the negotiation with one more revision: run by `test_next_revision.py` alone.

The recordings of the newest revision are relabelled, so that all of them are of the next.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.conversation.app import example
from tests.imaginary_revision import NEWEST, NEXT
from tests.unit.judge.rules.recording import ask, call, found, tell
from tests.vectors.conversations import test_conversations as recordings
from tests.vectors.judge import test_judge_vectors as messages
from trunkline import Client
from trunkline.spec.mcp.meta import PROTOCOL_VERSION
from trunkline.spec.revisions import NEWEST_HANDSHAKE, REVISIONS


def relabelled(files: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    texts = [json.dumps(case) for cases in files.values() for case in cases]
    found = [json.loads(text.replace(NEWEST, NEXT)) for text in texts if NEWEST in text]
    assert found
    return found


def test_a_message_of_the_next_revision_has_the_findings_of_the_newest() -> None:
    for case in relabelled(messages.FILES):
        assert messages.found_in(case) == sorted(case["findings"]), case["name"]


def test_a_conversation_of_the_next_revision_has_the_findings_of_the_newest() -> None:
    for case in relabelled(recordings.FILES):
        found, outcomes = recordings.judged(case)
        assert found == case["findings"], case["name"]
        for id, verdict in case["outcomes"].items():
            assert outcomes[id].verdict == verdict, f"{case['name']}: {id}"


@pytest.mark.parametrize(
    ("revisions", "agreed", "era"),
    [
        (REVISIONS, NEXT, "per_request"),
        ([NEXT], NEXT, "per_request"),
        ([*REVISIONS[:-1]], NEWEST, "per_request"),
        ([NEWEST], NEWEST, "per_request"),
        ([NEXT, "2025-06-18"], NEXT, "per_request"),
        (["2024-11-05", NEWEST_HANDSHAKE], NEWEST_HANDSHAKE, "handshake"),
    ],
)
def test_a_client_of_the_next_revision_uses_the_newest_of_a_server(
    revisions: list[str], agreed: str, era: str
) -> None:
    async def main() -> None:
        async with Client(example(revisions=revisions), validate="raise") as client:
            assert (client.revision, client.era) == (agreed, era)
            assert (await client.call_tool("add", {"a": 2}, result_type=int)).value == 3

    asyncio.run(main())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_server_of_the_next_revision_serves_a_client_of_each(revision: str) -> None:
    async def main() -> None:
        async with Client(example(), revision=revision, validate="raise") as client:
            assert client.revision == revision
            assert (await client.call_tool("add", {"a": 2}, result_type=int)).value == 3

    asyncio.run(main())


@pytest.mark.parametrize("revision", [NEWEST, NEXT])
def test_a_message_that_names_no_revision_has_the_era_of_those_before_it(revision: str) -> None:
    request = call(1, "tools/list", meta={PROTOCOL_VERSION: revision})
    cancelled = tell("notifications/cancelled", by="client", requestId=1)
    assert found(request, cancelled) == []


def test_a_method_that_only_the_per_request_era_has_is_judged_by_it() -> None:
    missing = [rule for rule, *_ in found(ask(1, "subscriptions/listen", notifications={}))]
    assert "mcp.meta.version-present" in missing
    assert "mcp.lifecycle.initialize-first" not in missing
