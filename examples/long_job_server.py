"""A server with a job of minutes: it runs as a task, reports its steps, and can be cancelled.

    trunkline call examples/long_job_server.py archive year=2025

A client that has tasks is answered at once and fetches the result later; others wait for it.
The handler is the same for both.
"""

from __future__ import annotations

import asyncio
import os

from msgspec import Struct

from trunkline import Context, Server, TaskSettings, ToolError

# How long a month takes; a test is faster.
MONTH_S = float(os.environ.get("MONTH_S", "1"))
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# A result is kept for an hour, and each client has two jobs at a time.
app = Server("archive", version="1.0.0", tasks=TaskSettings(ttl=3600, running_each=2))


class Archive(Struct):
    """What was archived, and where it is."""

    year: int
    files: int
    place: str
    deleted: bool = False


@app.tool(task="optional", timeout=600)
async def archive(ctx: Context, year: int, delete: bool = False) -> Archive:
    """Pack the files of a year, and delete them afterwards if the user agrees."""
    if not 1970 <= year <= 2100:
        raise ToolError(f"There is nothing of {year}.")
    if delete:
        # The first question makes the call a task, where the client has tasks. Where it has none,
        # code before a question may run again: so the question comes before the work.
        answer = await ctx.elicit(f"Delete the files of {year} when they are packed?", bool)
        delete = bool(answer and answer.content)
    files = 0
    for number, month in enumerate(MONTHS, 1):
        # A task that is cancelled ends at an await.
        await ctx.progress(number, len(MONTHS), f"packing {month}")
        await asyncio.sleep(MONTH_S)
        files += 30
    return Archive(year, files, f"archive/{year}.tar", deleted=delete)


if __name__ == "__main__":
    app.run()
