"""Copies of the tree in which mutants are tried; the working tree is never written to.

A slot has an interpreter of its own: a virtual environment without packages, whose path leads to
the copied source and then to the packages of the running interpreter. So each process that a
test starts imports the copy as well, even one that ignores PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.mutants import probe

PLUGIN: Final = "mutants_probe"
# Exit code of pytest where nothing was collected.
NOTHING_RAN: Final = 5
_NOT_COPIED: Final = shutil.ignore_patterns(
    "__pycache__", ".git", ".*_cache", ".venv*", ".hypothesis"
)

# A line of a .pth file, which every process runs when it starts.
_START_MEASURING: Final = (
    "import os; 'COVERAGE_PROCESS_START' in os.environ and __import__('coverage').process_startup()"
)


@dataclass(frozen=True, slots=True)
class Run:
    """How one run of pytest ended; `code` is None if its time was up."""

    code: int | None
    ran: tuple[str, ...]
    output: str

    @property
    def passed(self) -> bool:
        """True if every test passed, or none was there to run."""
        return self.code in (0, NOTHING_RAN)


class Slot:
    """One copy of the tree and its interpreter."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "tree"
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        shutil.copytree(root, self.root, ignore=_NOT_COPIED, symlinks=True)
        self.python = _make_interpreter(folder / "venv", root, self.root)
        # By default a compiled file is matched by the second it was written: a mutant and its
        # original may share that. Matched by content, one can never stand for the other.
        self._execute(
            [*("-m", "compileall", "-q", "--invalidation-mode", "checked-hash"), "src"], timeout=600
        )

    def write(self, file: str, text: str) -> None:
        """Replace the text of one file."""
        (self.root / file).write_bytes(text.encode())

    def pytest(
        self,
        paths: Sequence[str],
        *,
        timeout: float,
        select: Sequence[str] | None = None,
        options: Sequence[str] = ("-x",),
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        """Run tests in this copy."""
        ran = self.folder / "ran"
        ran.write_text("", encoding="utf-8")
        steering = {"MUTANTS_RAN": str(ran), **(environment or {})}
        if select is not None:
            chosen = self.folder / "select.json"
            chosen.write_text(json.dumps(list(select)), encoding="utf-8")
            steering["MUTANTS_SELECT"] = str(chosen)
        words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, *options]
        if importlib.util.find_spec("hypothesis"):
            words.append("--hypothesis-seed=0")
        words += [f"--rootdir={self.root}", *paths]
        code, output = self._execute(words, timeout=timeout, environment=steering)
        ids = [json.loads(line) for line in ran.read_text(encoding="utf-8").splitlines()]
        return Run(code, tuple(ids), output)

    def close(self) -> None:
        """End what runs here, and start nothing more."""
        with self._lock:
            self._is_closed = True
            self._kill()

    def _kill(self) -> None:
        """End the process with its group; what it started may outlive it."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _execute(
        self, words: Sequence[str], *, timeout: float, environment: Mapping[str, str] | None = None
    ) -> tuple[int | None, str]:
        """Run the interpreter; return its exit code, None after `timeout`, and its output.

        Raises:
            InterruptedError: the slot is closed, or was while this ran.
        """
        log = self.folder / "log"
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with log.open("wb") as output:
            with self._lock:
                if self._is_closed:
                    raise InterruptedError
                self._process = process = subprocess.Popen(
                    [self.python, *words],
                    cwd=self.root,
                    env={**inherited, **(environment or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            code: int | None
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._kill()
                process.wait()
        if self._is_closed:
            raise InterruptedError
        return code, log.read_text(encoding="utf-8", errors="replace")


class Slots:
    """The slots of one run, each used by one thread at a time."""

    def __init__(self, root: Path, folder: Path, count: int) -> None:
        self._all = [Slot(root, folder / str(number)) for number in range(count)]
        self._free = [*self._all]
        self._condition = threading.Condition()
        self._is_closed = False

    def take(self) -> Slot:
        """Wait for a free slot.

        Raises:
            InterruptedError: the run was stopped.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._free or self._is_closed)
            if self._is_closed:
                raise InterruptedError
            return self._free.pop()

    def give_back(self, slot: Slot) -> None:
        """Make a slot free for the next thread."""
        with self._condition:
            self._free.append(slot)
            self._condition.notify()

    def close(self) -> None:
        """End what runs in any slot, and refuse to start more."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        for slot in self._all:
            slot.close()


def _make_interpreter(folder: Path, root: Path, copy: Path) -> Path:
    """Make a virtual environment that imports from the copy of the tree in `root`."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    python = folder / "bin" / "python"
    place = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=place))
    shutil.copyfile(probe.__file__, packages / f"{PLUGIN}.py")
    ours = Path(sysconfig.get_path("purelib"))
    editable = [path for path in _editable(ours) if path != root / "src"]
    lines = (*map(str, (copy / "src", ours, *editable)), _START_MEASURING)
    (packages / "slot.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _copy_scripts(Path(sys.executable).parent, python)
    return python


def _editable(packages: Path) -> Iterator[Path]:
    """Yield the folders that .pth files add to the path of the running interpreter."""
    for file in sorted(packages.glob("*.pth")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if Path(line).is_absolute() and Path(line).is_dir():
                yield Path(line)


def _copy_scripts(scripts: Path, python: Path) -> None:
    """Copy the commands of the running interpreter's packages, for the interpreter of the slot."""
    running = str(scripts / "python").encode()
    for script in scripts.iterdir():
        if not script.is_file() or script.is_symlink():
            continue
        first, _, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!" + running):
            copy = python.parent / script.name
            copy.write_bytes(b"#!" + str(python).encode() + b"\n" + rest)
            copy.chmod(0o755)
