"""Ready middleware: logging, timing, rate limiting, caching and mapping of errors.

    app.middleware(RequestLog())
    app.middleware(RateLimit(10, burst=20))

Each is a coroutine function of a context and `proceed`, as any middleware.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from msgspec import UNSET
from msgspec.json import Encoder
from msgspec.structs import asdict

from ...errors import RequestError
from ...mcp.types import CallToolResult
from ...redaction import show
from ...spec.error_kinds import ErrorKind
from ..context import Context, request_of
from ..methods.entry_methods import is_guarded

__all__ = ["ErrorMap", "RateLimit", "RequestLog", "RequestTimer", "ResultCache"]

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
Clock: TypeAlias = Callable[[], float]

# Clients whose rate is remembered. Each could send one request and be gone; the one that was
# quiet for longest is forgotten first.
MAX_CLIENTS: Final = 10_000

_sorted: Final = Encoder(order="sorted")


class RequestLog:
    """Logs each request: method, subject, client, outcome and milliseconds, never arguments.

    Args:
        logger: the logger, or its name.
        level: of a request that was served; those that failed are warnings.
    """

    def __init__(
        self, logger: logging.Logger | str = "trunkline.requests", level: int = logging.INFO
    ) -> None:
        self._log = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level

    async def __call__(self, context: Context, proceed: Proceed) -> Any:
        """Serve the request, and log how it ended."""
        start = time.perf_counter()
        outcome = "cancelled"
        try:
            value = await proceed()
            outcome = "failed" if _is_error(value) else "ok"
            return value
        except Exception as error:
            outcome = str(error.kind) if isinstance(error, RequestError) else type(error).__name__
            raise
        finally:
            principal = context.principal
            self._log.log(
                self._level if outcome == "ok" else max(self._level, logging.WARNING),
                "%s %s of %s: %s after %.1f ms",
                show(context.method),
                show(context.name),
                show(context.client.name) if principal is None else str(principal),
                outcome,
                (time.perf_counter() - start) * 1000,
            )


class RequestTimer:
    """Calls a function with each context and the seconds that the request took.

    The function is called on the event loop, also for requests that fail; it must be quick.
    """

    def __init__(self, report: Callable[[Context, float], object]) -> None:
        self._report = report

    async def __call__(self, context: Context, proceed: Proceed) -> Any:
        """Serve the request, and report its time."""
        start = time.perf_counter()
        try:
            return await proceed()
        finally:
            self._report(context, time.perf_counter() - start)


class RateLimit:
    """Refuses the requests of a client beyond so many per second, with `retryAfterMs`.

    A client may send `burst` requests at once, and gains `rate` per second (a token bucket).

    Args:
        rate: requests per second.
        burst: requests at once.
        key: what tells clients apart; by default the principal, and without one the connection
            or, over HTTP, the address.
        methods: the methods that count; by default all.
        clock: seconds that never go back.

    Raises:
        ValueError: the rate is not above 0, or the burst is below 1.
    """

    # Whether it counts requests in the memory of one process.
    counts_requests: bool = True

    def __init__(
        self,
        rate: float,
        *,
        burst: int = 10,
        key: Callable[[Context], str] | None = None,
        methods: Collection[str] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(f"a rate is above 0 and a burst at least 1, not {rate} and {burst}")
        self._rate = rate
        self._burst = burst
        self._key = client_key if key is None else key
        self._methods = None if methods is None else frozenset(methods)
        self._clock = clock
        # Requests that a client may send, and when that was so.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, context: Context, proceed: Proceed) -> Any:
        """Serve the request, or refuse it."""
        if self._methods is None or context.method in self._methods:
            self._take(self._key(context))
        return await proceed()

    def _take(self, key: str) -> None:
        now = self._clock()
        left, since = self._buckets.get(key, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * self._rate)
        self._buckets[key] = (left - 1 if left >= 1 else left, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = round((1 - left) / self._rate * 1000) + 1
            raise RequestError(
                ErrorKind.OVERLOADED, "Too many requests", data={"retryAfterMs": wait}
            )


class ResultCache:
    """Keeps results for some seconds, and answers equal requests with them.

    Failures, requests that asked the client something, and calls that became tasks are not kept.
    Nor are results of entries with `scopes`, `allow` or `visible`, and lists that differ between
    callers: these are decided for each request.

    Args:
        seconds: how long a result is kept.
        methods: the methods whose results are kept.
        tools: the tools whose results are kept; none by default, since a tool may act.
        size: results that are kept; the oldest is dropped first.
        shared: whether clients share results. By default each principal has its own, and each
            connection without one.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        seconds: float,
        *,
        methods: Collection[str] = ("resources/read", "prompts/get", "completion/complete"),
        tools: Collection[str] = (),
        size: int = 1000,
        shared: bool = False,
        clock: Clock = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._methods = frozenset(methods)
        self._tools = frozenset(tools)
        self._size = size
        self._shared = shared
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, Any]] = OrderedDict()

    def clear(self) -> None:
        """Forget all results."""
        self._kept.clear()

    async def __call__(self, context: Context, proceed: Proceed) -> Any:
        """Answer with a result that is kept, or serve the request and keep its result."""
        key = self._key(context)
        if key is None:
            return await proceed()
        now = self._clock()
        until, value = self._kept.get(key, (now, None))
        if until > now:
            return value
        value = await proceed()
        run = request_of(context).run
        is_whole = run is None or (run.round is None and run.on_end is None)
        if is_whole and not _is_error(value):
            self._kept[key] = (self._clock() + self._seconds, value)
            self._kept.move_to_end(key)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return value

    def _key(self, context: Context) -> bytes | None:
        is_tool = context.method == "tools/call"
        if context.name not in self._tools if is_tool else context.method not in self._methods:
            return None
        params = context.params
        members = dict(params) if isinstance(params, dict) else asdict(params)
        members.pop("_meta", None)
        members.pop("meta", None)
        given = {name: value for name, value in members.items() if value not in (UNSET, None)}
        if "request_state" in given or "input_responses" in given or "task" in given:
            return None
        if is_guarded(request_of(context).connection.core, context.method, params):
            return None
        owner = "" if self._shared else client_key(context)
        return _sorted.encode([context.method, context.revision, owner, given])


class ErrorMap:
    """Replaces exceptions of handlers by errors for the client.

        app.middleware(ErrorMap({PermissionError: lambda error: ToolError("not allowed")}))

    A value is a function of the exception that returns the one to raise, or the symbol of an
    error, such as "INVALID_PARAMS", sent without further text. The first type that fits counts.
    """

    def __init__(
        self,
        errors: Mapping[type[Exception], str | Callable[[Exception], Exception]],
    ) -> None:
        self._errors = dict(errors)

    async def __call__(self, context: Context, proceed: Proceed) -> Any:
        """Serve the request; raise another exception in place of one that is mapped."""
        try:
            return await proceed()
        except Exception as error:
            for kind, replacement in self._errors.items():
                if isinstance(error, kind):
                    if isinstance(replacement, str):
                        raise RequestError(replacement) from error
                    raise replacement(error) from error
            raise


def client_key(context: Context) -> str:
    """Return what tells clients apart: the principal, the address over HTTP, or the connection."""
    principal = context.principal
    if principal is not None:
        return f"principal {principal.key}"
    connection = request_of(context).connection
    return connection.client_key or f"connection {id(connection)}"


def _is_error(value: Any) -> bool:
    if isinstance(value, CallToolResult):
        return value.is_error is True
    return getattr(value, "is_error", False) is True
