"""What an extension may be called, say of itself, and answer with."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.mcp.extensions import check_id, has_extensions, result_types_of, settings_of
from trunkline.spec.profiles import UnknownRevision

STARS = "com.example/stars"


@pytest.mark.parametrize(
    "id",
    [
        "com.example/stars",
        "io.modelcontextprotocol/skills",
        "a/b",
        "com.example/stars.v2_beta-1",
        "com.mcp.tools/x",
    ],
)
def test_an_id_is_a_prefix_and_a_name(id: str) -> None:
    check_id(id)


@pytest.mark.parametrize(
    ("id", "why"),
    [
        ("stars", r"like com\.example"),
        ("/stars", r"like com\.example"),
        ("com.example/", r"like com\.example"),
        ("", r"like com\.example"),
        ("1com.example/stars", "a label starts with a letter"),
        ("com..example/stars", "a label starts with a letter"),
        ("com.example/-stars", "a name starts and ends"),
        ("com.example/a/b", "a name starts and ends"),
        (7, "is a string, not int"),
    ],
)
def test_an_id_that_is_not_formed_so_is_refused(id: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_id(id)


def test_settings_are_a_json_object_and_copied() -> None:
    given: dict[str, Any] = {"most": {"stars": 5}}
    told = settings_of(STARS, given)
    given["most"]["stars"] = 6
    assert told == {"most": {"stars": 5}}
    assert settings_of(STARS, None) == {}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"most": object()}, "cannot be sent"),
        (["most"], "are a dict, not list"),
        ("most", "are a dict, not str"),
    ],
)
def test_settings_that_cannot_be_sent_are_refused(given: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        settings_of(STARS, given)


@pytest.mark.parametrize("name", ["complete", "input_required", "", 3])
def test_a_result_type_is_a_text_that_mcp_does_not_have(name: Any) -> None:
    with pytest.raises(ValueError, match="result type"):
        result_types_of(STARS, (name,))


def test_one_result_type_is_not_taken_for_its_letters() -> None:
    with pytest.raises(TypeError, match=r"write \('starred',\)"):
        result_types_of(STARS, "starred")
    assert result_types_of(STARS, ["starred", "shot"]) == ("starred", "shot")


def test_only_the_newest_revision_has_extensions() -> None:
    assert has_extensions("2026-07-28")
    assert not has_extensions("2025-11-25")
    with pytest.raises(UnknownRevision):
        has_extensions("2023-01-01")
