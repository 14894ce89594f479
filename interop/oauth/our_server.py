"""Our server, protected by tokens of an authorization server.

python -m interop.oauth.our_server PORT ISSUER [dpop]
"""

from __future__ import annotations

import sys

from trunkline import Context, Server
from trunkline.auth import AuthSettings, Dpop, JwtBearer

__all__ = ["make_server"]


def make_server(url: str, issuer: str, *, is_dpop: bool) -> Server:
    """Return the server at a URL."""
    verifier = JwtBearer(
        issuer=issuer, audience=url, scopes_supported=["files:read", "files:write"]
    )
    auth = AuthSettings(
        verifiers=[Dpop(verifier, required=True) if is_dpop else verifier], scopes=["files:read"]
    )
    app = Server("protected", auth=auth)

    @app.tool
    def whoami(context: Context) -> dict[str, object]:
        """Return the caller."""
        principal = context.principal
        assert principal is not None
        return {
            "issuer": principal.issuer,
            "subject": principal.subject,
            "client_id": principal.client_id,
            "scopes": sorted(principal.scopes),
        }

    @app.tool(scopes=["files:write"])
    def write() -> str:
        """Write, which needs more than reading."""
        return "written"

    return app


def main() -> None:
    """Serve until a signal ends it."""
    port, issuer, *rest = sys.argv[1:]
    url = f"http://127.0.0.1:{port}/mcp"
    make_server(url, issuer, is_dpop="dpop" in rest).run(url)


if __name__ == "__main__":
    main()
