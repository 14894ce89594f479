"""`spec/lookup/meta_key_check.py`: `_meta` keys that obey and break each rule of each revision."""

from __future__ import annotations

import pytest

from trunkline.spec.lookup.meta_key_check import (
    KEY_RESERVED,
    KEY_SYNTAX,
    check_meta_key,
    meta_grammar,
)
from trunkline.spec.profiles import UnknownRevision
from trunkline.spec.revisions import (
    LATEST,
    REVISIONS,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
)

FREE = (V2024_11_05, V2025_03_26)
FORMED = (V2025_06_18, V2025_11_25, V2026_07_28)
SECOND = (V2025_11_25, V2026_07_28)

WELL_FORMED = [
    pytest.param("name", id="a name alone"),
    pytest.param("n", id="one letter"),
    pytest.param("7", id="one digit"),
    pytest.param("a-b_c.d", id="all marks of a name"),
    pytest.param("1st.2nd", id="digits at the ends"),
    pytest.param("", id="the empty name"),
    pytest.param("com.example/name", id="a prefix"),
    pytest.param("example/name", id="a prefix of one label"),
    pytest.param("c.e/n", id="labels of one letter"),
    pytest.param("com.ex-am--ple2/name", id="hyphens and digits inside a label"),
    pytest.param("com.example/", id="a prefix before the empty name"),
]

MISSHAPEN = [
    pytest.param("-name", id="a name that starts with a hyphen"),
    pytest.param("name_", id="a name that ends with an underscore"),
    pytest.param(".name", id="a name that starts with a dot"),
    pytest.param("na me", id="a blank"),
    pytest.param("na:me", id="a colon"),
    pytest.param("näme", id="a letter beyond ASCII"),
    pytest.param("name\n", id="a line break at the end"),
    pytest.param("com.example/näme", id="a letter beyond ASCII behind a prefix"),
    pytest.param("a/b/c", id="two slashes"),
    pytest.param("/name", id="an empty prefix"),
    pytest.param(".example/name", id="an empty label at the start"),
    pytest.param("com./name", id="an empty label at the end"),
    pytest.param("com..example/name", id="an empty label inside"),
    pytest.param("1com.example/name", id="a label that starts with a digit"),
    pytest.param("-com/name", id="a label that starts with a hyphen"),
    pytest.param("com-/name", id="a label that ends with a hyphen"),
    pytest.param("com.exam_ple/name", id="an underscore in a label"),
    pytest.param("com.example\n/name", id="a line break in a label"),
    pytest.param("com.exämple/name", id="a letter beyond ASCII in a label"),
]


def rule(key: str, revision: str) -> str | None:
    problem = check_meta_key(key, revision)
    return None if problem is None else problem.rule


@pytest.mark.parametrize("revision", FORMED)
@pytest.mark.parametrize("key", WELL_FORMED)
def test_a_well_formed_key_is_in_order(key: str, revision: str) -> None:
    assert check_meta_key(key, revision) is None


@pytest.mark.parametrize("revision", FORMED)
@pytest.mark.parametrize("key", MISSHAPEN)
def test_malformed_key_breaks_the_syntax_rule(key: str, revision: str) -> None:
    assert rule(key, revision) == KEY_SYNTAX


@pytest.mark.parametrize("revision", FREE)
@pytest.mark.parametrize("key", [*MISSHAPEN, "mcp.dev/x", "io.modelcontextprotocol/x"])
def test_before_there_were_rules_a_key_is_any_text(key: str, revision: str) -> None:
    assert check_meta_key(key, revision) is None


@pytest.mark.parametrize(
    "key",
    [
        "modelcontextprotocol.io/x",
        "mcp.dev/x",
        "api.modelcontextprotocol.org/x",
        "tools.mcp.com/x",
        "a.b.mcp.c.d/x",
    ],
)
def test_in_2025_06_18_a_label_of_mcp_before_another_is_reserved(key: str) -> None:
    assert rule(key, V2025_06_18) == KEY_RESERVED


@pytest.mark.parametrize(
    "key",
    ["mcp/x", "com.mcp/x", "io.modelcontextprotocol/x", "com.example.mcp/x", "mcps.dev/x", "mcp"],
)
def test_in_2025_06_18_a_label_of_mcp_at_the_end_is_free(key: str) -> None:
    assert check_meta_key(key, V2025_06_18) is None


@pytest.mark.parametrize("revision", SECOND)
@pytest.mark.parametrize(
    "key",
    [
        "io.modelcontextprotocol/x",
        "dev.mcp/x",
        "org.modelcontextprotocol.api/x",
        "com.mcp.tools/x",
        "com.mcp/",
    ],
)
def test_since_2025_11_25_mcp_as_second_label_is_reserved(key: str, revision: str) -> None:
    assert rule(key, revision) == KEY_RESERVED


@pytest.mark.parametrize("revision", SECOND)
@pytest.mark.parametrize(
    "key",
    ["com.example.mcp/x", "mcp/x", "mcp.dev/x", "a.b.mcp.c/x", "com.mcps/x", "com.MCP/x", "mcp"],
)
def test_since_2025_11_25_mcp_in_another_place_is_free(key: str, revision: str) -> None:
    assert check_meta_key(key, revision) is None


def test_a_reserved_key_that_the_revision_defines_is_in_order() -> None:
    key = "io.modelcontextprotocol/protocolVersion"
    assert check_meta_key(key, V2026_07_28) is None
    assert rule(key, V2025_11_25) == KEY_RESERVED
    task = "io.modelcontextprotocol/related-task"
    assert check_meta_key(task, V2025_11_25) is None
    assert rule(task, V2026_07_28) == KEY_RESERVED


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("key", ["traceparent", "tracestate", "baggage", "progressToken"])
def test_the_bare_keys_of_tracing_and_progress_are_in_order(key: str, revision: str) -> None:
    assert check_meta_key(key, revision) is None


def test_malformed_key_is_not_called_reserved() -> None:
    assert rule("com.mcp/-x", LATEST) == KEY_SYNTAX


def test_problem_states_the_rule_and_its_specification_anchor() -> None:
    label, name = check_meta_key("1com/x"), check_meta_key("com/-x")
    assert label is not None
    assert name is not None
    assert label.says.startswith("a label starts with a letter")
    assert name.says.startswith("a name starts and ends with a letter or digit")
    assert label.anchor == name.anchor == "2026-07-28 · basic#meta"
    reserved = check_meta_key("com.mcp/x", V2025_11_25)
    assert reserved is not None
    assert reserved.says.endswith("2025-11-25 does not define the key")


def test_a_problem_does_not_repeat_the_key() -> None:
    key = "x" * 100_000 + "!"
    problem = check_meta_key(key)
    assert problem is not None
    assert len(problem.says) < 200


def test_the_newest_revision_is_meant_where_none_is_given() -> None:
    assert rule("mcp.dev/x", LATEST) is None
    assert check_meta_key("mcp.dev/x") is None
    assert meta_grammar() == meta_grammar(LATEST)


@pytest.mark.parametrize("revision", ["2024-10-07", "", "draft"])
def test_a_revision_that_was_not_released_is_refused(revision: str) -> None:
    with pytest.raises(UnknownRevision, match=V2025_11_25):
        check_meta_key("x", revision)
    with pytest.raises(UnknownRevision):
        meta_grammar(revision)
