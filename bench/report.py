"""Write docs/benchmarks.md and its charts from the committed result, bench/reference.json.

    python -m bench.report                              # from the reference
    python -m bench.report bench/results/latest.json    # make that the reference first

The reference holds the samples of all rounds. Timings of single operations, of which there are
hundreds of thousands, are reduced to p50 and p99. All numbers of the page come from the reference,
and a test compares the page with what this module writes.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import gate, harness, targets
from bench.charts import Bar, bars
from bench.harness import AGAIN, Ratio
from bench.targets import Verdict

ROOT: Final = Path(__file__).parent.parent
REFERENCE: Final = Path(__file__).parent / "reference.json"
TEMPLATE: Final = Path(__file__).parent / "page.md"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
CHARTS: Final = ROOT / "docs" / "benchmarks"

OURS: Final = "trunkline"
HANDSHAKE: Final = "2025-11-25"
_DEPTHS: Final = ("envelope", "dict", "typed")
# A row is a small gain below this ratio, and a loss below 1.
SMALL_GAIN: Final = 2.0

_TITLES: Final = {
    "codec": "Codec",
    "judge": "Judge",
    "session": "Calls in one process",
    "stdio": "Standard streams",
    "sockets": "Sockets",
    "websocket": "WebSocket",
    "http_server": "HTTP server",
    "http_client": "HTTP client",
    "features": "Tracing, progress and authorization",
    "auth": "Verified tokens",
    "start": "Start",
    "command": "Command line",
    "scale": "Scale",
    "fanout": "Notifications to many clients",
    "hostile": "Hostile texts",
}
# Why rows are small gains or losses, by the beginning of their names.
_REASONS: Final = {
    "codec | decode 1 MB": "Large messages: Trunkline reads the envelope and then params or result,"
    " and checks the nesting before, so that a text is scanned more than once.",
    "codec | encode 1 MB": "Large encodes: the time is that of copying and escaping one text, and"
    " orjson does that faster than msgspec.",
    "codec | encode tools/list": "Long lists: orjson encodes dicts faster than msgspec, and checks"
    " nothing of what it writes.",
    "codec | decode batch": "Batches: Trunkline checks every element and creates its message;"
    " orjson and json return dicts.",
    "codec | encode batch": "Batches: Trunkline checks every id, and looks for NaN.",
    "stdio | server, 1 MB": "1 MB over stdio: both libraries spend their time in passes over the"
    " text and in pages of memory. JSON inside a text has many quotes and brackets, which the exact"
    " check of the nesting looks at.",
    "session | a function on a thread": "Plain functions: handing a call to a thread takes longer"
    " than everything else, in all libraries.",
}


class Pair(NamedTuple):
    """A row of ours, a rival of the same group, and the time of the rival divided by ours."""

    row: str
    group: str
    name: str
    rival: str
    ratio: Ratio


# --- the reference


def compact(result: dict[str, Any]) -> str:
    """Return a result as text without timings of single operations, one row in each line."""
    sections = []
    for record in result["sections"]:
        lines = {
            name: [
                json.dumps({key: each for key, each in row.items() if key != "single_wall_ns"})
                for row in record[name]
            ]
            for name in ("controls", "cases", "values")
        }
        head = {name: value for name, value in record.items() if name not in lines}
        members = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        members += [_listed(name, rows) for name, rows in lines.items()]
        sections.append("{" + ",\n".join(members) + "}")
    listed = ",\n".join(sections)
    return f'{{"measured": {json.dumps(result["measured"])},\n"sections": [\n{listed}\n]}}\n'


def _listed(name: str, lines: list[str]) -> str:
    return f'"{name}": [' + "".join(f"\n {line}," for line in lines).removesuffix(",") + "]"


# --- rows


def pairs(result: dict[str, Any]) -> list[Pair]:
    """Return every row of ours with each of its rivals."""
    found = []
    for record in result["sections"]:
        if record["void"]:
            continue
        cases = {(case["group"], case["name"]): case for case in record["cases"]}
        for (group, name), case in cases.items():
            if OURS not in name or name.endswith(AGAIN):
                continue
            for rival in case["rivals"]:
                other = cases.get((group, rival))
                if other is not None and OURS not in rival:
                    ratio = harness.paired(other["cpu_ns"], case["cpu_ns"])
                    row = targets.SEPARATOR.join((record["section"], group, name))
                    found.append(Pair(row, group, name, rival, ratio))
    return found


def amounts(result: dict[str, Any], section: str, group: str) -> list[dict[str, Any]]:
    """Return the values of a group."""
    records = [record for record in result["sections"] if record["section"] == section]
    return [row for record in records for row in record["values"] if row["group"] == group]


# --- charts


def charts(result: dict[str, Any]) -> dict[str, str]:
    """Return each chart by file name."""
    return {
        "cpu.svg": _cpu_chart(gate.judge(result)),
        "small-gains.svg": _small_chart(small_gains(result)),
        "memory.svg": _memory_chart(result),
        "features.svg": _features_chart(result),
    }


def _cpu_chart(verdicts: list[Verdict]) -> str:
    rows = [
        Bar(
            _capital(verdict.target.about),
            verdict.value,
            _times(verdict.value),
            "ours" if verdict.value >= 1 else "loss",
            verdict.target.bound,
        )
        for verdict in verdicts
        if verdict.value is not None and verdict.target.measure == "speedup"
    ]
    title = "CPU time of mcp divided by that of Trunkline"
    subtitle = "Median of paired rounds, logarithmic. The vertical mark is the target."
    return bars(title, subtitle, rows, ratios=True)


def _small_chart(found: list[Pair]) -> str:
    # One row for each group, that of the greatest loss: the table of the page has all.
    worst = {pair.group: pair for pair in reversed(found)}
    rows = [
        Bar(
            _small_label(pair),
            pair.ratio.median,
            f"{_times(pair.ratio.median)}, {_library(pair.rival)}",
            "ours" if pair.ratio.median >= 1 else "loss",
        )
        for pair in sorted(worst.values(), key=lambda pair: pair.ratio.median)
    ]
    title = f"Where Trunkline is less than {SMALL_GAIN:g}x faster, or slower"
    subtitle = "CPU time of a rival / Trunkline, the least of each group; below 1x is a loss."
    return bars(title, subtitle, rows, ratios=True)


def _small_label(pair: Pair) -> str:
    depth = pair.name.split()[0] if pair.row.startswith("codec") else ""
    group = f"{pair.group}, {depth}" if depth else pair.group
    return _shortened(f"{_TITLES[pair.row.split(targets.SEPARATOR)[0]]}: {group}")


def _library(name: str) -> str:
    """Return the name of a case without the depth and the revision in it."""
    words = name.split()
    return " ".join(word for word in words if word not in _DEPTHS and not word.startswith("20"))


def _memory_chart(result: dict[str, Any]) -> str:
    rows = [
        *_amount_bars(result, "start", "resident memory after 1000 calls", "stdio server"),
        *_amount_bars(result, "http_server", "1000 idle sessions", "1000 idle HTTP sessions"),
    ]
    title = "Resident memory in MB"
    subtitle = "A server on stdio after 1000 calls, and what 1000 idle HTTP sessions add to one."
    return bars(title, subtitle, rows)


def _amount_bars(result: dict[str, Any], section: str, group: str, title: str) -> Iterator[Bar]:
    for row in amounts(result, section, group):
        name, _, form = row["name"].partition(f" {HANDSHAKE}")
        # Sessions of servers that answer with event streams are no different.
        if form in ("", ", json"):
            kind = "ours" if OURS in name else "rival"
            text = f"{_number(row['value'])} {row['unit']}"
            yield Bar(f"{title}, {name}", row["value"], text, kind)


def _features_chart(result: dict[str, Any]) -> str:
    rows = []
    for record in result["sections"]:
        if record["section"] != "features":
            continue
        for case in record["cases"]:
            if case["group"].startswith("HTTP") and not case["name"].endswith(AGAIN):
                best = min(case["cpu_ns"])
                kind = "ours" if OURS in case["name"] else "rival"
                rows.append(Bar(case["name"], best / 1000, _time(best), kind))
    title = "CPU time of an HTTP server per call with a feature on, in µs"
    subtitle = "64 connections, best of rounds. mcp checks the signature of a token each time."
    return bars(title, subtitle, rows)


# --- the page


def small_gains(result: dict[str, Any]) -> list[Pair]:
    """Return the rows that are less than twice as fast as a rival, the greatest loss first."""
    found = [pair for pair in pairs(result) if pair.ratio.median < SMALL_GAIN]
    return sorted(found, key=lambda pair: pair.ratio.median)


def page(result: dict[str, Any]) -> str:
    """Return docs/benchmarks.md: the text of `page.md` with the numbers of a result in it."""
    parts = {
        "machine": _machine(result),
        "targets": _targets(gate.judge(result)),
        "small gains": _small_gains(small_gains(result)),
        "rows": "\n\n".join(_section(record) for record in result["sections"]),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def _machine(result: dict[str, Any]) -> str:
    facts: dict[str, str] = {}
    for record in result["sections"]:
        facts |= {name: each for name, each in record["machine"].items() if name not in facts}
    processor = re.sub(r", load .*", "", facts.pop("cpu"))
    loads = [
        float(found[1])
        for record in result["sections"]
        if (found := re.search(r"load ([\d.]+)", record["machine"]["cpu"]))
    ]
    load = f"{min(loads):g} to {max(loads):g}" if loads else "unknown"
    versions = ", ".join(f"{name} {each}" for name, each in facts.items() if name not in _MACHINE)
    lines = [
        "| | |",
        "|---|---|",
        f"| Measured | {result['measured']}, in {_minutes(result)} minutes |",
        f"| Machine | {processor}, {facts['system']}; load average {load} |",
        f"| Python | {facts['python']} |",
        f"| Versions | {versions} |",
    ]
    quick = [record["section"] for record in result["sections"] if record["quick"]]
    if quick:
        lines.append(f"| Short rounds | {', '.join(quick)}: these numbers are rough |")
    void = [record["section"] for record in result["sections"] if record["void"]]
    if void:
        lines.append(f"| Void | {', '.join(void)}: the machine was too busy |")
    return "\n".join(lines)


_MACHINE: Final = ("cpu", "python", "system")


def _minutes(result: dict[str, Any]) -> int:
    return round(sum(record["seconds"] for record in result["sections"]) / 60)


def _targets(verdicts: list[Verdict]) -> str:
    met = sum(verdict.met for verdict in verdicts)
    lines = [
        f"{met} of {len(verdicts)} targets of `bench/targets.json` are met.",
        "",
        "| | Measured | Target | |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        target = verdict.target
        value = verdict.problem
        if verdict.value is not None:
            value = _with_unit(verdict.value, target.unit)
        unit = "x" if target.unit == "x" else f" {target.unit}".replace(" us", " µs")
        bound = f"{target.sense} {target.bound:g}{unit}"
        state = "met" if verdict.met else "**missed**"
        lines.append(f"| {_capital(target.about)} | {value} | {bound} | {state} |")
    notes: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.target.note and not verdict.met and verdict.value is not None:
            notes.setdefault(verdict.target.note, []).append(_capital(verdict.target.about))
    if notes:
        lines += ["", "What the profile of missed targets shows:", ""]
        lines += [f"- {'; '.join(names)}: {note}" for note, names in notes.items()]
    return "\n".join(lines)


def _small_gains(found: list[Pair]) -> str:
    lines = ["| | | Rival | Rival / Trunkline |", "|---|---|---|---|"]
    for pair in found:
        lines.append(f"| {pair.group} | {pair.name} | {pair.rival} | {_quartiles(pair.ratio)} |")
    reasons = [
        reason
        for start, reason in _REASONS.items()
        if any(pair.row.startswith(start) for pair in found)
    ]
    if reasons:
        lines += ["", *(f"- {reason}" for reason in reasons)]
    return "\n".join(lines)


def _section(record: dict[str, Any]) -> str:
    lines = [
        f"### {_TITLES[record['section']]}",
        "",
        f"{record['about']}",
        f"`python -m bench.{record['section']}`, {record['seconds']:.0f} s"
        + (", void" if record["void"] else "")
        + ".",
    ]
    if record["cases"]:
        lines += ["", *_case_table(record)]
    if record["values"]:
        lines += ["", *_value_table(record)]
    return "\n".join(lines)


def _case_table(record: dict[str, Any]) -> Iterable[str]:
    yield "| | | CPU best | median | wall | p50 | p99 | rival / it |"
    yield "|---|---|---|---|---|---|---|---|"
    cases = {(case["group"], case["name"]): case for case in record["cases"]}
    shown = ""
    for (group, name), case in cases.items():
        if name.endswith(AGAIN):
            continue
        cpu, wall = case["cpu_ns"], case["wall_ns"]
        times = [min(cpu), statistics.median(cpu), min(wall), case["p50_ns"], case["p99_ns"]]
        baseline = cases.get((group, case["baseline"]))
        ratio = harness.paired(baseline["cpu_ns"], cpu) if baseline else None
        columns = [
            "" if group == shown else group,
            name,
            *map(_time, times),
            _quartiles(ratio) if ratio else "",
        ]
        shown = group
        yield "| " + " | ".join(columns) + " |"


def _value_table(record: dict[str, Any]) -> Iterable[str]:
    yield "| | | |"
    yield "|---|---|---|"
    shown = ""
    for row in record["values"]:
        group = "" if row["group"] == shown else row["group"]
        shown = row["group"]
        yield f"| {group} | {row['name']} | {_with_unit(row['value'], row['unit'])} |"


# --- numbers


def _number(value: float) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


def _times(value: float) -> str:
    return f"{_number(value)}x"


def _quartiles(ratio: Ratio) -> str:
    return f"{_times(ratio.median)} ({_number(ratio.low)} to {_number(ratio.high)})"


def _with_unit(value: float, unit: str) -> str:
    text = f"{value:g}" if value == int(value) else _number(value)
    return f"{text}x" if unit == "x" else f"{text} {unit}".replace(" us", " µs")


def _time(nanoseconds: float | None) -> str:
    return harness.duration(nanoseconds).replace(" us", " µs")


def _capital(text: str) -> str:
    return text if text.startswith("`") else text[0].upper() + text[1:]


def _shortened(text: str, most: int = 50) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


# --- files


def files(result: dict[str, Any]) -> dict[Path, str]:
    """Return all that is written from a result, by path."""
    made = {CHARTS / name: chart for name, chart in charts(result).items()}
    return {PAGE: page(result), **made}


def main() -> int:
    """Write the page and its charts."""
    parser = argparse.ArgumentParser(description="Write docs/benchmarks.md and its charts.")
    parser.add_argument("result", nargs="?", type=Path, metavar="RESULT")
    options = parser.parse_args()
    if options.result is not None and options.result.resolve() != REFERENCE:
        given = json.loads(options.result.read_text(encoding="utf-8"))
        REFERENCE.write_text(compact(given), encoding="utf-8")
    result = json.loads(REFERENCE.read_text(encoding="utf-8"))
    CHARTS.mkdir(exist_ok=True)
    made = files(result)
    for path in CHARTS.glob("*.svg"):
        if path not in made:
            path.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
