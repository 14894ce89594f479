"""What fuzz targets of servers share: a script read from bytes, and what is logged during a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Choices:
    """The bytes of a script, taken one by one; zero when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_left(self) -> bool:
        return self._at < len(self._data)

    def number(self, below: int) -> int:
        self._at += 1
        value = self._data[self._at - 1] if self._at <= len(self._data) else 0
        return value % below

    def of(self, several: Any) -> Any:
        return several[self.number(len(several))]

    def take(self, count: int) -> bytes:
        data, self._at = self._data[self._at : self._at + count], self._at + count
        return data

    def rest(self) -> bytes:
        return self.take(len(self._data))

    def line(self) -> bytes:
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        line, self._at = self._data[self._at : end], end + 1
        return line


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(1)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


@contextmanager
def logged(*names: str) -> Iterator[list[str]]:
    """Keep the lines that some loggers write, whatever level other tests have set."""
    log, loggers = _Log(), [logging.getLogger(name) for name in names]
    before = [(each.level, each.propagate) for each in loggers]
    for each in loggers:
        each.addHandler(log)
        each.setLevel(1)
        each.propagate = False
    try:
        yield log.lines
    finally:
        for each, (level, propagate) in zip(loggers, before, strict=True):
            each.removeHandler(log)
            each.setLevel(level)
            each.propagate = propagate
