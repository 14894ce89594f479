"""Logging in and out from the command line, and what other verbs do with a login."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, build_opener, urlopen

import pytest

from tests.rigs.protected_server import ProtectedServer, hosted
from trunkline.auth import FileTokens
from trunkline.auth.client.storage.token_store import StoredLogin
from trunkline.cli import main
from trunkline.cli.connect import target
from trunkline.cli.connect.login import kept_login
from trunkline.testing import Approval
from trunkline.transports.addresses import Tls, parse_address

CANARY = "CANARY-0be7"
WAIT = 60
TRUNKLINE = [sys.executable, "-m", "trunkline"]
# A browser whose user consents at once.
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


class Ran(NamedTuple):
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


class Desk:
    """A user at a machine: a home, and a browser.

    `run` runs a verb in this process, `start` in one of its own.
    """

    def __init__(
        self, home: Path, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        self._patch = patch
        self._captured = captured
        script = home / "browser"
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{BROWSER}' \"$1\"\n")
        script.chmod(0o755)
        self.state = home / "state"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"},
            "HOME": str(home),
            "XDG_STATE_HOME": str(self.state),
            "BROWSER": f"{script} %s",
            "NO_COLOR": "1",
        }

    @property
    def tokens(self) -> FileTokens:
        return FileTokens(self.state / "trunkline" / "tokens")

    @property
    def login(self) -> StoredLogin:
        (found,) = self.tokens.records()
        assert isinstance(found, bytes)
        login = StoredLogin.decode(found)
        assert login is not None
        return login

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*TRUNKLINE, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.environment, **more},
        )

    def run(self, *words: str, given: str = "", **more: str) -> Ran:
        with self._patch.context() as patch:
            for name in os.environ.keys() - self.environment:
                patch.delenv(name)
            for name, value in {**self.environment, **more}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.StringIO(given))
            patch.setattr(webbrowser, "open", consent)
            self._captured.readouterr()
            status = main(words)
            return Ran(status, *self._captured.readouterr())

    def run_alone(self, *words: str, given: str = "", **more: str) -> Ran:
        process = self.start(*words, **more)
        out, err = process.communicate(given, timeout=WAIT)
        return Ran(process.returncode, out, err)


def consent(url: str) -> bool:
    """Open an address as a browser does whose user consents at once."""

    def visit() -> None:
        with suppress(HTTPError):  # a page with an error is shown too
            urlopen(url, timeout=WAIT).close()

    threading.Thread(target=visit).start()
    return True


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    return Desk(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def where() -> Iterator[ProtectedServer]:
    with hosted(default_scopes=["files:read"]) as found:
        yield found


def secrets_of(login: StoredLogin) -> list[str]:
    given = (login.access_token, login.refresh_token, login.client_secret, login.dpop_key)
    return [each for each in given if each]


def test_a_login_is_used_by_every_verb_and_ends_with_logout(
    desk: Desk, where: ProtectedServer
) -> None:
    refused = desk.run("call", where.url, "subject")
    assert refused.status == 1
    assert refused.err == (
        f"trunkline call: {where.url} asks for a login\n  log in: trunkline login {where.url}\n"
    )
    host = desk.run(*("install", where.url, "--to", "cursor", "--name", "a", "--create", "--yes"))
    assert host.status == 0, host.err
    unchecked = desk.run("hosts", "cursor", "--check")
    assert unchecked.status == 1
    assert (
        "      fails: asks for a login, which the host has of its own; for this check: "
        f"trunkline login {where.url}\n" in unchecked.out
    )
    made = desk.run_alone("login", where.url, "--scope", "files:write")
    assert made.status == 0, made.err
    assert "log in in the browser" in made.err
    login = desk.login
    secrets = secrets_of(login)
    assert len(secrets) >= 2

    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    trace = desk.state / "trace.jsonl"
    runs = [
        desk.run("call", where.url, "subject", "--trace", str(trace)),
        desk.run("list", where.url),
        desk.run("read", where.url, "note://one"),
        desk.run("prompt", where.url, "greeting"),
        desk.run("ping", where.url),
        desk.run("diff", where.url, where.url),
        desk.run_alone(
            *("proxy", "--record", str(desk.state / "record.jsonl"), where.url),
            given=f"{json.dumps(initialize)}\n",
        ),
        desk.run("hosts", "cursor", "--check"),
        desk.run("auth", "status"),
        desk.run("auth", "status", "--json"),
    ]
    assert [each.status for each in runs] == [0] * len(runs), runs
    assert runs[0].out == "user files:write\n"
    assert '"name":"files"' in runs[6].out
    ended = desk.run("logout", where.url)
    assert ended == Ran(0, "", "trunkline logout: logged out\n")
    revoked = [each for each in where.login.requests if each.endpoint == "revoke"]
    assert [each.parameters["token_type_hint"] for each in revoked[-2:]] == [
        *("refresh_token", "access_token"),
    ]
    assert list(desk.tokens.records()) == []
    assert desk.run("ping", where.url).status == 1
    again = desk.run("logout", where.url)
    assert again.status == 2
    assert "there is no login for" in again.err

    written = "".join(each.out + each.err for each in (made, ended, *runs))
    recorded = trace.read_text() + (desk.state / "record.jsonl").read_text()
    assert "files" in recorded
    for secret in secrets:
        assert secret not in written + recorded


def test_an_entry_of_a_file_is_logged_in_by_its_name(
    desk: Desk, where: ProtectedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = f"{CANARY}-client"
    where.login.client(
        "desk", client_secret=secret, redirect_uris=["http://127.0.0.1/callback"], client_name="d"
    )
    auth = {
        "type": "oauth",
        "scopes": ["files:read", "files:write"],
        "client_id": "desk",
        "client_secret": "${SHOP_SECRET}",
        "issuer": where.login.issuer,
    }
    entries = {"shop": {"url": where.url, "auth": "oauth"}, "own": {"url": where.url, "auth": auth}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
    monkeypatch.chdir(tmp_path)
    for words in (("mcp.json:shop",), ("--config", "mcp.json", "shop")):
        refused = desk.run("list", *words)
        assert refused.status == 1
        assert refused.err == (
            "trunkline list: mcp.json:shop asks for a login\n"
            "  log in: trunkline login mcp.json:shop\n"
        )
    made = desk.run("login", "mcp.json:shop")
    assert made.status == 0, made.err
    assert "files:read\n" in made.out
    assert desk.login.client_id.startswith("client-")
    for words in (("mcp.json:shop",), ("--config", "mcp.json", "shop")):
        assert "subject" in desk.run("list", *words).out
    # The options of the entry are used, and those of the command line precede them.
    unset = desk.run("login", "mcp.json:own")
    assert unset.status == 2
    assert "auth.client_secret: the environment variable SHOP_SECRET is not set" in unset.err
    made = desk.run("login", "mcp.json:own", SHOP_SECRET=secret)
    assert made.status == 0, made.err
    assert (desk.login.client_id, desk.login.issuer) == ("desk", where.login.issuer)
    assert "scopes:       files:read files:write\n" in made.out
    asked = desk.run("login", "mcp.json:own", "--scope", "files:write", SHOP_SECRET=secret)
    assert "scopes:       files:write\n" in asked.out
    written = "".join(each.out + each.err for each in (made, unset, asked))
    assert CANARY not in written
    assert desk.run("logout", "mcp.json:shop").status == 0
    assert list(desk.tokens.records()) == []


def test_the_status_shows_what_names_a_login_and_no_secret(desk: Desk) -> None:
    login = StoredLogin(
        server="https://mcp.example.org/mcp",
        issuer="https://login.example.org\x1b[2J",
        resource="https://mcp.example.org/mcp",
        client_id="cli",
        client_secret=f"{CANARY}-secret",
        access_token=f"{CANARY}-access",
        refresh_token=f"{CANARY}-refresh",
        dpop_key=f"{CANARY}-key",
        expires_at=time.time() + 7300,
        scopes=["files:read"],
    )
    ended = StoredLogin(
        server="https://other.example.org/mcp",
        issuer="https://login.example.org",
        resource="https://other.example.org/mcp",
        client_id="cli",
        access_token=f"{CANARY}-access",
        expires_at=time.time() - 200,
    )
    desk.tokens.store("one", login.encode())
    desk.tokens.store("two", ended.encode())
    desk.tokens.store("three", ended.without_tokens().encode())
    desk.tokens.store("four", b"not a record")
    shown = desk.run("auth", "status")
    assert desk.run("auth") == shown
    assert shown.status == 0
    assert "server:        https://mcp.example.org/mcp\n" in shown.out
    assert "\x1b" not in shown.out
    assert "access ends:   in 2 h\n" in shown.out
    assert "bound to key:  yes\n" in shown.out
    assert ", 3 min ago\n" in shown.out
    assert "no: log in again" in shown.out
    document = json.loads(desk.run("auth", "status", "--json").out)
    assert document["format"] == "trunkline.auth-status/1"
    assert [each["server"] for each in document["logins"]] == [login.server, ended.server]
    assert document["logins"][0].keys() == {
        *("server", "issuer", "client_id", "scopes", "requested_scopes", "expires_at"),
        *("is_expired", "is_refreshable", "is_bound_to_key"),
    }
    one = desk.run("auth", "status", "https://OTHER.example.org:443/mcp", "--json")
    assert [each["server"] for each in json.loads(one.out)["logins"]] == [ended.server]
    assert CANARY not in shown.out + shown.err + json.dumps(document) + one.out


def test_the_status_without_logins_and_with_a_file_that_others_can_read(desk: Desk) -> None:
    assert desk.run("auth", "status") == Ran(1, "no logins are kept\n", "")
    assert desk.run("auth") == Ran(1, "no logins are kept\n", "")
    desk.tokens.store("one", b"{}")
    next(Path(desk.tokens.path).glob("*.json")).chmod(0o644)
    shown = desk.run("auth", "status")
    assert shown.status == 1
    assert "chmod 600" in shown.err


def test_the_status_is_shown_without_posix(desk: Desk) -> None:
    desk.tokens.store("one", b"{}")
    shown = subprocess.run(
        [sys.executable, "-m", "tests.without_posix", "trunkline", "auth", "status"],
        env=desk.environment,
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
    )
    assert (shown.returncode, shown.stdout) == (1, "no logins are kept\n"), shown.stderr


def test_a_login_that_others_can_read_is_not_used(desk: Desk, where: ProtectedServer) -> None:
    assert desk.run("login", where.url).status == 0
    next(Path(desk.tokens.path).glob("*.json")).chmod(0o644)
    used = desk.run("ping", where.url)
    assert used.status != 0
    assert "chmod 600" in used.err
    assert "Traceback" not in used.err


class Unfollowed(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def visited(url: str) -> str:
    """Return where the browser of a user who consents is sent to."""
    try:
        build_opener(Unfollowed).open(url, timeout=WAIT)
    except HTTPError as answer:
        return str(answer.headers["location"])
    raise AssertionError("no redirect")


def test_without_a_browser_the_address_is_pasted(desk: Desk, where: ProtectedServer) -> None:
    process = desk.start("login", where.url, "--no-browser")
    assert process.stderr is not None
    assert process.stdin is not None
    assert "visit this address" in process.stderr.readline()
    sent_to = visited(process.stderr.readline().strip())
    out, err = process.communicate(f"{sent_to}\n", timeout=WAIT)
    assert process.returncode == 0, err
    assert out.startswith("logged in\n")
    for secret in secrets_of(desk.login):
        assert secret not in out + err


@pytest.mark.parametrize(
    "pasted", ["\n", "http://127.0.0.1/callback?code=abc&state=wrong\n", "x\n"]
)
def test_a_login_that_fails_leaves_the_old_one(
    desk: Desk, where: ProtectedServer, pasted: str
) -> None:
    assert desk.run("login", where.url).status == 0
    before = desk.login
    shown = desk.run("login", where.url, "--no-browser", given=pasted)
    assert shown.status == 1
    assert shown.err.splitlines()[-1].startswith("trunkline login: authorization request: ")
    assert desk.login == before
    assert desk.run("ping", where.url).status == 0


def test_a_user_that_declines_is_reported(desk: Desk) -> None:
    with hosted(approve=False) as where:
        shown = desk.run("login", where.url)
        assert shown.status == 1
        assert "access_denied" in shown.err
        assert list(desk.tokens.records()) == []


def test_a_second_login_uses_the_same_client(desk: Desk, where: ProtectedServer) -> None:
    assert desk.run("login", where.url).status == 0
    client_id = desk.login.client_id
    assert desk.run("login", where.url).status == 0
    assert desk.login.client_id == client_id


def test_a_client_secret_comes_from_a_variable_and_is_kept_for_refreshes(desk: Desk) -> None:
    with hosted(access_lifetime=1) as where:
        where.login.client("cli", client_secret=CANARY, redirect_uris=["http://127.0.0.1/callback"])
        words = ("login", where.url, "--client-id", "cli")
        missing = desk.run(*words, "--client-secret-env", "SECRET")
        assert missing.status == 2
        made = desk.run(*words, "--client-secret-env", "SECRET", SECRET=CANARY)
        assert made.status == 0, made.err
        time.sleep(1)  # the token has ended
        used = desk.run("call", where.url, "subject")
        assert used.status == 0, used.err
        assert where.forms("refresh_token")
        status = desk.run("auth", "status", "--json")
        ended = desk.run("logout", where.url)
        assert ended.status == 0, ended.err
        for ran in (made, used, status, ended):
            assert CANARY not in ran.out + ran.err


def test_secrets_are_not_taken_from_the_command_line(desk: Desk) -> None:
    shown = desk.run("login", "https://mcp.example.org/", "--client-secret", CANARY)
    assert shown.status == 2
    assert CANARY not in shown.err
    prompt = desk.run(
        "login", "https://mcp.example.org/", "--client-id", "x", "--client-secret-prompt"
    )
    assert prompt.status == 2
    assert "needs a terminal" in prompt.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["tcp://localhost:9000"], "is not the URL of a server"),
        (["http://mcp.example.org/mcp"], "is not encrypted"),
        (["https://mcp.example.org/mcp", "--client-secret-env", "X"], "needs --client-id"),
        (["https://mcp.example.org/mcp", "--client-metadata-url", "http://x/y"], "https"),
        (["https://mcp.example.org/mcp", "--timeout", "0"], "above 0"),
        (["https://mcp.example.org/mcp", "--issuer", "https://login.example.org"], "client-id"),
    ],
)
def test_wrong_usage_of_login(desk: Desk, words: list[str], text: str) -> None:
    shown = desk.run("login", *words)
    assert shown.status == 2
    assert text in shown.err
    assert "Traceback" not in shown.err


def test_a_server_that_asks_for_nothing_has_no_login(desk: Desk, tmp_path: Path) -> None:
    from tests.rigs.protected_server import hosted_openly

    with hosted_openly() as url:
        shown = desk.run("login", url)
        assert shown == Ran(
            1,
            "",
            f"trunkline login: authorization request: '{url}' asked for no login: it answered "
            "without one\n",
        )
        assert list(desk.tokens.records()) == []


def test_a_login_is_optional_at_a_server_that_names_its_authorization_server(desk: Desk) -> None:
    with hosted(required=False) as where:
        where.login.fail("register", status=403)
        shown = desk.run("login", where.url)
        assert shown.status == 1
        assert "registration: the authorization server refused with status 403" in shown.err
        assert desk.run("login", where.url).status == 0
        assert desk.login.access_token


def test_an_unreachable_server_is_status_3(desk: Desk) -> None:
    shown = desk.run("login", "http://127.0.0.1:9/mcp")
    assert shown.status == 3
    assert "Traceback" not in shown.err


def test_processes_that_share_a_login_refresh_it_once(desk: Desk) -> None:
    with hosted(access_lifetime=3600) as where:
        assert desk.run("login", where.url).status == 0
        login = desk.login
        login.expires_at = login.renew_at = time.time() - 10
        desk.tokens.store(where.url, login.encode())
        running = [desk.start("call", where.url, "subject") for _ in range(4)]
        ran = [each.communicate(timeout=WAIT) for each in running]
        assert [each.returncode for each in running] == [0] * 4, ran
        assert len(where.forms("refresh_token")) == 1
        assert desk.login.refresh_token != login.refresh_token
        assert desk.login.refresh_token is not None


def test_a_login_that_cannot_be_refreshed_names_the_verb(desk: Desk) -> None:
    with hosted() as where:
        assert desk.run("login", where.url).status == 0
        login = desk.login
        assert login.refresh_token is not None
        where.login.revoke(login.refresh_token)
        login.expires_at = login.renew_at = time.time() - 10
        desk.tokens.store(where.url, login.encode())
        registered = sum(each.endpoint == "register" for each in where.login.requests)
        for _ in range(2):
            shown = desk.run("ping", where.url)
            assert shown.status == 1
            assert f"trunkline login {where.url}" in shown.err
            assert login.refresh_token not in shown.err
        # No verb but `login` registers a client.
        assert sum(each.endpoint == "register" for each in where.login.requests) == registered


def test_a_header_of_the_caller_goes_before_the_login(desk: Desk, where: ProtectedServer) -> None:
    assert desk.run("login", where.url).status == 0
    shown = desk.run("ping", where.url, "--header-env", "Authorization=TOKEN", TOKEN="Bearer abc")
    assert shown.status == 1
    assert "refused the Authorization header" in shown.err


def test_logout_deletes_what_cannot_be_revoked(desk: Desk) -> None:
    with hosted() as where:
        assert desk.run("login", where.url).status == 0
        where.login.fail("revoke", status=503)
        shown = desk.run("logout", where.url)
        assert shown.status == 3
        assert "not revoked" in shown.err
        assert list(desk.tokens.records()) == []
        assert desk.run("login", where.url).status == 0
        where.login.metadata_changes["revocation_endpoint"] = None
        assert "has no revocation" in desk.run("logout", where.url).err
        assert desk.run("login", where.url).status == 0
        before = len(where.login.requests)
        assert desk.run("logout", where.url, "--local").status == 0
        assert len(where.login.requests) == before
        assert list(desk.tokens.records()) == []


def test_a_login_can_be_bound_to_a_key(desk: Desk) -> None:
    with hosted(dpop=True, nonces=True) as where:
        assert desk.run("login", where.url, "--dpop").status == 0
        assert desk.login.dpop_key is not None
        assert desk.run("call", where.url, "subject").status == 0


def test_a_call_that_needs_more_scopes_says_how_to_log_in(
    desk: Desk, where: ProtectedServer
) -> None:
    assert desk.run("login", where.url, "--scope", "files:read").status == 0
    shown = desk.run("call", where.url, "save")
    assert shown.status == 1
    advice = f"trunkline login {where.url} --scope files:read --scope files:write"
    assert shown.err == (
        "trunkline call: scope: the server asks for the scopes 'files:write', and the login has "
        f"others (insufficient_scope)\n  log in: {advice}\n"
    )
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "save",
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    }
    told = desk.run_alone("proxy", where.url, given=f"{json.dumps(request)}\n")
    assert advice in json.loads(told.out)["error"]["message"]
    made = desk.run(*advice.split()[1:])
    assert made.status == 0, made.err
    assert desk.run("call", where.url, "save").out == "saved\n"


def test_the_status_has_what_was_granted(desk: Desk) -> None:
    fewer = Approval(subject="user", scopes=frozenset(["files:read"]))
    with hosted(approve=lambda _: fewer) as where:
        made = desk.run("login", where.url, "--scope", "files:read", "--scope", "files:write")
        assert made.status == 0, made.err
        assert "scopes:       files:read\n" in made.out
        assert "not granted:  files:write\n" in made.out
        (login,) = json.loads(desk.run("auth", "status", "--json").out)["logins"]
        assert login["scopes"] == ["files:read"]
        assert login["requested_scopes"] == ["files:read", "files:write"]


def test_a_verb_trusts_its_authorities_at_the_authorization_server_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://mcp.example.org/mcp"
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.state))
    kept = StoredLogin(server=url, issuer="https://login.example.org", resource=url)
    kept.access_token = "token"
    desk.tokens.store(url, kept.encode())
    plain = kept_login(parse_address(url))
    assert plain._tls is None
    address = parse_address(url, tls=Tls(ca="ca.pem", cert="client.pem", server_name="other"))
    # The certificate of the client is for the server alone.
    assert kept_login(address)._tls == Tls(ca="ca.pem")


def test_a_login_whose_client_was_forgotten_is_deleted_by_logout(
    desk: Desk, where: ProtectedServer
) -> None:
    assert desk.run("login", where.url).status == 0
    (path,) = Path(desk.tokens.path).glob("*.json")
    kept = json.loads(path.read_bytes())
    for name in ("client_id", "access_token", "refresh_token"):
        del kept[name]
    path.write_text(json.dumps(kept))
    assert desk.run("logout", where.url) == Ran(0, "", "trunkline logout: logged out\n")
    assert not path.exists()


@pytest.mark.parametrize("option", [(), ("--no-browser",)])
def test_a_login_with_an_earlier_registration_says_how_to_forget_it(
    desk: Desk, option: tuple[str, ...]
) -> None:
    with hosted() as where:
        advice = (
            "  if the browser shows that the client is unknown, press Ctrl-C, forget its "
            f"registration by `trunkline logout {where.url}`, and log in again\n"
        )
        first = desk.run("login", where.url)
        assert first.status == 0, first.err
        assert first.err.startswith(
            "trunkline login: log in in the browser within 300 s (Ctrl-C ends the wait), at\n"
        )
        assert advice not in first.err
        kept = desk.login
        kept.redirect_uri = "http://127.0.0.1/callback" if option else kept.redirect_uri
        desk.tokens.store(where.url, kept.encode())
        where.login.forget_client(kept.client_id)
        again = desk.run("login", where.url, "--timeout", "1", *option)
        assert again.status == 1
        assert "within 1 s" in again.err.splitlines()[0]
        assert advice in again.err
        assert desk.run("logout", where.url).status == 3  # nothing can be revoked there
        assert desk.run("login", where.url).status == 0
        # A client of the configuration is registered by hand.
        own = desk.run("login", where.url, "--client-id", desk.login.client_id)
        assert own.status == 0, own.err
        assert advice not in own.err


def test_a_login_that_cannot_be_read_is_deleted_by_logout(
    desk: Desk, where: ProtectedServer
) -> None:
    assert desk.run("login", where.url).status == 0
    (path,) = Path(desk.tokens.path).glob("*.json")
    path.write_bytes(path.read_bytes()[:-20])
    assert desk.run("call", where.url, "subject").status == 1
    shown = desk.run("logout", where.url)
    assert shown.status == 3
    assert "not revoked" in shown.err
    assert not path.exists()


def test_the_proxy_says_how_to_log_in(desk: Desk, where: ProtectedServer) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    shown = desk.run_alone("proxy", where.url, given=f"{json.dumps(request)}\n")
    assert f"trunkline login {where.url}" in json.loads(shown.out)["error"]["message"]


def test_the_folder_is_found_as_the_storage_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for home, state in (("home", ""), ("home", "relative"), ("home", str(tmp_path / "state"))):
        monkeypatch.setenv("HOME", str(tmp_path / home))
        monkeypatch.setenv("XDG_STATE_HOME", state)
        folder = FileTokens()
        assert not target._has_logins() or Path(folder.path).is_dir()
        folder.store("one", b"{}")
        assert target._has_logins()
        folder.delete("one")
        for left in Path(folder.path).iterdir():
            left.unlink()
        Path(folder.path).rmdir()
        assert not target._has_logins()
