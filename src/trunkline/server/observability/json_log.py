"""Log records as JSON, one line each, for programs that collect logs.

    handler.setFormatter(JsonFormatter())

A line has the members `time`, `level`, `logger` and `message`, `exception` and `stack` if there
are any, `trace_id` and `span_id` inside a span of OpenTelemetry, `principal` and `tenant` while a
request is served on a server with tenants, and what `extra=` of the logging
call added, unless it has one of these names.

The rules that live here, and only here:

* A record is one line of ASCII: control characters, line separators of any script and everything
  else beyond ASCII is escaped.
* Credentials in a message, an exception and the values of `extra` are hidden.
* `time` is UTC with milliseconds.                                                  [RFC 3339]
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from ...exception_text import as_redacted, one_line
from ...redaction import conceal, redact
from .request_fields import REQUEST_FIELDS

__all__ = ["JsonFormatter"]

# Attributes of every record; others were added by `extra`. The last one is of Python 3.12.
_STANDARD: Final = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "color_message", "taskName")
)


class JsonFormatter(logging.Formatter):
    """Formats log records as JSON, one line each."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message_of(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = as_redacted(record.exc_info[1])
        if record.stack_info:
            line["stack"] = conceal(record.stack_info)
        line |= _span_of()
        fields = REQUEST_FIELDS.get(None)
        if fields:
            line |= {name: str(redact(value)) for name, value in fields.items()}
        added = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        # A dict in, a dict out: names that suggest a secret hide their values.
        extra: Any = redact(added) if added else {}
        try:
            # Twice: the members above come first, and keep their values.
            text = json.dumps({**line, **extra, **line}, allow_nan=False)
        except ValueError:  # of a number that JSON does not have
            text = json.dumps({**line, "extra": one_line(extra)})
        # DEL is the one control character of ASCII that JSON leaves alone.
        return text.replace("\x7f", "\\u007f")


def _message_of(record: logging.LogRecord) -> str:
    try:
        return str(conceal(record.getMessage()))
    except Exception as error:  # noqa: BLE001  # arguments that do not fit the text, or fail as text
        return f"{one_line(record.msg)} (its arguments raised {type(error).__name__})"


def _span_of() -> dict[str, str]:
    """Return the ids of the current span, if this process uses OpenTelemetry."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return {}
    current = trace.get_current_span().get_span_context()
    if not current.is_valid:
        return {}
    return {"trace_id": f"{current.trace_id:032x}", "span_id": f"{current.span_id:016x}"}
