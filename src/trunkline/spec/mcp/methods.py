"""The methods and notifications of every MCP revision.

In the order of the specification: opening, what servers offer, what clients offer, tasks,
then the notifications. The rows of a changing method stand below each other, oldest first.

Up to 2025-11-25 both sides send requests. In 2026-07-28 only the client does: what a server
would ask for travels inside its result (`form`), and every request has params, because
`_meta` is in them.

Names of types are those of `types.py` and `tasks_extension.py`.

Below the rows are further facts about methods by name: those of extensions without types, those
that may be sent twice, other spellings, and where messages hold identifiers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..revisions import (
    HANDSHAKE,
    PER_REQUEST,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from ..rows import EntryKind, Method
from .tasks_extension import EXTENSION

__all__ = [
    "ALIASES",
    "EXTENSION_METHODS",
    "IDENTIFIERS",
    "LISTED",
    "METHODS",
    "NAMED",
    "NOTIFICATION",
    "REPEATABLE_NOTIFICATIONS",
    "REPEATABLE_REQUESTS",
    "Alias",
]

# Only in 2025-11-25, mainly tasks.
ONE_REVISION: Final = Window(V2025_11_25, V2026_07_28)

TASKS_DECLARED: Final = f"extensions.{EXTENSION}"

# Advice that several methods share.
META: Final = "Send the protocol version and the client's capabilities in _meta, on every request."
CACHED: Final = (
    f"{META} A server adds ttlMs and cacheScope to the result; a client may cache it that long."
)
ROUNDS: Final = f"{META} Handle a result of type input_required: answer its input requests, then retry the request with inputResponses and requestState."
AS_TASK: Final = (
    "The receiver may answer with a task if the request asks for one and the receiver declared it."
)
INSIDE: Final = (
    "Put it into the inputRequests of an input_required result; the answer comes with the retry."
)
LISTENING: Final = "It is sent only to clients that subscribe with subscriptions/listen, with the id of that request in _meta."
EXTENDED: Final = f"Declare the extension {EXTENSION}."

# One row per line, so that the table can be read beside the specification.
# fmt: off
METHODS: Final[tuple[Method, ...]] = (
    # Opening a conversation, and asking whether it is still there.
    Method("initialize", "request", "client", "InitializeRequestParams", "InitializeResult", HANDSHAKE, params_required=True, required=True, doc="Opens a session: the client offers a protocol version and its capabilities, the server answers with its own.", anchor="2025-11-25 · basic/lifecycle#initialization", instead="Put the protocol version and the client's capabilities into the _meta of every request; ask server/discover what the server can do."),
    Method("server/discover", "request", "client", "RequestParams", "DiscoverResult", PER_REQUEST, params_required=True, required=True, doc="Returns the protocol versions and capabilities of a server.", anchor="2026-07-28 · server/discover", adopt="A server must answer it; a client may send it first, and on stdio learns from it which era a server belongs to."),
    Method("ping", "request", "both", "RequestParams", "EmptyResult", HANDSHAKE, required=True, doc="Asks whether the other side still answers.", anchor="2025-11-25 · basic/utilities/ping#message-format", instead="Send nothing: requests are independent, so there is no session to check."),

    # What servers offer.
    Method("resources/list", "request", "client", "PaginatedRequestParams", "ListResourcesResult", HANDSHAKE, capability="resources", lists="resource", doc="Lists the resources of a server, page by page.", anchor="2025-11-25 · server/resources#listing-resources"),
    Method("resources/list", "request", "client", "PaginatedRequestParams", "ListResourcesResult", PER_REQUEST, params_required=True, capability="resources", lists="resource", doc="Lists the resources of a server, page by page.", anchor="2026-07-28 · server/resources#listing-resources", adopt=CACHED),
    Method("resources/templates/list", "request", "client", "PaginatedRequestParams", "ListResourceTemplatesResult", HANDSHAKE, capability="resources", lists="template", doc="Lists the resource templates of a server, page by page.", anchor="2025-11-25 · server/resources#resource-templates"),
    Method("resources/templates/list", "request", "client", "PaginatedRequestParams", "ListResourceTemplatesResult", PER_REQUEST, params_required=True, capability="resources", lists="template", doc="Lists the resource templates of a server, page by page.", anchor="2026-07-28 · server/resources#resource-templates", adopt=CACHED),
    Method("resources/read", "request", "client", "ReadResourceRequestParams", "ReadResourceResult", HANDSHAKE, params_required=True, capability="resources", entry="resource", doc="Reads the contents of a resource.", anchor="2025-11-25 · server/resources#reading-resources"),
    Method("resources/read", "request", "client", "ReadResourceRequestParams", "InputRequiredResult | ReadResourceResult", PER_REQUEST, params_required=True, capability="resources", entry="resource", doc="Reads the contents of a resource; the server may request input first.", anchor="2026-07-28 · server/resources#reading-resources", adopt=f"{ROUNDS} A server adds ttlMs and cacheScope, and answers a missing resource with -32602."),
    Method("resources/subscribe", "request", "client", "SubscribeRequestParams", "EmptyResult", HANDSHAKE, params_required=True, capability="resources.subscribe", entry="resource", doc="Subscribes to changes of one resource.", anchor="2025-11-25 · server/resources#subscriptions", instead="Open a stream with subscriptions/listen and name the URI under resourceSubscriptions."),
    Method("resources/unsubscribe", "request", "client", "UnsubscribeRequestParams", "EmptyResult", HANDSHAKE, params_required=True, capability="resources.subscribe", entry="resource", doc="Ends a subscription to one resource.", anchor="2025-11-25 · server/resources#subscriptions", instead="End the subscriptions/listen stream that named the URI, and open one without it."),
    Method("subscriptions/listen", "request", "client", "SubscriptionsListenRequestParams", "SubscriptionsListenResult", PER_REQUEST, params_required=True, lasting=True, doc="Opens a stream of the change notifications that its filter names, until one side closes it.", anchor="2026-07-28 · basic/patterns/subscriptions#opening-a-stream", adopt="Use it for every change notification; it replaces the GET stream and resource subscriptions."),
    Method("prompts/list", "request", "client", "PaginatedRequestParams", "ListPromptsResult", HANDSHAKE, capability="prompts", lists="prompt", doc="Lists the prompts of a server, page by page.", anchor="2025-11-25 · server/prompts#listing-prompts"),
    Method("prompts/list", "request", "client", "PaginatedRequestParams", "ListPromptsResult", PER_REQUEST, params_required=True, capability="prompts", lists="prompt", doc="Lists the prompts of a server, page by page.", anchor="2026-07-28 · server/prompts#listing-prompts", adopt=CACHED),
    Method("prompts/get", "request", "client", "GetPromptRequestParams", "GetPromptResult", HANDSHAKE, params_required=True, capability="prompts", entry="prompt", doc="Fills in a prompt and returns its messages.", anchor="2025-11-25 · server/prompts#getting-a-prompt"),
    Method("prompts/get", "request", "client", "GetPromptRequestParams", "InputRequiredResult | GetPromptResult", PER_REQUEST, params_required=True, capability="prompts", entry="prompt", doc="Fills in a prompt and returns its messages; the server may request input first.", anchor="2026-07-28 · server/prompts#getting-a-prompt", adopt=ROUNDS),
    Method("tools/list", "request", "client", "PaginatedRequestParams", "ListToolsResult", HANDSHAKE, capability="tools", lists="tool", doc="Lists the tools of a server, page by page.", anchor="2025-11-25 · server/tools#listing-tools"),
    Method("tools/list", "request", "client", "PaginatedRequestParams", "ListToolsResult", PER_REQUEST, params_required=True, capability="tools", lists="tool", doc="Lists the tools of a server, page by page.", anchor="2026-07-28 · server/tools#listing-tools", adopt=f"{CACHED} The list must not depend on the connection."),
    Method("tools/call", "request", "client", "CallToolRequestParams", "CallToolResult", Window(until=V2025_11_25), params_required=True, capability="tools", entry="tool", doc="Runs a tool.", anchor="2025-06-18 · server/tools#calling-tools"),
    Method("tools/call", "request", "client", "CallToolRequestParams", "CallToolResult | CreateTaskResult", ONE_REVISION, params_required=True, capability="tools", entry="tool", doc="Runs a tool, or starts a task that runs it.", anchor="2025-11-25 · server/tools#calling-tools", adopt=f"{AS_TASK} Arguments that do not fit are a result with isError, not an error."),
    Method("tools/call", "request", "client", "CallToolRequestParams", "InputRequiredResult | CallToolResult", PER_REQUEST, params_required=True, capability="tools", entry="tool", doc="Runs a tool; the server may request input first or, with the tasks extension, answer with a task.", anchor="2026-07-28 · server/tools#calling-tools", adopt=f"{ROUNDS} Arguments that do not fit are a result with isError. A client cannot request a task: with the tasks extension the server decides."),
    Method("logging/setLevel", "request", "client", "SetLevelRequestParams", "EmptyResult", HANDSHAKE, params_required=True, capability="logging", doc="Sets the minimum level of the log messages that a server sends.", anchor="2025-11-25 · server/utilities/logging#setting-log-level", instead="Put io.modelcontextprotocol/logLevel into the _meta of each request that should be logged."),
    Method("completion/complete", "request", "client", "CompleteRequestParams", "CompleteResult", Window(until=V2025_03_26), params_required=True, entry="reference", doc="Suggests values for an argument of a prompt or a URI template.", anchor="2024-11-05 · server/utilities/completion#requesting-completions"),
    Method("completion/complete", "request", "client", "CompleteRequestParams", "CompleteResult", Window(V2025_03_26, V2026_07_28), params_required=True, capability="completions", entry="reference", doc="Suggests values for an argument of a prompt or a URI template.", anchor="2025-11-25 · server/utilities/completion#requesting-completions", adopt="A server that answers it declares completions."),
    Method("completion/complete", "request", "client", "CompleteRequestParams", "CompleteResult", PER_REQUEST, params_required=True, capability="completions", entry="reference", doc="Suggests values for an argument of a prompt or a URI template.", anchor="2026-07-28 · server/utilities/completion#requesting-completions", adopt=META),

    # What clients offer.
    Method("sampling/createMessage", "request", "server", "CreateMessageRequestParams", "CreateMessageResult", Window(until=V2025_11_25), params_required=True, capability="sampling", doc="Asks the client to have its model write a message.", anchor="2025-06-18 · client/sampling#creating-messages"),
    Method("sampling/createMessage", "request", "server", "CreateMessageRequestParams", "CreateMessageResult | CreateTaskResult", ONE_REVISION, params_required=True, capability="sampling", doc="Asks the client to have its model write a message, optionally with tools.", anchor="2025-11-25 · client/sampling#creating-messages", adopt=f"{AS_TASK} Ask for tools only where the client declared sampling.tools."),
    Method("sampling/createMessage", "request", "server", "CreateMessageRequestParams", "CreateMessageResult", PER_REQUEST, params_required=True, capability="sampling", form="inside-result", status="deprecated", doc="Asks, inside a result, that the client have its model write a message.", anchor="2026-07-28 · client/sampling#creating-messages", adopt=f"{INSIDE} Better, call a model yourself: sampling is deprecated."),
    Method("roots/list", "request", "server", "RequestParams", "ListRootsResult", HANDSHAKE, capability="roots", doc="Asks the client which directories the work is about.", anchor="2025-11-25 · client/roots#listing-roots"),
    Method("roots/list", "request", "server", "ListRootsRequestParams", "ListRootsResult", PER_REQUEST, capability="roots", form="inside-result", status="deprecated", doc="Asks, inside a result, which directories the work is about.", anchor="2026-07-28 · client/roots#listing-roots", adopt=f"{INSIDE} Better, take directories as tool arguments, resource URIs or settings: roots are deprecated."),
    Method("elicitation/create", "request", "server", "ElicitRequestParams", "ElicitResult", Window(V2025_06_18, V2025_11_25), params_required=True, capability="elicitation", doc="Asks the user to fill in a form.", anchor="2025-06-18 · client/elicitation#creating-elicitation-requests", adopt="A server may ask the user through a client that declared elicitation."),
    Method("elicitation/create", "request", "server", "ElicitRequestParams", "ElicitResult | CreateTaskResult", ONE_REVISION, params_required=True, capability="elicitation", doc="Asks the user to fill in a form or to visit a page.", anchor="2025-11-25 · client/elicitation#elicitation-requests", adopt=f"{AS_TASK} Ask for secrets by URL, and only where the client declared elicitation.url."),
    Method("elicitation/create", "request", "server", "ElicitRequestParams", "ElicitResult", PER_REQUEST, params_required=True, capability="elicitation", form="inside-result", doc="Asks, inside a result, that the user fill in a form or visit a page.", anchor="2026-07-28 · client/elicitation#elicitation-requests", adopt=f"{INSIDE} A page has no elicitationId: keep your own in requestState."),

    # Tasks: for one revision in the core, where either side may run them; then an extension.
    Method("tasks/get", "request", "both", "GetTaskRequestParams", "GetTaskResult", ONE_REVISION, params_required=True, capability="tasks", status="experimental", entry="task", doc="Returns the status of a task.", anchor="2025-11-25 · basic/utilities/tasks#getting-tasks"),
    Method("tasks/get", "request", "client", "GetTaskRequestParams", "GetTaskResult", PER_REQUEST, params_required=True, capability=TASKS_DECLARED, holder="both", extension=EXTENSION, entry="task", doc="Returns the status of a task, with its result, its error or its input requests.", anchor="2026-07-28 · extensions/tasks/overview", adopt=f"{EXTENDED} The answer carries the result, the error or the open input requests."),
    Method("tasks/result", "request", "both", "GetTaskPayloadRequestParams", "GetTaskPayloadResult", ONE_REVISION, params_required=True, lasting=True, capability="tasks", status="experimental", entry="task", doc="Waits for a task to end and returns its result.", anchor="2025-11-25 · basic/utilities/tasks#retrieving-task-results", instead="Poll tasks/get: it carries the result, the error or the open input requests."),
    Method("tasks/update", "request", "client", "UpdateTaskRequestParams", "UpdateTaskResult", PER_REQUEST, params_required=True, capability=TASKS_DECLARED, holder="both", extension=EXTENSION, entry="task", doc="Sends a task the input that it is waiting for.", anchor="2026-07-28 · extensions/tasks/overview", adopt=f"{EXTENDED} Send the answers to a task's inputRequests with it."),
    Method("tasks/cancel", "request", "both", "CancelTaskRequestParams", "CancelTaskResult", ONE_REVISION, params_required=True, capability="tasks.cancel", status="experimental", entry="task", doc="Cancels a task.", anchor="2025-11-25 · basic/utilities/tasks#cancelling-tasks"),
    Method("tasks/cancel", "request", "client", "CancelTaskRequestParams", "CancelTaskResult", PER_REQUEST, params_required=True, capability=TASKS_DECLARED, holder="both", extension=EXTENSION, entry="task", doc="Requests the cancellation of a task, which takes effect at some later time.", anchor="2026-07-28 · extensions/tasks/overview", adopt=f"{EXTENDED} The answer is only an acknowledgement: poll tasks/get to see whether the task has ended."),
    Method("tasks/list", "request", "both", "PaginatedRequestParams", "ListTasksResult", ONE_REVISION, capability="tasks.list", status="experimental", lists="task", doc="Lists the tasks of the other side, page by page.", anchor="2025-11-25 · basic/utilities/tasks#listing-tasks", instead="Keep the ids of the tasks you started: no method lists them."),

    # Notifications.
    Method("notifications/cancelled", "notification", "both", "CancelledNotificationParams", None, HANDSHAKE, params_required=True, doc="Says that the sender no longer wants the answer to its request.", anchor="2025-11-25 · basic/utilities/cancellation#cancellation-flow"),
    Method("notifications/cancelled", "notification", "both", "CancelledNotificationParams", None, PER_REQUEST, params_required=True, doc="Says that the client no longer wants an answer, or that the server ends a subscriptions/listen stream.", anchor="2026-07-28 · basic/patterns/cancellation#cancellation-flow", adopt="Over HTTP close the response stream instead; a server sends it only to end a subscriptions/listen stream."),
    Method("notifications/initialized", "notification", "client", "NotificationParams", None, HANDSHAKE, required=True, doc="Says that the client is ready for the session it opened.", anchor="2025-11-25 · basic/lifecycle#initialization", instead="Send nothing: there is no session to be ready for."),
    Method("notifications/progress", "notification", "both", "ProgressNotificationParams", None, HANDSHAKE, params_required=True, doc="Reports the progress of a request that carried a progress token.", anchor="2025-11-25 · basic/utilities/progress#progress-flow"),
    Method("notifications/progress", "notification", "server", "ProgressNotificationParams", None, PER_REQUEST, params_required=True, doc="Reports the progress of a request that carried a progress token.", anchor="2026-07-28 · basic/patterns/progress#progress-flow", adopt="Only servers report progress, on the response stream of the request."),
    Method("notifications/tasks/status", "notification", "both", "TaskStatusNotificationParams", None, ONE_REVISION, params_required=True, capability="tasks", holder="sender", status="experimental", doc="Reports the status of a task, unsolicited.", anchor="2025-11-25 · basic/utilities/tasks#task-status-notification", instead="Read notifications/tasks on a subscriptions/listen stream whose filter has the task's id.", renamed_to="notifications/tasks"),
    Method("notifications/tasks", "notification", "server", "TaskStatusNotificationParams", None, PER_REQUEST, params_required=True, capability=TASKS_DECLARED, holder="both", stream="subscriptions/listen", extension=EXTENSION, doc="Reports the status of a task, with its result, its error or its input requests.", anchor="2026-07-28 · extensions/tasks/overview", adopt=f"{EXTENDED} Name the task under taskIds in the filter of subscriptions/listen."),
    Method("notifications/roots/list_changed", "notification", "client", "NotificationParams", None, HANDSHAKE, capability="roots.listChanged", holder="sender", doc="Says that the list of roots has changed.", anchor="2025-11-25 · client/roots#root-list-changes", instead="Send nothing: a server requests the roots each time it needs them."),
    Method("notifications/resources/list_changed", "notification", "server", "NotificationParams", None, HANDSHAKE, capability="resources.listChanged", holder="sender", doc="Says that the list of resources has changed.", anchor="2025-11-25 · server/resources#list-changed-notification"),
    Method("notifications/resources/list_changed", "notification", "server", "NotificationParams", None, PER_REQUEST, capability="resources.listChanged", holder="sender", stream="subscriptions/listen", doc="Says that the list of resources has changed.", anchor="2026-07-28 · server/resources#list-changed-notification", adopt=LISTENING),
    Method("notifications/subscriptions/acknowledged", "notification", "server", "SubscriptionsAcknowledgedNotificationParams", None, PER_REQUEST, params_required=True, stream="subscriptions/listen", doc="Opens a stream of notifications and names the accepted topics.", anchor="2026-07-28 · basic/patterns/subscriptions#acknowledgment", adopt="A server sends it first on each subscriptions/listen stream; a client checks which topics are missing from it."),
    Method("notifications/resources/updated", "notification", "server", "ResourceUpdatedNotificationParams", None, HANDSHAKE, params_required=True, capability="resources.subscribe", holder="sender", doc="Says that a subscribed resource, or one below it, has changed.", anchor="2025-11-25 · server/resources#subscriptions"),
    Method("notifications/resources/updated", "notification", "server", "ResourceUpdatedNotificationParams", None, PER_REQUEST, params_required=True, capability="resources.subscribe", holder="sender", stream="subscriptions/listen", doc="Says that a resource which the stream names, or one below it, has changed.", anchor="2026-07-28 · basic/patterns/subscriptions#receiving-notifications", adopt=LISTENING),
    Method("notifications/prompts/list_changed", "notification", "server", "NotificationParams", None, HANDSHAKE, capability="prompts.listChanged", holder="sender", doc="Says that the list of prompts has changed.", anchor="2025-11-25 · server/prompts#list-changed-notification"),
    Method("notifications/prompts/list_changed", "notification", "server", "NotificationParams", None, PER_REQUEST, capability="prompts.listChanged", holder="sender", stream="subscriptions/listen", doc="Says that the list of prompts has changed.", anchor="2026-07-28 · server/prompts#list-changed-notification", adopt=LISTENING),
    Method("notifications/tools/list_changed", "notification", "server", "NotificationParams", None, HANDSHAKE, capability="tools.listChanged", holder="sender", doc="Says that the list of tools has changed.", anchor="2025-11-25 · server/tools#list-changed-notification"),
    Method("notifications/tools/list_changed", "notification", "server", "NotificationParams", None, PER_REQUEST, capability="tools.listChanged", holder="sender", stream="subscriptions/listen", doc="Says that the list of tools has changed.", anchor="2026-07-28 · server/tools#list-changed-notification", adopt=LISTENING),
    Method("notifications/message", "notification", "server", "LoggingMessageNotificationParams", None, HANDSHAKE, params_required=True, capability="logging", holder="sender", doc="Carries a line of the server's log.", anchor="2025-11-25 · server/utilities/logging#log-message-notifications"),
    Method("notifications/message", "notification", "server", "LoggingMessageNotificationParams", None, PER_REQUEST, params_required=True, capability="logging", holder="sender", status="deprecated", doc="Carries a line of the server's log about one request.", anchor="2026-07-28 · server/utilities/logging#log-message-notifications", adopt="Send it only for a request whose _meta has a log level. Better, log to stderr or OpenTelemetry: it is deprecated."),
    Method("notifications/elicitation/complete", "notification", "server", "ElicitationCompleteNotificationParams", None, ONE_REVISION, params_required=True, capability="elicitation.url", doc="Says that the user has finished an elicitation by URL.", anchor="2025-11-25 · client/elicitation#completion-notifications-for-url-mode-elicitation", adopt="A server may send it once the user has finished.", instead="Send nothing: the client finds out when it retries its request."),
)
# fmt: on

# What the params of a request name, and what its result lists, by method.
NAMED: Final[dict[str, EntryKind]] = {row.name: row.entry for row in METHODS if row.entry}
LISTED: Final[dict[str, EntryKind]] = {row.name: row.lists for row in METHODS if row.lists}

# Methods of official extensions whose types are not among the rows, with the extension.
_SKILLS: Final = "io.modelcontextprotocol/skills"
EXTENSION_METHODS: Final[dict[str, str]] = {
    "skills/list": _SKILLS,
    "skills/get": _SKILLS,
    "resources/directory/read": _SKILLS,
}

# Methods that may be sent twice, because the second time changes nothing. A client that lost its
# connection before the answer does not know whether a request was served, and sends these again;
# a tool declares for itself that it is idempotent.
REPEATABLE_REQUESTS: Final = frozenset(
    (
        *("server/discover", "tools/list", "resources/list", "resources/templates/list"),
        *("prompts/list", "resources/read", "prompts/get", "completion/complete", "ping"),
        *("tasks/get", "tasks/list", "tasks/result", "skills/list", "skills/get"),
    )
)
REPEATABLE_NOTIFICATIONS: Final = frozenset(
    (
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        *("notifications/roots/list_changed",),
    )
)

# The prefix of the names of notifications.
NOTIFICATION: Final = "notifications/"


class Alias(NamedTuple):
    """Another spelling of a method."""

    spelling: str
    official: str
    # The entry in the list of contradictions.
    ref: str


# Spellings that other systems send; the policy of a connection decides whether they are accepted.
# A notification without its prefix is not listed: that is a rule, not a name.
# fmt: off
ALIASES: Final[tuple[Alias, ...]] = (
    Alias("tool/execute", "tools/call", "K-21"),
    Alias("sampling/create_message", "sampling/createMessage", "K-21"),
    Alias("logging/set_level", "logging/setLevel", "K-21"),
    Alias("logging/logMessage", "notifications/message", "K-53"),
    Alias("notifications/roots/listChanged", "notifications/roots/list_changed", "K-55"),
    Alias("roots/listChanged", "notifications/roots/list_changed", "K-55"),
)
# fmt: on

# Where messages hold identifiers: texts that are compared, looked up or sent back unchanged. A
# text may be cleaned for display; an identifier may not, because two that differ could become one.
# The rows are paths from the message, in any revision: `a|b` is one of several names, `*` any
# element of an array or member of an object.
#
# Names count where they select something: those of tools, prompts and their arguments, not those
# of resources, roots or programs. URIs count but for icons and websites, which are displayed. What
# an application defines, such as the arguments of a tool or the answer to a form, has none.

# Blocks in the results of tools that are quoted in a sampling message.
_BLOCKS: Final = ("content/*/uri", "content/*/resource/uri")
_SAMPLED: Final = tuple(f"{at}/{block}" for at in ("content", "content/*") for block in _BLOCKS)
# Requests for elicitation and sampling.
_CLIENT_REQUEST: Final = (
    "url",
    "tools/*/name",
    *(f"messages/*/{block}" for block in _SAMPLED),
)

IDENTIFIERS: Final = (
    "id",
    "method",
    # Requests and notifications
    "params/name|uri|cursor|requestState|requestId|taskId|progressToken|elicitationId",
    "params/_meta/progressToken",
    "params/ref/name|uri",
    "params/argument/name",
    "params/notifications/resourceSubscriptions/*",
    *(f"params/{place}" for place in _CLIENT_REQUEST),
    # Results
    "result/nextCursor|requestState|taskId",
    "result/task/taskId",
    "result/tasks/*/taskId",
    "result/tools|prompts/*/name",
    "result/prompts/*/arguments/*/name",
    "result/resources/*/uri",
    "result/resourceTemplates/*/uriTemplate",
    "result/contents/*/uri",
    "result/roots/*/uri",
    *(f"result/{block}" for block in _BLOCKS),
    "result/messages/*/content/uri",
    "result/messages/*/content/resource/uri",
    *(f"result/{block}" for block in _SAMPLED),
    # Requests inside results, and their answers
    *(f"params|result/inputRequests/*/params/{place}" for place in _CLIENT_REQUEST),
    "params/inputResponses/*/roots/*/uri",
    *(f"params/inputResponses/*/{block}" for block in _SAMPLED),
)
