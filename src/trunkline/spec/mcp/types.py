"""The types of every MCP revision: one row per name, one field per line.

Rows and fields are in the order of the official schema files, so that the two can be
read side by side; `tools/import_schema.py` documents how anonymous types were named.
Members that several types share stand first in a row. The types of messages and of responses
follow from the rows of methods. Envelope members (`jsonrpc`, `id`) are on the `JSONRPC...`
types only.

Where a row differs from the files on purpose, `departs` says why. The files are
generated from TypeScript, which loses some information.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

from ..revisions import (
    HANDSHAKE,
    PER_REQUEST,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    Window,
)
from ..rows import ALWAYS, Field, Limits, Member, Method, Type
from .methods import METHODS

__all__ = ["TYPES"]

# Only in 2025-11-25, mainly tasks.
ONE_REVISION: Final = Window(V2025_11_25, V2026_07_28)

BASE64: Final[Limits] = (("format", "byte"),)
FRACTION: Final[Limits] = (("minimum", 0), ("maximum", 1))
NOT_NEGATIVE: Final[Limits] = (("minimum", 0),)
URI: Final[Limits] = (("format", "uri"),)
URI_TEMPLATE: Final[Limits] = (("format", "uri-template"),)
AT_MOST_100: Final[Limits] = (("maxItems", 100),)

# Why a row departs from the schema files.
LOST_META: Final = "any params may carry _meta; the file loses it where it writes params out"
LOST_KEYS: Final = "_meta takes any key; the file loses that where it lists some"
LOST_FRACTIONS: Final = "a number may have a fraction; the file says integer"
LOST_JSON: Final = "JSON has fractions and null; the file loses both"
ONLY_IN_PROSE: Final = "the text of every revision allows 100 values; only the newest file says so"
TOLD_BY_VALUE: Final = "this value tells results apart; the file allows any text"
UNREADABLE_ID: Final = "JSON-RPC 2.0 answers a request whose id cannot be read with null"

# fmt: off
# Members that several types share; `TYPES` puts the members of each type in order.
RESULT_META: Final = (
    Field("_meta", "MetaObject", when=HANDSHAKE),
    Field("_meta", "ResultMetaObject", when=PER_REQUEST),
)
COMPLETE: Final = (
    *RESULT_META,
    Field("resultType", "'complete'", required=True, when=PER_REQUEST, departs=TOLD_BY_VALUE),
)
CACHEABLE: Final = (
    *COMPLETE,
    Field("cacheScope", "'private' | 'public'", required=True, when=PER_REQUEST),
    Field("ttlMs", "integer", required=True, when=PER_REQUEST, limits=NOT_NEGATIVE),
)
REQUEST_META: Final = (
    Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
    Field("_meta", "RequestMetaObject", required=PER_REQUEST, when=Window(V2025_11_25)),
)
HANDSHAKE_META: Final = (
    Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
    Field("_meta", "RequestMetaObject", when=Window(V2025_11_25)),
)
NOTIFICATION_META: Final = (
    Field("_meta", "MetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
    Field("_meta", "MetaObject", when=ONE_REVISION),
    Field("_meta", "NotificationMetaObject", when=PER_REQUEST),
)
ROUND_TRIP: Final = (
    Field("inputResponses", "InputResponses", when=PER_REQUEST),
    Field("requestState", "string", when=PER_REQUEST),
)
TASK: Final = (
    Field("createdAt", "string", required=True),
    Field("lastUpdatedAt", "string", required=True),
    Field("pollInterval", "integer"),
    Field("status", "TaskStatus", required=True),
    Field("statusMessage", "string"),
    Field("taskId", "string", required=True),
    Field("ttl", "integer | null", required=True),
)
ERROR: Final = (
    Field("data", "any"),
    Field("message", "string", required=True),
)
ANNOTATED: Final = (
    Field("_meta", "MetaObject", when=Window(V2025_06_18)),
    Field("annotations", "Annotations"),
)
DISPLAYED: Final = (
    Field("description", "string"),
    Field("title", "string"),
)

# The type of each message, with its method: all of it follows from the rows of the method.
MESSAGES: Final = {
    "CallToolRequest": "tools/call",
    "CancelTaskRequest": "tasks/cancel",
    "CancelledNotification": "notifications/cancelled",
    "CompleteRequest": "completion/complete",
    "CreateMessageRequest": "sampling/createMessage",
    "DiscoverRequest": "server/discover",
    "ElicitRequest": "elicitation/create",
    "ElicitationCompleteNotification": "notifications/elicitation/complete",
    "GetPromptRequest": "prompts/get",
    "GetTaskPayloadRequest": "tasks/result",
    "GetTaskRequest": "tasks/get",
    "InitializeRequest": "initialize",
    "InitializedNotification": "notifications/initialized",
    "ListPromptsRequest": "prompts/list",
    "ListResourceTemplatesRequest": "resources/templates/list",
    "ListResourcesRequest": "resources/list",
    "ListRootsRequest": "roots/list",
    "ListTasksRequest": "tasks/list",
    "ListToolsRequest": "tools/list",
    "LoggingMessageNotification": "notifications/message",
    "PingRequest": "ping",
    "ProgressNotification": "notifications/progress",
    "PromptListChangedNotification": "notifications/prompts/list_changed",
    "ReadResourceRequest": "resources/read",
    "ResourceListChangedNotification": "notifications/resources/list_changed",
    "ResourceUpdatedNotification": "notifications/resources/updated",
    "RootsListChangedNotification": "notifications/roots/list_changed",
    "SetLevelRequest": "logging/setLevel",
    "SubscribeRequest": "resources/subscribe",
    "SubscriptionsAcknowledgedNotification": "notifications/subscriptions/acknowledged",
    "SubscriptionsListenRequest": "subscriptions/listen",
    "TaskStatusNotification": "notifications/tasks/status",
    "ToolListChangedNotification": "notifications/tools/list_changed",
    "UnsubscribeRequest": "resources/unsubscribe",
}

_WRITTEN: Final[tuple[Type, ...]] = (
    Type("Annotated", "object", when=Window(until=V2025_03_26), fields=(Field("annotations", "Annotations"),)),
    Type("Annotations", "object", fields=(
        Field("audience", "list<Role>"),
        Field("lastModified", "string", when=Window(V2025_06_18)),
        Field("priority", "number", limits=FRACTION),
    )),
    Type("AudioContent", "object", when=Window(V2025_03_26), fields=(
        *ANNOTATED,
        Field("data", "string", required=True, limits=BASE64),
        Field("mimeType", "string", required=True),
        Field("type", "'audio'", required=True),
    )),
    Type("BaseMetadata", "object", when=Window(V2025_06_18), fields=(
        Field("name", "string", required=True),
        Field("title", "string"),
    )),
    Type("BlobResourceContents", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("blob", "string", required=True, limits=BASE64),
        Field("mimeType", "string"),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("BooleanSchema", "object", when=Window(V2025_06_18), fields=(
        *DISPLAYED,
        Field("default", "boolean"),
        Field("type", "'boolean'", required=True),
    )),
    Type("CacheableResult", "object", when=PER_REQUEST, fields=(
        Field("_meta", "ResultMetaObject"),
        Field("cacheScope", "'private' | 'public'", required=True),
        Field("resultType", "string", required=True),
        Field("ttlMs", "integer", required=True, limits=NOT_NEGATIVE),
    )),
    Type("CallToolRequestParams", "object", fields=(
        *REQUEST_META,
        *ROUND_TRIP,
        Field("arguments", "map<any>"),
        Field("name", "string", required=True),
        Field("task", "TaskMetadata", when=ONE_REVISION),
    )),
    Type("CallToolResult", "object", fields=(
        *COMPLETE,
        Field("content", "list<TextContent | ImageContent | EmbeddedResource>", required=True, when=Window(until=V2025_03_26)),
        Field("content", "list<TextContent | ImageContent | AudioContent | EmbeddedResource>", required=True, when=Window(V2025_03_26, V2025_06_18)),
        Field("content", "list<ContentBlock>", required=True, when=Window(V2025_06_18)),
        Field("isError", "boolean"),
        Field("structuredContent", "map<any>", when=Window(V2025_06_18, V2026_07_28)),
        Field("structuredContent", "any", when=PER_REQUEST),
    )),
    Type("CancelTaskRequestParams", "object", when=ONE_REVISION, fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("CancelTaskResult", "object", when=ONE_REVISION, open=True, fields=(*TASK, Field("_meta", "MetaObject"))),
    Type("CancelledNotificationParams", "object", fields=(
        *NOTIFICATION_META,
        Field("reason", "string"),
        Field("requestId", "RequestId", required=True, when=Window(until=V2025_11_25)),
        Field("requestId", "RequestId", when=ONE_REVISION),
        Field("requestId", "RequestId", required=True, when=PER_REQUEST),
    )),
    Type("ClientCapabilities", "object", fields=(
        Field("elicitation", "map<any>", when=Window(V2025_06_18, V2025_11_25)),
        Field("elicitation", "ClientCapabilities.elicitation", when=Window(V2025_11_25)),
        Field("experimental", "map<map<any>>", when=HANDSHAKE),
        Field("experimental", "map<JSONObject>", when=PER_REQUEST),
        Field("extensions", "map<JSONObject>", when=PER_REQUEST),
        Field("roots", "ClientCapabilities.roots"),
        Field("sampling", "map<any>", when=Window(until=V2025_11_25)),
        Field("sampling", "ClientCapabilities.sampling", when=Window(V2025_11_25)),
        Field("tasks", "ClientCapabilities.tasks", when=ONE_REVISION),
    )),
    Type("ClientCapabilities.elicitation", "object", when=Window(V2025_11_25), fields=(
        Field("form", "map<any>", when=HANDSHAKE),
        Field("form", "JSONObject", when=PER_REQUEST),
        Field("url", "map<any>", when=HANDSHAKE),
        Field("url", "JSONObject", when=PER_REQUEST),
    )),
    Type("ClientCapabilities.roots", "object", fields=(Field("listChanged", "boolean", when=HANDSHAKE),)),
    Type("ClientCapabilities.sampling", "object", when=Window(V2025_11_25), fields=(
        Field("context", "map<any>", when=HANDSHAKE),
        Field("context", "JSONObject", when=PER_REQUEST),
        Field("tools", "map<any>", when=HANDSHAKE),
        Field("tools", "JSONObject", when=PER_REQUEST),
    )),
    Type("ClientCapabilities.tasks", "object", when=ONE_REVISION, fields=(
        Field("cancel", "map<any>"),
        Field("list", "map<any>"),
        Field("requests", "ClientCapabilities.tasks.requests"),
    )),
    Type("ClientCapabilities.tasks.requests", "object", when=ONE_REVISION, fields=(
        Field("elicitation", "ClientCapabilities.tasks.requests.elicitation"),
        Field("sampling", "ClientCapabilities.tasks.requests.sampling"),
    )),
    Type("ClientCapabilities.tasks.requests.elicitation", "object", when=ONE_REVISION, fields=(Field("create", "map<any>"),)),
    Type("ClientCapabilities.tasks.requests.sampling", "object", when=ONE_REVISION, fields=(Field("createMessage", "map<any>"),)),
    Type("ClientNotification", "union", of=(
        Member("CancelledNotification"),
        Member("InitializedNotification", when=HANDSHAKE),
        Member("ProgressNotification", when=HANDSHAKE),
        Member("TaskStatusNotification", when=ONE_REVISION),
        Member("RootsListChangedNotification", when=HANDSHAKE),
    )),
    Type("ClientRequest", "union", of=(
        Member("InitializeRequest", when=HANDSHAKE),
        Member("PingRequest", when=HANDSHAKE),
        Member("DiscoverRequest", when=PER_REQUEST),
        Member("ListResourcesRequest"),
        Member("ListResourceTemplatesRequest"),
        Member("ReadResourceRequest"),
        Member("SubscribeRequest", when=HANDSHAKE),
        Member("UnsubscribeRequest", when=HANDSHAKE),
        Member("SubscriptionsListenRequest", when=PER_REQUEST),
        Member("ListPromptsRequest"),
        Member("GetPromptRequest"),
        Member("ListToolsRequest"),
        Member("CallToolRequest"),
        Member("GetTaskRequest", when=ONE_REVISION),
        Member("GetTaskPayloadRequest", when=ONE_REVISION),
        Member("CancelTaskRequest", when=ONE_REVISION),
        Member("ListTasksRequest", when=ONE_REVISION),
        Member("SetLevelRequest", when=HANDSHAKE),
        Member("CompleteRequest"),
    )),
    Type("ClientResult", "union", of=(
        Member("Result"),
        Member("GetTaskResult", when=ONE_REVISION),
        Member("GetTaskPayloadResult", when=ONE_REVISION),
        Member("CancelTaskResult", when=ONE_REVISION),
        Member("ListTasksResult", when=ONE_REVISION),
        Member("CreateMessageResult", when=HANDSHAKE),
        Member("ListRootsResult", when=HANDSHAKE),
        Member("ElicitResult", when=Window(V2025_06_18, V2026_07_28)),
    )),
    Type("CompleteRequestParams", "object", fields=(
        *REQUEST_META,
        Field("argument", "CompleteRequestParams.argument", required=True),
        Field("context", "CompleteRequestParams.context", when=Window(V2025_06_18)),
        Field("ref", "PromptReference | ResourceReference", required=True, when=Window(until=V2025_06_18)),
        Field("ref", "PromptReference | ResourceTemplateReference", required=True, when=Window(V2025_06_18)),
    )),
    Type("CompleteRequestParams.argument", "object", fields=(
        Field("name", "string", required=True),
        Field("value", "string", required=True),
    )),
    Type("CompleteRequestParams.context", "object", when=Window(V2025_06_18), fields=(Field("arguments", "map<string>"),)),
    Type("CompleteResult", "object", fields=(*COMPLETE, Field("completion", "CompleteResult.completion", required=True))),
    Type("CompleteResult.completion", "object", fields=(
        Field("hasMore", "boolean"),
        Field("total", "integer"),
        Field("values", "list<string>", required=True, when=HANDSHAKE, limits=AT_MOST_100, departs=ONLY_IN_PROSE),
        Field("values", "list<string>", required=True, when=PER_REQUEST, limits=AT_MOST_100),
    )),
    Type("ContentBlock", "union", when=Window(V2025_06_18), of=(
        Member("TextContent"),
        Member("ImageContent"),
        Member("AudioContent"),
        Member("ResourceLink"),
        Member("EmbeddedResource"),
    )),
    Type("CreateMessageRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=ONE_REVISION),
        Field("includeContext", "'allServers' | 'none' | 'thisServer'"),
        Field("maxTokens", "integer", required=True),
        Field("messages", "list<SamplingMessage>", required=True),
        Field("metadata", "map<any>", when=HANDSHAKE),
        Field("metadata", "JSONObject", when=PER_REQUEST),
        Field("modelPreferences", "ModelPreferences"),
        Field("stopSequences", "list<string>"),
        Field("systemPrompt", "string"),
        Field("task", "TaskMetadata", when=ONE_REVISION),
        Field("temperature", "number"),
        Field("toolChoice", "ToolChoice", when=Window(V2025_11_25)),
        Field("tools", "list<Tool>", when=Window(V2025_11_25)),
    )),
    Type("CreateMessageResult", "object", fields=(
        Field("_meta", "MetaObject"),
        Field("content", "TextContent | ImageContent", required=True, when=Window(until=V2025_03_26)),
        Field("content", "TextContent | ImageContent | AudioContent", required=True, when=Window(V2025_03_26, V2025_11_25)),
        Field("content", "TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | list<SamplingMessageContentBlock>", required=True, when=Window(V2025_11_25)),
        Field("model", "string", required=True),
        Field("role", "Role", required=True),
        Field("stopReason", "string"),
    )),
    Type("CreateTaskResult", "object", when=ONE_REVISION, fields=(
        Field("_meta", "MetaObject"),
        Field("task", "Task", required=True),
    )),
    Type("Cursor", "alias", of=(Member("string"),)),
    Type("DiscoverResult", "object", when=PER_REQUEST, fields=(
        Field("_meta", "ResultMetaObject"),
        Field("cacheScope", "'private' | 'public'", required=True),
        Field("capabilities", "ServerCapabilities", required=True),
        Field("instructions", "string"),
        Field("resultType", "'complete'", required=True, departs=TOLD_BY_VALUE),
        Field("supportedVersions", "list<string>", required=True),
        Field("ttlMs", "integer", required=True, limits=NOT_NEGATIVE),
    )),
    Type("ElicitRequestFormParams", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", when=HANDSHAKE),
        Field("message", "string", required=True),
        Field("mode", "'form'"),
        Field("requestedSchema", "ElicitRequestFormParams.requestedSchema", required=True),
        Field("task", "TaskMetadata", when=HANDSHAKE),
    )),
    Type("ElicitRequestFormParams.requestedSchema", "object", when=Window(V2025_11_25), fields=(
        Field("$schema", "string"),
        Field("properties", "map<PrimitiveSchemaDefinition>", required=True),
        Field("required", "list<string>"),
        Field("type", "'object'", required=True),
    )),
    Type("ElicitRequestParams", "object", when=Window(V2025_06_18, V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("message", "string", required=True),
        Field("requestedSchema", "ElicitRequestParams.requestedSchema", required=True),
    )),
    Type("ElicitRequestParams", "union", when=Window(V2025_11_25), of=(
        Member("ElicitRequestFormParams"),
        Member("ElicitRequestURLParams"),
    )),
    Type("ElicitRequestParams.requestedSchema", "object", when=Window(V2025_06_18, V2025_11_25), fields=(
        Field("properties", "map<PrimitiveSchemaDefinition>", required=True),
        Field("required", "list<string>"),
        Field("type", "'object'", required=True),
    )),
    Type("ElicitRequestURLParams", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", when=HANDSHAKE),
        Field("elicitationId", "string", required=True, when=HANDSHAKE),
        Field("message", "string", required=True),
        Field("mode", "'url'", required=True),
        Field("task", "TaskMetadata", when=HANDSHAKE),
        Field("url", "string", required=True, limits=URI),
    )),
    Type("ElicitResult", "object", when=Window(V2025_06_18), fields=(
        Field("_meta", "MetaObject", when=HANDSHAKE),
        Field("action", "'accept' | 'cancel' | 'decline'", required=True),
        Field("content", "map<string | number | boolean>", when=Window(until=V2025_11_25), departs=LOST_FRACTIONS),
        Field("content", "map<list<string> | string | number | boolean>", when=Window(V2025_11_25), departs=LOST_FRACTIONS),
    )),
    Type("ElicitationCompleteNotificationParams", "object", when=ONE_REVISION, fields=(
        Field("_meta", "MetaObject", departs=LOST_META),
        Field("elicitationId", "string", required=True),
    )),
    Type("EmbeddedResource", "object", fields=(
        *ANNOTATED,
        Field("resource", "TextResourceContents | BlobResourceContents", required=True),
        Field("type", "'resource'", required=True),
    )),
    Type("EmptyResult", "alias", of=(Member("Result"),)),
    Type("EnumSchema", "object", when=Window(V2025_06_18, V2025_11_25), fields=(
        *DISPLAYED,
        Field("enum", "list<string>", required=True),
        Field("enumNames", "list<string>"),
        Field("type", "'string'", required=True),
    )),
    Type("EnumSchema", "union", when=Window(V2025_11_25), of=(
        Member("UntitledSingleSelectEnumSchema"),
        Member("TitledSingleSelectEnumSchema"),
        Member("UntitledMultiSelectEnumSchema"),
        Member("TitledMultiSelectEnumSchema"),
        Member("LegacyTitledEnumSchema"),
    )),
    Type("Error", "object", when=Window(V2025_11_25), fields=(*ERROR, Field("code", "integer", required=True))),
    Type("GetPromptRequestParams", "object", fields=(
        *REQUEST_META,
        *ROUND_TRIP,
        Field("arguments", "map<string>"),
        Field("name", "string", required=True),
    )),
    Type("GetPromptResult", "object", fields=(
        *COMPLETE,
        Field("description", "string"),
        Field("messages", "list<PromptMessage>", required=True),
    )),
    Type("GetTaskPayloadRequestParams", "object", when=ONE_REVISION, fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("GetTaskPayloadResult", "object", when=ONE_REVISION, open=True, fields=(Field("_meta", "MetaObject"),)),
    Type("GetTaskRequestParams", "object", when=ONE_REVISION, fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("GetTaskResult", "object", when=ONE_REVISION, open=True, fields=(*TASK, Field("_meta", "MetaObject"))),
    Type("HeaderMismatchError", "object", when=PER_REQUEST, fields=(Field("error", "HeaderMismatchError.error", required=True),)),
    Type("HeaderMismatchError.error", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32020", required=True))),
    Type("Icon", "object", when=Window(V2025_11_25), fields=(
        Field("mimeType", "string"),
        Field("sizes", "list<string>"),
        Field("src", "string", required=True, limits=URI),
        Field("theme", "'dark' | 'light'"),
    )),
    Type("Icons", "object", when=Window(V2025_11_25), fields=(Field("icons", "list<Icon>"),)),
    Type("ImageContent", "object", fields=(
        *ANNOTATED,
        Field("data", "string", required=True, limits=BASE64),
        Field("mimeType", "string", required=True),
        Field("type", "'image'", required=True),
    )),
    Type("Implementation", "object", fields=(
        Field("description", "string", when=Window(V2025_11_25)),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("name", "string", required=True),
        Field("title", "string", when=Window(V2025_06_18)),
        Field("version", "string", required=True),
        Field("websiteUrl", "string", when=Window(V2025_11_25), limits=URI),
    )),
    Type("InitializeRequestParams", "object", when=HANDSHAKE, fields=(
        *HANDSHAKE_META,
        Field("capabilities", "ClientCapabilities", required=True),
        Field("clientInfo", "Implementation", required=True),
        Field("protocolVersion", "string", required=True),
    )),
    Type("InitializeResult", "object", when=HANDSHAKE, fields=(
        Field("_meta", "MetaObject"),
        Field("capabilities", "ServerCapabilities", required=True),
        Field("instructions", "string"),
        Field("protocolVersion", "string", required=True),
        Field("serverInfo", "Implementation", required=True),
    )),
    Type("InputRequest", "union", when=PER_REQUEST, of=(
        Member("CreateMessageRequest"),
        Member("ListRootsRequest"),
        Member("ElicitRequest"),
    )),
    Type("InputRequests", "alias", when=PER_REQUEST, of=(Member("map<InputRequest>"),)),
    Type("InputRequiredResult", "object", when=PER_REQUEST, fields=(
        Field("_meta", "ResultMetaObject"),
        Field("inputRequests", "InputRequests"),
        Field("requestState", "string"),
        Field("resultType", "'input_required'", required=True, departs=TOLD_BY_VALUE),
    )),
    Type("InputResponse", "union", when=PER_REQUEST, of=(Member("CreateMessageResult"), Member("ListRootsResult"), Member("ElicitResult"))),
    Type("InputResponseRequestParams", "object", when=PER_REQUEST, fields=(
        Field("_meta", "RequestMetaObject", required=True),
        Field("inputResponses", "InputResponses"),
        Field("requestState", "string"),
    )),
    Type("InputResponses", "alias", when=PER_REQUEST, of=(Member("map<InputResponse>"),)),
    Type("InternalError", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32603", required=True))),
    Type("InvalidParamsError", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32602", required=True))),
    Type("InvalidRequestError", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32600", required=True))),
    Type("JSONArray", "alias", when=PER_REQUEST, of=(Member("list<JSONValue>"),)),
    Type("JSONObject", "alias", when=PER_REQUEST, of=(Member("map<JSONValue>"),)),
    Type("JSONRPCBatchRequest", "alias", when=Window(V2025_03_26, V2025_06_18), of=(Member("list<JSONRPCRequest | JSONRPCNotification>"),)),
    Type("JSONRPCBatchResponse", "alias", when=Window(V2025_03_26, V2025_06_18), of=(Member("list<JSONRPCResponse | JSONRPCError>"),)),
    Type("JSONRPCError", "object", when=Window(until=V2025_11_25), fields=(
        Field("error", "JSONRPCError.error", required=True),
        Field("id", "RequestId | null", required=True, departs=UNREADABLE_ID),
        Field("jsonrpc", "'2.0'", required=True),
    )),
    Type("JSONRPCError.error", "object", when=Window(until=V2025_11_25), fields=(*ERROR, Field("code", "integer", required=True))),
    Type("JSONRPCErrorResponse", "object", when=Window(V2025_11_25), fields=(
        Field("error", "Error", required=True),
        Field("id", "RequestId"),
        Field("jsonrpc", "'2.0'", required=True),
    )),
    Type("JSONRPCMessage", "union", of=(
        Member("JSONRPCRequest"),
        Member("JSONRPCNotification"),
        Member("list<JSONRPCRequest | JSONRPCNotification>", when=Window(V2025_03_26, V2025_06_18)),
        Member("JSONRPCResponse", when=Window(until=V2025_11_25)),
        Member("JSONRPCError", when=Window(until=V2025_11_25)),
        Member("list<JSONRPCResponse | JSONRPCError>", when=Window(V2025_03_26, V2025_06_18)),
        Member("JSONRPCResultResponse", when=Window(V2025_11_25)),
        Member("JSONRPCErrorResponse", when=Window(V2025_11_25)),
    )),
    Type("JSONRPCNotification", "object", fields=(
        Field("jsonrpc", "'2.0'", required=True),
        Field("method", "string", required=True),
        Field("params", "NotificationParams", when=Window(until=V2025_11_25)),
        Field("params", "map<any>", when=Window(V2025_11_25)),
    )),
    Type("JSONRPCRequest", "object", fields=(
        Field("id", "RequestId", required=True),
        Field("jsonrpc", "'2.0'", required=True),
        Field("method", "string", required=True),
        Field("params", "RequestParams", when=Window(until=V2025_11_25)),
        Field("params", "map<any>", when=Window(V2025_11_25)),
    )),
    Type("JSONRPCResponse", "object", when=Window(until=V2025_11_25), fields=(
        Field("id", "RequestId", required=True),
        Field("jsonrpc", "'2.0'", required=True),
        Field("result", "Result", required=True),
    )),
    Type("JSONRPCResponse", "union", when=Window(V2025_11_25), of=(Member("JSONRPCResultResponse"), Member("JSONRPCErrorResponse"))),
    Type("JSONRPCResultResponse", "object", when=Window(V2025_11_25), fields=(
        Field("id", "RequestId", required=True),
        Field("jsonrpc", "'2.0'", required=True),
        Field("result", "Result", required=True),
    )),
    Type("JSONValue", "union", when=PER_REQUEST, departs=LOST_JSON, of=(
        Member("JSONObject"),
        Member("list<JSONValue>"),
        Member("string"),
        Member("number"),
        Member("boolean"),
        Member("null"),
    )),
    Type("LegacyTitledEnumSchema", "object", when=Window(V2025_11_25), fields=(
        *DISPLAYED,
        Field("default", "string"),
        Field("enum", "list<string>", required=True),
        Field("enumNames", "list<string>"),
        Field("type", "'string'", required=True),
    )),
    Type("ListPromptsResult", "object", fields=(
        *CACHEABLE,
        Field("nextCursor", "string"),
        Field("prompts", "list<Prompt>", required=True),
    )),
    Type("ListResourceTemplatesResult", "object", fields=(
        *CACHEABLE,
        Field("nextCursor", "string"),
        Field("resourceTemplates", "list<ResourceTemplate>", required=True),
    )),
    Type("ListResourcesResult", "object", fields=(
        *CACHEABLE,
        Field("nextCursor", "string"),
        Field("resources", "list<Resource>", required=True),
    )),
    Type("ListRootsRequestParams", "object", when=PER_REQUEST, fields=(Field("_meta", "MetaObject"),)),
    Type("ListRootsResult", "object", fields=(
        Field("_meta", "MetaObject", when=HANDSHAKE),
        Field("roots", "list<Root>", required=True),
    )),
    Type("ListTasksResult", "object", when=ONE_REVISION, fields=(
        Field("_meta", "MetaObject"),
        Field("nextCursor", "string"),
        Field("tasks", "list<Task>", required=True),
    )),
    Type("ListToolsResult", "object", fields=(
        *CACHEABLE,
        Field("nextCursor", "string"),
        Field("tools", "list<Tool>", required=True),
    )),
    Type("LoggingLevel", "enum", of=(
        Member("'alert'"),
        Member("'critical'"),
        Member("'debug'"),
        Member("'emergency'"),
        Member("'error'"),
        Member("'info'"),
        Member("'notice'"),
        Member("'warning'"),
    )),
    Type("LoggingMessageNotificationParams", "object", fields=(
        *NOTIFICATION_META,
        Field("data", "any", required=True),
        Field("level", "LoggingLevel", required=True),
        Field("logger", "string"),
    )),
    Type("MetaObject", "alias", of=(Member("map<any>"),)),
    Type("MethodNotFoundError", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32601", required=True))),
    Type("MissingRequiredClientCapabilityError", "object", when=PER_REQUEST, fields=(
        Field("error", "MissingRequiredClientCapabilityError.error", required=True),
    )),
    Type("MissingRequiredClientCapabilityError.error", "object", when=PER_REQUEST, fields=(
        Field("code", "-32021", required=True),
        Field("data", "MissingRequiredClientCapabilityError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("MissingRequiredClientCapabilityError.error.data", "object", when=PER_REQUEST, fields=(
        Field("requiredCapabilities", "ClientCapabilities", required=True),
    )),
    Type("ModelHint", "object", fields=(Field("name", "string"),)),
    Type("ModelPreferences", "object", fields=(
        Field("costPriority", "number", limits=FRACTION),
        Field("hints", "list<ModelHint>"),
        Field("intelligencePriority", "number", limits=FRACTION),
        Field("speedPriority", "number", limits=FRACTION),
    )),
    Type("MultiSelectEnumSchema", "union", when=Window(V2025_11_25), of=(
        Member("UntitledMultiSelectEnumSchema"),
        Member("TitledMultiSelectEnumSchema"),
    )),
    Type("Notification", "object", fields=(
        Field("method", "string", required=True),
        Field("params", "NotificationParams", when=Window(until=V2025_11_25)),
        Field("params", "map<any>", when=Window(V2025_11_25)),
    )),
    Type("NotificationMetaObject", "object", when=PER_REQUEST, open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/subscriptionId", "RequestId"),
    )),
    Type("NotificationParams", "object", open=Window(until=V2025_11_25), fields=(
        Field("_meta", "MetaObject", when=HANDSHAKE),
        Field("_meta", "NotificationMetaObject", when=PER_REQUEST),
    )),
    Type("NumberSchema", "object", when=Window(V2025_06_18), fields=(
        *DISPLAYED,
        Field("default", "number", when=Window(V2025_11_25)),
        Field("maximum", "number"),
        Field("minimum", "number"),
        Field("type", "'integer' | 'number'", required=True),
    )),
    Type("PaginatedRequest", "object", fields=(
        Field("method", "string", required=True),
        Field("params", "PaginatedRequestParams", required=PER_REQUEST),
    )),
    Type("PaginatedRequestParams", "object", fields=(*REQUEST_META, Field("cursor", "string"))),
    Type("PaginatedResult", "object", fields=(
        *RESULT_META,
        Field("nextCursor", "string"),
        Field("resultType", "string", required=True, when=PER_REQUEST),
    )),
    Type("ParseError", "object", when=PER_REQUEST, fields=(*ERROR, Field("code", "-32700", required=True))),
    Type("PrimitiveSchemaDefinition", "union", when=Window(V2025_06_18), of=(
        Member("StringSchema"),
        Member("NumberSchema"),
        Member("BooleanSchema"),
        Member("EnumSchema", when=Window(until=V2025_11_25)),
        Member("UntitledSingleSelectEnumSchema", when=Window(V2025_11_25)),
        Member("TitledSingleSelectEnumSchema", when=Window(V2025_11_25)),
        Member("UntitledMultiSelectEnumSchema", when=Window(V2025_11_25)),
        Member("TitledMultiSelectEnumSchema", when=Window(V2025_11_25)),
        Member("LegacyTitledEnumSchema", when=Window(V2025_11_25)),
    )),
    Type("ProgressNotificationParams", "object", fields=(
        *NOTIFICATION_META,
        Field("message", "string", when=Window(V2025_03_26)),
        Field("progress", "number", required=True),
        Field("progressToken", "ProgressToken", required=True),
        Field("total", "number"),
    )),
    Type("ProgressToken", "union", of=(Member("string"), Member("integer"))),
    Type("Prompt", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("arguments", "list<PromptArgument>"),
        Field("description", "string"),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("name", "string", required=True),
        Field("title", "string", when=Window(V2025_06_18)),
    )),
    Type("PromptArgument", "object", fields=(
        Field("description", "string"),
        Field("name", "string", required=True),
        Field("required", "boolean"),
        Field("title", "string", when=Window(V2025_06_18)),
    )),
    Type("PromptMessage", "object", fields=(
        Field("content", "TextContent | ImageContent | EmbeddedResource", required=True, when=Window(until=V2025_03_26)),
        Field("content", "TextContent | ImageContent | AudioContent | EmbeddedResource", required=True, when=Window(V2025_03_26, V2025_06_18)),
        Field("content", "ContentBlock", required=True, when=Window(V2025_06_18)),
        Field("role", "Role", required=True),
    )),
    Type("PromptReference", "object", fields=(
        Field("name", "string", required=True),
        Field("title", "string", when=Window(V2025_06_18)),
        Field("type", "'ref/prompt'", required=True),
    )),
    Type("ReadResourceRequestParams", "object", fields=(*REQUEST_META, *ROUND_TRIP, Field("uri", "string", required=True, limits=URI))),
    Type("ReadResourceResult", "object", fields=(
        *CACHEABLE,
        Field("contents", "list<TextResourceContents | BlobResourceContents>", required=True),
    )),
    Type("RelatedTaskMetadata", "object", when=ONE_REVISION, fields=(Field("taskId", "string", required=True),)),
    Type("Request", "object", fields=(
        Field("method", "string", required=True),
        Field("params", "RequestParams", when=Window(until=V2025_11_25)),
        Field("params", "map<any>", when=Window(V2025_11_25)),
    )),
    Type("RequestId", "union", of=(Member("string"), Member("integer"))),
    Type("RequestMetaObject", "object", open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/clientCapabilities", "ClientCapabilities", required=True, when=PER_REQUEST),
        Field("io.modelcontextprotocol/clientInfo", "Implementation", when=PER_REQUEST),
        Field("io.modelcontextprotocol/logLevel", "LoggingLevel", when=PER_REQUEST),
        Field("io.modelcontextprotocol/protocolVersion", "string", required=True, when=PER_REQUEST),
        Field("progressToken", "ProgressToken"),
    )),
    Type("RequestParams", "object", open=Window(until=V2025_11_25), fields=(Field("_meta", "RequestMetaObject", required=PER_REQUEST),)),
    Type("Resource", "object", fields=(
        *ANNOTATED,
        Field("description", "string"),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("mimeType", "string"),
        Field("name", "string", required=True),
        Field("size", "integer"),
        Field("title", "string", when=Window(V2025_06_18)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceContents", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("mimeType", "string"),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceLink", "object", when=Window(V2025_06_18), fields=(
        *DISPLAYED,
        Field("_meta", "MetaObject"),
        Field("annotations", "Annotations"),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("mimeType", "string"),
        Field("name", "string", required=True),
        Field("size", "integer"),
        Field("type", "'resource_link'", required=True),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceReference", "object", when=Window(until=V2025_06_18), fields=(
        Field("type", "'ref/resource'", required=True),
        Field("uri", "string", required=True, limits=URI_TEMPLATE),
    )),
    Type("ResourceRequestParams", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", required=PER_REQUEST),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceTemplate", "object", fields=(
        *ANNOTATED,
        Field("description", "string"),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("mimeType", "string"),
        Field("name", "string", required=True),
        Field("title", "string", when=Window(V2025_06_18)),
        Field("uriTemplate", "string", required=True, limits=URI_TEMPLATE),
    )),
    Type("ResourceTemplateReference", "object", when=Window(V2025_06_18), fields=(
        Field("type", "'ref/resource'", required=True),
        Field("uri", "string", required=True, limits=URI_TEMPLATE),
    )),
    Type("ResourceUpdatedNotificationParams", "object", fields=(*NOTIFICATION_META, Field("uri", "string", required=True, limits=URI))),
    Type("Result", "object", open=True, fields=(*RESULT_META, Field("resultType", "string", required=True, when=PER_REQUEST))),
    Type("ResultMetaObject", "object", when=PER_REQUEST, open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/serverInfo", "Implementation"),
    )),
    Type("ResultType", "alias", when=PER_REQUEST, of=(Member("string"),)),
    Type("Role", "enum", of=(Member("'assistant'"), Member("'user'"))),
    Type("Root", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("name", "string"),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("SamplingMessage", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_11_25)),
        Field("content", "TextContent | ImageContent", required=True, when=Window(until=V2025_03_26)),
        Field("content", "TextContent | ImageContent | AudioContent", required=True, when=Window(V2025_03_26, V2025_11_25)),
        Field("content", "TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | list<SamplingMessageContentBlock>", required=True, when=Window(V2025_11_25)),
        Field("role", "Role", required=True),
    )),
    Type("SamplingMessageContentBlock", "union", when=Window(V2025_11_25), of=(
        Member("TextContent"),
        Member("ImageContent"),
        Member("AudioContent"),
        Member("ToolUseContent"),
        Member("ToolResultContent"),
    )),
    Type("ServerCapabilities", "object", fields=(
        Field("completions", "map<any>", when=Window(V2025_03_26, V2026_07_28)),
        Field("completions", "JSONObject", when=PER_REQUEST),
        Field("experimental", "map<map<any>>", when=HANDSHAKE),
        Field("experimental", "map<JSONObject>", when=PER_REQUEST),
        Field("extensions", "map<JSONObject>", when=PER_REQUEST),
        Field("logging", "map<any>", when=HANDSHAKE),
        Field("logging", "JSONObject", when=PER_REQUEST),
        Field("prompts", "ServerCapabilities.prompts"),
        Field("resources", "ServerCapabilities.resources"),
        Field("tasks", "ServerCapabilities.tasks", when=ONE_REVISION),
        Field("tools", "ServerCapabilities.tools"),
    )),
    Type("ServerCapabilities.prompts", "object", fields=(Field("listChanged", "boolean"),)),
    Type("ServerCapabilities.resources", "object", fields=(
        Field("listChanged", "boolean"),
        Field("subscribe", "boolean"),
    )),
    Type("ServerCapabilities.tasks", "object", when=ONE_REVISION, fields=(
        Field("cancel", "map<any>"),
        Field("list", "map<any>"),
        Field("requests", "ServerCapabilities.tasks.requests"),
    )),
    Type("ServerCapabilities.tasks.requests", "object", when=ONE_REVISION, fields=(
        Field("tools", "ServerCapabilities.tasks.requests.tools"),
    )),
    Type("ServerCapabilities.tasks.requests.tools", "object", when=ONE_REVISION, fields=(Field("call", "map<any>"),)),
    Type("ServerCapabilities.tools", "object", fields=(Field("listChanged", "boolean"),)),
    Type("ServerNotification", "union", of=(
        Member("CancelledNotification"),
        Member("ProgressNotification"),
        Member("ResourceListChangedNotification"),
        Member("SubscriptionsAcknowledgedNotification", when=PER_REQUEST),
        Member("ResourceUpdatedNotification"),
        Member("PromptListChangedNotification"),
        Member("ToolListChangedNotification"),
        Member("TaskStatusNotification", when=ONE_REVISION),
        Member("LoggingMessageNotification"),
        Member("ElicitationCompleteNotification", when=ONE_REVISION),
    )),
    Type("ServerRequest", "union", when=HANDSHAKE, of=(
        Member("PingRequest"),
        Member("GetTaskRequest", when=Window(V2025_11_25)),
        Member("GetTaskPayloadRequest", when=Window(V2025_11_25)),
        Member("CancelTaskRequest", when=Window(V2025_11_25)),
        Member("ListTasksRequest", when=Window(V2025_11_25)),
        Member("CreateMessageRequest"),
        Member("ListRootsRequest"),
        Member("ElicitRequest", when=Window(V2025_06_18)),
    )),
    Type("ServerResult", "union", of=(
        Member("Result"),
        Member("InitializeResult", when=HANDSHAKE),
        Member("InputRequiredResult", when=PER_REQUEST),
        Member("DiscoverResult", when=PER_REQUEST),
        Member("ListResourcesResult"),
        Member("ListResourceTemplatesResult"),
        Member("ReadResourceResult"),
        Member("SubscriptionsListenResult", when=PER_REQUEST),
        Member("ListPromptsResult"),
        Member("GetPromptResult"),
        Member("ListToolsResult"),
        Member("CallToolResult"),
        Member("GetTaskResult", when=ONE_REVISION),
        Member("GetTaskPayloadResult", when=ONE_REVISION),
        Member("CancelTaskResult", when=ONE_REVISION),
        Member("ListTasksResult", when=ONE_REVISION),
        Member("CompleteResult"),
    )),
    Type("SetLevelRequestParams", "object", when=HANDSHAKE, fields=(*HANDSHAKE_META, Field("level", "LoggingLevel", required=True))),
    Type("SingleSelectEnumSchema", "union", when=Window(V2025_11_25), of=(
        Member("UntitledSingleSelectEnumSchema"),
        Member("TitledSingleSelectEnumSchema"),
    )),
    Type("StringSchema", "object", when=Window(V2025_06_18), fields=(
        *DISPLAYED,
        Field("default", "string", when=Window(V2025_11_25)),
        Field("format", "'date' | 'date-time' | 'email' | 'uri'"),
        Field("maxLength", "integer"),
        Field("minLength", "integer"),
        Field("type", "'string'", required=True),
    )),
    Type("SubscribeRequestParams", "object", when=HANDSHAKE, fields=(*HANDSHAKE_META, Field("uri", "string", required=True, limits=URI))),
    Type("SubscriptionFilter", "object", when=PER_REQUEST, fields=(
        Field("promptsListChanged", "boolean"),
        Field("resourceSubscriptions", "list<string>"),
        Field("resourcesListChanged", "boolean"),
        Field("toolsListChanged", "boolean"),
    )),
    Type("SubscriptionsAcknowledgedNotificationParams", "object", when=PER_REQUEST, fields=(
        Field("_meta", "NotificationMetaObject"),
        Field("notifications", "SubscriptionFilter", required=True),
    )),
    Type("SubscriptionsListenRequestParams", "object", when=PER_REQUEST, fields=(
        Field("_meta", "RequestMetaObject", required=True),
        Field("notifications", "SubscriptionFilter", required=True),
    )),
    Type("SubscriptionsListenResult", "object", when=PER_REQUEST, fields=(
        Field("_meta", "SubscriptionsListenResultMetaObject", required=True),
        Field("resultType", "'complete'", required=True, departs=TOLD_BY_VALUE),
    )),
    Type("SubscriptionsListenResultMetaObject", "object", when=PER_REQUEST, open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/serverInfo", "Implementation"),
        Field("io.modelcontextprotocol/subscriptionId", "RequestId", required=True),
    )),
    Type("Task", "object", when=ONE_REVISION, fields=(*TASK,)),
    Type("TaskAugmentedRequestParams", "object", when=ONE_REVISION, fields=(
        Field("_meta", "RequestMetaObject"),
        Field("task", "TaskMetadata"),
    )),
    Type("TaskMetadata", "object", when=ONE_REVISION, fields=(Field("ttl", "integer"),)),
    Type("TaskStatus", "enum", when=ONE_REVISION, of=(
        Member("'cancelled'"),
        Member("'completed'"),
        Member("'failed'"),
        Member("'input_required'"),
        Member("'working'"),
    )),
    Type("TaskStatusNotificationParams", "object", when=ONE_REVISION, fields=(*TASK, Field("_meta", "MetaObject"))),
    Type("TextContent", "object", fields=(
        *ANNOTATED,
        Field("text", "string", required=True),
        Field("type", "'text'", required=True),
    )),
    Type("TextResourceContents", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("mimeType", "string"),
        Field("text", "string", required=True),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("TitledMultiSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        *DISPLAYED,
        Field("default", "list<string>"),
        Field("items", "TitledMultiSelectEnumSchema.items", required=True),
        Field("maxItems", "integer"),
        Field("minItems", "integer"),
        Field("type", "'array'", required=True),
    )),
    Type("TitledMultiSelectEnumSchema.items", "object", when=Window(V2025_11_25), fields=(
        Field("anyOf", "list<TitledMultiSelectEnumSchema.items.anyOf[]>", required=True),
    )),
    Type("TitledMultiSelectEnumSchema.items.anyOf[]", "object", when=Window(V2025_11_25), fields=(
        Field("const", "string", required=True),
        Field("title", "string", required=True),
    )),
    Type("TitledSingleSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        *DISPLAYED,
        Field("default", "string"),
        Field("oneOf", "list<TitledSingleSelectEnumSchema.oneOf[]>", required=True),
        Field("type", "'string'", required=True),
    )),
    Type("TitledSingleSelectEnumSchema.oneOf[]", "object", when=Window(V2025_11_25), fields=(
        Field("const", "string", required=True),
        Field("title", "string", required=True),
    )),
    Type("Tool", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "ToolAnnotations", when=Window(V2025_03_26)),
        Field("description", "string"),
        Field("execution", "ToolExecution", when=ONE_REVISION),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("inputSchema", "Tool.inputSchema", required=True),
        Field("name", "string", required=True),
        Field("outputSchema", "Tool.outputSchema", when=Window(V2025_06_18)),
        Field("title", "string", when=Window(V2025_06_18)),
    )),
    Type("Tool.inputSchema", "object", open=PER_REQUEST, fields=(
        Field("$schema", "string", when=Window(V2025_11_25)),
        Field("properties", "map<map<any>>", when=HANDSHAKE),
        Field("required", "list<string>", when=HANDSHAKE),
        Field("type", "'object'", required=True),
    )),
    Type("Tool.outputSchema", "object", when=Window(V2025_06_18), open=PER_REQUEST, fields=(
        Field("$schema", "string", when=Window(V2025_11_25)),
        Field("properties", "map<map<any>>", when=HANDSHAKE),
        Field("required", "list<string>", when=HANDSHAKE),
        Field("type", "'object'", required=True, when=HANDSHAKE),
    )),
    Type("ToolAnnotations", "object", when=Window(V2025_03_26), fields=(
        Field("destructiveHint", "boolean"),
        Field("idempotentHint", "boolean"),
        Field("openWorldHint", "boolean"),
        Field("readOnlyHint", "boolean"),
        Field("title", "string"),
    )),
    Type("ToolChoice", "object", when=Window(V2025_11_25), fields=(Field("mode", "'auto' | 'none' | 'required'"),)),
    Type("ToolExecution", "object", when=ONE_REVISION, fields=(Field("taskSupport", "'forbidden' | 'optional' | 'required'"),)),
    Type("ToolResultContent", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "MetaObject"),
        Field("content", "list<ContentBlock>", required=True),
        Field("isError", "boolean"),
        Field("structuredContent", "map<any>", when=HANDSHAKE),
        Field("structuredContent", "any", when=PER_REQUEST),
        Field("toolUseId", "string", required=True),
        Field("type", "'tool_result'", required=True),
    )),
    Type("ToolUseContent", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "MetaObject"),
        Field("id", "string", required=True),
        Field("input", "map<any>", required=True),
        Field("name", "string", required=True),
        Field("type", "'tool_use'", required=True),
    )),
    Type("URLElicitationRequiredError", "object", when=ONE_REVISION, fields=(
        Field("error", "URLElicitationRequiredError.error", required=True),
    )),
    Type("URLElicitationRequiredError.error", "object", when=ONE_REVISION, fields=(
        Field("code", "-32042", required=True),
        Field("data", "URLElicitationRequiredError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("URLElicitationRequiredError.error.data", "object", when=ONE_REVISION, open=True, fields=(
        Field("elicitations", "list<ElicitRequestURLParams>", required=True),
    )),
    Type("UnsubscribeRequestParams", "object", when=HANDSHAKE, fields=(*HANDSHAKE_META, Field("uri", "string", required=True, limits=URI))),
    Type("UnsupportedProtocolVersionError", "object", when=PER_REQUEST, fields=(
        Field("error", "UnsupportedProtocolVersionError.error", required=True),
    )),
    Type("UnsupportedProtocolVersionError.error", "object", when=PER_REQUEST, fields=(
        Field("code", "-32022", required=True),
        Field("data", "UnsupportedProtocolVersionError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("UnsupportedProtocolVersionError.error.data", "object", when=PER_REQUEST, fields=(
        Field("requested", "string", required=True),
        Field("supported", "list<string>", required=True),
    )),
    Type("UntitledMultiSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        *DISPLAYED,
        Field("default", "list<string>"),
        Field("items", "UntitledMultiSelectEnumSchema.items", required=True),
        Field("maxItems", "integer"),
        Field("minItems", "integer"),
        Field("type", "'array'", required=True),
    )),
    Type("UntitledMultiSelectEnumSchema.items", "object", when=Window(V2025_11_25), fields=(
        Field("enum", "list<string>", required=True),
        Field("type", "'string'", required=True),
    )),
    Type("UntitledSingleSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        *DISPLAYED,
        Field("default", "string"),
        Field("enum", "list<string>", required=True),
        Field("type", "'string'", required=True),
    )),
)
# fmt: on


def _messages() -> Iterator[Type]:
    """Yield the types of messages, and of the responses that the files list since 2026-07-28."""
    methods: dict[str, list[Method]] = {}
    for row in METHODS:
        if not row.extension:
            methods.setdefault(row.name, []).append(row)
    for name, method in MESSAGES.items():
        rows = methods[method]
        fields = (Field("method", f"'{method}'", required=True), *_params(rows))
        yield Type(name, "object", fields, when=_span(rows))
        response = name.removesuffix("Request") + "ResultResponse"
        for row in rows:
            if row.result is not None and row.form == "wire" and PER_REQUEST.holds(row.when.since):
                result = Field("result", row.result, required=True)
                yield Type(response, "object", (result,), when=row.when)


def _params(rows: list[Method]) -> Iterator[Field]:
    by_type = [(name, list(same)) for name, same in groupby(rows, lambda row: row.params or "")]
    for name, same in by_type:
        needed = [row for row in same if row.params_required]
        required = needed == same or (_span(needed) if needed else False)
        yield Field("params", name, required, ALWAYS if len(by_type) == 1 else _span(same))


def _span(rows: list[Method]) -> Window:
    return Window(rows[0].when.since, rows[-1].when.until)


def _in_order(row: Type) -> Type:
    fields = tuple(sorted(row.fields, key=_NAME))
    return row if fields == row.fields else row._replace(fields=fields)


_NAME: Final = itemgetter(0)

TYPES: Final = tuple(sorted((*map(_in_order, _WRITTEN), *_messages()), key=_NAME))
