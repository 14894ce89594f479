"""The protocol choices of one connection, as one immutable value.

The defaults of a `Policy` are those of the newest MCP revision; the presets are
rows in `spec/profiles`. Nothing else changes how a message is decoded or encoded.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from ..redaction import show
from ..spec.mcp import behaviour
from ..spec.profiles import PROFILE_NAMES
from ..spec.revisions import LATEST, REVISIONS
from .limits import Limits

__all__ = ["DEFAULT_POLICY", "Policy"]

# 2^53-1 is the largest integer that every JSON reader keeps exact.
_MAX_ID: Final = 2**53 - 1
# The fields that are not a choice between names.
_KINDS: Final = {
    "mixed_batches": bool,
    "explain": bool,
    "ping_first": bool,
    "first_id": int,
    "max_id": int,
    "limits": Limits,
}


class Policy(Struct, frozen=True, kw_only=True):
    """How messages are decoded and encoded; `policy.replace(batch="accept")` returns a variant."""

    # The MCP revision whose rules apply.
    revision: str = LATEST
    # The profile of `trunkline.spec.profiles` that defines the error codes.
    codes: str = "mcp"
    # How to send an error code that the profile does not define. "reject" also refuses an error
    # that is received with such a code, or with an empty message.
    unknown_code: Literal["pass", "to-internal", "reject"] = "pass"
    # Whether batches are accepted.
    batch: Literal["by-revision", "accept", "reject"] = "by-revision"
    # Whether a batch that is received may hold both calls and replies; none is sent.
    mixed_batches: bool = False
    # How the layer above runs the requests of a batch; replies keep request order either way.
    batch_order: Literal["parallel", "sequential"] = "parallel"
    # How to treat a call with `"id": null`.
    null_id: Literal["reject", "as-request", "as-notification"] = "reject"
    # The id of the answer to an invalid message whose id could not be read.
    unreadable_id: Literal["by-revision", "null", "omit"] = "by-revision"
    # The id of the answer to a message over the size limit: its own, if that can be read in the
    # beginning of the message, or null.
    oversize_id: Literal["salvaged", "null"] = "salvaged"
    # The JSON types of params; "nullable" also accepts null as absent.
    params: Literal["object", "structured", "nullable"] = "object"
    # The error for params of the wrong JSON type.
    params_fault: Literal["INVALID_PARAMS", "INVALID_REQUEST"] = "INVALID_PARAMS"
    # The JSON types of results.
    results: Literal["object", "any"] = "object"
    # Whether an id is unique for a session, or only while its request is open.
    id_reuse: Literal["by-revision", "session", "open"] = "by-revision"
    # Whether generated ids are counted integers, or random UUIDs in text form.
    ids: Literal["counted", "uuid"] = "counted"
    # The range of counted ids; ids of the peer may be any integer.
    first_id: int = 1
    max_id: int = _MAX_ID
    # The answer of a server to a revision that it does not support: its newest one, an error, its
    # newest one with a warning, or what the version table of Pierre says.
    version_policy: Literal["counter-offer", "reject", "fallback", "pierre"] = "counter-offer"
    # Whether a server answers `ping` before `initialize`.
    ping_first: bool = True
    # Whether a failed tool or invalid arguments give an `isError` result or a protocol error.
    tool_failures: Literal["by-revision", "error"] = "by-revision"
    # Whether method names are accepted or sent without their prefix `notifications/`.
    method_names: Literal["prefixed", "accept-bare", "emit-bare"] = "prefixed"
    # Seconds that a client waits for an answer, and for a page of a list; None is the default of
    # the client. An explicit `timeout` of a client replaces both.
    timeout_s: float | None = None
    list_timeout_s: float | None = None
    limits: Limits = Limits()
    # Whether the envelope carries auth, headers and metadata.
    envelope: Literal["plain", "pierre"] = "plain"
    framing: Literal["newline", "content-length", "length-prefix", "detect"] = "newline"
    # "strict" also rejects duplicate members and checks what we encode; "lenient" accepts a
    # missing version, 1.0 as an id, and mixed batches.
    strictness: Literal["standard", "strict", "lenient"] = "standard"
    # How `Codec.describe` shows the envelope's `auth`.
    redaction: Literal["full", "first-and-last"] = "full"
    # Whether the answer to an invalid message names the broken rule in `data`.
    explain: bool = True

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            value = getattr(self, name)
            if value not in choices:
                allowed = ", ".join(map(repr, choices))
                raise ValueError(f"Policy.{name} is one of {allowed}, not {show(value)}")
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if type(value) is not kind:
                raise ValueError(f"Policy.{name} is of type {kind.__name__}, not {show(value)}")
        for name in ("timeout_s", "list_timeout_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (type(seconds) in (int, float) and seconds > 0):
                raise ValueError(
                    f"Policy.{name} is a number of seconds above 0, or None, not {show(seconds)}"
                )
        if self.first_id < 0 or self.max_id < self.first_id:
            raise ValueError("Policy.first_id and max_id are a range of ids from 0 upwards")

    @property
    def accepts_batches(self) -> bool:
        """Whether batches are accepted."""
        if self.batch == "by-revision":
            return behaviour.BATCHES_RECEIVED.holds(self.revision)
        return self.batch == "accept"

    @property
    def sends_batches(self) -> bool:
        """Whether batches may be sent."""
        if self.batch == "by-revision":
            return behaviour.BATCHES_SENT.holds(self.revision)
        return self.batch == "accept"

    @property
    def accepts_mixed_batches(self) -> bool:
        """Whether a batch may hold both calls and replies, if batches are accepted."""
        return self.mixed_batches or self.strictness == "lenient"

    @property
    def omits_unreadable_id(self) -> bool:
        """Whether the answer to a message without a readable id omits the id."""
        if self.unreadable_id == "by-revision":
            return behaviour.UNREADABLE_ID_OMITTED.holds(self.revision)
        return self.unreadable_id == "omit"

    @property
    def ids_last_a_session(self) -> bool:
        """Whether an id, once used, cannot be used again on the connection."""
        if self.id_reuse == "by-revision":
            return behaviour.ID_NAMES_ONE_REQUEST_PER_SESSION.holds(self.revision)
        return self.id_reuse == "session"

    def replace(self, **changes: Any) -> Policy:
        """Return a copy with some fields changed."""
        return replace(self, **_checked(changes))

    @classmethod
    def mcp(cls, revision: str = LATEST) -> Policy:
        """Return the policy of one MCP revision.

        Raises:
            ValueError: the revision is unknown; the text lists the known ones.
        """
        return cls.named("mcp").replace(revision=revision)

    @classmethod
    def jsonrpc(cls) -> Policy:
        """Return the policy of JSON-RPC 2.0 without the restrictions of MCP."""
        return cls.named("jsonrpc")

    @classmethod
    def erlmcp(cls) -> Policy:
        """Return the policy of the erlmcp protocol document."""
        return cls.named("erlmcp")

    @classmethod
    def pierre(cls) -> Policy:
        """Return the policy of Pierre, with credentials and context in the envelope."""
        return cls.named("pierre")

    @classmethod
    def mcpp(cls) -> Policy:
        """Return the policy of mcpp, which is lenient."""
        return cls.named("mcpp")

    @classmethod
    def named(cls, name: str) -> Policy:
        """Return a preset by its name: `mcp`, `jsonrpc`, `erlmcp`, `pierre` or `mcpp`.

        Raises:
            LookupError: the preset is unknown; the text lists the known ones.
        """
        # Imported here: most programs use no preset.
        from ..spec.profiles.presets import POLICIES

        row = POLICIES.get(name)
        if row is None:
            raise LookupError(f"no policy named {name!r}; there are {', '.join(POLICIES)}")
        return cls(**_checked(row))


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    hints = get_type_hints(Policy)
    literals = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    return {"revision": REVISIONS, "codes": PROFILE_NAMES, **literals}


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    limits = fields.get("limits")
    return {**fields, "limits": Limits.named(limits)} if isinstance(limits, str) else fields


# The default of `decode` and `encode`. Batches are accepted: no revision was negotiated.
DEFAULT_POLICY: Final = Policy(batch="accept")
