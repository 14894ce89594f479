"""The envelopes a policy accepts, as Struct types that the decoder checks in C.

A shape declares the members that must, may and must not be present. Callers see
the message classes of `messages.py`; these are what bytes are decoded into first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct

from ..messages import Call, ErrorObject, Reply, Shown, shown

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = [
    "Loose",
    "call_shape",
    "loose_shape",
    "params_type",
    "result_shape",
    "result_type",
    "typed_call_shapes",
]

# No peer can guess it.
_SECRET: Final = os.urandom(16).hex()
# A member of this type must be absent.
_ABSENT: Final[Any] = Literal[_SECRET] | UnsetType

Field: TypeAlias = tuple[str, Any] | tuple[str, Any, Any]


class Loose(Shown, Struct):
    """Any message, with every member optional."""

    jsonrpc: str | UnsetType = UNSET
    id: Any = UNSET
    method: str | UnsetType = UNSET
    params: Any = UNSET
    result: Any = UNSET
    error: ErrorObject | UnsetType = UNSET
    auth: Any = UNSET
    headers: Any = UNSET
    metadata: Any = UNSET


def call_shape(policy: Policy, *, params: Any, absent: Any = UNSET) -> Any:
    """Return the shape of a request or notification, with `params` of the given type.

    `absent` is the default of params; null is rejected, unless `params` accepts it.
    """
    fields: list[Field] = [
        *_version(policy),
        ("id", _id(policy), UNSET),
        ("method", _method(policy)),
        ("params", params, absent),
        ("result", _ABSENT, UNSET),
        ("error", _ABSENT, UNSET),
        *_extensions(policy),
    ]
    return defstruct("Call", fields, bases=(Call,), kw_only=True, gc=False)


def typed_call_shapes(policy: Policy, params: Mapping[str, type]) -> list[Any]:
    """Return a shape for each method, tagged by the method, with typed params.

    There are two at least, the second of a method that no message has: the decoder accepts a
    missing tag where there is only one type.
    """
    if len(params) == 1:
        params = {**params, _SECRET: dict}
    return [
        defstruct(
            "Call",
            [
                *_version(policy),
                ("id", _id(policy), UNSET),
                ("params", kind),
                ("result", _ABSENT, UNSET),
                ("error", _ABSENT, UNSET),
                *_extensions(policy),
            ],
            bases=(_TypedCall,),
            namespace={"method": method},
            tag_field="method",
            tag=method,
            kw_only=True,
        )
        for method, kind in params.items()
    ]


class _TypedCall(Shown, Struct):
    """A call whose method is its class: `method` is set on each subclass."""

    # As `Call` has it.
    is_reply: ClassVar[Literal[False]] = False
    method: ClassVar[str]

    def __repr__(self) -> str:
        return shown(self).replace("(", f"(method={self.method!r}, ", 1)


def result_shape(policy: Policy) -> Any:
    """Return the shape of a successful reply, with a raw result."""
    fields: list[Field] = [
        *_version(policy),
        ("id", int | _text_id(policy)),
        ("result", Raw),
        ("error", _ABSENT, UNSET),
        ("method", _ABSENT, UNSET),
    ]
    return defstruct("Reply", fields, bases=(Reply,), kw_only=True, gc=False)


def loose_shape(policy: Policy, *, params: Any, result: Any) -> Any:
    """Return the shape of any message."""
    fields: list[Field] = [
        *_version(policy),
        ("id", _id(policy) | None, UNSET),
        ("method", _method(policy) | UnsetType, UNSET),
        ("params", params | UnsetType, UNSET),
        ("result", result | UnsetType, UNSET),
        *_extensions(policy),
    ]
    return defstruct("Loose", fields, bases=(Loose,), kw_only=True)


def params_type(policy: Policy) -> Any:
    """Return the type of params that are decoded in the same pass."""
    kinds = {"object": dict[str, Any], "structured": dict[str, Any] | list[Any]}
    return kinds.get(policy.params, dict[str, Any] | list[Any] | None)


def result_type(policy: Policy) -> Any:
    """Return the type of a result that is decoded in the same pass."""
    return dict[str, Any] if policy.results == "object" else Any


def _version(policy: Policy) -> list[Field]:
    if policy.strictness == "lenient":
        return [("jsonrpc", Literal["2.0"] | UnsetType, UNSET)]
    return [("jsonrpc", Literal["2.0"])]


def _method(policy: Policy) -> Any:
    return Annotated[str, Meta(min_length=1, max_length=policy.limits.method_length)]


def _id(policy: Policy) -> Any:
    # Integral floats are accepted here and converted to integers by the codec.
    number = int | float if policy.strictness == "lenient" else int
    null = None if policy.null_id != "reject" else UnsetType
    return number | _text_id(policy) | null | UnsetType


def _text_id(policy: Policy) -> Any:
    return Annotated[str, Meta(max_length=policy.limits.id_length)]


def _extensions(policy: Policy) -> list[Field]:
    if policy.envelope == "plain":
        return []
    return [
        ("auth", str | None | UnsetType, UNSET),
        ("headers", dict[str, Any] | None | UnsetType, UNSET),
        ("metadata", dict[str, str] | UnsetType, UNSET),
    ]
