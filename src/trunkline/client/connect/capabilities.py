"""The capabilities that a client declares: those of its handlers, and its extensions.

Only the capabilities that the revision has are sent, and extensions in every revision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ...mcp.shaping import narrow
from ...mcp.types import (
    ClientCapabilities,
    ClientCapabilitiesElicitation,
    ClientCapabilitiesRoots,
    ClientCapabilitiesSampling,
)
from ...spec import lookup
from ...spec.mcp.tasks_extension import EXTENSION as TASKS
from ..server_requests.handlers import HandlerFunctions

if TYPE_CHECKING:
    from ..session.decode import Resolver
    from .extensions import Extensions

__all__ = ["TASKS", "capabilities", "extended"]


def extended(
    extensions: Extensions | None, *, tasks: bool
) -> tuple[dict[str, dict[str, Any]], dict[str, Resolver]]:
    """Return the settings of the extensions to declare, and their resolvers by result type.

    With `tasks` the tasks extension is included.

    Raises:
        ValueError: an id is invalid, or used twice.
        TypeError: settings are not a JSON object, or an item is not a `ClientExtension`.
    """
    settings: dict[str, dict[str, Any]] = {}
    resolvers: dict[str, Resolver] = {}
    if extensions is not None:
        # Imported here: most clients have none.
        from .extensions import declared

        settings, resolvers = declared(extensions)
    if tasks:
        settings.setdefault(TASKS, {})
    return settings, resolvers


def capabilities(
    handlers: HandlerFunctions,
    experimental: dict[str, dict[str, Any]] | None,
    extensions: dict[str, dict[str, Any]],
    revision: str,
) -> ClientCapabilities:
    """Return the capabilities to declare in `revision`."""
    found = ClientCapabilities(
        elicitation=_elicitation(handlers, revision),
        experimental=experimental,
        roots=None if handlers.roots is None else ClientCapabilitiesRoots(list_changed=True),
        sampling=_sampling(handlers, revision),
    )
    narrowed = narrow(found, revision)
    # Not narrowed: in `initialize` they are declared too, except that of tasks.
    named = extensions
    if TASKS in extensions and lookup.capability("extensions", revision, "client") is None:
        named = {id: each for id, each in extensions.items() if id != TASKS}
    return replace(narrowed, extensions=named) if named else narrowed


def _elicitation(handlers: HandlerFunctions, revision: str) -> ClientCapabilitiesElicitation | None:
    form, url = (_if_known(f"elicitation.{mode}", revision) for mode in ("form", "url"))
    if handlers.on_elicit_url is None:
        url = None
    if handlers.on_elicit is None:
        # An elicitation capability without a mode would declare forms.
        return None if url is None else ClientCapabilitiesElicitation(url=url)
    return ClientCapabilitiesElicitation(form=form, url=url)


def _sampling(handlers: HandlerFunctions, revision: str) -> ClientCapabilitiesSampling | None:
    if handlers.on_sample is None:
        return None
    tools = _if_known("sampling.tools", revision) if handlers.sampling_tools else None
    return ClientCapabilitiesSampling(tools=tools)


def _if_known(name: str, revision: str) -> dict[str, Any] | None:
    return None if lookup.capability(name, revision, "client") is None else {}
