"""The connection of a shell: opened, opened again after a loss, and in another revision.

Each connection is a new client. What the user has chosen stays: the log level, the subscriptions
and the revision. All messages are recorded, with the number of their connection.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Literal

from ...errors import (
    LocalProtocolError,
    ProtocolError,
    TransportError,
    TrunklineError,
    visible,
)
from ...redaction import redact
from ..connect.talk import make_client, set_log_level, transport_name
from ..output.progress import is_interactive
from ..output.terminal import fitted
from .trace_buffer import TraceBuffer

if TYPE_CHECKING:
    from subprocess import Popen

    from ...client.client import Client
    from ...transports.base import Frame
    from ..connect.elicitation import ElicitationPrompt
    from ..recording import Recording
    from .notifications import ShellConsole

__all__ = ["ShellConnection"]


class ShellConnection:
    """The client of a shell; there is none before `open` and after a loss."""

    def __init__(
        self,
        options: argparse.Namespace,
        console: ShellConsole,
        *,
        prompt: ElicitationPrompt | None = None,
        process: Popen[bytes] | None = None,
        trace_file: Recording | None = None,
    ) -> None:
        self._options = options
        self._console = console
        self._prompt = prompt
        # The command after `--` was started before the event loop: for the first connection.
        self._process = process
        self._trace_file = trace_file
        self._client: Client | None = None
        self._number = 0
        # Resources that changes are reported of, on every connection.
        self.uris: set[str] = set()
        self.trace = TraceBuffer()
        # The name of the server, shown in the prompt; escaped.
        self.server = "server"

    @property
    def client(self) -> Client | None:
        """The client, if it is connected."""
        client = self._client
        return client if client is not None and client.is_connected else None

    @property
    def revision(self) -> str | None:
        """The revision that the user has chosen; None is negotiated."""
        chosen: str | None = self._options.revision
        return chosen

    @property
    def transport(self) -> str:
        """The name of the transport, as in a recording."""
        return transport_name(self._options.target)

    @property
    def target(self) -> str:
        """The target as it was given, secrets hidden."""
        from ...transports.stdio.client import redacted_command

        # Of an entry, the URL and the arguments can hold secrets.
        if self._options.typed:
            config = f" --config {self._options.config}" if self._options.config else ""
            return visible(f"{redact(self._options.typed)}{config}", kept="")
        words = [self._options.target] if self._options.target else self._options.command or []
        return " ".join(visible(each, kept="") for each in redacted_command(words))

    @property
    def can_list_tasks(self) -> bool:
        """Whether the revision has a list of tasks, and the server declares it."""
        from ...client.session.method_checks import check_declared, sendable

        client = self.client
        if client is None or "tasks/list" not in sendable(client.revision, "request"):
            return False
        try:
            check_declared("tasks/list", client.revision, client.server_capabilities)
        except LocalProtocolError:
            return False
        return True

    async def open(self, revision: str | None = None) -> Client:
        """Connect, instead of the connection that there is; None negotiates the revision.

        Raises:
            TrunklineError: there is no connection; the earlier one is closed.
            UsageError: the target does not exist.
        """
        await self.close()
        self._options.revision = revision
        self._number += 1
        number, process, self._process = self._number, self._process, None

        def on_end(error: TransportError | None) -> None:
            # An attempt to connect that failed is reported by its exception.
            if number == self._number and self._client is not None:
                self._lost(error)

        def on_frame(sender: Literal["client", "server"], frame: Frame) -> None:
            self.trace.add(sender, frame, self.transport, number)
            if self._trace_file is not None:
                self._trace_to_file(sender, frame, number)

        client = make_client(
            self._options, self._console, on_frame, self._prompt, process, on_end, **self._listeners
        )
        try:
            with self._console.waiting("connecting"):
                await client.connect()
        except ProtocolError as error:
            raise TransportError(f"cannot connect to the server: {error}") from None
        self._client = client
        await self._restore(client)
        return client

    @property
    def _listeners(self) -> dict[str, Any]:
        console = self._console
        listeners: dict[str, Any] = {"on_resource_updated": console.resource_updated}
        if is_interactive():
            # A script has no use for them, and changes of lists are subscribed to at once.
            listeners["on_list_changed"] = console.list_changed
            listeners["on_notification"] = console.notification
        return listeners

    async def live(self) -> Client:
        """Return a connected client; connect again if the connection was lost.

        Raises:
            TrunklineError: the server cannot be reached.
        """
        client = self.client
        if client is not None:
            return client
        self._console.note("connecting again")
        return await self.open(self.revision)

    async def close(self) -> None:
        """Close the connection, if there is one."""
        self._number += 1  # its end is not a loss
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _restore(self, client: Client) -> None:
        """Set the log level and the subscriptions of the earlier connection."""
        info = client.server_info
        if info is not None:
            self.server = visible(info.name, kept="")
            if self._prompt is not None:
                self._prompt.server = info.name
        try:
            await set_log_level(client, self._options)
            for uri in sorted(self.uris):
                await client.subscribe(uri)
        except TrunklineError as error:
            self._console.note(f"not as before: {error}")

    def _trace_to_file(
        self, sender: Literal["client", "server"], frame: Frame, number: int
    ) -> None:
        try:
            if self._trace_file is not None:
                self._trace_file.add(sender, frame, self.transport, number)
        except OSError as error:
            self._trace_file = None
            self._console.note(f"recording stopped: {error.strerror}")

    def _lost(self, error: TransportError | None) -> None:
        if not self._console.is_prompting:
            return  # the command that runs fails, and says why
        from ..output.server_log import stderr_shown

        why = "the server has closed it"
        if error is not None:
            is_exit = error.exit_status is not None
            why = f"{error.reason} (exit status {error.exit_status})" if is_exit else error.reason
        told = f"the connection is lost: {visible(why, kept='')}; the next command connects again"
        written = stderr_shown(list(self._console.server_lines))
        self._console.note("\n".join(filter(None, (fitted(told), written))))
