"""No repr shows a secret of a peer: every record class of the library, filled with canaries.

A record is a Struct, a dataclass or a NamedTuple; classes with a `__repr__` of their own are
looked at too. Each field holds a canary that redaction hides. A class that shows one either gets
a redacted repr (`Shown`, `shown_tuple`) or, if no peer can fill it, a place in a list below.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import pytest
from msgspec import Struct

import trunkline

CANARY: Final = "CANARYCANARY7"

# What the author of a server or client, the command line or a file of the machine fills.
OURS: Final = {
    "auth.jose.SigningKey": "the name of an algorithm",
    "auth.server.verifiers.api_keys.ApiKeys": "how many keys there are",
    "auth.server.verifiers.dpop.Dpop": "the repr of another verifier",
    "auth.server.verifiers.introspection.Introspection": "how many tokens are cached",
    "auth.server.verifiers.jwks.KeySet": "how many keys there are",
    "auth.server.verifiers.jwks.RemoteKeys": "how many keys there are",
    "auth.server.audit.JsonLinesAudit": "the path of a file",
    "auth.server.verifiers.jwt_bearer.JwtBearer": "settings of the author",
    "auth.server.tenants.TenantLimits": "settings; refuses all but numbers",
    "auth.server.tenants.Tenants": "settings of the author",
    "cli.command._VerbParser": "the command line",
    "cli.commands.completion._CompletionContext": "the command line",
    "cli.commands.proxy._Ends": "the command line",
    "cli.commands.spec._SpecAnswer": "rows of specifications",
    "cli.init.project.Project": "the command line",
    "cli.loader.AppTarget": "the command line",
    "cli.shell.options._CommandParser": "the command line",
    "cli.reload.file_watch._FileStamp": "numbers of a file",
    "client.connect.resolve.TargetAdvice": "constants of this library",
    "client.connect.targets.ConnectTarget": "an address, whose repr is redacted",
    "client.connect.extensions.ClientExtension": "declared by the author; checks its id",
    "client.connect.extensions.DeclaredExtensions": "declared by the author",
    "client.group.routes.NamedKind": "constants of this library",
    "client.requests.pagination.ListLimits": "settings of a client",
    "client.requests.pagination._Deadline": "numbers",
    "client.server_requests.handlers.HandlerFunctions": "functions of the author",
    "client.subscriptions.notifications.NotificationListeners": "functions of the author",
    "compat.erlmcp.ids.IdUsage": "numbers",
    "concurrency.thread_pool._Worker": "the repr of a thread",
    "compat.mcpp.TimeoutEntry": "numbers and an id",
    "compat.pierre.ExperimentalCapabilities": "flags of the author",
    "hosts.edit.EntryPlace": "a row of a table, and paths of the machine",
    "hosts.jsonc.JsonMember": "a file of the machine, held by one function",
    "hosts.jsonc.JsonNode": "a file of the machine, held by one function",
    "hosts.toml_text.Statement": "names of a file of the machine, and numbers",
    "hosts.table.EntryFields": "a table",
    "hosts.table.Host": "a table",
    "hosts.table.Location": "a table",
    "jsonrpc.codec.decoders.MessageDecoder": "decoders",
    "jsonrpc.limits.Limits": "settings; refuses all but integers",
    "jsonrpc.policy.Policy": "settings; refuses all but names",
    "jsonrpc.codec.surrogates.Found": "numbers",
    "judge.diff.compare._ListKind": "a table",
    "judge.diff.keywords._KeywordForm": "a table",
    "judge.diff.rules.DiffRule": "a table",
    "judge.types.checks.ObjectFacts": "rows of specifications",
    "judge.types.unions.Option": "rows of specifications",
    "judge.unknown.Unknown": "a number",
    "mcp.tables._Presence": "rows of specifications",
    "redaction._Place": "a table",
    "server.access.envelope.EnvelopeAuth": "the kinds of its verifiers",
    "engine.access.tenancy.Tenancy": "the number of tenants",
    "engine.access.tenancy.TenantUse": "numbers",
    "server.client_requests.form.ChoiceTitles": "written by the author",
    "server.client_requests.form.Form": "written by the author",
    "server.client_requests.form_fields.FormField": "written by the author",
    "server.client_requests.form_fields._Choices": "written by the author",
    "server.client_requests.form_schema.RawForm": "written by the author",
    "accounts.account.Account": "numbers",
    "accounts.budget.ByteBudget": "numbers",
    "accounts.budget.ClientBudget": "numbers",
    "accounts.shares.ClientShares": "written by the author",
    "accounts.shares.Holdings": "numbers",
    "accounts.shares.SharedLimit": "numbers",
    "server.registry.extensions.Extension": "written by the author",
    "server.handlers.annotations.FieldOptions": "written by the author",
    "server.handlers.custom_types._TakesAny": "a class of classes",
    "server.handlers.custom_types._Text": "a table",
    "server.handlers.unions._Shape": "names of members that the author wrote",
    "server.handlers.annotations.ParamHeader": "written by the author",
    "server.handlers.arguments.Arguments": "a signature of the author",
    "server.handlers.arguments._Argument": "a signature of the author",
    "server.handlers.docstrings.Docstring": "a docstring of the author",
    "server.handlers.output.Output": "a signature of the author",
    "server.handlers.output._OutputMarker": "a constant",
    "server.observability.prometheus._Row": "a row of the metrics page",
    "server.registry.entries.Completer": "the name the author gave",
    "server.registry.entries.Entry": "the name the author gave",
    "server.registry.entries.PromptEntry": "the name the author gave",
    "server.registry.entries.ResourceEntry": "the name the author gave",
    "server.registry.entries.ToolEntry": "the name the author gave",
    "server.registry.options.AccessOptions": "written by the author",
    "server.registry.options.EntryOptions": "written by the author",
    "server.registry.options.MountOptions": "written by the author",
    "server.registry.options.PromptOptions": "written by the author",
    "server.registry.options.ResourceOptions": "written by the author",
    "client.options.ClientOptions": "written by the author",
    "client.tasks.status_progress.StatusCount": "a number",
    "server.registry.options.ServerOptions": "written by the author",
    "server.registry.options.ToolOptions": "written by the author",
    "server.registry.uri_template.UriTemplate": "written by the author",
    "server.registry.uri_template._Expression": "written by the author",
    "server.registry.uri_template._ExpressionReader": "written by the author",
    "server.registry.uri_template._Operator": "a table",
    "server.settings.CacheHint": "settings; refuses all but numbers",
    "engine.limits.ServerLimits": "settings; refuses all but numbers",
    "engine.limits.SocketLimits": "settings; refuses all but numbers",
    "engine.limits.TaskSettings": "settings; refuses all but numbers",
    "engine.tasks.lifecycle.Tasks": "its name and counts",
    "engine.tasks.records.TaskRecord": "its status",
    "server.observability.stats.ServerStats": "numbers",
    "skills.folder.SkillFile": "files of the machine",
    "skills.folder.SkillSnapshot": "files of the machine",
    "skills.folder._FoundFile": "files of the machine",
    "skills.folder._SkillFolder": "files of the machine",
    "skills.resources.Skills": "written by the author",
    "store.values.Retention": "settings; refuses all but numbers",
    "store.values.StoreLimits": "settings",
    "testing.side_effects._NamedValue": "values of a test",
    "testing.side_effects._Size": "counts of a test",
    "transports.addresses.Http": "an address of the author",
    "transports.addresses.Tcp": "an address of the author",
    "transports.http.open_requests.OpenRequests": "numbers",
    "transports.http.client.proxy.ProxyAddress": "an address of the user",
    "transports.addresses.Tls": "file names of the author",
    "transports.addresses.Unix": "an address of the author",
    "transports.addresses.Ws": "an address of the author",
    "transports.http.gate.cors.CorsPolicy": "names of headers that a protocol has",
    "transports.http.response.Refusal": "fixed sentences",
    "transports.http.settings.HttpLimits": "settings; refuses all but numbers",
    "transports.http.settings.HttpSettings": "settings; refuses all but hosts and origins",
    "transports.stdio.client.Stdio": "a command of the author; values of flags are hidden",
}
# What a peer fills in part, and whose repr shows the rest alone. A canary of another type than
# the field has is in the rest, or makes the repr raise.
TYPED: Final = {
    "auth.client.bearer.Bearer": "shows where the token is, by its SecretSource",
    "auth.client.grants.ClientCredentials": "the identifier of the client",
    "auth.client.grants.TokenExchange": "the identifier of the client",
    "auth.client.grants.WorkloadIdentity": "where the assertion is, by its SecretSource",
    "auth.client.login.redirect.LoopbackListener": "the number of its port",
    "auth.client.oauth.OAuth": "the client id, redacted",
    "auth.principal.Principal": "its names and scopes, redacted",
    "auth.server.peers.Fixed": "the principal, written by the author; its claims are hidden",
    "auth.server.peers.PeerCertificate": "which part of a certificate; refuses any other",
    "auth.server.peers.PeerUid": "how many users; refuses all but numbers",
    "auth.server.resource_server.ResourceServer": "its URL, and the kinds of its verifiers",
    "auth.server.settings.AuthSettings": "the kinds of its verifiers",
    "client.client.Client": "the name of the server, redacted",
    "client.group.client.ClientGroup": "the name of the client, redacted, and numbers",
    "client.requests.call.PendingCall": "its state and method",
    "client.requests.tool_result.ToolResult": "its text, redacted",
    "client.subscriptions.dispatch.ServerChange": "a URI, redacted, and a status",
    "client.subscriptions.stream.Subscription": "its state",
    "client.sync.base._Handle": "the repr of the asynchronous one",
    "client.sync.base.PendingCallBase": "the repr of the asynchronous one",
    "client.sync.base.SubscriptionBase": "the repr of the asynchronous one",
    "client.sync.base.SyncClientBase": "the repr of the asynchronous one",
    "client.sync.base.TaskHandleBase": "the repr of the asynchronous one",
    "client.sync.client.SyncClient": "the repr of the asynchronous one",
    "client.sync.handles.SyncPendingCall": "the repr of the asynchronous one",
    "client.sync.handles.SyncSubscription": "the repr of the asynchronous one",
    "client.sync.handles.SyncTaskHandle": "the repr of the asynchronous one",
    "client.tasks.poller.TaskState": "its status",
    "client.tasks.task_call.TaskHandle": "its status",
    "compat.erlmcp.codec._Response": "a metaclass",
    "compat.erlmcp.session.server_state": "how many requests are open",
    "compat.mcpp.JsonRpcResponse": "refuses a result beside an error",
    "compat.pierre.JsonRpcError": "its code is an integer; the repr is that of every error",
    "compat.pierre.JsonRpcResponse": "a reply, redacted",
    "jsonrpc.framing.framing.BadHeader": "a flag, and a text, redacted",
    "jsonrpc.messages.EnvelopeExtras": "checks its types, and hides its token",
    "jsonrpc.framing.framing.Oversize": "sizes, and the length of a text",
    "jsonrpc.messages.Batch": "messages, redacted",
    "jsonrpc.messages.Shown": "the mixin itself",
    "jsonrpc.peer.outgoing.Pending": "an id and a method, redacted, and a constant",
    "jsonrpc.framing.sse.Event": "texts, redacted, and a number",
    "jsonrpc.codec.wire_types._TypedCall": "a base without fields",
    "judge.rules.state.BoundedDict": "a dict; its values are records",
    "server.api.app.Server": "its name and counts",
    "server.client_requests.request_state._Key": "keys of the server; held by one object",
    "server.context.ClientFacts": "two records, redacted",
    "server.context.Context": "a method, a name and an id, redacted",
    "server.dispatch.request.ServerRequest": "a method, a name and an id, redacted",
    "server.api.core.ServerCore": "its name and counts",
    "server.dispatch.revision.ServerRevision": "its name",
    "server.runtime.asgi.AsgiApp": "its path and counts",
    "server.runtime.http_listener.HttpListener": "its address",
    "server.runtime.listener.ServerListener": "its address",
    "server.subscriptions.registry.SubscriptionRegistry": "its name and counts",
    "server.tasks.admission.TaskAdmission": "constants and a number",
    "server.tasks.records.ToolTaskRecord": "the name of a tool, and a status",
    "server.tasks.service.ServerTasks": "its name and counts",
    "store.values.Cursor": "two positions in a stream of the store",
    "store.values.Lease": "a key, redacted, and a number",
    "store.values.LogEntry": "the length of its data",
    "store.values.LogPage": "records, redacted",
    "store.values.Message": "the length of its data",
    "store.values.RecordPage": "keys, redacted, and a cursor",
    "store.values.Stored": "the length of its value",
    "store.values.Key": "parts of a key, redacted; refuses other characters",
    "testing.authorization_server.messages.EndpointResponse": "a status and a length",
    "testing.authorization_server.messages.RecordedRequest": "parameters that are not secret",
    "testing.authorization_server.server.AuthorizationServer": "its URL",
    "transports.http.client.pool.ConnectionPool": "counts",
    "transports.http.client.settings.HttpOptions": "numbers, and how many headers there are",
    "transports.http.client.transport.HttpTransport": "its address and counts",
    "transports.http.endpoint.exchange.Exchange": "its request, redacted, and a constant",
    "transports.tap.Tapped": "an address, redacted",
    "transports.websocket.client.DialledWebSocket": "its address and a constant",
    "transports.websocket.server.AcceptedWebSocket": "the address of the client and a constant",
    "transports.http.client.fetch.FetchedResponse": "its status and size",
}
# Rows and tables of specifications hold nothing else.
PACKAGES_OF_ROWS: Final = ("spec.", "compat.erlmcp.spec_records.")


def classes() -> dict[str, type]:
    """Return the classes of all modules, by module and name."""
    for found in pkgutil.walk_packages(trunkline.__path__, "trunkline."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    modules = [each for name, each in sys.modules.items() if f"{name}.".startswith("trunkline.")]
    found_classes: dict[str, type] = {}
    waiting: list[Any] = [*modules]
    while waiting:
        for each in list(vars(waiting.pop()).values()):
            if isinstance(each, type) and str(each.__module__).startswith("trunkline."):
                name = f"{each.__module__}.{each.__qualname__}".removeprefix("trunkline.")
                if name not in found_classes:
                    found_classes[name] = each
                    waiting.append(each)
    return found_classes


def is_record(kind: type) -> bool:
    if issubclass(kind, BaseException | Enum):
        return False
    is_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (
        issubclass(kind, Struct)
        or is_tuple
        or dataclasses.is_dataclass(kind)
        or kind.__repr__ not in (object.__repr__, dict.__repr__, list.__repr__, str.__repr__)
    )


def filled(kind: type, value: Any) -> Any:
    """Return an instance whose fields all hold `value`."""
    if issubclass(kind, Struct):
        return kind(**dict.fromkeys(kind.__struct_fields__, value))
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return kind._make([value] * len(kind._fields))
    made = object.__new__(kind)
    names = [name for each in kind.__mro__ for name in _slots(each)]
    if dataclasses.is_dataclass(kind):
        names += [field.name for field in dataclasses.fields(kind)]
    for name in names:
        object.__setattr__(made, name, value)
    return made


def _slots(kind: type) -> Iterator[str]:
    found = kind.__dict__.get("__slots__", ())
    for name in (found,) if isinstance(found, str) else found:
        if name not in ("__weakref__", "__dict__"):
            is_private = name.startswith("__") and not name.endswith("__")
            yield f"_{kind.__name__.lstrip('_')}{name}" if is_private else name


CANARIES: Final[list[Any]] = [
    {"password": CANARY},
    f"Bearer {CANARY}",
    [{"name": "X-Api-Key", "value": CANARY}],
]


def outcome(kind: type) -> str:
    """Return whether a class shows a canary: "shows", "hides", or "raises" with all of them."""
    found = set()
    for canary in CANARIES:
        try:
            shown = repr(filled(kind, canary))
        except Exception:  # noqa: BLE001  # of any class, and its checks
            found.add("raises")
            continue
        found.add("shows" if CANARY in shown else "hides")
    return next(each for each in ("shows", "hides", "raises") if each in found)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return {
        name: outcome(kind)
        for name, kind in classes().items()
        if is_record(kind) and not name.startswith(PACKAGES_OF_ROWS)
    }


def test_no_record_that_a_peer_can_fill_shows_a_secret(outcomes: dict[str, str]) -> None:
    assert len(outcomes) > 300
    listed = {*OURS, *TYPED}
    wrong = {name: how for name, how in outcomes.items() if how != "hides" and name not in listed}
    assert wrong == {}


def test_the_lists_name_no_class_that_hides_everything_or_is_gone(
    outcomes: dict[str, str],
) -> None:
    assert not {*OURS} & {*TYPED}
    assert [name for name in (*OURS, *TYPED) if outcomes.get(name, "gone") == "hides"] == []
    assert [name for name in (*OURS, *TYPED) if name not in outcomes] == []


def test_a_new_record_that_shows_a_canary_is_found() -> None:
    class Plain(Struct):
        content: Any

    @dataclasses.dataclass
    class Data:
        content: Any

    assert outcome(Plain) == outcome(Data) == "shows"
    assert is_record(Plain)
    assert is_record(Data)


def test_content_is_hidden_in_the_repr_of_an_accepted_elicitation() -> None:
    from trunkline.server.client_requests.client_request import AcceptedElicitation

    class Login(Struct):
        password: str

    for content in ({"password": CANARY}, Login(CANARY)):
        shown = repr(AcceptedElicitation(content))
        assert shown.startswith("AcceptedElicitation(content=")
        assert CANARY not in shown
