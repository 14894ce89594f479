"""What `auth=` of a listener means for the whole server: its tenants, and the audit of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...auth.server.settings import settings_of

if TYPE_CHECKING:
    from ...auth.server.settings import AuthSettings
    from ..api.core import ServerCore

__all__ = ["use_auth"]


def use_auth(core: ServerCore, auth: object) -> AuthSettings:
    """Use the tenants and the audit hook of `auth=`, on connections that are opened from now on.

    Return the settings for the listener. Where messages carry credentials, what a listener does
    not know is decided for each message.

    Raises:
        TypeError: it is not a verifier, a function or settings.
        ValueError: another listener of the server has other tenants.
    """
    settings = settings_of(auth)
    tenants = settings.tenants
    if tenants is not None and core.runtime.tenancy is None:
        # Imported here, as below: most servers have no tenants.
        from ...engine.access.tenancy import Tenancy
        from ..access.tool_sets import ToolSets
        from ..observability.tenant_log import enable_tenant_log

        core.runtime.tenancy = Tenancy(core.runtime, tenants)
        core.services.is_gated = True
        if tenants.has_tool_sets:
            core.catalog.tool_sets = ToolSets(tenants.tools, tenants.default_tools)
            core.catalog.forget_lists()
        enable_tenant_log(core)
    elif (
        tenants is not None
        and core.runtime.tenancy is not None
        and core.runtime.tenancy.settings != tenants
    ):
        raise ValueError("the listeners of a server have the same tenants: give both the same")
    if settings.audit is not None:
        from ...engine.observability.audit import enable_audit

        enable_audit(core.runtime, settings.audit)
    if core.policy.envelope != "pierre":
        return settings
    from ..access.envelope import EnvelopeAuth

    core.services.envelope_auth = EnvelopeAuth(core, settings)
    core.services.is_gated = True
    return replace(settings, required=False, tenants=None)
