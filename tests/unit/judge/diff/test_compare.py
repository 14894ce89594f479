"""What a change in a listing means: tools, prompts, resources, capabilities, versions."""

from __future__ import annotations

from typing import Any

import pytest

from trunkline.judge.diff import RULES, Comparison, compare

INTEGER = {"type": "integer"}


def tool(name: str = "add", **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": INTEGER}}
    return {"name": name, "inputSchema": schema, **members}


def rules(found: Comparison) -> list[str]:
    return [change.rule for change in found.changes]


def of_tools(old: Any, new: Any) -> list[str]:
    return rules(compare([old], [new]))


def of_prompts(old: Any, new: Any) -> list[str]:
    return rules(compare({"prompts": [old]}, {"prompts": [new]}))


def of_capabilities(old: Any, new: Any) -> list[str]:
    return rules(compare({"capabilities": old}, {"capabilities": new}))


# The two lists of the deprecation policy


def test_a_removed_tool_or_capability_and_a_changed_type_break() -> None:
    old = {
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "tools": [
            tool("gone"),
            tool("typed"),
            tool("result", outputSchema={"type": "object", "properties": {"x": INTEGER}}),
        ],
    }
    text = {"type": "object", "properties": {"a": {"type": "string"}}}
    new = {
        "capabilities": {"tools": {}},
        "tools": [
            tool("typed", inputSchema=text),
            tool("result", outputSchema={"type": "object", "properties": {"y": INTEGER}}),
        ],
    }
    found = compare(old, new)
    breaking = [each for each in found.changes if each.level == "breaking"]
    assert [(each.rule, each.what, each.where) for each in breaking] == [
        ("listing.capability.removed", "capability logging", "/logging"),
        ("listing.capability.removed", "capability tools.listChanged", "/tools/listChanged"),
        ("listing.tool.removed", "tool gone", ""),
        ("listing.input.type-narrowed", "tool typed", "/inputSchema/properties/a"),
        ("listing.output.property-removed", "tool result", "/outputSchema/properties/x"),
    ]
    assert found.breaks()


def test_a_new_tool_capability_field_and_optional_argument_are_safe() -> None:
    output = {"type": "object", "properties": {"x": INTEGER}, "required": ["x"]}
    old = {"capabilities": {"tools": {}}, "tools": [tool(outputSchema=output)]}
    more = {"type": "object", "properties": {"a": INTEGER, "b": {"type": "string"}}}
    wider = {**output, "properties": {"x": INTEGER, "y": INTEGER}}
    new = {
        "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
        "tools": [tool(inputSchema=more, outputSchema=wider), tool("fresh")],
    }
    found = compare(old, new)
    assert not found.breaks()
    assert found.counts == {"breaking": 0, "announced": 0, "deprecated": 0, "safe": 5}
    assert sorted(rules(found)) == [
        "listing.capability.added",
        "listing.capability.added",
        "listing.input.property-added",
        "listing.output.property-added",
        "listing.tool.added",
    ]


def test_removal_of_a_deprecated_tool_is_announced_not_breaking() -> None:
    marked = tool("old", description="Deprecated: use add. Adds.")
    old = [tool("new"), marked, tool("surprise")]
    found = compare(old, [tool("new")])
    assert [(each.level, each.what) for each in found.changes] == [
        ("breaking", "tool surprise"),
        ("announced", "tool old"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "breaks"),
    [
        ("1.4.0", "2.0.0", False),
        ("1.4.0", "1.5.0", True),
        ("1.4.0", "1.4.0", True),
        ("0.4.1", "0.5.0", False),
        ("0.4.1", "0.4.2", True),
        ("1.4.0", "", True),
        ("yesterday", "today", True),
        ("v1.0", "v2.0-rc.1", False),
    ],
)
def test_announced_removal_does_not_break_in_the_next_major_version(
    old: str, new: str, breaks: bool
) -> None:
    marked = tool("old", description="Deprecated: use add.")
    before = {"server": {"name": "s", "version": old}, "tools": [marked]}
    after = {"server": {"name": "s", "version": new}, "tools": []}
    found = compare(before, after)
    assert found.breaks() is breaks
    assert not found.breaks(allow_announced=True)


def test_unannounced_removal_breaks_in_any_version() -> None:
    before = {"server": {"version": "1.0.0"}, "tools": [tool()]}
    after = {"server": {"version": "2.0.0"}, "tools": []}
    found = compare(before, after)
    assert found.breaks()
    assert found.breaks(allow_announced=True)
    assert found.notes == ()


NEXT_MINOR = "additions that break no client belong in the next minor version"


@pytest.mark.parametrize(
    ("old", "new", "noted"),
    [
        ("1.4.0", "1.4.0", True),
        ("1.4.0", "1.4.1", True),
        ("1.4.0", "1.3.9", True),
        ("1.4.0", "1.5.0", False),
        ("1.4.0", "2.0.0", False),
        ("0.4.1", "0.4.2", False),
        ("0.4.1", "0.4.1", True),
        ("1.4.0", "", False),
    ],
)
@pytest.mark.parametrize(
    "changed",
    [
        {"tools": [tool(), tool("more")]},
        {"tools": [tool(description="Deprecated: use sum.")]},
    ],
    ids=["added", "deprecated"],
)
def test_a_change_that_breaks_nothing_belongs_in_the_next_minor_version(
    changed: dict[str, Any], old: str, new: str, noted: bool
) -> None:
    before = {"server": {"name": "s", "version": old}, "tools": [tool()]}
    found = compare(before, {"server": {"name": "s", "version": new}, **changed})
    assert found.changes
    assert not found.breaks()
    assert [NEXT_MINOR in note for note in found.notes] == [True] * noted


def test_texts_may_change_in_a_patch() -> None:
    before = {"server": {"version": "1.0.0"}, "tools": [tool()]}
    after = {"server": {"version": "1.0.1"}, "tools": [tool(description="Adds.")]}
    found = compare(before, after)
    assert [change.rule for change in found.changes] == ["listing.tool.text-changed"]
    assert found.notes == ()
    assert compare(before, {**before, "server": {"version": "1.0.0"}}).notes == ()


def test_a_version_that_was_not_raised_is_noted() -> None:
    before = {"server": {"version": "1.0.0"}, "tools": [tool()]}
    after = {"server": {"version": "1.0.0"}, "tools": []}
    (note,) = compare(before, after).notes
    assert "stays '1.0.0'" in note


# Tools


def test_a_tool_that_is_marked_is_deprecated_and_its_text_is_shown() -> None:
    (change,) = compare([tool()], [tool(description="Deprecated: use sum.")]).changes
    assert (change.rule, change.level) == ("listing.tool.deprecated", "deprecated")
    assert "use sum" in change.new


def test_a_renamed_tool_is_guessed_by_its_arguments() -> None:
    found = compare([tool("add"), {"name": "ping"}], [tool("sum"), {"name": "pong"}])
    assert found.notes == ("tool 'add' may have been renamed to 'sum': same arguments",)


def test_text_for_people_is_safe() -> None:
    old, new = tool(title="A", description="x"), tool(title="B", description="y", icons=[])
    (change,) = compare([old], [new]).changes
    assert (change.rule, change.detail) == (
        "listing.tool.text-changed",
        "title, description, icons",
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"readOnlyHint": True}, {"readOnlyHint": False}, "weakened"),
        ({"destructiveHint": False}, {"destructiveHint": True}, "weakened"),
        ({"idempotentHint": True}, {}, "weakened"),
        ({"openWorldHint": False}, {}, "weakened"),
        ({}, {"openWorldHint": False}, "strengthened"),
        ({}, {"idempotentHint": True}, "strengthened"),
    ],
)
def test_a_hint_is_weakened_or_strengthened(
    old: dict[str, bool], new: dict[str, bool], expected: str
) -> None:
    found = of_tools(tool(annotations=old), tool(annotations=new))
    assert set(found) == {f"listing.tool.hint-{expected}"}


def test_saying_what_holds_anyway_changes_no_hint() -> None:
    said = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}
    assert of_tools(tool(), tool(annotations=said)) == []


def test_read_only_tool_implies_the_other_hints() -> None:
    said = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
    assert of_tools(tool(annotations=said), tool(annotations={"readOnlyHint": True})) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, "optional", "added"),
        (None, "required", "required"),
        ("optional", "required", "required"),
        ("optional", "forbidden", "removed"),
        ("required", None, "removed"),
        ("required", "optional", "optional"),
    ],
)
def test_support_for_tasks(old: str | None, new: str | None, expected: str) -> None:
    def given(support: str | None) -> dict[str, Any]:
        return tool() if support is None else tool(execution={"taskSupport": support})

    assert of_tools(given(old), given(new)) == [f"listing.tool.tasks-{expected}"]


def test_an_output_schema_that_goes_breaks_and_one_that_comes_does_not() -> None:
    with_output = tool(outputSchema={"type": "object"})
    assert of_tools(with_output, tool()) == ["listing.tool.output-removed"]
    assert of_tools(tool(), with_output) == ["listing.tool.output-added"]


# Prompts, resources, templates


def prompt(*arguments: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"name": "greet", "arguments": list(arguments), **members}


def test_the_arguments_of_a_prompt() -> None:
    plain, needed = {"name": "who"}, {"name": "who", "required": True}
    marked = {"name": "who", "description": "Deprecated: not needed."}
    assert of_prompts(prompt(), prompt(plain)) == ["listing.prompt.argument-added"]
    assert of_prompts(prompt(), prompt(needed)) == ["listing.prompt.argument-required"]
    assert of_prompts(prompt(plain), prompt(needed)) == ["listing.prompt.argument-required"]
    assert of_prompts(prompt(needed), prompt(plain)) == ["listing.prompt.argument-optional"]
    assert of_prompts(prompt(plain), prompt()) == ["listing.prompt.argument-removed"]
    assert of_prompts(prompt(plain), prompt(marked)) == ["listing.prompt.argument-deprecated"]
    assert of_prompts(prompt(marked), prompt()) == ["listing.prompt.argument-removed-as-announced"]


@pytest.mark.parametrize(
    ("member", "kind", "key"),
    [
        ("tools", "tool", "name"),
        ("prompts", "prompt", "name"),
        ("resources", "resource", "uri"),
        ("resourceTemplates", "template", "uriTemplate"),
    ],
)
def test_entries_come_go_and_are_marked(member: str, kind: str, key: str) -> None:
    entry = {"name": "n", key: "n"}
    marked = {**entry, "description": "Deprecated: it will be removed."}
    retitled = {**entry, "title": "N"}

    def rules_of(old: list[Any], new: list[Any]) -> list[str]:
        found = rules(compare({member: old}, {member: new}))
        return [rule.removeprefix(f"listing.{kind}.") for rule in found]

    assert rules_of([], [entry]) == ["added"]
    assert rules_of([entry], []) == ["removed"]
    assert rules_of([marked], []) == ["removed-as-announced"]
    assert rules_of([entry], [marked]) == ["deprecated"]
    assert rules_of([entry], [retitled]) == ["text-changed"]
    assert rules_of([entry], [entry]) == []


@pytest.mark.parametrize(
    ("member", "kind", "key"),
    [("resources", "resource", "uri"), ("resourceTemplates", "template", "uriTemplate")],
)
def test_another_media_type_breaks(member: str, kind: str, key: str) -> None:
    old, new = ({"name": "n", key: "n", "mimeType": each} for each in ("text/csv", "text/html"))
    (change,) = compare({member: [old]}, {member: [new]}).changes
    assert (change.rule, change.old, change.new) == (
        f"listing.{kind}.media-type-changed",
        '"text/csv"',
        '"text/html"',
    )


# The server


def test_capabilities_are_compared_all_the_way_down() -> None:
    assert of_capabilities({"resources": {"subscribe": True}}, {"resources": {}}) == [
        "listing.capability.removed"
    ]
    assert of_capabilities({"x": {"y": {"z": True}}}, {"x": {"y": {"z": False}}}) == [
        "listing.capability.removed"
    ]
    assert of_capabilities({"x": False}, {}) == []
    assert of_capabilities({"x": {"size": 5}}, {"x": {"size": 3}}) == ["listing.capability.changed"]
    forms = [{"extensions": {"ui": {"forms": each}}} for each in (["a", "b"], ["b", "c"])]
    assert of_capabilities(*forms) == ["listing.capability.removed", "listing.capability.added"]


def test_dropped_revision_breaks() -> None:
    old, new = ({"supportedVersions": each} for each in (["a", "b"], ["b", "c"]))
    found = compare(old, new)
    assert rules(found) == ["listing.revision.dropped", "listing.revision.added"]


def test_a_part_that_one_listing_does_not_have_is_not_compared_and_that_is_said() -> None:
    found = compare({"tools": [tool()], "prompts": [prompt()]}, {"tools": [tool()]})
    assert found.changes == ()
    assert found.notes == ("prompts were not compared: the new listing does not have them",)


def test_a_part_without_its_capability_is_empty() -> None:
    old = {"capabilities": {"prompts": {}}, "prompts": [prompt()]}
    found = compare(old, {"capabilities": {}})
    assert rules(found) == ["listing.capability.removed", "listing.prompt.removed"]


# Strangers


@pytest.mark.parametrize(
    "entry",
    [5, None, [], {}, {"name": 5}, tool(inputSchema=5), tool(annotations=[]), tool(execution=1)],
)
def test_a_malformed_entry_makes_nothing_raise(entry: Any) -> None:
    for old, new in (([entry], [tool()]), ([tool()], [entry]), ([entry], [entry])):
        assert compare(old, new).changes is not None
        for member in ("prompts", "resources", "resourceTemplates"):
            compare({member: old}, {member: new})
    compare({"capabilities": [entry], "server": entry}, {"capabilities": {}, "server": 1})


def test_changes_beyond_a_bound_are_counted_and_not_kept() -> None:
    many = [{"name": str(number)} for number in range(5000)]
    found = compare(many, [])
    assert found.counts["breaking"] == 5000
    assert len(found.changes) == 2000
    assert found.breaks()


def test_no_secret_is_shown() -> None:
    secret = "sk-canary-0123456789abcdef"

    def given(value: str) -> dict[str, Any]:
        member = {"type": "string", "default": value, "enum": [value]}
        return tool(inputSchema={"type": "object", "properties": {"api_key": member}})

    found = compare([given(secret)], [given("sk-canary-fedcba9876543210")])
    assert len(found.changes) == 2
    assert "canary" not in str(found) + "".join(map(str, found.changes))


def test_rules_have_their_id_a_sentence_and_a_reason() -> None:
    assert all(rule == row.id and row.says and row.why.endswith(".") for rule, row in RULES.items())


# What was compared


def test_a_comparison_names_the_parts_that_both_have() -> None:
    assert compare([tool()], [tool()]).compared == ("tools",)
    everything = {"capabilities": {}, "supportedVersions": [], "tools": [tool()]}
    found = compare(everything, everything)
    # Without a capability there is nothing in a list, which can be compared.
    assert found.compared == (
        *("supportedVersions", "capabilities", "tools", "prompts"),
        *("resources", "resourceTemplates"),
    )


def test_nothing_compared_is_noted() -> None:
    found = compare({"tools": [tool()]}, {"prompts": []})
    assert (found.compared, found.changes) == ((), ())
    assert found.notes[-1].startswith("nothing was compared")
    assert not any("nothing" in note for note in compare([], []).notes)
