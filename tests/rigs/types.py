"""Classes that handlers take and return in tests: one of every kind that Python knows."""

from __future__ import annotations

import dataclasses
import enum
import pathlib
from typing import Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import attrs
import pydantic
from msgspec import Struct
from pydantic import Field

T = TypeVar("T")


@dataclasses.dataclass
class Cat:
    name: str


@dataclasses.dataclass
class Dog:
    name: str
    age: int = 3


@dataclasses.dataclass
class Place:
    lat: float
    name: str = "here"


@dataclasses.dataclass
class Tree:
    v: int
    kids: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Home:
    path: pathlib.PurePosixPath


class Point(Struct):
    x: int
    y: int = 0


class Node(Struct):
    children: list[Node] = []


class Circle(Struct, tag="circle"):
    radius: float


class Square(Struct, tag="square"):
    side: float


@attrs.define
class Wind:
    speed: int


class Options(TypedDict):
    a: int
    b: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Unit(enum.Enum):
    KELVIN = "k"
    CELSIUS = "c"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class PCat(pydantic.BaseModel):
    kind: Literal["cat"] = "cat"
    name: str


class PDog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Box(pydantic.BaseModel, Generic[T]):
    v: T


class PTree(pydantic.BaseModel):
    v: int
    kids: list[PTree] = []


class Aliased(pydantic.BaseModel):
    user_id: int = Field(alias="userId")


class Computed(pydantic.BaseModel):
    a: int = 1

    @pydantic.computed_field
    @property
    def twice(self) -> int:
        return 2 * self.a


class Numbers(pydantic.RootModel[list[int]]):
    pass
