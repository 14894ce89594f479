"""The stubs of lazy packages are those that their tables make."""

from __future__ import annotations

import importlib

import pytest

from tools.generate_exports import SOURCE, lazy_packages, stub_of

PACKAGES = {str(path.parent.relative_to(SOURCE)): (path, call) for path, call in lazy_packages()}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_stub_is_the_one_that_the_table_makes(name: str) -> None:
    path, call = PACKAGES[name]
    assert path.with_suffix(".pyi").read_text(encoding="utf-8") == stub_of(call)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_in_the_table_can_be_loaded_and_no_other(name: str) -> None:
    package = importlib.import_module(".".join(["trunkline", *name.split("/")]).rstrip("."))
    for each in package.__all__:
        assert getattr(package, each) is not None
    assert dir(package) == package.__all__
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_this'"):
        package.nothing_like_this  # noqa: B018  # the access is the test
