"""One value for every choice: the presets, the fields, and what follows from them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from trunkline.jsonrpc import Codec, Limits, Policy
from trunkline.jsonrpc.policy import DEFAULT_POLICY
from trunkline.spec.profiles import PROFILE_NAMES
from trunkline.spec.revisions import LATEST, REVISIONS

PRESETS = ("mcp", "jsonrpc", "erlmcp", "pierre", "mcpp")

# The official position of the newest revision, spelled out so that a changed default is noticed.
DEFAULTS: dict[str, Any] = {
    "revision": "2026-07-28",
    "codes": "mcp",
    "unknown_code": "pass",
    "batch": "by-revision",
    "mixed_batches": False,
    "batch_order": "parallel",
    "null_id": "reject",
    "unreadable_id": "by-revision",
    "oversize_id": "salvaged",
    "params": "object",
    "params_fault": "INVALID_PARAMS",
    "results": "object",
    "id_reuse": "by-revision",
    "ids": "counted",
    "first_id": 1,
    "max_id": 2**53 - 1,
    "version_policy": "counter-offer",
    "ping_first": True,
    "tool_failures": "by-revision",
    "method_names": "prefixed",
    "timeout_s": None,
    "list_timeout_s": None,
    "limits": Limits(),
    "envelope": "plain",
    "framing": "newline",
    "strictness": "standard",
    "redaction": "full",
    "explain": True,
}

# In what each preset departs from that.
DEPARTURES: dict[str, dict[str, Any]] = {
    "mcp": {},
    "jsonrpc": {
        "batch": "accept",
        "null_id": "as-request",
        "unreadable_id": "null",
        "params": "structured",
        "params_fault": "INVALID_REQUEST",
        "results": "any",
        "id_reuse": "open",
        "explain": False,
    },
    "erlmcp": {
        "revision": "2025-11-25",
        "codes": "erlmcp",
        "unknown_code": "to-internal",
        "batch": "accept",
        "mixed_batches": True,
        "unreadable_id": "null",
        "oversize_id": "null",
        "params": "nullable",
        "results": "any",
        "max_id": 2**60 - 1,
        "id_reuse": "open",
        "version_policy": "reject",
        "ping_first": False,
        "tool_failures": "error",
        "method_names": "emit-bare",
        "timeout_s": 5.0,
        "list_timeout_s": 2.0,
        "limits": Limits.named("erlmcp-doc"),
        "explain": False,
    },
    "pierre": {
        "revision": "2025-06-18",
        "codes": "pierre",
        "null_id": "as-request",
        "unreadable_id": "null",
        "params": "structured",
        "results": "any",
        "id_reuse": "open",
        "version_policy": "pierre",
        "tool_failures": "error",
        "method_names": "accept-bare",
        "limits": Limits.named("pierre-5m"),
        "envelope": "pierre",
        "redaction": "first-and-last",
        "explain": False,
    },
    "mcpp": {
        "revision": "2025-11-25",
        "mixed_batches": True,
        "params": "nullable",
        "results": "any",
        "first_id": 0,
        "timeout_s": 300.0,
        "strictness": "lenient",
        "framing": "detect",
        "explain": False,
    },
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_departs_from_the_official_position_only_where_it_says(name: str) -> None:
    expected = {**DEFAULTS, **DEPARTURES[name]}
    policy = Policy.named(name)
    assert {field: getattr(policy, field) for field in policy.__struct_fields__} == expected


def test_the_official_preset_is_the_default_policy() -> None:
    assert Policy.named("mcp") == Policy() == Policy.mcp()


def test_a_preset_has_a_constructor_of_its_name() -> None:
    assert Policy.jsonrpc() == Policy.named("jsonrpc")
    assert Policy.erlmcp() == Policy.named("erlmcp")
    assert Policy.pierre() == Policy.named("pierre")
    assert Policy.mcpp() == Policy.named("mcpp")


def test_decoding_by_hand_also_takes_batches() -> None:
    assert Policy(batch="accept") == DEFAULT_POLICY


@pytest.mark.parametrize("name", ["timeout_s", "list_timeout_s"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "5", True])
def test_a_time_is_a_number_of_seconds_above_nought(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"Policy\.{name} is a number of seconds above 0"):
        Policy().replace(**{name: value})


def test_unknown_preset_is_refused_with_the_known_names() -> None:
    with pytest.raises(
        LookupError, match="no policy named 'mpc'; there are mcp, jsonrpc, erlmcp, pierre, mcpp"
    ):
        Policy.named("mpc")


# By revision


@pytest.mark.parametrize(
    ("revision", "batches", "sent", "omits_id", "session"),
    [
        ("2024-11-05", True, False, False, True),
        ("2025-03-26", True, True, False, True),
        ("2025-06-18", False, False, False, True),
        ("2025-11-25", False, False, True, True),
        ("2026-07-28", False, False, True, False),
    ],
)
def test_policy_of_a_revision_has_its_rules(
    revision: str, batches: bool, sent: bool, omits_id: bool, session: bool
) -> None:
    policy = Policy.mcp(revision)
    assert policy.revision == revision
    assert policy.accepts_batches is batches
    assert policy.sends_batches is sent
    assert policy.omits_unreadable_id is omits_id
    assert policy.ids_last_a_session is session


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_choice_that_was_made_wins_over_the_revision(revision: str) -> None:
    policy = Policy.mcp(revision)
    assert policy.replace(batch="accept").accepts_batches
    assert policy.replace(batch="accept").sends_batches
    assert not policy.replace(batch="reject").accepts_batches
    assert not policy.replace(batch="reject").sends_batches
    assert policy.replace(unreadable_id="omit").omits_unreadable_id
    assert not policy.replace(unreadable_id="null").omits_unreadable_id
    assert policy.replace(id_reuse="session").ids_last_a_session
    assert not policy.replace(id_reuse="open").ids_last_a_session


def test_no_revision_is_missing_here() -> None:
    assert len(REVISIONS) == 5
    assert DEFAULTS["revision"] == LATEST


@pytest.mark.parametrize("revision", ["2024-10-07", "", "2026-07-29", "draft", None])
def test_a_revision_that_was_not_released_is_refused_with_those_that_were(revision: Any) -> None:
    with pytest.raises(ValueError) as caught:
        Policy.mcp(revision)
    assert str(caught.value) == (
        "Policy.revision is one of '2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', "
        f"'2026-07-28', not {revision!r}"
    )


# Varying one


def test_but_changes_what_it_names_and_nothing_else() -> None:
    policy = Policy.pierre()
    varied = policy.replace(batch="accept", first_id=7)
    changed = {
        field
        for field in policy.__struct_fields__
        if getattr(policy, field) != getattr(varied, field)
    }
    assert changed == {"batch", "first_id"}
    assert policy == Policy.pierre()


def test_but_takes_limits_by_name() -> None:
    assert Policy().replace(limits="pierre-5m").limits == Limits.named("pierre-5m")
    with pytest.raises(LookupError, match="no limits named 'pierre-6m'"):
        Policy().replace(limits="pierre-6m")


def test_but_checks_what_it_changes() -> None:
    with pytest.raises(ValueError, match=r"Policy\.batch is one of"):
        Policy().replace(batch="perhaps")


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypeError, match="batches"):
        Policy().replace(batches="accept")


# A bad field


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"null_id": "perhaps"},
            "Policy.null_id is one of 'reject', 'as-request', 'as-notification', not 'perhaps'",
        ),
        ({"results": ["any"]}, "Policy.results is one of 'object', 'any', not ['any']"),
        ({"explain": "no"}, "Policy.explain is of type bool, not 'no'"),
        ({"mixed_batches": 1}, "Policy.mixed_batches is of type bool, not 1"),
        ({"first_id": "1"}, "Policy.first_id is of type int, not '1'"),
        ({"first_id": True}, "Policy.first_id is of type int, not True"),
        ({"max_id": 2.5}, "Policy.max_id is of type int, not 2.5"),
        ({"first_id": -1}, "Policy.first_id and max_id are a range of ids from 0 upwards"),
        (
            {"first_id": 5, "max_id": 4},
            "Policy.first_id and max_id are a range of ids from 0 upwards",
        ),
        ({"limits": "pierre-5m"}, "Policy.limits is of type Limits, not 'pierre-5m'"),
    ],
)
def test_a_bad_field_is_refused_with_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        Policy(**fields)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "field",
    [
        "revision",
        "codes",
        "unknown_code",
        "batch",
        "batch_order",
        "null_id",
        "unreadable_id",
        "oversize_id",
        "params",
        "params_fault",
        "results",
        "id_reuse",
        "version_policy",
        "tool_failures",
        "method_names",
        "envelope",
        "framing",
        "strictness",
        "redaction",
    ],
)
def test_every_field_that_is_a_choice_refuses_what_is_none(field: str) -> None:
    wrongs: list[Any] = ["no such choice", None, 5, True, []]
    for wrong in wrongs:
        with pytest.raises(ValueError, match=f"^Policy.{field} is one of '"):
            Policy(**{field: wrong})


@pytest.mark.parametrize("codes", PROFILE_NAMES)
def test_every_profile_can_be_chosen(codes: str) -> None:
    assert Policy(codes=codes).codes == codes


def test_a_range_of_one_id_is_a_range() -> None:
    assert Policy(first_id=0, max_id=0).max_id == 0


# A value


def test_a_policy_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Policy().batch = "accept"  # type: ignore[misc]


def test_equal_policies_are_one_key() -> None:
    kept = {Policy.pierre(): "kept"}
    assert kept[Policy.named("pierre").replace()] == "kept"
    assert Policy() not in kept
    assert len({Policy.named(name) for name in PRESETS}) == len(PRESETS)


def test_limits_are_part_of_the_key() -> None:
    assert Policy(limits=Limits(batch=5)) != Policy(limits=Limits(batch=6))
    assert hash(Policy(limits=Limits(batch=5))) == hash(Policy(limits=Limits(batch=5)))


@pytest.mark.parametrize("name", PRESETS)
def test_a_policy_shows_itself_as_it_is_made(name: str) -> None:
    policy = Policy.named(name)
    assert eval(repr(policy), {"Policy": Policy, "Limits": Limits}) == policy


@pytest.mark.parametrize("name", PRESETS)
def test_a_codec_can_be_made_under_every_preset(name: str) -> None:
    codec = Codec(Policy.named(name))
    assert codec.policy == Policy.named(name)
    assert structs.asdict(codec.policy).keys() == DEFAULTS.keys()
