from __future__ import annotations

import pickle
import random

import pytest

from trunkline.errors import NOTHING
from trunkline.judge import Finding
from trunkline.judge.finding import CUT_RULE, MAX_FINDINGS, Level, as_shown, ordered


def finding(
    level: Level = "error", where: str = "/id", index: int | None = None, rule: str = "a.b"
) -> Finding:
    return Finding(rule, level, where, "null", "a string", "2025-11-25 · basic", index)


def test_a_finding_prints_on_two_lines() -> None:
    text = str(finding(index=14))
    assert text == (
        "error  a.b  at /id   got null, expected a string\n       2025-11-25 · basic · message 14"
    )


def test_a_finding_about_the_whole_message_names_no_place() -> None:
    assert str(finding("warn", "")).startswith("warn   a.b   got null")


def test_findings_sort_by_level_then_message_then_place() -> None:
    expected = [
        finding("error", "/b", None),
        finding("error", "/a", 0),
        finding("error", "/b/2", 1),
        finding("error", "/b/10", 1),
        finding("error", "/b/x", 1),
        finding("warn", "/a", 0),
        finding("info", "/a", None),
    ]
    shuffled = random.Random(1).sample(expected, len(expected))
    assert sorted(shuffled) == expected
    assert expected[0] < expected[1] <= expected[1]
    assert expected[1] > expected[0] >= expected[0]


def test_a_finding_does_not_compare_with_something_else() -> None:
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(finding(), compare)("a finding") is NotImplemented


def test_equal_findings_are_one_in_a_set() -> None:
    assert len({finding(), finding(), finding("warn")}) == 2


def test_a_finding_does_not_change_and_can_be_kept() -> None:
    with pytest.raises(AttributeError):
        finding().rule = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(finding())) == finding()


def test_a_value_is_shown_in_the_words_of_json() -> None:
    shown = [as_shown(value, "/a") for value in (NOTHING, None, True, False, 1, "x")]
    assert shown == ["", "null", "true", "false", "1", '"x"']


def test_value_under_a_secret_name_is_hidden() -> None:
    assert "hunter2" not in as_shown("hunter2", "/params/password")
    assert "sk-live" not in as_shown({"apiKey": "sk-live-abc"}, "/params")
    assert "ghp_" not in repr(finding(where=f"/ghp_{'a' * 30}"))


def test_a_long_value_is_cut() -> None:
    assert len(as_shown("x" * 10_000, "/a")) < 300


def test_first_findings_are_kept_and_the_rest_counted() -> None:
    many = [finding("info", f"/{number}") for number in range(MAX_FINDINGS)] + [finding()]
    kept = ordered(many, unseen=5)
    assert len(kept) == MAX_FINDINGS + 1
    assert kept[0].level == "error"
    assert (kept[-1].rule, kept[-1].got) == (CUT_RULE, "6 more")


def test_a_count_that_stopped_says_so() -> None:
    assert ordered([finding()], 3, more=True)[-1].got == "more than 3 more"


def test_few_findings_are_all_kept() -> None:
    assert ordered([finding("warn"), finding()]) == [finding(), finding("warn")]


@pytest.mark.parametrize(
    ("where", "is_shown"),
    [
        ("/result/tools/0/inputSchema/properties/token", True),
        ("/0/result/tools/12/outputSchema/properties/auth/type", True),
        ("/params/requestedSchema/properties/password", True),
        ("/result/inputRequests/auth/params/requestedSchema/properties/token", True),
        ("/result/inputRequests/token/method", True),
        ("/inputSchema/properties/token", True),
        ("/inputSchema/properties/token/default", False),
        ("/result/tools/0/inputSchema/properties/token/enum/0", False),
        ("/result/inputRequests/x/params/token", False),
        ("/params/arguments/inputSchema/properties/token", False),
        ("/params/arguments/token", False),
        ("/params/inputResponses/auth", False),
    ],
)
def test_names_of_a_schema_and_keys_of_questions_hide_nothing(where: str, is_shown: bool) -> None:
    assert as_shown("a value", where) == ('"a value"' if is_shown else "[redacted]")
