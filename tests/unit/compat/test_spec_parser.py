"""`SpecParser`: the questions of erlmcp's guide, answered from the rows of every revision.

The ids in comments and parameters are those of the feature inventory.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import thread_time
from typing import Any, get_args

import pytest

from bench import spec as bench_spec
from tests.rigs.clock import Clock
from tests.rigs.messages import META
from trunkline.compat import erlmcp
from trunkline.compat.erlmcp import (
    NotSpecified,
    ParserStopped,
    SpecParser,
    SpecViolation,
    UnknownCapability,
    UnknownErrorCode,
    UnknownMethod,
    UnknownTransport,
    capability_req,
    error_code_req,
    mcp_spec,
    method_req,
    method_validator,
    spec_records,
    transport_req,
)
from trunkline.compat.erlmcp import spec_parser as module
from trunkline.errors import RemoteProtocolError, TrunklineError
from trunkline.spec import lookup
from trunkline.spec.profiles import PROFILE_NAMES, UnknownProfile, UnknownRevision
from trunkline.spec.revisions import LATEST, REVISIONS, V2024_11_05, V2025_11_25, V2026_07_28

HANDSHAKE = [revision for revision in REVISIONS if revision < V2026_07_28]

# The sample of the guide's first example: it has no id.
SAMPLE = {
    "jsonrpc": "2.0",
    "method": "tools/call",
    "params": {"name": "my_tool", "arguments": {}},
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def parser() -> SpecParser:
    return SpecParser()


@pytest.fixture(params=REVISIONS)
def each(request: pytest.FixtureRequest) -> SpecParser:
    """Return a parser of each revision in turn."""
    return SpecParser(request.param)


def params_for(revision: str, **params: Any) -> dict[str, Any]:
    """Return params with the `_meta` that their revision asks for."""
    return {**params, "_meta": META} if revision == V2026_07_28 else params


# -- starting and stopping -----------------------------------------------------------------------


def test_a_parser_starts_with_defaults() -> None:  # S-07 S-47
    clock = Clock()
    parser = SpecParser.start_link(clock=clock)
    assert (parser.revision, parser.profile) == ("2025-11-25", "mcp")
    parser.cache_parsed_spec()
    clock.now += 299.0
    assert parser.get_cached_spec().age_ms == 299_000
    clock.now += 1.0
    assert parser.get_cached_spec().age_ms == 0


def test_the_original_start_takes_milliseconds(clock: Clock) -> None:  # S-08
    parser = SpecParser.start_link(cache_ttl=600_000, clock=clock)
    parser.cache_parsed_spec()
    clock.now += 599.0
    assert parser.get_cached_spec().age_ms == 599_000
    clock.now += 1.0
    assert parser.get_cached_spec().age_ms == 0


QUESTIONS: list[Callable[[SpecParser], object]] = [
    lambda parser: parser.parse_specification(),
    lambda parser: parser.cache_parsed_spec(),
    lambda parser: parser.get_cached_spec(),
    lambda parser: parser.get_method_requirements("ping"),
    lambda parser: parser.get_error_requirements(-32700),
    lambda parser: parser.get_transport_requirements("stdio"),
    lambda parser: parser.get_transport_requirements(),
    lambda parser: parser.get_capability_requirements("tools"),
    lambda parser: parser.validate_message(SAMPLE),
    lambda parser: parser.validate_method_call("ping"),
    lambda parser: parser.validate_error_code(-32700),
    lambda parser: parser.check_capability_support("tools"),
    lambda parser: parser.generate_method_validator("ping"),
    lambda parser: parser.generate_validation_rules(),
    lambda parser: parser.get_spec_version(),
    lambda parser: parser.get_all_methods(),
    lambda parser: parser.get_version_compatibility(V2024_11_05),
    lambda parser: parser.is_valid_request_id(1),
    lambda parser: parser.is_valid_uri("a:b"),
    lambda parser: parser.message_schema("request"),
    lambda parser: parser.resource_schema(),
    lambda parser: parser.tool_schema(),
    lambda parser: parser.prompt_schema(),
    lambda parser: parser.__enter__(),
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_stopped_parser_refuses_every_question(
    ask: Callable[[SpecParser], object],
) -> None:  # S-09
    parser = SpecParser()
    ask(parser)
    parser.stop()
    parser.stop()
    with pytest.raises(ParserStopped):
        ask(parser)


def test_leaving_the_block_stops_the_parser() -> None:  # S-09
    with SpecParser() as parser:
        assert parser.get_spec_version() == V2025_11_25
    with pytest.raises(TrunklineError, match="stopped"):
        parser.get_spec_version()


def test_unknown_revision_profile_or_negative_ttl_is_refused() -> None:
    with pytest.raises(UnknownRevision, match="2025-11-25"):
        SpecParser("2025-01-23")
    with pytest.raises(UnknownProfile, match="erlmcp-guide"):
        SpecParser(profile="erlmcp-gide")
    for ttl in (-1, float("nan")):
        with pytest.raises(ValueError, match="cannot last"):
            SpecParser(cache_ttl=ttl)


# -- the cache -----------------------------------------------------------------------------------


def test_a_specification_is_made_once_within_its_time(clock: Clock) -> None:  # S-03 S-47
    parser = SpecParser(clock=clock)
    first = parser.parse_specification()
    clock.now += 299.9
    assert parser.parse_specification() is first


def test_a_specification_past_its_time_is_made_again(clock: Clock) -> None:  # S-48
    parser = SpecParser(cache_ttl=10, clock=clock)
    first = parser.parse_specification()
    clock.now += 10
    again, age = parser.get_cached_spec()
    assert again is not first
    assert again == first
    assert age == 0


def test_the_cache_can_be_filled_ahead_of_time(clock: Clock) -> None:  # S-49 S-57
    parser = SpecParser(clock=clock)
    assert parser.cache_parsed_spec() == "cached"
    clock.now += 2.5
    spec, age = parser.get_cached_spec()  # S-50
    assert parser.parse_specification() is spec
    assert age == 2500


def test_filling_the_cache_again_makes_it_young(clock: Clock) -> None:  # S-49
    parser = SpecParser(clock=clock)
    parser.cache_parsed_spec()
    clock.now += 100
    parser.cache_parsed_spec()
    assert parser.get_cached_spec().age_ms == 0


def test_asking_without_a_cache_makes_one(clock: Clock) -> None:  # S-50
    parser = SpecParser(clock=clock)
    spec, age = parser.get_cached_spec()
    assert (spec.version, age) == (V2025_11_25, 0)


def test_a_cache_without_time_keeps_nothing(clock: Clock) -> None:  # S-48
    parser = SpecParser(cache_ttl=0, clock=clock)
    assert parser.parse_specification() is not parser.parse_specification()


def test_any_number_of_threads_may_ask_at_once() -> None:  # S-54
    parser = SpecParser(cache_ttl=0)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: parser.parse_specification(), range(64)))
    assert all(spec == found[0] for spec in found)


# -- the whole -----------------------------------------------------------------------------------


def test_a_specification_has_its_version_date_protocol_and_tables(each: SpecParser) -> None:
    # S-10 S-23
    spec = each.parse_specification()
    assert isinstance(spec, mcp_spec)
    assert spec._fields == (
        "version",
        "specification_date",
        "protocol_type",
        "methods",
        "error_codes",
        "transports",
        "capabilities",
    )
    assert spec[:3] == (each.revision, each.revision, "JSON-RPC 2.0")
    assert all(spec[3:])


def test_the_tables_are_those_of_the_rows(each: SpecParser) -> None:  # S-04 S-06
    spec = each.parse_specification()
    rows = lookup.specification(each.revision)
    assert [found.row for found in spec.methods.values()] == list(rows.methods)
    assert spec.transports == tuple(row.name for row in rows.transports)
    assert set(spec.error_codes) == {row.number for row in rows.errors}
    assert set(spec.capabilities) == {row.path[0] for row in rows.capabilities}


def test_the_default_is_the_revision_of_the_guide(parser: SpecParser) -> None:  # S-19
    assert parser.get_spec_version() == "2025-11-25"


def test_a_parser_names_its_revision(each: SpecParser) -> None:  # S-19
    assert each.get_spec_version() == each.revision
    assert each.spec_version() == each.protocol_version() == each.revision


def test_records_cannot_be_changed(each: SpecParser) -> None:  # S-05 S-54
    spec = each.parse_specification()
    tables: list[Any] = [spec.methods, spec.error_codes, spec.capabilities]
    tables += [each.get_transport_requirements(), each.get_method_params("tools/call")]
    for table in tables:
        with pytest.raises(TypeError):
            table["new"] = None
    records: list[Any] = [spec, *spec.methods.values(), *spec.error_codes.values()]
    for record in records:
        with pytest.raises(AttributeError):
            setattr(record, record._fields[0], "new")


def test_the_tables_need_nothing_but_python() -> None:  # S-05
    program = (
        "import sys\n"
        "sys.modules['msgspec'] = None\n"
        "from trunkline.spec import lookup, types\n"
        "for revision in ('2024-11-05', '2026-07-28'):\n"
        "    print(len(lookup.specification(revision)), bool(types.types(revision)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["9 True"] * 2, done.stderr


def test_a_record_outlives_its_parser() -> None:  # S-56
    with SpecParser() as parser:
        kept = parser.get_method_requirements("tools/list")
    assert kept.name == "tools/list"
    assert kept.params_spec["cursor"].type == "string"


def test_looking_up_opens_no_file_and_no_socket() -> None:  # S-02
    program = (
        "import sys\n"
        "from trunkline.compat.erlmcp import SpecParser\n"
        "SpecParser().parse_specification()\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, _: seen.append(event))\n"
        "parser = SpecParser()\n"
        "parser.parse_specification(), parser.get_method_requirements('tools/call')\n"
        "touched = [e for e in seen if e == 'open' or e.startswith(('socket', 'urllib'))]\n"
        "print(touched, 'socket' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[] False", done.stderr


def test_rows_are_loaded_by_the_first_question_and_the_judge_by_judging() -> None:  # S-57
    program = (
        "import sys\n"
        "from trunkline.compat.erlmcp import SpecParser\n"
        "names = ['trunkline.spec.mcp.methods', 'trunkline.spec.mcp.types', 'trunkline.judge']\n"
        "print([name in sys.modules for name in names])\n"
        "SpecParser().parse_specification()\n"
        "print([name in sys.modules for name in names])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    before, after = done.stdout.splitlines()
    assert (before, after) == ("[False, False, False]", "[True, True, False]"), done.stderr


# -- methods -------------------------------------------------------------------------------------


def test_all_methods_come_in_one_call_or_one_by_name(each: SpecParser) -> None:  # S-11 S-55
    every = each.get_method_requirements()
    assert list(every) == [row.name for row in lookup.methods(each.revision)]
    for name, found in every.items():
        assert each.get_method_requirements(name) is found


def test_a_method_has_the_fields_of_the_guide(each: SpecParser) -> None:  # S-24 S-43
    for found in each.get_method_requirements().values():
        assert isinstance(found, method_req)
        assert found._fields[:-1] == (
            "name",
            "method_type",
            "direction",
            "required",
            "params_spec",
            "result_spec",
            "capability_required",
            "deprecation_status",
            "documentation",
        )
        assert found.method_type in ("request", "notification")
        assert found.direction in get_args(spec_records.Direction)
        assert found.deprecation_status in ("stable", "experimental", "deprecated")
        assert found.documentation.endswith(".")
        assert bool(found.result_spec) == (found.method_type == "request")
        assert found.capability_required != ""


# Where the tables of the original were wrong.
def test_initialize_is_a_request_with_a_result(parser: SpecParser) -> None:
    found = parser.get_method_requirements("initialize")
    assert (found.method_type, found.direction) == ("request", "client_to_server")
    assert found.required
    assert set(found.result_spec) >= {"protocolVersion", "capabilities", "serverInfo"}


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_ping_goes_both_ways_and_its_result_is_empty(revision: str) -> None:  # K-70
    found = SpecParser(revision).get_method_requirements("ping")
    assert found.direction == "bidirectional"
    assert set(found.result_spec) == {"_meta"}


def test_a_completion_has_a_reference_and_an_argument(each: SpecParser) -> None:  # K-71
    params = each.get_method_params("completion/complete")
    assert {"ref", "argument"} <= {name for name, field in params.items() if field.required}
    assert "completion" in each.get_method_result("completion/complete")


def test_the_client_says_that_it_is_initialized(parser: SpecParser) -> None:
    found = parser.get_method_requirements("notifications/initialized")
    assert (found.direction, found.required) == ("client_to_server", True)
    assert not any(field.required for field in found.params_spec.values())
    assert found.result_spec == {}


def test_the_arguments_of_a_tool_are_optional(each: SpecParser) -> None:  # K-46
    params = each.get_method_params("tools/call")
    assert params["name"].required
    assert not params["arguments"].required


def test_the_required_params_of_a_resource_are_its_uri(parser: SpecParser) -> None:  # S-29
    found = parser.get_method_requirements("resources/read")
    required = [name for name, field in found.params_spec.items() if field.required]
    assert required == ["uri"]


def test_the_newest_revision_asks_for_meta_too() -> None:  # S-29
    params = SpecParser(V2026_07_28).get_method_params("resources/read")
    assert {name for name, field in params.items() if field.required} == {"_meta", "uri"}


def test_get_method_params_joins_the_params_of_several_forms(parser: SpecParser) -> None:
    params = parser.get_method_params("elicitation/create")
    assert [name for name, field in params.items() if field.required] == ["message"]
    assert {"requestedSchema", "url"} <= set(params)
    assert params["mode"].type == "'form' | 'url'"
    assert params["url"].limits == (("format", "uri"),)


@pytest.mark.parametrize(
    ("name", "revision", "why"),
    [
        ("tools/cal", V2025_11_25, "Did you mean 'tools/call'"),
        ("tasks/create", V2025_11_25, "No revision"),
        ("ping", V2026_07_28, "no longer"),
        ("elicitation/create", V2024_11_05, "2025-06-18"),
    ],
)
def test_a_method_the_revision_lacks_is_refused(name: str, revision: str, why: str) -> None:
    parser = SpecParser(revision)  # S-11 K-72
    for ask in (
        parser.get_method_requirements,
        parser.get_method_params,
        parser.get_method_result,
        parser.get_required_capabilities,
        parser.validate_method_call,
        parser.generate_method_validator,
    ):
        with pytest.raises(UnknownMethod, match=why):
            ask(name)


def test_names_are_listed(each: SpecParser) -> None:  # S-20 S-21 S-22
    spec = each.parse_specification()
    assert each.get_all_methods() == each.list_methods() == tuple(spec.methods)
    assert each.get_all_error_codes() == each.list_error_codes() == tuple(spec.error_codes)
    assert each.get_all_transports() == each.list_transports() == spec.transports
    assert each.get_all_capabilities() == each.list_capabilities() == tuple(spec.capabilities)
    assert each.supported_transports() == spec.transports
    assert each.supported_capabilities() == tuple(spec.capabilities)
    assert each.get_spec() is each.parse_spec() is spec
    both = {*each.get_all_request_types(), *each.get_all_notification_types()}
    assert both == set(spec.methods)


def test_the_names_of_the_guide_are_among_those_listed(parser: SpecParser) -> None:
    assert {"initialize", "tools/list"} <= set(parser.get_all_methods())  # S-20
    assert {-32700, -32600} <= set(parser.get_all_error_codes())  # S-21
    assert {"stdio", "tcp"} <= set(parser.get_all_transports())  # S-22


def test_a_method_is_answered_or_not(each: SpecParser) -> None:
    assert each.is_valid_request_type("tools/call")
    assert not each.is_valid_request_type("notifications/progress")
    assert each.is_valid_notification_type("notifications/progress")
    assert not each.is_valid_notification_type("tools/call")
    assert not each.is_valid_request_type("tools/cal")


def test_a_method_names_the_capability_it_needs(each: SpecParser) -> None:  # S-24
    assert each.get_required_capabilities("tools/call") == ("tools",)
    assert each.get_required_capabilities("notifications/cancelled") == ()


def test_a_method_on_its_way_out_is_deprecated() -> None:
    newest = SpecParser(V2026_07_28)
    assert newest.is_deprecated_method("sampling/createMessage")
    assert not newest.is_deprecated_method("tools/call")
    assert not newest.is_deprecated_method("ping")
    assert not SpecParser().is_deprecated_method("sampling/createMessage")
    assert SpecParser().get_method_requirements("tasks/get").deprecation_status == "experimental"


# -- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_all_errors_come_in_one_call_or_one_by_number(profile: str) -> None:  # S-12 S-55
    for revision in REVISIONS:
        parser = SpecParser(revision, profile=profile)
        for code, found in parser.get_error_requirements().items():
            assert parser.get_error_requirements(code) is found
            assert parser.validate_error_code(code) is found
            assert found.row == lookup.error(code, profile, revision)


@pytest.mark.parametrize("profile", PROFILE_NAMES)
def test_an_error_has_the_fields_of_the_guide(profile: str) -> None:  # S-25
    for code, found in SpecParser(profile=profile).get_error_requirements().items():
        assert isinstance(found, error_code_req)
        assert found._fields[:6] == (
            "code",
            "name",
            "category",
            "description",
            "severity",
            "retry_strategy",
        )
        assert found.code == code
        assert found.category in get_args(spec_records.ErrorCategory)
        assert found.severity in ("error", "warning")
        assert found.retry_strategy in ("retry", "abort", "fallback")
        assert found.description.startswith(found.name)


def test_the_five_of_json_rpc_are_in_every_profile(each: SpecParser) -> None:  # S-12 S-25
    for code in (-32700, -32600, -32601, -32602, -32603):
        assert each.get_error_requirements(code).category == "json_rpc"


def test_error_requirements_name_all_symbols_of_a_code() -> None:  # S-25
    found = SpecParser(V2026_07_28).get_error_requirements(-32602)
    assert (found.name, found.symbols[0]) == ("Invalid params", "INVALID_PARAMS")
    assert "RESOURCE_NOT_FOUND" in found.symbols
    assert "Resource not found" in found.description


@pytest.mark.parametrize(
    ("revision", "number"), [(V2024_11_05, -32002), (V2025_11_25, -32002), (V2026_07_28, -32602)]
)
def test_a_missing_resource_has_the_number_of_its_revision(revision: str, number: int) -> None:
    found = SpecParser(revision).get_error_requirements("RESOURCE_NOT_FOUND")  # S-30 K-16
    assert (found.code, found.name) == (number, "Resource not found")


def test_a_missing_resource_is_32008_in_the_profile_of_the_guide() -> None:  # S-30 K-16
    parser = SpecParser(profile="erlmcp-guide")
    assert parser.validate_error_code(-32008).name == "Resource not found"
    with pytest.raises(UnknownErrorCode, match="'mcp' in 2025-11-25"):
        SpecParser().validate_error_code(-32008)


def test_the_table_of_the_original_has_97_errors() -> None:  # S-12
    parser = SpecParser(profile="erlmcp-spec")
    assert len(parser.get_error_requirements()) == len(parser.get_all_error_codes()) == 97
    found = parser.get_error_requirements(1089)
    assert found[:6] == (
        1089,
        "refused: rate limited",
        "mcp_protocol",
        "refused: rate limited",
        "warning",
        "retry",
    )


# Python does not even write so long a number as text.
HUGE = pytest.param(10**5000, id="huge")


@pytest.mark.parametrize("code", [0, -32099, True, -32700.0, "NO_SUCH", None, HUGE])
def test_unknown_error_code_is_refused(parser: SpecParser, code: Any) -> None:
    assert not parser.is_valid_error_code(code)  # S-17
    if code is not None:
        with pytest.raises(UnknownErrorCode, match="profile 'mcp' in 2025-11-25 has no error"):
            parser.validate_error_code(code)


def test_a_number_of_the_profile_is_valid(parser: SpecParser) -> None:  # S-17
    assert parser.is_valid_error_code(-32700)
    assert parser.validate_error_code(-32700).name == "Parse error"


# -- transports ----------------------------------------------------------------------------------


def test_all_transports_come_in_one_call_or_one_by_name(each: SpecParser) -> None:  # S-13 S-55
    every = each.get_transport_requirements()
    assert tuple(every) == each.get_all_transports()
    for name, found in every.items():
        assert each.get_transport_requirements(name) == found
        assert isinstance(found, transport_req)


def test_a_transport_has_the_fields_of_the_guide(each: SpecParser) -> None:  # S-26
    for found in each.get_transport_requirements().values():
        assert found._fields[:-1] == (
            "name",
            "transport_type",
            "framing",
            "connection_oriented",
            "multiplexing_support",
            "required_features",
            "optional_features",
        )
        assert found.transport_type in get_args(spec_records.TransportType)
        assert found.framing in get_args(spec_records.Framing)
        assert found.required_features == found.row.required
        assert found.optional_features == found.row.optional


def test_stdio_is_a_stream_of_lines(each: SpecParser) -> None:  # S-13 S-26
    found = each.get_transport_requirements("stdio")
    assert found[:5] == ("stdio", "stream_based", "json_delimiter", True, False)


def test_http_is_made_of_messages(parser: SpecParser) -> None:  # S-26
    found = parser.get_transport_requirements("streamable-http")
    assert found[:5] == ("streamable-http", "message_based", "custom", False, True)


@pytest.mark.parametrize(
    ("name", "revision", "ours"),
    [
        ("stdio-transport", V2025_11_25, "stdio"),
        ("sse", V2025_11_25, "http+sse"),
        ("http", V2025_11_25, "streamable-http"),
        ("http", V2024_11_05, "http+sse"),
        ("websocket", V2025_11_25, "websocket"),
    ],
)
def test_the_names_of_the_original_are_understood(name: str, revision: str, ours: str) -> None:
    assert SpecParser(revision).get_transport_requirements(name).name == ours  # S-13


def test_a_transport_the_revision_lacks_is_refused() -> None:  # S-13 K-72
    with pytest.raises(UnknownTransport, match="stdio, http"):
        SpecParser(V2024_11_05).get_transport_requirements("streamable-http")


# -- capabilities --------------------------------------------------------------------------------


def test_all_capabilities_come_in_one_call_or_one_by_name(each: SpecParser) -> None:
    for name, found in each.get_capability_requirements().items():  # S-14 S-55
        assert each.get_capability_requirements(name) is found
        assert isinstance(found, capability_req)


def test_a_capability_has_the_fields_of_the_guide(each: SpecParser) -> None:  # S-27
    for found in each.get_capability_requirements().values():
        assert found._fields[:-1] == (
            "name",
            "category",
            "required",
            "dependencies",
            "features",
            "validation_rules",
        )
        roles = {row.role for row in found.rows}
        assert found.category == ("both" if len(roles) == 2 else roles.pop())
        assert not found.required
        assert all(rule.endswith(".") for rule in found.validation_rules)
        assert len(set(found.features)) == len(found.features)


def test_features_are_what_can_be_declared_and_what_can_be_asked(parser: SpecParser) -> None:
    # S-27
    assert parser.get_capability_features("resources") == (
        "subscribe",
        "listChanged",
        "list",
        "templates/list",
        "read",
        "unsubscribe",
    )
    assert parser.get_capability_features("sampling") == ("context", "tools", "createMessage")


def test_a_capability_inside_another_goes_by_its_place(parser: SpecParser) -> None:  # S-14
    found = parser.get_capability_requirements("resources.subscribe")
    assert (found.category, found.dependencies) == ("server", ("resources",))
    newest = SpecParser(V2026_07_28)
    assert newest.get_capability_features("extensions") == ("io.modelcontextprotocol/tasks",)
    tasks = newest.get_capability_requirements("extensions.io.modelcontextprotocol/tasks")
    assert tasks.features == ("get", "update", "cancel")


def test_a_capability_of_both_sides_can_be_asked_for_by_side(parser: SpecParser) -> None:
    # S-14 S-27
    both = parser.get_capability_requirements("tasks")
    client = parser.get_capability_requirements("tasks", "client")
    assert (both.category, client.category) == ("both", "client")
    assert "requests.tools.call" in both.features
    assert "requests.tools.call" not in client.features


def test_a_capability_belongs_to_a_side(each: SpecParser) -> None:  # S-18
    assert each.check_capability_support("resources", "server").category == "server"
    assert each.check_capability_support("resources").category == "server"
    assert each.check_capability_support("roots", "client").category == "client"
    with pytest.raises(UnknownCapability, match="of the client"):
        each.check_capability_support("resources", "client")
    with pytest.raises(UnknownCapability, match="there are experimental"):
        each.check_capability_support("resuorces")


def test_features_compare_as_sets(parser: SpecParser) -> None:  # K-73
    for features in (["read", "list"], ["list", "read", "list"], {"subscribe"}, "read", ()):
        assert parser.check_capability_support("resources", "server", features)
    with pytest.raises(UnknownCapability, match="no fly, swim; its features: subscribe"):
        parser.check_capability_support("resources", features=["swim", "read", "fly"])
    with pytest.raises(UnknownCapability, match="features: none"):
        parser.check_capability_support("experimental", features=["fly"])


def test_a_role_is_client_or_server(parser: SpecParser) -> None:  # S-18
    with pytest.raises(ValueError, match="'client' or 'server'"):
        parser.check_capability_support("tools", "host")  # type: ignore[arg-type]


# -- judging messages ----------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_sample_of_the_guide_is_valid_and_lacks_an_id(revision: str) -> None:
    # S-15 S-28 K-45
    params = params_for(revision, name="my_tool", arguments={})
    found = SpecParser(revision).validate_message({**SAMPLE, "params": params})
    assert [(finding.rule, finding.level) for finding in found] == [
        ("mcp.request.id-missing", "warn")
    ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_message_in_order_has_no_findings(revision: str) -> None:  # S-15
    params = params_for(revision, name="my_tool")
    assert SpecParser(revision).validate_message({**SAMPLE, "id": 1, "params": params}) == []


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
REPLY = {"jsonrpc": "2.0", "id": 1}


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        pytest.param({"id": 1, "method": "ping"}, "jsonrpc.version.required", id="S-32-none"),
        pytest.param({**CALL, "jsonrpc": "2.1"}, "jsonrpc.version.value", id="S-32-other"),
        pytest.param({**CALL, "jsonrpc": 2.0}, "jsonrpc.version.value", id="S-32-number"),
        pytest.param({**CALL, "method": 7}, "jsonrpc.method.type", id="S-33-number"),
        pytest.param({"jsonrpc": "2.0", "id": 1}, "jsonrpc.message.kind", id="S-33-none"),
        pytest.param({**CALL, "method": "tools/cal"}, "mcp.method.unknown", id="S-33-unknown"),
        pytest.param(
            {**CALL, "method": "notifications/initialized"}, "mcp.notification.id", id="S-34"
        ),
        pytest.param({**CALL, "id": None}, "jsonrpc.id.not-null", id="S-34-null"),
        pytest.param({**CALL, "params": "text"}, "jsonrpc.params.object", id="S-35-text"),
        pytest.param({**CALL, "params": [1]}, "jsonrpc.params.object", id="S-35-array"),
        pytest.param(
            {**REPLY, "result": {}, "error": {"code": 1, "message": ""}},
            "jsonrpc.reply.one-outcome",
            id="S-36",
        ),
        pytest.param({**REPLY, "error": {"message": ""}}, "jsonrpc.error.code", id="S-37-code"),
        pytest.param({**REPLY, "error": {"code": 1}}, "jsonrpc.error.message", id="S-37-message"),
    ],
)
def test_a_broken_rule_is_named(parser: SpecParser, message: Any, rule: str) -> None:
    with pytest.raises(SpecViolation) as caught:
        parser.validate_message(message)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({**REPLY, "error": {"code": -32603, "message": "no"}}, id="S-37"),
        pytest.param(
            {**REPLY, "error": {"code": -32603, "message": "", "data": 1}}, id="S-37-data"
        ),
        pytest.param({"jsonrpc": "2.0", "error": {"code": -32700, "message": ""}}, id="S-34"),
        pytest.param(CALL, id="S-35-no-params"),
        pytest.param({"jsonrpc": "2.0", "method": "notifications/initialized"}, id="S-34-none"),
    ],
)
def test_valid_message_has_no_findings(parser: SpecParser, message: Any) -> None:
    assert parser.validate_message(message) == []


def test_a_violation_holds_the_facts_and_all_findings(parser: SpecParser) -> None:  # S-15 K-72
    message = {**CALL, "method": "prompts/get", "params": {"arguments": 7}}
    with pytest.raises(RemoteProtocolError) as caught:
        parser.validate_message(message)
    error = caught.value
    assert isinstance(error, SpecViolation)
    assert (error.rule, error.where) == ("mcp.type.json-type", "/params/arguments")
    assert [finding.where for finding in error.findings] == ["/params/arguments", "/params/name"]
    assert str(error).startswith("mcp.type.json-type at /params/arguments got 7: expected ")
    assert str(error).endswith(" (and 1 more)")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.tag) == (str(error), error.tag)


def test_a_violation_shows_no_secret(parser: SpecParser) -> None:
    message = {**CALL, "method": "tools/call", "params": {"name": {"password": "hunter2"}}}
    with pytest.raises(SpecViolation) as caught:
        parser.validate_message(message)
    assert "hunter2" not in f"{caught.value} {caught.value!r} {caught.value.got}"


def test_a_result_is_judged_by_the_method_it_answers(parser: SpecParser) -> None:  # S-43
    reply = {**REPLY, "result": {"tools": 7}}
    assert parser.validate_message({**REPLY, "result": {"tools": []}}, request="tools/list") == []
    with pytest.raises(SpecViolation, match="/result/tools"):
        parser.validate_message(reply, request="tools/list")


def test_message_is_checked_for_the_direction_of_its_sender(
    parser: SpecParser,
) -> None:  # S-43 S-44
    assert parser.validate_message(CALL, "client") == []
    with pytest.raises(SpecViolation, match=r"mcp\.method\.direction"):
        parser.validate_message(CALL, "server")


def test_a_reply_is_judged_by_the_numbers_of_the_profile() -> None:
    reply = {**REPLY, "error": {"code": -32008, "message": "Resource not found"}}
    official = SpecParser(V2026_07_28).validate_message(reply)
    assert [finding.rule for finding in official] == ["mcp.error.legacy-range"]
    assert SpecParser(V2026_07_28, profile="erlmcp-guide").validate_message(reply) == []


# -- judging calls -------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_params_that_a_method_takes_pass(revision: str) -> None:  # S-16
    parser = SpecParser(revision)
    assert parser.validate_method_call("tools/list", params_for(revision)) == []
    params = params_for(revision, uri="file:///a.txt")
    assert parser.validate_method_call("resources/read", params) == []
    params = {"progressToken": 1, "progress": 0.5}
    assert parser.validate_method_call("notifications/progress", params) == []


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_method_may_be_called_without_params(revision: str) -> None:  # S-16
    parser = SpecParser(revision)
    for method in ("tools/list", "ping", "notifications/initialized"):
        assert parser.validate_method_call(method) == parser.validate_method_call(method, {}) == []


@pytest.mark.parametrize(
    ("method", "params", "where"),
    [
        ("resources/read", {}, "/params/uri"),
        ("resources/read", {"uri": 7}, "/params/uri"),
        ("resources/read", {"uri": "no uri"}, "/params/uri"),
        ("resources/read", None, "/params"),
        ("resources/read", [], "/params"),
        ("resources/read", "text", "/params"),
        ("notifications/progress", {"progress": 1}, "/params/progressToken"),
    ],
)
def test_params_that_a_method_does_not_take_are_refused(
    parser: SpecParser, method: str, params: Any, where: str
) -> None:  # S-16
    for ask in (
        partial(parser.validate_method_call, method),
        parser.generate_method_validator(method),
    ):
        with pytest.raises(SpecViolation) as caught:
            ask(params)
        assert (caught.value.where, caught.value.tag) == (where, "invalid_params")


def test_params_that_travel_inside_a_result_are_judged_too() -> None:  # S-16
    parser = SpecParser(V2026_07_28)
    params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    parser.validate_method_call("elicitation/create", params)
    with pytest.raises(SpecViolation, match="/params/message"):
        parser.validate_method_call("elicitation/create", {**params, "message": 7})


def test_a_validator_has_the_fields_of_the_original(parser: SpecParser) -> None:  # S-31
    found = parser.generate_method_validator("initialize")
    assert isinstance(found, method_validator)
    assert found.method_name == "initialize"
    assert set(found.required_params) == {"protocolVersion", "capabilities", "clientInfo"}
    assert found.optional_params == ("_meta",)
    assert found.param_types["protocolVersion"] == "string"
    assert found.param_validation["protocolVersion"] == ()
    assert found.return_type == "InitializeResult"
    assert set(found.error_codes) == {-32700, -32600, -32601, -32602, -32603}
    assert found.preconditions == ()
    assert found.postconditions == ("The result is InitializeResult.",)


def test_a_validator_checks_params_as_often_as_asked(parser: SpecParser) -> None:  # S-31
    validate = parser.generate_method_validator("initialize")
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1.0"},
    }
    assert all(name in params for name in validate.required_params)
    assert validate(params) == validate(params) == []
    with pytest.raises(SpecViolation, match="/params/clientInfo"):
        validate({**params, "clientInfo": 7})


def test_every_method_has_a_validator(each: SpecParser) -> None:  # S-31
    for name, found in each.get_method_requirements().items():
        validator = each.generate_method_validator(name)
        assert {*validator.required_params, *validator.optional_params} == set(found.params_spec)
        assert bool(validator.error_codes) == (found.method_type == "request")


def test_a_validator_says_what_has_to_hold_before() -> None:
    newest = SpecParser(V2026_07_28)
    assert newest.generate_method_validator("roots/list").preconditions == (
        "It travels inside a result.",
        "The receiver declared roots.",
    )
    assert newest.generate_method_validator("notifications/tasks").preconditions == (
        "The client and the server declared extensions.io.modelcontextprotocol/tasks.",
        "A stream of subscriptions/listen is open.",
    )


def test_a_validator_for_nothing_says_so(parser: SpecParser) -> None:
    stray = parser.generate_method_validator("ping")._replace(method_name="pong")
    with pytest.raises(UnknownMethod, match="ping"):
        stray({})


# The guide's complete example: start if absent, judge the message, judge the call.
def validate_tools_call(request: Any, parser: SpecParser | None = None) -> tuple[str, ...]:
    parser = parser or SpecParser.start_link()
    try:
        parser.validate_message(request)
        parser.validate_method_call(request["method"], request.get("params", {}))
    except SpecViolation as error:
        return "error", error.tag, error.rule
    return "ok", "valid"


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        (SAMPLE, ("ok", "valid")),
        ({**SAMPLE, "id": 1}, ("ok", "valid")),
        ({**SAMPLE, "jsonrpc": "1.0"}, ("error", "invalid_message", "jsonrpc.version.value")),
        ({**SAMPLE, "params": {}}, ("error", "invalid_params", "mcp.type.required")),
        (
            {**SAMPLE, "method": "tools/cal", "params": {}},
            ("error", "invalid_message", "mcp.method.unknown"),
        ),
        (
            {**SAMPLE, "jsonrpc": "1.0", "params": {}},
            ("error", "invalid_message", "jsonrpc.version.value"),
        ),
    ],
)
def test_validate_tools_call_names_the_first_broken_rule(
    request_: Any, outcome: tuple[str, ...]
) -> None:  # S-58
    assert validate_tools_call(request_) == outcome
    assert validate_tools_call(request_, SpecParser()) == outcome


# -- the further names of the original -----------------------------------------------------------


def test_the_rules_of_the_judge_can_be_listed(each: SpecParser) -> None:  # S-32 S-33 S-34
    rules = {rule.name: rule for rule in each.generate_validation_rules()}
    assert rules["jsonrpc.version.value"].category == "json_rpc"
    assert rules["mcp.request.id-missing"].severity == "warn"
    assert ("mcp.method.no-longer" in rules) == (each.revision == V2026_07_28)
    assert all(rule.remediation and rule.source for rule in rules.values())


def test_revisions_that_shake_hands_are_compatible() -> None:
    parser = SpecParser()
    for revision in HANDSHAKE:
        assert parser.get_version_compatibility(revision) == "compatible"
    for revision in (V2026_07_28, "2025-01-23", "", "latest"):
        assert parser.get_version_compatibility(revision) == "incompatible"
    assert SpecParser(LATEST).get_version_compatibility(LATEST) == "compatible"


def test_an_id_is_a_text_or_an_integer(parser: SpecParser) -> None:  # S-34
    assert all(map(parser.is_valid_request_id, ("", "a", 0, -1, 10**30)))
    assert not any(map(parser.is_valid_request_id, (None, 1.5, True, [], {})))


def test_a_uri_has_a_scheme(parser: SpecParser) -> None:
    assert all(map(parser.is_valid_uri, ("file:///a/b.txt", "https://example.org/?a=%20", "a:b")))
    assert not any(map(parser.is_valid_uri, ("", "/a/b", "no uri", "a:%zz", 7, None)))


def test_messages_and_things_have_schemas(each: SpecParser) -> None:
    for message in get_args(spec_records.MessageName):
        required = each.message_schema(message)["required"]
        assert "jsonrpc" in required
        assert ("method" in required) == (message in ("request", "notification"))
        assert ("error" in required) == (message == "error")
        assert ("result" in required) == (message == "response")
    for schema in (each.resource_schema(), each.tool_schema(), each.prompt_schema()):
        assert "name" in schema["required"]
    with pytest.raises(NotSpecified, match="request, response"):
        each.message_schema("letter")  # type: ignore[arg-type]


# Every call of the guide and the names its code adds, as far as they make sense here.
GUIDE = """
start_link stop parse_specification get_method_requirements get_error_requirements
get_transport_requirements get_capability_requirements validate_message validate_method_call
validate_error_code check_capability_support get_spec_version get_all_methods
get_all_error_codes get_all_transports cache_parsed_spec get_cached_spec
generate_method_validator
get_spec parse_spec list_methods list_error_codes list_transports list_capabilities
generate_validation_rules spec_version protocol_version supported_capabilities
supported_transports message_schema resource_schema tool_schema prompt_schema
is_valid_error_code is_valid_request_type is_valid_notification_type get_required_capabilities
get_all_request_types get_all_notification_types is_valid_uri is_valid_request_id
get_method_params get_method_result get_capability_features get_version_compatibility
is_deprecated_method
"""


@pytest.mark.parametrize("name", GUIDE.split())
def test_every_call_of_the_guide_is_there(name: str) -> None:  # K-74
    assert callable(getattr(SpecParser, name))
    assert getattr(SpecParser, name).__doc__


@pytest.mark.parametrize("name", module.__all__)
def test_the_names_are_those_of_the_package(name: str) -> None:
    assert getattr(erlmcp, name) is getattr(module, name)
    assert name in erlmcp.__all__


# -- what it costs -------------------------------------------------------------------------------


def test_the_benchmark_prints_times_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_spec.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    for line in (
        "parse the specification anew",  # S-51
        "look up a method",  # S-52
        "look up an error",
        "memory with rows and types",  # S-53
        "memory of the record alone",
    ):
        assert line in printed


def least_ms(run: Callable[[], object]) -> float:
    """Return the CPU time of the quickest of many runs: what else the machine does is not in it."""
    run()
    return min(timeit.repeat(run, timer=thread_time, repeat=50, number=1)) * 1000


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revision_is_parsed_in_a_millisecond_of_cpu_time(revision: str) -> None:
    assert least_ms(SpecParser(revision).cache_parsed_spec) < 1


def test_a_lookup_takes_a_tenth_of_a_millisecond_of_cpu_time() -> None:
    parser = SpecParser("2025-11-25")
    assert least_ms(lambda: parser.get_method_requirements("tools/call")) < 0.1
    assert least_ms(lambda: parser.get_error_requirements(-32602)) < 0.1
    assert least_ms(lambda: parser.get_transport_requirements("stdio")) < 0.1
    assert least_ms(lambda: parser.get_capability_requirements("tools")) < 0.1


def test_a_parser_starts_with_the_map_of_the_guide() -> None:
    time = [0.0]
    with SpecParser.start_link({"cache_ttl": 600_000}, clock=lambda: time[0]) as parser:
        parser.cache_parsed_spec()
        time[0] = 599.0
        assert parser.get_cached_spec().age_ms == 599_000
        time[0] = 600.0
        assert parser.get_cached_spec().age_ms == 0
    assert SpecParser.start_link({}).get_spec_version() == "2025-11-25"
    with pytest.raises(TypeError, match="start_link has no option 'ttl'"):
        SpecParser.start_link({"ttl": 5})
