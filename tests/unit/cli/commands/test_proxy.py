"""The verb `proxy`: what it is told, and what it refuses before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli import main
from trunkline.cli.command import parser_of
from trunkline.cli.commands import proxy
from trunkline.transports.addresses import Tcp, Tls, Unix
from trunkline.transports.stdio.client import Stdio


def ends(*words: str, command: list[str] | None = None) -> tuple[object, object]:
    options = parser_of("proxy").parse_args(words)
    options.command = command
    return tuple(proxy._ends(options))


def test_a_source_that_is_left_out_is_the_standard_streams() -> None:
    assert ends("tcp://h:1") == (None, Tcp("h", 1))
    assert ends("stdio", "tcp://h:1") == (None, Tcp("h", 1))
    assert ends(command=["server", "-x"]) == (None, Stdio("server", ["-x"], grace=1.0))


def test_a_source_is_listened_on() -> None:
    assert ends("unix:/s", "tcp://h:1") == (Unix("/s"), Tcp("h", 1))
    source, target = ends("tcp://h:1", "--env", "A=b", command=["server"])
    assert source == Tcp("h", 1)
    assert isinstance(target, Stdio)
    assert target.env == {"A": "b"}


def test_each_side_has_certificates_of_its_own() -> None:
    words = ["--source-tls-cert", "c", "--source-tls-key", "k", "--tls-ca", "a"]
    source, target = ends("tls://h:1", "tls://i:2", *words)
    assert source == Tcp("h", 1, tls=Tls(cert="c", key="k"))
    assert target == Tcp("i", 2, tls=Tls(ca="a"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "no server given: name a file, an address or an entry of a host, or put a command"),
        (["stdio"], "stdio is a SOURCE; TARGET is a server"),
        (["tcp://h:1", "stdio"], "stdio is a SOURCE; TARGET is a server"),
        (["missing.py"], "'missing.py' was read as a file, and there is no file 'missing.py'"),
        (["server.py", "tcp://h:1"], "SOURCE: 'server.py' is not an address; use stdio"),
        (["unix:/s", "tcp://h:1", "tcp://h:2"], "proxy takes one SOURCE and TARGET"),
        (["unix:/s", "tcp://h:1", "--", "server"], "proxy takes one SOURCE and a command after --"),
        (["--"], "the command after -- is missing"),
        (["tls://h:1", "tcp://h:2"], "needs --source-tls-cert and --source-tls-key"),
        (["unix:/s", "tcp://h:2", "--source-tls-cert", "c"], "need a SOURCE of the form tls://"),
        (["tcp://h:2", "--source-tls-cert", "c"], "need a SOURCE of the form tls://"),
        (["tls://h:1", "tcp://h:2", "--source-tls-key", "k"], "give cert too"),
        (
            ["tcp://h:1", "--env", "A=b"],
            "--env needs a server that is started: a file, or a command after --",
        ),
        (
            ["tcp://h:1", "--max-size", "much"],
            "--max-size: a number of bytes, or a size such as 512K, 64M or 1G",
        ),
        (
            ["tcp://h:1", "--max-size", "0"],
            "--max-size: a number of bytes, or a size such as 512K, 64M or 1G",
        ),
        (
            ["tcp://h:1", "--max-size", "K"],
            "--max-size: a number of bytes, or a size such as 512K, 64M or 1G",
        ),
        (
            ["tcp://h:1", "--tls-ca", "a"],
            "the --tls-… options need an address of the form tls:// or https://",
        ),
        (
            ["--tls-cert", "c", "--", "server"],
            "the --tls-… options need an address of the form tls:// or https://",
        ),
        (["tcp://h:1", "--source-framing", "odd"], "--source-framing"),
        (["tcp://h:1", "--revision", "2020-01-01"], "--revision"),
    ],
)
def test_invalid_words_are_refused_in_one_sentence(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["proxy", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("trunkline proxy: ")
    assert why in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("512K", 512 * 1024), ("64m", 64 * 1024**2), ("2G", 2 * 1024**3)]
)
def test_a_size_is_written_with_or_without_its_unit(text: str, size: int) -> None:
    assert parser_of("proxy").parse_args(["--max-size", text]).max_size == size


def test_default_max_size_is_256_mib() -> None:
    assert parser_of("proxy").parse_args([]).max_size == 256 * 1024**2


def test_help_says_both_ways_to_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["proxy", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "trunkline proxy [SOURCE] TARGET [options]" in shown
    assert "-- COMMAND" in shown


def test_file_that_is_not_a_recording_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    assert main(["proxy", "--record", str(file), "--", "nonesuch"]) == 2
    assert file.read_text() == "mine"
    assert "is not a recording" in capsys.readouterr().err
