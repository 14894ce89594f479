"""Middleware: functions around requests, and those of mounted servers around their handlers.

A server without middleware calls its handlers directly; `methods/middleware_chain.py` has the
chain of one with middleware.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ...engine.middleware import Proceed
from ..context import Context

__all__ = ["Middleware"]

Middleware: TypeAlias = Callable[[Context, Proceed], Awaitable[Any]]
