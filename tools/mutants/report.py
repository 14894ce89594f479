"""What was killed and what survived, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tools.mutants.draw import Mutant
from tools.mutants.hunt import Verdict


def report(verdicts: Sequence[Verdict], equivalent: Sequence[Mutant]) -> Iterator[str]:
    """Yield the survivors with their differences, the table of packages and the kill rate."""
    survivors = [verdict for verdict in verdicts if verdict.killed_by is None]
    if survivors:
        yield "survivors:"
    for verdict in survivors:
        mutant = verdict.mutant
        yield f"{mutant.file}:{mutant.line}  {mutant.edit.operator}  ({_remark(verdict)})"
        yield from (f"    {line}" for line in mutant.difference())
    if survivors:
        yield ""
    yield from table(verdicts, equivalent)
    stages = Counter(verdict.killed_by for verdict in verdicts if verdict.killed_by)
    if stages:
        yield "killed by stage: " + ", ".join(f"{name} {count}" for name, count in stages.items())


def _remark(verdict: Verdict) -> str:
    words = [f"{verdict.ran} tests ran"]
    if not verdict.covering:
        words.append("no test executes this line")
    if verdict.was_cut:
        words.append("slower tests were left out")
    return ", ".join(words)


def table(verdicts: Sequence[Verdict], equivalent: Sequence[Mutant]) -> Iterator[str]:
    """Yield a line for each package, and one for all."""
    yield f"{'package':<14}{'drawn':>7}{'equivalent':>12}{'killed':>8}{'sampled':>9}{'rate':>8}"
    names = {each.package for each in equivalent} | {each.mutant.package for each in verdicts}
    for name in sorted(names):
        yield row(
            name,
            [verdict for verdict in verdicts if verdict.mutant.package == name],
            sum(mutant.package == name for mutant in equivalent),
        )
    yield row("all", verdicts, len(equivalent))


def row(name: str, verdicts: Sequence[Verdict], equivalent: int) -> str:
    """Return one line of the table; the rate is of mutants that are not equivalent."""
    sampled = len(verdicts)
    killed = sum(verdict.killed_by is not None for verdict in verdicts)
    rate = f"{100 * killed / sampled:.0f} %" if sampled else "-"
    drawn = sampled + equivalent
    return f"{name:<14}{drawn:>7}{equivalent:>12}{killed:>8}{sampled:>9}{rate:>8}"
