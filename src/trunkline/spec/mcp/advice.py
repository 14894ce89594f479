"""Advice on changes of errors, types and fields, and which of them are renamings.

Other rows have the columns `adopt`, `instead` and `renamed_to`. A library handles most changes
of types: there is advice only where an author has to act.
"""

from __future__ import annotations

from typing import Final

from ..revisions import V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28
from ..rows import Advice
from .tasks_extension import EXTENSION

__all__ = ["ADVICE"]

NO_SESSION: Final = "Drop it: there are no sessions."
EXTENDED: Final = f"Drop it: with the extension {EXTENSION} the server decides what becomes a task."

# One row per line.
# fmt: off
ADVICE: Final[tuple[Advice, ...]] = (
    Advice("error", "changed", "METHOD_NOT_FOUND", V2026_07_28, "Over HTTP answer with status 404."),
    Advice("error", "changed", "CAPABILITY_NOT_SUPPORTED", V2026_07_28, "Over HTTP answer with status 404."),
    Advice("error", "changed", "RESOURCE_NOT_FOUND", V2026_07_28, "Answer with -32602; still read -32002 from older servers."),
    Advice("error", "changed", "HEADER_MISMATCH", V2026_07_28, "Compare the headers with the body, and answer a difference with -32020."),
    Advice("error", "changed", "MISSING_REQUIRED_CLIENT_CAPABILITY", V2026_07_28, "Answer with -32021, and name what is missing in data.requiredCapabilities."),
    Advice("error", "changed", "UNSUPPORTED_PROTOCOL_VERSION", V2026_07_28, "Answer with -32022, and list the supported versions in data.supported; a client picks from it."),
    Advice("error", "changed", "PROTOCOL_VERSION_MISMATCH", V2026_07_28, "Answer with -32022, and list the supported versions in data.supported; a client picks from it."),
    Advice("error", "added", "MISSING_REQUEST_META", V2026_07_28, "Refuse a request whose _meta lacks the protocol version or the client's capabilities."),
    Advice("error", "added", "INVALID_REQUEST_STATE", V2026_07_28, "Refuse a requestState that you did not make, or made for somebody or something else."),
    Advice("error", "added", "INVALID_INPUT_RESPONSES", V2026_07_28, "Refuse input responses that do not match the input requests."),
    Advice("error", "added", "URL_ELICITATION_REQUIRED", V2025_11_25, "Refuse a request with it until the user has visited the URL."),
    Advice("error", "changed", "URL_ELICITATION_REQUIRED", V2026_07_28, "Answer with an input_required result that requests the URL; the code must not be sent."),
    Advice("error", "removed", "INVALID_ELICITATION_MODE", V2026_07_28, "Do not retry a request whose input requests you cannot handle: there is no error to send."),
    Advice("error", "removed", "USER_REJECTED", V2026_07_28, "Do not retry a request whose input requests the user declines: there is no error to send."),
    Advice("error", "removed", "NOT_INITIALIZED", V2026_07_28, NO_SESSION),
    Advice("error", "removed", "ALREADY_INITIALIZED", V2026_07_28, NO_SESSION),
    Advice("error", "removed", "SESSION_NOT_FOUND", V2026_07_28, NO_SESSION),
    Advice("error", "removed", "SESSION_EXPIRED", V2026_07_28, NO_SESSION),
    Advice("error", "removed", "TASK_REQUIRED", V2026_07_28, EXTENDED),
    Advice("error", "removed", "TASK_NOT_ALLOWED", V2026_07_28, EXTENDED),
    Advice("error", "removed", "TASK_ALREADY_COMPLETED", V2026_07_28, "Acknowledge tasks/cancel even if the task has ended."),

    Advice("type", "added", "JSONRPCBatchRequest", V2025_03_26, "Accept an array of messages; sending one is optional."),
    Advice("type", "removed", "JSONRPCBatchRequest", V2025_06_18, "Send each message by itself."),
    Advice("type", "removed", "JSONRPCBatchResponse", V2025_06_18, "Send each message by itself."),
    Advice("type", "renamed", "ResourceReference", V2025_06_18, renamed_to="ResourceTemplateReference"),
    Advice("type", "renamed", "ElicitRequestParams.requestedSchema", V2025_11_25, renamed_to="ElicitRequestFormParams.requestedSchema"),
    Advice("type", "renamed", "JSONRPCError", V2025_11_25, renamed_to="JSONRPCErrorResponse"),
    Advice("type", "renamed", "JSONRPCError.error", V2025_11_25, renamed_to="Error"),
    Advice("type", "changed", "Tool.inputSchema", V2026_07_28, "Allow every keyword of JSON Schema 2020-12; do not follow a $ref into the network."),
    Advice("type", "changed", "Tool.outputSchema", V2026_07_28, "Allow every keyword of JSON Schema 2020-12, and roots other than objects."),

    Advice("field", "changed", "*RequestParams._meta", V2026_07_28, "Send it on every request, with the protocol version and the client's capabilities."),
    Advice("field", "changed", "*Result._meta", V2026_07_28, "A server should put its name and version into it, on every result."),
    Advice("field", "added", "*.resultType", V2026_07_28, "Set it on every result; treat a missing one as complete, and reject an unknown one."),
    Advice("field", "added", "*.ttlMs", V2026_07_28, "Set how many milliseconds the result may be cached; 0 disables caching."),
    Advice("field", "added", "*.cacheScope", V2026_07_28, "Set it to private, unless the result is the same for every client."),
    Advice("field", "added", "*.inputResponses", V2026_07_28, "Send the answers to an input_required result in it."),
    Advice("field", "added", "*.requestState", V2026_07_28, "Return the value of the input_required result unchanged; a server must not trust it."),
    Advice("field", "removed", "*.task", V2026_07_28, EXTENDED),
    Advice("field", "removed", "Tool.execution", V2026_07_28, EXTENDED),
    Advice("field", "added", "CallToolResult.structuredContent", V2025_06_18, "Fill it where the tool has an outputSchema, and put the same as text into content."),
    Advice("field", "changed", "CallToolResult.structuredContent", V2026_07_28, "Accept any JSON value; null differs from a missing member."),
    Advice("field", "removed", "ElicitRequestURLParams.elicitationId", V2026_07_28, "Keep an id of your own in requestState."),
    Advice("field", "changed", "CancelledNotificationParams.requestId", V2026_07_28, "Always send it."),
    Advice("field", "removed", "CreateTaskResult.task", V2026_07_28, "Read the fields of the task from the result itself."),
    Advice("field", "added", "CreateTaskResult.ttlMs", V2026_07_28, "Set how many milliseconds the task is kept; null means without limit."),
    Advice("field", "renamed", "Task.ttl", V2026_07_28, renamed_to="Task.ttlMs"),
    Advice("field", "renamed", "Task.pollInterval", V2026_07_28, renamed_to="Task.pollIntervalMs"),
)
# fmt: on
