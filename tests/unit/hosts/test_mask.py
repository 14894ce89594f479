"""The text of a file for people: no value of env, of a header or of a secret name."""

from __future__ import annotations

from tests.cases import for_each
from trunkline.hosts.mask import hide_queries, masked_texts
from trunkline.hosts.table import find_host

C = "CANARY9d2"


@for_each(
    ("host", "text"),
    [
        ("cursor", f'{{"mcpServers": {{"a": {{"command": "x", "env": {{"PLAIN": "{C}"}}}}}}}}'),
        ("cursor", f'{{"mcpServers": {{"a": {{"url": "u", "headers": {{"X": "{C}"}}}}}}}}'),
        ("cursor", f'{{"mcpServers": {{"a": {{"command": "x", "args": ["--token", "{C}"]}}}}}}'),
        ("cursor", f'{{"mcpServers": {{"a": {{"command": "x", "args": ["--token={C}"]}}}}}}'),
        ("cursor", f'{{"mcpServers": {{"a": {{"url": "https://u:{C}@h/"}}}}}}'),
        ("cursor", f'{{"apiKey": "{C}", "mcpServers": {{}}}}'),
        ("cursor", f'{{"oauth": {{"password": {{"deep": ["{C}"]}}}}}}'),
        ("cursor", f"{{}} // Authorization: Bearer {C}{C}{C}"),
        ("codex", f'[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nPLAIN = "{C}"\n'),
        ("codex", f'[mcp_servers.a]\nenv = {{ PLAIN = "{C}" }}\n'),
        ("codex", f'[mcp_servers.a]\nhttp_headers = {{ X = "{C}" }}\n'),
        ("codex", f'[mcp_servers.a]\nargs = ["--token", "{C}"]\n'),
        ("codex", f'[mcp_servers.a]\nenv.PLAIN = "{C}"\n'),
        ("codex", f'[mcp_servers]\na = {{ command = "x", env = {{ PLAIN = "{C}" }} }}\n'),
        ("codex", f'x = [{{ a = {{ http_headers = {{ X = "{C}" }} }} }}]\n'),
        ("codex", f'[mcp_servers.a]\nurl = "https://h/mcp?key={C}"\n'),
        ("cursor", f'{{"mcpServers": {{"a": {{"url": "https://h/mcp?p=1&key={C}#x"}}}}}}'),
        ("codex", f'api_key = """\n{C}"""\n'),
        ("cursor", f'{{"mcpServers": {{"a": {{"command": "x --api-key {C}"}}}}}}'),
        (
            "cursor",
            f'{{"mcpServers": {{"a": {{"command": "sh", "args": ["-c", "x --key {C}"]}}}}}}',
        ),
        ("codex", f'[mcp_servers.a]\ncommand = "x --api-key {C}"\n'),
        ("codex", f'[mcp_servers.a]\nargs = ["-c", "x --key {C}"]\n'),
        ("codex", f'[mcp_servers]\na = {{ command = "x --api-key {C}" }}\n'),
        ("codex", f'[mcp_servers]\na = {{ command = "x", args = ["-c", "x --key {C}"] }}\n'),
    ],
)
def test_a_secret_is_hidden(host: str, text: str) -> None:
    for before, after in ((text, text), ("", text), (text, "")):
        shown = masked_texts(before, after, find_host(host))
        assert C not in "".join(shown)


def test_the_rest_is_shown_as_it_is() -> None:
    text = '{\r\n  // comment\n  "mcpServers": {"a": {"command": "npx", "args": ["-y", "p"]}}\n}'
    assert masked_texts(text, text, find_host("cursor")) == (text, text)


def test_a_value_that_changes_is_marked() -> None:
    def text(value: str) -> str:
        return f'{{"mcpServers": {{"a": {{"command": "x", "env": {{"TOKEN": "{value}"}}}}}}}}'

    before, after = masked_texts(text(f"{C}-1"), text(f"{C}-2"), find_host("cursor"))
    assert before != after
    assert '"[redacted: new value]"' in after
    assert '"[redacted]"' in before
    same, again = masked_texts(text(C), text(C), find_host("cursor"))
    assert same == again


@for_each(
    ("text", "shown"),
    [
        (
            "https://h/a=b?k=v&w=${env:X}#f and ?k=v",
            "https://h/a=b?k=[redacted]&w=${env:X}#f and ?k=v",
        ),
        ("https://h/?a=${env:X}y", "https://h/?a=[redacted]"),
        ("https://h/?a&b=", "https://h/?a&b="),
        ("https://h/?a=[redacted]&b=c=d", "https://h/?a=[redacted]&b=[redacted]"),
    ],
)
def test_values_of_queries_are_hidden(text: str, shown: str) -> None:
    assert hide_queries(text) == shown


@for_each("text", ["://" * 300_000, "://?" + "=${" * 300_000 + "}", "://?" + "=" * 900_000])
def test_the_time_to_hide_queries_is_linear_in_the_text(text: str) -> None:
    # Quadratic time would be minutes.
    assert hide_queries(text).startswith("://")
