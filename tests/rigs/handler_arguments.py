"""Arguments of a handler with one parameter `x`: what it is called with, and why it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from trunkline.server.handlers.arguments import Arguments, explain


def taking(annotation: Any, *default: Any) -> Callable[..., Any]:
    """Return a handler that returns its parameter."""

    def handler(x):  # type: ignore[no-untyped-def]  # annotated below
        return x

    handler.__annotations__["x"] = annotation
    handler.__defaults__ = default or None
    return handler


def passed(arguments: Arguments, raw: bytes) -> Any:
    """Return what the handler returns for an object of arguments."""
    return arguments.call(arguments.decode(raw), None)


def refusal(arguments: Arguments, raw: bytes) -> str:
    """Return the sentence that refuses an object of arguments."""
    with pytest.raises(msgspec.ValidationError) as refused:
        arguments.decode(raw)
    return explain(refused.value, raw, arguments)


def passed_as_x(arguments: Arguments, raw: bytes) -> Any:
    """Return what the handler returns for a value of `x`."""
    return passed(arguments, b'{"x":' + raw + b"}")


def refusal_as_x(arguments: Arguments, raw: bytes) -> str:
    """Return the sentence that refuses a value of `x`."""
    return refusal(arguments, b'{"x":' + raw + b"}")
