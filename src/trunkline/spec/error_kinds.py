"""The names errors go by inside the library.

Code that refuses something says what happened, never a number: the number is
looked up in a profile, for the revision being spoken, at the moment of sending.
Here are the symbols that our own code raises and those that more than one
profile gives a number to. A symbol that a single profile uses alone, and that
we never raise, is a plain string in that profile's rows.
"""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Any

__all__ = ["ErrorKind"]


class ErrorKind(StrEnum):
    """What went wrong, before anyone gives it a number. Each value equals its name."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> str:
        # StrEnum would put the name in lower case; rows and members must be equal as text.
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

    # Opening a conversation, and what each side can do.
    NOT_INITIALIZED = auto()
    ALREADY_INITIALIZED = auto()
    UNSUPPORTED_PROTOCOL_VERSION = auto()
    PROTOCOL_VERSION_MISMATCH = auto()
    CAPABILITY_NOT_SUPPORTED = auto()
    MISSING_REQUIRED_CLIENT_CAPABILITY = auto()
    MISSING_REQUEST_META = auto()
    HEADER_MISMATCH = auto()

    # Things that are not there, or not as asked for.
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

    # Running things.
    TOOL_EXECUTION_FAILED = auto()
    SUBSCRIPTION_FAILED = auto()
    TASK_REQUIRED = auto()
    TASK_NOT_ALLOWED = auto()
    TASK_ALREADY_COMPLETED = auto()

    # Asking the user.
    USER_REJECTED = auto()
    URL_ELICITATION_REQUIRED = auto()
    INVALID_ELICITATION_MODE = auto()
    INVALID_REQUEST_STATE = auto()
    INVALID_INPUT_RESPONSES = auto()
    TOO_MANY_ROUNDS = auto()
    REQUEST_STATE_TOO_LARGE = auto()

    # Too much, too slow, not now.
    RATE_LIMITED = auto()
    OVERLOADED = auto()
    SERVICE_UNAVAILABLE = auto()
    TIMEOUT = auto()

    # Who is asking.
    UNAUTHORIZED = auto()
    AUTHENTICATION_FAILED = auto()
    AUTHORIZATION_FAILED = auto()
    INSUFFICIENT_PERMISSIONS = auto()
    TOKEN_EXPIRED = auto()
    INVALID_TOKEN = auto()
    SESSION_NOT_FOUND = auto()
    SESSION_EXPIRED = auto()
    ORIGIN_NOT_ALLOWED = auto()
