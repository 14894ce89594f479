"""The hosts of docs/interop.md: each row and version, and packages that are pinned."""

from __future__ import annotations

import json
import re

from interop.hosts.page import BEGIN, END, HEADS, PAGE
from interop.hosts.rows import HOSTS, PINS, pinned_version
from trunkline.hosts.table import find_host

PINNED: dict[str, str] = json.loads((PINS / "package.json").read_bytes())["optionalDependencies"]


def rows() -> list[dict[str, str]]:
    """Return the rows of the page, by their heads."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    written, _, _ = rest.partition(END)
    heads, _, *lines = [line[2:-2].split(" | ") for line in written.strip().splitlines()]
    assert heads == list(HEADS)
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_the_page_has_each_host_and_version() -> None:
    found = [(row["Host"], row["Version"]) for row in rows()]
    wanted = [(host.title, host.version) for host in HOSTS]
    assert found == wanted, "other hosts or versions: make interop-hosts WRITE=1"


def test_every_host_of_the_page_ran_and_called_the_tools_or_has_a_reason() -> None:
    for host, row in zip(HOSTS, rows(), strict=True):
        assert "FAIL" not in "".join(row.values()), host.name
        if host.without_model:
            assert row["Tool"] == f"not called: {host.without_model}"
        elif not row["stdio"].startswith("not run: "):
            assert (row["Tool"], row["Failing tool"]) == ("ok", "failed"), host.name


def test_every_host_is_one_that_install_knows() -> None:
    assert [find_host(host.id).id for host in HOSTS] == [host.id for host in HOSTS]


def test_a_host_is_run_with_the_file_of_a_project_if_it_has_one() -> None:
    for host in HOSTS:
        has_one = any(each.scope == "project" for each in find_host(host.id).locations)
        assert bool(host.project) == has_one, host.name


def test_every_package_is_that_of_a_row() -> None:
    assert sorted(PINNED) == sorted(host.package for host in HOSTS)
    assert pinned_version("claude-code-node20") == "2.1.197"


def test_every_version_is_exact_and_the_lock_file_names_no_registry() -> None:
    text = (PINS / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text
    lock = json.loads(text)["packages"]
    for package in PINNED:
        assert re.fullmatch(r"\d+\.\d+\.\d+(-[a-z0-9]+)?", pinned_version(package)), package
        assert lock[f"node_modules/{package}"]["version"] == pinned_version(package)
    for path, package in lock.items():
        assert path == "" or package["integrity"].startswith("sha512-"), path
