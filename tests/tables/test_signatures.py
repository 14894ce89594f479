"""`help()` and `inspect.signature()` of every exported class, as a reader in a shell uses them."""

from __future__ import annotations

import importlib
import inspect
import pydoc
from collections.abc import Iterator
from typing import get_type_hints

import pytest
from msgspec import Struct

from tests.tables.test_exports import EXPORTS


def exported() -> Iterator[tuple[str, type]]:
    for package in EXPORTS:
        module = importlib.import_module(package)
        for name in module.__all__:
            found = getattr(module, name)
            # Aliases such as `dict[str, Any]` are not classes to `inspect`.
            if isinstance(found, type) and type(found) is not type(dict[str, int]):
                yield f"{package}.{name}", found


CLASSES = dict(exported())


def has_builtin_constructor(cls: type) -> bool:
    """Return True for a dict or an exception that inherits its constructor: `inspect` has none."""
    owner = next(each for each in cls.__mro__ if "__init__" in vars(each))
    return owner.__module__ == "builtins" and owner is not object


@pytest.mark.parametrize("name", CLASSES)
def test_exported_class_has_a_signature_and_help(name: str) -> None:
    cls = CLASSES[name]
    if not has_builtin_constructor(cls):
        assert "(" in str(inspect.signature(cls))
    assert cls.__name__ in pydoc.render_doc(cls, renderer=pydoc.plaintext)


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if issubclass(cls, Struct)])
def test_annotations_of_an_exported_struct_can_be_resolved(name: str) -> None:
    cls = CLASSES[name]
    assert get_type_hints(cls).keys() >= set(cls.__struct_fields__)


def test_classes_of_all_public_packages_are_looked_at() -> None:
    assert {"trunkline.Context", "trunkline.auth.AuthSettings", "trunkline.server.Server"} <= {
        *CLASSES
    }
    assert len(CLASSES) > 100
