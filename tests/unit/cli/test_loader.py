"""The server of a file: how it is named, found and loaded, and what is said when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trunkline import Server
from trunkline.cli.command import UsageError
from trunkline.cli.loader import LoadError, load_app, parse_app_target, stdout_on_stderr

SERVER = "from trunkline import Server\n"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the modules, the path and the arguments be after a test what they were before."""
    modules = dict(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    yield
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "weather.py"


def loaded(file: Path, text: str, name: str = "") -> Server:
    file.write_text(SERVER + text)
    return load_app(parse_app_target(f"{file}{name}"))


# What a text names


def test_a_file_is_found_by_its_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("")
    monkeypatch.chdir(file.parent)
    for text in ("weather.py", str(file), f"./{file.name}"):
        assert parse_app_target(text) == (str(file), "weather", None, str(file.parent))


def test_an_object_stands_behind_a_colon(file: Path) -> None:
    file.write_text("")
    assert parse_app_target(f"{file}:app").name == "app"
    assert parse_app_target(f"{file}:Holder.app").name == "Holder.app"


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path: Path) -> None:
    odd = tmp_path / "a:b.py"
    odd.write_text("")
    assert parse_app_target(str(odd)).file == str(odd)
    assert parse_app_target(f"{odd}:app").name == "app"


@pytest.mark.parametrize("name", ["json.py", "not-a-name.py", "pytest.py"])
def test_a_file_that_is_called_as_something_else_does_not_hide_it(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("")
    assert parse_app_target(str(tmp_path / name)).module == "trunkline_served"


def test_a_module_is_found_from_where_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_app_target("package.module:app") == (None, "package.module", "app", os.getcwd())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing.py", "'nothing.py' does not exist; name a Python file"),
        ("nothing.py:app", "'nothing.py' does not exist"),
        ("no/thing", "'no/thing' does not exist"),
        ("/", "'/' is a folder"),
        ("", "'' does not exist"),
        ("a-b", "'a-b' does not exist"),
        ("weather:", "has no object name after the colon"),
        ("weather:a b", "has no object name after the colon"),
        ("weather:a..b", "has no object name after the colon"),
    ],
)
def test_a_text_that_names_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_app_target(text)


# Which server is meant


@pytest.mark.parametrize(
    "text",
    [
        "something = Server('it')",
        "one = two = Server('it')",
        "app = Server('it')\nother = Server('other')",
        "server = Server('it')\nother = Server('other')",
        "mcp = Server('it')\nother = Server('other')",
        "server = Server('other')\napp = Server('it')",
    ],
)
def test_the_only_server_or_the_one_with_the_usual_name_is_taken(file: Path, text: str) -> None:
    assert loaded(file, text).name == "it"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a = Server('other')\nb = Server('it')", ":b"),
        ("class Holder:\n    inner = Server('it')", ":Holder.inner"),
        ("def make():\n    return Server('it')", ":make"),
        ("make = lambda title='it': Server(title)", ":make"),
        ("class Holder:\n    @staticmethod\n    def make(): return Server('it')", ":Holder.make"),
    ],
)
def test_a_server_that_is_named_is_taken_or_made(file: Path, text: str, name: str) -> None:
    assert loaded(file, text, name).name == "it"


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("", "", "weather.py has no global Server"),
        ("a = Server('a')\nb = Server('b')", "", "several servers, a, b; name one: weather.py:a"),
        ("apple = 1", ":appel", "weather.py has no 'appel'; did you mean 'apple'?"),
        ("x = 1", ":x", "weather.py:x is not a Server; its type is int"),
        ("def make(a): ...", ":make", "takes arguments"),
        ("def make(): return 1", ":make", r"make\(\) did not return a Server; its type is int"),
        ("async def make(): ...", ":make", "is a coroutine"),
        ("x = 1", ":x.y", "x has no 'y'"),
    ],
)
def test_object_that_is_not_a_server_is_refused_with_a_reason(
    file: Path, text: str, name: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        loaded(file, text, name)


# Loading


def test_a_file_finds_its_neighbours_and_is_found_by_them(file: Path) -> None:
    file.with_name("part.py").write_text("import weather\nNAME = weather.NAME")
    app = loaded(file, "NAME = 'it'\nfrom part import NAME as name\napp = Server(name)")
    assert app.name == "it"
    assert sys.path[0] == str(file.parent)


def test_a_file_is_not_the_program(file: Path) -> None:
    app = loaded(file, "app = Server(__name__)\nif __name__ == '__main__':\n    app.run()\n")
    assert app.name == "weather"


def test_a_file_sees_none_of_our_arguments(file: Path) -> None:
    app = loaded(file, "import sys\napp = Server(' '.join(sys.argv))")
    assert app.name == str(file)


def test_a_module_of_a_package_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "name.py").write_text("NAME = 'it'")
    (package / "main.py").write_text(f"{SERVER}from .name import NAME\napp = Server(NAME)")
    monkeypatch.chdir(tmp_path)
    assert load_app(parse_app_target("packed.main")).name == "it"
    with pytest.raises(UsageError, match=r"no module packed\.nothing"):
        load_app(parse_app_target("packed.nothing"))


def test_a_module_that_another_lacks_is_the_fault_of_that_one(file: Path) -> None:
    with pytest.raises(LoadError, match="No module named 'nothing_like_it'"):
        loaded(file, "import nothing_like_it")


def test_run_is_refused_with_what_to_do(file: Path) -> None:
    run = Server.run
    with pytest.raises(LoadError, match="put it below `if __name__"):
        loaded(file, "app = Server('x')\napp.run()")
    assert Server.run is run


# What goes wrong


def failure(file: Path, text: str, name: str = "") -> LoadError:
    with pytest.raises(LoadError) as caught:
        loaded(file, text, name)
    return caught.value


def test_a_traceback_has_the_frames_of_the_author_alone(file: Path) -> None:
    file.with_name("part.py").write_text("from trunkline import Server\nServer('x').tool(print)")
    trace = failure(file, "import part").trace
    assert [line for line in trace.splitlines() if line.startswith("  File ")] == [
        f'  File "{file}", line 2, in <module>',
        f'  File "{file.with_name("part.py")}", line 2, in <module>',
    ]


def test_the_cause_of_an_error_is_cleaned_too(file: Path) -> None:
    text = "try:\n    Server('x').tool(print)\nexcept Exception as e:\n    raise KeyError from e"
    trace = failure(file, text).trace
    assert "direct cause" in trace
    assert trace.count("  File ") == 2


def test_a_fault_in_what_makes_the_server_is_shown(file: Path) -> None:
    trace = failure(file, "def make():\n    1 / 0", ":make").trace
    assert "in make" in trace
    assert trace.endswith("ZeroDivisionError: division by zero")


def test_a_file_that_ends_the_program_did_not_load(file: Path) -> None:
    assert "SystemExit" in failure(file, "raise SystemExit('no')").trace


def test_an_interrupt_is_not_the_fault_of_the_file(file: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        loaded(file, "raise KeyboardInterrupt")


def test_a_secret_in_an_error_is_not_shown(file: Path) -> None:
    trace = failure(file, "raise ValueError('password=' + 'hunter2' + 'canary')").trace
    assert "hunter2canary" not in trace


def test_the_files_that_may_be_at_fault_are_named(file: Path) -> None:
    part = file.with_name("part.py")
    part.write_text("app = (")
    assert failure(file, "import part").files == [str(file), str(part)]
    part.write_text("1 / 0")
    assert failure(file, "import part").files == [str(file), str(part)]


def test_file_that_failed_to_load_is_not_in_sys_modules(file: Path) -> None:
    failure(file, "1 / 0")
    assert "weather" not in sys.modules


def test_stdout_on_stderr_redirects_prints_and_child_processes() -> None:
    script = """
import os, sys
from trunkline.cli.loader import stdout_on_stderr
print("before")
with stdout_on_stderr():
    print("meanwhile")
    os.system("echo by a child")
print("after")
"""
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "before\nafter\n"
    assert sorted(run.stderr.splitlines()) == ["by a child", "meanwhile"]


def test_stdout_is_as_it_was_when_loading_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), stdout_on_stderr():
        raise KeyError
    os.write(1, b"here")
    assert capfd.readouterr().out == "here"
