"""Every recorded exchange is judged, and the judge finds what the vector says and no more.

A file beside this one is a list of cases: a `name`, the `entries` of a recording, a
`revision` where the entries do not say, the `findings` above the level of a remark (rule,
message and place), and the `outcomes` of the requirements that the case is about. Each
requirement that is judged has a case that keeps it and one that breaks it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from trunkline.judge.conversation.conversation import Conversation
from trunkline.judge.conversation.outcomes import UNJUDGED, VERDICTS, Outcome
from trunkline.judge.rules.checker import traceable
from trunkline.judge.trace.reader import TraceEntry, read_trace
from trunkline.spec.requirements import requirements

Json: TypeAlias = dict[str, Any]

HERE: Final = Path(__file__).parent
FILES: Final = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.json"))
}
ALL: Final[list[Json]] = [case for cases in FILES.values() for case in cases]
JUDGED: Final = frozenset(traceable()) - frozenset(UNJUDGED)


def judged(case: Json) -> tuple[list[list[Any]], dict[str, Outcome]]:
    talk = Conversation(case.get("revision"))
    found = []
    for entry in read_trace([json.dumps(entry) for entry in case["entries"]]):
        assert isinstance(entry, TraceEntry), entry
        found += talk.feed(entry)
    found += talk.end()
    told = [[item.rule, item.message_index, item.where] for item in found if item.level != "info"]
    return sorted(told), talk.outcomes()


@pytest.mark.parametrize("file", FILES)
def test_the_judge_finds_what_the_vectors_say(file: str) -> None:
    for case in FILES[file]:
        found, outcomes = judged(case)
        assert found == case["findings"], case["name"]
        for id, verdict in case["outcomes"].items():
            assert outcomes[id].verdict == verdict, f"{case['name']}: {id}"


def test_a_finding_and_an_outcome_say_the_same() -> None:
    for case in ALL:
        _, outcomes = judged(case)
        broken = {rule for rule, *_ in case["findings"]} & set(outcomes)
        bad = {id for id, outcome in outcomes.items() if outcome.verdict in ("fail", "warn")}
        assert broken == bad, case["name"]


def test_every_requirement_that_a_recording_shows_is_judged_or_says_why_not() -> None:
    assert set(UNJUDGED) <= set(traceable())
    assert all(UNJUDGED.values())
    outcomes = Conversation().outcomes()
    assert list(outcomes) == [row.id for row in requirements()]
    for id, why in UNJUDGED.items():
        assert outcomes[id] == Outcome("not-testable", why)


def test_every_requirement_that_is_judged_has_a_case_that_keeps_it() -> None:
    kept = {id for case in ALL for id, verdict in case["outcomes"].items() if verdict == "pass"}
    assert kept == JUDGED


def test_every_requirement_that_is_judged_has_a_case_that_breaks_it() -> None:
    bad = ("fail", "warn")
    broken = {id for case in ALL for id, verdict in case["outcomes"].items() if verdict in bad}
    assert broken == JUDGED


def test_names_and_verdicts_are_in_order() -> None:
    for cases in FILES.values():
        names = [case["name"] for case in cases]
        assert len(names) == len(set(names))
    assert {verdict for case in ALL for verdict in case["outcomes"].values()} <= set(VERDICTS)
