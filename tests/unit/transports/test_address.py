from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from trunkline import transports
from trunkline.jsonrpc import Policy
from trunkline.transports import Address, Stdio, StdioServer, Transport, memory_pair

CANARY = "canary-7f3a91c2"


def test_a_command_is_written_in_two_ways() -> None:
    one = Stdio("python", ["server.py"])
    assert one == Stdio(["python", "server.py"]) == Stdio(Path("python"), ("server.py",))
    assert hash(one) == hash(Stdio(["python"], ["server.py"]))
    assert (one.command, one.args) == ("python", ("server.py",))
    assert one != Stdio("python", ["server.py"], env={"A": "1"})


def test_an_address_does_not_change() -> None:
    env = {"A": "1"}
    args = ["x"]
    address = Stdio("python", args, env=env)
    env["A"] = "2"
    args.append("y")
    assert address == Stdio("python", ["x"], env={"A": "1"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        address.command = "ruby"  # type: ignore[misc]
    with pytest.raises(TypeError):
        address.env["A"] = "3"  # type: ignore[index]


@pytest.mark.parametrize(
    "args",
    [
        ["--token", CANARY],
        [f"--api-key={CANARY}"],
        [f"API_KEY={CANARY}"],
        ["--url", f"https://user:{CANARY}@host/"],
        ["-H", f"Authorization: Bearer {CANARY}"],
        ["--config", f'{{"password": "{CANARY}"}}'],
    ],
)
def test_a_secret_among_the_arguments_is_not_shown(args: list[str]) -> None:
    address = Stdio("python", ["server.py", *args])
    assert CANARY not in repr(address) + str(address)
    assert "server.py" in repr(address)


def test_of_the_environment_only_names_are_shown() -> None:
    address = Stdio("python", env={"PLAIN": CANARY, "API_KEY": CANARY}, cwd="/srv")
    assert repr(address) == "Stdio('python', env=['API_KEY', 'PLAIN'], cwd='/srv')"
    assert list(address.__rich_repr__()) == [repr(address)]


def test_a_switch_without_a_value_hides_no_other_switch() -> None:
    shown = repr(Stdio("x", ["--no-auth", "--verbose", "file"]))
    assert shown == "Stdio('x', ['--no-auth', '--verbose', 'file'])"


@pytest.mark.parametrize("command", ["", []])
def test_a_command_is_not_empty(command: str | list[str]) -> None:
    with pytest.raises(ValueError, match="empty"):
        Stdio(command)


def test_args_of_one_string_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="sequence"):
        Stdio("python", "server.py")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stdio(7), "Stdio.command is a string or a path, not of type int"),
        (lambda: Stdio(b"python"), "Stdio.command is a string or a path, not of type bytes"),
        (lambda: Stdio(["python", 7]), "Stdio.command is a string or a path, not of type int"),
        (lambda: Stdio("x", ["-p", 80]), "Stdio.args[1] is a string or a path, not of type int"),
        (lambda: Stdio("x", [None]), "Stdio.args[0] is a string or a path, not None"),
        (lambda: Stdio("x", b"ab"), "Stdio.args is a sequence of arguments, not one string"),
        (lambda: Stdio("x", env={"PORT": 80}), "Stdio.env['PORT'] is a string, not of type int"),
        (lambda: Stdio("x", env={"HOME": None}), "Stdio.env['HOME'] is a string, not None"),
        (lambda: Stdio("x", env={b"A": "1"}), "Stdio.env has strings for names, not of type bytes"),
        (lambda: Stdio("x", cwd=7), "Stdio.cwd is a string or a path, not of type int"),
    ],
)
def test_wrong_types_are_refused_when_the_address_is_made(
    make: Callable[[], Stdio], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message


def test_env_value_of_a_wrong_type_is_not_quoted() -> None:
    with pytest.raises(TypeError) as caught:
        Stdio("x", env={"API_KEY": CANARY.encode()})  # type: ignore[dict-item]
    assert CANARY not in str(caught.value)


def test_a_path_among_the_arguments_is_its_text() -> None:
    address = Stdio("python", [Path("/srv/server.py"), "-v"])
    assert address.args == ("/srv/server.py", "-v")
    assert address == Stdio(["python", Path("/srv/server.py")], ["-v"])


def test_inherit_env_is_part_of_the_address() -> None:
    assert Stdio("x").inherit_env
    assert Stdio("x") != Stdio("x", inherit_env=False)
    assert repr(Stdio("x", inherit_env=False)) == "Stdio('x', inherit_env=False)"


def test_a_grace_is_not_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Stdio("python", grace=-1)


def test_addresses_and_transports_are_what_they_are_called() -> None:
    address = Stdio("python")
    assert isinstance(address, Address)
    assert isinstance(address.transport(Policy()), Transport)
    assert isinstance(StdioServer(Policy()), Transport)
    assert address.transport(Policy()) is not address.transport(Policy())
    assert not isinstance(memory_pair()[0], Address)


def test_the_exported_names_are_there_and_no_others() -> None:
    assert sorted(transports.__all__) == dir(transports)
    for name in transports.__all__:
        assert getattr(transports, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        transports.nothing  # noqa: B018  # the lookup is what is tested
