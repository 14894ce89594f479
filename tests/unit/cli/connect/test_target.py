"""How a server is reached: the options that the talking verbs share, and how they end."""

from __future__ import annotations

import argparse
import gc
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from trunkline.cli.command import UsageError
from trunkline.cli.connect.options import ADDRESSES, FRAMINGS
from trunkline.cli.connect.target import parse_server_address, parse_target
from trunkline.jsonrpc.framing.framing import FramingName
from trunkline.transports import Stdio
from trunkline.transports.addresses import (
    HTTP_SCHEMES,
    SCHEMES,
    WS_SCHEMES,
    Http,
    Tcp,
    Tls,
    Unix,
    Ws,
    parse_address,
)

CANARY = "canary-5518"
SERVER = Path(__file__).parents[3] / "terminal" / "server.py"
WAIT = 30
COMMAND = f"{sys.executable} -m trunkline"


def accepts(path: Path) -> bool:
    """Return True if a server listens at a path; the file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a server that listens."""
    path = tmp_path / "s"
    with subprocess.Popen([sys.executable, str(SERVER), f"unix:{path}"]) as server:
        deadline = time.monotonic() + WAIT
        while not accepts(path):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"unix:{path}"
        server.kill()


# Addresses


def test_a_server_is_reached_by_its_address(run: Any, listening: str) -> None:
    assert run("call", listening, "add", "a=1", "b=2") == (0, "3\n", "")
    assert run("ping", listening).status == 0
    assert run("list", listening, "prompts").status == 0
    assert run("read", listening, "demo://notes").status == 0
    assert run("prompt", listening, "report", "city=Oslo").status == 0


def options(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"target": None, "command": None, **given})


def test_texts_and_commands_are_targets() -> None:
    assert parse_target(options(target="tcp://127.0.0.1:9000")) == Tcp("127.0.0.1", 9000)
    assert parse_target(options(target="unix:/x")) == Unix("/x")
    found = parse_target(options(command=["python", "x.py"], env=["A=b=c"]))
    assert isinstance(found, Stdio)
    assert (found.command, found.args) == ("python", ("x.py",))
    assert found.env == {"A": "b=c"}


def test_the_options_of_tls_are_used() -> None:
    found = parse_server_address(
        "tls://h:1", options(tls_ca="ca.pem", tls_cert="c.pem", tls_key="k.pem")
    )
    assert isinstance(found, Tcp)
    assert (found.tls.ca, found.tls.cert, found.tls.key) == ("ca.pem", "c.pem", "k.pem")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "given",
    [
        {"target": "python server.py"},
        {"target": "tcp://127.0.0.1"},
        {"target": "tcp://127.0.0.1:9", "env": ["A=b"]},
        {"command": []},
        {"command": [""]},
        {"command": ["x"], "env": ["A"]},
        {"command": ["x"], "env": ["=b"]},
        {"target": "tls://h:1", "tls_key": "k.pem"},
    ],
)
def test_invalid_target_is_misuse(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_target(options(**given))


@pytest.mark.parametrize(
    "words", [["unix:/x"], ["tcp://127.0.0.1:1"], ["--", sys.executable, "-c", ""]]
)
@pytest.mark.parametrize("option", ["--tls-ca", "--tls-cert", "--tls-key"])
def test_tls_without_tls_is_misuse(run: Any, option: str, words: list[str]) -> None:
    shown = run("ping", option, "file.pem", *words)
    assert shown == (
        2,
        "",
        "trunkline ping: the --tls-… options need an address of the form tls:// or https://\n",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "tools", "unix:x"], "trunkline list unix:x tools"),
        (["call", "add", "a=1", "tcp://h:1"], "trunkline call tcp://h:1 add a=1"),
        (["read", "x:y", "tls://h:1"], "trunkline read tls://h:1 x:y"),
    ],
)
def test_address_after_other_words_is_refused_with_the_right_order(
    run: Any, words: list[str], said: str
) -> None:
    shown = run(*words)
    assert shown == (2, "", f"trunkline {words[0]}: the address comes first: {said}\n")


def test_a_secret_beside_an_address_is_not_echoed(run: Any) -> None:
    shown = run("call", "login", f"password={CANARY}", f"tcp://ada:{CANARY}@h:1")
    assert shown.status == 2
    assert "the address comes first" in shown.err
    assert CANARY not in shown.err


@pytest.mark.parametrize("verb", ["list", "call", "read", "prompt", "ping"])
def test_without_a_target_a_verb_says_what_it_needs(run: Any, verb: str) -> None:
    shown = run(verb)
    assert (shown.status, shown.out) == (2, "")
    assert "name a file, an address or an entry of a host, or put a command after --" in shown.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "http://localhost:8000/a b"], "Http.path is a path such as /mcp"),
        (["list", "https:///mcp"], "needs a host and a port"),
        (["list", "server.sh"], "'server.sh' was read as a file, and there is no file 'server.sh'"),
        (["call", "tools.py", "find", "a=1"], "there is no file 'tools.py'"),
        (["call", "add", "server.py"], "the target comes first: trunkline call server.py add"),
        (["list", "sh", "server.sh"], "put the command after --: trunkline list -- sh server.sh"),
        (["read", "note://1"], "note:// is not the scheme of a server; name the server by tcp://"),
        (["call", "tea", "text=tea"], "'tea' was read as a bare name, which is not a server; put"),
        (["list", "tcp://localhost"], "needs a port, as in tcp://localhost:9000"),
    ],
)
def test_invalid_address_is_refused_with_advice(run: Any, words: list[str], said: str) -> None:
    shown = run(*words)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err


def test_a_server_without_the_revision_asked_for_is_named_as_such(run: Any, silent: Any) -> None:
    shown = run("ping", "--revision", "2026-07-28", *silent("none"))
    assert (shown.status, shown.out) == (1, "")
    assert "the server does not speak MCP 2026-07-28; leave --revision out" in shown.err


# How it ends


@pytest.mark.parametrize(
    "words",
    [
        ["tcp://127.0.0.1:1"],
        ["unix:/nowhere/at/all"],
        ["--", "/nowhere/at/all"],
        ["--", sys.executable, "-c", "raise SystemExit(3)"],
    ],
)
def test_unreachable_server_ends_with_3(run: Any, words: list[str]) -> None:
    shown = run("ping", *words)
    assert (shown.status, shown.out) == (3, "")
    assert shown.err.startswith("trunkline ping: ")
    assert "Traceback" not in shown.err


def test_last_output_of_a_server_that_dies_is_shown(run: Any) -> None:
    script = "import sys; sys.exit('the disk is \\x1b[1mfull')"
    shown = run("list", "--", sys.executable, "-c", script)
    assert shown.status == 3
    assert "the disk is \\x1b[1mfull" in shown.err


@pytest.mark.parametrize("method", ["tools/call", "initialize"])
def test_no_answer_in_time_ends_with_3(run: Any, silent: Any, method: str) -> None:
    shown = run("call", "wait", "--timeout", "0.5", *silent(method))
    assert (shown.status, shown.out) == (3, "")
    assert "0.5 s" in shown.err


def test_a_refusal_shows_code_and_place_and_data(run: Any, server: list[str]) -> None:
    shown = run("read", "demo://nowhere", "--revision", "2025-11-25", *server)
    assert (shown.status, shown.out) == (1, "")
    assert "the server refused resources/read: " in shown.err
    assert "(-32002, RESOURCE_NOT_FOUND)\n" in shown.err
    assert 'data: {"uri": "demo://nowhere"}\n' in shown.err


def test_revision_missing_on_the_server_ends_with_3(run: Any, silent: Any) -> None:
    shown = run("ping", "--revision", "2024-11-05", *silent("none"))
    assert (shown.status, shown.out) == (3, "")


def test_unknown_revision_is_misuse(run: Any, server: list[str]) -> None:
    assert run("ping", "--revision", "1999-01-01", *server).status == 2


@pytest.mark.parametrize("given", ["0", "-1", "inf", "nan", "soon"])
def test_invalid_timeout_is_misuse(run: Any, server: list[str], given: str) -> None:
    shown = run("ping", f"--timeout={given}", *server)
    assert shown.status == 2
    assert f"--timeout: a number of seconds above 0, not '{given}'" in shown.err


def test_garbage_is_collected_afterwards(run: Any, server: list[str]) -> None:
    run("ping", *server)
    assert gc.isenabled()
    run("ping", "--", "/nowhere")
    assert gc.isenabled()


# The environment of the command


def test_a_variable_reaches_the_command(run: Any, process: list[str]) -> None:
    shown = run("call", "look", "name=API_KEY", "--env", f"API_KEY={CANARY}", *process)
    assert shown.out == f"{CANARY}\n"


def test_a_secret_variable_is_in_no_error(run: Any) -> None:
    script = "import os, sys; sys.exit('I have ' + os.environ['API_KEY'])"
    shown = run("ping", "--env", f"API_KEY={CANARY}", "--", sys.executable, "-c", script)
    assert shown.status == 3
    assert "I have [redacted]" in shown.err
    assert CANARY not in shown.err


# The log


def test_warnings_are_shown_and_less_is_not(run: Any, process: list[str]) -> None:
    shown = run("call", "warn", "--revision", "2025-11-25", *process)
    assert shown == (0, "told\n", "warning demo: rain is coming\n")


def test_a_server_of_2026_07_28_logs_only_with_the_option(run: Any, process: list[str]) -> None:
    assert run("call", "warn", *process) == (0, "told\n", "")
    shown = run("call", "warn", "--log", "warning", *process)
    assert shown == (0, "told\n", "warning demo: rain is coming\n")


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["ping"],
        ["call", "add", "a=1", "b=2"],
        ["read", "demo://notes"],
        ["prompt", "report", "city=Oslo"],
    ],
)
def test_no_verb_requests_log_messages_without_the_option(
    run: Any, server: list[str], words: list[str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    assert run(*words, "--trace", str(trace), *server).status == 0
    assert "2026-07-28" in trace.read_text()
    assert "logLevel" not in trace.read_text()
    asked = tmp_path / "asked.jsonl"
    assert run(*words, "--log", "info", "--trace", str(asked), *server).status == 0
    assert '"io.modelcontextprotocol/logLevel":"info"' in asked.read_text().replace(": ", ":")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_more_of_the_log_can_be_asked_for(run: Any, process: list[str], revision: str) -> None:
    shown = run("call", "warn", "--log", "info", "--revision", revision, *process)
    assert shown.err == "info demo: all is well\nwarning demo: rain is coming\n"


def test_recording_of_our_own_elicitation_has_no_finding(
    run: Any, server: list[str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    ahead = ["--answer", "name=Ada", "--answer", "size=small"]
    assert run("call", "order", *ahead, "--trace", str(trace), *server).status == 0
    text = trace.read_text()
    for part in ("2026-07-28", "inputRequests", "inputResponses"):
        assert part in text
    shown = run("validate", str(trace))
    assert shown.status == 0
    assert shown.out.endswith(": nothing found\n")


def test_stderr_of_the_server_is_shown_with_verbose(run: Any, process: list[str]) -> None:
    assert "a line on stderr" not in run("call", "warn", *process).err
    assert "a line on stderr\n" in run("call", "warn", "-v", *process).err


def test_log_of_the_client_is_shown_with_verbose(run: Any, process: list[str]) -> None:
    _, python, script = process
    # A line that is not JSON, before the server starts.
    garbled = ["--", "sh", "-c", 'echo "not JSON"; exec "$@"', "sh", python, script]
    shown = run("call", "warn", *garbled)
    assert (shown.status, shown.out) == (0, "told\n")
    assert "invalid message" not in shown.err
    shown = run("call", "warn", "-v", *garbled)
    assert (shown.status, shown.out) == (0, "told\n")
    assert "the server sent an invalid message" in shown.err


# Questions, without a terminal


def test_elicitation_without_a_terminal_fails_and_names_answer(run: Any, server: list[str]) -> None:
    shown = run("call", "order", *server)
    assert (shown.status, shown.out) == (1, "")
    assert "--answer" in shown.err


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_answers_can_be_given_in_advance(run: Any, server: list[str], revision: str) -> None:
    ahead = ["--answer", "name=Ada", "--answer", "size=small"]
    shown = run("call", "order", *ahead, "--revision", revision, *server)
    assert shown == (0, "Ada small 2 False\n", "")


@pytest.mark.parametrize(
    ("ahead", "said"),
    [("size=big", "--answer size takes one of small, large"), ("size=small", "'name' is required")],
)
def test_answers_that_do_not_do_are_declined(
    run: Any, server: list[str], ahead: str, said: str
) -> None:
    shown = run("call", "order", "--answer", ahead, *server)
    assert (shown.status, shown.out) == (0, "decline\n")
    assert said in shown.err
    assert shown.err.endswith("declined\n")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_form_with_one_field_is_answered_by_a_value(
    run: Any, server: list[str], revision: str
) -> None:
    shown = run("call", "unlock", "--answer", "1234", "--revision", revision, *server)
    named = run("call", "unlock", "--answer", "password=1234", "--revision", revision, *server)
    assert shown == named == (0, "open\n", "")


def test_a_form_with_several_fields_declines_a_value_and_names_them(
    run: Any, server: list[str]
) -> None:
    assert run("call", "order", "--answer", "Ada", *server) == (
        0,
        "decline\n",
        "--answer needs the name of a field, as name=VALUE: the form has name, size, number, "
        "gift\ndeclined\n",
    )


def test_malformed_answers_are_misuse(run: Any, server: list[str]) -> None:
    said = "trunkline call: --answer takes FIELD=VALUE, or VALUE for a form with one field\n"
    for word in ("=x", ""):
        assert run("call", "order", "--answer", word, *server) == (2, "", said)
    shown = run("call", "order", "--answer", "x", "--answer", "y", *server)
    said = "trunkline call: --answer is given twice without a field; write FIELD=VALUE\n"
    assert (shown.status, shown.err) == (2, said)
    shown = run("call", "order", "--answer", "name=\udcff", *server)
    assert (shown.status, shown.err) == (2, "trunkline call: --answer is not UTF-8 text\n")


def test_roots_are_offered(run: Any, server: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "a b\udcff"
    folder.mkdir()
    shown = run("call", "folders", "--root", str(folder), "-o", "json", *server)
    assert json.loads(json.loads(shown.out)["content"][0]["text"]) == [folder.as_uri()]
    assert run("call", "folders", "--root", str(tmp_path / "gone"), *server).status == 2


# The recording


def test_a_conversation_is_recorded_without_secrets(
    run: Any, server: list[str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    words = ["call", "login", "--json", f'{{"user": "ada", "password": "{CANARY}"}}']
    run(*words, "--trace", str(trace), *server)
    assert CANARY not in trace.read_text()
    assert '"user":"ada"' in trace.read_text()
    assert run("validate", str(trace)).status == 0


def test_failed_recording_is_reported_once(server: list[str], tmp_path: Path) -> None:
    words = ["call", "add", "a=1", "b=2", "--trace", str(tmp_path / "trace"), *server]
    # Of a file no more than one block may be written; a module's bytecode would be cut off too.
    done = shell(f"ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 {COMMAND} {' '.join(words)}")
    assert (done.returncode, done.stdout) == (0, b"3\n")
    assert done.stderr == b"trunkline call: recording stopped: File too large\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_recording_on_a_standard_stream_leaves_its_file(
    server: list[str], tmp_path: Path, stream: str
) -> None:
    number, file = {"stdout": 1, "stderr": 2}[stream], tmp_path / "file"
    words = ["call", "warn", "--log", "warning", "--trace", f"/dev/{stream}", *server]
    done = shell(f"{COMMAND} {' '.join(words)} {number}> {file}")
    assert done.returncode == 0
    lines = file.read_text().splitlines()
    assert lines[0] == '{"trunkline-trace":1}'
    # Neither writes over the other.
    assert ("told" if stream == "stdout" else "warning demo: rain is coming") in lines
    assert sum(line.startswith('{"at":') for line in lines) == len(lines) - 2


def test_a_recording_that_cannot_be_begun_is_misuse(run: Any, server: list[str]) -> None:
    shown = run("ping", "--trace", "/dev/full", *server)
    said = "trunkline ping: '/dev/full' cannot be written: No space left on device\n"
    assert shown == (2, "", said)
    shown = run("ping", "--trace", "/nowhere/at/all", *server)
    assert shown.status == 2
    assert "'/nowhere/at/all' cannot be written: No such file or directory" in shown.err


def test_framing_is_as_asked_for(run: Any, listening: str) -> None:
    # The server of this test reads lines: with another framing the two do not understand.
    shown = run("ping", listening, "--framing", "length-prefix", "--timeout", "0.5")
    assert shown.status == 3
    assert run("ping", listening, "--framing", "newline").status == 0


def test_no_child_is_left(run: Any, process: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PIDFILE", str(tmp_path / "pid"))
    run("call", "fail", *process)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def test_call_works_with_closed_stdin_and_stderr(server: list[str]) -> None:
    words = " ".join(["call", "add", "a=1", "b=2", *server])
    done = shell(f"exec {COMMAND} {words} <&- 2>&-")
    assert (done.returncode, done.stdout) == (0, b"3\n")


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "tools", "--long"],
        ["list", "-o", "json"],
        ["call", "add", "a=1", "b=2"],
        ["read", "demo://notes"],
        ["read", "demo://notes", "--raw"],
        ["prompt", "report", "city=Oslo"],
        ["ping"],
    ],
)
def test_closed_stdout_is_not_an_error(server: list[str], words: list[str]) -> None:
    done = shell(f"exec {COMMAND} {' '.join([*words, *server])} >&-")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "words", [["call", "fail"], ["call", "add", "a=x"], ["call", "adb"], ["call", "order"]]
)
def test_closed_stderr_does_not_move_errors_to_stdout(server: list[str], words: list[str]) -> None:
    done = shell(f"exec {COMMAND} {' '.join([*words, *server])} 2>&-")
    assert done.returncode in (1, 2)
    assert done.stdout == b""


@pytest.mark.parametrize("words", [["list"], ["ping"], ["read", "demo://notes", "--raw"]])
def test_unwritable_stdout_is_reported(server: list[str], words: list[str]) -> None:
    done = shell(f"exec {COMMAND} {' '.join([*words, *server])} > /dev/full")
    said = f"trunkline {words[0]}: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said.encode())


@pytest.mark.parametrize("verb", ["list", "call", "read", "prompt", "ping"])
def test_help_loads_neither_asyncio_nor_the_client(verb: str) -> None:
    script = (
        "import sys; from trunkline.cli import command; "
        f"command.run({verb!r}, ['--help']); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded.isdisjoint({"asyncio", "msgspec", "trunkline.client"})


def test_the_framings_and_beginnings_of_addresses_are_those_there_are() -> None:
    assert get_args(FramingName) == FRAMINGS
    known = (*SCHEMES, *HTTP_SCHEMES, *WS_SCHEMES)
    assert len(known) == len(ADDRESSES)
    assert all(each.startswith(ADDRESSES) for each in known)


# HTTP


def http(**given: Any) -> argparse.Namespace:
    return options(header=given.pop("header", []), header_env=given.pop("header_env", []), **given)


@pytest.mark.parametrize(
    "text", ["http://127.0.0.1:8000/mcp", "https://h/mcp", "https://h:8443/a/b", "http+unix:/x"]
)
def test_an_endpoint_is_a_target(text: str) -> None:
    assert parse_target(http(target=text)) == parse_address(text)


def test_the_options_of_tls_are_used_for_https() -> None:
    found = parse_target(http(target="https://h/mcp", tls_ca="ca.pem"))
    assert isinstance(found, Http)
    assert found.tls == Tls(ca="ca.pem")


def test_headers_come_from_words_and_from_the_environment(monkeypatch: Any) -> None:
    monkeypatch.setenv("TOKEN", f"Bearer {CANARY}")
    found = parse_target(
        http(target="http://h/mcp", header=["X-A=b=c"], header_env=["Authorization=TOKEN"])
    )
    assert isinstance(found, Http)
    assert found.options is not None
    assert found.options.headers == {"X-A": "b=c", "Authorization": f"Bearer {CANARY}"}
    assert CANARY not in repr(found)
    found = parse_target(http(target="ws://h/mcp", header_env=["Authorization=TOKEN"]))
    assert isinstance(found, Ws)
    assert found.options is not None
    assert found.options.headers == {"Authorization": f"Bearer {CANARY}"}


def test_http_without_its_library_is_misuse(run: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "httptools" or None)
    said = 'HTTP needs httptools: pip install "trunkline[http]"\n'
    assert run("ping", "http://127.0.0.1:1/mcp") == (2, "", f"trunkline ping: {said}")
    assert run("ping", "http+unix:/none") == (2, "", f"trunkline ping: {said}")
    shown = run("proxy", "https://127.0.0.1:1/mcp")
    assert shown == (2, "", f"trunkline proxy: {said}")
    shown = run("proxy", "http://127.0.0.1:0/mcp", "--", "x")
    assert shown == (2, "", f"trunkline proxy: {said}")
    file = tmp_path / "served_without_http.py"
    file.write_text("from trunkline import Server\napp = Server('weather')\n")
    # What `serve` adds to both is gone after the test.
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setattr("sys.modules", dict(sys.modules))
    shown = run("serve", str(file), "--http", "0")
    assert shown == (2, "", f"trunkline serve: {said}")


def test_a_websocket_without_its_library_is_misuse(run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "websockets" or None)
    said = 'WebSocket needs websockets: pip install "trunkline[ws]"\n'
    assert run("ping", "ws://127.0.0.1:1/mcp") == (2, "", f"trunkline ping: {said}")
    shown = run("proxy", "--ws", "http://127.0.0.1:0/mcp", "--", "x")
    assert shown == (2, "", f"trunkline proxy: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--header", f"Authorization: Basic {CANARY}=="], "--header takes NAME=VALUE"),
        (["--header", f"{CANARY}"], "--header takes NAME=VALUE"),
        (["--header", f"Authorization={CANARY}\n"], "the value of Authorization cannot be sent"),
        (["--header", f"Host={CANARY}"], "--header has Host, which the client itself sends"),
        (["--header-env", "Authorization"], "--header-env takes NAME=VARIABLE"),
        (["--header-env", "X=NO_SUCH_7"], "--header-env X: there is no such environment variable"),
        (["--header-env", "X=TOKEN", "--header", f"x={CANARY}"], "is given twice"),
        (["--framing", "newline"], "--framing is for streams"),
    ],
)
def test_headers_that_cannot_be_sent_are_misuse_and_not_quoted(
    run: Any, monkeypatch: Any, words: list[str], said: str
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    shown = run("ping", "http://127.0.0.1:1/mcp", *words)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err
    assert CANARY not in shown.err


@pytest.mark.parametrize("words", [["unix:/x"], ["--", sys.executable, "-c", ""]])
@pytest.mark.parametrize("option", ["--header", "--header-env"])
def test_headers_without_http_are_misuse(run: Any, option: str, words: list[str]) -> None:
    shown = run("ping", option, f"A={CANARY}", *words)
    assert (shown.status, shown.out) == (2, "")
    assert "need an address of the form http:// or https://" in shown.err
    assert CANARY not in shown.err


def test_the_uri_of_a_resource_may_look_like_an_address(run: Any, server: list[str]) -> None:
    shown = run("read", "https://example.org/none", *server)
    assert "not both" not in shown.err
    assert run("read", "https://example.org/mcp", "demo://notes", *server).status == 2


def test_a_server_that_is_not_there_ends_with_3_over_http(run: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TOKEN", f"Bearer {CANARY}")
    shown = run("ping", "http://127.0.0.1:1/mcp", "--header-env", "Authorization=TOKEN", "-v")
    assert (shown.status, shown.out) == (3, "")
    assert "http://127.0.0.1:1/mcp cannot be reached: Connection refused\n" in shown.err
    assert CANARY not in shown.err
