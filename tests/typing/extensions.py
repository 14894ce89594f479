"""What a type checker makes of extensions: read by one, never run."""

from __future__ import annotations

from typing import Any, assert_type

from msgspec import Struct

from trunkline import Context, Extension, Server

stars = Extension("com.example/stars", settings={"most": 5}, result_types=("starred",))
app = Server("sky", extensions=[stars])


class Star(Struct):
    """What a method gives."""

    name: str


@stars.method("stars/list")
async def list_stars(context: Context, limit: int = 10) -> list[str]:
    """Return what completes, or a result of another type: the annotation is of the first."""
    if context.extension("com.example/stars") is not None:
        return stars.result("starred", {"limit": limit})
    return ["vega"][:limit]


@app.tool
async def observe(context: Context, star: str) -> str:
    """Return either in one expression."""
    is_known = context.extension("com.example/stars") is not None
    return stars.result("starred", {"star": star}) if is_known else f"{star} is bright"


@app.tool
def brightest(limit: int) -> Star | None:
    """Return it on a thread, and in place of a union."""
    return stars.result("starred", {"limit": limit})


@app.tool
def count() -> dict[str, int]:
    """Return it by way of a variable that says what it stands for."""
    found: dict[str, int] = stars.result("starred")
    return found


@stars.method("stars/any")
async def anything() -> Any:
    """Return it where nothing is promised."""
    return stars.result("starred")  # pyright: ignore[reportUnknownVariableType]  # of no handler


def decorated() -> None:
    """A handler stays what it is."""
    assert_type(brightest(1), Star | None)


def refused() -> None:
    """A type is named by a text."""
    print(stars.result(7))  # type: ignore[arg-type]  # this is what the file is for
