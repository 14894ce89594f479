"""Dataclasses that were read are written with all their members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from msgspec import Meta, Struct

from trunkline.server.handlers.custom_types import filled, filler


@dataclass
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    at: Point
    name: str = "none"


@dataclass(slots=True)
class Slotted:
    x: int = 1


class Holder(Struct):
    points: list[Point]
    again: Holder | None = None


class PointDict(TypedDict):
    point: Point


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Point, b'{"x":1}', {"x": 1, "y": 2, "tags": []}),
        (list[Point], b'[{"x":1}]', [{"x": 1, "y": 2, "tags": []}]),
        (dict[str, Point], b'{"a":{"x":1}}', {"a": {"x": 1, "y": 2, "tags": []}}),
        (Frozen, b'{"at":{"x":1}}', {"at": {"x": 1, "y": 2, "tags": []}, "name": "none"}),
        (Slotted, b"{}", {"x": 1}),
        (
            Holder,
            b'{"points":[{"x":1}]}',
            {"points": [{"x": 1, "y": 2, "tags": []}], "again": None},
        ),
        (PointDict, b'{"point":{"x":1}}', {"point": {"x": 1, "y": 2, "tags": []}}),
        (Point | None, b'{"x":1}', {"x": 1, "y": 2, "tags": []}),
    ],
)
def test_omitted_dataclass_members_are_filled_with_defaults(
    kind: Any, text: bytes, expected: Any
) -> None:
    fill = filler(kind)
    assert fill is filled
    assert msgspec.to_builtins(fill(msgspec.json.decode(text, type=kind))) == expected


class Plain(Struct):
    x: int
    next: Plain | None = None


@pytest.mark.parametrize("kind", [int, str, list[int], dict[str, Any], Plain, Any, None])
def test_types_without_dataclasses_need_no_filling(kind: Any) -> None:
    assert filler(kind) is None


def test_a_dataclass_behind_an_annotation_is_found() -> None:
    assert filler(Annotated[list[Point], Meta(min_length=1)]) is filled
