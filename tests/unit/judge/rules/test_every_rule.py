"""Each requirement that is judged from a recording is named in a test of this folder."""

from __future__ import annotations

import re
from pathlib import Path

from trunkline.judge.conversation.outcomes import UNJUDGED
from trunkline.judge.rules.checker import traceable

HERE = Path(__file__).parent
TEXT = "".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("test_*.py")))
NAMED = set(re.findall(r'"(mcp\.[a-z]+\.[a-z0-9-]+)"', TEXT))


def test_each_requirement_that_is_judged_is_named_in_a_test() -> None:
    judged = set(traceable()) - set(UNJUDGED)
    assert sorted(judged - NAMED) == []
