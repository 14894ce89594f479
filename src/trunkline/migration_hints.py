"""What names of the `mcp` SDK and of FastMCP are called here, for the errors they raise.

Code written for `mcp` 2.3 or FastMCP 4.1 may use a name that does not exist here. Such an
attribute raises AttributeError, such an option TypeError, with a text that names ours; such a name
in `from trunkline import ...` raises ImportError with that text.

Each table maps a foreign name to (ours, advice). Ours is an attribute of the same class, an option
of the same call, or an export of `trunkline`; it is empty where nothing takes its place. A name
that both spell alike is not listed. "Not supported yet" is what a later version will have.

The rules that live here, and only here:

* `hasattr` stays False for a foreign name, so that programs which probe for features see none.
* A name that exists costs nothing: advice is looked up after a lookup has failed. `Context` has no
  `__getattr__`, which would slow down its attributes: its advice is added when a handler fails.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType
    from typing import Any, NoReturn, TypeAlias, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    Hints: TypeAlias = Mapping[str, tuple[str, str]]

__all__ = [
    "MissingClassAttribute",
    "missing_attribute",
    "missing_member",
    "missing_name",
    "not_subscriptable",
    "unknown_call_option",
    "with_hints",
]

# The row of a table of options for what is given by position, beyond what a call takes so.
POSITIONAL = "*"

_URL = "give the URL to serve: run('http://127.0.0.1:8000/mcp')"
_ASGI = "use asgi(path='/mcp', hosts=[...]); it needs no lifespan events"
_LISTEN = (
    "`async with app.listen('http://127.0.0.1:8000/mcp') as listening: await listening.wait()`"
)
_OLD_SSE = (
    "use run('http://127.0.0.1:8000/mcp', http=HttpSettings(old_sse=True)), which serves /sse too"
)
_OLD_SSE_PATHS = "the paths are /sse and /messages, with http=HttpSettings(old_sse=True)"
_HOSTS = "use http=HttpSettings(hosts=[...], origins=[...]); the check is always on"
_AUTH = "use auth=JwtBearer(issuer=..., audience=...), or another verifier of trunkline.auth"
_AUTH_OF_ONE = (
    "use scopes=[...] for callers with these scopes, allow=function to decide on each call, "
    "visible=function to hide it"
)
_STDIO = "run() serves standard streams; in a running event loop, `await app.serve(StdioServer())`"
_LISTS = "connect a client to look at a server: `Client(app)`"
_TAGS = "tags are not supported yet; put them in meta="
_SWITCH = (
    "use visible=, a function of the context, to hide an entry from some callers; or "
    "remove_tool(name) and add_tool(handler, name) for all, who are notified"
)
_TAG_FILTERS = "tags are not supported yet; use visible=, a function of the context, on an entry"
_SESSIONS = (
    "HTTP without sessions is not supported yet for clients up to 2025-11-25; those of 2026-07-28 "
    "have none"
)
_ROUTES = (
    "routes of your own are not supported yet; add asgi(...) to the routes of a web framework, "
    "beside your own"
)
_OPENAPI = "tools from {} are not supported yet; register functions with @app.tool"
_PROXY = (
    "serving a server elsewhere as one of your own is not supported yet; mount(other, prefix=...) "
    "takes a Server, and a tool may return what `await client.call_tool(...)` returned"
)
_OPTION_OF_RUN = "give it to run, listen or asgi: {}"
_ANNOTATIONS = "use annotations={{{}: True}}"
_DUPLICATE = "a name that is taken raises ValueError; remove the other one first"
_ERA = "a session does not exist in 2026-07-28; the context itself asks, logs and reports progress"
_STATE = "values per session are not kept; use a store, by what identifies your users"
_CHANGED = "clients are notified when something is added or removed; nothing to call"
_CALL = "call the function that was registered"
_ROUNDS = "elicit, sample and roots work in every revision; nothing to return or to carry along"

SERVER_ATTRIBUTES: Hints = {
    "add_completion_handler": ("completion", "use @app.completion(prompt=..., argument=...)"),
    "add_middleware": ("middleware", "use @app.middleware on an async function"),
    "add_provider": ("mount", "use mount(other, prefix=...) for the entries of another server"),
    "add_resource_template": ("add_resource", "use add_resource(handler, uri), also for templates"),
    "add_template": ("add_resource", "use add_resource(handler, uri), also for templates"),
    "add_transform": ("middleware", "use @app.middleware to change results"),
    "as_proxy": ("", _PROXY),
    "call_tool": ("", _LISTS),
    "custom_route": ("asgi", _ROUTES),
    "description": ("info", "use info.description"),
    "disable": ("remove_tool", _SWITCH),
    "enable": ("add_tool", _SWITCH),
    "from_client": ("", _PROXY),
    "from_fastapi": ("", _OPENAPI.format("a FastAPI app")),
    "from_openapi": ("", _OPENAPI.format("an OpenAPI document")),
    "get_context": ("", "declare a parameter `ctx: Context`; the handler is called with it"),
    "get_prompt": ("", _LISTS),
    "get_prompts": ("", _LISTS),
    "get_resource": ("", _LISTS),
    "get_resource_template": ("", _LISTS),
    "get_resource_templates": ("", _LISTS),
    "get_resources": ("", _LISTS),
    "get_tool": ("", _LISTS),
    "get_tools": ("", _LISTS),
    "http_app": ("asgi", _ASGI),
    "icons": ("info", "use info.icons"),
    "import_server": ("mount", "use mount(other, prefix=...)"),
    "lifespan": ("state", "give Server(lifespan=...); what it yields is ctx.state"),
    "list_prompts": ("", _LISTS),
    "list_resource_templates": ("", _LISTS),
    "list_resources": ("", _LISTS),
    "list_tools": ("", _LISTS),
    "local_provider": ("remove_tool", "use remove_tool, remove_resource and remove_prompt"),
    "read_resource": ("", _LISTS),
    "render_prompt": ("", _LISTS),
    "run_async": ("serve", _STDIO),
    "run_http_async": ("listen", _LISTEN),
    "run_sse_async": ("listen", _OLD_SSE.replace("run(", "listen(")),
    "run_stdio_async": ("serve", _STDIO),
    "run_streamable_http_async": ("listen", _LISTEN),
    "session_manager": ("asgi", "sessions have no manager; run, listen and asgi keep them"),
    "settings": ("", "settings are arguments of Server(...)"),
    "sse_app": ("asgi", "use asgi(http=HttpSettings(old_sse=True)), which serves /sse too"),
    "streamable_http_app": ("asgi", _ASGI),
    "title": ("info", "use info.title"),
    "version": ("info", "use info.version"),
    "website_url": ("info", "use info.website_url"),
}

SERVER_OPTIONS: Hints = {
    POSITIONAL: ("instructions", "give options by name: Server(name, instructions=...)"),
    "auth_server_provider": ("auth", _AUTH),
    "cache_hints": ("cache", "use cache=CacheHint(seconds, scope)"),
    "cache_scope": ("cache", "use cache=CacheHint(seconds, scope)"),
    "cache_ttl": ("cache", "use cache=CacheHint(seconds, scope)"),
    "client_log_level": ("", "clients choose the level of the log they are sent"),
    "debug": ("", "configure logging with the standard library; the logger is 'trunkline'"),
    "dependencies": ("", "declare dependencies in your project; a server installs nothing"),
    "event_store": ("store", "use store=, which keeps the events of streams that clients resume"),
    "exclude_tags": ("", _TAG_FILTERS),
    "experimental_capabilities": ("experimental", "use experimental="),
    "host": ("", _URL),
    "include_tags": ("", _TAG_FILTERS),
    "json_response": ("", "an answer is JSON unless something is sent before it"),
    "list_page_size": ("page_size", "use page_size="),
    "log_level": ("", "configure logging with the standard library; the logger is 'trunkline'"),
    "mask_error_details": ("", "errors are always masked; raise ToolError for a text to be sent"),
    "message_path": ("", _OPTION_OF_RUN.format("http=HttpSettings(old_sse=True)")),
    "middleware": ("", "use @app.middleware on an async function"),
    "on_call_tool": ("", "use add_tool(handler, name, input_schema={...}), once for each tool"),
    "on_duplicate": ("", _DUPLICATE),
    "on_duplicate_prompts": ("", _DUPLICATE),
    "on_duplicate_resources": ("", _DUPLICATE),
    "on_duplicate_tools": ("", _DUPLICATE),
    "on_list_tools": ("", "use add_tool(handler, name, input_schema={...}), once for each tool"),
    "port": ("", _URL),
    "providers": ("", "use mount(other, prefix=...) for the entries of another server"),
    "request_state_security": ("state_keys", "use state_keys="),
    "resource_security": ("", "template variables never match a slash unless they say so"),
    "resources": ("", "use @app.resource(uri) or add_resource(handler, uri)"),
    "sampling_handler": ("", "a client answers ctx.sample; without one, call a model yourself"),
    "session_state_store": ("store", "values per session are not kept; store= keeps tasks"),
    "sse_path": ("", _OPTION_OF_RUN.format("http=HttpSettings(old_sse=True)")),
    "stateless_http": ("", _SESSIONS),
    "streamable_http_path": ("", _URL),
    "strict_input_validation": (
        "coerce_arguments",
        "arguments are validated strictly, unless coerce_arguments=True",
    ),
    "subscriptions": ("", "subscriptions work without an option"),
    "token_verifier": ("auth", _AUTH),
    "tool_serializer": ("", "return ToolOutput(value, text=...) for a text of your own"),
    "tools": ("", "use @app.tool or add_tool(handler)"),
    "transforms": ("", "use @app.middleware to change results"),
    "transport_security": (
        "",
        _OPTION_OF_RUN.format("http=HttpSettings(hosts=[...], origins=[...])"),
    ),
    "warn_on_duplicate_prompts": ("", _DUPLICATE),
    "warn_on_duplicate_resources": ("", _DUPLICATE),
    "warn_on_duplicate_tools": ("", _DUPLICATE),
}

TOOL_OPTIONS: Hints = {
    POSITIONAL: ("description", "give options by name: tool('name', description=...)"),
    "app": ("meta", "user interfaces of tools are declared in meta="),
    "auth": ("scopes", _AUTH_OF_ONE),
    "destructive": ("annotations", _ANNOTATIONS.format("'destructiveHint'")),
    "enabled": ("visible", _SWITCH),
    "exclude_args": (
        "",
        "bind what is not an argument: app.add_tool(functools.partial(handler, key=value), name)",
    ),
    "fn": ("handler", "give the function first: add_tool(handler, name)"),
    "idempotent": ("annotations", _ANNOTATIONS.format("'idempotentHint'")),
    "open_world": ("annotations", _ANNOTATIONS.format("'openWorldHint'")),
    "read_only": ("annotations", _ANNOTATIONS.format("'readOnlyHint'")),
    "run_in_thread": (
        "inline",
        "plain functions run on threads; inline=True keeps one on the loop",
    ),
    "serializer": ("", "return ToolOutput(value, text=...) for a text of your own"),
    "structured_output": (
        "output_schema",
        "use output_schema=None for text, or =type for structure",
    ),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions are not supported yet; put them in the name or in meta="),
}

RESOURCE_OPTIONS: Hints = {
    POSITIONAL: ("name", "give options by name: resource(uri, name=...)"),
    "app": ("meta", "user interfaces are declared in meta="),
    "auth": ("scopes", _AUTH_OF_ONE),
    "enabled": ("visible", _SWITCH.replace("tool", "resource").replace("name", "uri")),
    "security": ("unsafe", "values that lead out of a folder are refused unless unsafe=True"),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions are not supported yet; put them in the URI or in meta="),
}

PROMPT_OPTIONS: Hints = {
    POSITIONAL: ("description", "give options by name: prompt('name', description=...)"),
    "auth": ("scopes", _AUTH_OF_ONE),
    "enabled": ("visible", _SWITCH.replace("tool", "prompt")),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions are not supported yet; put them in the name or in meta="),
}

MOUNT_OPTIONS: Hints = {
    POSITIONAL: ("scopes", "give options by name: mount(other, prefix=..., scopes=...)"),
    "as_proxy": ("", "the handlers of a mounted server keep its middleware, lifespan and state"),
    "namespace": ("prefix", "use prefix="),
    "server": ("other", "give the server first: mount(other, prefix=...)"),
    "tool_names": ("prefix", "tools of a mounted server are renamed by prefix= alone"),
}

RUN_OPTIONS: Hints = {
    "allowed_hosts": ("http", _HOSTS),
    "allowed_origins": ("http", _HOSTS),
    "event_store": ("", "Server(store=...) keeps the events of streams that clients resume"),
    "host": ("address", _URL),
    "host_origin_protection": ("http", _HOSTS),
    "json_response": ("", "an answer is JSON unless something is sent before it"),
    "log_level": ("", "configure logging with the standard library; the logger is 'trunkline'"),
    "max_request_body_size": ("", "use Server(policy=...), whose limits have the size of messages"),
    "max_sessions": ("limits", "use limits=HttpLimits(sessions=...)"),
    "message_path": ("http", _OLD_SSE_PATHS),
    "middleware": ("", "use asgi(...) inside the middleware of a web framework"),
    "path": ("address", _URL),
    "port": ("address", _URL),
    "retry_interval": ("limits", "use limits=HttpLimits(retry_ms=...)"),
    "session_idle_timeout": ("limits", "use limits=HttpLimits(session_idle=...)"),
    "show_banner": ("", "a banner is never printed"),
    "sockets": ("", "use listen(address, sock=...)"),
    "sse_path": ("http", _OLD_SSE_PATHS),
    "stateless": ("", _SESSIONS),
    "stateless_http": ("", _SESSIONS),
    "streamable_http_path": ("address", _URL),
    "transport": ("address", "give an address: run('stdio'), which is run(), or run('http://...')"),
    "transport_security": ("http", _HOSTS),
    "uvicorn_config": ("", "run asgi(...) with uvicorn yourself, or use limits=HttpLimits(...)"),
}

# The names of transports that `run` takes in `mcp` and FastMCP, which are not addresses.
RUN_TRANSPORTS = {"http": _URL, "sse": _OLD_SSE, "streamable-http": _URL}

_SESSION_CALLS = "use await ctx.elicit(...), ctx.sample(...), ctx.roots(), ctx.log(...)"

CONTEXT_ATTRIBUTES: Hints = {
    "access_token": ("principal", "use ctx.principal, which has the claims of the token"),
    "background_task_id": ("", "a handler is not given the id of its task"),
    "client_capabilities": ("client", "use ctx.client.supports('sampling')"),
    "client_extension_settings": ("extension", "use ctx.extension(id)"),
    "client_id": ("client", "use ctx.client.name, or ctx.principal for who was authenticated"),
    "client_info": ("client", "use ctx.client.name"),
    "client_supports_extension": ("extension", "use ctx.extension(id) is not None"),
    "close_sse_stream": ("close_stream", "use ctx.close_stream()"),
    "close_standalone_sse_stream": (
        "close_stream",
        "ctx.close_stream() closes the stream of the request; that of a GET stays open",
    ),
    "create_message": ("sample", "use await ctx.sample(...)"),
    "delete_state": ("state", _STATE),
    "disable_components": ("", _SWITCH),
    "enable_components": ("", _SWITCH),
    "fastmcp": ("app", "use ctx.app"),
    "get_http_headers": ("headers", "use ctx.headers"),
    "get_http_request": ("headers", "use ctx.headers, ctx.principal and ctx.meta"),
    "get_prompt": ("", _CALL),
    "get_state": ("state", _STATE),
    "input_responses": ("elicit", _ROUNDS),
    "is_background_task": ("become_task", "await ctx.become_task() returns True in a task"),
    "lifespan_context": ("state", "use ctx.state"),
    "lifespan_state": ("state", "use ctx.state"),
    "list_prompts": ("", _CALL),
    "list_resources": ("", _CALL),
    "list_roots": ("roots", "use await ctx.roots()"),
    "list_tools": ("", _CALL),
    "logger": ("log", "use ctx.log(level, data), or logging of the standard library"),
    "mcp_server": ("app", "use ctx.app"),
    "notify_prompts_changed": ("", _CHANGED),
    "notify_resource_updated": ("app", "use ctx.app.notify_resource_updated(uri)"),
    "notify_resources_changed": ("", _CHANGED),
    "notify_tools_changed": ("", _CHANGED),
    "origin_request_id": ("request_id", "use ctx.request_id"),
    "protocol_version": ("revision", "use ctx.revision"),
    "read_resource": ("", _CALL),
    "request_context": ("meta", "use ctx.meta, ctx.request_id, ctx.headers and ctx.state"),
    "request_state": ("once", _ROUNDS),
    "reset_visibility": ("", _SWITCH),
    "send_notification": ("notify", "use ctx.notify(method, params), ctx.progress or ctx.log"),
    "server": ("app", "use ctx.app"),
    "session": ("request", f"{_ERA}: {_SESSION_CALLS}"),
    "session_id": ("", _ERA),
    "set_state": ("state", _STATE),
    "task_id": ("", "a handler is not given the id of its task"),
    "transport": ("", "handlers are the same on every transport"),
}

ELICIT_OPTIONS: Hints = {
    "response_description": ("message", "describe it in the message, or in the fields of the form"),
    "response_title": ("message", "say it in the message, or in the fields of the form"),
    "response_type": ("form", "give the type second: elicit(message, form)"),
    "schema": ("form", "give the type second: elicit(message, form)"),
}

LOG_OPTIONS: Hints = {
    "extra": ("message", "give any JSON value as the message: info({'text': ..., 'extra': ...})"),
    "logger_name": ("logger", "use logger="),
}


# -- Client ------------------------------------------------------------------------------------

_AUTOMATIC = "`async with Client(...)` connects and negotiates the revision; nothing to call"
_AT_CONSTRUCTION = "handlers are given when the client is made: Client(..., {}=...)"
_RAW = "the method without `_mcp` returns the typed result; request(method, params) the raw one"

CLIENT_ATTRIBUTES: Hints = {
    "aclose": ("close", "use close(), or `async with Client(...)`"),
    "call_tool_mcp": ("call_tool", _RAW),
    "cancel": ("submit_tool", "use submit_tool(...), whose PendingCall has cancel()"),
    "complete_mcp": ("complete", _RAW),
    "connect_to_server": ("servers", "use Client({'mcpServers': {...}}) for several servers"),
    "disconnect": ("close", "use close(), or `async with Client(...)`"),
    "discover_result": ("discover", "use discover(), or server_info and server_capabilities"),
    "from_config": ("", "give the configuration to the class itself, as in Client('mcp.json')"),
    "get_prompt_mcp": ("get_prompt", _RAW),
    "get_server_capabilities": ("server_capabilities", "use server_capabilities"),
    "get_server_info": ("server_info", "use server_info"),
    "get_server_version": ("server_info", "use server_info.version"),
    "get_session_id": ("", "the client keeps the id of its session, and renews it"),
    "initialize": ("connect", _AUTOMATIC),
    "list_prompts_mcp": ("list_prompts", _RAW),
    "list_resource_templates_mcp": ("list_resource_templates", _RAW),
    "list_resources_mcp": ("list_resources", _RAW),
    "list_tools_mcp": ("list_tools", _RAW),
    "new": ("", "make another Client of the same target"),
    "progress": (
        "notify",
        "clients do not report progress; notify(method, params) sends any other",
    ),
    "protocol_version": ("revision", "use revision"),
    "read_resource_mcp": ("read_resource", _RAW),
    "send_discover": ("discover", "use discover()"),
    "send_notification": ("notify", "use notify(method, params)"),
    "send_ping": ("ping", "use ping()"),
    "send_request": ("request", "use request(method, params, result_type=...)"),
    "session": ("", "a client is its own session; call its methods"),
    "sessions": ("servers", "use servers, which has the client of each server by its name"),
    "set_elicitation_callback": ("", _AT_CONSTRUCTION.format("on_elicit")),
    "set_log_level": ("set_logging_level", "use set_logging_level(level)"),
    "set_roots": (
        "send_roots_list_changed",
        "give Client(..., roots=...) a function, then call this",
    ),
    "set_sampling_callback": ("", _AT_CONSTRUCTION.format("on_sample")),
    "subscribe_resource": ("subscribe", "use subscribe(uri)"),
    "transport": ("", "a client makes its transport; revision and server_info are negotiated"),
    "unsubscribe_resource": ("unsubscribe", "use unsubscribe(uri)"),
}

CLIENT_OPTIONS: Hints = {
    POSITIONAL: ("timeout", "give options by name: Client(target, timeout=...)"),
    "auto_initialize": ("", _AUTOMATIC),
    "client_info": ("name", "use name=, version= and title="),
    "elicitation_callback": ("on_elicit", "use on_elicit="),
    "elicitation_handler": ("on_elicit", "use on_elicit="),
    "init_timeout": ("connect_timeout", "use connect_timeout="),
    "input_required_max_rounds": ("max_rounds", "use max_rounds="),
    "list_roots_callback": ("roots", "use roots=, a list or a function"),
    "log_handler": ("on_log", "use on_log="),
    "log_level": ("logging_level", "use logging_level="),
    "logging_callback": ("on_log", "use on_log="),
    "message_handler": ("on_notification", "use on_notification="),
    "mode": ("revision", "use revision= to pin one; by default the newest is negotiated"),
    "progress_handler": ("on_progress", "use on_progress="),
    "read_timeout_seconds": ("timeout", "use timeout=, in seconds"),
    "sampling_callback": ("on_sample", "use on_sample="),
    "sampling_capabilities": ("sampling_tools", "use sampling_tools=True if on_sample takes tools"),
    "sampling_handler": ("on_sample", "use on_sample="),
}

# Options of `call_tool`; any other unknown one is taken for an argument of the tool.
CALL_OPTIONS: Hints = {
    "args": ("arguments", "give the arguments second: call_tool(name, {...})"),
    "progress_callback": ("on_progress", "use on_progress="),
    "progress_handler": ("on_progress", "use on_progress="),
    "raise_on_error": (
        "",
        "a tool that failed is a result: is_error is True, value raises ToolFailed",
    ),
    "read_timeout_seconds": ("timeout", "use timeout=, in seconds"),
    "task": ("", "use call_tool_as_task(name, arguments)"),
    "version": ("", "versions are not supported yet"),
}

TOOL_RESULT_ATTRIBUTES: Hints = {
    "contents": ("content", "use content"),
    "data": ("value", "use value; call_tool(..., result_type=T) makes it a T"),
    "isError": ("is_error", "use is_error"),
    "json": ("value", "use value, or structured_content"),
    "output": ("value", "use value"),
    "result": ("value", "use value"),
    "structuredContent": ("structured_content", "use structured_content, or value"),
    "structured_output": ("structured_content", "use structured_content, or value"),
}

# What is read of a result of a method other than `tools/call`, by the name of its type. "[]" is for
# an index: other libraries return the list itself.
_FIRST_TEXT = "use text, or contents"
RESULT_ATTRIBUTES: Mapping[str, Hints] = {
    "CompleteResult": {"values": ("completion", "use completion.values")},
    "GetPromptResult": {
        "[]": ("messages", "the messages are a list: messages[0]"),
        "text": ("messages", "use messages[0].content.text"),
    },
    "ReadResourceResult": {
        "[]": ("contents", "use text, or the list contents"),
        "blob": ("contents", "use contents[0].blob"),
        "content": ("contents", _FIRST_TEXT),
        "data": ("contents", _FIRST_TEXT),
        "value": ("contents", _FIRST_TEXT),
    },
    "Tool": {"parameters": ("input_schema", "use input_schema")},
}


# -- Authorization -----------------------------------------------------------------------------

OAUTH_OPTIONS: Hints = {
    POSITIONAL: ("scopes", "the server is the target of the client: Client(url, auth=OAuth())"),
    "additional_client_metadata": ("client_metadata_url", "use client_metadata_url="),
    "callback_handler": ("on_authorize", "use on_authorize=, which returns the redirected URL"),
    "callback_port": ("redirect_uri", "use redirect_uri='http://127.0.0.1:PORT/callback'"),
    "client_metadata": ("client_name", "use client_name=, scopes= and redirect_uri="),
    "mcp_url": ("", "the server is the target of the client: Client(url, auth=OAuth())"),
    "open_browser": ("open_url", "use open_url=, a function of the URL"),
    "redirect_handler": ("open_url", "use open_url=, a function of the URL"),
    "scope": ("scopes", "use scopes=[...]"),
    "server_url": ("", "the server is the target of the client: Client(url, auth=OAuth())"),
    "token_storage": ("storage", "use storage="),
}


# -- Modules -----------------------------------------------------------------------------------

_FUNCTION = "use @app.middleware on an async function of the context and of `proceed`"
_INJECTION = (
    "dependency injection is not supported yet; a parameter `ctx: Context` is the context, "
    "ctx.state what the lifespan yields"
)
_OF_CONTEXT = "declare a parameter `ctx: Context`: "
_OAUTH_PROXY = (
    "an OAuth proxy is not supported yet; use JwtBearer of trunkline.auth, with an authorization "
    "server that issues the tokens"
)
_RAISE = "raise ToolError in a tool, RequestError('RESOURCE_NOT_FOUND', ...) elsewhere"
_MESSAGES = "use UserMessage and AssistantMessage"
_OVER_HTTP = "use Client('https://...', headers=..., http=HttpOptions(...)), or Http(host, port)"
_CHILD = "use Client(Stdio('python', ['server.py'])), Client(['python', 'server.py'])"

MODULE_NAMES: Hints = {
    "AccessToken": ("", f"{_OF_CONTEXT}ctx.principal is who was authenticated"),
    "ApprovalRequired": ("", "ask with await ctx.elicit(...)"),
    "AuthProvider": ("", _AUTH),
    "BearerAuth": ("", "use Bearer(token) of trunkline.auth"),
    "BearerAuthProvider": ("", _AUTH),
    "ClientGroup": ("Client", "use Client({'mcpServers': {...}}) for several servers"),
    "ClientSession": ("Client", "use `async with Client(...)`, which connects and negotiates"),
    "ClientSessionGroup": ("Client", "use Client({'mcpServers': {...}}) for several servers"),
    "CurrentContext": ("Context", _INJECTION),
    "CurrentFastMCP": ("Context", f"{_OF_CONTEXT}ctx.app is the server"),
    "CurrentHeaders": ("Context", f"{_OF_CONTEXT}ctx.headers"),
    "CurrentRequest": ("Context", f"{_OF_CONTEXT}ctx.headers, ctx.principal, ctx.meta"),
    "Depends": ("Context", _INJECTION),
    "FastMCP": ("Server", "use Server"),
    "FastMCPError": ("TrunklineError", "use TrunklineError"),
    "FastMCPOpenAPI": ("", _OPENAPI.format("an OpenAPI document")),
    "FastMCPProxy": ("", _PROXY),
    "FastMCPTransport": ("Client", "use Client(app)"),
    "GitHubProvider": ("", _OAUTH_PROXY),
    "GoogleProvider": ("", _OAUTH_PROXY),
    "IntrospectionTokenVerifier": ("", "use Introspection of trunkline.auth"),
    "JWTVerifier": ("", "use JwtBearer of trunkline.auth"),
    "MCPConfigTransport": ("Client", "use Client({'mcpServers': {...}}), or Client('mcp.json')"),
    "MCPError": ("PeerError", "catch PeerError in a client; raise RequestError in a handler"),
    "MCPServer": ("Server", "use Server"),
    "McpError": ("PeerError", "catch PeerError in a client; raise RequestError in a handler"),
    "Message": ("UserMessage", _MESSAGES),
    "Middleware": ("Server", _FUNCTION),
    "MiddlewareContext": ("Context", _FUNCTION),
    "NodeStdioTransport": ("Stdio", "use Client(Stdio('node', ['server.js']))"),
    "NotFoundError": ("RequestError", "raise RequestError('RESOURCE_NOT_FOUND', ...)"),
    "OAuthProvider": ("", _OAUTH_PROXY),
    "OAuthProxy": ("", _OAUTH_PROXY),
    "OIDCProxy": ("", _OAUTH_PROXY),
    "Progress": ("Context", f"{_OF_CONTEXT}ctx.progress(1, 3, 'text')"),
    "PromptError": ("RequestError", _RAISE),
    "PromptResult": ("UserMessage", _MESSAGES),
    "ProxyClient": ("", _PROXY),
    "PythonStdioTransport": ("Stdio", _CHILD),
    "RemoteAuthProvider": ("", _AUTH),
    "ResourceContent": ("File", "return a text, bytes, a value for JSON, or a File"),
    "ResourceError": ("RequestError", _RAISE),
    "ResourceResult": ("File", "return a text, bytes, a value for JSON, or a File"),
    "SSETransport": ("Http", "clients of HTTP find the older HTTP+SSE by themselves"),
    "StaticTokenVerifier": ("", "use ApiKeys of trunkline.auth"),
    "StdioServerParameters": ("Stdio", _CHILD),
    "StdioTransport": ("Stdio", _CHILD),
    "StreamableHttpTransport": ("HttpOptions", _OVER_HTTP),
    "TokenVerifier": ("", "use JwtBearer, or a Verifier of your own, of trunkline.auth"),
    "WSTransport": ("Ws", "use Client('ws://...')"),
    "create_proxy": ("", _PROXY),
    "fastmcp": ("Server", "use `from trunkline import Server`"),
    "get_access_token": ("Context", f"{_OF_CONTEXT}ctx.principal is who was authenticated"),
    "get_context": ("Context", f"{_OF_CONTEXT}the handler is called with it"),
    "get_http_headers": ("Context", f"{_OF_CONTEXT}ctx.headers"),
    "get_http_request": ("Context", f"{_OF_CONTEXT}ctx.headers, ctx.principal, ctx.meta"),
    "sse_client": ("Client", _OVER_HTTP),
    "stdio_client": ("Stdio", _CHILD),
    "stdio_server": ("Server", "use app.run(), or `await app.serve(StdioServer())`"),
    "streamable_http_client": ("Client", _OVER_HTTP),
    "streamablehttp_client": ("Client", _OVER_HTTP),
    "tool": ("Server", "make a server first: `app = Server(name)`, then `@app.tool`"),
    "types": ("", "use `from trunkline.mcp import types`"),
}

# Where a public name is looked for that a package does not have.
PUBLIC_PACKAGES = (
    *("", "auth", "server", "client", "transports", "mcp", "errors"),
    *("store", "testing", "judge", "skills", "jsonrpc"),
)


def missing_attribute(
    owner: str, name: str, hints: Hints, obj: object | None = None
) -> AttributeError:
    """Return the error for an attribute that a class does not have, with advice if there is any.

    Without advice Python suggests a similar name of `obj` when it shows the error.
    """
    text = f"{owner!r} object has no attribute {name!r}"
    if name in hints:
        return AttributeError(f"{text}; {hints[name][1]}", name=name)
    return AttributeError(text, name=name, obj=obj)


def missing_member(value: Any, name: str, hints: Hints) -> AttributeError:
    """Return the error for a member that a type of the protocol does not have.

    The spelling of the wire has advice without a row: `inputSchema` is `input_schema`.
    """
    ours = _field(value, name)
    if name not in hints and ours:
        hints = {name: (ours, f"use {ours}")}
    return missing_attribute(type(value).__name__, name, hints, value)


def _field(value: Any, wire_name: str) -> str:
    """Return the field that has a name on the wire; empty if there is none."""
    ours = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in wire_name)
    return ours if ours in type(value).__struct_fields__ else ""


def not_subscriptable(value: Any, key: object, hints: Hints) -> TypeError:
    """Return the error for an index of a value that is neither a list nor a dict."""
    text = f"{type(value).__name__!r} object is not subscriptable"
    if isinstance(key, str) and (ours := _field(value, key)):
        return TypeError(f"{text}; use the attribute {ours}")
    return TypeError(f"{text}; {hints['[]'][1]}" if "[]" in hints else text)


def missing_name(package: str, name: str, *, is_import: bool) -> AttributeError | ImportError:
    """Return the error for a name that a package does not export.

    Args:
        is_import: it is named in `from package import name`. Python would replace the text of an
            AttributeError; with advice, the error is an ImportError.
    """
    advice = MODULE_NAMES[name][1] if name in MODULE_NAMES else _home(package, name)
    if is_import and advice and not _is_module(f"{package}.{name}"):
        return ImportError(f"cannot import name {name!r} from {package!r}; {advice}", name=package)
    text = f"module {package!r} has no attribute {name!r}"
    return AttributeError(f"{text}; {advice}" if advice else text, name=name)


def _home(package: str, name: str) -> str:
    """Return where a public name is exported, as advice; empty for one that is not public."""
    if not name[:1].isupper():  # programs probe modules for other names, which are not ours
        return ""
    from importlib import import_module

    for each in PUBLIC_PACKAGES:
        home = f"trunkline.{each}".rstrip(".")
        if home != package and name in import_module(home).__all__:
            return f"use `from {home} import {name}`"
    return ""


def _is_module(name: str) -> bool:
    """Return True for a module that is not imported yet: after this error Python looks for it."""
    from importlib.util import find_spec

    return find_spec(name) is not None


def unknown_call_option(tool: str, name: str) -> TypeError:
    """Return the error for an option that `call_tool` does not have."""
    text = f"call_tool() has no option {name!r}"
    if name in CALL_OPTIONS:
        return TypeError(f"{text}: {CALL_OPTIONS[name][1]}")
    return TypeError(
        f"{text}: arguments of a tool are a dict: call_tool({tool!r}, {{{name!r}: ...}})"
    )


class MissingClassAttribute:
    """An attribute that a class does not have, and other libraries do: reading it raises.

    `__getattr__` is asked for attributes of instances alone. `hasattr` is False, as for any other
    name.
    """

    def __init__(self, advice: str) -> None:
        self._advice = advice
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        text = f"type object {owner.__name__!r} has no attribute {self._name!r}"
        raise AttributeError(f"{text}; {self._advice}", name=self._name)


def with_hints(hints: Hints, *, owner: str = "") -> Callable[[F], F]:
    """Give advice on options of other libraries, in place of Python's text for an unknown one.

    `owner` is the class that the texts of errors name, for a method that it inherits.
    """

    def wrap(function: F) -> F:
        if owner:
            function.__qualname__ = f"{owner}.{function.__name__}"
        code: CodeType = function.__code__
        # With `self`, which is not counted in the text.
        most = code.co_argcount if POSITIONAL in hints else 1 << 30

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if len(args) > most:
                text = f"takes {_arguments(most - 1)} by position, not {len(args) - 1}"
                raise TypeError(f"{called()} {text}: {hints[POSITIONAL][1]}")
            for name in options:
                if name in hints:
                    raise TypeError(f"{called()} has no option {name!r}: {hints[name][1]}")
            return function(*args, **options)

        def called() -> str:
            return f"{function.__qualname__}()".replace(".__init__", "")

        return call  # type: ignore[return-value]  # it takes what the function takes

    return wrap


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'' if number == 1 else 's'}"
