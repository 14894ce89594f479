"""Counts what happens in each turn of the event loop."""

from __future__ import annotations

import asyncio
from time import thread_time

from trunkline.transports.receive_limits import MAX_BYTES_PER_TURN, MAX_MESSAGES_PER_TURN


class Turns:
    """Messages and bytes of each turn, from `start` on; `check` compares them with the limits."""

    def __init__(self) -> None:
        self.messages: list[int] = [0]
        self.largest = 0
        self.longest_s = 0.0
        self._size = self._count = 0
        self._began = 0.0
        self._is_running = False

    def start(self) -> None:
        self._is_running = True
        self._began = thread_time()
        asyncio.get_running_loop().call_soon(self._turn)

    def stop(self) -> None:
        self._is_running = False

    def _turn(self) -> None:
        self.messages.append(0)
        self._size = self._count = 0
        now = thread_time()
        self.longest_s, self._began = max(self.longest_s, now - self._began), now
        if self._is_running:
            asyncio.get_running_loop().call_soon(self._turn)

    def add(self, frame: bytes) -> None:
        """Count a message."""
        self.messages[-1] += 1
        self._count += 1
        self._size += len(frame)
        if self._count > 1:  # one alone may have any size
            self.largest = max(self.largest, self._size)

    def check(self, what: str) -> None:
        """Fail if a turn had more than it may; print its CPU time, which depends on the machine."""
        assert max(self.messages) <= MAX_MESSAGES_PER_TURN, f"{max(self.messages)} in one turn"
        assert self.largest <= MAX_BYTES_PER_TURN, f"{self.largest} bytes in one turn"
        ms = self.longest_s * 1000
        print(f"{what}: {sum(self.messages)} messages, longest turn {ms:.1f} ms of CPU")
