"""The proof of a client: the method that the authorization server supports, and what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from trunkline.auth.client.flow.client_authentication import ClientIdentity
from trunkline.errors import AuthorizationFailed

ISSUER = "https://login.example.org"
SECRET = "canary-4711"


def sent(
    identity: ClientIdentity, supported: Collection[str] | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a token request has for the proof: members of its form, and headers."""
    form: dict[str, str] = {}
    headers: dict[str, str] = {}
    asyncio.run(identity.apply(form, headers, ISSUER, supported))
    return form, headers


def test_secret_is_sent_as_basic_to_a_server_that_lists_no_methods() -> None:
    form, headers = sent(ClientIdentity("app", client_secret=SECRET), None)
    assert form == {}
    # `app:canary-4711`
    assert headers == {"authorization": "Basic YXBwOmNhbmFyeS00NzEx"}


def test_secret_is_sent_in_the_form_if_the_server_lists_no_other_way() -> None:
    form, headers = sent(ClientIdentity("app", client_secret=SECRET), ["client_secret_post"])
    assert form == {"client_id": "app", "client_secret": SECRET}
    assert headers == {}


@pytest.mark.parametrize("supported", [None, ["client_secret_basic"], ["none"]], ids=str)
def test_public_client_sends_its_id_whatever_the_server_lists(supported: list[str] | None) -> None:
    assert sent(ClientIdentity("app"), supported) == ({"client_id": "app"}, {})


def test_server_without_a_method_of_the_client_is_refused_without_the_secret() -> None:
    with pytest.raises(AuthorizationFailed) as refused:
        sent(ClientIdentity("app", client_secret=SECRET), ["private_key_jwt", "none"])
    assert "does not support client_secret_basic or client_secret_post" in str(refused.value)
    assert SECRET not in str(refused.value)
