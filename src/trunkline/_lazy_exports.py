"""Exports of a package that are imported on first use.  [PEP 562]

A package lists its public names once, by the module that defines them:

    __all__, __getattr__, __dir__ = lazy_exports(__name__, {"addresses": "Tcp Unix", "": "spec"})

A name of another library, or of another package of this one, raises an error that says what to use.

Type checkers and editors read `__init__.pyi` beside it, which `make exports` writes from the
same table. This module imports nothing: it is loaded by `import trunkline`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, names: "Mapping[str, str]", *more: str
) -> "tuple[list[str], Callable[[str], object], Callable[[], list[str]]]":
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    `names` maps a module to the names it exports, separated by spaces; `there=public` exports a
    name under another one, and the names of the module `""` are sub-modules. `more` are names
    that the package defines itself.
    """
    homes = {}
    for module, exported in names.items():
        for name in exported.split():
            there, _, public = name.partition("=")
            homes[public or there] = (module, there)
    public_names = sorted([*homes, *more])

    def load(name: str) -> object:
        if name not in homes:
            raise _missing(package, name)
        from importlib import import_module
        from sys import modules

        module, there = homes[name]
        if not module:
            return import_module(f".{there}", package)
        found: object = getattr(import_module(f".{module}", package), there)
        # Kept, so that the next use is a plain lookup.
        setattr(modules[package], name, found)
        return found

    return public_names, load, lambda: public_names


def _missing(package: str, name: str) -> Exception:
    """Return the error for a name that a package does not export."""
    if name.startswith("_"):  # programs probe modules for these
        return AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
    # Imported here, as are the exports: few programs need it.
    from sys import _getframe

    from .migration_hints import missing_name

    # `from package import name` looks for the name in this function of the interpreter, which is
    # two frames up: Python ignores the text of an AttributeError there.
    return missing_name(package, name, is_import=_getframe(2).f_code.co_name == "_handle_fromlist")
