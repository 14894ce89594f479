"""Diagnose a message that cannot be encoded: the broken rule and the place.

The encoder stops at the first invalid value without naming its place, and writes
NaN as null, which the peer would take for a value. This module finds both before
anything is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import UNSET, EncodeError, Raw, Struct
from msgspec.json import encode

from ...errors import NOTHING, LocalProtocolError
from ...spec.error_kinds import ErrorKind
from ...spec.jsonrpc import LOCAL_RULES
from ...spec.profiles import profile
from ..messages import (
    Batch,
    ErrorObject,
    Failure,
    Notification,
    Request,
    SentRequest,
    Success,
)
from .tokenizer import pointer

if TYPE_CHECKING:
    from ..policy import Policy

__all__ = ["UNWRITABLE", "check_finite", "check_large", "checked", "explain", "refuse"]

# All that encoding a value can raise. RuntimeError includes RecursionError, and is raised for an
# object that only looks like a dataclass.
UNWRITABLE: Final = (
    TypeError,
    ValueError,
    OverflowError,
    RuntimeError,
    AttributeError,
    EncodeError,
)

_REPLIES: Final = (Success, Failure)
_MESSAGES: Final = (Request, SentRequest, Notification, Success, Failure)
_WITHOUT_NAN: Final = frozenset({str, int, bool, bytes, type(None), type(UNSET)})
# A large message of more parts is not checked by value; its bytes are searched instead.
_MAX_GLANCED_PARTS: Final = 64
# Values without parts.
_LEAVES: Final = frozenset({str, int, float, bool, bytes, type(None), Raw})
# Deeper than the encoder allows, unless the recursion limit of the interpreter was raised far.
_MAX_DEPTH: Final = 100_000


def refuse(rule: str, *, where: str = "", got: Any = NOTHING) -> NoReturn:
    """Raise the error of a caller that is about to break `rule`."""
    raise LocalProtocolError(rule, where=where, got=got, expected=LOCAL_RULES[rule])


def checked(message: Any, policy: Policy) -> Any:
    """Return the message to encode under `policy`; raise if it breaks a rule."""
    plainly = policy.strictness != "strict" and policy.unknown_code == "pass"
    if not isinstance(message, Batch):
        if plainly and type(message) is Notification:
            return message
        return _checked_one(message, policy, "")
    if not message:
        refuse("jsonrpc.batch.empty")
    if plainly and _is_plain(message):
        return message
    items = [_checked_one(item, policy, f"/{place}") for place, item in enumerate(message)]
    if len({isinstance(item, _REPLIES) for item in items}) > 1:
        refuse("jsonrpc.batch.mixed")
    return Batch(items)


def _is_plain(batch: Batch) -> bool:
    """Return True if a batch is all requests, or all results, with valid ids."""
    kind = type(batch[0])
    if kind is not Request and kind is not Success:
        return False
    for message in batch:
        if type(message) is not kind:
            return False
        id_kind = type(message.id)
        if id_kind is not int and id_kind is not str:
            return False
    return True


def _checked_one(message: Any, policy: Policy, where: str) -> Any:
    if not isinstance(message, _MESSAGES):
        refuse("jsonrpc.message.kind", where=where, got=_a(message))
    if not isinstance(message, Notification):
        _check_id(message, policy, where)
    if isinstance(message, Failure):
        if not isinstance(message.error, ErrorObject):
            refuse("jsonrpc.reply.one-outcome", where=f"{where}/error", got=_a(message.error))
        return _with_known_code(message, policy, where)
    if policy.strictness == "strict":
        if not isinstance(message, Success):
            _check_call(message, where)
        elif message.result is UNSET:
            refuse("jsonrpc.reply.one-outcome", where=f"{where}/result")
    return message


def _check_id(
    message: Request | SentRequest | Success | Failure, policy: Policy, where: str
) -> None:
    if type(message.id) is int or type(message.id) is str:
        return
    # The answer to a request whose id could not be read has none, or null.
    is_failure = isinstance(message, Failure)
    if message.id is None and (is_failure or policy.null_id == "as-request"):
        return
    if message.id is UNSET and is_failure:
        return
    refuse("jsonrpc.id.type", where=f"{where}/id", got=message.id)


def _check_call(call: Request | SentRequest | Notification, where: str) -> None:
    if not isinstance(call.method, str) or not call.method:
        refuse("jsonrpc.method.type", where=f"{where}/method", got=call.method)
    if not isinstance(call.params, (Mapping, list, tuple, Struct, Raw, type(None))):
        refuse("jsonrpc.params.type", where=f"{where}/params", got=_a(call.params))


def _with_known_code(failure: Failure, policy: Policy, where: str) -> Failure:
    error = failure.error
    if policy.unknown_code == "reject" and not error.message:
        refuse("jsonrpc.error.empty-message", where=f"{where}/error/message", got=error.message)
    if policy.unknown_code == "pass" or profile(policy.codes).accepts(error.code, policy.revision):
        return failure
    if policy.unknown_code == "reject":
        refuse("jsonrpc.error.unknown-code", where=f"{where}/error/code", got=error.code)
    internal = profile(policy.codes).number(ErrorKind.INTERNAL_ERROR, policy.revision)
    return Failure(failure.id, ErrorObject(internal, error.message, error.data))


def check_large(message: object, written: bytes) -> None:
    """Raise if a number in a large message is NaN or infinite; `written` is its encoding."""
    if not _is_finite_at_a_glance(message) and written.rfind(b"null") >= 0:
        check_finite(message)


def _is_finite_at_a_glance(message: object) -> bool:
    """Return True if a message of few parts, such as one with a long text, holds no NaN.

    False means unknown: there are too many parts, or one of another type.
    """
    parts: list[Any] = [message]
    left = _MAX_GLANCED_PARTS
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind is dict or kind is list or kind is tuple or kind is Batch:
            if len(part) > left:
                return False
            parts += part.values() if kind is dict else part
        elif isinstance(part, Struct):
            parts += [getattr(part, name) for name in part.__struct_fields__]
        elif kind not in _WITHOUT_NAN:
            return False
        left -= 1
        if len(parts) > left:
            return False
    return True


def check_finite(message: object) -> None:
    """Raise if a number in `message` is NaN or infinite."""
    for steps, value in _values(message):
        number = value.value if isinstance(value, Enum) else value
        if isinstance(number, float) and not math.isfinite(number):
            refuse("jsonrpc.number.finite", where=pointer(steps), got=number)


def explain(message: object, error: Exception) -> LocalProtocolError:
    """Return the error for a `message` that the encoder rejected."""
    if isinstance(error, LocalProtocolError):
        return error
    if isinstance(error, AttributeError) and not isinstance(message, (*_MESSAGES, Batch)):
        rule, where, got = "jsonrpc.message.kind", "", _a(message)
    elif isinstance(error, RecursionError):
        rule, where, got = "jsonrpc.value.cyclic", "", "a value nested without end"
    else:
        rule, where, got = _culprit(message)
    return LocalProtocolError(rule, where=where, got=got, expected=LOCAL_RULES[rule])


def _culprit(message: object) -> tuple[str, str, str]:
    """Return the rule that the first unwritable part breaks, its place, and what it is."""
    for steps, value in _values(message):
        if isinstance(value, dict):
            for name in value:
                rule = _problem({name: None})
                if rule is not None:
                    where = pointer([*steps, _step(name)])
                    return rule, where, f"{_a(name)} as a member name"
        elif not _holds_others(value):
            rule = _problem(value)
            if rule is not None:
                # An int is rejected only if it is too long for every reader.
                length = f" of {value.bit_length()} bits" if type(value) is int else ""
                return rule, pointer(steps), _a(value) + length
    return "jsonrpc.message.kind", "", _a(message)


def _problem(part: object) -> str | None:
    """Return the rule that a part breaks, or None if it can be encoded."""
    try:
        encode(part)
    except UnicodeEncodeError:
        return "jsonrpc.text.surrogate"
    except UNWRITABLE:
        return "jsonrpc.value.unserialisable"
    return None


def _values(message: object) -> Iterator[tuple[list[str | int], Any]]:
    """Yield every value in `message` with the path to it, a list that is reused.

    Not recursive: the encoder may have had more stack than is left here.
    """
    steps: list[str | int] = []
    yield steps, message
    opened = [_parts(message)]
    while opened:
        for step, value in opened[-1]:
            steps.append(step)
            yield steps, value
            if type(value) not in _LEAVES and len(opened) < _MAX_DEPTH:
                opened.append(_parts(value))
                break
            steps.pop()
        else:
            opened.pop()
            if steps:
                steps.pop()


def _holds_others(value: object) -> bool:
    """Return True if the encoder encodes `value` by its parts."""
    known = (dict, list, tuple, set, frozenset, Struct, Raw)
    return isinstance(value, known) or bool(_field_names(value))


def _parts(value: Any) -> Iterator[tuple[str | int, Any]]:
    """Yield the parts of a value as the encoder sees them."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield _step(name), item
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from enumerate(value)
    elif isinstance(value, Struct):
        for name, wire_name in zip(
            value.__struct_fields__, value.__struct_encode_fields__, strict=True
        ):
            item = getattr(value, name)
            if item is not UNSET:
                yield wire_name, item
    else:
        for name in _field_names(value):
            if hasattr(value, name):
                yield name, getattr(value, name)


def _field_names(value: object) -> list[str]:
    """Return the fields of an instance of a dataclass or an attrs class; of another, none."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    if isinstance(fields, dict):
        return list(fields)
    attributes = getattr(type(value), "__attrs_attrs__", None)
    return [one.name for one in attributes] if isinstance(attributes, tuple) else []


def _step(name: object) -> str:
    return name if isinstance(name, str) else f"<{type(name).__name__}>"


def _a(value: object) -> str:
    """Return the type of a value with its article; never its content."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"
