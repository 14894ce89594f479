"""Which of the legal and illegal choices this connection makes, as one value.

A `Policy` is fields only. Its defaults are the official position of the newest
MCP revision; the tables behind the named presets are rows in `spec/profiles`.
Nothing outside this value changes how a message is read or written.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from ..redaction import show
from ..spec.mcp import jsonrpc
from ..spec.profiles import PROFILE_NAMES
from ..spec.revisions import LATEST, REVISIONS
from .limits import Limits

__all__ = ["DEFAULT_POLICY", "Policy"]

# 2^53-1 is the largest integer that every JSON reader keeps exact.
_MAX_ID: Final = 2**53 - 1
# The fields that are no choice between names.
_KINDS: Final = {
    "mixed_batches": bool,
    "explain": bool,
    "first_id": int,
    "max_id": int,
    "limits": Limits,
}


class Policy(Struct, frozen=True, kw_only=True):
    """How messages are read and written. Immutable; `policy.replace(batch="accept")` varies one."""

    # The MCP revision whose rules apply.
    revision: str = LATEST
    # Whose numbers errors get: a profile of `trunkline.spec.profiles`.
    codes: str = "mcp"
    # What to do with a code the profile does not define, when one is to be sent.
    unknown_code: Literal["pass", "to-internal", "reject"] = "pass"
    # Whether an array of messages is read.
    batch: Literal["by-revision", "accept", "reject"] = "by-revision"
    # Whether replies may stand among the calls of a batch.
    mixed_batches: bool = False
    # How the layer above runs the requests of a batch; replies keep request order either way.
    batch_order: Literal["parallel", "sequential"] = "parallel"
    # What `"id": null` makes of a call.
    null_id: Literal["reject", "as-request", "as-notification"] = "reject"
    # What stands for an id that could not be read, in the answer to a faulty message.
    unreadable_id: Literal["by-revision", "null", "omit"] = "by-revision"
    # What params may be; "nullable" also reads null as absent.
    params: Literal["object", "structured", "nullable"] = "object"
    # Which error answers params of the wrong JSON type.
    params_fault: Literal["INVALID_PARAMS", "INVALID_REQUEST"] = "INVALID_PARAMS"
    # What a result may be.
    results: Literal["object", "any"] = "object"
    # For how long an id stays taken.
    id_reuse: Literal["by-revision", "session", "open"] = "by-revision"
    # The range of generated ids; ids of the peer may be any integer.
    first_id: int = 1
    max_id: int = _MAX_ID
    # What a server does with a revision it does not speak.
    version_policy: Literal["counter-offer", "reject", "fallback"] = "counter-offer"
    # Whether a tool that fails, or is given arguments that do not fit, gives a result marked so
    # or an error of the protocol.
    tool_failures: Literal["by-revision", "error"] = "by-revision"
    # Whether method names go by their official spelling or, too, without `notifications/`.
    method_names: Literal["prefixed", "accept-bare", "emit-bare"] = "prefixed"
    limits: Limits = Limits()
    # Whether the envelope carries auth, headers and metadata.
    envelope: Literal["plain", "pierre"] = "plain"
    framing: Literal["newline", "content-length", "length-prefix", "detect"] = "newline"
    # "strict" also refuses duplicate members and checks what we write; "lenient" forgives a
    # missing version and 1.0 as an id.
    strictness: Literal["standard", "strict", "lenient"] = "standard"
    # How `Codec.describe` shows the envelope's `auth`.
    redaction: Literal["full", "first-and-last"] = "full"
    # Whether the answer to a faulty message says in `data` which rule it broke.
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
        if self.first_id < 0 or self.max_id < self.first_id:
            raise ValueError("Policy.first_id and max_id name a range of ids from 0 upwards")

    @property
    def accepts_batches(self) -> bool:
        """Whether an array of messages is read."""
        if self.batch == "by-revision":
            return jsonrpc.BATCHES_RECEIVED.holds(self.revision)
        return self.batch == "accept"

    @property
    def sends_batches(self) -> bool:
        """Whether several calls may be sent as one."""
        if self.batch == "by-revision":
            return jsonrpc.BATCHES_SENT.holds(self.revision)
        return self.batch == "accept"

    @property
    def omits_unreadable_id(self) -> bool:
        """Whether the answer to a message without a readable id leaves the id out."""
        if self.unreadable_id == "by-revision":
            return jsonrpc.UNREADABLE_ID_OMITTED.holds(self.revision)
        return self.unreadable_id == "omit"

    @property
    def ids_last_a_session(self) -> bool:
        """Whether an id, once used, stays taken until the connection ends."""
        if self.id_reuse == "by-revision":
            return jsonrpc.ID_NAMES_ONE_REQUEST_PER_SESSION.holds(self.revision)
        return self.id_reuse == "session"

    def replace(self, **changes: Any) -> Policy:
        """Return a copy with some fields changed."""
        return replace(self, **_checked(changes))

    @classmethod
    def mcp(cls, revision: str = LATEST) -> Policy:
        """Return the official position of one MCP revision.

        Raises:
            ValueError: no such revision was released; the text lists those that were.
        """
        return cls.named("mcp").replace(revision=revision)

    @classmethod
    def jsonrpc(cls) -> Policy:
        """Return JSON-RPC 2.0 by itself, without what MCP narrows."""
        return cls.named("jsonrpc")

    @classmethod
    def erlmcp(cls) -> Policy:
        """Return the choices of the erlmcp protocol document."""
        return cls.named("erlmcp")

    @classmethod
    def pierre(cls) -> Policy:
        """Return the choices of Pierre, with credentials and context in the envelope."""
        return cls.named("pierre")

    @classmethod
    def mcpp(cls) -> Policy:
        """Return the choices of mcpp, which forgives more."""
        return cls.named("mcpp")

    @classmethod
    def named(cls, name: str) -> Policy:
        """Return a preset by its name: `mcp`, `jsonrpc`, `erlmcp`, `pierre` or `mcpp`.

        Raises:
            LookupError: there is no such preset; the text lists those there are.
        """
        # Imported here: a program that names no preset reads no table of presets.
        from ..spec.profiles.presets import POLICIES

        row = POLICIES.get(name)
        if row is None:
            raise LookupError(f"no policy named {name!r}; there are {', '.join(POLICIES)}")
        return cls(**_checked(row))


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """Return, for each field that is a choice, what can be chosen."""
    hints = get_type_hints(Policy)
    literals = {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}
    return {"revision": REVISIONS, "codes": PROFILE_NAMES, **literals}


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    """Return `fields` with limits given by name looked up."""
    limits = fields.get("limits")
    return {**fields, "limits": Limits.named(limits)} if isinstance(limits, str) else fields


# What `decode` and `encode` use by themselves. Batches are allowed: whoever decodes by hand has
# agreed on no revision yet.
DEFAULT_POLICY: Final = Policy(batch="accept")
