"""Renders a report as one versioned JSON document."""

from __future__ import annotations

from typing import Any, Final

from ....errors import pointer_value
from ..terminal import highlighted_document
from . import JudgedMessage, LocatedFinding, ValidationReport, address, json_document

__all__ = ["FORMAT", "render"]

FORMAT: Final = "trunkline.validate/1"


def render(report: ValidationReport) -> str:
    """Return the report with its messages in order."""
    counts = report.counts()
    document = {
        "format": FORMAT,
        "file": report.name,
        "shape": report.shape,
        "revision": report.revision,
        "revision_because": report.why,
        "strict": report.strict,
        "ok": not report.failed(),
        "counts": {level: counts[level] for level in ("error", "warn", "info")},
        "messages": [_message(message) for message in report.messages],
        "left_out": {
            "messages": report.more_messages,
            "findings": {rule: count for (_, rule), count in report.more.items()},
        },
    }
    return highlighted_document(json_document(document))


def _message(message: JudgedMessage) -> dict[str, Any]:
    return {
        "number": message.number,
        "line": message.line,
        "from": message.sender or None,
        "what": message.label,
        "method": message.method or None,
        "findings": [_finding(seen) for seen in message.seen],
    }


def _finding(seen: LocatedFinding) -> dict[str, Any]:
    finding = seen.finding
    return {
        "rule": finding.rule,
        "level": finding.level,
        "where": pointer_value(finding.where),
        "got": finding.got,
        "expected": finding.expected,
        "source": finding.source,
        "page": address(finding.source) or None,
    }
