"""Fields of the request that is being served, for log records."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

__all__ = ["REQUEST_FIELDS"]

REQUEST_FIELDS: Final[ContextVar[Mapping[str, str]]] = ContextVar("trunkline_request_fields")
