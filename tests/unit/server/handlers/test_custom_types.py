"""Paths, addresses, patterns, secrets and other classes, as arguments and results."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import ipaddress
import logging
import pathlib
import re
import subprocess
import sys
from collections import OrderedDict, UserDict, deque
from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from tests.rigs.handler_arguments import passed_as_x, refusal_as_x, taking
from trunkline import Client, Context, PeerError, Server, ToolError
from trunkline.mcp import TextContent
from trunkline.server.handlers.arguments import arguments_of
from trunkline.server.handlers.json_encoding import encoded

CANARY = "canary-7f3a"


def text(form: str) -> dict[str, Any]:
    return {"type": "string", "format": form}


NUMBERS = {"type": "array", "items": {"type": "integer"}}

# type, schema, JSON that is read, its value, JSON that is refused, and the sentence.
READ: list[tuple[Any, dict[str, Any], bytes, Any, bytes, str]] = [
    (pathlib.Path, text("path"), b'"/a"', pathlib.Path("/a"), b"1", "a path, got an integer"),
    (
        pathlib.PurePosixPath,
        text("path"),
        b'"a"',
        pathlib.PurePosixPath("a"),
        b"null",
        "a path, got null",
    ),
    (
        ipaddress.IPv4Address,
        text("ipv4"),
        b'"1.2.3.4"',
        ipaddress.ip_address("1.2.3.4"),
        b'"canary-7f3a"',
        "an IPv4 address",
    ),
    (
        ipaddress.IPv6Address,
        text("ipv6"),
        b'"::1"',
        ipaddress.ip_address("::1"),
        b"16909060",
        "an IPv6 address, got an integer",
    ),
    (
        ipaddress.IPv4Network,
        text("ipv4network"),
        b'"10.0.0.0/8"',
        ipaddress.ip_network("10.0.0.0/8"),
        b'"10.0.0.1/8"',
        "an IPv4 network",
    ),
    (
        ipaddress.IPv6Interface,
        text("ipv6interface"),
        b'"::1/64"',
        ipaddress.ip_interface("::1/64"),
        b"true",
        "an IPv6 address with a prefix, got a boolean",
    ),
    (re.Pattern, text("regex"), b'"a+"', re.compile("a+"), b'"(canary-7f3a"', "a regular"),
    (re.Pattern[str], text("regex"), b'"a+"', re.compile("a+"), b"[]", "a regular expression, got"),
    (object, {}, b'{"a":[1]}', {"a": [1]}, b"", ""),
    (deque[int], NUMBERS, b"[1]", deque([1]), b'["canary-7f3a"]', "an integer, got a string"),
    (deque, {"type": "array"}, b'[1,"a"]', deque([1, "a"]), b"1", "an array, got an integer"),
    (Iterable[int], NUMBERS, b"[1]", [1], b"{}", "an array, got an object"),
    (
        OrderedDict[str, int],
        {"type": "object", "additionalProperties": {"type": "integer"}},
        b'{"a":1}',
        OrderedDict(a=1),
        b"[]",
        "an object, got an array",
    ),
    (
        pydantic.AnyUrl,
        {"type": "string", "format": "uri", "minLength": 1},
        b'"http://a.b/"',
        pydantic.AnyUrl("http://a.b/"),
        b'"canary-7f3a"',
        "does not fit (url parsing)",
    ),
    (
        pydantic.HttpUrl,
        {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083},
        b'"http://a.b/"',
        pydantic.HttpUrl("http://a.b/"),
        b'"ftp://canary-7f3a/"',
        "does not fit (url scheme)",
    ),
    (
        pydantic.SecretStr,
        {"type": "string", "format": "password", "writeOnly": True},
        b'"a"',
        pydantic.SecretStr("a"),
        b"1",
        "input should be a valid string",
    ),
]


@pytest.mark.parametrize(
    ("type_", "schema", "good", "value", "bad", "sentence"),
    READ,
    ids=[str(row[0])[:60] for row in READ],
)
def test_a_class_of_a_library_is_read(
    type_: Any, schema: dict[str, Any], good: bytes, value: Any, bad: bytes, sentence: str
) -> None:
    arguments = arguments_of(taking(type_))
    assert arguments.schema["properties"]["x"] == schema
    found = passed_as_x(arguments, good)
    assert found == value
    assert type(found) is type(value)
    if bad:
        told = refusal_as_x(arguments, bad)
        assert sentence in told
        assert CANARY not in told
    inside = arguments_of(taking(list[type_]))
    assert passed_as_x(inside, b"[" + good + b"]") == [value]
    assert passed_as_x(arguments_of(taking(type_ | None)), b"null") is None


@dataclasses.dataclass
class Job:
    folder: pathlib.Path
    hosts: deque[ipaddress.IPv4Address]


def test_such_classes_may_be_members_of_classes() -> None:
    arguments = arguments_of(taking(Job))
    found = passed_as_x(arguments, b'{"folder":"a","hosts":["1.2.3.4"]}')
    assert found == Job(pathlib.Path("a"), deque([ipaddress.IPv4Address("1.2.3.4")]))
    assert arguments.schema["properties"]["x"]["properties"]["folder"] == text("path")
    assert encoded(found) == b'{"folder":"a","hosts":["1.2.3.4"]}'


@pytest.mark.parametrize("pattern", ["(" * 5000, "a{99999999999999}", "x" * 10_001, "["])
def test_a_pattern_that_cannot_be_compiled_is_refused(pattern: str) -> None:
    arguments = arguments_of(taking(re.Pattern))
    told = refusal_as_x(arguments, msgspec.json.encode(pattern))
    assert told == 'argument "x": expected a regular expression'


WRITTEN: list[tuple[Any, bytes]] = [
    (pathlib.PurePosixPath("/a"), b'"/a"'),
    (ipaddress.ip_address("::1"), b'"::1"'),
    (ipaddress.ip_network("10.0.0.0/8"), b'"10.0.0.0/8"'),
    (re.compile("a+"), b'"a+"'),
    (deque([1]), b"[1]"),
    (range(3), b"[0,1,2]"),
    ({"a": 1}.keys(), b'["a"]'),
    (MappingProxyType({"a": 1}), b'{"a":1}'),
    (UserDict(a=1), b'{"a":1}'),
    (pydantic.AnyUrl("http://a.b/"), b'"http://a.b/"'),
    (pydantic.SecretStr(CANARY), b'"**********"'),
    (pydantic.SecretBytes(CANARY.encode()), b'"**********"'),
]


@pytest.mark.parametrize(("value", "raw"), WRITTEN, ids=[type(row[0]).__name__ for row in WRITTEN])
def test_such_a_value_is_written_wherever_it_is(value: Any, raw: bytes) -> None:
    assert encoded(value) == raw
    assert encoded({"a": [value]}) == b'{"a":[' + raw + b"]}"


class Account(pydantic.BaseModel):
    key: pydantic.SecretStr
    size: int = 0


def test_a_secret_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("vault")

    @app.tool
    def echo(word: pydantic.SecretStr) -> pydantic.SecretStr:
        logging.getLogger("own").warning("got %s %r", word, word)
        assert word.get_secret_value() == CANARY
        return word

    @app.tool
    def free(word: pydantic.SecretStr) -> Any:
        return {"word": word, "text": f"{word}"}

    @app.tool
    def fails(word: pydantic.SecretStr) -> str:
        raise ValueError(f"cannot use {word!r}")

    @app.tool
    def tells(word: pydantic.SecretStr) -> str:
        raise ToolError(f"cannot use {word}")

    @app.tool
    def opens(account: Account, ctx: Context) -> Account:
        ctx.log("info", f"{account}")
        return account

    @app.tool
    def either(word: pydantic.SecretStr | int, number: int = 0) -> str:
        return repr(word)

    async def main() -> list[Any]:
        seen: list[Any] = []
        for revision in ("2025-11-25", "2026-07-28"):
            async with Client(app, revision=revision, on_log=seen.append) as client:
                for name in ("echo", "free", "fails", "tells", "either"):
                    seen.append(await client.call_tool(name, {"word": CANARY}))
                    # Refused for another reason: the secret is in the same message.
                    seen.append(await client.call_tool(name, {"word": CANARY, "other": 1}))
                seen.append(await client.call_tool("either", {"word": CANARY, "number": "x"}))
                seen.append(await client.call_tool("echo", {"word": [CANARY]}))
                for size in (1, "x"):
                    account = {"key": CANARY, "size": size}
                    seen.append(await client.call_tool("opens", {"account": account}))
                seen.append(await client.list_tools())
        return seen

    caplog.set_level(logging.DEBUG)
    seen = asyncio.run(main())
    assert "**********" in str(seen)
    assert CANARY not in str(seen)
    assert CANARY not in msgspec.json.encode(seen, enc_hook=repr).decode()
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "**********" in logged
    assert CANARY not in logged


def test_no_library_is_loaded_for_its_classes() -> None:
    code = (
        "import sys\n"
        "before = {'ipaddress', 'pydantic', 'pathlib'} & set(sys.modules)\n"
        "from trunkline import Server\n"
        "app = Server('x')\n"
        "@app.tool\n"
        "def f(a: int, b: 'list[str] | None' = None) -> 'dict[str, int]': return {'a': a}\n"
        "import trunkline.server.handlers.arguments\n"
        "print(sorted({'ipaddress', 'pydantic'} & set(sys.modules) - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_prompts_and_templates_take_such_types_and_aliases() -> None:
    app = Server("x")

    @app.prompt
    def plan(
        when: datetime.date | str,
        folder: pathlib.PurePosixPath,
        number: Annotated[int, pydantic.Field(alias="count", ge=1)] = 3,
    ) -> str:
        return repr((when, folder, number))

    @app.resource("file://{+path}")
    def read(path: pathlib.PurePosixPath) -> str:
        return repr(path)

    @app.resource("user://{uid}")
    def user(number: Annotated[int, pydantic.Field(alias="uid")]) -> str:
        return repr(number)

    async def main() -> None:
        async with Client(app) as client:
            (listed,) = await client.list_prompts()
            assert [each.name for each in listed.arguments or ()] == ["when", "folder", "count"]
            given = {"when": "2026-01-02", "folder": "a/b", "count": "5"}
            (message,) = (await client.get_prompt("plan", given)).messages
            assert message.content == TextContent(
                "(datetime.date(2026, 1, 2), PurePosixPath('a/b'), 5)"
            )
            with pytest.raises(PeerError, match=r'argument "count": expected an integer >= 1'):
                await client.get_prompt("plan", {**given, "count": "0"})
            (contents,) = (await client.read_resource("file://a/b")).contents
            assert contents.text == "PurePosixPath('a/b')"
            (contents,) = (await client.read_resource("user://7")).contents
            assert contents.text == "7"

    asyncio.run(main())
