"""The API of erlmcp's specification parser, over our rows.

    with SpecParser() as parser:
        parser.get_method_requirements("resources/read").params_spec["uri"].required
        parser.validate_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

A `SpecParser` describes one revision and one profile of error codes. It needs no process: rows
never change, so any number of threads may use it. Its records and exceptions are defined in
`spec_records` and exported here; `spec_tables` converts rows to records.

Where the original's tables contradict the specification, the specification wins: `initialize`
is a request, the arguments of `tools/call` are optional, both sides send `ping`, and there is no
`tasks/create`. Ok and error pairs are values and typed errors.  [K-70 to K-74]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from ...jsonrpc import Policy
from ...redaction import show
from ...spec import lookup
from ...spec.lookup.schemas import json_schema
from ...spec.profiles import UnknownRevision
from ...spec.revisions import V2025_11_25
from ...spec.rows import Role
from ...spec.types import type_
from .spec_records import (
    Compatibility,
    Fields,
    MessageName,
    NotSpecified,
    ParserStopped,
    SpecViolation,
    UnknownCapability,
    UnknownErrorCode,
    UnknownMethod,
    UnknownTransport,
    cached_spec,
    capability_req,
    error_code_req,
    judge_params,
    mcp_spec,
    method_req,
    method_validator,
    only_warnings,
    transport_req,
    validation_rule,
)
from .spec_tables import (
    capability_record,
    error_record,
    rule_records,
    specification,
    transport_record,
    validator_record,
)

if TYPE_CHECKING:
    from ...judge import Finding

__all__ = [
    "NotSpecified",
    "ParserStopped",
    "SpecParser",
    "SpecViolation",
    "UnknownCapability",
    "UnknownErrorCode",
    "UnknownMethod",
    "UnknownTransport",
    "cached_spec",
    "capability_req",
    "error_code_req",
    "mcp_spec",
    "method_req",
    "method_validator",
    "transport_req",
    "validation_rule",
]

OFFICIAL: Final = "mcp"
DEFAULT_TTL: Final = 300.0

# The request that opens a session, in the revisions that have sessions to open.
_OPENING: Final = "initialize"
# Our names of transports by those of the original.
_TRANSPORT_NAMES: Final = {
    "stdio-transport": ("stdio",),
    "http": ("streamable-http", "http+sse"),
    "sse": ("http+sse",),
}
# The type of each message, by its newest name first.
_MESSAGES: Final = {
    "request": ("JSONRPCRequest",),
    "response": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError"),
    "notification": ("JSONRPCNotification",),
}


class SpecParser:
    """The requirements of one MCP revision, with the names of erlmcp's guide.

    `profile` is the profile of error codes. `cache_ttl` is in seconds; an older specification is
    rebuilt on its next use.

    Raises:
        UnknownRevision: the revision is unknown; the text lists the known ones.
        UnknownProfile: no profile has this name.
        ValueError: `cache_ttl` is negative or not a number.
    """

    def __init__(
        self,
        revision: str = V2025_11_25,
        cache_ttl: float = DEFAULT_TTL,
        clock: Callable[[], float] = time.monotonic,
        profile: str = OFFICIAL,
    ) -> None:
        lookup.errors(revision, profile)
        if not cache_ttl >= 0:
            raise ValueError(f"a cache cannot last {cache_ttl!r} seconds")
        self.revision: Final = revision
        self.profile: Final = profile
        self._cache_ttl: Final = cache_ttl
        self._clock: Final = clock
        # The default of the judge is the official codes.
        self._policy: Final = None if profile == OFFICIAL else _policy_of(revision, profile)
        self._stopped = False
        # One reference to a pair, so that threads see both or neither.
        self._cached: tuple[mcp_spec, float] | None = None

    @classmethod
    def start_link(
        cls,
        cache_ttl: float | Mapping[str, float] = DEFAULT_TTL * 1000,
        *,
        revision: str = V2025_11_25,
        clock: Callable[[], float] = time.monotonic,
        profile: str = OFFICIAL,
    ) -> SpecParser:
        """Return a parser; `cache_ttl` is in milliseconds, or a map with that member.

        Both forms are those of the original: `start_link({"cache_ttl": 600000})`.

        Raises:
            UnknownRevision, UnknownProfile, ValueError: as `SpecParser`.
            TypeError: the map has another member.
        """
        if isinstance(cache_ttl, Mapping):
            if others := cache_ttl.keys() - {"cache_ttl"}:
                raise TypeError(f"start_link has no option {', '.join(sorted(map(repr, others)))}")
            cache_ttl = cache_ttl.get("cache_ttl", DEFAULT_TTL * 1000)
        return cls(revision, cache_ttl / 1000, clock, profile)

    def stop(self) -> None:
        """Drop the cache, and reject further calls. Stopping twice is allowed."""
        self._stopped = True
        self._cached = None

    def __enter__(self) -> SpecParser:
        self._must_run()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # The whole, and its cache.

    def parse_specification(self) -> mcp_spec:
        """Return the whole specification, from the cache if it is not too old.

        Raises:
            ParserStopped: the parser was stopped; every other method raises it too.
        """
        return self.get_cached_spec().spec

    def cache_parsed_spec(self) -> Literal["cached"]:
        """Fill or refill the cache: its age counts from now."""
        self._fill()
        return "cached"

    def get_cached_spec(self) -> cached_spec:
        """Return the cached specification with its age, after filling the cache if needed."""
        self._must_run()
        cached = self._cached
        if cached is not None:
            age = self._clock() - cached[1]
            if age < self._cache_ttl:
                return cached_spec(cached[0], age * 1000)
        return cached_spec(self._fill(), 0.0)

    def _fill(self) -> mcp_spec:
        self._must_run()
        spec = specification(self.revision, self.profile)
        self._cached = (spec, self._clock())
        return spec

    def _must_run(self) -> None:
        if self._stopped:
            raise ParserStopped("this parser was stopped: make another")

    # Requirements: all, or one.

    @overload
    def get_method_requirements(self) -> Mapping[str, method_req]: ...
    @overload
    def get_method_requirements(self, name: str) -> method_req: ...
    def get_method_requirements(
        self, name: str | None = None
    ) -> Mapping[str, method_req] | method_req:
        """Return the requirements of every method, or of one.

        Raises:
            UnknownMethod: the revision has none of this name.
        """
        methods = self.parse_specification().methods
        if name is None:
            return methods
        found = methods.get(name)
        if found is None:
            raise UnknownMethod(lookup.explain_method(name, self.revision))
        return found

    @overload
    def get_error_requirements(self) -> Mapping[int, error_code_req]: ...
    @overload
    def get_error_requirements(self, code: int | str) -> error_code_req: ...
    def get_error_requirements(
        self, code: int | str | None = None
    ) -> Mapping[int, error_code_req] | error_code_req:
        """Return the requirements of every error code, or of one code or symbol.

        Raises:
            UnknownErrorCode: the profile has no such error in this revision.
        """
        codes = self.parse_specification().error_codes
        if code is None:
            return codes
        # As dict keys True and 1.0 equal 1; neither is an error code.
        found = codes.get(code) if type(code) is int else None
        return found if found is not None else self._error_of(code)

    def _error_of(self, code: int | str) -> error_code_req:
        """Return an error that is not a key of the table."""
        is_asked = isinstance(code, str) or type(code) is int
        row = lookup.error(code, self.profile, self.revision) if is_asked else None
        if row is None:
            where = f"profile {self.profile!r} in {self.revision}"
            raise UnknownErrorCode(f"{where} has no error {show(code)}")
        return error_record(row, (row,))

    @overload
    def get_transport_requirements(self) -> Mapping[str, transport_req]: ...
    @overload
    def get_transport_requirements(self, name: str) -> transport_req: ...
    def get_transport_requirements(
        self, name: str | None = None
    ) -> Mapping[str, transport_req] | transport_req:
        """Return the requirements of every transport, or of one; `http` and `sse` are accepted.

        Raises:
            UnknownTransport: the revision has none of this name.
        """
        self._must_run()
        if name is None:
            rows = lookup.transports(self.revision)
            return MappingProxyType({row.name: transport_record(row) for row in rows})
        for known in (name, *_TRANSPORT_NAMES.get(name, ())):
            row = lookup.transport(known, self.revision)
            if row is not None:
                return transport_record(row)
        there = ", ".join(self.get_all_transports())
        raise UnknownTransport(f"MCP {self.revision} has no transport {show(name)}, but {there}")

    @overload
    def get_capability_requirements(self) -> Mapping[str, capability_req]: ...
    @overload
    def get_capability_requirements(
        self, name: str, role: Role | None = None
    ) -> capability_req: ...
    def get_capability_requirements(
        self, name: str | None = None, role: Role | None = None
    ) -> Mapping[str, capability_req] | capability_req:
        """Return the requirements of every capability, or of one, for one side or both.

        A nested capability is named by its path: `resources.subscribe`.

        Raises:
            UnknownCapability: the revision has none of this name on this side.
            ValueError: `role` is neither client nor server.
        """
        capabilities = self.parse_specification().capabilities
        if name is None:
            return capabilities
        if role not in ("client", "server", None):
            raise ValueError(f"a role is 'client' or 'server', not {role!r}")
        found = capabilities.get(name) if role is None else None
        return found if found is not None else self._capability_of(name, role)

    def _capability_of(self, name: str, role: Role | None) -> capability_req:
        roles: tuple[Role, ...] = ("client", "server") if role is None else (role,)
        found = (lookup.capability(name, self.revision, side) for side in roles)
        rows = tuple(row for row in found if row is not None)
        if not rows:
            side = "" if role is None else f" of the {role}"
            there = ", ".join(self.get_all_capabilities())
            raise UnknownCapability(
                f"MCP {self.revision} has no capability {show(name)}{side}; there are {there}"
            )
        return capability_record(rows, self.revision)

    # Judging.

    def validate_message(
        self, message: Any, sender: Role | None = None, request: str | None = None
    ) -> list[Finding]:
        """Return the warnings for a valid message, its params or result included.

        A result is judged by the method that `request` names. A request method without an id is
        a notification, which is allowed and rarely intended: it is a warning.  [K-45]

        Raises:
            SpecViolation: the message is invalid; `tag` tells whether its params are.
        """
        self._must_run()
        # Imported here: most users of these tables judge nothing.
        from ...judge import judge

        return only_warnings(judge(message, self.revision, sender, request, self._policy))

    def validate_method_call(self, method: str, params: Any = None) -> list[Finding]:
        """Return the warnings for valid params of a method; None means no params.

        Raises:
            UnknownMethod: the revision has no such method.
            SpecViolation: the params are invalid.
        """
        row = self.get_method_requirements(method).row
        return only_warnings(judge_params(row, params, self.revision))

    def validate_error_code(self, code: int) -> error_code_req:
        """Return the requirements of an error code.

        Raises:
            UnknownErrorCode: the profile has no such error in this revision.
        """
        return self.get_error_requirements(code)

    def check_capability_support(
        self, name: str, role: Role | None = None, features: Iterable[str] = ()
    ) -> capability_req:
        """Return a capability that this role can declare, with all of these features.

        Raises:
            UnknownCapability: it cannot; the text names what is missing.
            ValueError: `role` is neither client nor server.
        """
        found = self.get_capability_requirements(name, role)
        # A string would be iterated by character.
        wanted = {features} if isinstance(features, str) else set(features)
        missing = sorted(wanted.difference(found.features))
        if missing:
            has = ", ".join(found.features) or "none"
            raise UnknownCapability(f"{name!r} has no {', '.join(missing)}; its features: {has}")
        return found

    def generate_method_validator(self, method: str) -> method_validator:
        """Return a reusable check of the params of one method.

        Raises:
            UnknownMethod: the revision has no such method.
        """
        found = self.get_method_requirements(method)
        codes = self._general_codes() if found.method_type == "request" else ()
        return validator_record(found, codes, self.revision)

    def _general_codes(self) -> tuple[int, ...]:
        """Return the error codes that any request may be answered with."""
        table = self.parse_specification().error_codes
        return tuple(code for code, found in table.items() if found.category == "json_rpc")

    def generate_validation_rules(self) -> tuple[validation_rule, ...]:
        """Return the rules that messages of this revision are judged by."""
        self._must_run()
        return rule_records(self.revision)

    # Names.

    def get_spec_version(self) -> str:
        """Return the revision this parser answers for."""
        self._must_run()
        return self.revision

    def get_all_methods(self) -> tuple[str, ...]:
        """Return the names of requests and notifications, in the order of the rows."""
        return tuple(self.parse_specification().methods)

    def get_all_request_types(self) -> tuple[str, ...]:
        """Return the names of the methods that are answered."""
        return self._named("request")

    def get_all_notification_types(self) -> tuple[str, ...]:
        """Return the names of the methods that are not answered."""
        return self._named("notification")

    def _named(self, kind: str) -> tuple[str, ...]:
        methods = self.parse_specification().methods.values()
        return tuple(found.name for found in methods if found.method_type == kind)

    def get_all_error_codes(self) -> tuple[int, ...]:
        """Return the error codes of the profile in this revision, each once."""
        return tuple(self.parse_specification().error_codes)

    def get_all_transports(self) -> tuple[str, ...]:
        """Return the names of the transports of the revision, then of our own."""
        return self.parse_specification().transports

    def get_all_capabilities(self) -> tuple[str, ...]:
        """Return the names of the top-level capabilities of both sides."""
        return tuple(self.parse_specification().capabilities)

    # One column.

    def get_method_params(self, method: str) -> Fields:
        """Return the params of a method by name.

        Raises:
            UnknownMethod: the revision has no such method.
        """
        return self.get_method_requirements(method).params_spec

    def get_method_result(self, method: str) -> Fields:
        """Return the members of a method's result by name; a notification has none.

        Raises:
            UnknownMethod: the revision has no such method.
        """
        return self.get_method_requirements(method).result_spec

    def get_required_capabilities(self, method: str) -> tuple[str, ...]:
        """Return the capabilities that have to be declared before a method may be sent.

        Raises:
            UnknownMethod: the revision has no such method.
        """
        needed = self.get_method_requirements(method).capability_required
        return () if needed is None else (needed,)

    def get_capability_features(self, name: str, role: Role | None = None) -> tuple[str, ...]:
        """Return the features of a capability.

        Raises:
            UnknownCapability: the revision has none of this name on this side.
        """
        return self.get_capability_requirements(name, role).features

    def get_version_compatibility(self, version: str) -> Compatibility:
        """Return whether this revision is compatible with another one.

        Revisions with `initialize` negotiate one of them; those without it are not compatible
        with the others. An unknown revision is incompatible.
        """
        self._must_run()
        try:
            theirs = lookup.method(_OPENING, version)
        except UnknownRevision:
            return "incompatible"
        ours = lookup.method(_OPENING, self.revision)
        return "compatible" if (ours is None) == (theirs is None) else "incompatible"

    # Yes or no.

    def is_deprecated_method(self, method: str) -> bool:
        """Return True if a method is deprecated; a removed one is not."""
        found = self.parse_specification().methods.get(method)
        return found is not None and found.deprecation_status == "deprecated"

    def is_valid_error_code(self, code: object) -> bool:
        """Return True if the profile has an error with this code."""
        return type(code) is int and code in self.parse_specification().error_codes

    def is_valid_request_type(self, method: str) -> bool:
        """Return True if a method of the revision is answered."""
        return method in self._named("request")

    def is_valid_notification_type(self, method: str) -> bool:
        """Return True if a method of the revision is not answered."""
        return method in self._named("notification")

    def is_valid_request_id(self, id: object) -> bool:
        """Return True if this is a valid id of a request: a string or an integer, not null."""
        self._must_run()
        return isinstance(id, str | int) and not isinstance(id, bool)

    def is_valid_uri(self, uri: object) -> bool:
        """Return True if this is a URI with a scheme, by the check of the judge."""
        self._must_run()
        from ...judge.types.formats import FORMATS

        _, has_form = FORMATS["uri"]
        return isinstance(uri, str) and has_form(uri)

    # Schemas. The caller may change them.

    def message_schema(self, message: MessageName) -> dict[str, Any]:
        """Return a JSON Schema of the envelope of one kind of message.

        Raises:
            NotSpecified: the kind is unknown.
        """
        self._must_run()
        for name in _MESSAGES.get(message, ()):
            if type_(name, self.revision) is not None:
                return json_schema(name, self.revision)
        raise NotSpecified(f"no message is a {show(message)}; there are {', '.join(_MESSAGES)}")

    def resource_schema(self) -> dict[str, Any]:
        """Return a JSON Schema of a resource as it is listed."""
        self._must_run()
        return json_schema("Resource", self.revision)

    def tool_schema(self) -> dict[str, Any]:
        """Return a JSON Schema of a tool as it is listed."""
        self._must_run()
        return json_schema("Tool", self.revision)

    def prompt_schema(self) -> dict[str, Any]:
        """Return a JSON Schema of a prompt as it is listed."""
        self._must_run()
        return json_schema("Prompt", self.revision)

    # The original has several names for these.
    get_spec = parse_spec = parse_specification
    spec_version = protocol_version = get_spec_version
    list_methods = get_all_methods
    list_error_codes = get_all_error_codes
    list_transports = supported_transports = get_all_transports
    list_capabilities = supported_capabilities = get_all_capabilities


def _policy_of(revision: str, profile: str) -> Policy:
    return Policy.mcp(revision).replace(strictness="strict", codes=profile)
