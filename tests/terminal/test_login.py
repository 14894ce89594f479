"""Logging in at a terminal: what is asked, what is shown, and what is not."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener

import pytest

from tests.rigs.protected_server import ProtectedServer, hosted
from trunkline.auth import FileTokens
from trunkline.auth.client.storage.token_store import StoredLogin

if TYPE_CHECKING:
    from .conftest import Terminal

CANARY = "CANARY-4410"
# The address to visit is one line of the screen.
WIDE = 1500


@pytest.fixture(scope="module")
def where() -> Iterator[ProtectedServer]:
    with hosted() as found:
        found.login.client("cli", client_secret=CANARY, redirect_uris=["http://127.0.0.1/callback"])
        yield found


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user without logins, and without a browser."""
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "BROWSER": "true %s"}


def kept(home: dict[str, str]) -> list[StoredLogin | None]:
    tokens = FileTokens(Path(home["XDG_STATE_HOME"]) / "trunkline" / "tokens")
    return [StoredLogin.decode(each) for each in tokens.records() if isinstance(each, bytes)]


class Unfollowed(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def consent(terminal: Terminal, issuer: str) -> str:
    """Visit the address on the screen; return where the browser is sent to."""
    (url,) = (line for line in terminal.text.splitlines() if line.startswith(f"{issuer}/"))
    with pytest.raises(HTTPError) as answer:
        build_opener(Unfollowed).open(url, timeout=60)
    with answer.value:
        return str(answer.value.headers["location"])


def test_the_address_is_pasted(
    terminal: Callable[..., Terminal], where: ProtectedServer, home: dict[str, str]
) -> None:
    shown = terminal("login", where.url, "--no-browser", columns=WIDE, **home)
    shown.until("\n>")
    shown.type(f"{consent(shown, where.login.issuer)}\n")
    assert shown.wait() == 0
    assert "logged in" in shown.text
    assert f"issuer:       {where.login.issuer}" in shown.text
    (login,) = kept(home)
    assert login is not None
    assert login.refresh_token is not None
    assert login.access_token not in shown.raw.decode()
    assert login.refresh_token not in shown.raw.decode()
    shown.assert_usable()


def test_a_secret_that_is_typed_is_not_shown(
    terminal: Callable[..., Terminal], where: ProtectedServer, home: dict[str, str]
) -> None:
    shown = terminal(
        *("login", where.url, "--client-id", "cli", "--client-secret-prompt", "--no-browser"),
        columns=WIDE,
        **home,
    )
    shown.until("client secret:")
    shown.type(f"{CANARY}\n")
    shown.until("\n>")
    shown.type(f"{consent(shown, where.login.issuer)}\n")
    assert shown.wait() == 0
    assert CANARY not in shown.raw.decode()
    (login,) = kept(home)
    assert login is not None
    assert login.client_id == "cli"
    shown.assert_usable()


@pytest.mark.parametrize("way", [(), ("--no-browser",)])
def test_an_interrupted_login_leaves_nothing(
    terminal: Callable[..., Terminal],
    where: ProtectedServer,
    home: dict[str, str],
    way: tuple[str, ...],
) -> None:
    shown = terminal("login", where.url, *way, columns=WIDE, **home)
    shown.until(f"{where.login.issuer}/authorize")
    shown.type("\x03")
    assert shown.wait() == 130
    assert "Traceback" not in shown.text
    assert kept(home) == []
    shown.assert_usable()


def test_a_terminated_login_leaves_nothing(
    terminal: Callable[..., Terminal], where: ProtectedServer, home: dict[str, str]
) -> None:
    shown = terminal("login", where.url, columns=WIDE, **home)
    shown.until(f"{where.login.issuer}/authorize")
    shown.send(signal.SIGTERM)
    assert shown.wait() == 143
    assert "Traceback" not in shown.text
    assert kept(home) == []


def test_status_and_logout_at_a_terminal(
    terminal: Callable[..., Terminal], where: ProtectedServer, home: dict[str, str]
) -> None:
    made = terminal("login", where.url, "--no-browser", columns=WIDE, **home)
    made.until("\n>")
    made.type(f"{consent(made, where.login.issuer)}\n")
    assert made.wait() == 0
    status = terminal("auth", "status", **home)
    assert status.wait() == 0
    assert where.url in status.text
    (login,) = kept(home)
    assert login is not None
    assert login.access_token not in status.raw.decode()
    ended = terminal("logout", where.url, **home)
    assert ended.wait() == 0
    assert "logged out" in ended.text
    assert kept(home) == []
