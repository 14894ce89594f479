"""Whatever a message is made of, the judge returns findings and raises nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from trunkline.judge import judge
from trunkline.spec.revisions import REVISIONS

VECTORS = Path(__file__).parents[2] / "vectors" / "judge"
CASES = [c for p in sorted(VECTORS.glob("*.json")) for c in json.loads(p.read_text("utf-8"))]
ODD = [None, True, 7, -1.5, "", "text", [], {}, [[]], {"type": "text"}, {"_meta": 7}]
TURNS = 3000


def spoilt(value: Any, draw: random.Random) -> Any:
    """Return a copy with one part replaced, left out or added."""
    if isinstance(value, dict) and value and draw.random() < 0.85:
        name = draw.choice(list(value))
        kind = draw.random()
        if kind < 0.15:
            return {key: item for key, item in value.items() if key != name}
        if kind < 0.25:
            return {**value, name[:-1]: value[name]}
        return {**value, name: spoilt(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.85:
        place = draw.randrange(len(value))
        return [*value[:place], spoilt(value[place], draw), *value[place + 1 :]]
    return draw.choice(ODD)


def test_a_spoilt_message_is_judged_and_nothing_is_raised() -> None:
    draw = random.Random(28)
    for _ in range(TURNS):
        case = draw.choice(CASES)
        message = case.get("message")
        for _ in range(draw.randint(1, 3)):
            message = spoilt(message, draw)
        found = judge(message, draw.choice(REVISIONS), case.get("sender"), case.get("request"))
        assert found == sorted(found)
        assert all(str(item) and item.rule and item.source for item in found)


def test_a_cut_text_is_judged_and_nothing_is_raised() -> None:
    draw = random.Random(7)
    for _ in range(TURNS // 3):
        text = json.dumps(draw.choice(CASES).get("message")).encode()
        place = draw.randrange(len(text))
        changed = text[:place] + bytes([draw.randrange(256)]) * draw.randint(0, 2)
        judge(changed + text[place + draw.randint(0, 1) :], draw.choice(REVISIONS))
        judge(text[:place])
