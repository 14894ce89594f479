"""Log records as lines of JSON."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.canaries import CANARY, SECRETS
from trunkline.server import JsonFormatter


def record(message: Any = "text", *args: Any, **more: Any) -> logging.LogRecord:
    """Return a record as `Logger.warning` makes it; `more` is its `extra`."""
    info = more.pop("exc_info", None)
    made = logging.LogRecord("trunkline.server", logging.WARNING, "x.py", 1, message, args, info)
    vars(made).update(more)
    return made


def line(message: Any = "text", *args: Any, **more: Any) -> dict[str, Any]:
    text = JsonFormatter().format(record(message, *args, **more))
    assert text.isascii()
    assert text.isprintable()  # so it is one line, on any terminal
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_record_has_time_level_logger_and_message_in_that_order() -> None:
    given = record("connection %d closed: %s", 7, "reset")
    given.created = 1_753_747_200.25
    assert JsonFormatter().format(given) == (
        '{"time": "2025-07-29T00:00:00.250Z", "level": "WARNING", "logger": "trunkline.server", '
        '"message": "connection 7 closed: reset"}'
    )
    moment = datetime.fromisoformat(line()["time"])
    assert moment.utcoffset() == timedelta(0)


def test_control_characters_and_line_separators_are_escaped() -> None:
    hostile = 'a\nb\rc\x1b[2Jd\x7fe\x85f\u2028g\u202eh\ud800i\x00j "quoted" \\ ü 😀'
    assert line("%s", hostile)["message"] == hostile


def test_credentials_are_hidden_in_message_exception_stack_and_extra() -> None:
    try:
        raise ValueError("password=CANARY-1")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    found = line(
        "token=%s",
        "CANARY-2",
        exc_info=info,
        stack_info="token=CANARY-3",
        password="CANARY-4",
        arguments=SECRETS,
        note="Authorization: Bearer CANARY-5",
    )
    assert CANARY not in json.dumps(found)
    assert found["exception"].startswith("Traceback (most recent call last):\n")
    assert found["exception"].endswith("ValueError: password=[redacted]")
    assert found["message"] == "token=[redacted]"
    assert found["password"] == "[redacted]"


def test_extra_fields_are_logged_and_cannot_replace_a_member() -> None:
    found = line(status=200, seconds=0.25, path="/mcp", is_new=True, level="forged", size=None)
    assert (found["status"], found["seconds"], found["path"]) == (200, 0.25, "/mcp")
    assert (found["is_new"], found["size"]) == (True, None)
    assert found["level"] == "WARNING"


def test_extra_value_not_expressible_in_json_is_logged_as_text() -> None:
    assert line(value=object())["value"] == "<object>"
    assert "nan" in line(value=float("nan"))["extra"]


def test_arguments_that_do_not_fit_are_still_a_line() -> None:
    class Rude:
        def __str__(self) -> str:
            raise KeyError("no text")

    assert line("%d items", "many")["message"] == "%d items (its arguments raised TypeError)"
    assert line("%s", Rude())["message"] == "%s (its arguments raised KeyError)"


def test_a_line_inside_a_span_has_its_ids() -> None:
    from opentelemetry import trace

    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)
    assert "trace_id" not in line()
    with trace.use_span(trace.NonRecordingSpan(context)):
        found = line()
    assert found["trace_id"] == "00000000000000000000000000000abc"
    assert found["span_id"] == "0000000000000def"


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_traceback_in_the_message_is_one_line_of_the_log(size: int) -> None:
    text = "handler failed\n" + "x" * size
    assert line("%s", text)["message"] == text
