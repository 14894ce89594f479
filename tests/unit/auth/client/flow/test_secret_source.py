"""Secrets come from a text, a variable, a file or a function, and are shown nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cases import for_each
from trunkline.auth.client.flow.secret_source import MAX_SECRET_BYTES, SecretSource
from trunkline.errors import AuthorizationFailed

CANARY = "CANARY-5e1f"


def read(source: SecretSource) -> str:
    return asyncio.run(source.read())


def test_a_text_is_the_secret() -> None:
    source = SecretSource("the token", CANARY)
    assert read(source) == CANARY
    assert source.is_fixed
    assert CANARY not in f"{source!r} {source.place}"


def test_a_variable_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SecretSource("the token", env="FILES_TOKEN")
    with pytest.raises(
        AuthorizationFailed, match="variable 'FILES_TOKEN' for the token is not set"
    ):
        read(source)
    monkeypatch.setenv("FILES_TOKEN", "one")
    assert read(source) == "one"
    monkeypatch.setenv("FILES_TOKEN", " two\n")
    assert read(source) == "two"


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    source = SecretSource("the token", file=path)
    with pytest.raises(AuthorizationFailed, match="cannot be read: No such file"):
        read(source)
    path.write_text("one\n")
    assert read(source) == "one"
    path.write_text("two")
    assert read(source) == "two"
    assert not source.is_fixed


def test_a_function_may_be_async() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "late"

    assert read(SecretSource("the token", lambda: "now")) == "now"
    assert read(SecretSource("the token", later)) == "late"


def test_the_text_of_an_exception_of_a_function_is_not_shown() -> None:
    def fail() -> str:
        raise ValueError(CANARY)

    with pytest.raises(
        AuthorizationFailed, match="the function for the token raised ValueError"
    ) as caught:
        read(SecretSource("the token", fail))
    assert CANARY not in f"{caught.value} {caught.value!r}"


@for_each("content", ["", " \n", "two\nlines", "caf\u00e9", "x" * (MAX_SECRET_BYTES + 1)])
def test_invalid_secret_is_an_error_that_does_not_quote_it(tmp_path: Path, content: str) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    with pytest.raises(AuthorizationFailed, match=r"the file .* for the token ") as caught:
        read(SecretSource("the token", file=path))
    assert "lines" not in str(caught.value).replace("one line", "")


def test_a_function_returns_a_text() -> None:
    wrong = SecretSource("the token", lambda: 7)  # type: ignore[arg-type, return-value]
    with pytest.raises(AuthorizationFailed, match="did not return a text"):
        read(wrong)


def test_one_place_is_given() -> None:
    with pytest.raises(ValueError, match="one of them"):
        SecretSource("the token")
    with pytest.raises(ValueError, match="one of them"):
        SecretSource("the token", CANARY, env="X")
    with pytest.raises(ValueError, match="a text or a function"):
        SecretSource("the token", 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="environment variable"):
        SecretSource("the token", env="A=B")
