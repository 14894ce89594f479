"""Every console block of the README and the tutorial shows what happens.

A page is followed from its top, in an empty folder. A Python block whose first line is the
name of a file is that file from there on; with `, more` after the name it is the end of
that file. Of a console block each `$` line is run, and must
print what stands below it, on standard output and standard error together. `…` stands for the
rest of a line, or alone on a line for any number of lines. What is started with `&` runs until
the page has ended; the next line waits until the socket or the port it listens on is there. Ports
of 127.0.0.1 are replaced by free ones, and `browser.py` is the browser of the reader.

A block that opens with "```console type=yes" is run at a terminal, and that word is typed
where it stands in the block. One that opens with "```console needs=npx" fetches packages: it is
run by `test_install.py`, where that program is installed.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("docs/tutorial/*.md")), ROOT / "README.md"]
BLOCK = re.compile(
    r"^```(python|console)(?: type=(\w+)| needs=(\w+))?\n(.*?)^```", re.DOTALL | re.MULTILINE
)
FILE = re.compile(r"# ([\w./-]+\.py)(, more)?\n")
SOCKET = re.compile(r"--unix (\S+)")
PORT = re.compile(r"--(?:http|port) (\d+)\b")
SECONDS = 60

Running: TypeAlias = subprocess.Popen[str]


class Step(NamedTuple):
    """What a page has its reader do: write a file, put more into it, or run a command."""

    verb: Literal["write", "extend", "run"]
    name: str
    # What is in the file, or what the command prints.
    text: str
    typed: str = ""
    # The program that has to be installed for it.
    needs: str = ""


def steps(page: str) -> Iterator[Step]:
    """Yield the steps of a page."""
    for language, typed, needs, block in BLOCK.findall(page):
        if language == "python":
            if name := FILE.match(block):
                yield Step("extend" if name[2] else "write", name[1], block)
            continue
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = piece.partition("\n")
            yield Step("run", command, shown, typed, needs)


def pattern(shown: str) -> re.Pattern[str]:
    """Return what an output has to match in full."""
    lines = []
    for line in shown.splitlines():
        whole = ".*".join(map(re.escape, line.split("…")))
        lines.append("(?:.*\n)*" if line.strip() == "…" else whole + "\n")
    return re.compile("".join(lines))


@contextmanager
def begun(command: str, folder: Path, terminal: int | None = None) -> Iterator[Running]:
    """Run a command in a session of its own, of which nothing is left."""
    binaries = os.environ.get("TRUNKLINE_TEST_BIN", str(Path(sys.executable).parent))
    environment = {
        "PATH": os.pathsep.join((binaries, os.environ["PATH"])),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "BROWSER": f"{sys.executable} {ROOT / 'tests' / 'docs' / 'browser.py'} %s",
    }
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL if terminal is None else terminal,
        stdout=subprocess.PIPE if terminal is None else terminal,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended, as it should
        process.communicate(timeout=SECONDS)


def output_of(step: Step, folder: Path) -> str:
    if step.typed:
        return conversation(step, folder)
    with begun(step.name, folder) as process:
        return process.communicate(timeout=SECONDS)[0]


def conversation(step: Step, folder: Path) -> str:
    """Return what a terminal shows while a command runs and somebody types."""
    ours, theirs = os.openpty()
    with closing_both(ours, theirs), begun(step.name, folder, theirs) as process:
        before = step.text.partition(step.typed)[0].splitlines()[-1]
        shown = listen(ours, process, until=before)
        os.write(ours, f"{step.typed}\n".encode())
        shown += listen(ours, process, until=None)
    return shown.decode().replace("\r\n", "\n")


@contextmanager
def closing_both(*descriptors: int) -> Iterator[None]:
    try:
        yield
    finally:
        for each in descriptors:
            os.close(each)


def listen(terminal: int, process: Running, until: str | None) -> bytes:
    """Return what is shown up to a text, or until the command has ended and all is read."""
    shown = b""
    last = time.monotonic() + SECONDS
    while until is None or not shown.endswith(until.encode()):
        assert time.monotonic() < last, f"waited for {until!r}, there is {shown!r}"
        is_ended = process.poll() is not None
        if select.select([terminal], [], [], 0 if is_ended else 0.05)[0]:
            shown += os.read(terminal, 4096)
        elif is_ended:
            assert until is None, f"ended with {shown!r}, without {until!r}"
            break
    return shown


def wait_for_socket(command: str, process: Running, folder: Path) -> None:
    """Wait until a command that was started with `&` listens."""
    name, port = SOCKET.search(command), PORT.search(command)
    assert name or port, f"{command}: only what listens on a socket or a port can be waited for"
    last = time.monotonic() + SECONDS
    while not ((folder / name[1]).exists() if name else is_open(int(port[1]))):
        assert process.poll() is None, f"{command} ended: {process.communicate()[0]}"
        assert time.monotonic() < last, f"{command} does not listen"
        time.sleep(0.02)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def with_free_ports(page: str) -> str:
    """Return a page whose servers listen on ports that are free."""
    with ExitStack() as taken:
        for port in dict.fromkeys(PORT.findall(page)):
            # All are held until each has another one.
            probe = taken.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            page = re.sub(rf"\b{port}\b", str(probe.getsockname()[1]), page)
    return page


def follow(page: str, folder: Path, *, with_needs: bool = False) -> None:
    """Do what a page says, and compare; with `with_needs` what fetches packages too."""
    with ExitStack() as left:
        for step in steps(with_free_ports(page)):
            if step.needs and not (with_needs and shutil.which(step.needs)):
                continue
            if step.verb == "write":
                (folder / step.name).write_text(step.text)
            elif step.verb == "extend":
                file = folder / step.name
                file.write_text(f"{file.read_text()}\n\n{step.text}")
            elif step.name.endswith("&"):
                process = left.enter_context(begun(f"exec {step.name.removesuffix('&')}", folder))
                wait_for_socket(step.name, process, folder)
            else:
                got = output_of(step, folder)
                told = f"$ {step.name}\n{got}\ninstead of\n{step.text}"
                assert pattern(step.text).fullmatch(got), told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_of_the_tutorial_shows_what_happens(page: Path, tmp_path: Path) -> None:
    follow(page.read_text(), tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_file_of_the_tutorial_is_run_before_it_is_replaced(page: Path) -> None:
    waiting: set[str] = set()
    for step in steps(page.read_text()):
        if step.verb == "run":
            waiting -= {name for name in waiting if name in step.name}
        else:
            assert step.name not in waiting, f"{page.name} shows {step.name} and does not run it"
            waiting.add(step.name)
    assert not waiting, f"{page.name} shows {waiting} and does not run it"


def test_the_tutorial_is_found_and_has_something_to_run() -> None:
    found = [step for page in PAGES for step in steps(page.read_text())]
    assert sum(step.name.startswith("trunkline ") for step in found) > 5
    assert sum(step.verb == "write" for step in found) > 5
    assert any(step.typed for step in found)


def test_a_block_that_shows_something_else_is_found(tmp_path: Path) -> None:
    page = (
        "```python\n# a.py\nprint('one')\nprint('two')\n```\n\n```console\n$ python a.py\n{}```\n"
    )
    for shown in ("one\ntwo\n", "o…\ntwo\n", "one\n…\n", "…\n", "one\ntwo\n$ true\n"):
        follow(page.format(shown), tmp_path)
    for shown in ("one\n", "two\none\n", "one\ntwo\nthree\n", "x…\ntwo\n", ""):
        with pytest.raises(AssertionError, match="instead of"):
            follow(page.format(shown), tmp_path)


def test_console_block_types_input_and_checks_the_output(tmp_path: Path) -> None:
    program = "```python\n# a.py\nprint('Hello ' + input('Who? '))\n```\n\n"
    block = "```console type=Ada\n$ python a.py\nWho? Ada\n{}\n```\n"
    follow(program + block.format("Hello Ada"), tmp_path)
    with pytest.raises(AssertionError, match="instead of"):
        follow(program + block.format("Hello Bob"), tmp_path)
    with pytest.raises(AssertionError, match=r"ended with .* without 'Who"):
        follow(program.replace("input('Who? ')", "'you'") + block, tmp_path)
