"""What names of the `mcp` SDK and of FastMCP are called here, for the errors they raise.

Code written for `mcp` 2.3 or FastMCP 4.1 may use a name that does not exist here. Such an
attribute raises AttributeError, such an option TypeError, with a text that names ours.

Each table maps a foreign name to (ours, advice). Ours is an attribute of the same class, or an
option of the same call; it is empty where nothing takes its place. A name that both spell alike
is not listed.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn, TypeAlias, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    Hints: TypeAlias = Mapping[str, tuple[str, str]]

__all__ = ["MissingClassAttribute", "missing_attribute", "with_hints"]

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
_AUTH_OF_ONE = "entries are the same for all callers; look at ctx.principal in the handler"
_STDIO = "run() serves standard streams; in a running event loop, `await app.serve(StdioServer())`"
_LISTS = "connect a client to look at a server: `Client(app)`"
_TAGS = "tags are not supported; put them in meta="
_SWITCH = "use remove_tool(name) and add_tool(handler, name); clients are notified"
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
    "call_tool": ("", _LISTS),
    "custom_route": ("asgi", "add asgi(...) to the routes of a web framework, beside your own"),
    "description": ("info", "use info.description"),
    "disable": ("remove_tool", _SWITCH),
    "enable": ("add_tool", _SWITCH),
    "from_fastapi": ("", "servers are not made from FastAPI apps; register functions as tools"),
    "from_openapi": (
        "",
        "servers are not made from OpenAPI documents; register functions as tools",
    ),
    "get_prompt": ("", _LISTS),
    "get_resource": ("", _LISTS),
    "get_resource_template": ("", _LISTS),
    "get_tool": ("", _LISTS),
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
    "auth_server_provider": ("auth", _AUTH),
    "cache_hints": ("cache", "use cache=CacheHint(seconds, scope)"),
    "cache_scope": ("cache", "use cache=CacheHint(seconds, scope)"),
    "cache_ttl": ("cache", "use cache=CacheHint(seconds, scope)"),
    "client_log_level": ("", "clients choose the level of the log they are sent"),
    "debug": ("", "configure logging with the standard library; the logger is 'trunkline'"),
    "dependencies": ("", "declare dependencies in your project; a server installs nothing"),
    "experimental_capabilities": ("experimental", "use experimental="),
    "host": ("", _URL),
    "list_page_size": ("page_size", "use page_size="),
    "log_level": ("", "configure logging with the standard library; the logger is 'trunkline'"),
    "mask_error_details": ("", "errors are always masked; raise ToolError for a text to be sent"),
    "middleware": ("", "use @app.middleware on an async function"),
    "on_duplicate": ("", "a name that is taken raises ValueError; remove the other one first"),
    "port": ("", _URL),
    "providers": ("", "use mount(other, prefix=...) for the entries of another server"),
    "request_state_security": ("state_keys", "use state_keys="),
    "resource_security": ("", "template variables never match a slash unless they say so"),
    "resources": ("", "use @app.resource(uri) or add_resource(handler, uri)"),
    "session_state_store": ("store", "values per session are not kept; store= keeps tasks"),
    "strict_input_validation": ("", "arguments are always validated strictly"),
    "subscriptions": ("", "subscriptions work without an option"),
    "token_verifier": ("auth", _AUTH),
    "tools": ("", "use @app.tool or add_tool(handler)"),
    "transforms": ("", "use @app.middleware to change results"),
    "warn_on_duplicate_prompts": ("", "a name that is taken raises ValueError"),
    "warn_on_duplicate_resources": ("", "a name that is taken raises ValueError"),
    "warn_on_duplicate_tools": ("", "a name that is taken raises ValueError"),
}

TOOL_OPTIONS: Hints = {
    "app": ("meta", "user interfaces of tools are declared in meta="),
    "auth": ("", _AUTH_OF_ONE),
    "enabled": ("", _SWITCH),
    "fn": ("handler", "give the function first: add_tool(handler, name)"),
    "run_in_thread": (
        "inline",
        "plain functions run on threads; inline=True keeps one on the loop",
    ),
    "structured_output": (
        "output_schema",
        "use output_schema=None for text, or =type for structure",
    ),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions of tools are not supported; put them in the name or in meta="),
}

RESOURCE_OPTIONS: Hints = {
    "app": ("meta", "user interfaces are declared in meta="),
    "auth": ("", _AUTH_OF_ONE),
    "security": ("unsafe", "values that lead out of a folder are refused unless unsafe=True"),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions of resources are not supported; put them in the URI or in meta="),
}

PROMPT_OPTIONS: Hints = {
    "auth": ("", _AUTH_OF_ONE),
    "tags": ("meta", _TAGS),
    "version": ("meta", "versions of prompts are not supported; put them in the name or in meta="),
}

MOUNT_OPTIONS: Hints = {
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
    "stateless": ("", "2026-07-28 has no sessions; clients of earlier revisions have one each"),
    "stateless_http": (
        "",
        "2026-07-28 has no sessions; clients of earlier revisions have one each",
    ),
    "streamable_http_path": ("address", _URL),
    "transport": ("address", "give an address: run('stdio'), which is run(), or run('http://...')"),
    "transport_security": ("http", _HOSTS),
    "uvicorn_config": ("", "run asgi(...) with uvicorn yourself, or use limits=HttpLimits(...)"),
}

# The names of transports that `run` takes in `mcp` and FastMCP, which are not addresses.
RUN_TRANSPORTS = {"http": _URL, "sse": _OLD_SSE, "streamable-http": _URL}

CONTEXT_ATTRIBUTES: Hints = {
    "client_capabilities": ("client", "use ctx.client.supports('sampling')"),
    "client_extension_settings": ("extension", "use ctx.extension(id)"),
    "client_id": ("client", "use ctx.client.name, or ctx.principal for who was authenticated"),
    "client_supports_extension": ("extension", "use ctx.extension(id) is not None"),
    "close_sse_stream": ("close_stream", "use ctx.close_stream()"),
    "close_standalone_sse_stream": (
        "close_stream",
        "ctx.close_stream() closes the stream of the request; that of a GET stays open",
    ),
    "delete_state": ("state", _STATE),
    "disable_components": ("", _SWITCH),
    "enable_components": ("", _SWITCH),
    "fastmcp": ("app", "use ctx.app"),
    "get_prompt": ("", _CALL),
    "get_state": ("state", _STATE),
    "input_responses": ("elicit", _ROUNDS),
    "is_background_task": ("become_task", "await ctx.become_task() returns True in a task"),
    "lifespan_context": ("state", "use ctx.state"),
    "list_prompts": ("", _CALL),
    "list_resources": ("", _CALL),
    "list_roots": ("roots", "use await ctx.roots()"),
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
    "send_notification": ("", "use ctx.progress, ctx.log and app.notify_resource_updated(uri)"),
    "session": ("request", _ERA),
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
    "call_tool_mcp": ("call_tool", _RAW),
    "cancel": ("submit_tool", "use submit_tool(...), whose PendingCall has cancel()"),
    "complete_mcp": ("complete", _RAW),
    "discover_result": ("discover", "use discover(), or server_info and server_capabilities"),
    "from_config": ("", "give the configuration to the class itself, as in Client('mcp.json')"),
    "get_prompt_mcp": ("get_prompt", _RAW),
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
    "set_elicitation_callback": ("", _AT_CONSTRUCTION.format("on_elicit")),
    "set_roots": (
        "send_roots_list_changed",
        "give Client(..., roots=...) a function, then call this",
    ),
    "set_sampling_callback": ("", _AT_CONSTRUCTION.format("on_sample")),
    "subscribe_resource": ("subscribe", "use subscribe(uri)"),
    "unsubscribe_resource": ("unsubscribe", "use unsubscribe(uri)"),
}

CLIENT_OPTIONS: Hints = {
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


def missing_attribute(owner: str, name: str, hints: Hints) -> AttributeError:
    """Return the error for an attribute that a class does not have, with advice if there is any."""
    text = f"{owner!r} object has no attribute {name!r}"
    return AttributeError(f"{text}; {hints[name][1]}" if name in hints else text, name=name)


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

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for name in options:
                if name in hints:
                    called = f"{function.__qualname__}()".replace(".__init__", "")
                    raise TypeError(f"{called} has no option {name!r}: {hints[name][1]}")
            return function(*args, **options)

        return call  # type: ignore[return-value]  # it takes what the function takes

    return wrap
