"""What clients and servers can declare, in every MCP revision.

Up to 2025-11-25 both sides declare once, in `initialize`. In 2026-07-28 a client declares
in the `_meta` of every request, and a server in the result of `server/discover`.

Both sets are open: a name that is not listed is allowed. The rows of methods name the
capability that they need.
"""

from __future__ import annotations

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
from ..rows import Capability
from .tasks_extension import EXTENSION

__all__ = ["CAPABILITIES"]

# Only in 2025-11-25.
ONE_REVISION: Final = Window(V2025_11_25, V2026_07_28)

NO_TASKS: Final = f"Declare the extension {EXTENSION}; a client no longer runs tasks."
SERVER_DECIDES: Final = (
    f"Declare the extension {EXTENSION}: the server decides which calls become tasks."
)
TASKS_OF_CALLS: Final = (
    "A method that is not listed here runs as usual, even if the request has a task field."
)

# One row per line, so that the table can be read beside the specification.
# fmt: off
CAPABILITIES: Final[tuple[Capability, ...]] = (
    # The client's.
    Capability("experimental", "client", "map", doc="Features outside the specification, by name.", anchor="2026-07-28 · schema#clientcapabilities"),
    Capability("roots", "client", "object", HANDSHAKE, rules=("A client that declares it answers roots/list.", "Every root is a file:// URI."), doc="The client can name the directories the work is about.", anchor="2025-11-25 · client/roots#capabilities"),
    Capability("roots", "client", "object", PER_REQUEST, rules=("A server may ask for roots only inside the result of a request that declared this.",), status="deprecated", doc="The client can name the directories the work is about.", anchor="2026-07-28 · client/roots#capabilities", adopt="Take directories as tool arguments, resource URIs or settings: roots are deprecated."),
    Capability("roots.listChanged", "client", "flag", HANDSHAKE, depends=("roots",), rules=("A client that declares it must send a notification when its roots change.",), doc="The client sends a notification when its roots change.", anchor="2025-11-25 · client/roots#capabilities", instead="Drop it: a server requests the roots each time it needs them."),
    Capability("sampling", "client", "object", HANDSHAKE, rules=("A human should be able to deny sampling requests.",), doc="The client can have its model write a message.", anchor="2025-11-25 · client/sampling#capabilities"),
    Capability("sampling", "client", "object", PER_REQUEST, rules=("A server may ask for a message only inside the result of a request that declared this.",), status="deprecated", doc="The client can have its model write a message.", anchor="2026-07-28 · client/sampling#capabilities", adopt="Call a model yourself: sampling is deprecated."),
    Capability("sampling.context", "client", "object", Window(V2025_11_25), depends=("sampling",), rules=("Without it a server does not send an includeContext other than none.",), status="deprecated", doc="The client can add context from MCP servers to a sampling request.", anchor="2026-07-28 · client/sampling#capabilities", adopt="Leave includeContext out, or send none."),
    Capability("sampling.tools", "client", "object", ONE_REVISION, depends=("sampling",), rules=("Without it a server sends neither tools nor toolChoice.",), doc="The model of the client can use tools that the server supplies.", anchor="2025-11-25 · client/sampling#capabilities", adopt="Declare it to receive tools and toolChoice."),
    Capability("sampling.tools", "client", "object", PER_REQUEST, depends=("sampling",), rules=("Without it a server sends neither tools nor toolChoice.",), status="deprecated", doc="The model of the client can use tools that the server supplies.", anchor="2026-07-28 · client/sampling#capabilities", adopt="Call a model yourself: sampling is deprecated."),
    Capability("elicitation", "client", "object", Window(V2025_06_18, V2025_11_25), rules=("A server must not request sensitive information.",), doc="The client can ask its user to fill in a form.", anchor="2025-06-18 · client/elicitation#capabilities", adopt="Declare it if there is a user who can answer."),
    Capability("elicitation", "client", "object", ONE_REVISION, rules=("An empty object means forms only.", "A server must not use a mode that is not declared."), doc="The client can ask its user to fill in a form or to open a URL.", anchor="2025-11-25 · client/elicitation#capabilities", adopt="Declare the supported modes; an empty object still means forms."),
    Capability("elicitation", "client", "object", PER_REQUEST, rules=("An empty object means forms only.", "A server may ask only inside the result of a request that declared the mode."), doc="The client can ask its user to fill in a form or to open a URL.", anchor="2026-07-28 · client/elicitation#capabilities", adopt="Declare it on each request that may lead to an elicitation."),
    Capability("elicitation.form", "client", "object", Window(V2025_11_25), depends=("elicitation",), rules=("A form must not request sensitive information.",), doc="The user can be asked to fill in a form.", anchor="2026-07-28 · client/elicitation#form-mode-elicitation-requests", adopt="Declare it beside url; an empty elicitation object implies it."),
    Capability("elicitation.url", "client", "object", Window(V2025_11_25), depends=("elicitation",), rules=("The client shows the URL and asks for consent before it opens it.",), doc="The user can be sent to a URL; the client does not see what is entered there.", anchor="2026-07-28 · client/elicitation#url-mode-elicitation-requests", adopt="Declare it to accept URLs; sensitive information is requested in no other way."),
    Capability("tasks", "client", "object", ONE_REVISION, rules=("Which requests can become tasks is listed under requests, and nowhere else.",), status="experimental", doc="The client can run requests of the server as tasks.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", adopt="Declare it with the requests that can become tasks.", instead=NO_TASKS),
    Capability("tasks.list", "client", "object", ONE_REVISION, depends=("tasks",), status="experimental", doc="The client lists its tasks.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.cancel", "client", "object", ONE_REVISION, depends=("tasks",), status="experimental", doc="The client can cancel its tasks.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.requests", "client", "object", ONE_REVISION, depends=("tasks",), rules=(TASKS_OF_CALLS,), status="experimental", doc="The requests that can become tasks of the client.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.requests.sampling", "client", "object", ONE_REVISION, depends=("tasks.requests", "sampling"), status="experimental", doc="The sampling requests that can become tasks.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.requests.sampling.createMessage", "client", "object", ONE_REVISION, depends=("tasks.requests.sampling",), status="experimental", doc="sampling/createMessage can become a task.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.requests.elicitation", "client", "object", ONE_REVISION, depends=("tasks.requests", "elicitation"), status="experimental", doc="The elicitation requests that can become tasks.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("tasks.requests.elicitation.create", "client", "object", ONE_REVISION, depends=("tasks.requests.elicitation",), status="experimental", doc="elicitation/create can become a task.", anchor="2025-11-25 · basic/utilities/tasks#client-capabilities", instead=NO_TASKS),
    Capability("extensions", "client", "map", PER_REQUEST, rules=("A key is the id of an extension, with a prefix; an empty object is support without settings.",), doc="The extensions a client supports, by id, with their settings.", anchor="2026-07-28 · basic/versioning#extension-negotiation", adopt="Declare on each request the extensions that may be used to answer it."),
    Capability(f"extensions.{EXTENSION}", "client", "object", PER_REQUEST, depends=("extensions",), rules=("A server must not answer with a task where the request does not declare this.",), extension=EXTENSION, doc="The client can poll a task to its end.", anchor="2026-07-28 · extensions/tasks/overview", adopt="Declare it on tools/call to allow a task as answer, and on every request about one."),

    # The server's.
    Capability("experimental", "server", "map", doc="Features outside the specification, by name.", anchor="2026-07-28 · schema#servercapabilities"),
    Capability("logging", "server", "object", HANDSHAKE, rules=("A server that sends notifications/message must declare this.",), doc="The server logs to the client.", anchor="2025-11-25 · server/utilities/logging#capabilities"),
    Capability("logging", "server", "object", PER_REQUEST, rules=("A server logs only about requests whose _meta has a log level.",), status="deprecated", doc="The server logs to the client.", anchor="2026-07-28 · server/utilities/logging#capabilities", adopt="Log to stderr or OpenTelemetry: logging to the client is deprecated."),
    Capability("completions", "server", "object", Window(V2025_03_26), rules=("A server that answers completion/complete must declare this.",), doc="The server suggests values for arguments.", anchor="2026-07-28 · server/utilities/completion#capabilities", adopt="Declare it if completion/complete is answered."),
    Capability("prompts", "server", "object", rules=("A server that has prompts must declare this.",), doc="The server has prompts.", anchor="2026-07-28 · server/prompts#capabilities"),
    Capability("prompts.listChanged", "server", "flag", depends=("prompts",), rules=("A server that declares it should send a notification when its prompts change.",), doc="The server sends a notification when its prompts change.", anchor="2026-07-28 · server/prompts#capabilities"),
    Capability("resources", "server", "object", rules=("A server that has resources must declare this.",), doc="The server has resources.", anchor="2026-07-28 · server/resources#capabilities"),
    Capability("resources.subscribe", "server", "flag", HANDSHAKE, depends=("resources",), rules=("A server that declares it answers resources/subscribe and resources/unsubscribe.",), doc="The server sends a notification when a subscribed resource changes.", anchor="2025-11-25 · server/resources#capabilities"),
    Capability("resources.subscribe", "server", "flag", PER_REQUEST, depends=("resources",), rules=("A server that declares it honours resourceSubscriptions in the filter of subscriptions/listen.",), doc="The server sends a notification when a resource changes that a subscriptions/listen stream names.", anchor="2026-07-28 · server/resources#capabilities", adopt="It now means that resourceSubscriptions of subscriptions/listen is honoured."),
    Capability("resources.listChanged", "server", "flag", depends=("resources",), rules=("A server that declares it should send a notification when its list of resources changes.",), doc="The server sends a notification when its list of resources changes.", anchor="2026-07-28 · server/resources#capabilities"),
    Capability("tools", "server", "object", rules=("A server that has tools must declare this.",), doc="The server has tools.", anchor="2026-07-28 · server/tools#capabilities"),
    Capability("tools.listChanged", "server", "flag", depends=("tools",), rules=("A server that declares it should send a notification when its tools change.",), doc="The server sends a notification when its tools change.", anchor="2026-07-28 · server/tools#capabilities"),
    Capability("tasks", "server", "object", ONE_REVISION, rules=("Which requests can become tasks is listed under requests, and nowhere else.",), status="experimental", doc="The server can run requests of the client as tasks.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", adopt="Declare it with the requests that can become tasks.", instead=SERVER_DECIDES),
    Capability("tasks.list", "server", "object", ONE_REVISION, depends=("tasks",), status="experimental", doc="The server lists its tasks.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", instead="Drop it: no method lists tasks any more."),
    Capability("tasks.cancel", "server", "object", ONE_REVISION, depends=("tasks",), status="experimental", doc="The server can cancel its tasks.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", instead=f"Drop it: every server that declares {EXTENSION} answers tasks/cancel."),
    Capability("tasks.requests", "server", "object", ONE_REVISION, depends=("tasks",), rules=(TASKS_OF_CALLS,), status="experimental", doc="The requests that can become tasks of the server.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", instead=SERVER_DECIDES),
    Capability("tasks.requests.tools", "server", "object", ONE_REVISION, depends=("tasks.requests", "tools"), status="experimental", doc="The tool requests that can become tasks.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", instead=SERVER_DECIDES),
    Capability("tasks.requests.tools.call", "server", "object", ONE_REVISION, depends=("tasks.requests.tools",), rules=("Each tool says with execution.taskSupport whether it may, must or must not be a task.",), status="experimental", doc="tools/call can become a task.", anchor="2025-11-25 · basic/utilities/tasks#server-capabilities", instead=SERVER_DECIDES),
    Capability("extensions", "server", "map", PER_REQUEST, rules=("A key is the id of an extension, with a prefix; an empty object is support without settings.",), doc="The extensions a server supports, by id, with their settings.", anchor="2026-07-28 · basic/versioning#extension-negotiation", adopt="Declare extensions in the result of server/discover."),
    Capability(f"extensions.{EXTENSION}", "server", "object", PER_REQUEST, depends=("extensions",), rules=("A task can be looked up by its id before the client receives that id.", "A server that declares it answers tasks/get, tasks/update and tasks/cancel."), extension=EXTENSION, doc="The server may answer tools/call with a task.", anchor="2026-07-28 · extensions/tasks/overview", adopt="Declare it to answer tools/call with tasks; it replaces the tasks capability."),
)
# fmt: on
