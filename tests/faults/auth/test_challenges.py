"""Challenges of a protected server: what a verifier or a handler puts into them breaks none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.auth.issuing import ANN, AUDIENCE, auth
from tests.faults.http.serving import Served, call, make_app, serving, single_headers
from tests.rigs.messages import META
from trunkline import RequestError
from trunkline.auth import AuthSettings, Credential, InvalidCredential
from trunkline.auth.challenge import parse_challenges


class Refusing:
    """A verifier that refuses every credential in its own words."""

    schemes = ("bearer",)
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] = ()
    dpop_algorithms: tuple[str, ...] = ()

    def __init__(self, description: str, **options: Any) -> None:
        self._error = InvalidCredential(description, **options)

    def verify(self, credential: Credential) -> None:
        raise self._error


def ask(served: Served, tool: str, headers: list[tuple[str, str]]) -> Any:
    with served.connect() as wire:
        message = call("tools/call", name=tool, arguments={}, _meta=META)
        return wire.ask(wire.post(message, [*single_headers("tools/call", tool), *headers]))


@pytest.mark.parametrize("text", ["Schlüssel", 'a "b" \\', "x\r\nSet-Cookie: a=b", "\x00\x9b"])
def test_a_verifier_cannot_break_the_header_with_its_words(text: str) -> None:
    app, journal = make_app()
    refusing = Refusing(text, error=text, nonce=text)
    with serving(app, journal, auth=refusing) as served:
        answer = ask(served, "whoami", [("Authorization", "Bearer x")])
    assert answer.status == 401
    assert answer.header("set-cookie") is None
    value = answer.header("www-authenticate") or ""
    assert value.isascii()
    assert value.isprintable()
    (found,) = parse_challenges([value])
    assert set(found.parameters) == {"error", "error_description"}


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        (["files:read", "ü\r\nSet-Cookie: a=b", 'a"b', "two words", ""], "files:read"),
        ([f"s{n:05}" for n in range(10_000)], " ".join(f"s{n:05}" for n in range(64))),
        (["ü"], None),
    ],
)
def test_scopes_that_a_handler_passes_on_cannot_break_the_answer(
    scopes: list[str], expected: str | None
) -> None:
    app, journal = make_app()

    @app.tool
    async def relay() -> str:
        """Fail as another server did."""
        raise RequestError("INSUFFICIENT_PERMISSIONS", data={"requiredScopes": scopes})

    with serving(app, journal, auth=auth()) as served:
        answer = ask(served, "relay", ANN.headers())
    assert answer.status == 403
    assert answer.header("set-cookie") is None
    (found,) = parse_challenges([answer.header("www-authenticate") or ""])
    assert found.error == "insufficient_scope"
    assert found.parameters.get("scope") == expected


def test_a_function_alone_is_challenged_for_a_bearer_token_and_the_metadata() -> None:
    app, journal = make_app()
    settings = AuthSettings(
        verifiers=[lambda request: None],
        authorization_servers=["https://login.example.org"],
        resource=AUDIENCE,
    )
    with serving(app, journal, auth=settings) as served:
        answer = ask(served, "whoami", [("Authorization", "Bearer x")])
    assert answer.status == 401
    (found,) = parse_challenges([answer.header("www-authenticate") or ""])
    assert found.scheme == "bearer"
    metadata = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
    assert found.resource_metadata == metadata
