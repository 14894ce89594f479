"""Interleaved timing of named callables.

This module times, pairs and prints. It does not know what is measured: a benchmark
registers callables in groups and names the pairs it compares. `bench.section` records them.

How a number is made:

* A round runs every group once. Inside a group the cases run back to back in a shuffled order, so
  the two sides of a ratio share the weather of the machine. The garbage collector is off during a
  round and runs between rounds.
* CPU time per operation is the process clock over a whole round, minus the empty loop. The price
  of calling the measured function stays in, since every caller pays it.
* A ratio is the median over rounds of one case divided by another in the same round.
* p50 and p99 come from a separate pass that times single operations on the wall clock, minus the
  cost of reading that clock, with the garbage collector on. They include whatever the machine
  does in between, so compare them within one run only.
* A control registers one callable twice. When the twins differ by more than `CONTROL_LIMIT` the
  machine was too noisy and the run is void.
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, Final

CONTROL_LIMIT: Final = 0.15
AGAIN: Final = " (again)"
"""Ends the name of the second of two twins."""

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a run takes: rounds, time per case and round, time and count of single timings.

    With 100 single timings or fewer, the 99th percentile is the worst value under another name.
    """

    rounds: int
    round_ns: int
    single_ns: int
    fewest_singles: int
    most_singles: int


FULL: Final = Effort(40, 3_000_000, 60_000_000, fewest_singles=200, most_singles=5_000)
QUICK: Final = Effort(12, 1_000_000, 5_000_000, fewest_singles=50, most_singles=1_000)

_SINGLES_CHUNK: Final = 50


@dataclass(slots=True)
class Case:
    """A callable to time, with the inputs it is given in turn and the samples it collects."""

    group: str
    name: str
    run: Callable[[Any], object]
    items: tuple[Any, ...] = (None,)
    operations: int = 1
    """How many operations one call performs, for callables that drive a whole conversation."""
    cpu_clock: Clock | None = None
    """The clock of what this case is about, if it is not that of the whole bench."""
    wall_clock: Clock | None = None
    """The clock of its wall time, if that is not all the time the callable takes."""
    baseline: str = ""
    """The case of the same group that this one is compared with in print; may be empty."""
    rivals: tuple[str, ...] = ()
    """All cases of other libraries in the group that do equal work, `baseline` among them."""
    sequence: tuple[Any, ...] = ()
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    single: list[int] = field(default_factory=list)
    latencies: dict[int, float] = field(default_factory=dict)
    """Percentiles that another process measured, in wall nanoseconds; `single` is empty then."""

    @property
    def best(self) -> float:
        """The least CPU nanoseconds per operation over all rounds."""
        return min(self.cpu)

    @property
    def median(self) -> float:
        """The median CPU nanoseconds per operation over all rounds."""
        return statistics.median(self.cpu)

    def percentile(self, percent: int) -> float | None:
        """The wall nanoseconds that this share of single operations stays within, if timed."""
        if not self.single:
            return self.latencies.get(percent)
        ordered = sorted(self.single)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] / self.operations


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times slower one case is than another: median and quartiles of paired rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        """The median with its quartiles."""
        return f"{self.median:.2f}x ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Overhead:
    """What the measuring itself costs, in nanoseconds."""

    loop: float
    """One turn of the timing loop; subtracted from CPU and wall time."""
    call: float
    """One turn that calls an empty Python function; printed only, see the module docstring."""
    timer: float
    """One pair of clock readings; subtracted from single timings."""


class Bench:
    """Cases in groups, timed together."""

    def __init__(self, effort: Effort, *, cpu_clock: Clock = time.process_time_ns) -> None:
        """Start without cases; `cpu_clock` may add up other processes as well."""
        self.effort = effort
        self.overhead = Overhead(0.0, 0.0, 0.0)
        self._cpu_clock = cpu_clock
        self._cases: dict[tuple[str, str], Case] = {}
        self._loops: dict[tuple[str, str], Callable[..., tuple[int, int]]] = {}
        self._controls: list[tuple[Case, Case]] = []
        self._random = random.Random(20)

    def add(self, case: Case) -> Case:
        """The case, registered to be timed."""
        key = (case.group, case.name)
        if key in self._cases:
            raise ValueError(f"two cases are called {key}")
        self._cases[key] = case
        self._loops[key] = _own_loop()
        return case

    def control(self, group: str, name: str) -> None:
        """Register a case a second time, to see how far apart the same work comes out."""
        case = self._cases[group, name]
        twin = Case(
            group,
            f"{name}{AGAIN}",
            case.run,
            case.items,
            case.operations,
            case.cpu_clock,
            case.wall_clock,
        )
        self._controls.append((case, self.add(twin)))

    def compare(self, group: str, rivals: Callable[[str], Sequence[str]]) -> None:
        """Set what each case of a group is compared with: the first rival is its baseline.

        `rivals` gets the name of a case and returns names of others; those that were not
        registered are left out, and so is the case itself.
        """
        cases = {case.name: case for case in self.groups()[group]}
        for case in cases.values():
            given = rivals(case.name.removesuffix(AGAIN))
            found = [name for name in given if name in cases and name != case.name]
            case.rivals = tuple(found)
            case.baseline = found[0] if found else ""

    def run(self, progress: Callable[[str], None] = lambda _: None) -> None:
        """Time every case; samples are on the cases afterwards."""
        self.overhead = _calibrate(self._cpu_clock)
        for key, case in self._cases.items():
            case.sequence = self._sequence(self._loops[key], case)
        gc.collect()
        # What set-up made is set aside, so that collecting between rounds costs little.
        gc.freeze()
        for number in range(self.effort.rounds):
            progress(f"round {number + 1} of {self.effort.rounds}")
            self._round()
        progress("single operations")
        self._time_singles()
        gc.unfreeze()

    def groups(self) -> dict[str, list[Case]]:
        """Cases by group, in the order of registration."""
        grouped: dict[str, list[Case]] = {}
        for case in self._cases.values():
            grouped.setdefault(case.group, []).append(case)
        return grouped

    def case(self, group: str, name: str) -> Case | None:
        """The case of that name, if it was registered."""
        return self._cases.get((group, name))

    def best(self, group: str, name: str) -> float | None:
        """The least CPU nanoseconds per operation of a case, if it was registered."""
        case = self.case(group, name)
        return case.best if case else None

    def ratio(self, group: str, slow: str, fast: str) -> Ratio | None:
        """How many times the CPU time of `fast` the case `slow` takes, if both were registered."""
        left, right = self.case(group, slow), self.case(group, fast)
        return paired(left.cpu, right.cpu) if left and right else None

    def controls(self) -> list[tuple[Case, Ratio]]:
        """Each doubled case with the ratio of its twins."""
        return [(case, paired(case.cpu, twin.cpu)) for case, twin in self._controls]

    def is_void(self) -> bool:
        """Whether the same work came out too far apart for any other ratio to mean something."""
        return any(abs(ratio.median - 1) > CONTROL_LIMIT for _, ratio in self.controls())

    def _sequence(self, loop: Callable[..., tuple[int, int]], case: Case) -> tuple[Any, ...]:
        repeats = 1
        while True:
            sequence = case.items * repeats
            _, wall = loop(case.run, sequence, *self._clocks(case))
            if wall >= self.effort.round_ns // 2:
                break
            repeats *= 2
        wanted = self.effort.round_ns / max(wall / len(sequence), 1)
        return case.items * max(1, round(wanted / len(case.items)))

    def _round(self) -> None:
        for cases in self.groups().values():
            shuffled = self._random.sample(cases, len(cases))
            gc.collect()
            gc.disable()
            try:
                for case in shuffled:
                    self._time(case)
            finally:
                gc.enable()

    def _time(self, case: Case) -> None:
        loop = self._loops[case.group, case.name]
        cpu, wall = loop(case.run, case.sequence, *self._clocks(case))
        turns = len(case.sequence)
        case.cpu.append((cpu / turns - self.overhead.loop) / case.operations)
        case.wall.append((wall / turns - self.overhead.loop) / case.operations)

    def _clocks(self, case: Case) -> tuple[Clock, Clock]:
        return case.cpu_clock or self._cpu_clock, case.wall_clock or time.perf_counter_ns

    def _time_singles(self) -> None:
        for cases in self.groups().values():
            wanted = {case.name: self._singles(case) for case in cases}
            while any(wanted.values()):
                for case in cases:
                    count = min(wanted[case.name], _SINGLES_CHUNK)
                    wanted[case.name] -= count
                    case.single += _singles(case, count, self.overhead.timer)

    def _singles(self, case: Case) -> int:
        if not self.effort.most_singles:
            return 0
        affordable = int(self.effort.single_ns / (case.best * case.operations + 100))
        return max(self.effort.fewest_singles, min(self.effort.most_singles, affordable))


def _loop(
    run: Callable[[Any], object], sequence: Sequence[Any], cpu: Clock, wall: Clock
) -> tuple[int, int]:
    wall_start, cpu_start = wall(), cpu()
    for item in sequence:
        run(item)
    return cpu() - cpu_start, wall() - wall_start


def _empty_loop(_: object, sequence: Sequence[Any], cpu: Clock, wall: Clock) -> tuple[int, int]:
    wall_start, cpu_start = wall(), cpu()
    for _item in sequence:
        pass
    return cpu() - cpu_start, wall() - wall_start


def _own_loop() -> Callable[..., tuple[int, int]]:
    # The interpreter specialises a call site for the kind of callable it sees. One loop shared by
    # all cases would be specialised for whichever came first, so each case gets its own code.
    return FunctionType(_loop.__code__.replace(), globals())


def _empty(_: object) -> None:
    pass


def _calibrate(cpu: Clock) -> Overhead:
    sequence, wall = (None,) * 20_000, time.perf_counter_ns
    loop = min(_empty_loop(None, sequence, cpu, wall)[0] for _ in range(15)) / len(sequence)
    calling = _own_loop()
    call = min(calling(_empty, sequence, cpu, wall)[0] for _ in range(15)) / len(sequence)
    readings = []
    for _ in range(2_000):
        start = wall()
        readings.append(wall() - start)
    return Overhead(loop, call, statistics.median(readings))


def _singles(case: Case, count: int, timer: float) -> list[int]:
    run, items, wall = case.run, case.items, time.perf_counter_ns
    spent = []
    for number in range(count):
        item = items[number % len(items)]
        start = wall()
        run(item)
        spent.append(wall() - start)
    return [max(0, round(value - timer)) for value in spent]


def paired(slow: Sequence[float], fast: Sequence[float]) -> Ratio:
    """How many times slower the first samples are than the second, round by round."""
    ratios = sorted(a / b for a, b in zip(slow, fast, strict=True))
    quarter = len(ratios) // 4
    return Ratio(statistics.median(ratios), ratios[quarter], ratios[-1 - quarter])


def check(got: object, wanted: object) -> None:
    """Compare what a case returned with what it should.

    Raises:
        SystemExit: they differ, so times mean nothing.
    """
    if got != wanted:
        sys.exit(f"{got!r:.300} instead of {wanted!r:.300}")


def machine(distributions: Iterable[str]) -> dict[str, str]:
    """What a reader needs to judge absolute numbers: processor, interpreter, versions."""
    facts = {
        "cpu": f"{_cpu_model()}, {os.cpu_count()} cores, load {_load()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}, {_build()}",
        "system": f"{platform.system()} {platform.release()}",
    }
    return facts | {name: _version(name) for name in distributions}


def command() -> str:
    """The command line of this run, without directories."""
    given = sys.orig_argv[1:]
    return " ".join(["python", *(Path(word).name if "/" in word else word for word in given)])


def print_heading(facts: Mapping[str, str]) -> None:
    """Print the command line and the class of machine."""
    print(f"command: {command()}")
    for name, value in facts.items():
        print(f"{name}: {value}")


def show_progress(text: str) -> None:
    """Show how far a run is, if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:<30}", end="", file=sys.stderr, flush=True)


def print_group(bench: Bench, group: str) -> None:
    """Print one line per case, with the paired ratio of its baseline to it."""
    titles = "".join(f"{title:>10}" for title in ("best", "median", "wall", "per s", "p50", "p99"))
    print(f"\n{group:<46}{titles}   baseline/it")
    for case in bench.groups()[group]:
        wall = min(case.wall)
        waits = [duration(case.percentile(percent)) for percent in (50, 99)]
        times = [duration(each) for each in (case.best, case.median, wall)]
        ratio = bench.ratio(group, case.baseline, case.name) if case.baseline else None
        numbers = "".join(f"{each:>10}" for each in (*times, f"{1e9 / wall:.0f}", *waits))
        print(f"  {case.name:<44}{numbers}   {ratio or ''}")


def print_overhead(bench: Bench) -> None:
    """Print what was subtracted, and what was not."""
    cost = bench.overhead
    print(f"\nsubtracted: {cost.loop:.1f} ns per turn of the loop,")
    print(f"  {cost.timer:.0f} ns per pair of clock readings from each single timing")
    print(f"not subtracted: the call, {cost.call - cost.loop:.1f} ns for an empty Python function")


def print_controls(bench: Bench) -> None:
    """Print how far apart the same work came out."""
    for case, ratio in bench.controls():
        print(f"control: {case.group}, {case.name}, against itself: {ratio}")


def duration(nanoseconds: float | None) -> str:
    """A time in the unit that keeps it short; nothing, if it was not measured."""
    if nanoseconds is None:
        return ""
    if nanoseconds < 10_000:
        return f"{nanoseconds:.0f} ns"
    return f"{nanoseconds / 1000:.1f} us" if nanoseconds < 1e6 else f"{nanoseconds / 1e6:.2f} ms"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _build() -> str:
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    if arguments is None:
        return "build options unknown"
    pgo = "PGO" if "--enable-optimizations" in arguments else "no PGO"
    lto = "LTO" if "--with-lto" in arguments else "no LTO"
    return f"{pgo}, {lto}"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
