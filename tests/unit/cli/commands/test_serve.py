"""The options of `serve`: what they come to, and what does not go together."""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.forked_python import NEW_PYTHON
from trunkline import (
    Http,
    HttpLimits,
    HttpSettings,
    Server,
    ServerLimits,
    SocketLimits,
    Tcp,
    Tls,
    Unix,
)
from trunkline.cli import main
from trunkline.cli.command import UsageError, parser_of
from trunkline.cli.commands.serve import (
    begin_log,
    http_settings_of,
    limits_of,
    parse_listen_address,
    run,
    set_options,
)


def options(*words: str) -> argparse.Namespace:
    return parser_of("serve").parse_args(["server.py", *words])


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ([], None),
        (["--stdio"], None),
        (["--tcp", "9000"], Tcp("127.0.0.1", 9000)),
        (["--tcp", "0.0.0.0:0"], Tcp("0.0.0.0", 0)),
        (["--tcp", "[::1]:9000"], Tcp("::1", 9000)),
        (["--unix", "/run/x"], Unix("/run/x")),
        (["--tcp", "9000", "--tls-cert", "c"], Tcp("127.0.0.1", 9000, tls=Tls(cert="c"))),
        (["--http", "8000"], Http("127.0.0.1", 8000, "/mcp")),
        (["--http", "[::1]:0", "--path", "/x"], Http("::1", 0, "/x")),
        (["--http", "unix:/run/x"], Http(path="/mcp", unix="/run/x")),
        (
            ["--http", "8443", "--tls-cert", "c", "--tls-key", "k"],
            Http("127.0.0.1", 8443, tls=Tls(cert="c", key="k")),
        ),
        (
            ["--tcp", "a:1", "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca"],
            Tcp("a", 1, tls=Tls(cert="c", key="k", ca="ca")),
        ),
    ],
)
def test_the_options_name_an_address(words: list[str], address: Http | Tcp | Unix | None) -> None:
    assert parse_listen_address(options(*words)) == address


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tcp", ":9000"], "needs a host and a port: 127.0.0.1 for this machine alone"),
        (["--tcp", "70000"], "needs a port from 0 to 65535"),
        (["--tcp", "host"], "needs a host and a port"),
        (["--tcp", "٣"], "needs a host and a port"),
        (["--unix", ""], "Unix.path is the path of a socket"),
        (["--unix", "x" * 200], "use a shorter or a relative path"),
        (["--tls-cert", "c"], "--tls-cert needs --http or --tcp"),
        (["--unix", "x", "--tls-key", "k"], "--tls-key needs --http or --tcp"),
        (["--tcp", "1", "--tls-key", "k"], "--tls-key needs --tls-cert"),
        (["--tcp", "1", "--tls-client-ca", "k"], "--tls-client-ca needs --tls-cert"),
        (["--idle", "3"], "--idle needs --tcp or --unix"),
        (["--stdio", "--max-connections", "3"], "--max-connections needs --tcp or --unix"),
        (["--http", "host"], "needs a host and a port"),
        (["--http", "1", "--path", "mcp"], "path"),
        (["--http", "unix:x", "--tls-cert", "c"], "--tls-cert is not for a Unix domain socket"),
        (["--http", "1", "--tls-key", "k"], "--tls-key needs --tls-cert"),
        (["--http", "1", "--idle", "3"], "--idle needs --tcp or --unix"),
        (["--http", "1", "--keep-alive", "3"], "--keep-alive needs --tcp or --unix"),
        (["--path", "/x"], "--path needs --http"),
        (["--tcp", "1", "--sse"], "--sse needs --http"),
        (["--allowed-host", "a"], "--allowed-host needs --http"),
        (["--allowed-origin", "https://a"], "--allowed-origin needs --http"),
        (["--cors", "https://a"], "--cors needs --http"),
        (["--public-url", "https://a"], "--public-url needs --http"),
        (["--trusted-proxy", "10.0.0.1"], "--trusted-proxy needs --http"),
        (["--rate", "3"], "--rate needs --http"),
        (["--access-log"], "--access-log needs --http"),
        (["--metrics", "127.0.0.1:1"], "--metrics needs --http"),
        (["--tcp", "1", "--workers", "2"], "--workers needs --http"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_listen_address(options(*words))


@pytest.mark.parametrize(
    "words",
    [
        ["--stdio", "--tcp", "1"],
        ["--tcp", "1", "--unix", "x"],
        ["--max-connections", "0"],
        ["--idle", "-1"],
        ["--idle", "nan"],
        ["--framing", "morse"],
        ["--log", "loud"],
        ["--http", "1", "--tcp", "1"],
        ["--http", "1", "--rate", "0"],
        ["--http", "1", "--rate", "nan"],
        ["--http", "1", "--workers", "0"],
    ],
)
def test_misuse_ends_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "server.py", *words]) == 2
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.py"], "trunkline serve: 'nothing.py' does not exist"),
        (["nothing.py", "--reload"], "trunkline serve: 'nothing.py' does not exist"),
        ([__file__, "--reload-dir", "."], "--reload-dir needs --reload"),
        ([__file__, "--reload", "--reload-dir", "nowhere"], "'nowhere' is not a folder"),
    ],
)
def test_missing_file_or_folder_ends_with_2(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *words]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_socket_limits_are_the_defaults_unless_options_set_them() -> None:
    assert limits_of(options()) == SocketLimits()
    told = options("--max-connections", "3", "--idle", "0", "--keep-alive", "2.5")
    assert limits_of(told) == SocketLimits(connections=3, idle=None, keep_alive=2.5)


def test_http_has_limits_of_its_own() -> None:
    assert limits_of(options("--http", "1")) == HttpLimits()
    assert limits_of(options("--http", "1", "--max-connections", "7")) == HttpLimits(connections=7)


def test_the_options_of_http_are_its_settings() -> None:
    assert http_settings_of(options("--tcp", "1")) is None
    assert http_settings_of(options("--http", "1")) == HttpSettings()
    words = (
        *("--allowed-host", "a.example", "--allowed-host", "b.example:8443"),
        *("--allowed-origin", "https://a.example", "--cors", "https://c.example"),
        *("--public-url", "https://mcp.example.org/mcp", "--trusted-proxy", "10.0.0.0/8"),
        *("--sse", "--rate", "2.5", "--access-log", "--metrics", "127.0.0.1:9100"),
    )
    assert http_settings_of(options("--http", "1", *words)) == HttpSettings(
        hosts=["a.example", "b.example:8443"],
        origins=["https://a.example"],
        cors=["https://c.example"],
        public_url="https://mcp.example.org/mcp",
        trusted_proxies=["10.0.0.0/8"],
        old_sse=True,
        rate=2.5,
        access_log=True,
        metrics="127.0.0.1:9100",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allowed-host", "*.example"], "HttpSettings.hosts"),
        (["--cors", "*"], "HttpSettings.cors"),
        (["--metrics", "9100"], "needs a host and a port"),
        (["--trusted-proxy", "proxy"], "HttpSettings.trusted_proxies"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_of_usage(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        http_settings_of(options("--http", "1", *words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "2", "--reload"], "--workers and --reload do not go together"),
        (["--metrics", "127.0.0.1:0", "--workers", "2"], "--metrics and --workers do not"),
        (["--metrics", "127.0.0.1:0", "--reload"], "--metrics and --reload do not"),
    ],
)
def test_options_about_processes_that_do_not_go_together_are_refused(
    words: list[str], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "server.py"
    file.touch()
    with pytest.raises(UsageError, match=said):
        run(parser_of("serve").parse_args([str(file), "--http", "0", *words]))


def test_a_framing_changes_nothing_else_of_the_policy() -> None:
    app = Server("x")
    before = app._core.policy
    set_options(app, options())
    assert app._core.policy is before
    set_options(app, options("--framing", "content-length"))
    assert app._core.policy == before.replace(framing="content-length")


def test_linger_changes_nothing_else_of_the_limits() -> None:
    app = Server("x", limits=ServerLimits(threads=3))
    set_options(app, options())
    assert app._core.limits == ServerLimits(threads=3)
    set_options(app, options("--linger", "0"))
    assert app._core.limits == ServerLimits(threads=3, linger=0)


def test_authentication_comes_from_a_file_and_replaces_that_of_the_server(tmp_path: Path) -> None:
    path = tmp_path / "auth.toml"
    path.write_text('[fixed]\nsubject = "local"\n')
    app = Server("x", auth=lambda request: "ann")
    before = app._core.auth
    set_options(app, options())
    assert app._core.auth is before
    set_options(app, options("--auth", str(path)))
    (rule,) = app._core.auth.verifiers
    assert rule.principal.subject == "local"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fixed]\nsubjct = 'x'\n", r"auth\.toml:2: \[fixed\]: unknown option 'subjct'"),
        (None, "No such file"),
    ],
)
def test_a_file_with_authentication_that_cannot_be_used_is_an_error_of_usage(
    tmp_path: Path, text: str | None, said: str
) -> None:
    path = tmp_path / "auth.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=said):
        set_options(Server("x"), options("--auth", str(path)))


ALONE = """
from trunkline import Server
from trunkline.auth import AuthSettings, Dpop, JwtBearer, TenantLimits, Tenants

jwt = JwtBearer(issuer="https://a.example", audience="x")
app = Server("many", revisions=["2026-07-28"], list_changed=False, subscribe=False{})
"""


@pytest.mark.parametrize(
    ("server", "auth", "words", "said"),
    [
        ("", "[[jwt]]\nissuer = 'https://a.example'\naudience = 'x'\n[dpop]\n", [], "DPoP proofs"),
        (", auth=Dpop(jwt)", None, [], "each process would accept a proof once"),
        ("", None, ["--rate", "10"], "requests per second"),
        (
            "",
            "[fixed]\nsubject = 'x'\n[tenants.limits]\nrate = 5\n",
            [],
            r"limits of tenants \(rate\)",
        ),
        (
            ", auth=AuthSettings(verifiers=[jwt], tenants=Tenants(limits=TenantLimits(rate=5)))",
            None,
            [],
            "limits of tenants",
        ),
    ],
)
def test_what_each_worker_would_allow_by_itself_is_refused_wherever_it_comes_from(
    tmp_path: Path, server: str, auth: str | None, words: list[str], said: str
) -> None:
    (tmp_path / "server.py").write_text(ALONE.format(server))
    given = [str(tmp_path / "server.py"), "--http", "0", "--workers", "2", *words]
    if auth is not None:
        (tmp_path / "auth.toml").write_text(auth)
        given += ["--auth", str(tmp_path / "auth.toml")]
    with pytest.raises(UsageError, match=f"--workers needs .*{said}"):
        run(parser_of("serve").parse_args(given))


@contextmanager
def fresh_log() -> Iterator[tuple[logging.Logger, logging.Logger]]:
    """Give the root of all logs and that of the library, as in a program that has just started."""
    # Not a fixture: those of a test that runs are put there after its fixtures.
    names = (None, "trunkline", "trunkline.access")
    logs = [logging.getLogger(name) for name in names]
    before = [(log.handlers[:], log.level, log.propagate) for log in logs]
    for log in logs:
        log.handlers[:] = []
    logs[0].setLevel(logging.WARNING)
    for log in logs[1:]:
        log.setLevel(logging.NOTSET)
    try:
        yield logs[0], logs[1]
    finally:
        for log, (handlers, level, propagates) in zip(logs, before, strict=True):
            log.handlers[:] = handlers
            log.setLevel(level)
            log.propagate = propagates


def test_log_level_is_warning_unless_the_option_sets_it() -> None:
    with fresh_log() as (_, log):
        begin_log(options())
        assert log.level == logging.WARNING
        assert len(log.handlers) == 1
        begin_log(options("--log", "DEBUG"))
        assert log.level == logging.DEBUG
        assert len(log.handlers) == 1


def test_the_access_log_is_printed_whatever_the_level_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fresh_log():
        begin_log(options("--http", "0"))
        logging.getLogger("trunkline.access").info("not asked for")
        begin_log(options("--http", "0", "--access-log", "--log", "error"))
        logging.getLogger("trunkline.access").info("127.0.0.1 GET /mcp 405")
        logging.getLogger("trunkline.http").warning("of another logger")
    assert capsys.readouterr().err == "INFO trunkline.access: 127.0.0.1 GET /mcp 405\n"


def test_a_log_that_the_file_has_set_up_stays() -> None:
    own = logging.NullHandler()
    with fresh_log() as (root, log):
        root.addHandler(own)
        root.setLevel(logging.INFO)
        begin_log(options())
        assert (log.handlers, log.level, log.propagate) == ([], logging.NOTSET, True)
        begin_log(options("--log", "error"))
        assert (log.handlers, log.level) == ([], logging.ERROR)


@pytest.mark.parametrize("is_configured", [False, True])
@pytest.mark.parametrize("given", [(), ("--log", "debug"), ("--log-json",)])
def test_the_root_logger_is_never_touched(given: tuple[str, ...], is_configured: bool) -> None:
    own = [logging.NullHandler()] if is_configured else []
    with fresh_log() as (root, _):
        root.handlers[:] = own
        before = dict(vars(root))
        begin_log(options(*given))
        assert vars(root) == before
        assert root.handlers == own


def test_json_logs_are_written_once_whatever_the_file_has_set_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fresh_log() as (root, _):
        root.addHandler(logging.StreamHandler())
        begin_log(options("--log-json"))
        logging.getLogger("trunkline.server").warning("the key is %s", "sk-live_0123456789abcdef")
        logging.getLogger("notes").warning("of the file")
    first, second = capsys.readouterr().err.splitlines()
    line = json.loads(first)
    assert (line["level"], line["logger"]) == ("WARNING", "trunkline.server")
    assert line["message"] == "the key is [redacted]"
    assert second == "of the file"


def test_serving_a_file_loads_nothing_for_reloading(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(
        "import atexit, sys\nfrom trunkline import Server\napp = Server('x')\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    )
    run = subprocess.run(
        [*NEW_PYTHON, "-m", "trunkline", "serve", str(file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(run.stderr.splitlines()[-1].split())
    assert "trunkline.server.api.app" in loaded
    unneeded = {"reload", "reload.supervisor", "reload.file_watch", "output.reports"}
    assert loaded.isdisjoint(f"trunkline.cli.{name}" for name in unneeded)
    assert loaded.isdisjoint({"trunkline.client", "trunkline.transports.sockets.connection"})
