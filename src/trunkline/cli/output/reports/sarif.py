"""Renders a report as SARIF 2.1.0, for code scanning.

A message is not a source file, so a result has logical locations too: the method, and the JSON
pointer within the message.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

from .... import __version__
from ....errors import pointer_value
from ....judge.finding import Finding
from ....spec.jsonrpc import RULES as JSONRPC_RULES
from ....spec.mcp.rules import RULES as MCP_RULES
from ....spec.requirements import UnknownRequirement, requirement
from . import JudgedMessage, LocatedFinding, ValidationReport, address, json_document
from .text import advice, sentence

__all__ = ["render"]

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final = {"error": "error", "warn": "warning", "info": "note"}


def render(report: ValidationReport) -> str:
    """Return a log of one run."""
    found = list(report.all_seen())
    rules: dict[str, dict[str, Any]] = {}
    for _, seen in found:
        rules.setdefault(seen.finding.rule, _rule(seen.finding, report.revision))
    order = {rule: index for index, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {"name": "trunkline", "version": __version__, "rules": list(rules.values())}
        },
        "columnKind": "unicodeCodePoints",
        "properties": {
            "revision": report.revision,
            "revisionBecause": report.why,
            "leftOut": {rule: count for (_, rule), count in report.more.items()},
        },
        "results": [_result(report, message, seen, order) for message, seen in found],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_document(log)


def _rule(finding: Finding, revision: str) -> dict[str, Any]:
    text, source = _description(finding, revision)
    page = address(source)
    rule: dict[str, Any] = {"id": finding.rule, "shortDescription": {"text": text}}
    return {**rule, "helpUri": page} if page else rule


def _description(finding: Finding, revision: str) -> tuple[str, str]:
    name = finding.rule
    if name in MCP_RULES:
        return f"Expected {MCP_RULES[name].expected}", f"{revision} · {MCP_RULES[name].anchor}"
    if name in JSONRPC_RULES:
        return f"Expected {JSONRPC_RULES[name].expected}", JSONRPC_RULES[name].source
    try:
        row = requirement(name)
    except UnknownRequirement:
        return f"Expected {finding.expected}", finding.source
    return row.says, row.anchor


def _result(
    report: ValidationReport, message: JudgedMessage, seen: LocatedFinding, order: dict[str, int]
) -> dict[str, Any]:
    finding = seen.finding
    return {
        "ruleId": finding.rule,
        "ruleIndex": order[finding.rule],
        "level": _LEVELS[finding.level],
        "message": {"text": f"{sentence(finding)}; {advice(finding)}"},
        "locations": [_location(report, message, finding)],
        "partialFingerprints": {"trunklineFinding/v1": _fingerprint(message, finding)},
        "properties": {"source": finding.source},
    }


def _location(report: ValidationReport, message: JudgedMessage, finding: Finding) -> dict[str, Any]:
    pointer = pointer_value(finding.where)
    logical: list[dict[str, Any]] = [
        {"name": message.method or message.label, "kind": "function"},
        {"fullyQualifiedName": f"message {message.number}#{pointer}", "kind": "member"},
    ]
    logical[1]["name"] = pointer or "/"
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(report.name)}}
    if message.line is not None:
        physical["region"] = {"startLine": message.line}
    return {"physicalLocation": physical, "logicalLocations": logical}


def _fingerprint(message: JudgedMessage, finding: Finding) -> str:
    """Return a hash that does not change when a finding moves to another line."""
    facts = "\n".join((finding.rule, message.method, message.label, pointer_value(finding.where)))
    return sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
