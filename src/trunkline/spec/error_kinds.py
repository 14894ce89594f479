"""Symbolic names of errors.

Code raises a symbol, never a number: the number is looked up in a profile, for the
revision of the connection, when the error is sent. Here are the symbols that this
library raises and those with a number in more than one profile. A symbol of a single
profile that this library never raises is a plain string in the rows of that profile.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Any

__all__ = ["ErrorKind"]


class ErrorKind(StrEnum):
    """The kind of an error, independent of its number. Each value equals its name."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> str:
        # StrEnum would use the name in lower case; rows and members must be equal as text.
        return name

    # JSON-RPC 2.0, section 5.1.
    PARSE_ERROR = auto()
    INVALID_REQUEST = auto()
    METHOD_NOT_FOUND = auto()
    INVALID_PARAMS = auto()
    INTERNAL_ERROR = auto()

    # The envelope: size, ids, batches.
    MESSAGE_TOO_LARGE = auto()
    BATCH_REQUEST_TOO_LARGE = auto()
    REQUEST_ID_INVALID = auto()
    REQUEST_ID_CONFLICT = auto()
    REQUEST_CANCELLED = auto()

    # Lifecycle and capabilities.
    NOT_INITIALIZED = auto()
    ALREADY_INITIALIZED = auto()
    UNSUPPORTED_PROTOCOL_VERSION = auto()
    PROTOCOL_VERSION_MISMATCH = auto()
    CAPABILITY_NOT_SUPPORTED = auto()
    MISSING_REQUIRED_CLIENT_CAPABILITY = auto()
    MISSING_REQUEST_META = auto()
    HEADER_MISMATCH = auto()

    # Missing or invalid things.
    RESOURCE_NOT_FOUND = auto()
    TOOL_NOT_FOUND = auto()
    PROMPT_NOT_FOUND = auto()
    TASK_NOT_FOUND = auto()
    VALIDATION_FAILED = auto()
    INVALID_URI = auto()
    INVALID_CURSOR = auto()
    INVALID_LOG_LEVEL = auto()
    INVALID_TOOL_ARGUMENTS = auto()
    INVALID_PROMPT_ARGUMENTS = auto()
    PROMPT_ARGUMENT_MISSING = auto()
    INVALID_COMPLETION_REFERENCE = auto()
    INVALID_COMPLETION_ARGUMENT = auto()

    # Execution.
    TOOL_EXECUTION_FAILED = auto()
    SUBSCRIPTION_FAILED = auto()
    TASK_REQUIRED = auto()
    TASK_NOT_ALLOWED = auto()
    TASK_ALREADY_COMPLETED = auto()

    # Elicitation and multi-round-trip requests.
    USER_REJECTED = auto()
    URL_ELICITATION_REQUIRED = auto()
    INVALID_ELICITATION_MODE = auto()
    INVALID_REQUEST_STATE = auto()
    INVALID_INPUT_RESPONSES = auto()
    TOO_MANY_ROUNDS = auto()
    REQUEST_STATE_TOO_LARGE = auto()

    # Load.
    RATE_LIMITED = auto()
    OVERLOADED = auto()
    SERVICE_UNAVAILABLE = auto()
    TIMEOUT = auto()

    # Authentication, authorization and sessions.
    UNAUTHORIZED = auto()
    AUTHENTICATION_FAILED = auto()
    AUTHORIZATION_FAILED = auto()
    INSUFFICIENT_PERMISSIONS = auto()
    TOKEN_EXPIRED = auto()
    INVALID_TOKEN = auto()
    SESSION_NOT_FOUND = auto()
    SESSION_EXPIRED = auto()
    ORIGIN_NOT_ALLOWED = auto()
