"""Recordings: no canary in any, and the same findings live and recorded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.fuzz import fuzz_recording
from tests.fuzz.fuzz_recording import check
from trunkline.judge.trace import writer


@given(st.binary(max_size=120))
@settings(max_examples=examples(400))
def test_any_frames_are_recorded_without_their_secrets_and_judged_the_same(data: bytes) -> None:
    check(data)


@pytest.mark.parametrize("seed", range(20))
def test_the_check_notices_a_secret(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes((seed * 37 + place * 11) % 256 for place in range(60))
    check(data)
    monkeypatch.setattr(writer, "conceal_message", lambda value: (value, []))
    with pytest.raises(AssertionError, match=fuzz_recording.CANARY):
        check(data)
