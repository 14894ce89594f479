"""One function per error that has a helper: `error_tool_not_found(1, "echo")`.

Each takes the id of the request and then the members of `data`, in the order of the
profile's row, and returns the encoded error response.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import UNSET

from ...jsonrpc import Failure, named_error
from ...spec.profiles import profile
from ._policy import POLICY, codec_for
from .codec import json_rpc_id

__all__ = [
    "ErrorHelper",
    "error_access_denied",
    "error_authentication_failed",
    "error_authorization_failed",
    "error_capability_negotiation_failed",
    "error_capability_not_supported",
    "error_completion_failed",
    "error_completion_not_found",
    "error_content_too_large",
    "error_cursor_expired",
    "error_elicitation_cancelled",
    "error_elicitation_failed",
    "error_elicitation_security_error",
    "error_elicitation_timeout",
    "error_experimental_task_cancelled",
    "error_experimental_task_not_found",
    "error_experimental_task_timeout",
    "error_internal",
    "error_invalid_completion_argument",
    "error_invalid_completion_reference",
    "error_invalid_content_type",
    "error_invalid_credentials",
    "error_invalid_cursor",
    "error_invalid_elicitation_mode",
    "error_invalid_encoding",
    "error_invalid_params",
    "error_invalid_progress_token",
    "error_invalid_prompt_arguments",
    "error_invalid_task_state",
    "error_invalid_tool_arguments",
    "error_invalid_uri",
    "error_method_not_found",
    "error_method_not_supported",
    "error_not_initialized",
    "error_notification_failed",
    "error_notification_queue_full",
    "error_page_size_too_large",
    "error_pagination_not_supported",
    "error_parse",
    "error_progress_token_expired",
    "error_progress_update_failed",
    "error_prompt_argument_missing",
    "error_prompt_not_found",
    "error_prompt_render_failed",
    "error_protocol_version_mismatch",
    "error_resource_access_denied",
    "error_resource_not_found",
    "error_resource_template_not_found",
    "error_sampling_failed",
    "error_task_already_exists",
    "error_task_cancelled",
    "error_task_dependency_failed",
    "error_task_failed",
    "error_task_not_found",
    "error_task_timeout",
    "error_template_render_failed",
    "error_token_expired",
    "error_tool_cancelled",
    "error_tool_description_too_large",
    "error_tool_execution_failed",
    "error_tool_not_found",
    "error_tool_timeout",
    "error_unsupported_protocol_version",
    "error_uri_syntax_error",
    "error_validation_failed",
]

_codes: Final = profile(POLICY.codes)


class ErrorHelper(Protocol):
    """A function that writes one kind of error response."""

    def __call__(self, id: json_rpc_id, /, *facts: Any) -> bytes:
        """Return the encoded error response to the request `id`, with `facts` as its data."""


def _helper(symbol: str, name: str = "") -> ErrorHelper:
    """Return the helper of one symbol; its name is made from the symbol unless given."""
    row = _codes.of_kind(symbol, POLICY.revision)
    name = name or f"error_{symbol.lower()}"
    wanted = ", ".join(("id", *row.data))

    def helper(id: json_rpc_id, /, *facts: Any) -> bytes:
        if len(facts) != len(row.data):
            raise TypeError(f"{name}() takes {wanted}; {1 + len(facts)} values were given")
        data = dict(zip(row.data, facts, strict=True)) if facts else UNSET
        return codec_for().encode(Failure(id, named_error(symbol, policy=POLICY, data=data)))

    helper.__name__ = helper.__qualname__ = name
    helper.__doc__ = (
        f"Return the encoded error response {row.number}, {row.message!r}. Takes {wanted}."
    )
    return helper


# One row per line, in the order of the profile.
# fmt: off
error_resource_not_found = _helper("RESOURCE_NOT_FOUND")
error_tool_not_found = _helper("TOOL_NOT_FOUND")
error_prompt_not_found = _helper("PROMPT_NOT_FOUND")
error_capability_not_supported = _helper("CAPABILITY_NOT_SUPPORTED")
error_not_initialized = _helper("NOT_INITIALIZED")
error_validation_failed = _helper("VALIDATION_FAILED")
error_tool_description_too_large = _helper(
    "TOOL_DESCRIPTION_TOO_LONG", "error_tool_description_too_large"
)
error_invalid_content_type = _helper("INVALID_CONTENT_TYPE")
error_content_too_large = _helper("CONTENT_TOO_LARGE")
error_invalid_encoding = _helper("INVALID_ENCODING")
error_resource_template_not_found = _helper("RESOURCE_TEMPLATE_NOT_FOUND")
error_invalid_uri = _helper("INVALID_URI")
error_uri_syntax_error = _helper("URI_SYNTAX_ERROR")
error_resource_access_denied = _helper("RESOURCE_ACCESS_DENIED")
error_template_render_failed = _helper("TEMPLATE_RENDER_FAILED")
error_tool_execution_failed = _helper("TOOL_EXECUTION_FAILED")
error_tool_timeout = _helper("TOOL_TIMEOUT")
error_tool_cancelled = _helper("TOOL_CANCELLED")
error_invalid_tool_arguments = _helper("INVALID_TOOL_ARGUMENTS")
error_prompt_argument_missing = _helper("PROMPT_ARGUMENT_MISSING")
error_prompt_render_failed = _helper("PROMPT_RENDER_FAILED")
error_invalid_prompt_arguments = _helper("INVALID_PROMPT_ARGUMENTS")
error_sampling_failed = _helper("SAMPLING_FAILED")
error_authentication_failed = _helper("AUTHENTICATION_FAILED")
error_authorization_failed = _helper("AUTHORIZATION_FAILED")
error_invalid_credentials = _helper("INVALID_CREDENTIALS")
error_token_expired = _helper("TOKEN_EXPIRED")
error_access_denied = _helper("ACCESS_DENIED")
error_unsupported_protocol_version = _helper("UNSUPPORTED_PROTOCOL_VERSION")
error_protocol_version_mismatch = _helper("PROTOCOL_VERSION_MISMATCH")
error_capability_negotiation_failed = _helper("CAPABILITY_NEGOTIATION_FAILED")
error_method_not_supported = _helper("METHOD_NOT_SUPPORTED")
error_invalid_cursor = _helper("INVALID_CURSOR")
error_cursor_expired = _helper("CURSOR_EXPIRED")
error_pagination_not_supported = _helper("PAGINATION_NOT_SUPPORTED")
error_page_size_too_large = _helper("PAGE_SIZE_TOO_LARGE")
error_task_not_found = _helper("TASK_NOT_FOUND")
error_task_already_exists = _helper("TASK_ALREADY_EXISTS")
error_task_failed = _helper("TASK_FAILED")
error_task_cancelled = _helper("TASK_CANCELLED")
error_task_timeout = _helper("TASK_TIMEOUT")
error_invalid_progress_token = _helper("INVALID_PROGRESS_TOKEN")
error_progress_token_expired = _helper("PROGRESS_TOKEN_EXPIRED")
error_progress_update_failed = _helper("PROGRESS_UPDATE_FAILED")
error_notification_failed = _helper("NOTIFICATION_FAILED")
error_notification_queue_full = _helper("NOTIFICATION_QUEUE_FULL")
error_completion_not_found = _helper("COMPLETION_NOT_FOUND")
error_invalid_completion_reference = _helper("INVALID_COMPLETION_REFERENCE")
error_invalid_completion_argument = _helper("INVALID_COMPLETION_ARGUMENT")
error_completion_failed = _helper("COMPLETION_FAILED")
error_method_not_found = _helper("METHOD_NOT_FOUND")
error_invalid_params = _helper("INVALID_PARAMS")
error_internal = _helper("INTERNAL_ERROR", "error_internal")
error_parse = _helper("PARSE_ERROR", "error_parse")
error_elicitation_failed = _helper("ELICITATION_FAILED")
error_elicitation_timeout = _helper("ELICITATION_TIMEOUT")
error_elicitation_cancelled = _helper("ELICITATION_CANCELLED")
error_invalid_elicitation_mode = _helper("INVALID_ELICITATION_MODE")
error_elicitation_security_error = _helper("ELICITATION_SECURITY_ERROR")
error_experimental_task_not_found = _helper("EXPERIMENTAL_TASK_NOT_FOUND")
error_task_dependency_failed = _helper(
    "EXPERIMENTAL_TASK_DEPENDENCY_FAILED", "error_task_dependency_failed"
)
error_experimental_task_cancelled = _helper("EXPERIMENTAL_TASK_CANCELLED")
error_experimental_task_timeout = _helper("EXPERIMENTAL_TASK_TIMEOUT")
error_invalid_task_state = _helper("INVALID_TASK_STATE")
# fmt: on
