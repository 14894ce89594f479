"""The table of docs/hosts.md is the table of hosts; run this file to write it."""

from __future__ import annotations

from pathlib import Path

from trunkline.hosts.table import HOSTS, PLATFORMS, PROJECT_KEY, Host, Location

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hosts.md"
BEGIN = "<!-- table of hosts: begin -->\n"
END = "<!-- table of hosts: end -->\n"
_PLATFORMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def table() -> str:
    """Return the table as the page has it."""
    lines = [
        "| Host | Name here | Files | Servers are in | Variables |",
        "|---|---|---|---|---|",
        *map(_row, HOSTS),
    ]
    return "".join(f"{line}\n" for line in lines)


def _row(host: Host) -> str:
    sources = host.source[0]
    names = ", ".join(f"`{name}`" for name in (host.id, *host.aliases))
    files = "<br>".join(_files(each) for each in reversed(host.locations))
    keys = dict.fromkeys(_keys(each) for each in reversed(host.locations))
    variables = ", ".join(f"`{each}`" for each in host.variables) or "none"
    return f"| [{host.title}]({sources}) | {names} | {files} | {', '.join(keys)} | {variables} |"


def _files(location: Location) -> str:
    if len(set(location.paths.values())) == 1 and len(location.paths) == len(PLATFORMS):
        return f"{location.scope}: `{next(iter(location.paths.values()))}`"
    paths = (f"{_PLATFORMS[name]} `{path}`" for name, path in location.paths.items())
    return f"{location.scope}: {', '.join(paths)}"


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


if __name__ == "__main__":
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(head + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
