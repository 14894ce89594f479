"""What `Client(...)` takes, and the checks of it.

The rules that live here, and only here:

* Each option is one field, with its type and default; the comment above it is its documentation.
  `tools/generate_options.py` writes the signature and docstring of `Client` from these fields
  (`make options`), and `tools/generate_sync_client.py` those of `SyncClient`.
* A request without a timeout of its own has that of the client, else that of the policy, else 60 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from msgspec import Struct

from .. import __version__
from ..jsonrpc.peer.peer import Extras
from ..jsonrpc.policy import Policy
from ..mcp.types import LoggingLevel
from ..spec.revisions import REVISIONS
from .server_requests.handlers import OnElicit, OnElicitUrl, OnSample, Roots
from .session.options import (
    LEVELS,
    OnEvent,
    Prefix,
    Validate,
    check_choice,
    check_count,
    check_seconds,
)
from .session.request import OnProgress
from .subscriptions.notifications import (
    OnListChanged,
    OnListRefreshed,
    OnLog,
    OnNotification,
    OnResourceUpdated,
)

if TYPE_CHECKING:
    from ..transports.http.client.authorization import ClientAuth
    from ..transports.http.client.settings import HttpOptions
    from .connect.extensions import Extensions

__all__ = ["ClientOptions"]

_TIMEOUT_S: Final = 60.0


class ClientOptions(Struct, frozen=True, kw_only=True, eq=False):
    """What `Client(...)` takes beside its target."""

    # The only revision of MCP to accept; by default the newest that both sides support.
    revision: str | None = None
    # How the client introduces itself.
    name: str = "trunkline"
    # The version of the client, not of a protocol.
    version: str = __version__
    # A name for people.
    title: str | None = None
    # Seconds for a request, restarted by each progress notification; by default as many as the
    # policy says, or 60.
    timeout: float | None = None
    # Seconds for a request in all, and the longest `timeout` of any.
    max_timeout: float = 600.0
    # Seconds for connecting.
    connect_timeout: float = 30.0
    # Seconds before the first request of the other era is sent too.
    probe_timeout: float = 3.0
    # What is done about messages that violate the specification: "warn" logs them, "raise" rejects
    # them.
    validate: Validate = "off"
    # Refuse to send requests for which the server declared no capability.
    strict: bool = False
    # Keep results for as long as the server permits.
    cache: bool = True
    # How messages are encoded and decoded.
    policy: Policy | None = None
    # What is sent with each message, if the policy has an envelope for credentials and context, as
    # `Policy.pierre()` has: an `EnvelopeExtras`, or a function of the method that returns one.
    envelope: Extras | None = None
    # The roots to offer: `file://` URIs, or a function that returns them. A capability is declared
    # for each handler that is given, and for no other; handlers and callbacks may be async.
    roots: Roots | None = None
    # Handles sampling requests: returns a `CreateMessageResult`, or a text, whose model is then the
    # name of the client.
    on_sample: OnSample | None = None
    # Handles elicitation by a form.
    on_elicit: OnElicit | None = None
    # Handles elicitation by a URL.
    on_elicit_url: OnElicitUrl | None = None
    # Declare that `on_sample` supports tools.
    sampling_tools: bool = False
    # How often a server may request input for one call in 2026-07-28; requests of the handshake
    # revisions are not counted.
    max_rounds: int = 16
    # Called with log messages.
    on_log: OnLog | None = None
    # Called with the progress of calls that have no callback of their own.
    on_progress: OnProgress | None = None
    # Called with all notifications for which there is no other callback.
    on_notification: OnNotification | None = None
    # Called when a list of the server has changed.
    on_list_changed: OnListChanged | None = None
    # Called with the name of a list and its entries after it has changed: the client fetches it
    # again. The names are "tools", "prompts", "resources" and "resource_templates".
    on_list_refreshed: OnListRefreshed | None = None
    # Called when a subscribed resource has changed.
    on_resource_updated: OnResourceUpdated | None = None
    # Experimental capabilities to declare.
    experimental: dict[str, dict[str, Any]] | None = None
    # Extensions to declare: settings by id, or a list of `ClientExtension`.
    extensions: Extensions | None = None
    # Declare the tasks extension, and follow calls that become tasks.
    tasks: bool = True
    # Request log messages from this level on.
    logging_level: LoggingLevel | None = None
    # Sent with every request over HTTP.
    headers: Mapping[str, str] | None = None
    # Adds credentials over HTTP, such as those of `trunkline.auth.OAuth()`; for the servers of a
    # configuration, a dict of them by the names of the servers.
    auth: ClientAuth | Mapping[str, ClientAuth] | None = None
    # Further options of HTTP.
    http: HttpOptions | None = None
    # Called with a kind and a text when the client retries a request, or reopens a stream or a
    # session; the kind is "retry", "resume", "reconnect", "given-up", "session-lost" or "fallback".
    on_event: OnEvent | None = None
    # "always" puts the name of its server before tools and prompts of a configuration with a single
    # server too, as with several, so that their names stay the same when one is added.
    prefix: Prefix = "auto"
    # With a `Server` as target, raise what a handler raised in the call itself, for tests;
    # otherwise a caller is sent a reference to the log.
    raise_exceptions: bool = False

    def __repr__(self) -> str:
        # Headers and envelopes hold credentials.
        return f"<ClientOptions of {self.name!r}>"

    def check(self) -> None:
        """Raise ValueError for an option that is out of range; the text names the valid values."""
        check_choice("revision", self.revision, (None, *REVISIONS))
        check_choice("prefix", self.prefix, get_args(Prefix))
        check_choice("validate", self.validate, get_args(Validate))
        check_choice("logging_level", self.logging_level, (None, *LEVELS))
        check_count("max_rounds", self.max_rounds)
        if self.sampling_tools and self.on_sample is None:
            raise ValueError("sampling_tools is about on_sample: give both, or neither")
        policy = self.policy or Policy()
        if self.envelope is not None and policy.envelope == "plain":
            raise ValueError(
                'envelope needs a policy that has one: Policy.pierre(), or envelope="pierre"'
            )
        check_seconds("timeout", self.request_timeout)
        for what in ("max_timeout", "connect_timeout", "probe_timeout"):
            check_seconds(what, getattr(self, what))

    @property
    def request_timeout(self) -> float:
        """Seconds for a request, except of a list."""
        if self.timeout is not None:
            return self.timeout
        return (self.policy and self.policy.timeout_s) or _TIMEOUT_S

    @property
    def list_timeout(self) -> float | None:
        """Seconds for the request of a list; None is `request_timeout`."""
        if self.timeout is not None or self.policy is None:
            return None
        return self.policy.list_timeout_s
