"""A memory for a model: things and how they are related, in one file of JSON."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import BaseModel, Field

from trunkline import Server, ToolError


class Thing(BaseModel):
    """Something to remember."""

    name: str = Field(min_length=1)
    kind: Literal["person", "place", "event"]
    facts: list[str] = []


class Relation(BaseModel):
    """How two things are related."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    verb: str


class Graph(BaseModel):
    """Everything that is remembered."""

    things: dict[str, Thing] = {}
    relations: list[Relation] = []


def make(folder: Path) -> Server:
    """Return a server that remembers in a file of `folder`."""
    app = Server("memory", version="1.0.0", instructions="Look here before you ask the user.")
    path = folder / "memory.json"

    def load() -> Graph:
        return Graph.model_validate_json(path.read_bytes()) if path.exists() else Graph()

    def save(graph: Graph) -> None:
        path.write_text(graph.model_dump_json(by_alias=True))
        app.notify_resource_updated("memory://graph")

    @app.tool
    def remember(things: list[Thing]) -> list[str]:
        """Add things, or facts about known ones; return the names that are new."""
        graph, new = load(), list[str]()
        for thing in things:
            known = graph.things.get(thing.name)
            if known is None:
                graph.things[thing.name] = thing
                new.append(thing.name)
            else:
                known.facts += [fact for fact in thing.facts if fact not in known.facts]
        save(graph)
        return new

    @app.tool
    def relate(relation: Relation) -> str:
        """Say how two things are related."""
        graph = load()
        for name in (relation.source, relation.target):
            if name not in graph.things:
                raise ToolError(f"Nothing is known of {name!r}.")
        graph.relations.append(relation)
        save(graph)
        return f"{relation.source} {relation.verb} {relation.target}"

    @app.tool
    def recall(words: str, kind: Literal["person", "place", "event"] | None = None) -> list[Thing]:
        """Find things by words in their names and facts."""
        return [
            thing
            for thing in load().things.values()
            if kind in (None, thing.kind)
            and any(words.lower() in text.lower() for text in (thing.name, *thing.facts))
        ]

    @app.tool
    def forget(name: str) -> Thing | None:
        """Remove a thing and its relations; return what it was, if it was known."""
        graph = load()
        gone = graph.things.pop(name, None)
        graph.relations = [
            each for each in graph.relations if name not in (each.source, each.target)
        ]
        save(graph)
        return gone

    @app.resource("memory://graph", mime_type="application/json")
    def graph() -> Graph:
        """Everything that is remembered."""
        return load()

    return app


if __name__ == "__main__":
    with TemporaryDirectory() as here:
        make(Path(here)).run()
