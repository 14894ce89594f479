"""The server of a file: found, loaded, and told from whatever else the file holds.

A target is `FILE[:object]` or `package.module[:object]`. The object is a `Server`, or a
function without arguments that returns one, and may be dotted.

The rules that live here, and only here:

* A file finds its neighbours as it does under `python FILE`: its folder comes first on the path.
  It is not `__main__`, so what it does only as a program it does not do here.
* Where standard output leads to a client, nothing that is printed while a file is loaded
  reaches it: `stdout_on_stderr`.
* What fails in a file is shown as its author's business: without our frames, and without those
  of the import system.
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

    from ..server.app import Server

__all__ = ["AppTarget", "LoadError", "load_app", "parse_app_target", "stdout_on_stderr"]

# Which of several servers is meant, if none is named.
_USUAL: Final = ("app", "server", "mcp")
# What a file is called among the modules that cannot be called by its own name.
_NO_NAME: Final = "trunkline_served"


class LoadError(Exception):
    """A file could not be loaded; `trace` is what its author is to read."""

    def __init__(self, trace: str, files: list[str]) -> None:
        super().__init__(trace)
        self.trace = trace
        # Where the fault may be, for who waits until it is mended.
        self.files = files


class AppTarget(NamedTuple):
    """What is to be loaded; see `parse_app_target`."""

    # The path of a file, or None for a module.
    file: str | None
    # The name of the module.
    module: str
    # What in it is the server, if that was said.
    name: str | None
    # What goes first on the path: where it lies, and what belongs to it.
    folder: str


def parse_app_target(text: str) -> AppTarget:
    """Return what a text names.

    Raises:
        Misuse: there is no such file, and it is no name of a module.
    """
    place, colon, name = text, "", ""
    if not os.path.isfile(text):
        place, colon, name = text.rpartition(":") if ":" in text else (text, "", "")
    if colon and not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{show(text)} names no object after its colon; write FILE:app")
    if os.path.isfile(place):
        path = os.path.abspath(place)
        return AppTarget(path, _module_name(path), name or None, os.path.dirname(path))
    is_path = place.endswith(".py") or os.sep in place or not place
    if is_path or not all(part.isidentifier() for part in place.split(".")):
        kind = "is a folder" if os.path.isdir(place) else "is no file"
        raise UsageError(f"{show(place)} {kind}; name a Python file, or a module as package.module")
    return AppTarget(None, place, name or None, os.getcwd())


def _module_name(path: str) -> str:
    """Return what a file is called by others that import it, unless that is somebody else."""
    stem = os.path.splitext(os.path.basename(path))[0]
    is_free = stem not in sys.modules and stem not in sys.stdlib_module_names
    return stem if stem.isidentifier() and is_free else _NO_NAME


def load_app(target: AppTarget) -> Server:
    """Load a file or a module, and return its server.

    Raises:
        Misuse: there is no such module, or it has no server, or several.
        LoadFailed: it raised.
    """
    # Whoever loads a server needs it, and the file will import it too.
    from ..server.app import Server

    sys.path.insert(0, target.folder)
    # What a file would see that is run by itself: our words are none of its business.
    sys.argv = [target.file or target.module]
    with _failing(target), _run_refused(Server):
        module = _module(target)
        if target.name is None:
            return _only_server(module, target, Server)
        found = _named(module, target.name)
        return _made(found, target, Server)


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
                f"there is no module {error.name}, in {target.folder} or installed"
            ) from None
    return _module_of_file(target.file, target.module)


def _module_of_file(path: str, name: str) -> ModuleType:
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import module_from_spec

    loader = SourceFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    # Says that there is a file, which may be kept compiled.
    spec.has_location = True
    module = module_from_spec(spec)
    # Before it runs: dataclasses and those it imports look for it there.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:  # whatever a file raises, half a module is none
        del sys.modules[name]
        raise
    return module


@contextmanager
def _failing(target: AppTarget) -> Iterator[None]:
    """Turn whatever a file raises into a `LoadError`."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a file may raise anything
        raise LoadError(_trace(error), _files(error, target)) from None


@contextmanager
def _run_refused(server: type[Server]) -> Iterator[None]:
    """Have `app.run()` say what is wrong with it in a file that is loaded.

    It would serve from inside the import, and only then would it be our turn.
    """

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
    """Let whatever is written to standard output, by anybody here, go to standard error."""
    if sys.stdout is None:  # it was closed when Python started: nothing is written there
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        # What is still held of it belongs there too.
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


# Finding


def _only_server(module: ModuleType, target: AppTarget, kind: type[Server]) -> Server:
    """Return the server of a module that has one, or one that is called as most are."""
    found = {name: each for name, each in vars(module).items() if isinstance(each, kind)}
    if len({id(each) for each in found.values()}) == 1:
        return next(iter(found.values()))
    for name in _USUAL:
        if name in found:
            return found[name]
    shown = _shown(target)
    if not found:
        raise UsageError(
            f"{shown} has no Server among its globals; if a function makes it, "
            f"name that: {shown}:make_server"
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


def _made(found: Any, target: AppTarget, kind: type[Server]) -> Server:
    """Return a server that was named, or what a function makes that was."""
    if isinstance(found, kind):
        return found
    shown = f"{_shown(target)}:{target.name}"
    if not callable(found):
        raise UsageError(f"{shown} is no Server, it is of type {type(found).__name__}")
    if _needs_arguments(found):
        raise UsageError(f"{shown} takes arguments, and a function that makes a server takes none")
    made = found()
    if isinstance(made, kind):
        return made
    if hasattr(made, "__await__"):
        close: Callable[[], object] = getattr(made, "close", bool)
        close()  # nobody will wait for it, and Python would say so
        raise UsageError(f"{shown} is a coroutine, and a function that makes a server is none")
    raise UsageError(f"{shown}() returned no Server, but something of type {type(made).__name__}")


def _needs_arguments(found: Callable[..., Any]) -> bool:
    import inspect

    try:
        inspect.signature(found).bind()
    except TypeError:
        return True
    except ValueError:
        pass  # it has no signature: to call it will tell
    return False


def _shown(target: AppTarget) -> str:
    return target.module if target.file is None else os.path.basename(target.file)


# What went wrong


def _trace(error: BaseException) -> str:
    """Return a traceback of the frames that are the author's own."""
    import traceback

    told = traceback.TracebackException.from_exception(error)
    _keep_theirs(told, set())
    # Line by line: what is redacted is cut to a length that suits a value, not a page.
    lines = "".join(told.format()).splitlines()
    return "\n".join(str(redact(line)) for line in lines)


def _keep_theirs(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if not _is_ours(frame.filename)]
    for inner in (told.__cause__, told.__context__):
        if inner is not None:
            _keep_theirs(inner, seen)


def _is_ours(filename: str) -> bool:
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    is_import = filename.startswith("<frozen ") or f"{os.sep}importlib{os.sep}" in filename
    return is_import or filename.startswith(ours)


def _files(error: BaseException, target: AppTarget) -> list[str]:
    """Return the files that an error went through, which is where it may be mended."""
    found = [] if target.file is None else [target.file]
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        found.append(error.filename)
    return [each for each in dict.fromkeys(found) if not _is_ours(each) and os.path.isfile(each)]
