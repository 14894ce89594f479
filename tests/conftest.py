"""What holds for every test."""

from __future__ import annotations

import gc
import signal
from functools import cache
from pathlib import Path

import pytest

from tests import effort, forked_python

# A failed assertion of a rig shows what it compared.
pytest.register_assert_rewrite("tests.rigs")

# Tests that pass, for each dot of `--terse`.
_PER_DOT = 100

_HERE = Path(__file__).parent

_passed = 0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the Makefile asks for."""
    parser.addoption(
        "--full",
        action="store_true",
        help="run tests marked `full`, play every script over every transport in every revision,"
        " and try every example",
    )
    parser.addoption(
        "--terse", action="store_true", help=f"print one dot for {_PER_DOT} tests that pass"
    )
    parser.addoption(
        "--part",
        metavar="K/N",
        help="run the K-th of N parts of the test files: processes that run a part each collect"
        " nothing twice",
    )


@cache
def _part_of(parts: int) -> dict[Path, int]:
    """Return the part of each test file: the largest is dealt out first, to and fro."""
    files = sorted(_HERE.rglob("test_*.py"), key=lambda path: (-path.stat().st_size, path))
    turns = [*range(1, parts + 1), *range(parts, 0, -1)]
    return {path: turns[number % len(turns)] for number, path in enumerate(files)}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the test files of other parts unread."""
    if config.option.part is None or collection_path.is_dir():
        return None
    part, _, parts = config.option.part.partition("/")
    return _part_of(int(parts)).get(collection_path, int(part)) != int(part) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a full run has."""
    if config.option.full:
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    items[:] = [item for item in items if not item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected out of every further search for garbage: it stays to the end."""
    if not session.config.option.collectonly:
        forked_python.install()
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_report_teststatus(
    report: pytest.TestReport, config: pytest.Config
) -> tuple[str, str, str] | None:
    """Print few dots, and everything that is not a pass."""
    global _passed
    if not config.option.terse or not report.passed or report.when != "call":
        return None
    _passed += 1
    return "passed", "" if _passed % _PER_DOT else ".", "PASSED"


def pytest_configure(config: pytest.Config) -> None:
    """Choose how much is tried, and take signals as a terminal would send them.

    A program that was started in the background, or with nohup, may ignore SIGINT or SIGHUP. So
    would every process that a test starts to interrupt it.
    """
    gc.disable()  # what is collected is not garbage
    effort.choose(full=config.option.full)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # This run itself goes on; what it starts has the default.
        signal.signal(signal.SIGHUP, lambda *_: None)
