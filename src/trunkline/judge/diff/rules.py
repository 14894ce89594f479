"""What a difference between two listings means for the clients of a server: the rows.

The levels of a change:

* breaking: a client that worked may fail, or it is not proven that it cannot;
* announced: it breaks clients too, but the removed entry was marked as deprecated before;
* deprecated: it still works, and will be removed;
* safe: every client of the old server works with the new one.

Arguments flow to the server, so it may accept more but not less. Results flow from it, so it
may promise more but not less. An undecided change counts as breaking.
"""

# One row per line, so that the table can be read as one.
# ruff: noqa: E501

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple, TypeAlias

__all__ = ["LEVELS", "RULES", "DiffRule", "Level", "is_deprecated"]

Level: TypeAlias = Literal["breaking", "announced", "deprecated", "safe"]
LEVELS: Final[tuple[Level, ...]] = ("breaking", "announced", "deprecated", "safe")


class DiffRule(NamedTuple):
    """One kind of change: its level, its text, and the reason for the level."""

    id: str
    level: Level
    says: str
    why: str
    # Whether a patch release may have it: clients and calls are as before.
    is_patch: bool = False


# In the order of a listing: the server, tools, their schemas, the rest.
_ROWS: Final = (
    DiffRule("listing.revision.dropped", "breaking", "a revision is no longer supported", "Clients that support only this one cannot connect."),
    DiffRule("listing.revision.added", "safe", "a revision is supported now", "The others are supported as before."),
    DiffRule("listing.capability.removed", "breaking", "the capability is gone", "Clients that rely on it are refused, or wait in vain."),
    DiffRule("listing.capability.added", "safe", "the capability is new", "Clients that do not know it do not use it."),
    DiffRule("listing.capability.changed", "breaking", "the setting has another value", "Clients that rely on the old value may fail."),
    DiffRule("listing.tool.removed", "breaking", "the tool is gone", "Calls of it are refused."),
    DiffRule("listing.tool.removed-as-announced", "announced", "the tool is gone, as was announced", "Calls of it are refused; it was marked as deprecated before."),
    DiffRule("listing.tool.deprecated", "deprecated", "the tool is marked as deprecated", "It still works; clients should move to a replacement."),
    DiffRule("listing.tool.added", "safe", "the tool is new", "No client calls it yet."),
    DiffRule("listing.tool.hint-weakened", "breaking", "a hint promises less safety", "Hosts that call it without confirmation, or retry it, because of the hint are wrong now."),
    DiffRule("listing.tool.hint-strengthened", "safe", "a hint promises more safety", "Hosts that were careful can stay so."),
    DiffRule("listing.tool.tasks-required", "breaking", "the tool can only be called as a task", "Plain calls of it are refused."),
    DiffRule("listing.tool.tasks-removed", "breaking", "the tool cannot be called as a task", "Calls of it as a task are refused."),
    DiffRule("listing.tool.tasks-added", "safe", "the tool can be called as a task", "Plain calls work as before."),
    DiffRule("listing.tool.tasks-optional", "safe", "the tool no longer has to be called as a task", "Calls of it as a task work as before."),
    DiffRule("listing.tool.output-removed", "breaking", "the output schema is gone", "Structured results are no longer promised."),
    DiffRule("listing.tool.output-added", "safe", "an output schema is new", "Results carry more than before."),
    DiffRule("listing.tool.text-changed", "safe", "text for people or models has changed", "Calls are made as before; a model may choose otherwise.", is_patch=True),
    DiffRule("listing.input.property-removed", "breaking", "the argument is gone", "Calls that give it are refused, or it is ignored."),
    DiffRule("listing.input.property-removed-as-announced", "announced", "the argument is gone, as was announced", "Calls that give it are refused, or it is ignored; it was marked as deprecated before."),
    DiffRule("listing.input.property-required", "breaking", "the argument is required", "Calls without it are refused."),
    DiffRule("listing.input.type-narrowed", "breaking", "the old type is no longer accepted", "Calls with a value of the old type are refused."),
    DiffRule("listing.input.value-removed", "breaking", "a value is no longer accepted", "Calls with this value are refused."),
    DiffRule("listing.input.limit-tightened", "breaking", "the limit is tighter", "Calls with a value between the two limits are refused."),
    DiffRule("listing.input.constraint-added", "breaking", "there is a new condition", "Calls with values that do not meet it are refused."),
    DiffRule("listing.input.closed", "breaking", "other members are no longer accepted", "Calls with other members are refused."),
    DiffRule("listing.input.alternative-removed", "breaking", "an alternative is no longer accepted", "Calls that use it are refused."),
    DiffRule("listing.input.header-changed", "breaking", "the argument goes into another HTTP header", "Clients that know the old listing send the wrong headers."),
    DiffRule("listing.input.undecided", "breaking", "not proven to accept everything that the old one did", "An undecided change counts as breaking."),
    DiffRule("listing.input.property-deprecated", "deprecated", "the argument is marked as deprecated", "It still works; clients should stop passing it."),
    DiffRule("listing.input.property-added", "safe", "an optional argument is new", "Calls without it work as before."),
    DiffRule("listing.input.property-optional", "safe", "the argument may be left out", "Calls with it work as before."),
    DiffRule("listing.input.type-widened", "safe", "the type accepts more", "The old values are still accepted."),
    DiffRule("listing.input.value-added", "safe", "another value is accepted", "The old values are still accepted."),
    DiffRule("listing.input.limit-loosened", "safe", "the limit is looser", "The old values are still accepted."),
    DiffRule("listing.input.constraint-removed", "safe", "a condition is gone", "The old values are still accepted."),
    DiffRule("listing.input.opened", "safe", "other members are accepted", "The old values are still accepted."),
    DiffRule("listing.input.alternative-added", "safe", "another alternative is accepted", "The old values are still accepted."),
    DiffRule("listing.input.default-changed", "safe", "the default has changed: behaviour may change", "Calls are accepted as before; calls without it may behave differently."),
    DiffRule("listing.input.rewritten", "safe", "the schema is worded differently and means the same", "The same values are accepted."),
    DiffRule("listing.output.property-removed", "breaking", "the field is gone", "Clients that read it find nothing."),
    DiffRule("listing.output.property-removed-as-announced", "announced", "the field is gone, as was announced", "Clients that read it find nothing; it was marked as deprecated before."),
    DiffRule("listing.output.property-optional", "breaking", "the field may be missing", "Clients that read it may find nothing."),
    DiffRule("listing.output.property-in-closed", "breaking", "a field is new, but the old schema allowed no other", "Clients that validate results against the old schema reject them."),
    DiffRule("listing.output.type-widened", "breaking", "values of another type are possible", "Clients may receive values that they do not expect."),
    DiffRule("listing.output.value-added", "breaking", "a value is new", "Clients that know the old values do not know this one."),
    DiffRule("listing.output.limit-loosened", "breaking", "the limit is looser", "Clients may receive values beyond the old limit."),
    DiffRule("listing.output.constraint-removed", "breaking", "a condition is gone", "Clients may receive values that do not meet it."),
    DiffRule("listing.output.opened", "breaking", "other fields are possible", "The old schema allowed no other fields; clients that validate against it reject them."),
    DiffRule("listing.output.alternative-added", "breaking", "there is another alternative", "Clients may receive results in a form that they do not expect."),
    DiffRule("listing.output.undecided", "breaking", "not proven to keep what the old one promised", "An undecided change counts as breaking."),
    DiffRule("listing.output.property-deprecated", "deprecated", "the field is marked as deprecated", "It is still there; clients should stop reading it."),
    DiffRule("listing.output.property-added", "safe", "a field is new", "Clients that do not know it ignore it."),
    DiffRule("listing.output.property-required", "safe", "the field is always present", "Clients that read it find it."),
    DiffRule("listing.output.type-narrowed", "safe", "the type promises more", "Clients expected every possible value before."),
    DiffRule("listing.output.value-removed", "safe", "a value is no longer possible", "Clients expected every possible value before."),
    DiffRule("listing.output.limit-tightened", "safe", "the limit is tighter", "Clients expected every possible value before."),
    DiffRule("listing.output.constraint-added", "safe", "there is a new condition", "Clients expected every possible value before."),
    DiffRule("listing.output.closed", "safe", "other fields are no longer possible", "Clients expected every possible value before."),
    DiffRule("listing.output.alternative-removed", "safe", "an alternative is no longer possible", "Clients expected every possible value before."),
    DiffRule("listing.output.rewritten", "safe", "the schema is worded differently and means the same", "The same values are promised."),
    DiffRule("listing.prompt.removed", "breaking", "the prompt is gone", "Requests for it are refused."),
    DiffRule("listing.prompt.removed-as-announced", "announced", "the prompt is gone, as was announced", "Requests for it are refused; it was marked as deprecated before."),
    DiffRule("listing.prompt.deprecated", "deprecated", "the prompt is marked as deprecated", "It still works; clients should move to a replacement."),
    DiffRule("listing.prompt.added", "safe", "the prompt is new", "No client requests it yet."),
    DiffRule("listing.prompt.argument-removed", "breaking", "the argument is gone", "Requests with it are refused, or it is ignored."),
    DiffRule("listing.prompt.argument-removed-as-announced", "announced", "the argument is gone, as was announced", "Requests with it are refused, or it is ignored; it was marked as deprecated before."),
    DiffRule("listing.prompt.argument-required", "breaking", "the argument is required", "Requests without it are refused."),
    DiffRule("listing.prompt.argument-deprecated", "deprecated", "the argument is marked as deprecated", "It still works; clients should stop passing it."),
    DiffRule("listing.prompt.argument-added", "safe", "an optional argument is new", "Requests without it work as before."),
    DiffRule("listing.prompt.argument-optional", "safe", "the argument may be left out", "Requests with it work as before."),
    DiffRule("listing.prompt.text-changed", "safe", "text for people or models has changed", "The prompt is requested as before.", is_patch=True),
    DiffRule("listing.resource.removed", "breaking", "the resource is gone", "Reading it is refused."),
    DiffRule("listing.resource.removed-as-announced", "announced", "the resource is gone, as was announced", "Reading it is refused; it was marked as deprecated before."),
    DiffRule("listing.resource.deprecated", "deprecated", "the resource is marked as deprecated", "It can still be read; clients should move to a replacement."),
    DiffRule("listing.resource.added", "safe", "the resource is new", "No client reads it yet."),
    DiffRule("listing.resource.media-type-changed", "breaking", "the media type has changed", "Clients expect the old media type."),
    DiffRule("listing.resource.text-changed", "safe", "text for people or models has changed", "The resource is read as before.", is_patch=True),
    DiffRule("listing.template.removed", "breaking", "the template is gone", "Reading its resources is refused."),
    DiffRule("listing.template.removed-as-announced", "announced", "the template is gone, as was announced", "Reading its resources is refused; it was marked as deprecated before."),
    DiffRule("listing.template.deprecated", "deprecated", "the template is marked as deprecated", "It still works; clients should move to a replacement."),
    DiffRule("listing.template.added", "safe", "the template is new", "No client uses it yet."),
    DiffRule("listing.template.media-type-changed", "breaking", "the media type has changed", "Clients expect the old media type."),
    DiffRule("listing.template.text-changed", "safe", "text for people or models has changed", "The template is used as before.", is_patch=True),
)  # fmt: skip

RULES: Final = {row.id: row for row in _ROWS}


# -- deprecation -----------------------------------------------------------------------------

# The protocol has no member for it. A server marks an entry by a description that begins with
# the word, as this library writes it, or by `"deprecated": true`, as in JSON Schema. The word
# alone is not enough ("Deprecated packages, as a list"), and a hyphen counts as a dash only
# with a blank beside it ("Deprecated-API scanner").
_WORD: Final = re.compile(
    r"\W{0,4}deprecated\b(?!-\w)\W{0,4}?"
    r"(?:[:.,;!)\]*\u2013\u2014-]|\Z|since\b|use\b|in favou?r\b)",
    re.IGNORECASE,
)


def is_deprecated(entry: Any) -> bool:
    """Return True if an entry of a listing, or a schema, is marked as deprecated."""
    if not isinstance(entry, dict):
        return False
    if entry.get("deprecated") is True:
        return True
    description = entry.get("description")
    return isinstance(description, str) and _WORD.match(description) is not None
