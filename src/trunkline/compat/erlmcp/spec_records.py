"""Records, types and exceptions of erlmcp's specification parser.

A record has the name, fields and values of the original (`client_to_server`, `json_delimiter`),
and as its last field the row it was made from by `spec_tables`. It is immutable, and outlives
its parser. A `method_validator` can be called, so params are judged here. The rules that live
here, and only here:

* If a finding is an error, all findings are raised; otherwise they are returned.
* Params are judged inside a message, so that pointers start at its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from ...errors import NOTHING, RemoteProtocolError, TrunklineError, show_pointer
from ...spec import lookup
from ...spec.rows import Capability, ErrorCode, Limits, Method, Retry, Status, TransportRow
from ...spec.types import FieldView

if TYPE_CHECKING:
    from ...judge import Finding

__all__ = [
    "Compatibility",
    "Direction",
    "ErrorCategory",
    "Fields",
    "Framing",
    "MessageName",
    "NotSpecified",
    "ParserStopped",
    "SpecViolation",
    "Tag",
    "TransportType",
    "UnknownCapability",
    "UnknownErrorCode",
    "UnknownMethod",
    "UnknownTransport",
    "cached_spec",
    "capability_req",
    "error_code_req",
    "judge_params",
    "mcp_spec",
    "method_req",
    "method_validator",
    "only_warnings",
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
    row: TransportRow


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
        """Return the warnings for `params`; None means no params.

        Raises:
            SpecViolation: they are not what the method takes.
        """
        row = lookup.method(self.method_name, self.revision)
        if row is None:
            raise UnknownMethod(lookup.explain_method(self.method_name, self.revision))
        return only_warnings(judge_params(row, params, self.revision))


# -- judging -------------------------------------------------------------------------------------

_INSIDE_RESULT: Final = "mcp.method.inside-result"


def judge_params(row: Method, params: Any, revision: str) -> list[Finding]:
    """Return what is wrong with the params of a method, with places as in a message."""
    from ...judge import judge

    message: dict[str, Any] = {"jsonrpc": "2.0", "method": row.name}
    if row.kind == "request":
        message["id"] = 1
    if params is not None:
        message["params"] = params
    # A method that travels inside a result has params like any other.
    return [found for found in judge(message, revision) if found.rule != _INSIDE_RESULT]


def only_warnings(findings: list[Finding]) -> list[Finding]:
    """Return findings none of which is an error.

    Raises:
        SpecViolation: one is.
    """
    # Errors sort before the rest.
    if findings and findings[0].level == "error":
        raise SpecViolation(findings)
    return findings
