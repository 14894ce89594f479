"""YAML: what is read, what is edited, and what is left alone."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each
from trunkline.hosts.edit import EntryPlace, put_entry, take_entry
from trunkline.hosts.entries import ServerEntry
from trunkline.hosts.errors import HostConfigError
from trunkline.hosts.files import load_files
from trunkline.hosts.mask import masked_texts
from trunkline.hosts.table import find_host
from trunkline.hosts.yaml_text import YamlTextError, loads

CANARY = "CANARY-31c9"
NEW = ServerEntry(name="new", transport="stdio", command="/y", args=("-m", "a b"), env={"K": "1"})


def place(host: str) -> EntryPlace:
    row = find_host(host)
    return EntryPlace(row, row.locations[-1], "/f.yaml", "/w")


def put(host: str, text: str, entry: ServerEntry = NEW) -> str:
    return put_entry(text, place(host), entry)


@for_each(
    ("host", "before", "after"),
    [
        # A list that is not indented, and comments of the entry before.
        (
            "continue",
            "mcpServers:\n- name: a\n  command: x\n  # of a\n# of the file\nz: 1\n",
            "mcpServers:\n- name: a\n  command: x\n  # of a\n"
            '- name: new\n  command: /y\n  args:\n  - "-m"\n  - "a b"\n  env:\n    K: "1"\n'
            "# of the file\nz: 1\n",
        ),
        # A wide dash, and indentation of four.
        (
            "continue",
            "x:\n    y: 1\nmcpServers:\n    -   name: a\n        command: x",
            "x:\n    y: 1\nmcpServers:\n    -   name: a\n        command: x\n"
            '    -   name: new\n        command: /y\n        args:\n            - "-m"\n'
            '            - "a b"\n        env:\n            K: "1"\n',
        ),
        # A name with nothing below it but comments; an empty list with a comment.
        (
            "goose",
            "extensions: # mine\n  # none yet\nA: 1\n",
            "extensions: # mine\n  new:\n    name: new\n    type: stdio\n    cmd: /y\n    args:\n"
            '      - "-m"\n      - "a b"\n    envs:\n      K: "1"\n    enabled: true\n'
            "  # none yet\nA: 1\n",
        ),
        (
            "continue",
            "mcpServers: [] # none\r\nz: 1\r\n",
            "mcpServers: # none\r\n  - name: new\r\n    command: /y\r\n    args:\r\n"
            '      - "-m"\r\n      - "a b"\r\n    env:\r\n      K: "1"\r\nz: 1\r\n',
        ),
        # Aliases elsewhere, the last of them at the end of the file.
        (
            "continue",
            "m: &m {a: 1}\nn:\n  <<: *m\no: *m",
            "m: &m {a: 1}\nn:\n  <<: *m\no: *m\nmcpServers:\n  - name: new\n    command: /y\n"
            '    args:\n      - "-m"\n      - "a b"\n    env:\n      K: "1"\n',
        ),
    ],
)
def test_an_entry_has_the_indentation_of_its_neighbours(host: str, before: str, after: str) -> None:
    assert put(host, before) == after


def test_a_replacement_changes_the_lines_of_its_members_alone() -> None:
    text = (
        "extensions:\n  new: # mine\n    enabled: false # off\n    type: stdio\n"
        "    name: 'new'\n    cmd: 'x' # how\n    args: [a, b] # old\n    timeout: 300\n"
        "    description: |\n      # text\n    envs: {T: t}\n  dev:\n    type: builtin\n"
    )
    new = put("goose", text)
    assert new == (
        "extensions:\n  new: # mine\n    enabled: false # off\n    type: stdio\n"
        "    name: 'new'\n    cmd: \"/y\" # how\n"
        '    args:\n      - "-m"\n      - "a b" # old\n    timeout: 300\n'
        '    description: |\n      # text\n    envs: {"T": "t", "K": "1"}\n'
        "  dev:\n    type: builtin\n"
    )
    assert put("goose", new) == new


def test_the_first_member_of_an_item_is_replaced_and_removed() -> None:
    text = "mcpServers:\n  - command: x # how\n    name: new\n    other: 1\n"
    url = ServerEntry(name="new", transport="http", url="https://a.example/mcp")
    assert put("continue", text, url) == (
        "mcpServers:\n  - name: new\n    other: 1\n    type: streamable-http\n"
        "    url: https://a.example/mcp\n"
    )


@for_each(
    ("host", "text", "problem"),
    [
        ("goose", "extensions: {a: {cmd: x}}\n", r"{} and \[\] with content are not edited"),
        ("goose", "extensions:\n  new: {cmd: x}\n", r"{} and \[\] with content are not edited"),
        ("goose", "x: &a\n  cmd: b\nextensions:\n  new: *a\n", "an alias is not edited"),
        ("goose", "extensions:\n  new: &a\n    cmd: b\nx: *a\n", "an anchor is not edited"),
        ("goose", "extensions: !!set {a}\n", "expected an object, got set"),
        ("goose", "a: 1\n--- \nb: 2\n", "found another document"),
        ("goose", "a: 1\n...\n", "the edit would make the file unreadable"),
        ("goose", "a: 1\na: 2\n", "not YAML: line 2, column 1: a name appears twice"),
        ("goose", "a: [1\n", "not YAML: line "),
        ("goose", "a: !x 1\n", "not YAML: line 1, column 4: could not determine a constructor"),
        ("goose", "- a\n", "expected an object, got an array"),
        ("goose", "a: &a [*a]\n", "an alias inside its own anchor"),
        ("goose", "a: " + "[" * 3000, "nested too deep|not YAML"),
        ("goose", "? [{a: b}]\n: 1\n", "a name that is not text"),
        ("goose", "a: \x07\n", "a character that YAML does not allow"),
        ("goose", f"a: {'x' * (1 << 18)}\n", "more than 256 KiB of YAML"),
        ("goose", "extensions:\n  new:\n    type: builtin\n", "is a part of goose itself"),
        ("continue", "mcpServers:\n  a: {command: x}\n", "expected an array, got an object"),
        (
            "continue",
            "mcpServers:\n- name: new\n  command: a\n- name: new\n  command: b\n",
            "two entries have that name",
        ),
    ],
)
def test_an_unusual_file_is_refused(host: str, text: str, problem: str) -> None:
    with pytest.raises(HostConfigError, match=problem):
        put(host, text)


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(YamlTextError, match="more than 100000 values"):
        loads("\n".join(lines))


@for_each(
    "text",
    [
        f"a: {CANARY}\nb: [{CANARY}\n",
        f"a: {CANARY}\na: {CANARY}\n",
        f'a: "{CANARY}\n',
        f"{CANARY}: {CANARY}: x\n",
        f"a: {CANARY}\n\tb: {CANARY}\n",
        f"a: {CANARY}\x07\n",
        f"- {CANARY}\n{CANARY}\n",
    ],
)
def test_an_error_quotes_nothing_of_the_file(text: str) -> None:
    with pytest.raises(HostConfigError) as caught:
        put("goose", text)
    assert CANARY not in str(caught.value)


def test_a_warning_about_the_file_is_not_shown() -> None:
    # pytest turns warnings into errors.
    assert loads(f"a: &x {CANARY}\nb: &x c\n") == {"a": CANARY, "b": "c"}


def test_secrets_are_hidden_in_the_diff() -> None:
    text = (
        f"GITHUB_TOKEN: {CANARY}\nextensions:\n  a:\n    cmd: x\n    args:\n    - --token\n"
        f"    - {CANARY}\n    envs:\n      PLAIN: {CANARY}\n      OTHER: |\n        {CANARY}\n"
        f"    headers: {{X: {CANARY}}}\nflow: [--api-key, {CANARY}]\n# key={CANARY}\n"
    )
    new = put("goose", text)
    before, after = masked_texts(text, new, place("goose").host)
    assert CANARY not in before.replace(f"# key={CANARY}", "")
    assert "cmd: x" in before
    assert loads(before)["extensions"]["a"]["args"][0] == "--token"
    assert len(after.splitlines()) > len(before.splitlines())
    assert "new value" in after


def test_random_edits_leave_the_rest_as_it_was() -> None:
    chance = random.Random(7)
    for host in ("goose", "continue"):
        text = "# head\na: 'x'  # c\n\nb:\n  - 1\n  # d\n  - two: [3]\n"
        known: dict[str, ServerEntry] = {}
        kept = [line for line in text.splitlines() if line.strip()]
        for _ in range(60):
            name = chance.choice("pqrs")
            if chance.random() < 0.4:
                text = take_entry(text, place(host), name)
                known.pop(name, None)
            else:
                words = chance.sample(["-x", "a: b", "#c", "", "1", "null", "é", "~", "[x]"], 4)
                entry = ServerEntry(
                    name=name, transport="stdio", command=words[0] or "c", args=tuple(words[1:])
                )
                text = put(host, text, entry)
                known[name] = entry
            row = place(host)
            assert [line for line in text.splitlines() if line in kept] == kept
            for entry in known.values():
                raw = row.raw(text, entry.name)
                fields = row.host.fields
                assert (raw[fields.command], tuple(raw[fields.args])) == (entry.command, entry.args)


def test_built_in_extensions_are_not_servers(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "goose"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "extensions:\n  developer:\n    type: builtin\n    enabled: true\n    name: developer\n"
        "  mine:\n    type: stdio\n    enabled: true\n    name: mine\n    cmd: x\n    args: []\n"
    )
    [file] = load_files(find_host("goose"), environ={"HOME": str(tmp_path)}, platform="linux")
    assert ([each.name for each in file.entries], file.problems) == (["mine"], ())


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['ruamel'] = sys.modules['ruamel.yaml'] = None\n"
        "from trunkline.hosts.files import parse_text\n"
        "from trunkline.hosts.errors import HostConfigError\n"
        "assert parse_text('', 'yaml', 'f') == {}\n"
        "try: parse_text('a: 1', 'yaml', 'f')\n"
        "except HostConfigError as error: print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert 'pip install "trunkline[yaml]"' in shown.stdout
    assert "trunkline install --to json" in shown.stdout
