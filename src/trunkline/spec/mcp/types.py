"""The types of every MCP revision: one row per name, one field per line.

Rows and fields are in the order of the official schema files, so that the two can be
read side by side; `tools/import_schema.py` documents how anonymous types were named.
Envelope members (`jsonrpc`, `id`) are on the `JSONRPC...` types only.

Where a row differs from the files on purpose, `departs` says why. The files are
generated from TypeScript, which loses some information.
"""

from __future__ import annotations

from typing import Final

from ..revisions import V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, Window
from ..rows import Field, Limits, Member, Type

__all__ = ["TYPES"]

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
TYPES: Final[tuple[Type, ...]] = (
    Type("Annotated", "object", when=Window(until=V2025_03_26), fields=(
        Field("annotations", "Annotations"),
    )),
    Type("Annotations", "object", fields=(
        Field("audience", "list<Role>"),
        Field("lastModified", "string", when=Window(V2025_06_18)),
        Field("priority", "number", limits=FRACTION),
    )),
    Type("AudioContent", "object", when=Window(V2025_03_26), fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
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
        Field("default", "boolean"),
        Field("description", "string"),
        Field("title", "string"),
        Field("type", "'boolean'", required=True),
    )),
    Type("CacheableResult", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "ResultMetaObject"),
        Field("cacheScope", "'private' | 'public'", required=True),
        Field("resultType", "string", required=True),
        Field("ttlMs", "integer", required=True, limits=NOT_NEGATIVE),
    )),
    Type("CallToolRequest", "object", fields=(
        Field("method", "'tools/call'", required=True),
        Field("params", "CallToolRequestParams", required=True),
    )),
    Type("CallToolRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28), when=Window(V2025_11_25)),
        Field("arguments", "map<any>"),
        Field("inputResponses", "InputResponses", when=Window(V2026_07_28)),
        Field("name", "string", required=True),
        Field("requestState", "string", when=Window(V2026_07_28)),
        Field("task", "TaskMetadata", when=Window(V2025_11_25, V2026_07_28)),
    )),
    Type("CallToolResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("content", "list<TextContent | ImageContent | EmbeddedResource>", required=True, when=Window(until=V2025_03_26)),
        Field("content", "list<TextContent | ImageContent | AudioContent | EmbeddedResource>", required=True, when=Window(V2025_03_26, V2025_06_18)),
        Field("content", "list<ContentBlock>", required=True, when=Window(V2025_06_18)),
        Field("isError", "boolean"),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("structuredContent", "map<any>", when=Window(V2025_06_18, V2026_07_28)),
        Field("structuredContent", "any", when=Window(V2026_07_28)),
    )),
    Type("CallToolResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "InputRequiredResult | CallToolResult", required=True),
    )),
    Type("CancelTaskRequest", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'tasks/cancel'", required=True),
        Field("params", "CancelTaskRequestParams", required=True),
    )),
    Type("CancelTaskRequestParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("CancelTaskResult", "object", when=Window(V2025_11_25, V2026_07_28), open=True, fields=(
        Field("_meta", "MetaObject"),
        Field("createdAt", "string", required=True),
        Field("lastUpdatedAt", "string", required=True),
        Field("pollInterval", "integer"),
        Field("status", "TaskStatus", required=True),
        Field("statusMessage", "string"),
        Field("taskId", "string", required=True),
        Field("ttl", "integer | null", required=True),
    )),
    Type("CancelledNotification", "object", fields=(
        Field("method", "'notifications/cancelled'", required=True),
        Field("params", "CancelledNotificationParams", required=True),
    )),
    Type("CancelledNotificationParams", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "MetaObject", when=Window(V2025_11_25, V2026_07_28)),
        Field("_meta", "NotificationMetaObject", when=Window(V2026_07_28)),
        Field("reason", "string"),
        Field("requestId", "RequestId", required=True, when=Window(until=V2025_11_25)),
        Field("requestId", "RequestId", when=Window(V2025_11_25, V2026_07_28)),
        Field("requestId", "RequestId", required=True, when=Window(V2026_07_28)),
    )),
    Type("ClientCapabilities", "object", fields=(
        Field("elicitation", "map<any>", when=Window(V2025_06_18, V2025_11_25)),
        Field("elicitation", "ClientCapabilities.elicitation", when=Window(V2025_11_25)),
        Field("experimental", "map<map<any>>", when=Window(until=V2026_07_28)),
        Field("experimental", "map<JSONObject>", when=Window(V2026_07_28)),
        Field("extensions", "map<JSONObject>", when=Window(V2026_07_28)),
        Field("roots", "ClientCapabilities.roots"),
        Field("sampling", "map<any>", when=Window(until=V2025_11_25)),
        Field("sampling", "ClientCapabilities.sampling", when=Window(V2025_11_25)),
        Field("tasks", "ClientCapabilities.tasks", when=Window(V2025_11_25, V2026_07_28)),
    )),
    Type("ClientCapabilities.elicitation", "object", when=Window(V2025_11_25), fields=(
        Field("form", "map<any>", when=Window(until=V2026_07_28)),
        Field("form", "JSONObject", when=Window(V2026_07_28)),
        Field("url", "map<any>", when=Window(until=V2026_07_28)),
        Field("url", "JSONObject", when=Window(V2026_07_28)),
    )),
    Type("ClientCapabilities.roots", "object", fields=(
        Field("listChanged", "boolean", when=Window(until=V2026_07_28)),
    )),
    Type("ClientCapabilities.sampling", "object", when=Window(V2025_11_25), fields=(
        Field("context", "map<any>", when=Window(until=V2026_07_28)),
        Field("context", "JSONObject", when=Window(V2026_07_28)),
        Field("tools", "map<any>", when=Window(until=V2026_07_28)),
        Field("tools", "JSONObject", when=Window(V2026_07_28)),
    )),
    Type("ClientCapabilities.tasks", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("cancel", "map<any>"),
        Field("list", "map<any>"),
        Field("requests", "ClientCapabilities.tasks.requests"),
    )),
    Type("ClientCapabilities.tasks.requests", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("elicitation", "ClientCapabilities.tasks.requests.elicitation"),
        Field("sampling", "ClientCapabilities.tasks.requests.sampling"),
    )),
    Type("ClientCapabilities.tasks.requests.elicitation", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("create", "map<any>"),
    )),
    Type("ClientCapabilities.tasks.requests.sampling", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("createMessage", "map<any>"),
    )),
    Type("ClientNotification", "union", of=(
        Member("CancelledNotification"),
        Member("InitializedNotification", when=Window(until=V2026_07_28)),
        Member("ProgressNotification", when=Window(until=V2026_07_28)),
        Member("TaskStatusNotification", when=Window(V2025_11_25, V2026_07_28)),
        Member("RootsListChangedNotification", when=Window(until=V2026_07_28)),
    )),
    Type("ClientRequest", "union", of=(
        Member("InitializeRequest", when=Window(until=V2026_07_28)),
        Member("PingRequest", when=Window(until=V2026_07_28)),
        Member("DiscoverRequest", when=Window(V2026_07_28)),
        Member("ListResourcesRequest"),
        Member("ListResourceTemplatesRequest"),
        Member("ReadResourceRequest"),
        Member("SubscribeRequest", when=Window(until=V2026_07_28)),
        Member("UnsubscribeRequest", when=Window(until=V2026_07_28)),
        Member("SubscriptionsListenRequest", when=Window(V2026_07_28)),
        Member("ListPromptsRequest"),
        Member("GetPromptRequest"),
        Member("ListToolsRequest"),
        Member("CallToolRequest"),
        Member("GetTaskRequest", when=Window(V2025_11_25, V2026_07_28)),
        Member("GetTaskPayloadRequest", when=Window(V2025_11_25, V2026_07_28)),
        Member("CancelTaskRequest", when=Window(V2025_11_25, V2026_07_28)),
        Member("ListTasksRequest", when=Window(V2025_11_25, V2026_07_28)),
        Member("SetLevelRequest", when=Window(until=V2026_07_28)),
        Member("CompleteRequest"),
    )),
    Type("ClientResult", "union", of=(
        Member("Result"),
        Member("GetTaskResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("GetTaskPayloadResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("CancelTaskResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("ListTasksResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("CreateMessageResult", when=Window(until=V2026_07_28)),
        Member("ListRootsResult", when=Window(until=V2026_07_28)),
        Member("ElicitResult", when=Window(V2025_06_18, V2026_07_28)),
    )),
    Type("CompleteRequest", "object", fields=(
        Field("method", "'completion/complete'", required=True),
        Field("params", "CompleteRequestParams", required=True),
    )),
    Type("CompleteRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28), when=Window(V2025_11_25)),
        Field("argument", "CompleteRequestParams.argument", required=True),
        Field("context", "CompleteRequestParams.context", when=Window(V2025_06_18)),
        Field("ref", "PromptReference | ResourceReference", required=True, when=Window(until=V2025_06_18)),
        Field("ref", "PromptReference | ResourceTemplateReference", required=True, when=Window(V2025_06_18)),
    )),
    Type("CompleteRequestParams.argument", "object", fields=(
        Field("name", "string", required=True),
        Field("value", "string", required=True),
    )),
    Type("CompleteRequestParams.context", "object", when=Window(V2025_06_18), fields=(
        Field("arguments", "map<string>"),
    )),
    Type("CompleteResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("completion", "CompleteResult.completion", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
    )),
    Type("CompleteResult.completion", "object", fields=(
        Field("hasMore", "boolean"),
        Field("total", "integer"),
        Field("values", "list<string>", required=True, when=Window(until=V2026_07_28), limits=AT_MOST_100, departs=ONLY_IN_PROSE),
        Field("values", "list<string>", required=True, when=Window(V2026_07_28), limits=AT_MOST_100),
    )),
    Type("CompleteResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "CompleteResult", required=True),
    )),
    Type("ContentBlock", "union", when=Window(V2025_06_18), of=(
        Member("TextContent"),
        Member("ImageContent"),
        Member("AudioContent"),
        Member("ResourceLink"),
        Member("EmbeddedResource"),
    )),
    Type("CreateMessageRequest", "object", fields=(
        Field("method", "'sampling/createMessage'", required=True),
        Field("params", "CreateMessageRequestParams", required=True),
    )),
    Type("CreateMessageRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=Window(V2025_11_25, V2026_07_28)),
        Field("includeContext", "'allServers' | 'none' | 'thisServer'"),
        Field("maxTokens", "integer", required=True),
        Field("messages", "list<SamplingMessage>", required=True),
        Field("metadata", "map<any>", when=Window(until=V2026_07_28)),
        Field("metadata", "JSONObject", when=Window(V2026_07_28)),
        Field("modelPreferences", "ModelPreferences"),
        Field("stopSequences", "list<string>"),
        Field("systemPrompt", "string"),
        Field("task", "TaskMetadata", when=Window(V2025_11_25, V2026_07_28)),
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
    Type("CreateTaskResult", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "MetaObject"),
        Field("task", "Task", required=True),
    )),
    Type("Cursor", "alias", of=(Member("string"),)),
    Type("DiscoverRequest", "object", when=Window(V2026_07_28), fields=(
        Field("method", "'server/discover'", required=True),
        Field("params", "RequestParams", required=True),
    )),
    Type("DiscoverResult", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "ResultMetaObject"),
        Field("cacheScope", "'private' | 'public'", required=True),
        Field("capabilities", "ServerCapabilities", required=True),
        Field("instructions", "string"),
        Field("resultType", "'complete'", required=True, departs=TOLD_BY_VALUE),
        Field("supportedVersions", "list<string>", required=True),
        Field("ttlMs", "integer", required=True, limits=NOT_NEGATIVE),
    )),
    Type("DiscoverResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "DiscoverResult", required=True),
    )),
    Type("ElicitRequest", "object", when=Window(V2025_06_18), fields=(
        Field("method", "'elicitation/create'", required=True),
        Field("params", "ElicitRequestParams", required=True),
    )),
    Type("ElicitRequestFormParams", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2026_07_28)),
        Field("message", "string", required=True),
        Field("mode", "'form'"),
        Field("requestedSchema", "ElicitRequestFormParams.requestedSchema", required=True),
        Field("task", "TaskMetadata", when=Window(until=V2026_07_28)),
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
        Field("_meta", "RequestMetaObject", when=Window(until=V2026_07_28)),
        Field("elicitationId", "string", required=True, when=Window(until=V2026_07_28)),
        Field("message", "string", required=True),
        Field("mode", "'url'", required=True),
        Field("task", "TaskMetadata", when=Window(until=V2026_07_28)),
        Field("url", "string", required=True, limits=URI),
    )),
    Type("ElicitResult", "object", when=Window(V2025_06_18), fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("action", "'accept' | 'cancel' | 'decline'", required=True),
        Field("content", "map<string | number | boolean>", when=Window(until=V2025_11_25), departs=LOST_FRACTIONS),
        Field("content", "map<list<string> | string | number | boolean>", when=Window(V2025_11_25), departs=LOST_FRACTIONS),
    )),
    Type("ElicitationCompleteNotification", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'notifications/elicitation/complete'", required=True),
        Field("params", "ElicitationCompleteNotificationParams", required=True),
    )),
    Type("ElicitationCompleteNotificationParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "MetaObject", departs=LOST_META),
        Field("elicitationId", "string", required=True),
    )),
    Type("EmbeddedResource", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
        Field("resource", "TextResourceContents | BlobResourceContents", required=True),
        Field("type", "'resource'", required=True),
    )),
    Type("EmptyResult", "alias", of=(Member("Result"),)),
    Type("EnumSchema", "object", when=Window(V2025_06_18, V2025_11_25), fields=(
        Field("description", "string"),
        Field("enum", "list<string>", required=True),
        Field("enumNames", "list<string>"),
        Field("title", "string"),
        Field("type", "'string'", required=True),
    )),
    Type("EnumSchema", "union", when=Window(V2025_11_25), of=(
        Member("UntitledSingleSelectEnumSchema"),
        Member("TitledSingleSelectEnumSchema"),
        Member("UntitledMultiSelectEnumSchema"),
        Member("TitledMultiSelectEnumSchema"),
        Member("LegacyTitledEnumSchema"),
    )),
    Type("Error", "object", when=Window(V2025_11_25), fields=(
        Field("code", "integer", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("GetPromptRequest", "object", fields=(
        Field("method", "'prompts/get'", required=True),
        Field("params", "GetPromptRequestParams", required=True),
    )),
    Type("GetPromptRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28), when=Window(V2025_11_25)),
        Field("arguments", "map<string>"),
        Field("inputResponses", "InputResponses", when=Window(V2026_07_28)),
        Field("name", "string", required=True),
        Field("requestState", "string", when=Window(V2026_07_28)),
    )),
    Type("GetPromptResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("description", "string"),
        Field("messages", "list<PromptMessage>", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
    )),
    Type("GetPromptResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "InputRequiredResult | GetPromptResult", required=True),
    )),
    Type("GetTaskPayloadRequest", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'tasks/result'", required=True),
        Field("params", "GetTaskPayloadRequestParams", required=True),
    )),
    Type("GetTaskPayloadRequestParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("GetTaskPayloadResult", "object", when=Window(V2025_11_25, V2026_07_28), open=True, fields=(
        Field("_meta", "MetaObject"),
    )),
    Type("GetTaskRequest", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'tasks/get'", required=True),
        Field("params", "GetTaskRequestParams", required=True),
    )),
    Type("GetTaskRequestParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", departs=LOST_META),
        Field("taskId", "string", required=True),
    )),
    Type("GetTaskResult", "object", when=Window(V2025_11_25, V2026_07_28), open=True, fields=(
        Field("_meta", "MetaObject"),
        Field("createdAt", "string", required=True),
        Field("lastUpdatedAt", "string", required=True),
        Field("pollInterval", "integer"),
        Field("status", "TaskStatus", required=True),
        Field("statusMessage", "string"),
        Field("taskId", "string", required=True),
        Field("ttl", "integer | null", required=True),
    )),
    Type("HeaderMismatchError", "object", when=Window(V2026_07_28), fields=(
        Field("error", "HeaderMismatchError.error", required=True),
    )),
    Type("HeaderMismatchError.error", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32020", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("Icon", "object", when=Window(V2025_11_25), fields=(
        Field("mimeType", "string"),
        Field("sizes", "list<string>"),
        Field("src", "string", required=True, limits=URI),
        Field("theme", "'dark' | 'light'"),
    )),
    Type("Icons", "object", when=Window(V2025_11_25), fields=(
        Field("icons", "list<Icon>"),
    )),
    Type("ImageContent", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
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
    Type("InitializeRequest", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'initialize'", required=True),
        Field("params", "InitializeRequestParams", required=True),
    )),
    Type("InitializeRequestParams", "object", when=Window(until=V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=Window(V2025_11_25)),
        Field("capabilities", "ClientCapabilities", required=True),
        Field("clientInfo", "Implementation", required=True),
        Field("protocolVersion", "string", required=True),
    )),
    Type("InitializeResult", "object", when=Window(until=V2026_07_28), fields=(
        Field("_meta", "MetaObject"),
        Field("capabilities", "ServerCapabilities", required=True),
        Field("instructions", "string"),
        Field("protocolVersion", "string", required=True),
        Field("serverInfo", "Implementation", required=True),
    )),
    Type("InitializedNotification", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'notifications/initialized'", required=True),
        Field("params", "NotificationParams"),
    )),
    Type("InputRequest", "union", when=Window(V2026_07_28), of=(
        Member("CreateMessageRequest"),
        Member("ListRootsRequest"),
        Member("ElicitRequest"),
    )),
    Type("InputRequests", "alias", when=Window(V2026_07_28), of=(Member("map<InputRequest>"),)),
    Type("InputRequiredResult", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "ResultMetaObject"),
        Field("inputRequests", "InputRequests"),
        Field("requestState", "string"),
        Field("resultType", "'input_required'", required=True, departs=TOLD_BY_VALUE),
    )),
    Type("InputResponse", "union", when=Window(V2026_07_28), of=(
        Member("CreateMessageResult"),
        Member("ListRootsResult"),
        Member("ElicitResult"),
    )),
    Type("InputResponseRequestParams", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", required=True),
        Field("inputResponses", "InputResponses"),
        Field("requestState", "string"),
    )),
    Type("InputResponses", "alias", when=Window(V2026_07_28), of=(Member("map<InputResponse>"),)),
    Type("InternalError", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32603", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("InvalidParamsError", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32602", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("InvalidRequestError", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32600", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("JSONArray", "alias", when=Window(V2026_07_28), of=(Member("list<JSONValue>"),)),
    Type("JSONObject", "alias", when=Window(V2026_07_28), of=(Member("map<JSONValue>"),)),
    Type("JSONRPCBatchRequest", "alias", when=Window(V2025_03_26, V2025_06_18), of=(Member("list<JSONRPCRequest | JSONRPCNotification>"),)),
    Type("JSONRPCBatchResponse", "alias", when=Window(V2025_03_26, V2025_06_18), of=(Member("list<JSONRPCResponse | JSONRPCError>"),)),
    Type("JSONRPCError", "object", when=Window(until=V2025_11_25), fields=(
        Field("error", "JSONRPCError.error", required=True),
        Field("id", "RequestId | null", required=True, departs=UNREADABLE_ID),
        Field("jsonrpc", "'2.0'", required=True),
    )),
    Type("JSONRPCError.error", "object", when=Window(until=V2025_11_25), fields=(
        Field("code", "integer", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
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
    Type("JSONRPCResponse", "union", when=Window(V2025_11_25), of=(
        Member("JSONRPCResultResponse"),
        Member("JSONRPCErrorResponse"),
    )),
    Type("JSONRPCResultResponse", "object", when=Window(V2025_11_25), fields=(
        Field("id", "RequestId", required=True),
        Field("jsonrpc", "'2.0'", required=True),
        Field("result", "Result", required=True),
    )),
    Type("JSONValue", "union", when=Window(V2026_07_28), departs=LOST_JSON, of=(
        Member("JSONObject"),
        Member("list<JSONValue>"),
        Member("string"),
        Member("number"),
        Member("boolean"),
        Member("null"),
    )),
    Type("LegacyTitledEnumSchema", "object", when=Window(V2025_11_25), fields=(
        Field("default", "string"),
        Field("description", "string"),
        Field("enum", "list<string>", required=True),
        Field("enumNames", "list<string>"),
        Field("title", "string"),
        Field("type", "'string'", required=True),
    )),
    Type("ListPromptsRequest", "object", fields=(
        Field("method", "'prompts/list'", required=True),
        Field("params", "PaginatedRequestParams", required=Window(V2026_07_28)),
    )),
    Type("ListPromptsResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("cacheScope", "'private' | 'public'", required=True, when=Window(V2026_07_28)),
        Field("nextCursor", "string"),
        Field("prompts", "list<Prompt>", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("ttlMs", "integer", required=True, when=Window(V2026_07_28), limits=NOT_NEGATIVE),
    )),
    Type("ListPromptsResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "ListPromptsResult", required=True),
    )),
    Type("ListResourceTemplatesRequest", "object", fields=(
        Field("method", "'resources/templates/list'", required=True),
        Field("params", "PaginatedRequestParams", required=Window(V2026_07_28)),
    )),
    Type("ListResourceTemplatesResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("cacheScope", "'private' | 'public'", required=True, when=Window(V2026_07_28)),
        Field("nextCursor", "string"),
        Field("resourceTemplates", "list<ResourceTemplate>", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("ttlMs", "integer", required=True, when=Window(V2026_07_28), limits=NOT_NEGATIVE),
    )),
    Type("ListResourceTemplatesResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "ListResourceTemplatesResult", required=True),
    )),
    Type("ListResourcesRequest", "object", fields=(
        Field("method", "'resources/list'", required=True),
        Field("params", "PaginatedRequestParams", required=Window(V2026_07_28)),
    )),
    Type("ListResourcesResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("cacheScope", "'private' | 'public'", required=True, when=Window(V2026_07_28)),
        Field("nextCursor", "string"),
        Field("resources", "list<Resource>", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("ttlMs", "integer", required=True, when=Window(V2026_07_28), limits=NOT_NEGATIVE),
    )),
    Type("ListResourcesResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "ListResourcesResult", required=True),
    )),
    Type("ListRootsRequest", "object", fields=(
        Field("method", "'roots/list'", required=True),
        Field("params", "RequestParams", when=Window(until=V2026_07_28)),
        Field("params", "ListRootsRequestParams", when=Window(V2026_07_28)),
    )),
    Type("ListRootsRequestParams", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "MetaObject"),
    )),
    Type("ListRootsResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("roots", "list<Root>", required=True),
    )),
    Type("ListTasksRequest", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'tasks/list'", required=True),
        Field("params", "PaginatedRequestParams"),
    )),
    Type("ListTasksResult", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "MetaObject"),
        Field("nextCursor", "string"),
        Field("tasks", "list<Task>", required=True),
    )),
    Type("ListToolsRequest", "object", fields=(
        Field("method", "'tools/list'", required=True),
        Field("params", "PaginatedRequestParams", required=Window(V2026_07_28)),
    )),
    Type("ListToolsResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("cacheScope", "'private' | 'public'", required=True, when=Window(V2026_07_28)),
        Field("nextCursor", "string"),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("tools", "list<Tool>", required=True),
        Field("ttlMs", "integer", required=True, when=Window(V2026_07_28), limits=NOT_NEGATIVE),
    )),
    Type("ListToolsResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "ListToolsResult", required=True),
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
    Type("LoggingMessageNotification", "object", fields=(
        Field("method", "'notifications/message'", required=True),
        Field("params", "LoggingMessageNotificationParams", required=True),
    )),
    Type("LoggingMessageNotificationParams", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "MetaObject", when=Window(V2025_11_25, V2026_07_28)),
        Field("_meta", "NotificationMetaObject", when=Window(V2026_07_28)),
        Field("data", "any", required=True),
        Field("level", "LoggingLevel", required=True),
        Field("logger", "string"),
    )),
    Type("MetaObject", "alias", of=(Member("map<any>"),)),
    Type("MethodNotFoundError", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32601", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("MissingRequiredClientCapabilityError", "object", when=Window(V2026_07_28), fields=(
        Field("error", "MissingRequiredClientCapabilityError.error", required=True),
    )),
    Type("MissingRequiredClientCapabilityError.error", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32021", required=True),
        Field("data", "MissingRequiredClientCapabilityError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("MissingRequiredClientCapabilityError.error.data", "object", when=Window(V2026_07_28), fields=(
        Field("requiredCapabilities", "ClientCapabilities", required=True),
    )),
    Type("ModelHint", "object", fields=(
        Field("name", "string"),
    )),
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
    Type("NotificationMetaObject", "object", when=Window(V2026_07_28), open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/subscriptionId", "RequestId"),
    )),
    Type("NotificationParams", "object", open=Window(until=V2025_11_25), fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "NotificationMetaObject", when=Window(V2026_07_28)),
    )),
    Type("NumberSchema", "object", when=Window(V2025_06_18), fields=(
        Field("default", "number", when=Window(V2025_11_25)),
        Field("description", "string"),
        Field("maximum", "number"),
        Field("minimum", "number"),
        Field("title", "string"),
        Field("type", "'integer' | 'number'", required=True),
    )),
    Type("PaginatedRequest", "object", fields=(
        Field("method", "string", required=True),
        Field("params", "PaginatedRequestParams", required=Window(V2026_07_28)),
    )),
    Type("PaginatedRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28), when=Window(V2025_11_25)),
        Field("cursor", "string"),
    )),
    Type("PaginatedResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("nextCursor", "string"),
        Field("resultType", "string", required=True, when=Window(V2026_07_28)),
    )),
    Type("ParseError", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32700", required=True),
        Field("data", "any"),
        Field("message", "string", required=True),
    )),
    Type("PingRequest", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'ping'", required=True),
        Field("params", "RequestParams"),
    )),
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
    Type("ProgressNotification", "object", fields=(
        Field("method", "'notifications/progress'", required=True),
        Field("params", "ProgressNotificationParams", required=True),
    )),
    Type("ProgressNotificationParams", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "MetaObject", when=Window(V2025_11_25, V2026_07_28)),
        Field("_meta", "NotificationMetaObject", when=Window(V2026_07_28)),
        Field("message", "string", when=Window(V2025_03_26)),
        Field("progress", "number", required=True),
        Field("progressToken", "ProgressToken", required=True),
        Field("total", "number"),
    )),
    Type("ProgressToken", "union", of=(
        Member("string"),
        Member("integer"),
    )),
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
    Type("PromptListChangedNotification", "object", fields=(
        Field("method", "'notifications/prompts/list_changed'", required=True),
        Field("params", "NotificationParams"),
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
    Type("ReadResourceRequest", "object", fields=(
        Field("method", "'resources/read'", required=True),
        Field("params", "ReadResourceRequestParams", required=True),
    )),
    Type("ReadResourceRequestParams", "object", fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28), when=Window(V2025_11_25)),
        Field("inputResponses", "InputResponses", when=Window(V2026_07_28)),
        Field("requestState", "string", when=Window(V2026_07_28)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ReadResourceResult", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("cacheScope", "'private' | 'public'", required=True, when=Window(V2026_07_28)),
        Field("contents", "list<TextResourceContents | BlobResourceContents>", required=True),
        Field("resultType", "'complete'", required=True, when=Window(V2026_07_28), departs=TOLD_BY_VALUE),
        Field("ttlMs", "integer", required=True, when=Window(V2026_07_28), limits=NOT_NEGATIVE),
    )),
    Type("ReadResourceResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "InputRequiredResult | ReadResourceResult", required=True),
    )),
    Type("RelatedTaskMetadata", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("taskId", "string", required=True),
    )),
    Type("Request", "object", fields=(
        Field("method", "string", required=True),
        Field("params", "RequestParams", when=Window(until=V2025_11_25)),
        Field("params", "map<any>", when=Window(V2025_11_25)),
    )),
    Type("RequestId", "union", of=(
        Member("string"),
        Member("integer"),
    )),
    Type("RequestMetaObject", "object", open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/clientCapabilities", "ClientCapabilities", required=True, when=Window(V2026_07_28)),
        Field("io.modelcontextprotocol/clientInfo", "Implementation", when=Window(V2026_07_28)),
        Field("io.modelcontextprotocol/logLevel", "LoggingLevel", when=Window(V2026_07_28)),
        Field("io.modelcontextprotocol/protocolVersion", "string", required=True, when=Window(V2026_07_28)),
        Field("progressToken", "ProgressToken"),
    )),
    Type("RequestParams", "object", open=Window(until=V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28)),
    )),
    Type("Resource", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
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
        Field("_meta", "MetaObject"),
        Field("annotations", "Annotations"),
        Field("description", "string"),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("mimeType", "string"),
        Field("name", "string", required=True),
        Field("size", "integer"),
        Field("title", "string"),
        Field("type", "'resource_link'", required=True),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceListChangedNotification", "object", fields=(
        Field("method", "'notifications/resources/list_changed'", required=True),
        Field("params", "NotificationParams"),
    )),
    Type("ResourceReference", "object", when=Window(until=V2025_06_18), fields=(
        Field("type", "'ref/resource'", required=True),
        Field("uri", "string", required=True, limits=URI_TEMPLATE),
    )),
    Type("ResourceRequestParams", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "RequestMetaObject", required=Window(V2026_07_28)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("ResourceTemplate", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
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
    Type("ResourceUpdatedNotification", "object", fields=(
        Field("method", "'notifications/resources/updated'", required=True),
        Field("params", "ResourceUpdatedNotificationParams", required=True),
    )),
    Type("ResourceUpdatedNotificationParams", "object", fields=(
        Field("_meta", "MetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "MetaObject", when=Window(V2025_11_25, V2026_07_28)),
        Field("_meta", "NotificationMetaObject", when=Window(V2026_07_28)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("Result", "object", open=True, fields=(
        Field("_meta", "MetaObject", when=Window(until=V2026_07_28)),
        Field("_meta", "ResultMetaObject", when=Window(V2026_07_28)),
        Field("resultType", "string", required=True, when=Window(V2026_07_28)),
    )),
    Type("ResultMetaObject", "object", when=Window(V2026_07_28), open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/serverInfo", "Implementation"),
    )),
    Type("ResultType", "alias", when=Window(V2026_07_28), of=(Member("string"),)),
    Type("Role", "enum", of=(
        Member("'assistant'"),
        Member("'user'"),
    )),
    Type("Root", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("name", "string"),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("RootsListChangedNotification", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'notifications/roots/list_changed'", required=True),
        Field("params", "NotificationParams"),
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
        Field("completions", "JSONObject", when=Window(V2026_07_28)),
        Field("experimental", "map<map<any>>", when=Window(until=V2026_07_28)),
        Field("experimental", "map<JSONObject>", when=Window(V2026_07_28)),
        Field("extensions", "map<JSONObject>", when=Window(V2026_07_28)),
        Field("logging", "map<any>", when=Window(until=V2026_07_28)),
        Field("logging", "JSONObject", when=Window(V2026_07_28)),
        Field("prompts", "ServerCapabilities.prompts"),
        Field("resources", "ServerCapabilities.resources"),
        Field("tasks", "ServerCapabilities.tasks", when=Window(V2025_11_25, V2026_07_28)),
        Field("tools", "ServerCapabilities.tools"),
    )),
    Type("ServerCapabilities.prompts", "object", fields=(
        Field("listChanged", "boolean"),
    )),
    Type("ServerCapabilities.resources", "object", fields=(
        Field("listChanged", "boolean"),
        Field("subscribe", "boolean"),
    )),
    Type("ServerCapabilities.tasks", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("cancel", "map<any>"),
        Field("list", "map<any>"),
        Field("requests", "ServerCapabilities.tasks.requests"),
    )),
    Type("ServerCapabilities.tasks.requests", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("tools", "ServerCapabilities.tasks.requests.tools"),
    )),
    Type("ServerCapabilities.tasks.requests.tools", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("call", "map<any>"),
    )),
    Type("ServerCapabilities.tools", "object", fields=(
        Field("listChanged", "boolean"),
    )),
    Type("ServerNotification", "union", of=(
        Member("CancelledNotification"),
        Member("ProgressNotification"),
        Member("ResourceListChangedNotification"),
        Member("SubscriptionsAcknowledgedNotification", when=Window(V2026_07_28)),
        Member("ResourceUpdatedNotification"),
        Member("PromptListChangedNotification"),
        Member("ToolListChangedNotification"),
        Member("TaskStatusNotification", when=Window(V2025_11_25, V2026_07_28)),
        Member("LoggingMessageNotification"),
        Member("ElicitationCompleteNotification", when=Window(V2025_11_25, V2026_07_28)),
    )),
    Type("ServerRequest", "union", when=Window(until=V2026_07_28), of=(
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
        Member("InitializeResult", when=Window(until=V2026_07_28)),
        Member("InputRequiredResult", when=Window(V2026_07_28)),
        Member("DiscoverResult", when=Window(V2026_07_28)),
        Member("ListResourcesResult"),
        Member("ListResourceTemplatesResult"),
        Member("ReadResourceResult"),
        Member("SubscriptionsListenResult", when=Window(V2026_07_28)),
        Member("ListPromptsResult"),
        Member("GetPromptResult"),
        Member("ListToolsResult"),
        Member("CallToolResult"),
        Member("GetTaskResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("GetTaskPayloadResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("CancelTaskResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("ListTasksResult", when=Window(V2025_11_25, V2026_07_28)),
        Member("CompleteResult"),
    )),
    Type("SetLevelRequest", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'logging/setLevel'", required=True),
        Field("params", "SetLevelRequestParams", required=True),
    )),
    Type("SetLevelRequestParams", "object", when=Window(until=V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=Window(V2025_11_25)),
        Field("level", "LoggingLevel", required=True),
    )),
    Type("SingleSelectEnumSchema", "union", when=Window(V2025_11_25), of=(
        Member("UntitledSingleSelectEnumSchema"),
        Member("TitledSingleSelectEnumSchema"),
    )),
    Type("StringSchema", "object", when=Window(V2025_06_18), fields=(
        Field("default", "string", when=Window(V2025_11_25)),
        Field("description", "string"),
        Field("format", "'date' | 'date-time' | 'email' | 'uri'"),
        Field("maxLength", "integer"),
        Field("minLength", "integer"),
        Field("title", "string"),
        Field("type", "'string'", required=True),
    )),
    Type("SubscribeRequest", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'resources/subscribe'", required=True),
        Field("params", "SubscribeRequestParams", required=True),
    )),
    Type("SubscribeRequestParams", "object", when=Window(until=V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=Window(V2025_11_25)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("SubscriptionFilter", "object", when=Window(V2026_07_28), fields=(
        Field("promptsListChanged", "boolean"),
        Field("resourceSubscriptions", "list<string>"),
        Field("resourcesListChanged", "boolean"),
        Field("toolsListChanged", "boolean"),
    )),
    Type("SubscriptionsAcknowledgedNotification", "object", when=Window(V2026_07_28), fields=(
        Field("method", "'notifications/subscriptions/acknowledged'", required=True),
        Field("params", "SubscriptionsAcknowledgedNotificationParams", required=True),
    )),
    Type("SubscriptionsAcknowledgedNotificationParams", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "NotificationMetaObject"),
        Field("notifications", "SubscriptionFilter", required=True),
    )),
    Type("SubscriptionsListenRequest", "object", when=Window(V2026_07_28), fields=(
        Field("method", "'subscriptions/listen'", required=True),
        Field("params", "SubscriptionsListenRequestParams", required=True),
    )),
    Type("SubscriptionsListenRequestParams", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", required=True),
        Field("notifications", "SubscriptionFilter", required=True),
    )),
    Type("SubscriptionsListenResult", "object", when=Window(V2026_07_28), fields=(
        Field("_meta", "SubscriptionsListenResultMetaObject", required=True),
        Field("resultType", "'complete'", required=True, departs=TOLD_BY_VALUE),
    )),
    Type("SubscriptionsListenResultMetaObject", "object", when=Window(V2026_07_28), open=True, departs=LOST_KEYS, fields=(
        Field("io.modelcontextprotocol/serverInfo", "Implementation"),
        Field("io.modelcontextprotocol/subscriptionId", "RequestId", required=True),
    )),
    Type("SubscriptionsListenResultResponse", "object", when=Window(V2026_07_28), fields=(
        Field("result", "SubscriptionsListenResult", required=True),
    )),
    Type("Task", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("createdAt", "string", required=True),
        Field("lastUpdatedAt", "string", required=True),
        Field("pollInterval", "integer"),
        Field("status", "TaskStatus", required=True),
        Field("statusMessage", "string"),
        Field("taskId", "string", required=True),
        Field("ttl", "integer | null", required=True),
    )),
    Type("TaskAugmentedRequestParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject"),
        Field("task", "TaskMetadata"),
    )),
    Type("TaskMetadata", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("ttl", "integer"),
    )),
    Type("TaskStatus", "enum", when=Window(V2025_11_25, V2026_07_28), of=(
        Member("'cancelled'"),
        Member("'completed'"),
        Member("'failed'"),
        Member("'input_required'"),
        Member("'working'"),
    )),
    Type("TaskStatusNotification", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("method", "'notifications/tasks/status'", required=True),
        Field("params", "TaskStatusNotificationParams", required=True),
    )),
    Type("TaskStatusNotificationParams", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("_meta", "MetaObject"),
        Field("createdAt", "string", required=True),
        Field("lastUpdatedAt", "string", required=True),
        Field("pollInterval", "integer"),
        Field("status", "TaskStatus", required=True),
        Field("statusMessage", "string"),
        Field("taskId", "string", required=True),
        Field("ttl", "integer | null", required=True),
    )),
    Type("TextContent", "object", fields=(
        Field("_meta", "MetaObject", when=Window(V2025_06_18)),
        Field("annotations", "Annotations"),
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
        Field("default", "list<string>"),
        Field("description", "string"),
        Field("items", "TitledMultiSelectEnumSchema.items", required=True),
        Field("maxItems", "integer"),
        Field("minItems", "integer"),
        Field("title", "string"),
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
        Field("default", "string"),
        Field("description", "string"),
        Field("oneOf", "list<TitledSingleSelectEnumSchema.oneOf[]>", required=True),
        Field("title", "string"),
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
        Field("execution", "ToolExecution", when=Window(V2025_11_25, V2026_07_28)),
        Field("icons", "list<Icon>", when=Window(V2025_11_25)),
        Field("inputSchema", "Tool.inputSchema", required=True),
        Field("name", "string", required=True),
        Field("outputSchema", "Tool.outputSchema", when=Window(V2025_06_18)),
        Field("title", "string", when=Window(V2025_06_18)),
    )),
    Type("Tool.inputSchema", "object", open=Window(V2026_07_28), fields=(
        Field("$schema", "string", when=Window(V2025_11_25)),
        Field("properties", "map<map<any>>", when=Window(until=V2026_07_28)),
        Field("required", "list<string>", when=Window(until=V2026_07_28)),
        Field("type", "'object'", required=True),
    )),
    Type("Tool.outputSchema", "object", when=Window(V2025_06_18), open=Window(V2026_07_28), fields=(
        Field("$schema", "string", when=Window(V2025_11_25)),
        Field("properties", "map<map<any>>", when=Window(until=V2026_07_28)),
        Field("required", "list<string>", when=Window(until=V2026_07_28)),
        Field("type", "'object'", required=True, when=Window(until=V2026_07_28)),
    )),
    Type("ToolAnnotations", "object", when=Window(V2025_03_26), fields=(
        Field("destructiveHint", "boolean"),
        Field("idempotentHint", "boolean"),
        Field("openWorldHint", "boolean"),
        Field("readOnlyHint", "boolean"),
        Field("title", "string"),
    )),
    Type("ToolChoice", "object", when=Window(V2025_11_25), fields=(
        Field("mode", "'auto' | 'none' | 'required'"),
    )),
    Type("ToolExecution", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("taskSupport", "'forbidden' | 'optional' | 'required'"),
    )),
    Type("ToolListChangedNotification", "object", fields=(
        Field("method", "'notifications/tools/list_changed'", required=True),
        Field("params", "NotificationParams"),
    )),
    Type("ToolResultContent", "object", when=Window(V2025_11_25), fields=(
        Field("_meta", "MetaObject"),
        Field("content", "list<ContentBlock>", required=True),
        Field("isError", "boolean"),
        Field("structuredContent", "map<any>", when=Window(until=V2026_07_28)),
        Field("structuredContent", "any", when=Window(V2026_07_28)),
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
    Type("URLElicitationRequiredError", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("error", "URLElicitationRequiredError.error", required=True),
    )),
    Type("URLElicitationRequiredError.error", "object", when=Window(V2025_11_25, V2026_07_28), fields=(
        Field("code", "-32042", required=True),
        Field("data", "URLElicitationRequiredError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("URLElicitationRequiredError.error.data", "object", when=Window(V2025_11_25, V2026_07_28), open=True, fields=(
        Field("elicitations", "list<ElicitRequestURLParams>", required=True),
    )),
    Type("UnsubscribeRequest", "object", when=Window(until=V2026_07_28), fields=(
        Field("method", "'resources/unsubscribe'", required=True),
        Field("params", "UnsubscribeRequestParams", required=True),
    )),
    Type("UnsubscribeRequestParams", "object", when=Window(until=V2026_07_28), fields=(
        Field("_meta", "RequestMetaObject", when=Window(until=V2025_11_25), departs=LOST_META),
        Field("_meta", "RequestMetaObject", when=Window(V2025_11_25)),
        Field("uri", "string", required=True, limits=URI),
    )),
    Type("UnsupportedProtocolVersionError", "object", when=Window(V2026_07_28), fields=(
        Field("error", "UnsupportedProtocolVersionError.error", required=True),
    )),
    Type("UnsupportedProtocolVersionError.error", "object", when=Window(V2026_07_28), fields=(
        Field("code", "-32022", required=True),
        Field("data", "UnsupportedProtocolVersionError.error.data", required=True),
        Field("message", "string", required=True),
    )),
    Type("UnsupportedProtocolVersionError.error.data", "object", when=Window(V2026_07_28), fields=(
        Field("requested", "string", required=True),
        Field("supported", "list<string>", required=True),
    )),
    Type("UntitledMultiSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        Field("default", "list<string>"),
        Field("description", "string"),
        Field("items", "UntitledMultiSelectEnumSchema.items", required=True),
        Field("maxItems", "integer"),
        Field("minItems", "integer"),
        Field("title", "string"),
        Field("type", "'array'", required=True),
    )),
    Type("UntitledMultiSelectEnumSchema.items", "object", when=Window(V2025_11_25), fields=(
        Field("enum", "list<string>", required=True),
        Field("type", "'string'", required=True),
    )),
    Type("UntitledSingleSelectEnumSchema", "object", when=Window(V2025_11_25), fields=(
        Field("default", "string"),
        Field("description", "string"),
        Field("enum", "list<string>", required=True),
        Field("title", "string"),
        Field("type", "'string'", required=True),
    )),
)
# fmt: on
