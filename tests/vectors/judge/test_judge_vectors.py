"""Every vector is judged, and the judge finds what the vector says: no more and no less.

A file beside this one is a list of cases, each with a `name` and a `why`. A case says what
is judged (`message`, or `text` where it matters how it is written), by which `revision`,
from which `sender`, in answer to which `request` and under which `policy`; and the
`findings`: rule, level and place of each. `obeys` names rules that the message keeps.
A case with a `type` is a value, judged by that type alone.

The files `methods-*.json` follow from the rows: `tools/judge_vectors.py` writes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from trunkline.errors import InvalidMessage
from trunkline.jsonrpc import Batch, Policy, decode
from trunkline.judge import judge, judge_type
from trunkline.judge.finding import CUT_RULE
from trunkline.spec import lookup
from trunkline.spec.jsonrpc import RULES as ENVELOPE_RULES
from trunkline.spec.mcp.rules import RULES
from trunkline.spec.revisions import REVISIONS

Json: TypeAlias = dict[str, Any]

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
FILES: Final = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.json"))
}
ALL: Final[list[Json]] = [case for cases in FILES.values() for case in cases]


def policy_of(case: Json) -> Policy | None:
    named = case.get("policy")
    if named is None or isinstance(named, str):
        return Policy.named(named) if named else None
    changes = dict(named)
    return Policy.named(changes.pop("preset", "mcp")).replace(**changes)


def found_in(case: Json) -> list[list[str]]:
    given = case["text"] if "text" in case else case["message"]
    if "type" in case:
        found = judge_type(given, case["type"], case["revision"])
    else:
        request = case.get("request")
        found = judge(given, case["revision"], case.get("sender"), request, policy_of(case))
    return sorted([item.rule, item.level, item.where] for item in found)


@pytest.mark.parametrize("file", FILES)
def test_the_judge_finds_what_the_vectors_say(file: str) -> None:
    wrong = [
        {"name": case["name"], "found": found, "said": sorted(case["findings"])}
        for case in FILES[file]
        if (found := found_in(case)) != sorted(case["findings"])
    ]
    assert wrong == []


def test_every_rule_has_a_vector_that_breaks_it() -> None:
    broken = {rule for case in ALL for rule, _, _ in case["findings"]}
    # The one that tells of too many findings needs more of them than a file should hold.
    assert RULES.keys() - broken == {CUT_RULE}
    assert broken <= RULES.keys() | ENVELOPE_RULES.keys()


def test_every_rule_has_a_vector_that_obeys_it() -> None:
    obeyed = {rule for case in ALL for rule in case.get("obeys", ())}
    assert RULES.keys() - obeyed == {CUT_RULE}


def test_a_vector_does_not_break_what_it_obeys() -> None:
    for case in ALL:
        assert not set(case.get("obeys", ())) & {rule for rule, _, _ in case["findings"]}, case


def test_the_level_of_a_finding_is_that_of_its_rule() -> None:
    for case in ALL:
        for rule, level, _ in case["findings"]:
            assert level == (RULES[rule].level if rule in RULES else "error"), case


def test_a_rule_is_broken_only_in_the_revisions_that_have_it() -> None:
    for case in ALL:
        for rule, _, _ in case["findings"]:
            assert rule not in RULES or RULES[rule].when.holds(case["revision"]), case


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_has_messages_that_obey_and_messages_that_do_not(revision: str) -> None:
    cases = [case for case in FILES[f"methods-{revision}"] if case["revision"] == revision]
    for row in lookup.methods(revision):
        named = [case for case in cases if case["name"].split()[1] == row.name]
        assert any("obeys" in case for case in named), row.name
        assert any("obeys" not in case for case in named), row.name


def test_each_vector_has_its_own_name_and_a_reason() -> None:
    assert len({case["name"] for case in ALL}) == len(ALL)
    assert [case["name"] for case in ALL if not case["why"].endswith(".")] == []


def test_the_written_vectors_are_what_the_rows_say() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "judge_vectors.py"), "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def envelope_cases() -> list[Json]:
    files = sorted((ROOT / "tests" / "vectors").glob("*.json"))
    cases = [case for path in files for case in json.loads(path.read_text(encoding="utf-8"))]
    return [case for case in cases if "input" in case and "transport" not in case]


def test_judge_reports_every_fault_that_the_codec_raises() -> None:
    """The judge names the same rule at the same place as the codec under the same policy."""
    reported: set[str] = set()
    for case in envelope_cases():
        try:
            policy = policy_of(case) or Policy(batch="accept")
        except (LookupError, TypeError, ValueError):
            continue  # a policy that is written in another way
        try:
            read = decode(case["input"], policy)
            faults = read.faults if isinstance(read, Batch) else []
        except InvalidMessage as fault:
            faults = [fault]
        expected = {(fault.rule, fault.where) for fault in faults}
        found = {(item.rule, item.where) for item in judge(case["input"], policy=policy)}
        assert expected <= found, case["name"]
        reported |= {rule for rule, _ in expected}
    assert len(reported) > 20
