"""Say what a caller did wrong when a message cannot be written, and where.

The encoder stops at the first thing it cannot write and does not say where it
was; and it writes NaN as null, which the peer would take for a value. This
module looks again and names the place, before anything is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import UNSET, Raw, Struct
from msgspec.json import encode

from ..errors import NOTHING, LocalProtocolError
from ..spec.jsonrpc import LOCAL_RULES
from ..spec.kinds import ErrorKind
from ..spec.profiles import profile
from .messages import (
    Batch,
    ErrorObject,
    Failure,
    Notification,
    Request,
    SentRequest,
    Success,
)

if TYPE_CHECKING:
    from .policy import Policy

__all__ = ["UNWRITABLE", "check_finite", "check_large", "checked", "explain", "refuse"]

# All that writing a value can raise.
UNWRITABLE: Final = (TypeError, ValueError, OverflowError, RecursionError, AttributeError)

_REPLIES: Final = (Success, Failure)
_MESSAGES: Final = (Request, SentRequest, Notification, Success, Failure)
_WITHOUT_NAN: Final = frozenset({str, int, bool, bytes, type(None), type(UNSET)})
# How many parts of a large message are looked at before its bytes are searched instead.
_GLANCE: Final = 64
# Deeper than any reader follows; a value that goes on beyond it contains itself.
_DEEP: Final = 500


def refuse(rule: str, *, where: str = "", got: Any = NOTHING) -> NoReturn:
    """Raise what a caller is told who is about to break `rule`."""
    raise LocalProtocolError(rule, where=where, got=got, expected=LOCAL_RULES[rule])


def checked(message: Any, policy: Policy) -> Any:
    """Return what to write for `message` under `policy`; raise if it may not be written."""
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
    """Say at a glance whether a batch is all requests, or all results, with good ids."""
    kind = type(batch[0])
    for message in batch:
        id_kind = type(message.id)
        if type(message) is not kind or (id_kind is not int and id_kind is not str):
            return False
    return kind is Request or kind is Success


def _checked_one(message: Any, policy: Policy, where: str) -> Any:
    if not isinstance(message, _MESSAGES):
        refuse("jsonrpc.message.kind", where=where, got=f"a {type(message).__name__}")
    if not isinstance(message, Notification):
        _check_id(message, policy, where)
    if isinstance(message, Failure):
        return _with_known_code(message, policy, where)
    if policy.strictness == "strict" and not isinstance(message, Success):
        _check_call(message, where)
    return message


def _check_id(
    message: Request | SentRequest | Success | Failure, policy: Policy, where: str
) -> None:
    if type(message.id) is int or type(message.id) is str:
        return
    may_be_none = isinstance(message, Failure) or policy.null_id == "as-request"
    if may_be_none and (message.id is None or message.id is UNSET):
        return
    refuse("jsonrpc.id.type", where=f"{where}/id", got=message.id)


def _check_call(call: Request | SentRequest | Notification, where: str) -> None:
    if not isinstance(call.method, str) or not call.method:
        refuse("jsonrpc.method.type", where=f"{where}/method", got=call.method)
    if not isinstance(call.params, (Mapping, list, tuple, Struct, Raw, type(None))):
        refuse("jsonrpc.params.type", where=f"{where}/params", got=call.params)


def _with_known_code(failure: Failure, policy: Policy, where: str) -> Failure:
    error = failure.error
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
    """Say that a message of few parts, such as one with a long text, holds no NaN.

    False says nothing: there are too many parts to look at, or one of another kind.
    """
    parts, left = [message], _GLANCE
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind is dict:
            parts += part.values()  # type: ignore[attr-defined]  # a dict
        elif kind is list or kind is tuple or kind is Batch:
            parts += part  # type: ignore[arg-type]  # a sequence
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
    for where, value in _leaves(message, "", 0):
        if type(value) is float and not math.isfinite(value):
            refuse("jsonrpc.number.finite", where=where, got=value)


def explain(message: object, error: Exception) -> LocalProtocolError:
    """Return why the encoder refused `message`: what stands where, and what to do about it."""
    if isinstance(error, LocalProtocolError):
        return error
    try:
        rule, where, got = _culprit(message)
    except RecursionError:
        rule, where, got = "jsonrpc.value.cyclic", "", "a value nested without end"
    return LocalProtocolError(rule, where=where, got=got, expected=LOCAL_RULES[rule])


def _culprit(message: object) -> tuple[str, str, str]:
    for where, value in _leaves(message, "", 0):
        try:
            encode(value)
        except UnicodeEncodeError:
            return "jsonrpc.text.surrogate", where, "text with a lone surrogate"
        except UNWRITABLE:
            return "jsonrpc.value.unserialisable", where, f"a {_culprit_type(value)}"
    return "jsonrpc.message.kind", "", f"a {type(message).__name__}"


def _culprit_type(value: object) -> str:
    # A member name is looked at as an object with that one name.
    key = next(iter(value)) if isinstance(value, dict) and value else None
    return f"member name of type {type(key).__name__}" if key is not None else type(value).__name__


def _leaves(value: object, where: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield every value that is no container, and every member name, with its place."""
    if depth > _DEEP:
        raise RecursionError
    if isinstance(value, Mapping):
        for name, item in value.items():
            place = f"{where}/{_step(name)}"
            yield place, {name: None}
            yield from _leaves(item, place, depth + 1)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{where}/{index}", depth + 1)
    elif isinstance(value, Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        for name, wire_name in names:
            item = getattr(value, name)
            if item is not UNSET:
                yield from _leaves(item, f"{where}/{wire_name}", depth + 1)
    elif not isinstance(value, Raw):
        yield where, value


def _step(name: object) -> str:
    text = name if isinstance(name, str) else f"<{type(name).__name__}>"
    return text.replace("~", "~0").replace("/", "~1")
