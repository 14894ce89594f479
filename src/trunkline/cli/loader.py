"""Loads the server in a Python file or module.

A target is `FILE[:object]` or `package.module[:object]`. The object is a `Server`, or a
function without arguments that returns one, and may be dotted.

The rules that live here, and only here:

* The folder of a file is first on `sys.path`, as with `python FILE`. The file is not
  `__main__`, so code below `if __name__ == "__main__"` does not run.
* If standard output carries messages, what is printed while a file is loaded goes to standard
  error: `stdout_on_stderr`.
* The traceback of a file that raises has only the author's frames: none of this library, and
  none of the import system.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ..redaction import redact, show
from .command import UsageError

if TYPE_CHECKING:
    import traceback

    from ..server.api.app import Server
    from ..server.api.core import ServerCore

__all__ = [
    "AppTarget",
    "LoadError",
    "core_of",
    "load_app",
    "parse_app_target",
    "stdout_on_stderr",
]

# Preferred of several servers, if none is named.
_USUAL_NAMES: Final = ("app", "server", "mcp")
# The module name of a file whose own name is taken or not an identifier.
_FALLBACK_NAME: Final = "trunkline_served"


class LoadError(Exception):
    """A file raised while it was loaded; `trace` is the traceback to show to its author."""

    def __init__(self, trace: str, files: list[str]) -> None:
        super().__init__(trace)
        self.trace = trace
        # The files the error went through, for `--reload` to watch.
        self.files = files


class AppTarget(NamedTuple):
    """What to load; see `parse_app_target`."""

    # The path of a file, or None for a module.
    file: str | None
    # The name of the module.
    module: str
    # The object in it, or None to search for a server.
    name: str | None
    # The folder that is put first on `sys.path`.
    folder: str


def core_of(app: Server) -> ServerCore:
    """Return what options and workers set and read of a loaded server."""
    from ..server.api import core  # here: most verbs load no server

    return core.core_of(app)


def parse_app_target(text: str) -> AppTarget:
    """Return the target in a text.

    Raises:
        UsageError: it is neither an existing file nor the name of a module.
    """
    place, colon, name = text, "", ""
    if not os.path.isfile(text):
        place, colon, name = text.rpartition(":") if ":" in text else (text, "", "")
    if colon and not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{show(text)} has no object name after the colon; write FILE:app")
    if os.path.isfile(place):
        path = os.path.abspath(place)
        return AppTarget(path, _module_name(path), name or None, os.path.dirname(path))
    is_path = place.endswith(".py") or os.sep in place or not place
    if is_path or not all(part.isidentifier() for part in place.split(".")):
        kind = "is a folder" if os.path.isdir(place) else "does not exist"
        raise UsageError(f"{show(place)} {kind}; name a Python file, or a module as package.module")
    return AppTarget(None, place, name or None, os.getcwd())


def _module_name(path: str) -> str:
    """Return the name under which other files import it, unless another module has that name."""
    stem = os.path.splitext(os.path.basename(path))[0]
    is_free = stem not in sys.modules and stem not in sys.stdlib_module_names
    return stem if stem.isidentifier() and is_free else _FALLBACK_NAME


def load_app(target: AppTarget) -> Server:
    """Load a file or a module, and return its server.

    Raises:
        UsageError: the module does not exist, or has no server, or several.
        LoadError: it raised.
    """
    # Imported here: help does not need it.
    from ..server.api.app import Server

    sys.path.insert(0, target.folder)
    # As if the file were run by itself.
    sys.argv = [target.file or target.module]
    with _failing(target), _run_refused(Server):
        module = _module(target)
        if target.name is None:
            return _only_server(module, target, Server)
        found = _named(module, target.name)
        return _server_of(found, target, Server)


# Loading


def _module(target: AppTarget) -> ModuleType:
    import importlib

    if target.file is None:
        try:
            return importlib.import_module(target.module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{target.module}.".startswith(f"{error.name}."):
                raise
            raise UsageError(
                f"no module {error.name}, neither in {target.folder} nor installed"
            ) from None
    return _module_of_file(target.file, target.module)


def _module_of_file(path: str, name: str) -> ModuleType:
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import module_from_spec

    loader = SourceFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    # Lets the loader cache the compiled file.
    spec.has_location = True
    module = module_from_spec(spec)
    # Before it runs: dataclasses, and modules that it imports, look it up there.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:  # a half-run module must not stay importable
        del sys.modules[name]
        raise
    return module


@contextmanager
def _failing(target: AppTarget) -> Iterator[None]:
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a file may raise anything
        raise LoadError(_trace(error), _files(error, target)) from None


@contextmanager
def _run_refused(server: type[Server]) -> Iterator[None]:
    """Make `app.run()` raise while a file is loaded: it would serve inside the import."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise RuntimeError(
            'run() was called while the file was loaded: put it below `if __name__ == "__main__":`'
        )

    run = server.run
    server.run = refuse  # type: ignore[method-assign]  # for as long as a file is loaded
    try:
        yield
    finally:
        server.run = run  # type: ignore[method-assign]  # as it was


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Redirect standard output of this process, and of its children, to standard error."""
    if sys.stdout is None:  # it was closed when Python started
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        # What is still buffered goes to standard error too.
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


# Finding the server


def _only_server(module: ModuleType, target: AppTarget, kind: type[Server]) -> Server:
    found = {name: each for name, each in vars(module).items() if isinstance(each, kind)}
    if len({id(each) for each in found.values()}) == 1:
        return next(iter(found.values()))
    for name in _USUAL_NAMES:
        if name in found:
            return found[name]
    shown = _shown(target)
    if not found:
        raise UsageError(
            f"{shown} has no global Server; if a function returns it, "
            f"name that function: {shown}:make_server; a server of another library is started by "
            f"its own command, such as python {shown}"
        )
    raise UsageError(
        f"{shown} has several servers, {', '.join(found)}; name one: {shown}:{min(found)}"
    )


def _named(module: ModuleType, name: str) -> Any:
    found: Any = module
    seen: list[str] = []
    for part in name.split("."):
        if not hasattr(found, part):
            inside = ".".join(seen) or os.path.basename(module.__file__ or module.__name__)
            raise UsageError(f"{inside} has no {part!r}{_near(part, found)}")
        found = getattr(found, part)
        seen.append(part)
    return found


def _near(name: str, found: object) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [each for each in dir(found) if each[0] != "_"], n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _server_of(found: Any, target: AppTarget, kind: type[Server]) -> Server:
    if isinstance(found, kind):
        return found
    shown = f"{_shown(target)}:{target.name}"
    if not callable(found):
        raise UsageError(f"{shown} is not a Server; its type is {type(found).__name__}")
    if _needs_arguments(found):
        raise UsageError(f"{shown} takes arguments; a function that returns a server must not")
    made = found()
    if isinstance(made, kind):
        return made
    if hasattr(made, "__await__"):
        close: Callable[[], object] = getattr(made, "close", bool)
        close()  # or Python warns that it was never awaited
        raise UsageError(f"{shown} is a coroutine function; it must be a plain function")
    raise UsageError(f"{shown}() did not return a Server; its type is {type(made).__name__}")


def _needs_arguments(found: Callable[..., Any]) -> bool:
    import inspect

    try:
        inspect.signature(found).bind()
    except TypeError:
        return True
    except ValueError:
        pass  # no signature to inspect: calling it will show
    return False


def _shown(target: AppTarget) -> str:
    return target.module if target.file is None else os.path.basename(target.file)


# Tracebacks


def _trace(error: BaseException) -> str:
    import traceback

    told = traceback.TracebackException.from_exception(error)
    _drop_our_frames(told, set())
    # Line by line, because `redact` cuts a text to the length of a value.
    lines = "".join(told.format()).splitlines()
    return "\n".join(str(redact(line)) for line in lines)


def _drop_our_frames(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if not _is_ours(frame.filename)]
    for inner in (told.__cause__, told.__context__):
        if inner is not None:
            _drop_our_frames(inner, seen)


def _is_ours(filename: str) -> bool:
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    is_import = filename.startswith("<frozen ") or f"{os.sep}importlib{os.sep}" in filename
    return is_import or filename.startswith(ours)


def _files(error: BaseException, target: AppTarget) -> list[str]:
    """Return the files that an error went through."""
    found = [] if target.file is None else [target.file]
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        found.append(error.filename)
    return [each for each in dict.fromkeys(found) if not _is_ours(each) and os.path.isfile(each)]
