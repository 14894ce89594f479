"""The file of `--trace`: what it takes the place of, and what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.cli.recording import recorded
from trunkline.cli.verbs import Misuse
from trunkline.jsonrpc.framing import Oversize
from trunkline.judge import TraceEntry, read_trace

CANARY = "canary-3310"


def test_each_frame_is_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    with recorded(str(file), "unix") as hear:
        hear("client", b'{"jsonrpc":"2.0","method":"a"}')
        hear("server", b"no json")
    first, second = read_trace(file.read_bytes().splitlines())
    assert isinstance(first, TraceEntry)
    assert isinstance(second, TraceEntry)
    assert (first.sender, first.transport) == ("client", "unix")
    assert first.message == {"jsonrpc": "2.0", "method": "a"}
    assert (second.sender, second.raw) == ("server", "no json")
    assert first.at is not None
    assert second.at is not None
    assert 0 <= first.at <= second.at


def test_secrets_are_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    with recorded(str(file), "stdio") as hear:
        hear("client", b'{"params":{"password":"%s"}}' % CANARY.encode())
        hear("client", b'{"password": "%s", broken' % CANARY.encode())
        hear("server", Oversize(b'{"token":"%s"' % CANARY.encode(), 99, 10))
    assert CANARY not in file.read_text()
    assert len(file.read_bytes().splitlines()) == 4


@pytest.mark.parametrize("content", ["", '{"trunkline-trace":1}\n{"at":0}\n', "\n"])
def test_a_recording_takes_the_place_of_another(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace"
    file.write_text(content)
    with recorded(str(file), "stdio"):
        pass
    assert file.read_text() == '{"trunkline-trace":1}\n'


@pytest.mark.parametrize("content", ["mine", '{"a": 1}', "\0"])
def test_nothing_else_is_replaced(tmp_path: Path, content: str) -> None:
    file = tmp_path / "trace"
    file.write_text(content)
    with pytest.raises(Misuse, match="no recording"), recorded(str(file), "stdio"):
        pass
    assert file.read_text() == content


def test_what_is_no_file_can_be_written_to() -> None:
    with recorded("/dev/null", "stdio") as hear:
        hear("client", b"{}")
