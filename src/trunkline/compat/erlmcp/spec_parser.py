"""erlmcp's parser of the MCP specification: its questions, answered from our rows.

    with SpecParser() as parser:
        parser.get_method_requirements("resources/read").params_spec["uri"].required
        parser.validate_message({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

A `SpecParser` answers for one revision and one profile of error codes. It needs no process:
rows never change, so any number of threads may ask at once. The records have the fields and
the words of the original (`client_to_server`, `json_delimiter`), and as their last field the
row they were made from, which says more.

Where the original's tables contradict the specification, the specification counts:
`initialize` is a request, the arguments of `tools/call` are optional, `ping` goes both ways
and there is no `tasks/create`. Its ok and error pairs are values and typed errors.  [K-70 to K-74]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, overload

from ...errors import NOTHING, RemoteProtocolError, TrunklineError, show_pointer
from ...jsonrpc import Policy
from ...redaction import show
from ...spec import lookup
from ...spec.features import Capability, Method, Role, Status, Transport
from ...spec.profiles import UnknownRevision
from ...spec.revisions import V2025_11_25
from ...spec.rows import ErrorCode, Limits, Retry
from ...spec.schemas import json_schema
from ...spec.types import Expr, FieldView, TypeView, need, parse, type_

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

Direction: TypeAlias = Literal["client_to_server", "server_to_client", "bidirectional"]
ErrorCategory: TypeAlias = Literal["json_rpc", "mcp_protocol", "transport", "validation"]
TransportType: TypeAlias = Literal["stream_based", "message_based"]
Framing: TypeAlias = Literal["json_delimiter", "length_prefixing", "custom"]
Compatibility: TypeAlias = Literal["compatible", "incompatible"]
MessageName: TypeAlias = Literal["request", "response", "error", "notification"]
Tag: TypeAlias = Literal["invalid_message", "invalid_params"]
# By name, in the order of the specification.
Fields: TypeAlias = Mapping[str, FieldView]

PROTOCOL_TYPE: Final = "JSON-RPC 2.0"
OFFICIAL: Final = "mcp"
DEFAULT_TTL: Final = 300.0


# -- what goes wrong -----------------------------------------------------------------------------


class ParserStopped(TrunklineError):
    """The parser was stopped; a new one can be made."""


class NotSpecified(TrunklineError, LookupError):
    """The revision, or the profile, has nothing of this name; the text says what it has."""


class UnknownMethod(NotSpecified):
    """The revision has no such method; the text says which does, or what was meant."""


class UnknownErrorCode(NotSpecified):
    """The profile has no such error in this revision."""


class UnknownTransport(NotSpecified):
    """The revision has no such transport."""


class UnknownCapability(NotSpecified):
    """The revision has no such capability, or not on this side, or not with these features."""


class SpecViolation(RemoteProtocolError):
    """A message, or the params of a call, that the specification does not allow.

    `rule`, `where`, `got` and `expected` are those of the first error; `findings` are all,
    warnings included. `tag` says what is to blame: `invalid_params` where nothing else is wrong.
    """

    def __init__(self, findings: list[Finding]) -> None:
        first = findings[0]
        super().__init__(
            first.rule,
            where=first.where,
            got=first.got or NOTHING,
            expected=first.expected,
            source=first.source,
        )
        self.findings = tuple(findings)

    @property
    def tag(self) -> Tag:
        """Which of the two checks of the original would have failed."""
        errors = [finding for finding in self.findings if finding.level == "error"]
        in_params = all(finding.where.startswith("/params") for finding in errors)
        return "invalid_params" if in_params else "invalid_message"

    def __str__(self) -> str:
        # What a finding holds as `got` was cut and redacted when it was made.
        first = self.findings[0]
        at = f" at {show_pointer(first.where)}" if first.where else ""
        got = f" got {first.got}" if first.got else ""
        more = sum(finding.level == "error" for finding in self.findings) - 1
        also = f" (and {more} more)" if more else ""
        return f"{first.rule}{at}{got}: expected {first.expected}{also}"


# -- the records, named as in the original -------------------------------------------------------


class method_req(NamedTuple):
    """What one method or notification asks for."""

    name: str
    method_type: Literal["request", "notification"]
    direction: Direction
    required: bool
    params_spec: Fields
    result_spec: Fields
    capability_required: str | None
    deprecation_status: Status
    documentation: str
    row: Method


class error_code_req(NamedTuple):
    """What one error number means. `symbols` are the names of all that it is sent for."""

    code: int
    name: str
    category: ErrorCategory
    description: str
    severity: Literal["error", "warning"]
    retry_strategy: Retry
    symbols: tuple[str, ...]
    row: ErrorCode


class transport_req(NamedTuple):
    """What one transport asks for."""

    name: str
    transport_type: TransportType
    framing: Framing
    connection_oriented: bool
    multiplexing_support: bool
    required_features: tuple[str, ...]
    optional_features: tuple[str, ...]
    row: Transport


class capability_req(NamedTuple):
    """What one capability asks for.

    `features` are the members that can be declared inside it, then the requests it opens,
    without their prefix: `subscribe`, `listChanged`, `list`, `read`. `category` is `both` where
    both sides can declare it and no role was asked for; `rows` has a row for each side.
    """

    name: str
    category: Literal["client", "server", "both"]
    required: bool
    dependencies: tuple[str, ...]
    features: tuple[str, ...]
    validation_rules: tuple[str, ...]
    rows: tuple[Capability, ...]


class mcp_spec(NamedTuple):
    """One revision of MCP, whole."""

    version: str
    specification_date: str
    protocol_type: str
    methods: Mapping[str, method_req]
    error_codes: Mapping[int, error_code_req]
    transports: tuple[str, ...]
    capabilities: Mapping[str, capability_req]


class cached_spec(NamedTuple):
    """A specification and for how long it has been kept, in milliseconds."""

    spec: mcp_spec
    age_ms: float


class validation_rule(NamedTuple):
    """One rule that messages are judged by, and what to do to keep it."""

    name: str
    severity: Literal["error", "warn", "info"]
    category: Literal["json_rpc", "mcp_protocol"]
    remediation: str
    source: str


class method_validator(NamedTuple):
    """A check of the params of one method, to be called as often as needed."""

    method_name: str
    required_params: tuple[str, ...]
    optional_params: tuple[str, ...]
    param_types: Mapping[str, str]
    # Beside the types: keywords of JSON Schema and their values.
    param_validation: Mapping[str, Limits]
    return_type: str | None
    error_codes: tuple[int, ...]
    preconditions: tuple[str, ...]
    postconditions: tuple[str, ...]
    revision: str

    def __call__(self, params: Any = None) -> list[Finding]:
        """Return warnings about `params`; None stands for no params at all.

        Raises:
            SpecViolation: they are not what the method takes.
        """
        row = lookup.method(self.method_name, self.revision)
        if row is None:
            raise UnknownMethod(lookup.explain_method(self.method_name, self.revision))
        return _warnings(_judge_params(row, params, self.revision))


# -- the parser ----------------------------------------------------------------------------------


class SpecParser:
    """What one revision of MCP requires, under the names of erlmcp's guide.

    `profile` names the list that error numbers are looked up in. `cache_ttl` is in seconds;
    what is older is made again when it is next needed.

    Raises:
        UnknownRevision: no such revision was released; the text lists those there are.
        UnknownProfile: no profile has this name.
        ValueError: `cache_ttl` is negative or no number.
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
        # The judge by itself goes by the official numbers.
        self._policy: Final = None if profile == OFFICIAL else _policy_of(revision, profile)
        self._stopped = False
        # One reference to a pair, so that no thread sees the one without the other.
        self._cached: tuple[mcp_spec, float] | None = None

    @classmethod
    def start_link(
        cls,
        cache_ttl: float = DEFAULT_TTL * 1000,
        *,
        revision: str = V2025_11_25,
        clock: Callable[[], float] = time.monotonic,
        profile: str = OFFICIAL,
    ) -> SpecParser:
        """Return a parser whose cache lasts for so many milliseconds, as the original counts.

        Raises:
            UnknownRevision, UnknownProfile, ValueError: as `SpecParser`.
        """
        return cls(revision, cache_ttl / 1000, clock, profile)

    def stop(self) -> None:
        """Let go of the cache, and refuse further questions. Stopping twice does no harm."""
        self._stopped = True
        self._cached = None

    def __enter__(self) -> SpecParser:
        self._must_run()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # The whole, and its cache.

    def parse_specification(self) -> mcp_spec:
        """Return the whole specification, from the cache while that lasts.

        Raises:
            ParserStopped: the parser was stopped. So does every other question.
        """
        return self.get_cached_spec().spec

    def cache_parsed_spec(self) -> Literal["cached"]:
        """Fill the cache, or fill it anew: its age counts from now."""
        self._fill()
        return "cached"

    def get_cached_spec(self) -> cached_spec:
        """Return the cached specification with its age; what is missing or too old is made."""
        self._must_run()
        cached = self._cached
        if cached is not None:
            age = self._clock() - cached[1]
            if age < self._cache_ttl:
                return cached_spec(cached[0], age * 1000)
        return cached_spec(self._fill(), 0.0)

    def _fill(self) -> mcp_spec:
        self._must_run()
        spec = _specification(self.revision, self.profile)
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
        """Return what every method asks for, or one.

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
        """Return what every error number means, or one number, or one symbol.

        Raises:
            UnknownErrorCode: the profile has no such error in this revision.
        """
        codes = self.parse_specification().error_codes
        if code is None:
            return codes
        # True is 1 and 1.0 is 1 to a dict; neither is a number of the table.
        found = codes.get(code) if type(code) is int else None
        return found if found is not None else self._error_of(code)

    def _error_of(self, code: int | str) -> error_code_req:
        """Return an error that no key of the table stands for."""
        is_asked = isinstance(code, str) or type(code) is int
        row = lookup.error(code, self.profile, self.revision) if is_asked else None
        if row is None:
            where = f"profile {self.profile!r} in {self.revision}"
            raise UnknownErrorCode(f"{where} has no error {show(code)}")
        return _error_req(row, (row,))

    @overload
    def get_transport_requirements(self) -> Mapping[str, transport_req]: ...
    @overload
    def get_transport_requirements(self, name: str) -> transport_req: ...
    def get_transport_requirements(
        self, name: str | None = None
    ) -> Mapping[str, transport_req] | transport_req:
        """Return what every transport asks for, or one; `http` and `sse` are understood.

        Raises:
            UnknownTransport: the revision has none of this name.
        """
        self._must_run()
        if name is None:
            rows = lookup.transports(self.revision)
            return MappingProxyType({row.name: _transport_req(row) for row in rows})
        for known in (name, *_TRANSPORT_NAMES.get(name, ())):
            row = lookup.transport(known, self.revision)
            if row is not None:
                return _transport_req(row)
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
        """Return what every capability asks for, or one, of one side or of both.

        One inside another goes by its place: `resources.subscribe`.

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
        return _capability_req(rows, self.revision)

    # Judging.

    def validate_message(
        self, message: Any, sender: Role | None = None, request: str | None = None
    ) -> list[Finding]:
        """Return warnings about a message that is valid, its params or result included.

        A result is judged by the method that `request` names.
        A request method without an id is a notification that nobody answers, which is
        allowed and rarely meant: it is a warning.  [K-45]

        Raises:
            SpecViolation: the message is not valid; `tag` says whether its params are to blame.
        """
        self._must_run()
        # Imported here: most users of these tables judge nothing.
        from ...judge import judge

        return _warnings(judge(message, self.revision, sender, request, self._policy))

    def validate_method_call(self, method: str, params: Any = None) -> list[Finding]:
        """Return warnings about params that a method takes; None stands for no params at all.

        Raises:
            UnknownMethod: the revision has no such method.
            SpecViolation: the params are not what the method takes.
        """
        row = self.get_method_requirements(method).row
        return _warnings(_judge_params(row, params, self.revision))

    def validate_error_code(self, code: int) -> error_code_req:
        """Return what an error number means.

        Raises:
            UnknownErrorCode: the profile has no such error in this revision.
        """
        return self.get_error_requirements(code)

    def check_capability_support(
        self, name: str, role: Role | None = None, features: Iterable[str] = ()
    ) -> capability_req:
        """Return a capability that this role can declare, with all of these features.

        Raises:
            UnknownCapability: it cannot; the text says what is missing.
            ValueError: `role` is neither client nor server.
        """
        found = self.get_capability_requirements(name, role)
        # A text is many texts of one letter, and never what was meant.
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
        params = found.params_spec
        return method_validator(
            found.name,
            tuple(name for name, field in params.items() if field.required),
            tuple(name for name, field in params.items() if not field.required),
            MappingProxyType({name: field.type for name, field in params.items()}),
            MappingProxyType({name: field.limits for name, field in params.items()}),
            found.row.result,
            self._general_codes() if found.method_type == "request" else (),
            _preconditions(found.row),
            (f"The result is {found.row.result}.",) if found.row.result else (),
            self.revision,
        )

    def _general_codes(self) -> tuple[int, ...]:
        """Return the numbers that any request may be answered with."""
        table = self.parse_specification().error_codes
        return tuple(code for code, found in table.items() if found.category == "json_rpc")

    def generate_validation_rules(self) -> tuple[validation_rule, ...]:
        """Return the rules that messages of this revision are judged by."""
        self._must_run()
        # Imported here: the rules are for those who print them.
        from ...spec.jsonrpc import RULES as OF_THE_ENVELOPE
        from ...spec.mcp.rules import RULES as OF_THE_CONTENT

        return (
            *(
                validation_rule(rule.id, "error", "json_rpc", rule.expected, rule.source)
                for rule in OF_THE_ENVELOPE.values()
            ),
            *(
                validation_rule(rule.id, rule.level, "mcp_protocol", rule.expected, rule.anchor)
                for rule in OF_THE_CONTENT.values()
                if rule.when.holds(self.revision)
            ),
        )

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
        """Return the error numbers of the profile in this revision, each once."""
        return tuple(self.parse_specification().error_codes)

    def get_all_transports(self) -> tuple[str, ...]:
        """Return the names of the transports of the revision, then of our own."""
        return self.parse_specification().transports

    def get_all_capabilities(self) -> tuple[str, ...]:
        """Return the names of the capabilities of either side; features are inside them."""
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
        """Return what has to be declared before a method may be sent.

        Raises:
            UnknownMethod: the revision has no such method.
        """
        needed = self.get_method_requirements(method).capability_required
        return () if needed is None else (needed,)

    def get_capability_features(self, name: str, role: Role | None = None) -> tuple[str, ...]:
        """Return what a capability has inside.

        Raises:
            UnknownCapability: the revision has none of this name on this side.
        """
        return self.get_capability_requirements(name, role).features

    def get_version_compatibility(self, version: str) -> Compatibility:
        """Say whether a peer of another revision can be talked to.

        Revisions that open with `initialize` agree on one of them; those that do not open
        at all cannot be reached that way. A revision that was never released is incompatible.
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
        """Say whether a method is there and on its way out; one that is gone is not there."""
        found = self.parse_specification().methods.get(method)
        return found is not None and found.deprecation_status == "deprecated"

    def is_valid_error_code(self, code: object) -> bool:
        """Say whether the profile has an error of this number."""
        return type(code) is int and code in self.parse_specification().error_codes

    def is_valid_request_type(self, method: str) -> bool:
        """Say whether a method of the revision is answered."""
        return method in self._named("request")

    def is_valid_notification_type(self, method: str) -> bool:
        """Say whether a method of the revision is not answered."""
        return method in self._named("notification")

    def is_valid_request_id(self, id: object) -> bool:
        """Say whether MCP takes this as the id of a request: a text or an integer, not null."""
        self._must_run()
        return isinstance(id, str | int) and not isinstance(id, bool)

    def is_valid_uri(self, uri: object) -> bool:
        """Say whether this is a URI with its scheme, as the judge would."""
        self._must_run()
        from ...judge.formats import FORMATS

        _, has_form = FORMATS["uri"]
        return isinstance(uri, str) and has_form(uri)

    # Schemas. The caller may change them.

    def message_schema(self, message: MessageName) -> dict[str, Any]:
        """Return a JSON Schema of the envelope of one kind of message.

        Raises:
            NotSpecified: there is no such kind.
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

    # The original has two names for these.
    get_spec = parse_spec = parse_specification
    spec_version = protocol_version = get_spec_version
    list_methods = get_all_methods
    list_error_codes = get_all_error_codes
    list_transports = supported_transports = get_all_transports
    list_capabilities = supported_capabilities = get_all_capabilities


# -- from rows to records ------------------------------------------------------------------------

# The request that opens a session, in the revisions that have sessions to open.
_OPENING: Final = "initialize"
# Ours for the names that the original gives to transports.
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
_DIRECTIONS: Final[Mapping[str, Direction]] = {
    "client": "client_to_server",
    "server": "server_to_client",
    "both": "bidirectional",
}
# What is not here is about MCP itself.
_CATEGORIES: Final[Mapping[str, ErrorCategory]] = {
    "jsonrpc": "json_rpc",
    "json_rpc": "json_rpc",
    "transport": "transport",
    "validation": "validation",
}
_FRAMINGS: Final[Mapping[str, Framing]] = {"newline": "json_delimiter"}


def _specification(revision: str, profile: str) -> mcp_spec:
    """Return the record of a whole revision."""
    methods = {row.name: _method_req(row, revision) for row in lookup.methods(revision)}
    return mcp_spec(
        revision,
        revision,
        PROTOCOL_TYPE,
        MappingProxyType(methods),
        MappingProxyType(_error_table(revision, profile)),
        tuple(row.name for row in lookup.transports(revision)),
        MappingProxyType(_capability_table(revision)),
    )


def _method_req(row: Method, revision: str) -> method_req:
    return method_req(
        row.name,
        row.kind,
        _DIRECTIONS[row.by],
        row.required,
        _fields(row.params, revision),
        _fields(row.result, revision),
        row.capability or None,
        row.status,
        row.doc,
        row,
    )


# Each expression of the rows in each revision, twice over: a specification that is made again
# after its time has not changed.
@lru_cache(maxsize=512)
def _fields(expression: str | None, revision: str) -> Fields:
    """Return the members of a type, of all alternatives together where it has several."""
    views = [] if expression is None else list(_objects(parse(expression), revision))
    if len(views) == 1:
        return views[0].fields
    merged: dict[str, FieldView] = {}
    for name in dict.fromkeys(name for view in views for name in view.fields):
        merged[name] = _merged([view.fields.get(name) for view in views])
    return MappingProxyType(merged)


def _objects(expr: Expr, revision: str) -> Iterator[TypeView]:
    """Yield the object types that an expression stands for."""
    if expr.kind == "union":
        for member in expr.of:
            yield from _objects(member, revision)
    elif expr.kind == "name":
        view = need(expr.name, revision)
        if view.kind == "object":
            yield view
        else:
            yield from _objects(view.expr, revision)


def _merged(fields: list[FieldView | None]) -> FieldView:
    """Return what a field is in a union: required only if no alternative does without it."""
    there = [field for field in fields if field is not None]
    types = dict.fromkeys(field.type for field in there)
    same = all(field.limits == there[0].limits for field in there)
    return there[0]._replace(
        type=" | ".join(types),
        required=len(there) == len(fields) and all(field.required for field in there),
        limits=there[0].limits if same else (),
    )


def _error_table(revision: str, profile: str) -> dict[int, error_code_req]:
    """Return what each number means when it is read, and what else it is sent for."""
    by_number: dict[int, list[ErrorCode]] = {}
    for row in lookup.errors(revision, profile):
        by_number.setdefault(row.number, []).append(row)
    return {number: _error_req(rows[0], rows) for number, rows in by_number.items()}


def _error_req(row: ErrorCode, sharing: Iterable[ErrorCode]) -> error_code_req:
    rows = tuple(sharing)
    return error_code_req(
        row.number,
        row.message,
        _CATEGORIES.get(row.category, "mcp_protocol"),
        "; ".join(dict.fromkeys(other.message for other in rows)),
        "error" if row.severity in ("critical", "error") else "warning",
        row.retry,
        tuple(str(other.symbol) for other in rows),
        row,
    )


def _transport_req(row: Transport) -> transport_req:
    return transport_req(
        row.name,
        "stream_based" if row.kind == "stream" else "message_based",
        _FRAMINGS.get(row.framing, "custom"),
        row.connection_oriented,
        row.multiplexing,
        row.required,
        row.optional,
        row,
    )


def _capability_table(revision: str) -> dict[str, capability_req]:
    """Return the capabilities that are inside no other, by name."""
    by_name: dict[str, list[Capability]] = {}
    for row in lookup.capabilities(revision):
        if "." not in row.name:
            by_name.setdefault(row.name, []).append(row)
    return {name: _capability_req(tuple(rows), revision) for name, rows in by_name.items()}


def _capability_req(rows: tuple[Capability, ...], revision: str) -> capability_req:
    """Return one capability, of the sides that `rows` are of."""
    first = rows[0]
    roles = {row.role for row in rows}
    inside = [
        row
        for row in lookup.capabilities(revision)
        if row.name.startswith(f"{first.name}.") and row.role in roles
    ]
    declared = (row.name.removeprefix(f"{first.name}.") for row in inside)
    return capability_req(
        first.name,
        "both" if len(roles) == 2 else first.role,
        False,
        _once(depends for row in rows for depends in row.depends),
        _once((*declared, *_opened(first, revision))),
        _once(rule for row in (*rows, *inside) for rule in row.rules),
        rows,
    )


def _opened(capability: Capability, revision: str) -> Iterator[str]:
    """Yield the requests that a capability opens, without their prefix."""
    for row in lookup.methods(revision):
        # What opens the methods of an extension is the extension, not the map it stands in.
        inside = capability.kind != "map" and row.capability.startswith(f"{capability.name}.")
        if row.kind == "request" and (row.capability == capability.name or inside):
            yield row.name.partition("/")[2]


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


# -- judging -------------------------------------------------------------------------------------


def _policy_of(revision: str, profile: str) -> Policy:
    """Return what messages are judged by where error numbers are those of a profile."""
    return Policy.mcp(revision).but(strictness="strict", codes=profile)


def _judge_params(row: Method, params: Any, revision: str) -> list[Finding]:
    """Return what is wrong with the params of a method, with places as in a message."""
    from ...judge import judge

    message: dict[str, Any] = {"jsonrpc": "2.0", "method": row.name}
    if row.kind == "request":
        message["id"] = 1
    if params is not None:
        message["params"] = params
    # A method that travels inside a result has params like any other.
    return [found for found in judge(message, revision) if found.rule != _INSIDE_RESULT]


_INSIDE_RESULT: Final = "mcp.method.inside-result"


def _warnings(findings: list[Finding]) -> list[Finding]:
    """Return findings none of which is an error.

    Raises:
        SpecViolation: one is.
    """
    # Errors sort before the rest.
    if findings and findings[0].level == "error":
        raise SpecViolation(findings)
    return findings


_HOLDERS: Final = {"sender": "sender", "receiver": "receiver", "both": "client and the server"}


def _preconditions(row: Method) -> tuple[str, ...]:
    """Return what has to hold before a method may be sent, a sentence each."""
    found = [] if row.form == "wire" else ["It travels inside a result."]
    if row.capability:
        found.append(f"The {_HOLDERS[row.holder]} declared {row.capability}.")
    if row.stream:
        found.append(f"A stream of {row.stream} is open.")
    return tuple(found)
