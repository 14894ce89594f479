"""The `_meta` of requests: what is read of it, what is refused, what is remembered and sent."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from trunkline.mcp import meta
from trunkline.mcp.meta import (
    BadMeta,
    Caller,
    CallerMemo,
    encoded_request_meta,
    read_caller,
    request_meta,
    required_keys,
    with_progress_token,
)
from trunkline.mcp.types import (
    ClientCapabilities,
    ClientCapabilitiesRoots,
    Implementation,
    RequestMetaObject,
)
from trunkline.spec.error_kinds import ErrorKind
from trunkline.spec.lookup import meta_keys
from trunkline.spec.revisions import REVISIONS, V2025_11_25, V2026_07_28
from trunkline.spec.types import UnknownRevision

HANDSHAKE = [revision for revision in REVISIONS if revision < V2026_07_28]
ME = Implementation("me", "1.0", title="Me")


def raw(**told: Any) -> bytes:
    """Return a `_meta` with keys given by the names of their constants."""
    return json.dumps({getattr(meta, name.upper()): value for name, value in told.items()}).encode()


# The keys


def test_the_keys_are_those_of_the_specification() -> None:
    assert meta.PROTOCOL_VERSION == "io.modelcontextprotocol/protocolVersion"
    assert meta.CLIENT_CAPABILITIES == "io.modelcontextprotocol/clientCapabilities"
    assert meta.CLIENT_INFO == "io.modelcontextprotocol/clientInfo"
    assert meta.LOG_LEVEL == "io.modelcontextprotocol/logLevel"
    assert meta.SERVER_INFO == "io.modelcontextprotocol/serverInfo"
    assert meta.SUBSCRIPTION_ID == "io.modelcontextprotocol/subscriptionId"
    assert meta.PROGRESS_TOKEN == "progressToken"


def test_a_caller_has_a_place_for_every_key_of_the_struct() -> None:
    for key in RequestMetaObject.__struct_encode_fields__:
        assert read_caller(json.dumps({}).encode()).meta == {}
        sample = {
            meta.PROTOCOL_VERSION: "v",
            meta.CLIENT_CAPABILITIES: {},
            meta.CLIENT_INFO: {"name": "a", "version": "1"},
            meta.LOG_LEVEL: "info",
            meta.PROGRESS_TOKEN: 1,
        }[key]
        told = read_caller(json.dumps({key: sample}).encode())
        named = [
            n for n in Caller.__struct_fields__ if n != "meta" and getattr(told, n) is not None
        ]
        assert len(named) == 1


# Reading


def test_everything_a_request_says_is_read() -> None:
    told = raw(
        protocol_version="2026-07-28",
        client_capabilities={"roots": {}},
        client_info={"name": "a", "version": "1"},
        log_level="info",
        progress_token=7,
    )
    found = read_caller(told)
    assert found.protocol_version == "2026-07-28"
    assert found.capabilities == ClientCapabilities(roots=ClientCapabilitiesRoots())
    assert found.client_info == Implementation("a", "1")
    assert found.log_level == "info"
    assert found.progress_token == 7
    assert found.meta == json.loads(told)


def test_empty_meta_gives_a_caller_of_none() -> None:
    assert read_caller(b"{}") == Caller()


def test_unknown_capabilities_and_keys_are_kept() -> None:
    capabilities = {"telepathy": {"range": 3}, "sampling": {"faster": {}}}
    found = read_caller(raw(client_capabilities=capabilities)[:-1] + b', "com.example/x": [1]}')
    assert found.capabilities is not None
    assert found.meta[meta.CLIENT_CAPABILITIES] == capabilities
    assert found.meta["com.example/x"] == [1]


def test_a_version_is_any_text() -> None:
    # Whether it is spoken here is another question, with an error of its own.
    assert read_caller(raw(protocol_version="")).protocol_version == ""


@pytest.mark.parametrize("token", ["", "a", 0, -1, 2**63])
def test_a_token_is_a_text_or_an_integer(token: int | str) -> None:
    found = read_caller(raw(progress_token=token)).progress_token
    assert found == token
    assert type(found) is type(token)


@pytest.mark.parametrize(
    ("told", "where", "expected"),
    [
        (b"[]", "", "an object"),
        (b"null", "", "an object"),
        (b"", "", "JSON that can be read"),
        (b'{"a": ', "", "JSON that can be read"),
        (b'{"a": ' + b"[" * 50_000, "", "JSON that can be read"),
        (raw(progress_token=1.5), "/progressToken", "a string or an integer"),
        (raw(progress_token=1.0), "/progressToken", "a string or an integer"),
        (raw(progress_token=True), "/progressToken", "a string or an integer"),
        (raw(progress_token=None), "/progressToken", "a string or an integer"),
        (raw(progress_token=[]), "/progressToken", "a string or an integer"),
        (raw(protocol_version=20), "/io.modelcontextprotocol~1protocolVersion", "a string"),
        (raw(protocol_version=None), "/io.modelcontextprotocol~1protocolVersion", "a string"),
        (raw(client_capabilities=[]), "/io.modelcontextprotocol~1clientCapabilities", "`object`"),
        (raw(client_capabilities=None), "/io.modelcontextprotocol~1clientCapabilities", "`object`"),
        (
            raw(client_capabilities={"roots": 3}),
            "/io.modelcontextprotocol~1clientCapabilities",
            "`$.roots`",
        ),
        (raw(client_info="me"), "/io.modelcontextprotocol~1clientInfo", "`object`"),
        (raw(client_info={"name": "a"}), "/io.modelcontextprotocol~1clientInfo", "`version`"),
    ],
)
def test_a_known_key_of_another_type_is_refused(told: bytes, where: str, expected: str) -> None:
    with pytest.raises(BadMeta) as caught:
        read_caller(told)
    assert caught.value.where == "/params/_meta" + where
    assert expected in caught.value.expected
    assert str(caught.value).startswith(f"/params/_meta{where}: expected ")
    assert caught.value.symbol is ErrorKind.INVALID_PARAMS


@pytest.mark.parametrize("level", ["loud", "INFO", "", 3, None, ["info"], {}])
def test_a_level_that_does_not_exist_has_its_own_error(level: Any) -> None:
    with pytest.raises(BadMeta, match="emergency") as caught:
        read_caller(raw(log_level=level))
    assert caught.value.symbol is ErrorKind.INVALID_LOG_LEVEL


def test_error_text_is_bounded_for_long_values() -> None:
    icon = {"src": "a:b", "theme": "x" * 100_000}
    with pytest.raises(BadMeta) as caught:
        read_caller(raw(client_info={"name": "a", "version": "1", "icons": [icon]}))
    assert len(str(caught.value)) < 400
    with pytest.raises(BadMeta) as caught:
        read_caller(raw(log_level="x" * 100_000))
    assert len(str(caught.value)) < 400


def test_a_caller_prints_without_its_secrets() -> None:
    found = read_caller(b'{"token": "hush-hush-hush", "com.example/password": "hush-hush"}')
    assert "hush" not in repr(found)


# What a revision requires


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_up_to_2025_11_25_nothing_is_required(revision: str) -> None:
    assert required_keys(revision) == frozenset()


def test_the_newest_revision_requires_a_version_and_capabilities() -> None:
    assert required_keys(V2026_07_28) == {meta.PROTOCOL_VERSION, meta.CLIENT_CAPABILITIES}


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(UnknownRevision):
        required_keys("2020-01-01")
    with pytest.raises(UnknownRevision):
        request_meta("2020-01-01", ME, ClientCapabilities())


# Remembering


def test_the_same_bytes_are_read_once() -> None:
    memo = CallerMemo()
    told = raw(protocol_version="a")
    assert memo.read(told) is memo.read(bytes(bytearray(told)))
    assert memo.read(told) == read_caller(told)
    assert memo.read(raw(protocol_version="b")).protocol_version == "b"
    assert len(memo) == 2


def test_the_oldest_is_forgotten_first() -> None:
    memo = CallerMemo(size=2)
    first, second, third = (memo.read(raw(progress_token=n)) for n in range(3))
    assert len(memo) == 2
    assert memo.read(raw(progress_token=2)) is third
    assert memo.read(raw(progress_token=1)) is second
    assert memo.read(raw(progress_token=0)) is not first


def test_a_peer_that_is_new_each_time_does_not_grow_the_memo() -> None:
    memo = CallerMemo()
    for n in range(1000):
        memo.read(raw(progress_token=n))
    assert len(memo) == 256


def test_long_ones_and_faulty_ones_are_not_remembered() -> None:
    memo = CallerMemo(longest=64)
    told = raw(progress_token="x" * 64)
    assert memo.read(told) is not memo.read(told)
    with pytest.raises(BadMeta):
        memo.read(raw(progress_token=None))
    assert len(memo) == 0


def test_a_memo_of_no_size_remembers_nothing() -> None:
    memo = CallerMemo(size=0)
    assert memo.read(b"{}") == Caller()
    assert len(memo) == 0


def test_a_memo_that_several_threads_fill_stays_within_its_size() -> None:
    memo = CallerMemo(size=2)
    told = [[raw(progress_token=f"{thread} {n}") for n in range(2000)] for thread in range(4)]

    def read_all(mine: list[bytes]) -> list[Any]:
        return [memo.read(each).progress_token for each in mine]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(told)) as pool:
            read = list(pool.map(read_all, told, timeout=60))
    finally:
        sys.setswitchinterval(interval)
    assert read == [[f"{thread} {n}" for n in range(2000)] for thread in range(4)]
    memo.read(raw(progress_token="last"))
    assert len(memo) == 2


# Sending


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_up_to_2025_11_25_a_request_says_nothing(revision: str) -> None:
    assert request_meta(revision, ME, ClientCapabilities(), "info") == {}
    assert bytes(encoded_request_meta(revision, ME, ClientCapabilities())) == b"{}"


def test_since_2026_07_28_request_meta_has_version_client_info_and_capabilities() -> None:
    capabilities = ClientCapabilities(roots=ClientCapabilitiesRoots(list_changed=True))
    assert request_meta(V2026_07_28, ME, capabilities) == {
        meta.PROTOCOL_VERSION: V2026_07_28,
        meta.CLIENT_INFO: ME,
        # Narrowed: the revision has no notice of changed roots.
        meta.CLIENT_CAPABILITIES: ClientCapabilities(roots=ClientCapabilitiesRoots()),
    }
    assert request_meta(V2026_07_28, ME, capabilities, "info")[meta.LOG_LEVEL] == "info"


def test_encoded_request_meta_is_read_back() -> None:
    told = bytes(encoded_request_meta(V2026_07_28, ME, ClientCapabilities(), "error"))
    found = read_caller(told)
    assert (found.protocol_version, found.client_info) == (V2026_07_28, ME)
    assert (found.capabilities, found.log_level) == (ClientCapabilities(), "error")
    assert required_keys(V2026_07_28).issubset(found.meta)


def test_every_key_that_a_revision_wants_on_each_request_is_sent() -> None:
    for revision in REVISIONS:
        wanted = {
            row.key
            for row in meta_keys(revision)
            if "request" in row.on and row.required != "no" and not row.only
        }
        assert set(request_meta(revision, ME, ClientCapabilities())) == wanted


@pytest.mark.parametrize("token", [7, "seven", 'a"b\\'])
def test_a_token_is_added_to_what_was_encoded(token: int | str) -> None:
    for revision in (V2025_11_25, V2026_07_28):
        told = encoded_request_meta(revision, ME, ClientCapabilities())
        found = msgspec.json.decode(with_progress_token(told, token))
        assert found.pop(meta.PROGRESS_TOKEN) == token
        assert found == msgspec.json.decode(told)
