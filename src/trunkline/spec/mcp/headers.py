"""The HTTP headers that MCP revisions define or restrict.

2024-11-05 has one rule, about Origin. Sessions and resumption are in 2025-03-26 to 2025-11-25.
2026-07-28 repeats parts of the body in headers, so that proxies need not read it; a server
refuses a message whose headers differ from its body.
"""

from __future__ import annotations

from typing import Final

from ..revisions import PER_REQUEST, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28, Window
from ..rows import Header, Mirror
from .tasks_extension import EXTENSION

__all__ = ["FAMILIES", "HEADERS", "NAME_MEMBERS"]

STREAMABLE: Final = Window(V2025_03_26)
WITH_SESSIONS: Final = Window(V2025_03_26, V2026_07_28)

VERSION: Final = (Mirror("*", "/params/_meta/io.modelcontextprotocol~1protocolVersion"),)
NAMES: Final = (
    Mirror("tools/call", "/params/name"),
    Mirror("prompts/get", "/params/name"),
    Mirror("resources/read", "/params/uri"),
    Mirror("tasks/get", "/params/taskId", EXTENSION),
    Mirror("tasks/update", "/params/taskId", EXTENSION),
    Mirror("tasks/cancel", "/params/taskId", EXTENSION),
)

# One row per line, so that the table can be read beside the specification.
# fmt: off
HEADERS: Final[tuple[Header, ...]] = (
    Header("Accept", "client", required_on="every POST and GET", when=WITH_SESSIONS, doc="A POST lists application/json and text/event-stream, a GET the latter.", anchor="2025-11-25 · basic/transports#sending-messages-to-the-server", adopt="List both kinds of answer on every POST."),
    Header("Accept", "client", required_on="every POST", when=PER_REQUEST, doc="Lists application/json and text/event-stream.", anchor="2026-07-28 · basic/transports/streamable-http#sending-messages", adopt="List both kinds of answer on every POST; there is no GET."),
    Header("Content-Type", "both", required_on="the answer to a request", when=STREAMABLE, doc="A message is application/json; the server may answer a request with text/event-stream.", anchor="2026-07-28 · basic/transports/streamable-http#sending-messages", adopt="Read it to tell a JSON answer from an event stream."),
    Header("Origin", "client", when=Window(until=V2025_11_25), doc="Servers must check it, since a web page could reach them through its visitor.", anchor="2025-06-18 · basic/transports#security-warning"),
    Header("Origin", "client", when=Window(V2025_11_25), doc="Servers must check it, since a web page could reach them through its visitor, and answer 403 to one that is not allowed.", anchor="2026-07-28 · basic/transports/streamable-http#security-endpoint", adopt="Answer an origin that is not allowed with 403."),
    Header("Authorization", "client", required_on="every request to a server that asks for authorization", when=STREAMABLE, doc="Carries the access token; a token is never part of the URL.", anchor="2026-07-28 · basic/authorization#access-token-usage", adopt="Send the token with each request, not once per session."),
    Header("WWW-Authenticate", "server", required_on="a 401 answer", when=Window(V2025_06_18, V2025_11_25), doc="Names the resource metadata, from which the client learns how to get a token.", anchor="2025-06-18 · basic/authorization#authorization-server-location", adopt="Name the resource metadata in each 401 answer."),
    Header("WWW-Authenticate", "server", when=Window(V2025_11_25), doc="Names the resource metadata and the missing scopes; well-known addresses may replace the former.", anchor="2026-07-28 · basic/authorization/authorization-server-discovery", adopt="Look at the well-known addresses where a 401 answer lacks it; name the missing scopes in a 403."),
    Header("Mcp-Session-Id", "both", required_on="every request of a session, once the server has given an id", when=WITH_SESSIONS, doc="Names the session; the server gives it with the answer to initialize, in visible ASCII.", anchor="2025-11-25 · basic/transports#session-management", adopt="Send back on every request what the server gave; start a new session after a 404.", instead="Drop it and ignore it: give clients a handle to pass as a tool argument where calls belong together."),
    Header("Last-Event-ID", "client", when=WITH_SESSIONS, doc="On a GET, requests the events after the last one received.", anchor="2025-11-25 · basic/transports#resumability-and-redelivery", adopt="Send it to resume a broken stream whose events had ids.", instead="Drop it and ignore it: retry a request, with a new id, if its stream breaks."),
    Header("MCP-Protocol-Version", "client", when=Window(V2025_03_26, V2025_06_18), doc="Names the revision to a server that is asked for its authorization metadata.", anchor="2025-03-26 · basic/authorization#server-metadata-discovery", adopt="Send it when asking for authorization metadata."),
    Header("MCP-Protocol-Version", "client", required_on="every request after initialize", when=Window(V2025_06_18, V2026_07_28), doc="Names the negotiated revision; where it is missing and nothing else tells, a server assumes 2025-03-26.", anchor="2025-11-25 · basic/transports#protocol-version-header", adopt="Send the negotiated revision after initialize; answer an unsupported one with 400."),
    Header("MCP-Protocol-Version", "client", required_on="every POST", mirrors=VERSION, when=PER_REQUEST, doc="Names the revision of the request, the same as in its _meta.", anchor="2026-07-28 · basic/transports/streamable-http#protocol-version-header", adopt="Send it on every POST, equal to the version in _meta; refuse a difference with -32020."),
    Header("Mcp-Method", "client", required_on="every request", mirrors=(Mirror("*", "/method"),), when=PER_REQUEST, doc="Repeats the method, so that proxies need not read the body.", anchor="2026-07-28 · basic/transports/streamable-http#standard-request-headers", adopt="Send it on every request; refuse a difference with -32020."),
    Header("Mcp-Name", "client", required_on="tools/call, prompts/get and resources/read", mirrors=NAMES, base64=True, when=PER_REQUEST, doc="Repeats the name of the tool or prompt, or the URI of the resource; with the tasks extension, the id of the task.", anchor="2026-07-28 · basic/transports/streamable-http#standard-request-headers", adopt="Send it with those methods, in Base64 if HTTP cannot carry it; refuse a difference with -32020."),
    Header("Mcp-Param-{Name}", "client", required_on="tools/call, for each argument with x-mcp-header that is present and not null", mirrors=(Mirror("tools/call", "/params/arguments"),), base64=True, when=PER_REQUEST, doc="Repeats an argument whose schema has x-mcp-header with this name.", anchor="2026-07-28 · basic/transports/streamable-http#custom-headers-from-tool-parameters", adopt="Look for x-mcp-header in the schemas of tools, and leave out tools that use it wrongly."),
    Header("X-Accel-Buffering", "server", when=PER_REQUEST, doc="The value no prevents proxies from buffering events; a server should send it with each event stream.", anchor="2026-07-28 · basic/transports/streamable-http#receiving-messages", adopt="Send no with each event stream."),
)
# fmt: on

# The headers whose name ends in one that a tool chooses.
FAMILIES: Final = tuple(row for row in HEADERS if row.name.endswith("{Name}"))

# The member of params that `Mcp-Name` repeats, by method.
NAME_MEMBERS: Final = {row.method: row.pointer.removeprefix("/params/") for row in NAMES}
