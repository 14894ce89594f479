"""The table of docs/hosts.md is the table of hosts; run this file to write it."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline.hosts.table import HOSTS, PLATFORMS, PROJECT_KEY, Host, Location

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hosts.md"
BEGIN = "<!-- table of hosts: begin -->\n"
END = "<!-- table of hosts: end -->\n"
_COUNT = re.compile(r"\b([0-9]+|eleven|twelve|[a-z]+teen|twenty[-a-z]*) ((?:other )?)hosts\b")
_PLATFORMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def table() -> str:
    """Return the table as the page has it."""
    lines = [
        "| Host | Name here | Files | Servers are in | Variables | After an install |",
        "|---|---|---|---|---|---|",
        *map(_row, HOSTS),
    ]
    return "".join(f"{line}\n" for line in lines)


def _row(host: Host) -> str:
    sources = host.source[0]
    names = ", ".join(f"`{name}`" for name in (host.id, *host.aliases))
    scopes = dict.fromkeys(each.scope for each in reversed(host.locations))
    files = "<br>".join(f"{scope}: {_files(host, scope)}" for scope in scopes)
    keys = dict.fromkeys(_keys(each) for each in reversed(host.locations))
    variables = ", ".join(f"`{each}`" for each in host.variables) or "none"
    cells = [f"[{host.title}]({sources})", names, files, ", ".join(keys), variables, _after(host)]
    return f"| {' | '.join(cells)} |"


def _after(host: Host) -> str:
    """Return what a host needs before it uses an entry."""
    found = [host.reload] if host.reload else []
    sentences = dict.fromkeys(host.approval.values())
    for text in sentences:
        scopes = [scope for scope, each in host.approval.items() if each == text]
        found.append(text if len(scopes) > 1 else f"{scopes[0]}: {text}")
    return "<br>".join(found) or "nothing known"


def _files(host: Host, scope: str) -> str:
    found = [each for each in host.locations if each.scope == scope]
    return " or ".join(map(_file, sorted(found, key=lambda each: each.is_alternative)))


def _file(location: Location) -> str:
    if len(set(location.paths.values())) == 1 and len(location.paths) == len(PLATFORMS):
        return f"`{next(iter(location.paths.values()))}`"
    paths = (f"{_PLATFORMS[name]} `{path}`" for name, path in location.paths.items())
    return ", ".join(paths)


def _keys(location: Location) -> str:
    return f"`{'.'.join('PATH' if key == PROJECT_KEY else key for key in location.keys)}`"


def test_the_page_has_the_table_of_hosts() -> None:
    _, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    written, end, _ = rest.partition(END)
    assert begin
    assert end
    assert written == table(), f"run python -m {__name__}"


def test_the_page_names_every_source() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for host in HOSTS:
        for source in host.source:
            assert source in text, host.id


def test_pages_that_count_hosts_count_those_of_the_table() -> None:
    root = PAGE.parents[1]
    found = 0
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        for number, rest in _COUNT.findall(page.read_text(encoding="utf-8")):
            found += 1
            assert number.isdecimal(), f"{page.name}: write the number of hosts in digits"
            # "Claude, Cursor, VS Code and 5 other hosts"
            assert int(number) == len(HOSTS) - (3 if rest else 0), page.name
    assert found


if __name__ == "__main__":
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(head + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
