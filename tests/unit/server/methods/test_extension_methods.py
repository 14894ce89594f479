"""Extending a server: what it takes, what is in the way, and what mounting brings."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from tests.unit.server.stars_extension import STARS, meta, reply_to, stars
from trunkline import Context, Extension, Server

# -- what a server takes ---------------------------------------------------------------------


def test_a_server_has_one_extension_of_an_id() -> None:
    app = Server("a", extensions=[stars()])
    with pytest.raises(ValueError, match=r"has an extension com\.example/stars already"):
        app.add_extension(stars())


def test_add_extension_refuses_a_value_that_is_not_an_extension() -> None:
    with pytest.raises(TypeError, match="not str"):
        Server("a").add_extension(STARS)  # type: ignore[arg-type]  # that is the point


def test_two_extensions_cannot_share_a_method_or_a_result_type() -> None:
    app = Server("a", extensions=[stars()])
    same_method = Extension("com.example/other")
    same_method.serve("stars/list", lambda *_: None)
    with pytest.raises(ValueError, match=r"'stars/list' is a method of com\.example/stars"):
        app.add_extension(same_method)
    with pytest.raises(ValueError, match="both have the result type 'starred'"):
        app.add_extension(Extension("com.example/third", result_types=("starred",)))
    assert list(app._core.extensions) == [STARS]


def test_a_method_of_the_servers_own_and_one_of_an_extension_exclude_each_other() -> None:
    async def own() -> None: ...

    app = Server("a")
    app.method("stars/list")(own)
    with pytest.raises(ValueError, match="is a method of"):
        app.add_extension(stars())
    app = Server("a", extensions=[stars()])
    with pytest.raises(ValueError, match="registered already"):
        app.method("stars/list")(own)


def test_failing_on_extend_leaves_the_server_unchanged() -> None:
    class Unwilling(Extension):
        def on_extend(self, app: Server) -> None:
            raise LookupError("no database")

    app = Server("a")
    with pytest.raises(LookupError):
        app.add_extension(Unwilling(STARS))
    assert app._core.extensions == {}


def test_on_extend_registers_what_else_is_needed() -> None:
    class WithTool(Extension):
        def on_extend(self, app: Server) -> None:
            app.add_tool(lambda: "little star", "twinkle")

    app = Server("a", extensions=[WithTool(STARS)])
    result = reply_to(app, "tools/call", name="twinkle")["result"]
    assert result["content"][0]["text"] == "little star"


def test_an_extension_does_not_keep_a_server_alive() -> None:
    extension = stars()
    app = Server("a", extensions=[extension])
    gone = weakref.ref(app)
    del app
    gc.collect()
    assert gone() is None


# -- mounting --------------------------------------------------------------------------------


def test_a_mounted_server_brings_its_extensions_with_its_state_and_middleware() -> None:
    inner, seen = Server("inner"), []
    extension = Extension(STARS, settings={"most": 5})

    @extension.method("stars/where")
    async def where(context: Context) -> dict[str, str]:
        return {"app": context.app.name}

    @inner.middleware
    async def watch(context: Context, proceed: Any) -> Any:
        seen.append(context.name)
        return await proceed()

    inner.add_extension(extension)
    outer = Server("outer")
    outer.mount(inner, prefix="in")
    assert outer._core.extension_settings() == {STARS: {"most": 5}}
    result = reply_to(outer, "stars/where", _meta=meta(stars={}))["result"]
    assert result["app"] == "inner"
    assert seen == ["stars/where"]


def test_extension_added_to_a_mounted_server_is_served_at_every_level() -> None:
    inner, middle, outer = Server("inner"), Server("middle"), Server("outer")
    outer.mount(middle)
    middle.mount(inner)
    extension = Extension(STARS)
    inner.add_extension(extension)

    @extension.method("stars/late")
    async def late(context: Context) -> dict[str, str]:
        return {"app": context.app.name}

    assert reply_to(outer, "stars/late", _meta=meta(stars={}))["result"]["app"] == "inner"


def test_mounted_and_outer_server_may_share_an_extension() -> None:
    extension = stars()
    inner, outer = Server("i", extensions=[extension]), Server("o", extensions=[extension])
    outer.mount(inner, prefix="in")
    assert reply_to(outer, "stars/list", _meta=meta(stars={}))["result"]["result"]


def test_equal_extensions_of_mounted_and_outer_server_are_merged() -> None:
    def plain() -> Extension:
        made = Extension(STARS, result_types=("starred",))
        made.serve("stars/raw", lambda *_: None)
        return made

    outer = Server("o", extensions=[plain()])
    outer.mount(Server("i", extensions=[plain()]), prefix="in")
    assert list(outer._core.extensions) == [STARS]


def test_mount_with_a_differing_extension_is_refused_and_changes_nothing() -> None:
    inner = Server("i", extensions=[Extension(STARS, settings={"most": 5})])
    inner.add_tool(lambda: "star", "twinkle")
    outer = Server("o", extensions=[stars()])
    with pytest.raises(ValueError, match=r"different extensions com\.example/stars"):
        outer.mount(inner)
    assert len(outer._core.catalog.tools) == 0


def test_a_later_one_that_differs_is_left_out_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inner, outer = Server("i"), Server("o", extensions=[stars()])
    outer.mount(inner)
    inner.add_extension(Extension(STARS, settings={"most": 5}))
    assert outer._core.extension_settings() == {STARS: {}}
    assert "is not offered" in caplog.text


def test_own_extension_replaces_an_equal_mounted_one() -> None:
    inner, outer = Server("i", extensions=[Extension(STARS)]), Server("o")
    outer.mount(inner)
    own = Extension(STARS)
    outer.add_extension(own)
    assert outer._core.extensions[STARS].extension is own
    with pytest.raises(ValueError, match="already"):
        outer.add_extension(Extension(STARS))


def test_own_extension_is_refused_if_a_mounted_one_differs() -> None:
    inner, outer = Server("i", extensions=[stars()]), Server("o")
    outer.mount(inner)
    with pytest.raises(ValueError, match="already"):
        outer.add_extension(Extension(STARS))
