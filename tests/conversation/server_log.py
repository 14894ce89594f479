"""What servers in this process log, as theirs would stand on their standard error."""

from __future__ import annotations

import logging
from typing import ClassVar, Final

_LOGGER: Final = logging.getLogger("trunkline.server")


class ServerLog(logging.Handler):
    """Keeps the log of servers, until it is closed."""

    # Several may be open; the last one restores the level.
    _open: ClassVar[int] = 0
    _level_before: ClassVar[int] = logging.NOTSET

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        self._lines: list[str] = []
        if not ServerLog._open:
            ServerLog._level_before = _LOGGER.level
            _LOGGER.setLevel(logging.INFO)
        ServerLog._open += 1
        _LOGGER.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def text(self) -> str:
        return "\n".join(self._lines)

    def close(self) -> None:
        if self in _LOGGER.handlers:
            _LOGGER.removeHandler(self)
            ServerLog._open -= 1
            if not ServerLog._open:
                _LOGGER.setLevel(ServerLog._level_before)
        super().close()
