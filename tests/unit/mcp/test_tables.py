"""What one revision knows of a Struct, and which Structs its methods have."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from trunkline.mcp import types as wire
from trunkline.mcp.tables import (
    class_name,
    drops,
    knows,
    members,
    params_type,
    requires,
    result_type,
    result_types,
)
from trunkline.spec.lookup import methods
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)
from trunkline.spec.types import UnknownRevision, UnknownType

each_revision = pytest.mark.parametrize("revision", REVISIONS)


# Presence


def test_a_revision_drops_what_came_later_and_what_has_gone() -> None:
    assert drops("Tool", V2024_11_05) == {
        "_meta", "annotations", "execution", "icons", "outputSchema", "title",
    }  # fmt: skip
    assert drops("Tool", V2025_11_25) == set()
    assert drops("Tool", V2026_07_28) == {"execution"}


def test_a_revision_requires_what_its_rows_require() -> None:
    assert requires("CallToolResult", V2025_11_25) == {"content"}
    assert requires("CallToolResult", V2026_07_28) == {"content", "resultType"}
    assert requires("ListToolsResult", V2026_07_28) == {
        "tools",
        "resultType",
        "ttlMs",
        "cacheScope",
    }
    assert requires("CancelledNotificationParams", V2025_11_25) == set()
    assert requires("CancelledNotificationParams", V2026_07_28) == {"requestId"}


def test_a_tag_is_required_and_never_dropped() -> None:
    assert requires("TextContent", V2024_11_05) == {"text", "type"}
    assert drops("TextContent", V2024_11_05) == {"_meta"}


def test_a_type_goes_by_the_name_of_its_row_or_of_its_struct() -> None:
    row, struct = "ClientCapabilities.roots", "ClientCapabilitiesRoots"
    assert class_name(row) == class_name(struct) == struct
    assert drops(row, LATEST) == drops(struct, LATEST) == {"listChanged"}
    assert class_name("UnsupportedProtocolVersionError.error.data") == (
        "UnsupportedProtocolVersionErrorData"
    )


def test_types_that_share_a_struct_share_their_members() -> None:
    # One has a text, the other a blob: neither is required of both.
    assert requires("ResourceContents", LATEST) == {"uri"}
    assert drops("ResourceContents", LATEST) == set()
    assert drops("ResourceContents", V2024_11_05) == {"_meta"}
    shared = members("ResourceContents", LATEST)
    assert shared is not None
    assert shared["uri"].limits == (("format", "uri"),)
    assert shared["text"].limits == ()


def test_a_type_that_became_a_union_has_the_members_of_all() -> None:
    assert drops("ElicitRequestParams", V2025_06_18) == {"elicitationId", "mode", "task", "url"}
    assert requires("ElicitRequestParams", V2025_06_18) == {"message", "requestedSchema"}
    assert requires("ElicitRequestParams", V2025_11_25) == {"message"}
    assert "ttl" in drops("GetTaskResult", V2026_07_28)
    assert "result" not in drops("GetTaskResult", V2026_07_28)


def test_a_type_is_known_under_its_former_name() -> None:
    assert knows("ResourceTemplateReference", V2024_11_05)
    assert requires("ResourceTemplateReference", V2024_11_05) == {"type", "uri"}


def test_a_revision_may_not_know_a_type() -> None:
    assert not knows("AudioContent", V2024_11_05)
    assert knows("AudioContent", V2025_03_26)
    assert members("AudioContent", V2024_11_05) is None
    with pytest.raises(
        UnknownType, match="2024-11-05 has no type 'AudioContent'; it is in 2025-03-26"
    ):
        drops("AudioContent", V2024_11_05)


@pytest.mark.parametrize(
    "name",
    ["Nonsense", "PaginatedResult", "Tool.inputSchema", "ContentBlock", "Wire", "ErrorObject"],
)
def test_type_without_struct_raises_unknown_type(name: str) -> None:
    with pytest.raises(UnknownType, match=name):
        requires(name, LATEST)


@pytest.mark.parametrize("ask", [drops, requires, knows, members])
def test_an_unknown_revision_is_refused(ask: Any) -> None:
    with pytest.raises(UnknownRevision, match="2024-11-05"):
        ask("Tool", "2020-01-01")


@pytest.mark.parametrize("name", ["Role", "RequestId", "ContentBlock", "JSONRPCMessage"])
def test_a_type_without_members_of_its_own_is_known(name: str) -> None:
    assert knows(name, LATEST)


def test_drops_returns_the_same_object_each_time() -> None:
    assert drops("Tool", LATEST) is drops("Tool", LATEST)


def shaped(value: Any, revision: str) -> Any:
    """Narrow a value for a revision, as a walk over the tables."""
    if isinstance(value, list):
        return [shaped(item, revision) for item in value if item_is_known(item, revision)]
    if not isinstance(value, wire.Wire):
        return value
    gone = drops(type(value).__name__, revision)
    kept = {}
    for field in msgspec.structs.fields(value):
        item = getattr(value, field.name)
        kept[field.name] = field.default if field.encode_name in gone else shaped(item, revision)
    return type(value)(**kept)


def item_is_known(item: Any, revision: str) -> bool:
    return not isinstance(item, wire.Wire) or knows(type(item).__name__, revision)


def test_the_tables_can_be_walked_by_the_names_of_structs() -> None:
    tool = wire.Tool({"type": "object"}, "n", title="t", icons=[wire.Icon("i:1")])
    listed = wire.ListToolsResult([tool], result_type="complete", ttl_ms=0, cache_scope="private")
    assert msgspec.to_builtins(shaped(listed, V2024_11_05)) == {
        "tools": [{"name": "n", "inputSchema": {"type": "object"}}]
    }
    result = wire.CallToolResult(
        [wire.TextContent("hi", meta={"a": 1}), wire.ResourceLink("n", "u:1")],
        structured_content={"a": 1},
    )
    assert shaped(result, V2024_11_05) == wire.CallToolResult([wire.TextContent("hi")])
    assert shaped(result, V2025_06_18) == result


# Methods


@each_revision
def test_every_method_has_params_and_every_request_a_result(revision: str) -> None:
    for row in methods(revision):
        assert issubclass(params_type(row.name, revision), Struct), row.name
        found = result_types(row.name, revision)
        assert bool(found) == (row.kind == "request"), row.name
        assert None not in found, row.name
        assert result_type(row.name, revision) is (found[0] if found else None)


def test_the_types_of_a_method_are_those_of_the_revision() -> None:
    assert params_type("tools/call", LATEST) is wire.CallToolRequestParams
    assert params_type("roots/list", V2025_11_25) is wire.RequestParams
    assert params_type("roots/list", LATEST) is wire.ListRootsRequestParams
    assert result_type("ping", V2024_11_05) is wire.Result


def test_the_result_that_was_asked_for_comes_first() -> None:
    assert result_types("tools/call", V2025_06_18) == (wire.CallToolResult,)
    assert result_types("tools/call", V2025_11_25) == (wire.CallToolResult, wire.CreateTaskResult)
    assert result_types("tools/call", LATEST)[0] is wire.CallToolResult
    assert wire.InputRequiredResult in result_types("tools/call", LATEST)


def test_the_first_result_type_refuses_what_stands_in_for_it() -> None:
    asking = b'{"resultType":"input_required","requestState":"s"}'
    for method in ("tools/call", "prompts/get", "resources/read"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(asking, type=result_type(method, LATEST))


def test_the_result_of_a_task_may_be_any() -> None:
    found = result_type("tasks/result", V2025_11_25)
    assert msgspec.json.decode(b'{"content":[],"more":1}', type=found) == {"content": [], "more": 1}


def test_a_method_that_a_revision_lacks_has_no_types() -> None:
    assert params_type("ping", LATEST) is None
    assert result_type("ping", LATEST) is None
    assert result_types("no/such", LATEST) == ()
    with pytest.raises(UnknownRevision):
        params_type("ping", "2020-01-01")


def test_loading_the_tables_reads_no_row_and_builds_no_struct() -> None:
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\nimport trunkline.mcp.tables\nprint(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    late = {
        "msgspec",
        "trunkline.mcp.types",
        "trunkline.spec.mcp.types",
        "trunkline.spec.mcp.methods",
    }
    assert late & set(run.stdout.split()) == set()
