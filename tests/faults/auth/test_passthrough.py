"""The token of a caller is for this server: what a handler calls does not get it."""

from __future__ import annotations

from typing import Any

from tests.faults.auth.issuing import ANN, auth
from tests.faults.http.serving import make_app, serving, single, text_of
from trunkline import Client
from trunkline.transports.http.request import HttpRequest


def test_a_client_inside_a_handler_does_not_send_the_token_of_the_caller() -> None:
    seen: list[tuple[list[bytes], bool]] = []
    token = ANN.headers()[0][1].removeprefix("Bearer ").encode()

    def upstream_auth(request: HttpRequest) -> str:
        values = b"".join(value for _, value in request.headers)
        seen.append((request.all(b"authorization"), token in values))
        return "upstream"

    upstream, _ = make_app()
    with serving(upstream, auth=upstream_auth) as above:
        app, journal = make_app()

        @app.tool
        async def relays() -> str:
            """Call another server."""
            async with Client(f"http://127.0.0.1:{above.port}/mcp") as client:
                result: Any = await client.call_tool("whoami", {})
                text: str = result.content[0].text
                return text

        with serving(app, journal, auth=auth()) as served, served.connect() as wire:
            headers = [("Authorization", f"Bearer {token.decode()}")]
            answer = wire.ask(single(wire, "relays", headers=headers))
            assert text_of(answer.json) == "upstream"
    assert seen
    assert seen == [([], False)] * len(seen)
