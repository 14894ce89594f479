"""Renders a report as JUnit XML for build servers: one test case per message.

JUnit has no warnings: findings that do not fail the run are in the output of their case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

from . import JudgedMessage, ValidationReport
from .text import advice, sentence, where_it_is

__all__ = ["render"]

# Characters that XML does not allow, even escaped.  [XML 1.0, section 2.2]
_FORBIDDEN: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: ValidationReport) -> str:
    """Return one test suite with a case for each message."""
    failures = sum(1 for message in report.messages if _lines(report, message, fails=True))
    counts = {"tests": report.total(), "failures": failures, "errors": 0, "skipped": 0}
    suite = _tag("testsuite", {"name": f"trunkline validate {report.name}", **counts})
    properties = [
        "<properties>",
        _tag("property", {"name": "revision", "value": report.revision}, "/"),
        _tag("property", {"name": "revision-because", "value": report.why}, "/"),
        *(
            _tag("property", {"name": "not-shown", "value": each}, "/")
            for each in report.left_out()
        ),
        "</properties>",
    ]
    cases = (line for message in report.messages for line in _case(report, message))
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', suite, *properties, *cases, "</testsuite>"]
    )


def _case(report: ValidationReport, message: JudgedMessage) -> Iterator[str]:
    facts = {"classname": report.name, "name": f"message {message.number}: {message.label}"}
    if message.line is not None:
        facts |= {"file": report.name, "line": str(message.line)}
    failures, others = (_lines(report, message, fails=each) for each in (True, False))
    if not failures and not others:
        yield _tag("testcase", facts, "/")
        return
    yield _tag("testcase", facts)
    if failures:
        # One per case, as most readers expect.
        yield _tag("failure", {"type": failures[0].split(":")[0], "message": failures[0]})
        yield _text(f"{where_it_is(report, message)}\n" + "\n".join(failures))
        yield "</failure>"
    if others:
        yield f"<system-out>{_text(chr(10).join(others))}</system-out>"
    yield "</testcase>"


def _lines(report: ValidationReport, message: JudgedMessage, *, fails: bool) -> list[str]:
    return [
        f"{finding.rule}: {sentence(finding)}; {advice(finding)} ({finding.source})"
        for finding, _ in message.seen
        if report.fails(finding.level) is fails
    ]


def _tag(tag: str, facts: Mapping[str, object], close: str = "") -> str:
    written = "".join(f' {name}="{_text(value)}"' for name, value in facts.items())
    return f"<{tag}{written}{close}>"


def _text(value: object) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", str(value)), {'"': "&quot;"})
