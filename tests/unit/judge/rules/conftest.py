from __future__ import annotations

import pytest

# So that a failed assertion of the shared helpers shows the findings it compared.
pytest.register_assert_rewrite("tests.unit.judge.rules.recording")
