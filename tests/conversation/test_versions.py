"""Which revision is agreed on: by the server, by our client, and under each policy."""

from __future__ import annotations

import pytest

from tests.conversation.rig import Rig
from tests.conversation.rules import rule
from trunkline import Client
from trunkline.errors import PeerError, RemoteProtocolError
from trunkline.spec.revisions import (
    HANDSHAKE,
    LATEST,
    NEWEST_HANDSHAKE,
    PER_REQUEST,
    REVISIONS,
    V2026_07_28,
)

HANDSHAKES = [revision for revision in REVISIONS if HANDSHAKE.holds(revision)]
# What a server without handshake names, newest first.
SUPPORTED = [revision for revision in reversed(REVISIONS) if PER_REQUEST.holds(revision)]


@rule("BP-031", "P-45", "K-79", "P-56", "P-43", fresh=True)
async def test_server_echoes_a_version_it_supports(rig: Rig) -> None:
    raw = await rig.line(opened=False)
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision
    assert (await raw.text("who"))["revision"] == rig.revision


@rule("BP-031", "P-63", "E-102", "K-13", "K-14", "K-15", until=V2026_07_28, fresh=True)
async def test_unknown_version_is_answered_with_the_newest_supported(rig: Rig) -> None:
    for asked in ("2099-01-01", "2024-10-07", "1.0", "nonsense", "", LATEST):
        raw = await rig.line(opened=False)
        assert (await raw.shake_hands(asked))["protocolVersion"] == NEWEST_HANDSHAKE
        assert await raw.text("echo", text="basics") == "basics"
        if rig.transport != "memory":
            break  # one process is enough


@rule("P-43", "BP-031", until=V2026_07_28, fresh=True)
async def test_server_can_be_limited_to_some_revisions(rig: Rig) -> None:
    raw = await rig.line("middle", opened=False)
    agreed = (await raw.shake_hands())["protocolVersion"]
    has_it = rig.revision in ("2025-03-26", "2025-06-18")
    assert agreed == (rig.revision if has_it else "2025-06-18")


@rule("P-46", "K-13", "K-14", until=V2026_07_28, fresh=True)
async def test_a_rejecting_server_says_what_was_asked_and_what_is_supported(rig: Rig) -> None:
    raw = await rig.line("rejecting", opened=False)
    error = await raw.error("initialize", raw.introduction("2099-01-01"))
    assert error["code"] == -32602
    assert error["data"]["requested"] == "2099-01-01"
    assert error["data"]["supported"] == HANDSHAKES[::-1]
    assert (await raw.shake_hands())["protocolVersion"] == rig.revision


@rule("P-57", "P-56", "K-15", until=V2026_07_28, fresh=True)
async def test_a_server_that_falls_back_answers_older_spellings_and_warns(rig: Rig) -> None:
    for asked, agreed in [
        ("2024-10-07", "2024-11-05"),
        ("1.0", "2024-11-05"),
        ("1", "2024-11-05"),
        ("2099-01-01", NEWEST_HANDSHAKE),
    ]:
        raw = await rig.line("falling-back", opened=False)
        assert (await raw.shake_hands(asked))["protocolVersion"] == agreed
        log = await raw.logged("falling back")
        (line,) = [line for line in log.splitlines() if "falling back" in line]
        assert line.startswith("WARNING")
        assert asked in line
        assert agreed in line
        if rig.transport != "memory":
            break


@rule("BP-066", "BP-041", since=V2026_07_28, fresh=True)
async def test_server_without_handshake_refuses_initialize_with_its_supported_versions(
    rig: Rig,
) -> None:
    raw = await rig.line("per-request-only", opened=False)
    raw.send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": raw.introduction("2025-11-25"),
        }
    )
    error = (await raw.reply(1))["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == SUPPORTED
    raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    assert (await raw.reply(2))["error"]["code"] == -32602
    assert await raw.text("echo", text="new") == "new"


@rule("P-55", "K-14", "BP-060", "BP-063", since=V2026_07_28, fresh=True)
@pytest.mark.parametrize(
    ("variant", "agreed"),
    [
        ("example", LATEST),
        ("per-request-only", LATEST),
        ("handshake-only", NEWEST_HANDSHAKE),
        ("middle", "2025-06-18"),
    ],
)
async def test_both_sides_agree_on_the_newest_common_version(
    rig: Rig, variant: str, agreed: str
) -> None:
    client, record = await rig.connect_recorded(variant, revision=None)
    assert client.revision == agreed
    assert client.era == ("per_request" if PER_REQUEST.holds(agreed) else "handshake")
    assert b"server/discover" in record.lines[0][1]
    assert (await client.call_tool("add", {"a": 2}, result_type=int)).value == 3


@rule("P-55", until=V2026_07_28, fresh=True)
async def test_a_pinned_client_gets_what_it_asked_for(rig: Rig) -> None:
    client = await rig.connect("handshake-only")
    assert (client.revision, client.era) == (rig.revision, "handshake")


@rule("BP-032", "C-11", "C-28", "K-14", until="2025-03-26", fresh=True)
async def test_client_closes_the_connection_if_it_does_not_support_the_version(rig: Rig) -> None:
    # The server has two later revisions, and offers the newer of them.
    with pytest.raises(RemoteProtocolError) as caught:
        await rig.connect("middle")
    assert caught.value.rule == "mcp.version.disconnects"
    assert "2025-06-18" in str(caught.value)


@rule("C-11", "BP-033", until="2025-03-26", fresh=True)
async def test_client_that_refuses_the_version_never_sends_initialized(rig: Rig) -> None:
    record = rig.record()
    client = Client(rig.address("middle", record), revision=rig.revision)
    with pytest.raises(RemoteProtocolError):
        await client.connect()
    sent = [line for sender, line in record.lines if sender == "client"]
    assert len(sent) == 1
    assert b'"initialize"' in sent[0]
    assert not client.is_connected


@rule("C-28", until=V2026_07_28, fresh=True)
async def test_pinned_client_gets_the_supported_versions_of_a_server_without_handshake(
    rig: Rig,
) -> None:
    with pytest.raises(PeerError) as caught:
        await rig.connect("per-request-only")
    assert caught.value.code == -32022
    assert caught.value.data["supported"] == SUPPORTED
